//! Images that a tool gives reach the model as images, on each wire.

use serde_json::json;

use crate::{
    mcp::sdk::PNG,
    mock_provider::{Mock, WIRES, Wire},
    world::{CANARY, Input, World, finish, holding},
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
            Wire::Responses => r#""image_url":"data:image/png;base64,iVBORw0KGgo"#,
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

/// The body of the request that follows the call which read a picture.
fn body_after_a_picture(world: &World, wire: Wire, model: &str) -> String {
    body_after(world, wire, model, "red.png")
}

fn body_after(world: &World, wire: Wire, model: &str, picture: &str) -> String {
    let mock = Mock::new(vec![
        wire.calls("see", &[("read", json!({ "path": picture }))]),
        wire.text("I looked."),
    ]);
    let mut command = world.haft(&["-p", "look", "--model", model]);
    command.env(wire.key_variable(), CANARY).env(wire.url_variable(), wire.base(&mock.url()));
    let ran = finish(command, &Input::Nothing);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "I looked.\n"), "{ran:?}");
    mock.bodies().pop().unwrap()
}

#[test]
fn a_model_without_vision_gets_a_note_instead_of_an_image() {
    for (name, settings, seen) in [
        ("mock-1", "", true),
        ("mock-1", "models.'WIRE/mock-1'.vision = false", false),
        ("mock-1", "models.'WIRE/mock-2'.vision = false", true),
        ("claude-2.1", "", false),
        ("deepseek-chat", "", false),
        ("deepseek-chat", "models.'WIRE/deepseek-chat'.vision = true", true),
    ] {
        for wire in WIRES {
            let provider = wire.model().split('/').next().unwrap();
            let world = World::new();
            world.file("red.png", PNG);
            world.settings(&settings.replace("WIRE", provider));
            let body = body_after_a_picture(&world, wire, &format!("{provider}/{name}"));
            let picture = body.contains("iVBORw0KGgo");
            let note = body.contains("this model takes no images");
            assert_eq!((picture, note), (seen, !seen), "{wire:?} {name} {settings} {body}");
            assert_eq!(body.contains("bmp) are shown"), seen, "{wire:?} {name} {settings}");
        }
    }
}

/// A picture of 2,400 x 2 black pixels, more than a model takes along one side.
fn wide() -> Vec<u8> {
    let (width, height, head) = (2_400_u32, 2_u32, 54_u32);
    let size = width * height * 3;
    let mut out = b"BM".to_vec();
    for word in [head + size, 0, head, 40, width, height, 24 << 16 | 1, 0, size, 0, 0, 0, 0] {
        out.extend(word.to_le_bytes());
    }
    out.extend(vec![0; usize::try_from(size).unwrap()]);
    out
}

#[test]
fn only_who_sees_an_image_is_told_how_its_coordinates_are_scaled() {
    for (name, seen) in [("mock-1", true), ("claude-2.1", false)] {
        for wire in WIRES {
            let provider = wire.model().split('/').next().unwrap();
            let world = World::new();
            world.file("wide.bmp", wide());
            let body = body_after(&world, wire, &format!("{provider}/{name}"), "wide.bmp");
            assert!(body.contains("2400 x 2 pixels"), "{wire:?} {name} {body}");
            assert_eq!(body.contains("coordinates"), seen, "{wire:?} {name} {body}");
            assert_eq!(body.contains("this model takes no images"), !seen, "{wire:?} {name}");
        }
    }
}
