//! Whatever a project, a person or a file brings along, no terminal takes it for a command.

use std::fs;

use haft_render::is_hidden;
use serde_json::json;

use crate::world::{CANARY, Input, Ran, World, finish};

/// A title for the terminal and a character that turns the line around.
const HOSTILE: &str = "ev\u{1b}]0;pwn\u{7}il\u{202e}";
/// The same in TOML.
const HOSTILE_TOML: &str = "ev\\u001b]0;pwn\\u0007il\\u202e";

/// Fails unless the text was told, and nothing of it acts on a terminal.
fn is_harmless(ran: &Ran) {
    let said = ran.both_outputs();
    assert!(said.contains("pwn"), "not told at all: {ran:?}");
    let raw = said.find(|c: char| is_hidden(c) && !matches!(c, '\n' | '\t'));
    assert_eq!(raw, None, "{said:?}");
}

fn project(text: &str) -> World {
    let world = World::new();
    fs::create_dir(world.work().join(".git")).unwrap();
    world.file(".haft/settings.toml", text);
    world
}

#[test]
fn a_model_that_a_project_names_is_shown_with_signs() {
    for name in ["openai/", "anthropic/"] {
        let world = project(&format!("model = \"{name}{HOSTILE_TOML}\"\n"));
        let mut command = world.haft(&["--line", "--trust"]);
        command.env("OPENAI_API_KEY", CANARY).env("ANTHROPIC_API_KEY", CANARY);
        is_harmless(&finish(command, &Input::Nothing));
    }
    let world = project(&format!("model = \"{HOSTILE_TOML}/b\"\n"));
    is_harmless(&world.run(&["--line", "--trust"]));
    is_harmless(&world.run(&["-p", "x", "--trust"]));
}

#[test]
fn keys_of_settings_are_shown_with_signs() {
    let world = project(&format!("\"{HOSTILE_TOML}\" = 1\n[models.\"{HOSTILE_TOML}\"]\n"));
    is_harmless(&world.run(&["tool", "list", "--trust"]));
    world.settings(&format!("[permissions]\n\"{HOSTILE_TOML}\" = 1\n"));
    is_harmless(&world.run(&["tool", "list"]));
}

#[test]
fn what_was_typed_comes_back_with_signs() {
    let world = World::new();
    let model = world.script(&[json!({"text": "hello"})]);
    for flags in [
        &["-p", "x", "--add-dir", HOSTILE][..],
        &["-p", "x", "--mode", HOSTILE],
        &["-p", "x", &format!("--{HOSTILE}")],
        &["-p", "x", "--model", HOSTILE],
        &["-p", "x", "--model", &format!("script:{HOSTILE}")],
        &["-p", "x", "--model", &model, "--tools", HOSTILE],
        &["-p", "x", "--model", &model, "--deny", &format!("Read({HOSTILE}")],
        &["-p", "x", "--model", &model, "--resume", HOSTILE],
        &["session", "show", HOSTILE],
        &["tool", HOSTILE],
        &["tool", "spec", HOSTILE],
        &["undo", "--session", HOSTILE],
        &[HOSTILE, HOSTILE],
    ] {
        let ran = world.run(flags);
        assert_ne!(ran.code, Some(0), "{flags:?} {ran:?}");
        is_harmless(&ran);
    }
}
