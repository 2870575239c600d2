//! Answers of a terminal, by the form of their sequence or string.
//!
//! **Invariant:** what is not understood is unknown, never a key. **Does not know:** whether a
//! question was asked.

use super::params::{Params, number};
use super::{Answer, ColorIndex, ColorScheme, ModeState, SizeOf};

/// The answer of a control sequence. None if the form is not known.
pub fn sequence(params: &Params, last: u8) -> Option<Answer> {
    let numbers =
        || params.fields.iter().map(|f| f.first().copied().flatten().unwrap_or(0)).collect();
    let short = |field| params.number(field).map(clamp);
    let fields = params.fields.len();
    Some(match (params.marker, params.intermediate, last) {
        (Some(b'?'), None, b'c') if fields > 0 => Answer::DeviceAttributes(numbers()),
        (Some(b'>'), None, b'c') if fields > 0 => Answer::SecondaryAttributes(numbers()),
        // DECXCPR has the page as a third number.
        (None, None, b'R') if fields == 2 => position(params)?,
        (Some(b'?'), None, b'R') if matches!(fields, 2 | 3) => position(params)?,
        (Some(b'?'), Some(b'$'), b'y') if fields == 2 => {
            let state = match params.number(1)? {
                1 => ModeState::Set,
                2 => ModeState::Reset,
                3 => ModeState::AlwaysSet,
                4 => ModeState::AlwaysReset,
                _ => ModeState::Unknown,
            };
            Answer::Mode { mode: short(0)?, state }
        }
        (Some(b'?'), None, b'u') => {
            Answer::KeyboardFlags(u8::try_from(params.number(0)?).unwrap_or(u8::MAX))
        }
        (Some(b'?'), None, b'n') if params.number(0) == Some(997) => match params.number(1)? {
            1 => Answer::ColorScheme(ColorScheme::Dark),
            2 => Answer::ColorScheme(ColorScheme::Light),
            _ => return None,
        },
        (None, None, b't') if fields == 3 => {
            let of = match params.number(0)? {
                8 => SizeOf::TextCells,
                4 => SizeOf::TextPixels,
                6 => SizeOf::CellPixels,
                _ => return None,
            };
            Answer::WindowSize { of, height: short(1)?, width: short(2)? }
        }
        _ => return None,
    })
}

fn position(params: &Params) -> Option<Answer> {
    let row = clamp(params.number(0)?);
    Some(Answer::CursorPosition { row, column: clamp(params.number(1)?) })
}

fn clamp(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// The answer of a control string: its introducer without ESC, and its body.
pub fn string(introducer: u8, body: &[u8]) -> Answer {
    let answer = match introducer {
        b']' => color(body),
        b'P' => body
            .strip_prefix(b">|")
            .map(|name| Answer::Name(String::from_utf8_lossy(name).into_owned())),
        _ => None,
    };
    answer.unwrap_or(Answer::Unknown)
}

fn color(body: &[u8]) -> Option<Answer> {
    let mut parts = body.splitn(2, |b| *b == b';');
    let (code, rest) = (parts.next()?, parts.next()?);
    let (index, text) = match code {
        b"10" => (ColorIndex::Foreground, rest),
        b"11" => (ColorIndex::Background, rest),
        b"4" => {
            let mut parts = rest.splitn(2, |b| *b == b';');
            (ColorIndex::Palette(clamp(number(parts.next()?)?)), parts.next()?)
        }
        _ => return None,
    };
    Some(Answer::Color { index, rgb: rgb(text)? })
}

/// `rgb:r/g/b` and `rgba:r/g/b/a`, 1 to 4 hexadecimal digits each (`XParseColor`).
fn rgb(text: &[u8]) -> Option<[u16; 3]> {
    let (text, count) = match text.strip_prefix(b"rgb:") {
        Some(text) => (text, 3),
        None => (text.strip_prefix(b"rgba:")?, 4),
    };
    let parts: Option<Vec<u16>> = text.split(|b| *b == b'/').map(channel).collect();
    match parts.as_deref() {
        Some([red, green, blue, alpha @ ..]) if alpha.len() + 3 == count => {
            Some([*red, *green, *blue])
        }
        _ => None,
    }
}

/// Digits of a channel, scaled so that the largest number of that many digits is 65535.
fn channel(digits: &[u8]) -> Option<u16> {
    let largest = match digits.len() {
        1 => 0xf_u32,
        2 => 0xff,
        3 => 0xfff,
        4 => 0xffff,
        _ => return None,
    };
    let mut value = 0_u32;
    for digit in digits {
        value = value * 16 + char::from(*digit).to_digit(16)?;
    }
    u16::try_from(value * 0xffff / largest).ok()
}
