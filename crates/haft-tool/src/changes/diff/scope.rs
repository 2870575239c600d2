//! The scope of the scans around a command: which folders, which paths its words name, and what its
//! caller may know.
//!
//! **Invariant:** nothing that a rule hides from the caller is in the scope.

use std::{sync::Arc, time::Duration};

use haft_host::{ExtraPaths, FileKind, Host, Located, Walk};
use haft_types::{Access, Effect, Follow, HostPath, Style, Target};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Call, Permissions};

/// Most paths that a command may name and that are looked at whatever ignores them.
const NAMED: usize = 64;

/// What the words of a command say that it changes: files, and folders in which patterns may find some.
pub(super) fn named(call: &Call) -> ExtraPaths {
    let mut named = ExtraPaths::default();
    let effects = call.plan().map(|plan| &plan.effects[..]).unwrap_or_default();
    let located = call.located.iter().chain(std::iter::repeat(&None));
    for (effect, located) in effects.iter().zip(located) {
        let (Target::Path { path, .. } | Target::Tree { root: path }) = &effect.target else {
            continue;
        };
        if effect.access == Access::Observe {
            continue;
        }
        let at = located.as_ref().and_then(|located| located.as_ref().ok());
        let is_folder = at.is_some_and(|at| at.kind == FileKind::FOLDER);
        if let Some(at) = at.filter(|_| is_folder) {
            named.folders.push(at.real.clone());
            continue;
        }
        // A link, and what it leads to.
        named
            .paths
            .extend([Some(path.clone()), at.map(|at| at.real.clone())].into_iter().flatten());
    }
    for list in [&mut named.paths, &mut named.folders] {
        list.sort();
        list.dedup();
        list.truncate(NAMED);
    }
    named
}

/// What of the workspace the caller of a tool may know.
pub(super) fn walk(
    judge: &Arc<Permissions>,
    tool: &str,
    style: Style,
    stop: CancellationToken,
) -> Walk {
    let root = HostPath::root(style);
    let hidden = Arc::new(judge.policy.path_filter(tool, &root, &root));
    let (excluded, judge) = (hidden.clone(), judge.clone());
    Walk {
        allowed: Arc::new(move |path| !hidden(path) && !judge.policy.is_own(path)),
        excludes: Arc::new(move |path| !excluded(path)),
        stop,
    }
}

/// What of the workspace the caller of a call may know, until the call is stopped.
pub(super) fn of(call: &Call, host: &dyn Host) -> Walk {
    walk(&call.cx.permissions(), call.tool(), host.style(), call.cx.stop.clone())
}

/// How long it is waited at most for the clock of files to go on: some of its ticks.
const TICK: Duration = Duration::from_millis(20);

/// Reports whether a command may change what git ignores. What is then seen for the first time was made
/// by it only where it is younger than the look before; its own words name what it would change for
/// that, and what takes a program of its own comes later than the next tick in any case.
fn may_shift(call: &Call) -> bool {
    let names = |effect: &Effect| match &effect.target {
        Target::Command { text, .. } => text.contains("ignore") || text.contains("git"),
        _ => false,
    };
    call.plan().is_some_and(|plan| plan.effects.iter().any(names))
}

/// Waits before such a command until what is made has a later time than this moment.
pub(super) async fn past(call: &Call, host: &dyn Host, moment: i128) {
    if !may_shift(call) {
        return;
    }
    let is_past = || host.surveys().is_none_or(|surveys| surveys.is_past(moment));
    let until = Instant::now() + TICK;
    while !is_past() && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The folders of the workspace that are there, none of them inside another. Behind a link that was
/// none when it was looked `before` is something else.
pub(super) async fn roots(
    paths: &[HostPath],
    before: &[HostPath],
    host: &dyn Host,
) -> std::io::Result<Vec<Located>> {
    let mut roots: Vec<Located> = Vec::new();
    for path in paths {
        let at = match host.fs().locate(path, Follow::Yes).await {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            at => at?,
        };
        let is_other = !before.is_empty() && at.real != *path && !before.contains(&at.real);
        if at.kind == FileKind::FOLDER
            && !is_other
            && !roots.iter().any(|root| at.real.is_within(&root.real))
        {
            roots.retain(|root| !root.real.is_within(&at.real));
            roots.push(at);
        }
    }
    Ok(roots)
}
