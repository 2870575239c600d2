//! Copies of what files hold before a command that may change them, in one file without a name.
//!
//! **Invariant:** there are never more bytes than the quota, and the file goes with its last user,
//! however that ends: nothing of it is ever found on the disk later.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{SessionError, files};

/// See the module.
#[derive(Debug)]
pub struct Copies {
    file: File,
    quota: u64,
    used: AtomicU64,
}

impl Copies {
    pub(crate) fn new(dir: &Path, quota: u64) -> Result<Self, SessionError> {
        files::create_dir(dir).map_err(|error| SessionError::home(dir, error))?;
        let file = tempfile::tempfile_in(dir);
        let file = file.map_err(|error| SessionError::io("write", dir, error))?;
        Ok(Self { file, quota, used: AtomicU64::new(0) })
    }

    /// Adds a copy, and says where it begins; none where there is no room for it.
    pub fn add(&self, content: &[u8]) -> Option<u64> {
        let len = content.len() as u64;
        let room = |used: u64| used.checked_add(len).filter(|after| *after <= self.quota);
        let at = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()?;
        // On a full disk the place stays empty, and nobody is told of it.
        self.file.write_all_at(content, at).ok()?;
        Some(at)
    }

    /// Gives a copy back.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn get(&self, at: u64, len: u64) -> io::Result<Vec<u8>> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let mut content = vec![0; len];
        self.file.read_exact_at(&mut content, at)?;
        Ok(content)
    }

    /// How many bytes were added.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_come_back_and_take_no_more_than_their_room() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("undo");
        let copies = Copies::new(&dir, 10).unwrap();
        let (one, two) = (copies.add(b"12345").unwrap(), copies.add(b"678").unwrap());
        assert_eq!(copies.add(b"901"), None, "more than the quota");
        let three = copies.add(b"90").unwrap();
        assert_eq!(copies.get(one, 5).unwrap(), b"12345");
        assert_eq!(copies.get(two, 3).unwrap(), b"678");
        assert_eq!(copies.get(three, 2).unwrap(), b"90");
        assert_eq!((copies.used(), copies.add(b"x")), (10, None));
        assert!(copies.get(three, 3).is_err());
        assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0, "it has no name");
    }
}
