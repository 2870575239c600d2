//! Streams that no honest server sends: whatever comes, an answer ends once and nothing panics.

use haft_llm::{
    AnswerReader, Delta, Habits, LlmError, Wire, anthropic::AnthropicMessages, openai::OpenAiChat,
};
use haft_testkit::{cassette::Cassette, http::Step};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use serde_json::json;

const ANTHROPIC: &str = include_str!("../cassettes/anthropic-parallel-calls.txt");
const OPENAI: &str = include_str!("../cassettes/openai-gateway-oddities.txt");

fn read(wire: &dyn Wire, body: &[u8]) -> (Vec<Delta>, Option<LlmError>) {
    let mut reader = AnswerReader::new(wire.decoder(Habits::default()));
    let mut out = Vec::new();
    let pushed = reader.push(body, &mut out);
    let error = pushed.and_then(|()| reader.finish(&mut out)).err();
    (out, error)
}

fn ends_once(wire: &dyn Wire, body: &[u8]) {
    let (deltas, error) = read(wire, body);
    let ends = deltas.iter().filter(|delta| matches!(delta, Delta::End { .. })).count();
    assert_eq!(ends + usize::from(error.is_some()), 1, "{error:?}");
    let mut called: Vec<u32> = deltas
        .iter()
        .filter_map(|delta| if let Delta::Call { index, .. } = delta { Some(*index) } else { None })
        .collect();
    let count = called.len();
    called.dedup();
    assert_eq!(called.len(), count, "a call came twice");
}

#[test]
fn an_answer_of_endless_parts_is_given_up() {
    let block = r#"{"type":"content_block_start","index":N,"content_block":{"type":"text"}}"#;
    let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":N,"function":{"name":"f"}}]}}]}"#;
    let wires: [(&dyn Wire, &str); 2] =
        [(&AnthropicMessages::default(), block), (&OpenAiChat::default(), call)];
    for (wire, event) in wires {
        let event = |n: usize| format!("data: {}\n\n", event.replace('N', &n.to_string()));
        let body: String = (0..5_000).map(event).collect();
        let (_, error) = read(wire, body.as_bytes());
        let Some(LlmError::Endless(text)) = error else { panic!("{error:?}") };
        assert!(text.contains("4096 parts") && text.contains("Ask again"), "{text}");
    }
}

#[test]
fn an_end_mark_with_nothing_before_it_is_an_answer_that_broke_off() {
    let chat = OpenAiChat::default();
    for body in ["data: [DONE]\n\n", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n"] {
        let (deltas, error) = read(&chat, body.as_bytes());
        assert_eq!(deltas, [], "{body}");
        assert!(matches!(&error, Some(LlmError::Empty(_))), "{body}: {error:?}");
    }
    let empty =
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    assert_eq!(read(&chat, empty.as_bytes()).1, None, "an answer may be empty when it says so");
}

/// What the properties below are given, the same in every run.
fn drawn<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..500).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// Changes of bytes: where, to what, and how.
type Damage = Vec<(prop::sample::Index, u8, u8)>;

fn damage() -> impl Strategy<Value = Damage> {
    // Letters too, for these leave much of it readable.
    let byte = prop_oneof![any::<u8>(), b'a'..=b'z'];
    prop::collection::vec((any::<prop::sample::Index>(), byte, 0_u8..4), 1..5)
}

/// The stream of a cassette after some of its bytes were changed.
fn damaged(is_openai: bool, damage: &Damage) -> Vec<u8> {
    let cassette = Cassette::parse("damaged", if is_openai { OPENAI } else { ANTHROPIC });
    let steps = cassette.responses().unwrap().remove(0).steps;
    let sent = steps.iter().map(|step| match step {
        Step::Send(bytes) => &bytes[..],
        other => panic!("a stream of bytes alone, not {other:?}"),
    });
    let mut body = sent.collect::<Vec<_>>().concat();
    for (place, byte, kind) in damage {
        let at = place.index(body.len());
        match kind {
            0 => body[at] = *byte,
            1 => drop(body.drain(at..(at + usize::from(*byte)).min(body.len()))),
            2 => drop(body.drain(at..(at + 2).min(body.len()))),
            _ => body.insert(at, *byte),
        }
    }
    body
}

