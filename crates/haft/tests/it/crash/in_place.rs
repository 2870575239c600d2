//! A file that can only be written in place is ended, or failed, in its middle: the next start puts
//! it back.
//!
//! The files of these stories are mounted by themselves, so the tests run again in mounts of their
//! own, where both the run that is ended and the next one see them.

use std::{
    cell::Cell,
    fs,
    process::{Command, Stdio},
};

use haft_testkit::machine;
use haft_types::Hash;
use serde_json::{Value, json};

use super::{
    Story, journals, records, report,
    strace::{Disturb, Spot, TRIES, disturbed, spots, spots_in},
    tree,
};
use crate::world::World;

/// Set in the run that has mounts of its own.
const INNER: &str = "HAFT_TEST_OWN_MOUNTS";

/// Runs a test again where its mounts are nobody else's; true in that run.
fn in_own_mounts(test: &str) -> bool {
    if std::env::var_os(INNER).is_some() {
        return true;
    }
    if !machine::may_mount("-m", "mount -t tmpfs none /tmp") {
        return false;
    }
    // What is mounted in it is gone before it is removed.
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.arg("-m").arg(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]);
    command.env(INNER, "1").env("TMPDIR", folder.path()).stdin(Stdio::null());
    let ran = command.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    report(&said);
    false
}

/// Mounts a file over one of the workspace.
fn mount(world: &World, text: &str) {
    let (source, target) = (world.root().join("source"), world.file("sub/config.txt", "below\n"));
    fs::write(&source, text).unwrap();
    let mut mount = Command::new("mount");
    let done = mount.arg("--bind").args([source, target]).status().unwrap();
    assert!(done.success());
}

/// More than is written at once.
fn text(word: &str) -> String {
    format!("{word} {}\n", "and more of it ".repeat(8)).repeat(6_000)
}

fn replaced(path: &str, was: &str, old: &str, new: &str) -> Value {
    let edit = json!({"old_text": old, "new_text": new, "replace_all": true});
    json!({"path": path, "edits": [edit], "expect": Hash::of(was.as_bytes()).to_string()})
}

fn shorter() -> Story {
    let build = |world: &World| mount(world, &text("old text"));
    let input = replaced("sub/config.txt", &text("old text"), "old text", "new");
    Story::tool("a shorter text in place", "edit", build, &input)
}

fn longer() -> Story {
    let build = |world: &World| mount(world, &text("old"));
    let input = replaced("sub/config.txt", &text("old"), "old", "new text");
    Story::tool("a longer text in place", "edit", build, &input)
}

/// Takes the longer one back.
fn undo() -> Story {
    let build = |world: &World| {
        let story = longer();
        (story.build)(world);
        assert_eq!(story.run(world).code, Some(0));
    };
    Story { name: "undo in place", build, arguments: vec!["undo".to_owned()] }
}

/// It changes together with others, which are placed before and after it.
fn together() -> Story {
    let build = |world: &World| {
        world.file("a.txt", "one\n");
        mount(world, &text("old"));
        world.file("z.txt", "one\n");
    };
    let input = json!({"files": [
        replaced("a.txt", "one\n", "one", "two"),
        replaced("sub/config.txt", &text("old"), "old", "new"),
        replaced("z.txt", "one\n", "one", "two"),
    ]});
    Story::tool("together, one in place", "edit", build, &input)
}

