//! `/undo` and `/redo` of line mode.

use haft_types::{AgentPath, Body, Message, Part};
use serde_json::{Value, json};

use super::terminal::Tmux;
use crate::world::{Input, PATIENCE, Ran, World, until};

fn edit(old: &str, new: &str) -> Value {
    json!({"name": "edit", "input": {"path": "a.txt", "edits": [
        {"old_text": old, "new_text": new}]}})
}

fn bash(command: &str) -> Value {
    json!({"name": "bash", "input": {"command": command}})
}

/// A talk whose first turn makes the calls, and whose other turns are only words.
fn talk(world: &World, calls: &[Value], lines: &str) -> Ran {
    world.file("a.txt", "alpha\nbeta\n");
    let model = world.script(&[
        json!({"calls": calls}),
        json!({"text": "First."}),
        json!({"text": "Second."}),
    ]);
    let ran = world.run_with(
        &["--line", "--mode", "bypass", "--model", &model],
        &Input::Pipe(&format!("go\n{lines}/quit\n")),
    );
    assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{ran:?}");
    ran
}

/// What is said behind the first answer, and behind what is told of the checks of its turn.
fn behind(ran: &Ran) -> &str {
    let behind = ran.out.split_once("First.\n").unwrap_or_else(|| panic!("{ran:?}")).1;
    match behind.split_once('\n') {
        Some((first, rest)) if first.starts_with("- no evidence") => rest.trim_start(),
        _ => behind.trim_start(),
    }
}

