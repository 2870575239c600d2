//! The sessions below a home folder.
//!
//! **Invariant:** a session's folder is named by its checked id, so no id leads out of the store;
//! opening the store touches nothing.

use std::{
    collections::HashSet,
    fmt, io,
    path::{Path, PathBuf},
    time::Duration,
};

use haft_types::{CallId, Event, EventId, HostPath};

use crate::{
    Blobs, Collected, History, Lately, Listing, Log, PreImages, SessionError, SessionInfo, Usage,
    Verdict, history, list, log,
    newest::Newest,
    outputs, pre_images,
    read::{self, Branch, Events},
    recent,
};

/// The id of a session: a UUID of version 7 in lower case, so that ids sort by time.
///
/// Source: RFC 9562, section 5.7.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Box<str>);

impl SessionId {
    /// Makes a new one, after all that this process made before.
    pub fn new() -> Self {
        Self(uuid::Uuid::now_v7().to_string().into())
    }

    /// Checks a text.
    ///
    /// # Errors
    /// When it is no lower-case UUID with hyphens.
    pub fn parse(text: &str) -> Result<Self, SessionError> {
        match uuid::Uuid::try_parse(text) {
            Ok(id) if id.to_string() == text => Ok(Self(text.into())),
            _ => Err(SessionError::NotAnId(text.chars().take(80).collect())),
        }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Eight characters by which it is found and told from others at a glance: those of its random part,
    /// since ids of one day begin alike.
    pub fn short(&self) -> &str {
        let last = self.0.rsplit('-').next().unwrap_or_default();
        last.get(..SHORT).unwrap_or(last)
    }

    /// Whether it begins so, whole or short.
    pub(crate) fn is_meant(&self, start: &str) -> bool {
        let random = self.0.rsplit('-').next().unwrap_or_default();
        self.0.starts_with(start) || (start.len() >= SHORTEST && random.starts_with(start))
    }
}

/// Characters of a short id.
const SHORT: usize = 8;
/// Fewer of them name none.
const SHORTEST: usize = 4;

impl Default for SessionId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// All sessions below one home folder.
#[derive(Clone, Debug)]
pub struct Store {
    sessions: PathBuf,
}

impl Store {
    /// Names the store; nothing is read or created.
    pub fn open(home: &Path) -> Self {
        Self { sessions: home.join("sessions") }
    }

    /// Starts a session; nothing is on disk before its first event.
    pub fn create(&self) -> Log {
        let id = SessionId::new();
        let dir = self.dir(&id);
        Log::create(id, dir)
    }

    /// Opens a session for writing; see [`Log::repaired`].
    ///
    /// # Errors
    /// When it does not exist, is in use, or cannot be read or repaired.
    pub fn resume(&self, id: &SessionId) -> Result<Log, SessionError> {
        Log::open(id.clone(), self.dir(id)).map_err(|error| self.or_missing(id, error))
    }

    /// All events of a session, as they were written.
    ///
    /// # Errors
    /// When its log does not exist or cannot be opened.
    pub fn events(&self, id: &SessionId) -> Result<Events, SessionError> {
        let events = Events::open(&self.log_path(id), self.blobs(id));
        events.map_err(|error| self.or_missing(id, error))
    }

    /// What a session is resumed from. Each event is given to `each` in the order of the log, and
    /// whether it is on the branch of the last one. Contents of answers, calls and results are left
    /// out where they are older than what the model sees, or of another branch or agent.
    ///
    /// # Errors
    /// When its log does not exist, cannot be opened, or is of a later version.
    pub fn history(
        &self,
        id: &SessionId,
        each: impl FnMut(&Event, bool),
    ) -> Result<History, SessionError> {
        let history = History::open(&self.log_path(id), &self.blobs(id), each);
        history.map_err(|error| self.or_missing(id, error))
    }

    /// The events of the branch that ends at `leaf`; without one, at the last event.
    ///
    /// # Errors
    /// When the log does not exist, cannot be opened, or has no such event.
    pub fn branch(&self, id: &SessionId, leaf: Option<EventId>) -> Result<Branch, SessionError> {
        let branch = Branch::open(&self.log_path(id), self.blobs(id), leaf);
        branch.map_err(|error| self.or_missing(id, error))
    }

    /// Checks the hash chain of a session's log.
    ///
    /// # Errors
    /// When the log does not exist or cannot be opened.
    pub fn verify(&self, id: &SessionId) -> Result<Verdict, SessionError> {
        read::verify(&self.log_path(id)).map_err(|error| self.or_missing(id, error))
    }

    /// The calls of a session that ended; no more of them is read than that.
    ///
    /// # Errors
    /// When its log does not exist or cannot be opened.
    pub fn ended_calls(&self, id: &SessionId) -> Result<HashSet<CallId>, SessionError> {
        let ended = history::ended_calls(&self.log_path(id), &self.blobs(id));
        ended.map_err(|error| self.or_missing(id, error))
    }

