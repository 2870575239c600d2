//! What git throws away for good: objects that no ref needs, the logs that name them, and refs without
//! a name among the words.
//!
//! **Invariant:** what git does by itself in the same command, or only after its usual time, is none of
//! it; nor is what its reflog still has.

use super::reach::VALUED;
use crate::command::script::Part;

/// What a part of a script throws away; none where it does not.
pub(super) fn of(part: &Part) -> Option<&'static str> {
    match part.program.as_deref()? {
        "git" => {}
        "git-filter-repo" => return Some("history of git"),
        _ => return None,
    }
    let (settings, words) = split(&part.shapes);
    let (sub, rest) = words.split_first()?;
    let next = rest.iter().find(|word| !word.starts_with('-')).map(|word| &**word);
    let dry = || rest.iter().any(|word| is_short(word, 'n') || is_long(word, "--dry-run", 5));
    let timed = |option: &str, least: usize| {
        rest.iter().any(|word| word.contains('=') && is_long(word, option, least))
    };
    let expires = || {
        let is_expiry = |word: &&str| {
            let word = word.to_ascii_lowercase();
            word.starts_with("gc.")
                && word.split('=').next().is_some_and(|name| name.contains("expire"))
        };
        settings.iter().any(is_expiry)
    };
    let objects = Some("objects of git that nothing can bring back");
    let logs = Some("logs of git that nothing can bring back");
    match &**sub {
        "gc" if timed("--prune", 4) || expires() => objects,
        "maintenance" if expires() => objects,
        "repack"
            if timed("--cruft-expiration", 9) || timed("--unpack-unreachable", 4) || expires() =>
        {
            objects
        }
        // These two also take their time in the next word.
        "repack" if rest.iter().any(|word| is_long(word, "--unpack-unreachable", 4)) => objects,
        "prune" if !dry() => objects,
        "reflog" if matches!(next, Some("expire" | "delete")) && !dry() => logs,
        "stash" if next == Some("clear") => Some("all stashes of git"),
        "update-ref"
            if rest.iter().any(|word| is_short(word, 'd') || is_long(word, "--stdin", 4)) =>
        {
            Some("refs of git")
        }
        "filter-branch" | "filter-repo" => Some("history of git"),
        _ => None,
    }
}

/// The settings that git is given for this command, and its other words from the subcommand on.
fn split(words: &[String]) -> (Vec<&str>, &[String]) {
    let (mut settings, mut at) = (Vec::new(), 0);
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        at += 1;
        if VALUED.contains(&&**word) {
            let value = words.get(at).map(String::as_str);
            settings.extend(value.filter(|_| matches!(&**word, "-c" | "--config-env")));
            at += 1;
        } else if let Some(value) = word.strip_prefix("--config-env=") {
            settings.push(value);
        }
    }
    (settings, words.get(at..).unwrap_or_default())
}

/// Whether a letter is among the short options of a word.
fn is_short(word: &str, letter: char) -> bool {
    word.strip_prefix('-')
        .is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
}

/// Whether a word is this option, of which git needs so many letters only, with a value or without.
fn is_long(word: &str, option: &str, least: usize) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    name.len() >= least && option.starts_with(name)
}
