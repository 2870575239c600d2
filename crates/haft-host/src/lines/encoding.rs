//! Searches files whose bytes need decoding first: UTF-16 without a byte order mark, and legacy
//! encodings.
//!
//! A first pass searches the raw bytes. If it meets something that depends on the encoding, it ends
//! with a [`Doubt`]. The search is then [settled](Grep::settled) with some bytes of the file, and
//! goes through the file again.
//!
//! **Invariant:** a file is searched in the encoding in which the read tool shows it. This module
//! reads no file itself.

use std::{
    cell::Cell,
    io::{self, Read},
};

use haft_text::{
    DecodeError, Encoding, Format, StreamDecoder,
    decode::{self, detect_prefix},
};
use memchr::memchr;

use super::{FileResult, Grep};

/// Bytes of a file that tell whether it is UTF-16 without a mark.
pub(crate) const HEAD: usize = 64 << 10;
/// Longest file in a legacy encoding in which characters outside ASCII are searched, in bytes.
pub(crate) const WHOLE: usize = 8 << 20;
/// Bytes of a longer one by which its lines are shown, and how many of them are before the first
/// that is no UTF-8; as read has it.
const WINDOW: usize = 1 << 20;
const BEFORE: usize = 1024;

/// Why the encoding of a file has to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// It has a NUL, as UTF-16 has.
    Nul,
    /// It is no UTF-8, and the pattern names characters outside ASCII.
    Foreign,
    /// A line that is shown is no UTF-8.
    Shown,
}

/// How the bytes of a file are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reading {
    /// As they are, until there is a doubt.
    #[default]
    Open,
    /// As they are.
    Bytes,
    /// As they are, so that characters outside ASCII are not met.
    Unread,
    /// In this encoding.
    Decoded(Encoding),
    /// As they are, and shown in this encoding.
    Shown(Encoding),
}

impl Reading {
    /// By the first bytes of a file, at most one more than [`WHOLE`]; none where more are needed.
    fn of(doubt: Doubt, bytes: &[u8], all: bool) -> Option<Self> {
        let head = &bytes[..bytes.len().min(HEAD)];
        let utf16 =
            |format: Format| matches!(format.encoding, Encoding::Utf16Le | Encoding::Utf16Be);
        if memchr(0, head).is_some() {
            let format = detect_prefix(head, all && head.len() == bytes.len()).ok();
            let bare = format.filter(|format| utf16(*format) && !format.bom);
            return Some(bare.map_or(Self::Bytes, |format| Self::Decoded(format.encoding)));
        }
        if doubt == Doubt::Nul {
            return Some(Self::Bytes);
        }
        if !all && bytes.len() <= WHOLE {
            return None;
        }
        let format = if all { detect_prefix(bytes, true) } else { detect_window(bytes) };
        Some(match (format, doubt) {
            (Ok(format), _) if utf16(format) && !format.bom => Self::Decoded(format.encoding),
            (Ok(Format { encoding: encoding @ Encoding::Legacy(_), .. }), Doubt::Shown) => {
                Self::Shown(encoding)
            }
            (Ok(Format { encoding: encoding @ Encoding::Legacy(_), .. }), _) if all => {
                Self::Decoded(encoding)
            }
            (Ok(Format { encoding: Encoding::Legacy(_), .. }), _) => Self::Unread,
            (Err(DecodeError::Utf32 { .. } | DecodeError::Undecodable { .. }), Doubt::Foreign) => {
                Self::Unread
            }
            _ => Self::Bytes,
        })
    }

    /// What the searcher makes UTF-8 of.
    pub(super) fn decoded(self) -> Option<grep_searcher::Encoding> {
        let Self::Decoded(encoding) = self else { return None };
        grep_searcher::Encoding::new(encoding.name()).ok()
    }
}

/// The format of a big file around its first byte that is no UTF-8.
fn detect_window(bytes: &[u8]) -> Result<Format, DecodeError> {
    let odd = str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    let window = &bytes[odd.saturating_sub(BEFORE)..bytes.len().min(odd + WINDOW)];
    let inside = window.iter().take_while(|byte| matches!(byte, 0x80..=0xBF)).count();
    decode::detect_prefix(&window[if odd > BEFORE { inside.min(3) } else { 0 }..], false)
}

impl Grep {
    /// The same search for a file of which these are the first bytes, `all` where there are no
    /// others; none where it takes [`WHOLE`] of them and one more to tell.
    pub(crate) fn settled(&self, doubt: Doubt, bytes: &[u8], all: bool) -> Option<Self> {
        Some(Self { reading: Reading::of(doubt, bytes, all)?, ..self.clone() })
    }

    /// The search that has to go through a file again, where this one did not suffice. `look` gives
    /// at most so many of its first bytes.
    pub(crate) fn again(
        &self,
        result: &FileResult,
        mut look: impl FnMut(usize) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        if result.tight {
            return Some(self.narrow());
        }
        let doubt = result.doubt?;
        let settled = [HEAD, WHOLE + 1].into_iter().find_map(|most| {
            let bytes = look(most)?;
            self.settled(doubt, &bytes, bytes.len() < most)
        });
        Some(settled.unwrap_or_else(|| Self { reading: Reading::Bytes, ..self.clone() }))
    }
}

