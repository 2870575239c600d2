//! Going on with a session: what the model is sent then begins with the very bytes of before.

use std::{fs, path::Path};

use haft_session::Store;
use haft_types::{
    AgentPath, Body, Event, From, HostPath, Level, Part, Stop, Style, TurnEnd, TurnId, Usage,
    VERSION,
};
use serde_json::{json, value::RawValue};

use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, World, finish},
};

/// The value of a key of a request, as its bytes.
fn raw(body: &str, key: &str) -> String {
    let map: std::collections::BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(body).unwrap();
    map.get(key).map_or_else(String::new, |value| value.get().to_owned())
}

/// What a request says, whatever its wire calls it.
fn said(body: &str) -> String {
    let messages = raw(body, "messages");
    if messages.is_empty() { raw(body, "input") } else { messages }
}

/// The messages of a request, each as its bytes.
fn messages(body: &str) -> Vec<String> {
    let list: Vec<Box<RawValue>> = serde_json::from_str(&said(body)).unwrap();
    list.iter().map(|message| message.get().to_owned()).collect()
}

/// The message without cache marks, which move to the end with each request.
fn unmarked(message: &str) -> String {
    message.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

fn talk(world: &World, wire: Wire, mock: &Mock, flags: &[&str]) {
    let mut all = vec!["-p", "go"];
    all.extend(flags);
    let ran = finish(wire.haft(world, &mock.url(), &all), &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn what_was_sent_never_changes() {
    for wire in WIRES {
        let world = World::new();
        world.file("a.txt", "alpha\n");
        let read = json!({"path": "a.txt"});
        let answer = move |number: usize| match number {
            0 => wire.calls("first", &[("read", read.clone()), ("ls", json!({}))]),
            _ => wire.text(&format!("Answer {number}.")),
        };
        let mock = Mock::with(move |number, _| answer(number));
        talk(&world, wire, &mock, &[]);
        talk(&world, wire, &mock, &["-c"]);
        let id = world.only_session();
        talk(&world, wire, &mock, &["-r", &id]);
        talk(&world, wire, &mock, &["-r", &id[..id.len() - 4]]);
        assert_eq!(world.only_session(), id);
        let bodies = mock.bodies();
        assert_eq!(bodies.len(), 5, "{wire:?}");
        for (before, after) in bodies.iter().zip(&bodies[1..]) {
            assert_eq!(raw(before, "tools"), raw(after, "tools"), "{wire:?}");
            assert_eq!(raw(before, "system"), raw(after, "system"), "{wire:?}");
            let (old, new) = (messages(before), messages(after));
            assert!(new.len() > old.len(), "{wire:?}");
            for (old, new) in old.iter().zip(&new) {
                assert_eq!(unmarked(old), unmarked(new), "{wire:?}");
            }
        }
        let last = bodies.last().unwrap();
        for said in ["Answer 1.", "Answer 2.", "Answer 3.", "alpha"] {
            assert!(last.contains(said), "{said} in {last}");
        }
        assert_eq!(last.matches(wire.result_id()).count(), 2, "{last}");
    }
}

#[test]
fn the_last_session_is_that_of_this_folder() {
    let world = World::new();
    let ran = world.run(&["-p", "hi", "-c", "--model", &world.script(&[json!({"text": "no"})])]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("no session was held in"), "{ran:?}");
    let model = world.script(&[json!({"text": "one"}), json!({"text": "two"})]);
    assert_eq!(world.run(&["-p", "hi", "--model", &model]).out, "one\n");
    let mut elsewhere = world.haft(&["-p", "hi", "-c", "--model", &model]);
    elsewhere.current_dir(world.root().join("home"));
    let ran = finish(elsewhere, &Input::Nothing);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    // The script goes on where it was.
    assert_eq!(world.run(&["-p", "hi", "-c", "--model", &model]).out, "two\n");
}

#[test]
fn an_unknown_session_is_told() {
    let world = World::new();
    let model = world.script(&[json!({"text": "one"})]);
    let ran = world.run(&["-p", "hi", "-r", "zzz", "--model", &model]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("\"zzz\""), "{ran:?}");
}

#[test]
fn a_torn_log_is_gone_on_with() {
    let world = World::new();
    let model = world.script(&[json!({"text": "one"}), json!({"text": "two"})]);
    assert_eq!(world.run(&["-p", "hi", "--model", &model]).code, Some(0));
    let id = world.only_session();
    let folder = world.state().join("sessions").join(&id);
    let log = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .unwrap();
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend_from_slice(b"{\"v\":1,\"id\":99,\"ty");
    fs::write(&log, bytes).unwrap();
    let ran = world.run(&["-p", "hi", "-c", "--model", &model, "--output", "json"]);
    let result = ran.json();
    assert_eq!((ran.code, &result["text"]), (Some(0), &json!("two")), "{ran:?}");
}

/// A run of `haft -p go` in a folder, and the bodies of the requests so far.
fn goes(world: &World, wire: Wire, mock: &Mock, folder: &Path, flags: &[&str]) -> Vec<String> {
    let mut all = vec!["-p", "go"];
    all.extend(flags);
    let mut command = wire.haft(world, &mock.url(), &all);
    command.current_dir(folder);
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    mock.bodies()
}

fn breaks(world: &World) -> usize {
    world.events().iter().filter(|event| matches!(event.body, Body::Break { .. })).count()
}

#[test]
fn a_session_that_goes_on_in_another_folder_knows_it() {
    for wire in WIRES {
        let world = World::new();
        world.file("AGENTS.md", "Always say ALPHA.");
        let other = world.root().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("AGENTS.md"), "Always say OMEGA.").unwrap();
        let mock = Mock::with(move |number, _| wire.text(&format!("Answer {number}.")));
        goes(&world, wire, &mock, &world.work(), &[]);
        let id = world.only_session();
        let bodies = goes(&world, wire, &mock, &other, &["-r", &id]);
        let folder = |path: &Path| format!("Working folder: {}", path.display());
        let last = bodies.last().unwrap();
        assert!(last.contains("OMEGA") && !last.contains("ALPHA"), "{last}");
        assert!(last.contains(&folder(&other)) && !last.contains(&folder(&world.work())), "{last}");
        assert_eq!(breaks(&world), 2);
        // The same folder with other instructions is new too; with the same ones nothing is.
        goes(&world, wire, &mock, &other, &["-r", &id]);
        assert_eq!(breaks(&world), 2);
        fs::write(other.join("AGENTS.md"), "Always say BETA.").unwrap();
        let bodies = goes(&world, wire, &mock, &other, &["-r", &id]);
        assert!(bodies.last().unwrap().contains("BETA"));
        assert_eq!(breaks(&world), 3);
    }
}

#[test]
fn going_on_takes_the_last_session_in_which_someone_spoke() {
    let world = World::new();
    let model = world.script(&[json!({"text": "One."}), json!({"text": "Two."})]);
    assert_eq!(world.run(&["-p", "first", "--model", &model]).code, Some(0));
    let id = world.only_session();
    let ran = world.tool("bash", &json!({"command": "touch x"}), &["--mode", "bypass"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let listed = world.run(&["session", "list", "--json"]);
    assert_eq!(listed.out.lines().count(), 2, "the call is kept in a session of its own");
    let ran = world.run(&["-c", "-p", "second", "--model", &model, "--output", "json"]);
    let result = ran.json();
    assert_eq!((&result["session"], &result["text"]), (&json!(id), &json!("Two.")), "{ran:?}");
}

#[test]
fn a_session_goes_on_with_its_model_where_none_is_chosen() {
    let go = |world: &World, flags: &[&str]| world.run(&[&["-p", "go"], flags].concat());
    let world = World::new();
    let model = world.script(&[json!({"text": "one"}), json!({"text": "two"})]);
    assert_eq!(go(&world, &["--model", &model]).out, "one\n");
    assert_eq!(go(&world, &["-c"]).out, "two\n");
    // A server of the settings is known by its address, and told where it is gone.
    for wire in WIRES {
        let world = World::new();
        let mock = Mock::with(move |number, _| wire.text(&format!("Answer {number}.")));
        let spoken = wire.model().split('/').next().unwrap();
        let settings = |url: &str| {
            let address = wire.base(url);
            world.settings(&format!(
                "[providers.mine]\naddress = \"{address}\"\nwire = \"{spoken}\"\n"
            ));
        };
        settings(&mock.url());
        assert_eq!(go(&world, &["--model", "mine/mock-1"]).out, "Answer 0.\n", "{wire:?}");
        assert_eq!(go(&world, &["-c"]).out, "Answer 1.\n", "{wire:?}");
        assert!(mock.bodies()[1].contains("\"mock-1\""), "{:?}", mock.bodies());
        let id = world.only_session();
        assert_eq!(go(&world, &["-r", &id]).out, "Answer 2.\n", "{wire:?}");
        settings("http://127.0.0.1:9");
        let gone = go(&world, &["-c"]);
        assert_eq!(gone.code, Some(2), "{gone:?}");
        assert!(gone.err.contains("no model is chosen"), "{gone:?}");
        // What is chosen counts more.
        let other = world.script(&vec![json!({"text": "other"}); 9]);
        assert_eq!(go(&world, &["-c", "--model", &other]).out, "other\n", "{wire:?}");
    }
}

/// A log as haft wrote it when a mode was a notice: plan was set, and the model was told.
fn log_with_a_notice(world: &World) {
    let set = "The person set the mode to plan. Mode plan is on: read and search as you like";
    let parts = |text: &str| vec![Part::text(text)];
    let usage = Usage::default();
    let store = Store::open(&world.state());
    let mut log = store.create();
    let session = log.session().as_str().to_owned();
    let cwd = HostPath::new(world.work().as_os_str().as_encoded_bytes(), Style::Posix).unwrap();
    let answer = |text: &str| Body::AnswerPart { index: 0, part: Part::text(text) };
    let ended = Body::AnswerEnded {
        model: "m".into(),
        wire: "script".into(),
        host: String::new(),
        stop: Stop::EndTurn,
        usage,
    };
    let over = Body::TurnEnded { end: TurnEnd::Done { stop: Stop::EndTurn }, usage };
    for (turn, body) in [
        (0, Body::Session { session, haft: "0.1.0".into(), cwd, fork: None, name: None }),
        (1, Body::User { from: From::Person, parts: parts("one") }),
        (1, answer("First.")),
        (1, ended.clone()),
        (1, over.clone()),
        (0, Body::Notice { level: Level::Info, text: set.into() }),
        (2, Body::User { from: From::Haft, parts: parts(set) }),
        (2, Body::User { from: From::Person, parts: parts("two") }),
        (2, answer("Second.")),
        (2, ended),
        (2, over),
    ] {
        let (turn, agent) = (TurnId(turn), AgentPath::default());
        let mut event = Event { v: VERSION, id: None, parent: None, turn, agent, at: 1, body };
        log.append(&mut event).unwrap();
    }
    log.sync().unwrap();
}

#[test]
fn a_log_in_which_a_mode_is_a_notice_goes_on_with_what_the_model_knows() {
    let plan = "Mode plan is on";
    for (flags, told) in [(&["--mode", "plan"][..], None), (&[], Some("Mode plan is off: "))] {
        let world = World::new();
        log_with_a_notice(&world);
        let mock = Mock::with(move |_, _| Wire::OpenAi.text("Third."));
        talk(&world, Wire::OpenAi, &mock, &[&["-c"], flags].concat());
        let body = mock.bodies().remove(0);
        assert_eq!(body.matches(plan).count(), 1, "what it knows is not said again: {body}");
        assert_eq!(body.contains("Mode plan is off"), told.is_some(), "{body}");
        for words in ["one", "First.", "two", "Second."] {
            assert!(body.contains(words), "{words}: {body}");
        }
        let shown = world.run(&["session", "show", &world.only_session()]);
        assert!(shown.out.contains("- The person set the mode to plan."), "{shown:?}");
        assert!(shown.out.contains("Third.") && shown.err.is_empty(), "{shown:?}");
    }
}
