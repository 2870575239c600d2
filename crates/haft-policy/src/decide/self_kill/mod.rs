//! Commands that would end haft itself.
//!
//! **Invariant:** pure. A command that is found is refused in every mode, so only certain hits
//! count. A hit reaches haft's own processes, or a process above haft with which it may end (a
//! shell, a terminal, a client). It names them by process id, group, name, or a pattern that
//! matches their name or command line.

use haft_types::Target;
use regex::RegexBuilder;

use super::{Judged, Ruling};
use crate::{
    Policy, Verdict,
    command::{
        lexer::{EXPANDS, QUOTED, REPLACED},
        parts::{Line, Parts, plain},
    },
    rules::command_pattern::GAP,
};

/// Letters of `pkill` and `pgrep` that are followed by a value of their own, `pkill`'s first.
const VALUES: &str = "uUGgPstFLrd";
/// Longest pattern, compiled, in bytes.
const PATTERN_LIMIT: usize = 1 << 20;

/// Processes that no command may end: those of haft, or one that it runs below.
#[derive(Clone, Debug)]
pub struct OwnProcesses {
    /// Their numbers and those of their groups and sessions; of one above haft its own stands first.
    pub ids: Vec<u32>,
    /// Their names, as the system shows them.
    pub names: Vec<String>,
    /// Their command lines, words joined by a blank.
    pub lines: Vec<String>,
    /// Whose they are: names and numbers of that user and group. Without any name each name may be
    /// theirs: who is not root can end no other user's processes anyway.
    pub users: Vec<String>,
    /// The terminals that they are at, as `pts/1`.
    pub terminals: Vec<String>,
    /// Those that they run below, each by itself, the nearest first: looked up when a command may end
    /// processes at all.
    pub above: fn() -> &'static [Self],
}

impl Default for OwnProcesses {
    fn default() -> Self {
        let (ids, names, lines, users, terminals) = Default::default();
        Self { ids, names, lines, users, terminals, above: || &[] }
    }
}

impl OwnProcesses {
    /// Whether a number is one of theirs. 0 is none: it stands for the group of whoever says it, and
    /// for one that lies beyond what can be seen from here.
    fn has(&self, number: u64) -> bool {
        number != 0 && self.ids.iter().any(|id| u64::from(*id) == number)
    }

    /// Whether they may be those of a user or group.
    fn is_of(&self, user: &str) -> bool {
        let is_name = |text: &str| text.parse::<u32>().is_err();
        self.users.iter().any(|own| own == user)
            || is_name(user) && !self.users.iter().any(|own| is_name(own))
    }
}

impl Policy {
    /// A command that would end haft itself.
    pub(crate) fn fatal(&self, judged: &[Judged<'_>]) -> Option<Ruling> {
        judged.iter().find_map(|one| {
            let Target::Command { text, .. } = &one.effect.target else { return None };
            // Quotes within a word: `pk"ill"`.
            let lower = text.to_ascii_lowercase().replace(['"', '\'', '\\'], "");
            let is_named = |word: &str| lower.contains(word);
            // `$'\x6bill'`, `{k,}ill` and variables show only when they are read.
            if !lower.contains(['$', '{'])
                && !["kill", "stop-process", "spps"].iter().any(|word| is_named(word))
            {
                return None;
            }
            let mut all = vec![&self.own];
            all.extend((self.own.above)());
            let Ends { of, why, instead } = ends_in(text, one.rough(text), &all)?;
            let is_above = !std::ptr::eq(of, &raw const self.own);
            let who = of.names.first().zip(of.ids.first()).filter(|_| is_above);
            let (reason, more) = match who.map(|(name, id)| format!("{name} (process {id})")) {
                Some(who) => {
                    let why = why.replace("haft itself", &who);
                    let reason = format!("this would end {who}, below which haft runs: {why}");
                    (reason, " What runs as a job is ended by job stop.")
                }
                None => (format!("this would end haft: {why}"), ""),
            };
            let ruling = Ruling::new(Verdict::Deny, None, "", |_: &str| reason.clone());
            Some(Ruling { instead: Some(format!("{instead}{more}")), ..ruling })
        })
    }
}

/// What would be ended.
pub(crate) struct Ends<'a> {
    of: &'a OwnProcesses,
    why: String,
    /// What to do instead, in a sentence of its own.
    instead: &'static str,
}

/// What in a text would end one of them, also by what is handed on within it.
fn ends_in<'a>(text: &str, parts: &Parts, all: &[&'a OwnProcesses]) -> Option<Ends<'a>> {
    let spelled = || {
        let feeds = feeds(parts);
        let found = |text: String| {
            // Numbers that one command finds another one gets.
            let text = if feeds { format!("{text} | xargs kill") } else { text };
            ends(&Parts::of(&text), all)
        };
        crate::decide::expanded_args::spelled(text).into_iter().find_map(found)
    };
    ends(parts, all).or_else(spelled)
}

