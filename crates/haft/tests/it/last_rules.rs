//! Rules that deny what they look like, credentials and their copies, and runs that do not end
//! well although they come to their end: results that cannot be kept, empty answers, changed logs.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::world::{Input, Ran, World, finish};

fn read(world: &World, path: &str, deny: &str) -> Ran {
    let input = json!({ "path": path }).to_string();
    world.run(&["tool", "read", "--input", &input, "--deny", deny])
}

#[test]
fn a_denial_denies_what_it_looks_like() {
    let world = World::new();
    for (path, deny) in [
        ("secret/key.txt", "Read({secret,x}/**)"),
        ("x/key.txt", "Read({secret,x}/**)"),
        ("#secret", "Read(#secret)"),
        ("secret/key.txt", "Read(secret/key.txt )"),
        ("Sec[1]/key.txt", "Read(Sec[1]/**)"),
        ("Sec1/key.txt", "Read(Sec[1]/**)"),
        ("{a,b}", "Read({a,b})"),
    ] {
        world.file(path, "canary\n");
        let ran = read(&world, path, deny);
        assert_eq!(ran.code, Some(1), "{deny} {path}: {ran:?}");
        assert!(ran.out.contains("the deny rule") || ran.err.contains("the deny rule"), "{ran:?}");
        let search = json!({"pattern": "canary"}).to_string();
        let found = world.run(&["tool", "grep", "--input", &search, "--deny", deny]);
        assert!(!found.out.contains(path), "{deny} {path}: {found:?}");
    }
}

#[test]
fn a_denial_that_cannot_be_read_starts_nothing() {
    let world = World::new();
    world.file("a", "canary\n");
    for deny in ["Read({a,b/**)", "Read(a}/**)"] {
        let ran = read(&world, "a", deny);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains("no partner") && ran.err.contains("write \\"), "{ran:?}");
    }
}

#[test]
fn copies_of_the_systems_passwords_are_asked_about() {
    let world = World::new();
    for path in ["/etc/shadow-", "/etc/gshadow-", "/etc/sudoers.d/x", "/var/backups/shadow.bak"] {
        let input = json!({ "path": path }).to_string();
        let ran = world.run(&["tool", "read", "--input", &input, "--mode", "bypass"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let said = format!("{}{}", ran.out, ran.err);
        assert!(said.contains("touches the system's"), "{said}");
    }
}

#[test]
fn what_cannot_be_kept_of_a_result_is_told_and_fails_the_run() {
    let world = World::new();
    let write = json!({"name": "write", "input": {"path": "made.txt", "content": "made\n"}});
    let count = json!({"name": "bash", "input": {"command": "seq 1 100000"}});
    let model = world.script(&[
        json!({"text": "", "calls": [write]}),
        json!({"text": "", "calls": [count]}),
        json!({"text": "End."}),
    ]);
    let haft = env!("CARGO_BIN_EXE_haft");
    let disk = world.root().join("disk");
    fs::create_dir(&disk).unwrap();
    let disk = disk.display().to_string();
    let mount = format!("mount -t tmpfs -o size=64k none '{disk}'");
    let mut probe = world.program("unshare");
    if !probe.args(["-rm", "sh", "-c", &mount]).status().is_ok_and(|status| status.success()) {
        let ci = std::env::var_os("CI").is_some_and(|value| value != "false" && value != "0");
        assert!(!ci, "left out, which CI must not: this machine lets nobody mount");
        eprintln!("left out: this machine lets nobody mount");
        return;
    }
    let run = "-p go --mode bypass --output stream-json --model";
    let script = format!("{mount} && exec '{haft}' {run} '{model}'");
    let mut command = world.program("unshare");
    command.args(["-rm", "sh", "-c", &script]).env("HAFT_HOME", &disk);
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("could not be kept"), "{}", ran.err);
    assert!(!ran.out.contains("not known whether it ran"), "{}", ran.err);
    let events = ran.out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ended: Vec<Value> = events.filter(|event| event["type"] == "call_ended").collect();
    assert_eq!(ended.len(), 2, "{ended:?}");
    let told = ended[1]["outcome"]["content"].to_string();
    assert!(ended[1]["outcome"]["status"] == "done" && told.contains("could be kept"), "{told}");
}

#[test]
fn an_empty_answer_at_the_end_fails_the_run() {
    let world = World::new();
    for output in ["text", "json"] {
        let model = world.script(&[json!({"text": ""})]);
        let ran = world.run(&["-p", "go", "--model", &model, "--output", output]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert_eq!(ran.err.matches("the model's answer is empty").count(), 1, "{ran:?}");
        if output == "json" {
            let result: Value = serde_json::from_str(&ran.out).unwrap();
            assert_eq!(result["status"], "failed", "{result}");
            assert!(result["error"].as_str().unwrap().contains("empty"), "{result}");
        }
    }
}

#[test]
fn a_paused_answer_goes_on() {
    let world = World::new();
    let paused = |text: &str| json!({"text": text, "stop": "paused"});
    let model = world.script(&[paused("One, "), paused("two, "), json!({"text": "three."})]);
    let ran = world.run(&["-p", "go", "--model", &model]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "One, two, three.\n"), "{ran:?}");
    let always: Vec<Value> = (0..40).map(|_| paused("x")).collect();
    let ran = world.run(&["-p", "go", "--model", &world.script(&always)]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("paused"), "{ran:?}");
}

#[test]
fn a_server_that_cannot_be_one_is_a_wrong_call() {
    let world = World::new();
    let run = |url: &str, key: &str| {
        let mut command = world.haft(&["-p", "go", "--model", "openai/x"]);
        command.env("OPENAI_BASE_URL", url).env("OPENAI_API_KEY", key);
        finish(command, &Input::Nothing)
    };
    for url in ["http://", "http://[::1", "http:///ok", "http://h/ok/?x=hidden", "http://h/ok#f"] {
        let ran = run(url, "key");
        assert_eq!(ran.code, Some(2), "{url}: {ran:?}");
        assert!(ran.err.contains("OPENAI_BASE_URL") && !ran.err.contains("hidden"), "{ran:?}");
    }
    let ran = run("http://127.0.0.1:9", "hid\nden");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("OPENAI_API_KEY") && !ran.err.contains("den"), "{ran:?}");
}

