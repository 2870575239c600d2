//! What a run of `cargo xtask test` says at its start and at its end.
//!
//! What is missing is told together before the first step, and at the end again where it stays
//! missing; whatever was left out stands beside what ran, with the reason. It runs nothing.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;

use super::options::Options;
use super::system::{self, Source};
use super::{Kind, STEPS, Session, Step};

/// How one step ended.
pub(super) struct Report {
    pub(super) name: &'static str,
    pub(super) took: Duration,
    pub(super) failure: Option<String>,
}

/// Something that is missing on this machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lack {
    what: String,
    /// What comes of it, or what to run.
    then: String,
    /// Whether it is still missing when the run is over.
    stays: bool,
}

/// What the steps want and do not find.
///
/// # Errors
///
/// When the places of the tools cannot be named.
pub(super) fn lacks(session: &Session, steps: &[&Step]) -> Result<Vec<Lack>> {
    let names: Vec<_> = steps.iter().map(|step| step.name).collect();
    let needs = system::missing(session, &names).into_iter().map(|need| {
        let what = format!("{} (for {})", need.name, need.purpose);
        match need.source {
            Source::Optional { command, without } => {
                Lack { what, then: format!("`{command}`; {without}"), stays: true }
            }
            Source::Packages(_) | Source::Component(_) => installed_by("system", &names, what),
        }
    });
    let mut lacks: Vec<Lack> = needs.collect();
    let tools = session.tools()?;
    // Whoever runs neither the tests nor the step that would install them wants none of these.
    let is_wanted = |step: &str| names.contains(&"tests") || names.contains(&step);
    for (step, place) in tools.missing().into_iter().filter(|(step, _)| is_wanted(step)) {
        lacks.push(installed_by(step, &names, place.display().to_string()));
    }
    Ok(lacks)
}

fn installed_by(step: &str, steps: &[&str], what: String) -> Lack {
    if steps.contains(&step) {
        return Lack { what, then: format!("the step {step} installs it"), stays: false };
    }
    let then = format!("what needs it fails; `cargo xtask test --only {step}` installs it");
    Lack { what, then, stays: true }
}

/// All that is missing, for the start of the run.
pub(super) fn start(lacks: &[Lack]) -> String {
    let mut text = String::new();
    if !lacks.is_empty() {
        text += "\nmissing on this machine:\n";
    }
    for lack in lacks {
        let _ = writeln!(text, "  {}: {}", lack.what, lack.then);
    }
    text
}

/// The closing table: how each step ended, what failed, and what was left out and why.
pub(super) fn summary(
    options: &Options,
    steps: &[&Step],
    lacks: &[Lack],
    reports: &[Report],
) -> String {
    let mut text = String::from("step     result      seconds\n");
    for report in reports {
        let result = if report.failure.is_some() { "FAILED" } else { "fine" };
        let _ =
            writeln!(text, "{:<8} {result:<10} {:>8.1}", report.name, report.took.as_secs_f64());
    }
    let not_run: Vec<_> = steps.iter().skip(reports.len()).map(|step| step.name).collect();
    for name in &not_run {
        let _ = writeln!(text, "{name:<8} {:<10} {:>8}", "not run", "-");
    }
    let total: Duration = reports.iter().map(|report| report.took).sum();
    let _ = writeln!(text, "{:<8} {:<10} {:>8.1}", "total", "", total.as_secs_f64());
    let failed: Vec<_> = reports.iter().filter(|report| report.failure.is_some()).collect();
    for report in &failed {
        let failure = report.failure.as_deref().unwrap_or_default();
        let _ = writeln!(text, "failed: {}: {failure}", report.name);
    }
    if let (Some(last), false) = (reports.last(), not_run.is_empty()) {
        let names = not_run.join(", ");
        let _ = writeln!(text, "not run: {names}: {} failed before them", last.name);
    }
    for lack in lacks.iter().filter(|lack| lack.stays) {
        let _ = writeln!(text, "missing: {}: {}", lack.what, lack.then);
    }
    if let Some(line) = left_out(options, steps) {
        let _ = writeln!(text, "left out: {line}");
    }
    match failed.first() {
        Some(report) => {
            let _ = writeln!(text, "again: cargo xtask test --only {}", report.name);
        }
        None if options.changed.is_some() => {
            text += "every step is fine; this was not the full run, which is `cargo xtask test`\n";
        }
        None => text += "every step is fine\n",
    }
    text
}

/// The steps that were not asked for, and by which word.
fn left_out(options: &Options, steps: &[&Step]) -> Option<String> {
    if let Some(only) = &options.only {
        return Some(format!("every step but {only}: --only {only}"));
    }
    let is_left = |step: &&Step| steps.iter().all(|other| other.name != step.name);
    let names: Vec<_> = STEPS.iter().filter(is_left).map(|step| step.name).collect();
    let why = match &options.changed {
        _ if names.is_empty() => return None,
        Some(_) => "--changed runs what the changed files touch, and installs nothing",
        None => "--quick installs nothing",
    };
    Some(format!("{}: {why}", names.join(", ")))
}

