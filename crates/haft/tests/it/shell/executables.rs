//! Tools from a folder of executables, as their owner sees them.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use serde_json::json;

use crate::world::World;

/// Puts a tool into the folder of the person.
fn tool(world: &World, file: &str, script: &str) {
    let folder = world.state().join("tools");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(file), format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(folder.join(file), fs::Permissions::from_mode(0o755)).unwrap();
}

fn speaks(world: &World, file: &str, name: &str) {
    let spec = json!({"name": name, "description": "Says hello."});
    tool(world, file, &format!("[ \"$1\" = --spec ] && echo '{spec}' || echo hello"));
}

#[test]
fn a_name_that_is_taken_is_told() {
    let world = World::new();
    speaks(&world, "mine", "read");
    speaks(&world, "own", "hello");
    let ran = world.run(&["tool", "list"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let line = ran.err.lines().find(|line| line.contains("tools/mine")).unwrap_or_default();
    assert!(line.contains("read is taken by a built-in tool"), "{ran:?}");
    assert!(!ran.err.contains("tools/own") && ran.out.contains("\nhello "), "{ran:?}");
}

#[test]
fn a_slow_tool_is_named_and_holds_no_built_in_one_up() {
    let world = World::new();
    world.file("a.txt", "x\n");
    for name in ["slow-a", "slow-b", "slow-c", "slow-d", "slow-e"] {
        tool(&world, name, "sleep 30");
    }
    speaks(&world, "own", "hello");
    let ran = world.run(&["tool", "ls"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.out.contains("a.txt") && ran.took < Duration::from_millis(1_900), "{ran:?}");

    let ran = world.run(&["tool", "hello", "--mode", "bypass"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "hello\n"), "{ran:?}");
    assert!(ran.err.contains("tools/slow-a") && ran.err.contains("tools/slow-e"), "{ran:?}");
    assert!(ran.took < Duration::from_secs(6), "{ran:?}");
}

#[test]
fn doctor_has_a_line_for_each_tool_file() {
    let world = World::new();
    speaks(&world, "own", "hello");
    speaks(&world, "mine", "read");
    tool(&world, "bad", "echo no spec");
    let ran = world.run(&["doctor"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for (file, state, text) in
        [("own", "ok", "hello"), ("mine", "--", "is taken"), ("bad", "--", "no spec as JSON")]
    {
        let file = format!("tools/{file}");
        let line = ran.out.lines().find(|line| line.contains(&file)).unwrap_or_default();
        assert!(line.starts_with(state) && line.contains(text), "{file}: {ran:?}");
    }
}
