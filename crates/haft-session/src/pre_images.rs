//! What files held before they were changed, named by its hash: `undo/<hash>`.
//!
//! It stands apart from the blobs of the log, so that making room here never takes away what the
//! log shows. Nothing is synced one by one: a killed process loses nothing, a power cut the last
//! seconds at most, and what is damaged is not given back.
//!
//! **Invariant:** a file under its final name is whole when it is written, and every read checks its
//! length and hash. A session keeps no more bytes than its quota: the oldest go first, and what is
//! bigger than the quota is refused. One process writes at a time, the one that holds the log.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::{self, Read, Seek as _, SeekFrom, Write as _},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use haft_types::{Blob, Hash};
use tempfile::NamedTempFile;

use crate::{Copies, SessionError, SessionId, copies::CrashLeftovers, files};

/// How many contents are brought to the disk at once.
const SYNCED_AT_ONCE: usize = 16;

/// Prefix of unfinished files.
const TEMPORARY: &str = ".tmp-";
/// What the content of any file is called.
const MIME: &str = "application/octet-stream";
const ZEROS: [u8; 4096] = [0; 4096];
/// Age from which an unfinished file belongs to nobody any more.
const ABANDONED: Duration = Duration::from_hours(1);

/// The content that one session keeps for undo; clones share one store.
#[derive(Clone, Debug)]
pub struct PreImages {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    quota: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes that are kept; none before the first look.
    used: Option<u64>,
    unsynced: Vec<Hash>,
    /// What never makes room, and how many want that.
    held: HashMap<Hash, usize>,
    /// How many contents made room since that was asked.
    let_go: u64,
}

/// Content that is being kept; dropped before its end, it leaves nothing.
#[derive(Debug)]
pub struct Unfinished {
    into: PreImages,
    file: NamedTempFile,
    hasher: blake3::Hasher,
    len: u64,
}

/// Kept content on its way back.
///
/// **Invariant:** its end is only reached where all of it has the length and the hash that it was
/// kept by; otherwise the last read fails.
#[derive(Debug)]
pub struct Reading {
    file: File,
    path: PathBuf,
    hasher: blake3::Hasher,
    left: u64,
    hash: Hash,
}

/// Keeps content from making room for other content, until it is dropped.
#[derive(Debug)]
pub struct PinGuard {
    of: PreImages,
    hash: Hash,
}

/// What making room took away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// How many sessions lost something; one that did so twice counts twice.
    pub sessions: u64,
    /// How many bytes were freed.
    pub bytes: u64,
}

/// One kept file.
struct StoredFile {
    path: PathBuf,
    len: u64,
    modified: SystemTime,
}

impl PreImages {
    pub(crate) fn new(dir: PathBuf, quota: u64) -> Self {
        Self { inner: Arc::new(Inner { dir, quota, state: Mutex::default() }) }
    }

    /// Begins to keep content of about `expected` bytes.
    ///
    /// # Errors
    /// When more than the quota is expected, or nothing can be written.
    pub fn begin(&self, expected: u64) -> Result<Unfinished, SessionError> {
        self.make_room(expected)?;
        let dir = &self.inner.dir;
        files::create_dir(dir).map_err(|error| SessionError::home(dir, error))?;
        let file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(dir);
        let file = file.map_err(|error| SessionError::io("write", dir, error))?;
        Ok(Unfinished { into: self.clone(), file, hasher: blake3::Hasher::new(), len: 0 })
    }

    /// Keeps content that is there as a whole and has this hash; what is kept already is not
    /// written again.
    ///
    /// # Errors
    /// When there are more bytes than the quota, or they cannot be written.
    pub fn put(&self, whole: &[u8], hash: Hash) -> Result<Blob, SessionError> {
        let len = whole.len() as u64;
        let path = self.path(&hash);
        if is_whole(&path, &hash, len) {
            // It is used again: not the next one to go.
            let touched = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
            drop(touched);
        } else {
            let mut unfinished = self.begin(len)?;
            unfinished.write(whole)?;
            unfinished.keep(hash)?;
        }
        Ok(blob(hash, len))
    }

