//! `hooks(pre)` and `hooks(post)`: programs of the person around every call.
//!
//! **Invariant:** a hook never allows what the rules deny. Its rewrite is prepared and judged anew.
//! Its yes only answers a question that is asked because no rule matches the call. A hook that has
//! run for a call does not run for it again. The exception is a path that was then taken as
//! another: a hook that refuses that path must see it, too.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use haft_policy::{Ask, Policy, Verdict};
use haft_types::{HostPath, Outcome, Part, Plan, Question, Status, ToolError, ToolSpec};
use serde_json::Value;

use super::resolve;
use crate::{Call, Cx, Next, Stage, session::redact};

/// How the refusal of a hook begins.
pub(super) const REFUSED: &str = "a hook refused this call";
/// How the refusal of a person begins.
pub(super) const PERSON_REFUSED: &str = "the person refused this call";
/// How long links are looked up for hooks.
const LOOK_UP: Duration = Duration::from_secs(5);

/// A call as hooks see it.
#[derive(Clone)]
pub struct HookCall {
    /// The context of the call: id, place, stop token, session.
    pub cx: Cx,
    /// The name that the model wrote.
    pub name: String,
    /// The spec of the tool; none where there is no such tool.
    pub spec: Option<Arc<ToolSpec>>,
    /// The arguments: after repair where they are valid, else as written, where that is JSON.
    pub input: Option<Value>,
    /// The plan of the call; none where it cannot be planned.
    pub plan: Option<Plan>,
    real: Vec<Option<HostPath>>,
}

impl HookCall {
    pub(super) fn of(call: &Call) -> Self {
        let ready = call.prepared.as_ref().ok();
        let known = || call.cx.dispatcher.tools.spec(&call.request.name).cloned();
        Self {
            cx: call.cx.clone(),
            name: call.request.name.clone(),
            spec: ready.map(|prepared| prepared.spec.clone()).or_else(known),
            input: call.input().or(call.request.input.as_ref()).cloned(),
            plan: call.plan().cloned(),
            real: call.real_paths(),
        }
    }

    /// The same with links looked up, for hooks that come before that.
    async fn located(call: &Call) -> Self {
        let mut looked = Call::new(call.request.clone(), call.cx.clone());
        // What cannot be looked up in time is judged as it is written.
        drop(resolve::locate(&mut looked, LOOK_UP).await);
        Self { real: looked.real_paths(), ..Self::of(call) }
    }

    /// The tool's real name, or what the model wrote where there is no such tool.
    pub fn tool(&self) -> &str {
        self.spec.as_ref().map_or(&self.name, |spec| &spec.name)
    }

    /// Reports whether the call is, or may be, about what these rules name. A call that cannot be
    /// planned may be.
    pub fn may_touch(&self, rules: &Policy) -> bool {
        let (Some(spec), Some(input), Some(plan)) = (&self.spec, &self.input, &self.plan) else {
            return true;
        };
        let judge = self.cx.permissions();
        rules.may_touch(&Ask {
            tool: spec,
            input,
            plan,
            real: &self.real,
            agent: self.cx.agent(),
            mode: judge.mode,
            place: &self.cx.place,
            grants: &judge.grants,
            // What it names is what matters, not how far it would get.
            walls: None,
            veil: None,
        })
    }
}

/// The answer of a hook before a call; empty by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreCall {
    /// The hook's verdict on the call; none leaves it to the rules.
    pub verdict: Option<Verdict>,
    /// The reason; the model reads that of a refusal.
    pub reason: String,
    /// Arguments that replace those of the call.
    pub input: Option<Value>,
    /// Notes for the model, sent with the result.
    pub notes: Vec<String>,
}

impl PreCall {
    /// Continues with these arguments.
    pub fn rewrite(input: Value) -> Self {
        Self { input: Some(input), ..Self::default() }
    }

    /// Refuses the call.
    pub fn deny(reason: impl Into<String>) -> Self {
        let (verdict, reason) = (Some(Verdict::Deny), reason.into());
        Self { verdict, reason, ..Self::default() }
    }
}

