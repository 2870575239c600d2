//! `enter_plan` and `exit_plan` through the faces: who can answer decides, and where nobody is that is
//! said.

use haft_types::{Body, Event, Mode, Status};
use serde_json::json;

use crate::{
    line::terminal::Tmux,
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, World, finish},
};

const PLAN: &str = "1. Make made.txt\n2. Run the tests";

fn modes(events: &[Event]) -> Vec<Mode> {
    let modes = events.iter().filter_map(|event| match event.body {
        Body::Mode { mode, .. } => Some(mode),
        _ => None,
    });
    modes.collect()
}

/// A model that plans, presents its plan in the shape of Claude Code, and writes.
fn model(world: &World) -> String {
    let write = |name: &str| json!({"name": "write", "input": {"path": name, "content": "x\n"}});
    world.script(&[
        json!({"calls": [{"name": "EnterPlanMode", "input": {}}]}),
        json!({"calls": [write("early.txt")]}),
        json!({"calls": [{"name": "ExitPlanMode", "input": {"plan": PLAN}}]}),
        json!({"calls": [write("made.txt")]}),
        json!({"text": "The end."}),
    ])
}

#[test]
fn in_line_mode_a_key_approves_the_plan_that_was_shown() {
    let world = World::new();
    let tmux = Tmux::talk(&world, &model(&world), "");
    tmux.line("go on");
    tmux.sees("key:");
    let screen = tmux.screen();
    assert!(screen.contains("Make made.txt") && screen.contains("Run the tests"), "{screen}");
    assert!(screen.contains("[e] yes, and changes of files need no question"), "{screen}");
    tmux.types("e");
    tmux.sees("The end.");
    assert!(world.work().join("made.txt").exists() && !world.work().join("early.txt").exists());
    assert_eq!(modes(&world.events()), [Mode::Plan, Mode::AcceptEdits]);
}

#[test]
fn without_a_person_the_run_says_how_to_go_on() {
    for wire in WIRES {
        let world = World::new();
        let calls = [("exit_plan", json!({"plan": PLAN}))];
        let mock = Mock::new(vec![wire.calls("a", &calls), wire.text("The plan.")]);
        let flags = ["-p", "go on", "--mode", "plan"];
        let ran = finish(wire.haft(&world, &mock.url(), &flags), &Input::Nothing);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let bodies = mock.bodies();
        assert!(bodies[0].contains("exit_plan") && !bodies[0].contains("enter_plan"), "{wire:?}");
        assert!(bodies[0].contains("Explore first"), "{wire:?}: what the mode means is missing");
        let told = bodies[1].contains("nobody is here") && bodies[1].contains("--mode ask");
        assert!(told, "{wire:?} {}", bodies[1]);
        // Who goes on in another mode leaves the plan mode, and the model knows.
        let mock = Mock::new(vec![wire.text("Done.")]);
        let flags = ["-p", "do it", "-c", "--mode", "accept-edits"];
        let ran = finish(wire.haft(&world, &mock.url(), &flags), &Input::Nothing);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(mock.bodies()[0].contains("Mode plan is off"), "{wire:?}");
    }
}

#[test]
fn a_usual_run_without_a_person_has_neither() {
    let world = World::new();
    let wire = WIRES[0];
    let calls = [("enter_plan", json!({})), ("exit_plan", json!({"plan": PLAN}))];
    let mock = Mock::new(vec![wire.calls("a", &calls), wire.text("Done.")]);
    let ran = finish(wire.haft(&world, &mock.url(), &["-p", "go on"]), &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!mock.bodies()[0].contains("_plan\""), "{}", mock.bodies()[0]);
    assert_eq!(modes(&world.events()), []);
}

/// The file for the plan, as a request names it.
fn plan_file(body: &str) -> String {
    let (_, rest) = body.split_once("may grow in ").expect("the file is named");
    rest.split_once(", the only file").expect("its end").0.to_owned()
}

