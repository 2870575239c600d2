//! Names for characters that look like others or like nothing, for messages.
//!
//! Invariant: whatever is printed here is itself visible and safe on a terminal. Full Unicode names
//! are not carried; what has no entry shows as itself and its code point.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

/// Names of characters that are easily mistaken.
const NAMES: &[(char, &str)] = &[
    ('\0', "NUL"),
    ('\t', "tab"),
    ('\n', "line feed"),
    ('\r', "carriage return"),
    ('\u{1b}', "escape"),
    (' ', "space"),
    ('"', "straight double quote"),
    ('\'', "straight single quote"),
    ('-', "hyphen-minus"),
    ('`', "backtick"),
    ('\u{7f}', "delete"),
    ('\u{85}', "next line"),
    ('\u{a0}', "no-break space"),
    ('\u{ad}', "soft hyphen"),
    ('\u{b4}', "acute accent"),
    ('\u{1680}', "ogham space mark"),
    ('\u{2000}', "en quad"),
    ('\u{2001}', "em quad"),
    ('\u{2002}', "en space"),
    ('\u{2003}', "em space"),
    ('\u{2004}', "three-per-em space"),
    ('\u{2005}', "four-per-em space"),
    ('\u{2006}', "six-per-em space"),
    ('\u{2007}', "figure space"),
    ('\u{2008}', "punctuation space"),
    ('\u{2009}', "thin space"),
    ('\u{200a}', "hair space"),
    ('\u{200b}', "zero width space"),
    ('\u{200c}', "zero width non-joiner"),
    ('\u{200d}', "zero width joiner"),
    ('\u{200e}', "left-to-right mark"),
    ('\u{200f}', "right-to-left mark"),
    ('\u{2010}', "hyphen"),
    ('\u{2011}', "non-breaking hyphen"),
    ('\u{2012}', "figure dash"),
    ('\u{2013}', "en dash"),
    ('\u{2014}', "em dash"),
    ('\u{2015}', "horizontal bar"),
    ('\u{2018}', "left single quote"),
    ('\u{2019}', "right single quote"),
    ('\u{201a}', "low single quote"),
    ('\u{201b}', "reversed single quote"),
    ('\u{201c}', "left double quote"),
    ('\u{201d}', "right double quote"),
    ('\u{201e}', "low double quote"),
    ('\u{201f}', "reversed double quote"),
    ('\u{2026}', "ellipsis"),
    ('\u{2028}', "line separator"),
    ('\u{2029}', "paragraph separator"),
    ('\u{202f}', "narrow no-break space"),
    ('\u{2032}', "prime"),
    ('\u{2033}', "double prime"),
    ('\u{205f}', "medium mathematical space"),
    ('\u{2060}', "word joiner"),
    ('\u{2212}', "minus sign"),
    ('\u{3000}', "ideographic space"),
    ('\u{feff}', "byte order mark"),
    ('\u{fffd}', "replacement character"),
];

/// Gives the plain name of an easily mistaken character.
pub fn name(character: char) -> Option<&'static str> {
    let at = NAMES.binary_search_by_key(&character, |entry| entry.0).ok()?;
    Some(NAMES[at].1)
}

/// Describes one character by its code point, and by its name or by itself.
pub fn describe(character: char) -> String {
    let code = u32::from(character);
    match name(character) {
        Some(name) => format!("U+{code:04X} ({name})"),
        None if visible(character) => format!("U+{code:04X} '{character}'"),
        None => format!("U+{code:04X}"),
    }
}

/// Gives the composed form (NFC) of a text: texts that differ in their Unicode form alone have the
/// same one.
pub fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.nfc().collect())
}

/// As [`composed`], of each name in a path with `/` between them; names that are no UTF-8 stay.
pub fn composed_path(path: &[u8]) -> Cow<'_, [u8]> {
    if path.is_ascii() {
        return Cow::Borrowed(path);
    }
    if let Ok(text) = str::from_utf8(path) {
        return match composed(text) {
            Cow::Borrowed(_) => Cow::Borrowed(path),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
    }
    let names = path.split(|byte| *byte == b'/');
    let names = names.map(|name| str::from_utf8(name).map_or(Cow::Borrowed(name), in_bytes));
    Cow::Owned(names.collect::<Vec<_>>().join(&b'/'))
}

