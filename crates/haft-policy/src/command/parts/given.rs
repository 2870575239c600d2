//! Words that a command gets from elsewhere: from its input, from names that are found, and scripts in
//! options.
//!
//! **Does not know:** what they are.

use super::is_plain;
use crate::command::{
    lexer::{EXPANDS, QUOTED, REPLACED},
    programs::{Wrapper, holds},
};

/// Whether a word is nothing but what comes from elsewhere.
pub(super) fn is_mark(word: &str) -> bool {
    word.strip_prefix([EXPANDS, QUOTED]).is_some_and(|rest| rest == REPLACED.to_string())
}

/// The script in a word that is an option of a wrapper, empty where it is the next word: `-c`, `-qc`,
/// `-creboot`, `--command=reboot`; none where the option is another one.
pub(super) fn script<'w>(word: &'w str, wrapper: &Wrapper) -> Option<&'w str> {
    if holds(wrapper.scripts, word) {
        return Some("");
    }
    if let Some((long, value)) = word.split_once('=')
        && word.starts_with("--")
    {
        return holds(wrapper.scripts, long).then_some(value);
    }
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    for (at, letter) in letters.char_indices() {
        let option = format!("-{letter}");
        if holds(wrapper.scripts, &option) {
            return Some(&letters[at + letter.len_utf8()..]);
        }
        if !holds(wrapper.flags, &option) {
            return None;
        }
    }
    None
}

/// The words of a command to which words of the input are added, or put in the place of a mark, as these
/// options of `xargs` and `parallel` say.
pub(super) fn added(options: &[String], command: &[String]) -> Vec<String> {
    if command.is_empty() {
        return Vec::new();
    }
    let mark = replaced(options);
    let has_mark = |mark: &String| command.iter().any(|word| word.contains(mark.as_str()));
    let mark = mark.or_else(|| options.is_empty().then(|| "{}".to_owned()).filter(has_mark));
    let more = mark.is_none().then(|| format!("{EXPANDS}{REPLACED}"));
    let word = |word: &String| mark.as_ref().map_or(word.clone(), |mark| put(word, mark, ""));
    command.iter().map(word).chain(more).collect()
}

/// What stands for a word of the input.
fn replaced(options: &[String]) -> Option<String> {
    let mut found = None;
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let braces = || "{}".to_owned();
        let value = match option.as_str() {
            "-I" => options.next().cloned(),
            "-i" | "--replace" => Some(braces()),
            other => { ["-I", "-i", "--replace="].iter() }
                .find_map(|start| other.strip_prefix(start))
                .map(str::to_owned),
        };
        found = value.or(found);
    }
    found.filter(|mark| !mark.is_empty())
}

/// A word with what is not known in the place of a mark; scripts stay as they are.
fn put(word: &str, mark: &str, start: &str) -> String {
    let is_word = word.replace(mark, "").chars().all(|c| c == '=' || is_plain(&c.to_string()));
    if is_word && word.contains(mark) {
        word.replace(mark, &format!("{start}{QUOTED}{REPLACED}"))
    } else {
        word.to_owned()
    }
}

/// The words of a command that is run for what `find` or `fd` finds.
pub(super) fn found(words: &[String], command: &[String]) -> Vec<String> {
    let is_step = |word: &&String| !word.starts_with(['-', '(', '!', ',']);
    let from: Vec<&String> = words[1..].iter().take_while(is_step).collect();
    let all = |start: char| from.iter().all(|word| word.starts_with(start));
    let start = match from[..] {
        _ if !words[0].ends_with("find") => "",
        [] => "./",
        _ if all('.') => ".",
        _ if all('/') => "/",
        _ => "",
    };
    // `fd` puts it behind where it has no place.
    let is_added = !words[0].ends_with("find") && !command.iter().any(|word| word.contains('{'));
    let more = is_added.then(|| format!("{QUOTED}{REPLACED}"));
    command.iter().map(|word| put(word, "{}", start)).chain(more).collect()
}

/// The command of `parallel`, and the texts behind it of which each is run where there is none.
pub(super) fn divided(words: &[String]) -> (&[String], &[String]) {
    let is_end = |word: &String| matches!(word.as_str(), ":::" | ":::+" | "::::" | "::::+");
    match words.iter().position(is_end) {
        Some(0) => (&[], &words[1..]),
        Some(at) => (&words[..at], &[]),
        None => (words, &[]),
    }
}
