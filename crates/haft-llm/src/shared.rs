//! What the wires share: how ids, names, texts, images and lists are written, and when a request is
//! whole.
//!
//! **Invariant:** nothing here differs by wire: where wires write something in their own ways, they
//! pass the difference in.

use std::ops::Range;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use haft_types::{Blob, CallId, Hash, HostedSearch, Part, ToolSpec};
use serde_json::value::RawValue;

use crate::{Blobs, Encoded, Request, Target, json, think};

/// The address of requests: the base itself where it ends in `path`, else what `append` makes of it.
pub(crate) fn request_url(
    base_url: &str,
    path: &str,
    append: impl FnOnce(&str) -> String,
) -> String {
    let base = base_url.trim_end_matches('/');
    if base.ends_with(path) { base.to_owned() } else { append(base) }
}

/// An empty body with room for a request and `more` bytes of the wire's own.
pub(crate) fn body_for(request: &Request, more: usize) -> String {
    let messages: usize = request.messages.iter().map(|m| m.json().len() + 1).sum();
    let system: usize = request.system.iter().map(String::len).sum();
    String::with_capacity(messages + request.tools.len() + system * 9 / 8 + more)
}

/// Encodes the tool definitions: each stands between `start` and `end`, its schema under `schema`.
pub(crate) fn tool_list(tools: &[ToolSpec], [start, schema, end]: [&str; 3]) -> String {
    let mut out = String::from("[");
    // Those that providers run have forms of their own.
    push_list(&mut out, tools.iter().filter(|tool| tool.hosted.is_none()), |out, tool| {
        out.push_str(start);
        json::push_field(out, "name", &tool.name);
        out.push(',');
        json::push_field(out, "description", &tool.description);
        out.push(',');
        json::push_string(out, schema);
        out.push(':');
        out.push_str(&schema_json(tool));
        out.push_str(end);
    });
    out.push(']');
    out
}

/// Adds the searches that the provider runs to a list of tools.
pub(crate) fn with_hosted(
    mut list: String,
    tools: &[ToolSpec],
    definition: impl Fn(&HostedSearch) -> serde_json::Value,
) -> String {
    for hosted in tools.iter().filter_map(|tool| tool.hosted.as_ref()) {
        list.pop();
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(&definition(hosted).to_string());
        list.push(']');
    }
    list
}

/// Our id in a form that all wires take: letters and digits, at least nine of them (the strictest
/// server wants exactly nine), `_` and `-` where ours has them, at most 64.
pub(crate) fn wire_id(id: &CallId) -> String {
    let text = &*id.0;
    if let Some(number) = text.strip_prefix('c')
        && number.len() <= 8
        && number.bytes().all(|b| b.is_ascii_digit())
        && !number.is_empty()
    {
        return format!("c{number:0>8}");
    }
    // Any other id goes by its hash: replacing characters could make two ids equal.
    let hash = Hash::of(text.as_bytes()).to_string();
    format!("x{}", &hash[..32])
}

/// A tool's name in a form that all wires take; what a model invented may hold anything.
pub(crate) fn wire_name(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = name.chars().take(64).map(|c| if fits(c) { c } else { '_' }).collect();
    if name.is_empty() { "unknown".into() } else { name }
}

/// The arguments for a replay: the very bytes that the model wrote where they are a JSON object,
/// else an object that holds them as text.
///
/// A call that was cut off has no `input` even where what came of it is an object.
pub(crate) fn replayed_arguments(raw: &str, input: Option<&serde_json::Value>) -> String {
    let parsed = || serde_json::from_str::<serde_json::Value>(raw).is_ok_and(|all| all.is_object());
    let is_object = raw.trim_start().starts_with('{')
        && match input {
            Some(input) => input.is_object() && is_json(raw),
            None => parsed(),
        };
    if is_object {
        return raw.to_owned();
    }
    let mut out = String::from("{");
    if !raw.trim().is_empty() {
        json::push_field(&mut out, "not_valid_json", raw);
    }
    out.push('}');
    out
}

/// A tool's input schema as JSON text; a tool without one takes any object.
pub(crate) fn schema_json(tool: &ToolSpec) -> String {
    match &*tool.input_schema {
        serde_json::Value::Object(_) => tool.input_schema.to_string(),
        _ => "{\"type\":\"object\"}".to_owned(),
    }
}

/// Reports whether `text` is one JSON value.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// An image ready for a wire, or the words that stand for it.
pub(crate) enum Picture {
    Image { mime: String, base64: String },
    Note(String),
}

/// Loads an image for a wire that takes `max` bytes of base64.
pub(crate) fn picture(blob: &Blob, target: &Target, blobs: &dyn Blobs, max: u64) -> Picture {
    let note = |why: &str| Picture::Note(format!("[{}, {} bytes: {why}]", blob.mime, blob.len));
    if !target.vision {
        return note("not shown, this model takes no images");
    }
    if !matches!(&*blob.mime, "image/png" | "image/jpeg" | "image/gif" | "image/webp") {
        return note("not shown, models take png, jpeg, gif and webp images only");
    }
    if blob.len.div_ceil(3) * 4 > max {
        return note("not shown, it is too large for this model");
    }
    match blobs.load(blob) {
        Ok(bytes) if (bytes.len() as u64).div_ceil(3) * 4 > max => {
            note("not shown, it is too large for this model")
        }
        Ok(bytes) if bytes.is_empty() => note("not shown, its content is empty"),
        Ok(bytes) => Picture::Image { mime: blob.mime.clone(), base64: STANDARD.encode(&bytes) },
        Err(error) => note(&format!("not shown, its content cannot be loaded: {error}")),
    }
}

