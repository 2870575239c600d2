//! JSON Schemas for models and programs, in the one form that every wire takes.
//!
//! **Invariant:** no references, no `$schema`, no titles, no integer formats, no nullable unions.
//! An optional field is expressed by leaving it out of `required`.

use haft_types::Schema;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

/// The normalised schema (draft 2020-12) of a type, made on first use.
pub fn schema_of<T: JsonSchema>() -> Schema {
    Schema::later(make::<T>)
}

fn make<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    normalise(&mut schema);
    if let Value::Object(map) = &mut schema
        && map.get("type").and_then(Value::as_str) == Some("object")
    {
        // What the type is, is said by the tool's own description.
        map.shift_remove("description");
        map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

/// Brings a schema, and all inside it, into the common form.
pub(crate) fn normalise(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("title").is_some_and(Value::is_string) {
                map.shift_remove("title");
            }
            for key in ["$schema", "format"] {
                map.shift_remove(key);
            }
            if map.get("default").is_some_and(Value::is_null) {
                map.shift_remove("default");
            }
            drop_null(map);
            for (key, value) in map.iter_mut() {
                if key == "properties" {
                    // A property may be called `title` or `format`: only its schema is touched.
                    value.as_object_mut().into_iter().flatten().for_each(|(_, v)| normalise(v));
                } else if key != "enum" && key != "const" && key != "default" {
                    normalise(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        _ => {}
    }
}

/// Takes `null` out of a union of types.
fn drop_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            map.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = map.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = &choices[..] {
            let only = only.clone();
            map.shift_remove("anyOf");
            for (key, value) in only {
                map.entry(key).or_insert(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// For programmers, not for models.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Input {
        /// A file.
        path: String,
        /// How many.
        limit: Option<u32>,
        /// Nested.
        inner: Option<Inner>,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Chosen {
        how: Option<Form>,
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Form {
        Fast,
        Well,
    }

    #[test]
    fn an_optional_choice_has_no_null_among_its_values() {
        assert_eq!(
            schema_of::<Chosen>()["properties"]["how"],
            json!({"type": "string", "enum": ["fast", "well"]})
        );
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Inner {
        title: String,
    }

    #[test]
    fn a_schema_has_no_nulls_formats_titles_or_references() {
        assert_eq!(
            *schema_of::<Input>(),
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "A file."},
                    "limit": {"type": "integer", "minimum": 0, "description": "How many."},
                    "inner": {
                        "description": "Nested.",
                        "type": "object",
                        "properties": {"title": {"type": "string"}},
                        "required": ["title"],
                    },
                },
                "required": ["path"],
            })
        );
    }
}
