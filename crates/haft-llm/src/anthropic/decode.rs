//! Events of Anthropic Messages become deltas.
//!
//! **Invariant:** a block's index on the wire only tells which open block an event belongs to;
//! ours count the blocks as they begin. A call that may have been cut off by the output limit is
//! held back until the stop reason is known.

use haft_net::SseEvent;
use haft_types::{Stop, Usage};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    Decoder, Delta, LlmError, failure,
    json::{self, ObjectScan},
};

/// Decodes one answer.
#[derive(Default)]
pub(super) struct MessagesDecoder {
    blocks: Vec<Block>,
    /// Index for the next block.
    next: u32,
    /// A finished call whose arguments do not show that they are whole.
    held: Option<Delta>,
    called: bool,
    stop: Option<String>,
    usage: Usage,
    ended: bool,
}

/// A block that is still streaming.
struct Block {
    wire_index: Option<u64>,
    index: u32,
    kind: Kind,
}

enum Kind {
    Text,
    Thinking {
        signature: Option<String>,
    },
    Call {
        wire_id: String,
        name: String,
        raw: String,
        scan: ObjectScan,
    },
    /// Complete at its start, or of no use to us.
    Other,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    index: Option<u64>,
    message: Option<Value>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    delta: Option<Value>,
    usage: Option<Value>,
    error: Option<Value>,
}

impl Decoder for MessagesDecoder {
    fn event(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended {
            return Ok(());
        }
        let mended;
        let envelope: Envelope<'_> = match serde_json::from_str(&event.data) {
            Ok(envelope) => envelope,
            Err(error) => {
                let malformed = || failure::malformed("Anthropic Messages", event, &error);
                mended = json::mended_surrogates(&event.data).ok_or_else(malformed)?;
                serde_json::from_str(&mended).map_err(|_| malformed())?
            }
        };
        let kind = if envelope.kind.is_empty() { &event.name } else { &envelope.kind };
        match kind.as_str() {
            "message_start" => {
                let usage = envelope.message.as_ref().and_then(|message| message.get("usage"));
                self.count(usage);
            }
            "content_block_start" => {
                self.start(&envelope, out);
                failure::check_parts(self.next)?;
            }
            "content_block_delta" => self.delta(&envelope, out),
            "content_block_stop" => {
                if let Some(at) = self.position(envelope.index) {
                    let block = self.blocks.remove(at);
                    self.close(block, out);
                }
            }
            "message_delta" => self.message_delta(&envelope, out),
            "message_stop" => self.end(out),
            "error" => return Err(failure::in_stream(envelope.error.as_ref(), &event.data)),
            // Pings, and kinds of events that came after this was written.
            _ => {}
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.ended || self.stop.is_some()
    }

    fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended {
            return Ok(());
        }
        if self.stop.is_some() {
            self.end(out);
            return Ok(());
        }
        Err(failure::cut())
    }
}

impl MessagesDecoder {
    /// The newest open block with this index; without an index the newest of all.
    fn position(&self, index: Option<u64>) -> Option<usize> {
        match index {
            Some(_) => self.blocks.iter().rposition(|block| block.wire_index == index),
            None => self.blocks.len().checked_sub(1),
        }
    }

    fn start(&mut self, envelope: &Envelope<'_>, out: &mut Vec<Delta>) {
        self.release(false, out);
        if envelope.index.is_some()
            && let Some(at) = self.position(envelope.index)
        {
            // The end of the block before was lost on the way.
            let block = self.blocks.remove(at);
            self.close(block, out);
        }
        let Some(raw) = envelope.content_block else { return };
        let value = json::parse(raw.get()).unwrap_or_default();
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let index = self.next;
        let kind = match value["type"].as_str().unwrap_or_default() {
            "text" => {
                push_some(out, text("text"), |text| Delta::Text { index, text });
                Kind::Text
            }
            "thinking" => {
                push_some(out, text("thinking"), |text| Delta::Thinking { index, text });
                Kind::Thinking { signature: Some(text("signature")).filter(|s| !s.is_empty()) }
            }
            "tool_use" => {
                let (wire_id, name) = (text("id"), text("name"));
                out.push(Delta::CallPart { index, name: name.clone(), json: String::new() });
                let mut scan = ObjectScan::default();
                // Some gateways give the whole input here instead of streaming it.
                let raw = match &value["input"] {
                    Value::Object(input) if !input.is_empty() => value["input"].to_string(),
                    _ => String::new(),
                };
                scan.feed(&raw);
                Kind::Call { wire_id, name, raw, scan }
            }
            "redacted_thinking" => {
                out.push(Delta::Opaque { index, json: raw.get().to_owned() });
                Kind::Other
            }
            _ => Kind::Other,
        };
        self.next += 1;
        self.blocks.push(Block { wire_index: envelope.index, index, kind });
    }

