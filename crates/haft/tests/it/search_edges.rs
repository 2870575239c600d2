//! grep, find and the MCP server where nothing is found, nothing can be searched or kept, or a
//! request cannot be taken: what was wrong is said, with what to do next.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::ffi::OsStrExt as _,
    process::{Child, ChildStdin, ChildStdout, Stdio},
    thread::JoinHandle,
    time::Duration,
};

use serde_json::{Value, json};

use crate::world::{World, collect, ended};

fn project() -> World {
    let world = World::new();
    world.file(".gitignore", "target/\n");
    world.file(".git/config", "needle\n");
    world.file("README.md", "needle in a book\n");
    world.file("src/a.rs", "needle one\nhay\nneedle two\n");
    world.file("src/deep/b.rs", "needle three\n");
    world.file("src/crlf.txt", "line ends\r\n");
    world.file("target/c.rs", "needle built\n");
    world.file("bin.dat", b"\0\0needle\n");
    world.file("#notes.txt", "needle noted\n");
    let odd = std::ffi::OsStr::from_bytes(b"n\xe9.txt");
    fs::write(world.work().join(odd), "needle odd\n").unwrap();
    world
}

/// What a call says; it must end with this code.
fn told(world: &World, tool: &str, input: &Value, code: i32) -> String {
    let ran = world.run(&["tool", tool, "--input", &input.to_string()]);
    assert_eq!(ran.code, Some(code), "{tool} {input} {ran:?}");
    ran.out
}

#[test]
fn globs_mean_what_they_seem_to_mean() {
    let world = project();
    let inside = world.work().join("src/*.rs").display().to_string();
    for (glob, lines) in [
        ("./src/*.rs", 2),
        (&inside, 2),
        ("src//*.rs", 2),
        ("/src/./*.rs", 2),
        ("src/", 3),
        ("deep/", 1),
        ("./src/deep/", 1),
        ("!./src/*.rs", 4),
        ("!src/", 3),
        ("#notes.txt", 1),
        ("README.md", 1),
    ] {
        let out = told(&world, "grep", &json!({"pattern": "needle", "glob": glob}), 0);
        assert_eq!(out.lines().count(), lines, "{glob}: {out}");
    }
    for pattern in ["./src/*.rs", &inside, "src//*.rs", "/src/./*.rs", "src/a.rs"] {
        let out = told(&world, "find", &json!({"pattern": pattern}), 0);
        assert_eq!(out, "src/a.rs\n", "{pattern}");
    }
}

#[test]
fn globs_that_match_nothing_are_explained_alike() {
    let world = project();
    for (glob, code, wanted) in [
        ("../x/*.rs", 1, "give path ../x with FIELD *.rs."),
        ("src/../../x", 1, "give path src/../.. with FIELD x."),
        ("~/x", 1, "give path ~ with FIELD x."),
        (".", 1, "names nothing"),
        ("./", 1, "names nothing"),
        ("{a", 1, "Write it like *.rs, src/**/*.{ts,tsx} or "),
        ("/etc/x/*.conf", 0, "give path /etc/x with FIELD *.conf."),
        ("*.rs,*.md", 0, "written as one: {*.rs,*.md}."),
        ("*.rs *.md", 0, "written as one: {*.rs,*.md}."),
        (".*\\.rs", 0, "not a regular expression"),
        ("src\\a.rs", 0, "parted by /"),
        ("readme.md", 0, "whole name, in its case"),
        (".git/*", 0, "unless path leads there"),
    ] {
        for (tool, field) in [("grep", "glob"), ("find", "pattern")] {
            let input = match tool {
                "grep" => json!({"pattern": "needle", "glob": glob}),
                _ => json!({"pattern": glob}),
            };
            let out = told(&world, tool, &input, code);
            let wanted = wanted.replace("FIELD", field);
            assert!(out.contains(&wanted), "{tool} {glob}: {out}");
        }
    }
    let out = told(&world, "grep", &json!({"pattern": "needle", "glob": "*.py", "type": "md"}), 0);
    assert!(out.contains("No file there is left by glob *.py and type md."), "{out}");
    for (tool, input) in [
        ("grep", json!({"pattern": "needle", "path": "src", "glob": "src/*.rs"})),
        ("find", json!({"path": "src", "pattern": "src/*.rs"})),
    ] {
        let out = told(&world, tool, &input, 0);
        assert!(out.contains("compared with paths below src: leave that out."), "{tool}: {out}");
    }
    let out = told(&world, "grep", &json!({"pattern": "needle", "glob": "deep"}), 0);
    assert!(out.contains("deep/** is all in a folder"), "{out}");
    let out = told(&world, "find", &json!({"pattern": "!*.md"}), 0);
    assert!(out.contains("leaves nothing out"), "{out}");
    let out = told(&world, "find", &json!({"pattern": "{a"}), 1);
    assert!(!out.contains('!'), "find takes no such glob: {out}");
    for (tool, field) in [("grep", "glob"), ("find", "pattern")] {
        let out = told(&world, tool, &json!({"pattern": "x", "path": "src/*.rs"}), 1);
        assert!(out.contains(&format!("give path src with {field} *.rs.")), "{tool} {out}");
        let out = told(&world, tool, &json!({"pattern": "x", "path": "*.rs"}), 1);
        assert!(out.contains(&format!("give path . with {field} *.rs.")), "{tool} {out}");
    }
}

