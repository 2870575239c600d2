//! The differences that are tolerated when a text is nowhere exactly: a table of named steps, tried
//! in order, the first that finds anything decides.
//!
//! Invariant: each step maps back to an exact span of the view, has evidence for every line of the
//! old text, demands one place only, and never takes more lines than were asked for. A line that
//! differs in substance and a middle left out match under no step.

use std::ops::{Range, RangeInclusive};

use super::{
    escapes,
    fold::{self, Blanks, Forms},
    indent, shown, spelling,
    view::View,
    ways::{AS_GIVEN, Ways},
};
use crate::search::{self, Places};

/// Places of a rewritten text that are looked at.
const KEPT: usize = 1000;

/// Where an old text is under a tolerance, and what both texts are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Span of the view.
    pub(crate) span: Range<usize>,
    /// The old text as it is meant there; as many lines as the span.
    pub(crate) old: String,
    /// The new text as it is meant there.
    pub(crate) new: String,
}

/// What a step found.
pub(crate) enum Step {
    None,
    One(Candidate),
    Many(Places),
    /// One place, at this offset of the view, but a new text with two readings.
    Unclear(usize, Ways),
}

/// What the table found.
pub(crate) enum Outcome {
    None,
    One { candidate: Candidate, name: &'static str },
    Many { places: Places, name: &'static str },
    Unclear { at: usize, ways: Ways, name: &'static str },
}

/// One tolerated difference.
#[derive(Debug)]
pub struct Tolerance {
    /// Its name, as receipts give it.
    pub name: &'static str,
    /// What it lets pass, as a phrase.
    pub meaning: &'static str,
    find: fn(&View<'_>, &str, &str) -> Step,
}

/// The name of the tolerance of other forms of characters.
pub(super) const FORMS: &str = "Unicode forms";

/// All tolerances in the order in which they are tried.
pub static TOLERANCES: [Tolerance; 8] = [
    Tolerance {
        name: "trailing blanks",
        meaning: "spaces and tabs at the ends of lines",
        find: trailing_blanks,
    },
    Tolerance {
        name: "blank lines at the ends",
        meaning: "blank lines before and after the text, and a final line end",
        find: blank_ends,
    },
    Tolerance {
        name: FORMS,
        meaning: "composed forms, ligatures, full width, curly quotes, dashes, odd spaces",
        find: unicode_forms,
    },
    Tolerance {
        name: indent::SHIFTED,
        meaning: "the same indentation more or less on every line; the new text as it is, or shifted alike",
        find: indent::shifted,
    },
    Tolerance {
        name: "tabs and spaces",
        meaning: "tabs for spaces in the indentation or the other way round; the new text as it is, or alike",
        find: indent::converted,
    },
    Tolerance {
        name: "line number prefixes",
        meaning: "line numbers pasted from the output of read",
        find: number_prefixes,
    },
    Tolerance {
        name: shown::NAME,
        meaning: r"`\u{200d}` and the like, as answers show characters that nobody sees",
        find: shown::characters,
    },
    Tolerance {
        name: "literal escapes",
        meaning: r#"`\n`, `\t` and `\"` written out where real characters are meant"#,
        find: escapes::literal,
    },
];

/// Tries the table on texts with LF only.
pub(crate) fn search(view: &View<'_>, old: &str, new: &str) -> Outcome {
    if old.trim().is_empty() {
        return Outcome::None;
    }
    for tolerance in &TOLERANCES {
        let name = tolerance.name;
        match (tolerance.find)(view, old, new) {
            Step::Many(places) => return Outcome::Many { places, name },
            Step::Unclear(at, ways) => return Outcome::Unclear { at, ways, name },
            Step::One(candidate) if sound(view, &candidate, old) => {
                return Outcome::One { candidate, name };
            }
            Step::None | Step::One(_) => {}
        }
    }
    Outcome::None
}

/// The guard over all steps: no more lines than asked for, and each has its counterpart.
fn sound(view: &View<'_>, candidate: &Candidate, old: &str) -> bool {
    let Some(text) = view.text().get(candidate.span.clone()) else { return false };
    let breaks = |text: &str| memchr::memchr_iter(b'\n', text.as_bytes()).count();
    let asked = if old.contains('\n') { breaks(old) } else { breaks(&candidate.old) };
    !text.is_empty() && breaks(text) <= asked && breaks(text) == breaks(&candidate.old)
}

fn trailing_blanks(view: &View<'_>, old: &str, new: &str) -> Step {
    fold::find(view, &Blanks, old, new)
}

/// What a reading of the new text is.
const QUOTES_STAY: &str = "new_text with the quotes that it brings in as they are";
const QUOTES_TURN: &str = "new_text with quotes as the file has them";

fn unicode_forms(view: &View<'_>, old: &str, new: &str) -> Step {
    match fold::find(view, &Forms, old, new) {
        Step::One(Candidate { span, old, new }) => {
            let there = view.text()[span.clone()].to_owned();
            let respelled = spelling::respelled(&there, &old, &new);
            let mixed = spelling::mixed_quotes(&new, &respelled);
            if let Some(quoted) =
                spelling::requoted(view.text(), &there, (&old, &respelled), &mixed)
            {
                let stay = if mixed.is_empty() { respelled } else { new };
                let readings = vec![(QUOTES_STAY, stay), (QUOTES_TURN, quoted)];
                return Step::Unclear(span.start, Ways::new(&there, readings));
            }
            Step::One(Candidate { span, old: there, new: respelled })
        }
        step => step,
    }
}

/// Finds rewritten texts exactly, at places that `fits` accepts.
pub(super) fn rewritten(
    view: &View<'_>,
    old: String,
    new: String,
    fits: impl Fn(&Range<usize>) -> bool,
) -> Step {
    let mut places = search::text(view.text().as_bytes(), old.as_bytes(), KEPT);
    if !places.complete() {
        return Step::Many(places);
    }
    places.starts.retain(|start| fits(&(*start..*start + old.len())));
    places.count = places.starts.len();
    match *places.starts {
        [] => Step::None,
        [start] => Step::One(Candidate { span: start..start + old.len(), old, new }),
        _ => Step::Many(places),
    }
}

fn blank_ends(view: &View<'_>, old: &str, new: &str) -> Step {
    let (head, core, tail) = bare(old);
    if (head == 0 && tail == 0) || core.is_empty() {
        return Step::None;
    }
    let fresh = drop_blank_lines(new, head, tail);
    let step = rewritten(view, core.to_owned(), fresh.to_owned(), |span| {
        (head == 0 || view.starts_line(span.start)) && (tail == 0 || view.ends_line(span.end))
    });
    match step {
        Step::One(candidate) if new.is_empty() => {
            Step::One(with_line_end(view, candidate, head > 0, tail > 0))
        }
        step => step,
    }
}

/// Lines that are taken away take one of the line ends along that were asked for around them.
fn with_line_end(view: &View<'_>, mut candidate: Candidate, head: bool, tail: bool) -> Candidate {
    let text = view.text().as_bytes();
    let (start, end) = (candidate.span.start, candidate.span.end);
    if tail && text.get(end) == Some(&b'\n') {
        candidate.span.end += 1;
        candidate.old.push('\n');
    } else if head && start > 0 && text[start - 1] == b'\n' {
        candidate.span.start -= 1;
        candidate.old.insert(0, '\n');
    }
    candidate
}

/// Splits off blank lines: how many come first, the text between, how many follow.
fn bare(text: &str) -> (usize, &str, usize) {
    let mut core = text;
    let (mut head, mut tail) = (0, 0);
    while let Some((line, rest)) = core.split_once('\n')
        && line.trim().is_empty()
    {
        core = rest;
        head += 1;
    }
    while let Some((rest, line)) = core.rsplit_once('\n')
        && line.trim().is_empty()
    {
        core = rest;
        tail += 1;
    }
    (head, core, tail)
}

/// Drops as many blank lines from the ends of the new text as were dropped from the old one.
fn drop_blank_lines(text: &str, head: usize, tail: usize) -> &str {
    let mut core = text;
    for _ in 0..head {
        match core.split_once('\n') {
            Some((line, rest)) if line.trim().is_empty() => core = rest,
            _ => break,
        }
    }
    for _ in 0..tail {
        match core.rsplit_once('\n') {
            Some((rest, line)) if line.trim().is_empty() => core = rest,
            _ => break,
        }
    }
    core
}

/// What listings put between a line's number and its text.
const SEPARATORS: [&str; 8] = ["\t", "→", ": ", ":", "| ", "|", "  ", DIFF];
/// What the diff in an answer of edit puts there; a line that came has a sign in it.
const DIFF: &str = "   ";

fn number_prefixes(view: &View<'_>, old: &str, new: &str) -> Step {
    for separator in SEPARATORS {
        let Some((bare_old, first)) = unnumbered(old, separator) else { continue };
        let last = first + old.trim_end_matches('\n').matches('\n').count();
        let Some((bare_new, clear)) = unnumbered_new(new, separator, first..=last) else {
            continue;
        };
        if bare_old.trim().is_empty() {
            continue;
        }
        // One number alone may be text: it must be the number of the very line.
        let single = first == last;
        // A number with nothing after it says that its line has nothing more.
        let ends = !old.ends_with('\n') && last_line(&bare_old).trim().is_empty();
        let begins = |span: &Range<usize>| {
            view.starts_line(span.start) && (!single || view.number(span.start) == first)
        };
        // The last line of a file may have no end, which a listing does not show.
        let open = bare_old.strip_suffix('\n').filter(|_| !view.text().ends_with('\n'));
        let at_end = open.filter(|text| view.text().ends_with(text));
        if let Some(text) = at_end {
            let span = view.text().len() - text.len()..view.text().len();
            let fresh = bare_new.strip_suffix('\n').unwrap_or(&bare_new);
            if begins(&span) && view.number(span.start) == first {
                if !clear {
                    return Step::Unclear(span.start, numbered_or_not(text, fresh, new));
                }
                let (old, new) = (text.to_owned(), fresh.to_owned());
                return Step::One(Candidate { span, old, new });
            }
        }
        let step = rewritten(view, bare_old.clone(), bare_new.clone(), |span| {
            begins(span) && (!ends || view.ends_line(span.end))
        });
        let start = match step {
            Step::None => continue,
            Step::One(candidate) => candidate.span.start,
            Step::Many(places) if places.complete() => {
                // The number itself says which place is meant.
                let start = places.starts.iter().find(|start| view.number(**start) == first);
                let Some(start) = start.copied() else { return Step::Many(places) };
                start
            }
            step => return step,
        };
        if !clear {
            return Step::Unclear(start, numbered_or_not(&bare_old, &bare_new, new));
        }
        let span = start..start + bare_old.len();
        return Step::One(Candidate { span, old: bare_old, new: bare_new });
    }
    Step::None
}

/// A new text of whose numbers nobody can tell whether they are text.
fn numbered_or_not(old: &str, bare: &str, new: &str) -> Ways {
    let without = ("new_text without the numbers", bare.to_owned());
    Ways::new(old, vec![without, (AS_GIVEN, new.to_owned())])
}

/// Splits `   12<separator>text`; none without a number.
fn numbered<'t>(line: &'t str, separator: &str) -> Option<(usize, &'t str)> {
    let line = line.trim_start_matches(' ');
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let number = line.get(..digits)?.parse().ok()?;
    let rest = &line[digits..];
    let came = || rest.strip_prefix(" + ").filter(|_| separator == DIFF);
    Some((number, rest.strip_prefix(separator).or_else(came)?))
}

/// The same for a line that may have lost the blank after its number.
fn numbered_bare<'t>(line: &'t str, separator: &str) -> Option<(usize, &'t str)> {
    numbered(line, separator).or_else(|| {
        let (number, rest) = numbered(line, separator.trim_end())?;
        rest.trim_matches([' ', '\t']).is_empty().then_some((number, ""))
    })
}

fn last_line(text: &str) -> &str {
    text.rsplit_once('\n').map_or(text, |(_, last)| last)
}

/// Strips numbers that count up by one on every line; a final empty line needs none.
fn unnumbered(text: &str, separator: &str) -> Option<(String, usize)> {
    let mut first = None;
    let mut out = String::with_capacity(text.len());
    let count = text.split('\n').count();
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            out.push('\n');
        }
        if at > 0 && at + 1 == count && line.is_empty() {
            break;
        }
        let (number, rest) = numbered_bare(line, separator)?;
        let start = *first.get_or_insert(number);
        if number != start.checked_add(at)? {
            return None;
        }
        out.push_str(rest);
    }
    first.map(|first| (out, first))
}

