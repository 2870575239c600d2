//! Events of Responses become deltas.
//!
//! Items may end in any order, so the index of a part is made of the place of its item: parts stand
//! in the order of `output_index`, whenever they came.
//!
//! **Invariant:** each item is given out once, when it is done, or when the answer is and its end was
//! not told. The answer ends with its status, never with the stream alone.

use std::collections::{BTreeMap, HashMap, HashSet};

use haft_net::SseEvent;
use haft_types::{CacheReport, Stop, Usage};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::late;
use crate::{
    Decoder, Delta, LlmError, failure,
    json::{self, Halves},
};

/// Indexes that the parts of one item have: the item itself, then its contents.
const ROOM: u64 = 256;

/// Decodes one answer.
#[derive(Default)]
pub(super) struct ResponsesDecoder {
    /// What is known of the items that are not done.
    open: HashMap<u64, OpenItem>,
    /// The places of items that are done.
    done: BTreeMap<u64, Kind>,
    /// The ids of items that are done.
    ids: HashSet<String>,
    halves: HashMap<u32, Halves>,
    /// Whether something came that is part of an answer.
    has_come: bool,
    refused: bool,
    ended: bool,
}

/// What came of an item.
#[derive(Default)]
struct OpenItem {
    name: String,
    /// How much of each content was given out, by its index.
    given: HashMap<u32, usize>,
    is_call: bool,
    is_thinking: bool,
}

/// What an item is that is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Call,
    /// Words on the way: the turn goes on.
    Commentary,
    Other,
}

/// The item of an event, as its bytes are.
#[derive(Deserialize)]
struct WithItem<'a> {
    #[serde(borrow)]
    item: Option<&'a RawValue>,
}

/// The items of a whole answer, as their bytes are.
#[derive(Deserialize)]
struct WithOutput<'a> {
    #[serde(borrow, default)]
    output: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct WithResponse<'a> {
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

