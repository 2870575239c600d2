//! What a command's text runs and may run, for what denies and asks.
//!
//! **Invariant:** it finds every simple command of a text, and more than there are. Words that a
//! program may run, as the tables of `programs` have it, are kept apart: they are a question and no
//! denial. Where a command is only known once the shell runs, or comes from another place than the
//! text, it says which word is to blame.
//!
//! **Does not know:** what a command does.

use super::{
    lexer::{EXPANDS, QUOTED, REPLACED, Segment, expands},
    programs::{Program, Wrapper, holds, is_quiet, known, options},
    segments,
};
use crate::rules::command_pattern::{GAP, KEYWORDS, LONGEST};

/// Texts within texts that are looked through.
const NESTED: usize = 12;

/// Commands behind wrappers that are: they are words of the same text.
const WRAPPED: usize = 100;

/// Bytes of text that are looked through, those within others counted again.
const MOST: usize = 1 << 20;

/// Assignments that name a script which shells run first.
const STARTS_SHELLS: [&str; 2] = ["BASH_ENV=", "ENV="];

/// Variables whose value is one word without blanks, unless the text itself changes them.
const PATHS: &[&str] = &[
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CONDA_PREFIX",
    "GOBIN",
    "GOPATH",
    "GOROOT",
    "HOME",
    "JAVA_HOME",
    "NVM_DIR",
    "OLDPWD",
    "PWD",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "TMPDIR",
    "USER",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// Words joined by the gap, and where in them a command may start.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) joined: String,
    pub(crate) starts: Vec<usize>,
}

/// What a text runs, and what it may run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    /// The commands.
    pub(crate) runs: Vec<Line>,
    /// Words that some program may run, in the form of [`loosened`].
    pub(crate) mentions: Vec<Line>,
    /// All words and given texts, in the same form.
    pub(crate) said: Vec<Line>,
    /// The texts that commands are given as input.
    pub(crate) bodies: Vec<String>,
    /// The files that redirects write.
    pub(crate) targets: Vec<String>,
    /// Why not all commands are known, where that is so: what is to blame and what to write.
    pub(crate) unclear: Option<String>,
    /// Why not all of it was looked through, where that is so.
    pub(crate) cut: Option<String>,
    size: usize,
    functions: Vec<String>,
    /// Names that it gives to commands, and what they stand for.
    aliases: Vec<(String, String)>,
    /// Programs of which a subcommand is used that may be another name for one of theirs.
    pub(crate) renamed: Vec<String>,
    /// Of [`PATHS`], what the text may change.
    changed: Vec<&'static str>,
    /// Some shell of the text that is being read takes commands from its input.
    feeds: bool,
    /// Words of the input are added to the command that is being read.
    fed: bool,
    /// A script or program of a file is run.
    files: bool,
}

impl Parts {
    /// Looks through a text.
    pub(crate) fn of(text: &str) -> Self {
        let changed = PATHS.iter().copied().filter(|name| changes(text, name)).collect();
        let mut parts = Self { changed, ..Self::default() };
        if text.len() > LONGEST {
            parts.give_up(format!(
                "it is longer than {} KiB; put it into a script in a file and run that",
                LONGEST >> 10
            ));
            return parts;
        }
        parts.read(text, 0);
        for words in segments::followed(text) {
            parts.follow(&words);
        }
        parts
    }

    fn blame(&mut self, why: impl FnOnce() -> String) {
        self.unclear.get_or_insert_with(why);
    }

    fn give_up(&mut self, why: String) {
        self.unclear.get_or_insert_with(|| why.clone());
        self.cut.get_or_insert(why);
    }

    /// A command that shows once variables are followed.
    fn follow(&mut self, words: &[String]) {
        let joined = words.join("\0");
        let is_told = |line: &Line| line.starts.iter().any(|at| line.joined[*at..] == joined);
        if self.runs.iter().any(is_told) {
            return;
        }
        let name = program(&words[0], &self.changed).map(str::to_owned);
        self.run(words, name.as_deref());
    }

    /// Reports whether there is still room for a text; if not, it is to blame.
    fn has_room(&mut self, size: usize, is_deep: bool) -> bool {
        self.size += size;
        let fits = !is_deep && self.size <= MOST;
        if !fits {
            self.give_up("it holds commands within commands too deeply; write fewer".to_owned());
        }
        fits
    }

