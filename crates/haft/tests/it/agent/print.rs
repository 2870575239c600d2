//! `haft -p`: what it writes, what it takes from its standard input, what it may do.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Input, Ran, World};

fn hello(world: &World) -> String {
    world.script(&[json!({"text": "Hello, I am done."})])
}

/// What was said to the model.
fn said(ran: &Ran) -> String {
    let lines = ran.lines();
    lines.iter().find(|line| line["type"] == "user").unwrap()["parts"].to_string()
}

#[test]
fn text_is_the_last_answer_alone() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let model = world.script(&[
        json!({"text": "I look.", "calls": [{"name": "read", "input": {"path": "a.txt"}}]}),
        json!({"text": "It says alpha."}),
    ]);
    let ran = world.run(&["-p", "what is in a.txt?", "--model", &model]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "It says alpha.\n", ""));
}

#[test]
fn json_is_one_object() {
    let world = World::new();
    let usage = json!({"input": 10, "output": 3});
    let model = world.script(&[json!({"text": "Hello", "usage": usage})]);
    let ran = world.run(&["-p", "hi", "--model", &model, "--output", "json"]);
    let result: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(ran.out.lines().count(), 1);
    assert_eq!(result["text"], "Hello");
    assert_eq!((&result["status"], &result["error"]), (&json!("done"), &Value::Null));
    assert_eq!((&result["usage"]["input"], &result["usage"]["output"]), (&json!(10), &json!(3)));
    assert_eq!(result["session"].as_str().unwrap(), world.only_session());
}

#[test]
fn a_prompt_comes_from_standard_input() {
    let world = World::new();
    let model = hello(&world);
    let file = world.file("prompt.txt", "from a file");
    let late = Input::Late("from a late pipe", Duration::from_millis(300));
    for (arguments, input, wanted) in [
        (&["-p"][..], Input::Pipe("from a pipe"), "from a pipe"),
        (&["-p", "-"], Input::Pipe("asked for"), "asked for"),
        (&["-p"], Input::File(&file), "from a file"),
        (&["-p"], late, "from a late pipe"),
        (&["-p", "with a prompt"], Input::Pipe("and a pipe"), "with a prompt"),
        (&["-p", "with a prompt"], Input::Pipe("and a pipe"), "and a pipe"),
    ] {
        let mut all = arguments.to_vec();
        all.extend(["--model", &model, "--output", "stream-json"]);
        let ran = world.run_with(&all, &input);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(said(&ran).contains(wanted), "{ran:?}");
    }
}

#[test]
fn a_silent_pipe_is_left_alone() {
    let world = World::new();
    let ran = world.run_with(&["-p", "hi", "--model", &hello(&world)], &Input::Silent);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Hello, I am done.\n"));
    assert!(ran.err.contains("open pipe"), "{ran:?}");
    assert!(ran.took >= Duration::from_millis(900) && ran.took < Duration::from_secs(10));
}

#[test]
fn nothing_to_do_is_a_mistake() {
    let world = World::new();
    let model = hello(&world);
    let empty = world.file("empty.txt", "");
    for (arguments, input) in [
        (&["-p", "--model", &model][..], Input::Nothing),
        (&["-p", "--model", &model], Input::Pipe("")),
        (&["-p", "--model", &model], Input::Pipe(" \n")),
        (&["-p", "-", "--model", &model], Input::Nothing),
        (&["-p", "--model", &model], Input::File(&empty)),
        (&["-p", "--model", &model], Input::Silent),
    ] {
        let ran = world.run_with(arguments, &input);
        assert_eq!(ran.code, Some(2), "{arguments:?} {ran:?}");
        assert!(ran.err.contains("the prompt is empty"), "{ran:?}");
    }
    assert_eq!(world.run(&["session", "list"]).out, "");
}

#[test]
fn input_that_is_no_text_is_refused() {
    let world = World::new();
    let file = world.file("binary", b"ab\xff\xfe");
    let ran = world.run_with(&["-p", "--model", &hello(&world)], &Input::File(&file));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("no UTF-8 text: byte 2"), "{ran:?}");
}

