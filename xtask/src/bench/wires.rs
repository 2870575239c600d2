//! Answers of a model as each wire streams them: one call, or a closing text.
//!
//! Only what the wires need to be complete; the odd cases are the cassettes of haft-llm. It does
//! not know who sends them.

use serde_json::{Value, json};

/// A wire that haft speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Anthropic,
    OpenAi,
}

impl Wire {
    /// Every wire.
    pub(super) const ALL: [Self; 2] = [Self::Anthropic, Self::OpenAi];

    /// Its name, which is also the first part of a model's.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }

    /// The variables that send haft to a server.
    pub(super) fn environment(self, url: &str) -> [(&'static str, String); 2] {
        let key = "no key is needed".to_owned();
        match self {
            Self::Anthropic => [("ANTHROPIC_BASE_URL", url.to_owned()), ("ANTHROPIC_API_KEY", key)],
            Self::OpenAi => [("OPENAI_BASE_URL", format!("{url}/v1")), ("OPENAI_API_KEY", key)],
        }
    }

    /// An answer that is one call; the number makes its id.
    pub(super) fn call(self, number: usize, tool: &str, input: &Value) -> String {
        let (id, input) = (format!("call_{number}"), input.to_string());
        match self {
            Self::Anthropic => anthropic(
                &json!({ "type": "tool_use", "id": id, "name": tool, "input": {} }),
                &json!({ "type": "input_json_delta", "partial_json": input }),
                "tool_use",
            ),
            Self::OpenAi => openai(
                &json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function",
                    "function": { "name": tool, "arguments": input } }] }),
                "tool_calls",
            ),
        }
    }

    /// An answer that ends the turn.
    pub(super) fn text(self, text: &str) -> String {
        match self {
            Self::Anthropic => anthropic(
                &json!({ "type": "text", "text": "" }),
                &json!({ "type": "text_delta", "text": text }),
                "end_turn",
            ),
            Self::OpenAi => openai(&json!({ "role": "assistant", "content": text }), "stop"),
        }
    }
}

fn anthropic(block: &Value, delta: &Value, stop: &str) -> String {
    let usage = json!({ "input_tokens": 10, "output_tokens": 1 });
    let message = json!({ "id": "msg", "type": "message", "role": "assistant", "model": "bench",
        "content": [], "stop_reason": null, "usage": usage });
    [
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": stop, "stop_sequence": null },
            "usage": { "output_tokens": 9 } }),
        json!({ "type": "message_stop" }),
    ]
    .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("")))
    .concat()
}

fn openai(delta: &Value, stop: &str) -> String {
    let chunk = |delta: &Value, stop: Value| {
        json!({ "id": "1", "object": "chat.completion.chunk",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": stop }] })
    };
    let usage = json!({ "id": "1", "choices": [],
        "usage": { "prompt_tokens": 10, "completion_tokens": 9, "total_tokens": 19 } });
    let chunks = [chunk(delta, Value::Null), chunk(&json!({}), json!(stop)), usage];
    let mut text = chunks.map(|chunk| format!("data: {chunk}\n\n")).concat();
    text.push_str("data: [DONE]\n\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_holds_its_tool_and_arguments_on_every_wire() {
        for wire in Wire::ALL {
            let text = wire.call(3, "read", &json!({ "path": "a b" }));
            assert!(text.contains("call_3") && text.contains("read"), "{text}");
            assert!(text.contains(r#"{\"path\":\"a b\"}"#), "{text}");
            assert!(text.ends_with("\n\n") && wire.text("over").contains("over"));
        }
    }
}
