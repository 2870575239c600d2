//! The checks and the test runner of `cargo xtask test`.
//!
//! Everything is built under one profile. Which crates are judged, the scope of the run says. It
//! does not know what the tests test.

use std::process::Command;

use anyhow::{Result, bail};

use super::Session;
use super::scope::Scope;
use super::slow;
use super::system::has_nextest;
use crate::fuzz as fuzzing;
use crate::junit;
use crate::process::{cargo, run};
use crate::tidy as house_rules;

/// The format of every crate.
pub(super) fn format(session: &Session) -> Result<()> {
    run(&mut cargo(&session.project, &["fmt", "--all", "--check"]))
        .map_err(|error| error.context("the sources are not formatted: run `cargo fmt --all`"))
}

/// The house rules, in this process.
pub(super) fn tidy(session: &Session) -> Result<()> {
    if house_rules::run(&session.project, &[])? {
        return Ok(());
    }
    bail!("the findings are above; `cargo xtask tidy` repeats them")
}

/// Every lint as an error.
pub(super) fn clippy(session: &Session) -> Result<()> {
    let mut command = cargo(&session.project, &["clippy"]);
    run(command.args(session.scope.crates()).args(["--all-targets", "--", "-D", "warnings"]))
}

/// The binary and every test, in one go: apart, cargo would pick other features of the
/// dependencies for each and build them twice.
pub(super) fn build(session: &Session) -> Result<()> {
    let words = ["build", "--workspace", "--lib", "--bin", "haft", "--tests"];
    run(&mut cargo(&session.project, &words))
}

/// The examples in doc comments, which nextest does not run.
pub(super) fn doc_tests(session: &Session) -> Result<()> {
    let libraries = session.scope.libraries();
    if libraries.is_empty() {
        println!("  none of the crates is a library");
        return Ok(());
    }
    let mut command = cargo(&session.project, &["test", "--doc"]);
    run(exported(session, command.args(libraries))?)
}

/// The fuzz targets, which are built apart and with flags of their own.
pub(super) fn fuzz(session: &Session) -> Result<()> {
    if fuzzing::short(&session.project)? {
        return Ok(());
    }
    bail!("a fuzz target found something: the lines above say where; `cargo xtask fuzz` goes on")
}

/// Every other test, with cargo-nextest when there is one.
pub(super) fn tests(session: &Session) -> Result<()> {
    let mut command = if has_nextest(session) {
        cargo(&session.project, &["nextest", "run", "--no-fail-fast"])
    } else {
        cargo(&session.project, &["test", "--lib", "--bins", "--tests", "--no-fail-fast"])
    };
    if !Scope::is_in(&session.extra) {
        command.args(session.scope.crates());
    }
    command.args(&session.extra);
    let report = session.slow.then(|| junit::Report::of_next_run(&session.project, &session.extra));
    let report = report.transpose()?;
    let result = run(exported(session, &mut command)?);
    let Some(report) = report else { return result };
    match report.cases() {
        Ok(cases) => print!("\n{}", slow::table(&cases)),
        // Where nothing could be built, that is the failure to tell.
        Err(error) => return result.and(Err(error)),
    }
    result
}

fn exported<'a>(session: &Session, command: &'a mut Command) -> Result<&'a mut Command> {
    session.tools()?.export(command);
    Ok(command)
}
