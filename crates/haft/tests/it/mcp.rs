//! `haft mcp` with clients that others wrote: the official Python SDK and the MCP inspector.

use std::{fs, path::Path, process::Command, time::Duration};

use haft_testkit::machine;
use serde_json::{Value, json};

use crate::world::{Input, Ran, World, collect, ended, finish, runs, unique_seconds, until};

/// A red picture of two times two pixels.
pub const PNG: &[u8] = include_bytes!("red.png");

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
fn the_sdk_checks_structured_content_of_calls() {
    passes("calls");
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
    assert!(until(Duration::from_secs(30), || runs(&sleeps)), "nothing was started");
    child.kill().unwrap();
    ended(&mut child, Duration::from_secs(5));
    // Calls that still run get some seconds to end, because a client may only be done sending.
    let server = format!("mcp\0--root\0{}", world.work().display());
    let left = || runs(&sleeps) || runs(&server);
    assert!(until(Duration::from_secs(20), || !left()), "something is left");
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
    let wanted = ["read", "bash", "edit", "write", "grep", "find", "ls", "job", "notebook_edit"];
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
    assert_eq!(read["structuredContent"]["total_lines"], json!(2), "{read}");
    assert!(read["content"][0]["text"].as_str().unwrap().contains("beta"), "{read}");
    let grep = call("grep", "pattern=bet");
    assert!(grep["content"][0]["text"].as_str().unwrap().contains("a.txt"), "{grep}");
    let missing = call("read", "path=b.txt");
    assert_eq!(missing["isError"], json!(true), "{missing}");
    let denied = call("bash", "command=touch made");
    assert_eq!(denied["isError"], json!(true), "{denied}");
    assert!(!fs::exists(world.work().join("made")).unwrap());
}
