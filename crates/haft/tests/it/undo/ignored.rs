//! What git ignores comes back by `haft undo`, whichever face ran the command.

use serde_json::{Value, json};

use crate::{
    mcp_client::Client,
    world::{Ran, World},
};

const REMOVES: &str = "cd data && find . -type f -delete";
const GONE: &str = "[deleted: data/1.csv, data/2.csv]";

fn world() -> World {
    let world = World::new();
    world.file(".gitignore", "data/\n");
    for name in ["1.csv", "2.csv"] {
        world.file(&format!("data/{name}"), format!("{name}\n"));
    }
    world
}

fn input() -> Value {
    json!({"command": REMOVES})
}

fn by_tool(world: &World) -> Ran {
    world.tool("bash", &input(), &["--mode", "bypass"])
}

#[test]
fn what_git_ignores_comes_back_whoever_removed_it() {
    let tool = |world: &World| {
        let ran = by_tool(world);
        assert!(ran.out.contains(GONE), "{ran:?}");
    };
    let model = |world: &World| {
        let calls = json!([{"name": "bash", "input": input()}]);
        let model = world.script(&[json!({"calls": calls}), json!({"text": "Done."})]);
        let ran = world.run(&["-p", "go", "--mode", "bypass", "--model", &model]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    let client = |world: &World| {
        let mut client = Client::greeted(world, &["--mode", "bypass"]);
        let answer = client.call("bash", &input());
        client.ends_well();
        assert!(answer.to_string().contains(GONE), "{answer}");
    };
    let faces: [&dyn Fn(&World); 3] = [&tool, &model, &client];
    for face in faces {
        let world = world();
        face(&world);
        assert!(!world.work().join("data/1.csv").exists());
        let ran = world.run(&["undo"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(
            (&*world.read("data/1.csv"), &*world.read("data/2.csv")),
            ("1.csv\n", "2.csv\n")
        );
    }
}

#[test]
fn settings_bound_it() {
    for (settings, told) in [
        ("ignored_files = 0", "[not covered by undo: data: 2 of 2 files gone]"),
        ("ignored_bytes = 0", "[not covered by undo: data: 2 of 2 files gone]"),
        (
            "ignored_files = 1",
            "[deleted: data/1.csv]\n[not covered by undo: data: 1 of 2 files gone]",
        ),
    ] {
        let world = world();
        world.settings(&format!("[shell.changes]\n{settings}\n"));
        let ran = by_tool(&world);
        assert!(ran.out.contains(told), "{settings}: {ran:?}");
    }
}
