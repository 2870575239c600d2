//! Writes into a file of this machine that no new file can replace. Such a file is a mount point of
//! its own, or its folder takes no new names while the file itself can be written.
//!
//! **How:** the old and the new content go to one file in the ledger's folder, a *pair*, which is
//! locked and synced. Space for a longer text is reserved. Then the bytes are overwritten and
//! synced, and the pair is removed. If a step fails, the old bytes are restored. A pair whose lock
//! is free was left by a process that ended in between: [`recover`] restores the old bytes.
//!
//! **Invariant:** no byte of the file changes before its pair is on the disk. Bytes are restored
//! only if each of them is from one of the two texts: what anybody else wrote since is never
//! touched. This module knows no undo: what that needs is stored elsewhere.

use std::{
    fs::{self as disk, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Instant,
};

use haft_types::{EntryKind, Follow, HostPath, Rights, Style};
use rustix::{
    fd::OwnedFd,
    fs::{self, FallocateFlags, FlockOperation, Mode, OFlags, Stat},
    io::Errno,
};

use super::{
    leftovers,
    locate::{self, At, Lookup},
    metadata,
    write::{LOCK_STEP, LOCK_TIME, Slot},
};
use crate::{
    Expect, FileKind,
    fault::{fault, refuse},
};

/// How the name of a whole pair ends.
const PAIR: &str = "pair";
/// How the name of one ends that is still being written.
const PART: &str = "part";
/// What a pair begins with; the lengths of the old text, the new one and the path follow.
const MARK: &[u8; 16] = b"haft in place 1\n";
/// Bytes of both.
const HEAD: usize = MARK.len() + 3 * 8;
/// Most bytes of a path in it.
const PATH_MAX: u64 = 64 * 1024;
/// Bytes that are copied or compared at once.
const PIECE: u64 = 256 * 1024;
/// Most pairs that are looked at in one start.
const MOST: usize = 1000;

/// Why a file that was opened cannot be replaced, in words; none for a failure that says nothing
/// of that. A full or a broken disk never leads here.
pub(super) fn reason(error: Errno) -> Option<&'static str> {
    Some(match error {
        Errno::BUSY => "it is mounted there by itself",
        Errno::XDEV => "it is on another disk than its folder",
        Errno::ROFS => "its folder is read-only",
        Errno::ACCESS | Errno::PERM => "its folder does not let it be replaced",
        _ => return None,
    })
}

/// Opens the file for reading and writing; none where that is refused, too.
pub(super) fn open(slot: &Slot) -> Option<File> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    fs::openat(&slot.folder, &*slot.name, flags, Mode::empty()).ok().map(File::from)
}

/// Opens the folder for pairs, which is made where it is missing.
pub(super) fn folder(path: &Path) -> io::Result<OwnedFd> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(fs::open(path, flags, Mode::empty())?)
}

/// Writes `content` over what the file holds, if that is what the writer expects.
pub(super) fn write(
    slot: &Slot,
    file: &File,
    expect: Expect,
    content: &File,
    rights: Option<&Rights>,
    pairs: &Path,
) -> io::Result<Stat> {
    let failed = |error: io::Error| {
        let what = "cannot be replaced by a new file, and was not written in place";
        fault(&slot.path, what, error)
    };
    lock(slot, file)?;
    // It is this file that was opened, and nobody wrote into it before it was locked.
    let now = slot.expect(expect)?.ok_or_else(|| slot.changed())?;
    let stat = fs::fstat(file).map_err(|e| failed(e.into()))?;
    if locate::stamp_of(&stat) != locate::stamp_of(&now)
        || locate::kind_of(&stat) != EntryKind::File
    {
        return Err(slot.changed());
    }
    let pair = Pair::make(pairs, slot, file, content).map_err(|error| {
        let text = format!("what it holds cannot be kept in {} first: {error}", pairs.display());
        failed(io::Error::new(error.kind(), text))
    })?;
    let ready = reserve(file, &pair).and_then(|()| match rights {
        Some(rights) => metadata::give(&file.try_clone()?.into(), rights),
        None => Ok(()),
    });
    if let Err(error) = ready {
        pair.end().map_err(failed)?;
        return Err(failed(error));
    }
    if let Err(error) = pair.bring(Text::New, file) {
        return Err(match pair.bring(Text::Old, file).and_then(|()| pair.end()) {
            Ok(()) => fault(&slot.path, "cannot be written, and holds what it did", error),
            // The pair stays for the next start.
            Err(again) => fault(
                &slot.path,
                &format!(
                    "was written in part and could not be put back ({again}); the next start of \
                     haft does that"
                ),
                error,
            ),
        });
    }
    let failed =
        |what: &str, e: io::Error| fault(&slot.path, &format!("was written, but {what}"), e);
    pair.end().map_err(|e| failed("what it held before cannot be removed", e))?;
    fs::fstat(file).map_err(|e| failed("cannot be looked at", e.into()))
}

