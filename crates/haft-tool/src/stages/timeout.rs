//! `timeout`: ends a call that runs too long. A tool's own limits are usually shorter.

use std::time::Duration;

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{Outcome, Status};
use tokio::time::Instant;

use crate::{Call, Next, Stage};

/// How often a call whose time is over is looked at while somebody is asked.
const LOOK: Duration = Duration::from_millis(10);

pub(super) struct Timeout {
    pub limit: Option<Duration>,
    pub grace: Duration,
}

impl Stage for Timeout {
    fn name(&self) -> &'static str {
        "timeout"
    }

    fn run<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let Some(limit) = self.limit else { return next.run(call) };
        async move {
            let stop = call.cx.stop.child_token();
            call.cx.stop = stop.clone();
            let (asking, resting) = (call.cx.asking.clone(), call.cx.resting.clone());
            let spent = || asking.so_far() + resting.so_far();
            let (began, spent_before) = (Instant::now(), spent());
            let mut running = next.run(call);
            let mut left = limit;
            while !left.is_zero() {
                if let Ok(outcome) = tokio::time::timeout(left.max(LOOK), &mut running).await {
                    return outcome;
                }
                // A nested call may have asked meanwhile, or be asking still.
                let apart = spent().saturating_sub(spent_before);
                left = limit.saturating_sub(began.elapsed().saturating_sub(apart));
            }
            stop.cancel();
            let text = format!("timed out after {limit:?}; what it had done by then is not undone");
            match tokio::time::timeout(self.grace, running).await {
                Ok(outcome) => Outcome {
                    status: Status::TimedOut,
                    content: [vec![text.into()], outcome.content].concat(),
                    ..outcome
                },
                Err(_) => Outcome::ended(Status::TimedOut, text),
            }
        }
        .boxed()
    }
}
