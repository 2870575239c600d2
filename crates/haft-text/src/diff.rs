//! Unified diffs as data.
//!
//! Invariant: lines are compared with their ends, hunks are in order and do not touch; the number of
//! lines is bounded and what was left out is counted. Around known changes only the lines of the
//! changes are looked at, so that the size of the file does not matter; however many changes and
//! however long the lines, the work does not grow with its square. CR alone ends lines in a text
//! that has no LF.

use std::fmt::Write as _;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};
use memchr::{memchr, memchr_iter, memrchr};

use crate::cut;
use crate::edit::Change;

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In both texts.
    Kept,
    /// Only in the old text.
    Removed,
    /// Only in the new text.
    Added,
    /// A remark on the line before, as that it has no line end; not a line of either text.
    Note,
}

impl Kind {
    /// Gives the sign that unified diffs use.
    pub const fn sign(self) -> char {
        match self {
            Self::Kept => ' ',
            Self::Removed => '-',
            Self::Added => '+',
            Self::Note => '\\',
        }
    }
}

/// One changed place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// First line of the old text, from 1; the line before, where the old text has none here.
    pub old_start: usize,
    /// Lines of the old text.
    pub old_lines: usize,
    /// First line of the new text, from 1; the line before, where the new text has none here.
    pub new_start: usize,
    /// Lines of the new text.
    pub new_lines: usize,
    /// The lines without their ends.
    pub lines: Vec<(Kind, String)>,
}

/// How much a diff shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Unchanged lines around each change.
    pub context: usize,
    /// Lines in all.
    pub lines: usize,
    /// Characters of a line.
    pub width: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { context: 3, lines: 2000, width: 2000 }
    }
}

/// The difference of two texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextDiff {
    /// The changed places in order.
    pub hunks: Vec<Hunk>,
    /// Lines only in the new text, those left out included.
    pub added: usize,
    /// Lines only in the old text, those left out included.
    pub removed: usize,
    /// Lines shown, remarks not counted.
    pub shown: usize,
    /// Lines left out because of the limit.
    pub omitted: usize,
}

/// Lines of both texts up to which the better reading of what changed is looked for: the work for
/// it grows with the lines times the changes.
const HISTOGRAM: usize = 20_000;

/// A stretch of lines in both texts: the line numbers before it, from 0, and the texts.
struct Stretch<'t> {
    old_before: usize,
    new_before: usize,
    old: &'t str,
    new: &'t str,
    /// What ends the lines of the old and of the new text.
    ends: (u8, u8),
}

/// Compares two whole texts.
pub fn diff(old: &str, new: &str, limits: Limits) -> TextDiff {
    let mut diff = TextDiff::default();
    let end = line_end(old);
    let ends = (end, if end == b'\n' { end } else { line_end(new) });
    compare(&Stretch { old_before: 0, new_before: 0, old, new, ends }, limits, &mut diff);
    diff
}

/// Builds the diff of known changes of a text; `changes` are in order and do not overlap.
pub fn of_changes(old: &str, changes: &[Change], limits: Limits) -> TextDiff {
    let mut diff = TextDiff::default();
    let mut at = 0;
    let (mut old_before, mut new_before, mut counted) = (0, 0, 0);
    let end = line_end(old);
    let breaks = |text: &str| memchr_iter(end, text.as_bytes()).count();
    while at < changes.len() {
        let start = back(old, changes[at].range.start, limits.context, end);
        let mut line_stop = forth(old, changes[at].range.end, 0, end);
        let mut stop = forth(old, changes[at].range.end, limits.context, end);
        let mut next = at + 1;
        // Changes whose surroundings touch share a hunk.
        while let Some(change) = changes.get(next)
            && (change.range.start <= stop
                || back(old, change.range.start, limits.context, end) <= stop)
        {
            // Many changes of one line have the same surroundings.
            if change.range.end >= line_stop && stop < old.len() {
                line_stop = forth(old, change.range.end, 0, end);
                stop = forth(old, change.range.end, limits.context, end).max(stop);
            }
            next += 1;
        }
        let between = breaks(&old[counted..start]);
        old_before += between;
        new_before += between;
        let new = patched(old, start..stop, &changes[at..next]);
        let old = &old[start..stop];
        let stretch = Stretch { old_before, new_before, old, new: &new, ends: (end, end) };
        compare(&stretch, limits, &mut diff);
        old_before += breaks(old);
        new_before += breaks(&new);
        counted = stop;
        at = next;
    }
    diff
}

