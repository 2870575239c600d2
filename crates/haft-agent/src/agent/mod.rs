//! The driver: carries out the actions of the state machine. It is the only place where the loop
//! does IO.
//!
//! **Invariant:** each turn has its own cancellation token. A cancelled call is still reported.
//! Work that does not report in time is aborted, so the machine always comes to rest. The model is
//! asked only once the log holds the whole request.

mod answer_schema;
mod asking;
mod compaction;
mod handle;
mod history;
mod late_tools;
mod ledger;
mod money;
mod other_models;
mod queue;
mod repin;
mod summary;
mod talk_hooks;
mod unfinished;

use std::{
    collections::{HashSet, VecDeque},
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};

use futures::{FutureExt as _, StreamExt as _};
use haft_llm::{Delta, Effort, Encoded, LlmError, PinnedTools, Provider, Request, Target};
use haft_session::Fold;
use haft_tool::{Dispatcher, Events as _, Jobs, RecordError};
use haft_types::{
    Body, BreakCause, CallId, From, Level, Message, Part, Prices, Stop, ToolUse, TurnEnd, TurnId,
    Usage,
};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

pub use self::{
    answer_schema::AnswerSchema,
    compaction::WindowUse,
    handle::{AgentSender, Agents, Handle},
    other_models::{Failure, Instead, OtherModels, SmallModel},
    queue::UnsentLines,
    repin::Repin,
    summary::gathered,
    talk_hooks::{BatchCall, CompactTrigger, HookMoment, PromptSaid, TalkHooks},
};
use self::{
    asking::{LimitQuestion, Reached, replied},
    compaction::{Room, Space, summary},
    handle::{Inputs, Load, Request as AgentRequest},
    late_tools::Known,
    ledger::Ledger,
    other_models::{Falling, fallen},
    repin::Pending,
    talk_hooks::{Waiting, finished},
};
use crate::{
    Action, Bus, Input, Machine, QueuedMessage,
    answer::Answer,
    calls::{Batch, CallRunner, panic_text},
    compaction::ContextLimits,
    early_calls::Early,
    text_calls,
};

/// How long cancelled calls may take to report before they are given up.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// The prefix that every request begins with, until the next break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The system prompt, in parts.
    pub system: Vec<String>,
    /// The tool definitions as the wire sends them.
    pub tools: String,
    /// What answers have to fit, as the wire sends it; empty for anything.
    pub format: String,
}

impl Pinned {
    /// The offset of the first byte, from 0, in which requests with these prefixes differ. None
    /// where all bytes are the same.
    ///
    /// Bytes are counted over what answers have to fit, the tools, then the parts of the system
    /// prompt. Prefix caches use the same order.
    pub fn differs_at(&self, other: &Self) -> Option<u64> {
        let (mut ours, mut theirs) = (self.bytes(), other.bytes());
        let mut at = 0;
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return None,
                (a, b) if a != b => return Some(at),
                _ => at += 1,
            }
        }
    }

    /// Reports whether everything but the system prompt is the same.
    pub fn is_but_system(&self, other: &Self) -> bool {
        self.tools == other.tools && self.format == other.format
    }

    fn bytes(&self) -> impl Iterator<Item = u8> {
        let first = self.format.bytes().chain(self.tools.bytes());
        first.chain(self.system.iter().flat_map(|part| part.bytes()))
    }
}

/// Budgets of a turn; none of them is set by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Maximum number of requests in one turn.
    pub steps: Option<u64>,
    /// Maximum number of tokens that the model may write in one turn.
    pub output_tokens: Option<u64>,
    /// Maximum number of dollars that its requests cost.
    pub cost: Option<f64>,
    /// How often in a row the same call may give the same result.
    pub repeats: Option<u64>,
}

