//! Partial undo: what a forced undo leaves as it is, since something is in the way, while the rest
//! is done.
//!
//! **Invariant:** what belongs together is left together. Where a file cannot return to its old
//! name, it stays under the new one. Nothing is restored into a folder that cannot be made.

use std::collections::{BTreeMap, BTreeSet};

use haft_types::{EntryKind, HostPath, Receipt, ReceiptAction, Rights};

use super::{Now, Restore, Step, Steps, UndoError, folders::FolderStep};

/// The result of an undo.
#[derive(Debug, Default)]
pub struct UndoReport {
    /// The receipts of what was done, oldest first; they can be undone in the same way.
    pub receipts: Vec<Receipt>,
    /// What could not be done, and why. Without force there is none.
    pub left: Vec<(HostPath, String)>,
    /// Files that had several names (hard links) and are separate files now.
    pub apart: Vec<SplitHardLink>,
    /// Folders that were to be removed but hold entries that no change created. Each has the first
    /// names of those and how many more there are. Such a folder inside another one is not among
    /// the names of that.
    pub stay: Vec<KeptFolder>,
}

/// Names of a file with several hard links, each of which is a separate file now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitHardLink {
    /// The names that were written.
    pub names: Vec<HostPath>,
    /// Whether the file has other names, which still hold the old content.
    pub more: bool,
}

/// The files that were written anew while they had other names, but those that are `still` one file
/// with them.
pub(super) fn apart(
    receipts: &[Receipt],
    now: &BTreeMap<HostPath, Now>,
    still: &BTreeSet<HostPath>,
) -> Vec<SplitHardLink> {
    let mut files: BTreeMap<(u64, u64), (Vec<HostPath>, u64)> = BTreeMap::new();
    for receipt in receipts {
        let is_written = receipt.kind == EntryKind::File
            && receipt.action == ReceiptAction::Changed
            && receipt.before != receipt.after
            && !still.contains(&receipt.path);
        let at = now.get(&receipt.path).and_then(|now| now.at.as_ref());
        let Some(at) = at.filter(|at| is_written && at.names > 1) else { continue };
        let Some(stamp) = at.stamp else { continue };
        let (names, _) = files.entry(stamp.id).or_insert_with(|| (Vec::new(), at.names));
        names.push(receipt.path.clone());
    }
    let apart = |(names, all): (Vec<HostPath>, u64)| {
        let more = (names.len() as u64) < all;
        SplitHardLink { names, more }
    };
    files.into_values().map(apart).collect()
}

/// The rights that a file gets that is one of several names and needs nothing but other permissions:
/// they are those of all its names, and none is written anew.
pub(super) fn mode_alone<'a>(step: &'a Step, now: &Now) -> Option<&'a Rights> {
    let Restore::Content(blob) = &step.to else { return None };
    let stands = now.found == Some(blob.hash) && now.kind == EntryKind::File;
    let has_more = now.at.as_ref().is_some_and(|at| at.names > 1);
    let (wanted, rights) = (step.rights.as_ref()?, now.rights.as_ref()?);
    let mut same = wanted.clone();
    same.mode = rights.mode;
    (stands && has_more && same == *rights).then_some(wanted)
}

/// A folder that was to be removed and could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFolder {
    /// The folder.
    pub path: HostPath,
    /// The first names in it, in the host's bytes.
    pub names: Vec<Vec<u8>>,
    /// How many more there are.
    pub more: usize,
    /// Why its content is not known, where that is so.
    pub closed: Option<String>,
}

impl Steps {
    /// Leaves out what an obstacle is in the way of; gives the obstacle back where that is all there
    /// is, or where it is none of one path.
    pub(super) fn leave(
        &mut self,
        obstacle: UndoError,
        left: &mut Vec<(HostPath, String)>,
    ) -> Result<(), UndoError> {
        let (path, why) = match &obstacle {
            UndoError::Blocked { path, why } => (path.clone(), why.clone()),
            UndoError::Io { path, source } => (path.clone(), source.to_string()),
            UndoError::NotKept { path, why } => {
                (path.clone(), format!("what it held is not there: {why}"))
            }
            _ => return Err(obstacle),
        };
        let tied = self.tied(&path);
        let is_known =
            |path: &HostPath| self.files.contains_key(path) || self.folders.contains_key(path);
        let stays = self.files.keys().chain(self.folders.keys()).any(|path| !tied.contains(path));
        if !is_known(&path) || !stays {
            return Err(obstacle);
        }
        self.files.retain(|path, _| !tied.contains(path));
        self.folders.retain(|path, _| !tied.contains(path));
        for other in tied.iter().filter(|other| **other != path) {
            left.push((other.clone(), format!("goes together with {path}")));
        }
        left.push((path, why));
        Ok(())
    }

    /// The paths of which nothing can be done where nothing can be done at one.
    fn tied(&self, path: &HostPath) -> BTreeSet<HostPath> {
        let mut tied = BTreeSet::from([path.clone()]);
        loop {
            let holder = |path: &HostPath| match &self.files.get(path)?.to {
                Restore::From(holder) => Some(holder.clone()),
                _ => self.files.get(path)?.file.clone(),
            };
            let is_tied = |one: &HostPath| {
                let with = holder(one).is_some_and(|holder| tied.contains(&holder));
                let of = tied.iter().any(|tied| holder(tied).as_ref() == Some(one));
                let inside = tied.iter().any(|folder| {
                    self.folders.get(folder).is_some_and(FolderStep::is_wanted)
                        && one.is_within(folder)
                });
                with || of || inside
            };
            let all = self.files.keys().chain(self.folders.keys());
            let more: Vec<HostPath> =
                all.filter(|one| !tied.contains(*one) && is_tied(one)).cloned().collect();
            if more.is_empty() {
                return tied;
            }
            tied.extend(more);
        }
    }
}
