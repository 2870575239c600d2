//! Values of secrets in what haft itself tells: of hooks, of tools, of what people say.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::{
    hooks::calls::{hook, prints},
    mock_provider::{Mock, Wire},
    world::{CANARY, Input, Ran, World, finish, holding},
};

/// What stands in a file behind a name, and what the environment has.
const NAMED: &str = "Zq7Kw2Xr9Tb4Ym6Pd1";
const VARIABLE: &str = "Hj3Lc8Vn5Gs0Qf7Wx2";

/// One message to a model that answers with these words and calls `bash` once, in a workspace with
/// these settings; what it was sent and what people got.
fn talk(world: &World, settings: &str, prompt: &str) -> (Ran, Vec<String>) {
    world.settings(settings);
    world.file("secret.env", format!("API_TOKEN={NAMED}\n"));
    let wire = Wire::Anthropic;
    let echo = format!("echo {VARIABLE} > echoed.txt");
    let mock = Mock::new(vec![
        wire.calls("do", &[("bash", json!({"command": echo}))]),
        wire.text(&format!("It is {VARIABLE}.")),
    ]);
    let flags = ["-p", prompt, "--mode", "bypass", "--output", "stream-json"];
    let mut haft = wire.haft(world, &mock.url(), &flags);
    haft.env("DEPLOY_TOKEN", VARIABLE);
    (finish(haft, &Input::Nothing), mock.bodies())
}

fn shows_none(world: &World, ran: &Ran, bodies: &[String]) {
    let mut said = vec![ran.out.clone(), ran.err.clone()];
    said.extend(bodies.iter().cloned());
    for arguments in [&["session", "list"][..], &["session", "show", &world.only_session()]] {
        said.push(world.run(arguments).both_outputs());
    }
    for value in [NAMED, VARIABLE] {
        for text in &said {
            let at = text.find(value);
            let around = at.map(|at| &text[text.floor_char_boundary(at.saturating_sub(300))..at]);
            assert!(at.is_none(), "{value} behind {around:?}");
        }
        let mut kept = holding(&world.state(), value.as_bytes());
        // Settings are the person's own, and what undo brings back is what was there.
        kept.retain(|path| !path.ends_with("settings.toml"));
        assert!(kept.is_empty(), "{value} stands in {kept:?}");
    }
}

#[test]
fn nothing_that_hooks_say_shows_one() {
    let rewrite = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "updatedInput": {"command": format!("echo API_TOKEN={NAMED} > echoed.txt")}}});
    let message = json!({"systemMessage": format!("API_TOKEN={NAMED}")});
    for (event, command, wanted) in [
        ("PreToolUse", "cat secret.env >&2; exit 1".to_owned(), "failed"),
        ("PreToolUse", "cat secret.env >&2; exit 2".to_owned(), "refused"),
        ("PreToolUse", "cat secret.env; exit 0".to_owned(), ""),
        ("PreToolUse", format!("API_TOKEN={NAMED} false"), "failed"),
        ("PreToolUse", format!("echo {{; API_TOKEN={NAMED} false"), "failed"),
        ("PreToolUse", prints(&message), "API_TOKEN="),
        ("PreToolUse", prints(&rewrite), "echo API_TOKEN={{secret:API_TOKEN}}"),
        ("PostToolUse", "cat secret.env >&2; exit 2".to_owned(), "objects"),
        ("UserPromptSubmit", "cat secret.env >&2; exit 1".to_owned(), "failed"),
        ("UserPromptSubmit", "cat secret.env".to_owned(), "adds"),
    ] {
        let world = World::new();
        let (ran, bodies) = talk(&world, &hook(event, "", &command, ""), "go");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.out.contains(wanted), "{command}: {ran:?}");
        shows_none(&world, &ran, &bodies);
    }
    let world = World::new();
    let refuse = hook("UserPromptSubmit", "", "cat secret.env >&2; exit 2", "");
    let (ran, bodies) = talk(&world, &refuse, "go");
    assert!(ran.out.contains("refused this message") && bodies.is_empty(), "{ran:?}");
    shows_none(&world, &ran, &bodies);
}

