//! `cargo xtask test`: installs what the tests use, then runs every check and every test.
//!
//! The steps are one list, run in order. Each is timed and named in the closing table. A failed
//! install ends the run at once, since what follows would fail for a reason that misleads; a failed
//! check does not hide the checks after it. With `--changed` it is the inner loop: what the changed
//! files touch, and no more. It does not know how anything is installed.

mod cache;
mod changed;
mod install;
mod options;
mod report;
mod scope;
mod slow;
mod steps;
mod system;
mod tools;

use std::time::Instant;

use anyhow::{Result, bail};

pub(crate) use self::cache::{Install, Site, hash};
use self::options::Options;
use self::report::Report;
pub(crate) use self::scope::Scope;
pub(crate) use self::tools::{FD, Peer, RIPGREP, Tools, interpreter};
use crate::project::Project;

/// One named part of the run.
struct Step {
    name: &'static str,
    about: &'static str,
    kind: Kind,
    /// When it is part of `--changed`.
    changed: Trigger,
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

/// What has to have changed so that a step is part of the inner loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigger {
    /// Nothing makes it run.
    Never,
    /// Any file.
    File,
    /// A file that the tests of a crate depend on.
    Crate,
    /// A file that everything depends on.
    Everything,
}

/// What every step is given.
struct Session {
    project: Project,
    /// The crates that are judged.
    scope: Scope,
    /// Whether the slowest tests are listed.
    slow: bool,
    /// Arguments after `--`, for the test runner.
    extra: Vec<String>,
}

impl Session {
    /// Where the tools are by now: an interpreter that a step installed changes the places of what
    /// is installed for it.
    fn tools(&self) -> Result<Tools> {
        Tools::of(&self.project)
    }
}

/// Every step in the order in which they run. The test runner comes last, so that its closing line
/// is the last one that a reader of the log finds.
const STEPS: &[Step] = &[
    Step {
        name: "system",
        about: "programs from the system's packages",
        kind: Kind::Install,
        changed: Trigger::Never,
        run: system::install,
    },
    Step {
        name: "python",
        about: "a virtual environment with the MCP SDK and the gateway",
        kind: Kind::Install,
        changed: Trigger::Never,
        run: install::python,
    },
    Step {
        name: "npm",
        about: "clients: the MCP inspector, the SDK for TypeScript, codex",
        kind: Kind::Install,
        changed: Trigger::Never,
        run: install::npm,
    },
    Step {
        name: "rg",
        about: "ripgrep, as a peer",
        kind: Kind::Install,
        changed: Trigger::Never,
        run: install::ripgrep,
    },
    Step {
        name: "fd",
        about: "fd, as a peer",
        kind: Kind::Install,
        changed: Trigger::Never,
        run: install::fd,
    },
    Step {
        name: "fmt",
        about: "format of the sources",
        kind: Kind::Check,
        changed: Trigger::File,
        run: steps::format,
    },
    Step {
        name: "tidy",
        about: "house rules",
        kind: Kind::Check,
        changed: Trigger::File,
        run: steps::tidy,
    },
    Step {
        name: "clippy",
        about: "lints",
        kind: Kind::Check,
        changed: Trigger::Crate,
        run: steps::clippy,
    },
    Step {
        name: "build",
        about: "the binary and all tests",
        kind: Kind::Gate,
        changed: Trigger::Everything,
        run: steps::build,
    },
    Step {
        name: "doc",
        about: "examples in the docs",
        kind: Kind::Check,
        changed: Trigger::Crate,
        run: steps::doc_tests,
    },
    Step {
        name: "fuzz",
        about: "fuzz targets, each for a moment",
        kind: Kind::Check,
        changed: Trigger::Everything,
        run: steps::fuzz,
    },
    Step {
        name: "tests",
        about: "every test",
        kind: Kind::Check,
        changed: Trigger::Crate,
        run: steps::tests,
    },
];

/// The names of the steps, in order.
pub(crate) fn step_names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

/// Runs the command; `false` when a step failed.
///
/// # Errors
///
/// When the arguments are not understood, git or cargo cannot say what changed, or no cache folder
/// can be named.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<bool> {
    let options = Options::parse(arguments)?;
    let plan = options.changed.as_ref().map(|base| changed::plan(project, base)).transpose()?;
    if let Some(plan) = &plan {
        print!("{plan}");
    }
    let triggers = |step: &Step| plan.as_ref().is_none_or(|plan| plan.triggers(step.changed));
    let wants = |step: &&Step| options.wants(step) && triggers(step);
    let steps: Vec<&Step> = STEPS.iter().filter(wants).collect();
    if steps.is_empty() {
        println!("nothing to run");
        return Ok(true);
    }
    let session = Session {
        project: project.clone(),
        scope: plan.map_or(Scope::Workspace, |plan| plan.scope),
        slow: options.slow,
        extra: options.extra.clone(),
    };
    if options.slow && !system::has_nextest(&session) {
        bail!("--slow needs cargo-nextest: run `cargo install --locked cargo-nextest`");
    }
    let lacks = report::lacks(&session, &steps)?;
    print!("{}", report::start(&lacks));
    let reports = run_steps(&session, &steps);
    print!("\n{}", report::summary(&options, &steps, &lacks, &reports));
    Ok(reports.iter().all(|report| report.failure.is_none()))
}

/// Runs the steps in order, up to the first one without which the others make no sense.
fn run_steps(session: &Session, steps: &[&Step]) -> Vec<Report> {
    let mut reports = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        println!("\n== {} ({}/{}): {}", step.name, index + 1, steps.len(), step.about);
        let start = Instant::now();
        let failure = (step.run)(session).err();
        let failure = failure.map(|error| report::explained(step, format!("{error:#}")));
        let failed = failure.is_some();
        if let Some(failure) = &failure {
            eprintln!("== {} failed: {failure}", step.name);
        }
        reports.push(Report { name: step.name, took: start.elapsed(), failure });
        if failed && step.kind != Kind::Check {
            break;
        }
    }
    reports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runner_comes_last() {
        assert_eq!(step_names().last(), Some(&"tests"));
    }

    #[test]
    fn the_inner_loop_installs_nothing() {
        for step in STEPS {
            assert_eq!(step.kind == Kind::Install, step.changed == Trigger::Never, "{}", step.name);
        }
    }
}
