//! The generous reading of a command's text, without a shell grammar.
//!
//! **Invariant:** it finds every simple command of a text, and more than there are; where one is
//! only known once the shell runs, or comes from another place than the text, it says so.
//!
//! **Does not know:** what a command does. A grammar takes this module's place later.

use std::{iter::Peekable, str::Chars};

use crate::command::{GAP, KEYWORDS, LONGEST};

/// Positions behind a wrapper at which the wrapped command may start.
const DEEPEST: usize = 24;

/// Texts within texts that are looked through.
const NESTED: usize = 6;

/// Bytes of possible commands that are kept; one long command takes less, whatever it is.
const MOST: usize = 16 << 20;

/// Programs that run the program named after them.
const WRAPPERS: &[&str] = &[
    "bwrap",
    "busybox",
    "caffeinate",
    "choom",
    "chroot",
    "chrt",
    "dbus-run-session",
    "doas",
    "env",
    "exec",
    "faketime",
    "fakeroot",
    "fd",
    "find",
    "firejail",
    "flock",
    "gosu",
    "i386",
    "ionice",
    "linux32",
    "linux64",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "pkexec",
    "prlimit",
    "proot",
    "proxychains",
    "runcon",
    "runuser",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su-exec",
    "sudo",
    "systemd-run",
    "taskset",
    "timeout",
    "tini",
    "toybox",
    "torsocks",
    "unbuffer",
    "unshare",
    "valgrind",
    "x86_64",
    "xargs",
    "xvfb-run",
];

/// Words of the shell itself that run the command named after them, and nothing else does.
const BUILTINS: &[&str] = &["builtin", "command", "coproc", "eval", "time"];

/// Shells: they take a script in a word, from a file, or from their input.
const SHELLS: &[&str] =
    &["ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "rbash", "sh", "tcsh", "yash", "zsh"];

/// Other programs that take a script in one of their words.
const SCRIPTED: &[&str] =
    &["flock", "parallel", "runuser", "script", "sg", "ssh", "su", "trap", "watch"];

/// Assignments that name a script which shells run first.
const STARTS_SHELLS: [&str; 2] = ["BASH_ENV=", "ENV="];

/// Marks, in a word after quote removal, that the shell still replaces something in it.
const EXPANDS: char = '\u{1}';

/// The same before a command whose output it becomes.
const RUNS: &str = "\u{1}(";

/// Every place of a text at which a simple command may start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    /// Words joined by the gap, each from one possible start to the end of its part.
    starts: Vec<String>,
    /// Bytes of them, at least.
    size: usize,
    /// True when some part's program is only known once the shell has expanded it or has read it
    /// from elsewhere, or when the text is too long to be looked through.
    pub(crate) unclear: bool,
}

impl Parts {
    /// Looks through a text.
    pub(crate) fn of(text: &str) -> Self {
        let mut parts = Self::default();
        if text.len() > LONGEST {
            parts.unclear = true;
            return parts;
        }
        parts.read(text, 0);
        parts.read_roughly(text);
        parts.starts.sort_unstable();
        parts.starts.dedup();
        parts
    }

    /// Every possible simple command, its words joined by the gap.
    pub(crate) fn starts(&self) -> impl Iterator<Item = &str> {
        self.starts.iter().map(String::as_str)
    }

    /// As a shell would: operators count outside quotes.
    fn read(&mut self, text: &str, depth: usize) {
        if depth > NESTED || self.size > MOST {
            self.unclear = true;
            return;
        }
        for words in segments(text) {
            // What stands in double quotes is run before all else.
            for inner in words.iter().flat_map(|word| word.split(RUNS).skip(1)) {
                self.read(inner, depth + 1);
            }
            self.unclear |=
                words.iter().any(|word| STARTS_SHELLS.iter().any(|s| word.starts_with(s)));
            let words = command_of(&words);
            let Some(first) = words.first() else { continue };
            self.unclear |= expands(first) || is_elsewhere(words);
            self.add(words);
            self.read_inside(words, depth);
        }
    }

    /// Once more with every quote and operator as a border: this reads what some other program
    /// would, as in `awk 'BEGIN { system("rm x") }'`.
    fn read_roughly(&mut self, text: &str) {
        let is_border = |c: char| ";&|()<>`$\"'{}\n\r".contains(c);
        let mut target = false;
        for line in text.split_inclusive(is_border) {
            let border = line.chars().next_back().filter(|&c| is_border(c));
            let line = border.map_or(line, |border| &line[..line.len() - border.len_utf8()]);
            let words: Vec<String> =
                line.split_whitespace().map(|word| word.replace('\\', "")).collect();
            // The first word behind `>` is where it leads, however that is quoted.
            let rest = if target { words.get(1..).unwrap_or_default() } else { &words };
            self.add(command_of(rest));
            target = match border {
                Some('<' | '>') => true,
                Some('&' | '|' | '"' | '\'' | '$') => target && words.is_empty(),
                _ => false,
            };
        }
    }

