//! Secret values beside a name without a sign between them: on the next line, in a field of their
//! own, or after a word that sets variables.
//!
//! **Invariant:** what is scanned around a name is bounded, here as in `found`.

use std::ops::Range;

use super::{
    detect::{Style, blanks},
    heuristics,
};

/// Most bytes between a name and the field that has its value.
const BETWEEN: usize = 200;
/// Words in front of a name and a value with nothing but blanks between.
const SETS: &[&str] = &["ENV", "setenv", "SetEnv", "set -x", "set -gx", "set -Ux", "config set"];
/// Fields that have a name.
const NAMES: &[&str] = &["name", "key"];

/// The value that belongs to a name of a text which no sign follows.
pub(super) fn value(text: &str, name: &Range<usize>) -> Option<(Range<usize>, Style)> {
    let most = text.floor_char_boundary((name.end + heuristics::LONGEST).min(text.len()));
    let (after, before) = (&text[name.end..most], line_before(text, name.start));
    let called = &text[name.clone()];
    // `<key>NAME</key> <string>value</string>`
    if let Some(rest) = after.strip_prefix("</key>") {
        let tag = rest.trim_start().strip_prefix("<string>")?;
        let start = most - tag.len();
        return Some((start..start + tag.find('<').unwrap_or(tag.len()), Style::Quoted));
    }
    if is_field(before) {
        return field(text, name.end, after);
    }
    let gap = blanks(after);
    let word = &after[gap..];
    let len = word.find(char::is_whitespace).unwrap_or(word.len());
    let range = name.end + gap..name.end + gap + len;
    if gap == 0 || len == 0 || word.starts_with(['=', ':']) {
        return None;
    }
    let sets = SETS.iter().any(|set| before.trim_end().ends_with(set) && before.ends_with(' '));
    if sets {
        let quoted = word.len() >= 2 && word.starts_with(['"', '\'']);
        let quote = word[..len].ends_with(['"', '\'']);
        let inner = if quoted && quote { range.start + 1..range.end - 1 } else { range };
        return Some((inner, Style::Variable));
    }
    // As in `.netrc`.
    let is_netrc = before.trim().is_empty()
        || before.contains("login ") && before.trim_start().starts_with("machine ");
    let ends = word[len..].trim_start_matches([' ', '\t', '\r']).starts_with(['\n'])
        || word[len..].trim().is_empty();
    (called == "password" && is_netrc && ends).then_some((range, Style::Quoted))
}

/// What stands in front of a place on its line, as far as it is looked at.
fn line_before(text: &str, at: usize) -> &str {
    let from = text.ceil_char_boundary(at.saturating_sub(BETWEEN));
    text[from..at].rsplit(['\n', '\r']).next().unwrap_or_default()
}

/// Whether a line so far is a field that has a name: `- name: "`, `<add key="`.
fn is_field(before: &str) -> bool {
    let rest = before.trim_end_matches(['"', '\'', '\\', ' ']);
    let Some(rest) = rest.strip_suffix([':', '=']) else { return false };
    let rest = rest.trim_end_matches(['"', '\'', '\\', ' ']);
    NAMES.iter().any(|name| {
        let end = rest.len().checked_sub(name.len()).filter(|at| rest.is_char_boundary(*at));
        end.is_some_and(|at| {
            let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            rest[at..].eq_ignore_ascii_case(name) && !rest[..at].ends_with(part)
        })
    })
}

/// The value in the next field, where that is called `value`.
fn field(text: &str, from: usize, after: &str) -> Option<(Range<usize>, Style)> {
    let window = &after[..after.floor_char_boundary(BETWEEN.min(after.len()))];
    let at = window.to_ascii_lowercase().find("value")?;
    let between = |c: char| c.is_whitespace() || "\"',\\-+|>".contains(c) || c.is_ascii_digit();
    if !window[..at].chars().all(between) {
        return None;
    }
    let rest = &window[at + "value".len()..];
    let rest = rest.trim_start_matches(['"', '\'', '\\']);
    let sign = rest.trim_start_matches(' ').strip_prefix([':', '='])?;
    let start = sign.trim_start_matches([' ', '\\']);
    let start = from + (window.len() - start.len());
    let value = &text[start..(start + heuristics::LONGEST).min(from + after.len())];
    let (skip, end) = match value.chars().next()? {
        quote @ ('"' | '\'') => {
            (1, value[1..].find([quote, '\\', '\n']).unwrap_or(value.len() - 1))
        }
        _ => (0, value.find([' ', ',', '\n', '\r', '}']).unwrap_or(value.len())),
    };
    Some((start + skip..start + skip + end, Style::Quoted))
}

/// The bytes of a tag of YAML in front of a value: `!!str `.
pub(super) fn tag(rest: &str) -> usize {
    let Some(name) = rest.strip_prefix('!') else { return 0 };
    let len = name.bytes().take(64).take_while(|b| b.is_ascii_alphanumeric() || *b == b'!').count();
    let gap = blanks(&name[len..]);
    if gap > 0 { 1 + len + gap } else { 0 }
}

/// Whether a line ends where a value would begin on the next one.
pub(super) fn opens(line: &str) -> bool {
    let line = line.trim_end().trim_end_matches(['"', '\'', ',']).trim_end();
    let field =
        NAMES.iter().any(|name| line.rfind(name).is_some_and(|at| line[at..].contains([':', '='])));
    field || line.ends_with("</key>") || line.ends_with('=')
}
