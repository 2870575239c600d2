//! Which encoding bytes are in, or that they are no text and what they are instead.
//!
//! Invariant: an encoding is only named where writing the text back gives the same bytes. A guess
//! that does not is refused by name. Nothing here knows file names.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use memchr::memchr;

use crate::decode::DecodeError;
use crate::encode::{Encoding, Format, Legacy};

/// Magic bytes and what they announce; asked only of content that is not plain text.
const MAGIC: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xFF\xD8\xFF", "JPEG image"),
    (b"GIF87a", "GIF image"),
    (b"GIF89a", "GIF image"),
    (b"BM", "BMP image"),
    (b"II*\0", "TIFF image"),
    (b"MM\0*", "TIFF image"),
    (b"\0\0\x01\0", "icon"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"PK\x05\x06", "ZIP archive"),
    (b"\x1F\x8B", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xFD7zXZ\0", "xz data"),
    (b"\x28\xB5\x2F\xFD", "Zstandard data"),
    (b"7z\xBC\xAF\x27\x1C", "7-Zip archive"),
    (b"Rar!\x1A\x07", "RAR archive"),
    (b"\x7FELF", "ELF program"),
    (b"MZ", "Windows program"),
    (b"\xCF\xFA\xED\xFE", "Mach-O program"),
    (b"\xCE\xFA\xED\xFE", "Mach-O program"),
    (b"\xCA\xFE\xBA\xBE", "Java class or universal program"),
    (b"\0asm", "WebAssembly module"),
    (b"!<arch>\n", "static library"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"OggS", "Ogg media"),
    (b"ID3", "MP3 audio"),
    (b"fLaC", "FLAC audio"),
    (b"\x1A\x45\xDF\xA3", "Matroska media"),
    (b"wOFF", "web font"),
    (b"wOF2", "web font"),
    (b"OTTO", "OpenType font"),
    (b"\0\x01\0\0\0", "TrueType font"),
];

/// Bytes that detection of a legacy encoding looks at, from the first that is not ASCII.
const GUESS_WINDOW: usize = 1 << 20;

/// Finds the format of a whole text.
///
/// # Errors
/// See [`DecodeError`].
pub(crate) fn detect(bytes: &[u8]) -> Result<Format, DecodeError> {
    if let Some(format) = marked(bytes)? {
        return Ok(format);
    }
    let nul = memchr(0, bytes);
    if nul.is_none() && std::str::from_utf8(bytes).is_ok() {
        return Ok(Format::UTF8);
    }
    if let Some(offset) = nul {
        return match unmarked_utf16(bytes) {
            Some(encoding) => Ok(Format { encoding, bom: false }),
            None => Err(DecodeError::Binary { kind: kind(bytes), offset }),
        };
    }
    if let Some(offset) = control(bytes) {
        return Err(DecodeError::Binary { kind: kind(bytes), offset });
    }
    if mostly_utf8(bytes) {
        return Ok(Format { encoding: Encoding::DamagedUtf8, bom: false });
    }
    legacy(bytes)
}

/// Finds the format of a text of which only the beginning is at hand, for reading, not for writing.
///
/// # Errors
/// See [`DecodeError`].
pub(crate) fn detect_prefix(bytes: &[u8]) -> Result<Format, DecodeError> {
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ if memchr(0, bytes).is_some() => bytes.len() & !1,
        _ => bytes.len(),
    };
    // The sample may end inside a character: then a few bytes less are whole.
    let less = (1..4).filter(|less| whole > 4 + less);
    detect(&bytes[..whole]).or_else(|error| {
        let mut sooner = less.map(|less| detect(&bytes[..whole - less]));
        sooner.find_map(Result::ok).ok_or(error)
    })
}

fn marked(bytes: &[u8]) -> Result<Option<Format>, DecodeError> {
    if bytes.starts_with(b"\xFF\xFE\0\0") || bytes.starts_with(b"\0\0\xFE\xFF") {
        return Err(DecodeError::Undecodable { guess: "UTF-32", reason: "UTF-32 is not taken" });
    }
    if let Some(rest) = bytes.strip_prefix(Encoding::Utf8.mark()) {
        if let Some(offset) = memchr(0, rest) {
            return Err(DecodeError::Binary { kind: kind(bytes), offset: offset + 3 });
        }
        let sound = std::str::from_utf8(rest).is_ok();
        let encoding = if sound { Encoding::Utf8 } else { Encoding::DamagedUtf8 };
        return Ok(Some(Format { encoding, bom: true }));
    }
    for encoding in [Encoding::Utf16Le, Encoding::Utf16Be] {
        let Some(rest) = bytes.strip_prefix(encoding.mark()) else { continue };
        let Some(traits) = utf16_traits(rest, encoding) else {
            return Err(DecodeError::Undecodable {
                guess: encoding.name(),
                reason: "the byte order mark says so, but the rest has a lone surrogate or half \
                         a character",
            });
        };
        if traits.controls > 0 {
            return Err(DecodeError::Binary { kind: kind(bytes), offset: 2 });
        }
        return Ok(Some(Format { encoding, bom: true }));
    }
    Ok(None)
}

