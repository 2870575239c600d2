//! Secret values of several lines: after `|` or `>` of YAML, or between quotes that end on a later
//! line.
//!
//! **Invariant:** each line is judged as a value of its own. So a text that only happens to be
//! under such a name keeps its words. Bounded: a block ends after [`MOST`] lines, wherever its real
//! end is.

use super::{
    detect::{DetectedValue, Findings, blanks},
    heuristics,
};

/// Most lines of a value.
const MOST: u16 = 512;
/// Most bytes in front of the number of a line, where a search shows it behind the name of a file.
const FILE: usize = 256;

/// A value of several lines that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// What its lines are called.
    name: String,
    ends: Ends,
    /// Lines that it may still have.
    left: u16,
}

/// How a value of several lines ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// With the first line that is indented no more than this.
    Indent(usize),
    /// With three quotes, or with one.
    Quotes(&'static str),
}

impl Block {
    /// The block that begins at a place, behind a name and its sign, and where its lines begin.
    pub fn of(text: &str, at: usize, name: &str) -> Option<(Self, usize)> {
        let rest = &text[at..];
        let block = |ends| Self { name: name.to_owned(), ends, left: MOST };
        if let Some(quotes) = ["\"\"\"", "'''"].into_iter().find(|quotes| rest.starts_with(quotes))
        {
            return Some((block(Ends::Quotes(quotes)), at + quotes.len()));
        }
        let inner = rest.strip_prefix(['|', '>'])?;
        let marks = |b: &u8| b.is_ascii_digit() || b"+-".contains(b);
        let inner = &inner[inner.bytes().take(2).take_while(|b| marks(b)).count()..];
        let inner = &inner[blanks(inner)..];
        // Behind the sign there may be a comment.
        let comment = inner.starts_with('#').then(|| inner.find('\n')).flatten().unwrap_or(0);
        let inner = inner[comment..].trim_start_matches('\r').strip_prefix('\n')?;
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        Some((block(Ends::Indent(indent(bare(line)))), text.len() - inner.len()))
    }

    /// The block that begins with a quote which does not end on its line, where what stands behind it
    /// there is a value.
    pub fn quoted(text: &str, at: usize, name: &str) -> Option<(Self, usize)> {
        let quote = ["\"", "'", "`"].into_iter().find(|quote| text[at..].starts_with(quote))?;
        let start = at + quote.len();
        let line = text[start..].split_once('\n')?.0;
        let is_one = !line.contains(quote) && heuristics::is_strong(line.trim_end());
        let block = Self { name: name.to_owned(), ends: Ends::Quotes(quote), left: MOST };
        is_one.then_some((block, start))
    }

    /// Takes the lines of the block from a place on, each of which counts as `counts` says; gives
    /// where it ends, and the block where more of it may follow.
    pub fn read(
        mut self,
        text: &str,
        at: usize,
        counts: impl Fn(&str, &str) -> bool,
        to: &mut Findings,
    ) -> (usize, Option<Self>) {
        let mut at = at;
        for line in text[at..].split_inclusive('\n') {
            let end = match self.ends {
                Ends::Quotes(quotes) => line.find(quotes),
                Ends::Indent(least) => {
                    let bare = bare(line);
                    (!bare.trim().is_empty() && indent(bare) <= least).then_some(0)
                }
            };
            let part = &line[..end.unwrap_or(line.len())];
            let (value, start) = value(part);
            if counts(&self.name, value) {
                let place = at + start..at + start + value.len();
                to.found.push(DetectedValue { name: self.name.clone(), value: place });
            }
            at += part.len();
            self.left -= 1;
            if end.is_some() || self.left == 0 {
                return (at, None);
            }
        }
        (at, Some(self))
    }
}

/// What of a line may be a value, and where it begins.
fn value(line: &str) -> (&str, usize) {
    let bare = bare(line).trim_start_matches([' ', '\t', '+', '-', '\\']);
    let value = bare.trim_end().trim_end_matches('\\');
    (value, line.len() - bare.len())
}

/// How far a line is indented, with the marks of lists and diffs.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t', '+', '-']).len()
}

/// A line without its number, and without the name of the file, where it is shown with them.
fn bare(line: &str) -> &str {
    let behind = |text: &'_ str, marks: &[char]| -> Option<usize> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let mark = text[digits..].chars().next().filter(|c| digits > 0 && marks.contains(c))?;
        Some(digits + mark.len_utf8())
    };
    let start = line.len() - line.trim_start_matches(' ').len();
    if let Some(len) = behind(&line[start..], &['\t', ':', '\u{2192}']) {
        return &line[start + len..];
    }
    if start > 0 {
        return line;
    }
    if let Some(len) = behind(line, &['-']) {
        return &line[len..];
    }
    let head = &line[..line.floor_char_boundary(FILE.min(line.len()))];
    let head = head.split([' ', '\t', '"', '\'']).next().unwrap_or_default();
    head.match_indices([':', '-'])
        .find_map(|(at, mark)| {
            let len = behind(&line[at + 1..], if mark == ":" { &[':'] } else { &['-'] })?;
            Some(&line[at + 1 + len..])
        })
        .unwrap_or(line)
}
