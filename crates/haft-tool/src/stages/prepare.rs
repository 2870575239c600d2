//! `prepare`: ends calls that are unknown or malformed, and tells what was repaired in the others.
//!
//! Lookup, repair, validation and planning happen when a [`Call`] is made, because its record
//! wants the plan; a rewritten call is made anew and comes here again.

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{Outcome, Part};

use crate::{Call, Next, Stage};

pub(super) struct Prepare;

impl Stage for Prepare {
    fn name(&self) -> &'static str {
        "prepare"
    }

    fn run<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        async move {
            let notes = std::mem::take(&mut call.notes);
            let mut outcome = match call.ready() {
                Ok(_) => next.run(call).await,
                // Hooks see malformed calls too, but have nothing to rewrite towards.
                Err(error) => error.into(),
            };
            if !notes.is_empty() {
                outcome.content.push(Part::text(format!("[note: {}]", notes.join("; "))));
            }
            outcome
        }
        .boxed()
    }
}
