//! What is known of the shell at one place of a script: its folder, variables and functions.
//!
//! **Invariant:** a value that is given is among those that the shell may have there. What cannot
//! be followed is [`Value::unknown`].

use super::params::Params;
use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

/// Most texts that are held apart.
const MOST_TEXTS: usize = 8;
/// The longest text that is followed, in bytes.
const LONGEST_TEXT: usize = 4096;
/// Most variables that are followed.
const MOST_VARIABLES: usize = 64;

/// What a variable or a word may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// One of these.
    Texts(Rc<Vec<String>>),
    /// A whole number.
    Number,
    /// A whole number, or nothing.
    Count,
    /// The hash of an object of git, and what is written behind it; it begins with a digit or letter.
    Hash,
    /// Names of files that begin with this, or this pattern where there are none; and with what all of them
    /// end, where that is known and what lies between has no slash.
    Files(String, Option<Rc<str>>),
    /// Any text that begins with this.
    From(String),
}

impl Value {
    pub(crate) fn unknown() -> Self {
        Self::From(String::new())
    }

    pub(crate) fn text(text: &str) -> Self {
        if text.len() > LONGEST_TEXT {
            return Self::texts(vec![text.to_owned()]);
        }
        Self::Texts(Rc::new(vec![text.to_owned()]))
    }

    /// A text of any length, which stands in the script.
    pub(crate) fn whole(text: &str) -> Self {
        Self::Texts(Rc::new(vec![text.to_owned()]))
    }

    /// One of several texts, which are at least one.
    pub(crate) fn texts(mut texts: Vec<String>) -> Self {
        texts.sort();
        texts.dedup();
        let is_long = texts.iter().any(|text| text.len() > LONGEST_TEXT);
        if texts.is_empty() || texts.len() > MOST_TEXTS || is_long {
            let first = texts.first().map_or("", |text| &text[..text.floor_char_boundary(64)]);
            let start = texts.iter().fold(first, |start, text| common(start, text));
            return Self::From(start.to_owned());
        }
        Self::Texts(Rc::new(texts))
    }

    /// Names of files that a pattern matches: its certain start, and what stands behind that. One
    /// that may lead out of the folder of its start is any text.
    pub(crate) fn files(start: String, tail: &str) -> Self {
        let last = start.rsplit('/').next().unwrap_or_default();
        // `.*` and `..*` may match `..`.
        let is_fine = last != "." && last != ".." && start.len() <= LONGEST_TEXT && !climbs(tail);
        if is_fine { Self::Files(start, end_of(tail)) } else { Self::From(cut(start)) }
    }

    /// Names of files without what all of them end with.
    pub(crate) fn without_end(&self, end: &str) -> Option<Self> {
        let Self::Files(start, Some(own)) = self else { return None };
        Some(Self::Files(start.clone(), Some(own.strip_suffix(end)?.into())))
    }

    /// The one text that it is.
    pub(crate) fn known(&self) -> Option<&str> {
        match self {
            Self::Texts(texts) => texts.first().filter(|_| texts.len() == 1).map(String::as_str),
            _ => None,
        }
    }

    /// The text that it certainly begins with.
    pub(crate) fn start(&self) -> &str {
        match self {
            Self::Texts(texts) => {
                let first = texts.first().map_or("", String::as_str);
                texts.iter().fold(first, |start, text| common(start, text))
            }
            Self::Number | Self::Count | Self::Hash => "",
            Self::Files(start, _) | Self::From(start) => start,
        }
    }

    /// Whether it may begin with this character.
    pub(crate) fn may_begin(&self, c: char) -> bool {
        match self {
            Self::Texts(texts) => texts.iter().any(|text| text.starts_with(c)),
            Self::Number | Self::Count => c == '-' || c.is_ascii_digit(),
            Self::Hash => c.is_ascii_hexdigit(),
            Self::Files(start, _) if start.is_empty() => c != '/' && c != '.',
            Self::Files(start, _) | Self::From(start) => start.is_empty() || start.starts_with(c),
        }
    }

