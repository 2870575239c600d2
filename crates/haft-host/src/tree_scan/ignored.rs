//! What a survey knows of what git ignores, beside the nodes of it.
//!
//! **Invariant:** a name is covered, and has a node, or it is counted. That nothing stood at a path
//! is only said where all names of its folder were covered.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use haft_types::HostPath;

use super::{Stamp, TreeScan};

/// What was found of what git ignores, but for folders that tools rebuild.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredTree {
    /// The folders that were looked into.
    pub folders: HashMap<HostPath, Arc<IgnoredFolder>>,
    /// How many files are in each topmost one.
    pub counts: HashMap<HostPath, FileCount>,
    /// How many ignored files are right inside of folders that git does not ignore; only where they
    /// are too many to be known by name.
    pub loose: HashMap<HostPath, u64>,
    /// What rules hide, whoever ignores it, with the state of what is no folder.
    pub hidden: HashMap<HostPath, Option<Stamp>>,
    /// How many files and links have a node.
    pub files: usize,
    /// How many bytes the copies of them take.
    pub bytes: u64,
    /// True where some of it went, and the next look may cover what this one did not.
    pub has_room: bool,
}

/// A folder that git ignores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredFolder {
    /// Its state before it was listed.
    pub stamp: Stamp,
    /// True where a later change might leave the same stamp.
    pub is_fresh: bool,
    /// How many files and links are right inside of it.
    pub files: u64,
    /// The names of those that have a node.
    pub covered: Vec<Box<[u8]>>,
    /// The names of the folders in it that may be looked into.
    pub folders: Vec<Box<[u8]>>,
    /// The names of what is not looked into: `.git`, and what tools rebuild.
    pub passed: Vec<Box<[u8]>>,
    /// The names that rules hide.
    pub hidden: Vec<Box<[u8]>>,
}

impl IgnoredFolder {
    /// Reports whether each of its files has a node.
    pub fn is_whole(&self) -> bool {
        self.covered.len() as u64 == self.files
    }
}

/// How many files and links are in a topmost folder that git ignores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCount {
    /// Right inside of it.
    pub own: u64,
    /// In all of it; none where that was too much to count.
    pub whole: Option<u64>,
}

impl TreeScan {
    /// Reports whether what stands at a path was looked at although git ignores it.
    pub fn covers_ignored(&self, path: &HostPath) -> bool {
        let is_passed = |passed: &HashSet<HostPath>| passed.contains(path);
        path.parent().is_some_and(|parent| self.ignored_tree.folders.contains_key(&parent))
            || self.passed.as_ref().is_some_and(is_passed)
    }

    /// Reports whether it is known that nothing which git ignores stood at a path that has no node.
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
