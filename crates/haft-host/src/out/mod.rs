//! Stores whole outputs of calls, readable as `out://CALL`.
//!
//! **Invariant:** a call's output is one file named by its id, with the bytes that the program
//! wrote. It lies in a private folder of haft's (0700, files 0600) or in memory; [`text`] shows it
//! clean. An id that is not a plain file name is refused. All outputs of a session share one cap.
//! The oldest are evicted for newer ones, and each eviction is recorded. What still does not fit is
//! refused with a reason, never cut silently.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    ops::Range,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use haft_types::{CallId, EVICTED_FILE, HostPath, Style};
use rustix::fs::{FallocateFlags, OFlags};

use crate::{Host, Local, Memory};

mod room;
mod text;

/// Bytes that are copied at once when an output is joined.
const STEP: usize = 1024 * 1024;

/// The stored outputs of a session; clones share them.
#[derive(Clone, Debug)]
pub struct Outs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    place: Place,
    cap: u64,
    used: AtomicU64,
    views: text::Views,
    room: room::Room,
}

#[derive(Debug)]
enum Place {
    Folder { base: PathBuf, host: Arc<Local>, ready: std::sync::Once },
    Memory { host: Arc<Memory>, base: HostPath },
}

impl Outs {
    /// Outputs in a folder of this machine, which is created at the first use.
    ///
    /// `base` is absolute and belongs to haft alone. `cap` is the most bytes of all outputs
    /// together, those of an earlier run in the same folder included.
    pub fn in_folder(base: impl Into<PathBuf>, cap: u64) -> Self {
        let (base, host) = (base.into(), Arc::new(Local::new()));
        Self::new(Place::Folder { base, host, ready: std::sync::Once::new() }, cap)
    }

    /// Outputs in memory, at most `cap` bytes altogether.
    pub fn in_memory(cap: u64) -> Self {
        let root = HostPath::root(Style::Posix);
        let base = root.join("out").unwrap_or(root);
        Self::new(Place::Memory { host: Arc::new(Memory::new()), base }, cap)
    }

    fn new(place: Place, cap: u64) -> Self {
        let (used, views) = (AtomicU64::new(0), text::Views::default());
        let room = room::Room::default();
        Self { shared: Arc::new(Shared { place, cap, used, views, room }) }
    }

    /// Begins the output of a call, in place of an earlier one with the same id.
    ///
    /// Nothing is created before the first byte is written.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the id is not a plain file name.
    pub fn create(&self, call: &CallId) -> io::Result<OutWriter> {
        checked(call)?;
        let shared = Arc::clone(&self.shared);
        let pin = shared.pin(call);
        shared.forget_text(call);
        let store = match &self.shared.place {
            Place::Folder { .. } => Store::Disk { start: None, round: None },
            Place::Memory { host, base } => {
                let before = base.join(&call.0).ok().and_then(|path| host.take(&path));
                self.shared.release(before.map_or(0, |data| data.len() as u64));
                Store::Memory { start: Vec::new(), round: Vec::new() }
            }
        };
        Ok(OutWriter { shared, pin, call: call.clone(), store, start_len: 0, round_len: 0 })
    }

    /// Stores a whole output. It waits for the disk: call it where blocking is allowed.
    ///
    /// # Errors
    /// If the id is not a plain file name, the session's cap is reached, or the disk fails. Then
    /// nothing of it is stored.
    pub fn put(&self, call: &CallId, bytes: &[u8]) -> io::Result<()> {
        let mut out = self.create(call)?;
        let written = out.append(bytes);
        if written.is_err() {
            out.give_up(0, "");
        }
        out.publish();
        written
    }

    /// Where the output of a call can be read: a host and the path on it. `None` if none is stored.
    pub fn open(&self, call: &CallId) -> Option<(Arc<dyn Host>, HostPath)> {
        checked(call).ok()?;
        match &self.shared.place {
            Place::Folder { base, host, .. } => {
                let path = base.join(&*call.0);
                let there = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file());
                let host: Arc<dyn Host> = Arc::<Local>::clone(host);
                there.then(|| Local::path(&path).ok()).flatten().map(|path| (host, path))
            }
            Place::Memory { host, base } => {
                let path = base.join(&call.0).ok()?;
                let there = host.content(path.as_str()?).is_some();
                let host: Arc<dyn Host> = Arc::<Memory>::clone(host);
                there.then_some((host, path))
            }
        }
    }

    /// The folder, which child processes find in `$HAFT_OUT`; `None` for outputs in memory.
    pub fn folder(&self) -> Option<&Path> {
        match &self.shared.place {
            Place::Folder { base, .. } => Some(base),
            Place::Memory { .. } => None,
        }
    }

    /// Bytes of all outputs so far.
    pub fn used(&self) -> u64 {
        self.shared.used.load(Ordering::Relaxed)
    }
}