/// A session with one answered turn, and where its log is.
fn talked(world: &World) -> (String, PathBuf) {
    let model = world.script(&[json!({"text": "End."})]);
    assert_eq!(world.run(&["-p", "go", "--model", &model]).code, Some(0));
    let id = world.only_session();
    let mut folders = vec![world.state()];
    while let Some(folder) = folders.pop() {
        let log = folder.join("log.jsonl");
        if log.is_file() {
            return (id, log);
        }
        let below = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        folders.extend(below.filter(|path| path.is_dir()));
    }
    panic!("no log");
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

#[test]
fn a_number_without_end_is_told_in_plain_words() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let ran = world.run(&[
        "tool",
        "read",
        "--input",
        r#"{"path": "a.txt", "limit": 18446744073709551616}"#,
    ]);
    let said = format!("{}{}", ran.out, ran.err);
    assert_eq!(ran.code, Some(1), "{said}");
    assert!(said.contains("limit is") && said.contains("a number of at most"), "{said}");
    assert!(!said.contains("u64") && !said.contains("floating point"), "{said}");
}

#[test]
fn a_wrong_setting_is_named_with_its_line() {
    let world = World::new();
    world.settings("[http]\nretries = 2\n\n[models.\"a/b\"]\nvision = \"no\"\n");
    let ran = world.run(&["tool", "ls", "--input", "{}"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let said = r#"settings.toml:5: models.a/b.vision: "no" does not fit: "#;
    assert!(ran.err.contains(said) && ran.err.contains("expected a boolean"), "{ran:?}");
}

#[test]
fn an_id_that_was_lost_is_answered_as_none() {
    let world = World::new();
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"}}});
    let line = r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#;
    let ran = world.run_with(&["mcp"], &Input::Pipe(&format!("{begin}\n{line}\n")));
    let answers = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let refused = answers.into_iter().find(|answer| answer["error"]["code"] == -32600);
    assert!(refused.is_some_and(|answer| answer["id"].is_null()), "{ran:?}");
}

#[test]
fn an_edit_names_the_encoding_that_it_kept() {
    let world = World::new();
    world.file("a.txt", b"caf\xe9 is open, the na\xefve say\n");
    let edit = json!({"path": "a.txt", "old_text": "open", "new_text": "shut"});
    let input = edit.to_string();
    let ran = world.run(&["tool", "edit", "--input", &input, "--mode", "accept-edits"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = format!("{}{}", ran.out, ran.err);
    assert!(said.contains("written in") && said.contains(", as before"), "{said}");
    let bytes = fs::read(world.work().join("a.txt")).unwrap();
    assert_eq!(bytes, b"caf\xe9 is shut, the na\xefve say\n");
}
