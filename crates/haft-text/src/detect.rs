//! Which encoding bytes are in, or that they are no text and what they are instead.
//!
//! Invariant: an encoding is only named where writing the text back gives the same bytes. A guess
//! that does not is refused by name. Nothing here knows file names.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use memchr::memchr;

use crate::decode::DecodeError;
use crate::encode::{self, Encoding, Format, Legacy};
use crate::guess;

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
    judge(bytes, true)
}

/// `whole` is false where more may follow.
fn judge(bytes: &[u8], whole: bool) -> Result<Format, DecodeError> {
    if let Some(format) = marked(bytes)? {
        return Ok(format);
    }
    let nul = memchr(0, bytes);
    if nul.is_none() && std::str::from_utf8(bytes).is_ok() {
        return Ok(Format::UTF8);
    }
    if let Some(offset) = nul {
        return match (unmarked_utf16(bytes), utf32(bytes)) {
            (Some(encoding), _) => Ok(Format { encoding, bom: false }),
            (None, Some(encoding)) => Err(DecodeError::Utf32 { encoding }),
            (None, None) => Err(DecodeError::Binary { kind: kind(bytes), offset }),
        };
    }
    if let Some(offset) = control(bytes) {
        return Err(DecodeError::Binary { kind: kind(bytes), offset });
    }
    if mostly_utf8(bytes) {
        return Ok(Format { encoding: Encoding::DamagedUtf8, bom: false });
    }
    legacy(bytes, whole)
}

/// Finds the format of a text of which only the beginning is at hand, for reading, not for writing.
///
/// # Errors
/// See [`DecodeError`].
pub(crate) fn detect_cut(bytes: &[u8]) -> Result<Format, DecodeError> {
    let sound = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    judge(&bytes[..sound], false).or_else(|error| {
        // The sample may end inside a character: then a few bytes less are whole. Bytes that no
        // text has stay in it, but half of a pair in UTF-16 looks like those too.
        let binary = matches!(error, DecodeError::Binary { .. });
        let fits = |format: &Format| !binary || format.encoding.is_utf16();
        let shorter = |less: usize| judge(bytes.get(..sound.checked_sub(less)?)?, false).ok();
        (1..4).filter_map(shorter).find(fits).ok_or(error)
    })
}

fn marked(bytes: &[u8]) -> Result<Option<Format>, DecodeError> {
    if let Some(encoding) = marked_utf32(bytes) {
        return Err(DecodeError::Utf32 { encoding });
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
        // The mark tells; beyond it only a NUL says that it is none, as in UTF-8.
        if let Some(at) = units(rest, encoding).position(|unit| unit == 0) {
            return Err(DecodeError::Binary { kind: kind(bytes), offset: 2 + 2 * at });
        }
        let traits = utf16_traits(rest, encoding);
        // Few broken places are shown and kept as they are, as in UTF-8; one of whatever there is.
        let few = traits.broken <= usize::from(traits.characters > 0);
        if !few && traits.broken * 20 > traits.characters {
            return Err(DecodeError::Undecodable {
                guess: encoding.name(),
                reason: "after its byte order mark there are lone surrogates or half a character",
            });
        }
        // Bytes that begin like the mark by chance: no text has as many characters without meaning.
        if traits.broken > 1 && traits.controls * 20 > traits.characters {
            return Err(DecodeError::Binary { kind: kind(bytes), offset: 2 });
        }
        return Ok(Some(Format { encoding, bom: true }));
    }
    Ok(None)
}

/// What the characters of a text in UTF-16 or UTF-32 are like.
#[derive(Default)]
struct Traits {
    characters: usize,
    /// Lone surrogates, and a last byte without its other half.
    broken: usize,
    /// ASCII and the punctuation of East Asia: what every text has some of.
    plain: usize,
    controls: usize,
    /// Beyond Latin-1.
    foreign: usize,
    /// Of those, what two bytes of ASCII give, or a NUL on the wrong side of a byte.
    odd: usize,
    /// The upper byte of the foreign ones, while they have one in common.
    block: Option<u32>,
    blocks: bool,
}

fn utf16_traits(bytes: &[u8], encoding: Encoding) -> Traits {
    utf16_traits_until(bytes, encoding, |_| false)
}

/// The traits of the beginning, up to where they are enough.
fn utf16_traits_until(
    bytes: &[u8],
    encoding: Encoding,
    enough: impl Fn(&Traits) -> bool,
) -> Traits {
    let mut traits = Traits { broken: bytes.len() % 2, ..Traits::default() };
    for unit in char::decode_utf16(units(bytes, encoding)) {
        match unit {
            Ok(character) => traits.take(character),
            Err(_) => traits.broken += 1,
        }
        if enough(&traits) {
            break;
        }
    }
    traits
}

