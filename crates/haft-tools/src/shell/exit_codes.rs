//! What an exit code means.
//!
//! **Invariant:** a failure is never called harmless. A status is called so only if it can come
//! from nothing but a known program's plain answer. It parses just enough of the shell's grammar
//! for that, and it gives up on whatever it does not know.

/// Programs whose exit code 1 is an answer, and the answer.
const ANSWERS: &[(&[&str], &str)] = &[
    (&["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack"], "no match"),
    (&["diff", "cmp"], "the files differ"),
    (&["test", "[", "[["], "false"),
    (&["pgrep"], "no such process"),
    (&["expr"], "the result is 0 or empty"),
];

/// Commands of git whose exit code 1 is an answer, where one of these flags is given or none is needed,
/// and the answer.
const GIT: &[(&str, &[&str], &str)] = &[
    ("grep", &[], "no match"),
    ("diff", &["--exit-code", "--quiet", "--no-index"], "the files differ"),
    ("merge-base", &["--is-ancestor"], "no ancestor"),
    ("check-ignore", &[], "not ignored"),
    ("config", &["--get", "--get-all", "--get-regexp"], "not set"),
];

/// Programs that run the rest of their words, whose own failures have other codes, and their options:
/// those without and with a word behind them. Of what is no option so many words are their own.
const WRAPPERS: &[(&str, &[&str], &[&str], usize)] = &[
    ("env", &["-i"], &["-u", "-C"], 0),
    ("timeout", &["--foreground", "--preserve-status"], &["-k", "-s"], 1),
    ("nice", &[], &["-n"], 0),
];

/// Commands that say so on standard error when they fail.
const LOUD: &[&str] = &[
    "cd", "pushd", "popd", "echo", "printf", "true", ":", "cat", "cp", "date", "head", "ls",
    "mkdir", "mv", "pwd", "rm", "rmdir", "tail", "touch", "wc",
];

/// Programs that wait for keys of a person.
const KEYS: &[&str] =
    &["vi", "vim", "nvim", "nano", "emacs", "micro", "helix", "hx", "less", "more", "top", "htop"];

/// Longest command in which one of them is looked for, in bytes.
const LONGEST: usize = 10_000;

/// The first program of a command that waits for keys; none where the command cannot be read.
pub(super) fn waits_for_keys(command: &str) -> Option<String> {
    let command = Some(command).filter(|command| command.len() <= LONGEST)?;
    let script = haft_shell::parse(command, &mut || true).ok()?;
    let simple = script.commands.iter().filter(|step| step.kind == haft_shell::Kind::Simple);
    simple.filter_map(|step| step.words.first()?.literal()).find_map(|name| {
        let name = name.rsplit('/').next()?;
        KEYS.contains(&name).then(|| name.to_owned())
    })
}

/// What exit code 1 says where it is no failure: `no match`.
///
/// `quiet` says that nothing came on standard error: programs complain there when they fail. Only `type`
/// gives its answer there.
pub(super) fn answer(command: &str, code: i32, quiet: bool) -> Option<String> {
    if code != 1 {
        return None;
    }
    let list = last_list(command)?;
    if !quiet && !list.iter().all(|words| program(words) == "type") {
        return None;
    }
    // It may come from any of them.
    let mut answers: Vec<&str> = Vec::new();
    for words in list {
        match says(unwrapped(&words)) {
            Some(answer) if answers.contains(&answer) => {}
            Some(answer) => answers.push(answer),
            None if is_loud(&words) => {}
            None => return None,
        }
    }
    (!answers.is_empty()).then(|| answers.join(", or "))
}

/// What exit code 1 of a simple command says.
fn says(words: &[String]) -> Option<&'static str> {
    let name = program(words);
    let has = |flags: &[&str]| words.iter().any(|word| flags.contains(&word.as_str()));
    match name.as_str() {
        "git" => git(words),
        "command" => has(&["-v"]).then_some("not found"),
        "type" | "which" => Some("not found"),
        name => ANSWERS.iter().find(|(names, _)| names.contains(&name)).map(|(_, answer)| *answer),
    }
}

/// Reports whether it would have complained where that can be seen.
fn is_loud(words: &[String]) -> bool {
    LOUD.contains(&program(words).as_str()) && !words.iter().any(|word| word.starts_with("2>"))
}

fn git(words: &[String]) -> Option<&'static str> {
    let of = |word: &String| GIT.iter().find(|(name, ..)| name == word);
    let at = words.iter().position(|word| of(word).is_some())?;
    let (_, flags, answer) = of(&words[at])?;
    let is_so = flags.is_empty() || words[at..].iter().any(|word| flags.contains(&word.as_str()));
    is_so.then_some(*answer)
}

