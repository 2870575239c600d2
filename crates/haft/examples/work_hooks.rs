//! A tool that loads the text of a command, as commands and skills do: hooks of the person see the
//! prompt that it expands, and the command line that its text has.

use haft_tool::{Cx, Expansion, InvokedBy, SkillCommand, Tool, WorkHooks};
use haft_types::{Access, Env, Outcome, Place, Plan, Target, ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

struct Load;

#[derive(Deserialize, JsonSchema)]
struct Input {
    /// The command, and what stands behind its name.
    line: String,
}

impl Tool for Load {
    type Input = Input;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec::new("load", "Load", "Loads the text of a command.")
    }

    fn plan(&self, _: &Input, place: &Place) -> Result<Plan, ToolError> {
        let texts = Target::State { name: "texts".into() };
        Ok(Plan::new(place, "Loading").with(Access::Observe, texts))
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        let (name, arguments) = input.line.split_once(' ').unwrap_or((&input.line, ""));
        let mut text = format!("Look at {arguments}.");
        // Where there are no hooks, none says anything.
        let Some(hooks) = cx.service::<dyn WorkHooks>() else { return Ok(Outcome::text(text)) };
        let expansion = Expansion {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            source: "project".to_owned(),
            prompt: format!("/{}", input.line),
            ..Expansion::default()
        };
        let said = hooks.expands(&expansion).await;
        if let Some(why) = said.refused {
            return Err(ToolError::new(format!("a hook refused the command {name}: {why}")));
        }
        let command = SkillCommand {
            command: format!("git log -1 -- {arguments}"),
            id: cx.call.to_string(),
            name: name.to_owned(),
            source: "project".to_owned(),
            invoked_by: InvokedBy::Model,
        };
        if let Some(why) = hooks.skill_command(&command).await {
            text.push_str(&format!("\n[a hook refused its command: {why}]"));
        }
        text.extend(said.context.iter().map(|words| format!("\n{words}")));
        Ok(Outcome::text(text).with_data(json!({"name": name})))
    }
}

fn main() -> std::process::ExitCode {
    haft::Runner::new().tool(Load).run()
}
