//! What comes before the talk: the question whether a folder is trusted, and the choice of a model.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::json;

use crate::{
    line::terminal::Tmux,
    world::{Input, PATIENCE, World, until},
};

/// What the key is asked for with.
const ASKED: &str = "One key answers. key:";

/// A folder that brings along settings, rules, hooks and a tool, each of which leaves a file when it
/// runs.
fn bringing(world: &World) {
    world.file(
        ".haft/settings.toml",
        "mode = \"plan\"\n[permissions]\nallow = [\"Bash(make *)\"]\n",
    );
    let hook = json!({"hooks": {"SessionStart": [{"hooks": [
        {"type": "command", "command": "# harmless \u{1b}[2J\ntouch hook-ran"}]}]}});
    world.file(".claude/settings.json", hook.to_string());
    let tool = world.file(".haft/tools/deploy", "#!/bin/sh\ntouch tool-ran\nexit 1\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(tool, mode).unwrap();
}

/// Whether anything of the folder was run.
fn ran(world: &World) -> bool {
    ["hook-ran", "tool-ran", ".haft/tools/tool-ran"]
        .iter()
        .any(|name| world.work().join(name).exists())
}

fn asked(tmux: &Tmux) -> usize {
    tmux.screen().matches(ASKED).count()
}

/// Ends a talk, the so-manieth of this terminal.
fn leaves(tmux: &Tmux, count: usize) {
    tmux.key("C-d");
    let ended = || tmux.screen().matches("ended with 0").count() == count;
    assert!(until(PATIENCE, ended), "{}", tmux.screen());
}

#[test]
fn a_folder_that_brings_something_along_is_asked_about() {
    let world = World::new();
    bringing(&world);
    let model = world.script(&[json!({"text": "Hello."})]);
    let tmux = Tmux::start(&world);
    // What was typed before the question stood is no answer.
    tmux.haft(&format!("--model '{model}'"));
    tmux.types("t");
    let screen = tmux.sees(ASKED);
    println!("{screen}");
    for part in [
        ".haft/settings.toml",
        ".claude/settings.json",
        "mode = \"plan\"",
        "allow Bash(make *), without a question",
        "when a talk begins:",
        "\n      touch hook-ran",
        ".haft/tools/deploy",
        "[x] never",
    ] {
        assert!(screen.contains(part), "{part:?}:\n{screen}");
    }
    assert!(!ran(&world) && !world.state().join("trust.json").exists());
    tmux.types("n");
    tmux.sees("a message;");
    assert!(tmux.screen().contains("mode ask") && !ran(&world), "{}", tmux.screen());
    leaves(&tmux, 1);
    // Not now is no answer for good.
    tmux.haft(&format!("--line --model '{model}'"));
    assert!(until(PATIENCE, || asked(&tmux) == 2), "{}", tmux.screen());
    tmux.types("t");
    tmux.sees("mode plan");
    assert!(until(PATIENCE, || world.work().join("hook-ran").exists()));
    assert!(ran(&world));
    leaves(&tmux, 2);
    tmux.haft(&format!("--model '{model}'"));
    tmux.sees("a message;");
    assert_eq!(asked(&tmux), 2, "{}", tmux.screen());
    leaves(&tmux, 3);
    tmux.is_sane(&world);
}

#[test]
fn never_is_never_and_nobody_is_asked_where_nobody_is() {
    let world = World::new();
    bringing(&world);
    let model = world.script(&[json!({"text": "Hello."})]);
    for flags in [&["-p", "hi"][..], &["--line"]] {
        let flags = [flags, &["--model", &model]].concat();
        let ran = world.run_with(&flags, &Input::Pipe("hi\n"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.both_outputs().contains("[x] never"), "{ran:?}");
    }
    assert!(!ran(&world));
    let tmux = Tmux::start(&world);
    tmux.haft(&format!("--model '{model}'"));
    tmux.sees(ASKED);
    tmux.key("C-c");
    tmux.sees("ended with 130");
    assert!(!world.state().join("trust.json").exists());
    tmux.haft(&format!("--model '{model}'"));
    assert!(until(PATIENCE, || asked(&tmux) == 2), "{}", tmux.screen());
    // A paste is no answer, and a key counts again when it was asked for again.
    tmux.paste("t");
    assert!(until(PATIENCE, || asked(&tmux) == 3), "{}", tmux.screen());
    tmux.types("x");
    tmux.sees("a message;");
    leaves(&tmux, 1);
    tmux.haft(&format!("--line --model '{model}'"));
    tmux.sees("mode ask");
    leaves(&tmux, 2);
    assert!(asked(&tmux) == 3 && !ran(&world), "{}", tmux.screen());
    // Nor is it said again what is left out.
    assert!(!tmux.screen().contains("not read"), "{}", tmux.screen());
    let shown = world.run(&["trust", "--show"]);
    assert!(shown.out.contains("is not trusted"), "{shown:?}");
    tmux.is_sane(&world);
}

/// The requests that a server of this machine with two models gets, which the settings name.
fn local(world: &World) -> Arc<Mutex<Vec<String>>> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    world.settings(&format!("# mine\n[providers.mine]\naddress = {address:?}\n"));
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    // It ends with the process of the test.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let request = serve(&stream.unwrap());
            seen.lock().unwrap().push(request);
        }
    });
    requests
}

