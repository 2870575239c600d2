//! Runs the calls of an answer: those that do not conflict together, the others in order.
//!
//! **Invariant:** the order of conflicting calls is kept; each batch is planned again when it
//! starts; every call is reported exactly once, also when its tool breaks down.

use std::sync::Arc;

use futures::{StreamExt as _, stream::FuturesUnordered};
use haft_tool::{Dispatcher, Events as _};
use haft_types::{Body, CallId, Outcome, Status, ToolUse, TurnId, partition};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::Bus;

/// Calls that are to be run.
pub(crate) struct Batch {
    pub calls: Vec<ToolUse>,
    pub turn: TurnId,
    pub stop: CancellationToken,
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
            let plans: Vec<_> = left.iter().map(|call| self.dispatcher.plan(call)).collect();
            let together = partition(&plans).first().map_or(1, |range| range.end).max(1);
            let (now, later) = left.split_at(together.min(left.len()));
            let calls: Vec<_> = now.iter().map(|call| self.one(call.clone(), &batch)).collect();
            futures::stream::iter(calls).buffer_unordered(self.most).collect::<()>().await;
            left = later;
        }
    }

    fn one(&self, call: ToolUse, batch: &Batch) -> impl Future<Output = ()> + use<> {
        let (dispatcher, bus, done) =
            (self.dispatcher.clone(), self.bus.clone(), self.done.clone());
        let (turn, stop) = (batch.turn, batch.stop.child_token());
        async move {
            let (id, agent) = (call.id.clone(), dispatcher.agent.clone());
            let ran = tokio::spawn(async move { dispatcher.run(call, turn, stop).await }).await;
            if let Err(error) = ran {
                let outcome = Outcome::ended(
                    Status::Failed,
                    format!("the tool broke down: {error}\nCheck what it left behind."),
                );
                drop(bus.emit(&agent, turn, Body::CallEnded { call: id.clone(), outcome, took: 0 }));
            }
            // Nobody waits any more when the agent is gone.
            drop(done.send(id));
        }
    }
}
