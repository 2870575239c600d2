//! One call of each tool in the shape in which Claude Code writes it: names and arguments are taken as
//! they are.

use std::collections::BTreeMap;

use haft_types::Status;
use serde_json::{Value, json};

use crate::world::World;

/// A call, and what its result says.
type Row = (&'static str, Value, Status, &'static str);

const NOTEBOOK: &str = r#"{"cells": [{"cell_type": "code", "id": "c1", "metadata": {}, "outputs": [],
 "source": ["1"], "execution_count": null}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#;

fn files_and_commands(root: &str) -> Vec<Row> {
    let at = |name: &str| format!("{root}/{name}");
    let edits = json!([{"old_string": "two", "new_string": "2"}, {"old_string": "three", "new_string": "3"}]);
    let search = json!({"pattern": "ONE", "path": root, "glob": "*.txt", "output_mode": "content",
        "-n": true, "-i": true, "-C": 1, "head_limit": 5});
    vec![
        ("Read", json!({"file_path": at("a.txt"), "offset": 1, "limit": 2}), Status::Done, "one"),
        ("Write", json!({"file_path": at("new.txt"), "content": "new\n"}), Status::Done, "new.txt"),
        (
            "Edit",
            json!({"file_path": at("a.txt"), "old_string": "one", "new_string": "ONE", "replace_all": true}),
            Status::Done,
            "ONE",
        ),
        ("MultiEdit", json!({"file_path": at("a.txt"), "edits": edits}), Status::Done, "3"),
        (
            "Bash",
            json!({"command": "echo hello", "timeout": 5000, "description": "Says hello"}),
            Status::Done,
            "hello",
        ),
        ("Grep", search, Status::Done, "ONE"),
        ("Glob", json!({"pattern": "*.txt", "path": root}), Status::Done, "new.txt"),
        ("LS", json!({"path": root}), Status::Done, "new.txt"),
        ("NotebookRead", json!({"notebook_path": at("n.ipynb")}), Status::Done, "cell"),
        (
            "NotebookEdit",
            json!({"notebook_path": at("n.ipynb"), "cell_id": "c1", "new_source": "2",
            "cell_type": "code", "edit_mode": "replace"}),
            Status::Done,
            "c1",
        ),
    ]
}

fn jobs() -> Vec<Row> {
    let sleep = |name: &str| json!({"command": format!("echo {name}; sleep 300"), "run_in_background": true});
    vec![
        ("Bash", sleep("first"), Status::Done, "job"),
        ("Bash", sleep("second"), Status::Done, "job"),
        ("TaskOutput", json!({"task_id": "1", "block": false, "timeout": 1000}), Status::Done, ""),
        ("BashOutput", json!({"bash_id": "1"}), Status::Done, ""),
        ("TaskStop", json!({"task_id": "1"}), Status::Done, ""),
        ("KillShell", json!({"shell_id": "2"}), Status::Done, ""),
    ]
}

fn of_the_work(root: &str) -> Vec<Row> {
    let todos =
        json!([{"content": "Test it", "status": "in_progress", "activeForm": "Testing it"}]);
    let options = json!([{"label": "red", "description": "warm", "preview": "#f00"}, {"label": "blue", "description": "cold"}]);
    let questions = json!([{"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": false}]);
    vec![
        ("TodoWrite", json!({"todos": todos}), Status::Done, "0 of 1 done"),
        ("AskUserQuestion", json!({"questions": questions}), Status::Failed, "nobody is here"),
        ("SendUserFile", json!({"path": format!("{root}/a.txt")}), Status::Done, "a.txt"),
        ("SendUserMessage", json!({"message": "It goes on."}), Status::Done, ""),
        ("Think", json!({"thought": "What comes next?"}), Status::Done, ""),
        ("Sleep", json!({"seconds": 0}), Status::Done, ""),
        ("ToolSearch", json!({"query": "select:config"}), Status::Done, "config"),
        ("Skill", json!({"skill": "greet", "args": "Ada"}), Status::Done, "Say hello to Ada."),
        ("EnterPlanMode", json!({}), Status::Failed, "nobody is here"),
    ]
}

fn tasks() -> Vec<Row> {
    vec![
        (
            "TaskCreate",
            json!({"subject": "Build it", "description": "All of it", "activeForm": "Building it"}),
            Status::Done,
            "#1",
        ),
        (
            "TaskCreate",
            json!({"subject": "Test it", "description": "All of it", "metadata": {"a": 1}}),
            Status::Done,
            "#2",
        ),
        (
            "TaskUpdate",
            json!({"taskId": "1", "status": "in_progress", "addBlocks": ["2"], "owner": "me"}),
            Status::Done,
            "Build it",
        ),
        ("TaskGet", json!({"taskId": "2"}), Status::Done, "Test it"),
        ("TaskList", json!({}), Status::Done, "Test it"),
    ]
}

/// Runs the calls one after the other, and compares what came of them.
fn check(world: &World, rows: &[Row]) {
    let one = |(name, input, ..): &Row| json!({"calls": [{"name": name, "input": input}]});
    let mut script: Vec<Value> = rows.iter().map(one).collect();
    script.push(json!({"text": "End."}));
    let model = world.script(&script);
    let ran = world.run(&["-p", "go", "--model", &model, "--mode", "bypass"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let outcomes = world.outcomes();
    assert_eq!(outcomes.len(), rows.len(), "{outcomes:?}");
    for ((name, input, status, wanted), outcome) in rows.iter().zip(&outcomes) {
        assert_eq!(outcome["status"], json!(status), "{name} {input}: {outcome}");
        assert!(outcome["content"].to_string().contains(wanted), "{name} {input}: {outcome}");
    }
}

fn world() -> World {
    let world = World::new();
    world.file("a.txt", "one\ntwo\nthree\n");
    world.file("n.ipynb", NOTEBOOK);
    world
}

#[test]
fn one_call_of_each_tool_in_the_shape_of_claude_code_succeeds() {
    let lists: BTreeMap<&str, fn(&str) -> Vec<Row>> = BTreeMap::from([
        ("files", files_and_commands as fn(&str) -> Vec<Row>),
        ("jobs", |_| jobs()),
        ("work", of_the_work),
    ]);
    for rows in lists.into_values() {
        let world = world();
        world.settings("tools.on = ['think', 'sleep', 'brief', 'send_file', 'enter_plan', 'exit_plan', 'skill', 'tool_search']");
        world.file(
            ".claude/skills/greet/SKILL.md",
            "---\nname: greet\ndescription: Says hello.\n---\nSay hello to $ARGUMENTS.\n",
        );
        let root = world.work().to_str().unwrap().to_owned();
        check(&world, &rows(&root));
    }
    let world = world();
    world.settings("tools.todo = 'tasks'");
    check(&world, &tasks());
}
