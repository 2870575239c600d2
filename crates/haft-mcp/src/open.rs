//! Requests that have no answer yet, and whose turn it is.
//!
//! **Invariant:** a request waits here, in little memory, until work on it may begin; it is handed
//! out once, and never after the client took it back.

use std::collections::BTreeMap;

use rmcp::{RoleServer, model::RequestId, service::RxJsonRpcMessage};

/// Most lists of tools that are made at once.
const LISTS: usize = 4;

/// Requests without an answer, by the client's id as JSON text, with the bytes and kind of each.
pub(crate) struct Open {
    requests: BTreeMap<(String, u64), (usize, Kind)>,
    bytes: usize,
    count: u64,
    calls: Lane,
    lists: Lane,
}

/// What a request takes until it is answered.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Call,
    List,
    /// Nothing worth counting.
    Quick,
}

/// Requests of one kind: so many at a time are worked on, and a turn lasts until the answer waits
/// to be written or nobody wants it. What waits here is a small part of what it takes in the SDK.
struct Lane {
    places: usize,
    taken: usize,
    waiting: BTreeMap<u64, RxJsonRpcMessage<RoleServer>>,
}

impl Lane {
    fn new(places: usize) -> Self {
        Self { places: places.max(1), taken: 0, waiting: BTreeMap::new() }
    }

    fn has_next(&self) -> bool {
        self.taken < self.places && !self.waiting.is_empty()
    }

    fn next(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let next = if self.has_next() { self.waiting.pop_first() } else { None };
        self.taken += usize::from(next.is_some());
        next.map(|(_, message)| message)
    }

    fn leave(&mut self, number: u64) {
        self.taken -= usize::from(self.waiting.remove(&number).is_none());
    }
}

impl Open {
    /// None yet; so many calls are worked on at once.
    pub fn new(calls: usize) -> Self {
        let (calls, lists) = (Lane::new(calls), Lane::new(LISTS));
        Self { requests: BTreeMap::new(), bytes: 0, count: 0, calls, lists }
    }

    pub fn len(&self) -> usize {
        self.requests.len()
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// What they take as text.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes note of a request and gives the id under which the SDK knows it.
    pub fn insert(&mut self, id: String, bytes: usize) -> String {
        self.count += 1;
        let ours = format!("{} {id}", self.count);
        self.requests.insert((id, self.count), (bytes, Kind::Quick));
        self.bytes += bytes;
        ours
    }

    /// Lets the request that came last wait for its turn; gives back what needs none.
    pub fn queue(
        &mut self,
        id: String,
        kind: Kind,
        message: RxJsonRpcMessage<RoleServer>,
    ) -> Option<RxJsonRpcMessage<RoleServer>> {
        let lane = match kind {
            Kind::Call => &mut self.calls,
            Kind::List => &mut self.lists,
            Kind::Quick => return Some(message),
        };
        lane.waiting.insert(self.count, message);
        self.requests.entry((id, self.count)).and_modify(|request| request.1 = kind);
        None
    }

    /// Whether somebody's turn has come.
    pub fn has_next(&self) -> bool {
        self.calls.has_next() || self.lists.has_next()
    }

    /// The request whose turn has come.
    pub fn next(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.calls.next().or_else(|| self.lists.next())
    }

    fn forget(&mut self, key: &(String, u64)) -> Option<()> {
        let (bytes, kind) = self.requests.remove(key)?;
        self.bytes -= bytes;
        match kind {
            Kind::Call => self.calls.leave(key.1),
            Kind::List => self.lists.leave(key.1),
            Kind::Quick => {}
        }
        Some(())
    }

    /// The client's id of a request that is still open, and no longer.
    pub fn remove(&mut self, ours: &RequestId) -> Option<String> {
        let RequestId::String(ours) = ours else { return None };
        let (number, id) = ours.split_once(' ')?;
        let key = (id.to_owned(), number.parse().ok()?);
        self.forget(&key)?;
        Some(key.0)
    }

    /// The requests that have this id, as the SDK knows them; they are open no longer.
    pub fn cancel(&mut self, id: &str) -> Vec<String> {
        let all = (id.to_owned(), 0)..=(id.to_owned(), u64::MAX);
        let numbers: Vec<u64> = self.requests.range(all).map(|(key, _)| key.1).collect();
        for number in &numbers {
            self.forget(&(id.to_owned(), *number));
        }
        numbers.iter().map(|number| format!("{number} {id}")).collect()
    }
}
