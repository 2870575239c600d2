//! What a newcomer meets in line mode: questions, the sign of life, text that is drawn, files that go
//! along, commands of one's own, and how to go on.

use haft_types::Body;
use serde_json::{Value, json};

use crate::{
    line::terminal::Tmux,
    mock_provider::{Mock, WIRES},
    world::{Input, PATIENCE, World, finish, until},
};

fn write(path: &str) -> Value {
    json!({"name": "write", "input": {"path": path, "content": "x\n"}})
}

fn bash(command: &str) -> Value {
    json!({"name": "bash", "input": {"command": command}})
}

/// The answers so far, each with its reason.
fn replies(world: &World) -> Vec<(String, Option<String>)> {
    let events = world.events();
    let replies = events.iter().filter_map(|event| match &event.body {
        Body::Answered { reply, .. } => Some((reply.option.clone(), reply.text.clone())),
        _ => None,
    });
    replies.collect()
}

#[test]
fn a_key_that_came_too_soon_stays_and_enter_sends_it() {
    let world = World::new();
    let model = world.script(&[
        json!({"calls": [bash("touch one")]}),
        json!({"calls": [bash("touch two")]}),
        json!({"text": "The end."}),
    ]);
    let tmux = Tmux::talk(&world, &model, "");
    tmux.line("go on");
    tmux.sees("key:");
    // What is typed with a line behind it is a line, whenever it comes.
    tmux.line("yes");
    let second = || tmux.screen().contains("touch two");
    assert!(until(PATIENCE, second), "{}", tmux.screen());
    assert!(world.work().join("one").exists());
    let asks = || tmux.screen().matches("key:").count() == 2;
    assert!(until(PATIENCE, asks), "{}", tmux.screen());
    tmux.line("rather use two.txt");
    let screen = tmux.sees("The end.");
    println!("{screen}");
    assert!(
        screen.contains("denied: the person refused this call: rather use two.txt"),
        "{screen}"
    );
    let reason = Some("rather use two.txt".to_owned());
    assert_eq!(replies(&world), [("allow".to_owned(), None), ("deny".to_owned(), reason)]);
    assert!(!world.work().join("two").exists());
    tmux.line("/quit");
    tmux.sees("ended with 0");
}

#[test]
fn every_edit_of_file_tools_is_let_go_on_but_no_command_and_nothing_protected() {
    let world = World::new();
    let model = world.script(&[
        json!({"calls": [write("a.txt")]}),
        json!({"calls": [write("b.txt")]}),
        json!({"calls": [bash("touch c.txt")]}),
        json!({"calls": [write(".git/config")]}),
        json!({"text": "The end."}),
    ]);
    let tmux = Tmux::talk(&world, &model, "");
    tmux.line("go on");
    let screen = tmux.sees("key:");
    assert!(screen.contains("[e] yes, and every edit of a file tool"), "{screen}");
    tmux.types("e");
    for (count, named) in [(2, "touch c.txt"), (3, ".git/config")] {
        let asks = || tmux.screen().matches("key:").count() == count;
        assert!(until(PATIENCE, asks), "{}", tmux.screen());
        let screen = tmux.screen();
        let last = screen.rsplit("? ").next().unwrap();
        assert!(last.contains(named) && !last.contains("[e]"), "{screen}");
        tmux.types("n");
    }
    let screen = tmux.sees("The end.");
    assert_eq!((world.read("a.txt").as_str(), world.read("b.txt").as_str()), ("x\n", "x\n"));
    tmux.sees("edits > ");
    println!("{screen}");
    tmux.line("/mode ask");
    tmux.sees("mode ask");
    let alone = || tmux.screen().trim_end().ends_with("\n>");
    assert!(until(PATIENCE, alone), "{}", tmux.screen());
}

#[test]
fn text_is_drawn_and_thinking_is_one_line() {
    let world = World::new();
    let text = "# Head\n\nSome **bold** `code`.\n\n- one\n- two\n\n| a | b |\n|---|--:|\n| x | 12 |\n\n\
                ```rust\nlet x = 1;\n```\nDone.";
    let model = world.script(&[json!({"thinking": "First I look.\nThen I think.", "text": text})]);
    let tmux = Tmux::talk(&world, &model, "");
    tmux.line("go on");
    let screen = tmux.sees("Done.");
    let wanted = "~ First I look.\n\nHead\n\nSome bold code.\n\n\u{2022} one\n\u{2022} two\n\na   b\n\
                  \u{2500}  \u{2500}\u{2500}\nx  12\n\n  rust\n  let x = 1;\nDone.\n";
    assert!(screen.contains(wanted), "{screen}");
    assert!(!screen.contains("Then I think"), "{screen}");
}

