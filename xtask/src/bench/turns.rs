//! Two things measured in turns, so that a machine that is busy for one is busy for the other.
//!
//! A run's value is the median of its samples. It does not know what a sample is.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::RUNS;
use super::table::Runs;
use crate::process::shown;

/// Takes one sample.
pub(super) type Sample<'a> = &'a mut dyn FnMut() -> Result<f64>;

/// Measures ours, and where there are any its peers, `samples` times in each run.
///
/// # Errors
///
/// When a sample cannot be taken.
pub(super) fn measure(samples: usize, all: &mut [Sample<'_>]) -> Result<Vec<Runs>> {
    // Once before, so that none pays for reading its files.
    for sample in &mut *all {
        sample()?;
    }
    let mut runs = vec![Vec::with_capacity(RUNS); all.len()];
    for _ in 0..RUNS {
        let mut taken = vec![Vec::with_capacity(samples); all.len()];
        for _ in 0..samples {
            for (sample, taken) in all.iter_mut().zip(&mut taken) {
                taken.push(sample()?);
            }
        }
        for (taken, runs) in taken.into_iter().zip(&mut runs) {
            runs.push(Runs::new(taken).context("a run has no samples")?.median());
        }
    }
    runs.into_iter().map(|runs| Runs::new(runs).context("no run was measured")).collect()
}

/// Milliseconds from before the start of a command to after its end, its output thrown away.
///
/// # Errors
///
/// When it cannot be started or does not end well.
pub(super) fn time(command: &mut Command) -> Result<f64> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let before = Instant::now();
    let status = command.status();
    let took = before.elapsed();
    let status = status.with_context(|| format!("`{}` could not be started", shown(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", shown(command));
    }
    Ok(milliseconds(took))
}

/// Milliseconds of a bare write as safe as an edit's: to a file beside, synced, renamed, and the
/// folder synced.
///
/// # Errors
///
/// When the file cannot be written.
pub(super) fn write(folder: &Path, bytes: &[u8]) -> Result<f64> {
    let (beside, path) = (folder.join("bare.new"), folder.join("bare.txt"));
    let before = Instant::now();
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, &path))
        .and_then(|()| if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) });
    let took = before.elapsed();
    written.with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(milliseconds(took))
}

/// A duration in milliseconds.
pub(super) fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
}

/// The standard output of a command that ends well.
///
/// # Errors
///
/// When it cannot be started or does not end well; the message holds what it said.
pub(super) fn output(command: &mut Command) -> Result<String> {
    let output =
        command.output().with_context(|| format!("`{}` could not be started", shown(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said: String = said.chars().take(500).collect();
        bail!("`{}` ended with {}: {}", shown(command), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_the_median_of_its_samples() {
        let mut count = 0.0;
        let mut ours = || {
            count += 1.0;
            Ok(count)
        };
        let runs = measure(3, &mut [&mut ours, &mut || Ok(7.0)]).unwrap();
        // The first sample is the one before; the runs are 2 3 4, 5 6 7 and so on.
        assert!((runs[0].median() - 9.0).abs() < 1e-9);
        assert!((runs[1].median() - 7.0).abs() < 1e-9);
    }
}
