//! Each line of `stream-json` is as `docs/output.schema.json` says, and the last one is what `json`
//! prints.

use std::collections::BTreeSet;

use haft_testkit::{
    http::{HttpRequest, HttpResponse, Step},
    schema::{Schema, damaged},
};
use serde_json::{Value, json};

use crate::{
    mock_provider::{Mock, Wire},
    world::{Input, Ran, World, finish, signal, until},
};

const SCHEMA: &str = include_str!("../../../../../docs/output.schema.json");

/// What is left open on purpose: arguments, data and drawings are their tools'.
const OPEN: [&str; 4] = ["input", "data", "preview", "structured_output"];
/// Fields that a line may do without, where its type or place tells.
const OPTIONAL: [&str; 9] = [
    "result/requests/cache/expected",
    "result/requests/cache/changed",
    "session/name",
    "session/fork",
    "piece/tool",
    "result/files/caption",
    "*/agent",
    "*/changes/from",
    "*/parts/raw",
];

fn bash(command: &str) -> Value {
    json!({"name": "bash", "input": {"command": command}})
}

fn end() -> Value {
    json!({"text": "End."})
}

/// Reports whether the schema is to say no to a line that is damaged there.
fn is_wrong(line: &Value, at: &str) -> bool {
    let (path, how) = at.rsplit_once(' ').unwrap();
    let is_removed = how == "removed";
    let names: Vec<&str> =
        path.split('/').filter(|name| name.parse::<usize>().is_err() && !name.is_empty()).collect();
    if let Some(open) = names.iter().position(|name| OPEN.contains(name)) {
        return is_removed && open + 1 == names.len();
    }
    let path = names.join("/");
    let may_go = |optional: &str| {
        let (kind, field) = optional.split_once('/').unwrap();
        field == path && (kind == "*" || line["type"] == kind)
    };
    !(is_removed && OPTIONAL.iter().any(|optional| may_go(optional)))
}

/// Has tools that are not on by default.
const ON_DEMAND: &[&str] = &["--tools", "brief,send_file"];

