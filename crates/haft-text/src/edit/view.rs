//! A text seen with every line end as LF, and the way back to the text as it is.
//!
//! Invariant: an offset of the view maps to exactly one offset of the text, never between the CR
//! and the LF of one line end. A CR alone ends a line only in a text without any LF; elsewhere it is
//! a character, here too. A text whose line ends are all LF is not copied.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};

use crate::decode::Decoded;
use crate::lines::{self, LineEnd, LineEnds};

/// Lines that the index holds at most; texts with more are only searched exactly.
const INDEX_LIMIT: usize = 8_000_000;

/// The view.
pub(crate) struct View<'a> {
    original: &'a str,
    normal: Cow<'a, str>,
    /// Offsets in the view of the LFs that stand for CRLF.
    pairs: Vec<usize>,
    ends: LineEnds,
    /// Whether a byte order mark stands before the text.
    marked: bool,
    index: OnceCell<Option<Vec<u32>>>,
    folded: OnceCell<Joined>,
    /// The line that was asked for last: where it begins, and where it ends without its end.
    line: Cell<Option<(usize, usize)>>,
}

/// All lines in a form in which they are compared, joined again.
pub(crate) struct Joined {
    text: String,
    starts: Vec<usize>,
}

impl Joined {
    pub(crate) fn new<'t>(lines: impl Iterator<Item = Cow<'t, str>>) -> Self {
        let mut joined = Self { text: String::new(), starts: Vec::new() };
        for line in lines {
            if !joined.starts.is_empty() {
                joined.text.push('\n');
            }
            joined.starts.push(joined.text.len());
            joined.text.push_str(&line);
        }
        joined
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The line, from 0, that holds an offset.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }
}

