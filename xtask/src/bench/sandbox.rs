//! What it costs to hold a program to limits, at each level that works here.
//!
//! The example `confined` of haft-host starts `true` in turns, free and at each level, and prints `WHAT:
//! N us`, one line for each run. Its supervisor is built beside it, as it is.

use std::collections::HashSet;

use anyhow::{Context as _, Result};

use super::Bench;
use super::overhead::line;
use super::table::{Row, Runs};
use super::turns::output;
use crate::process::{cargo, run as run_command};

/// What stands before the lines of programs that nothing holds.
const FREE: &str = "free";

/// One row for each level, beside the same program without limits.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let profile = bench.beside();
    let words = ["--profile", profile, "--package", "haft-host"];
    let supervisor = [&["build", "--quiet"], &words[..], &["--bin", "haft-supervisor"]].concat();
    run_command(&mut cargo(&bench.project, &supervisor))?;
    let example = [&["run", "--quiet"], &words[..], &["--example", "confined"]].concat();
    rows(&output(&mut cargo(&bench.project, &example))?)
}

fn rows(text: &str) -> Result<Vec<Row>> {
    let lines = text.lines().map(line).collect::<Result<Vec<_>>>()?;
    let of = |wanted: &str| {
        let values = lines.iter().filter(|(name, _)| *name == wanted);
        Runs::new(values.map(|(_, value)| value / 1000.0).collect())
    };
    let mut seen = HashSet::new();
    let levels = lines.iter().map(|(name, _)| *name).filter(|name| *name != FREE);
    levels
        .filter(|name| seen.insert(*name))
        .map(|name| {
            let value = of(name).with_context(|| format!("{name} has no finite value"))?;
            let free = of(FREE).context("nothing was started without limits")?;
            let peer = Ok(("the same without limits".to_owned(), free));
            Ok(Row { name: format!("start of true: {name}"), unit: "ms", value, peer })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_is_a_row_beside_what_is_free() {
        let text = "free: 1000 us\nlevel L: 2000 us\nfree: 2000 us\nlevel L: 3000 us\n";
        let rows = rows(text).unwrap();
        assert_eq!(rows.len(), 1);
        assert!((rows[0].value.median() - 2.5).abs() < 1e-9);
        assert!((rows[0].peer.as_ref().unwrap().1.median() - 1.5).abs() < 1e-9);
        assert!(super::rows("level L: 1 us\n").is_err());
    }
}
