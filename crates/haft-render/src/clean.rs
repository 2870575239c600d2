//! Makes text of unknown origin harmless for a terminal, and honest for a reader.
//!
//! **Invariant:** the result holds no control character but line feeds and tabs, and no character
//! that hides or reorders text. Each of them is replaced by a visible sign. [`colours_only`] also
//! lets the renderer's own colours pass. Splitting the text into pieces at any point changes
//! nothing.

use std::{borrow::Cow, fmt::Write as _};

use crate::line::{Style, Theme};

/// The longest start of a colour sequence that is waited for, in bytes.
const LONGEST_COLOUR: usize = 64;

/// Reports whether a character acts on a terminal, reorders text, or cannot be seen.
///
/// Source: ECMA-48 (C0, C1), Unicode Standard Annex 9 (bidirectional formatting).
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Reports whether nobody can tell by looking that a character is there, or that it is not another
/// one. Such a character is hidden, draws nothing, is a blank but no space, or has no agreed look.
///
/// In prose some of these are wanted, as the joiners of emoji are. Where somebody decides by what
/// they see, none is. Source: Unicode Character Database, `Default_Ignorable_Code_Point`, the
/// category Zs, private use, noncharacters, and what is drawn as nothing beside those.
pub fn is_unseen(c: char) -> bool {
    if c.is_ascii() {
        return c.is_control();
    }
    is_hidden(c)
        || c.is_whitespace()
        || u32::from(c) & 0xfffe == 0xfffe
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2800}' | '\u{3164}'
            | '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{13441}' | '\u{13442}' | '\u{16fe4}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}')
}

/// Adds the visible sign of a hidden character.
pub(crate) fn push_sign(to: &mut String, c: char) {
    match u32::from(c) {
        code @ 0..0x20 => to.extend(char::from_u32(0x2400 + code)),
        0x7f => to.push('\u{2421}'),
        code => to.push_str(&format_code(code)),
    }
}

pub(crate) fn format_code(code: u32) -> String {
    format!("<U+{code:04X}>")
}

/// Replaces every [hidden](is_hidden) character but line feeds and tabs by a visible sign.
pub fn clean(text: &str) -> Cow<'_, str> {
    signed(text, is_hidden)
}

/// Replaces every [unseen](is_unseen) character but line feeds and tabs by a visible sign, for a
/// person who decides by the text.
pub fn exact(text: &str) -> Cow<'_, str> {
    signed(text, is_unseen)
}

fn signed(text: &str, is: fn(char) -> bool) -> Cow<'_, str> {
    let bad = |c: char| is(c) && c != '\n' && c != '\t';
    if !text.contains(bad) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if bad(c) {
            push_sign(&mut cleaned, c);
        } else {
            cleaned.push(c);
        }
    }
    Cow::Owned(cleaned)
}

/// Replaces every [hidden](is_hidden) character by a visible sign, except line feeds, tabs and the
/// colours that a renderer of this crate uses.
pub fn colours_only(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return clean(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        let (before, sequence) = rest.split_at(at);
        cleaned.push_str(&clean(before));
        // At least the one character, so that every round is a step.
        let length = colour(sequence).unwrap_or(1);
        if length > 1 {
            cleaned.push_str(&sequence[..length]);
        } else {
            push_sign(&mut cleaned, '\u{1b}');
        }
        rest = &sequence[length..];
    }
    cleaned.push_str(&clean(rest));
    Cow::Owned(cleaned)
}

/// The length of the renderer's own colour sequence that a text begins with.
fn colour(text: &str) -> Option<usize> {
    let (code, _) = text.strip_prefix("\u{1b}[")?.split_once('m')?;
    let own = code == "0"
        || Theme::ALL.iter().any(|theme| Style::ALL.iter().any(|style| style.code(*theme) == code));
    (own && !code.is_empty()).then_some(code.len() + 3)
}

