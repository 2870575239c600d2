//! Background jobs in both front ends of a terminal: looked at, answered, stopped.

use serde_json::json;

use crate::{
    line::terminal::Tmux,
    world::{PATIENCE, World, runs, unique_seconds, until},
};

#[test]
fn a_job_is_looked_at_answered_and_stopped() {
    for (flags, ready) in [("", "a message;"), ("--line", "mode bypass")] {
        let world = World::new();
        let seconds = unique_seconds();
        let command = format!("seq 1 60; read -r x; echo got $x; touch heard; sleep {seconds}");
        let call =
            json!({"name": "bash", "input": {"command": command, "run_in_background": true}});
        let model = world.script(&[json!({"calls": [call]}), json!({"text": "It runs."})]);
        let tmux = Tmux::start(&world);
        tmux.haft(&format!("{flags} --mode bypass --model '{model}'"));
        tmux.sees(ready);
        tmux.line("begin it");
        tmux.sees("It runs.");
        tmux.line("/jobs j1 input hello there");
        assert!(until(PATIENCE, || world.work().join("heard").exists()), "{}", tmux.screen());
        assert!(until(PATIENCE, || runs(&format!("sleep\0{seconds}"))));
        tmux.line("/jobs j1");
        let screen = tmux.sees("got hello there");
        assert!(screen.contains("earlier lines are left out: out://"), "{screen}");
        assert!(screen.contains("\n  60\n") && !screen.contains("\n  5\n"), "{screen}");
        tmux.line("/jobs j7");
        tmux.sees("there is no job \"j7\"");
        tmux.line("/jobs j1 end");
        tmux.sees("is not understood: /jobs [ID");
        if flags.is_empty() {
            is_a_list(&tmux);
            tmux.types("/jobs ");
            tmux.sees("j1 stop  stop ");
            tmux.types("j1 s");
            tmux.types("top");
            tmux.key("Enter");
        } else {
            tmux.line("/jobs j1 stop");
        }
        assert!(until(PATIENCE, || !runs(&format!("sleep\0{seconds}"))), "{}", tmux.screen());
        tmux.sees("j1  stopped: ");
        tmux.line("/jobs j1 stop");
        tmux.sees("has ended before");
        tmux.key("C-d");
        tmux.sees("ended with 0");
    }
}

/// `/jobs` alone lists them over the editor: one opens, gets a line, and the list goes.
fn is_a_list(tmux: &Tmux) {
    tmux.line("/jobs");
    let screen = tmux.sees("enter opens, ctrl+o prints, ctrl+x stops, tab answers, esc leaves");
    assert!(screen.contains("j1  runs for "), "{screen}");
    tmux.key("Enter");
    let screen = tmux.sees("enter closes it");
    let list = screen.rsplit("j1  runs for ").next().unwrap_or_default();
    assert!(list.contains("    got hello there\n") && !list.contains("    1\n"), "{screen}");
    tmux.key("Tab");
    tmux.sees("> /jobs j1 input");
    tmux.key("C-u");
    tmux.sees("a message;");
    tmux.key("Escape");
    assert!(until(PATIENCE, || !tmux.screen().contains("esc leaves")), "{}", tmux.screen());
}
