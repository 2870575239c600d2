//! Messages and requests in the form of Chat Completions.

use haft_types::{Blob, CallResult, Message, Part, ToolSpec};

use super::NAME;
use crate::{
    Blobs, Effort, Encoded, Request, Role, Target,
    history::{Item, repaired},
    json::{push_field, push_string},
    shared::{self, NO_OUTPUT, NO_RESULT, NOTHING, NULL_CONTENT, push_text},
    wire::Pieces,
};

/// Bytes of base64 that are sent for one image.
const MAX_IMAGE: u64 = 20 << 20;

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
            let own = wire == NAME && *model == target.model && same_host;
            push_assistant(&mut pieces, parts, own);
        }
        Message::Results { results } => {
            pieces.role = Role::Results;
            push_results(&mut pieces, results, target, blobs);
        }
    }
    Encoded::of(pieces)
}

fn push_user(out: &mut String, parts: &[Part], target: &Target, blobs: &dyn Blobs) {
    out.push_str("{\"role\":\"user\",\"content\":");
    let shown = |part: &&Part| {
        matches!(part, Part::Text { .. } | Part::Image { .. }) && shared::says_something(part)
    };
    let parts: Vec<&Part> = parts.iter().filter(shown).collect();
    let texts = parts.iter().map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    // Plain text goes as a string: some servers, and templates of models, take nothing else.
    match texts.collect::<Option<Vec<&str>>>() {
        Some(texts) if texts.is_empty() => push_string(out, NOTHING),
        Some(texts) => push_string(out, &texts.join("\n\n")),
        None => {
            out.push('[');
            shared::push_list(out, parts, |out, part| match part {
                Part::Text { text } => push_text(out, text),
                Part::Image { blob } => push_image(out, blob, target, blobs),
                _ => {}
            });
            out.push(']');
        }
    }
    out.push('}');
}

/// `own` tells whether the target itself said it.
fn push_assistant(pieces: &mut Pieces, parts: &[Part], own: bool) {
    let out = &mut pieces.json;
    out.push_str("{\"role\":\"assistant\"");
    let texts = shared::joined_texts(parts, own);
    let calls: Vec<_> = parts
        .iter()
        .filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None })
        .collect();
    out.push_str(",\"content\":");
    match (texts.is_empty(), calls.is_empty()) {
        (false, _) => push_string(out, &texts.join("\n\n")),
        (true, false) => {
            // What the reference says; a server that wants a text gets an empty one.
            let start = out.len();
            out.push_str("null");
            pieces.optional.push((NULL_CONTENT.to_owned(), start..out.len()));
        }
        (true, true) => push_string(out, NOTHING),
    }
    if own {
        push_reasoning(pieces, parts, !calls.is_empty());
    }
    for (at, call) in calls.iter().enumerate() {
        let out = &mut pieces.json;
        let id = shared::wire_id(&call.id);
        out.push_str(if at == 0 { ",\"tool_calls\":[{" } else { ",{" });
        push_field(out, "id", &id);
        out.push_str(",\"type\":\"function\"");
        let extra = call.extra.as_deref().filter(|_| own);
        if let Some(extra) = extra {
            shared::push_fields(
                out,
                extra,
                &["id", "type", "index", "function"],
                &mut pieces.optional,
            );
        }
        out.push_str(",\"function\":{");
        push_field(out, "name", &shared::wire_name(&call.name));
        out.push(',');
        let arguments = shared::replayed_arguments(&call.raw, call.input.as_ref());
        push_field(out, "arguments", &arguments);
        if let Some(function) = extra.and_then(of_function) {
            shared::push_fields(out, &function, &["name", "arguments"], &mut pieces.optional);
        }
        out.push_str("}}");
        pieces.calls.push(id);
    }
    pieces.json.push_str(if calls.is_empty() { "}" } else { "]}" });
}

/// What of a call's unknown fields stood inside of its function.
fn of_function(extra: &str) -> Option<String> {
    let fields: serde_json::Value = serde_json::from_str(extra).ok()?;
    fields.get("function").map(serde_json::Value::to_string)
}

/// Servers that stream their reasoning want it back beside the calls that it led to, under the
/// field that it came by; the decoder left that field's name as the signature. What else they
/// want back of a message stands in parts of this wire.
fn push_reasoning(pieces: &mut Pieces, parts: &[Part], called: bool) {
    let Pieces { json: out, optional, .. } = pieces;
    for field in super::decode::REASONING_FIELDS.into_iter().filter(|_| called) {
        let texts: Vec<&str> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Thinking { text, signature: Some(name) } if name == field => {
                    Some(text.as_str())
                }
                _ => None,
            })
            .collect();
        if !texts.is_empty() {
            let start = out.len();
            out.push(',');
            push_field(out, field, &texts.join("\n\n"));
            optional.push((field.to_owned(), start..out.len()));
        }
    }
    for part in parts {
        if let Part::Opaque { wire, json, .. } = part
            && wire == NAME
        {
            shared::push_fields(out, json, &["role", "content", "tool_calls"], optional);
        }
    }
}

