//! Streams as odd servers send them, from the wire to what a person sees.

use haft_testkit::http::HttpResponse;
use serde_json::{Value, json};

use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, Ran, World, finish},
};

fn run(world: &World, wire: Wire, mock: &Mock, flags: &[&str]) -> Ran {
    let flags = [&["--mode", "bypass", "-p", "go"], flags].concat();
    finish(wire.haft(world, &mock.url(), &flags), &Input::Nothing)
}

/// A stream of Chat Completions.
fn chat(events: &[Value]) -> HttpResponse {
    let events: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    HttpResponse::events(events.concat() + "data: [DONE]\n\n")
}

fn delta(delta: &Value, reason: Option<&str>) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
}

fn call(index: u32, name: &str, arguments: &str) -> Value {
    let function = json!({"name": name, "arguments": arguments});
    delta(
        &json!({"tool_calls": [{"index": index, "id": format!("k{index}"), "function": function}]}),
        None,
    )
}

fn body(mock: &Mock, nth: usize) -> Value {
    serde_json::from_str(&mock.bodies()[nth]).unwrap()
}

#[test]
fn nothing_runs_beside_a_call_that_cannot_be_read() {
    let world = World::new();
    let mock = Mock::new(vec![
        chat(&[
            call(0, "write", r#"{"path":"a.txt","content":"x"}"#),
            call(1, "write", r#"{"path":"b.txt","content":"#),
            call(2, "write", r#"{"path":"c.txt","content":"x"}"#),
            delta(&json!({}), Some("tool_calls")),
        ]),
        Wire::OpenAi.text("I see."),
    ]);
    let ran = run(&world, Wire::OpenAi, &mock, &[]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "I see.\n"), "{ran:?}");
    for name in ["a.txt", "b.txt", "c.txt"] {
        assert!(!world.work().join(name).exists(), "{name} was written");
    }
    let results = mock.bodies()[1].matches("Nothing was run").count();
    assert_eq!(results, 3, "each call has its answer: {}", mock.bodies()[1]);
}

#[test]
fn bare_line_breaks_in_arguments_are_no_reason_to_stop() {
    let world = World::new();
    let mock = Mock::new(vec![
        chat(&[
            call(0, "write", "{\"path\":\"a.txt\",\"content\":\"x\ny\"}"),
            call(1, "write", r#"{"path":"b.txt","content":"z"}"#),
            delta(&json!({}), Some("tool_calls")),
        ]),
        Wire::OpenAi.text("Done."),
    ]);
    let ran = run(&world, Wire::OpenAi, &mock, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((world.read("a.txt"), world.read("b.txt")), ("x\ny".into(), "z".into()));
}

#[test]
fn a_call_in_the_text_is_never_run_and_told() {
    for wire in WIRES {
        let world = World::new();
        let text = "I write it.\n<tool_call>\n{\"name\": \"write\"}\n</tool_call>";
        let mock = Mock::with(move |_, _| wire.text(text));
        let ran = run(&world, wire, &mock, &[]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(ran.err.matches("no tool parser").count(), 2, "once for each answer: {ran:?}");
        assert_eq!(mock.bodies().len(), 2, "the model is told, and asked once more");
        assert!(mock.bodies()[1].contains("Nothing was run"), "{}", mock.bodies()[1]);
        let ran = run(&world, wire, &mock, &["-c"]);
        assert_eq!(ran.err.matches("no tool parser").count(), 1, "{ran:?}");
        assert_eq!(mock.bodies().len(), 3, "the model was told in this session");
    }
    let world = World::new();
    let mock = Mock::with(|_, _| Wire::OpenAi.text("So it looks:\n```\n<tool_call>\n```"));
    let ran = run(&world, Wire::OpenAi, &mock, &[]);
    assert!(!ran.err.contains("no tool parser"), "{ran:?}");
}

#[test]
fn an_address_of_requests_is_used_as_it_is() {
    for (wire, path) in [(Wire::OpenAi, "/api/chat/completions"), (Wire::Anthropic, "/x/messages/")]
    {
        let world = World::new();
        world.file("a.txt", "alpha\n");
        let mock = Mock::new(vec![
            wire.calls("k", &[("read", json!({"path": "a.txt"}))]),
            wire.text("Here."),
        ]);
        let mut haft = wire.haft(&world, &mock.url(), &["-p", "go"]);
        haft.env(wire.url_variable(), format!("{}{path}", mock.url()));
        let ran = finish(haft, &Input::Nothing);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Here.\n"), "{ran:?}");
        for request in mock.requests() {
            assert_eq!(request.target, path.trim_end_matches('/'));
        }
        assert_eq!(ran.err.matches(wire.url_variable()).count(), 1, "said once: {ran:?}");
    }
}

#[test]
fn a_server_without_reasons_is_known_after_two_answers() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let mock = Mock::with(|nth, _| match nth {
        0 | 1 => chat(&[call(0, "read", r#"{"path":"a.txt"}"#)]),
        _ => chat(&[delta(&json!({"content": "Here."}), None)]),
    });
    let ran = run(&world, Wire::OpenAi, &mock, &[]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Here.\n"), "{ran:?}");
    assert_eq!(mock.bodies().len(), 3, "asked once more in all");
    assert_eq!(ran.err.matches("gives no reason").count(), 1, "{ran:?}");
}

#[test]
fn what_ended_badly_fails_the_run_with_its_text() {
    for reason in ["MALFORMED_FUNCTION_CALL", "tool_calls"] {
        let world = World::new();
        let mock =
            Mock::with(move |_, _| chat(&[delta(&json!({"content": "Half."}), Some(reason))]));
        let ran = run(&world, Wire::OpenAi, &mock, &[]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), "Half.\n"), "{ran:?}");
        assert!(ran.err.contains(reason) && mock.bodies().len() == 1, "{ran:?}");
    }
}

#[test]
fn thinking_that_was_empty_once_is_given_back_with_each_call() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let read = || call(0, "read", r#"{"path":"a.txt"}"#);
    let mock = Mock::with(move |nth, _| match nth {
        0 => chat(&[
            delta(&json!({"role": "assistant", "reasoning_content": ""}), None),
            read(),
            delta(&json!({}), Some("tool_calls")),
        ]),
        1 | 2 => chat(&[read(), delta(&json!({}), Some("tool_calls"))]),
        _ => Wire::OpenAi.text("Here."),
    });
    let with_calls = |body: &Value| -> Vec<Value> {
        let messages = body["messages"].as_array().unwrap();
        let called = messages.iter().filter(|message| message["tool_calls"].is_array());
        called.map(|message| message["reasoning_content"].clone()).collect()
    };
    let ran = run(&world, Wire::OpenAi, &mock, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(with_calls(&body(&mock, 2)), ["", ""]);
    // Another process knows it from the conversation.
    let ran = run(&world, Wire::OpenAi, &mock, &["-c"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(with_calls(&body(&mock, 4)), ["", "", ""]);
}

#[test]
fn a_field_that_was_refused_once_is_not_sent_again() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let mut answers = 0;
    let mock = Mock::with(move |_, request| {
        let sent = String::from_utf8_lossy(&request.body).into_owned();
        if sent.contains("extra_content") {
            let error = json!({"error": {"message": "messages.1.tool_calls.0: property 'extra_content' is unsupported"}});
            return HttpResponse::new(400, "application/json", error.to_string());
        }
        answers += 1;
        if answers > 2 {
            return Wire::OpenAi.text("Here.");
        }
        let mut event = call(0, "read", r#"{"path":"a.txt"}"#);
        event["choices"][0]["delta"]["tool_calls"][0]["extra_content"] = json!({"s": 1});
        chat(&[event, delta(&json!({}), Some("tool_calls"))])
    });
    let ran = run(&world, Wire::OpenAi, &mock, &[]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Here.\n"), "{ran:?}");
    let refused = mock.bodies().iter().filter(|body| body.contains("extra_content")).count();
    assert_eq!((refused, mock.bodies().len()), (1, 4), "{ran:?}");
}

#[test]
fn an_empty_stream_is_explained_by_the_answer_without_one() {
    for wire in WIRES {
        let world = World::new();
        let mock = Mock::with(move |_, request| {
            let sent: Value = serde_json::from_slice(&request.body).unwrap();
            if sent["stream"] == true {
                return HttpResponse::events("");
            }
            let error = json!({"error": {"message": "the prompt has 6031 tokens, 2048 fit"}});
            HttpResponse::new(400, "application/json", error.to_string())
        });
        let ran = run(&world, wire, &mock, &[]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("6031 tokens") && mock.bodies().len() == 3, "{ran:?}");
    }
}

#[test]
fn what_one_server_wants_back_goes_to_no_other() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let first = Mock::with(|nth, _| {
        let mut event = call(0, "read", r#"{"path":"a.txt"}"#);
        event["choices"][0]["delta"]["tool_calls"][0]["extra_content"] = json!({"s": "SIG"});
        event["choices"][0]["delta"]["reasoning_content"] = json!("hm");
        match nth {
            0 => chat(&[event, delta(&json!({}), Some("tool_calls"))]),
            _ => Wire::OpenAi.text("Here."),
        }
    });
    let second = Mock::with(|_, _| Wire::OpenAi.text("There."));
    assert_eq!(run(&world, Wire::OpenAi, &first, &[]).code, Some(0));
    assert_eq!(run(&world, Wire::OpenAi, &second, &["-c"]).code, Some(0));
    assert_eq!(run(&world, Wire::OpenAi, &first, &["-c"]).code, Some(0));
    let own = |body: &str| body.contains("SIG") && body.contains("reasoning_content");
    assert!(own(&first.bodies()[1]) && own(&first.bodies()[2]), "{:?}", first.bodies());
    let other = &second.bodies()[0];
    assert!(!other.contains("SIG") && !other.contains("reasoning_content"), "{other}");
}
