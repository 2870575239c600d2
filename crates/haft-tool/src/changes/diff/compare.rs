//! Compares two scans of the same files, and makes the receipts of the differences.
//!
//! **Invariant:** a path counts as created only where nothing was there before. A file that an
//! ignore file hid before, and no longer hides, was there. A file counts as renamed only where its
//! old name is free now, its new name was free before, and its content is the same. A file that is
//! older than the command, and was nowhere below the folders, was moved in: removing it would lose
//! it.

use std::{
    cell::LazyCell,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use haft_host::{Content, Copies, CreationTime, DEPTH_LIMIT, Node, Stamp, TreeScan};
use haft_types::{Blob, EntryKind, Hash, HostPath, Receipt, ReceiptAction, Rights};

use super::{
    Changes, DiffLimits, HASHED, KeptReceipts,
    attribution::Claims,
    ignored::{self, Moves, Uncovered},
};
use crate::PreImages;

/// How one path changed: what was there, and what is.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) path: HostPath,
    pub(super) action: ReceiptAction,
    /// It was there before, where nobody looked.
    moved_in: bool,
    before: Option<Node>,
    pub(super) after: Option<Node>,
}

impl Change {
    /// What a file is that came, and that no look has read.
    pub(super) fn unread(path: &HostPath, stamp: Stamp) -> Self {
        let (rights, content) = (Rights::default(), Content::Big);
        let node = Node { kind: EntryKind::File, stamp, rights, content, is_fresh: true };
        change(path, ReceiptAction::Created, None, Some(&Arc::new(node)))
    }

    /// Reports whether it can be taken back by a hash alone, of a file of at most `most` bytes.
    pub(super) fn is_big(&self, most: u64) -> bool {
        let is_big = |node: &Node| node.content == Content::Big && node.stamp.size <= most;
        let by_hash = match self.action {
            ReceiptAction::Created | ReceiptAction::Renamed { .. } => true,
            // What it held is known.
            ReceiptAction::Changed => self.before.as_ref().is_some_and(|old| hash(old).is_some()),
            ReceiptAction::Deleted => false,
        };
        by_hash && !self.moved_in && self.after.as_ref().is_some_and(is_big)
    }

    /// Reports whether only the rights of a big file are others: what it held before it holds now.
    pub(super) fn is_of_rights(&self) -> bool {
        let state = |node: &Node| {
            let Stamp { id, size, modified, .. } = node.stamp;
            (node.content == Content::Big).then_some((id, size, modified))
        };
        let (before, after) = (self.before.as_ref(), self.after.as_ref());
        self.action == ReceiptAction::Changed
            && before.and_then(state).is_some_and(|before| after.and_then(state) == Some(before))
    }

    /// Takes note of the hash of what is there.
    pub(super) fn know(&mut self, hash: Hash) {
        let nodes = self.before.iter_mut().chain(&mut self.after);
        for node in nodes.filter(|node| node.content == Content::Big) {
            node.content = Content::NoRoom(hash);
        }
    }
}

/// Says when what stands at a path came into being.
pub(super) type BornAt<'a> = &'a dyn Fn(&HostPath) -> Option<CreationTime>;

/// Says which paths a look is about, whether anything stands there or not.
type Covers<'a> = &'a dyn Fn(&HostPath) -> bool;

/// Reports whether less than half of the room that copies take is of use, and some is wanted.
pub(super) fn is_wasteful(survey: &TreeScan, used: u64) -> bool {
    let mut live = 0;
    let mut wanting = false;
    for node in survey.nodes.values() {
        match node.content {
            Content::Kept { len, .. } => live += len,
            Content::NoRoom(_) => wanting = true,
            _ => {}
        }
    }
    wanting && live < used / 2
}

