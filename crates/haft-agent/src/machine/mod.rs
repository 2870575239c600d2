//! The agent loop as a state machine: inputs in, actions out. No clock, no IO, no randomness.
//!
//! **Invariant:** every call of an answer gets exactly one result before the next request, whatever
//! is interrupted, cut, repeated or fails. Whatever comes in, the machine comes to rest: it waits
//! only for reports that the driver has promised.
//!
//! It does not know what a call does, what was said before, or how long anything takes.

use std::collections::{HashMap, VecDeque, hash_map::Entry};

use haft_types::{
    CallId, From, Outcome, Part, QuestionId, Queued, Reply, Status, Stop, ToolUse, TurnEnd, When,
};

/// How often in a row a provider may pause its answer before the turn ends.
const PAUSES: u32 = 16;

/// A message that waits to be added to the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedMessage {
    /// Who says it.
    pub from: From,
    /// The content of the message.
    pub parts: Vec<Part>,
}

/// An input from outside to the machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A person said something.
    User {
        /// When the model shall hear it, if the agent is at work.
        when: When,
        /// What was said.
        parts: Vec<Part>,
    },
    /// A call has streamed in whole while its answer goes on.
    CallReady {
        /// The call.
        call: ToolUse,
        /// True when it only observes and nobody needs to be asked.
        harmless: bool,
    },
    /// The answer is complete.
    AnswerEnded {
        /// Why it stopped.
        stop: Stop,
        /// All its calls, in order, those that were ready before included.
        calls: Vec<ToolUse>,
    },
    /// The answer failed for good, or was cut off by an interrupt.
    AnswerCut {
        /// What went wrong, for people.
        error: String,
        /// The calls that had streamed in whole.
        calls: Vec<ToolUse>,
    },
    /// A call that was started has ended.
    CallDone {
        /// Which call.
        id: CallId,
    },
    /// A job, a hook or haft itself has a message for the model.
    Notice {
        /// The message.
        words: QueuedMessage,
        /// True asks the model about it, in a turn of its own where none runs. False sends it along
        /// with the next request.
        wake: bool,
    },
    /// A question was answered.
    Reply {
        /// Which question.
        question: QuestionId,
        /// The answer.
        reply: Reply,
    },
    /// The person wants the agent to stop.
    Interrupt,
    /// A budget does not reach for the request that was wanted: none is made.
    TooDear {
        /// Which, for people.
        reason: String,
    },
    /// A budget is used up: no further request in this turn.
    Limit {
        /// Which, for people.
        reason: String,
    },
}

/// An action for the driver; actions are carried out in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A turn begins with the message that follows.
    TurnBegan,
    /// Add this message to the conversation.
    Say(QueuedMessage),
    /// Ask the model, with the whole conversation so far.
    Ask,
    /// Start these calls; plan, partition and run them in order. Each is reported once.
    Run(Vec<ToolUse>),
    /// Record this result of a call that never ran.
    End {
        /// The call.
        call: ToolUse,
        /// Why it did not run.
        outcome: Box<Outcome>,
    },
    /// Drop the answer that streams in, then report it as cut.
    CancelAnswer,
    /// Cancel every call that runs; each is still reported.
    CancelCalls,
    /// Return a queued message to the person's editor.
    GiveBack(Vec<Part>),
    /// Hand an answer to the one who asked.
    Answer(QuestionId, Reply),
    /// The turn is over; the agent is idle.
    TurnEnded(TurnEnd),
}

/// One call of the running answer.
#[derive(Clone, Debug, PartialEq)]
struct Slot {
    call: ToolUse,
    started: bool,
    done: bool,
}

/// A message in the queue, with its number.
#[derive(Clone, Debug, PartialEq)]
struct Waiting {
    id: u64,
    words: QueuedMessage,
}

