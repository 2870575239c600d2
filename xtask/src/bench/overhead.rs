//! What the standard pipeline adds to a call that only observes, inside the process.
//!
//! The example `overhead` of haft-tool measures and prints; it is built as `haft` is. A line is
//! `WHAT: N us`, one for each run, and lines `WHAT, bare: N us` are its peer: the tool's function
//! called without a pipeline.

use std::collections::HashSet;

use anyhow::{Context as _, Result, bail};

use super::Bench;
use super::table::{Row, Runs};
use super::turns::output;
use crate::process::cargo;

/// What follows the name of a case in the lines of its peer.
const BARE: &str = ", bare";

/// One row for each case that the example knows.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let profile = bench.beside();
    let example = ["--package", "haft-tool", "--example", "overhead"];
    let mut words = vec!["run", "--quiet", "--profile", profile];
    words.extend(example);
    rows(&output(&mut cargo(&bench.project, &words))?)
}

fn rows(text: &str) -> Result<Vec<Row>> {
    let lines = text.lines().map(line).collect::<Result<Vec<_>>>()?;
    let of = |wanted: &str| {
        let values = lines.iter().filter(|(name, _)| *name == wanted).map(|(_, value)| *value);
        Runs::new(values.collect())
    };
    let mut seen = HashSet::new();
    let names = lines.iter().map(|(name, _)| *name);
    names
        .filter(|name| !name.ends_with(BARE) && seen.insert(*name))
        .map(|name| {
            let peer = match of(&format!("{name}{BARE}")) {
                Some(runs) => Ok(("the tool's function, bare".to_owned(), runs)),
                None => Err(String::new()),
            };
            let value = of(name).with_context(|| format!("{name} has no finite value"))?;
            Ok(Row { name: format!("call in the process: {name}"), unit: "us", value, peer })
        })
        .collect()
}

pub(super) fn line(line: &str) -> Result<(&str, f64)> {
    let parsed = line
        .rsplit_once(": ")
        .and_then(|(name, value)| Some((name, value.strip_suffix(" us")?.trim().parse().ok()?)));
    match parsed {
        Some(parsed) => Ok(parsed),
        None => bail!("the example printed {line:?}, which is not `WHAT: N us`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_gathered_by_name_and_bare_ones_are_the_peer() {
        let text = "a: 3.00 us\na: 1.50 us\nb: 9 us\na, bare: 0.5 us\n";
        let rows = rows(text).unwrap();
        assert_eq!(rows.len(), 2);
        assert!((rows[0].value.median() - 2.25).abs() < 1e-9);
        assert!((rows[0].peer.as_ref().unwrap().1.median() - 0.5).abs() < 1e-9);
        assert!(rows[1].peer.is_err());
    }

    #[test]
    fn another_line_is_an_error() {
        for text in ["warning: unused", "a: x us", "a 3 us"] {
            assert!(rows(text).is_err(), "{text}");
        }
    }
}
