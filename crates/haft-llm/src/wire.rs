//! What a model's wire is: a codec without IO.
//!
//! **Invariant:** a message is encoded once and kept; the bytes of a kept message are the same in
//! every request, apart from cache marks spliced in at one known place. A request is joined from
//! kept pieces, never built as a tree.

use std::{io, ops::Range, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use haft_types::{Blob, CallId, Hash, Message, Part, ToolSpec};
use serde_json::value::RawValue;

use crate::{Decoder, Effort, Habits, json, think};

/// A codec between our messages and one provider's.
pub trait Wire: Send + Sync + 'static {
    /// The name that stands in [`Message::Assistant`] for answers of this wire.
    fn name(&self) -> &'static str;

    /// The path of requests, appended to `base_url` as this wire does it.
    fn url(&self, base_url: &str) -> String;

    /// The end of an address that is a request's already, so that nothing is appended to it.
    fn path(&self) -> &'static str;

    /// Headers that carry the key and the version.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// Encodes a message for one model, to be kept.
    ///
    /// What the model cannot take (another model's thinking, images without vision) is left out
    /// or named in words; the result is always part of a valid request. `host` is the server that
    /// it will be sent to, as `HOST:PORT`: what only one server understands goes to no other.
    fn message(&self, message: &Message, target: &Target, host: &str, blobs: &dyn Blobs)
    -> Encoded;

    /// Encodes the tool definitions, to be kept: a JSON array.
    fn tools(&self, tools: &[ToolSpec]) -> String;

    /// Joins kept pieces to the body of a request.
    fn request(&self, request: &Request) -> String;

    /// Makes the decoder of one answer of a server with these habits.
    fn decoder(&self, habits: Habits) -> Box<dyn Decoder>;
}

/// What messages are encoded for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The model's id as the provider writes it.
    pub model: String,
    /// True when the model takes images.
    pub vision: bool,
}

/// Where the bytes of images come from, when a message is encoded.
pub trait Blobs: Send + Sync {
    /// Loads a blob whole.
    ///
    /// # Errors
    /// Fails when the content is missing or cannot be read; the model is told so then.
    fn load(&self, blob: &Blob) -> io::Result<Bytes>;
}

/// A store without anything in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBlobs;

impl Blobs for NoBlobs {
    fn load(&self, _: &Blob) -> io::Result<Bytes> {
        Err(io::Error::new(io::ErrorKind::NotFound, "there is no store of contents here"))
    }
}

/// One request to a model, made of kept pieces; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The model's id as the provider writes it.
    pub model: String,
    /// How hard it is asked to think; none leaves it to the provider.
    pub effort: Option<Effort>,
    /// Tokens that it may write, thinking included; none takes the wire's default.
    pub max_tokens: Option<u32>,
    /// The system prompt, in parts between which a cache mark may stand.
    pub system: Arc<[String]>,
    /// The tool definitions as [`Wire::tools`] encoded them; empty for none.
    pub tools: Arc<str>,
    /// The conversation.
    pub messages: Vec<Encoded>,
    /// True to ask for the answer as one piece in place of a stream.
    pub whole: bool,
    /// Fields of messages that the server refuses, and that are left out.
    pub without: Vec<String>,
}

/// Who speaks in an encoded message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The person's side.
    User,
    /// The model.
    Assistant,
    /// The tools.
    Results,
}

/// A message as its wire writes it: made once, kept, cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded(Arc<Pieces>);

/// What an encoded message consists of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pieces {
    pub(crate) role: Role,
    pub(crate) json: String,
    /// Where a cache mark is spliced in; none where the wire knows none here.
    pub(crate) mark: Option<usize>,
    /// Fields that the server may refuse, in order, each with its bytes and one comma.
    pub(crate) optional: Vec<(String, Range<usize>)>,
    /// Wire ids of the calls in it.
    pub(crate) calls: Vec<String>,
    /// Wire ids of the results in it, with the bytes of each.
    pub(crate) results: Vec<(String, Range<usize>)>,
}

impl Encoded {
    pub(crate) fn new(pieces: Pieces) -> Self {
        Self(Arc::new(pieces))
    }

    /// A message of a wire that sends nothing.
    pub(crate) fn empty(role: Role) -> Self {
        let (json, optional, calls, results) = Default::default();
        Self::new(Pieces { role, json, mark: None, optional, calls, results })
    }

    pub(crate) fn pieces(&self) -> &Pieces {
        &self.0
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        self.0.role
    }

    /// The bytes: one JSON object, or several joined by commas.
    pub fn json(&self) -> &str {
        &self.0.json
    }
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
    push: impl Fn(&mut String, T),
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

/// Appends a whole message, but for the fields that the server refuses.
pub(crate) fn push_message(out: &mut String, message: &Encoded, without: &[String]) {
    let json = message.json();
    let mut from = 0;
    for (_, range) in message.pieces().optional.iter().filter(|(field, _)| without.contains(field))
    {
        out.push_str(&json[from..range.start]);
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
