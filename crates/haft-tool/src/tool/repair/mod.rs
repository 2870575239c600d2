//! Repairs usual mistakes of models in arguments, before validation, and reports each repair.
//!
//! **Invariant:** the public schema is never widened: repairs go towards it, and a value that
//! already fits is never touched. Nothing is guessed between two meanings.

mod duplicates;
mod names;
mod texts;

use haft_types::ToolError;
use serde_json::{Map, Value};

pub(crate) use self::{
    duplicates::refuse as refuse_duplicates, names::imply, texts::take as take_texts,
};

/// Deepest nesting of a schema that is followed.
const DEPTH: usize = 16;

/// Most notes of one call, and most names in one of them.
const NOTES: usize = 10;

/// Fields that hold paths.
const PATHS: &[&str] = &["path", "cwd", "move_to"];
/// Fields that alone may stand for the object that they are in.
const NAMING: &[&str] = &["label", "question"];
/// Fields that hold names which may be a number alone.
const NUMBERED: &[&str] = &["add_blocked_by", "add_blocks", "blocked_by", "id", "job", "task"];

/// Parses arguments that were not JSON when they streamed in.
///
/// # Errors
/// Says where the JSON is wrong; a call that was cut off is never run with part of its arguments.
pub(crate) fn parse(raw: &str, tool: &str) -> Result<Value, ToolError> {
    let text = escape_controls(raw);
    serde_json::from_str(&text).map_err(|error| {
        let what = if error.is_eof() { "are cut off" } else { "are not JSON" };
        let near = near(&text, error.line(), error.column());
        // The parser says only that an escape ends early.
        let half = if error.to_string().contains("hex escape") {
            "; \\ud800 to \\udfff are half a character each (a surrogate) and stand in pairs"
        } else {
            ""
        };
        ToolError::new(format!("the arguments of {tool} {what}: {error}{near}{half}"))
            .hint("Nothing was run. Send the whole arguments as one JSON object.")
    })
}

/// Reports whether arguments are JSON, once the control characters that models often leave bare are
/// escaped.
pub fn is_json(raw: &str) -> bool {
    let text = escape_controls(raw);
    serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok()
}

/// The text around a fault, so that the message holds the offending value.
fn near(text: &str, line: usize, column: usize) -> String {
    let Some(line) = text.lines().nth(line.saturating_sub(1)) else { return String::new() };
    let shown: String = line.chars().skip(column.saturating_sub(30)).take(60).collect();
    if shown.is_empty() { String::new() } else { format!(", near {shown:?}") }
}

/// Escapes raw line feeds, tabs and returns inside JSON strings, which models often leave bare.
pub(crate) fn escape_controls(raw: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        match c {
            '\n' if inside => out.push_str("\\n"),
            '\r' if inside => out.push_str("\\r"),
            '\t' if inside => out.push_str("\\t"),
            _ => out.push(c),
        }
        inside ^= c == '"' && !escaped;
        escaped = inside && c == '\\' && !escaped;
    }
    out
}

/// What is found while arguments are mended.
#[derive(Default)]
struct RepairNotes {
    /// Lines for the model.
    notes: Vec<String>,
    /// Fields that were given several values under several names, each with what was given.
    twice: Vec<(String, String)>,
    /// A field of one edit beside the list of them, where it belongs to none.
    beside: Option<String>,
    /// A name that is there twice in JSON that came as text.
    duplicate: Option<String>,
}

/// Mends `input` towards `schema`; `notes` gets one line for whatever the model should know.
///
/// # Errors
/// Names the fields that were given different values under different names, with the values.
pub(crate) fn repair(
    input: Value,
    schema: &Value,
    tool: &str,
    notes: &mut Vec<String>,
) -> Result<Value, ToolError> {
    let mut told = RepairNotes::default();
    let mended = mend(input, schema, "", &mut told, 0);
    notes.append(&mut told.notes);
    told.refusal(tool).map_or(Ok(mended), Err)
}

fn mend(value: Value, schema: &Value, at: &str, told: &mut RepairNotes, depth: usize) -> Value {
    if depth > DEPTH {
        return value;
    }
    match (kind(schema), value) {
        ("object", Value::Object(map)) => Value::Object(object(map, schema, at, told, depth)),
        ("object" | "array", Value::String(text)) => match nested(&text, kind(schema)) {
            Some((written, inner)) => {
                if let Some(name) = duplicates::first(&written) {
                    told.duplicate.get_or_insert(name);
                }
                mend(inner, schema, at, told, depth + 1)
            }
            None => named(text, schema),
        },
        ("array", Value::Array(items)) => {
            let inner = schema.get("items").unwrap_or(&Value::Null);
            let mended = items.into_iter().enumerate().map(|(index, item)| {
                mend(item, inner, &join(at, &index.to_string()), told, depth + 1)
            });
            Value::Array(mended.collect())
        }
        ("array", one @ Value::Object(_)) => {
            let items = Value::Array(vec![one]);
            mend(items, schema, at, told, depth + 1)
        }
        (kind @ ("integer" | "number"), Value::String(text)) => match number(&text) {
            Some(Value::Number(number)) if kind == "integer" => whole(number),
            Some(number) => number,
            None => Value::String(text),
        },
        ("integer", Value::Number(number)) => whole(number),
        ("string", Value::Number(number)) if is_numbered(at) && number.is_u64() => {
            Value::String(number.to_string())
        }
        ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::String(text),
        },
        (_, value) => value,
    }
}

