//! The events that one front end sees: every durable event, and as many passing ones as it can
//! take.
//!
//! **Invariant:** the order is preserved and no durable event is lost. Waiting passing events of
//! one kind and call are merged: output is joined, and of two states of a call the later one stays.
//! Passing events are delivered at most 20 times a second; a durable event behind them waits for
//! none. Events that do not fit into the queue are left out, and a notice says how many.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_types::{Body, Event, Level};
use tokio::{sync::Notify, time::Instant};

/// Most passing events that wait for one front end.
const PASSING: usize = 1_000;
/// Most bytes of text that wait for one front end in passing events.
const BYTES: usize = 1 << 20;
/// Passing events that one is merged with at most: more calls than these seldom run at once.
const BACK: usize = 32;
/// Time from one round of passing events to the next: twenty a second.
const PACE: Duration = Duration::from_millis(50);

/// The events that one front end receives, in order.
pub struct Feed {
    queue: Arc<Queue>,
    /// When the last round of passing events began.
    round: Option<Instant>,
    /// How many events of that round are still to be given.
    left: usize,
}

#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    more: Notify,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Arc<Event>>,
    passing: usize,
    durable: usize,
    bytes: usize,
    lost: u64,
    closed: bool,
}

fn is_passing(event: &Event) -> bool {
    event.id.is_none() && !event.body.is_durable()
}

/// Bytes of text in a passing event; its other fields are small.
fn size(body: &Body) -> usize {
    match body {
        Body::CallOutput { text, .. } => text.len(),
        Body::CallPart { json, .. } => json.len(),
        // Nominal: of these one waits for each call or agent.
        Body::CallProgress { .. } | Body::Queue { .. } => 4 << 10,
        _ => 0,
    }
}

/// How a passing event stands to a later one.
enum Merge {
    /// They tell of different things: what is before may be looked at.
    Apart,
    /// The order of the two must be seen.
    Behind,
    Joins,
}

fn merge(early: &Event, late: &Event) -> Merge {
    // Calls and parts are counted anew by each agent, and parts in each turn.
    if (&early.agent, early.turn) != (&late.agent, late.turn) {
        return Merge::Apart;
    }
    let same = match (&early.body, &late.body) {
        (
            Body::CallOutput { call: a, stream: from, .. },
            Body::CallOutput { call: b, stream: to, .. },
        ) if a == b => from == to,
        (Body::CallProgress { call: a, .. }, Body::CallProgress { call: b, .. }) if a == b => true,
        (Body::CallPart { index: a, .. }, Body::CallPart { index: b, .. }) => a == b,
        (Body::CallOutput { call: a, .. }, Body::CallProgress { call: b, .. })
        | (Body::CallProgress { call: a, .. }, Body::CallOutput { call: b, .. })
            if a == b =>
        {
            false
        }
        _ => return Merge::Apart,
    };
    if same { Merge::Joins } else { Merge::Behind }
}

impl Waiting {
    /// Puts a passing event into one that waits already; false where there is none like it.
    fn merged(&mut self, late: &Event) -> bool {
        let behind = self.events.iter_mut().rev().take_while(|event| is_passing(event));
        for early in behind.take(BACK) {
            match merge(early, late) {
                Merge::Apart => {}
                Merge::Behind => return false,
                Merge::Joins => {
                    join(Arc::make_mut(early), late);
                    return true;
                }
            }
        }
        false
    }

    fn push(&mut self, event: &Arc<Event>) {
        if !is_passing(event) {
            self.durable += 1;
            self.events.push_back(event.clone());
            return;
        }
        if matches!(event.body, Body::Queue { .. }) {
            return self.replace_queue(event);
        }
        let more = size(&event.body);
        let replaces = matches!(event.body, Body::CallProgress { .. });
        if self.bytes + more > BYTES && !replaces {
            self.lost += 1;
            return;
        }
        if self.merged(event) {
            self.bytes += if replaces { 0 } else { more };
            return;
        }
        if self.passing >= PASSING || self.bytes + more > BYTES {
            self.lost += 1;
            return;
        }
        self.passing += 1;
        self.bytes += more;
        self.events.push_back(event.clone());
    }

