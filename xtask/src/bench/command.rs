//! `true` through the bash tool of one running `haft mcp`, beside the shell alone.
//!
//! The peer is a fork and exec of the same shell with `-c true`. haft adds to it the request and
//! its answer, the pipeline with its record, and the supervision of the command. What looking for
//! changes adds stands in a row of its own.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
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

/// One row without looking for changes, and one with it among many files.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let (bare, full) = (Scratch::new()?, Scratch::new()?);
    let settings = bare.make("state")?.join("settings.toml");
    fs::write(&settings, "[shell.changes]\non = false\n").context("no settings can be written")?;
    let mut unwatched = Served::start(bench, &bare, &bare.make("work")?)?;
    let mut watched = Served::start(bench, &full, &many_files(&full)?)?;
    let input = json!({ "command": "true" });
    // The first one starts the supervisor, and copies what is there.
    unwatched.call("bash", &input)?;
    watched.call("bash", &input)?;
    let mut ours = || unwatched.call("bash", &input).map(|(took, _)| took);
    let mut among = || watched.call("bash", &input).map(|(took, _)| took);
    let mut theirs = || time(command(&bench.project, "bash").args(["-c", "true"]));
    let runs = turns::measure(SAMPLES, &mut [&mut ours, &mut among, &mut theirs])?;
    let [ours, among, theirs] =
        <[_; 3]>::try_from(runs).ok().context("not every run was measured")?;
    let row = |name: &str, value, peer: (&str, _)| Row {
        name: name.to_owned(),
        unit: "ms",
        value,
        peer: Ok((peer.0.to_owned(), peer.1)),
    };
    let name = "bash: true, what changed among 5,000 files looked for (haft mcp)";
    Ok(vec![
        row("bash: true (haft mcp)", ours.clone(), ("bash -c true", theirs)),
        row(name, among, ("the same, not looked for", ours)),
    ])
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
