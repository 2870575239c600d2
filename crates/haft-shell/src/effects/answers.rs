//! What commands say, where more is known of it than that it is a text: numbers, and hashes of git.
//!
//! **Does not know:** files; what a command says on its standard error.

use std::ops::Range;

use super::{state::Value, words::Around};
use crate::syntax::{Command, Direction, Kind, Redirect, Word};

/// What some of these commands, in a substitution, say: a count, or a hash.
pub(super) fn of(
    around: &Around<'_>,
    commands: &Range<usize>,
    is_own: impl Fn(&str) -> bool,
) -> Option<Value> {
    let all = around.script.commands.get(commands.clone())?;
    let last = all.last()?;
    let is_answer = last.kind == Kind::Simple
        && last.place.is_answer
        && last.assignments.is_empty()
        && last.redirects.iter().all(keeps_output);
    let words = literal(last).filter(|_| is_answer)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words.first().is_some_and(|name| is_own(name)) {
        return None;
    }
    match words[..] {
        // Without its input it says nothing.
        ["wc", "-l" | "-c" | "-w" | "-m"] => Some(Value::Count),
        ["date", "+%s" | "+%s%N" | "+%Y"] | ["nproc"] if all.len() == 1 => Some(Value::Count),
        ["git", ref words @ ..] if all.len() == 1 && tells_hash(words) => Some(Value::Hash),
        _ => counts(all, commands.start, is_own).then_some(Value::Count),
    }
}

/// Whether a pipeline says numbers: of lines that `grep` finds in one file, or of what `wc` counts.
fn counts(all: &[Command], start: usize, is_own: impl Fn(&str) -> bool) -> bool {
    let is_step = |(at, command): (usize, &Command)| {
        let fed_by = (at > 0).then(|| start + at - 1);
        command.kind == Kind::Simple
            && command.assignments.is_empty()
            && command.place.fed_by == fed_by.or(command.place.fed_by)
            && command.redirects.iter().all(keeps_output)
    };
    let lines: Option<Vec<Vec<String>>> = all.iter().map(literal).collect();
    let Some(lines) = lines.filter(|_| all.iter().enumerate().all(is_step)) else { return false };
    let mut lines: Vec<Vec<&str>> =
        lines.iter().map(|line| line.iter().map(String::as_str).collect()).collect();
    if lines.iter().any(|line| line.first().is_some_and(|name| is_own(name))) || lines.is_empty() {
        return false;
    }
    let first = lines.remove(0);
    let is_cut = lines.last().is_some_and(|last| {
        let is_first = |sign: &str| {
            *last == ["cut", &format!("-d{sign}"), "-f1"]
                || *last == ["cut", "-f1", &format!("-d{sign}")]
                || *last == ["cut", "-d", sign, "-f", "1"]
                || *last == ["cut", "-d", sign, "-f1"]
                || *last == ["awk", &format!("-F{sign}"), "{print $1}"]
        };
        match first[0] {
            "grep" => is_first(":"),
            _ => is_first(" ") || *last == ["awk", "{print $1}"],
        }
    });
    let between = &lines[..lines.len().saturating_sub(1)];
    match first[..] {
        ["grep", flags, pattern, file] if !pattern.starts_with('-') => {
            let has = |letter: char| flags.contains(letter);
            let is_fine = is_flags(flags, "cnivEFwxm1a") && is_tame(file);
            is_fine
                && if has('c') {
                    lines.is_empty()
                } else {
                    has('n') && is_cut && between.iter().all(|line| picks(line))
                }
        }
        ["wc", flag, file] => {
            ["-l", "-c", "-w", "-m"].contains(&flag)
                && is_tame(file)
                && is_cut
                && between.is_empty()
        }
        _ => false,
    }
}

fn is_flags(word: &str, known: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|letters| !letters.is_empty() && letters.chars().all(|c| known.contains(c)))
}

