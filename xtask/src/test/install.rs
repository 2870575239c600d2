//! Installs from the registries of Python, npm and cargo, each only when it is not there yet.
//!
//! Versions are pinned in the repository. Another list of packages, another interpreter or a tool
//! that no longer answers makes an install anew; `cache` sees to it that none is left half done.
//! It does not know what the tests do with the tools, and puts nothing outside the cache of the
//! user.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::Session;
use super::tools::{FD, NPM_PACKAGES, PYTHON_PACKAGES, Peer, RIPGREP, inspector, interpreter};
use crate::process::{answer, cargo, command};

/// The virtual environment with the packages of tests/python/requirements.txt, and the test suite
/// that comes with one of them.
pub(super) fn python(session: &Session) -> Result<()> {
    virtual_environment(session)?;
    json_schema_suite(session)
}

fn virtual_environment(session: &Session) -> Result<()> {
    let runs = |folder: &Path, script| {
        answer(
            command(&session.project, interpreter(folder))
                .args(["-c", script])
                .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
                .env_remove("PYTHONDONTWRITEBYTECODE"),
        )
        .is_some()
    };
    let there = "import mcp; from importlib import metadata; print(metadata.version('litellm'))";
    session.tools()?.python.ensure(
        |folder| runs(folder, there),
        |site| {
            let python = interpreter(site.folder);
            site.run(command(&session.project, "python3").args(["-m", "venv"]).arg(site.folder))
                .context("no virtual environment: install the system's python3 and python3-venv")?;
            site.run(
                command(&session.project, &python)
                    .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                    .args(["--no-deps", "--no-compile", "-r", PYTHON_PACKAGES]),
            )
            .context("pip could not install the packages of tests/python/requirements.txt")?;
            // This compiles what the gateway loads, and nothing else, so that its start is short.
            if !runs(site.folder, "import mcp, litellm.proxy.proxy_server; print(1)") {
                bail!(
                    "{} cannot import mcp and litellm's proxy although pip was content: is \
                     {PYTHON_PACKAGES} complete?",
                    python.display()
                );
            }
            Ok(())
        },
    )
}

/// The official test suite of JSON Schema. It is in the source package of `jsonschema` alone, and in
/// no package that pip installs; the documents of the drafts are in the virtual environment.
fn json_schema_suite(session: &Session) -> Result<()> {
    let tools = session.tools()?;
    let python = interpreter(&tools.python.place);
    let requirements = session.project.root.join(PYTHON_PACKAGES);
    let requirements = fs::read_to_string(&requirements)
        .with_context(|| format!("{} cannot be read", requirements.display()))?;
    let wish = requirements.lines().find(|line| line.starts_with("jsonschema=="));
    let wish = wish.with_context(|| format!("{PYTHON_PACKAGES} does not name jsonschema"))?.trim();
    let works = |folder: &Path| folder.join("metaschemas").is_dir();
    tools.json_schema_suite.ensure(works, |site| {
        site.run(
            command(&session.project, &python)
                .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check"])
                .args(["--no-deps", "--no-binary", "jsonschema", "--dest"])
                .arg(site.folder)
                .arg(wish),
        )
        .context("pip could not download the source package of jsonschema")?;
        site.run(command(&session.project, &python).args(["-c", UNPACK]).arg(site.folder))
            .with_context(|| {
                format!("the test suite in {} cannot be unpacked", site.folder.display())
            })
    })
}

/// Takes the suite out of the one source package in a folder, and adds the documents of the drafts.
const UNPACK: &str = "
import pathlib, shutil, sys, tarfile
import jsonschema_specifications
folder = pathlib.Path(sys.argv[1])
[package] = folder.glob('*.tar.gz')
with tarfile.open(package) as archive:
    archive.extractall(folder, filter='data')
[source] = folder.glob('jsonschema-*/')
for name in ('tests', 'remotes'):
    (source / 'json' / name).rename(folder / name)
shutil.rmtree(source)
package.unlink()
specifications = pathlib.Path(jsonschema_specifications.__file__).parent / 'schemas'
shutil.copytree(specifications, folder / 'metaschemas')
";

/// The packages of tests/node/package-lock.json.
pub(super) fn npm(session: &Session) -> Result<()> {
    let works = |folder: &Path| {
        let mut node = command(&session.project, "node");
        answer(node.arg(inspector(folder)).arg("--help")).is_some()
    };
    let npm = session.tools()?.npm;
    npm.ensure(works, |site| {
        let folder = site.folder;
        let lock = session.project.root.join(NPM_PACKAGES);
        for file in [lock.with_file_name("package.json"), lock] {
            let name = file.file_name().unwrap_or_default();
            fs::copy(&file, folder.join(name)).with_context(|| {
                format!("{} cannot be copied to {}", file.display(), folder.display())
            })?;
        }
        let mut ci = command(&session.project, "npm");
        ci.current_dir(folder).args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
        // Of a file that it cannot write, to a full disk say, npm only warns.
        site.run_unless(&mut ci, &["TAR_ENTRY_ERROR"])
            .context("npm could not install tests/node/package-lock.json")?;
        if !works(folder) {
            let version = answer(command(&session.project, "node").arg("--version"));
            bail!(
                "node {} cannot run {}: the MCP inspector needs Node 20 or later",
                version.as_deref().unwrap_or("(no version)"),
                inspector(folder).display()
            );
        }
        Ok(())
    })?;
    // npm is content without a package that is optional, be it that there is no build for this
    // system or that its download broke off.
    let optional = npm.place.join("node_modules/@openai/codex");
    if !optional.exists() {
        let place = npm.place.display();
        println!("  note: no {}; to try it again, remove {place}", optional.display());
    }
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
    let version = |folder: &Path| {
        let mut binary = command(&session.project, peer.path_in(folder));
        let first = answer(binary.arg("--version"))?;
        first.split_whitespace().nth(1).map(str::to_owned)
    };
    let is_right = |folder: &Path| version(folder).as_deref() == Some(peer.version);
    peer.install()?.ensure(is_right, |site| {
        let folder = site.folder;
        println!("  {} {} is built from source, once for this user", peer.package, peer.version);
        let build = folder.join("build");
        let mut install = cargo(&session.project, &["install", "--locked", "--force", "--root"]);
        // Built apart: the settings of this workspace's build are not those of another project.
        install.arg(folder).args([peer.package, "--version", peer.version]);
        install
            .env("CARGO_TARGET_DIR", &build)
            .env_remove("RUSTFLAGS")
            .current_dir(std::env::temp_dir());
        site.run(&mut install)
            .with_context(|| format!("cargo could not install {}", peer.package))?;
        fs::remove_dir_all(&build)
            .with_context(|| format!("{} cannot be removed", build.display()))?;
        match version(folder) {
            Some(found) if found == peer.version => Ok(()),
            found => bail!(
                "{} says it is version {found:?}, not {}",
                peer.path_in(folder).display(),
                peer.version
            ),
        }
    })
}
