//! `haft tool`: every tool from a shell, with exit codes that a script can go by.

use serde_json::{Value, json};

use crate::world::{Input, World, finish};

/// Those that ask a person stand last where nobody can answer.
const NAMES: [&str; 26] = [
    "read",
    "bash",
    "edit",
    "write",
    "grep",
    "find",
    "ls",
    "job",
    "exit_plan",
    "notebook_edit",
    "skill",
    "snip",
    "todo",
    "task_create",
    "task_get",
    "task_list",
    "task_update",
    "tool_search",
    "think",
    "sleep",
    "brief",
    "send_file",
    "config",
    "web_fetch",
    "ask_user",
    "enter_plan",
];

fn outcome(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_list_names_every_tool() {
    let world = World::new();
    let ran = world.run(&["tool", "list"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let names: Vec<&str> =
        ran.out.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, NAMES);
    let ran = world.run(&["tool", "list", "--json"]);
    let names: Vec<Value> = ran.out.lines().map(|line| outcome(line)["name"].clone()).collect();
    assert_eq!(names, NAMES);
    let ran = world.run(&["tool", "list", "--tools", "read,Grep", "--deny", "Bash"]);
    assert_eq!(ran.out.lines().count(), 2, "{ran:?}");
    let ran = world.run(&["tool", "list", "--deny", "Bash"]);
    assert_eq!(ran.out.lines().count(), NAMES.len() - 1, "{ran:?}");
}

#[test]
fn a_list_takes_no_name() {
    let ran = World::new().run(&["tool", "list", "extra"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.err.contains("\"extra\"") && ran.err.contains("haft tool spec extra"), "{ran:?}");
}

#[test]
fn a_definition_is_shown() {
    let world = World::new();
    for name in ["edit", "MultiEdit", "Edit"] {
        let ran = world.run(&["tool", "spec", name]);
        let spec = outcome(&ran.out);
        assert_eq!((ran.code, &spec["name"]), (Some(0), &json!("edit")), "{ran:?}");
        assert_eq!(spec["input_schema"]["type"], "object");
        assert_eq!(spec["output_schema"]["type"], "object");
    }
    let ran = world.run(&["tool", "spec"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn arguments_come_from_three_places() {
    let world = World::new();
    let file = world.file("input.json", "{\"path\": \"a.txt\"}");
    world.file("a.txt", "alpha\n");
    let text = "{\"path\": \"a.txt\"}";
    for (arguments, input) in [
        (&["tool", "read", "--input", text][..], Input::Nothing),
        (&["tool", "read", "--input", "-"], Input::Pipe(text)),
        (&["tool", "read"], Input::Pipe(text)),
        (&["tool", "read"], Input::File(&file)),
        (&["tool", "Read", "--input", "{\"file_path\": \"a.txt\"}"], Input::Silent),
    ] {
        let ran = world.run_with(arguments, &input);
        assert_eq!(ran.code, Some(0), "{arguments:?} {ran:?}");
        assert!(ran.out.contains("alpha"), "{arguments:?} {ran:?}");
    }
    // What only observes leaves no session behind.
    assert_eq!(world.run(&["session", "list"]).out, "");
}

#[test]
fn json_is_the_whole_outcome() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let input = json!({"path": "a.txt"}).to_string();
    let ran = world.run(&["tool", "read", "--json", "--input", &input]);
    let read = outcome(&ran.out);
    assert_eq!((ran.code, &read["status"]), (Some(0), &json!("done")));
    assert_eq!(read["data"]["total_lines"], 1);
    let input = json!({"path": "b.txt"}).to_string();
    let ran = world.run(&["tool", "read", "--json", "--input", &input]);
    let read = outcome(&ran.out);
    assert_eq!((ran.code, &read["status"]), (Some(1), &json!("failed")), "{ran:?}");
}

#[test]
fn mistakes_of_use_have_their_own_code() {
    let world = World::new();
    for (arguments, wanted) in [
        (&["tool", "raed", "--input", "{}"][..], &["\"raed\"", "Did you mean read?"][..]),
        (&["tool", "spec", "gerp"], &["\"gerp\"", "grep"]),
        (&["tool", "read", "--input", "{path: 1}"], &["not JSON", "{path: 1}"]),
        (&["tool", "read", "--input", ""], &["not JSON"]),
        (&["tool", "read", "--input", r#"{"path": "\ud800"}"#], &["not JSON", "surrogate"]),
        (&["tool", "read", "--input", "-"], &["standard input is empty"]),
        (&["tool", "read", "a.txt"], &["\"a.txt\"", "--input"]),
        (&["tool", "read", "--mode", "yolo"], &["\"yolo\"", "bypass"]),
        (&["tool"], &["NAME"]),
        (&["tool", "read", "--inptu", "x"], &["--inptu", "--input"]),
    ] {
        let ran = world.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?} {ran:?}");
        assert!(wanted.iter().all(|word| ran.err.contains(word)), "{arguments:?} {ran:?}");
    }
}

#[test]
fn an_argument_that_is_there_twice_runs_nothing() {
    let world = World::new();
    let call = ["tool", "write", "--mode", "accept-edits", "--input"];
    for (input, twice) in [
        (r#"{"path": "a", "path": "b", "content": "x"}"#, "\"path\" twice"),
        (r#"{"path": "a", "content": "x", "content": ""}"#, "\"content\" twice"),
    ] {
        let ran = world.run(&[&call[..], &[input]].concat());
        assert!(ran.code == Some(1) && ran.out.contains(twice), "{ran:?}");
        assert!(!world.work().join("a").exists() && !world.work().join("b").exists());
    }
}

#[test]
fn wrong_arguments_fail_with_every_problem() {
    let world = World::new();
    let input = json!({"offset": "many", "limit": [1, 2]}).to_string();
    let ran = world.run(&["tool", "read", "--input", &input]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for word in ["path is missing", "offset", "many", "limit"] {
        assert!(ran.out.contains(word), "{word}: {ran:?}");
    }
}

#[test]
fn without_a_terminal_what_would_ask_is_denied() {
    let world = World::new();
    let input = json!({"path": "made.txt", "content": "x"}).to_string();
    let ran = world.run(&["tool", "write", "--input", &input]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("made.txt") && ran.out.contains("dont-ask"), "{ran:?}");
    assert!(!world.work().join("made.txt").exists());
    let ran = world.run(&["tool", "write", "--input", &input, "--mode", "accept-edits"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(world.read("made.txt"), "x");
    let ran =
        world.run(&["tool", "bash", "--input", "{\"command\": \"exit 3\"}", "--allow", "Bash"]);
    assert_eq!(ran.code, Some(1), "a command that failed: {ran:?}");
}

/// Makes a session and gives its id.
fn begun(world: &World) -> String {
    let input = json!({"path": "begun.txt", "content": "x"}).to_string();
    let flags = ["tool", "write", "--input", &input, "--mode", "accept-edits", "--json"];
    let ran = world.run(&flags);
    outcome(&ran.out)["session"].as_str().unwrap().to_owned()
}

#[test]
fn a_session_is_shared_by_calls() {
    let world = World::new();
    let session = begun(&world);
    world.file("a.txt", "alpha\n");
    let flags = ["--session", &session, "--mode", "accept-edits"];
    let call = |name: &str, input: Value| {
        let input = input.to_string();
        world.run(&[&["tool", name, "--input", &input][..], &flags].concat())
    };
    assert_eq!(call("read", json!({"path": "a.txt"})).code, Some(0));
    let edits = json!([{"old_text": "alpha", "new_text": "beta"}]);
    let ran = call("edit", json!({"path": "a.txt", "edits": edits}));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(world.read("a.txt"), "beta\n");
    world.file("sub/b.txt", "");
    let flags = ["--session", &session, "--mode", "bypass"];
    let bash = |command: &str| {
        let input = json!({"command": command}).to_string();
        world.run(&[&["tool", "bash", "--input", &input][..], &flags].concat())
    };
    assert_eq!(bash("cd sub").code, Some(0));
    assert_eq!(bash("ls").out, "b.txt\n", "the folder is not carried on");
    let log = world.run(&["session", "show", &session, "--json"]).out;
    assert_eq!(log.matches("\"type\":\"call_ended\"").count(), 5, "{log}");
    let ran = world.run(&["tool", "ls", "--session", "zzz"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("\"zzz\""), "{ran:?}");
}

#[test]
fn a_cut_result_is_read_by_its_address() {
    let world = World::new();
    let input = json!({"command": "seq 1 50000"}).to_string();
    let ran = world.run(&["tool", "bash", "--input", &input, "--mode", "bypass", "--json"]);
    let cut = outcome(&ran.out);
    let (call, session) = (cut["call"].as_str().unwrap(), cut["session"].as_str().unwrap());
    let address = format!("out://{call}");
    assert!(cut["content"].to_string().contains(&address), "{}", ran.out);
    let input = json!({"path": address, "offset": 25_000, "limit": 1}).to_string();
    let ran = world.run(&["tool", "read", "--input", &input, "--session", session]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("25000"), "{ran:?}");
    let input = json!({"pattern": "^49999$", "path": address}).to_string();
    let ran = world.run(&["tool", "grep", "--input", &input, "--session", session]);
    assert!(ran.out.contains("49999"), "{ran:?}");
    let other = begun(&world);
    let input = json!({"path": address}).to_string();
    let ran = world.run(&["tool", "read", "--input", &input, "--session", &other]);
    assert_eq!(ran.code, Some(1), "the output of another session: {ran:?}");
}

#[test]
fn what_haft_notices_during_a_call_is_said() {
    let world = World::new();
    world.file(".haft/settings.toml", "[read]\nmax_bytes = 524288\n");
    // Each quote is two bytes in the log, so that this is more than is held back.
    world.file("big.txt", format!("{}\n", "\"".repeat(1_000)).repeat(600));
    let read = r#"{"path": "big.txt"}"#;
    let arguments = ["tool", "read", "--trust", "--input", read];
    let ran = world.run(&arguments);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "nothing is wrong here");
    let file = world.root().join("file");
    std::fs::write(&file, "").unwrap();
    let home = file.join("home").display().to_string();
    let mut command = world.haft(&arguments);
    command.env("HAFT_HOME", &home);
    let failing = finish(command, &Input::Nothing);
    assert_eq!((failing.code, &failing.out), (Some(0), &ran.out), "{}", failing.err);
    assert!(
        failing.err.starts_with("haft: what is read leaves no full record: "),
        "{}",
        failing.err
    );
    assert!(failing.err.contains(&home) && failing.err.lines().count() == 1, "{}", failing.err);
}
