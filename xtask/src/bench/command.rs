//! `true` through the bash tool of one running `haft mcp`, beside the shell alone.
//!
//! The peer is a fork and exec of the same shell with `-c true`. haft adds to it the request and
//! its answer, the pipeline with its record, and the supervision of the command.

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

/// One row.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let scratch = Scratch::new()?;
    let mut served = Served::start(bench, &scratch, &scratch.make("work")?)?;
    let input = json!({ "command": "true" });
    // The first one starts the supervisor.
    served.call("bash", &input)?;
    let mut ours = || served.call("bash", &input).map(|(took, _)| took);
    let mut theirs = || time(command(&bench.project, "bash").args(["-c", "true"]));
    let mut runs = turns::measure(SAMPLES, &mut [&mut ours, &mut theirs])?;
    let peer = runs.pop().context("no run of the peer")?;
    Ok(vec![Row {
        name: "bash: true (haft mcp)".to_owned(),
        unit: "ms",
        value: runs.pop().context("no run was measured")?,
        peer: Ok(("bash -c true".to_owned(), peer)),
    }])
}