#[test]
fn in_mode_plan_the_file_of_the_plan_alone_can_be_written() {
    for wire in WIRES {
        let world = World::new();
        let mock = Mock::with(move |number, request| {
            let file = plan_file(&String::from_utf8_lossy(&request.body));
            let other = file.replace(".md", ".txt");
            let shell = json!({"command": format!("echo x > '{file}'")});
            match number {
                0 => wire.calls(
                    "a",
                    &[
                        ("write", json!({"path": file, "content": "1. Look\n"})),
                        ("write", json!({"path": other, "content": "x"})),
                        ("write", json!({"path": "made.txt", "content": "x"})),
                    ],
                ),
                1 => wire.calls(
                    "b",
                    &[
                        (
                            "edit",
                            json!({"path": file, "old_string": "Look", "new_string": "Look again"}),
                        ),
                        ("bash", shell),
                        ("read", json!({"path": file})),
                        ("ExitPlanMode", json!({})),
                    ],
                ),
                _ => wire.text("The plan."),
            }
        });
        let flags = ["-p", "go on", "--mode", "plan"];
        let ran = finish(wire.haft(&world, &mock.url(), &flags), &Input::Nothing);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let bodies = mock.bodies();
        let file = plan_file(&bodies[0]);
        let events = world.events();
        let ended: Vec<_> = events
            .iter()
            .filter_map(|event| match &event.body {
                Body::CallEnded { outcome, .. } => Some((outcome.status, outcome.joined_text())),
                _ => None,
            })
            .collect();
        // Calls that are refused end before those that run.
        let ends = |status: Status, words: &str| {
            ended.iter().filter(|(end, text)| *end == status && text.contains(words)).count()
        };
        assert_eq!(ends(Status::Done, "Created"), 1, "{ended:?}");
        assert_eq!(ends(Status::Denied, "plan mode only reads"), 3, "{ended:?}");
        assert_eq!(ends(Status::Done, "Look again"), 2, "edited and read: {ended:?}");
        // What it presents is the file: nobody is here who could approve it.
        assert_eq!(ends(Status::Failed, "nobody is here"), 1, "{ended:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "1. Look again\n");
        assert!(!world.work().join("made.txt").exists());
        is_haft_own(&world, wire, &file);
    }
}

/// In other modes the plan's file is one of haft's own.
fn is_haft_own(world: &World, wire: Wire, file: &str) {
    let write = [("write", json!({"path": file, "content": "x"}))];
    let mock = Mock::new(vec![wire.calls("c", &write), wire.text("End.")]);
    let flags = ["-p", "go on", "-c", "--mode", "accept-edits"];
    let ran = finish(wire.haft(world, &mock.url(), &flags), &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(mock.bodies()[1].contains("haft's own state"), "{}", mock.bodies()[1]);
}

#[test]
fn a_plan_can_be_edited_before_it_is_approved() {
    let world = World::new();
    let model = world.script(&[
        json!({"calls": [{"name": "exit_plan", "input": {"plan": PLAN}}]}),
        json!({"text": "The end."}),
    ]);
    world.file("editor.sh", "#!/bin/sh\nsed -i 's/made.txt/better.txt/' \"$1\"\n");
    let tmux = Tmux::start(&world);
    tmux.line("export EDITOR='sh editor.sh'; unset VISUAL");
    tmux.haft(&format!("--model '{model}' --mode plan"));
    tmux.sees("a message;");
    tmux.line("go on");
    tmux.sees("ctrl+g edits it");
    tmux.key("C-g");
    tmux.sees("1. Make better.txt");
    tmux.sees("ctrl+g edits it");
    tmux.types("y");
    tmux.sees("The end.");
    let text = world.outcomes()[0]["content"].to_string();
    assert!(text.contains("-1. Make made.txt\\n+1. Make better.txt"), "{text}");
    assert_eq!(modes(&world.events()), [Mode::Ask]);
    tmux.key("C-d");
    tmux.sees("ended with 0");
}

#[test]
fn what_a_model_writes_behind_a_change_of_the_mode_waits_for_it() {
    let world = World::new();
    // Something that takes a while stands before the mode changes.
    world.settings(
        "[[hooks.PreToolUse]]\nmatcher = 'enter_plan'\n[[hooks.PreToolUse.hooks]]\ntype = 'command'\n\
         command = 'while [ ! -e ../begun ]; do sleep 0.05; done; sleep 0.3'\n",
    );
    let write = |name: &str| json!({"name": "write", "input": {"path": name, "content": "x\n"}});
    let model = world.script(&[
        json!({"calls": [{"name": "enter_plan", "input": {}}, write("early.txt")]}),
        json!({"calls": [{"name": "exit_plan", "input": {"plan": PLAN}}, write("made.txt")]}),
        json!({"text": "The end."}),
    ]);
    let tmux = Tmux::talk(&world, &model, "--mode bypass");
    tmux.line("go on");
    std::fs::write(world.root().join("begun"), "").unwrap();
    tmux.sees("key:");
    tmux.types("e");
    tmux.sees("The end.");
    assert!(!world.work().join("early.txt").exists(), "it was written before the mode began");
    assert!(world.work().join("made.txt").exists(), "it was judged before the plan was approved");
}

#[test]
fn that_mode_plan_is_on_is_known_behind_a_rewind_and_a_summary() {
    for wire in WIRES {
        let world = World::new();
        let mock = Mock::with(move |number, _| match number {
            1 => wire.calls("a", &[("enter_plan", json!({}))]),
            _ => wire.text("All right."),
        });
        let talk = |flags: &[&str], lines: &str| {
            let mut command = wire.haft(&world, &mock.url(), &["--line"]);
            command.args(flags);
            let ran = finish(command, &Input::Pipe(lines));
            assert_eq!(ran.code, Some(0), "{ran:?}");
            mock.bodies()
        };
        let bodies = talk(&[], "unoo\ndoss\n/rewind 1\ntress\n/compact\ncuatro\n");
        let tress = bodies.iter().find(|body| body.contains("tress")).unwrap();
        assert!(!tress.contains("doss") && tress.contains("Mode plan is on"), "{tress}");
        let cuatro = bodies.last().unwrap();
        assert!(cuatro.contains("cuatro") && cuatro.contains("summed up here"), "{cuatro}");
        assert!(cuatro.contains("The mode\\nMode plan is on"), "{cuatro}");
        // Who goes on in another mode is told that it is off.
        let bodies = talk(&["-c", "--mode", "accept-edits"], "cinco\n");
        let cinco = bodies.last().unwrap();
        assert!(cinco.contains("cinco") && cinco.contains("Mode plan is off"), "{cinco}");
    }
}

#[test]
fn haft_tool_says_why_they_do_nothing() {
    let world = World::new();
    for (name, input, why) in [
        ("enter_plan", json!({}), "could approve a plan"),
        ("EnterPlanMode", json!({}), "could approve a plan"),
        ("exit_plan", json!({"plan": PLAN}), "no conversation here"),
    ] {
        let ran = world.tool(name, &input, &[]);
        assert!(ran.both_outputs().contains(why), "{name}: {ran:?}");
        assert!(!ran.both_outputs().contains("safest reading"), "{name}: {ran:?}");
    }
}
