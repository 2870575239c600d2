//! Where it is put down that several files are changing together, so that a crash in between can be
//! mended.
//!
//! **Invariant:** it is on the disk before the first of them changes, and goes after the last one
//! has. Nothing here knows a session or a disk.

use std::io;

use haft_types::Receipt;

/// Puts down what is about to be done; see [`Cx::change_together`](crate::Cx::change_together).
pub trait Journal: Send + Sync {
    /// Puts down the changes that are about to be made, with where what they replace is kept; they
    /// survive a power cut when this returns. It waits for the disk.
    ///
    /// # Errors
    /// When it cannot be written or synced; nothing of it is left then.
    fn begin(&self, receipts: &[Receipt]) -> io::Result<Box<dyn Journaled>>;
}

/// What was put down; dropped without its end, it stays for the next start.
pub trait Journaled: Send {
    /// Takes it away: everything was done, or put back. It waits for the disk.
    ///
    /// # Errors
    /// When it cannot be taken away for good.
    fn end(self: Box<Self>) -> io::Result<()>;
}
