//! A message's bytes never change once they are encoded, whatever request they are part of.

use std::sync::Arc;

use haft_llm::{
    AnswerReader, Delta, Encoded, Habits, LateTools, NoBlobs, Request, Target, Wire,
    anthropic::AnthropicMessages, openai::OpenAiChat, responses::OpenAiResponses,
};
use haft_types::{CacheReport, CallId, CallResult, From, Message, Outcome, Part, ToolUse};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use serde_json::{Value, json};

const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";

fn wires() -> [Arc<dyn Wire>; 2] {
    [Arc::new(AnthropicMessages::default()), Arc::new(OpenAiChat::default())]
}

fn target() -> Target {
    Target { model: "claude-opus-4-6".into(), vision: true }
}

fn request(messages: Vec<Encoded>) -> Request {
    Request {
        model: target().model,
        effort: None,
        max_tokens: Some(1_000),
        system: vec!["You help.".to_owned()].into(),
        tools: "[{\"name\":\"read\"}]".into(),
        messages,
        ..Request::default()
    }
}

/// A conversation of `turns` questions, each with two calls and an answer.
fn conversation(turns: u64) -> Vec<Message> {
    let mut messages = Vec::new();
    for turn in 0..turns {
        let user = Part::text(format!("question {turn} \"quoted\" \u{1f600}"));
        messages.push(Message::User { from: From::Person, parts: vec![user] });
        let (model, wire) = (target().model, "anthropic".to_owned());
        let calls: Vec<ToolUse> = (1..=2)
            .map(|n| ToolUse::new(CallId::nth(turn * 2 + n), "read", json!({ "n": n })))
            .collect();
        let parts = calls.iter().cloned().map(Part::Call).collect();
        messages.push(Message::Assistant {
            wire: wire.clone(),
            model: model.clone(),
            host: String::new(),
            parts,
        });
        let results = calls
            .into_iter()
            .map(|call| CallResult {
                id: call.id,
                wire_id: call.wire_id,
                name: call.name,
                outcome: Outcome::text(format!("result {turn}")),
            })
            .collect();
        messages.push(Message::Results { results });
        messages.push(Message::Assistant {
            wire,
            model,
            host: String::new(),
            parts: vec![Part::text("answer")],
        });
    }
    messages
}

#[test]
fn a_longer_request_begins_with_the_bytes_of_the_shorter_one() {
    for wire in wires() {
        let encoded: Vec<Encoded> = conversation(6)
            .iter()
            .map(|message| wire.message(message, &target(), "h:1", &NoBlobs))
            .collect();
        let mut before = String::new();
        for end in (0..encoded.len()).step_by(2) {
            let body = wire.request(&request(encoded[..=end].to_vec()));
            serde_json::from_str::<Value>(&body).unwrap();
            let bare = body.replace(MARK, "");
            let prefix = bare.strip_suffix("]}").unwrap().to_owned();
            assert!(bare.starts_with(&before), "{} at {end}", wire.name());
            for message in &encoded[..=end] {
                assert!(bare.contains(message.json()));
            }
            before = prefix;
        }
    }
}

