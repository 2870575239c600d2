//! Conflicts: changes by somebody else to files that are to be undone.
//!
//! **Invariant:** a file is a conflict where its state is neither what the changes left nor what
//! undo would restore. It is also one where a change did not begin with what the one before it
//! left.

use std::collections::{BTreeMap, HashMap};

use haft_types::{Blob, EntryKind, Hash, HostPath, Receipt, ReceiptAction, Rights};

use super::{Now, Restore, Step};

/// A file that is not as the changes left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The file.
    pub path: HostPath,
    /// Hash of the content that the changes left; none where they left nothing.
    pub left: Option<Hash>,
    /// Hash of the content that is there; none where nothing is.
    pub found: Option<Hash>,
    /// The content that is there, where it could be stored.
    pub kept: Option<Blob>,
    /// The content that undo would restore; none where it would leave nothing.
    pub to: Option<Blob>,
    /// The rights that the changes left, and the current ones, where these differ.
    pub rights: Option<(Rights, Rights)>,
}

/// Most paths that an error names.
const NAMED: usize = 20;

/// The first of some paths, and how many more there are.
pub(super) fn listed<'a>(paths: impl ExactSizeIterator<Item = &'a HostPath>) -> String {
    let more = paths.len().saturating_sub(NAMED);
    let mut named: Vec<String> = paths.take(NAMED).map(ToString::to_string).collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    named.join(", ")
}

/// The files that are neither as the changes left them nor as they shall be.
pub(super) fn conflicts(
    steps: &BTreeMap<HostPath, Step>,
    now: &BTreeMap<HostPath, Now>,
) -> Vec<Conflict> {
    let conflict = |(path, step): (&HostPath, &Step)| {
        let found = &now[path];
        let same = |hash: Option<Hash>, kind| {
            found.found == hash && (hash.is_none() || found.kind == kind)
        };
        let shall_be = match step.to {
            Restore::Link(_) => EntryKind::Link,
            _ => EntryKind::File,
        };
        let as_left = same(step.left, step.kind) || same(aim(step, steps, now), shall_be);
        let rights = rights(step, found);
        (!as_left || rights.is_some()).then(|| Conflict {
            rights,
            path: path.clone(),
            left: step.left,
            found: found.found,
            kept: found.kept.clone(),
            to: to(step, now),
        })
    };
    steps.iter().filter_map(conflict).collect()
}

/// The rights that the changes left and those that are there, where somebody else gave others.
fn rights(step: &Step, found: &Now) -> Option<(Rights, Rights)> {
    let (left, now) = (step.rights_left.as_ref()?, found.rights.as_ref()?);
    let is_theirs = now != left && Some(now) != step.rights.as_ref();
    is_theirs.then(|| (left.clone(), now.clone()))
}

/// The files whose changes do not follow one from another: what one of them left is not what the next
/// one found, so somebody else changed it in between. Files that were moved are left out.
pub(super) fn between(newest_first: &[&Receipt]) -> Vec<Conflict> {
    let mut moved: Vec<&HostPath> = Vec::new();
    for receipt in newest_first {
        if let ReceiptAction::Renamed { from } = &receipt.action {
            moved.extend([&receipt.path, from]);
        }
    }
    let mut newer: HashMap<&HostPath, &Receipt> = HashMap::new();
    let mut found: Vec<Conflict> = Vec::new();
    for receipt in newest_first {
        if receipt.kind == EntryKind::Folder || moved.contains(&&receipt.path) {
            continue;
        }
        let Some(newer) = newer.insert(&receipt.path, receipt) else { continue };
        let unknown = (newer.before.is_none() && newer.action != ReceiptAction::Created)
            || (receipt.after.is_none() && receipt.action != ReceiptAction::Deleted);
        if !unknown && newer.before != receipt.after {
            found.push(Conflict {
                path: receipt.path.clone(),
                left: receipt.after,
                found: newer.before,
                kept: newer.pre_image.clone(),
                to: None,
                rights: None,
            });
        }
    }
    found
}

/// What somebody else did between the changes, but for files that are conflicts already, or are as
/// they shall be; with what would be there instead.
pub(super) fn foreign(
    between: &[Conflict],
    steps: &BTreeMap<HostPath, Step>,
    now: &BTreeMap<HostPath, Now>,
    known: &[Conflict],
) -> Vec<Conflict> {
    let is_lost = |conflict: &Conflict| {
        let step = steps.get(&conflict.path)?;
        let known = known.iter().any(|known| known.path == conflict.path);
        let done = now.get(&conflict.path)?.found == aim(step, steps, now);
        (!known && !done).then(|| to(step, now))
    };
    let with = |conflict: Conflict| Some(Conflict { to: is_lost(&conflict)?, ..conflict });
    between.iter().cloned().filter_map(with).collect()
}

/// What would be at a path; none where nothing would.
fn to(step: &Step, now: &BTreeMap<HostPath, Now>) -> Option<Blob> {
    match &step.to {
        Restore::Content(blob) | Restore::Link(blob) => Some(blob.clone()),
        Restore::From(holder) => now.get(holder).and_then(|now| now.kept.clone()),
        Restore::Nothing => None,
    }
}

/// The content that a path shall have.
fn aim(
    step: &Step,
    steps: &BTreeMap<HostPath, Step>,
    now: &BTreeMap<HostPath, Now>,
) -> Option<Hash> {
    match &step.to {
        Restore::Content(blob) | Restore::Link(blob) => Some(blob.hash),
        Restore::Nothing => None,
        Restore::From(holder) => {
            let found = now.get(holder).and_then(|now| now.found);
            found.or_else(|| steps.get(holder).and_then(|step| step.left))
        }
    }
}

/// A file that shall go, whose content is neither kept nor wanted elsewhere.
pub(super) fn only_copy<'a>(
    steps: &'a BTreeMap<HostPath, Step>,
    now: &BTreeMap<HostPath, Now>,
) -> Option<&'a HostPath> {
    let stays = |path: &HostPath| {
        steps.values().any(|step| matches!(&step.to, Restore::From(one) if one == path))
    };
    let lost = |(path, step): &(&'a HostPath, &'a Step)| {
        let now = &now[*path];
        matches!(step.to, Restore::Nothing)
            && now.found.is_some()
            && now.kept.is_none()
            && !stays(path)
    };
    steps.iter().find(lost).map(|(path, _)| path)
}
