//! Keeps the lines of a log small: values above 8 KiB become blobs, and are restored on reading.
//!
//! A value that moved out is `{"$blob": {hash, len, mime}, "head": "..."}`. `head` is the start of
//! its text, so that lists of sessions need no blob. A real object with such a key is written with
//! one more `$` in front of it. Strings move out as text. Arrays and objects that are too large, or
//! too deep for a JSON parser, move out as JSON.
//!
//! **Invariant:** `restore(shrink(v)) == v` for every value. Restoring a hostile line takes bounded
//! memory and stack.

use std::io::{self, Write};

use haft_types::{Blob, Body, Event, EventId, Hash, VERSION};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Blobs, SessionError, list::first_chars, repeats};

/// The most bytes that one value, or one line that needs no look at its values, has in the log.
pub const INLINE_MAX: usize = 8192;

/// The most bytes of one field of an event that move out in one.
const FIELD_MAX: usize = 64 * 1024;

/// Levels of arrays and objects that stay inline; parsers give up at 128.
const HEIGHT_MAX: usize = 48;

/// Levels of blobs inside blobs; written values never need more.
const NESTED_MAX: usize = 4;

/// The most bytes that the blobs of one line may come to.
const RESTORED_MAX: u64 = 2 * crate::BLOB_MAX;

/// How a value that moved out is marked.
pub(crate) const KEY: &str = "$blob";
const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// How the lines of a log are written. A log keeps the format that it began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Each value where it belongs.
    One,
    /// What an outcome says more than once stands there once.
    Two,
}

impl Format {
    /// The newest one that is known.
    pub(crate) const NEWEST: u32 = 2;

    /// The format of a log by the version that its lines name.
    pub(crate) const fn of(version: u32) -> Self {
        if version < 2 { Self::One } else { Self::Two }
    }

