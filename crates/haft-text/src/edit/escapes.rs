//! Escapes that are written out where the file has the real characters.
//!
//! Invariant: an escape of the new text becomes real only where nothing speaks for it being meant as
//! it is written: else both readings are given back, and none is chosen.

use std::collections::BTreeSet;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::rebuild::{Origin, origins};
use super::tolerance::{Candidate, Step, rewritten};
use super::view::View;
use super::ways::Ways;
use crate::search::Places;

/// How an escape is written, and what it stands for.
type Escape = (&'static str, &'static str);

const QUOTE: Escape = ("\\\"", "\"");
const TICK: Escape = ("\\'", "'");
const BOTH: Escape = ("\\r\\n", "\n");
const END: Escape = ("\\n", "\n");
const TAB: Escape = ("\\t", "\t");

/// Which escapes are resolved, the mildest reading first.
const READINGS: [&[Escape]; 3] =
    [&[QUOTE, TICK], &[BOTH, END, TAB, QUOTE], &[("\\\\", "\\"), BOTH, END, TAB, QUOTE, TICK]];

/// What a reading of the new text is.
const ONE: &str = "new_text in one reading";
const OTHER: &str = "new_text in the other reading";

pub(super) fn literal(view: &View<'_>, old: &str, new: &str) -> Step {
    if !old.contains('\\') {
        return Step::None;
    }
    let mut found: Vec<Candidate> = Vec::new();
    for reading in READINGS {
        let parts = parts(old, reading);
        let real = resolved(&parts);
        if real == old || real.trim().is_empty() || mixes(&parts) {
            continue;
        }
        let fresh = self::parts(new, reading);
        match rewritten(view, real, resolved(&fresh), |_| true) {
            Step::One(candidate) => {
                // What is written out beside the same that is real may be meant so.
                if (breaks(&parts) && mixes(&fresh)) || mixes_quotes(&fresh) {
                    found.push(Candidate { new: new.to_owned(), ..candidate.clone() });
                } else {
                    let there = &view.text()[candidate.span.clone()];
                    let new = resolved(&certain(&parts, fresh, there));
                    found.push(Candidate { new, ..candidate.clone() });
                }
                found.push(candidate);
            }
            Step::None => {}
            step => return step,
        }
    }
    let Some(first) = found.first() else { return Step::None };
    let starts = found.iter().map(|candidate| candidate.span.start);
    let starts: Vec<usize> = starts.collect::<BTreeSet<_>>().into_iter().collect();
    if starts.len() > 1 {
        return Step::Many(Places { count: starts.len(), starts });
    }
    match found.iter().find(|other| other.new != first.new) {
        Some(other) => {
            let readings = vec![(ONE, first.new.clone()), (OTHER, other.new.clone())];
            Step::Unclear(first.span.start, Ways::new(&view.text()[first.span.clone()], readings))
        }
        None => Step::One(first.clone()),
    }
}

