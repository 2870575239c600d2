//! `think`, `sleep`, `brief`, `send_file` and `config` through every face.

use std::{io::Write as _, process::Stdio};

use serde_json::{Value, json};

use super::front_ends::Second;
use crate::{
    mcp_client::Client,
    mock_provider::{Mock, WIRES},
    world::{Input, PATIENCE, Ran, World, collect, ended, example, finish},
};

const ON: &str = "tools.on = ['think', 'sleep', 'brief', 'send_file', 'config']\n";
const TOLD: &str = "The **first** half is done.";

fn world() -> World {
    let world = World::new();
    world.settings(ON);
    world.file("a b.txt", "alpha\n");
    world
}

/// One call of each, in the words of Claude Code where it has some.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("Think", json!({"thought": "Is it the lexer?\nOr the parser?\nNo.\nIt is both."})),
        ("SendUserMessage", json!({"message": TOLD})),
        ("SendUserFile", json!({"file_path": "a b.txt", "caption": "The report"})),
        ("Sleep", json!({"seconds": 0})),
        ("Config", json!({"setting": "terminal.theme"})),
    ]
}

fn model(world: &World) -> String {
    let calls: Vec<Value> =
        calls().iter().map(|(name, input)| json!({"name": name, "input": input})).collect();
    world.script(&[json!({"calls": calls}), json!({"text": "All of it is done."})])
}

#[test]
fn one_call_of_each_succeeds_on_each_wire_and_programs_read_what_was_handed_over() {
    for wire in WIRES {
        let world = world();
        let mock = Mock::new(vec![wire.calls("a", &calls()), wire.text("Done.")]);
        let flags = ["-p", "go", "--output", "json"];
        let ran = finish(wire.haft(&world, &mock.url(), &flags), &Input::Nothing);
        let last = ran.json();
        assert_eq!((ran.code, &last["failed_calls"]), (Some(0), &json!(0)), "{ran:?}");
        assert_eq!(last["messages"], json!([TOLD]));
        let file = &last["files"][0];
        let path = world.work().join("a b.txt");
        assert_eq!((&file["path"], &file["size"]), (&json!(path), &json!(6)), "{last}");
        let sum = world.shell("sha256sum 'a b.txt'").out;
        assert_eq!(file["sha256"].as_str(), sum.split_whitespace().next(), "{last}");
        assert_eq!(file["caption"], "The report");
        assert!(!ran.err.contains("message"), "programs read it: {ran:?}");
        let body = &mock.bodies()[1];
        for told in [
            "Noted. Go on.",
            "The person was told.",
            "Handed to the person: a b.txt",
            "Slept 0",
            "terminal.theme is",
        ] {
            assert!(body.contains(told), "{wire:?}: no {told} in {body}");
        }
        // The log has the thought as a whole.
        let shown = world.run(&["session", "show", &world.only_session()]);
        assert!(shown.out.contains("Is it the lexer?"), "{shown:?}");
    }
}

#[test]
fn people_are_told_while_the_work_goes_on() {
    let world = world();
    let ran = world.run(&["-p", "go", "--model", &model(&world)]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "All of it is done.\n"), "{ran:?}");
    let path = world.work().join("a b.txt");
    let file = format!("haft: file: {} (6 bytes): The report\n", path.display());
    let message = format!("haft: message: {TOLD}\n");
    // The calls run beside each other.
    assert!(ran.err == message.clone() + &file || ran.err == file + &message, "{ran:?}");
    let ran = world.run_with(&["--line", "--model", &model(&world)], &Input::Pipe("go\n"));
    let told = "\nMessage\nThe first half is done.\n";
    assert!(ran.out.contains(told) && !ran.out.contains("* brief"), "{ran:?}");
    assert!(ran.out.contains("a b.txt\n  a b.txt (6 B)\n  The report\n"), "{ran:?}");
    // Folded away: its first line, and how many more.
    assert!(ran.out.contains("Is it the lexer?") && !ran.out.contains("Or the parser?"), "{ran:?}");
    let flags = ["-p", "go", "--model", &model(&world), "--output", "stream-json"];
    let lines = world.run(&flags).lines();
    let result = |tool: &str| {
        lines.iter().find(|line| line["type"] == "call_result" && line["tool"] == tool).cloned()
    };
    assert_eq!(result("brief").unwrap()["data"]["text"], TOLD);
    assert_eq!(result("send_file").unwrap()["data"]["size"], 6);
}

