//! What tools are told of where they are used, and so what the model is told of them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{
    line::terminal::Tmux,
    mock_provider::{Mock, Wire},
    world::{CANARY, Input, World, finish},
};

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
        let spec = ran.json();
        assert!(spec["description"].as_str().unwrap().contains("cannot be seen"), "{spec}");
    }
}

#[test]
fn small_models_can_have_the_seven_core_tools_alone() {
    let world = World::new();
    let definitions = |settings: &str| {
        world.settings(settings);
        let ran = world.run(&["debug", "tools"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let (json, bytes) = ran.out.trim_end().rsplit_once('\n').unwrap();
        let tools: Vec<Value> = serde_json::from_str(json).unwrap();
        let names = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        let bytes: usize = bytes.strip_suffix(" bytes").unwrap().parse().unwrap();
        (names, bytes)
    };
    let core = ["read", "bash", "edit", "write", "grep", "find", "ls"];
    let (names, bytes): (Vec<String>, usize) = definitions("tools.profile = 'small'");
    assert_eq!(names, core);
    assert!(bytes <= 10_000, "{bytes} bytes");
    let (names, _) = definitions("tools.profile = 'small'\ntools.on = ['job']");
    assert_eq!((names.len(), names.last().map(String::as_str)), (8, Some("job")));
    let (names, _) = definitions("tools.profile = 'full'");
    assert!(names.len() > core.len() && names.contains(&"tool_search".to_owned()), "{names:?}");
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
