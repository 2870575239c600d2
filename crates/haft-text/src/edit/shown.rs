//! Characters written as answers show them, `\u{200d}`, where the file has the characters.
//!
//! Invariant: only characters that answers never show as themselves are read so, and each of them is
//! there as itself or as it is written. In the new text one becomes real only where the old text
//! has the same and the file had it real; where the file has both, both readings are given back.

use std::collections::BTreeMap;
use std::ops::Range;

use memchr::memmem;

use super::tolerance::{Candidate, Step};
use super::view::View;
use super::ways::Ways;
use crate::names;
use crate::search::Places;

/// The name of this tolerance.
pub(super) const NAME: &str = "characters as shown";
/// What the readings of a new text are.
const THEMSELVES: &str = "new_text with the characters themselves";
const WRITTEN: &str = "new_text with the characters written as answers show them";
/// Places that are kept.
const KEPT: usize = 32;
/// Places of the longest plain part that are looked at.
const LOOKED: usize = 100_000;

/// A stretch of a text: plain, or a character as answers show it.
#[derive(Clone, Copy)]
struct Part<'t> {
    written: &'t str,
    real: Option<char>,
}

/// How the file has a character that the old text writes so: as itself, or written.
#[derive(Clone, Copy, Default)]
struct Spelling {
    real: bool,
    written: bool,
}

pub(super) fn characters(view: &View<'_>, old: &str, new: &str) -> Step {
    let mut parts = parts(old);
    if !parts.iter().any(|part| part.real.is_some()) {
        return Step::None;
    }
    // The mark of the file is kept apart from its text.
    let (mut new, mut marked) = (new, false);
    if parts.first().is_some_and(|part| part.real == Some('\u{feff}')) {
        let rest = &old[parts[0].written.len()..];
        if view.begins_marked(&format!("\u{feff}{}", meant(&self::parts(rest)))) {
            parts.remove(0);
            marked = true;
            new = new.strip_prefix(r"\u{feff}").unwrap_or(new);
        }
    }
    let mut places = Places::default();
    let mut only = None;
    let starts = if marked { vec![0] } else { starts(view.text(), &parts) };
    for start in starts {
        let found = matched(view.text(), start, &parts);
        let is_real = |ways: &BTreeMap<char, Spelling>| marked || ways.values().any(|way| way.real);
        if let Some(found) = found.filter(|(_, ways)| is_real(ways)) {
            places.push(start, KEPT);
            only.get_or_insert(found);
        }
    }
    match (places.count, only) {
        (0, _) | (_, None) => Step::None,
        (1, Some((span, ways))) => {
            let real = replaced(new, |ways| ways.real, &ways);
            let sure = replaced(new, |ways| ways.real && !ways.written, &ways);
            let old = view.text()[span.clone()].to_owned();
            if real == sure {
                Step::One(Candidate { span, old, new: real })
            } else {
                let readings = vec![(THEMSELVES, real), (WRITTEN, sure)];
                Step::Unclear(span.start, Ways::new(&old, readings))
            }
        }
        _ => Step::Many(places),
    }
}

fn meant(parts: &[Part<'_>]) -> String {
    parts.iter().fold(String::new(), |mut text, part| {
        match part.real {
            Some(real) => text.push(real),
            None => text.push_str(part.written),
        }
        text
    })
}

/// Splits a text at the characters that are written as answers show them.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut plain, mut at) = (0, 0);
    while let Some(next) = memchr::memchr(b'\\', &text.as_bytes()[at..]) {
        let start = at + next;
        let Some((length, real)) = escape(&text[start..]) else {
            // A backslash that is written twice stands for one, and begins nothing.
            at = start + if text[start + 1..].starts_with('\\') { 2 } else { 1 };
            continue;
        };
        if plain < start {
            parts.push(Part { written: &text[plain..start], real: None });
        }
        (plain, at) = (start + length, start + length);
        parts.push(Part { written: &text[start..at], real: Some(real) });
    }
    if plain < text.len() {
        parts.push(Part { written: &text[plain..], real: None });
    }
    parts
}

/// The character that a text begins with as answers show it, and how long that is.
fn escape(text: &str) -> Option<(usize, char)> {
    let digits = text.strip_prefix(r"\u{")?.split_once('}')?.0;
    let proper = (1..=6).contains(&digits.len()) && digits.bytes().all(|it| it.is_ascii_hexdigit());
    let real = char::from_u32(u32::from_str_radix(digits, 16).ok().filter(|_| proper)?)?;
    names::is_escaped(real).then_some((digits.len() + 4, real))
}

/// Where the parts may begin: before the places of the longest plain one, or of a character.
fn starts(text: &str, parts: &[Part<'_>]) -> Vec<usize> {
    let plain = (0..parts.len()).filter(|at| parts[*at].real.is_none());
    let Some(longest) = plain.max_by_key(|at| parts[*at].written.len()) else {
        let Some(first) = parts.first() else { return Vec::new() };
        let real = first.real.unwrap_or_default().to_string();
        let both = [&*real, first.written].map(|text_of| {
            memmem::find_iter(text.as_bytes(), text_of.as_bytes()).take(LOOKED).collect::<Vec<_>>()
        });
        return both.concat();
    };
    let before = &parts[..longest];
    let found = memmem::find_iter(text.as_bytes(), parts[longest].written.as_bytes());
    let back = |stop: usize| {
        before.iter().rev().try_fold(stop, |stop, part| {
            let head = &text[..stop];
            let real = part.real.and_then(|real| head.strip_suffix(real));
            Some(real.or_else(|| head.strip_suffix(part.written))?.len())
        })
    };
    found.take(LOOKED).filter_map(back).collect()
}

/// The stretch that begins at an offset and is the parts, and how each character stands there.
fn matched(
    text: &str,
    start: usize,
    parts: &[Part<'_>],
) -> Option<(Range<usize>, BTreeMap<char, Spelling>)> {
    let mut ways: BTreeMap<char, Spelling> = BTreeMap::new();
    let mut rest = text.get(start..)?;
    for part in parts {
        let Some(real) = part.real else {
            rest = rest.strip_prefix(part.written)?;
            continue;
        };
        let way = ways.entry(real).or_default();
        rest = if let Some(rest) = rest.strip_prefix(real) {
            way.real = true;
            rest
        } else {
            way.written = true;
            rest.strip_prefix(part.written)?
        };
    }
    Some((start..text.len() - rest.len(), ways))
}

/// The new text with those characters real that the file has in a way.
fn replaced(
    new: &str,
    is_real: impl Fn(Spelling) -> bool,
    ways: &BTreeMap<char, Spelling>,
) -> String {
    let mut out = String::with_capacity(new.len());
    for part in parts(new) {
        match part.real.filter(|real| ways.get(real).is_some_and(|ways| is_real(*ways))) {
            Some(real) => out.push(real),
            None => out.push_str(part.written),
        }
    }
    out
}
