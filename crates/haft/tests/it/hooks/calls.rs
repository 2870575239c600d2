//! Hooks of calls, as real programs: what they get, what they may say, and what becomes of it.

use std::{fs, path::PathBuf};

use haft_testkit::machine;
use serde_json::{Value, json};

use crate::world::{Input, PATIENCE, Ran, World, finish, text, until};

/// Settings with one hook of an event.
pub fn hook(event: &str, matcher: &str, command: &str, more: &str) -> String {
    format!(
        "[[hooks.{event}]]\nmatcher = '{matcher}'\n[[hooks.{event}.hooks]]\ntype = 'command'\n\
         command = '''{command}'''\n{more}\n"
    )
}

/// A hook that prints this value.
pub fn prints(value: &Value) -> String {
    format!("cat > /dev/null; printf '%s' '{value}'")
}

fn before(decision: &str, reason: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "permissionDecision": decision, "permissionDecisionReason": reason}})
}

/// A call of bash that makes a file, and whether it is there then.
fn touch(world: &World, flags: &[&str]) -> (Ran, bool) {
    let made = world.work().join("made");
    drop(fs::remove_file(&made));
    let ran = world.tool("bash", &json!({"command": "touch made"}), flags);
    (ran, made.exists())
}

#[test]
fn exit_codes_let_through_tell_or_block() {
    let world = World::new();
    for (code, made, said) in [
        (0, true, ""),
        (1, true, "failed (SETTINGS:3): exit code 1: because"),
        (2, false, "a hook refused this call: because"),
    ] {
        world.settings(&hook("PreToolUse", "Bash", &format!("echo because >&2; exit {code}"), ""));
        let (ran, is_made) = touch(&world, &["--mode", "bypass"]);
        assert_eq!(is_made, made, "{ran:?}");
        let place = world.state().join("settings.toml").display().to_string();
        assert!(ran.both_outputs().contains(&said.replace("SETTINGS", &place)), "{ran:?}");
        assert_eq!(ran.both_outputs().contains("because"), code > 0, "{ran:?}");
    }
}

