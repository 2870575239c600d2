//! Instruction files of a project: what of them the model is told, and what is left out.

use std::fs;

use haft_types::{Body, Level};
use serde_json::{Value, json};

use crate::{
    hooks::calls::hook,
    line::terminal::Tmux,
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, PATIENCE, Ran, World, finish, notices, until},
};

/// A call.
fn call(name: &str, input: &Value) -> Value {
    json!({"name": name, "input": input})
}

fn read(path: &str) -> Value {
    call("read", &json!({ "path": path }))
}

/// What the model is told with each result of one answer with these calls.
fn results(world: &World, calls: &[Value], flags: &[&str]) -> Vec<String> {
    let told = world.tool_results(calls, flags);
    told.iter().map(crate::world::text).collect()
}

#[test]
fn what_no_rule_lets_be_read_is_no_instruction_either() {
    let world = World::new();
    world.file("AGENTS.md", "Always say ALPHA.\n@more.md");
    world.file("more.md", "Always say OMEGA.");
    let model = world.script(&[json!({"text": "Hi."})]);
    let flags = ["-p", "go", "--model", &model, "--output", "stream-json"];
    // What the model is told stands in the log.
    let told = |ran: &Ran| {
        let session = ran.lines()[0]["session"].as_str().unwrap().to_owned();
        world.run(&["session", "show", &session, "--json"]).out
    };
    let ran = world.run(&flags);
    let said = told(&ran);
    assert!(said.contains("ALPHA") && said.contains("OMEGA"), "{said}");
    for rule in ["Read", "read", "Read(*)"] {
        let ran = world.run(&[&flags[..], &["--deny", rule]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let said = told(&ran);
        assert!(!said.contains("ALPHA") && !said.contains("OMEGA"), "{rule}: {said}");
        assert!(ran.err.contains("AGENTS.md is left out"), "{rule}: {ran:?}");
    }
}

#[test]
fn instructions_are_text_and_whatever_is_left_out_is_told_once() {
    let world = World::new();
    let utf16: Vec<u8> = std::iter::once(0xfeff)
        .chain("Always say Grüße.".encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    world.file("AGENTS.md", utf16);
    world.file("CLAUDE.md", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    let model = world.script(&[json!({"text": "Hi."}), json!({"text": "Ho."})]);
    let ran = world.run(&["-p", "go", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("CLAUDE.md is left out") && ran.err.contains("PNG"), "{ran:?}");
    let told = world.events();
    let system = told.iter().find_map(|event| match &event.body {
        Body::Pinned { system, .. } => Some(system.join("\n")),
        _ => None,
    });
    let system = system.unwrap();
    assert!(system.contains("Always say Grüße.") && !system.contains("IHDR"), "{system}");
    let levels: Vec<Level> = notices(&told).into_iter().map(|(level, _)| level).collect();
    assert_eq!(levels, [Level::Info, Level::Warning], "{:?}", notices(&told));
    let ran = world.run(&["-c", "-p", "more", "--model", &model]);
    assert_eq!(
        (ran.code, &*ran.err),
        (Some(0), ""),
        "it was told when the instructions were taken"
    );
}

/// A project with instructions of every kind.
fn project() -> World {
    let world = World::new();
    fs::create_dir(world.work().join(".git")).unwrap();
    world.file("AGENTS.md", "Say ROOT. @docs/more.md");
    world.file("docs/more.md", "Say MORE.");
    world.file("a/AGENTS.md", "Say NESTED. @own.md");
    world.file("a/own.md", "Say OWN.");
    world.file("a/b/x.rs", "fn x() {}\n");
    world.file("c/CLAUDE.md", "Say OTHER.");
    world.file("c/y.txt", "y\n");
    world.file(".claude/rules/rust.md", "---\npaths: '**/*.rs'\n---\nSay RUST.");
    world
}

/// What stands before the messages of a request.
fn prefix(wire: Wire, body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    match wire {
        Wire::Anthropic => json!([body["system"], body["tools"]]).to_string(),
        Wire::OpenAi => json!([body["messages"][0], body["tools"]]).to_string(),
        Wire::Responses => json!([body["instructions"], body["tools"]]).to_string(),
    }
}

#[test]
fn what_is_touched_is_told_once_with_its_result_and_again_behind_a_summary_on_each_wire() {
    for wire in WIRES {
        let world = project();
        let filler = "some words to fill the window with, ".repeat(1_500);
        let mock = Mock::with(move |number, request| {
            let body = String::from_utf8_lossy(&request.body);
            if body.contains("You sum up the work of a coding agent") {
                return wire.text("Goal: to read.");
            }
            let path = json!({"path": "a/b/x.rs"});
            match number {
                0 => wire.calls("a", &[("read", path.clone()), ("read", path)]),
                1 => wire.calls("b", &[("bash", json!({"command": "cat a/b/x.rs c/y.txt"}))]),
                2 => wire.text(&filler),
                3 => wire.calls("c", &[("grep", json!({"pattern": "x", "path": "a"}))]),
                _ => wire.text("Done."),
            }
        });
        let run = |flags: &[&str]| {
            let ran = finish(wire.haft(&world, &mock.url(), flags), &Input::Nothing);
            assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{ran:?}");
        };
        run(&["-p", "Read it."]);
        run(&["-p", "Go on.", "-c"]);
        let bodies = mock.bodies();
        let counts = |body: &String| {
            ["ROOT", "MORE", "NESTED", "OWN", "RUST", "OTHER"]
                .map(|w| body.matches(&format!("Say {w}.")).count())
        };
        assert_eq!(counts(&bodies[0]), [1, 1, 0, 0, 0, 0], "{}", bodies[0]);
        assert_eq!(counts(&bodies[1]), [1, 1, 1, 1, 1, 0], "{}", bodies[1]);
        for body in &bodies[2..5] {
            assert_eq!(counts(body), [1; 6], "{body}");
        }
        for body in &bodies[1..] {
            assert_eq!(prefix(wire, body), prefix(wire, &bodies[0]), "{wire:?}: the begin moved");
        }
        let command = wire.haft(&world, &mock.url(), &["--line", "-c"]);
        let ran = finish(command, &Input::Pipe("/compact\nand now?\n/context\n"));
        let last = mock.bodies().pop().unwrap();
        assert!(!last.contains("words to fill the window"), "{wire:?}: {ran:?}: {last}");
        assert_eq!(counts(&last), [1; 6], "{wire:?}: {last}");
        assert!(last.contains("that were touched, word for word\\n## "), "{last}");
        for row in [
            "AGENTS.md: project\n",
            "docs/more.md: AGENTS.md imports it\n",
            "a/AGENTS.md: a/b/x.rs was touched\n",
            "a/own.md: a/AGENTS.md imports it\n",
            "c/CLAUDE.md: c/y.txt was touched\n",
            ".claude/rules/rust.md: a/b/x.rs fits **/*.rs\n",
        ] {
            assert!(ran.out.contains(row), "{row}: {ran:?}");
        }
    }
}

#[test]
fn the_record_says_what_was_read_and_why_and_a_rewind_takes_it_back() {
    let world = project();
    let reads = json!({"calls": [read("a/b/x.rs")]});
    let text = json!({"text": "Yes."});
    let model = world.script(&[reads.clone(), text.clone(), reads, text]);
    let lines = "one\n/rewind 1 talk\ntwo\n";
    let ran = finish(world.haft(&["--line", "--model", &model]), &Input::Pipe(lines));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = |text: &str| ran.out.matches(text).count();
    assert_eq!(told("instructions: AGENTS.md (project), docs/more.md (AGENTS.md imports it)"), 1);
    assert_eq!(told("instructions of a/AGENTS.md: a/b/x.rs was touched"), 2, "{ran:?}");
    let shown = world.run(&["session", "show", &world.only_session()]).out;
    assert!(shown.contains("- instructions: AGENTS.md (project)"), "{shown}");
    assert!(shown.contains("- instructions of .claude/rules/rust.md: a/b/x.rs fits"), "{shown}");
    // One call by itself is no conversation.
    let alone = world.tool("read", &json!({"path": "a/b/x.rs"}), &[]);
    assert!(!alone.both_outputs().contains("NESTED"), "{alone:?}");
}

#[test]
fn only_what_ran_and_may_be_read_tells_more() {
    let world = project();
    world.file("d/AGENTS.md", "Say DENIED.");
    world.file("d/z.txt", "z\n");
    world.file("e/AGENTS.md", "Say WRITTEN.");
    let write = call("write", &json!({"path": "e/new.txt", "content": "x"}));
    let flags = ["--deny", "Read(d/**)", "--mode", "accept-edits"];
    let told = results(&world, &[read("d/z.txt"), write, read("c/none.txt")], &flags);
    assert!(!told.concat().contains("DENIED"), "{told:?}");
    assert!(
        told.concat().contains("Say WRITTEN.") && told.concat().contains("Say OTHER."),
        "{told:?}"
    );

    // A file of instructions that the rules keep is left out where the folder is free.
    let world = project();
    let flags = ["--deny", "Read(a/AGENTS.md)"];
    let told = results(&world, &[read("a/b/x.rs")], &flags).concat();
    assert!(told.contains("Say RUST.") && !told.contains("NESTED"), "{told}");
    let events = world.events();
    let left_out = |(level, text): &(Level, String)| {
        *level == Level::Warning && text.contains("a/AGENTS.md is left out")
    };
    assert_eq!(notices(&events).iter().filter(|one| left_out(one)).count(), 1);
}

#[test]
fn whatever_a_project_imports_it_is_bounded_and_named() {
    let world = World::new();
    fs::create_dir(world.work().join(".git")).unwrap();
    world.file(
        "AGENTS.md",
        "Say ROOT. @AGENTS.md @/etc/shadow @pipe @big.md @src @~/.ssh/id_rsa @out.md @/etc/hostname\n\
         ```\n@code.md\n```\n`@code.md`",
    );
    world.file("code.md", "Say CODE.");
    world.file("src/x", "");
    fs::create_dir(world.root().join("home/.ssh")).unwrap();
    fs::write(world.root().join("home/.ssh/id_rsa"), "PRIVATE").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", world.work().join("out.md")).unwrap();
    let big = fs::File::create(world.work().join("big.md")).unwrap();
    big.set_len(1 << 30).unwrap();
    let made = world.program("mkfifo").arg("pipe").status().unwrap();
    assert!(made.success());
    // The one of a folder that is touched later is held to the same.
    world.file("a/AGENTS.md", "Say NESTED. @/etc/shadow @../AGENTS.md @/etc/hostname @/etc/group");
    world.file("a/x", "x\n");
    let model = world.script(&[json!({"calls": [read("a/x")]}), json!({"text": "Hi."})]);
    let ran = world.run(&["-p", "go", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for (name, why) in [
        ("/etc/shadow", "never imported"),
        ("pipe", "no regular file"),
        ("big.md", ""),
        ("src", "it is a folder"),
        ("~/.ssh/id_rsa", "never imported"),
        ("/etc/hostname", "nobody was asked"),
        ("/etc/group", "nobody was asked"),
        ("out.md", "nobody was asked"),
    ] {
        let mut told = ran.err.lines().filter(|line| line.contains(&format!("{name} ")));
        assert!(told.any(|line| line.contains(why)), "{name}: {ran:?}");
    }
    let said = world.run(&["session", "show", &world.only_session(), "--json"]).out;
    assert!(said.contains("Say ROOT.") && said.contains("Say NESTED."), "{said}");
    for word in ["Say CODE", "PRIVATE", "root:x:"] {
        assert!(!said.contains(word), "{word}");
    }
    assert!(!world.state().join("trust.json").exists(), "nobody answered");
    // Whoever looks through the folders at the end has less to read.
    fs::remove_file(world.work().join("big.md")).unwrap();
}

#[test]
fn all_of_them_share_one_room_and_a_cut_is_told() {
    let world = project();
    world.settings("instructions.bytes = 300\n");
    world.file("AGENTS.md", format!("Say ROOT. {}", "x".repeat(400)));
    world.file("a/AGENTS.md", "Say NESTED.");
    let model = world.script(&[json!({"calls": [read("a/b/x.rs")]}), json!({"text": "Hi."})]);
    let ran = world.run(&["-p", "go", "--model", &model]);
    assert!(ran.err.contains("bytes of AGENTS.md are left out of the instructions"), "{ran:?}");
    assert!(
        ran.err
            .contains("there was room for 300 bytes of what was read with it; instructions.bytes"),
        "{ran:?}"
    );
    let told = world.outcomes().iter().map(crate::world::text).collect::<String>();
    assert!(
        told.contains("[11 bytes more are left out here: read a/AGENTS.md for all of it]"),
        "{told}"
    );
    let ran = world.run_with(&["--line", "-c", "--model", &model], &Input::Pipe("/context\n"));
    assert!(ran.out.contains("of at most 300 bytes\n"), "{ran:?}");
    assert!(
        ran.out.contains("a/AGENTS.md: a/b/x.rs was touched; 11 bytes are left out"),
        "{ran:?}"
    );
}

#[test]
fn what_is_let_in_shares_the_room_with_all_else_and_a_copy_adds_nothing() {
    let world = World::new();
    let outside = world.root().join("home/x");
    fs::create_dir(&outside).unwrap();
    for (name, word, times) in [
        ("a", "alpha ", 3_000),
        ("b", "beta ", 2_000),
        ("c", "alpha ", 3_000),
        ("d", "delta ", 3_000),
    ] {
        fs::write(outside.join(format!("{name}.md")), word.repeat(times)).unwrap();
    }
    world.file("AGENTS.md", "@~/x/a.md\n@~/x/b.md\n@~/x/c.md\n");
    world.file("sub/AGENTS.md", "@~/x/c.md\n@~/x/d.md\n");
    world.file("sub/x", "x");
    let model = world.script(&[json!({"calls": [read("sub/x")]}), json!({"text": "Yes."})]);
    let flags = ["--line", "--model", &model];
    let ran = finish(world.haft(&flags), &Input::Pipe("go\ny\ny\ny\ny\n/context\n"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let line = ran.out.lines().find_map(|line| line.strip_prefix("instructions: ")).unwrap();
    let (used, most) = line.split_once(" of at most ").unwrap();
    let number = |text: &str| text.trim_end_matches(" bytes").parse::<usize>().unwrap();
    assert!(number(used) > 32_000 && number(used) <= number(most), "{line}");
    for (name, is_told) in [("a", true), ("b", true), ("c", false), ("d", true)] {
        let row = format!("~/x/{name}.md: ");
        assert_eq!(ran.out.contains(&row), is_told, "{name}: {}", ran.out);
    }
    assert!(ran.out.contains("of ~/x/d.md are left out of the instructions"), "{}", ran.out);
}

#[test]
fn a_file_outside_of_the_project_is_asked_about_once() {
    let world = World::new();
    fs::create_dir(world.work().join(".git")).unwrap();
    let notes = world.root().join("notes.md");
    let others = world.root().join("others.md");
    fs::write(&notes, "Say OUTSIDE.").unwrap();
    fs::write(&others, "Say OTHERS.").unwrap();
    world.file("AGENTS.md", format!("Say ROOT. @{}", notes.display()));
    world.file("a/AGENTS.md", format!("Say NESTED. @{}", others.display()));
    world.file("a/x", "x\n");
    let script = [json!({"calls": [read("a/x")]}), json!({"text": "The end."})];
    let tmux = Tmux::talk(&world, &world.script(&script), "");
    tmux.line("go on");
    tmux.sees("key:");
    assert!(tmux.screen().contains("notes.md, which lies outside"), "{}", tmux.screen());
    tmux.types("y");
    let asks = |screen: String| {
        screen.contains("others.md, which lies outside") && screen.trim_end().ends_with("key:")
    };
    assert!(until(PATIENCE, || asks(tmux.screen())), "{}", tmux.screen());
    tmux.types("n");
    tmux.sees("The end.");
    tmux.key("C-d");
    let said = world.run(&["session", "show", &world.only_session(), "--json"]).out;
    assert!(said.contains("Say OUTSIDE.") && said.contains("Say NESTED."), "{said}");
    assert!(!said.contains("Say OTHERS."), "{said}");
    // Both answers count from now on, where nobody could be asked.
    let ran =
        world.run(&["-p", "go", "--model", &world.script(&script), "--output", "stream-json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let session = ran.lines()[0]["session"].as_str().unwrap().to_owned();
    let said = world.run(&["session", "show", &session, "--json"]).out;
    assert!(said.contains("Say OUTSIDE.") && !said.contains("Say OTHERS."), "{said}");
    assert!(!ran.err.contains("nobody was asked") && ran.err.contains("you said"), "{ran:?}");
}

#[test]
fn hooks_hear_of_each_file_and_why() {
    let world = project();
    let keeps = |file: &str| format!("(cat; echo) >> \"$HAFT_PROJECT_DIR/{file}\"");
    world.settings(&format!(
        "{}{}",
        hook("InstructionsLoaded", "", &keeps("all.jsonl"), ""),
        hook("InstructionsLoaded", "nested_traversal", &keeps("nested.jsonl"), ""),
    ));
    results(&world, &[read("a/b/x.rs")], &[]);
    let lines = |file: &str| -> Vec<Value> {
        world.read(file).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let of = |name: &str| json!(world.work().join(name));
    let all = lines("all.jsonl");
    let wanted = [
        ("AGENTS.md", "session_start", "", ""),
        ("docs/more.md", "include", "parent_file_path", "AGENTS.md"),
        ("a/AGENTS.md", "nested_traversal", "trigger_file_path", "a/b/x.rs"),
        ("a/own.md", "include", "parent_file_path", "a/AGENTS.md"),
        (".claude/rules/rust.md", "path_glob_match", "trigger_file_path", "a/b/x.rs"),
    ];
    assert_eq!(all.len(), wanted.len(), "{all:?}");
    for (heard, (file, reason, key, other)) in all.iter().zip(wanted) {
        assert_eq!((&heard["file_path"], &heard["load_reason"]), (&of(file), &json!(reason)));
        assert_eq!(heard["memory_type"], "Project");
        assert_eq!(heard["hook_event_name"], "InstructionsLoaded");
        assert!(key.is_empty() || heard[key] == of(other), "{heard}");
    }
    assert_eq!(all[4]["globs"], json!(["**/*.rs"]));
    assert_eq!(lines("nested.jsonl").len(), 1);
}

#[test]
fn init_lets_the_model_write_or_takes_what_manifests_say() {
    let world = World::new();
    world.file("go.mod", "module x\n");
    let made = call("write", &json!({"path": "AGENTS.md", "content": "By the model.\n"}));
    let script = [json!({"calls": [made]}), json!({"text": "The end."})];
    let tmux = Tmux::start(&world);
    tmux.haft(&format!("--model '{}'", world.script(&script)));
    tmux.sees("a message;");
    tmux.line("/context");
    tmux.sees("no instructions were read: /init writes an AGENTS.md");
    tmux.line("/init");
    // The ordinary question shows what would be written.
    let screen = tmux.sees("press a key");
    assert!(screen.contains("+ By the model."), "{screen}");
    tmux.types("y");
    tmux.sees("The end.");
    assert_eq!(world.read("AGENTS.md"), "By the model.\n");
    tmux.line("/init plain");
    let has = |text: &str| world.read("AGENTS.md").contains(text);
    assert!(until(PATIENCE, || has("- Test: `go test ./...` (go.mod)")), "{}", tmux.screen());
    assert!(world.read("AGENTS.md").starts_with("By the model.\n\n## Commands\n"));
    tmux.line("/init plain");
    tmux.sees("has all commands that the manifests name");
    tmux.key("C-d");
    tmux.sees("ended with 0");
    // The model is told what to look for.
    let said = world.run(&["session", "show", &world.only_session()]).out;
    assert!(said.contains("Write an AGENTS.md for this project"), "{said}");
}
