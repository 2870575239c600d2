//! Where words start and end.
//!
//! As in readline there are two kinds: runs of letters and digits, and whatever stands between
//! blanks. An atom is a word of its own in both.
//!
//! **Invariant:** results are places where a cursor may stand. A search makes one pass over
//! characters, never over graphemes: backwards, those may look at the whole text each.
//!
//! **Does not know:** cursors, and what is done with a word.

use unicode_width::UnicodeWidthChar as _;

use super::buffer::Fragment;

/// What belongs to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Letters and digits, as for `backward-word` of readline.
    Alphanumeric,
    /// All but white space, as for `unix-word-rubout` of readline.
    NonBlank,
}

/// How a character stands to words.
enum Class {
    Within,
    /// It belongs to the character before it, as combining marks do.
    Joined,
    Outside,
}

impl Kind {
    fn class(self, c: char) -> Class {
        match self {
            Self::Alphanumeric if c.is_alphanumeric() => Class::Within,
            Self::NonBlank if !c.is_whitespace() => Class::Within,
            Self::Alphanumeric if c.width() == Some(0) => Class::Joined,
            _ => Class::Outside,
        }
    }
}

/// The start of the word that an offset is in or behind; 0 where there is none.
pub(super) fn start(text: &Fragment, from: usize, kind: Kind) -> usize {
    let (mut at, mut start) = (from, None);
    loop {
        if let Some(atom) = text.ending(at) {
            return start.map_or(atom.range.start, |start| text.floor(start));
        }
        let Some(c) = text.slice(0..at).chars().next_back() else { break };
        at -= c.len_utf8();
        match kind.class(c) {
            Class::Within => start = Some(at),
            Class::Outside if start.is_some() => break,
            Class::Joined | Class::Outside => {}
        }
    }
    text.floor(start.unwrap_or(0))
}

/// The end of the word that an offset is in or before; the end of the text where there is none.
pub(super) fn end(text: &Fragment, from: usize, kind: Kind) -> usize {
    let (mut at, mut is_within) = (from, false);
    loop {
        match text.starting(at) {
            Some(_) if is_within => break,
            Some(atom) => return atom.range.end,
            None => {}
        }
        let Some(c) = text.slice(at..text.len()).chars().next() else { break };
        match kind.class(c) {
            Class::Within => is_within = true,
            Class::Outside if is_within => break,
            Class::Joined | Class::Outside => {}
        }
        at += c.len_utf8();
    }
    text.ceil(at)
}
