//! What is typed in a real terminal while haft asks: a key answers only where it was asked for.

use std::time::Duration;

use haft_types::Body;
use serde_json::json;

use super::terminal::Tmux;
use crate::world::{Input, World, until};

const PATIENCE: Duration = Duration::from_secs(20);

/// A talk whose model calls a command that waits for the file `go`, which no one has to allow, and
/// then asks to write `made`.
fn waiting(world: &World) -> Tmux {
    world.file("wait.sh", "touch begun; until [ -e go ]; do sleep 0.02; done");
    let call = |command: &str| json!({"name": "bash", "input": {"command": command}});
    let model = world.script(&[
        json!({"text": "I wait.", "calls": [call("sh wait.sh")]}),
        json!({"text": "Now I write.", "calls": [call("touch made")]}),
        json!({"text": "First answer."}),
        json!({"text": "Second answer."}),
    ]);
    let tmux = Tmux::talk(world, &model, "--allow 'Bash(sh wait.sh)'");
    tmux.line("go on");
    assert!(until(PATIENCE, || world.work().join("begun").exists()), "{}", tmux.screen());
    tmux
}

/// The questions that were answered, by what was picked.
fn answers(world: &World) -> Vec<String> {
    let events = world.events();
    let picked = events.iter().filter_map(|event| match &event.body {
        Body::Answered { reply, .. } => Some(reply.option.clone()),
        _ => None,
    });
    picked.collect()
}

/// Waits until so many keys were asked for.
fn asks(tmux: &Tmux, count: usize) -> String {
    let come = until(PATIENCE, || tmux.screen().matches("key:").count() == count);
    let screen = tmux.screen();
    assert!(come, "{count} were to be asked for:\n{screen}");
    screen
}

#[test]
fn a_line_begun_before_a_question_goes_on_and_is_no_when_it_is_sent() {
    let world = World::new();
    let tmux = waiting(&world);
    tmux.types("use b.txt, m");
    tmux.sees("> use b.txt, m");
    world.file("go", "");
    tmux.sees("[y] ");
    tmux.types("y");
    tmux.types("sy");
    let screen = tmux.sees("> use b.txt, mysy");
    assert!(!screen.contains("key:"), "asked for in the middle of a line:\n{screen}");
    assert_eq!(answers(&world), Vec::<String>::new());
    tmux.sees("What you typed stays: with Enter it is no");
    tmux.key("Enter");
    let screen = tmux.sees("First answer.");
    println!("{screen}");
    assert!(!world.work().join("made").exists());
    assert_eq!(answers(&world), ["deny"]);
    let log = format!("{:?}", world.events());
    assert!(log.contains("use b.txt, mysy"), "the line is lost");
    tmux.line("/quit");
    tmux.sees("ended with 0");
    tmux.is_sane(&world);
}

#[test]
fn a_wrong_key_that_is_taken_back_leaves_the_question_open_for_keys() {
    let world = World::new();
    let tmux = waiting(&world);
    world.file("go", "");
    asks(&tmux, 1);
    tmux.types("x");
    tmux.sees("> x");
    tmux.key("BSpace");
    asks(&tmux, 2);
    tmux.types("y");
    tmux.sees("First answer.");
    assert_eq!(answers(&world).len(), 1);
    assert!(world.work().join("made").exists());
    tmux.line("/quit");
    tmux.sees("ended with 0");
}

#[test]
fn what_is_pasted_is_one_message_and_answers_nothing() {
    let world = World::new();
    let tmux = waiting(&world);
    world.file("go", "");
    asks(&tmux, 1);
    tmux.paste("y");
    tmux.sees("> y");
    tmux.key("BSpace");
    asks(&tmux, 2);
    tmux.paste("y\ns\nthird line\n");
    tmux.sees("third line");
    assert_eq!(answers(&world), Vec::<String>::new());
    tmux.key("Enter");
    tmux.sees("First answer.");
    assert!(!world.work().join("made").exists());
    let events = world.events();
    let reasons = events.iter().filter_map(|event| match &event.body {
        Body::Answered { reply, .. } => Some((reply.option.as_str(), reply.text.as_deref())),
        _ => None,
    });
    assert_eq!(reasons.collect::<Vec<_>>(), [("deny", Some("y\ns\nthird line"))]);
}

#[test]
fn a_stopped_question_is_put_anew_and_the_end_of_input_is_no() {
    let world = World::new();
    let tmux = waiting(&world);
    world.file("go", "");
    asks(&tmux, 1);
    tmux.key("C-z");
    // The shell goes on with its line.
    tmux.sees("ended with 1");
    tmux.line("stty -a | grep -o ' icanon'; echo in the shell");
    tmux.sees(" icanon\nin the shell");
    tmux.line("fg; echo then with $?; stty -a > ../after");
    let screen = asks(&tmux, 2);
    assert_eq!(screen.matches("[y] ").count(), 2, "{screen}");
    println!("{screen}");
    tmux.key("C-d");
    tmux.sees("First answer.");
    assert_eq!(answers(&world), ["deny"]);
    assert!(!world.work().join("made").exists());
    tmux.key("C-d");
    tmux.sees("then with 0");
    tmux.is_sane(&world);
}

