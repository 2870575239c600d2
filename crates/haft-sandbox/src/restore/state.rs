//! The state of what is at a name: recording it, and recreating it.
//!
//! **Invariant:** no link is followed. Folders whose permissions lock out their owner are opened
//! for as long as somebody holds [`Opened`]. Then they get their permissions back.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
};

use rustix::{
    fs::{
        AtFlags, Dir, FileType, Gid, Mode, OFlags, Stat, Uid, chmod, fchmod, fchown, fstat,
        mkdirat, openat, readlinkat, statat, symlinkat, unlinkat,
    },
    io::Errno,
    process::geteuid,
};

/// Most bytes that are kept, and most files, of one protected path.
pub(super) const BYTES: u64 = 4 << 20;
pub(super) const FILES: usize = 1_000;
/// Deepest folder that is looked into.
const DEPTH: usize = 64;

/// What stands at a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Missing,
    File {
        bytes: Vec<u8>,
        rights: Rights,
    },
    Link(Vec<u8>),
    /// Of one on the way, only that it is there.
    Folder {
        entries: Option<BTreeMap<OsString, State>>,
        rights: Rights,
    },
    /// A pipe, a socket, a device: what it is.
    Other(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rights {
    mode: u32,
    owner: (u32, u32),
}

/// Folders that were opened to their owner, with the permissions that they get back.
#[derive(Debug, Default)]
pub(super) struct Opened(RefCell<Vec<(OwnedFd, u32)>>);

impl Drop for Opened {
    fn drop(&mut self) {
        // The last that was opened lies deepest.
        while let Some((folder, mode)) = self.0.get_mut().pop() {
            let _ = set_mode(&folder, mode);
        }
    }
}

impl Opened {
    /// Lets the owner of a folder into it, and write there; false where that was not what was missing.
    fn open(&self, folder: BorrowedFd<'_>) -> bool {
        let Ok(found) = fstat(folder) else { return false };
        let mode = found.st_mode & 0o7777;
        if found.st_uid != geteuid().as_raw()
            || mode & 0o700 == 0o700
            || FileType::from_raw_mode(found.st_mode) != FileType::Directory
        {
            return false;
        }
        let Ok(held) = folder.try_clone_to_owned() else { return false };
        let opened = set_mode(&held, mode | 0o700).is_ok();
        self.0.borrow_mut().extend(opened.then_some((held, mode)));
        opened
    }

    /// Does what needs to write in a folder.
    pub(super) fn writing<T>(
        &self,
        folder: BorrowedFd<'_>,
        mut work: impl FnMut() -> rustix::io::Result<T>,
    ) -> rustix::io::Result<T> {
        match work() {
            Err(Errno::ACCESS) if self.open(folder) => work(),
            other => other,
        }
    }

    /// Does what needs to change the folder at a name, too: what moves gets another folder above it.
    pub(super) fn moving<T>(
        &self,
        (folder, name): (BorrowedFd<'_>, &OsStr),
        mut work: impl FnMut() -> rustix::io::Result<T>,
    ) -> rustix::io::Result<T> {
        match self.writing(folder, &mut work) {
            Err(Errno::ACCESS) if path(folder, name).is_ok_and(|it| self.open(it.as_fd())) => {
                work()
            }
            other => other,
        }
    }

    pub(super) fn enter(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let open = || openat(folder, name, flags, Mode::empty());
        let mut found = open();
        if matches!(found, Err(Errno::ACCESS)) && self.open(folder) {
            found = open();
        }
        if matches!(found, Err(Errno::ACCESS))
            && path(folder, name).is_ok_and(|it| self.open(it.as_fd()))
        {
            found = open();
        }
        Ok(found?)
    }
}

/// Opens what is at a name for nothing but being named.
fn path(folder: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// Sets permissions by a descriptor that may be one for nothing but being named.
fn set_mode(of: &OwnedFd, mode: u32) -> rustix::io::Result<()> {
    chmod(format!("/proc/self/fd/{}", of.as_raw_fd()), Mode::from_raw_mode(mode))
}

/// What may still be kept.
#[derive(Debug)]
pub(super) struct Room<'a> {
    pub(super) bytes: u64,
    pub(super) files: usize,
    pub(super) opened: &'a Opened,
}

impl<'a> Room<'a> {
    /// For one protected path.
    pub(super) const fn new(opened: &'a Opened) -> Self {
        Self { bytes: BYTES, files: FILES, opened }
    }
}

impl State {
    /// What is at these names below it.
    pub(super) fn set(&mut self, names: &[OsString], now: &Self, rights: Rights) {
        let Some((name, below)) = names.split_first() else {
            *self = now.clone();
            return;
        };
        if !matches!(self, Self::Folder { .. }) {
            *self = Self::Folder { entries: None, rights };
        }
        let Self::Folder { entries, .. } = self else { return };
        let entries = entries.get_or_insert_default();
        let at = entries.entry(name.clone()).or_insert(Self::Missing);
        at.set(below, now, rights);
        if *at == Self::Missing {
            entries.remove(name);
        }
    }

    /// Reports whether it is a folder in which nothing has another name than these.
    pub(super) fn holds_only(&self, is_one: impl Fn(&OsStr) -> bool) -> bool {
        let Self::Folder { entries, .. } = self else { return false };
        entries.iter().flatten().all(|(name, at)| is_one(name) && matches!(at, Self::File { .. }))
    }
}

pub(super) fn rights(stat: &Stat) -> Rights {
    Rights { mode: stat.st_mode & 0o7777, owner: (stat.st_uid, stat.st_gid) }
}

/// What stands at a name; what is in a folder only where a depth is given.
pub(super) fn state(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    room: &mut Room<'_>,
    depth: Option<usize>,
) -> io::Result<State> {
    let look = || statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    let mut found = look();
    if matches!(found, Err(Errno::ACCESS)) && room.opened.open(folder) {
        found = look();
    }
    let found = match found {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(State::Missing),
        found => found?,
    };
    room.files =
        room.files.checked_sub(1).ok_or_else(|| too_much(&format!("more than {FILES} files")))?;
    Ok(match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(openat(folder, name, flags, Mode::empty())?);
            let rights = rights(&fstat(&file)?);
            let mut bytes = Vec::new();
            file.take(room.bytes + 1).read_to_end(&mut bytes)?;
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            room.bytes = room
                .bytes
                .checked_sub(length)
                .ok_or_else(|| too_much(&format!("more than {BYTES} bytes")))?;
            State::File { bytes, rights }
        }
        FileType::Symlink => State::Link(readlinkat(folder, name, Vec::new())?.into_bytes()),
        FileType::Directory => {
            let rights = rights(&found);
            let entries = depth.map(|depth| entries(folder, name, room, depth)).transpose()?;
            State::Folder { entries, rights }
        }
        _ => State::Other(found.st_mode),
    })
}

