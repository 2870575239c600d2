//! How long a process takes that prints its version and ends, beside ripgrep's.
//!
//! Measured from before the start to after the end, with both programs started in turns. It says
//! nothing about the first start after a boot: the files are in memory.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use super::table::{Row, Runs};
use super::{Bench, RUNS};
use crate::process::command;
use crate::project::Project;
use crate::test::RIPGREP;

/// Starts in one run; the run's value is their median.
const STARTS: usize = 40;

/// One row: `haft --version`.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let rg = RIPGREP.path()?;
    let is_there = rg.is_file();
    let (mut ours, mut theirs) = (Vec::with_capacity(RUNS), Vec::with_capacity(RUNS));
    // Once before, so that neither pays for reading its file.
    start(&bench.project, &bench.haft)?;
    for _ in 0..RUNS {
        let (mut our_starts, mut their_starts) = (Vec::new(), Vec::new());
        for _ in 0..STARTS {
            our_starts.push(start(&bench.project, &bench.haft)?);
            if is_there {
                their_starts.push(start(&bench.project, &rg)?);
            }
        }
        ours.extend(Runs::new(our_starts).map(|runs| runs.median()));
        theirs.extend(Runs::new(their_starts).map(|runs| runs.median()));
    }
    let peer = match Runs::new(theirs) {
        Some(runs) => Ok((format!("rg {} --version", RIPGREP.version), runs)),
        None => Err("rg is not installed: `cargo xtask test --only rg`".to_owned()),
    };
    Ok(vec![Row {
        name: format!("process start: haft --version ({})", bench.profile()),
        unit: "ms",
        value: Runs::new(ours).context("no run was measured")?,
        peer,
    }])
}

/// Milliseconds from before the start of a program to after its end.
fn start(project: &Project, program: &Path) -> Result<f64> {
    let mut command = command(project, program);
    command.arg("--version").stdout(std::process::Stdio::null());
    let before = Instant::now();
    let status =
        command.status().with_context(|| format!("{} could not be started", program.display()))?;
    let took = before.elapsed();
    if !status.success() {
        bail!("`{} --version` ended with {status}", program.display());
    }
    Ok(took.as_secs_f64() * 1000.0)
}
