//! The place of a text that is most like a text that was not found, and what differs there.
//!
//! Invariant: time and memory are bounded whatever the input: at most 32 MiB of text are looked at,
//! 400 bytes of each line to tell likeness, 256 lines of the old text; what is shown is 10 lines of
//! 200 characters. What differs is looked for in whole lines.

use std::collections::HashMap;

use super::align::{self, Pair, Pieces, squashed};
use super::error::{Difference, Nearest};
use super::fold::hashed;
use super::inside;
use super::view::View;
use crate::cut;
use crate::lines;
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
/// Characters of a passage that are quoted.
const QUOTED: usize = 60;
/// Places for which nearly as many equal lines speak that are compared further.
const RIVALS: usize = 16;
/// Lines before the supposed beginning that are looked at.
const AROUND: usize = 20;

/// The nearest place.
pub(super) struct Near {
    /// What is shown of it.
    pub(super) shown: Nearest,
    /// Number of the first line that stands for one of the old text, from 1.
    pub(super) first: usize,
    /// Number of the last such line.
    pub(super) last: usize,
}

/// Finds the nearest place; none where nothing is alike.
pub(super) fn nearest(view: &View<'_>, old: &str) -> Option<Near> {
    let mut wanted: Vec<&str> = old.split('\n').take(OLD_LIMIT).collect();
    if wanted.len() > 1 && wanted.last() == Some(&"") {
        wanted.pop();
    }
    let text = view.text();
    let scanned = &text[..cut::floor(text, TEXT_LIMIT)];
    let clipped: Vec<&str> = wanted.iter().copied().map(clip).collect();
    let mut window = None;
    let start = by_equal_lines(scanned, &clipped)
        .or_else(|| by_likeness(scanned, &clipped))
        .or_else(|| {
            let (at, hit, part) = inside::of_long_lines(scanned, &wanted)?;
            window = Some((hit, part));
            Some(hit.saturating_sub(at))
        })?;
    let file = |from: usize| scanned.split('\n').skip(from);
    let same = file(start).zip(&wanted).take_while(|(file, old)| file == *old).count();
    // Where the first lines are there as asked for, they lead; else something was lost before.
    let (asked, from) = match same.saturating_sub(2) {
        0 => (0, start.saturating_sub(AROUND)),
        known => (known, start + known),
    };
    let wanted = Wanted { lines: &wanted[asked..], first: asked == 0 };
    let file: Vec<&str> = file(from).take(align::FILE).collect();
    let compared = file.iter().zip(from..).map(|(line, number)| match &window {
        Some((hit, part)) if *hit == number => clip(&line[part.clone()]),
        _ => clip(line),
    });
    let compared: Vec<&str> = compared.collect();
    let pairs = align::align(&clipped[asked..], &compared, !wanted.first);
    let paired = |pair: &Pair| if let Pair::Both(_, file) = pair { Some(*file) } else { None };
    let first = pairs.iter().find_map(paired)?;
    let last = pairs.iter().rev().find_map(paired)?;
    let offset = scanned.split('\n').take(from).map(|line| line.len() + 1).sum::<usize>();
    let number = view.number(offset.min(text.len()));
    let (named, more) = differences(&wanted, &file, &pairs);
    let to_show = named.first().map_or(first, |named| named.line);
    let skip = to_show.saturating_sub(3).clamp(first, last);
    let column = |line: usize| named.iter().find(|named| named.line == line)?.column;
    let lines = (skip..=last).take(SHOWN).map(|line| around(file[line], column(line))).collect();
    let said = |one: Named| Difference { line: number + one.line, text: one.text };
    let differences = named.into_iter().map(said).collect();
    let shown = Nearest { first_line: number + skip, lines, differences, more };
    Some(Near { shown, first: number + first, last: number + last })
}

/// A line as it is shown, from near a column on where that would be cut off.
fn around(line: &str, column: Option<usize>) -> String {
    let before = column.unwrap_or(1).saturating_sub(WIDTH / 2);
    if before <= WIDTH / 4 {
        return names::shown(line, WIDTH);
    }
    let from = line.char_indices().nth(before).map_or(line.len(), |(at, _)| at);
    format!("[from column {}] {}", before + 1, names::shown(&line[from..], WIDTH))
}

/// The lines asked for that are compared.
struct Wanted<'w, 't> {
    lines: &'w [&'t str],
    /// Whether the first of them is the first of the old text.
    first: bool,
}

pub(super) fn clip(line: &str) -> &str {
    &line[..cut::floor(line, LINE_LIMIT)]
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
    let most = *votes.values().max()?;
    let mut rivals: Vec<(usize, usize)> = votes
        .into_iter()
        .filter(|(_, votes)| votes * 5 >= most * 3)
        .map(|(start, votes)| (most - votes, start))
        .collect();
    rivals.sort_unstable();
    rivals.truncate(RIVALS);
    let near = rivals.iter().filter(|(less, _)| (most - less) * 5 >= most * 4).count();
    let starts: Vec<usize> = rivals.into_iter().map(|(_, start)| start).collect();
    most_alike(text, wanted, &starts, near)
}

