//! The one fold from events to a conversation, live and resumed.
//!
//! **Invariants:** a message with calls is followed by the results of exactly those calls, one
//! each, in their order, whatever the events hold. Messages that were given as final never change
//! but by [`Body::Masked`] and [`Body::Compacted`], which raise [`Fold::revision`]. Folding
//! events one by one, or all at once, gives the same.
//!
//! It knows one agent, and only the events of one branch: the caller gives it no others. A turn
//! that begins ends whatever the turn before left open, because a turn ends when haft is idle.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::Write as _,
};

use haft_types::{
    AgentPath, Body, CallId, Event, EventId, From, Hash, HostPath, Message, Outcome, Part, ToolUse,
    TurnId,
};
use serde_json::Value;

use crate::{
    Tree,
    answer::{Answer, UNFINISHED, mask},
};

/// The conversation of one agent along one branch, kept as events come.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    agent: AgentPath,
    turn: TurnId,
    last: EventId,
    /// Final messages, then, while `shown` is true, those that stand for what is open.
    messages: Vec<Message>,
    shown: bool,
    /// The last event of each final message.
    ends: Vec<EventId>,
    /// Where the final results are: message and position in it.
    places: HashMap<CallId, (usize, usize)>,
    /// An answer that still streams.
    streaming: Option<Answer>,
    /// The last final message, where its calls have no results yet.
    waiting: Option<Answer>,
    /// What was said meanwhile.
    held: Vec<(EventId, Message)>,
    /// The providers' ids of all calls.
    wire_ids: HashSet<String>,
    /// Words that stay where the result of a call leaves view, by call.
    staying: HashMap<CallId, Vec<String>>,
    /// All that the person said, compacted or not, each with its event.
    person_messages: Vec<(EventId, Vec<Part>)>,
    revision: u64,
}

impl Fold {
    /// Starts the conversation of an agent.
    pub fn new(agent: AgentPath) -> Self {
        Self { agent, ..Self::default() }
    }

    /// Takes the next event of the branch; those of other agents and passing ones change nothing.
    pub fn push(&mut self, event: &Event) {
        if event.agent != self.agent {
            return;
        }
        self.hide_open();
        if event.turn > self.turn {
            self.turn = event.turn;
            self.settle();
        }
        self.last = event.id.unwrap_or(self.last).max(self.last);
        match &event.body {
            Body::User { from, parts } => {
                if matches!(from, From::Person | From::Steer) {
                    self.person_messages.push((self.last, parts.clone()));
                }
                self.say(Message::User { from: from.clone(), parts: parts.clone() });
            }
            Body::AnswerPart { index, part } => self.piece(*index, part),
            Body::AnswerEnded { model, wire, host, .. } => {
                if let Some(answer) = self.streaming.take() {
                    self.close(answer, [wire, model, host]);
                }
            }
            Body::AnswerFailed { retried: true, .. } => {
                self.streaming = None;
                self.release();
            }
            Body::AnswerFailed { retried: false, .. } => self.break_off(),
            Body::CallStarted { call, .. } => {
                for answer in self.waiting.iter_mut().chain(&mut self.streaming) {
                    answer.start(call);
                }
            }
            Body::CallEnded { call, outcome, .. } => self.end_call(call, outcome),
            Body::State { value, .. } => self.stays(value),
            Body::Masked { calls } => self.mask(calls),
            Body::Compacted { summary, keep_from, .. } => self.compact(summary, *keep_from),
            Body::Snipped { from, to, text } => self.snip(*from, *to, text),
            Body::Undone { calls, files, redo, .. } => {
                let parts = vec![Part::Text { text: undone(calls, files, *redo) }];
                self.say(Message::User { from: From::Haft, parts });
            }
            _ => {}
        }
    }

