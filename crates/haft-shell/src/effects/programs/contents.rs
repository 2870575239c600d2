//! The files whose contents git prints, today's or older ones.

use crate::{
    effects::{
        Effect, Operand,
        judge::{Judge, Outcome},
        options::{self, Parsed},
        state::joined,
        words::Arg,
    },
    table::Entry,
};

/// A subcommand of git and its words.
pub(super) struct Shown<'a> {
    pub name: &'a str,
    pub entry: &'a Entry,
    pub args: &'a [Arg],
}

/// Options that make git print what changed in files.
const PATCH: [&str; 15] = [
    "p",
    "u",
    "U",
    "patch",
    "unified",
    "L",
    "c",
    "cc",
    "m",
    "W",
    "function-context",
    "patch-with-stat",
    "binary",
    "word-diff",
    "color-words",
];
/// Options that make it tell less than that.
const BRIEF: [&str; 10] = [
    "s",
    "no-patch",
    "stat",
    "shortstat",
    "numstat",
    "name-only",
    "name-status",
    "summary",
    "raw",
    "quiet",
];

/// Adds what is read where git prints contents: the paths that it is given, or the folder that it
/// runs in. A path behind a revision is seen from there, too: where the repository begins is not
/// known here.
pub(super) fn contents(
    judge: &mut Judge<'_, '_>,
    shown: &Shown<'_>,
    folders: Option<&[String]>,
    out: &mut Outcome,
) {
    let parsed = options::parse(shown.entry, shown.args);
    let has = |names: &[&str]| names.iter().any(|name| parsed.has(name));
    let is_printed = match shown.name {
        "blame" | "annotate" | "grep" => true,
        // What a file held is printed whole, whatever is said of differences.
        "show" => has(&PATCH) || !has(&BRIEF) || parsed.operands.iter().any(may_be_file),
        "diff" => has(&PATCH) || !has(&BRIEF),
        "range-diff" => !has(&["s", "no-patch"]),
        "status" => has(&["v", "verbose"]),
        "log" | "whatchanged" | "stash" | "diff-tree" | "diff-index" | "diff-files" => has(&PATCH),
        "cat-file" => has(&["p", "batch"]) || parsed.operands.len() > 1,
        _ => false,
    };
    if !is_printed {
        return;
    }
    let Some(folders) = folders else {
        return out.effects.push(Effect::Reads(Operand::Unknown));
    };
    let (named, is_all) = named(judge, shown, &parsed, folders);
    for folder in folders {
        let all = named.iter().map(|path| seen(folder, path));
        out.effects.extend(all.map(Effect::Reads));
        if is_all {
            out.effects.push(Effect::Reads(Operand::Path(folder.clone())));
        }
    }
}

/// The paths that are named, and whether all of the folder is printed.
fn named<'s>(
    judge: &mut Judge<'_, '_>,
    shown: &Shown<'s>,
    parsed: &'s Parsed,
    folders: &[String],
) -> (Vec<&'s str>, bool) {
    let has = |names: &[&str]| names.iter().any(|name| parsed.has(name));
    let end = shown.args.iter().position(|arg| arg.known() == Some("--"));
    let paths = end.map_or(&[][..], |end| &shown.args[end + 1..]);
    let before = &parsed.operands[..parsed.operands.len().saturating_sub(paths.len())];
    let is_pattern = shown.name == "grep" && !has(&["e", "f"]);
    let before = if is_pattern { before.get(1..).unwrap_or_default() } else { before };
    // Elsewhere an operand may be a revision, of which all is printed.
    let is_path = matches!(shown.name, "blame" | "annotate");
    let mut is_all = before.is_empty() && paths.is_empty();
    let mut named: Vec<&str> = Vec::new();
    for arg in before {
        match arg.known() {
            Some(text) if text.contains(':') => {
                // `:/text` is a revision.
                is_all |= text.starts_with(":/");
                // A colon may stand in the revision, and in the name.
                let paths = text.match_indices(':').map(|(at, _)| &text[at + 1..]);
                for path in paths {
                    named.push(path);
                    let each = |folder: &String| (folder.clone(), path.to_owned());
                    judge.reading.revisions.extend(folders.iter().map(each));
                }
            }
            Some(text) => {
                named.push(text);
                is_all |= paths.is_empty() && !is_path;
            }
            None => is_all = true,
        }
    }
    for arg in paths {
        match arg.known() {
            Some(text) if ![":!", ":^", ":(exclude"].iter().any(|own| text.starts_with(own)) => {
                named.push(text);
            }
            _ => is_all = true,
        }
    }
    (named, is_all)
}

/// Whether a word may name a file of a revision.
fn may_be_file(arg: &Arg) -> bool {
    arg.known().is_none_or(|text| text.contains(':') && !text.starts_with(":/"))
}

/// A path as git gets it, which may be a pattern.
fn seen(folder: &str, path: &str) -> Operand {
    if path.starts_with(':') {
        return Operand::Unknown;
    }
    match path.find(['*', '?', '[']) {
        None => Operand::Path(joined(folder, path)),
        Some(at) => {
            let (start, _) = path[..at].rsplit_once('/').unwrap_or((".", ""));
            Operand::Below(joined(folder, start))
        }
    }
}
