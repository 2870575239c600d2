//! `/rewind`: the conversation goes on from an earlier message, and nothing of what followed it is
//! sent to the model.

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
