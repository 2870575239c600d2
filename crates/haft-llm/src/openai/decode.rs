//! Chunks of Chat Completions become deltas.
//!
//! **Invariant:** text and thinking of one index are contiguous; a change of kind begins a new
//! part. The answer ends with `[DONE]`, or with the stream where a finish reason was given.

use haft_net::SseEvent;
use haft_types::{Stop, Usage};
use serde_json::Value;

use super::calls::Calls;
use crate::{Decoder, Delta, LlmError, failure, json};

/// Fields in which compatible servers stream what the model thinks; the first that is there wins.
pub(super) const REASONING_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

/// Decodes one answer.
#[derive(Default)]
pub(super) struct ChatDecoder {
    /// The part that text or thinking goes on in.
    open: Option<Open>,
    /// Index for the next part.
    next: u32,
    calls: Calls,
    finish: Option<String>,
    refused: bool,
    usage: Usage,
    ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Text(u32),
    Thinking(u32, &'static str),
}

impl Decoder for ChatDecoder {
    fn event(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended {
            return Ok(());
        }
        if event.data.trim() == "[DONE]" {
            // An end with nothing before it is no answer.
            if self.next == 0 && self.finish.is_none() {
                return Err(failure::cut());
            }
            self.end(out);
            return Ok(());
        }
        let chunk = json::parse(&event.data)
            .map_err(|error| failure::malformed("Chat Completions", event, &error))?;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(failure::in_stream(Some(error), &event.data));
        }
        if event.name == "error" {
            return Err(failure::in_stream(None, &event.data));
        }
        self.count(&chunk["usage"]);
        let choice = &chunk["choices"][0];
        // Some servers end with the whole message instead of a delta; only the reason counts then.
        self.delta(&choice["delta"], out);
        failure::check_parts(self.next)?;
        if let Some(reason) = choice["finish_reason"].as_str().filter(|r| !r.is_empty()) {
            if reason == "error" {
                return Err(failure::in_stream(None, &event.data));
            }
            self.finish = Some(reason.to_owned());
            self.settle(out);
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.ended || self.finish.is_some()
    }

    fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended {
            return Ok(());
        }
        if self.finish.is_some() {
            self.end(out);
            return Ok(());
        }
        self.calls.give_whole_only(out);
        Err(failure::cut())
    }
}

impl ChatDecoder {
    fn delta(&mut self, delta: &Value, out: &mut Vec<Delta>) {
        for field in REASONING_FIELDS {
            if let Some(text) = delta[field].as_str().filter(|text| !text.is_empty()) {
                self.thinking(text, field, out);
                break;
            }
        }
        match &delta["content"] {
            Value::String(text) => self.text(text, out),
            Value::Array(parts) => {
                for part in parts {
                    self.content_part(part, out);
                }
            }
            _ => {}
        }
        if let Some(text) = delta["refusal"].as_str().filter(|text| !text.is_empty()) {
            self.refused = true;
            self.text(text, out);
        }
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            self.close(out);
            self.calls.piece(piece, &mut self.next, out);
        }
    }

    /// One part of a content that is a list, as some servers of thinking models send it.
    fn content_part(&mut self, part: &Value, out: &mut Vec<Delta>) {
        if let Some(text) = part["text"].as_str() {
            self.text(text, out);
        }
        for thought in part["thinking"].as_array().into_iter().flatten() {
            // No field takes this form back, so no field is named.
            self.thinking(thought["text"].as_str().unwrap_or_default(), "", out);
        }
    }

    fn text(&mut self, text: &str, out: &mut Vec<Delta>) {
        if text.is_empty() {
            return;
        }
        let index = match self.open {
            Some(Open::Text(index)) => index,
            _ => self.begin(Open::Text, out),
        };
        out.push(Delta::Text { index, text: text.to_owned() });
    }

    fn thinking(&mut self, text: &str, field: &'static str, out: &mut Vec<Delta>) {
        if text.is_empty() {
            return;
        }
        let index = match self.open {
            Some(Open::Thinking(index, same)) if same == field => index,
            _ => self.begin(|index| Open::Thinking(index, field), out),
        };
        out.push(Delta::Thinking { index, text: text.to_owned() });
    }

    fn begin(&mut self, part: impl FnOnce(u32) -> Open, out: &mut Vec<Delta>) -> u32 {
        self.close(out);
        let index = self.next;
        self.next += 1;
        self.open = Some(part(index));
        index
    }

    fn close(&mut self, out: &mut Vec<Delta>) {
        if let Some(Open::Thinking(index, field)) = self.open.take() {
            let signature = Some(field.to_owned()).filter(|field| !field.is_empty());
            out.push(Delta::ThinkingEnd { index, signature });
        }
    }

    /// Closes what is open, now that the finish reason is known.
    fn settle(&mut self, out: &mut Vec<Delta>) {
        self.close(out);
        self.calls.give_all(self.stop() == Stop::Length, out);
    }

    fn end(&mut self, out: &mut Vec<Delta>) {
        self.settle(out);
        self.ended = true;
        out.push(Delta::End { stop: self.stop(), usage: self.usage });
    }

    fn stop(&self) -> Stop {
        match self.finish.as_deref() {
            Some("length" | "max_tokens") => Stop::Length,
            Some("content_filter" | "refusal") => Stop::Refusal,
            // Servers say "stop" beside calls, and "tool_calls" without any.
            _ if self.calls.any() => Stop::ToolUse,
            _ if self.refused => Stop::Refusal,
            _ => Stop::EndTurn,
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
