//! What a person is told of commands beside their output: what they changed, what became of them, and
//! where the next one starts.

use serde_json::{Value, json};

use crate::{
    line::terminal::Tmux,
    world::{Input, Ran, World},
};

fn bash(command: &str) -> Value {
    json!({"name": "bash", "input": {"command": command}})
}

/// Runs these calls one after the other in line mode, then these lines.
fn talk(world: &World, calls: &[Value], lines: &str) -> Ran {
    let answers = calls.iter().map(|call| json!({"calls": [call]}));
    let model = world.script(&answers.chain([json!({"text": "The end."})]).collect::<Vec<_>>());
    let flags = ["--line", "--mode", "bypass", "--model", &model];
    world.run_with(&flags, &Input::Pipe(&format!("go\n{lines}/quit\n")))
}

/// What is shown of the call whose head ends so: its lines to the next empty one.
fn shown<'a>(ran: &'a Ran, head: &str) -> Vec<&'a str> {
    let mut lines =
        ran.out.lines().skip_while(|line| !line.starts_with("* ") || !line.ends_with(head));
    assert!(lines.next().is_some(), "{head} is not in {}", ran.out);
    lines.take_while(|line| !line.is_empty()).map(str::trim_start).collect()
}

#[test]
fn what_commands_change_is_seen_and_taken_back() {
    let world = World::new();
    world.file("old.txt", "old\n");
    let calls = [
        bash("mkdir -p a/b && touch a/b/{1..30}"),
        bash("for i in {10..49}; do echo $i > f$i; done; echo new > old.txt; rm f10; echo done"),
        bash("cd a; mv ../f11 ../g; test -e nothing"),
    ];
    let ran = talk(&world, &calls, "/undo\n/undo 2\n");
    assert_eq!(shown(&ran, "touch a/b/{1..30}"), ["[created: a/; 31 inside of these folders]"]);
    let names: Vec<String> = (11..30).map(|n| format!("f{n}")).collect();
    assert_eq!(
        shown(&ran, "; echo done"),
        ["done", &format!("[changed: old.txt; created: {}; 20 more]", names.join(", "))]
    );
    assert_eq!(
        shown(&ran, "test -e nothing"),
        ["exit code 1: false", "[the next command starts in a]", "[renamed: f11 to g]"]
    );
    assert!(ran.out.contains("\nTook back c3 ("), "{ran:?}");
    assert_eq!(world.read("old.txt"), "old\n");
    assert!(!world.work().join("a").exists() && !world.work().join("f12").exists(), "{ran:?}");
}

#[test]
fn what_became_of_commands_is_seen() {
    let world = World::new();
    let session =
        |command: &str| json!({"name": "bash", "input": {"command": command, "session": "dev"}});
    let calls = [
        json!({"name": "bash", "input": {"command": "touch t; sleep 60", "timeout_ms": 500}}),
        bash("sleep 60 & echo $!"),
        json!({"name": "bash", "input": {"command": "echo 5; exit 3", "run_in_background": true}}),
        json!({"name": "job", "input": {"action": "wait", "job": "j1"}}),
        session("exit 7"),
        session("cd / && false"),
    ];
    let ran = talk(&world, &calls, "");
    let timed_out = shown(&ran, "touch t; sleep 60");
    assert!(timed_out[0].starts_with("timed out after 0.5 s and was stopped"), "{ran:?}");
    assert!(
        timed_out[1..] == ["[created: t]"] || timed_out[1].contains("is still looked for"),
        "{ran:?}"
    );
    let stopped = shown(&ran, "echo $!");
    assert!(
        stopped.len() == 2
            && stopped[1].starts_with("[still running when the command ended, and stopped: ")
            && stopped[1].contains(&format!("{} sleep 60", stopped[0])),
        "{ran:?}"
    );
    let begun = shown(&ran, "echo 5; exit 3");
    assert_eq!(begun.iter().filter(|line| **line == "job j1 in the background").count(), 1);
    let ended = shown(&ran, "job wait").into_iter().filter(|line| line.contains("exit code"));
    let ended: Vec<&str> = ended.filter(|line| !line.starts_with("- ")).collect();
    assert!(
        ended.len() == 1 && ended[0].starts_with("exit code 3: j1 has ended after "),
        "{ran:?}"
    );
    let gone = "[the shell of session dev ended with this; the next call begins a new one, without \
                its variables, functions and processes]";
    assert_eq!(shown(&ran, "exit 7"), ["exit code 7", gone]);
    let new = "[session dev is a new shell, for the last command ended it: variables and functions \
               of the last one are lost]";
    let outside =
        "[/ is outside the workspace: the next command of session dev starts in its root]";
    assert_eq!(shown(&ran, "cd / && false"), ["exit code 1", new, outside]);
}