/// Whether something ends the processes whose numbers another command finds.
fn feeds(parts: &Parts) -> bool {
    fed_to_kill(parts) || parts.runs.iter().flat_map(words).any(|words| kills_what_is_found(&words))
}

/// What is run beside a command in the same text.
struct Beside {
    /// Something ends the processes whose numbers another command finds.
    feeds: bool,
    /// Those come from a list of processes.
    lists: bool,
    /// Something stops processes as PowerShell does.
    stops: bool,
    /// How many commands there are.
    count: usize,
}

/// What in a text would end one of them.
fn ends<'a>(parts: &Parts, all: &[&'a OwnProcesses]) -> Option<Ends<'a>> {
    let commands: Vec<_> = parts.runs.iter().flat_map(words).collect();
    let runs = |name: &str| commands.iter().any(|words| program(words) == name);
    let feeds = feeds(parts);
    let stops = commands.iter().any(|words| is_any(program(words), STOPPERS));
    let beside = Beside { feeds, lists: feeds && runs("ps"), stops, count: commands.len() };
    commands.iter().find_map(|words| {
        if program(words) == "trap" {
            // What it runs later is a text of its own.
            return words.get(1).and_then(|text| ends(&Parts::of(text), all));
        }
        all.iter().find_map(|of| {
            let (why, instead) = ends_one(words, &beside, of)?;
            Some(Ends { of, why: format!("{}: {why}", plain(&words.join(" "))), instead })
        })
    })
}

/// Why a command ends one of these, and what to do instead.
fn ends_one(
    words: &[String],
    found: &Beside,
    own: &OwnProcesses,
) -> Option<(&'static str, &'static str)> {
    const STOP: &str = "Give Stop-Process the Id of the one process that you mean.";
    const ONE: &str = "Give kill the number of the one process that you mean.";
    const LOOK: &str =
        "Look first (pgrep -a), then give kill the number of the one process that you mean.";
    let arguments = words.get(1..).unwrap_or_default();
    // In PowerShell it is another word for what stops processes there.
    let is_named = arguments.iter().any(|word| word.eq_ignore_ascii_case("-name"));
    match program(words) {
        "pkill" => by_pattern(arguments, own).then(|| {
            const EXACTLY: &str = "Match more exactly (pkill -x NAME), or give kill the number \
                                   that pgrep -a shows for the one process that you mean.";
            let flags = Chosen::of(arguments, own).flags;
            match (flags.contains('f'), flags.contains('x')) {
                (false, true) => ("that is the name of haft itself", ONE),
                (false, false) => ("its pattern matches haft itself", EXACTLY),
                (true, _) => (
                    "its pattern matches haft itself, whose command line may hold these words too",
                    EXACTLY,
                ),
            }
        }),
        // What it finds goes to a kill in the same text.
        "pgrep" if found.feeds => by_pattern(arguments, own)
            .then_some(("what pgrep finds for it is haft itself, too", LOOK)),
        "grep" | "egrep" | "awk" | "gawk" | "mawk" | "sed" if found.lists => {
            by_line(words, own).then_some(("what ps lists for it is haft itself, too", LOOK))
        }
        "ps" if found.feeds && tells_parent(arguments) => {
            Some(("what ps tells is the process of haft that runs the shell", ONE))
        }
        "pidof" if found.feeds => arguments
            .iter()
            .any(|name| own.names.contains(name))
            .then_some(("that is haft itself", ONE)),
        "killall" | "skill" => by_name(arguments, own)
            .then_some(("that is the name of haft itself, or of everything", ONE)),
        "tmux" => by_server(arguments, own).then_some((
            "haft itself keeps the terminal that this runs in",
            "Name what you mean: tmux kill-session -t NAME.",
        )),
        "killall5" => Some(("it ends everything, haft itself too", ONE)),
        "kill" => (by_number(arguments, own) || is_named && stops(arguments, own, false))
            .then_some(("that is haft itself, or everything", ONE)),
        name if is_any(name, STOPPERS) => {
            stops(arguments, own, false).then_some(("that is haft itself", STOP))
        }
        // What it finds goes to one of those.
        name if is_any(name, &["get-process", "gps"]) && found.stops => {
            let all = arguments.is_empty() && found.count == 2;
            (all || stops(arguments, own, true)).then_some(("that is haft itself, too", STOP))
        }
        _ => None,
    }
}

/// Whether `tmux` ends the server below which one of these runs.
fn by_server(arguments: &[String], own: &OwnProcesses) -> bool {
    let is_of = |name: &String| name.starts_with("tmux");
    let is = |word: &str| arguments.iter().any(|argument| argument == word);
    let has = |option: &str| arguments.iter().any(|argument| argument.starts_with(option));
    let is_other = has("-L") || has("-S");
    !is_other
        && own.names.iter().any(is_of)
        && (is("kill-server") || is("kill-session") && !has("-t"))
}

