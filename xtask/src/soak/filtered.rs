//! A soak of the tests that a filter names: one run, in which each of them does its work many times.
//!
//! The tests take the count from a variable. It does not know what they do with it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;

use super::{Order, Outcome, Scale};
use crate::process::{answer, cargo, watch};
use crate::project::Project;
use crate::test::Tools;

/// Runs the tests whose names hold a text.
pub(super) fn run(
    project: &Project,
    packages: &[&str],
    tests: &str,
    scale: Scale,
    order: &Order<'_>,
) -> Result<Outcome> {
    let nextest = answer(&mut cargo(project, &["nextest", "--version"])).is_some();
    let mut command = if nextest {
        cargo(project, &["nextest", "run", "--profile", "soak"])
    } else {
        cargo(project, &["test"])
    };
    command.args(packages.iter().flat_map(|package| ["-p", package])).arg(tests);
    command.args(order.extra).env(scale.variable(), order.count.to_string());
    Tools::of(project)?.export(&mut command);
    // A usual run tries the same cases each time; a soak looks for new ones.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = now.as_secs().to_string();
    println!("PROPTEST_RNG_SEED={seed} HAFT_TEST_SEED={seed}: the same cases again");
    command.envs(["PROPTEST_RNG_SEED", "HAFT_TEST_SEED"].map(|name| (name, &seed)));
    let start = Instant::now();
    let closing = if nextest { "Summary" } else { "test result:" };
    let (fine, lines) = watch(&mut command, closing)?;
    let seconds = start.elapsed().as_secs_f64();
    let passed: u64 = lines.iter().filter_map(|line| passed(line)).sum();
    if passed == 0 {
        let packages = packages.join(" and ");
        eprintln!(
            "no test of {packages} passed whose name holds {tests:?}: see SOAKS in \
             xtask/src/soak/mod.rs"
        );
    }
    let figure = format!("tests: {passed}, {} {}, {seconds:.0} s", order.count, scale.unit());
    Ok(Outcome { figure, is_fine: fine && passed > 0 })
}

/// The number of passed tests in a closing line of nextest or of the built-in runner.
fn passed(line: &str) -> Option<u64> {
    let mut plain = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            // A colour: everything up to its final letter.
            letters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(letter);
        }
    }
    let (before, _) = plain.split_once(" passed")?;
    before.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_both_runners_are_read() {
        let nextest = "     Summary [   0.013s] 12 tests run: 11 passed, 1 failed, 3 skipped";
        assert_eq!(passed(nextest), Some(11));
        let colour = "\u{1b}[32mSummary\u{1b}[0m 2 tests run: \u{1b}[1m2\u{1b}[0m \u{1b}[32mpassed";
        assert_eq!(passed(colour), Some(2));
        let cargo = "test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured";
        assert_eq!(passed(cargo), Some(7));
        assert_eq!(passed("0 tests run: nothing"), None);
    }
}