#[test]
fn a_sign_of_life_says_what_goes_on_and_goes_away() {
    let world = World::new();
    let wait = "touch begun; until [ -e go ]; do sleep 0.02; done; echo came";
    let model = world.script(&[json!({"calls": [bash(wait)]}), json!({"text": "The end."})]);
    let tmux = Tmux::talk(&world, &model, "--mode bypass");
    tmux.line("go on");
    tmux.sees("Ctrl-C stops");
    tmux.sees("Running touch begun");
    // It goes away for a line that is typed, and comes back.
    tmux.types("ab");
    tmux.sees("\n> ab");
    assert!(!tmux.screen().contains("Ctrl-C stops"), "{}", tmux.screen());
    tmux.key("C-u");
    tmux.sees("Ctrl-C stops");
    world.file("go", "");
    let screen = tmux.sees("The end.");
    assert!(screen.contains("\n  came\n"), "{screen}");
    let gone = || !tmux.screen().contains("Ctrl-C stops");
    assert!(until(PATIENCE, gone), "{}", tmux.screen());
    tmux.line("/quit");
    let screen = tmux.sees("ended with 0");
    assert!(screen.contains("Go on with: haft -c (or: haft -r "), "{screen}");
}

#[test]
fn a_command_that_is_typed_runs_and_the_model_is_told() {
    for wire in WIRES {
        let world = World::new();
        let mock = Mock::with(move |number, _| wire.text(&format!("Answer {number}.")));
        let provider = match wire {
            crate::mock_provider::Wire::Anthropic => "anthropic",
            crate::mock_provider::Wire::OpenAi => "openai",
            crate::mock_provider::Wire::Responses => "openai-responses",
        };
        world.settings(&format!(
            "[providers.mock]\naddress = {:?}\nwire = {provider:?}\n[permissions]\n\
             deny = [\"Bash(touch forbidden)\"]\nask = [\"Bash(touch asked)\"]\n",
            wire.base(&mock.url())
        ));
        let tmux = Tmux::talk(&world, "mock/x", "--mode plan");
        tmux.line("!echo it ran > made; cat made");
        tmux.sees("\n  it ran\n");
        tmux.line("!touch forbidden");
        tmux.sees("denied");
        tmux.line("!touch asked");
        tmux.sees("key:");
        tmux.types("n");
        tmux.sees("denied: the person refused");
        assert!(mock.requests().is_empty(), "nobody was asked for an answer");
        tmux.line("and now?");
        tmux.sees("Answer 0.");
        let body = mock.bodies().remove(0);
        let told =
            "The person ran this command themselves:\\necho it ran > made; cat made\\nIt gave:";
        assert!(body.contains(told) && body.contains("it ran"), "{body}");
        assert!(!world.work().join("forbidden").exists() && !world.work().join("asked").exists());
        // Over a pipe, and in a prompt of the command line, it is a message.
        let world = World::new();
        let mock = Mock::with(move |_, _| wire.text("Fine."));
        for flags in [&["--line"][..], &["--line", "!touch made"], &["-p", "!touch made"]] {
            let input = Input::Pipe("!touch made\n");
            let ran = finish(wire.haft(&world, &mock.url(), flags), &input);
            assert_eq!(ran.code, Some(0), "{ran:?}");
        }
        assert!(!world.work().join("made").exists());
    }
}

#[test]
fn a_file_that_a_prompt_names_goes_along() {
    for wire in WIRES {
        let world = World::new();
        world.file("src/a.rs", "fn alpha() {}\n");
        world.file("secret.txt", "hidden words\n");
        world.file("red.png", include_bytes!("../red.png"));
        world.settings("[permissions]\ndeny = [\"Read(secret.txt)\"]\n");
        let mock = Mock::with(move |_, _| wire.text("Fine."));
        let prompt = "look at @src/a.rs, @src and @secret.txt and @red.png, not @types/node";
        let ran = finish(wire.haft(&world, &mock.url(), &["-p", prompt]), &Input::Nothing);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Fine.\n"), "{ran:?}");
        let ran = finish(
            wire.haft(&world, &mock.url(), &["--line"]),
            &Input::Pipe(&format!("{prompt}\n")),
        );
        assert!(ran.code == Some(0) && ran.out.contains("Fine.\n"), "{ran:?}");
        for body in mock.bodies() {
            assert!(body.contains(prompt), "the words stay: {body}");
            assert!(body.contains("fn alpha() {}") && body.contains("a.rs"), "{body}");
            assert!(!body.contains("hidden words") && body.contains("not attached"), "{body}");
            assert!(body.contains("image/png") && !body.contains("path=\\\"types"), "{body}");
        }
    }
}

