//! Whole lines that differ in their indentation alone, in the same way on every line.
//!
//! Invariant: the difference is read from all lines that are not blank, never from the first only.
//! The new text goes through the very same change where its own indentation speaks for that, stays as
//! it is where that speaks for it, and else nothing is guessed. Blanks at the ends of lines are no
//! evidence against. Places that are equal but for their indentation are candidates together,
//! whatever indentation they have.

use std::iter;
use std::ops::Range;

use super::fold::hashed;
use super::tolerance::{Candidate, Step};
use super::view::{Index, View};
use super::votes::{self, Line, Meaning};
use super::ways::{AS_GIVEN, Ways};
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
        if bare(line).is_empty() {
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

/// The name of the tolerance of a text that is indented more or less.
pub(super) const SHIFTED: &str = "indentation";

/// What a reading of the new text is.
const ALIKE: &str = "new_text with its indentation changed as that of old_text";
const STEPPED: &str = "new_text with one step of its indentation for each level of the file";

const fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

/// A line without its indentation and the blanks at its end.
fn bare(line: &str) -> &str {
    line.trim_matches(is_blank)
}

/// Finds lines indented more or less than given.
pub(super) fn shifted(view: &View<'_>, old: &str, new: &str) -> Step {
    find(view, old, new, &by_the_same)
}

/// Finds lines indented with tabs where spaces are given, or the other way round.
pub(super) fn converted(view: &View<'_>, old: &str, new: &str) -> Step {
    find(view, old, new, &by_width)
}

fn by_the_same(pairs: &[(&str, &str)]) -> Option<Shift> {
    let (given, file) = pairs.first()?;
    let shift = if let Some(more) = file.strip_suffix(given) {
        Shift::Add(more.to_owned())
    } else {
        Shift::Remove(given.strip_suffix(file)?.to_owned())
    };
    fits(&shift, pairs)
}

fn by_width(pairs: &[(&str, &str)]) -> Option<Shift> {
    [4, 2, 8, 3, 1, 6, 5, 7]
        .into_iter()
        .flat_map(|width| [Shift::Tabs(width), Shift::Spaces(width)])
        .find_map(|shift| fits(&shift, pairs))
}

/// Two readings of a new text, where the old one is of one line and begins inside its indentation:
/// what the line has before it may belong before all further lines, too. None where that is not so,
/// or there are none.
pub(super) struct Inside {
    /// The new text with its further lines indented as much more.
    pub(super) shifted: String,
    pub(super) ways: Ways,
}

/// Looks at an old text at an offset of the view.
pub(super) fn inside(view: &View<'_>, start: usize, old: &str, new: &str) -> Option<Inside> {
    let line = old.strip_suffix('\n').unwrap_or(old);
    let given = split(line).0;
    if line.contains('\n') || given.is_empty() || bare(line).is_empty() {
        return None;
    }
    let more = view.before(start);
    if more.is_empty() || !more.chars().all(is_blank) {
        return None;
    }
    let (first, rest) = new.split_once('\n')?;
    if bare(first).is_empty() || split(first).0 != given {
        return None;
    }
    let rest = Some(Shift::Add(more.to_owned()).text(rest)?).filter(|shifted| shifted != rest)?;
    let shifted = format!("{first}\n{rest}");
    let there = &view.text()[start - more.len()..start + old.len()];
    let readings = vec![(AS_GIVEN, format!("{more}{new}")), (ALIKE, format!("{more}{shifted}"))];
    Some(Inside { ways: Ways::new(there, readings), shifted })
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

type Reading = dyn Fn(&[(&str, &str)]) -> Option<Shift>;

fn find(view: &View<'_>, old: &str, new: &str, reading: &Reading) -> Step {
    let Some(index) = view.index() else { return Step::None };
    let mut pattern: Vec<&str> = old.split('\n').collect();
    let ended = pattern.len() > 1 && pattern.last() == Some(&"");
    if ended {
        pattern.pop();
    }
    let keys: Vec<u64> = pattern.iter().map(|line| hashed(bare(line))).collect();
    let mut places = Places::default();
    let mut only = None;
    // Whether there is a place of which a tolerance about indentation tells how it differs.
    let mut told = false;
    let mut work = 0_usize;
    let lines = (0..index.len()).map(|line| hashed(bare(index.line(line))));
    search::sequence(lines, &keys, |first| {
        let next = first + pattern.len();
        work += pattern.len();
        if work > WORK_LIMIT || (ended && next >= index.len()) {
            return;
        }
        if let Some(pairs) = indentations(&index, first, &pattern) {
            places.push(index.start(first), KEPT);
            told = told || by_the_same(&pairs).is_some() || by_width(&pairs).is_some();
            let stop = if ended { index.start(next) } else { index.stop(next - 1) };
            if only.is_none() {
                only = reading(&pairs).map(|shift| (index.start(first)..stop, first, shift));
            }
        }
    });
    match (places.count, only) {
        (1, Some((span, first, shift))) if work <= WORK_LIMIT => {
            let there = (first..).map(|line| index.line(line));
            read(view, span, &compared(&pattern, there), &shift, (old, new))
        }
        (0 | 1, _) => Step::None,
        _ if told => Step::Many(places),
        _ => Step::None,
    }
}

/// The lines that are not blank, each with its indentation there.
fn compared<'t>(texts: &[&'t str], there: impl Iterator<Item = &'t str>) -> Vec<Line<'t>> {
    let both = texts.iter().copied().zip(there).filter(|(text, _)| !bare(text).is_empty());
    both.map(|(text, there)| Line { bare: bare(text), indent: split(text).0, file: split(there).0 })
        .collect()
}

/// Reads the new text where the old one is indented otherwise than the lines at a span.
fn read(
    view: &View<'_>,
    span: Range<usize>,
    lines: &[Line<'_>],
    shift: &Shift,
    (old, new): (&str, &str),
) -> Step {
    let texts: Vec<&str> = new.split('\n').collect();
    let fresh = compared(&texts, iter::repeat(""));
    let Some(old) = shift.text(old) else { return Step::None };
    let new = match (votes::decide(lines, &fresh), shift.text(new)) {
        (Some(Meaning::Written), _) => new.to_owned(),
        (Some(Meaning::Shifted), Some(shifted)) => shifted,
        (None, Some(shifted)) => {
            let mut readings = vec![(AS_GIVEN, new.to_owned()), (ALIKE, shifted)];
            let stepped = votes::stepped(lines, &fresh, new);
            readings.extend(stepped.map(|text| (STEPPED, text)));
            if readings.iter().any(|reading| reading.1 != new) {
                return Step::Unclear(span.start, Ways::new(&view.text()[span], readings));
            }
            new.to_owned()
        }
        (_, None) => return Step::None,
    };
    Step::One(Candidate { span, old, new })
}

/// The indentations asked for and those of the file, of all lines that are not blank; none where
/// lines differ in anything else.
fn indentations<'t>(
    index: &Index<'t>,
    first: usize,
    pattern: &[&'t str],
) -> Option<Vec<(&'t str, &'t str)>> {
    let mut pairs = Vec::with_capacity(pattern.len());
    for (given, number) in pattern.iter().zip(first..) {
        let line = index.line(number);
        if bare(given) != bare(line) {
            return None;
        }
        if !bare(given).is_empty() {
            pairs.push((split(given).0, split(line).0));
        }
    }
    Some(pairs)
}