    /// Starts anew with what a branch holds up to its end.
    pub fn restart<'a>(&mut self, branch: impl Iterator<Item = &'a Event>) {
        let revision = self.revision + 1;
        *self = Self::new(std::mem::take(&mut self.agent));
        branch.for_each(|event| self.push(event));
        // Whoever encoded messages encodes all again.
        self.revision += revision;
    }

    /// All messages. Those from [`final_count`](Self::final_count) on stand for what is open, as
    /// if nothing more came: a streaming answer so far, and calls without a result.
    pub fn messages(&mut self) -> &[Message] {
        if !self.shown {
            self.shown = true;
            let open = self.open_messages();
            self.messages.extend(open.into_iter().map(|(_, message)| message));
        }
        &self.messages
    }

    /// The messages that only masking and compaction change.
    pub fn final_messages(&self) -> &[Message] {
        &self.messages[..self.ends.len()]
    }

    /// How many messages are final, from the first.
    pub fn final_count(&self) -> usize {
        self.ends.len()
    }

    /// The first event to keep in view so that the final messages from this one on stay; none where
    /// an answer would lose its results, or the place is none.
    pub fn keep_from(&self, index: usize) -> Option<EventId> {
        if index > self.ends.len() {
            return None;
        }
        let before = index.checked_sub(1).map_or(EventId(0), |before| self.ends[before]);
        let is_border = self.ends.get(index).is_none_or(|end| *end > before);
        (is_border && before != UNFINISHED).then(|| EventId(before.0 + 1))
    }

    /// All that the person said, also what a summary stands for, the oldest first.
    pub fn person_messages(&self) -> &[(EventId, Vec<Part>)] {
        &self.person_messages
    }

    /// Changes when messages that were final are no longer what they were: encode all again then.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Calls without a result, in their order, with the result that they get if none comes.
    ///
    /// Whoever resumes a session logs these as ended before anything else.
    pub fn unanswered(&self) -> Vec<(CallId, Outcome)> {
        let answers = self.waiting.iter().chain(&self.streaming);
        answers.flat_map(Answer::unanswered).collect()
    }

    /// Reports whether an answer began that neither ended nor failed.
    pub fn is_streaming(&self) -> bool {
        self.streaming.is_some()
    }

    /// The last turn that was seen.
    pub fn turn(&self) -> TurnId {
        self.turn
    }

    /// Hands over all messages, as [`messages`](Self::messages) gives them.
    pub fn into_messages(mut self) -> Vec<Message> {
        self.messages();
        self.messages
    }

    fn hide_open(&mut self) {
        self.messages.truncate(self.ends.len());
        self.shown = false;
    }

    /// What is open, as if nothing more came, each with its last event.
    fn open_messages(&self) -> Vec<(EventId, Message)> {
        let mut open = Vec::new();
        if let Some(waiting) = &self.waiting {
            open.push((self.last, Message::Results { results: waiting.results() }));
        }
        if let Some(streaming) = &self.streaming {
            let mut answer = streaming.clone();
            answer.fail();
            let (parts, results) = (answer.message(), answer.results());
            if !parts.is_empty() {
                open.push((self.last, assistant([""; 3], parts)));
            }
            if !results.is_empty() {
                open.push((self.last, Message::Results { results }));
            }
        }
        open.extend(self.held.iter().cloned());
        open
    }

    /// Makes what is open final, as if nothing more came.
    fn settle(&mut self) {
        let open = self.open_messages();
        if self.waiting.is_some() {
            self.finish_last();
        }
        (self.waiting, self.streaming) = (None, None);
        self.held.clear();
        for (end, message) in open {
            self.add(end, message);
        }
    }

    fn add(&mut self, end: EventId, message: Message) {
        self.ends.push(end);
        self.messages.push(message);
        self.note_places(self.messages.len() - 1);
    }

    fn note_places(&mut self, index: usize) {
        if let Some(Message::Results { results }) = self.messages.get(index) {
            for (place, result) in results.iter().enumerate() {
                self.places.insert(result.id.clone(), (index, place));
            }
        }
    }

    fn finish_last(&mut self) {
        if let Some(end) = self.ends.last_mut() {
            *end = self.last;
        }
    }

    fn say(&mut self, message: Message) {
        if self.streaming.is_some() || self.waiting.is_some() {
            self.held.push((self.last, message));
        } else {
            self.add(self.last, message);
        }
    }

    /// Says what was held back, once nothing is open.
    fn release(&mut self) {
        if self.streaming.is_none() && self.waiting.is_none() {
            for (end, message) in std::mem::take(&mut self.held) {
                self.add(end, message);
            }
        }
    }

    fn piece(&mut self, index: u32, part: &Part) {
        if self.waiting.is_some() {
            self.settle();
        }
        if let Part::Call(call) = part {
            let nested = call.id.0.contains('.');
            if nested || self.places.contains_key(&call.id) {
                return;
            }
            // Ids of providers that come again tell calls no longer apart.
            let is_new = call.wire_id.is_empty() || self.wire_ids.insert(call.wire_id.clone());
            if !is_new {
                let call = ToolUse { wire_id: String::new(), ..call.clone() };
                return self.streaming.get_or_insert_default().piece(index, &Part::Call(call));
            }
        }
        self.streaming.get_or_insert_default().piece(index, part);
    }

    /// Ends an answer that came to its end.
    fn close(&mut self, answer: Answer, source: [&str; 3]) {
        let parts = answer.message();
        let waits = answer.is_waiting();
        let results = if waits { Vec::new() } else { answer.results() };
        if !parts.is_empty() {
            let end = if waits { UNFINISHED } else { self.last };
            self.add(end, assistant(source, parts));
        }
        if !results.is_empty() {
            self.add(self.last, Message::Results { results });
        }
        self.waiting = waits.then_some(answer);
        self.release();
    }

    /// Ends an answer that broke off: what it said stays.
    fn break_off(&mut self) {
        if let Some(mut answer) = self.streaming.take() {
            answer.fail();
            self.close(answer, [""; 3]);
        }
    }

    fn end_call(&mut self, call: &CallId, outcome: &Outcome) {
        if let Some(streaming) = &mut self.streaming {
            streaming.end(call, outcome);
        }
        let Some(waiting) = &mut self.waiting else { return };
        waiting.end(call, outcome);
        if !waiting.is_waiting() {
            let results = waiting.results();
            self.waiting = None;
            self.finish_last();
            self.add(self.last, Message::Results { results });
            self.release();
        }
    }

    /// Notes the words of a value that the result of a call has, too.
    fn stays(&mut self, value: &Value) {
        let call = value.get("call").and_then(Value::as_str);
        let words = value.get("note").and_then(|note| note.get("words")).and_then(Value::as_str);
        if let (Some(call), Some(words)) = (call, words) {
            self.staying.entry(CallId(call.into())).or_default().push(words.to_owned());
        }
    }

    fn mask(&mut self, calls: &[CallId]) {
        let mut changed = false;
        for call in calls {
            let staying = self.staying.get(call).map_or(&[][..], Vec::as_slice);
            for answer in self.waiting.iter_mut().chain(&mut self.streaming) {
                if answer.has(call) {
                    answer.mask(call, staying);
                }
            }
            let Some((message, place)) = self.places.get(call).copied() else { continue };
            if let Some(Message::Results { results }) = self.messages.get_mut(message)
                && let Some(result) = results.get_mut(place)
            {
                changed |= mask(call, &mut result.outcome, staying);
            }
        }
        self.revision += u64::from(changed);
    }

    /// Puts a summary in place of all messages that ended before `keep_from`. An answer and its
    /// results have one end, so no cut falls between them.
    fn compact(&mut self, summary: &str, keep_from: EventId) {
        let cut = self.ends.iter().position(|end| *end >= keep_from).unwrap_or(self.ends.len());
        let parts = vec![Part::text(summary)];
        let summary = Message::User { from: From::Haft, parts };
        self.messages.splice(..cut, [summary]);
        self.ends.splice(..cut, [EventId(0)]);
        self.places_changed();
    }

    /// The last event of a final message.
    pub(crate) fn end_of(&self, index: usize) -> EventId {
        self.ends.get(index).copied().unwrap_or(UNFINISHED)
    }

    /// The final message that has the result of a call.
    pub(crate) fn place_of_call(&self, call: &CallId) -> Option<usize> {
        self.places.get(call).map(|(message, _)| *message)
    }

    /// Gives each final message with its last event to `keep`, and keeps what that returns.
    pub(crate) fn replace_messages(
        &mut self,
        mut keep: impl FnMut(EventId, Message) -> Option<Message>,
    ) {
        self.hide_open();
        let all = std::mem::take(&mut self.messages).into_iter();
        let ends = std::mem::take(&mut self.ends);
        for (message, end) in all.zip(ends) {
            if let Some(message) = keep(end, message) {
                self.messages.push(message);
                self.ends.push(end);
            }
        }
        self.places_changed();
    }

    /// Notes where results are now, once messages have gone.
    fn places_changed(&mut self) {
        self.places.clear();
        for index in 0..self.messages.len() {
            self.note_places(index);
        }
        self.revision += 1;
    }
}

