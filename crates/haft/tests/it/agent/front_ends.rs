//! Two front ends of one session, by the program of `examples/second_front_end.rs`: line mode, and this
//! test through a socket.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    process::{Child, Stdio},
};

use haft_testkit::machine::make_fifo;
use haft_types::{Body, From};
use serde_json::{Value, json};

use crate::{
    line::terminal::Tmux,
    world::{
        PATIENCE, World, all_calls_ended, collect, ended, example, gone, unique_seconds, until,
    },
};

/// The second front end.
pub(super) struct Second {
    lines: BufReader<UnixStream>,
    stream: UnixStream,
    /// What came, oldest first.
    events: Vec<Value>,
}

impl Second {
    pub(super) fn connect(world: &World) -> Self {
        let path = world.work().join("second.sock");
        let mut stream = None;
        let connected = until(PATIENCE, || {
            stream = UnixStream::connect(&path).ok();
            stream.is_some()
        });
        assert!(connected, "nothing listens at {}", path.display());
        let stream = stream.unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { lines: BufReader::new(stream.try_clone().unwrap()), stream, events: Vec::new() }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Waits for an event that came or comes; later calls look behind it.
    pub(super) fn sees(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Some(at) = self.events.iter().position(&holds) {
                return self.events.drain(..=at).next_back().unwrap();
            }
            let mut line = self.line();
            self.events.push(line["event"].take());
        }
    }

    pub(super) fn send(&mut self, command: &Value) -> Value {
        writeln!(self.stream, "{command}").unwrap();
        loop {
            let mut line = self.line();
            if line.get("answer").is_some() {
                return line["answer"].take();
            }
            self.events.push(line["event"].take());
        }
    }

    fn says(&mut self, text: &str) -> Value {
        let parts = json!([{"type": "text", "text": text}]);
        self.send(&json!({"command": "say", "parts": parts, "when": "follow_up"}))
    }
}

fn is(event: &Value, kind: &str) -> bool {
    event["type"] == kind
}

fn text(text: &str) -> Value {
    json!({"done": "text", "text": text})
}

fn given_back(texts: &[&str]) -> Value {
    let parts: Vec<Value> =
        texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
    json!({"done": "given_back", "parts": parts})
}

fn edits(world: &World) -> String {
    world.file("a.txt", "alpha\n");
    let edit = json!({"name": "edit", "input": {
        "path": "a.txt", "edits": [{"old_text": "alpha", "new_text": "beta"}]}});
    world.script(&[
        json!({"calls": [edit]}),
        json!({"text": "That is done."}),
        json!({"text": "x"}),
    ])
}

