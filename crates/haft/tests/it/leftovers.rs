//! What a person sees where something is unusual: links, addresses, empty logs, rules about nothing,
//! a shell's own words, a line under a terminal that changes.

use std::{fs, thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    terminal::Tmux,
    world::{Input, PATIENCE, World, until},
};

fn edit(path: &str, old: &str, new: &str) -> String {
    json!({"path": path, "edits": [{"old_text": old, "new_text": new}]}).to_string()
}

#[test]
fn whoever_cuts_a_hard_link_is_told_and_nobody_else() {
    let world = World::new();
    let lines = ["a", "b", "c", "d"];
    let file = world.file("f", lines.join("\n"));
    fs::hard_link(&file, world.work().join("g")).unwrap();
    let told: Vec<String> = thread::scope(|scope| {
        let run = |line: &&'static str| {
            let input = edit("f", line, &line.repeat(2));
            let arguments = ["tool", "edit", "--mode", "accept-edits", "--input", &input];
            let ran = world.run(&arguments);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            ran.out
        };
        let running: Vec<_> = lines.iter().map(|line| scope.spawn(move || run(line))).collect();
        running.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let cut = told.iter().filter(|out| out.contains("has 2 names (hard links)"));
    assert_eq!(cut.count(), 1, "{told:#?}");
    assert_eq!(world.read("f"), "aa\nbb\ncc\ndd");
    assert_eq!(world.read("g"), "a\nb\nc\nd");
}

#[test]
fn an_address_is_one_in_any_letter_case_and_none_behind_a_folder() {
    let world = World::new();
    let id = {
        let input = json!({"command": "seq 1 20000"}).to_string();
        let ran = world.run(&["tool", "bash", "--mode", "bypass", "--input", &input]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        world.only_session()
    };
    let read = |path: &str| {
        let input = json!({"path": path, "offset": 19_999}).to_string();
        world.run(&["tool", "read", "--session", &id, "--input", &input])
    };
    for address in ["out://c1", "OUT://c1", "Out://c1"] {
        let ran = read(address);
        assert!(ran.code == Some(0) && ran.out.contains("20000"), "{address} {ran:?}");
    }
    let input = json!({"path": "OUT://c1", "pattern": "^19998$"}).to_string();
    let ran = world.run(&["tool", "grep", "--session", &id, "--input", &input]);
    assert!(ran.code == Some(0) && ran.out.contains("19998"), "{ran:?}");
    for path in ["./out://c1", "sub/OUT://c1"] {
        let ran = read(path);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.out.contains("write out://CALL, without a folder or ./ in front"), "{ran:?}");
    }
    let input = edit("OUT://c1", "1", "2");
    let ran = world.run(&["tool", "edit", "--mode", "bypass", "--input", &input]);
    assert!(ran.code == Some(1) && ran.out.contains("is no path"), "{ran:?}");
    // A folder of that name is one.
    world.file("out:/c1", "a file\n");
    assert!(
        world.run(&["tool", "read", "--input", r#"{"path": "./out://c1"}"#]).out.contains("a file")
    );
}

#[test]
fn a_log_without_events_is_a_damaged_one() {
    let world = World::new();
    let id = "01900000-0000-7000-8000-00000000000a";
    let folder = world.state().join("sessions").join(id);
    fs::create_dir_all(&folder).unwrap();
    for content in ["", "no event\n"] {
        fs::write(folder.join("log.jsonl"), content).unwrap();
        for json in [&[][..], &["--json"]] {
            let ran = world.run(&[&["session", "show", id], json].concat());
            assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
            assert!(ran.err.contains("no event of it is left") && ran.err.contains(id), "{ran:?}");
        }
    }
    fs::write(folder.join("log.jsonl"), "").unwrap();
    let ran = world.run(&["session", "list"]);
    assert!(ran.code == Some(0) && ran.out.contains("(its log is empty)"), "{ran:?}");
}

#[test]
fn a_pipe_in_place_of_a_log_is_told_once() {
    let world = World::new();
    let id = "01900000-0000-7000-8000-00000000000a";
    let folder = world.state().join("sessions").join(id);
    fs::create_dir_all(&folder).unwrap();
    assert!(world.program("mkfifo").arg(folder.join("log.jsonl")).status().unwrap().success());
    let model = world.script(&[json!({"text": "never"})]);
    for arguments in [
        &["session", "show", id][..],
        &["-p", "go", "-r", id, "--model", &model],
        &["tool", "ls", "--session", id],
    ] {
        let ran = world.run(arguments);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert_eq!(ran.err.matches("no regular file").count(), 1, "{ran:?}");
        assert_eq!(ran.err.matches("move it away").count(), 1, "{ran:?}");
        assert!(!ran.err.contains("check the disk"), "{ran:?}");
    }
}

#[test]
fn a_session_of_tool_calls_is_listed_by_its_tools() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let input = edit("a.txt", "one", "two");
    let ran = world.run(&["tool", "edit", "--mode", "bypass", "--input", &input]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = world.run(&["session", "list"]);
    assert!(ran.out.ends_with("(1 tool call: edit)\n"), "{ran:?}");
    let id = world.only_session();
    for _ in 0..2 {
        let read = ["tool", "read", "--session", &id, "--input", r#"{"path": "a.txt"}"#];
        assert_eq!(world.run(&read).code, Some(0));
    }
    let ran = world.run(&["session", "list"]);
    assert!(ran.out.ends_with("(3 tool calls: edit, read)\n"), "{ran:?}");
    let listed: Value =
        serde_json::from_str(&world.run(&["session", "list", "--json"]).out).unwrap();
    assert_eq!((&listed["calls"], &listed["tools"]), (&json!(3), &json!(["edit", "read"])));
}

#[test]
fn a_rule_about_a_tool_that_haft_lacks_is_told_of() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let read = ["tool", "read", "--input", r#"{"path": "a.txt"}"#];
    let names = ["Task", "WebFetch(domain:example.org)", "TodoWrite", "KillShell", "mcp__x"];
    for name in names {
        for flag in ["--deny", "--allow"] {
            let ran = world.run(&[&read[..], &[flag, name]].concat());
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let wanted =
                format!("rules that do nothing, for haft has no such tool: {} {name}", &flag[2..]);
            assert!(ran.err.contains(&wanted) && ran.err.contains("command line"), "{ran:?}");
        }
    }
    for name in ["MultiEdit", "Glob", "LS", "bash", "Grep(src/**)"] {
        let ran = world.run(&[&read[..], &["--deny", name]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{name}");
    }
    world.settings("[permissions]\ndeny = ['WebSearch', 'Task']");
    let ran = world.run(&read);
    assert_eq!((ran.code, ran.err.lines().count()), (Some(0), 1), "{ran:?}");
    let place = format!("deny WebSearch ({}/settings.toml:2), deny Task", world.state().display());
    assert!(ran.err.contains(&place), "{ran:?}");
}

#[test]
fn a_rule_that_forbids_and_cannot_be_read_stops_haft() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let read = ["tool", "read", "--input", r#"{"path": "a.txt"}"#];
    let model = world.script(&[json!({"text": "Hello."})]);
    let faces = [&read[..], &["-p", "hi", "--model", &model], &["tool", "list"]];
    for (list, rule) in [("deny", "Read(a.txt"), ("deny", "READ"), ("ask", "Bash()"), ("deny", "*")]
    {
        world.settings(&format!("model = 'openai/x'\npermissions.{list} = ['{rule}']"));
        for face in faces {
            let ran = world.run(face);
            assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{rule} {ran:?}");
            let place =
                format!("{}/settings.toml:2: permissions.{list}: ", world.state().display());
            assert!(ran.err.contains(&place) && ran.err.contains(rule), "{ran:?}");
        }
    }
    world.settings("permissions.allow = ['Read(a.txt']");
    let ran = world.run(&read);
    assert!(ran.code == Some(0) && ran.err.contains("does not count"), "{ran:?}");
    // A project, even a trusted one, cannot make haft of no use; its tool is asked about.
    world.settings("");
    world.file(".haft/settings.toml", "permissions.deny = ['Read(a.txt']");
    assert_eq!(world.run(&read).code, Some(0), "what is not trusted is not read");
    let ran = world.run(&[&read[..], &["--trust"]].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains(".haft/settings.toml:1: permissions.deny: "), "{ran:?}");
    assert!(ran.out.contains("mode dont-ask denies what would ask"), "{ran:?}");
    assert_eq!(world.run(&["tool", "list", "--trust"]).code, Some(0));
}

#[test]
fn a_shell_speaks_of_the_command_as_it_was_written() {
    let world = World::new();
    for (command, wanted) in [
        ("if", "bash: line 2: syntax error: unexpected end of file"),
        ("echo hi\n)", "bash: line 2: syntax error near unexpected token `)'\nbash: line 2: `)'"),
        ("no-such-program", "bash: line 1: no-such-program: command not found"),
        ("echo \"a", "bash: line 1: unexpected EOF while looking for matching `\"'"),
    ] {
        let input = json!({ "command": command }).to_string();
        let ran = world.run(&["tool", "bash", "--mode", "bypass", "--input", &input]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.out.contains(wanted) && !ran.out.contains("eval"), "{ran:?}");
        assert!(!ran.out.contains("\n\n"), "{ran:?}");
    }
}

/// A talk in which a question is open.
fn asked(world: &World, call: &Value) -> Tmux {
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "The end."})]);
    let tmux = Tmux::talk(world, &model, "");
    tmux.line("go on");
    tmux.sees("key:");
    tmux
}

#[test]
fn what_a_key_does_is_said_once_under_a_question() {
    let world = World::new();
    let tmux = asked(&world, &json!({"name": "bash", "input": {"command": "touch made"}}));
    for (number, text) in (2..).zip(["first message", "second message"]) {
        tmux.line(text);
        let asks = || tmux.screen().matches("key:").count() == number;
        assert!(until(PATIENCE, asks), "{}", tmux.screen());
    }
    let screen = tmux.screen();
    assert_eq!(screen.matches("From here on").count(), 1, "{screen}");
    tmux.types("n");
    tmux.sees("The end.");
    println!("{screen}");
}

#[test]
fn a_question_shows_a_long_command_whole_and_apart() {
    let world = World::new();
    let command = "set -e\nfor i in 1 2; do\n  touch $i\ndone\n";
    let tmux = asked(&world, &json!({"name": "bash", "input": {"command": command}}));
    let screen = tmux.screen();
    let wanted = "? Running set -e (4 lines)\n    run\n      set -e\n      for i in 1 2; do\n        \
                  touch $i\n      done\n  No rule allows this.\n  [y]";
    assert!(screen.contains(wanted), "{screen}");
}

#[test]
fn a_question_shows_what_would_be_written_where_nobody_may_look() {
    let world = World::new();
    let input = json!({"path": "../outside.txt", "content": "new words\n"});
    let tmux = asked(&world, &json!({"name": "write", "input": input}));
    let screen = tmux.screen();
    assert!(screen.contains("outside the workspace") && screen.contains("new words"), "{screen}");
}

#[test]
fn a_typed_line_of_several_rows_leaves_nothing_behind() {
    let world = World::new();
    let wait = |name: &str| format!("until [ -e {name} ]; do sleep 0.02; done; echo came-{name}");
    let call = |name: &str| json!({"name": "bash", "input": {"command": wait(name)}});
    let calls = |name: &str| json!({"calls": [call(name)]});
    let model = world.script(&[calls("one"), calls("two"), json!({"text": "The end."})]);
    let tmux = Tmux::talk(&world, &model, "--mode bypass");
    tmux.line("go on");
    tmux.sees("until [ -e one ]");
    let typed = "word ".repeat(30);
    tmux.types(&typed);
    tmux.sees(typed.trim_end());
    world.file("one", "");
    tmux.sees("until [ -e two ]");
    assert!(until(PATIENCE, || tmux.screen().matches("> word").count() == 1), "{}", tmux.screen());
    // Taken away over the end of a row.
    for _ in 0..60 {
        tmux.key("BSpace");
    }
    let left = format!("> {}", "word ".repeat(18));
    let alone = || {
        let screen = tmux.screen();
        screen.matches("word").count() == 18 && screen.contains(left.trim_end())
    };
    assert!(until(PATIENCE, alone), "{}", tmux.screen());
    // A terminal that is made narrower wraps it; what was there before stays readable.
    tmux.tmux(&["resize-window", "-x", "40"]);
    thread::sleep(Duration::from_millis(100));
    world.file("two", "");
    let screen = tmux.sees("The end.");
    assert!(screen.contains("came-two") && screen.contains("until [ -e two ]"), "{screen}");
    assert!(screen.matches(left.trim_end()).count() <= 2, "{screen}");
    println!("{screen}");
}

#[test]
fn a_question_that_nobody_can_answer_any_more_ends_its_line() {
    let world = World::new();
    let call = json!({"name": "bash", "input": {"command": "touch made"}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "The end."})]);
    let ran = world.run_with(&["--line", "--model", &model], &Input::Pipe("go on\n"));
    assert!(ran.out.contains("  key: \n  denied: "), "{}", ran.out);
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "The end."})]);
    let ran = world.run_with(&["--line", "--model", &model], &Input::Pipe("go on\nx\nn\n"));
    assert!(ran.out.contains("key: \n  press one of y, s, n: n  (no)\n"), "{}", ran.out);
}
