//! `rules`: what the rules, the mode and the place of a call decide about it.
//!
//! **Invariant:** pure, on the written and the real form of every path. A denied call ends here,
//! before anything of its target is opened.

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use haft_policy::{Ask, Mode, Remember, Ruling, Verdict};
use haft_types::{
    Access, Effect, HostPath, Kind, Origin, Outcome, Plan, Target, ToolError, ToolSpec,
};

use super::resolve;
use crate::{
    Call, Next, Permissions, Stage,
    call::guarded_host::{Hidden, Visible},
    tool::Prepared,
};

pub(super) struct Rules;

impl Stage for Rules {
    fn name(&self) -> &'static str {
        "rules"
    }

    fn run<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        async move {
            let ruling = match decide(&call) {
                Ok(ruling) => ruling,
                Err(error) => return error.into(),
            };
            let forbidden = ruling.verdict == Verdict::Deny;
            if forbidden && !may_be_answered(&call) {
                return denied(&ruling).into();
            }
            // Nobody is asked for what cannot be, unless the place itself is what asks.
            if ruling.verdict == Verdict::Ask
                && ruling.remember == Remember::Saved
                && let Some(error) = resolve::unusable(&call)
            {
                return error.into();
            }
            let ruling = advised(&call, ruling);
            if ruling.verdict == Verdict::Deny {
                return denied(&ruling).into();
            }
            call.ruling = Some(ruling);
            next.run(call).await
        }
        .boxed()
    }
}

/// What the rules say about a call whose paths are located.
pub(crate) fn decide(call: &Call) -> Result<Ruling, ToolError> {
    let judge = call.cx.permissions();
    let prepared = call.ready()?;
    Ok(with_ask(call, prepared, &prepared.plan, &judge, |ask| judge.policy.decide(ask)))
}

/// Reports whether all that forbids a call is that nobody is to be asked, and a hook says yes to it.
fn may_be_answered(call: &Call) -> bool {
    let allows = call.advice.as_ref().is_some_and(|advice| advice.verdict == Verdict::Allow);
    let judge = call.cx.permissions();
    allows && judge.mode == Mode::DontAsk && asking(call, &judge).is_some_and(|r| is_open(&r))
}

/// What the rules would say if somebody could be asked.
fn asking(call: &Call, judge: &Permissions) -> Option<Ruling> {
    let judge = Permissions { mode: Mode::Ask, ..judge.clone() };
    let prepared = call.ready().ok()?;
    Some(with_ask(call, prepared, &prepared.plan, &judge, |ask| judge.policy.decide(ask)))
}

/// Reports whether a hook may answer a question.
pub(super) fn is_open(ruling: &Ruling) -> bool {
    ruling.verdict == Verdict::Ask && ruling.open
}

/// The ruling with what hooks think of the call: a yes only answers an open question, and a question
/// of theirs is one in every mode.
fn advised(call: &Call, ruling: Ruling) -> Ruling {
    let Some(advice) = &call.advice else { return ruling };
    let because = if advice.reason.is_empty() { "it gave no reason" } else { &*advice.reason };
    match (advice.verdict, ruling.verdict) {
        (Verdict::Allow, Verdict::Ask | Verdict::Deny)
            if is_open(&ruling) || ruling.verdict == Verdict::Deny =>
        {
            let reason = format!("a hook allows it: {because}");
            let (verdict, brief) = (Verdict::Allow, reason.clone());
            Ruling { verdict, reason, brief, remember: Remember::Never, ..ruling }
        }
        (Verdict::Ask, Verdict::Allow) => {
            let dont_ask = call.cx.permissions().mode == Mode::DontAsk;
            let (verdict, more) = if dont_ask {
                (Verdict::Deny, ", and mode dont-ask denies what would ask")
            } else {
                (Verdict::Ask, "")
            };
            let reason = format!("a hook asks before this call: {because}{more}");
            let (brief, rule) = (reason.clone(), None);
            Ruling { verdict, rule, reason, brief, remember: Remember::Never, ..ruling }
        }
        _ => ruling,
    }
}

/// The refusal as the model reads it.
pub(super) fn denied(ruling: &Ruling) -> ToolError {
    let general =
        "Do not try to reach the same by other means; go on without it, or say what you need.";
    let hint = ruling.instead.clone().unwrap_or_else(|| general.to_owned());
    ToolError::denied(format!("{}.", ruling.reason)).hint(hint).by_rule(ruling.rule.clone())
}

