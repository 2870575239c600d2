//! Installs from the registries of Python, npm and cargo, each only when it is not there yet.
//!
//! A stamp beside an install holds what was asked for; another wish, or a tool that no longer
//! answers, makes it anew. Versions are pinned in the repository. It does not know what the tests
//! do with the tools, and puts nothing outside the build folder and the cache of the user.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::Session;
use super::tools::{FD, Peer, RIPGREP};
use crate::process::{answer, cargo, command, run};

/// The virtual environment with the packages of tests/python/requirements.txt.
pub(super) fn python(session: &Session) -> Result<()> {
    let tools = &session.tools;
    let wish = session.project.root.join("tests/python/requirements.txt");
    let stamp = tools.venv.join("haft-stamp");
    let works = |script| {
        answer(
            command(&session.project, &tools.python)
                .args(["-c", script])
                .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
                .env_remove("PYTHONDONTWRITEBYTECODE"),
        )
        .is_some()
    };
    let there = "import mcp; from importlib import metadata; print(metadata.version('litellm'))";
    if is_current(&stamp, &wish)? && works(there) {
        println!("  there already: {}", tools.venv.display());
        return Ok(());
    }
    // An environment of a Python that is gone cannot be mended, only made anew.
    remove(&tools.venv)?;
    run(command(&session.project, "python3").args(["-m", "venv"]).arg(&tools.venv))
        .context("no virtual environment: install the system's python3 and python3-venv")?;
    run(command(&session.project, &tools.python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--no-deps", "--no-compile", "-r"])
        .arg(&wish))
    .context("pip could not install the packages of tests/python/requirements.txt: is a package index reachable?")?;
    // This compiles what the gateway loads, and nothing else, so that its start is short.
    if !works("import mcp, litellm.proxy.proxy_server; print(1)") {
        bail!(
            "{} cannot import mcp and litellm's proxy although pip was content: it needs Python \
             3.11 or later; remove {} and try again",
            tools.python.display(),
            tools.venv.display()
        );
    }
    fs::copy(&wish, &stamp).with_context(|| format!("{} cannot be written", stamp.display()))?;
    Ok(())
}

/// The packages of tests/node/package-lock.json.
pub(super) fn npm(session: &Session) -> Result<()> {
    let tools = &session.tools;
    let source = session.project.root.join("tests/node");
    let lock = source.join("package-lock.json");
    let stamp = tools.npm.join("haft-stamp");
    let works = || {
        let mut node = command(&session.project, "node");
        answer(node.arg(&tools.inspector).arg("--help")).is_some()
    };
    if is_current(&stamp, &lock)? && works() {
        println!("  there already: {}", tools.npm.display());
        return Ok(());
    }
    fs::create_dir_all(&tools.npm)
        .with_context(|| format!("{} cannot be made", tools.npm.display()))?;
    for name in ["package.json", "package-lock.json"] {
        fs::copy(source.join(name), tools.npm.join(name))
            .with_context(|| format!("tests/node/{name} cannot be copied"))?;
    }
    run(command(&session.project, "npm").current_dir(&tools.npm).args([
        "ci",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
    ]))
    .context("npm could not install tests/node/package-lock.json: is a registry reachable?")?;
    if !works() {
        let version = answer(command(&session.project, "node").arg("--version"));
        bail!(
            "node {} cannot run {}: the MCP inspector needs Node 20 or later",
            version.as_deref().unwrap_or("(no version)"),
            tools.inspector.display()
        );
    }
    fs::copy(&lock, &stamp).with_context(|| format!("{} cannot be written", stamp.display()))?;
    Ok(())
}

/// ripgrep at its stated version.
pub(super) fn ripgrep(session: &Session) -> Result<()> {
    peer(session, &RIPGREP)
}

/// fd at its stated version.
pub(super) fn fd(session: &Session) -> Result<()> {
    peer(session, &FD)
}

fn peer(session: &Session, peer: &Peer) -> Result<()> {
    let path = peer.path()?;
    let version = || {
        let first = answer(command(&session.project, &path).arg("--version"))?;
        first.split_whitespace().nth(1).map(str::to_owned)
    };
    if version().as_deref() == Some(peer.version) {
        println!("  there already: {}", path.display());
        return Ok(());
    }
    println!("  {} {} is built from source, once for this user", peer.package, peer.version);
    let mut install = cargo(&session.project, &["install", "--locked", "--force", "--root"]);
    // Built apart: the settings of this workspace's build are not those of another project.
    install.arg(peer.folder()?).args([peer.package, "--version", peer.version]);
    install
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .current_dir(std::env::temp_dir());
    run(&mut install)?;
    match version() {
        Some(found) if found == peer.version => Ok(()),
        found => bail!(
            "{} says it is version {found:?}, not {}: remove that folder and try again",
            path.display(),
            peer.version
        ),
    }
}

/// Whether a stamp holds the same bytes as the wish.
fn is_current(stamp: &Path, wish: &Path) -> Result<bool> {
    let wanted = fs::read(wish).with_context(|| format!("{} cannot be read", wish.display()))?;
    Ok(fs::read(stamp).is_ok_and(|found| found == wanted))
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be removed", folder.display()))
        }
        _ => Ok(()),
    }
}
