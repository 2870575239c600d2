//! Finds values of secrets in a text by what precedes them: a name and a sign, the scheme of a
//! header, the user of an address, the start of a private key.
//!
//! **Invariant:** one pass, and what is scanned around each place is bounded. No value extends past
//! the end of a line; one of several lines is one value for each.

use std::{
    ops::Range,
    sync::{Arc, LazyLock, OnceLock},
};

use aho_corasick::{AhoCorasick, MatchKind};

use super::{
    Names, adjacent, heuristics, multiline::Block, names::is_git_setting, prefixes,
    private_key::Key,
};

/// What is looked for; the rest of each name is read around it.
const WORDS: &[&str] = &[
    "key",
    "token",
    "secret",
    "passw",
    "passphrase",
    "credential",
    "pass",
    "pwd",
    "authorization",
    "bearer ",
    "://",
    "-----begin ",
];
/// Most bytes of a name on each side of what was looked for.
const NAME: usize = 64;
/// Most blanks around a sign.
const BLANKS: usize = 16;
/// Most bytes of a type between a name and its value.
const TYPE: usize = 64;
/// Most bytes of the user and password of an address.
const USER: usize = 1024;

/// Words at the end of a name after which it is about something else.
const ABOUT: &[&str] = &[
    "NAME",
    "NAMES",
    "TYPE",
    "PATH",
    "FILE",
    "FILENAME",
    "DIR",
    "URL",
    "URI",
    "HOST",
    "LABEL",
    "LENGTH",
    "SIZE",
    "COUNT",
    "LIMIT",
    "MAX",
    "MIN",
    "INDEX",
    "PREFIX",
    "SUFFIX",
    "FORMAT",
    "HEADER",
    "FIELD",
    "COLUMN",
    "HINT",
    "PLACEHOLDER",
    "MESSAGE",
    "ERROR",
    "TITLE",
    "DESCRIPTION",
    "HELP",
    "MODE",
    "BACKEND",
    "PROVIDER",
    "VERSION",
    "ALGORITHM",
    "ALG",
    "KIND",
    "SCOPE",
    "POLICY",
    "TTL",
    "EXPIRY",
    "EXPIRES",
    "TIMEOUT",
    "ISSUER",
    "AUDIENCE",
    "FINGERPRINT",
    "HASH",
    "CHECKSUM",
    "DIGEST",
    "STORE",
    "MAP",
    "BINDING",
    "BINDINGS",
    "EVENT",
    "ARN",
    "PATTERN",
    "REGEX",
    "CLASS",
    "SELECTOR",
    "ENDPOINT",
    "VARIABLE",
    "PARAM",
    "ARG",
    "ATTRIBUTE",
    "PROPERTY",
    "INPUT",
];
/// Words in front of `KEY` that make it one that is no secret.
const HARMLESS: &[&str] = &[
    "PUBLIC",
    "PRIMARY",
    "FOREIGN",
    "SORT",
    "PARTITION",
    "CACHE",
    "IDEMPOTENCY",
    "ROUTING",
    "UNIQUE",
    "GROUP",
    "OBJECT",
    "BUCKET",
    "ITEM",
    "ROW",
    "DEDUP",
    "HOST",
];

/// A value in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DetectedValue {
    /// What it is called there.
    pub name: String,
    /// Where it stands, in bytes.
    pub value: Range<usize>,
}

/// What is known of a text.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub found: Vec<DetectedValue>,
    /// Those that are found by how they begin: where they end is a guess.
    pub tokens: Vec<DetectedValue>,
    /// Where a value begins that goes on behind the end of the text.
    pub open: Option<usize>,
}

/// What a text stands in where it begins, and where it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inside {
    key: Key,
    block: Option<Block>,
}

impl Inside {
    /// Reports whether its next line means what it does by itself.
    pub fn is_nothing(&self) -> bool {
        self.key == Key::None && self.block.is_none()
    }
}