    /// Whether it surely is a whole number, or nothing, which arithmetic takes for one.
    pub(crate) fn is_number(&self) -> bool {
        match self {
            Self::Texts(texts) => texts.iter().all(|text| is_number(text)),
            Self::Number | Self::Count => true,
            Self::Hash | Self::Files(..) | Self::From(_) => false,
        }
    }

    /// Both after one another.
    pub(crate) fn then(&self, next: &Self) -> Self {
        match (self, next) {
            (Self::Texts(firsts), _) if firsts.len() == 1 && firsts[0].is_empty() => next.clone(),
            (Self::Texts(firsts), Self::Texts(seconds)) => {
                let join = |first: &String| {
                    let first = first.clone();
                    seconds.iter().map(move |second| format!("{first}{second}"))
                };
                Self::texts(firsts.iter().flat_map(join).collect())
            }
            (Self::Texts(firsts), Self::Files(start, end)) => match &firsts[..] {
                [first] => match Self::files(format!("{first}{start}"), "") {
                    Self::Files(start, _) => Self::Files(start, end.clone()),
                    other => other,
                },
                _ => Self::From(self.start().to_owned()),
            },
            (Self::Texts(firsts), _) => match firsts.len() {
                1 => Self::From(cut(format!("{}{}", firsts[0], next.start()))),
                _ => Self::From(self.start().to_owned()),
            },
            (Self::Number | Self::Count, Self::Texts(seconds))
                if seconds.iter().all(String::is_empty) =>
            {
                self.clone()
            }
            // Without a hash, too, it is no option.
            (Self::Hash, Self::Texts(seconds)) if seconds.iter().all(|text| is_revision(text)) => {
                Self::Hash
            }
            (Self::Number | Self::Count | Self::Hash, _) => Self::unknown(),
            (Self::Files(start, end), Self::Texts(tails))
                if !tails.iter().any(|tail| climbs(tail)) =>
            {
                let end = end.as_ref().zip(tails.first());
                let end = end.filter(|(_, tail)| tails.len() == 1 && !tail.contains('/'));
                Self::Files(start.clone(), end.map(|(end, tail)| format!("{end}{tail}").into()))
            }
            (Self::Files(start, _), Self::Files(tail, _)) if !climbs(tail) => {
                Self::Files(start.clone(), None)
            }
            (Self::Files(start, _), Self::Number | Self::Count | Self::Hash) => {
                Self::Files(start.clone(), None)
            }
            (Self::Files(start, _) | Self::From(start), _) => Self::From(start.clone()),
        }
    }

    /// Either of both.
    pub(crate) fn or(&self, other: &Self) -> Self {
        match (self, other) {
            _ if self == other => self.clone(),
            (Self::Texts(first), Self::Texts(second)) => {
                Self::texts(first.iter().chain(second.iter()).cloned().collect())
            }
            _ if self.is_number() && other.is_number() => {
                if [self, other].contains(&&Self::Count) {
                    Self::Count
                } else {
                    Self::Number
                }
            }
            _ => self
                .files_or(other)
                .unwrap_or_else(|| Self::From(common(self.start(), other.start()).to_owned())),
        }
    }

    /// Either of both, where both are names of files that lie in one folder or below it.
    fn files_or(&self, other: &Self) -> Option<Self> {
        let starts = |value: &Self| match value {
            Self::Files(start, _) => Some(vec![start.clone()]),
            Self::Texts(texts) => {
                let climbs =
                    |text: &String| text.is_empty() || text.split('/').any(|one| one == "..");
                (!texts.iter().any(climbs)).then(|| texts.to_vec())
            }
            _ => None,
        };
        let (first, second) = (starts(self)?, starts(other)?);
        let same = common(self.start(), other.start());
        let is_here = |text: &String| !text.starts_with(['/', '.']);
        let in_one = same.contains('/') || first.iter().chain(&second).all(is_here);
        in_one.then(|| Self::files(same.to_owned(), ""))
    }
}

/// Whether a text goes on behind a revision: `..HEAD`, `~1`, `^`.
fn is_revision(text: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || b"._~^-".contains(&c);
    (text.is_empty() || text.starts_with(['.', '~', '^'])) && text.bytes().all(is_plain)
}