    fn delta(&mut self, envelope: &Envelope<'_>, out: &mut Vec<Delta>) {
        let Some(delta) = &envelope.delta else { return };
        let Some(at) = self.position(envelope.index) else { return };
        let block = &mut self.blocks[at];
        let index = block.index;
        let text = |key: &str| delta[key].as_str().unwrap_or_default().to_owned();
        match (&mut block.kind, delta["type"].as_str().unwrap_or_default()) {
            (Kind::Text, "text_delta") => {
                push_some(out, text("text"), |text| Delta::Text { index, text });
            }
            (Kind::Thinking { .. }, "thinking_delta") => {
                push_some(out, text("thinking"), |text| Delta::Thinking { index, text });
            }
            (Kind::Thinking { signature }, "signature_delta") => {
                signature.get_or_insert_default().push_str(&text("signature"));
            }
            (Kind::Call { name, raw, scan, .. }, "input_json_delta") => {
                let piece = text("partial_json");
                scan.feed(&piece);
                raw.push_str(&piece);
                push_some(out, piece, |json| Delta::CallPart { index, name: name.clone(), json });
            }
            _ => {}
        }
    }

    fn close(&mut self, block: Block, out: &mut Vec<Delta>) {
        let index = block.index;
        match block.kind {
            Kind::Thinking { signature } => out.push(Delta::ThinkingEnd { index, signature }),
            Kind::Call { wire_id, name, raw, scan } => {
                self.release(false, out);
                self.called = true;
                let call = Delta::Call { index, wire_id, name, raw, cut: false };
                if scan.is_closed() {
                    out.push(call);
                } else {
                    self.held = Some(call);
                }
            }
            Kind::Text | Kind::Other => {}
        }
    }

    fn release(&mut self, was_cut: bool, out: &mut Vec<Delta>) {
        if let Some(mut call) = self.held.take() {
            if let Delta::Call { cut, .. } = &mut call {
                *cut = was_cut;
            }
            out.push(call);
        }
    }

    fn message_delta(&mut self, envelope: &Envelope<'_>, out: &mut Vec<Delta>) {
        self.count(envelope.usage.as_ref());
        let reason = envelope.delta.as_ref().and_then(|delta| delta["stop_reason"].as_str());
        if let Some(reason) = reason {
            self.stop = Some(reason.to_owned());
            self.settle(out);
        }
    }

    /// Closes what is open, now that the stop reason is known.
    fn settle(&mut self, out: &mut Vec<Delta>) {
        for block in std::mem::take(&mut self.blocks) {
            self.close(block, out);
        }
        self.release(self.stop() == Stop::Length, out);
    }

    fn end(&mut self, out: &mut Vec<Delta>) {
        self.settle(out);
        self.ended = true;
        out.push(Delta::End { stop: self.stop(), usage: self.usage });
    }

    fn stop(&self) -> Stop {
        match self.stop.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
            Some("refusal") => Stop::Refusal,
            _ if self.called => Stop::ToolUse,
            Some("pause_turn") => Stop::Paused,
            _ => Stop::EndTurn,
        }
    }

    /// Later counts replace earlier ones: they are totals.
    fn count(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        let fields = [
            ("input_tokens", &mut self.usage.input),
            ("cache_read_input_tokens", &mut self.usage.cache_read),
            ("cache_creation_input_tokens", &mut self.usage.cache_write),
            ("output_tokens", &mut self.usage.output),
        ];
        for (key, field) in fields {
            if let Some(count) = usage[key].as_u64().filter(|count| *count > 0) {
                *field = count;
            }
        }
    }
}

fn push_some(out: &mut Vec<Delta>, text: String, make: impl FnOnce(String) -> Delta) {
    if !text.is_empty() {
        out.push(make(text));
    }
}