/// Looks for values by names.
#[derive(Debug)]
pub(super) struct Finder {
    names: Names,
    /// Built when the first text is looked through; none where it cannot be.
    words: OnceLock<Option<Arc<AhoCorasick>>>,
}

/// What finds the words where a person has named no more: built once, for it takes milliseconds.
static USUAL: LazyLock<Option<Arc<AhoCorasick>>> = LazyLock::new(|| automaton(&[]));

/// Finds [`WORDS`], the prefixes of tokens, and `more`, which is in lower case.
fn automaton(more: &[String]) -> Option<Arc<AhoCorasick>> {
    let own = WORDS.iter().map(|word| (*word).to_owned()).chain(prefixes::words());
    let words: Vec<String> = own.chain(more.iter().cloned()).collect();
    let words = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .build(words.iter().filter(|word| !word.is_empty()));
    // Only more words than fit into memory are refused.
    words.ok().map(Arc::new)
}

/// How a name and its value are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `NAME=value`, as variables are set.
    Variable,
    /// `name: value` to the end of the line.
    Line,
    /// Between quotes.
    Quoted,
    /// Anything else without quotes.
    Bare,
}

impl Finder {
    pub fn new(names: Names) -> Self {
        Self { names, words: OnceLock::new() }
    }

    fn words(&self) -> Option<&AhoCorasick> {
        let build = || match &self.names.more[..] {
            [] => USUAL.clone(),
            more => {
                let more: Vec<_> = more.iter().map(|name| name.to_ascii_lowercase()).collect();
                automaton(&more)
            }
        };
        self.words.get_or_init(build).as_deref()
    }

    /// The names that count.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Looks through a text; `inside` is what it stands in, and goes on behind it.
    pub fn find(&self, text: &str, inside: &mut Inside) -> Findings {
        let mut findings = Findings::default();
        let Some(words) = self.words() else { return findings };
        if let Some(block) = inside.block.take() {
            // Names in it count, too.
            inside.block = block.read(text, 0, counts_in_lines, &mut findings).1;
        }
        let mut from = inside.key.read(text, 0, &mut findings);
        for word in words.find_iter(text) {
            if word.start() < from {
                continue;
            }
            if let Some((found, is_begun)) = prefixes::token(text, &word.range()) {
                let Range { start, end } = found.value;
                if end == text.len() {
                    findings.open.get_or_insert(start);
                }
                if !is_begun {
                    findings.tokens.push(found);
                    from = end;
                    continue;
                }
            }
            let next = match &text[word.range()] {
                "://" => address(text, word.end(), &mut findings),
                found if found.eq_ignore_ascii_case("bearer ") => {
                    scheme(text, word.end(), "AUTHORIZATION", &mut findings)
                }
                found if found.starts_with('-') => {
                    let at = inside.key.begin(text, word.start());
                    at.map(|at| inside.key.read(text, at, &mut findings))
                }
                _ => self.name(text, word.range(), &mut inside.block, &mut findings),
            };
            from = next.unwrap_or(word.end());
        }
        if let Some(at) = prefixes::begun(text) {
            findings.open = Some(findings.open.map_or(at, |open| open.min(at)));
        }
        findings
    }

