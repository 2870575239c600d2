//! From the bytes of a fuzzer to a file and edits of it.
//!
//! The parts are separated by the bytes 01 02: a byte of flags and the file, then an old and a new
//! text for each edit. A flag says that the old texts are not given but told by three bytes: where
//! in the file they begin, how long they are, and what was done to them on the way; without it chance
//! would hardly ever give a text that is almost there. Invariant: all bytes are some input.

use haft_text::edit::Edit;
use haft_text::encode::{Encoding, Format, encode};
use unicode_normalization::UnicodeNormalization as _;

/// What stands between the parts.
const BETWEEN: [u8; 2] = [1, 2];

/// A file and edits of it.
pub struct Input {
    pub file: Vec<u8>,
    pub edits: Vec<Edit>,
}

impl Input {
    pub fn of(data: &[u8]) -> Self {
        let (&flags, data) = data.split_first().unwrap_or((&0, data));
        let mut parts = parts(data).into_iter();
        let raw = parts.next().unwrap_or_default();
        let text = String::from_utf8_lossy(raw);
        let encoding = match flags & 3 {
            0 => None,
            1 => Some(Encoding::Utf8),
            2 => Some(Encoding::Utf16Le),
            _ => Some(Encoding::Utf16Be),
        };
        let written = encoding.and_then(|encoding| {
            let format = Format { encoding, bom: flags & 4 == 0 };
            encode(&text, format).ok().map(std::borrow::Cow::into_owned)
        });
        let file = written.unwrap_or_else(|| raw.to_vec());
        let text = (flags & 16 != 0)
            .then(|| haft_text::decode(&file).ok().map(|decoded| decoded.text().to_owned()))
            .flatten();
        let mut edits = Vec::new();
        while let Some(old) = parts.next() {
            let new = parts.next().unwrap_or_default();
            let taken = text.as_deref().and_then(|text| taken(text, old));
            edits.push(Edit {
                old_text: taken.unwrap_or_else(|| String::from_utf8_lossy(old).into_owned()),
                new_text: String::from_utf8_lossy(new).into_owned(),
                replace_all: flags & 8 != 0,
            });
        }
        Self { file, edits }
    }
}

/// A part of a text as somebody may have written it down.
fn taken(text: &str, how: &[u8]) -> Option<String> {
    let &[start, len, change, ..] = how else { return None };
    let characters = text.chars().count();
    let start = usize::from(start) % (characters + 1);
    let part: String = text.chars().skip(start).take(usize::from(len)).collect();
    let each = |change: &dyn Fn(&str) -> String| {
        part.split('\n').map(change).collect::<Vec<_>>().join("\n")
    };
    let first = 1 + text.chars().take(start).filter(|character| *character == '\n').count();
    let numbered = || {
        let lines = part.split('\n').enumerate();
        lines.map(|(at, line)| format!("{:>4}\t{line}", first + at)).collect::<Vec<_>>().join("\n")
    };
    Some(match change % 13 {
        0 => part.replace("\r\n", "\n").replace('\r', "\n"),
        1 => each(&|line| line.trim_end().to_owned()),
        2 => each(&|line| format!("{line} ")),
        3 => part.nfc().collect(),
        4 => part.nfd().collect(),
        5 => part.nfkc().collect(),
        6 => part.replace(['“', '”'], "\"").replace(['–', '—'], "-").replace('\u{a0}', " "),
        7 => each(&|line| if line.is_empty() { String::new() } else { format!("  {line}") }),
        8 => each(&|line| line.strip_prefix("    ").unwrap_or(line).to_owned()),
        9 => part.replace("    ", "\t"),
        10 => part.replace('\t', "    "),
        11 => numbered(),
        _ => part.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"),
    })
}

fn parts(data: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = data;
    while let Some(at) = rest.windows(2).position(|pair| pair == BETWEEN) {
        parts.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    parts.push(rest);
    parts
}
