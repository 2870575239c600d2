//! Looks up a path once, so that what is checked is what is accessed.
//!
//! **How:** from the root, each folder is opened below the folder before it with `O_PATH` and
//! `O_NOFOLLOW`. Links are read and resolved here, not by the kernel. If the kernel has `openat2`,
//! all folders up to the last name are opened in one step under `RESOLVE_NO_SYMLINKS`. The single
//! steps follow only if that fails. Both ways learn the real path from the names that were opened,
//! never by asking for the name of a descriptor afterwards. So no `/proc` is needed, and no rename
//! in between can give the held folder another name than the one that is checked.
//!
//! **Invariant:** `real` is the list of names by which the held folder was reached. None of them
//! was a link when it was opened. Every later use goes through the held folder and the last name
//! with `O_NOFOLLOW`, and checks that the name still stands for the same file.
//!
//! Links of `/proc` that lead to open files and not to paths are refused. So are other users' links
//! in world-writable folders, as with `fs.protected_symlinks`.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, OnceLock},
};

use haft_types::{EntryKind, Follow, HostPath, Style};
use rustix::{
    fd::OwnedFd,
    fs::{self, AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat},
    io::Errno,
};

use crate::{
    FileKind, Located, Stamp,
    fault::{fault, name_of, refuse},
    fs::same_place,
};

/// Most links that one path may lead through, as in the Linux kernel.
const MAX_LINKS: u32 = 40;
/// What `f_type` says of `/proc`.
const PROC_MAGIC: i128 = 0x9fa0;
/// The inode of the root folder of every `/proc`.
const PROC_ROOT: u64 = 1;
/// How folders are held.
const HOLD: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How paths are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lookup {
    /// In one step if no link is on the way (`openat2`, Linux 5.6 and later).
    Openat2,
    /// Folder by folder.
    Walk,
}

impl Lookup {
    /// The best method that this kernel, and what confines this process, allow; probed once.
    pub fn probed() -> Self {
        static PROBED: OnceLock<Lookup> = OnceLock::new();
        *PROBED.get_or_init(|| {
            match fs::openat2(fs::CWD, "/", HOLD, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
                Ok(_) => Self::Openat2,
                Err(_) => Self::Walk,
            }
        })
    }
}

/// What the local host holds of a located path.
#[derive(Debug)]
pub(super) struct At {
    /// The deepest folder that was there.
    pub(super) folder: Arc<OwnedFd>,
    /// Folders between it and the last name that were not there.
    pub(super) missing: Vec<Vec<u8>>,
    /// The last name; `.` for the root.
    pub(super) name: Vec<u8>,
    /// Device and inode of what was there.
    id: Option<(u64, u64)>,
    /// The opened file or held folder, opened at first use and kept.
    opened: OnceLock<Arc<OwnedFd>>,
}

impl At {
    pub(super) const fn new(
        folder: Arc<OwnedFd>,
        missing: Vec<Vec<u8>>,
        name: Vec<u8>,
        id: Option<(u64, u64)>,
    ) -> Self {
        Self { folder, missing, name, id, opened: OnceLock::new() }
    }

    /// What this host holds of `located`.
    pub(super) fn of(located: &Located) -> io::Result<Arc<Self>> {
        Arc::clone(&located.handle).downcast().map_err(|_| {
            let text = "was located on another host; locate it on this one first";
            refuse(io::ErrorKind::InvalidInput, &located.real, text)
        })
    }

    /// The regular file, opened for reading; the same one at every call.
    pub(super) fn file(&self, located: &Located) -> io::Result<Arc<OwnedFd>> {
        match located.kind {
            FileKind::FILE => {}
            FileKind::Missing => return Err(gone(located, "no such file or folder")),
            FileKind::Entry(kind) => return Err(not_regular(located, kind)),
        }
        self.open(located, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC)
    }

