//! The tasks: one list a session, in which nothing is lost and nothing waits for itself.

use std::{collections::BTreeSet, process::Child};

use haft_types::Body;
use serde_json::{Value, json};

use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, PATIENCE, Ran, World, ended, finish},
};

const TASKS: &str = "tools.todo = 'tasks'\n";

fn run(world: &World, wire: Wire, mock: &Mock, arguments: &[&str]) -> Ran {
    let ran = finish(wire.haft(world, &mock.url(), arguments), &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

fn create(subject: &str, blocked_by: &[u32]) -> (&'static str, Value) {
    ("task_create", json!({"subject": subject, "blocked_by": blocked_by}))
}

/// Calls of one answer are made on one list, whichever run together, and so are those of another
/// process; a summary has them word for word.
#[test]
fn they_survive_a_resume_and_a_compaction_on_each_wire() {
    for wire in WIRES {
        let world = World::new();
        world.settings(TASKS);
        let filler = "some words to fill the window with, ".repeat(1_500);
        let mock = Mock::with(move |number, request| {
            let body = String::from_utf8_lossy(&request.body);
            if body.contains("You sum up the work of a coding agent") {
                return wire.text("Goal: to mend the parser.");
            }
            match number {
                0 => {
                    let calls = [create("Read it", &[]), create("Mend it", &[1])];
                    wire.calls("a", &[&calls[..], &[create("Test it", &[1, 2])]].concat())
                }
                1 => {
                    let begin = json!({"task": "1", "status": "completed"});
                    wire.calls("b", &[("task_update", begin), ("task_list", json!({}))])
                }
                2 => wire.text(&filler),
                3 => {
                    let next = json!({"task": 2, "status": "in_progress", "owner": "me"});
                    wire.calls("c", &[("task_update", next)])
                }
                _ => wire.text("Done."),
            }
        });
        run(&world, wire, &mock, &["-p", "Mend the parser."]);
        run(&world, wire, &mock, &["-p", "Go on.", "-c"]);
        let bodies = mock.bodies();
        assert!(!bodies[0].contains("\"todo\""), "a model has one list: {}", bodies[0]);
        assert!(bodies[1].contains("Created #3 [ ] Test it (blocked by #1, #2)"), "{}", bodies[1]);
        let free = "#1 [x] Read it\\nNothing blocks #2 [ ] Mend it";
        let listed =
            "1 of 3 done\\n#1 [x] Read it\\n#2 [ ] Mend it\\n#3 [ ] Test it (blocked by #2)";
        assert!(bodies[2].contains(free) && bodies[2].contains(listed), "{}", bodies[2]);
        assert!(bodies[4].contains("#2 [>] Mend it (owner me)"), "{}", bodies[4]);
        let command = wire.haft(&world, &mock.url(), &["--line", "-c"]);
        let ran = finish(command, &Input::Pipe("/compact\nand now?\n"));
        let last = mock.bodies().pop().unwrap();
        let attached = "# Your tasks, word for word (task_get has what belongs to one)\\n#1 [x] Read \
                        it\\n#2 [>] Mend it (owner me; blocked by #1)\\n#3 [ ] Test it (blocked by \
                        #1, #2)\\n";
        assert_eq!(last.matches(attached).count(), 1, "{wire:?}: {ran:?}: {last}");
        assert!(!last.contains("words to fill the window"), "{last}");
    }
}

#[test]
fn after_a_rewind_they_are_what_they_were() {
    let world = World::new();
    world.settings(TASKS);
    let call = |(name, input): (&str, Value)| json!({"calls": [{"name": name, "input": input}]});
    let text = json!({"text": "Yes."});
    let model = world.script(&[
        call(create("one", &[])),
        text.clone(),
        call(create("two", &[])),
        text.clone(),
        call(create("three", &[])),
        text.clone(),
        call(("task_list", json!({}))),
        text,
    ]);
    let lines = "a\nb\n/rewind 1 talk\nc\n/rewind back\nd\n";
    let ran = finish(world.haft(&["--line", "--model", &model]), &Input::Pipe(lines));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // The number of a branch that was left is free on this one.
    assert!(ran.out.contains("Created #2 [ ] three"), "{ran:?}");
    let last = ran.out.split("> d\n").nth(1).unwrap_or_default();
    assert!(last.contains("[ ] one\n  [ ] two\n") && !last.contains("three"), "{ran:?}");
}

/// The lock of the log keeps a second process out; whoever waits for it loses nothing.
#[test]
fn processes_lose_nothing_of_each_other() {
    let world = World::new();
    let first = world.tool("task_create", &json!({"subject": "first"}), &["--json"]);
    let session = first.json()["session"].as_str().unwrap().to_owned();
    let begin = |number: usize| -> Child {
        let input = json!({"subject": format!("of process {number}")}).to_string();
        let mut command =
            world.haft(&["tool", "task_create", "--session", &session, "--input", &input]);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let mut made = 1;
    for _ in 0..2 {
        let all: Vec<Child> = (0..4).map(begin).collect();
        for mut child in all {
            let code = ended(&mut child, PATIENCE).code();
            assert!(code == Some(0) || code == Some(1), "{code:?}");
            made += usize::from(code == Some(0));
        }
    }
    assert!(made > 2, "each round at least one has the lock");
    let ran = world.tool("task_list", &json!({}), &["--session", &session, "--json"]).json();
    let tasks = ran["data"]["tasks"].as_array().unwrap().clone();
    let ids: BTreeSet<&str> = tasks.iter().map(|task| task["id"].as_str().unwrap()).collect();
    assert_eq!((tasks.len(), ids.len()), (made, made), "{tasks:?}");
}

#[test]
fn what_is_wrong_is_named_and_changes_nothing() {
    let world = World::new();
    let first = world.tool("task_create", &json!({"subject": "Read"}), &["--json"]);
    let session = first.json()["session"].as_str().unwrap().to_owned();
    let call = |name: &str, input: &Value| {
        let flags = ["tool", name, "--session", &session, "--input", "-"];
        world.run_with(&flags, &Input::Pipe(&input.to_string()))
    };
    for (subject, after) in [("Mend", json!(["1"])), ("Test", json!("[\"#2\"]"))] {
        let ran = call("task_create", &json!({"subject": subject, "blocked_by": after}));
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let before = call("task_list", &json!({})).out;
    let long = "x".repeat(1 << 20);
    for (name, input, wanted) in [
        (
            "task_update",
            json!({"task": "1", "add_blocked_by": ["3"]}),
            "#1 \"Read\" blocks #2 \"Mend\" blocks #3 \"Test\" blocks #1 \"Read\"",
        ),
        (
            "task_update",
            json!({"task": "2", "add_blocks": ["2"]}),
            "#2 \"Mend\" blocks #2 \"Mend\"",
        ),
        ("task_update", json!({"task": "9", "status": "completed"}), "there is no task \"9\""),
        ("task_update", json!({"task": "1", "add_blocks": ["7"]}), "There are #1 to #3"),
        ("task_update", json!({"task": "1"}), "nothing of the task is to be changed"),
        ("task_update", json!({"task": "1", "status": "done"}), "done"),
        (
            "task_update",
            json!({"task": "1", "owner": "a\u{7}b"}),
            "owner has the control character",
        ),
        ("task_get", json!({"task": long}), "there is no task"),
        ("task_create", json!({"subject": long}), "subject has 1048576 characters"),
        ("task_create", json!({"subject": "x", "description": long}), "description has 1048576"),
        ("task_create", json!({"subject": "a\u{1b}[2Jb"}), "U+001B"),
        ("task_create", json!({"subject": "\n"}), "subject is empty"),
        ("task_create", json!({"subject": "x", "blocked_by": ["4"]}), "there is no task \"4\""),
    ] {
        let ran = call(name, &input);
        assert_eq!(ran.code, Some(1), "{wanted}: {ran:?}");
        let said = ran.both_outputs();
        assert!(said.contains(wanted) && said.len() < 2_000, "{wanted}: {said:.3000}");
        assert_eq!(call("task_list", &json!({})).out, before, "{wanted}");
    }
    let ran = call("task_update", &json!({"task": "3", "status": "deleted"}));
    assert!(ran.out.contains("Deleted #3 Test"), "{ran:?}");
    let ran = call("task_get", &json!({"task": "3"}));
    assert!(ran.both_outputs().contains("was deleted: \"Test\""), "{ran:?}");
    let ran = call("task_create", &json!({"subject": "Another"}));
    assert!(ran.out.contains("Created #4"), "no number is given twice: {ran:?}");
}

/// One call of each tool as Claude Code's model writes it.
#[test]
fn the_shapes_of_claude_code_are_taken() {
    let world = World::new();
    let (subject, description) = ("Fix the login", "Mend it in auth.rs, and test it.");
    let created = json!({"subject": subject, "description": description, "activeForm": "Fixing",
        "metadata": {"by": "plan"}});
    let first = world.tool("TaskCreate", &created, &["--json"]);
    let session = first.json()["session"].as_str().unwrap().to_owned();
    assert_eq!((first.code, &first.json()["data"]["task"]["id"]), (Some(0), &json!("1")));
    let updated = json!({"taskId": "2", "status": "in_progress", "activeForm": "Testing",
        "addBlocks": [], "addBlockedBy": ["1"], "owner": "me"});
    let todo = json!({"content": "Read it", "status": "pending", "activeForm": "Reading it"});
    for (name, input, wanted) in [
        ("TaskCreate", json!({"subject": "Test it", "description": ""}), "Created #2"),
        ("TaskUpdate", updated, "#2 [>] Test it (owner me; blocked by #1)"),
        ("TaskGet", json!({"taskId": "1"}), description),
        ("TaskList", json!({}), "0 of 2 done"),
        ("TodoWrite", json!({"todos": [todo]}), "0 of 1 done"),
    ] {
        let ran = world.tool(name, &input, &["--session", &session]);
        assert!(ran.code == Some(0) && ran.out.contains(wanted), "{name}: {ran:?}");
        assert!(!ran.out.contains("activeForm"), "{ran:?}");
    }
    // Rules of theirs are about ours, each by itself.
    for (theirs, ours) in [
        ("TaskCreate", "task_create"),
        ("TaskGet", "task_get"),
        ("TaskList", "task_list"),
        ("TaskUpdate", "task_update"),
        ("TodoWrite", "todo"),
    ] {
        let ran = world.run(&["tool", "list", "--deny", theirs]);
        let is_there = |name: &str| ran.out.lines().any(|line| line.starts_with(name));
        assert!(!is_there(ours) && is_there("job"), "{theirs}: {ran:?}");
    }
}

/// What the tools say stands in the log in full: a program that follows it needs no call.
#[test]
fn a_program_reads_what_changed() {
    let world = World::new();
    world.settings(TASKS);
    let call = |(name, input): (&str, Value)| json!({"name": name, "input": input});
    let model = world.script(&[
        json!({"calls": [call(create("one", &[])), call(create("two", &[1]))]}),
        json!({"text": "Done."}),
    ]);
    let flags = ["-p", "go", "--model", &model, "--output", "stream-json"];
    let lines = world.run(&flags).lines();
    let results: Vec<&Value> = lines.iter().filter(|line| line["type"] == "call_result").collect();
    assert_eq!(results[1]["data"]["task"]["blocked_by"], json!(["1"]), "{results:?}");
    let states = world.events().into_iter().filter_map(|event| match event.body {
        Body::State { key, value } if value.get("task").is_some() => Some((key, value)),
        _ => None,
    });
    let states: Vec<_> = states.collect();
    assert_eq!(states.len(), 2);
    assert_eq!((&*states[1].0, &states[1].1["task"]["id"]), ("shared task 0002", &json!(2)));
}
