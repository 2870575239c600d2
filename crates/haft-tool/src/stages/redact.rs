//! `redact`: the place where values of secrets are taken out of results.
//!
//! It stands outside everything that produces text and inside what records it. Nothing is
//! registered as a secret yet, so results pass as they are.

use futures::future::BoxFuture;
use haft_types::Outcome;

use crate::{Call, Next, Stage};

pub(super) struct Redact;

impl Stage for Redact {
    fn name(&self) -> &'static str {
        "redact"
    }

    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        next.run(call)
    }
}
