//! Edges of policy and pipeline as each face shows them: paths that are not what they seem, texts
//! of refusals, values that name their field, and results that are bounded for programs, too.

use serde_json::{Value, json};

use crate::world::{Input, World};

fn tool(world: &World, name: &str, input: &Value, flags: &[&str]) -> (Option<i32>, Value) {
    let input = input.to_string();
    let mut arguments = vec!["tool", name, "--json", "--input", &input];
    arguments.extend(flags);
    let ran = world.run(&arguments);
    let outcome = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    (ran.code, outcome)
}

fn text(outcome: &Value) -> String {
    let parts = outcome["content"].as_array().unwrap().iter();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// What the model is told of its calls, as the log of the only session has it.
fn told(world: &World, calls: &[Value], flags: &[&str]) -> Vec<Value> {
    let model = world.script(&[json!({ "calls": calls }), json!({"text": "End."})]);
    let mut arguments = vec!["-p", "go", "--model", &model];
    arguments.extend(flags);
    let ran = world.run(&arguments);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let events = world.events().into_iter().map(|event| serde_json::to_value(event).unwrap());
    events
        .filter(|event| event["type"] == "call_ended")
        .map(|event| event["outcome"].clone())
        .collect()
}

#[test]
fn a_file_of_the_written_name_comes_first_and_a_bare_one_is_told() {
    let world = World::new();
    world.file("@a.txt", "with\n");
    world.file("a.txt", "without\n");
    world.file("b\u{202f}c.txt", "narrow\n");
    world.file("d e.txt", "plain\n");
    for (path, content, note) in [
        ("@a.txt", "with", false),
        ("b\u{202f}c.txt", "narrow", false),
        ("d\u{a0}e.txt", "plain", true),
        ("\"a.txt\"", "without", true),
    ] {
        let (code, outcome) = tool(&world, "read", &json!({ "path": path }), &[]);
        let text = text(&outcome);
        assert_eq!(code, Some(0), "{path}: {text}");
        assert!(text.contains(content), "{path}: {text}");
        assert_eq!(text.contains("without"), content == "without", "{path}: {text}");
        assert_eq!(text.contains("is not there and was taken as"), note, "{path}: {text}");
    }
    let read = |path: &str| json!({"name": "read", "input": {"path": path}});
    let outcomes = told(&world, &[read("@a.txt"), read("'d e.txt'")], &[]);
    let all = outcomes.iter().map(text).collect::<String>();
    assert!(all.contains("with") && !all.contains("without"), "{outcomes:?}");
    assert!(all.contains("was taken as \"d e.txt\""), "{outcomes:?}");
}

#[test]
fn a_denied_file_stays_denied_whatever_stands_around_its_name() {
    let world = World::new();
    world.file("a.txt", "canary\n");
    for path in ["a.txt", "@a.txt", "'a.txt'", " a.txt"] {
        let input = json!({ "path": path });
        let (code, outcome) = tool(&world, "read", &input, &["--deny", "Read(a.txt)"]);
        assert_eq!((code, &outcome["status"]), (Some(1), &json!("denied")), "{path}: {outcome}");
        assert!(!outcome.to_string().contains("canary"), "{outcome}");
        let text = text(&outcome);
        assert!(text.starts_with("the deny rule Read(a.txt) (command line) forbids"), "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_path_is_told_where_no_rule_denies_it() {
    let world = World::new();
    world.file("file", "x");
    std::os::unix::fs::symlink("loop", world.work().join("loop")).unwrap();
    let long = "x".repeat(300);
    let calls: Vec<Value> = ["file/below", "loop", &long]
        .iter()
        .map(|path| json!({"name": "write", "input": {"path": path, "content": "x"}}))
        .collect();
    let outcomes = told(&world, &calls, &[]);
    for meaning in ["not a directory", "too many levels", "file name too long"] {
        let outcome = outcomes.iter().find(|outcome| text(outcome).contains(meaning));
        let outcome = outcome.unwrap_or_else(|| panic!("{meaning}: {outcomes:?}"));
        let text = text(outcome);
        assert_eq!(outcome["status"], "failed", "{text}");
        assert!(text.contains("cannot be used: ") && text.contains('\n'), "{text}");
    }
    let input = json!({"path": "file/below", "content": "x"});
    let (_, denied) = tool(&world, "write", &input, &["--deny", "Edit(file/**)"]);
    assert_eq!(denied["status"], "denied", "{denied}");
    assert!(!text(&denied).contains("directory"), "{denied}");
}

#[test]
fn a_refusal_is_one_sentence_with_its_full_stop() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let model = world.script(&[
        json!({"calls": [{"name": "write", "input": {"path": "a.txt", "content": "x"}}]}),
        json!({"text": "End."}),
    ]);
    let ran = world.run(&["-p", "go", "--model", &model]);
    let line = "haft: not allowed: no rule allows changing a.txt, and nobody can be asked here.\n";
    assert!(ran.err.contains(line), "{ran:?}");
}

#[test]
fn a_wrong_value_names_its_field() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let (code, outcome) = tool(&world, "read", &json!({"path": "a.txt", "offset": 1e23}), &[]);
    assert_eq!(code, Some(1), "{outcome}");
    assert!(text(&outcome).contains("- offset is 1e+23, wanted: a number of at most"), "{outcome}");
}

#[test]
fn a_huge_listing_is_bounded_for_programs_and_people_and_kept_whole() {
    let world = World::new();
    for n in 0..3_000 {
        world.file(&format!("{n:04}{}", "x".repeat(200)), "");
    }
    let input = json!({"path": ".", "limit": 3_000});
    let (code, outcome) = tool(&world, "ls", &input, &[]);
    assert_eq!(code, Some(0), "{}", text(&outcome));
    for part in ["data", "detail"] {
        let size = outcome[part].to_string().len();
        assert!((50_000..=200_000).contains(&size), "{part} has {size} bytes");
    }
    assert!(text(&outcome).contains("[the structured data of "), "{}", text(&outcome));
    let schema = world.run(&["tool", "spec", "ls"]);
    let schema: Value = serde_json::from_str(&schema.out).unwrap();
    let entries = outcome["data"]["entries"].as_array().unwrap();
    assert!(entries.len() > 100 && entries.len() < 3_000, "{}", entries.len());
    assert!(entries.iter().all(Value::is_object) && schema["output_schema"].is_object());
    let cut = &outcome["detail"]["cut"];
    assert_eq!((&cut["by"], &cut["from"]), (&json!("items"), &json!(1)), "{cut}");
    assert!(cut["to"].as_u64().unwrap() < cut["total"].as_u64().unwrap(), "{cut}");
}

#[test]
fn a_client_of_the_server_gets_bounded_data_and_the_same_paths() {
    let world = World::new();
    for n in 0..3_000 {
        world.file(&format!("{n:04}{}", "x".repeat(200)), "");
    }
    world.file("a.txt", "alpha\n");
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"}});
    let call = |id: u64, name: &str, input: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": name, "arguments": input}})
    };
    let lines = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        call(1, "ls", json!({"path": ".", "limit": 3_000})),
        call(2, "read", json!({"path": "@a.txt"})),
    ];
    let lines = lines.map(|line| line.to_string() + "\n").concat();
    let ran = world.run_with(&["mcp"], &Input::Pipe(&lines));
    let answers: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = |id: u64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    let data = &answer(1)["result"]["structuredContent"];
    let size = data.to_string().len();
    assert!((50_000..=200_000).contains(&size), "{size} bytes");
    let read = answer(2)["result"]["content"].to_string();
    assert!(read.contains("alpha") && read.contains("was taken as"), "{read}");
}

