//! Runs the calls of an answer: calls that do not conflict run together, the others in order.
//!
//! **Invariant:** conflicting calls run in order ([`Scheduler`]). Every call is reported exactly
//! once, also when its tool panics, or does not return after it is aborted.

use std::{any::Any, sync::Arc};

use futures::{StreamExt as _, stream::FuturesUnordered};
use haft_llm::{CALL_TOOL, NamedCall, named_call};
use haft_tool::{Dispatcher, OfTurn, Scheduler};
use haft_types::{Body, CallId, Level, Outcome, Status, ToolUse, TurnId};
use tokio::{sync::mpsc, task::JoinError};
use tokio_util::sync::CancellationToken;

use crate::Bus;

/// A call as tools, rules, hooks and people see it.
pub(crate) struct Meant {
    pub call: ToolUse,
    /// Whether it came in the arguments of another call.
    is_wrapped: bool,
    /// Why it cannot be made.
    wrong: Option<String>,
}

impl Meant {
    /// What a call of a model means: `call_tool` stands for the tool that it names.
    pub fn of(call: ToolUse, dispatcher: &Dispatcher) -> Self {
        // A tool that has this name is what is meant.
        let named = named_call(&call).filter(|_| dispatcher.tools.spec(CALL_TOOL).is_none());
        match named {
            None => Self { call, is_wrapped: false, wrong: None },
            Some(Ok(NamedCall { name, input })) => {
                let raw = input.to_string();
                let call = ToolUse { name, raw, input: Some(input), extra: None, ..call };
                Self { call, is_wrapped: true, wrong: None }
            }
            Some(Err(why)) => Self { call, is_wrapped: false, wrong: Some(why) },
        }
    }

    async fn run(self, dispatcher: &Arc<Dispatcher>, turn: TurnId, stop: CancellationToken) {
        let Self { call, is_wrapped, .. } = self;
        dispatcher.run(call, OfTurn { turn, is_wrapped }, stop).await;
    }
}

/// Calls that are to be run.
pub(crate) struct Batch {
    /// Takes them: that of the request whose answer has them.
    pub dispatcher: Arc<Dispatcher>,
    pub calls: Vec<ToolUse>,
    pub turn: TurnId,
    pub stop: CancellationToken,
    /// Cancelled when calls that were stopped took too long to come back.
    pub give_up: CancellationToken,
    /// True for a call that only observes and was started while its answer still streams.
    pub early: bool,
}

/// Runs calls one batch after the other.
pub(crate) struct CallRunner {
    pub bus: Bus,
    /// Most calls that run at once.
    pub most: usize,
    pub done: mpsc::UnboundedSender<CallId>,
}

impl CallRunner {
    /// Takes batches until nobody sends any more.
    pub async fn run(self, mut batches: mpsc::UnboundedReceiver<Batch>) {
        let mut running = FuturesUnordered::new();
        loop {
            let batch = tokio::select! {
                // One order, so that the same events lead to the same.
                biased;
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
        let order = Arc::new(Scheduler::default());
        let calls = batch.calls.iter().map(|call| {
            let (turn, running) = (order.turn(), self.one(call.clone(), &batch));
            let meant = Meant::of(call.clone(), &batch.dispatcher).call;
            let batch = &batch;
            async move {
                batch.dispatcher.ready(&turn, &meant).await;
                running.await;
            }
        });
        // The first that has not ended is always among them.
        let calls: Vec<_> = calls.collect();
        futures::stream::iter(calls).buffer_unordered(self.most).collect::<()>().await;
    }

    fn one(&self, call: ToolUse, batch: &Batch) -> impl Future<Output = ()> + use<> {
        let (dispatcher, bus, done) =
            (batch.dispatcher.clone(), self.bus.clone(), self.done.clone());
        let (turn, stop, give_up) = (batch.turn, batch.stop.child_token(), batch.give_up.clone());
        async move {
            let (id, agent) = (call.id.clone(), dispatcher.agent.clone());
            let mut meant = Meant::of(call, &dispatcher);
            let wrong = meant.wrong.take().map(|why| {
                let (call, tool) = (id.clone(), CALL_TOOL.to_owned());
                bus.emit_or_show(
                    &agent,
                    turn,
                    Body::CallStarted { call, tool, input: None, plan: None },
                );
                Outcome::ended(Status::Failed, why)
            });
            let is_made = wrong.is_none();
            let mut running = tokio::spawn(async move {
                if is_made {
                    meant.run(&dispatcher, turn, stop).await;
                }
            });
            let lost = tokio::select! {
                biased;
                ran = &mut running => wrong.or_else(|| ran.err().map(broke_down)),
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
                if let Some(error) = bus.emit_or_show(&agent, turn, ended) {
                    let text = error.to_string();
                    bus.broadcast(&agent, turn, Body::Notice { level: Level::Error, text });
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
