//! Changes that can be taken back and made again.
//!
//! A change is what to put in the place of a range. Taking it back gives the change that makes it
//! again, so only what is not in the text is held.
//!
//! **Invariant:** the last change applies to the text as it is. There are at most [`MOST_CHANGES`]
//! changes, and those to take back hold at most [`MOST_BYTES`], except that the last one is always
//! kept.
//!
//! **Does not know:** the text, and when changes belong together.

use std::{collections::VecDeque, ops::Range};

use super::buffer::Fragment;

/// The most changes that can be taken back.
pub const MOST_CHANGES: usize = 1_000;

/// The most bytes that changes to take back hold.
pub const MOST_BYTES: usize = 64 << 20;

/// The longest piece of text that deletions of single graphemes join to.
const LONGEST_JOINED: usize = 4 << 10;

/// What to do to a text.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// The range that is replaced.
    pub(super) range: Range<usize>,
    /// What is put there.
    pub(super) put: Fragment,
    /// Where the cursor was before the original change.
    pub(super) before: usize,
    /// Where the cursor was after the original change.
    pub(super) after: usize,
    /// Whether `put` is a draft that made room for an earlier text.
    pub(super) is_draft: bool,
}

impl Change {
    /// The change that undoes this one, which takes a text out.
    fn inverse(self, removed: Fragment) -> Self {
        let range = self.range.start..self.range.start + self.put.len();
        Self { range, put: removed, ..self }
    }
}

/// How a change goes on from the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    /// It stands alone.
    Never,
    /// Text was added behind text.
    Typed,
    /// Text was removed before a place.
    Back,
    /// Text was removed behind a place.
    Forward,
}

/// All changes to take back and to make again.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    done: VecDeque<Change>,
    undone: Vec<Change>,
}

impl Undo {
    /// Adds a change that takes back what was just done. What could be made again no longer can.
    pub(super) fn push(&mut self, change: Change, join: Join) {
        self.undone.clear();
        let Some(change) = self.join(change, join) else { return };
        self.done.push_back(change);
        let mut bytes: usize = self.done.iter().map(|change| change.put.weight()).sum();
        while self.done.len() > 1 && (self.done.len() > MOST_CHANGES || bytes > MOST_BYTES) {
            bytes -= self.done.pop_front().map_or(0, |change| change.put.weight());
        }
    }

    /// Adds a change to the last one, or gives it back.
    fn join(&mut self, change: Change, join: Join) -> Option<Change> {
        let Some(last) = self.done.back_mut() else { return Some(change) };
        let are_deletions = last.range.is_empty() && change.range.is_empty();
        let fits = last.put.len() + change.put.len() <= LONGEST_JOINED;
        match join {
            Join::Typed if last.range.end == change.range.start && change.put.is_empty() => {
                last.range.end = change.range.end;
            }
            Join::Back
                if are_deletions
                    && fits
                    && last.range.start == change.range.start + change.put.len() =>
            {
                let mut put = change.put;
                put.push(&last.put);
                (last.put, last.range) = (put, change.range);
            }
            Join::Forward if are_deletions && fits && last.range == change.range => {
                last.put.push(&change.put);
            }
            _ => return Some(change),
        }
        last.after = change.after;
        None
    }

    /// Takes the last change back by a function that replaces a range and returns what was there.
    /// Returns where the cursor belongs.
    pub(super) fn undo(
        &mut self,
        splice: impl FnOnce(Range<usize>, &Fragment) -> Fragment,
    ) -> Option<usize> {
        let change = self.done.pop_back()?;
        let (removed, cursor) = (splice(change.range.clone(), &change.put), change.before);
        self.undone.push(change.inverse(removed));
        Some(cursor)
    }

    /// Makes the change again that was taken back last. Returns where the cursor belongs.
    pub(super) fn redo(
        &mut self,
        splice: impl FnOnce(Range<usize>, &Fragment) -> Fragment,
    ) -> Option<usize> {
        let change = self.undone.pop()?;
        let (removed, cursor) = (splice(change.range.clone(), &change.put), change.after);
        self.done.push_back(change.inverse(removed));
        Some(cursor)
    }

    /// Adds the change that gives a draft back. Returns what could be made again on the draft.
    pub(super) fn leave_draft(&mut self, change: Change) -> Vec<Change> {
        let undone = std::mem::take(&mut self.undone);
        self.push(change, Join::Never);
        undone
    }

    /// Says that the text in the place of the draft has another length now.
    pub(super) fn replace_shown(&mut self, length: usize, after: usize) {
        if let Some(last) = self.done.back_mut() {
            (last.range, last.after) = (0..length, after);
        }
    }

    /// Takes out the change that gives the draft back, and sets what can be made again on it.
    pub(super) fn return_to_draft(&mut self, undone: Vec<Change>) -> Option<Change> {
        self.undone = undone;
        self.done.pop_back()
    }

    /// Drafts that were left and not given back, oldest first.
    pub(super) fn drafts(&self) -> impl Iterator<Item = &Fragment> {
        let drafts = self.done.iter().filter(|change| change.is_draft && !change.put.is_empty());
        drafts.map(|change| &change.put)
    }
}
