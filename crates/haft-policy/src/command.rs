//! Command patterns of rules, and two readings of a command's text without a shell grammar.
//!
//! **Invariant:** the strict reading takes a text only when it certainly is one simple command of
//! plain words; the generous one finds every simple command of a text, and more than there are.
//! Allowances use the first, denials and questions the second.
//!
//! **Does not know:** what a command does. A grammar takes this module's place later.

/// The longest text, in bytes, that is looked through.
const LONGEST: usize = 64 * 1024;

/// Positions behind a wrapper at which the wrapped command may start.
const DEEPEST: usize = 24;

/// Separates words in the form that patterns match: no command can hold it.
const GAP: char = '\0';

/// Programs that run the program named after them.
const WRAPPERS: &[&str] = &[
    "timeout",
    "nice",
    "nohup",
    "time",
    "stdbuf",
    "env",
    "sudo",
    "doas",
    "command",
    "builtin",
    "exec",
    "setsid",
    "xargs",
    "find",
    "fd",
    "ionice",
    "chrt",
    "taskset",
    "unshare",
    "strace",
    "watch",
    "parallel",
    "flock",
    "script",
    "ssh",
    "eval",
    "busybox",
    "chroot",
    "nsenter",
    "su",
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "coproc",
    "trap",
    "caffeinate",
    "systemd-run",
];

/// Words of the shell that a command may follow.
const KEYWORDS: &[&str] =
    &["if", "then", "else", "elif", "while", "until", "do", "!", "time", "in", "case", "function"];

/// A pattern of `Bash(...)`, by words after quote removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    /// Literal pieces between the stars; one piece means: no star.
    pieces: Vec<String>,
    /// True for `p:*` and `p *`: the words of p, then the end or more words.
    words: bool,
}

impl CommandPattern {
    /// Reads a pattern; quotes are removed, `\*` is a star of its own.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("it is empty".to_owned());
        }
        if text.contains(GAP) {
            return Err("it holds a NUL byte".to_owned());
        }
        let (text, words) = match text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")) {
            Some(head) if !head.ends_with('\\') => (head.trim_end(), true),
            _ => (text, false),
        };
        let mut pieces = vec![String::new()];
        let mut quote = None;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let piece = pieces.last_mut().map_or_else(String::new, std::mem::take);
            let mut piece = piece;
            match c {
                '\\' => match chars.next() {
                    Some(next) => piece.push(next),
                    None => return Err("it ends in a lone backslash".to_owned()),
                },
                '\'' | '"' if quote == Some(c) => quote = None,
                '\'' | '"' if quote.is_none() => quote = Some(c),
                '*' => {
                    set_last(&mut pieces, piece);
                    pieces.push(String::new());
                    continue;
                }
                c if c.is_whitespace() && quote.is_none() => {
                    while chars.peek().is_some_and(|next| next.is_whitespace()) {
                        chars.next();
                    }
                    piece.push(GAP);
                }
                c => piece.push(c),
            }
            set_last(&mut pieces, piece);
        }
        match quote {
            Some(quote) => Err(format!("the quote {quote} is not closed; write \\{quote}")),
            None => Ok(Self { pieces, words }),
        }
    }

    /// Reports whether it takes any simple command.
    pub(crate) fn is_everything(&self) -> bool {
        self.pieces.iter().all(String::is_empty) && (self.pieces.len() > 1 || self.words)
    }

    /// Strict: the text is one simple command of plain words, and they match.
    pub(crate) fn allows(&self, text: &str) -> bool {
        plain_words(text).is_some_and(|words| self.takes(&words.join("\0")))
    }

    /// Generous: some simple command in the text matches, however it is wrapped.
    pub(crate) fn touches(&self, parts: &Parts) -> bool {
        parts.starts.iter().any(|start| self.takes(start))
    }

    /// Reports whether words joined by NUL match.
    pub(crate) fn takes(&self, joined: &str) -> bool {
        let Some((first, rest)) = self.pieces.split_first() else { return false };
        let Some(mut left) = joined.strip_prefix(first.as_str()) else { return false };
        let Some((last, middle)) = rest.split_last() else { return self.ends(left) };
        for piece in middle {
            match left.find(piece.as_str()) {
                Some(at) => left = &left[at + piece.len()..],
                None => return false,
            }
        }
        if !self.words {
            return left.len() >= last.len() && left.ends_with(last.as_str());
        }
        last.is_empty()
            || left.match_indices(last.as_str()).any(|(at, _)| self.ends(&left[at + last.len()..]))
    }

    fn ends(&self, left: &str) -> bool {
        left.is_empty() || (self.words && left.starts_with(GAP))
    }
}

fn set_last(pieces: &mut [String], piece: String) {
    if let Some(last) = pieces.last_mut() {
        *last = piece;
    }
}

/// The words of a text that certainly is one simple command; none for every other text.
///
/// Assignments before the command, expansions, operators, redirects, line ends, comments and
/// words of the shell's own grammar all make it none.
pub(crate) fn plain_words(text: &str) -> Option<Vec<String>> {
    if text.len() > LONGEST {
        return None;
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.trim_matches([' ', '\t']).chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c if c.is_control() => return None,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '$' | '`' | '\\' | '!' => return None,
                        c if c.is_control() => return None,
                        c => word.push(c),
                    }
                }
            }
            c if is_plain(c) => word.get_or_insert_default().push(c),
            _ => return None,
        }
    }
    words.extend(word);
    let first = words.first()?;
    let odd = first.is_empty() || first.contains('=') || KEYWORDS.contains(&first.as_str());
    (!odd).then_some(words)
}

