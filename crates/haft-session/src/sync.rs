//! Makes what was appended survive a power cut, beside the one who appends.
//!
//! **Invariant:** a sync covers every line that was appended before it was asked for, with the
//! blobs of those lines first. Whoever asks while one runs waits for the next one, which all of
//! them share. Appending never waits for the disk here.

use std::{
    fs::File,
    path::PathBuf,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{Blobs, SessionError, files};

/// Syncs one session's log; clones share their state.
#[derive(Clone, Debug)]
pub struct Syncer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    path: PathBuf,
    blobs: Blobs,
    /// Unset before the first event of a new session.
    file: OnceLock<File>,
    /// Lines that this process appended.
    appended: AtomicU64,
    /// How many of them are on disk for good.
    covered: AtomicU64,
    /// Held while syncing; true once the names of log and folders are on disk too.
    named: Mutex<bool>,
}

impl Syncer {
    pub(crate) fn new(dir: PathBuf, path: PathBuf, blobs: Blobs) -> Self {
        Self(Arc::new(Inner {
            dir,
            path,
            blobs,
            file: OnceLock::new(),
            appended: AtomicU64::new(0),
            covered: AtomicU64::new(0),
            named: Mutex::new(false),
        }))
    }

    /// Returns once everything appended before this call would survive a power cut. Waits for the
    /// disk: not for threads that others wait for.
    ///
    /// # Errors
    /// When the system cannot promise that; what was appended is still in the log.
    pub fn sync(&self) -> Result<(), SessionError> {
        let inner = &*self.0;
        let wanted = inner.appended.load(Ordering::Acquire);
        let mut named = inner.named.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.covered.load(Ordering::Acquire) >= wanted {
            return Ok(());
        }
        let covers = inner.appended.load(Ordering::Acquire);
        inner.blobs.sync()?;
        let Some(file) = inner.file.get() else { return Ok(()) };
        file.sync_data().map_err(|error| SessionError::io("sync", &inner.path, error))?;
        if !*named {
            for dir in inner.dir.ancestors().take(3) {
                files::sync_dir(dir).map_err(|error| SessionError::io("sync", dir, error))?;
            }
            *named = true;
        }
        inner.covered.store(covers, Ordering::Release);
        Ok(())
    }

    /// Reports whether nothing was appended since the last sync.
    pub fn is_done(&self) -> bool {
        let inner = &*self.0;
        inner.covered.load(Ordering::Acquire) >= inner.appended.load(Ordering::Acquire)
    }

    /// The log's file; none before it was opened.
    pub(crate) fn file(&self) -> Option<&File> {
        self.0.file.get()
    }

    /// Takes the log's file; its names are synced with it where it is a new one.
    pub(crate) fn open(&self, file: File, new: bool) {
        *self.0.named.lock().unwrap_or_else(PoisonError::into_inner) = !new;
        // There is one writer, and it opens its log once.
        drop(self.0.file.set(file));
    }

    pub(crate) fn appended(&self) {
        self.0.appended.fetch_add(1, Ordering::AcqRel);
    }
}
