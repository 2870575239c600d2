//! Puts back what a repository lost.
//!
//! **Invariant:** it goes through descriptors, without following a link, and only where nothing is; a
//! file has its content before it has its name. All is synced together at the end.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Seek as _, Write as _},
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::Path,
};

use haft_types::{EntryKind, HostPath};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, mkdirat, openat, renameat_with, symlinkat,
    syncfs, unlinkat,
};

use super::lost::{CopyAt, Loss, Missing};

/// What a file is called until it is whole.
const PARTIAL: &str = ".haft-restored";

impl Loss {
    /// Puts back what is missing; gives how many files and folders that were, and syncs them.
    ///
    /// # Errors
    /// At the first that cannot be put back; what came before it stands.
    pub fn put_back(&self) -> io::Result<usize> {
        let mut count = 0;
        let mut last = None;
        for one in &self.missing {
            let Some(parent) = one.path.parent() else { continue };
            let folder = folder(&parent)?;
            match one.put_back(&folder) {
                Ok(()) => count += 1,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            last = Some(folder);
        }
        if let Some(folder) = last {
            syncfs(folder)?;
        }
        Ok(count)
    }
}

impl Missing {
    fn put_back(&self, folder: &OwnedFd) -> io::Result<()> {
        let name = OsStr::from_bytes(self.path.file_name().unwrap_or_default());
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
                content(folder, name, File::open(copy)?, self.mode)
            }
            (_, CopyAt::Open(file)) => {
                let mut file = file.try_clone()?;
                file.rewind()?;
                content(folder, name, file, self.mode)
            }
            (_, CopyAt::Text(text)) => content(folder, name, &text[..], self.mode),
        }
    }
}

fn content(folder: &OwnedFd, name: &OsStr, mut from: impl io::Read, mode: u32) -> io::Result<()> {
    let mut partial = name.to_owned();
    partial.push(PARTIAL);
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, &partial, flags, Mode::from_raw_mode(mode))?);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let got = from.read(&mut buffer)?;
        if got == 0 {
            break;
        }
        file.write_all(&buffer[..got])?;
    }
    let placed = renameat_with(folder, &partial, folder, name, RenameFlags::NOREPLACE);
    if placed.is_err() {
        let _ = unlinkat(folder, &partial, AtFlags::empty());
    }
    Ok(placed?)
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
