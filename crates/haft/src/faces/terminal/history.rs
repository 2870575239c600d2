//! What was typed in earlier sessions: a file of JSON strings, one a line, the newest last.
//!
//! **Invariant:** only its owner can read it, and its size is bounded. A line that cannot be read
//! is left out. That it cannot be written stops nothing.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

const NAME: &str = "history.jsonl";
/// Bytes that are read at the start.
const READ: u64 = 1 << 20;
/// From so many bytes on the file is cut to those that are read.
const MOST: u64 = 4 << 20;

/// The file.
pub struct Stored(PathBuf);

impl Stored {
    /// That of a folder of state.
    pub fn of(home: &Path) -> Self {
        Self(home.join(NAME))
    }

    /// The newest texts, the newest last.
    pub fn texts(&self) -> Vec<String> {
        let Ok((text, is_long)) = self.end() else { return Vec::new() };
        if is_long {
            // Another process may add a line meanwhile; that one is lost, which is no harm.
            drop(self.replace(&text));
        }
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The end of the file from a line's start on, and whether the file is too long.
    fn end(&self) -> io::Result<(String, bool)> {
        let mut file = fs::File::open(&self.0)?;
        let length = file.metadata()?.len();
        let from = length.saturating_sub(READ);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(READ).read_to_end(&mut bytes)?;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if from > 0 {
            text.drain(..text.find('\n').map_or(text.len(), |at| at + 1));
        }
        Ok((text, length > MOST))
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let folder = self.0.parent().unwrap_or_else(|| Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.0)?;
        Ok(())
    }

    /// Adds a text.
    pub fn add(&self, text: &str) {
        let mut line = serde_json::Value::from(text).to_string();
        line.push('\n');
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.0);
        drop(file.and_then(|mut file| file.write_all(line.as_bytes())));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn texts_come_back_and_the_file_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let stored = Stored::of(folder.path());
        assert_eq!(stored.texts(), Vec::<String>::new());
        stored.add("one\ntwo");
        stored.add("three \u{e9}");
        let path = folder.path().join(NAME);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, fs::read_to_string(&path).unwrap() + "no json\n").unwrap();
        assert_eq!(stored.texts(), ["one\ntwo", "three \u{e9}"]);
        let long = "x".repeat(1 << 19);
        (0..9).for_each(|_| stored.add(&long));
        assert_eq!(stored.texts().len(), 1);
        assert!(fs::metadata(&path).unwrap().len() <= READ);
        assert_eq!(stored.texts(), [long]);
    }
}