#[test]
fn patterns_that_cannot_be_searched_for_say_what_to_write() {
    let world = project();
    for (pattern, wanted) in [
        ("(?:\\w+\\s){1000}", "its repetition {1000} is too much"),
        ("\\d{1,100000}", "stands for 100000 characters"),
        ("fn(?=x)", "without it"),
        ("(a)\\1", "write out what is meant to come again"),
        ("(abc", "close it with )"),
        ("interface{}", "(\"{}\"); a count is written"),
        ("*foo", "put what is repeated before it"),
        ("x\\Z", "the end of a line is $"),
        ("a\\x00", "leave it out"),
        ("a\nb", "set multiline"),
    ] {
        let out = told(&world, "grep", &json!({"pattern": pattern}), 1);
        assert!(out.contains(wanted), "{pattern}: {out}");
        assert!(out.contains("Nothing was searched."), "{pattern}: {out}");
    }
    let spec = world.run(&["tool", "spec", "grep"]).out;
    assert!(spec.contains("at most 4,096 characters"), "the limit is told: {spec}");
}

#[test]
fn what_matches_is_shown_with_its_true_reason() {
    let world = project();
    for (pattern, wanted) in [
        ("\\Aneedle", "src/a.rs:1:needle one\nsrc/a.rs:3:needle two\n"),
        ("(?-m)^needle", "src/a.rs:1:needle one\nsrc/a.rs:3:needle two\n"),
        ("two\\z", "src/a.rs:3:needle two\n"),
        ("\\A", "src/a.rs:1:needle one\nsrc/a.rs:2:hay\nsrc/a.rs:3:needle two\n"),
    ] {
        let out = told(&world, "grep", &json!({"pattern": pattern, "path": "src/a.rs"}), 0);
        assert_eq!(out, wanted, "{pattern}");
    }
    world.file("open.txt", "one\ntwo");
    let out = told(&world, "grep", &json!({"pattern": "$", "path": "open.txt"}), 0);
    assert_eq!(out, "open.txt:1:one\nopen.txt:2:two\n");
    let first = json!({"pattern": "\\Aneedle", "path": "src/a.rs", "multiline": true});
    assert_eq!(told(&world, "grep", &first, 0), "src/a.rs:1:needle one\n");
    let out = told(&world, "grep", &json!({"pattern": "needle", "path": "bin.dat"}), 0);
    assert!(out.starts_with("bin.dat: 1 line matches, not shown (binary"), "{out}");
    assert!(!out.contains("No matches"), "{out}");
    let out = told(&world, "grep", &json!({"pattern": "ends$"}), 0);
    assert!(out.contains("write \\r?$"), "{out}");
    let out = told(&world, "grep", &json!({"pattern": "ends\\r?$"}), 0);
    assert_eq!(out, "src/crlf.txt:1:line ends\n");
    let out = told(&world, "grep", &json!({"pattern": "x", "type": "rs"}), 1);
    assert!(out.contains("near ones: rust\n"), "{out}");
}

/// A raw client of a server.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: JoinHandle<String>,
    /// What the server told beside its answers.
    notices: Vec<Value>,
}

