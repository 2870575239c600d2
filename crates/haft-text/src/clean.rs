//! Bytes that a program printed to clean text.
//!
//! Invariant: the result is what [`StreamDecoder`] and [`Stripper`] give for the whole stream,
//! however it is cut into pieces; plain lines are only copied. Memory is bounded as theirs is.

use crate::{Encoding, StreamDecoder, strip::Stripper};

/// Cleans one stream of UTF-8, piece by piece: what is no UTF-8 becomes U+FFFD.
#[derive(Debug)]
pub struct Cleaner {
    decoder: StreamDecoder,
    stripper: Stripper,
    text: String,
    /// Whether plain lines may be taken as they are.
    plain: bool,
}

impl Default for Cleaner {
    fn default() -> Self {
        Self::new()
    }
}

impl Cleaner {
    /// Begins a stream.
    pub fn new() -> Self {
        Self {
            decoder: StreamDecoder::new(Encoding::Utf8),
            stripper: Stripper::new(),
            text: String::new(),
            plain: true,
        }
    }

    /// Takes the next piece and appends the lines that are complete.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let rest = if self.plain { self.push_plain(bytes, out) } else { bytes };
        self.push_any(rest, out);
        // An ASCII byte at the end leaves no part of a character behind.
        self.plain = bytes.last().is_none_or(u8::is_ascii) && self.stripper.is_plain();
    }

    /// Appends the open line as far as it has come; what follows may still change it.
    pub fn open(&self, out: &mut String) {
        self.stripper.clone().finish(out);
    }

    /// Reports whether the open line is one of progress: what comes next can take its place.
    pub const fn is_progress(&self) -> bool {
        self.stripper.is_progress()
    }

    /// Ends the stream and appends the open line.
    pub fn finish(mut self, out: &mut String) {
        self.text.clear();
        self.decoder.finish(&mut self.text);
        self.stripper.push(&self.text, out);
        self.stripper.finish(out);
    }

    fn push_any(&mut self, bytes: &[u8], out: &mut String) {
        self.text.clear();
        self.decoder.push(bytes, &mut self.text);
        self.stripper.push(&self.text, out);
    }

    /// Takes the lines at the start as they are where nothing has to be cleaned; gives the rest.
    ///
    /// Most output is like that, and is then only copied.
    fn push_plain<'a>(&mut self, bytes: &'a [u8], out: &mut String) -> &'a [u8] {
        let end = |at: usize| at + 1;
        let (first, last) = (memchr::memchr(b'\n', bytes), memchr::memrchr(b'\n', bytes));
        let (Some(first), Some(last)) = (first.map(end), last.map(end)) else { return bytes };
        if !is_plain(&bytes[..last]) {
            return bytes;
        }
        let Ok(lines) = std::str::from_utf8(&bytes[..last]) else { return bytes };
        // The first one ends the line that the stripper holds.
        self.stripper.push(&lines[..first], out);
        out.push_str(&lines[first..]);
        &bytes[last..]
    }
}

/// Reports whether no byte can belong to a character that is taken out.
///
/// Eight bytes at a time, so that large outputs are looked through soon in any build.
fn is_plain(bytes: &[u8]) -> bool {
    let (eights, rest) = bytes.as_chunks();
    let mut any = 0;
    for eight in eights {
        any |= controls(u64::from_ne_bytes(*eight));
    }
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    (any | controls(u64::from_ne_bytes(last))) == 0
}