#[test]
fn a_file_is_handed_over_as_it_is_read() {
    let world = world();
    let send =
        |path: &str, flags: &[&str]| world.tool("send_file", &json!({ "path": path }), flags);
    let ran = send("a b.txt", &["--deny", "Read(a b.txt)"]);
    assert!(ran.code == Some(1) && ran.both_outputs().contains("Read(a b.txt)"), "{ran:?}");
    let ran = send("a b.txt", &["--deny", "Read"]);
    assert_eq!(ran.code, Some(2), "a denial of read as a whole takes it away: {ran:?}");
    // What a reading asks about.
    let read = world.tool("read", &json!({"path": "../home/.ssh/id_rsa"}), &[]);
    let other = send("../home/.ssh/id_rsa", &[]);
    assert_eq!((read.code, other.code), (Some(1), Some(1)), "{read:?} {other:?}");
    let reason = |ran: &Ran| ran.err.lines().next().unwrap_or_default().to_owned();
    assert_eq!(reason(&read), reason(&other));
    // The whole output of a call, at its address.
    let calls = [
        json!({"name": "bash", "input": {"command": "seq 100000; touch made"}}),
        json!({"name": "send_file", "input": {"path": "out://c1"}}),
    ];
    let results = world.tool_results(&calls, &["--mode", "bypass"]);
    let text = results[1].to_string();
    assert!(text.contains("out://c1") && text.contains("588895"), "{text}");
}

#[test]
fn where_no_model_is_a_message_says_why_it_does_nothing() {
    let world = world();
    let ran = world.tool("brief", &json!({"text": TOLD}), &[]);
    let why = "no model is at work here";
    assert!(ran.code == Some(1) && ran.both_outputs().contains(why), "{ran:?}");
    let mut client = Client::start(&world, &[]);
    client.greet(&json!({}));
    let listed = client.ask("tools/list", &json!({}))["result"]["tools"].clone();
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(!names.contains(&"brief") && names.contains(&"send_file"), "{names:?}");
    let answer = client.call("send_file", &json!({"path": "a b.txt"}));
    let link = &answer["result"]["content"][1];
    let uri = format!("file://{}", world.work().join("a%20b.txt").display());
    assert_eq!(
        (&link["type"], &link["uri"], &link["name"], &link["size"]),
        (&json!("resource_link"), &json!(uri), &json!("a b.txt"), &json!(6)),
        "{answer}"
    );
    client.ends_well();
}

