//! Shells that live on between calls (`bash {session}`), through every face: who shares one, and that
//! none outlives its session.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    line::terminal::Tmux,
    mcp_client::{Client, text},
    world::{Input, PATIENCE, World, all_calls_ended, gone, runs, signal, unique_seconds, until},
};

fn bash(command: &str) -> Value {
    json!({"name": "bash", "input": {"command": command, "session": "dev"}})
}

/// What the calls of a run were answered with.
fn answers(world: &World) -> Vec<String> {
    let one = |outcome: &Value| {
        let parts = outcome["content"].as_array().into_iter().flatten();
        parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
    };
    world.outcomes().iter().map(one).collect()
}

/// Fails unless people are told that the end of the run stopped what ran in the session, by its number.
fn stopped(told: &str, seconds: &str) {
    let first = told.lines().next().unwrap_or_default();
    let number = first
        .strip_prefix("haft: stopped with the end of the run: session dev (")
        .and_then(|rest| rest.strip_suffix(&format!(" sleep {seconds})")));
    assert!(number.is_some_and(|number| number.parse::<u32>().is_ok()), "{told}");
}

#[test]
fn few_descriptors_are_enough() {
    let world = World::new();
    let calls = ["exec 12>f; v=kept", "echo $v >&12; echo out; ulimit -n"].map(bash);
    let calls = calls.map(|call| json!({"calls": [call]}));
    let model = world.script(&[&calls[..], &[json!({"text": "End."})]].concat());
    let run = format!("ulimit -n 128; haft -p go --model '{model}' --mode bypass");
    let ran = world.shell(&run);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(answers(&world)[1].lines().take(2).collect::<Vec<_>>(), ["out", "128"], "{ran:?}");
    assert_eq!(world.read("f"), "kept\n");
    let world = World::new();
    let model = world.script(&[json!({"calls": [bash("echo out")]}), json!({"text": "End."})]);
    let ran = world.shell(&format!("ulimit -n 100; haft -p go --model '{model}' --mode bypass"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let last = answers(&world).pop().unwrap();
    assert!(last.contains("needs 128 open files, and ulimit -n is 100"), "{last}");
}

#[test]
fn a_run_keeps_its_shell_and_the_next_one_is_told_that_it_is_gone() {
    let (world, seconds) = (World::new(), unique_seconds());
    world.file("sub/a.txt", "a\n");
    let model = world.script(&[
        json!({"calls": [bash(&format!("cd sub; v=kept; sleep {seconds} &"))]}),
        json!({"calls": [bash("echo \"$v in ${PWD##*/}\"; echo b > b.txt; false")]}),
        json!({"text": "First."}),
        json!({"calls": [bash("echo \"[$v] in ${PWD##*/}\"")]}),
        json!({"text": "Second."}),
    ]);
    let flags = ["--model", &model, "--mode", "bypass"];
    let ran = world.run(&[&["-p", "go"][..], &flags].concat());
    assert_eq!((ran.code, &*ran.out), (Some(0), "First.\n"), "{ran:?}");
    assert!(!runs(&seconds), "it outlives the run");
    stopped(&ran.err, &seconds);
    let told = answers(&world);
    assert!(told[0].starts_with("[the next command of session dev starts in sub]\n"), "{told:?}");
    assert!(told[0].contains("[in the background of session dev: "), "{told:?}");
    assert!(told[1].starts_with("kept in sub\n[exit code 1]\n"), "{told:?}");
    assert!(told[1].contains(&format!("sleep {seconds}; what it prints comes with")), "{told:?}");
    // What it changed can be taken back like that of any other command.
    assert_eq!(world.read("sub/b.txt"), "b\n");
    let undone = world.run(&["undo"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(!world.work().join("sub/b.txt").exists());
    let ran = world.run(&[&["-c", "-p", "on"][..], &flags].concat());
    assert_eq!((ran.code, &*ran.out), (Some(0), "Second.\n"), "{ran:?}");
    assert_eq!(ran.err, "", "nothing ran in the shell: {ran:?}");
    let told = answers(&world).pop().unwrap();
    let new = "[session dev is a new shell, for the run of haft that had it is over: ";
    assert!(told.starts_with("[] in sub\n") && told.contains(new), "{told}");
    assert!(told.contains("of the last one are lost; it starts in sub]"), "{told}");
    all_calls_ended(&world.events());
}

#[test]
fn nothing_of_a_shell_outlives_a_haft_that_is_killed() {
    let (world, seconds) = (World::new(), unique_seconds());
    let command = format!("setsid sleep {seconds} & trap '' TERM HUP; sleep {seconds} & disown -a");
    let model = world.script(&[json!({"calls": [bash(&command), bash("sleep 600")]})]);
    let mut haft = world.haft(&["-p", "go", "--model", &model, "--mode", "bypass"]);
    let mut child = haft.spawn().unwrap();
    assert!(until(PATIENCE, || runs(&seconds)), "nothing was started");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(until(Duration::from_secs(3), || !runs(&seconds)), "it runs on");
}

#[test]
fn an_interrupted_turn_ends_the_shell_that_it_used() {
    let (world, seconds) = (World::new(), unique_seconds());
    let model = world.script(&[
        json!({"calls": [bash("v=kept"), bash(&format!("sleep {seconds}"))]}),
        json!({"calls": [bash("echo \"[$v]\"; v=again")]}),
        json!({"calls": [bash(&format!("echo \"[$v]\"; sleep {seconds} &"))]}),
        json!({"text": "That was it."}),
    ]);
    let tmux = Tmux::talk(&world, &model, "--mode bypass");
    tmux.line("go");
    assert!(until(PATIENCE, || runs(&seconds)), "nothing was started");
    tmux.key("C-c");
    tmux.sees("interrupted");
    gone(&seconds);
    tmux.line("and now?");
    tmux.sees("That was it.");
    assert!(runs(&seconds), "what runs in a session was stopped with the turn");
    tmux.line("/quit");
    gone(&seconds);
    let told = answers(&world);
    assert!(told[1].contains("[the shell of session dev ended with this; "), "{told:?}");
    let new = "[session dev is a new shell, for the last command was cancelled: ";
    assert!(told[2].starts_with("[]\n") && told[2].contains(new), "{told:?}");
    assert!(told[3].starts_with("[again]\n"), "{told:?}");
}

#[test]
fn line_mode_keeps_a_shell_through_the_whole_talk() {
    let (world, seconds) = (World::new(), unique_seconds());
    let model = world.script(&[
        json!({"calls": [bash(&format!("v=kept; sleep {seconds} &"))]}),
        json!({"text": "First."}),
        json!({"calls": [bash("echo \"$v\" said")]}),
        json!({"text": "Second."}),
    ]);
    let flags = ["--line", "--model", &model, "--mode", "bypass"];
    let ran = world.run_with(&flags, &Input::Pipe("go\nand on\n"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("kept said"), "{ran:?}");
    assert!(!runs(&seconds), "it outlives the talk");
    stopped(&ran.err, &seconds);
}

#[test]
fn one_call_has_no_session() {
    let world = World::new();
    let input = json!({"command": "touch made", "session": "dev"});
    let ran = world.tool("bash", &input, &["--mode", "bypass"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("there is no session dev: haft tool makes one call"), "{ran:?}");
    assert!(ran.out.contains("Run it without session"), "{ran:?}");
    assert!(!world.work().join("made").exists());
}

#[test]
fn a_rule_judges_a_command_of_a_session_like_any_other() {
    let world = World::new();
    world.settings("[permissions]\ndeny = [\"Bash(touch *)\"]\n[shell]\nsessions = 1\n");
    let mut client = Client::greeted(&world, &["--mode", "bypass"]);
    let mut call = |session: &str, command: &str| {
        text(&client.call("bash", &json!({"command": command, "session": session}))).to_owned()
    };
    assert_eq!(call("dev", "v=1"), "(no output)");
    let denied = call("dev", "touch made");
    assert!(denied.contains("forbids running `touch made`"), "{denied}");
    assert_eq!(call("dev", "echo $v; ls"), "1");
    let most = call("more", "echo no");
    assert!(
        most.contains("no more than 1 sessions may live at once, and so many do: dev"),
        "{most}"
    );
}

#[test]
fn what_a_shell_says_as_it_starts_is_called_so() {
    let world = World::new();
    let mut haft = world.haft(&["mcp", "--mode", "bypass"]);
    // bash complains of a locale that there is not.
    haft.env("LC_ALL", "xx_XX.UTF-8");
    let mut client = Client::of(haft);
    client.greet(&json!({}));
    let input = json!({"command": "echo one", "session": "dev"});
    let first = client.call("bash", &input);
    let started = "one\n[printed by the shell of session dev as it started (";
    assert!(text(&first).starts_with(started) && text(&first).contains("xx_XX"), "{first}");
    assert_eq!(text(&client.call("bash", &input)), "one");
    client.ends_well();
}

#[test]
fn shells_of_a_client_live_as_long_as_its_connection() {
    let (one, seconds) = (World::new(), unique_seconds());
    let mut client = Client::greeted(&one, &["--mode", "bypass", "--structured"]);
    let mut other = Client::greeted(&one, &["--mode", "bypass", "--structured"]);
    let input = |command: &str| json!({"command": command, "session": "dev"});
    client.call("bash", &input(&format!("v=first; sleep {seconds} &")));
    let apart = other.call("bash", &input("echo \"[$v]\""));
    assert_eq!(apart["result"]["structuredContent"]["stdout"], "[]\n", "{apart}");
    let same = client.call("bash", &input("echo \"[$v]\" >&2; exit 3"));
    let data = &same["result"]["structuredContent"];
    assert_eq!((&data["stderr"], &data["exit_code"]), (&json!("[first]\n"), &json!(3)), "{same}");
    assert!(!runs(&seconds), "it outlives its shell");
    let next = text(&client.call("bash", &input(&format!("sleep {seconds} &")))).to_owned();
    assert!(
        next.contains("[session dev is a new shell, for the last command ended it: "),
        "{next}"
    );
    client.ends_well();
    assert!(!runs(&seconds), "it outlives its client");
    let seconds = unique_seconds();
    other.call("bash", &input(&format!("trap '' TERM; sleep {seconds} &")));
    signal("TERM", other.process());
    gone(&seconds);
}
