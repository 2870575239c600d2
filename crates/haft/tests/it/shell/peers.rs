//! Two processes of haft in one workspace: what one changes while a command of the other one runs.

use serde_json::{Value, json};

use crate::{
    mcp_client::Client,
    world::{PATIENCE, World, until},
};

/// One tool call in a process of its own; gives its outcome.
fn call(world: &World, tool: &str, input: &Value) -> Value {
    let input = input.to_string();
    let ran = world.run(&["tool", tool, "--json", "--mode", "bypass", "--input", &input]);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn changes(data: &Value) -> (Vec<String>, String) {
    let mut changes = data["changes"].clone();
    let others = changes["while_others"].take();
    let names = |list: &Value| {
        let list = list.as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let of = ["created", "changed", "deleted"].map(|what| names(&changes[what])).concat();
    (of, names(&others).join(" and "))
}

#[test]
fn what_another_haft_changes_is_none_of_what_a_command_did_or_named_with_it() {
    let world = World::new();
    world.file("edited", "one\n");
    let mut client = Client::greeted(&world, &["--mode", "bypass", "--structured"]);
    let waits = "echo x > mine; until [ -e go ]; do sleep 0.02; done";
    client.begin(&json!(1), "bash", &json!({"command": waits}));
    assert!(until(PATIENCE, || world.work().join("mine").exists()));

    let write = json!({"path": "theirs", "content": "x\n"});
    assert_eq!(call(&world, "write", &write)["status"], "done");
    let edit = json!({"path": "edited", "edits": [{"old_text": "one", "new_text": "two"}]});
    assert_eq!(call(&world, "edit", &edit)["status"], "done");
    let ran = call(&world, "bash", &json!({"command": "echo x > made"}));
    let (made, others) = changes(&ran["data"]);
    assert_eq!(made, ["made"], "{ran}");
    assert!(others.contains("another haft (session ") && others.contains("until"), "{ran}");
    let told = ran["content"].to_string();
    assert!(told.contains("which may have done some of it: created: made"), "{ran}");

    // One in another workspace did nothing here.
    let elsewhere = World::new();
    call(&elsewhere, "bash", &json!({"command": "echo x > far"}));
    world.file("go", "");
    let answer = client.next();
    let (made, others) = changes(&answer["result"]["structuredContent"]);
    assert_eq!(made, ["go", "made", "mine"], "{answer}");
    assert!(others.starts_with("another haft (session ") && others.contains("made"), "{answer}");
    assert!(!others.contains("far") && !others.contains("Writing"), "{answer}");
    let told = answer["result"]["content"].to_string();
    assert!(told.contains("ran, which may have done some of it: created: go"), "{answer}");

    // With nobody else there, nobody is named.
    let alone = client.call("bash", &json!({"command": "echo x > alone"}));
    let data = &alone["result"]["structuredContent"];
    assert_eq!(changes(data), (vec!["alone".to_owned()], String::new()), "{alone}");
    client.ends_well();
}

#[test]
fn undo_of_a_command_says_that_another_haft_may_have_done_some_of_it() {
    let world = World::new();
    let mut client = Client::greeted(&world, &["--mode", "bypass"]);
    let waits = "echo x > mine; until [ -e go ]; do sleep 0.02; done";
    client.begin(&json!(1), "bash", &json!({"command": waits}));
    assert!(until(PATIENCE, || world.work().join("mine").exists()));
    let kept = || std::fs::read_dir(world.state().join("sessions")).unwrap();
    let first = kept().next().unwrap().unwrap().file_name().into_string().unwrap();
    call(&world, "write", &json!({"path": "theirs", "content": "x\n"}));
    call(&world, "bash", &json!({"command": "echo x > made"}));
    world.file("go", "");
    client.next();
    client.ends_well();
    let undone = world.run(&["undo", "--session", &first]);
    let there = ["mine", "theirs"].map(|name| world.work().join(name).exists());
    assert_eq!((undone.code, there), (Some(0), [false, true]), "{undone:?}");
    let told = format!("{}{}", undone.out, undone.err);
    assert!(told.contains("another haft (session "), "{undone:?}");
    assert!(told.contains("whose doing some of it may be"), "{undone:?}");
}
