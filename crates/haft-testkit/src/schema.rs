//! JSON Schemas that documents promise, and whether what programs print is what they say.

use haft_tool::validate::Validator;
use serde_json::Value;

/// A schema, read once.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    /// Its text as a value.
    pub text: Value,
}

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// When it is none.
    pub fn new(text: &str) -> Result<Self, String> {
        let text: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let validator = Validator::new(&text)?;
        Ok(Self { validator, text })
    }

    /// Reports whether a value is as it says.
    pub fn fits(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }
}

/// The value without one of its fields, and with another type of it, for each field at each depth; with
/// where that is.
pub fn damaged(value: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    damage(value, "", &|inner| inner, &mut all);
    all
}

fn damage(value: &Value, at: &str, whole: &dyn Fn(Value) -> Value, all: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let at = format!("{at}/{name}");
                let mut less = fields.clone();
                less.remove(name);
                all.push((format!("{at} removed"), whole(Value::Object(less))));
                let with = |new: Value| {
                    let mut other = fields.clone();
                    other.insert(name.clone(), new);
                    whole(Value::Object(other))
                };
                all.push((format!("{at} retyped"), with(retyped(field))));
                damage(field, &at, &with, all);
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                let with = |new: Value| {
                    let mut other = items.clone();
                    other[number] = new;
                    whole(Value::Array(other))
                };
                all.push((format!("{at}/{number} retyped"), with(retyped(item))));
                damage(item, &format!("{at}/{number}"), &with, all);
            }
        }
        _ => {}
    }
}

/// A value of a type that nothing has.
fn retyped(value: &Value) -> Value {
    match value {
        Value::Bool(_) => "true".into(),
        _ => true.into(),
    }
}
