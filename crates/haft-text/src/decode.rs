//! Bytes to text, with everything noted that is needed to give the same bytes back.
//!
//! Invariant: `encode(decoded.text, decoded.format)` is the original wherever there are no holes;
//! bytes of UTF-8 and UTF-16 that are no text have no character; there, and in edits, offsets map
//! back to bytes of the original. UTF-8 is never copied. Nothing here knows where the bytes come from.

use std::borrow::Cow;
use std::cell::OnceCell;

use thiserror::Error;

use crate::detect;
use crate::encode::{self, Encoding, Format};
use crate::lines::LineEnds;

/// Why bytes are not taken as text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// No text at all.
    #[error("The file is not text but {kind} (first byte that no text has: at offset {offset}).")]
    Binary {
        /// What it is, as `PNG image`; `binary data` where nothing is known.
        kind: &'static str,
        /// Byte offset, from 0, of the first sign that it is no text.
        offset: usize,
    },
    /// Text in UTF-32, which is neither read nor written.
    #[error(
        "The file is text in UTF-32, which is neither read nor written here. Convert it with a \
         command first: iconv -f {encoding} -t UTF-8 FILE > NEW."
    )]
    Utf32 {
        /// What converters call it: with its order of bytes, unless a mark tells that.
        encoding: &'static str,
    },
    /// Text perhaps, but in no encoding that gives the same bytes back.
    #[error(
        "The encoding of the file could not be told: the best guess is {guess}, but {reason}. \
         Convert the file to UTF-8 first."
    )]
    Undecodable {
        /// The nearest encoding.
        guess: &'static str,
        /// What speaks against it.
        reason: &'static str,
    },
}

/// A place of bytes that are no text, in UTF-8 and in UTF-16 with a byte order mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// Where its U+FFFD stands in the text, in bytes.
    pub at: usize,
    /// How many bytes of the original it stands for, 1 to 3.
    pub len: usize,
}

/// Decoded text beside its bytes.
#[derive(Clone, Debug)]
pub struct Decoded<'a> {
    bytes: &'a [u8],
    text: Cow<'a, str>,
    format: Format,
    ends: LineEnds,
    holes: Vec<Hole>,
    hash: OnceCell<String>,
}

/// Decodes a whole file; line ends stay in the text as they are, a byte order mark does not.
///
/// # Errors
/// Binary content, by kind, and text in no encoding that gives the same bytes back.
pub fn decode(bytes: &[u8]) -> Result<Decoded<'_>, DecodeError> {
    let format = detect::detect(bytes)?;
    let body = &bytes[format.mark_len()..];
    let mut holes = Vec::new();
    let text = match format.encoding {
        Encoding::Utf8 => match std::str::from_utf8(body) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(patched(body, &mut holes)),
        },
        Encoding::DamagedUtf8 => Cow::Owned(patched(body, &mut holes)),
        Encoding::Utf16Le | Encoding::Utf16Be => {
            Cow::Owned(joined(body, format.encoding, &mut holes))
        }
        Encoding::Legacy(legacy) => legacy.0.decode_without_bom_handling(body).0,
    };
    let ends = LineEnds::scan(text.as_bytes());
    Ok(Decoded { bytes, text, format, ends, holes, hash: OnceCell::new() })
}

/// Finds the format of a file from its first bytes (64 KiB are plenty), for reading in pieces.
///
/// `whole` says that these bytes are all of the file; then the answer is that of [`decode`]. Else
/// they may end inside a character.
///
/// # Errors
/// Binary content, by kind, and text in no encoding that is known.
pub fn detect_prefix(bytes: &[u8], whole: bool) -> Result<Format, DecodeError> {
    if whole { detect::detect(bytes) } else { detect::detect_cut(bytes) }
}

/// Names what binary content is by its first bytes, as `PNG image`, else `binary data`.
pub fn binary_kind(bytes: &[u8]) -> &'static str {
    detect::utf32(bytes).map_or_else(|| detect::kind(bytes), |_| "text in UTF-32")
}

fn patched(bytes: &[u8], holes: &mut Vec<Hole>) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            holes.push(Hole { at: text.len(), len: chunk.invalid().len() });
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

