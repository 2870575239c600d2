//! The most similar place to a text that was not found, and what differs there.
//!
//! **Invariant:** time and memory are bounded whatever the input. At most 32 MiB of text are
//! scanned, 400 bytes of each line to measure similarity, and 256 lines of the old text.
//! Differences are searched in whole lines. How much of the place is shown is decided elsewhere.

use std::collections::HashMap;

use memchr::memmem;

use super::{
    align::{self, Pair, Pieces, squashed},
    error::{Difference, Nearest},
    fold::hashed,
    partial_line,
    region::{self, Focus, Region},
    view::View,
    wrapped,
};
use crate::{cut, lines, names};

/// Bytes of the text that are looked at.
const TEXT_LIMIT: usize = 32 << 20;
/// Bytes of each line that are looked at.
const LINE_LIMIT: usize = 400;
/// Lines of the old text that are looked for.
const OLD_LIMIT: usize = 256;
/// Places of one line that are remembered; a line with more says little.
const COMMON: usize = 64;
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
    let mut all: Vec<&str> = old.split('\n').collect();
    let ended = all.len() > 1 && all.last() == Some(&"");
    if ended {
        all.pop();
    }
    let wanted = &all[..all.len().min(OLD_LIMIT)];
    let text = view.text();
    let scanned = &text[..cut::floor(text, TEXT_LIMIT)];
    if let Some(near) = rewrapped(scanned, old) {
        return Some(near);
    }
    let clipped: Vec<&str> = wanted.iter().copied().map(clip).collect();
    let mut window = None;
    let start = by_equal_lines(scanned, &clipped)
        .or_else(|| by_likeness(scanned, &clipped))
        .or_else(|| {
            let (at, hit, part) = partial_line::of_long_lines(scanned, wanted)?;
            window = Some((hit, part));
            Some(hit.saturating_sub(at))
        })
        .or_else(|| by_ends(scanned, wanted))?;
    let (asked, from) = beyond_the_equal(scanned, &all, start);
    let rest = &all[asked..];
    let compared = rest.iter().take(align::OLD).map(|line| clip(line));
    let clipped: Vec<&str> = compared.collect();
    let wanted = SearchedLines { lines: rest, first: asked == 0, ended };
    // Behind the last line end there is no line.
    let whole = scanned.strip_suffix('\n').unwrap_or(scanned);
    let file: Vec<&str> = whole.split('\n').skip(from).take(align::FILE).collect();
    let compared = file.iter().zip(from..).map(|(line, number)| match &window {
        Some((hit, part)) if *hit == number => clip(&line[part.clone()]),
        _ => clip(line),
    });
    let compared: Vec<&str> = compared.collect();
    let mut pairs = align::align(&clipped, &compared, !wanted.first);
    drop_unlike_edges(&mut pairs, &wanted, &file);
    let paired = |pair: &Pair| if let Pair::Both(_, file) = pair { Some(*file) } else { None };
    let first = pairs.iter().find_map(paired)?;
    let last = pairs.iter().rev().find_map(paired)?;
    let (named, more) = differences(&wanted, &file, &pairs);
    let focus = match named.first() {
        Some(named) => Focus { line: from + named.line, column: named.column },
        None => Focus { line: from + first, column: None },
    };
    let beyond = rest.get(align::OLD..).unwrap_or_default();
    // Equal lines before those that are compared belong to it.
    let first = from + if wanted.first { first } else { 0 } - asked;
    let region = Region { first, last: region::last(scanned, from + last, beyond) };
    let said = |one: DifferingLine| Difference { line: from + one.line, text: one.text };
    let differences = (named.into_iter().map(said).collect(), more);
    let shown = region::shown(scanned, region, old.len(), focus, differences);
    Some(Near { shown, first: first + 1, last: from + last + 1 })
}

/// The place of a text that is there exactly, once what it was dressed in is taken off.
pub(super) fn undressed(view: &View<'_>, old: &str) -> Option<Near> {
    let text = view.text();
    let bare = old.trim_matches('\n');
    let at = memmem::find(text.as_bytes(), bare.as_bytes()).filter(|_| !bare.is_empty())?;
    let first = memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count();
    let last = first + bare.matches('\n').count();
    let focus = Focus { line: first, column: None };
    let region = Region { first, last: Some(last) };
    let shown = region::shown(text, region, old.len(), focus, (Vec::new(), 0));
    Some(Near { shown, first: first + 1, last: last + 1 })
}