impl Waiting {
    /// Whether a person said it, and may withdraw it.
    fn is_persons(&self) -> bool {
        matches!(self.words.from, From::Person | From::Steer)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    Idle,
    /// An answer streams in; some of its calls may run already.
    Asking,
    /// The answer is complete and its calls run.
    Running,
    /// Interrupted or failed: waits until everything that is open has reported.
    Stopping {
        answer: bool,
        end: TurnEnd,
    },
}

/// The state machine of the loop. A turn ends when the model answers without calls: there is no
/// step limit.
#[derive(Clone, Debug)]
pub struct Machine {
    state: State,
    /// The calls of the running answer, in order.
    calls: Vec<Slot>,
    /// Every call of this turn with its place in the answer that made it: an id counts once.
    known: HashMap<CallId, usize>,
    /// How many calls of the running answer have no result.
    open: usize,
    /// How many of them were not started.
    waiting: usize,
    /// Notices for which nobody is asked: they go along with the next request.
    notes: VecDeque<QueuedMessage>,
    steer: VecDeque<Waiting>,
    later: VecDeque<Waiting>,
    /// How many messages have waited so far.
    queued: u64,
    limit: Option<String>,
    /// How often the answer was paused since anything else came.
    pauses: u32,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            state: State::Idle,
            calls: Vec::new(),
            known: HashMap::new(),
            open: 0,
            waiting: 0,
            notes: VecDeque::new(),
            steer: VecDeque::new(),
            later: VecDeque::new(),
            queued: 0,
            limit: None,
            pauses: 0,
        }
    }
}

impl Machine {
    /// Takes one input and returns the actions to carry out.
    pub fn step(&mut self, input: Input) -> Vec<Action> {
        match input {
            Input::User { when, parts } => self.said(when, parts),
            Input::Notice { words, wake } => self.notice(words, wake),
            Input::Reply { question, reply } => vec![Action::Answer(question, reply)],
            Input::CallReady { call, harmless } => self.ready(call, harmless),
            Input::AnswerEnded { stop, calls } => self.answered(stop, calls),
            Input::AnswerCut { error, calls } => self.cut(error, calls),
            Input::CallDone { id } => self.done(&id),
            Input::Interrupt => self.interrupt(),
            Input::TooDear { reason } => self.too_dear(reason),
            Input::Limit { reason } => {
                if self.state != State::Idle {
                    self.limit.get_or_insert(reason);
                }
                Vec::new()
            }
        }
    }

    /// Reports whether the machine waits for a person.
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Reports whether a message waits for the next request.
    pub fn is_steered(&self) -> bool {
        !self.steer.is_empty()
    }

    /// Reports whether a message waits, for the next request or for a later turn.
    pub fn has_message(&self) -> bool {
        !self.steer.is_empty() || !self.later.is_empty()
    }

    /// The queued messages, for the front end: those for the next request, then those for later
    /// turns.
    pub fn queued(&self) -> impl Iterator<Item = &QueuedMessage> {
        let waiting = self.steer.iter().chain(&self.later).map(|waiting| &waiting.words);
        self.notes.iter().chain(waiting)
    }

    /// What a person said that waits: for the next request, then for later turns.
    pub fn waiting(&self) -> Vec<Queued> {
        let of = |queue: &VecDeque<Waiting>, when| -> Vec<Queued> {
            let mine = queue.iter().filter(|waiting| waiting.is_persons());
            mine.map(|Waiting { id, words }| Queued { id: *id, when, parts: words.parts.clone() })
                .collect()
        };
        let mut all = of(&self.steer, When::Steer);
        all.extend(of(&self.later, When::FollowUp));
        all
    }

    /// Takes a message of a person out of the queue, or all of them, oldest first. Gives none where
    /// it does not wait any more.
    pub fn withdraw(&mut self, id: Option<u64>) -> Vec<Queued> {
        let mut taken = self.waiting();
        taken.retain(|queued| id.is_none_or(|id| id == queued.id));
        let is_taken = |waiting: &Waiting| taken.iter().any(|queued| queued.id == waiting.id);
        self.steer.retain(|waiting| !is_taken(waiting));
        self.later.retain(|waiting| !is_taken(waiting));
        taken.sort_by_key(|queued| queued.id);
        taken
    }

