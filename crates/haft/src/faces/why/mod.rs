//! `haft why`: what would be decided about a call, part by part, and why. Nothing is run, asked or
//! recorded.
//!
//! **Invariant:** the answer comes from the pipeline's own stages, never from a copy of them. In a
//! batch every line gets one line, whatever it holds.

mod batch;

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    sync::Arc,
};

use haft_config::{HookEvent, Layer, Loaded, RuleCase};
use haft_policy::{Anchors, Mode, Policy, own_name};
use haft_tool::Dispatcher;
use haft_types::{Place, ToolUse};
use serde_json::{Value, json};

use self::batch::Line;
use crate::{
    app::{
        explain::{Answer, answered, request, tried},
        hooks::{self, Ready},
        rules::{readable, restricting, rules},
        session::{Core, Extensions, SessionBuilder, SessionChoice},
    },
    cli::{
        Why,
        exit::{Ending, Failure, print_data, println},
    },
};

/// Most bytes of one line of a batch.
const LINE: u64 = 16 << 20;
/// Most bytes of a file of rules.
const FILE: u64 = 4 << 20;

/// Explains one call, or each line of standard input.
pub async fn run(arguments: &Why, extensions: &Extensions) -> Ending {
    let mut base = super::base(&arguments.common, None)?;
    base.every_tool = true;
    let tests = match &arguments.rules {
        Some(file) => {
            let given = read_rules(file)?;
            let policy = Policy::new(&rules(&given), base.policy.anchors().clone());
            base.policy = restricting(policy, &base.loaded);
            readable(&base.policy, &given)?;
            // The rules of the settings do not count, nor what they are tried with.
            base.loaded.rules = given.rules;
            base.loaded.tests.clear();
            given.tests
        }
        None => Vec::new(),
    };
    let env = base.env(None, true)?;
    let common = &arguments.common;
    let which = SessionChoice::IfNeeded;
    let core = super::open(SessionBuilder { base, common, which, env, extensions }).await?;
    let why = Whys { dispatcher: core.dispatcher.clone(), hooks: core.base.hooks.clone() };
    why.check(&tests).await?;
    let ending = if arguments.batch { why.batch(&core).await } else { why.one(arguments).await };
    super::close(&core).await;
    ending
}

/// What a file of rules holds; it may be a pipe.
fn read_rules(path: &Path) -> Result<Loaded, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::Usage(format!("the rules in {}: {error}", path.display()))
    };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| wrong(&error))?;
    file.take(FILE + 1).read_to_string(&mut text).map_err(|error| wrong(&error))?;
    if text.len() as u64 > FILE {
        return Err(wrong(&format!("the file is over {FILE} bytes; shorten it")));
    }
    let given = haft_config::rule_file(path, &text);
    let problems: Vec<String> = given.problems.iter().map(ToString::to_string).collect();
    if problems.is_empty() { Ok(given) } else { Err(Failure::Usage(problems.join("\n"))) }
}

struct Whys {
    dispatcher: Arc<Dispatcher>,
    /// The hooks of the settings, of which none is asked.
    hooks: Vec<Arc<Ready>>,
}

impl Whys {
    async fn one(&self, arguments: &Why) -> Ending {
        let request = match (&arguments.command, &arguments.tool, &arguments.input) {
            (Some(command), None, None) => request("bash", json!({ "command": command })),
            (None, Some(tool), Some(input)) => {
                let id = self.dispatcher.session.next_call();
                ToolUse::from_wire(id.clone(), id.0.to_string(), tool.clone(), input.clone())
            }
            _ => {
                let text = "give a COMMAND, or --tool NAME with --input JSON, or --batch";
                return Err(Failure::Usage(text.to_owned()));
            }
        };
        let answer = self.answer(&self.dispatcher, &request).await;
        if arguments.json {
            return print_data(&format!("{}\n", haft_render::json(&answer.json().to_string())));
        }
        answer
            .text(&self.dispatcher.place)
            .lines()
            .try_for_each(|line| println(&haft_render::exact(line)))
    }

