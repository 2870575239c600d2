//! Which lines of an old text stand for which lines of the file, where the two are alike but not
//! the same: lines changed, lost and put in between.
//!
//! Invariant: the pairs are in order on both sides, and time and memory are those of a table of
//! `OLD` times `FILE` short lines. It judges likeness only; whether an edit applies is not decided
//! here.

use super::{closest::clip, fold::plain};

/// Lines of the old text that are compared.
pub(super) const OLD: usize = 64;
/// Lines of the file that are compared.
pub(super) const FILE: usize = 112;

/// What a line stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pair {
    /// A line of the old text (from 0) and one of the file (from 0) that stand for each other.
    Both(usize, usize),
    /// A line of the old text that the file has not, before a line of the file.
    Lost(usize, usize),
    /// A line of the file between the others that the old text has not.
    More(usize),
}

/// What a line of the old text that the file has not costs.
const LOST: i32 = 100;
/// What a line of the file between the others costs.
const MORE: i32 = 60;
/// What one place has to be worth more than another to be clearly the better one: more than a
/// line is that stands for one that is hardly like it.
pub(super) const CLEARLY: i32 = 2 * LOST;
/// Likeness, from 0 to 1000, below which two lines never stand for each other.
const ALIKE: usize = 200;
/// Likeness below which the first and the last line of an old text stand for none of the file.
const EDGE: usize = 400;
/// The same of what two lines have in common at their ends.
const EDGE_ENDS: usize = 250;

/// Bytes of a line that is short: pieces of three bytes say little of it.
const SHORT: usize = 32;

/// A line without blanks, in lower case, with plain quotes and dashes.
pub(super) fn squashed(line: &str) -> String {
    clip(line)
        .chars()
        .map(plain)
        .filter(|character| !character.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Pieces of three bytes that a line has, as a set of 4,096 bits.
pub(super) struct Pieces {
    bits: [u64; 64],
    count: usize,
}

fn slot(piece: &[u8]) -> usize {
    let hash = piece.iter().fold(0_usize, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(usize::from(byte.to_ascii_lowercase()))
    });
    hash.wrapping_mul(0x9E37) >> 4 & 4095
}

impl Pieces {
    pub(super) fn new(line: &str) -> Self {
        let mut pieces = Self { bits: [0; 64], count: 0 };
        for piece in line.trim().as_bytes().windows(3) {
            let slot = slot(piece);
            pieces.bits[slot / 64] |= 1 << (slot % 64);
            pieces.count += 1;
        }
        pieces
    }

    /// Likeness of a line, from 0 to 1000.
    pub(super) fn likeness(&self, line: &str) -> usize {
        let line = clip(line).trim().as_bytes();
        let total = self.count + line.len().saturating_sub(2);
        if total == 0 {
            return 0;
        }
        let has = |piece: &[u8]| {
            let slot = slot(piece);
            self.bits[slot / 64] >> (slot % 64) & 1 == 1
        };
        let same = line.windows(3).filter(|piece| has(piece)).count();
        2000 * same.min(self.count) / total
    }
}

/// Likeness of a short line to another, or to as much of its beginning or end, by what they have in
/// common at both ends, from 500 to 1000; else 0.
pub(super) fn ends(old: &str, file: &str) -> usize {
    let [old, file] = [old, file].map(|line| clip(line).trim());
    if old.len() > SHORT {
        return 0;
    }
    let part = |more: usize| {
        let like = parts(old, file).into_iter().map(|part| in_common(old, part));
        like.filter(|like| *like >= more).max()
    };
    let all = if file.len() > SHORT { 0 } else { in_common(old, file) };
    // A part has to say more.
    if old.is_empty() || all >= 500 { all } else { part(750).unwrap_or(0) }
}

/// As much of the beginning and of the end of a line as another one has characters, at least one.
fn parts<'f>(old: &str, file: &'f str) -> [&'f str; 2] {
    let length = old.chars().count();
    let first = file.char_indices().nth(length).map_or(file, |(at, _)| &file[..at]);
    let last = file.char_indices().rev().nth(length.saturating_sub(1));
    [first, last.map_or(file, |(at, _)| &file[at..])]
}

fn in_common(old: &str, file: &str) -> usize {
    let equal = |(old, file): &(char, char)| plain(*old) == plain(*file);
    let head = old.chars().zip(file.chars()).take_while(equal).count();
    let tail = old.chars().rev().zip(file.chars().rev()).take_while(equal).count();
    let [old, file] = [old, file].map(|line| line.chars().count());
    let same = (head + tail).min(old).min(file);
    if same < 2 { 0 } else { same * 1000 / old.max(file) }
}

