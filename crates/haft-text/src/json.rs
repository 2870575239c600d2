//! Where a value stands inside a JSON text, so that it can be replaced without rewriting the rest.
//!
//! Invariant: a span covers exactly one value, without the blanks around it, and is only given when
//! the whole text is JSON (RFC 8259), so that putting another value in its place gives JSON again.
//! Numbers and strings are never read and written anew. What the values mean is unknown here.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use thiserror::Error;

use crate::lines;

/// Arrays and objects inside each other that are followed; as many as common parsers allow.
const DEPTH: usize = 128;

/// One step into a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key<'a> {
    /// The member of an object; of several with one name the last counts, as parsers do it.
    Name(&'a str),
    /// The element of an array, from 0.
    Index(usize),
}

/// Why a value has no span.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JsonSpanError {
    /// The text is not JSON.
    #[error("The text is not JSON: {wanted} is missing at line {line}, column {column}.")]
    Syntax {
        /// What should stand there.
        wanted: &'static str,
        /// Byte offset, from 0.
        offset: usize,
        /// Line, from 1.
        line: usize,
        /// Characters of the line up to there and one, thus from 1.
        column: usize,
    },
    /// More arrays and objects inside each other than are followed.
    #[error("The JSON text has more than {DEPTH} levels at byte {offset}.")]
    Deep {
        /// Byte offset, from 0.
        offset: usize,
    },
    /// The path leads to nothing.
    #[error("The JSON text has nothing at step {step} of the path ({found}).")]
    Absent {
        /// The step that has no value, from 1.
        step: usize,
        /// What stands where the step begins.
        found: String,
    },
}

