//! What a tool can change about the conversation that its call is part of.

use std::sync::{Arc, Mutex, PoisonError};

use haft_types::TurnId;

/// A conversation, as tools see it.
pub trait History: Send + Sync {
    /// Drops what the model said and did between two places, for a reason.
    ///
    /// # Errors
    /// Says why that cannot be, in words for the model.
    fn snip(&self, turn: TurnId, from: &str, to: &str, why: &str) -> Result<SnipReport, String>;
}

/// What was dropped, in tokens by bytes: four bytes are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnipReport {
    /// Messages that went.
    pub messages: usize,
    /// Calls that went with them.
    pub calls: usize,
    /// Tokens that later requests have less.
    pub saved: u64,
    /// Tokens behind the stretch, which no cache has in the next request.
    pub uncached: u64,
}

/// The conversation of an agent, where calls are part of one; in the type map of the agent's
/// [`Conversation`](crate::Conversation).
#[derive(Default)]
pub struct WithHistory(Mutex<Option<Arc<dyn History>>>);

impl WithHistory {
    /// Sets the conversation.
    pub fn set(&self, history: Arc<dyn History>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(history);
    }

    /// The conversation; none where no model is there.
    pub fn get(&self) -> Option<Arc<dyn History>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
