//! snip: the model drops a stretch of its own history, and nothing of the person's.

use haft_testkit::http::HttpResponse;
use haft_types::{Body, BreakCause};
use serde_json::{Value, json};

use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, Ran, World, finish},
};

fn run(world: &World, wire: Wire, mock: &Mock, arguments: &[&str]) -> Ran {
    let ran = finish(wire.haft(world, &mock.url(), arguments), &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

/// Three files are read in three steps; then the first two reads are dropped.
fn answers(wire: Wire, from: &str, to: &str) -> Vec<HttpResponse> {
    let read = |number: u32| {
        let call = [("read", json!({"path": format!("f{number}.txt")}))];
        wire.calls(&format!("r{number}"), &call)
    };
    let snip = json!({"from": from, "to": to, "why": "neither file has it."});
    vec![
        read(1),
        read(2),
        read(3),
        wire.calls("s", &[("snip", snip)]),
        wire.text("Done."),
        wire.text("Still done."),
    ]
}

fn world() -> World {
    let world = World::new();
    for number in 1..=3 {
        world.file(&format!("f{number}.txt"), format!("content of file {number}\n").repeat(200));
    }
    world
}

#[test]
fn a_stretch_is_dropped_on_each_wire_and_stays_readable() {
    for wire in WIRES {
        let world = world();
        let mock = Mock::new(answers(wire, "out://c1", "out://c2"));
        run(&world, wire, &mock, &["-p", "Look for it. Keep this sentence."]);
        run(&world, wire, &mock, &["-p", "And now?", "-c"]);
        let bodies = mock.bodies();
        assert_eq!(bodies.len(), 6);
        assert!(bodies[3].contains("content of file 1") && bodies[3].contains("content of file 3"));
        for (number, body) in bodies[4..].iter().enumerate() {
            // The same in the run that goes on with the session.
            for gone in ["content of file 1", "content of file 2", "f1.txt", "f2.txt"] {
                assert!(!body.contains(gone), "{wire:?} {number}: {gone} in {body}");
            }
            for stays in ["content of file 3", "Keep this sentence.", "neither file has it"] {
                assert!(body.contains(stays), "{wire:?} {number}: no {stays} in {body}");
            }
            // A call and its result go together.
            let count = body.matches(wire.result_id()).count();
            assert_eq!(count, 2, "{wire:?} {number}: {body}");
        }
        assert!(bodies[4].contains("Dropped 4 messages with 2 calls"), "{}", bodies[4]);
        let session = world.only_session();
        let kept = world.tool("read", &json!({"path": "out://c1"}), &["--session", &session]);
        assert!(kept.out.contains("content of file 1"), "{kept:?}");
        let shown = world.run(&["session", "show", &session]);
        assert!(shown.out.contains("f1.txt"), "the log has all: {shown:?}");
        let breaks: Vec<BreakCause> = world
            .events()
            .iter()
            .filter_map(|event| match &event.body {
                Body::Break { cause, .. } => Some(*cause),
                _ => None,
            })
            .collect();
        assert_eq!(breaks, [BreakCause::First, BreakCause::Snip]);
    }
}

/// What is between stays where it is of somebody else.
#[test]
fn words_of_others_stay_within_a_stretch() {
    let wire = Wire::Anthropic;
    let world = world();
    let read = |id: &str| wire.calls(id, &[("read", json!({"path": "f1.txt"}))]);
    let snip = json!({"from": "user:1", "to": "user:2", "why": "the first try led nowhere"});
    let mock = Mock::new(vec![
        read("a"),
        wire.text("It is not there."),
        wire.calls("s", &[("snip", snip)]),
        wire.text("Yes."),
    ]);
    run(&world, wire, &mock, &["-p", "First rule."]);
    run(&world, wire, &mock, &["-p", "Second rule.", "-c"]);
    let last = mock.bodies().pop().unwrap();
    assert!(last.contains("First rule.") && last.contains("Second rule."), "{last}");
    assert!(!last.contains("It is not there.") && !last.contains("content of file 1"), "{last}");
}

#[test]
fn what_is_no_stretch_is_refused_by_name() {
    for (from, to, wanted) in [
        ("out://c2", "out://c1", "comes after"),
        ("out://c9", "out://c9", "not in view any more, or not complete"),
        ("out://c4", "out://c4", "not in view any more, or not complete"),
        ("user:7", "out://c1", "there are user:1 to user:1"),
        ("user:0", "user:1", "there are user:1 to user:1"),
        ("user:1", "user:1", "nothing of yours stands"),
        ("", "out://c1", "is no place"),
        ("/etc/passwd", "out://c1", "is no place"),
    ] {
        let world = world();
        let mock = Mock::new(answers(Wire::OpenAi, from, to));
        run(&world, Wire::OpenAi, &mock, &["-p", "Look."]);
        let last = mock.bodies().pop().unwrap();
        assert!(last.contains(wanted), "{from} {to}: {last}");
        assert!(last.contains("content of file 1"), "{from} {to}");
    }
}

/// Where no model is there it says why it does nothing, and clients of other agents do not see it.
#[test]
fn without_a_conversation_it_says_so() {
    let world = World::new();
    let input = json!({"from": "out://c1", "to": "out://c1", "why": "a test"});
    let ran = world.tool("snip", &input, &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.both_outputs().contains("there is no conversation here"), "{ran:?}");
    let mut client = crate::mcp_client::Client::greeted(&world, &[]);
    let listed = client.ask("tools/list", &json!({}))["result"].clone();
    let names: Vec<&Value> =
        listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert!(names.contains(&&json!("read")) && !names.contains(&&json!("snip")), "{names:?}");
}