fn patched(old: &str, range: Range<usize>, changes: &[Change]) -> String {
    let mut out = String::new();
    let mut done = range.start;
    for change in changes {
        out.push_str(&old[done..change.range.start]);
        out.push_str(&change.text);
        done = change.range.end;
    }
    out.push_str(&old[done..range.end]);
    out
}

/// What ends the lines of a text: a line feed, or a carriage return where there is none.
fn line_end(text: &str) -> u8 {
    let bytes = text.as_bytes();
    let only_cr = memchr(b'\n', bytes).is_none() && memchr(b'\r', bytes).is_some();
    if only_cr { b'\r' } else { b'\n' }
}

/// The lines of a text with their ends.
fn split(text: &str, end: u8) -> Vec<&str> {
    text.split_inclusive(char::from(end)).collect()
}

/// The start of the line that is `count` lines before the one at an offset.
fn back(text: &str, offset: usize, count: usize, end: u8) -> usize {
    let mut at = offset;
    for step in 0..=count {
        match memrchr(end, &text.as_bytes()[..at]) {
            None => return 0,
            Some(found) if step == count => return found + 1,
            Some(found) => at = found,
        }
    }
    at
}

/// The end of the line that is `count` lines after the one that holds an offset or ends there.
fn forth(text: &str, offset: usize, count: usize, end: u8) -> usize {
    let mut at = offset;
    for _ in 0..=count {
        match memchr(end, &text.as_bytes()[at..]) {
            None => return text.len(),
            Some(found) => at += found + 1,
        }
    }
    at
}

fn compare(stretch: &Stretch<'_>, limits: Limits, out: &mut TextDiff) {
    let old = split(stretch.old, stretch.ends.0);
    let new = split(stretch.new, stretch.ends.1);
    let mut input = InternedInput::default();
    input.update_before(old.iter().copied());
    input.update_after(new.iter().copied());
    let many = old.len() + new.len() > HISTOGRAM;
    let mut diff =
        Diff::compute(if many { Algorithm::Myers } else { Algorithm::Histogram }, &input);
    diff.postprocess_lines(&input);
    let changes: Vec<(Range<usize>, Range<usize>)> =
        diff.hunks().map(|hunk| (wide(&hunk.before), wide(&hunk.after))).collect();
    let mut writer = Writer { stretch, old: &old, new: &new, limits, out };
    let mut at = 0;
    while at < changes.len() {
        let mut next = at + 1;
        while next < changes.len()
            && changes[next].0.start - changes[next - 1].0.end <= limits.context * 2
        {
            next += 1;
        }
        writer.hunk(&changes[at..next]);
        at = next;
    }
}

const fn wide(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

struct Writer<'w, 't> {
    stretch: &'w Stretch<'t>,
    old: &'w [&'t str],
    new: &'w [&'t str],
    limits: Limits,
    out: &'w mut TextDiff,
}

