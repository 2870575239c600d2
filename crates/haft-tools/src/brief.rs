//! `brief`: words for the person while the work goes on.
//!
//! **Invariant:** the turn does not end by it, and nothing waits for it.

use haft_tool::{Cx, Tool, WithHistory, schema_of};
use haft_types::{
    Access, Env, Kind, Loading, Outcome, Place, Plan, Shape, Target, ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Most characters of a message.
const TEXT: usize = 4_000;

/// Tells the person something.
#[derive(Clone, Copy, Debug, Default)]
pub struct Brief {}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// Markdown.
    text: String,
}

/// What programs read.
#[derive(Debug, Serialize, JsonSchema)]
struct Data {
    /// What the person was told.
    text: String,
}

impl Tool for Brief {
    type Input = Input;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec {
            output_schema: schema_of::<Data>(),
            aliases: vec!["Brief".into(), "SendUserMessage".into()],
            snippet: "Tell the person something while you go on working".into(),
            hint: "message tell inform person user progress status update notify".into(),
            kind: Kind::Other,
            primary: "text".into(),
            loading: Loading::Deferred,
            ..ToolSpec::new(
                "brief",
                "Message",
                "Tell the person something and go on working: what you found, what takes long. \
                 They may not answer; to ask, use ask_user. What ends your work is your answer, \
                 not a message.",
            )
        }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        if input.text.trim().is_empty() {
            return Err(ToolError::new("text is empty").hint("Say what the person should know."));
        }
        let characters = input.text.chars().count();
        if characters > TEXT {
            let text = format!("text has {characters} characters; at most {TEXT} are taken");
            return Err(
                ToolError::new(text).hint("Say the main thing, or write the rest to a file.")
            );
        }
        // Those of one answer come in its order.
        let messages = Target::State { name: "messages".into() };
        Ok(Plan::new(place, "Telling the person").with(Access::Modify, messages))
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        if cx.conversation().map.get::<WithHistory>().get().is_none() {
            let error = ToolError::new(
                "no model is at work here that could go on: brief is for agents of haft",
            );
            return Err(error.hint("Nobody was told. Say it in your answer."));
        }
        let text = input.text.trim().to_owned();
        let detail = Shape::Message { text: text.clone() };
        let data = json!(Data { text });
        Ok(Outcome::text("The person was told. Go on.").with_data(data).with_detail(detail))
    }
}