    /// What one simple command may start: itself, and behind a wrapper any of its words.
    fn add(&mut self, words: &[String]) {
        let Some(first) = words.first() else { return };
        self.start(words);
        if wraps(first) {
            for next in 1..words.len().min(1 + DEEPEST) {
                self.start(&words[next..]);
            }
        }
    }

    fn start(&mut self, words: &[String]) {
        if self.size > MOST {
            self.unclear = true;
            return;
        }
        let name = program(&words[0]);
        if name != words[0] {
            let mut named = vec![name];
            named.extend(words[1..].iter().map(String::as_str));
            self.starts.push(named.join("\0"));
        }
        self.starts.push(words.join("\0"));
        self.size += self.starts.iter().rev().take(2).map(String::len).sum::<usize>();
    }

    /// The scripts in the words of a command, and programs that a wrapper cannot be seen to run.
    fn read_inside(&mut self, words: &[String], depth: usize) {
        let is_wrapped = wraps(&words[0]);
        let asks =
            is(&words[0], "command") && words.get(1).is_some_and(|w| is_one(w, &["-v", "-V"]));
        let last = if is_wrapped { words.len().min(1 + DEEPEST) } else { 1 };
        let sure = command_at(words).unwrap_or(usize::MAX);
        self.unclear |= is_wrapped && words.len() > last && sure >= last;
        let mut looked = false;
        for at in 0..last {
            let rest = &words[at..];
            let behind_option = at > 0 && words[at - 1].starts_with('-');
            self.unclear |= at > 0 && at <= sure && expands(&rest[0]) && !behind_option;
            self.unclear |= !asks && reads_input(rest);
            let by_shell = at > 0 && BUILTINS.contains(&program(&words[at - 1]));
            self.unclear |= (by_shell || is(&rest[0], "env")) && is_elsewhere(rest);
            if is(&rest[0], "eval") {
                let options = rest[1..].iter().take_while(|word| is_one(word, &["--"])).count();
                self.read(&rest[1 + options..].join(" "), depth + 1);
                return;
            }
            let is_shell = SHELLS.contains(&program(&rest[0]));
            if !looked && (is_shell || SCRIPTED.contains(&program(&rest[0]))) {
                looked = true;
                for word in rest[1..].iter().filter(|word| !is_assignment(word) && !is_plain(word))
                {
                    self.read(word, depth + 1);
                }
            }
            if is_shell {
                return;
            }
        }
    }
}

/// Where the command of a wrapper stands for certain: as the first word of one that takes no
/// other word there, and no wrapper itself.
fn command_at(words: &[String]) -> Option<usize> {
    const SIMPLE: [&str; 8] =
        ["builtin", "command", "exec", "nice", "nohup", "setsid", "time", "xargs"];
    let is_simple = SIMPLE.contains(&program(&words[0]));
    let is_command = |word: &&String| {
        !word.starts_with(['-', '+']) && !expands(word) && !is_assignment(word) && !wraps(word)
    };
    words.get(1).filter(|_| is_simple).filter(is_command).map(|_| 1)
}

/// A command without the words of the grammar and the assignments before it.
fn command_of(words: &[String]) -> &[String] {
    let is_before = |w: &String| is_assignment(w) || KEYWORDS.contains(&w.as_str());
    &words[words.iter().take_while(|word| is_before(word)).count()..]
}

/// The last name of a program's path.
fn program(word: &str) -> &str {
    word.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(word)
}

fn is(word: &str, name: &str) -> bool {
    program(word) == name
}

fn is_one(word: &str, words: &[&str]) -> bool {
    words.contains(&word)
}

/// Reports whether a word is no script of more than itself.
fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || "_./:@%+,-".contains(c))
}

fn wraps(word: &str) -> bool {
    let name = program(word);
    [WRAPPERS, BUILTINS, SHELLS, SCRIPTED].iter().any(|names| names.contains(&name))
}

