//! The journal of changes to several files together, so that a crash in between can be repaired.
//!
//! **Invariant:** an entry is on disk before the first file changes, and is removed after the last
//! one has changed. Nothing here knows a session or a disk.

use std::io;

use haft_types::Receipt;

/// Records changes before they are made; see [`Cx::change_together`](crate::Cx::change_together).
pub trait Journal: Send + Sync {
    /// Records the changes that are about to be made, and where the replaced content is stored. The
    /// entry survives a power cut when this returns. It waits for the disk.
    ///
    /// # Errors
    /// When it cannot be written or synced; nothing of it is left then.
    fn begin(&self, receipts: &[Receipt]) -> io::Result<Box<dyn Journaled>>;
}

/// A journal entry. Dropped without its end, it stays for the next start.
pub trait Journaled: Send {
    /// Removes the entry: every change was made, or rolled back. It waits for the disk.
    ///
    /// # Errors
    /// When it cannot be removed for good.
    fn end(self: Box<Self>) -> io::Result<()>;
}
