//! Two front ends of one session, by the program of `examples/second_front_end.rs`: line mode, and this
//! test through a socket.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    process::{Child, Stdio},
};

use serde_json::{Value, json};

use crate::{
    line::terminal::Tmux,
    world::{PATIENCE, World, all_calls_ended, collect, ended, example, until},
};

/// The second front end.
struct Second {
    lines: BufReader<UnixStream>,
    stream: UnixStream,
    /// What came, oldest first.
    events: Vec<Value>,
}

impl Second {
    fn connect(world: &World) -> Self {
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
    fn sees(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Some(at) = self.events.iter().position(&holds) {
                return self.events.drain(..=at).next_back().unwrap();
            }
            let mut line = self.line();
            self.events.push(line["event"].take());
        }
    }

    fn send(&mut self, command: &Value) -> Value {
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

#[test]
fn a_line_that_waits_is_withdrawn_here_or_there() {
    let world = World::new();
    let fifo = world.work().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let wait = json!({"name": "bash", "input": {"command": "cat fifo"}});
    let model = world.script(&[json!({"calls": [wait]}), json!({"text": "That is done."})]);
    let tmux = Tmux::start(&world);
    let program = example("second_front_end");
    tmux.line(&format!("{} --line --mode bypass --model {model}", program.display()));
    let mut second = Second::connect(&world);
    tmux.sees("/help");
    tmux.line("go");
    second.sees(|event| is(event, "call_started"));
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
    std::fs::write(&fifo, "x\n").unwrap();
    second.sees(|event| is(event, "turn_ended"));
    assert!(tmux.screen().contains("That is done."), "{}", tmux.screen());
}