/// The configuration of an agent.
pub struct AgentConfig {
    /// Runs calls through the tool layer.
    pub dispatcher: Arc<Dispatcher>,
    /// The provider that answers requests.
    pub provider: Arc<dyn Provider>,
    /// The model to ask, in the form that `--model` takes.
    pub name: String,
    /// The same as its provider writes it.
    pub target: Target,
    /// How hard the model thinks.
    pub effort: Option<Effort>,
    /// Maximum number of tokens of one answer; none uses the default of the wire.
    pub max_tokens: Option<u32>,
    /// The bus for the session's events.
    pub bus: Bus,
    /// The conversation so far.
    pub fold: Fold,
    /// The prefix of every request.
    pub pinned: Pinned,
    /// Why the prefix is pinned anew; none when the log already has it.
    pub cause: Option<BreakCause>,
    /// The prefix that was pinned before; none before the first request.
    pub before: Option<Pinned>,
    /// Budgets of each turn.
    pub limits: Limits,
    /// The model's window, and when the conversation is shortened for it.
    pub context: ContextLimits,
    /// What the model costs; none where that is not known.
    pub prices: Option<Prices>,
    /// Most tokens of an answer of the model; none where that is not known.
    pub output: Option<u64>,
    /// Maximum number of calls that run at once.
    pub concurrency: usize,
    /// Hooks that see prompts and the ends of turns; none where there are none.
    pub hooks: Option<Arc<dyn TalkHooks>>,
    /// What the last answer of each turn has to fit; none for anything.
    pub schema: Option<Arc<AnswerSchema>>,
    /// Models beside this one; none where there are none.
    pub models: Option<Arc<dyn OtherModels>>,
}

/// An answer that streams in.
struct Streaming {
    answer: Answer,
    stream: haft_llm::Answer,
    stop: CancellationToken,
    /// None before its first call.
    early: Option<Early>,
}

/// A running agent.
pub struct Agent {
    setup: AgentConfig,
    machine: Machine,
    fold: Arc<Mutex<Fold>>,
    /// Each final message as it is sent: as one piece, or as several.
    encoded: Vec<Vec<Encoded>>,
    revision: u64,
    /// What the conversation says of tools that came late.
    known: Known,
    tools: Arc<str>,
    /// Bytes of those that the model sees.
    seen_tools: usize,
    /// Names of those that its server keeps back.
    declared: HashSet<String>,
    system: Arc<[String]>,
    format: Arc<str>,
    turn: TurnId,
    stop: CancellationToken,
    /// Cancelled when stopped calls of this turn took too long to come back.
    abandon: CancellationToken,
    closing: CancellationToken,
    /// What changes before the next request.
    pending: Pending,
    load: Arc<Load>,
    answer: Option<Streaming>,
    batches: mpsc::UnboundedSender<Batch>,
    /// Why words of this turn could not be kept; nothing is asked without them.
    unsaid: Option<RecordError>,
    /// What is said once hooks have seen it.
    unheard: Vec<QueuedMessage>,
    /// Lines of the person that wait, as the log has them.
    queued: Vec<String>,
    /// Numbers of the messages that wait, as front ends know them.
    shown_queue: Vec<u64>,
    /// What is waited for from hooks.
    waiting: Option<Waiting>,
    /// How often hooks let this turn go on.
    continued: u32,
    /// The first call of the last batch that hooks have seen.
    last_batch: Option<CallId>,
    /// How often this turn's answer did not fit its schema.
    misfits: u32,
    /// True once a budget of this turn is used up.
    limited: bool,
    stopping_since: Option<Instant>,
    steps: u64,
    usage: Usage,
    /// Dollars that this turn cost so far.
    spent: f64,
    /// What is known of the room that requests have.
    room: Room,
    /// What was sent, beside what is sent next.
    ledger: Ledger,
    /// Models that could not be reached in this turn, with the errors.
    failed: Vec<(String, String)>,
    /// A model that is made ready to go on.
    falling: Option<Falling>,
    /// Whether the person was told that another model than the small one sums up.
    is_small_told: bool,
    /// Dollars that a person added to the limit of this turn.
    raised: f64,
    /// What the person is asked about this turn.
    asked: Option<LimitQuestion>,
}