    /// A text that a shell runs.
    fn read(&mut self, text: &str, depth: usize) {
        if !self.has_room(text.len(), depth > NESTED) {
            return;
        }
        let lexed = segments::of(text);
        if lexed.open {
            self.blame(|| {
                "its quotes or brackets do not close, or may be read in two ways; write it more \
                 simply"
                    .to_owned()
            });
        }
        self.functions.extend(lexed.functions);
        let outer = std::mem::take(&mut self.feeds);
        for segment in &lexed.segments {
            let said = segment.words.iter().chain(&segment.data).chain(&segment.bodies);
            // `printf 'x\n'`
            self.said.extend(loose(said.map(|text| text.replace("\\n", " "))));
            self.targets.extend(segment.targets.iter().cloned());
            self.segment(segment, depth);
        }
        // What is written to a file here may be what is run from one.
        for segment in &lexed.segments {
            let writes = segment.writes || segment.words.iter().any(|word| word == "tee");
            if self.files && writes {
                self.mention(segment.words.iter().chain(&segment.bodies).map(String::as_str));
            }
        }
        if std::mem::replace(&mut self.feeds, outer) {
            // Anything of it may be what the shell reads.
            for segment in &lexed.segments {
                let words = segment.words.iter().skip(1).filter(|word| !is_plain(word));
                for script in words.chain(&segment.bodies) {
                    self.read(script, depth + 1);
                }
            }
        }
    }

