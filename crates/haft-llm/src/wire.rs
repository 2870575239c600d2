//! What a model's wire is: a codec without IO.
//!
//! **Invariant:** a message is encoded once and kept; the bytes of a kept message are the same in
//! every request, apart from cache marks spliced in at one known place. A request is joined from
//! kept pieces, never built as a tree.

use std::{io, ops::Range, sync::Arc};

use bytes::Bytes;
use haft_types::{Blob, Message, ToolSpec, ToolUse};
use serde_json::Value;

use crate::{
    Decoder, Effort, Habits,
    late::{self, LateTools},
};

/// A codec between our messages and one provider's.
pub trait Wire: Send + Sync + 'static {
    /// The name that stands in [`Message::Assistant`] for answers of this wire.
    fn name(&self) -> &'static str;

    /// The address of a request, made of `base_url` as this wire does it; it may hold the model.
    fn url(&self, base_url: &str, request: &Request) -> String;

    /// The end of an address that is a request's already, so that nothing is appended to it. Never
    /// empty.
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

    /// Encodes the JSON Schema that answers have to fit, to be kept: a JSON object. None where the
    /// wire has no field for it.
    fn format(&self, schema: &Value) -> Option<String> {
        let _ = schema;
        None
    }

    /// Whether tools can be made known to this model behind the first request, so that it calls them as all
    /// others. Where not, [`call_tool`](crate::call_tool) is listed for them.
    fn appends_tools(&self, target: &Target) -> bool {
        let _ = target;
        false
    }

    /// Encodes definitions that the server keeps from the model until they are named, to stand before those
    /// of [`tools`](Self::tools): a JSON array. None where the server knows no such thing.
    fn deferred_tools(&self, tools: &[ToolSpec], target: &Target) -> Option<String> {
        let _ = (tools, target);
        None
    }

    /// Encodes a tool that searches for others, where the wire has a form of its own for it: a JSON array.
    /// None where it is a tool like all others.
    fn tool_search(&self, tool: &ToolSpec, target: &Target) -> Option<String> {
        let _ = (tool, target);
        None
    }

    /// Encodes tools that come late, to be kept behind a message of the person's side or results. Nothing
    /// that was sent before changes.
    fn late_tools(&self, late: &LateTools<'_>, target: &Target) -> Encoded {
        late::in_words(self, late, target)
    }

    /// Encodes the result of a search, with the tools that were found, to be kept among the results of its
    /// answer; and what has to stand behind all of these, if anything. A call that another target made is
    /// given without its `extra`.
    fn found_tools(
        &self,
        call: &ToolUse,
        late: &LateTools<'_>,
        target: &Target,
    ) -> (Encoded, Option<Encoded>) {
        late::found(self, call, late, target)
    }

    /// Encodes words of haft in mid-conversation, to be kept behind a message of the person's side or
    /// results: as the system's words where the server takes these, else as the person's side's.
    fn system_message(&self, text: &str, target: &Target) -> Encoded {
        late::said_by_haft(self, text, target)
    }

    /// Headers that a request needs for what is in it.
    fn request_headers(&self, request: &Request) -> Vec<(&'static str, String)> {
        let _ = request;
        Vec::new()
    }

    /// Joins kept pieces to the body of a request.
    fn request(&self, request: &Request) -> String;

    /// Fields of a request that a server may refuse, and that it is asked without then.
    fn optional(&self) -> &'static [&'static str] {
        &[]
    }

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
    /// What answers have to fit, as [`Wire::format`] encoded it; empty for anything.
    pub format: Arc<str>,
    /// The conversation.
    pub messages: Vec<Encoded>,
    /// The server's name for the answer to the request before, where it gave one.
    pub previous: Option<String>,
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
    /// Those of the calls or results that are written as searches for tools.
    pub(crate) searches: Vec<String>,
    /// What the server has to be told to take it.
    pub(crate) features: &'static [&'static str],
}

impl Pieces {
    /// A message in which nothing stands yet.
    pub(crate) fn new(role: Role) -> Self {
        let (json, optional, calls, results, searches) = Default::default();
        Self { role, json, mark: None, optional, calls, results, searches, features: &[] }
    }
}

impl Encoded {
    /// Makes a message of its bytes, which go into every request as they are.
    pub fn new(role: Role, json: String) -> Self {
        Self::of(Pieces { json, ..Pieces::new(role) })
    }

    pub(crate) fn of(pieces: Pieces) -> Self {
        Self(Arc::new(pieces))
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
