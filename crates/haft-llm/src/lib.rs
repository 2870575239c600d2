//! Models behind one interface: wires as codecs without IO, answers as streams of pieces.
//!
//! A [`Wire`] writes a message once and reads one provider's events; a [`Provider`] puts a wire on
//! a connection, or plays a script; [`Retry`] asks again where that is safe.
//!
//! **Invariant:** a message's bytes never change once they are encoded, apart from cache marks; a
//! stream ends with [`Delta::End`] or one error, whatever the server does. This crate runs no
//! tool, keeps no conversation, and reads no environment and no file.

pub mod anthropic;
pub mod openai;
pub mod responses;
pub mod script;

mod calls;
mod catalogue;
mod delta;
mod endless;
mod endpoint;
mod error;
mod extra;
mod failure;
mod history;
mod hosted;
mod json;
mod late;
mod model;
mod preset;
mod provider;
mod retry;
mod server;
mod shared;
mod stop;
mod think;
mod wire;
mod wires;

use std::sync::Arc;

use haft_net::Client;
pub use haft_types::Effort;
use serde_json::{Map, Value};

pub use self::{
    catalogue::{Catalogue, Entry, catalogue},
    delta::{AnswerReader, Decoder, Delta},
    endpoint::Endpoint,
    error::LlmError,
    hosted::hosted_search,
    late::{
        CALL_TOOL, LateTools, NamedCall, PinnedTools, call_tool, joined_tools, named_call,
        pinned_tools, real_name,
    },
    model::{ModelRef, parse_model},
    preset::{Preset, presets},
    provider::{Answer, HttpProvider, Patience, Provider},
    retry::{Retry, RetryPolicy},
    script::{NAME as SCRIPT, ScriptProvider},
    server::{Habits, Server},
    wire::{Blobs, Encoded, NoBlobs, Request, Role, Target, Wire},
    wires::{WIRES, WireKind},
};

/// Makes a provider for a server, in the wire of its endpoint, that asks again by `policy`. `fields`
/// are added to the body of each request.
pub fn http_provider(
    endpoint: Endpoint,
    client: Client,
    patience: Patience,
    policy: RetryPolicy,
    fields: Map<String, Value>,
) -> Arc<dyn Provider> {
    let wire = (endpoint.wire.codec)(&endpoint);
    let provider = HttpProvider::new(wire, endpoint, client, patience).with_fields(fields);
    Arc::new(Retry::new(Arc::new(provider), policy))
}
