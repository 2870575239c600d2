//! Format 2 of the log: what the outcome of a call says more than once is stored once.
//!
//! The model, programs and people read one result in three shapes, which mostly hold the same text.
//! A value that occurred before in its outcome is `{"$same": "/content/0/text"}`: an RFC 6901
//! pointer into that outcome. `"unnumbered": true` beside it stands for the text without the line
//! numbers that the model reads, `"feed": true` for one more line feed at its end. A real object with
//! such a key is written with one more `$` in front of it.
//!
//! **Invariant:** `expand(fold(v)) == v` for every value. Expanding a hostile outcome takes bounded
//! memory and stack: a pointer leads to what stands before it and holds no pointer itself any more.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::LineFault;

/// How a value that stands elsewhere is marked.
const KEY: &str = "$same";
const UNNUMBERED: &str = "unnumbered";
const FEED: &str = "feed";

/// Fewer bytes are written again: a pointer is hardly shorter.
const LEAST: usize = 200;

/// The parts of an outcome that repeat each other.
const PARTS: [&str; 3] = ["content", "data", "detail"];

/// The most bytes that the values of one outcome may come to when they are put back.
const EXPANDED_MAX: usize = 64 << 20;

/// Texts with line numbers that one outcome is compared with.
const NUMBERED_MAX: usize = 4;

/// A value of at least [`LEAST`] bytes, in the order in which they begin.
struct Large {
    hash: [u8; 32],
    /// How many further ones lie in it.
    inner: usize,
}

/// Puts pointers in the place of what occurred before in an outcome.
pub(crate) fn fold(outcome: &mut Value) {
    let Value::Object(fields) = outcome else { return };
    let mut folder = Folder::default();
    for part in PARTS {
        let Some(value) = fields.get_mut(part) else { continue };
        escape(value);
        let mut larges = Vec::new();
        measure(value, &mut larges);
        folder.visit(value, &format!("/{part}"), &mut larges.iter());
    }
}

/// Hash and bytes of a value; notes all large ones in it.
fn measure(value: &Value, larges: &mut Vec<Large>) -> ([u8; 32], usize) {
    let place = larges.len();
    larges.push(Large { hash: [0; 32], inner: 0 });
    let mut hasher = blake3::Hasher::new();
    let mut bytes = 2;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            hasher.update(b"v").update(value.to_string().as_bytes());
        }
        Value::String(text) => {
            hasher.update(b"s").update(text.as_bytes());
            bytes += text.len();
        }
        Value::Array(items) => {
            hasher.update(b"a");
            for item in items {
                let (hash, inner) = measure(item, larges);
                hasher.update(&hash);
                bytes += inner + 1;
            }
        }
        Value::Object(fields) => {
            hasher.update(b"o");
            for (key, item) in fields {
                let (hash, inner) = measure(item, larges);
                hasher.update(blake3::hash(key.as_bytes()).as_bytes()).update(&hash);
                bytes += key.len() + inner + 4;
            }
        }
    }
    let hash = *hasher.finalize().as_bytes();
    if bytes < LEAST {
        // None in it is large either.
        larges.truncate(place);
    } else {
        let inner = larges.len() - place - 1;
        if let Some(large) = larges.get_mut(place) {
            *large = Large { hash, inner };
        }
    }
    (hash, bytes)
}

#[derive(Default)]
struct Folder {
    /// Where each large value stands first.
    first: HashMap<[u8; 32], String>,
    /// Texts without the numbers of their lines, each with where it stands.
    unnumbered: Vec<(String, String)>,
}

impl Folder {
    fn visit(&mut self, value: &mut Value, at: &str, larges: &mut std::slice::Iter<'_, Large>) {
        if size_below(value, LEAST) {
            return;
        }
        let Some(large) = larges.next() else { return };
        if let Some(pointer) = self.first.get(&large.hash) {
            *value = marker(pointer, None);
            larges.by_ref().take(large.inner).for_each(drop);
            return;
        }
        self.first.insert(large.hash, at.to_owned());
        match value {
            Value::String(text) => {
                if let Some((pointer, feed)) = self.numbered(text) {
                    self.first.remove(&large.hash);
                    *value = marker(&pointer, Some(feed));
                } else if self.unnumbered.len() < NUMBERED_MAX
                    && let Some(plain) = without_numbers(text)
                {
                    self.unnumbered.push((plain, at.to_owned()));
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.visit(item, &format!("{at}/{index}"), larges);
                }
            }
            Value::Object(fields) => {
                for (key, item) in fields {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    self.visit(item, &format!("{at}/{key}"), larges);
                }
            }
            _ => {}
        }
    }

