//! Messages and requests in the form of Responses: a list of input items.

use std::collections::HashSet;

use haft_types::{Blob, CallId, CallResult, Hash, Message, Part, ToolSpec, ToolUse};
use serde_json::{Value, json};

use super::{NAME, late};
use crate::{
    Blobs, Effort, Encoded, Request, Role, Target,
    history::{Item, repaired},
    json::{push_field, push_string},
    shared::{self, NO_OUTPUT, NO_RESULT, NOTHING},
    wire::Pieces,
};

/// Bytes of base64 that are sent for one image.
const MAX_IMAGE: u64 = 20 << 20;
/// The least limit of tokens that the server takes.
const LEAST_TOKENS: u32 = 16;
/// Longest id of a call that goes back as it came.
const LONGEST_ID: usize = 64;

/// Fields of a request that a server may refuse, and that it is asked without then.
pub(super) const OPTIONAL: &[&str] =
    &["include", "reasoning", "prompt_cache_key", "prompt_cache_options", "text.format"];

/// Encodes one message.
pub(super) fn message(
    message: &Message,
    target: &Target,
    host: &str,
    blobs: &dyn Blobs,
) -> Encoded {
    let mut pieces = Pieces::new(Role::User);
    match message {
        Message::User { parts, .. } => push_user(&mut pieces.json, parts, target, blobs),
        Message::Assistant { wire, model, host: by, parts } => {
            pieces.role = Role::Assistant;
            let same_host = by.is_empty() || by == host;
            if wire == NAME && *model == target.model && same_host {
                push_own(&mut pieces, parts);
            } else {
                push_foreign(&mut pieces, parts);
            }
        }
        Message::Results { results } => {
            pieces.role = Role::Results;
            push_results(&mut pieces, results, target, blobs);
        }
    }
    Encoded::of(pieces)
}

/// The id of a call as it came, where every server takes it; else ours. The conversation leaves the
/// provider's out where it came before.
pub(super) fn call_id(id: &CallId, wire_id: &str) -> String {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_fine = !wire_id.is_empty() && wire_id.len() <= LONGEST_ID && wire_id.bytes().all(fits);
    if is_fine { wire_id.to_owned() } else { shared::wire_id(id) }
}

fn push_user(out: &mut String, parts: &[Part], target: &Target, blobs: &dyn Blobs) {
    out.push_str("{\"type\":\"message\",\"role\":\"user\",\"content\":[");
    let shown = |part: &&Part| {
        matches!(part, Part::Text { .. } | Part::Image { .. }) && shared::says_something(part)
    };
    let parts: Vec<&Part> = parts.iter().filter(shown).collect();
    if parts.is_empty() {
        push_text(out, "input_text", NOTHING);
    }
    shared::push_list(out, parts, |out, part| match part {
        Part::Text { text } => push_text(out, "input_text", text),
        Part::Image { blob } => push_image(out, blob, target, blobs),
        _ => {}
    });
    out.push_str("]}");
}

fn push_text(out: &mut String, kind: &str, text: &str) {
    out.push('{');
    push_field(out, "type", kind);
    out.push(',');
    push_field(out, "text", text);
    out.push('}');
}

fn push_image(out: &mut String, blob: &Blob, target: &Target, blobs: &dyn Blobs) {
    match shared::picture(blob, target, blobs, MAX_IMAGE) {
        shared::Picture::Note(note) => push_text(out, "input_text", &note),
        shared::Picture::Image { mime, base64 } => {
            out.push_str("{\"type\":\"input_image\",\"image_url\":\"data:");
            out.push_str(&mime);
            out.push_str(";base64,");
            out.push_str(&base64);
            out.push_str("\"}");
        }
    }
}

/// The target's own answer: its items as they came.
///
/// A reasoning item goes only before the item that it led to, as the server wants it. Where one is of
/// no use, the others go without their ids, by which the server would miss it.
fn push_own(pieces: &mut Pieces, parts: &[Part]) {
    let items: Vec<Value> = parts.iter().map(item_of).collect();
    let is_reasoning = |at: usize| items[at]["type"] == "reasoning";
    let leads = |at: &usize| !matches!(parts[*at], Part::Thinking { .. }) && !is_reasoning(*at);
    let last = (0..parts.len()).rev().find(leads).unwrap_or_default();
    let is_void = |at: usize| is_reasoning(at) && items[at]["encrypted_content"].is_null();
    let keeps_ids = !(0..parts.len()).any(is_void);
    let mut at = 0;
    while at < parts.len() {
        match &parts[at] {
            Part::Opaque { wire, json, .. } if wire == NAME && items[at].is_object() => {
                let item = &items[at];
                if item["type"] == "message" {
                    let texts = texts_of(item, &parts[at + 1..]);
                    at += texts.len();
                    begin_item(pieces);
                    let item = with_texts(item.clone(), &texts, keeps_ids);
                    pieces.json.push_str(&item.to_string());
                } else if !is_reasoning(at) || (!is_void(at) && at < last) {
                    begin_item(pieces);
                    pieces.json.push_str(json);
                }
            }
            Part::Text { text } if shared::says_something(&parts[at]) => push_said(pieces, text),
            Part::Call(call) => push_call(pieces, call, true, keeps_ids),
            _ => {}
        }
        at += 1;
    }
    close(pieces);
}

