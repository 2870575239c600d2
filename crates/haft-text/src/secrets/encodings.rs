//! Other forms of a value, as programs print them.
//!
//! **Invariant:** a form is at least as long as a secret, so that hiding it hides nothing else.

use super::names::SHORTEST;
use crate::names::shown_line;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The forms of a value that differ from it, each with its kind.
pub(super) fn of(value: &str) -> Vec<(&'static str, String)> {
    let mut forms = Vec::new();
    let mut add = |kind, form: String| {
        if form.len() >= SHORTEST && form != value && !forms.iter().any(|(_, known)| *known == form)
        {
            forms.push((kind, form));
        }
    };
    add("JSON", before(value, &['"', '\\']));
    let quoted = [
        value.replace('\'', "'\\''"),
        before(value, &['$', '`', '"', '\\']),
        value.replace('\'', "''"),
    ];
    for written in quoted.iter().map(String::as_str).chain([value]) {
        add("QUOTED", written.to_owned());
        // As messages show a command, on one line and with all that cannot be seen.
        add("ESCAPED", written.chars().flat_map(char::escape_debug).collect());
        let debug = format!("{written:?}");
        add("ESCAPED", debug[1..debug.len() - 1].to_owned());
        add("ESCAPED", shown_line(written, usize::MAX));
    }
    for upper in [true, false] {
        add("URL", url(value, upper));
    }
    // What encodes to so few characters is found in too many places.
    if value.len() >= SHORTEST {
        for before in 0..3 {
            let inner = base64(value.as_bytes(), before);
            add("BASE64", inner.replace('+', "-").replace('/', "_"));
            add("BASE64", inner);
        }
    }
    forms
}

/// A text with a backslash before some characters.
fn before(value: &str, which: &[char]) -> String {
    value.chars().flat_map(|c| which.contains(&c).then_some('\\').into_iter().chain([c])).collect()
}

fn url(value: &str, upper: bool) -> String {
    let mut out = String::with_capacity(value.len());
    for b in value.bytes() {
        match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(b.into());
            }
            b if upper => out.extend([format!("%{b:02X}")]),
            b => out.extend([format!("%{b:02x}")]),
        }
    }
    out
}

/// The characters of Base64 (RFC 4648) that bytes alone decide, where as many stand before them.
fn base64(bytes: &[u8], before: usize) -> String {
    let bit = |at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
    let skipped = (6 - before * 8 % 6) % 6;
    let mut out = String::new();
    let mut at = skipped;
    while at + 6 <= bytes.len() * 8 {
        let index = (at..at + 6).fold(0, |index, at| index << 1 | usize::from(bit(at)));
        out.push(ALPHABET[index].into());
        at += 6;
    }
    out
}
