//! What other processes of haft do at the same time, as their session logs report it.
//!
//! **Invariant:** a change that a call reports counts as known only if the call itself names what
//! it changes. A change that was found by comparing files may be anybody's.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use haft_session::{Lately, SessionId, Store, is_looked};
use haft_tool::{Peer, PeerCall, Peers};
use haft_types::{Access, Body, CallId, Event, Plan};

use super::base::now;

/// Characters of a session's id that name it.
const SHOWN: usize = 13;

/// The other sessions of a store.
pub struct InLogs {
    /// The store.
    pub store: Store,
    /// The session that is not counted among them.
    pub mine: SessionId,
}

impl Peers for InLogs {
    fn within(&self, past: Duration) -> Vec<Peer> {
        let past = u64::try_from(past.as_millis()).unwrap_or(u64::MAX);
        let since = now().saturating_sub(past);
        let all = self.store.lately(&self.mine, since);
        all.into_iter().map(|lately| other(&lately, since)).collect()
    }
}

/// What a session did since this moment.
fn other(lately: &Lately, since: u64) -> Peer {
    let mut plans: HashMap<&CallId, &Plan> = HashMap::new();
    let mut began: Vec<(CallId, PeerCall)> = Vec::new();
    let mut over: HashSet<CallId> = HashSet::new();
    let mut receipts = Vec::new();
    for Event { at, body, .. } in &lately.events {
        let is_since = *at >= since;
        match body {
            Body::CallStarted { call, plan: Some(plan), .. } => {
                plans.insert(call, plan);
                over.remove(call);
                began.extend(doubtful(plan).map(|one| (call.clone(), one)));
            }
            Body::CallEnded { call, outcome, .. } => {
                if !is_since {
                    over.insert(call.clone());
                } else if plans.get(call).is_some_and(|plan| !is_looked(plan)) {
                    receipts.extend(outcome.receipts.iter().cloned());
                    over.insert(call.clone());
                }
            }
            Body::Undone { receipts: done, .. } if is_since => {
                receipts.extend(done.iter().cloned());
            }
            Body::JobStarted { job, title, .. } => {
                let one = PeerCall { title: format!("{job} ({title})"), paths: None };
                began.push((CallId((&**job).into()), one));
            }
            Body::JobEnded { job, .. } if !is_since => {
                over.insert(CallId((&**job).into()));
            }
            _ => {}
        }
    }
    let mut id = lately.session.to_string();
    id.truncate(SHOWN);
    let calls = began.into_iter().filter(|(call, _)| !over.contains(call)).map(|(_, one)| one);
    Peer {
        name: format!("session {id}"),
        cwd: lately.cwd.clone(),
        receipts,
        calls: calls.collect(),
    }
}

/// A call that changes something while it is not told what.
fn doubtful(plan: &Plan) -> Option<PeerCall> {
    let changes = plan.effects.iter().filter(|effect| effect.access != Access::Observe);
    let paths: Vec<_> = changes.filter_map(|effect| effect.path().cloned()).collect();
    let is_any = is_looked(plan);
    (is_any || !paths.is_empty())
        .then(|| PeerCall { title: plan.title.clone(), paths: (!is_any).then_some(paths) })
}