    /// The assignments before a command, and the command: words of the grammar are left out.
    fn before<'w>(&mut self, mut words: &'w [String]) -> (Vec<String>, &'w [String]) {
        let is_word = |word: &String| KEYWORDS.contains(&word.as_str());
        let mut assigned = Vec::new();
        loop {
            words = match words {
                [first, name, rest @ ..] if first == "function" => {
                    self.functions.push(name.clone());
                    rest
                }
                // `coproc NAME { COMMANDS`, of which only the first stands here.
                [first, name, rest @ ..]
                    if first == "coproc" && !is_word(name) && rest.first().is_some_and(is_word) =>
                {
                    rest
                }
                [first, rest @ ..] if first == "coproc" => rest,
                [first, rest @ ..] if is_assignment(first) => {
                    assigned.push(first.clone());
                    rest
                }
                [first, rest @ ..] if first != "case" && is_word(first) => rest,
                _ => return (assigned, words),
            };
        }
    }

    fn segment(&mut self, segment: &Segment, depth: usize) {
        let (assigned, mut words) = self.before(&segment.words);
        // What follows it up to a bracket is compared and not run.
        if words.first().is_some_and(|word| word == "case") {
            words = &[];
        }
        self.assigned(&assigned, words.is_empty());
        let quiet = words.first().is_some_and(|first| {
            program(first, &self.changed).is_some_and(|name| {
                !self.functions.iter().any(|function| function == name)
                    && matches!(known(name), Some(Program::Quiet { .. }))
            })
        });
        for body in segment.bodies.iter().filter(|_| !quiet) {
            self.mention([body.as_str()]);
        }
        self.bodies.extend(segment.bodies.iter().cloned());
        self.command(words, depth);
    }

    /// Assignments before a command: its surroundings may name programs that it runs.
    fn assigned(&mut self, words: &[String], alone: bool) {
        if let Some(word) = words.iter().find(|w| STARTS_SHELLS.iter().any(|s| w.starts_with(s))) {
            self.blame(|| format!("{} makes a shell run a file first; leave it out", shown(word)));
        }
        let lower = |word: &&String| {
            word.split('=').next().is_some_and(|name| name.contains(char::is_lowercase))
        };
        let kept = words.iter().filter(|word| is_assignment(word) && !(alone && lower(word)));
        for word in kept {
            self.mention([word.as_str()]);
        }
    }

    /// A simple command, without what stands before it.
    fn command(&mut self, words: &[String], depth: usize) {
        let Some(first) = words.first() else { return };
        if !self.has_room(words.iter().map(String::len).sum(), depth > WRAPPED) {
            return;
        }
        let name = program(first, &self.changed).map(str::to_owned);
        self.run(words, name.as_deref());
        let Some(name) = name else {
            self.blame(|| unknown(first));
            return self.mention(words.iter().map(String::as_str));
        };
        if self.fed && !name.contains(char::is_alphanumeric) {
            self.blame(|| given(words));
        }
        self.files |= first.contains('/');
        self.elsewhere(&name, words);
        self.names(&name, words, depth);
        if self.functions.contains(&name) {
            return self.mention(words[1..].iter().map(String::as_str));
        }
        match known(&name) {
            Some(Program::Quiet { only, values, unless })
                if is_quiet(&words[1..], only, values, unless) => {}
            Some(Program::Wrapper(_)) if name == "command" && asks(words) => {}
            Some(Program::Wrapper(wrapper)) => self.wrapped(&name, words, wrapper, depth),
            Some(Program::Marked(marks)) => self.marked(words, marks, depth),
            Some(Program::Somewhere) => self.somewhere(&words[1..], depth),
            Some(Program::Shell) => self.shell(words, depth),
            Some(Program::Quiet { .. }) | None => {
                self.called(&words[1..], depth);
                self.mention(words[1..].iter().map(String::as_str));
            }
        }
    }

    /// Commands that come from a file or under another name.
    fn elsewhere(&mut self, name: &str, words: &[String]) {
        let short = |letter: char| {
            let mut options = words[1..].iter().filter(|word| word.starts_with('-'));
            options.any(|word| !word.starts_with("--") && word.contains(letter))
        };
        let rest = &words[1..];
        let is_elsewhere = match name {
            "." | "source" => {
                self.files = true;
                let from = rest.first();
                from.is_none_or(|file| !steady(file, &self.changed) || is_input(file))
            }
            "hash" => short('p'),
            "enable" => short('f'),
            "env" => short('S') || rest.iter().any(|word| word.starts_with("--split")),
            "at" | "batch" => !rest.iter().any(|word| word.starts_with("-f")),
            "su" => !rest.iter().any(|w| w.starts_with("--command") || is_script_option(w)),
            "parallel" => rest.iter().all(|word| word.starts_with('-')),
            _ => false,
        };
        self.feeds |= is_elsewhere && matches!(name, "at" | "batch" | "su" | "parallel");
        if is_elsewhere {
            let last = rest.first().map(|word| format!(" {}", plain(word))).unwrap_or_default();
            self.blame(|| {
                format!("`{name}{last}` runs commands that do not stand in it; write them there")
            });
        }
    }

    fn wrapped(&mut self, name: &str, words: &[String], wrapper: &Wrapper, depth: usize) {
        let (mut at, mut operands) = (1, wrapper.operands);
        while let Some(word) = words.get(at) {
            let is_option = word.starts_with('-') || (at > 1 && word == "-");
            let splits = !steady(word, &self.changed);
            if let Some(given) = given::script(word, wrapper).filter(|_| is_option) {
                return self.scripted(name, given, &words[at + 1..], depth);
            }
            if splits && (is_option || operands > 0 || is_assignment(word)) {
                self.blame(|| several(word));
                return self.somewhere(&words[at..], depth);
            }
            if is_option {
                let long = word.split('=').next().unwrap_or(word);
                let values = |option: &str| holds(wrapper.values, option);
                let attached =
                    word.char_indices().nth(2).is_some_and(|(end, _)| values(&word[..end]));
                let nice = name == "nice" && word[1..].bytes().all(|b| b.is_ascii_digit());
                if values(word) {
                    if let Some(value) = words.get(at + 1) {
                        if !steady(value, &self.changed) {
                            self.blame(|| several(value));
                        }
                        self.mention([value.as_str()]);
                    }
                    at += 1;
                } else if attached || long != word && values(long) || nice || word == "--" {
                    self.mention([word.as_str()]);
                } else if wrapper.flags != "*" && !holds(wrapper.flags, long) {
                    return self.somewhere(&words[at..], depth);
                }
            } else if wrapper.assigns && is_assignment(word) {
                self.assigned(&words[at..=at], false);
            } else if operands > 0 {
                operands -= 1;
            } else {
                break;
            }
            at += 1;
        }
        let (given, rest) = words.split_at(at.min(words.len()));
        self.starts(name, wrapper, (given, rest), depth);
    }

    /// What a wrapper runs, behind what is given to itself.
    fn starts(&mut self, name: &str, wrapper: &Wrapper, of: (&[String], &[String]), depth: usize) {
        let (before, rest) = of;
        let rest = self.behind(name, rest);
        if self.fed && matches!(rest, [] | [_]) && rest.iter().all(|word| given::is_mark(word)) {
            self.blame(|| given(before));
        }
        if wrapper.joins {
            self.read(&rest.join(" "), depth + 1);
        }
        let fed = self.fed;
        match name {
            "xargs" => {
                self.fed = true;
                self.command(&given::added(&before[1..], rest), depth + 1);
            }
            "parallel" => {
                let (command, texts) = given::divided(rest);
                for text in texts {
                    self.read(text, depth + 1);
                }
                self.command(&given::added(&[], command), depth + 1);
            }
            _ if !wrapper.joins => self.command(rest, depth + 1),
            _ => {}
        }
        self.fed = fed;
    }

    /// A script in an option of a wrapper, or in the word behind it.
    fn scripted(&mut self, name: &str, given: &str, rest: &[String], depth: usize) {
        let (script, rest) = match (given, rest) {
            ("", [script, rest @ ..]) => (script.as_str(), rest),
            (script, rest) => (script, rest),
        };
        if name == "env" {
            // What stands behind goes on with its words.
            let all = [&[script.to_owned()], rest].concat();
            return self.read(&all.join(" "), depth + 1);
        }
        self.read(script, depth + 1);
        self.mention(rest.iter().map(String::as_str));
    }

    /// What `time` stands before: as a word of the shell before compound commands, too.
    fn behind<'w>(&mut self, name: &str, words: &'w [String]) -> &'w [String] {
        if name != "time" {
            return words;
        }
        let (before, command) = self.before(words);
        self.assigned(&before, false);
        command
    }

    /// Commands behind words of a table, as those of `find`.
    fn marked(&mut self, words: &[String], marks: &str, depth: usize) {
        let attached = |word: &String| {
            let is_start = |mark: &str| {
                word.strip_prefix(mark).is_some_and(|rest| {
                    !rest.is_empty() && (mark.len() == 2 || rest.starts_with('='))
                })
            };
            marks.split_whitespace().any(is_start)
        };
        if words.iter().any(attached) {
            self.mention(words[1..].iter().map(String::as_str));
        }
        for (at, _) in words.iter().enumerate().filter(|(_, word)| holds(marks, word)) {
            // Where there is no more room that is told already.
            if self.size > MOST {
                break;
            }
            let rest = &words[at + 1..];
            let end = rest.iter().position(|word| word == ";").unwrap_or(rest.len());
            let found = given::found(words, &rest[..end]);
            if rest.first().is_some_and(|word| word.contains("{}")) {
                self.blame(|| given(&rest[..end]));
            }
            self.command(&found, depth + 1);
        }
    }

    /// A command starts at one of these words.
    fn somewhere(&mut self, words: &[String], depth: usize) {
        let joined = words.join("\0");
        self.has_room(joined.len(), false);
        let (mut at, mut starts) = (0, Vec::new());
        for (index, word) in words.iter().enumerate() {
            let name = program(word, &self.changed);
            starts.push(at);
            starts.extend(name.map(|name| at + word.len() - name.len()));
            at += word.len() + 1;
            let is_runner = name
                .and_then(known)
                .is_some_and(|known| !matches!(known, Program::Quiet { .. } | Program::Somewhere));
            if name.is_none() && !(index > 0 && words[index - 1].starts_with('-')) {
                self.blame(|| unknown(word));
            }
            if self.size > MOST {
                continue;
            }
            if !is_plain(word) && !is_assignment(word) {
                self.read(word, depth + 1);
            }
            if is_runner {
                self.command(&words[index..], depth + 1);
            }
        }
        self.runs.push(Line { joined, starts });
    }

    fn shell(&mut self, words: &[String], depth: usize) {
        let rest = &words[1..];
        if shell_reads_input(rest) {
            self.feeds = true;
            self.blame(|| {
                format!(
                    "`{}` runs commands that it reads; write them in the command itself",
                    plain(&words.join(" "))
                )
            });
        }
        let option = rest.iter().position(|w| is_script_option(w) || w.starts_with("--command"));
        let Some(option) = option else {
            self.files = true;
            return self.mention(rest.iter().map(String::as_str));
        };
        let (mut at, mut rest_given) = (option + 1, false);
        if let Some((_, script)) = rest[option].split_once('=') {
            rest_given = true;
            self.read(script, depth + 1);
        }
        while let Some(word) = rest.get(at).filter(|word| word.starts_with(['-', '+'])) {
            at += if word.ends_with(['o', 'O']) { 2 } else { 1 };
        }
        let (script, rest) =
            rest.get(at..).unwrap_or_default().split_at_checked(1).unwrap_or_default();
        match script {
            // One word from the input, or all of it.
            [] if !rest_given => self.blame(|| given(words)),
            [script] if self.fed && !script.contains(' ') => self.blame(|| given(words)),
            _ => {}
        }
        if let [script] = script {
            self.read(script, depth + 1);
        }
        self.mention(rest.iter().map(String::as_str));
    }

    /// Scripts of other languages that hand a text to a shell: `awk 'BEGIN { system("rm x") }'`.
    fn called(&mut self, words: &[String], depth: usize) {
        for word in words {
            for rest in word.split("system(").skip(1) {
                let rest = rest.trim_start();
                let Some(quote) = rest.chars().next().filter(|c| "\"'".contains(*c)) else {
                    continue;
                };
                let script = rest[1..].split(quote).next().unwrap_or_default();
                self.read(script, depth + 1);
            }
        }
    }

    /// Keeps a command.
    fn run(&mut self, words: &[String], name: Option<&str>) {
        let mut starts = vec![0];
        match name {
            Some("tee") => self.targets.extend_from_slice(&words[1..]),
            Some("cp" | "install" | "mv") => self.targets.extend(words[1..].last().cloned()),
            _ => {}
        }
        if let Some(name) = name {
            starts.extend(Some(words[0].len() - name.len()).filter(|&at| at > 0));
            self.run_bare(name, words);
        } else {
            // `rm$X` is `rm` where the variable is empty or starts with a blank.
            let head = words[0].split([EXPANDS, QUOTED]).next().unwrap_or_default();
            let head = head.trim_end_matches(['*', '?', '[', '{', '~']);
            let name = head.rsplit('/').next().unwrap_or(head);
            if !name.is_empty() {
                self.run_as(name, &words[1..]);
            }
        }
        self.runs.push(Line { joined: words.join("\0"), starts });
    }

    fn run_as(&mut self, name: &str, words: &[String]) {
        let joined = [name].into_iter().chain(words.iter().map(String::as_str));
        let joined = joined.collect::<Vec<_>>().join("\0");
        self.runs.push(Line { joined, starts: vec![0] });
    }

    /// A program of subcommands without its options before them: `git -C x push`.
    fn run_bare(&mut self, name: &str, words: &[String]) {
        let Some(Program::Quiet { only, values, .. }) = known(name) else { return };
        let at = 1 + options(&words[1..], values);
        if !(only.is_empty() && values.is_empty()) && at > 1 {
            self.run_as(name, &words[at..]);
        }
    }

    /// Keeps words that may be run.
    fn mention<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) {
        self.mentions.extend(loose(words));
    }
}

