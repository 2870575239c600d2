//! `record`: tells that a call begins and how it ended.
//!
//! **Invariant:** whatever comes in is told once as begun and once as ended, malformed and unknown
//! calls like any other. What it still had to show comes before its end. A call whose begin cannot be kept does not run.

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{Body, Outcome, Part, Status, TurnId};
use tokio::time::Instant;

use crate::{Call, Next, Stage};

pub(super) struct Record;

impl Stage for Record {
    fn name(&self) -> &'static str {
        "record"
    }

    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        async move {
            let (cx, began) = (call.cx.clone(), Instant::now());
            let asked_before = cx.asking.so_far();
            if let Err(error) = cx.emit(started(&call)) {
                return Outcome::ended(
                    Status::Failed,
                    format!("{error}\nNothing was run. Free some disk space, then call again."),
                );
            }
            if call.plan().is_some_and(|plan| !plan.observes()) {
                // The disk works while the call is judged.
                cx.session().events.sync_ahead();
            }
            let mut outcome = next.run(call).await;
            cx.live.end(&cx);
            let asked = cx.asking.so_far().saturating_sub(asked_before);
            let took = began.elapsed().saturating_sub(asked).as_millis();
            let took = u64::try_from(took).unwrap_or(u64::MAX);
            let ended = Body::CallEnded { call: cx.call.clone(), outcome: outcome.clone(), took };
            if let Err(error) = cx.emit(ended) {
                outcome.content.push(Part::text(format!("[this result is not kept: {error}]")));
            }
            outcome
        }
        .boxed()
    }
}

/// The begin of a call; its arguments stand in the answer that made it, where there is one.
pub(crate) fn started(call: &Call) -> Body {
    let outside = call.cx.nested || call.cx.turn == TurnId::default();
    let told = outside || call.hooked || call.mended;
    let input = call.input().or(call.request.input.as_ref()).filter(|_| told);
    Body::CallStarted {
        call: call.cx.call.clone(),
        tool: call.tool().chars().take(200).collect(),
        input: input.cloned(),
        plan: call.plan().cloned(),
    }
}