#[test]
fn an_answer_denies_asks_or_allows_and_no_more_than_it_may() {
    let world = World::new();
    let (deny, ask) = (before("deny", "not now"), before("ask", "look first"));
    let allow = before("allow", "fine");
    let rules = |text: &str| format!("[permissions]\n{text}\n");
    for (answer, settings, mode, made, said) in [
        (&deny, "", "bypass", false, "a hook refused this call: not now"),
        (&ask, "", "bypass", false, "a hook asks before this call: look first"),
        (&ask, "allow = ['Bash']", "ask", false, "a hook asks before this call: look first"),
        (&allow, "", "dont-ask", true, ""),
        (&allow, "", "ask", true, ""),
        (&allow, "deny = ['Bash(touch:*)']", "bypass", false, "the deny rule Bash(touch:*)"),
        (&allow, "ask = ['Bash(touch:*)']", "bypass", false, "the ask rule Bash(touch:*)"),
        (&allow, "restricted = ['Bash(touch:*)']", "bypass", false, "Bash(touch:*)"),
        (&allow, "", "plan", false, "plan mode only reads"),
    ] {
        world.settings(&(hook("PreToolUse", "Bash", &prints(answer), "") + &rules(settings)));
        let (ran, is_made) = touch(&world, &["--mode", mode]);
        assert_eq!(is_made, made, "{answer} {settings} {mode}: {ran:?}");
        assert!(ran.both_outputs().contains(said), "{answer} {settings}: {ran:?}");
    }
    // Protected places and credentials stay questions.
    world.settings(&hook("PreToolUse", "", &prints(&allow), ""));
    for path in [".git/config", "../home/.ssh/id_rsa"] {
        let ran = world.tool("write", &json!({"path": path, "content": "x"}), &[]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(!world.work().join(path).exists());
    }
    let ran = world.tool("write", &json!({"path": "free.txt", "content": "x"}), &[]);
    assert_eq!((ran.code, world.read("free.txt").as_str()), (Some(0), "x"), "{ran:?}");
}

#[test]
fn a_yes_of_a_hook_is_none_to_what_is_not_known() {
    let world = World::new();
    let allow = hook("PreToolUse", "Bash", &prints(&before("allow", "fine")), "");
    world.settings(&allow);
    world.file("keys", "keys");
    world.file("cmd", "touch made");
    world.file("name", "keys");
    for command in [
        "cp \"$(cat name)\" made",
        "echo x >> \"$(cat name)\"",
        "sh -c \"$(cat cmd)\"",
        "eval \"$X\"",
        "$(cat cmd)",
        "touch made; cat \"$(cat name)\"",
        "touch {{secret:GH_TOKEN}}",
    ] {
        for mode in ["ask", "dont-ask"] {
            let input = json!({"command": command}).to_string();
            let mut haft = world.haft(&["tool", "bash", "--input", &input, "--mode", mode]);
            haft.env("GH_TOKEN", "abcdefghij0123456789");
            let ran = finish(haft, &Input::Nothing);
            assert_eq!(ran.code, Some(1), "{command} {mode}: {ran:?}");
            assert!(ran.both_outputs().contains("no rule allows"), "{command} {mode}: {ran:?}");
            assert!(!world.work().join("made").exists(), "{command}");
        }
    }
    let (ran, is_made) = touch(&world, &["--mode", "ask"]);
    assert!(is_made, "{ran:?}");
}

#[test]
fn a_rewrite_in_either_form_is_judged_anew() {
    let world = World::new();
    let rewrite = |input: Value| {
        let answer = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
            "permissionDecision": "allow", "updatedInput": input}});
        hook("PreToolUse", "Write", &prints(&answer), "")
    };
    let write = |world: &World| world.tool("write", &json!({"path": "a", "content": "1"}), &[]);
    for (input, name) in [
        (json!({"file_path": world.work().join("b"), "content": "2"}), "b"),
        (json!({"path": "c", "content": "2"}), "c"),
    ] {
        world.settings(&rewrite(input));
        let ran = write(&world);
        assert_eq!((ran.code, world.read(name).as_str()), (Some(0), "2"), "{ran:?}");
        assert!(!world.work().join("a").exists());
    }
    let settings = rewrite(json!({"path": "denied", "content": "2"}));
    world.settings(&(settings + "[permissions]\ndeny = ['Edit(denied)']\n"));
    let ran = write(&world);
    assert!(
        ran.code == Some(1) && ran.both_outputs().contains("the deny rule Edit(denied)"),
        "{ran:?}"
    );
    assert!(!world.work().join("denied").exists());
    // Milliseconds, however few they are.
    let answer =
        json!({"hookSpecificOutput": {"updatedInput": {"command": "sleep 60", "timeout": 300}}});
    world.settings(&hook("PreToolUse", "Bash", &prints(&answer), ""));
    let ran = world.tool("bash", &json!({"command": "true"}), &["--mode", "bypass", "--json"]);
    assert_eq!(ran.json()["status"], "timed_out", "{ran:?}");
}

/// A script as people write them for Claude Code: it keeps what it got, and guards `.env`.
const GUARD: &str = r#"
import json, os, sys
data = json.load(sys.stdin)
with open(os.environ["CLAUDE_PROJECT_DIR"] + "/seen.jsonl", "a") as seen:
    seen.write(json.dumps(data) + "\n")
if data["tool_input"].get("file_path", "").endswith(".env"):
    print("no secrets", file=sys.stderr)
    sys.exit(2)
"#;

/// Calls as haft has them, and what a hook gets of them.
fn in_their_words() -> Vec<(&'static str, Value, &'static str, Value)> {
    let edit = |old: &str, new: &str| json!({"old_text": old, "new_text": new});
    vec![
        (
            "read",
            json!({"path": "a.txt", "limit": 5}),
            "Read",
            json!({"file_path": "/a.txt", "limit": 5}),
        ),
        (
            "write",
            json!({"path": "b.txt", "content": "x"}),
            "Write",
            json!({"file_path": "/b.txt", "content": "x"}),
        ),
        (
            "edit",
            json!({"path": "a.txt", "edits": [edit("one", "1")]}),
            "Edit",
            json!({"file_path": "/a.txt", "old_string": "one", "new_string": "1"}),
        ),
        (
            "edit",
            json!({"path": "a.txt", "edits": [edit("1", "one"), edit("two", "2")]}),
            "MultiEdit",
            json!({"file_path": "/a.txt", "edits": [{"old_string": "1", "new_string": "one"}, {"old_string": "two", "new_string": "2"}]}),
        ),
        (
            "bash",
            json!({"command": "ls", "timeout_ms": 5000}),
            "Bash",
            json!({"command": "ls", "timeout": 5000}),
        ),
        ("grep", json!({"pattern": "x"}), "Grep", json!({"pattern": "x"})),
        ("find", json!({"pattern": "*"}), "Glob", json!({"pattern": "*"})),
        (
            "todo",
            json!({"items": [{"text": "Read it", "status": "pending"}]}),
            "TodoWrite",
            json!({"todos": [{"content": "Read it", "status": "pending", "activeForm": "Read it"}]}),
        ),
        ("task_create", json!({"subject": "x"}), "TaskCreate", json!({"subject": "x"})),
        ("task_list", json!({}), "TaskList", json!({})),
    ]
}

