//! A tool whose definition depends on where it is used: on the model, and on who is there.

use haft_tool::{Cx, Tool};
use haft_types::{Env, Outcome, Place, Plan, ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

struct Surroundings;

#[derive(Deserialize, JsonSchema)]
struct Input {}

impl Tool for Surroundings {
    type Input = Input;

    fn spec(&self, env: &Env) -> ToolSpec {
        let sees = if env.vision { "sees images" } else { "sees no images" };
        let there = if env.interactive { "someone can answer" } else { "nobody can answer" };
        let text = format!("Made for model {:?}, which {sees}; {there}.", env.model);
        ToolSpec::new("surroundings", "Surroundings", text)
    }

    fn plan(&self, _input: &Input, place: &Place) -> Result<Plan, ToolError> {
        Ok(Plan::new(place, "Looking around"))
    }

    async fn run(&self, _input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        Ok(Outcome::text(format!("The folder is {}.", cx.place.cwd)))
    }
}

fn main() -> std::process::ExitCode {
    haft::Runner::new().tool(Surroundings).run()
}
