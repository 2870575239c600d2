//! Command patterns of rules, and the strict reading of a command's text.
//!
//! **Invariant:** a text is accepted only if it certainly is one simple command of plain words.
//! Allowances use this reading; denials and questions use the generous one of `parts`.
//!
//! **Does not know:** what a command does.

use crate::command::{
    lexer::expands,
    parts::{Line, Parts, loosened},
};

/// The longest text, in bytes, that is looked through.
pub(crate) const LONGEST: usize = 64 * 1024;

/// Separates words in the form that patterns match: no command can hold it.
pub(crate) const GAP: char = '\0';

/// Words of the shell that a command may follow.
pub(crate) const KEYWORDS: &[&str] = &[
    "if", "then", "else", "elif", "while", "until", "do", "!", "in", "case", "function", "{", "}",
];

/// A pattern of `Bash(...)`, by words after quote removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    /// Literal pieces between the stars; one piece means: no star.
    pub(super) pieces: Vec<String>,
    /// True for `p:*` and `p *`: the words of p, then the end or more words.
    pub(super) words: bool,
    /// The same for texts that are no commands, where every border is a gap.
    loose: Vec<String>,
    /// What it says is set for a command, where it says so.
    set: Option<VariablePattern>,
    /// Why it takes none of the commands that it was written for, where that is so.
    doubt: Option<&'static str>,
}

/// What a pattern says is set for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
struct VariablePattern {
    /// Names and values.
    values: Vec<(String, String)>,
    /// What the pattern says of the command; empty where it does not say which values are meant, or
    /// which command.
    pub(super) pieces: Vec<String>,
}

