//! Classifies calls while their answer still streams: which of them may start at once.
//!
//! **Invariant:** calls are classified one after the other, in order, in a task of their own. A
//! slow file system does not hold up the driver. The task does not outlive the answer.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt as _;
use haft_tool::Dispatcher;
use haft_types::ToolUse;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::calls::Meant;

/// The look at the calls of one answer; dropping it ends it.
pub(crate) struct Early {
    calls: mpsc::UnboundedSender<ToolUse>,
    looked: mpsc::UnboundedReceiver<(ToolUse, bool)>,
    _task: AbortOnDropHandle<()>,
}

impl Early {
    pub fn start(dispatcher: Arc<Dispatcher>) -> Self {
        let (calls, mut waiting) = mpsc::unbounded_channel();
        let (done, looked) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            while let Some(call) = waiting.recv().await {
                let harmless = is_harmless(&dispatcher, &call).await;
                if done.send((call, harmless)).is_err() {
                    break;
                }
            }
        });
        Self { calls, looked, _task: AbortOnDropHandle::new(task) }
    }

    pub fn look_at(&self, call: ToolUse) {
        // Without the task the call runs when its answer has ended, like any other.
        drop(self.calls.send(call));
    }

    /// The next call that was looked at, and whether it may start; waits for ever after the last.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> (ToolUse, bool) {
        match self.looked.recv().await {
            Some(looked) => looked,
            None => std::future::pending().await,
        }
    }
}

/// Reports whether a call may start before its answer has ended. One that may be cut off may not;
/// a plan that breaks down does so again, and is told, when the call runs.
async fn is_harmless(dispatcher: &Arc<Dispatcher>, call: &ToolUse) -> bool {
    let meant = Meant::of(call.clone(), dispatcher).call;
    call.input.is_some()
        && AssertUnwindSafe(dispatcher.harmless(&meant)).catch_unwind().await.unwrap_or(false)
}
