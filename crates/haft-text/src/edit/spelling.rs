//! Writes the new text in the characters of the file, where the matched old text was written in
//! other forms of them.
//!
//! **Invariant:** where the old and the new text agree, also within lines, the file's own
//! characters stay. Elsewhere, a character that is not plain is written as the file writes it
//! wherever the old text has it. If the file has no single way, it stays as it is; plain ones stay.
//! Quotes that the file has nowhere, brought in beside others that slipped, may be meant either
//! way.

use std::collections::HashMap;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::{
    fold,
    rebuild::{Origin, origins},
};

/// Writes `new` in the characters of `there`, whose lines fold as those of `old` do.
pub(super) fn respelled(there: &str, old: &str, new: &str) -> String {
    let file = Spelling::of(there, old);
    let (lines, fresh): (Vec<&str>, Vec<&str>) =
        (old.split('\n').collect(), new.split('\n').collect());
    let origins = origins(&lines, &fresh);
    let mut starts = vec![0];
    starts.extend(old.match_indices('\n').map(|(at, _)| at + 1));
    let mut out: Vec<String> = Vec::with_capacity(fresh.len());
    let (mut number, mut done) = (0, 0);
    while number < fresh.len() {
        if let Origin::Same(line) = origins[number] {
            let range = starts[line]..starts[line] + lines[line].len();
            out.push(file.of_range(range).unwrap_or(fresh[number]).to_owned());
            (number, done) = (number + 1, line + 1);
            continue;
        }
        // All lines between two that stay, on both sides.
        let count =
            origins[number..].iter().take_while(|it| !matches!(it, Origin::Same(_))).count();
        let next = match origins.get(number + count) {
            Some(Origin::Same(line)) => *line,
            _ => lines.len(),
        };
        let text = fresh[number..number + count].join("\n");
        let before = lines[done..next].join("\n");
        out.push(file.words(&before, starts.get(done).map_or(old.len(), |at| *at), &text));
        (number, done) = (number + count, next);
    }
    out.join("\n")
}

/// The characters that a text brings in, each once, that only look like plain ones and are not in
/// what it replaces.
pub(super) fn brought(there: &str, text: &str) -> Vec<char> {
    let mut brought: Vec<char> = Vec::new();
    for character in text.chars().filter(|character| fold::is_lookalike(*character)) {
        if !brought.contains(&character) && !there.contains(character) {
            brought.push(character);
        }
    }
    brought
}

/// The kinds of quotes that a new text has in one form in a line and the respelled one in several:
/// some were paired with those of the file, the others were not. In lines of their own both forms may
/// be right, as in code and the prose of its comments.
pub(super) fn mixed_quotes(new: &str, respelled: &str) -> Vec<char> {
    let forms = |line: &str, kind: char| {
        let quotes = line.chars().filter(|character| fold::plain(*character) == kind);
        let (plain, other): (Vec<char>, Vec<char>) = quotes.partition(|quote| *quote == kind);
        (!plain.is_empty(), !other.is_empty())
    };
    let is_mixed = |kind: &char| {
        new.split('\n').zip(respelled.split('\n')).any(|(new, respelled)| {
            forms(new, *kind) == (true, false) && forms(respelled, *kind) == (true, true)
        })
    };
    ['"', '\''].into_iter().filter(is_mixed).collect()
}

