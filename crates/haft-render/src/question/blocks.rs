//! The parts of a question that may be long: a command, the diff of a file, arguments.
//!
//! **Invariant:** a line that is not shown whole is counted as one that is not shown.

use haft_types::{Detail, DiffLine, Hunk, LineMark, Shape};
use serde_json::{Map, Value};

use super::{Extent, not_shown};
use crate::{
    Room, Terminal,
    changes::changed_words,
    line::{Page, Style, lines},
    terminal::{diff_line, gutter, numbers},
    units::count,
};

/// Fewest characters of a line that are worth to be shown alone.
const SOME: usize = 40;

/// Characters of a line that are shown at least where it is too long, if there is room for them.
const PART: usize = 500;

/// What stands before each line of a command or of arguments.
const BAR: &str = "| ";

/// See the module.
pub(super) struct Block<'a> {
    content: Content<'a>,
    /// Lines that are there, each whole.
    whole: usize,
    /// Lines that are not, or not whole.
    missing: u64,
}

enum Content<'a> {
    /// Of a command both ends are shown.
    Command(Vec<&'a str>),
    /// A shape that is a diff.
    Diff(&'a Shape, &'a [Hunk]),
    /// Anything else, in lines.
    Lines(Vec<String>),
}

impl<'a> Block<'a> {
    pub(super) fn command(text: &'a str) -> Self {
        let lines: Vec<&str> = lines(text.trim_end()).collect();
        Self { whole: lines.len(), content: Content::Command(lines), missing: 0 }
    }

    pub(super) fn of_lines(lines: Vec<String>) -> Self {
        Self { whole: lines.len(), content: Content::Lines(lines), missing: 0 }
    }

    /// The parts of a preview.
    pub(super) fn all(terminal: &Terminal, detail: &'a Detail) -> Vec<Self> {
        let mut all: Vec<Self> = match &detail.shape {
            Shape::Many { details } => {
                details.iter().map(|detail| Self::one(terminal, detail)).collect()
            }
            Shape::Json { value } => arguments(value).into_iter().map(Self::of_lines).collect(),
            _ => return vec![Self::one(terminal, detail)],
        };
        if let Some(last) = all.last_mut() {
            last.missing += missing(detail);
        }
        all
    }

    fn one(terminal: &Terminal, detail: &'a Detail) -> Self {
        let missing = missing(detail);
        match &detail.shape {
            shape @ Shape::Diff { hunks, .. } => {
                let lines: usize = hunks.iter().map(|hunk| hunk.lines.len()).sum();
                let cut = detail.cut.as_ref().and_then(|cut| usize::try_from(cut.to).ok());
                let whole = cut.map_or(lines, |to| to.min(lines));
                Self { content: Content::Diff(shape, hunks), whole, missing }
            }
            _ => Self { missing, ..Self::of_lines(plain(terminal, detail)) },
        }
    }

    /// Lines that it needs.
    pub(super) fn lines(&self) -> usize {
        match &self.content {
            Content::Command(lines) => lines.len(),
            Content::Diff(_, hunks) => hunks.iter().map(|hunk| hunk.lines.len()).sum(),
            Content::Lines(lines) => lines.len(),
        }
    }

    /// Characters that it needs.
    pub(super) fn chars(&self) -> usize {
        match &self.content {
            Content::Command(lines) => lines.iter().copied().map(chars).sum(),
            Content::Diff(_, hunks) => {
                let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
                lines.map(|line| chars(&line.text)).sum()
            }
            Content::Lines(lines) => lines.iter().map(|line| chars(line)).sum(),
        }
    }

    /// The line above it, where there are several.
    pub(super) fn head(&self, terminal: &Terminal, page: &mut Page) {
        match &self.content {
            Content::Diff(Shape::Diff { path, from, hunks, counts, before, after }, _) => {
                let state = terminal.state(from.as_ref(), before.is_some(), after.is_some());
                terminal.diff_head(path, (hunks, *counts), &state, page);
            }
            _ => page.line(|line| line),
        }
    }

