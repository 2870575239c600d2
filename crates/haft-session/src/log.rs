//! The writer of one session's log.
//!
//! **Invariants:** the file holds whole lines only, each naming the BLAKE3 hash of the line before
//! it; a failed append is taken back, so that the next one is right. Nothing is created before
//! the first event. An advisory lock on the log keeps other writers out until it is dropped.

use std::{
    fs::{File, TryLockError},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use haft_types::{CallId, Event, EventId, Hash, VERSION};

use crate::{
    Blobs, Format, Packed, SessionError, SessionId, Syncer, files, lock_owner::holder, repair,
};

/// A buffer that grew over this many bytes is given back after use.
const BUFFER_KEPT: usize = 256 << 10;

/// The one writer of a session.
#[derive(Debug)]
pub struct Log {
    session: SessionId,
    dir: PathBuf,
    path: PathBuf,
    blobs: Blobs,
    format: Format,
    syncer: Syncer,
    /// Bytes of whole lines.
    len: u64,
    /// Hash of the last line, without its line feed.
    prev: Hash,
    last: EventId,
    leaf: EventId,
    line: Vec<u8>,
    /// A failed append could not be taken back yet.
    torn: bool,
    repaired: Option<Event>,
}

impl Log {
    /// A session that is on disk only from its first event on.
    pub(crate) fn create(session: SessionId, dir: PathBuf) -> Self {
        let (path, blobs) = (dir.join("log.jsonl"), Blobs::new(dir.join("blobs")));
        Self {
            session,
            syncer: Syncer::new(dir.clone(), path.clone(), blobs.clone()),
            path,
            blobs,
            format: Format::Two,
            dir,
            len: 0,
            prev: Hash::of(b""),
            last: EventId(0),
            leaf: EventId(0),
            line: Vec::new(),
            torn: false,
            repaired: None,
        }
    }

    /// Opens a log that is there; a torn end is cut off, kept aside, and told by a notice. One that
    /// a later version wrote is left as it is.
    pub(crate) fn open(session: SessionId, dir: PathBuf) -> Result<Self, SessionError> {
        let mut log = Self::create(session, dir);
        let failed = |error| SessionError::io("open", &log.path, error);
        files::regular(&log.path).map_err(failed)?;
        let file = files::private().read(true).append(true).open(&log.path).map_err(failed)?;
        lock(&file, &log.path, &log.session)?;
        let (tail, aside) = repair::repair(&file, &log.path)?;
        log.syncer.open(file, false);
        (log.len, log.prev, log.format) = (tail.len, tail.hash, tail.format);
        (log.last, log.leaf) = (tail.last, tail.last);
        log.blobs.remove_leftovers();
        if let Some(aside) = aside {
            let mut notice = aside.notice();
            log.append(&mut notice)?;
            log.repaired = Some(notice);
        }
        Ok(log)
    }

    /// Appends an event: sets its version, id and parent (the leaf), writes it with all its large
    /// values moved to blobs, and makes it the leaf. It survives SIGKILL from then on.
    ///
    /// # Errors
    /// When the event is a passing one, or cannot be written; the log is then as it was before.
    pub fn append(&mut self, event: &mut Event) -> Result<EventId, SessionError> {
        let packed = Packed::new(event, &self.blobs, self.format)?;
        self.append_packed(event, &packed)
    }

    /// As [`append`](Self::append), for an event that was packed before: all that is left to do
    /// is one short write.
    ///
    /// # Errors
    /// When it cannot be written; the log is then as it was before.
    pub fn append_packed(
        &mut self,
        event: &mut Event,
        packed: &Packed,
    ) -> Result<EventId, SessionError> {
        if self.syncer.file().is_none() {
            self.begin()?;
        }
        let id = EventId(self.last.0 + 1);
        let parent = (self.leaf.0 > 0).then_some(self.leaf);
        self.write(id, parent, packed)?;
        if self.line.capacity() > BUFFER_KEPT {
            self.line = Vec::new();
        }
        (event.v, event.id, event.parent) = (VERSION, Some(id), parent);
        (self.last, self.leaf) = (id, id);
        Ok(id)
    }

    /// Makes everything appended so far survive a power cut: blobs first, then the log.
    ///
    /// # Errors
    /// When the system cannot promise that; what was appended is still in the log.
    pub fn sync(&self) -> Result<(), SessionError> {
        self.syncer.sync()
    }

    /// Syncs this log from elsewhere, while it is appended to.
    pub fn syncer(&self) -> &Syncer {
        &self.syncer
    }

    /// Lets the next event follow `event` instead of the last one: a branch begins. Event 0
    /// stands for the time before the first one.
    ///
    /// # Errors
    /// When the log has no such event.
    pub fn set_leaf(&mut self, event: EventId) -> Result<(), SessionError> {
        if event > self.last {
            return Err(SessionError::NoSuchEvent { wanted: event, last: self.last });
        }
        self.leaf = event;
        Ok(())
    }

    /// The event that the next one follows; 0 before the first.
    pub fn leaf(&self) -> EventId {
        self.leaf
    }

    /// The session's id.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The session's folder; not there before the first event.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The log's file; not there before the first event.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How its lines are written: as the first ones, for haft of an earlier version reads them, too.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The session's blobs.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Adds lines to what is kept of values of secrets; see [`recalled`](crate::recalled).
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn keep_prints(&self, lines: &str) -> Result<(), SessionError> {
        let path = self.dir.join(PRINTS);
        let write = || {
            files::create_dir(&self.dir)?;
            let mut file = files::private().create(true).append(true).open(&path)?;
            file.write_all(lines.as_bytes())
        };
        write().map_err(|error| SessionError::io("write", &path, error))
    }

    /// The folder of whole outputs, made with the first event.
    pub fn out_dir(&self) -> PathBuf {
        self.dir.join("out")
    }

    /// The file of a call's whole output; see [`crate::Store::out_path`].
    pub fn out_path(&self, call: &CallId) -> PathBuf {
        out_path(&self.dir, call)
    }

    /// The notice that opening appended because the log's end was torn; none where all was well.
    pub fn repaired(&self) -> Option<&Event> {
        self.repaired.as_ref()
    }

    /// Creates the session's folders and its empty log.
    fn begin(&mut self) -> Result<(), SessionError> {
        for dir in [self.dir.join("blobs"), self.out_dir()] {
            files::create_dir(&dir).map_err(|error| SessionError::home(&dir, error))?;
        }
        let file = files::private().read(true).append(true).create_new(true).open(&self.path);
        let file = file.map_err(|error| SessionError::home(&self.path, error))?;
        lock(&file, &self.path, &self.session)?;
        self.syncer.open(file, true);
        Ok(())
    }

    fn write(
        &mut self,
        id: EventId,
        parent: Option<EventId>,
        packed: &Packed,
    ) -> Result<(), SessionError> {
        if self.torn {
            self.take_back()?;
        }
        packed.line(id, parent, &self.prev, &mut self.line);
        let hash = Hash::of(&self.line);
        self.line.push(b'\n');
        let Some(mut file) = self.syncer.file() else { return Ok(()) };
        // One write(2) for the whole line; it goes on only where the system took a part of it.
        if let Err(error) = file.write_all(&self.line) {
            self.torn = true;
            let error = SessionError::io("write", &self.path, error);
            // The first failure is the cause; the next append tries again to take it back.
            let _ = self.take_back();
            return Err(error);
        }
        self.len += self.line.len() as u64;
        self.prev = hash;
        self.syncer.appended();
        Ok(())
    }

    /// Cuts off what a failed append left.
    fn take_back(&mut self) -> Result<(), SessionError> {
        if let Some(file) = self.syncer.file() {
            file.set_len(self.len)
                .map_err(|error| SessionError::io("shorten", &self.path, error))?;
        }
        self.torn = false;
        Ok(())
    }
}

/// The file of a call's whole output. An id that is no file name stands under its hash.
/// Where a session keeps by what it knows values of secrets again.
const PRINTS: &str = "secrets";
/// Most bytes that are read of it.
const PRINTS_MOST: u64 = 4 << 20;

/// What the session of this folder kept to know values of secrets again, in lines as
/// [`Log::keep_prints`] got them; empty where there is none.
pub fn recalled(dir: &Path) -> String {
    let path = dir.join(PRINTS);
    let read = || {
        files::regular(&path)?;
        let mut text = String::new();
        File::open(&path)?.take(PRINTS_MOST).read_to_string(&mut text).map(|_| text)
    };
    // What cannot be read is none: values are hidden again once they are seen behind a name.
    read().unwrap_or_default()
}

/// 32 bytes that nobody can guess.
pub fn fresh_key() -> [u8; 32] {
    let parts: Vec<u8> = (0..4).flat_map(|_| uuid::Uuid::now_v7().into_bytes()).collect();
    *blake3::hash(&parts).as_bytes()
}

pub(crate) fn out_path(dir: &Path, call: &CallId) -> PathBuf {
    let out = dir.join("out");
    match CallId::from_address(&call.address()) {
        Some(_) => out.join(&*call.0),
        None => out.join(Hash::of(call.0.as_bytes()).to_string()),
    }
}

pub(crate) fn lock(file: &File, path: &Path, session: &SessionId) -> Result<(), SessionError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            Err(SessionError::InUse { session: session.to_string(), by: holder(file) })
        }
        // Some network file systems have no locks: working without one beats not working.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(error)) => Err(SessionError::io("lock", path, error)),
    }
}