/// The item that a part holds; null where it is none of this wire.
fn item_of(part: &Part) -> Value {
    match part {
        Part::Opaque { wire, json, .. } if wire == NAME => {
            serde_json::from_str(json).unwrap_or_default()
        }
        _ => Value::Null,
    }
}

/// The texts behind a message item that are its own: as many as it has places for.
fn texts_of<'a>(item: &Value, parts: &'a [Part]) -> Vec<&'a str> {
    let contents = item["content"].as_array().into_iter().flatten();
    let places = contents.filter(|part| text_field(part).is_some()).count();
    let text = |part: &'a Part| if let Part::Text { text } = part { Some(&**text) } else { None };
    parts.iter().map_while(text).take(places).collect()
}

/// The field that holds the text of a content.
fn text_field(content: &Value) -> Option<&'static str> {
    match content["type"].as_str() {
        Some("output_text") => Some("text"),
        Some("refusal") => Some("refusal"),
        _ => None,
    }
}

/// A message item with its texts, which its decoder took out.
fn with_texts(mut item: Value, texts: &[&str], keeps_id: bool) -> Value {
    let mut texts = texts.iter();
    for part in item["content"].as_array_mut().into_iter().flatten() {
        if let Some(field) = text_field(part) {
            part[field] = Value::from(texts.next().copied().unwrap_or_default());
        }
    }
    if let Some(fields) = item.as_object_mut().filter(|_| !keeps_id) {
        fields.shift_remove("id");
    }
    item
}

/// An answer of another model: its words and calls.
fn push_foreign(pieces: &mut Pieces, parts: &[Part]) {
    let texts = shared::joined_texts(parts, false);
    if !texts.is_empty() {
        push_said(pieces, &texts.join("\n\n"));
    }
    for part in parts {
        if let Part::Call(call) = part {
            push_call(pieces, call, false, false);
        }
    }
    close(pieces);
}

fn begin_item(pieces: &mut Pieces) {
    if !pieces.json.is_empty() {
        pieces.json.push(',');
    }
}

fn push_said(pieces: &mut Pieces, text: &str) {
    begin_item(pieces);
    let out = &mut pieces.json;
    // As a plain text: an item of the answer's own form has to have the id that its server gave it.
    out.push_str("{\"type\":\"message\",\"role\":\"assistant\",");
    push_field(out, "content", text);
    out.push('}');
}

fn push_call(pieces: &mut Pieces, call: &ToolUse, own: bool, keeps_id: bool) {
    begin_item(pieces);
    let id = call_id(&call.id, &call.wire_id);
    let out = &mut pieces.json;
    let is_search = own && late::was_search(call);
    out.push_str("{\"type\":\"");
    out.push_str(if is_search { late::SEARCH } else { "function_call" });
    out.push('"');
    if let Some(extra) = call.extra.as_deref().filter(|_| own) {
        let known = ["type", "call_id", "name", "arguments", "id"];
        let known = &known[..known.len() - usize::from(keeps_id)];
        shared::push_fields(out, extra, known, &mut Vec::new());
    }
    out.push(',');
    push_field(out, "call_id", &id);
    out.push(',');
    let arguments = shared::replayed_arguments(&call.raw, call.input.as_ref());
    if is_search {
        out.push_str("\"arguments\":");
        out.push_str(&arguments);
        pieces.searches.push(id.clone());
    } else {
        push_field(out, "name", &shared::wire_name(&call.name));
        out.push(',');
        push_field(out, "arguments", &arguments);
    }
    pieces.json.push('}');
    pieces.calls.push(id);
}

/// Sees to it that the answer has an item.
fn close(pieces: &mut Pieces) {
    if pieces.json.is_empty() {
        push_said(pieces, NOTHING);
    }
}

fn push_results(pieces: &mut Pieces, results: &[CallResult], target: &Target, blobs: &dyn Blobs) {
    for result in results {
        begin_item(pieces);
        let id = call_id(&result.id, &result.wire_id);
        let start = pieces.json.len();
        let text = result.outcome.joined_text();
        let images: Vec<&Blob> = result
            .outcome
            .content
            .iter()
            .filter_map(|part| if let Part::Image { blob } = part { Some(blob) } else { None })
            .collect();
        push_output(&mut pieces.json, &id, |out| {
            if images.is_empty() {
                return push_string(out, if text.trim().is_empty() { NO_OUTPUT } else { &text });
            }
            out.push('[');
            if !text.trim().is_empty() {
                push_text(out, "input_text", &text);
                out.push(',');
            }
            shared::push_list(out, images, |out, blob| push_image(out, blob, target, blobs));
            out.push(']');
        });
        pieces.results.push((id, start..pieces.json.len()));
    }
    if pieces.json.is_empty() {
        push_user(&mut pieces.json, &[], target, blobs);
    }
}

