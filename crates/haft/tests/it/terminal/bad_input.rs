//! Terminals that nobody has, what nobody types, and ends that nobody wants: nothing is lost, the
//! session goes on, and the terminal is usable afterwards.

use haft_types::{Body, Part};
use serde_json::json;

use crate::{
    line::terminal::Tmux,
    world::{PATIENCE, World, all_calls_ended, gone, runs, signal_all, unique_seconds, until},
};

/// A terminal with haft in it, which is ready.
fn talk(world: &World, flags: &str) -> Tmux {
    let tmux = Tmux::start(world);
    tmux.haft(flags);
    tmux.sees("a message;");
    tmux
}

fn leaves(tmux: &Tmux, world: &World) {
    tmux.key("C-d");
    tmux.sees("ended with 0");
    tmux.is_sane(world);
}

/// What the model said in the only session, and how many turns are over.
fn said(world: &World) -> (String, usize) {
    let (mut text, mut turns) = (String::new(), 0);
    for event in world.events() {
        match event.body {
            Body::AnswerPart { part: Part::Text { text: more }, .. } => text.push_str(&more),
            Body::TurnEnded { .. } => turns += 1,
            _ => {}
        }
    }
    (text, turns)
}

/// Waits until so many turns are over; gives what was said in them.
fn turns(world: &World, tmux: &Tmux, many: usize) -> String {
    let over = until(PATIENCE, || world.sessions() > 0 && said(world).1 == many);
    assert!(over, "{}", tmux.visible());
    said(world).0
}

#[test]
fn a_terminal_of_one_cell_takes_a_message_and_grows_again() {
    let world = World::new();
    let model = world.script(&[json!({"text": "From one cell."}), json!({"text": "From few."})]);
    let tmux = talk(&world, &format!("--model '{model}'"));
    tmux.resize_to(1, 1);
    tmux.line("first");
    turns(&world, &tmux, 1);
    tmux.resize_to(5, 3);
    tmux.types("@");
    tmux.key("C-u");
    tmux.line("/mode");
    tmux.line("second");
    let text = turns(&world, &tmux, 2);
    tmux.key("C-o");
    tmux.resize_to(1, 3);
    tmux.types("q");
    tmux.resize_to(100, 50);
    tmux.sees("a message;");
    assert_eq!(text, "From one cell.From few.");
    leaves(&tmux, &world);
}

#[test]
fn haft_starts_in_a_terminal_of_few_cells() {
    let world = World::new();
    let model = world.script(&[json!({"text": "I am here."})]);
    for (columns, rows) in [(5, 3), (1, 1)] {
        let tmux = Tmux::start(&world);
        tmux.resize_to(columns, rows);
        tmux.haft(&format!("--model '{model}'"));
        let haft = model.trim_start_matches("script:");
        assert!(until(PATIENCE, || runs(haft)), "{}", tmux.visible());
        tmux.resize_to(100, 50);
        tmux.sees("a message;");
        tmux.key("C-d");
        tmux.sees("ended with 0");
        tmux.line("echo she''ll");
        tmux.sees("shell");
    }
}

/// The sizes come faster than anybody looks at them, also those at which nothing can be drawn.
#[test]
fn a_storm_of_sizes_while_lines_come_is_outlived() {
    let world = World::new();
    let lines: Vec<String> = (0..300).map(|line| format!("- item {line} of the list")).collect();
    let answer = |from: usize| {
        json!({"text": lines[from..from + 100].join("\n"), "calls": [
        {"name": "bash", "input": {"command": "seq 1 200"}}]})
    };
    let answers = [answer(0), answer(100), answer(200), json!({"text": "It is over."})];
    let model = world.script(&answers);
    let tmux = talk(&world, &format!("--mode bypass --model '{model}'"));
    tmux.line("go");
    for number in 0..100_u32 {
        tmux.ask_for_size(1 + number * 37 % 160, 1 + number * 23 % 50);
    }
    tmux.resize_to(100, 50);
    let text = turns(&world, &tmux, 1);
    tmux.sees("a message;");
    let shown = tmux.visible();
    assert_eq!(shown.matches("a message;").count(), 1, "{shown}");
    // No terminal keeps its lines whole at these sizes. The session does.
    assert!(lines.iter().all(|line| text.contains(&**line)), "{text}");
    leaves(&tmux, &world);
}