/// What installs say where something outside of the project is at fault, and what to do then.
const CAUSES: &[(&[&str], &str)] = &[
    (
        &["No space left on device", "ENOSPC", "Disk quota exceeded"],
        "The disk is full: free some room",
    ),
    (
        &[
            "ENOTFOUND",
            "EAI_AGAIN",
            "ECONNREFUSED",
            "ETIMEDOUT",
            "Could not resolve",
            "Temporary failure",
            "Network is unreachable",
            "Connection refused",
            "Failed to establish a new connection",
            "No matching distribution found",
            "failed to download",
            "Timeout was reached",
        ],
        "The registry cannot be reached: connect to a network, or name a mirror in the settings of \
         the tool that failed",
    ),
    (
        &["Permission denied", "EACCES", "Read-only file system"],
        "A folder cannot be written: see whose it is",
    ),
];

/// The failure of a step, with how to go on where it is an install.
pub(super) fn explained(step: &Step, failure: String) -> String {
    if step.kind != Kind::Install {
        return failure;
    }
    let is_named = |(words, _): &&(&[&str], &str)| words.iter().any(|word| failure.contains(word));
    let cause = CAUSES.iter().find(is_named).map_or("Mend what it says", |(_, cause)| cause);
    let name = step.name;
    format!(
        "{failure}\n{cause}, then run `cargo xtask test --only {name}`, or go on without: `cargo \
         xtask test --quick`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(names: &[&str]) -> Vec<&'static Step> {
        STEPS.iter().filter(|step| names.contains(&step.name)).collect()
    }

    fn options(line: &str) -> Options {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words).unwrap()
    }

    fn report(name: &'static str, failure: Option<&str>) -> Report {
        let took = Duration::from_millis(1500);
        Report { name, took, failure: failure.map(str::to_owned) }
    }

    #[test]
    fn the_summary_names_what_failed_and_what_did_not_run() {
        let reports = [report("fmt", None), report("build", Some("`cargo build` ended badly"))];
        let steps = steps(&["fmt", "build", "tests"]);
        let text = summary(&options("--quick"), &steps, &[], &reports);
        assert!(text.contains("build    FAILED"), "{text}");
        assert!(text.contains("tests    not run"), "{text}");
        assert!(text.contains("failed: build: `cargo build` ended badly"), "{text}");
        assert!(text.contains("not run: tests: build failed before them"), "{text}");
        assert!(text.contains("--only build"), "{text}");
        assert!(!text.contains("every step is fine"), "{text}");
    }

    #[test]
    fn the_summary_says_what_was_left_out_and_why() {
        let fine = [report("tests", None)];
        let said = |line: &str| {
            let options = options(line);
            let steps: Vec<_> = STEPS.iter().filter(|step| options.wants(step)).collect();
            summary(&options, &steps, &[], &fine)
        };
        assert!(!said("").contains("left out"), "{}", said(""));
        assert!(said("--quick").contains("left out: system, python, npm, rg, fd: --quick"));
        assert!(said("--only tests").contains("left out: every step but tests: --only tests"));
        let text = summary(&options("--changed"), &steps(&["fmt", "tidy"]), &[], &fine);
        assert!(text.contains("left out: system, "), "{text}");
        assert!(text.ends_with("not the full run, which is `cargo xtask test`\n"), "{text}");
    }

    #[test]
    fn what_stays_missing_is_said_at_the_start_and_at_the_end() {
        let lacks = [
            installed_by("python", &["python", "tests"], "/cache/python-1".to_owned()),
            installed_by("system", &["tests"], "tmux (for terminals)".to_owned()),
        ];
        let start = start(&lacks);
        assert!(start.contains("/cache/python-1: the step python installs it"), "{start}");
        assert!(
            start.contains("tmux (for terminals): what needs it fails; `cargo xtask"),
            "{start}"
        );
        let text = summary(&options(""), &steps(&["tests"]), &lacks, &[report("tests", None)]);
        assert!(text.contains("missing: tmux"), "{text}");
        assert!(!text.contains("missing: /cache"), "{text}");
        assert_eq!(super::start(&[]), "");
    }

    #[test]
    fn a_failed_install_says_how_to_go_on() {
        let [npm, fmt] = ["npm", "fmt"].map(|name| steps(&[name])[0]);
        let text = explained(npm, "npm ci said:\nnpm error code ENOSPC".to_owned());
        assert!(text.contains("ENOSPC\nThe disk is full: free some room, then run"), "{text}");
        assert!(text.contains("--only npm`") && text.contains("--quick`"), "{text}");
        let text = explained(npm, "npm error getaddrinfo EAI_AGAIN registry".to_owned());
        assert!(text.contains("The registry cannot be reached"), "{text}");
        assert!(explained(npm, "odd".to_owned()).contains("odd\nMend what it says, then run"));
        assert_eq!(explained(fmt, "odd".to_owned()), "odd");
    }
}