fn two_changes(world: &World) -> String {
    world.script(&[
        json!({"calls": [
            {"name": "edit", "input": {"path": "a.txt", "edits": [
                {"old_text": "alpha", "new_text": "beta"}]}},
            {"name": "bash", "input": {"command": "touch made"}},
        ]}),
        json!({"text": "End."}),
    ])
}

#[test]
fn what_would_ask_is_denied_and_told() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let model = two_changes(&world);
    let ran = world.run(&["-p", "go", "--model", &model, "--output", "json"]);
    let result: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &result["text"]), (Some(0), &json!("End.")));
    assert_eq!(result["denials"].as_array().unwrap().len(), 2, "{result}");
    assert_eq!(world.read("a.txt"), "alpha\n");
    assert!(!world.work().join("made").exists());
    assert_eq!(ran.err.matches("haft: not allowed: ").count(), 2, "{ran:?}");
    assert!(ran.err.contains("a.txt") && ran.err.contains("touch made"), "{ran:?}");
}

#[test]
fn modes_and_rules_decide() {
    for (flags, edited, made) in [
        (&["--mode", "accept-edits"][..], true, true),
        (&["--mode", "bypass"], true, true),
        (&["--mode", "plan"], false, false),
        (&["--mode", "dont-ask"], false, false),
        (&["--allow", "Bash(touch:*)"], false, true),
        (&["--allow", "Edit(/a.txt)"], true, false),
        (&["--mode", "bypass", "--deny", "Edit(/a.txt)"], false, true),
        (&["--mode", "accept-edits", "--allow", "Bash", "--deny", "Bash(touch:*)"], true, false),
        (&["--mode", "bypass", "--tools", "edit,read"], true, false),
    ] {
        let world = World::new();
        world.file("a.txt", "alpha\n");
        let model = two_changes(&world);
        let mut arguments = vec!["-p", "go", "--model", &model];
        arguments.extend(flags);
        let ran = world.run(&arguments);
        assert_eq!(ran.code, Some(0), "{flags:?} {ran:?}");
        assert_eq!(world.read("a.txt") == "beta\n", edited, "{flags:?} {ran:?}");
        assert_eq!(world.work().join("made").exists(), made, "{flags:?} {ran:?}");
    }
}

#[test]
fn a_bad_script_is_named_with_its_line() {
    let world = World::new();
    let file = world.file("s.jsonl", "{\"text\": \"one\"}\n{\"txt\": 1}\n");
    let model = format!("script:{}", file.display());
    let ran = world.run(&["-p", "go", "--model", &model]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("line 2") && ran.err.contains("txt"), "{ran:?}");
    let ran = world.run(&["-p", "go", "--model", "script:/nowhere/s.jsonl"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("/nowhere/s.jsonl"), "{ran:?}");
}

#[test]
fn the_result_of_a_run_counts_what_got_an_answer() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let model = world.script(&[
        json!({"calls": [
            {"name": "read", "input": {"path": "a.txt"}},
            {"name": "nosuch", "input": {}},
            {"name": "write", "input": {"path": "b", "content": ""}},
        ]}),
        json!({"calls": [{"name": "read", "raw": "{\"path\": "}]}),
        json!({"text": "Done.", "stop": "length"}),
    ]);
    let result = world.run(&["-p", "go", "--model", &model, "--output", "json"]).json();
    let counts = ["calls", "failed_calls"].map(|name| result[name].as_u64().unwrap());
    assert_eq!(counts, [4, 3], "{result}");
    assert_eq!(
        (&result["stop"], &result["status"]),
        (&json!("length"), &json!("done")),
        "{result}"
    );
    let model = world.script(&[json!({"error": "no"})]);
    let result = world.run(&["-p", "go", "--model", &model, "--output", "json"]).json();
    assert!(result["stop"].is_null() && result["status"] == "failed", "{result}");
}