/// Words as other languages may divide them.
fn loose(words: impl IntoIterator<Item = impl AsRef<str>>) -> Option<Line> {
    let mut joined = String::new();
    for word in words {
        joined.push(GAP);
        loosen(word.as_ref(), &mut joined);
    }
    let after_gap = joined.match_indices(GAP).map(|(at, _)| at + 1);
    let starts: Vec<usize> = after_gap.filter(|&at| at < joined.len()).collect();
    (!starts.is_empty()).then_some(Line { joined, starts })
}

/// A text as other languages may divide it into words: every border of theirs is a gap.
pub(crate) fn loosened(text: &str) -> String {
    let mut loose = String::with_capacity(text.len());
    loosen(text, &mut loose);
    loose
}

fn loosen(text: &str, loose: &mut String) {
    for c in text.chars().filter(|c| *c != '\\') {
        let is_border = c.is_whitespace() || c.is_control() || "\"'`,;:=!|&<>(){}[]/$".contains(c);
        if !is_border {
            loose.push(c);
        } else if !loose.ends_with(GAP) {
            loose.push(GAP);
        }
    }
}

/// The last name of a program's path, where that is known.
fn program<'a>(word: &'a str, changed: &[&str]) -> Option<&'a str> {
    if !expands(word) {
        return Some(word.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(word));
    }
    let (folder, name) = word.rsplit_once('/')?;
    (!name.is_empty() && is_plain(name) && steady(folder, changed)).then_some(name)
}

