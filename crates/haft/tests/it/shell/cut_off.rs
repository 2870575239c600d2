//! What commands changed that were cancelled or killed with haft: it can be taken back all the same.

use std::{
    collections::BTreeMap,
    fs,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use serde_json::json;

use crate::{
    mcp_client::Client,
    world::{World, collect, ended, gone, runs, signal, unique_seconds, until},
};

/// How many files a command changes: more than can be looked at while the answer waits.
const MANY: usize = 250;
/// Longest that anything here takes.
const LIMIT: Duration = Duration::from_secs(30);

/// What every file of the workspace holds.
type Files = BTreeMap<String, Vec<u8>>;

fn files(world: &World) -> Files {
    let all = fs::read_dir(world.work()).unwrap().flatten();
    let named = all.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    named.map(|(name, path)| (name, fs::read(path).unwrap())).collect()
}

/// A workspace with some files, and a command that changes them in all ways and then waits.
fn some() -> (World, String, String) {
    let (world, seconds) = (World::new(), unique_seconds());
    for name in ["a", "b", "c", "d"] {
        world.file(name, format!("{name}\n"));
    }
    let command = format!("echo x >> a; rm b; mv c e; chmod 600 d; echo n > n; sleep {seconds}");
    (world, command, seconds)
}

/// haft in a face, while its command waits; it is killed then.
fn killed(face: &str) -> (World, Files, Option<String>) {
    killed_in(face, some())
}

fn killed_in(
    face: &str,
    (world, command, seconds): (World, String, String),
) -> (World, Files, Option<String>) {
    let before = files(&world);
    let input = json!({"command": command});
    let call = json!({"name": "bash", "input": input});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "Went on."})]);
    let given = world.root().join("input");
    let (flags, text) = match face {
        "tool" => (vec!["tool", "bash", "--mode", "bypass", "--input", "-"], input.to_string()),
        "-p" => (vec!["-p", "go", "--model", &model, "--mode", "bypass"], String::new()),
        _ => (vec!["--line", "--model", &model, "--mode", "bypass"], "go\n".to_owned()),
    };
    fs::write(&given, text).unwrap();
    if face == "mcp" {
        let mut client = Client::greeted(&world, &["--mode", "bypass"]);
        client.begin(&json!(1), "bash", &input);
        waits(&world, &seconds);
        signal("KILL", client.process());
        client.ended();
    } else {
        let pipe = fs::File::open(given).unwrap();
        let mut child = world.haft(&flags).stdin(Stdio::piped()).spawn().unwrap();
        let mut to = child.stdin.take().unwrap();
        std::io::copy(&mut &pipe, &mut to).unwrap();
        // A line is typed, and more may follow; arguments are whole.
        let held = (face == "--line").then_some(to);
        waits(&world, &seconds);
        child.kill().unwrap();
        child.wait().unwrap();
        drop(held);
    }
    gone(&seconds);
    assert_ne!(files(&world), before, "{face}");
    (world, before, Some(model))
}

/// A workspace with many files, and a command that changes them all and then waits.
fn many() -> (World, String, String) {
    let (world, seconds) = (World::new(), unique_seconds());
    for number in 0..MANY {
        world.file(&format!("f{number}"), format!("{number}\n"));
    }
    let command = format!("sed -i s/^/x/ f*; rm f1 f2; echo new > n; sleep {seconds}");
    (world, command, seconds)
}

/// Waits until the command has done all that it does before it waits.
fn waits(world: &World, seconds: &str) {
    let wrote = || fs::read(world.work().join("n")).is_ok_and(|text| !text.is_empty());
    assert!(until(LIMIT, || wrote() && runs(seconds)), "the command never came to its end");
}

fn taken_back(world: &World, before: &Files) {
    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(files(world) == *before, "{ran:?}");
}

#[test]
fn what_a_cancelled_command_changed_is_taken_back_in_every_face() {
    // A client that cancels, and goes at once.
    let (world, command, seconds) = many();
    let before = files(&world);
    let mut client = Client::greeted(&world, &["--mode", "bypass"]);
    client.begin(&json!(1), "bash", &json!({"command": command}));
    waits(&world, &seconds);
    client.cancel(&json!(1));
    gone(&seconds);
    client.ends_well();
    taken_back(&world, &before);

    // A shell, and a run of an agent.
    for face in ["tool", "-p"] {
        let (world, command, seconds) = many();
        let before = files(&world);
        let input = json!({"command": command});
        let call = json!({"name": "bash", "input": input});
        let model = world.script(&[json!({"calls": [call]}), json!({"text": "never"})]);
        let flags = match face {
            "tool" => ["tool", "bash", "--mode", "bypass", "--input", "-"].to_vec(),
            _ => ["-p", "go", "--model", &model, "--mode", "bypass"].to_vec(),
        };
        // What waits for the command looks for its words in the arguments of all programs.
        let given = world.root().join("input.json");
        fs::write(&given, input.to_string()).unwrap();
        let mut haft = world.haft(&flags);
        let mut child = haft.stdin(fs::File::open(given).unwrap()).spawn().unwrap();
        let (_out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
        waits(&world, &seconds);
        signal("INT", child.id());
        let status = ended(&mut child, LIMIT);
        assert_eq!(status.code(), Some(1), "{face}: {}", err.join().unwrap());
        gone(&seconds);
        taken_back(&world, &before);
    }
}

#[test]
fn what_was_cancelled_in_a_talk_is_taken_back_there() {
    let (world, command, seconds) = many();
    let before = files(&world);
    let call = json!({"name": "bash", "input": {"command": command}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "never"})]);
    let flags = ["--line", "--mode", "bypass", "--model", &model];
    let mut child = world.haft(&flags).stdin(Stdio::piped()).spawn().unwrap();
    let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"go\n").unwrap();
    waits(&world, &seconds);
    signal("INT", child.id());
    std::io::Write::write_all(&mut input, b"/undo\n/quit\n").unwrap();
    drop(input);
    ended(&mut child, LIMIT);
    gone(&seconds);
    let (out, err) = (out.join().unwrap(), err.join().unwrap());
    assert!(out.contains("Took back c1"), "{out} {err}");
    assert!(files(&world) == before, "{out} {err}");
}

