//! Commands that would end haft itself.
//!
//! **Invariant:** pure. What is found is refused in every mode, so it is only what certainly reaches
//! haft's own processes: by their number, their group, their name, or a pattern that their name or
//! command line matches.

use regex::RegexBuilder;

use crate::{
    command::GAP,
    parts::{Line, Parts},
};

/// Letters of `pkill` and `pgrep` that are followed by a value of their own, `pkill`'s first.
const VALUES: &str = "uUGgPstFLrd";
/// Longest pattern, compiled, in bytes.
const PATTERN_LIMIT: usize = 1 << 20;

/// The processes that no command may end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Their numbers and those of their groups.
    pub ids: Vec<u32>,
    /// Their names, as the system shows them.
    pub names: Vec<String>,
    /// Their command lines, words joined by a blank.
    pub lines: Vec<String>,
}

/// What in a text would end one of them, and what to do instead, in a sentence of its own.
pub(crate) fn ends(parts: &Parts, own: &Own) -> Option<(String, &'static str)> {
    const ONE: &str = "Give kill the number of the one process that you mean.";
    let commands = || parts.runs.iter().flat_map(words);
    let kills = commands().any(|words| program(&words) == "kill");
    commands().find_map(|words| {
        let arguments = words.get(1..).unwrap_or_default();
        match program(&words) {
            "pkill" => by_pattern(arguments, own).then_some((
                "its pattern matches haft itself, whose command line may hold these words too",
                "Match more exactly (pkill -x NAME), or give kill the number that pgrep -a shows for \
                 the one process that you mean.",
            )),
            // What it finds goes to a kill in the same text.
            "pgrep" if kills || fed_to_kill(parts) => by_pattern(arguments, own).then_some((
                "what pgrep finds for it is haft itself, too",
                "Look first (pgrep -a), then give kill the number of the one process that you mean.",
            )),
            "pidof" if kills || fed_to_kill(parts) => arguments
                .iter()
                .any(|name| own.names.contains(name))
                .then_some(("that is haft itself", ONE)),
            "killall" => by_name(arguments, own)
                .then_some(("that is the name of haft itself, or of everything", ONE)),
            "killall5" => Some(("it ends everything, haft itself too", ONE)),
            "kill" => by_number(arguments, own)
                .then_some(("that number is haft itself, or everything", ONE)),
            _ => None,
        }
        .map(|(why, instead)| (format!("{}: {why}", words.join(" ")), instead))
    })
}

/// The words of every command that may start in a line.
fn words(line: &Line) -> impl Iterator<Item = Vec<String>> {
    let from = |start: &usize| line.joined.get(*start..);
    line.starts.iter().filter_map(from).map(|text| text.split(GAP).map(str::to_owned).collect())
}

/// The name of the program without its folder.
fn program(words: &[String]) -> &str {
    words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word))
}

/// Whether `xargs` hands something to `kill`.
fn fed_to_kill(parts: &Parts) -> bool {
    parts.runs.iter().flat_map(words).any(|words| {
        program(&words) == "xargs"
            && words.iter().any(|word| word.rsplit('/').next() == Some("kill"))
    })
}

/// `pkill` and `pgrep`: options, then a pattern.
fn by_pattern(arguments: &[String], own: &Own) -> bool {
    let (mut full, mut exact, mut any_case, mut others, mut users) =
        (false, false, false, false, false);
    let mut pattern = None;
    let mut arguments = arguments.iter();
    while let Some(word) = arguments.next() {
        if let Some(long) = word.strip_prefix("--") {
            full |= long == "full";
            exact |= long == "exact";
            any_case |= long == "ignore-case";
            others |= long == "inverse";
            users |= ["uid", "euid"].iter().any(|name| long.starts_with(name));
            if long.is_empty() {
                pattern = arguments.next();
            } else if ["signal", "uid", "euid", "parent", "group", "pgroup"].contains(&long) {
                arguments.next();
            }
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            // A signal's name or number stands alone.
            if letters.starts_with(|c: char| c.is_ascii_digit())
                || letters.len() > 2 && letters.chars().all(|c| c.is_ascii_uppercase())
            {
                continue;
            }
            for (at, letter) in letters.char_indices() {
                full |= letter == 'f';
                exact |= letter == 'x';
                any_case |= letter == 'i';
                others |= letter == 'v';
                users |= letter == 'u' || letter == 'U';
                if VALUES.contains(letter) {
                    if at + 1 == letters.len() {
                        arguments.next();
                    }
                    break;
                }
            }
        } else {
            pattern = Some(word);
        }
    }
    let Some(pattern) = pattern else { return users };
    let pattern = if exact { format!("^(?:{pattern})$") } else { pattern.clone() };
    let compiled =
        RegexBuilder::new(&pattern).case_insensitive(any_case).size_limit(PATTERN_LIMIT).build();
    // One that only `pkill` understands may be anything; it is judged like every other command.
    let Ok(compiled) = compiled else { return false };
    let all = if full { &own.lines } else { &own.names };
    all.iter().any(|text| compiled.is_match(text) != others)
}

