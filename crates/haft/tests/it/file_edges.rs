//! Edges of the file tools, through every face: a shell, `-p`, `--line` and an MCP client.

use serde_json::{Value, json};

use crate::world::{Input, World};

/// A call, what has to be said of it, and what must not.
struct Case {
    tool: &'static str,
    input: Value,
    said: Vec<&'static str>,
    never: Vec<&'static str>,
}

fn case(tool: &'static str, input: Value, said: &[&'static str], never: &[&'static str]) -> Case {
    Case { tool, input, said: said.to_vec(), never: never.to_vec() }
}

fn filled() -> World {
    let world = World::new();
    for name in ["src/config.rs", "app/deep/main.py", "secret.txt", "hidden/key.txt", "a.txt"] {
        world.file(name, "content\n");
    }
    for (name, aim) in [("gone", "nowhere"), ("trap", "hidden/nothing"), ("up", "../else")] {
        std::os::unix::fs::symlink(aim, world.work().join(name)).unwrap();
    }
    world
}

const FLAGS: [&str; 6] =
    ["--mode", "accept-edits", "--deny", "Read(secret.txt)", "--deny", "Read(hidden/**)"];

/// What each face shows or keeps of one call.
fn through_every_face(case: &Case) -> Vec<(&'static str, String)> {
    let input = case.input.to_string();
    let world = filled();
    let ran = world.run(&[&["tool", case.tool, "--input", &input], &FLAGS[..]].concat());
    let mut faces = vec![("tool", ran.out + &ran.err)];
    for face in ["-p", "--line"] {
        let world = filled();
        let call = json!({"name": case.tool, "input": case.input});
        let model = world.script(&[json!({"calls": [call]}), json!({"text": "End."})]);
        let first = if face == "-p" { &["-p", "go"][..] } else { &["--line"] };
        let flags = [first, &["--model", &model], &FLAGS].concat();
        let typed = if face == "-p" { Input::Nothing } else { Input::Pipe("go\n") };
        world.run_with(&flags, &typed);
        let ended = world.events().into_iter().find_map(|event| match event.body {
            haft_types::Body::CallEnded { outcome, .. } => Some(outcome.joined_text()),
            _ => None,
        });
        faces.push((face, ended.unwrap()));
    }
    let world = filled();
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "edges", "version": "1"}});
    let asked = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": case.tool, "arguments": case.input}}),
    ];
    let text = asked.map(|line| line.to_string() + "\n").concat();
    let ran = world.run_with(&[&["mcp"], &FLAGS[..]].concat(), &Input::Pipe(&text));
    let answers = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let answer = answers.into_iter().find(|answer| answer["id"] == 1).unwrap_or_default();
    faces.push(("mcp", answer["result"]["content"][0]["text"].as_str().unwrap_or("").to_owned()));
    faces
}

fn hold(cases: &[Case]) {
    for case in cases {
        for (face, text) in through_every_face(case) {
            for word in &case.said {
                assert!(text.contains(word), "{face}: {} {}: {text}", case.tool, case.input);
            }
            for word in &case.never {
                assert!(!text.contains(word), "{face}: {} {}: {text}", case.tool, case.input);
            }
        }
    }
}

#[test]
fn a_missing_file_names_what_is_near_and_may_be_seen() {
    let edit = json!({"path": "src/Confg.rs", "edits": [{"old_text": "a", "new_text": "b"}]});
    hold(&[
        case("read", json!({"path": "src/confg.rs"}), &["Did you mean src/config.rs?"], &[]),
        case("read", json!({"path": "srcs/config.rs"}), &["Did you mean src/?"], &[]),
        case("read", json!({"path": "main.py"}), &["Did you mean app/deep/main.py?"], &[]),
        case("edit", edit, &["Did you mean src/config.rs?"], &[]),
        case(
            "grep",
            json!({"pattern": "x", "path": "src/config"}),
            &["Did you mean src/config.rs?"],
            &[],
        ),
        case("ls", json!({"path": "ap"}), &["Did you mean app/"], &[]),
        case("read", json!({"path": "secret.tx"}), &["secret.tx"], &["secret.txt"]),
        case("read", json!({"path": "key.txt"}), &["key.txt"], &["hidden"]),
        case("read", json!({"path": "a.txt/b"}), &["a.txt is not a folder"], &[]),
    ]);
}

#[test]
fn a_listing_hides_and_counts_what_rules_deny() {
    let shown = ["a.txt", "gone -> nowhere (broken)", "up -> ../else (broken)", "not allowed"];
    hold(&[
        case("ls", json!({}), &shown, &["secret", "hidden/\n", "nothing (broken)"]),
        case(
            "ls",
            json!({"recursive": true}),
            &["app/deep/main.py", "not allowed"],
            &["secret", "key.txt", "declared"],
        ),
        case("find", json!({"pattern": "*.txt"}), &["a.txt"], &["secret", "key.txt"]),
    ]);
}

#[test]
fn a_pattern_that_leads_elsewhere_says_what_to_give() {
    hold(&[
        case("find", json!({"pattern": "../*"}), &["give path ..", "with pattern *"], &[]),
        case("find", json!({"pattern": "~/*.rs"}), &["give path ~ with pattern *.rs"], &[]),
        case("find", json!({"pattern": "/etc/*"}), &["give path /etc with pattern *"], &[]),
        case("find", json!({"pattern": "/src/*"}), &["src/config.rs"], &["give path"]),
    ]);
}

#[test]
fn what_is_no_text_is_not_written() {
    let edit = json!({"path": "a.txt", "edits": [{"old_text": "tent", "new_text": "t\0t"}]});
    hold(&[
        case("edit", edit, &["new_text of edit 1", "NUL", "nothing was changed"], &[]),
        case(
            "write",
            json!({"path": "new.txt", "content": "ab\0"}),
            &["NUL", "character 3", "nothing was changed"],
            &[],
        ),
        case(
            "write",
            json!({"path": "a.txt", "content": "content\n"}),
            &["nothing changed"],
            &["replaced"],
        ),
    ]);
}
