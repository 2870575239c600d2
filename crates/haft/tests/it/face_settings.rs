//! Settings that change what happens, and what is told to whoever typed something wrong.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use serde_json::{Value, json};

use crate::world::{Input, Ran, World, finish};

fn json_of(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn tool(world: &World, name: &str, input: &Value, flags: &[&str]) -> Ran {
    world.run(&[&["tool", name, "--input", &input.to_string()][..], flags].concat())
}

#[test]
fn settings_of_tools_count() {
    let world = World::new();
    let lines: Vec<String> = (1..=3_000).map(|n| format!("line {n}")).collect();
    world.file("a.txt", lines.join("\n"));
    let read = |flags: &[&str]| json_of(&tool(&world, "read", &json!({"path": "a.txt"}), flags));
    assert_eq!(read(&["--json"])["data"]["lines"], 2_000);
    world.settings(
        "[read]\nmax_lines = 7\n[shell]\ntimeout_ms = 1000\n[limits]\noutput_bytes = 65536",
    );
    assert_eq!(read(&["--json"])["data"]["lines"], 7);
    let spec = world.run(&["tool", "spec", "read"]).out;
    assert!(spec.contains("7 lines unless limit") && !spec.contains("2,000 lines"), "{spec}");
    let spec = world.run(&["tool", "spec", "bash"]).out;
    assert!(spec.contains("after 1 s unless timeout_ms"), "{spec}");

    let bash = |command: &str| {
        let flags = ["--mode", "bypass", "--json"];
        json_of(&tool(&world, "bash", &json!({"command": command}), &flags))
    };
    assert_eq!(bash("sleep 60")["status"], "timed_out");
    // Every kept byte is one of the first or last 32 KiB.
    let kept = bash("seq 1 200000");
    let path = kept["data"]["output_path"].as_str().unwrap_or_else(|| panic!("{kept}"));
    let size = if path.starts_with("out://") {
        let call = path.strip_prefix("out://").unwrap();
        let folder = world.state().join("sessions").join(kept["session"].as_str().unwrap());
        let held = fs::read_dir(folder.join("out")).unwrap().map(|entry| entry.unwrap().path());
        let held = held.into_iter().find(|path| path.to_string_lossy().contains(call)).unwrap();
        fs::metadata(held).unwrap().len()
    } else {
        fs::metadata(path).unwrap().len()
    };
    assert!((60_000..70_000).contains(&size), "{size} bytes are kept");

    world.settings("[read]\nmax_bytes = 1024");
    let page = read(&["--json"]);
    let shown = page["content"][0]["text"].as_str().unwrap();
    assert!(shown.len() < 1_300 && page["data"]["truncated"] == true, "{page}");
}

#[test]
fn what_does_nothing_is_no_setting() {
    let world = World::new();
    world.settings("secrets.names = ['A']\nshell.keep = ['b']");
    let ran = world.run(&["tool", "list"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("secrets") && ran.err.contains("shell.keep"), "{ran:?}");
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
        let result = json_of(&ran);
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
    let can = Command::new("unshare").args(["-rm", "sh", "-c", &mount]).status();
    if !can.is_ok_and(|status| status.success()) {
        let ci = std::env::var_os("CI").is_some_and(|value| value != "false" && value != "0");
        assert!(!ci, "left out, which CI must not: this machine lets nobody mount");
        eprintln!("left out: this machine lets nobody mount");
        return;
    }
    let script = format!("{mount} && exec '{}' tool list", env!("CARGO_BIN_EXE_haft"));
    let mut command = world.program("unshare");
    command.args(["-rm", "sh", "-c", &script]);
    let ran = finish(command, &Input::Nothing);
    assert_eq!((ran.code, ran.out.contains("bash ")), (Some(0), false), "{ran:?}");
    assert!(world.run(&["tool", "list"]).out.contains("bash "));
}

#[test]
fn the_state_folder_is_an_absolute_path() {
    let world = World::new();
    let home = |value: &str, arguments: &[&str]| {
        let mut command = world.haft(arguments);
        command.env("HAFT_HOME", value);
        finish(command, &Input::Nothing)
    };
    for value in ["state", "./state", "~me/state"] {
        for arguments in [&["tool", "list"][..], &["session", "list"], &["doctor"], &["mcp"]] {
            let ran = home(value, arguments);
            assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{value} {ran:?}");
            assert!(ran.err.contains("HAFT_HOME") && ran.err.contains(value), "{ran:?}");
        }
    }
    assert_eq!(fs::read_dir(world.work()).unwrap().count(), 0, "something was made there");
    let ran = home("~/kept", &["doctor"]);
    let folder = world.root().join("home/kept");
    assert!(ran.out.contains(&folder.display().to_string()), "{ran:?}");
    let mode = fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700, "{mode:o}");
}

#[test]
fn the_doctor_reads_addresses_as_requests_do_and_names_paths() {
    let world = World::new();
    let probe = |name: &str, value: &str| {
        let mut command = world.haft(&["doctor"]);
        command.env(name, value);
        finish(command, &Input::Nothing).out
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let out = probe("OPENAI_BASE_URL", &format!("HTTP://{address}/v1"));
    assert!(out.contains("/v1 answers"), "{out}");
    let out = probe("OPENAI_BASE_URL", "http://[::1]:9");
    assert!(!out.contains("invalid port"), "{out}");
    let file = world.file("a-file", "").display().to_string();
    let out = probe("HAFT_HOME", &file);
    let line = out.lines().find(|line| line.contains("  state ")).unwrap();
    assert!(line.starts_with("!!") && line.contains(&file), "{line}");
}

#[test]
fn what_was_typed_wrong_is_a_mistake() {
    let world = World::new();
    let model = world.script(&[json!({"text": "one"})]);
    for _ in 0..2 {
        assert_eq!(world.run(&["-p", "hi", "--model", &model]).code, Some(0));
    }
    let pipe = world.root().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pipe = format!("script:{}", pipe.display());
    for (arguments, wanted) in [
        (&["-p", "hi", "-r", "zzz", "--model", &model][..], "\"zzz\""),
        (&["-p", "hi", "-r", "", "--model", &model], "no session begins with"),
        (&["-p", "hi", "-r", "0", "--model", &model], "2 sessions begin with \"0\""),
        (&["session", "show", "zz"], "\"zz\""),
        (&["-p", "hi", "--model", "script:/no/such"], "/no/such"),
        (&["-p", "hi", "--model", &pipe], "no regular file"),
        (&["-p", "hi", "--model", "anthropic/x"], "ANTHROPIC_API_KEY"),
        (&["-p", "hi", "--model", "junk"], "--model: "),
        (&["-p", "hi", "--max-tokens", "-1"], "a whole number from 1"),
        (&["-p", "hi", "--max-turns", "0"], "a whole number from 1"),
    ] {
        let ran = world.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?} {ran:?}");
        assert!(ran.err.contains(wanted), "{arguments:?} {ran:?}");
    }
    let mut command = world.haft(&["-p", "hi"]);
    command.env("HAFT_MODEL", "junk");
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("HAFT_MODEL: "), "{ran:?}");
    world.settings("model = 'junk'");
    assert!(world.run(&["-p", "hi"]).err.contains("`model` in the user settings: "));
}

