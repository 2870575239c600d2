//! Errors of undo: why changes could not be undone.

use std::io;

use haft_types::HostPath;

use super::conflicts::{Conflict, listed};

/// Why changes could not be undone. Nothing was changed then, except what [`UndoError::Cut`] names.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// Content that has to be restored was not stored.
    #[error("what {path} held before is not there to be brought back: {why}")]
    NotKept {
        /// The file.
        path: HostPath,
        /// Why.
        why: String,
    },
    /// The file was too big to be read when it was changed: it may be another's by now.
    #[error(
        "it is not known whether {path} is as the change left it, which was too big to be read"
    )]
    Unknown {
        /// The file.
        path: HostPath,
    },
    /// The change was made on another host.
    #[error("{path} was changed on the host {host}, which is not this one")]
    Elsewhere {
        /// The file.
        path: HostPath,
        /// The host on which it was changed.
        host: String,
    },
    /// A rule forbids to change it.
    #[error("{path} must not be changed: {why}")]
    Denied {
        /// The file.
        path: HostPath,
        /// Which rule, in words.
        why: String,
    },
    /// Something else than a file, or a link, is in the way.
    #[error("{path} {why}: look what is there and move it away")]
    Blocked {
        /// The file.
        path: HostPath,
        /// What is in the way.
        why: String,
    },
    /// A file would be deleted of which no copy can be stored; it may be the only one.
    #[error("{path} would be lost: there is no room to keep what it holds")]
    OnlyCopy {
        /// The file.
        path: HostPath,
    },
    /// Files are not as the changes left them.
    #[error("{} is not as the change left it", listed(.0.iter().map(|one| &one.path)))]
    Conflict(Vec<Conflict>),
    /// A file could not be looked at or changed; all others are as before.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: HostPath,
        /// The cause.
        source: io::Error,
    },
    /// A file could not be changed, and others that had been changed could not be rolled back.
    #[error("{path}: {source}; these are changed already: {}", listed(left.iter()))]
    Cut {
        /// The file.
        path: HostPath,
        /// The cause.
        source: io::Error,
        /// The files that could not be rolled back.
        left: Vec<HostPath>,
    },
}
