//! Legacy encodings where the detector is known to be wrong: little evidence, and kana.
//!
//! Invariant: a guess of the detector is only overruled where the bytes read as sound text; everything
//! else stays its business. Nothing here knows whether the text can be written back.

use encoding_rs::Encoding;

/// Letters that stand alone among ASCII and are too few to tell a language by.
const LETTERS: usize = 8;
/// Different ones of them.
const KINDS: usize = 2;

/// The encoding that the bytes are in, where that is plainer than what the detector makes of them;
/// `whole` is false where more may follow.
pub(crate) fn overruled(
    bytes: &[u8],
    guess: &'static Encoding,
    whole: bool,
) -> Option<&'static Encoding> {
    let name = guess.name();
    let single = name.starts_with("windows-") || name.starts_with("ISO-8859-");
    if single && japanese(bytes, whole) {
        return Some(encoding_rs::SHIFT_JIS);
    }
    western(bytes, guess).then_some(encoding_rs::WINDOWS_1252)
}

/// Reports whether all that is not ASCII are signs of windows-1252 where signs stand, and at most a
/// few of its letters.
fn western(bytes: &[u8], guess: &'static Encoding) -> bool {
    let (mut signs, mut letters) = (0_usize, 0_usize);
    let mut kinds = [0_u8; KINDS];
    for (at, &byte) in bytes.iter().enumerate().filter(|(_, byte)| !byte.is_ascii()) {
        let before = at.checked_sub(1).map_or(b'\n', |at| bytes[at]);
        let after = bytes.get(at + 1).copied().unwrap_or(b'\n');
        if !before.is_ascii() || !after.is_ascii() {
            return false;
        }
        if is_letter(byte) {
            let Some(kind) = kinds.iter_mut().find(|kind| **kind == byte || **kind == 0) else {
                return false;
            };
            *kind = byte;
            letters += 1;
        } else if is_sign(&bytes[..at], byte, after) {
            signs += usize::from(is_letter_in(guess, byte));
        } else {
            return false;
        }
    }
    // Of the letters of Central Europe the detector knows more, but not where it takes signs for some.
    let central = [encoding_rs::WINDOWS_1250, encoding_rs::ISO_8859_2].contains(&guess);
    letters <= LETTERS && (letters == 0 || !central || signs > 0)
}

/// Letters of Western Europe but those at whose places other encodings have common ones, as the
/// Turkish ones.
const fn is_letter(byte: u8) -> bool {
    byte >= 0xC0 && !matches!(byte, 0xD0 | 0xD7 | 0xDD | 0xDE | 0xF0 | 0xF7 | 0xFD..)
}

/// Reports whether an encoding has a letter where windows-1252 has a sign.
fn is_letter_in(guess: &'static Encoding, byte: u8) -> bool {
    let bytes = [byte];
    let read = |encoding: &'static Encoding| encoding.decode_without_bom_handling(&bytes).0;
    let letter = read(guess);
    letter.chars().all(char::is_alphabetic) && letter != read(encoding_rs::WINDOWS_1252)
}

/// Reports whether a byte is a sign of windows-1252 beside which no letter stands that speaks
/// against it: what other encodings have at its place are mostly letters.
fn is_sign(head: &[u8], byte: u8, after: u8) -> bool {
    let word = head.iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let before = &head[head.len() - word..];
    match byte {
        // Quotes, dashes, dots, degrees, products: beside and between letters.
        0x85 | 0x91..=0x97 | 0xB0 | 0xB7 | 0xD7 => true,
        // Small twos, marks of trade: behind letters.
        0x99 | 0xA9 | 0xAE | 0xB2 | 0xF7 => !after.is_ascii_alphabetic(),
        // The exponent of a unit.
        0xB3 => {
            !after.is_ascii_alphabetic()
                && matches!(before, b"" | b"m" | b"cm" | b"mm" | b"km" | b"dm")
        }
        // Not behind letters.
        0x80 | 0xA1..=0xA3 | 0xA5 | 0xA7 | 0xAB | 0xAC | 0xB1 | 0xB5 | 0xB9 | 0xBB..=0xBF => {
            word == 0
        }
        _ => false,
    }
}