#[test]
fn the_end_of_a_job_and_a_message_end_a_sleep() {
    let world = world();
    let job = json!({"name": "bash", "input": {"command": "sleep 0.3", "run_in_background": true}});
    let long = json!({"name": "sleep", "input": {"seconds": 3_000}});
    let model = world.script(&[
        json!({"calls": [job]}),
        json!({"calls": [long]}),
        json!({"text": "It has ended."}),
        json!({"calls": [long]}),
        json!({"text": "You came."}),
        json!({"text": "Yes."}),
    ]);
    let mut command = world.program(example("second_front_end"));
    command.args(["--line", "--model", &model, "--mode", "bypass"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let out = collect(child.stdout.take());
    let mut second = Second::connect(&world);
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "go").unwrap();
    let ends = |second: &mut Second| {
        let ended = second.sees(|event| {
            event["type"] == "call_ended" && event["outcome"]["data"].get("woke").is_some()
        });
        ended["outcome"]["data"]["woke"].clone()
    };
    assert_eq!(ends(&mut second), "job");
    second.sees(|event| event["type"] == "turn_ended");
    writeln!(stdin, "again").unwrap();
    second.sees(|event| event["type"] == "call_started" && event["tool"] == "sleep");
    let parts = json!([{"type": "text", "text": "Are you there?"}]);
    second.send(&json!({"command": "say", "parts": parts, "when": "steer"}));
    assert_eq!(ends(&mut second), "message");
    drop(stdin);
    assert!(ended(&mut child, PATIENCE).success());
    drop(out);
}

#[test]
fn only_listed_settings_are_there_and_a_person_allows_each_change() {
    let world = World::new();
    let never = [
        "permissions.allow",
        "permissions",
        "mode",
        "hooks",
        "hooks.PreToolUse",
        "providers",
        "providers.x.address",
        "providers.x.key_variable",
        "config.model_may",
        "sandbox.hosts",
        "secrets.not",
        "shell.let_through",
        "terminal.notify_command",
    ];
    let names = never.map(|name| format!("'{name}'")).join(", ");
    let settings = format!(
        "{ON}# mine\n[config]\nmodel_may = ['terminal.theme', 'read.max_lines', 'nothing', {names}]\n"
    );
    world.settings(&settings);
    let config = |input: Value| {
        let calls = [json!({"name": "config", "input": input})];
        world.script(&[json!({"calls": calls}), json!({"text": "Done."})])
    };
    for name in never.into_iter().chain(["nothing", "terminal.notify", "", "terminal"]) {
        for input in [json!({"get": name}), json!({"set": name, "value": ["x"]})] {
            let ran = world.tool("config", &input, &["--mode", "bypass"]);
            assert_eq!(ran.code, Some(1), "{name}: {ran:?}");
            let told = ran.err.contains(&format!("config.model_may: \"{name}\" does not count"));
            assert_eq!(told, never.contains(&name) || name == "nothing", "{name}: {ran:?}");
        }
    }
    assert_eq!(world.read("../state/settings.toml"), settings, "nothing was changed");
    let dark = json!({"set": "terminal.theme", "value": "dark"});
    let ran = world.tool("config", &dark, &["--mode", "bypass"]);
    assert!(ran.code == Some(1) && ran.both_outputs().contains("nobody is here"), "{ran:?}");
    for (input, lines, wanted) in [
        (json!({"set": "terminal.theme", "value": "pink"}), "go\n", "does not fit"),
        (json!({"set": "read.max_lines", "value": 0}), "go\n", "read.max_lines: 0"),
        (dark.clone(), "go\nn\n", "terminal.theme stays"),
        (dark.clone(), "go\n", "nobody is here"),
    ] {
        let ran = world.run_with(&["--line", "--model", &config(input)], &Input::Pipe(lines));
        assert!(ran.out.contains(wanted), "{wanted}: {ran:?}");
        assert_eq!(world.read("../state/settings.toml"), settings, "nothing was changed");
    }
    let ran = world.run_with(&["--line", "--model", &config(dark)], &Input::Pipe("go\ny\n"));
    for shown in ["Now: \"terminal\"", "Then: \"dark\"", "settings.toml", "from the next start on"]
    {
        assert!(ran.out.contains(shown), "{shown}: {ran:?}");
    }
    let after = world.read("../state/settings.toml");
    assert_eq!(after, format!("{settings}\n[terminal]\ntheme = \"dark\"\n"));
    let ran = world.tool("config", &json!({"get": "terminal.theme"}), &[]);
    assert!(ran.out.contains("terminal.theme is \"dark\" (user settings)"), "{ran:?}");
}

#[test]
fn a_reset_takes_out_what_the_file_of_the_person_sets() {
    let world = World::new();
    world.settings(&format!("{ON}[terminal]\ntheme = \"dark\" # mine\nreduced_motion = true\n"));
    let input = json!({"set": "terminal.theme", "reset": true});
    let calls = [json!({"name": "config", "input": input})];
    let model = world.script(&[json!({"calls": calls}), json!({"text": "Done."})]);
    let ran = world.run_with(&["--line", "--model", &model], &Input::Pipe("go\ny\n"));
    assert!(ran.out.contains("Then: \"terminal\" (the default)"), "{ran:?}");
    let after = world.read("../state/settings.toml");
    assert_eq!(after, format!("{ON}[terminal]\nreduced_motion = true\n"), "{ran:?}");
    let ran = world.tool("config", &json!({"get": "terminal.theme"}), &[]);
    assert!(ran.out.contains("terminal.theme is \"terminal\" (default)"), "{ran:?}");
}

#[test]
fn the_person_behind_a_client_allows_the_change_of_a_setting() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    client.greet(&json!({"elicitation": {}}));
    let file = world.state().join("settings.toml");
    for (id, result, wanted, after) in [
        (1, json!({"action": "decline"}), "terminal.theme stays", ""),
        (
            2,
            json!({"action": "accept", "content": {"answer": "yes"}}),
            "terminal.theme is \"dark\" from the next start on",
            "[terminal]\ntheme = \"dark\"\n",
        ),
    ] {
        client.begin(&json!(id), "config", &json!({"set": "terminal.theme", "value": "dark"}));
        let asked = client.next();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(
            message.contains("Now: \"terminal\"") && message.contains("Then: \"dark\""),
            "{asked}"
        );
        client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string());
        let answer = client.next().to_string();
        assert!(answer.contains(&wanted.replace('"', "\\\"")), "{wanted}: {answer}");
        assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), after);
    }
    client.ends_well();
}
