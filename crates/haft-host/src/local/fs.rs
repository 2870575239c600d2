//! Reads, lists, removes and renames located files of this machine.
//!
//! **Invariant:** nothing here takes a path. Everything goes through the folder that `locate` holds
//! and the last name, and no link is followed.

use std::{
    collections::BTreeMap, ffi::CString, future::ready, io, mem::MaybeUninit, ops::ControlFlow,
    sync::Arc,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use haft_types::{EntryKind, Follow, HostPath, Rights};
use rustix::{
    buffer::spare_capacity,
    fd::OwnedFd,
    fs::{self, AtFlags, Mode, OFlags, RawDir, RenameFlags},
    io::Errno,
};
use tokio::runtime::Handle;

use super::{
    Local,
    locate::{self, At},
    metadata, rename,
    write::{self, Content, Writes},
};
use crate::{
    DirEntry, Expect, FileKind, Fs, ListHow, Listing, Located, Source, Staged, WriteHow, Written,
    fault::{fault, refuse},
};

/// Most bytes that are made room for at once where the size of a file is not known.
const STEP: usize = 1024 * 1024;

impl Fs for Local {
    fn locate<'a>(
        &'a self,
        path: &'a HostPath,
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>> {
        let (lookup, path) = (self.lookup, path.clone());
        if self.quick.finds(&path) {
            return Box::pin(ready(locate::locate(lookup, &path, follow)));
        }
        let quick = Arc::clone(&self.quick);
        self.blocking(move || {
            let found = locate::locate(lookup, &path, follow)?;
            quick.learn(&found);
            Ok(found)
        })
    }

    fn child<'a>(
        &'a self,
        folder: &'a Located,
        name: &'a [u8],
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>> {
        let (lookup, folder, name) = (self.lookup, folder.clone(), name.to_vec());
        self.blocking(move || locate::child(lookup, &folder, &name, follow))
    }

    fn renew<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<Located>> {
        let lookup = self.lookup;
        if self.quick.finds(&at.real) {
            return Box::pin(ready(locate::renew(lookup, at)));
        }
        let at = at.clone();
        self.blocking(move || locate::renew(lookup, &at))
    }

    fn read<'a>(
        &'a self,
        at: &'a Located,
        offset: u64,
        len: usize,
    ) -> BoxFuture<'a, io::Result<Bytes>> {
        if self.quick.reads(at, len) {
            return Box::pin(ready(read(at, offset, len)));
        }
        let at = at.clone();
        self.blocking(move || read(&at, offset, len))
    }

    fn share<'a>(&'a self, at: &'a Located, with: OwnedFd) -> BoxFuture<'a, io::Result<bool>> {
        let at = at.clone();
        self.blocking(move || {
            let file = At::of(&at)?.file(&at)?;
            // Whatever keeps it from being shared does not keep it from being read.
            Ok(fs::ioctl_ficlone(&with, &file).is_ok())
        })
    }

    fn write<'a>(
        &'a self,
        at: &'a Located,
        data: Bytes,
        how: WriteHow,
    ) -> BoxFuture<'a, io::Result<Written>> {
        let (at, writes) = (at.clone(), Arc::clone(&self.writes));
        // In one go, so that others have the least time to come in between.
        self.blocking(move || {
            let written = write::stage(&at, Content::Whole(data), &how, &writes)?.place()?;
            writes.changed(&[&at.real]);
            Ok(written)
        })
    }

    fn stage<'a>(
        &'a self,
        at: &'a Located,
        data: Bytes,
        how: WriteHow,
    ) -> BoxFuture<'a, io::Result<Box<dyn Staged>>> {
        self.stage_content(at, Content::Whole(data), how)
    }

    fn stage_from<'a>(
        &'a self,
        at: &'a Located,
        from: Source,
        how: WriteHow,
    ) -> BoxFuture<'a, io::Result<Box<dyn Staged>>> {
        self.stage_content(at, Content::Pieces(from), how)
    }

    fn stage_move<'a>(
        &'a self,
        from: &'a Located,
        to: &'a Located,
        data: Option<Bytes>,
    ) -> BoxFuture<'a, io::Result<Box<dyn Staged>>> {
        let (from, to, writes) = (from.clone(), to.clone(), Arc::clone(&self.writes));
        let told = Arc::clone(&writes);
        let of = vec![from.real.clone(), to.real.clone()];
        let staged = self.blocking(move || rename::stage(&from, &to, data.as_deref(), &writes));
        let aside = self.aside;
        Box::pin(async move {
            let ready = Some(Ready::Move(Box::new(staged.await?)));
            Ok(Box::new(Waiting { ready, aside, writes: told, of }) as Box<dyn Staged>)
        })
    }

    fn rights<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<Option<Rights>>> {
        let at = at.clone();
        self.blocking(move || metadata::of(&at).map(Some))
    }

    fn user(&self) -> Option<u32> {
        Some(rustix::process::geteuid().as_raw())
    }

    fn list<'a>(&'a self, at: &'a Located, how: ListHow) -> BoxFuture<'a, io::Result<Listing>> {
        let at = at.clone();
        self.blocking(move || list(&at, how))
    }

    fn remove<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        let (at, writes) = (at.clone(), Arc::clone(&self.writes));
        self.blocking(move || {
            remove(&at)?;
            writes.changed(&[&at.real]);
            Ok(())
        })
    }

    fn rename<'a>(&'a self, from: &'a Located, to: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        let (from, to, writes) = (from.clone(), to.clone(), Arc::clone(&self.writes));
        self.blocking(move || {
            rename(&from, &to)?;
            writes.changed(&[&from.real, &to.real]);
            Ok(())
        })
    }
}

