//! `cargo xtask fuzz`: builds the fuzz targets of `fuzz/` and runs them.
//!
//! The stable compiler builds them, with coverage for libFuzzer and without a sanitizer: what is
//! fuzzed has no unsafe code, and finds its own faults by assertions. The flags are those of
//! `cargo fuzz build --sanitizer none`, given here, so that nobody has to install anything; the
//! layout of `fuzz/` is that of cargo-fuzz, so that who has it can use it. The last line of each
//! target is ready for docs/measured.md. It does not know what a target checks.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::Usage;
use crate::measured;
use crate::process::{answer, cargo, command, run as run_command, shown};
use crate::project::Project;

/// Every target: a binary of `fuzz/`, and its folder of seeds.
const TARGETS: &[&str] = &[
    "decode", "find", "edit", "shell", "rules", "repair", "mcp", "sse", "clean", "secrets", "page",
];

/// What makes a binary tell libFuzzer where it has been.
const FLAGS: &[&str] = &[
    "--cfg fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];

/// How long a target runs when nothing is said, in seconds.
const USUAL: u64 = 60;
/// Inputs of a target in a test run.
const SHORT: u64 = 5_000;
/// Seconds after which one input counts as a hang.
const HANG: u64 = 20;
/// Bytes of an input at most.
const LONGEST: u64 = 2_048;
/// What libFuzzer ends with when somebody ends it.
const INTERRUPTED: i32 = 72;

/// When a target has run enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Enough {
    Seconds(u64),
    Inputs(u64),
}

impl Enough {
    fn flag(self) -> String {
        match self {
            Self::Seconds(seconds) => format!("-max_total_time={seconds}"),
            Self::Inputs(inputs) => format!("-runs={inputs}"),
        }
    }
}

/// How the run of a target ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// All inputs were tried.
    Fine,
    /// Some input showed a fault.
    Found,
    /// Somebody ended it, or the system did: it says nothing of the target.
    Interrupted,
    /// It did not come to try an input.
    NotRun,
}

impl End {
    /// From the exit code, where the run was ended by no signal, and what the fuzzer said.
    fn of(code: Option<i32>, said: &str) -> Self {
        let tried = said.lines().find_map(inputs).unwrap_or_default();
        match code {
            Some(0) if tried > 0 => Self::Fine,
            // Each finding is written to a file, whatever it is.
            _ if said.contains("Test unit written to") => Self::Found,
            None | Some(INTERRUPTED) => Self::Interrupted,
            // Without a panic hook of its own a fault is told by the words of the deadly signal.
            Some(_) if said.contains("ERROR: libFuzzer:") => Self::Found,
            Some(_) => Self::NotRun,
        }
    }
}

/// Runs the targets that are named, or all; `false` when one found something.
///
/// # Errors
///
/// When the arguments are not understood, the targets cannot be built or a run is ended early.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<bool> {
    let (targets, enough) = parse(arguments)?;
    targets_fine(project, &targets, enough)
}

/// Builds all targets and runs each shortly; `false` when one found something.
///
/// # Errors
///
/// When they cannot be built, or a run is ended early.
pub(crate) fn short(project: &Project) -> Result<bool> {
    targets_fine(project, TARGETS, Enough::Inputs(SHORT))
}

