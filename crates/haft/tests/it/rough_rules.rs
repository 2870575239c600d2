//! Rules about commands as each face shows them: what only names a denied word runs, what runs it
//! is denied, and what may run it is refused with the reason and the way out.

use serde_json::{Value, json};

use crate::world::{Input, World};

const FLAGS: [&str; 4] = ["--deny", "Bash(rm:*)", "--mode", "bypass"];

/// What each command comes to where nobody can be asked, and what is said of it.
const CASES: [(&str, &str, &str); 8] = [
    ("echo 'rm x'; grep 'rm ' f; cat <<E\nrm x\nE", "done", "rm x"),
    ("source ./env.sh && \"$HOME/bin/hello\"", "done", "hello from home"),
    ("T=5; timeout \"$T\" env A=$HOME ls", "done", "env.sh"),
    ("r''m x", "denied", "the deny rule Bash(rm:*) (command line) forbids running"),
    ("cat <<E | sh\nrm x\nE", "denied", "the deny rule Bash(rm:*) (command line) forbids running"),
    ("sed '1e rm x' f", "denied", "or allow the rule Bash(sed 1e\\ rm\\ x f), and nobody can be"),
    ("$X x", "denied", "which program `$X` is shows only when the shell runs; write the program's"),
    ("echo x | sh", "denied", "`sh` runs commands that it reads; write them in the command itself"),
];

fn world() -> World {
    let world = World::new();
    world.file("x", "kept");
    world.file("f", "rm it\n");
    world.file("env.sh", "Y=1\n");
    let bin = world.root().join("home/bin");
    std::fs::create_dir(&bin).unwrap();
    let hello = bin.join("hello");
    std::fs::write(&hello, "#!/bin/sh\necho hello from home\n").unwrap();
    std::fs::set_permissions(&hello, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world
}

fn text(content: &Value) -> String {
    let parts = content.as_array().unwrap().iter();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_tool_alone_says_what_is_to_blame() {
    let world = world();
    for (command, status, part) in CASES {
        let input = json!({ "command": command }).to_string();
        let mut arguments = vec!["tool", "bash", "--json", "--input", &input];
        arguments.extend(FLAGS);
        let ran = world.run(&arguments);
        let outcome: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(outcome["status"], status, "{command}: {outcome}");
        let told = text(&outcome["content"]);
        assert!(told.contains(part), "{command}: {told}");
        assert!(world.work().join("x").exists(), "{command}");
    }
    let input = json!({"command": "sed '1e rm y' f"}).to_string();
    let mut arguments = vec!["tool", "bash", "--json", "--input", &input];
    arguments.extend(FLAGS);
    arguments.extend(["--allow", r"Bash(sed 1e\ rm\ y f)"]);
    let ran = world.run(&arguments);
    let outcome: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(outcome["status"], "done", "the way that is named: {outcome}");
}

#[test]
fn a_printing_run_tells_the_model_what_to_do() {
    let world = world();
    let calls = CASES.map(|(command, ..)| json!({"name": "bash", "input": {"command": command}}));
    let model = world.script(&[json!({ "calls": calls }), json!({"text": "End."})]);
    let mut arguments = vec!["-p", "go", "--model", &model];
    arguments.extend(FLAGS);
    let ran = world.run(&arguments);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let events = world.events().into_iter().map(|event| serde_json::to_value(event).unwrap());
    let ended: Vec<Value> = events.filter(|event| event["type"] == "call_ended").collect();
    assert_eq!(ended.len(), CASES.len());
    for (command, status, part) in CASES {
        let fits = |event: &&Value| {
            let outcome = &event["outcome"];
            outcome["status"] == status && text(&outcome["content"]).contains(part)
        };
        assert!(ended.iter().any(|event| fits(&event)), "{command}: {ended:?}");
    }
    assert!(ran.err.contains("write the program's name there"), "{ran:?}");
    assert!(world.work().join("x").exists());
}

#[test]
fn a_client_of_the_server_reads_the_same() {
    let world = world();
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"}});
    let mut lines = vec![
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    for (id, (command, ..)) in (1..).zip(CASES) {
        lines.push(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "bash", "arguments": {"command": command}}}));
    }
    let lines: String = lines.iter().map(|line| line.to_string() + "\n").collect();
    let mut arguments = vec!["mcp"];
    arguments.extend(FLAGS);
    let ran = world.run_with(&arguments, &Input::Pipe(&lines));
    let answers: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (id, (command, status, part)) in (1..).zip(CASES) {
        let answer = answers.iter().find(|answer| answer["id"] == id).unwrap();
        let told = text(&answer["result"]["content"]);
        assert!(told.contains(part), "{command}: {answer}");
        assert_eq!(answer["result"]["isError"] == true, status == "denied", "{command}: {answer}");
    }
    assert!(world.work().join("x").exists());
}
