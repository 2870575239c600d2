//! `enter_plan` and `exit_plan` through the faces: who can answer decides, and where nobody is that is
//! said.

use haft_types::{Body, Event, Mode};
use serde_json::json;

use crate::{
    line::terminal::Tmux,
    mock_provider::{Mock, WIRES},
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
