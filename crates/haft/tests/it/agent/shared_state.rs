//! What a session keeps from one process to the next: files that were seen, ids that were taken.
//! And what it does not leave behind when nothing could be asked.

use haft_session::{SessionId, Store};
use haft_types::{AgentPath, Body, BreakCause, CallId, Event, EventId, From, Part, Status, TurnId};
use serde_json::{Value, json};

use crate::{
    mock_provider::WIRES,
    world::{Input, Ran, World, finish},
};

/// One tool call in a process of its own; gives its outcome.
fn call(world: &World, session: Option<&str>, tool: &str, input: &Value) -> Value {
    let input = input.to_string();
    let mut all = vec!["tool", tool, "--json", "--mode", "bypass", "--input", &input];
    all.extend(session.iter().flat_map(|id| ["--session", *id]));
    let ran = world.run(&all);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn text(outcome: &Value) -> &str {
    outcome["content"][0]["text"].as_str().unwrap()
}

/// A session that a call has begun: it is kept because something was changed in it.
fn session(world: &World, path: &str) -> String {
    let begun = call(world, None, "write", &json!({"path": path, "content": "x\n"}));
    assert_eq!(begun["status"], "done", "{begun}");
    begun["session"].as_str().unwrap().to_owned()
}

fn kept(world: &World) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(world.state().join("sessions"));
    entries.map_or_else(|_| Vec::new(), |all| all.map(|entry| entry.unwrap().path()).collect())
}

const UNSEEN: &str = "never read";
const CHANGED: &str = "changed since it was read";

#[test]
fn what_one_call_has_read_the_next_one_of_its_session_knows() {
    let world = World::new();
    let id = session(&world, "begin.txt");
    let id = Some(&*id);
    let (read, write) = (json!({"path": "a.txt"}), json!({"path": "a.txt", "content": "new\n"}));
    world.file("a.txt", "alpha\nbeta\n");
    let answer = call(&world, id, "write", &write);
    assert!(text(&answer).contains(UNSEEN), "{answer}");

    world.file("a.txt", "alpha\nbeta\n");
    let answer = call(&world, id, "write", &write);
    assert!(answer["status"] == "failed" && text(&answer).contains(CHANGED), "{answer}");
    call(&world, id, "read", &read);
    let answer = call(&world, id, "write", &write);
    assert!(answer["status"] == "done" && !text(&answer).contains(UNSEEN), "{answer}");

    // An edit with a tolerance needs a file that was seen as it is.
    let edit = |old: &str, new: &str| json!({"path": "a.txt", "edits": [{"old_text": old, "new_text": new}]});
    world.file("a.txt", "it\u{2019}s one\n");
    let edited = call(&world, id, "edit", &edit("it's one", "two"));
    assert!(edited["status"] == "failed" && text(&edited).contains(CHANGED), "{edited}");
    call(&world, id, "read", &read);
    let edited = call(&world, id, "edit", &edit("it's one", "two"));
    assert_eq!(edited["status"], "done", "{edited}");
    let edited = call(&world, id, "edit", &edit("two", "three"));
    assert!(edited["status"] == "done" && !text(&edited).contains(CHANGED), "{edited}");
    // Another session has seen nothing.
    let other = call(&world, Some(&session(&world, "c.txt")), "write", &write);
    assert!(text(&other).contains(UNSEEN), "{other}");
}

