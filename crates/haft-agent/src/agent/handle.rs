//! What others hold of a running agent: its owner a [`Handle`], senders of inputs an [`AgentSender`].
//!
//! **Invariant:** an agent that is gone is told by `false` or by none, and nothing waits for it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use haft_types::{AgentPath, Queued};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender},
        oneshot,
    },
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::{Repin, WindowUse, repin::Pending};
use crate::Input;

/// What an agent is asked for beside inputs.
pub(super) enum Request {
    /// To give messages back that wait.
    Withdraw(Withdrawal),
    /// To sum up the older part, most about `focus`.
    Compact { focus: Option<String>, answer: oneshot::Sender<Result<String, String>> },
    /// To take the present length as wanted.
    KeepLength,
    /// To tell what fills the window.
    WindowUse(oneshot::Sender<WindowUse>),
}

/// Messages that are to be taken out of the queue: one by its number, or all.
pub(super) struct Withdrawal {
    pub id: Option<u64>,
    pub answer: oneshot::Sender<Vec<Queued>>,
}

/// What an agent receives.
pub(super) type Inputs = (UnboundedReceiver<Input>, UnboundedReceiver<Request>);

/// Whether an agent works, for who does not follow its events.
#[derive(Default)]
pub(super) struct Load {
    /// Inputs that were sent and not taken.
    pub unheard: AtomicUsize,
    /// Whether a turn runs.
    pub is_busy: AtomicBool,
}

/// Sends inputs to a running agent. While it is held, the agent does not end by itself.
#[derive(Clone)]
pub struct AgentSender {
    pub(super) inputs: UnboundedSender<Input>,
    pub(super) pending: Pending,
    pub(super) wishes: UnboundedSender<Request>,
    pub(super) load: Arc<Load>,
    pub(super) closing: CancellationToken,
}

impl AgentSender {
    /// Sends an input to the agent; false when the agent has ended.
    pub fn send(&self, input: Input) -> bool {
        self.load.unheard.fetch_add(1, Ordering::AcqRel);
        self.inputs.send(input).is_ok()
    }

    /// Whether no turn runs, and none will for what was sent so far.
    pub fn is_idle(&self) -> bool {
        let Load { unheard, is_busy } = &*self.load;
        let is_at_rest = unheard.load(Ordering::Acquire) == 0 && !is_busy.load(Ordering::Acquire);
        is_at_rest || self.inputs.is_closed()
    }

    /// Changes model, tools or prompt, right before the next request; of several changes before one
    /// request the last counts. False when the agent is gone.
    pub fn repin(&self, repin: Repin) -> bool {
        self.pending.put(repin);
        !self.inputs.is_closed()
    }

    /// Interrupts running work; the agent ends once it has come to rest.
    fn close(&self) {
        self.send(Input::Interrupt);
        // Other senders may be there: they are told that nobody listens any more.
        self.closing.cancel();
    }

    /// Takes a message that waits out of the queue, or all of them, oldest first. Nothing is taken
    /// where none waits with this number. None when the agent is gone.
    pub async fn withdraw(&self, id: Option<u64>) -> Option<Vec<Queued>> {
        let (answer, answered) = oneshot::channel();
        self.wishes.send(Request::Withdraw(Withdrawal { id, answer })).ok()?;
        answered.await.ok()
    }
}

impl AgentSender {
    /// Takes the length of the conversation as wanted: it is not summed up before it has grown by a
    /// tenth.
    pub fn keep_length(&self) {
        // An agent that is gone sums nothing up.
        drop(self.wishes.send(Request::KeepLength));
    }

    /// What the next request would consist of; none when the agent is gone.
    pub async fn window_use(&self) -> Option<WindowUse> {
        let (answer, answered) = oneshot::channel();
        self.wishes.send(Request::WindowUse(answer)).ok()?;
        answered.await.ok()
    }

    /// Sums up the older part of the conversation, most about `focus`, while no turn runs. Gives a
    /// receipt, or why that cannot be; none when the agent is gone.
    pub async fn compact(&self, focus: Option<String>) -> Option<Result<String, String>> {
        let (answer, answered) = oneshot::channel();
        self.wishes.send(Request::Compact { focus, answer }).ok()?;
        answered.await.ok()
    }
}

/// A handle to a running agent. Dropping it interrupts the agent, which then ends.
pub struct Handle {
    sender: AgentSender,
    task: Option<JoinHandle<()>>,
}

impl Handle {
    pub(super) fn new(sender: AgentSender, task: JoinHandle<()>) -> Self {
        Self { sender, task: Some(task) }
    }

    /// As [`AgentSender::send`].
    pub fn send(&self, input: Input) -> bool {
        self.sender.send(input)
    }

    /// As [`AgentSender::repin`].
    pub fn repin(&self, repin: Repin) -> bool {
        self.sender.repin(repin)
    }

    /// A sender of inputs to this agent.
    pub fn sender(&self) -> AgentSender {
        self.sender.clone()
    }

    /// Interrupts running work and returns once the agent has come to rest.
    pub async fn close(mut self) {
        self.sender.close();
        if let Some(task) = self.task.take() {
            // A driver that broke down has told so on the bus.
            drop(task.await);
        }
    }
}

impl Drop for Handle {
    /// Nothing runs on without anyone who wants it.
    fn drop(&mut self) {
        self.sender.close();
    }
}

/// The running agents of a session, by their paths. It keeps none of them alive.
#[derive(Default)]
pub struct Agents(Mutex<BTreeMap<AgentPath, WeakSender>>);

struct WeakSender {
    inputs: WeakUnboundedSender<Input>,
    pending: Pending,
    wishes: WeakUnboundedSender<Request>,
    load: Arc<Load>,
    closing: CancellationToken,
}

impl WeakSender {
    fn upgrade(&self) -> Option<AgentSender> {
        let inputs = self.inputs.upgrade().filter(|inputs| !inputs.is_closed())?;
        let wishes = self.wishes.upgrade()?;
        let (pending, load) = (self.pending.clone(), self.load.clone());
        let closing = self.closing.clone();
        Some(AgentSender { inputs, pending, wishes, load, closing })
    }
}

impl Agents {
    /// Adds an agent; it takes the place of one with the same path.
    pub fn add(&self, path: AgentPath, agent: &AgentSender) {
        let AgentSender { inputs, pending, wishes, load, closing } = agent;
        let weak = WeakSender {
            inputs: inputs.downgrade(),
            pending: pending.clone(),
            wishes: wishes.downgrade(),
            load: load.clone(),
            closing: closing.clone(),
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, other| other.upgrade().is_some());
        all.insert(path, weak);
    }

    /// The agent with this path; none when it is gone.
    pub fn get(&self, path: &AgentPath) -> Option<AgentSender> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(path)?.upgrade()
    }

    /// The agents below this one.
    pub fn below(&self, path: &AgentPath) -> Vec<AgentSender> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_below =
            |other: &AgentPath| other.0.len() > path.0.len() && other.0.starts_with(&path.0);
        all.iter().filter(|(other, _)| is_below(other)).filter_map(|(_, a)| a.upgrade()).collect()
    }

    /// Ends the agents below this one, and waits for them at most so long.
    pub async fn close_below(&self, path: &AgentPath, within: Duration) {
        let agents = self.below(path);
        for agent in &agents {
            agent.close();
        }
        let ended = async {
            for agent in &agents {
                agent.inputs.closed().await;
            }
        };
        // One that does not come to rest is left: its calls were cancelled.
        drop(tokio::time::timeout(within, ended).await);
    }
}