/// Takes the lock of the file itself: another name of it may be in another folder.
fn lock(slot: &Slot, file: &File) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::AGAIN | Errno::INTR) if began.elapsed() < LOCK_TIME => {
                std::thread::sleep(LOCK_STEP);
            }
            Err(Errno::AGAIN | Errno::INTR) => {
                let text = "can only be written in place, and another program holds its lock; try \
                            again when that has ended";
                return Err(refuse(io::ErrorKind::ResourceBusy, &slot.path, text));
            }
            // Where there are no locks nobody else holds one.
            Ok(()) | Err(_) => return Ok(()),
        }
    }
}

/// Sees to it that a text that needs more room than the file has finds it.
fn reserve(file: &File, pair: &Pair) -> io::Result<()> {
    let Pair { old, new, .. } = *pair;
    let reserved = match fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, new.max(1)) {
        // Without room even what is not longer may find none: parts of it may be holes.
        Err(error @ (Errno::NOSPC | Errno::DQUOT)) => Err(error),
        Err(error) if new > old => Err(error),
        _ => Ok(()),
    };
    reserved.map_err(|error| {
        if new > old {
            let free = FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE;
            // What it got of it would be lost to others behind the end of the file.
            let _ = fs::fallocate(file, free, old, new - old);
        }
        let text = format!("no room for its {new} bytes can be reserved: {error}");
        io::Error::new(io::Error::from(error).kind(), text)
    })
}

/// Which text of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Old,
    New,
}

/// How a file stands to the texts of its pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It holds the old one.
    Old,
    /// Each byte is of one of them, perhaps all of the new one: as long as the pair stands, nobody
    /// was told that the write is done.
    Unfinished,
    /// It holds something else.
    Other,
}

/// What a file held and what it shall hold, on the disk and locked; dropped without its end, it
/// stays for the next start.
struct Pair {
    file: File,
    path: PathBuf,
    target: HostPath,
    /// Where the old text begins; the new one follows it.
    start: u64,
    /// Bytes of the old text, and of the new one.
    old: u64,
    new: u64,
}

impl Pair {
    /// Copies both texts, and syncs them.
    fn make(folder: &Path, slot: &Slot, old: &File, new: &File) -> io::Result<Self> {
        let held = self::folder(folder)?;
        let name = leftovers::kept_name();
        let (part, path) =
            (folder.join(format!("{name}.{PART}")), folder.join(format!("{name}.{PAIR}")));
        let (old_len, new_len) = (old.metadata()?.len(), new.metadata()?.len());
        let written = write_pair(&part, &slot.path, (old, old_len), (new, new_len));
        let written = written.and_then(|done| {
            disk::rename(&part, &path)?;
            fs::fsync(&held)?;
            Ok(done)
        });
        let (file, start) = written.inspect_err(|_| {
            for path in [&part, &path] {
                // Nothing has changed yet, so whoever finds it has nothing to do.
                let _ = disk::remove_file(path);
            }
        })?;
        let target = slot.path.clone();
        Ok(Self { file, path, target, start, old: old_len, new: new_len })
    }

    /// Reads what a process left.
    fn read(path: PathBuf, file: File) -> io::Result<Self> {
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let mut head = [0; HEAD];
        file.read_exact_at(&mut head, 0)?;
        let (mark, numbers) = head.split_at(MARK.len());
        let mut numbers = numbers.chunks_exact(8).map(|bytes| {
            bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
        });
        let mut number = || numbers.next().ok_or_else(broken);
        let (old, new, len) = (number()?, number()?, number()?);
        if mark != MARK || len > PATH_MAX {
            return Err(broken());
        }
        let mut target = vec![0; usize::try_from(len).map_err(|_| broken())?];
        file.read_exact_at(&mut target, HEAD as u64)?;
        let target = HostPath::new(&target, Style::Posix).map_err(|_| broken())?;
        let start = HEAD as u64 + len;
        let whole = start.checked_add(old).and_then(|sum| sum.checked_add(new));
        if whole != Some(file.metadata()?.len()) {
            return Err(broken());
        }
        Ok(Self { file, path, target, start, old, new })
    }

