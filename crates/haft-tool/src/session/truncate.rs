//! Truncates values to a size, so that a bounded value is bounded for everyone who gets it.
//!
//! **Invariant:** only long lists lose their last items, and long texts their end, which a mark in
//! them says. Fields that describe the shape of the value still describe what is left of it. The
//! size is that of the value as JSON, in bytes.

use std::io;

use haft_types::{Cut, CutBy, Detail, Shape};
use serde_json::{Map, Value};

/// Bytes of data and of details for each character of a tool's budget: as many as one takes at most.
pub(crate) const BYTES: u64 = 4;

/// Bytes of data that are left for fields beside a list.
const BESIDE: usize = 4096;

/// The remaining room for a list in the data of an answer, in bytes of its JSON.
///
/// The data for programs is bounded like the text for the model. A tool that ends its lists where
/// there is no more room can say so in the data, and where to continue.
#[derive(Debug)]
pub struct Room(usize);

impl Room {
    /// For a tool whose budget is so many characters; a nested call gives everything.
    pub(crate) fn new(chars: u64, nested: bool) -> Self {
        let bytes = usize::try_from(chars.saturating_mul(BYTES)).unwrap_or(usize::MAX);
        Self(if nested { usize::MAX } else { bytes.saturating_sub(BESIDE) })
    }