#[test]
fn damage_breaks_some_streams_and_leaves_others_readable() {
    for is_openai in [true, false] {
        let wire: &dyn Wire =
            if is_openai { &OpenAiChat::default() } else { &AnthropicMessages::default() };
        assert_eq!(read(wire, &damaged(is_openai, &Vec::new())).1, None, "{}", wire.name());
        let all = drawn(damage());
        let read = all.iter().filter(|damage| read(wire, &damaged(is_openai, damage)).1.is_none());
        let count = read.count();
        assert!((20..480).contains(&count), "{}: {count} of 500 are read", wire.name());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_streams_end_once(damage in damage(), is_openai in any::<bool>()) {
        let body = damaged(is_openai, &damage);
        if is_openai {
            ends_once(&OpenAiChat::default(), &body);
        } else {
            ends_once(&AnthropicMessages::default(), &body);
        }
    }

    #[test]
    fn events_of_any_json_end_once(
        texts in prop::collection::vec(
            r#"(\{|\}|\[|\]|"choices"|"delta"|"type"|"error"|:|,|"index"|"tool_calls"|1|null|"x"){0,12}"#,
            0..6,
        ),
    ) {
        let body = format!("data: {}\n\n", texts.join("\n\ndata: "));
        ends_once(&OpenAiChat::default(), body.as_bytes());
        ends_once(&AnthropicMessages::default(), body.as_bytes());
    }
}

fn chat(events: &[String]) -> (Vec<Delta>, Option<LlmError>) {
    let body = format!("data: {}\n\n", events.join("\n\ndata: "));
    read(&OpenAiChat::default(), (body + "data: [DONE]\n\n").as_bytes())
}

fn piece(number: usize, arguments: &str) -> String {
    let call = json!({"index": number, "function": {"name": "f", "arguments": arguments}});
    json!({"choices": [{"delta": {"tool_calls": [call]}}]}).to_string()
}

#[test]
fn calls_without_end_are_given_up_whatever_they_look_like() {
    let objects = (0..20_000).map(|n| format!("{{\"n\":{n}}}")).collect::<Vec<_>>().concat();
    let one_event = vec![piece(0, &objects)];
    let same: Vec<String> = (0..20_000).map(|n| piece(n % 7, "{\"a\":1}")).collect();
    let numbers: Vec<String> = (0..10_000).rev().map(|n| piece(n, "{}")).collect();
    for (name, events) in [("objects in one event", one_event), ("numbers from the end", numbers)] {
        let (_, error) = chat(&events);
        assert!(matches!(error, Some(LlmError::Endless(_))), "{name}: {error:?}");
    }
    let finish = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}).to_string();
    let (deltas, error) = chat(&[same, vec![finish]].concat());
    assert_eq!(error, None, "what repeats an object is no call");
    let calls = deltas.iter().filter(|delta| matches!(delta, Delta::Call { .. })).count();
    assert_eq!(calls, 7);
}

#[test]
fn every_oddity_at_once_ends_once_and_gives_no_call_that_is_not_whole() {
    let text = json!({"choices": [{"delta": {"content": "<think>a"}, "finish_reason": "stop"}]});
    let old =
        json!({"choices": [{"delta": {"function_call": {"name": "g", "arguments": "{\"a"}}}]});
    let extra = json!({"choices": [{"delta": {"reasoning_details": [{"index": 0, "text": "x"}]}}]});
    let events = [
        ": PROCESSING".to_owned(),
        text.to_string(),
        "not json".to_owned(),
        piece(3, "{}"),
        extra.to_string(),
        piece(1, "{\"x\":"),
        piece(3, "{\"y\":1}{\"z\":"),
        old.to_string(),
        piece(0, "\u{fdd0}"),
        json!({"choices": [{"delta": {}, "finish_reason": "abort"}]}).to_string(),
    ];
    let (deltas, error) = chat(&events);
    assert!(matches!(error, Some(LlmError::Busy { .. })), "{error:?}");
    for delta in &deltas {
        if let Delta::Call { raw, .. } = delta {
            assert!(serde_json::from_str::<serde_json::Value>(raw).is_ok(), "{raw}");
        }
    }
}

#[test]
fn an_answer_in_place_of_a_stream_has_a_bound() {
    let mut reader = AnswerReader::new(OpenAiChat::default().decoder(Habits::default()));
    let mut out = Vec::new();
    let piece = vec![b' '; 1 << 20];
    reader.push(b"{\"choices\":", &mut out).unwrap();
    let error = (0..17).find_map(|_| reader.push(&piece, &mut out).err());
    assert!(matches!(error, Some(LlmError::Protocol(_))), "{error:?}");
}

#[test]
fn long_arguments_are_read_once_however_they_come() {
    let finish = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}).to_string();
    let blanks = vec![piece(0, &" ".repeat(20)); 20_000];
    let open = [vec![piece(0, "{")], blanks, vec![piece(0, "}")]].concat();
    let long = format!("{{\"a\":1{}}}", " ".repeat(200_000));
    let repeated = vec![piece(0, &long), piece(0, &"{\"a\":1}".repeat(20_000))];
    let many: Vec<String> = (0..4_000).map(|n| piece(n, "{\"a\":")).collect();
    let many = [many, vec![piece(0, " "); 6_000]].concat();
    for (name, events, calls) in
        [("blanks", open, 1), ("again", repeated, 1), ("many", many, 4_000)]
    {
        let (deltas, error) = chat(&[events, vec![finish.clone()]].concat());
        assert_eq!(error, None, "{name}");
        let given = deltas.iter().filter(|delta| matches!(delta, Delta::Call { .. })).count();
        assert_eq!(given, calls, "{name}");
    }
}
