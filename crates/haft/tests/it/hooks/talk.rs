//! Hooks of a talk, and hooks over MCP and HTTP: what is said, how turns and talks begin and end.

use std::fs;

use haft_testkit::{
    http::{HttpResponse, HttpServer},
    machine,
};
use haft_types::{Body, From, Part};
use serde_json::{Value, json};

use super::calls::{hook, prints};
use crate::{
    mcp_client::Client,
    world::{Input, Ran, World, finish},
};

fn print(world: &World, answers: &[Value], flags: &[&str]) -> Ran {
    let model = world.script(answers);
    world.run(&[&["-p", "go on", "--model", &model][..], flags].concat())
}

/// What was said to the model, each with who said it.
fn said(world: &World) -> Vec<(From, String)> {
    let said = |body: Body| match body {
        Body::User { from, parts } => {
            let texts = parts.into_iter().filter_map(|part| match part {
                Part::Text { text } => Some(text),
                _ => None,
            });
            Some((from, texts.collect::<Vec<_>>().join("\n")))
        }
        _ => None,
    };
    world.events().into_iter().filter_map(|event| said(event.body)).collect()
}

/// A hook that keeps each thing that it gets as a line of this file of the workspace.
fn keeps(file: &str) -> String {
    format!("(cat; echo) >> \"$HAFT_PROJECT_DIR/{file}\"")
}

fn kept(world: &World, file: &str) -> Vec<Value> {
    world.read(file).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn what_hooks_add_to_a_talk_stands_where_it_belongs() {
    let world = World::new();
    let context = json!({"hookSpecificOutput": {"hookEventName": "UserPromptSubmit",
        "additionalContext": "it is Friday"}});
    world.settings(&format!(
        "{}{}{}{}",
        hook("SessionStart", "startup", "cat > /dev/null; echo the branch is main", ""),
        hook("SessionStart", "resume", "echo resumed", ""),
        hook("UserPromptSubmit", "", &prints(&context), ""),
        hook("SessionEnd", "", &keeps("end.jsonl"), ""),
    ));
    let ran = print(&world, &[json!({"text": "Done."})], &[]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "Done.\n", ""));
    let hook = |event: &str, text: &str| (From::Hook(event.to_owned()), text.to_owned());
    assert_eq!(
        said(&world),
        [
            hook("SessionStart", "[a hook adds: the branch is main]"),
            (From::Person, "go on".to_owned()),
            hook("UserPromptSubmit", "[a hook adds: it is Friday]"),
        ]
    );
    let end = &kept(&world, "end.jsonl")[0];
    assert_eq!((&end["reason"], &end["hook_event_name"]), (&json!("other"), &json!("SessionEnd")));
}

/// There is nothing that it could be compared with.
#[test]
fn a_matcher_switches_no_hook_of_prompts_off() {
    for matcher in ["x", "Bash|Edit", "^no.*"] {
        let world = World::new();
        world.settings(&hook("UserPromptSubmit", matcher, "exit 2", ""));
        let model = world.script(&[json!({"text": "Done."})]);
        let ran = world.run(&["-p", "hello", "--model", &model]);
        assert!(ran.code == Some(1) && ran.err.contains("refused this message"), "{ran:?}");
        assert_eq!(said(&world), []);
    }
}

#[test]
fn a_prompt_that_is_refused_is_not_sent() {
    let world = World::new();
    let guard = "if grep -q password; then echo no passwords >&2; exit 2; fi";
    world.settings(&hook("UserPromptSubmit", "", guard, ""));
    let model = world.script(&[json!({"text": "Done."})]);
    let ran = world.run(&["-p", "my password is x", "--model", &model]);
    assert!(ran.code == Some(1) && ran.out.is_empty(), "{ran:?}");
    assert!(ran.err.contains("a hook refused this message: no passwords"), "{ran:?}");
    assert_eq!(said(&world), []);
    // In a talk the next one is sent as ever.
    let lines = Input::Pipe("the password\nhello\n");
    let ran = world.run_with(&["--line", "--model", &model], &lines);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("a hook refused this message: no passwords"), "{ran:?}");
    assert!(ran.out.contains("Done."), "{ran:?}");
    for (command, closed) in [("exit 1", false), ("exit 1", true)] {
        let world = World::new();
        let more = if closed { "fail_closed = true" } else { "" };
        world.settings(&hook("UserPromptSubmit", "", command, more));
        let ran = print(&world, &[json!({"text": "Done."})], &[]);
        assert_eq!(ran.code, Some(i32::from(closed)), "{ran:?}");
        assert!(ran.err.contains("failed") && ran.err.contains("exit code 1"), "{ran:?}");
    }
}

