//! `cargo xtask bench`: figures, each beside its peer of the same run.
//!
//! `cargo xtask bench edit` is another kind of measure: see `edit`.
//!
//! A figure is one file and one line in the list. It returns rows; each row has five runs of ours
//! and, where there is a peer, five of its, taken in turns so that a busy machine is busy for
//! both. A figure that takes too long for five runs, and has no peer, writes a report instead, and
//! is measured only when it is named. Nothing is compared with a number from another day. It does
//! not know what is measured.

mod answer;
mod build;
mod command;
#[cfg(unix)]
mod context;
mod edit;
mod files;
#[cfg(unix)]
mod long_session;
mod memory;
mod output;
mod overhead;
mod process_start;
#[cfg(unix)]
mod processor_time;
#[cfg(unix)]
mod pty;
mod reading;
mod sandbox;
mod scratch;
mod search;
mod served;
mod server;
mod table;
#[cfg(unix)]
mod terminal;
mod turns;
#[cfg(unix)]
mod web;
mod wires;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use self::scratch::Scratch;
use self::table::Row;
use crate::Usage;
use crate::measured;
use crate::process::{cargo, command, run as run_command};
use crate::project::Project;

/// One thing that is measured.
struct Figure {
    name: &'static str,
    about: &'static str,
    measure: Measure,
}

/// How a figure is had.
#[derive(Clone, Copy)]
enum Measure {
    /// Rows of the table, from `haft` as it was built.
    Rows(fn(&Bench) -> Result<Vec<Row>>),
    /// A text of its own, from what is built anew for it; only when it is named.
    Report(fn(&Project, &BenchOptions) -> Result<String>),
}

/// Every figure, in the order of the table.
const FIGURES: &[Figure] = &[
    Figure {
        name: "process-start",
        about: "haft --version beside rg --version",
        measure: Measure::Rows(process_start::measure),
    },
    Figure {
        name: "first-request",
        about: "from the start of haft -p to its first request, on each wire",
        measure: Measure::Rows(answer::first_request),
    },
    Figure {
        name: "overhead",
        about: "a call that only observes, through the pipeline and bare",
        measure: Measure::Rows(overhead::measure),
    },
    Figure {
        name: "reading",
        about: "scripts of 10 KB read with what they do, beside the parser of the grammar alone",
        measure: Measure::Rows(reading::measure),
    },
    Figure {
        name: "answer-to-request",
        about: "between a model's answer and the next request: read, edit, bash, on each wire",
        measure: Measure::Rows(answer::measure),
    },
    Figure {
        name: "search",
        about: "grep beside rg and find beside fd, over a made tree",
        measure: Measure::Rows(search::measure),
    },
    Figure {
        name: "files",
        about: "reads of a 1 GB file beside head and tail, an edit of 10 MB beside sed",
        measure: Measure::Rows(files::measure),
    },
    Figure {
        name: "command",
        about: "a command that does nothing, beside the shell alone",
        measure: Measure::Rows(command::measure),
    },
    Figure {
        name: "sandbox",
        about: "a program that is held to limits, beside one that is free",
        measure: Measure::Rows(sandbox::measure),
    },
    Figure {
        name: "output",
        about: "a command that prints without end, beside a bare pipe",
        measure: Measure::Rows(output::measure),
    },
    Figure {
        name: "memory",
        about: "the most memory that haft mcp, bash and grep held",
        measure: Measure::Rows(memory::measure),
    },
    #[cfg(unix)]
    Figure {
        name: "terminal",
        about: "the terminal interface: frames, memory, a paste, its start, nothing to do",
        measure: Measure::Rows(terminal::measure),
    },
    #[cfg(unix)]
    Figure {
        name: "context",
        about: "long sessions: a resume of 365 MB and of 1 GB, a turn at 2,000 turns, a compaction",
        measure: Measure::Rows(context::measure),
    },
    #[cfg(unix)]
    Figure {
        name: "web",
        about: "a page of 1 MB to Markdown, beside trafilatura",
        measure: Measure::Rows(web::measure),
    },
    Figure {
        name: "build",
        about: "what a build from nothing costs, and which crates cost most of it",
        measure: Measure::Report(build::measure),
    },
];

/// The profile of published builds, which is measured unless another one is named.
const PUBLISHED: &str = "dist";
/// How many runs a figure has.
const RUNS: usize = 5;