/// The answer of a hook after a call.
#[derive(Clone, Debug, PartialEq)]
pub enum PostCall {
    /// Nothing.
    Pass,
    /// This text goes to the model with the result.
    Note(String),
}

/// The answer of a hook in place of the person.
#[derive(Clone, Debug, PartialEq)]
pub enum PermissionAnswer {
    /// Nothing: the person is asked.
    Pass,
    /// Yes, with these arguments where there are any. It counts only where no rule matches the
    /// call.
    Allow(Option<Value>),
    /// No; the text goes to the model.
    Deny(String),
}

/// A hook that sees calls before and after they run.
pub trait Hook: Send + Sync {
    /// Called before a call is judged; an unknown or malformed call has no plan.
    fn before<'a>(&'a self, call: &'a HookCall) -> BoxFuture<'a, PreCall> {
        let _ = call;
        std::future::ready(PreCall::default()).boxed()
    }

    /// Called with the result of a tool, before it is cut to its budget.
    fn after<'a>(&'a self, call: &'a HookCall, outcome: &'a Outcome) -> BoxFuture<'a, PostCall> {
        let _ = (call, outcome);
        std::future::ready(PostCall::Pass).boxed()
    }

    /// Called with a question about a call before a person sees it.
    fn asked<'a>(
        &'a self,
        call: &'a HookCall,
        question: &'a Question,
    ) -> BoxFuture<'a, PermissionAnswer> {
        let _ = (call, question);
        std::future::ready(PermissionAnswer::Pass).boxed()
    }

    /// Called with a call that was denied, where neither a person nor a hook did that. Gives more
    /// words for the model.
    fn denied<'a>(
        &'a self,
        call: &'a HookCall,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Option<String>> {
        let _ = (call, outcome);
        std::future::ready(None).boxed()
    }

    /// Reports whether it may want to see the results of tools.
    fn sees_results(&self) -> bool {
        true
    }

    /// Reports whether it wants links resolved for a call that is not judged yet.
    fn wants_links(&self) -> bool {
        false
    }
}

/// What hooks think of a call that is to be judged.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Advice {
    pub verdict: Verdict,
    pub reason: String,
}

impl Advice {
    /// The stricter one, with the reasons of both where they are as strict.
    fn join(before: Option<Self>, verdict: Option<Verdict>, reason: &str) -> Option<Self> {
        let Some(verdict) = verdict else { return before };
        let new = Self { verdict, reason: reason.to_owned() };
        Some(match before {
            Some(before) if before.verdict > verdict => before,
            Some(before) if before.verdict == verdict && !before.reason.is_empty() => {
                Self { reason: format!("{}; {reason}", before.reason), verdict }
            }
            _ => new,
        })
    }
}

pub(super) struct HooksBefore(pub Vec<Arc<dyn Hook>>);

impl Stage for HooksBefore {
    fn name(&self) -> &'static str {
        "hooks(pre)"
    }

    fn run<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        async move {
            if call.hooked || self.0.is_empty() {
                return match call.ready().err() {
                    Some(error) => error.into(),
                    None => next.run(call).await,
                };
            }
            call.hooked = true;
            let (mut rewritten, mut advice, mut notes) = (None, None, Vec::new());
            for hook in &self.0 {
                let links = hook.wants_links();
                let seen = if links { HookCall::located(&call).await } else { HookCall::of(&call) };
                let said = hook.before(&seen).await;
                if call.cx.stop.is_cancelled() {
                    return Outcome::ended(Status::Cancelled, "cancelled before it ran");
                }
                notes.extend(said.notes);
                if said.verdict == Some(Verdict::Deny) {
                    let error = ToolError::denied(format!("{REFUSED}: {}", said.reason));
                    return noted(error.hint("Do not repeat it unchanged.").into(), notes);
                }
                // The next hook sees what this one made of it; a yes was for what there was.
                if let Some(input) = said.input {
                    redact::learn(&call.cx.session().secrets, &input);
                    advice = advice.filter(|advice: &Advice| advice.verdict != Verdict::Allow);
                    call = call.with_input(input.clone());
                    rewritten = Some(input);
                }
                advice = Advice::join(advice, said.verdict, &said.reason);
            }
            let seen = HookCall::of(&call);
            let outcome = match (rewritten, call.ready().err()) {
                (Some(input), _) => next.again(Call { advice, ..call.with_input(input) }).await,
                (None, Some(error)) => error.into(),
                (None, None) => next.run(Call { advice, ..call }).await,
            };
            if is_denied_by_rules(&outcome) && !seen.cx.stop.is_cancelled() {
                for hook in &self.0 {
                    notes.extend(hook.denied(&seen, &outcome).await);
                }
            }
            noted(outcome, notes)
        }
        .boxed()
    }
}