/// Whether a line end is written out; what a pair of backslashes stands before is none.
fn breaks(parts: &[Part<'_>]) -> bool {
    parts.iter().any(|part| part.real == Some("\n"))
}

/// Whether line ends are written out beside others that are real.
fn mixes(parts: &[Part<'_>]) -> bool {
    let is_real = |part: &Part<'_>| part.real.is_none() && part.written.contains('\n');
    breaks(parts) && parts.iter().any(is_real)
}

/// Whether a text has quotes with a backslash before them and quotes without.
fn mixes_quotes(parts: &[Part<'_>]) -> bool {
    let escaped = parts.iter().any(|part| part.real == Some("\""));
    escaped && parts.iter().any(|part| part.real.is_none() && part.written.contains('"'))
}

/// A word, a sign, or an escape.
#[derive(Clone, Copy)]
struct Part<'t> {
    written: &'t str,
    /// What it stands for, where it is one of the escapes of a reading.
    real: Option<&'static str>,
    /// The quote that it is or stands for.
    quote: Option<char>,
}

impl<'t> Part<'t> {
    fn new(written: &'t str, real: Option<&'static str>) -> Self {
        Self { written, real, quote: quote(real.unwrap_or(written)) }
    }

    fn means(&self) -> &'t str {
        self.real.unwrap_or(self.written)
    }

    fn first(&self) -> Option<char> {
        self.written.chars().next()
    }

    /// Whether it is or stands for a line end or a tab.
    fn is_blank_escape(&self) -> bool {
        matches!(self.real, Some("\n" | "\t"))
    }
}

fn parts<'t>(text: &'t str, reading: &[Escape]) -> Vec<Part<'t>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let plain = rest.find('\\').unwrap_or(rest.len());
        // An apostrophe may begin a string.
        let words = rest[..plain].split_word_bounds().flat_map(|word| {
            let pieces = word.split_inclusive('\'');
            pieces.flat_map(|piece| {
                let (text, tick) = piece.split_at(piece.len() - usize::from(piece.ends_with('\'')));
                [text, tick].into_iter().filter(|part| !part.is_empty())
            })
        });
        parts.extend(words.map(|written| Part::new(written, None)));
        rest = &rest[plain..];
        if rest.is_empty() {
            break;
        }
        let found = reading.iter().find(|(written, _)| rest.starts_with(written));
        // A pair of backslashes stays a pair: its second one begins nothing.
        let length = match found {
            Some((written, _)) => written.len(),
            None if rest.starts_with("\\\\") => 2,
            None => 1,
        };
        let (written, next) = rest.split_at(length);
        parts.push(Part::new(written, found.map(|found| found.1)));
        rest = next;
    }
    parts
}

fn resolved(parts: &[Part<'_>]) -> String {
    parts.iter().map(Part::means).collect()
}

/// The new text with all escapes as they are written that may be meant so; `there` is what the file
/// has in the place of the old one.
fn certain<'t>(old: &[Part<'_>], mut new: Vec<Part<'t>>, there: &str) -> Vec<Part<'t>> {
    let kinds: BTreeSet<&str> =
        old.iter().filter(|part| part.real.is_some()).map(|part| part.written).collect();
    let agrees = agreeing(old, &new);
    let mut quoted = self::quoted(&new);
    let written = lines(&new, &agrees, &quoted);
    if settle_quotes(&mut new, &written) {
        quoted = self::quoted(&new);
    }
    let known: BTreeSet<&str> = there.split('\n').collect();
    let mut stands = vec![false; new.len()];
    for line in lines(&new, &agrees, &quoted) {
        if is_crooked(&new[line.clone()]) {
            // What its quotes hold, and whether its ends are between some, nobody can tell.
            quoted[line.start.saturating_sub(1)..new.len().min(line.end + 1)].fill(true);
        }
        if new[line.clone()].iter().any(|part| part.real.is_some()) {
            let written: String = new[line.clone()].iter().map(|part| part.written).collect();
            stands[line].fill(known.contains(written.as_str()));
        }
    }
    let bare = |part: &Part<'_>| part.real.is_none() && part.written == "\"";
    let bare_quotes = old.iter().chain(&new).any(bare);
    // Who writes out what is escaped writes no backslash that stands for itself.
    let alone = new
        .iter()
        .zip(&agrees)
        .any(|(part, agrees)| !agrees && part.real.is_none() && part.written == "\\");
    let doubtful: Vec<bool> = (0..new.len())
        .map(|at| {
            let part = new[at];
            if part.real.is_none() || agrees[at] {
                return false;
            }
            match part.written {
                _ if stands[at] => true,
                "\\\"" => !kinds.contains("\\\"") && (bare_quotes || quoted[at]),
                _ if !kinds.contains(part.written) => true,
                _ if part.is_blank_escape() => alone || quoted[at] || is_path(&new, at),
                _ => false,
            }
        })
        .collect();
    for (part, doubtful) in new.iter_mut().zip(doubtful) {
        if doubtful {
            part.real = None;
        }
    }
    new
}

