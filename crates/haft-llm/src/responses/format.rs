//! The JSON Schema that answers have to fit, as `text.format` takes it (OpenAI's API reference,
//! structured outputs).

use serde_json::{Value, json};

/// Keywords that a strict schema may have.
const STRICT: &[&str] = &[
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "definitions",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];

/// Encodes the field. A schema that the server can hold the model to is strict; another one only
/// guides it.
pub(super) fn of(schema: &Value) -> String {
    let is_strict = schema["type"] == "object" && is_strict(schema);
    json!({"type": "json_schema", "name": "answer", "strict": is_strict, "schema": schema})
        .to_string()
}

/// Reports whether a schema is of the part of JSON Schema that can be strict: each object is
/// closed, and all of its fields are required.
fn is_strict(schema: &Value) -> bool {
    let Some(fields) = schema.as_object() else { return false };
    let all = |value: &Value| match value {
        Value::Object(named) => named.values().all(is_strict),
        Value::Array(items) => items.iter().all(is_strict),
        _ => false,
    };
    let is_taken = |(key, value): (&String, &Value)| match key.as_str() {
        "properties" | "$defs" | "definitions" | "anyOf" => all(value),
        "items" => is_strict(value),
        key => STRICT.contains(&key),
    };
    let is_object = schema["type"] == "object" || fields.contains_key("properties");
    let is_required = |name: &String| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name))
    };
    let names = schema["properties"].as_object();
    let is_closed = schema["additionalProperties"] == false
        && names.is_some_and(|names| names.keys().all(is_required));
    fields.iter().all(is_taken) && (!is_object || is_closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_strict_where_the_server_can_hold_to_it() {
        let text = json!({"type": "string"});
        let closed = |inner: Value| {
            json!({"type": "object", "properties": {"a": inner}, "required": ["a"],
                "additionalProperties": false})
        };
        let open = json!({"type": "object", "properties": {"a": text}, "required": ["a"]});
        let optional = json!({"type": "object", "properties": {"a": text},
            "additionalProperties": false});
        let cases = [
            (closed(text.clone()), true),
            (closed(closed(text.clone())), true),
            (closed(json!({"type": "array", "items": closed(text.clone())})), true),
            (closed(json!({"anyOf": [text, {"type": "null"}]})), true),
            (text.clone(), false),
            (open.clone(), false),
            (optional, false),
            (closed(open.clone()), false),
            (closed(json!({"type": "array", "items": open})), false),
            (closed(json!({"not": text})), false),
            (json!(true), false),
        ];
        for (schema, strict) in cases {
            let encoded: Value = serde_json::from_str(&of(&schema)).unwrap();
            assert_eq!(encoded["strict"], strict, "{schema}");
            assert_eq!(encoded["schema"], schema);
        }
    }
}
