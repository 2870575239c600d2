//! What several files held before they change together: `journal/<id>.json`.
//!
//! A journal is on the disk before the first of its files changes, and goes when the last one has
//! changed. One that is found later tells what a killed process was about: for each file the hash
//! before and after, and what it held before, which the session keeps for undo.
//!
//! **Invariant:** a file under its final name is whole and synced. It is locked while its process
//! lives, so that nobody takes what is under way for what was left. What cannot be read is left
//! where it is, and named.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use haft_types::Receipt;
use serde::{Deserialize, Serialize};

use crate::{SessionError, SessionId, files};

/// The form that this version writes.
const VERSION: u32 = 1;
/// How a journal's name ends.
const WHOLE: &str = "json";
/// How the name of one ends that is still being written.
const PART: &str = "part";
/// Most bytes of a journal that are read.
const MAX: u64 = 64 * 1024 * 1024;
/// Most journals that are looked at in one start.
const MOST: usize = 1000;

/// The journals of all sessions.
#[derive(Clone, Debug)]
pub struct Journals {
    dir: PathBuf,
}

/// A journal of this process; dropped without its end, it stays for the next start.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// Locked as long as it is held.
    _file: File,
}

/// A journal that a killed process left.
#[derive(Debug)]
pub struct CrashLeftovers {
    /// The session that keeps what the files held.
    pub session: SessionId,
    /// What was about to be done, in this order.
    pub receipts: Vec<Receipt>,
    journal: Journal,
}

#[derive(Deserialize)]
struct Text {
    v: u32,
    session: String,
    receipts: Vec<Receipt>,
}

#[derive(Serialize)]
struct TextOf<'a> {
    v: u32,
    session: &'a str,
    receipts: &'a [Receipt],
}

impl Journals {
    /// Names the folder below the home folder of haft; nothing is read or created.
    pub fn open(home: &Path) -> Self {
        Self { dir: home.join("journal") }
    }

    /// Puts down what is about to be done; it survives a power cut when this returns.
    ///
    /// # Errors
    /// When it cannot be written or synced; nothing of it is left then.
    pub fn begin(
        &self,
        session: &SessionId,
        receipts: &[Receipt],
    ) -> Result<Journal, SessionError> {
        let dir = &self.dir;
        let is_new = !dir.exists();
        files::create_dir(dir).map_err(|error| SessionError::home(dir, error))?;
        let id = uuid::Uuid::now_v7();
        let (part, path) = (dir.join(format!("{id}.{PART}")), dir.join(format!("{id}.{WHOLE}")));
        let text = TextOf { v: VERSION, session: session.as_str(), receipts };
        let written = write(&part, &text).and_then(|file| {
            fs::rename(&part, &path)?;
            files::sync_dir(dir)?;
            if let Some(above) = dir.parent().filter(|_| is_new) {
                files::sync_dir(above)?;
            }
            Ok(file)
        });
        match written {
            Ok(file) => Ok(Journal { path, _file: file }),
            Err(error) => {
                for path in [&part, &path] {
                    // Nothing has changed yet, so whoever finds it has nothing to do.
                    let _ = fs::remove_file(path);
                }
                Err(SessionError::io("write", path, error))
            }
        }
    }

    /// The journals whose processes have ended, and what is wrong with those that cannot be read;
    /// nobody else gets them while they are held.
    ///
    /// # Errors
    /// When the folder is there and cannot be listed.
    pub fn left(&self) -> Result<(Vec<CrashLeftovers>, Vec<SessionError>), SessionError> {
        let failed = |error| SessionError::io("list", &self.dir, error);
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
            entries => entries.map_err(failed)?,
        };
        let (mut left, mut unread) = (Vec::new(), Vec::new());
        for entry in entries.take(MOST) {
            let path = entry.map_err(failed)?.path();
            let ends = |end: &str| path.extension().is_some_and(|found| found == end);
            if ends(PART) {
                drop(abandoned(&path).map(|file| file.map(|_| fs::remove_file(&path))));
            } else if ends(WHOLE) {
                match abandoned(&path)
                    .and_then(|file| file.map(|file| read(&path, file)).transpose())
                {
                    Ok(found) => left.extend(found),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => unread.push(SessionError::io("read", path, error)),
                }
            }
        }
        Ok((left, unread))
    }
}