    /// Gives back what was kept, piece by piece; length and hash are checked on the way, so it is
    /// only known at its end that it is what was kept.
    ///
    /// # Errors
    /// When it is missing or cannot be opened.
    pub fn open(&self, blob: &Blob) -> Result<Reading, SessionError> {
        let path = self.path(&blob.hash);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SessionError::NotKept { hash: blob.hash.to_string() });
            }
            Err(error) => return Err(SessionError::io("read", path, error)),
        };
        let (hasher, left, hash) = (blake3::Hasher::new(), blob.len, blob.hash);
        Ok(Reading { file, path, hasher, left, hash })
    }

    /// Sees to it that this content makes no room for other content while what is given lives.
    pub fn hold(&self, hash: Hash) -> PinGuard {
        *self.state().held.entry(hash).or_default() += 1;
        PinGuard { of: self.clone(), hash }
    }

    /// What is kept under a hash; none where nothing is.
    pub fn find(&self, hash: &Hash) -> Option<Blob> {
        let data = fs::metadata(self.path(hash)).ok().filter(fs::Metadata::is_file)?;
        Some(blob(*hash, data.len()))
    }

    /// Makes everything that this process kept so far survive a power cut.
    ///
    /// # Errors
    /// When the system cannot promise that.
    pub fn sync(&self) -> Result<(), SessionError> {
        let waiting = std::mem::take(&mut self.state().unsynced);
        // The disk works on several at once.
        let each = waiting.len().div_ceil(SYNCED_AT_ONCE).max(1);
        let (images, parts) = (&self, waiting.chunks(each));
        let failed = std::thread::scope(|scope| {
            let running: Vec<_> =
                parts.map(|part| scope.spawn(move || images.sync_each(part))).collect();
            let mut ended = running.into_iter().map(|one| {
                one.join().unwrap_or_else(|_| {
                    let error = io::Error::other("a thread of it broke off");
                    Err(SessionError::io("sync", &images.inner.dir, error))
                })
            });
            ended.find_map(Result::err)
        });
        if let Some(error) = failed {
            self.state().unsynced.extend_from_slice(&waiting);
            return Err(error);
        }
        let failed = |path: &Path, error| SessionError::io("sync", path, error);
        if waiting.is_empty() {
            return Ok(());
        }
        for dir in self.inner.dir.ancestors().take(2) {
            files::sync_dir(dir).map_err(|error| failed(dir, error))?;
        }
        Ok(())
    }

    fn sync_each(&self, contents: &[Hash]) -> Result<(), SessionError> {
        for hash in contents {
            let path = self.path(hash);
            match fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.sync_all()) {
                Ok(()) => {}
                // It had to make room meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(SessionError::io("sync", &path, error)),
            }
        }
        Ok(())
    }

    /// A place for copies of what files hold before a command, with room for as much as the quota.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn copies(&self) -> Result<Copies, SessionError> {
        Copies::new(&self.before(), self.inner.quota)
    }

    /// What processes of this session left of such copies that were killed. Whoever asks holds the
    /// log of the session.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn left(&self) -> Result<Vec<CrashLeftovers>, SessionError> {
        Copies::left(&self.before())
    }

    /// Reports whether copies are there: those of a process that runs, or was killed.
    pub fn has_copies(&self) -> bool {
        self.before().exists()
    }

    fn before(&self) -> PathBuf {
        before(&self.inner.dir)
    }

    /// Bytes that are kept now.
    pub fn used(&self) -> u64 {
        let mut state = self.state();
        *state.used.get_or_insert_with(|| total(&kept(&self.inner.dir)))
    }

    /// How many contents made room for others since this was asked last.
    pub fn let_go(&self) -> u64 {
        std::mem::take(&mut self.state().let_go)
    }

    fn path(&self, hash: &Hash) -> PathBuf {
        self.inner.dir.join(hash.to_string())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the oldest go until `len` more bytes fit.
    fn make_room(&self, len: u64) -> Result<(), SessionError> {
        let quota = self.inner.quota;
        if len > quota {
            return Err(SessionError::OverQuota { len, quota });
        }
        if self.used().saturating_add(len) <= quota {
            return Ok(());
        }
        let mut all = kept(&self.inner.dir);
        let mut used = total(&all);
        let held: HashSet<PathBuf> = self.state().held.keys().map(|hash| self.path(hash)).collect();
        all.retain(|kept| !held.contains(&kept.path));
        let stay = used - total(&all);
        if stay.saturating_add(len) > quota {
            return Err(SessionError::NoRoom { len, held: stay, quota });
        }
        all.sort_by_key(|kept| std::cmp::Reverse(kept.modified));
        // Some more than is needed, so that not every change has to look again.
        let wanted = quota.saturating_sub(len).min(quota - quota / 8);
        while used > wanted
            && let Some(oldest) = all.pop()
        {
            match fs::remove_file(&oldest.path) {
                Ok(()) => {
                    used -= oldest.len;
                    self.state().let_go += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => used -= oldest.len,
                Err(error) => return Err(SessionError::io("remove", oldest.path, error)),
            }
        }
        self.state().used = Some(used);
        Ok(())
    }
}

impl Unfinished {
    /// Takes the next piece.
    ///
    /// # Errors
    /// When there are more bytes than the quota by now, or they cannot be written.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), SessionError> {
        self.hasher.update(piece);
        self.write(piece)
    }

    /// The file that takes the content, for one who can fill it in one step.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn file(&self) -> io::Result<OwnedFd> {
        Ok(self.file.as_file().try_clone()?.into())
    }

    /// Takes what its file was filled with as the content, and reads it for its hash.
    ///
    /// # Errors
    /// When it is more than the quota, or cannot be read.
    pub fn filled(&mut self) -> Result<(), SessionError> {
        let path = self.file.path().to_owned();
        let failed = |error| SessionError::io("read", &path, error);
        let file = self.file.as_file_mut();
        self.len = file.metadata().map_err(failed)?.len();
        let quota = self.into.inner.quota;
        if self.len > quota {
            return Err(SessionError::OverQuota { len: self.len, quota });
        }
        file.rewind().map_err(failed)?;
        self.hasher = blake3::Hasher::new();
        self.hasher.update_reader(file).map_err(failed)?;
        Ok(())
    }

    /// Names what came.
    ///
    /// # Errors
    /// When it cannot be given its name.
    pub fn finish(self) -> Result<Blob, SessionError> {
        let hash = Hash::from_bytes(*self.hasher.finalize().as_bytes());
        self.keep(hash)
    }

    fn write(&mut self, piece: &[u8]) -> Result<(), SessionError> {
        self.len += piece.len() as u64;
        let quota = self.into.inner.quota;
        if self.len > quota {
            return Err(SessionError::OverQuota { len: self.len, quota });
        }
        // Where nothing but zeros came a hole is left: a file with great holes stays small.
        let done = if piece.chunks(ZEROS.len()).all(|part| part == &ZEROS[..part.len()]) {
            self.file.seek(SeekFrom::Start(self.len)).map(drop)
        } else {
            self.file.write_all(piece)
        };
        done.map_err(|error| SessionError::io("write", self.file.path(), error))
    }

    fn keep(self, hash: Hash) -> Result<Blob, SessionError> {
        let Self { into, file, len, .. } = self;
        into.make_room(len)?;
        let path = into.path(&hash);
        let there = fs::metadata(&path).map_or(0, |data| data.len());
        let failed = |error| SessionError::io("write", &path, error);
        file.as_file().set_len(len).map_err(failed)?;
        file.persist(&path).map_err(|error| SessionError::io("write", &path, error.error))?;
        let mut state = into.state();
        state.unsynced.push(hash);
        state.used = state.used.map(|used| used.saturating_add(len).saturating_sub(there));
        Ok(blob(hash, len))
    }
}

