//! The ways in which a shell quotes.

use std::ops::Range;

/// Characters without their quotes, and whether each was quoted.
pub(crate) type Chars = Vec<(char, bool)>;

/// The characters of a word without quotes, where a backslash takes what is special from the next
/// one; none where something stands in it that ends a word.
pub(crate) fn bare(text: &str) -> Option<Chars> {
    let mut all = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') => {}
                Some(next) => all.push((next, true)),
                None => return None,
            },
            '"' | '\'' | '`' | '$' | '(' | ')' | '<' | '>' | '|' | '&' | ';' | ' ' | '\t'
            | '\n' => {
                return None;
            }
            _ => all.push((c, false)),
        }
    }
    Some(all)
}

/// The text within double quotes; none where something special is left in it. A dollar stands for
/// itself before what begins no expansion.
pub(crate) fn double(text: &str) -> Option<String> {
    let mut all = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '$' if chars.peek().is_some_and(|next| !begins(*next)) => all.push('$'),
            '\\' => match chars.next()? {
                '\n' => {}
                next @ ('"' | '\\' | '$' | '`') => all.push(next),
                next => all.extend(['\\', next]),
            },
            '"' | '`' | '$' => return None,
            _ => all.push(c),
        }
    }
    Some(all)
}

/// Whether a character may begin an expansion behind a dollar.
fn begins(c: char) -> bool {
    c.is_alphanumeric() || !c.is_ascii() || "_{([#?$!@*-\\`'\"<>~^".contains(c)
}

/// The text of `$'...'`, given what stands between the quotes; none where it is no text, holds a
/// NUL, or an escape that is not known.
pub(crate) fn ansi_c(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let c = rest.chars().next()?;
        let after = &rest[c.len_utf8()..];
        let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok();
        let simple = match c {
            'a' => Some(7),
            'b' => Some(8),
            'e' | 'E' => Some(27),
            'f' => Some(12),
            'n' => Some(b'\n'),
            'r' => Some(b'\r'),
            't' => Some(b'\t'),
            'v' => Some(11),
            '\\' | '\'' | '"' | '?' => u8::try_from(c).ok(),
            _ => None,
        };
        rest = match (c, simple) {
            (_, Some(byte)) => {
                bytes.push(byte);
                after
            }
            ('0'..='7', _) => {
                let (digits, after) = digits(rest, 8, 3);
                bytes.push(u8::try_from(number(digits, 8)? & 0xff).ok()?);
                after
            }
            ('x', _) => {
                let (digits, after) = digits(after, 16, 2);
                bytes.push(u8::try_from(number(digits, 16)?).ok()?);
                after
            }
            ('u' | 'U', _) => {
                let (digits, after) = digits(after, 16, if c == 'u' { 4 } else { 8 });
                let c = char::from_u32(number(digits, 16)?)?;
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                after
            }
            _ => return None,
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    let text = String::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(text)
}

/// The digits that a text begins with, at most as many, and the rest.
fn digits(text: &str, radix: u32, most: usize) -> (&str, &str) {
    let is_digit = |c: &u8| char::from(*c).is_digit(radix);
    let count = text.bytes().take(most).take_while(is_digit).count();
    text.split_at(count)
}

/// Where the `${...}` ends that begins at `from`; what stands in `inner` is passed over. None where
/// it has no end, or another one for another shell: within double quotes some take single ones for
/// themselves.
pub(crate) fn expansion(
    text: &str,
    from: usize,
    quoted: bool,
    inner: &[Range<usize>],
) -> Option<usize> {
    // What is open: `}` of an expansion, or `"`; with each whether double quotes are around it.
    let mut open = vec![('}', quoted)];
    let mut at = from + text.get(from..)?.strip_prefix("${").map(|_| 2)?;
    while let Some((close, is_double)) = open.last().copied() {
        if let Some(within) = inner.iter().find(|span| span.contains(&at)) {
            at = within.end;
            continue;
        }
        let rest = &text[at..];
        let c = rest.chars().next()?;
        at += c.len_utf8();
        match c {
            '\\' => at += rest[1..].chars().next()?.len_utf8(),
            _ if c == close => drop(open.pop()),
            '"' => open.push(('"', true)),
            '$' if rest.starts_with("${") => {
                open.push(('}', is_double));
                at += 1;
            }
            '$' if rest.starts_with("$'") || rest.starts_with("$\"") => {
                return None;
            }
            '\'' if close == '"' => {}
            '\'' => {
                let length = rest[1..].find('\'')?;
                let is_plain = !rest[1..=length].contains(['}', '"', '\\', '$', '`']);
                if is_double && !is_plain {
                    return None;
                }
                at += length + 1;
            }
            '`' => return None,
            _ => {}
        }
    }
    Some(at)
}

/// Whether a variable can have this name.
pub(crate) fn is_name(text: &str) -> bool {
    let mut chars = text.bytes();
    chars.next().is_some_and(|c| c == b'_' || c.is_ascii_alphabetic())
        && chars.all(|c| c == b'_' || c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_ansi_c() {
        let cases = [
            ("a\\nb", Some("a\nb")),
            ("\\x41\\101\\u00e9\\e[", Some("AA\u{e9}\u{1b}[")),
            ("\\xc3\\xa9", Some("\u{e9}")),
            ("\\'\\\"\\\\\\?", Some("'\"\\?")),
            ("\\0", None),
            ("\\xff", None),
            ("\\cA", None),
            ("\\q", None),
            ("\\", None),
            ("\\x", None),
        ];
        for (text, wanted) in cases {
            assert_eq!(ansi_c(text).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn quotes_are_taken_away_as_the_shell_does() {
        assert_eq!(double("a\\\"b\\$c\\d\\\ne").as_deref(), Some("a\"b$c\\de"));
        assert_eq!(double("a$b"), None);
        assert_eq!(double("a$|b$ c$.").as_deref(), Some("a$|b$ c$."));
        for text in ["$", "$$", "${", "$(", "$[", "$1", "$\\\nx", "$`", "$-", "$é"] {
            assert_eq!(double(text), None, "{text}");
        }
        assert_eq!(
            bare("a\\ b\\\nc*"),
            Some(vec![('a', false), (' ', true), ('b', false), ('c', false), ('*', false)])
        );
        assert_eq!(bare("a;b"), None);
        assert!(is_name("_a1") && !is_name("1a") && !is_name("") && !is_name("a b"));
    }
}
