//! What it costs to build a binary from nothing, with all that it depends on: CPU, time, crates,
//! bytes, and where the CPU goes.
//!
//! It runs once, for minutes, with two jobs into an empty folder; everything is fetched before.
//! CPU seconds are what to compare, since a busy machine hardly moves them. What a crate takes is
//! what its compilers and its linker take; its build script runs apart from them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result};
use cargo_metadata::MetadataCommand;

use super::{BenchOptions, machine};
use crate::process::{cargo, run};
use crate::project::Project;
use crate::{Usage, measured, rustc_times};

/// What is built unless another package is named.
const PACKAGE: &str = "haft";
/// How many compilers run beside each other.
const JOBS: &str = "2";
/// How many crates are listed.
const LISTED: usize = 25;

/// What one build took.
struct Build {
    /// Seconds of all processes of it.
    cpu: f64,
    /// Seconds by the clock.
    wall: f64,
    /// Of the binary.
    bytes: u64,
    /// CPU seconds by crate and version.
    crates: BTreeMap<String, f64>,
}

/// Builds with default features and, where there are some, without.
pub(super) fn measure(project: &Project, options: &BenchOptions) -> Result<String> {
    let package = options.package.as_deref().unwrap_or(PACKAGE);
    let has_features = has_default_features(project, package)?;
    run(&mut cargo(project, &["fetch", "--locked"]))?;
    let usual = build(project, package, &[])?;
    let bare = has_features.then(|| build(project, package, &["--no-default-features"]));
    Ok(report(package, &usual, bare.transpose()?.as_ref()))
}

