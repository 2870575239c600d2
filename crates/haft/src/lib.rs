//! haft as one program: its faces over one core, and the way to build a program of one's own.
//!
//! A face (print mode, line mode, a tool from the shell, the MCP server) opens a [`Core`], sends
//! inputs and folds events. It holds no logic that another face would need too.
//!
//! **Invariant:** whatever a face does goes through the same dispatcher and the same bus.

mod app;
mod cli;
mod faces;
mod plain;
mod runner;
mod undo;

use std::process::ExitCode;

pub use self::{
    app::{
        agent::AgentBuilder,
        base::Base,
        problem::{Problem, Problems},
        session::{
            Core, Extensions, MakeService, Resumed, SessionBuilder, SessionChoice, StartFrontEnd,
        },
    },
    cli::{Common, exit::Failure},
    runner::Runner,
};

/// Does the work that haft started this program again for, in a separate process, and returns its
/// exit code. Such work supervises commands, or reads documents. Returns none if the program was
/// started for anything else.
///
/// A program that opens sessions without [`Runner::run`] calls it first of all.
pub fn started_anew() -> Option<ExitCode> {
    let first = std::env::args_os().nth(1)?;
    app::reexec::work(&first).map(|work| work())
}

/// Runs haft with the arguments of this process. Returns its exit code: 0 for success, 1 for a
/// failed run, 2 for a wrong call, and 3 for a denied call with `--fail-on-denied`.
pub fn main() -> ExitCode {
    Runner::new().run()
}
