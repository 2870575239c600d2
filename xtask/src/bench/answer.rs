//! What haft takes between a model's answer and the next request, and until the first request.
//!
//! A local server plays the model over each wire and drives `haft -p` through reads and edits of
//! one file and through commands that do nothing. A time runs from before the answer is written to
//! the last byte of the request, which holds the whole conversation so far; it is never shown too
//! short. A run counts only when every call did what it was asked.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::scratch::{LINE, Scratch, write_lines};
use super::server::{Exchange, Server};
use super::table::{Row, Runs};
use super::turns::{self, milliseconds, output, time};
use super::wires::Wire;
use super::{Bench, RUNS};
use crate::process::command;

/// Reads of a run, and edits.
const PAIRS: usize = 50;
/// Commands of a run.
const COMMANDS: usize = 20;
/// Bytes of the file that is read and edited: 2,000 lines.
const FILE: u64 = 2_000 * LINE as u64;
/// Lines of a read.
const LINES: usize = 100;
/// Starts in one run of the figure of the first request.
const STARTS: usize = 10;

/// The kinds of calls, in the order of the table.
const KINDS: [&str; 3] = ["read", "edit", "bash"];

/// Six rows a wire: for each kind of call the median and the slowest.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let scratch = Scratch::new()?;
    let mut rows = Vec::new();
    for wire in Wire::ALL {
        let mut medians = [const { Vec::new() }; KINDS.len()];
        let mut slowest = [const { Vec::new() }; KINDS.len()];
        let (mut bare, mut writes) = (Vec::new(), Vec::new());
        for run in 0..RUNS {
            let times = drive(bench, &scratch, wire, run)?;
            for (kind, times) in times.into_iter().enumerate() {
                slowest[kind].push(times.iter().copied().fold(0.0, f64::max));
                medians[kind].push(Runs::new(times).context("no call was measured")?.median());
            }
            bare.push(repeat(|| time(command(&bench.project, "sh").args(["-c", "true"])))?);
            let folder = scratch.make("work")?;
            let bytes = fs::read(folder.join("file.txt")).context("the file cannot be read")?;
            writes.push(repeat(|| turns::write(&folder, &bytes))?);
        }
        let bare = Runs::new(bare).context("no command was measured")?;
        let writes = Runs::new(writes).context("no write was measured")?;
        for (kind, (medians, slowest)) in medians.into_iter().zip(slowest).enumerate() {
            let (name, wire) = (KINDS[kind], wire.name());
            let peer = match name {
                "bash" => Ok(("sh -c true".to_owned(), bare.clone())),
                "edit" => Ok(("bare write, syncs and rename".to_owned(), writes.clone())),
                _ => Err(String::new()),
            };
            let row = |what: &str, runs, peer| -> Result<Row> {
                Ok(Row {
                    name: format!("answer to next request: {name}, {wire}, {what}"),
                    unit: "ms",
                    value: Runs::new(runs).context("no run was measured")?,
                    peer,
                })
            };
            rows.push(row("median", medians, peer)?);
            rows.push(row("slowest", slowest, Err(String::new()))?);
        }
    }
    Ok(rows)
}

/// One row: from the start of `haft -p` until its first request is there.
pub(super) fn first_request(bench: &Bench) -> Result<Vec<Row>> {
    let scratch = Scratch::new()?;
    let mut rows = Vec::new();
    for wire in Wire::ALL {
        let mut start = || {
            let server = Server::start(vec![wire.text("fine")])?;
            let mut command = haft(bench, &scratch, wire, &server)?;
            let before = Instant::now();
            output(&mut command)?;
            let exchanges = server.exchanges();
            let first = exchanges.first().context("haft -p sent no request")?;
            Ok(milliseconds(first.arrived.duration_since(before)))
        };
        let mut runs = turns::measure(STARTS, &mut [&mut start])?;
        rows.push(Row {
            name: format!("start of haft -p to its first request, {}", wire.name()),
            unit: "ms",
            value: runs.pop().context("no run was measured")?,
            peer: Err(String::new()),
        });
    }
    Ok(rows)
}

