//! A session and its lives: haft as it is started from the log, the person who talks to it, and what
//! disturbs it.

use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    io::Write as _,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use haft_agent::{
    Agent, AgentConfig, Bus, ContextLimits, Feed, Handle, Input, Limits, Pinned, UnsentLines,
};
use haft_host::{Memory, Outs};
use haft_llm::{Provider as _, Retry, RetryPolicy, Target as Model};
use haft_policy::{Grants, Mode};
use haft_session::{Fold, SessionId, Store, on_branch, states};
use haft_testkit::log::{self, times_said};
use haft_tool::{
    AnyTool, Conversation, Dispatcher, Events as _, Permissions, Registry, Session as Tools,
    Settings, ToolSet, standard,
};
use haft_types::{
    Access, AgentPath, Body, BreakCause, CallId, Env, Event, From, OnInterrupt, Part, Status,
    ToolSpec, TurnId, When,
};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::{
    Happened,
    outside::{Act, Brain, Outside, Shared, events},
    steps::{Steps, runtime},
};
use crate::world::{path, place, policy};

/// Lives of a session at most; in the last one it comes to its end.
const LIVES: u32 = 4;
/// What disturbs a life at most.
const DISTURBED: u32 = 5;
/// Steps after which a life counts as hung.
const MOST: u64 = 200_000;

/// A session from its first word to its end.
pub(super) struct Session {
    outside: Shared,
    home: TempDir,
    id: SessionId,
    /// What the person says in it.
    words: Vec<String>,
    /// What was shown of what the log holds, in all lives.
    shown: Vec<Event>,
    window: Option<u64>,
    limits: Limits,
}

/// How a life ended.
enum End {
    /// Killed, where the log had so many bytes, whether a line was being written, and which words were
    /// shown as waiting.
    Killed {
        bytes: u64,
        is_torn: bool,
        waiting: Vec<String>,
    },
    Closed,
    /// All was said and done.
    Done,
}

/// Where everything stood before a step.
struct Mark {
    /// Bytes of the log.
    bytes: u64,
    shown: usize,
    waiting: Vec<String>,
    /// What calls did, in all.
    effects: u32,
}

/// What was said in a life, as it is seen from outside.
#[derive(Default)]
struct Dialogue {
    /// What the person has not sent, or has again.
    todo: Vec<String>,
    /// What was sent and not heard of again.
    sent: Vec<String>,
    /// What was shown as waiting.
    waiting: Vec<String>,
    is_answering: bool,
    calls: u32,
}

/// A haft that runs.
struct Running {
    bus: Bus,
    feed: Feed,
    handle: Handle,
    steps: Steps,
    dialogue: Dialogue,
    /// What a person waits for beside the conversation.
    wishes: Vec<JoinHandle<()>>,
}

fn text(parts: &[Part]) -> String {
    let [Part::Text { text }] = parts else { panic!("not words of this test: {parts:?}") };
    text.clone()
}

impl Session {
    pub(super) fn of_seed(seed: u64) -> Self {
        let mut outside = Outside::of_seed(seed);
        let mut draw = |bound| outside.chance.below(bound);
        let words = (0..2 + draw(3)).map(|n| format!("word-{n}-of-the-person")).collect();
        let window = [None, Some(6_000), Some(12_000)][usize::try_from(draw(3)).unwrap()];
        let steps = (draw(5) == 0).then_some(3);
        // In memory where that can be: what a kill leaves is what was written.
        let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let mut log = Store::open(home.path()).create();
        let id = log.session().clone();
        let body = Body::Session {
            session: id.as_str().to_owned(),
            haft: "0".into(),
            cwd: path("/w"),
            fork: None,
            name: None,
        };
        let (turn, agent) = (TurnId::default(), AgentPath::default());
        let v = haft_types::VERSION;
        log.append(&mut Event { v, id: None, parent: None, turn, agent, at: 7, body }).unwrap();
        let limits = Limits { steps, ..Limits::default() };
        let (outside, shown) = (Arc::new(Mutex::new(outside)), Vec::new());
        Self { outside, home, id, words, shown, window, limits }
    }

