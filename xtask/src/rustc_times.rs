//! CPU seconds of each rustc of a build: this program stands in for it, and writes down what it
//! took.
//!
//! Cargo starts every compiler through `RUSTC_WRAPPER`. The seconds are those of the compiler and of
//! the linker that it starts, as the kernel counts them for children that were waited for; it
//! counts in hundredths. Needs `/proc`. It does not know what is built.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

/// The variable that names the file to write to; only where it is set does this stand in.
const LOG: &str = "HAFT_RUSTC_TIMES";
/// How the kernel counts: `USER_HZ`, which is the same on every machine that this runs on.
const TICKS: f64 = 100.0;

/// Has a build write down what its compilers take.
///
/// # Errors
///
/// When the path of this program is not known.
pub(crate) fn record(build: &mut Command, log: &Path) -> Result<()> {
    let this = env::current_exe().context("the path of this program is not known")?;
    build.env("RUSTC_WRAPPER", this).env(LOG, log);
    Ok(())
}

/// CPU seconds by crate and version, from what a build wrote down.
///
/// # Errors
///
/// When nothing was written, or a line cannot be read.
pub(crate) fn read(log: &Path) -> Result<BTreeMap<String, f64>> {
    let text = fs::read_to_string(log)
        .with_context(|| format!("{} cannot be read: was nothing compiled?", log.display()))?;
    summed(&text).with_context(|| format!("{} holds a line of another form", log.display()))
}

/// CPU seconds of all children of this process that were waited for, and of theirs.
///
/// # Errors
///
/// When `/proc` does not tell them.
pub(crate) fn of_children() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("/proc/self/stat cannot be read")?;
    seconds(&stat).context("/proc/self/stat has another form than expected")
}

/// Does the work of rustc where cargo asks this program for it; `None` where nobody does.
pub(crate) fn stand_in() -> Option<ExitCode> {
    let log = env::var_os(LOG)?;
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let (rustc, arguments) = words.split_first()?;
    // Nothing of the environment is changed: crates are compiled with what cargo sets.
    let code = match Command::new(rustc).args(arguments).status() {
        Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
        Err(error) => return Some(failed(&format!("{} cannot start: {error}", rustc.display()))),
    };
    // Questions about the compiler itself belong to no crate.
    let name = |variable| env::var(variable).ok();
    if let (Some(package), Some(version)) = (name("CARGO_PKG_NAME"), name("CARGO_PKG_VERSION")) {
        let written = of_children().and_then(|seconds| {
            let line = format!("{seconds:.2} {package} {version}\n");
            // One write each, since several compilers end at once.
            let mut file = OpenOptions::new().create(true).append(true).open(&log)?;
            Ok(file.write_all(line.as_bytes())?)
        });
        if let Err(error) = written {
            return Some(failed(&format!("{} cannot be written: {error:#}", log.display())));
        }
    }
    Some(ExitCode::from(code))
}

fn failed(message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::FAILURE
}

/// Fields 16 and 17 of a `stat`, `cutime` and `cstime`. The second one is a name in parentheses
/// that may hold anything.
fn seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(13);
    let ticks = |text: Option<&str>| text?.parse::<u32>().ok();
    let (user, system) = (ticks(fields.next())?, ticks(fields.next())?);
    Some((f64::from(user) + f64::from(system)) / TICKS)
}

fn summed(text: &str) -> Option<BTreeMap<String, f64>> {
    let mut crates = BTreeMap::new();
    for line in text.lines() {
        let (seconds, name) = line.split_once(' ')?;
        *crates.entry(name.to_owned()).or_default() += seconds.parse::<f64>().ok()?;
    }
    Some(crates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_children_are_read_from_a_stat() {
        let stat = "7 (a) b)) S 1 7 7 0 -1 4194560 100 200 0 0 11 12 250 50 20 0 1 0 9 9 9";
        assert!((seconds(stat).unwrap() - 3.0).abs() < 1e-9);
        assert_eq!(seconds("7 (a) S 1"), None);
        if cfg!(target_os = "linux") {
            assert!(of_children().unwrap() >= 0.0);
        }
    }

    #[test]
    fn the_compilers_of_a_crate_are_one() {
        let crates = summed("1.50 ring 0.17.1\n0.25 haft 0.1.0\n0.50 ring 0.17.1\n").unwrap();
        let crates: Vec<_> = crates.into_iter().collect();
        assert_eq!(crates, [("haft 0.1.0".to_owned(), 0.25), ("ring 0.17.1".to_owned(), 2.0)]);
        assert_eq!(summed("half a line"), None);
    }

    #[test]
    fn nobody_asks_for_a_compiler_here() {
        assert!(stand_in().is_none());
    }
}
