//! A command that prints 100 MB through `haft tool bash`, beside a bare pipe.
//!
//! The peer is the same command read to its end and thrown away; haft keeps, counts and cuts what
//! it reads. It is to reach 0.7 of the pipe's speed, which is a ratio of times of at most 1.43 here.

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

/// Bytes that the command prints.
const BYTES: usize = 100_000_000;
/// Samples in one run.
const SAMPLES: usize = 3;

/// One row.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let scratch = Scratch::new()?;
    let mut ours = || time(&mut printing(bench, &scratch)?);
    let mut theirs = || pipe(bench);
    let mut runs = turns::measure(SAMPLES, &mut [&mut ours, &mut theirs])?;
    let peer = runs.pop().context("no run of the peer")?;
    Ok(vec![Row {
        name: "bash that prints 100 MB".to_owned(),
        unit: "ms",
        value: runs.pop().context("no run was measured")?,
        peer: Ok(("the same command into a bare pipe".to_owned(), peer)),
    }])
}

/// The call that prints.
pub(super) fn printing(bench: &Bench, scratch: &Scratch) -> Result<Command> {
    let input = json!({ "command": script() });
    bench.tool(scratch, &scratch.make("work")?, "bash", &input)
}

fn script() -> String {
    format!("yes 'a line of output' | head -c {BYTES}")
}

fn pipe(bench: &Bench) -> Result<f64> {
    let before = Instant::now();
    let mut child = command(&bench.project, "sh")
        .args(["-c", &script()])
        .stdout(Stdio::piped())
        .spawn()
        .context("sh could not be started")?;
    let mut stdout = child.stdout.take().context("sh has no output")?;
    let (mut block, mut total) = (vec![0; 1 << 16], 0);
    loop {
        match stdout.read(&mut block).context("the pipe cannot be read")? {
            0 => break,
            count => total += count,
        }
    }
    child.wait().context("sh cannot be waited for")?;
    let took = before.elapsed();
    if total != BYTES {
        bail!("the command printed {total} bytes, not {BYTES}");
    }
    Ok(milliseconds(took))
}