/// Appends what `push` writes for each item, with commas between.
pub(crate) fn push_list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut push: impl FnMut(&mut String, T),
) {
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        push(out, item);
    }
}

/// Appends a text block, which every wire writes alike.
pub(crate) fn push_text(out: &mut String, text: &str) {
    out.push_str("{\"type\":\"text\",");
    json::push_field(out, "text", text);
    out.push('}');
}

/// Appends the block that `push` writes for an image, or a text block with the words for it.
pub(crate) fn push_picture(
    out: &mut String,
    picture: Picture,
    push: impl FnOnce(&mut String, &str, &str),
) {
    match picture {
        Picture::Note(note) => push_text(out, &note),
        Picture::Image { mime, base64 } => push(out, &mime, &base64),
    }
}

/// Appends some of a message's results as they were written, with commas between.
pub(crate) fn push_kept(out: &mut String, message: &Encoded, kept: &[usize]) {
    push_list(out, kept, |out, &at| {
        out.push_str(&message.json()[message.pieces().results[at].1.clone()]);
    });
}

/// Stands for the content of a message that has calls and no text, among the fields that a server may
/// refuse. No field has this name.
pub(crate) const NULL_CONTENT: &str = "null as content";

/// Appends a whole message, but for the fields that the server refuses.
pub(crate) fn push_message(out: &mut String, message: &Encoded, without: &[String]) {
    let json = message.json();
    let mut from = 0;
    let optional = &message.pieces().optional;
    for (field, range) in optional.iter().filter(|(field, _)| without.contains(field)) {
        out.push_str(&json[from..range.start]);
        if field == NULL_CONTENT {
            out.push_str("\"\"");
        }
        from = range.end;
    }
    out.push_str(&json[from..]);
}

/// Appends the fields of a JSON object, each with a comma before it; `noted` gets where they are.
/// Names in `own` are left out, since the wire writes these itself.
pub(crate) fn push_fields(
    out: &mut String,
    object: &str,
    own: &[&str],
    noted: &mut Vec<(String, Range<usize>)>,
) {
    let fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(object).unwrap_or_default();
    for (name, value) in fields.iter().filter(|(name, _)| !own.contains(&name.as_str())) {
        let start = out.len();
        out.push(',');
        json::push_string(out, name);
        out.push(':');
        out.push_str(&value.to_string());
        noted.push((name.clone(), start..out.len()));
    }
}

/// Text and thinking that stands in it, joined as they came; other texts lie a blank line apart.
pub(crate) fn joined_texts(parts: &[Part], own: bool) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut goes_on = false;
    for part in parts {
        match part {
            Part::Thinking { text, signature: Some(signature) } if own => {
                let Some(text) = think::as_it_came(text, signature) else { continue };
                if goes_on {
                    texts.last_mut().into_iter().for_each(|last| last.push_str(&text));
                } else {
                    texts.push(text);
                }
                goes_on = true;
            }
            Part::Text { text } if goes_on => {
                texts.last_mut().into_iter().for_each(|last| last.push_str(text));
                goes_on = false;
            }
            Part::Text { text } if says_something(part) => texts.push(text.clone()),
            _ => goes_on = false,
        }
    }
    texts
}

/// Reports whether a text part says anything: wires refuse blank ones.
pub(crate) fn says_something(part: &Part) -> bool {
    !matches!(part, Part::Text { text } if text.trim().is_empty())
}

/// Stands where a message would be empty.
pub(crate) const NOTHING: &str = "(nothing)";
/// Stands where a result is empty.
pub(crate) const NO_OUTPUT: &str = "(no output)";
/// Answers a call of which no result is known.
pub(crate) const NO_RESULT: &str = "The result of this call is not known.";

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_fit_every_wire_and_stay_apart() {
        let long = "y".repeat(200);
        let ids = ["c1", "c12", "c1.2", "c1_2", "c123456789", "", "a b", &long, "c", "cx"];
        let wire: HashSet<String> = ids.iter().map(|id| wire_id(&CallId((*id).into()))).collect();
        assert_eq!(wire.len(), ids.len());
        for id in &wire {
            assert!((9..=64).contains(&id.len()), "{id}");
            assert!(id.bytes().all(|b| b.is_ascii_alphanumeric()), "{id}");
        }
        assert_eq!(wire_id(&CallId::nth(7)), "c00000007");
    }

    #[test]
    fn names_that_a_model_invented_are_made_to_fit() {
        assert_eq!(wire_name("functions.read file"), "functions_read_file");
        assert_eq!(wire_name(""), "unknown");
        assert_eq!(wire_name(&"é".repeat(100)).len(), 64);
    }

    #[test]
    fn arguments_replay_as_written_or_wrapped() {
        let replay = |raw: &str| {
            let input = serde_json::from_str(raw).ok();
            replayed_arguments(raw, input.as_ref())
        };
        assert_eq!(replay("{ \"a\" : 1.0 }"), "{ \"a\" : 1.0 }");
        assert_eq!(replay("{\"a\": \"x"), r#"{"not_valid_json":"{\"a\": \"x"}"#);
        assert_eq!(replay("[1]"), r#"{"not_valid_json":"[1]"}"#);
        assert_eq!(replay(" "), "{}");
        assert_eq!(replay("{\"a\": \"\\ud800\"}"), r#"{"not_valid_json":"{\"a\": \"\\ud800\"}"}"#);
        // What was cut off has no input, but what came of it may be whole, or nothing.
        assert_eq!(replayed_arguments("{}", None), "{}");
        assert_eq!(replayed_arguments("{ \"a\": 1 }", None), "{ \"a\": 1 }");
        assert_eq!(
            replayed_arguments("junk", Some(&serde_json::json!({}))),
            r#"{"not_valid_json":"junk"}"#
        );
    }
}
