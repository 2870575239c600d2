//! Which part of a line an old text matches that begins or ends within the line.
//!
//! **Invariant:** the returned ranges are at character boundaries. The work is that of a table of
//! two short lines. Longer lines are read a few times, whatever repeats in them.

use std::ops::Range;

use memchr::memmem;

use crate::cut;

/// Places of a table of two lines.
const TABLE: usize = 1 << 20;
/// Bytes at an end of a line that tell which part of another line is meant.
const ENOUGH: usize = 24;
/// Bytes around a supposed beginning in which it is looked for.
const AROUND: usize = 200;
/// Pieces of an old line that are looked for anywhere.
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
    let small = old.len().saturating_mul(line.len()) <= TABLE;
    let part = if small { aligned(old, line, open) } else { None };
    let part = part.or_else(|| by_ends(old, line, open));
    part.unwrap_or(all)
}

/// The part that takes the fewest changed, lost and added characters, where one that is added counts
/// half; none where that is more than half of the old line. Of equal ones the part that is longest.
fn aligned(old: &str, line: &str, open: (bool, bool)) -> Option<Range<usize>> {
    let there: Vec<(usize, char)> = line.char_indices().collect();
    let starts = |column: usize| if open.0 { (0, column) } else { (column, 0) };
    // What the best way up to each column costs, and where it begins.
    let mut row: Vec<(usize, usize)> = (0..=there.len()).map(starts).collect();
    let mut asked = 0;
    for character in old.chars() {
        asked += 1;
        let mut diagonal = row[0];
        row[0] = (2 * asked, 0);
        for (column, (_, other)) in (1..).zip(&there) {
            let swapped = (diagonal.0 + 2 * usize::from(*other != character), diagonal.1);
            let (lost, added) = (row[column], row[column - 1]);
            diagonal = lost;
            row[column] = swapped.min((lost.0 + 2, lost.1)).min((added.0 + 1, added.1));
        }
    }
    let last = there.len();
    let ends = if open.1 { 0..=last } else { last..=last };
    let stop = ends.min_by_key(|column| (row[*column].0, last - column))?;
    let (cost, start) = row[stop];
    let offset = |column: usize| there.get(column).map_or(line.len(), |(at, _)| *at);
    (cost <= asked).then(|| offset(start)..offset(stop))
}

/// The part around what the line has of the beginning and of the end of the old line; none where
/// that is too little to tell.
fn by_ends(old: &str, line: &str, open: (bool, bool)) -> Option<Range<usize>> {
    let back = |text: &str| text.bytes().rev().collect::<Vec<u8>>();
    let (asked, there) = (old.as_bytes(), line.as_bytes());
    let (asked_back, there_back) = (back(old), back(line));
    // The end is a beginning in the lines read backwards.
    let head = beginning(asked, there, open.0, 0);
    let tail = beginning(&asked_back, &there_back, open.1, 0);
    let known = head.len.max(tail.len).min(old.len());
    if known < ENOUGH && known * 4 < old.len() {
        return None;
    }
    let (start, stop) = if head.len >= tail.len || !open.0 {
        let stop = if open.1 {
            let done = head.at + head.len;
            let to = there.len().min(done.saturating_add(2 * old.len()));
            let wish = to.saturating_sub(head.at + old.len());
            let tail = beginning(
                &asked_back[..old.len() - head.len],
                &there_back[there.len() - to..there.len() - done],
                true,
                wish,
            );
            if tail.len > 0 { to - tail.at } else { head.at + old.len() }
        } else {
            line.len()
        };
        (head.at, stop)
    } else {
        let stop = line.len() - tail.at;
        (start_before(old, line, stop, tail.len), stop)
    };
    let start = cut::floor(line, start);
    Some(start..cut::floor(line, stop.min(line.len())).max(start))
}

/// Where the part begins that ends at `stop`, with the last `known` bytes as in the old line.
fn start_before(old: &str, line: &str, stop: usize, known: usize) -> usize {
    let (asked, done) = (&old[..old.ceil_char_boundary(old.len() - known)], stop - known);
    let done = cut::floor(line, done);
    let from = line.ceil_char_boundary(done.saturating_sub(2 * asked.len()));
    let supposed = done.saturating_sub(asked.len());
    let wish = supposed.saturating_sub(from);
    let head = beginning(asked.as_bytes(), &line.as_bytes()[from..done], true, wish);
    if head.len >= ENOUGH.min(asked.len()) {
        return from + head.at;
    }
    let (from, asked, to) = if asked.len() <= AROUND {
        (cut::floor(line, done.saturating_sub(2 * AROUND)), asked, done)
    } else {
        let from = cut::floor(line, supposed.saturating_sub(AROUND));
        (from, &asked[..cut::floor(asked, AROUND)], cut::floor(line, from + 3 * AROUND).min(done))
    };
    let part = aligned(asked, &line[from..to], (true, to < done));
    part.map_or(supposed, |part| from + part.start)
}

/// The longest beginning of a text that another one has.
struct Beginning {
    at: usize,
    len: usize,
}

/// Finds the longest beginning of a text anywhere in another one, or only at its beginning where it
/// is not `open`; of equal ones the one nearest to a place.
fn beginning(text: &[u8], there: &[u8], open: bool, wish: usize) -> Beginning {
    if !open {
        let len = text.iter().zip(there).take_while(|(text, there)| text == there).count();
        return Beginning { at: 0, len };
    }
    // How long a beginning ends with each byte of the text itself.
    let mut inner = vec![0; text.len()];
    let next = |inner: &[usize], mut len: usize, byte: u8| {
        while len > 0 && text.get(len) != Some(&byte) {
            len = inner[len - 1];
        }
        len + usize::from(text.get(len) == Some(&byte))
    };
    for at in 1..text.len() {
        inner[at] = next(&inner, inner[at - 1], text[at]);
    }
    let mut best = Beginning { at: 0, len: 0 };
    let mut len = 0;
    for (end, byte) in (1..).zip(there) {
        len = next(&inner, len, *byte);
        let at = end - len;
        if len > best.len || (len == best.len && at.abs_diff(wish) < best.at.abs_diff(wish)) {
            best = Beginning { at, len };
        }
    }
    best
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
    let found = |piece: Range<usize>| memmem::find(text.as_bytes(), line.trim()[piece].as_bytes());
    let at = pieces(line.trim()).into_iter().find_map(found)?;
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let stop = text[at..].find('\n').map_or(text.len(), |end| at + end);
    let there = memchr::memchr_iter(b'\n', &text.as_bytes()[..start]).count();
    let part = counterpart(line, &text[start..stop], (true, true));
    Some((number, there, part))
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
    #[test]
    fn parts_are_whole_characters_of_the_line() {
        let mut seed = 1_u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            usize::try_from(seed >> 33).unwrap() % below
        };
        let letters = ['a', '\u{e9}', '\u{e8}', '\u{6f22}', '\u{1f600}', '\u{1f601}', ','];
        for _ in 0..1_000 {
            let mut word = |most| (0..random(most)).map(|_| letters[random(7)]).collect::<String>();
            let line = word(12).repeat(9) + &word(40);
            let old = if word(3).is_empty() { word(20) } else { word(4) + &line + &word(4) };
            let old: String = old.chars().skip(word(30).chars().count()).collect();
            for open in [(true, true), (true, false), (false, true)] {
                let parts = [Some(counterpart(&old, &line, open)), by_ends(&old, &line, open)];
                for part in parts.into_iter().flatten() {
                    assert!(line.get(part.clone()).is_some(), "{old:?} in {line:?}: {part:?}");
                }
            }
        }
    }
}
