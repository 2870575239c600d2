//! Files of a host.
//!
//! **Invariant:** every method but [`Fs::locate`] works on what was located, never on a path
//! again: links that flip in between lead nowhere.

use std::{any::Any, fmt, io, os::fd::OwnedFd, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;
use haft_types::{EntryKind, Follow, HostPath, Rights};

use crate::fault::refuse;

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Something is there.
    Entry(EntryKind),
    /// Nothing is there; the folders above may be missing, too.
    Missing,
}

impl FileKind {
    /// A regular file.
    pub const FILE: Self = Self::Entry(EntryKind::File);
    /// A folder.
    pub const FOLDER: Self = Self::Entry(EntryKind::Folder);
}

/// What tells one state of a file from another without reading it. Compare, never interpret.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Stamp {
    /// Device and inode, or what the host has instead.
    pub id: (u64, u64),
    /// Size in bytes.
    pub size: u64,
    /// Last change of the content, in nanoseconds since the Unix epoch.
    pub modified: i128,
    /// Last change of content or attributes, in nanoseconds since the Unix epoch.
    pub changed: i128,
}

/// What a host keeps of a located path: open descriptors of the folder and the name in it.
pub type Handle = Arc<dyn Any + Send + Sync>;

/// A path that was looked up once, with links resolved.
#[derive(Clone)]
pub struct Located {
    /// The path with every followed link resolved.
    pub real: HostPath,
    /// What was there.
    pub kind: FileKind,
    /// Its state; none when nothing was there.
    pub stamp: Option<Stamp>,
    /// Number of names (hard links) of the file; 0 when nothing was there.
    pub names: u64,
    /// For the host alone.
    pub handle: Handle,
}

impl Located {
    /// Size in bytes; 0 when nothing was there.
    pub fn size(&self) -> u64 {
        self.stamp.map_or(0, |stamp| stamp.size)
    }
}

impl fmt::Debug for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Located")
            .field("real", &self.real)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// What a write expects to find, so that changes that nobody saw are never lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing is there yet.
    Absent,
    /// The state that was located or read.
    Stamp(Stamp),
    /// Whatever is there.
    Any,
}

/// How a file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteHow {
    /// What must be there.
    pub expect: Expect,
    /// Whether missing folders above are made.
    pub parents: bool,
    /// Permission bits of a new file, before the umask; kept from the old one otherwise.
    pub mode: u32,
    /// What the file gets whatever it had and whatever the umask is, as one that is brought back.
    /// What the writer may not give is left out, and then no more rights are given than are named.
    pub rights: Option<Rights>,
}

impl Default for WriteHow {
    fn default() -> Self {
        Self { expect: Expect::Any, parents: false, mode: 0o666, rights: None }
    }
}

/// What a write left.
#[derive(Clone, Debug)]
pub struct Written {
    /// The file as it is now.
    pub at: Located,
    /// Folders that were made for it, topmost first.
    pub made: Vec<HostPath>,
    /// Why it could not be replaced and was written in place, so not in one step: readers may have
    /// seen a part of each text, and all its names (hard links) have the new one. None otherwise.
    pub in_place: Option<&'static str>,
}

/// Content that comes piece by piece, however much of it there is. Where it fails, so does what it
/// is written to.
pub type Source = Box<dyn io::Read + Send>;

/// Content that is ready to become a file, see [`Fs::stage`].
///
/// **Invariant:** dropped before it is placed, it leaves nothing, nor a folder that was made for
/// it. A process that is killed leaves it to the next one.
pub trait Staged: Send {
    /// Makes it the file, if what is expected there still holds.
    ///
    /// # Errors
    /// As [`Fs::write`]; nothing of it is left then.
    ///
    /// # Cancel safety
    /// As [`Fs::write`].
    fn place(self: Box<Self>) -> BoxFuture<'static, io::Result<Written>>;

    /// Folders that were made for it so far, topmost first.
    fn made(&self) -> Vec<HostPath> {
        Vec::new()
    }