/// Of places for which nearly as many equal lines speak, the one that is most alike: of the first
/// `near`, unless one of all is clearly more so with lines lost or put in between.
fn most_alike(text: &str, wanted: &[&str], starts: &[usize], near: usize) -> Option<usize> {
    if let [start] = starts {
        return Some(*start);
    }
    let pieces: Vec<Pieces> =
        wanted.iter().take(align::OLD).map(|line| Pieces::new(line)).collect();
    let from = |line: usize| {
        let from = lines::offset_of(text.as_bytes(), line + 1, false).unwrap_or(text.len());
        text[from..].split('\n')
    };
    let each = |start: usize| {
        pieces.iter().zip(from(start)).map(|(line, there)| line.likeness(there)).sum::<usize>()
    };
    let paired = |start: usize| {
        let there = from(start.saturating_sub(AROUND)).take(wanted.len() + 2 * AROUND);
        align::likeness(wanted, &there.map(clip).collect::<Vec<_>>())
    };
    let best = *starts[..near].iter().max_by_key(|start| (each(**start), usize::MAX - **start))?;
    let better = *starts.iter().max_by_key(|start| (paired(**start), usize::MAX - **start))?;
    Some(if paired(better) > paired(best) + align::CLEARLY { better } else { best })
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

/// A line that differs, from 0, and from which character of it on, from 1.
struct Named {
    line: usize,
    column: Option<usize>,
    text: String,
}

/// The first differences, and how many lines differ besides.
fn differences(wanted: &Wanted<'_, '_>, file: &[&str], pairs: &[Pair]) -> (Vec<Named>, usize) {
    let mut found = Vec::new();
    let mut more = 0;
    for pair in pairs {
        let (line, column, text) = match *pair {
            Pair::Both(at, there) => {
                let (old, line) = (wanted.lines[at], file[there]);
                // Inside the first and the last line the old text may begin or end.
                let first = at == 0 && wanted.first;
                let last = at + 1 == wanted.lines.len();
                let edge = (first && line.ends_with(old))
                    || (last && line.starts_with(old))
                    || (first && last && line.contains(old));
                if old == line || edge {
                    continue;
                }
                if found.len() == NAMED {
                    more += 1;
                    continue;
                }
                let (column, text) = difference(old, line, (first, last));
                (there, column, text)
            }
            Pair::Lost(at, before) => {
                let shown = names::shown(wanted.lines[at], QUOTED);
                let text = format!("old_text has a line here that the file has not, \"{shown}\"");
                (before, None, text)
            }
            Pair::More(there) => {
                let shown = names::shown(file[there], QUOTED);
                let text = format!("the file has a line here that old_text has not, \"{shown}\"");
                (there, None, text)
            }
        };
        if found.len() == NAMED {
            more += 1;
        } else {
            found.push(Named { line, column, text });
        }
    }
    (found, more)
}

/// Says in which characters two lines differ, and from which column of the file's line on; `open`
/// tells whether the old text may begin and end inside that line.
fn difference(old: &str, line: &str, open: (bool, bool)) -> (Option<usize>, String) {
    let blanks = [' ', '\t', '\u{a0}', '\u{3000}'];
    if old.trim_end_matches(blanks) == line.trim_end_matches(blanks) {
        let tail = |line: &str| listed(&line[line.trim_end_matches(blanks).len()..]);
        let column = line.trim_end_matches(blanks).chars().count() + 1;
        let text = format!("old_text ends with {}, the file's line with {}", tail(old), tail(line));
        return (Some(column), text);
    }
    if old.trim_start_matches(blanks) == line.trim_start_matches(blanks) {
        let head = |line: &str| listed(&line[..line.len() - line.trim_start_matches(blanks).len()]);
        let text = format!("old_text is indented with {}, the file with {}", head(old), head(line));
        return (None, text);
    }
    let part = inside::counterpart(old, line, open);
    let (before, there) = (line[..part.start].chars().count(), &line[part]);
    let same = old.chars().zip(there.chars()).take_while(|(old, file)| old == file).count();
    let one = |line: &str, at: usize| match line.chars().nth(at) {
        Some(character) => names::describe(character),
        None => "the end of the line".to_owned(),
    };
    let case = if old.to_lowercase() == there.to_lowercase() { " (letter case only)" } else { "" };
    let words = passages(old, there, same).unwrap_or_default();
    let (column, asked, has) = (before + same + 1, one(old, same), one(line, before + same));
    let text = format!("at column {column}, old_text has {asked}, the file has {has}{case}{words}");
    (Some(column), text)
}

/// Quotes the parts in which two lines differ, where they are short and more than one character.
fn passages(old: &str, there: &str, same: usize) -> Option<String> {
    let rest = |line: &str| line.char_indices().nth(same).map_or(line.len(), |(at, _)| at);
    let (old, there) = (&old[rest(old)..], &there[rest(there)..]);
    let tail = old.chars().rev().zip(there.chars().rev()).take_while(|(old, file)| old == file);
    let tail: usize = tail.map(|(old, _)| old.len_utf8()).sum();
    let (old, there) = (&old[..old.len() - tail], &there[..there.len() - tail]);
    let lengths = [old, there].map(|part| part.chars().take(QUOTED + 1).count());
    if lengths == [1, 1] || !lengths.iter().all(|length| (1..=QUOTED).contains(length)) {
        return None;
    }
    let [old, there] = [old, there].map(|part| names::shown(part, QUOTED));
    Some(format!(" (\"{old}\" where the file has \"{there}\")"))
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
        nearest(&View::new(file, LineEnds::scan(file.as_bytes())), old).map(|near| near.shown)
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
    fn a_lost_or_an_added_line_is_named_and_the_others_are_not() {
        let file = "fn area(w: u32) -> u32 {\n    let a = w * 2;\n    log(a);\n    draw(a);\n}\n";
        let old = file.replace("    log(a);\n", "");
        let found = near(&format!("\n// first\n{file}"), &old).unwrap();
        let told: Vec<_> = found.differences.iter().map(|one| (one.line, &*one.text)).collect();
        let text = "the file has a line here that old_text has not, \"    log(a);\"";
        assert_eq!((told, found.more), (vec![(5, text)], 0));
        let old = file.replace("    draw", "    save(a);\n    draw");
        let found = near(file, &old).unwrap();
        let text = "old_text has a line here that the file has not, \"    save(a);\"";
        assert_eq!((found.differences[0].line, &*found.differences[0].text), (4, text));
        assert_eq!(found.differences.len(), 1);
        let file: String =
            (0..400).fold(String::new(), |text, line| text + &format!("line {line}\n"));
        let old: String = file.lines().skip(100).take(200).collect::<Vec<_>>().join("\n");
        let found = near(&file, &old.replace("line 290\n", "")).unwrap();
        assert_eq!(found.differences[0].line, 291, "{found:?}");
        assert!(found.lines.iter().any(|line| line == "line 290"));
    }

    #[test]
    fn of_places_with_as_many_equal_lines_the_one_that_is_more_alike_is_shown() {
        let block = "  assert_success\n  assert [ -x bin ]\n  assert [ -e cache ]\n";
        let file =
            format!("{block}\n  unstub curl\n}}\n\n{block}  assert diff -q cache root\n}}\n");
        let found = near(&file, &format!("{block}  zanzibar diff -q cache root\n")).unwrap();
        assert_eq!((found.differences[0].line, found.differences.len()), (11, 1), "{found:?}");
    }

    #[test]
    fn an_old_text_that_begins_or_ends_inside_a_line_is_compared_with_that_part() {
        let file = "def f(a, b):\n    if a:\n        return foo(a, b) + 1\n    go(a)\n";
        let told = |old: &str| near(file, old).unwrap().differences.remove(0).text;
        let text = "at column 23, old_text has U+0063 'c', the file has U+0062 'b'";
        assert_eq!(told("return foo(a, c)"), text);
        assert_eq!(told("return foo(a, c) + 1\n    go(a)"), text);
        assert_eq!(told("    if a:\n        return foo(a, c)"), text);
        let text = "at column 19, old_text has U+0078 'x', the file has U+0066 'f' (\"xyz\" where the file has \"foo\")";
        assert_eq!(told("eturn xyz(a, b) + 1\n    go(a)").replace("column 16", "column 19"), text);
        let text = "at column 24, old_text has U+005D ']', the file has U+0029 ')'";
        assert_eq!(told("foo(a, b]"), text);
    }

    #[test]
    fn differences_far_along_a_line_are_named_and_shown() {
        let fields: String = (0..200).fold(String::new(), |line, at| line + &format!("field{at},"));
        let file = format!("first\nname,{fields}new\nsecond line\n");
        let found = near(&file, &format!("name,{fields}old\nsecond line")).unwrap();
        let column = fields.len() + 6;
        let text = format!(
            "at column {column}, old_text has U+006F 'o', the file has U+006E 'n' (\"old\" where the \
             file has \"new\")"
        );
        assert_eq!((found.differences[0].line, &*found.differences[0].text), (2, &*text));
        assert!(found.lines[0].starts_with("[from column "), "{found:?}");
        assert!(found.lines[0].ends_with("field199,new"), "{found:?}");
        // A part of a line that is all of the file.
        let file = file.replace('\n', ";");
        let found = near(&file, "field100,field101,fielt102,field103").unwrap();
        assert!(found.differences[0].text.contains("'t'"), "{found:?}");
        assert!(found.differences[0].text.contains("the file has U+0064 'd'"), "{found:?}");
        assert!(found.lines[0].contains("field101,field102"), "{found:?}");
    }

    #[test]
    fn nothing_alike_is_said() {
        assert_eq!(near("alpha\nbeta\n", "zzzzqqqq"), None);
        assert_eq!(near("", "x"), None);
    }
}