/// Runs of a script: what it says, and with which flags.
fn scripts() -> Vec<(Vec<Value>, &'static [&'static str])> {
    let calls = |calls: &[Value]| vec![json!({ "calls": calls }), end()];
    let read = |path: &str| json!({"name": "read", "input": {"path": path}});
    let edit = json!({"name": "edit", "input": {"path": "a.txt", "edits": [
        {"old_text": "alpha", "new_text": "beta"}]}});
    let write = json!({"name": "write", "input": {"path": "new.txt", "content": "new\n"}});
    let begin = |command: &str| json!({"name": "bash", "input": {"command": command, "run_in_background": true}});
    let wait = json!({"name": "job", "input": {"action": "wait", "job_id": "j1"}});
    let brief = json!({"name": "brief", "input": {"text": "Half of it is done."}});
    let send = |path: &str, caption: Option<&str>| json!({"name": "send_file", "input": {"path": path, "caption": caption}});
    let bypass: &[&str] = &["--mode", "bypass"];
    let usage = json!({"input": 10, "cache_read": 2, "cache_write": 3, "output": 4});
    let failing = |kind: &str| json!({"error": {"kind": kind, "message": "no"}});
    vec![
        (vec![json!({"text": "Hello.", "usage": usage})], &[]),
        (vec![json!({"thinking": "Let me see.", "text": "Hello."})], &[]),
        (vec![json!({"text": ""})], &[]),
        (calls(&[read("a.txt")]), &[]),
        (calls(&[read("red.png")]), &[]),
        (calls(&[read("missing.txt")]), &[]),
        (calls(&[json!({"name": "todo", "input": {"items": [{"text": "Read it"}]}})]), &[]),
        (calls(&[brief, send("a.txt", Some("It.")), send("b.txt", None)]), ON_DEMAND),
        (calls(&[read("a.txt"), read("b.txt"), read("red.png")]), &[]),
        (calls(&[json!({"name": "nothing", "input": {}})]), &[]),
        (calls(&[json!({"name": "read", "input": {"paths": 3}})]), &[]),
        (calls(&[json!({"name": "read", "raw": "{\"path\": "})]), &[]),
        (calls(&[edit.clone(), write.clone()]), &["--mode", "accept-edits"]),
        (calls(&[edit.clone(), bash("bash -n a.txt"), bash("bash -n b.txt | cat")]), bypass),
        (calls(std::slice::from_ref(&edit)), &[]),
        (calls(&[edit.clone(), bash("touch x")]), &["--mode", "plan"]),
        (calls(&[edit, read("b.txt")]), &["--mode", "auto", "--deny", "Edit(/a.txt)"]),
        (calls(&[bash("rm b.txt")]), &["--mode", "bypass", "--deny", "Bash(rm:*)"]),
        (calls(&[bash("echo out; echo err >&2; exit 3")]), bypass),
        (calls(&[bash("mv a.txt c.txt; rm b.txt; touch d.txt")]), bypass),
        (
            calls(&[json!({"name": "bash", "input": {"command": "sleep 9", "timeout_ms": 100}})]),
            bypass,
        ),
        (calls(&[begin("touch made; exit 4"), wait.clone()]), bypass),
        (calls(&[begin("sleep 60")]), bypass),
        (
            calls(&[
                begin("until [ -e go ]; do sleep 0.02; done; touch made"),
                // Not by a command: what the job makes might be found as what that has made.
                json!({"name": "write", "input": {"path": "go", "content": "now"}}),
                wait,
            ]),
            bypass,
        ),
        (calls(&[write]), &["--mode", "dont-ask"]),
        (calls(&[read("a.txt")]), &["--max-turns", "1"]),
        (vec![json!({"text": "No.", "stop": "refusal"})], &[]),
        (vec![json!({"text": "And then", "stop": "length"})], &[]),
        (vec![failing("rejected")], &[]),
        (vec![failing("cut"), json!({"text": "Now."})], &[]),
        (vec![json!({"text": "Half", "error": {"kind": "protocol", "message": "broke"}})], &[]),
        (vec![], &["--no-such-flag"]),
        (vec![json!({"text": "hi"})], &["--append-system-prompt", "Be short."]),
    ]
}

fn world() -> World {
    let world = World::new();
    world.settings("[model]\nretry_seconds = 1\n");
    world.file("a.txt", "alpha\n");
    world.file("b.txt", "bravo\n");
    world.file("red.png", include_bytes!("../red.png"));
    world
}

/// What the lines of a run say, each of which fits.
fn fitting(schema: &Schema, ran: &Ran) -> Vec<Value> {
    let lines = ran.lines();
    for line in &lines {
        assert!(schema.fits(line), "{line}\n{ran:?}");
    }
    let results = lines.iter().filter(|line| line["type"] == "result").count();
    assert!(results == 1 && lines.last().unwrap()["type"] == "result", "{ran:?}");
    lines
}

/// A run of a script.
fn streamed(world: &World, script: &[Value], flags: &[&str]) -> Ran {
    let model = world.script(script);
    let fixed = ["-p", "go", "--model", &model, "--output", "stream-json"];
    world.run(&[&fixed, flags].concat())
}

