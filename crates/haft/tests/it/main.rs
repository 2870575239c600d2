//! The program from outside: what a shell, a terminal, a pipe or another program sees of it.
//!
//! Every test has a home, a state folder and a workspace of its own. Models are script files or a
//! mock server; nothing leaves the machine.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod agent;
mod cli;
mod crash;
mod files;
mod hooks;
mod limits_everywhere;
mod line;
mod mcp;
mod mcp_client;
mod mock_provider;
mod policy;
mod same_everywhere;
mod secrets;
mod shell;
mod terminal;
mod undo;
mod world;
