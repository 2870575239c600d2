//! `think`: the model writes down what it thinks.
//!
//! **Invariant:** it touches nothing. The record has the words, and people see them only where they
//! look for them.

use haft_tool::{Cx, Tool, schema_of};
use haft_types::{Env, Kind, Loading, Outcome, Place, Plan, Shape, ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Most bytes of a thought.
const THOUGHT: usize = 50_000;

/// Thinks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Think {}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// What to think through.
    thought: String,
}

/// What programs read.
#[derive(Debug, Serialize, JsonSchema)]
struct Data {
    /// Bytes of the thought.
    bytes: usize,
}

impl Tool for Think {
    type Input = Input;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec {
            output_schema: schema_of::<Data>(),
            aliases: vec!["Think".into()],
            snippet: "Think something through in words; nothing is done".into(),
            hint: "think reason reflect consider thought scratchpad".into(),
            kind: Kind::Think,
            loading: Loading::Deferred,
            ..ToolSpec::new(
                "think",
                "Think",
                "Think something through before you act: weigh what results mean, check a plan \
                 against the rules. It does nothing and tells you nothing new.",
            )
        }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        let bytes = input.thought.len();
        if input.thought.trim().is_empty() {
            return Err(ToolError::new("thought is empty").hint("Write what you think, or go on."));
        }
        if bytes > THOUGHT {
            let text = format!("thought has {bytes} bytes; at most {THOUGHT} are taken");
            return Err(ToolError::new(text).hint("Think of one thing at a time."));
        }
        Ok(Plan::new(place, "Thinking"))
    }

    async fn run(&self, input: Input, _: &Cx) -> Result<Outcome, ToolError> {
        let data = json!(Data { bytes: input.thought.len() });
        let detail = Shape::Thought { text: input.thought };
        Ok(Outcome::text("Noted. Go on.").with_data(data).with_detail(detail))
    }
}
