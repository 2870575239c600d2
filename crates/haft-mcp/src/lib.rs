//! The Model Context Protocol: haft's tools for any client.
//!
//! **Invariant:** a client's call takes the very pipeline that a model's call takes; the protocol
//! only translates. This crate knows no model, no agent and no terminal.
//!
//! Source: Model Context Protocol, revisions 2024-11-05 to 2025-11-25, through the `rmcp` SDK. Newer clients fall back to
//! these: revision 2026-07-28 has no elicitation by request, and nobody could be asked.

mod ask;
mod server;
mod translate;

pub use self::server::{Server, Watch, serve_stdio};
