//! Rules about commands as each face shows them: what only names a denied word runs, what runs it
//! is denied, and what may run it is refused with the reason and the way out.

use serde_json::{Value, json};

use crate::{
    mcp_client::side_by_side,
    world::{World, text},
};

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

/// What comes of a command under the rule.
fn bash(world: &World, command: &str, flags: &[&str]) -> Value {
    let flags = [&FLAGS[..], &["--json"], flags].concat();
    world.tool("bash", &json!({ "command": command }), &flags).json()
}

#[test]
fn a_tool_alone_says_what_is_to_blame() {
    let world = world();
    for (command, status, part) in CASES {
        let outcome = bash(&world, command, &[]);
        assert_eq!(outcome["status"], status, "{command}: {outcome}");
        let told = text(&outcome);
        assert!(told.contains(part), "{command}: {told}");
        assert!(world.work().join("x").exists(), "{command}");
    }
    let outcome = bash(&world, "sed '1e rm y' f", &["--allow", r"Bash(sed 1e\ rm\ y f)"]);
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
    let outcomes = world.outcomes();
    assert_eq!(outcomes.len(), CASES.len());
    for (command, status, part) in CASES {
        let fits = |outcome: &Value| outcome["status"] == status && text(outcome).contains(part);
        assert!(outcomes.iter().any(fits), "{command}: {outcomes:?}");
    }
    assert!(ran.err.contains("write the program's name there"), "{ran:?}");
    assert!(world.work().join("x").exists());
}

#[test]
fn a_client_of_the_server_reads_the_same() {
    let world = world();
    let calls = CASES.map(|(command, ..)| ("bash", json!({ "command": command })));
    let answers = side_by_side(&world, &FLAGS, &calls);
    for ((command, status, part), answer) in CASES.into_iter().zip(answers) {
        let told = text(&answer["result"]);
        assert!(told.contains(part), "{command}: {answer}");
        assert_eq!(answer["result"]["isError"] == true, status == "denied", "{command}: {answer}");
    }
    assert!(world.work().join("x").exists());
}

#[test]
fn a_denied_command_stays_denied_behind_redirects_and_in_scripts() {
    let world = World::new();
    world.file("x", "kept");
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
        let outcome = bash(&world, command, &[]);
        assert_eq!(outcome["status"], "denied", "{command}: {outcome}");
        assert!(world.work().join("x").exists(), "{command}");
    }
    let call = json!({"name": "bash", "input": {"command": ">o rm x"}});
    let outcomes = world.tool_results(&[call], &FLAGS);
    assert_eq!(outcomes[0]["status"], "denied", "{outcomes:?}");
    let outcome = bash(&world, "echo y >rm; cat rm", &[]);
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
    world.tool_results(&calls, &[]);
    let events = world.events().into_iter().map(|event| serde_json::to_value(event).unwrap());
    let asked: Vec<String> = events
        .filter(|event| event["type"] == "asked")
        .map(|event| event["question"]["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    let sub = world.work().join("sub");
    let far = asked.iter().find(|text| text.contains("sub")).unwrap();
    assert!(far.contains(&format!("\n  in {}\n  for at most 600s", sub.display())), "{far}");
    assert!(!far.contains("  read "), "{far}");
    let near = asked.iter().find(|text| !text.contains("sub")).unwrap();
    assert!(!near.contains("\n  "), "{near}");
}
