//! Settings of persons, projects, runs and whoever runs the machine: each does what it says, and a
//! wrong one is named with its place.

use std::fs;

use haft_types::Hash;
use serde_json::{Value, json};

use crate::{
    mcp_client::side_by_side,
    world::{Input, Ran, World, finish},
};

#[test]
fn settings_of_tools_count() {
    let world = World::new();
    let lines: Vec<String> = (1..=3_000).map(|n| format!("line {n}")).collect();
    world.file("a.txt", lines.join("\n"));
    let read = || world.tool("read", &json!({"path": "a.txt"}), &["--json"]).json();
    assert_eq!(read()["data"]["lines"], 2_000);
    world.settings(
        "[read]\nmax_lines = 7\n[shell]\ntimeout_ms = 1000\n[limits]\noutput_bytes = 65536",
    );
    assert_eq!(read()["data"]["lines"], 7);
    let spec = world.run(&["tool", "spec", "read"]).out;
    assert!(spec.contains("7 lines unless limit") && !spec.contains("2,000 lines"), "{spec}");
    let spec = world.run(&["tool", "spec", "bash"]).out;
    assert!(spec.contains("after 1 s, or timeout_ms"), "{spec}");

    let bash = |command: &str| {
        let flags = ["--mode", "bypass", "--json"];
        world.tool("bash", &json!({"command": command}), &flags).json()
    };
    assert_eq!(bash("sleep 60")["status"], "timed_out");
    // Every kept byte is one of the first or last 32 KiB.
    let kept = bash("seq 1 200000");
    let address = kept["data"]["output_path"].as_str().unwrap_or_else(|| panic!("{kept}"));
    let call = address.strip_prefix("out://").unwrap_or_else(|| panic!("{kept}"));
    let folder = world.state().join("sessions").join(kept["session"].as_str().unwrap());
    let size = fs::metadata(folder.join("out").join(call)).unwrap().len();
    assert!((60_000..70_000).contains(&size), "{size} bytes are kept");

    world.settings("[read]\nmax_bytes = 1024");
    let page = read();
    let shown = page["content"][0]["text"].as_str().unwrap();
    assert!(shown.len() < 1_300 && page["data"]["truncated"] == true, "{page}");
}