/// An answer as a message; `source` is its wire, model and host.
fn assistant(source: [&str; 3], parts: Vec<Part>) -> Message {
    let [wire, model, host] = source.map(str::to_owned);
    Message::Assistant { wire, model, host, parts }
}

/// Most files that are named to the model when changes were taken back.
const NAMED: usize = 50;

/// What the model is told when changes were taken back or made again.
fn undone(calls: &[CallId], files: &[(HostPath, Option<Hash>)], redo: bool) -> String {
    let calls: Vec<&str> = calls.iter().map(|call| &*call.0).collect();
    let what = if redo { "made again" } else { "taken back" };
    let mut text = format!("Changes were {what}, by the person's wish: {}.", calls.join(", "));
    for (path, hash) in files.iter().take(NAMED) {
        let state = if hash.is_some() { "has another content now" } else { "is gone now" };
        // Writing into a string cannot fail.
        let _ = write!(text, "\n{path} {state}");
    }
    if let Some(more @ 1..) = files.len().checked_sub(NAMED) {
        let _ = write!(text, "\n{more} more files changed so");
    }
    text.push_str("\nRead a file again before you rely on what it held.");
    text
}

/// The conversation of an agent along the branch that ends at `leaf`.
pub fn conversation(events: &[Event], leaf: EventId, agent: &AgentPath) -> Vec<Message> {
    let mut fold = Fold::new(agent.clone());
    on_branch(events, leaf).for_each(|event| fold.push(event));
    fold.into_messages()
}

