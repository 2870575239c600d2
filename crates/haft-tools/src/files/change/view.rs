//! What a diff shows of long lines, and what it says about changes that cannot be seen.
//!
//! **Invariant:** of a long line and its counterpart the same section is shown, and it holds their
//! first difference. A diff holds the text itself: invisible characters are only named beside it.

use haft_text::{
    cut,
    diff::{self, Kind, Limits, TextDiff},
    edit::Change,
    names,
};

/// The part of a line that is shown before its first difference, as a part of its width.
const LEAD: usize = 4;
/// Lines of which a change that nobody sees is told.
const TOLD: usize = 5;
/// Different changes that are told of one line.
const IN_LINE: usize = 3;

/// Compares two whole texts.
pub(crate) fn compared(old: &str, new: &str, limits: Limits) -> TextDiff {
    narrowed(diff::diff(old, new, whole(limits)), limits.width)
}

/// The diff of known changes of a text, which are in order and do not overlap.
pub(crate) fn of_changes(old: &str, changes: &[Change], limits: Limits) -> TextDiff {
    narrowed(diff::of_changes(old, changes, whole(limits)), limits.width)
}

/// Where a line is cut depends on its counterpart.
const fn whole(limits: Limits) -> Limits {
    Limits { width: usize::MAX, ..limits }
}

type Line = (Kind, String);

/// The next change of a hunk from a line on: the indices of the removed and of the added lines, and
/// the line behind both.
fn change(lines: &[Line], from: usize) -> (Vec<usize>, Vec<usize>, usize) {
    let (mut removed, mut added, mut at) = (Vec::new(), Vec::new(), from);
    while let Some((kind, _)) = lines.get(at) {
        match kind {
            Kind::Removed if added.is_empty() => removed.push(at),
            Kind::Added => added.push(at),
            Kind::Note if at > from => {}
            Kind::Kept | Kind::Removed | Kind::Note => break,
        }
        at += 1;
    }
    (removed, added, at.max(from + 1))
}

/// Cuts lines over `width` characters, those that changed around their first difference.
fn narrowed(mut diff: TextDiff, width: usize) -> TextDiff {
    let is_long = |text: &str| text.len() > width && text.chars().nth(width).is_some();
    for hunk in &mut diff.hunks {
        let mut at = 0;
        while at < hunk.lines.len() {
            let (mut removed, mut added, next) = change(&hunk.lines, at);
            removed.retain(|line| is_long(&hunk.lines[*line].1));
            added.retain(|line| is_long(&hunk.lines[*line].1));
            let starts: Vec<(usize, usize)> = removed
                .into_iter()
                .zip(added)
                .flat_map(|(old, new)| {
                    let start = start(&hunk.lines[old].1, &hunk.lines[new].1, width);
                    [(old, start), (new, start)]
                })
                .collect();
            for (line, (kind, text)) in (at..).zip(&mut hunk.lines[at..next]) {
                if *kind != Kind::Note && is_long(text) {
                    let start = starts.iter().find(|(of, _)| *of == line);
                    *text = stretch(text, start.map_or(0, |(_, start)| *start), width);
                }
            }
            at = next;
        }
    }
    diff
}

/// The byte from which on two lines are shown, which is at a character in both: the first, where the
/// difference is seen then, or a little before the difference.
fn start(old: &str, new: &str, width: usize) -> usize {
    let same = old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
    let same = old.floor_char_boundary(same);
    let rest = (old.len().min(new.len())) - same;
    let tail = old.bytes().rev().zip(new.bytes().rev()).take_while(|(old, new)| old == new);
    let tail = tail.take(rest).count();
    let longer = if old.len() > new.len() { old } else { new };
    let end = longer.ceil_char_boundary(longer.len() - tail);
    let lead = width / LEAD;
    if longer[..end].chars().nth(width).is_none() || old[..same].chars().nth(lead).is_none() {
        return 0;
    }
    old[..same].char_indices().nth_back(lead).map_or(0, |(at, _)| at)
}