    /// What stands behind a name; gives where to go on.
    fn name(
        &self,
        text: &str,
        word: Range<usize>,
        block: &mut Option<Block>,
        to: &mut Findings,
    ) -> Option<usize> {
        let name = around(text, word);
        let called = &text[name.clone()];
        let (before, after) = (&text[..name.start], &text[name.end..]);
        if before.ends_with(['$', '%']) || before.ends_with("${") {
            return None;
        }
        if called.to_ascii_lowercase().ends_with("authorization") {
            let sign = Sign::of(after, before)?;
            let at = name.end + sign.len;
            let quote = text[at..].len() - text[at..].trim_start_matches(['"', '\'', '\\']).len();
            return scheme(text, at + quote, "AUTHORIZATION", to);
        }
        if !self.names.tells(called) || is_about_something_else(called) {
            return Some(name.end);
        }
        if let Some(value) = adjacent::value(text, &name)
            && let Some(end) = Self::beside(text, called, value, to)
        {
            return Some(end);
        }
        let Some(sign) = Sign::of(after, before) else { return Some(name.end) };
        let at = name.end + sign.len;
        if let Some(end) = Self::several(text, at, called, to) {
            return Some(end);
        }
        let at = at + adjacent::tag(&text[at..]);
        if let Some(end) = lines(Block::of(text, at, last(called)), text, block, to) {
            return Some(end);
        }
        let Some(value) = Value::of(text, at, &sign, &text[name.clone()], before) else {
            return lines(Block::quoted(text, at, last(called)), text, block, to);
        };
        if value.is_open {
            to.open.get_or_insert(value.range.start);
        }
        let is_setting = is_git_setting(called, &text[value.range.clone()]);
        if !is_setting && value.counts(called, text) {
            let end = value.range.end;
            to.found.push(DetectedValue { name: last(called).to_owned(), value: value.range });
            return Some(end);
        }
        // What stands there may be another name, or an address.
        Some(name.end)
    }
}

impl Finder {
    /// Takes a value that stands beside its name without a sign.
    fn beside(
        text: &str,
        called: &str,
        (range, style): (Range<usize>, Style),
        to: &mut Findings,
    ) -> Option<usize> {
        let value = Value { is_open: range.end == text.len(), range, style };
        if value.is_open {
            to.open.get_or_insert(value.range.start);
        }
        if !value.counts(called, text) {
            return None;
        }
        let end = value.range.end;
        to.found.push(DetectedValue { name: last(called).to_owned(), value: value.range });
        Some(end)
    }

    /// Takes the values of a list in brackets, where one begins here; gives where it ends.
    fn several(text: &str, at: usize, called: &str, to: &mut Findings) -> Option<usize> {
        text[at..].starts_with('[').then_some(())?;
        let most = text.floor_char_boundary((at + heuristics::LONGEST).min(text.len()));
        let (mut from, mut end) = (at + 1, None);
        loop {
            let rest = &text[from..most];
            let quote = from + rest.len() - rest.trim_start_matches([' ', ',']).len();
            let Some(mark) = text[quote..most].chars().next().filter(|c| matches!(c, '"' | '\''))
            else {
                return end;
            };
            let Some(value) = Value::until(text, quote + 1, &mark.to_string(), Style::Quoted)
            else {
                return end;
            };
            end = end.max(Some(quote));
            if value.is_open {
                to.open.get_or_insert(value.range.start);
            }
            from = (value.range.end + 1).min(most);
            if value.counts(called, text) {
                end = Some(value.range.end);
                to.found.push(DetectedValue { name: last(called).to_owned(), value: value.range });
            }
        }
    }
}

/// Takes the lines of a value of several, where one begins; gives where to go on, which is its first
/// line: names in it count, too.
fn lines(
    begun: Option<(Block, usize)>,
    text: &str,
    block: &mut Option<Block>,
    to: &mut Findings,
) -> Option<usize> {
    let (begun, at) = begun?;
    let (_, open) = begun.read(text, at, counts_in_lines, to);
    *block = open;
    Some(at)
}

/// Reports whether a line of a value of several is a secret under this name.
fn counts_in_lines(name: &str, line: &str) -> bool {
    let value = Value { range: 0..line.len(), style: Style::Quoted, is_open: false };
    value.counts(name, line)
}

