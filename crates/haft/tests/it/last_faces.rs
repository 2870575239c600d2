//! Ends and advice: limits of the system, signals that come twice, hints that must work, and
//! clients that say all they have at once.

use std::{os::unix::process::CommandExt as _, time::Duration};

use serde_json::{Value, json};

use crate::world::{Input, Ran, World, collect, ended, finish, gone, runs, unique_seconds, until};

/// Runs a shell script in which `haft` is the program.
fn script(world: &World, text: &str) -> Ran {
    let mut shell = world.program("sh");
    let text = format!("haft() {{ '{}' \"$@\"; }}\n{text}", env!("CARGO_BIN_EXE_haft"));
    shell.args(["-c", &text]);
    finish(shell, &Input::Nothing)
}

fn sessions(world: &World) -> usize {
    std::fs::read_dir(world.state().join("sessions")).map_or(0, Iterator::count)
}

#[test]
fn a_limit_of_file_size_is_told_and_what_is_smaller_still_works() {
    let world = World::new();
    let big = json!({"path": "big.txt", "content": "x".repeat(60_000)}).to_string();
    world.file("big.json", big);
    // 20 blocks of 512 bytes.
    let ran = script(
        &world,
        "ulimit -f 20\n\
         haft tool write --mode accept-edits --input - < big.json; echo \"code $?\"\n\
         haft tool write --mode accept-edits --input '{\"path\":\"a\",\"content\":\"a\"}'\n\
         haft tool bash --mode bypass --input '{\"command\":\"head -c 30000 /dev/zero > b\"}'\n\
         haft doctor | grep '  state '",
    );
    assert!(ran.out.contains("code 1\n") && ran.out.contains("large"), "{ran:?}");
    assert!(ran.out.contains("ulimit -f") && !ran.out.contains("disk space"), "{ran:?}");
    assert_eq!(world.read("a"), "a", "{ran:?}");
    assert!(!world.work().join("big.txt").exists());
    // The signal itself still ends what haft starts.
    assert!(ran.out.contains("signal") || ran.out.contains("XFSZ"), "{ran:?}");
    assert!(ran.out.contains("!!  state      no session can start: "), "{ran:?}");
}

#[test]
fn a_log_that_crosses_a_limit_of_file_size_ends_the_run_with_its_cause() {
    let world = World::new();
    let model = world.script(&[json!({"text": "much ".repeat(20_000)}), json!({"text": "End."})]);
    let ran = script(&world, &format!("ulimit -f 40; haft -p go --model '{model}'"));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("large") && ran.err.contains("ulimit -f"), "{ran:?}");
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
    assert!(until(Duration::from_secs(30), || runs(&seconds)), "nothing was started");
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
fn an_address_under_which_nothing_is_leaves_no_session_and_no_hint() {
    let world = World::new();
    let ran = world.run(&["tool", "read", "--input", r#"{"path": "out://c1"}"#]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.out.contains("nothing is kept under"), "{ran:?}");
    assert_eq!(sessions(&world), 0);
}

#[test]
fn a_file_where_sessions_lie_is_told_by_doctor_and_by_calls() {
    let world = World::new();
    std::fs::write(world.state().join("sessions"), "").unwrap();
    let ran = world.run(&["doctor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let line = ran.out.lines().find(|line| line.contains("  state ")).unwrap();
    assert!(line.starts_with("!!") && line.contains("move it away"), "{line}");
    let write = json!({"path": "a.txt", "content": "a"}).to_string();
    let ran = world.run(&["tool", "write", "--mode", "accept-edits", "--input", &write]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let all = format!("{}{}", ran.out, ran.err);
    assert!(all.contains("move it away") && !all.contains("disk space"), "{ran:?}");
    assert!(!world.work().join("a.txt").exists());
}

#[test]
fn doctor_leaves_no_session() {
    let world = World::new();
    assert_eq!(world.run(&["doctor"]).code, Some(0));
    assert_eq!(sessions(&world), 0);
}

/// The flags of the hint.
fn hinted(ran: &Ran) -> &str {
    let (_, flags) = ran.err.split_once("to allow it, add ").unwrap_or_else(|| panic!("{ran:?}"));
    flags.trim()
}

#[test]
fn what_a_refusal_advises_is_enough() {
    let world = World::new();
    let outside = world.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("a.txt"), "alpha\n").unwrap();
    std::os::unix::fs::symlink(&outside, world.work().join("link")).unwrap();
    let there = outside.join("new.txt").display().to_string();
    for (tool, input, mode) in [
        ("read", json!({"path": "link/a.txt"}), ""),
        ("grep", json!({"path": "link", "pattern": "alpha"}), ""),
        ("write", json!({"path": "link/b.txt", "content": "b"}), "--mode accept-edits"),
        ("write", json!({"path": there, "content": "c"}), "--mode accept-edits"),
        ("write", json!({"path": "plain.txt", "content": "d"}), ""),
    ] {
        let call = format!("haft tool {tool} {mode} --input '{input}'");
        let refused = script(&world, &call);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        let flags = hinted(&refused);
        let (rules, other) = flags.split_once(" or ").unwrap_or((flags, ""));
        assert_eq!(other.is_empty(), input["path"] != "plain.txt", "{flags}");
        let ran = script(&world, &format!("{call} {rules}"));
        assert_eq!(ran.code, Some(0), "{flags}: {ran:?}");
        // One form alone allows neither.
        for rule in rules.split(" --allow ").filter(|_| rules.matches("--allow").count() > 1) {
            let rule = rule.trim_start_matches("--allow ");
            let ran = script(&world, &format!("{call} --allow {rule}"));
            assert_eq!(ran.code, Some(1), "{rule}: {ran:?}");
        }
    }
}

#[test]
fn a_list_of_tools_without_a_name_is_wrong() {
    let world = World::new();
    for list in [",", "", " , "] {
        let ran = world.run(&["tool", "list", "--tools", list]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{list:?} {ran:?}");
        assert!(ran.err.contains("--tools names no tool"), "{ran:?}");
    }
}

/// What a client writes that says all at once: a greeting, then these calls.
fn said(calls: &[(&str, Value)]) -> String {
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "script", "version": "1"}});
    let mut text = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        .to_string()
        + "\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    for (index, (name, input)) in calls.iter().enumerate() {
        let call = json!({"jsonrpc": "2.0", "id": index + 1, "method": "tools/call",
            "params": {"name": name, "arguments": input}});
        text.push_str(&call.to_string());
        text.push('\n');
    }
    text
}

#[test]
fn what_was_read_before_the_end_of_input_is_finished() {
    let world = World::new();
    let mut calls = Vec::new();
    for index in 0..200 {
        let name = format!("{index}.txt");
        world.file(&name, "old\n");
        let edits = json!([{"old_text": "old", "new_text": format!("new {index}")}]);
        calls.push(("edit", json!({"path": name, "edits": edits})));
    }
    calls.push(("bash", json!({"command": "sleep 3; echo slept"})));
    let text = said(&calls);
    let ran = world.run_with(&["mcp", "--mode", "bypass"], &Input::Pipe(&text));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let answers: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let fine = answers.iter().filter(|answer| answer["result"]["isError"] != true);
    assert_eq!((answers.len(), fine.count()), (202, 202), "{}", ran.out);
    assert!(ran.out.contains("slept"), "{}", ran.out);
    assert_eq!(world.read("199.txt"), "new 199\n");
}
