//! Words on the command line and in arguments that mean nothing: what was meant is said, with the
//! code of a mistake.

use haft_testkit::machine;
use serde_json::json;

use crate::world::{Input, World, finish};

#[test]
fn what_was_typed_wrong_is_a_mistake() {
    let world = World::new();
    let model = world.script(&[json!({"text": "one"})]);
    for _ in 0..2 {
        assert_eq!(world.run(&["-p", "hi", "--model", &model]).code, Some(0));
    }
    let pipe = world.root().join("pipe");
    machine::make_fifo(&pipe);
    let pipe = format!("script:{}", pipe.display());
    for (arguments, wanted) in [
        (&["-p", "hi", "-r", "zzz", "--model", &model][..], "\"zzz\""),
        (&["-p", "hi", "-r", "", "--model", &model], "the id of a session is empty"),
        (&["-p", "hi", "-r", "0", "--model", &model], "2 sessions begin with \"0\""),
        (&["session", "show", "zz"], "\"zz\""),
        (&["-p", "hi", "--model", "script:/no/such"], "/no/such"),
        (&["-p", "hi", "--model", &pipe], "no regular file"),
        (&["-p", "hi", "--model", "anthropic/x"], "ANTHROPIC_API_KEY"),
        (&["-p", "hi", "--model", "junk"], "--model: "),
        (&["-p", "hi", "--max-tokens", "-1"], "a whole number from 1"),
        (&["-p", "hi", "--max-turns", "0"], "a whole number from 1"),
    ] {
        let ran = world.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?} {ran:?}");
        assert!(ran.err.contains(wanted), "{arguments:?} {ran:?}");
    }
    let mut command = world.haft(&["-p", "hi"]);
    command.env("HAFT_MODEL", "junk");
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("HAFT_MODEL: "), "{ran:?}");
    world.settings("model = 'junk'");
    assert!(world.run(&["-p", "hi"]).err.contains("`model` in the user settings: "));
}

#[test]
fn a_script_line_is_an_object_with_known_fields() {
    for (line, wanted) in [
        ("[]", "no JSON object"),
        (r#"{"error":{"status":429}}"#, "unknown field `status`"),
        (r#"{"error":{"status":429}}"#, "{kind, message?, retry_after_ms?}"),
        (r#"{"error":3}"#, "3 is neither"),
    ] {
        let world = World::new();
        let file = world.file("s.jsonl", line).display().to_string();
        let ran = world.run(&["-p", "hi", "--model", &format!("script:{file}")]);
        assert_eq!(ran.code, Some(2), "{line} {ran:?}");
        assert!(ran.err.contains(wanted) && !ran.err.contains("untagged"), "{line} {ran:?}");
    }
}

#[test]
fn names_that_nothing_has_are_mistakes_with_the_closest_one() {
    let world = World::new();
    let model = world.script(&[json!({"text": "never"})]);
    for face in [&["-p", "hi"][..], &["--line"], &["tool", "list"], &["mcp"], &["debug", "tools"]] {
        for (flag, value, wanted) in [
            ("--tools", "nosuch", "\"nosuch\". Call one of these tools: read, bash"),
            ("--tools", "read,bahs", "Did you mean bash?"),
            ("--mode", "yolo", "accept-edits"),
            ("--effort", "huge", "medium"),
        ] {
            let mut arguments = face.to_vec();
            arguments.extend(["--model", &model, flag, value]);
            let ran = world.run(&arguments);
            assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?} {ran:?}");
            assert!(ran.err.contains(flag) && ran.err.contains(wanted), "{arguments:?} {ran:?}");
        }
    }
    for face in [&["-p", "hi"][..], &["--line"], &["tool", "list"], &["debug", "tools"]] {
        let ran = world.run(&[face, &["--model", "antropic/x"]].concat());
        assert_eq!(ran.code, Some(2), "{face:?} {ran:?}");
        assert!(ran.err.contains("\"anthropic/x\""), "{ran:?}");
    }
    assert_eq!(world.run(&["session", "list"]).out, "", "a session was begun");
}

#[test]
fn known_names_are_taken_in_any_spelling_of_theirs() {
    let world = World::new();
    let ran = world.run(&["tool", "list", "--tools", " Read,bash, "]);
    let names: Vec<&str> = ran.out.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!((ran.code, names), (Some(0), vec!["read", "bash"]), "{}", ran.err);
    world.settings("tools.off = ['bsh']\nmodels.gpt-5.vision = false");
    let ran = world.run(&["tool", "list"]);
    assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 26), "{ran:?}");
    assert!(ran.err.contains("tools.off") && ran.err.contains("Did you mean bash?"), "{ran:?}");
    assert!(ran.err.contains("did you mean \"openai/gpt-5\"?"), "{ran:?}");
}

#[test]
fn a_list_of_tools_without_a_name_is_wrong() {
    let world = World::new();
    for list in [",", "", " , "] {
        let ran = world.run(&["tool", "list", "--tools", list]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{list:?} {ran:?}");
        assert!(ran.err.contains("--tools names no tool"), "{ran:?}");
    }
}

#[test]
fn a_number_without_end_is_told_in_plain_words() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    // No JSON value holds this number, so it is written out.
    let input = r#"{"path": "a.txt", "limit": 18446744073709551616}"#;
    let ran = world.run(&["tool", "read", "--input", input]);
    let said = ran.both_outputs();
    assert_eq!(ran.code, Some(1), "{said}");
    assert!(said.contains("limit is") && said.contains("a number of at most"), "{said}");
    assert!(!said.contains("u64") && !said.contains("floating point"), "{said}");
    let ran = world.tool("read", &json!({"path": "a.txt", "offset": 1e23}), &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("- offset is 1e+23, wanted: a number of at most"), "{ran:?}");
}
