//! Errors that name their path and keep their cause.
//!
//! **Invariant:** the kind of the error is the kind of its cause. So callers can still distinguish
//! a full disk from a missing permission. The cause itself stays reachable as the source.

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

/// An error for an operation on a path that failed: what could not be done, and why.
pub fn fault(path: &HostPath, what: &str, cause: impl Into<io::Error>) -> io::Error {
    let cause = cause.into();
    io::Error::new(cause.kind(), Fault { text: format!("{path}: {what}"), cause })
}

/// An error for a path that is refused, where no other error is the cause.
pub fn refuse(kind: io::ErrorKind, path: &HostPath, what: impl fmt::Display) -> io::Error {
    io::Error::new(kind, format!("{path}: {what}"))
}

/// The usual name of a kind of entry, with its article.
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