#[test]
fn a_script_for_claude_code_works_unchanged() {
    let world = World::new();
    let script = world.root().join("guard.py");
    fs::write(&script, GUARD).unwrap();
    let command = format!("{} {}", machine::python().display(), script.display());
    let matcher = "Bash|Read|Edit|MultiEdit|Write|Grep|Glob|TodoWrite|TaskCreate|TaskList";
    world.settings(&hook("PreToolUse", matcher, &command, ""));
    world.file(".env", "A=1\n");
    world.file("a.txt", "one\ntwo\n");
    let flags = ["--mode", "accept-edits"];
    for (tool, input, name, wanted) in in_their_words() {
        let ran = world.tool(tool, &input, &flags);
        assert_eq!(ran.code, Some(0), "{tool}: {ran:?}");
        let seen = world.read("seen.jsonl");
        let seen: Value = serde_json::from_str(seen.lines().last().unwrap()).unwrap();
        let mut wanted = wanted;
        if let Some(path) = wanted.get("file_path").and_then(Value::as_str) {
            wanted["file_path"] = json!(format!("{}{path}", world.work().display()));
        }
        assert_eq!((&seen["tool_name"], &seen["tool_input"]), (&json!(name), &wanted));
        assert_eq!((&seen["haft_tool"], &seen["haft_input"]), (&json!(tool), &input));
        assert_eq!(seen["hook_event_name"], "PreToolUse");
        assert_eq!(seen["permission_mode"], "acceptEdits");
        assert_eq!(seen["cwd"], json!(world.work()));
        assert!(seen["session_id"].is_string() && seen["tool_use_id"].is_string(), "{seen}");
    }
    let edit = json!({"old_text": "1", "new_text": "2"});
    let files =
        json!({"files": [{"path": "c", "content": "x"}, {"path": ".env", "edits": [edit]}]});
    for (tool, input) in [
        ("read", json!({"path": ".env"})),
        ("write", json!({"path": "x/../.env", "content": ""})),
        // One of several files, and a name that a file is moved to.
        ("edit", files),
        ("edit", json!({"files": [{"path": "a.txt", "move_to": "b/.env"}]})),
    ] {
        let ran = world.tool(tool, &input, &flags);
        assert!(
            ran.code == Some(1) && ran.both_outputs().contains("no secrets"),
            "{tool}: {ran:?}"
        );
    }
    assert_eq!(world.read(".env"), "A=1\n");
}

