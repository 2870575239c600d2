//! Records where this process writes, so that the next process can remove what it left when killed.
//!
//! **How:** before a temporary file or a folder is created, a line that names its place is appended
//! to a record file in the ledger's folder. The record is named after the process and locked while
//! the process lives. The lock ends with the process, whatever ends it. Whoever then gets the lock
//! knows that the owner is gone, checks the places, and removes the record. A clean exit removes
//! it, too.
//!
//! **Cost:** one line for each folder that is written to after another one; nothing for the next
//! write to the same folder. Lines are never synced: what a power cut leaves is found by its age.
//!
//! **Invariant:** a folder that is not empty is never removed. A file is removed only if it is
//! known as a temporary file of the dead process. A record that cannot be stored prevents no write.

use std::{
    collections::HashSet,
    fs::{self as disk, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use haft_types::{Follow, HostPath, Style};
use rustix::fs::{AtFlags, OFlags, unlinkat};

use super::{
    leftovers,
    locate::{self, At, Lookup},
};
use crate::FileKind;

/// Temporary files may be in this folder.
const IN: &[u8] = b"in";
/// This folder is about to be made for a file.
const MAKE: &[u8] = b"make";
/// This folder was made, or is gone again: it is nobody's leftover.
const KEPT: &[u8] = b"kept";
/// Most bytes of a record that are looked at.
const RECORD_MAX: u64 = 4 * 1024 * 1024;
/// Most records that are looked at in one start.
const RECORDS_MAX: usize = 1000;

/// The record of one process.
#[derive(Debug)]
pub(super) struct Ledger {
    folder: PathBuf,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    record: Option<(File, PathBuf)>,
    /// Folders that the record names now.
    noted: HashSet<HostPath>,
    /// How many writes are going on.
    open: usize,
    /// True where locks mean nothing, so that no record is kept.
    off: bool,
    /// True when something could not be removed: the record stays for the next start.
    stays: bool,
}

impl Ledger {
    /// A ledger in a folder that need not be there yet.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, book: Mutex::default() }
    }

    /// Where it keeps its records.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Notes that a file in this folder is about to be written.
    pub(super) fn enter(self: &Arc<Self>, folder: &HostPath) -> Entry {
        let mut book = self.book();
        book.open += 1;
        if !book.noted.contains(folder) {
            if book.open == 1 {
                book.forget();
            }
            if book.add(&self.folder, &line(IN, folder)) {
                book.noted.insert(folder.clone());
            }
        }
        Entry { ledger: Arc::clone(self), made: Mutex::default() }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Empties the record while nothing is going on.
    fn forget(&mut self) {
        let emptied =
            !self.stays && self.record.as_ref().is_none_or(|(file, _)| file.set_len(0).is_ok());
        if emptied {
            self.noted.clear();
        }
    }

    /// Appends lines in one step; false where that cannot be done.
    fn add(&mut self, folder: &Path, lines: &[u8]) -> bool {
        if self.record.is_none() && !self.off {
            match begin(folder) {
                Ok(Some(record)) => self.record = Some(record),
                Ok(None) => self.off = true,
                Err(_) => {}
            }
        }
        self.record.as_mut().is_some_and(|(file, _)| file.write_all(lines).is_ok())
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let book = self.book();
        if let Some((_, path)) = book.record.as_ref().filter(|_| !book.stays) {
            let _ = disk::remove_file(path);
        }
    }
}

/// One write on its way.
pub(super) struct Entry {
    ledger: Arc<Ledger>,
    made: Mutex<Vec<u8>>,
}

impl Entry {
    /// Notes that a folder is about to be made.
    pub(super) fn makes(&self, folder: &HostPath) {
        self.ledger.book().add(&self.ledger.folder, &line(MAKE, folder));
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.extend_from_slice(&line(KEPT, folder));
    }

    /// Leaves to the next start what could not be removed.
    pub(super) fn leaves(&self) {
        self.ledger.book().stays = true;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        let mut book = self.ledger.book();
        book.open -= 1;
        if !made.is_empty() {
            book.add(&self.ledger.folder, &made);
        }
    }
}

/// Makes a record and locks it. None where locks mean nothing, or someone is always faster.
fn begin(folder: &Path) -> io::Result<Option<(File, PathBuf)>> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let mut options = OpenOptions::new();
    options.append(true).create_new(true).mode(0o600);
    for _ in 0..8 {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{}-{number:x}", leftovers::tag()));
        let file = match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
                options.open(&path)?
            }
            opened => opened?,
        };
        // Between the two, another process may have taken it for one of a dead process.
        match file.try_lock() {
            Ok(()) if file.metadata()?.nlink() > 0 => return Ok(Some((file, path))),
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(_)) => {
                disk::remove_file(&path)?;
                return Ok(None);
            }
        }
    }
    Ok(None)
}

