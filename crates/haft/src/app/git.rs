//! What git says of the workspace when a talk begins.
//!
//! **Invariant:** what is checked out is read without a process. `git status` runs as a command that
//! only looks, held by the system, or not at all; it gets no longer than was said, and nothing of it
//! is left then.

use std::{sync::Arc, time::Duration};

use haft_host::{Head, Host as _, Local, checked_out};
use haft_tool::Dispatcher;
use haft_types::HostPath;

use super::base::Base;

/// Bytes that it may say: more is not counted.
const MOST: usize = 1 << 20;

/// How many files are changed, new or gone; none where that is not known in this time.
pub async fn changed(dispatcher: &Arc<Dispatcher>, limit: Duration) -> Option<usize> {
    if limit.is_zero() {
        return None;
    }
    let look = dispatcher.glance(&["git", "status", "--porcelain"], MOST);
    let said = tokio::time::timeout(limit, look).await.ok()??;
    // One line for each; an end of line in a name is written otherwise.
    Some(said.split(|byte| *byte == b'\n').count().saturating_sub(1))
}

/// What a model is told: what is checked out, and how many files are changed where that is known.
pub async fn describe(base: &Base, changed: Option<usize>) -> Option<String> {
    let project = Local::path(&base.project).ok()?;
    let skips = base.policy.path_filter("read", &project, &project);
    let may_read = move |path: &HostPath| !skips(path);
    let head = checked_out(base.host.fs(), &base.place.cwd, &may_read).await?;
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
