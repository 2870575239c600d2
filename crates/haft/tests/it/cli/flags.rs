//! The command line itself: help, version, and calls that are wrong.

use serde_json::json;

use crate::world::{Input, World, finish};

#[test]
fn the_version_is_printed() {
    let world = World::new();
    let wanted = format!("haft {}\n", env!("CARGO_PKG_VERSION"));
    for flag in ["--version", "-V"] {
        let ran = world.run(&[flag]);
        assert_eq!((ran.code, &ran.out, ran.err.as_str()), (Some(0), &wanted, ""));
    }
}

#[test]
fn help_is_no_mistake() {
    let world = World::new();
    for arguments in [
        &["--help"][..],
        &["-h"],
        &["help"],
        &["tool", "--help"],
        &["mcp", "--help"],
        &["demo", "--help"],
        &["doctor", "--help"],
        &["session", "--help"],
        &["session", "show", "--help"],
        &["undo", "--help"],
        &["redo", "--help"],
    ] {
        let ran = world.run(arguments);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{arguments:?} {ran:?}");
        assert!(ran.out.contains("Usage: haft"), "{arguments:?} {ran:?}");
        assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    }
    let ran = world.run(&["--help"]);
    for word in
        ["demo", "tool", "mcp", "doctor", "session", "undo", "redo", "--print", "--line", "--model"]
    {
        assert!(ran.out.contains(word), "{word}: {}", ran.out);
    }
}

#[test]
fn a_prompt_is_one_whatever_it_begins_with() {
    let world = World::new();
    let model = world.script(&[json!({"text": "Done."})]);
    for prompt in ["- fix the list", "--- title: x ---", "--answer my question", "-- a\nb", "-p x"]
    {
        for flags in [["-p", prompt, "--model", &model], ["--model", &model, "--print", prompt]] {
            let ran = world.run(&flags);
            assert_eq!((ran.code, ran.out.trim()), (Some(0), "Done."), "{prompt}: {ran:?}");
        }
        let id = world.run(&["session", "ls", "--json"]).lines()[0]["id"].clone();
        let shown = world.run(&["session", "show", id.as_str().unwrap(), "--json"]);
        assert!(shown.out.contains(&json!(prompt).to_string()), "{shown:?}");
    }
}

#[test]
fn names_of_other_programs_for_the_same_are_taken() {
    let world = World::new();
    let call = json!({"name": "bash", "input": {"command": "rm -f x; touch made"}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "Done."})]);
    for flag in ["--yolo", "--dangerously-skip-permissions"] {
        let flags = ["-p", "go", "--model", &model, flag, "--output-format", "json"];
        let ran = world.run(&flags);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(std::fs::remove_file(world.work().join("made")).is_ok(), "{ran:?}");
        let ran = world.run(&["-p", "go", "--model", &model, flag, "--mode", "ask"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
}

#[test]
fn undo_and_redo_take_the_same() {
    let world = World::new();
    let (undo, redo) = (world.run(&["undo", "--help"]).out, world.run(&["redo", "--help"]).out);
    for help in [&undo, &redo] {
        for word in ["[N or CALL]", "such as c12", "--session <ID>", "--force", "--turn", "--json"]
        {
            assert!(help.contains(word), "{word}: {help}");
        }
    }
    assert!(undo.contains("haft undo 3"), "{undo}");
    for wrong in [&["redo", "--turns"][..], &["undo", "c1", "c2"], &["undo", "--turns"]] {
        let ran = world.run(wrong);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{wrong:?} {ran:?}");
    }
}

#[test]
fn wrong_calls_say_what_is_wrong() {
    let world = World::new();
    for (arguments, wanted) in [
        (&["--nope"][..], "--nope"),
        (&["-p", "hi", "--output", "xml"], "stream-json"),
        (&["-p", "hi", "--mode", "yolo", "--model", "script:x"], "\"yolo\""),
        (&["-p", "hi", "--effort", "huge", "--model", "script:x"], "\"huge\""),
        (&["-p", "hi", "--max-turns", "0"], "a whole number from 1"),
        (&["-p", "hi", "--max-time", "soon"], "soon"),
        (&["-p", "hi", "--line"], "--line"),
        (&["-p", "hi", "-c", "-r", "x"], "--resume"),
        (&["--output", "json", "hi"], "--print"),
        (&["demo", "--project", "other"], "second-bug"),
        (&["mcp", "listen"], "serve"),
        (&["session", "drop"], "drop"),
        (&["-p", "hi", "--add-dir", "/nowhere/at/all"], "/nowhere/at/all"),
        (&[], "haft -p"),
        (&["hello"], "haft -p"),
    ] {
        let ran = world.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?} {ran:?}");
        // Whoever wants JSON gets it, too.
        let said = if arguments.contains(&"json") {
            ran.json()["error"].to_string()
        } else {
            ran.out.clone()
        };
        assert_eq!(said.contains(wanted), !said.is_empty(), "{arguments:?} {ran:?}");
        assert!(ran.err.contains(wanted), "{arguments:?} {ran:?}");
        assert!(!ran.err.contains("panicked"), "{ran:?}");
    }
    assert_eq!(world.run(&["session", "list"]).out, "", "a session was begun");
}

#[test]
fn a_prompt_and_a_tool_say_what_the_model_gets() {
    let world = World::new();
    let prompt = world.run(&["debug", "prompt"]);
    assert!(prompt.out.contains(&world.work().display().to_string()), "{prompt:?}");
    let tools = world.run(&["debug", "tools"]);
    let bytes =
        |text: &str| text.lines().last().unwrap().split(' ').next().unwrap().parse().unwrap();
    let (prompt, tools): (usize, usize) = (bytes(&prompt.out), bytes(&tools.out));
    println!("system prompt {prompt} bytes, tool definitions {tools} bytes");
    assert!(prompt <= 4_000 && tools <= 12_500, "{prompt} {tools}");
}

#[test]
fn shells_complete_commands_and_flags() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = world.run(&["completions", shell]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.out.contains("append-system-prompt") && ran.out.contains("doctor"), "{shell}");
    }
    // By bash itself.
    let script = "eval \"$(haft completions bash)\"; COMP_WORDS=(haft ses); COMP_CWORD=1; \
                  _haft haft ses haft; echo \"${COMPREPLY[@]}\"";
    let mut bash = world.program("bash");
    let name = format!("haft() {{ '{}' \"$@\"; }}\n{script}", env!("CARGO_BIN_EXE_haft"));
    bash.args(["--norc", "-c", &name]);
    let ran = finish(bash, &Input::Nothing);
    assert_eq!(ran.out, "session\n", "{ran:?}");
    let ran = world.run(&["completions", "tcsh"]);
    assert!(ran.code == Some(2) && ran.err.contains("tcsh"), "{ran:?}");
}
