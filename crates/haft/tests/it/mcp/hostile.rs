//! `haft mcp` with clients that send what they should not: every line with an id has one answer
//! in time, nothing runs of what is malformed, and the next good call works.

use std::{fs, thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    mcp_client::{Client, hello, text},
    world::{PATIENCE, World, gone, runs, unique_seconds, until},
};

/// A client that was greeted, with these capabilities.
fn start(world: &World, flags: &[&str], capabilities: &Value) -> Client {
    let mut client = Client::start(world, flags);
    client.greet(capabilities);
    client
}

#[test]
fn malformed_requests_are_answered_and_run_nothing() {
    let world = World::new();
    let mut client = Client::greeted(&world, &["--mode", "bypass"]);
    let call = |id: &str, rest: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"bash","arguments":{{"command":"touch made"{rest}}}}}}}"#
        )
    };
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let cut = call("5", "");
    for (line, id, code) in [
        (call("1", &format!(",\"x\":{deep}")), json!(1), -32700),
        (call("2", "").replace("\"bash\"", "\"\\ud800\""), json!(2), -32700),
        (call("\"three\"", ",,"), json!("three"), -32700),
        (call("4", "").replace("touch", "\u{1}"), json!(4), -32700),
        (cut[..cut.len() - 4].to_owned(), json!(5), -32700),
        (call("1.5", ""), json!(1.5), -32600),
        (call("null", ""), Value::Null, -32600),
        (call("[1]", ""), Value::Null, -32600),
        (format!("[{}]", call("6", "")), Value::Null, -32600),
        (call("7", "").replace("\"bash\"", "5"), json!(7), -32602),
        (call("8", "").replace("\"name\"", "\"nom\""), json!(8), -32602),
        (call("9", "").replace("2.0", "1.0"), json!(9), -32600),
        (call("10", "").replace("\"tools/call\"", "null"), json!(10), -32600),
        (call("-11", "").replace("tools/call", "tools/cull"), json!(-11), -32601),
        ("junk".to_owned(), Value::Null, -32700),
        (deep, Value::Null, -32700),
    ] {
        client.send(&line);
        let answer = client.hear();
        assert_eq!(answer["id"], id, "{line:.200}: {answer}");
        assert_eq!(answer["error"]["code"], code, "{line:.200}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().len() < 500, "{answer}");
        client.is_well();
    }
    // The tool says what is wrong with its arguments, so that the model can mend them.
    client.send(call("13", ",\"x\":\"a\\ud83d b\""));
    let answer = client.hear();
    assert_eq!(
        (&answer["id"], &answer["result"]["isError"]),
        (&json!(13), &json!(true)),
        "{answer}"
    );
    assert!(text(&answer).contains("half a character each"), "{answer}");
    client.send(b"{\"id\":12,\"method\":\"\xff\"}");
    assert_eq!(client.hear()["id"], 12);
    client.is_well();
    assert!(!world.work().join("made").exists());
    client.ends_well();
}

#[test]
fn a_line_over_the_bound_is_answered_by_its_id() {
    let world = World::new();
    let mut client = Client::greeted(&world, &[]);
    let head = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"write","arguments":{"path":"made","content":""#;
    client.write(head.as_bytes());
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..70 {
        client.write(&chunk);
    }
    client.send("\"}},\"id\":\"late\"}");
    let answer = client.hear();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("late"), &json!(-32600)));
    client.is_well();
    let peak = client.peak();
    assert!(peak < 150, "{peak} MiB for a line of 70 MB");
    client.ends_well();
}