#[test]
fn tools_that_come_late_leave_what_was_sent_as_it_was() {
    let (is_makers, newest_fields, is_azure) = (true, true, false);
    let wires: [Arc<dyn Wire>; 5] = [
        Arc::new(AnthropicMessages { is_makers }),
        Arc::new(AnthropicMessages::default()),
        Arc::new(OpenAiChat { newest_fields }),
        Arc::new(OpenAiResponses { newest_fields, is_azure }),
        Arc::new(OpenAiResponses::default()),
    ];
    let target = Target { model: "gpt-5.4".into(), vision: true };
    let tools = [haft_types::ToolSpec::new("weather", "Weather", "Tells the weather.")];
    let late = LateTools { tools: &tools, are_declared: false };
    for (number, wire) in wires.into_iter().enumerate() {
        let encode = |message: &Message| wire.message(message, &target, "h:1", &NoBlobs);
        let mut messages: Vec<Encoded> = conversation(2)[..7].iter().map(encode).collect();
        let body = |messages: &[Encoded]| {
            let request = Request { model: target.model.clone(), ..request(messages.to_vec()) };
            let headers = wire.request_headers(&request).len();
            let body = wire.request(&request);
            serde_json::from_str::<Value>(&body).unwrap();
            (body.replace(MARK, "").strip_suffix("]}").unwrap().to_owned(), headers)
        };
        let (before, none) = body(&messages);
        messages.push(wire.late_tools(&late, &target));
        messages.push(wire.system_message("Words of haft.", &target));
        let (after, headers) = body(&messages);
        assert!(after.starts_with(&before) && after.contains("Tells the weather."), "{number}");
        assert_eq!((none, headers), (0, usize::from(number == 0)), "{number}");
        // Only what the wire does not append is called by another tool.
        let names_it = after[before.len()..].contains(haft_llm::CALL_TOOL);
        assert_eq!(names_it, !wire.appends_tools(&target), "{number}");
    }
    let old = Target { model: "gpt-5.3".into(), vision: true };
    assert!(!OpenAiResponses { newest_fields, is_azure }.appends_tools(&old));
}

/// A question, an answer that was paused twice, then a call with its result, and the end.
fn paused() -> Vec<Message> {
    let mut messages = conversation(1);
    let Message::Assistant { wire, model, .. } = &messages[1] else { panic!("no answer") };
    let said = |text: &str| Message::Assistant {
        wire: wire.clone(),
        model: model.clone(),
        host: String::new(),
        parts: vec![Part::text(text)],
    };
    messages.splice(1..1, [said("first"), said("second")]);
    messages
}

#[test]
fn what_follows_a_paused_answer_stays_in_later_requests() {
    for wire in wires() {
        let encoded: Vec<Encoded> =
            paused().iter().map(|m| wire.message(m, &target(), "h:1", &NoBlobs)).collect();
        let mut before = String::new();
        // After the question, each pause, and the result.
        for count in [1, 2, 3, 5] {
            let body = wire.request(&request(encoded[..count].to_vec()));
            let bare = body.replace(MARK, "");
            assert!(bare.starts_with(&before), "{} at {count}: {bare}", wire.name());
            before = bare.strip_suffix("]}").unwrap().to_owned();
            let body: Value = serde_json::from_str(&body).unwrap();
            let messages = body["messages"].as_array().unwrap();
            let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
            let twice = roles.windows(2).any(|two| two[0] == "assistant" && two[0] == two[1]);
            assert!(!twice, "{} at {count}: {roles:?}", wire.name());
            if wire.name() == "anthropic" {
                let last = messages.last().unwrap();
                assert!(last.to_string().contains("cache_control"), "{count}: {last}");
            }
        }
    }
}

#[test]
fn cache_marks_are_at_most_four_and_stand_on_the_last_messages() {
    let wire = AnthropicMessages::default();
    let messages = conversation(3);
    let encoded: Vec<Encoded> =
        messages[..11].iter().map(|m| wire.message(m, &target(), "h:1", &NoBlobs)).collect();
    let body = wire.request(&request(encoded));
    assert_eq!(body.matches(MARK).count(), 4);
    let body: Value = serde_json::from_str(&body).unwrap();
    let marked: Vec<usize> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .filter(|(_, message)| message.to_string().contains("cache_control"))
        .map(|(at, _)| at)
        .collect();
    assert_eq!(marked, [8, 10]);
    assert!(body["tools"][0]["cache_control"].is_object());
    assert!(body["system"][0]["cache_control"].is_object());
}

#[test]
fn a_message_encodes_to_the_same_bytes_each_time() {
    for wire in wires() {
        for message in conversation(2) {
            let once = wire.message(&message, &target(), "h:1", &NoBlobs);
            let json = serde_json::to_string(&message).unwrap();
            let reread: Message = serde_json::from_str(&json).unwrap();
            assert_eq!(once, wire.message(&reread, &target(), "h:1", &NoBlobs));
        }
    }
}

