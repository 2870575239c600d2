//! Searches names on several threads, and delivers them in the order of a single walk.
//!
//! One thread begins. When another thread is idle, a running walk gives away its last part: half of
//! the remaining folders in the outermost of its open folders. So the walk is split where the work
//! is, and into few parts.
//!
//! **Invariant:** the parts keep the order of the walk. Only the first part that has not ended is
//! delivered. So a search gives the same names in the same order, whichever thread walks. While
//! [`BYTES`] of names wait in the other parts, only the first part goes on. It never waits for
//! them, since the first of the parts that were given away is taken up first.

use std::{
    collections::VecDeque,
    mem::take,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::{
    fs::{AtFlags, statat},
    io::Errno,
};

use super::{
    super::locate::{kind_of, stamp_of},
    THREADS, add,
    disk::{Folder, advance},
    ordered::{Leave, Ordered},
};
use crate::{
    NameMatch, Skipped,
    walk::{Item, Names, Walker},
};

/// Most names that are delivered together.
const BATCH: usize = 128;
/// Longest time that found names wait for others.
const BATCH_TIME: Duration = Duration::from_millis(20);
/// How many names a thread walks before it gives a part away: waking another takes as long as some
/// dozens of them.
const GRAIN: usize = 256;
/// Most bytes of names that wait for those before them.
const BYTES: usize = 16 << 20;

/// What the threads of one search for names share.
pub(super) struct Finding {
    names: Names,
    times: bool,
    line: Arc<Ordered<Vec<NameMatch>>>,
    state: Mutex<State>,
    /// A part was given away or ended, or names may wait again.
    changed: Condvar,
    /// How many parts are wished for, to be asked without the lock.
    hungry: AtomicUsize,
    /// Whether the other threads were begun.
    begun: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The parts that were not delivered to their end, in the order of the walk.
    parts: VecDeque<Part>,
    /// Parts that were made so far.
    made: u64,
    /// Parts that wait for a thread.
    given: Vec<(u64, Walker<Folder>)>,
    /// Threads that wait for a part.
    idle: usize,
    /// Bytes of names that wait.
    bytes: usize,
}

/// A part of the walk.
#[derive(Default)]
struct Part {
    id: u64,
    waiting: Vec<Batch>,
    /// What it passed over, once it ended.
    ended: Option<Skipped>,
}

/// Names that are delivered together.
#[derive(Default)]
struct Batch {
    found: Vec<NameMatch>,
    bytes: usize,
}

impl Finding {
    /// Walks, and searches with other threads from the moment on where it is worth it.
    pub(super) fn run(
        names: Names,
        times: bool,
        line: &Arc<Ordered<Vec<NameMatch>>>,
        walker: Walker<Folder>,
    ) {
        let mut state = State::default();
        let id = state.part(0);
        let finding = Arc::new(Self {
            names,
            times,
            line: Arc::clone(line),
            state: Mutex::new(state),
            changed: Condvar::new(),
            hungry: AtomicUsize::new(0),
            begun: AtomicBool::new(false),
        });
        finding.walk(id, walker);
        finding.help();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Walks what others give away, until nothing is left.
    fn help(self: &Arc<Self>) {
        while let Some((id, walker)) = self.part() {
            self.walk(id, walker);
        }
    }

    /// Waits for a part; none once all have ended.
    fn part(&self) -> Option<(u64, Walker<Folder>)> {
        let mut state = self.state();
        loop {
            let given = state.take_given();
            if given.is_some() || state.parts.is_empty() {
                self.wish(&state);
                return given;
            }
            state.idle += 1;
            self.wish(&state);
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// Says how many parts are wished for.
    fn wish(&self, state: &State) {
        self.hungry.store(state.idle.saturating_sub(state.given.len()), Ordering::Relaxed);
    }

    /// Walks one part to its end.
    fn walk(self: &Arc<Self>, id: u64, walker: Walker<Folder>) {
        let mut part = Walked { finding: self, id, walker };
        let (mut batch, mut since, mut names) = (Batch::default(), Instant::now(), 0);
        while let Some(item) = advance(&mut part.walker, &|| self.line.stopped()) {
            if let Some(found) = self.matched(item) {
                batch.bytes += found.path.len() + size_of::<NameMatch>();
                batch.found.push(found);
            }
            if batch.found.len() >= BATCH
                || (!batch.found.is_empty() && since.elapsed() >= BATCH_TIME)
            {
                if !self.deliver(id, take(&mut batch)) {
                    break;
                }
                since = Instant::now();
            }
            names += 1;
            if names >= GRAIN && self.share(id, &mut part.walker) {
                names = 0;
            }
        }
        if !batch.found.is_empty() {
            self.deliver(id, batch);
        }
    }

    fn matched(&self, item: Item<Folder>) -> Option<NameMatch> {
        if !self.names.matches(&item.below, item.folderish) {
            return None;
        }
        let (mut kind, mut modified) = (item.kind, 0);
        if self.times {
            match statat(&item.folder, &*item.name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => (kind, modified) = (kind_of(&stat), stamp_of(&stat).modified),
                Err(Errno::NOENT) => return None,
                // Its time may not be asked for; its name was listed.
                Err(_) => {}
            }
        }
        Some(NameMatch { path: item.below, kind, modified })
    }

    /// Gives the end of a walk to a thread that has nothing to do; false where there is none.
    fn share(self: &Arc<Self>, id: u64, walker: &mut Walker<Folder>) -> bool {
        if self.hungry.load(Ordering::Relaxed) == 0 {
            if !self.begun.load(Ordering::Relaxed) && !self.begun.swap(true, Ordering::Relaxed) {
                self.begin();
            }
            return false;
        }
        if let Some(rest) = walker.split() {
            let mut state = self.state();
            let part = state.part(id);
            state.given.push((part, rest));
            self.wish(&state);
            drop(state);
            self.changed.notify_all();
        }
        true
    }

    /// Begins the other threads.
    fn begin(self: &Arc<Self>) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        for _ in 1..threads {
            self.line.join();
            let (finding, leave) = (Arc::clone(self), Leave(Arc::clone(&self.line)));
            tokio::task::spawn_blocking(move || {
                finding.help();
                drop(leave);
            });
        }
    }

    /// Delivers names of the first part; those of another wait. False when no more are wanted.
    fn deliver(&self, id: u64, batch: Batch) -> bool {
        let mut state = self.state();
        let waits =
            |state: &mut State| state.bytes >= BYTES && !state.is_first(id) && !self.line.stopped();
        state = self.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        if state.is_first(id) {
            self.send(batch);
            drop(state);
            return self.line.room();
        }
        state.bytes += batch.bytes;
        if let Some(part) = state.parts.iter_mut().find(|part| part.id == id) {
            part.waiting.push(batch);
        }
        !self.line.stopped()
    }

    fn send(&self, batch: Batch) {
        let Batch { found, bytes } = batch;
        self.line.end(self.line.begin(), Some((found, bytes)), |_| {});
    }

    /// Ends a part, and delivers what waits for the first one that has not ended, and before.
    fn end(&self, id: u64, skipped: Skipped) {
        let mut state = self.state();
        if let Some(part) = state.parts.iter_mut().find(|part| part.id == id) {
            part.ended = Some(skipped);
        }
        while let Some(part) = state.parts.front_mut() {
            let (waiting, ended) = (take(&mut part.waiting), part.ended.take());
            for batch in waiting {
                state.bytes -= batch.bytes;
                self.send(batch);
            }
            let Some(skipped) = ended else { break };
            self.line.end(self.line.begin(), None, |all| {
                let first = all.cause.take();
                add(all, &skipped);
                all.cause = first.or(all.cause.take());
            });
            state.parts.pop_front();
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// A part that a thread walks; it ends with this, however that happens.
struct Walked<'a> {
    finding: &'a Finding,
    id: u64,
    walker: Walker<Folder>,
}

impl Drop for Walked<'_> {
    fn drop(&mut self) {
        let mut skipped = self.walker.skipped().clone();
        if std::thread::panicking() {
            skipped.unreadable += 1;
            skipped.cause.get_or_insert_with(|| "a part of the search broke off".to_owned());
        }
        self.finding.end(self.id, skipped);
    }
}

impl State {
    /// Makes a part that comes right after another; the first one comes after none.
    fn part(&mut self, before: u64) -> u64 {
        self.made += 1;
        let at = self.parts.iter().position(|part| part.id == before).map_or(0, |at| at + 1);
        self.parts.insert(at, Part { id: self.made, ..Part::default() });
        self.made
    }

    /// The first of the parts that wait for a thread.
    fn take_given(&mut self) -> Option<(u64, Walker<Folder>)> {
        let place = |id: u64| self.parts.iter().position(|part| part.id == id);
        let first = (0..self.given.len()).min_by_key(|&at| place(self.given[at].0))?;
        Some(self.given.swap_remove(first))
    }

    fn is_first(&self, id: u64) -> bool {
        self.parts.front().is_some_and(|part| part.id == id)
    }
}

#[cfg(test)]
mod tests {
    use haft_types::{HostPath, Style};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{Filter, FindQuery, Walk, walk::Rules};

    #[test]
    fn parts_are_taken_up_in_the_order_of_the_walk() {
        let all = || -> Filter { Arc::new(|_| true) };
        let walk = Walk { allowed: all(), excludes: all(), stop: CancellationToken::new() };
        let root = HostPath::root(Style::Posix);
        let rules = || Rules::find(&FindQuery::default());
        let mut state = State::default();
        let first = state.part(0);
        let last = state.part(first);
        let third = state.part(first);
        let second = state.part(first);
        let fourth = state.part(third);
        for id in [third, last, second, fourth] {
            state.given.push((id, Walker::new(&root, rules(), &walk, true, false)));
        }
        let taken: Vec<u64> = std::iter::from_fn(|| state.take_given()).map(|one| one.0).collect();
        assert_eq!(taken, [second, third, fourth, last]);
        assert!(state.is_first(first));
    }
}