/// Whether a command makes the shell run what stands in a file, or under another name.
fn is_elsewhere(words: &[String]) -> bool {
    let short = |letter: char| {
        let options = words[1..].iter().filter(|word| word.starts_with('-'));
        options.into_iter().any(|word| !word.starts_with("--") && word.contains(letter))
    };
    match words[0].as_str() {
        "." | "source" => true,
        "hash" => short('p'),
        "enable" => short('f'),
        "alias" => words[1..].iter().any(|word| word.contains('=')),
        _ => is(&words[0], "env") && (short('S') || words.iter().any(|w| w.starts_with("--split"))),
    }
}

/// Whether a program takes its commands from its input.
fn reads_input(words: &[String]) -> bool {
    match program(&words[0]) {
        "at" | "batch" => words.len() == 1 || !words.iter().any(|word| word.starts_with("-f")),
        "su" => !words.iter().any(|w| w.starts_with("--command") || is_script_option(w)),
        "parallel" => words[1..].iter().all(|word| word.starts_with('-')),
        name if SHELLS.contains(&name) => shell_reads_input(&words[1..]),
        _ => false,
    }
}

/// Reports whether an option of a shell is followed by its script: `-c`, `-lc`.
fn is_script_option(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains('c')
}

fn shell_reads_input(words: &[String]) -> bool {
    if let [only] = words
        && is_one(only, &["--version", "--help"])
    {
        return false;
    }
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if is_script_option(word) || word.starts_with("--command") {
            return false;
        }
        match word.strip_prefix(['-', '+']) {
            None => return word.starts_with("/dev/") || word.starts_with("/proc/"),
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
        let name = name.strip_suffix('+').unwrap_or(name);
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_[]".contains(c))
    })
}

fn expands(word: &str) -> bool {
    word.contains(EXPANDS)
}

/// Simple commands by operators outside quotes, as words after quote removal and without redirects.
fn segments(text: &str) -> Vec<Vec<String>> {
    let mut lexer = Lexer::default();
    let mut quote: Option<char> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (_, GAP) => {}
            (Some('"') | None, '\\') => match chars.next() {
                Some('\n') | None => {}
                Some(next) => lexer.push_quoted(Some(next)),
            },
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                lexer.push_quoted(None);
            }
            (None, '`') if lexer.backquoted => {
                lexer.backquoted = false;
                lexer.end();
            }
            (Some('"') | None, '$' | '`') => {
                lexer.word().push(EXPANDS);
                match quote {
                    None if c == '`' => {
                        lexer.backquoted = true;
                        lexer.end();
                    }
                    Some(_) if c == '`' => lexer.word().push('('),
                    _ => {}
                }
            }
            (None, '<' | '>') if chars.peek() == Some(&'(') => lexer.end(),
            (None, '<' | '>') => lexer.redirect(c, &mut chars),
            (None, '&') if chars.next_if_eq(&'>').is_some() => {
                lexer.end_word();
                lexer.redirect('>', &mut chars);
            }
            (None, '(') => {
                lexer.open += 1;
                lexer.end();
            }
            (None, ')') if lexer.open == 0 => lexer.end_case(),
            (None, ')') => {
                lexer.open -= 1;
                lexer.end();
            }
            (None, ';' | '&' | '|' | '\n' | '\r') => lexer.end(),
            (None, c) if c.is_whitespace() => lexer.end_word(),
            (None, '*' | '?' | '[' | '{' | '~') => lexer.word().extend([c, EXPANDS]),
            (Some(_), c) => lexer.push_quoted(Some(c)),
            (None, c) => lexer.word().push(c),
        }
    }
    lexer.end();
    lexer.done
}

/// Puts words and segments together.
#[derive(Default)]
struct Lexer {
    done: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
    /// Something of the word was quoted.
    quoted: bool,
    /// The word is where a redirect leads.
    target: bool,
    /// Inside backquotes.
    backquoted: bool,
    /// Parentheses that were opened and are not closed yet.
    open: usize,
}

impl Lexer {
    fn word(&mut self) -> &mut String {
        self.word.get_or_insert_default()
    }

    fn push_quoted(&mut self, c: Option<char>) {
        self.quoted = true;
        self.word().extend(c);
    }

    fn end_word(&mut self) {
        self.quoted = false;
        if let Some(mut word) = self.word.take()
            && !std::mem::take(&mut self.target)
        {
            // Alone they are words of the grammar or of a test, and stand for themselves; so does
            // an empty pair of braces everywhere.
            if matches!(&*word, "[\u{1}" | "[\u{1}[\u{1}" | "{\u{1}") {
                word.retain(|c| c != EXPANDS);
            }
            let word = word.replace("{\u{1}}", "{}");
            self.words.push(word);
        }
    }