/// What the model has got to read as the words of a user, in order.
fn told(world: &World) -> Vec<String> {
    let events = world.events();
    let leaf = events.iter().filter_map(|event| event.id).max().unwrap();
    let messages = haft_session::conversation(&events, leaf, &AgentPath::default());
    let text = |part: &Part| match part {
        Part::Text { text } => Some(text.clone()),
        _ => None,
    };
    let texts = messages.iter().filter_map(|message| match message {
        Message::User { parts, .. } => Some(parts.iter().filter_map(text).collect::<String>()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn a_change_is_taken_back_and_made_again_and_the_model_is_told() {
    let world = World::new();
    let ran = talk(&world, &[edit("alpha", "gamma"), edit("beta", "delta")], "/undo\nand now?\n");
    let shown = behind(&ran);
    assert!(shown.starts_with("Took back c2 (edit: Editing a.txt)\n  changed a.txt\n"), "{ran:?}");
    assert!(shown.contains("> and now?\n") && shown.contains("Second."), "{ran:?}");
    assert_eq!(world.read("a.txt"), "gamma\nbeta\n");
    let told = told(&world);
    let about = "Changes were taken back, by the person's wish: c2.";
    assert!(told[0] == "go" && told[1].starts_with(about) && told[2] == "and now?", "{told:?}");

    // The shell goes on where the talk left off, and the other way round.
    assert_eq!(world.run(&["undo"]).code, Some(0));
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n");
    let model = world.script(&[]);
    let flags = ["--line", "-c", "--model", &model];
    let ran = world.run_with(&flags, &Input::Pipe("/redo 2\n/redo\n/undo\n/quit\n"));
    assert!(ran.out.contains("Made again c1") && ran.out.contains("Made again c2"), "{ran:?}");
    assert!(ran.out.contains("! nothing was taken back that could be made again\n"), "{ran:?}");
    assert!(ran.out.contains("Took back c2"), "{ran:?}");
    assert_eq!(world.read("a.txt"), "gamma\nbeta\n");
}

#[test]
fn a_folder_that_stays_is_told() {
    let world = World::new();
    world.file(".gitignore", "*.o\n");
    let ran = talk(&world, &[bash("mkdir build; find build -exec touch {}/x.o \\;")], "/undo\n");
    let shown = behind(&ran);
    let told = "! build/ stays: it holds x.o, of which undo knows nothing\n";
    assert!(shown.contains(told) && !shown.contains("already as it was"), "{ran:?}");
}

#[test]
fn several_changes_or_a_whole_turn_go_together() {
    let calls = [edit("alpha", "gamma"), edit("beta", "delta")];
    for line in ["/undo 2\n", "/undo --turn\n", "/undo c1 --turn\n"] {
        let world = World::new();
        let ran = talk(&world, &calls, line);
        assert!(behind(&ran).starts_with("Took back c2"), "{line}: {ran:?}");
        assert!(behind(&ran).contains("\nTook back c1"), "{line}: {ran:?}");
        assert_eq!(world.read("a.txt"), "alpha\nbeta\n", "{line}");
        let undone = world.events().into_iter().filter(|e| matches!(e.body, Body::Undone { .. }));
        assert_eq!(undone.count(), 1, "{line}");
    }
}

#[test]
fn a_whole_turn_that_was_taken_back_in_pieces_is_made_again() {
    let calls = [edit("alpha", "gamma"), edit("beta", "delta"), edit("delta", "eta")];
    let pieces = "/undo\n/undo 2\n";
    for (line, made) in [
        ("/redo --turn\n", "gamma\neta\n"),
        ("/redo c3 --turn\n", "gamma\neta\n"),
        ("/redo 3\n", "gamma\neta\n"),
        ("/redo 2\n", "gamma\ndelta\n"),
        ("/redo\n", "gamma\ndelta\n"),
        ("/redo c1\n", "gamma\nbeta\n"),
    ] {
        let world = World::new();
        let ran = talk(&world, &calls, &format!("{pieces}{line}"));
        assert_eq!(world.read("a.txt"), made, "{line}: {ran:?}");
        assert!(!ran.out.contains("only "), "{line}: {ran:?}");
    }
    let world = World::new();
    talk(&world, &calls, pieces);
    let ran = world.run(&["redo", "--turn"]);
    assert!(ran.code == Some(0) && ran.err.is_empty(), "{ran:?}");
    assert_eq!(world.read("a.txt"), "gamma\neta\n");
    assert_eq!(world.run(&["undo", "--turn"]).code, Some(0));
    let ran = world.run(&["redo", "2", "--turn"]);
    assert!(ran.err.contains("only 1 of 2 turns was taken back"), "{ran:?}");
    assert_eq!(world.read("a.txt"), "gamma\neta\n");
}

#[test]
fn what_somebody_changed_since_is_shown_and_replaced_by_force_alone() {
    let calls = [edit("alpha", "gamma"), bash("echo mine > a.txt")];
    // What a command did that was not looked for is nobody's.
    let world = || {
        let world = World::new();
        world.settings("[shell.changes]\non = false\n");
        world
    };
    let (new, world) = (world, world());
    let ran = talk(&world, &calls, "/undo\n");
    let shown = behind(&ran);
    for words in [
        "! a.txt was changed since by someone else\n",
        "\n-mine\n",
        "\n+alpha\n",
        "! nothing was changed; to replace what is there (it is kept): /undo c1 --force\n",
    ] {
        assert!(shown.contains(words), "{words:?} is not in {shown}");
    }
    assert_eq!(world.read("a.txt"), "mine\n");
    let world = new();
    talk(&world, &calls, "/undo c1 --force\n");
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n");
    let world = new();
    talk(&world, &calls, "/undo --force\n/redo\n");
    assert_eq!(world.read("a.txt"), "mine\n", "what was there is not lost");
}

#[test]
fn what_cannot_be_taken_back_says_why() {
    let world = World::new();
    let lines = "/undo x\n/undo 0\n/undo 99999999999999999999\n/undo c7\n/undo 1 2\n/undo --session y\n/redo --json\n/redo\n\
                 /undo --help\n/undo\n/undo\n";
    let ran = talk(&world, &[edit("alpha", "gamma")], lines);
    let mut rest = behind(&ran);
    for words in [
        "! \"x\" is neither a count of changes nor the id of a call or job, such as c12 or j1\n",
        "! 0 is no count of changes: give 1 or more\n",
        "! 99999999999999999999 is too large for a count of changes: give fewer, or the id of a call\n",
        "! no call c7 changed a file; what stands: c1 (edit",
        "! unexpected argument '2' found",
        "Usage: /undo [OPTIONS] [N or CALL]",
        "! unexpected argument '--session' found",
        "! unexpected argument '--json' found",
        "Usage: /redo [OPTIONS] [N or CALL]",
        "! nothing was taken back that could be made again\n",
        "Take back what haft changed in files in this session\n",
        "--force",
        "Took back c1",
        "! no change is there to take back\n",
    ] {
        let Some((_, behind)) = rest.split_once(words) else {
            panic!("{words:?} is not there any more in {rest}\nof {}", ran.out)
        };
        rest = behind;
    }
    assert!(!ran.out.contains("! Take back"), "help is no mistake: {}", ran.out);
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n");
}

#[test]
fn a_deny_rule_holds_for_what_is_taken_back() {
    let world = World::new();
    talk(&world, &[edit("alpha", "gamma")], "");
    let model = world.script(&[]);
    let flags = ["--line", "-c", "--model", &model, "--deny", "Edit(a.txt)"];
    let ran = world.run_with(&flags, &Input::Pipe("/undo\n/quit\n"));
    assert!(ran.out.contains("must not be changed"), "{ran:?}");
    assert_eq!(world.read("a.txt"), "gamma\nbeta\n");
}

#[test]
fn in_a_terminal_nothing_is_taken_back_while_haft_is_at_work() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    world.file("wait.sh", "touch begun; until [ -e go ]; do sleep 0.02; done");
    let model = world.script(&[
        json!({"calls": [edit("alpha", "gamma")]}),
        json!({"calls": [bash("sh wait.sh")]}),
        json!({"text": "First answer."}),
    ]);
    let tmux = Tmux::talk(&world, &model, "--mode bypass");
    tmux.line("go on");
    assert!(until(PATIENCE, || world.work().join("begun").exists()));
    tmux.line("/undo");
    tmux.sees("! haft is at work: stop it with Ctrl-C first");
    assert_eq!(world.read("a.txt"), "gamma\n");
    world.file("go", "");
    tmux.sees("First answer.");
    let prompts = || tmux.screen().trim_end().ends_with("\n>");
    assert!(until(PATIENCE, prompts), "{}", tmux.screen());
    // What the command made is its own change.
    tmux.line("/undo");
    tmux.sees("Took back c2");
    tmux.line("/undo");
    tmux.sees("Took back c1");
    tmux.sees("changed a.txt");
    assert_eq!(world.read("a.txt"), "alpha\n");
    tmux.line("/quit");
    tmux.sees("ended with 0");
    tmux.is_sane(&world);
}
