//! A form: the values of a question's fields, typed one after the other.
//!
//! **Invariant:** a value that does not fit its field is never taken. What was typed for one stays in
//! the editor until it fits.
//!
//! Fields are the properties of a flat JSON Schema (2020-12) of an object: strings, numbers, whole
//! numbers, booleans, and a choice of strings by `enum`. Others are typed as JSON.

use serde_json::{Map, Value};

/// The fields of a form, and what is filled in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Form {
    fields: Vec<Field>,
    values: Map<String, Value>,
    /// The field that is typed.
    at: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Field {
    name: String,
    about: String,
    kind: FieldKind,
    is_required: bool,
    default: Option<Value>,
}

#[derive(Clone, Debug, PartialEq)]
enum FieldKind {
    Text { least: usize, most: usize },
    Number { is_whole: bool, least: f64, most: f64 },
    YesNo,
    OneOf(Vec<String>),
    Json,
}

impl Form {
    /// The form of a schema; none where it has no fields.
    pub fn new(schema: &Value) -> Option<Self> {
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let field = |(name, schema): (&String, &Value)| Field {
            name: name.clone(),
            about: about(name, schema),
            kind: FieldKind::new(schema),
            is_required: required.contains(&&**name),
            default: schema.get("default").cloned(),
        };
        let fields: Vec<Field> = schema["properties"].as_object()?.iter().map(field).collect();
        (!fields.is_empty()).then(|| Self { fields, values: Map::new(), at: 0 })
    }

    /// What is typed next, in words; none where all is filled in.
    pub fn asks(&self) -> Option<String> {
        let field = self.fields.get(self.at)?;
        let default = match &field.default {
            Some(Value::String(text)) => format!("; enter alone: {text}"),
            Some(value) => format!("; enter alone: {value}"),
            None if field.is_required => String::new(),
            None => "; enter alone leaves it out".to_owned(),
        };
        let place = format!("{} of {}", self.at + 1, self.fields.len());
        Some(format!("{place}  {}: {}{default}", field.about, field.kind.wanted()))
    }

    /// Takes what is typed for the next field.
    ///
    /// # Errors
    /// What is wanted instead, in words.
    pub fn take(&mut self, text: &str) -> Result<(), String> {
        let Some(field) = self.fields.get(self.at) else { return Ok(()) };
        let value = match text.trim() {
            "" if field.default.is_some() => field.default.clone(),
            "" if !field.is_required => None,
            "" => return Err(format!("{} is needed: {}", field.about, field.kind.wanted())),
            typed => Some(field.kind.read(typed).ok_or_else(|| {
                format!("{typed:?} is not taken: {} is wanted", field.kind.wanted())
            })?),
        };
        match value {
            Some(value) => drop(self.values.insert(field.name.clone(), value)),
            // Also where there was one before somebody went back.
            None => drop(self.values.remove(&field.name)),
        }
        self.at += 1;
        Ok(())
    }

    /// Goes back to the field before; false where there is none.
    pub fn back(&mut self) -> bool {
        let Some(at) = self.at.checked_sub(1) else { return false };
        self.at = at;
        true
    }

    /// What is filled in, a line each.
    pub fn filled(&self) -> Vec<String> {
        let line = |field: &Field| {
            let value = self.values.get(&field.name)?;
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Some(format!("{}: {value}", field.about))
        };
        self.fields.iter().take(self.at).filter_map(line).collect()
    }

    /// The values.
    pub fn values(&self) -> Value {
        Value::Object(self.values.clone())
    }
}

impl FieldKind {
    fn new(schema: &Value) -> Self {
        let number = |name: &str, without: f64| schema[name].as_f64().unwrap_or(without);
        let length = |name: &str, without: usize| {
            schema[name].as_u64().map_or(without, |n| usize::try_from(n).unwrap_or(without))
        };
        if let Some(values) = schema["enum"].as_array() {
            let names: Option<Vec<String>> =
                values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
            return names.map_or(Self::Json, Self::OneOf);
        }
        match schema["type"].as_str() {
            Some("string") => {
                Self::Text { least: length("minLength", 0), most: length("maxLength", usize::MAX) }
            }
            Some(kind @ ("number" | "integer")) => Self::Number {
                is_whole: kind == "integer",
                least: number("minimum", f64::NEG_INFINITY),
                most: number("maximum", f64::INFINITY),
            },
            Some("boolean") => Self::YesNo,
            _ => Self::Json,
        }
    }

