//! Undo for folders that were created, deleted or got other rights: they are removed, made, or get
//! their old rights.
//!
//! **Invariant:** a folder is removed only where it is empty by then. A folder that undo writes
//! into stays writable until everything in it is done; its own rights are set last.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use haft_host::{FileKind, ListHow, Located, NewEntry};
use haft_types::{EntryKind, Follow, Hash, HostPath, Receipt, ReceiptAction, Rights};

use super::{Conflict, KeptFolder, Restore, Step, Steps, Undo, UndoError};

/// What a folder has that is made anew and of which nothing is known.
const MODE: u32 = 0o755;
/// What its owner needs to work in a folder.
const OWN: u32 = 0o700;
/// Most names that are told of what keeps a folder.
const NAMED: usize = 4;

/// What is to be done to one folder.
#[derive(Clone, Debug)]
pub(super) struct FolderStep {
    /// Whether the changes left one there.
    pub(super) left: bool,
    /// What it shall have; none where it shall be gone.
    to: Option<Rights>,
    /// What the newest change gave it, where it gave other rights.
    rights_left: Option<Rights>,
    /// Where it was before it got this name.
    from: Option<HostPath>,
}

impl FolderStep {
    /// Reports whether a folder shall be there.
    pub(super) const fn is_wanted(&self) -> bool {
        self.to.is_some()
    }

    /// Reports whether it goes: it was left, and shall be gone. One that came and went does not.
    const fn goes(&self) -> bool {
        self.left && self.to.is_none()
    }
}

/// The folders of the changes.
pub(super) type Folders = BTreeMap<HostPath, FolderStep>;

/// Adds what takes one change of a folder back; those of newer changes are there already.
pub(super) fn add(folders: &mut Folders, receipt: &Receipt) {
    let rights = || Some(receipt.rights.clone().unwrap_or(Rights::of_mode(MODE)));
    let mut set = |path: &HostPath, left: bool, to: Option<Rights>, from: Option<&HostPath>| {
        let rights_left = receipt.rights_after.clone();
        let new = FolderStep { left, to: None, rights_left, from: None };
        let step = folders.entry(path.clone()).or_insert(new);
        (step.to, step.from) = (to, from.cloned());
    };
    match &receipt.action {
        ReceiptAction::Created => set(&receipt.path, true, None, None),
        ReceiptAction::Changed => set(&receipt.path, true, rights(), None),
        ReceiptAction::Deleted => set(&receipt.path, false, rights(), None),
        ReceiptAction::Renamed { from } => {
            set(&receipt.path, true, None, Some(from));
            set(from, false, rights(), None);
        }
    }
}

/// Reports whether a path is in a folder that goes.
pub(super) fn goes(folders: &Folders, path: &HostPath) -> bool {
    above(path).any(|above| folders.get(&above).is_some_and(FolderStep::goes))
}

/// Where what is left in a folder that goes belongs: the folder that it was, which is there then.
fn origin<'a>(folders: &'a Folders, folder: &'a FolderStep) -> Option<&'a HostPath> {
    let mut from = folder.from.as_ref()?;
    // As many steps as there are names, so that a circle ends.
    for _ in 0..folders.len() {
        let step = folders.get(from)?;
        if step.to.is_some() {
            return Some(from);
        }
        from = step.from.as_ref()?;
    }
    None
}

/// The folders that are to be moved, by where they go.
fn moved(folders: &Folders) -> BTreeMap<&HostPath, &HostPath> {
    let moved = folders.iter().filter(|(_, folder)| folder.goes());
    moved.filter_map(|(path, folder)| Some((origin(folders, folder)?, path))).collect()
}

/// Where a path is now that was in a folder which is to be moved back.
fn renamed(moved: &BTreeMap<&HostPath, &HostPath>, path: &HostPath) -> Option<HostPath> {
    let (folder, now) = above(path).find_map(|above| Some((above.clone(), *moved.get(&above)?)))?;
    now.join_bytes(path.relative_to(&folder)?).ok()
}

/// What was done to a folder. It holds nothing by itself.
fn receipt(host: &str, path: &HostPath, action: ReceiptAction, rights: Option<Rights>) -> Receipt {
    let mut receipt = Receipt::new(host.to_owned(), path.clone(), action);
    receipt.kind = EntryKind::Folder;
    let nothing = Some(Hash::of(b""));
    (receipt.before, receipt.after) = match receipt.action {
        ReceiptAction::Created => (None, nothing),
        ReceiptAction::Deleted => (nothing, None),
        // The one that has the new name was the old one.
        _ => (nothing, nothing),
    };
    receipt.rights = rights;
    receipt
}