#[test]
fn arguments_that_are_no_object_are_mended_or_refused_by_the_tool() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let mut client = Client::greeted(&world, &[]);
    for (arguments, said) in [
        (json!("{\"path\": \"a.txt\"}"), "alpha"),
        (json!("text"), "\"text\", wanted: object"),
        (json!("[\"a.txt\"]"), "wanted: object"),
        (json!([]), "[], wanted: object"),
        (json!(["a.txt"]), "[\"a.txt\"], wanted: object"),
        (json!(7.5), "7.5, wanted: object"),
        (json!(true), "true, wanted: object"),
        (json!(null), "path is missing"),
    ] {
        client.begin(&json!(1), "read", &arguments);
        let answer = client.hear();
        assert!(text(&answer).contains(said), "{arguments}: {answer}");
        assert_eq!(answer["result"]["isError"].as_bool().unwrap_or(false), said != "alpha");
    }
    let twice = r#"{"name":"read","arguments":{"path":"a.txt","path":"b.txt"}}"#;
    client.send(format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{twice}}}"#));
    let answer = client.hear();
    assert_eq!(answer["result"]["isError"], json!(true), "{answer}");
    assert!(text(&answer).contains("\"path\" twice"), "{answer}");
    client.begin(&json!(4), "read", &json!(r#"{"path":"a.txt","path":"b.txt"}"#));
    let answer = client.hear();
    assert_eq!(answer["result"]["isError"], json!(true), "{answer}");
    assert!(text(&answer).contains("\"path\" twice"), "{answer}");
    client.begin(&json!(2), "raed", &json!("x"));
    let answer = client.hear();
    assert_eq!(answer["result"]["isError"], json!(true), "{answer}");
    assert!(text(&answer).contains("raed") && text(&answer).contains("read"), "{answer}");
    client.ends_well();
}

#[test]
fn two_calls_with_one_id_are_two_calls() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    world.file("b.txt", "beta\n");
    let mut client = Client::greeted(&world, &["--mode", "bypass"]);
    for id in [json!(1), json!("1"), json!(-1), json!(u64::MAX), json!("")] {
        client.begin(&id, "read", &json!({"path": "a.txt"}));
        client.begin(&id, "read", &json!({"path": "b.txt"}));
        let answers = [client.hear(), client.hear()];
        assert!(answers.iter().all(|answer| answer["id"] == id), "{answers:?}");
        for word in ["alpha", "beta"] {
            let having = answers.iter().filter(|answer| text(answer).contains(word)).count();
            assert_eq!(having, 1, "{word}: {answers:?}");
        }
    }
    let seconds = [unique_seconds(), unique_seconds()];
    for seconds in &seconds {
        client.begin(
            &json!(9),
            "bash",
            &json!({"command": format!("sleep {seconds}; echo never")}),
        );
    }
    assert!(until(PATIENCE, || seconds.iter().all(|seconds| runs(seconds))));
    client.cancel(&json!("9"));
    client.is_well();
    assert!(seconds.iter().all(|seconds| runs(seconds)), "\"9\" is not 9");
    client.cancel(&json!(9));
    for seconds in &seconds {
        gone(seconds);
    }
    client.is_well();
    client.ends_well();
}

#[test]
fn what_a_cancelled_command_changed_is_told_once_with_the_next_answer() {
    let world = World::new();
    let mut client = Client::greeted(&world, &["--mode", "bypass"]);
    let (list, write) = (json!({}), json!({"command": "echo y >> other"}));
    let calls = [("bash", &write), ("ls", &list)];
    for (number, (tool, input)) in calls.into_iter().enumerate() {
        let (made, seconds) = (format!("made-{number}"), unique_seconds());
        let command = format!("echo x > {made}; sleep {seconds}");
        client.begin(&json!(number), "bash", &json!({"command": command}));
        assert!(until(PATIENCE, || world.work().join(&made).exists() && runs(&seconds)));
        client.cancel(&json!(number));
        let told = format!("found after its end: created: {made}");
        let mut tells = |tool, input| client.call(tool, input).to_string().contains(&told);
        assert!(until(PATIENCE, || tells(tool, input)), "{tool}");
        assert!(calls.iter().all(|(tool, input)| !tells(tool, input)), "told twice");
    }
    client.ends_well();
}

#[test]
fn the_last_progress_comes_before_the_answer_and_only_where_it_is_asked_for() {
    let world = World::new();
    let mut client = Client::greeted(&world, &["--mode", "bypass"]);
    let command = "for n in 1 2 3; do echo line-$n; sleep 0.15; done; echo the-end";
    for round in 0..5 {
        let params = json!({"name": "bash", "arguments": {"command": command},
            "_meta": {"progressToken": format!("t{round}")}});
        client.request(&json!(round), "tools/call", &params);
        let mut told = Vec::new();
        let answer = loop {
            let message = client.hear();
            if message["method"] != "notifications/progress" {
                break message;
            }
            told.push(message["params"].clone());
        };
        assert!(text(&answer).contains("the-end"), "{answer}");
        let last = told.last().expect("no progress");
        assert!(last["message"].as_str().unwrap().contains("the-end"), "{told:?}");
        let counts: Vec<f64> = told.iter().map(|one| one["progress"].as_f64().unwrap()).collect();
        assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
    }
    client.begin(&json!("quiet"), "bash", &json!({"command": command}));
    assert_eq!(client.hear()["id"], "quiet");
    client.ends_well();
}