/// Reports whether a word stays one word, whatever the shell replaces in it.
fn steady(word: &str, changed: &[&str]) -> bool {
    word.match_indices([EXPANDS, QUOTED]).all(|(at, mark)| {
        let rest = &word[at + mark.len()..];
        let is_end = |c: char| !(c == '_' || c.is_ascii_alphanumeric());
        let until = |text: &str| text.find(is_end).unwrap_or(text.len());
        let name = match rest.strip_prefix('{') {
            Some(rest) if rest[until(rest)..].starts_with('}') => &rest[..until(rest)],
            Some(_) => "",
            None => &rest[..until(rest)],
        };
        match word[..at].chars().next_back() {
            Some('*' | '?' | '[' | '{') => false,
            Some('~') => true,
            _ if mark == "\u{2}" => !name.is_empty(),
            _ => PATHS.contains(&name) && !changed.contains(&name),
        }
    })
}

/// Reports whether a text names a variable in another way than to use it.
fn changes(text: &str, name: &str) -> bool {
    let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let whole = !before.ends_with(is_name) && !after.starts_with(is_name);
        let used = before.ends_with('$') || (before.ends_with("${") && after.starts_with('}'));
        whole && !used
    })
}

/// Why a program is not known.
fn unknown(word: &str) -> String {
    let advice = if word.contains('/') && !word.contains(REPLACED) {
        "write its folder out or put it in double quotes"
    } else {
        "write the program's name there"
    };
    format!("which program {} is shows only when the shell runs; {advice}", shown(word))
}