#[test]
fn a_rule_says_which_calls_a_hook_sees() {
    let world = World::new();
    let guard = |rule: &str| {
        let matcher = if rule.starts_with("Bash") { "Bash" } else { "" };
        world.settings(&hook(
            "PreToolUse",
            matcher,
            "echo seen >&2; exit 2",
            &format!("if = '{rule}'"),
        ));
    };
    guard("Bash(git push *)");
    for (command, seen) in [
        ("git push", true),
        ("cd . && git push origin", true),
        ("timeout 5 git \"push\" x", true),
        ("echo $(git push)", true),
        ("sh -c 'git push'", true),
        ("echo 'git push' x", false),
        ("git status", false),
        ("git pull", false),
        // No command of git's own: it may be an alias.
        ("git pushx", true),
        // What these run nobody knows.
        ("make", true),
        ("python3 p.py", true),
        ("./run.sh", true),
        ("cargo test", true),
        ("npm run x", true),
        ("ls && make", true),
        ("git clone -u ./x . y", true),
        ("git rebase -x ./x a", true),
        ("touch made", false),
        ("mkdir -p d && cp -r a d && rm -r d", false),
        ("chmod +x a", false),
        ("sudo touch a", false),
        ("git commit -m x", false),
        ("git --no-pager log -3", false),
        ("git -c core.pager=x log", true),
        ("curl -s https://example.org", false),
    ] {
        let ran = world.tool("bash", &json!({ "command": command }), &["--mode", "dont-ask"]);
        assert_eq!(ran.both_outputs().contains("seen"), seen, "{command}: {ran:?}");
    }
    guard("PowerShell(x)");
    let ran = world.tool("bash", &json!({"command": "make"}), &["--mode", "dont-ask"]);
    assert!(!ran.both_outputs().contains("seen"), "{ran:?}");
    // A path is one under each of its names.
    fs::create_dir_all(world.work().join("secret")).unwrap();
    std::os::unix::fs::symlink("secret", world.work().join("link")).unwrap();
    guard("Edit(/secret/**)");
    for (path, seen) in
        [("secret/a", true), ("link/a", true), ("./x/../secret/a", true), ("a", false)]
    {
        let ran = world.tool("write", &json!({"path": path, "content": ""}), &["--mode", "bypass"]);
        assert_eq!(ran.both_outputs().contains("seen"), seen, "{path}: {ran:?}");
    }
    let ran = world.tool("bash", &json!({"command": "python3 p.py"}), &["--mode", "dont-ask"]);
    assert!(ran.both_outputs().contains("seen"), "{ran:?}");
}

#[test]
fn a_long_reason_is_cut_as_all_words_are() {
    let world = World::new();
    let command = "head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 2";
    world.settings(&hook("PreToolUse", "Bash", command, ""));
    let (ran, made) = touch(&world, &["--mode", "bypass"]);
    assert_eq!((made, ran.out.matches('x').count()), (false, 10_000), "{}", ran.out.len());
    assert!(ran.out.contains("(cut at 10000 characters)"), "{}", ran.out.len());
}

#[test]
fn a_condition_that_can_match_nothing_is_named_and_counts_for_every_call() {
    let world = World::new();
    for (matcher, rule, why) in [
        ("Bash", "Bash(rm;ls)", "it holds several commands"),
        ("Bash", "Bash(cd x && make)", "it holds several commands"),
        ("Write", "Bash(git push *)", "its matcher leaves Bash out"),
        ("Bash", "Bsh", "Bsh"),
    ] {
        world.settings(&hook(
            "PreToolUse",
            matcher,
            "echo seen >&2; exit 2",
            &format!("if = '{rule}'"),
        ));
        let ran = match matcher {
            "Bash" => world.tool("bash", &json!({"command": "ls"}), &[]),
            _ => world.tool("write", &json!({"path": "a", "content": ""}), &["--mode", "bypass"]),
        };
        assert!(ran.code == Some(1) && ran.both_outputs().contains("seen"), "{rule}: {ran:?}");
        let place = "settings.toml:3: hooks.PreToolUse: if: ";
        assert!(ran.err.contains(place) && ran.err.contains(why), "{rule}: {ran:?}");
    }
    let fine = hook("PreToolUse", "Bash|Edit", "exit 2", "if = 'Bash(git push *)'")
        + &hook("PreToolUse", "Bash", "exit 2", "if = 'Edit(/x/**)'");
    world.settings(&fine);
    let ran = world.tool("bash", &json!({"command": "ls"}), &[]);
    assert!(ran.code == Some(0) && ran.err.is_empty(), "{ran:?}");
}

