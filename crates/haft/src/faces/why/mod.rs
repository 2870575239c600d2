//! `haft why`: what would be decided about a call, part by part, and why. Nothing is run, asked or
//! recorded.
//!
//! **Invariant:** the answer is that of the pipeline's own stages, never a copy of them; in a batch
//! every line gets one line, whatever it holds.

mod batch;

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

use haft_config::{HookEvent, Layer, Loaded, RuleCase};
use haft_policy::{Anchors, Ask, Mode, Part, Policy, Verdict, own_name};
use haft_tool::{AnyTool, Dispatcher, Judgement};
use haft_types::{Access, Effect, HostPath, Origin, Place, Plan, Target, ToolSpec, ToolUse};
use serde_json::{Value, json};
use url::Url;

use self::batch::Line;
use crate::{
    app::{
        hooks::{self, Ready},
        rules::rules,
        session::{Base, Core, SessionChoice, readable, restricting},
    },
    cli::{
        Why,
        exit::{Ending, Failure, print_data, println},
    },
};

/// Longest that the paths of one call are looked up.
const LOOK_UP: Duration = Duration::from_secs(5);
/// Most bytes of one line of a batch.
const LINE: u64 = 16 << 20;
/// Most bytes of a file of rules.
const FILE: u64 = 4 << 20;

