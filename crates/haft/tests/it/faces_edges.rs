//! The edges of the faces: wrong names, outputs that are gone, what a model can see, who can
//! answer, and output that is shown as it comes.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    mcp::PNG,
    terminal::Tmux,
    wire::{Mock, WIRES, Wire},
    world::{CANARY, Input, World, finish, until},
};

#[test]
fn names_that_nothing_has_are_mistakes_with_the_closest_one() {
    let world = World::new();
    let model = world.script(&[json!({"text": "never"})]);
    for face in [&["-p", "hi"][..], &["--line"], &["tool", "list"], &["mcp"], &["debug", "tools"]] {
        for (flag, value, wanted) in [
            ("--tools", "nosuch", "\"nosuch\". Call one of these tools: read, bash"),
            ("--tools", "read,bahs", "Did you mean bash?"),
            ("--mode", "yolo", "accept-edits"),
            ("--effort", "huge", "medium"),
        ] {
            let mut arguments = face.to_vec();
            arguments.extend(["--model", &model, flag, value]);
            let ran = world.run(&arguments);
            assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?} {ran:?}");
            assert!(ran.err.contains(flag) && ran.err.contains(wanted), "{arguments:?} {ran:?}");
        }
    }
    for face in [&["-p", "hi"][..], &["--line"], &["tool", "list"], &["debug", "tools"]] {
        let ran = world.run(&[face, &["--model", "antropic/x"]].concat());
        assert_eq!(ran.code, Some(2), "{face:?} {ran:?}");
        assert!(ran.err.contains("\"anthropic/x\""), "{ran:?}");
    }
    assert_eq!(world.run(&["session", "list"]).out, "", "a session was begun");
}

#[test]
fn known_names_are_taken_in_any_spelling_of_theirs() {
    let world = World::new();
    let ran = world.run(&["tool", "list", "--tools", " Read,bash, "]);
    let names: Vec<&str> = ran.out.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!((ran.code, names), (Some(0), vec!["read", "bash"]), "{}", ran.err);
    world.settings("tools.off = ['bsh']\nmodels.gpt-5.vision = false");
    let ran = world.run(&["tool", "list"]);
    assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 7), "{ran:?}");
    assert!(ran.err.contains("tools.off") && ran.err.contains("Did you mean bash?"), "{ran:?}");
    assert!(ran.err.contains("did you mean \"openai/gpt-5\"?"), "{ran:?}");
}

#[test]
fn wrong_settings_and_commands_are_mistakes_too() {
    let world = World::new();
    let wrong = |ran: crate::world::Ran, wanted: &str| {
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.err.contains(wanted), "{ran:?}");
    };
    let mut command = world.haft(&["tool", "list"]);
    command.env("HAFT_EFFORT", "huge");
    let wanted = "haft: HAFT_EFFORT: effort: \"huge\" is no effort: use none, low";
    wrong(finish(command, &Input::Nothing), wanted);
    for word in ["tol", "docter"] {
        wrong(world.run(&[word]), &format!("there is no command {word:?}, did you mean"));
    }
    wrong(world.run(&["hello"]), "there is no terminal here");
    world.settings("mode = 'yolo'");
    wrong(world.run(&["tool", "list"]), "settings.toml:1: mode: \"yolo\" is no mode: use ask");
    world.settings("mode = 3");
    wrong(world.run(&["tool", "list"]), "mode: 3 does not fit: ");
}

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

/// The body of the request that follows the call which read a picture.
fn body_after_a_picture(world: &World, wire: Wire, model: &str) -> String {
    let mock = Mock::new(vec![
        wire.calls("see", &[("read", json!({"path": "red.png"}))]),
        wire.text("I looked."),
    ]);
    let mut command = world.haft(&["-p", "look", "--model", model]);
    command.env(wire.key_variable(), CANARY).env(wire.url_variable(), wire.base(&mock.url()));
    let ran = finish(command, &Input::Nothing);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "I looked.\n"), "{ran:?}");
    mock.bodies().pop().unwrap()
}

