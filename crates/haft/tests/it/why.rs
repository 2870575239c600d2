//! `haft why`: cases of the policy, as data, and what people and programs see of its answers.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::world::{Input, World, finish};

const COMMANDS: [(&str, &str); 3] = [
    ("everyday", include_str!("../../../haft-policy/tests/commands/everyday.txt")),
    ("rarer", include_str!("../../../haft-policy/tests/commands/rarer.txt")),
    ("attacks", include_str!("../../../haft-policy/tests/commands/attacks.txt")),
];
const RULES: &str = include_str!("../../../haft-policy/tests/rules.jsonl");

/// Attacks that need a repository with settings of its own, which is looked for on disk: see
/// [`settings_of_repositories_decide_whether_git_only_looks`].
const ON_DISK: &[&str] = &["find . -type f -exec git diff {} \\;"];

/// Answers each line.
fn batch(world: &World, lines: &[Value]) -> Vec<Value> {
    let mut input = String::new();
    for line in lines {
        writeln!(input, "{line}").unwrap();
    }
    let mut haft = world.haft(&["why", "--batch"]);
    // The cases are written for this home.
    haft.env("HOME", "/h");
    let ran = finish(haft, &Input::Pipe(&input));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let answers: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), lines.len(), "each line gets one line");
    answers
}

/// The command of a line: escapes are those of JSON, quotes stand for themselves.
fn command(line: &str) -> String {
    let mut text = String::from("\"");
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.extend(['\\', chars.next().unwrap()]),
            '"' => text.push_str("\\\""),
            c => text.push(c),
        }
    }
    text.push('"');
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The lines of a file of commands.
fn commands(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.map(|line| command(line.split(" #= ").next().unwrap())).collect()
}

#[test]
fn commands_that_only_look_are_known_and_no_others() {
    let world = World::new();
    for (name, text) in COMMANDS {
        let commands = commands(text);
        let lines: Vec<Value> =
            commands.iter().map(|command| json!({"command": command, "cwd": "/w"})).collect();
        let answers = batch(&world, &lines);
        let told = commands.iter().zip(&answers);
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        for (command, answer) in told.filter(|(command, _)| !ON_DISK.contains(&command.as_str())) {
            let found = if answer["read_only"] == true { &mut yes } else { &mut no };
            found.push(format!("{command}: {}", answer["reason"]));
        }
        // 98 % and 65 % are promised; of attacks none.
        let (least, most) = match name {
            "everyday" => (commands.len() * 98 / 100, usize::MAX),
            "rarer" => (commands.len() * 65 / 100, usize::MAX),
            _ => (0, 0),
        };
        assert!(yes.len() >= least, "{name}: not known:\n{}", no.join("\n"));
        assert!(yes.len() <= most, "{name}: taken for harmless:\n{}", yes.join("\n"));
        assert!(commands.len() > 400, "{name} has {} commands", commands.len());
    }
}

#[test]
fn every_rule_case_holds() {
    let world = World::new();
    let cases: Vec<Value> = RULES.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answers = batch(&world, &cases);
    let mut wrong = Vec::new();
    for (case, answer) in cases.iter().zip(&answers) {
        // There is no sandbox to be left yet.
        if case["input"].get("unsandboxed").is_some() {
            continue;
        }
        if case["expected"] != answer["decision"] {
            wrong.push(format!("{case}\n  got {}: {}", answer["decision"], answer["reason"]));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases.len() > 200);
}

#[test]
fn each_line_gets_one_line_whatever_it_holds() {
    let world = World::new();
    let input = b"no json\n\n{\"command\": \"\\ud800\"}\n{\"command\": 3}\n{\"tool\": \"nothing\", \"input\": {}}\n\
        {\"command\": \"ls\", \"mode\": \"none\"}\n\xff\n{\"command\": \"ls \\u0000\"}\n{\"command\": \"ls\"}";
    let ran = world.run_with(&["why", "--batch"], &Input::File(&world.file("lines", input)));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let answers: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 9, "{}", ran.out);
    for answer in &answers[..8] {
        assert_eq!((&answer["parsed"], &answer["read_only"]), (&json!(false), &json!(false)));
        assert_eq!(answer["decision"], "ask", "{answer}");
    }
    assert_eq!(answers[8]["decision"], "allow", "{}", answers[8]);
}