    /// What can be typed, in words.
    fn wanted(&self) -> String {
        match self {
            Self::Text { least: 0, most: usize::MAX } => "a text".to_owned(),
            Self::Text { least, most: usize::MAX } => {
                format!("a text of at least {least} characters")
            }
            Self::Text { least, most } => format!("a text of {least} to {most} characters"),
            Self::Number { is_whole, least, most } => {
                let what = if *is_whole { "a whole number" } else { "a number" };
                match (least.is_finite(), most.is_finite()) {
                    (true, true) => format!("{what} from {least} to {most}"),
                    (true, false) => format!("{what} from {least} on"),
                    (false, true) => format!("{what} up to {most}"),
                    (false, false) => what.to_owned(),
                }
            }
            Self::YesNo => "yes or no".to_owned(),
            Self::OneOf(names) => {
                let names: Vec<String> =
                    names.iter().zip(1..).map(|(name, at)| format!("{at} {name}")).collect();
                format!("one of {}", names.join(", "))
            }
            Self::Json => "a JSON value".to_owned(),
        }
    }

    fn read(&self, typed: &str) -> Option<Value> {
        match self {
            Self::Text { least, most } => {
                let length = typed.chars().count();
                (*least..=*most).contains(&length).then(|| typed.into())
            }
            Self::Number { is_whole, least, most } => {
                let value: Value = serde_json::from_str(typed).ok()?;
                let number = value.as_f64()?;
                let fits = number >= *least && number <= *most;
                (fits && (!is_whole || value.is_i64() || value.is_u64())).then_some(value)
            }
            Self::YesNo => match &*typed.to_lowercase() {
                "y" | "yes" | "true" => Some(true.into()),
                "n" | "no" | "false" => Some(false.into()),
                _ => None,
            },
            Self::OneOf(names) => {
                let same = names.iter().find(|name| *name == typed);
                let at =
                    || typed.parse::<usize>().ok()?.checked_sub(1).and_then(|at| names.get(at));
                same.or_else(at).map(|name| name.clone().into())
            }
            Self::Json => serde_json::from_str(typed).ok(),
        }
    }
}

/// What a field is for: its title, with its description.
fn about(name: &str, schema: &Value) -> String {
    let title = schema["title"].as_str().unwrap_or(name);
    match schema["description"].as_str() {
        Some(description) => format!("{title} ({description})"),
        None => title.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form() -> Form {
        Form::new(&json!({"type": "object", "required": ["name", "port"], "properties": {
            "name": {"type": "string", "title": "Name", "description": "of the service", "minLength": 2},
            "port": {"type": "integer", "minimum": 1, "maximum": 65535},
            "kind": {"enum": ["web", "worker"], "default": "web"},
            "open": {"type": "boolean"},
            "tags": {"type": "array"},
        }}))
        .unwrap()
    }

    #[test]
    fn values_are_taken_one_after_the_other_and_only_where_they_fit() {
        let mut form = form();
        let mut order = Vec::new();
        while let Some(asked) = form.asks() {
            let typed = |field: &str| match field {
                "kind" => vec![("other", false), ("2", true)],
                "name" => vec![("", false), ("x", false), ("api", true)],
                "open" => vec![("maybe", false), ("", true)],
                "port" => vec![("0", false), ("1.5", false), ("high", false), ("8080", true)],
                _ => vec![("[1,", false), ("[\"a\"]", true)],
            };
            let field = form.fields[form.at].name.clone();
            for (text, fits) in typed(&field) {
                assert_eq!(form.take(text).is_ok(), fits, "{asked}: {text}");
            }
            order.push(field);
        }
        order.sort();
        assert_eq!(order, ["kind", "name", "open", "port", "tags"]);
        assert_eq!(
            form.values(),
            json!({"name": "api", "port": 8080, "kind": "worker", "tags": ["a"]})
        );
        assert!(form.filled().contains(&"Name (of the service): api".to_owned()));
        assert!(form.back() && form.asks().is_some());
    }

    #[test]
    fn a_value_that_is_left_out_on_the_way_back_is_gone() {
        let mut form = Form::new(&json!({"properties": {"tag": {"type": "string"}}})).unwrap();
        form.take("old").unwrap();
        assert!(form.back() && form.take("").is_ok());
        assert_eq!(form.values(), json!({}));
    }

    #[test]
    fn what_is_wanted_is_said() {
        let mut form = form();
        let asked = std::iter::from_fn(|| {
            let asked = form.asks();
            form.at += 1;
            asked
        });
        let asked = asked.collect::<Vec<_>>().join("\n");
        for part in [
            "Name (of the service): a text of at least 2 characters",
            "port: a whole number from 1 to 65535",
            "kind: one of 1 web, 2 worker; enter alone: web",
            "open: yes or no; enter alone leaves it out",
        ] {
            assert!(asked.contains(part), "{asked}");
        }
        for none in [json!({}), json!({"properties": {}}), json!(3)] {
            assert_eq!(Form::new(&none), None);
        }
    }
}