/// What every figure is given.
struct Bench {
    project: Project,
    /// The profile that is asked for; a given binary may have been built with any.
    profile: Option<String>,
    /// The binary of `haft`.
    haft: PathBuf,
}

/// The names of the figures.
pub(crate) fn names() -> Vec<&'static str> {
    FIGURES.iter().map(|figure| figure.name).collect()
}

/// The names of those that are measured only when they are named.
pub(crate) fn names_on_request() -> Vec<&'static str> {
    FIGURES.iter().filter(|figure| !figure.is_usual()).map(|figure| figure.name).collect()
}

/// Measures the figures that are named, or all.
///
/// # Errors
///
/// When the arguments are not understood, `haft` cannot be built, or a figure cannot be measured.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<bool> {
    if let Some(("edit", rest)) = arguments.split_first().map(|(word, rest)| (&**word, rest)) {
        return edit::run(project, rest);
    }
    let options = parse(arguments)?;
    let bench = if options.wanted.iter().any(|figure| figure.is_usual()) {
        let haft = match &options.binary {
            Some(binary) => binary.clone(),
            None => build_haft(project, options.profile.as_deref().unwrap_or(PUBLISHED))?,
        };
        Some(Bench { project: project.clone(), haft, profile: options.profile.clone() })
    } else {
        None
    };
    let (mut rows, mut reports, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for figure in &options.wanted {
        println!("measuring {}: {}", figure.name, figure.about);
        let measured = match (figure.measure, &bench) {
            (Measure::Rows(measure), Some(bench)) => measure(bench).map(|rows_of| {
                let has_some = !rows_of.is_empty();
                rows.extend(rows_of);
                has_some
            }),
            (Measure::Rows(_), None) => Ok(false),
            (Measure::Report(measure), _) => measure(project, &options).map(|report| {
                reports.push(report);
                true
            }),
        };
        // One figure that cannot be had does not take the others along.
        match measured {
            Ok(true) => {}
            Ok(false) => failed.push((figure.name, "no row".to_owned())),
            Err(error) => failed.push((figure.name, format!("{error:#}"))),
        }
    }
    if let Some(bench) = &bench {
        println!("\n{}, {}, profile {}", measured::today(), machine(), bench.profile());
        println!("value and peer: median of {RUNS} runs; spread: smallest..largest run\n");
        print!("{}", table::markdown(&rows));
    }
    for report in &reports {
        print!("\n{report}");
    }
    for (name, error) in &failed {
        eprintln!("not measured: {name}: {error}");
    }
    Ok(failed.is_empty())
}

impl Figure {
    /// Whether it is measured when no figure is named.
    fn is_usual(&self) -> bool {
        matches!(self.measure, Measure::Rows(_))
    }
}

/// The machine, its kernel, and how busy it is besides.
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    format!("{}, kernel {}, load {load}", measured::machine(), kernel.trim())
}

/// What the command line asks for.
struct BenchOptions {
    /// What to build with, or what the given binary is said to be built with.
    profile: Option<String>,
    /// A binary that is measured as it is, instead of one that is built.
    binary: Option<PathBuf>,
    /// The package whose build is measured; `haft` where none is named.
    package: Option<String>,
    wanted: Vec<&'static Figure>,
}

fn parse(arguments: &[String]) -> Result<BenchOptions> {
    let (mut profile, mut binary, mut package) = (None, None, None);
    let mut wanted = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--profile" => {
                let message = || Usage("--profile needs a name: dist, release or dev".to_owned());
                profile = Some(words.next().with_context(message)?.clone());
            }
            "--binary" => {
                let message = || Usage("--binary needs the path of a built haft".to_owned());
                let path = words.next().with_context(message)?;
                let found = Path::new(path).canonicalize().with_context(|| {
                    Usage(format!("there is no binary {path:?}: build it, or leave --binary out"))
                })?;
                binary = Some(found);
            }
            "--package" => {
                let message = || Usage("--package needs a package with a binary".to_owned());
                package = Some(words.next().with_context(message)?.clone());
            }
            "--only" => {
                let names = words.next().map_or("", String::as_str).split(',');
                for name in names {
                    let figure = find(name.trim())?;
                    if wanted.iter().all(|other: &&Figure| other.name != figure.name) {
                        wanted.push(figure);
                    }
                }
            }
            other => {
                let text =
                    format!("bench takes --profile, --binary, --package and --only, not {other:?}");
                return Err(Usage(text).into());
            }
        }
    }
    if wanted.is_empty() {
        wanted.extend(FIGURES.iter().filter(|figure| figure.is_usual()));
    }
    if package.is_some() && wanted.iter().all(|figure| figure.name != "build") {
        let text = "--package is of the figure build: give --only build with it";
        return Err(Usage(text.to_owned()).into());
    }
    if binary.is_none() && profile.is_none() {
        profile = Some(PUBLISHED.to_owned());
    }
    Ok(BenchOptions { profile, binary, package, wanted })
}

