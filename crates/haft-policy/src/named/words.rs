//! The paths that words of a program may be, or hold.
//!
//! **Does not know:** what becomes of them.

use haft_shell::{ANY, SOME};
use haft_types::Place;

use crate::{script::Part, shape::Shape};

/// Programs whose words are programs that may name files in them.
const INTERPRETERS: &[&str] = &[
    "awk",
    "deno",
    "ed",
    "emacs",
    "ex",
    "expect",
    "gawk",
    "gdb",
    "julia",
    "lua",
    "mawk",
    "nix-shell",
    "node",
    "nvim",
    "osascript",
    "perl",
    "php",
    "psql",
    "pwsh",
    "python",
    "rscript",
    "ruby",
    "script",
    "sed",
    "sqlite",
    "su",
    "tclsh",
    "vi",
    "vim",
];

/// Programs and what they do that take texts behind these options.
const TEXTS: &[(&str, &[&str], &[&str])] = &[
    ("git", &["commit", "merge", "notes", "revert", "stash", "tag"], &["-m", "--message"]),
    ("gh", &["issue", "pr", "release"], &["-b", "-n", "-t", "--body", "--notes", "--title"]),
];

/// Programs that say their words, and no more.
const SAY: &[&str] = &[":", "echo", "false", "printf", "true"];

/// A path that a word may be.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub shape: Shape,
    /// It is a word, or what stands behind an option in it, and none of the texts within.
    pub is_whole: bool,
    /// What it leaves open is a pattern that the program may read, or not.
    pub is_guess: bool,
}

/// What the words of a part may name.
pub(crate) fn of_part(part: &Part, place: &Place) -> Vec<Named> {
    let name = part.program.as_deref().unwrap_or_default();
    let own = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_lowercase();
    if SAY.contains(&name) {
        return Vec::new();
    }
    let is_read = INTERPRETERS.contains(&&*own);
    let folders = folders(part);
    let mut all: Vec<Named> = Vec::new();
    let mut add = |text: &str, is_whole: bool| {
        let mut put = |text: &str, is_guess: bool| {
            for shape in Shape::of(text, folders.as_deref(), place) {
                all.push(Named { shape, is_whole, is_guess });
            }
        };
        put(text, false);
        if text.contains(['*', '?']) {
            put(&text.replace('*', &ANY.to_string()).replace('?', &SOME.to_string()), true);
        }
    };
    for word in without_texts(part) {
        for (text, is_whole) in halves(word) {
            add(text, is_whole);
        }
        for (text, is_whole) in glued(word) {
            add(text, is_whole);
        }
        if is_read {
            let ends = |c: char| c.is_whitespace() || "'\"`();<>|".contains(c);
            for text in word.split(ends).filter(|text| !text.is_empty() && *text != word) {
                add(text, false);
            }
        }
    }
    all
}

/// The same of a word that stands alone.
pub(crate) fn of_word(word: &str, place: &Place) -> Vec<Named> {
    let folders = [place.cwd.text().into_owned()];
    let shapes = halves(word).into_iter().flat_map(|(text, _)| {
        let shapes = Shape::of(text, Some(&folders), place);
        shapes.into_iter().map(|shape| Named { shape, is_whole: false, is_guess: false })
    });
    shapes.collect()
}

/// The words that are no texts of people.
fn without_texts(part: &Part) -> Vec<&str> {
    let words = part.shapes.iter().map(String::as_str);
    let name = part.program.as_deref().unwrap_or_default();
    let does = |subs: &[&str]| part.shapes.iter().any(|word| subs.contains(&word.as_str()));
    let texts = TEXTS.iter().find(|(own, subs, _)| *own == name && does(subs));
    let Some((_, _, options)) = texts else { return words.collect() };
    let is_bundle = |word: &str| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        letters.ends_with('m') && letters.bytes().all(|c| c.is_ascii_lowercase()) && name == "git"
    };
    let mut is_text = false;
    let kept = words.filter(|word| {
        let joined = options.iter().any(|option| {
            option.starts_with("--")
                && word.strip_prefix(option).is_some_and(|r| r.starts_with('='))
        });
        let is_one = std::mem::replace(&mut is_text, options.contains(word) || is_bundle(word));
        !is_one && !joined
    });
    kept.collect()
}

/// The folders that its words are seen from: also those that `-C` names.
pub(super) fn folders(part: &Part) -> Option<Vec<String>> {
    let mut all = part.folders.clone()?;
    let mut words = part.shapes.iter().peekable();
    while let Some(word) = words.next() {
        let named = match word.as_str() {
            "-C" | "--directory" => words.peek().map(|next| next.as_str()),
            word => word.strip_prefix("--directory=").or_else(|| word.strip_prefix("-C")),
        };
        let Some(named) = named.filter(|named| !named.is_empty()) else { continue };
        let more: Vec<String> = match named {
            named if named.starts_with('/') => vec![named.to_owned()],
            named => all.iter().map(|from| format!("{from}/{named}")).collect(),
        };
        all.extend(more);
        if all.len() > 16 {
            return None;
        }
    }
    Some(all)
}

/// A word, and its parts: of `--file=/x` the second half is meant.
fn halves(word: &str) -> Vec<(&str, bool)> {
    let mut all = vec![(word, true)];
    if let Some((option, value)) = word.split_once('=')
        && option.starts_with('-')
    {
        all.push((value, true));
    }
    // `-v FROM:TO`
    if let Some((first, _)) = word.split_once(':') {
        let first = first.split_once('=').map_or(first, |(_, first)| first);
        all.push((first, true));
    }
    let parts = word.split(['=', ':', '@', ',']).filter(|part| !part.is_empty());
    all.extend(parts.filter(|part| *part != word).map(|part| (part, false)));
    all
}

/// What may be the value of an option of one letter in the same word: `-Cfolder`, `-xffile`.
fn glued(word: &str) -> Vec<(&str, bool)> {
    let Some(rest) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
        return Vec::new();
    };
    let letters = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let starts = (1..=letters.min(8)).filter(|at| *at < rest.len());
    starts.map(|at| (&rest[at..], rest.as_bytes()[at - 1] == b'C')).collect()
}