    fn below(&self, bound: u64) -> u64 {
        self.outside.lock().unwrap().chance.below(bound)
    }

    fn note(&self, what: &'static str) {
        self.outside.lock().unwrap().note(what);
    }

    fn log(&self) -> Vec<Event> {
        events(self.home.path(), &self.id)
    }

    fn log_path(&self) -> PathBuf {
        Store::open(self.home.path()).dir(&self.id).join("log.jsonl")
    }

    /// Lives until all was said.
    pub(super) fn live(&mut self) {
        for life in 1..=LIVES {
            let runtime = runtime();
            let end = runtime.block_on(self.one_life(life == LIVES));
            // Whatever runs ends here, at the await point where it is.
            drop(runtime);
            match end {
                End::Done => break,
                End::Closed => self.note("closed"),
                End::Killed { bytes, is_torn, waiting } => {
                    self.cut(bytes, false);
                    self.words_wait(&waiting);
                    self.cut(bytes, is_torn);
                }
            }
            self.what_was_shown_is_kept();
        }
        self.what_was_shown_is_kept();
    }

    /// Leaves the log as a kill left it, whatever was written while the tasks were dropped.
    fn cut(&self, bytes: u64, is_torn: bool) {
        let mut log = OpenOptions::new().append(true).open(self.log_path()).unwrap();
        log.set_len(bytes).unwrap();
        if is_torn {
            self.note("line cut off");
            log.write_all(b"{\"v\":1,\"id\":4711,\"prev\":\"b3:").unwrap();
        }
    }

    /// Fails unless words that were shown as waiting wait in the log, or were said.
    fn words_wait(&self, waiting: &[String]) {
        let log = self.log();
        let waits = log.iter().collect::<UnsentLines>().into_lines();
        for words in waiting {
            self.note("killed with words that wait");
            let is_there = waits.contains(words) || times_said(&log, words) == 1;
            assert!(is_there, "{words:?} waited, and is lost");
        }
    }

    fn what_was_shown_is_kept(&self) {
        // A torn end is cut off by the next life, and no event.
        let store = Store::open(self.home.path());
        let kept: BTreeMap<_, Event> =
            store.events(&self.id).unwrap().filter_map(Result::ok).map(|e| (e.id, e)).collect();
        for shown in &self.shown {
            assert_eq!(kept.get(&shown.id), Some(shown), "it was shown, and is not in the log");
        }
    }

    fn tools(&self) -> ToolSet {
        let tool = |(name, access, on_interrupt)| {
            let outside = self.outside.clone();
            Arc::new(Act { name, access, on_interrupt, outside }) as Arc<dyn AnyTool>
        };
        let all = [
            ("look", Access::Observe, OnInterrupt::Cancel),
            ("change", Access::Modify, OnInterrupt::Cancel),
            ("finish", Access::Modify, OnInterrupt::Finish),
        ];
        Registry::default().source(all.map(tool).to_vec()).assemble(&Env::default())
    }

    fn dispatcher(&self, bus: &Bus, events: &[Event]) -> Dispatcher {
        let judge = Permissions { policy: policy(), mode: Mode::Bypass, grants: Grants::default() };
        let (outs, kept) = (Arc::new(Outs::in_memory(1 << 20)), Arc::new(bus.clone()));
        let session = Tools::new(self.id.as_str(), kept.clone(), kept, outs, judge);
        for event in events {
            match &event.body {
                Body::AnswerPart { part: Part::Call(call), .. } => session.saw_call(&call.id),
                Body::CallStarted { call, .. } => session.saw_call(call),
                _ => {}
            }
        }
        let values = states(events, bus.leaf(), &AgentPath::default());
        Dispatcher {
            session: Arc::new(session),
            conversation: Arc::new(Conversation::resumed(values)),
            tools: Arc::new(self.tools()),
            pipeline: Arc::new(standard(&Settings::default())),
            place: Arc::new(place()),
            host: Arc::new(Memory::with_files([("/w/a", "a")]).unwrap()),
            agent: AgentPath::default(),
            mode: None,
        }
    }