/// Reports whether bytes that are no letters in Europe lead pairs of `Shift_JIS` throughout.
fn japanese(bytes: &[u8], whole: bool) -> bool {
    let (mut pairs, mut good, mut halves) = (0_usize, 0_usize, 0_usize);
    let mut rest = bytes.iter();
    while let Some(&lead) = rest.next() {
        match lead {
            0..=0x7F => {}
            0xA1..=0xDF => halves += 1,
            0x81..=0x9F | 0xE0..=0xEF => {
                let trail = match rest.next() {
                    Some(&trail @ (0x40..=0x7E | 0x80..=0xFC)) => trail,
                    None if !whole => break,
                    _ => return false,
                };
                pairs += 1;
                // Kana and the punctuation beside them; ideographs, but not a quote and a letter.
                good += usize::from(lead <= 0x83 || (lead <= 0x9F && trail >= 0x80));
            }
            _ => return false,
        }
    }
    pairs >= 3 && good * 3 >= pairs * 2 && halves * 4 <= pairs
}

#[cfg(test)]
mod tests {
    use encoding_rs::{
        BIG5, EUC_JP, EUC_KR, GBK, IBM866, ISO_8859_2, SHIFT_JIS, WINDOWS_1250, WINDOWS_1251,
        WINDOWS_1252, WINDOWS_1253, WINDOWS_1254,
    };

    use super::*;
    use crate::decode;

    fn read(text: &str, encoding: &'static Encoding) -> (String, &'static str) {
        let (bytes, _, lossy) = encoding.encode(text);
        assert!(!lossy, "{text}");
        let decoded = decode(&bytes).unwrap();
        (decoded.text().to_owned(), decoded.format().encoding.name())
    }

    #[test]
    fn a_few_bytes_among_ascii_are_western() {
        for text in [
            "#define T 5 /* µs */\nint a;\n",
            "/* 5 µs */ x\n/* 10 µs */\n/* 20 µs */ 3 ± 4 ± 5 23 °C 4 °C\n",
            "a naïve approach\nint a;\n",
            "£5\nint a;\n",
            "tol ±0.5\nint a;\n",
            "int main() { return 0; } /* ø */\nint a;\n",
            "int a; // ø\nint main() { return 0; } /* ø */\n",
            "// ø ø ø\n// å\n",
            "© 2001 René\n",
            "m³\n",
            "½ cup\n¼ cup\n",
            "« oui »\n",
            "it’s a “test” – don’t\n",
            "20 °C\n30 °C\n",
            "# Müller ™\n",
            "x ÷ 2 × 3\n",
            "¿Qué?\n",
            "a naïve approach /* é ± */\n",
        ] {
            assert_eq!(read(text, WINDOWS_1252), (text.to_owned(), "windows-1252"));
        }
    }

    #[test]
    fn kana_and_ideographs_throughout_are_shift_jis() {
        let lines = "これは日本語です\n";
        for text in [lines, &lines.repeat(10), &"日本語\n".repeat(20), "// これは\nint a;\n"]
        {
            assert_eq!(read(text, SHIFT_JIS), (text.to_owned(), "Shift_JIS"));
        }
    }

    #[test]
    fn what_the_detector_tells_right_stays() {
        for (text, encoding) in [
            ("// může být žluť\n", WINDOWS_1250),
            ("// może był\n", WINDOWS_1250),
            ("// był\n", WINDOWS_1250),
            ("// ž\n", WINDOWS_1250),
            ("// 20 °C – může být, něco\n", WINDOWS_1250),
            ("// žít, ještě šíp, žízeň\n", WINDOWS_1250),
            ("// może był łódź\n", ISO_8859_2),
            ("// текст\n", WINDOWS_1251),
            ("ВОДА и Вова Всегда\n", IBM866),
            ("// Γλώσσα\n", WINDOWS_1253),
            ("// ışık\n", WINDOWS_1254),
            ("// 设置\nint a;\n", GBK),
            ("// 設定已經更改\nint a;\n", BIG5),
            ("// 설정\nint a;\n", EUC_KR),
            ("// これは日本語です\n", EUC_JP),
            ("// テスト\nint a;\n", SHIFT_JIS),
        ] {
            assert_eq!(read(text, encoding), (text.to_owned(), encoding.name()));
        }
    }
}
