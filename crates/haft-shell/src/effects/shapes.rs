//! Words as far as they are known, with marks for the rest.
//!
//! **Invariant:** a word is one of its shapes, where each mark stands for one of the texts that it
//! is said to stand for; a character that is a mark in the script itself counts as one.

use std::rc::Rc;

use super::state::Value;
use crate::Piece;

/// Any text.
pub const ANY: char = '\u{1}';
/// Any text without a slash, which at the start of a name begins with no dot.
pub const SOME: char = '\u{2}';
/// One character of that kind.
pub const ONE: char = '\u{3}';
/// Any text that a pattern finds, also in folders below.
pub const FOUND: char = '\u{4}';

/// The most that a word is held to be.
const MOST: usize = 16;

/// What a word may be, piece by piece.
pub(crate) struct Shapes(Vec<String>);

impl Default for Shapes {
    fn default() -> Self {
        Self(vec![String::new()])
    }
}

impl Shapes {
    /// Goes on with a piece that has this value. Whose home a tilde with a name means is not known: it may
    /// be this one.
    pub(crate) fn add(&mut self, piece: &Piece, value: &Value, home: Option<&str>) {
        let next = match piece {
            Piece::Tilde(user) if user.starts_with(|c: char| c.is_alphanumeric() || c == '_') => {
                home.map(str::to_owned).into_iter().chain([ANY.to_string()]).collect()
            }
            Piece::Text { text, quoted: false } => vec![pattern(text)],
            Piece::Text { text, .. } => vec![text.clone()],
            Piece::Variable { quoted: false, .. }
            | Piece::Expansion { quoted: false, .. }
            | Piece::Output { quoted: false, .. } => {
                let mut all = match value {
                    // With blanks in a name it is several words.
                    Value::Files(start, _) => vec![format!("{start}{FOUND}")],
                    _ => of_value(value),
                };
                if matches!(value, Value::Texts(_)) {
                    let words = all.iter().flat_map(|text| text.split([' ', '\t', '\n']));
                    all = words.filter(|word| !word.is_empty()).map(pattern).collect();
                    all.extend(all.is_empty().then(String::new));
                }
                all
            }
            _ => of_value(value),
        };
        let next = if self.0.len() * next.len() > MOST { vec![ANY.to_string()] } else { next };
        let join =
            |start: &String| next.iter().map(|end| format!("{start}{end}")).collect::<Vec<_>>();
        self.0 = self.0.iter().flat_map(join).collect();
    }

    pub(crate) fn all(self) -> Rc<[String]> {
        self.0.into()
    }
}

/// What a value may be; of numbers that no name is meant is enough.
pub(crate) fn of_value(value: &Value) -> Vec<String> {
    match value {
        Value::Texts(texts) => texts.to_vec(),
        Value::Number | Value::Count | Value::Hash => vec!["0".to_owned()],
        Value::Files(start, Some(end)) => vec![format!("{start}{SOME}{end}")],
        Value::Files(start, None) => vec![format!("{start}{FOUND}")],
        Value::From(start) => vec![format!("{start}{ANY}")],
    }
}

/// A text in which `*`, `?` and classes stand for other texts.
fn pattern(text: &str) -> String {
    let mut shape = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '*' if shape.ends_with(SOME) => {
                shape.pop();
                shape.push(FOUND);
            }
            '*' => shape.push(SOME),
            '?' => shape.push(ONE),
            '[' => match class(rest.as_str()) {
                Some(length) => {
                    shape.push(ONE);
                    rest = rest.as_str()[length..].chars();
                }
                None => shape.push(c),
            },
            c => shape.push(c),
        }
    }
    shape
}

/// The length of what stands behind `[`, with the bracket that closes it.
fn class(text: &str) -> Option<usize> {
    let skipped = text.len() - text.trim_start_matches(['!', '^']).len();
    let first = text[skipped..].chars().next().map_or(0, char::len_utf8);
    let from = skipped + first;
    let end = from + text[from..].find(']')?;
    (!text[..end].contains('/')).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_marked_where_they_stand() {
        for (text, shape) in [
            ("src/a", "src/a"),
            ("s*/b", "s\u{2}/b"),
            ("**/a?", "\u{4}/a\u{3}"),
            ("sr[c]/x", "sr\u{3}/x"),
            ("[!]a]b", "\u{3}b"),
            ("a[b", "a[b"),
            ("a[b/c]", "a[b/c]"),
        ] {
            assert_eq!(pattern(text), shape, "{text}");
        }
    }
}