/// Milliseconds of each call of one run, by kind.
fn drive(bench: &Bench, scratch: &Scratch, wire: Wire, run: usize) -> Result<[Vec<f64>; 3]> {
    let file = scratch.make("work")?.join("file.txt");
    write_lines(&file, FILE)?;
    let calls = calls();
    let mut answers: Vec<String> = calls
        .iter()
        .enumerate()
        .map(|(number, (tool, input))| wire.call(number, tool, input))
        .collect();
    answers.push(wire.text("over"));
    let server = Server::start(answers)?;
    let said = output(&mut haft(bench, scratch, wire, &server)?)
        .with_context(|| format!("run {} over {}", run + 1, wire.name()))?;
    let exchanges = server.exchanges();
    check(&said, &exchanges, calls.len(), &file)?;
    let mut times = [const { Vec::new() }; KINDS.len()];
    for (number, (tool, _)) in calls.iter().enumerate() {
        let kind = KINDS.iter().position(|kind| kind == tool).context("a call of no kind")?;
        let (before, after) = (exchanges[number], exchanges[number + 1]);
        times[kind].push(milliseconds(after.arrived.duration_since(before.answered)));
    }
    Ok(times)
}

/// Reads and edits in turns, so that no read finds the file as it was; then the commands.
fn calls() -> Vec<(&'static str, Value)> {
    let mut calls = Vec::new();
    for pair in 0..PAIRS {
        let line = pair * 37;
        let offset = line.saturating_sub(LINES / 2) + 1;
        calls.push(("read", json!({ "path": "file.txt", "offset": offset, "limit": LINES })));
        let (old, new) = (format!("line {line:09}: the"), format!("edit {line:09}: the"));
        let edits = json!([{ "old_text": old, "new_text": new }]);
        calls.push(("edit", json!({ "path": "file.txt", "edits": edits })));
    }
    calls.resize(2 * PAIRS + COMMANDS, ("bash", json!({ "command": "umask 022" })));
    calls
}

/// Whether the run did what it was asked; one that failed early would be a fast one.
fn check(said: &str, exchanges: &[Exchange], calls: usize, file: &Path) -> Result<()> {
    let result: Value = serde_json::from_str(said).context("haft -p printed no JSON")?;
    let (made, failed) = (&result["calls"], &result["failed_calls"]);
    if *made != json!(calls) || *failed != json!(0) || exchanges.len() != calls + 1 {
        let requests = exchanges.len();
        bail!("of {calls} calls {made} were made and {failed} failed, in {requests} requests");
    }
    let text = fs::read_to_string(file).context("the edited file cannot be read")?;
    let edited = text.lines().filter(|line| line.starts_with("edit ")).count();
    if edited != PAIRS {
        bail!("{edited} of {PAIRS} edits are in the file");
    }
    let grown = exchanges.last().map_or(0, |last| last.size);
    if grown < PAIRS * LINES * LINE {
        bail!("the last request has {grown} bytes: what was read is not in it");
    }
    Ok(())
}

/// `haft -p` in the scratch folder, sent to the server.
fn haft(bench: &Bench, scratch: &Scratch, wire: Wire, server: &Server) -> Result<Command> {
    let model = format!("{}/bench", wire.name());
    // What is measured is no long session, and its server answers no other question.
    let settings = format!("[models.\"{model}\"]\ncontext = 1000000\n");
    fs::write(scratch.make("state")?.join("settings.toml"), settings)?;
    let mut command = bench.haft(scratch, &scratch.make("work")?)?;
    command
        .envs(wire.environment(&server.url()))
        .args(["-p", "go", "--output", "json", "--mode", "bypass"])
        .args(["--model", &model]);
    Ok(command)
}

/// The median of as many samples as there are commands in a run.
fn repeat(sample: impl FnMut() -> Result<f64>) -> Result<f64> {
    let times = std::iter::repeat_with(sample).take(COMMANDS).collect::<Result<Vec<_>>>()?;
    Ok(Runs::new(times).context("nothing was measured")?.median())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edit_has_a_line_of_its_own_that_is_in_the_file() {
        let calls = calls();
        let count = |tool| calls.iter().filter(|(name, _)| *name == tool).count();
        assert_eq!(KINDS.map(count), [PAIRS, PAIRS, COMMANDS]);
        assert!((((PAIRS - 1) * 37 * LINE) as u64) < FILE);
    }
}