    /// Starts haft from the log, as the program does it.
    fn start(&mut self) -> Running {
        let log = Store::open(self.home.path()).resume(&self.id).unwrap();
        let events = self.log();
        let bus = Bus::new(log, || 7);
        let feed = bus.subscribe();
        let dispatcher = self.dispatcher(&bus, &events);
        let mut fold = Fold::new(AgentPath::default());
        on_branch(&events, bus.leaf()).for_each(|event| fold.push(event));
        let (open, is_streaming) = (fold.unanswered(), fold.is_streaming());
        let fold = Arc::new(Mutex::new(fold));
        bus.follow(&fold);
        let emit = |body| bus.emit(&AgentPath::default(), TurnId::default(), body).unwrap();
        if is_streaming {
            let error = "the run ended in the middle of this answer".to_owned();
            emit(Body::AnswerFailed { error, retried: false, wait_ms: None });
        }
        for (call, outcome) in open {
            emit(Body::CallEnded { call, outcome, took: 0 });
        }
        let fold = fold.lock().unwrap().clone();
        let is_pinned = events.iter().any(|event| matches!(event.body, Body::Pinned { .. }));
        let config = self.config(&bus, dispatcher, fold, is_pinned);
        let unsaid = |words: &&String| times_said(&events, words) == 0;
        let todo = self.words.iter().filter(unsaid).cloned().collect();
        for line in events.iter().collect::<UnsentLines>().into_lines() {
            self.note("message that waited");
            assert_eq!(times_said(&events, &line), 0, "{line:?} was said, and waits");
        }
        let dialogue = Dialogue { todo, ..Dialogue::default() };
        let (handle, steps) = (Agent::start(config), Steps::new());
        Running { bus, feed, handle, steps, dialogue, wishes: Vec::new() }
    }

    fn config(
        &self,
        bus: &Bus,
        dispatcher: Dispatcher,
        fold: Fold,
        is_pinned: bool,
    ) -> AgentConfig {
        let brain = Brain {
            outside: self.outside.clone(),
            home: self.home.path().to_owned(),
            session: self.id.clone(),
            words: self.words.clone(),
        };
        let specs: Vec<ToolSpec> =
            dispatcher.tools.specs().iter().map(|spec| (**spec).clone()).collect();
        let pinned = Pinned {
            system: vec!["who you are".into()],
            tools: brain.encode_tools(&specs),
            format: String::new(),
        };
        let policy = RetryPolicy { attempts: 3, base_ms: 100, ..RetryPolicy::default() };
        AgentConfig {
            name: "m".into(),
            dispatcher: Arc::new(dispatcher),
            provider: Arc::new(Retry::new(Arc::new(brain), policy)),
            target: Model { model: "m".into(), vision: false },
            effort: None,
            max_tokens: None,
            bus: bus.clone(),
            fold,
            before: is_pinned.then(|| pinned.clone()),
            pinned,
            cause: (!is_pinned).then_some(BreakCause::First),
            limits: self.limits,
            context: ContextLimits { window: self.window, ..ContextLimits::default() },
            prices: None,
            output: None,
            concurrency: 3,
            hooks: None,
            schema: None,
            models: None,
        }
    }

