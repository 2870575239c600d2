//! How runs end that do not end by themselves, or not well: limits, signals, answers without words.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    os::unix::process::CommandExt as _,
    process::Stdio,
    time::{Duration, Instant},
};

use haft_testkit::machine::python;
use haft_types::{Body, Status, TurnEnd};
use serde_json::{Value, json};

use crate::world::{
    Input, PATIENCE, World, all_calls_ended, collect, ended, finish, gone, runs, signal,
    unique_seconds, until,
};

/// Becomes what its arguments say, with the ends of children ignored, as some daemons leave it.
const DEAF: &str = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); \
                    os.execv(sys.argv[1], sys.argv[1:])";

#[test]
fn ends_of_commands_are_seen_where_a_parent_ignores_those_of_children() {
    let world = World::new();
    let shell = json!({"session": "s", "command": "echo kept"});
    let calls = [json!({"command": "echo out; exit 3"}), shell, json!({"command": "echo b >&2"})];
    let calls = calls.map(|input| json!({"name": "bash", "input": input}));
    let model = world.script(&[json!({"calls": calls}), json!({"text": "End."})]);
    let haft = world.haft(&["-p", "go", "--model", &model, "--mode", "bypass"]);
    let mut command = world.program(python());
    command.args(["-c", DEAF]).arg(haft.get_program()).args(haft.get_args());
    let ran = finish(command, &Input::Nothing);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "End."), "{ran:?}");
    assert!(ran.took < Duration::from_secs(10), "{:?}", ran.took);
    let told: Vec<String> = world.outcomes().iter().map(Value::to_string).collect();
    for (told, wanted) in told.iter().zip(["exit code 3", "kept", "b"]) {
        assert!(told.contains(wanted) && !told.contains("lost"), "{told}");
    }
}

#[test]
fn a_shell_that_is_not_there_or_cannot_be_run_is_named() {
    // The folder has `sh` as well, which runs this script and is not needed again.
    let gone = "mount -t tmpfs none \"$(dirname \"$(readlink -f /bin/bash)\")\"";
    let closed = "mount --bind /dev/null \"$(readlink -f /bin/bash)\"";
    for (mount, parts) in [
        (gone, ["this host has no shell", "another way"]),
        (closed, ["/bash cannot be started", "tell the person"]),
    ] {
        let world = World::new();
        let call = r#"tool bash --mode bypass --input '{"command": "echo hi"}'"#;
        let Some(ran) = world.mounted(mount, call, &[]) else { return };
        let told = format!("{}{}", ran.out, ran.err);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    }
}

#[test]
fn a_limit_of_turns_ends_the_run() {
    let world = World::new();
    let look = json!({"text": "Again.", "calls": [{"name": "ls", "input": {}}]});
    let model = world.script(&vec![look; 10]);
    let flags = ["-p", "go", "--model", &model, "--max-turns", "3", "--output", "json"];
    let ran = world.run(&flags);
    let result: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &result["status"]), (Some(1), &json!("limit")), "{ran:?}");
    assert_eq!(result["steps"], 3, "{result}");
    assert!(ran.err.contains("the limit of 3 "), "{ran:?}");
    all_calls_ended(&world.events());
}

#[test]
fn a_limit_of_time_ends_the_run() {
    let world = World::new();
    let seconds = unique_seconds();
    let command = format!("sleep {seconds}");
    let call = json!({"name": "bash", "input": {"command": command}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "never"})]);
    let ran = world.run(&["-p", "go", "--model", &model, "--mode", "bypass", "--max-time", "1"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("the limit of 1 s"), "{ran:?}");
    assert!(ran.took < Duration::from_secs(10), "{:?}", ran.took);
    gone(&seconds);
    all_calls_ended(&world.events());
}

