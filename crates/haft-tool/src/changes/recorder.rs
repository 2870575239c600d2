//! Records the content of files at the moment in which a call changes them.
//!
//! Only content that a change replaces is stored: a refused change copies nothing. Content that the
//! tool has read already is taken from it; any other content is read once.
//!
//! **Invariant:** a change is never held up by content that cannot be stored. It is made, and the
//! answer says that it cannot be undone, and why. In the end every change through the host of a
//! call has a receipt, whether the tool gave one or not.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use haft_host::{FileKind, Fs, Located, Stamp};
use haft_types::{
    Blob, EntryKind, Follow, Hash, HostPath, Outcome, Place, Receipt, ReceiptAction, Rights, Text,
};

use super::diff::Watch;
use crate::{PinGuard, PreImages};

/// Most bytes that are kept without another thread: less work than handing them over.
const BRIEF: usize = 64 * 1024;
/// Bytes that are read at once.
const PIECE: usize = 1 << 20;
/// How many changes that cannot be undone are told one by one.
const TOLD: usize = 5;

/// What a file held before a change.
#[derive(Clone, Debug)]
pub(crate) enum Before {
    /// Nothing was there.
    Missing,
    /// Its content, kept.
    Kept(Blob),
    /// Content with this hash, which stays in the file under its new name.
    Stays(Hash),
    /// It could not be kept, for this reason; with the hash where it is known.
    Lost(String, Option<Hash>),
}

/// A write that is about to be made, or a move.
pub(crate) struct Write {
    /// Where the file is then.
    pub path: HostPath,
    /// Where it was, with its rights, where it is moved.
    pub moved: Option<(HostPath, Option<Rights>)>,
    pub before: Before,
    /// What it holds then; none where it stays the same.
    pub data: Option<Data>,
}

/// What is written.
pub(crate) enum Data {
    Whole(Bytes),
    /// Content that came piece by piece, by its hash.
    Hashed(Hash),
}

/// What a file holds after a change.
enum After {
    Gone,
    /// The last one that was written; its hash is only worked out where no tool tells it.
    Data(Bytes),
    Hash(Hash),
}

/// One change that was made.
struct Change {
    path: HostPath,
    action: ReceiptAction,
    before: Before,
    after: After,
    rights: Option<Rights>,
    made: Vec<HostPath>,
}

impl Change {
    /// What is known of it already.
    fn receipt(&self, host: &Text) -> Receipt {
        let mut receipt = Receipt::new(host.clone(), self.path.clone(), self.action.clone());
        receipt.before = match &self.before {
            Before::Missing => None,
            Before::Kept(blob) => Some(blob.hash),
            Before::Stays(hash) => Some(*hash),
            Before::Lost(_, hash) => *hash,
        };
        receipt.after = match &self.after {
            After::Hash(hash) => Some(*hash),
            After::Gone | After::Data(_) => None,
        };
        receipt.rights.clone_from(&self.rights);
        receipt
    }
}

/// What a tool has read of a file.
struct Offer {
    stamp: Option<Stamp>,
    /// None where only its hash is known.
    whole: Option<Bytes>,
    hash: Hash,
}

#[derive(Default)]
struct State {
    offers: HashMap<HostPath, Offer>,
    /// What was found last at each path that is about to be changed, and in which state.
    kept: HashMap<HostPath, (Option<Stamp>, Before)>,
    /// What the call keeps makes no room for what it keeps later.
    held: Vec<PinGuard>,
    changes: Vec<Change>,
    /// Who makes what is found of changes behind the call, where that is not itself.
    credit: Option<String>,
}

/// See the module.
pub(crate) struct Keeper {
    store: Arc<dyn PreImages>,
    host: Text,
    /// The commands that run beside.
    watch: Arc<Watch>,
    state: Mutex<State>,
}

