//! The programs that tests are given, and the one list of variables that name them.
//!
//! A variable is always set under `cargo xtask test`, even when what it names is not there: a test
//! that needs it then fails instead of being left out. Everything is in the cache of the user, in
//! folders named by what they depend on. It does not know how they are installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::cache::{Install, hash};
use crate::process::{answer, command};
use crate::project::Project;

/// A program built from a registry crate at one version, kept in the cache of the user.
pub(crate) struct Peer {
    /// The crate to install.
    pub(crate) package: &'static str,
    /// The one version that is used, so that figures stay comparable.
    pub(crate) version: &'static str,
    /// The binary that it installs.
    pub(crate) binary: &'static str,
}

/// ripgrep, the peer of searches and of process start.
pub(crate) const RIPGREP: Peer = Peer { package: "ripgrep", version: "15.2.0", binary: "rg" };

/// fd, the peer of finding files.
pub(crate) const FD: Peer = Peer { package: "fd-find", version: "10.5.0", binary: "fd" };

impl Peer {
    /// Its folder, in which `cargo install` puts it.
    pub(super) fn install(&self) -> Result<Install> {
        let place = Project::user_cache()?.join(format!("{}-{}", self.package, self.version));
        Ok(Install { kind: self.package, place, wish: None, can_move: true })
    }

    /// Where the binary is, or will be.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        Ok(self.path_in(&self.install()?.place))
    }

    /// Where the binary is in a folder that `cargo install` was given as its root.
    pub(super) fn path_in(&self, folder: &Path) -> PathBuf {
        let name = format!("{}{}", self.binary, std::env::consts::EXE_SUFFIX);
        folder.join("bin").join(name)
    }
}

/// The list of the Python packages, for `pip`.
pub(super) const PYTHON_PACKAGES: &str = "tests/python/requirements.txt";
/// The list of the npm packages, for `npm ci`.
pub(super) const NPM_PACKAGES: &str = "tests/node/package-lock.json";

/// Where everything is that a test may need, whether it is installed yet or not.
pub(crate) struct Tools {
    /// ripgrep at its stated version.
    pub(super) rg: Install,
    /// fd at its stated version.
    pub(super) fd: Install,
    /// The virtual environment. Its scripts name the folder, so that it cannot be moved.
    pub(super) python: Install,
    /// The official test suite of JSON Schema, with the documents of its drafts.
    pub(super) json_schema_suite: Install,
    /// The folder of the npm packages.
    pub(super) npm: Install,
}

impl Tools {
    /// Names the places for a project, by the interpreters that are there now: after an install of
    /// one of them, the places are others.
    ///
    /// # Errors
    ///
    /// When no cache folder can be named, or a list of packages cannot be read.
    pub(crate) fn of(project: &Project) -> Result<Self> {
        let script = "import platform; print(platform.python_version())";
        let python = answer(command(project, "python3").args(["-c", script]));
        let node = answer(command(project, "node").arg("--version"));
        Ok(Self {
            rg: RIPGREP.install()?,
            fd: FD.install()?,
            python: Install {
                can_move: false,
                ..packages(project, "python", python.as_deref(), PYTHON_PACKAGES)?
            },
            json_schema_suite: packages(
                project,
                "json-schema-suite",
                python.as_deref(),
                PYTHON_PACKAGES,
            )?,
            npm: packages(project, "node", node.as_deref(), NPM_PACKAGES)?,
        })
    }

    /// The variables that tests read, each with what it names and the install that has to be
    /// complete for it. docs/environment.md explains them.
    fn variables(&self) -> [(&'static str, PathBuf, &Install); 6] {
        [
            ("HAFT_TEST_RG", RIPGREP.path_in(&self.rg.place), &self.rg),
            ("HAFT_TEST_FD", FD.path_in(&self.fd.place), &self.fd),
            ("HAFT_TEST_PYTHON", interpreter(&self.python.place), &self.python),
            ("HAFT_TEST_INSPECTOR", inspector(&self.npm.place), &self.npm),
            ("HAFT_TEST_NPM", self.npm.place.clone(), &self.npm),
            (
                "HAFT_TEST_JSON_SCHEMA_SUITE",
                self.json_schema_suite.place.clone(),
                &self.json_schema_suite,
            ),
        ]
    }

    /// Gives the variables to a command, and says which of them name something that is missing.
    pub(crate) fn export(&self, command: &mut Command) {
        for (name, path, install) in self.variables() {
            command.env(name, &path);
            if !install.is_complete() || !path.exists() {
                println!("  note: {name} names {}, which is not installed", path.display());
            }
        }
    }

    /// The steps that would install something, each with the folder that it would make.
    pub(super) fn missing(&self) -> Vec<(&'static str, &Path)> {
        let steps = [
            ("python", &self.python),
            ("python", &self.json_schema_suite),
            ("npm", &self.npm),
            ("rg", &self.rg),
            ("fd", &self.fd),
        ];
        let missing = steps.into_iter().filter(|(_, install)| !install.is_complete());
        missing.map(|(step, install)| (step, install.place.as_path())).collect()
    }
}

/// The interpreter of a virtual environment.
pub(crate) fn interpreter(folder: &Path) -> PathBuf {
    folder.join("bin").join("python")
}

/// The Node script of the MCP inspector's command line.
pub(super) fn inspector(folder: &Path) -> PathBuf {
    folder.join("node_modules/@modelcontextprotocol/inspector-cli/build/cli.js")
}

/// An install of the packages of a list, for one version of their interpreter.
fn packages(
    project: &Project,
    kind: &'static str,
    version: Option<&str>,
    list: &str,
) -> Result<Install> {
    let wish =
        fs::read(project.root.join(list)).with_context(|| format!("{list} cannot be read"))?;
    let version = version.unwrap_or("none");
    let place = Project::user_cache()?.join(format!("{kind}-{version}-{}", hash(&wish)));
    Ok(Install { kind, place, wish: Some(wish), can_move: true })
}
