//! Output of commands while they run, in their own words, and a standard output that takes nothing.

use std::{
    fs::{self, File},
    process::Stdio,
};

use serde_json::json;

use crate::{
    line::terminal::Tmux,
    world::{Input, PATIENCE, World, finish, until},
};

#[test]
fn a_full_standard_output_fails_and_a_reader_that_left_is_no_news() {
    let world = World::new();
    let model = world.script(&[json!({"text": "hello"})]);
    let run = ["-p", "hi", "--model", &model];
    for arguments in [&["--version"][..], &["--help"], &["tool", "list"], &run] {
        let mut command = world.haft(arguments);
        command.stdout(File::options().write(true).open("/dev/full").unwrap());
        let ran = finish(command, &Input::Nothing);
        assert_eq!(ran.code, Some(1), "{arguments:?} {ran:?}");
        assert!(ran.err.contains("standard output cannot be written"), "{arguments:?} {ran:?}");

        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = world.haft(arguments);
        command.stdout(Stdio::from(writer));
        let ran = finish(command, &Input::Nothing);
        assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""), "{arguments:?}");
    }
}

#[test]
fn output_is_shown_as_it_comes() {
    let world = World::new();
    let command = "printf 'fir''st\\n'; until [ -e ../go ]; do sleep 0.05; done; printf 'l''ast'";
    let model = world.script(&[
        json!({"calls": [{"name": "bash", "input": {"command": command}}]}),
        json!({"text": "Seen."}),
    ]);
    let tmux = Tmux::talk(&world, &model, "--mode bypass");
    tmux.line("go");
    let screen = tmux.sees("\n  first");
    assert!(!screen.contains("last"), "{screen}");
    fs::write(world.root().join("go"), "").unwrap();
    let screen = tmux.sees("Seen.");
    assert_eq!(screen.matches("\n  first\n  last\n").count(), 1, "{screen}");
    assert_eq!((screen.matches("first").count(), screen.matches("last").count()), (1, 1));
}

#[test]
fn much_output_ends_with_its_end() {
    let shown = much_output(5_000);
    assert!(shown.contains("\n  \u{2026} 4890 earlier lines\n  4991\n"), "{shown}");
    let shown = much_output(100_000);
    assert!(shown.contains("\n  \u{2026} 99890 earlier lines\n  99991\n"), "{shown}");
    let footer = shown.lines().find(|line| line.starts_with("  [bytes 1-")).unwrap();
    let (head, end) = footer.split_once(" and ").unwrap();
    assert!(head.len() < "  [bytes 1-123456".len(), "{footer}");
    let begins = end.strip_suffix("-588895 of 588895 shown; kept at out://c1]").unwrap();
    assert!((570_000..588_000).contains(&begins.parse().unwrap()), "{footer}");
}

/// What is shown of so many lines, of which a hundred come first.
fn much_output(last: u32) -> String {
    let world = World::new();
    let command =
        format!("seq 1 100; until [ -e ../go ]; do sleep 0.05; done; seq 101 {last}; exit 3");
    let model = world.script(&[
        json!({"calls": [{"name": "bash", "input": {"command": command}}]}),
        json!({"text": "Seen."}),
    ]);
    let mut child = world.haft(&["--line", "--mode", "bypass", "--model", &model]);
    child.stdout(File::create(world.root().join("out")).unwrap());
    let shown = || fs::read_to_string(world.root().join("out")).unwrap();
    let go = world.root().join("go");
    let out = world.root().join("out");
    let watch = std::thread::spawn(move || {
        let live = || fs::read_to_string(&out).unwrap().contains("\n  100\n");
        let seen = until(PATIENCE, live);
        fs::write(go, "").unwrap();
        seen
    });
    let ran = finish(child, &Input::Pipe("go\n"));
    assert!(watch.join().unwrap(), "{}", shown());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = shown();
    assert!(shown.contains(&format!("\n  {last}\n  exit code 3")), "{shown}");
    assert!(!shown.contains("\n  4000\n") && shown.lines().count() < 130, "{shown}");
    shown
}

#[test]
fn a_shell_speaks_of_the_command_as_it_was_written() {
    let world = World::new();
    for (command, wanted) in [
        ("if", "bash: line 2: syntax error: unexpected end of file"),
        ("echo hi\n)", "bash: line 2: syntax error near unexpected token `)'\nbash: line 2: `)'"),
        ("no-such-program", "bash: line 1: no-such-program: command not found"),
        ("echo \"a", "bash: line 1: unexpected EOF while looking for matching `\"'"),
    ] {
        let ran = world.tool("bash", &json!({ "command": command }), &["--mode", "bypass"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.out.contains(wanted) && !ran.out.contains("eval"), "{ran:?}");
        assert!(!ran.out.contains("\n\n"), "{ran:?}");
    }
}
