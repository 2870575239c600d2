//! What `read` gives through each face: archives, documents, notebooks, and what stands already.

use std::{fs, path::Path};

use haft_types::{Body, Part};
use serde_json::{Value, json};

use crate::{
    mcp_client::{Client, text},
    world::World,
};

/// A file that another program made.
fn made(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../haft-tools/tests/fixtures/files");
    fs::read(folder.join(name)).unwrap()
}

fn world() -> World {
    let world = World::new();
    for name in ["report.pdf", "plain.zip", "pax.tgz"] {
        world.file(name, made(name));
    }
    let cell = json!({"cell_type": "code", "id": "a1", "source": ["x = 1"], "outputs": []});
    world.file("a.ipynb", json!({"cells": [cell], "nbformat": 4}).to_string());
    let lines: Vec<String> = (1..=300).map(|number| format!("line {number}\n")).collect();
    world.file("a.txt", lines.concat());
    world
}

/// What each file must show.
const SHOWN: [(&str, &str); 4] = [
    ("report.pdf", "--- page 2 ---\nPage two\nThe end.\n"),
    ("plain.zip", "     2\t         600  folder/a.txt\n"),
    ("pax.tgz", "     2\t        1500  dir/a.txt\n"),
    ("a.ipynb", "--- cell 1: code, id a1 ---\nx = 1\n"),
];

/// The texts of the results that the model got, in order.
fn results(world: &World) -> Vec<String> {
    let text = |part: &Part| match part {
        Part::Text { text } => Some(text.clone()),
        _ => None,
    };
    let ended = |body: Body| match body {
        Body::CallEnded { outcome, .. } => Some(outcome.content.iter().filter_map(text).collect()),
        _ => None,
    };
    world.events().into_iter().filter_map(|event| ended(event.body)).collect()
}

#[test]
fn every_face_shows_what_is_inside() {
    let world = world();
    let mut client = Client::greeted(&world, &[]);
    for (path, want) in SHOWN {
        let input = json!({"path": path});
        let ran = world.tool("read", &input, &[]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.out.contains(want), "{path}: {}", ran.out);
        let answer = client.call("read", &input);
        assert!(text(&answer).contains(want), "{path}: {answer}");
    }
    client.ends_well();
    let calls: Vec<Value> =
        SHOWN.iter().map(|(path, _)| json!({"name": "read", "input": {"path": path}})).collect();
    // A session of its own, so that the only one is this.
    let fresh = self::world();
    let model = fresh.script(&[json!({"calls": calls}), json!({"text": "Seen."})]);
    let ran = fresh.run(&["-p", "look", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = results(&fresh);
    for (path, want) in SHOWN {
        assert!(results.iter().any(|text| text.contains(want)), "{path}: {results:?}");
    }
}

#[test]
fn an_agent_is_not_sent_what_stands_above_and_nobody_else_is_told_so() {
    let world = world();
    let input = json!({"path": "a.txt", "offset": 100});
    let read = json!({"calls": [{"name": "read", "input": input}]});
    let edit = json!({"calls": [{"name": "edit", "input": {"path": "a.txt",
        "edits": [{"old_text": "line 200\n", "new_text": "line two hundred\n"}]}}]});
    let script = [read.clone(), read.clone(), read.clone(), edit, read, json!({"text": "Done."})];
    let model = world.script(&script);
    let ran = world.run(&["-p", "look", "--mode", "accept-edits", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = results(&world);
    let whole: Vec<bool> = results.iter().map(|text| text.contains("   150\tline 150\n")).collect();
    assert_eq!(whole, [true, false, true, false, true], "{results:?}");
    let stands = "[a.txt is unchanged: lines 100-300 stand in the result of an earlier read.";
    assert!(results[1].starts_with(stands), "{}", results[1]);
    // A client of the server may have dropped what it got; so may a shell.
    let mut client = Client::greeted(&world, &[]);
    for _ in 0..3 {
        let answer = client.call("read", &input);
        assert!(text(&answer).contains("line 150"), "{answer}");
        let ran = world.tool("read", &input, &[]);
        assert!(ran.out.contains("line 150"), "{ran:?}");
    }
    client.ends_well();
}
