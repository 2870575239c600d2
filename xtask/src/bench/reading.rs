//! How long it takes to read what a script of 10 KB does, inside the process.
//!
//! The example `reading` of haft-shell puts the scripts together, measures and prints, as that of
//! `overhead` does; its peer is the parser of the grammar alone, without what is made of its tree.

use anyhow::{Context as _, Result};

use super::Bench;
use super::overhead::line;
use super::table::{Row, Runs};
use super::turns::output;
use crate::process::cargo;

/// Two rows: the script in the middle, and the slowest but for one of a hundred.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let profile = bench.beside();
    let example = ["--package", "haft-shell", "--example", "reading"];
    let mut words = vec!["run", "--quiet", "--profile", profile];
    words.extend(example);
    let text = output(&mut cargo(&bench.project, &words))?;
    ["median", "99th percentile"].map(|what| row(&text, what)).into_iter().collect()
}

fn row(text: &str, what: &str) -> Result<Row> {
    let lines = text.lines().map(line).collect::<Result<Vec<_>>>()?;
    let of = |wanted: &str| {
        let values = lines.iter().filter(|(name, _)| *name == wanted).map(|(_, us)| us / 1e3);
        Runs::new(values.collect()).with_context(|| format!("the example printed no {wanted}"))
    };
    let name = format!("a script of 10 KB read, with what it does, {what}");
    let peer = Ok(("the parser of the grammar alone".to_owned(), of(&format!("{what}, bare"))?));
    Ok(Row { name, unit: "ms", value: of(what)?, peer })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_runs_of_both() {
        let text = "median: 4000.0 us\nmedian, bare: 2000.0 us\nmedian: 6000.0 us\n";
        let found = row(text, "median").unwrap();
        assert!((found.value.median() - 5.0).abs() < 1e-9);
        assert!((found.peer.unwrap().1.median() - 2.0).abs() < 1e-9);
        assert!(row(text, "99th percentile").is_err());
    }
}