fn start(world: &World, model: &str) -> Child {
    let mut command = world.program(example("second_front_end"));
    command.args(["--line", "--model", model]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn what_one_front_end_does_the_other_sees() {
    let world = World::new();
    let model = edits(&world);
    let mut child = start(&world, &model);
    let out = collect(child.stdout.take());
    let mut second = Second::connect(&world);
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "go").unwrap();
    let question = second.sees(|event| is(event, "asked"))["question"]["id"].clone();
    // While the main agent works.
    assert_eq!(second.send(&json!({"command": "mode"})), text("mode ask\n"));
    let busy = second.send(&json!({"command": "undo"}));
    assert_eq!(busy["error"]["error"], "busy");
    assert_eq!(busy["text"], "haft is at work: stop it with Ctrl-C first");
    for (said, ids) in [("one", json!([1])), ("two", json!([1, 2]))] {
        assert_eq!(second.says(said), json!({"done": "nothing"}));
        let queue = second.sees(|event| is(event, "queue"));
        let waiting = queue["waiting"].as_array().unwrap();
        assert_eq!(waiting.iter().map(|one| one["id"].clone()).collect::<Value>(), ids);
    }
    let withdraw = json!({"command": "withdraw", "id": 1});
    assert_eq!(second.send(&withdraw), given_back(&["one"]));
    assert_eq!(
        second.send(&withdraw)["text"],
        "no message 1 waits: it was sent already, or never typed"
    );
    assert_eq!(second.send(&json!({"command": "withdraw"})), given_back(&["two"]));
    // The first answer to a question counts.
    let reply = json!({"command": "reply", "question": question, "reply": {"option": "allow"}});
    assert_eq!(second.send(&reply), json!({"done": "nothing"}));
    let again = second.send(&reply);
    assert_eq!(again["error"]["error"], "refused");
    assert_eq!(again["text"], "the question q1 is settled already, or there is none such");
    second.sees(|event| is(event, "turn_ended"));
    assert_eq!(world.read("a.txt"), "beta\n");
    // While it is idle.
    let mode = json!({"command": "mode", "mode": "accept-edits"});
    assert_eq!(second.send(&mode), text("mode accept-edits\n"));
    let seen = second.sees(|event| is(event, "mode"));
    assert_eq!((&seen["mode"], &seen["by"]), (&json!("accept-edits"), &json!("second")));
    let undone = second.send(&json!({"command": "undo"}));
    assert_eq!(undone["done"], "text", "{undone}");
    assert_eq!(world.read("a.txt"), "alpha\n");
    let gone = second.send(&json!({"command": "interrupt", "agent": ["nobody"]}));
    assert_eq!(gone["error"], json!({"error": "gone"}));
    let unknown = second.send(&json!({"command": "fly"}));
    assert!(unknown["text"].as_str().unwrap().contains("unknown variant `fly`"), "{unknown}");
    second.send(&json!({"command": "end"}));
    assert_eq!(ended(&mut child, PATIENCE).code(), Some(0));
    drop(stdin);
    let out = out.join().unwrap();
    for part in ["? Editing a.txt", "That is done.", "- mode accept-edits (second)"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    all_calls_ended(&world.events());
}

/// A model whose first call waits until [`goes_on`].
fn waiting(world: &World) -> String {
    make_fifo(&world.work().join("fifo"));
    let wait = json!({"name": "bash", "input": {"command": "cat fifo"}});
    world.script(&[
        json!({"calls": [wait]}),
        json!({"text": "That is done."}),
        json!({"text": "The other, too."}),
    ])
}

fn goes_on(world: &World) {
    std::fs::write(world.work().join("fifo"), "x\n").unwrap();
}

/// Line mode in a terminal and a second front end, while a call of [`waiting`] runs.
fn at_work(world: &World) -> (Tmux, Second) {
    let model = waiting(world);
    let tmux = Tmux::start(world);
    let program = example("second_front_end");
    tmux.line(&format!("{} --line --mode bypass --model {model}", program.display()));
    let mut second = Second::connect(world);
    tmux.sees("/help");
    tmux.line("go");
    second.sees(|event| is(event, "call_started"));
    (tmux, second)
}

#[test]
fn a_line_that_waits_is_withdrawn_here_or_there() {
    let world = World::new();
    let (tmux, mut second) = at_work(&world);
    tmux.line("words of the person");
    let queue = second.sees(|event| is(event, "queue"));
    assert_eq!(queue["waiting"][0]["when"], "steer");
    let withdraw = json!({"command": "withdraw"});
    assert_eq!(second.send(&withdraw), given_back(&["words of the person"]));
    tmux.line("other words");
    second.sees(|event| is(event, "queue") && event["waiting"] != json!([]));
    tmux.line("/withdraw");
    second.sees(|event| is(event, "queue") && event["waiting"] == json!([]));
    // It stands in the line being typed again.
    tmux.sees("> other words");
    goes_on(&world);
    second.sees(|event| is(event, "turn_ended"));
    assert!(tmux.screen().contains("That is done."), "{}", tmux.screen());
}

#[test]
fn what_was_read_for_a_line_is_not_typed_into_it() {
    let world = World::new();
    world.file("notes.txt", "what stands in the file\n");
    let (tmux, mut second) = at_work(&world);
    tmux.line("look at @notes.txt");
    let queue = second.sees(|event| is(event, "queue"));
    assert!(queue["waiting"].to_string().contains("what stands in the file"), "{queue}");
    tmux.line("/withdraw");
    second.sees(|event| is(event, "queue") && event["waiting"] == json!([]));
    let prompts = || tmux.screen().matches("> look at @notes.txt").count() == 2;
    assert!(until(PATIENCE, prompts), "{}", tmux.screen());
    let screen = tmux.screen();
    let draft = screen.rsplit("> /withdraw").next().unwrap();
    assert!(!draft.contains("what stands in the file"), "{screen}");
    goes_on(&world);
    second.sees(|event| is(event, "turn_ended"));
}

#[test]
fn a_run_beside_another_front_end_ends_with_the_turns_that_wait() {
    let world = World::new();
    let model = waiting(&world);
    let mut command = world.program(example("second_front_end"));
    command.args(["-p", "go", "--mode", "bypass", "--model", &model, "--output", "stream-json"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let out = collect(child.stdout.take());
    let mut second = Second::connect(&world);
    second.sees(|event| is(event, "call_started"));
    assert_eq!(second.says("and this"), json!({"done": "nothing"}));
    second.sees(|event| is(event, "queue"));
    goes_on(&world);
    assert_eq!(ended(&mut child, PATIENCE).code(), Some(0));
    let out = out.join().unwrap();
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((&last["text"], &last["status"]), (&json!("The other, too."), &json!("done")));
    assert!(out.contains("That is done."), "{out}");
}

#[test]
fn another_front_end_ends_a_run() {
    let world = World::new();
    let seconds = unique_seconds();
    let wait = json!({"name": "bash", "input": {"command": format!("sleep {seconds}")}});
    let model = world.script(&[json!({"calls": [wait]}), json!({"text": "Never."})]);
    let mut command = world.program(example("second_front_end"));
    command.args(["-p", "go", "--mode", "bypass", "--model", &model]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let mut second = Second::connect(&world);
    second.sees(|event| is(event, "call_started"));
    writeln!(second.stream, "{}", json!({"command": "end"})).unwrap();
    let code = ended(&mut child, PATIENCE).code();
    let (out, err) = (out.join().unwrap(), err.join().unwrap());
    assert!(code.is_some_and(|code| code != 0), "{code:?} {out} {err}");
    assert!(!out.contains("Never."), "{out}");
    gone(&seconds);
    all_calls_ended(&world.events());
}

#[test]
fn a_front_end_that_is_gone_answers_nobody() {
    let world = World::new();
    let model = edits(&world);
    let mut child = start(&world, &model);
    let out = collect(child.stdout.take());
    let mut second = Second::connect(&world);
    second.send(&json!({"command": "attend", "there": true}));
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "go").unwrap();
    second.sees(|event| is(event, "asked"));
    drop(stdin);
    drop(second);
    assert_eq!(ended(&mut child, PATIENCE).code(), Some(0));
    assert!(out.join().unwrap().contains("denied"));
    assert_eq!(world.read("a.txt"), "alpha\n");
}

#[test]
fn what_a_front_end_sent_ends_with_the_session() {
    let world = World::new();
    let seconds = unique_seconds();
    let model = world.script(&[json!({"text": "Never."})]);
    let mut child = start(&world, &model);
    let mut second = Second::connect(&world);
    let line = format!("echo x > made; sleep {seconds}");
    writeln!(second.stream, "{}", json!({"command": "mode", "mode": "bypass"})).unwrap();
    writeln!(second.stream, "{}", json!({"command": "run", "line": line})).unwrap();
    second.sees(|event| is(event, "call_started"));
    let parts = json!([{"type": "text", "text": "words that wait"}]);
    writeln!(second.stream, "{}", json!({"command": "say", "parts": parts})).unwrap();
    // It was taken when what stands behind it is done.
    writeln!(second.stream, "{}", json!({"command": "mode", "mode": "ask"})).unwrap();
    second.sees(|event| is(event, "mode"));
    drop(child.stdin.take());
    assert_eq!(ended(&mut child, PATIENCE).code(), Some(0));
    gone(&seconds);
    let events = world.events();
    all_calls_ended(&events);
    let unsent = events.iter().filter(|event| matches!(event.body, Body::Unsent { .. })).count();
    let said =
        events.iter().filter(|event| matches!(event.body, Body::User { from: From::Person, .. }));
    assert_eq!(unsent + said.count(), 1, "it is said or given back: {events:#?}");
}

#[test]
fn no_answer_to_a_command_holds_a_secret() {
    let world = World::new();
    let secret = "token-of-this-test-0123456789abcdef";
    let call = json!({"name": "bash", "input": {"command": format!("echo {secret} > f1")}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "End."})]);
    let mut command = world.program(example("second_front_end"));
    command.args(["--line", "--model", &model]).env("MY_API_TOKEN", secret);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let out = collect(child.stdout.take());
    let mut second = Second::connect(&world);
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "go").unwrap();
    let question = second.sees(|event| is(event, "asked"))["question"]["id"].clone();
    let why = second.send(&json!({"command": "explain", "question": question}));
    assert!(why["text"].as_str().unwrap().contains("f1"), "{why}");
    assert!(!why.to_string().contains(secret), "{why}");
    let wrong = json!({"command": "reply", "question": question, "reply": {"option": "maybe"}});
    let wrong = second.send(&wrong);
    assert!(wrong["text"].as_str().unwrap().contains("\"maybe\" is no answer: give one of allow"));
    drop(stdin);
    second.send(&json!({"command": "end"}));
    drop(second);
    ended(&mut child, PATIENCE);
    assert!(!out.join().unwrap().contains(secret));
}
