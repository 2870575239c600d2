//! `cargo xtask bench`: figures, each beside its peer of the same run.
//!
//! A figure is one file and one line in the list. It returns rows; each row has five runs of ours
//! and, where there is a peer, five of its, taken in turns so that a busy machine is busy for
//! both. Nothing is compared with a number from another day. It does not know what is measured.

mod process_start;
mod table;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use self::table::Row;
use crate::Usage;
use crate::measured;
use crate::process::{cargo, run as run_command};
use crate::project::Project;

/// One thing that is measured.
struct Figure {
    name: &'static str,
    about: &'static str,
    measure: fn(&Bench) -> Result<Vec<Row>>,
}

/// Every figure, in the order of the table.
const FIGURES: &[Figure] = &[Figure {
    name: "process-start",
    about: "haft --version beside rg --version",
    measure: process_start::measure,
}];

/// How many runs a figure has.
const RUNS: usize = 5;

/// What every figure is given.
struct Bench {
    project: Project,
    /// The profile that `haft` was built with.
    profile: String,
    /// The binary of `haft`.
    haft: PathBuf,
}

/// The names of the figures.
pub(crate) fn names() -> Vec<&'static str> {
    FIGURES.iter().map(|figure| figure.name).collect()
}

/// Measures the figures that are named, or all.
///
/// # Errors
///
/// When the arguments are not understood, `haft` cannot be built, or a figure cannot be measured.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<bool> {
    let (profile, wanted) = parse(arguments)?;
    let bench = Bench { project: project.clone(), haft: build(project, &profile)?, profile };
    let mut rows = Vec::new();
    for figure in wanted {
        println!("measuring {}: {}", figure.name, figure.about);
        let measured = (figure.measure)(&bench).with_context(|| figure.name.to_owned())?;
        if measured.is_empty() {
            bail!("{} returned no row", figure.name);
        }
        rows.extend(measured);
    }
    println!("\n{}, {}, profile {}\n", measured::today(), measured::machine(), bench.profile);
    print!("{}", table::markdown(&rows));
    Ok(true)
}

fn parse(arguments: &[String]) -> Result<(String, Vec<&'static Figure>)> {
    let mut profile = "dist".to_owned();
    let mut wanted = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--profile" {
            let message = || Usage("--profile needs a name: dist, release or dev".to_owned());
            profile.clone_from(words.next().with_context(message)?);
        } else {
            wanted.push(FIGURES.iter().find(|figure| figure.name == word).with_context(|| {
                let names = names().join(", ");
                Usage(format!("there is no figure {word:?}; the figures are {names}"))
            })?);
        }
    }
    if wanted.is_empty() {
        wanted.extend(FIGURES);
    }
    Ok((profile, wanted))
}

/// Builds `haft` and returns where it is.
fn build(project: &Project, profile: &str) -> Result<PathBuf> {
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
        let (profile, wanted) = parse(&[]).unwrap();
        assert_eq!((profile.as_str(), wanted.len()), ("dist", FIGURES.len()));
        let (profile, wanted) = parse(&words("--profile dev process-start")).unwrap();
        assert_eq!((profile.as_str(), wanted[0].name), ("dev", "process-start"));
    }

    #[test]
    fn unknown_figures_are_usage_errors() {
        for line in ["start", "--profile"] {
            let Err(error) = parse(&words(line)) else { panic!("{line} was taken") };
            assert!(error.is::<Usage>(), "{line}: {error}");
        }
    }
}
