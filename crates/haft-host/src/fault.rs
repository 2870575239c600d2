//! Errors that name their path and keep their cause.
//!
//! **Invariant:** the kind of the error is the kind of its cause, so callers can still tell a full
//! disk from a missing right; the cause itself stays reachable as the source.

use std::{error::Error, fmt, io};

use haft_types::{EntryKind, HostPath};

#[derive(Debug)]
struct Fault {
    text: String,
    cause: io::Error,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.text, self.cause)
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

/// What could not be done with a path, and why.
pub fn fault(path: &HostPath, what: &str, cause: impl Into<io::Error>) -> io::Error {
    let cause = cause.into();
    io::Error::new(cause.kind(), Fault { text: format!("{path}: {what}"), cause })
}

/// What is wrong with a path, where no other error is the cause.
pub fn refuse(kind: io::ErrorKind, path: &HostPath, what: impl fmt::Display) -> io::Error {
    io::Error::new(kind, format!("{path}: {what}"))
}

/// What people call a kind of entry, with its article.
pub const fn name_of(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "a file",
        EntryKind::Folder => "a folder",
        EntryKind::Link => "a link",
        EntryKind::Fifo => "a named pipe",
        EntryKind::Socket => "a socket",
        EntryKind::Device | EntryKind::CharDevice => "a device",
    }
}
