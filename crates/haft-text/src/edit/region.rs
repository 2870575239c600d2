//! What is shown of the lines that an old text stands for.
//!
//! Invariant: it is all of them, each as a whole, or said to be a part. What is shown is bounded by
//! the length of the old text, and by [`LINES`] and [`MOST`] whatever that is.

use super::{
    align::{self, Pair},
    closest::clip,
    error::{Difference, Nearest},
};
use crate::{lines, names};

/// Lines that are shown whole.
const LINES: usize = 100;
/// Bytes that are shown whole, however short the old text is.
const LEAST: usize = 1_000;
/// Bytes that are shown whole, however long the old text is.
const MOST: usize = 16_000;
/// Lines of a part.
const PART: usize = 10;
/// Characters of a line in a part.
const WIDTH: usize = 200;
/// Pieces of a long old text that are compared for where it ends.
const PIECES: usize = 8;

/// Lines of a text, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) first: usize,
    /// The last one; none where that is not known.
    pub(super) last: Option<usize>,
}

/// Where a part is shown: a line, from 0, and the character of it, from 1.
#[derive(Clone, Copy)]
pub(super) struct Focus {
    pub(super) line: usize,
    pub(super) column: Option<usize>,
}

/// The last line of a text that stands for one of an old text, whose lines up to some are compared,
/// the last of them with the line `at`; `rest` follows. None where that is too far to tell.
pub(super) fn last(text: &str, mut at: usize, mut rest: &[&str]) -> Option<usize> {
    for _ in 0..PIECES {
        if rest.is_empty() {
            return Some(at);
        }
        let file: Vec<&str> = from(text, at + 1).take(align::FILE).collect();
        let same = rest.iter().zip(&file).take_while(|(old, file)| old == file).count();
        if same > 0 {
            (at, rest) = (at + same, &rest[same..]);
            continue;
        }
        let (piece, after) = rest.split_at(rest.len().min(align::OLD));
        let [old, there] = [piece, &file].map(|all| all.iter().map(|line| clip(line)).collect());
        let (old, there): (Vec<&str>, Vec<&str>) = (old, there);
        let pairs = align::align(&old, &there, true);
        let paired = |pair: &Pair| if let Pair::Both(_, file) = pair { Some(*file) } else { None };
        at += pairs.iter().rev().find_map(paired)? + 1;
        rest = after;
    }
    rest.is_empty().then_some(at)
}

/// The lines of a text from one on, from 0.
fn from(text: &str, line: usize) -> impl Iterator<Item = &str> {
    let start = lines::offset_of(text.as_bytes(), line + 1, false).unwrap_or(text.len());
    text[start..].split('\n')
}

/// Shows the region, all of it where an old text of so many bytes calls for that; what differs is
/// known by the lines of the text, from 0.
pub(super) fn shown(
    text: &str,
    region: Region,
    length: usize,
    focus: Focus,
    (mut differences, more): (Vec<Difference>, usize),
) -> Nearest {
    for one in &mut differences {
        one.line += 1;
    }
    let budget = length.saturating_mul(2).clamp(LEAST, MOST);
    if let Some(last) = region.last {
        let count = last + 1 - region.first;
        let lines: Vec<&str> = from(text, region.first).take(count.min(LINES + 1)).collect();
        if lines.len() <= LINES && lines.iter().map(|line| line.len() + 1).sum::<usize>() <= budget
        {
            let lines = lines.into_iter().map(|line| names::shown_line(line, usize::MAX)).collect();
            return Nearest {
                first_line: region.first + 1,
                lines,
                part_of: None,
                differences,
                more,
            };
        }
    }
    let last = region.last.unwrap_or(usize::MAX);
    let start = focus.line.saturating_sub(3).clamp(region.first.min(focus.line), last);
    let count = (last - start).saturating_add(1).min(PART);
    let column = |line: usize| focus.column.filter(|_| line == focus.line);
    let lines = from(text, start).take(count).zip(start..);
    let lines = lines.map(|(line, number)| around(line, column(number))).collect();
    let part_of = Some((region.first + 1, region.last.map(|last| last + 1)));
    Nearest { first_line: start + 1, lines, part_of, differences, more }
}

/// A line as it is shown in a part, from near a column on where that would be cut off.
fn around(line: &str, column: Option<usize>) -> String {
    let before = column.unwrap_or(1).saturating_sub(WIDTH / 2);
    if before <= WIDTH / 4 {
        return names::shown_line(line, WIDTH);
    }
    let from = line.char_indices().nth(before).map_or(line.len(), |(at, _)| at);
    format!("[from column {}] {}", before + 1, names::shown_line(&line[from..], WIDTH))
}
