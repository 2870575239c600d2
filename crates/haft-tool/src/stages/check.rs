//! `check`: lets the tool refuse a call early and gives people a preview.
//!
//! **Invariant:** it can only observe what the plan declared, and runs only where that needs no
//! question. Otherwise the question comes without a preview. A disk that does not answer holds up
//! no one else.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use haft_policy::Verdict;
use haft_types::{Access, Outcome, Status, ToolError};
use tokio::time::timeout;

use super::{
    guard,
    hooks::{self, Hook, HookCall},
    rules,
};
use crate::{Call, Cx, Next, Stage};

/// Holds how long it may take, and the hooks that see what fails here.
pub(super) struct Check(pub Duration, pub Vec<Arc<dyn Hook>>);

impl Stage for Check {
    fn name(&self) -> &'static str {
        "check"
    }

    fn run<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        async move {
            if !rules::may_observe(&call) {
                return next.run(call).await;
            }
            let host = guard::guarded(&call, Access::Observe);
            let asked = call.ruling.as_ref().is_some_and(|one| one.verdict == Verdict::Ask);
            let cx = Cx { host, asked, ..call.cx.clone() };
            let checked = match call.ready() {
                Ok(prepared) => timeout(self.0, prepared.check(&cx)).await,
                Err(error) => return error.into(),
            };
            let Ok(checked) = checked else {
                let text = format!("looking at what this call names took longer than {:?}", self.0);
                let error = ToolError { status: Status::TimedOut, ..ToolError::new(text) };
                return error.hint(STUCK).into();
            };
            match checked {
                Ok(preview) => call.preview = preview,
                Err(error) => {
                    return hooks::after(&self.1, &HookCall::of(&call), error.into()).await;
                }
            }
            next.run(call).await
        }
        .boxed()
    }
}

const STUCK: &str =
    "Nothing was changed. A disk or network share may not answer; go on without it, or say so.";
