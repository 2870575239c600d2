//! Writes commands out with the values that are passed on to them: through variables, functions,
//! loops, `read`, `xargs` and scripts of a shell.
//!
//! **Invariant:** an over-approximation: each value that a name may have is tried, whatever the
//! order in which a script runs. It is only fit for refusing commands.
//!
//! **Does not know:** the output of commands other than `echo` and `printf`.

use std::collections::HashMap;

use haft_shell::{Command, Direction, Flow, Kind, Piece, Script, Word};

use crate::command::work::Work;

/// The most ways in which one command is written out.
const WAYS: usize = 32;
/// The most commands that are.
const MOST: usize = 256;
/// Names within names, and scripts within scripts.
const NESTED: usize = 4;

/// Values of `xargs` that stand in a word of their own.
const XARGS_VALUES: [&str; 10] =
    ["-n", "-P", "-L", "-d", "-s", "-a", "-E", "--max-args", "--max-procs", "--delimiter"];

/// Words that are handed on, and the function that they stand in.
type Value = (String, Vec<Vec<Piece>>);

/// The commands of a text that end processes, with what is handed on to them.
pub(crate) fn spelled(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    if text.contains('$') || text.contains("xargs") {
        nested(text, &[], 0, &mut all);
    }
    all
}

/// The same of a script that gets these words.
fn nested(text: &str, given: &[String], depth: usize, all: &mut Vec<String>) {
    let mut work = Work::new();
    let Ok(script) = haft_shell::parse(text, &mut || work.go_on()) else { return };
    let mut handed = ExpandedArgs { text, script: &script, values: HashMap::new() };
    let quoted = |word: &String| vec![Piece::Text { text: word.clone(), quoted: true }];
    handed.call("", &given.iter().skip(1).map(quoted).collect::<Vec<_>>(), "");
    if let Some(name) = given.first() {
        handed.add("", "0", "", vec![quoted(name)]);
    }
    script.commands.iter().for_each(|command| handed.note(command));
    for command in &script.commands {
        if all.len() > MOST {
            return;
        }
        let ways = handed.ways(command);
        let fed = handed.fed(command, &ways);
        let is_meant =
            |text: &String| ["kill", "pgrep", "pidof"].iter().any(|name| text.contains(name));
        all.extend(ways.iter().map(|words| words.join(" ")).chain(fed).filter(is_meant));
        for words in ways.iter().filter(|_| depth < NESTED) {
            if let Some((script, given)) = script_of(words) {
                nested(&script, &given, depth + 1, all);
            }
        }
    }
}

/// What is handed on in one script.
struct ExpandedArgs<'a> {
    text: &'a str,
    script: &'a Script,
    /// By function, where it is one of its parameters, and name.
    values: HashMap<(String, String), Vec<Value>>,
}

