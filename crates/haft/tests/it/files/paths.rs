//! Paths that are not what they seem.

use serde_json::{Value, json};

use crate::world::{World, text};

fn tool(world: &World, name: &str, input: &Value, flags: &[&str]) -> (Option<i32>, Value) {
    let ran = world.tool(name, input, &[&["--json"], flags].concat());
    (ran.code, ran.json())
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
    let outcomes = world.tool_results(&[read("@a.txt"), read("'d e.txt'")], &[]);
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
    let outcomes = world.tool_results(&calls, &[]);
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
