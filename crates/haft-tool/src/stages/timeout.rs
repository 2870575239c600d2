//! `timeout`: ends a call that runs too long. A tool's own limits are usually shorter.

use std::time::Duration;

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{Outcome, Status};

use crate::{Call, Next, Stage};

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
            let mut running = next.run(call);
            if let Ok(outcome) = tokio::time::timeout(limit, &mut running).await {
                return outcome;
            }
            stop.cancel();
            let text = format!("timed out after {} s", limit.as_secs());
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