impl Traits {
    fn take(&mut self, character: char) {
        self.characters += 1;
        match character {
            '\t'
            | '\n'
            | '\r'
            | ' '..='~'
            | '\u{3000}'..='\u{3002}'
            | '\u{300c}'
            | '\u{300d}'
            | '\u{ff01}'
            | '\u{ff08}'
            | '\u{ff09}'
            | '\u{ff0c}'
            | '\u{ff1a}'
            | '\u{ff1b}'
            | '\u{ff1f}' => self.plain += 1,
            '\u{c}' | '\u{1b}' => {}
            '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{fffc}' | '\u{fffe}' | '\u{ffff}' => {
                self.controls += 1;
            }
            _ if character.is_control() => self.controls += 1,
            '\u{100}'.. => self.foreign(u32::from(character)),
            _ => {}
        }
    }

    fn foreign(&mut self, code: u32) {
        let (upper, lower) = (code >> 8, code & 0xff);
        self.foreign += 1;
        self.blocks |= self.block.is_some_and(|block| block != upper);
        self.block.get_or_insert(upper);
        let ascii = |byte: u32| (0x20..0x7f).contains(&byte) || matches!(byte, 0x09 | 0x0a | 0x0d);
        // The first are the commonest ideograph, syllable and line of a box; the others are kana and
        // what two units give together.
        let common = matches!(code, 0x4e00 | 0xac00 | 0x2500) || upper == 0x30 || upper > 0xff;
        self.odd += usize::from(!common && (lower == 0 || (ascii(upper) && ascii(lower))));
    }

    /// Reports whether this is the text of somebody, not bytes that happen to be characters.
    ///
    /// No control characters; most of what is foreign, or nearly all of everything, is none of the
    /// characters that pairs of other bytes give; and one character in twenty is plain, in short
    /// texts, above all of several scripts, more than half.
    const fn text(&self) -> bool {
        let short = self.characters < if self.blocks { 32 } else { 8 };
        let share = if short { 2 } else { 20 };
        self.broken == 0
            && self.controls == 0
            && (self.odd * 2 <= self.foreign || self.odd * 8 <= self.plain)
            && self.plain * share > self.characters
    }
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

/// UTF-16 without a mark, where that gives a text and the other order of bytes a worse one.
fn unmarked_utf16(bytes: &[u8]) -> Option<Encoding> {
    if bytes.len() < 4 {
        return None;
    }
    let plain = |encoding| {
        // Most of what is no text has such a thing among its first bytes.
        let odd = |traits: &Traits| traits.broken > 0 || traits.controls > 0;
        let traits = utf16_traits_until(bytes, encoding, odd);
        if traits.text() { traits.plain } else { 0 }
    };
    let (little, big) = (plain(Encoding::Utf16Le), plain(Encoding::Utf16Be));
    match little.cmp(&big) {
        std::cmp::Ordering::Greater => Some(Encoding::Utf16Le),
        std::cmp::Ordering::Less => Some(Encoding::Utf16Be),
        std::cmp::Ordering::Equal => None,
    }
}

/// Byte order marks of UTF-32.
const MARKS32: [&[u8]; 2] = [b"\xFF\xFE\0\0", b"\0\0\xFE\xFF"];

/// UTF-32 behind its mark, by the name under which programs look for the mark.
fn marked_utf32(bytes: &[u8]) -> Option<&'static str> {
    MARKS32.iter().any(|mark| bytes.starts_with(mark)).then_some("UTF-32")
}

/// UTF-32, by its mark or because its units give a text.
pub(crate) fn utf32(bytes: &[u8]) -> Option<&'static str> {
    let is_text = |big: bool| {
        let mut traits = Traits::default();
        // The last ones may be cut off.
        for unit in bytes.chunks_exact(4) {
            let unit = [unit[0], unit[1], unit[2], unit[3]];
            let unit = if big { u32::from_be_bytes(unit) } else { u32::from_le_bytes(unit) };
            match char::from_u32(unit).filter(|character| *character != '\0') {
                Some(character) => traits.take(character),
                None => return false,
            }
        }
        // That each unit is a character says much already.
        traits.controls == 0 && traits.plain * 20 > traits.characters
    };
    marked_utf32(bytes).or_else(|| match () {
        () if is_text(false) => Some("UTF-32LE"),
        () if is_text(true) => Some("UTF-32BE"),
        () => None,
    })
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

