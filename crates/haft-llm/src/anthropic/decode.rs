//! Events of Anthropic Messages become deltas.
//!
//! **Invariant:** a block's index on the wire only tells which open block an event belongs to;
//! ours count the parts as they begin. A call that may have been cut off by the output limit is
//! held back until the answer ends.

use haft_net::SseEvent;
use haft_types::{CacheReport, Stop, Usage};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    Decoder, Delta, Habits, LlmError,
    calls::Calls,
    extra::{Extra, unknown},
    failure,
    json::{self, Halves},
    stop::{self, Content},
    think::{Piece, Think},
};

/// Fields of a call that are read, or that are ours to set.
const KNOWN: [&str; 5] = ["type", "id", "name", "input", "cache_control"];

/// Decodes one answer.
#[derive(Default)]
pub(super) struct MessagesDecoder {
    habits: Habits,
    blocks: Vec<Block>,
    /// Index for the next part.
    next: u32,
    /// Finished calls of which the last does not show that its arguments are whole.
    held: Vec<Delta>,
    /// Searches of the server's own whose results have not come. Without them none goes back.
    searches: Vec<Delta>,
    think: Think,
    started: bool,
    called: bool,
    stop: Option<String>,
    usage: Usage,
    ended: bool,
}

/// A block that is still streaming.
struct Block {
    wire_index: Option<u64>,
    index: u32,
    halves: Halves,
    kind: Kind,
}

enum Kind {
    Text,
    Thinking {
        signature: Option<String>,
    },
    Call {
        calls: Box<Calls>,
    },
    /// A search of the server's own: the block as it began, and the text of its input.
    Search {
        block: Value,
        input: String,
    },
    /// Complete at its start, or of no use to us.
    Other,
}

/// Most bytes of the input of a search.
const SEARCH_MAX: usize = 1 << 20;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    index: Value,
    message: Option<Value>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    delta: Option<Value>,
    usage: Option<Value>,
    error: Option<Value>,
}

/// An answer in place of a stream.
#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow, default)]
    content: Vec<&'a RawValue>,
    stop_reason: Option<String>,
    usage: Option<Value>,
}

/// What of a block has to stay as it is written.
#[derive(Deserialize)]
struct Input<'a> {
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

impl Decoder for MessagesDecoder {
    fn event(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended {
            return Ok(());
        }
        // Some gateways end as the other wire does.
        if event.data.trim() == "[DONE]" {
            return self.done(out);
        }
        let malformed = |error| failure::malformed("Anthropic Messages", event, &error);
        match serde_json::from_str(&event.data) {
            Ok(envelope) => self.envelope(&envelope, event, &event.data, false, out),
            Err(_) if event.name == "error" => Err(failure::in_stream(None, &event.data)),
            Err(error) => {
                let (data, marked) = json::marked(&event.data).ok_or_else(|| malformed(error))?;
                let envelope = serde_json::from_str(&data).map_err(malformed)?;
                self.envelope(&envelope, event, &data, marked, out)
            }
        }
    }

    fn has_reason(&self) -> bool {
        self.stop.is_some()
    }

    fn is_call_open(&self) -> bool {
        let is_call = |block: &Block| matches!(block.kind, Kind::Call { .. });
        !self.held.is_empty() || self.blocks.iter().any(is_call)
    }

    fn is_empty(&self) -> bool {
        !self.started && self.next == 0 && self.stop.is_none()
    }

    fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended {
            return Ok(());
        }
        if self.stop.is_some() {
            return self.end(out);
        }
        self.break_off(out);
        Err(failure::cut())
    }
}

/// What a message says of its request; none where it has no id. A reason that is null is not known
/// yet.
fn receipt(message: &Value) -> Option<Delta> {
    let id = message.get("id")?.as_str().filter(|id| !id.is_empty())?.to_owned();
    let report = |diagnostics: &Value| {
        let why = diagnostics.get("cache_miss_reason")?;
        let reason = why.get("type").and_then(Value::as_str).unwrap_or("pending").to_owned();
        let missed = why.get("cache_missed_input_tokens").and_then(Value::as_u64);
        Some(CacheReport { reason, missed })
    };
    let diagnostics = message.get("diagnostics").filter(|given| given.is_object());
    Some(Delta::Receipt { id, cache: diagnostics.and_then(report) })
}

