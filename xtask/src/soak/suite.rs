//! A soak of every test: run over and over on a machine that has something else to do.
//!
//! A test that waits for a moment instead of for an event passes on an idle machine and fails on a
//! busy one. None is tried again here, and each failure counts. The load is threads of this
//! process, so that it ends with it. It does not know what a test does.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use super::{Order, Outcome};
use crate::junit::{Case, End, Report};
use crate::process::{answer, cargo, run as run_command};
use crate::project::Project;
use crate::test::{Scope, Tools};

/// Threads that do nothing but keep a processor busy.
const BUSY: usize = 2;

/// A test by its binary and its name.
type TestName = (String, String);

/// How often a test did not pass.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Failures {
    failed: u64,
    timed_out: u64,
}

/// Runs every test as often as the count says.
///
/// # Errors
///
/// When there is no cargo-nextest, the tests cannot be built, or a run comes to no test.
pub(super) fn run(project: &Project, order: &Order<'_>) -> Result<Outcome> {
    if answer(&mut cargo(project, &["nextest", "--version"])).is_none() {
        bail!("this soak needs cargo-nextest: run `cargo install --locked cargo-nextest`");
    }
    let tools = Tools::of(project)?;
    let runner = |word: &str| {
        let mut command = cargo(project, &["nextest", "run"]);
        if !Scope::is_in(order.extra) {
            command.args(Scope::Workspace.crates());
        }
        command.arg(word).args(order.extra);
        command
    };
    // What is built beside busy loops takes long and says nothing of the tests.
    run_command(&mut runner("--no-run"))?;
    let (mut failures, mut tests, start) = (BTreeMap::new(), 0, Instant::now());
    for number in 1..=order.count {
        println!("\n== run {number} of {}, beside {BUSY} busy loops", order.count);
        let report = Report::of_next_run(project, order.extra)?;
        let mut command = runner("--no-fail-fast");
        // None of the retries that the configuration grants.
        command.args(["--retries", "0"]);
        tools.export(&mut command);
        let result = busy(|| run_command(&mut command));
        let cases = report.cases()?;
        if cases.iter().all(|case| case.end == End::Passed) {
            result.context("a run failed, but none of its tests")?;
        }
        count(&mut failures, &cases);
        tests = tests.max(cases.len());
    }
    print!("\n{}", listed(&failures, order.count));
    let seconds = start.elapsed().as_secs_f64();
    let figure = figure(&failures, tests, order.count, seconds);
    Ok(Outcome { figure, is_fine: failures.is_empty() })
}

/// Does something while the busy loops run.
fn busy<T>(work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..BUSY {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            });
        }
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

/// Adds the tests of one run that did not pass.
fn count(failures: &mut BTreeMap<TestName, Failures>, cases: &[Case]) {
    for case in cases.iter().filter(|case| case.end != End::Passed) {
        let of = failures.entry((case.binary.clone(), case.name.clone())).or_default();
        match case.end {
            End::TimedOut => of.timed_out += 1,
            End::Failed | End::Passed => of.failed += 1,
        }
    }
}

/// Every test that did not pass each time, the worst first.
fn listed(failures: &BTreeMap<TestName, Failures>, runs: u64) -> String {
    if failures.is_empty() {
        return format!("every test passed in each of {runs} runs\n");
    }
    let mut sorted: Vec<_> = failures.iter().collect();
    sorted.sort_by_key(|(_, of)| std::cmp::Reverse(of.failed + of.timed_out));
    let mut text = format!("did not pass, of {runs} runs:\n");
    for ((binary, name), Failures { failed, timed_out }) in sorted {
        let _ = writeln!(text, "  failed {failed}, timed out {timed_out}: {binary} {name}");
    }
    text
}

fn figure(
    failures: &BTreeMap<TestName, Failures>,
    tests: usize,
    runs: u64,
    seconds: f64,
) -> String {
    let mut text = format!("tests: {tests}, {runs} runs beside {BUSY} busy loops, {seconds:.0} s");
    if !failures.is_empty() {
        let times: u64 = failures.values().map(|of| of.failed + of.timed_out).sum();
        let _ = write!(text, ", {} tests did not pass {times} times", failures.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, end: End) -> Case {
        Case { binary: "haft-x::it".to_owned(), name: name.to_owned(), seconds: 1.0, end }
    }

    #[test]
    fn each_failure_of_each_run_counts() {
        let mut failures = BTreeMap::new();
        count(&mut failures, &[case("a", End::Passed), case("b", End::Failed)]);
        count(&mut failures, &[case("a", End::TimedOut), case("b", End::Failed)]);
        count(&mut failures, &[case("a", End::Passed), case("b", End::TimedOut)]);
        let text = listed(&failures, 3);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "did not pass, of 3 runs:");
        assert_eq!(lines[1], "  failed 2, timed out 1: haft-x::it b");
        assert_eq!(lines[2], "  failed 0, timed out 1: haft-x::it a");
        let figure = figure(&failures, 2, 3, 60.4);
        let expected = "tests: 2, 3 runs beside 2 busy loops, 60 s, 2 tests did not pass 4 times";
        assert_eq!(figure, expected);
    }

    #[test]
    fn without_a_failure_the_list_says_so() {
        let mut failures = BTreeMap::new();
        count(&mut failures, &[case("a", End::Passed)]);
        assert_eq!(listed(&failures, 3), "every test passed in each of 3 runs\n");
        assert_eq!(figure(&failures, 1, 3, 1.0), "tests: 1, 3 runs beside 2 busy loops, 1 s");
    }

    #[test]
    fn the_busy_loops_end_with_the_work() {
        assert_eq!(busy(|| 7), 7);
    }
}
