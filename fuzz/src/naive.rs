//! A second, slow implementation of what counts as the same text.
//!
//! Invariant: written from the meaning of each tolerance, not from the engine's code; where the two
//! are not of one mind, one of them is wrong.

use unicode_normalization::UnicodeNormalization as _;

/// Whether a carriage return alone ends the lines of a file: where no line feed does.
pub fn cr_ends(file: &str) -> bool {
    file.contains('\r') && !file.contains('\n')
}

/// A text with LF for every line end.
pub fn unified(text: &str, cr_ends: bool) -> String {
    let text = text.replace("\r\n", "\n");
    if cr_ends { text.replace('\r', "\n") } else { text }
}

/// How many line ends a text has.
pub fn lines(text: &str, cr_ends: bool) -> usize {
    unified(text, cr_ends).matches('\n').count()
}

/// How many line ends a text would have if those that are written out were real.
pub fn written_lines(text: &str, cr_ends: bool) -> usize {
    let readings = readings(&unified(text, cr_ends));
    readings.iter().map(|text| text.matches('\n').count()).max().unwrap_or(0)
}

/// Whether an offset is between the CR and the LF of one line end.
fn inside(text: &str, at: usize) -> bool {
    text.as_bytes()[..at].ends_with(b"\r") && text.as_bytes()[at..].starts_with(b"\n")
}

/// Where a text is in a file, whatever the line ends, overlapping places counted. A carriage return
/// at its end may be one half of a line end, of one that is LF alone only where there is no other.
pub fn places(file: &str, wanted: &str) -> Vec<usize> {
    let cr_ends = cr_ends(file);
    let wanted = unified(wanted, cr_ends);
    let starts = |wanted: &str, goes_on: &dyn Fn(&str) -> bool| -> Vec<usize> {
        let bounds = file.char_indices().map(|(at, _)| at).filter(|at| !inside(file, *at));
        let stands = |at: &usize| {
            let rest = unified(&file[*at..], cr_ends);
            rest.strip_prefix(wanted).is_some_and(|_| goes_on(after(file, *at, wanted, cr_ends)))
        };
        bounds.filter(stands).collect()
    };
    match wanted.strip_suffix('\r') {
        _ if wanted.is_empty() => Vec::new(),
        None => starts(&wanted, &|_| true),
        Some(bare) => {
            let either = starts(bare, &|rest| rest.starts_with('\r'));
            if either.is_empty() { starts(bare, &|rest| rest.starts_with('\n')) } else { either }
        }
    }
}

/// What a file has behind a text that stands at an offset of it.
fn after<'t>(file: &'t str, at: usize, wanted: &str, cr_ends: bool) -> &'t str {
    let mut ends = file.char_indices().map(|(at, _)| at).chain([file.len()]);
    let whole = |stop: &usize| {
        *stop >= at && !inside(file, *stop) && unified(&file[at..*stop], cr_ends) == wanted
    };
    ends.find(whole).map_or("", |stop| &file[stop..])
}

/// Where a text is in another byte by byte, not beginning between CR and LF, and ending there only
/// where it is half of a line end.
pub fn identical(text: &str, wanted: &str) -> Vec<usize> {
    (0..text.len())
        .filter(|at| text.as_bytes()[*at..].starts_with(wanted.as_bytes()))
        .filter(|at| !inside(text, *at))
        .filter(|at| wanted.ends_with('\r') || !inside(text, at + wanted.len()))
        .collect()
}

/// Whether a part of a file is an old text; a carriage return at its end may be half of what follows.
pub fn same(there: &str, after: &str, asked: &str, cr_ends: bool) -> bool {
    let (there, asked) = (unified(there, cr_ends), unified(asked, cr_ends));
    let half = || asked.strip_suffix('\r') == Some(&there) && after.starts_with(['\r', '\n']);
    there == asked || half()
}

/// The number of the line that holds an offset.
pub fn line(text: &str, offset: usize) -> usize {
    let end = if cr_ends(text) { b'\r' } else { b'\n' };
    1 + text.as_bytes()[..offset].iter().filter(|byte| **byte == end).count()
}

