//! The programs that tests are given, and the one list of variables that name them.
//!
//! A variable is always set under `cargo xtask test`, even when what it names is not there: a test
//! that needs it then fails instead of being left out. It does not know how they are installed.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

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
    /// The folder that `cargo install` is given as its root.
    pub(crate) fn folder(&self) -> Result<PathBuf> {
        Ok(Project::user_cache()?.join(format!("{}-{}", self.package, self.version)))
    }

    /// Where the binary is, or will be.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        let name = format!("{}{}", self.binary, std::env::consts::EXE_SUFFIX);
        Ok(self.folder()?.join("bin").join(name))
    }
}

/// Where everything is that a test may need, whether it is installed yet or not.
pub(crate) struct Tools {
    /// ripgrep at its stated version.
    pub(crate) rg: PathBuf,
    /// fd at its stated version.
    pub(crate) fd: PathBuf,
    /// The folder of the virtual environment.
    pub(crate) venv: PathBuf,
    /// The interpreter of the virtual environment.
    pub(crate) python: PathBuf,
    /// The folder of the npm packages.
    pub(crate) npm: PathBuf,
    /// The Node script of the MCP inspector's command line.
    pub(crate) inspector: PathBuf,
}

impl Tools {
    /// Names the places for a project.
    ///
    /// # Errors
    ///
    /// When no cache folder can be named.
    pub(crate) fn of(project: &Project) -> Result<Self> {
        let venv = project.test_tools().join("venv");
        let npm = project.test_tools().join("npm");
        let script = "node_modules/@modelcontextprotocol/inspector-cli/build/cli.js";
        Ok(Self {
            rg: RIPGREP.path()?,
            fd: FD.path()?,
            python: venv.join("bin").join("python"),
            venv,
            inspector: npm.join(script),
            npm,
        })
    }

    /// The variables that tests read, each with what it names. docs/environment.md explains them.
    pub(crate) fn variables(&self) -> [(&'static str, &PathBuf); 5] {
        [
            ("HAFT_TEST_RG", &self.rg),
            ("HAFT_TEST_FD", &self.fd),
            ("HAFT_TEST_PYTHON", &self.python),
            ("HAFT_TEST_INSPECTOR", &self.inspector),
            ("HAFT_TEST_NPM", &self.npm),
        ]
    }

    /// Gives the variables to a command, and says which of them name something that is missing.
    pub(crate) fn export(&self, command: &mut Command) {
        for (name, path) in self.variables() {
            command.env(name, path);
            if !path.exists() {
                println!("  note: {name} names {}, which is not installed", path.display());
            }
        }
    }
}