#[test]
fn a_silent_model_is_left_when_the_time_is_over() {
    let world = World::new();
    let model = world.script(&[json!({"delay_ms": 300_000, "text": "late"})]);
    let ran = world.run(&["-p", "go", "--model", &model, "--max-time", "1"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.took < Duration::from_secs(10), "{:?}", ran.took);
}

#[test]
fn a_signal_ends_the_run_and_every_call_with_it() {
    for name in ["INT", "TERM"] {
        let world = World::new();
        let seconds = unique_seconds();
        let calls = json!([
            {"name": "bash", "input": {"command": format!("sleep {seconds}; echo never")}},
            {"name": "bash", "input": {"command": format!("echo later; sleep {seconds}")}},
        ]);
        let model = world.script(&[json!({"calls": calls}), json!({"text": "never"})]);
        let flags = ["-p", "go", "--model", &model, "--mode", "bypass"];
        let mut child = world.haft(&flags).spawn().unwrap();
        let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
        assert!(until(PATIENCE, || runs(&seconds)), "nothing was started");
        let sent = Instant::now();
        signal(name, child.id());
        let status = ended(&mut child, Duration::from_secs(30));
        assert!(sent.elapsed() < Duration::from_secs(5), "{:?}", sent.elapsed());
        assert_eq!(
            status.code(),
            Some(1),
            "{name}: {} {}",
            out.join().unwrap(),
            err.join().unwrap()
        );
        gone(&seconds);
        let events = world.events();
        all_calls_ended(&events);
        let last = &events.last().unwrap().body;
        assert!(matches!(last, Body::TurnEnded { end: TurnEnd::Interrupted, .. }), "{last:?}");
        assert!(events.iter().any(|event| matches!(&event.body,
            Body::CallEnded { outcome, .. } if outcome.status == Status::Cancelled)));
    }
}

#[test]
fn a_killed_run_is_resumed_with_every_call_ended() {
    let world = World::new();
    let seconds = unique_seconds();
    let call = json!({"name": "bash", "input": {"command": format!("sleep {seconds}")}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "Went on."})]);
    let flags = ["-p", "go", "--model", &model, "--mode", "bypass"];
    let mut child = world.haft(&flags).spawn().unwrap();
    assert!(until(PATIENCE, || runs(&seconds)), "nothing was started");
    child.kill().unwrap();
    child.wait().unwrap();
    gone(&seconds);
    let ran = world.run(&["-p", "and now?", "-c", "--model", &model]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Went on.\n"), "{ran:?}");
    all_calls_ended(&world.events());
}

#[test]
fn a_closed_reader_ends_the_run_quietly() {
    let world = World::new();
    let seconds = unique_seconds();
    // It is noticed with the next line, so there is one whenever the reader goes.
    let command = format!("sleep {seconds} & while :; do echo a; sleep 0.1; done");
    let call = json!({"name": "bash", "input": {"command": command}});
    let model = world.script(&[json!({"calls": [call]})]);
    let mut child = world
        .haft(&["-p", "go", "--model", &model, "--mode", "bypass", "--output", "stream-json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    assert!(reader.read_line(&mut line).unwrap() > 0, "it wrote nothing");
    drop(reader);
    let status = ended(&mut child, Duration::from_secs(30));
    assert_eq!(status.code(), Some(1));
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(!err.contains("panicked"), "{err}");
    gone(&seconds);
}

#[test]
fn one_signal_told_twice_is_one() {
    let world = World::new();
    let seconds = unique_seconds();
    let command = format!("trap : TERM; sleep {seconds}; sleep {seconds}");
    let input = json!({"command": command}).to_string();
    // Not as an argument: what runs is found by its arguments.
    let input = std::fs::File::open(world.file("input.json", input)).unwrap();
    let mut haft = world.haft(&["tool", "bash", "--allow", "Bash", "--input", "-"]);
    let mut child = haft.stdin(input).process_group(0).spawn().unwrap();
    let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
    assert!(until(PATIENCE, || runs(&seconds)), "nothing was started");
    let id = child.id();
    let mut kill = world.program("sh");
    kill.args(["-c", &format!("kill -TERM {id}; kill -TERM -{id}")]);
    assert!(kill.status().unwrap().success());
    let code = ended(&mut child, Duration::from_secs(30)).code();
    let (out, err) = (out.join().unwrap(), err.join().unwrap());
    assert_eq!(code, Some(1), "{out} {err}");
    assert!(out.contains("cancel") && !err.contains("second signal"), "{out} {err}");
    gone(&seconds);
}

#[test]
fn an_empty_answer_at_the_end_fails_the_run() {
    let world = World::new();
    for output in ["text", "json"] {
        let model = world.script(&[json!({"text": ""})]);
        let ran = world.run(&["-p", "go", "--model", &model, "--output", output]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert_eq!(ran.err.matches("the model's answer is empty").count(), 1, "{ran:?}");
        if output == "json" {
            let result = ran.json();
            assert_eq!(result["status"], "failed", "{result}");
            assert!(result["error"].as_str().unwrap().contains("empty"), "{result}");
        }
    }
}

#[test]
fn a_paused_answer_goes_on() {
    let world = World::new();
    let paused = |text: &str| json!({"text": text, "stop": "paused"});
    let model = world.script(&[paused("One, "), paused("two, "), json!({"text": "three."})]);
    let ran = world.run(&["-p", "go", "--model", &model]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "One, two, three.\n"), "{ran:?}");
    let always: Vec<Value> = (0..40).map(|_| paused("x")).collect();
    let ran = world.run(&["-p", "go", "--model", &world.script(&always)]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("paused"), "{ran:?}");
}
