//! The lines of a private key, from its start to its end, also across several texts.
//!
//! **Invariant:** only what looks like the lines of a key counts. In code that names the start line
//! of a key, nothing is taken for one.

use super::detect::{DetectedValue, Findings};

/// What a line of a key is called.
const NAME: &str = "PRIVATE_KEY";
/// Bytes that the first line of a key has at least, and any other.
const FIRST: usize = 40;
const OTHER: usize = 12;
/// Words of a head in front of the first one.
const HEAD: u8 = 16;

/// Where a text stands in a private key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Key {
    /// In none.
    #[default]
    None,
    /// Behind its begin, in front of its first line, with as many other words to come at most.
    Head(u8),
    /// In its lines.
    Lines,
}

impl Key {
    /// Begins a key where a text has the begin of one at this place; gives where its lines begin.
    pub fn begin(&mut self, text: &str, at: usize) -> Option<usize> {
        let line = &text[at..];
        let line = &line[..line.floor_char_boundary(80.min(line.len()))];
        let label = line.strip_prefix("-----BEGIN ")?;
        let end = label.find("-----")?;
        let label = &label[..end];
        let is_key = label.ends_with("PRIVATE KEY") || label.ends_with("PRIVATE KEY BLOCK");
        if !is_key {
            return None;
        }
        *self = Self::Head(HEAD);
        Some(at + "-----BEGIN ".len() + end + "-----".len())
    }

    /// Takes the lines of a key from a place on; gives where it ends.
    pub fn read(&mut self, text: &str, at: usize, to: &mut Findings) -> usize {
        let mut at = at;
        for line in text[at..].split_inclusive('\n') {
            if *self == Self::None {
                break;
            }
            let end = line.find("-----END");
            self.line(&line[..end.unwrap_or(line.len())], at, text.len(), to);
            at += end.unwrap_or(line.len());
            if end.is_some() {
                *self = Self::None;
            }
        }
        at
    }

    fn line(&mut self, line: &str, at: usize, text_end: usize, to: &mut Findings) {
        let is_body = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
        for (piece, place) in pieces(line) {
            let trimmed = piece.trim_end_matches(['"', '\'', ',', ';', '\\', '`']);
            if trimmed.bytes().all(|b| b.is_ascii_digit()) {
                // Nothing, or the number of a line.
                continue;
            }
            let body = trimmed.trim_end_matches(is_body).len();
            // Lines have whole groups of four: one more is the mark of a diff.
            let mark =
                usize::from((trimmed.len() - body) % 4 == 1 && trimmed[body..].starts_with('+'));
            let (start, len) = (at + place + body + mark, trimmed.len() - body - mark);
            let is_line = len >= if *self == Self::Lines { OTHER } else { FIRST };
            if is_line {
                if start + len == text_end {
                    to.open.get_or_insert(start);
                }
                to.found.push(DetectedValue { name: NAME.to_owned(), value: start..start + len });
            }
            *self = match *self {
                _ if is_line && len >= FIRST => Self::Lines,
                Self::Head(left) if left > 0 => Self::Head(left - 1),
                // A shorter line is the last one.
                _ => Self::None,
            };
            if *self == Self::None {
                return;
            }
        }
    }
}

/// The stretches of a line between blanks and escaped line ends, with where they begin.
fn pieces(line: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at > line.len() {
            return None;
        }
        let rest = &line[at..];
        let blank = rest.find(char::is_whitespace).map(|found| (found, 1));
        let escape = [rest.find("\\n"), rest.find("\\r")].into_iter().flatten().min();
        let (len, skip) = [blank, escape.map(|found| (found, 2))]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or((rest.len(), 1));
        let piece = (&rest[..len], at);
        // A blank may be longer than a byte.
        let skip = if skip == 1 { rest[len..].chars().next().map_or(1, char::len_utf8) } else { 2 };
        at += len + skip;
        Some(piece)
    })
}
