//! Files of a host.
//!
//! **Invariant:** every method but [`Fs::locate`] works on what was located, never on a path again.
//! So a link that is swapped in later redirects nothing.

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
    /// Nothing is there; the parent folders may be missing, too.
    Missing,
}

impl FileKind {
    /// A regular file.
    pub const FILE: Self = Self::Entry(EntryKind::File);
    /// A folder.
    pub const FOLDER: Self = Self::Entry(EntryKind::Folder);
}

/// Identifies one state of a file without reading it. Compare stamps, never interpret them.
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

/// The host's own data of a located path: open descriptors of the folder and the name in it.
pub type Handle = Arc<dyn Any + Send + Sync>;

/// A path that was looked up once, with links resolved.
#[derive(Clone)]
pub struct Located {
    /// The path with every followed link resolved.
    pub real: HostPath,
    /// What was there.
    pub kind: FileKind,
    /// Its state; `None` if nothing was there.
    pub stamp: Option<Stamp>,
    /// Number of names (hard links) of the file; 0 if nothing was there.
    pub names: u64,
    /// Only for the host itself.
    pub handle: Handle,
}

impl Located {
    /// Size in bytes; 0 if nothing was there.
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

/// The state that a write expects at the path, so that unseen changes are never overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing is there yet.
    Absent,
    /// The file in the state in which it was located or read.
    Stamp(Stamp),
    /// Any state.
    Any,
}

/// How a file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteHow {
    /// The state that must be there.
    pub expect: Expect,
    /// Whether missing parent folders are created.
    pub parents: bool,
    /// Permission bits of a new file, before the umask. An existing file keeps its own.
    pub mode: u32,
    /// Rights that the file gets, whatever it had and whatever the umask is, as for a restored
    /// file. What the writer may not set is left out. Then no more rights are granted than are
    /// named.
    pub rights: Option<Rights>,
}

impl Default for WriteHow {
    fn default() -> Self {
        Self { expect: Expect::Any, parents: false, mode: 0o666, rights: None }
    }
}

/// The result of a write.
#[derive(Clone, Debug)]
pub struct Written {
    /// The file as it is now.
    pub at: Located,
    /// Folders that were created for it, topmost first.
    pub made: Vec<HostPath>,
    /// Why the file could not be replaced and was written in place, so not in one step. Readers may
    /// have seen a part of each text, and all its names (hard links) have the new one. `None`
    /// otherwise.
    pub in_place: Option<&'static str>,
}

/// Content that is read piece by piece, whatever its size. If reading fails, so does the write.
pub type Source = Box<dyn io::Read + Send>;

/// Content that is on the disk and ready to become a file, see [`Fs::stage`].
///
/// **Invariant:** dropped before it is placed, it leaves nothing, nor a folder that was created for
/// it. If the process is killed, the next one removes it.
pub trait Staged: Send {
    /// Makes it the file, if the expected state still holds.
    ///
    /// # Errors
    /// As [`Fs::write`]; nothing of it is left then.
    ///
    /// # Cancel safety
    /// As [`Fs::write`].
    fn place(self: Box<Self>) -> BoxFuture<'static, io::Result<Written>>;

    /// Folders that were created for it so far, topmost first.
    fn made(&self) -> Vec<HostPath> {
        Vec::new()
    }

    /// Removes it, and returns once it is removed. If the future is dropped, it may be removed a
    /// moment later.
    fn discard(self: Box<Self>) -> BoxFuture<'static, ()> {
        drop(self);
        Box::pin(std::future::ready(()))
    }
}

/// How a folder is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListHow {
    /// Most names that are returned, smallest first; the others are only counted.
    pub limit: usize,
    /// Whether sizes, modes and times are wanted.
    pub stat: bool,
}

/// One name in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirEntry {
    /// The name in the host's bytes.
    pub name: Vec<u8>,
    /// The kind of entry; a link is reported as a link.
    pub kind: EntryKind,
    /// Size in bytes, permission bits, and last change in milliseconds since the Unix epoch.
    pub stat: Option<(u64, u32, i64)>,
    /// The target of a link, as written in it.
    pub target: Option<Vec<u8>>,
    /// True for a link whose target does not exist.
    pub broken: bool,
    /// True for a link to a folder.
    pub to_folder: bool,
}

/// The names in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The entries, sorted by the bytes of their names.
    pub entries: Vec<DirEntry>,
    /// Number of all names, those that are hidden included.
    pub total: u64,
    /// Number of names that rules hide from the caller; none of them is among the entries.
    pub denied: u64,
}