impl Agent {
    /// Starts an agent, which then waits for its first input.
    pub fn start(mut setup: AgentConfig) -> Handle {
        let (inputs, received) = mpsc::unbounded_channel();
        let (batches, waiting) = mpsc::unbounded_channel();
        let (wishes, wanted) = mpsc::unbounded_channel();
        let (done, ended) = mpsc::unbounded_channel();
        let runner = CallRunner { bus: setup.bus.clone(), most: setup.concurrency.max(1), done };
        tokio::spawn(runner.run(waiting));
        let turn = setup.fold.turn();
        let fold = Arc::new(Mutex::new(std::mem::take(&mut setup.fold)));
        setup.bus.follow(&fold);
        history::offer(&setup.dispatcher, &fold, &setup.bus);
        let (closing, pending) = (CancellationToken::new(), Pending::default());
        let load = Arc::<Load>::default();
        let queued = setup.dispatcher.conversation.value(queue::QUEUE);
        let mut agent = Self {
            machine: Machine::default(),
            encoded: Vec::new(),
            revision: 0,
            known: Known::default(),
            seen_tools: 0,
            declared: HashSet::new(),
            tools: "".into(),
            system: setup.pinned.system.clone().into(),
            format: setup.pinned.format.as_str().into(),
            turn,
            stop: CancellationToken::new(),
            abandon: CancellationToken::new(),
            closing: closing.clone(),
            pending: pending.clone(),
            load: load.clone(),
            answer: None,
            batches,
            unsaid: None,
            unheard: Vec::new(),
            queued: Self::queued_before(queued),
            shown_queue: Vec::new(),
            waiting: None,
            continued: 0,
            last_batch: None,
            misfits: 0,
            limited: false,
            stopping_since: None,
            steps: 0,
            usage: Usage::default(),
            spent: 0.0,
            room: Room::default(),
            ledger: Ledger::default(),
            failed: Vec::new(),
            falling: None,
            is_small_told: false,
            raised: 0.0,
            asked: None,
            fold,
            setup,
        };
        agent.take_tools();
        let task = tokio::spawn(agent.guarded((received, wanted), ended));
        Handle::new(AgentSender { inputs, pending, wishes, load, closing }, task)
    }

    /// Runs, and tells when that breaks down: a front end must not wait for ever.
    async fn guarded(self, inputs: Inputs, ended: mpsc::UnboundedReceiver<CallId>) {
        let (bus, agent) = (self.setup.bus.clone(), self.setup.dispatcher.agent.clone());
        let fold = self.fold.clone();
        let Err(panic) = AssertUnwindSafe(self.run(inputs, ended)).catch_unwind().await else {
            return;
        };
        let turn = fold.lock().unwrap_or_else(PoisonError::into_inner).turn();
        let error = format!(
            "the agent broke down: {}\nWhat was kept is safe: start haft again and resume.",
            panic_text(&*panic)
        );
        let ended = Body::TurnEnded { end: TurnEnd::Failed { error }, usage: Usage::default() };
        bus.emit_or_show(&agent, turn, ended);
    }