/// Why a command that takes words from its input is not known.
fn given(words: &[String]) -> String {
    format!("`{}` runs words of its input; write the program's name there", plain(&words.join(" ")))
}

/// Why the place of a wrapped command is not known.
fn several(word: &str) -> String {
    format!(
        "{} may become several words when the shell runs; put it in double quotes or write it out",
        shown(word)
    )
}

/// A word as it may have been written, for people, in marks.
fn shown(word: &str) -> String {
    format!("`{}`", plain(word))
}

/// A word, or several, as they may have been written, for people.
pub(crate) fn plain(word: &str) -> String {
    let mut plain = String::new();
    let mut last = ' ';
    for c in word.chars().take(80) {
        match c {
            EXPANDS if "*?[{~".contains(last) => {}
            EXPANDS | QUOTED => plain.push('$'),
            REPLACED => plain.push_str("(...)"),
            c => plain.extend(c.escape_debug()),
        }
        last = c;
    }
    plain
}

/// `command -v x` says what x is.
fn asks(words: &[String]) -> bool {
    words.get(1).is_some_and(|word| matches!(word.as_str(), "-v" | "-V" | "-pv" | "-pV"))
}

/// Reports whether a word is no script of more than itself.
fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || "_./:@%+,-".contains(c))
}

/// Reports whether an option of a shell is followed by its script: `-c`, `-lc`.
fn is_script_option(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains('c')
}

fn is_input(file: &str) -> bool {
    file.starts_with("/dev/") || file.starts_with("/proc/")
}

fn shell_reads_input(words: &[String]) -> bool {
    if let [only] = words
        && matches!(only.as_str(), "--version" | "--help")
    {
        return false;
    }
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if is_script_option(word) || word.starts_with("--command") {
            return false;
        }
        match word.strip_prefix(['-', '+']) {
            None => return is_input(word) || word.contains(REPLACED),
            Some("rcfile" | "-rcfile" | "-init-file") => drop(words.next()),
            Some(long) if long.starts_with('-') => {}
            Some(letters) if letters.contains('s') => return true,
            Some(letters) if letters.ends_with(['o', 'O']) => drop(words.next()),
            Some(_) => {}
        }
    }
    true
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name).replacen("[\u{1}", "[", 1);
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_[]".contains(c))
    })
}

mod given;
mod names;
#[cfg(test)]
mod tests;