/// The words of the command that one begins which only says how it runs; itself where that is none, or
/// is not clear.
fn unwrapped(words: &[String]) -> &[String] {
    let begin = words.iter().position(|word| !is_assignment(word)).unwrap_or(words.len());
    let name = program(words);
    let Some((_, alone, with, own)) = WRAPPERS.iter().find(|(wrapper, ..)| *wrapper == name) else {
        return words;
    };
    let mut at = begin + 1;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        at += match word.as_str() {
            word if alone.contains(&word) => 1,
            word if with.contains(&word) => 2,
            _ => return words,
        };
    }
    let rest = words.get(at + own..).unwrap_or_default();
    if rest.is_empty() { words } else { unwrapped(rest) }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

/// The name of the program that a simple command runs.
fn program(words: &[String]) -> String {
    let word = words.iter().find(|word| !is_assignment(word)).map_or("", String::as_str);
    word.rsplit('/').next().unwrap_or(word).to_owned()
}

/// The commands that the status of the script depends on: those joined by `&&` at its end, of a
/// pipe the last one. None where the grammar is beyond this reader.
fn last_list(command: &str) -> Option<Vec<Vec<String>>> {
    if command.len() > 10_000
        || ["$(", "`", "<<", "<(", "pipefail"].iter().any(|s| command.contains(s))
    {
        return None;
    }
    let mut reader = Reader::default();
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                '\n' => {}
                next => reader.push(next),
            },
            '\'' => reader.quoted(&mut chars, '\'')?,
            '"' => reader.quoted(&mut chars, '"')?,
            '#' if !reader.in_word => while chars.next_if(|c| *c != '\n').is_some() {},
            ' ' | '\t' => reader.end_word(),
            '>' | '<' => {
                reader.push(c);
                // `2>&1` and `>&2` are no lists.
                while let Some(c) = chars.next_if(|c| matches!(c, '&' | '>' | '|')) {
                    reader.push(c);
                }
            }
            '&' if chars.next_if_eq(&'&').is_some() => reader.end_command(true)?,
            '|' if chars.next_if_eq(&'|').is_some() => reader.end_list()?,
            '|' => {
                chars.next_if_eq(&'&');
                reader.end_word();
                reader.words.clear();
            }
            '\n' | ';' => reader.end_list()?,
            '&' | '(' | ')' | '{' | '}' => return None,
            c => reader.push(c),
        }
    }
    reader.end_command(false)?;
    Some(if reader.list.is_empty() { reader.previous } else { reader.list })
}

#[derive(Default)]
struct Reader {
    word: String,
    in_word: bool,
    words: Vec<String>,
    list: Vec<Vec<String>>,
    /// The list before, where nothing comes behind its end.
    previous: Vec<Vec<String>>,
    /// True behind `&&`.
    joined: bool,
}

impl Reader {
    fn push(&mut self, c: char) {
        self.word.push(c);
        self.in_word = true;
    }

    fn quoted(&mut self, chars: &mut impl Iterator<Item = char>, quote: char) -> Option<()> {
        self.in_word = true;
        loop {
            match chars.next()? {
                c if c == quote => return Some(()),
                '\\' if quote == '"' => self.word.push(chars.next()?),
                c => self.word.push(c),
            }
        }
    }

    fn end_word(&mut self) {
        if self.in_word {
            self.words.push(std::mem::take(&mut self.word));
        }
        self.in_word = false;
    }

    /// Ends a simple command; what changes the meaning of a status is given up on.
    fn end_command(&mut self, joined: bool) -> Option<()> {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        let Some(first) = words.first() else { return (!joined).then_some(()) };
        self.joined = joined;
        if [
            "set", "!", "if", "then", "else", "fi", "for", "while", "until", "do", "done", "case",
            "esac", "trap", "exec", "time",
        ]
        .contains(&first.as_str())
        {
            return None;
        }
        self.list.push(words);
        Some(())
    }

    fn end_list(&mut self) -> Option<()> {
        self.end_command(false)?;
        // A line end behind `&&` ends nothing.
        if !self.list.is_empty() && !self.joined {
            self.previous = std::mem::take(&mut self.list);
        }
        Some(())
    }
}

/// The name of a signal, where it is one that people know.
pub(super) const fn signal(number: i32) -> &'static str {
    match number {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        5 => "TRAP",
        6 => "ABRT",
        7 => "BUS",
        8 => "FPE",
        9 => "KILL",
        10 => "USR1",
        11 => "SEGV",
        12 => "USR2",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        16 => "STKFLT",
        24 => "XCPU",
        25 => "XFSZ",
        26 => "VTALRM",
        27 => "PROF",
        29 => "IO",
        30 => "PWR",
        31 => "SYS",
        34..=64 => "real-time",
        _ => "no common one",
    }
}

