//! What the tests of the driver stand on: a real log in a temporary folder, the real tool layer
//! with small tools, and a model that answers what a test wrote down.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{StreamExt as _, stream};
use haft_agent::{Agent, AgentConfig, Bus, ContextLimits, Feed, Handle, Input, Limits, Pinned};
use haft_host::{Memory, Outs};
use haft_llm::{
    Answer, Blobs, Delta, Encoded, LlmError, Provider, Request, Target as Model, Wire,
    anthropic::AnthropicMessages,
};
use haft_policy::{Anchors, Grants, Mode, Policy, Rules};
use haft_session::{Fold, SessionId, Store, Syncer};
use haft_tool::{
    AnyTool, Conversation, Cx, Dispatcher, Permissions, Registry, Session, Settings, Tool, ToolSet,
    standard,
};
use haft_types::{
    Access, AgentPath, Body, BreakCause, CallId, Env, Event, HostPath, Message, OnInterrupt,
    Outcome, Place, Plan, Status, Stop, Style, Target, ToolError, ToolSpec, TurnEnd, Usage, When,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

pub(crate) fn path(text: &str) -> HostPath {
    HostPath::new(text.as_bytes(), Style::Posix).unwrap()
}

pub(crate) fn place() -> Place {
    Place {
        host: "memory".into(),
        cwd: path("/w"),
        roots: vec![path("/w")],
        read_roots: Vec::new(),
        home: path("/home/user"),
        temp: path("/tmp"),
    }
}

/// Everything that tools began (`+`) and finished (`-`), in order.
pub(crate) type Journal = Arc<Mutex<Vec<String>>>;

/// What a tool of the tests does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    Observes,
    Modifies,
    /// Takes what it began to its end, whatever comes.
    Finishes,
    Panics,
    /// Its plan panics.
    PanicsEarly,
    /// Does not even look at its stop token.
    NeverEnds,
}

/// A tool of the tests.
pub(crate) struct Act {
    pub name: &'static str,
    pub does: Does,
    pub journal: Journal,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ActInput {
    /// What it touches.
    path: String,
    /// How long it takes, in milliseconds.
    #[serde(default)]
    ms: u64,
    /// How long its result is, in bytes.
    #[serde(default)]
    bytes: usize,
    /// How long the title of its plan is, in bytes.
    #[serde(default)]
    title: usize,
}

impl Tool for Act {
    type Input = ActInput;

    fn spec(&self, _: &Env) -> ToolSpec {
        let on_interrupt = match self.does {
            Does::Finishes => OnInterrupt::Finish,
            _ => OnInterrupt::Cancel,
        };
        ToolSpec { on_interrupt, ..ToolSpec::new(self.name, self.name, "does as it is told") }
    }

    fn plan(&self, input: &ActInput, place: &Place) -> Result<Plan, ToolError> {
        assert!(self.does != Does::PanicsEarly, "no plan for {}", input.path);
        let plan = Plan::new(place, "x".repeat(input.title));
        let path = place.path(&input.path).map_err(|e| ToolError::new(e.to_string()))?;
        Ok(match self.does {
            Does::Observes => plan.searches(path),
            Does::NeverEnds => plan.with(Access::Observe, Target::State { name: "x".into() }),
            _ => plan.changes(path),
        })
    }

    async fn run(&self, input: ActInput, _: &Cx) -> Result<Outcome, ToolError> {
        self.journal.lock().unwrap().push(format!("+{} {}", self.name, input.path));
        assert!(self.does != Does::Panics, "it broke over {}", input.path);
        if self.does == Does::NeverEnds {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(input.ms)).await;
        self.journal.lock().unwrap().push(format!("-{} {}", self.name, input.path));
        Ok(Outcome::text(format!("{} {}{}", self.name, input.path, "r".repeat(input.bytes))))
    }
}

/// One step of an answer as a test writes it.
#[derive(Clone)]
pub(crate) enum Step {
    Gives(Delta),
    Fails(LlmError),
    Waits(u64),
    /// Says nothing more, and does not care about the stop token.
    Hangs,
    Panics,
}

pub(crate) fn says(text: &str) -> Step {
    Step::Gives(Delta::Text { index: 0, text: text.into() })
}

/// A call of a tool; `nth` is its place in the answer, from 1.
pub(crate) fn calls(nth: u32, name: &str, input: &serde_json::Value) -> Step {
    let (wire_id, name, raw) = (format!("w{nth}"), name.to_owned(), input.to_string());
    Step::Gives(Delta::Call { index: nth, wire_id, name, raw, cut: false, extra: None })
}

pub(crate) fn ends(stop: Stop) -> Step {
    let usage = Usage { output: 10, ..Usage::default() };
    Step::Gives(Delta::End { stop, usage })
}

/// An answer that is these calls of tools with a path.
pub(crate) fn asks_for(wanted: &[(&str, &str)]) -> Vec<Step> {
    let call = |(nth, (name, path)): (usize, &(&str, &str))| {
        calls(u32::try_from(nth + 1).unwrap(), name, &serde_json::json!({ "path": path }))
    };
    wanted.iter().enumerate().map(call).chain([ends(Stop::ToolUse)]).collect()
}

pub(crate) fn is_done(text: &str) -> Vec<Step> {
    vec![says(text), ends(Stop::EndTurn)]
}

/// A model that answers what was written down, and keeps the requests that it got.
#[derive(Default)]
pub(crate) struct Scripted {
    answers: Mutex<VecDeque<Vec<Step>>>,
    pub requests: Mutex<Vec<Request>>,
    /// How many messages were encoded.
    pub encoded: Mutex<usize>,
    /// The wire that it speaks, where a test is about one.
    pub wire: Option<Arc<dyn Wire>>,
}

impl Scripted {
    pub(crate) fn new(answers: impl IntoIterator<Item = Vec<Step>>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() })
    }

    pub(crate) fn on(
        wire: &Arc<dyn Wire>,
        answers: impl IntoIterator<Item = Vec<Step>>,
    ) -> Arc<Self> {
        let answers = Mutex::new(answers.into_iter().collect());
        Arc::new(Self { answers, wire: Some(wire.clone()), ..Self::default() })
    }

    pub(crate) fn asked(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// The messages of a request as they would be sent.
    pub(crate) fn sent(&self, request: usize) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests[request].messages.iter().map(|message| message.json().to_owned()).collect()
    }
}

