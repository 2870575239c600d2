//! Finds which words of a changed line are new: for the eye, not for patches.
//!
//! **Invariant:** the cost is bounded. Lines beyond its limits have no marked words.

use std::ops::Range;

use haft_types::{DiffLine, LineMark};
use imara_diff::{Algorithm, Diff, InternedInput};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::clean::{format_code, is_hidden};

/// The longest line that is compared word by word, in bytes.
const LONGEST_LINE: usize = 600;

/// The most lines of one run that are compared.
const LONGEST_RUN: usize = 100;

/// For each line of a hunk the byte ranges that changed against its counterpart; none at all
/// where a line has none, or nearly everything is different.
pub(crate) fn changed_words(lines: &[DiffLine], shown: usize) -> Vec<Vec<Range<usize>>> {
    let lines = &lines[..lines.len().min(shown)];
    let mut all = vec![Vec::new(); lines.len()];
    let mut at = 0;
    while at < lines.len() {
        let removed = run(&lines[at..], LineMark::Removed);
        let added = run(&lines[at + removed..], LineMark::Added);
        if removed == added && removed <= LONGEST_RUN {
            for pair in 0..removed {
                let (old, new) = (at + pair, at + removed + pair);
                if let Some((before, after)) = compare(&lines[old].text, &lines[new].text) {
                    all[old] = before;
                    all[new] = after;
                }
            }
        }
        at += (removed + added).max(1);
    }
    all
}

/// A line whose changed parts are all seen, with these parts; none where they are as it is: blanks
/// of an uncommon kind become signs, and so do all blanks that changed at its end.
pub(crate) fn made_visible(text: &str, changed: &[Range<usize>]) -> Option<(String, Ranges)> {
    let uncommon = |c: char| c.is_whitespace() && !matches!(c, ' ' | '\t') && !is_hidden(c);
    let blank = |part: &str| !part.is_empty() && part.trim().is_empty();
    let at_end = |range: &Range<usize>| range.end == text.len();
    let is_unseen = |range: &Range<usize>| {
        let part = text.get(range.clone()).unwrap_or_default();
        part.contains(uncommon) || (at_end(range) && part.ends_with(char::is_whitespace))
    };
    if !changed.iter().any(is_unseen) {
        return None;
    }
    let (mut shown, mut ranges, mut at) = (String::new(), Ranges::new(), 0);
    for range in changed {
        let (before, part) = (text.get(at..range.start)?, text.get(range.clone())?);
        shown.push_str(before);
        let start = shown.len();
        let mut rest = part;
        while let Some(c) = rest.chars().next() {
            match c {
                ' ' if at_end(range) && blank(rest) => shown.push('\u{b7}'),
                '\t' if at_end(range) && blank(rest) => shown.push('\u{2192}'),
                c if uncommon(c) => shown.push_str(&format_code(u32::from(c))),
                c => shown.push(c),
            }
            rest = &rest[c.len_utf8()..];
        }
        ranges.push(start..shown.len());
        at = range.end;
    }
    shown.push_str(text.get(at..)?);
    Some((shown, ranges))
}

fn run(lines: &[DiffLine], mark: LineMark) -> usize {
    lines.iter().take_while(|line| line.mark == mark).count()
}

type Ranges = Vec<Range<usize>>;

fn compare(old: &str, new: &str) -> Option<(Ranges, Ranges)> {
    if old.len() > LONGEST_LINE || new.len() > LONGEST_LINE {
        return None;
    }
    let (old, new): (Vec<_>, Vec<_>) =
        (old.split_word_bounds().collect(), new.split_word_bounds().collect());
    let mut input = InternedInput::default();
    input.update_before(old.iter().copied());
    input.update_after(new.iter().copied());
    let diff = Diff::compute(Algorithm::Myers, &input);
    let unchanged = old.len() - diff.count_removals() as usize;
    // Lines with little in common are easier to read without marks: 0.4 of their words.
    if unchanged * 2 * 10 < (old.len() + new.len()) * 4 {
        return None;
    }
    let changed = |words: &[&str], is_changed: &dyn Fn(u32) -> bool| {
        let (mut ranges, mut at) = (Ranges::new(), 0);
        for (number, word) in (0..).zip(words) {
            if is_changed(number) {
                add(&mut ranges, at..at + word.len());
            }
            at += word.len();
        }
        ranges
    };
    Some((changed(&old, &|n| diff.is_removed(n)), changed(&new, &|n| diff.is_added(n))))
}

fn add(ranges: &mut Ranges, range: Range<usize>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}