/// Answers a request; gives its first line.
fn serve(mut stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push(line);
    }
    // A connection that is closed with something unread may lose the answer.
    reader.read_exact(&mut vec![0; length]).unwrap();
    let (kind, body) = if length == 0 {
        let models = json!({"data": [{"id": "small"}, {"id": "large\u{1b}[2J"}]});
        ("application/json", models.to_string())
    } else {
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": "I am small."},
                "finish_reason": "stop"}]});
        ("text/event-stream", format!("data: {chunk}\n\ndata: [DONE]\n\n"))
    };
    let about = format!("content-type: {kind}\r\ncontent-length: {}", body.len());
    let answer = format!("HTTP/1.1 200 OK\r\n{about}\r\nconnection: close\r\n\r\n{body}");
    stream.write_all(answer.as_bytes()).unwrap();
    head.swap_remove(0)
}

#[test]
fn a_model_is_chosen_by_a_key_and_stored() {
    let world = World::new();
    let requests = local(&world);
    let tmux = Tmux::start(&world);
    tmux.haft("");
    let screen = tmux.sees(ASKED);
    println!("{screen}");
    assert!(screen.contains("mine on this machine") && screen.contains("2 models"), "{screen}");
    assert!(screen.contains("[1] mine/small") && screen.contains("[d]"), "{screen}");
    tmux.types("1");
    tmux.sees("from now on?");
    assert!(until(PATIENCE, || asked(&tmux) == 2), "{}", tmux.screen());
    tmux.types("y");
    tmux.sees("a message;");
    tmux.line("who are you?");
    tmux.sees("I am small.");
    tmux.sees("a message;");
    leaves(&tmux, 1);
    let stored = std::fs::read_to_string(world.state().join("settings.toml")).unwrap();
    assert!(stored.contains("# mine") && stored.contains("model = \"mine/small\""), "{stored}");
    tmux.haft("");
    tmux.sees("a message;");
    assert_eq!(asked(&tmux), 2, "{}", tmux.screen());
    leaves(&tmux, 2);
    assert!(requests.lock().unwrap().iter().any(|line| line.starts_with("POST ")));
    tmux.is_sane(&world);
}