/// Writes the quotes that a new text brings in as the file does; `there` is what the file has for the
/// old text. None where that is nothing else, or where quotes of that kind did not slip in the old
/// text: then they are meant as they are. Those of `mixed` kinds are all taken as brought in.
pub(super) fn requoted(
    file: &str,
    there: &str,
    (old, new): (&str, &str),
    mixed: &[char],
) -> Option<String> {
    let mut out = new.to_owned();
    for kind in ['"', '\''] {
        let is_kind = |character: &char| fold::plain(*character) == kind;
        if there.chars().filter(is_kind).eq(old.chars().filter(is_kind)) {
            continue;
        }
        let ways = quotes(there).filter(|(_, quote)| is_kind(quote)).collect::<Vec<_>>();
        let way = |opens: bool| {
            let alike = ways.iter().find(|way| way.0 == opens);
            alike.or(ways.first()).map(|way| way.1)
        };
        let mut known: HashMap<char, bool> = HashMap::new();
        let written = quotes(&out).map(|(opens, character)| {
            let has = || match character {
                // Who types one of these plainly may type the other so.
                '"' | '\'' => !mixed.contains(&kind) && file.contains(['"', '\'']),
                _ => file.contains(character),
            };
            let brought = is_kind(&character) && !*known.entry(character).or_insert_with(has);
            if brought { way(opens).unwrap_or(character) } else { character }
        });
        out = written.collect();
    }
    (out != new).then_some(out)
}

/// The characters of a text, each with whether a quote would open there.
fn quotes(text: &str) -> impl Iterator<Item = (bool, char)> {
    let mut before = ' ';
    text.chars().map(move |character| {
        let opens = before.is_whitespace() || "([{<=-/\u{2013}\u{2014}".contains(before);
        before = character;
        (opens, character)
    })
}

/// How the file writes what the old text says.
struct Spelling<'t> {
    there: &'t str,
    /// Offsets in the old text and in the file's, where both part.
    bounds: Vec<(usize, usize)>,
    /// How the file writes what is not plain in the old text; none where it does in several ways.
    ways: HashMap<&'t str, Option<&'t str>>,
}

impl<'t> Spelling<'t> {
    fn of(there: &'t str, old: &'t str) -> Self {
        let (mut bounds, mut at, mut at_there) = (Vec::new(), 0, 0);
        for (one, other) in old.split('\n').zip(there.split('\n')) {
            let line = fold::boundaries(one, other);
            bounds.extend(line.into_iter().map(|(one, other)| (at + one, at_there + other)));
            (at, at_there) = (at + one.len() + 1, at_there + other.len() + 1);
        }
        let mut ways = HashMap::new();
        for pair in bounds.windows(2) {
            let (one, other) = (&old[pair[0].0..pair[1].0], &there[pair[0].1..pair[1].1]);
            if !one.is_ascii() {
                let way = ways.entry(one).or_insert(Some(other));
                *way = way.filter(|way| *way == other);
            }
        }
        Self { there, bounds, ways }
    }

    /// What the file has for a range of the old text.
    fn of_range(&self, range: Range<usize>) -> Option<&'t str> {
        let place = |at: usize| self.bounds.binary_search_by_key(&at, |bound| bound.0).ok();
        let (from, to) = (self.bounds[place(range.start)?].1, self.bounds[place(range.end)?].1);
        self.there.get(from..to)
    }

    /// Lines that take the place of others, which begin at an offset of the old text.
    fn words(&self, old: &str, start: usize, new: &str) -> String {
        let (words, fresh): (Vec<&str>, Vec<&str>) =
            (old.split_word_bounds().collect(), new.split_word_bounds().collect());
        let mut places = Vec::with_capacity(words.len());
        let mut at = start;
        for word in &words {
            places.push(at..at + word.len());
            at += word.len();
        }
        let mut out = String::with_capacity(new.len());
        for (word, origin) in fresh.iter().zip(origins(&words, &fresh)) {
            let stays = match origin {
                Origin::Same(number) => self.of_range(places[number].clone()),
                Origin::For(_) | Origin::Added => None,
            };
            match stays {
                Some(text) => out.push_str(text),
                None => word.graphemes(true).for_each(|part| out.push_str(self.way(part))),
            }
        }
        out
    }

    fn way<'w>(&self, part: &'w str) -> &'w str
    where
        't: 'w,
    {
        self.ways.get(part).copied().flatten().unwrap_or(part)
    }
}
