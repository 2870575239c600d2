//! Where the new text of an edit is already in the file, and whether that shows that the edit was
//! made.
//!
//! **Invariant:** every place is counted, and a bounded number is stored. Whether the old text is
//! anywhere is not decided here.

use std::collections::HashSet;
use std::ops::Range;

use super::view::View;
use crate::search;

/// Places that are kept.
const KEPT: usize = 64;
/// Places of an old text in its new one that are looked at.
const PARTS: usize = 16;

/// Places of a new text.
#[derive(Default)]
pub(super) struct Standing {
    /// The first ones.
    pub(super) spans: Vec<Range<usize>>,
    /// How many there are.
    pub(super) count: usize,
}

impl Standing {
    /// Finds a text where it is no part of longer words.
    pub(super) fn of(view: &View<'_>, new: &str) -> Self {
        let mut standing = Self::default();
        if new.trim().is_empty() {
            return standing;
        }
        let text = view.text();
        search::each(text.as_bytes(), new.as_bytes(), |start| {
            let stop = start + new.len();
            if is_part(text, &(start..stop)) {
                return;
            }
            standing.count += 1;
            if standing.spans.len() < KEPT {
                standing.spans.push(start..stop);
            }
        });
        standing
    }
}

/// Whether a stretch of a text begins or ends inside a word.
fn is_part(text: &str, span: &Range<usize>) -> bool {
    let word = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
    let (before, inside, after) = (&text[..span.start], &text[span.clone()], &text[span.end..]);
    let first = word(inside.chars().next()) && word(before.chars().next_back());
    first || (word(inside.chars().next_back()) && word(after.chars().next()))
}

/// Whether a new text is a part of the old one: it stands there before the edit as well as after it.
pub(super) fn is_rest(old: &str, new: &str) -> bool {
    old.contains(new.trim())
}

/// Whether less than half of the lines are in the text that an edit takes away; else the new text
/// was there before, and says nothing.
pub(super) fn taken_away(view: &View<'_>, old: &str, new: &str) -> bool {
    let kept: HashSet<&str> = new.split('\n').map(str::trim).collect();
    let taken = |line: &&str| !line.is_empty() && !kept.contains(line);
    let taken: HashSet<&str> = old.split('\n').map(str::trim).filter(taken).collect();
    let mut left = taken.clone();
    for line in view.text().split('\n') {
        left.remove(line.trim());
    }
    taken.len() == left.len() || (taken.len() - left.len()) * 2 < taken.len()
}

/// Where the new text begins that stands around a place of the old one, as after an edit that put
/// something in. Where that is blanks and signs alone, such as a bracket or a rule of dashes, it says
/// nothing: it may be wanted once more.
pub(super) fn around(view: &View<'_>, span: &Range<usize>, old: &str, new: &str) -> Option<usize> {
    if new.len() <= old.len() {
        return None;
    }
    let parts = search::text(new.as_bytes(), old.as_bytes(), PARTS).starts;
    parts.into_iter().find_map(|at| {
        let (head, tail) = (&new[..at], &new[at + old.len()..]);
        let start = span.start.checked_sub(at)?;
        let there = view.text().as_bytes().get(start..start + new.len())?;
        let says = [head, tail].iter().any(|part| part.contains(char::is_alphanumeric));
        let stands = says && there == new.as_bytes();
        (stands && !is_part(view.text(), &(start..start + new.len()))).then_some(start)
    })
}