/// Whether a first or a last line of an old text is so much like one of the file that it stands for
/// it, and is not one that the file has nowhere; `open` says that it may be a part of the file's.
pub(super) fn is_alike(old: &str, file: &str, open: bool) -> bool {
    let [one, two] = [old, file].map(squashed);
    let signs = |line: &str| !line.contains(char::is_alphanumeric);
    let shares = |file: &str| in_common(&one, file) >= EDGE_ENDS;
    one == two
        || (signs(&one) && signs(&two))
        || Pieces::new(clip(old)).likeness(file) >= EDGE
        || shares(&two)
        || (open && parts(&one, &two).into_iter().any(shares))
}

/// A line of the old text, looked at once.
struct Line<'t> {
    text: &'t str,
    squashed: String,
    pieces: Pieces,
    /// What a pair of this line is worth at most: a bracket says less than a sentence.
    weight: usize,
}

impl<'t> Line<'t> {
    fn new(text: &'t str) -> Self {
        let squashed = squashed(text);
        let weight = 200 + 20 * squashed.len().min(40);
        Self { text, squashed, pieces: Pieces::new(text), weight }
    }

    /// What it is worth to pair this line with one of the file; none where they are not alike.
    fn worth(&self, file: &str, file_squashed: &str) -> Option<i32> {
        let likeness = if self.text == file {
            1000
        } else if self.squashed == *file_squashed {
            // Less than the very same line behind one that was left out.
            885
        } else {
            let likeness = self.pieces.likeness(file).min(940);
            if likeness < ALIKE {
                // Worth the least, but more than a line lost and another one put in.
                return (ends(self.text, file) > 0).then_some(1);
            }
            // Two lines that are half alike are worth less than one that is the same.
            likeness * likeness / 1000
        };
        i32::try_from(likeness * self.weight / 1000).ok()
    }
}

/// Pairs the lines so that most of them are alike; what the file has before the first pair and
/// after the last one is left out. `anchored` says that both begin at the same line.
pub(super) fn align(old: &[&str], file: &[&str], anchored: bool) -> Vec<Pair> {
    let (old, file) = (&old[..old.len().min(OLD)], &file[..file.len().min(FILE)]);
    let (_, steps) = table(old, file, anchored);
    settled(&traced(&steps, old.len(), file.len(), anchored), old, file, anchored)
}

/// How alike an old text and its best place among lines of a file are: more is more.
pub(super) fn likeness(old: &[&str], file: &[&str]) -> i32 {
    let (old, file) = (&old[..old.len().min(OLD)], &file[..file.len().min(FILE)]);
    table(old, file, false).0
}

/// What the best pairing is worth, and the last step of the best to each pair of places.
fn table(old: &[&str], file: &[&str], anchored: bool) -> (i32, Vec<Step>) {
    let lines: Vec<Line<'_>> = old.iter().map(|line| Line::new(line)).collect();
    let squashes: Vec<String> = file.iter().map(|line| squashed(line)).collect();
    let width = file.len() + 1;
    let mut best = vec![0; width * (lines.len() + 1)];
    if anchored {
        let mut cost = 0;
        for start in &mut best[..width] {
            *start = cost;
            cost -= MORE;
        }
    }
    let mut steps = vec![Step::More; best.len()];
    for (row, line) in (1..).zip(&lines) {
        let last = row == lines.len();
        for column in 0..width {
            let above = best[(row - 1) * width + column] - LOST;
            let (mut score, mut step) = (above, Step::Lost);
            if let Some(before) = column.checked_sub(1) {
                let cost = if last { 0 } else { MORE };
                let left = best[row * width + before] - cost;
                // Of several places for the last line the first counts.
                if left > score || (last && left == score) {
                    (score, step) = (left, Step::More);
                }
                let worth = line.worth(file[before], &squashes[before]);
                let both = worth.map(|worth| best[(row - 1) * width + before] + worth);
                let better = |both: &i32| *both > score || (!last && *both == score);
                if let Some(both) = both.filter(better) {
                    (score, step) = (both, Step::Both);
                }
            }
            best[row * width + column] = score;
            steps[row * width + column] = step;
        }
    }
    // What follows the last line costs nothing.
    (best[best.len() - 1], steps)
}

