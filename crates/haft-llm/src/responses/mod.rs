//! OpenAI Responses: `POST {base}/responses`, stateless.
//!
//! **Invariant:** nothing is stored at the server (`store: false`). What the model gave goes back to
//! it as it came, item by item, in the order of `output_index`; items that nobody here knows, too. To
//! another model, wire or server only words, calls and results go.
//!
//! Source: the reference of the Responses API, and the types of the `openai` package 3.57.

mod decode;
mod encode;
mod format;
mod late;

use std::sync::Arc;

pub(crate) use self::encode::reasons;
use haft_types::{Message, ToolSpec, ToolUse};
use serde_json::Value;

use crate::{
    Blobs, Decoder, Encoded, Habits, LateTools, Request, Target, Wire, WireKind, late as words,
    shared,
};

/// The wire's name.
pub const NAME: &str = "openai-responses";

/// The wire as presets and settings refer to it.
pub const KIND: WireKind = WireKind {
    name: NAME,
    codec: |endpoint| {
        let host = haft_net::host_and_port(&endpoint.base_url).map(|(host, _)| host);
        let is_azure = host.is_ok_and(|host| host.ends_with(".azure.com"));
        Arc::new(OpenAiResponses { newest_fields: endpoint.is_makers || is_azure, is_azure })
    },
    has_slashes: true,
    searches: true,
};

/// The codec of OpenAI Responses.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiResponses {
    /// True for the maker's own servers, which take a key for their cache, and tools in mid-conversation.
    pub newest_fields: bool,
    /// True for Azure, which takes the key in a header of its own.
    pub is_azure: bool,
}

impl Wire for OpenAiResponses {
    fn name(&self) -> &'static str {
        NAME
    }

    fn url(&self, base_url: &str, _: &Request) -> String {
        let path = self.path();
        shared::request_url(base_url, path, |base| format!("{base}{path}"))
    }

    fn path(&self) -> &'static str {
        "/responses"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let header = |key: &str| {
            if self.is_azure {
                ("api-key", key.to_owned())
            } else {
                ("authorization", format!("Bearer {key}"))
            }
        };
        key.map(header).into_iter().collect()
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

    fn appends_tools(&self, target: &Target) -> bool {
        self.newest_fields && late::takes_late_tools(&target.model)
    }

    fn deferred_tools(&self, tools: &[ToolSpec], target: &Target) -> Option<String> {
        self.appends_tools(target).then(|| late::deferred(tools))
    }

    fn tool_search(&self, tool: &ToolSpec, target: &Target) -> Option<String> {
        self.appends_tools(target).then(|| late::search(tool))
    }

    fn late_tools(&self, late: &LateTools<'_>, target: &Target) -> Encoded {
        if self.appends_tools(target) && !late.tools.is_empty() {
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
        if late::was_search(call) {
            return (late::found(call, late.tools), None);
        }
        words::found(self, call, late, target)
    }

    fn request(&self, request: &Request) -> String {
        encode::request(request, self.newest_fields)
    }

    fn optional(&self) -> &'static [&'static str] {
        encode::OPTIONAL
    }

    fn decoder(&self, _: Habits) -> Box<dyn Decoder> {
        Box::new(decode::ResponsesDecoder::default())
    }
}
