//! Standard input and output as the two streams of a connection.
//!
//! A pipe is read and written by whoever waits for it; anything else by a thread beside, which takes two
//! more switches for each message.

use tokio::io::{AsyncRead, AsyncWrite};

/// What the client says.
pub(crate) fn input() -> Box<dyn AsyncRead + Unpin + Send> {
    pipes::input().unwrap_or_else(|| Box::new(tokio::io::stdin()))
}

/// What the client is told.
pub(crate) fn output() -> Box<dyn AsyncWrite + Unpin + Send> {
    pipes::output().unwrap_or_else(|| Box::new(tokio::io::stdout()))
}

#[cfg(target_os = "linux")]
mod pipes {
    use tokio::{
        io::{AsyncRead, AsyncWrite},
        net::unix::pipe::OpenOptions,
    };

    // Opened anew: whether a write waits belongs to what is opened, and others may have that, too. What is
    // no pipe, or somebody else's, is refused.

    pub(super) fn input() -> Option<Box<dyn AsyncRead + Unpin + Send>> {
        let pipe = OpenOptions::new().open_receiver("/proc/self/fd/0").ok()?;
        Some(Box::new(pipe))
    }

    pub(super) fn output() -> Option<Box<dyn AsyncWrite + Unpin + Send>> {
        let pipe = OpenOptions::new().open_sender("/proc/self/fd/1").ok()?;
        Some(Box::new(pipe))
    }
}

#[cfg(not(target_os = "linux"))]
mod pipes {
    use tokio::io::{AsyncRead, AsyncWrite};

    // A pipe without a name cannot be opened anew there.

    pub(super) fn input() -> Option<Box<dyn AsyncRead + Unpin + Send>> {
        None
    }

    pub(super) fn output() -> Option<Box<dyn AsyncWrite + Unpin + Send>> {
        None
    }
}
