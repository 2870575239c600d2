//! Anthropic Messages: `POST /v1/messages` with `anthropic-version: 2023-06-01`.
//!
//! **Invariant:** at most four cache marks stand in a request: on the last tool, the last system
//! part and the last two messages of the person's side. Thinking goes back only to the very model
//! that thought it, with its signature.

mod decode;
mod encode;
mod format;
mod late;
mod limits;

use std::sync::Arc;

use haft_types::{Message, ToolSpec, ToolUse};
use serde_json::Value;

use crate::{
    Blobs, Decoder, Encoded, Habits, LateTools, Request, Target, Wire, WireKind, late as words,
    shared,
};

/// The wire's name.
pub const NAME: &str = "anthropic";

/// The wire as presets and settings refer to it.
pub const KIND: WireKind = WireKind {
    name: NAME,
    codec: |endpoint| Arc::new(AnthropicMessages { is_makers: endpoint.is_makers }),
    has_slashes: false,
    searches: true,
};

/// The codec of Anthropic Messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnthropicMessages {
    /// True for the maker's own servers, which say why their cache did not have a prefix, and take tools and
    /// words of the system in mid-conversation.
    pub is_makers: bool,
}

impl Wire for AnthropicMessages {
    fn name(&self) -> &'static str {
        NAME
    }

    fn url(&self, base_url: &str, _: &Request) -> String {
        shared::request_url(base_url, self.path(), |base| {
            let base = base.strip_suffix("/v1").unwrap_or(base);
            format!("{base}/v1/messages")
        })
    }

    fn path(&self) -> &'static str {
        "/messages"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let version = ("anthropic-version", "2023-06-01".to_owned());
        std::iter::once(version).chain(key.map(|key| ("x-api-key", key.to_owned()))).collect()
    }

    fn message(
        &self,
        message: &Message,
        target: &Target,
        host: &str,
        blobs: &dyn Blobs,
    ) -> Encoded {
        encode::message(message, target, host, blobs)
    }

    fn tools(&self, tools: &[ToolSpec]) -> String {
        encode::tools(tools)
    }

    fn format(&self, schema: &Value) -> Option<String> {
        Some(format::of(schema))
    }

    fn appends_tools(&self, _: &Target) -> bool {
        self.is_makers
    }

    fn deferred_tools(&self, tools: &[ToolSpec], _: &Target) -> Option<String> {
        self.is_makers.then(|| late::deferred(tools))
    }

    fn late_tools(&self, late: &LateTools<'_>, target: &Target) -> Encoded {
        if self.is_makers && !late.tools.is_empty() {
            late::additions(late)
        } else {
            words::in_words(self, late, target)
        }
    }

    fn found_tools(
        &self,
        call: &ToolUse,
        late: &LateTools<'_>,
        target: &Target,
    ) -> (Encoded, Option<Encoded>) {
        if self.is_makers && late.are_declared && !late.tools.is_empty() {
            return (late::found(call, late.tools), None);
        }
        words::found(self, call, late, target)
    }

    fn system_message(&self, text: &str, target: &Target) -> Encoded {
        if self.is_makers && !text.trim().is_empty() {
            late::words(text)
        } else {
            words::said_by_haft(self, text, target)
        }
    }

    fn request_headers(&self, request: &Request) -> Vec<(&'static str, String)> {
        let features = late::features(request);
        if features.is_empty() { Vec::new() } else { vec![("anthropic-beta", features.join(","))] }
    }

    fn request(&self, request: &Request) -> String {
        encode::request(request, self.is_makers)
    }

    fn optional(&self) -> &'static [&'static str] {
        encode::OPTIONAL
    }

    fn decoder(&self, habits: Habits) -> Box<dyn Decoder> {
        Box::new(decode::MessagesDecoder::new(habits))
    }
}
