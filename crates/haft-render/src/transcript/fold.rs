//! How events become entries.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use haft_types::{
    AgentPath, Body, CallId, Event, Level, Part, QuestionId, Queued, ToolUse, TurnId, When,
};

use super::{
    AgentStatus, CallEntry, CallPhase, Changed, Content, Entry, EntryId, EntryState, Tail,
};

/// Most bytes of a text that an entry holds.
const MOST: usize = 8 << 20;
/// What stands behind it where there was more.
const LEFT_OUT: &str =
    "\n[the rest of this text is left out here; the log of the session has it]\n";

/// The entries of a session, in the order in which they began.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    entries: BTreeMap<EntryId, Entry>,
    last: u64,
    agents: BTreeMap<AgentPath, Agent>,
    calls: HashMap<CallId, EntryId>,
    questions: HashMap<QuestionId, EntryId>,
    jobs: HashMap<String, EntryId>,
    /// Entries that the present event changed.
    changed: Changed,
}

/// What is open of an agent.
#[derive(Clone, Debug, Default)]
struct Agent {
    turn: TurnId,
    in_turn: bool,
    running: usize,
    questions: Vec<QuestionId>,
    /// The parts of the answer that streams, by their position in it.
    parts: BTreeMap<u32, EntryId>,
    queue: Vec<Queued>,
}

impl Transcript {
    /// Takes the next event. Gives the entries that are new or other than before.
    pub fn push(&mut self, event: &Arc<Event>) -> Changed {
        if event.turn > self.agent(event).turn {
            // Whatever the turn before left open is over.
            self.settle(event, EntryState::Final);
            let agent = self.agent(event);
            (agent.turn, agent.running) = (event.turn, 0);
        }
        match &event.body {
            Body::AnswerPart { index, part } => self.part(event, *index, part),
            Body::CallPart { index, name, json } => self.call_part(event, *index, name, json),
            Body::CallStarted { .. } | Body::CallOutput { .. } | Body::CallProgress { .. } => {
                self.call(event);
            }
            Body::CallEnded { call, .. } => self.call_ended(event, call),
            Body::AnswerEnded { .. } => self.settle(event, EntryState::Final),
            Body::AnswerFailed { retried, .. } => {
                let state = if *retried { EntryState::Void } else { EntryState::Final };
                self.settle(event, state);
                self.plain(event);
            }
            Body::Asked { question } => {
                let content = Content::Question { question: event.clone(), answer: None };
                let id = self.add(event, EntryState::Live, content);
                self.questions.insert(question.id.clone(), id);
                self.agent(event).questions.push(question.id.clone());
                self.call_phase(question.call.as_ref(), CallPhase::Waiting, CallPhase::Asking);
            }
            Body::Answered { question, .. } => self.answered(event, question),
            Body::JobStarted { .. } | Body::JobEnded { .. } => self.job(event),
            Body::TurnEnded { .. } => {
                self.settle(event, EntryState::Final);
                let agent = self.agent(event);
                (agent.in_turn, agent.running) = (false, 0);
                self.plain(event);
            }
            Body::Queue { waiting } => self.agent(event).queue.clone_from(waiting),
            _ => self.plain(event),
        }
        std::mem::take(&mut self.changed)
    }

