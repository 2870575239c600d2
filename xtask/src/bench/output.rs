//! A command that prints through `haft tool bash`, beside a bare pipe.
//!
//! The peer is the same command read to its end and thrown away; haft keeps, counts and cuts what
//! it reads. It is to reach 0.7 of the pipe's speed, which is a ratio of times of at most 1.43
//! where the start of a process does not count: in the longer of the two.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::Bench;
use super::scratch::Scratch;
use super::table::Row;
use super::turns::{self, milliseconds, time};
use crate::process::command;

/// How much is printed: its name, its bytes, samples in one run.
const SIZES: [(&str, u64, usize); 2] = [("100 MB", 100_000_000, 3), ("1 GB", 1_000_000_000, 1)];

/// A row for each size.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    SIZES.iter().map(|(name, bytes, samples)| row(bench, name, *bytes, *samples)).collect()
}

fn row(bench: &Bench, name: &str, bytes: u64, samples: usize) -> Result<Row> {
    // What one call keeps is gone before the next, so that it never waits for the disk.
    let mut ours = || {
        let scratch = Scratch::new()?;
        time(&mut printing(bench, &scratch, bytes)?)
    };
    let mut theirs = || pipe(bench, bytes);
    let mut runs = turns::measure(samples, &mut [&mut ours, &mut theirs])?;
    let peer = runs.pop().context("no run of the peer")?;
    Ok(Row {
        name: format!("bash that prints {name}"),
        unit: "ms",
        value: runs.pop().context("no run was measured")?,
        peer: Ok(("the same command into a bare pipe".to_owned(), peer)),
    })
}

/// The call that prints so many bytes.
pub(super) fn printing(bench: &Bench, scratch: &Scratch, bytes: u64) -> Result<Command> {
    let input = json!({ "command": script(bytes) });
    bench.tool(scratch, &scratch.make("work")?, "bash", &input)
}

fn script(bytes: u64) -> String {
    format!("yes 'a line of output' | head -c {bytes}")
}

fn pipe(bench: &Bench, bytes: u64) -> Result<f64> {
    let before = Instant::now();
    let mut child = command(&bench.project, "sh")
        .args(["-c", &script(bytes)])
        .stdout(Stdio::piped())
        .spawn()
        .context("sh could not be started")?;
    let mut stdout = child.stdout.take().context("sh has no output")?;
    let (mut block, mut total) = (vec![0; 1 << 16], 0_u64);
    loop {
        match stdout.read(&mut block).context("the pipe cannot be read")? {
            0 => break,
            count => total += count as u64,
        }
    }
    child.wait().context("sh cannot be waited for")?;
    let took = before.elapsed();
    if total != bytes {
        bail!("the command printed {total} bytes, not {bytes}");
    }
    Ok(milliseconds(took))
}
