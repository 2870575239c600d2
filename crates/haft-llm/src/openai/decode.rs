//! Chunks of Chat Completions become deltas.
//!
//! **Invariant:** text and thinking of one index are contiguous; a change of kind begins a new
//! part. The answer ends with `[DONE]`, or with the stream where a finish reason was given; the
//! last reason counts.

use std::collections::HashMap;

use haft_net::SseEvent;
use haft_types::{Stop, Usage};
use serde_json::Value;

use crate::{
    Decoder, Delta, Habits, LlmError,
    calls::Calls,
    extra::{Extra, unknown},
    failure,
    json::{self, Halves},
    stop::{self, Content},
    think::{Piece, Think},
};

/// Fields in which compatible servers stream what the model thinks; the first that is there wins.
pub(crate) const REASONING_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];
/// Fields of a message that are read, or that say nothing which a server could want back.
const KNOWN: [&str; 15] = [
    "role",
    "content",
    "refusal",
    "tool_calls",
    "function_call",
    "reasoning_content",
    "reasoning",
    "name",
    "audio",
    "annotations",
    "citations",
    "images",
    "logprobs",
    "token_ids",
    "provider_specific_fields",
];

/// Decodes one answer.
#[derive(Default)]
pub(super) struct ChatDecoder {
    habits: Habits,
    /// The part that text or thinking goes on in.
    open: Option<Open>,
    /// Index for the next part.
    next: u32,
    calls: Calls,
    /// True once calls came in the list that replaced the old form.
    has_list: bool,
    /// Fields of the message that nobody here knows.
    extra: Extra,
    think: Think,
    /// What is open of a character, by the field whose text it stands in.
    halves: HashMap<&'static str, Halves>,
    finish: Option<String>,
    refused: bool,
    usage: Usage,
    ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Text(u32),
    /// The field that it comes by; empty for one that takes nothing back.
    Thinking(u32, &'static str),
    /// Thinking that stands in the text.
    ThinkingInText(u32),
}

impl Decoder for ChatDecoder {
    fn event(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended {
            return Ok(());
        }
        if event.data.trim() == "[DONE]" {
            return self.done(out);
        }
        if event.name == "error" {
            return Err(failure::in_stream(None, &event.data));
        }
        let (chunk, marked) = json::parse(&event.data)
            .map_err(|error| failure::malformed("Chat Completions", event, &error))?;
        let choice = &chunk["choices"][0];
        for error in [&chunk["error"], &choice["error"], &choice["delta"]["error"]] {
            if failure::is_said(error) {
                return Err(failure::in_stream(Some(error), &event.data));
            }
        }
        if choice.is_null()
            && let Some(error) = failure::of_other_shape(&chunk, &event.data)
        {
            return Err(error);
        }
        self.count(&chunk["usage"]);
        // Some servers send the whole message in place of the stream, and some at its end again.
        let says_nothing = !failure::is_said(&choice["delta"]);
        if says_nothing && self.is_empty() && choice["message"].is_object() {
            self.delta(&choice["message"], marked, true, out);
        } else {
            self.delta(&choice["delta"], marked, false, out);
        }
        failure::check_parts(self.next.max(self.calls.count()))?;
        if let Some(reason) = choice["finish_reason"].as_str().filter(|r| !r.is_empty()) {
            self.finish = Some(reason.to_owned());
        }
        Ok(())
    }

    fn has_reason(&self) -> bool {
        self.finish.is_some()
    }

    fn is_call_open(&self) -> bool {
        self.finish.is_none() && self.calls.any()
    }

    fn is_empty(&self) -> bool {
        self.next == 0 && self.finish.is_none() && !self.calls.any() && !self.has_reasoned()
    }

    fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended {
            return Ok(());
        }
        if self.finish.is_some() {
            return self.end(out);
        }
        self.break_off(out);
        Err(failure::cut())
    }
}

impl ChatDecoder {
    pub(super) fn new(habits: Habits) -> Self {
        Self { habits, ..Self::default() }
    }