impl Client {
    fn start(world: &World, home: Option<&str>) -> Self {
        let mut command = world.haft(&["mcp"]);
        if let Some(home) = home {
            command.env("HAFT_HOME", home);
        }
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let (input, errors) = (child.stdin.take(), collect(child.stderr.take()));
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output, errors, notices: Vec::new() }
    }

    fn initialize(&mut self) -> Value {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"}});
        let answer = self.ask("initialize", &params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        answer
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next message with an id, or the fault of a line without one.
    fn hear(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("id").is_some() {
                return message;
            }
            self.notices.push(message);
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.send(&request.to_string());
        self.hear()
    }

    /// Reads large results, far more than the server holds back.
    fn read_much(&mut self) {
        for _ in 0..30 {
            let arguments = json!({"path": "big.txt", "limit": 10_000});
            let answer = self.ask("tools/call", &json!({"name": "read", "arguments": arguments}));
            assert_ne!(answer["result"]["isError"], json!(true), "{answer}");
        }
    }

    fn end(mut self) -> (String, Vec<Value>) {
        drop(self.input.take());
        for line in self.output.lines() {
            self.notices.push(serde_json::from_str(&line.unwrap()).unwrap());
        }
        assert_eq!(ended(&mut self.child, Duration::from_secs(20)).code(), Some(0));
        (self.errors.join().unwrap(), self.notices)
    }
}

fn fault(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    let text = error["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (error["code"].as_i64().unwrap(), text)
}

#[test]
fn a_log_that_cannot_be_kept_is_told_to_the_client_once() {
    let world = World::new();
    world.file("big.txt", "a line of some text that is read and read again\n".repeat(5_000));
    let file = world.root().join("file");
    fs::write(&file, "").unwrap();
    let home = file.join("home").display().to_string();
    for least in [None, Some("info"), Some("error")] {
        let mut client = Client::start(&world, Some(&home));
        let hello = client.initialize();
        assert!(hello["result"]["capabilities"]["logging"].is_object(), "{hello}");
        if let Some(least) = least {
            let set = client.ask("logging/setLevel", &json!({"level": least}));
            assert_eq!(set["result"], json!({}), "{set}");
        }
        client.read_much();
        let (errors, notices) = client.end();
        assert_eq!(errors.matches("leaves no full record").count(), 1, "{errors}");
        assert!(errors.contains(&home), "{errors}");
        if least == Some("error") {
            assert_eq!(notices, [] as [Value; 0]);
            continue;
        }
        assert_eq!(notices.len(), 1, "{notices:?}");
        assert_eq!(notices[0]["method"], "notifications/message");
        assert_eq!(notices[0]["params"]["level"], "warning");
        let data = notices[0]["params"]["data"].as_str().unwrap();
        assert!(data.contains("leaves no full record") && data.contains(&home), "{data}");
    }
    let mut client = Client::start(&world, None);
    client.initialize();
    client.read_much();
    assert_eq!(client.end(), (String::new(), Vec::new()));
}

/// Requests that cannot be taken at any time, with the code and the words of the answer.
fn untakable(begun: bool) -> Vec<(&'static str, i64, String)> {
    let known = "initialize, ping, tools/list, tools/call, logging/setLevel";
    let then = if begun { "" } else { "; send initialize first" };
    let list = "a message is one JSON object, and this is a list: send each message of a batch in a \
                line of its own";
    let told = "\"notifications/cancelled\" is told, not asked: send it without an id";
    let hello = "params.protocolVersion of initialize is missing, wanted: a revision such as \
                 \"2025-11-25\"";
    let unknown = |name: &str| format!("there is no method {name:?} here, only {known}{then}");
    vec![
        (r#"{"jsonrpc":"2.0","id":1,"method":"foo/bar"}"#, -32601, unknown("foo/bar")),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{}}"#,
            -32601,
            unknown("resources/list"),
        ),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#,
            -32600,
            "jsonrpc is \"1.0\", wanted: \"2.0\"".to_owned(),
        ),
        (
            r#"{"id":1,"method":"tools/list"}"#,
            -32600,
            "jsonrpc is missing, wanted: \"2.0\"".to_owned(),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            -32600,
            format!("method is 5, wanted: one of {known}{then}"),
        ),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, list.to_owned()),
        (r#"{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled"}"#, -32600, told.to_owned()),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#,
            -32602,
            hello.to_owned(),
        ),
    ]
}

#[test]
fn requests_that_cannot_be_taken_say_what_to_do() {
    let world = project();
    let mut client = Client::start(&world, None);
    for begun in [false, true] {
        for (line, code, wanted) in untakable(begun) {
            client.send(line);
            let answer = client.hear();
            assert_eq!(fault(&answer), (code, wanted.as_str()), "{line}");
        }
        // Nobody waits for an answer to these.
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/strange"}"#);
        client.send(r#"{"jsonrpc":"2.0","method":"strange"}"#);
        client.send(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"ls"}}"#);
        assert_eq!(client.ask("ping", &json!({}))["result"], json!({}));
        if !begun {
            let early = client.ask("tools/call", &json!({"name": "ls"}));
            let wanted = "tools/call came before initialize: send initialize first";
            assert_eq!(fault(&early), (-32600, wanted));
            assert_eq!(client.initialize()["result"]["serverInfo"]["name"], "haft");
        }
    }
    let level = client.ask("logging/setLevel", &json!({"level": "loud"}));
    let wanted =
        "params.level of logging/setLevel is \"loud\", wanted: a level such as \"warning\"";
    assert_eq!(fault(&level), (-32602, wanted));
    let listed = client.ask("tools/list", &json!({}));
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    assert_eq!(client.end(), (String::new(), Vec::new()));
}
