//! Calls of one connection that a client sends without waiting for answers: those that conflict run
//! in the order in which they came, also behind one that was cancelled; the others run beside.

use std::fs;

use serde_json::{Value, json};

use crate::{
    mcp_client::{Client, at_once, text},
    world::{PATIENCE, World, runs, unique_seconds, until},
};

fn bash(command: &str) -> Value {
    json!({ "command": command })
}

#[test]
fn each_of_many_commands_is_told_what_it_changed_and_nothing_else() {
    let world = World::new();
    let mut client = Client::greeted(&world, &["--mode", "bypass", "--structured"]);
    for n in 0..8 {
        let command = format!("echo $(ls | wc -l); sleep 0.1; echo x > f{n}; sleep 0.05");
        client.begin(&json!(n), "bash", &bash(&command));
    }
    for n in 0..8 {
        let answer = client.next();
        assert_eq!(answer["id"], json!(n), "{answer}");
        let data = &answer["result"]["structuredContent"];
        assert_eq!(data["stdout"], json!(format!("{n}\n")), "{answer}");
        assert_eq!(data["changes"], json!({"created": [format!("f{n}")]}), "{answer}");
    }
    client.ends_well();
    let undone = world.run(&["undo"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    let left: Vec<bool> = (0..8).map(|n| world.work().join(format!("f{n}")).exists()).collect();
    assert_eq!(left, [[true; 7].to_vec(), vec![false]].concat(), "{undone:?}");
}

#[test]
fn what_does_not_conflict_runs_beside() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let mut client = Client::greeted(&world, &["--mode", "bypass", "--structured"]);
    let command = "until [ -e go ]; do sleep 0.02; done";
    client.call("bash", &json!({"command": command, "run_in_background": true}));
    client.begin(&json!("wait"), "job", &json!({"action": "wait", "timeout_ms": 60_000}));
    client.begin(&json!("read"), "read", &json!({"path": "a.txt"}));
    assert_eq!(client.next()["id"], json!("read"));
    client.begin(&json!("write"), "write", &json!({"path": "go", "content": "x"}));
    let answers = [client.next(), client.next()];
    let waited = answers.iter().find(|answer| answer["id"] == json!("wait")).unwrap();
    assert_eq!(waited["result"]["structuredContent"]["waited"], json!("end"), "{waited}");
    client.ends_well();
}

#[test]
fn a_wait_holds_up_nothing_of_its_connection() {
    let world = World::new();
    let mut client = Client::greeted(&world, &["--mode", "bypass", "--structured"]);
    let command = "until [ -e go ]; do sleep 0.02; done";
    client.call("bash", &json!({"command": command, "run_in_background": true}));
    for id in ["one", "two"] {
        client.begin(&json!(id), "job", &json!({"action": "wait", "timeout_ms": 600_000}));
    }
    client.begin(&json!("bash"), "bash", &bash("echo x > made; cat made"));
    let ran = client.next();
    assert_eq!(ran["id"], json!("bash"), "{ran}");
    assert_eq!(ran["result"]["structuredContent"]["stdout"], json!("x\n"), "{ran}");
    client.begin(&json!("stop"), "job", &json!({"action": "stop"}));
    let mut ids: Vec<Value> = (0..3).map(|_| client.next()["id"].clone()).collect();
    ids.sort_by_key(ToString::to_string);
    assert_eq!(ids, ["one", "stop", "two"]);
    client.ends_well();
}

#[test]
fn what_a_cancelled_command_left_is_gone_when_the_next_one_starts() {
    let world = World::new();
    let seconds = unique_seconds();
    let mut client = Client::greeted(&world, &["--mode", "bypass", "--structured"]);
    let stubborn = format!("trap '' TERM; echo $$ > pid; sleep {seconds}; sleep {seconds}");
    client.begin(&json!(1), "bash", &bash(&stubborn));
    assert!(until(PATIENCE, || runs(&seconds)), "nothing was started");
    client.cancel(&json!(1));
    let look = "test -d /proc/$(cat pid) && echo alive || echo gone; touch after";
    client.begin(&json!(2), "bash", &bash(look));
    let answer = client.next();
    let data = &answer["result"]["structuredContent"];
    assert_eq!((&answer["id"], &data["stdout"]), (&json!(2), &json!("gone\n")), "{answer}");
    assert_eq!(data["changes"], json!({"created": ["after"]}), "{answer}");
    assert!(!runs(&seconds), "something is left");
    client.ends_well();
}

#[test]
fn a_call_that_is_cancelled_while_it_waits_runs_never_and_holds_up_nobody() {
    let world = World::new();
    let mut client = Client::greeted(&world, &["--mode", "bypass"]);
    client.begin(&json!(1), "bash", &bash("touch first; until [ -e go ]; do sleep 0.02; done"));
    client.begin(&json!(2), "bash", &bash("touch second"));
    client.begin(&json!(3), "bash", &bash("touch third"));
    assert!(until(PATIENCE, || world.work().join("first").exists()));
    client.cancel(&json!(2));
    // It is known to have heard of that when it answers this.
    client.ask("ping", &json!({}));
    assert!(!world.work().join("third").exists(), "it did not wait");
    fs::write(world.work().join("go"), "").unwrap();
    let ids = [client.next()["id"].clone(), client.next()["id"].clone()];
    assert_eq!(ids, [json!(1), json!(3)]);
    let made = ["second", "third"].map(|name| world.work().join(name).exists());
    assert_eq!(made, [false, true]);
    client.ends_well();
}

#[test]
fn a_script_that_says_all_at_once_gets_the_answers_of_commands_that_wait_for_each_other() {
    let world = World::new();
    let calls: Vec<_> =
        (0..4).map(|n| ("bash", bash(&format!("sleep 0.6; echo {n} >> log")))).collect();
    let (ran, answers) = at_once(&world, &["--mode", "bypass"], &calls);
    for answer in answers {
        assert_ne!(answer["result"]["isError"], json!(true), "{} {ran:?}", text(&answer));
    }
    assert_eq!(fs::read_to_string(world.work().join("log")).unwrap(), "0\n1\n2\n3\n");
}

#[test]
fn a_client_that_wants_progress_hears_that_a_call_waits() {
    let world = World::new();
    let mut client = Client::greeted(&world, &["--mode", "bypass"]);
    client.begin(&json!(1), "bash", &bash("until [ -e go ]; do sleep 0.02; done"));
    let params = json!({"name": "bash", "arguments": {"command": "echo well; touch made"},
        "_meta": {"progressToken": "t"}});
    client.request(&json!(2), "tools/call", &params);
    let heard = client.hear();
    assert_eq!(heard["params"]["progressToken"], json!("t"), "{heard}");
    let message = heard["params"]["message"].as_str().unwrap();
    assert!(message.contains("waits until calls before it have ended"), "{heard}");
    fs::write(world.work().join("go"), "").unwrap();
    assert_eq!([client.next()["id"].clone(), client.next()["id"].clone()], [json!(1), json!(2)]);
    let counts: Vec<f64> = std::iter::once(&heard)
        .chain(&client.notices)
        .filter_map(|told| told["params"]["progress"].as_f64())
        .collect();
    assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
    client.ends_well();
}
