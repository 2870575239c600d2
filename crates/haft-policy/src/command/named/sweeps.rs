//! What walks through folders, and copies of whole folders, change that no word of theirs names.
//!
//! **Does not know:** what lies in the folders. A pattern of names counts as what keeps protected names
//! out where it fits none of them.

use haft_types::Place;

use super::reach::{at, has_option};
use crate::{
    command::script::Part,
    places::{partial_path::Shape, protected::PROTECTED},
};

/// Programs that change the files they are given.
const CHANGE: &[&str] = &[
    "chgrp", "chmod", "chown", "dd", "mv", "rm", "rmdir", "setfacl", "shred", "tee", "truncate",
    "unlink",
];

/// Programs that do so with an option.
const IN_PLACE: &[&str] = &["gawk", "gsed", "perl", "ruby", "sed"];

/// Programs that run a text, which may do so.
const SHELLS: &[&str] = &["ash", "bash", "dash", "ksh", "sh", "zsh"];

/// Options by which `find` runs a program for what it finds.
const RUNS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

/// Names in folders that are protected, by which these may be found.
const INNER: &[&str] = &[
    "attributes",
    "commit-msg",
    "config",
    "config.worktree",
    "exclude",
    "head",
    "hooks",
    "index",
    "info",
    "launch.json",
    "modules",
    "packed-refs",
    "post-checkout",
    "post-commit",
    "post-merge",
    "pre-commit",
    "pre-push",
    "pre-rebase",
    "refs",
    "settings.json",
    "settings.local.json",
    "tasks.json",
];

/// The folders in which it may change anything.
pub(super) fn of_part(part: &Part, place: &Place) -> Vec<Shape> {
    let words: Vec<&str> = part.shapes.iter().map(String::as_str).collect();
    let folders = match part.program.as_deref() {
        Some("find") if acts(&words) => starts(&words),
        Some("cp") => poured(&words).into_iter().collect(),
        _ => Vec::new(),
    };
    at(part, &folders, place)
}

/// The folders whose names a walk tells to a part that `xargs` runs and that changes them.
pub(super) fn told(parts: &[Part], place: &Place) -> Vec<Shape> {
    let changes = |part: &Part| {
        let mut line = vec![part.program.as_deref().unwrap_or_default()];
        line.extend(part.shapes.iter().map(String::as_str));
        part.is_wrapped && !part.read_only && is_change(&line)
    };
    let has_xargs = parts.iter().any(|part| part.program.as_deref() == Some("xargs"));
    if !has_xargs || !parts.iter().any(changes) {
        return Vec::new();
    }
    let walks = parts.iter().filter(|part| part.program.as_deref() == Some("find"));
    walks
        .flat_map(|part| {
            let words: Vec<&str> = part.shapes.iter().map(String::as_str).collect();
            let folders = if is_wide(&words) { starts(&words) } else { Vec::new() };
            at(part, &folders, place)
        })
        .collect()
}

/// The folder that takes what another holds, with the names that it has there.
fn poured<'w>(words: &[&'w str]) -> Option<&'w str> {
    if !has_option(words, &["R", "a", "r", "archive", "recursive"]) {
        return None;
    }
    let mut operands: Vec<&str> = Vec::new();
    let mut target = None;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if let Some(folder) = word.strip_prefix("--target-directory=") {
            target = Some(folder);
        } else if *word == "--target-directory"
            || word.starts_with('-') && !word.starts_with("--") && word.ends_with('t')
        {
            target = rest.next().copied();
        } else if !word.starts_with('-') {
            operands.push(word);
        }
    }
    let target = target.or_else(|| operands.pop())?;
    let is_content = |word: &&str| *word == "." || word.ends_with("/.") || word.ends_with("..");
    let is_one = has_option(words, &["T", "no-target-directory"]);
    (is_one || operands.iter().any(is_content)).then_some(target)
}

/// The folders at which a walk begins.
fn starts<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let before = words
        .iter()
        .copied()
        .skip_while(|word| ["-H", "-L", "-P"].contains(word) || word.starts_with("-O"));
    let folders: Vec<&str> =
        before.take_while(|word| !word.starts_with(['-', '(', '!', ')', ','])).collect();
    if folders.is_empty() { vec!["."] } else { folders }
}

/// Whether a walk changes what it finds, and may find what is protected.
fn acts(words: &[&str]) -> bool {
    let runs = |at: usize| words.get(at + 1..).is_some_and(is_change);
    let is_deed =
        |(at, word): (usize, &&str)| *word == "-delete" || RUNS.contains(word) && runs(at);
    words.iter().enumerate().any(is_deed) && is_wide(words)
}

