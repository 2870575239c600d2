//! Small pieces of JSON work: writing strings into a buffer, watching an object that streams in,
//! and mending escapes that are half a character.

use serde_json::Value;

/// Appends `text` as a JSON string, quotes included.
pub(crate) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    push_escaped(out, text);
    out.push('"');
}

fn push_escaped(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        from = at + 1;
        if short.is_empty() {
            out.push_str("\\u00");
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        } else {
            out.push_str(short);
        }
    }
    out.push_str(&text[from..]);
}

/// Appends `"key":"text"`.
pub(crate) fn push_field(out: &mut String, key: &str, text: &str) {
    push_string(out, key);
    out.push(':');
    push_string(out, text);
}

/// Watches a JSON object arrive in pieces; each byte is looked at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectScan {
    depth: u64,
    text: Text,
    closed: bool,
}

/// Where a scan is in a text of its object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    /// Right behind the quote of one that stands in the place of the object.
    Begun,
    Inside,
    /// Behind a backslash.
    Escaped,
}

impl ObjectScan {
    /// Takes the next piece, up to the end of the object; tells how many bytes it took.
    pub(crate) fn feed(&mut self, text: &str) -> usize {
        for (at, byte) in text.bytes().enumerate() {
            if self.closed {
                return at;
            }
            match (self.text, byte) {
                // Some servers write the whole object as a text; other texts are no arguments.
                (Text::Outside, b'"') if self.depth == 0 => self.text = Text::Begun,
                (Text::Begun, b'{') | (Text::Outside, b'"') | (Text::Escaped, _) => {
                    self.text = Text::Inside;
                }
                (Text::Begun, _) => self.text = Text::Outside,
                (Text::Inside, b'\\') => self.text = Text::Escaped,
                (Text::Inside, b'"') => {
                    self.text = Text::Outside;
                    self.closed = self.depth == 0;
                }
                (Text::Outside, b'{' | b'[') => self.depth += 1,
                (Text::Outside, b'}' | b']') if self.depth > 0 => {
                    self.depth -= 1;
                    self.closed = self.depth == 0;
                }
                (Text::Inside | Text::Outside, _) => {}
            }
        }
        text.len()
    }

    /// Reports whether the outermost object or array has ended.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }
}

/// A number that some servers write as a text.
pub(crate) fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// The value with the fields of all objects ordered by their names.
pub(crate) fn in_order(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(in_order).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            fields.into_iter().map(|(key, value)| (key, in_order(value))).collect()
        }
        other => other,
    }
}

/// Reports whether the text is an object without fields.
pub(crate) fn is_empty_object(text: &str) -> bool {
    let inner = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    inner.is_some_and(|inner| inner.trim().is_empty())
}

/// Stands before a marked half of a surrogate pair. A noncharacter, so texts hold it hardly ever;
/// where an event does, its halves are replaced at once.
const MARK: char = '\u{fdd0}';
/// A half of a pair is marked by the character of this number plus its distance from U+D800.
const HALF: u32 = 0xf_0000;

/// Parses an event's data. True where strings hold halves of surrogate pairs, which servers make
/// by cutting text anywhere: [`Halves`] joins them, [`whole`] replaces them.
pub(crate) fn parse(text: &str) -> Result<(Value, bool), serde_json::Error> {
    match serde_json::from_str(text) {
        Ok(value) => Ok((value, false)),
        Err(error) => match marked(text) {
            Some((text, marked)) => Ok((serde_json::from_str(&text)?, marked)),
            None => Err(error),
        },
    }
}

/// The text with each escape of half a surrogate pair marked, and true, or replaced, and false;
/// none when there is no such escape.
pub(crate) fn marked(text: &str) -> Option<(String, bool)> {
    let bytes = text.as_bytes();
    let unit = |at: usize| -> Option<u16> {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let is_taken = text.contains(MARK) || text.to_ascii_lowercase().contains("\\ufdd0");
    let mut out = String::new();
    let (mut from, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at += 12,
            (Some(half @ 0xd800..=0xdfff), _) => {
                out.push_str(&text[from..at]);
                let mark = char::from_u32(HALF + u32::from(half) - 0xd800).filter(|_| !is_taken);
                out.extend(
                    mark.map_or([None, Some('\u{fffd}')], |mark| [Some(MARK), Some(mark)])
                        .iter()
                        .flatten(),
                );
                at += 6;
                from = at;
            }
            _ => at += 2,
        }
    }
    (from > 0).then(|| (out + &text[from..], !is_taken))
}

/// The text of a marked event with each half of a pair replaced.
pub(crate) fn whole(text: &str) -> String {
    let mut halves = Halves::default();
    let mut out = halves.join(text, true);
    out.extend(halves.end());
    out
}

/// A value of a marked event with each half of a pair in its texts replaced.
pub(crate) fn whole_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(whole(text)),
        Value::Array(items) => items.iter().map(whole_value).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (whole(key), whole_value(value))).collect()
        }
        other => other.clone(),
    }
}

/// Joins the pieces of one text: a pair that was cut in two becomes its character again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Halves(Option<u16>);

