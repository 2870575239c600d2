//! Finds what commands changed of files that were not read before, but whose content git has.
//!
//! **Invariant:** the old content of such a file is read from git's packs, which are held open,
//! before the change is reported. Undo then needs nothing of git any more.

use std::{collections::HashSet, sync::Arc};

use haft_host::{Content, GitReader, Node, TreeScan};
use haft_types::{Hash, HostPath};

use crate::{PinGuard, PreImages};

/// Two looks in which what differs has its hash.
pub(super) struct Known {
    pub(super) before: Arc<TreeScan>,
    pub(super) after: Arc<TreeScan>,
    /// What is kept makes no room for what is kept beside it.
    pub(super) held: Vec<PinGuard>,
}

impl Known {
    /// Reads what is wanted of git, also for the paths that others changed. It waits for the disk.
    /// What is left is kept where it is `shared` with a command that runs beside.
    pub(super) fn of(
        mut before: Arc<TreeScan>,
        mut after: Arc<TreeScan>,
        others: &HashSet<HostPath>,
        images: &dyn PreImages,
        shared: bool,
    ) -> Self {
        let mut held = Vec::new();
        let old = wanted(&before, &after, others);
        let new = wanted(&after, &before, others);
        if !old.is_empty() || !new.is_empty() {
            let reader = before.objects.reader(&after.objects);
            let mut fill = |survey: &mut Arc<TreeScan>, paths: Vec<HostPath>, keep: bool| {
                if paths.is_empty() {
                    return;
                }
                let survey = Arc::make_mut(survey);
                for path in paths {
                    if let Some(node) = survey.nodes.get_mut(&path) {
                        held.extend(know(node, &reader, images, keep));
                    }
                }
            };
            fill(&mut before, old, true);
            fill(&mut after, new, shared);
        }
        Self { before, after, held }
    }
}

/// The paths of which one look found what git has, and the other one something else.
fn wanted(of: &TreeScan, other: &TreeScan, others: &HashSet<HostPath>) -> Vec<HostPath> {
    let differs = |path: &HostPath, node: &Arc<Node>| {
        !other.nodes.get(path).is_some_and(|other| Arc::ptr_eq(other, node))
            || others.contains(path)
    };
    let of_git = of.nodes.iter().filter(|(_, node)| node.of_git().is_some());
    of_git.filter(|(path, node)| differs(path, node)).map(|(path, _)| path.clone()).collect()
}

/// Reads what a file held. What git does not have any more stays unknown.
fn know(
    node: &mut Arc<Node>,
    reader: &GitReader,
    images: &dyn PreImages,
    keep: bool,
) -> Option<PinGuard> {
    let (id, len) = node.of_git()?;
    let content = reader.get(id, len).ok()?;
    let hash = Hash::of(&content);
    let held = keep.then(|| images.hold(hash));
    if keep {
        // Where there is no room for it, that is told where it is missed.
        drop(images.put(&content, hash));
    }
    Arc::make_mut(node).content = Content::NoRoom(hash);
    held
}