/// The name that a word is part of.
fn around(text: &str, word: Range<usize>) -> Range<usize> {
    let part = |b: &u8| b.is_ascii_alphanumeric() || b"_-.".contains(b);
    let bytes = text.as_bytes();
    let left = bytes[..word.start].iter().rev().take(NAME).take_while(|b| part(b)).count();
    let right = bytes[word.end..].iter().take(NAME).take_while(|b| part(b)).count();
    let (mut start, mut end) = (word.start - left, word.end + right);
    while start < word.start && b"-.".contains(&bytes[start]) {
        start += 1;
    }
    while end > word.end && b"-.".contains(&bytes[end - 1]) {
        end -= 1;
    }
    // In `file-12-NAME=`, as a search shows the lines around a match, the name is the last of it.
    if let Some(at) = text[start..word.start].rfind('-')
        && text[start..start + at].ends_with(|c: char| c.is_ascii_digit())
    {
        start += at + 1;
    }
    start..end
}

/// The last name of a path of names.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The words of a name, also of one like `clientSecret`, in capitals.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = '_';
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() {
            before = '_';
            continue;
        }
        let begins = before == '_' || before.is_ascii_lowercase() && c.is_ascii_uppercase();
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(c.to_ascii_uppercase());
        }
        before = c;
    }
    words
}

fn is_about_something_else(name: &str) -> bool {
    let words = words(name);
    let Some((last, rest)) = words.split_last() else { return true };
    ABOUT.contains(&last.as_str())
        || last.starts_with("KEY") && rest.iter().any(|word| HARMLESS.contains(&word.as_str()))
}

/// What stands between a name and its value.
struct Sign {
    /// Bytes from the end of the name to the value.
    len: usize,
    /// Its last character.
    mark: u8,
    /// Blanks in front of it or behind it.
    spaced: bool,
    /// Whether the name stands in quotes.
    quoted: bool,
}

impl Sign {
    fn of(after: &str, before: &str) -> Option<Self> {
        let slashes = after.len() - after.trim_start_matches('\\').len();
        let rest = &after[slashes..];
        let quoted = rest.starts_with(['"', '\'', '`']);
        let rest = if quoted { &rest[1..] } else { rest };
        if !quoted && slashes > 0 {
            return None;
        }
        let rest = rest.strip_prefix(']').unwrap_or(rest);
        let blanks = blanks(rest);
        let rest = &rest[blanks..];
        let marks = ["=>", ":=", "?=", "+=", "==", "=", ":"];
        let sign = marks.iter().find(|mark| rest.starts_with(**mark)).copied();
        let (sign, mark) = match sign {
            Some(":") if rest.starts_with("::") => return None,
            Some(sign) => (sign.len(), if sign == ":" { b':' } else { b'=' }),
            None if quoted && rest.starts_with(',') => (1, b','),
            None if blanks == 0 && rest.starts_with('>') && before.ends_with('<') => (1, b'>'),
            None if blanks > 0 && before.ends_with("--") => (0, b' '),
            None => return None,
        };
        let rest = &rest[sign..];
        let behind = self::blanks(rest);
        let len = after.len() - rest.len() + behind;
        Some(Self { len, mark, spaced: blanks + behind > 0, quoted })
    }
}

pub(super) fn blanks(text: &str) -> usize {
    text.bytes().take(BLANKS).take_while(|b| b" \t".contains(b)).count()
}

/// What may be a value.
struct Value {
    range: Range<usize>,
    style: Style,
    /// Whether the text ends before it does.
    is_open: bool,
}

impl Value {
    fn of(text: &str, at: usize, sign: &Sign, name: &str, before: &str) -> Option<Self> {
        let rest = &text[at..];
        let prefix = usize::from(rest.starts_with(['b', 'r', 'f', 'u', 'B', 'R', 'F', 'U']));
        let slashes = rest[prefix..].len() - rest[prefix..].trim_start_matches('\\').len();
        let quote =
            rest[prefix + slashes..].chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
        if let Some(quote) = quote {
            let start = at + prefix + slashes + 1;
            let end = if slashes > 0 { format!("\\{quote}") } else { quote.to_string() };
            let style = if sign.mark == b'=' && !sign.spaced && is_variable(name, before, sign) {
                Style::Variable
            } else {
                Style::Quoted
            };
            return Self::until(text, start, &end, style);
        }
        if sign.mark == b':'
            && let Some(skipped) = behind_type(rest)
        {
            return Self::until(text, at + skipped, "\"", Style::Quoted);
        }
        let style = match sign.mark {
            b',' => return None,
            b'=' if !sign.spaced && is_variable(name, before, sign) => Style::Variable,
            b':' if begins_line(before) => Style::Line,
            _ => Style::Bare,
        };
        Self::bare(text, at, style, sign)
    }

