//! Characters that nobody sees, but that a model reads.
//!
//! **Invariant:** what is left shows in the order in which it stands; nothing visible is lost. Joiners
//! stay, which some scripts and pictures are written with.

use std::borrow::Cow;

/// Takes out tags, controls, what reorders text, and blanks without width; says how many hid
/// or reordered text.
pub(crate) fn clean(text: String) -> (String, usize) {
    // Of ASCII only controls are taken out, and most texts have nothing else that could be.
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    if text.as_bytes().iter().all(is_plain) || text.chars().all(|c| !is_unseen(c)) {
        return (text, 0);
    }
    let mut removed = 0;
    let mut kept = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        // A variant of an ideograph is told by what follows it.
        let is_variant = matches!(c, '\u{e0100}'..='\u{e01ef}') && is_ideograph(before);
        if is_unseen(c) && !is_variant {
            removed += usize::from(is_told(c));
        } else {
            kept.push(c);
        }
        before = c;
    }
    (kept, removed)
}

/// The same for a short text.
pub(crate) fn short(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unseen) {
        Cow::Owned(clean(text.to_owned()).0)
    } else {
        Cow::Borrowed(text)
    }
}

const fn is_unseen(c: char) -> bool {
    matches!(c,
        '\0'..='\x08' | '\x0b'..='\x1f' | '\x7f'..='\u{9f}' | '\u{ad}' | '\u{180b}'..='\u{180e}'
        | '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{115f}' | '\u{1160}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// What hides text, or turns it round: most of the others are marks of where words may break.
const fn is_told(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e0fff}')
}

const fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}