    /// Removes it, and returns once it is gone; dropped, it may go a moment later.
    fn discard(self: Box<Self>) -> BoxFuture<'static, ()> {
        drop(self);
        Box::pin(std::future::ready(()))
    }
}

/// How a folder is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListHow {
    /// Most names that are kept, smallest first; the others are only counted.
    pub limit: usize,
    /// Whether sizes, modes and times are wanted.
    pub stat: bool,
}

/// One name in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirEntry {
    /// In the host's bytes.
    pub name: Vec<u8>,
    /// What it is; a link is a link.
    pub kind: EntryKind,
    /// Size in bytes, permission bits, and last change in milliseconds since the Unix epoch.
    pub stat: Option<(u64, u32, i64)>,
    /// Where a link points, as written in it.
    pub target: Option<Vec<u8>>,
    /// True for a link whose target is not there.
    pub broken: bool,
    /// True for a link to a folder.
    pub to_folder: bool,
}

/// The names in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Sorted by the bytes of their names.
    pub entries: Vec<DirEntry>,
    /// How many there are in all, those that are hidden included.
    pub total: u64,
    /// How many were hidden from the caller by rules; none of them is among the entries.
    pub denied: u64,
}

/// Files. Every path is absolute; every error keeps its cause.
pub trait Fs: Send + Sync {
    /// Looks a path up once: resolves its links and holds what it found.
    ///
    /// A missing path is no error: its kind is [`FileKind::Missing`].
    ///
    /// # Errors
    /// When a folder on the way is no folder or may not be entered, or links go round in circles.
    fn locate<'a>(
        &'a self,
        path: &'a HostPath,
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>>;

    /// Looks up one name in a located folder, for walks; the name is no path.
    ///
    /// # Errors
    /// As [`locate`](Self::locate).
    fn child<'a>(
        &'a self,
        folder: &'a Located,
        name: &'a [u8],
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>>;

    /// Looks up again what a located path stands for now, for one who waited for his turn at it.
    ///
    /// What it gives has the same real path: a link that took a name meanwhile is never followed.
    ///
    /// # Errors
    /// [`io::ErrorKind::ResourceBusy`] when a link stands there now; otherwise as
    /// [`locate`](Self::locate).
    fn renew<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<Located>> {
        Box::pin(async move { same_place(at, self.locate(&at.real, Follow::No).await?) })
    }

