//! Takes the characters of a JSON value as the text of a file, where a value was sent in place of a
//! string that holds it.
//!
//! **Invariant:** the text is the value's own part of the arguments, character for character. It is
//! never printed anew: order, blanks, escapes and digits stay. `null` is no text.

use std::collections::HashMap;

use serde_json::{Value, value::RawValue};

use super::{DEPTH, join, kind, nested, note};

/// Fields that hold the text of a whole file.
const TEXTS: &[&str] = &["content"];

/// The list of files, whose fields may stand beside it for one file.
const FILES: &str = "files";

/// Puts the characters of a value in its place where a text is wanted; `raw` is the JSON that
/// `input` was read from. `notes` gets one line for each.
pub(crate) fn take(raw: &str, input: &mut Value, schema: &Value, notes: &mut Vec<String>) {
    visit(raw, input, schema, "", notes, 0);
}

fn visit(
    raw: &str,
    input: &mut Value,
    schema: &Value,
    at: &str,
    notes: &mut Vec<String>,
    depth: usize,
) {
    // Most calls have nothing of the kind, and are not read a second time.
    if depth > DEPTH || !concerns(input, schema, depth) {
        return;
    }
    let items = schema.get("items").unwrap_or(&Value::Null);
    match (kind(schema), &mut *input) {
        ("object", Value::Object(map)) => {
            let Ok(parts) = serde_json::from_str::<HashMap<String, &RawValue>>(raw) else { return };
            for (name, value) in map {
                let Some(part) = parts.get(name) else { continue };
                let at = join(at, name);
                if is_text(schema, name) {
                    as_sent(part, value, &at, notes);
                } else if let Some(inner) = field(schema, name) {
                    visit(part.get(), value, inner, &at, notes, depth + 1);
                }
            }
        }
        ("array", Value::Array(values)) => {
            let Ok(parts) = serde_json::from_str::<Vec<&RawValue>>(raw) else { return };
            for (index, (value, part)) in values.iter_mut().zip(parts).enumerate() {
                visit(part.get(), value, items, &join(at, &index.to_string()), notes, depth + 1);
            }
        }
        ("array", Value::Object(_)) => visit(raw, input, items, at, notes, depth + 1),
        ("object" | "array", Value::String(text)) => {
            // What is there twice in it is refused, which takes the text.
            let Some((written, mut inner)) = nested(text, kind(schema)) else { return };
            if super::duplicates::first(&written).is_none() {
                visit(&written, &mut inner, schema, at, notes, depth + 1);
                *input = inner;
            }
        }
        _ => {}
    }
}

fn as_sent(part: &RawValue, value: &mut Value, at: &str, notes: &mut Vec<String>) {
    let Some(what) = described(value) else { return };
    note(notes, || {
        format!("{at} was {what}, not a string: the characters of its JSON are the text, unchanged")
    });
    *value = Value::String(part.get().to_owned());
}

/// What a value is that can stand for a text; none where it is one, or nothing.
const fn described(value: &Value) -> Option<&'static str> {
    match value {
        Value::Object(_) => Some("an object"),
        Value::Array(_) => Some("an array"),
        Value::Number(_) => Some("a number"),
        Value::Bool(true) => Some("true"),
        Value::Bool(false) => Some("false"),
        Value::String(_) | Value::Null => None,
    }
}

fn field<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

/// Reports whether a field of an object is the text of a file: its own, or of the one file that
/// it names without a list.
fn is_text(schema: &Value, name: &str) -> bool {
    let of_one = || field(schema, FILES).and_then(|files| field(files.get("items")?, name));
    TEXTS.contains(&name)
        && field(schema, name).or_else(of_one).is_some_and(|text| kind(text) == "string")
}

/// Reports whether something inside is to be taken as it was sent, or cannot be told yet.
fn concerns(input: &Value, schema: &Value, depth: usize) -> bool {
    let items = schema.get("items").unwrap_or(&Value::Null);
    let within =
        |value: &Value, schema: &Value| depth < DEPTH && concerns(value, schema, depth + 1);
    match (kind(schema), input) {
        ("object", Value::Object(map)) => map.iter().any(|(name, value)| {
            if is_text(schema, name) {
                return described(value).is_some();
            }
            field(schema, name).is_some_and(|inner| within(value, inner))
        }),
        ("array", Value::Array(values)) => values.iter().any(|value| within(value, items)),
        ("array", Value::Object(_)) => within(input, items),
        ("object" | "array", Value::String(_)) => has_texts(schema, depth),
        _ => false,
    }
}