#[test]
fn a_script_line_is_an_object_with_known_fields() {
    for (line, wanted) in [
        ("[]", "no JSON object"),
        (r#"{"error":{"status":429}}"#, "unknown field `status`"),
        (r#"{"error":{"status":429}}"#, "{kind, message?, retry_after_ms?}"),
        (r#"{"error":3}"#, "3 is neither"),
    ] {
        let world = World::new();
        let file = world.file("s.jsonl", line).display().to_string();
        let ran = world.run(&["-p", "hi", "--model", &format!("script:{file}")]);
        assert_eq!(ran.code, Some(2), "{line} {ran:?}");
        assert!(ran.err.contains(wanted) && !ran.err.contains("untagged"), "{line} {ran:?}");
    }
}

#[test]
fn a_cut_result_of_one_call_leads_somewhere() {
    let world = World::new();
    let words = "match ".repeat(30);
    world.file("a.txt", vec![words; 5_000].join("\n"));
    let input = json!({"command": "seq 1 50000"});
    let found = tool(&world, "bash", &input, &["--mode", "bypass"]);
    let (_, command) = found.err.split_once("the whole result: ").unwrap();
    let command = command.trim().replacen("haft", env!("CARGO_BIN_EXE_haft"), 1);
    let mut shell = world.program("sh");
    shell.args(["-c", &command]);
    let ran = finish(shell, &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{command}: {ran:?}");
    assert!(ran.out.contains("1999"), "{ran:?}");
    let short = tool(&world, "bash", &json!({"command": "seq 1 5"}), &["--mode", "bypass"]);
    assert_eq!(short.err, "", "nothing is left out");
}

#[test]
fn a_refusal_tells_a_person_what_allows_it() {
    let world = World::new();
    let write = json!({"path": "it's.txt", "content": "x"});
    let ran = tool(&world, "write", &write, &[]);
    let (_, rule) = ran.err.split_once("add --allow ").unwrap_or_else(|| panic!("{ran:?}"));
    let rule = rule.trim();
    let (rule, other) = rule.split_once(" or ").unwrap_or_else(|| panic!("{rule}"));
    assert_eq!(other, "--mode accept-edits");
    let command =
        format!("exec '{}' tool write --allow {rule} --input \"$0\"", env!("CARGO_BIN_EXE_haft"));
    let mut shell = world.program("sh");
    shell.args(["-c", &command, &write.to_string()]);
    let ran = finish(shell, &Input::Nothing);
    assert_eq!((ran.code, world.read("it's.txt").as_str()), (Some(0), "x"), "{command} {ran:?}");

    let ran = tool(&world, "bash", &json!({"command": "touch a"}), &[]);
    assert!(ran.err.contains("--allow 'Bash(touch a)'\n"), "{ran:?}");
    // No flag helps against a rule that denies.
    let ran = tool(&world, "write", &write, &["--deny", "Edit(/it's.txt)", "--mode", "bypass"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""), "{ran:?}");

    world.settings("tools.off = ['ls']");
    for (name, flags, wanted) in [
        ("read", &["--deny", "Read"][..], "a deny rule takes it away"),
        ("Bash", &["--tools", "read"], "--tools does not name it"),
        ("ls", &[], "`tools.off` in the settings"),
    ] {
        let ran = tool(&world, name, &json!({}), flags);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.err.contains(wanted) && !ran.err.contains("no tool named"), "{ran:?}");
    }
}

#[test]
fn the_result_of_a_run_counts_what_got_an_answer() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let model = world.script(&[
        json!({"calls": [
            {"name": "read", "input": {"path": "a.txt"}},
            {"name": "read", "raw": "{\"path\": "},
            {"name": "nosuch", "input": {}},
            {"name": "write", "input": {"path": "b", "content": ""}},
        ]}),
        json!({"text": "Done.", "stop": "length"}),
    ]);
    let result = json_of(&world.run(&["-p", "go", "--model", &model, "--output", "json"]));
    let counts = ["calls", "failed_calls"].map(|name| result[name].as_u64().unwrap());
    assert_eq!(counts, [4, 3], "{result}");
    assert_eq!(
        (&result["stop"], &result["status"]),
        (&json!("length"), &json!("done")),
        "{result}"
    );
    let model = world.script(&[json!({"error": "no"})]);
    let result = json_of(&world.run(&["-p", "go", "--model", &model, "--output", "json"]));
    assert!(result["stop"].is_null() && result["status"] == "failed", "{result}");
}

#[test]
fn a_command_without_its_record_is_not_run_and_the_advice_comes_once() {
    let world = World::new();
    let home = world.file("a-file", "").join("below").display().to_string();
    let mut command = world.haft(&["tool", "bash", "--mode", "bypass", "--input"]);
    command.arg(json!({"command": "touch made"}).to_string()).env("HAFT_HOME", &home);
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let all = format!("{}{}", ran.out, ran.err);
    assert!(all.contains(&home) && !all.contains("Check cwd"), "{ran:?}");
    assert!(!world.work().join("made").exists(), "{ran:?}");

    let model = world.script(&[json!({"text": "never"})]);
    let mut command = world.haft(&["-p", "go", "--model", &model]);
    command.env("HAFT_HOME", &home);
    let ran = finish(command, &Input::Nothing);
    assert_eq!((ran.code, ran.err.matches("HAFT_HOME").count()), (Some(1), 1), "{ran:?}");
}

#[test]
fn a_log_that_is_full_is_told_with_one_advice() {
    let world = World::new();
    let write = json!({"name": "write", "input": {"path": "made.txt", "content": "made\n"}});
    let model = world.script(&[json!({"text": "much ".repeat(100_000), "calls": [write]})]);
    // A file may have 64 blocks of 512 bytes; with the signal ignored the write itself fails.
    let script = format!(
        "trap '' XFSZ; ulimit -f 64; exec '{}' -p go --mode bypass --model '{model}'",
        env!("CARGO_BIN_EXE_haft")
    );
    let mut command = world.program("sh");
    command.args(["-c", &script]);
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let last = ran.err.lines().last().unwrap();
    assert_eq!(last.matches("ulimit -f").count(), 1, "{ran:?}");
}
