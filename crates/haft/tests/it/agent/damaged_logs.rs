//! Logs that are empty, changed, of a later version, or no files at all.

use std::{fs, path::PathBuf};

use haft_testkit::machine;
use serde_json::json;

use crate::world::World;

/// The id of a session of which these tests write the log themselves.
const ID: &str = "01900000-0000-7000-8000-00000000000a";

/// Where the log of a session is, whose folder is there.
fn log(world: &World, id: &str) -> PathBuf {
    let folder = world.state().join("sessions").join(id);
    fs::create_dir_all(&folder).unwrap();
    folder.join("log.jsonl")
}

/// A session with one answered turn, and where its log is.
fn talked(world: &World) -> (String, PathBuf) {
    let model = world.script(&[json!({"text": "End."})]);
    assert_eq!(world.run(&["-p", "go", "--model", &model]).code, Some(0));
    let id = world.only_session();
    let log = log(world, &id);
    assert!(log.is_file(), "{}", log.display());
    (id, log)
}

#[test]
fn an_empty_log_and_one_of_a_later_version_are_told() {
    let world = World::new();
    let (id, path) = talked(&world);
    let model = world.script(&[json!({"text": "Ho."})]);
    let later = fs::read_to_string(&path).unwrap().replace("{\"v\":2,", "{\"v\":3,");
    fs::write(&path, &later).unwrap();
    for arguments in [&["session", "show", &id][..], &["-r", &id, "-p", "more", "--model", &model]]
    {
        let ran = world.run(arguments);
        assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{ran:?}");
        assert!(ran.err.contains("later haft") && ran.err.contains("update haft"), "{ran:?}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), later, "it is left as it is");
    fs::write(&path, "").unwrap();
    let ran = world.run(&["session", "show", &id]);
    assert!(ran.err.contains("is empty"), "{ran:?}");
}

#[test]
fn a_pipe_in_place_of_a_log_holds_nobody_up() {
    let world = World::new();
    let (id, _) = talked(&world);
    machine::make_fifo(&log(&world, ID));
    let ran = world.run(&["session", "list"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let short = &id.rsplit('-').next().unwrap()[..8];
    assert!(ran.out.starts_with(short) && ran.err.contains("no regular file"), "{ran:?}");
    let ran = world.run(&["session", "show", ID]);
    assert!(ran.code == Some(1) && ran.err.contains("no regular file"), "{ran:?}");
}

#[test]
fn a_pipe_in_place_of_a_log_is_told_once() {
    let world = World::new();
    machine::make_fifo(&log(&world, ID));
    let model = world.script(&[json!({"text": "never"})]);
    for arguments in [
        &["session", "show", ID][..],
        &["-p", "go", "-r", ID, "--model", &model],
        &["tool", "ls", "--session", ID],
    ] {
        let ran = world.run(arguments);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert_eq!(ran.err.matches("no regular file").count(), 1, "{ran:?}");
        assert_eq!(ran.err.matches("move it away").count(), 1, "{ran:?}");
        assert!(!ran.err.contains("check the disk"), "{ran:?}");
    }
}

#[test]
fn a_log_without_events_is_a_damaged_one() {
    let world = World::new();
    let log = log(&world, ID);
    for content in ["", "no event\n"] {
        fs::write(&log, content).unwrap();
        for json in [&[][..], &["--json"]] {
            let ran = world.run(&[&["session", "show", ID], json].concat());
            assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
            assert!(ran.err.contains("no event of it is left") && ran.err.contains(ID), "{ran:?}");
        }
    }
    fs::write(&log, "").unwrap();
    let ran = world.run(&["session", "list"]);
    assert!(ran.code == Some(0) && ran.out.contains("(its log is empty)"), "{ran:?}");
}

#[test]
fn a_log_that_was_changed_is_told_and_an_empty_one_is_not_resumed() {
    let world = World::new();
    let (id, log) = talked(&world);
    let whole = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let resume = |text: &str| {
        fs::write(&log, text).unwrap();
        let model = world.script(&[json!({"text": "One."}), json!({"text": "Two."})]);
        world.run(&["-p", "on", "-r", &id, "--model", &model])
    };
    let ran = resume(&whole);
    assert!(ran.code == Some(0) && ran.err.is_empty(), "{ran:?}");
    let (mut missing, mut doubled, mut swapped) = (lines.clone(), lines.clone(), lines.clone());
    missing.remove(2);
    doubled.insert(2, lines[1]);
    swapped.swap(1, 2);
    for (changed, line) in [(missing, 3), (doubled, 3), (swapped, 2)] {
        let ran = resume(&format!("{}\n", changed.join("\n")));
        let told = format!("line {line} does not follow the line before it");
        assert_eq!(ran.err.matches(&told).count(), 1, "{ran:?}");
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    for text in ["", "junk\n"] {
        let ran = resume(text);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains("nothing can be read of the session"), "{ran:?}");
    }
}
