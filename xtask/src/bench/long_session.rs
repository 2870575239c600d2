//! Long sessions, written by the example `long_log` of haft-session as haft writes them.
//!
//! **Invariant:** every resume finds the log as it was written: what one resume appended is cut off
//! before the next. It does not know what is measured.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::Bench;
use super::scratch::Scratch;
use super::turns::output;
use crate::process::cargo;

/// A session in the state folder of a scratch folder; its files are gone when this is dropped.
pub(super) struct LongSession {
    id: String,
    folder: PathBuf,
    log: PathBuf,
    len: u64,
}

impl LongSession {
    /// Writes a session; the words say which, as the example has them.
    ///
    /// # Errors
    ///
    /// When the example cannot be built, or there is no room for what it writes.
    pub(super) fn write(bench: &Bench, scratch: &Scratch, words: &[String]) -> Result<Self> {
        let example = ["--package", "haft-session", "--example", "long_log"];
        let mut all = vec!["run", "--quiet", "--profile", bench.beside()];
        all.extend(example);
        let mut command = cargo(&bench.project, &all);
        command.arg("--").arg(scratch.make("state")?).arg(scratch.make("work")?).args(words);
        let said = output(&mut command)?;
        let id = said.split(' ').next().unwrap_or_default().to_owned();
        let folder = scratch.make("state")?.join("sessions").join(&id);
        let log = folder.join("log.jsonl");
        let len = fs::metadata(&log).with_context(|| format!("the example said {said:?}"))?.len();
        Ok(Self { id, folder, log, len })
    }

    /// Its id, once its log is as it was written.
    ///
    /// # Errors
    ///
    /// When the log cannot be written.
    pub(super) fn restored(&self) -> Result<&str> {
        let file = OpenOptions::new().write(true).open(&self.log);
        let cut = file.and_then(|file| file.set_len(self.len));
        cut.with_context(|| format!("{} cannot be cut", self.log.display()))?;
        Ok(&self.id)
    }

    /// Its log.
    pub(super) fn log(&self) -> &PathBuf {
        &self.log
    }
}

impl Drop for LongSession {
    fn drop(&mut self) {
        // The scratch folder goes, too; this only makes room earlier.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
