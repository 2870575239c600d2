//! Terminals that nobody has, what nobody types, and ends that nobody wants: nothing is lost, the
//! session goes on, and the terminal is usable afterwards.

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

/// What the model said in the only session, and what it was told.
fn log(world: &World) -> String {
    let events = world.events();
    events.iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect()
}

#[test]
fn a_terminal_of_one_cell_takes_a_message_and_grows_again() {
    let world = World::new();
    let model = world.script(&[json!({"text": "From one cell."}), json!({"text": "From few."})]);
    let tmux = talk(&world, &format!("--model '{model}'"));
    tmux.resize_to(1, 1);
    tmux.line("first");
    assert!(until(PATIENCE, || log(&world).contains("turn_ended")), "{}", tmux.visible());
    tmux.resize_to(5, 3);
    tmux.types("@");
    tmux.key("C-u");
    tmux.line("/mode");
    tmux.line("second");
    let is_over = || log(&world).matches("turn_ended").count() == 2;
    assert!(until(PATIENCE, is_over), "{}", tmux.visible());
    tmux.key("C-o");
    tmux.resize_to(1, 3);
    tmux.types("q");
    tmux.resize_to(100, 50);
    tmux.sees("a message;");
    let log = log(&world);
    assert!(log.contains("From one cell.") && log.contains("From few."), "{log}");
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
        leaves(&tmux, &world);
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
    assert!(until(PATIENCE, || log(&world).contains("It is over.")), "{}", tmux.visible());
    tmux.sees("a message;");
    let shown = tmux.visible();
    assert_eq!(shown.matches("a message;").count(), 1, "{shown}");
    // Of lines no terminal keeps all at these sizes; each of them was written, and the log has all.
    let log = log(&world);
    assert!(lines.iter().all(|line| log.contains(&line[2..])));
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
    assert!(log(&world).contains("item 499 of the list"));
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
fn without_a_terminal_that_can_move_there_is_line_mode() {
    let world = World::new();
    let model = world.script(&[json!({"text": "It is **done**."})]);
    let haft = env!("CARGO_BIN_EXE_haft");
    for (before, behind) in
        [("TERM=dumb ", ""), ("NO_COLOR=1 ", ""), ("", " > ../out"), ("", " | cat > ../out")]
    {
        let tmux = Tmux::start(&world);
        tmux.tmux(&["pipe-pane", &format!("cat > '{}'", world.root().join("raw").display())]);
        tmux.line(&format!("{before}'{haft}' --model '{model}'{behind}; echo ended with $?"));
        let is_piped = !behind.is_empty();
        let out = || std::fs::read_to_string(world.root().join("out")).unwrap_or_default();
        let said = || if is_piped { out() } else { tmux.screen() };
        assert!(until(PATIENCE, || said().contains("/help")), "{}", said());
        tmux.line("go");
        let is_there = until(PATIENCE, || {
            said().contains("It is **done**.") || said().contains("It is done.")
        });
        assert!(is_there, "{}", said());
        tmux.line("/quit");
        tmux.sees("ended with 0");
        assert!(!said().contains("a message;"), "{}", said());
        if is_piped {
            assert!(!out().contains('\u{1b}'), "{:?}", out());
        }
        if before.starts_with("TERM") {
            // Modes, colours, moves: nothing of it reaches the terminal.
            let raw = std::fs::read_to_string(world.root().join("raw")).unwrap();
            let talk = raw.split("/help").nth(1).unwrap();
            let talk = talk.split("ended with").next().unwrap();
            assert!(!talk.contains('\u{1b}'), "{talk:?}");
        }
    }
}
