//! `haft session prune`: removes old sessions, or only the outputs that they store.
//!
//! With the sessions it also removes old copies of git repositories. Those were retained because
//! undo could not restore all of them.
//!
//! **Invariant:** what is removed was listed before, with its size in bytes, and a person or
//! `--yes` agreed. What any process holds stays.

use std::{
    fs, io,
    io::{BufRead as _, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use haft_host::kept_copies;
use haft_render::bytes;
use haft_session::{SessionError, SessionId, SessionInfo, Store, bytes_below};
use jiff::Timestamp;

use super::title;
use crate::{
    cli::{
        Prune,
        exit::{Ending, Failure, println, say},
    },
    faces::view,
};

/// Why an output is gone that was removed here.
const WHY: &str = "by haft session prune";

/// Something old.
struct Old {
    what: PruneKind,
    bytes: u64,
    /// How it is named.
    line: String,
}

enum PruneKind {
    Session(SessionId),
    /// A copy of a repository.
    Copy(PathBuf),
}

/// Lists what is old, asks, and removes it.
pub fn run(store: &Store, repositories: &Path, arguments: &Prune) -> Ending {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let age = u64::try_from(arguments.older_than.as_millis()).unwrap_or(u64::MAX);
    let before = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_sub(age);
    let mut old = sessions(store, before, arguments.outputs)?;
    if !arguments.outputs {
        old.extend(copies(repositories, before));
    }
    if old.is_empty() {
        let what = if arguments.outputs { "outputs of " } else { "" };
        return println(&format!("no {what}sessions are older than that"));
    }
    for one in &old {
        println(&one.line)?;
    }
    let all = summary(&old.iter().collect::<Vec<_>>(), arguments.outputs);
    let sum = old.iter().fold(0_u64, |sum, one| sum.saturating_add(one.bytes));
    let all = format!("{all}, {}", bytes(sum));
    if arguments.dry_run {
        return println(&format!("{all} would be removed"));
    }
    if !arguments.yes && !agrees(&all)? {
        say("haft: nothing was removed: answer y at a terminal, or add --yes");
        return Err(Failure::Said(1));
    }
    remove(store, &old, arguments.outputs)
}

/// The sessions that were last used before this, the oldest first.
fn sessions(store: &Store, before: u64, outputs: bool) -> Result<Vec<Old>, Failure> {
    let listing = store.list()?;
    for skipped in &listing.skipped {
        say(&format!("haft: {}: {}", skipped.path.display(), skipped.error));
    }
    let old = |info: &SessionInfo| {
        let usage = store.usage(&info.id);
        let size = if outputs { usage.outputs } else { usage.total() };
        let title: String =
            title(info).lines().next().unwrap_or_default().chars().take(60).collect();
        let (id, at) = (info.id.as_str(), when(info.active));
        let line = format!("{id}  {at}  {:>8}  {}", bytes(size), view::safe(&title));
        let what = PruneKind::Session(info.id.clone());
        Old { what, bytes: size, line: line.trim_end().to_owned() }
    };
    let mut all: Vec<Old> =
        listing.sessions.iter().filter(|info| info.active < before).map(old).collect();
    all.retain(|one| one.bytes > 0 || !outputs);
    all.reverse();
    Ok(all)
}

/// The copies of repositories that were made before this.
fn copies(repositories: &Path, before: u64) -> Vec<Old> {
    let old = |(path, at): (PathBuf, SystemTime)| {
        let at = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        let size = bytes_below(&path);
        let shown = view::safe(&path.display().to_string());
        let line = format!("{shown}  {}  {:>8}  copy of a lost repository", when(at), bytes(size));
        (at < before).then_some(Old { what: PruneKind::Copy(path), bytes: size, line })
    };
    kept_copies(repositories).into_iter().filter_map(old).collect()
}

/// How many there are, in words.
fn summary(all: &[&Old], outputs: bool) -> String {
    let copies = all.iter().filter(|one| matches!(one.what, PruneKind::Copy(_))).count();
    let sessions = all.len() - copies;
    let mut parts = Vec::new();
    if sessions > 0 || copies == 0 {
        let what = if outputs { "outputs of " } else { "" };
        parts.push(format!("{what}{sessions} session{}", if sessions == 1 { "" } else { "s" }));
    }
    if copies > 0 {
        let end = if copies == 1 { "copy" } else { "copies" };
        parts.push(format!("{copies} {end} of repositories"));
    }
    parts.join(" and ")
}

/// Asks a person, where there is one.
fn agrees(all: &str) -> io::Result<bool> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(false);
    }
    let mut out = io::stderr().lock();
    drop(write!(out, "Remove {all}? They do not come back. [y/N] "));
    drop(out.flush());
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

fn remove(store: &Store, old: &[Old], outputs: bool) -> Ending {
    store.sweep();
    let (mut gone, mut freed, mut failed) = (Vec::new(), 0_u64, false);
    for one in old {
        let removed = match &one.what {
            PruneKind::Session(id) if outputs => store.remove_outputs(id, WHY),
            PruneKind::Session(id) => store.remove(id),
            PruneKind::Copy(path) => match fs::remove_dir_all(path) {
                Ok(()) => Ok(one.bytes),
                Err(error) => {
                    failed = true;
                    say(&format!("haft: {} cannot be removed: {error}", path.display()));
                    continue;
                }
            },
        };
        match removed {
            Ok(bytes) => {
                gone.push(one);
                freed = freed.saturating_add(bytes);
            }
            // Somebody works in it: that is none of the old ones any more.
            Err(error @ SessionError::InUse { .. }) => say(&format!("haft: {error}; it stays")),
            Err(error) => {
                failed = true;
                say(&format!("haft: {error}"));
            }
        }
    }
    println(&format!("{} removed, {} freed", summary(&gone, outputs), bytes(freed)))?;
    if failed { Err(Failure::Said(1)) } else { Ok(()) }
}

/// A moment as `2026-01-31 14:05`, in UTC.
fn when(milliseconds: u64) -> String {
    let at = i64::try_from(milliseconds).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map_or_else(|| "?".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
}
