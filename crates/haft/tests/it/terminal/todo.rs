//! The list of things to do over the editor: folded by a key, there after a resume, back with a
//! rewind.

use serde_json::{Value, json};

use crate::{
    line::terminal::Tmux,
    world::{PATIENCE, World, until},
};

fn todo(first: &str, second: &str) -> Value {
    let items =
        json!([{"text": "read it", "status": first}, {"text": "mend it", "status": second}]);
    json!({"calls": [{"name": "todo", "input": {"items": items}}]})
}

/// The row of the live region that has what is in progress.
fn shows(tmux: &Tmux, text: &str) -> bool {
    until(PATIENCE, || tmux.visible().contains(&format!("\n  > {text}\n")))
}

fn shows_none(tmux: &Tmux) -> bool {
    until(PATIENCE, || !tmux.visible().contains("\n  > "))
}

#[test]
fn it_is_folded_resumed_and_taken_back() {
    let world = World::new();
    let model = world.script(&[
        todo("in_progress", "pending"),
        json!({"text": "It is begun."}),
        todo("completed", "in_progress"),
        json!({"text": "It is read."}),
    ]);
    let tmux = Tmux::start(&world);
    tmux.haft(&format!("--model '{model}'"));
    tmux.sees("a message;");
    tmux.line("begin it");
    tmux.sees("It is begun.");
    assert!(shows(&tmux, "read it"), "{}", tmux.screen());
    tmux.key("C-t");
    assert!(shows_none(&tmux), "{}", tmux.screen());
    tmux.sees("a message;");
    tmux.line("go on");
    tmux.sees("It is read.");
    assert!(shows_none(&tmux), "what is folded stays so: {}", tmux.screen());
    tmux.key("C-t");
    assert!(shows(&tmux, "mend it"), "{}", tmux.screen());
    tmux.key("C-d");
    tmux.sees("ended with 0");
    // Another process goes on with it, and shows it from the start.
    tmux.haft(&format!("-c --model '{model}'"));
    tmux.sees("going on with session");
    assert!(shows(&tmux, "mend it"), "{}", tmux.screen());
    tmux.sees("a message;");
    tmux.line("/rewind 1 talk");
    tmux.sees("back to before: go on");
    assert!(shows(&tmux, "read it"), "{}", tmux.screen());
    tmux.line("/rewind 1 talk");
    tmux.sees("back to before: begin it");
    assert!(shows_none(&tmux), "{}", tmux.screen());
    tmux.line("/rewind back");
    tmux.sees("goes on where it was");
    assert!(shows(&tmux, "read it"), "{}", tmux.screen());
    tmux.key("C-d");
    assert!(until(PATIENCE, || tmux.screen().matches("ended with 0").count() == 2));
}