#[test]
fn a_key_is_named_and_never_shown_and_the_demo_can_be_seen() {
    const KEY: &str = "sk-never-seen-4471-aa";
    let world = World::new();
    let requests = local(&world);
    let tmux = Tmux::start(&world);
    let file = world.root().join("keys.sh");
    std::fs::write(&file, format!("export OPENAI_API_KEY={KEY} GROQ_API_KEY={KEY}\n")).unwrap();
    tmux.line(". ../keys.sh");
    tmux.haft("--line");
    let screen = tmux.sees(ASKED);
    assert!(screen.contains("a key for openai: OPENAI_API_KEY"), "{screen}");
    assert!(screen.contains("[3] a model of openai"), "{screen}");
    tmux.types("3");
    tmux.sees("its name: openai/");
    tmux.line("");
    assert!(until(PATIENCE, || asked(&tmux) == 2), "{}", tmux.screen());
    tmux.types("d");
    tmux.sees("the edit mended it");
    assert!(until(PATIENCE, || asked(&tmux) == 3), "{}", tmux.screen());
    tmux.types("o");
    tmux.sees("its name: ");
    tmux.line("nonsense");
    tmux.sees("! ");
    assert!(until(PATIENCE, || asked(&tmux) == 4), "{}", tmux.screen());
    tmux.types("3");
    assert!(until(PATIENCE, || tmux.screen().matches("its name: openai/").count() == 2));
    tmux.line("some-model");
    tmux.sees("from now on?");
    assert!(until(PATIENCE, || asked(&tmux) == 5), "{}", tmux.screen());
    tmux.types("n");
    tmux.sees("openai/some-model \u{b7} mode ask");
    let screen = tmux.screen();
    assert!(!screen.contains(KEY), "{screen}");
    let stored = std::fs::read_to_string(world.state().join("settings.toml")).unwrap();
    assert!(!stored.contains("model ="), "{stored}");
    leaves(&tmux, 1);
    // Nobody but the server of this machine was asked for anything.
    assert!(requests.lock().unwrap().iter().all(|line| line.starts_with("GET ")));
}

#[test]
fn where_nothing_is_found_the_ways_are_named() {
    let world = World::new();
    let tmux = Tmux::start(&world);
    for (count, flags) in [(1, ""), (2, "--line")] {
        tmux.haft(flags);
        let ended = || tmux.screen().matches("ended with 2").count() == count;
        assert!(until(PATIENCE, ended), "{}", tmux.screen());
    }
    let screen = tmux.screen();
    println!("{screen}");
    for way in ["ANTHROPIC_API_KEY", "ollama", "haft demo"] {
        assert_eq!(screen.matches(way).count(), 2, "{way}:\n{screen}");
    }
    tmux.is_sane(&world);
}

#[test]
fn a_session_that_goes_on_has_its_model() {
    let world = World::new();
    let model = world.script(&[json!({"text": "Hello."}), json!({"text": "Again."})]);
    let tmux = Tmux::start(&world);
    tmux.haft(&format!("--model '{model}'"));
    tmux.sees("a message;");
    tmux.line("hi");
    tmux.sees("Hello.");
    tmux.sees("a message;");
    leaves(&tmux, 1);
    tmux.haft("-c");
    tmux.sees("going on with session");
    tmux.line("and now");
    tmux.sees("Again.");
    leaves(&tmux, 2);
}

/// In the home folder what haft keeps there is the person's own.
#[test]
fn the_persons_own_folder_is_not_asked_about() {
    let world = World::new();
    world.file(".haft/settings.toml", "mode = \"plan\"\n");
    let model = world.script(&[json!({"text": "Hello."})]);
    let tmux = Tmux::start(&world);
    tmux.line("export HAFT_HOME=$PWD/.haft");
    tmux.haft(&format!("--model '{model}'"));
    tmux.sees("a message;");
    let screen = tmux.screen();
    assert!(!screen.contains("[x] never") && !screen.contains("not read"), "{screen}");
    assert!(screen.contains("mode plan"), "{screen}");
    leaves(&tmux, 1);
}