impl Writer<'_, '_> {
    fn hunk(&mut self, changes: &[(Range<usize>, Range<usize>)]) {
        let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return };
        let lead = first.0.start.min(self.limits.context);
        let trail = (self.old.len() - last.0.end).min(self.limits.context);
        let old = first.0.start - lead..last.0.end + trail;
        let new = first.1.start - lead..last.1.end + trail;
        // A side without lines names the line before it, as diff does.
        let number =
            |range: &Range<usize>, before| before + range.start + usize::from(!range.is_empty());
        let mut hunk = Hunk {
            old_start: number(&old, self.stretch.old_before),
            old_lines: old.len(),
            new_start: number(&new, self.stretch.new_before),
            new_lines: new.len(),
            lines: Vec::new(),
        };
        let mut at = old.start;
        for (before, after) in changes {
            self.lines(&mut hunk, Kind::Kept, &self.old[at..before.start]);
            let ends = ends_differ(&self.old[before.clone()], &self.new[after.clone()]);
            self.lines(&mut hunk, Kind::Removed, &self.old[before.clone()]);
            self.lines(&mut hunk, Kind::Added, &self.new[after.clone()]);
            if ends && self.out.omitted == 0 {
                hunk.lines
                    .push((Kind::Note, "Only line ends or final line ends differ".to_owned()));
            }
            at = before.end;
        }
        self.lines(&mut hunk, Kind::Kept, &self.old[at..old.end]);
        if !hunk.lines.is_empty() {
            self.out.hunks.push(hunk);
        }
    }

    fn lines(&mut self, hunk: &mut Hunk, kind: Kind, lines: &[&str]) {
        match kind {
            Kind::Added => self.out.added += lines.len(),
            Kind::Removed => self.out.removed += lines.len(),
            Kind::Kept | Kind::Note => {}
        }
        let ends = self.stretch.ends;
        let end = char::from(if kind == Kind::Added { ends.1 } else { ends.0 });
        let room = self.limits.lines.saturating_sub(self.out.shown).min(lines.len());
        self.out.shown += room;
        self.out.omitted += lines.len() - room;
        for line in &lines[..room] {
            let text = cut::head(content(line), self.limits.width).text.into_owned();
            hunk.lines.push((kind, text));
            if !line.ends_with(end) {
                hunk.lines.push((Kind::Note, "No newline at end of file".to_owned()));
            }
        }
    }
}

fn content(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

fn ends_differ(old: &[&str], new: &[&str]) -> bool {
    !old.is_empty()
        && old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| content(old) == content(new))
}

impl TextDiff {
    /// Tells whether the texts are the same.
    pub const fn is_empty(&self) -> bool {
        self.added == 0 && self.removed == 0
    }

    /// Writes the hunks as a unified diff without file names.
    pub fn unified(&self) -> String {
        let mut out = String::new();
        for hunk in &self.hunks {
            let _ = writeln!(out, "{}", hunk.header());
            for (kind, text) in &hunk.lines {
                let space = if *kind == Kind::Note { " " } else { "" };
                let _ = writeln!(out, "{}{space}{text}", kind.sign());
            }
        }
        self.say_omitted(&mut out);
        out
    }

    /// Writes the hunks with line numbers: of the new text for kept and added lines, of the old one
    /// for removed lines; hunks are parted by a line `...`.
    pub fn numbered(&self) -> String {
        let last = self.hunks.last().map_or(0, |hunk| {
            (hunk.old_start + hunk.old_lines).max(hunk.new_start + hunk.new_lines)
        });
        let width = last.to_string().len();
        let mut out = String::new();
        for (at, hunk) in self.hunks.iter().enumerate() {
            if at > 0 {
                out.push_str("...\n");
            }
            let (mut old, mut new) = hunk.first_numbers();
            for (kind, text) in &hunk.lines {
                let number = match kind {
                    Kind::Note => {
                        let _ = writeln!(out, "{:width$} \\ {text}", "");
                        continue;
                    }
                    Kind::Removed => old,
                    Kind::Kept | Kind::Added => new,
                };
                let _ = writeln!(out, "{number:>width$} {} {text}", kind.sign());
                old += usize::from(*kind != Kind::Added);
                new += usize::from(*kind != Kind::Removed);
            }
        }
        self.say_omitted(&mut out);
        out
    }

    fn say_omitted(&self, out: &mut String) {
        if self.omitted > 0 {
            let _ = writeln!(out, "[{} more lines of the diff not shown]", self.omitted);
        }
    }
}