    async fn one_life(&mut self, is_last: bool) -> End {
        let mut running = self.start();
        let (mut at, mut disturbed) = (1 + self.below(60), 0);
        for _ in 0..MOST {
            let before = self.mark(&running);
            let has_stepped = running.steps.step().await;
            self.look(&mut running);
            if running.handle.sender().is_idle() {
                assert!(running.dialogue.sent.is_empty(), "{:?} is lost", running.dialogue.sent);
                if running.dialogue.todo.is_empty() {
                    return self.rest(running).await;
                }
                running.say(When::FollowUp);
            }
            if has_stepped && disturbed < DISTURBED && running.steps.taken >= at {
                disturbed += 1;
                at = running.steps.taken + 1 + self.below(120);
                match self.below(12) {
                    0..2 => running.say(When::Steer),
                    2..4 => running.say(When::FollowUp),
                    4..6 => {
                        if !running.handle.sender().is_idle() {
                            self.note("interrupt in a turn");
                        }
                        running.handle.send(Input::Interrupt);
                    }
                    6 => self.compact(&mut running),
                    7 if !is_last => return self.close(running).await,
                    8..11 if !is_last => return self.kill(&running, before),
                    _ => {}
                }
            }
        }
        panic!("it hangs: {:#?}", self.log().last());
    }

    /// Looks at all that was shown since the last step.
    fn look(&mut self, running: &mut Running) {
        use futures::FutureExt as _;
        while let Some(event) = running.feed.next().now_or_never() {
            let event = event.expect("the bus is open");
            if event.id.is_some() {
                self.shown.push((*event).clone());
            }
            running.dialogue.see(&event.body);
            match &event.body {
                Body::Compacted { .. } => self.note("compaction"),
                Body::AnswerFailed { retried: true, .. } => self.note("asked again"),
                Body::CallEnded { outcome, .. } => {
                    if outcome.status == Status::Cancelled {
                        self.note("call cancelled");
                    }
                    if outcome.joined_text().contains("not known") {
                        self.note("call of which nothing is known");
                    }
                }
                _ => {}
            }
        }
    }

    fn compact(&self, running: &mut Running) {
        self.note("compaction by hand");
        let sender = running.handle.sender();
        let wish = tokio::spawn(async move { drop(sender.compact(None).await) });
        running.wishes.push(wish);
    }

    fn mark(&self, running: &Running) -> Mark {
        let effects = self.outside.lock().unwrap().effects.values().sum();
        let bytes = std::fs::metadata(self.log_path()).unwrap().len();
        let (shown, waiting) = (self.shown.len(), running.dialogue.waiting.clone());
        Mark { bytes, shown, waiting, effects }
    }