/// `width` characters from a byte on, with marks that say what is gone before and behind.
fn stretch(text: &str, start: usize, width: usize) -> String {
    let before = text[..start].chars().count();
    let before = if before == 0 { String::new() } else { cut::mark(before) };
    before + &cut::head(&text[start..], width).text
}

/// Says of lines that look like those that they replace what differs in them, a note each.
pub(crate) fn unseen(diff: &TextDiff) -> Vec<String> {
    let mut notes = Vec::new();
    let mut more = 0;
    for hunk in &diff.hunks {
        let (mut number, mut at) = (hunk.new_start, 0);
        while at < hunk.lines.len() {
            let (removed, added, next) = change(&hunk.lines, at);
            let text = |line: &usize| &*hunk.lines[*line].1;
            let mut olds: Vec<(String, &str)> =
                removed.iter().map(|line| (seen(text(line)), text(line))).collect();
            for (line, nth) in added.iter().zip(0..) {
                let (looks, new) = (seen(text(line)), text(line));
                let Some(twin) = olds.iter().position(|old| old.0 == looks) else { continue };
                let (_, old) = olds.remove(twin);
                if old == new {
                } else if notes.len() < TOLD {
                    notes.push(format!("line {}: {}", number + nth, difference(old, new)));
                } else {
                    more += 1;
                }
            }
            let kept = hunk.lines[at..next].iter().filter(|(kind, _)| *kind == Kind::Kept);
            number += added.len() + kept.count();
            at = next;
        }
    }
    if more > 0 {
        let lines = crate::units::count(more, "more line");
        notes.push(format!("{lines} changed in characters that cannot be seen"));
    }
    notes
}

/// Reports whether a character takes no room, or another than its order says.
fn is_hidden(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{e0000}'..='\u{e007f}')
        || (character.is_control() && character != '\t')
}

/// What people see of a line.
fn seen(line: &str) -> String {
    let visible = line.trim_end().chars().filter(|character| !is_hidden(*character));
    let blank = |character: char| {
        if character.is_whitespace() && character != '\t' { ' ' } else { character }
    };
    let text: String = visible.map(blank).collect();
    text.trim_end().to_owned()
}

/// What differs in two lines that look alike.
fn difference(old: &str, new: &str) -> String {
    let mut found: Vec<(String, usize)> = Vec::new();
    let mut add = |what: String| match found.iter_mut().find(|(known, _)| *known == what) {
        Some((_, count)) => *count += 1,
        None => found.push((what, 1)),
    };
    let ends = [old, new].map(|line| line.trim_end().len());
    let (mut before, mut after) = (old[..ends[0]].chars(), new[..ends[1]].chars());
    let (mut left, mut right) = (before.next(), after.next());
    while left.is_some() || right.is_some() {
        match (left, right) {
            (Some(a), Some(b)) if a == b => {}
            (Some(a), _) if is_hidden(a) => {
                add(format!("{} is gone", names::describe(a)));
                left = before.next();
                continue;
            }
            (_, Some(b)) if is_hidden(b) => {
                add(format!("{} is new", names::describe(b)));
                right = after.next();
                continue;
            }
            (a, b) => {
                let [a, b] = [a, b].map(|end| end.map_or("nothing".to_owned(), blank));
                add(format!("{a} is now {b}"));
            }
        }
        (left, right) = (before.next(), after.next());
    }
    let tails = [&old[ends[0]..], &new[ends[1]..]];
    if tails[0] != tails[1] {
        let [old, new] = tails.map(|tail| match tail.chars().count() {
            0 => "no blank".to_owned(),
            many => crate::units::count(many as u64, "blank"),
        });
        let other = if old == new { "other " } else { "" };
        add(format!("at its end {old} before and {other}{new} now"));
    }
    let more = found.len() > IN_LINE;
    found.truncate(IN_LINE);
    let told = found.into_iter().map(|(what, count)| match count {
        1 => what,
        count => format!("{what} ({count} times)"),
    });
    let mut told: Vec<String> = told.collect();
    told.extend(more.then(|| "and more".to_owned()));
    told.join(", ")
}

fn blank(character: char) -> String {
    if character == ' ' { "a space".to_owned() } else { names::describe(character) }
}
