//! A switchboard of faults: each wire, each fault, in the first answer or the second one. Whatever the
//! server does, the run ends, its log holds what it must, and the session can be gone on with.
//!
//! A session is opened, run and resumed as the program does it, but in this process and on a clock
//! that stands still: it moves when haft waits to ask again, and when a server says nothing more.

mod faults;

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use haft::{AgentBuilder, Base, Common, Extensions, Problems, SessionBuilder, SessionChoice};
use haft_agent::{Feed, Input};
use haft_config::Environment;
use haft_session::Store;
use haft_testkit::{
    http::{HttpRequest, HttpResponse, HttpServer},
    log::{self, times_said},
};
use haft_tool::{Cx, Tool};
use haft_types::{
    Access, Body, Env, Event, Mode, Outcome, Part, Place, Plan, Status, Target, ToolError,
    ToolSpec, TurnEnd, When,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tempfile::TempDir;
use tokio::{runtime::Runtime, sync::mpsc, time::advance};

use self::faults::{Fault, Want};
use super::invariants::hold_in_request;
use crate::{mock_provider::Wire, world::CANARY};

/// What the person says first, and when the first run ended badly.
const FIRST: &str = "Please look at one and note two.";
const THEN: &str = "Please go on.";
/// The last words of a run that ends well.
const LAST: &str = "Both are there.";
/// Seconds that a server may say nothing; the clock stands still meanwhile.
const STALL: u64 = 60;
/// How often nothing may happen for 2 ms before a run counts as hung.
const TICKS: u32 = 2_000;

/// A tool that writes a line into a file, so that it is seen how often it ran.
struct Mark {
    name: &'static str,
    access: Access,
    file: PathBuf,
}

#[derive(Deserialize, JsonSchema)]
struct Line {
    /// What is written.
    line: String,
}

impl Tool for Mark {
    type Input = Line;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec::new(self.name, self.name, "Writes a line.")
    }

    fn plan(&self, _: &Line, place: &Place) -> Result<Plan, ToolError> {
        let target = Target::State { name: self.name.into() };
        Ok(Plan::new(place, "Writing a line").with(self.access, target))
    }

    async fn run(&self, input: Line, _: &Cx) -> Result<Outcome, ToolError> {
        let failed = |error: std::io::Error| ToolError::new(error.to_string());
        let mut file =
            OpenOptions::new().create(true).append(true).open(&self.file).map_err(failed)?;
        writeln!(file, "{}", input.line).map_err(failed)?;
        Ok(Outcome::text(format!("{} is written", input.line)))
    }
}

/// The folders of one session.
struct Folders {
    root: TempDir,
}

