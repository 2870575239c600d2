//! Undoes changes, from their receipts alone.
//!
//! Redo is the same work with the receipts of the undo, which gives receipts like any other change.
//! Every path is looked up without following a link at its end, and must be where the receipt says.
//! The current content is stored before anything is written.
//!
//! **Invariant:** all or nothing. Nothing is written before everything was checked. A file that is
//! not as the change left it is a conflict, and is never overwritten without `force`. A path that
//! already has its restored state is done, so an undo that was cut off can be run again. It knows
//! no session and no terminal.

mod conflicts;
mod error;
mod folders;
mod moves;
mod order;
mod partial;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::Arc,
};

use haft_host::{Expect, FileKind, Fs, Host, Located, NewEntry, Queues, WriteHow, Written};
use haft_types::{Blob, EntryKind, Follow, Hash, HostPath, Receipt, ReceiptAction, Rights};

pub(crate) use self::moves::WHOLE;
pub use self::partial::{KeptFolder, SplitHardLink, UndoReport};
pub use self::{conflicts::Conflict, error::UndoError};
use self::{
    conflicts::{between, conflicts, foreign, only_copy},
    folders::{Folders, above},
    moves::Move,
    order::in_order,
};
use super::recorder;
use crate::{PinGuard, PreImages};

/// Most files that are changed at once: the disk has to be waited for at each of them.
const SIDE_BY_SIDE: usize = 64;

/// Says why a rule forbids to change a path; none where it may be changed.
pub type DenyFilter<'a> = &'a (dyn Fn(&HostPath) -> Option<String> + Send + Sync);

/// An undo on a host.
pub struct Undo<'a> {
    /// The host of all changes.
    pub host: &'a dyn Host,
    /// One queue for each real file.
    pub queues: &'a Queues,
    /// The store of pre-images.
    pub pre_images: Arc<dyn PreImages>,
    /// The rules about what must not be changed.
    pub forbids: DenyFilter<'a>,
}

/// What a path shall be.
#[derive(Clone, Debug)]
enum Restore {
    /// Gone.
    Nothing,
    /// A file with this content.
    Content(Blob),
    /// A link that points where this says.
    Link(Blob),
    /// What another path holds now.
    From(HostPath),
}

/// What is to be done to one path.
#[derive(Clone, Debug)]
struct Step {
    /// What the changes left there.
    left: Option<Hash>,
    /// What that is: a file or a link.
    kind: EntryKind,
    to: Restore,
    /// Where the file is now that was here; none where it is gone. One that is elsewhere is moved,
    /// so that it keeps all that it is.
    file: Option<HostPath>,
    rights: Option<Rights>,
    /// What the newest change gave it, where it gave other rights.
    rights_left: Option<Rights>,
    /// Folders that go with it once they are empty, topmost first.
    made: Vec<HostPath>,
    /// Whether the changes left a file of which nothing is known.
    is_unknown: bool,
}

/// Everything that is to be done, by path.
#[derive(Default)]
struct Steps {
    /// Files and links.
    files: BTreeMap<HostPath, Step>,
    folders: Folders,
    /// What somebody else did between the changes.
    between: Vec<Conflict>,
    /// Folders that were made for files that came and went.
    made: Vec<HostPath>,
}

impl Step {
    /// Reports whether a link was left there, or shall be.
    fn is_of_links(&self) -> bool {
        (self.left.is_some() && self.kind == EntryKind::Link) || matches!(self.to, Restore::Link(_))
    }
}

/// A path as it is now.
struct Now {
    /// None where nothing can be: something else stands above it.
    at: Option<Located>,
    found: Option<Hash>,
    /// What was found: a file or a link.
    kind: EntryKind,
    kept: Option<Blob>,
    rights: Option<Rights>,
}

