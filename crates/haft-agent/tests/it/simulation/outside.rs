//! What is outside of haft and outlives it: what calls did, and a model that answers by chance. It
//! looks at each request, and at what the log holds then.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{StreamExt as _, stream};
use haft_llm::{
    Answer, Blobs, Delta, Encoded, LlmError, NoBlobs, Provider, Request, Target as Model,
    Wire as _, anthropic::AnthropicMessages,
};
use haft_session::{Fold, SessionId, Store, on_branch};
use haft_testkit::numbers::Numbers;
use haft_tool::{Cx, Tool};
use haft_types::{
    Access, AgentPath, Env, Event, Message, OnInterrupt, Outcome, Place, Plan, Stop, Target,
    ToolError, ToolSpec, Usage,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

/// Answers with calls over a whole session at most, so that each comes to its end.
const ANSWERS: u64 = 9;

/// What outlives haft.
#[derive(Debug)]
pub(super) struct Outside {
    pub chance: Numbers,
    /// How often each call did what it does, by the number that is its own.
    pub effects: BTreeMap<u64, u32>,
    pub issued: u64,
    answers: u64,
    /// What was wrong with requests.
    pub wrong: Vec<String>,
    /// How often this and that came about.
    pub happened: BTreeMap<&'static str, u64>,
}

/// Shared by the tools and the model of all lives of a session.
pub(super) type Shared = Arc<Mutex<Outside>>;

impl Outside {
    pub(super) fn of_seed(seed: u64) -> Self {
        Self {
            chance: Numbers::of(seed),
            effects: BTreeMap::new(),
            issued: 0,
            answers: 0,
            wrong: Vec::new(),
            happened: BTreeMap::new(),
        }
    }

    pub(super) fn note(&mut self, what: &'static str) {
        *self.happened.entry(what).or_default() += 1;
    }
}

/// A tool whose effect is made at one of its await points.
pub(super) struct Act {
    pub name: &'static str,
    pub access: Access,
    pub on_interrupt: OnInterrupt,
    pub outside: Shared,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The number of the call, that no other one has.
    token: u64,
    /// What it is about: calls that change one thing wait for each other.
    on: String,
    /// Await points before the effect.
    before: u64,
    /// Await points after it.
    after: u64,
    /// Milliseconds that each takes; 0 is one step.
    ms: u64,
    /// Bytes of the result.
    bytes: usize,
    /// Whether it breaks down then.
    breaks: bool,
}

impl Tool for Act {
    type Input = Input;

    fn spec(&self, _: &Env) -> ToolSpec {
        let on_interrupt = self.on_interrupt;
        ToolSpec { on_interrupt, ..ToolSpec::new(self.name, self.name, "does as it is told") }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        let target = Target::State { name: input.on.clone().into() };
        Ok(Plan::new(place, "Acting").with(self.access, target))
    }

    async fn run(&self, input: Input, _: &Cx) -> Result<Outcome, ToolError> {
        let pause = async |times: u64| {
            for _ in 0..times {
                match input.ms {
                    0 => yield_now().await,
                    ms => tokio::time::sleep(Duration::from_millis(ms)).await,
                }
            }
        };
        pause(input.before).await;
        *self.outside.lock().unwrap().effects.entry(input.token).or_default() += 1;
        pause(input.after).await;
        assert!(!input.breaks, "it breaks down as it was told");
        Ok(Outcome::text(format!("did {}{}", input.token, " r".repeat(input.bytes / 2))))
    }
}

/// One step of an answer.
enum Step {
    Gives(Delta),
    Fails(LlmError),
    /// Milliseconds; 0 is one step of the runtime.
    Waits(u64),
}

/// The model.
pub(super) struct Brain {
    pub outside: Shared,
    pub home: PathBuf,
    pub session: SessionId,
    /// What the person says in the session.
    pub words: Vec<String>,
}

impl Provider for Brain {
    fn name(&self) -> &'static str {
        "test"
    }

    fn host(&self) -> &'static str {
        ""
    }

    fn encode(&self, message: &Message, target: &Model, blobs: &dyn Blobs) -> Encoded {
        AnthropicMessages::default().message(message, target, "", blobs)
    }

    fn encode_tools(&self, tools: &[ToolSpec]) -> String {
        AnthropicMessages::default().tools(tools)
    }

    fn stream(&self, request: Request, stop: CancellationToken) -> Answer {
        let is_summary = request.system.first().is_some_and(|text| text.starts_with("You sum up"));
        let steps = if is_summary {
            self.outside.lock().unwrap().summary()
        } else {
            self.look_at(&request);
            self.outside.lock().unwrap().answer()
        };
        let steps = stream::iter(steps).filter_map(move |step| {
            let stop = stop.clone();
            async move {
                match step {
                    _ if stop.is_cancelled() => Some(Err(LlmError::Cancelled)),
                    Step::Gives(delta) => Some(Ok(delta)),
                    Step::Fails(error) => Some(Err(error)),
                    Step::Waits(0) => {
                        yield_now().await;
                        None
                    }
                    Step::Waits(ms) => tokio::select! {
                        biased;
                        () = stop.cancelled() => Some(Err(LlmError::Cancelled)),
                        () = tokio::time::sleep(Duration::from_millis(ms)) => None,
                    },
                }
            }
        });
        steps.boxed()
    }
}