/// What the properties below are given, the same in every run.
fn drawn<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..500).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

fn histories() -> impl Strategy<Value = Vec<Message>> {
    let one = (0_u8..3, 1_u64..4, any::<String>());
    prop::collection::vec(one, 0..12)
        .prop_map(|all| all.into_iter().map(|(kind, n, text)| message(kind, n, text)).collect())
}

fn message(kind: u8, n: u64, text: String) -> Message {
    match kind {
        0 => Message::User { from: From::Person, parts: vec![Part::text(text)] },
        1 => {
            let (id, name) = (CallId::nth(n), text.clone());
            let call = ToolUse::from_wire(id, String::new(), name, text);
            let parts = vec![Part::Call(call)];
            Message::Assistant {
                wire: "openai".into(),
                model: "m".into(),
                host: String::new(),
                parts,
            }
        }
        _ => Message::Results {
            results: vec![CallResult {
                id: CallId::nth(n),
                wire_id: text.clone(),
                name: text.clone(),
                outcome: Outcome::text(text),
            }],
        },
    }
}

fn messages_of(wire: &dyn Wire, history: &[Message]) -> Vec<Value> {
    let encoded = history.iter().map(|m| wire.message(m, &target(), "h:1", &NoBlobs)).collect();
    let body: Value = serde_json::from_str(&wire.request(&request(encoded))).unwrap();
    body["messages"].as_array().unwrap().clone()
}

