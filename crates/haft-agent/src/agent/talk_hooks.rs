//! Conversation hooks: they see each message before the model does, and each turn before it ends.
//!
//! **Invariant:** the agent keeps receiving input while hooks run, so an interrupt ends them.
//! Messages are sent in the order in which they came. A turn that hooks continue still ends: the
//! number of continuations is limited.

use std::sync::{Arc, PoisonError};

use futures::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use haft_llm::LlmError;
use haft_types::{Body, CallId, CallResult, From, Level, Message, Outcome, Part, Stop, ToolUse};
use serde_json::Value;

use super::{Agent, text_of};
use crate::{Input, QueuedMessage};

/// How often hooks may let one turn go on.
const MOST_CONTINUED: u32 = 8;

/// What hooks say about a message of the person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptSaid {
    /// Why the model must not see the message; none where it may.
    pub refused: Option<String>,
    /// More text for the model, sent after the message.
    pub context: Vec<String>,
    /// Words of haft's own for the model, sent before that.
    pub words: Vec<String>,
}

/// A call of an answer all of whose calls have ended.
#[derive(Clone, Debug)]
pub struct BatchCall {
    /// Which.
    pub id: CallId,
    /// The tool, as the model wrote it.
    pub name: String,
    /// Its arguments; null where they were no JSON.
    pub input: Value,
    /// What came of it.
    pub outcome: Outcome,
}

/// A moment that hooks may want to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookMoment {
    /// All calls of an answer have ended.
    Batch,
    /// The server of the model gave no answer.
    Failure,
    /// A compaction begins.
    BeforeCompaction,
    /// A compaction is done.
    AfterCompaction,
}

/// Why a compaction began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactTrigger {
    /// A person wanted it.
    Manual,
    /// The window fills up.
    Auto,
}

impl CompactTrigger {
    /// Its name, as hooks get it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Auto => "auto",
        }
    }
}

/// Hooks of the person that see messages and the ends of turns.
pub trait TalkHooks: Send + Sync {
    /// Called with a message of the person before the model sees it.
    fn prompt(self: Arc<Self>, text: String) -> BoxFuture<'static, PromptSaid>;

    /// Called when the model is done, with the text of its last answer. Returns the text to
    /// continue with, if any. `again` is true once the turn was continued by such a text.
    fn stop(self: Arc<Self>, said: String, again: bool) -> BoxFuture<'static, Option<String>>;

    /// Reports whether any hook wants to see such a moment.
    fn sees(&self, moment: HookMoment) -> bool;

    /// Called once with all calls of an answer, before the next request. A refusal ends the turn.
    fn batch(self: Arc<Self>, calls: Vec<BatchCall>) -> BoxFuture<'static, PromptSaid>;

    /// Called where a turn ends because its model gave no answer: with the kind of the error, what
    /// it says, and the text of the last answer.
    fn failed(
        self: Arc<Self>,
        error: &'static str,
        details: String,
        said: String,
    ) -> BoxFuture<'static, ()>;

    /// Called before a compaction, with the wish of the person. Gives why there is to be none.
    fn before_compaction(
        self: Arc<Self>,
        trigger: CompactTrigger,
        instructions: Option<String>,
    ) -> BoxFuture<'static, Option<String>>;

    /// Called after a compaction; nobody waits for it.
    fn after_compaction(self: Arc<Self>, trigger: CompactTrigger, summary: String);

    /// Why the turn must end before the next request; reported once.
    fn ended(&self) -> Option<String>;
}