/// Ends a story at each of its calls. After the next start all is old or all is new.
fn kill_everywhere(story: &Story, wanted: &[(&str, &str)]) {
    let ends = story.ends();
    let (mut hit, mixed, mut old, mut new) = (Vec::new(), Cell::new(0), 0, 0);
    let mut kill = |spot: &Spot, hit: &mut Vec<String>| {
        let world = story.world();
        let Some(line) = disturbed(story, &world, spot, &Disturb::Kill).hit else { return };
        let told = format!("{}, killed at {line}", story.name);
        let left = tree(&world.work());
        let name = "sub/config.txt";
        let is_mixed =
            [&ends.before, &ends.after].iter().all(|end| end.get(name) != left.get(name));
        mixed.set(mixed.get() + u32::from(is_mixed));
        let is_new = if story.arguments[0] == "undo" {
            // What was done by half is put back, and a second undo brings it to its end.
            assert_eq!(world.run(&["tool", "ls"]).code, Some(0), "{told}");
            let now = tree(&world.work());
            assert!(now == ends.before || now == ends.after, "{told}");
            world.run(&["undo"]);
            assert!(tree(&world.work()) == ends.after, "{told}");
            now == ends.after
        } else {
            ends.judge_next_start(&world, &told)
        };
        *(if is_new { &mut new } else { &mut old }) += 1;
        hit.push(line);
    };
    for spot in spots(story) {
        kill(&spot, &mut hit);
    }
    for (call, part) in wanted {
        let is_hit = |hit: &[String]| {
            hit.iter().any(|line| line.starts_with(&format!("{call}(")) && line.contains(part))
        };
        let mut tries = 0..TRIES;
        while !is_hit(&hit)
            && let Some(n) = tries.next()
        {
            let is_meant = |spot: &&Spot| spot.syscall == *call && spot.line.contains(part);
            for spot in spots_in(story, n % 2 == 0).iter().filter(is_meant) {
                kill(spot, &mut hit);
            }
        }
        assert!(is_hit(&hit), "never killed at {call} {part}, only at {hit:#?}");
    }
    // What is hit in the threads' order of one run may be nothing between two writes.
    let again = (0..TRIES).take_while(|_| mixed.get() == 0);
    for spot in again.flat_map(|n| spots_in(story, n % 2 == 0)) {
        if mixed.get() == 0 && spot.syscall == "pwrite64" && spot.line.contains("config.txt") {
            kill(&spot, &mut hit);
        }
    }
    let mixed = mixed.get();
    report(&format!(
        "{}: killed {} times, {mixed} with a part of each text; then {old} old and {new} new",
        story.name,
        hit.len()
    ));
    assert!(mixed > 0 && old > 0, "not every way was taken: {mixed} {old} {new}");
}

const WANTED: &[(&str, &str)] = &[
    ("pwrite64", ".part"),
    ("fsync", ".part"),
    ("rename", ".pair"),
    ("flock", "config.txt"),
    ("pwrite64", "config.txt"),
    ("fsync", "config.txt"),
    ("unlink", ".pair"),
];

#[test]
fn a_write_in_place_killed_at_any_file_call_is_taken_back() {
    if in_own_mounts("crash::in_place::a_write_in_place_killed_at_any_file_call_is_taken_back") {
        kill_everywhere(&shorter(), WANTED);
        kill_everywhere(&longer(), WANTED);
    }
}

#[test]
fn an_undo_in_place_killed_at_any_file_call_is_completed_by_the_next() {
    let test = "crash::in_place::an_undo_in_place_killed_at_any_file_call_is_completed_by_the_next";
    if in_own_mounts(test) {
        kill_everywhere(&undo(), &[("pwrite64", "config.txt"), ("unlink", ".pair")]);
    }
}

#[test]
fn files_that_change_with_one_in_place_are_all_changed_or_none() {
    if in_own_mounts("crash::in_place::files_that_change_with_one_in_place_are_all_changed_or_none")
    {
        // Which thread takes the pair and the journal away is told in no two runs alike.
        let wanted = [("pwrite64", "config.txt"), ("fsync", "config.txt")];
        kill_everywhere(&together(), &wanted);
    }
}

#[test]
fn a_disk_that_fails_in_the_middle_leaves_the_old_text() {
    if !in_own_mounts("crash::in_place::a_disk_that_fails_in_the_middle_leaves_the_old_text") {
        return;
    }
    for (syscall, errors) in [("pwrite64", ["EIO", "ENOSPC", "EDQUOT"]), ("fsync", ["EIO"; 3])] {
        for error in errors {
            let story = longer();
            let ends = story.ends();
            let is_meant =
                |spot: &&Spot| spot.syscall == syscall && spot.line.contains("config.txt");
            let failed = (0..TRIES).any(|n| {
                let all = spots_in(&story, n % 2 == 0);
                all.iter().filter(is_meant).any(|spot| {
                    let world = story.world();
                    let ended = disturbed(&story, &world, spot, &Disturb::Fail(error));
                    let hit = ended.hit.filter(|hit| hit.contains("config.txt"));
                    let Some(hit) = hit else { return false };
                    assert_eq!(ended.code, Some(1), "{hit}: {}", ended.said);
                    assert!(ended.said.contains("holds what it did"), "{hit}: {}", ended.said);
                    assert!(tree(&world.work()) == ends.before, "{hit}");
                    assert_eq!((records(&world), journals(&world)), (0, 0), "{hit}");
                    true
                })
            });
            assert!(failed, "{syscall} was never hit with {error}");
        }
    }
}