/// What differs, without what is told already.
pub(super) fn changes(
    before: &TreeScan,
    after: &TreeScan,
    (claims, covers): (&Claims, Covers<'_>),
    born: BornAt<'_>,
) -> Changes {
    let mut gone: Vec<&HostPath> = Vec::new();
    let mut come: Vec<&HostPath> = Vec::new();
    let mut changes = Changes::new();
    for (path, old) in &before.nodes {
        match after.nodes.get(path) {
            None => gone.push(path),
            // What was not looked into again is shared.
            Some(new) if Arc::ptr_eq(old, new) => {}
            Some(new) if new.kind != old.kind => {
                changes.push(change(path, ReceiptAction::Deleted, Some(old), None));
                changes.push(change(path, ReceiptAction::Created, None, Some(new)));
            }
            Some(new) if !is_same(old, new) => {
                changes.push(change(path, ReceiptAction::Changed, Some(old), Some(new)));
            }
            Some(_) => {}
        }
    }
    if after.nodes.len() + gone.len() > before.nodes.len() {
        come.extend(after.nodes.keys().filter(|path| !before.nodes.contains_key(*path)));
    }
    // Each of two names of a file has to find the other one always.
    gone.sort();
    come.sort();
    renamed(before, after, &mut gone, &mut come, &mut changes);
    come.retain(|path| !ignored::may_be_old(before, after, path, born));
    let shifted = shifted_rules(before, after);
    let ids = LazyCell::new(|| ids(before));
    come.retain(|path| {
        let new = &after.nodes[*path];
        let was_there = || {
            before.ignored(path, new.kind == EntryKind::Folder)
                // It had another name, or nothing stood there when somebody looked.
                && !ids.contains(&new.stamp.id)
                && !before.named.contains(*path)
                && (new.stamp.changed < before.began
                    || born(path).is_some_and(|born| born.at < before.began))
        };
        // It may be that git keeps track of it only now.
        let shifts = before.indexes != after.indexes;
        !(shifts || shifted.iter().any(|folder| path.is_within(folder))) || !was_there()
    });
    let deleted = |path| change(path, ReceiptAction::Deleted, before.nodes.get(path), None);
    changes.extend(gone.into_iter().map(deleted));
    created(before, after, &come, born, &mut changes);
    let mut changes = claims.leave_own(before, after, changes, covers);
    // What went goes first, the deepest of it before what it was in.
    changes.sort_by(|a, b| {
        let went = |change: &Change| change.action == ReceiptAction::Deleted;
        let by_path = if went(a) { b.path.cmp(&a.path) } else { a.path.cmp(&b.path) };
        went(b).cmp(&went(a)).then(by_path)
    });
    changes
}

pub(super) fn change(
    path: &HostPath,
    action: ReceiptAction,
    before: Option<&Arc<Node>>,
    after: Option<&Arc<Node>>,
) -> Change {
    let node = |node: Option<&Arc<Node>>| node.map(|node| (**node).clone());
    let (before, after) = (node(before), node(after));
    Change { path: path.clone(), action, moved_in: false, before, after }
}

/// Tells what was made from what was moved in: that is older, and had no name below the folders.
fn created(
    before: &TreeScan,
    after: &TreeScan,
    come: &[&HostPath],
    born: BornAt<'_>,
    changes: &mut Changes,
) {
    let ids = LazyCell::new(|| ids(before));
    for path in come {
        let new = &after.nodes[*path];
        let is_old = born(path).is_some_and(|born| born.names == 1 && born.is_before(before.began));
        let moved_in = is_old && !ids.contains(&new.stamp.id);
        let created = change(path, ReceiptAction::Created, None, Some(new));
        changes.push(Change { moved_in, ..created });
    }
}

/// What stood there before, whatever its names were.
fn ids(before: &TreeScan) -> HashSet<(u64, u64)> {
    before.nodes.values().map(|node| node.stamp.id).collect()
}

/// Pairs the files that went with those that came.
fn renamed(
    before: &TreeScan,
    after: &TreeScan,
    gone: &mut Vec<&HostPath>,
    come: &mut Vec<&HostPath>,
    changes: &mut Changes,
) {
    let mut by_id: HashMap<(u64, u64), Vec<&HostPath>> = HashMap::new();
    for path in gone.iter().rev() {
        by_id.entry(before.nodes[*path].stamp.id).or_default().push(path);
    }
    come.retain(|path| {
        let new = &after.nodes[*path];
        let from = by_id.get_mut(&new.stamp.id).and_then(|names| {
            let old = &before.nodes[*names.last()?];
            holds_same(old, new).then(|| names.pop()).flatten()
        });
        let Some(from) = from else { return true };
        let action = ReceiptAction::Renamed { from: from.clone() };
        changes.push(change(path, action, before.nodes.get(from), Some(new)));
        gone.retain(|path| *path != from);
        false
    });
}

/// Reports whether it is the same thing, though the disk gives a number anew once it is free.
fn holds_same(old: &Node, new: &Node) -> bool {
    old.kind == new.kind
        && match old.kind {
            EntryKind::File => {
                let state = |node: &Node| (node.stamp.size, node.stamp.modified);
                let content = match (&old.content, &new.content) {
                    (Content::Big, Content::Big) => state(old) == state(new),
                    _ => hash(old).is_some() && hash(old) == hash(new),
                };
                content && old.rights == new.rights
            }
            EntryKind::Folder => old.stamp.modified == new.stamp.modified,
            _ => false,
        }
}

/// The folders for which other rules hold now than before.
fn shifted_rules(before: &TreeScan, after: &TreeScan) -> Vec<HostPath> {
    let differs = |file: &&HostPath| before.rules.get(*file) != after.rules.get(*file);
    let files = before.rules.keys().chain(after.rules.keys()).filter(differs);
    // `.git/info/exclude` stands for the folder of `.git`.
    let folder = |file: &HostPath| match file.file_name() {
        Some(b"exclude") => file.parent()?.parent()?.parent(),
        _ => file.parent(),
    };
    files.filter_map(folder).collect()
}

/// Reports whether nothing that undo could bring back differs.
fn is_same(old: &Node, new: &Node) -> bool {
    let content = match (&old.content, &new.content) {
        (Content::Big | Content::Unread, _) | (_, Content::Big | Content::Unread) => {
            let state = |node: &Node| (node.stamp.id, node.stamp.size, node.stamp.modified);
            old.stamp == new.stamp || state(old) == state(new)
        }
        (Content::Git { .. }, Content::Git { .. }) => old.content == new.content,
        _ => hash(old) == hash(new),
    };
    // Nobody gives permissions to a link.
    content && (old.kind == EntryKind::Link || old.rights == new.rights)
}

/// The hash of what stands there, as receipts have it; none where that is not known.
pub(super) fn hash(node: &Node) -> Option<Hash> {
    match &node.content {
        Content::Nothing => Some(Hash::of(b"")),
        Content::Kept { hash, .. } | Content::NoRoom(hash) => Some(*hash),
        Content::Link(target) => Some(Hash::of(target)),
        Content::Big | Content::Unread | Content::Git { .. } => None,
    }
}

/// Notes in the receipts of ignored files the folders that were made for them and that no look finds.
pub(super) fn note_made(before: &TreeScan, receipts: &mut [Receipt]) {
    let Some(passed) = &before.passed else { return };
    let mut known: HashSet<HostPath> = HashSet::new();
    // These have receipts of their own.
    let folders = receipts
        .iter()
        .filter(|one| one.action == ReceiptAction::Created && one.kind == EntryKind::Folder);
    let folders: HashSet<HostPath> = folders.map(|one| one.path.clone()).collect();
    let created = |receipt: &&mut Receipt| receipt.action == ReceiptAction::Created;
    for receipt in receipts.iter_mut().filter(created) {
        let above = std::iter::successors(receipt.path.parent(), HostPath::parent);
        // Up to a folder of which it is known that it was there.
        let made: Vec<HostPath> = above
            .take_while(|folder| {
                let is_known = before.nodes.contains_key(folder)
                    || before.ignored_tree.folders.contains_key(folder);
                !is_known && !before.roots.contains(folder) && !folders.contains(folder)
            })
            .collect();
        let is_folder = receipt.kind == EntryKind::Folder;
        if made.is_empty() || !before.ignored(&receipt.path, is_folder) {
            continue;
        }
        // In one that nobody looked into there may have been others.
        if made.last().is_some_and(|top| before.ignored(top, true))
            && !made.iter().any(|folder| passed.contains(folder))
        {
            let new = made.into_iter().rev().filter(|folder| known.insert(folder.clone()));
            receipt.made = new.collect();
        }
    }
}

/// What changed that is neither kept nor brought back: what git ignores and was not looked at, what
/// rules hide, pipes and the like, and what `.git` holds. Sorted; `is_gone` looks whether nothing is at a path.
pub(super) fn uncovered(
    before: &TreeScan,
    after: &TreeScan,
    changes: &[Change],
    is_gone: impl Fn(&HostPath) -> bool,
) -> Uncovered {
    let mut all = ignored::lost(before, after, changes, &is_gone);
    let (Some(then), Some(now)) = (&before.passed, &after.passed) else { return all };
    let moves = Moves::of(changes);
    // What was looked at, whatever ignores it, and what is counted.
    let covered = |path: &HostPath| {
        before.nodes.get(path).is_some_and(|node| node.kind != EntryKind::Folder)
            || before.ignored_tree.counts.contains_key(path)
    };
    let gone = then.iter().filter(|path| {
        let is_there = now.contains(*path) || after.nodes.contains_key(*path);
        !is_there && !covered(path) && !moves.moved(path) && is_gone(path)
    });
    all.extend(gone.map(|path| (path.clone(), "gone".into())));
    for (path, now) in &after.repositories {
        match before.repositories.get(path) {
            Some(then) if then == now => {}
            Some(_) => all.push((path.clone(), "changed".into())),
            None if moved_to(path, changes) => {}
            None => all.push((path.clone(), "made".into())),
        }
    }
    let gone =
        before.others.iter().filter(|path| !after.others.contains(*path) && !moves.moved(path));
    // A file in its place is no less its end.
    let is_gone = |path: &&HostPath| after.nodes.contains_key(*path) || is_gone(path);
    all.extend(
        gone.filter(is_gone).map(|path| (path.clone(), "(pipe, socket or device) gone".into())),
    );
    let is_new = |path: &&HostPath| {
        let was_there = before.others.contains(*path) || before.ignored(path, false);
        !was_there && !moved_to(path, changes)
    };
    let made = after.others.iter().filter(is_new);
    all.extend(made.map(|path| (path.clone(), "(pipe, socket or device) made".into())));
    let too_deep = |change: &&Change| {
        change.action == ReceiptAction::Created
            && change.after.as_ref().is_some_and(|node| node.kind == EntryKind::Folder)
            && after.roots.iter().any(|root| is_deepest(root, &change.path))
    };
    let deep = changes.iter().filter(too_deep);
    all.extend(
        deep.map(|change| (change.path.clone(), "(nested too deep) not looked into".into())),
    );
    for (top, listed) in &after.listed {
        let other = before.listed.get(top).is_some_and(|before| before != listed);
        let Ok(git) = top.join_bytes(b".git") else { continue };
        // What is told of the whole says no less.
        if other && !all.iter().any(|(path, _)| *path == git) {
            all.extend(git.join_bytes(b"index").map(|index| (index, "changed".into())));
        }
    }
    all.sort();
    all
}

/// Reports whether a folder lies so deep in one of those looked at that no look goes into it.
fn is_deepest(root: &HostPath, folder: &HostPath) -> bool {
    folder.is_within(root) && folder.names().count() == root.names().count() + DEPTH_LIMIT
}

/// Reports whether a path came along with a folder.
fn moved_to(path: &HostPath, changes: &[Change]) -> bool {
    let moves = |change: &Change| matches!(change.action, ReceiptAction::Renamed { .. });
    changes.iter().any(|change| moves(change) && path.is_within(&change.path))
}

/// Keeps what changed files held, and gives the receipt of each change.
pub(super) fn receipts(
    changes: &[Change],
    copies: &dyn Copies,
    images: &dyn PreImages,
    host: &str,
    watching: DiffLimits,
) -> KeptReceipts {
    let mut kept =
        KeptReceipts { receipts: Vec::with_capacity(changes.len()), ..KeptReceipts::default() };
    for change in changes {
        let Some(node) = change.before.as_ref().or(change.after.as_ref()) else { continue };
        if change.moved_in {
            kept.moved_in.push((change.path.clone(), node.kind));
            continue;
        }
        let mut receipt = Receipt::new(host.to_owned(), change.path.clone(), change.action.clone());
        receipt.kind = node.kind;
        receipt.after = change.after.as_ref().and_then(hash);
        let mut why = None;
        if let Some(before) = &change.before {
            receipt.before = hash(before);
            let stands = change.after.as_ref().is_some_and(|after| after.rights == before.rights);
            let renamed = matches!(change.action, ReceiptAction::Renamed { .. });
            // Of what came and went beside another call nobody knows them.
            let known = before.rights != Rights::default();
            receipt.rights = (known && (renamed || !stands)).then(|| before.rights.clone());
            let gave = change.action == ReceiptAction::Changed && receipt.rights.is_some();
            receipt.rights_after =
                change.after.as_ref().filter(|_| gave).map(|after| after.rights.clone());
            if node.kind != EntryKind::Folder && !renamed {
                match pre_image(before, copies, images, watching) {
                    Ok(blob) => {
                        kept.held.push(images.hold(blob.hash));
                        receipt.pre_image = Some(blob);
                    }
                    Err(text) => why = Some(text),
                }
            }
        }
        if change.after.is_some() && receipt.after.is_none() {
            why.get_or_insert_with(|| match &change.after {
                Some(node) if node.content == Content::Big => {
                    format!("it has more than {HASHED} bytes, too many to know it again by")
                }
                node => unread(node.as_ref(), watching),
            });
        }
        kept.lost.extend(why.map(|why| (change.path.clone(), why)));
        kept.receipts.push(receipt);
    }
    kept
}

/// Keeps what was left, for a command that runs beside and may go on with it.
pub(super) fn share(
    changes: &[Change],
    copies: &dyn Copies,
    images: &dyn PreImages,
    kept: &mut KeptReceipts,
) {
    for left in changes.iter().filter_map(|change| change.after.as_ref()) {
        let content = match &left.content {
            Content::Kept { at, len, .. } => copies.get(*at, *len).ok(),
            Content::Link(target) => Some(target.clone().into()),
            _ => None,
        };
        let blob = content.zip(hash(left)).map(|(content, hash)| images.put(&content, hash));
        // What is not kept is told where it is missed.
        if let Some(Ok(blob)) = blob {
            kept.held.push(images.hold(blob.hash));
        }
    }
}

/// Keeps what a file held, or where a link pointed.
fn pre_image(
    node: &Node,
    copies: &dyn Copies,
    images: &dyn PreImages,
    watching: DiffLimits,
) -> Result<Blob, String> {
    let (content, hash) = match &node.content {
        Content::Kept { hash, at, len } => {
            (copies.get(*at, *len).map_err(|error| error.to_string())?, *hash)
        }
        Content::Link(target) => (target.clone().into(), Hash::of(target)),
        // Another call may have kept it.
        Content::NoRoom(hash) if let Some(blob) = images.find(hash) => return Ok(blob),
        Content::NoRoom(_) => {
            let text = "there was no room for a copy: undo.session_bytes in the settings, and of what \
                        git ignores shell.changes.ignored_bytes";
            return Err(text.into());
        }
        _ => return Err(unread(Some(node), watching)),
    };
    images.put(&content, hash).map_err(|error| error.to_string())
}

fn unread(node: Option<&Node>, watching: DiffLimits) -> String {
    match node.map(|node| &node.content) {
        Some(Content::Big) => {
            let most = watching.file_bytes;
            format!("it has more than {most} bytes: shell.changes.file_bytes in the settings")
        }
        Some(Content::Git { .. }) => "git does not have it any more".to_owned(),
        _ => "it could not be read".to_owned(),
    }
}