#[test]
fn what_fails_is_told_and_blocks_where_that_is_wanted() {
    let world = World::new();
    let long = "head -c 3000000 /dev/zero | tr '\\0' x";
    for (command, more, why) in [
        ("no-such-program", "", "exit code 127"),
        ("exit 1", "", "exit code 1"),
        ("kill -9 $$", "", "signal 9 ended it"),
        ("sleep 100", "timeout = 0.2", "it took longer than 200ms"),
        ("echo '{\"decision\": '", "", "its answer is not understood"),
        ("echo '{\"decision\": \"maybe\"}'", "", "its decision is \"maybe\""),
        ("echo '{\"continue\": \"no\"}'", "", "its answer is not understood"),
        (long, "", "it printed more than 1048576 bytes"),
        ("no-such-program", "args = ['a']", "is in no folder of PATH"),
    ] {
        world.settings(&hook("PreToolUse", "Bash", command, more));
        let (ran, made) = touch(&world, &["--mode", "bypass"]);
        assert!(made && ran.err.contains(why), "{command}: {ran:?}");
        let closed = ["fail_closed = true", "failClosed = true", "onFailure = 'block'"];
        for closed in closed.iter().take(if command == "exit 1" { 3 } else { 1 }) {
            world.settings(&hook("PreToolUse", "Bash", command, &format!("{more}\n{closed}")));
            let (ran, made) = touch(&world, &["--mode", "bypass"]);
            assert!(!made && ran.out.contains(why), "{command} {closed}: {ran:?}");
        }
    }
    // Text that means nothing is left alone, but not where only an answer will do.
    world.settings(&hook("PreToolUse", "Bash", "echo hello", ""));
    assert!(touch(&world, &["--mode", "bypass"]).1);
    world.settings(&hook("PreToolUse", "Bash", "echo hello", "fail_closed = true"));
    assert!(!touch(&world, &["--mode", "bypass"]).1);
}

#[test]
fn an_answer_that_cannot_be_taken_is_told() {
    let world = World::new();
    let deny = before("deny", "not now");
    let outside = json!({"permissionDecision": "deny"});
    for (command, why) in [
        (prints(&outside), "its permissionDecision counts in hookSpecificOutput alone"),
        (format!("echo checking; {}", prints(&deny)), "its answer stands behind other text"),
        (prints(&json!([{"decision": "block"}])), "its answer stands in a list"),
    ] {
        world.settings(&hook("PreToolUse", "Bash", &command, ""));
        let (ran, made) = touch(&world, &["--mode", "bypass"]);
        assert!(made && ran.err.contains(why), "{command}: {ran:?}");
        assert!(crate::world::notices(&world.events()).iter().any(|(_, text)| text.contains(why)));
        drop(fs::remove_dir_all(world.state().join("sessions")));
        world.settings(&hook("PreToolUse", "Bash", &command, "fail_closed = true"));
        assert!(!touch(&world, &["--mode", "bypass"]).1);
        drop(fs::remove_dir_all(world.state().join("sessions")));
    }
    // What some editors and shells write before a text is no part of it.
    let marked = format!("printf '\\357\\273\\277'; {}", prints(&deny));
    world.settings(&hook("PreToolUse", "Bash", &marked, ""));
    let (ran, made) = touch(&world, &["--mode", "bypass"]);
    assert!(!made && ran.out.contains("not now"), "{ran:?}");
    // A no by the exit code is one, however much was printed before.
    let long = "head -c 3000000 /dev/zero | tr '\\0' x; echo because >&2; exit 2";
    world.settings(&hook("PreToolUse", "Bash", long, ""));
    let (ran, made) = touch(&world, &["--mode", "bypass"]);
    assert!(!made && ran.out.contains("a hook refused this call: because"), "{ran:?}");
}

#[test]
fn a_matcher_that_means_no_tool_is_told_with_its_place() {
    let world = World::new();
    for (matcher, told) in [
        ("Bsh", true),
        ("BASH", true),
        ("Bash(touch *)", true),
        ("Edit|Writ", true),
        ("Bash|edit|mcp__memory__add", false),
        ("mcp__.*", false),
        ("^Notebook", false),
        ("", false),
    ] {
        world.settings(&hook("PreToolUse", matcher, "true", ""));
        for arguments in [&["doctor"][..], &["tool", "ls"]] {
            let said = world.run(arguments).both_outputs();
            let place = format!("{}:", world.state().join("settings.toml").display());
            let line = said.lines().find(|line| line.contains("matches no tool"));
            assert_eq!(line.is_some(), told, "{matcher}: {said}");
            assert!(line.is_none_or(|line| line.contains(&place)), "{matcher}: {said}");
        }
    }
}