    const fn text(&self, text: Text) -> (u64, u64) {
        match text {
            Text::Old => (self.start, self.old),
            Text::New => (self.start + self.old, self.new),
        }
    }

    /// Makes a text what the file holds, and syncs it.
    fn bring(&self, text: Text, file: &File) -> io::Result<()> {
        let (start, len) = self.text(text);
        pieces(&self.file, start, len, |offset, piece| file.write_all_at(piece, offset))?;
        if file.metadata()?.len() != len {
            file.set_len(len)?;
        }
        file.sync_all()
    }

    /// Compares what the file holds, byte by byte.
    fn state(&self, file: &File) -> io::Result<State> {
        let len = file.metadata()?.len();
        if len < self.old.min(self.new) || len > self.old.max(self.new) {
            return Ok(State::Other);
        }
        let mut same = [len == self.old, len == self.new];
        let mut mixed = true;
        let mut texts = [Vec::new(), Vec::new()];
        pieces(file, 0, len, |offset, piece| {
            for (text, read) in [Text::Old, Text::New].into_iter().zip(&mut texts) {
                let (start, len) = self.text(text);
                let most = len.saturating_sub(offset).min(piece.len() as u64);
                read.resize(usize::try_from(most).unwrap_or(0), 0);
                self.file.read_exact_at(read, start + offset)?;
            }
            for (same, read) in same.iter_mut().zip(&texts) {
                *same &= read == piece;
            }
            // What was reserved and not written yet is nothing but zeros.
            let fits = |(at, byte): (usize, &u8)| {
                let [old, new] = [0, 1].map(|text: usize| texts[text].get(at));
                old == Some(byte) || new == Some(byte) || (old.is_none() && *byte == 0)
            };
            mixed &= piece.iter().enumerate().all(fits);
            Ok(())
        })?;
        Ok(match same {
            [true, _] => State::Old,
            [false, true] => State::Unfinished,
            [false, false] if mixed => State::Unfinished,
            [false, false] => State::Other,
        })
    }

    /// Takes it away for good: one that came back after a power cut would speak of what has long
    /// been changed again.
    fn end(self) -> io::Result<()> {
        match disk::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        match self.path.parent() {
            Some(folder) => Ok(fs::fsync(&self::folder(folder)?)?),
            None => Ok(()),
        }
    }
}

/// Gives a part of a file, piece by piece, each with its offset in that part.
fn pieces(
    file: &File,
    start: u64,
    len: u64,
    mut each: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut piece = vec![0; usize::try_from(len.min(PIECE)).unwrap_or(0)];
    let mut offset = 0;
    while offset < len {
        let most = usize::try_from((len - offset).min(PIECE)).unwrap_or(0);
        file.read_exact_at(&mut piece[..most], start + offset)?;
        each(offset, &piece[..most])?;
        offset += most as u64;
    }
    Ok(())
}

/// Writes a pair and locks it; gives it with where its old text begins.
fn write_pair(
    path: &Path,
    target: &HostPath,
    old: (&File, u64),
    new: (&File, u64),
) -> io::Result<(File, u64)> {
    let target = target.as_bytes();
    let mut options = OpenOptions::new();
    let mut file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::ResourceBusy.into()),
        // Without locks it would be taken for one that was left.
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.write_all(MARK)?;
    for number in [old.1, new.1, target.len() as u64] {
        file.write_all(&number.to_le_bytes())?;
    }
    file.write_all(target)?;
    let start = (HEAD + target.len()) as u64;
    for (at, (from, len)) in [(start, old), (start + old.1, new)] {
        pieces(from, 0, len, |offset, piece| file.write_all_at(piece, at + offset))?;
    }
    file.sync_all()?;
    Ok((file, start))
}

/// Reports whether a process may have left a pair in this folder.
pub(super) fn is_torn(folder: &Path) -> bool {
    disk::read_dir(folder).is_ok_and(|all| all.flatten().any(|entry| ends(&entry.path(), PAIR)))
}

fn ends(path: &Path, end: &str) -> bool {
    path.extension().is_some_and(|found| found == end)
}