    /// Shows as much of it as there is room for; gives how many lines are left out.
    pub(super) fn show(&self, extent: Extent, page: &mut Page) -> u64 {
        let shown = match &self.content {
            Content::Command(lines) => return ends(lines, extent, page),
            Content::Diff(_, hunks) => diff(hunks, extent, page),
            Content::Lines(lines) => {
                let (mut left, mut shown) = (Remaining(extent), 0);
                for text in lines {
                    match left.take(text) {
                        Some(Fit::All) => {
                            behind_bar(text, page);
                            shown += 1;
                        }
                        Some(Fit::Part(most)) => behind_bar(&middle(text, most), page),
                        None => break,
                    }
                }
                shown
            }
        };
        let left_out = self.missing + self.whole.saturating_sub(shown) as u64;
        if left_out > 0 {
            fold(left_out, page);
        }
        left_out
    }
}

/// Lines that a detail does not hold.
fn missing(detail: &Detail) -> u64 {
    detail.cut.as_ref().and_then(|cut| cut.total?.checked_sub(cut.to)).unwrap_or(0)
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// Says in a line how many are not shown.
fn fold(left_out: u64, page: &mut Page) {
    page.line(|line| line.with(Style::Dim, &format!("\u{2026} {}", not_shown(left_out))));
}

pub(super) fn behind_bar(text: &str, page: &mut Page) {
    page.line(|line| line.with(Style::Dim, BAR).tabs_from_here().with(Style::Plain, text));
}

fn behind_bars(lines: &[&str], page: &mut Page) {
    for text in lines {
        behind_bar(text, page);
    }
}

/// The room that is left.
struct Remaining(Extent);

/// How much of a line there is room for.
enum Fit {
    All,
    /// So many of its characters.
    Part(usize),
}

impl Remaining {
    /// Takes the room for a line; none where there is too little for any of it.
    fn take(&mut self, text: &str) -> Option<Fit> {
        let Extent { lines, chars: room } = &mut self.0;
        *lines = lines.checked_sub(1)?;
        let needed = chars(text);
        if needed <= *room {
            *room -= needed;
            return Some(Fit::All);
        }
        if *room < SOME {
            *lines = 0;
            return None;
        }
        // What comes after it, as its new text, is to be seen as well.
        let part = (*room / 2).max(PART).min(*room);
        *room -= part;
        Some(Fit::Part(part))
    }
}

/// The byte at which the character of a number begins.
fn at(text: &str, number: usize) -> usize {
    text.char_indices().nth(number).map_or(text.len(), |(at, _)| at)
}

/// Both ends of a line that has more characters than these.
fn middle(text: &str, most: usize) -> String {
    let all = chars(text);
    let (head, tail) = (at(text, most.div_ceil(2)), at(text, all - most / 2));
    let gone = gone(all - most);
    format!("{}{gone}{}", &text[..head], &text[tail..])
}

/// As many characters of a line from a little before the one that differs.
fn around(text: &str, differs: usize, most: usize) -> String {
    let all = chars(text);
    let from = differs.saturating_sub(most / 4).min(all.saturating_sub(most));
    if from == 0 {
        return middle(text, most);
    }
    let (start, end) = (at(text, from), at(text, from + most));
    let rest = all - from - most;
    let rest = if rest > 0 { gone(rest) } else { String::new() };
    format!("{}{}{rest}", gone(from), &text[start..end])
}

fn gone(characters: usize) -> String {
    let many = count(characters as u64, "character", "characters");
    format!("\u{2026} {many} not shown \u{2026}")
}

/// How many characters a changed line has in common with the start of its other version; none where
/// it has no other.
fn same(lines: &[DiffLine], index: usize) -> usize {
    let run = |from: usize, mark| lines[from..].iter().take_while(|one| one.mark == mark).count();
    let back =
        |to: usize, mark| lines[..to].iter().rev().take_while(|one| one.mark == mark).count();
    let other = match lines[index].mark {
        LineMark::Kept => None,
        LineMark::Removed => {
            let first = index - back(index, LineMark::Removed);
            let added = first + run(first, LineMark::Removed);
            lines.get(added + index - first).filter(|one| one.mark == LineMark::Added)
        }
        LineMark::Added => {
            let first = index - back(index, LineMark::Added);
            let removed = back(first, LineMark::Removed);
            (index - first < removed).then(|| &lines[index - removed])
        }
    };
    let Some(other) = other else { return 0 };
    lines[index].text.chars().zip(other.text.chars()).take_while(|(a, b)| a == b).count()
}

/// Both ends of a command; gives how many lines between them are left out.
fn ends(lines: &[&str], extent: Extent, page: &mut Page) -> u64 {
    let all: usize = lines.iter().copied().map(chars).sum();
    if lines.len() <= extent.lines && all <= extent.chars {
        behind_bars(lines, page);
        return 0;
    }
    let last = Extent { lines: extent.lines / 2, chars: extent.chars / 2 };
    let first = Extent { lines: extent.lines - last.lines, chars: extent.chars - last.chars };
    let (first, head) = fit(lines.iter(), first);
    let (last, tail) = fit(lines[first..].iter().rev(), last);
    let between = &lines[first..lines.len() - last];
    behind_bars(&lines[..first], page);
    match between {
        [] => {}
        [one] if head.lines + tail.lines > 0 && head.chars + tail.chars >= SOME => {
            behind_bar(&middle(one, head.chars + tail.chars), page);
        }
        [_, .., end] => {
            if head.lines > 0 && head.chars >= SOME {
                behind_bar(&start(between[0], head.chars), page);
            }
            fold(between.len() as u64, page);
            if tail.lines > 0 && tail.chars >= SOME {
                behind_bar(&end_of(end, tail.chars), page);
            }
        }
        [_] => fold(1, page),
    }
    behind_bars(&lines[lines.len() - last..], page);
    between.len() as u64
}

/// How many lines fit, and the room behind them.
fn fit<'t>(texts: impl Iterator<Item = &'t &'t str>, room: Extent) -> (usize, Extent) {
    let (mut many, mut left) = (0, room);
    for text in texts {
        let Some(lines) = left.lines.checked_sub(1) else { break };
        let Some(chars) = left.chars.checked_sub(chars(text)) else { break };
        left = Extent { lines, chars };
        many += 1;
    }
    (many, left)
}

