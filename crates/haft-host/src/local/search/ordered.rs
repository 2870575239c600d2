//! Runs work on several threads, and delivers the results in the order in which it was begun.
//!
//! **Invariant:** at most about [`SLOTS`] pieces are under way or wait for delivery. While
//! [`BYTES`] of results wait, only the piece that is next in order goes on. So a slow reader holds
//! up the workers instead of filling memory. Pieces are taken up in order, so that none waits
//! forever.
//!
//! Waking the reader takes as long as searching some small files. So it is woken only for [`PILE`]
//! results or [`PILE_BYTES`] of them, and at the end. The reader finds a lone result by itself
//! within [`LOOK`].

use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};

use crate::Skipped;

/// Most pieces that are under way or wait for delivery.
const SLOTS: usize = 2048;
/// Most bytes of results that wait while new work is begun.
const BYTES: usize = 16 << 20;
/// How many results are worth waking the reader for.
const PILE: usize = 64;
/// How many bytes of results are.
const PILE_BYTES: usize = 16 << 10;
/// How long a result waits at most until it is looked for.
const LOOK: Duration = Duration::from_millis(20);

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
    /// Results that wait, and their bytes.
    results: usize,
    bytes: usize,
    workers: usize,
    skipped: Skipped,
}

impl<T> State<T> {
    fn is_full(&self) -> bool {
        self.slots.len() >= SLOTS || self.bytes >= BYTES
    }

    /// Reports whether the reader is to be woken.
    fn is_worth_it(&self) -> bool {
        let many = self.results >= PILE || self.bytes >= PILE_BYTES || self.is_full();
        many && matches!(self.slots.front(), Some(Slot::Full(..)))
    }

    /// Goes on to the first piece that is under way or has something to deliver.
    fn pass_empty(&mut self) {
        while matches!(self.slots.front(), Some(Slot::Empty)) {
            self.slots.pop_front();
            self.first += 1;
        }
    }

    fn take(&mut self) -> NextResult<T> {
        loop {
            match self.slots.pop_front() {
                None if self.workers == 0 => return NextResult::End,
                None => return NextResult::NotYet,
                Some(Slot::Open) if self.workers > 0 => {
                    self.slots.push_front(Slot::Open);
                    return NextResult::NotYet;
                }
                // A worker that died left its piece open: it is passed over.
                Some(Slot::Open | Slot::Empty) => self.first += 1,
                Some(Slot::Full(result, size)) => {
                    self.first += 1;
                    self.results -= 1;
                    self.bytes -= size;
                    self.pass_empty();
                    return NextResult::Result(result);
                }
            }
        }
    }
}

/// What came of looking for the next result.
enum NextResult<T> {
    Result(T),
    NotYet,
    End,
}

/// The line of results.
#[derive(Debug)]
pub(super) struct Ordered<T> {
    state: Mutex<State<T>>,
    /// Set while the state is held, so that nobody who waits for room misses it.
    stopped: AtomicBool,
    room: Condvar,
    ready: Notify,
}

