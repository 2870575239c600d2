//! `snapshot`: what must be on disk before a call may change anything.
//!
//! **Invariant:** before any effect beyond observing, the begin of the call is synced: a power cut
//! cannot leave a change that the log knows nothing of. Copies for undo will be made here; none
//! is made yet.

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{Outcome, Plan, ToolError};

use crate::{Call, Next, Stage};

pub(super) struct Snapshot;

impl Stage for Snapshot {
    fn name(&self) -> &'static str {
        "snapshot"
    }

    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if call.plan().is_none_or(Plan::observes) {
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