/// Whether the field at this place holds names that may be a number alone; in a list of them, too.
fn is_numbered(at: &str) -> bool {
    let mut names = at.rsplit('.').skip_while(|name| name.bytes().all(|b| b.is_ascii_digit()));
    names.next().is_some_and(|name| NUMBERED.contains(&name))
}

/// A text in place of an object that needs just one text, of a name that cannot mean another thing.
fn named(text: String, schema: &Value) -> Value {
    let needed = schema["required"].as_array().map(Vec::as_slice);
    match needed {
        Some([Value::String(name)]) if NAMING.contains(&&**name) => {
            Value::Object(Map::from_iter([(name.clone(), Value::String(text))]))
        }
        _ => Value::String(text),
    }
}

fn kind(schema: &Value) -> &str {
    schema.get("type").and_then(Value::as_str).unwrap_or("")
}

/// What the note of arguments that the tool does not know begins with.
const UNKNOWN: &str = "ignored unknown arguments: ";

/// Adds a note while there are few: a hostile call could make a million.
fn note(notes: &mut Vec<String>, text: impl FnOnce() -> String) {
    if notes.len() < NOTES {
        notes.push(text());
    }
}

/// A value as a note shows it.
fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(120).collect();
    let more = if shown.len() < text.len() { "..." } else { "" };
    format!("{shown:?}{more}")
}

fn join(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

/// Arguments that came as text with the object in it: the text and the object.
pub(crate) fn within_text(input: &Value) -> Option<(String, Value)> {
    nested(input.as_str()?, "object")
}

/// JSON inside a string, of the wanted kind: as it is written, and read.
fn nested(text: &str, wanted: &str) -> Option<(String, Value)> {
    let text = escape_controls(text);
    let value: Value = serde_json::from_str(&text).ok()?;
    let fits = match &value {
        Value::Object(_) => true,
        Value::Array(_) => wanted == "array",
        _ => false,
    };
    fits.then_some((text, value))
}

fn number(text: &str) -> Option<Value> {
    let text = text.trim();
    let whole = text.parse::<i64>().ok().map(Value::from);
    whole.or_else(|| text.parse::<f64>().ok().filter(|n| n.is_finite()).map(Value::from))
}

/// `10.0` and `1e3` are integers for a model.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be whole and to have at most 64 bits"
)]
fn whole(number: serde_json::Number) -> Value {
    const END: f64 = 18_446_744_073_709_551_616.0;
    match number.as_f64() {
        Some(n) if !number.is_i64() && !number.is_u64() && n.fract() == 0.0 => match n {
            0.0..END => Value::from(n as u64),
            n if (-END / 2.0..0.0).contains(&n) => Value::from(n as i64),
            _ => Value::Number(number),
        },
        _ => Value::Number(number),
    }
}

fn object(
    mut map: Map<String, Value>,
    schema: &Value,
    at: &str,
    told: &mut RepairNotes,
    depth: usize,
) -> Map<String, Value> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return map };
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|other| other == name))
    };
    let open = schema.get("additionalProperties").is_some_and(|more| more != &Value::Bool(false));
    names::take(&mut map, properties, open, at, told);
    let mut unknown = Vec::new();
    let mut mended = Map::new();
    for (name, value) in map {
        match properties.get(&name) {
            Some(_) if value.is_null() && !required(&name) => {}
            Some(inner) => {
                let at = join(at, &name);
                let mut value = mend(value, inner, &at, told, depth + 1);
                if PATHS.contains(&name.as_str()) && kind(inner) == "string" {
                    value = from_url(value, &at, &mut told.notes);
                }
                mended.insert(name, value);
            }
            None if open => drop(mended.insert(name, value)),
            None if unknown.len() < NOTES => {
                unknown.push(join(at, &name.chars().take(60).collect::<String>()));
            }
            None => {}
        }
    }
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        match told.notes.iter_mut().find(|note| note.starts_with(UNKNOWN)) {
            Some(note) => *note = format!("{note}, {names}"),
            None => note(&mut told.notes, || format!("{UNKNOWN}{names}")),
        }
    }
    mended
}

/// A path written as a URL cannot mean anything else.
fn from_url(value: Value, at: &str, notes: &mut Vec<String>) -> Value {
    let Value::String(text) = &value else { return value };
    match text.strip_prefix("file://").filter(|rest| rest.starts_with('/')) {
        Some(path) => {
            note(notes, || format!("{at} {} was taken as {}", quoted(text), quoted(path)));
            Value::String(path.to_owned())
        }
        None => value,
    }
}

