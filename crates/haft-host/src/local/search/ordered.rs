//! Work done by several threads, delivered in the order in which it was begun.
//!
//! **Invariant:** at most [`SLOTS`] pieces are under way or waiting, and no piece is begun while
//! [`BYTES`] of results wait; so a slow reader holds the workers up instead of filling memory. The
//! piece that is next in order is always under way already, so nobody waits for ever.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::Skipped;

/// Most pieces that are under way or wait for delivery.
const SLOTS: usize = 2048;
/// Most bytes of results that wait while new work is begun.
const BYTES: usize = 16 << 20;

#[derive(Debug)]
enum Slot<T> {
    /// Under way.
    Open,
    /// Done, nothing to deliver.
    Empty,
    /// Done, with its size in bytes.
    Full(T, usize),
}

#[derive(Debug)]
struct State<T> {
    /// Number of the piece in the first slot.
    first: u64,
    slots: VecDeque<Slot<T>>,
    bytes: usize,
    workers: usize,
    stopped: bool,
    skipped: Skipped,
}

/// What came of looking for the next result.
enum Taken<T> {
    Result(T),
    NotYet,
    End,
}

/// The line of results.
#[derive(Debug)]
pub(super) struct Ordered<T> {
    state: Mutex<State<T>>,
    room: Condvar,
    ready: Notify,
}

impl<T> Ordered<T> {
    /// An empty line with one worker.
    pub(super) fn new() -> Self {
        let state = State {
            first: 0,
            slots: VecDeque::new(),
            bytes: 0,
            workers: 1,
            stopped: false,
            skipped: Skipped::default(),
        };
        Self { state: Mutex::new(state), room: Condvar::new(), ready: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until new work may begin; false when there is to be none.
    pub(super) fn room(&self) -> bool {
        let full = |s: &mut State<T>| !s.stopped && (s.slots.len() >= SLOTS || s.bytes >= BYTES);
        let state = self.room.wait_while(self.state(), full);
        !state.unwrap_or_else(PoisonError::into_inner).stopped
    }

    /// Begins a piece of work; its number is its place in the order.
    pub(super) fn begin(&self) -> u64 {
        let mut state = self.state();
        state.slots.push_back(Slot::Open);
        state.first + state.slots.len() as u64 - 1
    }

    /// Ends a piece of work, with its result and size in bytes, and counts what it passed over.
    pub(super) fn end(
        &self,
        number: u64,
        result: Option<(T, usize)>,
        count: impl Fn(&mut Skipped),
    ) {
        let mut state = self.state();
        count(&mut state.skipped);
        let at = usize::try_from(number.wrapping_sub(state.first)).unwrap_or(usize::MAX);
        state.bytes += result.as_ref().map_or(0, |(_, size)| *size);
        if let Some(slot) = state.slots.get_mut(at) {
            *slot = result.map_or(Slot::Empty, |(result, size)| Slot::Full(result, size));
        }
        let was_full = state.slots.len() >= SLOTS;
        while matches!(state.slots.front(), Some(Slot::Empty)) {
            state.slots.pop_front();
            state.first += 1;
        }
        let deliver = matches!(state.slots.front(), Some(Slot::Full(..)));
        let room = was_full && state.slots.len() < SLOTS;
        drop(state);
        if deliver {
            self.ready.notify_one();
        }
        if room {
            self.room.notify_all();
        }
    }

    /// Waits for the next result; none when everything is delivered.
    pub(super) async fn next(&self) -> Option<T> {
        loop {
            match self.take() {
                Taken::Result(result) => return Some(result),
                Taken::End => return None,
                Taken::NotYet => {}
            }
            self.ready.notified().await;
        }
    }

    fn take(&self) -> Taken<T> {
        let mut state = self.state();
        loop {
            match state.slots.pop_front() {
                None if state.workers == 0 => return Taken::End,
                None => return Taken::NotYet,
                Some(Slot::Open) if state.workers > 0 => {
                    state.slots.push_front(Slot::Open);
                    return Taken::NotYet;
                }
                // A worker that died left its piece open: it is passed over.
                Some(Slot::Open | Slot::Empty) => state.first += 1,
                Some(Slot::Full(result, size)) => {
                    state.first += 1;
                    state.bytes -= size;
                    drop(state);
                    self.room.notify_all();
                    return Taken::Result(result);
                }
            }
        }
    }

    /// Ends the work: nothing new begins, and what is under way may end early.
    pub(super) fn stop(&self) {
        self.state().stopped = true;
        self.room.notify_all();
    }

    /// Reports whether the work was ended.
    pub(super) fn stopped(&self) -> bool {
        self.state().stopped
    }

    /// Waits until no worker is left.
    pub(super) async fn ended(&self) {
        while self.state().workers > 0 {
            self.ready.notified().await;
        }
    }

    /// Reports whether a worker is left.
    pub(super) fn busy(&self) -> bool {
        self.state().workers > 0
    }

    /// What the pieces passed over so far.
    pub(super) fn skipped(&self) -> Skipped {
        self.state().skipped.clone()
    }

    /// One more worker.
    pub(super) fn join(&self) {
        self.state().workers += 1;
    }
}

/// Counts a worker out when it ends, also by a panic.
pub(super) struct Leave<T>(pub(super) Arc<Ordered<T>>);

impl<T> Drop for Leave<T> {
    fn drop(&mut self) {
        self.0.state().workers -= 1;
        self.0.ready.notify_one();
    }
}

/// Ends the work when the one who reads it is gone.
pub(super) struct StopOnDrop<T>(pub(super) Arc<Ordered<T>>);

impl<T> Drop for StopOnDrop<T> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
