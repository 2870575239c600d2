//! Agents beside the main one, by the program of `examples/delegate.rs`, and two sessions in one process, by
//! that of `examples/embed.rs`.

use haft_types::{Body, Event};
use serde_json::{Value, json};

use crate::line::terminal::Tmux;
use crate::world::{
    Input, PATIENCE, Ran, World, all_calls_ended, example, finish, gone, runs, unique_seconds,
    until,
};

/// A world whose main agent sends two others: one writes a file, one only may look.
fn world() -> (World, String) {
    let world = World::new();
    let write = |name: &str| json!({"name": "write", "input": {"path": name, "content": name}});
    let one = world.script(&[
        json!({"text": "One begins with words that go on for a while.", "calls": [write("one.txt")]}),
        json!({"text": "One is done.", "usage": {"input": 10, "output": 4}}),
    ]);
    let two = world.script(&[
        json!({"text": "Two begins with words that go on for a while.", "calls": [write("two.txt")]}),
        json!({"text": "Two is done."}),
    ]);
    let tasks = json!({"tasks": [
        {"name": "one", "model": one, "prompt": "Write."},
        {"name": "two", "model": two, "prompt": "Write, too.", "mode": "plan"},
        {"name": "three", "model": "script:/nowhere", "prompt": "Nothing."},
    ]});
    let main = world.script(&[
        json!({"text": "I delegate.", "calls": [{"name": "delegate", "input": tasks}]}),
        json!({"text": "All came back."}),
        json!({"text": "And once more."}),
    ]);
    (world, main)
}

fn run(world: &World, flags: &[&str], input: &Input<'_>) -> Ran {
    let mut command = world.program(example("delegate"));
    command.args(["--mode", "bypass"]).args(flags);
    finish(command, input)
}

#[test]
fn a_run_with_other_agents_ends_with_the_main_one_and_goes_on() {
    let (world, model) = world();
    let ran = run(&world, &["-p", "go", "--model", &model], &Input::Nothing);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "All came back.\n"), "{ran:?}");
    // The narrower mode holds for the one that has it.
    assert_eq!(world.read("one.txt"), "one.txt");
    assert!(!world.work().join("two.txt").exists());
    let told = world.outcomes().last().unwrap().clone();
    let text = crate::world::text(&told);
    for part in
        ["one: One begins", "One is done.", "two: Two begins", "Two is done.", "three failed:"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    // What is pinned is the main agent's: going on breaks nothing.
    let ran = run(&world, &["-p", "again", "-c", "--output", "stream-json"], &Input::Nothing);
    assert_eq!(ran.lines().last().unwrap()["text"], "And once more.", "{ran:?}");
    let is_pin =
        |event: &&Event| matches!(event.body, Body::Pinned { .. }) && event.agent.is_main();
    assert_eq!(world.events().iter().filter(is_pin).count(), 1);
}

#[test]
fn programs_read_which_agent_did_what() {
    let (world, model) = world();
    let flags = ["-p", "go", "--model", &model, "--output", "stream-json"];
    let ran = run(&world, &flags, &Input::Nothing);
    let lines = ran.lines();
    let of = |name: &str| {
        let is_it = |line: &&Value| line["agent"] == json!([name]) && line["type"] == "assistant";
        lines.iter().filter(is_it).count()
    };
    assert_eq!((of("one"), of("two")), (2, 2), "{ran:?}");
    let last = lines.last().unwrap();
    assert_eq!((&last["text"], &last["status"]), (&json!("All came back."), &json!("done")));
    // What another agent was denied is its own affair; it is seen in the lines.
    assert_eq!(last["denials"], json!([]));
    let denied = lines.iter().find(|line| line["status"] == "denied").unwrap();
    assert_eq!(denied["agent"], json!(["two"]));
}

#[test]
fn the_json_of_a_run_is_of_the_main_agent_and_counts_all() {
    let (world, model) = world();
    let ran = run(&world, &["-p", "go", "--model", &model, "--output", "json"], &Input::Nothing);
    assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 1), "{ran:?}");
    let result = &ran.lines()[0];
    assert_eq!((&result["text"], &result["status"]), (&json!("All came back."), &json!("done")));
    assert_eq!(result["denials"], json!([]));
    let usage = &result["usage"];
    assert_eq!((&usage["input"], &usage["output"]), (&json!(10), &json!(4)), "{result}");
}

#[test]
fn an_interrupt_of_the_main_agent_reaches_those_below() {
    let world = World::new();
    let seconds = unique_seconds();
    let sleep = json!({"name": "bash", "input": {"command": format!("sleep {seconds}")}});
    let child = world.script(&[json!({"calls": [sleep]}), json!({"text": "Never."})]);
    let tasks = json!({"tasks": [{"name": "one", "model": child, "prompt": "Wait."}]});
    let main = world.script(&[
        json!({"text": "I delegate.", "calls": [{"name": "delegate", "input": tasks}]}),
        json!({"text": "I go on."}),
    ]);
    let tmux = Tmux::start(&world);
    let program = example("delegate");
    tmux.line(&format!("{} --line --mode bypass --model {main}", program.display()));
    tmux.sees("/help");
    tmux.line("go");
    assert!(until(PATIENCE, || runs(&seconds)), "{}", tmux.screen());
    tmux.key("C-c");
    gone(&seconds);
    let is_end = |event: &&Event, agent: &str| {
        event.agent.to_string() == agent && matches!(event.body, Body::TurnEnded { .. })
    };
    let both = || ["", "one"].iter().all(|of| world.events().iter().any(|e| is_end(&e, of)));
    assert!(until(PATIENCE, both), "{}", tmux.screen());
    tmux.line("go on");
    tmux.sees("I go on.");
    tmux.line("/quit");
    tmux.sees("Go on with:");
    all_calls_ended(&world.events());
}

