//! `hooks(pre)` and `hooks(post)`: programs of the person around every call.
//!
//! **Invariant:** a hook never allows what the rules deny: its rewrite is prepared and judged anew.
//! A hook that has run for a call does not run for it again, except where a path was then taken
//! as another: a hook that refuses the one must see it, too.

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{Outcome, Part, ToolError};
use serde_json::Value;

use crate::{Call, Next, Stage};

/// What a hook says before a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Before {
    /// Go on.
    Pass,
    /// Go on with these arguments.
    Rewrite(Value),
    /// Stop; the text goes to the model.
    Deny(String),
}

/// What a hook says after a call.
#[derive(Clone, Debug, PartialEq)]
pub enum After {
    /// Nothing.
    Pass,
    /// This text goes to the model with the result.
    Note(String),
}

/// Sees calls before and after they run.
pub trait Hook: Send + Sync {
    /// Sees a call that is about to be judged; one that is unknown or malformed has no plan.
    fn before<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Before> {
        let _ = call;
        std::future::ready(Before::Pass).boxed()
    }

    /// Sees what a tool gave back, before it is cut to its budget.
    fn after<'a>(&'a self, tool: &'a str, outcome: &'a Outcome) -> BoxFuture<'a, After> {
        let _ = (tool, outcome);
        std::future::ready(After::Pass).boxed()
    }
}

pub(super) struct HooksBefore(pub Vec<Arc<dyn Hook>>);

impl Stage for HooksBefore {
    fn name(&self) -> &'static str {
        "hooks(pre)"
    }

    fn run<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        async move {
            if call.hooked {
                return match call.ready().err() {
                    Some(error) => error.into(),
                    None => next.run(call).await,
                };
            }
            call.hooked = !self.0.is_empty();
            let mut rewritten = None;
            for hook in &self.0 {
                match hook.before(&call).await {
                    Before::Pass => {}
                    // The next hook sees what this one made of it.
                    Before::Rewrite(input) => {
                        call = call.with_input(input.clone());
                        rewritten = Some(input);
                    }
                    Before::Deny(why) => {
                        return ToolError::denied(format!("a hook refused this call: {why}"))
                            .hint("Do not repeat it unchanged.")
                            .into();
                    }
                }
            }
            match (rewritten, call.ready().err()) {
                (Some(input), _) => next.again(call.with_input(input)).await,
                (None, Some(error)) => error.into(),
                (None, None) => next.run(call).await,
            }
        }
        .boxed()
    }
}

pub(super) struct HooksAfter(pub Vec<Arc<dyn Hook>>);

impl Stage for HooksAfter {
    fn name(&self) -> &'static str {
        "hooks(post)"
    }

    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if self.0.is_empty() {
            return next.run(call);
        }
        async move {
            let tool = call.tool().to_owned();
            let mut outcome = next.run(call).await;
            for hook in &self.0 {
                if let After::Note(text) = hook.after(&tool, &outcome).await {
                    outcome.content.push(Part::text(text));
                }
            }
            outcome
        }
        .boxed()
    }
}
