//! Copies of what files hold before a command that may change them, in one file: `before/<id>/copies`.
//!
//! Beside it stands what was put down of the commands that run, in `text`: another process of the
//! session finds both where this one is killed.
//!
//! **Invariant:** there are never more bytes than the quota, and the files go with their last user,
//! but where a command was given up.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::SystemTime,
};

use crate::{SessionError, files};

/// Most bytes of text that are read.
const TEXT_MAX: u64 = 1 << 30;

/// See the module.
#[derive(Debug)]
pub struct Copies {
    dir: PathBuf,
    file: File,
    text: Mutex<File>,
    quota: u64,
    used: AtomicU64,
    stays: AtomicBool,
}

/// What a killed process left; dropped, it is gone.
#[derive(Debug)]
pub struct CrashLeftovers {
    /// Its copies.
    pub copies: Copies,
    /// What it put down beside them.
    pub text: Vec<u8>,
    /// When it lived for sure.
    pub lived: SystemTime,
}

impl Copies {
    pub(crate) fn new(all: &Path, quota: u64) -> Result<Self, SessionError> {
        let dir = all.join(uuid::Uuid::now_v7().to_string());
        files::create_dir(&dir).map_err(|error| SessionError::home(&dir, error))?;
        let open = |name: &str| {
            let mut options = files::private();
            options.read(true).write(true).create_new(true).open(dir.join(name))
        };
        let made = open("copies").and_then(|file| Ok((file, open("text")?)));
        let (file, text) = made.map_err(|error| SessionError::io("write", &dir, error))?;
        let (text, used, stays) = (Mutex::new(text), AtomicU64::new(0), AtomicBool::new(false));
        Ok(Self { dir, file, text, quota, used, stays })
    }

    /// What killed processes left; whoever asks holds the log of the session.
    pub(crate) fn left(all: &Path) -> Result<Vec<CrashLeftovers>, SessionError> {
        let failed = |error| SessionError::io("read", all, error);
        let entries = match fs::read_dir(all) {
            // No folder, or none that can be one: nobody left anything there.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Vec::new());
            }
            entries => entries.map_err(failed)?,
        };
        let mut dirs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        // In the order in which they were begun.
        dirs.sort();
        let mut left = Vec::new();
        for dir in dirs {
            match read(&dir) {
                Ok(found) => left.push(found),
                // It was ended before both files were there.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    drop(fs::remove_dir_all(&dir));
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(left)
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

    /// Puts text down behind what was put down before, or `anew`, in place of it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put_down(&self, text: &[u8], anew: bool) -> io::Result<()> {
        let mut file = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if !anew {
            return file.write_all(text);
        }
        let next = self.dir.join("next");
        let mut fresh = files::private().write(true).create(true).truncate(true).open(&next)?;
        fresh.write_all(text)?;
        fs::rename(next, self.dir.join("text"))?;
        *file = fresh;
        Ok(())
    }

    /// Puts down that the process lives.
    pub fn lives(&self) {
        let file = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        // The next time will do.
        drop(file.set_modified(SystemTime::now()));
    }

    /// Has the files stay when this is dropped, for another process to find.
    pub fn stay(&self) {
        self.stays.store(true, Ordering::Relaxed);
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        if self.stays.load(Ordering::Relaxed) {
            return;
        }
        // What cannot be removed goes with the next process of the session, or with the session.
        drop(fs::remove_dir_all(&self.dir));
        if let Some(all) = self.dir.parent() {
            drop(fs::remove_dir(all));
        }
    }
}

fn read(dir: &Path) -> io::Result<CrashLeftovers> {
    let (path, copies) = (dir.join("text"), dir.join("copies"));
    let len = files::regular(&copies)?.len();
    let data = files::regular(&path)?;
    if data.len() > TEXT_MAX {
        return Err(io::Error::other("it is too long"));
    }
    let (file, text) = (File::open(copies)?, File::open(&path)?);
    // Nothing is added to it.
    let (dir, used) = (dir.to_owned(), AtomicU64::new(len));
    let (text_file, stays) = (Mutex::new(text), AtomicBool::new(false));
    let copies = Copies { dir, file, text: text_file, quota: 0, used, stays };
    Ok(CrashLeftovers { copies, text: fs::read(path)?, lived: data.modified()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_come_back_and_take_no_more_than_their_room() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("before");
        let copies = Copies::new(&dir, 10).unwrap();
        let (one, two) = (copies.add(b"12345").unwrap(), copies.add(b"678").unwrap());
        assert_eq!(copies.add(b"901"), None, "more than the quota");
        let three = copies.add(b"90").unwrap();
        assert_eq!(copies.get(one, 5).unwrap(), b"12345");
        assert_eq!(copies.get(two, 3).unwrap(), b"678");
        assert_eq!(copies.get(three, 2).unwrap(), b"90");
        assert_eq!((copies.used(), copies.add(b"x")), (10, None));
        assert!(copies.get(three, 3).is_err());
        drop(copies);
        assert!(!dir.exists(), "nothing is left");
    }

    #[test]
    fn what_a_killed_process_left_is_found_until_it_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("before");
        assert!(Copies::left(&dir).unwrap().is_empty());
        let copies = Copies::new(&dir, 10).unwrap();
        let at = copies.add(b"held").unwrap();
        copies.put_down(b"lost\n", false).unwrap();
        copies.put_down(b"one\n", true).unwrap();
        copies.put_down(b"two\n", false).unwrap();
        copies.stay();
        drop(copies);
        fs::create_dir(dir.join("half")).unwrap();
        let all = Copies::left(&dir).unwrap();
        let [left] = &all[..] else { panic!("one was left") };
        assert_eq!(
            (&left.text[..], left.copies.get(at, 4).unwrap()),
            (&b"one\ntwo\n"[..], b"held".to_vec())
        );
        assert!(left.lived.elapsed().unwrap().as_secs() < 60 && left.copies.add(b"x").is_none());
        drop(all);
        assert!(!dir.exists(), "it was let go");
    }
}
