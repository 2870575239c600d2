//! What tools change about an agent's conversation.
//!
//! **Invariant:** what leaves view stays readable: a result at its address, all in the log.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use haft_host::Outs;
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

/// Stores results that leave view where their addresses lead, of the first so many messages.
pub(super) fn keep_results(
    outs: &Outs,
    fold: &Mutex<Fold>,
    leaves: impl Fn(&CallId) -> bool,
    messages: usize,
) {
    let texts: Vec<(CallId, String)> = {
        let fold = fold.lock().unwrap_or_else(PoisonError::into_inner);
        let results = fold.final_messages().iter().take(messages).filter_map(|message| {
            if let Message::Results { results } = message { Some(results) } else { None }
        });
        let leaving = results.flatten().filter(|result| leaves(&result.id));
        let leaving = leaving.filter(|result| outs.open(&result.id).is_none());
        leaving.map(|result| (result.id.clone(), result.outcome.joined_text())).collect()
    };
    for (call, text) in texts {
        // Where there is no room for it, the log has it still.
        drop(outs.put(&call, text.as_bytes()));
    }
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

impl History for AgentHistory {
    fn snip(&self, turn: TurnId, from: &str, to: &str, why: &str) -> Result<SnipReport, String> {
        let fold = self.fold.upgrade().ok_or("the conversation is over")?;
        let stretch = fold.lock().unwrap_or_else(PoisonError::into_inner).stretch(from, to)?;
        if let Some(session) = self.session.upgrade() {
            keep_results(&session.outs, &fold, |call| stretch.calls.contains(call), usize::MAX);
        }
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
