//! What can go wrong with a record, named by what the caller can do about it.

use std::{io, path::PathBuf};

use haft_types::EventId;

/// Why a session could not be written, opened or found.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Another process writes this session: wait for it, or use another session.
    #[error(
        "session {session} is in use by {}: end that one first, or start a new session",
        another(by.as_deref())
    )]
    InUse {
        /// The session's id.
        session: String,
        /// Which process that is, with its command; none where that is not known.
        by: Option<String>,
    },
    /// A later haft wrote this session: use that one.
    #[error(
        "{} was written by a later haft (version {version} of the log): update haft, or start a \
         new session",
        path.display()
    )]
    Newer {
        /// Its log.
        path: PathBuf,
        /// The version that it names.
        version: u32,
    },
    /// The home folder cannot be written: choose another.
    #[error("cannot create {}: {source}; {}set HAFT_HOME to a folder that can be written", path.display(), in_the_way(source))]
    Home {
        /// What could not be created.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no room left, or a quota or file size limit was met: make room and try again.
    #[error("cannot write {}: {source}; {}", path.display(), room(source))]
    Full {
        /// What could not be written.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system refused; nothing of what was to be written is in the log.
    #[error("cannot {doing} {}: {source}{}", path.display(), advice(source))]
    Io {
        /// What was tried: `read`, `write`, `sync`.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No session fits: take one of the candidates.
    #[error("no session begins with {wanted:?}{}", named(.candidates, "the newest are"))]
    NotFound {
        /// What was asked for.
        wanted: String,
        /// The newest sessions, newest first, at most 10.
        candidates: Vec<String>,
    },
    /// Several sessions fit: write more of the id.
    #[error("{count} sessions begin with {wanted:?}: write more of the id{}", named(.candidates, "among them"))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// How many fit.
        count: usize,
        /// The newest of them, newest first, at most 10.
        candidates: Vec<String>,
    },
    /// A text that is no session id.
    #[error(
        "{0:?} is not a session id: lower-case UUID text is expected, as `haft session list` shows it"
    )]
    NotAnId(String),
    /// An event that is not in the log cannot be followed.
    #[error("event {} is not in the log: its events are 1 to {}", wanted.0, last.0)]
    NoSuchEvent {
        /// What was asked for.
        wanted: EventId,
        /// The last one that there is.
        last: EventId,
    },
    /// A passing event was given to the log: only show it.
    #[error("a passing event is never logged: only show it")]
    Passing,
    /// A blob is over the limit: keep it in a file of its own.
    #[error("{len} bytes are too many for one blob: the limit is {max} bytes")]
    TooBig {
        /// Its length in bytes.
        len: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// More than may be kept for undo.
    #[error("{len} bytes are more than the {quota} that a session keeps for undo")]
    OverQuota {
        /// Bytes of the content.
        len: u64,
        /// Most bytes that are kept.
        quota: u64,
    },
    /// There is no room for more while what is there is needed.
    #[error(
        "there is no room for {len} bytes beside the {held} that go with them: a session keeps \
         {quota} for undo"
    )]
    NoRoom {
        /// Bytes of the content.
        len: u64,
        /// Bytes that must stay.
        held: u64,
        /// Most bytes that are kept.
        quota: u64,
    },
    /// Content is not kept for undo, or not any more.
    #[error("the content {hash} is not kept any more: it had to make room for newer changes")]
    NotKept {
        /// Its hash.
        hash: String,
    },
    /// A blob is not what it was when it was kept: it cannot be used.
    #[error("blob {hash} is damaged: {why}; restore {} from a backup", path.display())]
    Damaged {
        /// Its name.
        hash: String,
        /// Where it lies.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// An event could not be written as JSON.
    #[error("the event cannot be written as JSON: {0}")]
    Encode(#[from] serde_json::Error),
}

/// What to do first where a file stands in the place of a folder.
fn in_the_way(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a file stands where a folder must be: move it away, or "
        }
        _ => "",
    }
}

/// What to do where no more can be written.
fn room(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::FileTooLarge => {
            "files may not grow any further here: raise that limit (`ulimit -f`), then start again"
        }
        _ => "free some space there, or set HAFT_HOME to another disk",
    }
}

/// What to do about a failed system call; our own words say it already.
fn advice(source: &io::Error) -> &'static str {
    match source.get_ref() {
        Some(_) => "",
        None => "; check the disk and the permissions of that path",
    }
}

fn named(ids: &[String], lead: &str) -> String {
    if ids.is_empty() {
        return "; there are none yet".to_owned();
    }
    format!("; {lead} {}", ids.join(", "))
}

impl SessionError {
    /// Names a failed system call; a full disk is told apart.
    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full { path, source },
            _ => Self::Io { doing, path, source },
        }
    }

    /// Names a folder or file of the state that could not be created, with what to do about it.
    pub fn home(path: impl Into<PathBuf>, source: io::Error) -> Self {
        match Self::io("create", path, source) {
            Self::Io { path, source, .. } => Self::Home { path, source },
            other => other,
        }
    }
}

/// A line of a log that could not be read; the lines after it can.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of {}: {fault}", path.display())]
pub struct LineError {
    /// The log.
    pub path: PathBuf,
    /// Number of the line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub fault: LineFault,
}

/// What is wrong with one line of a log.
#[derive(Debug, thiserror::Error)]
pub enum LineFault {
    /// The log ends in the middle of it: opening the session for writing repairs that.
    #[error("it is cut off; opening the session for writing repairs that")]
    Torn,
    /// It is longer than any line that is ever written.
    #[error("it is longer than {max} bytes, so it is no event")]
    TooLong {
        /// The limit in bytes.
        max: usize,
    },
    /// It is no event, or one that a newer version wrote.
    #[error("it is no event that this version knows: {0}")]
    NotAnEvent(String),
    /// A blob that it names cannot be put back.
    #[error(transparent)]
    Blob(#[from] SessionError),
    /// The file cannot be read on.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It does not follow the line before it: one of the two was changed.
    #[error("it names {named} as the line before, which is {actual}: one of the two was changed")]
    Chain {
        /// The hash in the line; empty when it has none.
        named: String,
        /// The hash of the line before.
        actual: String,
    },
}

/// Another haft, as errors name it.
fn another(by: Option<&str>) -> String {
    by.map_or("another haft".to_owned(), |by| format!("another haft, {by}"))
}
