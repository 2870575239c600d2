//! How far bytes are the start of an answer that a terminal is known to give.
//!
//! After a pause only these may go on: everything else was typed. **Invariant:** one look costs a
//! bounded number of steps. **Does not know:** times, keys.

use super::answers;
use super::params::Params;

/// How bytes compare with the known answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// No known answer begins so.
    No,
    /// A known answer begins so, and more must come.
    Part,
    /// All of an answer; of a control string, all but its end. More of it may come.
    Full,
    /// As full, and any text may come before the end.
    Free,
}

/// Strings whose text is free behind these heads: the introducer without ESC, then the body.
///
/// OSC 52 (clipboard), XTVERSION, DECRPSS, XTGETTCAP, DA3, Kitty's graphics.
const FREE: [&[u8]; 8] = [b"]52;", b"P>|", b"P0$r", b"P1$r", b"P0+r", b"P1+r", b"P!|", b"_G"];

/// The longest look at a string: `]4;65535;rgba:` and four channels, with room.
const LOOK: usize = 64;

/// Compares bytes that begin with ESC.
pub fn known(held: &[u8]) -> Known {
    match held {
        [_] => Known::Part,
        [_, b'[', body @ ..] => sequence(body),
        [_, rest @ ..] => string(rest),
        [] => Known::No,
    }
}

/// A sequence. The start of a paste counts as well: what is pasted must never become keys.
fn sequence(body: &[u8]) -> Known {
    let Some((last, before)) = body.split_last() else { return Known::Part };
    match last {
        b'?' | b'>' if before.is_empty() => Known::Part,
        b'0'..=b';' => digits_before(before, true),
        b'$' => digits_before(before, before.contains(&b';')),
        b'@'..=b'~' => match Params::read(before) {
            Some(params) if is_answer(&params, *last) => Known::Full,
            _ => Known::No,
        },
        _ => Known::No,
    }
}

fn digits_before(before: &[u8], allowed: bool) -> Known {
    let numbers = match before {
        [b'?' | b'>', rest @ ..] => rest,
        all => all,
    };
    let clean = numbers.iter().all(|b| matches!(b, b'0'..=b';'));
    if clean && allowed { Known::Part } else { Known::No }
}

fn is_answer(params: &Params, last: u8) -> bool {
    // No key has a marker with a number.
    (params.marker.is_some() && params.number(0).is_some())
        || answers::sequence(params, last).is_some()
        || matches!((last, params.intermediate), (b'y', Some(b'$')) if params.fields.len() == 2)
        || (last == b't' && params.fields.len() >= 3 && matches!(params.number(0), Some(9 | 48)))
        || (last == b'~' && params.fields.len() == 1 && params.number(0) == Some(200))
}

fn string(rest: &[u8]) -> Known {
    for head in FREE {
        if rest.starts_with(head) {
            return Known::Free;
        }
        if head.starts_with(rest) {
            return Known::Part;
        }
    }
    match rest {
        _ if rest.len() > LOOK => Known::No,
        b"]1" | b"]4" | [b']', b'1', b'0'..=b'9'] => Known::Part,
        [b']', b'1', b'0'..=b'9', b';', text @ ..] => color(text),
        [b']', b'4', b';', text @ ..] => {
            let end = text.iter().position(|b| !b.is_ascii_digit());
            match end.map(|end| text.split_at(end)) {
                None => Known::Part,
                Some(([_, ..], [b';', text @ ..])) => color(text),
                Some(_) => Known::No,
            }
        }
        _ => Known::No,
    }
}

/// The start of `rgb:r/g/b` or of `rgba:r/g/b/a`.
fn color(text: &[u8]) -> Known {
    for (name, count) in [(&b"rgb:"[..], 3), (b"rgba:", 4)] {
        if name.starts_with(text) {
            return Known::Part;
        }
        let Some(numbers) = text.strip_prefix(name) else { continue };
        let parts = || numbers.split(|b| *b == b'/');
        let wrong = |p: &[u8]| p.len() > 4 || !p.iter().all(u8::is_ascii_hexdigit);
        let empty = parts().filter(|p| p.is_empty()).count();
        let open = numbers.is_empty() || numbers.ends_with(b"/");
        if parts().count() > count || parts().any(wrong) || empty > usize::from(open) {
            return Known::No;
        }
        return if parts().count() == count && !open { Known::Full } else { Known::Part };
    }
    Known::No
}
