//! `ask`: turns what the rules left open into a question, and carries out the answer.
//!
//! **Invariant:** a person sees the whole call and, for a link, both of its names. Arguments that
//! a person changed are prepared and judged anew. Time spent here counts for no timeout.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use haft_policy::{Remember, Rules, Ruling, Scope, Verdict};
use haft_types::{
    Access, Answerer, Body, Choice, Detail, Effect, HostPath, Level, Outcome, Question,
    QuestionKind, Reply, Shape, Status, Target, ToolError,
};
use serde_json::{Map, Value, json};

use super::{
    hooks::{self, Advice, Hook, Instead},
    rules,
};
use crate::{Call, Judge, Next, Stage, hidden};

/// Bytes of arguments that are shown with a question.
const GIVEN: usize = 64 << 10;

/// Most other reasons that are told with a question.
const OTHERS: usize = 10;

/// Holds the hooks that may answer in place of the person.
pub(super) struct Ask(pub Vec<Arc<dyn Hook>>);

impl Stage for Ask {
    fn name(&self) -> &'static str {
        "ask"
    }

    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let Some(ruling) = call.ruling.clone().filter(|ruling| ruling.verdict == Verdict::Ask)
        else {
            return next.run(call);
        };
        async move {
            let judge = call.cx.session().judge();
            let saved = match call.ready() {
                Ok(prepared)
                    if ruling.remember == Remember::Saved
                        && call.cx.session().saver.get().is_some() =>
                {
                    rules::with_ask(&call, prepared, &prepared.plan, &judge, |ask| {
                        judge.policy.rules_for(ask.tool, ask.plan, ask.real)
                    })
                }
                _ => Vec::new(),
            };
            let question = question(&call, &ruling, &saved);
            let cx = &call.cx;
            let open = cx.asking.begin();
            if !call.consulted {
                match hooks::consult(&self.0, &call, &question).await {
                    Instead::Pass => {}
                    Instead::Deny(why) => {
                        return ToolError::denied(format!("a hook refused this call: {why}"))
                            .hint("Do not repeat it unchanged.")
                            .into();
                    }
                    Instead::Allow(_) if !rules::is_open(&ruling) => {}
                    Instead::Allow(input) => {
                        drop(open);
                        return allowed(call, input, next).await;
                    }
                }
            }
            let (reply, by) =
                cx.session().questions.ask(question, cx.agent(), cx.turn, &cx.stop).await;
            drop(open);
            if !matches!(reply.option.as_str(), "allow" | "session" | "always") {
                return refused(&ruling, &reply, &by);
            }
            match (reply.input, reply.option.as_str(), saved) {
                // The yes was for other arguments than those asked about: nothing is remembered.
                (Some(input), ..) if Some(&input) != call.input() => {
                    return next.again(call.with_input(input)).await;
                }
                (_, "always", rules) if !rules.is_empty() => {
                    for rule in &rules {
                        keep(&call, rule);
                    }
                }
                (_, "session" | "always", _) => remember(&call, &judge),
                _ => {}
            }
            next.run(call).await
        }
        .boxed()
    }
}

/// Goes on with what a hook allowed; arguments of its own are judged anew, and its yes is for them.
async fn allowed(call: Call, input: Option<Value>, next: Next<'_>) -> Outcome {
    match input.filter(|input| Some(input) != call.input()) {
        None => next.run(call).await,
        Some(input) => {
            hidden::learn(&call.cx.session().secrets, &input);
            let reason = "it rewrote the call".to_owned();
            let advice = Some(Advice { verdict: Verdict::Allow, reason });
            next.again(Call { advice, consulted: true, ..call.with_input(input) }).await
        }
    }
}

fn remember(call: &Call, judge: &Judge) {
    let Ok(prepared) = call.ready() else { return };
    rules::with_ask(call, prepared, &prepared.plan, judge, |ask| {
        call.cx.session().rejudge(|judge| judge.grants.remember(ask));
    });
}

/// Keeps a rule for good, and lets it count from now on.
fn keep(call: &Call, rule: &str) {
    let session = call.cx.session();
    session.rejudge(|judge| {
        judge.policy.extend(&Rules::default().with(Verdict::Allow, Scope::Local, rule));
    });
    if let Some(Err(why)) = session.saver.get().map(|saver| saver.save(rule)) {
        let text = format!("the rule {rule} counts for this session only: {why}");
        // A notice that cannot be kept is shown nowhere; the rule counts all the same.
        drop(call.cx.emit(Body::Notice { level: Level::Warning, text }));
    }
}