#[test]
fn plain_lines_are_drawn_for_a_reader_and_a_notice_runs_a_program() {
    let world = World::new();
    let model = world.script(&[json!({"text": "Hello."})]);
    world.settings("[terminal]\nreader = true\n");
    let tmux = Tmux::start(&world);
    tmux.haft(&format!("--model '{model}'"));
    tmux.sees("mode ask");
    assert!(!tmux.screen().contains("a message;"), "{}", tmux.screen());
    leaves(&tmux, 1);
    world.settings(
        "[terminal]\nnotify_command = [\"sh\", \"-c\", \"printf '%s' \\\"$1\\\" > told\", \"sh\"]\n",
    );
    tmux.haft(&format!("--model '{model}'"));
    tmux.sees("a message;");
    // The terminal tells that another window is in front.
    tmux.types("\u{1b}[O");
    tmux.line("hi");
    tmux.sees("Hello.");
    let told = || std::fs::read_to_string(world.work().join("told")).unwrap_or_default();
    assert!(until(PATIENCE, || told() == "haft is done"), "{}", tmux.screen());
    leaves(&tmux, 2);
}

/// A hook at the start that lasts until the file `go` is there, and says so.
fn waiting_hook(world: &World) {
    let go = world.work().join("go").display().to_string();
    let command = format!("until test -e {go}; do sleep 0.05; done; echo the hook has ended");
    world.settings(&format!(
        "[[hooks.SessionStart]]\n[[hooks.SessionStart.hooks]]\ntype = \"command\"\ncommand = {command:?}\n"
    ));
}

#[test]
fn keys_are_taken_while_a_hook_of_the_start_still_runs() {
    let world = World::new();
    waiting_hook(&world);
    let model = world.script(&[json!({"text": "I heard it."})]);
    let tmux = Tmux::start(&world);
    tmux.haft(&format!("--model '{model}'"));
    tmux.sees("a message;");
    tmux.types("hello there");
    tmux.sees("> hello there");
    tmux.key("Enter");
    tmux.sees("  waits: hello there");
    // What waits can be taken back.
    tmux.key("Up");
    tmux.sees("> hello there");
    assert!(until(PATIENCE, || !tmux.visible().contains("waits:")), "{}", tmux.visible());
    tmux.key("Enter");
    tmux.sees("  waits: hello there");
    world.file("go", "");
    tmux.sees("I heard it.");
    assert!(!tmux.visible().contains("waits:"), "{}", tmux.visible());
    let told = world.events().into_iter().filter_map(|event| match event.body {
        haft_types::Body::User { from, .. } => Some(format!("{from:?}")),
        _ => None,
    });
    let told = told.collect::<Vec<_>>().join(" ");
    assert!(told.starts_with("Hook(\"SessionStart\") Person"), "{told}");
    tmux.sees("a message;");
    leaves(&tmux, 1);
}

#[test]
fn who_leaves_waits_for_no_hook_of_the_start() {
    let world = World::new();
    waiting_hook(&world);
    let model = world.script(&[json!({"text": "Hello."})]);
    let tmux = Tmux::start(&world);
    tmux.haft(&format!("--model '{model}'"));
    tmux.sees("a message;");
    leaves(&tmux, 1);
    tmux.is_sane(&world);
}

#[test]
fn nothing_is_begun_for_who_leaves_before_the_start_is_over() {
    let world = World::new();
    waiting_hook(&world);
    let model = world.script(&[json!({"text": "Hello."})]);
    let tmux = Tmux::start(&world);
    tmux.haft(&format!("--model '{model}'"));
    tmux.sees("a message;");
    tmux.line("hello there");
    tmux.sees("  waits: hello there");
    leaves(&tmux, 1);
    assert!(!tmux.screen().contains("Hello."), "{}", tmux.screen());
    let begun = |body| matches!(body, haft_types::Body::User { .. });
    assert!(!world.events().into_iter().any(|event| begun(event.body)));
}