fn has_texts(schema: &Value, depth: usize) -> bool {
    let fields = schema.get("properties").and_then(Value::as_object);
    let inner = schema.get("items").filter(|_| depth < DEPTH);
    TEXTS.iter().any(|name| is_text(schema, name))
        || inner.is_some_and(|inner| has_texts(inner, depth + 1))
        || fields.is_some_and(|fields| {
            depth < DEPTH && fields.values().any(|inner| has_texts(inner, depth + 1))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        let file = json!({"type": "object", "properties": {
            "path": {"type": "string"}, "content": {"type": "string"},
        }});
        json!({"type": "object", "properties": {
            "path": {"type": "string"}, "files": {"type": "array", "items": file},
        }})
    }

    fn taken(raw: &str, schema: &Value) -> (Value, Vec<String>) {
        let (mut input, mut notes) = (serde_json::from_str(raw).unwrap(), Vec::new());
        take(raw, &mut input, schema, &mut notes);
        (input, notes)
    }

    #[test]
    fn every_value_but_null_is_its_own_characters() {
        let schema = json!({"type": "object", "properties": {"content": {"type": "string"}}});
        for (value, what) in [
            ("{ \"b\" : 1.50,\n \"a\":[ ] }", "an object"),
            ("{}", "an object"),
            ("[1,\t\"\\u00e9\\/\", null]", "an array"),
            ("-0.0", "a number"),
            ("1E+5", "a number"),
            ("123456789012345678901234567890", "a number"),
            ("true", "true"),
            ("false", "false"),
        ] {
            let raw = format!("{{\"path\":\"a\", \"content\" :  {value}\n}}");
            let (input, notes) = taken(&raw, &schema);
            assert_eq!(input["content"], value, "{raw}");
            assert_eq!(notes.len(), 1, "{notes:?}");
            assert!(
                notes[0].starts_with(&format!("content was {what}, not a string")),
                "{notes:?}"
            );
        }
        for value in ["null", "\"{}\"", "\"\""] {
            let raw = format!("{{\"content\":{value}}}");
            let (input, notes) = taken(&raw, &schema);
            assert_eq!(input, serde_json::from_str::<Value>(&raw).unwrap());
            assert_eq!(notes, [""; 0]);
        }
    }

    #[test]
    fn it_is_found_wherever_a_file_is_named() {
        for raw in [
            r#"{"files": [{"path": "a", "content": "x"}, {"path": "b", "content": {"k": 1.0}}]}"#,
            r#"{"files": {"path": "b", "content": {"k": 1.0}}}"#,
            r#"{"path": "b", "content": {"k": 1.0}}"#,
            r#"{"files": "[{\"path\": \"b\", \"content\": {\"k\": 1.0}}]"}"#,
            r#""{\"path\": \"b\", \"content\": {\"k\": 1.0}}""#,
        ] {
            let (input, notes) = taken(raw, &schema());
            let last = input.pointer("/files/1/content").or_else(|| {
                ["/files/0/content", "/files/content", "/content"]
                    .iter()
                    .find_map(|pointer| input.pointer(pointer))
            });
            assert_eq!(last, Some(&json!(r#"{"k": 1.0}"#)), "{raw}");
            assert_eq!(notes.len(), 1, "{raw}: {notes:?}");
        }
    }

    #[test]
    fn other_fields_stay_as_they_are() {
        for raw in [r#"{"path": {"a": 1}}"#, r#"{"files": [{"path": 1}]}"#, "[]", "{\"content\":"] {
            let mut input = serde_json::from_str(raw).unwrap_or_default();
            let (was, mut notes) = (Value::clone(&input), Vec::new());
            take(raw, &mut input, &schema(), &mut notes);
            assert_eq!((input, notes.len()), (was, 0), "{raw}");
        }
    }

    #[test]
    fn many_files_are_read_once() {
        let many = 20_000;
        let file = format!("{{\"path\":\"a\",\"content\":{{\"k\":\"{}\"}}}}", "x".repeat(100));
        let raw = format!("{{\"files\":[{}]}}", vec![file; many].join(","));
        let (input, notes) = taken(&raw, &schema());
        assert_eq!(notes.len(), crate::tool::repair::NOTES);
        assert!(input.pointer(&format!("/files/{}/content", many - 1)).unwrap().is_string());
    }
}