#[test]
fn a_session_is_found_by_the_short_id_that_is_shown() {
    let world = World::new();
    let model = world.script(&[json!({"text": "First."}), json!({"text": "Second."})]);
    for _ in 0..2 {
        let ran = world.run(&["-p", "what is this?", "--model", &model]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let list = world.run(&["session", "list"]).out;
    let ids: Vec<&str> = list.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!((ids.len(), ids[0].len(), ids[0][..4] == ids[1][..4]), (2, 8, false), "{list}");
    assert!(
        list.contains("just now") && list.contains("1 turn ") && list.contains("what is this?"),
        "{list}"
    );
    let shown = world.run(&["session", "show", ids[0]]);
    assert!(shown.code == Some(0) && shown.out.contains("what is this?"), "{shown:?}");
    let ran = world.run_with(&["--line", "-r", ids[1], "--model", &model], &Input::Pipe("go on\n"));
    assert!(
        ran.out.contains(&format!("going on with session {}: 1 turn, last used", ids[1])),
        "{ran:?}"
    );
    assert!(ran.out.contains("> what is this?\n\nFirst.\n"), "{ran:?}");
}

#[test]
fn what_goes_on_is_said_beside_an_answer_where_that_is_wanted() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let edit = json!({"name": "edit", "input": {"path": "a.txt", "edits": [
        {"old_text": "beta", "new_text": "gamma"}]}});
    let model = world.script(&[
        json!({"thinking": "I try it.\nMore.", "calls": [edit]}),
        json!({"text": "The end."}),
    ]);
    let ran = world.run(&["-p", "go", "--verbose", "--mode", "accept-edits", "--model", &model]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "The end.\n"), "{ran:?}");
    for part in ["~ I try it.", "* edit a.txt", "failed in"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    assert!(!ran.err.contains("The end."), "the answer is standard output's: {}", ran.err);
    // All of what is wrong, not its first line alone.
    let said = world.outcomes().iter().map(crate::world::text).next().unwrap();
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap();
    assert!(said.lines().count() > 1 && ran.err.contains(last.trim()), "{said}\n{}", ran.err);
}

#[test]
fn a_wrong_call_is_json_where_that_was_asked_for() {
    let world = World::new();
    for flags in [
        &["-p", "hi", "--output", "json"][..],
        &["-p", "hi", "--output=stream-json", "--modle", "x"],
        &["-p", "hi", "--output-format", "json", "--max-turns", "0"],
        &["-p", "", "--output", "stream-json"],
    ] {
        let ran = world.run(flags);
        assert_eq!((ran.code, ran.out.lines().count()), (Some(2), 1), "{ran:?}");
        let result = ran.json();
        assert_eq!(
            (&result["type"], &result["status"]),
            (&json!("result"), &json!("usage")),
            "{ran:?}"
        );
        assert!(!result["error"].as_str().unwrap().is_empty() && !ran.err.is_empty(), "{ran:?}");
    }
    let ran = world.run(&["-p", "hi", "--modle", "x"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
}

#[test]
fn a_denied_call_fails_the_run_where_that_is_wanted() {
    let world = World::new();
    for (flags, code) in [(&["--fail-on-denied"][..], 3), (&[], 0)] {
        let model =
            world.script(&[json!({"calls": [bash("touch made")]}), json!({"text": "The end."})]);
        let ran = world.run(&[&["-p", "go", "--model", &model], flags].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), "The end.\n"), "{ran:?}");
        assert_eq!(
            ran.err.contains("a call was denied, which fails this run"),
            code == 3,
            "{ran:?}"
        );
    }
    let model = world.script(&[json!({"text": "The end."})]);
    let ran = world.run(&["-p", "go", "--fail-on-denied", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_text_is_added_to_the_system_prompt() {
    for wire in WIRES {
        let world = World::new();
        let mock = Mock::with(move |_, _| wire.text("Fine."));
        let flags = ["-p", "hi", "--append-system-prompt", "- Answer in Latin."];
        let ran = finish(wire.haft(&world, &mock.url(), &flags), &Input::Nothing);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(mock.bodies()[0].matches("- Answer in Latin.").count(), 1);
        let ran = world.run(&["-p", "hi", "--append-system-prompt", " "]);
        assert!(ran.code == Some(2) && ran.err.contains("leave the flag out"), "{ran:?}");
    }
}
