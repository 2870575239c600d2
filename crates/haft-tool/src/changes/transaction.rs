//! Transactions: several files that change together, all of them or none.
//!
//! **How:** first every new content is on disk under a temporary name, and the content that it
//! replaces is stored. Then a journal of the changes is written and synced, and one file after the
//! other takes its name. Where one fails, those before it are rolled back. After a crash, the next
//! start does the same from the journal: [`roll_back`]. A moved file returns to its old name, with
//! all its metadata.
//!
//! **Invariant:** a file is rolled back only where it is still as the transaction left it. What
//! others wrote since is never touched, and is named. Nothing changes where something cannot be
//! rolled back.

use std::io;

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use haft_host::{Expect, FileKind, Fs, Host, Located, Staged, WriteHow, Written};
use haft_types::{Follow, Hash, HostPath, Receipt, ReceiptAction};
use thiserror::Error;

use super::{
    recorder::{self, Before},
    undo,
};
use crate::{Cx, Journal, Journaled, PreImages};

/// A new content that waits to be placed; none where the file shall be gone.
type Waiting = Option<Box<dyn Staged>>;

/// Most files that are staged at once.
const SIDE_BY_SIDE: usize = 8;

/// One file change of a transaction.
#[derive(Clone, Debug)]
pub struct PlannedChange {
    /// The file as it was looked up; it must still be in this state.
    pub at: Located,
    /// The new state of the file.
    pub to: NewState,
}

/// The new state of a file.
#[derive(Clone, Debug)]
pub enum NewState {
    /// Holds this content, with its hash; created where it is missing.
    Holding(Bytes, Hash),
    /// Deleted.
    Gone,
    /// Moved to another path, which must be free.
    Moved {
        /// The new path, as it was looked up.
        to: Located,
        /// The new content; none where it stays the same.
        data: Option<Bytes>,
        /// The hash of the content after the move.
        hash: Hash,
    },
}

impl PlannedChange {
    /// Where the file is in the end, or was.
    fn path(&self) -> &HostPath {
        match &self.to {
            NewState::Moved { to, .. } => &to.real,
            _ => &self.at.real,
        }
    }
}

/// Why files were not changed together.
#[derive(Debug, Error)]
pub enum TransactionError {
    /// Nothing was changed: one of the files cannot be changed.
    #[error("{0}")]
    Refused(#[source] io::Error),
    /// Nothing was changed: the content of this file cannot be stored, so it could not be rolled
    /// back.
    #[error("{path} cannot be changed together with other files: {why}")]
    NotKept {
        /// The file.
        path: HostPath,
        /// Why.
        why: String,
    },
    /// Nothing was changed: the journal cannot be written.
    #[error("what is about to be changed cannot be put down for the case of a crash: {0}")]
    NoJournal(#[source] io::Error),
    /// One change failed after others had been made, which were rolled back.
    #[error("{source}")]
    PutBack {
        /// Why it failed.
        source: io::Error,
        /// How many were rolled back.
        files: usize,
    },
    /// One change failed after others had been made, and some of these could not be rolled back.
    #[error("{source}; {}", told(.left))]
    Cut {
        /// Why it failed.
        source: io::Error,
        /// The files that are not as they were, and why.
        left: Vec<(HostPath, String)>,
    },
}

fn told(left: &[(HostPath, String)]) -> String {
    let each: Vec<String> = left.iter().map(|(path, why)| format!("{path} ({why})")).collect();
    format!("of the files changed before it, these could not be put back: {}", each.join(", "))
}

/// The result of a rollback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollback {
    /// Files that were restored.
    pub restored: Vec<HostPath>,
    /// Files that were left as they are, and why.
    pub left: Vec<(HostPath, String)>,
    /// True when one of them may be restored later: there is no room for it, or no permission.
    pub again: bool,
}

impl Cx {
    /// Changes several files together, in the order given: all of them, or none. Returns what was
    /// written for each, none for a deleted file.
    ///
    /// The caller holds the lock of each file, and names none twice.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub async fn change_together(
        &self,
        steps: &[PlannedChange],
    ) -> Result<Vec<Option<Written>>, TransactionError> {
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        let mut staged = self.stage_all(steps).await?;
        let made = |staged: &Waiting| staged.as_ref().map(|s| s.made()).unwrap_or_default();
        let made: Vec<_> = staged.iter().map(made).collect();
        let noted = match self.receipts(steps, made).await {
            Ok(receipts) => self.begin_journal(&receipts).await.map(|open| (receipts, open)),
            Err(error) => Err(error),
        };
        let (mut receipts, journal) = match noted {
            Ok(noted) => noted,
            Err(error) => {
                discard(staged.into_iter().flatten()).await;
                return Err(error);
            }
        };
        let mut done = Vec::new();
        for (nth, (step, waiting)) in steps.iter().zip(&mut staged).enumerate() {
            let placed = match waiting.take() {
                Some(waiting) => waiting.place().await.map(Some),
                None => self.host.fs().remove(&step.at).await.map(|()| None),
            };
            match placed {
                Ok(written) => {
                    // Some hosts make folders only now.
                    if let Some(written) = &written {
                        receipts[nth].made.clone_from(&written.made);
                    }
                    done.push(written);
                }
                Err(source) => {
                    discard(staged.into_iter().flatten()).await;
                    let failed = self.take_back(source, &receipts).await;
                    end(journal).await;
                    return Err(failed);
                }
            }
        }
        // One that stays for now is found complete by the next start.
        end(journal).await;
        Ok(done)
    }