    fn end(&mut self) {
        self.end_word();
        self.target = false;
        if !self.words.is_empty() {
            self.done.push(std::mem::take(&mut self.words));
        }
    }

    /// Ends the pattern of a `case`: a parenthesis closes that none has opened. What it expands
    /// to is compared and not run.
    fn end_case(&mut self) {
        self.end_word();
        if let [pattern] = &mut self.words[..] {
            pattern.retain(|c| c != EXPANDS);
        }
        self.end();
    }

    /// Reads the rest of an operator that starts with `first`; the next word is its target.
    fn redirect(&mut self, first: char, chars: &mut Peekable<Chars<'_>>) {
        if !self.quoted && self.word.as_deref().is_some_and(is_descriptor) {
            self.word = None;
        }
        self.end_word();
        if first == '>' {
            chars.next_if(|c| ">|&".contains(*c));
        } else if chars.next_if(|c| "&>".contains(*c)).is_none() && chars.next_if_eq(&'<').is_some()
        {
            chars.next_if(|c| "<-".contains(*c));
        }
        self.target = true;
    }
}

/// The `3` of `3>x` and the `{name}` of `{name}>x`.
fn is_descriptor(word: &str) -> bool {
    let is_name = |name: &str| name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    let braced = word.strip_prefix("{\u{1}").and_then(|rest| rest.strip_suffix('}'));
    word.chars().all(|c| c.is_ascii_digit()) || braced.is_some_and(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::CommandPattern;

    fn touches(pattern: &str, text: &str) -> bool {
        CommandPattern::parse(pattern).unwrap().touches(&Parts::of(text))
    }

    #[test]
    fn a_denial_sees_through_wrapping() {
        for text in [
            "rm x",
            "/bin/rm x",
            "ls; rm x",
            "ls&&rm x",
            "ls\nrm x",
            "timeout 5 rm x",
            "X=1 rm x",
            "env -u Y rm x",
            "sudo -u root rm x",
            "find . -exec rm x",
            "r''m x",
            "r\\m x",
            "\"rm\" x",
            "sh -c 'rm x'",
            "echo $(rm x)",
            "echo `rm x`",
            "if rm x; then :; fi",
            "(rm x)",
            "{ rm x; }",
            "<(rm x)",
            "xargs -n 1 rm x",
            "rm${IFS}x",
            "rm 'x y'",
        ] {
            assert!(touches("rm:*", text), "{text:?}");
        }
        assert!(!touches("rm:*", "echo farm"));
        assert!(!touches("rm:*", "git rm-me x"));
    }

    #[test]
    fn a_program_that_the_shell_must_find_out_is_unclear() {
        for text in ["$X a", "ls; `cat f` x", "timeout 5 $X", "/bin/r? x", "r{m,} x", "\"$X\" y"] {
            assert!(Parts::of(text).unclear, "{text:?}");
        }
        for text in ["ls $X", "echo \"$HOME\"", "cat *.rs", "X=$Y ls"] {
            assert!(!Parts::of(text).unclear, "{text:?}");
        }
        assert!(Parts::of(&"x ".repeat(LONGEST)).unclear);
    }

    #[test]
    fn a_redirect_hides_no_command() {
        for text in [
            ">/dev/null rm x",
            "> /dev/null rm x",
            "<f rm x",
            "&>/dev/null rm x",
            "&>>f rm x",
            "3>&1 rm x",
            "2>&- rm x",
            "{fd}>f rm x",
            ">>o rm x",
            "<<<x rm y",
            "<<<'a b' rm y",
            ">|o rm x",
            "<>o rm x",
            "<<E rm x\nE",
            "<<-'E' rm x\nE",
            ">a >b 2>&1 rm x",
            ">a>b rm x",
            ">'a b' rm x",
            ">a\\ b rm x",
            ">$(echo f) rm x",
            "timeout 5 >/dev/null rm x",
            "env >/dev/null rm x",
            "X=1 >/dev/null rm x",
            "! >/dev/null rm x",
            "if >/dev/null rm x; then :; fi",
            "ls; >f rm x",
            "echo $(>f rm x)",
            "sh -c '>f rm x'",
            "sh -c \">'a b' rm x\"",
            "awk 'BEGIN { system(\">f rm x\") }'",
        ] {
            assert!(touches("rm:*", text), "{text:?}");
        }
        for text in
            ["git >f push", "git 2>&1 push x", "git &>f push", "git <<<x push", "git>f push"]
        {
            assert!(touches("git push:*", text), "{text:?}");
        }
        assert!(touches("rm 3", "rm '3'>f") && touches("rm 3", "rm \\3>f"), "no descriptor");
        for text in ["ls > rm", "ls >rm", "ls 2>rm", "cat <rm", "cat <<<rm", "ls >>rm", "ls &>rm"] {
            let found = Parts::of(text);
            assert!(!touches("rm:*", text) && !found.unclear, "{text:?}");
        }
    }

    #[test]
    fn a_script_in_a_word_is_looked_through() {
        for text in [
            "time -p rm x",
            "! time -p rm x",
            "if time rm x; then :; fi",
            "eval \"r\"\"m x\"",
            "eval \"r''m x\"",
            "eval r\\'\\'m x",
            "eval -- \"r''m\" x",
            "sh -c \"r''m x\"",
            "sudo bash -c \"r''m x\"",
            "sh -c \"sh -c \\\"r''m x\\\"\"",
            "echo \"$(r''m x)\"",
            "echo \"`r''m x`\"",
            "X=\"$(r''m x)\" ls",
            "trap \"r''m x\" EXIT",
            "ssh host \"r''m x\"",
            "prlimit rm x",
            "setpriv --no-new-privs rm x",
        ] {
            assert!(touches("rm:*", text), "{text:?}");
        }
    }

    #[test]
    fn what_is_kept_of_a_hostile_text_is_bounded() {
        for text in ["sh \"$(", "eval sh '", "env \"`sh ", "time sudo sh $(", "x;", "sh 'a b' "] {
            let text = text.repeat(LONGEST / text.len());
            let kept: usize = Parts::of(&text).starts().map(str::len).sum();
            assert!(kept <= MOST + 4 * LONGEST, "{kept}");
        }
    }

    #[test]
    fn commands_from_elsewhere_are_unclear() {
        let far = format!("env {} rm x", "A=b ".repeat(DEEPEST));
        let deep = format!("{}rm x", "eval ".repeat(NESTED + 2));
        for text in [
            "hash -p /bin/rm q; q x",
            "source <(echo rm x)",
            ". f",
            "command . f",
            "alias q=rm; q x",
            "enable -f ./x.so x",
            "echo rm x | sh",
            "echo rm x | /bin/sh -",
            "echo rm x | bash -s",
            "echo rm x | bash -o pipefail",
            "echo rm x | sudo -E bash",
            "bash <(echo rm x)",
            "bash /dev/stdin <f",
            "bash <<E\nls\nE",
            "echo rm x | su",
            "sh -c \"$X\"",
            "sh -c '$X a'",
            "eval '$X a'",
            "env -S \"r''m x\"",
            "flock f bash",
            "watch $X",
            &far,
            &deep,
        ] {
            assert!(Parts::of(text).unclear, "{text:?}");
        }
        for text in [
            "sh x.sh",
            "bash -e x.sh >f",
            "bash -euo pipefail x.sh",
            "bash -c 'ls'",
            "bash -lc \"ls -l\"",
            "hash -r",
            "command -v bash",
            "watch bash x.sh",
            "flock f sh x.sh",
            "find . -name '*.rs'",
            "timeout 5 make 2>&1 | tail -n 5",
            "cargo test > out.txt 2>&1",
            "ls \"$(pwd)\"",
        ] {
            assert!(!Parts::of(text).unclear, "{text:?}");
        }
    }

    #[test]
    fn words_of_the_grammar_are_no_unknown_programs() {
        for text in [
            "[ -f a ] && echo y",
            "[[ -f a ]] && echo y",
            "if [ -f x ]; then echo; fi",
            "while [ -f q ]; do :; done",
            "{ echo a; echo b; } > o",
            "f() { echo a; }; f",
            "case a in a) echo x;; *) echo y;; esac",
            "find . -name '*.txt' -exec cat {} \\;",
            "echo a.txt | xargs -I{} cat {}",
            "nohup ls $HOME > /dev/null",
            "time ls *.txt",
            "xargs cat *.txt",
            "echo `date` now",
            "bash --version",
        ] {
            assert!(!Parts::of(text).unclear, "{text:?}");
        }
        for text in [
            "[$(echo rm) x",
            "[r]m x",
            "{rm,x}",
            "($X)",
            "BASH_ENV=s bash -c :",
            "env ENV=s dash -i -c :",
            "f() { $X; }",
            "case a in a) $X;; esac",
            "nohup $X",
            "nohup nice -n 5 $X",
            "xargs env $X",
            "`echo rm` x",
            "a=`date`; $a",
        ] {
            assert!(Parts::of(text).unclear, "{text:?}");
        }
    }
}
