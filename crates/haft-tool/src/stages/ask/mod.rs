//! `ask`: turns what the rules left open into a question, and applies the answer.
//!
//! **Invariant:** only an answer that the question offers is a yes. Arguments that a person changed
//! are prepared and judged anew. Time spent here counts for no timeout.

mod question;
mod wording;

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use haft_policy::{Remember, Rules, Ruling, Scope, Verdict};
use haft_types::{Answerer, Body, Level, Outcome, Reply, Status, ToolError, ToolUse};
use serde_json::Value;

use self::question::question;
use super::{
    hooks::{self, Advice, Hook, PermissionAnswer},
    rules,
};
use crate::{Call, Next, Permissions, SaveRule, Stage, session::redact};

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
            let judge = call.cx.permissions();
            let saved = lasting(&call, &ruling, &judge);
            let edits = rules::is_mere_edit(&call, &judge);
            let question = question(&call, &ruling, &saved, edits);
            let cx = &call.cx;
            let open = cx.asking.begin();
            if !call.consulted {
                match hooks::consult(&self.0, &call, &question).await {
                    PermissionAnswer::Pass => {}
                    PermissionAnswer::Deny(why) => {
                        return ToolError::denied(format!("{}: {why}", hooks::REFUSED))
                            .hint("Do not repeat it unchanged.")
                            .into();
                    }
                    PermissionAnswer::Allow(_) if !rules::is_open(&ruling) => {}
                    PermissionAnswer::Allow(input) => {
                        drop(open);
                        return allowed(call, input, next).await;
                    }
                }
            }
            let offered: Vec<String> = question.options.iter().map(|one| one.id.clone()).collect();
            let request = ToolUse { input: call.input().cloned(), ..call.request.clone() };
            let (reply, by) = cx.session().questions.ask(question, cx, request).await;
            drop(open);
            let yes = matches!(reply.option.as_str(), "allow" | "session" | "edits" | "always");
            if !yes || !offered.contains(&reply.option) {
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
                (_, "edits", _) => {
                    allow_edits(&call, &by);
                }
                (_, "session" | "always", _) => remember(&call, &judge),
                _ => {}
            }
            next.run(call).await
        }
        .boxed()
    }
}

/// Allows changes of files for the rest of the session, and shows that to everyone.
fn allow_edits(call: &Call, by: &Answerer) {
    let session = call.cx.session();
    session.set_permissions(|judge| judge.grants.edits = true);
    let by = match by {
        Answerer::Person(face) => face.clone(),
        Answerer::Nobody | Answerer::Cancelled => String::new(),
    };
    let body = Body::Mode { mode: session.permissions().mode, edits: true, by };
    // A log that cannot be written fails the call itself.
    drop(call.cx.emit(body));
}

/// The rules that would be kept for good; none where nothing keeps them, or a line of the question could
/// not show them.
fn lasting(call: &Call, ruling: &Ruling, judge: &Permissions) -> Vec<String> {
    let kept = ruling.remember == Remember::Saved && call.cx.service::<dyn SaveRule>().is_some();
    let Some(prepared) = call.ready().ok().filter(|_| kept) else { return Vec::new() };
    let offered = |ask: &haft_policy::Ask<'_>| judge.policy.rules_for(ask);
    let rules = rules::with_ask(call, prepared, &prepared.plan, judge, offered);
    let is_shown = |rule: &String| !rule.contains(char::is_control);
    if rules.iter().all(is_shown) { rules } else { Vec::new() }
}

/// Goes on with what a hook allowed; arguments of its own are judged anew, and its yes is for them.
async fn allowed(call: Call, input: Option<Value>, next: Next<'_>) -> Outcome {
    match input.filter(|input| Some(input) != call.input()) {
        None => next.run(call).await,
        Some(input) => {
            redact::learn(&call.cx.session().secrets, &input);
            let reason = "it rewrote the call".to_owned();
            let advice = Some(Advice { verdict: Verdict::Allow, reason });
            next.again(Call { advice, consulted: true, ..call.with_input(input) }).await
        }
    }
}

fn remember(call: &Call, judge: &Permissions) {
    let Ok(prepared) = call.ready() else { return };
    rules::with_ask(call, prepared, &prepared.plan, judge, |ask| {
        call.cx.session().set_permissions(|judge| judge.grants.remember(ask));
    });
}

/// Keeps a rule for good, and lets it count from now on.
fn keep(call: &Call, rule: &str) {
    let session = call.cx.session();
    session.set_permissions(|judge| {
        judge.policy.extend(&Rules::default().with(Verdict::Allow, Scope::Local, rule));
    });
    let told = match session.services.get::<dyn SaveRule>().map(|saver| saver.save(rule)) {
        Some(Err(why)) => Some(format!("the rule {rule} counts for this session only: {why}")),
        Some(Ok(told)) => told,
        None => None,
    };
    if let Some(text) = told {
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
                .by_rule(ruling.rule.clone())
                .into()
        }
        Answerer::Person(_) => match &reply.text {
            Some(words) => ToolError::denied(format!("{}: {words}", hooks::PERSON_REFUSED)),
            None => ToolError::denied(format!("{}.", hooks::PERSON_REFUSED))
                .hint("Do not repeat it; go on in another way, or ask what they would like."),
        }
        .into(),
    }
}