#[test]
fn other_output_waits_until_the_question_is_answered() {
    let world = World::new();
    std::fs::write(world.root().join("outside.txt"), "outside\n").unwrap();
    world.file("a.txt", "inside\n");
    let read = |path: &str| json!({"name": "read", "input": {"path": path}});
    let model = world.script(&[
        json!({"calls": [read("../outside.txt"), read("a.txt")]}),
        json!({"text": "First answer."}),
    ]);
    let tmux = Tmux::talk(&world, &model, "");
    tmux.line("go on");
    asks(&tmux, 1);
    tmux.types("y");
    let end = tmux.sees("First answer.");
    println!("{end}");
    // The other call has ended meanwhile, or before the question.
    let (_, question) = end.split_once("? Reading").unwrap();
    let (question, behind) = question.split_once("key: y  (yes").unwrap();
    assert!(!question.contains("* "), "something broke in:\n{end}");
    assert!(end.contains("1  inside") && behind.contains("1  outside"), "{end}");
}

#[test]
fn answers_of_one_turn_are_apart() {
    let world = World::new();
    let model = world.script(&[json!({"text": "ok1", "delay_ms": 2_000}), json!({"text": "ok2"})]);
    let tmux = Tmux::talk(&world, &model, "");
    tmux.line("one");
    // Passed on in the same turn, or in the next one where this comes late; what was typed may stand
    // right behind the first answer.
    tmux.line("two");
    let screen = tmux.sees("ok2");
    let rest = screen.split_once("\nok1\n").map(|(_, rest)| rest);
    let between = rest.and_then(|rest| rest.split_once("\nok2\n")).map(|(between, _)| between);
    let apart = |between| ["", "> two\n", "\n> two\n"].contains(&between);
    assert!(between.is_some_and(apart), "{screen}");
    tmux.paste("three\nfour");
    tmux.sees("four");
    tmux.key("C-c");
    // Two signals that come at once are one.
    let screen = tmux.sees("four^C\n\n>");
    assert!(!screen.contains("ended with 0"), "a line was open:\n{screen}");
    tmux.key("C-c");
    tmux.sees("ended with 0");
    tmux.is_sane(&world);
}

#[test]
fn keys_before_the_question_of_a_tool_answer_nothing() {
    let world = World::new();
    let tmux = Tmux::start(&world);
    tmux.haft("tool bash --input '{\"command\": \"echo it ran; touch made\"}'");
    asks(&tmux, 1);
    tmux.types("sy");
    asks(&tmux, 2);
    tmux.paste("y");
    asks(&tmux, 3);
    assert!(!world.work().join("made").exists(), "{}", tmux.screen());
    tmux.key("C-z");
    tmux.sees("ended with 1");
    tmux.line("fg; echo then with $?; stty -a > ../after");
    let screen = asks(&tmux, 4);
    println!("{screen}");
    tmux.key("C-d");
    tmux.sees("then with 1");
    assert!(!world.work().join("made").exists());
    tmux.is_sane(&world);
}

#[test]
fn json_holds_nothing_that_a_terminal_acts_on() {
    let world = World::new();
    let hostile = "\u{9b}2J \u{202e}abc \u{200b}\u{85}";
    world.file("a.txt", hostile);
    let safe = |name: &str, out: &str| {
        for escaped in ["\\u009b2J", "\\u202eabc", "\\u200b\\u0085"] {
            assert!(out.contains(escaped), "{name}: {out}");
        }
        let raw = ['\u{9b}', '\u{202e}', '\u{200b}', '\u{85}'];
        assert!(!out.contains(raw), "{name}: {out:?}");
        for line in out.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
    };
    let ran = world.run(&["tool", "read", "--json", "--input", "{\"path\": \"a.txt\"}"]);
    safe("tool", &ran.out);
    let model = world.script(&[json!({"text": hostile}), json!({"text": hostile})]);
    for output in ["json", "stream-json"] {
        let ran = world.run(&["-p", "go", "--model", &model, "--output", output]);
        safe(output, &ran.out);
    }
    let name = format!("--model={model}");
    let ran = world.run_with(&["--line", &name, hostile], &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let list = world.run(&["session", "list", "--json"]);
    assert!(!list.out.contains('\u{202e}') && list.out.contains("\\u202e"), "{list:?}");
}