    /// Brings all new contents to the disk.
    async fn stage_all(&self, steps: &[PlannedChange]) -> Result<Vec<Waiting>, TransactionError> {
        let work: Vec<_> = steps.iter().map(|step| self.stage(step).boxed()).collect();
        let ends: Vec<_> = futures::stream::iter(work).buffered(SIDE_BY_SIDE).collect().await;
        let (mut good, mut bad) = (Vec::new(), None);
        for end in ends {
            match end {
                Ok(staged) => good.push(staged),
                Err(error) => bad = bad.or(Some(error)),
            }
        }
        let Some(error) = bad else { return Ok(good) };
        discard(good.into_iter().flatten()).await;
        Err(TransactionError::Refused(error))
    }

    async fn stage(&self, step: &PlannedChange) -> io::Result<Waiting> {
        let fs = self.host.fs();
        match &step.to {
            NewState::Gone => {
                if let Some(keeper) = &self.keeper {
                    keeper.before(fs, &step.at).await;
                }
                Ok(None)
            }
            NewState::Holding(data, _) => {
                let expect = expected(&step.at);
                let how = WriteHow { expect, parents: true, ..WriteHow::default() };
                fs.stage(&step.at, data.clone(), how).await.map(Some)
            }
            NewState::Moved { to, data, .. } => {
                fs.stage_move(&step.at, to, data.clone()).await.map(Some)
            }
        }
    }

    /// The changes as they are about to be made.
    async fn receipts(
        &self,
        steps: &[PlannedChange],
        made: Vec<Vec<HostPath>>,
    ) -> Result<Vec<Receipt>, TransactionError> {
        let mut receipts = Vec::with_capacity(steps.len());
        for (step, made) in steps.iter().zip(made) {
            let path = step.at.real.clone();
            let not_kept = |why: String| TransactionError::NotKept { path: path.clone(), why };
            let kept = self.keeper.as_ref().and_then(|keeper| keeper.kept(&path));
            let (before, pre_image) = match kept {
                Some(Before::Missing) => (None, None),
                Some(Before::Kept(blob)) => (Some(blob.hash), Some(blob)),
                Some(Before::Stays(hash)) => (Some(hash), None),
                Some(Before::Lost(why, _)) => return Err(not_kept(why)),
                None => return Err(not_kept("nothing keeps what it holds".to_owned())),
            };
            let (action, after) = match (&step.to, before) {
                (NewState::Gone, _) => (ReceiptAction::Deleted, None),
                (NewState::Holding(_, hash), Some(_)) => (ReceiptAction::Changed, Some(*hash)),
                (NewState::Holding(_, hash), None) => (ReceiptAction::Created, Some(*hash)),
                (NewState::Moved { hash, .. }, _) => {
                    (ReceiptAction::Renamed { from: path.clone() }, Some(*hash))
                }
            };
            let (host, path) = (self.host.name().to_owned(), step.path().clone());
            let mut receipt = Receipt::new(host, path, action);
            (receipt.before, receipt.after) = (before, after);
            (receipt.pre_image, receipt.made) = (pre_image, made);
            if !matches!(step.to, NewState::Holding(..)) {
                receipt.rights = self.host.fs().rights(&step.at).await.ok().flatten();
            }
            receipts.push(receipt);
        }
        Ok(receipts)
    }

