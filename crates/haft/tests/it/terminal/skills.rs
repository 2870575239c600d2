//! Skills and commands by their names: completed, in the help, and started.

use serde_json::json;

use crate::{line::terminal::Tmux, world::World};

#[test]
fn a_command_is_completed_and_started() {
    let world = World::new();
    let folder = world.root().join("home/.claude/commands/team");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "---\ndescription: Greet somebody\nargument-hint: NAME\n---\nGreet $1 for me.";
    std::fs::write(folder.join("greet.md"), text).unwrap();
    let model = world.script(&[json!({"text": "Hello there."})]);
    let tmux = Tmux::start(&world);
    tmux.haft(&format!("--model '{model}'"));
    tmux.sees("a message;");
    tmux.types("/team");
    let screen = tmux.sees("Greet somebody");
    assert!(screen.contains("/team:greet"), "{screen}");
    tmux.key("Tab");
    tmux.sees("> /team:greet");
    tmux.types("Bob");
    tmux.key("Enter");
    let screen = tmux.sees("Hello there.");
    assert!(screen.contains("/team:greet Bob"), "{screen}");
    // What went along is not the person's words.
    assert!(!screen.contains("> Greet Bob"), "{screen}");
    tmux.line("/help");
    tmux.sees("/team:greet NAME     Greet somebody");
    tmux.key("C-d");
    tmux.sees("ended with 0");
    let said = world
        .events()
        .into_iter()
        .any(|event| serde_json::to_string(&event).unwrap().contains("Greet Bob for me."));
    assert!(said);
}