/// Runs whose lines are looked at.
fn runs() -> Vec<Ran> {
    let scripts = scripts().into_iter();
    let mut all: Vec<Ran> =
        scripts.map(|(script, flags)| streamed(&world(), &script, flags)).collect();
    // One goes on with a session, and one attaches a file.
    let goes_on = world();
    let one = json!({"text": "One."});
    all.push(streamed(&goes_on, std::slice::from_ref(&one), &["@a.txt", "--name", "n"]));
    all.push(streamed(&goes_on, &[one, json!({"text": "Two."})], &["-c"]));
    // Warnings, what a wire streams of calls, and what it refuses.
    let warned = world();
    warned.file("AGENTS.md", include_bytes!("../red.png"));
    let wire = Wire::Anthropic;
    let calls = wire.calls("a", &[("ls", json!({})), ("bash", json!({"command": "seq 3"}))]);
    let flags = ["-p", "go", "--mode", "bypass", "--output", "stream-json"];
    let no = |_, _: &HttpRequest| HttpResponse::new(401, "application/json", "{}".to_owned());
    for mock in [Mock::new(vec![calls, wire.text("End.")]), Mock::with(no)] {
        all.push(finish(wire.haft(&warned, &mock.url(), &flags), &Input::Nothing));
    }
    all
}

#[test]
fn each_line_of_stream_json_is_as_its_schema_says() {
    let schema = Schema::new(SCHEMA).unwrap();
    let all = runs();
    assert!(all.len() >= 30, "{}", all.len());
    let mut seen = BTreeSet::new();
    let mut damages = 0;
    for ran in &all {
        for line in fitting(&schema, ran) {
            seen.insert(line["type"].as_str().unwrap().to_owned());
            for (at, wrong) in damaged(&line).into_iter().filter(|(at, _)| is_wrong(&line, at)) {
                damages += 1;
                assert!(!schema.fits(&wrong), "{at}: {wrong}");
            }
        }
    }
    assert!(damages > 1_000, "{damages}");
    // Words wait for a turn where somebody types them while another one runs: not here.
    let named = schema.text["oneOf"].as_array().unwrap().iter();
    let named = named.map(|one| one["$ref"].as_str().unwrap().rsplit('/').next().unwrap());
    let missing: Vec<&str> = named.filter(|name| !seen.contains(*name)).collect();
    assert_eq!(missing, ["unsent"], "{seen:?}");
}

#[test]
fn the_last_line_of_stream_json_is_what_json_prints() {
    let schema = Schema::new(SCHEMA).unwrap();
    let calls = [bash("touch x"), json!({"name": "read", "input": {"path": "a.txt"}})];
    let script = [json!({"text": "I look.", "calls": calls}), end()];
    let world = world();
    let model = world.script(&script);
    let last = |output: &str| {
        let fixed = ["-p", "go", "--model", &model, "--output", output];
        let ran = world.run(&[&fixed[..], &["--deny", "Read(/a.txt)"]].concat());
        let mut last = fitting(&schema, &ran).pop().unwrap();
        for field in ["session", "took_ms"] {
            last.as_object_mut().unwrap().remove(field);
        }
        last
    };
    let (one, other) = (last("json"), last("stream-json"));
    assert_eq!(one, other);
    let denials = one["denials"].as_array().unwrap();
    assert_eq!(denials.len(), 2, "{one}");
    let of = |tool: &str| denials.iter().find(|denial| denial["tool"] == tool).unwrap();
    let (asked, denied) = (of("bash"), of("read"));
    assert_eq!((&asked["call"], &asked["rule"]), (&json!("c1"), &Value::Null), "{one}");
    assert_eq!(asked["input"]["command"], "touch x", "{one}");
    assert!(asked["reason"].as_str().unwrap().contains("nobody can be asked"), "{one}");
    assert_eq!(denied["rule"], "Read(/a.txt)", "{one}");
    assert_eq!((&denied["input"]["path"], &one["text"]), (&json!("a.txt"), &json!("End.")));
}