#[test]
fn a_model_without_vision_gets_a_note_instead_of_an_image() {
    for (name, settings, seen) in [
        ("mock-1", "", true),
        ("mock-1", "models.'WIRE/mock-1'.vision = false", false),
        ("mock-1", "models.'WIRE/mock-2'.vision = false", true),
        ("claude-2.1", "", false),
        ("deepseek-chat", "", false),
        ("deepseek-chat", "models.'WIRE/deepseek-chat'.vision = true", true),
    ] {
        for wire in WIRES {
            let provider = wire.model().split('/').next().unwrap();
            let world = World::new();
            world.file("red.png", PNG);
            world.settings(&settings.replace("WIRE", provider));
            let body = body_after_a_picture(&world, wire, &format!("{provider}/{name}"));
            let picture = body.contains("iVBORw0KGgo");
            let note = body.contains("this model takes no images");
            assert_eq!((picture, note), (seen, !seen), "{wire:?} {name} {settings} {body}");
            assert_eq!(body.contains("bmp) are shown"), seen, "{wire:?} {name} {settings}");
        }
    }
}

#[test]
fn definitions_are_those_of_the_model() {
    let world = World::new();
    world.settings("models.'openai/mine'.vision = false");
    let list = |flags: &[&str]| {
        let ran = world.run(&[&["tool", "list"], flags].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out
    };
    for flags in [&[][..], &["--model", "openai/other"]] {
        assert!(list(flags).contains("Read a file or image"), "{flags:?}");
    }
    for name in ["openai/mine", "anthropic/claude-2", "openai/gpt-3.5-turbo"] {
        assert!(!list(&["--model", name]).contains("image"), "{name}");
        let ran = world.run(&["tool", "spec", "read", "--model", name]);
        let spec: Value = serde_json::from_str(&ran.out).unwrap();
        assert!(spec["description"].as_str().unwrap().contains("cannot be seen"), "{spec}");
    }
}

/// The program with a tool that tells what it was made for.
fn surroundings() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_haft")).with_file_name("examples").join("surroundings")
}

#[test]
fn tools_know_whether_someone_can_answer() {
    for (face, there) in [("-p", "nobody can answer"), ("--line", "someone can answer")] {
        let world = World::new();
        let wire = Wire::OpenAi;
        let mock = Mock::new(vec![wire.text("hello")]);
        let mut command = world.program(surroundings());
        command.args([face, "--model", wire.model()]);
        command.env(wire.key_variable(), CANARY).env(wire.url_variable(), wire.base(&mock.url()));
        let ran = finish(command, &Input::Pipe("hi\n"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let wanted = format!("Made for model \\\"mock-1\\\", which sees images; {there}.");
        assert!(mock.bodies()[0].contains(&wanted), "{face} {:?}", mock.bodies());
    }
    let world = World::new();
    let mut command = world.program(surroundings());
    command.args(["tool", "spec", "surroundings"]);
    let ran = finish(command, &Input::Nothing);
    assert!(ran.out.contains("which sees images; nobody can answer."), "{ran:?}");
    let tmux = Tmux::start(&world);
    tmux.line(&format!("'{}' tool spec surroundings", surroundings().display()));
    tmux.sees("; someone can answer.");
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
    let world = World::new();
    let command = "seq 1 100; until [ -e ../go ]; do sleep 0.05; done; seq 101 5000; exit 3";
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
        let seen = until(Duration::from_secs(30), live);
        fs::write(go, "").unwrap();
        seen
    });
    let ran = finish(child, &Input::Pipe("go\n"));
    assert!(watch.join().unwrap(), "{}", shown());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = shown();
    assert!(
        shown.contains("earlier lines") && shown.contains("\n  5000\n  exit code 3"),
        "{shown}"
    );
    assert!(!shown.contains("\n  4000\n") && shown.lines().count() < 130, "{shown}");
}
