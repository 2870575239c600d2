//! The steps of a walk on this machine's disk.
//!
//! **Invariant:** everything is opened below an open folder by one name with `O_NOFOLLOW`. So no
//! link that appears meanwhile leads out of the located root. A file that became a link, a pipe or
//! a device since its folder was listed is skipped. The only folders opened by path are those above
//! the root, whose ignore files count too; nothing of them is ever shown. A pipe that takes a
//! file's name just before it is opened is opened without waiting, and closed again unread.

use std::{
    fs::File,
    io::{self, Read},
    sync::Arc,
};

use haft_types::EntryKind;
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, fstat, openat, statat},
};

use super::super::locate::{entry_kind, kind_of};
use crate::walk::{Base, FOLDER_LIMIT, IGNORE_LIMIT, Item, Name, Step, Walker};

/// Bytes of a file that are read at once.
const BUFFER: usize = 64 << 10;
/// Bytes of names that are listed at once.
const LIST: usize = 32 << 10;

/// An open folder.
pub(in crate::local) type Folder = Arc<OwnedFd>;

const FOLDER: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const FILE: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens a folder below an open one, for listing.
pub(in crate::local) fn open_folder(folder: impl AsFd, name: &[u8]) -> rustix::io::Result<Folder> {
    openat(folder, name, FOLDER | OFlags::RDONLY, Mode::empty()).map(Arc::new)
}

/// Opens a regular file below an open folder; none when it is none any more.
pub(in crate::local) fn open_file(folder: impl AsFd, name: &[u8]) -> io::Result<Option<Opened>> {
    use rustix::io::Errno;
    let file = match openat(folder, name, FILE | OFlags::RDONLY, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::LOOP | Errno::NOENT | Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let stat = fstat(&file)?;
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    Ok(regular.then(|| Opened { file: File::from(file), size }))
}

/// An open regular file, with the size that it had then.
pub(in crate::local) struct Opened {
    file: File,
    size: u64,
}

impl Opened {
    /// The file itself.
    pub(in crate::local) fn into_file(self) -> File {
        self.file
    }
}

/// Reads a file through a buffer that outlives it, so that a small one takes a single call.
///
/// Where a call gave less than it was asked for and exactly the file's size is read, the file ends
/// there: it is not asked a second time.
pub(super) struct Buffered<'a> {
    opened: Opened,
    buffer: &'a mut Vec<u8>,
    from: usize,
    to: usize,
    /// Bytes that were read.
    read: u64,
    ended: bool,
}

impl<'a> Buffered<'a> {
    pub(super) fn new(opened: Opened, buffer: &'a mut Vec<u8>) -> Self {
        buffer.resize(BUFFER, 0);
        Self { opened, buffer, from: 0, to: 0, read: 0, ended: false }
    }

    fn took(&mut self, length: usize, asked: usize) {
        self.read += length as u64;
        self.ended = length == 0 || (length < asked && self.read == self.opened.size);
    }
}

impl Read for Buffered<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.from == self.to {
            if self.ended {
                return Ok(0);
            }
            if out.len() >= BUFFER / 2 {
                let length = self.opened.file.read(out)?;
                self.took(length, out.len());
                return Ok(length);
            }
            self.to = self.opened.file.read(self.buffer)?;
            self.from = 0;
            self.took(self.to, BUFFER);
        }
        let length = out.len().min(self.to - self.from);
        out[..length].copy_from_slice(&self.buffer[self.from..self.from + length]);
        self.from += length;
        Ok(length)
    }
}

/// Lists an open folder; the second value counts the names that were too many.
pub(super) fn list(folder: &OwnedFd) -> io::Result<(Vec<Name>, u64)> {
    let mut names = Vec::new();
    let mut left = 0;
    let mut buffer = Vec::with_capacity(LIST);
    let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
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
pub(in crate::local) fn ignore_file(base: &Base<Folder>, names: &[&[u8]]) -> Option<Vec<u8>> {
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
    read_some(open_file(&folder, name).ok()??, IGNORE_LIMIT)
}

/// The beginning of a file, at most so many bytes.
pub(super) fn read_some(opened: Opened, most: usize) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    opened.file.take(most as u64).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Goes into a folder that the walk asks for, or passes it over.
pub(in crate::local) fn enter(walker: &mut Walker<Folder>, folder: &Folder, name: &[u8]) {
    match open_folder(folder, name) {
        Ok(entered) => match list(&entered) {
            Ok((names, left)) => walker.entered(entered, (0, 0), names, left),
            Err(error) => walker.unreadable(error),
        },
        Err(error) => walker.unreadable(error),
    }
}

/// Walks on to the next entry; none at the end, or once `stopped` says so.
pub(super) fn advance(
    walker: &mut Walker<Folder>,
    stopped: &dyn Fn() -> bool,
) -> Option<Item<Folder>> {
    while !stopped() {
        match walker.next() {
            Step::Ignore { base, names, .. } => {
                walker.ignore_file(ignore_file(&base, names).as_deref());
            }
            Step::Enter { folder, name, .. } => enter(walker, &folder, &name),
            Step::Item(item) => return Some(item),
            Step::Done => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_whatever_it_holds_and_however_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let held = open_folder(CWD, folder.path().as_os_str().as_encoded_bytes()).unwrap();
        let mut buffer = Vec::new();
        for size in [0, 1, BUFFER - 1, BUFFER, BUFFER + 1, 3 * BUFFER + 7] {
            let bytes: Vec<u8> = (0..size).map(|at| u8::try_from(at % 251).unwrap()).collect();
            std::fs::write(folder.path().join("file"), &bytes).unwrap();
            for step in [1, 3, 1_000, BUFFER / 2, BUFFER - 1, BUFFER, 4 * BUFFER] {
                // As a decoder does: a few bytes first.
                let opened = open_file(&held, b"file").unwrap().unwrap();
                let mut reader = Buffered::new(opened, &mut buffer);
                let (mut read, mut piece) = (vec![0; 2], vec![0; step]);
                let first = reader.read(&mut read).unwrap();
                read.truncate(first);
                loop {
                    match reader.read(&mut piece).unwrap() {
                        0 => break,
                        length => read.extend_from_slice(&piece[..length]),
                    }
                }
                assert!(read == bytes, "{size} bytes in steps of {step}");
            }
        }
    }

    #[test]
    fn a_size_that_is_not_true_ends_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let held = open_folder(CWD, folder.path().as_os_str().as_encoded_bytes()).unwrap();
        std::fs::write(folder.path().join("file"), b"one\ntwo\n").unwrap();
        // As of files that have no size, and of ones that changed since they were opened.
        for size in [0, 3, 100] {
            let opened = open_file(&held, b"file").unwrap().unwrap();
            let (mut buffer, mut text) = (Vec::new(), String::new());
            let opened = Opened { size, ..opened };
            Buffered::new(opened, &mut buffer).read_to_string(&mut text).unwrap();
            assert_eq!(text, "one\ntwo\n", "{size}");
        }
    }
}
