//! The JSON Schema that answers have to fit, as `output_config.format` takes it (Anthropic's API
//! reference, structured outputs).
//!
//! The server takes a part of JSON Schema alone. Keywords that it would refuse are left out: who
//! asked checks the answer by the whole schema.

use serde_json::{Map, Value, json};

/// What a server may refuse, and that it is asked without then.
pub(super) const OPTIONAL: &[&str] = &["output_config.format.schema", "output_config.format"];

/// Keywords that limit numbers, texts and lists, which the server refuses.
const REFUSED: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "$schema",
    "$id",
];
/// Keywords whose values are schemas by their names.
const BY_NAME: &[&str] = &["properties", "$defs", "definitions"];
/// Keywords whose values are data, in which nothing is a keyword.
const DATA: &[&str] = &["enum", "const", "default", "examples", "required"];

/// Encodes the field.
pub(super) fn of(schema: &Value) -> String {
    json!({"type": "json_schema", "schema": taken(schema)}).to_string()
}

/// Gives the schema as the server takes it.
fn taken(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => Value::Object(of_object(fields)),
        Value::Array(items) => items.iter().map(taken).collect(),
        other => other.clone(),
    }
}

fn of_object(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    for (key, value) in fields.iter().filter(|(key, _)| !REFUSED.contains(&&***key)) {
        let value = match value {
            Value::Object(named) if BY_NAME.contains(&&**key) => {
                named.iter().map(|(name, schema)| (name.clone(), taken(schema))).collect()
            }
            _ if DATA.contains(&&**key) => value.clone(),
            _ => taken(value),
        };
        out.insert(key.clone(), value);
    }
    // An object that is left open is refused; one that is closed fits an open schema, too.
    if fields.contains_key("properties") && !fields.contains_key("additionalProperties") {
        out.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_refuses_is_left_out_and_nothing_else() {
        let schema = json!({"type": "object", "$schema": "x", "required": ["minimum"],
            "properties": {"minimum": {"type": "integer", "minimum": 1},
                "open": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 9}},
                "list": {"type": "array", "maxItems": 3, "items": {"type": "object",
                    "properties": {}, "additionalProperties": false}}},
            "$defs": {"maxLength": {"enum": [{"maxLength": 1}], "maxLength": 2}}});
        let taken: Value = serde_json::from_str(&of(&schema)).unwrap();
        assert_eq!(
            taken,
            json!({"type": "json_schema", "schema": {"type": "object",
            "required": ["minimum"], "additionalProperties": false,
            "properties": {"minimum": {"type": "integer"},
                "open": {"type": "object", "additionalProperties": {"type": "string"}},
                "list": {"type": "array", "items": {"type": "object",
                    "properties": {}, "additionalProperties": false}}},
            "$defs": {"maxLength": {"enum": [{"maxLength": 1}]}}}})
        );
    }
}
