//! What other calls change while a command runs, so that the command tells only what is its own.
//!
//! **Invariant:** of a path that others changed too, the command did what lies between their changes:
//! from what was there before it to what the first of them found, and from what each of them left to
//! what came next. What is not known counts as what fits. What others left is kept for as long as the
//! command may be found to have gone on with it.

use std::sync::Arc;

use haft_host::{Content, Node, Stamp, Survey};
use haft_types::{EntryKind, Hash, HostPath, Receipt, ReceiptAction, Rights};

use super::diff::{Change, change, hash};
use crate::{Held, PreImages};

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    Nothing,
    This(EntryKind, Hash),
    /// Nobody knows what.
    Unknown,
}

/// From what to what a path was changed.
type Step = (Stands, Stands);

/// What another call did to one path.
struct Claim {
    path: HostPath,
    step: Step,
    /// Whether it may have got other rights.
    gave_rights: bool,
    _left: Option<Held>,
}

/// What other calls did since a command is watched.
#[derive(Default)]
pub(super) struct Claims {
    /// In the order in which they did it.
    all: Vec<Claim>,
    /// How many of them may have come before the look before the command.
    early: usize,
    /// How many of them came before the look after the command for sure.
    settled: usize,
}

impl Stands {
    /// What a look found; what an ignore file hid is not known.
    fn found(survey: &Survey, path: &HostPath) -> Self {
        match survey.nodes.get(path) {
            Some(node) => hash(node).map_or(Self::Unknown, |hash| Self::This(node.kind, hash)),
            None if survey.ignored(path, false) => Self::Unknown,
            None => Self::Nothing,
        }
    }

    fn fits(self, other: Self) -> bool {
        self == other || self == Self::Unknown || other == Self::Unknown
    }
}

impl Claims {
    /// Takes note of changes that are told by others.
    pub(super) fn add(&mut self, receipts: &[Receipt], images: &dyn PreImages) {
        for receipt in receipts {
            let known = |hash: Option<Hash>| {
                hash.map_or(Stands::Unknown, |hash| Stands::This(receipt.kind, hash))
            };
            let before = match receipt.action {
                ReceiptAction::Created | ReceiptAction::Renamed { .. } => Stands::Nothing,
                ReceiptAction::Changed | ReceiptAction::Deleted => known(receipt.before),
            };
            let after = match receipt.action {
                ReceiptAction::Deleted => Stands::Nothing,
                _ => known(receipt.after),
            };
            if let ReceiptAction::Renamed { from } = &receipt.action {
                self.add_one(from, (known(receipt.before), Stands::Nothing), true, images);
            }
            let gave_rights = receipt.rights.is_some() || receipt.action != ReceiptAction::Changed;
            self.add_one(&receipt.path, (before, after), gave_rights, images);
        }
    }

    fn add_one(&mut self, path: &HostPath, step: Step, gave_rights: bool, images: &dyn PreImages) {
        let left = match step.1 {
            Stands::This(_, hash) => Some(images.hold(hash)),
            Stands::Nothing | Stands::Unknown => None,
        };
        self.all.push(Claim { path: path.clone(), step, gave_rights, _left: left });
    }

    /// The look before the command has ended.
    pub(super) fn looked(&mut self) {
        self.early = self.all.len();
    }

    /// The look after the command begins.
    pub(super) fn looks(&mut self) {
        self.settled = self.all.len();
    }

    pub(super) fn is_about(&self, path: &HostPath) -> bool {
        self.all.iter().any(|claim| claim.path == *path)
    }

    /// Leaves of the changes that two looks found what the command did; `covers` says which paths
    /// they are about.
    pub(super) fn leave_own(
        &self,
        before: &Survey,
        after: &Survey,
        changes: Vec<Change>,
        covers: &dyn Fn(&HostPath) -> bool,
    ) -> Vec<Change> {
        if self.all.is_empty() {
            return changes;
        }
        let mut own = Vec::with_capacity(changes.len());
        for found in changes {
            match &found.action {
                // Where one of the names is another's business, each is looked at by itself.
                ReceiptAction::Renamed { from }
                    if self.is_about(from) || self.is_about(&found.path) =>
                {
                    if !self.is_about(from) {
                        let old = before.nodes.get(from);
                        own.push(change(from, ReceiptAction::Deleted, old, None));
                    }
                    if !self.is_about(&found.path) {
                        let new = after.nodes.get(&found.path);
                        own.push(change(&found.path, ReceiptAction::Created, None, new));
                    }
                }
                _ if self.is_about(&found.path) => {}
                _ => own.push(found),
            }
        }
        let mut paths: Vec<&HostPath> = self.all.iter().map(|claim| &claim.path).collect();
        paths.sort();
        paths.dedup();
        let is_found = |path: &HostPath| {
            before.nodes.contains_key(path) || after.nodes.contains_key(path) || covers(path)
        };
        for path in paths.into_iter().filter(|path| is_found(path)) {
            self.between(path, before, after, &mut own);
        }
        own
    }

