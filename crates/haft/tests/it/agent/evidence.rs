//! What of the changes was checked stands at the end of each face: by exit codes of the record alone.

use haft_testkit::http::HttpResponse;
use serde_json::{Value, json};

use crate::{
    line::terminal::Tmux,
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, Ran, World, example, finish},
};

const VERIFIED: &str = "evidence verified: bash -n a.sh (exit code 0), no change after it";

fn edit(name: &str) -> (&'static str, Value) {
    ("write", json!({"path": name, "content": "echo one\n"}))
}

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({"command": command}))
}

/// One step for each call, then words that claim what they like.
fn answers(wire: Wire, calls: &[(&str, Value)]) -> Vec<HttpResponse> {
    let steps = calls.iter().enumerate();
    let mut all: Vec<HttpResponse> = steps
        .map(|(at, call)| wire.calls(&format!("s{at}"), &[(call.0, call.1.clone())]))
        .collect();
    all.push(wire.text("All tests pass."));
    all
}

fn run(wire: Wire, calls: &[(&str, Value)], flags: &[&str]) -> Ran {
    let world = World::new();
    world.file("bad.sh", "if\n");
    let mock = Mock::new(answers(wire, calls));
    let fixed = ["-p", "go", "--mode", "bypass"];
    finish(wire.haft(&world, &mock.url(), &[&fixed, flags].concat()), &Input::Nothing)
}

#[test]
fn exit_codes_decide_on_each_wire_and_claims_do_not() {
    let (edit, check) = (edit("a.sh"), bash("bash -n a.sh"));
    let background = json!({"command": "bash -n a.sh", "run_in_background": true});
    let wait = json!({"action": "wait", "job_id": "j1"});
    let cases: [(&[(&str, Value)], Value); 7] = [
        (&[bash("echo looked")], Value::Null),
        (std::slice::from_ref(&edit), json!(["none", null, 1, 1])),
        (&[edit.clone(), check.clone()], json!(["verified", 0, 1, 0])),
        (&[edit.clone(), check.clone(), bash("touch b.sh")], json!(["stale", 0, 2, 1])),
        (&[edit.clone(), bash("bash -n bad.sh")], json!(["failed", 2, 1, 0])),
        (&[edit.clone(), bash("bash -n bad.sh || true")], json!(["none", null, 1, 1])),
        (&[edit.clone(), ("bash", background), ("job", wait)], json!(["verified", 0, 1, 0])),
    ];
    for (at, (calls, wanted)) in cases.iter().enumerate() {
        // All of them on one wire, and the one that says most on each.
        for wire in WIRES.into_iter().filter(|wire| at == 3 || *wire == WIRES[at % WIRES.len()]) {
            let ran = run(wire, calls, &["--output", "json"]);
            let evidence = &ran.json()["evidence"];
            let of = |field: &str| evidence[field].clone();
            let shown = match evidence {
                Value::Null => Value::Null,
                _ => json!([of("state"), of("exit_code"), of("changes"), of("unchecked")]),
            };
            assert_eq!(shown, *wanted, "{wire:?} {calls:?}: {ran:?}");
            assert!(!ran.err.contains("evidence"), "programs read it: {ran:?}");
        }
    }
}

#[test]
fn people_read_it_in_one_line_and_the_answer_stays_as_it_is() {
    let calls = [edit("a.sh"), bash("bash -n a.sh")];
    for (wire, flags) in WIRES.into_iter().zip([&[][..], &["--verbose"], &[]]) {
        let ran = run(wire, &calls, flags);
        assert_eq!((ran.code, &*ran.out), (Some(0), "All tests pass.\n"), "{ran:?}");
        assert_eq!(ran.err.matches(VERIFIED).count(), 1, "{wire:?} {ran:?}");
    }
    let ran = run(WIRES[0], &[bash("echo looked")], &[]);
    assert!(!ran.err.contains("evidence"), "{ran:?}");
}

fn scripted(world: &World, calls: &[(&str, Value)]) -> String {
    let calls = calls.iter().map(|(name, input)| json!({"name": name, "input": input}));
    let mut steps: Vec<Value> = calls.map(|call| json!({ "calls": [call] })).collect();
    steps.push(json!({"text": "Done."}));
    world.script(&steps)
}

#[test]
fn a_talk_says_it_at_the_end_of_turns_that_have_news() {
    let world = World::new();
    let edit = json!({"calls": [{"name": "write", "input": {"path": "a.sh", "content": "x\n"}}]});
    let check = json!({"calls": [{"name": "bash", "input": {"command": "bash -n a.sh"}}]});
    let text = |text: &str| json!({ "text": text });
    let model = world.script(&[
        text("Hello."),
        edit,
        text("Changed."),
        check,
        text("Checked."),
        text("Bye."),
    ]);
    let flags = ["--line", "--mode", "bypass", "--model", &model];
    let ran = world.run_with(&flags, &Input::Pipe("one\ntwo\nthree\n/undo\nfour\n/quit\n"));
    let told: Vec<&str> = ran.out.lines().filter(|line| line.contains("evidence")).collect();
    let wanted = [
        "- no evidence: 1 file changed, no check ran".to_owned(),
        format!("- {VERIFIED}"),
        "- evidence stale: 1 file changed after bash -n a.sh (exit code 0)".to_owned(),
    ];
    assert_eq!(told, wanted, "{ran:?}");
}

#[test]
fn the_terminal_says_it_at_the_end_of_a_turn() {
    let world = World::new();
    let model = scripted(&world, &[edit("a.sh"), bash("bash -n a.sh")]);
    let tmux = Tmux::start(&world);
    tmux.haft(&format!("--mode bypass --model '{model}'"));
    tmux.sees("a message;");
    tmux.line("go");
    tmux.sees("evidence verified: bash -n a.sh (exit code 0)");
}

#[test]
fn what_another_agent_changes_counts() {
    let world = World::new();
    let child = scripted(&world, &[edit("a.sh"), bash("bash -n a.sh"), edit("b.sh")]);
    let tasks = json!({"tasks": [{"name": "one", "model": child, "prompt": "Write."}]});
    let main = scripted(&world, &[("delegate", tasks)]);
    let mut command = world.program(example("delegate"));
    command.args(["--mode", "bypass", "-p", "go", "--output", "json", "--model", &main]);
    let ran = finish(command, &Input::Nothing);
    let evidence = &ran.json()["evidence"];
    assert_eq!(
        (&evidence["state"], &evidence["unchecked"]),
        (&json!("stale"), &json!(1)),
        "{ran:?}"
    );
}