/// What a failing exit code of a command says by convention, beside what was complained of.
pub(super) fn convention(command: &str, code: i32, stderr: &str) -> Option<String> {
    let mut words = command.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
    match code {
        124 if words.any(|word| word == "timeout" || word == "gtimeout") => {
            Some("its own, or the time of `timeout` was over".to_owned())
        }
        126 => Some("found but not executable".to_owned()),
        // Shells end with it for other faults, too, such as variables without a value.
        127 if stderr.contains("not found") => Some("command not found".to_owned()),
        // Shells end so when a signal ended their child; a program may, for reasons of its own.
        129..=160 => {
            let number = code - 128;
            Some(format!("its own, or killed by signal {number} ({})", signal(number)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands, and what exit code 1 of each says.
    const CASES: &[(&str, Option<&str>)] = &[
        ("grep x f", Some("no match")),
        ("cat f | grep -q 'a;b && c'", Some("no match")),
        ("cd src && rg \"a \\\" b\"", Some("no match")),
        ("make; /usr/bin/grep x f 2>&1 # why | not", Some("no match")),
        ("LC_ALL=C grep x f\n", Some("no match")),
        ("diff a b", Some("the files differ")),
        ("git diff --exit-code", Some("the files differ")),
        ("git grep x", Some("no match")),
        ("test -f x || [ -f y ]", Some("false")),
        ("[[ a == b ]]", Some("false")),
        ("test -d x && echo there", Some("false")),
        ("[ -d x ] && [ -f y ] && ls x", Some("false")),
        ("test -d x && grep -q a x/b", Some("false, or no match")),
        ("grep -q x f && echo yes", Some("no match")),
        ("command -v nothing", Some("not found")),
        ("command -v a >/dev/null && echo a", Some("not found")),
        ("which nothing", Some("not found")),
        ("type -P nothing", Some("not found")),
        ("type nothing", Some("not found")),
        ("expr 0 + 0", Some("the result is 0 or empty")),
        ("timeout 5 grep zz f", Some("no match")),
        ("timeout -k 1 --foreground 5 nice -n 5 grep zz f", Some("no match")),
        ("env A=1 grep zz f", Some("no match")),
        ("B=2 env -i A=1 timeout 5 test -f x", Some("false")),
        ("git merge-base --is-ancestor a b", Some("no ancestor")),
        ("git -C x config --get user.name", Some("not set")),
        ("git check-ignore x", Some("not ignored")),
        ("git merge-base a b", None),
        ("timeout -x 5 grep zz f", None),
        ("timeout 5 make", None),
        ("timeout", None),
        ("env", None),
        ("command grep x f", None),
        ("test -d x && make", None),
        ("test -d x && cat x/b 2>/dev/null", None),
        ("cd x 2>/dev/null && grep a b", None),
        ("test -d x && echo $(make)", None),
        ("echo x && touch y", None),
        ("make && grep x f", None),
        ("make &&\n  grep x f", None),
        ("cd a &&\n  grep x f\n\n", Some("no match")),
        ("set -e; make; grep x f", None),
        ("set -o pipefail\nmake | grep x", None),
        ("! grep x f", None),
        ("grep x f; exit 1", None),
        ("grep x f && make", None),
        ("if grep x f; then make; fi", None),
        ("(cd a; make) && grep x", None),
        ("grep $(make) f", None),
        ("cat <<E\ngrep x\nE", None),
        ("grep x f & wait", None),
        ("make", None),
        ("git status", None),
        ("grep 'open", None),
        ("", None),
    ];

    #[test]
    fn answers_are_told_from_failures() {
        for &(command, want) in CASES {
            assert_eq!(answer(command, 1, true).as_deref(), want, "{command}");
            assert_eq!(answer(command, 2, true), None, "{command}");
            // Of what is said on standard error only one is an answer itself.
            let complaint = want.filter(|_| command.starts_with("type "));
            assert_eq!(answer(command, 1, false).as_deref(), complaint, "{command}");
        }
    }

    #[test]
    fn the_end_of_a_time_is_named() {
        let timed = |command: &str| convention(command, 124, "");
        assert!(timed("timeout 5 make").unwrap().contains("`timeout` was over"));
        assert!(timed("cd a && /usr/bin/timeout -k 1 5s make | tee log").is_some());
        assert_eq!(timed("make timeouts"), None);
        assert_eq!(convention("timeout 5 make", 1, ""), None);
    }
}
