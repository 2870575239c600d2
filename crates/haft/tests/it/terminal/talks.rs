//! Whole talks in the terminal interface, typed by keys.

use serde_json::json;

use crate::{
    line::terminal::Tmux,
    world::{PATIENCE, World, runs, unique_seconds, until},
};

/// A terminal with haft in it, which is ready; lines of a shell stand above.
fn talk(world: &World, model: &str, flags: &str) -> Tmux {
    let tmux = Tmux::start(world);
    tmux.line("for i in 1 2 3 4 5; do echo marker $i; done");
    tmux.sees("marker 5");
    tmux.haft(&format!("{flags} --model '{model}'"));
    tmux.sees("a message;");
    tmux
}

/// Fails unless each line that stood there before haft still stands there, once.
fn markers_stand(screen: &str) {
    for number in 1..=5 {
        let line = format!("\nmarker {number}\n");
        assert_eq!(screen.matches(&line).count(), 1, "{line:?}\n{screen}");
    }
}

#[test]
fn a_question_is_answered_by_one_key() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let edit = json!({"name": "edit", "input": {"path": "a.txt", "edits": [
        {"old_text": "alpha", "new_text": "beta"}]}});
    let model = world.script(&[
        json!({"text": "I edit it.", "calls": [edit]}),
        json!({"text": "It is **done**."}),
    ]);
    let tmux = talk(&world, &model, "");
    tmux.line("please edit a.txt");
    let screen = tmux.sees("tab: no, because");
    assert!(screen.contains("I edit it.") && screen.contains("+ beta"), "{screen}");
    // A key counts once the question stood for a while: until then it is typed.
    assert!(until(PATIENCE, || {
        tmux.types("y");
        if tmux.screen().contains("It is done.") {
            return true;
        }
        tmux.key("BSpace");
        false
    }));
    assert_eq!(world.read("a.txt"), "beta\n");
    let screen = tmux.screen();
    markers_stand(&screen);
    assert_eq!(screen.matches("I edit it.").count(), 1, "{screen}");
    tmux.key("C-d");
    tmux.sees("ended with 0");
    tmux.is_sane(&world);
}

#[test]
fn escape_stops_what_runs_and_the_talk_goes_on() {
    let world = World::new();
    let seconds = unique_seconds();
    let call =
        json!({"name": "bash", "input": {"command": format!("echo begun; sleep {seconds}")}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "I am still here."})]);
    let tmux = talk(&world, &model, "--mode bypass");
    tmux.line("run it");
    assert!(until(PATIENCE, || runs(&format!("sleep\0{seconds}"))));
    tmux.sees("esc stops");
    tmux.key("Escape");
    tmux.sees("interrupted");
    assert!(until(PATIENCE, || !runs(&format!("sleep\0{seconds}"))));
    tmux.line("are you there?");
    tmux.sees("I am still here.");
    tmux.key("C-c");
    tmux.sees("once more");
    tmux.key("C-c");
    let screen = tmux.sees("ended with 0");
    markers_stand(&screen);
    tmux.is_sane(&world);
}

#[test]
fn sizes_change_while_an_answer_streams_and_no_line_is_lost() {
    let world = World::new();
    let lines: Vec<String> = (0..200).map(|n| format!("- item {n} of the list")).collect();
    let model = world.script(&[json!({"text": lines.join("\n"), "delay_ms": 3_000})]);
    let tmux = talk(&world, &model, "");
    tmux.line("list them");
    for columns in [60, 140, 35, 100] {
        tmux.resize(columns);
    }
    tmux.sees("item 199 of the list");
    let screen = tmux.screen();
    markers_stand(&screen);
    for number in 0..200 {
        let line = format!("item {number} of the list");
        assert_eq!(screen.matches(&line).count(), 1, "{line}\n{screen}");
    }
    assert_eq!(screen.matches("a message;").count(), 1, "{screen}");
    tmux.key("C-d");
    tmux.sees("ended with 0");
    tmux.is_sane(&world);
}
