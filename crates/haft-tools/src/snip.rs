//! snip: drops a stretch of the model's own history from its view.
//!
//! **Invariant:** it changes what later requests hold, and nothing else: no file, no log, no result
//! that can be read at its address.

use haft_tool::{Cx, SnipReport, Tool, WithHistory, schema_of};
use haft_types::{
    Access, Env, Kind, Loading, Outcome, Place, Plan, Shape, Target, ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Most characters of a reason.
const WHY: usize = 300;

/// Drops a stretch of history.
#[derive(Clone, Copy, Debug, Default)]
pub struct Snip {}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// First call, as `out://ID`, or user:N.
    from: String,
    /// Last one.
    to: String,
    /// What came of it, in a sentence.
    why: String,
}

/// What programs read.
#[derive(Debug, Serialize, JsonSchema)]
struct Data {
    /// Messages that went.
    messages: usize,
    /// Calls that went with them.
    calls: usize,
    /// Tokens that later requests have less.
    saved: u64,
    /// Tokens that no cache has in the next request.
    uncached: u64,
}

impl Tool for Snip {
    type Input = Input;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec {
            output_schema: schema_of::<Data>(),
            aliases: vec!["Snip".into()],
            snippet: "Drop a stretch of your own history from view".into(),
            hint: "drop history context forget calls results shorten conversation".into(),
            kind: Kind::Other,
            primary: "why".into(),
            loading: Loading::Deferred,
            ..ToolSpec::new(
                "snip",
                "Drop history",
                "Drop your own messages, calls and results from one place to another out of view: \
                 dead ends, long output that you have used. The person's messages stay (user:N is \
                 their N-th), the log has all, and outputs stay readable at out://ID. What comes \
                 behind is sent uncached once, so drop much or nothing.",
            )
        }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        if input.why.trim().is_empty() {
            let error = ToolError::new("why is empty");
            return Err(error.hint("Say in a sentence what came of the stretch."));
        }
        let state = Target::State { name: "conversation".into() };
        let title = format!("Dropping {} to {}", input.from.trim(), input.to.trim());
        Ok(Plan::new(place, title).with(Access::Modify, state))
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        let Some(history) = cx.conversation().map.get::<WithHistory>().get() else {
            return Err(ToolError::new(
                "there is no conversation here to drop anything of: snip is for agents of haft",
            ));
        };
        let why: String = input.why.split_whitespace().collect::<Vec<_>>().join(" ");
        let why: String = why.chars().take(WHY).collect();
        let why = why.trim_end_matches(['.', '!', '?']);
        let (from, to) = (input.from.trim(), input.to.trim());
        let report = history.snip(cx.turn, from, to, why).map_err(ToolError::new)?;
        let SnipReport { messages, calls, saved, uncached } = report;
        let text = format!(
            "Dropped {messages} messages with {calls} calls: about {saved} tokens less from now \
             on. About {uncached} tokens behind them are sent uncached once."
        );
        let data = json!(Data { messages, calls, saved, uncached });
        let detail = Shape::Markdown { text: text.clone() };
        Ok(Outcome::text(text).with_data(data).with_detail(detail))
    }
}
