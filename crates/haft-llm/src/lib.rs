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
pub mod script;

mod calls;
mod delta;
mod endpoint;
mod error;
mod extra;
mod failure;
mod history;
mod json;
mod model;
mod preset;
mod provider;
mod retry;
mod server;
mod stop;
mod think;
mod wire;

use std::sync::Arc;

use haft_net::Client;
pub use haft_types::Effort;

pub use self::{
    delta::{AnswerReader, Decoder, Delta},
    endpoint::Endpoint,
    error::LlmError,
    model::{ModelRef, parse_model},
    preset::{Preset, WireKind, presets},
    provider::{Answer, HttpProvider, Patience, Provider},
    retry::{Retry, RetryPolicy},
    script::{NAME as SCRIPT, ScriptProvider},
    server::{Habits, Server},
    wire::{Blobs, Encoded, NoBlobs, Request, Role, Target, Wire},
};

/// Makes a provider for an Anthropic Messages server that asks again by `policy`.
pub fn anthropic_provider(
    endpoint: Endpoint,
    client: Client,
    patience: Patience,
    policy: RetryPolicy,
) -> Arc<dyn Provider> {
    let wire = Arc::new(anthropic::AnthropicMessages);
    Arc::new(Retry::new(Arc::new(HttpProvider::new(wire, endpoint, client, patience)), policy))
}

/// Makes a provider for an OpenAI Chat-compatible server that asks again by `policy`.
pub fn openai_provider(
    endpoint: Endpoint,
    client: Client,
    patience: Patience,
    policy: RetryPolicy,
) -> Arc<dyn Provider> {
    let wire = Arc::new(openai::OpenAiChat { newest_fields: endpoint.is_makers });
    Arc::new(Retry::new(Arc::new(HttpProvider::new(wire, endpoint, client, patience)), policy))
}