fn joined(bytes: &[u8], encoding: Encoding, holes: &mut Vec<Hole>) -> String {
    let mut text = String::with_capacity(bytes.len());
    for unit in char::decode_utf16(detect::units(bytes, encoding)) {
        if unit.is_err() {
            holes.push(Hole { at: text.len(), len: 2 });
        }
        text.push(unit.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    if !bytes.len().is_multiple_of(2) {
        holes.push(Hole { at: text.len(), len: 1 });
        text.push(char::REPLACEMENT_CHARACTER);
    }
    text
}

impl<'a> Decoded<'a> {
    /// Gives the text, with its line ends and without a byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Gives the bytes that were decoded.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Gives encoding and byte order mark.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Gives the counts of the text's line ends.
    pub const fn line_ends(&self) -> LineEnds {
        self.ends
    }

    /// Gives the places of bytes that are no text, in order.
    pub fn holes(&self) -> &[Hole] {
        &self.holes
    }

    /// Gives the BLAKE3 hash of the bytes as 64 hexadecimal digits, computed once.
    pub fn hash(&self) -> &str {
        self.hash.get_or_init(|| blake3::hash(self.bytes).to_hex().to_string())
    }

    /// Takes a hash that the caller has already computed over these very bytes.
    #[must_use]
    pub fn with_hash(self, hash: String) -> Self {
        Self { hash: OnceCell::from(hash), ..self }
    }

    /// Maps sorted offsets of the text to offsets of the original bytes, in one pass.
    pub(crate) fn byte_offsets(&self, sorted: &[usize]) -> Vec<usize> {
        let mut done = (0, self.format.mark_len());
        let mark = encode::encoded_len("\u{FFFD}", self.format.encoding);
        let mut holes = self.holes.iter().peekable();
        sorted
            .iter()
            .map(|&offset| {
                let part = self.text.get(done.0..offset).unwrap_or_default();
                let mut byte = done.1 + encode::encoded_len(part, self.format.encoding);
                while let Some(hole) = holes.next_if(|hole| hole.at < offset) {
                    byte = byte - mark + hole.len;
                }
                done = (offset, byte);
                byte
            })
            .collect()
    }
}

/// Decodes a stream piece by piece; characters split between pieces are put together, invalid bytes
/// become U+FFFD, so that the result is for showing and never for writing back.
pub struct StreamDecoder {
    inner: encoding_rs::Decoder,
    /// The first half of a unit of UTF-16, kept back: at its end the decoder makes one U+FFFD of a
    /// lone surrogate and half a unit after it, [`decode`] one of each.
    half: Option<u8>,
    /// A part of a character of UTF-8 at the end of what came.
    part: Vec<u8>,
}

impl StreamDecoder {
    /// Starts a stream in an encoding; a byte order mark at its beginning is the caller's to skip.
    pub fn new(encoding: Encoding) -> Self {
        Self {
            inner: encoding.whatwg().new_decoder_without_bom_handling(),
            half: None,
            part: Vec::new(),
        }
    }

    /// Appends the text of the next piece.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut String) {
        if self.inner.encoding() == encoding_rs::UTF_8 {
            return self.push_utf8(bytes, out);
        }
        if self.is_utf16() {
            if let (Some(half), [first, rest @ ..]) = (self.half, bytes) {
                self.half = None;
                self.run(&[half, *first], out, false);
                bytes = rest;
            }
            if !bytes.len().is_multiple_of(2)
                && let [whole @ .., last] = bytes
            {
                self.half = Some(*last);
                bytes = whole;
            }
        }
        self.run(bytes, out, false);
    }

    /// Ends the stream: a lone surrogate, and what is left of a split character, become U+FFFD each.
    pub fn finish(mut self, out: &mut String) {
        self.run(&[], out, true);
        if self.half.is_some() || !self.part.is_empty() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// What is no text has a mistake at every other byte, at which the other decoders begin anew.
    fn push_utf8(&mut self, mut bytes: &[u8], out: &mut String) {
        if !self.part.is_empty() {
            // With three bytes more it is known what any part of a character becomes.
            let more = bytes.len().min(3);
            let mut both = std::mem::take(&mut self.part);
            both.extend_from_slice(&bytes[..more]);
            let left = utf8(&both, out);
            if left > more {
                both.drain(..both.len() - left);
                self.part = both;
                return;
            }
            bytes = &bytes[more - left..];
        }
        out.reserve(bytes.len());
        let left = utf8(bytes, out);
        self.part.extend_from_slice(&bytes[bytes.len() - left..]);
    }

    fn is_utf16(&self) -> bool {
        [encoding_rs::UTF_16LE, encoding_rs::UTF_16BE].contains(&self.inner.encoding())
    }

    fn run(&mut self, mut bytes: &[u8], out: &mut String, last: bool) {
        loop {
            out.reserve(bytes.len().max(16));
            let (result, read, _) = self.inner.decode_to_string(bytes, out, last);
            bytes = &bytes[read..];
            if matches!(result, encoding_rs::CoderResult::InputEmpty) {
                return;
            }
        }
    }
}

/// Appends the text of UTF-8; how many bytes at the end may be a part of a character.
fn utf8(bytes: &[u8], out: &mut String) -> usize {
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        let wrong = chunk.invalid();
        at += chunk.valid().len() + wrong.len();
        if wrong.is_empty() {
            continue;
        }
        let is_part = || str::from_utf8(wrong).is_err_and(|error| error.error_len().is_none());
        if at == bytes.len() && is_part() {
            return wrong.len();
        }
        out.push(char::REPLACEMENT_CHARACTER);
    }
    0
}

impl std::fmt::Debug for StreamDecoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let encoding = self.inner.encoding();
        formatter.debug_struct("StreamDecoder").field("encoding", &encoding).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(bytes: &[u8]) -> String {
        match decode(bytes) {
            Ok(decoded) => {
                let back = encode::encode(decoded.text(), decoded.format()).unwrap();
                assert_eq!(&*back, bytes);
                let mark = if decoded.format().bom { " BOM" } else { "" };
                format!("{}{mark}", decoded.format().encoding.name())
            }
            Err(DecodeError::Binary { kind, .. }) => kind.to_owned(),
            Err(DecodeError::Undecodable { guess, .. }) => format!("no {guess}"),
            Err(DecodeError::Utf32 { encoding }) => encoding.to_owned(),
        }
    }

    #[test]
    fn formats_are_told_and_round_trip() {
        let sjis = encoding_rs::SHIFT_JIS.encode("これは日本語の文章です。\n設定を変更する\n").0;
        let latin = encoding_rs::WINDOWS_1252.encode("Le café où l’été s’étire à loisir\n").0;
        let cases: &[(&[u8], &str)] = &[
            (b"", "UTF-8"),
            (b"plain\n", "UTF-8"),
            ("日本\r\n".as_bytes(), "UTF-8"),
            (b"\xEF\xBB\xBFa", "UTF-8 BOM"),
            (b"\xFF\xFEa\0\n\0", "UTF-16LE BOM"),
            (b"\xFE\xFF\0a\0\n", "UTF-16BE BOM"),
            (b"a\0b\0\n\0", "UTF-16LE"),
            (b"\0a\0b\0\n", "UTF-16BE"),
            (&sjis, "Shift_JIS"),
            (&latin, "windows-1252"),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "PNG image"),
            (b"GIF is a word, not an image\n", "UTF-8"),
            (b"a\0\x01\x02", "binary data"),
            (b"\xFF\xFEa", "no UTF-16LE"),
            (b"\xFF\xFE\0\xD8", "no UTF-16LE"),
            (b"%PDF-1.4\n%\xE2\xE3\xCF\xD3\n", "PDF document"),
        ];
        for (bytes, want) in cases {
            assert_eq!(name(bytes), *want, "{bytes:?}");
        }
    }

    #[test]
    fn damaged_utf8_maps_back_to_its_bytes() {
        let bytes = b"\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9 \xFF x\n";
        let decoded = decode(bytes).unwrap();
        assert_eq!(decoded.format().encoding, Encoding::DamagedUtf8);
        assert_eq!(decoded.text(), "éééé \u{FFFD} x\n");
        let x = decoded.text().find('x').unwrap();
        assert_eq!(decoded.byte_offsets(&[0, x, decoded.text().len()]), [0, 11, bytes.len()]);
    }

    #[test]
    fn damaged_utf16_maps_back_to_its_bytes() {
        let mut bytes = b"\xFF\xFE".to_vec();
        let text = "a text that is long enough for some damage ";
        bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        bytes.extend(b"\0\xD8x\0\n\0y");
        let decoded = decode(&bytes).unwrap();
        assert_eq!(decoded.text(), format!("{text}\u{FFFD}x\n\u{FFFD}"));
        let x = text.len() + 3;
        let end = bytes.len();
        assert_eq!(decoded.byte_offsets(&[text.len(), x, x + 2, x + 5]), [88, 90, 94, end]);
    }

    #[test]
    fn split_characters_are_joined() {
        for step in 1..5 {
            let mut decoder = StreamDecoder::new(Encoding::Utf8);
            let mut out = String::new();
            for piece in "a日\u{1F600}b".as_bytes().chunks(step) {
                decoder.push(piece, &mut out);
            }
            decoder.push(b"\xE6\x97", &mut out);
            decoder.finish(&mut out);
            assert_eq!(out, "a日\u{1F600}b\u{FFFD}");
        }
    }

    #[test]
    fn damaged_utf16_is_the_same_in_pieces_and_at_once() {
        const KINDS: [&str; 5] = ["x", "\n", "high", "low", "\u{1F600}"];
        let unit = |kind: &str| match kind {
            "high" => vec![0xD8D8],
            "low" => vec![0xDCDC],
            text => text.encode_utf16().collect(),
        };
        for (encoding, odd) in [Encoding::Utf16Le, Encoding::Utf16Be]
            .into_iter()
            .flat_map(|encoding| [&b""[..], b" ", b"\xD8"].map(|odd| (encoding, odd)))
        {
            for number in 0..KINDS.len().pow(4) {
                let kinds = (0..4).map(|at| KINDS[number / KINDS.len().pow(at) % KINDS.len()]);
                let units: Vec<u16> = kinds.flat_map(unit).collect();
                let mut bytes: Vec<u8> = match encoding {
                    Encoding::Utf16Be => units.into_iter().flat_map(u16::to_be_bytes).collect(),
                    _ => units.into_iter().flat_map(u16::to_le_bytes).collect(),
                };
                bytes.extend_from_slice(odd);
                let at_once = joined(&bytes, encoding, &mut Vec::new());
                for step in 1..=5 {
                    let mut decoder = StreamDecoder::new(encoding);
                    let mut out = String::new();
                    for piece in bytes.chunks(step) {
                        decoder.push(piece, &mut out);
                        decoder.push(b"", &mut out);
                    }
                    decoder.finish(&mut out);
                    assert_eq!(out, at_once, "{encoding:?} {bytes:x?} by {step}");
                }
            }
        }
    }

    #[test]
    fn a_sample_may_end_inside_a_character() {
        let text = "日本語".repeat(100);
        for cut in 280..300 {
            assert_eq!(detect_prefix(&text.as_bytes()[..cut], false), Ok(Format::UTF8), "{cut}");
        }
        let text = "日本語のテキスト。\u{20BB7}野屋、\u{1F600}です。\n".repeat(20);
        let mut wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for cut in 200..300 {
            let found = detect_prefix(&wide[..cut], false).map(|format| format.encoding);
            assert_eq!(found, Ok(Encoding::Utf16Le), "{cut}");
        }
        wide.splice(0..0, *b"\xFF\xFE");
        for cut in 200..300 {
            let found = detect_prefix(&wide[..cut], false).map(|format| format.encoding);
            assert_eq!(found, Ok(Encoding::Utf16Le), "{cut}");
        }
        for name in [&b"Shift_JIS"[..], b"EUC-JP", b"gb18030", b"Big5", b"EUC-KR"] {
            let encoding = encoding_rs::Encoding::for_label(name).unwrap();
            let text = match name {
                b"gb18030" => "这是中文的文章。\n更改设置内容\n测试一下㐀\n",
                b"Big5" => "這是中文的文章，請更改設定內容。\n",
                b"EUC-KR" => "이것은 한국어 문장입니다. 설정을 변경합니다.\n",
                _ => "これは日本語の文章です。\n設定を変更する\n",
            };
            let bytes = encoding.encode(&text.repeat(40)).0.into_owned();
            for cut in 400..420 {
                let found = detect_prefix(&bytes[..cut], false).map(|format| format.encoding);
                let found = found.map(Encoding::name);
                assert!(found.as_ref().is_ok_and(|found| encoding.name() == *found), "{found:?}");
            }
        }
    }

    #[test]
    fn nothing_is_cut_off_a_whole_file() {
        let cases: &[&[u8]] = &[
            b"\x89PNG\r\n\x1a\n",
            b"\xff\xd8\xff",
            b"plain text\0",
            b"abcdefgh\x01\x02\xff\0",
            b"one line of text\n and \xE6\x97",
            b"a\0b\0c",
        ];
        for bytes in cases {
            let whole = decode(bytes).map(|decoded| decoded.format());
            assert_eq!(detect_prefix(bytes, true), whole, "{bytes:?}");
        }
        // Of a sample only half a character is left out, never what no text has.
        for bytes in [&b"plain text\0"[..], b"some more text \x01\x02\xff\0"] {
            let found = detect_prefix(bytes, false);
            assert!(matches!(found, Err(DecodeError::Binary { .. })), "{found:?}");
        }
    }

    #[test]
    fn characters_of_four_bytes_are_gb18030() {
        let text = "这是中文的文章。\n更改设置内容\n测试一下㐀\n".repeat(3);
        let bytes = encoding_rs::GB18030.encode(&text).0;
        assert_eq!(name(&bytes), "gb18030");
        let plain = encoding_rs::GBK.encode("这是中文的文章。\n更改设置内容\n").0;
        assert_eq!(name(&plain), "GBK");
    }
}