#[test]
fn a_denied_command_stays_denied_behind_redirects_and_in_scripts() {
    let world = World::new();
    world.file("x", "kept");
    let flags = ["--deny", "Bash(rm:*)", "--mode", "bypass"];
    for command in [
        ">/dev/null rm x",
        "&>/dev/null rm x",
        "<<<y rm x",
        "timeout 5 >/dev/null rm x",
        "X=1 >/dev/null rm x",
        "if >/dev/null rm x; then :; fi",
        "time -p rm x",
        "eval \"r\"\"m x\"",
        "prlimit rm x",
        "hash -p /bin/rm q; q x",
        "source <(echo rm x)",
        "echo rm x | sh",
    ] {
        let (code, outcome) = tool(&world, "bash", &json!({ "command": command }), &flags);
        assert_eq!((code, &outcome["status"]), (Some(1), &json!("denied")), "{command}: {outcome}");
        assert!(world.work().join("x").exists(), "{command}");
    }
    let outcomes =
        told(&world, &[json!({"name": "bash", "input": {"command": ">o rm x"}})], &flags);
    assert_eq!(outcomes[0]["status"], "denied", "{outcomes:?}");
    let (_, outcome) = tool(&world, "bash", &json!({"command": "echo y >rm; cat rm"}), &flags);
    assert!(outcome["status"] == "done" && text(&outcome).contains('y'), "{outcome}");
}

