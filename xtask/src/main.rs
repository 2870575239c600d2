//! The project's chores, run as `cargo xtask NAME`: test, tidy, soak, bench, docs.
//!
//! One list of commands; each command is a module. Exit codes: 0 fine, 1 something failed, 2 the
//! command line was wrong. Nothing here is part of the product: it knows the repository and the
//! tools of a development machine, not what haft does.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these commands exist to talk to the terminal of whoever runs them"
)]

mod bench;
mod docs;
mod fuzz;
mod junit;
mod measured;
mod process;
mod project;
mod rustc_times;
mod score;
mod shot;
mod soak;
mod test;
mod tidy;

use std::fmt;
use std::process::ExitCode;

use anyhow::Result;

use crate::project::Project;

/// A chore by name.
pub(crate) struct Chore {
    /// The word after `cargo xtask`.
    pub(crate) name: &'static str,
    /// Its arguments, as shown in the help.
    pub(crate) arguments: &'static str,
    /// What it does, one line.
    pub(crate) about: &'static str,
    run: fn(&Project, &[String]) -> Result<bool>,
}

/// Every chore, in the order of the help.
pub(crate) const CHORES: &[Chore] = &[
    Chore {
        name: "test",
        arguments: "[--quick] [--only STEP] [--slow] [--changed [BASE]] [-- RUNNER ARGUMENTS]",
        about: "installs what the tests use, then runs every check and test, or those of what changed",
        run: test::run,
    },
    Chore {
        name: "tidy",
        arguments: "[RULE...]",
        about: "checks the house rules that no compiler knows: layers, licences, sizes, lists",
        run: tidy::run,
    },
    Chore {
        name: "soak",
        arguments: "[NAME [--count N] [-- RUNNER ARGUMENTS]]",
        about: "runs tests for much longer; without a name, lists what there is",
        run: soak::run,
    },
    Chore {
        name: "fuzz",
        arguments: "[TARGET...] [--seconds N | --runs N]",
        about: "builds the fuzz targets and runs them, all for a minute each unless told otherwise",
        run: fuzz::run,
    },
    Chore {
        name: "bench",
        arguments: "[edit] [--profile NAME | --binary PATH] [--package NAME] [--only FIGURE[,FIGURE...]]...",
        about: "measures, each figure beside a peer of the same run; edit: how right edits are",
        run: bench::run,
    },
    Chore {
        name: "score",
        arguments: "[pages]",
        about: "counts what haft-page keeps of articles and lets in of navigation, beside trafilatura",
        run: score::run,
    },
    Chore {
        name: "shot",
        arguments: "SCRIPT [--columns N] [--theme dark|light] [--out FILE]",
        about: "draws a session of the scripted model in the terminal interface as an SVG picture",
        run: shot::run,
    },
    Chore {
        name: "docs",
        arguments: "[--check]",
        about: "writes the generated parts of the documents, or says which are stale",
        run: docs::run,
    },
    Chore { name: "help", arguments: "", about: "lists the commands", run: help },
];

/// A command line that cannot be obeyed; ends with exit code 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

fn main() -> ExitCode {
    if let Some(code) = rustc_times::stand_in() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}

/// Runs the chore that the arguments name; `false` when it ran and something failed.
fn dispatch(arguments: &[String]) -> Result<bool> {
    let project = Project::find()?;
    let Some((name, rest)) = arguments.split_first() else {
        return help(&project, &[]);
    };
    let name = if matches!(name.as_str(), "-h" | "--help") { "help" } else { name.as_str() };
    if rest.iter().take_while(|word| *word != "--").any(|word| word == "-h" || word == "--help") {
        return help(&project, &[]);
    }
    match CHORES.iter().find(|chore| chore.name == name) {
        Some(chore) => (chore.run)(&project, rest),
        None => Err(Usage(format!(
            "there is no command {name:?}; `cargo xtask help` lists the {} that exist",
            CHORES.len()
        ))
        .into()),
    }
}

fn help(_project: &Project, arguments: &[String]) -> Result<bool> {
    if let Some(word) = arguments.first() {
        return Err(Usage(format!("help takes no argument, but was given {word:?}")).into());
    }
    println!("cargo xtask COMMAND\n");
    for chore in CHORES {
        println!("  {:<6} {}\n         {}", chore.name, chore.arguments, chore.about);
    }
    println!("\nsteps of test: {}", test::step_names().join(", "));
    println!("rules of tidy: {}", tidy::rule_names().join(", "));
    println!("soaks: {}", soak::names().join(", "));
    println!("figures of bench: {}", bench::names().join(", "));
    println!("figures only when named: {}", bench::names_on_request().join(", "));
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_command_is_a_usage_error_that_names_it() {
        let error = dispatch(&["tset".to_owned()]).unwrap_err();
        assert!(error.is::<Usage>());
        assert!(error.to_string().contains("\"tset\""), "{error}");
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = CHORES.iter().map(|chore| chore.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CHORES.len());
    }
}