/// Strips numbers from the new text: from every line that is not blank, or from none; one that has
/// nothing after it must be the next. Numbers on some lines only give none, since nobody can tell
/// which are text. Tells too whether the numbers are those of the old text, or go on from there:
/// others may be text.
fn unnumbered_new(
    text: &str,
    separator: &str,
    old: RangeInclusive<usize>,
) -> Option<(String, bool)> {
    if text.split('\n').all(|line| numbered(line, separator).is_none()) {
        return Some((text.to_owned(), true));
    }
    let (mut clear, mut before) = (true, *old.start());
    let lines: Option<Vec<&str>> = text
        .split('\n')
        .enumerate()
        .map(|(at, line)| match numbered_bare(line, separator) {
            Some((number, rest)) => {
                let follows = before.checked_add(1) == Some(number);
                let next = follows || (at == 0 && number == before);
                if !next && numbered(line, separator).is_none() {
                    return None;
                }
                clear &= number >= before && (old.contains(&number) || follows);
                before = number;
                Some(rest)
            }
            None => line.trim().is_empty().then_some(line),
        })
        .collect();
    lines.map(|lines| (lines.join("\n"), clear))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_must_count_up() {
        assert_eq!(unnumbered("  9\ta\n 10\tb\n", "\t"), Some(("a\nb\n".to_owned(), 9)));
        assert_eq!(unnumbered("9\ta\n11\tb", "\t"), None);
        assert_eq!(unnumbered("7: x\n8:", ": "), Some(("x\n".to_owned(), 7)));
    }

    #[test]
    fn blank_lines_are_split_off() {
        assert_eq!(bare("\n \na\nb\n\n"), (2, "a\nb", 2));
        assert_eq!(drop_blank_lines("\nx\n", 1, 3), "x");
        assert_eq!(bare("a"), (0, "a", 0));
    }
}