/// File operations of a host. Every path is absolute; every error keeps its cause.
pub trait Fs: Send + Sync {
    /// Looks up a path once: resolves its links and holds what it found.
    ///
    /// A missing path is no error: its kind is [`FileKind::Missing`].
    ///
    /// # Errors
    /// If a component on the way is not a folder or may not be entered, or links form a cycle.
    fn locate<'a>(
        &'a self,
        path: &'a HostPath,
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>>;

    /// Looks up one name in a located folder, for walks. The name is not a path.
    ///
    /// # Errors
    /// As [`locate`](Self::locate).
    fn child<'a>(
        &'a self,
        folder: &'a Located,
        name: &'a [u8],
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>>;

    /// Looks up again what a located path stands for now, for a caller that waited for its lock.
    ///
    /// The result has the same real path: a link that took the name meanwhile is never followed.
    ///
    /// # Errors
    /// [`io::ErrorKind::ResourceBusy`] when a link stands there now; otherwise as
    /// [`locate`](Self::locate).
    fn renew<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<Located>> {
        Box::pin(async move { same_place(at, self.locate(&at.real, Follow::No).await?) })
    }

    /// Reads up to `len` bytes from `offset`; fewer only at the end of the file.
    ///
    /// All reads of one [`Located`] see one file, even if another file takes its name meanwhile.
    ///
    /// # Errors
    /// If it is not a regular file, was replaced since it was located, or cannot be read. Pipes,
    /// sockets and devices are refused at once, never waited for.
    fn read<'a>(
        &'a self,
        at: &'a Located,
        offset: u64,
        len: usize,
    ) -> BoxFuture<'a, io::Result<Bytes>>;

    /// Clones the content of a located file into an empty file of this machine, in one step and
    /// without copying it. Returns false if that is impossible, as between two disks and on most
    /// file systems. Then the content has to be read.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn share<'a>(&'a self, at: &'a Located, with: OwnedFd) -> BoxFuture<'a, io::Result<bool>> {
        let _ = (at, with);
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Replaces a file, or creates it, in one step that survives a crash: old or new, never torn.
    ///
    /// A file that cannot be replaced may be written in place, which the result reports. After a
    /// crash such a file is whole again once the host has restored it.
    ///
    /// Mode, owner and, where possible, extended attributes of an old file are preserved.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if `expect` does not hold. Otherwise the cause: the old
    /// file is whole and nothing is left behind.
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

    /// Does every step of a [`write`](Self::write) except the last. The content is on the disk, and
    /// nobody sees it yet. [`Staged::place`] makes it the file.
    ///
    /// Missing folders may be created already. They are removed again if it is not placed.
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

    /// Does what [`stage`](Self::stage) does, with content that need not be held in memory as a
    /// whole. A host that cannot take it piece by piece collects it first, as this default does.
    ///
    /// # Errors
    /// As [`stage`](Self::stage), and those of the source; nothing of the content is left then
    /// either.
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

    /// Does every step of a move except the last, [`Staged::place`]. Placing gives a file another
    /// name, which has to be free; missing folders above it are created. With `data`, the file then
    /// has that content. Mode, owner and, where possible, extended attributes are preserved.
    ///
    /// Without `data` and within one file system it is a rename. Otherwise both names stand for a
    /// whole file for an instant, and a crash may leave them so. Other names (hard links) of the
    /// file keep the old content.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the file has changed since it was located, or the name
    /// is taken. [`io::ErrorKind::Unsupported`] on hosts that cannot move files. Otherwise as
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

    /// Owner, permissions and attributes of a located file; `None` if the host has none.
    ///
    /// # Errors
    /// If nothing is there any more, or it cannot be read.
    fn rights<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<Option<Rights>>> {
        let _ = at;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// The id of the user that programs run as on this host; `None` if the host has none.
    fn user(&self) -> Option<u32> {
        None
    }

    /// Lists a folder.
    ///
    /// # Errors
    /// If it is not a folder or cannot be read.
    fn list<'a>(&'a self, at: &'a Located, how: ListHow) -> BoxFuture<'a, io::Result<Listing>>;

    /// Removes a file, a link, or an empty folder.
    ///
    /// # Errors
    /// If nothing is there, the folder is not empty, or it may not be removed.
    fn remove<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<()>>;

    /// Gives a file another name; the new name must be free.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if something has that name; otherwise the cause.
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