fn legacy(bytes: &[u8], whole: bool) -> Result<Format, DecodeError> {
    if bytes.starts_with(b"%PDF-") {
        return Err(DecodeError::Binary { kind: kind(bytes), offset: 0 });
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let first = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    let from = first.saturating_sub(1024);
    let window = &bytes[from..bytes.len().min(first.saturating_add(GUESS_WINDOW))];
    let last = whole && from + window.len() == bytes.len();
    detector.feed(window, last);
    let told = detector.guess(None, Utf8Detection::Deny);
    let read = |guess: &'static encoding_rs::Encoding| {
        guess.decode_without_bom_handling_and_without_replacement(bytes)
    };
    // What has more bytes may still be what the detector says.
    let better = guess::overruled(window, told, last);
    let guess = better.filter(|one| !whole || read(one).is_some()).unwrap_or(told);
    let refused = |reason| Err(DecodeError::Undecodable { guess: guess.name(), reason });
    if !guess.is_ascii_compatible() || guess == encoding_rs::REPLACEMENT {
        return refused("no encoding that can be written back");
    }
    let Some(text) = read(guess) else {
        return refused("some bytes are not valid in it");
    };
    let high = text.chars().filter(|character| matches!(character, '\u{80}'..='\u{9f}')).count();
    if high * 20 > text.chars().count() {
        return Err(DecodeError::Binary { kind: kind(bytes), offset: first });
    }
    // Both are read alike, but only the second one writes characters of four bytes.
    let wider = (guess == encoding_rs::GBK).then_some(encoding_rs::GB18030);
    let mut readings = [Some(guess), wider].into_iter().flatten();
    match readings.find(|one| encode::encodes_to(&text, Legacy(one), bytes)) {
        Some(encoding) => Ok(Format { encoding: Encoding::Legacy(Legacy(encoding)), bom: false }),
        None => refused("writing it back would change bytes that nobody edited"),
    }
}

