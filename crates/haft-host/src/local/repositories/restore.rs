//! Restores what a repository lost.
//!
//! **Invariant:** restoring goes through descriptors, follows no link, and writes only where
//! nothing is. A file has its content before it has its name. Everything is synced together at the
//! end. If something is still being removed meanwhile, it is tried again.

use std::{
    ffi::OsStr,
    fs::{self, File, FileTimes},
    io::{self, Seek as _, Write as _},
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::Path,
    time::SystemTime,
};

use haft_types::{EntryKind, HostPath};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, linkat, mkdirat, openat, renameat_with,
    symlinkat, syncfs, unlinkat,
};

use super::losses::{CopyAt, Loss, Missing};
use crate::local::leftovers::temp_name;

/// How many names are tried for a file until it is whole.
const NAMES: usize = 16;
/// How often it is tried while folders go.
const TIMES: usize = 32;

impl Loss {
    /// Restores what is missing, and syncs it. What cannot be restored stays in `missing`.
    ///
    /// # Errors
    /// The first error; the other files are restored all the same.
    pub fn put_back(&mut self) -> io::Result<()> {
        let mut done = self.put_back_once();
        for _ in 1..TIMES {
            // Its folder went between two steps: somebody removes what is put back.
            if !done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                break;
            }
            done = self.put_back_once();
        }
        done
    }

    fn put_back_once(&mut self) -> io::Result<()> {
        let (mut failed, mut last) = (None, None);
        self.missing.retain(|one| {
            let done = one.path.parent().map(|parent| folder(&parent)).transpose();
            let done = done.and_then(|folder| {
                let Some(folder) = folder else { return Ok(()) };
                one.put_back(&folder)?;
                last = Some(folder);
                Ok(())
            });
            let Err(error) = done else { return false };
            let text = || format!("{}: {error}", one.path.text());
            failed.get_or_insert_with(|| io::Error::new(error.kind(), text()));
            true
        });
        if let Some(folder) = last {
            syncfs(folder)?;
        }
        failed.map_or(Ok(()), Err)
    }
}

impl Missing {
    /// Puts it back, unless something of its kind stands there by now.
    fn put_back(&self, folder: &OwnedFd) -> io::Result<()> {
        let name = OsStr::from_bytes(self.path.file_name().unwrap_or_default());
        match self.make(folder, name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_folder = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|found| {
                        FileType::from_raw_mode(found.st_mode) == FileType::Directory
                    });
                let is_same = is_folder == (self.kind == EntryKind::Folder);
                if is_same { Ok(()) } else { Err(error) }
            }
            made => made,
        }
    }

    fn make(&self, folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
        match (self.kind, &self.copy) {
            (EntryKind::Folder, _) => Ok(mkdirat(folder, name, Mode::from_raw_mode(0o777))?),
            (EntryKind::Link, CopyAt::At(copy)) => {
                Ok(symlinkat(fs::read_link(copy)?, folder, name)?)
            }
            (_, CopyAt::At(copy)) => {
                let is_object = copy.components().any(|part| part.as_os_str() == "objects");
                if is_object && linkat(CWD, copy, folder, name, AtFlags::empty()).is_ok() {
                    return Ok(());
                }
                let copy = File::open(copy)?;
                let time = copy.metadata()?.modified().ok();
                content(folder, name, copy, (self.mode, time))
            }
            (_, CopyAt::Open(file)) => {
                let mut file = file.try_clone()?;
                file.rewind()?;
                content(folder, name, file, (self.mode, None))
            }
            (_, CopyAt::Text(text)) => content(folder, name, &text[..], (self.mode, None)),
        }
    }
}

/// Makes a file, with the time of its copy: packed refs are known by it.
fn content(
    folder: &OwnedFd,
    name: &OsStr,
    mut from: impl io::Read,
    (mode, time): (u32, Option<SystemTime>),
) -> io::Result<()> {
    let (partial, mut file) = partial(folder, mode)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let got = from.read(&mut buffer)?;
        if got == 0 {
            break;
        }
        file.write_all(&buffer[..got])?;
    }
    if let Some(time) = time {
        file.set_times(FileTimes::new().set_modified(time))?;
    }
    let placed = renameat_with(folder, &partial, folder, name, RenameFlags::NOREPLACE);
    if placed.is_err() {
        let _ = unlinkat(folder, &partial, AtFlags::empty());
    }
    Ok(placed?)
}

/// A file that is there under no other name: whatever stands in its place is not opened.
fn partial(folder: &OwnedFd, mode: u32) -> io::Result<(String, File)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..NAMES {
        let name = temp_name();
        match openat(folder, &name, flags, Mode::from_raw_mode(mode)) {
            Ok(file) => return Ok((name, File::from(file))),
            Err(error) => last = error.into(),
        }
    }
    Err(last)
}

/// A folder by its real path; what is missing above it is made.
fn folder(path: &HostPath) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = openat(CWD, Path::new("/"), flags, Mode::empty())?;
    for name in path.names() {
        let name = OsStr::from_bytes(name);
        at = match openat(&at, name, flags, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => {
                mkdirat(&at, name, Mode::from_raw_mode(0o777))?;
                openat(&at, name, flags, Mode::empty())?
            }
            found => found?,
        };
    }
    Ok(at)
}
