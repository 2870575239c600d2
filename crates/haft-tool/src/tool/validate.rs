//! Checks arguments against a tool's schema and reports the problems together: at most 20 are
//! named, and of very large arguments only the first.

use std::fmt::{self, Write as _};

use haft_types::ToolError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

/// Most problems that one answer names.
const MOST: usize = 20;

/// Most characters that are shown of an offending value.
const SHOWN: usize = 100;

/// Values from which on only one problem is looked for.
const NODES: usize = 10_000;

/// A compiled schema. Compiling takes a millisecond or so: it is done once, at the first call.
pub(crate) struct Validator(jsonschema::Validator);

/// Resolves nothing: a schema that points elsewhere is broken, never fetched.
struct Refuse;

impl jsonschema::Retrieve for Refuse {
    fn retrieve(
        &self,
        uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("it refers to {uri}, and schemas are never fetched").into())
    }
}

impl Validator {
    pub fn new(schema: &Value) -> Result<Self, String> {
        let mut schema = schema.clone();
        bound(&mut schema, 0);
        jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .with_retriever(Refuse)
            .build(&schema)
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// Names all problems, each with its path, what is there and what is wanted.
    pub fn check(&self, tool: &str, input: &Value) -> Result<(), ToolError> {
        if self.0.is_valid(input) {
            return Ok(());
        }
        let mut problems = Vec::new();
        if weight(input, NODES) == NODES {
            // All problems are found before the first is given; of a giant one is enough.
            problems.extend(self.0.validate(input).err().map(|error| problem(&error)));
            problems.push("... and perhaps more: only the first is looked for in so much".into());
        } else {
            let mut errors = self.0.iter_errors(input);
            problems.extend(errors.by_ref().take(MOST).map(|error| problem(&error)));
            let more = errors.count();
            if more > 0 {
                problems.push(format!("... and {more} more"));
            }
        }
        Err(ToolError::new(format!(
            "the arguments of {tool} are not valid:\n- {}",
            problems.join("\n- ")
        ))
        .hint("Correct what is named and call again."))
    }
}

/// Deepest nesting of a schema in which whole numbers get bounds.
const DEPTH: usize = 16;

/// Bounds whole numbers to those of 64 bits, so that one beyond them is told like any other wrong
/// value.
fn bound(schema: &mut Value, depth: usize) {
    if depth > DEPTH {
        return;
    }
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| bound(item, depth + 1)),
        Value::Object(map) => {
            map.values_mut().for_each(|value| bound(value, depth + 1));
            if map.get("type").is_some_and(|kind| kind == "integer") {
                map.entry("minimum").or_insert_with(|| i64::MIN.into());
                map.entry("maximum").or_insert_with(|| u64::MAX.into());
            }
        }
        _ => {}
    }
}

/// How many values there are inside, itself included; counts no further than `most`.
fn weight(value: &Value, most: usize) -> usize {
    let inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(map) => Box::new(map.values()),
        _ => return 1,
    };
    let mut sum = 1;
    for value in inner {
        if sum >= most {
            break;
        }
        sum += weight(value, most - sum);
    }
    sum.min(most)
}

/// One line: where, what is there, what is wanted.
fn problem(error: &jsonschema::ValidationError<'_>) -> String {
    let at = error.instance_path().to_string();
    let at = at.trim_start_matches('/').replace('/', ".");
    let got = shown(error.instance());
    match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let name = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
            format!("{name} is missing")
        }
        Kind::Type { .. } => {
            let wanted = error.masked_with("it").to_string();
            let wanted = wanted.rsplit(" is not of type").next().unwrap_or("").trim().to_owned();
            let wanted = wanted.trim_start_matches('s').trim().replace('"', "");
            format!("{} is {got}, wanted: {wanted}", field(&at))
        }
        Kind::Minimum { limit } => {
            format!("{} is {got}, wanted: a number of at least {limit}", field(&at))
        }
        Kind::Maximum { limit } => {
            format!("{} is {got}, wanted: a number of at most {limit}", field(&at))
        }
        Kind::Enum { options } if options.is_array() => {
            let all: Vec<_> = options.as_array().into_iter().flatten().map(shown).collect();
            format!("{} is {got}, wanted: one of {}", field(&at), all.join(", "))
        }
        _ => format!(
            "{} is {got}: {}",
            field(&at),
            bounded(&error.masked_with("it").to_string(), 300)
        ),
    }
}

fn field(at: &str) -> &str {
    if at.is_empty() { "the whole input" } else { at }
}

/// The offending value, short; however big it is, only its start is looked at.
pub(crate) fn shown(value: &Value) -> String {
    let mut text = Short(String::new());
    let whole = match value {
        Value::String(long) => {
            let head: String = long.chars().take(SHOWN + 1).collect();
            write!(text, "{}", Value::String(head))
        }
        value => write!(text, "{value}"),
    };
    // A writer that has enough fails; what it has by then is more than is shown.
    let _ = whole;
    bounded(&text.0, SHOWN)
}

/// Takes text until there is more than is shown, then fails.
struct Short(String);

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = (SHOWN + 1).saturating_sub(self.0.chars().count());
        self.0.extend(text.chars().take(room));
        if room == 0 { Err(fmt::Error) } else { Ok(()) }
    }
}

fn bounded(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_problem_is_named_with_what_is_there() {
        let schema = json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 0}},
            "required": ["path"],
        });
        let validator = Validator::new(&schema).unwrap();
        let error = validator.check("read", &json!({"limit": "many"})).unwrap_err();
        assert!(error.message.contains("limit is \"many\", wanted: integer"), "{}", error.message);
        assert!(error.message.contains("path is missing"), "{}", error.message);
        let error = validator.check("read", &json!({"path": "a", "limit": -1})).unwrap_err();
        assert!(error.message.contains("limit is -1, wanted: a number of at least 0"), "{error}");
        let error = validator.check("read", &json!(7)).unwrap_err();
        assert!(error.message.contains("the whole input is 7, wanted: object"), "{error}");
    }

    #[test]
    fn every_choice_is_named() {
        let choices = ["list", "output", "wait", "input", "stop"];
        let validator =
            Validator::new(&json!({"properties": {"action": {"enum": choices}}})).unwrap();
        let error = validator.check("job", &json!({"action": "kill"})).unwrap_err();
        for choice in choices {
            assert!(error.message.contains(&format!("\"{choice}\"")), "{error}");
        }
    }

    #[test]
    fn a_whole_number_has_at_most_64_bits() {
        let schema = json!({"properties": {
            "limit": {"type": "integer", "minimum": 1},
            "many": {"type": "array", "items": {"type": "integer", "maximum": 9}},
        }});
        let validator = Validator::new(&schema).unwrap();
        let error = validator.check("read", &json!({"limit": 2f64.powi(64)})).unwrap_err();
        assert!(error.message.contains("at most 18446744073709551615"), "{error}");
        assert!(validator.check("read", &json!({"limit": u64::MAX, "many": [-1]})).is_ok());
        let error = validator.check("read", &json!({"many": [10]})).unwrap_err();
        assert!(error.message.contains("many.0 is 10, wanted: a number of at most 9"), "{error}");
    }

    #[test]
    fn a_schema_that_points_elsewhere_is_never_fetched() {
        assert!(Validator::new(&json!({"$ref": "https://example.com/schema.json"})).is_err());
    }
}