/// Whether a call was denied, and neither a person nor a hook did that.
fn is_denied_by_rules(outcome: &Outcome) -> bool {
    let reason = outcome.denial.as_ref().map(|denial| denial.reason.as_str());
    outcome.status == Status::Denied
        && reason.is_some_and(|why| !why.starts_with(REFUSED) && !why.starts_with(PERSON_REFUSED))
}

/// The outcome with more words for the model.
fn noted(mut outcome: Outcome, notes: Vec<String>) -> Outcome {
    outcome.content.extend(notes.into_iter().map(Part::text));
    outcome
}

pub(super) struct HooksAfter(pub Vec<Arc<dyn Hook>>);

impl Stage for HooksAfter {
    fn name(&self) -> &'static str {
        "hooks(post)"
    }

    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if !self.0.iter().any(|hook| hook.sees_results()) {
            return next.run(call);
        }
        async move {
            let seen = HookCall::of(&call);
            let outcome = next.run(call).await;
            let mut outcome = after(&self.0, &seen, outcome).await;
            // A formatter goes on with what the tool wrote: that is what the call left.
            if let Some(keeper) = &seen.cx.keeper {
                let fs = seen.cx.dispatcher.host.fs();
                let changed = keeper.look_again(fs, &mut outcome.receipts).await;
                let names: Vec<_> = changed.iter().map(|path| seen.cx.place.shown(path)).collect();
                if !names.is_empty() {
                    outcome.note(&format!("a hook changed it since: {}", names.join(", ")));
                }
            }
            outcome
        }
        .boxed()
    }
}

/// What came of a call, with what the hooks say of it.
pub(super) async fn after(hooks: &[Arc<dyn Hook>], seen: &HookCall, outcome: Outcome) -> Outcome {
    let mut outcome = outcome;
    if !hooks.iter().any(|hook| hook.sees_results()) {
        return outcome;
    }
    // A hook may write down what it sees, or send it away.
    let mut shown = outcome.clone();
    redact::outcome(&seen.cx.session().secrets, &mut shown);
    for hook in hooks.iter().filter(|hook| hook.sees_results()) {
        // Nobody waits for what comes of a cancelled call.
        if seen.cx.stop.is_cancelled() {
            break;
        }
        if let PostCall::Note(text) = hook.after(seen, &shown).await {
            outcome.content.push(Part::text(text));
        }
    }
    outcome
}

/// What the hooks say in place of the person; the first that says something counts, a refusal first.
pub(super) async fn consult(
    hooks: &[Arc<dyn Hook>],
    call: &Call,
    question: &Question,
) -> PermissionAnswer {
    let seen = HookCall::of(call);
    let mut said = PermissionAnswer::Pass;
    for hook in hooks {
        match hook.asked(&seen, question).await {
            PermissionAnswer::Deny(why) => return PermissionAnswer::Deny(why),
            allowed @ PermissionAnswer::Allow(_) if said == PermissionAnswer::Pass => {
                said = allowed;
            }
            PermissionAnswer::Pass | PermissionAnswer::Allow(_) => {}
        }
    }
    said
}