/// Whether a command changes the files that it is given.
fn is_change(line: &[&str]) -> bool {
    let end = line.iter().position(|word| [";", "\\;"].contains(word)).unwrap_or(line.len());
    let line = line.get(..end).unwrap_or_default();
    let edits = || {
        line.iter().any(|word| {
            word.starts_with("--in-place")
                || word.starts_with('-') && !word.starts_with("--") && word.contains('i')
        })
    };
    // What a wrapper runs is behind its own words.
    line.iter().any(|word| {
        let name = word.rsplit('/').next().unwrap_or_default();
        CHANGE.contains(&name) || SHELLS.contains(&name) || IN_PLACE.contains(&name) && edits()
    })
}

/// Whether a walk may find what is protected: not each of its branches says a name that keeps it away.
fn is_wide(words: &[&str]) -> bool {
    let is_not = |word: &str| ["!", "-not"].contains(&word);
    let turned = words.windows(2).any(|pair| is_not(pair[0]) && ["(", "\\("].contains(&pair[1]));
    // The words of a program that it runs are no tests.
    let mut tests: Vec<&str> = Vec::new();
    let mut is_run = false;
    for word in words {
        is_run = if is_run { ![";", "\\;", "+"].contains(word) } else { RUNS.contains(word) };
        if !is_run || RUNS.contains(word) {
            tests.push(word);
        }
    }
    let is_or = |word: &&str| ["-o", "-or", ","].contains(word);
    if spares_git(&tests) && !turned {
        return false;
    }
    turned
        || tests.split(is_or).any(|branch| {
            let deed = |word: &&str| *word == "-delete" || RUNS.contains(word);
            let has_deed = branch.iter().any(deed);
            let is_pruned = branch.contains(&"-prune") && !has_deed;
            // Nothing is in what is empty.
            let is_empty = branch.windows(2).any(|pair| pair[1] == "-empty" && !is_not(pair[0]));
            let takes = branch.contains(&"-delete");
            let keeps = branch.windows(2).enumerate().any(|(at, pair)| {
                let is_turned = at > 0 && branch.get(at - 1).is_some_and(|word| is_not(word));
                !is_turned && is_narrow(pair[0], pair[1])
            });
            !(is_pruned || is_empty && takes || keeps)
        })
}

/// Whether a walk goes to plain files alone, deletes none by itself, and leaves out what is git's: who says
/// so has thought of what the walk must not touch.
fn spares_git(tests: &[&str]) -> bool {
    let is_git = |word: &str| {
        let path = word.trim_start_matches("./").trim_start_matches("*/").trim_end_matches("/*");
        path == ".git"
    };
    let is_named =
        |test: &str, word: &str| ["-name", "-path", "-wholename"].contains(&test) && is_git(word);
    let out = tests.windows(3).any(|three| {
        is_named(three[0], three[1]) && three[2] == "-prune"
            || ["!", "-not"].contains(&three[0]) && is_named(three[1], three[2])
    });
    let is_files = tests.windows(2).any(|pair| pair == ["-type", "f"]);
    out && is_files && !tests.contains(&"-delete")
}

/// Whether a test with a pattern lets nothing through that is protected.
fn is_narrow(test: &str, pattern: &str) -> bool {
    let pattern = pattern.to_lowercase();
    match test {
        "-name" | "-iname" => !fits_protected(&pattern),
        "-path" | "-ipath" | "-wholename" | "-iwholename" => {
            let place = pattern.trim_start_matches("./");
            let (top, last) = (place.split('/').next(), place.rsplit('/').next());
            let is_place = top.is_some_and(|name| {
                place.contains('/') && !name.contains(['*', '?', '[']) && !fits_protected(name)
            });
            let names = place.split('/').any(|name| !name.contains('*') && fits_protected(name));
            !names && (is_place || last.is_some_and(|name| !fits_protected(name)))
        }
        "-regex" | "-iregex" => {
            let end = pattern.rsplit('.').next().unwrap_or_default();
            let is_plain = !end.is_empty() && end.chars().all(char::is_alphanumeric);
            is_plain && !fits_protected(&format!("*.{end}"))
        }
        _ => false,
    }
}

/// Whether a pattern may be the name of what is protected, or of what lies in it.
fn fits_protected(pattern: &str) -> bool {
    // Of a pattern with sets, or with what only the shell will know, it is not said.
    let is_open = pattern.contains(|c: char| c.is_control() || ['[', '\\'].contains(&c));
    let own = PROTECTED.iter().filter(|spot| !spot.home && !spot.names.starts_with("etc/"));
    let mut names = own.flat_map(|spot| spot.names.split('/')).chain(INNER.iter().copied());
    is_open || names.any(|name| fits(pattern.as_bytes(), name.as_bytes()))
}

/// Whether a pattern of `*` and `?` fits a name: in time that grows with both lengths, whatever the stars.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let mut open = vec![false; name.len() + 1];
    open[0] = true;
    for c in pattern {
        if *c == b'*' {
            let first = open.iter().position(|is| *is).unwrap_or(open.len());
            open.iter_mut().skip(first).for_each(|is| *is = true);
            continue;
        }
        for at in (0..name.len()).rev() {
            open[at + 1] = open[at] && (*c == b'?' || *c == name[at]);
        }
        open[0] = false;
    }
    open[name.len()]
}