/// What an agent's conversation carries along the branch that ends at `leaf`, by key: the last
/// value wins, null removes.
pub fn states(events: &[Event], leaf: EventId, agent: &AgentPath) -> BTreeMap<String, Value> {
    let mut states = BTreeMap::new();
    for event in on_branch(events, leaf).filter(|event| event.agent == *agent) {
        note_state(&mut states, event);
    }
    states
}

/// Takes the next event of one agent on one branch into its states, as [`states`] does.
pub fn note_state(states: &mut BTreeMap<String, Value>, event: &Event) {
    match &event.body {
        Body::State { key, value: Value::Null } => {
            states.remove(key.as_ref());
        }
        Body::State { key, value } => {
            states.insert(key.to_string(), value.clone());
        }
        _ => {}
    }
}

/// The events of the branch that ends at `leaf`, oldest first.
pub fn on_branch(events: &[Event], leaf: EventId) -> impl Iterator<Item = &Event> {
    let by_id: BTreeMap<EventId, &Event> =
        events.iter().rev().filter_map(|event| Some((event.id?, event))).collect();
    let path = events.iter().collect::<Tree>().path(leaf);
    path.into_iter().filter_map(move |id| by_id.get(&id).copied())
}

#[cfg(test)]
mod tests {
    use haft_types::Style;

    use super::*;

    #[test]
    fn of_many_files_that_were_taken_back_some_are_named() {
        let path = |n: usize| HostPath::new(format!("/w/{n}").as_bytes(), Style::Posix).unwrap();
        let files: Vec<_> = (0..NAMED + 7).map(|number| (path(number), None)).collect();
        let calls = [CallId("c1".into())];
        let text = undone(&calls, &files, false);
        assert!(text.contains("\n/w/49 is gone now\n7 more files changed so\n"), "{text}");
        assert!(!undone(&calls, &files[..NAMED], false).contains("more files"));
    }
}