    /// The events of these types on the branch of the last event, the newest first; no more of the
    /// log is read than the caller asks for.
    ///
    /// # Errors
    /// When the log does not exist or cannot be opened.
    pub fn newest(
        &self,
        id: &SessionId,
        kinds: &'static [&'static str],
    ) -> Result<Newest, SessionError> {
        let newest = Newest::open(&self.log_path(id), self.blobs(id), kinds);
        newest.map_err(|error| self.or_missing(id, error))
    }

    /// All sessions, the last used first; reads the head of each log and no blob.
    ///
    /// # Errors
    /// When the folder of sessions cannot be read; none there is an empty list.
    pub fn list(&self) -> Result<Listing, SessionError> {
        list::list(&self.sessions)
    }

    /// The session that was last used in this workspace, or in any.
    ///
    /// # Errors
    /// When the folder of sessions cannot be read.
    pub fn latest(&self, cwd: Option<&HostPath>) -> Result<Option<SessionInfo>, SessionError> {
        list::latest(&self.sessions, cwd)
    }

    /// The one session whose id, or short id, begins with `prefix`.
    ///
    /// # Errors
    /// When there is none or more than one, with candidates.
    pub fn find(&self, prefix: &str) -> Result<SessionId, SessionError> {
        list::find(&self.sessions, prefix)
    }

    /// What happened in the sessions but `mine` whose logs changed since this moment, in milliseconds
    /// since the Unix epoch. What cannot be read tells nothing.
    pub fn lately(&self, mine: &SessionId, since: u64) -> Vec<Lately> {
        recent::lately(&self.sessions, mine, since)
    }

    /// A session's folder.
    pub fn dir(&self, id: &SessionId) -> PathBuf {
        self.sessions.join(id.as_str())
    }

    /// A session's blobs.
    pub fn blobs(&self, id: &SessionId) -> Blobs {
        Blobs::new(self.dir(id).join("blobs"))
    }

    /// What a session keeps for undo: at most `quota` bytes.
    pub fn pre_images(&self, id: &SessionId, quota: u64) -> PreImages {
        PreImages::new(self.dir(id).join("undo"), quota)
    }

    /// Lets the sessions that were used longest ago lose what they keep for undo, until all
    /// together keep at most `most` bytes; the one of `mine` loses nothing. It ends after
    /// `within`, however far it came.
    ///
    /// # Errors
    /// When the folder of sessions cannot be read.
    pub fn collect_pre_images(
        &self,
        mine: &SessionId,
        most: u64,
        within: Duration,
    ) -> Result<Collected, SessionError> {
        let ids = list::ids(&self.sessions)?;
        Ok(pre_images::collect(&self.sessions, ids, mine, most, within))
    }

    /// Lets sessions that ended lose outputs of calls, the one that was used longest ago first, until
    /// all sessions together keep at most `most` bytes; what a conversation still points to goes
    /// last. That of `mine`, and what any process holds, loses nothing. It ends after `within`,
    /// however far it came.
    ///
    /// # Errors
    /// When the folder of sessions cannot be read.
    pub fn collect_outputs(
        &self,
        mine: &SessionId,
        most: u64,
        within: Duration,
    ) -> Result<Collected, SessionError> {
        let ids = list::ids(&self.sessions)?;
        Ok(outputs::collect(&self.sessions, ids, mine, most, within))
    }

    /// Bytes that a session takes.
    pub fn usage(&self, id: &SessionId) -> Usage {
        Usage::of(&self.dir(id))
    }

    /// Removes a session; gives how many bytes it had.
    ///
    /// # Errors
    /// When it does not exist, is in use, or cannot be removed.
    pub fn remove(&self, id: &SessionId) -> Result<u64, SessionError> {
        outputs::remove(&self.sessions, id).map_err(|error| self.or_missing(id, error))
    }

    /// Removes the outputs that a session keeps, and notes why; gives how many bytes they had.
    ///
    /// # Errors
    /// When it does not exist, is in use, or they cannot be removed.
    pub fn remove_outputs(&self, id: &SessionId, why: &str) -> Result<u64, SessionError> {
        let removed = outputs::remove_outputs(&self.sessions, id, why, |_| true);
        removed.map_err(|error| self.or_missing(id, error))
    }

    /// Removes what a [`Store::remove`] that was killed left.
    pub fn sweep(&self) {
        outputs::sweep(&self.sessions);
    }

    /// The ids of all sessions that have a log, oldest first.
    ///
    /// # Errors
    /// When the folder of sessions cannot be read.
    pub fn ids(&self) -> Result<Vec<SessionId>, SessionError> {
        list::ids(&self.sessions)
    }

    /// The file of a call's whole output: `out/<call>`; an id that is no file name stands under
    /// its hash.
    pub fn out_path(&self, id: &SessionId, call: &CallId) -> PathBuf {
        log::out_path(&self.dir(id), call)
    }

    fn log_path(&self, id: &SessionId) -> PathBuf {
        self.dir(id).join("log.jsonl")
    }

    fn or_missing(&self, id: &SessionId, error: SessionError) -> SessionError {
        match &error {
            SessionError::Io { doing: "open", source, .. }
                if source.kind() == io::ErrorKind::NotFound =>
            {
                list::not_found(&self.sessions, id.as_str())
            }
            _ => error,
        }
    }
}
