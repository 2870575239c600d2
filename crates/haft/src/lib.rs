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

/// Runs haft with the arguments of this process; gives its exit code: 0 fine, 1 the run failed,
/// 2 the call was wrong.
pub fn main() -> ExitCode {
    Runner::new().run()
}