impl Folders {
    fn new(wire: Wire) -> Self {
        // In memory where that can be: nothing here is about the disk.
        let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        for name in ["home", "state", "work"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let settings = format!(
            "[models.\"{}\"]\ncontext = 100000\n[http]\nstall_seconds = {STALL}\n\
             [run]\ngit_status_ms = 0\n",
            wire.model()
        );
        fs::write(root.path().join("state/settings.toml"), settings).unwrap();
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn environment(&self, wire: Wire, url: &str) -> Environment {
        Environment::of([
            ("HOME", self.path("home").into_os_string()),
            ("HAFT_HOME", self.path("state").into_os_string()),
            (wire.key_variable(), CANARY.into()),
            (wire.url_variable(), wire.base(url).into()),
        ])
    }

    /// The events of the only session.
    fn log(&self) -> Vec<Event> {
        let store = Store::open(&self.path("state"));
        let ids = store.ids().unwrap();
        let [id] = &ids[..] else { panic!("{} sessions", ids.len()) };
        assert!(store.verify(id).unwrap().broken.is_none());
        store.events(id).unwrap().map(Result::unwrap).collect()
    }

    fn marks(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("marks")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// A server with one fault.
struct Server {
    http: HttpServer,
    /// Whether it says nothing more and is waited for.
    stalls: Arc<AtomicBool>,
    after_results: bool,
}

impl Server {
    /// The fault takes the place of the first answer, or of the first one after results.
    async fn start(wire: Wire, fault: &Fault, after_results: bool) -> Self {
        let stalls = Arc::new(AtomicBool::new(false));
        let (fault, mut is_due, stalling) = (fault.clone(), true, stalls.clone());
        let answer = move |_, request: &HttpRequest| {
            let body = String::from_utf8_lossy(&request.body);
            let has_results = body.contains(wire.result_id());
            if is_due && has_results == after_results {
                is_due = false;
                stalling.store(fault.stalls, Ordering::SeqCst);
                return fault.answer.clone();
            }
            if has_results || body.contains(THEN) { wire.text(LAST) } else { first(wire) }
        };
        Self { http: HttpServer::start_with(answer).await.unwrap(), stalls, after_results }
    }

    fn bodies(&self) -> Vec<String> {
        let all = self.http.requests().into_iter();
        all.map(|request| String::from_utf8(request.body.to_vec()).unwrap()).collect()
    }
}

/// The good first answer: text and two calls, of which the first may begin early.
fn first(wire: Wire) -> HttpResponse {
    let calls = [("look", json!({"line": "one"})), ("note", json!({"line": "two"}))];
    wire.text_and_calls("I look at one and note two.", "k", &calls)
}

/// Runs one turn of a session in these folders, on a clock that is moved only where haft waits.
fn run(
    folders: &Folders,
    wire: Wire,
    server: &Server,
    which: SessionChoice,
    text: &str,
) -> TurnEnd {
    let builder =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    builder.unwrap().block_on(async {
        // The clock stands still while a blocking task runs.
        let (ends, ended) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || ended.recv().is_ok());
        let end = turn(folders, wire, server, which, text).await;
        drop(ends);
        end
    })
}

async fn turn(
    folders: &Folders,
    wire: Wire,
    server: &Server,
    which: SessionChoice,
    text: &str,
) -> TurnEnd {
    let common = Common {
        model: Some(wire.model().to_owned()),
        mode: Some(Mode::Bypass),
        tools: Some(vec!["look".to_owned(), "note".to_owned()]),
        ..Common::default()
    };
    let mark = |name, access| Mark { name, access, file: folders.path("marks") };
    let mut extensions = Extensions::default();
    extensions.tools.push(Arc::new(mark("look", Access::Observe)));
    extensions.tools.push(Arc::new(mark("note", Access::Modify)));
    let environment = folders.environment(wire, &server.http.url());
    let work = folders.path("work");
    let base = Base::load_in(environment, &common, Some(&work), &Problems::default()).unwrap();
    let env = base.env(Some(wire.model()), false).unwrap();
    let builder = SessionBuilder { base, common: &common, which, env, extensions: &extensions };
    let (core, _) = builder.open().await.unwrap();
    let mut feed = core.bus.subscribe();
    let (handle, _) = AgentBuilder::main(&core).start().await.unwrap();
    assert!(handle.send(Input::User { when: When::Steer, parts: vec![text.into()] }));
    let end = followed(&mut feed, server, folders).await;
    handle.close().await;
    core.close().await;
    end
}

/// Follows a turn to its end, and moves the clock where haft waits.
async fn followed(feed: &mut Feed, server: &Server, folders: &Folders) -> TurnEnd {
    let (tick, mut ticks) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while tick.send(()).is_ok() {
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    let (mut quiet, mut answers) = (0, 0);
    loop {
        let event = tokio::select! {
            biased;
            event = feed.next() => event.expect("the bus is open"),
            _ = ticks.recv() => {
                quiet += 1;
                assert!(quiet < TICKS, "it hangs: {:?}", folders.log().last());
                if server.stalls.load(Ordering::SeqCst) {
                    advance(Duration::from_secs(STALL + 1)).await;
                }
                continue;
            }
        };
        quiet = 0;
        match &event.body {
            Body::AnswerFailed { retried: true, wait_ms, .. } => {
                server.stalls.store(false, Ordering::SeqCst);
                // It waits already: it was told in the same breath.
                advance(Duration::from_millis(wait_ms.unwrap_or_default() + 1)).await;
            }
            Body::AnswerEnded { .. } => {
                answers += 1;
                // That of an answer before the fault may be seen late.
                if answers > usize::from(server.after_results) {
                    server.stalls.store(false, Ordering::SeqCst);
                }
            }
            Body::TurnEnded { end, .. } => return end.clone(),
            _ => {}
        }
    }
}

/// Fails unless what the model was told of the calls is what the marks say.
fn marks_are_told(folders: &Folders, events: &[Event], told: &str) {
    let marks = folders.marks();
    let mut lines = std::collections::BTreeMap::new();
    for event in events {
        match &event.body {
            Body::AnswerPart { part: Part::Call(call), .. } => {
                let line = call.input.as_ref().and_then(|input| input["line"].as_str());
                lines.insert(call.id.clone(), line.unwrap_or_default().to_owned());
            }
            Body::CallEnded { call, outcome, .. } => {
                let line = &lines[call];
                let ran = marks.iter().filter(|mark| *mark == line).count();
                let is_done = usize::from(outcome.status == Status::Done);
                assert_eq!(ran, is_done, "{told}: {call} {line} {outcome:?}, {marks:?}");
            }
            _ => {}
        }
    }
    for mark in ["one", "two"] {
        let ran = marks.iter().filter(|line| *line == mark).count();
        assert!(ran <= 1, "{told}: {mark} ran {ran} times");
    }
}

/// What is true whichever way a run ended.
fn holds(folders: &Folders, wire: Wire, server: &Server, told: &str) -> Vec<Event> {
    let events = folders.log();
    log::holds(&events, told);
    marks_are_told(folders, &events, told);
    assert_eq!(times_said(&events, FIRST), 1, "{told}");
    for body in server.bodies() {
        hold_in_request(wire, &body, told);
        assert_eq!(body.matches(FIRST).count(), 1, "{told}: {body}");
        assert!(body.matches(THEN).count() <= 1, "{told}: {body}");
    }
    events
}

/// The text of the last answer.
fn last_text(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events {
        match &event.body {
            Body::AnswerPart { part: Part::Text { text: more }, .. } => text.push_str(more),
            Body::User { .. }
            | Body::CallEnded { .. }
            | Body::AnswerFailed { retried: true, .. } => {
                text.clear();
            }
            _ => {}
        }
    }
    text
}

/// Plays one fault through, to the end of a session that was gone on with; true where the first run
/// ended well.
fn play(outside: &Runtime, wire: Wire, fault: &Fault, after_results: bool) -> bool {
    let place = if after_results { "second" } else { "first" };
    let told = format!("{wire:?}, {} in the {place} answer", fault.name);
    let folders = Folders::new(wire);
    let server = outside.block_on(Server::start(wire, fault, after_results));
    let end = run(&folders, wire, &server, SessionChoice::New, FIRST);
    let events = holds(&folders, wire, &server, &told);
    let is_well = matches!(end, TurnEnd::Done { .. });
    match (&end, &fault.want) {
        (TurnEnd::Done { .. }, Want::Well | Want::Either) => {}
        (TurnEnd::Failed { error }, Want::Badly(words)) => {
            assert!(error.contains(words), "{told}: {error}");
        }
        (TurnEnd::Failed { error }, Want::Either) => {
            let names = ["answer", "stream", "event", "JSON", "broke", "stalled"];
            assert!(names.iter().any(|name| error.contains(name)), "{told}: {error}");
        }
        _ => panic!("{told}: wanted {:?}, came to {end:?}", fault.want),
    }
    if is_well && fault.want == Want::Well {
        assert_eq!((last_text(&events).as_str(), folders.marks().len()), (LAST, 2), "{told}");
    }
    if is_well {
        return true;
    }
    let before = folders.marks();
    let end = run(&folders, wire, &server, SessionChoice::Last, THEN);
    assert!(matches!(end, TurnEnd::Done { .. }), "{told}, resumed: {end:?}");
    let events = holds(&folders, wire, &server, &format!("{told}, resumed"));
    assert_eq!((times_said(&events, THEN), last_text(&events).as_str()), (1, LAST), "{told}");
    assert_eq!(folders.marks(), before, "{told}: nothing more was asked for");
    false
}

/// Every fault of a wire in the first answer, and a third of them in the second one: each kind of
/// fault is there on some wire.
fn all(wire: Wire) -> Vec<(Fault, bool)> {
    let of = |answer: &HttpResponse| {
        let kinds = [
            faults::statuses(),
            faults::junk(wire, answer),
            faults::delays(answer),
            faults::stalls(answer),
            faults::at_each_event(answer),
        ];
        kinds.concat()
    };
    let (first, second) = (of(&first(wire)), of(&wire.text(LAST)));
    let first = first.into_iter().map(|fault| (fault, false));
    let second = second.into_iter().skip(wire as usize).step_by(3);
    first.chain(second.map(|fault| (fault, true))).collect()
}

/// Plays every fault of a wire, several at once.
fn switchboard(wire: Wire) {
    let all = all(wire);
    assert!(all.len() >= 60, "{} faults", all.len());
    let outside =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let (outside, next) = (outside.unwrap(), AtomicUsize::new(0));
    let (well, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((fault, after_results)) =
                    all.get(next.fetch_add(1, Ordering::SeqCst))
                {
                    let played = || play(&outside, wire, fault, *after_results);
                    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(played)) {
                        Ok(is_well) => drop(well.fetch_add(usize::from(is_well), Ordering::SeqCst)),
                        Err(_) => wrong.lock().unwrap().push(fault.name.clone()),
                    }
                }
            });
        }
    });
    let (well, wrong) = (well.into_inner(), wrong.into_inner().unwrap());
    assert!(wrong.is_empty(), "{} of {} went wrong: {wrong:#?}", wrong.len(), all.len());
    let badly = all.len() - well;
    assert!(well >= 20 && badly >= 20, "{well} ended well and {badly} badly: too few of a kind");
}

#[test]
fn anthropic_faults_end_a_run_and_lose_nothing() {
    switchboard(Wire::Anthropic);
}

#[test]
fn chat_completions_faults_end_a_run_and_lose_nothing() {
    switchboard(Wire::OpenAi);
}

#[test]
fn responses_faults_end_a_run_and_lose_nothing() {
    switchboard(Wire::Responses);
}