#[test]
fn no_line_mixes_two_agents() {
    let (world, model) = world();
    let ran = run(&world, &["--line", "--model", &model], &Input::Pipe("go\n"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = world
        .program(example("delegate"))
        .args(["session", "show", &world.only_session()])
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    for text in [&ran.out, &shown] {
        let mut agent = "main";
        let mut seen = Vec::new();
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                agent = name;
            }
            let words = ["I delegate.", "One begins", "One is done", "Two begins", "Two is done"];
            let here: Vec<&&str> = words.iter().filter(|words| line.starts_with(**words)).collect();
            assert!(here.len() <= 1, "{line}");
            seen.extend(here.iter().map(|words| (agent.to_owned(), words.to_string())));
        }
        let owner = |words: &str| match &words[..3] {
            "One" => "one",
            "Two" => "two",
            _ => "main",
        };
        assert_eq!(seen.len(), 5, "{text}");
        assert!(seen.iter().all(|(agent, words)| agent == owner(words)), "{seen:?}\n{text}");
    }
}

#[test]
fn questions_and_failures_of_other_agents_stand_under_their_names() {
    let world = World::new();
    let write = |name: &str| json!({"name": "write", "input": {"path": name, "content": name}});
    let child = |name: &str| {
        let begins = format!("{name} has looked around and wants to write.");
        let ends = format!("{name} is done.");
        world.script(&[
            json!({"text": begins, "calls": [write(&format!("{name}.txt"))]}),
            json!({"text": ends}),
        ])
    };
    let tasks = json!({"tasks": [
        {"name": "one", "model": child("one"), "prompt": "Write."},
        {"name": "two", "model": child("two"), "prompt": "Write, too."},
        {"name": "three", "model": "script:/nowhere", "prompt": "Nothing."},
    ]});
    let main = world.script(&[
        json!({"text": "I delegate.", "calls": [{"name": "delegate", "input": tasks}]}),
        json!({"text": "All came back."}),
    ]);
    let tmux = Tmux::start(&world);
    let program = example("delegate");
    tmux.line(&format!("{} --line --model {main}", program.display()));
    tmux.sees("/help");
    tmux.line("go");
    // One gets a yes, the other a no; which of them asks first is open.
    let asked = |count| tmux.screen().matches("key:").count() == count;
    assert!(until(PATIENCE, || asked(1)), "{}", tmux.screen());
    tmux.types("y");
    assert!(until(PATIENCE, || asked(2)), "{}", tmux.screen());
    tmux.types("n");
    let shown = tmux.sees("All came back.");
    assert_eq!(unowned(&shown), [""; 0], "{shown}");
    for part in ["[one]", "[two]", "[main]", "? Writing one.txt", "? Writing two.txt"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    for part in ["three failed: ", "/nowhere", "one is done.", "two is done."] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let made = ["one.txt", "two.txt"].map(|name| world.work().join(name).exists());
    assert_ne!(made[0], made[1], "{shown}");
    tmux.line("/quit");
    let goes_on = tmux.sees("Go on with:");
    assert!(goes_on.contains("haft -c"), "{goes_on}");
    // Which agent did what is in the log, and what is pinned there is each agent's own.
    let events = world.events();
    all_calls_ended(&events);
    let pins = |agent: &str| {
        let of = |event: &&Event| {
            event.agent.to_string() == agent && matches!(event.body, Body::Pinned { .. })
        };
        events.iter().filter(of).count()
    };
    assert_eq!(["", "one", "two", "three"].map(pins), [1, 1, 1, 0]);
}

/// Words of an agent that stand under the name of another one.
fn unowned(text: &str) -> Vec<String> {
    let mut agent = "main".to_owned();
    let mut wrong = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            name.clone_into(&mut agent);
        }
        for name in ["one", "two"] {
            let is_of = [format!("{name} has looked"), format!("? Writing {name}.txt")];
            if is_of.iter().any(|words| line.starts_with(words)) && agent != name {
                wrong.push(line.to_owned());
            }
        }
    }
    wrong
}

#[test]
fn two_sessions_in_one_process_share_nothing() {
    let world = World::new();
    let folders = ["a", "b"].map(|name| world.root().join(name));
    for folder in &folders {
        std::fs::create_dir(folder).unwrap();
    }
    let mut command = world.program(example("embed"));
    let ran = finish(
        {
            command.args(&folders);
            command
        },
        &Input::Nothing,
    );
    let came = ran.json();
    // A secret is hidden in the session that knows it.
    let read = |at: usize| came["read"][at]["text"].as_str().unwrap();
    assert!(read(0).contains("{{secret:TOKEN}}") && read(1).contains("embed-token-"), "{came}");
    // So is a mode.
    let status = |at: usize| &came["written"][at]["status"];
    assert_eq!((status(0), status(1)), (&json!("denied"), &json!("done")), "{came}");
    assert!(!folders[0].join("new.txt").exists() && folders[1].join("new.txt").exists());
    // A job is its session's, and goes on when the other session ends.
    assert_eq!((&came["jobs"], &came["running"]), (&json!([0, 1]), &json!(1)), "{came}");
    assert_eq!((&came["closed"], &came["after"]["status"]), (&json!([]), &json!("done")));
    assert!(came["stopped"].to_string().contains("sleep 60"), "{came}");
    assert_eq!(came["calls"], json!([2, 4]), "{came}");
}
