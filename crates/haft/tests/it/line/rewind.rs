//! `/rewind`: the conversation goes on from an earlier message, and nothing of what followed it is
//! sent to the model.

use serde_json::json;

use crate::{
    mock_provider::{Mock, WIRES},
    world::{Input, World, finish},
};

#[test]
fn the_model_is_sent_nothing_of_what_was_left_and_a_resumed_session_neither() {
    for wire in WIRES {
        let mock = Mock::with(move |number, _| wire.text(&format!("Answer {number}.")));
        let world = World::new();
        let talk = |flags: &[&str], lines: &str| {
            let mut command = wire.haft(&world, &mock.url(), &["--line"]);
            command.args(flags);
            finish(command, &Input::Pipe(lines))
        };
        let ran = talk(&[], "unoo\ndoss\n/rewind\n/rewind 1\ntress\n/rewind 9\n");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        for told in ["  1  doss\n", "  2  unoo\n", "back to before: doss", "no message 9"] {
            assert!(ran.out.contains(told), "{told:?}: {ran:?}");
        }
        let last = mock.bodies().pop().unwrap();
        assert!(last.contains("unoo") && last.contains("Answer 0."), "{last}");
        assert!(last.contains("tress"), "{last}");
        assert!(!last.contains("doss") && !last.contains("Answer 1."), "{last}");
        // Another process goes on with the branch that counts; and back to the other one.
        talk(&["-c"], "cuatro\n/rewind back\ncinco\n");
        let bodies = mock.bodies();
        let [.., cuatro, cinco] = &bodies[..] else { panic!("{bodies:?}") };
        assert!(cuatro.contains("tress") && !cuatro.contains("doss"), "{cuatro}");
        assert!(cinco.contains("doss") && !cinco.contains("tress"), "{cinco}");
        assert!(!cinco.contains("cuatro"), "{cinco}");
    }
}

#[test]
fn files_go_back_to_where_they_were_by_turns() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let edit = |old: &str, new: &str| {
        json!({"name": "edit", "input": {"path": "a.txt", "edits": [
            {"old_text": old, "new_text": new}]}})
    };
    let model = world.script(&[
        json!({"calls": [edit("alpha", "beta")]}),
        json!({"text": "One."}),
        json!({"calls": [edit("beta", "gamma"), edit("gamma", "delta")]}),
        json!({"text": "Two."}),
        json!({"calls": [edit("delta", "omega")]}),
        json!({"text": "Three."}),
    ]);
    let flags = ["--line", "--model", &model, "--mode", "accept-edits"];
    let lines = "one\ntwo\nthree\n/rewind 2 files\n";
    let ran = finish(world.haft(&flags), &Input::Pipe(lines));
    assert_eq!((ran.code, world.read("a.txt").as_str()), (Some(0), "beta\n"), "{ran:?}");
    // The talk stands where it was, and back is not what was not gone.
    let ran = finish(
        world.haft(&[&flags[..], &["-c"]].concat()),
        &Input::Pipe("/rewind back\n/rewind\n"),
    );
    assert!(ran.out.contains("there was no rewind") && ran.out.contains("  1  three"), "{ran:?}");
}
