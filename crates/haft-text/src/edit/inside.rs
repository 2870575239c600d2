//! Which part of a line an old text stands for that begins or ends inside of it.
//!
//! Invariant: the ranges that are given are at boundaries of characters. The work is that of a table
//! of two short lines; in longer ones a few pieces are looked for.

use std::ops::Range;

use memchr::memmem;

use super::nearest::clip;
use crate::cut;

/// Pieces of an old line that are looked for in longer lines.
const PIECES: usize = 8;
/// Lines of the old text of which the longest is looked for inside of lines.
const LINES: usize = 16;

/// Finds the part of a file's line that is most like an old line; all of it, where none is. `open`
/// tells whether the part may begin behind the beginning and end before the end.
pub(super) fn counterpart(old: &str, line: &str, open: (bool, bool)) -> Range<usize> {
    let all = 0..line.len();
    if open == (false, false) || old.is_empty() {
        return all;
    }
    let short = clip(old).len() == old.len() && clip(line).len() == line.len();
    let part = if short { aligned(old, line, open) } else { by_pieces(old, line, open) };
    part.unwrap_or(all)
}

/// The part that takes the fewest changed, lost and added characters; none where that is more than
/// half of the old line. Of equal ones the part that is longest.
fn aligned(old: &str, line: &str, open: (bool, bool)) -> Option<Range<usize>> {
    let there: Vec<(usize, char)> = line.char_indices().collect();
    let starts = |column: usize| if open.0 { (0, column) } else { (column, 0) };
    // What the best way up to each column costs, and where it begins.
    let mut row: Vec<(usize, usize)> = (0..=there.len()).map(starts).collect();
    let mut asked = 0;
    for character in old.chars() {
        asked += 1;
        let mut diagonal = row[0];
        row[0] = (asked, 0);
        for (column, (_, other)) in (1..).zip(&there) {
            let swapped = (diagonal.0 + usize::from(*other != character), diagonal.1);
            let (lost, added) = (row[column], row[column - 1]);
            diagonal = lost;
            row[column] = swapped.min((lost.0 + 1, lost.1)).min((added.0 + 1, added.1));
        }
    }
    let last = there.len();
    let ends = if open.1 { 0..=last } else { last..=last };
    let stop = ends.min_by_key(|column| (row[*column].0, last - column))?;
    let (cost, start) = row[stop];
    let offset = |column: usize| there.get(column).map_or(line.len(), |(at, _)| *at);
    (cost * 2 <= asked).then(|| offset(start)..offset(stop))
}

/// The part around the first and the last piece of the old line that the line has.
fn by_pieces(old: &str, line: &str, open: (bool, bool)) -> Option<Range<usize>> {
    let found = |pieces: Vec<Range<usize>>| {
        pieces.into_iter().find_map(|piece| {
            let at = memmem::find(line.as_bytes(), old[piece.clone()].as_bytes())?;
            Some((at, piece.start))
        })
    };
    let (at, before) = found(pieces(old))?;
    let start = if open.0 { cut::floor(line, at.saturating_sub(before)) } else { 0 };
    let stop = if open.1 {
        let (at, before) = found(pieces(old).into_iter().rev().collect())?;
        cut::floor(line, (at + old.len() - before).max(start))
    } else {
        line.len()
    };
    Some(start..stop)
}

/// Some pieces of a line in order, from its beginning to its end.
fn pieces(line: &str) -> Vec<Range<usize>> {
    let len = (line.len() / 2).clamp(8, 24);
    let Some(room) = line.len().checked_sub(len) else { return Vec::new() };
    let piece = |number: usize| {
        let start = cut::floor(line, room * number / (PIECES - 1));
        start..cut::floor(line, start + len)
    };
    (0..PIECES).map(piece).filter(|piece| !piece.is_empty()).collect()
}

/// Finds a piece of the old text anywhere: the number of the old line it is of, the number of the
/// file's line, both from 0, and the part of that line where the old line would be.
pub(super) fn of_long_lines(text: &str, old: &[&str]) -> Option<(usize, usize, Range<usize>)> {
    let longest = old.iter().enumerate().take(LINES).max_by_key(|(_, line)| line.trim().len());
    let (number, line) = longest?;
    let skipped = line.len() - line.trim_start().len();
    let (at, before) = pieces(line.trim()).into_iter().find_map(|piece| {
        let at = memmem::find(text.as_bytes(), line.trim()[piece.clone()].as_bytes())?;
        Some((at, piece.start + skipped))
    })?;
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let stop = text[at..].find('\n').map_or(text.len(), |end| at + end);
    let there = memchr::memchr_iter(b'\n', &text.as_bytes()[..start]).count();
    let from = cut::floor(text, at.saturating_sub(before)).max(start);
    let to = cut::floor(text, from + line.len()).min(stop);
    Some((number, there, from - start..to - start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_is_most_like_it_is_found() {
        let line = "        return foo(a, b) + 1";
        let part = |old, open| &line[counterpart(old, line, open)];
        assert_eq!(part("return foo(a, c)", (true, true)), "return foo(a, b)");
        assert_eq!(part("return foo(a, c) + 1", (true, false)), "return foo(a, b) + 1");
        assert_eq!(part("        return foo(a, c)", (false, true)), "        return foo(a, b)");
        assert_eq!(part("zzzzzzzzzzz", (true, true)), line);
        assert_eq!(part("return foo(a, c)", (false, false)), line);
        let long = "\u{e9}x,".repeat(300) + "return foo(alpha, beta);" + &"y\u{e9},".repeat(300);
        let part = counterpart("return foo(alphX, beta);", &long, (true, true));
        assert_eq!(&long[part], "return foo(alpha, beta);");
    }
}