    async fn run(
        mut self,
        (mut inputs, mut wishes): Inputs,
        mut ended: mpsc::UnboundedReceiver<CallId>,
    ) {
        let mut listening = true;
        while listening || !self.machine.is_idle() {
            let flush = self.answer.as_ref().and_then(|now| now.answer.due());
            let give_up = self.stopping_since.map(|since| since + STOP_WITHIN);
            tokio::select! {
                biased;
                input = inputs.recv(), if listening => {
                    listening = input.is_some();
                    // Whoever closes does not wait for words that came behind the interrupt.
                    let last = self.closing.is_cancelled().then_some(Input::Interrupt);
                    let is_sent = input.is_some();
                    if let Some(input) = input.or(last) {
                        self.step(input).await;
                    }
                    if is_sent {
                        self.load.unheard.fetch_sub(1, Ordering::AcqRel);
                    }
                }
                // Behind the inputs: what was sent before it can be withdrawn by it.
                Some(wanted) = wishes.recv() => match wanted {
                    AgentRequest::Withdraw(wanted) => self.withdraw(wanted),
                    AgentRequest::Compact { focus, answer } => self.compact_now(focus.as_deref(), answer),
                    AgentRequest::KeepLength => self.keep_length(),
                    // Who wanted it may be gone.
                    AgentRequest::WindowUse(answer) => drop(answer.send(self.window_use())),
                },
                made = summary(&mut self.room) => self.summed_up(made).await,
                () = self.closing.cancelled(), if !inputs.is_closed() => inputs.close(),
                Some(id) = ended.recv() => self.step(Input::CallDone { id }).await,
                reply = replied(&mut self.asked) => self.was_replied(reply).await,
                came = fallen(&mut self.falling) => self.came_instead(came).await,
                came = finished(&mut self.waiting) => self.came(came).await,
                came = next(&mut self.answer) => match came {
                    AnswerStep::Looked(call, harmless) => {
                        self.step(Input::CallReady { call, harmless }).await;
                    }
                    AnswerStep::Delta(delta) => self.delta(delta).await,
                },
                () = at(flush) => {
                    let body = self.answer.as_mut().and_then(|now| now.answer.flush());
                    if let Some(body) = body && let Err(error) = self.emit(body) {
                        self.unkept(&error).await;
                    }
                }
                () = at(give_up) => {
                    self.stopping_since = None;
                    self.abandon.cancel();
                }
            }
        }
    }

    /// Takes the tools that are pinned.
    fn take_tools(&mut self) {
        self.tools = self.setup.pinned.tools.as_str().into();
        let pinned = PinnedTools::of(&self.setup.pinned.tools);
        self.seen_tools = pinned.seen_bytes();
        self.declared = pinned.declared.into_iter().collect();
    }

    fn emit(&self, body: Body) -> Result<(), RecordError> {
        self.setup.bus.emit(&self.setup.dispatcher.agent, self.turn, body)
    }

    /// Shows what must be seen even when it cannot be kept.
    fn emit_or_tell(&self, body: Body) {
        self.setup.bus.emit_or_show(&self.setup.dispatcher.agent, self.turn, body);
    }