/// Why something could not be done, and where.
type Failed = (HostPath, io::Error);

impl Undo<'_> {
    /// Takes a file for moved that went out of sight with a folder which was renamed, and is there
    /// under the new name: what git ignores, though it keeps track of it, is not seen there.
    pub(super) async fn follow_folders(&self, all: &mut Steps) -> Result<(), UndoError> {
        let moved = moved(&all.folders);
        let is_gone = |step: &Step| step.left.is_none() && step.file.is_none() && !step.is_unknown;
        // What was told to be new there is another one.
        let is_new = |(_, step): &(&HostPath, &Step)| matches!(step.to, Restore::Nothing);
        let new: BTreeSet<HostPath> =
            all.files.iter().filter(is_new).map(|(path, _)| path.clone()).collect();
        let mut found: Vec<(HostPath, Step)> = Vec::new();
        for (path, step) in &mut all.files {
            let (Restore::Content(blob) | Restore::Link(blob)) = &step.to else { continue };
            let is_link = matches!(step.to, Restore::Link(_));
            let kind = if is_link { EntryKind::Link } else { EntryKind::File };
            let (true, Some(now)) = (is_gone(step), renamed(&moved, path)) else { continue };
            if new.contains(&now) {
                continue;
            }
            let failed = |source| UndoError::Io { path: now.clone(), source };
            let at = self.host.fs().locate(&now, Follow::No).await.map_err(failed)?;
            if at.real != now || at.kind != FileKind::Entry(kind) {
                continue;
            }
            if let Some(why) = (self.forbids)(&now) {
                return Err(UndoError::Denied { path: now, why });
            }
            step.file = Some(now.clone());
            let there = Step {
                left: Some(blob.hash),
                kind,
                to: Restore::Nothing,
                file: None,
                rights: None,
                rights_left: step.rights.clone(),
                made: Vec::new(),
                is_unknown: false,
            };
            found.push((now, there));
        }
        for (path, step) in found {
            all.files.entry(path).or_insert(step);
        }
        Ok(())
    }

    /// The folders that were to go and are there, with what else they hold than such folders.
    pub(super) async fn stay(&self, folders: &Folders) -> Vec<KeptFolder> {
        let mut stay: Vec<KeptFolder> = Vec::new();
        let all = ListHow { limit: usize::MAX, stat: false };
        for (path, _) in folders.iter().filter(|(_, folder)| folder.goes()) {
            let Ok(at) = self.own(path).await else { continue };
            if at.kind != FileKind::FOLDER {
                continue;
            }
            let path = path.clone();
            stay.push(match self.host.fs().list(&at, all).await {
                Ok(held) => {
                    let names = held.entries.into_iter().map(|entry| entry.name).collect();
                    KeptFolder { path, names, more: 0, closed: None }
                }
                Err(error) => {
                    let closed = Some(crate::call::cx::cause(&error));
                    KeptFolder { path, names: Vec::new(), more: 0, closed }
                }
            });
        }
        let paths: BTreeSet<HostPath> = stay.iter().map(|one| one.path.clone()).collect();
        for KeptFolder { path, names, more, .. } in &mut stay {
            names.retain(|name| !path.join_bytes(name).is_ok_and(|path| paths.contains(&path)));
            *more = names.len().saturating_sub(NAMED);
            names.truncate(NAMED);
        }
        stay
    }

    /// Refuses folders that would have to stand where something else is that stays.
    pub(super) async fn look_at_folders(
        &self,
        folders: &Folders,
        steps: &BTreeMap<HostPath, Step>,
    ) -> Result<(), UndoError> {
        if !folders.is_empty() && self.host.surveys().is_none() {
            let path = folders.keys().next().cloned().unwrap_or_else(|| self.host.home().clone());
            let source = io::Error::new(io::ErrorKind::Unsupported, "this host makes no folders");
            return Err(UndoError::Io { path, source });
        }
        for (path, folder) in folders {
            let own = |path: &HostPath| steps.get(path).is_some_and(|step| step.left.is_some());
            if folder.to.is_none() || own(path) || above(path).any(|above| own(&above)) {
                continue;
            }
            let failed = |source| UndoError::Io { path: path.clone(), source };
            let at = self.host.fs().locate(path, Follow::No).await.map_err(failed)?;
            let why = match at.kind {
                _ if at.real != *path => {
                    format!("is reached through a link now, and is {}", at.real)
                }
                FileKind::Missing | FileKind::FOLDER => continue,
                FileKind::Entry(_) => "is no folder now".to_owned(),
            };
            return Err(UndoError::Blocked { path: path.clone(), why });
        }
        Ok(())
    }

    /// The folders that somebody gave other rights than the changes left.
    pub(super) async fn folder_conflicts(&self, folders: &Folders) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        for (path, folder) in folders {
            if let (Some(left), Some(to)) = (&folder.rights_left, &folder.to)
                && let Ok(at) = self.own(path).await
                && at.kind == FileKind::FOLDER
                && let Ok(now) = self.rights(&at).await
                && now != *left
                && now != *to
            {
                let rights = Some((left.clone(), now));
                let path = path.clone();
                conflicts.push(Conflict {
                    path,
                    left: None,
                    found: None,
                    kept: None,
                    to: None,
                    rights,
                });
            }
        }
        conflicts
    }

    /// Makes the folders that are missing, topmost first, and lets itself into those that are there.
    pub(super) async fn make_folders(
        &self,
        folders: &Folders,
        receipts: &mut Vec<Receipt>,
    ) -> Result<(), Failed> {
        let moved = moved(folders);
        for (path, folder) in folders {
            let failed = |error| (path.clone(), error);
            let Some(wanted) = &folder.to else { continue };
            let at = self.own(path).await.map_err(failed)?;
            if at.kind == FileKind::Missing {
                self.make(&at, NewEntry::Folder).await.map_err(failed)?;
                let (mut action, mut had) = (ReceiptAction::Created, None);
                if let Some(from) = moved.get(path)
                    && let Ok(at) = self.own(from).await
                    && at.kind == FileKind::FOLDER
                {
                    action = ReceiptAction::Renamed { from: (*from).clone() };
                    had = Some(self.rights(&at).await.map_err(failed)?);
                }
                receipts.push(receipt(self.host.name(), path, action, had));
                continue;
            }
            let now = self.rights(&at).await.map_err(failed)?;
            if now != *wanted {
                let mut open = now.clone();
                open.mode |= OWN;
                let mut changed =
                    receipt(self.host.name(), path, ReceiptAction::Changed, Some(now.clone()));
                changed.rights_after = Some(wanted.clone());
                receipts.push(changed);
                if open != now {
                    self.give(&at, &open).await.map_err(failed)?;
                }
            } else if !folder.left {
                // An undo that was cut off has made it.
                receipts.push(receipt(self.host.name(), path, ReceiptAction::Created, None));
            }
        }
        Ok(())
    }

    /// Removes the folders that shall be gone and are empty, the deepest first.
    pub(super) async fn remove_folders(
        &self,
        folders: &Folders,
        receipts: &mut Vec<Receipt>,
    ) -> Result<(), Failed> {
        // What could not go, with its rights.
        let mut stayed: Vec<(HostPath, Rights)> = Vec::new();
        for (path, folder) in folders.iter().rev().filter(|(_, folder)| folder.goes()) {
            let failed = |error| (path.clone(), error);
            let Ok(at) = self.own(path).await else { continue };
            if at.kind != FileKind::FOLDER {
                continue;
            }
            let rights = self.rights(&at).await.map_err(failed)?;
            if let Some(from) = origin(folders, folder) {
                self.shift(path, from).await.map_err(failed)?;
                receipts.extend(self.came_along(&mut stayed, path, from).await);
            }
            match self.host.fs().remove(&at).await {
                Ok(()) => {
                    let is_moved = |made: &Receipt| match &made.action {
                        ReceiptAction::Renamed { from } => from == path,
                        _ => false,
                    };
                    let is_moved = |one: &Receipt| one.kind == EntryKind::Folder && is_moved(one);
                    if !receipts.iter().any(is_moved) {
                        let action = ReceiptAction::Deleted;
                        receipts.push(receipt(self.host.name(), path, action, Some(rights)));
                    }
                }
                // Somebody has put something into it, or it holds what git ignores.
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    stayed.push((path.clone(), rights));
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    /// Removes the folders that are `meant`, were made for what is gone, and are empty, the deepest
    /// first.
    pub(super) async fn remove_made(
        &self,
        all: &Steps,
        meant: impl Fn(&HostPath) -> bool,
        receipts: &mut Vec<Receipt>,
    ) {
        let gone = all.files.values().filter(|step| matches!(step.to, Restore::Nothing));
        let made = gone.flat_map(|step| &step.made).chain(&all.made);
        let made: BTreeSet<&HostPath> = made.filter(|folder| meant(folder)).collect();
        for folder in made.into_iter().rev() {
            // One that holds something else by now stays.
            let gone = self.remove_one(folder).await;
            // Those of files that are made again are made with them. Not every host makes others.
            let apart = self.host.surveys().is_some() && all.made.contains(folder);
            receipts.extend(gone.filter(|_| apart));
        }
    }

    /// Removes a folder that was made for a file, if it is empty; gives the receipt of that.
    async fn remove_one(&self, path: &HostPath) -> Option<Receipt> {
        let at = self.own(path).await.ok().filter(|at| at.kind == FileKind::FOLDER)?;
        let rights = self.rights(&at).await.ok()?;
        self.host.fs().remove(&at).await.ok()?;
        Some(receipt(self.host.name(), path, ReceiptAction::Deleted, Some(rights)))
    }

    /// Gives the folders that are there what they shall have, the deepest first.
    pub(super) async fn finish_folders(&self, folders: &Folders) -> Result<(), Failed> {
        for (path, folder) in folders.iter().rev() {
            let failed = |error| (path.clone(), error);
            let Some(wanted) = &folder.to else { continue };
            let at = self.own(path).await.map_err(failed)?;
            if self.rights(&at).await.map_err(failed)? != *wanted {
                self.give(&at, wanted).await.map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Goes back on what was done to a folder.
    pub(super) async fn put_folder_back(&self, receipt: &Receipt) -> io::Result<()> {
        let at = self.own(&receipt.path).await?;
        let rights = receipt.rights.as_ref();
        match &receipt.action {
            ReceiptAction::Created => self.host.fs().remove(&at).await,
            ReceiptAction::Renamed { from } => {
                let old = self.own(from).await?;
                if old.kind == FileKind::Missing {
                    self.make(&old, NewEntry::Folder).await?;
                    let old = self.own(from).await?;
                    self.give(&old, rights.unwrap_or(&Rights::of_mode(MODE))).await?;
                }
                self.shift(&receipt.path, from).await?;
                self.host.fs().remove(&at).await
            }
            ReceiptAction::Deleted => {
                self.make(&at, NewEntry::Folder).await?;
                let at = self.own(&receipt.path).await?;
                self.give(&at, rights.unwrap_or(&Rights::of_mode(MODE))).await
            }
            ReceiptAction::Changed => match rights {
                Some(rights) => self.give(&at, rights).await,
                None => Ok(()),
            },
        }
    }

    /// The receipts of folders that could not go and came along when what holds them was moved.
    async fn came_along(
        &self,
        stayed: &mut Vec<(HostPath, Rights)>,
        from: &HostPath,
        to: &HostPath,
    ) -> Vec<Receipt> {
        let mut receipts = Vec::new();
        for (path, rights) in stayed {
            let below = path.relative_to(from).filter(|below| !below.is_empty());
            let Some(Ok(now)) = below.map(|below| to.join_bytes(below)) else { continue };
            // Where something stands at its new name, it was left.
            if self.own(path).await.is_ok_and(|at| at.kind != FileKind::Missing) {
                continue;
            }
            let action = ReceiptAction::Renamed { from: path.clone() };
            receipts.push(receipt(self.host.name(), &now, action, Some(rights.clone())));
            *path = now;
        }
        receipts
    }

    /// Moves what is left in a folder, such as what git ignores, to the one that it was.
    async fn shift(&self, from: &HostPath, to: &HostPath) -> io::Result<()> {
        let fs = self.host.fs();
        let (from, to) = (self.own(from).await?, self.own(to).await?);
        let all = ListHow { limit: usize::MAX, stat: false };
        for entry in fs.list(&from, all).await?.entries {
            let old = fs.child(&from, &entry.name, Follow::No).await?;
            let new = fs.child(&to, &entry.name, Follow::No).await?;
            if new.kind == FileKind::Missing {
                fs.rename(&old, &new).await?;
            }
        }
        Ok(())
    }

    /// Makes what is no file.
    pub(super) async fn make(&self, at: &Located, made: NewEntry) -> io::Result<()> {
        let surveys = self.host.surveys().ok_or(io::ErrorKind::Unsupported)?;
        surveys.make(at, made).await
    }

    async fn give(&self, at: &Located, rights: &Rights) -> io::Result<()> {
        let surveys = self.host.surveys().ok_or(io::ErrorKind::Unsupported)?;
        surveys.give(at, rights).await
    }

    async fn rights(&self, at: &Located) -> io::Result<Rights> {
        Ok(self.host.fs().rights(at).await?.unwrap_or_default())
    }
}

/// The folders above a path, the nearest first.
pub(super) fn above(path: &HostPath) -> impl Iterator<Item = HostPath> {
    std::iter::successors(path.parent(), HostPath::parent)
}