/// Characters that mean themselves in every shell.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c) || (!c.is_ascii() && c.is_alphabetic())
}

/// Every place of a text at which a simple command may start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    /// Words joined by the gap, each from one possible start to the end of its part.
    starts: Vec<String>,
    /// True when some part's program is only known once the shell has expanded it, or when the
    /// text is too long to be looked through.
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
        for words in segments(text) {
            parts.unclear |= words.iter().find(|w| !is_assignment(w)).is_some_and(|w| expands(w));
            parts.add(&words);
        }
        // Once more with every quote and operator as a border: this reads what a nested shell
        // would, as in `sh -c 'rm x'`.
        for line in text.split(|c: char| ";&|()<>`$\"'{}\n\r".contains(c)) {
            let words: Vec<String> =
                line.split_whitespace().map(|word| word.replace('\\', "")).collect();
            parts.add(&words);
        }
        parts.starts.sort_unstable();
        parts.starts.dedup();
        parts
    }

    fn add(&mut self, words: &[String]) {
        let mut at = 0;
        while words.get(at).is_some_and(|w| is_assignment(w) || KEYWORDS.contains(&w.as_str())) {
            at += 1;
        }
        let Some(first) = words.get(at) else { return };
        self.start(&words[at..]);
        if WRAPPERS.contains(&program(first)) {
            for next in at + 1..words.len().min(at + 1 + DEEPEST) {
                self.unclear |= expands(&words[next]) && !words[next - 1].starts_with('-');
                self.start(&words[next..]);
            }
        }
    }

    fn start(&mut self, words: &[String]) {
        let name = program(&words[0]);
        if name != words[0] {
            let mut named = vec![name];
            named.extend(words[1..].iter().map(String::as_str));
            self.starts.push(named.join("\0"));
        }
        self.starts.push(words.join("\0"));
    }
}

/// The last name of a program's path.
fn program(word: &str) -> &str {
    word.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(word)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_[]".contains(c))
    })
}

/// Marks, in a word after quote removal, that the shell still replaces something in it.
const EXPANDS: char = '\u{1}';

fn expands(word: &str) -> bool {
    word.contains(EXPANDS)
}

/// Simple commands by operators outside quotes, as words after quote removal.
fn segments(text: &str) -> Vec<Vec<String>> {
    let mut done = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = text.chars().filter(|&c| c != GAP).peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some('"') | None, '\\') => match chars.next() {
                Some('\n') | None => {}
                Some(next) => word.get_or_insert_default().push(next),
            },
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some('"') | None, '$' | '`') => {
                word.get_or_insert_default().push(EXPANDS);
                if quote.is_none() && c == '`' {
                    end(&mut done, &mut words, &mut word);
                }
            }
            (None, ';' | '&' | '|' | '(' | ')' | '<' | '>' | '\n' | '\r') => {
                end(&mut done, &mut words, &mut word);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '*' | '?' | '[' | '{' | '~') => {
                let word = word.get_or_insert_default();
                word.push(c);
                word.push(EXPANDS);
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    end(&mut done, &mut words, &mut word);
    done
}

fn end(done: &mut Vec<Vec<String>>, words: &mut Vec<String>, word: &mut Option<String>) {
    words.extend(word.take());
    if !words.is_empty() {
        done.push(std::mem::take(words));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(pattern: &str, text: &str) -> bool {
        CommandPattern::parse(pattern).unwrap().allows(text)
    }
    fn touches(pattern: &str, text: &str) -> bool {
        CommandPattern::parse(pattern).unwrap().touches(&Parts::of(text))
    }

    #[test]
    fn words_end_at_words() {
        for pattern in ["git diff:*", "git diff *"] {
            assert!(allows(pattern, "git diff"));
            assert!(allows(pattern, "git  diff --stat 'a b'"));
            assert!(!allows(pattern, "git difftool"));
        }
        assert!(allows("npm run test*", "npm run tests:unit -- -v"));
        assert!(allows("git * main", "git push origin main"));
        assert!(!allows("git * main", "git push origin main2"));
        assert!(allows("a * b:*", "a x b c") && !allows("a * b:*", "a x bc"));
        assert!(!allows("rm a b", "rm 'a b'"), "a quoted blank ends no word");
        assert!(allows(r"echo \*", "echo '*'") && !allows(r"echo \*", "echo x"));
    }

    #[test]
    fn an_allowance_needs_one_plain_command() {
        for text in [
            "ls; rm x",
            "ls & rm x",
            "ls\nrm x",
            "ls | sh",
            "ls > x",
            "ls $(rm x)",
            "ls `rm x`",
            "ls $X",
            "ls *",
            "ls ~",
            "ls {a,b}",
            "X=1 ls",
            "ls \\\n",
            "ls #",
            "ls \"$X\"",
            "! ls",
            "ls 'x",
            "ls \u{0}",
            "",
            "'' ls",
            "if ls",
        ] {
            assert!(!allows("*", text), "{text:?}");
        }
        assert!(allows("*", "ls -la 'a;b' \"c d\""));
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
}