#[test]
fn a_paste_of_ten_megabytes_is_taken_or_told_of() {
    let world = World::new();
    let model = world.script(&[json!({"text": "I am here."})]);
    let line = "a line that somebody pastes, with \u{1b}[31m and \u{7} in it\r\n";
    let text = line.repeat(10_000_000 / line.len());
    let file = world.root().join("paste.txt");
    std::fs::write(&file, &text).unwrap();
    let tmux = talk(&world, &format!("--model '{model}'"));
    tmux.tmux(&["load-buffer", &file.display().to_string()]);
    tmux.tmux(&["paste-buffer", "-p"]);
    tmux.sees("[pasted ");
    tmux.key("C-u");
    tmux.sees("a message;");
    tmux.line("are you there?");
    tmux.sees("I am here.");
    tmux.sees("a message;");
    leaves(&tmux, &world);
}

#[test]
fn a_terminal_that_is_closed_while_lines_are_drawn_loses_nothing() {
    let world = World::new();
    let seconds = unique_seconds();
    let lines: Vec<String> = (0..500).map(|line| format!("- item {line} of the list")).collect();
    let command = format!("while :; do echo again; done & sleep {seconds}");
    let answer = json!({"text": lines.join("\n"), "calls": [
        {"name": "bash", "input": {"command": command}}]});
    let model = world.script(&[answer, json!({"text": "I am still here."})]);
    let tmux = talk(&world, &format!("--mode bypass --model '{model}'"));
    tmux.line("go");
    assert!(until(PATIENCE, || runs(&format!("sleep\0{seconds}"))));
    tmux.tmux(&["kill-server"]);
    gone(&seconds);
    gone(&model);
    all_calls_ended(&world.events());
    assert!(said(&world).0.ends_with("item 499 of the list"));
    let id = world.only_session();
    let tmux = talk(&world, &format!("--mode bypass --model '{model}' -r {id}"));
    tmux.sees("going on with session");
    tmux.line("are you there?");
    tmux.sees("I am still here.");
    tmux.sees("a message;");
    leaves(&tmux, &world);
}

#[test]
fn a_terminated_talk_gives_the_terminal_back() {
    let world = World::new();
    let model = world.script(&[json!({"text": "I am here."})]);
    for (signal, page) in [("TERM", false), ("HUP", false), ("TERM", true)] {
        let tmux = talk(&world, &format!("--model '{model}'"));
        if page {
            tmux.key("C-o");
            tmux.sees("q back");
        }
        signal_all(signal, &model);
        tmux.sees("ended with 0");
        assert!(!tmux.visible().contains("a message;"), "{}", tmux.visible());
        tmux.is_sane(&world);
    }
}

/// Where the interface cannot be, line mode is, and says nothing that only a terminal understands.
#[test]
fn on_a_terminal_that_cannot_move_there_is_line_mode() {
    let world = World::new();
    let model = world.script(&[json!({"text": "It is **done**."})]);
    for before in ["TERM=dumb", "NO_COLOR=1"] {
        let tmux = Tmux::start(&world);
        let raw = world.root().join("raw");
        tmux.tmux(&["pipe-pane", &format!("cat > '{}'", raw.display())]);
        let haft = env!("CARGO_BIN_EXE_haft");
        tmux.line(&format!("{before} '{haft}' --model '{model}'; echo ended with $?"));
        tmux.sees("/help");
        tmux.line("go");
        tmux.sees("It is ");
        tmux.sees("done");
        tmux.line("/quit");
        let screen = tmux.sees("ended with 0");
        assert!(!screen.contains("a message;"), "{screen}");
        let raw = std::fs::read_to_string(raw).unwrap();
        let talk = raw.split("/help").nth(1).unwrap();
        let moves = talk.split("ended with").next().unwrap().contains('\u{1b}');
        assert!(before != "TERM=dumb" || !moves, "{talk:?}");
    }
}

#[test]
fn an_output_that_is_no_terminal_is_told_of_and_gets_no_sequence() {
    let world = World::new();
    let model = world.script(&[json!({"text": "It is done."})]);
    let haft = env!("CARGO_BIN_EXE_haft");
    let tmux = Tmux::start(&world);
    for (number, output) in ["> ../out", "| cat > ../out"].iter().enumerate() {
        tmux.line(&format!("'{haft}' --model '{model}' {output}; echo it en''ded {number}"));
        let screen = tmux.sees(&format!("it ended {number}"));
        assert_eq!(screen.matches("use `haft -p PROMPT`").count(), number + 1, "{screen}");
        assert_eq!(std::fs::read_to_string(world.root().join("out")).unwrap(), "");
    }
    tmux.line(&format!("'{haft}' --line --model '{model}' > ../out; echo it en''ded 2"));
    let out = || std::fs::read_to_string(world.root().join("out")).unwrap();
    assert!(until(PATIENCE, || out().contains("/help")), "{}", tmux.screen());
    tmux.line("go");
    assert!(until(PATIENCE, || out().contains("It is done.")), "{}", out());
    tmux.line("/quit");
    tmux.sees("it ended 2");
    assert!(!out().contains('\u{1b}'), "{:?}", out());
}