#[test]
fn what_a_command_changed_is_taken_back_though_haft_was_killed_in_every_face() {
    for face in ["tool", "-p", "--line", "mcp"] {
        let (world, before, _) = killed(face);
        let ran = world.run(&["undo"]);
        assert_eq!(ran.code, Some(0), "{face}: {ran:?}");
        let told =
            "c1 ran when haft was killed: changed: a, d; created: n; deleted: b; renamed: c to e";
        assert!(ran.err.contains(told), "{face}: {ran:?}");
        assert!(ran.out.contains("Took back c1 (bash: "), "{face}: {ran:?}");
        assert_eq!(files(&world), before, "{face}");
        let mode = fs::metadata(world.work().join("d")).unwrap().permissions();
        assert_ne!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600, "{face}");
        // It is told once, and can be made again.
        let ran = world.run(&["redo"]);
        assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{face}: {ran:?}");
        assert_eq!(world.read("n"), "n\n", "{face}");
        let session = world.state().join("sessions").join(world.only_session());
        assert!(!session.join("before").exists(), "{face}: nothing is left of it");
    }
}

#[test]
fn what_git_has_is_found_by_the_next_haft() {
    let (world, command, seconds) = some();
    let script = "git init -q && git add work && git -c user.name=a -c user.email=a@b -c \
                  maintenance.auto=false commit -qm x && git repack -adq && git prune-packed";
    let mut git = Command::new("sh");
    let done = git.args(["-c", script]).current_dir(world.root()).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    // It was written some time after the files.
    let list = fs::File::options().append(true).open(world.root().join(".git/index")).unwrap();
    list.set_modified(SystemTime::now() + Duration::from_hours(1)).unwrap();
    let (world, before, _) = killed_in("tool", (world, command, seconds));
    let session = world.state().join("sessions").join(world.only_session()).join("before");
    let copies = fs::read_dir(session).unwrap().next().unwrap().unwrap().path().join("copies");
    assert_eq!(fs::metadata(copies).unwrap().len(), 0, "nothing was copied");
    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.err.contains("cannot be undone"), "{ran:?}");
    assert_eq!(files(&world), before);
}

#[test]
fn a_run_that_goes_on_tells_the_model_what_a_killed_one_changed() {
    let (world, before, model) = killed("-p");
    let model = model.unwrap();
    let ran = world.run(&["-p", "and now?", "-c", "--model", &model, "--mode", "bypass"]);
    assert_eq!((ran.code, &*ran.out), (Some(0), "Went on.\n"), "{ran:?}");
    assert!(ran.err.contains("c1 ran when haft was killed: changed: a, d"), "{ran:?}");
    let outcomes = world.outcomes();
    let told = crate::world::text(&outcomes[0]);
    assert!(told.contains("[changed: a, d; created: n; deleted: b; renamed: c to e]"), "{told}");
    taken_back(&world, &before);
}

#[test]
fn what_changed_after_haft_was_killed_is_left() {
    let (world, before, _) = killed("tool");
    let session = world.state().join("sessions").join(world.only_session()).join("before");
    let text = fs::read_dir(session).unwrap().next().unwrap().unwrap().path().join("text");
    // As if all of it had come long after.
    let long_ago = std::time::SystemTime::now() - Duration::from_hours(1);
    fs::File::options().append(true).open(text).unwrap().set_modified(long_ago).unwrap();
    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.err.contains("cannot be undone: ")
            && ran.err.contains("a (it changed after haft was killed)"),
        "{ran:?}"
    );
    let now = files(&world);
    assert_eq!(
        (&now["a"][..], &now["n"][..], now["b"] == before["b"]),
        (&b"a\nx\n"[..], &b"n\n"[..], true)
    );
}

#[test]
fn what_a_command_changed_that_was_given_up_is_taken_back() {
    let (world, command, seconds) = some();
    let before = files(&world);
    let given = world.root().join("input.json");
    // It takes a while until it is stopped; who wants to wait no longer sends another signal.
    fs::write(&given, json!({"command": format!("trap '' TERM; {command}")}).to_string()).unwrap();
    let mut haft = world.haft(&["tool", "bash", "--mode", "bypass", "--input", "-"]);
    let mut child = haft.stdin(fs::File::open(given).unwrap()).spawn().unwrap();
    waits(&world, &seconds);
    signal("INT", child.id());
    signal("TERM", child.id());
    ended(&mut child, LIMIT);
    gone(&seconds);
    taken_back(&world, &before);
}