/// What is waited for from hooks.
pub(super) enum Waiting {
    /// What they say about each of the words that were not said yet.
    Prompts(BoxFuture<'static, Vec<PromptSaid>>),
    /// Whether the turn goes on.
    Stop(BoxFuture<'static, Option<String>>),
    /// What they say about the calls of an answer.
    Batch(BoxFuture<'static, PromptSaid>),
    /// Nothing; then the turn ends by this.
    Failure(BoxFuture<'static, ()>, Input),
}

/// What came of it.
pub(super) enum HookResult {
    Prompts(Vec<PromptSaid>),
    Stop(Option<String>),
    Batch(PromptSaid),
    Failure,
}

/// Waits for the hooks; for ever where none are asked.
pub(super) async fn finished(waiting: &mut Option<Waiting>) -> HookResult {
    match waiting {
        None => std::future::pending().await,
        Some(Waiting::Prompts(prompts)) => HookResult::Prompts(prompts.await),
        Some(Waiting::Stop(stop)) => HookResult::Stop(stop.await),
        Some(Waiting::Batch(batch)) => HookResult::Batch(batch.await),
        Some(Waiting::Failure(failure, _)) => {
            failure.await;
            HookResult::Failure
        }
    }
}

/// Whether words are those of the person.
fn is_spoken(words: &QueuedMessage) -> bool {
    matches!(words.from, From::Person | From::Steer)
}

impl Agent {
    /// Asks the model, once hooks have seen what was said.
    pub(super) fn ask_hooked(&mut self) -> Option<Input> {
        let Some(hooks) = self.setup.hooks.clone() else { return self.ask() };
        if let Some(reason) = hooks.ended() {
            return Some(self.ended_by_hook(&reason));
        }
        if hooks.sees(HookMoment::Batch)
            && let Some(calls) = self.new_batch()
        {
            self.waiting = Some(Waiting::Batch(hooks.batch(calls)));
            return None;
        }
        self.ask_heard(&hooks)
    }

    /// Ends the turn because a hook wants that.
    fn ended_by_hook(&mut self, reason: &str) -> Input {
        self.say_all();
        let error = format!("a hook ended the turn: {reason}");
        self.emit_or_tell(Body::Notice { level: Level::Info, text: error.clone() });
        Input::AnswerCut { error, calls: Vec::new() }
    }

    /// The calls that ended since the last request, as hooks get them; none where there are none, or
    /// they got them before.
    fn new_batch(&mut self) -> Option<Vec<BatchCall>> {
        let calls = {
            let fold = self.fold.lock().unwrap_or_else(PoisonError::into_inner);
            let messages = fold.final_messages();
            let Some(Message::Results { results }) = messages.last() else { return None };
            let asked = messages.iter().rev().find_map(|message| match message {
                Message::Assistant { parts, .. } => Some(parts),
                _ => None,
            });
            let asked: Vec<&ToolUse> = asked
                .into_iter()
                .flatten()
                .filter_map(|part| match part {
                    Part::Call(call) => Some(call),
                    _ => None,
                })
                .collect();
            let one = |result: &CallResult| {
                let call = asked.iter().find(|call| call.id == result.id);
                BatchCall {
                    id: result.id.clone(),
                    name: call.map(|call| call.name.clone()).unwrap_or_default(),
                    input: call.and_then(|call| call.input.clone()).unwrap_or_default(),
                    outcome: result.outcome.clone(),
                }
            };
            results.iter().map(one).collect::<Vec<_>>()
        };
        let first = calls.first()?.id.clone();
        if self.last_batch.as_ref() == Some(&first) {
            return None;
        }
        self.last_batch = Some(first);
        Some(calls)
    }

    /// Asks the model, once hooks have seen what the person said.
    fn ask_heard(&mut self, hooks: &Arc<dyn TalkHooks>) -> Option<Input> {
        if !self.unheard.iter().any(is_spoken) {
            self.say_all();
            return self.ask();
        }
        let ask = |words: &QueuedMessage| {
            if is_spoken(words) {
                hooks.clone().prompt(text_of(&words.parts))
            } else {
                std::future::ready(PromptSaid::default()).boxed()
            }
        };
        let all: Vec<_> = self.unheard.iter().map(ask).collect();
        self.waiting = Some(Waiting::Prompts(join_all(all).boxed()));
        None
    }

    /// Asks hooks whether the turn is to end; false where they are not asked.
    pub(super) fn ask_to_stop(&mut self, stop: Stop, calls: bool) -> bool {
        let Some(hooks) = self.setup.hooks.clone() else { return false };
        let ends = stop == Stop::EndTurn && !calls && !self.machine.is_steered();
        if !ends || self.limited {
            return false;
        }
        if self.continued >= MOST_CONTINUED {
            let text = format!("hooks let this turn go on {MOST_CONTINUED} times: it ends now");
            self.emit_or_tell(Body::Notice { level: Level::Warning, text });
            return false;
        }
        let said = self.last_words();
        self.waiting = Some(Waiting::Stop(hooks.stop(said, self.continued > 0)));
        true
    }

    /// The end of a turn whose model gave no answer: once hooks have seen it, where they want to.
    pub(super) fn cut_off(
        &mut self,
        kind: &'static str,
        error: String,
        calls: Vec<ToolUse>,
    ) -> Option<Input> {
        let input = Input::AnswerCut { error: error.clone(), calls };
        let hooks = self.setup.hooks.clone().filter(|hooks| hooks.sees(HookMoment::Failure));
        let Some(hooks) = hooks else { return Some(input) };
        let failure = hooks.failed(kind, error, self.last_words());
        self.waiting = Some(Waiting::Failure(failure, input));
        None
    }

    /// Takes what hooks said.
    pub(super) async fn came(&mut self, came: HookResult) {
        let waiting = self.waiting.take();
        match came {
            HookResult::Failure => {
                if let Some(Waiting::Failure(_, input)) = waiting {
                    self.step(input).await;
                }
            }
            HookResult::Batch(PromptSaid { refused, context, .. }) => {
                for text in context {
                    let from = From::Hook("PostToolBatch".to_owned());
                    self.say(QueuedMessage { from, parts: vec![Part::text(text)] });
                }
                let hooks = self.setup.hooks.clone();
                let input = match (refused, hooks) {
                    (Some(reason), _) => Some(self.ended_by_hook(&reason)),
                    (None, Some(hooks)) => self.ask_heard(&hooks),
                    (None, None) => self.ask(),
                };
                if let Some(input) = input {
                    self.step(input).await;
                }
            }
            HookResult::Prompts(said) => {
                let input = match self.heard(said) {
                    Some(error) => Some(Input::AnswerCut { error, calls: Vec::new() }),
                    None => self.ask(),
                };
                if let Some(input) = input {
                    self.step(input).await;
                }
            }
            HookResult::Stop(reason) => {
                if let Some(reason) = reason {
                    self.continued += 1;
                    let from = From::Hook("Stop".to_owned());
                    let words = QueuedMessage { from, parts: vec![Part::text(reason)] };
                    self.step(Input::Notice { words, wake: true }).await;
                }
                let (stop, calls) = (Stop::EndTurn, Vec::new());
                self.step(Input::AnswerEnded { stop, calls }).await;
            }
        }
    }

    /// Says what hooks let through; gives why the turn ends where they refused what began it.
    fn heard(&mut self, said: Vec<PromptSaid>) -> Option<String> {
        let mut ended = None;
        let unheard = std::mem::take(&mut self.unheard);
        for (words, said) in unheard.into_iter().zip(said) {
            if let Some(reason) = said.refused {
                let text = format!("a hook refused this message: {reason}");
                let own = words.from == From::Person;
                // The end of a turn is told where it has one.
                let level = if own { Level::Info } else { Level::Warning };
                self.emit_or_tell(Body::Notice { level, text: text.clone() });
                ended = ended.or_else(|| own.then_some(text));
                continue;
            }
            self.say(words);
            for text in said.words {
                self.say(QueuedMessage { from: From::Haft, parts: vec![Part::text(text)] });
            }
            for text in said.context {
                let from = From::Hook("UserPromptSubmit".to_owned());
                self.say(QueuedMessage { from, parts: vec![Part::text(text)] });
            }
        }
        ended
    }

    fn say_all(&mut self) {
        for words in std::mem::take(&mut self.unheard) {
            self.say(words);
        }
    }

    /// Gives up what is waited for from hooks; none where nothing is.
    pub(super) fn cancel_hooks(&mut self) -> Option<Input> {
        if let Waiting::Failure(_, input) = self.waiting.take()? {
            return Some(input);
        }
        for words in std::mem::take(&mut self.unheard) {
            if is_spoken(&words) {
                self.give_back(&words.parts);
            } else {
                self.say(words);
            }
        }
        let error = LlmError::Cancelled.to_string();
        Some(Input::AnswerCut { error, calls: Vec::new() })
    }

    /// The text of the last answer.
    pub(super) fn last_words(&self) -> String {
        let fold = self.fold.lock().unwrap_or_else(PoisonError::into_inner);
        match fold.final_messages().last() {
            Some(Message::Assistant { parts, .. }) => text_of(parts),
            _ => String::new(),
        }
    }
}
