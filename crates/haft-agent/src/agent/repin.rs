//! A break at run time: another model, other tools or another prompt from the next request on.
//!
//! **Invariant:** what an answer calls runs with the tools that its request had. Without a cause the
//! prefix of requests stays byte for byte.

use std::sync::{Arc, Mutex, PoisonError};

use haft_llm::{Effort, Provider, Target};
use haft_tool::Dispatcher;
use haft_types::{BreakCause, Prices};

use super::{Agent, Pinned, compaction::Room, history};
use crate::{compaction::ContextLimits, same_but_date};

/// What changes before the next request.
pub struct Repin {
    /// Why; none where only what can be called changes, and no byte of the prefix.
    pub cause: Option<BreakCause>,
    /// Takes calls from then on.
    pub dispatcher: Arc<Dispatcher>,
    /// Gives answers from then on. Without a cause it does not count, nor does what follows.
    pub provider: Arc<dyn Provider>,
    /// The model, in the form that `--model` takes.
    pub name: String,
    /// The same as its provider writes it.
    pub target: Target,
    /// How hard it thinks.
    pub effort: Option<Effort>,
    /// What requests begin with.
    pub pinned: Pinned,
    /// The model's window, and when the conversation is shortened for it.
    pub context: ContextLimits,
    /// What the model costs; none where that is not known.
    pub prices: Option<Prices>,
    /// Most tokens of an answer of the model; none where that is not known.
    pub output: Option<u64>,
    /// Maximum number of tokens of one answer; none uses the default of the wire.
    pub max_tokens: Option<u32>,
}

/// What waits to be taken; of several the last counts.
#[derive(Clone, Default)]
pub(super) struct Pending(Arc<Mutex<Option<Repin>>>);

impl Pending {
    pub fn put(&self, repin: Repin) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(repin);
    }

    /// Puts it where nothing waits yet.
    pub fn put_if_none(&self, repin: Repin) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(repin);
    }

    fn take(&self) -> Option<Repin> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Agent {
    /// Takes what waits, right before a request.
    pub(super) fn take_repin(&mut self) {
        let Some(repin) = self.pending.take() else { return };
        self.setup.dispatcher = repin.dispatcher;
        history::offer(&self.setup.dispatcher, &self.fold, &self.setup.bus);
        let Some(cause) = repin.cause else { return };
        let mut pinned = repin.pinned;
        // Another date is no reason to send all of it again.
        if same_but_date(&self.setup.pinned.system, &pinned.system) {
            pinned.system.clone_from(&self.setup.pinned.system);
        }
        let is_encoded_anew = repin.provider.name() != self.setup.provider.name()
            || repin.target != self.setup.target;
        let before = std::mem::replace(&mut self.setup.pinned, pinned);
        // What was never sent breaks nothing.
        if self.setup.cause.is_none() {
            self.setup.before = Some(before);
        }
        self.setup.cause =
            Some(self.setup.cause.filter(|first| *first == BreakCause::First).unwrap_or(cause));
        self.take_tools();
        self.format = self.setup.pinned.format.as_str().into();
        self.system = self.setup.pinned.system.clone().into();
        (self.setup.provider, self.setup.target) = (repin.provider, repin.target);
        self.setup.name = repin.name;
        (self.setup.effort, self.setup.context) = (repin.effort, repin.context);
        (self.setup.prices, self.setup.output) = (repin.prices, repin.output);
        self.setup.max_tokens = repin.max_tokens;
        self.room = Room::default();
        if is_encoded_anew {
            self.encoded.clear();
        }
    }
}