#[test]
fn the_question_about_a_command_says_where_it_starts_and_for_how_long() {
    let world = World::new();
    world.file("sub/x", "x");
    let bash = |input: Value| json!({"name": "bash", "input": input});
    let calls = [
        bash(json!({"command": "rm -rf *", "cwd": "sub", "timeout_ms": 600_000})),
        bash(json!({"command": "rm -rf *"})),
    ];
    told(&world, &calls, &[]);
    let events = world.events().into_iter().map(|event| serde_json::to_value(event).unwrap());
    let asked: Vec<String> = events
        .filter(|event| event["type"] == "asked")
        .map(|event| event["question"]["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    let sub = world.work().join("sub");
    let far = asked.iter().find(|text| text.contains("sub")).unwrap();
    assert!(far.contains(&format!("\n  in {}\n  for at most 600s\n", sub.display())), "{far}");
    assert!(!far.contains("  read "), "{far}");
    let near = asked.iter().find(|text| !text.contains("sub")).unwrap();
    assert!(!near.contains("\n  "), "{near}");
}

#[test]
fn a_rule_about_nothing_is_told() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let input = r#"{"path": "a.txt"}"#;
    for (rule, part) in [
        ("Raed", "no tool is named \"Raed\"; did you mean Read?"),
        ("Raed(a.txt)", "did you mean Read(a.txt)?"),
        ("Read(/etc/hosts)", "write //etc/hosts"),
    ] {
        let ran = world.run(&["tool", "read", "--input", input, "--deny", rule]);
        assert_eq!(ran.code, Some(2), "{rule}: {ran:?}");
        assert!(ran.err.contains(part) && ran.err.contains("command line"), "{ran:?}");
        let model = world.script(&[json!({"text": "End."})]);
        let ran = world.run(&["-p", "go", "--model", &model, "--deny", rule]);
        assert_eq!(ran.code, Some(2), "{rule}: {ran:?}");
    }
    world.settings("permissions.deny = ['Raed', 'Read(b.txt)']");
    for rule in ["Read(//etc/hosts)", "mcp__any", "WebFetch", "bash"] {
        let ran = world.run(&["tool", "read", "--input", input, "--deny", rule]);
        assert_eq!(ran.code, Some(0), "{rule}: {ran:?}");
        assert!(ran.err.contains("\"Raed\" (user settings) does not count"), "{ran:?}");
    }
}

#[test]
fn a_path_of_endless_length_is_refused_at_once() {
    let world = World::new();
    let long = "x/".repeat(20 << 10);
    for (name, input) in [
        ("read", json!({ "path": long })),
        ("grep", json!({"path": long, "pattern": "x"})),
        ("write", json!({"path": long, "content": "x"})),
    ] {
        let (code, outcome) = tool(&world, name, &input, &["--mode", "bypass"]);
        let text = text(&outcome);
        assert_eq!(code, Some(1), "{name}: {text}");
        assert!(text.contains("has 40960 bytes, and a path has at most 32768"), "{name}: {text}");
        assert!(text.len() < 1_000, "{name}: {}", text.len());
    }
}