/// Whether a program only leaves out lines.
fn picks(line: &[&str]) -> bool {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|c| c.is_ascii_digit());
    match line {
        ["head" | "tail", flag] => {
            let digits = flag.strip_prefix("-n").or_else(|| flag.strip_prefix('-'));
            digits.is_some_and(is_number)
        }
        ["head" | "tail", "-n", count] => is_number(count),
        _ => false,
    }
}

/// Whether a name, where it is said in a message in the place of a number, means nothing to the programs
/// that get it.
fn is_tame(file: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_part =
        |part: &str| part.starts_with(|c: char| c.is_ascii_alphanumeric() && !"weW".contains(c));
    file.chars().all(is_plain) && file.split('/').all(is_part)
}

/// The words of a command, where each is known as it is written.
fn literal(command: &Command) -> Option<Vec<String>> {
    command.words.iter().map(Word::literal).collect()
}

/// Whether a redirect leaves what a command says as it is, and adds nothing to it.
pub(super) fn keeps_output(redirect: &Redirect) -> bool {
    match redirect.how {
        Direction::Read | Direction::Text => true,
        Direction::Write => {
            redirect.descriptor.as_deref() == Some("2")
                && redirect.target.literal().as_deref() == Some("/dev/null")
        }
        Direction::Both | Direction::Duplicate => false,
    }
}

/// Whether git, asked so, tells hashes, or what it was asked.
pub(crate) fn tells_hash(words: &[&str]) -> bool {
    let is_name = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word.bytes().all(|c| c.is_ascii_alphanumeric() || b"._~^/@{}-".contains(&c))
    };
    let is_count = |word: &&str| {
        let word = word.strip_prefix("-n").or_else(|| word.strip_prefix('-')).unwrap_or_default();
        !word.is_empty() && word.bytes().all(|c| c.is_ascii_digit())
    };
    // Behind `--` stand files.
    let all = |words: &[&str], options: &[&str]| {
        let mut words = words.iter().take_while(|word| **word != "--");
        words.all(|word| options.contains(word) || is_name(word) || is_count(word))
    };
    match words {
        ["merge-base", rest @ ..] => all(rest, &["--octopus"]),
        // With these it tells a hash or nothing; else a file's name is told as it is written.
        ["rev-parse", rest @ ..] => {
            let verifies = rest.iter().any(|word| ["--verify", "--short"].contains(word));
            all(rest, &["--verify", "-q", "--quiet", "--short"])
                && !rest.contains(&"--")
                && (verifies || rest.iter().all(|word| is_revision(word)))
        }
        ["rev-list", rest @ ..] => {
            all(rest, &["-1", "-n1", "--max-count=1", "--max-parents=0", "--all", "--no-merges"])
        }
        ["log", rest @ ..] => {
            const FORMATS: [&str; 6] = [
                "--format=%H",
                "--format=%h",
                "--pretty=%H",
                "--pretty=%h",
                "--pretty=format:%H",
                "--pretty=format:%h",
            ];
            rest.iter().any(|word| FORMATS.contains(word))
                && all(rest, &[&["-1", "-n1", "--reverse", "--all"][..], &FORMATS].concat())
        }
        _ => false,
    }
}

/// Whether a word is a revision wherever there is one, and no name of a file that anybody hides.
fn is_revision(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let end = word.find(['~', '^', '@']).unwrap_or(word.len());
    let (name, rest) = word.split_at(end);
    let is_short = !rest.contains(['/', '.']) && !name.contains("..");
    let is_version =
        name.strip_prefix('v').unwrap_or(name).bytes().all(|c| b"0123456789.".contains(&c));
    let is_hex = name.len() >= 7 && name.bytes().all(|c| c.is_ascii_hexdigit());
    let is_tracked = ["origin/", "upstream/"]
        .iter()
        .find_map(|remote| name.strip_prefix(remote))
        .is_some_and(|branch| branch.chars().all(is_part));
    let known = ["HEAD", "ORIG_HEAD", "FETCH_HEAD", "main", "master", "develop", "trunk"];
    is_short && (known.contains(&name) || is_version || is_hex || is_tracked)
}
