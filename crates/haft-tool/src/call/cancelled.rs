//! Cancelled calls whose work is still being stopped.
//!
//! **Invariant:** the answer of a cancelled call does not wait for its stopping. A later call that
//! must not overlap with the cancelled one waits for it, and so does the end of the session.

use std::sync::{Mutex, MutexGuard, PoisonError};

use haft_types::{Access, CallId, Plan, Target};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Cx;

/// What is being stopped in a session, in its [`map`](crate::Session::map).
#[derive(Default)]
pub(crate) struct Stopping(Mutex<Vec<CancelledCall>>);

/// What one call left.
struct CancelledCall {
    call: CallId,
    /// What it may still do.
    plan: Plan,
    over: CancellationToken,
}

impl Stopping {
    fn begin(&self, call: CallId, plan: Plan) -> DropGuard {
        let over = CancellationToken::new();
        self.left().push(CancelledCall { call, plan, over: over.clone() });
        over.drop_guard()
    }

    /// Waits until nothing is left of that for which this is true.
    async fn wait(&self, is: impl Fn(&CancelledCall) -> bool) {
        let all: Vec<_> =
            self.left().iter().filter(|left| is(left)).map(|left| left.over.clone()).collect();
        for over in all {
            over.cancelled().await;
        }
    }

    /// Waits until nothing is left that a call with this plan may not overlap with.
    pub(crate) async fn apart(&self, plan: &Plan) {
        self.wait(|left| left.plan.conflicts(plan)).await;
    }

    /// Waits until nothing is left of this call.
    pub(crate) async fn of(&self, call: &CallId) {
        self.wait(|left| left.call == *call).await;
    }

    /// Waits until nothing is left.
    pub(crate) async fn finished(&self) {
        self.wait(|_| true).await;
    }

    fn left(&self) -> MutexGuard<'_, Vec<CancelledCall>> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|left| !left.over.is_cancelled());
        left
    }
}

impl Cx {
    /// Lets a cancelled command be stopped after the call's answer. `stopping` must end in a
    /// bounded time, when nothing of the command is left.
    pub fn stops_behind(&self, stopping: impl Future<Output = ()> + Send + 'static) {
        let command = Target::command(String::new());
        let plan = Plan::new(&self.place, "Stopping a command").with(Access::Destroy, command);
        let guard = self.session().map.get::<Stopping>().begin(self.call.clone(), plan);
        tokio::spawn(async move {
            stopping.await;
            drop(guard);
        });
    }
}
