//! `haft mcp` as a protocol: what is said of requests that cannot be taken, what is passed over, and
//! how a server ends.

use std::fs;

use serde_json::{Value, json};

use crate::{
    mcp_client::{Client, End, at_once, hello, text},
    world::{PATIENCE, World, gone, runs, signal, unique_seconds, until},
};

/// How many errors come before the answer with an id, and that answer.
fn errors_before(client: &mut Client, id: &str) -> (usize, Value) {
    for count in 0.. {
        let answer = client.next();
        if answer["id"] == id {
            return (count, answer);
        }
        assert!(answer["error"]["message"].is_string(), "{answer}");
    }
    unreachable!("it hears without end")
}

#[test]
fn junk_is_passed_over() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let mut client = Client::start(&world, &[]);
    for junk in [&b"junk"[..], b"", b"\xff\xfe", b"{", b"[]", b"null", b"{\"jsonrpc\":\"1.0\"}"] {
        client.send(junk);
    }
    client.request(&json!("hello"), "initialize", &hello(&json!({})));
    let (errors, hello) = errors_before(&mut client, "hello");
    assert_eq!((errors, &hello["result"]["serverInfo"]["name"]), (6, &json!("haft")), "{hello}");
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
        client.send(junk);
    }
    client.begin(&json!("good"), "read", &json!({"path": "a.txt"}));
    let (errors, read) = errors_before(&mut client, "good");
    assert!(errors == 6 && text(&read).contains("alpha"), "{errors} {read}");
    client.ends_well();
}

#[test]
fn an_endless_line_is_passed_over_in_bounded_memory() {
    let world = World::new();
    let mut client = Client::greeted(&world, &[]);
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..200 {
        client.write(&chunk);
    }
    client.send(b"");
    // It is told of the line, whose id is lost.
    assert_eq!(client.next()["id"], Value::Null);
    let listed = client.ask("tools/list", &json!({}));
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    let peak = client.peak();
    assert!(peak < 180, "{peak} MiB for a line of 200 MB");
    client.ends_well();
}

#[test]
fn a_request_before_the_beginning_is_refused() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let early = client.call("bash", &json!({"command": "touch made"}));
    let told = early["error"]["message"].as_str().unwrap();
    assert!(told.contains("send initialize first"), "{early}");
    assert!(!world.work().join("made").exists());
    client.greet(&json!({}));
    let listed = client.ask("tools/list", &json!({}));
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    let strange = client.ask("foo/bar", &json!({}));
    let told = strange["error"]["message"].as_str().unwrap();
    assert!(told.contains("\"foo/bar\"") && told.contains("tools/call"), "{strange}");
    assert_eq!(strange["error"]["code"], json!(-32601));
    client.ends_well();
}

#[test]
fn a_client_that_goes_ends_what_runs() {
    let world = World::new();
    let seconds = unique_seconds();
    let mut client = Client::deaf(world.haft(&["mcp", "--mode", "bypass"]));
    client.request(&json!(0), "initialize", &hello(&json!({})));
    let input = json!({"command": format!("sleep {seconds}; echo never")});
    client.begin(&json!(1), "bash", &input);
    assert!(until(PATIENCE, || runs(&seconds)), "nothing was started");
    assert_eq!(client.killed(), Some(0));
    assert!(!runs(&seconds), "the server ended before what it had started");
}

#[test]
fn a_terminated_server_ends_what_runs() {
    let world = World::new();
    let seconds = unique_seconds();
    let mut client = Client::greeted(&world, &["--mode", "bypass"]);
    let input = json!({"command": format!("sleep {seconds}; echo never")});
    client.begin(&json!(1), "bash", &input);
    assert!(until(PATIENCE, || runs(&seconds)), "nothing was started");
    signal("TERM", client.process());
    assert_eq!(client.ended(), Some(0));
    gone(&seconds);
}

#[test]
fn a_client_that_is_never_there_is_no_failure() {
    let world = World::new();
    let client = Client::start(&world, &[]);
    client.ends_well();
}

