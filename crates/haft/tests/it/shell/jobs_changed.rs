//! What changes while a job runs: who tells it, and what undo says of it.

use std::fs;

use haft_types::Body;
use serde_json::{Value, json};

use crate::{
    mcp_client::{Client, text},
    world::{Input, PATIENCE, World, until},
};

fn in_background(command: &str) -> Value {
    json!({"command": command, "run_in_background": true})
}

/// The whole text of an answer.
fn all(answer: &Value) -> String {
    let parts = answer["result"]["content"].as_array().unwrap();
    parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn client(world: &World) -> Client {
    Client::greeted(world, &["--mode", "bypass", "--structured"])
}

#[test]
fn what_changes_beside_a_command_is_told_as_perhaps_the_jobs() {
    let world = World::new();
    let mut client = client(&world);
    let wait = |name: &str| format!("until [ -e {name} ]; do sleep 0.02; done");
    let job = format!("{}; echo x > made; {}; echo y > last", wait("go"), wait("stop"));
    client.call("bash", &in_background(&job));
    let command = format!("touch go; {}; touch own", wait("made"));
    let ran = client.call("bash", &json!({ "command": command }));
    let changes = &ran["result"]["structuredContent"]["changes"];
    assert_eq!(changes, &json!({"created": ["go", "made", "own"], "while_jobs": ["j1"]}), "{ran}");
    let told = all(&ran);
    assert!(told.contains("[while j1 (until [ -e go ]"), "{told}");
    assert!(
        told.contains("ran, which may have done some of it: created: go, made, own]"),
        "{told}"
    );
    // What changes while no command runs is told with the end of the job.
    fs::write(world.work().join("stop"), "").unwrap();
    let waited = client.call("job", &json!({"action": "wait", "timeout_ms": 60_000}));
    let told = text(&waited);
    assert!(told.contains("[while it ran, this changed: created: last, stop]"), "{told}");
    client.ends_well();
    let stands = |name: &str| world.work().join(name).exists();
    let undone = world.run(&["undo"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    let doubt = "ran, whose doing some of it may be";
    assert!(undone.err.contains("what c2 changed") && undone.err.contains(doubt), "{undone:?}");
    // What only a look says, and the person may have done, is taken back where it is named.
    let left = "ran is left as it is, for others may have done it: undo j1 takes it back";
    assert!(undone.err.contains("what changed while j1 (until") && undone.err.contains(left));
    assert_eq!(
        ["go", "made", "own", "last", "stop"].map(stands),
        [false, false, false, true, true]
    );
    let none = world.run(&["undo"]);
    assert!(none.code == Some(1) && none.err.contains("undo j1 takes it back"), "{none:?}");
    let undone = world.run(&["undo", "j1"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(undone.out.contains("Took back j1 (job: until [ -e go ]"), "{undone:?}");
    assert!(undone.err.contains("others may have done some of it"), "{undone:?}");
    assert!(!stands("last") && !stands("stop"), "{undone:?}");
    // Made again it is as it was.
    assert_eq!(world.run(&["redo", "2"]).code, Some(0));
    assert!(stands("made") && stands("own") && stands("last"));
}

#[test]
fn what_a_job_changed_alone_is_told_once_with_the_next_command() {
    let world = World::new();
    world.file("old.txt", "old\n");
    let mut client = client(&world);
    let job = "until [ -e go ]; do sleep 0.02; done; echo new > old.txt; echo x > early; touch .done; \
               sleep 300";
    client.call("bash", &in_background(job));
    fs::write(world.work().join("go"), "").unwrap();
    assert!(until(PATIENCE, || world.work().join(".done").exists()));
    client.call("write", &json!({"path": "written.txt", "content": "w\n"}));
    let ran = client.call("bash", &json!({"command": "touch own"}));
    let told = all(&ran);
    let alone = "ran, before c3: changed: old.txt; created: .done, early, go]";
    assert!(told.contains("[while j1 (until [ -e go ]") && told.contains(alone), "{told}");
    assert_eq!(ran["result"]["structuredContent"]["changes"]["created"], json!(["own"]), "{ran}");
    let told = all(&client.call("bash", &json!({"command": "touch more"})));
    assert!(!told.contains("early") && told.contains("created: more"), "{told}");
    let stopped = client.call("job", &json!({"action": "stop"}));
    assert!(!text(&stopped).contains("this changed"), "{stopped}");
    client.ends_well();
    let undone = world.run(&["undo", "j1"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert_eq!(fs::read_to_string(world.work().join("old.txt")).unwrap(), "old\n", "{undone:?}");
    let stands = |name: &str| world.work().join(name).exists();
    assert_eq!(["early", "own", "written.txt"].map(stands), [false, true, true], "{undone:?}");
}

#[test]
fn the_report_of_a_job_says_what_changed_while_it_ran() {
    let world = World::new();
    let mut client = client(&world);
    client.call("bash", &in_background("sleep 0.2; echo x > made.txt"));
    assert!(until(PATIENCE, || world.work().join("made.txt").exists()));
    let mut told = String::new();
    let came = until(PATIENCE, || {
        told = all(&client.call("job", &json!({"action": "list"})));
        told.contains("has ended")
    });
    assert!(came && told.contains("While it ran, this changed: created: made.txt."), "{told}");
    // One that changes nothing says nothing.
    client.call("bash", &in_background("true"));
    let waited = client.call("job", &json!({"action": "wait", "job": "j2"}));
    assert!(!text(&waited).contains("changed"), "{waited}");
    client.ends_well();
}

#[test]
fn an_undo_in_a_talk_is_no_change_of_a_job_that_runs() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let begin = json!({"name": "bash", "input": in_background("sleep 300")});
    let edits = json!([{"old_text": "alpha", "new_text": "gamma"}]);
    let edit = json!({"name": "edit", "input": {"path": "a.txt", "edits": edits}});
    let touch = json!({"name": "bash", "input": {"command": "touch own"}});
    let model = world.script(&[
        json!({"calls": [begin, edit]}),
        json!({"text": "First."}),
        json!({"calls": [touch]}),
        json!({"text": "Second."}),
    ]);
    let flags = ["--line", "--mode", "bypass", "--model", &model];
    let ran = world.run_with(&flags, &Input::Pipe("go\n/undo\nand now?\n/quit\n"));
    assert_eq!(world.read("a.txt"), "alpha\n", "{ran:?}");
    let events = world.events();
    let found = events.iter().filter(|event| matches!(event.body, Body::Found { .. }));
    assert_eq!(found.count(), 0, "{ran:?}");
    let told = events.iter().filter_map(|event| match &event.body {
        Body::CallEnded { call, outcome, .. } if *call.0 == *"c3" => Some(outcome.joined_text()),
        _ => None,
    });
    let told: String = told.collect();
    assert!(told.contains("created: own") && !told.contains("a.txt"), "{told}");
}
