//! The client of `haft mcp` that the tests share: it writes what it is told, well-formed or not, and
//! hears in the background, so that neither side ever waits for the other to read.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread::{self, JoinHandle},
    time::Duration,
};

use haft_testkit::machine;
use serde_json::{Value, json};

use crate::world::{Input, PATIENCE, Ran, World, collect, ended};

/// How long a server may take to end.
const END: Duration = Duration::from_secs(20);

/// A running server and this end of its pipes.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    /// What the server writes, where nobody reads it.
    unread: Option<ChildStdout>,
    heard: Receiver<Value>,
    errors: JoinHandle<String>,
    /// What was told beside answers, as far as answers were waited for.
    pub notices: Vec<Value>,
    asked: u64,
}

/// What a server left.
#[derive(Debug)]
pub struct End {
    pub code: Option<i32>,
    /// Standard error.
    pub errors: String,
    /// Everything that no answer was.
    pub notices: Vec<Value>,
}

impl Client {
    /// A server with these flags, to which no word was said yet.
    pub fn start(world: &World, flags: &[&str]) -> Self {
        Self::of(world.haft(&[&["mcp"], flags].concat()))
    }

    /// A server that was greeted by a client without capabilities.
    pub fn greeted(world: &World, flags: &[&str]) -> Self {
        let mut client = Self::start(world, flags);
        client.greet(&json!({}));
        client
    }

    /// Any command that serves.
    pub fn of(command: Command) -> Self {
        let mut client = Self::deaf(command);
        let (tell, heard) = channel();
        let output = BufReader::new(client.unread.take().unwrap());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
                // Whoever wants no more has gone.
                drop(tell.send(message));
            }
        });
        client.heard = heard;
        client
    }

    /// A client that never reads what the server writes.
    pub fn deaf(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let errors = collect(child.stderr.take());
        let (input, unread) = (child.stdin.take(), child.stdout.take());
        let (heard, notices) = (channel().1, Vec::new());
        Self { child, input, unread, heard, errors, notices, asked: 0 }
    }

    /// The first request and the word that its answer was heard; gives the answer.
    pub fn greet(&mut self, capabilities: &Value) -> Value {
        self.request(&json!("hello"), "initialize", &hello(capabilities));
        let answer = self.answer(&json!("hello"));
        assert_eq!(answer["result"]["serverInfo"]["name"], "haft", "{answer}");
        self.send(READY);
        answer
    }

    /// The id of the server's process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// The most memory that the server had so far, in MiB.
    pub fn peak(&self) -> u64 {
        machine::peak_of(self.process()) >> 20
    }

    /// Writes bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Writes a line.
    pub fn send(&mut self, line: impl AsRef<[u8]>) {
        self.write(&[line.as_ref(), b"\n"].concat());
    }

    pub fn request(&mut self, id: &Value, method: &str, params: &Value) {
        self.send(
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
    }

    /// Calls a tool under an id of the test's, and waits for nothing.
    pub fn begin(&mut self, id: &Value, tool: &str, arguments: &Value) {
        self.request(id, "tools/call", &json!({"name": tool, "arguments": arguments}));
    }

    pub fn cancel(&mut self, id: &Value) {
        let params = json!({"requestId": id});
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        self.send(cancel.to_string());
    }

    /// The next message, whatever it is.
    pub fn hear(&self) -> Value {
        self.heard.recv_timeout(PATIENCE).expect("no message in time")
    }

    /// The next message with an id; others before it are notices.
    pub fn next(&mut self) -> Value {
        loop {
            let message = self.hear();
            if message.get("id").is_some() {
                return message;
            }
            self.notices.push(message);
        }
    }

    /// The answer with this id, which must be the next one.
    fn answer(&mut self, id: &Value) -> Value {
        let answer = self.next();
        assert_eq!(answer["id"], *id, "{answer}");
        answer
    }

    /// A request and its answer.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let id = json!(format!("asked {}", self.asked));
        self.request(&id, method, params);
        self.answer(&id)
    }

    /// A call of a tool and its answer.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// A good call works, and nothing else was on its way.
    pub fn is_well(&mut self) {
        let answer = self.call("ls", &json!({}));
        assert_ne!(answer["result"]["isError"], json!(true), "{answer}");
    }

    /// Ends the client's side as a client does that is done.
    pub fn end(mut self) -> End {
        drop(self.input.take());
        let code = ended(&mut self.child, END).code();
        drop(self.unread.take());
        self.notices.extend(self.heard.iter());
        End { code, errors: self.errors.join().unwrap(), notices: self.notices }
    }

    /// Ends as [`end`](Self::end), which must be a good one.
    pub fn ends_well(self) {
        let end = self.end();
        assert_eq!(end.code, Some(0), "{end:?}");
    }

    /// Ends both of the client's sides at once, as when it is killed; gives the exit code. Only for
    /// one that reads nothing.
    pub fn killed(mut self) -> Option<i32> {
        let unread = self.unread.take().expect("another thread reads");
        drop((self.input.take(), unread));
        ended(&mut self.child, END).code()
    }

    /// Waits for a server that was told to end by a signal; gives the exit code.
    pub fn ended(&mut self) -> Option<i32> {
        ended(&mut self.child, END).code()
    }
}

const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The parameters of the first request.
pub fn hello(capabilities: &Value) -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"}})
}

/// Everything at once, as a script says it that then ends its side: a greeting, then these calls. What
/// runs for a second without any answer is cancelled; see [`side_by_side`] for calls that may take
/// their time.
/// Gives how the server ended and the answer of each call.
pub fn at_once(world: &World, flags: &[&str], calls: &[(&str, Value)]) -> (Ran, Vec<Value>) {
    let request = |id: usize, method: &str, params: &Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string() + "\n"
    };
    let mut text = request(0, "initialize", &hello(&json!({}))) + READY + "\n";
    for (id, (name, input)) in (1..).zip(calls) {
        text += &request(id, "tools/call", &json!({"name": name, "arguments": input}));
    }
    let ran = world.run_with(&[&["mcp"], flags].concat(), &Input::Pipe(&text));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut answers: Vec<Value> = ran.lines().into_iter().filter(|it| it["id"].is_u64()).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (0..=calls.len() as u64).collect::<Vec<_>>(), "one answer each: {ran:?}");
    (ran, answers.split_off(1))
}

/// Calls of a client that waits for all of their answers; gives these in the order of the calls.
pub fn side_by_side(world: &World, flags: &[&str], calls: &[(&str, Value)]) -> Vec<Value> {
    let mut client = Client::greeted(world, flags);
    for (id, (tool, input)) in calls.iter().enumerate() {
        client.begin(&json!(id), tool, input);
    }
    let mut answers: Vec<Value> = calls.iter().map(|_| client.next()).collect();
    client.ends_well();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

/// The text of a tool's answer.
pub fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}
