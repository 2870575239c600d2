//! Where things are: the repository, the build folder, the cache of the user.
//!
//! Every path that a chore uses starts from here, so that nothing depends on the folder in which
//! cargo was called. It does not know what any chore does with them.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The folders that the chores work in.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    /// The root of the repository.
    pub(crate) root: PathBuf,
    /// Cargo's build folder.
    pub(crate) target: PathBuf,
}

impl Project {
    /// Finds the repository that this program was built from.
    ///
    /// # Errors
    ///
    /// When the folder above the xtask crate cannot be named.
    pub(crate) fn find() -> Result<Self> {
        let manifest = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest.parent().map(Path::to_path_buf).with_context(|| {
            format!("{} has no folder above it: run this as `cargo xtask`", manifest.display())
        })?;
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => root.join(folder),
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    /// What `cargo xtask test` installs, once for every checkout of this user.
    ///
    /// # Errors
    ///
    /// When neither `XDG_CACHE_HOME` nor `HOME` names a folder.
    pub(crate) fn user_cache() -> Result<PathBuf> {
        let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        named("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| named("HOME").map(|home| PathBuf::from(home).join(".cache")))
            .map(|cache| cache.join("haft-test-tools"))
            .context("neither XDG_CACHE_HOME nor HOME is set: set one, so that tools can be kept")
    }
}
