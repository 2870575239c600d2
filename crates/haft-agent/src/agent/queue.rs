//! The queue of messages that the person typed while the agent works. It is stored in the log until
//! they are sent, so it survives a killed haft.
//!
//! **Invariant:** before the model is asked again, each line is in the log as queued or as sent. It
//! may be there as both, but never as neither.

use haft_tool::Arrivals;
use haft_types::{Body, Event, From, Part};
use serde_json::{Value, json};

use super::{Agent, handle::Withdrawal, text_of};

/// Key of the state that holds the lines, in their order.
pub(super) const QUEUE: &str = "agent.queue";

impl Agent {
    /// Logs the lines that wait and shows them, where they are others than before.
    pub(super) fn keep_queue(&mut self) {
        let arrivals = self.setup.dispatcher.conversation.map.get::<Arrivals>();
        arrivals.set(self.machine.has_message());
        let waiting = self.machine.waiting();
        let ids: Vec<u64> = waiting.iter().map(|queued| queued.id).collect();
        if ids != self.shown_queue {
            self.shown_queue = ids;
            self.emit_or_tell(Body::Queue { waiting });
        }
        // What came back to the person when the turn ended stays in the log until the next one begins.
        if self.machine.is_idle() {
            return;
        }
        let mine = |from: &From| matches!(from, From::Person | From::Steer);
        let waiting = self.unheard.iter().chain(self.machine.queued());
        let lines: Vec<String> =
            waiting.filter(|words| mine(&words.from)).map(|words| text_of(&words.parts)).collect();
        if lines == self.queued {
            return;
        }
        let value = if lines.is_empty() { Value::Null } else { json!(lines) };
        // What cannot be kept is in memory all the same; the next request tells of the log.
        drop(self.emit(Body::State { key: QUEUE.into(), value }));
        self.queued = lines;
    }

    /// Takes messages out of the queue, for who asked for that.
    pub(super) fn withdraw(&mut self, wanted: Withdrawal) {
        let taken = self.machine.withdraw(wanted.id);
        self.keep_queue();
        // Who does not wait any more gets them by the event.
        if let Err(taken) = wanted.answer.send(taken) {
            for queued in taken {
                self.give_back(&queued.parts);
            }
        }
    }

    /// The lines that a log has which were not said.
    pub(super) fn queued_before(value: Option<Value>) -> Vec<String> {
        value.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default()
    }
}

/// The person's lines that were still queued when a log ended, in order.
#[derive(Debug, Default)]
pub struct UnsentLines(Vec<String>);

impl UnsentLines {
    /// Takes the next event of the branch.
    pub fn note(&mut self, event: &Event) {
        match &event.body {
            Body::State { key, value } if key.as_ref() == QUEUE => {
                self.0 = Agent::queued_before(Some(value.clone()));
            }
            // It was said, and haft ended before it could log that it no longer waits.
            Body::User { from: From::Person | From::Steer, parts } => remove(&mut self.0, parts),
            _ => {}
        }
    }

    /// Hands them over.
    pub fn into_lines(self) -> Vec<String> {
        self.0
    }
}

impl<'a> FromIterator<&'a Event> for UnsentLines {
    fn from_iter<I: IntoIterator<Item = &'a Event>>(events: I) -> Self {
        let mut lines = Self::default();
        events.into_iter().for_each(|event| lines.note(event));
        lines
    }
}

fn remove(lines: &mut Vec<String>, parts: &[Part]) {
    let said = text_of(parts);
    if let Some(at) = lines.iter().position(|line| *line == said) {
        lines.remove(at);
    }
}