impl Undo<'_> {
    /// Undoes changes, given newest first. Returns what was done, which can be undone in the same
    /// way.
    ///
    /// With `force`, changes that others made meanwhile are replaced too. An obstacle for one file
    /// then prevents only the undo of that file.
    ///
    /// # Errors
    /// See [`UndoError`].
    pub async fn take_back(
        &self,
        newest_first: &[Receipt],
        force: bool,
    ) -> Result<UndoReport, UndoError> {
        let mut all = self.steps(newest_first, force)?;
        self.follow_folders(&mut all).await?;
        // What is brought back makes no room for what is kept of that which it replaces.
        let wanted = |step: &Step| match &step.to {
            Restore::Content(blob) | Restore::Link(blob) => Some(self.pre_images.hold(blob.hash)),
            Restore::Nothing | Restore::From(_) => None,
        };
        let _held: Vec<PinGuard> = all.files.values().filter_map(wanted).collect();
        let mut turns = Vec::new();
        for path in all.files.keys() {
            turns.push(self.queues.lock(self.host.name(), path).await);
        }
        let mut left = Vec::new();
        loop {
            match self.attempt(&mut all, force, &mut left).await {
                Ok(taken) => return Ok(UndoReport { left, ..taken }),
                Err(obstacle) if force => all.leave(obstacle, &mut left)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Does what is to be done, all of it or nothing; by force, what is in the way of the look at
    /// one path is left out at once.
    async fn attempt(
        &self,
        all: &mut Steps,
        force: bool,
        left: &mut Vec<(HostPath, String)>,
    ) -> Result<UndoReport, UndoError> {
        // Nothing can be looked at in a folder that cannot be there.
        self.look_at_folders(&all.folders, &all.files).await?;
        let mut now = BTreeMap::new();
        let mut held: Vec<PinGuard> = Vec::new();
        for path in all.files.keys().cloned().collect::<Vec<_>>() {
            if !all.files.contains_key(&path) {
                continue;
            }
            match self.look(&path, &all.files, &all.folders).await {
                Ok(found) => {
                    held.extend(found.kept.as_ref().map(|blob| self.pre_images.hold(blob.hash)));
                    now.insert(path, found);
                }
                Err(obstacle) if force => all.leave(obstacle, left)?,
                Err(error) => return Err(error),
            }
        }
        let Steps { files: steps, folders, between, .. } = &*all;
        let mut conflicts = conflicts(steps, &now);
        conflicts.extend(foreign(between, steps, &now, &conflicts));
        conflicts.extend(self.folder_conflicts(folders).await);
        if !force && !conflicts.is_empty() {
            return Err(UndoError::Conflict(conflicts));
        }
        if let Some(path) = only_copy(steps, &now).filter(|_| !force) {
            return Err(UndoError::OnlyCopy { path: path.clone() });
        }
        self.contents_are_there(steps, &now).await?;
        let images = self.pre_images.clone();
        aside(move || images.sync()).await.map_err(|source| UndoError::Io {
            path: steps.keys().next().cloned().unwrap_or_else(|| self.host.home().clone()),
            source,
        })?;
        let moves = moves::of(steps, folders, &now);
        let done = match self.carry_out(all, &now, &moves).await {
            // A host that moves no files gets them anew.
            Err(UndoError::Io { source, .. })
                if source.kind() == io::ErrorKind::Unsupported && !moves.is_empty() =>
            {
                self.carry_out(all, &now, &[]).await
            }
            done => done,
        };
        let receipts = done?;
        let apart = partial::apart(&receipts, &now, &self.still(&now).await);
        let stay = self.stay(folders).await;
        Ok(UndoReport { receipts, apart, stay, left: Vec::new() })
    }

    /// Of files with several names those that are still one: they were written in place, or not at
    /// all.
    async fn still(&self, now: &BTreeMap<HostPath, Now>) -> BTreeSet<HostPath> {
        let mut still = BTreeSet::new();
        for (path, now) in now {
            let Some(was) = now.at.as_ref().filter(|at| at.names > 1) else { continue };
            let id = |at: &Located| at.stamp.map(|stamp| stamp.id);
            if self.own(path).await.is_ok_and(|at| id(&at) == id(was)) {
                still.insert(path.clone());
            }
        }
        still
    }

    /// What is to be done, by path.
    fn steps(&self, newest_first: &[Receipt], force: bool) -> Result<Steps, UndoError> {
        let mut all = Steps::default();
        let ordered = in_order(newest_first);
        all.between = between(&ordered);
        for receipt in ordered {
            if *receipt.host != *self.host.name() {
                let (path, host) = (receipt.path.clone(), receipt.host.to_string());
                return Err(UndoError::Elsewhere { path, host });
            }
            let other = match &receipt.action {
                ReceiptAction::Renamed { from } => Some(from),
                _ => None,
            };
            for path in std::iter::once(&receipt.path).chain(other) {
                if let Some(why) = (self.forbids)(path) {
                    return Err(UndoError::Denied { path: path.clone(), why });
                }
            }
            match add(&mut all, receipt) {
                // What was never kept is left as it is.
                Err(UndoError::NotKept { .. }) if force => {}
                added => added?,
            }
            if !force && is_unknown(receipt) {
                return Err(UndoError::Unknown { path: receipt.path.clone() });
            }
        }
        // Of what came and went nothing is left, and nothing shall be: what is there now is nobody's
        // business here.
        let Steps { files, made, .. } = &mut all;
        files.retain(|_, step| {
            let is_left = step.left.is_some() || step.is_unknown;
            let passed = !is_left && matches!(step.to, Restore::Nothing);
            if passed {
                made.append(&mut step.made);
            }
            !passed
        });
        Ok(all)
    }

    /// Looks at a path, and keeps what is there.
    async fn look(
        &self,
        path: &HostPath,
        steps: &BTreeMap<HostPath, Step>,
        folders: &Folders,
    ) -> Result<Now, UndoError> {
        let failed = |source| UndoError::Io { path: path.clone(), source };
        let blocked = |why: String| UndoError::Blocked { path: path.clone(), why };
        let nothing = |at| Now { at, found: None, kind: EntryKind::File, kept: None, rights: None };
        let is_left = |path: &HostPath| steps.get(path).is_some_and(|step| step.left.is_some());
        if above(path).any(|above| is_left(&above)) {
            // The changes have put a file or a link where its folder shall be.
            return Ok(nothing(None));
        }
        let fs = self.host.fs();
        let at = fs.locate(path, Follow::No).await.map_err(failed)?;
        if at.real != *path {
            return Err(blocked(format!("is reached through a link now, and is {}", at.real)));
        }
        match at.kind {
            FileKind::Missing => Ok(nothing(Some(at))),
            FileKind::FILE => {
                let rights = fs.rights(&at).await.map_err(failed)?;
                let kept = recorder::keep(&*self.pre_images, fs, &at).await;
                let (found, kept) = if let Ok(blob) = kept {
                    (blob.hash, Some(blob))
                } else {
                    // There is no room for it twice.
                    let hash = recorder::hash(fs, &at).await.map_err(failed)?;
                    (hash, self.pre_images.find(&hash))
                };
                let (at, found) = (Some(at), Some(found));
                Ok(Now { at, found, kind: EntryKind::File, kept, rights })
            }
            FileKind::Entry(EntryKind::Link) if steps.get(path).is_some_and(Step::is_of_links) => {
                let surveys = self.host.surveys().ok_or(io::ErrorKind::Unsupported);
                let surveys = surveys.map_err(|kind| failed(kind.into()))?;
                let target = surveys.target(&at).await.map_err(failed)?;
                let hash = Hash::of(&target);
                let kept = self.pre_images.put(&target.into(), hash).ok();
                let (at, found) = (Some(at), Some(hash));
                Ok(Now { at, found, kind: EntryKind::Link, kept, rights: None })
            }
            FileKind::Entry(EntryKind::Link) => Err(blocked("is a link now".to_owned())),
            // It goes before.
            FileKind::FOLDER if folders.get(path).is_some_and(|folder| folder.left) => {
                Ok(nothing(Some(at)))
            }
            FileKind::FOLDER => Err(blocked("is a folder now".to_owned())),
            FileKind::Entry(_) => Err(blocked("is no regular file now".to_owned())),
        }
    }

    /// Sees to it that nothing is begun that cannot be ended.
    async fn contents_are_there(
        &self,
        steps: &BTreeMap<HostPath, Step>,
        now: &BTreeMap<HostPath, Now>,
    ) -> Result<(), UndoError> {
        let mut wanted = Vec::new();
        for (path, step) in steps {
            if let Restore::Content(blob) | Restore::Link(blob) = &step.to
                && now[path].found != Some(blob.hash)
            {
                wanted.push((path.clone(), blob.clone()));
            }
        }
        let images = self.pre_images.clone();
        let look = move || {
            let is_there = |blob| io::copy(&mut images.open(blob)?, &mut io::sink());
            let missing = wanted.iter().find_map(|(path, blob)| {
                let error = is_there(blob).err()?;
                Some((path.clone(), error.to_string()))
            });
            Ok(missing)
        };
        match aside(look).await {
            Ok(None) => Ok(()),
            Ok(Some((path, why))) => Err(UndoError::NotKept { path, why }),
            Err(source) => Err(UndoError::Io { path: self.host.home().clone(), source }),
        }
    }

    async fn carry_out(
        &self,
        all: &Steps,
        now: &BTreeMap<HostPath, Now>,
        moves: &[Move],
    ) -> Result<Vec<Receipt>, UndoError> {
        let contents = resolved(&all.files, now, moves)?;
        let mut receipts = Vec::new();
        let done = self.do_all(&contents, all, now, moves, &mut receipts).await;
        if let Err((path, source)) = done {
            let left = self.roll_back(&receipts, now, moves).await;
            return Err(if left.is_empty() {
                UndoError::Io { path, source }
            } else {
                UndoError::Cut { path, source, left }
            });
        }
        self.remove_made(all, |_| true, &mut receipts).await;
        Ok(receipts)
    }

    /// Does everything, in the order in which each thing finds the room that it needs.
    async fn do_all(
        &self,
        contents: &BTreeMap<HostPath, Step>,
        all: &Steps,
        now: &BTreeMap<HostPath, Now>,
        moves: &[Move],
        receipts: &mut Vec<Receipt>,
    ) -> Result<(), (HostPath, io::Error)> {
        let folders = &all.folders;
        let goes = |step: &Step| matches!(step.to, Restore::Nothing);
        let in_the_way = |path: &HostPath| folders.contains_key(path);
        let first = |path: &HostPath, step: &Step| goes(step) && in_the_way(path);
        self.write_all(contents, now, moves, first, receipts).await?;
        self.make_folders(folders, receipts).await?;
        self.move_all(moves, now, receipts).await?;
        let then = |path: &HostPath, step: &Step| goes(step) && !in_the_way(path);
        self.write_all(contents, now, moves, then, receipts).await?;
        // What is left in a folder that goes comes along with it.
        self.remove_made(all, |made| folders::goes(folders, made), receipts).await;
        self.remove_folders(folders, receipts).await?;
        self.write_all(contents, now, moves, |_, step| !goes(step), receipts).await?;
        self.finish_folders(folders).await
    }

    /// Gives the paths that are `meant` what they shall hold, if it is not moved there.
    async fn write_all(
        &self,
        contents: &BTreeMap<HostPath, Step>,
        now: &BTreeMap<HostPath, Now>,
        moves: &[Move],
        meant: impl Fn(&HostPath, &Step) -> bool,
        receipts: &mut Vec<Receipt>,
    ) -> Result<(), (HostPath, io::Error)> {
        let vacated =
            Now { at: None, found: None, kind: EntryKind::File, kept: None, rights: None };
        let was = |path: &HostPath| {
            let leaves = moves.iter().any(|moved| moved.from == *path);
            if leaves { &vacated } else { &now[path] }
        };
        let all: Vec<_> = contents.iter().filter(|(path, step)| meant(path, step)).collect();
        // Of one file with several names each change is one of the others.
        let is_one = |path: &HostPath| was(path).at.as_ref().is_some_and(|at| at.names > 1);
        let (mut at, mut first_error) = (0, Ok(()));
        while let Some(rest) = all.get(at..).filter(|rest| !rest.is_empty()) {
            let free = rest.iter().take(SIDE_BY_SIDE).take_while(|(path, _)| !is_one(path)).count();
            let some = &rest[..free.max(1)];
            at += some.len();
            // The disk works on all of them at once, and none is left in its middle.
            let done = some.iter().map(|(path, step)| self.one(path, step, was(path)));
            for ((path, _), done) in some.iter().zip(futures::future::join_all(done).await) {
                match done {
                    Ok(done) => receipts.extend(done),
                    Err(error) if first_error.is_ok() => {
                        first_error = Err(((*path).clone(), error));
                    }
                    Err(_) => {}
                }
            }
            if first_error.is_err() {
                break;
            }
        }
        first_error
    }

    /// Does one step; one that is done already gives the receipts that it would have given, where it
    /// can be gone back on, and one that changes nothing gives none.
    async fn one(&self, path: &HostPath, step: &Step, now: &Now) -> io::Result<Vec<Receipt>> {
        let (wanted, kind) = match &step.to {
            Restore::Content(blob) => (Some(blob.hash), EntryKind::File),
            Restore::Link(blob) => (Some(blob.hash), EntryKind::Link),
            Restore::Nothing | Restore::From(_) => (None, now.kind),
        };
        // Another file with the same content may be there, as one that was moved.
        let as_it_was = wanted.is_none() || step.rights.is_none() || step.rights == now.rights;
        let as_it_was = as_it_was && (now.found.is_none() || kind == now.kind);
        let done = now.found == wanted && as_it_was;
        let (before, old) = if done { (step.left, step.kind) } else { (now.found, now.kind) };
        let other = before.is_some() && wanted.is_some() && old != kind;
        if before == wanted && as_it_was && !other {
            return Ok(Vec::new());
        }
        let kept = if done {
            before.and_then(|hash| self.pre_images.find(&hash))
        } else {
            now.kept.clone()
        };
        if done && before.is_some() && kept.is_none() {
            // Somebody else has done it, and nobody kept what was there: there is nothing to go
            // back to.
            return Ok(Vec::new());
        }
        let action = match (&step.to, before) {
            (Restore::Nothing, _) => ReceiptAction::Deleted,
            (_, None) => ReceiptAction::Created,
            (_, Some(_)) if other => ReceiptAction::Created,
            (_, Some(_)) => ReceiptAction::Changed,
        };
        // What was there of another kind went, and then the new one came.
        let mut went = None;
        let mut receipt = self.receipt(path, action, if wanted.is_some() { kind } else { old });
        receipt.after = wanted;
        if other {
            let mut gone = self.receipt(path, ReceiptAction::Deleted, old);
            (gone.before, gone.pre_image, gone.rights) = (before, kept, now.rights.clone());
            went = Some(gone);
        } else {
            receipt.before = before;
            // Rights that are not touched are nobody's business here.
            let touched = step.rights.is_some() || receipt.action == ReceiptAction::Deleted;
            receipt.rights = now.rights.clone().filter(|_| touched);
            let gives = receipt.action == ReceiptAction::Changed && !as_it_was;
            receipt.rights_after = step.rights.clone().filter(|_| gives);
            receipt.pre_image = kept;
        }
        if !done {
            receipt.made = self.bring(path, step, now).await?;
        }
        Ok(went.into_iter().chain([receipt]).collect())
    }

    fn receipt(&self, path: &HostPath, action: ReceiptAction, kind: EntryKind) -> Receipt {
        Receipt { kind, ..Receipt::new(self.host.name().to_owned(), path.clone(), action) }
    }

    /// Puts at a path what shall be there; gives the folders that were made for it.
    async fn bring(&self, path: &HostPath, step: &Step, now: &Now) -> io::Result<Vec<HostPath>> {
        let fs = self.host.fs();
        let at = match &now.at {
            // Another name of the same file may have gone, which is a change of it.
            Some(at) if now.found.is_some() && at.names > 1 => {
                let again = self.own(path).await?;
                let held = |at: &Located| at.stamp.map(|one| (one.id, one.size, one.modified));
                if held(&again) == held(at) { again } else { at.clone() }
            }
            Some(at) if now.found.is_some() => at.clone(),
            // Folders may have come or gone since.
            _ => self.own(path).await?,
        };
        if let (Some(rights), Some(surveys)) = (partial::mode_alone(step, now), self.host.surveys())
        {
            return surveys.give(&at, rights).await.map(|()| Vec::new());
        }
        match &step.to {
            Restore::Content(blob) => {
                let expect = match now.found {
                    Some(_) => at.stamp.map_or(Expect::Absent, Expect::Stamp),
                    None => Expect::Absent,
                };
                let rights = step.rights.clone();
                if now.kind == EntryKind::Link && now.found.is_some() {
                    fs.remove(&at).await?;
                    let (at, how) =
                        (self.own(path).await?, WriteHow { rights, ..WriteHow::default() });
                    return Ok(bring_back(fs, &*self.pre_images, blob, &at, how).await?.made);
                }
                let how = WriteHow { expect, parents: true, rights, ..WriteHow::default() };
                return Ok(bring_back(fs, &*self.pre_images, blob, &at, how).await?.made);
            }
            Restore::Link(blob) => {
                let target = self.pre_images.get(blob)?.to_vec();
                if now.found.is_some() {
                    fs.remove(&at).await?;
                }
                self.make(&self.own(path).await?, NewEntry::Link(target)).await?;
            }
            Restore::Nothing | Restore::From(_) => fs.remove(&at).await?,
        }
        Ok(Vec::new())
    }

    /// Puts back what was done so far; gives what could not be.
    async fn roll_back(
        &self,
        done: &[Receipt],
        now: &BTreeMap<HostPath, Now>,
        moves: &[Move],
    ) -> Vec<HostPath> {
        let mut left = Vec::new();
        for receipt in done.iter().rev() {
            if receipt.kind == EntryKind::Folder {
                if self.put_folder_back(receipt).await.is_err() {
                    left.push(receipt.path.clone());
                }
                continue;
            }
            let was = &now[&receipt.path];
            let vacated = moves.iter().any(|moved| moved.from == receipt.path);
            let back = match &receipt.action {
                ReceiptAction::Renamed { from } => self.move_back(receipt, from, &now[from]).await,
                // It was so before; with one content before and after, the rights are another's.
                _ if was.found == receipt.after && receipt.before != receipt.after && !vacated => {
                    continue;
                }
                _ => self.put_back(receipt, was, vacated).await,
            };
            if back.is_err() {
                left.push(receipt.path.clone());
            }
        }
        left
    }

    async fn put_back(&self, receipt: &Receipt, was: &Now, vacated: bool) -> io::Result<()> {
        let fs = self.host.fs();
        let at = self.own(&receipt.path).await?;
        match (&was.kept, was.found) {
            _ if vacated => fs.remove(&at).await?,
            (Some(blob), Some(_)) if was.kind == EntryKind::Link => {
                if at.kind != FileKind::Missing {
                    fs.remove(&at).await?;
                }
                let target = self.pre_images.get(blob)?.to_vec();
                self.make(&self.own(&receipt.path).await?, NewEntry::Link(target)).await?;
            }
            (Some(blob), _) => {
                if at.kind == FileKind::Entry(EntryKind::Link) {
                    fs.remove(&at).await?;
                }
                let at = self.own(&receipt.path).await?;
                let how =
                    WriteHow { parents: true, rights: was.rights.clone(), ..WriteHow::default() };
                bring_back(fs, &*self.pre_images, blob, &at, how).await?;
            }
            (None, Some(_)) => return Err(io::ErrorKind::NotFound.into()),
            (None, None) => {
                fs.remove(&at).await?;
                for folder in receipt.made.iter().rev() {
                    drop(remove_folder(self.host.fs(), folder).await);
                }
            }
        }
        Ok(())
    }

    /// Looks a path up that no link leads away from.
    async fn own(&self, path: &HostPath) -> io::Result<Located> {
        let at = self.host.fs().locate(path, Follow::No).await?;
        if at.real == *path { Ok(at) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

/// Writes what was kept, piece by piece.
pub(crate) async fn bring_back(
    fs: &dyn Fs,
    images: &dyn PreImages,
    blob: &Blob,
    at: &Located,
    how: WriteHow,
) -> io::Result<Written> {
    fs.stage_from(at, images.open(blob)?, how).await?.place().await
}

/// Does what waits for a disk where it holds nobody up.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// Reports whether nobody knows what a change left.
fn is_unknown(receipt: &Receipt) -> bool {
    let leaves = matches!(receipt.action, ReceiptAction::Created | ReceiptAction::Changed);
    leaves && receipt.kind == EntryKind::File && receipt.after.is_none()
}

/// Adds what takes one change back; those of newer changes are there already.
fn add(all: &mut Steps, receipt: &Receipt) -> Result<(), UndoError> {
    let Steps { files: steps, folders, .. } = all;
    let path = &receipt.path;
    if receipt.kind == EntryKind::Folder {
        folders::add(folders, receipt);
        return Ok(());
    }
    let new = |path: &HostPath, left, to| {
        let file = Some(path.clone());
        let (rights, rights_left) = (None, receipt.rights_after.clone());
        let (kind, is_unknown) = (receipt.kind, is_unknown(receipt));
        Step { left, kind, to, file, rights, rights_left, made: Vec::new(), is_unknown }
    };
    let nothing = || new(path, receipt.after, Restore::Nothing);
    let lost = || UndoError::NotKept {
        path: path.clone(),
        why: "it was not kept when it was changed".to_owned(),
    };
    let content = || receipt.pre_image.clone().ok_or_else(lost);
    match &receipt.action {
        ReceiptAction::Created => {
            let step = steps.entry(path.clone()).or_insert_with(nothing);
            (step.to, step.file) = (Restore::Nothing, None);
            step.made.splice(..0, receipt.made.iter().cloned());
        }
        ReceiptAction::Changed | ReceiptAction::Deleted => {
            let to = match receipt.kind {
                EntryKind::Link => Restore::Link(content()?),
                _ => Restore::Content(content()?),
            };
            let step = steps.entry(path.clone()).or_insert_with(nothing);
            step.to = to;
            step.rights = receipt.rights.clone().or(step.rights.take());
            // What has other rights now was made anew.
            if receipt.action == ReceiptAction::Deleted || receipt.rights.is_some() {
                step.file = None;
            }
        }
        ReceiptAction::Renamed { from } => {
            // What was renamed and is no file has no hash.
            receipt.before.ok_or_else(lost)?;
            let other = (receipt.before != receipt.after).then(content).transpose()?;
            let holds = || new(path, receipt.after, Restore::From(path.clone()));
            let step = steps.entry(path.clone()).or_insert_with(holds);
            let mut to = std::mem::replace(&mut step.to, Restore::Nothing);
            let file = step.file.take();
            step.made.splice(..0, receipt.made.iter().cloned());
            if let Some(content) = other {
                to = Restore::Content(content);
            }
            let step =
                steps.entry(from.clone()).or_insert_with(|| new(from, None, Restore::Nothing));
            (step.to, step.file, step.rights) = (to, file, receipt.rights.clone());
        }
    }
    Ok(())
}

/// What is not moved: for a path that shall hold what another one holds, the content.
fn resolved(
    steps: &BTreeMap<HostPath, Step>,
    now: &BTreeMap<HostPath, Now>,
    moves: &[Move],
) -> Result<BTreeMap<HostPath, Step>, UndoError> {
    let mut contents = steps.clone();
    contents.retain(|path, step| {
        let leaves = moves.iter().any(|one| one.from == *path);
        let comes = moves.iter().any(|one| one.to == *path);
        !(comes || leaves && matches!(step.to, Restore::Nothing))
    });
    for (path, step) in &mut contents {
        if let Restore::From(holder) = &step.to {
            let found = now.get(holder).filter(|now| now.found.is_some());
            let why = || format!("it was renamed to {holder}, which is not there any more");
            let kept = found.and_then(|now| now.kept.clone());
            step.to = Restore::Content(
                kept.ok_or_else(|| UndoError::NotKept { path: path.clone(), why: why() })?,
            );
        }
    }
    Ok(contents)
}

/// Removes a folder if it is one, and empty.
pub(crate) async fn remove_folder(fs: &dyn Fs, folder: &HostPath) -> io::Result<()> {
    let at = fs.locate(folder, Follow::No).await?;
    if at.real == *folder && at.kind == FileKind::FOLDER {
        fs.remove(&at).await?;
    }
    Ok(())
}
