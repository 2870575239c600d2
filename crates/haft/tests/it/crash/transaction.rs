//! Files that change together are all old or all new, whatever ends haft in between; and changes
//! that are taken back are taken back in the end.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use serde_json::{Value, json};

use super::{
    Ends, Story, Tree, journals,
    kill::{Pace, kill_at_random},
    report,
    strace::{Disturb, Spot, TRIES, disturbed, kill_everywhere, spots},
    times, tree,
};
use crate::{mcp_client::Client, world::World};

fn build(world: &World) {
    world.file("a.txt", "one\ntwo\n");
    let file = world.file("sub/b.sh", "one\r\ntwo\r\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
    world.file("sub/c.txt", "one\ntwo\n".repeat(20_000) + "three\n");
    world.file("sub/other.txt", "stays\n");
    symlink("sub/b.sh", world.work().join("link")).unwrap();
}

fn input() -> Value {
    let edit = |path: &str, old: &str, new: &str| json!({"path": path, "edits": [{"old_text": old, "new_text": new}]});
    json!({"files": [
        edit("a.txt", "two", "2"), edit("link", "two", "2"), edit("sub/c.txt", "three", "3"),
    ]})
}

/// An edit of three files, one of them through a link.
fn together() -> Story {
    Story::tool("three files", "edit", build, &input())
}

/// A file is edited, one made with its folders, one replaced and one deleted.
fn all_kinds() -> Story {
    let input = json!({"files": [
        {"path": "new/deep/d.txt", "content": "made\n"},
        {"path": "sub/other.txt", "delete": true},
        {"path": "a.txt", "edits": [{"old_text": "two", "new_text": "2"}]},
        {"path": "sub/b.sh", "content": "all new\n"},
    ]});
    // To delete is asked about where only edits are allowed.
    let words = ["tool", "edit", "--mode", "bypass", "--input"];
    let mut arguments: Vec<String> = words.map(str::to_owned).into();
    arguments.push(input.to_string());
    Story { name: "all kinds", build, arguments }
}

/// A file is moved as it is, another with an edit, into folders that are made, and one is replaced.
fn moves() -> Story {
    let input = json!({"files": [
        {"path": "sub/b.sh", "move_to": "new/deep/b.sh"},
        {"path": "sub/c.txt", "move_to": "c.txt",
         "edits": [{"old_text": "three", "new_text": "3"}]},
        {"path": "a.txt", "content": "all new\n"},
    ]});
    Story::tool("moves", "edit", build, &input)
}

#[test]
fn moves_killed_at_any_file_call_are_all_made_or_none() {
    let wanted = [
        ("mkdirat", "deep"),
        ("renameat2", "b.sh"),
        ("renameat2", "RENAME_NOREPLACE"),
        ("unlinkat", "c.txt"),
        ("unlink", "journal"),
    ];
    let torn = kill_everywhere(&moves(), &wanted);
    assert!(torn > 0, "it was never ended between two of the files");
}

#[test]
fn edits_of_several_files_killed_at_any_file_call_are_all_made_or_none() {
    let wanted = [
        ("rename", "journal"),
        ("renameat2", "RENAME_EXCHANGE"),
        ("fsync", "work/sub>"),
        ("unlink", "journal"),
    ];
    let torn = kill_everywhere(&together(), &wanted);
    assert!(torn > 0, "it was never ended between two of the files");
}

#[test]
fn changes_of_all_kinds_killed_at_any_file_call_are_all_made_or_none() {
    let wanted =
        [("mkdirat", "deep"), ("renameat2", "RENAME_NOREPLACE"), ("unlinkat", "other.txt")];
    let torn = kill_everywhere(&all_kinds(), &wanted);
    assert!(torn > 0, "it was never ended between two of the files");
}

#[test]
fn edits_of_several_files_killed_at_any_instant_are_all_made_or_none() {
    let story = together();
    let ends = story.ends();
    kill_at_random(&story, &ends, Pace::Usual, times(4));
    kill_at_random(&story, &ends, Pace::Slow, times(10));
}

/// Ends the story between two of its files; gives the world as that left it.
fn torn(story: &Story, ends: &Ends) -> World {
    for _ in 0..TRIES * 10 {
        let exchanges = |spot: &Spot| spot.line.contains("RENAME_EXCHANGE");
        for spot in spots(story).into_iter().filter(exchanges) {
            let world = story.world();
            disturbed(story, &world, &spot, &Disturb::Kill);
            if ends.is_torn(&world) {
                return world;
            }
        }
    }
    panic!("it was never ended between two of the files");
}

#[test]
fn the_next_run_of_any_face_takes_back_what_was_half_done() {
    let story = together();
    let ends = story.ends();
    for face in ["tool", "print", "mcp", "undo"] {
        let world = torn(&story, &ends);
        assert_eq!(journals(&world), 1, "{face}");
        match face {
            "tool" => {
                let ran = world.run(&["tool", "ls"]);
                assert!(ran.err.contains("was cut off, and is taken back"), "{ran:?}");
                assert!(ran.err.contains("a.txt"), "{ran:?}");
            }
            "print" => {
                let model = world.script(&[json!({"text": "Hello"})]);
                let ran = world.run(&["-p", "hi", "--model", &model]);
                assert_eq!(ran.code, Some(0), "{ran:?}");
            }
            "mcp" => {
                let mut client = Client::greeted(&world, &[]);
                client.is_well();
                client.ends_well();
            }
            _ => {
                // There is nothing that could be undone: the call never ended.
                let ran = world.run(&["undo"]);
                assert_ne!(ran.code, None, "{ran:?}");
                world.run(&["tool", "ls"]);
            }
        }
        assert_eq!(tree(&world.work()), ends.before, "{face}");
        assert_eq!(journals(&world), 0, "{face}");
    }
}

#[test]
fn what_somebody_changed_since_is_left_and_named() {
    let story = together();
    let ends = story.ends();
    let world = torn(&story, &ends);
    let left = tree(&world.work());
    let is_new = |name: &&str| left.get(*name) == ends.after.get(*name);
    let names = ["a.txt", "sub/b.sh", "sub/c.txt"];
    let changed = *names.iter().find(|name| is_new(name)).unwrap();
    world.file(changed, "somebody else\n");
    let ran = world.run(&["tool", "ls"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains(&format!("{changed} was left as it is")), "{ran:?}");
    assert_eq!(world.read(changed), "somebody else\n");
    let found = tree(&world.work());
    for name in names.iter().filter(|name| **name != changed) {
        assert_eq!(found.get(*name), ends.before.get(*name), "{name}");
    }
    assert_eq!(journals(&world), 0, "it is said once");
    assert_eq!(world.run(&["tool", "ls"]).err, "");
}

#[test]
fn every_face_edits_several_files_and_takes_all_of_them_back() {
    for face in ["tool", "print", "mcp"] {
        let world = World::new();
        build(&world);
        let before = tree(&world.work());
        match face {
            "tool" => {
                let ran = world.tool("edit", &input(), &["--mode", "accept-edits"]);
                assert!(ran.out.contains("Edited 3 files together"), "{ran:?}");
            }
            "print" => {
                let call = json!({"name": "edit", "input": input()});
                let model = world.script(&[json!({"calls": [call]}), json!({"text": "Done."})]);
                let flags = ["-p", "hi", "--model", &model, "--mode", "accept-edits"];
                assert_eq!(world.run(&flags).code, Some(0));
            }
            _ => {
                let mut client = Client::greeted(&world, &["--mode", "accept-edits"]);
                let answer = client.call("edit", &input());
                assert_ne!(answer["result"]["isError"], json!(true), "{answer}");
                client.ends_well();
            }
        }
        assert_eq!(world.read("a.txt"), "one\n2\n", "{face}");
        assert_eq!(world.read("sub/b.sh"), "one\r\n2\r\n", "{face}");
        assert_eq!(journals(&world), 0, "{face}");
        let ran = world.run(&["undo"]);
        assert_eq!(ran.code, Some(0), "{face}: {ran:?}");
        for name in ["a.txt", "sub/b.sh", "sub/c.txt"] {
            assert!(ran.out.contains(name), "{face} {name}: {ran:?}");
        }
        assert_eq!(tree(&world.work()), before, "{face}");
    }
}

/// Takes back an edit of three files.
fn undo() -> Story {
    let build = |world: &World| {
        build(world);
        let ran = together().run(world);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    Story { name: "undo", build, arguments: vec!["undo".to_owned()] }
}

/// Takes back moves.
fn undo_of_moves() -> Story {
    let build = |world: &World| {
        build(world);
        let ran = moves().run(world);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    Story { name: "undo of moves", build, arguments: vec!["undo".to_owned()] }
}

#[test]
fn an_undo_killed_at_any_file_call_is_completed_by_the_next() {
    undone_in_the_end(&undo());
}

#[test]
fn an_undo_of_moves_killed_at_any_file_call_is_completed_by_the_next() {
    undone_in_the_end(&undo_of_moves());
}

fn undone_in_the_end(story: &Story) {
    let ends = story.ends();
    let (mut hit, mut old, mut between, mut new) = (BTreeSet::new(), 0, 0, 0);
    for spot in spots(story) {
        let world = story.world();
        let ended = disturbed(story, &world, &spot, &Disturb::Kill);
        let Some(line) = ended.hit else { continue };
        let told = format!("{} killed at {line}", story.name);
        ends.judge_left(&world, &told);
        hit.insert(line.split('(').next().unwrap_or_default().to_owned());
        assert_eq!(world.run(&["tool", "ls"]).code, Some(0), "{told}");
        match tree(&world.work()) {
            left if left == ends.before => old += 1,
            left if left == ends.after => new += 1,
            _ => between += 1,
        }
        // Where the first one had come to its end, there is nothing more to take back.
        let ran = world.run(&["undo"]);
        assert!(matches!(ran.code, Some(0 | 1)), "{told}: {ran:?}");
        let found: Tree = tree(&world.work());
        assert!(found == ends.after, "{told}: {ran:?}");
        let ran = world.run(&["redo"]);
        assert_eq!(ran.code, Some(0), "{told}: {ran:?}");
        assert!(tree(&world.work()) == ends.before, "{told}: what was undone is made again");
    }
    report(&format!(
        "{}: killed at {hit:?}; then {old} old, {between} between, {new} new",
        story.name
    ));
    assert!(old > 0 && new > 0, "not every way was taken: {old} {between} {new}");
    assert!(hit.contains("renameat2") && hit.contains("fsync"), "{hit:?}");
}
