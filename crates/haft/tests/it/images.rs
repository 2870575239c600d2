//! Images that a tool gives reach the model as images, on each wire.

use serde_json::json;

use crate::{
    mcp::PNG,
    wire::{Mock, WIRES, Wire},
    world::{Input, World, finish, holding},
};

#[test]
fn an_image_is_sent_as_one() {
    for wire in WIRES {
        let world = World::new();
        world.file("red.png", PNG);
        let mock = Mock::new(vec![
            wire.calls("see", &[("read", json!({"path": "red.png"}))]),
            wire.text("It is red."),
            wire.text("Still red."),
        ]);
        let ran = finish(wire.haft(&world, &mock.url(), &["-p", "look"]), &Input::Nothing);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is red.\n"), "{ran:?}");
        let ran = finish(wire.haft(&world, &mock.url(), &["-p", "again", "-c"]), &Input::Nothing);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let mark = match wire {
            Wire::Anthropic => r#""media_type":"image/png","data":"iVBORw0KGgo"#,
            Wire::OpenAi => r#""image_url":{"url":"data:image/png;base64,iVBORw0KGgo"#,
        };
        let bodies = mock.bodies();
        assert!(!bodies[0].contains(mark));
        for body in &bodies[1..] {
            assert_eq!(body.matches(mark).count(), 1, "{wire:?} {body}");
        }
        // The log names the image and does not hold it.
        assert!(holding(&world.state(), b"iVBORw0KGgo").is_empty());
        assert!(!holding(&world.state(), b"\x89PNG").is_empty(), "it is not kept beside the log");
    }
}
