//! Edges of the file tools, through every face: a shell, `-p`, `--line` and an MCP client.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::Stdio,
};

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

fn numbered(count: usize, end: &str) -> String {
    (0..count).map(|number| format!("line {number} {end}\n")).collect::<Vec<_>>().concat()
}

fn nth(path: &str, number: usize) -> Value {
    let (old, new) = (format!("line {number} old"), format!("line {number} new"));
    json!({"path": path, "edits": [{"old_text": old, "new_text": new}]})
}

/// A world with one file of so many lines that has two names.
fn two_names(count: usize) -> World {
    let world = World::new();
    world.file("many.txt", numbered(count, "old"));
    std::os::unix::fs::symlink("many.txt", world.work().join("link.txt")).unwrap();
    world
}

const NAMES: [&str; 2] = ["many.txt", "link.txt"];

#[test]
fn two_hundred_edits_of_one_file_at_once_are_all_made() {
    let world = two_names(200);
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "edges", "version": "1"}});
    let mut text = [
        json!({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ]
    .map(|line| line.to_string() + "\n")
    .concat();
    for id in 0..200 {
        let params = json!({"name": "edit", "arguments": nth(NAMES[id % 2], id)});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        text += &(call.to_string() + "\n");
    }
    let mut command = world.haft(&["mcp", "--mode", "accept-edits"]);
    let mut server = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // Open until all is answered: its end would cancel what still runs.
    let mut input = server.stdin.take().unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut answered = std::thread::scope(|scope| {
        scope.spawn(|| input.write_all(text.as_bytes()).unwrap());
        let answers = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        let calls = answers.filter(|answer| answer["id"].is_u64());
        let answered = calls.take(200).map(|answer| {
            assert_eq!(answer["result"]["isError"], false, "{answer}");
            answer["id"].as_u64().unwrap()
        });
        answered.collect::<Vec<_>>()
    });
    drop(input);
    assert!(server.wait().unwrap().success());
    answered.sort_unstable();
    assert_eq!(answered, (0..200).collect::<Vec<_>>());
    let found = std::fs::read_to_string(world.work().join("many.txt")).unwrap();
    assert_eq!(found, numbered(200, "new"));
}

#[test]
fn twenty_programs_that_edit_one_file_at_once_lose_nothing() {
    let world = two_names(20);
    std::thread::scope(|scope| {
        for number in 0..20 {
            let world = &world;
            scope.spawn(move || {
                let input = nth(NAMES[number % 2], number).to_string();
                let ran = world.run(&["tool", "edit", "--mode", "accept-edits", "--input", &input]);
                assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
            });
        }
    });
    let found = std::fs::read_to_string(world.work().join("many.txt")).unwrap();
    assert_eq!(found, numbered(20, "new"));
}

#[test]
fn what_the_person_ignores_everywhere_is_ignored_unless_its_file_is_denied() {
    let world = World::new();
    world.file("a.txt", "found me\n");
    world.file("b.mine", "found me\n");
    let folder = world.root().join("home/.config/git");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("ignore"), "*.mine\n").unwrap();
    let calls = [
        ("grep", json!({"pattern": "found", "output_mode": "files_with_matches"})),
        ("find", json!({"pattern": "*"})),
    ];
    for (tool, input) in calls {
        let call = ["tool", tool, "--input", &input.to_string()];
        let ran = world.run(&call);
        assert!(ran.out.contains("a.txt") && !ran.out.contains("b.mine"), "{tool}: {}", ran.out);
        let denied = [&call[..], &["--deny", "Read(~/.config/git/**)"]].concat();
        let ran = world.run(&denied);
        assert!(ran.out.contains("a.txt") && ran.out.contains("b.mine"), "{tool}: {}", ran.out);
    }
    let Some(rg) = std::env::var_os("HAFT_TEST_RG") else { return };
    let mut rg = world.program(rg);
    let ran = rg.args(["--no-require-git", "-l", "found", "."]).current_dir(world.work()).output();
    assert_eq!(String::from_utf8_lossy(&ran.unwrap().stdout).trim(), "./a.txt");
}
