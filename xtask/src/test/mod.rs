//! `cargo xtask test`: installs what the tests use, then runs every check and every test.
//!
//! The steps are one list, run in order. Each is timed and named in the closing table. A failed
//! install ends the run at once, since what follows would fail for a reason that misleads; a failed
//! check does not hide the checks after it. It does not know how anything is installed.

mod install;
mod steps;
mod system;
mod tools;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;

use self::tools::Tools;
pub(crate) use self::tools::{FD, Peer, RIPGREP};
use crate::Usage;
use crate::project::Project;

/// One named part of the run.
struct Step {
    name: &'static str,
    about: &'static str,
    kind: Kind,
    run: fn(&Session) -> Result<()>,
}

/// What a failure of the step means for those after it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Puts something on the machine; left out by `--quick`, and its failure ends the run.
    Install,
    /// Judges the tree; the steps after it still run.
    Check,
    /// Judges the tree, and the steps after it cannot work without it.
    Gate,
}

/// What every step is given.
struct Session {
    project: Project,
    tools: Tools,
    /// Arguments after `--`, for the test runner.
    extra: Vec<String>,
}

/// Every step in the order in which they run. The test runner comes last, so that its closing line
/// is the last one that a reader of the log finds.
const STEPS: &[Step] = &[
    Step {
        name: "system",
        about: "programs from the system's packages",
        kind: Kind::Install,
        run: system::install,
    },
    Step {
        name: "python",
        about: "a virtual environment with the MCP SDK and the gateway",
        kind: Kind::Install,
        run: install::python,
    },
    Step {
        name: "npm",
        about: "clients: the MCP inspector, the SDK for TypeScript, codex",
        kind: Kind::Install,
        run: install::npm,
    },
    Step { name: "rg", about: "ripgrep, as a peer", kind: Kind::Install, run: install::ripgrep },
    Step { name: "fd", about: "fd, as a peer", kind: Kind::Install, run: install::fd },
    Step { name: "fmt", about: "format of the sources", kind: Kind::Check, run: steps::format },
    Step { name: "tidy", about: "house rules", kind: Kind::Check, run: steps::tidy },
    Step { name: "clippy", about: "lints", kind: Kind::Check, run: steps::clippy },
    Step { name: "build", about: "the binary and all tests", kind: Kind::Gate, run: steps::build },
    Step { name: "doc", about: "examples in the docs", kind: Kind::Check, run: steps::doc_tests },
    Step {
        name: "fuzz",
        about: "fuzz targets, each for a moment",
        kind: Kind::Check,
        run: steps::fuzz,
    },
    Step { name: "tests", about: "every test", kind: Kind::Check, run: steps::tests },
];

/// How one step ended.
struct Report {
    name: &'static str,
    took: Duration,
    failure: Option<String>,
}

/// The names of the steps, in order.
pub(crate) fn step_names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

/// Runs the command; `false` when a step failed.
///
/// # Errors
///
/// When the arguments are not understood or no cache folder can be named.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<bool> {
    let options = Options::parse(arguments)?;
    let session = Session {
        project: project.clone(),
        tools: Tools::of(project)?,
        extra: options.extra.clone(),
    };
    let steps: Vec<&Step> = STEPS.iter().filter(|step| options.wants(step)).collect();
    let mut reports = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        println!("\n== {} ({}/{}): {}", step.name, index + 1, steps.len(), step.about);
        let start = Instant::now();
        let failure = (step.run)(&session).err().map(|error| format!("{error:#}"));
        let failed = failure.is_some();
        if let Some(failure) = &failure {
            eprintln!("== {} failed: {failure}", step.name);
        }
        reports.push(Report { name: step.name, took: start.elapsed(), failure });
        if failed && step.kind != Kind::Check {
            break;
        }
    }
    let not_run = steps.iter().skip(reports.len()).map(|step| step.name).collect::<Vec<_>>();
    print!("\n{}", summary(&reports, &not_run));
    Ok(reports.iter().all(|report| report.failure.is_none()))
}