impl Brain {
    /// Notes what is wrong with a request: it is not what the log on the disk comes to, a call has
    /// no result, or the person says something twice.
    fn look_at(&self, request: &Request) {
        let sent: Vec<&str> = request.messages.iter().map(Encoded::json).collect();
        let mut wrong = unpaired(&sent);
        for words in &self.words {
            let times: usize =
                sent.iter().map(|message| message.matches(words.as_str()).count()).sum();
            if times > 1 {
                wrong.push(format!("{words:?} is sent {times} times"));
            }
        }
        let mut fold = Fold::new(AgentPath::default());
        let events = events(&self.home, &self.session);
        let leaf = events.iter().filter_map(|event| event.id).max().unwrap_or_default();
        on_branch(&events, leaf).for_each(|event| fold.push(event));
        let target = Model { model: request.model.clone(), vision: false };
        let kept: Vec<Encoded> = fold
            .final_messages()
            .iter()
            .map(|message| self.encode(message, &target, &NoBlobs))
            .collect();
        let kept: Vec<&str> = kept.iter().map(Encoded::json).collect();
        if kept != sent {
            wrong.push(format!("the log holds {kept:#?}, and this is sent: {sent:#?}"));
        }
        self.outside.lock().unwrap().wrong.extend(wrong);
    }
}

/// The events of a session as they are on the disk.
pub(super) fn events(home: &std::path::Path, session: &SessionId) -> Vec<Event> {
    Store::open(home).events(session).unwrap().map(Result::unwrap).collect()
}

/// Calls without exactly one result behind their answer, and results of no call.
fn unpaired(sent: &[&str]) -> Vec<String> {
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut wrong = Vec::new();
    for message in sent {
        let message: Value = serde_json::from_str(message).unwrap();
        let parts = message["content"].as_array().cloned().unwrap_or_default();
        let of = |kind: &str, key: &str| -> BTreeSet<String> {
            let wanted = parts.iter().filter(|part| part["type"] == kind);
            wanted.map(|part| part[key].as_str().unwrap_or_default().to_owned()).collect()
        };
        let results = of("tool_result", "tool_use_id");
        if results != open {
            wrong.push(format!("calls {open:?} got results {results:?}"));
        }
        open = of("tool_use", "id");
    }
    if !open.is_empty() {
        wrong.push(format!("calls {open:?} got no results"));
    }
    wrong
}

fn text(text: impl Into<String>) -> Step {
    Step::Gives(Delta::Text { index: 0, text: text.into() })
}

fn end(stop: Stop) -> Step {
    let usage = Usage { output: 3, ..Usage::default() };
    Step::Gives(Delta::End { stop, usage })
}

fn busy() -> LlmError {
    LlmError::Busy { message: "planted: busy".into(), retry_after_ms: None, paid: false }
}

fn cut() -> LlmError {
    LlmError::Cut("planted: the line went dead".into())
}

fn too_long() -> LlmError {
    LlmError::TooLong("planted: the prompt is too long".into())
}

impl Outside {
    fn below(&mut self, bound: u64) -> u64 {
        self.chance.below(bound)
    }