impl Halves {
    /// Takes the next piece; a first half at its end waits for the second one.
    pub(crate) fn join(&mut self, piece: &str, marked: bool) -> String {
        if !marked && (self.0.is_none() || piece.is_empty()) {
            return piece.to_owned();
        }
        let mut out = String::with_capacity(piece.len());
        let mut chars = piece.chars().peekable();
        while let Some(c) = chars.next() {
            let is_half = |mark: &char| (HALF..HALF + 0x800).contains(&u32::from(*mark));
            let mark = (marked && c == MARK).then(|| chars.next_if(is_half)).flatten();
            let half = mark.and_then(|mark| u16::try_from(u32::from(mark) - HALF).ok());
            let Some(half) = half else {
                out.extend(self.end());
                out.push(c);
                continue;
            };
            let unit = half + 0xd800;
            match self.0.take() {
                Some(high) if unit >= 0xdc00 => {
                    out.extend(char::decode_utf16([high, unit]).flatten());
                }
                waiting => {
                    out.extend(waiting.map(|_| '\u{fffd}'));
                    if unit < 0xdc00 {
                        self.0 = Some(unit);
                    } else {
                        out.push('\u{fffd}');
                    }
                }
            }
        }
        out
    }

    /// What stands for a half that stayed alone.
    pub(crate) fn end(&mut self) -> Option<char> {
        self.0.take().map(|_| '\u{fffd}')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> String {
        let (value, marked) = parse(text).unwrap();
        let text = value.as_str().unwrap();
        if marked { whole(text) } else { text.to_owned() }
    }

    #[test]
    fn half_characters_are_replaced_and_whole_ones_kept() {
        assert_eq!(read(r#""a\ud83d""#), "a\u{fffd}");
        assert_eq!(read(r#""\ude00 \ud83d\ude00 \\ud83d""#), "\u{fffd} \u{1f600} \\ud83d");
        assert_eq!(read(r#""\ud83d\ud83d\ude00""#), "\u{fffd}\u{1f600}");
        assert_eq!(read("\"\u{fdd0}\\ud83d \\uFDD0\""), "\u{fdd0}\u{fffd} \u{fdd0}");
        assert_eq!(marked(r#""\u0041 \\""#), None);
        assert!(parse("{").is_err());
    }

    #[test]
    fn pairs_that_were_cut_in_two_are_joined() {
        let joined = |pieces: &[&str]| {
            let mut halves = Halves::default();
            let mut out = String::new();
            for piece in pieces {
                let (value, marked) = parse(piece).unwrap();
                out += &halves.join(value.as_str().unwrap(), marked);
            }
            out.extend(halves.end());
            out
        };
        assert_eq!(joined(&[r#""a\ud83d""#, r#""\ude00b""#]), "a\u{1f600}b");
        assert_eq!(joined(&[r#""\ud83d""#, r#""""#, r#""\ude00""#]), "\u{1f600}");
        assert_eq!(joined(&[r#""\ud83d""#, r#""b""#, r#""\ude00""#]), "\u{fffd}b\u{fffd}");
        assert_eq!(joined(&[r#""\ude00""#, r#""\ud83d""#]), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn the_end_of_an_object_is_seen_once_it_is_there() {
        let closed = |pieces: &[&str]| {
            let mut scan = ObjectScan::default();
            for piece in pieces {
                scan.feed(piece);
            }
            scan.is_closed()
        };
        assert!(closed(&["{\"a\":", "\"}\\\"\"", ",\"b\":[{}]", "}"]));
        assert!(!closed(&["{\"a\":\"}"]));
        assert!(!closed(&["{\"a\":{}"]));
        assert!(!closed(&["", "12"]));
        assert_eq!(ObjectScan::default().feed(" {} {}"), 3);
    }

    #[test]
    fn an_object_without_fields_is_empty() {
        assert!(is_empty_object("{}") && is_empty_object(" {\n} "));
        assert!(!is_empty_object("{\"a\":1}") && !is_empty_object("") && !is_empty_object("{"));
    }

    proptest! {
        #[test]
        fn written_strings_read_back(text in any::<String>()) {
            let mut out = String::new();
            push_string(&mut out, &text);
            prop_assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }

        /// UTF-16 cut at every place, each piece written as escapes.
        #[test]
        fn text_cut_between_units_is_whole_again(text in "[a\u{1f600}\u{10ffff}é]{0,8}", at in 0_usize..16) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let (head, tail) = units.split_at(at.min(units.len()));
            let mut halves = Halves::default();
            let mut out = String::new();
            for piece in [head, tail] {
                let units: Vec<_> = piece.iter().map(|unit| format!("\\u{unit:04x}")).collect();
                let json = units.concat();
                let (value, marked) = parse(&format!("\"{json}\"")).unwrap();
                out += &halves.join(value.as_str().unwrap(), marked);
            }
            out.extend(halves.end());
            prop_assert_eq!(out, text);
        }

        #[test]
        fn marking_any_text_ends_in_text(text in r#"(\\u[dD][89a-fA-F]..|\\|"|é|x){0,20}"#) {
            if let Some((mended, _)) = marked(&text) {
                prop_assert_eq!(marked(&mended), None);
            }
        }
    }
}