#[test]
fn what_one_run_has_read_the_next_one_of_its_session_knows() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    world.file("b.txt", "alpha\n");
    let calls = |tool: &str, more: Value| {
        let one = |path: &str| {
            let mut input = more.clone();
            input["path"] = json!(path);
            json!({"name": tool, "input": input})
        };
        json!({"calls": [one("a.txt"), one("b.txt")]})
    };
    let done = || json!({"text": "done"});
    let model = world.script(&[
        calls("read", json!({})),
        done(),
        calls("write", json!({"content": "new\n"})),
        done(),
        calls("write", json!({"content": "newer\n"})),
        done(),
    ]);
    let run = |more: &[&str]| {
        let all = [&["-p", "go", "--model", &model, "--mode", "bypass"], more].concat();
        let ran = world.run(&all);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    run(&[]);
    world.file("b.txt", "beta\n");
    run(&["-c"]);
    run(&["-r", &world.only_session()]);
    // Calls that run together end in any order.
    let events = world.events();
    let ended = |id: u64| {
        let mut found = events.iter().filter_map(|event| match &event.body {
            Body::CallEnded { call, outcome, .. } if *call == CallId::nth(id) => Some(outcome),
            _ => None,
        });
        let outcome = found.next().unwrap();
        (outcome.status, outcome.joined_text())
    };
    let (a, b, again) = (ended(3), ended(4), ended(5));
    assert!(a.0 == Status::Done && !a.1.contains(UNSEEN), "{a:?}");
    assert!(b.0 == Status::Failed && b.1.contains(CHANGED), "{b:?}");
    assert!(again.0 == Status::Done && !again.1.contains(UNSEEN), "{again:?}");
    assert_eq!((world.read("a.txt"), world.read("b.txt")), ("newer\n".into(), "beta\n".into()));
}

#[test]
fn ids_of_calls_are_never_used_again_on_another_branch() {
    let world = World::new();
    let id = session(&world, "begin.txt");
    for _ in 0..3 {
        call(&world, Some(&id), "ls", &json!({}));
    }
    // A branch that begins before all of that.
    let store = Store::open(&world.state());
    let mut log = store.resume(&SessionId::parse(&id).unwrap()).unwrap();
    log.set_leaf(EventId(1)).unwrap();
    let body = Body::User { from: From::Person, parts: vec![Part::text("again")] };
    let (turn, agent) = (TurnId(1), AgentPath::default());
    log.append(&mut Event { v: 1, id: None, parent: None, turn, agent, at: 1, body }).unwrap();
    drop(log);
    assert_eq!(call(&world, Some(&id), "ls", &json!({}))["call"], "c5");
    assert_eq!(call(&world, Some(&id), "ls", &json!({}))["call"], "c6");
}

#[test]
fn a_break_tells_the_first_byte_that_differs() {
    let world = World::new();
    let model = world.script(&[json!({"text": "one"}), json!({"text": "two"})]);
    let run = |more: &[&str]| world.run(&[&["-p", "go", "--model", &model], more].concat());
    assert_eq!(run(&[]).code, Some(0));
    assert_eq!(run(&["-c", "--tools", "read"]).code, Some(0));
    let events = world.events();
    let pinned: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Pinned { system, tools, .. } => Some(format!("{tools}{}", system.concat())),
            _ => None,
        })
        .collect();
    let [before, after] = &pinned[..] else { panic!("{} prefixes", pinned.len()) };
    let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    assert!(same > 0, "both begin with the tool that both have");
    let breaks: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Break { cause, at_byte } => Some((*cause, *at_byte)),
            _ => None,
        })
        .collect();
    assert_eq!(breaks, [(BreakCause::First, None), (BreakCause::Resume, Some(same as u64))]);
}

#[test]
fn a_run_that_ends_before_its_first_request_leaves_nothing() {
    let nothing = |world: &World, ran: &Ran, code: i32| {
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert_eq!(kept(world), Vec::<std::path::PathBuf>::new(), "{ran:?}");
    };
    for wire in WIRES {
        let world = World::new();
        for face in [&["-p", "hi"][..], &["-p", "hi", "--output", "stream-json"], &["--line"]] {
            let mut command = world.haft(face);
            command.args(["--model", wire.model()]);
            let ran = finish(command, &Input::Pipe("hi\n"));
            assert!(ran.err.contains(wire.key_variable()), "{ran:?}");
            nothing(&world, &ran, 2);
        }
    }
    let world = World::new();
    let model = world.script(&[json!({"text": "one"})]);
    nothing(&world, &world.run(&["-p", "hi", "--model", "script:not/there"]), 2);
    nothing(&world, &world.run(&["-p", "", "--model", &model]), 2);
    // The next session is the first one that is kept.
    assert_eq!(world.run(&["-p", "hi", "--model", &model]).code, Some(0));
    assert_eq!(kept(&world).len(), 1);
}