fn push_output(out: &mut String, id: &str, push: impl FnOnce(&mut String)) {
    out.push_str("{\"type\":\"function_call_output\",");
    push_field(out, "call_id", id);
    out.push_str(",\"output\":");
    push(out);
    out.push('}');
}

/// Encodes the tool definitions.
pub(super) fn tools(tools: &[ToolSpec]) -> String {
    let start = "{\"type\":\"function\",\"strict\":false,";
    let list = shared::tool_list(tools, [start, "parameters", "}"]);
    shared::with_hosted(list, tools, |search| {
        let mut json = json!({"type": "web_search"});
        if !search.domains.is_empty() {
            json["filters"] = json!({"allowed_domains": search.domains});
        }
        json
    })
}

/// Whether a model thinks, as far as its name tells: a newer one than this code does.
pub(crate) fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    !["gpt-3", "gpt-4", "chatgpt-4"].iter().any(|old| name.starts_with(old))
}

/// The version of a model of the maker's, where its name tells one.
pub(super) fn version(model: &str) -> Option<(u32, u32)> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let version = name.strip_prefix("gpt-")?;
    let version = version.split('-').next().unwrap_or_default();
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    Some((numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default()))
}

/// Whether a model's server says why its cache did not have a prefix: from gpt-5.6 on.
fn compares(model: &str) -> bool {
    version(model).is_some_and(|version| version >= (5, 6))
}

/// Joins a request: what changes least stands first.
pub(super) fn request(request: &Request, newest_fields: bool) -> String {
    let items = repaired(&request.messages);
    let mut out = shared::body_for(request, 1_024);
    let takes = |field: &str| !request.without.iter().any(|without| without == field);
    out.push('{');
    push_field(&mut out, "model", &request.model);
    out.push_str(if request.whole { ",\"stream\":false" } else { ",\"stream\":true" });
    out.push_str(",\"store\":false");
    if reasons(&request.model) && takes("include") {
        out.push_str(",\"include\":[\"reasoning.encrypted_content\"]");
    }
    if let Some(max) = request.max_tokens {
        out.push_str(",\"max_output_tokens\":");
        out.push_str(&max.max(LEAST_TOKENS).to_string());
    }
    if let Some(effort) = request.effort.filter(|_| reasons(&request.model) && takes("reasoning")) {
        let name = if effort == Effort::Max { "xhigh" } else { effort.name() };
        out.push_str(",\"reasoning\":{");
        push_field(&mut out, "effort", name);
        out.push_str(",\"summary\":\"auto\"}");
    }
    if !request.format.is_empty() && takes("text.format") {
        out.push_str(",\"text\":{\"format\":");
        out.push_str(&request.format);
        out.push('}');
    }
    let system: Vec<&str> =
        request.system.iter().map(String::as_str).filter(|part| !part.trim().is_empty()).collect();
    let system = system.join("\n\n");
    if newest_fields && takes("prompt_cache_key") {
        // Requests that begin alike go to one cache.
        let hash = Hash::of(format!("{}{system}", request.tools).as_bytes()).to_string();
        out.push(',');
        push_field(&mut out, "prompt_cache_key", &hash[..32]);
    }
    if let Some(id) = &request.previous
        && newest_fields
        && compares(&request.model)
        && takes("prompt_cache_options")
    {
        out.push_str(",\"prompt_cache_options\":{");
        push_field(&mut out, "comparison_response_id", id);
        out.push('}');
    }
    if request.tools.len() > "[]".len() {
        out.push_str(",\"tools\":");
        out.push_str(&request.tools);
    }
    if !system.is_empty() {
        out.push(',');
        push_field(&mut out, "instructions", &system);
    }
    out.push_str(",\"input\":[");
    push_input(&mut out, &items, &request.without);
    out.push_str("]}");
    out
}

/// Appends the items of a conversation.
fn push_input(out: &mut String, items: &[Item<'_>], without: &[String]) {
    let mut searches = HashSet::new();
    shared::push_list(out, items, |out, item| {
        if let Item::Whole(message) = item
            && message.role() == Role::Assistant
        {
            searches = message.pieces().searches.iter().map(String::as_str).collect();
        }
        if late::fits(item, &searches) {
            push_item(out, item, without);
        } else {
            late::push_fitting(out, item, &searches);
        }
    });
}

/// Appends the result of a call that has none.
pub(super) fn push_no_result(out: &mut String, id: &str, text: &str) {
    push_output(out, id, |out| push_string(out, text));
}

fn push_item(out: &mut String, item: &Item<'_>, without: &[String]) {
    match item {
        Item::Whole(message) => shared::push_message(out, message, without),
        Item::Some(message, kept) => shared::push_kept(out, message, kept),
        Item::Missing(ids) => {
            shared::push_list(out, ids, |out, id| push_no_result(out, id, NO_RESULT));
        }
        Item::Filler(text) => {
            out.push_str("{\"type\":\"message\",\"role\":\"user\",\"content\":[");
            push_text(out, "input_text", text);
            out.push_str("]}");
        }
    }
}