    /// The folder itself, held without the right to list it; the same one at every call.
    pub(super) fn inside(&self, located: &Located) -> io::Result<Arc<OwnedFd>> {
        match located.kind {
            FileKind::FOLDER => self.open(located, HOLD),
            FileKind::Missing => Err(gone(located, "no such file or folder")),
            FileKind::Entry(kind) => {
                let text = format!("is {}, not a folder", name_of(kind));
                Err(refuse(io::ErrorKind::NotADirectory, &located.real, text))
            }
        }
    }

    fn open(&self, located: &Located, flags: OFlags) -> io::Result<Arc<OwnedFd>> {
        if let Some(opened) = self.opened.get() {
            return Ok(Arc::clone(opened));
        }
        let path = &located.real;
        let opened = fs::openat(&self.folder, &*self.name, flags, Mode::empty())
            .map_err(|e| fault(path, "cannot be opened", e))?;
        let stat = fs::fstat(&opened).map_err(|e| fault(path, "cannot be opened", e))?;
        if self.id != Some(id_of(&stat)) || FileKind::Entry(kind_of(&stat)) != located.kind {
            return Err(replaced(located));
        }
        Ok(Arc::clone(self.opened.get_or_init(|| Arc::new(opened))))
    }

    /// What stands at the last name now, without following a link.
    pub(super) fn now(&self) -> rustix::io::Result<Option<Stat>> {
        if !self.missing.is_empty() {
            return Ok(None);
        }
        match fs::statat(&self.folder, &*self.name, NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Fails when the last name stands for something else than what was located.
    pub(super) fn unchanged(&self, located: &Located) -> io::Result<Stat> {
        match self.now() {
            Ok(Some(stat)) if self.id == Some(id_of(&stat)) => Ok(stat),
            Ok(None) => Err(gone(located, "is not there any more")),
            Ok(Some(_)) => Err(replaced(located)),
            Err(error) => Err(fault(&located.real, "cannot be looked at", error)),
        }
    }
}

const NOFOLLOW: AtFlags = AtFlags::SYMLINK_NOFOLLOW.union(AtFlags::NO_AUTOMOUNT);

fn gone(located: &Located, text: &str) -> io::Error {
    refuse(io::ErrorKind::NotFound, &located.real, text)
}

fn replaced(located: &Located) -> io::Error {
    let text = "was replaced by another file since it was looked up; try again";
    refuse(io::ErrorKind::ResourceBusy, &located.real, text)
}

pub(super) fn not_regular(located: &Located, kind: EntryKind) -> io::Error {
    let error = if kind == EntryKind::Folder {
        io::ErrorKind::IsADirectory
    } else {
        io::ErrorKind::InvalidInput
    };
    refuse(error, &located.real, format!("is {}, not a regular file", name_of(kind)))
}

pub(super) const fn id_of(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

pub(super) fn kind_of(stat: &Stat) -> EntryKind {
    entry_kind(FileType::from_raw_mode(stat.st_mode)).unwrap_or(EntryKind::Device)
}

/// None where the file system does not say.
pub(super) const fn entry_kind(kind: FileType) -> Option<EntryKind> {
    match kind {
        FileType::RegularFile => Some(EntryKind::File),
        FileType::Directory => Some(EntryKind::Folder),
        FileType::Symlink => Some(EntryKind::Link),
        FileType::Fifo => Some(EntryKind::Fifo),
        FileType::Socket => Some(EntryKind::Socket),
        FileType::BlockDevice => Some(EntryKind::Device),
        FileType::CharacterDevice => Some(EntryKind::CharDevice),
        FileType::Unknown => None,
    }
}

pub(super) fn stamp_of(stat: &Stat) -> Stamp {
    Stamp {
        id: id_of(stat),
        size: u64::try_from(stat.st_size).unwrap_or(0),
        modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
    }
}

fn nanoseconds(seconds: impl Into<i128>, rest: impl Into<i128>) -> i128 {
    seconds.into() * 1_000_000_000 + rest.into()
}

/// The located form of what `stat` says stands at `at`.
pub(super) fn located(real: HostPath, stat: &Stat, at: At) -> Located {
    Located {
        real,
        kind: FileKind::Entry(kind_of(stat)),
        stamp: Some(stamp_of(stat)),
        names: stat.st_nlink,
        handle: Arc::new(At { id: Some(id_of(stat)), ..at }),
    }
}

fn root() -> io::Result<Arc<OwnedFd>> {
    static ROOT: OnceLock<Arc<OwnedFd>> = OnceLock::new();
    if let Some(root) = ROOT.get() {
        return Ok(Arc::clone(root));
    }
    let root = fs::openat(fs::CWD, "/", HOLD, Mode::empty())
        .map_err(|e| fault(&HostPath::root(Style::Posix), "cannot be opened", e))?;
    Ok(Arc::clone(ROOT.get_or_init(|| Arc::new(root))))
}

/// Looks up an absolute path.
pub(super) fn locate(lookup: Lookup, path: &HostPath, follow: Follow) -> io::Result<Located> {
    let pending = path.names().map(<[u8]>::to_vec).collect();
    Walker { lookup, path, real: Vec::new(), folder: root()?, pending, links: 0, leap: true }
        .run(follow)
}

/// Looks up one name in a located folder.
pub(super) fn child(
    lookup: Lookup,
    folder: &Located,
    name: &[u8],
    follow: Follow,
) -> io::Result<Located> {
    if matches!(name, b"" | b"." | b"..") || name.iter().any(|b| matches!(b, b'/' | 0)) {
        let text = format!("{:?} is no single name", String::from_utf8_lossy(name));
        return Err(refuse(io::ErrorKind::InvalidInput, &folder.real, text));
    }
    let held = At::of(folder)?.inside(folder)?;
    let mut real = folder.real.as_bytes().to_vec();
    if real == b"/" {
        real.clear();
    }
    let pending = VecDeque::from([name.to_vec()]);
    let path = &folder.real;
    Walker { lookup, path, real, folder: held, pending, links: 0, leap: false }.run(follow)
}

/// Looks up again what stands at the located names below the held folder.
pub(super) fn renew(lookup: Lookup, old: &Located) -> io::Result<Located> {
    let (at, path) = (At::of(old)?, &old.real);
    if path.file_name().is_none() {
        return locate(lookup, path, Follow::No);
    }
    let pending: VecDeque<_> = at.missing.iter().chain([&at.name]).cloned().collect();
    let held = std::iter::successors(path.parent(), HostPath::parent).nth(at.missing.len());
    let mut real = held.map_or_else(Vec::new, |held| held.as_bytes().to_vec());
    if real == b"/" {
        real.clear();
    }
    let folder = Arc::clone(&at.folder);
    let walker = Walker { lookup, path, real, folder, pending, links: 0, leap: false };
    same_place(old, walker.run(Follow::No)?)
}

struct Walker<'a> {
    lookup: Lookup,
    /// What was asked for; for errors.
    path: &'a HostPath,
    /// The names of `folder`, each after a `/`; empty for the root.
    real: Vec<u8>,
    folder: Arc<OwnedFd>,
    pending: VecDeque<Vec<u8>>,
    links: u32,
    /// Whether the names ahead are worth trying in one step.
    leap: bool,
}

impl Walker<'_> {
    fn run(mut self, follow: Follow) -> io::Result<Located> {
        loop {
            self.leap();
            let Some(name) = self.pending.pop_front() else {
                if !self.step_back()? {
                    return self.at_root();
                }
                continue;
            };
            if name == b".." {
                self.climb()?;
            } else if !self.pending.is_empty() {
                if let Some(missing) = self.enter(&name)? {
                    return Ok(missing);
                }
            } else if let Some(found) = self.last(name, follow)? {
                return Ok(found);
            }
        }
    }

    /// Opens all folders before the last name in one step, where that needs no link.
    fn leap(&mut self) {
        if self.lookup == Lookup::Walk || !self.leap || self.pending.len() < 3 {
            return;
        }
        self.leap = false;
        let last = self.pending.len() - 1;
        if self.pending.iter().any(|name| name == b"..") {
            return;
        }
        let ahead: Vec<&[u8]> = self.pending.iter().take(last).map(Vec::as_slice).collect();
        let ahead = ahead.join(&b'/');
        if let Ok(folder) = self.beneath(&ahead) {
            self.folder = Arc::new(folder);
            self.real.push(b'/');
            self.real.extend_from_slice(&ahead);
            self.pending.drain(..last);
        }
    }

    fn beneath(&self, names: &[u8]) -> rustix::io::Result<OwnedFd> {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        loop {
            match fs::openat2(&self.folder, names, HOLD, Mode::empty(), resolve) {
                Err(Errno::INTR) => {}
                result => return result,
            }
        }
    }

    /// Enters a folder on the way, or the link that stands there.
    fn enter(&mut self, name: &[u8]) -> io::Result<Option<Located>> {
        match fs::openat(&self.folder, name, HOLD, Mode::empty()) {
            Ok(folder) => {
                self.folder = Arc::new(folder);
                self.real.push(b'/');
                self.real.extend_from_slice(name);
                Ok(None)
            }
            Err(Errno::NOENT) => self.missing(name.to_vec()).map(Some),
            Err(Errno::NOTDIR | Errno::LOOP) => match self.read_link(name) {
                Ok(target) => self.jump(name, &target).map(|()| None),
                Err(Errno::INVAL) => {
                    let text = format!("{} is not a folder", self.shown(name));
                    Err(refuse(io::ErrorKind::NotADirectory, self.path, text))
                }
                Err(error) => Err(self.fault(name, error)),
            },
            Err(error) => Err(self.fault(name, error)),
        }
    }

    fn last(&mut self, name: Vec<u8>, follow: Follow) -> io::Result<Option<Located>> {
        let stat = match fs::statat(&self.folder, &*name, NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return self.missing(name).map(Some),
            Err(error) => return Err(self.fault(&name, error)),
        };
        if kind_of(&stat) == EntryKind::Link && follow == Follow::Yes {
            let target = self.read_link(&name).map_err(|e| self.fault(&name, e))?;
            return self.jump(&name, &target).map(|()| None);
        }
        let real = self.real_path(&[&name])?;
        let at = At::new(Arc::clone(&self.folder), Vec::new(), name, None);
        Ok(Some(located(real, &stat, at)))
    }

    fn read_link(&self, name: &[u8]) -> rustix::io::Result<Vec<u8>> {
        fs::readlinkat(&self.folder, name, Vec::new()).map(std::ffi::CString::into_bytes)
    }

    /// Goes on at the target of a link.
    fn jump(&mut self, name: &[u8], target: &[u8]) -> io::Result<()> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(self.fault(name, Errno::LOOP));
        }
        self.judge_link(name, target)?;
        if target.is_empty() {
            return Err(self.fault(name, Errno::NOENT));
        }
        if target.starts_with(b"/") {
            self.real.clear();
            self.folder = root()?;
        }
        let names = target.split(|&b| b == b'/').filter(|n| !matches!(*n, b"" | b"."));
        for name in names.rev() {
            self.pending.push_front(name.to_vec());
        }
        self.leap = true;
        Ok(())
    }

    /// Refuses links that are no paths, and traps that strangers set in shared folders.
    fn judge_link(&self, name: &[u8], target: &[u8]) -> io::Result<()> {
        let judge = || -> rustix::io::Result<(Stat, Stat, bool)> {
            let link = fs::statat(&self.folder, name, NOFOLLOW)?;
            let folder = fs::fstat(&self.folder)?;
            let system = fs::fstatfs(&self.folder)?;
            Ok((link, folder, i128::from(system.f_type) == PROC_MAGIC))
        };
        let (link, folder, in_proc) = judge().map_err(|e| self.fault(name, e))?;
        // Plain links of /proc have the length of their target, or lie in its root folder.
        let plain = folder.st_ino == PROC_ROOT || usize::try_from(link.st_size) == Ok(target.len());
        if in_proc && !plain {
            let text = "is a link to an open file of a process, not to a path; \
                        name the file by its path";
            let shown = self.shown(name);
            let text = format!("{shown} {text}");
            return Err(refuse(io::ErrorKind::PermissionDenied, self.path, text));
        }
        let shared = folder.st_mode & 0o1002 == 0o1002;
        let me = rustix::process::geteuid().as_raw();
        if shared && link.st_uid != me && link.st_uid != folder.st_uid {
            let text = "is a link that another user put into a shared folder; it is not followed";
            let shown = self.shown(name);
            let text = format!("{shown} {text}");
            return Err(refuse(io::ErrorKind::PermissionDenied, self.path, text));
        }
        Ok(())
    }

    /// Goes to the folder above, by its names and not by `..`, which a rename can turn.
    fn climb(&mut self) -> io::Result<()> {
        let end = self.real.iter().rposition(|&b| b == b'/').unwrap_or(0);
        self.real.truncate(end);
        self.folder = self.reopen()?;
        Ok(())
    }

    /// Where a link ends at a folder itself: takes its last name back, to hold the folder above.
    fn step_back(&mut self) -> io::Result<bool> {
        let Some(slash) = self.real.iter().rposition(|&b| b == b'/') else { return Ok(false) };
        self.pending.push_front(self.real[slash + 1..].to_vec());
        self.climb()?;
        Ok(true)
    }

    fn reopen(&self) -> io::Result<Arc<OwnedFd>> {
        let mut folder = root()?;
        for name in self.real.split(|&b| b == b'/').filter(|name| !name.is_empty()) {
            let next = fs::openat(&folder, name, HOLD, Mode::empty())
                .map_err(|e| fault(self.path, "changed while it was looked up", e))?;
            folder = Arc::new(next);
        }
        Ok(folder)
    }

    fn missing(&mut self, name: Vec<u8>) -> io::Result<Located> {
        if self.pending.iter().any(|name| name == b"..") {
            return Err(self.fault(&name, Errno::NOENT));
        }
        let mut names = vec![name];
        names.extend(self.pending.drain(..));
        let shown: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let real = self.real_path(&shown)?;
        let name = names.pop().unwrap_or_default();
        let at = At::new(Arc::clone(&self.folder), names, name, None);
        Ok(Located { real, kind: FileKind::Missing, stamp: None, names: 0, handle: Arc::new(at) })
    }

    fn at_root(&self) -> io::Result<Located> {
        let stat = fs::fstat(&self.folder).map_err(|e| self.fault(b"", e))?;
        let at = At::new(Arc::clone(&self.folder), Vec::new(), b".".to_vec(), None);
        Ok(located(HostPath::root(Style::Posix), &stat, at))
    }

    fn real_path(&self, names: &[&[u8]]) -> io::Result<HostPath> {
        let mut bytes = self.real.clone();
        for name in names {
            bytes.push(b'/');
            bytes.extend_from_slice(name);
        }
        HostPath::new(&bytes, Style::Posix)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))
    }

    fn shown(&self, name: &[u8]) -> String {
        self.real_path(&[name]).map_or_else(|e| e.to_string(), |path| path.to_string())
    }

    fn fault(&self, name: &[u8], error: Errno) -> io::Error {
        let at = self.shown(name);
        let at = if at == *self.path.text() { String::new() } else { format!(" at {at}") };
        fault(self.path, &format!("cannot be looked up{at}"), error)
    }
}
