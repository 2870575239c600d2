//! Changes of other haft processes in the same workspace, which have logs of their own.
//!
//! **Invariant:** a change that another process made through a tool that knows its changes is never
//! attributed to a command. Where another process runs commands, it is not known who made a change:
//! both report it, and name the other.
//!
//! **Does not know:** changes by people and by programs that are not haft.

use std::{sync::Arc, time::Duration};

use haft_host::TreeScan;
use haft_types::{HostPath, Place, Receipt};
use serde_json::Value;

use super::Watched;
use crate::Session;

/// Most calls of others that are named.
const NAMED: usize = 3;

/// Gives the recent activity of other haft processes.
pub trait Peers: Send + Sync {
    /// The activity of others within the time `past` until now. It waits for the disk.
    fn within(&self, past: Duration) -> Vec<Peer>;
}

/// The activity of another haft process.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// Its name: that of its session.
    pub name: String,
    /// The workspace root in which it began; none where that is not known.
    pub cwd: Option<HostPath>,
    /// The changes that its tools are known to have made, oldest first.
    pub receipts: Vec<Receipt>,
    /// The calls that may have changed more than is known.
    pub calls: Vec<PeerCall>,
}

/// A call of another haft process.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerCall {
    /// The title of the call.
    pub title: String,
    /// The paths that the call may have changed; none where that may be any path in its workspace.
    pub paths: Option<Vec<HostPath>>,
}

impl Watched {
    /// What other processes of haft did since the look before, where anything is not as it was then.
    pub(super) async fn beside(
        &self,
        after: &TreeScan,
        place: &Place,
        session: &Session,
    ) -> Vec<Peer> {
        let before = &self.from.before;
        let is_same = |(path, node)| {
            let old: &Arc<_> = node;
            after.nodes.get(path).is_some_and(|new| Arc::ptr_eq(old, new))
        };
        let Some(others) = session.services.get::<dyn Peers>() else { return Vec::new() };
        if before.nodes.len() == after.nodes.len() && before.nodes.iter().all(is_same) {
            return Vec::new();
        }
        let past = self.from.since.elapsed();
        let found = tokio::task::spawn_blocking(move || others.within(past)).await;
        let mut found = found.unwrap_or_default();
        let is_here = |cwd: &HostPath| {
            place.roots.iter().any(|root| cwd.is_within(root) || root.is_within(cwd))
        };
        for other in &mut found {
            if !other.cwd.as_ref().is_some_and(is_here) {
                other.calls.retain(|call| call.paths.is_some());
            }
        }
        found
    }
}

/// Says in front of these changes who else may have done some of them.
pub(super) fn report(beside: &[Peer], receipts: &[Receipt], text: &mut String, data: &mut Value) {
    let is_about = |call: &&PeerCall| {
        call.paths.as_ref().is_none_or(|paths| {
            receipts.iter().any(|one| paths.iter().any(|path| one.path.is_within(path)))
        })
    };
    let words = |other: &Peer| {
        let calls: Vec<&str> =
            other.calls.iter().filter(is_about).map(|call| &*call.title).collect();
        let more = calls.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(", {more} more") } else { String::new() };
        let shown = calls.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        (!calls.is_empty()).then(|| format!("another haft ({}: {shown}{more})", other.name))
    };
    let names: Vec<String> = beside.iter().filter_map(words).collect();
    if names.is_empty() {
        return;
    }
    let who = names.join(" and ");
    *text = format!("while {who} ran, which may have done some of it: {text}");
    if let Value::Object(data) = data {
        data.insert("while_others".to_owned(), names.into());
    }
}