#[test]
fn a_turn_goes_on_until_its_hooks_let_it_end() {
    let world = World::new();
    // Refuses the end once, as scripts do it that look at `stop_hook_active`.
    let once = "tee -a \"$HAFT_PROJECT_DIR/stop.jsonl\" | grep -q '\"stop_hook_active\":true' || \
                { echo >> \"$HAFT_PROJECT_DIR/stop.jsonl\"; echo the tests do not pass >&2; exit 2; }";
    world.settings(&hook("Stop", "", once, ""));
    let answers =
        [json!({"text": "First."}), json!({"text": "Second."}), json!({"text": "Third."})];
    let ran = print(&world, &answers, &[]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Second.\n"), "{ran:?}");
    let text = "A hook says that you are not done: the tests do not pass".to_owned();
    assert_eq!(said(&world)[1], (From::Hook("Stop".to_owned()), text));
    let stops = kept(&world, "stop.jsonl");
    let told =
        |stop: &Value| (stop["stop_hook_active"].clone(), stop["last_assistant_message"].clone());
    assert_eq!(
        stops.iter().map(told).collect::<Vec<_>>(),
        [(json!(false), json!("First.")), (json!(true), json!("Second."))]
    );
    // One that never lets it end.
    let world = World::new();
    let answer = json!({"decision": "block", "reason": "more"});
    world.settings(&hook("Stop", "", &prints(&answer), ""));
    let answers: Vec<Value> = (1..=12).map(|n| json!({"text": format!("Answer {n}.")})).collect();
    let ran = print(&world, &answers, &[]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Answer 9.\n"), "{ran:?}");
    assert!(ran.err.contains("hooks let this turn go on 8 times"), "{ran:?}");
}

#[test]
fn a_hook_ends_a_turn_and_an_interrupt_ends_a_hook() {
    let world = World::new();
    let end = json!({"continue": false, "stopReason": "the budget is used up"});
    world.settings(&hook("PreToolUse", "Read", &prints(&end), ""));
    world.file("a", "x");
    let call = json!({"calls": [{"name": "read", "input": {"path": "a"}}]});
    let ran = print(&world, &[call, json!({"text": "Not said."})], &["--output", "json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let result = ran.json();
    assert_eq!((&result["steps"], &result["status"]), (&json!(1), &json!("failed")), "{result}");
    assert!(ran.out.contains("a hook ended the turn: the budget is used up"), "{ran:?}");
    assert_eq!(world.outcomes()[0]["status"], "denied");
    // A limit of time ends what hangs, and its processes.
    let world = World::new();
    world.settings(&hook("UserPromptSubmit", "", "echo $$ > pid; sleep 1000", ""));
    let ran = print(&world, &[json!({"text": "Done."})], &["--max-time", "1"]);
    assert!(ran.code == Some(1) && ran.err.contains("the limit of 1 s"), "{ran:?}");
    let pid = world.read("pid");
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists());
}

#[test]
fn hooks_count_over_mcp_too() {
    let world = World::new();
    let rewrite = json!({"hookSpecificOutput": {"updatedInput": {"command": "echo rewritten"}}});
    world.settings(&format!(
        "{}{}",
        hook("PreToolUse", "Write", "echo never >&2; exit 2", ""),
        hook("PreToolUse", "Bash", &prints(&rewrite), "")
    ));
    let mut client = Client::greeted(&world, &["--mode", "bypass"]);
    let refused = client.call("write", &json!({"path": "a", "content": "x"}));
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(refused.to_string().contains("a hook refused this call: never"), "{refused}");
    let ran = client.call("bash", &json!({"command": "echo written"}));
    assert!(ran["result"]["content"][0]["text"] == "rewritten", "{ran}");
    client.ends_well();
}

#[test]
fn a_hook_answers_in_place_of_the_person() {
    let answer = |decision: Value| {
        let specific = json!({"hookEventName": "PermissionRequest", "decision": decision});
        prints(&json!({ "hookSpecificOutput": specific }))
    };
    let call = json!({"calls": [{"name": "bash", "input": {"command": "touch made"}}]});
    let end = json!({"text": "End."});
    for (decision, rules, made, said) in [
        (json!({"behavior": "allow"}), "", true, ""),
        (json!({"behavior": "allow"}), "[permissions]\nask = ['Bash']", false, "the ask rule"),
        (
            json!({"behavior": "deny", "message": "never"}),
            "",
            false,
            "a hook refused this call: never",
        ),
        (
            json!({"behavior": "allow", "updatedInput": {"command": "touch other made"}}),
            "",
            true,
            "",
        ),
    ] {
        let world = World::new();
        world.settings(&(hook("PermissionRequest", "Bash", &answer(decision), "") + rules));
        let ran = print(&world, &[call.clone(), end.clone()], &[]);
        assert_eq!(world.work().join("made").exists(), made, "{ran:?}");
        assert!(ran.err.contains(said), "{ran:?}");
    }
}

/// Settings with a hook that is an address.
fn at_address(url: &str) -> String {
    format!(
        "[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = 'http'\nurl = '{url}/hook'\n\
         headers = {{ x-who = '$USER_OF_TEST' }}\nallowedEnvVars = ['USER_OF_TEST']\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_asked_where_the_person_named_it() {
    let answer = json!({"decision": "block", "reason": "by the server"}).to_string();
    for (status, body, refused) in [
        (200, answer.as_str(), true),
        (200, "", false),
        (500, "", false),
        (302, "", false),
        (200, "<html>", false),
    ] {
        let world = World::new();
        let response = HttpResponse::new(status, "application/json", body.to_owned());
        let server = HttpServer::start(vec![response]).await.unwrap();
        let settings = at_address(&server.url());
        world.settings(&settings);
        let call = ["tool", "bash", "--input", "{\"command\": \"echo hi\"}"];
        let mut command = world.haft(&call);
        command.env("USER_OF_TEST", "me");
        let ran = finish(command, &Input::Nothing);
        assert_eq!(ran.code, Some(i32::from(refused)), "{status} {body}: {ran:?}");
        assert_eq!(ran.both_outputs().contains("by the server"), refused, "{ran:?}");
        let failed = (status, body) != (200, "") && !refused;
        assert_eq!(ran.err.contains("failed"), failed, "{status} {body}: {ran:?}");
        let requests = server.requests();
        let seen: Value = serde_json::from_slice(&requests[0].body).unwrap();
        assert_eq!((requests.len(), &seen["tool_name"]), (1, &json!("Bash")));
        assert_eq!(requests[0].header("x-who"), Some("me"));
        // A project names it in vain, unless the person does as well.
        world.settings("");
        world.file(".haft/settings.toml", &settings);
        let ran = world.run(&[&call[..], &["--trust"]].concat());
        assert!(ran.code == Some(0) && ran.err.contains("this machine itself"), "{ran:?}");
        assert!(ran.err.contains("a project's hooks send no variables"), "{ran:?}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_hook_of_python_sees_a_talk_and_its_calls() {
    let world = World::new();
    let script = world.root().join("log.py");
    fs::write(&script, "import json, os, sys\ndata = json.load(sys.stdin)\nwith open(os.environ['CLAUDE_PROJECT_DIR'] + '/log', 'a') as log:\n    log.write(data['hook_event_name'] + '\\n')\n").unwrap();
    let command = format!("{} {}", machine::python().display(), script.display());
    let events =
        ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"];
    let groups = |_: &&str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let hooks: serde_json::Map<String, Value> =
        events.iter().map(|event| ((*event).to_owned(), groups(event))).collect();
    let home = world.root().join("home/.claude");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("settings.json"), json!({ "hooks": hooks }).to_string()).unwrap();
    let call = json!({"calls": [{"name": "ls", "input": {}}]});
    let ran = print(&world, &[call, json!({"text": "End."})], &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(world.read("log").lines().collect::<Vec<_>>(), events);
}