/// Escapes every character of a JSON text that a terminal acts on, or that nobody sees.
///
/// The value of the text stays the same. Line feeds and tabs between values are retained, and a
/// carriage return there becomes a space. Inside strings JSON itself escapes them.
pub fn json(text: &str) -> Cow<'_, str> {
    let bad = |c: char| is_unseen(c) && c != '\n' && c != '\t';
    if !text.contains(bad) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let (mut in_string, mut is_escaped) = (false, false);
    for c in text.chars() {
        in_string ^= c == '"' && !is_escaped;
        is_escaped = in_string && c == '\\' && !is_escaped;
        if c == '\r' && !in_string {
            escaped.push(' ');
        } else if bad(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Cleans a program's output as it arrives. Colours are dropped, and so are carriage returns before
/// a line feed. All other hidden characters become visible.
#[derive(Clone, Debug, Default)]
pub struct Sanitiser {
    /// The start of something that may become a colour or a line end.
    pending: String,
}

impl Sanitiser {
    /// Takes the next piece; returns what is certain by now.
    pub fn push(&mut self, piece: &str) -> String {
        let mut done = String::with_capacity(self.pending.len() + piece.len());
        for c in piece.chars() {
            self.take(c, &mut done);
        }
        done
    }

    /// Returns what was still held back.
    pub fn finish(&mut self) -> String {
        clean(&std::mem::take(&mut self.pending)).into_owned()
    }

    fn take(&mut self, c: char, done: &mut String) {
        if !self.pending.is_empty() {
            let colour = self.pending.starts_with('\u{1b}');
            let goes_on = match self.pending.len() {
                1 => c == '[',
                length => length < LONGEST_COLOUR && matches!(c, '0'..='9' | ';' | ':'),
            };
            if colour && self.pending.len() > 1 && c == 'm' {
                self.pending.clear();
                return;
            }
            if colour && goes_on {
                self.pending.push(c);
                return;
            }
            if colour || c != '\n' {
                done.push_str(&clean(&self.pending));
            }
            self.pending.clear();
        }
        match c {
            '\u{1b}' | '\r' => self.pending.push(c),
            '\n' | '\t' => done.push(c),
            c if is_hidden(c) => push_sign(done, c),
            c => done.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream(pieces: &[&str]) -> String {
        let mut sanitiser = Sanitiser::default();
        let mut all: String = pieces.iter().map(|piece| sanitiser.push(piece)).collect();
        all.push_str(&sanitiser.finish());
        all
    }

    #[test]
    fn what_acts_or_hides_becomes_a_sign() {
        assert_eq!(clean("a\u{1b}]0;x\u{7}b"), "a\u{241b}]0;x\u{2407}b");
        assert_eq!(clean("\u{202e}abc\u{9b}2J\u{7f}"), "<U+202E>abc<U+009B>2J\u{2421}");
        assert_eq!(
            clean("plain \u{1f469}\u{200d}\u{1f680}\tx\n"),
            "plain \u{1f469}\u{200d}\u{1f680}\tx\n"
        );
    }

    #[test]
    fn who_decides_sees_every_character() {
        // By the tables of Unicode, from a library that carries them.
        let classes = r"[\p{Default_Ignorable_Code_Point}\p{Zs}\p{Zl}\p{Zp}\p{Cc}\p{Co}\p{Noncharacter_Code_Point}\x{2800}\x{1d159}]";
        let unseen = regex::Regex::new(classes).unwrap();
        for c in ('\u{21}'..=char::MAX).filter(|c| unseen.is_match(c.encode_utf8(&mut [0; 4]))) {
            let shown = exact(&format!("a{c}b")).into_owned();
            let signed = shown == format!("a<U+{:04X}>b", u32::from(c)) || c == '\u{7f}';
            assert!(signed && is_unseen(c), "{:x} {shown:?}", u32::from(c));
        }
        let plain = "touch 'a b'\tc\n日本語 é e\u{301} \u{1f680} ½ — “x”";
        assert!(matches!(exact(plain), Cow::Borrowed(_)));
        assert_eq!(exact("\u{1f469}\u{200d}\u{1f680}"), "\u{1f469}<U+200D>\u{1f680}");
    }

    #[test]
    fn only_the_renderers_own_colours_are_kept() {
        let own =
            "\u{1b}[1;31mfault\u{1b}[0m \u{1b}[31mbad\u{1b}[0m\u{1b}[1;4;32mnew\u{1b}[0m\n\tx";
        let strange = "\u{1b}[1;31m";
        assert_eq!(colours_only(own), own.replace(strange, "\u{241b}[1;31m"));
        for (hostile, shown) in [
            ("\u{1b}[8mhidden", "\u{241b}[8mhidden"),
            ("\u{1b}[mx\u{1b}[", "\u{241b}[mx\u{241b}["),
            ("\u{1b}\u{1b}[0m\u{202e}", "\u{241b}\u{1b}[0m<U+202E>"),
            ("\u{1b}]0;m\u{7}\r", "\u{241b}]0;m\u{2407}\u{240d}"),
            ("\u{9b}31m", "<U+009B>31m"),
        ] {
            assert_eq!(colours_only(hostile), shown);
        }
    }

    #[test]
    fn json_keeps_its_value_and_shows_nothing_raw() {
        let hostile =
            "\u{9b}2J\u{85}\u{202e}\u{2066}\u{200b}\u{200d}\u{feff}\u{7f}\u{e0041}\u{1b}\u{ad}\n";
        let value = serde_json::json!({hostile: [hostile, "plain ä \u{1f680}"]});
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let escaped = json(&text);
            assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
            let raw = escaped.replace("ä \u{1f680}", "").replace('\n', "");
            assert!(raw.chars().all(|c| (' '..='~').contains(&c)), "{escaped:?}");
        }
        assert!(json("{\"e\":\"\u{e0041}\"}").contains("\\udb40\\udc41"));
        assert!(matches!(json("{\"a\":\"ä\"}"), Cow::Borrowed(_)));
        // Between values no escape can stand.
        assert_eq!(json("[10,\r\n\"\\\"\u{7f}\"\r]"), "[10, \n\"\\\"\\u007f\" ]");
    }

    #[test]
    fn colours_and_line_ends_are_dropped_wherever_they_are_cut() {
        assert_eq!(stream(&["\u{1b}[1;31mred\u{1b}[0m\r\nx\r"]), "red\nx\u{240d}");
        assert_eq!(stream(&["\u{1b}", "[1;3", "1mred\u{1b}[", "0m\r", "\nx"]), "red\nx");
        assert_eq!(stream(&["\u{1b}", "[2J"]), "\u{241b}[2J");
        assert_eq!(stream(&["\u{1b}]52;c;x\u{7}"]), "\u{241b}]52;c;x\u{2407}");
        assert_eq!(stream(&["\u{1b}["]), "\u{241b}[");
        let endless = format!("\u{1b}[{}", "1;".repeat(500));
        assert!(stream(&[&endless]).starts_with("\u{241b}[1;"));
        assert_eq!(stream(&["\u{1b}\u{1b}[0m"]), "\u{241b}");
    }

    proptest! {
        #[test]
        fn pieces_change_nothing_and_nothing_hidden_is_left(
            text in "(\u{1b}|\\[|m|[0-9;]|\r|\n|\u{9b}|x|\u{202e}|\t){0,40}", at in 0_usize..40,
        ) {
            let middle = text.char_indices().nth(at).map_or(text.len(), |(i, _)| i);
            let whole = stream(&[&text]);
            prop_assert_eq!(&whole, &stream(&[&text[..middle], &text[middle..]]));
            prop_assert!(!whole.contains(|c| is_hidden(c) && c != '\n' && c != '\t'));
        }
    }
}
