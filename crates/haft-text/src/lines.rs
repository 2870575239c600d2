//! Lines as byte ranges: iteration, counting, the n-th line, and which line ends a text has.
//!
//! Invariant: the ranges of all lines with their ends cover the text exactly, in order. LF and CRLF
//! always end a line; a lone CR does only where the caller says so (files that have no LF at all).
//! Nothing here knows encodings: the bytes are ASCII-compatible text.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2_iter};

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineEnd {
    /// Line feed.
    Lf,
    /// Carriage return and line feed.
    Crlf,
    /// A carriage return alone.
    Cr,
    /// Nothing: the last line of a text without a final line end.
    None,
}

impl LineEnd {
    /// Gives the characters of this line end.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::Crlf => "\r\n",
            Self::Cr => "\r",
            Self::None => "",
        }
    }

    /// Gives the name that people use: `LF`, `CRLF`, `CR` or `none`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lf => "LF",
            Self::Crlf => "CRLF",
            Self::Cr => "CR",
            Self::None => "none",
        }
    }
}

/// How often each line end occurs in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineEnds {
    /// Line feeds without a carriage return before them.
    pub lf: usize,
    /// Carriage returns followed by a line feed.
    pub crlf: usize,
    /// Carriage returns without a line feed after them.
    pub cr: usize,
    /// Whether the text ends with a line end; false for an empty text.
    pub final_end: bool,
}

impl LineEnds {
    /// Counts the line ends of a text.
    pub fn scan(text: &[u8]) -> Self {
        let final_end = matches!(text.last(), Some(b'\n' | b'\r'));
        if memchr(b'\r', text).is_none() {
            return Self { lf: memchr_iter(b'\n', text).count(), final_end, ..Self::default() };
        }
        let mut ends = Self { final_end, ..Self::default() };
        for at in memchr2_iter(b'\n', b'\r', text) {
            if text[at] == b'\r' {
                if text.get(at + 1) == Some(&b'\n') {
                    ends.crlf += 1;
                } else {
                    ends.cr += 1;
                }
            } else if at == 0 || text[at - 1] != b'\r' {
                ends.lf += 1;
            }
        }
        ends
    }

    /// Gives the most frequent line end; on a tie CRLF before LF before CR; none without any.
    pub fn dominant(self) -> LineEnd {
        let most = self.lf.max(self.crlf).max(self.cr);
        match most {
            0 => LineEnd::None,
            _ if most == self.crlf => LineEnd::Crlf,
            _ if most == self.lf => LineEnd::Lf,
            _ => LineEnd::Cr,
        }
    }

    /// Tells whether more than one kind of line end occurs.
    pub fn mixed(self) -> bool {
        [self.lf, self.crlf, self.cr].iter().filter(|count| **count > 0).count() > 1
    }

    /// Tells whether lone carriage returns end lines: only where nothing else does.
    pub fn cr_ends_lines(self) -> bool {
        self.cr > 0 && self.lf == 0 && self.crlf == 0
    }
}

/// One line as byte offsets into its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// First byte of the line.
    pub start: usize,
    /// The byte after the line's content, where its end begins.
    pub stop: usize,
    /// How the line ends.
    pub end: LineEnd,
}

impl Line {
    /// Gives the byte after the line's end, where the next line starts.
    pub const fn next(&self) -> usize {
        self.stop + self.end.as_str().len()
    }
}

/// Iterator over the lines of a text; see [`lines`].
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    cr_ends: bool,
}

/// Iterates the lines of a text with their offsets; an empty text has none, and nothing follows a
/// final line end.
pub const fn lines(text: &[u8], cr_ends: bool) -> Lines<'_> {
    Lines { text, at: 0, cr_ends }
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        if self.at >= self.text.len() {
            return None;
        }
        let start = self.at;
        let rest = &self.text[start..];
        let found =
            if self.cr_ends { memchr::memchr2(b'\n', b'\r', rest) } else { memchr(b'\n', rest) };
        let line = match found {
            None => Line { start, stop: self.text.len(), end: LineEnd::None },
            Some(at) if rest[at] == b'\r' => {
                let end =
                    if rest.get(at + 1) == Some(&b'\n') { LineEnd::Crlf } else { LineEnd::Cr };
                Line { start, stop: start + at, end }
            }
            Some(at) if at > 0 && rest[at - 1] == b'\r' => {
                Line { start, stop: start + at - 1, end: LineEnd::Crlf }
            }
            Some(at) => Line { start, stop: start + at, end: LineEnd::Lf },
        };
        self.at = line.next();
        Some(line)
    }
}

/// Counts the lines of a text; a last line without an end counts, an empty text has none.
pub fn count(text: &[u8], cr_ends: bool) -> usize {
    if cr_ends {
        return lines(text, true).count();
    }
    let ends = memchr_iter(b'\n', text).count();
    ends + usize::from(text.last().is_some_and(|byte| *byte != b'\n'))
}

/// Finds the byte offset at which line `number` (from 1) starts; none when there is no such line.
pub fn offset_of(text: &[u8], number: usize, cr_ends: bool) -> Option<usize> {
    let skip = number.checked_sub(1)?;
    if cr_ends {
        return lines(text, true).nth(skip).map(|line| line.start);
    }
    let start = match skip {
        0 => 0,
        _ => memchr_iter(b'\n', text).nth(skip - 1)? + 1,
    };
    (start < text.len()).then_some(start)
}

/// Finds the number (from 1) of the line that holds the byte at `offset`.
pub fn number_at(text: &[u8], offset: usize, cr_ends: bool) -> usize {
    1 + ends_in(text, 0..offset.min(text.len()), cr_ends)
}

/// Counts the line ends whose last byte lies in a range of a text.
pub(crate) fn ends_in(text: &[u8], range: Range<usize>, cr_ends: bool) -> usize {
    let Some(part) = text.get(range.clone()) else { return 0 };
    if cr_ends {
        memchr2_iter(b'\n', b'\r', part)
            .filter(|at| part[*at] == b'\n' || text.get(range.start + at + 1) != Some(&b'\n'))
            .count()
    } else {
        memchr_iter(b'\n', part).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_ends_are_counted_apart() {
        let ends = LineEnds::scan(b"a\nb\r\nc\rd\r\n");
        assert_eq!(ends, LineEnds { lf: 1, crlf: 2, cr: 1, final_end: true });
        assert_eq!(ends.dominant(), LineEnd::Crlf);
        assert!(ends.mixed());
        assert!(!ends.cr_ends_lines());
    }

    #[test]
    fn lines_cover_the_text() {
        for text in ["", "a", "a\n", "\n", "a\r\nb", "a\rb\r", "\r\n\r\n", "x\n\ny"] {
            for cr_ends in [false, true] {
                let mut at = 0;
                for line in lines(text.as_bytes(), cr_ends) {
                    assert_eq!(line.start, at);
                    at = line.next();
                }
                assert_eq!(at, text.len(), "{text:?}");
                assert_eq!(
                    lines(text.as_bytes(), cr_ends).count(),
                    count(text.as_bytes(), cr_ends)
                );
            }
        }
    }

    #[test]
    fn offsets_and_numbers_agree() {
        let text = b"one\ntwo\r\nthree";
        assert_eq!(offset_of(text, 1, false), Some(0));
        assert_eq!(offset_of(text, 3, false), Some(9));
        assert_eq!(offset_of(text, 4, false), None);
        assert_eq!(offset_of(text, 0, false), None);
        assert_eq!(number_at(text, 9, false), 3);
        assert_eq!(number_at(b"a\rb", 2, true), 2);
    }
}