    /// Sees to it that a crash can be mended from here on.
    async fn begin_journal(
        &self,
        receipts: &[Receipt],
    ) -> Result<Option<Box<dyn Journaled>>, TransactionError> {
        let Some(journal) = self.service::<dyn Journal>() else { return Ok(None) };
        let (images, receipts) = (self.session().pre_images(), receipts.to_vec());
        let begun = tokio::task::spawn_blocking(move || {
            images.sync()?;
            journal.begin(&receipts)
        });
        let begun = begun.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        begun.map(Some).map_err(TransactionError::NoJournal)
    }

    /// Puts back what was changed before one failed.
    async fn take_back(&self, source: io::Error, receipts: &[Receipt]) -> TransactionError {
        let (host, images) = (&*self.dispatcher.host, self.session().pre_images());
        let mended = roll_back(host, &*images, receipts, false).await;
        if let Some(keeper) = &self.keeper {
            let as_before = |path: &HostPath| !mended.left.iter().any(|(left, _)| left == path);
            keeper.forget(as_before);
        }
        if mended.left.is_empty() {
            return TransactionError::PutBack { source, files: mended.restored.len() };
        }
        TransactionError::Cut { source, left: mended.left }
    }
}

async fn discard(staged: impl Iterator<Item = Box<dyn Staged>>) {
    for staged in staged {
        staged.discard().await;
    }
}

/// Takes the journal away; where that fails, the next start finds everything as it shall be.
async fn end(journal: Option<Box<dyn Journaled>>) {
    if let Some(journal) = journal {
        drop(tokio::task::spawn_blocking(move || journal.end()).await);
    }
}

fn expected(at: &Located) -> Expect {
    match at.stamp {
        Some(stamp) if at.kind != FileKind::Missing => Expect::Stamp(stamp),
        _ => Expect::Absent,
    }
}

/// How a file stands to a change that may have been made.
enum Stands {
    Before,
    /// It was moved here, and stands under its old name too.
    Between(Located),
    After(AppliedChange),
    /// Otherwise, for this reason.
    Otherwise(String),
}

/// A change that was made.
enum AppliedChange {
    /// In this file.
    At(Located),
    /// A move from the first, where nothing is now, to the second.
    Moved(Located, Located),
}

/// Rolls back the files of a transaction that was not completed.
///
/// Files that are as the change left them are restored, and all others are left alone. Files that
/// are neither in the old nor in the new state are named. With `torn`, nothing is rolled back where
/// no file is in its old state any more: then the change is complete.
pub async fn roll_back(
    host: &dyn Host,
    images: &dyn PreImages,
    receipts: &[Receipt],
    torn: bool,
) -> Rollback {
    let mut mended = Rollback::default();
    let mut after = Vec::new();
    let (mut old, mut gone) = (0, Vec::new());
    let is_new = |receipt: &Receipt| receipt.before.is_none() || source(receipt).is_some();
    for receipt in receipts.iter().filter(|receipt| changes(receipt)) {
        match stands(host, receipt).await {
            Stands::Before => {
                old += 1;
                gone.extend(is_new(receipt).then_some(receipt));
            }
            Stands::Between(at) => {
                old += 1;
                after.push((receipt, AppliedChange::At(at)));
            }
            Stands::After(made) => after.push((receipt, made)),
            Stands::Otherwise(why) => mended.left.push((receipt.path.clone(), why)),
        }
    }
    if torn && old == 0 {
        return mended;
    }
    for (receipt, made) in after.into_iter().rev() {
        match restore(host.fs(), images, receipt, &made).await {
            Ok(()) => {
                mended.restored.push(source(receipt).unwrap_or(&receipt.path).clone());
                gone.extend(is_new(receipt).then_some(receipt));
            }
            Err(error) => {
                mended.again |= passes(&error);
                mended.left.push((receipt.path.clone(), error.to_string()));
            }
        }
    }
    let mut made: Vec<&HostPath> = gone.into_iter().flat_map(|receipt| &receipt.made).collect();
    made.sort();
    made.dedup();
    for folder in made.into_iter().rev() {
        // One that holds something else by now stays.
        drop(undo::remove_folder(host.fs(), folder).await);
    }
    mended
}