/// The closing table, with the failing steps named in its last line.
fn summary(reports: &[Report], not_run: &[&str]) -> String {
    let mut text = String::from("step     result      seconds\n");
    for report in reports {
        let result = if report.failure.is_some() { "FAILED" } else { "fine" };
        let _ =
            writeln!(text, "{:<8} {result:<10} {:>8.1}", report.name, report.took.as_secs_f64());
    }
    for name in not_run {
        let _ = writeln!(text, "{name:<8} {:<10} {:>8}", "not run", "-");
    }
    let total: Duration = reports.iter().map(|report| report.took).sum();
    let _ = writeln!(text, "{:<8} {:<10} {:>8.1}", "total", "", total.as_secs_f64());
    let failed: Vec<_> = reports.iter().filter(|report| report.failure.is_some()).collect();
    for report in &failed {
        let failure = report.failure.as_deref().unwrap_or_default();
        let _ = writeln!(text, "failed: {}: {failure}", report.name);
    }
    if failed.is_empty() {
        text += "every step is fine\n";
    } else {
        let _ = writeln!(text, "again: cargo xtask test --only {}", failed[0].name);
    }
    text
}

/// The arguments of the command.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    quick: bool,
    only: Option<String>,
    extra: Vec<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => options.quick = true,
                "--only" => options.only = Some(Self::step(words.next())?),
                "--" => options.extra.extend(words.by_ref().cloned()),
                other => {
                    let message = format!(
                        "test does not know {other:?}: it takes --quick, --only STEP, and after -- \
                         the arguments of the test runner"
                    );
                    return Err(Usage(message).into());
                }
            }
        }
        Ok(options)
    }

    fn step(word: Option<&String>) -> Result<String> {
        let names = step_names();
        match word {
            Some(word) if names.contains(&word.as_str()) => Ok(word.clone()),
            Some(word) => {
                let names = names.join(", ");
                Err(Usage(format!("there is no step {word:?}; the steps are {names}")).into())
            }
            None => Err(Usage(format!("--only needs a step: {}", names.join(", "))).into()),
        }
    }

    fn wants(&self, step: &Step) -> bool {
        match &self.only {
            Some(name) => step.name == name,
            None => !(self.quick && step.kind == Kind::Install),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_follows_two_dashes_goes_to_the_runner() {
        let options = Options::parse(&words("--quick -- --quick -E x")).unwrap();
        assert!(options.quick);
        assert_eq!(options.extra, ["--quick", "-E", "x"]);
    }

    #[test]
    fn an_unknown_word_or_step_is_a_usage_error() {
        for line in ["--fast", "--only", "--only lint", "tests"] {
            let error = Options::parse(&words(line)).unwrap_err();
            assert!(error.is::<Usage>(), "{line}: {error}");
        }
    }

    #[test]
    fn quick_leaves_out_the_installs_and_only_picks_one() {
        let quick = Options::parse(&words("--quick")).unwrap();
        let left: Vec<_> = STEPS.iter().filter(|step| quick.wants(step)).collect();
        assert!(!left.is_empty() && left.iter().all(|step| step.kind != Kind::Install));
        let only = Options::parse(&words("--only python")).unwrap();
        let left: Vec<_> = STEPS.iter().filter(|step| only.wants(step)).map(|s| s.name).collect();
        assert_eq!(left, ["python"]);
    }

    #[test]
    fn the_summary_names_what_failed_and_what_did_not_run() {
        let took = Duration::from_millis(1500);
        let reports = [
            Report { name: "fmt", took, failure: None },
            Report { name: "build", took, failure: Some("`cargo build` ended badly".to_owned()) },
        ];
        let text = summary(&reports, &["tests"]);
        assert!(text.contains("build    FAILED"), "{text}");
        assert!(text.contains("tests    not run"), "{text}");
        assert!(text.contains("failed: build: `cargo build` ended badly"), "{text}");
        assert!(text.contains("--only build"), "{text}");
        assert!(!text.contains("every step is fine"), "{text}");
    }

    #[test]
    fn the_runner_comes_last() {
        assert_eq!(step_names().last(), Some(&"tests"));
    }
}
