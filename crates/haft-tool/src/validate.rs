//! Checks arguments against a tool's schema and names every problem at once.

use haft_types::ToolError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

/// Most problems that one answer names.
const MOST: usize = 20;

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
        jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .with_retriever(Refuse)
            .build(schema)
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// Names all problems, each with its path, what is there and what is wanted.
    pub fn check(&self, tool: &str, input: &Value) -> Result<(), ToolError> {
        if self.0.is_valid(input) {
            return Ok(());
        }
        let mut errors = self.0.iter_errors(input);
        let mut problems: Vec<String> =
            errors.by_ref().take(MOST).map(|error| problem(&error)).collect();
        let more = errors.count();
        if more > 0 {
            problems.push(format!("... and {more} more"));
        }
        Err(ToolError::new(format!(
            "the arguments of {tool} are not valid:\n- {}",
            problems.join("\n- ")
        ))
        .hint("Correct what is named and call again."))
    }
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
            let wanted = error.to_string();
            let wanted = wanted.rsplit(" is not of type").next().unwrap_or("").trim().to_owned();
            let wanted = wanted.trim_start_matches('s').trim().replace('"', "");
            format!("{} is {got}, wanted: {wanted}", field(&at))
        }
        _ => format!("{} is {got}: {}", field(&at), bounded(&error.to_string(), 300)),
    }
}

fn field(at: &str) -> &str {
    if at.is_empty() { "the whole input" } else { at }
}

/// The offending value, short.
fn shown(value: &Value) -> String {
    bounded(&value.to_string(), 100)
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
        assert!(error.message.contains("limit is -1"), "{}", error.message);
        let error = validator.check("read", &json!(7)).unwrap_err();
        assert!(error.message.contains("the whole input is 7, wanted: object"), "{error}");
    }

    #[test]
    fn a_schema_that_points_elsewhere_is_never_fetched() {
        assert!(Validator::new(&json!({"$ref": "https://example.com/schema.json"})).is_err());
    }
}