/// Whether leaving out the default features leaves out anything.
fn has_default_features(project: &Project, package: &str) -> Result<bool> {
    let metadata = MetadataCommand::new()
        .manifest_path(project.root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("cargo metadata failed: does `cargo check` work?")?;
    let named = metadata.packages.iter().find(|it| it.name.as_str() == package);
    let named = named.filter(|it| it.targets.iter().any(|it| it.is_bin() && it.name == package));
    let named = named.with_context(|| {
        Usage(format!("there is no package {package:?} with a binary of that name"))
    })?;
    Ok(named.features.get("default").is_some_and(|features| !features.is_empty()))
}

/// A folder that is empty at first, and gone when this is dropped.
struct Emptied(PathBuf);

impl Emptied {
    fn new(folder: PathBuf) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("{} cannot be removed", folder.display()))?;
        }
        fs::create_dir_all(&folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Emptied {
    fn drop(&mut self) {
        // What stays lies in the build folder, where `cargo clean` finds it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn build(project: &Project, package: &str, features: &[&str]) -> Result<Build> {
    let folder = Emptied::new(project.target.join("bench-build"))?;
    let log = folder.0.join("rustc-times");
    let mut command = cargo(project, &["build", "--locked", "--release", "--jobs", JOBS]);
    command.args(["--package", package, "--bin", package]).args(features);
    command.env("CARGO_TARGET_DIR", &folder.0);
    rustc_times::record(&mut command, &log)?;
    let (before, start) = (rustc_times::of_children()?, Instant::now());
    run(&mut command)?;
    let (wall, cpu) = (start.elapsed().as_secs_f64(), rustc_times::of_children()? - before);
    let name = format!("{package}{}", std::env::consts::EXE_SUFFIX);
    let binary = folder.0.join("release").join(name);
    let data = binary.metadata();
    let bytes = data.with_context(|| format!("{} cannot be read", binary.display()))?.len();
    Ok(Build { cpu, wall, bytes, crates: rustc_times::read(&log)? })
}

/// Rows for docs/measured.md, and the crates that cost most.
fn report(package: &str, usual: &Build, bare: Option<&Build>) -> String {
    let row = |features: &str, build: &Build| {
        let what = format!("build of `{package}` from nothing, `release`, {JOBS} jobs{features}");
        let Build { cpu, wall, bytes, crates } = build;
        let figure = format!(
            "{cpu:.0} s of CPU, {wall:.0} s by the clock, {} crates, binary of {bytes} bytes",
            crates.len()
        );
        measured::row(&what, &figure)
    };
    let mut text = format!("{}, {}\n\n{}\n", measured::today(), machine(), row("", usual));
    match bare {
        Some(bare) => {
            let _ = writeln!(text, "{}", row(", without default features", bare));
        }
        None => {
            let _ = writeln!(text, "\n`{package}` has no default features that could be left out.");
        }
    }
    text + "\n" + &table(usual, bare)
}

/// The dearest crates of either build, each with what it takes in both.
fn table(usual: &Build, bare: Option<&Build>) -> String {
    let of =
        |build: Option<&Build>, name: &str| build.and_then(|build| build.crates.get(name)).copied();
    let names: BTreeSet<&String> =
        usual.crates.keys().chain(bare.iter().flat_map(|build| build.crates.keys())).collect();
    let mut names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    let dearest = |name: &str| {
        of(Some(usual), name).unwrap_or_default().max(of(bare, name).unwrap_or_default())
    };
    names.sort_by(|a, b| dearest(b).total_cmp(&dearest(a)));
    let listed = &names[..names.len().min(LISTED)];
    let mut text = String::from(
        "| crate | s of CPU | of all | without default features |\n|---|---|---|---|\n",
    );
    let mut row = |name: &str, value: [Option<f64>; 2]| {
        let [ours, bare] = value.map(|seconds| seconds.map_or("-".to_owned(), shown));
        let share = 100.0 * value[0].unwrap_or_default() / usual.cpu.max(0.01);
        let _ = writeln!(text, "| {name} | {ours} | {share:.1} % | {bare} |");
    };
    for name in listed {
        row(name, [of(Some(usual), name), of(bare, name)]);
    }
    let rest = |build: &Build| {
        let of_listed = listed.iter().filter_map(|name| build.crates.get(*name)).sum::<f64>();
        build.crates.values().sum::<f64>() - of_listed
    };
    let scripts = |build: &Build| build.cpu - build.crates.values().sum::<f64>();
    let others = format!("the {} others", names.len() - listed.len());
    row(&others, [Some(rest(usual)), bare.map(rest)]);
    row("build scripts, and cargo itself", [Some(scripts(usual)), bare.map(scripts)]);
    text
}

fn shown(seconds: f64) -> String {
    format!("{seconds:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_of(cpu: f64, crates: &[(&str, f64)]) -> Build {
        let crates = crates.iter().map(|(name, seconds)| ((*name).to_owned(), *seconds)).collect();
        Build { cpu, wall: cpu / 2.0, bytes: 1_234_567, crates }
    }

    #[test]
    fn the_dearest_come_first_and_the_rest_is_summed() {
        let many: Vec<(String, f64)> =
            (0..30_u32).map(|number| (format!("c{number:02} 1.0.0"), f64::from(number))).collect();
        let many: Vec<(&str, f64)> = many.iter().map(|(name, time)| (&**name, *time)).collect();
        let usual = build_of(500.0, &many);
        let bare = build_of(30.0, &[("c29 1.0.0", 28.0), ("only 1.0.0", 1.0)]);
        let text = table(&usual, Some(&bare));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2 + LISTED + 2);
        assert_eq!(lines[2], "| c29 1.0.0 | 29.0 | 5.8 % | 28.0 |");
        assert_eq!(lines[3], "| c28 1.0.0 | 28.0 | 5.6 % | - |");
        // c00 to c04 and the one that only the second build has.
        assert_eq!(lines[27], "| the 6 others | 10.0 | 2.0 % | 1.0 |");
        assert_eq!(lines[28], "| build scripts, and cargo itself | 65.0 | 13.0 % | 1.0 |");
    }

    #[test]
    fn the_rows_are_those_of_the_document() {
        let usual = build_of(100.0, &[("haft 0.1.0", 60.0)]);
        let text = report("haft", &usual, None);
        let figure = "100 s of CPU, 50 s by the clock, 1 crates, binary of 1234567 bytes";
        assert!(text.contains(figure), "{text}");
        assert!(text.contains("`haft` has no default features"), "{text}");
        assert!(text.contains("| haft 0.1.0 | 60.0 | 60.0 % | - |"), "{text}");
        assert!(
            report("haft", &usual, Some(&usual)).contains(", without default features | 100 s")
        );
    }

    #[test]
    fn packages_without_a_binary_are_usage_errors() {
        let project = Project::find().unwrap();
        assert!(!has_default_features(&project, "xtask").unwrap());
        for name in ["haft-text", "nothing"] {
            let error = has_default_features(&project, name).unwrap_err();
            assert!(error.is::<Usage>(), "{name}: {error}");
        }
    }
}
