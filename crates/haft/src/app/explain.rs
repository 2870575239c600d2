//! Explains what would be decided about a call, and why. `haft why`, questions and the test cases
//! of rules use these answers.
//!
//! **Invariant:** the answer comes from the pipeline's own stages, never from a copy of them.

use std::{sync::Arc, time::Duration};

use haft_config::RuleCase;
use haft_policy::{Ask, Mode, Part, Verdict, own_name};
use haft_tool::{Dispatcher, Judgement};
use haft_types::{Access, Effect, HostPath, Origin, Place, Plan, Target, ToolSpec, ToolUse};
use serde_json::{Value, json};
use url::Url;

/// Longest that the paths of one call are looked up.
const LOOK_UP: Duration = Duration::from_secs(5);

/// The explanation of one call.
pub struct Answer {
    /// Whether the call could be parsed.
    pub parsed: bool,
    pub read_only: bool,
    pub decision: Verdict,
    pub rule: Option<String>,
    pub reason: String,
    pub parts: Vec<PartReport>,
    /// Places of the hooks that would be asked about the call, and may decide otherwise.
    pub hooks: Vec<String>,
}

/// The explanation of one command of a script.
pub struct PartReport {
    part: Part,
    decision: Verdict,
    rule: Option<String>,
    reason: String,
}

/// Explains a call that waits for an answer, as text for people.
pub async fn explained(dispatcher: &Arc<Dispatcher>, request: &ToolUse) -> String {
    answered(dispatcher, request).await.text(&dispatcher.place)
}

pub async fn answered(dispatcher: &Arc<Dispatcher>, request: &ToolUse) -> Answer {
    if let Some((tool, plan)) = stand_in(dispatcher, request) {
        return absent(dispatcher, request, &tool, plan);
    }
    match dispatcher.judge(request, LOOK_UP).await {
        Ok(judgement) => Answer::of(judgement),
        Err(error) => Answer::unread(error.message),
    }
}

/// Runs the test cases of the rules. Returns those that failed: their index from 0, and what
/// differs.
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
    let before = dispatcher.permissions().mode;
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

/// Builds a call that is only judged, never run.
pub fn request(tool: &str, input: Value) -> ToolUse {
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
    if dispatcher.permissions().policy.hides(&spec) {
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
    let judge = dispatcher.permissions();
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

    /// The explanation of a call that cannot be parsed. Nothing is known of it: it would be
    /// refused, or asked about.
    pub fn unread(reason: String) -> Self {
        let (decision, rule) = (Verdict::Ask, None);
        let (parts, hooks) = (Vec::new(), Vec::new());
        Self { parsed: false, read_only: false, decision, rule, reason, parts, hooks }
    }

    /// The explanation as JSON, for programs.
    pub fn json(&self) -> Value {
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

    /// The explanation as text, for people.
    pub fn text(&self, place: &Place) -> String {
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