#[test]
fn whole_messages_stand_beside_their_pieces() {
    let world = world();
    let call = json!({"name": "read", "input": {"path": "a.txt"}});
    let first = json!({"thinking": "Hm.", "text": "I look.", "calls": [call]});
    let model = world.script(&[first, json!({"text": "It says alpha."})]);
    let ran = world.run(&["-p", "hi", "--model", &model, "--output", "stream-json"]);
    let lines = ran.lines();
    // The first one names the session, so that a program can go on with it.
    assert_eq!(lines[0]["session"], json!(world.only_session()));
    let of =
        |kind: &str| -> Vec<&Value> { lines.iter().filter(|one| one["type"] == kind).collect() };
    let answers = of("assistant");
    assert_eq!(answers.len(), 2, "{ran:?}");
    assert_eq!(
        answers[0]["parts"],
        json!([
            {"type": "thinking", "text": "Hm."},
            {"type": "text", "text": "I look."},
            {"type": "call", "call": "c1", "tool": "read", "input": {"path": "a.txt"}},
        ])
    );
    let pieces: String = of("piece")
        .into_iter()
        .filter(|piece| piece["of"] == "text")
        .map(|piece| piece["text"].as_str().unwrap())
        .collect();
    assert_eq!(pieces, "I look.It says alpha.");
    let result = of("call_result")[0];
    assert_eq!((&result["tool"], &result["status"]), (&json!("read"), &json!("done")));
    assert!(result["parts"][0]["text"].as_str().unwrap().contains("alpha"), "{result}");
    // What haft keeps for itself is in its log alone.
    for inner in ["pinned", "state", "receipts", "pre_image", "signature", "wire_id"] {
        assert!(!ran.out.contains(&format!("\"{inner}\"")), "{inner}: {ran:?}");
    }
}

#[test]
fn a_run_that_cannot_begin_has_a_result_too() {
    let (schema, world) = (Schema::new(SCHEMA).unwrap(), world());
    let model = world.script(&[end()]);
    let missing = format!("script:{}", world.work().join("missing.jsonl").display());
    let ends = |more: &[&str], status: &str, code: i32| {
        for output in ["json", "stream-json"] {
            let ran = world.run(&[&["-p", "go", "--output", output], more].concat());
            assert_eq!(ran.lines().len(), 1, "{ran:?}");
            let last = fitting(&schema, &ran).pop().unwrap();
            assert_eq!((&last["status"], ran.code), (&json!(status), Some(code)), "{ran:?}");
            assert!(!last["error"].as_str().unwrap().is_empty(), "{ran:?}");
        }
    };
    ends(&["--model", &model, "-r", "no-such-session"], "usage", 2);
    ends(&["--model", &missing], "usage", 2);
    ends(&["--model", &model, "--mode", "no-such-mode"], "usage", 2);
    std::fs::write(world.state().join("sessions"), "").unwrap();
    ends(&["--model", &model], "failed", 1);
}

#[test]
fn a_run_that_is_stopped_ends_with_its_result() {
    let (schema, world) = (Schema::new(SCHEMA).unwrap(), world());
    let model = world.script(&[json!({"calls": [bash("touch begun; sleep 60")]}), end()]);
    let flags = ["-p", "go", "--model", &model, "--mode", "bypass", "--output", "stream-json"];
    let mut haft = world.haft(&flags);
    let child = haft.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let begun = world.work().join("begun");
    assert!(until(std::time::Duration::from_secs(30), || begun.exists()));
    signal("TERM", child.id());
    let done = child.wait_with_output().unwrap();
    let out = String::from_utf8(done.stdout).unwrap();
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| schema.fits(line)), "{out}");
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["type"], &last["status"]),
        (&json!("result"), &json!("interrupted")),
        "{out}"
    );
}

#[test]
fn a_run_that_is_stopped_before_its_prompt_is_sent_ends_with_its_result() {
    let (schema, world) = (Schema::new(SCHEMA).unwrap(), world());
    let begun = world.root().join("begun");
    world.settings(&format!(
        "[[hooks.SessionStart]]\n[[hooks.SessionStart.hooks]]\ntype = \"command\"\n\
         command = \"touch '{}'; sleep 60\"\n",
        begun.display()
    ));
    let model = world.script(&[end()]);
    let flags = ["-p", "go", "--model", &model, "--output", "stream-json"];
    let child = world.haft(&flags).stdout(std::process::Stdio::piped()).spawn().unwrap();
    assert!(until(std::time::Duration::from_secs(30), || begun.exists()));
    signal("INT", child.id());
    let done = child.wait_with_output().unwrap();
    let out = String::from_utf8(done.stdout).unwrap();
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| schema.fits(line)), "{out}");
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["type"], &last["status"]),
        (&json!("result"), &json!("interrupted")),
        "{out}"
    );
    assert_eq!(done.status.code(), Some(1));
}