    /// Answers each line of standard input with one line.
    async fn batch(&self, core: &Core) -> Ending {
        let mut input = BufReader::new(std::io::stdin());
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut input).take(LINE).read_until(b'\n', &mut line);
            let failed = |error| Failure::Failed(format!("standard input: {error}"));
            if read.map_err(failed)? == 0 {
                return Ok(());
            }
            let whole = line.ends_with(b"\n") || (line.len() as u64) < LINE;
            if !whole {
                input.skip_until(b'\n').map_err(failed)?;
            }
            let answer = if whole {
                self.line(core, &line).await
            } else {
                Err(format!("the line is longer than {LINE} bytes"))
            };
            let answer = answer.unwrap_or_else(|error| Answer::unread(error).json());
            print_data(&format!("{}\n", haft_render::json(&answer.to_string())))?;
            std::io::stdout().flush().map_err(|error| Failure::Failed(error.to_string()))?;
        }
    }

    async fn line(&self, core: &Core, line: &[u8]) -> Result<Value, String> {
        let line = Line::read(line)?;
        let request = match (line.command, line.tool, line.input) {
            (Some(command), None, None) => request("bash", json!({ "command": command })),
            (None, tool, Some(input)) => request(tool.as_deref().unwrap_or("bash"), input),
            (Some(_), ..) => return Err("give command, or tool and input, not both".to_owned()),
            (None, _, None) => return Err("give command, or tool and input".to_owned()),
        };
        let mut dispatcher = (*self.dispatcher).clone();
        if let Some(cwd) = &line.cwd {
            dispatcher.place = Arc::new(place(&dispatcher.place, cwd)?);
        }
        let mode = match &line.mode {
            Some(mode) => mode.parse::<Mode>().map_err(|error| error.to_string())?,
            None => core.base.mode,
        };
        let policy = match &line.rules {
            Some(rules) => {
                let anchors = anchors(core.base.policy.anchors(), &dispatcher.place);
                restricting(Policy::new(rules, anchors), &core.base.loaded)
            }
            None => core.base.policy.clone(),
        };
        dispatcher.session.set_permissions(|judge| {
            judge.policy = policy.clone();
            judge.mode = mode;
        });
        Ok(self.answer(&Arc::new(dispatcher), &request).await.json())
    }

    /// Holds a file of rules to the cases that it carries.
    async fn check(&self, tests: &[(Layer, String, RuleCase)]) -> Result<(), Failure> {
        let wrong = tried(&self.dispatcher, tests.iter().map(|(.., case)| case)).await;
        let told = |(index, why): &(usize, String)| {
            format!("{}: test {}: {why}", tests[*index].1, index + 1)
        };
        let all: Vec<String> = wrong.iter().map(told).collect();
        if all.is_empty() { Ok(()) } else { Err(Failure::Usage(all.join("\n"))) }
    }

    async fn answer(&self, dispatcher: &Arc<Dispatcher>, request: &ToolUse) -> Answer {
        let names = hooks::names(own_name(&request.name));
        let before =
            |hook: &&Arc<Ready>| hook.entry.event == HookEvent::PreToolUse && hook.means(&names);
        let hooks = self.hooks.iter().filter(before).map(|hook| hook.entry.place.clone());
        Answer { hooks: hooks.collect(), ..answered(dispatcher, request).await }
    }
}

/// The same place with this folder as the workspace.
fn place(place: &Place, cwd: &str) -> Result<Place, String> {
    let cwd = place.path(cwd).map_err(|error| error.to_string())?;
    Ok(Place { roots: vec![cwd.clone()], cwd, ..place.clone() })
}

/// Where rules start from there.
fn anchors(anchors: &Anchors, place: &Place) -> Anchors {
    let (cwd, roots) = (place.cwd.clone(), place.roots.clone());
    Anchors { project: cwd.clone(), cwd, roots, ..anchors.clone() }
}
