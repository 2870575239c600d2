//! Where confined programs write what is not part of the workspace: a temporary folder, and caches.
//!
//! **Invariant:** nobody else may read these. The temporary folder is removed with the host. The
//! caches are not those of the user's own programs, which would trust what an attacker put there.

use std::{
    env,
    ffi::OsStr,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::Path,
    sync::{Mutex, PoisonError},
};

use haft_types::{HostPath, Style};
use tempfile::TempDir;

use crate::Spawn;

/// Variables that name a cache without which a program fails, and the folder that it gets.
const CACHES: &[(&str, &str)] = &[
    ("GOCACHE", "go-build"),
    ("CCACHE_DIR", "ccache"),
    ("UV_CACHE_DIR", "uv"),
    ("npm_config_cache", "npm"),
];

/// The same of what builds and tests write into the workspace where they may.
const BUILDS: &[(&str, &str)] = &[
    ("CARGO_TARGET_DIR", "cargo-target"),
    ("MYPY_CACHE_DIR", "mypy"),
    ("PYTHONPYCACHEPREFIX", "pycache"),
    ("RUFF_CACHE_DIR", "ruff"),
];

/// See the module; made when it is first wanted.
#[derive(Debug, Default)]
pub(in crate::local) struct Scratch(Mutex<Option<TempDir>>);

impl Scratch {
    /// Where it is, below the temporary folder.
    pub(super) fn folder(&self, temp: &HostPath) -> io::Result<HostPath> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody may have cleaned up.
        if made.as_ref().is_none_or(|folder| !folder.path().is_dir()) {
            let mut how = tempfile::Builder::new();
            *made = Some(how.prefix("haft-").tempdir_in(OsStr::from_bytes(temp.as_bytes()))?);
        }
        let folder = made.as_ref().ok_or(io::ErrorKind::NotFound)?;
        path(&folder.path().canonicalize()?)
    }
}

/// The same with caches, where it is confined and may write.
pub(super) fn with_caches(mut spawn: Spawn, caches: Option<&Path>) -> io::Result<Spawn> {
    let (Some(limits), Some(caches)) = (&mut spawn.confine, caches) else { return Ok(spawn) };
    if limits.reads_only() && !limits.builds_apart {
        return Ok(spawn);
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(caches)?;
    let real = caches.canonicalize()?;
    limits.write.push(path(&real)?);
    let is_chosen = |name: &str| env::var_os(name).is_some();
    // In an overlay a build writes where it always does, unless that was chosen: such a folder may lie
    // anywhere.
    let stays = |name: &str| !limits.overlay.is_empty() && !is_chosen(name);
    let builds = BUILDS.iter().filter(|(name, _)| limits.builds_apart && !stays(name));
    for (name, folder) in CACHES.iter().chain(builds) {
        let is_set = spawn.set.iter().any(|(set, _)| set == name);
        // Whoever chose a folder for a build chose one that may not be written now.
        let is_free = limits.builds_apart || !is_chosen(name);
        if let Some(folder) = real.join(folder).to_str().filter(|_| !is_set && is_free) {
            spawn.set.push(((*name).to_owned(), folder.to_owned()));
        }
    }
    Ok(spawn)
}

fn path(path: &Path) -> io::Result<HostPath> {
    HostPath::new(path.as_os_str().as_bytes(), Style::Posix).map_err(io::Error::other)
}