/// Finds the byte range of the value at a path; an empty path is the whole value.
///
/// # Errors
/// See [`JsonSpanError`].
pub fn span(text: &str, path: &[Key<'_>]) -> Result<Range<usize>, JsonSpanError> {
    let mut scan = Scan { text, at: 0, path, found: None, depth: 0, best: 0, stopped: "" };
    scan.blanks();
    scan.value(0)?;
    scan.blanks();
    if scan.at < text.len() {
        return scan.wrong("the end of the text");
    }
    let (best, stopped) = (scan.best, scan.stopped);
    scan.found.ok_or_else(|| {
        let found = match (stopped, path.get(best)) {
            ("", _) | (_, None) => "no such value".to_owned(),
            ("array", Some(Key::Index(index))) => format!("the array has no element {index}"),
            ("object", Some(Key::Name(name))) => format!("the object has no member {name:?}"),
            (kind, Some(_)) => format!("a value of another kind: {kind}"),
        };
        JsonSpanError::Absent { step: best + 1, found }
    })
}

/// Finds the byte ranges of the elements of the array at a path, in order.
///
/// # Errors
/// See [`JsonSpanError`]; a value that is no array is absent.
pub fn elements(text: &str, path: &[Key<'_>]) -> Result<Vec<Range<usize>>, JsonSpanError> {
    let whole = span(text, path)?;
    let mut scan = Scan::new(&text[..whole.end], whole.start);
    if scan.byte() != Some(b'[') {
        let found = "the value is no array".to_owned();
        return Err(JsonSpanError::Absent { step: path.len().max(1), found });
    }
    let mut spans = Vec::new();
    scan.at += 1;
    scan.blanks();
    while scan.byte() != Some(b']') {
        let start = scan.at;
        scan.value(usize::MAX)?;
        spans.push(start..scan.at);
        scan.blanks();
        if scan.byte() == Some(b',') {
            scan.at += 1;
            scan.blanks();
        }
    }
    Ok(spans)
}

/// One member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name, with escapes resolved.
    pub name: String,
    /// Byte range of the name with its quotes.
    pub key: Range<usize>,
    /// Byte range of the value.
    pub value: Range<usize>,
}

/// Finds the members of the object at a path, in order, also those of one name.
///
/// # Errors
/// See [`JsonSpanError`]; a value that is no object is absent.
pub fn members(text: &str, path: &[Key<'_>]) -> Result<Vec<Member>, JsonSpanError> {
    let whole = span(text, path)?;
    let mut scan = Scan::new(&text[..whole.end], whole.start);
    if scan.byte() != Some(b'{') {
        let found = "the value is no object".to_owned();
        return Err(JsonSpanError::Absent { step: path.len().max(1), found });
    }
    let mut members = Vec::new();
    scan.at += 1;
    scan.blanks();
    while scan.byte() != Some(b'}') {
        let key = scan.at;
        scan.quoted()?;
        let key = key..scan.at;
        scan.blanks();
        // Past the colon.
        scan.at += 1;
        scan.blanks();
        let value = scan.at;
        scan.value(usize::MAX)?;
        let name = unescaped(&text[key.start + 1..key.end - 1]).into_owned();
        members.push(Member { name, key, value: value..scan.at });
        scan.blanks();
        if scan.byte() == Some(b',') {
            scan.at += 1;
            scan.blanks();
        }
    }
    Ok(members)
}

/// Reads a JSON string with its quotes, as [`span`] gives it; none for any other value. A surrogate
/// without its other half becomes U+FFFD.
pub fn unquoted(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    Some(unescaped(inner))
}

/// Writes a text as a JSON string with its quotes; only what must be escaped is.
pub fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

/// What Python's `json` writes for numbers that JSON does not have, the longest one first.
const NO_NUMBERS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Puts something else in the place of each `NaN`, `Infinity` and `-Infinity` that stands as a
/// value; what stands in strings, and what only looks alike, stays.
pub fn without_no_numbers(text: &str, instead: impl Fn(&str) -> String) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = memchr::memchr3(b'"', b'N', b'I', &bytes[at..]) {
        let start = at + found;
        if bytes[start] == b'"' {
            at = string_end(bytes, start);
            continue;
        }
        let start = start - usize::from(start > 0 && bytes[start - 1] == b'-');
        let word = NO_NUMBERS.into_iter().find(|word| bytes[start..].starts_with(word.as_bytes()));
        let Some(word) = word.filter(|word| stands_alone(bytes, start, start + word.len())) else {
            at += found + 1;
            continue;
        };
        out.push_str(&text[copied..start]);
        out.push_str(&instead(word));
        at = start + word.len();
        copied = at;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// JSON as Python writes it as JSON of the same length, so that spans of one are spans of the
/// other: a number stands where there was none. Only to find places, never to be kept.
pub fn for_spans(text: &str) -> Cow<'_, str> {
    without_no_numbers(text, |word| {
        let (sign, rest) = word.strip_prefix('-').map_or(("", word), |rest| ("-", rest));
        format!("{sign}0.{}", "0".repeat(rest.len() - 2))
    })
}

/// Where the string that begins at a quote ends.
fn string_end(bytes: &[u8], quote: usize) -> usize {
    let mut at = quote + 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// Reports whether what is around a word lets it be a value.
fn stands_alone(bytes: &[u8], start: usize, end: usize) -> bool {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let before = bytes[..start].iter().rfind(|byte| !blank(byte));
    let after = bytes[end..].iter().find(|byte| !blank(byte));
    matches!(before, None | Some(b'[' | b':' | b','))
        && matches!(after, None | Some(b',' | b']' | b'}'))
}

/// A pass over the text.
struct Scan<'t, 'p> {
    text: &'t str,
    at: usize,
    path: &'p [Key<'p>],
    found: Option<Range<usize>>,
    depth: usize,
    /// Steps of the path that led to a value so far.
    best: usize,
    /// What stands where the next step would begin.
    stopped: &'static str,
}

type Done = Result<(), JsonSpanError>;

impl<'t> Scan<'t, '_> {
    const fn new(text: &'t str, at: usize) -> Self {
        Self { text, at, path: &[], found: None, depth: 0, best: 0, stopped: "" }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn wrong<T>(&self, wanted: &'static str) -> Result<T, JsonSpanError> {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let line = lines::number_at(before.as_bytes(), before.len(), false);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before[start..].chars().count() + 1;
        Err(JsonSpanError::Syntax { wanted, offset: self.at, line, column })
    }

    /// Passes one value; `steps` of the path have led here, more than it has when it is not on it.
    fn value(&mut self, steps: usize) -> Done {
        let start = self.at;
        let kind = match self.byte() {
            Some(b'{') => "object",
            Some(b'[') => "array",
            Some(b'"') => "string",
            Some(b'-' | b'0'..=b'9') => "number",
            Some(b't' | b'f' | b'n') => "literal",
            _ => return self.wrong("a value"),
        };
        if steps <= self.path.len() {
            // A later member of the same name begins again.
            (self.best, self.stopped, self.found) = (steps, kind, None);
        }
        match kind {
            "object" => self.inner(b'}', steps)?,
            "array" => self.inner(b']', steps)?,
            "string" => self.quoted()?,
            "number" => self.number()?,
            _ => self.literal()?,
        }
        if steps == self.path.len() {
            self.found = Some(start..self.at);
        }
        Ok(())
    }

    /// Passes an array or an object.
    fn inner(&mut self, close: u8, steps: usize) -> Done {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(JsonSpanError::Deep { offset: self.at });
        }
        self.at += 1;
        self.blanks();
        let mut index = 0;
        while self.byte() != Some(close) {
            let asked = self.path.get(steps).copied();
            let on_path = if close == b'}' {
                let start = self.at;
                self.quoted()?;
                let name = &self.text[start + 1..self.at - 1];
                self.blanks();
                if self.byte() != Some(b':') {
                    return self.wrong("a colon");
                }
                self.at += 1;
                self.blanks();
                matches!(asked, Some(Key::Name(wanted)) if unescaped(name) == wanted)
            } else {
                matches!(asked, Some(Key::Index(wanted)) if wanted == index)
            };
            self.value(if on_path { steps + 1 } else { usize::MAX })?;
            index += 1;
            self.blanks();
            match self.byte() {
                Some(b',') => {
                    self.at += 1;
                    self.blanks();
                    if self.byte() == Some(close) {
                        return self.wrong("a value after the comma");
                    }
                }
                Some(byte) if byte == close => {}
                _ => return self.wrong("a comma or the closing bracket"),
            }
        }
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    fn quoted(&mut self) -> Done {
        if self.byte() != Some(b'"') {
            return self.wrong("a string");
        }
        self.at += 1;
        loop {
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(0..=0x1f) => return self.wrong("an escape for the control character"),
                Some(_) => self.at += 1,
                None => return self.wrong("the closing quote"),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self) -> Done {
        let bytes = &self.text.as_bytes()[self.at..];
        let len = match bytes.get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u')
                if bytes.get(2..6).is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit)) =>
            {
                6
            }
            _ => return self.wrong("an escape that JSON knows"),
        };
        self.at += len;
        Ok(())
    }

    fn number(&mut self) -> Done {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        let first = self.byte();
        if self.digits()? > 1 && first == Some(b'0') {
            return self.wrong("a number without a leading 0");
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<usize, JsonSpanError> {
        let rest = &self.text.as_bytes()[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { self.wrong("a digit") } else { Ok(count) }
    }

    fn literal(&mut self) -> Done {
        let rest = &self.text[self.at..];
        match ["true", "false", "null"].into_iter().find(|word| rest.starts_with(word)) {
            Some(word) => {
                self.at += word.len();
                Ok(())
            }
            None => self.wrong("true, false or null"),
        }
    }
}

/// The text of a string that stands between its quotes; a lone surrogate becomes U+FFFD.
fn unescaped(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut units = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((plain, after)) = rest.split_once('\\') {
        units.extend(plain.encode_utf16());
        let code = after.as_bytes().first().copied().unwrap_or(b'\\');
        let mut len = 1;
        units.push(match code {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => 0x0a,
            b'r' => 0x0d,
            b't' => 0x09,
            b'u' => {
                len = 5;
                after.get(1..5).and_then(|code| u16::from_str_radix(code, 16).ok()).unwrap_or(0)
            }
            other => u16::from(other),
        });
        rest = after.get(len..).unwrap_or_default();
    }
    units.extend(rest.encode_utf16());
    Cow::Owned(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTEBOOK: &str = "{\n \"cells\": [\n  {\"source\": [\"a\\n\", \"b\"], \"n\": 1.50e+3},\n  \
                            {\"so\\u0075rce\": \"x \\\"]}\"}\n ],\n \"big\": 12345678901234567890\n}\n";

    fn at<'t>(text: &'t str, path: &[Key<'_>]) -> &'t str {
        &text[span(text, path).unwrap()]
    }

    #[test]
    fn values_are_found_with_their_very_bytes() {
        let cell = |index| [Key::Name("cells"), Key::Index(index), Key::Name("source")];
        assert_eq!(at(NOTEBOOK, &cell(0)), "[\"a\\n\", \"b\"]");
        assert_eq!(at(NOTEBOOK, &cell(1)), "\"x \\\"]}\"");
        assert_eq!(at(NOTEBOOK, &[Key::Name("cells"), Key::Index(0), Key::Name("n")]), "1.50e+3");
        assert_eq!(at(NOTEBOOK, &[Key::Name("big")]), "12345678901234567890");
        assert_eq!(at(" [1, 2] ", &[]), "[1, 2]");
        let cells = elements(NOTEBOOK, &[Key::Name("cells")]).unwrap();
        assert_eq!(cells.len(), 2);
        assert_eq!(cells[1], span(NOTEBOOK, &[Key::Name("cells"), Key::Index(1)]).unwrap());
        assert_eq!(elements("[]", &[]), Ok(vec![]));
    }

    #[test]
    fn of_two_members_with_one_name_the_last_counts() {
        assert_eq!(
            at("{\"a\": {\"b\": 1}, \"a\": {\"b\": 2}}", &[Key::Name("a"), Key::Name("b")]),
            "2"
        );
        let error = span("{\"a\": {\"b\": 1}, \"a\": 3}", &[Key::Name("a"), Key::Name("b")]);
        assert!(matches!(error, Err(JsonSpanError::Absent { step: 2, .. })), "{error:?}");
    }

    #[test]
    fn members_are_found_in_order_with_their_names_read() {
        let text = "[{ \"so\\u0075rce\" : [1, {\"x\": 2}] , \"n\":null,\"n\": \"}\"}]";
        let members = members(text, &[Key::Index(0)]).unwrap();
        let found: Vec<_> = members
            .iter()
            .map(|member| (&*member.name, &text[member.key.clone()], &text[member.value.clone()]))
            .collect();
        let wanted = [
            ("source", "\"so\\u0075rce\"", "[1, {\"x\": 2}]"),
            ("n", "\"n\"", "null"),
            ("n", "\"n\"", "\"}\""),
        ];
        assert_eq!(found, wanted);
        assert_eq!(super::members("{}", &[]), Ok(vec![]));
        let error = super::members("[]", &[]).unwrap_err();
        assert!(error.to_string().contains("the value is no object"), "{error}");
    }

    #[test]
    fn a_fault_is_placed_by_line_and_column() {
        for (text, line, column) in [
            ("{\n \"ä\": x}", 2, 7),
            ("", 1, 1),
            ("[1,\r\n]", 2, 1),
            ("[1] 2", 1, 5),
            ("\"ä", 1, 3),
        ] {
            let error = span(text, &[]).unwrap_err();
            let JsonSpanError::Syntax { line: l, column: c, .. } = &error else {
                panic!("{error}")
            };
            assert_eq!((*l, *c), (line, column), "{text:?}: {error}");
            assert!(error.to_string().contains(&format!("line {line}, column {column}.")));
        }
    }

    #[test]
    fn what_is_absent_is_named() {
        let cases: [(&str, &[Key<'_>], usize, &str); 4] = [
            ("{\"a\": 1}", &[Key::Name("b")], 1, "no member \"b\""),
            ("[1]", &[Key::Index(1)], 1, "no element 1"),
            ("[[1]]", &[Key::Index(0), Key::Name("x")], 2, "another kind: array"),
            ("7", &[Key::Index(0)], 1, "another kind: number"),
        ];
        for (text, path, step, words) in cases {
            let error = span(text, path).unwrap_err();
            assert!(matches!(error, JsonSpanError::Absent { step: at, .. } if at == step));
            assert!(error.to_string().contains(words), "{error}");
        }
        assert!(elements("{}", &[]).is_err());
    }

    #[test]
    fn what_is_not_json_is_refused_as_a_whole() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\" 1}",
            "[01]",
            "[1.]",
            "[-]",
            "\"\\x\"",
            "\"\n\"",
            "nul",
            "[1] 2",
            "{\"a\": 1,}",
            "'a'",
            "[1 2]",
            "\"",
            "{1: 2}",
            "\"\\u12\"",
        ] {
            assert!(matches!(span(text, &[]), Err(JsonSpanError::Syntax { .. })), "{text:?}");
        }
        let deep = "[".repeat(1_000_000);
        assert_eq!(span(&deep, &[]), Err(JsonSpanError::Deep { offset: DEPTH }));
        let fine = format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
        assert_eq!(span(&fine, &[]), Ok(0..2 * DEPTH));
    }

    #[test]
    fn numbers_of_python_are_seen_where_values_stand_and_nowhere_else() {
        for (text, want) in [
            ("NaN", "<NaN>"),
            ("[NaN, Infinity,-Infinity ]", "[<NaN>, <Infinity>,<-Infinity> ]"),
            ("{\"NaN\": NaN, \"b\":\r\n Infinity}", "{\"NaN\": <NaN>, \"b\":\r\n <Infinity>}"),
            ("[\"a \\\" , NaN,\", \"\\\\\", NaN]", "[\"a \\\" , NaN,\", \"\\\\\", <NaN>]"),
        ] {
            assert_eq!(without_no_numbers(text, |word| format!("<{word}>")), want);
            let plain = for_spans(text);
            assert_eq!(plain.len(), text.len());
            assert!(span(&plain, &[]).is_ok(), "{plain}");
        }
        for text in [
            "[1NaN]",
            "[NaN1]",
            "[-NaN]",
            "[+Infinity]",
            "[- Infinity]",
            "[nan]",
            "[NAN]",
            "[Inf]",
            "[NaNNaN]",
            "{NaN: 1}",
            "[1 NaN]",
            "[NaN NaN]",
            "[\"NaN",
            "[--Infinity]",
            "[xNaN]",
            "[NaN.0]",
            "[\u{e4}NaN]",
            "N",
            "I",
            "-I",
            "-",
            "\"\\",
        ] {
            assert_eq!(for_spans(text), text);
            assert!(span(text, &[]).is_err(), "{text}");
        }
        for text in ["", "[1.5]", "\"NaN\"", "[\"x, NaN, y\"]"] {
            assert!(matches!(for_spans(text), Cow::Borrowed(same) if same == text), "{text}");
        }
        // What else is wrong is found where it stands.
        let error = span(&for_spans("[NaN,\n Infinity, x]"), &[]).unwrap_err();
        assert!(error.to_string().contains("line 2, column 12"), "{error}");
    }

    #[test]
    fn strings_escape_what_they_must() {
        assert_eq!(
            string("a\"b\\\n\t\r\u{1}\u{7f}é\u{2028}"),
            "\"a\\\"b\\\\\\n\\t\\r\\u0001\u{7f}é\u{2028}\""
        );
        assert_eq!(unescaped("\\ud83d\\ude00\\/\\n\\ud83d"), "\u{1F600}/\n\u{FFFD}");
        assert_eq!(unquoted(&string("a\"\u{0}\n")).as_deref(), Some("a\"\u{0}\n"));
        for none in ["", "\"", "7", "null", "[\"a\"]"] {
            assert_eq!(unquoted(none), None, "{none}");
        }
    }
}
