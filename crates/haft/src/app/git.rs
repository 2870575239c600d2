//! What git reports about the workspace when a conversation begins.
//!
//! **Invariant:** the checked-out branch or commit is read without starting a process. `git status`
//! runs as a read-only command that the system confines, or it does not run at all. It runs no
//! longer than the given limit, and no process of it is left after that.

use std::{sync::Arc, time::Duration};

use haft_host::{Head, Host as _, Local, checked_out};
use haft_tool::Dispatcher;
use haft_types::HostPath;

use super::base::Base;

/// Bytes that it may say: more is not counted.
const MOST: usize = 1 << 20;

/// Counts the files that are changed, new or removed. Returns none if that is not known within
/// `limit`.
pub async fn changed(dispatcher: &Arc<Dispatcher>, limit: Duration) -> Option<usize> {
    if limit.is_zero() {
        return None;
    }
    let look = dispatcher.glance(&["git", "status", "--porcelain"], MOST);
    let said = tokio::time::timeout(limit, look).await.ok()??;
    // One line for each; an end of line in a name is written otherwise.
    Some(said.split(|byte| *byte == b'\n').count().saturating_sub(1))
}

/// The branch that is checked out; none where that is not known, or none is.
pub async fn branch(base: &Base) -> Option<String> {
    match head(base).await? {
        Head::Branch(name) => Some(name),
        Head::Detached(_) => None,
    }
}

async fn head(base: &Base) -> Option<Head> {
    let project = Local::path(&base.project).ok()?;
    let skips = base.policy.path_filter("read", &project, &project);
    let may_read = move |path: &HostPath| !skips(path);
    checked_out(base.host.fs(), &base.place.cwd, &may_read).await
}

/// Describes for a model what is checked out, and how many files are changed if that is known.
/// Returns none if it is not known what is checked out.
pub async fn describe(base: &Base, changed: Option<usize>) -> Option<String> {
    let head = head(base).await?;
    let mut text = match head {
        Head::Branch(name) => format!("branch {name}"),
        Head::Detached(id) => format!("no branch, commit {id}"),
    };
    let changed = match changed {
        None => return Some(text),
        Some(0) => "no changed files".to_owned(),
        Some(1) => "1 changed file".to_owned(),
        Some(count) => format!("{count} changed files"),
    };
    text.extend([", ", &changed]);
    Some(text)
}