fn refused(ruling: &Ruling, reply: &Reply, by: &Answerer) -> Outcome {
    match by {
        Answerer::Cancelled => Outcome::ended(Status::Cancelled, "cancelled before it ran"),
        Answerer::Nobody => {
            ToolError::denied(format!("{}, and nobody can be asked here.", ruling.reason))
                .hint("Go on without it, or end and say what you would need.")
                .into()
        }
        Answerer::Person(_) => match &reply.text {
            Some(words) => ToolError::denied(format!("the person refused this call: {words}")),
            None => ToolError::denied("the person refused this call.")
                .hint("Do not repeat it; go on in another way, or ask what they would like."),
        }
        .into(),
    }
}

fn question(call: &Call, ruling: &Ruling, saved: &[String]) -> Question {
    let text = told(call, ruling);
    let choice = |id: &str, key, label: String| Choice { id: id.to_owned(), key, label };
    let mut options = vec![choice("allow", 'y', "yes, this once".into())];
    if ruling.remember >= Remember::Session {
        options.push(choice("session", 's', "yes, this very call for the whole session".into()));
    }
    if let (false, Some(saver)) = (saved.is_empty(), call.cx.session().saver.get()) {
        let rules = saved.join(" and ");
        let label = format!("yes, and always allow {rules} (kept in {})", saver.place());
        options.push(choice("always", 'a', label));
    }
    options.push(choice("deny", 'n', "no".into()));
    Question {
        id: call.cx.session().questions.next_id(),
        call: Some(call.cx.call.clone()),
        agent: call.cx.agent().clone(),
        kind: QuestionKind::Permission,
        text,
        preview: call.preview.clone().or_else(|| given(call)),
        options,
        form: None,
        if_nobody: Reply::pick("deny"),
    }
}

/// The arguments of a change of files that nobody may look at before the question, but for the
/// one that the title names: what would be written is seen all the same.
fn given(call: &Call) -> Option<Detail> {
    let prepared = call.ready().ok()?;
    let changes = |effect: &Effect| effect.access > Access::Observe && effect.path().is_some();
    if !prepared.plan.effects.iter().any(changes) {
        return None;
    }
    let named = |name: &str| *name == *prepared.spec.primary;
    let given = call.input()?.as_object()?.iter().filter(|(name, _)| !named(name));
    let given: Map<String, Value> = given.map(|(k, v)| (k.clone(), v.clone())).collect();
    let value = Value::Object(given);
    let fits = value != json!({}) && value.to_string().len() <= GIVEN;
    fits.then(|| Shape::Json { value }.into())
}

/// What the call does, each thing said once, and why that is asked about.
fn told(call: &Call, ruling: &Ruling) -> String {
    let plan = call.plan();
    let effects = plan.map(|plan| plan.effects.as_slice()).unwrap_or_default();
    let mut text = plan.map_or_else(|| call.tool().to_owned(), |plan| plan.title.clone());
    let start = start(call, effects);
    let is_start = |effect: &Effect| {
        effect.access == Access::Observe && start.is_some() && effect.path() == start.as_ref()
    };
    let told: Vec<(usize, &Effect)> = effects
        .iter()
        .enumerate()
        .filter(|(index, effect)| !is_start(effect) && !is_in_text(call, *index, effects))
        .collect();
    let said =
        |(index, effect): (usize, &Effect)| told.len() > 1 || !says_all(call, index, effect, &text);
    let mut lines: Vec<String> = told
        .iter()
        .filter(|one| said(**one))
        .map(|(index, effect)| line(call, *index, effect))
        .collect();
    if let Some(start) = start.filter(|start| *start != call.cx.dispatcher.place.cwd) {
        let index = effects.iter().position(|effect| effect.path() == Some(&start));
        let real = index.map(|index| really(call, index, &start)).unwrap_or_default();
        lines.push(format!("in {start}{real}"));
    }
    let limit = call.input().and_then(|input| input.get("timeout_ms")).and_then(Value::as_u64);
    lines.extend(limit.map(|ms| format!("for at most {:?}", Duration::from_millis(ms))));
    for line in lines {
        text.push_str("\n  ");
        text.push_str(&line.replace('\n', "\n  "));
    }
    text.push('\n');
    // With several effects it must be said which of them is asked about.
    let single = (0..effects.len()).filter(|index| !is_in_text(call, *index, effects)).count() == 1;
    let reason = if single { &ruling.brief } else { &ruling.reason };
    let mut chars = reason.chars();
    text.extend(chars.next().into_iter().flat_map(char::to_uppercase));
    text.push_str(chars.as_str());
    text.push('.');
    for other in others(call, ruling) {
        text.push_str("\n  also: ");
        text.push_str(&other);
    }
    text
}

