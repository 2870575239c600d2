//! What an agent begins with, and goes on from: the folder, its instructions, its session, modes.

use std::{fs, path::Path};

use haft_testkit::http::HttpResponse;
use haft_types::{Body, Event, From, Level};
use serde_json::{Value, json};

use crate::{
    wire::{Mock, WIRES, Wire},
    world::{Input, World, events, finish},
};

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

fn log(world: &World, id: &str) -> Vec<Event> {
    events(&world.run(&["session", "show", id, "--json"]).out)
}

fn breaks(log: &[Event]) -> usize {
    log.iter().filter(|event| matches!(event.body, Body::Break { .. })).count()
}

fn notices(log: &[Event]) -> Vec<(Level, String)> {
    let notice = |event: &Event| match &event.body {
        Body::Notice { level, text } => Some((*level, text.clone())),
        _ => None,
    };
    log.iter().filter_map(notice).collect()
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
        assert_eq!(breaks(&log(&world, &id)), 2);
        // The same folder with other instructions is new too; with the same ones nothing is.
        goes(&world, wire, &mock, &other, &["-r", &id]);
        assert_eq!(breaks(&log(&world, &id)), 2);
        fs::write(other.join("AGENTS.md"), "Always say BETA.").unwrap();
        let bodies = goes(&world, wire, &mock, &other, &["-r", &id]);
        assert!(bodies.last().unwrap().contains("BETA"));
        assert_eq!(breaks(&log(&world, &id)), 3);
    }
}

#[test]
fn going_on_takes_the_last_session_in_which_someone_spoke() {
    let world = World::new();
    let model = world.script(&[json!({"text": "One."}), json!({"text": "Two."})]);
    assert_eq!(world.run(&["-p", "first", "--model", &model]).code, Some(0));
    let id = world.only_session();
    let input = json!({"command": "true"}).to_string();
    let ran = world.run(&["tool", "bash", "--mode", "bypass", "--input", &input]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let listed = world.run(&["session", "list", "--json"]);
    assert_eq!(listed.out.lines().count(), 2, "the call is kept in a session of its own");
    let ran = world.run(&["-c", "-p", "second", "--model", &model, "--output", "json"]);
    let result: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&result["session"], &result["text"]), (&json!(id), &json!("Two.")), "{ran:?}");
}

