//! `interrupt`: ends a call when it is cancelled, with the partial result that it has by then.

use std::{sync::atomic::Ordering, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{OnInterrupt, Outcome, Status};

use crate::{Call, Next, Stage};

/// Holds how long a cancelled call may still take.
pub(super) struct Interrupt(pub Duration);

impl Stage for Interrupt {
    fn name(&self) -> &'static str {
        "interrupt"
    }

    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        async move {
            let (stop, begun) = (call.cx.stop.clone(), call.cx.begun.clone());
            if stop.is_cancelled() {
                return Outcome::ended(Status::Cancelled, "cancelled before it ran");
            }
            let finishes = call
                .prepared
                .as_ref()
                .is_ok_and(|prepared| prepared.spec.on_interrupt == OnInterrupt::Finish);
            let mut running = next.run(call);
            tokio::select! {
                biased;
                outcome = &mut running => return outcome,
                () = stop.cancelled() => {}
            }
            if finishes && begun.load(Ordering::Acquire) {
                return running.await;
            }
            match tokio::time::timeout(self.0, running).await {
                Ok(outcome) => outcome,
                Err(_) if begun.load(Ordering::Acquire) => Outcome::ended(
                    Status::Cancelled,
                    "cancelled while it ran; what it had done by then is not known",
                ),
                Err(_) => Outcome::ended(Status::Cancelled, "cancelled before it ran"),
            }
        }
        .boxed()
    }
}