    fn number(&mut self, words: QueuedMessage) -> Waiting {
        self.queued += 1;
        Waiting { id: self.queued, words }
    }

    fn said(&mut self, when: When, parts: Vec<Part>) -> Vec<Action> {
        match (&self.state, when) {
            (State::Idle, _) => self.begin(QueuedMessage { from: From::Person, parts }),
            (State::Stopping { .. }, _) | (_, When::FollowUp) => {
                let waiting = self.number(QueuedMessage { from: From::Person, parts });
                self.later.push_back(waiting);
                Vec::new()
            }
            (_, When::Steer) => {
                let waiting = self.number(QueuedMessage { from: From::Steer, parts });
                self.steer.push_back(waiting);
                Vec::new()
            }
        }
    }

    fn notice(&mut self, words: QueuedMessage, wake: bool) -> Vec<Action> {
        if self.state == State::Idle && wake {
            return self.begin(words);
        }
        if wake {
            let waiting = self.number(words);
            self.steer.push_back(waiting);
        } else {
            self.notes.push_back(words);
        }
        Vec::new()
    }

    /// What waits for the next request, in the order in which it is said.
    fn words(&mut self) -> impl Iterator<Item = Action> {
        let steer = self.steer.drain(..).map(|waiting| waiting.words);
        self.notes.drain(..).chain(steer).map(Action::Say)
    }

    fn begin(&mut self, words: QueuedMessage) -> Vec<Action> {
        (self.limit, self.pauses) = (None, 0);
        self.known.clear();
        let mut actions = vec![Action::TurnBegan];
        // Notices that came while nobody was there to hear them go first.
        actions.extend(self.words());
        actions.push(Action::Say(words));
        self.ask(actions)
    }

    fn ask(&mut self, mut actions: Vec<Action>) -> Vec<Action> {
        self.forget_calls();
        self.state = State::Asking;
        actions.push(Action::Ask);
        actions
    }

    fn ready(&mut self, call: ToolUse, harmless: bool) -> Vec<Action> {
        if !matches!(self.state, State::Asking | State::Stopping { answer: true, .. }) {
            return Vec::new();
        }
        let early = harmless && self.state == State::Asking && self.waiting == 0;
        if !self.add(call.clone()) || !early {
            return Vec::new();
        }
        if let Some(slot) = self.calls.last_mut() {
            slot.started = true;
            self.waiting -= 1;
        }
        vec![Action::Run(vec![call])]
    }

    fn answered(&mut self, stop: Stop, calls: Vec<ToolUse>) -> Vec<Action> {
        match self.state {
            State::Asking => {}
            State::Stopping { answer: true, .. } => return self.answer_settled(calls),
            _ => return Vec::new(),
        }
        self.take(calls);
        let mut actions = if stop == Stop::Length { self.end_cut_off() } else { Vec::new() };
        actions.extend(self.end_beside_malformed());
        let waiting = self.start_waiting();
        if !waiting.is_empty() {
            actions.push(Action::Run(waiting));
        }
        if self.calls.is_empty() {
            if stop == Stop::Paused && self.pauses < PAUSES {
                self.pauses += 1;
                return self.next_step(actions);
            }
            return self.turn_end(stop, actions);
        }
        self.pauses = 0;
        self.state = State::Running;
        actions.extend(self.go_on());
        actions
    }

    /// Ends the calls that the output limit cut off: the last one, and those before it of which no
    /// argument came.
    fn end_cut_off(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        let count = self.calls.len();
        for (at, slot) in self.calls.iter_mut().enumerate() {
            let is_bare = at + 1 == count || haft_tool::is_json(&slot.call.raw);
            if !slot.started && slot.call.input.is_none() && is_bare {
                (slot.started, slot.done) = (true, true);
                (self.waiting, self.open) = (self.waiting - 1, self.open - 1);
                actions.push(Action::End { call: slot.call.clone(), outcome: cut_off() });
            }
        }
        actions
    }

