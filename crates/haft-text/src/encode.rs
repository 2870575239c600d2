//! Encodings and the way back from text to bytes.
//!
//! Invariant: encoding is stateless, so the bytes of two texts one after the other are the bytes of
//! the joined text; stateful encodings are never offered. Which encoding a file has is the
//! business of `detect`.

use std::borrow::Cow;

use encoding_rs::EncoderResult;
use thiserror::Error;

use crate::lines;
use crate::names;

/// A legacy encoding of the WHATWG Encoding Standard, found by detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Legacy(pub(crate) &'static encoding_rs::Encoding);

/// How text is written as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-8 with some invalid bytes, which show as U+FFFD and are kept as they are.
    DamagedUtf8,
    /// UTF-16, low byte first.
    Utf16Le,
    /// UTF-16, high byte first.
    Utf16Be,
    /// A legacy encoding.
    Legacy(Legacy),
}

impl Encoding {
    /// Gives the encoding's name, as `UTF-16LE` or `Shift_JIS`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::DamagedUtf8 => "UTF-8 with invalid bytes",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Legacy(legacy) => legacy.0.name(),
        }
    }

    /// Gives the byte order mark that announces this encoding; empty for legacy ones.
    pub const fn mark(self) -> &'static [u8] {
        match self {
            Self::Utf8 | Self::DamagedUtf8 => b"\xEF\xBB\xBF",
            Self::Utf16Le => b"\xFF\xFE",
            Self::Utf16Be => b"\xFE\xFF",
            Self::Legacy(_) => b"",
        }
    }

    /// Whether this is UTF-16, in either order of bytes.
    pub(crate) const fn is_utf16(self) -> bool {
        matches!(self, Self::Utf16Le | Self::Utf16Be)
    }

    pub(crate) fn whatwg(self) -> &'static encoding_rs::Encoding {
        match self {
            Self::Utf8 | Self::DamagedUtf8 => encoding_rs::UTF_8,
            Self::Utf16Le => encoding_rs::UTF_16LE,
            Self::Utf16Be => encoding_rs::UTF_16BE,
            Self::Legacy(legacy) => legacy.0,
        }
    }
}

/// An encoding and whether a byte order mark comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The encoding.
    pub encoding: Encoding,
    /// Whether the bytes start with the encoding's byte order mark.
    pub bom: bool,
}

impl Format {
    /// Plain UTF-8 without a byte order mark.
    pub const UTF8: Self = Self { encoding: Encoding::Utf8, bom: false };

    /// Gives the number of bytes that the byte order mark takes.
    pub fn mark_len(self) -> usize {
        if self.bom { self.encoding.mark().len() } else { 0 }
    }
}

/// A character that the encoding cannot write.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{} in line {line} of the text cannot be written in {encoding}, the encoding of the file. Use \
     a character that {encoding} has, or convert the file to UTF-8 first.",
    names::describe(*character)
)]
pub struct EncodeError {
    /// The character.
    pub character: char,
    /// Its line in the given text, from 1.
    pub line: usize,
    /// Name of the encoding.
    pub encoding: &'static str,
}

/// Writes text as bytes; UTF-8 without a mark is not copied.
///
/// # Errors
/// The first character that the encoding does not have, with its line.
pub fn encode(text: &str, format: Format) -> Result<Cow<'_, [u8]>, EncodeError> {
    if format == Format::UTF8 {
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    let mut out = Vec::with_capacity(format.mark_len() + text.len());
    if format.bom {
        out.extend_from_slice(format.encoding.mark());
    }
    encode_into(text, format.encoding, &mut out)?;
    Ok(Cow::Owned(out))
}

/// Appends the bytes of a text, without a mark.
pub(crate) fn encode_into(
    text: &str,
    encoding: Encoding,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    match encoding {
        Encoding::Utf8 | Encoding::DamagedUtf8 => out.extend_from_slice(text.as_bytes()),
        Encoding::Utf16Le => out.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
        Encoding::Utf16Be => out.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
        Encoding::Legacy(legacy) => {
            each_chunk(text, legacy, |bytes| out.extend_from_slice(bytes))?;
        }
    }
    Ok(())
}

/// Counts the bytes that a text takes; text that cannot be written counts up to there.
pub(crate) fn encoded_len(text: &str, encoding: Encoding) -> usize {
    match encoding {
        Encoding::Utf8 | Encoding::DamagedUtf8 => text.len(),
        Encoding::Utf16Le | Encoding::Utf16Be => text.encode_utf16().count() * 2,
        Encoding::Legacy(legacy) => {
            let mut len = 0;
            // The text came out of this encoding, so that every character can be written.
            let _ = each_chunk(text, legacy, |bytes| len += bytes.len());
            len
        }
    }
}

/// Compares the bytes that a text would take with given ones, without building them.
pub(crate) fn encodes_to(text: &str, legacy: Legacy, bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let mut same = true;
    let done = each_chunk(text, legacy, |chunk| match rest.split_at_checked(chunk.len()) {
        Some((head, tail)) if head == chunk => rest = tail,
        _ => same = false,
    });
    done.is_ok() && same && rest.is_empty()
}

fn each_chunk(text: &str, legacy: Legacy, mut take: impl FnMut(&[u8])) -> Result<(), EncodeError> {
    let mut encoder = legacy.0.new_encoder();
    let mut buffer = [0_u8; 4096];
    let mut at = 0;
    loop {
        let (result, read, written) =
            encoder.encode_from_utf8_without_replacement(&text[at..], &mut buffer, true);
        take(&buffer[..written]);
        at += read;
        match result {
            EncoderResult::InputEmpty => return Ok(()),
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(character) => {
                return Err(EncodeError {
                    character,
                    line: lines::number_at(text.as_bytes(), at.saturating_sub(1), false),
                    encoding: legacy.0.name(),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unmappable_character_is_named_with_its_line() {
        let format =
            Format { encoding: Encoding::Legacy(Legacy(encoding_rs::WINDOWS_1252)), bom: false };
        let error = encode("caf\u{e9}\nsnow \u{2603}\n", format).unwrap_err();
        assert_eq!((error.character, error.line), ('\u{2603}', 2));
        assert!(error.to_string().contains("windows-1252"), "{error}");
        assert!(error.to_string().contains("U+2603"), "{error}");
    }

    #[test]
    fn marks_come_first() {
        let format = Format { encoding: Encoding::Utf16Be, bom: true };
        assert_eq!(&*encode("a", format).unwrap(), b"\xFE\xFF\0a");
        assert_eq!(&*encode("a", Format::UTF8).unwrap(), b"a");
    }
}
