//! The place of a text that is most like a text that was not found, and what differs there.
//!
//! Invariant: time and memory are bounded whatever the input: at most 32 MiB of text are looked at,
//! 400 bytes of each line, 256 lines of the old text; what is shown is 10 lines of 200 characters.

use std::collections::HashMap;

use super::error::{Difference, Nearest};
use super::fold::{hashed, plain};
use super::view::View;
use crate::cut;
use crate::names;

/// Bytes of the text that are looked at.
const TEXT_LIMIT: usize = 32 << 20;
/// Bytes of each line that are looked at.
const LINE_LIMIT: usize = 400;
/// Lines of the old text that are looked for.
const OLD_LIMIT: usize = 256;
/// Places of one line that are remembered; a line with more says little.
const COMMON: usize = 64;
/// Lines that are shown.
const SHOWN: usize = 10;
/// Characters of a line that are shown.
const WIDTH: usize = 200;
/// Differences that are named.
const NAMED: usize = 3;

/// Finds the nearest place; none where nothing is alike.
pub(super) fn nearest(view: &View<'_>, old: &str) -> Option<Nearest> {
    let wanted: Vec<&str> = old.split('\n').take(OLD_LIMIT).map(clip).collect();
    let text = view.text();
    let scanned = &text[..cut::floor(text, TEXT_LIMIT)];
    let start = by_equal_lines(scanned, &wanted).or_else(|| by_likeness(scanned, &wanted))?;
    let file: Vec<&str> = scanned.split('\n').skip(start).take(wanted.len()).map(clip).collect();
    let offset = scanned.split('\n').take(start).map(|line| line.len() + 1).sum::<usize>();
    let number = view.number(offset.min(text.len()));
    let differences = differences(&wanted, &file, number);
    let skip = differences.first().map_or(0, |first| (first.line - number).saturating_sub(3));
    let skip = skip.min(file.len().saturating_sub(1));
    let lines = file.iter().skip(skip).take(SHOWN).map(|line| names::shown(line, WIDTH)).collect();
    Some(Nearest { first_line: number + skip, lines, differences })
}

fn clip(line: &str) -> &str {
    &line[..cut::floor(line, LINE_LIMIT)]
}