    /// All entries that are held, in the order in which they began.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.values()
    }

    /// An entry; none where it was released.
    pub fn entry(&self, id: EntryId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// What an agent does.
    pub fn status(&self, agent: &AgentPath) -> AgentStatus {
        match self.agents.get(agent) {
            Some(Agent { questions, .. }) if !questions.is_empty() => {
                AgentStatus::Waiting { question: questions[0].clone() }
            }
            Some(Agent { running: calls @ 1.., .. }) => AgentStatus::Running { calls: *calls },
            Some(Agent { in_turn: true, .. }) => AgentStatus::Asking,
            _ => AgentStatus::Idle,
        }
    }

    /// The agents that were seen.
    pub fn agents(&self) -> impl Iterator<Item = &AgentPath> {
        self.agents.keys()
    }

    /// The messages that wait for an agent.
    pub fn queue(&self, agent: &AgentPath) -> &[Queued] {
        self.agents.get(agent).map(|agent| &*agent.queue).unwrap_or_default()
    }

    /// Whether a message waits for an agent that begins a turn of its own.
    pub fn has_later(&self, agent: &AgentPath) -> bool {
        self.queue(agent).iter().any(|queued| queued.when == When::FollowUp)
    }

    /// Forgets what a front end is done with: the entries before this one that cannot change.
    pub fn release(&mut self, before: EntryId) {
        let done: Vec<EntryId> = self.entries.range(..before).map(|(id, _)| *id).collect();
        for id in done {
            self.forget(id);
        }
    }

    /// Forgets an entry if it cannot change; true where it is not held any more.
    pub fn forget(&mut self, id: EntryId) -> bool {
        if self.entries.get(&id).is_some_and(|entry| entry.state == EntryState::Live) {
            return false;
        }
        match self.entries.remove(&id).map(|entry| entry.content) {
            Some(Content::Call(call)) => self.forget_call(id, call.call.as_ref()),
            Some(Content::Job { job, .. }) => drop(self.jobs.remove(&job)),
            _ => {}
        }
        true
    }

    fn forget_call(&mut self, id: EntryId, call: Option<&CallId>) {
        // Another entry may have this call by now.
        if let Some(call) = call.filter(|call| self.calls.get(call) == Some(&id)) {
            self.calls.remove(call);
        }
    }

    fn agent(&mut self, event: &Event) -> &mut Agent {
        // Without a copy of the path, which most events would make for nothing.
        if !self.agents.contains_key(&event.agent) {
            self.agents.insert(event.agent.clone(), Agent::default());
        }
        self.agents.entry(event.agent.clone()).or_default()
    }

    fn add(&mut self, event: &Event, state: EntryState, content: Content) -> EntryId {
        self.last += 1;
        let (id, agent) = (EntryId(self.last), event.agent.clone());
        let entry = Entry { id, agent, turn: event.turn, at: event.at, state, content };
        self.entries.insert(id, entry);
        self.changed.added.push(id);
        id
    }

    /// An entry that changes by the present event; none where it cannot change any more.
    fn update(&mut self, id: EntryId) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(&id).filter(|entry| entry.state == EntryState::Live)?;
        let Changed { added, updated } = &mut self.changed;
        if !added.contains(&id) && !updated.contains(&id) {
            updated.push(id);
        }
        Some(entry)
    }

    /// An entry that is whole at once; none for what a person does not read here.
    fn plain(&mut self, event: &Arc<Event>) {
        let content = match &event.body {
            Body::User { from, parts } => {
                let agent = self.agent(event);
                agent.in_turn = true;
                Content::Message { from: from.clone(), parts: parts.clone() }
            }
            Body::Unsent { parts } => Content::Unsent(parts.clone()),
            Body::Notice { level, text } => Content::Notice(*level, text.clone()),
            Body::Mode { mode, edits, by } => {
                Content::Mode { mode: *mode, edits: *edits, by: by.clone() }
            }
            Body::Break { cause, at_byte } => Content::Break { cause: *cause, at_byte: *at_byte },
            Body::Undone { .. } => Content::Undone(event.clone()),
            Body::Rewound { .. } => {
                let text = "the conversation goes on from an earlier message".to_owned();
                Content::Notice(Level::Info, text)
            }
            Body::AnswerFailed { error, retried, .. } => {
                Content::Failed { error: error.clone(), retried: *retried }
            }
            Body::TurnEnded { end, usage } => Content::TurnEnded(end.clone(), *usage),
            _ => return,
        };
        self.add(event, EntryState::Final, content);
    }

    /// Ends the answer of an agent: what came of it is whole, or void. Calls go on without it.
    fn settle(&mut self, event: &Event, state: EntryState) {
        for id in std::mem::take(&mut self.agent(event).parts).into_values() {
            let Some(entry) = self.update(id) else { continue };
            entry.state = match &entry.content {
                // Its arguments never became whole.
                Content::Call(call) if call.call.is_none() => EntryState::Void,
                Content::Call(call)
                    if state == EntryState::Final || call.phase >= CallPhase::Running =>
                {
                    EntryState::Live
                }
                _ => state,
            };
            let is_void = entry.state == EntryState::Void;
            if let Content::Call(call) = &entry.content
                && is_void
            {
                let call = call.call.clone();
                self.forget_call(id, call.as_ref());
            }
        }
    }

    fn part(&mut self, event: &Event, index: u32, part: &Part) {
        self.agent(event).in_turn = true;
        let known = self.agent(event).parts.get(&index).copied();
        let content = match part {
            Part::Text { text } => Content::Text(text.clone()),
            Part::Thinking { text, .. } => Content::Thinking(text.clone()),
            Part::Call(call) => return self.call_whole(event, known, (index, call)),
            Part::Image { .. } | Part::Opaque { .. } => return,
        };
        let entry = known.and_then(|id| self.update(id)).map(|entry| &mut entry.content);
        match (entry, content) {
            (Some(Content::Text(all)), Content::Text(text))
            | (Some(Content::Thinking(all)), Content::Thinking(text)) => grow(all, &text),
            (_, content) => {
                let id = self.add(event, EntryState::Live, content);
                // Another kind at the same place: the one before stays live until the answer ends.
                let before = self.agent(event).parts.insert(index, id);
                if let Some(before) = before.and_then(|before| self.update(before)) {
                    before.state = EntryState::Final;
                }
            }
        }
    }

    fn call_part(&mut self, event: &Event, index: u32, name: &str, json: &str) {
        self.agent(event).in_turn = true;
        let known = self.agent(event).parts.get(&index).copied();
        if let Some(Content::Call(call)) =
            known.and_then(|id| self.update(id)).map(|entry| &mut entry.content)
        {
            return grow(&mut call.arguments, json);
        }
        let call = CallEntry { arguments: json.to_owned(), ..unknown(None, name) };
        let id = self.add(event, EntryState::Live, Content::Call(Box::new(call)));
        self.agent(event).parts.insert(index, id);
    }

    /// The arguments of a call are whole.
    fn call_whole(&mut self, event: &Event, known: Option<EntryId>, part: (u32, &ToolUse)) {
        let (index, call) = part;
        let is_open = |entry: &&mut Entry| matches!(&entry.content, Content::Call(known) if known.call.is_none());
        let streamed = known.filter(|id| self.entries.get_mut(id).as_ref().is_some_and(is_open));
        let id = streamed.unwrap_or_else(|| self.call_entry(event, &call.id));
        self.calls.insert(call.id.clone(), id);
        self.agent(event).parts.insert(index, id);
        if let Some(entry) = self.update(id)
            && let Content::Call(known) = &mut entry.content
        {
            known.call = Some(call.id.clone());
            known.tool.clone_from(&call.name);
            known.input.clone_from(&call.input);
            known.phase = known.phase.max(CallPhase::Waiting);
        }
    }

    /// The entry of a call, made where its begin was not seen.
    fn call_entry(&mut self, event: &Event, call: &CallId) -> EntryId {
        let is_live = |id: &&EntryId| {
            self.entries.get(id).is_some_and(|entry| entry.state == EntryState::Live)
        };
        if let Some(id) = self.calls.get(call).filter(is_live) {
            return *id;
        }
        let content = Content::Call(Box::new(unknown(Some(call), "")));
        let id = self.add(event, EntryState::Live, content);
        self.calls.insert(call.clone(), id);
        id
    }

    fn call(&mut self, event: &Event) {
        let (Body::CallStarted { call, .. }
        | Body::CallOutput { call, .. }
        | Body::CallProgress { call, .. }) = &event.body
        else {
            return;
        };
        let id = self.call_entry(event, call);
        let Some(Entry { content: Content::Call(known), .. }) = self.update(id) else { return };
        let begins = known.phase < CallPhase::Running;
        known.phase = CallPhase::Running;
        match &event.body {
            Body::CallStarted { tool, input, plan, .. } => {
                known.tool.clone_from(tool);
                if input.is_some() {
                    known.input.clone_from(input);
                }
                known.title = plan.as_ref().map(|plan| plan.title.clone());
            }
            Body::CallOutput { text, .. } => known.output.push(text),
            Body::CallProgress { detail, .. } => known.progress = Some(detail.clone()),
            _ => {}
        }
        self.agent(event).running += usize::from(begins);
    }

    fn call_ended(&mut self, event: &Arc<Event>, call: &CallId) {
        let id = self.call_entry(event, call);
        let Some(entry) = self.update(id) else { return };
        entry.state = EntryState::Final;
        let mut ran = false;
        if let Content::Call(known) = &mut entry.content {
            ran = known.phase == CallPhase::Running;
            known.phase = CallPhase::Ended;
            known.progress = None;
            known.ended = Some(event.clone());
        }
        let agent = self.agent(event);
        agent.running = agent.running.saturating_sub(usize::from(ran));
    }

    /// Moves a call from one phase to another.
    fn call_phase(&mut self, call: Option<&CallId>, from: CallPhase, to: CallPhase) {
        let Some(id) = call.and_then(|call| self.calls.get(call).copied()) else { return };
        let is_there =
            |entry: &Entry| matches!(&entry.content, Content::Call(call) if call.phase == from);
        if !self.entries.get(&id).is_some_and(is_there) {
            return;
        }
        if let Some(Entry { content: Content::Call(call), .. }) = self.update(id) {
            call.phase = to;
        }
    }

    fn answered(&mut self, event: &Event, question: &QuestionId) {
        let Body::Answered { reply, by, .. } = &event.body else { return };
        self.agent(event).questions.retain(|open| open != question);
        let known = self.questions.remove(question);
        let Some(entry) = known.and_then(|id| self.update(id)) else {
            let text = format!("the question {} was answered with {}", question.0, reply.option);
            self.add(event, EntryState::Final, Content::Notice(Level::Info, text));
            return;
        };
        entry.state = EntryState::Final;
        let mut about = None;
        if let Content::Question { question, answer } = &mut entry.content {
            *answer = Some((reply.clone(), by.clone()));
            if let Body::Asked { question } = &question.body {
                about.clone_from(&question.call);
            }
        }
        self.call_phase(about.as_ref(), CallPhase::Asking, CallPhase::Waiting);
    }

    fn job(&mut self, event: &Event) {
        match &event.body {
            Body::JobStarted { job, title, .. } => {
                let content = Content::Job { job: job.clone(), title: title.clone(), end: None };
                let id = self.add(event, EntryState::Live, content);
                self.jobs.insert(job.clone(), id);
            }
            Body::JobEnded { job, end, exit } => {
                let id = self.jobs.get(job).copied().unwrap_or_else(|| {
                    let (job, title) = (job.clone(), String::new());
                    self.add(event, EntryState::Live, Content::Job { job, title, end: None })
                });
                let Some(entry) = self.update(id) else { return };
                entry.state = EntryState::Final;
                if let Content::Job { end: known, .. } = &mut entry.content {
                    *known = Some((*end, *exit));
                }
            }
            _ => {}
        }
    }
}

/// A call of which nothing is known but its id.
fn unknown(call: Option<&CallId>, tool: &str) -> CallEntry {
    CallEntry {
        call: call.cloned(),
        // Calls that a call makes have ids below its own.
        parent: call
            .and_then(|call| call.0.rsplit_once('.'))
            .map(|(above, _)| CallId(above.into())),
        tool: tool.to_owned(),
        phase: CallPhase::Arguments,
        arguments: String::new(),
        input: None,
        title: None,
        output: Tail::default(),
        progress: None,
        ended: None,
    }
}

/// Adds text, as far as there is room; what is left out is said once.
fn grow(all: &mut String, more: &str) {
    let room = MOST.saturating_sub(all.len());
    if room >= more.len() {
        return all.push_str(more);
    }
    if all.len() <= MOST {
        all.push_str(&more[..more.floor_char_boundary(room)]);
        all.push_str(LEFT_OUT);
    }
}