/// What else of a script would be asked about, at most [`OTHERS`] and how many more.
fn others(call: &Call, ruling: &Ruling) -> Vec<String> {
    let Ok(prepared) = call.ready() else { return Vec::new() };
    let judge = call.cx.session().judge();
    let (_, parts) = rules::with_ask(call, prepared, &prepared.plan, &judge, |ask| {
        judge.policy.decide_parts(ask)
    });
    let mut told: Vec<String> = Vec::new();
    for (_, one) in parts.into_iter().filter(|(_, one)| one.verdict == Verdict::Ask) {
        if one.reason != ruling.reason && !told.contains(&one.reason) {
            told.push(one.reason);
        }
    }
    let more = told.len().saturating_sub(OTHERS);
    told.truncate(OTHERS);
    if more > 0 {
        told.push(format!("{more} more"));
    }
    told
}

/// Whether an effect is one of a script whose text names it: inside the workspace, and what it seems.
fn is_in_text(call: &Call, index: usize, effects: &[Effect]) -> bool {
    let is_script =
        |effect: &Effect| matches!(&effect.target, Target::Command { fresh_in: Some(_), .. });
    let Some(effect) = effects.get(index).filter(|_| effects.iter().any(is_script)) else {
        return false;
    };
    match (effect.path(), call.located.get(index)) {
        (Some(path), Some(Some(Ok(found)))) => {
            found.real == *path && call.cx.dispatcher.place.holds(path)
        }
        (None, _) => matches!(effect.target, Target::State { .. }),
        _ => false,
    }
}

/// Where the command of a call starts; none where it runs none.
fn start(call: &Call, effects: &[Effect]) -> Option<HostPath> {
    effects.iter().find(|effect| matches!(effect.target, Target::Command { .. }))?;
    let given = call.input().and_then(|input| input.get("cwd")).and_then(Value::as_str);
    match given.filter(|text| !text.is_empty()) {
        // As opposed to the folder that was carried, this one is relative to the workspace.
        Some(text) => call.cx.dispatcher.place.path(text).ok(),
        None => Some(call.place().cwd.clone()),
    }
}

/// The other name of a path that is really another.
fn really(call: &Call, index: usize, path: &HostPath) -> String {
    match call.located.get(index) {
        Some(Some(Ok(found))) if found.real != *path => format!(" (really {})", found.real),
        _ => String::new(),
    }
}

/// Reports whether a title already is one word and the whole target, which a line would repeat.
/// What cannot be undone, or is really something else, is said all the same.
fn says_all(call: &Call, index: usize, effect: &Effect, title: &str) -> bool {
    let Some((verb, rest)) = title.split_once(' ') else { return false };
    match &effect.target {
        Target::Command { text, .. } => verb == "Running" && rest == text,
        Target::Path { path, .. } => {
            let real =
                matches!(call.located.get(index), Some(Some(Ok(found))) if found.real != *path);
            effect.access != Access::Destroy && !real && rest == call.place().shown(path)
        }
        _ => false,
    }
}

/// One effect as a person reads it; a path that is really another is shown by both names.
fn line(call: &Call, index: usize, effect: &Effect) -> String {
    let verb = match (&effect.target, effect.access) {
        (Target::Command { .. }, _) => "run",
        (Target::Net { .. }, _) => "connect to",
        (Target::Secret { .. }, _) => "hand over",
        (_, Access::Observe) => "read",
        (_, Access::Modify) => "change",
        (_, Access::Destroy) => "change for good",
    };
    let what = match &effect.target {
        // Further in than haft's own words, so that no command looks like them.
        Target::Command { text, .. } if text.contains('\n') => {
            return format!("{verb}\n  {}", text.trim_end().replace('\n', "\n  "));
        }
        Target::Command { text, .. } => text.clone(),
        Target::Net { host } => host.clone(),
        Target::State { name } => format!("haft's {name}"),
        Target::Secret { name } => {
            format!("the value of the secret {name}, as the variable ${name}")
        }
        Target::Anything => "anything on this machine that no rule names or protects".to_owned(),
        Target::Path { path, .. } | Target::Tree { root: path } => {
            let real = really(call, index, path);
            let below =
                if matches!(effect.target, Target::Tree { .. }) { " and all below" } else { "" };
            format!("{path}{below}{real}")
        }
    };
    format!("{verb} {what}")
}