impl ExpandedArgs<'_> {
    fn add(&mut self, function: &str, name: &str, from: &str, words: Vec<Vec<Piece>>) {
        let key = (function.to_owned(), name.to_owned());
        self.values.entry(key).or_default().push((from.to_owned(), words));
    }

    /// The words that a function, or the script itself, is called with.
    fn call(&mut self, function: &str, words: &[Vec<Piece>], from: &str) {
        for (at, word) in words.iter().enumerate() {
            self.add(function, &(at + 1).to_string(), from, vec![word.clone()]);
        }
        for all in ["@", "*"] {
            self.add(function, all, from, words.to_vec());
        }
    }

    /// The function that a command stands in.
    fn function(&self, command: &Command) -> String {
        let mut at = command.place.region;
        while let Some(region) = self.script.regions.get(at) {
            match &region.flow {
                Flow::Function(name) => return name.clone(),
                _ if region.parent == at => break,
                _ => at = region.parent,
            }
        }
        String::new()
    }

    /// Notes what a command hands on.
    fn note(&mut self, command: &Command) {
        let from = self.function(command);
        for assignment in &command.assignments {
            for value in &assignment.values {
                self.add("", &assignment.name, &from, vec![value.pieces.clone()]);
            }
        }
        let words = || command.words.iter().skip(1).map(|word| word.pieces.clone());
        let Some(first) = command.words.first().and_then(Word::literal) else { return };
        if command.kind == Kind::Loop {
            words().for_each(|word| self.add("", &first, &from, vec![word]));
        } else if self.script.functions.contains(&first) {
            self.call(&first, &words().collect::<Vec<_>>(), &from);
        } else if first == "set" {
            let is_option = |word: &&Word| word.start().starts_with(['-', '+']);
            let skipped = command.words[1..].iter().take_while(is_option).count();
            self.call(&from, &words().skip(skipped).collect::<Vec<_>>(), &from);
        } else if first == "read" {
            for name in command.words[1..].iter().filter_map(Word::literal) {
                for word in self.read() {
                    self.add("", &name, "", vec![word]);
                }
            }
        }
    }

    /// Words that some command of the script may read.
    fn read(&self) -> Vec<Vec<Piece>> {
        let script = self.script;
        let is_fed = |command: &&Command| {
            let feeds = command.place.is_subshell && !command.place.is_substituted;
            feeds && says(command).is_some()
        };
        let said = script.commands.iter().filter(is_fed);
        let said = said.flat_map(|command| says(command).unwrap_or_default());
        let redirects = script.commands.iter().flat_map(|command| &command.redirects);
        let texts = redirects.filter(|redirect| redirect.how == Direction::Text);
        said.chain(texts.map(|redirect| &redirect.target)).flat_map(divided).collect()
    }

    /// A command in each way in which it may be written out.
    fn ways(&self, command: &Command) -> Vec<Vec<String>> {
        let function = self.function(command);
        let mut all: Vec<Vec<String>> = vec![Vec::new()];
        if command.kind != Kind::Simple {
            return all;
        }
        for word in &command.words {
            let made = self.word(&word.pieces, word, &function, 0);
            let way = |before: &Vec<String>, made: &String| {
                before.iter().chain([made]).cloned().collect::<Vec<_>>()
            };
            all = all.iter().flat_map(|one| made.iter().map(move |made| way(one, made))).collect();
            all.truncate(WAYS);
        }
        all
    }

    /// What a word may be, each as a shell reads it.
    fn word(&self, pieces: &[Piece], whole: &Word, function: &str, depth: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        for piece in pieces {
            let made = match piece {
                Piece::Text { text, .. } => vec![quoted(text)],
                Piece::Variable { name, .. } => self.variable(name, whole, function, depth),
                Piece::Expansion { .. } => {
                    let raw = self.text.get(whole.span.clone()).unwrap_or_default();
                    let rest = raw.split_once("${").map_or("", |(_, rest)| rest);
                    let is_end = |c: char| c != '_' && !c.is_ascii_alphanumeric();
                    let name = &rest[..rest.find(is_end).unwrap_or(rest.len())];
                    self.variable(name, whole, function, depth)
                }
                _ => vec!["\"$x\"".to_owned()],
            };
            let joined = |before: &String, made: &String| format!("{before}{made}");
            all = all.iter().flat_map(|one| made.iter().map(move |m| joined(one, m))).collect();
            all.truncate(WAYS);
        }
        all
    }

    fn variable(&self, name: &str, whole: &Word, function: &str, depth: usize) -> Vec<String> {
        let is_parameter = name == "@" || name == "*" || name.parse::<u8>().is_ok();
        let key = (if is_parameter { function } else { "" }.to_owned(), name.to_owned());
        let found = self.values.get(&key).filter(|_| depth < NESTED);
        let mut all: Vec<String> = Vec::new();
        for (from, words) in found.into_iter().flatten().take(WAYS) {
            let first = |word: &Vec<Piece>| {
                self.word(word, whole, from, depth + 1).into_iter().next().unwrap_or_default()
            };
            match &words[..] {
                [word] => all.extend(self.word(word, whole, from, depth + 1)),
                words => all.push(words.iter().map(first).collect::<Vec<_>>().join(" ")),
            }
        }
        if all.is_empty() {
            all.push(if is_name(name) { format!("\"${name}\"") } else { "\"$x\"".to_owned() });
        }
        all
    }

    /// What `xargs` runs, with each word that it certainly gets.
    fn fed(&self, command: &Command, ways: &[Vec<String>]) -> Vec<String> {
        let feeder = command.place.fed_by.and_then(|at| self.script.commands.get(at));
        let said = feeder.and_then(says).unwrap_or_default().into_iter();
        let texts = command.redirects.iter().filter(|redirect| redirect.how == Direction::Text);
        let given = said.chain(texts.map(|redirect| &redirect.target)).flat_map(divided);
        let function = feeder.map(|feeder| self.function(feeder)).unwrap_or_default();
        let whole = Word::default();
        let given: Vec<String> =
            given.flat_map(|word| self.word(&word, &whole, &function, 0)).take(WAYS).collect();
        let mut all = Vec::new();
        for words in ways {
            let bare: Vec<&str> = words.iter().map(|word| word.trim_matches('\'')).collect();
            let Some(at) = bare.iter().position(|word| *word == "xargs") else { continue };
            let is_command = |&at: &usize| {
                !bare[at].starts_with('-')
                    && !XARGS_VALUES.contains(&bare[at - 1])
                    && bare[at - 1] != "-I"
            };
            let Some(start) = (at + 1..bare.len()).find(is_command) else { continue };
            let own = bare[at..start].iter().position(|word| word.starts_with("-I"));
            let mark = own.map(|own| match bare[at + own].strip_prefix("-I") {
                Some("") | None => bare.get(at + own + 1).copied().unwrap_or("{}"),
                Some(mark) => mark,
            });
            let command = words[start..].join(" ");
            all.extend(given.iter().map(|word| match mark {
                Some(mark) => command.replace(mark, word.trim_matches('\'')),
                None => format!("{command} {word}"),
            }));
        }
        all
    }
}

/// What a command prints that prints its words.
fn says(command: &Command) -> Option<Vec<&Word>> {
    let name = command.words.first()?.literal()?;
    ["echo", "printf"].contains(&&*name).then(|| command.words.iter().skip(1).collect())
}

/// The words that a text becomes where it is read.
fn divided(word: &Word) -> Vec<Vec<Piece>> {
    let literal: Option<String> = word
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let one = |text: &str| vec![Piece::Text { text: text.to_owned(), quoted: true }];
    match literal {
        Some(text) => text.split_whitespace().map(one).collect(),
        None => vec![word.pieces.clone()],
    }
}

/// The script that a shell is given, and the words behind it, the first of which is its name.
fn script_of(words: &[String]) -> Option<(String, Vec<String>)> {
    let bare: Vec<&str> = words.iter().map(|word| word.trim_matches('\'')).collect();
    let at = bare.iter().position(|word| word.starts_with('-') && word.ends_with('c'))?;
    let is_shell = |word: &&str| {
        ["sh", "bash", "dash", "zsh", "ksh"].contains(&word.rsplit('/').next().unwrap_or(word))
    };
    bare[..at].iter().any(is_shell).then_some(())?;
    let (script, given) = bare.get(at + 1..)?.split_first()?;
    let script = script.replace("'\\''", "'");
    Some((script, given.iter().map(|word| (*word).to_owned()).collect()))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c == b'_' || c.is_ascii_alphanumeric())
}

/// A text that stands for itself.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