impl Local {
    fn stage_content<'a>(
        &self,
        at: &Located,
        content: Content,
        how: WriteHow,
    ) -> BoxFuture<'a, io::Result<Box<dyn Staged>>> {
        let (at, writes, aside) = (at.clone(), Arc::clone(&self.writes), self.aside);
        let (told, of) = (Arc::clone(&writes), vec![at.real.clone()]);
        let staged = self.blocking(move || write::stage(&at, content, &how, &writes));
        Box::pin(async move {
            let ready = Some(Ready::Write(Box::new(staged.await?)));
            Ok(Box::new(Waiting { ready, aside, writes: told, of }) as Box<dyn Staged>)
        })
    }

    /// Runs what may wait for a disk on a thread where waiting holds nobody up: a mount whose
    /// server is gone lets a look at a name wait for ever. It ends even when dropped.
    pub(super) fn blocking<'a, T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> BoxFuture<'a, io::Result<T>> {
        blocking(self.aside, work)
    }
}

fn blocking<'a, T: Send + 'static>(
    aside: bool,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> BoxFuture<'a, io::Result<T>> {
    if aside {
        return Box::pin(ready(work()));
    }
    Box::pin(async { tokio::task::spawn_blocking(work).await.map_err(io::Error::other)? })
}

/// What is on the disk and waits for its name.
enum Ready {
    Write(Box<write::Stage>),
    Move(Box<rename::Move>),
}

impl Ready {
    fn place(self) -> io::Result<Written> {
        match self {
            Self::Write(stage) => stage.place(),
            Self::Move(stage) => stage.place(),
        }
    }

    fn made(&self) -> Vec<HostPath> {
        match self {
            Self::Write(stage) => stage.made(),
            Self::Move(stage) => stage.made(),
        }
    }
}

/// What waits for its name; a thread of the runtime never touches it.
struct Waiting {
    ready: Option<Ready>,
    aside: bool,
    writes: Arc<Writes>,
    /// The paths that change.
    of: Vec<HostPath>,
}

impl Staged for Waiting {
    fn place(mut self: Box<Self>) -> BoxFuture<'static, io::Result<Written>> {
        let ready = self.ready.take();
        let (writes, of) = (Arc::clone(&self.writes), std::mem::take(&mut self.of));
        blocking(self.aside, move || {
            let none = || Err(io::ErrorKind::NotFound.into());
            let written = ready.map_or_else(none, Ready::place)?;
            writes.changed(&of.iter().collect::<Vec<_>>());
            Ok(written)
        })
    }

    fn made(&self) -> Vec<HostPath> {
        self.ready.as_ref().map(Ready::made).unwrap_or_default()
    }

    fn discard(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        let ready = self.ready.take();
        let gone = blocking(self.aside, move || {
            drop(ready);
            Ok(())
        });
        Box::pin(async { drop(gone.await) })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let ready = self.ready.take();
        if ready.is_some()
            && !self.aside
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn_blocking(move || drop(ready));
        }
    }
}