    /// Ends the calls that wait where another one of the answer cannot be read: what that was
    /// meant to do may be what these rely on. The malformed ones go on, to be told what is wrong.
    fn end_beside_malformed(&mut self) -> Vec<Action> {
        let is_malformed = |slot: &&Slot| {
            let call = &slot.call;
            !slot.started && call.input.is_none() && !haft_tool::is_json(&call.raw)
        };
        let malformed: HashMap<CallId, String> = self
            .calls
            .iter()
            .filter(is_malformed)
            .map(|slot| (slot.call.id.clone(), slot.call.name.clone()))
            .collect();
        let Some(name) = malformed.values().next().cloned() else { return Vec::new() };
        let mut actions = Vec::new();
        let waits = |slot: &&mut Slot| !slot.started && !malformed.contains_key(&slot.call.id);
        for slot in self.calls.iter_mut().filter(waits) {
            (slot.started, slot.done) = (true, true);
            (self.waiting, self.open) = (self.waiting - 1, self.open - 1);
            let outcome = beside_malformed(&name);
            actions.push(Action::End { call: slot.call.clone(), outcome });
        }
        actions
    }

    /// Adds the calls that were not ready before.
    fn take(&mut self, calls: Vec<ToolUse>) {
        for call in calls {
            self.add(call);
        }
    }

    /// Adds a call to the running answer; false when its id was there before.
    fn add(&mut self, call: ToolUse) -> bool {
        let Entry::Vacant(entry) = self.known.entry(call.id.clone()) else { return false };
        entry.insert(self.calls.len());
        self.calls.push(Slot { call, started: false, done: false });
        self.open += 1;
        self.waiting += 1;
        true
    }

    /// Marks every call that waits as started, and gives them in order.
    fn start_waiting(&mut self) -> Vec<ToolUse> {
        self.waiting = 0;
        let start = |slot: &mut Slot| {
            let waits = !std::mem::replace(&mut slot.started, true);
            waits.then(|| slot.call.clone())
        };
        self.calls.iter_mut().filter_map(start).collect()
    }

    fn forget_calls(&mut self) {
        self.calls.clear();
        (self.open, self.waiting) = (0, 0);
    }

    fn cut(&mut self, error: String, calls: Vec<ToolUse>) -> Vec<Action> {
        match self.state {
            State::Asking => {
                self.state = State::Stopping { answer: false, end: TurnEnd::Failed { error } };
                self.answer_settled(calls)
            }
            State::Stopping { answer: true, .. } => self.answer_settled(calls),
            _ => Vec::new(),
        }
    }

    fn too_dear(&mut self, reason: String) -> Vec<Action> {
        if self.state != State::Asking {
            return Vec::new();
        }
        self.state = State::Stopping { answer: false, end: TurnEnd::Limit { reason } };
        self.answer_settled(Vec::new())
    }

    /// The answer is over while stopping: what it still wanted is answered without being run.
    fn answer_settled(&mut self, calls: Vec<ToolUse>) -> Vec<Action> {
        self.take(calls);
        if let State::Stopping { answer, .. } = &mut self.state {
            *answer = false;
        }
        let mut actions = Vec::new();
        for slot in self.calls.iter_mut().filter(|slot| !slot.started) {
            (slot.started, slot.done) = (true, true);
            actions.push(Action::End { call: slot.call.clone(), outcome: never_ran() });
        }
        (self.open, self.waiting) = (self.open - self.waiting, 0);
        actions.extend(self.go_on());
        actions
    }

    fn done(&mut self, id: &CallId) -> Vec<Action> {
        // The place may be one of an answer before: then another call stands there.
        let slot = self.known.get(id).and_then(|place| self.calls.get_mut(*place));
        match slot.filter(|slot| slot.started && !slot.done && slot.call.id == *id) {
            Some(slot) => slot.done = true,
            None => return Vec::new(),
        }
        self.open -= 1;
        self.go_on()
    }

