//! `haft mcp` with clients that break the protocol: nothing that is sent ends or stops the server.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout},
    time::Duration,
};

use serde_json::{Value, json};

use crate::world::{World, collect, ended, gone, runs, signal, unique_seconds, until};

/// A server and its two pipes.
pub struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(world: &World, flags: &[&str]) -> Self {
        let mut arguments = vec!["mcp"];
        arguments.extend(flags);
        let mut command = world.haft(&arguments);
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        drop(collect(child.stderr.take()));
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    /// A server that a client was introduced to.
    pub fn initialized(world: &World, flags: &[&str]) -> Self {
        let mut server = Self::start(world, flags);
        server.initialize();
        server
    }

    fn initialize(&mut self) {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"}});
        let answer = self.ask(0, "initialize", &params);
        assert_eq!(answer["result"]["serverInfo"]["name"], "haft", "{answer}");
        self.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    fn send(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn request(&mut self, id: u64, method: &str, params: &Value) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(request.to_string().as_bytes());
    }

    /// Sends a request and gives its answer; other messages in between are passed over.
    fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.request(id, method, params);
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == json!(id) {
                return message;
            }
        }
    }

    /// Calls a tool; gives the whole answer.
    pub fn call(&mut self, id: u64, name: &str, input: &Value) -> Value {
        self.ask(id, "tools/call", &json!({"name": name, "arguments": input}))
    }

    /// Ends the client's side; gives the exit code.
    pub fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        ended(&mut self.child, Duration::from_secs(20)).code()
    }

    /// Ends both of the client's sides, as when it is killed; gives the exit code.
    fn killed(self) -> Option<i32> {
        let Self { mut child, input, output } = self;
        drop((input, output));
        ended(&mut child, Duration::from_secs(20)).code()
    }
}

#[test]
fn junk_is_passed_over() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let mut server = Server::start(&world, &[]);
    for junk in [&b"junk"[..], b"", b"\xff\xfe", b"{", b"[]", b"null", b"{\"jsonrpc\":\"1.0\"}"] {
        server.send(junk);
    }
    server.initialize();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_arguments = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"tools/call\",\"params\":{{\"name\":\"read\",\
         \"arguments\":{{\"path\":{deep}}}}}}}"
    );
    for junk in [
        &b"more junk"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":5}",
        b"{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"tools/call\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":5}}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":9}}",
        deep.as_bytes(),
        deep_arguments.as_bytes(),
    ] {
        server.send(junk);
    }
    let read = server.call(8, "read", &json!({"path": "a.txt"}));
    assert!(read["result"]["content"][0]["text"].as_str().unwrap().contains("alpha"), "{read}");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn an_endless_line_is_passed_over_in_bounded_memory() {
    let world = World::new();
    let mut server = Server::initialized(&world, &[]);
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..200 {
        server.input.as_mut().unwrap().write_all(&chunk).unwrap();
    }
    server.send(b"");
    let listed = server.ask(3, "tools/list", &json!({}));
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    let status = format!("/proc/{}/status", server.child.id());
    let status = std::fs::read_to_string(status).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
    let kilobytes: u64 = peak.trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 180 << 10, "{peak} for a line of 200 MB");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_request_before_the_beginning_is_refused() {
    let world = World::new();
    let mut server = Server::start(&world, &[]);
    let early = server.call(1, "bash", &json!({"command": "touch made"}));
    let told = early["error"]["message"].as_str().unwrap();
    assert!(told.contains("send initialize first"), "{early}");
    assert!(!world.work().join("made").exists());
    server.initialize();
    let listed = server.ask(2, "tools/list", &json!({}));
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    let strange = server.ask(3, "foo/bar", &json!({}));
    let told = strange["error"]["message"].as_str().unwrap();
    assert!(told.contains("\"foo/bar\"") && told.contains("tools/call"), "{strange}");
    assert_eq!((&strange["error"]["code"], server.end()), (&json!(-32601), Some(0)));
}

#[test]
fn a_client_that_goes_ends_what_runs() {
    let world = World::new();
    let seconds = unique_seconds();
    let mut server = Server::initialized(&world, &["--mode", "bypass"]);
    let input = json!({"command": format!("sleep {seconds}; echo never")});
    server.request(4, "tools/call", &json!({"name": "bash", "arguments": input}));
    assert!(until(Duration::from_secs(30), || runs(&seconds)), "nothing was started");
    assert_eq!(server.killed(), Some(0));
    assert!(!runs(&seconds), "the server ended before what it had started");
}

#[test]
fn a_terminated_server_ends_what_runs() {
    let world = World::new();
    let seconds = unique_seconds();
    let mut server = Server::initialized(&world, &["--mode", "bypass"]);
    let input = json!({"command": format!("sleep {seconds}; echo never")});
    server.request(4, "tools/call", &json!({"name": "bash", "arguments": input}));
    assert!(until(Duration::from_secs(30), || runs(&seconds)), "nothing was started");
    signal("TERM", server.child.id());
    assert_eq!(ended(&mut server.child, Duration::from_secs(10)).code(), Some(0));
    gone(&seconds);
}

#[test]
fn a_client_that_is_never_there_is_no_failure() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_cut_result_is_read_by_its_address() {
    let world = World::new();
    let mut server = Server::initialized(&world, &["--mode", "bypass"]);
    let seq = server.call(1, "bash", &json!({"command": "seq 1 50000"}));
    let text = seq["result"]["content"][0]["text"].as_str().unwrap();
    let at = text.find("out://").unwrap_or_else(|| panic!("no address in {text}"));
    let address: String =
        text[at..].chars().take_while(|c| !c.is_whitespace() && *c != ']').collect();
    let input = json!({"path": address, "offset": 25_000, "limit": 1});
    let read = server.call(2, "read", &input);
    let text = read["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("25000"), "{address}: {text}");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_folder_that_is_missing_is_told() {
    let world = World::new();
    let ran = world.run(&["mcp", "--root", "/nowhere/at/all"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.err.contains("/nowhere/at/all"), "{ran:?}");
}