/// Names what binary content is.
pub(crate) fn kind(bytes: &[u8]) -> &'static str {
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return "WebP image";
    }
    if bytes.get(4..8) == Some(b"ftyp") {
        return match bytes.get(8..12) {
            Some(b"avif" | b"avis") => "AVIF image",
            Some(b"heic" | b"heix" | b"heim" | b"heis" | b"mif1" | b"msf1") => "HEIC image",
            _ => "MP4 media",
        };
    }
    MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map_or("binary data", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &str, encoding: Encoding) -> Vec<u8> {
        let little = encoding == Encoding::Utf16Le;
        let bytes = |unit: u16| if little { unit.to_le_bytes() } else { unit.to_be_bytes() };
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn texts_in_utf_16_without_a_mark_are_told() {
        let chinese = "\u{4e00}个人在路上走，看见了一座很高的山。他想：这座山真高！\r\n";
        for text in [
            "a line\r\n",
            "key=value\nother=\u{e9}t\u{e9}\n",
            "Привет, мир\n",
            "Η γλώσσα είναι αυτή, και όχι άλλη.\n",
            "שלום עולם, זה טקסט\n",
            &"これは日本語の文章です。ひらがなとカタカナと漢字があります。\n".repeat(3),
            &chinese.repeat(4),
            &"안녕하세요 세계 가 나 다\n".repeat(4),
            "name\tвес\n1\tдва\n",
        ] {
            for encoding in [Encoding::Utf16Le, Encoding::Utf16Be] {
                let found = detect(&encoded(text, encoding));
                assert_eq!(found, Ok(Format { encoding, bom: false }), "{text}");
            }
        }
    }

    #[test]
    fn after_a_mark_only_a_nul_or_bytes_of_chance_make_binary_data_of_utf_16() {
        let line = "an ordinary line of plain text\r\n";
        for sign in ["\u{85}", "\u{7}", "\u{b}", "\u{8}", "\u{7f}", "\u{1}", "\u{1a}", "\u{e000}"] {
            for text in [format!("{line}a{sign}b\n"), format!("a{sign}\n").repeat(20), sign.into()]
            {
                for encoding in [Encoding::Utf16Le, Encoding::Utf16Be] {
                    let bytes = [encoding.mark(), &encoded(&text, encoding)].concat();
                    assert_eq!(detect(&bytes), Ok(Format { encoding, bom: true }), "{text:?}");
                    let nul = [&bytes[..], &[0, 0]].concat();
                    let told =
                        Err(DecodeError::Binary { kind: "binary data", offset: bytes.len() });
                    assert_eq!(detect(&nul), told, "{text:?}");
                    // The second half of the last character is missing, of however little.
                    let longer = [&bytes[..], b"x"].concat();
                    assert_eq!(detect(&longer), Ok(Format { encoding, bom: true }), "{text:?}");
                }
            }
        }
        let mut state = 1_u64;
        let chance: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u8::try_from(state >> 56).unwrap() | 1
        })
        .take(2_000)
        .collect();
        let bytes = [&b"\xff\xfe"[..], &chance].concat();
        assert!(matches!(detect(&bytes), Err(DecodeError::Binary { .. })), "{:?}", detect(&bytes));
    }

    #[test]
    fn one_character_of_two_plain_bytes_makes_no_binary_data() {
        let plain = "an ordinary line of plain text\r\n".repeat(30);
        for one in
            ["wait\u{2026}", "\u{2022} item", "a\u{2122}", "x \u{2020}", "漢", "日", "\u{1f600}"]
        {
            for text in [format!("{plain}{one}\n"), format!("{one}\n{plain}")] {
                for encoding in [Encoding::Utf16Le, Encoding::Utf16Be] {
                    let found = detect(&encoded(&text, encoding));
                    assert_eq!(found, Ok(Format { encoding, bom: false }), "{one}");
                }
            }
        }
        let boxes = ["name ", &"─".repeat(40), "\n│ x\n"].concat().repeat(5);
        for text in [&boxes, "wait\u{2026} for it\n", "done \u{1f600}\u{1f600}\u{1f44d}\n"] {
            for encoding in [Encoding::Utf16Le, Encoding::Utf16Be] {
                let found = detect(&encoded(text, encoding));
                assert_eq!(found, Ok(Format { encoding, bom: false }), "{text}");
            }
        }
    }

    #[test]
    fn bytes_with_nuls_are_no_text_in_utf_16() {
        let one_letter = b"a\0b\0c\0d\0e\0f\0g\0h\0ij\0kl\0mn\0o\0p\0q\0r\0".repeat(20);
        let names = b"src/main.rs\0src/a.rs\0Cargo.toml\0x\0yy\0".repeat(20);
        let records: Vec<u8> = (0..2_000_u32).flat_map(|n| (n * 7 + 65).to_le_bytes()).collect();
        for bytes in [
            &b"a\0b".repeat(2)[..],
            &b"a\0b".repeat(40),
            &b"a\0b".repeat(10_000),
            &b"ab\0c\0".repeat(100),
            &b"text that ends like in C\0"[..],
            &b"one\0two\0\0three\n".repeat(30),
            &names,
            &one_letter,
            &records,
        ] {
            assert!(matches!(detect(bytes), Err(DecodeError::Binary { .. })), "{bytes:.60?}");
        }
    }

    #[test]
    fn utf32_is_told_by_its_mark_or_its_text() {
        let bytes = |text: &str, big: bool| -> Vec<u8> {
            let unit = |c: char| {
                if big { u32::from(c).to_be_bytes() } else { u32::from(c).to_le_bytes() }
            };
            text.chars().flat_map(unit).collect()
        };
        for text in [
            "one line\n",
            "h\u{e4}llo w\u{f6}rld\r\nzwei\n",
            "\u{65e5}\u{672c}\u{8a9e}\u{306e}\u{30c6}\u{30ad}\u{30b9}\u{30c8}\u{3002}\n\u{3042} ok\n",
            "ok \u{1f600} done\n",
            "abab",
        ] {
            for (big, name) in [(false, "UTF-32LE"), (true, "UTF-32BE")] {
                let plain = bytes(text, big);
                assert_eq!(detect(&plain), Err(DecodeError::Utf32 { encoding: name }), "{text:?}");
                for cut in 1..4 {
                    let part = detect_cut(&plain[..plain.len() - cut]);
                    assert_eq!(part, Err(DecodeError::Utf32 { encoding: name }), "{text:?} {cut}");
                }
                let marked = bytes(&format!("\u{feff}{text}"), big);
                let told = Err(DecodeError::Utf32 { encoding: "UTF-32" });
                assert_eq!(detect(&marked), told, "{text:?}");
            }
        }
        // Numbers of 32 bits are no text, nor is a known kind of file.
        for numbers in [[1_u32, 2, 3, 4].as_slice(), &[1000; 40], &[0x00ff_0100; 8], &[0; 16]] {
            let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
            assert!(matches!(detect(&bytes), Err(DecodeError::Binary { .. })), "{numbers:?}");
        }
    }
}
