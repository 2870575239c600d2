//! How runs end that do not end by themselves: limits, signals, disks that take nothing.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    process::Stdio,
    time::{Duration, Instant},
};

use haft_types::{Body, Status, TurnEnd};
use serde_json::{Value, json};

use crate::world::{
    Input, World, all_calls_ended, collect, ended, finish, gone, holding, runs, signal, signal_all,
    unique_seconds, until,
};

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
    assert!(ran.err.contains("max-turns") || ran.err.contains("3 "), "{ran:?}");
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
    assert!(ran.err.contains("1 s"), "{ran:?}");
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
        assert!(until(Duration::from_secs(30), || runs(&seconds)), "nothing was started");
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
    assert!(until(Duration::from_secs(30), || runs(&seconds)), "nothing was started");
    child.kill().unwrap();
    child.wait().unwrap();
    // Nobody is left who could end its command.
    signal_all("KILL", &seconds);
    let ran = world.run(&["-p", "and now?", "-c", "--model", &model]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Went on.\n"), "{ran:?}");
    all_calls_ended(&world.events());
}

#[test]
fn a_closed_reader_ends_the_run_quietly() {
    let world = World::new();
    let seconds = unique_seconds();
    let call = json!({"name": "bash", "input": {"command": format!("echo a; sleep {seconds}")}});
    let model = world.script(&[json!({"calls": [call]})]);
    let mut child = world
        .haft(&["-p", "go", "--model", &model, "--mode", "bypass", "--output", "stream-json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    drop(reader);
    let status = ended(&mut child, Duration::from_secs(30));
    assert_eq!(status.code(), Some(1));
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(!err.contains("panicked"), "{err}");
    gone(&seconds);
}

#[test]
fn a_home_that_cannot_be_written_is_told() {
    let world = World::new();
    let file = world.file("a-file", "");
    let model = world.script(&[json!({"text": "never"})]);
    let home = file.join("below").display().to_string();
    for flags in [&["-p", "go", "--model", &model][..], &["--line", "--model", &model]] {
        let mut command = world.haft(flags);
        command.env("HAFT_HOME", &home);
        let ran = finish(command, &Input::Nothing);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains(&home) && ran.err.contains("set HAFT_HOME"), "{ran:?}");
        assert!(!ran.out.contains("never"), "{ran:?}");
    }
}

/// A model that changes a file after it said very much.
fn much(world: &World) -> String {
    let write = json!({"name": "write", "input": {"path": "made.txt", "content": "made\n"}});
    let text = "much ".repeat(100_000);
    world.script(&[json!({"text": text, "calls": [write]}), json!({"text": "End."})])
}

#[test]
fn a_full_disk_ends_the_run_before_anything_is_changed() {
    let world = World::new();
    let model = much(&world);
    let haft = env!("CARGO_BIN_EXE_haft");
    // A file may have 64 blocks of 512 bytes; with the signal ignored the write itself fails.
    let script =
        format!("trap '' XFSZ; ulimit -f 64; exec '{haft}' -p go --mode bypass --model '{model}'");
    let mut command = world.program("sh");
    command.args(["-c", &script]);
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("cannot be written") && ran.err.contains("too large"), "{ran:?}");
    assert!(!world.work().join("made.txt").exists(), "changed without a record");
    // What was written before stays readable.
    assert_eq!(world.run(&["session", "show", &world.only_session(), "--json"]).code, Some(0));
}

#[test]
fn a_small_file_system_ends_the_run_before_anything_is_changed() {
    let world = World::new();
    let model = much(&world);
    let haft = env!("CARGO_BIN_EXE_haft");
    let disk = world.root().join("disk");
    fs::create_dir(&disk).unwrap();
    let disk = disk.display().to_string();
    let mount = format!("mount -t tmpfs -o size=64k none '{disk}'");
    let mut probe = world.program("unshare");
    let works =
        probe.args(["-rm", "sh", "-c", &mount]).status().is_ok_and(|status| status.success());
    if !works {
        // The test above fails in the same way without a mount.
        let ci = std::env::var_os("CI").is_some_and(|value| value != "false" && value != "0");
        assert!(!ci, "left out, which CI must not: this machine lets nobody mount");
        eprintln!("left out: this machine lets nobody mount");
        return;
    }
    let script = format!("{mount} && exec '{haft}' -p go --mode bypass --model '{model}'");
    let mut command = world.program("unshare");
    command.args(["-rm", "sh", "-c", &script]).env("HAFT_HOME", &disk);
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("No space left") && ran.err.contains(&disk), "{ran:?}");
    assert!(!world.work().join("made.txt").exists(), "changed without a record");
    assert!(holding(&world.work(), b"made").is_empty());
}
