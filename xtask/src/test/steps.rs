//! The checks and the test runner of `cargo xtask test`.
//!
//! Everything is built under one profile. It does not know what the tests test.

use std::process::Command;

use anyhow::{Result, bail};

use super::Session;
use crate::fuzz as fuzzing;
use crate::process::{answer, cargo, run};
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
    let words = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    run(&mut cargo(&session.project, &words))
}

/// The binary and every test, in one go: apart, cargo would pick other features of the
/// dependencies for each and build them twice.
pub(super) fn build(session: &Session) -> Result<()> {
    let words = ["build", "--workspace", "--lib", "--bin", "haft", "--tests"];
    run(&mut cargo(&session.project, &words))
}

/// The examples in doc comments, which nextest does not run.
pub(super) fn doc_tests(session: &Session) -> Result<()> {
    run(exported(session, &mut cargo(&session.project, &["test", "--workspace", "--doc"])))
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
        cargo(&session.project, &["nextest", "run", "--workspace", "--no-fail-fast"])
    } else {
        println!("  cargo-nextest is not installed: cargo test runs the tests");
        let words = ["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"];
        cargo(&session.project, &words)
    };
    command.args(&session.extra);
    run(exported(session, &mut command))
}

fn has_nextest(session: &Session) -> bool {
    answer(&mut cargo(&session.project, &["nextest", "--version"])).is_some()
}

fn exported<'a>(session: &Session, command: &'a mut Command) -> &'a mut Command {
    session.tools.export(command);
    command
}
