//! Thinking that stands in the text, as `<think>...</think>` at its beginning.
//!
//! **Invariant:** opening, thinking, closing and the text behind them, joined, are the text as it
//! came. Tags anywhere else are text.

use std::mem;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// Begins the signature of such a part; the tags as they came follow.
const SIGNATURE: &str = "in-text:";
/// White space that may stand before the tag, in bytes.
const LEAD: usize = 64;

/// A piece of an answer's text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Words of the answer.
    Text(String),
    /// Words of the thinking.
    Thinking(String),
    /// The thinking has ended; this is the signature of its part.
    End(String),
}

/// Watches the text of an answer from its first byte.
#[derive(Debug)]
pub(crate) enum Think {
    /// Nothing but what may become the opening tag came so far.
    Beginning(String),
    /// Inside: the opening of the part, where one is open, and what may become the closing tag.
    Inside(Option<String>, String),
    /// Nothing more is looked for.
    Past,
}

impl Default for Think {
    fn default() -> Self {
        Self::Beginning(String::new())
    }
}

impl Think {
    /// Takes the next text.
    pub(crate) fn push(&mut self, text: String, out: &mut Vec<Piece>) {
        match self {
            Self::Past => push_some(out, Piece::Text, text),
            Self::Beginning(held) => {
                held.push_str(&text);
                let begun = held.trim_start();
                let lead = held.len() - begun.len();
                if lead > LEAD || !(begun.starts_with(OPEN) || OPEN.starts_with(begun)) {
                    let text = mem::take(held);
                    *self = Self::Past;
                    push_some(out, Piece::Text, text);
                } else if begun.starts_with(OPEN) {
                    let opening = held[..lead + OPEN.len()].to_owned();
                    let rest = held[opening.len()..].to_owned();
                    *self = Self::Inside(Some(opening), String::new());
                    self.push(rest, out);
                }
            }
            Self::Inside(..) if text.is_empty() => {}
            Self::Inside(opening, held) => {
                let opening = opening.get_or_insert_default();
                held.push_str(&text);
                if let Some(at) = held.find(CLOSE) {
                    let rest = held[at + CLOSE.len()..].to_owned();
                    held.truncate(at);
                    push_some(out, Piece::Thinking, mem::take(held));
                    out.push(Piece::End(format!("{SIGNATURE}{opening}{CLOSE}")));
                    *self = Self::Past;
                    push_some(out, Piece::Text, rest);
                    return;
                }
                let most = held.len().min(CLOSE.len() - 1);
                let tail = (0..=most).rev().find(|&n| held.ends_with(&CLOSE[..n])).unwrap_or(0);
                let tail = held.split_off(held.len() - tail);
                push_some(out, Piece::Thinking, mem::replace(held, tail));
            }
        }
    }

    /// Ends the part, because something else begins or the answer is over.
    pub(crate) fn end(&mut self, out: &mut Vec<Piece>) {
        match self {
            Self::Beginning(held) => {
                let text = mem::take(held);
                if !text.is_empty() {
                    *self = Self::Past;
                    out.push(Piece::Text(text));
                }
            }
            Self::Inside(opening, held) => {
                if let Some(opening) = opening.take() {
                    push_some(out, Piece::Thinking, mem::take(held));
                    out.push(Piece::End(format!("{SIGNATURE}{opening}")));
                }
            }
            Self::Past => {}
        }
    }
}

fn push_some(out: &mut Vec<Piece>, make: impl FnOnce(String) -> Piece, text: String) {
    if !text.is_empty() {
        out.push(make(text));
    }
}

/// The thinking with its tags, as it came; none where the signature is another one's.
pub(crate) fn as_it_came(text: &str, signature: &str) -> Option<String> {
    let tags = signature.strip_prefix(SIGNATURE)?;
    Some(match tags.strip_suffix(CLOSE) {
        Some(opening) => format!("{opening}{text}{CLOSE}"),
        None => format!("{tags}{text}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thinking and text, and both as they would go back.
    fn split(pieces: &[&str]) -> (String, String, String) {
        let (mut think, mut out) = (Think::default(), Vec::new());
        for piece in pieces {
            think.push((*piece).to_owned(), &mut out);
        }
        think.end(&mut out);
        let (mut thinking, mut text, mut back) = (String::new(), String::new(), String::new());
        for piece in out {
            match piece {
                Piece::Text(more) => text += &more,
                Piece::Thinking(more) => thinking += &more,
                Piece::End(signature) => back = as_it_came(&thinking, &signature).unwrap(),
            }
        }
        let back = back + &text;
        (thinking, text, back)
    }

    #[test]
    fn thinking_at_the_beginning_is_told_apart_wherever_it_is_cut() {
        let cases = [
            ("<think>a</think>b", "a", "b"),
            ("\n <think>\na < b\n</think>\n\nc", "\na < b\n", "\n\nc"),
            ("<think></think>", "", ""),
            ("<think>cut </thin", "cut </thin", ""),
            ("<thinking>a", "", "<thinking>a"),
            ("a <think>b</think>", "", "a <think>b</think>"),
            ("  <thi", "", "  <thi"),
            ("<think>a</think><think>b</think>", "a", "<think>b</think>"),
        ];
        for (whole, thinking, text) in cases {
            for at in (0..=whole.len()).filter(|at| whole.is_char_boundary(*at)) {
                let (head, tail) = whole.split_at(at);
                let expected = (thinking.to_owned(), text.to_owned(), whole.to_owned());
                assert_eq!(split(&[head, tail]), expected, "{whole:?} at {at}");
            }
            let each: Vec<&str> = whole.split("").collect();
            assert_eq!(split(&each).2, whole, "{whole:?}");
        }
        assert_eq!(as_it_came("a", "sig"), None);
    }
}