impl Read for Reading {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        // One byte more than there should be tells content that is too long.
        let most = usize::try_from(self.left.saturating_add(1)).unwrap_or(usize::MAX);
        let most = most.min(into.len());
        let got = self.file.read(&mut into[..most])?;
        self.hasher.update(&into[..got]);
        let same = || self.hasher.finalize().as_bytes() == self.hash.as_bytes();
        match self.left.checked_sub(got as u64) {
            Some(left) if got > 0 || (left == 0 && same()) => {
                self.left = left;
                Ok(got)
            }
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                SessionError::Damaged {
                    hash: self.hash.to_string(),
                    path: self.path.clone(),
                    why: "its content has another length or hash".to_owned(),
                },
            )),
        }
    }
}

impl Drop for PinGuard {
    fn drop(&mut self) {
        let mut state = self.of.state();
        if let Some(count) = state.held.get_mut(&self.hash) {
            *count -= 1;
            if *count == 0 {
                state.held.remove(&self.hash);
            }
        }
    }
}

fn blob(hash: Hash, len: u64) -> Blob {
    Blob { hash, len, mime: MIME.to_owned() }
}

/// Reports whether a file has this content.
fn is_whole(path: &Path, hash: &Hash, len: u64) -> bool {
    let Ok(file) = File::open(path) else { return false };
    if !file.metadata().is_ok_and(|data| data.is_file() && data.len() == len) {
        return false;
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file).is_ok() && hasher.finalize().as_bytes() == hash.as_bytes()
}