/// Whether a text behind a name that is not known may lead to another folder: it has `..`, or a
/// part of that which the text before or behind it may end.
fn climbs(tail: &str) -> bool {
    let may_match = |part: &str| part.starts_with('.') && part[1..].starts_with(['*', '?', '[']);
    tail.contains("..")
        || tail == "."
        || tail.starts_with("./")
        || tail.ends_with("/.")
        || tail.split('/').any(may_match)
}

/// What all that a pattern matches ends with, where no folder is among what it leaves open.
fn end_of(tail: &str) -> Option<Rc<str>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-*?".contains(c);
    let at = tail.rfind(['*', '?'])?;
    (tail.chars().all(is_plain) && !tail.contains("**")).then(|| tail[at + 1..].into())
}

/// A start that is not too long.
fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST_TEXT));
    text
}

/// What two texts begin with.
fn common<'a>(first: &'a str, second: &str) -> &'a str {
    let same = first.bytes().zip(second.bytes()).take_while(|(a, b)| a == b).count();
    &first[..first.floor_char_boundary(same)]
}

/// Whether a text is a whole number that arithmetic takes for one.
pub(crate) fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.len() < 18 && digits.bytes().all(|c| c.is_ascii_digit())
}

/// What is known of a shell.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The folders that it may be in, as absolute paths; none: any.
    pub folders: Option<Rc<Vec<String>>>,
    variables: Rc<BTreeMap<String, Value>>,
    /// Variables of which nothing is said may have been set.
    is_lost: bool,
    /// Functions that are certainly defined.
    pub functions: Rc<BTreeSet<String>>,
    /// What it was called with, where that is known.
    pub params: Option<Rc<Params>>,
}

impl State {
    pub(crate) fn new(folder: &str, variables: BTreeMap<String, Value>) -> Self {
        Self {
            folders: Some(Rc::new(vec![folder.to_owned()])),
            variables: Rc::new(variables),
            is_lost: false,
            functions: Rc::default(),
            params: None,
        }
    }

    /// The value of a variable; none where it is that of the environment.
    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.params.as_ref().and_then(|params| params.value(name)) {
            return Some(value);
        }
        match self.variables.get(name) {
            None if self.is_lost => Some(Value::unknown()),
            found => found.cloned(),
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        if self.variables.len() >= MOST_VARIABLES && !self.variables.contains_key(name) {
            self.is_lost = true;
            return;
        }
        if self.variables.get(name) != Some(&value) {
            Rc::make_mut(&mut self.variables).insert(name.to_owned(), value);
        }
    }

    /// From here on nothing is known of any variable, and of the folder.
    pub(crate) fn lose(&mut self) {
        self.variables = Rc::default();
        self.is_lost = true;
        self.folders = None;
        self.params = None;
    }

    pub(crate) fn define(&mut self, name: &str) {
        Rc::make_mut(&mut self.functions).insert(name.to_owned());
    }

    /// What holds where either of both does.
    pub(crate) fn or(&self, other: &Self) -> Self {
        let folders = match (&self.folders, &other.folders) {
            (Some(first), Some(second)) if Rc::ptr_eq(first, second) => Some(Rc::clone(first)),
            (Some(first), Some(second)) => {
                let all: BTreeSet<_> = first.iter().chain(second.iter()).cloned().collect();
                (all.len() <= MOST_TEXTS).then(|| Rc::new(all.into_iter().collect()))
            }
            _ => None,
        };
        let variables = if Rc::ptr_eq(&self.variables, &other.variables) {
            Rc::clone(&self.variables)
        } else {
            let names: BTreeSet<&String> =
                self.variables.keys().chain(other.variables.keys()).collect();
            let either = |name: &&String| match (self.value(name), other.value(name)) {
                (Some(first), Some(second)) => first.or(&second),
                _ => Value::unknown(),
            };
            Rc::new(names.iter().map(|name| ((*name).clone(), either(name))).collect())
        };
        let functions = if Rc::ptr_eq(&self.functions, &other.functions) {
            Rc::clone(&self.functions)
        } else {
            Rc::new(self.functions.intersection(&other.functions).cloned().collect())
        };
        let is_lost = self.is_lost || other.is_lost;
        let params = self.params.clone().filter(|_| self.params == other.params);
        Self { folders, variables, is_lost, functions, params }
    }
}

