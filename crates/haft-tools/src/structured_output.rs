//! `structured_output`: takes the final answer of a run, where the provider cannot be told of its
//! schema.
//!
//! **Invariant:** its arguments are checked by the schema before it runs, like those of any tool.
//! Only the main agent gives the answer.

use haft_tool::{Cx, FinalAnswer, Tool, validate::Validator};
use haft_types::{
    Access, Env, Kind, Loading, Outcome, Place, Plan, Schema, Target, ToolError, ToolSpec,
};
use serde_json::{Map, Value, json};

/// Keywords whose schemas are referred to from the top.
const SHARED: &[&str] = &["$defs", "definitions"];
/// The argument that holds an answer that is no object.
const VALUE: &str = "value";

/// Takes a final answer.
#[derive(Clone, Debug)]
pub struct StructuredOutput {
    schema: Value,
    /// Whether the answer is the argument `value`, because arguments are objects and it is none.
    is_wrapped: bool,
}

impl StructuredOutput {
    /// As the model writes it.
    pub const NAME: &str = "structured_output";

    /// A tool that takes answers of this schema.
    ///
    /// # Errors
    /// Names what is wrong with the schema.
    pub fn new(schema: &Value) -> Result<Self, String> {
        if schema["type"] == "object" {
            Validator::new(schema)?;
            return Ok(Self { schema: schema.clone(), is_wrapped: false });
        }
        let mut inner = schema.clone();
        let mut outer = Map::new();
        if let Some(fields) = inner.as_object_mut() {
            let shared = SHARED.iter().filter_map(|key| fields.remove_entry(*key));
            outer.extend(shared.collect::<Vec<_>>());
        }
        outer.insert("type".to_owned(), json!("object"));
        outer.insert("properties".to_owned(), json!({ VALUE: inner }));
        outer.insert("required".to_owned(), json!([VALUE]));
        let schema = Value::Object(outer);
        Validator::new(&schema)?;
        Ok(Self { schema, is_wrapped: true })
    }
}

impl Tool for StructuredOutput {
    type Input = Map<String, Value>;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec {
            aliases: vec!["StructuredOutput".into()],
            input_schema: Schema::from(self.schema.clone()),
            snippet: "Give the final answer of the task".into(),
            hint: "final answer result JSON schema structured".into(),
            kind: Kind::Other,
            loading: Loading::Always,
            ..ToolSpec::new(
                Self::NAME,
                "Final answer",
                "Give the final answer of the task as arguments. Call it once, when the work is \
                 done: programs read these arguments alone, and no text. Afterwards end with a \
                 short sentence.",
            )
        }
    }

    fn plan(&self, _: &Self::Input, place: &Place) -> Result<Plan, ToolError> {
        let state = Target::State { name: "final answer".into() };
        Ok(Plan::new(place, "Giving the final answer").with(Access::Observe, state))
    }

    async fn run(&self, mut input: Self::Input, cx: &Cx) -> Result<Outcome, ToolError> {
        if !cx.agent().is_main() {
            let error = ToolError::new("only the main agent gives the final answer");
            return Err(error.hint("Say what you found in your last message."));
        }
        let value = if self.is_wrapped { input.remove(VALUE) } else { Some(Value::Object(input)) };
        cx.session().map.get::<FinalAnswer>().put(value);
        Ok(Outcome::text("The answer is taken. End with a short sentence."))
    }
}