/// Gives another way to write a path; none where there is none.
pub(crate) type Way<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The arguments with their paths in each other way in which they may be meant: with nothing around
/// them, and in the other Unicode forms.
///
/// A file may well have such a name, so these are only meant where nothing has the written one.
pub(crate) fn meant_paths(input: &Value, schema: &Value) -> Vec<Value> {
    let form =
        |nth: usize| move |text: &str| haft_text::names::other_forms(text).into_iter().nth(nth);
    let ways: [Way<'_>; 3] = [&bare, &form(0), &form(1)];
    let inputs =
        ways.into_iter().filter_map(|way| with_paths(input, schema, way, &|_| String::new()));
    inputs.map(|(input, _)| input).collect()
}

/// The paths among arguments.
pub(crate) fn paths(input: &Value, schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    find_paths(input, schema, "", &|text| Some(text.to_owned()), &mut found, 0);
    found.into_iter().map(|(_, text)| text).collect()
}

/// Arguments with their paths written in another way, and a note for each: `why` goes behind what it
/// was taken as. None where no path has one.
pub(crate) fn with_paths(
    input: &Value,
    schema: &Value,
    way: Way<'_>,
    why: &dyn Fn(&str) -> String,
) -> Option<(Value, Vec<String>)> {
    let mut found = Vec::new();
    find_paths(input, schema, "", way, &mut found, 0);
    if found.is_empty() {
        return None;
    }
    let (mut mended, mut notes) = (input.clone(), Vec::new());
    for (pointer, text) in found {
        let Some(place) = mended.pointer_mut(&pointer) else { continue };
        let at = pointer.trim_start_matches('/').replace('/', ".");
        let written = place.as_str().unwrap_or_default();
        note(&mut notes, || {
            let (written, taken, why) = (quoted(written), quoted(&text), why(&text));
            format!("{at} {written} is not there and was taken as {taken}{why}")
        });
        *place = Value::String(text);
    }
    Some((mended, notes))
}

fn find_paths(
    value: &Value,
    schema: &Value,
    at: &str,
    way: Way<'_>,
    found: &mut Vec<(String, String)>,
    depth: usize,
) {
    if depth > DEPTH {
        return;
    }
    match value {
        Value::Object(map) => {
            let inner = schema.get("properties");
            for (name, value) in map {
                let Some(inner) = inner.and_then(|inner| inner.get(name)) else { continue };
                let at = format!("{at}/{name}");
                match value {
                    Value::String(text) if PATHS.contains(&name.as_str()) => {
                        found.extend(way(text).map(|meant| (at, meant)));
                    }
                    value => find_paths(value, inner, &at, way, found, depth + 1),
                }
            }
        }
        Value::Array(items) => {
            let inner = schema.get("items").unwrap_or(&Value::Null);
            for (index, item) in items.iter().enumerate() {
                find_paths(item, inner, &format!("{at}/{index}"), way, found, depth + 1);
            }
        }
        _ => {}
    }
}

/// A path without what models put around it: `@`, quotes, odd spaces, and with the characters that
/// answers show as `\u{..}`; none where there is nothing of the kind.
pub(crate) fn bare(text: &str) -> Option<String> {
    let mut bare = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    for quote in ['"', '\'', '`'] {
        if bare.len() > 1 && bare.starts_with(quote) && bare.ends_with(quote) {
            bare = &bare[1..bare.len() - 1];
        }
    }
    let bare = bare.strip_prefix("file://").filter(|rest| rest.starts_with('/')).unwrap_or(bare);
    let bare = bare.strip_prefix('@').filter(|rest| !rest.is_empty()).unwrap_or(bare);
    let odd = |c: char| c != ' ' && c != '\u{3000}' && c.is_whitespace() && !c.is_control();
    let mended: String = bare.chars().map(|c| if odd(c) { ' ' } else { c }).collect();
    let mended = unescaped(&mended).unwrap_or(mended);
    (mended != text).then_some(mended)
}

/// A text with the characters for which `\u{..}` stands where answers write that: those that cannot
/// be seen, and those that go on the letter before. None where it has none.
pub(crate) fn unescaped(text: &str) -> Option<String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("\\u{") {
        out.push_str(before);
        let character = after.split_once('}').and_then(|(code, behind)| {
            let is_code =
                (1..=6).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_hexdigit());
            let code = u32::from_str_radix(code, 16).ok().filter(|_| is_code)?;
            let shown = |c: &char| *c != '\0' && *c != ' ' && !c.is_ascii_graphic();
            Some((char::from_u32(code).filter(shown)?, behind))
        });
        if let Some((character, behind)) = character {
            out.push(character);
            rest = behind;
        } else {
            out.push_str("\\u{");
            rest = after;
        }
    }
    out.push_str(rest);
    (out != text).then_some(out)
}

#[cfg(test)]
mod tests;