/// Where the copies are, beside what is kept.
fn before(undo: &Path) -> PathBuf {
    undo.with_file_name("before")
}

/// How many bytes the copies take that a killed process left.
fn copied(undo: &Path) -> u64 {
    let all = fs::read_dir(before(undo)).into_iter().flatten().flatten();
    all.map(|one| fs::metadata(one.path().join("copies")).map_or(0, |data| data.len())).sum()
}

/// What is kept in a folder; what a killed process left unfinished is removed.
fn kept(dir: &Path) -> Vec<StoredFile> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut all = Vec::new();
    for entry in entries.flatten() {
        let Ok(data) = entry.metadata() else { continue };
        let modified = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let path = entry.path();
        if !data.is_file() {
            continue;
        }
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            if modified.elapsed().is_ok_and(|age| age > ABANDONED) {
                // Not worth failing for: the next look tries again.
                let _ = fs::remove_file(&path);
            }
            continue;
        }
        all.push(StoredFile { path, len: data.len(), modified });
    }
    all
}

fn total(all: &[StoredFile]) -> u64 {
    all.iter().map(|kept| kept.len).sum()
}

/// Lets the sessions that were used longest ago lose what they keep for undo until all of them
/// together keep at most `most` bytes; the one of `mine` stays. It ends after `within`, however
/// far it came.
pub(crate) fn collect(
    sessions: &Path,
    ids: Vec<SessionId>,
    mine: &SessionId,
    most: u64,
    within: Duration,
) -> Collected {
    let began = Instant::now();
    let mut all = Vec::new();
    let mut used = 0;
    for id in ids {
        if began.elapsed() > within {
            break;
        }
        let dir = sessions.join(id.as_str());
        let undo = dir.join("undo");
        let len = total(&kept(&undo)) + copied(&undo);
        used += len;
        if len > 0 && id != *mine {
            let active = fs::metadata(dir.join("log.jsonl")).and_then(|data| data.modified());
            all.push((active.unwrap_or(SystemTime::UNIX_EPOCH), len, undo));
        }
    }
    all.sort();
    let mut collected = Collected::default();
    for (_, len, dir) in all {
        if used <= most || began.elapsed() > within {
            break;
        }
        // A process that still runs goes on with its open files.
        drop(fs::remove_dir_all(before(&dir)));
        let removed = fs::remove_dir_all(&dir);
        if removed.is_ok() || !dir.exists() {
            used -= len;
            collected.sessions += 1;
            collected.bytes += len;
        }
    }
    collected
}