impl MessagesDecoder {
    pub(super) fn new(habits: Habits) -> Self {
        Self { habits, ..Self::default() }
    }

    fn envelope(
        &mut self,
        envelope: &Envelope<'_>,
        event: &SseEvent,
        data: &str,
        marked: bool,
        out: &mut Vec<Delta>,
    ) -> Result<(), LlmError> {
        let named = envelope.kind.is_empty() && event.name != "message";
        let kind = if named { &event.name } else { &envelope.kind };
        if envelope.error.as_ref().is_some_and(failure::is_said) {
            return Err(failure::in_stream(envelope.error.as_ref(), &event.data));
        }
        match kind.as_str() {
            "message_start" => {
                self.started = true;
                let usage = envelope.message.as_ref().and_then(|message| message.get("usage"));
                self.count(usage);
                out.extend(envelope.message.as_ref().and_then(receipt));
            }
            "content_block_start" => {
                if let Some(block) = envelope.content_block {
                    self.start(json::number(&envelope.index), block, marked, out);
                }
                failure::check_parts(self.next)?;
            }
            "content_block_delta" => {
                self.delta(envelope, marked, out);
                failure::check_parts(self.next)?;
            }
            "content_block_stop" => {
                if let Some(at) = self.position(json::number(&envelope.index)) {
                    let block = self.blocks.remove(at);
                    self.close(block, out);
                }
            }
            "message_delta" => self.message_delta(envelope),
            "message_stop" => return self.done(out),
            "message" => return self.whole(data, marked, out),
            "error" => return Err(failure::in_stream(envelope.error.as_ref(), &event.data)),
            // Pings, and kinds of events that came after this was written.
            _ => {
                let value: Value = serde_json::from_str(data).unwrap_or_default();
                if let Some(error) = failure::of_other_shape(&value, &event.data) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Takes an answer that came whole, where nothing came before.
    fn whole(&mut self, data: &str, marked: bool, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if !self.is_empty() {
            return Ok(());
        }
        let Ok(message) = serde_json::from_str::<Whole<'_>>(data) else { return Ok(()) };
        self.started = true;
        self.count(message.usage.as_ref());
        out.extend(serde_json::from_str(data).ok().as_ref().and_then(receipt));
        for block in message.content {
            self.start(None, block, marked, out);
            failure::check_parts(self.next)?;
            if let Some(block) = self.blocks.pop() {
                self.close(block, out);
            }
        }
        self.stop = message.stop_reason;
        Ok(())
    }

    /// The newest open block with this index; without an index the newest of all.
    fn position(&self, index: Option<u64>) -> Option<usize> {
        match index {
            Some(_) => self.blocks.iter().rposition(|block| block.wire_index == index),
            None => self.blocks.len().checked_sub(1),
        }
    }

    fn start(
        &mut self,
        wire_index: Option<u64>,
        raw: &RawValue,
        marked: bool,
        out: &mut Vec<Delta>,
    ) {
        self.release(false, out);
        if wire_index.is_some()
            && let Some(at) = self.position(wire_index)
        {
            // The end of the block before was lost on the way.
            let block = self.blocks.remove(at);
            self.close(block, out);
        }
        let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let index = self.begin();
        let kind = match value["type"].as_str().unwrap_or_default() {
            "text" => Kind::Text,
            "thinking" => {
                Kind::Thinking { signature: Some(text("signature")).filter(|s| !s.is_empty()) }
            }
            "tool_use" => self.call(index, raw, &value, marked, out),
            kind @ ("redacted_thinking" | "web_search_tool_result") => {
                if kind == "web_search_tool_result" {
                    out.append(&mut self.searches);
                }
                let json = if marked { json::whole(raw.get()) } else { raw.get().to_owned() };
                out.push(Delta::Opaque { index, json });
                Kind::Other
            }
            "server_tool_use" => Kind::Search { block: value.clone(), input: String::new() },
            _ => Kind::Other,
        };
        self.blocks.push(Block { wire_index, index, halves: Halves::default(), kind });
        let at = self.blocks.len() - 1;
        match self.blocks[at].kind {
            Kind::Text => self.text(at, &text("text"), marked, out),
            Kind::Thinking { .. } => self.thinking(at, &text("thinking"), marked, out),
            _ => {}
        }
    }

    /// Begins a call, with the input that some gateways give here instead of streaming it.
    fn call(
        &mut self,
        index: u32,
        raw: &RawValue,
        value: &Value,
        marked: bool,
        out: &mut Vec<Delta>,
    ) -> Kind {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let mut extra = Extra::default();
        for (key, field) in unknown(value, &KNOWN) {
            extra.set(key, field, marked);
        }
        let mut calls = Box::<Calls>::default();
        calls.begin(index, text("id"), text("name"), extra);
        out.push(Delta::CallPart { index, name: text("name"), json: String::new() });
        let input = serde_json::from_str::<Input<'_>>(raw.get()).ok().and_then(|all| all.input);
        let is_said = |input: &&str| *input != "null" && !json::is_empty_object(input);
        if let Some(input) = input.map(RawValue::get).filter(is_said) {
            let input = if marked { json::whole(input) } else { input.to_owned() };
            // A text holds the object that is meant.
            let input = value["input"].as_str().map_or(input, str::to_owned);
            calls.text(&input, &mut self.next, out);
            calls.hold_place();
        }
        Kind::Call { calls }
    }

    fn begin(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn delta(&mut self, envelope: &Envelope<'_>, marked: bool, out: &mut Vec<Delta>) {
        let Some(delta) = &envelope.delta else { return };
        let kind = delta["type"].as_str().unwrap_or_default();
        let number = json::number(&envelope.index);
        let Some(at) = self.block_of(number, kind, out) else { return };
        let text = |key: &str| delta[key].as_str().unwrap_or_default();
        match (&mut self.blocks[at].kind, kind) {
            (Kind::Text, "text_delta") => self.text(at, text("text"), marked, out),
            (Kind::Thinking { .. }, "thinking_delta") => {
                self.thinking(at, text("thinking"), marked, out);
            }
            (Kind::Thinking { signature }, "signature_delta") => {
                signature.get_or_insert_default().push_str(text("signature"));
            }
            (Kind::Search { input, .. }, "input_json_delta") => {
                let piece = text("partial_json");
                if input.len() + piece.len() <= SEARCH_MAX {
                    input.push_str(piece);
                }
            }
            (Kind::Call { .. }, "input_json_delta") => {
                let piece = self.blocks[at].halves.join(text("partial_json"), marked);
                if let Kind::Call { calls } = &mut self.blocks[at].kind {
                    calls.text(&piece, &mut self.next, out);
                }
            }
            _ => {}
        }
    }

    /// The open block that a delta belongs to. Where its begin was lost or left out, and text or
    /// thinking tells what it is, it begins here; one of the other kind ends then.
    fn block_of(
        &mut self,
        wire_index: Option<u64>,
        kind: &str,
        out: &mut Vec<Delta>,
    ) -> Option<usize> {
        let at = self.position(wire_index);
        let open = at.map(|at| &self.blocks[at].kind);
        let begun = match (kind, open) {
            ("text_delta", None | Some(Kind::Thinking { .. })) => Kind::Text,
            ("thinking_delta", None | Some(Kind::Text)) => Kind::Thinking { signature: None },
            _ => return at,
        };
        if let Some(at) = at {
            let block = self.blocks.remove(at);
            self.close(block, out);
        }
        let (index, halves) = (self.begin(), Halves::default());
        self.blocks.push(Block { wire_index, index, halves, kind: begun });
        Some(self.blocks.len() - 1)
    }

    /// More text of a block, at the beginning of which thinking may stand.
    fn text(&mut self, at: usize, text: &str, marked: bool, out: &mut Vec<Delta>) {
        let text = self.blocks[at].halves.join(text, marked);
        let mut pieces = Vec::new();
        self.think.push(text, &mut pieces);
        let mut index = self.blocks[at].index;
        self.pieces(&mut index, pieces, out);
        self.blocks[at].index = index;
    }

    /// Gives out pieces of a text block; what follows thinking is a part of its own.
    fn pieces(&mut self, index: &mut u32, pieces: Vec<Piece>, out: &mut Vec<Delta>) {
        for piece in pieces {
            let at = *index;
            out.push(match piece {
                Piece::Text(text) => Delta::Text { index: at, text },
                Piece::Thinking(text) => Delta::Thinking { index: at, text },
                Piece::End(signature) => {
                    *index = self.begin();
                    Delta::ThinkingEnd { index: at, signature: Some(signature) }
                }
            });
        }
    }

    fn thinking(&mut self, at: usize, text: &str, marked: bool, out: &mut Vec<Delta>) {
        let block = &mut self.blocks[at];
        let (index, text) = (block.index, block.halves.join(text, marked));
        if !text.is_empty() {
            out.push(Delta::Thinking { index, text });
        }
    }

    fn close(&mut self, block: Block, out: &mut Vec<Delta>) {
        let Block { mut index, mut halves, kind, .. } = block;
        match kind {
            Kind::Text => {
                let mut pieces = Vec::new();
                let half = halves.end().map(String::from).unwrap_or_default();
                self.think.push(half, &mut pieces);
                self.think.end(&mut pieces);
                self.think = Think::Past;
                self.pieces(&mut index, pieces, out);
            }
            Kind::Thinking { signature } => {
                out.extend(halves.end().map(|half| Delta::Thinking { index, text: half.into() }));
                out.push(Delta::ThinkingEnd { index, signature });
            }
            Kind::Call { mut calls } => {
                self.release(self.is_limited(), out);
                self.called = true;
                calls.give_all(false, &mut self.next, &mut self.held);
                if calls.are_closed() {
                    out.append(&mut self.held);
                }
            }
            Kind::Search { mut block, input } => {
                if let Ok(input) = serde_json::from_str::<Value>(&input) {
                    block["input"] = input;
                }
                self.searches.push(Delta::Opaque { index, json: block.to_string() });
            }
            Kind::Other => {}
        }
    }

    /// Gives out what was held back; of that only the last call may have been cut off.
    fn release(&mut self, was_cut: bool, out: &mut Vec<Delta>) {
        if let Some(Delta::Call { cut, .. }) = self.held.last_mut() {
            *cut = was_cut;
        }
        out.append(&mut self.held);
    }

    /// Reports whether the answer is over and ran into its limit.
    fn is_limited(&self) -> bool {
        let stop = self.stop.as_deref().filter(|_| self.ended);
        stop.map(|reason| stop::of_reason(reason, Content::default())) == Some(Ok(Stop::Length))
    }

    fn message_delta(&mut self, envelope: &Envelope<'_>) {
        self.count(envelope.usage.as_ref());
        let reason = envelope.delta.as_ref().and_then(|delta| delta["stop_reason"].as_str());
        if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            self.stop = Some(reason.to_owned());
        }
    }

    /// Takes the end mark.
    fn done(&mut self, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        let is_known = self.stop.is_some() || self.habits.ends_without_reason || self.called;
        stop::check_mark(self.is_empty(), is_known)?;
        self.end(out)
    }

    /// Ends the texts of an answer that is not whole, and drops the calls that are open.
    fn break_off(&mut self, out: &mut Vec<Delta>) {
        for block in std::mem::take(&mut self.blocks) {
            // Of thinking a part of its proof would be none.
            if matches!(block.kind, Kind::Text) {
                self.close(block, out);
            }
        }
        self.held.clear();
    }

    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        self.ended = true;
        let is_call = |block: &Block| matches!(block.kind, Kind::Call { .. });
        let called = self.called || self.blocks.iter().any(is_call);
        let content = Content { called, refused: false };
        let stop = match stop::of(self.stop.as_deref(), content) {
            Ok(stop) => stop,
            Err(error) => {
                self.break_off(out);
                return Err(error);
            }
        };
        for block in std::mem::take(&mut self.blocks) {
            self.close(block, out);
        }
        self.release(stop == Stop::Length, out);
        out.push(Delta::End { stop, usage: self.usage });
        Ok(())
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
