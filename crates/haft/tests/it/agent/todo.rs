//! The todo list: it goes with the session, and everyone is shown it.

use std::cmp::Ordering;

use haft_types::{Body, Event};
use serde_json::{Value, json};

use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, Ran, World, finish},
};

const TEXTS: [&str; 4] =
    ["Read the parser", "Mend the empty list", "Add a test", "Say so in the docs"];

/// A list of which the first `done` are completed, and the next one is in progress.
fn list(done: usize) -> Value {
    let status = |at: usize| match at.cmp(&done) {
        Ordering::Less => "completed",
        Ordering::Equal => "in_progress",
        Ordering::Greater => "pending",
    };
    let item = |(at, text)| json!({"text": text, "status": status(at)});
    let items: Vec<Value> = TEXTS.iter().enumerate().map(item).collect();
    json!({"items": items})
}

/// As the model is given it, inside of JSON.
fn words(done: usize) -> String {
    let mark = |at: usize| match at.cmp(&done) {
        Ordering::Less => "[x]",
        Ordering::Equal => "[>]",
        Ordering::Greater => "[ ]",
    };
    let lines = TEXTS.iter().enumerate().map(|(at, text)| format!("{} {text}", mark(at)));
    lines.collect::<Vec<_>>().join("\\n")
}

fn run(world: &World, wire: Wire, mock: &Mock, arguments: &[&str]) -> Ran {
    let ran = finish(wire.haft(world, &mock.url(), arguments), &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

fn compacted(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event.body, Body::Compacted { .. })).count()
}

#[test]
fn it_survives_a_resume_and_a_compaction_word_for_word_on_each_wire() {
    for wire in WIRES {
        let world = World::new();
        let filler = "some words to fill the window with, ".repeat(1_500);
        let mock = Mock::with(move |number, request| {
            let body = String::from_utf8_lossy(&request.body);
            if body.contains("You sum up the work of a coding agent") {
                return wire.text("Goal: to mend the parser.");
            }
            match number {
                0 => wire.calls("a", &[("todo", list(1))]),
                1 => wire.text(&filler),
                // Another process asks what the list is.
                2 => wire.calls("b", &[("todo", json!({}))]),
                _ => wire.text("Done."),
            }
        });
        run(&world, wire, &mock, &["-p", "Mend the parser."]);
        run(&world, wire, &mock, &["-p", "Go on.", "-c"]);
        let bodies = mock.bodies();
        assert!(bodies[1].contains("1 of 4 done; in progress: Mend the empty list."), "{wire:?}");
        assert!(bodies[3].contains(&format!("Mend the empty list.\\n{}", words(1))), "{wire:?}");
        // Resumed, then summed up: what the summary does not say, code does.
        let command = wire.haft(&world, &mock.url(), &["--line", "-c"]);
        let ran = finish(command, &Input::Pipe("/compact\nand now?\n"));
        assert_eq!(compacted(&world.events()), 1, "{wire:?}: {ran:?}");
        let last = mock.bodies().pop().unwrap();
        let attached = format!("# Your todo list, word for word\\n{}\\n", words(1));
        assert_eq!(last.matches(&attached).count(), 1, "{wire:?}: {last}");
        assert!(!last.contains("words to fill the window"), "{last}");
    }
}

#[test]
fn after_a_rewind_it_is_what_it_was_at_that_message() {
    let world = World::new();
    let call = |input: Value| json!({"calls": [{"name": "todo", "input": input}]});
    let (text, read) = (json!({"text": "Yes."}), call(json!({})));
    let model = world.script(&[
        call(list(0)),
        text.clone(),
        call(list(2)),
        text.clone(),
        read.clone(),
        text.clone(),
        read.clone(),
        text,
        read,
        json!({"text": "Yes."}),
    ]);
    let flags = ["--line", "--model", &model];
    let lines = "one\ntwo\n/rewind 1 talk\nthree\n/rewind back\nfour\n/rewind 3 talk\nfive\n";
    let ran = finish(world.haft(&flags), &Input::Pipe(lines));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = |after: &str| ran.out.split(&format!("> {after}\n")).nth(1).unwrap_or_default();
    for (after, wanted) in [
        ("three", "  [>] Read the parser"),
        ("four", "  [>] Add a test"),
        ("five", "The list is empty."),
    ] {
        let shown = said(after).split("Yes.").next().unwrap_or_default();
        assert!(shown.contains(wanted), "{after}: {ran:?}");
    }
    // Another process goes on with that branch.
    let session = world.only_session();
    assert_eq!(
        world.tool("todo", &json!({}), &["--session", &session]).out,
        "The list is empty.\n"
    );
}