    const fn version(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

/// Shorter outcomes are not looked at for what they say twice.
const REPEATS_FROM: usize = 1_024;

/// An event as the log will hold it, large values moved out, but for its place in the log.
///
/// Made without the log, so that whoever appends holds nothing up.
#[derive(Debug)]
pub struct Packed {
    /// The fields behind version, id and parent, each with the comma before it.
    fields: Vec<u8>,
    format: Format,
}

impl Packed {
    /// Packs an event and keeps its large values.
    ///
    /// # Errors
    /// When the event is a passing one, or its large values cannot be kept.
    pub fn new(event: &Event, blobs: &Blobs, format: Format) -> Result<Self, SessionError> {
        if let Some(packed) = Self::small(event, format)? {
            return Ok(packed);
        }
        let mut value = Self::value(event, format)?;
        if let Value::Object(fields) = &mut value {
            for field in fields.values_mut() {
                pack(field, blobs)?;
            }
        }
        Self::placeless(event, serde_json::to_vec(&value)?, format)
    }

    /// An event as this format has it.
    fn value(event: &Event, format: Format) -> Result<Value, SessionError> {
        let mut value = serde_json::to_value(event)?;
        if format == Format::Two
            && matches!(event.body, Body::CallEnded { .. })
            && let Some(outcome) = value.get_mut("outcome")
        {
            repeats::fold(outcome);
        }
        Ok(value)
    }

    /// Packs an event that needs no blob, and so touches no disk; none where it may need one.
    ///
    /// # Errors
    /// When the event is a passing one.
    pub fn small(event: &Event, format: Format) -> Result<Option<Self>, SessionError> {
        if !event.body.is_durable() {
            return Err(SessionError::Passing);
        }
        let mut fields = Vec::new();
        let fits = serde_json::to_writer(Short(&mut fields), event).is_ok();
        let is_long = fits && fields.len() > REPEATS_FROM && format == Format::Two;
        if is_long && matches!(event.body, Body::CallEnded { .. }) {
            fields = serde_json::to_vec(&Self::value(event, format)?)?;
        }
        (fits && is_plain(&fields)).then(|| Self::placeless(event, fields, format)).transpose()
    }

    /// Takes off the place that the event has so far, if any: it is not the one that it will have.
    fn placeless(event: &Event, mut fields: Vec<u8>, format: Format) -> Result<Self, SessionError> {
        let placed =
            serde_json::to_string(&Placed { v: event.v, id: event.id, parent: event.parent })?;
        fields.drain(..placed.len() - 1);
        fields.pop();
        Ok(Self { fields, format })
    }

    /// Writes the whole line, without its line feed.
    pub(crate) fn line(
        &self,
        id: EventId,
        parent: Option<EventId>,
        prev: &Hash,
        line: &mut Vec<u8>,
    ) {
        line.clear();
        let version = self.format.version();
        line.extend_from_slice(format!("{{\"v\":{version},\"id\":{}", id.0).as_bytes());
        if let Some(parent) = parent {
            line.extend_from_slice(format!(",\"parent\":{}", parent.0).as_bytes());
        }
        line.extend_from_slice(&self.fields);
        line.extend_from_slice(format!(",\"prev\":\"{prev}\"}}").as_bytes());
    }
}

/// The fields that an event begins with.
#[derive(Serialize)]
struct Placed {
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<EventId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<EventId>,
}

/// Reads the event of one line, moved-out values put back.
pub(crate) fn decode(line: &[u8], blobs: &Blobs) -> Result<Event, crate::LineFault> {
    let broken = |error: serde_json::Error| crate::LineFault::NotAnEvent(error.to_string());
    let has = |marker: &[u8]| memchr::memmem::find(line, marker).is_some();
    if !has(b"$blob\"") && !has(b"$same\"") {
        return serde_json::from_slice(line).map_err(broken).and_then(known);
    }
    let mut value: Value = serde_json::from_slice(line).map_err(broken)?;
    let mut restorer = Restorer { blobs, left: RESTORED_MAX };
    restorer.restore(&mut value, NESTED_MAX)?;
    let version = value.get("v").and_then(Value::as_u64).unwrap_or_default();
    if version >= 2
        && let Some(outcome) = value.get_mut("outcome")
    {
        repeats::expand(outcome)?;
    }
    serde_json::from_value(value).map_err(broken).and_then(known)
}

/// An event of a format that is known: what a later one means by its fields is not.
fn known(event: Event) -> Result<Event, crate::LineFault> {
    if event.v <= Format::NEWEST {
        // How it was written is nobody's concern behind this.
        return Ok(Event { v: event.v.min(VERSION), ..event });
    }
    let why = format!("it is of version {}, and this haft knows up to {}", event.v, Format::NEWEST);
    Err(crate::LineFault::NotAnEvent(why))
}

/// A buffer that refuses to grow over [`INLINE_MAX`], so that a long event is not written twice.
struct Short<'a>(&'a mut Vec<u8>);

impl Write for Short<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > INLINE_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reports whether a short line may go out as it is: no marker to escape and not too deep.
fn is_plain(line: &[u8]) -> bool {
    let few = memchr::memchr2_iter(b'{', b'[', line).nth(HEIGHT_MAX).is_none();
    memchr::memmem::find(line, b"$blob\"").is_none() && (few || depth(line) <= HEIGHT_MAX)
}

/// Levels of arrays and objects in a JSON text.
fn depth(json: &[u8]) -> usize {
    let (mut level, mut most, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for &byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                level += 1;
                most = most.max(level);
            }
            b'}' | b']' if !quoted => level = level.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// What a value takes in a line: bytes and levels.
#[derive(Clone, Copy, Default)]
struct Extent {
    bytes: usize,
    height: usize,
}

impl Extent {
    const fn is_inline(self) -> bool {
        self.bytes <= INLINE_MAX + 2 && self.height < HEIGHT_MAX
    }

    fn hold(&mut self, key: usize, inner: Self) {
        self.bytes += key + inner.bytes + 1;
        self.height = self.height.max(inner.height);
    }
}

/// Moves a field of an event out, in one where it is not huge: each blob is a file to be synced
/// before anybody may act on the line. From a huge one its large values go out one by one, so that
/// what is often the same (a file's content, a result) is kept once.
fn pack(field: &mut Value, blobs: &Blobs) -> Result<(), SessionError> {
    let extent = extent(field);
    if extent.is_inline() || extent.bytes > FIELD_MAX || extent.height >= HEIGHT_MAX {
        return shrink(field, blobs).map(|_| ());
    }
    escape_markers(field);
    move_out(field, blobs).map(|_| ())
}

/// What a value takes in a line, nothing moved out.
fn extent(value: &Value) -> Extent {
    let mut extent = Extent { bytes: 2, height: 0 };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => extent.bytes = 24,
        Value::String(text) => extent.bytes += escaped_len(text),
        Value::Array(items) => {
            for item in items {
                extent.hold(0, self::extent(item));
            }
            extent.height += 1;
        }
        Value::Object(fields) => {
            for (key, inner) in fields {
                extent.hold(escaped_len(key) + 3, self::extent(inner));
            }
            extent.height += 1;
        }
    }
    extent
}

/// Writes one more `$` before each key of `value`, and of all inside it, that reads as a marker.
fn escape_markers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(escape_markers),
        Value::Object(fields) => {
            escape_keys(fields);
            fields.values_mut().for_each(escape_markers);
        }
        _ => {}
    }
}

fn escape_keys(fields: &mut Map<String, Value>) {
    if fields.keys().any(|key| is_marker_like(key)) {
        let old = std::mem::take(fields);
        fields.extend(old.into_iter().map(|(key, inner)| {
            if is_marker_like(&key) { (format!("${key}"), inner) } else { (key, inner) }
        }));
    }
}

