//! Runs the calls of an answer: those that do not conflict together, the others in order.
//!
//! **Invariant:** the order of conflicting calls is kept; each batch is planned again when it
//! starts; every call is reported exactly once, also when its tool breaks down or, once it is
//! given up, does not come back.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use futures::{StreamExt as _, stream::FuturesUnordered};
use haft_tool::{Dispatcher, Events as _};
use haft_types::{Body, CallId, Level, Outcome, Plan, Status, ToolUse, TurnId, together};
use tokio::{sync::mpsc, task::JoinError};
use tokio_util::sync::CancellationToken;

use crate::Bus;

/// Calls that are to be run.
pub(crate) struct Batch {
    pub calls: Vec<ToolUse>,
    pub turn: TurnId,
    pub stop: CancellationToken,
    /// Cancelled when calls that were stopped took too long to come back.
    pub give_up: CancellationToken,
    /// True for a call that only observes and was started while its answer still streams.
    pub early: bool,
}

/// Runs calls one batch after the other.
pub(crate) struct Runner {
    pub dispatcher: Arc<Dispatcher>,
    pub bus: Bus,
    /// Most calls that run at once.
    pub most: usize,
    pub done: mpsc::UnboundedSender<CallId>,
}

impl Runner {
    /// Takes batches until nobody sends any more.
    pub async fn run(self, mut batches: mpsc::UnboundedReceiver<Batch>) {
        let mut running = FuturesUnordered::new();
        loop {
            let batch = tokio::select! {
                batch = batches.recv() => batch,
                Some(()) = running.next() => continue,
            };
            let Some(batch) = batch else { break };
            if batch.early && running.len() < self.most {
                for call in batch.calls.clone() {
                    running.push(self.one(call, &batch));
                }
                continue;
            }
            // What began early only observes, but may see what this batch changes.
            while running.next().await.is_some() {}
            self.in_order(batch).await;
        }
        while running.next().await.is_some() {}
    }

    async fn in_order(&self, batch: Batch) {
        let mut left = &batch.calls[..];
        while !left.is_empty() {
            let (now, later) = left.split_at(self.together(left));
            let calls: Vec<_> = now.iter().map(|call| self.one(call.clone(), &batch)).collect();
            futures::stream::iter(calls).buffer_unordered(self.most).collect::<()>().await;
            left = later;
        }
    }

    /// How many of the next calls may go together; what comes behind them is not planned yet.
    fn together(&self, calls: &[ToolUse]) -> usize {
        together(calls.iter().map(|call| {
            // A plan that breaks down does so again when the call runs, and is told there.
            let planned = catch_unwind(AssertUnwindSafe(|| self.dispatcher.plan(call)));
            planned.unwrap_or_else(|_| Plan::anything(&self.dispatcher.place, &*call.name))
        }))
    }

    fn one(&self, call: ToolUse, batch: &Batch) -> impl Future<Output = ()> + use<> {
        let (dispatcher, bus, done) =
            (self.dispatcher.clone(), self.bus.clone(), self.done.clone());
        let (turn, stop, give_up) = (batch.turn, batch.stop.child_token(), batch.give_up.clone());
        async move {
            let (id, agent) = (call.id.clone(), dispatcher.agent.clone());
            let mut running = tokio::spawn(async move { dispatcher.run(call, turn, stop).await });
            let lost = tokio::select! {
                biased;
                ran = &mut running => ran.err().map(broke_down),
                () = give_up.cancelled() => {
                    running.abort();
                    Some(Outcome::ended(
                        Status::Cancelled,
                        "cancelled, but it did not stop in time; what it did is not known",
                    ))
                }
            };
            if let Some(outcome) = lost {
                let ended = Body::CallEnded { call: id.clone(), outcome, took: 0 };
                if let Err(error) = bus.emit(&agent, turn, ended.clone()) {
                    bus.tell(&agent, turn, ended);
                    let text = error.to_string();
                    bus.tell(&agent, turn, Body::Notice { level: Level::Error, text });
                }
            }
            // Nobody waits any more when the agent is gone.
            drop(done.send(id));
        }
    }
}

/// The result of a call whose tool panicked.
fn broke_down(error: JoinError) -> Outcome {
    let text = match error.try_into_panic() {
        Ok(panic) => panic_text(&*panic),
        Err(error) => error.to_string(),
    };
    Outcome::ended(
        Status::Failed,
        format!("the tool broke down: {text}\nCheck what it left behind before you go on."),
    )
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it panicked without a word".to_owned())
}