impl Keeper {
    pub(crate) fn new(store: Arc<dyn PreImages>, host: &str, watch: Arc<Watch>) -> Self {
        Self { store, host: host.to_owned().into(), watch, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of who makes what is found of changes behind the call.
    pub(crate) fn credit(&self, who: String) {
        self.state().credit = Some(who);
    }

    pub(crate) fn credited(&self) -> Option<String> {
        self.state().credit.clone()
    }

    /// Takes note of what a tool has read of a file that it is about to change.
    pub(crate) fn offer(&self, at: &Located, whole: Option<&Bytes>, hash: Hash) {
        let offer = Offer { stamp: at.stamp, whole: whole.cloned(), hash };
        self.state().offers.insert(at.real.clone(), offer);
    }

    /// The content of a file, if it was not too much, with its hash, where the tool has just read
    /// it in this very state.
    fn offered(&self, at: &Located) -> Option<(Option<Bytes>, Hash)> {
        let offer = self.state().offers.remove(&at.real)?;
        let same = at.stamp.is_some() && offer.stamp == at.stamp;
        same.then_some((offer.whole, offer.hash))
    }

    /// Keeps what stands at a place before it is written to.
    pub(crate) async fn before(&self, fs: &dyn Fs, at: &Located) -> Before {
        let kept = self.state().kept.get(&at.real).cloned();
        if let Some((Some(stamp), Before::Kept(blob))) = kept
            && at.stamp == Some(stamp)
        {
            return Before::Kept(blob);
        }
        let before = match self.offered(at) {
            Some((Some(whole), hash)) => self.put(whole, hash).await,
            _ => self.read(fs, at).await,
        };
        self.state().kept.insert(at.real.clone(), (at.stamp, before.clone()));
        before
    }

    /// Looks at a file before it gets another name and holds what it held.
    pub(crate) async fn before_move(&self, fs: &dyn Fs, at: &Located) -> Before {
        if self.watch.is_open() {
            // A command that runs may go on with it.
            self.read(fs, at).await;
        }
        let hash = match self.offered(at) {
            Some((_, hash)) => Ok(hash),
            None => hash(fs, at).await,
        };
        let before = match hash {
            Ok(hash) => Before::Stays(hash),
            Err(error) => Before::Lost(unkept(&error), None),
        };
        self.state().kept.insert(at.real.clone(), (at.stamp, before.clone()));
        before
    }

    /// What was found last at a path that is about to be changed.
    pub(crate) fn kept(&self, path: &HostPath) -> Option<Before> {
        self.state().kept.get(path).map(|(_, before)| before.clone())
    }

    /// Forgets the changes of paths that are again as they were.
    pub(crate) fn forget(&self, as_before: impl Fn(&HostPath) -> bool) {
        self.state().changes.retain(|change| !as_before(&change.path));
    }

    /// Takes note of a write that was made.
    pub(crate) fn wrote(&self, to: Write, folders: Vec<HostPath>) {
        let Write { path, moved, before, data } = to;
        let after = match (data, &before) {
            (Some(Data::Whole(data)), _) if data.len() <= BRIEF => After::Hash(Hash::of(&data)),
            (Some(Data::Whole(data)), _) => After::Data(data),
            (Some(Data::Hashed(hash)), _) => After::Hash(hash),
            (None, Before::Stays(hash)) => After::Hash(*hash),
            (None, _) => After::Gone,
        };
        let (action, rights) = match (moved, &before) {
            (Some((from, rights)), _) => (ReceiptAction::Renamed { from }, rights),
            (None, Before::Missing) => (ReceiptAction::Created, None),
            (None, _) => (ReceiptAction::Changed, None),
        };
        self.note(Change { path, action, before, after, rights, made: folders });
    }

    /// Removes, and keeps what was there.
    pub(crate) async fn remove(&self, fs: &dyn Fs, at: &Located) -> io::Result<()> {
        let before = self.before(fs, at).await;
        // Without its rights it is still brought back, as a new file.
        let rights = fs.rights(at).await.ok().flatten();
        fs.remove(at).await?;
        let (path, action) = (at.real.clone(), ReceiptAction::Deleted);
        self.note(Change { path, action, before, after: After::Gone, rights, made: Vec::new() });
        Ok(())
    }

    /// Renames, and keeps what is renamed.
    pub(crate) async fn rename(&self, fs: &dyn Fs, from: &Located, to: &Located) -> io::Result<()> {
        let before = self.read(fs, from).await;
        let rights = fs.rights(from).await.ok().flatten();
        fs.rename(from, to).await?;
        let after = match &before {
            Before::Kept(blob) => After::Hash(blob.hash),
            _ => After::Gone,
        };
        let (path, action) = (to.real.clone(), ReceiptAction::Renamed { from: from.real.clone() });
        self.note(Change { path, action, before, after, rights, made: Vec::new() });
        Ok(())
    }

    /// Keeps what is about to be written where a command runs that may go on with it.
    pub(crate) async fn share(&self, write: &Write) {
        if self.watch.is_open()
            && let Some(Data::Whole(data)) = &write.data
        {
            // What is not kept is told where it is missed.
            drop(self.put(data.clone(), Hash::of(data)).await);
        }
    }

    /// Takes note of a change; at most one waits with its whole content.
    fn note(&self, mut change: Change) {
        if self.watch.is_open() {
            if let After::Data(data) = &change.after {
                change.after = After::Hash(Hash::of(data));
            }
            self.watch.claim(&[change.receipt(&self.host)]);
        }
        let mut state = self.state();
        if let Some(last) = state.changes.last_mut()
            && let After::Data(data) = &last.after
        {
            last.after = After::Hash(Hash::of(data));
        }
        state.changes.push(change);
    }

    async fn put(&self, whole: Bytes, hash: Hash) -> Before {
        let store = self.store.clone();
        let brief = whole.len() <= BRIEF;
        let work = move || store.put(&whole, hash);
        let kept = if brief {
            work()
        } else {
            tokio::task::spawn_blocking(work)
                .await
                .unwrap_or_else(|error| Err(io::Error::other(error)))
        };
        self.held(kept, Some(hash))
    }

    /// Sees to it that what was kept stays until the call has ended.
    fn held(&self, kept: io::Result<Blob>, hash: Option<Hash>) -> Before {
        let held = kept.and_then(|blob| {
            let held = self.store.hold(blob.hash);
            // Another call may have needed the room in between.
            self.store.find(&blob.hash).ok_or(io::ErrorKind::QuotaExceeded)?;
            Ok((blob, held))
        });
        match held {
            Ok((blob, held)) => {
                self.state().held.push(held);
                Before::Kept(blob)
            }
            Err(error) => Before::Lost(unkept(&error), hash),
        }
    }

    /// Reads and keeps what stands there.
    async fn read(&self, fs: &dyn Fs, at: &Located) -> Before {
        let kind = match at.kind {
            FileKind::Missing => return Before::Missing,
            FileKind::FILE => return self.held(keep(&*self.store, fs, at).await, None),
            FileKind::Entry(EntryKind::Folder) => "a folder",
            FileKind::Entry(EntryKind::Link) => "a link",
            FileKind::Entry(_) => "no regular file",
        };
        Before::Lost(format!("it was {kind}, and only the content of files is kept"), None)
    }

    /// Looks at the files that were changed once more, and takes what they hold now for what the call
    /// left: a hook may have gone on with it. Gives the paths of those that hold something else.
    pub(crate) async fn look_again(&self, fs: &dyn Fs, receipts: &mut [Receipt]) -> Vec<HostPath> {
        let mut left: BTreeMap<HostPath, Hash> = BTreeMap::new();
        for change in &self.state().changes {
            match &change.after {
                After::Gone => drop(left.remove(&change.path)),
                After::Data(data) => drop(left.insert(change.path.clone(), Hash::of(data))),
                After::Hash(hash) => drop(left.insert(change.path.clone(), *hash)),
            }
        }
        let mut others = Vec::new();
        for (path, before) in left {
            // What cannot be read is not taken for what the call left: undo will see it.
            let Ok(at) = fs.locate(&path, Follow::No).await else { continue };
            if at.kind != FileKind::FILE {
                continue;
            }
            let Ok(now) = hash(fs, &at).await else { continue };
            if now == before {
                continue;
            }
            let mut state = self.state();
            if let Some(last) = state.changes.iter_mut().rfind(|change| change.path == path) {
                last.after = After::Hash(now);
            }
            for receipt in receipts.iter_mut().filter(|receipt| receipt.path == path) {
                receipt.after = Some(now);
            }
            others.push(path);
        }
        others
    }

    /// Completes the receipts of the call's outcome, and says which changes cannot be undone. Gives
    /// those of changes that it had not seen.
    pub(crate) fn fill(&self, place: &Place, outcome: &mut Outcome) -> Vec<Receipt> {
        let changes = std::mem::take(&mut self.state().changes);
        let mut lost = Vec::new();
        let own = outcome.receipts.len();
        let mut unseen = outcome.receipts.clone();
        for change in merged(changes) {
            if let Before::Lost(why, _) = &change.before {
                lost.push(format!("{} cannot be undone: {why}", place.shown(&change.path)));
            }
            unseen.retain(|receipt| receipt.path != change.path);
            let same =
                |receipt: &&mut Receipt| receipt.host == self.host && receipt.path == change.path;
            if let Some(receipt) = outcome.receipts[..own].iter_mut().find(same) {
                complete(receipt, change);
            } else {
                let mut receipt =
                    Receipt::new(self.host.clone(), change.path.clone(), change.action.clone());
                complete(&mut receipt, change);
                outcome.receipts.push(receipt);
            }
        }
        let more = lost.len().saturating_sub(TOLD);
        lost.truncate(TOLD);
        if more > 0 {
            lost.push(format!("{more} more changes cannot be undone"));
        }
        lost.extend(made_room(self.store.let_go()));
        for text in &lost {
            outcome.note(text);
        }
        unseen
    }
}

/// Says that older content went, if any did.
pub(crate) fn made_room(let_go: u64) -> Option<String> {
    let copies = match let_go {
        0 => return None,
        1 => "1 older copy made".to_owned(),
        many => format!("{many} older copies made"),
    };
    Some(format!(
        "{copies} room for what undo keeps now: what was changed then cannot be undone any more"
    ))
}

/// Reads a located file to its end and keeps it, piece by piece.
///
/// # Errors
/// When it cannot be read or kept.
pub(crate) async fn keep(store: &dyn PreImages, fs: &dyn Fs, at: &Located) -> io::Result<Blob> {
    let mut keeping = store.begin(at.size())?;
    if at.size() > PIECE as u64
        && let Some(file) = keeping.file()
        && fs.share(at, file).await?
    {
        let shared = move || keeping.filled().and_then(|()| keeping.finish());
        return tokio::task::spawn_blocking(shared).await.map_err(io::Error::other)?;
    }
    let mut offset = 0;
    loop {
        let piece = fs.read(at, offset, PIECE).await?;
        offset += piece.len() as u64;
        let last = piece.len() < PIECE;
        if piece.len() <= BRIEF {
            keeping.push(&piece)?;
        } else {
            let push = move || keeping.push(&piece).map(|()| keeping);
            keeping = tokio::task::spawn_blocking(push).await.map_err(io::Error::other)??;
        }
        if last {
            return keeping.finish();
        }
    }
}

/// The hash of what a file holds.
pub(crate) async fn hash(fs: &dyn Fs, at: &Located) -> io::Result<Hash> {
    let mut offset = 0;
    let mut hasher = blake3::Hasher::new();
    loop {
        let piece = fs.read(at, offset, PIECE).await?;
        hasher.update(&piece);
        offset += piece.len() as u64;
        if piece.len() < PIECE {
            return Ok(Hash::from_bytes(*hasher.finalize().as_bytes()));
        }
    }
}

fn unkept(error: &io::Error) -> String {
    format!("what it held could not be kept ({error})")
}

/// One change for each path, from what was there first to what is there now.
fn merged(changes: Vec<Change>) -> Vec<Change> {
    let mut merged: Vec<Change> = Vec::new();
    for change in changes {
        let renames = |change: &Change| matches!(change.action, ReceiptAction::Renamed { .. });
        let last = merged.iter().rposition(|other| {
            let from = |change: &Change| match &change.action {
                ReceiptAction::Renamed { from } => Some(from.clone()),
                _ => None,
            };
            other.path == change.path || from(other).as_ref() == Some(&change.path)
        });
        let Some(last) = last.filter(|last| !renames(&change) && !renames(&merged[*last])) else {
            merged.push(change);
            continue;
        };
        let first = &mut merged[last];
        let was_there = !matches!(first.before, Before::Missing);
        first.action = match change.after {
            After::Gone if was_there => ReceiptAction::Deleted,
            _ if was_there => ReceiptAction::Changed,
            _ => ReceiptAction::Created,
        };
        first.after = change.after;
        first.rights = first.rights.take().or(change.rights);
        first.made.extend(change.made);
    }
    // What came and went within the call is no change.
    merged.retain(|change| {
        !matches!((&change.before, &change.after), (Before::Missing, After::Gone))
    });
    merged
}

/// Puts into a receipt what is known better here than in the tool.
fn complete(receipt: &mut Receipt, change: Change) {
    match change.before {
        Before::Missing => {}
        Before::Kept(blob) => {
            receipt.before = Some(blob.hash);
            receipt.pre_image = Some(blob);
        }
        Before::Stays(hash) => receipt.before = Some(hash),
        Before::Lost(_, hash) => receipt.before = receipt.before.or(hash),
    }
    if receipt.after.is_none() {
        receipt.after = match change.after {
            After::Gone => None,
            After::Data(data) => Some(Hash::of(&data)),
            After::Hash(hash) => Some(hash),
        };
    }
    receipt.rights = receipt.rights.take().or(change.rights);
    if receipt.made.is_empty() {
        receipt.made = change.made;
    }
}