/// `killall`: options, then names; with a user and no name, everything of that user.
fn by_name(arguments: &[String], own: &Own) -> bool {
    let (mut users, mut regex, mut any_case, mut names) = (false, false, false, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(word) = arguments.next() {
        users |= word == "-u" || word.starts_with("--user");
        regex |= word == "-r" || word == "--regexp";
        any_case |= word == "-I" || word == "--ignore-case";
        match word.as_str() {
            "-u" | "-s" | "-o" | "-y" | "-n" | "-Z" => drop(arguments.next()),
            word if word.starts_with('-') => {}
            name => names.push(name),
        }
    }
    let takes = |name: &&str| {
        let pattern = if regex { (*name).to_owned() } else { format!("^{}$", regex::escape(name)) };
        let compiled = RegexBuilder::new(&pattern)
            .case_insensitive(any_case)
            .size_limit(PATTERN_LIMIT)
            .build();
        compiled.is_ok_and(|compiled| own.names.iter().any(|text| compiled.is_match(text)))
    };
    if names.is_empty() { users } else { names.iter().any(takes) }
}

/// `kill`: a signal, then numbers of processes, or of groups with a sign.
fn by_number(arguments: &[String], own: &Own) -> bool {
    let mut numbers = arguments;
    while let Some((first, rest)) = numbers.split_first() {
        match first.as_str() {
            "-l" | "-L" | "--list" | "-0" => return false,
            "-s" | "-n" | "--signal" => {
                if rest.first().is_some_and(|signal| signal == "0") {
                    return false;
                }
                numbers = rest.get(1..).unwrap_or_default();
            }
            "--" => {
                numbers = rest;
                break;
            }
            word if word.starts_with('-') && !rest.is_empty() => {
                numbers = rest;
                break;
            }
            _ => break,
        }
    }
    let numbers = numbers.iter().filter(|word| *word != "--");
    numbers.into_iter().any(|word| {
        let number: Result<i64, _> = word.parse();
        number.is_ok_and(|number| {
            number == -1 || own.ids.iter().any(|id| i64::from(*id) == number.abs())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> bool {
        let own = Own {
            ids: vec![4242, 4200],
            names: vec!["haft".into(), "tool-supervisor".into()],
            lines: vec!["haft -p mend the server on port 8080".into(), "tool-supervisor".into()],
        };
        ends(&Parts::of(text), &own).is_some()
    }

    #[test]
    fn what_ends_haft_is_found() {
        for text in [
            "pkill haft",
            "pkill -9 haft",
            "pkill -KILL -x haft",
            "pkill ha.t",
            "pkill -i HAFT",
            "pkill -f server",
            "pkill -f -u root server",
            "pkill --signal KILL --full server",
            "cd /tmp && sudo pkill -f server; true",
            "pkill -v nginx",
            "pkill -u root",
            "killall haft",
            "killall -9 haft",
            "killall -I HAFT",
            "killall -r 'h.ft'",
            "killall -u root",
            "killall5 -9",
            "kill 4242",
            "kill -9 4242",
            "kill -s TERM 1 4242",
            "kill -TERM -4200",
            "kill -9 -1",
            "kill -- -1",
            "kill $(pgrep -f server)",
            "pgrep -f server | xargs kill -9",
            "kill -9 `pidof haft`",
            "bash -c 'pkill haft'",
            "(sleep 1; pkill haft) &",
        ] {
            assert!(found(text), "{text}");
        }
    }

    #[test]
    fn what_ends_something_else_is_not() {
        for text in [
            "pkill nginx",
            "pkill -f nginx",
            "pkill -x server",
            "pkill -9 -u root nginx",
            "pgrep -f server",
            "pgrep haft",
            "killall node",
            "killall -r '^node'",
            "kill 4243",
            "kill -9 42",
            "kill -0 4242",
            "kill -l",
            "kill -HUP 77",
            "kill -1 77",
            "kill %1",
            "kill $!",
            "kill 0",
            "echo pkill haft",
            "grep -r 'pkill haft' .",
            "git commit -m 'killall haft'",
            "pkill 'ha[ft'",
        ] {
            assert!(!found(text), "{text}");
        }
    }
}