#[test]
fn the_text_is_that_of_whole_answers_and_nothing_else_counts_as_one() {
    let world = world();
    let go = |script: &[Value]| {
        let model = world.script(script);
        world.run(&["-p", "go", "--model", &model, "--output", "json"]).json()
    };
    // What streamed of an answer that is asked for again is void, and one that was paused goes on.
    let (wire, text) = (Wire::Anthropic, |response: &HttpResponse| match &response.steps[0] {
        Step::Send(body) => String::from_utf8(body.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    });
    let paused = text(&wire.text("half one, ")).replace("end_turn", "pause_turn");
    let void = text(&wire.text("void"));
    let (void, _) = void.split_once("event: content_block_stop").unwrap();
    let answers = [paused, void.to_owned()].map(HttpResponse::events);
    let mock = Mock::new(answers.into_iter().chain([wire.text("half two")]).collect());
    let flags = ["-p", "go", "--output", "json"];
    let result = finish(wire.haft(&world, &mock.url(), &flags), &Input::Nothing).json();
    assert_eq!((&result["text"], &result["steps"]), (&json!("half one, half two"), &json!(2)));
    // What came before a failure stays.
    let call = json!({"name": "read", "input": {"path": "a.txt"}});
    let failed = json!({"error": {"kind": "rejected", "message": "no"}});
    let result = go(&[json!({"text": "I look.", "calls": [call]}), failed]);
    assert_eq!((&result["text"], &result["status"]), (&json!("I look."), &json!("failed")));
    // An answer that never came is none.
    let model = world.script(&[json!({"text": "late", "delay_ms": 60_000})]);
    let flags = ["-p", "go", "--model", &model, "--output", "json", "--max-time", "1"];
    let result = world.run(&flags).json();
    assert_eq!((&result["steps"], &result["model"]), (&json!(0), &Value::Null), "{result}");
    assert_eq!(result["status"], "limit", "{result}");
}

#[test]
fn a_run_whose_output_nobody_reads_ends_by_its_limit_and_by_signals() {
    let world = world();
    let late = world.root().join("late");
    let bash = |command: &str| json!({"calls": [{"name": "bash", "input": {"command": command}}]});
    // More than a pipe and all that waits before it take.
    let script: Vec<Value> = (0..30)
        .map(|number| bash(&format!("seq {number} 20000")))
        .chain([bash(&format!("touch '{}'", late.display()))])
        .chain([json!({"text": "word ".repeat(40_000)})])
        .collect();
    let model = world.script(&script);
    for output in ["stream-json", "json", "text"] {
        for flags in [&["--max-time", "2"][..], &[]] {
            let shared = ["-p", "go", "--mode", "bypass", "--model", &model, "--output", output];
            let mut haft = world.haft(&[&shared[..], flags].concat());
            let (out, said) = (std::process::Stdio::piped(), std::process::Stdio::null());
            let mut child = haft.stdout(out).stderr(said).spawn().unwrap();
            let out = child.stdout.take();
            let minute = std::time::Duration::from_mins(1);
            // Signals come once all is stuck, again and again.
            assert!(flags.len() == 2 || until(minute, || late.exists()));
            drop(std::fs::remove_file(&late));
            let ended = until(minute, || {
                let is_running = child.try_wait().unwrap().is_none();
                if is_running && flags.is_empty() {
                    signal("INT", child.id());
                }
                !is_running
            });
            drop(child.kill());
            drop(out);
            assert!(ended, "{output} {flags:?}");
        }
    }
}