#[test]
fn a_question_shows_what_would_happen_and_ends_with_its_call() {
    let world = World::new();
    world.file("a.txt", "one\u{1b}[31m\n");
    let mut client = start(&world, &[], &json!({"elicitation": {}}));
    let edit = json!({"path": "a.txt", "edits": [{"old_text": "one", "new_text": "two"}]});
    client.begin(&json!(1), "edit", &edit);
    let asked = client.hear();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.contains("one") && message.contains("two"), "{message}");
    assert!(!message.contains('\u{1b}'), "{message:?}");
    assert!(message.contains("Editing a.txt"), "{message}");
    client.cancel(&json!(1));
    let taken_back = client.hear();
    assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
    assert_eq!(taken_back["params"]["requestId"], asked["id"], "{taken_back}");
    // A late answer changes nothing, and the next question is a new one.
    let yes = json!({"action": "accept", "content": {"answer": "allow"}});
    client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": yes}).to_string());
    client.is_well();
    client.begin(&json!(2), "bash", &json!({"command": "touch made"}));
    let asked = client.hear();
    let message = asked["params"]["message"].as_str().unwrap();
    assert_eq!(message.matches("touch made").count(), 1, "{message}");
    // An answer that cannot be read is a no.
    client.send(format!(r#"{{"jsonrpc":"2.0","id":{},"result":"\ud800"}}"#, asked["id"]));
    let refused = client.hear();
    assert_eq!((&refused["id"], &refused["result"]["isError"]), (&json!(2), &json!(true)));
    // Nor is a person said to have refused who said nothing.
    for (id, answer, by_person) in [
        (3, json!({"error": {"code": -32601, "message": "no"}}), false),
        (4, json!({"result": 17}), false),
        (5, json!({"result": {"action": "decline"}}), true),
        (6, json!({"result": {"action": "cancel"}}), true),
    ] {
        client.begin(&json!(id), "bash", &json!({"command": "touch made"}));
        let mut answer = answer;
        (answer["jsonrpc"], answer["id"]) = (json!("2.0"), client.hear()["id"].clone());
        client.send(answer.to_string());
        let said = client.hear();
        assert_eq!(said["id"], id, "{said}");
        let said = said["result"].to_string();
        assert_eq!(said.contains("the person refused"), by_person, "{said}");
        assert_eq!(said.contains("nobody can be asked"), !by_person, "{said}");
    }
    assert!(!world.work().join("made").exists());
    assert!(world.read("a.txt").starts_with("one"));
    client.ends_well();
}

#[test]
fn a_client_is_asked_with_every_character_to_be_seen() {
    let world = World::new();
    let (odd, shown) = crate::line::questions::unseen();
    let mut client = start(&world, &[], &json!({"elicitation": {}}));
    let command = json!({"command": format!("touch {odd}; true")});
    // A line that does not fit is cut, so each is on its own.
    let write = json!({"path": "x", "content": odd.replace('b', "b\n")});
    for (id, tool, input) in [(1, "bash", command), (2, "write", write)] {
        client.begin(&json!(id), tool, &input);
        let asked = client.hear();
        let message = asked["params"]["message"].as_str().unwrap();
        let signs = shown.split_inclusive('b');
        assert!(signs.filter(|sign| !message.contains(sign)).count() == 0, "{message:?}");
        let left = asked["params"].to_string();
        assert!(odd.chars().all(|c| c.is_ascii() || !left.contains(c)), "{left}");
        client.send(
            json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}})
                .to_string(),
        );
        client.hear();
    }
    client.ends_well();
}

#[test]
fn a_thousand_calls_at_once_are_answered_once_and_right() {
    let world = World::new();
    for number in 0..1_000 {
        world.file(&format!("f{number}.txt"), format!("content {number}.\n"));
    }
    let mut client = Client::greeted(&world, &[]);
    for number in 0..1_000 {
        client.begin(&json!(number), "read", &json!({"path": format!("f{number}.txt")}));
    }
    let mut seen = vec![false; 1_000];
    for _ in 0..1_000 {
        let answer = client.hear();
        let number = usize::try_from(answer["id"].as_u64().unwrap()).unwrap();
        assert!(text(&answer).contains(&format!("content {number}.")), "{answer}");
        assert!(!std::mem::replace(&mut seen[number], true), "{number} was answered twice");
    }
    client.is_well();
    let peak = client.peak();
    assert!(peak < 150, "{peak} MiB");
    client.ends_well();
}

#[test]
fn a_client_that_reads_nothing_costs_bounded_memory_and_can_go() {
    let world = World::new();
    world.file("big.txt", "a line of some length, as files have them\n".repeat(1_000));
    let mut client = Client::deaf(world.haft(&["mcp"]));
    client.request(&json!(0), "initialize", &hello(&json!({})));
    for number in 0..5_000 {
        client.begin(&json!(number), "read", &json!({"path": "big.txt"}));
        client.request(&json!(number), "tools/list", &json!({}));
    }
    let status = format!("/proc/{}/stat", client.process());
    let ticks = || fs::read_to_string(&status).unwrap().split(' ').nth(13).map(str::to_owned);
    let mut before = None;
    // It is done with what it can do once it uses no more time.
    assert!(until(PATIENCE, || {
        thread::sleep(Duration::from_millis(200));
        let now = ticks();
        std::mem::replace(&mut before, now.clone()) == now
    }));
    let peak = client.peak();
    assert!(peak < 150, "{peak} MiB");
    client.ends_well();
}