/// The start of a line.
fn start(text: &str, most: usize) -> String {
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    format!("{}\u{2026}", &text[..end])
}

/// The end of a line.
fn end_of(text: &str, most: usize) -> String {
    let start = most.checked_sub(1).and_then(|nth| text.char_indices().nth_back(nth));
    format!("\u{2026}{}", &text[start.map_or(0, |(at, _)| at)..])
}

/// Shows lines of a diff; gives how many of them are shown whole.
fn diff(hunks: &[Hunk], extent: Extent, page: &mut Page) -> usize {
    let mut left = Remaining(extent);
    let (gutter, mut shown) = (gutter(hunks), 0);
    for (index, hunk) in hunks.iter().enumerate() {
        if left.0.lines == 0 {
            break;
        }
        if index > 0 {
            page.line(|line| line.with(Style::Dim, "\u{22ef}"));
        }
        let words = changed_words(&hunk.lines, left.0.lines);
        let (mut old, mut new) = (hunk.old_start, hunk.new_start);
        for (index, changed) in hunk.lines.iter().enumerate() {
            let Some(fit) = left.take(&changed.text) else { break };
            let numbers = numbers(changed.mark, (&mut old, &mut new), gutter);
            match fit {
                Fit::All => {
                    page.line(|line| diff_line(line, &numbers, changed, words.get(index)));
                    shown += 1;
                }
                Fit::Part(most) => {
                    let text = around(&changed.text, same(&hunk.lines, index), most);
                    let part = DiffLine { text, ..*changed };
                    page.line(|line| diff_line(line, &numbers, &part, None));
                }
            }
        }
    }
    shown
}

