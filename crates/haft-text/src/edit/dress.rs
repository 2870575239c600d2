//! Old texts in a dress that no file has: fences around them, line numbers before their lines, signs
//! written as XML has them.
//!
//! Invariant: it is said only where the file lacks the dress; nothing is matched here.

use std::borrow::Cow;

use super::error::Dress;
use super::prefixes;
use super::view::View;

/// What an old text is dressed in, and the text that is meant by it.
pub(super) fn of<'t>(view: &View<'_>, old: &'t str) -> (Option<Dress>, Cow<'t, str>) {
    if let Some(inner) = unfenced(view, old) {
        return (Some(Dress::Fence), Cow::Borrowed(inner));
    }
    if prefixes::stand_in(view, old) {
        return (Some(Dress::Numbers), Cow::Borrowed(old));
    }
    let is_there = |text: &str| text != old && view.text().contains(text.trim());
    let plain = unescaped(old);
    if is_there(&plain) {
        return (Some(Dress::Escaped), Cow::Owned(plain));
    }
    let escaped = escaped(old);
    if is_there(&escaped) {
        return (Some(Dress::Plain), Cow::Owned(escaped));
    }
    (None, Cow::Borrowed(old))
}

/// A text without the lines of a fence at its ends, where the file has none of them.
fn unfenced<'t>(view: &View<'_>, old: &'t str) -> Option<&'t str> {
    let mut inner = old;
    let lacks = |line: &str| is_fence(line) && view.text().split('\n').all(|there| there != line);
    if let Some((first, rest)) = inner.trim_start_matches('\n').split_once('\n')
        && lacks(first)
    {
        inner = rest;
    }
    if let Some((rest, last)) = inner.trim_end_matches('\n').rsplit_once('\n')
        && lacks(last)
    {
        inner = &inner[..=rest.len()];
    }
    (inner.len() < old.len() && !inner.trim().is_empty()).then_some(inner)
}

/// Whether a line opens or closes a block of code in Markdown.
pub fn is_fence(line: &str) -> bool {
    let line = line.trim();
    let name = line.strip_prefix("```").or_else(|| line.strip_prefix("~~~"));
    name.is_some_and(|name| !name.contains(['`', '~', '(']))
}

/// The signs that XML writes in another way, and how.
const SIGNS: [(&str, &str); 7] = [
    ("<", "&lt;"),
    (">", "&gt;"),
    ("\"", "&quot;"),
    ("'", "&apos;"),
    ("'", "&#39;"),
    ("'", "&#x27;"),
    ("&", "&amp;"),
];

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let found =
            SIGNS.iter().find_map(|(sign, written)| Some((sign, rest.strip_prefix(written)?)));
        let (sign, after) = found.unwrap_or((&"&", &rest[1..]));
        out.push_str(sign);
        rest = after;
    }
    out + rest
}

/// A text as XML has it between tags; quotes stand for themselves there.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_read_once() {
        assert_eq!(unescaped("a &lt; b &amp;&amp; c &amp;lt; &x; &"), "a < b && c &lt; &x; &");
        assert_eq!(escaped("a < b && c"), "a &lt; b &amp;&amp; c");
    }
}