impl Provider for Scripted {
    fn name(&self) -> &'static str {
        self.wire.as_ref().map_or("test", |wire| wire.name())
    }

    fn host(&self) -> &'static str {
        ""
    }

    fn wire(&self) -> Option<&dyn Wire> {
        self.wire.as_deref()
    }

    fn encode(&self, message: &Message, target: &Model, blobs: &dyn Blobs) -> Encoded {
        *self.encoded.lock().unwrap() += 1;
        match &self.wire {
            Some(wire) => wire.message(message, target, "", blobs),
            None => AnthropicMessages::default().message(message, target, "", blobs),
        }
    }

    fn encode_tools(&self, tools: &[ToolSpec]) -> String {
        AnthropicMessages::default().tools(tools)
    }

    fn stream(&self, request: Request, stop: CancellationToken) -> Answer {
        self.requests.lock().unwrap().push(request);
        let steps = self.answers.lock().unwrap().pop_front();
        let steps = steps.unwrap_or_else(|| is_done("the test wrote no more"));
        stream::iter(steps)
            .filter_map(move |step| {
                let stop = stop.clone();
                async move {
                    match step {
                        Step::Gives(delta) => Some(Ok(delta)),
                        Step::Fails(error) => Some(Err(error)),
                        Step::Waits(ms) => tokio::select! {
                            () = tokio::time::sleep(Duration::from_millis(ms)) => None,
                            () = stop.cancelled() => Some(Err(LlmError::Cancelled)),
                        },
                        Step::Hangs => std::future::pending().await,
                        Step::Panics => panic!("the provider broke"),
                    }
                }
            })
            .boxed()
    }
}

