//! `sandbox`: the place where a call's children are confined to what policy lets them touch.
//!
//! No sandbox is built yet: children run as the person who started haft, and `haft doctor` says
//! so. Rules and questions hold all the same.

use futures::future::BoxFuture;
use haft_types::Outcome;

use crate::{Call, Next, Stage};

pub(super) struct Sandbox;

impl Stage for Sandbox {
    fn name(&self) -> &'static str {
        "sandbox"
    }

    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        next.run(call)
    }
}