/// Pairs lines that are not alike, but stand where one of each is missing.
fn settled(pairs: &[Pair], old: &[&str], file: &[&str], anchored: bool) -> Vec<Pair> {
    let mut out = Vec::with_capacity(pairs.len());
    let mut rest = pairs;
    let mut before = anchored.then_some(0);
    while !rest.is_empty() {
        let single = |pair: &Pair| !matches!(pair, Pair::Both(..));
        let (gap, after) = rest.split_at(rest.iter().take_while(|pair| single(pair)).count());
        let next = after.first();
        let lost = |pair: &Pair| if let Pair::Lost(old, _) = pair { Some(*old) } else { None };
        let more = |pair: &Pair| if let Pair::More(there) = pair { Some(*there) } else { None };
        let lost: Vec<usize> = gap.iter().filter_map(lost).collect();
        let there: Vec<usize> = match (before, next) {
            (Some(_), Some(_)) => gap.iter().filter_map(more).collect(),
            // At the end, and at the beginning, what the file has there was left out.
            (Some(stop), None) if stop < file.len() => vec![stop],
            (None, Some(Pair::Both(_, there))) => there.checked_sub(1).into_iter().collect(),
            _ => Vec::new(),
        };
        // A blank line stands for nothing but another one.
        let says = |lines: &[&str], at: &usize| !lines[*at].trim().is_empty();
        let both = lost.iter().all(|at| says(old, at)) && there.iter().all(|at| says(file, at));
        if both && lost.len() == there.len() {
            out.extend(lost.iter().zip(&there).map(|(old, there)| Pair::Both(*old, *there)));
        } else {
            out.extend_from_slice(gap);
        }
        out.extend(next);
        if let Some(Pair::Both(_, there)) = next {
            before = Some(there + 1);
        }
        rest = after.get(1..).unwrap_or_default();
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Both,
    Lost,
    More,
}

fn traced(steps: &[Step], old: usize, file: usize, anchored: bool) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let (mut row, mut column) = (old, file);
    while row > 0 {
        match steps[row * (file + 1) + column] {
            Step::Both => {
                (row, column) = (row - 1, column - 1);
                pairs.push(Pair::Both(row, column));
            }
            Step::Lost => {
                row -= 1;
                pairs.push(Pair::Lost(row, column));
            }
            Step::More => {
                column -= 1;
                // Behind the last line of the old text nothing is between anything.
                if row < old {
                    pairs.push(Pair::More(column));
                }
            }
        }
    }
    if anchored {
        pairs.extend((0..column).rev().map(Pair::More));
    }
    pairs.reverse();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<&str> {
        text.split('\n').collect()
    }

    #[test]
    fn lost_and_added_lines_do_not_shift_the_others() {
        let file = "}\n\nfn area(w: u32) {\n    let a = w * 2;\n    log(a);\n    draw(a);\n}\n\nfn b() {\n}";
        let old = "fn area(w: u32) {\n    let a = w * 3;\n    draw(a);\n    done(a);\n}";
        let pairs = align(&lines(old), &lines(file), false);
        let want = [
            Pair::Both(0, 2),
            Pair::Both(1, 3),
            Pair::More(4),
            Pair::Both(2, 5),
            Pair::Lost(3, 6),
            Pair::Both(4, 6),
        ];
        assert_eq!(pairs, want);
        assert_eq!(align(&["a"], &[], false), [Pair::Lost(0, 0)]);
        let between = align(&["one", "zanzibar", "two"], &["one", "name", "two"], false);
        assert_eq!(between, [Pair::Both(0, 0), Pair::Both(1, 1), Pair::Both(2, 2)]);
        let end = align(&["one", "zanzibar"], &["one", "name", "one"], false);
        assert_eq!(end, [Pair::Both(0, 0), Pair::Both(1, 1)]);
        let blank = align(&["one", "zanzibar"], &["one", ""], false);
        assert_eq!(blank, [Pair::Both(0, 0), Pair::Lost(1, 1)]);
        let case = align(
            &["\"other\",", "\"case/Upper.txt\","],
            &["\"other\",", "\"case/upper.txt\",", "\"case/Upper.txt\","],
            false,
        );
        assert_eq!(case, [Pair::Both(0, 0), Pair::More(1), Pair::Both(1, 2)]);
        let anchored = align(&["a b", "c d"], &["a b", "x", "a b", "c e"], true);
        assert_eq!(anchored[0], Pair::Both(0, 0));
    }
}