#[test]
fn what_cannot_be_taken_back_is_seen() {
    let world = World::new();
    world.file("big", "0123456789".repeat(100));
    world.settings("[shell.changes]\nfile_bytes = 500\n");
    let ran = talk(&world, &[bash("echo >> big")], "/undo\n");
    let lines = shown(&ran, "echo >> big");
    assert_eq!(lines[0], "[changed: big]", "{ran:?}");
    assert!(lines[1].starts_with("[cannot be undone: big ("), "{ran:?}");
    world.settings("[shell.changes]\nfiles = 1\n");
    world.file("more", "");
    let ran = talk(&world, &[bash("echo x > made")], "");
    let lines = shown(&ran, "echo x > made");
    assert!(lines[0].starts_with("[what commands change is not looked for in this session: "));
}

#[test]
fn a_terminal_shows_whole_lines_and_no_command_twice() {
    let world = World::new();
    let name = "long-".repeat(12);
    let command = format!("touch {name}{{1..3}}");
    let input = json!({"command": "sleep 60", "timeout_ms": 300});
    let model = world.script(&[
        json!({"calls": [bash(&command)]}),
        json!({"calls": [{"name": "bash", "input": input}]}),
        json!({"text": "The end."}),
    ]);
    let tmux = Tmux::talk(&world, &model, "--mode bypass");
    tmux.line("go");
    tmux.sees("The end.");
    // As they stand, without joining what the terminal broke.
    let screen = tmux.tmux(&["capture-pane", "-p", "-S", "-"]);
    assert_eq!(screen.matches("touch long-").count(), 1, "{screen}");
    let names = ["[created:", &format!("{name}1,"), &format!("{name}2,"), &format!("{name}3]")];
    let at = screen.find(names[0]).unwrap();
    assert_eq!(screen[at..].split_whitespace().take(4).collect::<Vec<_>>(), names, "{screen}");
    assert!(
        screen[at..].lines().skip(1).take(2).all(|line| line.starts_with("  long-")),
        "{screen}"
    );
    let told = screen.lines().skip_while(|line| !line.contains("timed out after 0.3 s"));
    let told: Vec<&str> = told.take(2).collect();
    assert!(told[0].starts_with("  timed out") && told[1].starts_with("  "), "{screen}");
    assert!(
        format!("{} {}", told[0], told[1].trim()).ends_with("if it needs more time"),
        "{screen}"
    );
}

#[test]
fn temporary_files_of_haft_are_none_that_a_command_made() {
    let world = World::new();
    // What a write of another haft is halfway through, and names that are like it.
    let its = ".haft-20002-0a1b2c3d-0123456789abcdef.tmp";
    let command = format!("touch {its} .haft-20002.tmp; mkdir -p a; touch a/{its}");
    let ran = world.tool("bash", &json!({ "command": command }), &["--mode", "bypass"]);
    assert!(ran.out.contains(".haft-20002.tmp") && !ran.out.contains(its), "{ran:?}");
    let ran =
        world.tool("bash", &json!({"command": "rm .haft-* a/.haft-*"}), &["--mode", "bypass"]);
    assert!(ran.out.contains(".haft-20002.tmp") && !ran.out.contains(its), "{ran:?}");
}