/// An id is a file name: only those that [`CallId::from_address`] reads are taken.
fn checked(call: &CallId) -> io::Result<()> {
    if CallId::from_address(&call.address()).as_ref() == Some(call) {
        return Ok(());
    }
    let text = format!("{:?} is no id of a call; ids hold letters, digits, '.', '-', '_'", call.0);
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

impl Shared {
    /// Takes `more` bytes off what is left of the cap; clean texts of outputs make room, then the
    /// oldest outputs.
    fn reserve(&self, more: u64) -> io::Result<()> {
        let fits = |used: u64| used.checked_add(more).filter(|used| *used <= self.cap);
        let take = || self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        let taken = take()
            .or_else(|used| if self.drop_texts() { take() } else { Err(used) })
            .or_else(|used| if self.evict(more) { take() } else { Err(used) });
        match taken {
            Ok(_) => Ok(()),
            Err(used) => {
                let text = format!(
                    "the kept outputs of this session have {used} of at most {} bytes \
                     (output.session_bytes and output.total_bytes in the settings); what does not \
                     fit is not kept",
                    self.cap
                );
                Err(io::Error::new(io::ErrorKind::StorageFull, text))
            }
        }
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        match &self.place {
            Place::Folder { base, .. } => Some(base.join(name)),
            Place::Memory { .. } => None,
        }
    }

    /// Opens a file of the folder anew; the folder is made, and what an earlier run left in it
    /// counted, at the first use.
    fn open(&self, name: &str) -> io::Result<File> {
        let Place::Folder { base, ready, .. } = &self.place else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        DirBuilder::new().recursive(true).mode(0o700).create(base)?;
        ready.call_once(|| {
            let mut sum = 0;
            for entry in fs::read_dir(base).into_iter().flatten().flatten() {
                let name = entry.file_name();
                if name.as_encoded_bytes().starts_with(b".") {
                    // Parts of a run that ended, and texts that are made again.
                    if name != EVICTED_FILE {
                        let _ = fs::remove_file(entry.path());
                    }
                    continue;
                }
                sum += entry.metadata().map_or(0, |meta| meta.len());
            }
            self.used.fetch_add(sum, Ordering::Relaxed);
        });
        let path = base.join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)?;
        let before = file.metadata()?.len();
        if before > 0 {
            // Not of an empty one: ext4 brings a file that was made empty to the disk when it is
            // closed, and its writer would wait for that.
            file.set_len(0)?;
            self.release(before);
        }
        Ok(file)
    }

    fn open_round(&self, call: &CallId) -> io::Result<File> {
        self.open(&round_name(call))
    }

    fn release(&self, bytes: u64) {
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

#[derive(Debug)]
enum Store {
    Disk { start: Option<File>, round: Option<File> },
    Memory { start: Vec<u8>, round: Vec<u8> },
}

/// Writes the output of one call, for a [`Spool`](crate::Spool). Its methods wait for the disk.
#[derive(Debug)]
pub struct OutWriter {
    shared: Arc<Shared>,
    pin: room::Pin,
    call: CallId,
    store: Store,
    start_len: u64,
    round_len: u64,
}

impl OutWriter {
    /// The call that the output belongs to.
    pub const fn call(&self) -> &CallId {
        &self.call
    }

    /// Bytes at the start that are written.
    pub(crate) const fn len(&self) -> u64 {
        self.start_len
    }

    /// Writes on at the start, and where that fails as much as there is room for.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.ready()?;
        self.shared.reserve(bytes.len() as u64)?;
        self.append_reserved(bytes)
    }

    /// Writes on at the start, past the cap of the session where it must: for one line.
    pub(crate) fn append_over(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.ready()?;
        self.shared.used.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.append_reserved(bytes)
    }

    fn append_reserved(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (len, written) = match &mut self.store {
            Store::Memory { start, .. } => {
                start.extend_from_slice(bytes);
                (bytes.len(), Ok(()))
            }
            Store::Disk { start, .. } => write_some(start.as_ref(), bytes, self.start_len),
        };
        self.start_len += len as u64;
        self.shared.release((bytes.len() - len) as u64);
        written
    }

    /// Puts a line behind the first `half` of the start, and behind that what follows `half + drop`.
    pub(crate) fn close_gap(&mut self, half: u64, line: &[u8], drop: u64) -> io::Result<()> {
        let line_len = line.len() as u64;
        self.shared.used.fetch_add(line_len, Ordering::Relaxed);
        self.shared.release(drop);
        let (from, end) = (half + drop, self.start_len);
        self.start_len = end - drop + line_len;
        match &mut self.store {
            Store::Memory { start, .. } => {
                let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(start.len());
                let gap = place(half)..place(from);
                start.splice(gap, line.iter().copied());
                Ok(())
            }
            Store::Disk { start, .. } => {
                let file = start.as_ref().ok_or(io::ErrorKind::NotFound)?;
                // What is moved by less than a piece is read before it is overwritten.
                let mut next = piece_at(file, from, end)?;
                write_at(Some(file), line, half)?;
                let (mut read, mut write) = (from + next.len() as u64, half + line_len);
                while !next.is_empty() {
                    let now = std::mem::replace(&mut next, piece_at(file, read, end)?);
                    read += next.len() as u64;
                    write_at(Some(file), &now, write)?;
                    write += now.len() as u64;
                }
                file.set_len(write)
            }
        }
    }

    /// Writes at a place of what goes round; it grows only at its end.
    pub(crate) fn write_round(&mut self, place: u64, bytes: &[u8]) -> io::Result<()> {
        let end = place + bytes.len() as u64;
        let more = end.saturating_sub(self.round_len);
        self.shared.reserve(more)?;
        let written = match &mut self.store {
            Store::Memory { round, .. } => {
                let place = usize::try_from(place).unwrap_or(usize::MAX).min(round.len());
                let over = bytes.len().min(round.len() - place);
                round[place..place + over].copy_from_slice(&bytes[..over]);
                round.extend_from_slice(&bytes[over..]);
                Ok(())
            }
            Store::Disk { round, .. } => {
                let opened = match round {
                    Some(_) => Ok(()),
                    None => self.shared.open_round(&self.call).map(|file| *round = Some(file)),
                };
                opened.and_then(|()| write_at(round.as_ref(), bytes, place))
            }
        };
        match &written {
            Ok(()) => self.round_len = self.round_len.max(end),
            Err(_) => self.shared.release(more),
        }
        written
    }

    /// Brings two ranges of what went round behind the start, and drops it.
    pub(crate) fn join(&mut self, first: Range<u64>, then: Range<u64>) -> io::Result<()> {
        let mut buffer = Vec::new();
        for range in [first, then] {
            let mut at = range.start;
            while at < range.end {
                let len = usize::try_from(range.end - at).unwrap_or(STEP).min(STEP);
                buffer.resize(len, 0);
                self.read_round(at, &mut buffer)?;
                at += len as u64;
                // The bytes move: they were reserved when they went round.
                self.append_moved(&buffer)?;
            }
        }
        self.drop_round();
        Ok(())
    }

    fn append_moved(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.ready()?;
        let moved = (bytes.len() as u64).min(self.round_len);
        self.round_len -= moved;
        self.append_reserved(bytes)
    }

    /// Reads what went round, and gives its room on the disk back where that is possible.
    fn read_round(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        match &self.store {
            Store::Memory { round, .. } => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                let bytes = round.get(at..at.saturating_add(buffer.len()));
                buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
            Store::Disk { round: None, .. } => Err(io::ErrorKind::UnexpectedEof.into()),
            Store::Disk { round: Some(file), .. } => {
                file.read_exact_at(buffer, at)?;
                let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                // Only saves room for a moment; file systems without holes go without.
                let _ = rustix::fs::fallocate(file, how, at, buffer.len() as u64);
                Ok(())
            }
        }
    }

    /// Keeps only `len` bytes of the start with a line behind it; nothing at all for 0. Fewer where
    /// the line has no other room; how many.
    pub(crate) fn give_up(&mut self, len: u64, line: &str) -> u64 {
        self.drop_round();
        let cut = self.start_len.saturating_sub(len);
        self.start_len -= cut;
        self.shared.release(cut);
        match &mut self.store {
            Store::Memory { start, .. } => {
                start.truncate(usize::try_from(len).unwrap_or(usize::MAX));
            }
            Store::Disk { start, .. } => {
                if let Some(file) = start {
                    // What cannot even be cut is too long by a piece of the same output.
                    let _ = file.set_len(self.start_len);
                }
                if len == 0
                    && start.take().is_some()
                    && let Some(path) = self.shared.path(&self.call.0)
                {
                    let _ = fs::remove_file(path);
                }
            }
        }
        let kept = self.start_len;
        if len > 0 && self.append_over(line.as_bytes()).is_err() {
            // Nothing fits behind it on a full disk, or at the limit of a file.
            return self.end_in(line.as_bytes(), kept);
        }
        kept
    }

    /// Puts a line in the place of the last bytes before `end`; how many are before it.
    fn end_in(&mut self, line: &[u8], end: u64) -> u64 {
        let len = line.len() as u64;
        // A part of the line may stand behind them.
        self.shared.release(self.start_len.saturating_sub(end));
        self.start_len = end;
        let Store::Disk { start: Some(file), .. } = &self.store else { return end };
        let fits = len < end && file.set_len(end).is_ok();
        if fits && write_at(Some(file), line, end - len).is_ok() { end - len } else { end }
    }

    fn drop_round(&mut self) {
        self.shared.release(self.round_len);
        self.round_len = 0;
        match &mut self.store {
            Store::Memory { round, .. } => *round = Vec::new(),
            Store::Disk { round, .. } => {
                if round.take().is_some()
                    && let Some(path) = self.shared.path(&round_name(&self.call))
                {
                    let _ = fs::remove_file(path);
                }
            }
        }
    }

    /// Makes what is written readable for [`Outs::open`], where it is not by itself.
    pub(crate) fn publish(&self) {
        let (Store::Memory { start, .. }, Place::Memory { host, base }) =
            (&self.store, &self.shared.place)
        else {
            return;
        };
        if let (true, Ok(path)) = (self.start_len > 0, base.join(&self.call.0)) {
            // Only a folder in its place could refuse it, and nobody makes folders there.
            let _ = host.keep(&path, Bytes::copy_from_slice(start));
            self.shared.arrived(&self.call);
        }
    }

    /// Opens the file at the first byte; what an earlier output of the call left is dropped.
    fn ready(&mut self) -> io::Result<()> {
        if let Store::Disk { start: start @ None, .. } = &mut self.store {
            *start = Some(self.shared.open(&self.call.0)?);
        }
        Ok(())
    }
}

impl Drop for OutWriter {
    fn drop(&mut self) {
        self.drop_round();
    }
}

/// Writes as much as there is room for; how much that was.
fn write_some(file: Option<&File>, bytes: &[u8], at: u64) -> (usize, io::Result<()>) {
    let Some(file) = file else { return (0, Err(io::ErrorKind::NotFound.into())) };
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], at + done as u64) {
            Ok(0) => return (done, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => done += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (done, Err(error)),
        }
    }
    (done, Ok(()))
}

