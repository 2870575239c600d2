//! What the person forbids in a message holds once it is taken: through resume, compaction and
//! every face, with the person's own words.

use std::fmt::Write as _;

use haft_types::{Body, Event};
use serde_json::{Value, json};

use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, Ran, World, finish, text},
};

/// How the system prompt of a request for a summary begins.
const SUMMARY: &str = "You sum up the work of a coding agent";

fn write(path: &str) -> Value {
    json!({"path": path, "content": "new\n"})
}

/// Writes outside and inside, again at each message.
fn writer(wire: Wire) -> Mock {
    Mock::with(move |number, _| match number % 3 {
        0 => wire.calls(&format!("a{number}"), &[("write", write("src/a.txt"))]),
        1 => wire.calls(&format!("b{number}"), &[("write", write("tests/a.txt"))]),
        _ => wire.text("Done."),
    })
}

fn world() -> World {
    let world = World::new();
    world.file("src/a.txt", "old\n");
    world.file("tests/b.txt", "old\n");
    world
}

fn run(world: &World, wire: Wire, mock: &Mock, arguments: &[&str]) -> Ran {
    let ran = finish(wire.haft(world, &mock.url(), arguments), &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

/// The refusals of a log, as the model reads them.
fn refusals(events: &[Event]) -> Vec<String> {
    let ended = events.iter().filter_map(|event| match &event.body {
        Body::CallEnded { outcome, .. } => Some(outcome.joined_text()),
        _ => None,
    });
    ended.filter(|text| text.contains("the deny rule")).collect()
}

#[test]
fn a_prompt_holds_print_mode_where_it_is_to_on_each_wire() {
    for wire in WIRES {
        let (world, mock) = (world(), writer(wire));
        let prompt = "Mend it, but only touch tests/.";
        let flags = ["-p", prompt, "--mode", "bypass", "--constraints", "apply"];
        let ran = run(&world, wire, &mock, &flags);
        let said = "holds for this session: deny Edit(not ./tests/) (you said: \"Mend it, but only \
                    touch tests/.\")";
        assert!(ran.err.contains(said), "{ran:?}");
        // Another process goes on, and is held by what the log has.
        run(&world, wire, &mock, &["-p", "go on", "-c", "--mode", "bypass"]);
        assert_eq!(
            (world.read("src/a.txt"), world.read("tests/a.txt")),
            ("old\n".into(), "new\n".into())
        );
        let refusals = refusals(&world.events());
        assert_eq!(refusals.len(), 2, "{wire:?}: {refusals:?}");
        for refusal in &refusals {
            let quoted = "the person said: \"Mend it, but only touch tests/.\"";
            assert!(
                refusal.contains("Edit(not ./tests/)") && refusal.contains(quoted),
                "{refusal}"
            );
        }
        // Without the flag nothing is said, and nothing held.
        let (world, mock) = (self::world(), writer(wire));
        let ran = run(&world, wire, &mock, &flags[..4]);
        assert!(!ran.err.contains("holds"), "{ran:?}");
        assert_eq!(world.read("src/a.txt"), "new\n");
    }
}

#[test]
fn it_stands_after_five_compactions_and_is_attached_word_for_word() {
    for wire in WIRES {
        let world = world();
        for number in 0..6 {
            let line = format!("file {number}, a line of some length to fill the window with\n");
            world.file(&format!("big{number}.txt"), line.repeat(40_000 / line.len()));
        }
        let model = wire.model();
        world.settings(&format!("[models.\"{model}\"]\ncontext = 80000\n"));
        let mock = Mock::with(move |number, request| {
            let body = String::from_utf8_lossy(&request.body);
            if body.contains(SUMMARY) {
                return wire.text("Goal: to read files.");
            }
            // The first message only forbids.
            let Some(at) = body.rfind("xread ").max(body.rfind("xwrite")) else {
                return wire.text("Yes.");
            };
            let (last, what) = (&body[at..], "big");
            if last.contains(wire.result_id()) {
                return wire.text("Yes.");
            }
            match last.strip_prefix("xread ").and_then(|rest| rest.get(..1)) {
                Some(file) => {
                    let path = format!("{what}{file}.txt");
                    wire.calls(&format!("r{number}"), &[("read", json!({"path": path}))])
                }
                None => wire.calls(&format!("w{number}"), &[("write", write("src/a.txt"))]),
            }
        });
        let mut lines = "Please only touch tests/!\n/permissions take\n".to_owned();
        for number in 0..5 {
            writeln!(lines, "xread {number}\n/compact").unwrap();
        }
        let command = wire.haft(&world, &mock.url(), &["--line", "--mode", "bypass"]);
        let ran = finish(command, &Input::Pipe(&lines));
        let compacted = |events: &[Event]| {
            events.iter().filter(|event| matches!(event.body, Body::Compacted { .. })).count()
        };
        assert_eq!(compacted(&world.events()), 5, "{wire:?}: {ran:?}");
        run(&world, wire, &mock, &["-p", "xwrite", "-c", "--mode", "bypass"]);
        assert_eq!(world.read("src/a.txt"), "old\n");
        let refusals = refusals(&world.events());
        let quoted = "the person said: \"Please only touch tests/!\"";
        assert!(refusals.len() == 1 && refusals[0].contains(quoted), "{wire:?}: {refusals:?}");
        let last = mock.bodies().pop().unwrap();
        let attached = "\\\"Please only touch tests/!\\\": deny Edit(not ./tests/)";
        assert_eq!(last.matches(attached).count(), 1, "{wire:?}: {last}");
    }
}

#[test]
fn line_mode_offers_takes_lists_and_drops() {
    let world = world();
    let call = |path: &str| json!({"calls": [{"name": "write", "input": write(path)}]});
    let model = world.script(&[
        json!({"text": "One."}),
        call("src/a.txt"),
        json!({"text": "Two."}),
        call("src/a.txt"),
        json!({"text": "Three."}),
    ]);
    let flags = ["--line", "--model", &model, "--mode", "bypass"];
    let lines = "/permissions take\nno commits, please\nonly touch tests/\n/permissions\n\
                 /permissions take\nwrite\n/permissions\n/permissions drop 3\n/permissions drop 1\n\
                 write again\n/permissions\n";
    let ran = finish(world.haft(&flags), &Input::Pipe(lines));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for told in [
        "! your last message offers nothing",
        "- /permissions take makes it hold: deny Bash(git commit *), Bash(git merge *)",
        "\"no commits, please\"; what programs run inside is not held)",
        "- /permissions take makes it hold: deny Edit(not ./tests/) (you said: \"only touch tests/\")",
        "offered: deny Edit(not ./tests/)",
        "holds from now on: deny Edit(not ./tests/)",
        " 1  deny Edit(not ./tests/) (you said: \"only touch tests/\"); /permissions drop 1 ends that",
        "! there is no number 3: 1 to 1 hold",
        "holds no more: deny Edit(not ./tests/)",
    ] {
        let joined = ran.out.replace('\n', " ");
        assert!(joined.contains(told) || ran.out.contains(told), "{told}: {}", ran.out);
    }
    // Only what was taken held, and only until it was dropped.
    assert_eq!(refusals(&world.events()).len(), 1, "{ran:?}");
    assert_eq!(world.read("src/a.txt"), "new\n");
}

#[test]
fn it_goes_with_the_branch() {
    let world = world();
    let call = json!({"calls": [{"name": "write", "input": write("src/a.txt")}]});
    let done = json!({"text": "Done."});
    let model = world.script(&[done.clone(), call.clone(), done.clone(), call, done]);
    let flags = ["--line", "--model", &model, "--mode", "bypass"];
    let lines = "only touch tests/\n/permissions take\nwrite\n/rewind 2 talk\nwrite\n/rewind back\n\
                 /permissions\n";
    let ran = finish(world.haft(&flags), &Input::Pipe(lines));
    assert_eq!((ran.code, world.read("src/a.txt").as_str()), (Some(0), "new\n"), "{ran:?}");
    assert!(ran.out.contains(" 1  deny Edit(not ./tests/)"), "{ran:?}");
    let again = finish(world.haft(&[&flags[..], &["-c"]].concat()), &Input::Pipe("/permissions\n"));
    assert!(again.out.contains(" 1  deny Edit(not ./tests/)"), "{again:?}");
}

/// In a user namespace without any more of them commands are held at level L.
const LOWER: &str =
    "for n in user mnt pid net ipc uts; do echo 0 > /proc/sys/user/max_${n}_namespaces; done";

#[test]
fn real_commands_write_only_what_is_left_free_at_each_level() {
    let rule = "Edit(not {./tests/,./only.txt})";
    let code = "import os\ndef tried(path):\n    try:\n        open(path, 'w').write('x')\n        \
                print('wrote', path)\n    except OSError:\n        print('held', path)\n\
                for path in ['src/a.txt', 'new.txt', '../out.txt', 'tests/new.txt', 'only.txt',\n             \
                os.environ.get('TMPDIR', '/tmp') + '/haft-free']:\n    tried(path)\n";
    let mut tried = 0;
    for (level, begins) in [("level N", ""), ("level L", LOWER)] {
        for mode in ["bypass", "auto"] {
            let world = world();
            world.file("only.txt", "old\n");
            world.file("try.py", code);
            let haft = |arguments: &str| {
                let script = format!("{begins}\n'{}' {arguments}", env!("CARGO_BIN_EXE_haft"));
                let mut command = world.program(if begins.is_empty() { "sh" } else { "unshare" });
                command.args(if begins.is_empty() { &[][..] } else { &["-Ur", "sh"] });
                command.args(["-c", &script]);
                finish(command, &Input::Nothing)
            };
            if !haft("doctor").out.contains(&format!("of mode auto run at {level}")) {
                eprintln!("not tried: {level}");
                continue;
            }
            tried += 1;
            let input = json!({"command": "python3 try.py"});
            let ran = haft(&format!("tool bash --mode {mode} --deny '{rule}' --input '{input}'"));
            for line in [
                "held src/a.txt",
                "held new.txt",
                "held ../out.txt",
                "wrote tests/new.txt",
                "wrote only.txt",
            ] {
                assert!(ran.out.contains(line), "{level} {mode}: no {line} in {ran:?}");
            }
            assert!(ran.out.contains("/haft-free") && !ran.out.contains("held /"), "{ran:?}");
            assert_eq!(world.read("src/a.txt"), "old\n");
            assert!(!world.work().join("new.txt").exists());
        }
    }
    assert!(tried > 0, "no level holds here");
}

#[test]
fn a_session_tells_the_model_why_and_an_unsandboxed_command_is_denied() {
    let world = world();
    let input = json!({"command": "python3 -c 'print(1)'", "unsandboxed": true});
    let told = world.tool_results(
        &[json!({"name": "bash", "input": input})],
        &["--mode", "auto", "--deny", "Edit(not ./tests/)"],
    );
    let said: String = told.iter().map(text).collect();
    assert!(said.contains("forbids to run outside the sandbox"), "{said}");
}