fn find(name: &str) -> Result<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name).with_context(|| {
        let names = names().join(", ");
        Usage(format!("there is no figure {name:?}; the figures are {names}"))
    })
}

impl Bench {
    /// What the table says of the profile.
    fn profile(&self) -> &str {
        self.profile.as_deref().unwrap_or("of a given binary")
    }

    /// The profile of what is built beside `haft`.
    fn beside(&self) -> &str {
        self.profile.as_deref().unwrap_or(PUBLISHED)
    }

    /// A call of a tool from the command line in a folder, with its state in the scratch folder.
    fn tool(&self, scratch: &Scratch, folder: &Path, tool: &str, input: &Value) -> Result<Command> {
        let mut command = self.haft(scratch, folder)?;
        command.args(["tool", tool, "--mode", "bypass", "--input", &input.to_string()]);
        Ok(command)
    }

    /// `haft` in a folder, with its state in the scratch folder.
    fn haft(&self, scratch: &Scratch, folder: &Path) -> Result<Command> {
        let mut command = command(&self.project, &self.haft);
        command
            .current_dir(folder)
            .env("HOME", scratch.make("home")?)
            .env("SHELL", "/bin/bash")
            .env("HAFT_HOME", scratch.make("state")?);
        Ok(command)
    }
}

/// Builds `haft` and returns where it is.
fn build_haft(project: &Project, profile: &str) -> Result<PathBuf> {
    let words = ["build", "--profile", profile, "--package", "haft", "--bin", "haft"];
    run_command(&mut cargo(project, &words))?;
    let folder = if profile == "dev" { "debug" } else { profile };
    let path = project.target.join(folder).join(format!("haft{}", std::env::consts::EXE_SUFFIX));
    if path.is_file() {
        return Ok(path);
    }
    bail!("cargo built haft, but it is not at {}: is another target folder set?", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn without_names_all_figures_are_measured_from_the_published_build() {
        let BenchOptions { profile, binary, wanted, .. } = parse(&[]).unwrap();
        let usual = FIGURES.len() - names_on_request().len();
        assert_eq!((profile.as_deref(), wanted.len()), (Some("dist"), usual));
        assert_eq!(binary, None);
        let BenchOptions { profile, wanted, .. } =
            parse(&words("--profile dev --only process-start")).unwrap();
        assert_eq!((profile.as_deref(), wanted[0].name), (Some("dev"), "process-start"));
        assert_eq!(parse(&words("--binary /proc/self/exe")).unwrap().profile, None);
    }

    #[test]
    fn several_figures_are_named_in_one_word_or_in_many() {
        let names = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            parse(&words).unwrap().wanted.iter().map(|figure| figure.name).collect::<Vec<_>>()
        };
        let all = ["overhead", "files", "command"];
        for line in [
            "--only overhead,files,command",
            "--only overhead --only files,command",
            "--only overhead,files,overhead --only command",
        ] {
            assert_eq!(names(line), all, "{line}");
        }
        assert_eq!(
            parse(&["--only".to_owned(), "files, command".to_owned()]).unwrap().wanted.len(),
            2
        );
    }

    #[test]
    fn the_build_is_measured_only_when_it_is_named() {
        assert_eq!(names_on_request(), ["build"]);
        assert!(parse(&[]).unwrap().wanted.iter().all(|figure| figure.name != "build"));
        let options = parse(&words("--only build --package xtask")).unwrap();
        assert_eq!((options.wanted.len(), options.package.as_deref()), (1, Some("xtask")));
    }

    #[test]
    fn unknown_figures_are_usage_errors() {
        for line in [
            "process-start",
            "--profile",
            "--only",
            "--only start",
            "--only files,start",
            "--only files,",
            "--binary /no/such/haft",
            "--package xtask",
            "--only build --package",
        ] {
            let Err(error) = parse(&words(line)) else { panic!("{line} was taken") };
            assert!(error.is::<Usage>(), "{line}: {error}");
        }
    }
}