    /// What the command did to a path between, before and after the changes of others.
    fn between(&self, path: &HostPath, before: &Survey, after: &Survey, own: &mut Vec<Change>) {
        let (old, new) = (before.nodes.get(path), after.nodes.get(path));
        // What came and went has rights that nobody knows.
        let unseen = || {
            let (kind, stamp, rights) = (EntryKind::File, Stamp::default(), Rights::default());
            Arc::new(Node { kind, stamp, rights, content: Content::Unread, is_fresh: false })
        };
        let like = old.or(new).cloned().unwrap_or_else(unseen);
        let ends = (Stands::found(before, path), Stands::found(after, path));
        let steps = self.steps(path, ends);
        let alike = steps
            .iter()
            .all(|step| matches!(step, (Stands::This(a, _), Stands::This(b, _)) if a == b));
        let last = steps.last().map(|step| step.1);
        let node = |stands: Stands| match stands {
            Stands::Nothing => None,
            Stands::This(kind, hash) => {
                let content = match kind {
                    EntryKind::Folder => Content::Nothing,
                    _ => Content::NoRoom(hash),
                };
                Some(Node { kind, content, ..(*like).clone() }.into())
            }
            Stands::Unknown => Some(Node { content: Content::Unread, ..(*like).clone() }.into()),
        };
        let count = steps.len();
        for (number, (from, to)) in steps.into_iter().enumerate() {
            let (from_node, to_node) = (node(from), node(to));
            // What the looks found is known best.
            let from_node = if number == 0 && from == ends.0 { old.cloned() } else { from_node };
            let to_node = if number + 1 == count && to == ends.1 { new.cloned() } else { to_node };
            let (from, to) = (from_node.as_ref(), to_node.as_ref());
            match (from, to) {
                (Some(was), Some(is)) if was.kind != is.kind => {
                    own.push(change(path, ReceiptAction::Deleted, from, None));
                    own.push(change(path, ReceiptAction::Created, None, to));
                }
                (Some(_), Some(_)) => own.push(change(path, ReceiptAction::Changed, from, to)),
                (None, _) => own.push(change(path, ReceiptAction::Created, None, to)),
                (_, None) => own.push(change(path, ReceiptAction::Deleted, from, None)),
            }
        }
        // Rights that nobody else gave.
        if let (Some(old), Some(new)) = (old, new)
            && old.kind == new.kind
            && old.kind != EntryKind::Link
            && old.rights != new.rights
            && alike
            && last != Some(ends.1)
            && !self.all.iter().any(|claim| claim.path == *path && claim.gave_rights)
        {
            let was = Node { rights: old.rights.clone(), ..(**new).clone() }.into();
            own.push(change(path, ReceiptAction::Changed, Some(&was), Some(new)));
        }
    }

    /// From what to what the command changed a path, in order.
    fn steps(&self, path: &HostPath, (first, last): Step) -> Vec<Step> {
        let of = |range: &[Claim]| range.iter().filter(|claim| claim.path == *path).count();
        let all: Vec<Step> =
            self.all.iter().filter(|claim| claim.path == *path).map(|claim| claim.step).collect();
        let (early, settled) = (of(&self.all[..self.early]), of(&self.all[..self.settled]));
        // Changes while the files were looked at are in what was found, or are not.
        let is_first = |number: &usize| match number {
            0 => all[0].0.fits(first),
            number => all[*number - 1].1.fits(first),
        };
        let start = (0..=early).find(is_first).unwrap_or(0);
        let is_last = |number: &usize| match number {
            0 => last.fits(first),
            number => all[*number - 1].1.fits(last),
        };
        let end = (settled.max(start)..=all.len()).rev().find(is_last).unwrap_or(all.len());
        let mut steps = Vec::new();
        let mut at = first;
        let theirs = all.get(start..end).unwrap_or_default();
        for (from, to) in theirs.iter().copied().chain([(last, last)]) {
            if !at.fits(from) {
                steps.push((at, from));
            }
            at = to;
        }
        steps
    }
}