    /// A value that ends with these characters, on its line.
    fn until(text: &str, start: usize, end: &str, style: Style) -> Option<Self> {
        let most = text.floor_char_boundary((start + heuristics::LONGEST + 1).min(text.len()));
        let rest = &text[start..most];
        let line = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let mut from = 0;
        while let Some(found) = rest[from..line].find(end).map(|found| from + found) {
            // As in `"a\"b"`, but not in `"a\\"`.
            let slashes = found - rest[..found].trim_end_matches('\\').len();
            if end.len() > 1 || slashes.is_multiple_of(2) {
                return Some(Self { range: start..start + found, style, is_open: false });
            }
            from = found + end.len();
        }
        (start + line == text.len()).then_some(Self {
            range: start..text.len(),
            style,
            is_open: true,
        })
    }

    fn bare(text: &str, start: usize, style: Style, sign: &Sign) -> Option<Self> {
        let most = text.floor_char_boundary((start + heuristics::LONGEST + 1).min(text.len()));
        let rest = &text[start..most];
        let stops = |c: char| match style {
            Style::Variable => c.is_whitespace(),
            Style::Line => matches!(c, '\n' | '\r'),
            _ => c.is_whitespace() || "\"'`<>,;&(){}[]|\\".contains(c),
        };
        let mut len = rest.find(stops).unwrap_or(rest.len());
        // A quote inside is part of it; one at its end, or before what ends a word, is not.
        let ends = |(at, _): &(usize, &str)| {
            let next = rest[at + 1..len].chars().next();
            next.is_none_or(|c| c.is_whitespace() || ",;:)]}|&>\"'`\\".contains(c))
        };
        len = rest[..len].match_indices(['"', '\'', '`']).find(ends).map_or(len, |(at, _)| at);
        let is_open = start + len == text.len();
        let mut value = &rest[..len];
        if style == Style::Line {
            value = value.find(" #").map_or(value, |at| &value[..at]);
            let whole = value.trim_end();
            value = whole.trim_end_matches([',', ';']);
            if value.len() < whole.len() && heuristics::is_name(value) {
                // The value of a field, in code.
                return None;
            }
        }
        let next = rest[len..].chars().next();
        // A call, a part of something, an end of a statement: that is code.
        let code = style == Style::Bare
            && sign.mark != b'>'
            && (next.is_some_and(|c| "(){}[]\\".contains(c)) || sign.spaced && next == Some(';'));
        let range = start..start + value.len();
        (!code).then_some(Self { range, style, is_open })
    }

    /// Reports whether it is a secret under this name.
    fn counts(&self, name: &str, text: &str) -> bool {
        let value = &text[self.range.clone()];
        let words = words(name);
        let last = words.last().map_or("", String::as_str);
        let only_key = words.len() == 1 && (last == "KEY" || last == "KEYS");
        let password = ["PASS", "SECRET", "PHRASE"].iter().any(|word| last.contains(word));
        match self.style {
            Style::Variable => heuristics::is_variables(value),
            _ if only_key => value.len() >= 20 && heuristics::is_strong(value),
            Style::Line if value.contains(char::is_whitespace) => false,
            _ if password && !heuristics::is_name(value) => heuristics::is_password(value),
            _ => heuristics::is_strong(value),
        }
    }
}