    /// Where a text stands with line numbers, and whether it has one more line feed.
    fn numbered(&self, text: &str) -> Option<(String, bool)> {
        self.unnumbered.iter().find_map(|(plain, at)| {
            let rest = text.strip_prefix(plain.as_str())?;
            matches!(rest, "" | "\n").then(|| (at.clone(), !rest.is_empty()))
        })
    }
}

/// Whether a value has fewer bytes than this, by the measure of [`measure`]; looks at no more of it.
fn size_below(value: &Value, most: usize) -> bool {
    fn less(value: &Value, left: usize) -> Option<usize> {
        let left = left.checked_sub(2)?;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Some(left),
            Value::String(text) => left.checked_sub(text.len()),
            Value::Array(items) => {
                items.iter().try_fold(left, |left, item| less(item, left)?.checked_sub(1))
            }
            Value::Object(fields) => fields
                .iter()
                .try_fold(left, |left, (key, item)| less(item, left)?.checked_sub(key.len() + 4)),
        }
    }
    less(value, most - 1).is_some()
}

/// The lines of a text that begin with a number and a tab, without these; none where no line does.
fn without_numbers(text: &str) -> Option<String> {
    let lines = text.lines().filter_map(|line| {
        let (number, rest) = line.split_once('\t')?;
        let digits = number.trim_start();
        (!digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit())).then_some(rest)
    });
    let lines: Vec<&str> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn marker(pointer: &str, unnumbered: Option<bool>) -> Value {
    let mut marker = Map::new();
    marker.insert(KEY.to_owned(), Value::from(pointer));
    if let Some(feed) = unnumbered {
        marker.insert(UNNUMBERED.to_owned(), Value::Bool(true));
        if feed {
            marker.insert(FEED.to_owned(), Value::Bool(true));
        }
    }
    Value::Object(marker)
}

/// Puts back what [`fold`] left out.
///
/// # Errors
/// Where a pointer leads nowhere, or to what it may not, or all comes to too much.
pub(crate) fn expand(outcome: &mut Value) -> Result<(), LineFault> {
    let mut pointers = Vec::new();
    for part in PARTS {
        if let Some(value) = outcome.get(part) {
            find(value, &format!("/{part}"), &mut pointers);
        }
    }
    let mut left = EXPANDED_MAX;
    for at in pointers {
        let value = target(outcome, &at).map_err(|why| {
            LineFault::NotAnEvent(format!("the value at {at:?} cannot be put back: {why}"))
        })?;
        left = left.checked_sub(bytes(&value)).ok_or_else(|| {
            LineFault::NotAnEvent(format!("its values come to more than {EXPANDED_MAX} bytes"))
        })?;
        if let Some(place) = outcome.pointer_mut(&at) {
            *place = value;
        }
    }
    for part in PARTS {
        if let Some(value) = outcome.get_mut(part) {
            unescape(value);
        }
    }
    Ok(())
}

/// Where all markers stand, in their order.
fn find(value: &Value, at: &str, pointers: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if item.is_array() || item.is_object() {
                    find(item, &format!("{at}/{index}"), pointers);
                }
            }
        }
        Value::Object(fields) if fields.contains_key(KEY) => pointers.push(at.to_owned()),
        Value::Object(fields) => {
            for (key, item) in fields.iter().filter(|(_, item)| item.is_array() || item.is_object())
            {
                let key = key.replace('~', "~0").replace('/', "~1");
                find(item, &format!("{at}/{key}"), pointers);
            }
        }
        _ => {}
    }
}

/// What the marker at this place stands for.
fn target(outcome: &Value, at: &str) -> Result<Value, String> {
    let marker = outcome.pointer(at).ok_or("it is gone")?;
    let pointer = marker.get(KEY).and_then(Value::as_str).ok_or("its pointer is no text")?;
    if at == pointer || at.starts_with(&format!("{pointer}/")) {
        return Err("it stands within what it names".to_owned());
    }
    let value = outcome.pointer(pointer).ok_or_else(|| format!("nothing stands at {pointer:?}"))?;
    let mut inner = Vec::new();
    find(value, pointer, &mut inner);
    if !inner.is_empty() {
        return Err(format!("{pointer:?} stands behind it"));
    }
    if marker.get(UNNUMBERED).is_none() {
        return Ok(value.clone());
    }
    let plain = value.as_str().and_then(without_numbers);
    let mut plain = plain.ok_or_else(|| format!("{pointer:?} has no numbered lines"))?;
    if marker.get(FEED).is_some() {
        plain.push('\n');
    }
    Ok(Value::String(plain))
}