    /// Reads up to `len` bytes from `offset`; fewer only at the end of the file.
    ///
    /// All reads of one [`Located`] see one file, also when another takes its name meanwhile.
    ///
    /// # Errors
    /// When it is no regular file, was replaced since it was located, or cannot be read. Pipes,
    /// sockets and devices are refused at once, never waited for.
    fn read<'a>(
        &'a self,
        at: &'a Located,
        offset: u64,
        len: usize,
    ) -> BoxFuture<'a, io::Result<Bytes>>;

    /// Gives all that a located file holds to a file of this machine, which is empty, in one step
    /// and without copying it. False where that cannot be done, as between two disks and on most
    /// file systems: then it has to be read.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn share<'a>(&'a self, at: &'a Located, with: OwnedFd) -> BoxFuture<'a, io::Result<bool>> {
        let _ = (at, with);
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Replaces a file, or makes it, in one step that survives a crash: old or new, never torn.
    ///
    /// A file that cannot be replaced where it stands may be written in place, which the answer
    /// tells: after a crash it is whole once the host has put it back.
    ///
    /// Mode, owner and, where possible, extended attributes of an old file are kept.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when `expect` does not hold; otherwise the cause, the
    /// old file whole and nothing left behind.
    ///
    /// # Cancel safety
    /// A dropped future may still finish the write; the file is whole either way.
    fn write<'a>(
        &'a self,
        at: &'a Located,
        data: Bytes,
        how: WriteHow,
    ) -> BoxFuture<'a, io::Result<Written>> {
        Box::pin(async move { self.stage(at, data, how).await?.place().await })
    }

    /// Does everything of a [`write`](Self::write) but the last step: the content is on the disk,
    /// and nobody sees it yet. [`Staged::place`] makes it the file.
    ///
    /// Folders that are missing may be made already; they go again where it is not placed.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Cancel safety
    /// What a dropped future has made is removed.
    fn stage<'a>(
        &'a self,
        at: &'a Located,
        data: Bytes,
        how: WriteHow,
    ) -> BoxFuture<'a, io::Result<Box<dyn Staged>>>;

    /// Does what [`stage`](Self::stage) does with content that nobody has to hold as a whole. A host
    /// that cannot take it piece by piece gathers it first, as this does.
    ///
    /// # Errors
    /// As [`stage`](Self::stage), and those of the source, of which nothing is left then either.
    ///
    /// # Cancel safety
    /// As [`stage`](Self::stage).
    fn stage_from<'a>(
        &'a self,
        at: &'a Located,
        mut from: Source,
        how: WriteHow,
    ) -> BoxFuture<'a, io::Result<Box<dyn Staged>>> {
        let gather = move || {
            let mut data = Vec::new();
            from.read_to_end(&mut data).map(|_| Bytes::from(data))
        };
        Box::pin(async move {
            let gathered = tokio::task::spawn_blocking(gather).await;
            let data = gathered.map_err(io::Error::other)??;
            self.stage(at, data, how).await
        })
    }

    /// Does everything of a move but the last step, [`Staged::place`]: that gives a file another
    /// name, which has to be free, and missing folders above it are made. With `data` the file
    /// holds that from then on. Mode, owner and, where possible, extended attributes go along.
    ///
    /// Without `data` and within one file system it is a rename. Otherwise both names stand for a
    /// whole file for an instant, and a crash may leave them so; other names (hard links) of the
    /// file keep what it held.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when the file is not as it was located, or the name is
    /// taken; [`io::ErrorKind::Unsupported`] on hosts that cannot; otherwise as
    /// [`write`](Self::write).
    ///
    /// # Cancel safety
    /// As [`stage`](Self::stage).
    fn stage_move<'a>(
        &'a self,
        from: &'a Located,
        to: &'a Located,
        data: Option<Bytes>,
    ) -> BoxFuture<'a, io::Result<Box<dyn Staged>>> {
        let _ = (to, data);
        let text = "files cannot be moved on this host";
        let error = refuse(io::ErrorKind::Unsupported, &from.real, text);
        Box::pin(std::future::ready(Err(error)))
    }

    /// Owner, permissions and attributes of what stands at a located name; none where the host has
    /// none.
    ///
    /// # Errors
    /// When nothing is there any more, or it cannot be looked at.
    fn rights<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<Option<Rights>>> {
        let _ = at;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// The number of the user that programs run as there; none where the host has none.
    fn user(&self) -> Option<u32> {
        None
    }

    /// Lists a folder.
    ///
    /// # Errors
    /// When it is no folder or cannot be read.
    fn list<'a>(&'a self, at: &'a Located, how: ListHow) -> BoxFuture<'a, io::Result<Listing>>;

    /// Removes a file, a link, or an empty folder.
    ///
    /// # Errors
    /// When nothing is there, the folder is not empty, or it may not be removed.
    fn remove<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<()>>;

    /// Gives a file another name; the new one must be free.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when something has that name; otherwise the cause.
    fn rename<'a>(&'a self, from: &'a Located, to: &'a Located) -> BoxFuture<'a, io::Result<()>>;
}

/// Gives what was found anew if it is where the old one was, and no link.
pub(crate) fn same_place(old: &Located, now: Located) -> io::Result<Located> {
    if now.real == old.real && now.kind != FileKind::Entry(EntryKind::Link) {
        return Ok(now);
    }
    let text = "leads through a link that was not there when it was looked up; try again";
    Err(refuse(io::ErrorKind::ResourceBusy, &old.real, text))
}
