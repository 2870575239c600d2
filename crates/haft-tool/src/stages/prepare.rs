//! `prepare`: reports what was repaired in a call, and keeps refusals short.
//!
//! Lookup, repair, validation and planning happen when a [`Call`] is made, because its record needs
//! the plan. A rewritten call is made anew and comes here again. Unknown and malformed calls pass
//! on as far as the hooks, which may see, refuse or repair them, and end there. A call that must
//! not overlap with a cancelled command waits here until nothing of that is left.
//!
//! **Invariant:** the outcome of a call that ends before its tool ran is short, whatever it quotes.

use std::sync::atomic::Ordering;

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{Outcome, Status};

use super::budget;
use crate::{Call, Next, Stage, call::cancelled::Stopping};

pub(super) struct Prepare;

impl Stage for Prepare {
    fn name(&self) -> &'static str {
        "prepare"
    }

    fn run<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        async move {
            if let Some(plan) = call.plan() {
                let stopping = call.cx.session().map.get::<Stopping>();
                tokio::select! {
                    biased;
                    () = call.cx.stop.cancelled() => {
                        return Outcome::ended(Status::Cancelled, "cancelled before it ran");
                    }
                    () = stopping.apart(plan) => {}
                }
            }
            let notes = std::mem::take(&mut call.notes);
            let begun = call.cx.begun.clone();
            let mut outcome = next.run(call).await;
            if !begun.load(Ordering::Acquire) {
                outcome.content.iter_mut().for_each(budget::shorten);
            }
            if !notes.is_empty() {
                outcome.note(&format!("note: {}", notes.join("; ")));
            }
            outcome
        }
        .boxed()
    }
}