fn too_much(text: &str) -> io::Error {
    io::Error::other(format!("it holds {text}, too much to be kept"))
}

fn entries(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    room: &mut Room<'_>,
    depth: usize,
) -> io::Result<BTreeMap<OsString, State>> {
    if depth >= DEPTH {
        return Err(too_much(&format!("more than {DEPTH} folders in each other")));
    }
    let held = room.opened.enter(folder, name)?;
    let mut found = BTreeMap::new();
    for name in names(&held)? {
        let state = state(held.as_fd(), &name, room, Some(depth + 1))?;
        found.insert(name, state);
    }
    Ok(found)
}

fn names(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}

/// Makes what was at a name, where nothing stands now.
pub(super) fn make(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    state: &State,
    opened: &Opened,
) -> io::Result<()> {
    match state {
        State::Missing => Ok(()),
        State::File { bytes, rights } => {
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let made =
                opened.writing(folder, || openat(folder, name, flags, Mode::RUSR | Mode::WUSR));
            let mut file = File::from(made?);
            file.write_all(bytes)?;
            give(file.as_fd(), *rights)
        }
        State::Link(to) => {
            Ok(opened.writing(folder, || symlinkat(OsStr::from_bytes(to), folder, name))?)
        }
        State::Folder { entries, rights } => {
            opened.writing(folder, || mkdirat(folder, name, Mode::RWXU))?;
            let held = opened.enter(folder, name)?;
            for (name, state) in entries.iter().flatten() {
                make(held.as_fd(), name, state, opened)?;
            }
            give(held.as_fd(), *rights)
        }
        State::Other(_) => Err(io::Error::other("it was neither a file, nor a folder, nor a link")),
    }
}

fn give(of: BorrowedFd<'_>, rights: Rights) -> io::Result<()> {
    let (owner, group) = rights.owner;
    // Only root can give what is not its own; it is its own again then.
    let _ = fchown(of, Some(Uid::from_raw(owner)), Some(Gid::from_raw(group)));
    Ok(fchmod(of, Mode::from_raw_mode(rights.mode))?)
}

/// Removes what is at a name, with all below it.
pub(super) fn remove(folder: BorrowedFd<'_>, name: &OsStr, opened: &Opened) -> io::Result<()> {
    match opened.writing(folder, || unlinkat(folder, name, AtFlags::empty())) {
        Err(Errno::ISDIR) => {}
        other => return Ok(other?),
    }
    let held = opened.enter(folder, name)?;
    for name in names(&held)? {
        remove(held.as_fd(), &name, opened)?;
    }
    Ok(opened.writing(folder, || unlinkat(folder, name, AtFlags::REMOVEDIR))?)
}

/// Names of a path below a folder.
pub(super) fn split(below: &[u8]) -> Vec<OsString> {
    let names = below.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    names.map(|name| OsString::from_vec(name.to_vec())).collect()
}

/// A folder by its path, which has no links in it.
pub(super) fn top(real: &std::path::Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(rustix::fs::CWD, real, flags, Mode::empty())?)
}

/// When a folder of put-aside things is old enough to go.
pub(super) fn is_old(entry: &fs::DirEntry, age: std::time::Duration) -> bool {
    let changed = entry.metadata().and_then(|found| found.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|since| since > age))
}