fn push_results(pieces: &mut Pieces, results: &[CallResult], target: &Target, blobs: &dyn Blobs) {
    let mut images = Vec::new();
    for result in results {
        let id = shared::wire_id(&result.id);
        let text = result.outcome.joined_text();
        let before = images.len();
        images.extend(result.outcome.content.iter().filter_map(|part| match part {
            Part::Image { blob } => Some(blob),
            _ => None,
        }));
        if !pieces.json.is_empty() {
            pieces.json.push(',');
        }
        let start = pieces.json.len();
        let text = match (text.trim().is_empty(), images.len() > before) {
            (false, _) => text,
            (true, true) => "(see the image below)".into(),
            (true, false) => NO_OUTPUT.into(),
        };
        push_tool(&mut pieces.json, &id, &text);
        pieces.results.push((id, start..pieces.json.len()));
    }
    if pieces.json.is_empty() {
        pieces.json.push_str("{\"role\":\"user\",\"content\":\"(nothing)\"}");
    }
    if images.is_empty() {
        return;
    }
    // A tool message carries no images on this wire; they follow as words of the person's side.
    let out = &mut pieces.json;
    out.push_str(",{\"role\":\"user\",\"content\":[");
    push_text(out, "Images of the results above, in their order:");
    for blob in images {
        out.push(',');
        push_image(out, blob, target, blobs);
    }
    out.push_str("]}");
}

fn push_tool(out: &mut String, id: &str, text: &str) {
    out.push_str("{\"role\":\"tool\",");
    push_field(out, "tool_call_id", id);
    out.push(',');
    push_field(out, "content", text);
    out.push('}');
}

fn push_image(out: &mut String, blob: &Blob, target: &Target, blobs: &dyn Blobs) {
    let picture = shared::picture(blob, target, blobs, MAX_IMAGE);
    shared::push_picture(out, picture, |out, mime, base64| {
        out.push_str("{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:");
        out.push_str(mime);
        out.push_str(";base64,");
        out.push_str(base64);
        out.push_str("\"}}");
    });
}

/// Encodes the tool definitions.
pub(super) fn tools(tools: &[ToolSpec]) -> String {
    let start = "{\"type\":\"function\",\"function\":{";
    shared::tool_list(tools, [start, "parameters", "}}"])
}

/// Joins a request: what changes least stands first.
pub(super) fn request(request: &Request, newest_fields: bool) -> String {
    let items = repaired(&request.messages);
    let mut out = shared::body_for(request, 1_024);
    out.push('{');
    push_field(&mut out, "model", &request.model);
    out.push_str(if request.whole {
        ",\"stream\":false"
    } else {
        ",\"stream\":true,\"stream_options\":{\"include_usage\":true}"
    });
    if let Some(max) = request.max_tokens {
        let field = if newest_fields { "max_completion_tokens" } else { "max_tokens" };
        out.push(',');
        push_string(&mut out, field);
        out.push(':');
        out.push_str(&max.to_string());
    }
    if let Some(effort) = request.effort {
        out.push(',');
        let name = if effort == Effort::Max { "xhigh" } else { effort.name() };
        push_field(&mut out, "reasoning_effort", name);
    }
    if request.tools.len() > "[]".len() {
        out.push_str(",\"tools\":");
        out.push_str(&request.tools);
    }
    out.push_str(",\"messages\":[");
    let system: Vec<&str> =
        request.system.iter().map(String::as_str).filter(|part| !part.trim().is_empty()).collect();
    if !system.is_empty() {
        out.push_str("{\"role\":\"system\",");
        push_field(&mut out, "content", &system.join("\n\n"));
        out.push_str("},");
    }
    shared::push_list(&mut out, &items, |out, item| push_item(out, item, &request.without));
    out.push_str("]}");
    out
}

fn push_item(out: &mut String, item: &Item<'_>, without: &[String]) {
    match item {
        Item::Whole(message) => shared::push_message(out, message, without),
        Item::Some(message, kept) => shared::push_kept(out, message, kept),
        Item::Missing(ids) => shared::push_list(out, ids, |out, id| push_tool(out, id, NO_RESULT)),
        Item::Filler(text) => {
            out.push_str("{\"role\":\"user\",");
            push_field(out, "content", text);
            out.push('}');
        }
    }
}