/// A line in a legacy encoding as text, and where the spans came to lie.
pub(super) fn as_text(
    line: &[u8],
    spans: &[(usize, usize)],
    encoding: Encoding,
) -> (String, Vec<(usize, usize)>) {
    let mut edges: Vec<(usize, usize)> = Vec::with_capacity(spans.len() * 2);
    for (index, span) in spans.iter().enumerate() {
        edges.extend([(span.0, index * 2), (span.1, index * 2 + 1)]);
    }
    edges.sort_unstable();
    let mut placed = vec![0; edges.len()];
    let (mut decoder, mut text, mut at) = (StreamDecoder::new(encoding), String::new(), 0);
    for (edge, index) in edges {
        let edge = edge.min(line.len());
        decoder.push(&line[at..edge], &mut text);
        (at, placed[index]) = (edge, text.len());
    }
    decoder.push(&line[at..], &mut text);
    decoder.finish(&mut text);
    // What ends inside a character has all of it.
    let whole = |start: usize| text.ceil_char_boundary((start + 1).min(text.len()));
    let spans = spans.iter().zip(placed.chunks_exact(2)).map(|(span, ends)| {
        let end = if span.0 < span.1 { ends[1].max(whole(ends[0])) } else { ends[0] };
        (ends[0], end)
    });
    let spans = spans.collect();
    (text, spans)
}

/// A reader that fails where its bytes are no UTF-8, unless a mark says that they are UTF-16.
pub(super) struct Checked<'a, R> {
    reader: R,
    /// Where it is set that they are none; none where nobody asks.
    odd: Option<&'a Cell<bool>>,
    /// A part of a character at the end of what came, or the first byte of the file.
    open: Vec<u8>,
    begun: bool,
}

impl<'a, R> Checked<'a, R> {
    pub(super) const fn new(reader: R, odd: Option<&'a Cell<bool>>) -> Self {
        Self { reader, odd, open: Vec::new(), begun: false }
    }

    /// Reports whether the next bytes go on as UTF-8 does.
    fn is_sound(&mut self, mut bytes: &[u8]) -> bool {
        if bytes.is_empty() {
            return self.open.is_empty();
        }
        if !self.open.is_empty() {
            let (part, more) = (self.open.len(), bytes.len().min(3));
            self.open.extend_from_slice(&bytes[..more]);
            if self.is_marked() {
                self.odd = None;
                return true;
            }
            let sound = match str::from_utf8(&self.open) {
                Ok(whole) => whole.len(),
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                Err(_) => return false,
            };
            if sound < part {
                return true;
            }
            bytes = &bytes[sound - part..];
            self.open.clear();
        } else if !self.begun {
            self.open.extend_from_slice(&bytes[..bytes.len().min(2)]);
            if self.is_marked() {
                self.odd = None;
                return true;
            }
            if let [0xFE | 0xFF] = *self.open {
                return true;
            }
            self.open.clear();
        }
        self.begun = true;
        match str::from_utf8(bytes) {
            Ok(_) => true,
            Err(error) if error.error_len().is_none() => {
                self.open.extend_from_slice(&bytes[error.valid_up_to()..]);
                true
            }
            Err(_) => false,
        }
    }

    fn is_marked(&self) -> bool {
        !self.begun && (self.open.starts_with(b"\xFF\xFE") || self.open.starts_with(b"\xFE\xFF"))
    }
}

impl<R: Read> Read for Checked<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        if buffer.is_empty() {
            return Ok(length);
        }
        if let Some(odd) = self.odd
            && !self.is_sound(&buffer[..length])
        {
            odd.set(true);
            return Err(io::Error::other("the file is no UTF-8"));
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports whether bytes pass, given in steps of a length.
    fn passes(bytes: &[u8], step: usize) -> bool {
        let odd = Cell::new(false);
        let mut reader = Checked::new(bytes, Some(&odd));
        let mut buffer = vec![0; step];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(_) => {
                    assert!(odd.get());
                    return false;
                }
            }
        }
    }

    #[test]
    fn whatever_the_steps_only_utf_8_passes_and_what_has_a_mark_of_utf_16() {
        let pieces: [&[u8]; 12] = [
            b"",
            b"a",
            b"ab\n",
            "é".as_bytes(),
            "中".as_bytes(),
            "\u{1F600}".as_bytes(),
            b"\xff",
            b"\xe4\xb8",
            b"\xf0\x9f\x98",
            b"\xfe",
            b"\x80",
            b"\xfe\xff",
        ];
        for first in pieces {
            for second in pieces {
                for third in pieces {
                    let bytes = [first, second, third].concat();
                    let marked = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
                    let right = marked || str::from_utf8(&bytes).is_ok();
                    for step in [1, 2, 3, 4, 5, 64] {
                        assert_eq!(passes(&bytes, step), right, "{bytes:?} in steps of {step}");
                    }
                }
            }
        }
    }
}