fn in_bytes(name: &str) -> Cow<'_, [u8]> {
    match composed(name) {
        Cow::Borrowed(name) => Cow::Borrowed(name.as_bytes()),
        Cow::Owned(name) => Cow::Owned(name.into_bytes()),
    }
}

/// Gives the decomposed form (NFD) of a text.
pub fn decomposed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { Cow::Borrowed(text) } else { Cow::Owned(text.nfd().collect()) }
}

/// Gives the other Unicode forms of a text that look the same: composed (NFC) and decomposed (NFD),
/// where they differ from it.
pub fn other_forms(text: &str) -> Vec<String> {
    if text.is_ascii() {
        return Vec::new();
    }
    let forms = [composed(text), decomposed(text)].map(Cow::into_owned);
    forms.into_iter().filter(|form| form != text).collect()
}

/// Writes every character outside ASCII as `\u{..}`, so that two forms of a name can be told apart.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            ' '..='~' => out.push(character),
            _ => out.extend(character.escape_unicode()),
        }
    }
    out
}

/// Makes a text safe to show in a message: what cannot be seen is written as `\u{..}`, tabs as
/// `\t`, and what is longer than `limit` characters is cut with a mark.
pub fn shown(text: &str, limit: usize) -> String {
    shown_line(text, limit).replace('\t', "\\t")
}

/// As [`shown`], but tabs stay: a line of a file, to be taken as it is.
pub fn shown_line(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == limit {
            out.push_str(" [line cut]");
            break;
        }
        match character {
            '\t' => out.push('\t'),
            '\r' => out.push_str("\\r"),
            _ if is_escaped(character) => out.extend(character.escape_unicode()),
            _ => out.push(character),
        }
    }
    out
}

/// Whether a character is never shown as itself.
pub(crate) fn is_escaped(character: char) -> bool {
    let seen = visible(character) && name(character).is_none_or(|_| quotable(character));
    character != ' ' && !seen
}

/// Named characters that can be seen, so that they show as themselves.
const fn quotable(character: char) -> bool {
    matches!(
        character,
        '"' | '\'' | '`' | '-' | '\u{b4}' | '\u{2010}'
            ..='\u{2026}' | '\u{2032}' | '\u{2033}' | '\u{2212}'
    )
}

fn visible(character: char) -> bool {
    !character.is_control()
        && !character.is_whitespace()
        && !matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{ffff}'
            | '\u{e000}'..='\u{f8ff}' | '\u{300}'..='\u{36f}' | '\u{e0000}'..='\u{10ffff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(name('\u{a0}'), Some("no-break space"));
    }

    #[test]
    fn forms_of_one_text_have_one_composed_form_and_other_bytes_stay() {
        for text in [
            "\u{dc}bersicht",
            "U\u{308}bersicht",
            "\u{d55c}\u{ae00}",
            "a\u{323}\u{302}",
            "a\u{302}\u{323}",
        ] {
            let [nfc, nfd] = [composed(text), decomposed(text)];
            assert_eq!((composed(&nfd), composed(&nfc)), (nfc.clone(), nfc.clone()), "{text}");
            assert_eq!(&*composed_path(text.as_bytes()), nfc.as_bytes(), "{text}");
        }
        assert!(matches!(composed("plain"), Cow::Borrowed(_)));
        assert!(matches!(composed_path("\u{dc}/a".as_bytes()), Cow::Borrowed(_)));
        let odd = [b"U\xcc\x88/".as_slice(), b"U\xcc\x88\xff/a/", "\u{308}".as_bytes()].concat();
        let is = [b"\xc3\x9c/".as_slice(), b"U\xcc\x88\xff/a/", "\u{308}".as_bytes()].concat();
        assert_eq!(&*composed_path(&odd), is);
        assert_eq!(escaped("a U\u{308}\n"), "a U\\u{308}\\u{a}");
    }

    #[test]
    fn nothing_invisible_is_printed() {
        assert_eq!(shown("a\tb\u{a0}\u{202e}\u{1b}", 10), "a\\tb\\u{a0}\\u{202e}\\u{1b}");
        assert_eq!(shown("abcdef", 3), "abc [line cut]");
        assert_eq!(describe('\u{202e}'), "U+202E");
        assert_eq!(describe('x'), "U+0078 'x'");
    }
}
