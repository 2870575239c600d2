//! What a session retains for undo: the earlier contents of files, as the tools' `PreImages`.
//!
//! **Invariant:** when all sessions together retain too many bytes, space is freed. That happens at
//! most once in a run, on a thread that nobody waits for.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use haft_host::{Copies, Source};
use haft_session::{SessionError, SessionId, Store};
use haft_tool::{CrashLeftovers, PendingPreImage, PinGuard, PreImages};
use haft_types::{Blob, Hash};

/// Longest that making room among all sessions goes on in one run.
const COLLECT_WITHIN: Duration = Duration::from_millis(200);

/// What a session keeps for undo, as tools know it.
struct RetainedChanges {
    images: haft_session::PreImages,
    /// What makes room among all sessions, once something is kept here.
    collect: Mutex<Option<Collect>>,
}

/// Makes room among all sessions.
struct Collect {
    store: Store,
    mine: SessionId,
    most: u64,
}

/// The store in which a session retains the earlier contents of changed files.
pub fn kept(store: &Store, id: &SessionId, settings: &haft_config::Undo) -> Arc<dyn PreImages> {
    let images = store.pre_images(id, settings.session_bytes);
    let collect = Collect { store: store.clone(), mine: id.clone(), most: settings.total_bytes };
    Arc::new(RetainedChanges { images, collect: Mutex::new(Some(collect)) })
}

impl RetainedChanges {
    /// Makes room among all sessions, once, and nobody waits for it.
    fn collect(&self) {
        let collect = self.collect.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Collect { store, mine, most }) = collect {
            // What it does not come to, the next run does.
            std::thread::spawn(move || drop(store.collect_pre_images(&mine, most, COLLECT_WITHIN)));
        }
    }
}

fn unkept(error: SessionError) -> io::Error {
    let kind = match &error {
        SessionError::OverQuota { .. } | SessionError::NoRoom { .. } => {
            let text = format!("{error}: undo.session_bytes in the settings");
            return io::Error::new(io::ErrorKind::QuotaExceeded, text);
        }
        SessionError::NotKept { .. } => io::ErrorKind::NotFound,
        SessionError::Io { source, .. } => source.kind(),
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

impl PreImages for RetainedChanges {
    fn begin(&self, expected: u64) -> io::Result<Box<dyn PendingPreImage>> {
        self.collect();
        let unfinished = self.images.begin(expected).map_err(unkept)?;
        Ok(Box::new(Unfinished(unfinished)))
    }

    fn put(&self, whole: &Bytes, hash: Hash) -> io::Result<Blob> {
        self.collect();
        self.images.put(whole, hash).map_err(unkept)
    }

    fn open(&self, blob: &Blob) -> io::Result<Source> {
        Ok(Box::new(self.images.open(blob).map_err(unkept)?))
    }

    fn hold(&self, hash: Hash) -> PinGuard {
        Box::new(self.images.hold(hash))
    }

    fn find(&self, hash: &Hash) -> Option<Blob> {
        self.images.find(hash)
    }

    fn let_go(&self) -> u64 {
        self.images.let_go()
    }

    fn copies(&self) -> io::Result<Arc<dyn Copies>> {
        Ok(Arc::new(Copied(self.images.copies().map_err(unkept)?)))
    }

    fn left(&self) -> io::Result<Vec<CrashLeftovers>> {
        let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH);
        let left = |left: haft_session::LeftCopies| CrashLeftovers {
            copies: Arc::new(Copied(left.copies)),
            text: left.text,
            lived: since(left.lived).map_or(0, |at| i128::try_from(at.as_nanos()).unwrap_or(0)),
        };
        Ok(self.images.left().map_err(unkept)?.into_iter().map(left).collect())
    }

    fn sync(&self) -> io::Result<()> {
        self.images.sync().map_err(unkept)
    }
}

struct Copied(haft_session::Copies);

impl Copies for Copied {
    fn add(&self, content: &[u8]) -> Option<u64> {
        self.0.add(content)
    }

    fn get(&self, at: u64, len: u64) -> io::Result<Bytes> {
        self.0.get(at, len).map(Bytes::from)
    }

    fn used(&self) -> u64 {
        self.0.used()
    }

    fn put_down(&self, text: &[u8], anew: bool) -> io::Result<()> {
        self.0.put_down(text, anew)
    }

    fn lives(&self) {
        self.0.lives();
    }

    fn stay(&self) {
        self.0.stay();
    }
}

struct Unfinished(haft_session::Unfinished);

impl PendingPreImage for Unfinished {
    fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        self.0.push(piece).map_err(unkept)
    }

    fn file(&self) -> Option<OwnedFd> {
        self.0.file().ok()
    }

    fn filled(&mut self) -> io::Result<()> {
        self.0.filled().map_err(unkept)
    }

    fn finish(self: Box<Self>) -> io::Result<Blob> {
        self.0.finish().map_err(unkept)
    }
}
