//! What `${name#text}` and its like make of a value that is known.
//!
//! **Invariant:** what is given is what bash makes of it, whatever its options and language are; where that
//! may differ, nothing is.

use crate::quotes::is_name;

/// The longest value, and the longest pattern, of which a change is worked out, in bytes.
const LONGEST: usize = 1024;

/// Operators and how they are worked out; of two that fit the first is meant.
const OPERATORS: [(&str, How); 12] = [
    ("##", How::Start { longest: true }),
    ("#", How::Start { longest: false }),
    ("%%", How::End { longest: true }),
    ("%", How::End { longest: false }),
    ("//", How::Replace(Where::All)),
    ("/#", How::Replace(Where::Start)),
    ("/%", How::Replace(Where::End)),
    ("/", How::Replace(Where::First)),
    ("^^", How::Case { upper: true, all: true }),
    ("^", How::Case { upper: true, all: false }),
    (",,", How::Case { upper: false, all: true }),
    (",", How::Case { upper: false, all: false }),
];

/// What is done to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// The start that a pattern takes is left out.
    Start { longest: bool },
    /// The same of the end.
    End { longest: bool },
    /// What a text takes is replaced.
    Replace(Where),
    /// Letters are made great or small.
    Case { upper: bool, all: bool },
}

/// What is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    First,
    All,
    Start,
    End,
}

/// The name, and what stands behind it.
fn divided(inner: &str) -> (&str, &str) {
    let end = inner.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(inner.len());
    inner.split_at(end)
}

/// Numbers of `:from:count`.
fn part(rest: &str) -> Option<(usize, Option<usize>)> {
    let numbers = rest.strip_prefix(':')?;
    let (from, count) = match numbers.split_once(':') {
        Some((from, count)) => (from, Some(count)),
        None => (numbers, None),
    };
    // A zero at the start makes other digits of them.
    let number = |text: &str| {
        let is_plain = text == "0" || !text.starts_with('0') && text.len() <= 6;
        let is_digits = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        text.parse().ok().filter(|_| is_plain && is_digits)
    };
    Some((number(from)?, count.map_or(Some(None), |count| number(count).map(Some))?))
}

/// What is done, and the text behind the operator.
fn operator(rest: &str) -> Option<(How, &str)> {
    let (how, text) =
        OPERATORS.iter().find_map(|(own, how)| Some((*how, rest.strip_prefix(own)?)))?;
    let may_match = matches!(how, How::Start { .. } | How::End { .. });
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=@+-,% ".contains(c);
    let is_known = text.len() <= LONGEST
        && text.chars().all(|c| is_plain(c) || may_match && matches!(c, '*' | '?'));
    let has_text = match how {
        How::Case { .. } => text.is_empty(),
        // Of a slash that is not divided from the next one it is not said which is meant.
        How::Replace(_) => {
            let (from, to) = text.split_once('/').unwrap_or((text, ""));
            !from.is_empty() && !to.contains('/')
        }
        _ => true,
    };
    (is_known && has_text).then_some((how, text))
}

/// Whether it is known how `${...}` with this inside changes a value.
pub(crate) fn is_followed(inner: &str) -> bool {
    let (name, rest) = divided(inner);
    is_name(name) && (part(rest).is_some() || operator(rest).is_some())
}

/// The text that is taken from the end, where that is no pattern.
pub(crate) fn end(inner: &str) -> Option<&str> {
    let (how, text) = operator(divided(inner).1)?;
    let is_plain = matches!(how, How::End { .. }) && !text.is_empty() && !text.contains(['*', '?']);
    is_plain.then_some(text)
}

/// The variable that is changed.
pub(crate) fn name(inner: &str) -> &str {
    divided(inner).0
}

