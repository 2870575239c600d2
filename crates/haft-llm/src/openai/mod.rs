//! OpenAI Chat Completions and the many servers that speak it: `POST {base}/chat/completions`.
//!
//! **Invariant:** only what the oldest servers take is sent without need; what they send is read
//! in every spelling that is in use.

mod decode;
mod encode;

use std::sync::Arc;

pub(crate) use self::decode::REASONING_FIELDS;
use haft_types::{Message, ToolSpec};

use crate::{Blobs, Decoder, Encoded, Habits, Request, Target, Wire, WireKind, shared};

/// The wire's name.
pub const NAME: &str = "openai";

/// The wire as presets and settings refer to it.
pub const KIND: WireKind = WireKind {
    name: NAME,
    codec: |endpoint| Arc::new(OpenAiChat { newest_fields: endpoint.is_makers }),
    has_slashes: true,
    searches: false,
};

/// The codec of OpenAI Chat Completions.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiChat {
    /// True for the provider's own servers, where the newer models refuse `max_tokens` and want
    /// `max_completion_tokens`; other servers may know only the former.
    pub newest_fields: bool,
}

impl Wire for OpenAiChat {
    fn name(&self) -> &'static str {
        NAME
    }

    fn url(&self, base_url: &str, _: &Request) -> String {
        let path = self.path();
        shared::request_url(base_url, path, |base| format!("{base}{path}"))
    }

    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
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

    fn request(&self, request: &Request) -> String {
        encode::request(request, self.newest_fields)
    }

    fn decoder(&self, habits: Habits) -> Box<dyn Decoder> {
        Box::new(decode::ChatDecoder::new(habits))
    }
}
