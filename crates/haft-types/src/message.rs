//! What is said between people, models and tools, in no vendor's terms.
//!
//! **Invariant:** parts keep the order in which they streamed, and a call keeps the very bytes of
//! its arguments, so that a message encodes to the same bytes for ever.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Hash, Outcome};

/// Identifies one tool call inside a session: ours, unique, never the provider's.
///
/// Written `c1`, `c2`, ...; a call made by a tool is `PARENT.n`. The same text is the name in
/// `out://CALL`, so it holds only ASCII letters, digits, `.`, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub Box<str>);

impl CallId {
    /// The id of the `n`-th call of a session, from 1.
    pub fn nth(n: u64) -> Self {
        Self(format!("c{n}").into())
    }

    /// The id of the `n`-th call that this call makes, from 1.
    #[must_use]
    pub fn child(&self, n: u64) -> Self {
        Self(format!("{}.{n}", self.0).into())
    }

    /// The address under which the call's whole output is stored.
    pub fn address(&self) -> String {
        format!("out://{}", self.0)
    }

    /// Reads an address that [`address`](Self::address) wrote; none for any other text.
    ///
    /// The letter case of its scheme does not count.
    pub fn from_address(text: &str) -> Option<Self> {
        // As in every URL the letter case of the scheme does not count.
        let (scheme, name) = text.split_at_checked("out://".len())?;
        if !scheme.eq_ignore_ascii_case("out://") {
            return None;
        }
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        (!name.is_empty() && !name.starts_with('.') && name.len() <= 128 && name.bytes().all(fits))
            .then(|| Self(name.into()))
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Content that is stored beside the log and named by its hash.
///
/// Everything above 8 KiB is a blob in the log, never inline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    /// Hash of the whole content.
    pub hash: Hash,
    /// Size in bytes.
    pub len: u64,
    /// Media type, such as `image/png`; `application/octet-stream` when unknown.
    pub mime: String,
}

/// One piece of a message, in the order in which it streamed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text {
        /// The text itself.
        text: String,
    },
    /// An image, by reference.
    Image {
        /// Its encoded bytes, in a format that models take.
        blob: Blob,
    },
    /// Thinking of the model.
    Thinking {
        /// The words shown; may be empty where the provider hides them.
        text: String,
        /// The provider's proof, sent back unchanged to the same model only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A tool call.
    Call(ToolUse),
    /// A piece that only its own provider understands: sent back to it, hidden from all others.
    Opaque {
        /// The wire that made it, such as `anthropic`.
        wire: String,
        /// The model that made it.
        model: String,
        /// JSON text, exactly as the wire gave it.
        json: String,
    },
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

impl<T: Into<String>> std::convert::From<T> for Part {
    fn from(text: T) -> Self {
        Self::text(text)
    }
}

/// A tool call, as the model requested it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// Ours, unique in the session: two calls with one wire id are two calls.
    pub id: CallId,
    /// The provider's id; may be empty or repeated.
    pub wire_id: String,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments' bytes as they streamed; need not be JSON.
    pub raw: String,
    /// The arguments where `raw` is JSON; none where it is not, or was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// A JSON object: fields of the call that only its server understands, sent back to it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<String>,
}

impl ToolUse {
    /// A call made by a program: `raw` is the compact form of `input`.
    pub fn new(id: CallId, name: impl Into<String>, input: Value) -> Self {
        let raw = input.to_string();
        let (wire_id, name, input) = (id.0.to_string(), name.into(), Some(input));
        Self { id, wire_id, name, raw, input, extra: None }
    }

    /// A call as a wire streamed it: `raw` is parsed once; empty text counts as `{}`.
    pub fn from_wire(id: CallId, wire_id: String, name: String, raw: String) -> Self {
        let raw = if raw.trim().is_empty() { "{}".to_owned() } else { raw };
        let input = serde_json::from_str(&raw).ok();
        Self { id, wire_id, name, raw, input, extra: None }
    }
}

/// Who speaks in a user message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "who", content = "name", rename_all = "snake_case")]
pub enum From {
    /// A person, as a turn of its own.
    #[default]
    Person,
    /// A person, while the agent was at work.
    Steer,
    /// A background job that ended or has something to say.
    Job(String),
    /// Another agent.
    Agent(String),
    /// A hook of the person's settings.
    Hook(String),
    /// haft itself: notices that are not the person's words.
    Haft,
}

/// Why an answer stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model was done.
    #[default]
    EndTurn,
    /// It waits for its calls.
    ToolUse,
    /// It ran into the output limit: its last call may be cut off and is never run.
    Length,
    /// The provider refused to go on.
    Refusal,
    /// The provider paused it: it continues once the model is asked again with what there is.
    Paused,
    /// It was interrupted here.
    Interrupted,
}

/// Where a request differs from the one before it, and what that does to the provider's cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheUse {
    /// Bytes of the request: what answers have to fit, tools, system prompt and messages.
    pub bytes: u64,
    /// How many of them, from the first on, are those of the request before.
    pub same: u64,
    /// What stands at the first byte that differs. None where everything that was sent before was
    /// sent again, with more behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
    /// Tokens that the provider's cache was expected to have, before the request was sent. None
    /// where the request before is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// The provider's own word on what its cache did not have; none where it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<CacheReport>,
}

/// What a provider says of its cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheReport {
    /// Its name for the reason, such as `tools_changed`; `pending` where it did not know yet.
    pub reason: String,
    /// Input tokens that the cache would have had otherwise; none where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
}

/// Tokens, as the provider counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens, without those of the cache.
    pub input: u64,
    /// Tokens read from the provider's cache.
    pub cache_read: u64,
    /// Tokens written to the provider's cache.
    pub cache_write: u64,
    /// Tokens written by the model, its thinking included.
    pub output: u64,
}

impl Usage {
    /// Adds another request's tokens.
    pub fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.output = self.output.saturating_add(other.output);
    }
}

/// The result of one call, as the model gets it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// Which call.
    pub id: CallId,
    /// The provider's id of that call.
    pub wire_id: String,
    /// The tool's name as the model wrote it: some wires want it again.
    pub name: String,
    /// The outcome of the call.
    pub outcome: Outcome,
}

/// One message of a conversation: what a wire encodes, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Said to the model.
    User {
        /// Who says it.
        from: From,
        /// What is said.
        parts: Vec<Part>,
    },
    /// Said by the model.
    Assistant {
        /// The wire it came by.
        wire: String,
        /// The model that said it.
        model: String,
        /// The server that gave it, as `HOST:PORT`; empty where that is not known.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        host: String,
        /// The parts of the answer: text, thinking and calls.
        parts: Vec<Part>,
    },
    /// The results of all calls of the answer before, in the order of the calls.
    Results {
        /// One for each call.
        results: Vec<CallResult>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_strict() {
        assert_eq!(CallId::from_address("out://c1.2"), Some(CallId("c1.2".into())));
        assert_eq!(CallId::from_address("Out://c1"), Some(CallId("c1".into())));
        for bad in [
            "out://",
            "./out://c1",
            "\u{f6}ut://",
            "out://../x",
            "out://a/b",
            "c1",
            "out://.hidden",
            "out://c 1",
        ] {
            assert_eq!(CallId::from_address(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_cut_off_call_has_no_input() {
        let call = |raw: &str| {
            ToolUse::from_wire(CallId::nth(1), "w".into(), "read".into(), raw.to_owned())
        };
        assert_eq!(call("{\"path\": \"a").input, None);
        assert_eq!(call("").raw, "{}");
        assert_eq!(call("{ \"a\":1 }").raw, "{ \"a\":1 }");
    }
}