/// What becomes of a value; none where that is not certain.
pub(crate) fn of(inner: &str, value: &str) -> Option<String> {
    if value.len() > LONGEST || !value.is_ascii() {
        return None;
    }
    let (_, rest) = divided(inner);
    if let Some((from, count)) = part(rest) {
        let all = value.get(from.min(value.len())..)?;
        return Some(all[..count.unwrap_or(all.len()).min(all.len())].to_owned());
    }
    let (how, text) = operator(rest)?;
    let lengths = 0..=value.len();
    match how {
        How::Start { longest } => {
            let mut fits = lengths.filter(|at| takes(text, &value[..*at]));
            let at = if longest { fits.next_back() } else { fits.next() };
            Some(value[at.unwrap_or(0)..].to_owned())
        }
        How::End { longest } => {
            let mut fits = lengths.rev().filter(|at| takes(text, &value[*at..]));
            let at = if longest { fits.next_back() } else { fits.next() };
            Some(value[..at.unwrap_or(value.len())].to_owned())
        }
        How::Replace(place) => replaced(text, value, place),
        How::Case { upper, all } => {
            let end = if all { value.len() } else { value.len().min(1) };
            let (start, rest) = value.split_at(end);
            let start = if upper { start.to_ascii_uppercase() } else { start.to_ascii_lowercase() };
            Some(start + rest)
        }
    }
}

fn replaced(text: &str, value: &str, place: Where) -> Option<String> {
    let (from, to) = text.split_once('/').unwrap_or((text, ""));
    // An option makes the shell compare without case.
    let count = |value: &str, from: &str| value.matches(from).count();
    if count(value, from) != count(&value.to_ascii_lowercase(), &from.to_ascii_lowercase()) {
        return None;
    }
    Some(match place {
        Where::First => value.replacen(from, to, 1),
        Where::All => value.replace(from, to),
        Where::Start => match value.strip_prefix(from) {
            Some(rest) => format!("{to}{rest}"),
            None => value.to_owned(),
        },
        Where::End => match value.strip_suffix(from) {
            Some(rest) => format!("{rest}{to}"),
            None => value.to_owned(),
        },
    })
}

/// Whether a pattern of `*`, `?` and characters that stand for themselves takes a whole text.
fn takes(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(c) if *c == b'?' || *c == text[from] => (at, from) = (at + 1, from + 1),
            _ => match star {
                Some((star_at, taken)) => {
                    star = Some((star_at, taken + 1));
                    (at, from) = (star_at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_changed_as_bash_does() {
        for (value, inner, wanted) in [
            ("a:/h/k", "x#a:", "/h/k"),
            ("a:/h/k", "x#b:", "a:/h/k"),
            ("a/b/c.tar.gz", "x#*/", "b/c.tar.gz"),
            ("a/b/c.tar.gz", "x##*/", "c.tar.gz"),
            ("a/b/c.tar.gz", "x%.*", "a/b/c.tar"),
            ("a/b/c.tar.gz", "x%%.*", "a/b/c"),
            ("a/b/c", "x%/*", "a/b"),
            ("a/b/c", "x%%/*", "a"),
            ("abc", "x%", "abc"),
            ("abc", "x%?", "ab"),
            ("abc", "x#a?", "c"),
            ("abab", "x/b/x", "axab"),
            ("abab", "x//b/x", "axax"),
            ("abab", "x//b", "aa"),
            ("abab", "x//b/", "aa"),
            ("abab", "x/#a/x", "xbab"),
            ("abab", "x/%b/x", "abax"),
            ("abab", "x/#b/x", "abab"),
            ("abcdef", "x:2", "cdef"),
            ("abcdef", "x:2:3", "cde"),
            ("abcdef", "x:9", ""),
            ("abcdef", "x:0:0", ""),
            ("abc", "x^", "Abc"),
            ("abc", "x^^", "ABC"),
            ("ABC", "x,", "aBC"),
            ("ABC", "x,,", "abc"),
            ("", "x^", ""),
        ] {
            assert!(is_followed(inner), "{inner}");
            assert_eq!(of(inner, value).as_deref(), Some(wanted), "{value} {inner}");
            assert_eq!(name(inner), "x");
        }
    }

    #[test]
    fn what_may_be_read_in_two_ways_is_not_followed() {
        for inner in [
            "x#\"a\"", "x#~", "x#[a]", "x#\\a", "x#$y", "x/a/&", "x/a/~", "x/*/b", "x//a/b/c",
            "x:a", "x:-1", "x: -1", "x:01", "x:1:-1", "x@P", "!x", "x[0]#a", "x^^a", "x", "x/",
            "#x", "x#(a)", "1#a",
        ] {
            assert!(!is_followed(inner), "{inner}");
        }
        assert_eq!(of("x/a/b", "A"), None);
        assert_eq!(of("x:1", "\u{e9}a"), None);
    }
}
