//! The Model Context Protocol: haft's tools for any client.
//!
//! **Invariant:** a client's call takes the very pipeline that a model's call takes; the protocol
//! only translates. This crate knows no model, no agent and no terminal.
//!
//! Limits over standard input and output: a line has at most 64 MB (MiB) and 500,000 values; at most
//! 10,000 requests, of 128 MB together, are open at once. What is over is answered with an error.
//! While more than 8 MB of answers are unread no further call starts; over 64 MB the connection
//! ends.
//!
//! Source: Model Context Protocol, revisions 2024-11-05 to 2025-11-25, through the `rmcp` SDK. Newer clients fall back to
//! these: revision 2026-07-28 has no elicitation by request, and nobody could be asked.

mod ask;
mod forms;
mod lines;
mod open;
mod outbox;
mod scan;
mod server;
mod stdio;
mod structured;
mod translate;
mod transport;

pub use self::server::{Server, Watch, serve_stdio};
