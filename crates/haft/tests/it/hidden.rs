//! Values of secrets in what haft itself tells: of hooks, of tools, of what people say.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::{
    hooks::{hook, prints},
    wire::{Mock, Wire},
    world::{Input, Ran, World, finish, holding},
};

/// What stands in a file behind a name, and what the environment has.
const NAMED: &str = "Zq7Kw2Xr9Tb4Ym6Pd1";
const VARIABLE: &str = "Hj3Lc8Vn5Gs0Qf7Wx2";

/// One message to a model that answers with these words and calls `bash` once, in a workspace with
/// these settings; what it was sent and what people got.
fn talk(world: &World, settings: &str, prompt: &str) -> (Ran, Vec<String>) {
    world.settings(settings);
    world.file("secret.env", format!("API_TOKEN={NAMED}\n"));
    let wire = Wire::Anthropic;
    let echo = format!("echo {VARIABLE} > echoed.txt");
    let mock = Mock::new(vec![
        wire.calls("do", &[("bash", json!({"command": echo}))]),
        wire.text(&format!("It is {VARIABLE}.")),
    ]);
    let flags = ["-p", prompt, "--mode", "bypass", "--output", "stream-json"];
    let mut haft = wire.haft(world, &mock.url(), &flags);
    haft.env("DEPLOY_TOKEN", VARIABLE);
    (finish(haft, &Input::Nothing), mock.bodies())
}

fn shows_none(world: &World, ran: &Ran, bodies: &[String]) {
    let mut said = vec![ran.out.clone(), ran.err.clone()];
    said.extend(bodies.iter().cloned());
    for arguments in [&["session", "list"][..], &["session", "show", &world.only_session()]] {
        said.push(world.run(arguments).said());
    }
    for value in [NAMED, VARIABLE] {
        for text in &said {
            let at = text.find(value);
            let around = at.map(|at| &text[text.floor_char_boundary(at.saturating_sub(300))..at]);
            assert!(at.is_none(), "{value} behind {around:?}");
        }
        let mut kept = holding(&world.state(), value.as_bytes());
        // Settings are the person's own, and what undo brings back is what was there.
        kept.retain(|path| !path.ends_with("settings.toml"));
        assert!(kept.is_empty(), "{value} stands in {kept:?}");
    }
}

#[test]
fn nothing_that_hooks_say_shows_one() {
    let rewrite = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "updatedInput": {"command": format!("echo API_TOKEN={NAMED} > echoed.txt")}}});
    let message = json!({"systemMessage": format!("API_TOKEN={NAMED}")});
    for (event, command, wanted) in [
        ("PreToolUse", "cat secret.env >&2; exit 1".to_owned(), "failed"),
        ("PreToolUse", "cat secret.env >&2; exit 2".to_owned(), "refused"),
        ("PreToolUse", "cat secret.env; exit 0".to_owned(), ""),
        ("PreToolUse", format!("API_TOKEN={NAMED} false"), "failed"),
        ("PreToolUse", format!("echo {{; API_TOKEN={NAMED} false"), "failed"),
        ("PreToolUse", prints(&message), "API_TOKEN="),
        ("PreToolUse", prints(&rewrite), "echo API_TOKEN={{secret:API_TOKEN}}"),
        ("PostToolUse", "cat secret.env >&2; exit 2".to_owned(), "objects"),
        ("UserPromptSubmit", "cat secret.env >&2; exit 1".to_owned(), "failed"),
        ("UserPromptSubmit", "cat secret.env".to_owned(), "adds"),
    ] {
        let world = World::new();
        let (ran, bodies) = talk(&world, &hook(event, "", &command, ""), "go");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.out.contains(wanted), "{command}: {ran:?}");
        shows_none(&world, &ran, &bodies);
    }
    let world = World::new();
    let refuse = hook("UserPromptSubmit", "", "cat secret.env >&2; exit 2", "");
    let (ran, bodies) = talk(&world, &refuse, "go");
    assert!(ran.out.contains("refused this message") && bodies.is_empty(), "{ran:?}");
    shows_none(&world, &ran, &bodies);
}

#[test]
fn what_people_and_models_say_is_shown_without_them() {
    let world = World::new();
    let (ran, bodies) = talk(&world, "", &format!("take API_TOKEN={NAMED} and {VARIABLE}"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for text in [&bodies[0], &ran.out] {
        assert!(text.contains("take API_TOKEN={{secret:API_TOKEN}} and {{secret:DEPLOY_TOKEN}}"));
    }
    assert!(ran.out.contains("It is {{secret:DEPLOY_TOKEN}}."), "{ran:?}");
    assert!(bodies[1].contains("echo {{secret:DEPLOY_TOKEN}} > echoed.txt"), "{}", bodies[1]);
    // What the model called for is what was done.
    assert_eq!(world.read("echoed.txt"), format!("{VARIABLE}\n"));
    shows_none(&world, &ran, &bodies);
}

#[test]
fn a_tool_that_prints_no_spec_is_told_without_them() {
    let world = World::new();
    let folder = world.state().join("tools");
    std::fs::create_dir_all(&folder).unwrap();
    let long = "x".repeat(60);
    for (name, script) in [
        ("a", format!("echo API_TOKEN={NAMED}")),
        ("b", format!("echo {long} {NAMED}{NAMED} API_TOKEN={NAMED}")),
        ("c", format!("echo API_TOKEN={NAMED} >&2; exit 3")),
    ] {
        let file = folder.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for arguments in [&["tool", "list"][..], &["doctor"]] {
        let ran = world.run(arguments);
        assert!(ran.said().contains("printed no spec"), "{ran:?}");
        assert!(ran.said().contains("ended with exit code 3: API_TOKEN={{secret:"), "{ran:?}");
        assert!(!ran.said().contains(&NAMED[..8]), "{ran:?}");
    }
}
