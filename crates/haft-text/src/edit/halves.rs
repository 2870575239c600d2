//! Carriage returns at the end of an old or a new text that are one half of a line end.
//!
//! Invariant: a line end of the file is never parted. A carriage return that the file has as a
//! character stays one; where a text ends is decided by both texts together, or not at all.

use std::ops::Range;

use super::error::{EditError, Half};
use super::view::View;
use crate::lines::LineEnd;
use crate::search::{self, Places};

/// Both texts without the carriage returns at their ends, and where the old one is.
pub(super) struct Whole {
    pub(super) old: String,
    pub(super) new: String,
    pub(super) places: Places,
}

/// Takes one half of a line end off both texts, where the file has a line feed behind the old one.
/// None where it ends in no carriage return, or in one that is a character.
pub(super) fn taken_off(
    view: &View<'_>,
    edit: usize,
    (old, new): (&str, &str),
    keep: usize,
) -> Result<Option<Whole>, EditError> {
    let Some(bare) = old.strip_suffix('\r') else { return Ok(None) };
    let (places, at) = places(view, bare, keep);
    let Some(at) = at else { return Ok(None) };
    match new.strip_suffix('\r') {
        Some(fresh) if !bare.is_empty() => {
            Ok(Some(Whole { old: bare.into(), new: fresh.into(), places }))
        }
        _ => {
            let half = if bare.is_empty() { Half::All } else { Half::Old };
            Err(EditError::HalfEnd { edit, line: view.number(at), half })
        }
    }
}

/// Where a text stands before a carriage return of either kind, and the first place where that is
/// one half of a line end. Where there is none, one with LF alone counts: it is a line end as well.
fn places(view: &View<'_>, bare: &str, keep: usize) -> (Places, Option<usize>) {
    let text = view.text().as_bytes();
    let (mut places, mut plain) = (Places::default(), Places::default());
    search::each(text, format!("{bare}\n").as_bytes(), |start| {
        let end = view.end_at(start + bare.len());
        let of = if end == LineEnd::Crlf { &mut places } else { &mut plain };
        of.push(start, keep);
    });
    let half = places.starts.first().copied();
    search::each(text, format!("{bare}\r").as_bytes(), |start| places.push(start, keep));
    if places.count == 0 {
        let half = plain.starts.first().copied();
        return (plain, half);
    }
    places.starts.sort_unstable();
    (places, half)
}

/// Both texts without the carriage returns at their ends, where both end so.
pub(super) fn of_both<'t>(old: &'t str, new: &'t str) -> Option<(&'t str, &'t str)> {
    Some((old.strip_suffix('\r')?, new.strip_suffix('\r')?))
}

/// Whether the file has a carriage return behind an offset of the text, or a line end.
pub(super) fn follows(view: &View<'_>, offset: usize) -> bool {
    matches!(view.original().as_bytes().get(offset), Some(b'\n' | b'\r'))
}

/// Refuses a text with which a carriage return would become one half of a line end: its last one
/// before the end behind it, or one of the file before a line end that it begins with. `range` is
/// what it replaces.
pub(super) fn adds_none(
    view: &View<'_>,
    edit: usize,
    range: &Range<usize>,
    text: &str,
) -> Result<(), EditError> {
    if view.cr_ends_lines() {
        return Ok(());
    }
    let original = view.original();
    let (before, there, after) =
        (&original[..range.start], &original[range.clone()], &original[range.end..]);
    let refused = |at: usize, half: Half| {
        Err(EditError::HalfEnd { edit, line: view.number_in_original(at), half })
    };
    let ends = after.starts_with('\n') || after.starts_with("\r\n");
    if text.ends_with('\r') && !there.ends_with('\r') && ends {
        return refused(range.end, Half::New);
    }
    let begins = text.starts_with('\n') || (text.is_empty() && after.starts_with('\n'));
    if before.ends_with('\r') && begins {
        return refused(range.start, Half::Before);
    }
    Ok(())
}