/// Reports whether what failed may work another time.
fn passes(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::ResourceBusy
    )
}

/// Where a moved file was.
const fn source(receipt: &Receipt) -> Option<&HostPath> {
    match &receipt.action {
        ReceiptAction::Renamed { from } => Some(from),
        _ => None,
    }
}

/// Reports whether anything is another because of this change.
fn changes(receipt: &Receipt) -> bool {
    source(receipt).is_some() || receipt.before != receipt.after
}

async fn stands(host: &dyn Host, receipt: &Receipt) -> Stands {
    let after = async {
        if *receipt.host != *host.name() {
            return Err(format!("it is on {}", receipt.host));
        }
        let (new, holds) = look(host.fs(), &receipt.path).await?;
        let Some(from) = source(receipt) else {
            return Ok(match holds {
                found if found == receipt.before => Stands::Before,
                found if found == receipt.after => Stands::After(AppliedChange::At(new)),
                _ => return Err("it was changed since".to_owned()),
            });
        };
        let (old, held) = look(host.fs(), from).await?;
        Ok(match (held == receipt.before, holds == receipt.after) {
            (true, true) => Stands::Between(new),
            (true, false) => Stands::Before,
            (false, true) if held.is_none() => Stands::After(AppliedChange::Moved(old, new)),
            _ => return Err(format!("it or {from} was changed since")),
        })
    };
    after.await.unwrap_or_else(Stands::Otherwise)
}

/// What stands at a path, and the hash of what it holds; none where nothing is there.
async fn look(fs: &dyn Fs, path: &HostPath) -> Result<(Located, Option<Hash>), String> {
    let at = fs.locate(path, Follow::No).await.map_err(|error| error.to_string())?;
    if at.real != *path {
        return Err(format!("a link leads to {} now", at.real));
    }
    match at.kind {
        FileKind::Missing => Ok((at, None)),
        FileKind::FILE => {
            let found = recorder::hash(fs, &at).await.map_err(|error| error.to_string())?;
            Ok((at, Some(found)))
        }
        FileKind::Entry(_) => Err("it is no regular file now".to_owned()),
    }
}

/// Makes one file what it was.
async fn restore(
    fs: &dyn Fs,
    images: &dyn PreImages,
    receipt: &Receipt,
    made: &AppliedChange,
) -> io::Result<()> {
    let old = || {
        let kept = || receipt.before.and_then(|hash| images.find(&hash));
        receipt.pre_image.clone().or_else(kept).ok_or(io::Error::from(io::ErrorKind::NotFound))
    };
    match made {
        AppliedChange::Moved(from, at) => {
            let kept = (receipt.before != receipt.after).then(old).transpose()?;
            if let Some(kept) = kept.as_ref().filter(|kept| kept.len > undo::WHOLE) {
                let (expect, rights) = (expected(from), receipt.rights.clone());
                let how = WriteHow { expect, parents: true, rights, ..WriteHow::default() };
                undo::bring_back(fs, images, kept, from, how).await?;
                return fs.remove(at).await;
            }
            let data = kept.map(|kept| images.get(&kept)).transpose()?;
            fs.stage_move(at, from, data).await?.place().await.map(drop)
        }
        AppliedChange::At(at) if receipt.before.is_none() || source(receipt).is_some() => {
            fs.remove(at).await
        }
        AppliedChange::At(at) => {
            let (expect, rights) = (expected(at), receipt.rights.clone());
            let how = WriteHow { expect, parents: true, rights, ..WriteHow::default() };
            undo::bring_back(fs, images, &old()?, at, how).await.map(drop)
        }
    }
}
