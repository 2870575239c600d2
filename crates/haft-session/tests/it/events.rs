//! Short ways to write events.

use haft_session::{Log, Store};
use haft_types::{
    AgentPath, Body, CallId, Event, From, HostPath, Outcome, Part, Stop, Style, ToolUse, TurnId,
    Usage,
};
use serde_json::json;

/// An event of the main agent in turn 1 that no log has seen.
pub(crate) fn event(body: Body) -> Event {
    let agent = AgentPath::default();
    Event { v: 1, id: None, parent: None, turn: TurnId(1), agent, at: 7, body }
}

pub(crate) fn session(cwd: &str) -> Body {
    Body::Session {
        session: "s".into(),
        haft: "0.1.0".into(),
        cwd: HostPath::new(cwd.as_bytes(), Style::Posix).unwrap(),
        fork: None,
        name: None,
    }
}

pub(crate) fn user(text: &str) -> Body {
    Body::User { from: From::Person, parts: vec![Part::text(text)] }
}

pub(crate) fn text(index: u32, text: &str) -> Body {
    Body::AnswerPart { index, part: Part::text(text) }
}

pub(crate) fn call(index: u32, id: &str) -> Body {
    let call = ToolUse::new(CallId(id.into()), "read", json!({"path": "a"}));
    Body::AnswerPart { index, part: Part::Call(call) }
}

pub(crate) fn ended() -> Body {
    Body::AnswerEnded {
        model: "m".into(),
        wire: "w".into(),
        host: String::new(),
        stop: Stop::EndTurn,
        usage: Usage::default(),
    }
}

pub(crate) fn failed(retried: bool) -> Body {
    Body::AnswerFailed { error: "cut".into(), retried, wait_ms: None }
}

pub(crate) fn call_started(id: &str) -> Body {
    Body::CallStarted { call: CallId(id.into()), tool: "read".into(), input: None, plan: None }
}

pub(crate) fn call_ended(id: &str, text: &str) -> Body {
    Body::CallEnded { call: CallId(id.into()), outcome: Outcome::text(text), took: 1 }
}

/// A store in a fresh folder; the folder goes when the guard is dropped.
pub(crate) fn store() -> (tempfile::TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path());
    (home, store)
}

/// Appends bodies and gives back the events as they were logged.
pub(crate) fn append(log: &mut Log, bodies: impl IntoIterator<Item = Body>) -> Vec<Event> {
    let log_one = |body| {
        let mut event = event(body);
        log.append(&mut event).unwrap();
        event
    };
    bodies.into_iter().map(log_one).collect()
}

/// All events of a log; every line must be readable.
pub(crate) fn read(store: &Store, log: &Log) -> Vec<Event> {
    store.events(log.session()).unwrap().map(Result::unwrap).collect()
}
