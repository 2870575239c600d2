//! Receives the sockets that a confined program asks for, and refuses each.
//!
//! **Invariant:** every call is refused with the error that it would have had without a listener.
//! Its arguments are not read here. So nothing that a program changes meanwhile decides anything.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use super::syscalls;

/// Where the calls of one program are heard of.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl From<OwnedFd> for Listener {
    fn from(held: OwnedFd) -> Self {
        Self(held)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Listener {
    /// Takes the next call, which must have come; none where whoever made it is gone. It waits until it is
    /// [refused](Self::refuse).
    ///
    /// # Errors
    /// When nothing more can come.
    pub fn hear(&self) -> io::Result<Option<u64>> {
        match syscalls::hear(self.as_fd()) {
            Ok(call) => Ok(Some(call)),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Refuses one; whoever made it may be gone.
    pub fn refuse(&self, call: u64) {
        let _ = syscalls::refuse(self.as_fd(), call, super::seccomp::REFUSED_WITH);
    }
}
