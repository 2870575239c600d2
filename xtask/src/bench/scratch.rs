//! A folder for what a figure needs, and files in it whose bytes are the same every time.
//!
//! **Invariant:** the folder is gone when its value is dropped. It lies in the folder for temporary
//! files, not below the repository, whose ignore files would hold for what is searched. It does not
//! know what is measured.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};

/// How many folders this process made.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// A folder that is removed when this is dropped.
pub(super) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// Makes an empty folder.
    pub(super) fn new() -> Result<Self> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("haft-bench-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        // Programs tell the paths of files without links in them.
        let folder = folder.canonicalize().context("the scratch folder has no canonical path")?;
        Ok(Self { folder })
    }

    /// A path in the folder; every path has its own folder above it.
    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Makes a folder in the folder, if it is not there, and returns its path.
    pub(super) fn make(&self, name: &str) -> Result<PathBuf> {
        let path = self.join(name);
        fs::create_dir_all(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed lies in the folder for temporary files and harms nothing.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Numbers that look random and are the same in every run (xorshift64).
pub(super) struct Numbers(u64);

impl Numbers {
    /// Starts a sequence; the seed is any number but 0.
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % bound
    }
}

/// Words that lines are made of, none of them part of another text that is searched for.
const WORDS: &[&str] = &[
    "let", "value", "return", "match", "self", "buffer", "index", "length", "error", "result",
    "next", "line", "path", "state", "config", "request", "answer", "token", "stream", "writer",
];

/// Appends one line of a few words and its line feed.
pub(super) fn line(numbers: &mut Numbers, text: &mut String) {
    for _ in 0..4 + numbers.below(6) {
        text.push_str(WORDS[numbers.below(WORDS.len())]);
        text.push(' ');
    }
    text.push_str("();\n");
}

/// Bytes of a line of [`write_lines`], its line feed counted.
pub(super) const LINE: usize = 40;

/// Writes a file of numbered lines until it has at least `size` bytes.
pub(super) fn write_lines(path: &Path, size: u64) -> Result<()> {
    let failed = || format!("{} cannot be written", path.display());
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).with_context(failed)?);
    let (mut written, mut number) = (0, 0_u64);
    while written < size {
        let text = format!("line {number:09}: the quick brown fox ran\n");
        file.write_all(text.as_bytes()).with_context(failed)?;
        written += text.len() as u64;
        number += 1;
    }
    file.into_inner().with_context(failed)?.sync_all().with_context(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_in_every_run() {
        let make = || {
            let (mut numbers, mut text) = (Numbers::new(7), String::new());
            (0..50).for_each(|_| line(&mut numbers, &mut text));
            text
        };
        assert_eq!(make(), make());
        assert_eq!(make().lines().count(), 50);
    }

    #[test]
    fn the_folder_goes_with_its_value() {
        let scratch = Scratch::new().unwrap();
        let folder = scratch.make("inner").unwrap();
        write_lines(&folder.join("file"), 100).unwrap();
        assert_eq!(fs::metadata(folder.join("file")).unwrap().len() % LINE as u64, 0);
        drop(scratch);
        assert!(!folder.exists());
    }
}
