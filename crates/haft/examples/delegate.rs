//! haft with a tool that gives tasks to other agents of its session, each with a model of its own.
//!
//! It shows the seams that such a feature needs: a service of the session, agents by `AgentBuilder`, and
//! events that name their agent.

use std::sync::{Arc, Weak};

use futures::future::{BoxFuture, join_all};
use haft::{AgentBuilder, Core};
use haft_agent::Input;
use haft_tool::{Cx, Tool};
use haft_types::{
    Access, AgentPath, Body, Env, Mode, Outcome, Part, Place, Plan, Target, ToolError, ToolSpec,
    TurnEnd, When,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Clone, Deserialize, JsonSchema)]
struct Task {
    /// Name of the agent, one word.
    name: String,
    /// The model that it uses.
    model: String,
    /// What it is to do.
    prompt: String,
    /// Its mode, where that is to be narrower than the session's: plan, ask.
    mode: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Tasks {
    /// The tasks, which are done side by side.
    tasks: Vec<Task>,
}

/// Runs agents of a session.
trait Agents: Send + Sync {
    /// Does a task to its end; gives the text of its answers.
    fn run(&self, task: Task) -> BoxFuture<'static, Result<String, String>>;
}

struct OfSession(Weak<Core>);

impl Agents for OfSession {
    fn run(&self, task: Task) -> BoxFuture<'static, Result<String, String>> {
        let core = self.0.upgrade();
        Box::pin(async move {
            let core = core.ok_or("the session is over")?;
            let path = AgentPath::default().child(&task.name);
            let mut builder = AgentBuilder::child(&core, path.clone());
            builder.model = Some(task.model);
            builder.mode = task
                .mode
                .map(|mode| mode.parse::<Mode>())
                .transpose()
                .map_err(|error| error.to_string())?;
            let mut feed = core.bus.subscribe();
            let (handle, _) = builder.start().await.map_err(|error| error.to_string())?;
            handle.send(Input::User { when: When::Steer, parts: vec![Part::text(task.prompt)] });
            let mut text = String::new();
            let end = loop {
                let Some(event) = feed.next().await else { break None };
                match &event.body {
                    _ if event.agent != path => {}
                    Body::AnswerPart { part: Part::Text { text: piece }, .. } => {
                        text.push_str(piece);
                    }
                    Body::TurnEnded { end, .. } => break Some(end.clone()),
                    _ => {}
                }
            };
            handle.close().await;
            match end {
                Some(TurnEnd::Done { .. }) => Ok(text),
                other => Err(format!("{other:?}")),
            }
        })
    }
}

struct Delegate;

impl Tool for Delegate {
    type Input = Tasks;

    fn spec(&self, _env: &Env) -> ToolSpec {
        ToolSpec::new("delegate", "Delegate", "Gives tasks to other agents, side by side.")
    }

    fn plan(&self, input: &Tasks, place: &Place) -> Result<Plan, ToolError> {
        let names: Vec<&str> = input.tasks.iter().map(|task| &*task.name).collect();
        let state = Target::State { name: format!("agents {}", names.join(", ")).into() };
        Ok(Plan::new(place, "Delegating").with(Access::Modify, state))
    }

    async fn run(&self, input: Tasks, cx: &Cx) -> Result<Outcome, ToolError> {
        let agents = cx.session().services.required::<dyn Agents>()?;
        let runs = input.tasks.into_iter().map(|task| {
            let (agents, name) = (agents.clone(), task.name.clone());
            async move { (name, agents.run(task).await) }
        });
        let all = join_all(runs).await;
        let line = |(name, done): &(String, Result<String, String>)| match done {
            Ok(text) => format!("{name}: {text}"),
            Err(why) => format!("{name} failed: {why}"),
        };
        let text = all.iter().map(line).collect::<Vec<_>>().join("\n");
        let failed = all.iter().filter(|(_, done)| done.is_err()).count();
        Ok(Outcome::text(text).with_data(json!({ "failed": failed })))
    }
}

fn main() -> std::process::ExitCode {
    haft::Runner::new().tool(Delegate).service::<dyn Agents>(|core| Arc::new(OfSession(core))).run()
}