#[test]
fn what_no_rule_lets_be_read_is_no_instruction_either() {
    let world = World::new();
    world.file("AGENTS.md", "Always say ALPHA.\n@more.md");
    world.file("more.md", "Always say OMEGA.");
    let model = world.script(&[json!({"text": "Hi."})]);
    let flags = ["-p", "go", "--model", &model, "--output", "stream-json"];
    let ran = world.run(&flags);
    assert!(ran.out.contains("ALPHA") && ran.out.contains("OMEGA"), "{ran:?}");
    for rule in ["Read", "read", "Read(*)"] {
        let ran = world.run(&[&flags[..], &["--deny", rule]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.out.contains("ALPHA") && !ran.out.contains("OMEGA"), "{rule}: {ran:?}");
        assert!(ran.err.contains("AGENTS.md is left out"), "{rule}: {ran:?}");
    }
}

#[test]
fn instructions_are_text_and_whatever_is_left_out_is_told_once() {
    let world = World::new();
    let utf16: Vec<u8> = std::iter::once(0xfeff)
        .chain("Always say Grüße.".encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    world.file("AGENTS.md", utf16);
    world.file("CLAUDE.md", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    let model = world.script(&[json!({"text": "Hi."}), json!({"text": "Ho."})]);
    let ran = world.run(&["-p", "go", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("CLAUDE.md is left out") && ran.err.contains("PNG"), "{ran:?}");
    let id = world.only_session();
    let told = log(&world, &id);
    let system = told.iter().find_map(|event| match &event.body {
        Body::Pinned { system, .. } => Some(system.join("\n")),
        _ => None,
    });
    let system = system.unwrap();
    assert!(system.contains("Always say Grüße.") && !system.contains("IHDR"), "{system}");
    assert_eq!(notices(&told).len(), 1, "{:?}", notices(&told));
    let ran = world.run(&["-c", "-p", "more", "--model", &model]);
    assert_eq!(
        (ran.code, &*ran.err),
        (Some(0), ""),
        "it was told when the instructions were taken"
    );
}

#[test]
fn a_mode_that_was_set_is_in_the_log_and_the_model_is_told() {
    for wire in WIRES {
        let world = World::new();
        let mock = Mock::with(move |number, _| wire.text(&format!("Answer {number}.")));
        let lines = "one\n/mode plan\ntwo\n/mode ask\n/quit\n";
        let ran = finish(wire.haft(&world, &mock.url(), &["--line"]), &Input::Pipe(lines));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let bodies = mock.bodies();
        let text = "The person set the mode to plan.";
        assert!(!bodies[0].contains(text) && bodies[1].contains(text), "{bodies:#?}");
        let told = log(&world, &world.only_session());
        let set = |mode: &str| (Level::Info, format!("The person set the mode to {mode}."));
        assert_eq!(notices(&told), [set("plan"), set("ask")], "also without a further message");
        let said = |event: &Event| matches!(&event.body, Body::User { from: From::Haft, .. });
        assert_eq!(told.iter().filter(|event| said(event)).count(), 1);
    }
}

#[test]
fn an_empty_log_and_one_of_a_later_version_are_told() {
    let world = World::new();
    let model = world.script(&[json!({"text": "Hi."}), json!({"text": "Ho."})]);
    assert_eq!(world.run(&["-p", "go", "--model", &model]).code, Some(0));
    let id = world.only_session();
    let path = world.state().join("sessions").join(&id).join("log.jsonl");
    let later = fs::read_to_string(&path).unwrap().replace("{\"v\":1,", "{\"v\":2,");
    fs::write(&path, &later).unwrap();
    for arguments in [&["session", "show", &id][..], &["-r", &id, "-p", "more", "--model", &model]]
    {
        let ran = world.run(arguments);
        assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{ran:?}");
        assert!(ran.err.contains("later haft") && ran.err.contains("update haft"), "{ran:?}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), later, "it is left as it is");
    fs::write(&path, "").unwrap();
    let ran = world.run(&["session", "show", &id]);
    assert!(ran.err.contains("is empty"), "{ran:?}");
}

#[test]
fn a_pipe_in_place_of_a_log_holds_nobody_up() {
    let world = World::new();
    let model = world.script(&[json!({"text": "Hi."})]);
    assert_eq!(world.run(&["-p", "go", "--model", &model]).code, Some(0));
    let id = world.only_session();
    let dir = world.state().join("sessions/01900000-0000-7000-8000-00000000000a");
    fs::create_dir(&dir).unwrap();
    let made = world.program("mkfifo").arg(dir.join("log.jsonl")).status().unwrap();
    assert!(made.success());
    let ran = world.run(&["session", "list"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with(&id) && ran.err.contains("no regular file"), "{ran:?}");
    let ran = world.run(&["session", "show", "01900000-0000-7000-8000-00000000000a"]);
    assert!(ran.code == Some(1) && ran.err.contains("no regular file"), "{ran:?}");
}

#[test]
fn an_answer_without_a_word_is_told_and_one_without_an_end_is_asked_for_again() {
    for wire in WIRES {
        let world = World::new();
        let mock = Mock::new(vec![wire.text("")]);
        let ran = finish(wire.haft(&world, &mock.url(), &["-p", "go"]), &Input::Nothing);
        assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{ran:?}");
        assert!(ran.err.contains("the model's answer is empty"), "{wire:?} {ran:?}");
    }
    let (world, wire) = (World::new(), Wire::OpenAi);
    let mock = Mock::new(vec![HttpResponse::events("data: [DONE]\n\n"), wire.text("Here.")]);
    let ran = finish(wire.haft(&world, &mock.url(), &["-p", "go"]), &Input::Nothing);
    assert_eq!((ran.code, &*ran.out), (Some(0), "Here.\n"), "{ran:?}");
    assert!(ran.err.contains("Asking again in 1 s (2 of "), "{ran:?}");
}

#[test]
fn a_server_that_asks_for_more_patience_than_there_is_is_quoted() {
    for wire in WIRES {
        let world = World::new();
        let mut busy = HttpResponse::new(429, "application/json", "{\"error\":\"slow down\"}");
        busy.headers.push(("retry-after".into(), "3600".into()));
        let mock = Mock::new(vec![busy]);
        let ran = finish(wire.haft(&world, &mock.url(), &["-p", "go"]), &Input::Nothing);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let told = "The server asks to wait 3,600 s, longer than haft waits (120 s)";
        assert!(ran.err.contains(told), "{ran:?}");
        assert_eq!(mock.requests().len(), 1);
    }
}