    /// Puts what waits for an agent in the place of what waited before. At most one of these waits
    /// for each agent, so none is ever left out.
    fn replace_queue(&mut self, event: &Arc<Event>) {
        let is_older = |early: &Arc<Event>| {
            matches!(early.body, Body::Queue { .. }) && early.agent == event.agent
        };
        if let Some(at) = self.events.iter().rposition(is_older)
            && let Some(older) = self.events.remove(at)
        {
            self.passing -= 1;
            self.bytes -= size(&older.body);
        }
        self.passing += 1;
        self.bytes += size(&event.body);
        self.events.push_back(event.clone());
    }

    fn pop(&mut self) -> Option<Arc<Event>> {
        let event = self.events.pop_front()?;
        if is_passing(&event) {
            self.passing -= 1;
            self.bytes -= size(&event.body);
        } else {
            self.durable -= 1;
        }
        if self.lost > 0 && self.passing < PASSING / 2 && self.bytes < BYTES / 2 {
            let text = format!("{} passing updates were left out here", self.lost);
            self.lost = 0;
            let body = Body::Notice { level: Level::Info, text };
            let mark = Event { id: None, parent: None, body, ..(*event).clone() };
            self.durable += 1;
            self.events.push_front(Arc::new(mark));
        }
        Some(event)
    }
}

fn join(early: &mut Event, late: &Event) {
    early.at = late.at;
    match (&mut early.body, &late.body) {
        (Body::CallOutput { text, .. }, Body::CallOutput { text: more, .. }) => text.push_str(more),
        (Body::CallPart { json, .. }, Body::CallPart { json: more, .. }) => json.push_str(more),
        (early, late) => early.clone_from(late),
    }
}

impl Queue {
    pub(crate) fn push(&self, event: &Arc<Event>) {
        self.waiting().push(event);
        self.more.notify_one();
    }

    /// Lets the front end see what waits, and then the end.
    pub(crate) fn close(&self) {
        self.waiting().closed = true;
        self.more.notify_one();
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed {
    pub(crate) fn new(queue: Arc<Queue>) -> Self {
        Self { queue, round: None, left: 0 }
    }

    /// Waits for the next event; none once the bus is closed.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        loop {
            let rest = match self.look() {
                Look::Event(event) => return Some(event),
                Look::Closed => return None,
                Look::Nothing => None,
                Look::Until(due) => Some(due),
            };
            let more = self.queue.more.notified();
            match rest {
                None => more.await,
                Some(due) => tokio::select! {
                    () = tokio::time::sleep_until(due) => {}
                    () = more => {}
                },
            }
        }
    }

    /// The next event that is already waiting, without the rate limit.
    pub fn try_next(&mut self) -> Option<Arc<Event>> {
        self.queue.waiting().pop()
    }

    fn look(&mut self) -> Look {
        let mut waiting = self.queue.waiting();
        let passing = waiting.events.front().is_some_and(|event| is_passing(event));
        if passing && waiting.durable == 0 && !waiting.closed {
            if self.left == 0 {
                let now = Instant::now();
                if let Some(due) = self.round.map(|round| round + PACE).filter(|due| *due > now) {
                    return Look::Until(due);
                }
                self.round = Some(now);
                self.left = waiting.passing;
            }
            self.left -= 1;
        }
        match waiting.pop() {
            Some(event) => Look::Event(event),
            None if waiting.closed => Look::Closed,
            None => Look::Nothing,
        }
    }
}

/// What a front end finds when it looks.
enum Look {
    Event(Arc<Event>),
    /// Only passing events, which are not due yet.
    Until(Instant),
    Nothing,
    Closed,
}