/// Puts back what files held that a killed process had written in part. Gives those that it put
/// back, and those that it left as they are, with the reason.
pub(super) fn recover(folder: &Path) -> io::Result<Vec<(HostPath, Result<(), String>)>> {
    let entries = match disk::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut done = Vec::new();
    for entry in entries.take(MOST) {
        let path = entry?.path();
        if ends(&path, PART) {
            if let Ok(Some(_)) = abandoned(&path) {
                let _ = disk::remove_file(&path);
            }
        } else if ends(&path, PAIR)
            && let Ok(Some(file)) = abandoned(&path)
        {
            // One that is no pair says nothing; it is nobody's text either.
            let Ok(pair) = Pair::read(path, file) else { continue };
            done.extend(settle(pair));
        }
    }
    Ok(done)
}

/// Opens and locks what no living process holds; none where one does.
fn abandoned(path: &Path) -> io::Result<Option<File>> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits());
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.map_err(io::Error::other)?);
    let file = options.open(path)?;
    match file.try_lock() {
        // Whoever held it before may have taken it away.
        Ok(()) => Ok(disk::exists(path)?.then_some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Puts one file back, if it needs that; none where it does not.
fn settle(pair: Pair) -> Option<(HostPath, Result<(), String>)> {
    let target = pair.target.clone();
    let told = |why: String| Some((target.clone(), Err(why)));
    let file = match find(&pair.target) {
        Ok(file) => file,
        // A disk may not be there yet: another start may find it.
        Err(error) => return told(format!("{error}; the next start looks again")),
    };
    let settled = pair.state(&file).and_then(|state| {
        if state == State::Unfinished {
            pair.bring(Text::Old, &file)?;
        }
        Ok(state)
    });
    let state = match settled {
        Ok(state) => state,
        Err(error) => return told(format!("{error}; the next start tries again")),
    };
    // What it tells of is over, whether the folder can be synced or not.
    drop(pair.end());
    match state {
        State::Unfinished => Some((target, Ok(()))),
        State::Other => told("it was changed since".to_owned()),
        State::Old => None,
    }
}

/// Opens a file by a path that no link leads away from, and locks it.
fn find(path: &HostPath) -> io::Result<File> {
    let at = locate::locate(Lookup::probed(), path, Follow::No)?;
    if at.kind != FileKind::FILE || at.real != *path {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it is not there now"));
    }
    let held = At::of(&at)?;
    let slot = Slot { folder: held.folder.clone(), name: held.name.clone(), path: path.clone() };
    let error = io::Error::new(io::ErrorKind::PermissionDenied, "it cannot be opened for writing");
    let file = open(&slot).ok_or(error)?;
    lock(&slot, &file)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    struct Folder {
        dir: tempfile::TempDir,
    }

    impl Folder {
        fn new() -> Self {
            Self { dir: tempfile::tempdir().unwrap() }
        }

        fn at(&self, name: &str) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join(name)
        }

        fn file(&self, name: &str, text: &[u8]) -> File {
            disk::write(self.at(name), text).unwrap();
            OpenOptions::new().read(true).write(true).open(self.at(name)).unwrap()
        }

        fn slot(&self, name: &str) -> Slot {
            let path = super::super::Local::path(&self.at(name)).unwrap();
            let folder = Arc::new(folder(&self.at(".")).unwrap());
            Slot { folder, name: name.into(), path }
        }

        /// A pair of these texts, and the file that holds the first of them.
        fn pair(&self, old: &[u8], new: &[u8]) -> (Pair, File) {
            let file = self.file("target", old);
            let content = self.file("new", new);
            let pair = Pair::make(&self.at("pairs"), &self.slot("target"), &file, &content);
            (pair.unwrap(), file)
        }

        fn recover(&self) -> Vec<(HostPath, Result<(), String>)> {
            recover(&self.at("pairs")).unwrap()
        }

        fn pairs(&self) -> usize {
            disk::read_dir(self.at("pairs")).unwrap().count()
        }

        fn target(&self) -> Vec<u8> {
            disk::read(self.at("target")).unwrap()
        }
    }

    /// Texts that differ in each byte, with no zero among them.
    fn texts(old: usize, new: usize) -> (Vec<u8>, Vec<u8>) {
        let text = |seed: usize, len: usize| -> Vec<u8> {
            (0..len).map(|at| u8::try_from(1 + (at * 2 + seed) % 250).unwrap()).collect()
        };
        (text(0, old), text(1, new))
    }

    #[test]
    fn no_full_or_broken_disk_leads_here() {
        for error in [Errno::NOSPC, Errno::DQUOT, Errno::IO, Errno::NOENT, Errno::EXIST] {
            assert_eq!(reason(error), None, "{error}");
        }
        for error in [Errno::BUSY, Errno::XDEV, Errno::ACCESS, Errno::PERM, Errno::ROFS] {
            assert!(reason(error).is_some(), "{error}");
        }
    }

    #[test]
    fn a_file_that_was_written_in_part_is_put_back() {
        let piece = usize::try_from(PIECE).unwrap();
        for (old, new) in
            [(10, 4), (4, 10), (0, 7), (7, 0), (2 * piece + 9, piece), (piece, 3 * piece)]
        {
            let (old, new) = texts(old, new);
            let len = new.len();
            for written in [0, len.min(1), len / 2, len.saturating_sub(1), len] {
                for reserved in [false, true] {
                    let folder = Folder::new();
                    let (pair, file) = folder.pair(&old, &new);
                    if reserved {
                        file.set_len(old.len().max(new.len()) as u64).unwrap();
                    }
                    file.write_all_at(&new[..written], 0).unwrap();
                    assert!(folder.recover().is_empty() && folder.pairs() == 1, "its owner lives");
                    drop(pair);
                    let left = folder.target();
                    let done = folder.recover();
                    let told = format!("{} {} {written} {reserved}", old.len(), new.len());
                    assert_eq!(folder.pairs(), 0, "{told}");
                    if left == old {
                        assert!(done.is_empty() && folder.target() == left, "{told}");
                    } else {
                        assert!(matches!(done[..], [(_, Ok(()))]), "{told}: {done:?}");
                        assert!(folder.target() == old, "{told}");
                    }
                    assert!(folder.recover().is_empty(), "{told}");
                }
            }
        }
    }

    #[test]
    fn what_somebody_else_wrote_is_left() {
        let (old, new) = texts(1000, 2000);
        let mut other = old.clone();
        other[500] = b'#';
        if other[500] == new[500] {
            other[500] = b'$';
        }
        for text in [&other[..], b"", b"other", &[&new[..], b"more"].concat()] {
            let folder = Folder::new();
            drop(folder.pair(&old, &new));
            disk::write(folder.at("target"), text).unwrap();
            let done = folder.recover();
            let [(path, Err(why))] = &done[..] else { panic!("{done:?}") };
            assert!(path.text().ends_with("/target") && why.contains("changed since"), "{done:?}");
            assert_eq!((folder.target(), folder.pairs()), (text.to_vec(), 0));
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_waited_for() {
        let (old, new) = texts(10, 20);
        let folder = Folder::new();
        let (pair, file) = folder.pair(&old, &new);
        file.write_all_at(&new[..15], 0).unwrap();
        drop((pair, file));
        disk::rename(folder.at("target"), folder.at("away")).unwrap();
        let done = folder.recover();
        assert!(matches!(&done[..], [(_, Err(why))] if why.contains("next start")), "{done:?}");
        std::os::unix::fs::symlink(folder.at("away"), folder.at("target")).unwrap();
        assert!(matches!(folder.recover()[..], [(_, Err(_))]), "no link is followed");
        disk::remove_file(folder.at("target")).unwrap();
        disk::rename(folder.at("away"), folder.at("target")).unwrap();
        assert!(matches!(folder.recover()[..], [(_, Ok(()))]));
        assert_eq!((folder.target(), folder.pairs()), (old, 0));
    }

    #[test]
    fn what_is_no_whole_pair_is_nobodys() {
        let folder = Folder::new();
        let (pair, _) = folder.pair(b"old", b"new");
        let whole = disk::read(&pair.path).unwrap();
        pair.end().unwrap();
        for len in 0..whole.len() {
            disk::write(folder.at("pairs/x.pair"), &whole[..len]).unwrap();
            assert!(folder.recover().is_empty(), "{len}");
        }
        disk::write(folder.at("pairs/x.part"), &whole).unwrap();
        disk::write(folder.at("pairs/notes.txt"), &whole).unwrap();
        assert!(folder.recover().is_empty());
        assert_eq!((folder.target(), folder.pairs()), (b"old".to_vec(), 2));
        assert!(recover(&folder.at("no/such/folder")).unwrap().is_empty());
    }
}
