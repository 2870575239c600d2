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
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl ObjectScan {
    /// Takes the next piece.
    pub(crate) fn feed(&mut self, text: &str) {
        for byte in text.bytes() {
            if self.closed {
                return;
            }
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' if self.depth > 0 => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    self.closed = self.depth == 0;
                }
                _ => {}
            }
        }
    }

    /// Reports whether the outermost object or array has ended.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }
}

/// Parses an event's data; escapes of half a surrogate pair, which some gateways produce by
/// cutting text anywhere, are replaced instead of refused.
pub(crate) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match mended_surrogates(text) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    })
}

/// The text with each lone surrogate escape replaced by the replacement character; none when
/// there is no such escape.
pub(crate) fn mended_surrogates(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let unit = |at: usize| -> Option<u16> {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut out = String::new();
    let (mut from, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at += 12,
            (Some(0xd800..=0xdfff), _) => {
                out.push_str(&text[from..at]);
                out.push_str("\\ufffd");
                at += 6;
                from = at;
            }
            _ => at += 2,
        }
    }
    (from > 0).then(|| out + &text[from..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn half_characters_are_replaced_and_whole_ones_kept() {
        assert_eq!(parse(r#""a\ud83d""#).unwrap(), "a\u{fffd}");
        assert_eq!(
            parse(r#""\ude00 \ud83d\ude00 \\ud83d""#).unwrap(),
            "\u{fffd} \u{1f600} \\ud83d"
        );
        assert_eq!(mended_surrogates(r#""\u0041 \\""#), None);
        assert!(parse("{").is_err());
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
    }

    proptest! {
        #[test]
        fn written_strings_read_back(text in any::<String>()) {
            let mut out = String::new();
            push_string(&mut out, &text);
            prop_assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }

        #[test]
        fn mending_any_text_ends_in_text(text in r#"(\\u[dD][89a-fA-F]..|\\|"|é|x){0,20}"#) {
            if let Some(mended) = mended_surrogates(&text) {
                prop_assert_eq!(mended_surrogates(&mended), None);
            }
        }
    }
}
