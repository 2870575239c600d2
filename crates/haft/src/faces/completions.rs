//! `haft completions`: a script for a shell that completes commands, flags and their values.

use clap::CommandFactory as _;

use crate::cli::{
    Cli, Completions,
    exit::{Ending, print_data},
};

/// Prints the script.
pub fn run(arguments: &Completions) -> Ending {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "haft", &mut script);
    print_data(&String::from_utf8_lossy(&script))
}
