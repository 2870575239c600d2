//! Instruction files of a project: what of them the model is told, and what is left out.

use haft_types::Body;
use serde_json::json;

use crate::world::{Ran, World, notices};

#[test]
fn what_no_rule_lets_be_read_is_no_instruction_either() {
    let world = World::new();
    world.file("AGENTS.md", "Always say ALPHA.\n@more.md");
    world.file("more.md", "Always say OMEGA.");
    let model = world.script(&[json!({"text": "Hi."})]);
    let flags = ["-p", "go", "--model", &model, "--output", "stream-json"];
    // What the model is told stands in the log.
    let told = |ran: &Ran| {
        let session = ran.lines()[0]["session"].as_str().unwrap().to_owned();
        world.run(&["session", "show", &session, "--json"]).out
    };
    let ran = world.run(&flags);
    let said = told(&ran);
    assert!(said.contains("ALPHA") && said.contains("OMEGA"), "{said}");
    for rule in ["Read", "read", "Read(*)"] {
        let ran = world.run(&[&flags[..], &["--deny", rule]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let said = told(&ran);
        assert!(!said.contains("ALPHA") && !said.contains("OMEGA"), "{rule}: {said}");
        assert!(ran.err.contains("AGENTS.md is left out"), "{rule}: {ran:?}");
    }
}

#[test]
fn instructions_are_text_and_whatever_is_left_out_is_told_once() {
    let world = World::new();
    let utf16: Vec<u8> = std::iter::once(0xfeff)
        .chain("Always say Grüße.".encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    world.file("AGENTS.md", utf16);
    world.file("CLAUDE.md", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    let model = world.script(&[json!({"text": "Hi."}), json!({"text": "Ho."})]);
    let ran = world.run(&["-p", "go", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("CLAUDE.md is left out") && ran.err.contains("PNG"), "{ran:?}");
    let told = world.events();
    let system = told.iter().find_map(|event| match &event.body {
        Body::Pinned { system, .. } => Some(system.join("\n")),
        _ => None,
    });
    let system = system.unwrap();
    assert!(system.contains("Always say Grüße.") && !system.contains("IHDR"), "{system}");
    assert_eq!(notices(&told).len(), 1, "{:?}", notices(&told));
    let ran = world.run(&["-c", "-p", "more", "--model", &model]);
    assert_eq!(
        (ran.code, &*ran.err),
        (Some(0), ""),
        "it was told when the instructions were taken"
    );
}