/// Reports whether a name is one of a variable, where variables are set.
fn is_variable(name: &str, before: &str, sign: &Sign) -> bool {
    let part = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    let free = before.chars().next_back().is_none_or(|c| {
        c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | ':' | '+' | '-' | '|' | 'm')
    });
    !sign.quoted && free && name.bytes().all(part)
}

/// Reports whether nothing but blanks, marks of lists and diffs, numbers of lines and quotes stand
/// in front of it on its line.
fn begins_line(before: &str) -> bool {
    let line = before.rsplit(['\n', '\r']).next().unwrap_or(before);
    line.len() <= 200
        && (line.ends_with(['"', '\''])
            || line.rsplit(':').next().unwrap_or(line).chars().all(|c| {
                c.is_ascii_digit() || c.is_whitespace() || matches!(c, '-' | '+' | '|' | '>' | '"')
            }))
}

/// The bytes of a type in front of a value in quotes, as in `: &str = "`; with its quote.
fn behind_type(rest: &str) -> Option<usize> {
    let window = &rest[..rest.floor_char_boundary(TYPE.min(rest.len()))];
    let sign = window.find('=')?;
    let is_type = |c: char| c.is_ascii_alphanumeric() || "_<>&'[] .|?:".contains(c);
    let behind = &window[sign + 1..];
    let quote = sign + 1 + blanks(behind);
    (window[..sign].chars().all(is_type) && rest[quote..].starts_with('"')).then_some(quote + 1)
}

/// What stands behind the scheme of a header.
fn scheme(text: &str, at: usize, name: &str, to: &mut Findings) -> Option<usize> {
    let most = text.floor_char_boundary((at + heuristics::LONGEST).min(text.len()));
    let rest = &text[at..most];
    let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    let gap = blanks(&rest[letters..]);
    // `Basic` and the like come first.
    let (basic, start) = match &rest[..letters] {
        scheme if gap > 0 && letters > 0 => (scheme.eq_ignore_ascii_case("basic"), letters + gap),
        _ => (false, 0),
    };
    let part = |b: &u8| b.is_ascii_alphanumeric() || b"._~+/=-:".contains(b);
    let len = rest.as_bytes()[start..].iter().take_while(|b| part(b)).count();
    let range = at + start..at + start + len;
    let value = &text[range.clone()];
    if range.end == text.len() {
        to.open.get_or_insert(range.start);
    }
    let long = value.len() >= super::names::SHORTEST && !heuristics::is_filled_in(value);
    if !(heuristics::is_strong(value)
        || basic && long && value.bytes().any(|b| !b.is_ascii_lowercase()))
    {
        return None;
    }
    let end = range.end;
    to.found.push(DetectedValue { name: name.to_owned(), value: range });
    Some(end)
}

/// The password in an address, or the name that is one.
fn address(text: &str, at: usize, to: &mut Findings) -> Option<usize> {
    let most = text.floor_char_boundary((at + USER).min(text.len()));
    let rest = &text[at..most];
    let stops = |c: char| c.is_whitespace() || c.is_control() || "/?#\"'`<>(){}[],;\\".contains(c);
    let len = rest.find(stops).unwrap_or(rest.len());
    let authority = &rest[..len];
    let Some(user) = authority.rfind('@') else {
        if at + len == text.len() && authority.contains(':') {
            to.open.get_or_insert(at);
        }
        return None;
    };
    let user = &authority[..user];
    let (start, name, counts) = match user.find(':') {
        Some(colon) => {
            let password = &user[colon + 1..];
            (colon + 1, "URL_PASSWORD", heuristics::is_variables(password))
        }
        None => (0, "URL_TOKEN", user.len() >= 20 && heuristics::is_strong(user)),
    };
    if !counts {
        return None;
    }
    let range = at + start..at + user.len();
    let end = range.end;
    to.found.push(DetectedValue { name: name.to_owned(), value: range });
    Some(end)
}