/// What the characters of a text in UTF-16 are like.
struct Traits {
    characters: usize,
    plain: usize,
    controls: usize,
}

fn utf16_traits(bytes: &[u8], encoding: Encoding) -> Option<Traits> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let mut traits = Traits { characters: 0, plain: 0, controls: 0 };
    for unit in char::decode_utf16(units(bytes, encoding)) {
        let character = unit.ok()?;
        traits.characters += 1;
        match character {
            '\t' | '\n' | '\r' | ' '..='~' => traits.plain += 1,
            '\u{c}' | '\u{1b}' => {}
            '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{fffc}' | '\u{fffe}' | '\u{ffff}' => {
                traits.controls += 1;
            }
            _ if character.is_control() => traits.controls += 1,
            _ => {}
        }
    }
    Some(traits)
}

/// The 16-bit units of bytes in UTF-16.
pub(crate) fn units(bytes: &[u8], encoding: Encoding) -> impl Iterator<Item = u16> + '_ {
    let big = encoding == Encoding::Utf16Be;
    bytes.chunks_exact(2).map(move |pair| {
        if big {
            u16::from_be_bytes([pair[0], pair[1]])
        } else {
            u16::from_le_bytes([pair[0], pair[1]])
        }
    })
}

/// UTF-16 without a mark: no control characters, and one character in twenty is plain ASCII, in
/// short texts more than half.
fn unmarked_utf16(bytes: &[u8]) -> Option<Encoding> {
    if bytes.len() < 4 {
        return None;
    }
    let plain = |encoding| {
        utf16_traits(bytes, encoding)
            .filter(|traits| traits.controls == 0)
            .filter(|traits| {
                let share = if traits.characters < 32 { 2 } else { 20 };
                traits.plain * share > traits.characters
            })
            .map_or(0, |traits| traits.plain)
    };
    let (little, big) = (plain(Encoding::Utf16Le), plain(Encoding::Utf16Be));
    match little.cmp(&big) {
        std::cmp::Ordering::Greater => Some(Encoding::Utf16Le),
        std::cmp::Ordering::Less => Some(Encoding::Utf16Be),
        std::cmp::Ordering::Equal => None,
    }
}

/// The first control character that no text has.
fn control(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| matches!(byte, 0..=0x07 | 0x0E..=0x1A | 0x1C..=0x1F | 0x7F))
}

/// UTF-8 with few invalid places: four sound characters of several bytes for each.
fn mostly_utf8(bytes: &[u8]) -> bool {
    let (mut sound, mut broken) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        // Bytes 0xC0 and above start a character of several bytes.
        sound += chunk.valid().bytes().filter(|byte| *byte >= 0xC0).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    sound >= broken * 4
}

fn legacy(bytes: &[u8]) -> Result<Format, DecodeError> {
    if bytes.starts_with(b"%PDF-") {
        return Err(DecodeError::Binary { kind: kind(bytes), offset: 0 });
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let first = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    let from = first.saturating_sub(1024);
    let window = &bytes[from..bytes.len().min(first.saturating_add(GUESS_WINDOW))];
    detector.feed(window, from + window.len() == bytes.len());
    let guess = detector.guess(None, Utf8Detection::Deny);
    let refused = |reason| Err(DecodeError::Undecodable { guess: guess.name(), reason });
    if !guess.is_ascii_compatible() || guess == encoding_rs::REPLACEMENT {
        return refused("no encoding that can be written back");
    }
    let Some(text) = guess.decode_without_bom_handling_and_without_replacement(bytes) else {
        return refused("some bytes are not valid in it");
    };
    let high = text.chars().filter(|character| matches!(character, '\u{80}'..='\u{9f}')).count();
    if high * 20 > text.chars().count() {
        return Err(DecodeError::Binary { kind: kind(bytes), offset: first });
    }
    if !crate::encode::encodes_to(&text, Legacy(guess), bytes) {
        return refused("writing it back would change bytes that nobody edited");
    }
    Ok(Format { encoding: Encoding::Legacy(Legacy(guess)), bom: false })
}

/// Names what binary content is.
pub(crate) fn kind(bytes: &[u8]) -> &'static str {
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return "WebP image";
    }
    if bytes.get(4..8) == Some(b"ftyp") {
        return "MP4 media";
    }
    MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map_or("binary data", |(_, name)| name)
}