#[test]
fn every_face_shows_how_much_is_done() {
    let world = World::new();
    let call = json!({"calls": [{"name": "todo", "input": list(3)}]});
    let model = world.script(&[call, json!({"text": "All but the docs."})]);
    let print = |output: &str| {
        let ran = world.run(&["-p", "go", "--model", &model, "--output", output]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran
    };
    let ran = print("text");
    assert_eq!(ran.out, "All but the docs.\n");
    assert!(ran.err.contains("haft: todo: 3 of 4 done; open: Say so in the docs\n"), "{ran:?}");
    let ran = print("json");
    let last = ran.json();
    assert_eq!((&last["todo"]["done"], &last["todo"]["total"]), (&json!(3), &json!(4)), "{last}");
    assert_eq!(last["todo"]["items"][3]["state"], "in_progress", "{last}");
    assert!(!ran.err.contains("todo"), "programs read it: {ran:?}");
    let lines = print("stream-json").lines();
    let result = lines.iter().find(|line| line["type"] == "call_result").unwrap();
    assert_eq!((&result["data"]["done"], &result["data"]["total"]), (&json!(3), &json!(4)));
    assert_eq!(result["data"]["items"][3]["status"], "in_progress", "{result}");
    let ran = finish(world.haft(&["--line", "--model", &model]), &Input::Pipe("go\n"));
    for line in ["* todo: Todo list\n  3 of 4 done", "[x] Add a test", "[>] Say so in the docs"] {
        assert!(ran.out.contains(line), "{line}: {ran:?}");
    }
    // Without a model the session has it.
    let ran = world.tool("todo", &list(1), &["--json"]);
    let session = ran.json()["session"].as_str().unwrap().to_owned();
    let ran = world.tool("todo", &json!({}), &["--session", &session]);
    let wanted = words(1).replace("\\n", "\n");
    assert!(ran.out.contains("1 of 4 done") && ran.out.contains(&wanted), "{ran:?}");
    world.tool("todo", &json!({"items": []}), &["--session", &session]);
    let ran = world.tool("todo", &json!({}), &["--session", &session]);
    assert_eq!(ran.out, "The list is empty.\n");
    // A client of MCP has it for as long as its session is.
    let mut client = crate::mcp_client::Client::greeted(&world, &[]);
    for (input, wanted) in [(list(2), "2 of 4 done"), (json!({}), "[>] Add a test")] {
        let called = json!({"name": "todo", "arguments": input});
        let answer = client.ask("tools/call", &called)["result"].clone();
        assert!(answer.to_string().contains(wanted), "{answer}");
    }
}

#[test]
fn a_model_has_one_list_or_none() {
    let names = |settings: &str, flags: &[&str]| {
        let world = World::new();
        world.settings(settings);
        let ran = world.run(&[&["debug", "tools"], flags].concat());
        let all = ["todo", "task_create", "task_get", "task_list", "task_update"];
        let has = |name: &&str| ran.out.contains(&format!("\"name\":\"{name}\""));
        (all.into_iter().filter(has).collect::<Vec<_>>(), ran)
    };
    let none: Vec<&str> = Vec::new();
    let tasks = ["task_create", "task_get", "task_list", "task_update"];
    let (with, without) = ("openai/gpt-4o", "anthropic/claude-opus-5-5");
    for (settings, flags, wanted) in [
        ("", vec!["--model", with], vec!["todo"]),
        ("", vec!["--model", without], none.clone()),
        ("tools.todo = 'todo'", vec!["--model", without], vec!["todo"]),
        ("tools.todo = 'tasks'", vec!["--model", without], tasks.to_vec()),
        ("tools.todo = 'tasks'", vec!["--model", with], tasks.to_vec()),
        ("tools.todo = 'off'", vec!["--model", with], none.clone()),
        ("tools.on = ['TodoWrite']", vec!["--model", without], vec!["todo"]),
        ("tools.on = ['TaskCreate']", vec!["--model", with], tasks.to_vec()),
        ("", vec!["--model", with, "--tools", "read,task_list"], vec!["task_list"]),
        ("models.\"openai/gpt-4o\".todo = false", vec!["--model", with], none),
    ] {
        let (has, ran) = names(settings, &flags);
        assert_eq!(has, wanted, "{settings} {flags:?}: {ran:?}");
    }
    let (_, ran) = names("", &["--model", with, "--tools", "todo,task_list"]);
    assert!(ran.code == Some(2) && ran.err.contains("todo and task_list are two kinds"), "{ran:?}");
    let (has, ran) = names("tools.on = ['todo', 'task_get']", &["--model", with]);
    assert!(has == ["todo"] && ran.err.contains("tools.on: todo and task_get"), "{ran:?}");
}

#[test]
fn what_is_wrong_is_named_and_changes_nothing() {
    let world = World::new();
    let ran = world.tool("todo", &list(1), &["--json"]);
    let session = ran.json()["session"].as_str().unwrap().to_owned();
    let item = |text: &str, status: &str| json!({"text": text, "status": status});
    let many: Vec<Value> = (0..101).map(|n| item(&format!("thing {n}"), "pending")).collect();
    for (items, wanted) in [
        (
            json!([
                item("one", "in_progress"),
                item("two", "pending"),
                item("three", "in_progress")
            ]),
            "two items are in_progress: \"one\" and \"three\"",
        ),
        (
            json!([{"id": 7, "text": "one", "status": "pending"}, {"id": "7", "text": "two"}]),
            "two items have the id \"7\"",
        ),
        (json!(many), "101 items"),
        (json!([item(&"x".repeat(1 << 20), "pending")]), "1048576 bytes"),
        (json!([item(&"x".repeat(301), "pending")]), "items[0].text has 301 characters"),
        (
            json!([item("ok", "pending"), item("a\u{1b}[2Jb", "pending")]),
            "items[1].text has the control character U+001B",
        ),
        (json!([item(" \n ", "pending")]), "items[0].text is empty"),
        (json!([item("one", "doing")]), "doing"),
        (json!("no list"), "items"),
    ] {
        let input = json!({"items": items}).to_string();
        let flags = ["tool", "todo", "--session", &session, "--input", "-"];
        let ran = world.run_with(&flags, &Input::Pipe(&input));
        assert_eq!(ran.code, Some(1), "{wanted}: {ran:?}");
        assert!(ran.both_outputs().contains(wanted), "{wanted}: {ran:?}");
        assert!(ran.both_outputs().len() < 2_000, "{wanted}");
    }
    let ran = world.tool("todo", &json!({}), &["--session", &session]);
    assert!(ran.out.contains("1 of 4 done"), "{ran:?}");
    // An end of a line inside of words is a space.
    let ran = world.tool("todo", &json!({"items": [item("one\n two", "pending")]}), &[]);
    assert!(ran.out.contains("0 of 1 done"), "{ran:?}");
}

#[test]
fn the_shape_of_claude_code_is_taken() {
    let world = World::new();
    let todos = json!([
        {"content": "Read it", "status": "completed", "activeForm": "Reading it"},
        {"content": "Mend it", "status": "in_progress", "activeForm": "Mending it"},
    ]);
    let ran = world.tool("TodoWrite", &json!({"todos": todos}), &["--json"]);
    let outcome = ran.json();
    assert_eq!((ran.code, &outcome["data"]["done"]), (Some(0), &json!(1)), "{ran:?}");
    assert!(!ran.out.contains("ignored"), "{ran:?}");
    // A list as text, too, as some servers send it.
    let ran = world.tool("TodoWrite", &json!({"todos": todos.to_string()}), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = world.tool("todo", &list(0), &["--deny", "TodoWrite"]);
    assert!(ran.code == Some(2) && ran.err.contains("a deny rule takes it away"), "{ran:?}");
}
