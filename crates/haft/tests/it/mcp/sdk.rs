//! `haft mcp` with clients that others wrote: the official SDKs for Python and
//! TypeScript, and the MCP inspector.

use std::{fs, path::Path, process::Command, time::Duration};

use haft_testkit::machine;
use serde_json::{Value, json};

use crate::{
    mcp_client::Client,
    world::{
        Input, PATIENCE, Ran, World, collect, ended, finish, runs, text, unique_seconds, until,
    },
};

/// A red picture of two times two pixels.
pub const PNG: &[u8] = include_bytes!("../red.png");

/// The Python SDK in one of the scenarios of its script.
fn sdk(world: &World, scenario: &[&str]) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/sdk_client.py");
    let mut command = world.program(machine::python());
    command.arg(script).arg(env!("CARGO_BIN_EXE_haft")).arg(world.work()).args(scenario);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn passes(scenario: &str) {
    let world = World::new();
    world.file("pixel.png", PNG);
    let ran = finish(sdk(&world, &[scenario]), &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{scenario}: {}\n{}", ran.err, ran.out);
    assert!(!runs(&format!("mcp\0--root\0{}", world.work().display())), "a server is left");
}

#[test]
fn the_sdk_lists_tools_with_valid_schemas() {
    passes("tools");
}

#[test]
fn the_sdk_lists_tools_with_output_schemas_where_they_are_wanted() {
    passes("tools_structured");
}

#[test]
fn the_sdk_calls_every_tool() {
    passes("calls");
}

#[test]
fn the_sdk_checks_structured_content_of_every_tool() {
    passes("calls_structured");
}

#[test]
fn structured_content_has_the_budget_of_the_text() {
    passes("long_structured");
}

#[test]
fn the_sdk_is_given_images() {
    passes("images");
}

#[test]
fn the_sdk_hears_progress_while_a_command_runs() {
    passes("progress");
}

#[test]
fn the_sdk_cancels_a_command_and_nothing_is_left() {
    passes("cancel");
}

#[test]
fn the_sdk_has_commands_run_in_the_order_of_its_calls() {
    passes("order");
}

#[test]
fn the_sdk_is_told_errors_and_denials() {
    passes("errors");
}

#[test]
fn the_sdk_answers_questions_one_by_one() {
    passes("elicit");
}

#[test]
fn the_sdk_answers_questions_also_by_its_newest_protocol() {
    passes("elicit_newest");
}

#[test]
fn the_sdk_calls_by_its_newest_protocol() {
    passes("newest");
}

#[test]
fn the_sdk_reads_two_hundred_files_at_once() {
    passes("many");
}

#[test]
fn a_killed_client_leaves_nothing_behind() {
    let world = World::new();
    let seconds = unique_seconds();
    let command = format!("sleep {seconds}; echo never");
    let mut child = sdk(&world, &["hang", &command]).spawn().unwrap();
    drop((collect(child.stdout.take()), collect(child.stderr.take())));
    let sleeps = format!("sleep\0{seconds}");
    assert!(until(PATIENCE, || runs(&sleeps)), "nothing was started");
    child.kill().unwrap();
    ended(&mut child, Duration::from_secs(5));
    // Calls that still run get some seconds to end, because a client may only be done sending.
    let server = format!("mcp\0--root\0{}", world.work().display());
    let left = || runs(&sleeps) || runs(&server);
    assert!(until(PATIENCE, || !left()), "something is left");
}

/// The inspector's command line as a client of `haft mcp`.
fn inspector(world: &World, arguments: &[&str]) -> Ran {
    let script = machine::inspector();
    let mut command = world.program("node");
    // It looks for its own package.json from where it is started.
    command.current_dir(script.parent().unwrap());
    command.arg(&script).args(["--cli", env!("CARGO_BIN_EXE_haft"), "mcp", "--root"]);
    command.arg(world.work()).args(arguments);
    finish(command, &Input::Nothing)
}

#[test]
fn the_inspector_lists_the_tools() {
    let world = World::new();
    let ran = inspector(&world, &["--method", "tools/list"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let listed: Value = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    let wanted = [
        "read",
        "bash",
        "edit",
        "write",
        "grep",
        "find",
        "ls",
        "job",
        "notebook_edit",
        "todo",
        "think",
        "sleep",
        "send_file",
        "config",
        "web_fetch",
    ];
    assert_eq!(names, wanted);
}

#[test]
fn the_inspector_calls_tools() {
    let world = World::new();
    world.file("a.txt", "alpha\nbeta\n");
    let call = |name: &str, argument: &str| {
        let flags = ["--method", "tools/call", "--tool-name", name, "--tool-arg", argument];
        let ran = inspector(&world, &flags);
        serde_json::from_str::<Value>(&ran.out).unwrap_or_else(|e| panic!("{e}: {ran:?}"))
    };
    let read = call("read", "path=a.txt");
    assert!(read["structuredContent"].is_null(), "{read}");
    assert!(read["content"][0]["text"].as_str().unwrap().contains("beta"), "{read}");
    let grep = call("grep", "pattern=bet");
    assert!(grep["content"][0]["text"].as_str().unwrap().contains("a.txt"), "{grep}");
    let missing = call("read", "path=b.txt");
    assert_eq!(missing["isError"], json!(true), "{missing}");
    let denied = call("bash", "command=touch made");
    assert_eq!(denied["isError"], json!(true), "{denied}");
    assert!(!fs::exists(world.work().join("made")).unwrap());
}

/// The SDK for TypeScript lists and calls every tool; what it was given of both.
fn typescript(world: &World, flags: &[&str]) -> (Vec<Value>, Vec<(String, Value)>) {
    world.file("a.txt", "one\ntwo\n");
    world.file("pixel.png", PNG);
    let cell = json!({"cell_type": "markdown", "id": "one", "metadata": {}, "source": ["alpha"]});
    let notebook =
        json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string();
    world.file("n.ipynb", notebook);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node/sdk_client.cjs");
    let mut command = world.program("node");
    command.arg(script).arg(machine::npm()).arg(env!("CARGO_BIN_EXE_haft"));
    command.arg(world.work()).args(flags);
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut told = ran.json();
    let tools: Vec<Value> = serde_json::from_value(told["tools"].take()).unwrap();
    let answers: Vec<(String, Value)> = serde_json::from_value(told["answers"].take()).unwrap();
    for tool in &tools {
        assert!(answers.iter().any(|(name, _)| *name == tool["name"]), "not called: {tool}");
    }
    for (at, (name, answer)) in answers.iter().enumerate() {
        // The last two are told to fail.
        assert_eq!(answer["isError"], json!(at + 2 >= answers.len()), "{name}: {answer}");
        assert!(!text(answer).is_empty(), "{name}: {answer}");
    }
    (tools, answers)
}

#[test]
fn the_typescript_sdk_calls_every_tool_and_gets_content_alone() {
    let (tools, answers) = typescript(&World::new(), &[]);
    for tool in &tools {
        assert!(tool["outputSchema"].is_null(), "{tool}");
    }
    for (name, answer) in &answers {
        assert!(answer["structuredContent"].is_null(), "{name}: {answer}");
    }
}

#[test]
fn the_typescript_sdk_checks_structured_content_of_every_tool() {
    let (tools, answers) = typescript(&World::new(), &["--structured"]);
    for tool in &tools {
        let shows_images = tool["name"] == "read" || tool["name"] == "web_fetch";
        assert_eq!(tool["outputSchema"].is_null(), shows_images, "{tool}");
    }
    for (name, answer) in &answers {
        let shows =
            answer["content"].as_array().unwrap().iter().any(|part| part["type"] == "image");
        let fails = answer["isError"] == json!(true);
        let data = &answer["structuredContent"];
        assert_eq!(data.is_null(), shows || fails && name == "read", "{name}: {answer}");
        if !data.is_null() {
            assert_eq!(data["text_content"], json!(text(answer)), "{name}: {answer}");
        }
    }
}

#[test]
fn the_list_of_tools_is_small_and_tells_what_changes_things() {
    let world = World::new();
    let mut client = Client::greeted(&world, &[]);
    let listed = client.ask("tools/list", &json!({}));
    let bytes = listed["result"].to_string().len();
    assert!(bytes < 15_500, "{bytes} bytes");
    for tool in listed["result"]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        // A list that haft alone has changes nothing of the person's.
        let reads =
            ["read", "grep", "find", "ls", "todo", "think", "sleep", "web_fetch"].contains(&name);
        let hints = &tool["annotations"];
        assert_eq!(hints["destructiveHint"], json!(!reads), "{tool}");
        assert_eq!(hints["readOnlyHint"], json!(reads), "{tool}");
    }
    client.ends_well();
}