/// A variable that is set for a command, and to what, where that is known.
pub(crate) type Setting = (String, Option<String>);

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
        if text.strip_suffix(":*").is_some_and(|head| head.trim_end().trim_matches('*').is_empty())
        {
            return Err("no words stand before :*; write * for every command".to_owned());
        }
        let doubt = doubt(text);
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
        if let Some(quote) = quote {
            return Err(format!("the quote {quote} is not closed; write \\{quote}"));
        }
        let mut loose: Vec<String> = pieces.iter().map(|piece| loosened(piece)).collect();
        if let Some(first) = loose.first_mut().filter(|first| first.starts_with(GAP)) {
            first.remove(0);
        }
        let set = VariablePattern::of(&pieces);
        Ok(Self { pieces, words, loose, set, doubt })
    }

    /// Reports whether it takes any simple command.
    pub(crate) fn is_everything(&self) -> bool {
        self.pieces.iter().all(String::is_empty) && (self.pieces.len() > 1 || self.words)
    }

    /// Strict: the text is one simple command of plain words, and they match.
    pub(crate) fn allows(&self, text: &str) -> bool {
        plain_words(text).is_some_and(|words| self.permits(&[], &words.join("\0")))
    }

    /// Strict: words joined by NUL match, and what is set for them is just what it says is set, but for
    /// what changes nothing of what they do.
    pub(crate) fn permits(&self, set: &[Setting], joined: &str) -> bool {
        self.permitted(set).is_some_and(|pieces| self.takes_with(pieces, joined))
    }

    /// The same of whatever begins with these words.
    pub(crate) fn permits_more(&self, set: &[Setting], joined: &str) -> bool {
        self.permitted(set)
            .is_some_and(|pieces| self.is_open(pieces) && self.takes_with(pieces, joined))
    }

    /// What it says of a command for which this is set; none where it is not about such a one.
    fn permitted(&self, set: &[Setting]) -> Option<&[String]> {
        let given = self.set.as_ref().map_or(&[][..], |given| &given.values);
        let is_given = |(name, value): &(String, String)| {
            set.iter().any(|(own, to)| own == name && to.as_ref() == Some(value))
        };
        let is_plain = |(name, value): &Setting| {
            let is_said = |value: &String| given.contains(&(name.clone(), value.clone()));
            value.as_ref().is_some_and(is_said) || haft_shell::is_harmless(name, value.as_deref())
        };
        let is_it = given.iter().all(is_given) && set.iter().all(is_plain);
        let pieces = self.set.as_ref().map_or(&self.pieces, |given| &given.pieces);
        is_it.then_some(pieces)
    }

    /// Generous: some simple command in the text matches, however it is wrapped.
    pub(crate) fn touches(&self, parts: &Parts) -> bool {
        parts.runs.iter().any(|line| self.takes_any(&self.pieces, line))
    }

    /// Whether some text that a program may run holds words that match, or it is about subcommands of
    /// a program of which one has a name of its own.
    pub(crate) fn may_touch(&self, parts: &Parts) -> bool {
        let is_of = |program: &String| {
            let words = self.loose.first().and_then(|start| start.strip_prefix(program.as_str()));
            words.is_some_and(|words| words.starts_with(GAP))
        };
        parts.mentions.iter().any(|line| self.takes_any(&self.loose, line))
            || parts.renamed.iter().any(is_of)
    }

    /// Whether some command in the text may match once its words are known; of its program all is known, or
    /// at least so many letters.
    pub(crate) fn may_be(&self, parts: &Parts, least: usize) -> bool {
        let is_open =
            |text: &str| expands(text) || text.contains(crate::rules::open_pattern::UNKNOWN);
        parts.runs.iter().filter(|line| is_open(&line.joined)).any(|line| {
            let bare = line.joined.split(GAP).next().and_then(|first| Some(first.rfind('/')? + 1));
            let mut starts = line.starts.iter().copied().chain(bare);
            starts.any(|at| self.may_take(&line.joined[at..], least))
        })
    }

    /// Whether its words stand somewhere in the text.
    pub(crate) fn is_said(&self, parts: &Parts) -> bool {
        parts.said.iter().any(|line| self.takes_any(&self.loose, line))
    }

    /// Reports whether it surely takes all that another one takes.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        if self == other || self.is_everything() {
            return true;
        }
        let (own, theirs) = (&self.pieces[..], &other.pieces[..]);
        let ([head], Some(start)) = (own, theirs.first()) else { return false };
        // What begins with the words goes on with them, whatever a star stands for.
        match start.strip_prefix(head.as_str()) {
            Some("") => self.words && theirs.len() == 1,
            Some(rest) => self.words && rest.starts_with(GAP),
            None => false,
        }
    }

    /// What it is found by: no two with other words have the same, but those that take all commands.
    pub(crate) fn key(&self) -> String {
        if self.is_everything() { String::new() } else { self.pieces.join("*") }
    }

    /// The keys of all that may cover it.
    pub(crate) fn covering(&self) -> impl Iterator<Item = String> {
        let start = self.pieces.first().map_or("", String::as_str);
        let ends = start.match_indices(GAP).map(|(at, _)| at).chain([start.len()]);
        ends.map(|end| start[..end].to_owned()).chain([String::new(), self.key()])
    }

    /// Why it takes none of the commands that it was written for, in a sentence without its full
    /// stop; none where it may take some.
    pub(crate) const fn doubt(&self) -> Option<&'static str> {
        self.doubt
    }

    /// Whether it says that something is set for a command, and not to what, or for which one: it allows
    /// none then.
    pub(crate) fn sets_openly(&self) -> bool {
        self.set.as_ref().is_some_and(|given| given.pieces.is_empty())
    }

    /// Reports whether it takes just one command, for an allowance as explicit as can be.
    pub(crate) fn is_literal(&self) -> bool {
        self.pieces.len() == 1 && !self.words
    }

    /// Reports whether words joined by NUL match.
    pub(crate) fn takes(&self, joined: &str) -> bool {
        self.takes_with(&self.pieces, joined)
    }

    /// Whether anything may stand behind these pieces of it.
    fn is_open(&self, pieces: &[String]) -> bool {
        self.words || pieces.len() > 1 && pieces.ends_with(&[String::new()])
    }

    /// Reports whether it may take something that begins with these words.
    pub(crate) fn may_take_more(&self, joined: &str) -> bool {
        let head = self.pieces.first().map_or("", String::as_str);
        head.starts_with(joined) || joined.starts_with(head)
    }

    /// In linear time: behind a star, what fails for one start fails for all later ones, too.
    fn takes_any(&self, pieces: &[String], line: &Line) -> bool {
        let Some(first) = pieces.first() else { return false };
        let mut fitting = line.starts.iter().map(|&at| &line.joined[at..]);
        let mut fitting = fitting.by_ref().filter(|text| text.starts_with(first.as_str()));
        if pieces.len() > 1 {
            return fitting.next().is_some_and(|text| self.takes_with(pieces, text));
        }
        fitting.any(|text| self.takes_with(pieces, text))
    }

    fn takes_with(&self, pieces: &[String], joined: &str) -> bool {
        let Some((first, rest)) = pieces.split_first() else { return false };
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

impl VariablePattern {
    /// What stands before the command in a pattern; none where nothing does.
    fn of(pieces: &[String]) -> Option<Self> {
        let (first, rest) = pieces.split_first()?;
        let mut values = Vec::new();
        let mut left = Some(first.as_str());
        while let Some(text) = left {
            let (word, behind) = text.split_once(GAP).map_or((text, None), |(a, b)| (a, Some(b)));
            let Some((name, value)) = setting(word) else { break };
            values.push((name.to_owned(), value.to_owned()));
            left = behind;
        }
        if values.is_empty() {
            return None;
        }
        // Without a word behind it a star would stand for a value, and nothing for any command.
        let own = |text: &str| std::iter::once(text.to_owned()).chain(rest.iter().cloned());
        let pieces = left.map(|text| own(text).collect()).unwrap_or_default();
        Some(Self { values, pieces })
    }
}

/// The name and the value of a word that sets a variable for a command.
fn setting(word: &str) -> Option<(&str, &str)> {
    let is_letter = |c: char| c == '_' || c.is_ascii_alphanumeric();
    word.split_once('=').filter(|(name, _)| {
        name.starts_with(|c: char| is_letter(c) && !c.is_ascii_digit())
            && name.chars().all(is_letter)
    })
}

/// Words that begin no command beside [`KEYWORDS`].
const GRAMMAR: [&str; 5] = ["for", "select", "done", "fi", "esac"];

/// Why a pattern takes no simple command, whatever stands for its stars.
fn doubt(text: &str) -> Option<&'static str> {
    // In quotes they are words as others.
    if text.contains(['\'', '"', '\\']) {
        return None;
    }
    let parts = |word| matches!(word, "&&" | "||" | "|" | ";" | "&" | "|&");
    let leads = |word: &str| {
        let word = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        matches!(word, "<" | "<<<") || word.starts_with('>')
    };
    let mut words = text.split_whitespace();
    // A program has no such name, and behind `;` the next command begins.
    let glued = |(at, word): (usize, &str)| {
        word.contains(';') || at == 0 && word.contains(['|', '&']) && !word.contains("://")
    };
    if words.clone().any(parts) || words.clone().enumerate().any(glued) {
        return Some(
            "it holds several commands, and each is compared alone; write a rule for each",
        );
    }
    if words.clone().any(leads) {
        return Some(
            "where output goes is no word of a command; write the command alone, and an Edit rule \
             for the file",
        );
    }
    let first = words.next().unwrap_or_default();
    (KEYWORDS.contains(&first) || GRAMMAR.contains(&first)).then_some(
        "it begins with a word of the shell's grammar; each command behind that is compared alone",
    )
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
    let grammar = first == "time" || KEYWORDS.contains(&first.as_str());
    let odd = first.is_empty() || first.contains('=') || grammar;
    (!odd).then_some(words)
}

/// Characters that mean themselves in every shell.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c) || (!c.is_ascii() && c.is_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(pattern: &str, text: &str) -> bool {
        CommandPattern::parse(pattern).unwrap().allows(text)
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
}