#[test]
fn settings_of_repositories_decide_whether_git_only_looks() {
    let world = World::new();
    let answer = |command: &str| {
        let ran = world.run(&["why", "--json", command]);
        serde_json::from_str::<Value>(&ran.out).unwrap()["read_only"].clone()
    };
    for folder in [".", "sub"] {
        let init = world.program("git").args(["init", "-q", folder]).status().unwrap();
        assert!(init.success());
    }
    world.file(".git/config", "[core]\n\tbare = false\n");
    world.file("sub/.git/config", "[diff \"x\"]\n\ttextconv = ./x\n");
    for (command, expected) in [
        ("git diff", true),
        ("cargo --version", true),
        ("git -C sub diff", false),
        ("cd sub && git log -p", false),
        ("git -C missing diff", false),
        ("git diff | head; ls sub", true),
    ] {
        assert_eq!(answer(command), expected, "{command}");
    }
    // A filter matters where files are read anew, an alias and a file monitor never.
    let settings =
        "[filter \"x\"]\n\tclean = ./x\n[alias]\n\tst = !./x\n[core]\n\tfsmonitor = ./x\n";
    world.file(".git/config", settings);
    for (command, expected) in [
        ("git log -p", true),
        ("git ls-files", true),
        ("git diff --cached", true),
        ("git ls-files -m", false),
        ("git diff -- --cached", false),
    ] {
        assert_eq!(answer(command), expected, "{command}");
    }
    world.file(".git/config", "[filter \"x\"]\n\tclean = ./x\n");
    world.file("rust-toolchain.toml", "[toolchain]\npath = \"here\"\n");
    for command in ["git diff", "git status", "cargo --version"] {
        assert_eq!(answer(command), false, "{command}");
    }
}

#[test]
fn a_path_behind_a_revision_starts_at_the_top_of_the_repository() {
    let world = World::new();
    assert!(world.program("git").args(["init", "-q", "."]).status().unwrap().success());
    world.file("sub/a", "");
    world.file("hidden/a", "");
    for (command, expected) in [
        ("cd sub && git show HEAD:hidden/a", "deny"),
        ("cd sub && git show HEAD:sub/a", "allow"),
        ("git show HEAD:hidden/a", "deny"),
    ] {
        let ran = world.run(&["why", "--json", "--deny", "Read(/hidden/**)", command]);
        let answer: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(answer["decision"], expected, "{command}: {answer}");
    }
}

#[test]
fn people_see_what_decides_about_each_part() {
    let world = World::new();
    let ran =
        world.run(&["why", "--allow", "Bash(make:*)", "make -j2 2>&1 | tail -5 && rm -r out"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let first = ran.out.lines().next().unwrap();
    assert!(first.starts_with("ask: no rule allows running `rm -r out`"), "{}", ran.out);
    for part in ["not read-only", "allow by Bash(make:*)", "tail -5", "removes out"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let ran = world.run(&["why"]);
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    assert!(ran.err.contains("give a COMMAND"), "{}", ran.err);
}

#[test]
fn a_file_of_rules_is_held_to_its_own_tests() {
    let world = World::new();
    let rules = "allow = [\"Bash(npm run test:*)\"]\ndeny = [\"Bash(git push:*)\"]\n";
    let test = |expect: &str| {
        format!("{rules}[[tests]]\ncommand = \"git push origin\"\nexpect = \"{expect}\"\n")
    };
    world.file("good.toml", test("deny"));
    let ran = world.run(&["why", "--rules", "good.toml", "npm run test a"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.starts_with("allow: "), "{}", ran.out);
    world.file("bad.toml", test("allow"));
    let ran = world.run(&["why", "--rules", "bad.toml", "ls"]);
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    assert!(ran.err.contains("test 1") && ran.err.contains("deny"), "{}", ran.err);
    world.file("broken.json", "{\"allow\": [\"Bash(\"]}");
    let ran = world.run(&["why", "--rules", "broken.json", "ls"]);
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    assert!(ran.err.contains("bracket"), "{}", ran.err);
}