#[test]
fn histories_hold_calls_that_stay_in_the_request_and_unmatched_ones_are_seen() {
    for (wire, mark) in wires().into_iter().zip(["tool_use_id", "tool_call_id"]) {
        let with_result = drawn(histories())
            .into_iter()
            .filter(|history| {
                let messages = messages_of(&*wire, history);
                messages.iter().any(|message| message.to_string().contains(mark))
            })
            .count();
        assert!(with_result > 100, "{}: {with_result} of 500", wire.name());
        let mut messages = messages_of(&*wire, &conversation(1));
        assert_eq!(unmatched(&messages), 0);
        messages.retain(|message| !message.to_string().contains(mark));
        assert_eq!(unmatched(&messages), 2, "{}: {messages:?}", wire.name());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever a history holds, in whatever order, the request is JSON in which every call has
    /// its result right after it and no result is without its call.
    #[test]
    fn any_history_makes_a_valid_request(history in histories()) {
        for wire in wires() {
            let messages = messages_of(&*wire, &history);
            let last = messages.last().unwrap();
            prop_assert!(last["role"] != "assistant");
            prop_assert_eq!(unmatched(&messages), 0);
        }
    }
}

/// How many calls lack their result in what follows, and results their call in what precedes.
fn unmatched(messages: &[Value]) -> usize {
    let blocks = |message: &Value, kind: &str, id: &str| -> Vec<String> {
        let content = message["content"].as_array().cloned().unwrap_or_default();
        let fits = content.iter().filter(|block| block["type"] == kind);
        fits.map(|block| block[id].as_str().unwrap().to_owned()).collect()
    };
    let (mut open, mut wrong): (Vec<String>, usize) = (Vec::new(), 0);
    for message in messages {
        let mut results = blocks(message, "tool_result", "tool_use_id");
        results.extend(message["tool_call_id"].as_str().map(str::to_owned));
        for id in &results {
            match open.iter().position(|other| other == id) {
                Some(at) => drop(open.remove(at)),
                None => wrong += 1,
            }
        }
        if results.is_empty() {
            wrong += open.len();
            open = blocks(message, "tool_use", "id");
            let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
            open.extend(calls.iter().map(|call| call["id"].as_str().unwrap().to_owned()));
        }
    }
    wrong + open.len()
}

/// The maker's own servers are asked why their cache did not have a prefix, and no other one is.
#[test]
fn only_the_makers_are_asked_about_their_cache() {
    let asks = |wire: &dyn Wire, model: &str, previous: Option<&str>| {
        let request = Request {
            model: model.into(),
            previous: previous.map(str::to_owned),
            ..request(Vec::new())
        };
        serde_json::from_str::<Value>(&wire.request(&request)).unwrap()
    };
    let own = AnthropicMessages { is_makers: true };
    let told = asks(&own, "claude-opus-5", None);
    assert_eq!(told["diagnostics"], json!({"previous_message_id": null}));
    let told = asks(&own, "claude-opus-5", Some("msg_1"));
    assert_eq!(told["diagnostics"], json!({"previous_message_id": "msg_1"}));
    let other = asks(&AnthropicMessages::default(), "claude-opus-5", Some("msg_1"));
    assert_eq!(other["diagnostics"], Value::Null);
    let own = OpenAiResponses { newest_fields: true, ..OpenAiResponses::default() };
    let compared = json!({"comparison_response_id": "resp_1"});
    for (model, is_asked) in [
        ("gpt-5.6", true),
        ("gpt-5.10-mini", true),
        ("gpt-6", true),
        ("gpt-5", false),
        ("gpt-5-2025-08-07", false),
        ("gpt-4.1", false),
        ("o3", false),
    ] {
        let told = asks(&own, model, Some("resp_1"));
        let wanted = if is_asked { compared.clone() } else { Value::Null };
        assert_eq!(told["prompt_cache_options"], wanted, "{model}");
    }
    let told = asks(&OpenAiResponses::default(), "gpt-6", Some("resp_1"));
    assert_eq!(told["prompt_cache_options"], Value::Null);
}

#[test]
fn what_a_server_says_of_its_cache_is_read() {
    let anthropic = |diagnostics: Value| {
        let message = json!({"id": "msg_2", "diagnostics": diagnostics, "usage": {}});
        let start = json!({"type": "message_start", "message": message});
        receipt(&AnthropicMessages::default(), &start)
    };
    let report = |reason: &str, missed| Some(CacheReport { reason: reason.to_owned(), missed });
    let why =
        json!({"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 9}});
    assert_eq!(anthropic(why), ("msg_2".into(), report("tools_changed", Some(9))));
    let pending = json!({"cache_miss_reason": null});
    assert_eq!(anthropic(pending), ("msg_2".into(), report("pending", None)));
    assert_eq!(anthropic(Value::Null), ("msg_2".into(), None));
    let responses = |diagnostics: Value| {
        let response = json!({"id": "resp_2", "output": [], "status": "completed",
            "prompt_cache_diagnostics": diagnostics});
        let end = json!({"type": "response.completed", "response": response});
        receipt(&OpenAiResponses::default(), &end)
    };
    let why = json!({"type": "cache_miss", "reason": "input_changed", "cache_missed_tokens": 7});
    assert_eq!(responses(why), ("resp_2".into(), report("input_changed", Some(7))));
    let none = json!({"type": "comparison_response_not_found"});
    let none_found = report("comparison_response_not_found", None);
    assert_eq!(responses(none), ("resp_2".into(), none_found));
    assert_eq!(responses(Value::Null), ("resp_2".into(), None));
}

/// What a decoder makes of an event that tells of the request.
fn receipt(wire: &dyn Wire, event: &Value) -> (String, Option<CacheReport>) {
    let mut reader = AnswerReader::new(wire.decoder(Habits::default()));
    let mut out = Vec::new();
    // Without the rest of it an answer may be an error: what was said before that counts.
    let _ = reader.push(format!("data: {event}\n\n").as_bytes(), &mut out);
    let receipt = out.into_iter().find_map(|delta| match delta {
        Delta::Receipt { id, cache } => Some((id, cache)),
        _ => None,
    });
    receipt.unwrap()
}
