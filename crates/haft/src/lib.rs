//! haft as one program: its faces over one core, and the way to build one's own.
//!
//! A face (print mode, line mode, a tool from the shell, the MCP server) makes a [`Runner`]'s
//! core, sends inputs and folds events. It holds no logic that another face would need too.
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
        session::{Core, Extensions, MakeService, Resumed, SessionBuilder, SessionChoice},
    },
    cli::{Common, exit::Failure},
    runner::Runner,
};

/// Does the work that haft started this program again for, in a process of its own: commands are supervised
/// so, and documents read. None where it was started for anything else.
///
/// A program that opens sessions without [`Runner::run`] calls it first of all.
pub fn started_anew() -> Option<ExitCode> {
    let first = std::env::args_os().nth(1)?;
    app::reexec::work(&first).map(|work| work())
}

/// Runs haft with the arguments of this process; gives its exit code: 0 fine, 1 the run failed,
/// 2 the call was wrong.
pub fn main() -> ExitCode {
    Runner::new().run()
}