/// The lines of a text without their ends, be those real or escapes.
fn lines(parts: &[Part<'_>], agrees: &[bool], quoted: &[bool]) -> Vec<Range<usize>> {
    // A line end that the old text has between quotes too is in a string of more lines.
    let ends = |at: &usize| match parts[*at].real {
        Some(real) => real == "\n" && !(agrees[*at] && quoted[*at]),
        None => parts[*at].written.contains('\n'),
    };
    let mut lines = Vec::new();
    let mut start = 0;
    for end in (0..parts.len()).filter(ends).chain([parts.len()]) {
        lines.push(start..end);
        start = end + 1;
    }
    lines
}

/// Whether a line has a quote that may be none, or one of a string that begins or ends elsewhere.
fn is_crooked(line: &[Part<'_>]) -> bool {
    // A quote alone between two of the other kind is a text.
    let is_text = |at: usize| {
        let beside = at.checked_sub(1).and_then(|before| Some((&line[before], line.get(at + 1)?)));
        beside.is_some_and(|(before, after)| {
            let other = before.quote.filter(|other| matches!(other, '"' | '\''));
            other.is_some() && other != line[at].quote && other == after.quote
        })
    };
    let (mut double, mut ticks, mut single) = (0, 0, 0);
    for (at, part) in line.iter().enumerate().filter(|(at, _)| !is_text(*at)) {
        match part.quote {
            Some('"') => {
                let word = at.checked_sub(1).map_or("", |before| line[before].means());
                let begins = !word.ends_with(char::is_alphanumeric) || is_prefix(word);
                if double % 2 == 0 && !begins {
                    return true;
                }
                double += 1;
            }
            Some('`') => ticks += 1,
            Some('\'') if at >= single => {
                // One before a word may be that of a lifetime.
                let word = line.get(at + 1).and_then(Part::first).is_some_and(char::is_alphabetic);
                match opens(line, at).and_then(|quote| closing(line, at, quote)) {
                    Some(close) => single = close + 1,
                    None if opens(line, at).is_some() && !word => return true,
                    None => {}
                }
            }
            _ => {}
        }
    }
    double % 2 == 1 || ticks % 2 == 1
}

/// Whether a word before a quote says what string begins.
fn is_prefix(word: &str) -> bool {
    word.len() <= 2 && word.chars().all(|letter| "fFrRbBuULc".contains(letter))
}

/// Which parts of the new text the old one has too, with what is beside them.
fn agreeing(old: &[Part<'_>], new: &[Part<'_>]) -> Vec<bool> {
    let (count, fresh) = (old.len(), new.len());
    let olds: Vec<&str> = old.iter().map(|part| part.written).collect();
    let news: Vec<&str> = new.iter().map(|part| part.written).collect();
    let origins = origins(&olds, &news);
    let same = |at: usize| match origins[at] {
        Origin::Same(number) => Some(number),
        Origin::For(_) | Origin::Added => None,
    };
    (0..fresh)
        .map(|at| {
            let Some(number) = same(at) else { return false };
            let before = match at.checked_sub(1) {
                Some(before) => same(before).is_some_and(|before| before + 1 == number),
                None => number == 0,
            };
            let after =
                if at + 1 < fresh { same(at + 1) == Some(number + 1) } else { number + 1 == count };
            before && after
        })
        .collect()
}

/// Which parts stand between quotes: what ends a line is between none.
fn quoted(parts: &[Part<'_>]) -> Vec<bool> {
    let mut quoted = vec![false; parts.len()];
    let mut at = 0;
    while at < parts.len() {
        let close = opens(parts, at).and_then(|quote| closing(parts, at, quote));
        let Some(close) = close else {
            at += 1;
            continue;
        };
        quoted[at + 1..close].fill(true);
        at = close + 1;
    }
    quoted
}

/// The quote that a text is.
fn quote(text: &str) -> Option<char> {
    let mut characters = text.chars();
    let quote = characters.next().filter(|first| matches!(first, '"' | '\'' | '`' | '$' | '/'));
    quote.filter(|_| characters.next().is_none())
}

/// Takes quotes behind a backslash for none in lines where they make sense in no other way, as in
/// `"a\"b"`; in many a text a backslash stands for itself.
fn settle_quotes(parts: &mut [Part<'_>], lines: &[Range<usize>]) -> bool {
    let mut settled = false;
    for line in lines {
        if !is_crooked(&parts[line.clone()]) {
            continue;
        }
        let mut fresh = parts[line.clone()].to_vec();
        let mut slashes = 0;
        for part in &mut fresh {
            if slashes % 2 == 1 {
                part.quote = None;
            }
            let text = part.means();
            let only = text.bytes().all(|byte| byte == b'\\');
            slashes = if only { slashes + text.len() } else { 0 };
        }
        if !is_crooked(&fresh) {
            parts[line.clone()].copy_from_slice(&fresh);
            settled = true;
        }
    }
    settled
}

/// The quote that begins with a part.
fn opens(parts: &[Part<'_>], at: usize) -> Option<char> {
    let quote = parts[at].quote?;
    let before = at.checked_sub(1).map(|before| &parts[before]);
    let next = parts.get(at + 1)?;
    let goes_on = next.is_blank_escape() || !next.first().is_some_and(char::is_whitespace);
    match quote {
        '\'' => {
            // A letter before it makes it an apostrophe, unless it says what string that is.
            let word = before.filter(|part| part.real.is_none()).map_or("", |part| part.written);
            (is_prefix(word) || !word.ends_with(char::is_alphanumeric)).then_some(quote)
        }
        '$' => goes_on.then_some(quote),
        // A pattern begins behind a sign or a blank, a comment ends its line with one more of these.
        '/' => {
            let sign = |text: &str| text.ends_with([' ', '(', ',', '=', ':', '[', '!', '&', '|']);
            let begins = before.is_none_or(|part| part.real.is_none() && sign(part.written));
            (begins && next.is_blank_escape()).then_some(quote)
        }
        _ => Some(quote),
    }
}

/// Where the quote ends that begins with a part, on the same line.
fn closing(parts: &[Part<'_>], from: usize, wanted: char) -> Option<usize> {
    for (at, part) in parts.iter().enumerate().skip(from + 1) {
        if part.real.is_none() && part.written.contains('\n') {
            return None;
        }
        if part.quote != Some(wanted) {
            continue;
        }
        let after = parts.get(at + 1).filter(|part| part.real.is_none()).and_then(Part::first);
        let before = &parts[at - 1];
        let alone = !after.is_some_and(char::is_alphanumeric);
        let ends = match wanted {
            '\'' => alone,
            // TeX ends with a sign behind a letter; a name of a variable begins with one.
            '$' => {
                let blank = before.real.is_none() && before.written.ends_with(char::is_whitespace);
                let escape = before.is_blank_escape() && at - 1 > from + 1;
                alone && !blank && !escape
            }
            _ => true,
        };
        if ends {
            return Some(at);
        }
    }
    None
}

/// Whether an escape stands right behind the letter of a drive: `C:\new`.
fn is_path(parts: &[Part<'_>], at: usize) -> bool {
    let plain = |back: usize| {
        let part = parts.get(at.checked_sub(back)?)?;
        part.real.is_none().then_some(part.written)
    };
    let letter = |word: &str| word.len() == 1 && word.chars().all(|one| one.is_ascii_uppercase());
    plain(1) == Some(":") && plain(2).is_some_and(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_mildest_first() {
        let resolved = |text, reading| resolved(&parts(text, reading));
        assert_eq!(resolved(r#"a\"b\n"#, READINGS[0]), "a\"b\\n");
        assert_eq!(resolved(r"a\tb\\n", READINGS[1]), "a\tb\\\\n");
        assert_eq!(resolved(r"a\\nb\n", READINGS[2]), "a\\nb\n");
    }
}
