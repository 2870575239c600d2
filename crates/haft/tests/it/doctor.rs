//! `haft doctor`: probes that can fail.

use serde_json::Value;

use crate::world::{Input, World, finish};

#[test]
fn it_says_what_works() {
    let world = World::new();
    let ran = world.run(&["doctor"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for what in ["version", "state", "workspace", "shell", "sandbox", "anthropic", "openai"] {
        let line = ran.out.lines().find(|line| line.contains(&format!("  {what} ")));
        assert!(line.is_some_and(|line| ["ok", "--"].contains(&&line[..2])), "{what}: {ran:?}");
    }
    assert!(ran.out.contains(&world.state().display().to_string()), "{ran:?}");
    let lines = world.run(&["doctor", "--json"]).out;
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["what"].is_string() && line["state"].is_string() && line["text"].is_string());
    }
}

#[test]
fn a_home_that_cannot_be_written_fails() {
    let world = World::new();
    let home = world.file("a-file", "").join("below");
    let mut command = world.haft(&["doctor"]);
    command.env("HAFT_HOME", &home);
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let line = ran.out.lines().find(|line| line.contains("  state ")).unwrap();
    assert!(line.starts_with("!!") && line.contains("set HAFT_HOME"), "{line}");
}

#[test]
fn broken_settings_are_told() {
    let world = World::new();
    world.settings("modle = \"x\"\nmode = \"yolo\"\n");
    let ran = world.run(&["doctor"]);
    let all = format!("{}{}", ran.out, ran.err);
    assert!(all.contains("modle") && all.contains("yolo"), "{ran:?}");
    assert!(all.contains("settings.toml"), "{ran:?}");
}
