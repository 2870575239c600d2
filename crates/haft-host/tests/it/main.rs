//! The hosts through their public interface.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod files;
mod sandbox;
mod search;
mod shell;
mod supervision;
mod terminal;