/// Any other detail, in lines.
fn plain(terminal: &Terminal, detail: &Detail) -> Vec<String> {
    let terminal = Terminal { color: false, exact: true, ..terminal.clone() };
    let room = Room { width: 0, lines: None, partial: true };
    let mut page = Page::new(room).exact(true);
    terminal.shape(detail, room, &mut page, 0);
    page.text(None).lines().map(str::to_owned).collect()
}

/// The arguments of a call; what holds things of one kind is a part for each of them.
fn arguments(value: &Value) -> Vec<Vec<String>> {
    let Value::Object(fields) = value else { return vec![json(value)] };
    let holds = |value: &Value| match value {
        Value::Array(all) => !all.is_empty() && all.iter().all(Value::is_object),
        _ => false,
    };
    let own = fields.iter().filter(|(_, value)| !holds(value));
    let own: Map<String, Value> = own.map(|(k, v)| (k.clone(), v.clone())).collect();
    let mut parts = if own.is_empty() { Vec::new() } else { vec![json(&Value::Object(own))] };
    for (name, value) in fields {
        if let Value::Array(all) = value
            && holds(value)
        {
            let name = json(&Value::String(name.clone())).concat();
            parts.extend((1..).zip(all).map(|(number, item): (usize, &Value)| {
                let mut lines = json(item);
                lines.insert(0, format!("{number} of {name}:"));
                lines
            }));
        }
    }
    parts
}

/// JSON in lines, which also end where a text in it has the end of a line.
fn json(value: &Value) -> Vec<String> {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|error| error.to_string());
    let mut all = Vec::new();
    for line in text.lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let (mut from, mut at, bytes) = (0, 0, line.as_bytes());
        while at < bytes.len() {
            let escape = bytes[at] == b'\\';
            at += if escape { 2 } else { 1 };
            if escape && bytes.get(at - 1) == Some(&b'n') && bytes.get(at) != Some(&b'"') {
                all.push(if from == 0 {
                    line[..at].to_owned()
                } else {
                    format!("{indent}  {}", &line[from..at])
                });
                from = at;
            }
        }
        all.push(if from == 0 { line.to_owned() } else { format!("{indent}  {}", &line[from..]) });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_arguments_end_their_lines() {
        let value = serde_json::json!({"a": "one\n\"two\\n\n", "b": 1});
        let wanted = ["{", "  \"a\": \"one\\n", "    \\\"two\\\\n\\n\",", "  \"b\": 1", "}"];
        assert_eq!(json(&value), wanted);
    }

    #[test]
    fn of_a_long_line_both_ends_are_shown() {
        assert_eq!(middle("abcdefghij", 4), "ab\u{2026} 6 characters not shown \u{2026}ij");
        assert_eq!(start("abcdefghij", 4), "abcd\u{2026}");
        assert_eq!(end_of("abcdefghij", 4), "\u{2026}ghij");
    }

    #[test]
    fn of_a_long_line_that_changed_the_change_is_shown() {
        use LineMark::{Added, Kept, Removed};
        let line = |mark, text: &str| DiffLine { mark, text: text.to_owned() };
        let (old, new) = ("x".repeat(50) + "a" + &"y".repeat(50), "x".repeat(50) + &"y".repeat(50));
        let lines = [line(Kept, "k"), line(Removed, "r"), line(Removed, &old), line(Added, "n")];
        let lines = [&lines[..], &[line(Added, &new), line(Added, "more")]].concat();
        let same: Vec<usize> = (0..lines.len()).map(|index| same(&lines, index)).collect();
        assert_eq!(same, [0, 0, 50, 0, 50, 0]);
        let shown = around(&old, 50, 8);
        let wanted = "\u{2026} 48 characters not shown \u{2026}xxayyyyy";
        assert_eq!(shown, format!("{wanted}\u{2026} 45 characters not shown \u{2026}"));
        assert!(around(&old, 1, 8).starts_with("xxxx\u{2026} 93"), "{}", around(&old, 1, 8));
    }
}
