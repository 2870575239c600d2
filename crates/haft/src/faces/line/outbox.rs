//! Typed lines on their way to the agent: files that they name are read first, and commands are
//! run.
//!
//! **Invariant:** lines arrive in the order in which they were typed. A line that is stopped on its
//! way is returned.

use std::sync::Arc;

use haft_agent::{Handle, Input, QueuedMessage, When};
use haft_tool::Dispatcher;
use haft_types::{From, Part};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::app::attachments;

/// Most bytes of what a command said that the model is told.
const TOLD: usize = 16 << 10;

/// Something that was typed.
enum Errand {
    /// Words for the agent.
    Say(String, When),
    /// A command of the person.
    Run(String),
}

/// What became of an entry.
pub enum Done {
    /// The agent has the words.
    Said,
    /// The command ended.
    Ran,
    /// The line was stopped before the agent had it; this is its text.
    Stopped(String),
}

/// See the module.
pub struct Outbox {
    errands: UnboundedSender<(Errand, CancellationToken)>,
    done: UnboundedReceiver<Done>,
    dispatcher: Arc<Dispatcher>,
    /// How many are on their way.
    open: usize,
    /// Whether anything was typed.
    used: bool,
    stop: CancellationToken,
}

impl Outbox {
    /// An outbox for an agent and its tools.
    pub fn new(dispatcher: Arc<Dispatcher>, handle: &Handle) -> Self {
        let (errands, received) = unbounded_channel();
        let (told, done) = unbounded_channel();
        tokio::spawn(work(dispatcher.clone(), handle.sender(), received, told));
        Self { errands, done, dispatcher, open: 0, used: false, stop: CancellationToken::new() }
    }

    /// Whether something is on its way.
    pub const fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Whether anything was said or run.
    pub const fn is_used(&self) -> bool {
        self.used
    }

    /// Sends words to the agent. Returns them if they can be sent at once, which is then up to the
    /// caller.
    pub fn say(&mut self, text: String, when: When) -> Option<(String, When)> {
        self.used = true;
        if !self.is_open() && attachments::named(&text, &self.dispatcher.place).is_empty() {
            return Some((text, when));
        }
        self.send(Errand::Say(text, when));
        None
    }

    /// Runs a command of the person.
    pub fn run(&mut self, command: String) {
        self.used = true;
        self.send(Errand::Run(command));
    }

    fn send(&mut self, errand: Errand) {
        if self.stop.is_cancelled() {
            self.stop = CancellationToken::new();
        }
        self.open += usize::from(self.errands.send((errand, self.stop.clone())).is_ok());
    }

    /// Stops what is on its way.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits for the next entry that is done.
    pub async fn done(&mut self) -> Done {
        match self.done.recv().await {
            Some(done) => {
                self.open -= 1;
                done
            }
            None => std::future::pending().await,
        }
    }
}

async fn work(
    dispatcher: Arc<Dispatcher>,
    agent: UnboundedSender<Input>,
    mut errands: UnboundedReceiver<(Errand, CancellationToken)>,
    told: UnboundedSender<Done>,
) {
    while let Some((errand, stop)) = errands.recv().await {
        let done = match errand {
            Errand::Say(text, when) => {
                let named = attachments::named(&text, &dispatcher.place);
                let attached = attachments::attached(&dispatcher, &named, &stop).await;
                if stop.is_cancelled() {
                    Done::Stopped(text)
                } else {
                    let parts = [Part::text(text)].into_iter().chain(attached).collect();
                    // An agent that is gone has told so.
                    drop(agent.send(Input::User { when, parts }));
                    Done::Said
                }
            }
            Errand::Run(command) => {
                let input = json!({"command": command});
                let (_, outcome) = dispatcher.call_typed("bash", input, stop).await;
                let parts = vec![Part::text(ran(&command, &outcome.joined_text()))];
                let words = QueuedMessage { from: From::Haft, parts };
                drop(agent.send(Input::Notice { words, wake: false }));
                Done::Ran
            }
        };
        if told.send(done).is_err() {
            return;
        }
    }
}

/// What the model is told of a command that the person ran.
fn ran(command: &str, said: &str) -> String {
    let end = said.floor_char_boundary(TOLD);
    let more = if end < said.len() { "\n[the rest was left out]" } else { "" };
    format!("The person ran this command themselves:\n{command}\nIt gave:\n{}{more}", &said[..end])
}