/// Writes CRLF as LF, and a lone CR too where that ends lines; notes where a CRLF was.
fn normalize<'t>(text: &'t str, cr_ends: bool, pairs: &mut Vec<usize>) -> Cow<'t, str> {
    let bytes = text.as_bytes();
    let is_end = |at: &usize| cr_ends || bytes.get(at + 1) == Some(&b'\n');
    let mut ends = memchr_iter(b'\r', bytes).filter(is_end).peekable();
    if ends.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for at in ends {
        out.push_str(&text[done..at]);
        done = at + 1;
        if bytes.get(done) == Some(&b'\n') {
            pairs.push(out.len());
            done += 1;
        }
        out.push('\n');
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

impl<'a> View<'a> {
    pub(crate) fn new(original: &'a str, ends: LineEnds) -> Self {
        let mut pairs = Vec::with_capacity(ends.crlf);
        let normal = normalize(original, ends.cr_ends_lines(), &mut pairs);
        Self {
            original,
            normal,
            pairs,
            ends,
            marked: false,
            index: OnceCell::new(),
            folded: OnceCell::new(),
            line: Cell::new(None),
        }
    }

    pub(crate) fn of(decoded: &'a Decoded<'_>) -> Self {
        let view = Self::new(decoded.text(), decoded.line_ends());
        Self { marked: decoded.format().bom, ..view }
    }

    /// Whether a text is the beginning of the file with its byte order mark; the mark alone is not,
    /// since nothing of the text would be left to replace.
    pub(crate) fn begins_marked(&self, text: &str) -> bool {
        let begins = |rest: &str| !rest.is_empty() && self.normal.starts_with(rest);
        self.marked && text.strip_prefix('\u{feff}').is_some_and(begins)
    }

    /// The text with LF only.
    pub(crate) fn text(&self) -> &str {
        &self.normal
    }

    /// A text of an edit with LF only, its line ends taken as those of the file are.
    pub(crate) fn normalized<'t>(&self, text: &'t str) -> Cow<'t, str> {
        normalize(text, self.cr_ends_lines(), &mut Vec::new())
    }

    /// Whether a CR alone ends a line.
    pub(crate) fn cr_ends_lines(&self) -> bool {
        self.ends.cr_ends_lines()
    }

    /// Whether all line ends are LF, so that view and text are the same.
    pub(crate) fn plain(&self) -> bool {
        matches!(self.normal, Cow::Borrowed(_))
    }

    /// The text as it is.
    pub(crate) fn original(&self) -> &'a str {
        self.original
    }

    pub(crate) fn to_original(&self, offset: usize) -> usize {
        offset + self.pairs.partition_point(|pair| *pair < offset)
    }

    pub(crate) fn range(&self, span: &Range<usize>) -> Range<usize> {
        self.to_original(span.start)..self.to_original(span.end)
    }

    /// Number of the line, from 1, that holds an offset of the view.
    pub(crate) fn number(&self, offset: usize) -> usize {
        self.number_in_original(self.to_original(offset))
    }

    /// Number of the line, from 1, that holds an offset of the text.
    pub(crate) fn number_in_original(&self, offset: usize) -> usize {
        lines::number_at(self.original.as_bytes(), offset, self.cr_ends_lines())
    }

    /// The same for offsets in rising order, in one pass.
    pub(crate) fn numbers(&self, sorted: impl Iterator<Item = usize>) -> Vec<usize> {
        let (mut done, mut number) = (0, 1);
        let text = self.original.as_bytes();
        sorted
            .map(|offset| {
                number += lines::ends_in(text, done..offset, self.cr_ends_lines());
                done = offset;
                number
            })
            .collect()
    }

    /// What the LF at an offset of the view really is.
    pub(crate) fn end_at(&self, offset: usize) -> LineEnd {
        if self.pairs.binary_search(&offset).is_ok() {
            return LineEnd::Crlf;
        }
        match self.original.as_bytes().get(self.to_original(offset)) {
            Some(b'\r') => LineEnd::Cr,
            _ => LineEnd::Lf,
        }
    }

    /// The bounds of the line that holds an offset of the view, without its end. Many changes of one
    /// long line ask for it.
    fn line(&self, offset: usize) -> (usize, usize) {
        if let Some((start, stop)) =
            self.line.get().filter(|line| line.0 <= offset && offset <= line.1)
        {
            return (start, stop);
        }
        let text = self.normal.as_bytes();
        let start = memrchr(b'\n', &text[..offset]).map_or(0, |at| at + 1);
        let stop = memchr(b'\n', &text[offset..]).map_or(text.len(), |at| offset + at);
        self.line.set(Some((start, stop)));
        (start, stop)
    }

    /// What the line that holds an offset of the view has before it.
    pub(crate) fn before(&self, offset: usize) -> &str {
        &self.normal[self.line(offset).0..offset]
    }

    /// The end of the line that an offset of the view is in, if it has one.
    pub(crate) fn end_after(&self, offset: usize) -> Option<LineEnd> {
        let (_, stop) = self.line(offset);
        (stop < self.normal.len()).then(|| self.end_at(stop))
    }

    /// The end of the line before the one that an offset of the view is in.
    pub(crate) fn end_before(&self, offset: usize) -> Option<LineEnd> {
        self.line(offset).0.checked_sub(1).map(|at| self.end_at(at))
    }

    /// The lines as they are compared under a folding, which is asked for once.
    pub(crate) fn folded(&self, fold: impl FnOnce() -> Joined) -> &Joined {
        self.folded.get_or_init(fold)
    }

    /// Whether a span begins where a line begins.
    pub(crate) fn starts_line(&self, offset: usize) -> bool {
        offset == 0 || self.normal.as_bytes()[offset - 1] == b'\n'
    }

    /// Whether a span ends where a line's content ends.
    pub(crate) fn ends_line(&self, offset: usize) -> bool {
        self.normal.as_bytes().get(offset).is_none_or(|byte| *byte == b'\n')
    }

    /// The lines of the view; none where there are too many to keep an index of.
    pub(crate) fn index(&self) -> Option<Index<'_>> {
        let starts = self.index.get_or_init(|| {
            let text = self.normal.as_bytes();
            u32::try_from(text.len()).ok()?;
            let count = memchr_iter(b'\n', text).count();
            if count >= INDEX_LIMIT {
                return None;
            }
            let mut starts = Vec::with_capacity(count + 1);
            starts.push(0);
            starts.extend(memchr_iter(b'\n', text).filter_map(|at| u32::try_from(at + 1).ok()));
            Some(starts)
        });
        starts.as_deref().map(|starts| Index { text: &self.normal, starts })
    }
}

/// The lines of a view; what follows a final line end counts as a last, empty line.
#[derive(Clone, Copy)]
pub(crate) struct Index<'v> {
    text: &'v str,
    starts: &'v [u32],
}

impl<'v> Index<'v> {
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(crate) fn start(&self, line: usize) -> usize {
        self.starts.get(line).map_or(self.text.len(), |start| *start as usize)
    }

    pub(crate) fn stop(&self, line: usize) -> usize {
        self.starts.get(line + 1).map_or(self.text.len(), |next| *next as usize - 1)
    }

    pub(crate) fn line(&self, line: usize) -> &'v str {
        self.text.get(self.start(line)..self.stop(line)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_map_around_pairs() {
        let text = "a\r\nb\rc\nd\r\r\ne";
        let view = View::new(text, LineEnds::scan(text.as_bytes()));
        assert_eq!(view.text(), "a\nb\rc\nd\r\ne");
        assert_eq!(view.range(&(1..2)), 1..3);
        assert_eq!(view.range(&(2..3)), 3..4);
        assert_eq!(view.range(&(6..9)), 7..11);
        let ends = [1, 5, 8].map(|at| view.end_at(at));
        assert_eq!(ends, [LineEnd::Crlf, LineEnd::Lf, LineEnd::Crlf]);
        assert_eq!(view.number(4), 2);
        let index = view.index().unwrap();
        assert_eq!((index.len(), index.line(1), index.line(2)), (4, "b\rc", "d\r"));
        let view = View::new("a\rb", LineEnds::scan(b"a\rb"));
        assert_eq!((view.text(), view.end_at(1)), ("a\nb", LineEnd::Cr));
    }
}
