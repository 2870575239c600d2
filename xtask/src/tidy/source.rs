//! Rust taken apart just enough to search it: code on one side, string literals on the other.
//!
//! [`Source::code`] has the same length in bytes as the text, and the same line ends; comments and
//! the insides of literals are blanks in it, so that a search of the code finds code alone and an
//! offset means the same in both. It does not parse: it knows tokens, not grammar.

use std::ops::Range;

/// A Rust text, taken apart.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// The text with comments and insides of literals blanked; ASCII only.
    pub(super) code: String,
    /// Where the insides of the string literals are in the text, in order.
    pub(super) strings: Vec<Range<usize>>,
}

impl Source {
    /// Takes a text apart; never fails, whatever the text is.
    pub(super) fn of(text: &str) -> Self {
        let mut scan = Scan { text: text.as_bytes(), code: Vec::new(), strings: Vec::new(), at: 0 };
        scan.code.reserve(text.len());
        while scan.at < scan.text.len() {
            scan.step();
        }
        // Every byte written is ASCII.
        Self { code: String::from_utf8_lossy(&scan.code).into_owned(), strings: scan.strings }
    }

    /// The offsets at which a path like `std::fs` stands in the code, as a whole path or as the
    /// start of a longer one, be it written out or grouped in a `use`.
    pub(super) fn mentions(&self, path: &str) -> Vec<usize> {
        let mut found: Vec<usize> = occurrences(&self.code, path)
            .filter(|at| ends_there(&self.code, at + path.len()))
            .collect();
        let written_out = found.clone();
        for Used { statement, offset, path: used } in used_paths(&self.code) {
            let is_it =
                used == path || used.strip_prefix(path).is_some_and(|rest| rest.starts_with("::"));
            if is_it && !written_out.iter().any(|at| (statement..=offset).contains(at)) {
                found.push(offset);
            }
        }
        found.sort_unstable();
        found
    }

    /// The inside of the first string literal that starts within a range of the text.
    pub(super) fn string_in(&self, range: Range<usize>) -> Option<Range<usize>> {
        self.strings.iter().find(|string| range.contains(&string.start)).cloned()
    }
}

/// Whether a byte can be part of an identifier.
pub(super) fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

/// Where a word stands in code, not inside a longer word.
pub(super) fn occurrences<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let after = bytes.get(at + word.len()).is_some_and(|byte| is_word(*byte));
        let before = at.checked_sub(1).is_some_and(|at| is_word(bytes[at]));
        !before && !after
    })
}

/// Whether a path that ends here is not the name of a macro.
fn ends_there(code: &str, end: usize) -> bool {
    code.as_bytes().get(end) != Some(&b'!')
}

/// A path that a `use` brings in, written out.
struct Used {
    /// Where the `use` starts.
    statement: usize,
    /// Where the last part of the path stands.
    offset: usize,
    path: String,
}

/// Every path that a `use` brings in.
fn used_paths(code: &str) -> Vec<Used> {
    let mut paths = Vec::new();
    for start in occurrences(code, "use") {
        let end = code[start..].find(';').map_or(code.len(), |length| start + length);
        expand(&code[start + 3..end], start + 3, &mut paths);
    }
    paths
}

/// Writes out the groups of one `use`, without recursion: a stack of prefixes.
fn expand(tree: &str, base: usize, paths: &mut Vec<Used>) {
    let mut add = |offset: usize, path: &str| {
        paths.push(Used { statement: base - 3, offset, path: finish(path) });
    };
    let mut prefixes: Vec<String> = vec![String::new()];
    let mut path = String::new();
    let mut last = base;
    for (at, letter) in tree.char_indices() {
        match letter {
            '{' => {
                prefixes.push(path.clone());
            }
            ',' | '}' => {
                add(last, &path);
                if letter == '}' && prefixes.len() > 1 {
                    prefixes.pop();
                    path.clear();
                } else {
                    path = prefixes.last().cloned().unwrap_or_default();
                }
            }
            _ if letter.is_whitespace() => {
                if !path.is_empty() && !path.ends_with([' ', ':']) {
                    path.push(' ');
                }
            }
            _ => {
                if path.is_empty() || path.ends_with(':') || path.ends_with(' ') {
                    last = base + at;
                }
                path.push(letter);
            }
        }
    }
    add(last, &path);
}

/// A path without its `as NAME` and without a closing `self`.
fn finish(path: &str) -> String {
    let path = path.split(' ').next().unwrap_or_default();
    path.strip_suffix("::self").unwrap_or(path).trim_start_matches("::").to_owned()
}

struct Scan<'a> {
    text: &'a [u8],
    code: Vec<u8>,
    strings: Vec<Range<usize>>,
    at: usize,
}

