//! Stretches of a conversation that the model drops from its view.
//!
//! **Invariant:** a call and its result go together. Messages of the person, and those of haft, of
//! hooks and of jobs, never go. Nothing leaves the log.

use haft_types::{CallId, EventId, From, Message, Part};

use crate::{Fold, answer::UNFINISHED};

/// What a stretch of a conversation consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// The last event of the first message that goes.
    pub from: EventId,
    /// The last event of the last one.
    pub to: EventId,
    /// How many messages go.
    pub messages: usize,
    /// The calls that go, in their order.
    pub calls: Vec<CallId>,
    /// Bytes of the messages that go, as JSON.
    pub dropped: usize,
    /// Bytes of the messages behind the first one that goes, and that stay.
    pub behind: usize,
}

impl Fold {
    /// The stretch between two places, both included. A place is the address of a call
    /// (`out://c3`) or a message of the person (`user:2`, from 1).
    ///
    /// # Errors
    /// Names the place that is none, or that is not in view, in words for the model.
    pub fn stretch(&self, from: &str, to: &str) -> Result<Stretch, String> {
        let (first, last) = (self.place_of(from)?.0, self.place_of(to)?.1);
        if first > last {
            return Err(format!("{from:?} comes after {to:?}: give the earlier one as from"));
        }
        let mut stretch = Stretch::default();
        for (index, message) in self.final_messages().iter().enumerate().skip(first) {
            let bytes = || serde_json::to_string(message).map_or(0, |json| json.len());
            let end = self.end_of(index);
            if index > last || !is_models(message) || end == UNFINISHED {
                stretch.behind += bytes();
                continue;
            }
            if stretch.messages == 0 {
                stretch.from = end;
            }
            stretch.to = end;
            stretch.messages += 1;
            stretch.dropped += bytes();
            if let Message::Results { results } = message {
                stretch.calls.extend(results.iter().map(|result| result.id.clone()));
            }
        }
        if stretch.messages == 0 {
            return Err(format!("nothing of yours stands from {from:?} to {to:?}"));
        }
        Ok(stretch)
    }

    /// The messages of a place: the first one, and the last one.
    fn place_of(&self, place: &str) -> Result<(usize, usize), String> {
        let gone = || format!("{place:?} is not in view any more, or not complete yet");
        if let Some(number) = place.strip_prefix("user:") {
            let said = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let said = said.and_then(|index| self.person_messages().get(index));
            let count = self.person_messages().len();
            let (id, _) = said.ok_or_else(|| {
                format!("{place:?} is no message of the person: there are user:1 to user:{count}")
            })?;
            let is_said = |(index, message): (usize, &Message)| {
                let is_persons =
                    matches!(message, Message::User { from: From::Person | From::Steer, .. });
                (is_persons && self.end_of(index) == *id).then_some(index)
            };
            let index = self.final_messages().iter().enumerate().find_map(is_said);
            return index.map(|index| (index, index)).ok_or_else(gone);
        }
        let call = place.strip_prefix("out://").unwrap_or(place);
        if call.is_empty() || call.contains(['/', ' ']) {
            return Err(format!("{place:?} is no place: give out://ID of a call, or user:N"));
        }
        let index = self.place_of_call(&CallId(call.to_owned().into())).ok_or_else(gone)?;
        // The answer that made the call stands right before the results.
        Ok((index.saturating_sub(1), index))
    }

    /// Drops what the model said and did from one message to another.
    pub(crate) fn snip(&mut self, from: EventId, to: EventId, text: &str) {
        let parts = vec![Part::text(text)];
        let mut note = Some(Message::User { from: From::Haft, parts });
        self.replace_messages(|end, message| {
            if end < from || end > to || !is_models(&message) {
                return Some(message);
            }
            note.take()
        });
    }
}

/// Whether a message is of the model's own making.
fn is_models(message: &Message) -> bool {
    matches!(message, Message::Assistant { .. } | Message::Results { .. })
}
