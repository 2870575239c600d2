//! Encodings of keys: C0 controls, SS3, control sequences of xterm, rxvt, Linux and Kitty.
//!
//! **Invariant:** a character that a key gives is never a control character. **Does not know:**
//! where a sequence begins and ends.

use super::params::Params;
use super::{Key, KeyCode, KeyKind, Modifiers};

/// With one of these a key is a command and types nothing.
const COMMAND: Modifiers = Modifiers(Modifiers::CTRL.0 | Modifiers::ALT.0 | Modifiers::SUPER.0);

/// The key of a C0 control or of DEL.
///
/// BS is Backspace, as DEL is. Some terminals send BS for Ctrl+Backspace, others for Backspace
/// itself. To take it for the plain key erases too little at worst.
pub fn control(byte: u8) -> Key {
    let ctrl = |c| Key::new(KeyCode::Char(c)).with(Modifiers::CTRL);
    match byte {
        b'\t' => Key::new(KeyCode::Tab),
        b'\r' => Key::new(KeyCode::Enter),
        0x1b => Key::new(KeyCode::Escape),
        0x08 | 0x7f => Key::new(KeyCode::Backspace),
        0 => ctrl(' '),
        1..=0x1a => ctrl(char::from(b'a' - 1 + byte)),
        _ => ctrl(char::from((byte & 0x1f) + b'@')),
    }
}

/// The key of a character that was typed, with Alt or without.
pub fn typed(c: char, alt: bool) -> Key {
    // C1 controls are written as characters by no key. U+FFFD keeps them visible and harmless.
    let c = if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    if !alt {
        return Key::new(KeyCode::Char(c));
    }
    let (code, modifiers) = character(c, None, None, Modifiers::ALT);
    Key::new(code).with(modifiers)
}

/// The key of `SS3 byte`: cursor keys, F1 to F4, the keypad of a VT220, Ctrl with cursor keys in
/// rxvt.
pub fn single(byte: u8) -> Option<Key> {
    Some(Key::new(match byte {
        b'M' => KeyCode::Enter,
        b'I' => KeyCode::Tab,
        b'X' => KeyCode::Char('='),
        b'R' => KeyCode::F(3),
        b'j'..=b'y' => KeyCode::Char(char::from(byte - b'j' + b'*')),
        b'a'..=b'd' => return Some(Key::new(cursor(byte - 0x20)?).with(Modifiers::CTRL)),
        _ => cursor(byte)?,
    }))
}

/// The key of `CSI [ byte`: F1 to F5 of the Linux console.
pub fn console(byte: u8) -> Option<Key> {
    matches!(byte, b'A'..=b'E').then(|| Key::new(KeyCode::F(byte - b'A' + 1)))
}

/// The keys of a control sequence. Several if a key typed several characters.
pub fn sequence(params: &Params, last: u8) -> Option<Vec<Key>> {
    if params.marker.is_some() || (params.intermediate.is_some() && last != b'$') {
        return None;
    }
    if last == b'u' {
        return kitty(params);
    }
    let code = match last {
        b'~' | b'^' | b'@' | b'$' => match params.number(0)? {
            27 if last == b'~' && params.fields.len() == 3 => return Some(vec![other(params)?]),
            n => tilde(n)?,
        },
        b'Z' => KeyCode::Tab,
        b'a'..=b'd' => cursor(last - 0x20)?,
        // `CSI 1 ; 2 R` was Shift+F3 in old versions of xterm. It reads as a cursor position, and
        // an answer must never be a key. F3 comes as `SS3 R` or `CSI 13 ~` from terminals that
        // know of this. A position always has two numbers and never has parts.
        b'R' if params.fields.is_empty() || params.has_parts() => KeyCode::F(3),
        _ => cursor(last)?,
    };
    let held = match last {
        b'Z' | b'a'..=b'd' | b'$' => Modifiers::SHIFT,
        b'^' => Modifiers::CTRL,
        b'@' => Modifiers::SHIFT | Modifiers::CTRL,
        _ => Modifiers::NONE,
    };
    // Old versions of xterm write `CSI 5 A` for `CSI 1 ; 5 A`.
    let alone = params.fields.len() == 1 && last.is_ascii_alphabetic();
    let modifiers = modifiers(params.number(usize::from(!alone)));
    Some(vec![Key { code, modifiers: modifiers | held, kind: kind(params.part(1, 1)) }])
}

/// The key of the final byte of cursor keys and of F1, F2 and F4.
fn cursor(byte: u8) -> Option<KeyCode> {
    Some(match byte {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'E' => KeyCode::Other,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'P' => KeyCode::F(1),
        b'Q' => KeyCode::F(2),
        b'S' => KeyCode::F(4),
        _ => return None,
    })
}

/// The key of `CSI n ~`.
fn tilde(n: u32) -> Option<KeyCode> {
    // The numbers of function keys of a VT220 have gaps. (First, last, first function key.)
    let runs = [(11, 15, 1), (17, 21, 6), (23, 26, 11), (28, 29, 15), (31, 34, 17)];
    let run = runs.iter().find(|(first, last, _)| (*first..=*last).contains(&n));
    if let Some((first, _, f)) = run {
        return u8::try_from(n - first + f).ok().map(KeyCode::F);
    }
    Some(match n {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        57427 => KeyCode::Other,
        _ => return None,
    })
}

