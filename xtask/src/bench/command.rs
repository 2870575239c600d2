//! `true` through the bash tool of one running `haft mcp`, beside the shell alone.
//!
//! The peer is a fork and exec of the same shell with `-c true`. haft adds to it the request and
//! its answer, the pipeline with its record, and the supervision of the command. What looking for
//! changes adds, what the person's shell sets at its start, and what the sandbox adds in which
//! commands that only look can change nothing, stands in rows of their own.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::Bench;
use super::scratch::Scratch;
use super::served::Served;
use super::table::Row;
use super::turns::{self, time};
use crate::process::command;

/// Samples in one run.
const SAMPLES: usize = 100;
/// Files of the folder in which what a command changed is looked for, and how many in one folder.
const FILES: usize = 5_000;
const IN_ONE: usize = 50;
/// Functions of the person whose shell sets something, each of some lines.
const FUNCTIONS: usize = 30;

/// Without looking for changes.
const PLAIN: &str = "[shell.changes]\non = false\n";

/// One row with neither, one with looking among many files, one with functions and variables, and one
/// in the sandbox.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let (bare, full) = (Scratch::new()?, Scratch::new()?);
    let settings = bare.make("state")?.join("settings.toml");
    fs::write(&settings, PLAIN).context("no settings can be written")?;
    let mut unwatched = Served::start(bench, &bare, &bare.make("work")?)?;
    let mut watched = Served::start(bench, &full, &many_files(&full)?)?;
    let own = Scratch::new()?;
    fs::write(own.make("state")?.join("settings.toml"), PLAIN)?;
    fs::write(own.make("home")?.join(".bashrc"), start_up())?;
    let mut started = Served::start(bench, &own, &own.make("work")?)?;
    let held = Scratch::new()?;
    let mut held_to_it = Served::start_in(bench, &held, &held.make("work")?, "ask")?;
    let input = json!({ "command": "true" });
    held_to_it.call("bash", &input)?;
    // The first one starts the supervisor, and copies what is there.
    unwatched.call("bash", &input)?;
    // What only looks changes nothing, so nothing is looked for around it.
    let acting = json!({ "command": "umask 022" });
    watched.call("bash", &acting)?;
    let known = started.call("bash", &json!({ "command": "type -t function_1" }))?.1;
    ensure!(known.contains("function"), "the start-up file was not read: {known}");
    let unwatched = RefCell::new(unwatched);
    let mut ours = || unwatched.borrow_mut().call("bash", &input).map(|(took, _)| took);
    let mut acts = || unwatched.borrow_mut().call("bash", &acting).map(|(took, _)| took);
    let mut among = || watched.call("bash", &acting).map(|(took, _)| took);
    let mut with = || started.call("bash", &input).map(|(took, _)| took);
    let mut held = || held_to_it.call("bash", &input).map(|(took, _)| took);
    let mut theirs = || time(command(&bench.project, "bash").args(["-c", "true"]));
    let runs = turns::measure(
        SAMPLES,
        &mut [&mut ours, &mut acts, &mut among, &mut with, &mut held, &mut theirs],
    )?;
    let [ours, acts, among, with, held, theirs] =
        <[_; 6]>::try_from(runs).ok().context("not every run was measured")?;
    let row = |name: &str, value, peer: (&str, _)| Row {
        name: name.to_owned(),
        unit: "ms",
        value,
        peer: Ok((peer.0.to_owned(), peer.1)),
    };
    let name = "bash: umask, what changed among 5,000 files looked for (haft mcp)";
    Ok(vec![
        row("bash: true (haft mcp)", ours.clone(), ("bash -c true", theirs)),
        row(name, among, ("the same, not looked for", acts)),
        row(
            "bash: true, with what a shell sets at its start (haft mcp)",
            with,
            ("the same without", ours.clone()),
        ),
        row(
            "bash: true, in the sandbox of what only looks (haft mcp)",
            held,
            ("the same without", ours),
        ),
    ])
}

/// A start-up file with functions, aliases and variables.
fn start_up() -> String {
    let one = |number: usize| {
        format!(
            "function_{number}() {{\n  local first=\"$1\"\n  if [ -n \"$first\" ]; then\n    \
             echo \"$first {number}\"\n  else\n    return 1\n  fi\n}}\n\
             alias alias_{number}='function_{number} x'\nexport VARIABLE_{number}={number}\n"
        )
    };
    (0..FUNCTIONS).map(one).collect()
}

/// A folder with many small files.
fn many_files(scratch: &Scratch) -> Result<PathBuf> {
    for number in 0..FILES {
        let folder = scratch.make(&format!("work/{}", number / IN_ONE))?;
        let text = format!("The file number {number}.\n").repeat(40);
        fs::write(folder.join(format!("{number}.txt")), text)
            .with_context(|| format!("no file can be written in {}", folder.display()))?;
    }
    Ok(scratch.join("work"))
}
