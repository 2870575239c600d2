//! The last texts that were killed, to be yanked.
//!
//! **Invariant:** at most [`MOST_KILLS`] texts of at most [`MOST_BYTES`] together, except that the
//! last one is always kept.
//!
//! **Does not know:** the text that they come from, and which action was the last one.

use std::collections::VecDeque;

use super::buffer::Fragment;

/// The most texts.
pub const MOST_KILLS: usize = 16;

/// The most bytes of all texts.
const MOST_BYTES: usize = 32 << 20;

/// Where a killed text stood relative to the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    Behind,
}

/// Killed texts, and which of them is next.
#[derive(Clone, Debug, Default)]
pub(super) struct Kills {
    /// Oldest first.
    texts: VecDeque<Fragment>,
    /// Steps from the newest text to the one to be yanked.
    back: usize,
}

impl Kills {
    /// Adds a text, or joins it to the last one where its kill directly follows that one.
    pub(super) fn push(&mut self, text: Fragment, side: Side, follows: bool) {
        self.back = 0;
        match self.texts.back_mut() {
            Some(last) if follows && side == Side::Behind => last.push(&text),
            Some(last) if follows => {
                let behind = std::mem::replace(last, text);
                last.push(&behind);
            }
            _ => self.texts.push_back(text),
        }
        let mut bytes: usize = self.texts.iter().map(Fragment::weight).sum();
        while self.texts.len() > 1 && (self.texts.len() > MOST_KILLS || bytes > MOST_BYTES) {
            bytes -= self.texts.pop_front().map_or(0, |text| text.weight());
        }
    }

    /// The text to be yanked.
    pub(super) fn current(&self) -> Option<&Fragment> {
        let newest = self.texts.len().checked_sub(1)?;
        self.texts.get(newest.checked_sub(self.back)?)
    }

    /// Makes the next older text the one to be yanked; behind the oldest comes the newest.
    pub(super) fn rotate(&mut self) {
        self.back = if self.back + 1 < self.texts.len() { self.back + 1 } else { 0 };
    }
}
