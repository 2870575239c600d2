//! Whole lines that differ in their indentation alone, in the same way on every line.
//!
//! Invariant: the difference is read from all lines that are not blank, never from the first only,
//! and the new text goes through the very same change or the match is refused. Blanks at the ends
//! of lines are no evidence against.

use super::fold::hashed;
use super::tolerance::{Candidate, Step};
use super::view::{Index, View};
use crate::search::{self, Places};

/// Lines compared at most before giving up on a text that repeats itself.
const WORK_LIMIT: usize = 4_000_000;
/// Places that are kept.
const KEPT: usize = 32;

/// How the file's indentation comes out of the given one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shift {
    /// The file has this before what was given.
    Add(String),
    /// The file lacks this of what was given.
    Remove(String),
    /// The file has a tab for so many spaces.
    Tabs(usize),
    /// The file has so many spaces for a tab.
    Spaces(usize),
}

impl Shift {
    fn line(&self, line: &str) -> Option<String> {
        if line.trim().is_empty() {
            return Some(line.to_owned());
        }
        let (indent, rest) = split(line);
        Some(match self {
            Self::Add(more) => format!("{more}{line}"),
            Self::Remove(less) => line.strip_prefix(less.as_str())?.to_owned(),
            Self::Tabs(width) => {
                let spaces = indent.bytes().take_while(|byte| *byte == b' ').count();
                let tabs = "\t".repeat(spaces / width);
                format!("{tabs}{}{}{rest}", " ".repeat(spaces % width), &indent[spaces..])
            }
            Self::Spaces(width) => {
                let tabs = indent.bytes().take_while(|byte| *byte == b'\t').count();
                format!("{}{}{rest}", " ".repeat(tabs * width), &indent[tabs..])
            }
        })
    }

    fn text(&self, text: &str) -> Option<String> {
        let lines: Option<Vec<String>> = text.split('\n').map(|line| self.line(line)).collect();
        lines.map(|lines| lines.join("\n"))
    }
}

fn split(line: &str) -> (&str, &str) {
    let rest = line.trim_start_matches([' ', '\t']);
    line.split_at(line.len() - rest.len())
}

/// Finds lines indented more or less than given.
pub(super) fn shifted(view: &View<'_>, old: &str, new: &str) -> Step {
    find(view, old, new, &|pairs| {
        let (given, file) = pairs.first()?;
        let shift = if let Some(more) = file.strip_suffix(given) {
            Shift::Add(more.to_owned())
        } else {
            Shift::Remove(given.strip_suffix(file)?.to_owned())
        };
        fits(&shift, pairs)
    })
}

/// Finds lines indented with tabs where spaces are given, or the other way round.
pub(super) fn converted(view: &View<'_>, old: &str, new: &str) -> Step {
    find(view, old, new, &|pairs| {
        [4, 2, 8, 3, 1, 6, 5, 7]
            .into_iter()
            .flat_map(|width| [Shift::Tabs(width), Shift::Spaces(width)])
            .find_map(|shift| fits(&shift, pairs))
    })
}

/// Gives the shift back when it explains every pair of indentations and changes at least one.
fn fits(shift: &Shift, pairs: &[(&str, &str)]) -> Option<Shift> {
    let all = pairs.iter().all(|(given, file)| {
        // A letter stands for the text, so that the line is not blank.
        shift.line(&format!("{given}x")).is_some_and(|line| line.strip_suffix('x') == Some(file))
    });
    let any = pairs.iter().any(|(given, file)| given != file);
    (all && any).then(|| shift.clone())
}

type Reading<'f> = dyn Fn(&[(&str, &str)]) -> Option<Shift> + 'f;

fn find(view: &View<'_>, old: &str, new: &str, reading: &Reading<'_>) -> Step {
    let Some(index) = view.index() else { return Step::None };
    let mut pattern: Vec<&str> = old.split('\n').collect();
    let ended = pattern.len() > 1 && pattern.last() == Some(&"");
    if ended {
        pattern.pop();
    }
    let keys: Vec<u64> = pattern.iter().map(|line| hashed(line.trim())).collect();
    let mut places = Places::default();
    let mut only = None;
    let mut work = 0_usize;
    let lines = (0..index.len()).map(|line| hashed(index.line(line).trim()));
    search::sequence(lines, &keys, |first| {
        let next = first + pattern.len();
        work += pattern.len();
        if work > WORK_LIMIT || (ended && next >= index.len()) {
            return;
        }
        if let Some(shift) = compare(&index, first, &pattern, reading) {
            places.push(index.start(first), KEPT);
            let stop = if ended { index.start(next) } else { index.stop(next - 1) };
            only.get_or_insert((index.start(first)..stop, shift));
        }
    });
    match (places.count, only) {
        (1, Some((span, shift))) if work <= WORK_LIMIT => {
            match (shift.text(old), shift.text(new)) {
                (Some(old), Some(new)) => Step::One(Candidate { span, old, new }),
                _ => Step::None,
            }
        }
        (0 | 1, _) | (_, None) => Step::None,
        _ => Step::Many(places),
    }
}

fn compare(
    index: &Index<'_>,
    first: usize,
    pattern: &[&str],
    reading: &Reading<'_>,
) -> Option<Shift> {
    let mut pairs = Vec::with_capacity(pattern.len());
    for (given, number) in pattern.iter().zip(first..) {
        let line = index.line(number);
        if given.trim() != line.trim() {
            return None;
        }
        if !given.trim().is_empty() {
            pairs.push((split(given).0, split(line).0));
        }
    }
    reading(&pairs)
}
