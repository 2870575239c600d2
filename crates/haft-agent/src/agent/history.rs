//! What tools change about an agent's conversation.
//!
//! **Invariant:** what leaves view stays readable: a result at its address, all in the log.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use haft_session::Fold;
use haft_tool::{Dispatcher, Events as _, History, Session, SnipReport, WithHistory};
use haft_types::{AgentPath, Body, BreakCause, CallId, Message, TurnId};

use crate::{Bus, compaction::tokens};

/// The conversation of one agent. It keeps neither the session nor the agent alive.
struct AgentHistory {
    agent: AgentPath,
    fold: Weak<Mutex<Fold>>,
    session: Weak<Session>,
    bus: Bus,
}

/// Lets the tools of an agent change its conversation.
pub(super) fn offer(dispatcher: &Dispatcher, fold: &Arc<Mutex<Fold>>, bus: &Bus) {
    let history = AgentHistory {
        agent: dispatcher.agent.clone(),
        fold: Arc::downgrade(fold),
        session: Arc::downgrade(&dispatcher.session),
        bus: bus.clone(),
    };
    dispatcher.conversation.map.get::<WithHistory>().set(Arc::new(history));
}

impl AgentHistory {
    /// Stores results where their addresses lead.
    fn keep(&self, fold: &Mutex<Fold>, calls: &[CallId]) {
        let Some(session) = self.session.upgrade() else { return };
        let texts: Vec<(CallId, String)> = {
            let fold = fold.lock().unwrap_or_else(PoisonError::into_inner);
            let results = fold.final_messages().iter().filter_map(|message| match message {
                Message::Results { results } => Some(results),
                _ => None,
            });
            let going = results.flatten().filter(|result| calls.contains(&result.id));
            going.map(|result| (result.id.clone(), result.outcome.joined_text())).collect()
        };
        for (call, text) in texts {
            if session.outs.open(&call).is_none() {
                // Where there is no room for it, the log has it still.
                drop(session.outs.put(&call, text.as_bytes()));
            }
        }
    }
}

impl History for AgentHistory {
    fn snip(&self, turn: TurnId, from: &str, to: &str, why: &str) -> Result<SnipReport, String> {
        let fold = self.fold.upgrade().ok_or("the conversation is over")?;
        let stretch = fold.lock().unwrap_or_else(PoisonError::into_inner).stretch(from, to)?;
        self.keep(&fold, &stretch.calls);
        let calls: Vec<String> = stretch.calls.iter().map(CallId::address).collect();
        let kept = match &calls[..] {
            [] => String::new(),
            [one] => format!(" Its output stays at {one}."),
            [first, .., last] => format!(" Their outputs stay at {first} to {last}."),
        };
        let text = format!(
            "[{} messages of yours were dropped here by snip: {why}.{kept}]",
            stretch.messages
        );
        let cause = BreakCause::Snip;
        self.bus
            .emit(&self.agent, turn, Body::Break { cause, at_byte: None })
            .and_then(|()| {
                let (from, to) = (stretch.from, stretch.to);
                self.bus.emit(&self.agent, turn, Body::Snipped { from, to, text: text.clone() })
            })
            .map_err(|error| error.to_string())?;
        Ok(SnipReport {
            messages: stretch.messages,
            calls: calls.len(),
            saved: tokens(stretch.dropped).saturating_sub(tokens(text.len())),
            uncached: tokens(stretch.behind),
        })
    }
}