/// A line of a record; a path may hold any byte but NUL.
fn line(what: &[u8], path: &HostPath) -> Vec<u8> {
    let mut line = [what, b" "].concat();
    for &byte in path.as_bytes() {
        match byte {
            b'%' => line.extend_from_slice(b"%25"),
            b'\n' => line.extend_from_slice(b"%0a"),
            byte => line.push(byte),
        }
    }
    line.push(b'\n');
    line
}

/// What a line says; none when it says nothing.
fn parse(line: &[u8]) -> Option<(&[u8], HostPath)> {
    // What was cut off in the middle was not acted on.
    let line = line.strip_suffix(b"\n")?;
    let (what, path) = line.split_at(line.iter().position(|&b| b == b' ')?);
    let (mut bytes, mut rest) = (Vec::with_capacity(path.len()), &path[1..]);
    while let [byte, after @ ..] = rest {
        let (byte, after) = match (byte, after) {
            (b'%', [b'2', b'5', after @ ..]) => (b'%', after),
            (b'%', [b'0', b'a', after @ ..]) => (b'\n', after),
            (b'%', _) => return None,
            (byte, after) => (*byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    Some((what, HostPath::new(&bytes, Style::Posix).ok()?))
}

/// Removes what processes left that ended in the middle of a write; gives how many files and
/// folders those were.
pub(super) fn recover(folder: &Path) -> io::Result<u64> {
    let records = match disk::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        records => records?,
    };
    let mut removed = 0;
    for record in records.take(RECORDS_MAX) {
        let name = record?.file_name();
        let Some((tag, _)) = name.to_str().and_then(|name| name.rsplit_once('-')) else { continue };
        if leftovers::is_tag(tag) {
            // One that cannot be read is no reason to leave the others.
            removed += settle(&folder.join(&name), tag).unwrap_or(0);
        }
    }
    Ok(removed)
}

/// Carries one record out if its owner is gone, and removes it.
fn settle(path: &Path, tag: &str) -> io::Result<u64> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits());
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.map_err(io::Error::other)?);
    let file = options.open(path)?;
    if file.try_lock().is_err() {
        return Ok(0);
    }
    let mut text = Vec::new();
    (&file).take(RECORD_MAX).read_to_end(&mut text)?;
    let (mut folders, mut made) = (HashSet::new(), HashSet::new());
    for (what, path) in text.split_inclusive(|&b| b == b'\n').filter_map(parse) {
        match what {
            IN => drop(folders.insert(path)),
            MAKE => drop(made.insert(path)),
            KEPT => drop(made.remove(&path)),
            _ => {}
        }
    }
    let mut removed = 0;
    for folder in &folders {
        removed += sweep(folder, tag).unwrap_or(0);
    }
    let mut made: Vec<_> = made.into_iter().collect();
    made.sort_by_key(|path| std::cmp::Reverse(path.as_bytes().len()));
    removed += made.iter().filter(|path| remove_empty(path).is_ok()).count() as u64;
    // Still locked, so that nobody takes it for his own meanwhile.
    disk::remove_file(path)?;
    drop(file);
    Ok(removed)
}

fn sweep(path: &HostPath, tag: &str) -> io::Result<u64> {
    let found = locate::locate(Lookup::probed(), path, Follow::No)?;
    if found.kind != FileKind::FOLDER || found.real != *path {
        return Ok(0);
    }
    let held = At::of(&found)?.inside(&found)?;
    Ok(leftovers::sweep(&held, u64::MAX, Some(tag))?)
}

fn remove_empty(path: &HostPath) -> io::Result<()> {
    let found = locate::locate(Lookup::probed(), path, Follow::No)?;
    if found.real != *path {
        return Err(io::ErrorKind::NotFound.into());
    }
    let at = At::of(&found)?;
    Ok(unlinkat(&at.folder, &*at.name, AtFlags::REMOVEDIR)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_comes_back_from_its_line() {
        for path in [&b"/"[..], b"/a b", b"/a\nb%0a%", b"/\xff\xfe", b"/%2"] {
            let path = HostPath::new(path, Style::Posix).unwrap();
            let line = line(IN, &path);
            assert_eq!(line.iter().position(|&b| b == b'\n'), Some(line.len() - 1));
            assert_eq!(parse(&line), Some((IN, path)));
            assert_eq!(parse(&line[..line.len() - 1]), None, "cut off");
        }
        for line in ["\n", "in\n", "in relative\n", "in /%zz\n", " \n"] {
            assert_eq!(parse(line.as_bytes()), None, "{line:?}");
        }
    }
}