    /// Bytes of the log where the kill came in the middle of the last step: some line that this wrote
    /// is the last one. Nobody saw what came of the step then.
    fn amid(&self, before: &Mark) -> u64 {
        let log = std::fs::read(self.log_path()).unwrap();
        let start = usize::try_from(before.bytes).unwrap();
        let ends = (start..log.len()).filter(|at| log[*at] == b'\n').map(|at| at as u64 + 1);
        let all: Vec<u64> = [before.bytes].into_iter().chain(ends).collect();
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    fn kill(&mut self, running: &Running, before: Mark) -> End {
        let now = self.mark(running);
        // What a call did after a line was written cannot be without that line.
        let is_amid =
            now.bytes > before.bytes && now.effects == before.effects && self.below(2) == 0;
        let (bytes, waiting) = if is_amid {
            self.note("killed in a step");
            self.shown.truncate(before.shown);
            (self.amid(&before), before.waiting)
        } else {
            (now.bytes, now.waiting)
        };
        let dialogue = &running.dialogue;
        self.note(if dialogue.calls > 0 {
            "killed in a call"
        } else if dialogue.is_answering {
            "killed in an answer"
        } else {
            "killed in a pause"
        });
        End::Killed { bytes, is_torn: self.below(3) == 0, waiting }
    }

    async fn close(&mut self, running: Running) -> End {
        let Running { bus, mut feed, handle, mut steps, mut dialogue, wishes } = running;
        let closing = tokio::spawn(handle.close());
        for _ in 0..MOST {
            steps.step().await;
            if closing.is_finished() && wishes.iter().all(JoinHandle::is_finished) {
                bus.close();
                while let Some(event) = feed.next().await {
                    if event.id.is_some() {
                        self.shown.push((*event).clone());
                    }
                    dialogue.see(&event.body);
                }
                assert!(
                    dialogue.sent.is_empty(),
                    "{:?} is neither said nor given back",
                    dialogue.sent
                );
                return End::Closed;
            }
        }
        panic!("it does not close: {:#?}", self.log().last());
    }

    /// All was said: it closes at once.
    async fn rest(&mut self, running: Running) -> End {
        let Running { bus, handle, mut steps, .. } = running;
        let closing = tokio::spawn(handle.close());
        let before = steps.taken;
        while !closing.is_finished() {
            steps.step().await;
            assert!(steps.taken < before + 200, "it is not at rest");
        }
        bus.close();
        End::Done
    }

    /// Judges what is there at the end.
    pub(super) fn judge(self) -> (Vec<Event>, Happened) {
        let log = self.log();
        assert!(Store::open(self.home.path()).verify(&self.id).unwrap().broken.is_none());
        log::holds(&log, "the whole session");
        for words in &self.words {
            assert_eq!(times_said(&log, words), 1, "{words:?}");
        }
        let outside = self.outside.lock().unwrap();
        assert!(outside.wrong.is_empty(), "{}", outside.wrong[0]);
        let mut tokens: BTreeMap<&CallId, u64> = BTreeMap::new();
        for event in &log {
            match &event.body {
                Body::AnswerPart { part: Part::Call(call), .. } => {
                    let input: serde_json::Value = serde_json::from_str(&call.raw).unwrap();
                    tokens.insert(&call.id, input["token"].as_u64().unwrap());
                }
                Body::CallEnded { call, outcome, .. } => {
                    let did = outside.effects.get(&tokens[call]).copied().unwrap_or_default();
                    let text = outcome.joined_text();
                    let is_none = text.contains("never ran") || text.contains("not run");
                    assert!(outcome.status != Status::Done || did == 1, "{call}: {text}");
                    assert!(!is_none || did == 0, "{call} did it: {text}");
                }
                _ => {}
            }
        }
        let twice = outside.effects.iter().find(|(_, times)| **times > 1);
        assert!(twice.is_none(), "call {twice:?} did it twice");
        let happened = outside.happened.clone();
        drop(outside);
        (log, happened)
    }
}

impl Running {
    /// The person says the next line, where there is one.
    fn say(&mut self, when: When) {
        if self.dialogue.todo.is_empty() {
            return;
        }
        let words = self.dialogue.todo.remove(0);
        let parts = vec![Part::text(words.clone())];
        assert!(self.handle.send(Input::User { when, parts }), "it has ended");
        self.dialogue.sent.push(words);
    }
}

impl Dialogue {
    fn see(&mut self, body: &Body) {
        match body {
            Body::User { from: From::Person | From::Steer, parts } => {
                let words = text(parts);
                let at = self.sent.iter().position(|sent| *sent == words);
                let at = at.unwrap_or_else(|| panic!("{words:?} was not sent, or is said twice"));
                self.sent.remove(at);
                // The next state of the queue may come late.
                self.waiting.retain(|waiting| *waiting != words);
            }
            Body::Unsent { parts } => {
                let words = text(parts);
                let at = self.sent.iter().position(|sent| *sent == words);
                let at = at.unwrap_or_else(|| panic!("{words:?} was not sent, and is given back"));
                self.todo.insert(0, self.sent.remove(at));
                self.waiting.retain(|waiting| *waiting != words);
            }
            Body::Queue { waiting } => {
                let texts = waiting.iter().map(|queued| text(&queued.parts));
                let sent = &self.sent;
                self.waiting = texts.filter(|words| sent.contains(words)).collect();
            }
            Body::AnswerPart { .. } => self.is_answering = true,
            Body::AnswerEnded { .. } | Body::AnswerFailed { .. } => self.is_answering = false,
            Body::CallStarted { .. } => self.calls += 1,
            Body::CallEnded { .. } => self.calls = self.calls.saturating_sub(1),
            _ => {}
        }
    }
}
