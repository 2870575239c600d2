//! The steps of a walk on this machine's disk.
//!
//! **Invariant:** everything is opened below an open folder by one name with `O_NOFOLLOW`, so no
//! link that appears meanwhile leads out of the located root; a file that became a link, a pipe or
//! a device since its folder was listed is passed over. The folders above the root, whose ignore
//! files count too, are the only ones that are opened by path; nothing of them is ever shown.
//! A pipe that takes a file's name in the instant before it is opened is opened without waiting
//! and closed again unread.

use std::{
    fs::File,
    io::{self, Read},
    sync::Arc,
};

use haft_types::EntryKind;
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat},
};

use super::super::locate::{entry_kind, kind_of};
use crate::walk::{Base, FOLDER_LIMIT, IGNORE_LIMIT, Item, Name, Step, Walker};

/// An open folder.
pub(super) type Folder = Arc<OwnedFd>;

const FOLDER: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const FILE: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens a folder below an open one, for listing.
pub(super) fn open_folder(folder: impl AsFd, name: &[u8]) -> rustix::io::Result<Folder> {
    openat(folder, name, FOLDER | OFlags::RDONLY, Mode::empty()).map(Arc::new)
}

/// Opens a regular file below an open folder; none when it is none any more.
pub(super) fn open_file(folder: impl AsFd, name: &[u8]) -> io::Result<Option<File>> {
    use rustix::io::Errno;
    let file = match openat(folder, name, FILE | OFlags::RDONLY, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::LOOP | Errno::NOENT | Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let regular = FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile;
    Ok(regular.then(|| File::from(file)))
}

/// Lists an open folder; the second value counts the names that were too many.
pub(super) fn list(folder: &OwnedFd) -> io::Result<(Vec<Name>, u64)> {
    let mut names = Vec::new();
    let mut left = 0;
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let bytes = entry.file_name().to_bytes();
        if bytes == b"." || bytes == b".." {
            continue;
        }
        if names.len() >= FOLDER_LIMIT {
            left += 1;
            continue;
        }
        let kind = match entry_kind(entry.file_type()) {
            Some(kind) => kind,
            None => match statat(folder, bytes, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => kind_of(&stat),
                Err(_) => continue,
            },
        };
        names.push(Name { bytes: bytes.to_vec(), kind, to_folder: false });
    }
    Ok((names, left))
}

/// Reads an ignore file; none where it is not there or is no regular file.
fn ignore_file(base: &Base<Folder>, names: &[&[u8]]) -> Option<Vec<u8>> {
    let mut folder = match base {
        Base::In(folder) => Arc::clone(folder),
        Base::Above(path) => {
            openat(CWD, path.as_bytes(), FOLDER | OFlags::PATH, Mode::empty()).ok().map(Arc::new)?
        }
    };
    let (name, above) = names.split_last()?;
    for name in above {
        folder = Arc::new(openat(&folder, *name, FOLDER | OFlags::PATH, Mode::empty()).ok()?);
    }
    let stat = statat(&folder, *name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if kind_of(&stat) != EntryKind::File {
        return None;
    }
    read_some(open_file(&folder, name).ok()??)
}

/// The beginning of a small file.
pub(super) fn read_some(file: File) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    file.take(IGNORE_LIMIT as u64).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Walks on to the next entry; none at the end, or once `stopped` says so.
pub(super) fn advance(
    walker: &mut Walker<Folder>,
    stopped: &dyn Fn() -> bool,
) -> Option<Item<Folder>> {
    while !stopped() {
        match walker.next() {
            Step::Ignore { base, names } => {
                walker.ignore_file(ignore_file(&base, names).as_deref());
            }
            Step::Enter { folder, name, .. } => match open_folder(&folder, &name) {
                Ok(entered) => match list(&entered) {
                    Ok((names, left)) => walker.entered(entered, (0, 0), names, left),
                    Err(error) => walker.unreadable(error),
                },
                Err(error) => walker.unreadable(error),
            },
            Step::Item(item) => return Some(item),
            Step::Done => return None,
        }
    }
    None
}
