//! `ps`, which can show the environments of programs, and what is in them.
//!
//! **Invariant:** no letter `e` is taken without a dash, and none with one where `ps` could read the
//! words a second time, as if they had none: it does where something in them is wrong.

use super::Call;
use crate::effects::{
    judge::{Judge, Outcome},
    words::Arg,
};

/// Words with an `e` that are right beside each other, so that they keep their dashes.
const WHOLE: [&str; 13] = [
    "-e", "-ef", "-eF", "-el", "-ely", "-elf", "-eLf", "-ejH", "-eH", "-eM", "-efww", "-eww", "-eo",
];
/// Letters that show no environment, with a dash and without.
const LETTERS: &str = "aAcdfFhHjlLmMnrsSTuvwxyZ";

/// `ps aux`, `ps -ef`, `ps -p 1 -o pid,args`
pub(super) fn ps(_: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let words: Option<Vec<&str>> = call.args.iter().map(Arg::known).collect();
    if !words.is_some_and(|words| is_harmless(&words)) {
        out.fault("with these words ps may show environments");
    }
}

fn is_harmless(words: &[&str]) -> bool {
    let is_whole = words.first().is_some_and(|first| WHOLE.contains(first));
    let mut rest = words.iter().skip(usize::from(is_whole)).copied();
    // The format is a word of its own.
    if words.first() == Some(&"-eo") && !rest.next().is_some_and(is_format) {
        return false;
    }
    while let Some(word) = rest.next() {
        let is_fine = match word.strip_prefix("--") {
            Some("forest" | "no-headers" | "no-heading" | "headers" | "version" | "help") => true,
            Some("sort") => rest.next().is_some_and(is_format),
            Some("pid" | "ppid") => rest.next().is_some_and(is_list),
            Some(long) => match long.split_once('=') {
                Some(("sort", value)) => is_format(value),
                Some(("pid" | "ppid", value)) => is_list(value),
                _ => false,
            },
            None if is_whole && word == "-o" => {
                words[0] != "-ef" && rest.next().is_some_and(is_format)
            }
            None if is_whole => ["-w", "-ww", "-H"].contains(&word),
            None => letters(word, &mut rest),
        };
        if !is_fine {
            return false;
        }
    }
    true
}

/// A word of letters, with a dash or without, and the value that the last of them takes.
fn letters<'a>(word: &str, rest: &mut impl Iterator<Item = &'a str>) -> bool {
    let all = word.strip_prefix('-').unwrap_or(word);
    if all.is_empty() || is_list(word) {
        return !all.is_empty();
    }
    let at = all.find(|c| !LETTERS.contains(c)).unwrap_or(all.len());
    let mut left = all[at..].chars();
    let is_value: fn(&str) -> bool = match left.next() {
        None => return true,
        Some('o') => is_format,
        Some('p' | 'q') => is_list,
        // Read without its dash, the name may be letters.
        Some('C' | 'U') if word.starts_with('-') => |name| !name.contains(['e', 'E', '-']),
        Some(_) => return false,
    };
    match left.as_str() {
        "" => rest.next().is_some_and(is_value),
        value => is_value(value),
    }
}

/// Numbers of processes.
fn is_list(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit() || c == b',')
}

/// Names of columns, with their headings.
fn is_format(text: &str) -> bool {
    text.len() > 1 && !text.to_ascii_lowercase().contains("env")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_environment_is_shown() {
        let is_taken = |text: &str| is_harmless(&text.split(' ').collect::<Vec<_>>());
        for text in [
            "aux",
            "-aux",
            "auxww",
            "axjf",
            "-ef",
            "-eLf",
            "-e -o pid,args",
            "-eo pid,user --sort=-rss",
            "-p 12,13 -o etime=",
            "1",
            "axo user,pid",
            "aux --sort -rss",
            "-C sshd -f",
            "-u root",
            "--ppid 3 -o pid",
            "-A",
            "-efww --forest",
        ] {
            assert!(is_taken(text), "{text}");
        }
        for text in [
            "axeww",
            "auxe",
            "e",
            "-E",
            "aux e",
            "-ax -e",
            "-axe",
            "-auxe",
            "-ef e",
            "-ef -u xw",
            "-ef -o cmd",
            "-o environ",
            "-eo pid,env",
            "-ax -C e",
            "--sort e e",
            "-x -u e",
            "p 1 e",
            "-eE",
            "-p",
            "axoe",
            "-Ae",
            "--unknown",
        ] {
            assert!(!is_taken(text), "{text}");
        }
        assert!(is_harmless(&[]));
    }
}
