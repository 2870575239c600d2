//! Attributes changes: finds what other calls change while a command runs, so that the command
//! reports only its own changes.
//!
//! **Invariant:** of a path that others changed too, the command did what lies between their
//! changes. That is from the state before it to what the first of them found, and from what each of
//! them left to what came next. An unknown state counts as matching. What others left is stored as
//! long as the command may be found to have continued from it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use haft_host::{Content, Node, Stamp, TreeScan};
use haft_types::{EntryKind, Hash, HostPath, Receipt, ReceiptAction, Rights};

use super::compare::{Change, change, hash};
use crate::{PinGuard, PreImages};

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
    step: Step,
    /// Whether it may have got other rights.
    gave_rights: bool,
    /// Whether it was done by a command that ran during the look before this one: that may have found
    /// it, or a part of it.
    early: bool,
    /// Whether another process did it, at some time since the look before the command began.
    outside: bool,
    _left: Option<PinGuard>,
}

/// What other calls did since a command is watched.
#[derive(Default)]
pub(super) struct Claims {
    /// In the order in which they did it.
    all: Vec<Claim>,
    /// The places of those of one path.
    of: HashMap<HostPath, Vec<usize>>,
    /// How many of them may have come before the look before the command.
    early: usize,
    /// How many of them came before the look after the command for sure.
    settled: usize,
}

impl Stands {
    /// What a look found; what an ignore file hid is not known.
    fn found(survey: &TreeScan, path: &HostPath) -> Self {
        match survey.nodes.get(path) {
            Some(node) => hash(node).map_or(Self::Unknown, |hash| Self::This(node.kind, hash)),
            None if survey.lacked_ignored(path) => Self::Nothing,
            None if survey.ignored(path, false) => Self::Unknown,
            None => Self::Nothing,
        }
    }

    fn fits(self, other: Self) -> bool {
        self == other || self == Self::Unknown || other == Self::Unknown
    }
}

impl Claims {
    /// Takes note of changes that are told by others; `early` ones may be in the look before.
    pub(super) fn add(&mut self, receipts: &[Receipt], early: bool, images: &dyn PreImages) {
        let from = self.all.len();
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
        self.all[from..].iter_mut().for_each(|claim| claim.early = early);
    }

    /// The same of what another process did since the look before the command began.
    pub(super) fn add_outside(&mut self, receipts: &[Receipt], images: &dyn PreImages) {
        let from = self.all.len();
        self.add(receipts, false, images);
        self.all[from..].iter_mut().for_each(|claim| claim.outside = true);
    }

    fn add_one(&mut self, path: &HostPath, step: Step, gave_rights: bool, images: &dyn PreImages) {
        let left = match step.1 {
            Stands::This(_, hash) => Some(images.hold(hash)),
            Stands::Nothing | Stands::Unknown => None,
        };
        self.of.entry(path.clone()).or_default().push(self.all.len());
        self.all.push(Claim { step, gave_rights, early: false, outside: false, _left: left });
    }

    /// The paths that others changed.
    pub(super) fn paths(&self) -> HashSet<HostPath> {
        self.of.keys().cloned().collect()
    }

    /// The look before the command has ended.
    pub(super) fn looked(&mut self) {
        self.early = self.all.len();
    }

    /// The look after the command begins.
    pub(super) fn looks(&mut self) {
        self.settled = self.all.len();
    }

    /// Leaves of the changes that two looks found what the command did; `covers` says which paths
    /// they are about.
    pub(super) fn leave_own(
        &self,
        before: &TreeScan,
        after: &TreeScan,
        changes: Vec<Change>,
        covers: &dyn Fn(&HostPath) -> bool,
    ) -> Vec<Change> {
        if self.all.is_empty() {
            return changes;
        }
        let mut paths: Vec<&HostPath> = self.of.keys().collect();
        paths.sort();
        paths.retain(|path| !self.unfound(path, Stands::found(before, path)).is_empty());
        let is_about = |path: &HostPath| paths.binary_search(&path).is_ok();
        let mut own = Vec::with_capacity(changes.len());
        for found in changes {
            match &found.action {
                // Where one of the names is another's business, each is looked at by itself.
                ReceiptAction::Renamed { from } if is_about(from) || is_about(&found.path) => {
                    if !is_about(from) {
                        let old = before.nodes.get(from);
                        own.push(change(from, ReceiptAction::Deleted, old, None));
                    }
                    if !is_about(&found.path) {
                        let new = after.nodes.get(&found.path);
                        own.push(change(&found.path, ReceiptAction::Created, None, new));
                    }
                }
                _ if is_about(&found.path) => {}
                _ => own.push(found),
            }
        }
        let is_found = |path: &HostPath| {
            before.nodes.contains_key(path) || after.nodes.contains_key(path) || covers(path)
        };
        for path in paths.into_iter().filter(|path| is_found(path)) {
            self.between(path, before, after, &mut own);
        }
        own
    }

    /// What the command did to a path between, before and after the changes of others.
    fn between(&self, path: &HostPath, before: &TreeScan, after: &TreeScan, own: &mut Vec<Change>) {
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
            && !self.unfound(path, ends.0).iter().any(|(_, claim)| claim.gave_rights)
        {
            let was = Node { rights: old.rights.clone(), ..(**new).clone() }.into();
            own.push(change(path, ReceiptAction::Changed, Some(&was), Some(new)));
        }
    }

    /// The changes of a path with their places, without those that the look before found already: of
    /// commands that ran then, up to the last one that left what it found.
    fn unfound(&self, path: &HostPath, first: Stands) -> Vec<(usize, &Claim)> {
        let places = self.of.get(path).map_or(&[][..], Vec::as_slice);
        let mut claims: Vec<(usize, &Claim)> =
            places.iter().map(|place| (*place, &self.all[*place])).collect();
        let found = |(_, claim): &(usize, &Claim)| claim.early && claim.step.1 == first;
        if let Some((last, _)) = claims.iter().rfind(|claim| found(claim)).copied() {
            claims.retain(|(place, claim)| !claim.early || *place > last);
        }
        claims
    }

    /// From what to what the command changed a path, in order.
    fn steps(&self, path: &HostPath, (first, last): Step) -> Vec<Step> {
        let claims = self.unfound(path, first);
        let settled = claims.iter().filter(|(number, _)| *number < self.settled).count();
        let may_be_early =
            |(number, claim): &&(usize, &Claim)| *number < self.early || claim.outside;
        let early = claims.iter().take_while(may_be_early).count();
        // It may have found something on the way.
        let step = |claim: &Claim| match claim.step {
            (_, to) if claim.early => (Stands::Unknown, to),
            step => step,
        };
        let all: Vec<Step> = claims
            .iter()
            .enumerate()
            .map(|(number, (_, claim))| if number == 0 { step(claim) } else { claim.step })
            .collect();
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