#[test]
fn what_does_nothing_is_no_setting() {
    let world = World::new();
    world.settings("sicrets.names = ['A']\nshell.stay = ['b']");
    let ran = world.run(&["tool", "list"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("sicrets") && ran.err.contains("shell.stay"), "{ran:?}");
}

#[test]
fn limits_of_a_run_come_from_the_settings_too() {
    let call = json!({"name": "ls", "input": {}});
    let answer = json!({"calls": [call], "usage": {"input": 1_000, "output": 10}});
    let run = |settings: &str, answers: &[Value], flags: &[&str]| {
        let world = World::new();
        world.settings(settings);
        let model = world.script(answers);
        let base = ["-p", "go", "--model", &model, "--output", "json"];
        let ran = world.run(&[&base[..], flags].concat());
        let result = ran.json();
        (result["status"].clone(), result["steps"].clone(), ran.err)
    };
    let three = [answer.clone(), answer.clone(), json!({"text": "Done."})];
    assert_eq!(run("", &three, &[]).0, "done");
    // Only what the model writes counts, not what it reads.
    assert_eq!(run("run.max_tokens = 100", &three, &[]).0, "done");
    let (status, steps, err) = run("run.max_tokens = 10", &three, &[]);
    assert_eq!((status, steps), (json!("limit"), json!(1)), "{err}");
    assert_eq!(run("run.max_tokens = 10", &three, &["--max-tokens", "1000"]).0, "done");
    assert_eq!(run("run.max_steps = 2", &three, &[]).1, 2);
    let late = [json!({"text": "late", "delay_ms": 50_000})];
    let (status, _, err) = run("run.max_time = 1", &late, &[]);
    assert_eq!(status, "limit");
    assert!(err.contains("the limit of 1 s"), "{err}");
}

#[test]
fn managed_settings_stand_over_those_of_persons() {
    let world = World::new();
    world.settings("tools.off = []");
    let managed = world.root().join("etc/haft");
    fs::create_dir_all(&managed).unwrap();
    fs::write(managed.join("settings.toml"), "tools.off = ['bash']").unwrap();
    let etc = world.root().join("etc").display().to_string();
    let mount = format!("mount --bind '{etc}' /etc");
    let Some(ran) = world.mounted(&mount, "tool list", &[]) else { return };
    assert_eq!((ran.code, ran.out.contains("bash ")), (Some(0), false), "{ran:?}");
    assert!(world.run(&["tool", "list"]).out.contains("bash "));
}

#[test]
fn whoever_runs_the_machine_forbids_mode_bypass() {
    let world = World::new();
    let managed = world.root().join("etc/claude-code");
    fs::create_dir_all(&managed).unwrap();
    let text = "{\"permissions\":\n{\"disableBypassPermissionsMode\": \"disable\"}}";
    fs::write(managed.join("managed-settings.json"), text).unwrap();
    let etc = world.root().join("etc").display().to_string();
    let mount = format!("mount --bind '{etc}' /etc");
    let Some(ran) = world.mounted(&mount, "tool list --mode bypass", &[]) else { return };
    let wanted = "managed-settings.json:2: mode: mode bypass of the command line";
    assert!(ran.code == Some(2) && ran.err.contains(wanted), "{ran:?}");
    let ran = world.mounted(&mount, "tool list --mode auto", &[]).unwrap();
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn names_and_hosts_that_mean_nothing_are_named_with_their_line() {
    let world = World::new();
    world.settings(
        "[tools]\noff = ['bsh']\n[sandbox]\nhosts = [\n'*',\n'example.org']\n[permissions]\nrestricted = [\n\
         'mkfs',\n'Bash(rm;ls)',\n'Bash(shutdown:*)']\ndeny = ['Bash(rm;ls)']\n",
    );
    let ran = world.run(&["tool", "list"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for wanted in [
        "settings.toml:2: tools.off: ",
        "settings.toml:5: sandbox.hosts: \"*\" names no host",
        "settings.toml:9: permissions.restricted: ",
        "settings.toml:10: permissions.restricted: ",
        "settings.toml:12: permissions.deny: ",
    ] {
        assert!(ran.err.contains(wanted), "{wanted}: {ran:?}");
    }
    assert!(!ran.err.contains("shutdown"), "{ran:?}");
    world.settings("permissions.restricted = [\n'Bash(a'\n]");
    let ran = world.run(&["tool", "list"]);
    let wanted = "settings.toml:2: permissions.restricted: ";
    assert!(ran.code == Some(2) && ran.err.contains(wanted), "{ran:?}");
}

#[test]
fn wrong_settings_and_commands_are_mistakes_too() {
    let world = World::new();
    let wrong = |ran: Ran, wanted: &str| {
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
    wrong(world.run(&["hello"]), "there is no command \"hello\". To say it to the model");
    wrong(world.run(&["login"]), "keys come from ANTHROPIC_API_KEY");
    wrong(world.run(&["hello there"]), "there is no terminal here");
    wrong(world.run(&["-p", "hi", "--modle", "x"]), "'--model'");
    world.settings("mode = 'yolo'");
    wrong(world.run(&["tool", "list"]), "settings.toml:1: mode: \"yolo\" is no mode: use ask");
    world.settings("mode = 3");
    wrong(world.run(&["tool", "list"]), "mode: 3 does not fit, wanted: ");
}

#[test]
fn a_wrong_setting_is_named_with_its_line() {
    let world = World::new();
    world.settings("[http]\nstall_seconds = 2\n\n[models.\"a/b\"]\nvision = \"no\"\n");
    let ran = world.run(&["tool", "ls", "--input", "{}"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let said = r#"settings.toml:5: models.a/b.vision: "no" does not fit, "#;
    assert!(ran.err.contains(said) && ran.err.contains("wanted: true or false"), "{ran:?}");
}

#[test]
fn a_strict_edit_takes_exact_text_alone_at_every_face() {
    let world = World::new();
    let text = "fn a() {\n    one();  \n}\n";
    let input = |old: &str, new: &str| {
        let edits = json!([{"old_text": old, "new_text": new}]);
        // A near miss in a file that nobody has read is refused anyway.
        json!({"path": "a.txt", "edits": edits, "expect": Hash::of(text.as_bytes())})
    };
    let (near, exact) = (input("one();\n}", "two();\n}"), input("one();  \n}", "x();  \n}"));
    let model = |input: &Value| {
        let call = json!({"calls": [{"name": "edit", "input": input}]});
        world.script(&[call, json!({"text": "over"})])
    };
    // Every face with the call; gives what was said of it, and what the file is then.
    let faces = |input: &Value| {
        let bypass = ["--mode", "bypass"];
        let script = model(input);
        let runs: [&dyn Fn() -> String; 4] = [
            &|| {
                let ran = world.tool("edit", input, &bypass);
                ran.out + &ran.err
            },
            &|| {
                let print = ["-p", "go", "--model", &script, "--output", "stream-json"];
                world.run(&[&print[..], &bypass].concat()).out
            },
            &|| {
                let line = ["--line", "--model", &script];
                world.run_with(&[&line[..], &bypass].concat(), &Input::Pipe("go\n")).out
            },
            &|| side_by_side(&world, &bypass, &[("edit", input.clone())])[0].to_string(),
        ];
        runs.map(|run| {
            world.file("a.txt", text);
            (run(), world.read("a.txt"))
        })
    };
    world.settings("edit.strict = true");
    for (said, left) in faces(&near) {
        assert!(said.contains("edit.strict"), "{said}");
        assert_eq!(left, text, "{said}");
    }
    for (said, left) in faces(&exact) {
        assert!(left.contains("x();  \n"), "{said}");
    }
    world.settings("");
    for (said, left) in faces(&near) {
        assert!(left.contains("two();\n"), "{said}");
    }
}
