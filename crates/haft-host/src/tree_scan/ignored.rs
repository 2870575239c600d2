//! What a tree scan knows of files that git ignores, beside its nodes.
//!
//! **Invariant:** a name is either covered, and has a node, or it is counted. A path is reported to
//! have been empty only if all names of its folder were covered.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use haft_types::HostPath;

use super::{Stamp, TreeScan};

/// What was found of the files that git ignores, except in folders that tools rebuild.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredTree {
    /// The folders that were scanned.
    pub folders: HashMap<HostPath, Arc<IgnoredFolder>>,
    /// Number of files in each topmost ignored folder.
    pub counts: HashMap<HostPath, FileCount>,
    /// Number of ignored files directly in folders that git does not ignore. Filled only if they
    /// are too many to be known by name.
    pub loose: HashMap<HostPath, u64>,
    /// Paths that rules hide, ignored or not; each with its stamp if it is not a folder.
    pub hidden: HashMap<HostPath, Option<Stamp>>,
    /// Number of files and links that have a node.
    pub files: usize,
    /// Total size of their copies, in bytes.
    pub bytes: u64,
    /// True if some of it was removed, so the next scan may cover what this one did not.
    pub has_room: bool,
}

/// A folder that git ignores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredFolder {
    /// Its stamp before it was listed.
    pub stamp: Stamp,
    /// True where a later change might leave the same stamp.
    pub is_fresh: bool,
    /// Number of files and links directly in it.
    pub files: u64,
    /// Names of those that have a node.
    pub covered: Vec<Box<[u8]>>,
    /// Names of its subfolders that may be scanned.
    pub folders: Vec<Box<[u8]>>,
    /// Names of entries that are not scanned: `.git`, and what tools rebuild.
    pub passed: Vec<Box<[u8]>>,
    /// Names that rules hide.
    pub hidden: Vec<Box<[u8]>>,
}

impl IgnoredFolder {
    /// Reports whether each of its files has a node.
    pub fn is_whole(&self) -> bool {
        self.covered.len() as u64 == self.files
    }
}

/// Number of files and links in a topmost folder that git ignores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCount {
    /// Directly in it.
    pub own: u64,
    /// In its whole tree; `None` if that was too much to count.
    pub whole: Option<u64>,
}

impl TreeScan {
    /// Reports whether a path was scanned although git ignores it.
    pub fn covers_ignored(&self, path: &HostPath) -> bool {
        let is_passed = |passed: &HashSet<HostPath>| passed.contains(path);
        path.parent().is_some_and(|parent| self.ignored_tree.folders.contains_key(&parent))
            || self.passed.as_ref().is_some_and(is_passed)
    }

    /// Reports whether a path without a node is known to have had no ignored file.
    pub fn lacked_ignored(&self, path: &HostPath) -> bool {
        let tree = &self.ignored_tree;
        let Some(passed) = &self.passed else { return false };
        let mut below = path.clone();
        while let Some(folder) = below.parent() {
            if let Some(listed) = tree.folders.get(&folder) {
                let name = below.file_name().unwrap_or_default();
                let names = [&listed.folders, &listed.passed, &listed.hidden];
                let mut names = names.into_iter().flatten();
                return listed.is_whole() && !names.any(|one| **one == *name);
            }
            let is_closed = passed.contains(&below) || passed.contains(&folder);
            if is_closed || tree.hidden.contains_key(&below) {
                return false;
            }
            if self.nodes.contains_key(&folder) || self.roots.contains(&folder) {
                return tree.loose.is_empty();
            }
            below = folder;
        }
        false
    }
}