/// The high bits of those of eight bytes that may belong to a control character; of line ends and
/// tabs not.
const fn controls(eight: u64) -> u64 {
    const LOW: u64 = every(0x7f);
    const HIGH: u64 = every(0x80);
    const SPACE: u64 = every(b' ');
    const LINE_END: u64 = every(b'\n');
    const TAB: u64 = every(b'\t');
    // Those from U+0080 to U+009F begin with this byte, as others do.
    const C1: u64 = every(0xc2);
    // No sum or difference leaves its byte: the high bits are out of the way.
    let low = eight & LOW;
    let below_space = !((low | HIGH) - SPACE);
    let others = ((low ^ LINE_END) + LOW) & ((low ^ TAB) + LOW);
    let delete = !((low ^ LOW) + LOW);
    let ascii = ((below_space & others) | delete) & !eight;
    let first = eight ^ C1;
    (ascii | !(((first & LOW) + LOW) | first)) & HIGH
}

/// Eight times the same byte.
const fn every(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// How many bytes at the start are already what a [`Cleaner`] would give for them.
///
/// A part of a character at the end is not counted; where the rest of it follows, it may be clean.
pub fn clean_prefix(bytes: &[u8]) -> usize {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    };
    let mut at = 0;
    // Asked of many at once; only where something may be in the way is it looked for.
    for block in text.as_bytes().chunks(4096) {
        if !is_plain(block) {
            break;
        }
        at += block.len();
    }
    let at = text.floor_char_boundary(at);
    let taken = |c: char| c.is_control() && c != '\n' && c != '\t';
    text[at..].find(taken).map_or(text.len(), |found| at + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(bytes: &[u8], step: usize, plain: bool) -> String {
        let (mut cleaner, mut out) = (Cleaner::new(), String::new());
        for piece in bytes.chunks(step) {
            cleaner.plain &= plain;
            cleaner.push(piece, &mut out);
        }
        cleaner.finish(&mut out);
        out
    }

    #[test]
    fn the_short_way_gives_what_the_long_one_gives() {
        let long = "x".repeat(70_000);
        let texts = [
            "a\nb\n\nc",
            "plain\nthen \u{1b}[31mred\u{1b}[0m\nplain again\n",
            "10%\r20%\r\n30%\rdone\nmore\n",
            "10%\u{1b}[1G20%\u{1b}[G30%\nmore\n",
            "日本\n語 é\u{a0}\u{85}x\n",
            "\u{1b}]0;title\nstill the title\u{7}after\nlines\n",
            &format!("{long}\n{long}\rback\n"),
        ];
        for text in texts {
            let whole = cleaned(text.as_bytes(), usize::MAX, false);
            for step in [1, 2, 3, 7, 64, 65_536, usize::MAX] {
                assert_eq!(cleaned(text.as_bytes(), step, true), whole, "{step} {text:.40?}");
            }
        }
        let damaged = b"ok\n\xe6\x97\nok\n\xff\n";
        assert_eq!(cleaned(damaged, 1, true), cleaned(damaged, 99, false));
    }

    #[test]
    fn every_byte_at_every_place_is_plain_or_not() {
        for byte in 0..=u8::MAX {
            let plain = !matches!(byte, 0..=8 | 0xb..=0x1f | 0x7f | 0xc2);
            for (at, around) in (0..19).flat_map(|at| [b'a', b'\n', 0xff].map(|one| (at, one))) {
                let mut bytes = [around; 19];
                bytes[at] = byte;
                assert_eq!(is_plain(&bytes), plain, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn a_clean_prefix_is_what_cleaning_leaves_alone() {
        let long = "é plain\n".repeat(1000);
        let cases: [(&[u8], usize); 9] = [
            (b"", 0),
            (b"a\tb\nc", 5),
            (b"ab\rc", 2),
            (b"\x1b[1m", 0),
            ("é\u{a0}\u{85}".as_bytes(), 4),
            (b"a\xff", 1),
            (b"a\xe6\x97", 1),
            (long.as_bytes(), long.len()),
            (b"a\x7f", 1),
        ];
        for (bytes, want) in cases {
            assert_eq!(clean_prefix(bytes), want, "{:.20?}", String::from_utf8_lossy(bytes));
            let clean = cleaned(&bytes[..want], 7, true);
            assert_eq!(clean.as_bytes(), &bytes[..want]);
        }
    }
}