fn targets_fine(project: &Project, targets: &[&'static str], enough: Enough) -> Result<bool> {
    let profile = match enough {
        Enough::Seconds(_) => "release",
        Enough::Inputs(_) => "short",
    };
    let folder = build(project, profile)?;
    let mut all_fine = true;
    for target in targets {
        all_fine &= fine(project, &folder.join(target), target, enough)?;
    }
    Ok(all_fine)
}

/// Builds every target by a profile of fuzz/Cargo.toml and returns the folder that they are in.
fn build(project: &Project, profile: &str) -> Result<PathBuf> {
    let about = answer(command(project, "rustc").arg("-vV")).context("rustc does not answer")?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc -vV names no host")?;
    let target = project.target.join("fuzz");
    let words = ["build", "--manifest-path", "fuzz/Cargo.toml", "--profile", profile, "--bins"];
    // With a named target, build scripts and macros are built without the flags.
    let mut build = cargo(project, &words);
    build.args(["--target", host]).env("RUSTFLAGS", FLAGS.join(" "));
    run_command(build.env("CARGO_TARGET_DIR", &target))?;
    Ok(target.join(host).join(profile))
}

/// Runs one target.
fn fine(project: &Project, binary: &PathBuf, name: &str, enough: Enough) -> Result<bool> {
    let folder = project.target.join("fuzz");
    // A run of so many inputs is the same each time: it starts from the seeds alone.
    let grows = matches!(enough, Enough::Seconds(_));
    let corpus = folder.join(if grows { "corpus" } else { "moment" }).join(name);
    let found = folder.join("artifacts").join(name);
    if !grows && corpus.exists() {
        fs::remove_dir_all(&corpus)
            .with_context(|| format!("{} cannot be removed", corpus.display()))?;
    }
    for path in [&corpus, &found] {
        fs::create_dir_all(path).with_context(|| format!("{} cannot be made", path.display()))?;
    }
    let mut fuzzer = command(project, binary);
    fuzzer.arg(&corpus).arg(format!("fuzz/seeds/{name}")).args([
        enough.flag(),
        format!("-max_len={LONGEST}"),
        format!("-timeout={HANG}"),
        format!("-artifact_prefix={}/", found.display()),
        "-verbosity=0".to_owned(),
        "-print_final_stats=1".to_owned(),
    ]);
    let start = Instant::now();
    println!("  $ {}", shown(&fuzzer));
    let output = fuzzer.output().with_context(|| format!("{name} could not be started"))?;
    let seconds = start.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&output.stderr);
    let inputs = said.lines().find_map(inputs).unwrap_or_default();
    let end = End::of(output.status.code(), &said);
    if end == End::Fine {
        let figure = format!("{inputs} inputs in {seconds:.0} s, no finding");
        println!("{}", measured::row(&format!("fuzz {name}"), &figure));
        return Ok(true);
    }
    if end == End::Interrupted {
        bail!(
            "{name} was ended after {seconds:.0} s, before it was through; it found nothing so far"
        );
    }
    // All but what it learned about inputs, which only a fuzzer reads.
    said.lines().filter(|line| !line.contains(" # Uses: ")).for_each(|line| eprintln!("{line}"));
    if end == End::NotRun {
        bail!("{name} tried no input: the lines above say why ({})", output.status);
    }
    let mut again = command(project, binary);
    again.arg(found.join("FILE"));
    eprintln!("{name} found something: play it again with `{}`", shown(&again));
    eprintln!("the files are in {}; make a test of what it shows", found.display());
    Ok(false)
}

/// How many inputs the fuzzer says that it tried.
fn inputs(line: &str) -> Option<u64> {
    line.strip_prefix("stat::number_of_executed_units:")?.trim().parse().ok()
}

fn parse(arguments: &[String]) -> Result<(Vec<&'static str>, Enough)> {
    let (mut targets, mut enough) = (Vec::new(), Enough::Seconds(USUAL));
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut number = || {
            let text = words.next().map_or("", String::as_str);
            text.parse().ok().filter(|number| *number > 0).with_context(|| {
                Usage(format!("{word} needs a whole number from 1 on, not {text:?}"))
            })
        };
        match word.as_str() {
            "--seconds" => enough = Enough::Seconds(number()?),
            "--runs" => enough = Enough::Inputs(number()?),
            name => targets.push(*TARGETS.iter().find(|target| **target == name).with_context(
                || {
                    let names = TARGETS.join(", ");
                    Usage(format!(
                        "fuzz takes --seconds N, --runs N and the targets {names}, not {name:?}"
                    ))
                },
            )?),
        }
    }
    if targets.is_empty() {
        targets.extend(TARGETS);
    }
    Ok((targets, enough))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn every_target_has_a_binary_and_seeds() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        for target in TARGETS {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
            let seeds = fs::read_dir(folder.join("seeds").join(target)).unwrap();
            assert!(seeds.count() > 10, "{target}");
        }
        assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
    }

    #[test]
    fn targets_and_lengths_are_read() {
        let (targets, enough) = parse(&words("find --seconds 7")).unwrap();
        assert_eq!((targets, enough.flag()), (vec!["find"], "-max_total_time=7".to_owned()));
        let (targets, enough) = parse(&words("--runs 9")).unwrap();
        assert_eq!((targets.len(), enough.flag()), (TARGETS.len(), "-runs=9".to_owned()));
        for line in ["finds", "--seconds", "--runs 0", "--runs x"] {
            let error = parse(&words(line)).unwrap_err();
            assert!(error.is::<Usage>(), "{line}: {error}");
        }
    }

    #[test]
    fn a_run_that_somebody_ends_is_no_finding() {
        let stats = "stat::number_of_executed_units: 70\n";
        let cut = format!("==7== libFuzzer: run interrupted; exiting\n{stats}");
        let found = "==7== ERROR: libFuzzer: deadly signal\nTest unit written to a/crash-1\n";
        for (code, said, end) in [
            (Some(0), stats, End::Fine),
            (Some(72), &*cut, End::Interrupted),
            (None, stats, End::Interrupted),
            (Some(77), found, End::Found),
            (None, found, End::Found),
            (Some(1), "ERROR: The required directory does not exist\n", End::NotRun),
            (Some(0), "", End::NotRun),
        ] {
            assert_eq!(End::of(code, said), end, "{code:?} {said}");
        }
    }

    #[test]
    fn the_closing_line_of_the_fuzzer_is_read() {
        assert_eq!(inputs("stat::number_of_executed_units: 5001"), Some(5001));
        assert_eq!(inputs("stat::peak_rss_mb: 33"), None);
    }
}
