//! Hooks about what is no call: batches, failures, denials, tasks, expanded prompts, compactions and
//! changes of the model. Each gets its event once, in the form of Claude Code.

use std::io::Write as _;

use haft_testkit::http::HttpResponse;
use haft_types::{Body, Event};
use serde_json::{Value, json};

use super::calls::{hook, prints};
use crate::{
    mock_provider::{Mock, Wire},
    world::{Input, PATIENCE, Ran, World, collect, ended, finish, until},
};

/// A hook that keeps what it gets as a line of the file `kept`, and then does this.
fn keeps(then: &str) -> String {
    format!("(cat; echo) >> \"$HAFT_PROJECT_DIR/kept\"; {then}")
}

fn kept(world: &World) -> Vec<Value> {
    let text = std::fs::read_to_string(world.work().join("kept")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The only thing that was kept, which is of this event.
fn only(world: &World, event: &str) -> Value {
    let all = kept(world);
    assert_eq!(all.len(), 1, "{event}: {all:?}");
    let one = all.into_iter().next().unwrap();
    assert_eq!(one["hook_event_name"], event);
    for field in ["session_id", "transcript_path", "cwd", "permission_mode"] {
        assert!(one[field].is_string(), "{event} {field}: {one}");
    }
    one
}

fn says(event: &str, fields: &Value) -> String {
    let mut specific = json!({"hookEventName": event});
    specific.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    prints(&json!({ "hookSpecificOutput": specific }))
}

fn print(world: &World, answers: &[Value], flags: &[&str]) -> Ran {
    let model = world.script(answers);
    world.run(&[&["-p", "go", "--model", &model][..], flags].concat())
}

fn reads() -> Vec<Value> {
    let read = |path: &str| json!({"name": "read", "input": {"path": path}});
    vec![json!({"calls": [read("a.txt"), read("gone.txt")]}), json!({"text": "Done."})]
}

#[test]
fn a_batch_is_seen_once_and_a_hook_may_end_the_turn_there() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let adds = says("PostToolBatch", &json!({"additionalContext": "the tests are slow"}));
    world.settings(&hook("PostToolBatch", "", &format!("{}{adds}", keeps("")), ""));
    let wire = Wire::Anthropic;
    let read = |path: &str| ("read", json!({ "path": path }));
    let calls = [read("a.txt"), read("gone.txt")];
    let mock = Mock::new(vec![wire.calls("a", &calls), wire.text("Done.")]);
    let ran = finish(wire.haft(&world, &mock.url(), &["-p", "go"]), &Input::Nothing);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{ran:?}");
    let seen = only(&world, "PostToolBatch");
    let calls = seen["tool_calls"].as_array().unwrap();
    let path = world.work().join("a.txt");
    assert_eq!((calls.len(), &calls[0]["tool_name"]), (2, &json!("Read")));
    assert_eq!(calls[0]["tool_input"], json!({ "file_path": path }));
    assert!(calls[0]["tool_use_id"].is_string());
    assert!(calls[0]["tool_response"].to_string().contains("alpha"), "{seen}");
    assert_eq!(calls[1]["tool_response"]["is_error"], true, "{seen}");
    assert!(mock.bodies()[1].contains("[a hook adds: the tests are slow]"));

    world.settings(&hook("PostToolBatch", "", "echo enough >&2; exit 2", ""));
    let ran = print(&world, &reads(), &[]);
    assert!(ran.code == Some(1) && ran.err.contains("a hook ended the turn: enough"), "{ran:?}");
}

#[test]
fn a_turn_that_the_server_ends_is_told_and_nothing_is_held_back() {
    let world = World::new();
    for (kind, error) in [("rejected", "invalid_request"), ("cut", "server_error")] {
        drop(std::fs::remove_file(world.work().join("kept")));
        world.settings(&hook("StopFailure", error, &keeps("exit 2"), ""));
        let failing = json!({"error": {"kind": kind, "message": "not now"}});
        let ran = print(&world, &[failing], &[]);
        assert!(ran.code == Some(1) && ran.err.contains("not now"), "{ran:?}");
        let seen = only(&world, "StopFailure");
        assert_eq!(seen["error"], error);
        assert!(seen["error_details"].as_str().unwrap().contains("not now"), "{seen}");
    }
    drop(std::fs::remove_file(world.work().join("kept")));
    let ran = print(&world, &[json!({"text": "Done."})], &[]);
    assert!(ran.code == Some(0) && kept(&world).is_empty(), "{ran:?}");
}

#[test]
fn a_denial_of_the_rules_is_told_and_may_be_tried_again() {
    let world = World::new();
    let write = json!({"path": "a.txt", "content": "x"});
    let again = says("PermissionDenied", &json!({"retry": true}));
    let denied = hook("PermissionDenied", "Write", &format!("{}{again}", keeps("")), "");
    world.settings(&denied);
    let ran = world.tool("write", &write, &["--mode", "dont-ask"]);
    assert!(ran.code == Some(1), "{ran:?}");
    assert!(ran.out.contains("[a hook says that this call may be tried again]"), "{ran:?}");
    let seen = only(&world, "PermissionDenied");
    assert_eq!(seen["tool_name"], "Write");
    assert_eq!(seen["tool_input"]["file_path"], json!(world.work().join("a.txt")));
    assert!(seen["reason"].as_str().unwrap().contains("no rule allows"), "{seen}");
    assert!(seen["tool_use_id"].is_string());
    // What a hook refused it knows, and so does a person.
    let refuses = hook("PreToolUse", "Write", "exit 2", "");
    world.settings(&(denied.clone() + &refuses));
    assert_eq!(world.tool("write", &write, &["--mode", "bypass"]).code, Some(1));
    world.settings(&denied);
    let calls = json!({"calls": [{"name": "write", "input": write}]});
    let model = world.script(&[calls, json!({"text": "Done."})]);
    world.run_with(&["--line", "--model", &model], &Input::Pipe("go\nn\n"));
    assert_eq!(kept(&world).len(), 1);
    assert!(!world.work().join("a.txt").exists());
}

#[test]
fn tasks_are_made_and_completed_as_hooks_let_them() {
    let world = World::new();
    let create = json!({"subject": "Mend it", "description": "In a.rs."});
    world.settings(&hook("TaskCreated", "", &keeps(""), ""));
    let made = world.tool("TaskCreate", &create, &["--json"]).json();
    let session = made["session"].as_str().unwrap().to_owned();
    let seen = only(&world, "TaskCreated");
    let facts = |seen: &Value| {
        ["task_id", "task_subject", "task_description"].map(|name| seen[name].clone())
    };
    assert_eq!(facts(&seen), [json!("1"), json!("Mend it"), json!("In a.rs.")]);
    let call = |name: &str, input: &Value| world.tool(name, input, &["--session", &session]);
    world.settings(&hook("TaskCreated", "", "echo too vague >&2; exit 2", ""));
    let ran = call("TaskCreate", &create);
    assert!(ran.code == Some(1) && ran.both_outputs().contains("took the task back: too vague"));
    let listed = call("TaskList", &json!({})).out;
    assert_eq!(listed, "0 of 1 done\n#1 [ ] Mend it\n");

    drop(std::fs::remove_file(world.work().join("kept")));
    world.settings(&hook("TaskCompleted", "", &keeps("echo untested >&2; exit 2"), ""));
    let done = json!({"taskId": "1", "status": "completed"});
    let ran = call("TaskUpdate", &done);
    let why = "a hook keeps the task open: untested";
    assert!(ran.code == Some(1) && ran.both_outputs().contains(why), "{ran:?}");
    assert_eq!(facts(&only(&world, "TaskCompleted"))[..2], [json!("1"), json!("Mend it")]);
    assert!(call("TaskList", &json!({})).out.contains("#1 [ ] Mend it"));
    call("TaskUpdate", &json!({"taskId": "1", "status": "in_progress"}));
    assert_eq!(kept(&world).len(), 1, "only what is completed is asked about");
    world.settings("");
    assert_eq!(call("TaskUpdate", &done).code, Some(0));
}

#[test]
fn expanded_prompts_and_commands_of_skills_are_asked_about() {
    let world = World::new();
    let file = world.root().join("home/.claude/commands/look.md");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, "Look at $ARGUMENTS.\n\n!`echo seen $1 $2`\n").unwrap();
    let load = |settings: &str| {
        world.settings(settings);
        drop(std::fs::remove_dir_all(world.state().join("sessions")));
        let model = world.script(&[json!({"text": "End."})]);
        let ran = world.run(&["-p", "/look a.rs b", "--model", &model]);
        let is_said = |event: &Event| matches!(event.body, Body::User { .. });
        let events = if ran.code == Some(0) { world.events() } else { Vec::new() };
        let said: Vec<Event> = events.into_iter().filter(is_said).collect();
        (ran, format!("{said:?}"))
    };
    let adds = says("UserPromptExpansion", &json!({"additionalContext": "be brief"}));
    let (ran, said) =
        load(&hook("UserPromptExpansion", "look", &format!("{}{adds}", keeps("")), ""));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(said.contains("Look at a.rs b.") && said.contains("be brief"), "{said}");
    let seen = only(&world, "UserPromptExpansion");
    for (field, wanted) in [
        ("expansion_type", "slash_command"),
        ("command_name", "look"),
        ("command_args", "a.rs b"),
        ("command_source", "user"),
        ("prompt", "/look a.rs b"),
    ] {
        assert_eq!(seen[field], wanted, "{seen}");
    }
    let (ran, _) = load(&hook("UserPromptExpansion", "", "echo not that one >&2; exit 2", ""));
    assert!(ran.code != Some(0) && ran.both_outputs().contains("not that one"), "{ran:?}");
    let (ran, _) = load(&hook("UserPromptExpansion", "other", "exit 2", ""));
    assert_eq!(ran.code, Some(0), "{ran:?}");

    drop(std::fs::remove_file(world.work().join("kept")));
    let (ran, said) = load(&hook("PreSkillShellCommand", "", &keeps(""), ""));
    assert!(ran.code == Some(0) && said.contains("seen a.rs b"), "{ran:?} {said}");
    let seen = only(&world, "PreSkillShellCommand");
    assert_eq!((&seen["tool_name"], &seen["invoked_by"]), (&json!("Bash"), &json!("user")));
    assert_eq!(seen["tool_input"], json!({"command": "echo seen a.rs b"}));
    assert_eq!((&seen["command_name"], &seen["command_source"]), (&json!("look"), &json!("user")));
    let event = "PreSkillShellCommand";
    let decides = |decision: &str| json!({"permissionDecision": decision, "permissionDecisionReason": "no git"});
    for (answer, refused) in [
        (says(event, &decides("allow")), false),
        (says(event, &decides("deny")), true),
        (says(event, &decides("ask")), true),
        (says(event, &decides("defer")), true),
        (says(event, &json!({"updatedInput": {"command": "true"}})), true),
        ("exit 2".to_owned(), true),
        ("exit 1".to_owned(), false),
    ] {
        let (ran, said) = load(&hook(event, "", &answer, ""));
        assert_eq!(said.contains("a hook refused it"), refused, "{answer}: {ran:?} {said}");
    }
}