/// Moves what is too large out of `value`, innermost first.
fn shrink(value: &mut Value, blobs: &Blobs) -> Result<Extent, SessionError> {
    let mut extent = Extent { bytes: 2, height: 0 };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            return Ok(Extent { bytes: 24, height: 0 });
        }
        Value::String(text) => extent.bytes += escaped_len(text),
        Value::Array(items) => {
            for item in items {
                extent.hold(0, shrink(item, blobs)?);
            }
            extent.height += 1;
        }
        Value::Object(fields) => {
            escape_keys(fields);
            for (key, inner) in fields {
                extent.hold(escaped_len(key) + 3, shrink(inner, blobs)?);
            }
            extent.height += 1;
        }
    }
    if extent.is_inline() { Ok(extent) } else { move_out(value, blobs) }
}

/// Puts a marker in the place of a value, whose markers are escaped.
fn move_out(value: &mut Value, blobs: &Blobs) -> Result<Extent, SessionError> {
    let head = first_chars(first_text(value).unwrap_or_default());
    let blob = match *value {
        Value::String(ref text) => blobs.put(text.as_bytes(), TEXT)?,
        ref other => blobs.put(&serde_json::to_vec(other)?, JSON)?,
    };
    let bytes = 200 + escaped_len(&head);
    let mut marker = Map::new();
    marker.insert(KEY.to_owned(), serde_json::to_value(blob)?);
    marker.insert("head".to_owned(), Value::String(head));
    *value = Value::Object(marker);
    Ok(Extent { bytes, height: 2 })
}

/// Bytes of a text as JSON writes it, without the quotes.
fn escaped_len(text: &str) -> usize {
    let extra = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 1,
        0..32 => 5,
        _ => 0,
    };
    text.len() + text.bytes().map(extra).sum::<usize>()
}

/// `$blob`, `$$blob` and so on.
fn is_marker_like(key: &str) -> bool {
    key.strip_suffix("blob").is_some_and(|s| !s.is_empty() && s.bytes().all(|b| b == b'$'))
}

/// The text of a value, or the first `text` or marker's `head` inside it.
pub(crate) fn first_text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(items) => items.iter().find_map(|item| match item {
            Value::String(_) => None,
            other => first_text(other),
        }),
        Value::Object(fields) if fields.contains_key(KEY) => fields.get("head")?.as_str(),
        Value::Object(fields) => first_text(fields.get("text")?),
        _ => None,
    }
}

struct Restorer<'a> {
    blobs: &'a Blobs,
    left: u64,
}

impl Restorer<'_> {
    fn restore(&mut self, value: &mut Value, nested: usize) -> Result<(), crate::LineFault> {
        match value {
            Value::Array(items) => {
                for item in items {
                    self.restore(item, nested)?;
                }
            }
            Value::Object(fields) => {
                if let Some(marker) = fields.get_mut(KEY) {
                    *value = self.load(marker.take(), nested)?;
                    return Ok(());
                }
                if fields.keys().any(|key| is_marker_like(key)) {
                    let old = std::mem::take(fields);
                    fields.extend(old.into_iter().map(|(key, inner)| {
                        if is_marker_like(&key) {
                            (key[1..].to_owned(), inner)
                        } else {
                            (key, inner)
                        }
                    }));
                }
                for inner in fields.values_mut() {
                    self.restore(inner, nested)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn load(&mut self, marker: Value, nested: usize) -> Result<Value, crate::LineFault> {
        let broken = |why: String| crate::LineFault::NotAnEvent(why);
        let blob: Blob = serde_json::from_value(marker)
            .map_err(|error| broken(format!("the value of {KEY:?} is no blob: {error}")))?;
        let Some(left) = self.left.checked_sub(blob.len) else {
            return Err(broken(format!("its blobs come to more than {RESTORED_MAX} bytes")));
        };
        self.left = left;
        let Some(nested) = nested.checked_sub(1) else {
            return Err(broken(format!("its blobs name each other over {NESTED_MAX} levels")));
        };
        let bytes = self.blobs.get(&blob)?;
        match blob.mime.as_str() {
            TEXT => String::from_utf8(bytes)
                .map(Value::String)
                .map_err(|error| broken(format!("blob {} is no text: {error}", blob.hash))),
            JSON => {
                let mut value = serde_json::from_slice(&bytes)
                    .map_err(|error| broken(format!("blob {} is no JSON: {error}", blob.hash)))?;
                drop(bytes);
                self.restore(&mut value, nested)?;
                Ok(value)
            }
            other => Err(broken(format!("a value of type {other:?} cannot be put back"))),
        }
    }
}
