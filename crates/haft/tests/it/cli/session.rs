//! `haft session`: the record, as text and as events.

use serde_json::{Value, json};

use crate::world::{Input, World, all_calls_ended, events, finish};

fn told(world: &World) {
    world.file("a.txt", "alpha\n");
    let model = world.script(&[
        json!({"text": "I look.", "calls": [{"name": "read", "input": {"path": "a.txt"}}]}),
        json!({"text": "It says alpha."}),
    ]);
    assert_eq!(world.run(&["-p", "What does a.txt say?", "--model", &model]).code, Some(0));
}

#[test]
fn an_empty_list_is_no_failure() {
    let world = World::new();
    let ran = world.run(&["session", "list"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "", ""));
    let mut elsewhere = world.haft(&["session", "list", "--json"]);
    elsewhere.env("HAFT_HOME", world.root().join("not/there/yet"));
    let ran = finish(elsewhere, &Input::Nothing);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
}

#[test]
fn sessions_are_listed_the_last_first() {
    let world = World::new();
    told(&world);
    let model = world.script(&[json!({"text": "Hi."})]);
    let mut elsewhere = world.haft(&["-p", "second\nsession", "--model", &model]);
    elsewhere.current_dir(world.root().join("home"));
    assert_eq!(finish(elsewhere, &Input::Nothing).code, Some(0));
    let ran = world.run(&["session", "list"]);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines.len(), 2, "{ran:?}");
    assert!(lines[0].ends_with("second") && lines[1].ends_with("What does a.txt say?"), "{ran:?}");
    let here = world.run(&["session", "list", "--here", "--json"]);
    let here: Value = serde_json::from_str(&here.out).unwrap();
    assert_eq!(here["first_text"], "What does a.txt say?");
}

#[test]
fn a_session_is_shown() {
    let world = World::new();
    told(&world);
    let id = world.only_session();
    let shown = world.run(&["session", "show", &id[..id.len() - 4]]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let order = ["> What does a.txt say?", "I look.", "read a.txt", "alpha", "It says alpha."];
    let mut at = 0;
    for part in order {
        at += shown.out[at..].find(part).unwrap_or_else(|| panic!("{part}: {}", shown.out));
    }
    let shown = world.run(&["session", "show", &id, "--json"]);
    all_calls_ended(&events(&shown.out));
    let ran = world.run(&["session", "show", "zzz"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
    let short = &id.rsplit('-').next().unwrap()[..8];
    assert!(ran.err.contains("\"zzz\"") && ran.err.contains(short), "{ran:?}");
}

#[test]
fn an_undo_is_shown_with_its_session() {
    let world = World::new();
    let input = json!({"path": "a.txt", "content": "x\n"}).to_string();
    let write = ["tool", "write", "--mode", "accept-edits", "--input", &input];
    assert_eq!(world.run(&write).code, Some(0));
    assert_eq!(world.run(&["undo"]).code, Some(0));
    assert_eq!(world.run(&["redo"]).code, Some(0));
    let shown = world.run(&["session", "show", &world.only_session()]).out;
    let path = world.work().join("a.txt").display().to_string();
    let at = |what: &str| {
        let line = format!("\n- {what} c1: {path}\n");
        shown.find(&line).unwrap_or_else(|| panic!("{line}{shown}"))
    };
    let (took, made) = (at("took back"), at("made again"));
    assert!(took < made, "{shown}");
}

#[test]
fn an_empty_id_is_no_beginning_of_one() {
    let world = World::new();
    for arguments in [&["session", "show", ""][..], &["undo", "--session", ""]] {
        let ran = world.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.err.contains("the id of a session is empty"), "{ran:?}");
        assert!(ran.err.contains("haft session list"), "{ran:?}");
    }
}

#[test]
fn nothing_of_a_session_reaches_a_terminal_raw() {
    let world = World::new();
    let evil = "a\u{1b}]52;c;aGk=\u{7}b\u{1b}[2Jc\u{202e}d\u{9b}31m";
    world.file("evil.txt", evil);
    let model = world.script(&[
        json!({"text": evil, "calls": [
            {"name": "read", "input": {"path": "evil.txt"}},
            {"name": "bash", "input": {"command": "cat evil.txt", "description": evil}},
            {"name": evil, "input": {"path": evil}},
        ]}),
        json!({"error": evil}),
    ]);
    let ran = world.run(&["-p", evil, "--model", &model, "--mode", "bypass"]);
    let list = world.run(&["session", "list"]);
    let show = world.run(&["session", "show", &world.only_session()]);
    for (name, text) in [("said", &ran.err), ("listed", &list.out), ("shown", &show.out)] {
        assert!(text.contains("52;c;aGk="), "{name}: it is not about the text at all: {text:?}");
        let bad = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
        assert!(!text.contains(bad), "{text:?}");
    }
    assert!(show.out.contains("evil.txt"), "{show:?}");
}

#[test]
fn a_broken_log_hides_no_other_session() {
    let world = World::new();
    told(&world);
    let folder = world.state().join("sessions/01a00000-0000-7000-8000-000000000000");
    std::fs::create_dir_all(&folder).unwrap();
    let good = world.state().join("sessions").join(world.only_session());
    let log = std::fs::read_dir(good)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .find(|name| name.to_string_lossy().ends_with(".jsonl"))
        .unwrap();
    std::fs::write(folder.join(log), b"\x00\x01 this is no log\n").unwrap();
    let ran = world.run(&["session", "list"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("What does a.txt say?"), "{ran:?}");
}

#[test]
fn a_session_of_tool_calls_is_listed_by_its_tools() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let edits = json!([{"old_text": "one", "new_text": "two"}]);
    let input = json!({"path": "a.txt", "edits": edits});
    let ran = world.tool("edit", &input, &["--mode", "bypass"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = world.run(&["session", "list"]);
    assert!(ran.out.ends_with("(1 tool call: edit)\n"), "{ran:?}");
    let id = world.only_session();
    for _ in 0..2 {
        let ran = world.tool("read", &json!({"path": "a.txt"}), &["--session", &id]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let ran = world.run(&["session", "list"]);
    assert!(ran.out.ends_with("(3 tool calls: edit, read)\n"), "{ran:?}");
    let listed = world.run(&["session", "list", "--json"]).json();
    assert_eq!((&listed["calls"], &listed["tools"]), (&json!(3), &json!(["edit", "read"])));
}
