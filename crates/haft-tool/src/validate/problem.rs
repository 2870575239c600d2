//! Problems in words: where something is, what is there, and what is wanted.
//!
//! **Invariant:** at most [`MOST`] problems are kept and the others counted, and each is short,
//! however big what it is about. Nothing is allocated before there is a problem.

use std::fmt::{self, Write as _};

use serde_json::Value;

/// Most problems that one answer names.
pub(super) const MOST: usize = 20;

/// Most characters that are shown of an offending value.
const SHOWN: usize = 100;

/// Most characters that are shown of the name of one property, and of a path, which keeps its end.
const NAME: usize = 60;
const PATH: usize = 200;

/// Most characters of one problem.
const PROBLEM: usize = 2_000;

/// Most problems that are put into words: more may be the same as others.
const TRIED: usize = 5 * MOST;

/// Where a value is within what is checked: a list that lives on the stack.
pub(super) enum Path<'a> {
    /// What is checked itself.
    Root,
    /// The property of an object.
    Name(&'a Path<'a>, &'a str),
    /// The item of an array, from 0.
    Index(&'a Path<'a>, usize),
    /// One of the names of an object's properties.
    NameWithin(&'a Path<'a>),
}

impl Path<'_> {
    /// As problems name it.
    pub(super) fn field(&self) -> String {
        match self {
            Path::Root => "the whole input".into(),
            Path::NameWithin(Path::Root) => "the name of a field".into(),
            Path::NameWithin(within) => format!("the name of a field in {}", within.field()),
            Path::Name(..) | Path::Index(..) => self.steps(),
        }
    }

    /// As problems name a property in it.
    pub(super) fn field_of(&self, name: &str) -> String {
        Path::Name(self, name).field()
    }

    /// The steps that lead there, or the last of them.
    fn steps(&self) -> String {
        let (mut steps, mut length, mut path) = (Vec::new(), 0, self);
        while length <= PATH {
            let (within, step) = match path {
                Path::Root | Path::NameWithin(_) => break,
                Path::Name(within, name) => (within, plain(name)),
                Path::Index(within, index) => (within, index.to_string()),
            };
            length += step.chars().count() + 1;
            steps.push(step);
            path = within;
        }
        if length > PATH && matches!(path, Path::Name(..) | Path::Index(..)) {
            steps.push("...".into());
        }
        steps.reverse();
        steps.join(".")
    }
}

/// A name as it stands in a path: in quotes where it would be taken for something else.
pub(super) fn plain(name: &str) -> String {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "./\\\"'`,[]{}".contains(c);
    let short: String = name.chars().take(NAME + 1).collect();
    if name.is_empty() || name.contains(odd) {
        // Two more are the quotes.
        cut(&Value::String(short).to_string(), NAME + 2)
    } else {
        cut(&short, NAME)
    }
}

/// What was found, of which only the first ones are kept.
#[derive(Default)]
pub(super) struct Problems {
    kept: Vec<String>,
    /// How many were put into words.
    tried: usize,
    /// How many there are besides.
    more: u64,
}

impl Problems {
    /// Adds one; it is put into words only where it is kept.
    pub(super) fn add(&mut self, words: impl FnOnce() -> String) {
        if self.is_full() {
            self.more += 1;
            return;
        }
        self.tried += 1;
        let words = cut(&words(), PROBLEM);
        // Two parts of a schema may well want the same.
        if !self.kept.contains(&words) {
            self.kept.push(words);
        }
    }

    /// Reports whether others are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.kept.len() == MOST || self.tried == TRIED
    }

    /// All lines, of which the last may say how many more there are.
    pub(super) fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.kept.push(format!("... and {} more", self.more));
        }
        self.kept
    }
}

/// The offending value, short; however big it is, only its start is looked at.
pub(crate) fn shown(value: &Value) -> String {
    let mut text = Short(String::new());
    let whole = match value {
        Value::String(long) => {
            let head: String = long.chars().take(SHOWN + 1).collect();
            write!(text, "{}", Value::String(head))
        }
        value => write!(text, "{value}"),
    };
    // A writer that has enough fails; what it has by then is more than is shown.
    let _ = whole;
    cut(&text.0, SHOWN)
}

/// Takes text until there is more than is shown, then fails.
struct Short(String);

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = (SHOWN + 1).saturating_sub(self.0.chars().count());
        self.0.extend(text.chars().take(room));
        if room == 0 { Err(fmt::Error) } else { Ok(()) }
    }
}

/// At most so many characters of a text, with dots where there are more.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// At most so many characters of the end of a text, with dots where there are more.
pub(super) fn cut_start(text: &str, most: usize) -> String {
    match text.char_indices().rev().nth(most) {
        Some((start, c)) => format!("...{}", &text[start + c.len_utf8()..]),
        None => text.to_owned(),
    }
}

/// What one schema wants: a kind, and what narrows it.
#[derive(Default)]
pub(super) struct Wishes {
    pub kind: String,
    pub more: Vec<String>,
}

impl Wishes {
    /// In words, such as `integer (at least 3)`.
    pub(super) fn in_words(self) -> String {
        let more = self.more.join(", ");
        match (self.kind.is_empty(), more.is_empty()) {
            (true, true) => "anything".into(),
            (true, false) => more,
            (false, true) => self.kind,
            (false, false) => format!("{} ({more})", self.kind),
        }
    }
}

/// Several wishes in one, such as `a, b or c`; of `total` ones, those that are not given are
/// counted.
pub(super) fn either(wishes: &[String], total: usize) -> String {
    let mut named: Vec<&str> = wishes.iter().map(String::as_str).collect();
    let others = format!("{} others", total.saturating_sub(wishes.len()));
    if total > wishes.len() {
        named.push(&others);
    }
    match named.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_mislead_in_a_path_is_quoted() {
        let root = Path::Root;
        let headers = Path::Name(&root, "headers");
        assert_eq!(headers.field_of("a.b"), "headers.\"a.b\"");
        assert_eq!(headers.field_of("a/b"), "headers.\"a/b\"");
        assert_eq!(headers.field_of(""), "headers.\"\"");
        assert_eq!(Path::Index(&headers, 3).field_of("-C"), "headers.3.-C");
        assert_eq!(Path::NameWithin(&headers).field(), "the name of a field in headers");
        assert_eq!(root.field(), "the whole input");
        assert_eq!(plain(&"x".repeat(70)), format!("{}...", "x".repeat(60)));
    }

    #[test]
    fn wishes_are_joined_and_counted() {
        let wishes = ["a", "b", "c"].map(String::from);
        assert_eq!(either(&wishes, 3), "a, b or c");
        assert_eq!(either(&wishes[..1], 3), "a or 2 others");
        assert_eq!(either(&wishes[..1], 1), "a");
    }

    #[test]
    fn of_many_problems_the_first_are_kept_and_all_are_counted() {
        let mut problems = Problems::default();
        (0..100_000).for_each(|number| problems.add(|| format!("{number} is wrong")));
        let lines = problems.into_lines();
        assert_eq!(lines.len(), MOST + 1);
        assert_eq!(lines[MOST], "... and 99980 more");
    }
}