/// Whether `ps` tells the parent of the shell, or that one's.
fn tells_parent(arguments: &[String]) -> bool {
    let is_near =
        |word: &String| ["$", "BASHPID", "PPID"].contains(&word.trim_start_matches(MARKS));
    arguments.iter().any(|word| word.contains("ppid")) && arguments.iter().any(is_near)
}

/// Whether a word is the number of the shell's parent, with or without a sign.
fn is_parent(word: &str) -> bool {
    let word = word.strip_prefix('-').unwrap_or(word);
    let name = word.trim_start_matches(MARKS).trim_start_matches('{').trim_end_matches('}');
    word.starts_with(MARKS) && name == "PPID"
}

/// What stands before the name of a variable.
const MARKS: [char; 2] = [EXPANDS, QUOTED];

/// What ends processes in PowerShell.
const STOPPERS: &[&str] = &["stop-process", "spps"];

/// Whether a name of PowerShell, which knows no case, is one of these.
fn is_any(name: &str, names: &[&str]) -> bool {
    names.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// `Stop-Process` and what is like it: `-Id` with numbers, `-Name` with wildcards, each a list;
/// `named` says that names may stand alone, where numbers do otherwise.
fn stops(arguments: &[String], own: &OwnProcesses, named: bool) -> bool {
    let takes = |name: &str| {
        let pattern =
            regex::escape(&name.replace(EXPANDS, "")).replace("\\*", ".*").replace("\\?", ".");
        let compiled =
            RegexBuilder::new(&format!("^(?:{pattern})$")).case_insensitive(true).build();
        compiled.is_ok_and(|compiled| own.names.iter().any(|text| compiled.is_match(text)))
    };
    let mut by_name = named;
    arguments.iter().any(|word| {
        if let Some(option) = word.strip_prefix('-') {
            let option = option.to_ascii_lowercase();
            // Parameters may be cut short.
            by_name = !option.is_empty() && "name".starts_with(&*option)
                || named && !"id".starts_with(&*option);
            return false;
        }
        word.split(',').filter(|part| !part.is_empty()).any(|part| match part.parse::<u32>() {
            Ok(number) => own.has(number.into()),
            Err(_) => by_name && takes(part),
        })
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

/// Whether a command is a `kill` of numbers that are only known once something else was run.
fn kills_what_is_found(words: &[String]) -> bool {
    program(words) == "kill"
        && words[1..].iter().any(|word| {
            let name = word.trim_start_matches(MARKS);
            // The last job and the shell itself are known.
            name.len() < word.len() && !["!", "$", "BASHPID"].contains(&name)
                || word.contains(REPLACED)
        })
}

/// `grep` and others in what `ps` lists: a pattern that takes haft's own line.
fn by_line(words: &[String], own: &OwnProcesses) -> bool {
    let (options, texts): (Vec<_>, Vec<_>) =
        words[1..].iter().partition(|word| word.starts_with('-'));
    let has =
        |letter: char| options.iter().any(|word| !word.starts_with("--") && word.contains(letter));
    let Some(text) = texts.first() else { return false };
    let pattern = match program(words) {
        "grep" | "egrep" if has('v') => return false,
        "grep" | "egrep" if has('F') => regex::escape(text),
        "grep" | "egrep" => (*text).clone(),
        // A script: what stands between its first slashes.
        _ => match text.split('/').nth(1) {
            Some(pattern) if !text.starts_with("s/") && !text.contains("!/") => pattern.to_owned(),
            _ => return false,
        },
    };
    let pattern = if has('w') { format!("\\b(?:{pattern})\\b") } else { pattern };
    let compiled =
        RegexBuilder::new(&pattern).case_insensitive(has('i')).size_limit(PATTERN_LIMIT).build();
    let all = || own.lines.iter().chain(&own.names);
    !pattern.is_empty() && compiled.is_ok_and(|found| all().any(|text| found.is_match(text)))
}

/// What options of `pkill` and `pgrep` choose by.
#[derive(Clone, Debug, Default)]
struct Chosen {
    /// Letters of the options without a value.
    flags: String,
    /// Whether a user, a group or a process was named.
    named: bool,
    /// Whether one that was named is not haft's.
    apart: bool,
    pattern: Option<String>,
}

impl Chosen {
    fn of(arguments: &[String], own: &OwnProcesses) -> Self {
        let mut chosen = Self::default();
        let mut arguments = arguments.iter();
        while let Some(word) = arguments.next() {
            if let Some(long) = word.strip_prefix("--") {
                chosen.long(long, &mut arguments, own);
            } else if let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                // A signal's name or number stands alone.
                let is_name = letters.len() > 2 && letters.chars().all(|c| c.is_ascii_uppercase());
                if !is_name && !letters.starts_with(|c: char| c.is_ascii_digit()) {
                    chosen.letters(letters, &mut arguments, own);
                }
            } else {
                chosen.pattern = Some(word.clone());
            }
        }
        chosen
    }

    fn long(&mut self, long: &str, rest: &mut std::slice::Iter<'_, String>, own: &OwnProcesses) {
        let (name, value) = long.split_once('=').unwrap_or((long, ""));
        let flags = [("full", 'f'), ("exact", 'x'), ("ignore-case", 'i'), ("inverse", 'v')];
        self.flags.extend(flags.iter().filter(|(long, _)| *long == name).map(|(_, flag)| flag));
        if name.is_empty() {
            self.pattern = rest.next().cloned();
        }
        let letter = LONG.iter().find(|(long, _)| *long == name).map(|(_, letter)| *letter);
        if let Some(letter) = letter {
            let next = if long.contains('=') { None } else { rest.next() };
            self.choose(letter, next.map_or(value, String::as_str), own);
        }
    }

    fn letters(
        &mut self,
        letters: &str,
        rest: &mut std::slice::Iter<'_, String>,
        own: &OwnProcesses,
    ) {
        for (at, letter) in letters.char_indices() {
            self.flags.push(letter);
            if VALUES.contains(letter) {
                let attached = &letters[at + letter.len_utf8()..];
                let next = if attached.is_empty() { rest.next() } else { None };
                return self.choose(letter, next.map_or(attached, String::as_str), own);
            }
        }
    }

    fn choose(&mut self, letter: char, value: &str, own: &OwnProcesses) {
        let mut values = value.split(',');
        let is_own = match letter {
            'u' | 'U' | 'G' => values.any(|value| own.is_of(value)),
            't' => values.any(|value| {
                let value = value.strip_prefix("/dev/").unwrap_or(value);
                own.terminals.iter().any(|terminal| terminal == value)
            }),
            // Zero stands for the group or session of pkill itself, which is not haft's.
            'g' | 's' | 'P' => values
                .any(|value| is_parent(value) || value.parse().is_ok_and(|number| own.has(number))),
            _ => return,
        };
        self.named = true;
        self.apart |= !is_own;
    }
}

/// Options of `pkill` and `pgrep` with a value, and the letters that stand for them.
const LONG: [(&str, char); 8] = [
    ("signal", 'd'),
    ("uid", 'U'),
    ("euid", 'u'),
    ("group", 'G'),
    ("pgroup", 'g'),
    ("session", 's'),
    ("parent", 'P'),
    ("terminal", 't'),
];

/// `pkill` and `pgrep`: options, then a pattern.
fn by_pattern(arguments: &[String], own: &OwnProcesses) -> bool {
    let Chosen { flags, named, apart, pattern } = Chosen::of(arguments, own);
    let has = |flag| flags.contains(flag);
    let others = has('v');
    if apart {
        return others;
    }
    let Some(pattern) = pattern else { return named };
    let pattern = if has('x') { format!("^(?:{pattern})$") } else { pattern };
    let compiled =
        RegexBuilder::new(&pattern).case_insensitive(has('i')).size_limit(PATTERN_LIMIT).build();
    // One that only `pkill` understands may be anything; it is judged like every other command.
    let Ok(compiled) = compiled else { return false };
    let all = if has('f') { &own.lines } else { &own.names };
    all.iter().any(|text| compiled.is_match(text) != others)
}

/// `killall`: options, then names; with a user and no name, everything of that user.
fn by_name(arguments: &[String], own: &OwnProcesses) -> bool {
    let (mut users, mut apart) = (false, false);
    let (mut regex, mut any_case, mut names) = (false, false, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(word) = arguments.next() {
        let user = match word.as_str() {
            "-u" | "--user" => arguments.next().map(String::as_str),
            _ => word.strip_prefix("--user="),
        };
        if let Some(user) = user {
            users |= own.is_of(user);
            apart |= !users;
            continue;
        }
        regex |= word == "-r" || word == "--regexp";
        any_case |= word == "-I" || word == "--ignore-case";
        match word.as_str() {
            "-s" | "-o" | "-y" | "-n" | "-Z" => drop(arguments.next()),
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
    if apart {
        return false;
    }
    if names.is_empty() { users } else { names.iter().any(takes) }
}

/// `kill`: a signal, then numbers of processes, or of groups with a sign.
fn by_number(arguments: &[String], own: &OwnProcesses) -> bool {
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
        is_parent(word) || number.is_ok_and(|number| number == -1 || own.has(number.unsigned_abs()))
    })
}

#[cfg(test)]
mod tests;