impl Scan<'_> {
    fn step(&mut self) {
        let rest = &self.text[self.at..];
        let joined = self.at > 0 && is_word(self.text[self.at - 1]);
        if rest.starts_with(b"//") {
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            self.blank(length);
        } else if rest.starts_with(b"/*") {
            self.blank(block_comment(rest));
        } else if rest[0] == b'"' {
            self.string(1, 0, false);
        } else if let Some((open, hashes)) = raw_string(rest).filter(|_| !joined) {
            self.string(open, hashes, true);
        } else if let Some(length) = char_literal(rest) {
            self.blank(length);
        } else {
            self.keep();
        }
    }

    fn keep(&mut self) {
        let byte = self.text[self.at];
        self.code.push(if byte.is_ascii() { byte } else { b'_' });
        self.at += 1;
    }

    fn blank(&mut self, length: usize) {
        let end = (self.at + length).min(self.text.len());
        for byte in &self.text[self.at..end] {
            self.code.push(if *byte == b'\n' { b'\n' } else { b' ' });
        }
        self.at = end;
    }

    /// Takes a string literal whose opening is `open` bytes long.
    fn string(&mut self, open: usize, hashes: usize, raw: bool) {
        (0..open).for_each(|_| self.keep());
        let inside = &self.text[self.at..];
        let mut length = 0;
        while length < inside.len() {
            match inside[length] {
                b'\\' if !raw => length += 2,
                b'"' if closes(&inside[length + 1..], hashes) => break,
                _ => length += 1,
            }
        }
        let length = length.min(inside.len());
        self.strings.push(self.at..self.at + length);
        self.blank(length);
        let close = (1 + hashes).min(self.text.len() - self.at);
        (0..close).for_each(|_| self.keep());
    }
}

fn closes(after: &[u8], hashes: usize) -> bool {
    after.len() >= hashes && after[..hashes].iter().all(|byte| *byte == b'#')
}

/// The length of a block comment, those inside it counted.
fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (2, 1);
    while at < rest.len() && depth > 0 {
        if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
        } else if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else {
            at += 1;
        }
    }
    at
}

/// The length of the opening of a raw string and its number of hashes.
fn raw_string(rest: &[u8]) -> Option<(usize, usize)> {
    let start = [&b"br"[..], b"cr", b"r"].iter().find(|start| rest.starts_with(start))?.len();
    let hashes = rest[start..].iter().take_while(|byte| **byte == b'#').count();
    (rest.get(start + hashes) == Some(&b'"')).then_some((start + hashes + 1, hashes))
}

/// The length of a character literal; `None` for a lifetime.
fn char_literal(rest: &[u8]) -> Option<usize> {
    if rest[0] != b'\'' {
        return None;
    }
    let inside = match rest.get(1)? {
        b'\\' => {
            let length = rest.iter().skip(3).take(12).position(|byte| *byte == b'\'')?;
            return Some(length + 4);
        }
        byte if byte.is_ascii() => 1,
        byte => byte.leading_ones() as usize,
    };
    (rest.get(1 + inside) == Some(&b'\'')).then_some(inside + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blank_and_offsets_stay() {
        let text =
            "a /* x /* y */ */ b // z\nlet s = \"std::fs\\\"\"; let c = '\"'; r#\"q\"w\"# 'l é";
        let source = Source::of(text);
        assert_eq!(source.code.len(), text.len());
        assert!(source.code.is_ascii());
        assert!(!source.code.contains("std"), "{}", source.code);
        assert!(!source.code.contains('z') && !source.code.contains('y'));
        let inside: Vec<_> = source.strings.iter().map(|range| &text[range.clone()]).collect();
        assert_eq!(inside, ["std::fs\\\"", "q\"w"]);
        assert!(source.code.contains("'l"));
    }

    #[test]
    fn unfinished_text_is_taken_as_it_is() {
        for text in ["\"abc\\", "r##\"abc\"#", "/* abc", "'", "'\\", "b\"", "é\"é"] {
            assert_eq!(Source::of(text).code.len(), text.len(), "{text:?}");
        }
    }

    #[test]
    fn groups_of_a_use_are_written_out() {
        let code = "use std::{fmt, env::{self, var as read}, io::Write as _};\nuse a::b;";
        let paths: Vec<_> = used_paths(code).into_iter().map(|used| used.path).collect();
        for path in ["std::fmt", "std::env", "std::env::var", "std::io::Write", "a::b"] {
            assert!(paths.iter().any(|found| found == path), "{path} in {paths:?}");
        }
    }

    #[test]
    fn a_path_is_found_written_out_and_grouped_but_not_in_longer_words() {
        let source =
            Source::of("use std::{fmt, fs};\nstd::fs::read(x);\nmystd::fs; std::fsx; // std::fs");
        assert_eq!(source.mentions("std::fs"), [15, 20]);
        assert_eq!(Source::of("std::env!(x)").mentions("std::env"), Vec::<usize>::new());
    }
}