    /// Takes room for an item; false where there is none, and then for every later item too.
    pub fn take(&mut self, item: &impl serde::Serialize) -> bool {
        let left = self.0.checked_sub(size(item) + 1);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

/// Texts up to this many bytes are never shortened: names, paths, words of a list.
const SHORT: usize = 200;

/// Shortens long texts and lists in a value until it has about `room` bytes as JSON, or only
/// required fields are left. Reports whether it was too long.
pub fn shorten_data(value: &mut Value, room: usize) -> bool {
    let is_long = !fits(value, room);
    if is_long {
        cut(value, room);
    }
    is_long
}

/// Shortens a value until it has about `room` bytes; gives its size before, where it was too long.
/// One that is made of nothing but names becomes null.
pub(crate) fn shorten(value: &mut Value, room: usize) -> Option<usize> {
    if fits(value, room) {
        return None;
    }
    let before = size(value);
    cut(value, room);
    if !fits(value, room.saturating_mul(2)) {
        *value = Value::Null;
    }
    Some(before)
}

/// Shortens what people see, by its shape, and says so in its cut; reports whether it was too long.
pub(crate) fn shorten_detail(detail: &mut Detail, room: usize) -> bool {
    if fits(&*detail, room) {
        return false;
    }
    let (total, by) = measure(&detail.shape);
    drop_last(&mut detail.shape, room);
    let short = serde_json::to_value(&detail.shape).ok().and_then(|mut value| {
        shorten(&mut value, room.saturating_sub(CUT));
        serde_json::from_value(value).ok()
    });
    // A shape that is not what its JSON says has no shorter form but to say that it is too long.
    let text = || Shape::Markdown { text: "[too long to be shown]".to_owned() };
    detail.shape = short.unwrap_or_else(text);
    let shown = measure(&detail.shape).0;
    match &mut detail.cut {
        Some(known) if known.by == by => {
            known.to = known.to.min((known.from + shown).saturating_sub(1));
        }
        Some(_) => {}
        none => *none = Some(Cut { from: 1, to: shown, total: Some(total), by, ..Cut::default() }),
    }
    true
}

/// Drops the items of a list that have no room in any case, before the list is made a value, which
/// takes many times its memory.
fn drop_last(shape: &mut Shape, room: usize) {
    fn fitting<T: serde::Serialize>(items: &mut Vec<T>, mut left: usize) {
        let fits = |item: &&T| {
            let size = size(item);
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        };
        // One that is too long by itself is shortened, not lost.
        let fitting = items.iter().take_while(fits).count().max(1);
        items.truncate(fitting);
    }
    match shape {
        Shape::Entries { entries, .. } => fitting(entries, room),
        Shape::Matches { files, .. } => fitting(files, room),
        Shape::Tree { nodes } => fitting(nodes, room),
        Shape::Table { rows, .. } => fitting(rows, room),
        Shape::Todo { items } => fitting(items, room),
        _ => {}
    }
}

/// How much there is of a shape, and what is counted.
fn measure(shape: &Shape) -> (u64, CutBy) {
    let (count, by) = match shape {
        Shape::Entries { entries, .. } => (entries.len(), CutBy::Items),
        // Matching lines where they are shown, else files: as they are counted where they are cut.
        Shape::Matches { files, .. } => {
            let lines = files.iter().flat_map(|file| &file.lines);
            match lines.filter(|line| !line.spans.is_empty()).count() {
                0 => (files.len(), CutBy::Items),
                lines => (lines, CutBy::Items),
            }
        }
        Shape::Tree { nodes } => (nodes.len(), CutBy::Items),
        Shape::Table { rows, .. } => (rows.len(), CutBy::Items),
        Shape::Todo { items } => (items.len(), CutBy::Items),
        Shape::Many { details } => (details.len(), CutBy::Items),
        Shape::File { text, .. }
        | Shape::Markdown { text }
        | Shape::Thought { text }
        | Shape::Message { text }
        | Shape::Progress { text, .. }
        | Shape::Terminal { output: text, .. } => (text.chars().count(), CutBy::Chars),
        other => (size(other), CutBy::Bytes),
    };
    (count as u64, by)
}

/// The beginning of a text in at most `most` bytes, whole characters only.
pub(crate) fn head(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn cut(value: &mut Value, room: usize) {
    match value {
        Value::String(text) if text.len() > SHORT => {
            let kept = head_as_json(text, room.saturating_sub(MARK).max(SHORT / 2)).len();
            if kept < text.len() {
                let left = text.len() - kept;
                text.truncate(kept);
                text.extend([format!("[... {left} bytes left out ...]")]);
            }
        }
        Value::Array(items) => {
            let mut left = room.saturating_sub(2);
            let fitting = items
                .iter()
                .take_while(|item| {
                    let size = size(item) + 1;
                    let fits = size <= left;
                    left = left.saturating_sub(size);
                    fits
                })
                .count();
            // One item that is too long by itself is shortened, not lost.
            items.truncate(fitting.max(1));
            if fitting == 0
                && let Some(first) = items.first_mut()
            {
                cut(first, room.saturating_sub(2));
            }
        }
        Value::Object(map) => {
            if map.len() > FIELDS {
                cut_names(map, room);
            }
            let mut sizes: Vec<(usize, String)> =
                map.iter().map(|(name, value)| (size(value), name.clone())).collect();
            sizes.sort_unstable();
            let names: usize = map.keys().map(|name| name.len() + 4).sum();
            let (mut left, mut fields) = (room.saturating_sub(names + 2), sizes.len());
            // The smallest first: what they leave of their share is for the longer ones.
            for (size_of, name) in sizes {
                let share = left / fields.max(1);
                fields -= 1;
                if size_of > share
                    && let Some(value) = map.get_mut(&name)
                {
                    cut(value, share);
                }
                let now = if size_of > share { share } else { size_of };
                left = left.saturating_sub(now);
            }
        }
        _ => {}
    }
}

/// Most fields of an object that are all kept; with more it is a list by name.
const FIELDS: usize = 64;

fn cut_names(map: &mut Map<String, Value>, room: usize) {
    let mut left = room.saturating_sub(2);
    map.retain(|name, value| {
        let size = name.len() + 4 + size(value);
        let fits = size <= left;
        left = if fits { left - size } else { 0 };
        fits
    });
}

/// The beginning of a text that has at most `most` bytes inside a JSON text.
fn head_as_json(text: &str, most: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            c if (*c as u32) < 0x20 => 6,
            c => c.len_utf8(),
        };
        used > most
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// Room for what a shortened text says of itself.
const MARK: usize = 48;

/// Room for what is said of a cut.
const CUT: usize = 160;

pub(crate) fn fits(value: &impl serde::Serialize, room: usize) -> bool {
    serde_json::to_writer(Counter { count: 0, most: room }, value).is_ok()
}

pub(crate) fn size(value: &impl serde::Serialize) -> usize {
    let mut counter = Counter { count: 0, most: usize::MAX };
    // A writer that takes everything does not fail; what cannot be JSON counts as far as it goes.
    drop(serde_json::to_writer(&mut counter, value));
    counter.count
}

/// Counts bytes, and fails where there are too many.
struct Counter {
    count: usize,
    most: usize,
}

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.count += bytes.len();
        if self.count > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