fn write_at(file: Option<&File>, bytes: &[u8], at: u64) -> io::Result<()> {
    file.map_or_else(|| Err(io::ErrorKind::NotFound.into()), |file| file.write_all_at(bytes, at))
}

/// A piece of a file, at most up to `end`.
fn piece_at(file: &File, at: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; usize::try_from(end.saturating_sub(at)).unwrap_or(STEP).min(STEP)];
    file.read_exact_at(&mut piece, at)?;
    Ok(piece)
}

/// Begins with a dot, as no id does.
fn round_name(call: &CallId) -> String {
    format!(".{}.round", call.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_are_no_plain_names_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for outs in [Outs::in_folder(folder.path(), 100), Outs::in_memory(100)] {
            for bad in ["", "../x", "/etc/passwd", ".c1.round", "a/b", "a\0"] {
                let call = CallId(bad.into());
                assert!(outs.create(&call).is_err(), "{bad}");
                assert!(outs.put(&call, b"x").is_err(), "{bad}");
                assert!(outs.open(&call).is_none(), "{bad}");
            }
        }
    }

    #[test]
    fn the_cap_of_the_session_is_told_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        for outs in [Outs::in_folder(folder.path().join("deep/out"), 10), Outs::in_memory(10)] {
            outs.put(&CallId::nth(1), b"12345678").unwrap();
            let error = outs.put(&CallId::nth(2), b"12345678901").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert!(error.to_string().contains("8 of at most 10 bytes"), "{error}");
            assert!(outs.open(&CallId::nth(2)).is_none() && outs.open(&CallId::nth(1)).is_some());
            outs.put(&CallId::nth(1), b"1234567890").unwrap();
            assert_eq!(outs.used(), 10);
        }
    }

    #[test]
    fn an_earlier_run_counts() {
        let folder = tempfile::tempdir().unwrap();
        Outs::in_folder(folder.path(), 10).put(&CallId::nth(1), b"12345678").unwrap();
        let again = Outs::in_folder(folder.path(), 10);
        again.put(&CallId::nth(2), b"123").unwrap();
        assert!(again.open(&CallId::nth(1)).is_none(), "it made room");
        assert_eq!(again.used(), 3);
    }

    #[test]
    fn files_are_for_the_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let outs = Outs::in_folder(folder.path().join("out"), 100);
        assert!(!outs.folder().unwrap().exists());
        outs.put(&CallId::nth(1), b"x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(outs.folder().unwrap()), 0o700);
        assert_eq!(mode(&outs.folder().unwrap().join("c1")), 0o600);
    }
}