/// A line without blanks, in lower case, with plain quotes and dashes.
fn squashed(line: &str) -> String {
    clip(line)
        .chars()
        .map(plain)
        .filter(|character| !character.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Lets the lines that both texts have vote for where the old text would begin.
fn by_equal_lines(text: &str, wanted: &[&str]) -> Option<usize> {
    let mut places: HashMap<u64, (Vec<usize>, Vec<usize>)> = HashMap::new();
    for (at, line) in wanted.iter().enumerate() {
        let line = squashed(line);
        if line.chars().any(char::is_alphanumeric) {
            places.entry(hashed(&line)).or_default().0.push(at);
        }
    }
    if places.is_empty() {
        return None;
    }
    for (number, line) in text.split('\n').enumerate() {
        if let Some((_, found)) = places.get_mut(&hashed(&squashed(line)))
            && found.len() <= COMMON
        {
            found.push(number);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (asked, found) in places.values() {
        if found.is_empty() || found.len() > COMMON || asked.len() > COMMON {
            continue;
        }
        let weight = 1000 / found.len() + 1;
        for number in found {
            for at in asked {
                *votes.entry(number.saturating_sub(*at)).or_default() += weight;
            }
        }
    }
    votes.into_iter().max_by_key(|(start, votes)| (*votes, usize::MAX - start)).map(|best| best.0)
}

/// Pieces of three bytes that a line has, as a set of 4,096 bits.
struct Pieces {
    bits: [u64; 64],
    count: usize,
}

fn slot(piece: &[u8]) -> usize {
    let hash = piece.iter().fold(0_usize, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(usize::from(byte.to_ascii_lowercase()))
    });
    hash.wrapping_mul(0x9E37) >> 4 & 4095
}

impl Pieces {
    fn new(line: &str) -> Self {
        let mut pieces = Self { bits: [0; 64], count: 0 };
        for piece in line.trim().as_bytes().windows(3) {
            let slot = slot(piece);
            pieces.bits[slot / 64] |= 1 << (slot % 64);
            pieces.count += 1;
        }
        pieces
    }

    /// Likeness of a line, from 0 to 1000.
    fn likeness(&self, line: &str) -> usize {
        let line = clip(line).trim().as_bytes();
        let total = self.count + line.len().saturating_sub(2);
        if total == 0 {
            return 0;
        }
        let has = |piece: &[u8]| {
            let slot = slot(piece);
            self.bits[slot / 64] >> (slot % 64) & 1 == 1
        };
        let same = line.windows(3).filter(|piece| has(piece)).count();
        2000 * same.min(self.count) / total
    }
}

/// Finds the line that is most like the longest of the first lines asked for.
fn by_likeness(text: &str, wanted: &[&str]) -> Option<usize> {
    let (at, anchor) =
        wanted.iter().enumerate().take(16).max_by_key(|(_, line)| line.trim().len())?;
    let pieces = Pieces::new(anchor);
    let mut best = (400, None);
    for (number, line) in text.split('\n').enumerate() {
        let likeness = pieces.likeness(line);
        if likeness > best.0 {
            best = (likeness, Some(number));
        }
    }
    best.1.map(|number| number.saturating_sub(at))
}

fn differences(wanted: &[&str], file: &[&str], number: usize) -> Vec<Difference> {
    let mut found = Vec::new();
    for (at, old) in wanted.iter().enumerate() {
        if found.len() == NAMED {
            break;
        }
        let line = number + at;
        let Some(there) = file.get(at) else {
            found.push(Difference { line, text: "the file has no such line".to_owned() });
            break;
        };
        // Inside the first and the last line the old text may begin or end.
        let edge = (at == 0 && there.ends_with(old))
            || (at + 1 == wanted.len() && there.starts_with(old))
            || (wanted.len() == 1 && there.contains(old));
        if old != there && !edge {
            found.push(Difference { line, text: difference(old, there) });
        }
    }
    found
}

/// Says in which characters two lines differ.
fn difference(old: &str, there: &str) -> String {
    let blanks = [' ', '\t', '\u{a0}', '\u{3000}'];
    if old.trim_end_matches(blanks) == there.trim_end_matches(blanks) {
        let tail = |line: &str| listed(&line[line.trim_end_matches(blanks).len()..]);
        return format!("old_text ends with {}, the file's line with {}", tail(old), tail(there));
    }
    if old.trim_start_matches(blanks) == there.trim_start_matches(blanks) {
        let head = |line: &str| listed(&line[..line.len() - line.trim_start_matches(blanks).len()]);
        return format!("old_text is indented with {}, the file with {}", head(old), head(there));
    }
    let same = old.chars().zip(there.chars()).take_while(|(old, file)| old == file).count();
    let one = |line: &str| match line.chars().nth(same) {
        Some(character) => names::describe(character),
        None => "the end of the line".to_owned(),
    };
    let case = if old.to_lowercase() == there.to_lowercase() { " (letter case only)" } else { "" };
    format!("at column {}, old_text has {}, the file has {}{case}", same + 1, one(old), one(there))
}

/// Counts blanks by kind, as `1 tab and 2 spaces`.
fn listed(blanks: &str) -> String {
    let mut runs: Vec<(char, usize)> = Vec::new();
    for character in blanks.chars() {
        let kinds = runs.len();
        match runs.last_mut() {
            Some(run) if run.0 == character => run.1 += 1,
            _ if kinds == 4 => break,
            _ => runs.push((character, 1)),
        }
    }
    if runs.is_empty() {
        return "no blanks".to_owned();
    }
    let words: Vec<String> = runs
        .iter()
        .map(|(character, count)| {
            let kind = match character {
                ' ' => "space (U+0020)",
                '\t' => "tab (U+0009)",
                '\u{a0}' => "no-break space (U+00A0)",
                _ => "ideographic space (U+3000)",
            };
            format!("{count} x {kind}")
        })
        .collect();
    words.join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::LineEnds;

    fn near(file: &str, old: &str) -> Option<Nearest> {
        nearest(&View::new(file, LineEnds::scan(file.as_bytes())), old)
    }

    #[test]
    fn the_characters_that_differ_are_named() {
        let file = "package main\n\nfunc main() {\n\tfmt.Println(\"x\")\n}\n";
        let found = near(file, "func main() {\n    fmt.Println(\"x\");\n}").unwrap();
        assert_eq!(found.first_line, 3);
        assert_eq!(found.differences[0].line, 4);
        assert!(found.differences[0].text.contains("U+0020"), "{found:?}");
        assert!(found.differences[0].text.contains("tab"), "{found:?}");
        let found = near("let a = 1;\nlet total\u{a0}= 2;\n", "let total = 3;").unwrap();
        assert!(found.differences[0].text.contains("no-break space"), "{found:?}");
        let found = near("fn Alpha_beta() {}\n", "fn alpha_beta() {}").unwrap();
        assert!(found.differences[0].text.contains("letter case"), "{found:?}");
    }

    #[test]
    fn nothing_alike_is_said() {
        assert_eq!(near("alpha\nbeta\n", "zzzzqqqq"), None);
        assert_eq!(near("", "x"), None);
    }
}
