//! What the rules look at: the files that git would take, and the crates that cargo sees.
//!
//! Everything is read once; a [`Tree`] is plain data and can be written down by hand in a test.
//! Files that are not UTF-8 are left out. It does not know any rule.

use std::fs;

use anyhow::{Context as _, Result};
use cargo_metadata::{CargoOpt, DependencyKind, Metadata, MetadataCommand};

use super::source::Source;
use crate::process::{answer, command};
use crate::project::Project;

/// The repository as data.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Every text file that is, or could be, tracked.
    pub(super) files: Vec<File>,
    /// Every crate of the build, the members of the workspace first.
    pub(super) packages: Vec<Package>,
    /// Generated parts of documents: file, and what is wrong with it.
    pub(super) stale: Vec<(String, String)>,
}

/// A text file.
#[derive(Debug)]
pub(super) struct File {
    /// Relative to the root, with `/` between the parts.
    pub(super) path: String,
    /// Its content.
    pub(super) text: String,
    /// The same as Rust, for files that are, and are not the data of a test.
    pub(super) rust: Option<Source>,
}

/// A crate.
#[derive(Debug, Default, Clone)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// The SPDX expression of its manifest.
    pub(super) licence: Option<String>,
    /// Whether it belongs to the workspace.
    pub(super) member: bool,
    pub(super) dependencies: Vec<Dependency>,
}

/// An arrow to another crate.
#[derive(Debug, Clone)]
pub(super) struct Dependency {
    pub(super) name: String,
    /// Only its tests and examples use it.
    pub(super) for_tests: bool,
}

impl File {
    /// Wraps a text, taken apart as Rust when its name says so.
    pub(super) fn new(path: &str, text: impl Into<String>) -> Self {
        let text = text.into();
        let is_rust = path.rsplit('.').next() == Some("rs") && !is_data(path);
        let rust = is_rust.then(|| Source::of(&text));
        Self { path: path.to_owned(), text, rust }
    }

    /// The crate that the file belongs to, by its folder; `None` outside of all crates.
    pub(super) fn package(&self) -> Option<&str> {
        match self.path.strip_prefix("crates/") {
            Some(rest) => rest.split_once('/').map(|(name, _)| name),
            None => self.path.starts_with("xtask/").then_some("xtask"),
        }
    }

    /// Whether the file is part of an integration test or a benchmark.
    pub(super) fn is_outside_test(&self) -> bool {
        self.path.split('/').any(|part| matches!(part, "tests" | "benches" | "examples" | "fuzz"))
    }

    /// The line of a byte offset, from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        let end = offset.min(self.text.len());
        self.text.as_bytes()[..end].split(|byte| *byte == b'\n').count()
    }
}

/// Whether a path is inside a folder of data for tests, which may look like anything.
pub(super) fn is_data(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "fixtures" | "cassettes" | "snapshots"))
}

impl Tree {
    /// Reads the repository.
    ///
    /// # Errors
    ///
    /// When git or cargo cannot list what is there.
    pub(super) fn read(project: &Project) -> Result<Self> {
        let mut git = command(project, "git");
        let words = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listed = answer(git.args(words))
            .context("git cannot list the files: is git installed, and is this a repository?")?;
        let mut names: Vec<&str> = listed.split('\0').filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        names.dedup();
        let files = names
            .into_iter()
            // A file that is tracked but deleted, a link to a folder, a binary: nothing to judge.
            .filter_map(|name| {
                let text = fs::read_to_string(project.root.join(name)).ok()?;
                Some(File::new(name, text))
            })
            .collect();
        let metadata = MetadataCommand::new()
            .manifest_path(project.root.join("Cargo.toml"))
            .features(CargoOpt::AllFeatures)
            .exec()
            .context("cargo metadata failed: does `cargo check` work?")?;
        let packages = packages(&metadata);
        Ok(Self { files, packages, stale: crate::docs::stale(project) })
    }

    /// The files that are Rust, each with its source taken apart.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&File, &Source)> {
        self.files.iter().filter_map(|file| Some((file, file.rust.as_ref()?)))
    }

    /// The file at a path.
    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The crates of the workspace.
    pub(super) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.member)
    }
}

fn packages(metadata: &Metadata) -> Vec<Package> {
    let mut packages: Vec<Package> = metadata
        .packages
        .iter()
        .map(|package| Package {
            name: package.name.to_string(),
            version: package.version.to_string(),
            licence: package.license.clone(),
            member: metadata.workspace_members.contains(&package.id),
            dependencies: package
                .dependencies
                .iter()
                .map(|dependency| Dependency {
                    name: dependency.name.clone(),
                    for_tests: dependency.kind == DependencyKind::Development,
                })
                .collect(),
        })
        .collect();
    packages.sort_by(|a, b| (!a.member, &a.name).cmp(&(!b.member, &b.name)));
    packages
}

/// Trees for the tests of the rules.
#[cfg(test)]
pub(super) mod planted {
    use super::{Dependency, File, Package, Tree};

    /// A tree of files alone.
    pub(in super::super) fn files(files: &[(&str, &str)]) -> Tree {
        let files = files.iter().map(|(path, text)| File::new(path, *text)).collect();
        Tree { files, ..Tree::default() }
    }

    /// A tree of crates of the workspace alone, each with the names of its dependencies; a name
    /// with `dev:` before it is for tests.
    pub(in super::super) fn crates(crates: &[(&str, &[&str])]) -> Tree {
        let packages = crates
            .iter()
            .map(|(name, dependencies)| Package {
                name: (*name).to_owned(),
                licence: Some("MIT OR Apache-2.0".to_owned()),
                member: true,
                dependencies: dependencies
                    .iter()
                    .map(|name| Dependency {
                        name: name.trim_start_matches("dev:").to_owned(),
                        for_tests: name.starts_with("dev:"),
                    })
                    .collect(),
                ..Package::default()
            })
            .collect();
        Tree { packages, ..Tree::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_know_their_crate_and_their_lines() {
        let file = File::new("crates/haft-text/src/a.rs", "one\ntwo\n");
        assert_eq!(file.package(), Some("haft-text"));
        assert_eq!((file.line(0), file.line(4), file.line(99)), (1, 2, 3));
        assert!(!file.is_outside_test());
        assert!(File::new("crates/haft-text/tests/it/main.rs", "").is_outside_test());
        assert_eq!(File::new("README.md", "").package(), None);
        assert!(File::new("crates/haft-text/tests/fixtures/a.rs", "").rust.is_none());
    }
}