impl Journal {
    /// Takes it away: all was done, or all was put back.
    ///
    /// # Errors
    /// When it cannot be removed for good.
    pub fn end(self) -> Result<(), SessionError> {
        let removed = match fs::remove_file(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        // One that came back after a power cut would speak of what has long been changed again.
        let synced = removed.and_then(|()| self.path.parent().map_or(Ok(()), files::sync_dir));
        synced.map_err(|error| SessionError::io("remove", &self.path, error))
    }
}

impl CrashLeftovers {
    /// Takes it away: what it speaks of is whole again.
    ///
    /// # Errors
    /// When it cannot be removed for good.
    pub fn end(self) -> Result<(), SessionError> {
        self.journal.end()
    }
}

fn write(path: &Path, text: &TextOf<'_>) -> io::Result<File> {
    let mut file = files::private().write(true).create_new(true).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::ResourceBusy.into()),
        // Without locks it would be taken for one that was left.
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.write_all(&serde_json::to_vec(text)?)?;
    file.sync_all()?;
    Ok(file)
}

/// Opens and locks what no living process holds; none where one does.
fn abandoned(path: &Path) -> io::Result<Option<File>> {
    files::regular(path)?;
    let file = OpenOptions::new().read(true).open(path)?;
    match file.try_lock() {
        // Whoever held it before may have taken it away.
        Ok(()) => Ok(fs::exists(path)?.then_some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn read(path: &Path, file: File) -> io::Result<CrashLeftovers> {
    let mut text = Vec::new();
    (&file).take(MAX).read_to_end(&mut text)?;
    let text: Text = serde_json::from_slice(&text)?;
    if text.v != VERSION {
        let told = format!("it has the form {}, and this haft knows only {VERSION}", text.v);
        return Err(io::Error::new(io::ErrorKind::InvalidData, told));
    }
    let session = SessionId::parse(&text.session).map_err(io::Error::other)?;
    let journal = Journal { path: path.to_owned(), _file: file };
    Ok(CrashLeftovers { session, receipts: text.receipts, journal })
}

#[cfg(test)]
mod tests {
    use haft_types::{Hash, HostPath, ReceiptAction, Style};

    use super::*;

    fn receipt(path: &str) -> Receipt {
        let path = HostPath::new(path.as_bytes(), Style::Posix).unwrap();
        let mut receipt = Receipt::new("local".to_owned(), path, ReceiptAction::Changed);
        (receipt.before, receipt.after) = (Some(Hash::of(b"old")), Some(Hash::of(b"new")));
        receipt
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn what_is_under_way_is_nobodys_and_what_was_left_is_found_once() {
        let home = tempfile::tempdir().unwrap();
        let journals = Journals::open(home.path());
        let session = SessionId::new();
        assert!(journals.left().unwrap().0.is_empty(), "there is no folder yet");
        let receipts = [receipt("/w/a"), receipt("/w/\u{e4} b")];
        let journal = journals.begin(&session, &receipts).unwrap();
        let [name] = &names(&journals.dir)[..] else { panic!("one file") };
        assert_eq!(Path::new(name).extension().unwrap(), WHOLE);
        assert!(journals.left().unwrap().0.is_empty(), "its owner lives");
        drop(journal);
        let (left, unread) = journals.left().unwrap();
        let [found] = &left[..] else { panic!("it was left: {unread:?}") };
        assert_eq!((&found.session, &found.receipts[..]), (&session, &receipts[..]));
        assert!(journals.left().unwrap().0.is_empty(), "another has it in hand");
        for left in left {
            left.end().unwrap();
        }
        assert!(names(&journals.dir).is_empty());
        journals.begin(&session, &receipts).unwrap().end().unwrap();
        assert!(names(&journals.dir).is_empty());
    }

    #[test]
    fn what_cannot_be_read_stays_and_is_named() {
        let home = tempfile::tempdir().unwrap();
        let journals = Journals::open(home.path());
        fs::create_dir(&journals.dir).unwrap();
        let session = SessionId::new();
        let newer = format!("{{\"v\": 9, \"session\": \"{session}\", \"receipts\": []}}");
        for (name, text) in [
            ("torn.json", "{\"v\": 1, \"sess"),
            ("newer.json", newer.as_str()),
            ("half.part", "{"),
            ("notes.txt", "not ours"),
        ] {
            fs::write(journals.dir.join(name), text).unwrap();
        }
        let (left, unread) = journals.left().unwrap();
        assert!(left.is_empty());
        let told: Vec<String> = unread.iter().map(ToString::to_string).collect();
        let told = told.join("\n");
        assert!(told.contains("torn.json") && told.contains("newer.json"), "{told}");
        assert!(told.contains("the form 9"), "{told}");
        let mut names = names(&journals.dir);
        names.sort();
        assert_eq!(names, ["newer.json", "notes.txt", "torn.json"]);
    }

    #[test]
    fn where_it_cannot_be_written_nothing_is_left() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("journal"), "a file").unwrap();
        let journals = Journals::open(home.path());
        let error = journals.begin(&SessionId::new(), &[receipt("/w/a")]).unwrap_err();
        assert!(error.to_string().contains("journal"), "{error}");
    }
}
