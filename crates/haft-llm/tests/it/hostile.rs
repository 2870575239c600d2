//! Streams that no honest server sends: whatever comes, an answer ends once and nothing panics.

use haft_llm::{
    AnswerReader, Delta, LlmError, Wire, anthropic::AnthropicMessages, openai::OpenAiChat,
};
use proptest::prelude::*;

const ANTHROPIC: &str = include_str!("../cassettes/anthropic-parallel-calls.txt");
const OPENAI: &str = include_str!("../cassettes/openai-gateway-oddities.txt");

fn read(wire: &dyn Wire, body: &[u8]) -> (Vec<Delta>, Option<LlmError>) {
    let mut reader = AnswerReader::new(wire.decoder());
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
        [(&AnthropicMessages, block), (&OpenAiChat::default(), call)];
    for (wire, event) in wires {
        let event = |n: usize| format!("data: {}\n\n", event.replace('N', &n.to_string()));
        let body: String = (0..5_000).map(event).collect();
        let (_, error) = read(wire, body.as_bytes());
        assert!(matches!(error, Some(LlmError::Protocol(_))), "{error:?}");
    }
}

#[test]
fn an_end_mark_with_nothing_before_it_is_an_answer_that_broke_off() {
    let chat = OpenAiChat::default();
    for body in ["data: [DONE]\n\n", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n"] {
        let (deltas, error) = read(&chat, body.as_bytes());
        assert_eq!(deltas, [], "{body}");
        assert!(matches!(&error, Some(LlmError::Cut(_))), "{body}: {error:?}");
    }
    let empty =
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    assert_eq!(read(&chat, empty.as_bytes()).1, None, "an answer may be empty when it says so");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_streams_end_once(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 1..6),
        is_openai in any::<bool>(),
    ) {
        let source = if is_openai { OPENAI } else { ANTHROPIC };
        let at = source.find("\ndata:").unwrap();
        let mut body = source.as_bytes()[at + 1..].to_vec();
        for (place, byte, kind) in edits {
            let at = place.index(body.len());
            match kind {
                0 => body[at] = byte,
                1 => drop(body.drain(at..(at + usize::from(byte)).min(body.len()))),
                _ => body.insert(at, byte),
            }
        }
        if is_openai {
            ends_once(&OpenAiChat::default(), &body);
        } else {
            ends_once(&AnthropicMessages, &body);
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
        ends_once(&AnthropicMessages, body.as_bytes());
    }
}
