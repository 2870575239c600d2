//! Text from outside: what of it is taken, and when it is shown as one marker.
//!
//! **Invariant:** a clean text holds no control character but line feeds and tabs, and no character
//! that hides or reorders text.
//!
//! **Does not know:** the text that it is put into.

use unicode_segmentation::UnicodeSegmentation as _;

use super::buffer::{Content, Fragment};

/// A paste of more lines is shown as a marker.
pub const PASTE_LINES: usize = 10;

/// A paste of more characters is shown as a marker.
pub const PASTE_CHARACTERS: usize = 1_000;

/// The most graphemes of a label that are shown.
const LABEL: usize = 100;

/// The most attachments that a new text can take over.
const LINKS: usize = 64;

/// Reports whether a character acts on a terminal, reorders text, or cannot be seen.
///
/// It is the list of `haft_render::is_hidden`. Source: ECMA-48 (C0, C1), Unicode Standard Annex 9
/// (bidirectional formatting).
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A text with `\n` as its only line end and without hidden characters, and how many were removed.
///
/// CR, CR LF, U+2028 and U+2029 become `\n` and do not count as removed.
pub(super) fn clean(text: &str) -> (String, usize) {
    let (mut clean, mut removed) = (String::with_capacity(text.len()), 0);
    let mut rest = text;
    while let Some(at) = rest.find(is_changed) {
        let (before, from) = rest.split_at(at);
        clean.push_str(before);
        let mut characters = from.chars();
        match characters.next() {
            Some('\r') if characters.as_str().starts_with('\n') => {}
            Some('\r' | '\u{2028}' | '\u{2029}') => clean.push('\n'),
            _ => removed += 1,
        }
        rest = characters.as_str();
    }
    clean.push_str(rest);
    (clean, removed)
}

/// Whether a character does not stay as it is.
fn is_changed(c: char) -> bool {
    c != '\n' && c != '\t' && is_hidden(c)
}

/// A clean paste as it is put into the text: as it is, or as a marker with a number.
pub(super) fn pasted(text: String, number: u32) -> Fragment {
    let lines = text.lines().count();
    if lines > PASTE_LINES {
        let label = format!("[pasted {lines} lines #{number}]");
        return Fragment::atom(label, Content::Paste(text.into()));
    }
    let characters = text.chars().count();
    if characters > PASTE_CHARACTERS {
        let label = format!("[pasted {characters} characters #{number}]");
        return Fragment::atom(label, Content::Paste(text.into()));
    }
    Fragment::plain(text)
}

/// An attachment as it is put into the text, and how many hidden characters its label lost.
pub(super) fn attached(id: u64, label: &str) -> (Fragment, usize) {
    let (label, removed) = clean(label);
    let mut shown = "[".to_owned();
    let mut signs = label.graphemes(true);
    for sign in signs.by_ref().take(LABEL) {
        shown.push_str(if sign == "\n" || sign == "\t" { " " } else { sign });
    }
    shown.push_str(if signs.next().is_some() { "\u{2026}]" } else { "]" });
    (Fragment::atom(shown, Content::Attachment(id)), removed)
}

/// A new text that takes over the attachments of an old one whose labels it still holds in order.
pub(super) fn linked(text: String, old: &Fragment) -> Fragment {
    let mut new = Fragment::plain(text);
    let attachments =
        old.atoms().iter().filter(|atom| matches!(atom.content, Content::Attachment(_)));
    let mut from = 0;
    for atom in attachments.take(LINKS) {
        let label = old.slice(atom.range.clone());
        if let Some(at) = new.slice(from..new.len()).find(label) {
            let range = from + at..from + at + label.len();
            from = range.end;
            new.mark(range, atom.content.clone());
        }
    }
    new
}