/// Bytes that a value takes, roughly.
fn bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 32,
        Value::Array(items) => 32 + items.iter().map(bytes).sum::<usize>(),
        Value::Object(fields) => {
            32 + fields.iter().map(|(key, item)| key.len() + 32 + bytes(item)).sum::<usize>()
        }
        _ => 32,
    }
}

/// `$same`, `$$same` and so on.
fn is_marker_like(key: &str) -> bool {
    key.strip_suffix("same").is_some_and(|s| !s.is_empty() && s.bytes().all(|b| b == b'$'))
}

fn escape(value: &mut Value) {
    rename(value, &|key| is_marker_like(key).then(|| format!("${key}")));
}

fn unescape(value: &mut Value) {
    rename(value, &|key| is_marker_like(key).then(|| key[1..].to_owned()));
}

fn rename(value: &mut Value, new: &impl Fn(&str) -> Option<String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, new)),
        Value::Object(fields) => {
            if fields.keys().any(|key| is_marker_like(key)) {
                let old = std::mem::take(fields);
                fields.extend(old.into_iter().map(|(key, item)| (new(&key).unwrap_or(key), item)));
            }
            fields.values_mut().for_each(|item| rename(item, new));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn there_and_back(outcome: &Value) -> Value {
        let mut folded = outcome.clone();
        fold(&mut folded);
        let mut back = folded.clone();
        expand(&mut back).unwrap();
        assert_eq!(back, *outcome);
        folded
    }

    #[test]
    fn what_occurs_again_is_stored_once() {
        let text = "a line of output\n".repeat(40);
        let lines = json!([{"text": "x".repeat(150)}, {"text": "y".repeat(150)}]);
        let folded = there_and_back(&json!({
            "status": "done",
            "content": [{"type": "text", "text": text}],
            "data": {"stdout": text, "files": [{"lines": lines}]},
            "detail": {"output": text, "matches": {"a/b~c": lines}, "short": "s"},
        }));
        assert_eq!(folded["data"]["stdout"], json!({"$same": "/content/0/text"}));
        assert_eq!(folded["detail"]["output"], json!({"$same": "/content/0/text"}));
        assert_eq!(
            folded["detail"]["matches"]["a/b~c"],
            json!({"$same": "/data/files/0/lines"}),
            "{folded}"
        );
        assert_eq!(folded["detail"]["short"], "s");
    }

    #[test]
    fn a_file_is_stored_once_though_the_model_reads_it_with_numbers() {
        use std::fmt::Write as _;
        for (feed, foot) in [("", ""), ("\n", ""), ("\n", "\n[more lines]")] {
            let (mut numbered, mut plain) = (String::new(), Vec::new());
            for line in 1..50 {
                writeln!(numbered, "{line:>6}\tfn number_{line}() {{\t}}").unwrap();
                plain.push(format!("fn number_{line}() {{\t}}"));
            }
            let plain = plain.join("\n") + feed;
            let folded = there_and_back(&json!({
                "content": [{"text": numbered.trim_end().to_owned() + foot}],
                "detail": {"text": plain, "again": plain},
            }));
            assert_eq!(folded["detail"]["text"]["unnumbered"], true, "{folded}");
            assert!(folded.to_string().len() < numbered.len() * 2, "{folded}");
        }
    }

    #[test]
    fn real_keys_that_look_like_markers_stay() {
        let long = "z".repeat(500);
        there_and_back(&json!({
            "content": [{"$same": "/content", "$$same": 1, "text": long}],
            "data": {"$same": long, "deep": [{"$$$same": long}]},
            "detail": {"same": long, "$same": {"$same": "/data"}},
        }));
    }

    #[test]
    fn hostile_pointers_are_refused() {
        for outcome in [
            json!({"data": {"$same": "/content/7"}}),
            json!({"data": {"$same": 7}}),
            json!({"data": {"a": {"$same": "/data"}}}),
            json!({"data": {"$same": "/data"}}),
            json!({"content": {"$same": "/detail"}, "detail": {"$same": "/content"}}),
            json!({"content": "no numbers", "data": {"$same": "/content", "unnumbered": true}}),
        ] {
            let mut broken = outcome.clone();
            let error = expand(&mut broken).unwrap_err();
            assert!(error.to_string().contains("cannot be put back"), "{outcome}: {error}");
        }
        let mut bomb = json!({"content": ["x".repeat(1 << 20)], "data": []});
        for level in 0..40 {
            let from =
                if level == 0 { "/content".to_owned() } else { format!("/data/{}", level - 1) };
            bomb["data"].as_array_mut().unwrap().push(json!([{"$same": from}, {"$same": from}]));
        }
        let error = expand(&mut bomb).unwrap_err();
        assert!(error.to_string().contains("more than"), "{error}");
    }
}
