//! Kept outputs have a bound: in a session, in all sessions, on the disk; what went is told, and old
//! sessions are removed where somebody agrees.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use crate::world::{Input, Ran, World};

/// 48,894 bytes, which are cut and kept.
const LONG: &str = "seq 1 10000";

/// A command in a session, or in a new one.
fn bash(world: &World, session: Option<&str>, command: &str) -> Ran {
    let mut flags = vec!["--mode", "bypass"];
    flags.extend(session.map(|id| ["--session", id]).into_iter().flatten());
    world.tool("bash", &json!({ "command": command }), &flags)
}

fn read(world: &World, session: &str, call: &str) -> Ran {
    let input = json!({"path": format!("out://{call}"), "limit": 3});
    world.tool("read", &input, &["--session", session])
}

/// The sessions, the oldest first.
fn sessions(world: &World) -> Vec<String> {
    let ran = world.run(&["session", "list", "--json"]);
    let mut all: Vec<String> =
        ran.lines().iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
    all.sort();
    all
}

fn outputs(world: &World, session: &str) -> Vec<String> {
    let folder = world.state().join("sessions").join(session).join("out");
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        names.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

/// Makes a session look as if it was last used so many days ago.
fn age(world: &World, session: &str, days: u64) {
    let log = world.state().join("sessions").join(session).join("log.jsonl");
    let file = fs::File::options().append(true).open(log).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_hours(24 * days)).unwrap();
}

#[test]
fn the_oldest_call_of_a_session_makes_room_and_its_address_says_so() {
    let world = World::new();
    world.settings("[output]\nsession_bytes = 120000\n");
    assert_eq!(bash(&world, None, LONG).code, Some(0));
    let id = world.only_session();
    for _ in 0..2 {
        let ran = bash(&world, Some(&id), LONG);
        assert!(ran.out.contains("the whole is kept"), "{ran:?}");
    }
    assert_eq!(outputs(&world, &id), ["c2", "c3"]);
    for ran in [
        read(&world, &id, "c1"),
        world.tool("grep", &json!({"path": "OUT://c1", "pattern": "7"}), &["--session", &id]),
    ] {
        assert_eq!(ran.code, Some(1), "{ran:?}");
        for part in [
            "out://c1 is no longer kept since 20",
            "UTC: its 48,894 bytes were removed to make room for newer ones \
             (output.session_bytes in the settings)",
            "Run the command again",
        ] {
            assert!(ran.out.contains(part), "{part}: {ran:?}");
        }
    }
    assert!(read(&world, &id, "c2").out.contains("1\t1\n"));
    // What never was is told as ever.
    assert!(read(&world, &id, "c99").out.contains("nothing is kept under"));
}

#[test]
fn in_a_talk_the_oldest_goes_as_well() {
    let world = World::new();
    world.settings("[output]\nsession_bytes = 120000\n");
    let calls = |name: &str, input: Value| json!({"calls": [{"name": name, "input": input}]});
    let model = world.script(&[
        calls("bash", json!({"command": LONG})),
        calls("bash", json!({"command": LONG})),
        calls("bash", json!({"command": LONG})),
        calls("read", json!({"path": "out://c1"})),
        json!({"text": "End."}),
    ]);
    let flags = ["-p", "go", "--model", &model, "--mode", "bypass", "--output", "stream-json"];
    let ran = world.run_with(&flags, &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("out://c1 is no longer kept since"), "{ran:?}");
}

#[test]
fn a_call_larger_than_what_its_session_keeps_has_both_ends() {
    let world = World::new();
    world.settings("[output]\nsession_bytes = 60000\n");
    let ran = bash(&world, None, "seq 1 20000");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in [
        "not all of it is kept: read or grep out://c1",
        "bytes of the output are not kept: a session keeps at most 60000 bytes of outputs \
         (output.session_bytes and output.total_bytes in the settings)",
    ] {
        assert!(ran.out.contains(part), "{part}: {ran:?}");
    }
    let id = world.only_session();
    let whole = |pattern: &str| {
        let input = json!({"path": "out://c1", "pattern": pattern});
        world.tool("grep", &input, &["--session", &id])
    };
    assert!(whole("^1$").out.contains('1') && whole("^20000$").out.contains("20000"));
    let kept = world.state().join("sessions").join(&id).join("out/c1");
    assert!(fs::metadata(kept).unwrap().len() < 60_000);
}