/// The place where a text is that is wrapped over more lines or fewer there.
fn rewrapped(text: &str, old: &str) -> Option<Near> {
    let (region, lines) = wrapped::region(text, old)?;
    let (first, last) = (region.first, region.last?);
    let of = |count: usize| format!("{count} line{}", if count == 1 { "" } else { "s" });
    let text_of = format!(
        "the file has on {} what old_text has on {}: line ends and blanks are not those of the file",
        of(last + 1 - first),
        of(lines)
    );
    let difference = Difference { line: first, text: text_of };
    let focus = Focus { line: first, column: None };
    let shown = region::shown(text, region, old.len(), focus, (vec![difference], 0));
    Some(Near { shown, first: first + 1, last: last + 1 })
}

/// How many lines asked for are there from about a line on, less two to compare with, and the line
/// of the file that stands for the next one.
fn beyond_the_equal(text: &str, wanted: &[&str], start: usize) -> (usize, usize) {
    let before = start.saturating_sub(AROUND);
    let lines = text.split('\n').skip(before).take(wanted.len() + 2 * AROUND);
    let lines: Vec<&str> = lines.collect();
    let same = |from: &usize| {
        let pairs = lines.iter().skip(*from).zip(wanted).enumerate();
        // The first line may begin inside of the file's.
        let equal = |(at, (file, old)): &(usize, (&&str, &&str))| {
            file == old || (*at == 0 && file.ends_with(**old))
        };
        pairs.take_while(equal).count()
    };
    // Lines that were left out further down let the beginning seem to be elsewhere.
    let supposed = start - before;
    let longest = (0..2 * AROUND).rev().max_by_key(same).filter(|from| same(from) > align::OLD / 2);
    let from = longest.filter(|from| same(from) > same(&supposed)).unwrap_or(supposed);
    // Where the first lines are there as asked for, they lead; else something was lost before.
    match same(&from).saturating_sub(2) {
        0 => (0, before),
        known => (known, before + from + known),
    }
}

/// Takes the first and the last lines of the old text that are hardly like what the file has there
/// for lines that the file has not: else a neighbour would be shown as a part of what the old text
/// stands for, and be lost with it.
fn drop_unlike_edges(pairs: &mut Vec<Pair>, wanted: &SearchedLines<'_, '_>, file: &[&str]) {
    let alike = |pair: &Pair| {
        let Pair::Both(at, there) = *pair else { return false };
        let open = (at == 0 && wanted.first) || (at + 1 == wanted.lines.len() && !wanted.ended);
        align::is_alike(wanted.lines[at], file[there], open)
    };
    let Some(last) = pairs.iter().rposition(alike) else { return };
    let first = if wanted.first { pairs.iter().position(alike).unwrap_or(last) } else { 0 };
    let mut number = 0;
    pairs.retain_mut(|pair| {
        number += 1;
        let within = (first..=last).contains(&(number - 1));
        match *pair {
            _ if within => true,
            Pair::Both(at, there) => {
                *pair = Pair::Lost(at, there);
                true
            }
            Pair::Lost(..) => true,
            Pair::More(_) => false,
        }
    });
}

/// The lines asked for that are compared.
struct SearchedLines<'w, 't> {
    lines: &'w [&'t str],
    /// Whether the first of them is the first of the old text.
    first: bool,
    /// Whether the last of them ends with a line end.
    ended: bool,
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

/// Finds the line that has the most of the ends of the longest of the first lines asked for, which
/// is short.
fn by_ends(text: &str, wanted: &[&str]) -> Option<usize> {
    let (at, anchor) =
        wanted.iter().enumerate().take(16).max_by_key(|(_, line)| line.trim().len())?;
    let mut best = (0, None);
    for (number, line) in text.split('\n').enumerate() {
        let likeness = align::ends(anchor, line);
        if likeness > best.0 {
            best = (likeness, Some(number));
        }
    }
    best.1.map(|number| number.saturating_sub(at))
}

/// A line that differs, from 0, and from which character of it on, from 1.
struct DifferingLine {
    line: usize,
    column: Option<usize>,
    text: String,
}