/// A talk with a model that sums up, and enough to sum up.
fn long_talk(wire: Wire) -> Mock {
    let filler = "some words to fill the window with, ".repeat(1_500);
    Mock::with(move |number, request| -> HttpResponse {
        let body = String::from_utf8_lossy(&request.body);
        if body.contains("You sum up the work of a coding agent") {
            return wire.text("Goal: to mend the parser.");
        }
        if number == 0 { wire.text(&filler) } else { wire.text("Yes.") }
    })
}

#[test]
fn a_compaction_is_asked_about_and_told() {
    let wire = Wire::OpenAi;
    let world = World::new();
    let mock = long_talk(wire);
    world.settings(&hook("PreCompact", "manual", &keeps("echo keep it >&2; exit 2"), ""));
    let command = wire.haft(&world, &mock.url(), &["--line"]);
    let ran = finish(command, &Input::Pipe("go\n/compact the parser\n"));
    let seen = only(&world, "PreCompact");
    assert_eq!(seen["trigger"], "manual");
    assert_eq!(seen["custom_instructions"], "the parser");
    assert!(
        ran.both_outputs().contains("a hook keeps the conversation as it is: keep it"),
        "{ran:?}"
    );
    assert_eq!(mock.bodies().len(), 1, "no summary was asked for");

    drop(std::fs::remove_file(world.work().join("kept")));
    let mock = long_talk(wire);
    let both =
        hook("PreCompact", "", &keeps(""), "") + &hook("PostCompact", "manual", &keeps(""), "");
    world.settings(&both);
    let mut command = wire.haft(&world, &mock.url(), &["--line"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let out = collect(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "go\n/compact").unwrap();
    // Nobody waits for it but this test.
    assert!(until(PATIENCE, || kept(&world).len() == 2), "{:?}", kept(&world));
    drop(stdin);
    assert!(ended(&mut child, PATIENCE).success());
    drop(out);
    let all = kept(&world);
    assert_eq!(
        (&all[0]["hook_event_name"], &all[0]["custom_instructions"]),
        (&json!("PreCompact"), &Value::Null)
    );
    assert_eq!(
        (&all[1]["hook_event_name"], &all[1]["trigger"]),
        (&json!("PostCompact"), &json!("manual"))
    );
    assert_eq!(all[1]["compact_summary"], "Goal: to mend the parser.");
}

#[test]
fn a_change_of_the_model_is_asked_about_and_told() {
    let world = World::new();
    let first = world.script(&[json!({"text": "One."}), json!({"text": "Still one."})]);
    let second = world.script(&[json!({"text": "Two."})]);
    let switch = |settings: &str, lines: &str| {
        drop(std::fs::remove_file(world.work().join("kept")));
        world.settings(settings);
        world.run_with(&["--line", "--model", &first], &Input::Pipe(lines))
    };
    let lines = format!("go\n/model {second}\nagain\n");
    let adds = says("PostModelSwitch", &json!({"additionalContext": "a new mind"}));
    let told = hook("PostModelSwitch", "", &format!("{}{adds}", keeps("")), "");
    let ran = switch(&told, &lines);
    assert!(ran.out.contains("Two."), "{ran:?}");
    let seen = only(&world, "PostModelSwitch");
    assert_eq!((&seen["from_model"], &seen["to_model"]), (&json!(first), &json!(second)), "{seen}");
    assert_eq!((&seen["requested_model"], &seen["source"]), (&json!(second), &json!("command")));
    for field in ["context_tokens", "estimated_cache_write_usd"] {
        assert!(seen[field].is_number(), "{field}: {seen}");
    }
    assert_eq!((&seen["cache_ttl"], &seen["pricing"]), (&json!("5m"), &json!("default")));
    assert!(seen["prompt_cache_warm"].is_boolean());
    let ran = switch(&hook("PreModelSwitch", "", &keeps("echo too dear >&2; exit 2"), ""), &lines);
    assert!(ran.out.contains("Still one.") && ran.both_outputs().contains("too dear"), "{ran:?}");
    let seen = only(&world, "PreModelSwitch");
    assert_eq!((&seen["to_model"], &seen["source"]), (&json!(second), &json!("command")));
    // What is asked about is confirmed by the same command once more.
    let ask = json!({"permissionDecision": "ask", "permissionDecisionReason": "it costs"});
    let asks = hook("PreModelSwitch", "", &says("PreModelSwitch", &ask), "");
    let ran = switch(&asks, &lines);
    assert!(ran.out.contains("Still one.") && ran.both_outputs().contains("once more"), "{ran:?}");
    let ran = switch(&asks, &format!("go\n/model {second}\n/model {second}\nagain\n"));
    assert!(ran.out.contains("Two."), "{ran:?}");
    // A model that is the same is no change.
    let ran = switch(&(told + &asks), &format!("go\n/model {first}\n"));
    assert!(kept(&world).is_empty() && !ran.both_outputs().contains("costs"), "{ran:?}");
}

#[test]
fn a_compaction_of_its_own_accord_is_asked_about_once_and_left_where_there_is_room() {
    let wire = Wire::OpenAi;
    for (window, has_room) in [(26_000, true), (17_500, false)] {
        let world = World::new();
        let mock = long_talk(wire);
        let hook = hook("PreCompact", "auto", &keeps("echo keep it >&2; exit 2"), "");
        let model = wire.model();
        world.settings(&format!(
            "[models.\"{model}\"]\ncontext = {window}\n[context]\ncompact_percent = 60\n{hook}"
        ));
        let run = |flags: &[&str]| finish(wire.haft(&world, &mock.url(), flags), &Input::Nothing);
        assert_eq!(run(&["-p", "go"]).code, Some(0));
        let ran = run(&["-p", "and now?", "-c"]);
        let seen = only(&world, "PreCompact");
        assert_eq!(
            (&seen["trigger"], &seen["custom_instructions"]),
            (&json!("auto"), &Value::Null)
        );
        let why = "a hook keeps the conversation as it is: keep it";
        if has_room {
            assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Yes.\n"), "{ran:?}");
        } else {
            assert!(ran.code == Some(1) && ran.err.contains(why), "{ran:?}");
        }
        let is_summary = |body: &String| body.contains("You sum up the work");
        assert!(!mock.bodies().iter().any(is_summary), "{window}");
    }
}

#[test]
fn a_model_that_takes_the_place_of_another_is_told() {
    let world = World::new();
    let hook = hook("PostModelSwitch", "openai/mock-2", &keeps(""), "");
    world.settings(&format!("[model]\nretry_seconds = 0\nfallback = 'openai/mock-2'\n{hook}"));
    let wire = Wire::OpenAi;
    let mock = Mock::with(move |_, request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        if body["model"] == "mock-2" {
            return wire.text("Done by the other.");
        }
        HttpResponse::new(529, "application/json", r#"{"error":{"message":"full up"}}"#.to_owned())
    });
    let ran = finish(wire.haft(&world, &mock.url(), &["-p", "go"]), &Input::Nothing);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done by the other.\n"), "{ran:?}");
    let seen = only(&world, "PostModelSwitch");
    assert_eq!(
        (&seen["from_model"], &seen["to_model"]),
        (&json!(wire.model()), &json!("openai/mock-2"))
    );
    assert_eq!((&seen["source"], &seen["requested_model"]), (&json!("auto"), &Value::Null));
}