impl Hunk {
    /// Gives the line `@@ -a,b +c,d @@`.
    pub fn header(&self) -> String {
        let side = |start: usize, lines: usize| match lines {
            1 => start.to_string(),
            _ => format!("{start},{lines}"),
        };
        let old = side(self.old_start, self.old_lines);
        format!("@@ -{old} +{} @@", side(self.new_start, self.new_lines))
    }

    /// Gives the numbers, from 1, that the first old and the first new line have.
    const fn first_numbers(&self) -> (usize, usize) {
        let old = if self.old_lines == 0 { self.old_start + 1 } else { self.old_start };
        let new = if self.new_lines == 0 { self.new_start + 1 } else { self.new_start };
        (old, new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize) -> String {
        (1..=count).fold(String::new(), |text, number| text + &format!("line {number}\n"))
    }

    #[test]
    fn hunks_are_those_of_diff() {
        let old = numbers(20);
        let new = old.replace("line 3\n", "three\n").replace("line 18\n", "");
        let diff = diff(&old, &new, Limits { context: 1, ..Limits::default() });
        assert_eq!(
            diff.unified(),
            "@@ -2,3 +2,3 @@\n line 2\n-line 3\n+three\n line 4\n\
             @@ -17,3 +17,2 @@\n line 17\n-line 18\n line 19\n"
        );
        assert_eq!((diff.added, diff.removed), (1, 2));
    }

    #[test]
    fn empty_sides_and_missing_ends_are_told() {
        let made = diff("", "a\nb", Limits::default());
        assert_eq!(made.unified(), "@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n");
        let gone = diff("a\n", "", Limits::default());
        assert_eq!(gone.unified(), "@@ -1 +0,0 @@\n-a\n");
        assert!(diff("a\r\n", "a\n", Limits::default()).unified().contains("Only line ends"));
        assert!(diff("same", "same", Limits::default()).is_empty());
    }

    #[test]
    fn known_changes_give_the_same_hunks() {
        let old = numbers(50);
        let change = |old: &str, what: &str, text: &str| {
            let start = old.find(what).unwrap();
            Change { edit: 1, range: start..start + what.len(), text: text.to_owned() }
        };
        let changes = [
            change(&old, "line 5\n", "line 5\nmore\n"),
            change(&old, "line 9", "nine"),
            change(&old, "line 40\nline 41\n", ""),
        ];
        let new = patched(&old, 0..old.len(), &changes);
        let limits = Limits::default();
        assert_eq!(of_changes(&old, &changes, limits), diff(&old, &new, limits));
    }

    #[test]
    fn lines_that_carriage_returns_end_are_lines() {
        let old = "a\rb\rc\rd\re\rf\rg\r";
        let change = Change { edit: 1, range: 6..7, text: "D\rE".to_owned() };
        let made = of_changes(
            old,
            std::slice::from_ref(&change),
            Limits { context: 1, ..Limits::default() },
        );
        assert_eq!(made.unified(), "@@ -3,3 +3,4 @@\n c\n-d\n+D\n+E\n e\n");
        let limits = Limits::default();
        let new = patched(old, 0..old.len(), std::slice::from_ref(&change));
        assert_eq!(of_changes(old, &[change], limits), diff(old, &new, limits));
        let made = diff("a\rb\r", "a\nb\n", limits);
        assert_eq!((made.added, made.removed), (2, 2));
        assert!(made.unified().contains("Only line ends"), "{made:?}");
        assert!(!made.unified().contains("No newline"), "{made:?}");
    }

    #[test]
    fn long_diffs_are_bounded_and_say_so() {
        let limits = Limits { lines: 10, width: 3, ..Limits::default() };
        let diff = diff("", &numbers(100), limits);
        assert_eq!((diff.added, diff.omitted), (100, 90));
        assert_eq!(diff.hunks[0].lines.len(), 10);
        assert!(diff.numbered().ends_with("[90 more lines of the diff not shown]\n"));
    }
}
