//! `/model` in line mode: another model from the next request on.

use haft_types::{Body, BreakCause};
use serde_json::Value;

use crate::{
    mock_provider::{Mock, Wire},
    world::{CANARY, Input, World, finish},
};

const WIRE: Wire = Wire::OpenAi;

fn talk(world: &World, mock: &Mock, flags: &[&str], lines: &str) -> crate::world::Ran {
    let mut command = world.haft(flags);
    command.env(WIRE.key_variable(), CANARY).env(WIRE.url_variable(), WIRE.base(&mock.url()));
    finish(command, &Input::Pipe(lines))
}

#[test]
fn a_model_is_changed_between_requests_and_the_session_goes_on_with_it() {
    let (world, mock) = (
        World::new(),
        Mock::new(["one", "two", "three", "four"].map(|text| WIRE.text(text)).into()),
    );
    let lines = "first\n/model\n/model openai/mock-2\n/model openai/gpt-3.5-turbo low\n/model no/such\n\
                 /model openai/x never\nsecond\nthird\n";
    let ran = talk(&world, &mock, &["--line", "--model", "openai/mock-1"], lines);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in [
        "model openai/mock-1\n",
        "model openai/mock-2, from the next request on",
        "model openai/gpt-3.5-turbo, from the next request on",
        "; the model is still openai/gpt-3.5-turbo",
        "! \"never\"",
    ] {
        assert!(ran.out.contains(part), "{part}: {ran:?}");
    }
    let ran = talk(&world, &mock, &["--line", "-c"], "fourth\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let bodies: Vec<Value> =
        mock.bodies().iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    let models: Vec<&str> = bodies.iter().map(|body| body["model"].as_str().unwrap()).collect();
    assert_eq!(models, ["mock-1", "gpt-3.5-turbo", "gpt-3.5-turbo", "gpt-3.5-turbo"]);
    // It sees no images, so that its tools are described in other words; all that follows is one prefix.
    assert_ne!(bodies[0]["tools"], bodies[1]["tools"]);
    for later in &bodies[2..] {
        assert_eq!(later["tools"], bodies[1]["tools"]);
        let sent = bodies[1]["messages"].as_array().unwrap();
        assert_eq!(later["messages"].as_array().unwrap()[..sent.len()], sent[..]);
    }
    let events = world.events();
    let breaks: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Break { cause, at_byte } => Some((*cause, *at_byte)),
            _ => None,
        })
        .collect();
    let pinned: Vec<&String> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Pinned { tools, .. } => Some(tools),
            _ => None,
        })
        .collect();
    let at = pinned[0].bytes().zip(pinned[1].bytes()).position(|(a, b)| a != b).unwrap();
    let at = Some(u64::try_from(at).unwrap());
    assert_eq!(breaks, [(BreakCause::First, None), (BreakCause::Model, at)]);
}