/// The first differences, and how many lines differ besides.
fn differences(
    wanted: &SearchedLines<'_, '_>,
    file: &[&str],
    pairs: &[Pair],
) -> (Vec<DifferingLine>, usize) {
    let mut found = Vec::new();
    let mut more = 0;
    for pair in pairs {
        let (line, column, text) = match *pair {
            Pair::Both(at, there) => {
                let (old, line) = (wanted.lines[at], file[there]);
                // Inside the first and the last line the old text may begin or end.
                let first = at == 0 && wanted.first;
                let last = at + 1 == wanted.lines.len() && !wanted.ended;
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
            found.push(DifferingLine { line, column, text });
        }
    }
    (found, more)
}

/// Says in which characters two lines differ, and from which column of the file's line on; `open`
/// tells whether the old text may begin and end inside that line.
fn difference(old: &str, line: &str, open: (bool, bool)) -> (Option<usize>, String) {
    if let Some(mark) = mark_of(old).filter(|mark| !line.contains(*mark)) {
        let text = format!(
            "old_text has \"{mark}\", the mark of a line that was not shown as a whole, which is not \
             in the file: give the text that stands there instead, or leave that part of the line out"
        );
        return (None, text);
    }
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
    let part = partial_line::counterpart(old, line, open);
    let (before, there) = (line[..part.start].chars().count(), &line[part]);
    // What is equal can go on behind that part.
    let rest = line.chars().skip(before);
    let same = old.chars().zip(rest).take_while(|(old, file)| old == file).count();
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

/// The mark with which this line was shown, by this or by what reads files, because it is long.
fn mark_of(line: &str) -> Option<&str> {
    let first = |mark: &str| line.trim_start().starts_with(mark).then(|| line.trim_start());
    let cut = line.find("[cut here: the line has ").map(|at| &line[at..]);
    let marked = cut.or_else(|| first("[from column "))?;
    Some(&marked[..=marked.find(']')?])
}

/// Quotes the parts in which two lines differ, where they are short and more than one character;
/// where one has nothing there, with the character before.
fn passages(old: &str, there: &str, same: usize) -> Option<String> {
    let rest = |line: &str, at: usize| line.char_indices().nth(at).map_or(line.len(), |(at, _)| at);
    let [asked, has] = [old, there].map(|line| &line[rest(line, same)..]);
    let tail = asked.chars().rev().zip(has.chars().rev()).take_while(|(old, file)| old == file);
    let tail: usize = tail.map(|(old, _)| old.len_utf8()).sum();
    let part = |line: &str, at: usize| {
        let part = &line[rest(line, at)..line.len() - tail];
        (part.to_owned(), part.chars().take(QUOTED + 1).count())
    };
    let mut parts = [old, there].map(|line| part(line, same));
    if parts.iter().any(|part| part.1 == 0) && parts.iter().any(|part| part.1 > 1) {
        let before = same.checked_sub(1)?;
        parts = [old, there].map(|line| part(line, before));
    }
    let [(old, asked), (there, has)] = parts;
    if (asked, has) == (1, 1) || ![asked, has].iter().all(|length| (1..=QUOTED).contains(length)) {
        return None;
    }
    let [old, there] = [old, there].map(|part| names::shown(&part, QUOTED));
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
        // All of it is shown to one who gave as much.
        assert_eq!((&*found.lines[0], found.part_of), (&*format!("name,{fields}new"), None));
        // A part of a line that is all of the file.
        let file = file.replace('\n', ";");
        let found = near(&file, "field100,field101,fielt102,field103").unwrap();
        assert!(found.differences[0].text.contains("'t'"), "{found:?}");
        assert!(found.differences[0].text.contains("the file has U+0064 'd'"), "{found:?}");
        assert!(found.lines[0].starts_with("[from column "), "{found:?}");
        assert!(found.lines[0].contains("field101,field102"), "{found:?}");
        assert_eq!(found.part_of, Some((1, Some(1))));
    }

    /// What is said of the first difference, with its line.
    fn told(file: &str, old: &str) -> (usize, String) {
        let found = near(file, old).unwrap_or_else(|| panic!("nothing is like {old:?}"));
        let first = found.differences.into_iter().next();
        first.map_or((0, String::new()), |first| (first.line, first.text))
    }

    fn joined(count: usize, between: &str, one: impl Fn(usize) -> String) -> String {
        (0..count).map(one).collect::<Vec<_>>().join(between)
    }

    #[test]
    fn one_wrong_character_in_a_long_repetitive_line_is_at_its_column() {
        let lines = [
            format!("[{}]", joined(1200, ", ", |_| "0".to_owned())),
            joined(1500, ",", |at| (at % 10).to_string()),
            joined(800, " ", |at| format!("L{},{}", at % 20, at % 7)),
            "\\x00".repeat(900),
            joined(300, ",", |at| format!("{{\"x\":{},\"y\":0}}", at % 12)),
            joined(400, "\u{e9}", |at| format!("{}\u{6f22}", at % 9)),
        ];
        for line in lines {
            let characters: Vec<char> = line.chars().collect();
            let count = characters.len();
            let file = format!("x\n{line}\ny\n");
            for wrong in [0, 1, count / 3, count / 2, count * 9 / 10, count - 1] {
                let right = names::describe(characters[wrong]);
                let text = format!(
                    "at column {}, old_text has U+0023 '#', the file has {right}",
                    wrong + 1
                );
                let mut old = characters.clone();
                old[wrong] = '#';
                let old: String = old.into_iter().collect();
                assert_eq!(told(&file, &old), (2, text.clone()), "of {count}");
                assert_eq!(told(&file, &format!("x\n{old}")), (2, text.clone()), "of {count}");
                assert_eq!(told(&file, &format!("{old}\ny")), (2, text), "of {count}");
            }
            // A part of it can stand in many places; what is said of one of them is true there.
            for wrong in [count / 3, count * 9 / 10] {
                let before: String = characters[50..wrong].iter().collect();
                let after = &characters[wrong + 1..count.min(wrong + 300)];
                for after in [after.iter().collect(), " and a made up end".repeat(30)] {
                    let (_, text) = told(&file, &format!("{before}#{after}"));
                    assert!(text.contains("old_text has U+0023 '#', the file has "), "{text}");
                    let column: usize =
                        text["at column ".len()..text.find(',').unwrap()].parse().unwrap();
                    let there: String = characters[..column - 1].iter().collect();
                    assert!(there.ends_with(&before), "column {column}, true {wrong}");
                }
            }
        }
    }

    #[test]
    fn two_wrong_characters_in_a_long_line_are_between_what_is_right() {
        let line = joined(300, ";", |at| format!("{}", at * 7919 % 1000));
        let (from, to) = (200, 1000);
        let mut old = line[from..to].to_owned();
        old.replace_range(0..1, "#");
        old.replace_range(700..701, "##");
        let (_, text) = told(&format!("a\n{line}\nb\n"), &old);
        assert!(text.starts_with("at column 201, old_text has U+0023 '#'"), "{text}");
        // An inserted and a lost part near the beginning.
        let old = format!("{}zanzibar{}", &line[from..from + 5], &line[from + 5..to]);
        let (_, text) = told(&format!("a\n{line}\nb\n"), &old);
        assert!(text.starts_with("at column 206, old_text has U+007A 'z'"), "{text}");
        let old = format!("{}{}", &line[from..from + 50], &line[from + 75..to]);
        let (_, text) = told(&format!("a\n{line}\nb\n"), &old);
        assert!(text.starts_with("at column 251, "), "{text}");
    }

    #[test]
    fn a_difference_far_down_in_a_long_old_text_is_named() {
        let line =
            |at: usize| format!("    let value_{at} = compute({}); // {}", at * 7 % 13, at % 11);
        let lines: Vec<String> = (0..3000).map(line).collect();
        let file = lines.join("\n") + "\n";
        for (count, wrong) in [(300, 270), (300, 257), (200, 100), (1500, 1499), (2000, 900)] {
            let asked = &lines[100..100 + count];
            let mut old = asked.to_vec();
            old[wrong] = old[wrong].replace("let", "Let");
            let text = "at column 5, old_text has U+004C 'L', the file has U+006C 'l'";
            let (at, said) = told(&file, &(old.join("\n") + "\n"));
            assert_eq!(at, 101 + wrong, "{count} {wrong}: {said}");
            assert!(said.starts_with(text), "{said}");
            // The same, where it begins inside of a line.
            let (at, _) = told(&file, old.join("\n").trim_start());
            assert_eq!(at, 101 + wrong, "{count} {wrong}");
        }
        for (count, wrong) in [(200, 80), (200, 100), (300, 80), (1000, 140), (1000, 500)] {
            let mut old = lines[100..100 + count].to_vec();
            old.remove(wrong);
            let (at, said) = told(&file, &old.join("\n"));
            assert_eq!(at, 101 + wrong, "{count} {wrong}: {said}");
            assert!(said.contains("that old_text has not"), "{said}");
        }
    }

    #[test]
    fn a_line_that_goes_on_where_the_old_text_ends_its_line_is_named() {
        let end = "old_text has the end of the line, the file has ";
        let (line, text) = told("line 5x\nb\n", "line 5\n");
        assert_eq!((line, text), (1, format!("at column 7, {end}U+0078 'x'")));
        let (line, text) = told("a\nreturn xy;\n}\n", "a\nreturn x\n");
        assert!(text.starts_with(&format!("at column 9, {end}U+0079 'y'")), "{line} {text}");
        let (line, text) = told("a\n    go(b) // now\n}\n", "go(b)\n}\n");
        assert!(text.starts_with(&format!("at column 10, {end}U+0020")), "{line} {text}");
    }

    #[test]
    fn blank_lines_too_many_and_too_few_are_named() {
        let more = "the file has a line here that old_text has not, \"\"";
        let lost = "old_text has a line here that the file has not, \"\"";
        let found = near("x=1\n\n\n\ny=2\n", "x=1\n\n\ny=2").unwrap();
        assert_eq!((found.differences[0].line, &*found.differences[0].text), (2, more));
        assert!(found.first_line <= 2, "{found:?}");
        assert_eq!(told("x=1\n\n\ny=2\n", "x=1\n\n\n\ny=2").1, lost);
        assert_eq!(told("fn a() {}\n\n\nfn b() {}\n", "fn a() {}\n\nfn b() {}\n").1, more);
        assert_eq!(told("a\nfn b() {}\nc\n", "\n\nfn b() {}\nc").1, lost);
        assert_eq!(told("zero\n\nfn b() {}\nc\n", "\n\n\nfn b() {}\nc").1, lost);
        assert_eq!(told("a = 1\nfn b() {}\n\nc\n", "fn b() {}\n\n\n").1, lost);
    }

    #[test]
    fn what_stands_for_a_character_is_quoted() {
        let quoted = "(\"&\" where the file has \"&amp;\")";
        let (line, text) = told("a &amp; b <c>\n", "a & b <c>");
        assert!(text.starts_with("at column 4, ") && text.ends_with(quoted), "{line} {text}");
        let (_, text) = told("  <p>if (one &lt; b &amp;&amp; last)</p>\n", "if (one < b && last)");
        let quoted = "(\"< b &&\" where the file has \"&lt; b &amp;&amp;\")";
        assert!(text.starts_with("at column 14, ") && text.ends_with(quoted), "{text}");
        let (_, text) = told("say(\"caf\\u00e9 au lait\")\n", "say(\"caf\u{e9} au lait\")");
        assert!(text.starts_with("at column 9, "), "{text}");
        let (_, text) = told("  f(a, &quot;y&quot;, last)\n", "f(a, \"y\", last)");
        assert!(text.starts_with("at column 8, "), "{text}");
    }

    #[test]
    fn short_texts_that_are_nearly_there_are_found() {
        let file = "fn a() {\n    i++;\n}\na\u{200b}b c\nx\u{a0}= 1\n-\n";
        for (old, line, says) in [
            ("i--;", 2, "old_text has U+002D"),
            ("fn b() {", 1, "at column 4, old_text has U+0062 'b'"),
            ("fn b()", 1, "at column 4, old_text has U+0062 'b'"),
            ("ab c", 4, "the file has U+200B"),
            ("x = 2", 5, "the file has U+00A0"),
            ("i;", 2, "old_text has U+003B ';', the file has U+002B '+'"),
        ] {
            let (at, text) = told(file, old);
            assert!(at == line && text.contains(says), "{old}: {at} {text}");
        }
        for old in ["q", "while", "+", "()", "zz;"] {
            assert_eq!(near(file, old), None, "{old}");
        }
    }

    #[test]
    fn a_mark_of_a_line_that_was_shown_cut_is_named() {
        let line = joined(900, " ", |at| format!("{}", at * 7919 % 1000));
        let file = format!("x\n{line}\ny\n");
        let shown = format!("{}[cut here: the line has {} bytes]", &line[..2000], line.len());
        for old in [shown.clone(), format!("{shown}\ny"), format!("x\n{shown}\ny\n")] {
            let (at, text) = told(&file, &old);
            assert!(at == 2 && text.contains("is not in the file"), "{at} {text}");
            assert!(text.contains("\"[cut here: the line has 3"), "{text}");
        }
    }

    #[test]
    fn nothing_alike_is_said() {
        assert_eq!(near("alpha\nbeta\n", "zzzzqqqq"), None);
        assert_eq!(near("", "x"), None);
    }
}