/// Modifiers are written as 1 + bits. Locks (64, 128) are not kept.
fn modifiers(number: Option<u32>) -> Modifiers {
    let bits = number.unwrap_or(1).saturating_sub(1);
    let table = [
        (1, Modifiers::SHIFT),
        (2 | 32, Modifiers::ALT),
        (4, Modifiers::CTRL),
        (8 | 16, Modifiers::SUPER),
    ];
    let set = table.iter().filter(|(mask, _)| bits & mask != 0);
    set.fold(Modifiers::NONE, |all, (_, one)| all | *one)
}

fn kind(number: Option<u32>) -> KeyKind {
    match number {
        Some(2) => KeyKind::Repeat,
        Some(3) => KeyKind::Release,
        _ => KeyKind::Press,
    }
}

/// `CSI 27 ; modifiers ; code ~`: `modifyOtherKeys` of xterm. The code is the shifted character.
fn other(params: &Params) -> Option<Key> {
    let code = params.number(2)?;
    let mut held = modifiers(params.number(1));
    if char::from_u32(code).is_some_and(|c| c.is_ascii_punctuation()) {
        held = held.without(Modifiers::SHIFT);
    }
    let (code, modifiers) = coded(code, None, None, held);
    Some(Key::new(code).with(modifiers))
}

/// `CSI code : shifted : base ; modifiers : event ; text u`.
fn kitty(params: &Params) -> Option<Vec<Key>> {
    let code = params.number(0)?;
    let held = modifiers(params.number(1));
    let kind = kind(params.part(1, 1));
    if kind != KeyKind::Release && (code == 0 || !held.intersects(COMMAND)) {
        let text = params.fields.get(2).into_iter().flatten().flatten();
        let text = text.filter_map(|c| char::from_u32(*c)).filter(|c| !c.is_control());
        let typed = |c| Key { code: KeyCode::Char(c), modifiers: Modifiers::NONE, kind };
        let keys: Vec<Key> = text.map(typed).collect();
        if !keys.is_empty() {
            return Some(keys);
        }
    }
    let alternate = |part| params.part(0, part).and_then(char::from_u32);
    let (code, modifiers) = coded(code, alternate(1), alternate(2), held);
    Some(vec![Key { code, modifiers, kind }])
}

/// The key of a number of `CSI u`.
fn coded(
    code: u32,
    shifted: Option<char>,
    base: Option<char>,
    held: Modifiers,
) -> (KeyCode, Modifiers) {
    match (code, u8::try_from(code)) {
        (1..=0x1f | 0x7f, Ok(byte)) => {
            let key = control(byte);
            (key.code, key.modifiers | held)
        }
        (57344..=63743, _) => (functional(code), held),
        _ => match char::from_u32(code).filter(|c| !c.is_control()) {
            Some(c) => character(c, shifted, base, held),
            None => (KeyCode::Other, held),
        },
    }
}

/// A character key with its alternates. See [`Key`] for what happens to Shift.
fn character(
    c: char,
    shifted: Option<char>,
    base: Option<char>,
    held: Modifiers,
) -> (KeyCode, Modifiers) {
    let visible = |c: &char| !c.is_control();
    let (mut c, mut shifted) = (c, shifted.filter(visible));
    let command = held.intersects(COMMAND);
    // Shortcuts follow the place of a key where its character is not of the Latin script.
    if let Some(latin) = base.filter(|b| command && !c.is_ascii() && b.is_ascii_graphic()) {
        (c, shifted) = (latin, None);
    }
    if let Some(lower) = only(c.to_lowercase()).filter(|l| *l != c) {
        return if command {
            (KeyCode::Char(lower), held | Modifiers::SHIFT)
        } else {
            (KeyCode::Char(c), held.without(Modifiers::SHIFT))
        };
    }
    if !held.contains(Modifiers::SHIFT) {
        return (KeyCode::Char(c), held);
    }
    let upper = only(c.to_uppercase()).filter(|u| *u != c);
    let folded = match shifted {
        Some(symbol) if shifted != upper => Some(symbol),
        _ if command => None,
        _ => upper,
    };
    match folded {
        Some(folded) => (KeyCode::Char(folded), held.without(Modifiers::SHIFT)),
        None => (KeyCode::Char(c), held),
    }
}

fn only(mut chars: impl Iterator<Item = char>) -> Option<char> {
    chars.next().filter(|_| chars.next().is_none())
}

/// Kitty's numbers of functional keys, which are in the Private Use Area.
fn functional(code: u32) -> KeyCode {
    const KEYPAD: [KeyCode; 18] = [
        KeyCode::Char('.'),
        KeyCode::Char('/'),
        KeyCode::Char('*'),
        KeyCode::Char('-'),
        KeyCode::Char('+'),
        KeyCode::Enter,
        KeyCode::Char('='),
        KeyCode::Char(','),
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Insert,
        KeyCode::Delete,
    ];
    let at = |first: u32| u8::try_from(code.saturating_sub(first)).unwrap_or(u8::MAX);
    match code {
        57376..=57398 => KeyCode::F(at(57376) + 13),
        57399..=57408 => KeyCode::Char(char::from(at(57399) + b'0')),
        57409..=57426 => KEYPAD.get(usize::from(at(57409))).copied().unwrap_or(KeyCode::Other),
        _ => KeyCode::Other,
    }
}
