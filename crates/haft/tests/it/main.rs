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
mod alike;
mod bounds;
mod canaries;
mod captured;
mod claude_settings;
mod cli;
mod command_rules;
mod confined;
mod crash;
mod cut_off;
mod damaged_logs;
mod definitions;
mod demo;
mod disk;
mod doctor;
mod editors;
mod ends;
mod everyday;
mod executables;
mod files;
mod first_hour;
mod free;
mod gateway;
mod git_words;
mod hidden;
mod hooks;
mod hooks_talk;
mod hostile_documents;
mod images;
mod instructions;
mod jobs;
mod jobs_changed;
mod kept_outputs;
mod kept_room;
mod kept_rules;
mod line;
mod line_keys;
mod line_questions;
mod line_undo;
mod looking;
mod mcp;
mod mcp_client;
mod mcp_codex;
mod mcp_hostile;
mod mcp_order;
mod mcp_protocol;
mod mistakes;
mod named_shells;
mod neighbours;
mod network;
mod notebook;
mod outages;
mod outlive;
mod output;
mod output_schema;
mod passwords;
mod paths;
mod planted;
mod powershell;
mod print;
mod provider;
mod questions_whole;
mod reading;
mod refusals;
mod repositories;
mod resume;
mod rules;
mod screens;
mod search;
mod secrets;
mod session;
mod settings;
mod shared_state;
mod signs;
mod start_up;
mod streams;
mod terminal;
mod told;
mod tool;
mod undo;
mod undo_force;
mod undo_ignored;
mod why;
mod wire;
mod words;
mod world;
