//! Where a script may be cut into scripts that run one after the other.
//!
//! A shell reads line by line: where a line ends and nothing is open, what follows is read afresh.
//! The grammar follows several readings of a text at once and drops some where it is long; of short
//! texts it drops none.
//!
//! **Invariant:** a cut is a guess, and only that: what stands before it has to be a whole script for
//! the grammar, too, or there is no cut.

use std::{collections::VecDeque, ops::Range};

/// What is open at the end of a line.
#[derive(Default)]
struct Open<'a> {
    quote: Option<char>,
    /// Whether a backslash in the quotes takes what is special from the next character.
    escapes: bool,
    parentheses: usize,
    /// Constructs of words: `if`, `case`, loops and groups.
    words: usize,
    /// Here-documents: how they end, and whether tabs may stand before that.
    ends: VecDeque<(&'a str, bool)>,
    /// The line goes on in the next one.
    goes_on: bool,
    /// A command has to follow.
    waits: bool,
}

/// The lines of a text that belong together, with their line ends.
pub(crate) fn pieces(text: &str) -> Vec<Range<usize>> {
    let (mut all, mut start, mut at) = (Vec::new(), 0, 0);
    let mut open = Open::default();
    for line in text.split_inclusive('\n') {
        at += line.len();
        open.line(line.strip_suffix('\n').unwrap_or(line));
        if open.is_whole() {
            all.push(start..at);
            start = at;
        }
    }
    if start < at {
        all.push(start..at);
    }
    all
}

impl<'a> Open<'a> {
    fn is_whole(&self) -> bool {
        let is_nested = self.parentheses > 0 || self.words > 0;
        self.quote.is_none() && !is_nested && self.ends.is_empty() && !self.goes_on && !self.waits
    }

    fn line(&mut self, line: &'a str) {
        if self.quote.is_none()
            && !self.goes_on
            && let Some((end, tabs)) = self.ends.front()
        {
            let bare = if *tabs { line.trim_start_matches('\t') } else { line };
            if bare == *end {
                self.ends.pop_front();
            }
            return;
        }
        let code = self.code(line);
        let end = code.trim_end_matches([' ', '\t']);
        self.waits = ["|", "&&", "|&", "()"].iter().any(|waits| end.ends_with(waits));
        self.goes_on = self.quote.is_none() && is_escaped(code);
    }

    /// Takes in a line; gives it without its comment.
    fn code(&mut self, line: &'a str) -> &'a str {
        let bytes = line.as_bytes();
        let (mut at, mut is_first) = (0, !self.goes_on);
        while let Some(&c) = bytes.get(at) {
            if let Some(quote) = self.quote {
                match char::from(c) {
                    '\\' if self.escapes => at += 1,
                    c if c == quote => self.quote = None,
                    _ => {}
                }
                at += 1;
                continue;
            }
            let starts = at == 0 || b" \t;&|()<>".contains(&bytes[at - 1]);
            match c {
                b'\\' => at += 1,
                b'\'' | b'"' | b'`' => {
                    self.quote = Some(char::from(c));
                    self.escapes = c != b'\'' || at > 0 && bytes[at - 1] == b'$';
                }
                b'#' if starts => return &line[..at],
                b'(' => (self.parentheses, is_first) = (self.parentheses + 1, true),
                b')' => (self.parentheses, is_first) = (self.parentheses.saturating_sub(1), true),
                b';' | b'&' | b'|' => is_first = true,
                b'<' if bytes[at..].starts_with(b"<<<") => at += 2,
                b'<' if bytes[at..].starts_with(b"<<") => self.heredoc(&line[at + 2..]),
                b' ' | b'\t' | b'<' | b'>' => {}
                _ if starts && is_first => {
                    let end = |c: &u8| b" \t;&|()<>\"'`\\$".contains(c);
                    let length = bytes[at..].iter().position(end).unwrap_or(bytes.len() - at);
                    is_first = self.word(&line[at..at + length]);
                    at += length.max(1) - 1;
                }
                _ => {}
            }
            at += 1;
        }
        line
    }

    /// A word where a command may begin; whether one may begin behind it, too.
    fn word(&mut self, word: &str) -> bool {
        match word {
            "if" | "while" | "until" | "{" => self.words += 1,
            "for" | "select" | "case" => {
                self.words += 1;
                return false;
            }
            "fi" | "done" | "esac" | "}" => {
                self.words = self.words.saturating_sub(1);
                return false;
            }
            "then" | "do" | "else" | "elif" | "!" | "time" => {}
            _ => return false,
        }
        true
    }

    /// Notes how a here-document ends, given what stands behind `<<`.
    fn heredoc(&mut self, rest: &'a str) {
        let (rest, tabs) = rest.strip_prefix('-').map_or((rest, false), |rest| (rest, true));
        let rest = rest.trim_start_matches([' ', '\t', '\'', '"', '\\']);
        let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        // Of two numbers the shell takes one as bits.
        if end > 0 && !rest.starts_with(|c: char| c.is_ascii_digit()) {
            self.ends.push_back((&rest[..end], tabs));
        }
    }
}

/// Whether a text ends in a backslash that takes away the line end behind it.
fn is_escaped(text: &str) -> bool {
    (text.len() - text.trim_end_matches('\\').len()) % 2 == 1
}