#[test]
fn what_people_and_models_say_is_shown_without_them() {
    let world = World::new();
    let (ran, bodies) = talk(&world, "", &format!("take API_TOKEN={NAMED} and {VARIABLE}"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for text in [&bodies[0], &ran.out] {
        assert!(text.contains("take API_TOKEN={{secret:API_TOKEN}} and {{secret:DEPLOY_TOKEN}}"));
    }
    assert!(ran.out.contains("It is {{secret:DEPLOY_TOKEN}}."), "{ran:?}");
    assert!(bodies[1].contains("echo {{secret:DEPLOY_TOKEN}} > echoed.txt"), "{}", bodies[1]);
    // What the model called for is what was done.
    assert_eq!(world.read("echoed.txt"), format!("{VARIABLE}\n"));
    shows_none(&world, &ran, &bodies);
}

#[test]
fn a_tool_that_prints_no_spec_is_told_without_them() {
    let world = World::new();
    let folder = world.state().join("tools");
    std::fs::create_dir_all(&folder).unwrap();
    let long = "x".repeat(60);
    for (name, script) in [
        ("a", format!("echo API_TOKEN={NAMED}")),
        ("b", format!("echo {long} {NAMED}{NAMED} API_TOKEN={NAMED}")),
        ("c", format!("echo API_TOKEN={NAMED} >&2; exit 3")),
    ] {
        let file = folder.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for arguments in [&["tool", "list"][..], &["doctor"]] {
        let ran = world.run(arguments);
        assert!(ran.both_outputs().contains("printed no spec"), "{ran:?}");
        assert!(
            ran.both_outputs().contains("ended with exit code 3: API_TOKEN={{secret:"),
            "{ran:?}"
        );
        assert!(!ran.both_outputs().contains(&NAMED[..8]), "{ran:?}");
    }
}

/// A run of `-p` with a model that makes these calls, one after the other; all that it said. A script
/// goes on behind as many answers as were given `before` in the session.
fn calls(world: &World, calls: &[Value], before: usize) -> String {
    let flags: &[&str] = if before > 0 { &["-c"] } else { &[] };
    let mut answers = vec![json!({"text": "was before"}); before];
    answers.extend(calls.iter().map(|call| json!({"calls": [call]})));
    answers.push(json!({"text": "End."}));
    let model = world.script(&answers);
    let fixed = ["-p", "go", "--mode", "bypass", "--output", "stream-json", "--model", &model];
    let ran = world.run(&[&fixed, flags].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.both_outputs()
}

fn bash(command: &str) -> Value {
    json!({"name": "bash", "input": {"command": command}})
}

#[test]
fn what_one_run_saw_the_next_ones_hide_under_the_same_names() {
    let world = World::new();
    world.file("a.env", format!("API_KEY={NAMED}\n"));
    world.file("b.env", format!("API_KEY={VARIABLE}\n"));
    let read = |path: &str| json!({"name": "read", "input": {"path": path}});
    calls(&world, &[read("a.env"), read("b.env")], 0);
    let id = world.only_session();
    let cut = "cut -d= -f2 b.env a.env; echo \"$(cut -d= -f2 a.env)\" | base64";
    let hidden = "{{secret:API_KEY_2}}\n{{secret:API_KEY}}\n";
    let again = calls(&world, &[bash(cut)], 3);
    assert!(again.contains(&hidden.replace('\n', "\\n")), "{again}");
    let input = json!({"command": cut}).to_string();
    let one = world.run(&["tool", "bash", "--session", &id, "--mode", "bypass", "--input", &input]);
    assert!(one.out.contains(hidden), "{one:?}");
    // Another value of the same name is another name, and a known one finds its way back.
    let more = format!("echo API_KEY=Other{NAMED}; echo \"{{{{secret:API_KEY_2}}}}\" | wc -c");
    let third = calls(&world, &[bash("cat b.env"), bash(&more)], 5);
    assert!(third.contains("API_KEY={{secret:API_KEY_3}}\\n19"), "{third}");
    for text in [again, one.both_outputs(), third] {
        assert!(!text.contains(NAMED) && !text.contains(VARIABLE), "{text}");
    }
    let shown = world.run(&["session", "show", &id, "--json"]);
    assert!(!shown.out.contains(VARIABLE), "{shown:?}");
    for value in [NAMED, VARIABLE] {
        let mut kept = holding(&world.state(), value.as_bytes());
        kept.retain(|path| !path.iter().any(|part| part == "out"));
        // What the model itself wrote of a name is no secret, and stands in its call.
        kept.retain(|path| value != NAMED || !path.ends_with("log.jsonl"));
        assert!(kept.is_empty(), "{value} stands in {kept:?}");
    }
}

#[test]
fn a_file_that_is_named_by_one_is_told_of_without_it() {
    let world = World::new();
    world.file("a.env", format!("API_KEY={NAMED}\n"));
    let touch = bash("touch \"$(cut -d= -f2 a.env)\"");
    let said = calls(&world, &[bash("cat a.env"), touch], 0);
    assert!(said.contains("[created: {{secret:API_KEY}}]"), "{said}");
    let id = world.only_session();
    let mut all = vec![said];
    for arguments in [&["session", "show", &id][..], &["session", "show", &id, "--json"], &["undo"]]
    {
        all.push(world.run(arguments).both_outputs());
    }
    for text in &all {
        let at = text.find(NAMED);
        let around = at.map(|at| &text[text.floor_char_boundary(at.saturating_sub(300))..at]);
        assert!(at.is_none(), "behind {around:?}");
    }
    assert!(!world.work().join(NAMED).exists(), "it was taken back: {all:?}");
}

#[test]
fn keys_of_haft_itself_are_given_to_no_command() {
    let world = World::new();
    world.file("a.env", format!("MINE={CANARY}\n"));
    let command = "echo \"{{secret:ANTHROPIC_API_KEY}}\" | rev > out.txt; cat a.env";
    let allow = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "permissionDecision": "allow"}});
    let let_through = "[shell]\nlet_through = [\"ANTHROPIC_API_KEY\"]\n";
    for (settings, flags) in [
        (String::new(), &["--allow", "Bash"][..]),
        (String::new(), &["--mode", "bypass"]),
        (hook("PreToolUse", "", &prints(&allow), ""), &[]),
        (let_through.to_owned(), &["--mode", "bypass"]),
    ] {
        world.settings(&settings);
        for command in [command, "env | rev > out.txt; cat a.env"] {
            let input = json!({"command": command}).to_string();
            let mut haft = world.haft(&[&["tool", "bash", "--input", &input], flags].concat());
            haft.env("ANTHROPIC_API_KEY", CANARY);
            let ran = finish(haft, &Input::Nothing);
            let given = command.contains("secret:");
            // Where a question would come first, nobody is there to answer it.
            let refused = ["a key of haft itself", "denies what would ask"];
            let is_refused = refused.iter().any(|text| ran.both_outputs().contains(text));
            assert!(is_refused || !given, "{ran:?}");
            let out = world.work().join("out.txt");
            let written = std::fs::read_to_string(&out).unwrap_or_default();
            let key: String = CANARY.chars().rev().collect();
            assert!(!written.contains(&key), "{written}");
            drop(std::fs::remove_file(out));
        }
    }
    drop(std::fs::remove_file(world.work().join("a.env")));
}

#[test]
fn a_placeholder_does_what_it_says_in_a_here_document() {
    let world = World::new();
    let script = "cat <<E > o.txt\nkey='{{secret:GH_TOKEN}}' \"{{secret:GH_TOKEN}}\"\nE";
    for (command, ran_well) in [(script.to_owned(), true), (script.replace("<<E", "<<'E'"), false)]
    {
        let input = json!({ "command": command }).to_string();
        let mut haft = world.haft(&["tool", "bash", "--mode", "bypass", "--input", &input]);
        haft.env("GH_TOKEN", VARIABLE);
        let ran = finish(haft, &Input::Nothing);
        assert_eq!(ran.code == Some(0), ran_well, "{ran:?}");
        assert!(!ran.both_outputs().contains("withheld"), "{ran:?}");
        assert_eq!(ran.out.contains("whose end is quoted"), !ran_well, "{ran:?}");
    }
    assert_eq!(world.read("o.txt"), format!("key='{VARIABLE}' \"{VARIABLE}\"\n"));
}

#[test]
fn a_placeholder_that_is_a_text_of_the_file_stays_one() {
    let world = World::new();
    let text = |value: &str| format!("use {{{{secret:API_TOKEN}}}} here\nAPI_TOKEN={value}\n");
    let shown = text("{{secret:API_TOKEN}}");
    world.file("a.txt", text(NAMED));
    let write =
        |content: &str| json!({"name": "write", "input": {"path": "a.txt", "content": content}});
    let edit = |old: &str, new: &str| {
        json!({"name": "edit", "input": {"path": "a.txt",
            "edits": [{"old_text": old, "new_text": new}]}})
    };
    let read = json!({"name": "read", "input": {"path": "a.txt"}});
    let outcomes = world.tool_results(
        &[
            read,
            write(&format!("{shown}more\n")),
            edit("use {{secret:API_TOKEN}} here", "use {{secret:API_TOKEN}} there"),
            edit("API_TOKEN={{secret:API_TOKEN}}", "API_TOKEN={{secret:API_TOKEN}} # x"),
            write("{{secret:API_TOKEN}}\n"),
        ],
        &["--mode", "bypass"],
    );
    let last = outcomes.last().unwrap();
    assert!(crate::world::text(last).contains("is like neither"), "{last}");
    let wanted = text(&format!("{NAMED} # x")).replace(" here", " there") + "more\n";
    assert_eq!(world.read("a.txt"), wanted, "{outcomes:?}");
}

#[test]
fn a_call_that_was_wrong_shows_none() {
    let world = World::new();
    for flags in [&["--mode", VARIABLE][..], &["-p", "x", "--output", "json", "--effort", VARIABLE]]
    {
        let mut haft = world.haft(flags);
        haft.env("DEPLOY_TOKEN", VARIABLE);
        let ran = finish(haft, &Input::Nothing);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(!ran.both_outputs().contains(VARIABLE), "{ran:?}");
        assert!(ran.err.contains("{{secret:DEPLOY_TOKEN}}"), "{ran:?}");
        assert!(!ran.err.contains(['\u{1b}', '\u{241b}']), "{ran:?}");
    }
}