/// Explains one call, or each line of standard input.
pub async fn run(arguments: &Why, more: &[Arc<dyn AnyTool>]) -> Ending {
    let mut base = Base::load(&arguments.common, None)?;
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
    let env = base.env(None, false)?;
    let core = Core::open(base, &arguments.common, SessionChoice::IfNeeded, &env, more).await?;
    let why = Whys { dispatcher: core.dispatcher.clone(), hooks: core.base.hooks.clone() };
    why.check(&tests).await?;
    let ending = if arguments.batch { why.batch(&core).await } else { why.one(arguments).await };
    core.close().await;
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

/// What is said about one call.
struct Answer {
    /// Whether it could be read.
    parsed: bool,
    read_only: bool,
    decision: Verdict,
    rule: Option<String>,
    reason: String,
    parts: Vec<PartReport>,
    /// Where the hooks stand that would be asked about the call, and may decide otherwise.
    hooks: Vec<String>,
}

/// What is said about one command of a script.
struct PartReport {
    part: Part,
    decision: Verdict,
    rule: Option<String>,
    reason: String,
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

/// What is said about a call that waits for an answer.
pub async fn explained(dispatcher: &Arc<Dispatcher>, request: &ToolUse) -> String {
    answered(dispatcher, request).await.text(&dispatcher.place)
}

async fn answered(dispatcher: &Arc<Dispatcher>, request: &ToolUse) -> Answer {
    if let Some((tool, plan)) = stand_in(dispatcher, request) {
        return absent(dispatcher, request, &tool, plan);
    }
    match dispatcher.judge(request, LOOK_UP).await {
        Ok(judgement) => Answer::of(judgement),
        Err(error) => Answer::unread(error.message),
    }
}

/// Tries the rules with cases; those that come out otherwise, by their numbers from 0, and how.
pub async fn tried(
    dispatcher: &Arc<Dispatcher>,
    cases: impl Iterator<Item = &RuleCase>,
) -> Vec<(usize, String)> {
    let mut wrong = Vec::new();
    for (index, case) in cases.enumerate() {
        if let Err(why) = try_case(dispatcher, case).await {
            wrong.push((index, why));
        }
    }
    wrong
}

async fn try_case(dispatcher: &Arc<Dispatcher>, case: &RuleCase) -> Result<(), String> {
    let request = match (&case.command, &case.input) {
        (Some(command), _) => request("bash", json!({ "command": command })),
        (None, Some(input)) => request(case.tool.as_deref().unwrap_or("bash"), input.clone()),
        (None, None) => return Err("wanted is command, or tool and input".to_owned()),
    };
    let expect = match case.expect.as_str() {
        "allow" => Verdict::Allow,
        "ask" => Verdict::Ask,
        "deny" => Verdict::Deny,
        other => return Err(format!("expect is {other:?}, wanted: allow, ask or deny")),
    };
    let before = dispatcher.session.judge().mode;
    if let Some(mode) = &case.mode {
        let mode = mode.parse::<Mode>().map_err(|error| error.to_string())?;
        dispatcher.session.set_permissions(|judge| judge.mode = mode);
    }
    let answer = answered(dispatcher, &request).await;
    dispatcher.session.set_permissions(|judge| judge.mode = before);
    if answer.decision == expect {
        return Ok(());
    }
    let Answer { decision, reason, .. } = answer;
    let what = request.input.unwrap_or_default();
    Err(format!("{what} is to {expect}, but the rules {decision}: {reason}"))
}

fn request(tool: &str, input: Value) -> ToolUse {
    ToolUse::new(haft_types::CallId("why".into()), tool, input)
}

/// A tool that haft knows by name and that is not there now, such as one of a server, with what its
/// calls do.
fn stand_in(dispatcher: &Dispatcher, request: &ToolUse) -> Option<(ToolSpec, Plan)> {
    let name = own_name(&request.name);
    if dispatcher.tools.spec(name).is_some() {
        return None;
    }
    let place = &dispatcher.place;
    let plan = Plan::new(place, format!("Calling {name}"));
    let spec = ToolSpec::new(name.to_owned(), "", "");
    // Not shown because it is denied as a whole: so is the call, whatever its arguments.
    if dispatcher.session.judge().policy.hides(&spec) {
        return Some((spec, plan.with(Access::Destroy, Target::Anything)));
    }
    let input = request.input.as_ref()?.as_object()?;
    if let Some((server, tool)) = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"))
    {
        let origin = Origin::Mcp { server: server.to_owned(), tool: tool.to_owned() };
        return Some((ToolSpec { origin, ..spec }, plan.with(Access::Destroy, Target::Anything)));
    }
    let plan = match name {
        "web_fetch" => {
            let url = Url::parse(input.get("url")?.as_str()?).ok()?;
            plan.with(Access::Observe, Target::Net { host: url.host_str()?.to_owned() })
        }
        "web_search" => {
            plan.with(Access::Observe, Target::Net { host: "the search provider".to_owned() })
        }
        "agent" | "skill" => plan.with(Access::Destroy, Target::Anything),
        _ => return None,
    };
    Some((spec, plan))
}

/// What the rules say about a call of such a tool.
fn absent(dispatcher: &Dispatcher, request: &ToolUse, tool: &ToolSpec, plan: Plan) -> Answer {
    let judge = dispatcher.session.judge();
    let input = request.input.clone().unwrap_or_default();
    let ruling = judge.policy.decide(&Ask {
        tool,
        input: &input,
        plan: &plan,
        real: &vec![None; plan.effects.len()],
        agent: &dispatcher.agent,
        mode: judge.mode,
        place: &dispatcher.place,
        grants: &judge.grants,
        walls: None,
        veil: None,
    });
    Answer::of(Judgement { plan, ruling, script: None, parts: Vec::new() })
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

impl Answer {
    fn of(judgement: Judgement) -> Self {
        let Judgement { plan, ruling, script, parts } = judgement;
        let told = parts.into_iter().map(|(part, ruling)| PartReport {
            part,
            decision: ruling.verdict,
            rule: ruling.rule,
            reason: ruling.reason,
        });
        let looks = |effect: &Effect| {
            effect.access == Access::Observe || matches!(effect.target, Target::State { .. })
        };
        Self {
            parsed: script.as_ref().is_none_or(|script| script.fault.is_none()),
            read_only: plan.effects.iter().all(looks) && script.is_none_or(|one| one.read_only),
            decision: ruling.verdict,
            rule: ruling.rule,
            reason: ruling.reason,
            parts: told.collect(),
            hooks: Vec::new(),
        }
    }

    /// Of a call that cannot be read nothing is known: it would be refused, or asked about.
    fn unread(reason: String) -> Self {
        let (decision, rule) = (Verdict::Ask, None);
        let (parts, hooks) = (Vec::new(), Vec::new());
        Self { parsed: false, read_only: false, decision, rule, reason, parts, hooks }
    }

    fn json(&self) -> Value {
        let effect = |effect: &Effect| {
            let (access, target) = words(effect);
            json!({ "access": access, "target": target })
        };
        let part = |told: &PartReport| {
            json!({
                "text": told.part.text,
                "words": told.part.words,
                "read_only": told.part.read_only,
                "effects": told.part.effects.iter().map(effect).collect::<Vec<_>>(),
                "what": told.part.why,
                "decision": told.decision.to_string(),
                "rule": told.rule,
                "reason": told.reason,
            })
        };
        let mut json = json!({
            "parsed": self.parsed,
            "read_only": self.read_only,
            "decision": self.decision.to_string(),
            "rule": self.rule,
            "reason": self.reason,
            "parts": self.parts.iter().map(part).collect::<Vec<_>>(),
        });
        if !self.hooks.is_empty() {
            json["hooks"] = json!(self.hooks);
        }
        json
    }

    fn text(&self, place: &Place) -> String {
        use std::fmt::Write as _;
        let read_only = |yes: bool| if yes { "read-only" } else { "not read-only" };
        let mut text = format!("{}: {}\n", self.decision, self.reason);
        let parsed = if self.parsed { "" } else { ", as it cannot be read" };
        // Writing to a text does not fail.
        let _ = writeln!(text, "{}{parsed}", read_only(self.read_only));
        for told in &self.parts {
            let what = told.part.text.trim();
            let _ = writeln!(text, "\n  {what}");
            let by = told.rule.as_ref().map(|rule| format!(" by {rule}")).unwrap_or_default();
            let (decision, why) = (told.decision, &told.part.why);
            let _ = writeln!(text, "    {decision}{by}; {}: {why}", read_only(told.part.read_only));
            let mut effects = told.part.effects.iter().peekable();
            while let Some(effect) = effects.next() {
                let (access, _) = words(effect);
                let shown = |effect: &Effect| {
                    effect.path().map(|path| place.shown(path).into_owned()).unwrap_or_default()
                };
                let _ = write!(text, "    {access} {}", shown(effect));
                // What is written may be a file, or a folder that gets one.
                let within = effects.next_if(|next| {
                    let above = next.path().and_then(HostPath::parent);
                    next.access == Access::Modify
                        && effect.access == Access::Modify
                        && above.as_ref() == effect.path()
                });
                let _ = match within {
                    Some(within) => {
                        writeln!(text, ", or {} where that is a folder", shown(within))
                    }
                    None => writeln!(text),
                };
            }
        }
        if !self.hooks.is_empty() {
            let (hooks, are) = match &self.hooks[..] {
                [one] => (one.clone(), "this hook is"),
                all => (all.join(", "), "these hooks are"),
            };
            let _ = writeln!(
                text,
                "\nnot asked here: {hooks}; before a call {are}, and may refuse, \
                                    ask or rewrite it"
            );
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// An effect on a file as a verb and a path.
fn words(effect: &Effect) -> (&'static str, String) {
    let verb = match effect.access {
        Access::Observe => "reads",
        Access::Modify => "writes",
        Access::Destroy => "removes",
    };
    (verb, effect.path().map(HostPath::to_string).unwrap_or_default())
}