fn read(located: &Located, offset: u64, len: usize) -> io::Result<Bytes> {
    let file = At::of(located)?.file(located)?;
    let expected = usize::try_from(located.size().saturating_sub(offset)).unwrap_or(usize::MAX);
    let mut data = Vec::new();
    fill(&file, &mut data, offset, len, expected)
        .map_err(|e| fault(&located.real, "cannot be read", e))?;
    Ok(data.into())
}

/// Reads on until `data` holds `len` bytes from `offset`, or to the end of the file.
fn fill(
    file: &OwnedFd,
    data: &mut Vec<u8>,
    offset: u64,
    len: usize,
    expected: usize,
) -> rustix::io::Result<()> {
    // One more than expected tells the end of the file without growing again.
    data.reserve_exact(len.min(expected.saturating_add(1)).saturating_sub(data.len()));
    while data.len() < len {
        let place = offset.saturating_add(data.len() as u64);
        if i64::try_from(place).is_err() {
            return Ok(());
        }
        if data.capacity() == data.len() {
            data.reserve((len - data.len()).min(STEP));
        }
        let room = data.capacity().min(len) - data.len();
        let got = if room < data.capacity() - data.len() {
            // Reserved more than was asked for: never give more than `len`.
            let start = data.len();
            data.resize(start + room, 0);
            let got = rustix::io::pread(file, &mut data[start..], place);
            data.truncate(start + *got.as_ref().unwrap_or(&0));
            got
        } else {
            rustix::io::pread(file, spare_capacity(data), place)
        };
        match got {
            Ok(0) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn list(located: &Located, how: ListHow) -> io::Result<Listing> {
    let failed = |e: Errno| fault(&located.real, "cannot be listed", e);
    let held = At::of(located)?.inside(located)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = fs::openat(&held, ".", flags, Mode::empty()).map_err(failed)?;
    let mut kept: BTreeMap<Vec<u8>, Option<EntryKind>> = BTreeMap::new();
    let mut total = 0;
    each_name(&folder, |name, kind| {
        total += 1;
        let fits = kept.len() < how.limit;
        if fits || kept.last_key_value().is_some_and(|(last, _)| name < last.as_slice()) {
            kept.insert(name.to_vec(), kind);
        }
        if kept.len() > how.limit {
            kept.pop_last();
        }
        ControlFlow::Continue(())
    })
    .map_err(failed)?;
    let entries =
        kept.into_iter().map(|(name, kind)| entry(&folder, name, kind, how.stat)).collect();
    Ok(Listing { entries, total, denied: 0 })
}

/// Gives every name of a folder but `.` and `..`, in fixed memory, until it is told to stop.
pub(super) fn each_name(
    folder: &OwnedFd,
    mut each: impl FnMut(&[u8], Option<EntryKind>) -> ControlFlow<()>,
) -> rustix::io::Result<()> {
    let mut buffer = vec![MaybeUninit::uninit(); 32 * 1024];
    let mut names = RawDir::new(folder, &mut buffer);
    while let Some(name) = names.next() {
        let name = match name {
            Ok(name) => name,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        };
        let bytes = name.file_name().to_bytes();
        let kind = locate::entry_kind(name.file_type());
        if !matches!(bytes, b"." | b"..") && each(bytes, kind).is_break() {
            break;
        }
    }
    Ok(())
}

/// What is known of one name; a name that is gone meanwhile keeps what the folder said of it.
fn entry(folder: &OwnedFd, name: Vec<u8>, kind: Option<EntryKind>, wanted: bool) -> DirEntry {
    let stat = (wanted || kind.is_none())
        .then(|| fs::statat(folder, &*name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT).ok())
        .flatten();
    let kind = stat.as_ref().map(locate::kind_of).or(kind).unwrap_or_default();
    let mut entry = DirEntry { kind, ..DirEntry::default() };
    if kind == EntryKind::Link {
        entry.target = fs::readlinkat(folder, &*name, Vec::new()).ok().map(CString::into_bytes);
        let target = fs::statat(folder, &*name, AtFlags::NO_AUTOMOUNT);
        entry.broken = matches!(target, Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR));
        entry.to_folder = target.is_ok_and(|stat| locate::kind_of(&stat) == EntryKind::Folder);
    }
    if wanted {
        entry.stat = stat.map(|stat| {
            let stamp = locate::stamp_of(&stat);
            let modified = i64::try_from(stamp.modified.div_euclid(1_000_000)).unwrap_or(i64::MAX);
            (stamp.size, stat.st_mode & 0o7777, modified)
        });
    }
    entry.name = name;
    entry
}

fn remove(located: &Located) -> io::Result<()> {
    let at = At::of(located)?;
    let path = &located.real;
    let flags = match located.kind {
        FileKind::Missing => {
            return Err(refuse(io::ErrorKind::NotFound, path, "no such file or folder"));
        }
        FileKind::FOLDER if at.name == b"." => {
            let text = "is the root of all files and is never removed";
            return Err(refuse(io::ErrorKind::InvalidInput, path, text));
        }
        FileKind::FOLDER => AtFlags::REMOVEDIR,
        FileKind::Entry(_) => AtFlags::empty(),
    };
    at.unchanged(located)?;
    fs::unlinkat(&at.folder, &*at.name, flags)
        .map_err(|e| fault(path, "cannot be removed", sticky(&at, e)))?;
    write::sync_folder(&at.folder)
        .map_err(|e| fault(path, "was removed, but its folder could not be synced to disk", e))
}

/// Says why a name may not be touched that is a mount, or is in a folder with the sticky bit; other
/// errors stay.
pub(super) fn sticky(at: &At, error: Errno) -> io::Error {
    // Trying again would never help.
    if error == Errno::BUSY {
        let text = "it is mounted there by itself, as files of containers are";
        return io::Error::new(io::ErrorKind::Unsupported, text);
    }
    let shared = fs::fstat(&at.folder).is_ok_and(|folder| folder.st_mode & 0o1000 != 0);
    if matches!(error, Errno::PERM | Errno::ACCESS) && shared {
        let text = "in this shared (sticky) folder only the owner of a file may replace, \
                    rename or remove it";
        return io::Error::new(io::ErrorKind::PermissionDenied, format!("{text} ({error})"));
    }
    error.into()
}

fn rename(from: &Located, to: &Located) -> io::Result<()> {
    let (old, new) = (At::of(from)?, At::of(to)?);
    if from.kind == FileKind::Missing {
        return Err(refuse(io::ErrorKind::NotFound, &from.real, "no such file or folder"));
    }
    let taken = || refuse(io::ErrorKind::AlreadyExists, &to.real, "is already there");
    if to.kind != FileKind::Missing {
        return Err(taken());
    }
    if !new.missing.is_empty() {
        let text = "the folder for it is not there; make it first";
        return Err(refuse(io::ErrorKind::NotFound, &to.real, text));
    }
    let is_folder = FileKind::Entry(locate::kind_of(&old.unchanged(from)?)) == FileKind::FOLDER;
    match move_free((&old.folder, &old.name), (&new.folder, &new.name), is_folder) {
        Ok(()) => {}
        Err(Errno::EXIST | Errno::NOTEMPTY) => return Err(taken()),
        Err(error) => {
            let what = format!("cannot be renamed to {}", to.real);
            return Err(fault(&from.real, &what, sticky(&old, error)));
        }
    }
    write::sync_folder(&new.folder)
        .and_then(|()| write::sync_folder(&old.folder))
        .map_err(|e| fault(&to.real, "was renamed, but its folder could not be synced to disk", e))
}

/// Renames where the new name is free, in one step; on file systems without such a step a file
/// gets the new name beside the old one first, and a folder is renamed after a look.
pub(super) fn move_free(
    from: (&OwnedFd, &[u8]),
    to: (&OwnedFd, &[u8]),
    is_folder: bool,
) -> rustix::io::Result<()> {
    match fs::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if is_folder => {
            match fs::statat(to.0, to.1, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => fs::renameat(from.0, from.1, to.0, to.1),
                Ok(_) => Err(Errno::EXIST),
                Err(error) => Err(error),
            }
        }
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            fs::linkat(from.0, from.1, to.0, to.1, AtFlags::empty())?;
            fs::unlinkat(from.0, from.1, AtFlags::empty())
        }
        result => result,
    }
}

/// True when what stands at the name now is what the writer expects.
pub(super) fn holds(expect: Expect, now: Option<&fs::Stat>) -> bool {
    match (expect, now) {
        (Expect::Any, _) | (Expect::Absent, None) => true,
        (Expect::Stamp(stamp), Some(stat)) => locate::stamp_of(stat) == stamp,
        _ => false,
    }
}
