//! `snapshot`: what must be on disk before a call may change anything.
//!
//! **Invariant:** before any effect beyond observing, the begin of the call is synced: a power cut
//! cannot leave a change that the log knows nothing of. For what goes through the host, the host
//! waits for that right before the first change; all else waits here. Copies for undo will be
//! made here; none is made yet.

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{Access, Effect, Outcome, Target, ToolError};

use crate::{Call, Next, Stage};

pub(super) struct Snapshot;

/// Reports whether the host of the call sees to it that this effect is recorded first.
fn is_guarded(effect: &Effect) -> bool {
    effect.access == Access::Observe
        || matches!(
            effect.target,
            Target::Path { .. } | Target::Tree { .. } | Target::Command { .. }
        )
}

impl Stage for Snapshot {
    fn name(&self) -> &'static str {
        "snapshot"
    }

    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if call.plan().is_none_or(|plan| plan.effects.iter().all(is_guarded)) {
            return next.run(call);
        }
        async move {
            if let Err(error) = call.cx.session().events.sync().await {
                return ToolError::new(error.to_string())
                    .hint("Nothing was changed. Free some disk space, then call again.")
                    .into();
            }
            next.run(call).await
        }
        .boxed()
    }
}