#[test]
fn what_fails_before_it_changes_anything_is_a_failure_for_hooks() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let seen = world.root().join("seen.jsonl");
    let keep = format!("cat >> {}; echo >> {}", seen.display(), seen.display());
    world.settings(&hook("PostToolUseFailure", "", &keep, ""));
    let edit = json!({"path": "a.txt", "edits": [{"old_text": "two", "new_text": "three"}]});
    let content = json!({"path": "a.txt", "content": "{{secret:UNKNOWN}}"});
    let sleep = json!({"command": "sleep 60", "timeout_ms": 300});
    for (tool, input) in [("edit", edit), ("write", content), ("bash", sleep)] {
        let ran = world.tool(tool, &input, &["--mode", "bypass"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let all = fs::read_to_string(&seen).unwrap();
        let last: Value = serde_json::from_str(all.lines().last().unwrap()).unwrap();
        assert_eq!(last["haft_tool"], tool, "{all}");
        let response = &last["tool_response"];
        assert_eq!(response["is_error"], true, "{last}");
        if tool == "bash" {
            assert_eq!(response["interrupted"], true, "{last}");
            assert_eq!(response["data"]["interrupted"], true, "{last}");
        }
    }
}

#[test]
fn nothing_of_a_hook_is_left_behind() {
    let world = World::new();
    let pid = |name: &str| -> PathBuf { world.root().join(name) };
    let (left, late) = (pid("left"), pid("late"));
    let gone = |file: &PathBuf| {
        let pid = fs::read_to_string(file).unwrap();
        until(PATIENCE, || !PathBuf::from("/proc").join(pid.trim()).exists())
    };
    let command = format!("setsid sleep 1000 > /dev/null 2>&1 & echo $! > {}", left.display());
    world.settings(&hook("PreToolUse", "Bash", &command, ""));
    assert!(touch(&world, &["--mode", "bypass"]).1 && gone(&left));
    let command = format!("echo $$ > {}; sleep 1000", late.display());
    world.settings(&hook("PreToolUse", "Bash", &command, "timeout = 0.5"));
    assert!(touch(&world, &["--mode", "bypass"]).1 && gone(&late));
}

#[test]
fn hooks_run_at_the_same_time_and_the_strictest_counts() {
    let world = World::new();
    // Each waits for the other: one after the other they would never end.
    let meet = |own: &str, other: &str, answer: &Value| {
        let (own, other) = (world.root().join(own), world.root().join(other));
        let (own, other) = (own.display(), other.display());
        format!("touch {own}; until [ -e {other} ]; do sleep 0.01; done; {}", prints(answer))
    };
    let allow = hook("PreToolUse", "Bash", &meet("a", "b", &before("allow", "fine")), "");
    let deny = hook("PreToolUse", "bash", &meet("b", "a", &before("deny", "never")), "");
    let ask = hook("PreToolUse", "B.*", &prints(&before("ask", "perhaps")), "");
    world.settings(&format!("{allow}{deny}{ask}"));
    let (ran, made) = touch(&world, &["--mode", "bypass"]);
    assert!(!made && ran.out.contains("a hook refused this call: never"), "{ran:?}");
    // The same command is run once, whatever names it.
    let count = world.root().join("count");
    let same = format!("echo x >> {}", count.display());
    let one = hook("PreToolUse", "Bash", &same, "");
    world.settings(&format!("{one}{one}{}", hook("PreToolUse", "", &same, "")));
    assert!(touch(&world, &["--mode", "bypass"]).1);
    assert_eq!(fs::read_to_string(count).unwrap(), "x\n");
}

#[test]
fn a_project_runs_nothing_before_it_is_trusted() {
    let world = World::new();
    let ran_at = world.root().join("ran");
    let command = format!("touch {}", ran_at.display());
    world.file(".haft/settings.toml", hook("PreToolUse", "", &command, ""));
    world.file(".haft/settings.local.toml", hook("SessionStart", "", &command, ""));
    let groups = json!([{"hooks": [{"type": "command", "command": command}]}]);
    let theirs =
        json!({"hooks": {"PreToolUse": groups, "UserPromptSubmit": groups, "Stop": groups}});
    world.file(".claude/settings.json", theirs.to_string());
    world.file(".claude/settings.local.json", theirs.to_string());
    let model = world.script(&[json!({"text": "Done."}), json!({"text": "Done."})]);
    assert!(touch(&world, &["--mode", "bypass"]).1);
    assert_eq!(world.run(&["-p", "go", "--model", &model]).code, Some(0));
    assert_eq!(world.run(&["doctor"]).code, Some(0));
    assert!(!ran_at.exists(), "a hook of a project ran");
    assert!(touch(&world, &["--mode", "bypass", "--trust"]).1 && ran_at.exists());
}

#[test]
fn after_a_call_hooks_speak_to_the_model() {
    let world = World::new();
    let kept = world.root().join("after.json");
    let objects = json!({"decision": "block", "reason": "run the formatter"});
    let command = format!("cat > {}; printf '%s' '{objects}'", kept.display());
    let context = json!({"hookSpecificOutput": {"hookEventName": "PostToolUseFailure",
        "additionalContext": "it often fails"}});
    world.settings(&format!(
        "{}{}",
        hook("PostToolUse", "Bash", &command, ""),
        hook("PostToolUseFailure", "Bash", &prints(&context), "")
    ));
    let flags = ["--mode", "bypass", "--json"];
    let done = world.tool("bash", &json!({"command": "echo out"}), &flags).json();
    assert!(text(&done).contains("[a hook objects: run the formatter]"), "{done}");
    let seen: Value = serde_json::from_str(&fs::read_to_string(kept).unwrap()).unwrap();
    assert_eq!(seen["tool_response"]["stdout"], "out\n", "{seen}");
    assert_eq!(seen["tool_input"]["command"], "echo out");
    let failed =
        world.tool("bash", &json!({"command": "sleep 60", "timeout_ms": 300}), &flags).json();
    assert!(text(&failed).contains("[a hook adds: it often fails]"), "{failed}");
}

#[test]
fn what_a_formatter_made_of_a_change_is_taken_back_with_it() {
    let world = World::new();
    // Its own file alone: both calls run at the same time.
    let script =
        r#"file=$(sed 's/.*"file_path":"\([^"]*\)".*/\1/'); sed -i s/x/formatted/ "$file""#;
    world.settings(&hook("PostToolUse", "Edit|Write", script, ""));
    world.file("a.txt", "one\n");
    let edit = json!({"old_text": "one", "new_text": "x"});
    let edit = json!({"path": "a.txt", "edits": [edit]});
    let calls = [
        json!({"name": "edit", "input": edit}),
        json!({"name": "write", "input": {"path": "b.txt", "content": "x\n"}}),
    ];
    let outcomes = world.tool_results(&calls, &["--mode", "bypass"]);
    // In the order in which they ended, whichever that is.
    for name in ["a.txt", "b.txt"] {
        let note = format!("a hook changed it since: {name}");
        assert!(outcomes.iter().any(|one| text(one).contains(&note)), "{outcomes:?}");
        assert_eq!(world.read(name), "formatted\n");
    }
    for _ in 0..2 {
        let ran = world.run(&["undo"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    assert_eq!(world.read("a.txt"), "one\n");
    assert!(!world.work().join("b.txt").exists());
}

#[test]
fn a_yes_to_one_of_several_files_is_no_yes_to_all() {
    let world = World::new();
    let allow = before("allow", "fine");
    let guard =
        format!("if grep -q '\"file_path\":\"[^\"]*/one.txt\"'; then printf '%s' '{allow}'; fi");
    world.settings(&hook("PreToolUse", "Write", &guard, ""));
    let change = |names: &[&str]| {
        let file = |name: &&str| json!({"path": name, "content": "x"});
        json!({"files": names.iter().map(file).collect::<Vec<_>>()})
    };
    let ran = world.tool("edit", &change(&["a/one.txt", "two.txt"]), &[]);
    assert!(ran.code == Some(1) && !world.work().join("two.txt").exists(), "{ran:?}");
    let ran = world.tool("edit", &change(&["a/one.txt", "b/one.txt"]), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn hooks_of_a_project_get_no_keys() {
    let world = World::new();
    let settings = |file: &str| hook("PreToolUse", "", &format!("env > {file}; true"), "");
    world.settings(&settings("own"));
    world.file(".haft/settings.toml", settings("theirs"));
    let token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let mut command = world.haft(&["tool", "ls", "--input", "{}", "--trust"]);
    command.env("GITHUB_TOKEN", token);
    let ran = crate::world::finish(command, &crate::world::Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (own, theirs) = (world.read("own"), world.read("theirs"));
    assert!(own.contains(token) && !theirs.contains(token), "{theirs}");
    for env in [own, theirs] {
        let project = world.work().display().to_string();
        assert!(env.contains(&format!("HAFT_PROJECT_DIR={project}\n")), "{env}");
    }
}
