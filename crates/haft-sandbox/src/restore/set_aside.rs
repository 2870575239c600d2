//! Moves aside what is at a path where something else has to be restored: it may be somebody's
//! work.
//!
//! **Invariant:** nothing is removed before all of it is stored elsewhere.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder},
    hash::{BuildHasher, RandomState},
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{ffi::OsStrExt, fs::DirBuilderExt},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use haft_types::{HostPath, Style};
use rustix::{
    fs::{AtFlags, RenameFlags, renameat, renameat_with, statat},
    io::Errno,
};

use super::state::{Opened, Room, is_old, make, remove, state, top};

/// Names that are tried for what is put aside.
const TRIES: usize = 100;
/// How long what was put aside is kept.
const KEPT: Duration = Duration::from_hours(30 * 24);
/// Most bytes, and most files, that are carried to another disk.
const BYTES: u64 = 64 << 20;
const FILES: usize = 10_000;

/// Takes away what stands at a name: to a folder of its own below `aside`, or, where there is none or
/// it cannot go there, to another name beside it; its path, if anything stood there.
pub(super) fn put_aside(
    (folder, name): (BorrowedFd<'_>, &OsStr),
    at: &HostPath,
    aside: Option<&Path>,
    opened: &Opened,
) -> io::Result<Option<HostPath>> {
    if let Err(Errno::NOENT) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        return Ok(None);
    }
    if let Some(moved) = aside.and_then(|aside| away(folder, name, aside, opened).ok()) {
        return HostPath::new(moved.as_os_str().as_bytes(), Style::Posix)
            .map(Some)
            .map_err(io::Error::other);
    }
    for _ in 0..TRIES {
        let mut other = name.to_owned();
        other.push(format!(".put-aside-{}", word(name)));
        let beside = || at.join_bytes(other.as_bytes()).map(Some).map_err(io::Error::other);
        let no_replace = || renameat_with(folder, name, folder, &other, RenameFlags::NOREPLACE);
        match opened.writing(folder, no_replace) {
            Ok(()) => return beside(),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::EXIST) => {}
            // Not every file system can look; the name is nobody's.
            Err(Errno::INVAL | Errno::NOSYS) => {
                renameat(folder, name, folder, &other)?;
                return beside();
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// A word that nobody could know before.
fn word(of: &OsStr) -> String {
    format!("{:08x}", RandomState::new().hash_one(of) >> 32)
}

fn away(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    aside: &Path,
    opened: &Opened,
) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(aside)?;
    for old in fs::read_dir(aside)?.flatten().filter(|entry| is_old(entry, KEPT)) {
        let _ = fs::remove_dir_all(old.path());
    }
    let own = aside.join(word(name));
    DirBuilder::new().mode(0o700).create(&own)?;
    let moved = (|| {
        let to = top(&own)?;
        match opened.moving((folder, name), || renameat(folder, name, &to, name)) {
            Err(Errno::XDEV) => {
                let mut room = Room { bytes: BYTES, files: FILES, opened };
                let whole = state(folder, name, &mut room, Some(0))?;
                make(to.as_fd(), name, &whole, opened)?;
                remove(folder, name, opened)
            }
            other => Ok(other?),
        }
    })();
    match moved {
        Ok(()) => Ok(own.join(name)),
        Err(error) => {
            let _ = fs::remove_dir_all(&own);
            Err(error)
        }
    }
}