impl<T> Ordered<T> {
    /// An empty line with one worker.
    pub(super) fn new() -> Self {
        let state = State {
            first: 0,
            slots: VecDeque::new(),
            results: 0,
            bytes: 0,
            workers: 1,
            skipped: Skipped::default(),
        };
        let stopped = AtomicBool::new(false);
        Self { state: Mutex::new(state), stopped, room: Condvar::new(), ready: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until new work may begin; false when there is to be none.
    pub(super) fn room(&self) -> bool {
        let full = |state: &mut State<T>| !self.stopped() && state.is_full();
        drop(self.room.wait_while(self.state(), full));
        !self.stopped()
    }

    /// Reports at once whether new work may begin.
    pub(super) fn has_room(&self) -> bool {
        !self.stopped() && !self.state().is_full()
    }

    /// Waits until a piece that was begun may be gone on with; false when it is not to be. The
    /// next one in order never waits for those behind it.
    pub(super) fn turn(&self, number: u64) -> bool {
        let full =
            |state: &mut State<T>| !self.stopped() && state.bytes >= BYTES && state.first != number;
        drop(self.room.wait_while(self.state(), full));
        !self.stopped()
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
        if let Some((_, size)) = &result {
            state.results += 1;
            state.bytes += size;
        }
        if let Some(slot) = state.slots.get_mut(at) {
            *slot = result.map_or(Slot::Empty, |(result, size)| Slot::Full(result, size));
        }
        let was_full = state.is_full();
        state.pass_empty();
        let deliver = state.is_worth_it();
        drop(state);
        if deliver {
            self.ready.notify_one();
        }
        if was_full {
            self.room.notify_all();
        }
    }

    /// Waits for the next result; none when everything is delivered.
    pub(super) async fn next(&self) -> Option<T> {
        loop {
            match self.take() {
                NextResult::Result(result) => return Some(result),
                NextResult::End => return None,
                NextResult::NotYet => {}
            }
            drop(timeout(LOOK, self.ready.notified()).await);
        }
    }

    fn take(&self) -> NextResult<T> {
        let mut state = self.state();
        // Looked at before anything is taken: who waits for room waits since then.
        let (was_full, first) = (state.is_full(), state.first);
        let taken = state.take();
        let moved = state.first != first;
        drop(state);
        if was_full && moved {
            self.room.notify_all();
        }
        taken
    }

    /// Ends the work: nothing new begins, and what is under way may end early.
    pub(super) fn stop(&self) {
        let state = self.state();
        self.stopped.store(true, Ordering::Relaxed);
        drop(state);
        self.room.notify_all();
    }

    /// Reports whether the work was ended.
    pub(super) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
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

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;

    /// Two workers that fill the line before anybody reads, and go on whenever there is room.
    fn workers(line: &Arc<Ordered<u64>>, pieces: u64, size: usize, every: u64) {
        line.join();
        for _ in 0..2 {
            let leave = Leave(Arc::clone(line));
            thread::spawn(move || {
                let line = &leave.0;
                while line.room() {
                    let number = line.begin();
                    if number >= pieces {
                        line.end(number, None, |_| {});
                        break;
                    }
                    let result = number.is_multiple_of(every).then_some((number, size));
                    line.end(number, result, |_| {});
                }
            });
        }
    }

    /// Waits until both workers wait for room, as far as one can see from outside.
    async fn until_full(line: &Ordered<u64>) {
        while !line.state().is_full() {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }

    #[tokio::test]
    async fn a_lone_result_does_not_wait_for_others() {
        let line = Ordered::new();
        let (first, second) = (line.begin(), line.begin());
        let next = tokio::time::timeout(Duration::from_secs(20), line.next());
        // The reader waits already, and the other piece never ends.
        let (next, ()) = tokio::join!(next, async { line.end(first, Some(("result", 1)), |_| {}) });
        assert_eq!(next.expect("nobody looked for it"), Some("result"));
        assert_eq!(second, 1);
    }

    #[tokio::test]
    async fn workers_that_wait_for_room_go_on_when_something_is_taken() {
        let pieces = 3 * SLOTS as u64;
        for (size, every) in [(1, 1), (BYTES / 4, 1), (1, 3)] {
            for _ in 0..10 {
                let line = Arc::new(Ordered::new());
                workers(&line, pieces, size, every);
                if every == 1 {
                    until_full(&line).await;
                }
                for wanted in (0..pieces).step_by(usize::try_from(every).unwrap()) {
                    let next = tokio::time::timeout(Duration::from_secs(20), line.next());
                    let next = next.await.expect("nobody was told that there is room");
                    assert_eq!(next, Some(wanted));
                }
                assert_eq!(line.next().await, None);
                line.ended().await;
            }
        }
    }
}
