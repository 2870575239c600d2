//! `haft demo`: the main job of an agent, without a key and without a network.
//!
//! A scratch project has a test that fails. A scripted model runs the test, searches, reads, edits
//! and runs the test again, through the real pipeline on the real disk. Only the model's words are
//! fixed. Their results are not, and the verdict is taken from what really happened.

use std::{fs, path::Path, sync::Arc};

use haft_agent::Command;
use haft_config::Environment;
use haft_types::{AgentPath, Body, CallId, Event, Mode, Status, TurnEnd, When};

use super::view::{Style, View};
use crate::{
    app::{
        agent,
        base::Base,
        problem::Problems,
        session::{Core, Extensions, SessionBuilder, SessionChoice},
        slash::message,
    },
    cli::{
        Common, Demo, DemoProject, Start,
        exit::{Ending, Failure, print_view, println},
    },
};

const TEST: &str = include_str!("demo/test.sh");
const PRICE: &str = include_str!("demo/price.sh");
const SCRIPT: &str = include_str!("demo/script.jsonl");
const TASK: &str = "The test fails. Find out why and mend it.";
/// The command that the script runs, and nothing else is allowed.
const COMMAND: &str = "sh test.sh";

/// What happened, for the verdict.
#[derive(Default)]
struct Observed {
    tests: Vec<(CallId, Option<bool>)>,
    edited: bool,
    end: Option<TurnEnd>,
}

/// Runs the demo.
pub async fn run(arguments: &Demo) -> Ending {
    let scratch = tempfile::Builder::new().prefix("haft-demo-").tempdir()?;
    let project = match &arguments.folder {
        Some(folder) => folder.clone(),
        None => scratch.path().join("project"),
    };
    make(&project, arguments.project)?;
    let state = scratch.path().join("state");
    let environment = Environment { haft_home: Some(state), ..Environment::capture() };
    let plain = Style::plain(&environment);
    let script = scratch.path().join("demo.jsonl");
    fs::write(&script, SCRIPT)?;
    let common = Common {
        model: Some(format!("script:{}", script.display())),
        mode: Some(Mode::AcceptEdits),
        allow: vec![format!("Bash({COMMAND})")],
        ..Common::default()
    };
    let problems = Problems::default();
    let base = Base::load_in(environment, &common, Some(&project), &problems);
    let base = super::built(&problems, base)?;
    let core = super::open(SessionBuilder {
        env: base.env(None, false)?,
        base,
        common: &common,
        which: SessionChoice::New,
        extensions: &Extensions::default(),
    })
    .await?;
    println("A scratch project, a scripted model, and the real tools. No key, no network.")?;
    let style = Style { root: Some(core.base.place.cwd.clone()), ..plain };
    let (seen, core) = watch(core, View::new(style)).await?;
    super::close(&core).await;
    println("")?;
    match seen.verdict() {
        Ok(text) => {
            println(&format!("{text}\nTry it on your own project: haft --model anthropic/NAME"))
        }
        Err(why) => Err(Failure::Failed(format!("the demo did not come out as it should: {why}"))),
    }
}

/// Writes the scratch project.
fn make(project: &Path, variation: DemoProject) -> Result<(), Failure> {
    let busy = fs::read_dir(project).is_ok_and(|mut entries| entries.next().is_some());
    if busy {
        let text = format!("{} is not empty: give a folder that is", project.display());
        return Err(Failure::Usage(text));
    }
    fs::create_dir_all(project.join("src"))?;
    let price = match variation {
        DemoProject::Bug => PRICE.to_owned(),
        DemoProject::Fixed => PRICE.replace("-gt 10", "-ge 10"),
        DemoProject::SecondBug => PRICE.replace("full / 5", "full / 4"),
    };
    fs::write(project.join("src/price.sh"), price)?;
    fs::write(project.join("test.sh"), TEST)?;
    Ok(())
}

/// Runs the turn and shows it. Gives the session back, which is still open.
async fn watch(core: Arc<Core>, view: View) -> Result<(Observed, Arc<Core>), Failure> {
    let mut view = view.with(core.specs());
    // As a run without a terminal: nobody waits for an answer of a model.
    let start = Start { print: Some(TASK.to_owned()), ..Start::default() };
    let mut live = super::live(core, &start, "demo", &Extensions::default()).await?;
    drop(live.control.send(message(TASK, When::Steer)));
    let mut signals = agent::Signals::new()?;
    let mut seen = Observed::default();
    loop {
        let event = tokio::select! {
            event = live.feed.next() => event,
            _ = signals.received() => {
                // The turn ends with an event.
                drop(live.control.send(Command::Interrupt { agent: AgentPath::default() }));
                continue;
            }
        };
        let Some(event) = event else { break };
        seen.take(&event);
        if let Some(text) = view.event(&event) {
            print_view(&text)?;
        }
        if seen.end.is_some() {
            break;
        }
    }
    let (core, _) = live.stop().await;
    Ok((seen, core))
}

impl Observed {
    fn take(&mut self, event: &Event) {
        match &event.body {
            Body::CallStarted { call, tool, .. } if tool == "bash" => {
                self.tests.push((call.clone(), None));
            }
            Body::CallEnded { call, outcome, .. } => {
                self.edited |= outcome.status == Status::Done && !outcome.receipts.is_empty();
                let code = outcome.data.as_ref().and_then(|data| data["exit_code"].as_i64());
                if let Some(test) = self.tests.iter_mut().find(|(id, _)| id == call) {
                    test.1 = code.map(|code| code == 0);
                }
            }
            Body::TurnEnded { end, .. } => self.end = Some(end.clone()),
            _ => {}
        }
    }

    /// Whether the test failed, was mended by an edit, and passed.
    fn verdict(&self) -> Result<&'static str, String> {
        match &self.end {
            Some(TurnEnd::Done { .. }) => {}
            Some(TurnEnd::Failed { error }) => return Err(error.clone()),
            other => return Err(format!("the turn did not end by itself: {other:?}")),
        }
        let passed: Vec<Option<bool>> = self.tests.iter().map(|(_, passed)| *passed).collect();
        match passed[..] {
            [Some(true), ..] => Err("the test passed before anything was mended".into()),
            [None, ..] | [] => Err("the test could not be run".into()),
            [Some(false), .., Some(true)] if self.edited => {
                Ok("The test failed, the edit mended it, the test passes.")
            }
            _ => Err("the test still fails at the end".into()),
        }
    }
}