/// Whether a text stands for another one under a tolerance, judged by all that is not blank.
pub fn evidence(tolerance: &str, there: &str, asked: &str, cr_ends: bool) -> bool {
    let (there, asked) = (unified(there, cr_ends), unified(asked, cr_ends));
    match tolerance {
        "Unicode forms" => folded(&there) == folded(&asked) && things(&there) == things(&asked),
        "line number prefixes" => bare(&there) == bare(&unnumbered(&asked)),
        "characters as shown" => unshown(&there) == unshown(&asked),
        "literal escapes" => readings(&asked).iter().any(|real| *real == there),
        "trailing blanks" => ends(&there) == ends(&asked),
        "blank lines at the ends" => {
            there == asked.trim_matches('\n') || bare(&there) == bare(&asked)
        }
        "indentation" | "tabs and spaces" => {
            there.split('\n').map(str::trim).eq(asked.split('\n').map(str::trim))
        }
        _ => false,
    }
}

/// A text with the characters themselves that are written as answers show them.
fn unshown(text: &str) -> String {
    let text = text.trim_start_matches(r"\u{feff}").replace(r"\t", "\t").replace(r"\r", "\r");
    let mut pieces = text.split(r"\u{");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |before, piece| {
        let real = piece.split_once('}').and_then(|(digits, rest)| {
            let real = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            Some(format!("{before}{real}{rest}"))
        });
        real.unwrap_or_else(|| format!("{before}\\u{{{piece}"))
    })
}

/// What is left of a text without blanks.
fn bare(text: &str) -> String {
    text.chars().filter(|character| !character.is_whitespace()).collect()
}

/// The lines without the blanks at their ends.
fn ends(text: &str) -> Vec<&str> {
    text.split('\n').map(|line| line.trim_end_matches([' ', '\t'])).collect()
}

/// A text in one form of Unicode, with plain quotes, dashes and spaces.
fn folded(text: &str) -> String {
    let plain = |character| match character {
        '‘' | '’' | '‚' | '‛' | '′' => '\'',
        '“' | '”' | '„' | '‟' | '″' => '"',
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' => '-',
        '\n' => '\n',
        other if other.is_whitespace() && other != '\t' => ' ',
        other => other,
    };
    text.chars().map(plain).nfkc().map(plain).collect()
}

/// What only resembles digits and letters: raised and lowered ones, fractions, enclosed ones, signs.
fn things(text: &str) -> String {
    let thing = |character: &char| {
        matches!(character,
            'ª' | 'º' | '²' | '³' | '¹' | '¼'..='¾' | '\u{2070}'..='\u{209f}'
            | '\u{2100}'..='\u{2125}' | '\u{2127}'..='\u{2129}' | '\u{212c}'..='\u{218f}'
            | '\u{2460}'..='\u{24ff}' | '\u{3200}'..='\u{33ff}')
    };
    text.chars().filter(thing).collect()
}

/// A text without the numbers that listings put before its lines.
fn unnumbered(text: &str) -> String {
    let line = |line: &str| {
        let rest = line.trim_start_matches(' ');
        let rest = rest.trim_start_matches(|character: char| character.is_ascii_digit());
        let bare = rest.strip_prefix(['\t', '→', ':', '|']).or_else(|| rest.strip_prefix(" + "));
        bare.unwrap_or(rest).to_owned()
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Whether a listing ends in a number with nothing after it, which says that its line is empty.
pub fn ends_in_number(text: &str) -> bool {
    let text = unified(text, true);
    let last = text.split('\n').next_back().unwrap_or_default();
    !last.is_empty() && unnumbered(last).trim().is_empty()
}

/// What a text with written-out escapes may mean.
fn readings(text: &str) -> Vec<String> {
    let known = ["\"'", "nt\"", "\\nt\"'"];
    let resolved = known.iter().map(|known| resolved(text, known));
    // A carriage return that is written out belongs to the line end after it.
    let joined = known.iter().map(|known| self::resolved(&text.replace("\\r\\n", "\\n"), known));
    resolved.chain(joined).collect()
}

fn resolved(text: &str, known: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let next = characters.peek().copied();
        match next {
            Some(escaped) if character == '\\' && known.contains(escaped) => {
                characters.next();
                out.push(match escaped {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                });
            }
            // A pair of backslashes stays a pair.
            Some('\\') if character == '\\' => {
                characters.next();
                out.push_str("\\\\");
            }
            _ => out.push(character),
        }
    }
    out
}
