//! Texts that were submitted earlier, and the search in them.
//!
//! **Invariant:** at most [`MOST_TEXTS`] texts of at most [`MOST_BYTES`] together; none is blank,
//! none equals its neighbour, none holds a hidden character.
//!
//! **Does not know:** where texts are stored, and what is typed at the moment.

use std::{collections::VecDeque, ops::Range};

use super::{MOST_TEXT, paste::clean};

/// The most texts.
pub const MOST_TEXTS: usize = 10_000;

/// The most bytes of all texts.
pub const MOST_BYTES: usize = 64 << 20;

/// Texts that were submitted earlier, in this session and others.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Oldest first.
    texts: VecDeque<String>,
    bytes: usize,
}

impl History {
    /// Takes texts, newest last.
    ///
    /// Blank texts, texts equal to the one before them, and those over [`MOST_TEXT`] are left out.
    /// Hidden characters are removed. Of too many texts the newest stay.
    pub fn new(texts: Vec<String>) -> Self {
        let mut history = Self::default();
        let first = texts.len().saturating_sub(MOST_TEXTS);
        for text in texts.into_iter().skip(first) {
            history.push(clean(&text).0);
        }
        history
    }

    /// Adds the newest text, which is clean.
    pub(super) fn push(&mut self, text: String) {
        let is_blank = text.chars().all(char::is_whitespace);
        if is_blank || text.len() > MOST_TEXT || self.texts.back() == Some(&text) {
            return;
        }
        self.bytes += text.len();
        self.texts.push_back(text);
        while self.texts.len() > MOST_TEXTS || self.bytes > MOST_BYTES {
            self.bytes -= self.texts.pop_front().map_or(0, |text| text.len());
        }
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// A text by its index; 0 is the oldest.
    pub fn get(&self, index: usize) -> Option<&str> {
        self.texts.get(index).map(String::as_str)
    }

    /// All texts, oldest first.
    pub fn texts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }

    /// The newest text before an index that matches and is not a given one, and where it does.
    pub(super) fn older(
        &self,
        query: &Query,
        before: usize,
        than: Option<&str>,
    ) -> Option<(usize, Range<usize>)> {
        let all = self.texts.iter().enumerate().take(before).rev();
        all.filter(|(_, text)| Some(text.as_str()) != than)
            .find_map(|(index, text)| Some((index, query.find(text)?)))
    }

    /// The oldest text behind an index that matches and is not a given one, and where it does.
    pub(super) fn newer(
        &self,
        query: &Query,
        behind: usize,
        than: Option<&str>,
    ) -> Option<(usize, Range<usize>)> {
        let all = self.texts.iter().enumerate().skip(behind.saturating_add(1));
        all.filter(|(_, text)| Some(text.as_str()) != than)
            .find_map(|(index, text)| Some((index, query.find(text)?)))
    }
}

/// What is looked for: a part of a text, without regard to case unless it has an upper-case letter.
#[derive(Clone, Debug)]
pub(super) struct Query {
    text: String,
    is_exact: bool,
}

impl Query {
    pub(super) fn new(text: &str) -> Self {
        let is_exact = text.chars().any(char::is_uppercase);
        Self { text: if is_exact { text.to_owned() } else { lower(text) }, is_exact }
    }

    /// The first match in a text, in bytes of it.
    pub(super) fn find(&self, text: &str) -> Option<Range<usize>> {
        if self.is_exact {
            let start = text.find(&self.text)?;
            return Some(start..start + self.text.len());
        }
        let start = lower(text).find(&self.text)?;
        let end = start + self.text.len();
        // Lower case may take more bytes or fewer, so both ends are looked up in the original.
        let (mut at, mut range) = (0, None);
        for (original, c) in text.char_indices() {
            let next = at + c.to_lowercase().map(char::len_utf8).sum::<usize>();
            if range.is_none() && next > start {
                range = Some(original..original);
            }
            if let Some(range) = &mut range
                && at < end
            {
                range.end = original + c.len_utf8();
            }
            if next >= end {
                break;
            }
            at = next;
        }
        range
    }
}

/// Each character in lower case, whatever stands around it.
fn lower(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}