    /// Some await points.
    fn waits(&mut self) -> Vec<Step> {
        let ms = if self.below(4) == 0 { 1 + self.below(70) } else { 0 };
        (0..self.below(3)).map(|_| Step::Waits(ms)).collect()
    }

    fn summary(&mut self) -> Vec<Step> {
        self.note("summary asked for");
        let mut steps = self.waits();
        match self.below(10) {
            0 => steps.push(Step::Fails(too_long())),
            1 => steps.push(Step::Fails(cut())),
            2 => steps.extend([Step::Waits(130_000), Step::Fails(cut())]),
            3 => steps.push(end(Stop::EndTurn)),
            _ => steps.extend([text("Goal: all of it."), Step::Waits(0), end(Stop::EndTurn)]),
        }
        steps
    }

    fn call(&mut self, index: u32) -> Step {
        self.issued += 1;
        let token = self.issued;
        let name = ["look", "look", "change", "change", "finish"][self.pick(5)];
        let bytes = [10, 100, 2_500, 5_000][self.pick(4)];
        let ms = [0, 0, 1, 40][self.pick(4)];
        let input = json!({
            "token": token, "on": (["a", "b"][self.pick(2)]), "before": self.below(4),
            "after": self.below(4), "ms": ms, "bytes": bytes, "breaks": self.below(25) == 0,
        });
        let (wire_id, name, raw) = (format!("w{token}"), name.to_owned(), input.to_string());
        Step::Gives(Delta::Call { index, wire_id, name, raw, cut: false, extra: None })
    }

    fn pick(&mut self, bound: u64) -> usize {
        usize::try_from(self.below(bound)).unwrap()
    }

    /// An answer that asks for calls.
    fn calls(&mut self) -> Vec<Step> {
        let mut steps = self.waits();
        if self.below(2) == 0 {
            steps.push(text("I do this."));
            steps.extend(self.waits());
        }
        for index in 1..=1 + self.below(3) {
            steps.push(self.call(u32::try_from(index).unwrap()));
            steps.extend(self.waits());
        }
        steps
    }

    fn answer(&mut self) -> Vec<Step> {
        self.answers += 1;
        let mut steps = self.waits();
        if self.answers > ANSWERS {
            steps.extend([text("It is done."), end(Stop::EndTurn)]);
            return steps;
        }
        match self.below(100) {
            0..50 => {
                steps.extend(self.calls());
                steps.push(end(Stop::ToolUse));
            }
            50..70 => steps.extend([text("It is done."), Step::Waits(0), end(Stop::EndTurn)]),
            fault => steps.extend(self.fault(fault - 70)),
        }
        steps
    }

    /// An answer that goes wrong, one of thirty kinds with their weights.
    fn fault(&mut self, kind: u64) -> Vec<Step> {
        self.note("faulty answer");
        let mut steps = Vec::new();
        match kind {
            0..5 => steps.push(Step::Fails(busy())),
            5..9 => steps.extend([text("Half an ans"), Step::Waits(0), Step::Fails(cut())]),
            9..14 => {
                steps.extend(self.calls());
                steps.push(Step::Fails(cut()));
            }
            14..17 => steps.extend([text("And"), Step::Waits(130_000), Step::Fails(cut())]),
            17..21 => steps.push(Step::Fails(too_long())),
            21 => steps.push(Step::Fails(LlmError::Rejected("planted: no".into()))),
            22 => steps.push(Step::Fails(LlmError::Empty("planted: nothing".into()))),
            23 => steps.extend([text("So"), Step::Fails(LlmError::NoReason("planted".into()))]),
            24 => steps.extend(self.calls()),
            25 => {
                steps.extend(self.calls());
                if let Some(Step::Gives(Delta::Call { cut, .. })) = steps.last_mut() {
                    *cut = true;
                }
                steps.push(end(Stop::Length));
            }
            26 => steps.extend([text("More comes"), end(Stop::Paused)]),
            27 => steps.push(end(Stop::EndTurn)),
            28 => steps.extend([text("No."), end(Stop::Refusal)]),
            _ => {
                let thinks = Delta::Thinking { index: 0, text: "hm".into() };
                steps.extend([Step::Gives(thinks), Step::Waits(60), Step::Fails(busy())]);
            }
        }
        steps
    }
}