/// Reports whether observing everything that the plan names would need no question.
pub(super) fn may_observe(call: &Call) -> bool {
    let judge = call.cx.permissions();
    call.ready().is_ok_and(|prepared| {
        let effects = prepared.plan.effects.iter().map(|effect| Effect {
            access: Access::Observe,
            target: match &effect.target {
                // A check never runs a program, so it asks for none.
                Target::Command { .. } => Target::State { name: "check".into() },
                target => target.clone(),
            },
        });
        let plan = Plan { effects: effects.collect(), ..prepared.plan.clone() };
        with_ask(call, prepared, &plan, &judge, |ask| {
            judge.policy.decide(ask).verdict == Verdict::Allow
        })
    })
}

/// The mode that counts for a call. Changes of files that a person let go on for the session are those of
/// file tools alone, and not of commands. What a person typed asks for no other yes; denials, ask rules and
/// what asks in every mode stand.
fn mode_for(call: &Call, judge: &Permissions, tool: &ToolSpec) -> Mode {
    match judge.mode {
        _ if call.cx.typed && !call.cx.nested => Mode::Bypass,
        Mode::Ask if judge.grants.edits && is_file_tool(tool) => Mode::AcceptEdits,
        mode => mode,
    }
}

fn is_file_tool(tool: &ToolSpec) -> bool {
    tool.kind == Kind::Edit && tool.origin == Origin::Builtin
}

/// Whether a call that is asked about would go on where changes of files are let go on.
pub(super) fn is_mere_edit(call: &Call, judge: &Permissions) -> bool {
    let Ok(prepared) = call.ready() else { return false };
    let mut accepting = judge.clone();
    accepting.grants.edits = true;
    judge.mode == Mode::Ask
        && !judge.grants.edits
        && is_file_tool(&prepared.spec)
        && with_ask(call, prepared, &prepared.plan, &accepting, |ask| {
            judge.policy.decide(ask).verdict == Verdict::Allow
        })
}

/// Builds the question to the policy, with the real form of every path.
pub(crate) fn with_ask<T>(
    call: &Call,
    prepared: &Prepared,
    plan: &Plan,
    judge: &Permissions,
    then: impl FnOnce(&Ask<'_>) -> T,
) -> T {
    let real = call.real_paths();
    then(&Ask {
        tool: &prepared.spec,
        input: &prepared.input,
        plan,
        real: &real,
        agent: call.cx.agent(),
        mode: mode_for(call, judge, &prepared.spec),
        place: call.place(),
        grants: &judge.grants,
        walls: call.walls.as_ref(),
        veil: call.veil.as_ref(),
    })
}

/// What of a folder is hidden from the call; worked out only where a folder is listed.
pub(crate) fn hidden(call: &Call) -> Hidden {
    let judge = call.cx.permissions();
    let Ok(prepared) = call.ready() else { return Arc::new(|_, _| Arc::new(|_| true)) };
    let tool = prepared.spec.name.clone();
    Arc::new(move |written, real| Arc::new(judge.policy.path_filter(&tool, written, real)))
}

/// What of declared trees, and of everything where that is declared, may be touched.
pub(super) fn visible(call: &Call) -> Visible {
    let judge = call.cx.permissions();
    let Ok(prepared) = call.ready() else { return Arc::new(|_, _| false) };
    let filter = |effect: &Effect, written: &HostPath, real: &HostPath| {
        let (policy, tool) = (&judge.policy, &prepared.spec.name);
        let unread = policy.path_filter(tool, written, real);
        let unchanged =
            (effect.access != Access::Observe).then(|| policy.change_filter(tool, written, real));
        let (written, real) = (written.clone(), real.clone());
        move |path: &HostPath, access: Access| {
            (path.is_within(&written) || path.is_within(&real))
                && match &unchanged {
                    Some(skips) if access != Access::Observe => !skips(path),
                    None if access != Access::Observe => false,
                    _ => !unread(path),
                }
        }
    };
    let root = HostPath::root(call.cx.dispatcher.host.style());
    let filters: Vec<_> = prepared
        .plan
        .effects
        .iter()
        .zip(&call.located)
        .filter_map(|(effect, located)| match (&effect.target, located) {
            (Target::Tree { root }, Some(Ok(found))) => Some(filter(effect, root, &found.real)),
            (Target::Anything, _) => Some(filter(effect, &root, &root)),
            _ => None,
        })
        .collect();
    Arc::new(move |path, access| filters.iter().any(|sees| sees(path, access)))
}
