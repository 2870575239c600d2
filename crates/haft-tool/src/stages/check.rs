//! `check`: lets the tool refuse early and gives people something to look at.
//!
//! **Invariant:** it can only observe what the plan declared, and runs only where that needs no
//! question; otherwise the question comes without a preview.

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{Access, Outcome};

use super::{guard, rules};
use crate::{Call, Cx, Next, Stage};

pub(super) struct Check;

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
            let cx = Cx { host, ..call.cx.clone() };
            let checked = match call.ready() {
                Ok(prepared) => prepared.check(&cx).await,
                Err(error) => Err(error),
            };
            match checked {
                Ok(preview) => call.preview = preview,
                Err(error) => return error.into(),
            }
            next.run(call).await
        }
        .boxed()
    }
}