    async fn step(&mut self, input: Input) {
        if input == Input::Interrupt && self.machine.is_idle() {
            drop(self.cancel_compaction());
        }
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let actions = self.machine.step(input);
            if !self.machine.is_idle() {
                self.load.is_busy.store(true, Ordering::Release);
            }
            for action in actions {
                inputs.extend(self.act(action).await);
            }
        }
        self.keep_queue();
    }

    /// Carries out one action; gives back what the machine must be told about it at once.
    async fn act(&mut self, action: Action) -> Option<Input> {
        match action {
            Action::TurnBegan => {
                self.turn = TurnId(self.turn.0 + 1);
                self.stop = CancellationToken::new();
                self.abandon = CancellationToken::new();
                self.unsaid = None;
                (self.steps, self.usage, self.spent) = (0, Usage::default(), 0.0);
                self.forget_refusal();
                self.failed.clear();
                self.raised = 0.0;
                self.count_repeats();
                (self.continued, self.limited) = (0, false);
                self.forget_final_answer();
                // What cannot be kept now is told with the request, or stops that.
                drop(self.report_jobs());
            }
            Action::Say(words) if self.setup.hooks.is_some() => self.unheard.push(words),
            Action::Say(words) => self.say(words),
            Action::Ask => return self.ask_hooked(),
            Action::Run(calls) => self.start_calls(calls),
            Action::End { call, outcome } => {
                self.emit_or_tell(Body::CallEnded { call: call.id, outcome: *outcome, took: 0 });
            }
            Action::CancelAnswer => return self.cancel_answer(),
            Action::CancelCalls => {
                self.stop.cancel();
                self.stopping_since.get_or_insert_with(Instant::now);
            }
            Action::GiveBack(parts) => self.give_back(&parts),
            Action::Answer(question, reply) => {
                self.setup.dispatcher.session.questions.reply(&question, reply, "agent");
            }
            Action::TurnEnded(end) => self.end_turn(end).await,
        }
        None
    }

    fn say(&mut self, words: QueuedMessage) {
        let body = Body::User { from: words.from, parts: words.parts.clone() };
        let kept = self.setup.bus.keep().and_then(|()| self.emit(body));
        if let Err(error) = kept {
            self.unsaid = Some(error);
            self.give_back(&words.parts);
        }
    }

    fn give_back(&self, parts: &[Part]) {
        self.emit_or_tell(Body::Unsent { parts: parts.to_vec() });
    }

    async fn end_turn(&mut self, end: TurnEnd) {
        self.stopping_since = None;
        if let Err(error) = self.setup.bus.sync().await {
            self.setup.bus.broadcast(&self.setup.dispatcher.agent, self.turn, notice(&error));
        }
        // Before the event: who sees that may ask.
        self.load.is_busy.store(!self.machine.is_idle(), Ordering::Release);
        self.emit_or_tell(Body::TurnEnded { end, usage: self.usage });
    }

    fn start_calls(&mut self, calls: Vec<ToolUse>) {
        let early = self.answer.is_some();
        let (turn, stop, give_up) = (self.turn, self.stop.clone(), self.abandon.clone());
        // What it was when the calls were asked for: it changes right before a request alone.
        let dispatcher = self.setup.dispatcher.clone();
        let batch = Batch { dispatcher, calls, turn, stop, give_up, early };
        // The runner lives as long as this sender does.
        drop(self.batches.send(batch));
    }

    fn ask(&mut self) -> Option<Input> {
        self.take_repin();
        if let Err(error) = self.ready_to_ask() {
            return Some(Input::AnswerCut { error: error.to_string(), calls: Vec::new() });
        }
        self.encode_new();
        let space = self.make_room();
        let missing = match space {
            Ok(Space::There) => None,
            Ok(Space::Coming) => return None,
            Ok(Space::Missing(why)) => Some(why),
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = missing {
            return Some(Input::AnswerCut { error, calls: Vec::new() });
        }
        self.note_asked();
        let affordable = match self.repeats() {
            Some(reason) => Err((Reached::Repeats, reason)),
            None => self.affordable().map_err(|reason| {
                (Reached::Money(self.setup.limits.cost.unwrap_or_default()), reason)
            }),
        };
        let max_tokens = match affordable {
            Ok(max_tokens) => max_tokens,
            Err((reached, reason)) => return self.ask_person(reached, reason),
        };
        let mut request = Request {
            model: self.setup.target.model.clone(),
            effort: self.setup.effort,
            max_tokens,
            system: self.system.clone(),
            tools: self.tools.clone(),
            format: self.format.clone(),
            messages: self.encoded.iter().flatten().cloned().collect(),
            ..Request::default()
        };
        request.previous = self.note_request(&request);
        let stop = CancellationToken::new();
        let stream = self.setup.provider.stream(request, stop.clone());
        let wire = self.setup.provider.name().to_owned();
        let secrets = self.setup.dispatcher.session.secrets.clone();
        let answer = Answer::new(wire, self.setup.target.model.clone(), secrets);
        self.answer = Some(Streaming { answer, stream, stop, early: None });
        self.steps += 1;
        // While the model answers: the next change then waits for little but its own disk.
        self.setup.bus.sync_ahead();
        let most = self.setup.limits.steps.filter(|most| self.steps >= *most)?;
        self.limited = true;
        Some(Input::Limit { reason: format!("the limit of {most} model requests in a turn") })
    }

    /// Sees to it that the log holds all that the request is made of.
    fn ready_to_ask(&mut self) -> Result<(), RecordError> {
        if let Some(error) = self.unsaid.take() {
            return Err(error);
        }
        // A result that could not be kept is missing here: a request without it would be refused.
        let unanswered = self.fold().unanswered();
        for (call, outcome) in unanswered {
            let text = format!(
                "the result of {call} could not be kept, so the model is told: {}",
                outcome.joined_text()
            );
            self.emit(Body::CallEnded { call, outcome, took: 0 })?;
            self.emit(Body::Notice { level: Level::Error, text })?;
        }
        if let Some(cause) = self.setup.cause {
            let AgentConfig { pinned, before, .. } = &self.setup;
            let at_byte = before.as_ref().and_then(|before| before.differs_at(pinned));
            let Pinned { system, tools, format } = pinned.clone();
            self.emit(Body::Break { cause, at_byte })?;
            self.emit(Body::Pinned { system, tools, format })?;
            self.setup.cause = None;
        }
        self.report_jobs()?;
        self.tell_late_tools()
    }

    /// Says which jobs have ended of which the model does not know that.
    fn report_jobs(&self) -> Result<(), RecordError> {
        let Dispatcher { session, agent, .. } = &*self.setup.dispatcher;
        for job in session.map.get::<Jobs>().unreported(agent) {
            let (from, parts) = (From::Job(job.id().to_owned()), vec![Part::text(job.report())]);
            self.emit(Body::User { from, parts })?;
            job.mark_seen();
        }
        Ok(())
    }

    fn fold(&self) -> MutexGuard<'_, Fold> {
        self.fold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Encodes the messages that were not sent before; kept ones stay the bytes they are.
    fn encode_new(&mut self) {
        let (revision, known, new) = {
            let fold = self.fold();
            let known = if fold.revision() == self.revision { self.encoded.len() } else { 0 };
            // With the one before: results are those of its calls.
            let from = known.saturating_sub(1);
            (fold.revision(), known - from, fold.final_messages()[from..].to_vec())
        };
        if revision != self.revision {
            self.revision = revision;
            self.encoded.clear();
        }
        self.setup.dispatcher.conversation.results_stand(revision);
        // Without the lock: images come from the disk, and every event waits for the fold.
        let encoder = self.encoder();
        let encode = |at: usize| encoder.encode(at.checked_sub(1).map(|at| &new[at]), &new[at]);
        let more: Vec<_> = (known..new.len()).map(encode).collect();
        self.encoded.extend(more);
    }

    async fn delta(&mut self, delta: Option<Result<Delta, LlmError>>) {
        let Some(Streaming { answer, .. }) = &mut self.answer else { return };
        let delta = match delta {
            Some(Ok(delta)) => delta,
            Some(Err(error)) => return self.answer_failed(error).await,
            None => {
                let error = LlmError::Protocol("the answer had no end".into());
                return self.answer_failed(error).await;
            }
        };
        let before = answer.calls.len();
        let session = &self.setup.dispatcher.session;
        let bodies = answer.take(delta.clone(), || session.next_call());
        let ready = answer.calls.get(before).cloned();
        let called = !answer.calls.is_empty();
        for body in bodies {
            if let Err(error) = self.emit(body) {
                return self.unkept(&error).await;
            }
        }
        match delta {
            // What ran cannot be taken back, so its answer cannot be void.
            Delta::Restart { reason, .. } if called => {
                let why = format!("the answer began anew after a call was complete: {reason}");
                self.answer_failed(LlmError::Protocol(why)).await;
            }
            Delta::Restart { reason, wait_ms, .. } => {
                let void =
                    Body::AnswerFailed { error: reason, retried: true, wait_ms: Some(wait_ms) };
                if let Err(error) = self.emit(void) {
                    self.unkept(&error).await;
                }
            }
            Delta::Note { text } => {
                self.emit_or_tell(Body::Notice { level: Level::Warning, text });
            }
            Delta::Receipt { id, cache } => self.take_receipt(id, cache),
            Delta::End { stop, usage } => self.answer_ended(stop, usage).await,
            _ => {}
        }
        if let Some((call, now)) = ready.zip(self.answer.as_mut()) {
            let early = || Early::start(self.setup.dispatcher.clone());
            now.early.get_or_insert_with(early).look_at(call);
        }
    }

    async fn answer_ended(&mut self, stop: Stop, usage: Usage) {
        let Some(Streaming { answer, .. }) = self.answer.take() else { return };
        self.usage.add(usage);
        self.note_usage(usage);
        self.pay(usage);
        let Answer { wire, model, calls, empty, .. } = answer;
        let host = self.setup.provider.host().to_owned();
        if let Some(used) = self.cache_used() {
            self.emit_or_tell(used);
        }
        if let Err(error) = self.emit(Body::AnswerEnded { model, wire, host, stop, usage }) {
            let error = error.to_string();
            return self.step(Input::AnswerCut { error, calls }).await;
        }
        if empty && !matches!(stop, Stop::Refusal | Stop::Paused) {
            let text = "the model's answer is empty: ask again, or in other words".to_owned();
            self.emit_or_tell(Body::Notice { level: Level::Error, text });
        }
        if calls.is_empty() && matches!(stop, Stop::EndTurn | Stop::Length) {
            self.look_for_calls_in_text().await;
        }
        self.check_answer(stop, &calls).await;
        // Told first: the end of an answer may lead straight to the next request.
        if let Some(most) = self.setup.limits.output_tokens.filter(|m| self.usage.output >= *m) {
            let reason = format!("the limit of {most} output tokens in a turn");
            self.limited = true;
            self.step(Input::Limit { reason }).await;
        }
        if !self.ask_to_stop(stop, !calls.is_empty()) {
            self.step(Input::AnswerEnded { stop, calls }).await;
        }
    }

    /// Tells whom it concerns that a call which stands in the answer's text is none: the person
    /// each time, the model once in a session.
    async fn look_for_calls_in_text(&mut self) {
        let told = {
            let fold = self.fold();
            let messages = fold.final_messages();
            let Some(Message::Assistant { parts, .. }) = messages.last() else { return };
            if !parts.iter().any(text_calls::is_in) {
                return;
            }
            messages.iter().any(text_calls::is_told)
        };
        let text = text_calls::FOR_PEOPLE.to_owned();
        self.emit_or_tell(Body::Notice { level: Level::Warning, text });
        if !told {
            let parts = vec![Part::text(text_calls::FOR_MODEL)];
            self.step(Input::Notice {
                words: QueuedMessage { from: From::Haft, parts },
                wake: true,
            })
            .await;
        }
    }
}