impl Decoder for ResponsesDecoder {
    fn event(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended || event.data.trim() == "[DONE]" {
            return Ok(());
        }
        let (value, marked) = json::parse(&event.data)
            .map_err(|error| failure::malformed("Responses", event, &error))?;
        let kind = value["type"].as_str().unwrap_or(&event.name).to_owned();
        match kind.as_str() {
            "response.output_item.added" => self.added(&value, out),
            "response.output_text.delta" | "response.refusal.delta" => {
                self.refused |= kind == "response.refusal.delta";
                self.text(&value, marked, out);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.thinking(&value, marked, out);
            }
            "response.reasoning_summary_part.added" => self.next_summary(&value, out),
            "response.function_call_arguments.delta" => self.arguments(&value, out),
            "response.output_item.done" => {
                let raw = serde_json::from_str::<WithItem<'_>>(&event.data).ok();
                let raw = raw.and_then(|raw| raw.item).map(RawValue::get);
                self.item(place(&value), &value["item"], raw, out)?;
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let raw = serde_json::from_str::<WithResponse<'_>>(&event.data).ok();
                let raw = raw.and_then(|raw| raw.response).map(RawValue::get);
                return self.end(&value["response"], raw, out);
            }
            "error" => return Err(failure::in_stream(None, &event.data)),
            "" if value["object"] == "response" => return self.end(&value, Some(&event.data), out),
            _ => {
                if let Some(error) = failure::of_other_shape(&value, &event.data) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn has_reason(&self) -> bool {
        self.ended
    }

    fn is_call_open(&self) -> bool {
        self.open.values().any(|open| open.is_call)
    }

    fn is_empty(&self) -> bool {
        !self.has_come
    }

    fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended {
            return Ok(());
        }
        self.end_halves(out);
        Err(failure::cut())
    }
}

/// The place of an event's item.
fn place(value: &Value) -> u64 {
    json::number(&value["output_index"]).unwrap_or_default()
}

/// The index of a part; 0 is the item itself.
fn index(place: u64, part: u64) -> u32 {
    u32::try_from(place.saturating_mul(ROOM).saturating_add(part.min(ROOM - 1))).unwrap_or(u32::MAX)
}

impl ResponsesDecoder {
    fn added(&mut self, value: &Value, out: &mut Vec<Delta>) {
        let (at, item) = (place(value), &value["item"]);
        if self.done.contains_key(&at) {
            return;
        }
        self.has_come = true;
        let open = self.open.entry(at).or_default();
        let is_search = late::is_search(item);
        open.is_call = item["type"] == "function_call" || is_search;
        open.is_thinking = item["type"] == "reasoning";
        if open.is_call {
            let name = if is_search { Some(late::SEARCH_NAME) } else { item["name"].as_str() };
            name.unwrap_or_default().clone_into(&mut open.name);
            let (index, name) = (index(at, 0), open.name.clone());
            out.push(Delta::CallPart { index, name, json: String::new() });
        }
    }

    /// A piece of the text of a message.
    fn text(&mut self, value: &Value, marked: bool, out: &mut Vec<Delta>) {
        let content = json::number(&value["content_index"]).unwrap_or_default();
        let (at, index) = (place(value), index(place(value), content + 1));
        let Some(piece) = value["delta"].as_str().filter(|_| !self.done.contains_key(&at)) else {
            return;
        };
        let text = self.halves.entry(index).or_default().join(piece, marked);
        self.give(at, index, text, out);
    }

    fn give(&mut self, at: u64, index: u32, text: String, out: &mut Vec<Delta>) {
        if text.is_empty() {
            return;
        }
        self.has_come = true;
        *self.open.entry(at).or_default().given.entry(index).or_default() += text.len();
        out.push(Delta::Text { index, text });
    }

    /// A piece of what the model tells of its thinking; it is shown, and its item goes back.
    fn thinking(&mut self, value: &Value, marked: bool, out: &mut Vec<Delta>) {
        let (at, index) = (place(value), index(place(value), 1));
        let Some(piece) = value["delta"].as_str().filter(|_| !self.done.contains_key(&at)) else {
            return;
        };
        let text = self.halves.entry(index).or_default().join(piece, marked);
        if text.is_empty() {
            return;
        }
        self.has_come = true;
        let open = self.open.entry(at).or_default();
        open.is_thinking = true;
        *open.given.entry(index).or_default() += text.len();
        out.push(Delta::Thinking { index, text });
    }

    /// Another part of a summary stands a blank line apart.
    fn next_summary(&mut self, value: &Value, out: &mut Vec<Delta>) {
        let (at, index) = (place(value), index(place(value), 1));
        let has_text = |open: &OpenItem| open.given.get(&index).is_some_and(|given| *given > 0);
        if self.open.get(&at).is_some_and(has_text) {
            out.push(Delta::Thinking { index, text: "\n\n".to_owned() });
        }
    }

    fn arguments(&mut self, value: &Value, out: &mut Vec<Delta>) {
        let at = place(value);
        let Some(piece) = value["delta"].as_str().filter(|_| !self.done.contains_key(&at)) else {
            return;
        };
        self.has_come = true;
        let open = self.open.entry(at).or_default();
        open.is_call = true;
        let (index, name) = (index(at, 0), open.name.clone());
        out.push(Delta::CallPart { index, name, json: piece.to_owned() });
    }

    /// An item that is done.
    fn item(
        &mut self,
        at: u64,
        item: &Value,
        raw: Option<&str>,
        out: &mut Vec<Delta>,
    ) -> Result<(), LlmError> {
        if !item.is_object() || self.done.contains_key(&at) {
            return Ok(());
        }
        if let Some(id) = item["id"].as_str() {
            self.ids.insert(id.to_owned());
        }
        failure::check_parts(u32::try_from(self.done.len()).unwrap_or(u32::MAX))?;
        self.has_come = true;
        let open = self.open.remove(&at).unwrap_or_default();
        let kind = match item["type"].as_str().unwrap_or_default() {
            "function_call" => {
                out.push(call(at, item));
                Kind::Call
            }
            late::SEARCH if late::is_search(item) => {
                out.push(call(at, item));
                Kind::Call
            }
            "message" => self.message(at, item, &open, out),
            "reasoning" => {
                self.reasoning(at, item, &open, out);
                out.push(opaque(at, item, raw));
                Kind::Other
            }
            _ => {
                out.push(opaque(at, item, raw));
                Kind::Other
            }
        };
        self.done.insert(at, kind);
        Ok(())
    }

    /// A message: what of its texts was not given out, and all else of it to be sent back.
    fn message(&mut self, at: u64, item: &Value, open: &OpenItem, out: &mut Vec<Delta>) -> Kind {
        let (mut rest, mut says) = (item.clone(), false);
        let contents = rest["content"].as_array_mut().into_iter().flatten();
        for (number, part) in (1_u64..).zip(contents) {
            let field = match part["type"].as_str() {
                Some("output_text") => "text",
                Some("refusal") => "refusal",
                _ => continue,
            };
            self.refused |= field == "refusal";
            let text = part[field].as_str().unwrap_or_default().to_owned();
            let index = index(at, number);
            let half = self.halves.remove(&index).and_then(|mut half| half.end());
            let given = open.given.get(&index).copied().unwrap_or_default();
            // What streamed in counts where the two differ.
            let left = text.get(given..).filter(|_| half.is_none()).unwrap_or_default().to_owned();
            let left = half.map_or(left, String::from);
            says |= given > 0 || !left.is_empty();
            if !left.is_empty() {
                out.push(Delta::Text { index, text: left });
            }
            if let Some(part) = part.as_object_mut() {
                part.remove(field);
            }
        }
        let is_commentary = item["phase"] == "commentary";
        // One without a word is none.
        if says {
            out.push(Delta::Opaque { index: index(at, 0), json: rest.to_string() });
        }
        if is_commentary { Kind::Commentary } else { Kind::Other }
    }

    /// What is shown of thinking, where it did not stream in.
    fn reasoning(&mut self, at: u64, item: &Value, open: &OpenItem, out: &mut Vec<Delta>) {
        let index = index(at, 1);
        let half = self.halves.remove(&index).and_then(|mut half| half.end());
        if let Some(half) = half {
            out.push(Delta::Thinking { index, text: half.to_string() });
        }
        let streamed = open.given.get(&index).is_some_and(|given| *given > 0);
        let texts = |key: &str| -> Vec<String> {
            let parts = item[key].as_array().into_iter().flatten();
            parts.filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
        };
        let mut whole = texts("summary");
        if whole.is_empty() {
            whole = texts("content");
        }
        let text = whole.join("\n\n");
        if !streamed && !text.is_empty() {
            out.push(Delta::Thinking { index, text });
        } else if !streamed {
            return;
        }
        out.push(Delta::ThinkingEnd { index, signature: None });
    }

    /// The end of the answer, by its status. Items whose end was not told are taken from it.
    fn end(
        &mut self,
        response: &Value,
        raw: Option<&str>,
        out: &mut Vec<Delta>,
    ) -> Result<(), LlmError> {
        out.extend(receipt(response));
        let raws = raw.and_then(|raw| serde_json::from_str::<WithOutput<'_>>(raw).ok());
        let raws = raws.map(|raws| raws.output).unwrap_or_default();
        let streamed = self.ids.clone();
        for (at, item) in (0_u64..).zip(response["output"].as_array().into_iter().flatten()) {
            let raw = usize::try_from(at).ok().and_then(|at| raws.get(at)).map(|raw| raw.get());
            // A call that is not whole was cut off with the answer.
            let is_whole = item["status"].as_str().is_none_or(|status| status == "completed");
            // A server may count the items of the whole answer in another way than its events do.
            let is_given = item["id"].as_str().is_some_and(|id| streamed.contains(id));
            let is_call = item["type"] == "function_call" || late::is_search(item);
            if !is_given && (is_whole || !is_call) {
                self.item(at, item, raw, out)?;
            }
        }
        if failure::is_said(&response["error"]) || response["status"] == "failed" {
            let whole = response.to_string();
            let error = Some(&response["error"]).filter(|error| failure::is_said(error));
            return Err(failure::in_stream(error, &whole));
        }
        self.end_halves(out);
        let usage = usage(&response["usage"]);
        let reason = response["incomplete_details"]["reason"].as_str();
        let called = self.done.values().any(|kind| *kind == Kind::Call);
        let is_incomplete = response["status"] == "incomplete" || reason.is_some();
        if !self.has_come && !is_incomplete {
            return Err(failure::empty());
        }
        let stop = match reason {
            Some("content_filter") => Stop::Refusal,
            _ if is_incomplete => Stop::Length,
            _ if called => Stop::ToolUse,
            _ if self.refused => Stop::Refusal,
            _ if self.done.values().next_back() == Some(&Kind::Commentary) => Stop::Paused,
            _ => Stop::EndTurn,
        };
        self.ended = true;
        out.push(Delta::End { stop, usage });
        Ok(())
    }

    /// What stands for halves of characters that stayed alone.
    fn end_halves(&mut self, out: &mut Vec<Delta>) {
        let mut halves: Vec<_> = self.halves.drain().collect();
        halves.sort_by_key(|(index, _)| *index);
        for (index, mut half) in halves {
            if let Some(half) = half.end() {
                out.push(Delta::Text { index, text: half.to_string() });
            }
        }
    }
}

/// A call, whose other fields go back with it.
fn call(at: u64, item: &Value) -> Delta {
    let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let is_search = late::is_search(item);
    let known = ["call_id", "name", "arguments", "type"];
    // Its kind tells it from other calls.
    let known = &known[..known.len() - usize::from(is_search)];
    let fields = item.as_object().into_iter().flatten();
    let fields: Map<String, Value> = fields
        .filter(|(key, value)| !known.contains(&key.as_str()) && !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let wire_id = Some(text("call_id")).filter(|id| !id.is_empty()).unwrap_or_else(|| text("id"));
    // Some servers send the arguments as an object instead of its text.
    let raw = match &item["arguments"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let extra = (!fields.is_empty()).then(|| Value::Object(fields).to_string());
    let name = if is_search { late::SEARCH_NAME.to_owned() } else { text("name") };
    Delta::Call { index: index(at, 0), wire_id, name, raw, cut: false, extra }
}

/// An item that goes back as it came.
fn opaque(at: u64, item: &Value, raw: Option<&str>) -> Delta {
    let json = raw.map_or_else(|| item.to_string(), str::to_owned);
    Delta::Opaque { index: index(at, 0), json }
}

/// What a response says of its request; none where it has no id.
fn receipt(response: &Value) -> Option<Delta> {
    let id = response["id"].as_str().filter(|id| !id.is_empty())?.to_owned();
    let report = &response["prompt_cache_diagnostics"];
    let kind = report["type"].as_str();
    let cache = kind.map(|kind| CacheReport {
        reason: report["reason"].as_str().unwrap_or(kind).to_owned(),
        missed: report["cache_missed_tokens"].as_u64(),
    });
    Some(Delta::Receipt { id, cache })
}

fn usage(usage: &Value) -> Usage {
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    let details = &usage["input_tokens_details"];
    let (cached, written) =
        (count(&details["cached_tokens"]), count(&details["cache_write_tokens"]));
    Usage {
        input: count(&usage["input_tokens"]).saturating_sub(cached).saturating_sub(written),
        cache_read: cached,
        cache_write: written,
        output: count(&usage["output_tokens"]),
    }
}