#[test]
fn a_quota_of_nothing_keeps_nothing_and_says_so() {
    for setting in ["session_bytes = 0", "total_bytes = 0", "session_bytes = 1"] {
        let world = World::new();
        world.settings(&format!("[output]\n{setting}\n"));
        let ran = bash(&world, None, &format!("touch a; {LONG}"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.out.contains("1999") && ran.out.contains("10000"), "{ran:?}");
        assert!(
            ran.out.contains("the whole could not be kept: ")
                && ran.out.contains("output.session_bytes and output.total_bytes"),
            "{setting}: {ran:?}"
        );
        let id = world.only_session();
        assert_eq!(outputs(&world, &id), [""; 0], "{setting}");
        assert!(read(&world, &id, "c1").out.contains("nothing is kept under"));
        // A result of another tool.
        let list = world.shell("i=0; while [ $i -lt 5000 ]; do : > name-$i; i=$((i+1)); done");
        assert_eq!(list.code, Some(0), "{list:?}");
        let input = json!({"pattern": "name-*", "limit": 5000});
        let ran = world.tool("find", &input, &["--session", &id]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let world = World::new();
    world.settings("[output]\nsession_bytes = -1\n");
    let ran = world.run(&["tool", "list"]);
    assert!(ran.both_outputs().contains("output.session_bytes"), "{ran:?}");
}

#[test]
fn one_call_keeps_at_most_a_tenth_of_what_is_free() {
    let world = World::new();
    let state = world.state().display().to_string();
    let mount = format!("mount -t tmpfs -o size=8m none '{state}'");
    let input = json!({"command": "yes line | head -c 3000000"}).to_string();
    let haft = format!("tool bash --mode bypass --input '{input}'");
    let Some(ran) = world.mounted(&mount, &haft, &[]) else { return };
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("not all of it is kept: read or grep out://c1"), "{ran:?}");
    let why = "are not kept: one call keeps at most a tenth of what is free on the disk, which is ";
    assert!(ran.out.contains(why), "{ran:?}");
}

#[test]
fn the_oldest_ended_sessions_make_room_for_all() {
    let world = World::new();
    world.settings("[output]\ntotal_bytes = 120000\n");
    for days in [3, 2] {
        assert_eq!(bash(&world, None, LONG).code, Some(0));
        age(&world, sessions(&world).last().unwrap(), days);
    }
    let all = sessions(&world);
    // The oldest is in use, so the next one goes.
    let log = world.state().join("sessions").join(&all[0]).join("log.jsonl");
    let held = fs::File::open(log).unwrap();
    held.lock().unwrap();
    assert_eq!(bash(&world, None, LONG).code, Some(0));
    let all = sessions(&world);
    let kept = || all.iter().map(|id| outputs(&world, id).len()).collect::<Vec<_>>();
    assert_eq!(kept(), [1, 0, 1]);
    drop(held);
    let ran = read(&world, &all[1], "c1");
    assert!(ran.out.contains("(output.total_bytes in the settings)"), "{ran:?}");
    assert_eq!(bash(&world, None, LONG).code, Some(0));
    assert_eq!(kept(), [0, 0, 1]);
}

#[test]
fn sessions_are_pruned_where_somebody_agrees() {
    let world = World::new();
    for days in [40, 31, 5] {
        assert_eq!(bash(&world, None, LONG).code, Some(0));
        age(&world, sessions(&world).last().unwrap(), days);
    }
    let all = sessions(&world);
    let prune = |flags: &[&str]| world.run(&[&["session", "prune"], flags].concat());
    let ran = prune(&[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("nothing was removed") && ran.err.contains("--yes"), "{ran:?}");
    let ran = prune(&["--dry-run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains(&all[0]) && ran.out.contains(&all[1]), "{ran:?}");
    assert!(!ran.out.contains(&all[2]) && ran.out.contains("2 sessions, "), "{ran:?}");
    assert!(ran.out.contains(" would be removed") && ran.out.contains(" KB"), "{ran:?}");
    assert_eq!(sessions(&world), all);
    let ran = prune(&["--outputs", "--older-than", "35d", "--yes"]);
    assert!(ran.out.contains("outputs of 1 session removed, 47.7 KB freed"), "{ran:?}");
    let ran = read(&world, &all[0], "c1");
    assert!(ran.out.contains("bytes were removed by haft session prune"), "{ran:?}");
    age(&world, &all[0], 40);
    // One that is in use stays.
    let log = world.state().join("sessions").join(&all[1]).join("log.jsonl");
    let held = fs::File::open(log).unwrap();
    held.lock().unwrap();
    let ran = prune(&["--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("is in use") && ran.out.contains("1 session removed"), "{ran:?}");
    assert_eq!(sessions(&world), all[1..]);
    drop(held);
    assert_eq!(prune(&["--yes", "--older-than", "4w"]).code, Some(0));
    assert_eq!(sessions(&world), all[2..]);
    assert!(prune(&["--yes"]).out.contains("no sessions are older"));
    for wrong in ["30", "d", "-1d", "1y", "é", "99999999999999999999d", "18446744073709551615w"] {
        let ran = prune(&["--older-than", wrong]);
        assert_eq!(ran.code, Some(2), "{wrong}: {ran:?}");
    }
    assert_eq!(world.sessions(), 1);
}

#[test]
fn doctor_tells_what_the_state_takes() {
    let world = World::new();
    assert_eq!(bash(&world, None, LONG).code, Some(0));
    let ran = world.run(&["doctor"]);
    let line = ran.out.lines().find(|line| line.contains("kept ")).unwrap();
    for part in [
        "1 session: logs ",
        "undo 0 B (at most 4.0 GB)",
        "outputs 47.7 KB (at most 8.0 GB)",
        "copies of repositories 0 B",
        "caches",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}