/// A session with its tools.
pub(crate) struct World {
    pub home: tempfile::TempDir,
    pub id: SessionId,
    pub bus: Bus,
    pub syncer: Syncer,
    pub dispatcher: Arc<Dispatcher>,
    pub journal: Journal,
    pub feed: Feed,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_mode(Mode::Bypass)
    }

    pub(crate) fn with_mode(mode: Mode) -> Self {
        let home = tempfile::tempdir().unwrap();
        let log = Store::open(home.path()).create();
        let id = log.session().clone();
        let syncer = log.syncer().clone();
        let bus = Bus::new(log, || 7);
        let judge = Permissions { policy: policy(), mode, grants: Grants::default() };
        let outs = Arc::new(Outs::in_memory(1 << 20));
        let (events, blobs) = (Arc::new(bus.clone()), Arc::new(bus.clone()));
        let session = Session::new(id.as_str(), events, blobs, outs, judge);
        let journal = Journal::default();
        let host = Memory::with_files([("/w/a", "a"), ("/w/b", "b"), ("/w/c", "c")]).unwrap();
        let dispatcher = Arc::new(Dispatcher {
            session: Arc::new(session),
            conversation: Arc::new(Conversation::default()),
            tools: Arc::new(tools(&journal)),
            pipeline: Arc::new(standard(&Settings::default())),
            place: Arc::new(place()),
            host: Arc::new(host),
            agent: AgentPath::default(),
            mode: None,
        });
        let feed = bus.subscribe();
        Self { home, id, bus, syncer, dispatcher, journal, feed }
    }

    pub(crate) fn setup(&self, model: &Arc<Scripted>) -> AgentConfig {
        let specs: Vec<ToolSpec> =
            self.dispatcher.tools.specs().iter().map(|spec| (**spec).clone()).collect();
        AgentConfig {
            dispatcher: self.dispatcher.clone(),
            provider: model.clone(),
            name: "m".into(),
            target: Model { model: "m".into(), vision: false },
            effort: None,
            max_tokens: None,
            bus: self.bus.clone(),
            fold: Fold::new(AgentPath::default()),
            pinned: Pinned {
                system: vec!["who you are".into(), "where you are".into()],
                tools: model.encode_tools(&specs),
                format: String::new(),
            },
            cause: Some(BreakCause::First),
            before: None,
            limits: Limits::default(),
            context: ContextLimits::default(),
            prices: None,
            output: None,
            concurrency: 10,
            hooks: None,
            schema: None,
            models: None,
        }
    }

    pub(crate) fn start(&self, model: &Arc<Scripted>) -> Handle {
        Agent::start(self.setup(model))
    }

    /// Says something, and waits for the end of the turn.
    pub(crate) async fn turn(&mut self, handle: &Handle, text: &str) -> (Vec<Body>, TurnEnd) {
        assert!(handle.send(say(text)));
        self.until_ended().await
    }

    /// Everything up to the next end of a turn.
    pub(crate) async fn until_ended(&mut self) -> (Vec<Body>, TurnEnd) {
        let seen = self.until(|body| matches!(body, Body::TurnEnded { .. })).await;
        match seen.last() {
            Some(Body::TurnEnded { end, .. }) => (seen.clone(), end.clone()),
            other => panic!("the turn has no end: {other:?}"),
        }
    }

    /// Everything up to the first event that is wanted.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Body) -> bool) -> Vec<Body> {
        let mut seen = Vec::new();
        let hour = Duration::from_hours(1);
        loop {
            let next = tokio::time::timeout(hour, self.feed.next()).await;
            let event = next.unwrap_or_else(|_| panic!("it hangs after {seen:#?}"));
            let Some(event) = event else { panic!("the bus closed after {seen:#?}") };
            seen.push(event.body.clone());
            if wanted(&event.body) {
                return seen;
            }
        }
    }

    /// The log as it is on disk.
    pub(crate) fn log(&self) -> Vec<Event> {
        let store = Store::open(self.home.path());
        store.events(&self.id).unwrap().map(Result::unwrap).collect()
    }

    pub(crate) fn did(&self) -> Vec<String> {
        self.journal.lock().unwrap().clone()
    }

    /// From now on nothing large can be kept: its place is taken by a file.
    pub(crate) fn refuse_large(&self) {
        let blobs = Store::open(self.home.path()).dir(&self.id).join("blobs");
        drop(std::fs::remove_dir_all(&blobs));
        std::fs::write(blobs, "in the way").unwrap();
    }

    /// Takes back what [`refuse_large`](Self::refuse_large) did.
    pub(crate) fn accept_large(&self) {
        let blobs = Store::open(self.home.path()).dir(&self.id).join("blobs");
        std::fs::remove_file(&blobs).unwrap();
        std::fs::create_dir(blobs).unwrap();
    }
}

pub(crate) fn policy() -> Policy {
    let anchors = Anchors {
        cwd: path("/w"),
        roots: vec![path("/w")],
        project: path("/w"),
        home: path("/home/user"),
        state: Vec::new(),
    };
    Policy::new(&Rules::default(), anchors)
}

pub(crate) fn tools(journal: &Journal) -> ToolSet {
    let tool = |(name, does)| {
        let act = Act { name, does, journal: journal.clone() };
        Arc::new(act) as Arc<dyn AnyTool>
    };
    let all: Vec<Arc<dyn AnyTool>> = [
        ("grep", Does::Observes),
        ("edit", Does::Modifies),
        ("move", Does::Finishes),
        ("broken", Does::Panics),
        ("unplanned", Does::PanicsEarly),
        ("endless", Does::NeverEnds),
    ]
    .into_iter()
    .map(tool)
    .collect();
    Registry::default().source(all).assemble(&Env::default())
}

/// A set of tools of these names, each of which changes what it is given.
pub(crate) fn tools_of(journal: &Journal, names: &[&'static str]) -> ToolSet {
    let tool = |name: &&'static str| {
        let act = Act { name, does: Does::Modifies, journal: journal.clone() };
        Arc::new(act) as Arc<dyn AnyTool>
    };
    let all: Vec<Arc<dyn AnyTool>> = names.iter().map(tool).collect();
    Registry::default().source(all).assemble(&Env::default())
}

pub(crate) fn say(text: &str) -> Input {
    Input::User { when: When::Steer, parts: vec![text.into()] }
}

/// The calls that ended, in order, with how.
pub(crate) fn ended<'a>(bodies: impl IntoIterator<Item = &'a Body>) -> Vec<(CallId, Status)> {
    let end = |body: &Body| match body {
        Body::CallEnded { call, outcome, .. } => Some((call.clone(), outcome.status)),
        _ => None,
    };
    bodies.into_iter().filter_map(end).collect()
}

pub(crate) fn is_started(body: &Body, nth: u64) -> bool {
    matches!(body, Body::CallStarted { call, .. } if *call == CallId::nth(nth))
}

impl World {
    /// Waits until a tool wrote this line; the paused clock moves only when all else waits.
    pub(crate) async fn until_journal(&self, line: &str) {
        for _ in 0..1_000 {
            if self.did().iter().any(|did| did == line) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("{line} never happened: {:?}", self.did());
    }
}