    /// Takes what a chunk adds; `whole` tells that it is the message itself.
    fn delta(&mut self, delta: &Value, marked: bool, whole: bool, out: &mut Vec<Delta>) {
        for field in REASONING_FIELDS {
            if let Some(text) = delta[field].as_str() {
                let is_new = !self.has_reasoned();
                let text = self.joined(field, text, marked);
                // An empty field is wanted back as one.
                if !text.is_empty() || (is_new && field == REASONING_FIELDS[0]) {
                    self.thinking(text, field, out);
                }
                if !delta[field].as_str().unwrap_or_default().is_empty() {
                    break;
                }
            }
        }
        match &delta["content"] {
            Value::String(text) => {
                let text = self.joined("content", text, marked);
                self.content(text, out);
            }
            Value::Array(parts) => {
                for part in parts {
                    self.content_part(part, marked, out);
                }
            }
            _ => {}
        }
        if let Some(text) = delta["refusal"].as_str().filter(|text| !text.is_empty()) {
            self.refused = true;
            let text = self.joined("refusal", text, marked);
            self.text(text, out);
        }
        for (key, value) in unknown(delta, &KNOWN) {
            self.extra.join(key, value, marked);
        }
        self.call_pieces(delta, marked, whole, out);
    }

    fn call_pieces(&mut self, delta: &Value, marked: bool, whole: bool, out: &mut Vec<Delta>) {
        let pieces = delta["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        // The old form stands beside the new one, or alone.
        let old = Some(&delta["function_call"])
            .filter(|call| call.is_object() && pieces.is_empty() && !self.has_list);
        self.has_list |= !pieces.is_empty();
        for (at, piece) in pieces.iter().chain(old).enumerate() {
            self.close(out);
            if whole {
                self.calls.whole((at, piece), marked, &mut self.next, out);
            } else {
                self.calls.piece(piece, marked, &mut self.next, out);
            }
        }
    }

    /// One part of a content that is a list, as some servers of thinking models send it.
    fn content_part(&mut self, part: &Value, marked: bool, out: &mut Vec<Delta>) {
        if let Some(text) = part["text"].as_str() {
            let text = self.joined("content", text, marked);
            self.content(text, out);
        }
        for thought in part["thinking"].as_array().into_iter().flatten() {
            let text = thought["text"].as_str().unwrap_or_default();
            let text = self.joined("", text, marked);
            // No field takes this form back, so no field is named.
            if !text.is_empty() {
                self.thinking(text, "", out);
            }
        }
    }

    /// Reports whether the server gave a field for thinking, empty or not.
    fn has_reasoned(&self) -> bool {
        REASONING_FIELDS.iter().any(|field| self.halves.contains_key(field))
    }

    fn joined(&mut self, field: &'static str, text: &str, marked: bool) -> String {
        self.halves.entry(field).or_default().join(text, marked)
    }

    /// Text of the answer, at whose beginning thinking may stand.
    fn content(&mut self, text: String, out: &mut Vec<Delta>) {
        let mut pieces = Vec::new();
        self.think.push(text, &mut pieces);
        self.pieces(pieces, out);
    }

    fn pieces(&mut self, pieces: Vec<Piece>, out: &mut Vec<Delta>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.text(text, out),
                Piece::Thinking(text) => {
                    let index = self.thinking_in_text(out);
                    out.push(Delta::Thinking { index, text });
                }
                Piece::End(signature) => {
                    let index = self.thinking_in_text(out);
                    self.open = None;
                    out.push(Delta::ThinkingEnd { index, signature: Some(signature) });
                }
            }
        }
    }

    fn thinking_in_text(&mut self, out: &mut Vec<Delta>) -> u32 {
        match self.open {
            Some(Open::ThinkingInText(index)) => index,
            _ => self.begin(Open::ThinkingInText, out),
        }
    }

    fn text(&mut self, text: String, out: &mut Vec<Delta>) {
        if text.is_empty() {
            return;
        }
        let index = match self.open {
            Some(Open::Text(index)) => index,
            _ => self.begin(Open::Text, out),
        };
        out.push(Delta::Text { index, text });
    }

    fn thinking(&mut self, text: String, field: &'static str, out: &mut Vec<Delta>) {
        let index = match self.open {
            Some(Open::Thinking(index, same)) if same == field => index,
            _ => {
                self.close(out);
                self.begin(|index| Open::Thinking(index, field), out)
            }
        };
        if !text.is_empty() {
            out.push(Delta::Thinking { index, text });
        }
    }

    fn begin(&mut self, part: impl FnOnce(u32) -> Open, out: &mut Vec<Delta>) -> u32 {
        self.close_thinking(out);
        let index = self.next;
        self.next += 1;
        self.open = Some(part(index));
        index
    }

    /// Ends the part that is open, with what was held back of it.
    fn close(&mut self, out: &mut Vec<Delta>) {
        let mut pieces = Vec::new();
        self.think.end(&mut pieces);
        self.pieces(pieces, out);
        self.close_thinking(out);
    }

    fn close_thinking(&mut self, out: &mut Vec<Delta>) {
        if let Some(Open::Thinking(index, field)) = self.open.take() {
            if let Some(half) = self.halves.get_mut(field).and_then(Halves::end) {
                out.push(Delta::Thinking { index, text: half.to_string() });
            }
            let signature = Some(field.to_owned()).filter(|field| !field.is_empty());
            out.push(Delta::ThinkingEnd { index, signature });
        }
    }

    /// Takes the end mark.
    fn done(&mut self, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        let may_be_left_out = self.habits.ends_without_reason || self.calls.any_ended();
        stop::check_mark(self.is_empty(), self.finish.is_some() || may_be_left_out)?;
        self.end(out)
    }

    /// Closes what is open and gives out what is whole of an answer that is not.
    fn break_off(&mut self, out: &mut Vec<Delta>) {
        self.close(out);
        self.calls.give_ended_only(out);
    }

    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        self.ended = true;
        let content = Content { called: self.calls.any(), refused: self.refused };
        let stop = match stop::of(self.finish.as_deref(), content) {
            Ok(stop) => stop,
            Err(error) => {
                // A reason ends the calls, whatever it is.
                self.close(out);
                self.calls.give_closed(out);
                return Err(error);
            }
        };
        self.give_back(content.called, out);
        self.calls.give_all(stop == Stop::Length, &mut self.next, out);
        out.push(Delta::End { stop, usage: self.usage });
        Ok(())
    }

    /// Closes the parts, with what the server wants back of them.
    fn give_back(&mut self, called: bool, out: &mut Vec<Delta>) {
        for field in ["content", "refusal"] {
            if let Some(half) = self.halves.get_mut(field).and_then(Halves::end) {
                self.text(half.to_string(), out);
            }
        }
        // A server of thinking models wants the field beside every call, thought or not.
        if called && !self.has_reasoned() && self.habits.reasoning == Some(REASONING_FIELDS[0]) {
            self.thinking(String::new(), REASONING_FIELDS[0], out);
        }
        self.close(out);
        if let Some(json) = self.extra.take() {
            out.push(Delta::Opaque { index: self.next, json });
            self.next += 1;
        }
    }

    fn count(&mut self, usage: &Value) {
        if !usage.is_object() {
            return;
        }
        let prompt = usage["prompt_tokens"].as_u64().unwrap_or(0);
        let details = &usage["prompt_tokens_details"];
        let cached = details["cached_tokens"]
            .as_u64()
            .or_else(|| usage["prompt_cache_hit_tokens"].as_u64())
            .unwrap_or(0);
        let written = details["cache_write_tokens"].as_u64().unwrap_or(0);
        self.usage = Usage {
            input: prompt.saturating_sub(cached).saturating_sub(written),
            cache_read: cached,
            cache_write: written,
            output: usage["completion_tokens"].as_u64().unwrap_or(0),
        };
    }
}
