//! Content beside the log, named by its hash: `blobs/<hash>`.
//!
//! **Invariant:** a file under its final name is whole when it is written, and every read checks
//! its length and hash; the same content is kept once. Bytes are on disk for good only after
//! `sync`, which the log calls before it syncs itself.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use haft_types::{Blob, Hash};

use crate::{SessionError, files};

/// The most bytes that one blob may have.
pub const BLOB_MAX: u64 = 256 << 20;

/// Prefix of unfinished files, directly below `blobs`.
const TEMPORARY: &str = ".tmp-";

/// How many blobs may wait for a sync before one is made: far more than come within the second in
/// which the log is synced, so that nobody waits for it who only appends.
const UNSYNCED_MAX: usize = 4096;

/// The blobs of one session; clones share one store.
#[derive(Clone, Debug)]
pub struct Blobs {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    unsynced: Mutex<BTreeSet<Hash>>,
    /// Held while syncing: whoever finds nothing left to sync knows that it is done.
    syncing: Mutex<()>,
}

impl Blobs {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self {
            inner: Arc::new(Inner { dir, unsynced: Mutex::default(), syncing: Mutex::default() }),
        }
    }

    /// Keeps `bytes` and names them; content that is there already is not written again.
    ///
    /// # Errors
    /// When there are more than [`BLOB_MAX`] bytes, or they cannot be written.
    pub fn put(&self, bytes: &[u8], mime: &str) -> Result<Blob, SessionError> {
        let len = bytes.len() as u64;
        if len > BLOB_MAX {
            return Err(SessionError::TooBig { len, max: BLOB_MAX });
        }
        let hash = Hash::of(bytes);
        let path = self.path(&hash);
        if !holds(&path, &hash, len) {
            self.write(&path, bytes)?;
        }
        self.remember(hash)?;
        Ok(Blob { hash, len, mime: mime.to_owned() })
    }

    /// Gives the bytes of a blob back, after checking length and hash.
    ///
    /// # Errors
    /// When it is missing, damaged, cannot be read, or is said to be over [`BLOB_MAX`] bytes.
    pub fn get(&self, blob: &Blob) -> Result<Vec<u8>, SessionError> {
        if blob.len > BLOB_MAX {
            return Err(SessionError::TooBig { len: blob.len, max: BLOB_MAX });
        }
        let path = self.path(&blob.hash);
        let damaged = |why: String| SessionError::Damaged {
            hash: blob.hash.to_string(),
            path: path.clone(),
            why,
        };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(damaged("it is missing".to_owned()));
            }
            Err(error) => return Err(SessionError::io("read", path, error)),
        };
        let mut bytes = Vec::new();
        let read = file.take(blob.len.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| SessionError::io("read", &path, error))?;
        if bytes.len() as u64 != blob.len {
            return Err(damaged(format!("its length is not {} bytes", blob.len)));
        }
        if Hash::of(&bytes) != blob.hash {
            return Err(damaged("its content has another hash".to_owned()));
        }
        Ok(bytes)
    }

    /// The file that holds, or would hold, the content with this hash.
    pub fn path(&self, hash: &Hash) -> PathBuf {
        self.inner.dir.join(hash.to_string())
    }

    /// Makes everything put so far survive a power cut.
    pub(crate) fn sync(&self) -> Result<(), SessionError> {
        let _alone = self.inner.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = std::mem::take(&mut *self.unsynced());
        if waiting.is_empty() {
            return Ok(());
        }
        let paths: Vec<PathBuf> = waiting.iter().map(|hash| self.path(hash)).collect();
        let synced = sync_all(&self.inner.dir, &paths);
        if synced.is_err() {
            self.unsynced().extend(waiting);
        }
        synced
    }

    /// Removes what a killed process left unfinished; only for the one who holds the log's lock.
    pub(crate) fn remove_leftovers(&self) {
        let Ok(entries) = fs::read_dir(&self.inner.dir) else { return };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
                // Not worth failing for: it takes room, and the next start tries again.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), SessionError> {
        let dir = &self.inner.dir;
        files::create_dir(dir).map_err(|error| SessionError::home(dir, error))?;
        let failed = |error| SessionError::io("write", path, error);
        let mut file =
            tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(dir).map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    fn remember(&self, hash: Hash) -> Result<(), SessionError> {
        let full = {
            let mut unsynced = self.unsynced();
            unsynced.insert(hash);
            unsynced.len() >= UNSYNCED_MAX
        };
        if full { self.sync() } else { Ok(()) }
    }

    fn unsynced(&self) -> std::sync::MutexGuard<'_, BTreeSet<Hash>> {
        self.inner.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports whether a file has this content; a damaged one is written anew by `put`.
fn holds(path: &Path, hash: &Hash, len: u64) -> bool {
    let Ok(file) = File::open(path) else { return false };
    if !file.metadata().is_ok_and(|data| data.is_file() && data.len() == len) {
        return false;
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file).is_ok() && hasher.finalize().as_bytes() == hash.as_bytes()
}

fn sync_all(dir: &Path, paths: &[PathBuf]) -> Result<(), SessionError> {
    for path in paths {
        // Opened for writing because some systems sync nothing through a reading handle.
        let file = fs::OpenOptions::new().write(true).open(path);
        file.and_then(|file| file.sync_all())
            .map_err(|error| SessionError::io("sync", path, error))?;
    }
    files::sync_dir(dir).map_err(|error| SessionError::io("sync", dir, error))
}