/// A folder as `cd` names it from another one: `.` and `..` go by the names, as they do in the
/// shell.
pub(crate) fn folder(from: &str, path: &str) -> String {
    let whole = joined(from, path);
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// A path seen from a folder; `..` in it stays, since it goes by what links lead to.
pub(crate) fn joined(from: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let mut path = path;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    match path {
        "" | "." => from.to_owned(),
        _ => format!("{}/{path}", from.trim_end_matches('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_what_is_certain() {
        let two = Value::texts(vec!["src/a".into(), "src/b".into()]);
        assert_eq!(two.start(), "src/");
        assert_eq!(two.then(&Value::text(".rs")).start(), "src/");
        assert_eq!(Value::text("-o").then(&Value::unknown()), Value::From("-o".into()));
        assert_eq!(Value::text("a").or(&Value::text("b")).known(), None);
        assert_eq!(Value::Number.or(&Value::text("-12")), Value::Number);
        assert_eq!(Value::Number.or(&Value::text("x")), Value::unknown());
        assert!(Value::Files(String::new(), None).may_begin('-'));
        assert!(!Value::Files(String::new(), None).may_begin('/'));
        assert!(!Value::Files("./".into(), None).may_begin('-'));
        assert!(Value::unknown().may_begin('/'));
        let files = Value::Files("src".into(), None);
        assert_eq!(files.then(&Value::text("/x..")), Value::From("src".into()));
        assert_eq!(files.then(&Value::text("/x.rs")), files);
        assert_eq!(
            Value::text("a/.").then(&Value::Files(String::new(), None)),
            Value::From("a/.".into())
        );
        let end = |value: &Value| match value {
            Value::Files(start, end) => Some((start.clone(), end.as_deref().map(str::to_owned))),
            _ => None,
        };
        let notes = Value::text("a/").then(&Value::files("n".into(), "*.md"));
        assert_eq!(end(&notes), Some(("a/n".into(), Some(".md".into()))));
        let other = notes.without_end(".md").unwrap().then(&Value::text(".txt"));
        assert_eq!(end(&other), Some(("a/n".into(), Some(".txt".into()))));
        assert_eq!(notes.without_end(".rs"), None);
        // What lies deeper, or may end in several ways, keeps no end.
        for tail in ["**.md", "*/x.md", "*.[ch]", "*.@(a|b)", ""] {
            assert_eq!(end(&Value::files("a/".into(), tail)), Some(("a/".into(), None)), "{tail}");
        }
        let both = Value::files("a/".into(), "*.md").or(&Value::files("a/b/".into(), "*.md"));
        assert_eq!(end(&both), Some(("a/".into(), None)));
        assert_eq!(end(&notes.then(&Value::text("/x.md"))), Some(("a/n".into(), None)));
        let long = "x".repeat(LONGEST_TEXT);
        assert!(matches!(Value::text(&long).then(&Value::text("y")), Value::From(_)));
    }

    #[test]
    fn folders_go_by_their_names_and_paths_do_not() {
        assert_eq!(folder("/w/a", "../b/./c"), "/w/b/c");
        assert_eq!(folder("/", ".."), "/");
        assert_eq!(joined("/w", "./a/../b"), "/w/a/../b");
        assert_eq!(joined("/", "a"), "/a");
        assert_eq!(joined("/w", "."), "/w");
    }

    #[test]
    fn what_only_one_way_sets_is_not_known_behind_both() {
        let start = State::new("/w", BTreeMap::new());
        let mut other = start.clone();
        other.set("x", Value::text("a"));
        assert_eq!(start.or(&other).value("x"), Some(Value::unknown()));
        let mut third = start.clone();
        third.set("x", Value::text("b"));
        assert_eq!(other.or(&third).value("x"), Some(Value::texts(vec!["a".into(), "b".into()])));
        for n in 0..200 {
            other.set(&format!("y{n}"), Value::Number);
        }
        assert_eq!(other.value("y199"), Some(Value::unknown()));
        assert_eq!(other.value("never"), Some(Value::unknown()));
    }
}
