//! `haft --line` over pipes: a script of lines is taken in its order.

use haft_types::{Answerer, Body};
use serde_json::json;

use crate::world::{Input, Ran, World, all_calls_ended, gone, unique_seconds};

fn talk(world: &World, model: &str, flags: &[&str], lines: &str) -> Ran {
    world.run_with(&[&["--line", "--model", model][..], flags].concat(), &Input::Pipe(lines))
}

/// Fails unless these stand in the text in this order.
fn in_order(text: &str, parts: &[&str]) {
    let mut at = 0;
    for part in parts {
        let found = text[at..].find(part);
        at += found.unwrap_or_else(|| panic!("{part:?} is not behind {at} of:\n{text}"));
        at += part.len();
    }
}

#[test]
fn prompts_are_answered_one_after_the_other() {
    let world = World::new();
    let model = world.script(&[json!({"text": "First."}), json!({"text": "Second."})]);
    let ran = talk(&world, &model, &[], "one\n\ntwo\n/quit\nthree\n");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    in_order(&ran.out, &["haft ", "> one", "First.", "> two", "Second."]);
    assert!(!ran.out.contains("three") && !ran.out.contains('\u{1b}'), "{ran:?}");
}

#[test]
fn the_end_says_which_jobs_it_stopped() {
    let world = World::new();
    let input = json!({"command": "sleep 100", "run_in_background": true});
    let call = json!({"name": "bash", "input": input});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "Begun."})]);
    let ran = talk(&world, &model, &["--mode", "bypass"], "go\n/quit\n");
    let said = "haft: stopped with the end of the run: j1 (sleep 100)\n";
    assert!(ran.code == Some(0) && ran.err.ends_with(said), "{ran:?}");
}

#[test]
fn the_end_of_input_is_a_good_end() {
    let world = World::new();
    let model = world.script(&[json!({"text": "First."})]);
    let ran = talk(&world, &model, &[], "one");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    in_order(&ran.out, &["> one", "First."]);
    let ran = talk(&world, &model, &[], "");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let ran = talk(&world, &model, &["from the command line"], "");
    in_order(&ran.out, &["> from the command line", "First."]);
}

fn edits(world: &World) -> String {
    world.file("a.txt", "alpha\nbeta\n");
    let edit = |old: &str, new: &str| {
        json!({"name": "edit", "input": {"path": "a.txt", "edits": [
            {"old_text": old, "new_text": new}]}})
    };
    world.script(&[
        json!({"text": "I edit.", "calls": [edit("alpha", "gamma"), edit("beta", "delta")]}),
        json!({"text": "End."}),
    ])
}

#[test]
fn questions_are_answered_by_lines_with_the_preview_shown() {
    let world = World::new();
    let model = edits(&world);
    let ran = talk(&world, &model, &[], "go\n\nyes\nnot this one\n/quit\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    in_order(
        &ran.out,
        &[
            "I edit.",
            "? Editing a.txt",
            "- alpha",
            "+ gamma",
            "[y] yes",
            "[n] no",
            "press one of y",
            "(yes, this once)",
            "? Editing a.txt",
            "- beta",
            "+ delta",
            "(no: not this one)",
            "denied: the person refused this call: not this one",
            "End.",
        ],
    );
    assert_eq!(world.read("a.txt"), "gamma\nbeta\n");
}

#[test]
fn a_command_is_one_where_a_question_is_open_too() {
    let world = World::new();
    let model = edits(&world);
    let ran = talk(&world, &model, &[], "go\n/mode\ny\n/quit\n");
    in_order(&ran.out, &["? Editing a.txt", "mode ask", "(yes, this once)", "? Editing a.txt"]);
    assert_eq!((ran.code, world.read("a.txt").as_str()), (Some(0), "gamma\nbeta\n"), "{ran:?}");
}

#[test]
fn an_answer_for_the_session_is_not_asked_again() {
    let world = World::new();
    let touch = json!({"name": "bash", "input": {"command": "echo x >> made"}});
    let again = json!({"calls": [touch]});
    let model = world.script(&[again.clone(), again, json!({"text": "End."})]);
    let ran = talk(&world, &model, &[], "go\ns\n/quit\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.out.matches("[y] yes").count(), 1, "{}", ran.out);
    assert_eq!(world.read("made"), "x\nx\n");
}

#[test]
fn questions_behind_the_end_of_input_are_denied() {
    let world = World::new();
    let model = edits(&world);
    let ran = talk(&world, &model, &[], "go\ny\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    in_order(&ran.out, &["(yes, this once)", "denied", "End."]);
    assert_eq!(world.read("a.txt"), "gamma\nbeta\n");
    let events = world.events();
    all_calls_ended(&events);
    let by = events.iter().filter_map(|event| match &event.body {
        Body::Answered { by, .. } => Some(by.clone()),
        _ => None,
    });
    let expected = [Answerer::Person("line".to_owned()), Answerer::Nobody];
    assert_eq!(by.collect::<Vec<_>>(), expected, "nobody refused the second one");
}

#[test]
fn commands_of_the_line() {
    let world = World::new();
    let model = edits(&world);
    let lines =
        "/help\n/mode\n/mode yolo\n/mode accept-edits\n/nope\n/usr/bin is a folder\n/quit\n";
    let ran = talk(&world, &model, &[], lines);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    in_order(
        &ran.out,
        &[
            "Ctrl-C",
            "mode ask",
            "! \"yolo\" is no mode",
            "mode accept-edits",
            "no command /nope",
            "> /usr/bin is a folder",
            "+ gamma",
            "End.",
        ],
    );
    assert_eq!(world.read("a.txt"), "gamma\ndelta\n");
}

#[test]
fn a_failing_model_is_told_and_the_talk_goes_on() {
    let world = World::new();
    let model = world.script(&[json!({"error": "out of order"}), json!({"text": "Better."})]);
    let ran = talk(&world, &model, &[], "one\ntwo\n/quit\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    in_order(&ran.out, &["> one", "out of order", "> two", "Better."]);
    assert_eq!(ran.out.matches("out of order").count(), 1, "{}", ran.out);
}

#[test]
fn no_model_is_told_before_anything_is_typed() {
    let world = World::new();
    let ran = world.run_with(&["--line"], &Input::Silent);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("no model is chosen"), "{ran:?}");
}

#[test]
fn what_still_runs_at_the_end_of_input_is_waited_for() {
    let world = World::new();
    let seconds = unique_seconds();
    let command = format!("sleep 0.3; echo slept; : {seconds}");
    let call = json!({"name": "bash", "input": {"command": command}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "End."})]);
    let ran = talk(&world, &model, &["--mode", "bypass"], "go\n");
    in_order(&ran.out, &["slept", "End."]);
    gone(&seconds);
}

#[test]
fn a_message_for_later_is_answered_before_the_input_ends_the_talk() {
    for _ in 0..5 {
        let world = World::new();
        let touch = json!({"name": "bash", "input": {"command": "touch zzz"}});
        let model = world.script(&[
            json!({"calls": [touch]}),
            json!({"text": "First."}),
            json!({"text": "Second."}),
        ]);
        let ran = talk(&world, &model, &[], "go\n/later second thing\ny\n");
        in_order(&ran.out, &["First.", "> second thing", "Second."]);
    }
}