impl Drop for Agent {
    /// Whatever ends the agent ends its calls: nothing runs on without anyone to report to.
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What came of an answer.
enum AnswerStep {
    Delta(Option<Result<Delta, LlmError>>),
    /// One of its calls, and whether it may start at once.
    Looked(ToolUse, bool),
}

/// What comes next of the answer; nothing, while none streams in.
async fn next(answer: &mut Option<Streaming>) -> AnswerStep {
    let Some(Streaming { stream, early, .. }) = answer else {
        return std::future::pending().await;
    };
    let Some(early) = early else { return AnswerStep::Delta(stream.next().await) };
    tokio::select! {
        biased;
        (call, harmless) = early.next() => AnswerStep::Looked(call, harmless),
        delta = stream.next() => AnswerStep::Delta(delta),
    }
}

/// Waits for a moment; for ever when there is none.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Bytes of a message as it is sent.
fn sent_bytes(pieces: &[Encoded]) -> usize {
    pieces.iter().map(|piece| piece.json().len()).sum()
}

fn notice(error: &RecordError) -> Body {
    Body::Notice { level: Level::Error, text: error.to_string() }
}

fn text_of(parts: &[Part]) -> String {
    let shown = |part: &Part| match part {
        Part::Text { text } => Some(text.clone()),
        Part::Image { blob } => Some(format!("[{}, {} bytes]", blob.mime, blob.len)),
        _ => None,
    };
    parts.iter().filter_map(shown).collect::<Vec<_>>().join("\n")
}