    /// Moves on once every call has its result.
    fn go_on(&mut self) -> Vec<Action> {
        if self.open > 0 {
            return Vec::new();
        }
        match &self.state {
            State::Running => self.next_step(Vec::new()),
            State::Stopping { answer: false, end } => {
                let end = end.clone();
                self.rest(end, Vec::new())
            }
            _ => Vec::new(),
        }
    }

    fn turn_end(&mut self, stop: Stop, actions: Vec<Action>) -> Vec<Action> {
        if self.steer.is_empty() {
            return self.rest(TurnEnd::Done { stop }, actions);
        }
        self.next_step(actions)
    }

    /// Asks again, with what was said meanwhile, unless a budget is used up.
    fn next_step(&mut self, mut actions: Vec<Action>) -> Vec<Action> {
        if let Some(reason) = self.limit.take() {
            return self.rest(TurnEnd::Limit { reason }, actions);
        }
        actions.extend(self.words());
        self.ask(actions)
    }

    /// Ends the turn, and begins the next one where words wait for it.
    fn rest(&mut self, end: TurnEnd, mut actions: Vec<Action>) -> Vec<Action> {
        self.forget_calls();
        self.limit = None;
        self.state = State::Idle;
        if !matches!(end, TurnEnd::Done { .. }) {
            // Steering was meant for the turn that is no more: the person decides about it.
            let (back, keep): (VecDeque<_>, VecDeque<_>) =
                self.steer.drain(..).partition(Waiting::is_persons);
            self.steer = keep;
            actions.extend(back.into_iter().map(|waiting| Action::GiveBack(waiting.words.parts)));
        }
        actions.push(Action::TurnEnded(end));
        if let Some(waiting) = self.later.pop_front() {
            actions.extend(self.begin(waiting.words));
        }
        actions
    }

    fn interrupt(&mut self) -> Vec<Action> {
        let before = self.state.clone();
        let answer = match &before {
            State::Idle => return Vec::new(),
            State::Asking => true,
            State::Running => false,
            State::Stopping { answer, .. } => *answer,
        };
        let mut actions: Vec<Action> =
            self.later.drain(..).map(|waiting| Action::GiveBack(waiting.words.parts)).collect();
        let end = match &before {
            // Told once already: everything is being cancelled.
            State::Stopping { end: TurnEnd::Interrupted, .. } => return actions,
            // A failed answer stays the reason, but nobody waits for its calls any longer.
            State::Stopping { end, .. } => end.clone(),
            _ => TurnEnd::Interrupted,
        };
        if matches!(before, State::Asking) {
            actions.push(Action::CancelAnswer);
        }
        // All that waits for its start belongs to an answer that streams.
        if self.open > self.waiting {
            actions.push(Action::CancelCalls);
        }
        self.state = State::Stopping { answer, end };
        actions.extend(self.go_on());
        actions
    }
}

/// The result of a call that an interrupt or a failed answer overtook.
fn never_ran() -> Box<Outcome> {
    let text = "not run: the turn was stopped before this call began";
    Box::new(Outcome::ended(Status::Cancelled, text))
}

/// The result of a call that the output limit cut off.
fn cut_off() -> Box<Outcome> {
    let text = "not run: the answer reached its output limit inside this call, so its arguments \
                may be incomplete.\nSend the call again, in smaller pieces if it is large.";
    Box::new(Outcome::ended(Status::Failed, text))
}

/// The result of a call beside one that cannot be read.
fn beside_malformed(name: &str) -> Box<Outcome> {
    let text = format!(
        "not run: the arguments of another call of the same answer, {name:?}, are not JSON, so \
         none of its calls was started.\nNothing was run. Send both calls again."
    );
    Box::new(Outcome::ended(Status::Failed, text))
}

#[cfg(test)]
mod tests;
