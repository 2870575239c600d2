//! Arguments of models, mended towards a schema.

use serde_json::{Value, json};

use crate::repair::{meant_paths, escape_controls, imply, parse, refuse_duplicates, repair, take_texts};

/// What is JSON already is read as it is, what is mended once needs no mending, and what fits the
/// schema is not touched.
pub fn repair_of(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let read = parse(&text, "edit");
    if let Ok(plain) = serde_json::from_str::<Value>(&text) {
        assert_eq!(read.as_ref().ok(), Some(&plain), "{text}");
    }
    // Whether it says so or not, it ends.
    drop(refuse_duplicates(&text, "edit"));
    let mut input = match read {
        Ok(input) => input,
        Err(error) => {
            assert!(!error.message.is_empty() && error.message.chars().count() < 2_000, "{error}");
            return;
        }
    };
    let schema = schema();
    let fitting = fits(&input, &schema).then(|| input.clone());
    take_texts(&escape_controls(&text), &mut input, &schema, &mut Vec::new());
    if let Some(fitting) = fitting {
        assert_eq!(input, fitting, "what fits is not touched");
    }
    for name in ["edit", "KillShell", "TaskOutput"] {
        imply(name, &mut input, &schema);
    }
    let fitted = fits(&input, &schema);
    let mut notes = Vec::new();
    let Ok(once) = repair(input.clone(), &schema, "edit", &mut notes) else { return };
    assert!(notes.len() <= 10, "{notes:?}");
    if fitted {
        assert_eq!(once, input, "what fits is not touched");
    }
    let mut more = Vec::new();
    match repair(once.clone(), &schema, "edit", &mut more) {
        Ok(twice) => assert_eq!(twice, once, "what is mended needs no mending"),
        Err(error) => panic!("{once} is refused: {error}"),
    }
    for bare in meant_paths(&once, &schema) {
        assert!(shape(&bare) == shape(&once), "only texts become others: {bare}");
    }
}

/// The schema of a tool that has all that is mended.
fn schema() -> Value {
    let edits = json!({"type": "array", "items": {
        "type": "object",
        "properties": {
            "old_text": {"type": "string"},
            "new_text": {"type": "string"},
            "replace_all": {"type": "boolean"},
        },
        "required": ["old_text", "new_text"],
    }});
    let file = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "edits": edits,
            "content": {"type": "string"},
            "delete": {"type": "boolean"},
            "move_to": {"type": "string"},
        },
        "required": ["path"],
    });
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "ratio": {"type": "number"},
            "-i": {"type": "boolean"},
            "timeout_ms": {"type": "integer"},
            "action": {"type": "string"},
            "edits": edits,
            "files": {"type": "array", "items": file},
        },
        "required": ["path"],
    })
}

/// Whether a value is what the schema says, by the few words that this one has; fields of no name
/// of it and null for what may be left out do not fit.
fn fits(value: &Value, schema: &Value) -> bool {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    match (kind, value) {
        ("object", Value::Object(map)) => {
            let properties = schema["properties"].as_object();
            let required = schema["required"].as_array();
            let inner = |name: &String| properties.and_then(|all| all.get(name));
            required.is_none_or(|names| {
                names.iter().all(|name| name.as_str().is_some_and(|name| map.contains_key(name)))
            }) && map.iter().all(|(name, value)| {
                // An address in place of a path is another name of it.
                let is_url = value.as_str().is_some_and(|text| text.starts_with("file://"));
                !is_url && inner(name).is_some_and(|inner| fits(value, inner))
            })
        }
        ("array", Value::Array(items)) => items.iter().all(|item| fits(item, &schema["items"])),
        ("string", Value::String(_)) | ("boolean", Value::Bool(_)) => true,
        ("integer", Value::Number(number)) => number.is_i64() || number.is_u64(),
        ("number", Value::Number(_)) => true,
        _ => false,
    }
}

/// A value without its texts.
fn shape(value: &Value) -> Value {
    match value {
        Value::String(_) => Value::String(String::new()),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), shape(value))).collect(),
        other => other.clone(),
    }
}
