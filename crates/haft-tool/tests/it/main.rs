//! The tool layer through its public face: the order of the stages by what they do, the guard,
//! hooks, questions, budgets, interrupts, malformed calls and the registry.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod anything;
mod begun;
mod budget;
mod denied;
mod foreign;
mod forms;
mod guard;
mod hooks;
mod interrupt;
mod links;
mod live;
mod malformed;
mod net;
mod paths;
mod questions;
mod registry;
mod rights;
mod schema_suite;
mod staged;
mod stuck;
mod support;
mod transaction;
mod undo;
mod wording;
