//! Whether a message waits for the model of a conversation.

use tokio::sync::watch;

/// Whether a message waits for the model, in the type map of its
/// [`Conversation`](crate::Conversation). The agent says so; a call that only lets time pass ends by
/// it.
#[derive(Debug)]
pub struct Arrivals(watch::Sender<bool>);

impl Default for Arrivals {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Arrivals {
    /// Sets whether one waits.
    pub fn set(&self, waits: bool) {
        self.0.send_if_modified(|now| std::mem::replace(now, waits) != waits);
    }

    /// Waits until one does; at once where one does already.
    pub async fn came(&self) {
        // The sender is held here, so there is an end only by a message.
        drop(self.0.subscribe().wait_for(|waits| *waits).await);
    }
}
