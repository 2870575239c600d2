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
mod agent_edges;
mod cli;
mod crash;
mod demo;
mod doctor;
mod ends;
mod face_settings;
mod faces_edges;
mod file_edges;
mod hostile_documents;
mod images;
mod last_faces;
mod last_rules;
mod leftovers;
mod line;
mod line_keys;
mod mcp;
mod mcp_hostile;
mod mcp_raw;
mod notebook;
mod policy_edges;
mod print;
mod provider;
mod reading;
mod resume;
mod rough_rules;
mod search_edges;
mod secrets;
mod session;
mod shared_state;
mod terminal;
mod tool;
mod undo;
mod wire;
mod world;