#[test]
fn a_cut_result_is_read_by_its_address() {
    let world = World::new();
    let mut client = Client::greeted(&world, &["--mode", "bypass"]);
    let seq = client.call("bash", &json!({"command": "seq 1 50000"}));
    let text = text(&seq);
    let at = text.find("out://").unwrap_or_else(|| panic!("no address in {text}"));
    let address: String =
        text[at..].chars().take_while(|c| !c.is_whitespace() && *c != ']').collect();
    let input = json!({"path": address, "offset": 25_000, "limit": 1});
    let read = client.call("read", &input);
    assert!(self::text(&read).contains("25000"), "{address}: {read}");
    client.ends_well();
}

#[test]
fn a_folder_that_is_missing_is_told() {
    let world = World::new();
    let ran = world.run(&["mcp", "--root", "/nowhere/at/all"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.err.contains("/nowhere/at/all"), "{ran:?}");
}

#[test]
fn an_id_that_was_lost_is_answered_as_none() {
    let world = World::new();
    let mut client = Client::greeted(&world, &[]);
    client.send(r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#);
    let answer = client.next();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)));
    client.ends_well();
}

fn fault(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    let text = error["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (error["code"].as_i64().unwrap(), text)
}

/// Reads large results, far more than the server holds back.
fn read_much(client: &mut Client) {
    for _ in 0..30 {
        let answer = client.call("read", &json!({"path": "big.txt", "limit": 10_000}));
        assert_ne!(answer["result"]["isError"], json!(true), "{answer}");
    }
}

/// Ends a server that had nothing to tell beside its answers.
fn ends_silently(client: Client) {
    let end = client.end();
    assert_eq!((end.code, &*end.errors, end.notices.len()), (Some(0), "", 0), "{end:?}");
}

#[test]
fn a_log_that_cannot_be_kept_is_told_to_the_client_once() {
    let world = World::new();
    world.file("big.txt", "a line of some text that is read and read again\n".repeat(5_000));
    let file = world.root().join("file");
    fs::write(&file, "").unwrap();
    let home = file.join("home").display().to_string();
    for least in [None, Some("info"), Some("error")] {
        let mut command = world.haft(&["mcp"]);
        command.env("HAFT_HOME", &home);
        let mut client = Client::of(command);
        let hello = client.greet(&json!({}));
        assert!(hello["result"]["capabilities"]["logging"].is_object(), "{hello}");
        if let Some(least) = least {
            let set = client.ask("logging/setLevel", &json!({"level": least}));
            assert_eq!(set["result"], json!({}), "{set}");
        }
        read_much(&mut client);
        let End { errors, notices, .. } = client.end();
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
    let mut client = Client::greeted(&world, &[]);
    read_much(&mut client);
    ends_silently(client);
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
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    for begun in [false, true] {
        for (line, code, wanted) in untakable(begun) {
            client.send(line);
            let answer = client.next();
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
            assert_eq!(client.greet(&json!({}))["result"]["serverInfo"]["name"], "haft");
        }
    }
    let level = client.ask("logging/setLevel", &json!({"level": "loud"}));
    let wanted =
        "params.level of logging/setLevel is \"loud\", wanted: a level such as \"warning\"";
    assert_eq!(fault(&level), (-32602, wanted));
    let listed = client.ask("tools/list", &json!({}));
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    ends_silently(client);
}

#[test]
fn what_was_read_before_the_end_of_input_is_finished() {
    let world = World::new();
    let mut calls = Vec::new();
    for index in 0..40 {
        let name = format!("{index}.txt");
        world.file(&name, "old\n");
        let edits = json!([{"old_text": "old", "new_text": format!("new {index}")}]);
        calls.push(("edit", json!({"path": name, "edits": edits})));
    }
    calls.push(("bash", json!({"command": "sleep 0.3; echo slept"})));
    let (ran, answers) = at_once(&world, &["--mode", "bypass"], &calls);
    let fine = answers.iter().filter(|answer| answer["result"]["isError"] != true);
    assert_eq!(fine.count(), 41, "{}", ran.out);
    assert!(ran.out.contains("slept"), "{}", ran.out);
    assert_eq!(world.read("39.txt"), "new 39\n");
}
