//! `cargo xtask score`: how much of the words of articles haft-page keeps, and of the navigation lets
//! in, beside `trafilatura`, on the pages of `crates/haft-page/tests/pages`.
//!
//! The peer is installed from `PyPI` into the build folder, and writes its Markdown of each page; the
//! example `page` counts the words of both. It does not know how words are counted.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::Usage;
use crate::process::{answer, cargo, command, run as run_command};
use crate::project::Project;
use crate::test::{Install, Site, hash, interpreter};

/// The list of the peer's packages, for `pip`.
const PACKAGES: &str = "tests/python/pages.txt";
/// The script that writes the peer's Markdown, and times it.
pub(crate) const SCRIPT: &str = "tests/python/pages.py";
/// The pages.
const PAGES: &str = "crates/haft-page/tests/pages";

/// Prints the peer's shares, to be kept beside the pages, and the table; `false` where we are below.
///
/// # Errors
///
/// When there are arguments, the peer cannot be installed, or the example cannot be built.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<bool> {
    if let Some(word) = arguments.first().filter(|word| *word != "pages") {
        return Err(Usage(format!("{word:?} is not scored; only pages are")).into());
    }
    let python = environment(project)?;
    let peer = project.target.join("tmp").join("score-pages");
    fs::create_dir_all(&peer).with_context(|| format!("{} cannot be made", peer.display()))?;
    run_command(command(project, &python).arg(SCRIPT).args(["--all", PAGES]).arg(&peer))?;
    let example = ["--package", "haft-page", "--example", "page"];
    run_command(cargo(project, &["build", "--quiet"]).args(example))?;
    let mut score = cargo(project, &["run", "--quiet"]);
    score.args(example).args(["--", "--score", PAGES]).arg(&peer);
    let status = score.status().context("cargo could not be started")?;
    Ok(status.success())
}

/// The interpreter of an environment with the peer.
pub(crate) fn environment(project: &Project) -> Result<PathBuf> {
    let script = "import platform; print(platform.python_version())";
    let version = answer(command(project, "python3").args(["-c", script]))
        .context("there is no python3: install it, with its venv and pip")?;
    let list = project.root.join(PACKAGES);
    let wish = fs::read(&list).with_context(|| format!("{} cannot be read", list.display()))?;
    let place = project.target.join("tmp").join(format!("pages-{version}-{}", hash(&wish)));
    let install = Install { kind: "pages", place, wish: Some(wish), can_move: false };
    let works = |folder: &std::path::Path| {
        answer(command(project, interpreter(folder)).args(["-c", "import trafilatura"])).is_some()
    };
    install.ensure(works, |site| install_peer(project, site))?;
    Ok(interpreter(&install.place))
}

fn install_peer(project: &Project, site: &Site<'_>) -> Result<()> {
    site.run(command(project, "python3").args(["-m", "venv"]).arg(site.folder))
        .context("no virtual environment: install the system's python3-venv")?;
    let mut pip = command(project, interpreter(site.folder));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .args(["-r", PACKAGES]);
    site.run(&mut pip).with_context(|| format!("pip could not install {PACKAGES}"))
}
