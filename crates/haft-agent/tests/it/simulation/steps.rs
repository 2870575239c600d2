//! A runtime that takes one step of one task at a time, on a clock that moves only when nothing else
//! can. The test stands between any two steps: there it can stop, send or look.
//!
//! All is in one order: blocking work is done between two steps.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use tokio::{
    runtime::{Builder, Runtime},
    task::{spawn_blocking, yield_now},
    time::advance,
};

/// How far the clock moves at first, and at most, where nothing else happens.
const MOVES: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(4)];

/// A runtime for [`Steps`].
pub(super) fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    // One task between two looks of the test, and those that blocking work woke are not put off.
    builder.event_interval(1).global_queue_interval(1).max_blocking_threads(1);
    builder.enable_time().start_paused(true).build().unwrap()
}

/// Takes the steps.
pub(super) struct Steps {
    /// How often the task ran that is always ready: alone twice, nothing else was.
    alone: Arc<AtomicU64>,
    gate: Gate,
    quiet: u32,
    moves: Duration,
    /// Steps of other tasks so far.
    pub taken: u64,
}

impl Steps {
    pub(super) fn new() -> Self {
        let alone = Arc::new(AtomicU64::new(0));
        let count = alone.clone();
        tokio::spawn(async move {
            loop {
                count.fetch_add(1, Ordering::Relaxed);
                yield_now().await;
            }
        });
        Self { alone, gate: Gate::closed(), quiet: 0, moves: MOVES[0], taken: 0 }
    }

    /// Lets one task take one step, or the clock move where none can; true for a step.
    pub(super) async fn step(&mut self) -> bool {
        let before = self.alone.load(Ordering::Relaxed);
        yield_now().await;
        if self.alone.load(Ordering::Relaxed) == before {
            self.gate.pass();
            (self.quiet, self.moves) = (0, MOVES[0]);
            self.taken += 1;
            return true;
        }
        self.quiet += 1;
        if self.quiet > 1 {
            advance(self.moves).await;
            self.moves = (self.moves * 2).min(MOVES[1]);
            self.quiet = 0;
        }
        false
    }
}

/// Holds the one thread of blocking work while a task takes its step, so that nothing is done beside
/// it: whether a task finds its work done at once would be chance.
struct Gate {
    opens: mpsc::Sender<()>,
}

impl Gate {
    /// A gate that is closed.
    fn closed() -> Self {
        let (opens, reached) = Self::queue();
        reached.recv().unwrap();
        Self { opens }
    }

    /// Puts a gate behind all work that was begun; tells when it is reached.
    fn queue() -> (mpsc::Sender<()>, mpsc::Receiver<()>) {
        let ((opens, opened), (reach, reached)) = (mpsc::channel(), mpsc::channel());
        drop(spawn_blocking(move || reach.send(()).is_ok() && opened.recv().is_ok()));
        (opens, reached)
    }

    /// Lets all work through that waits, and holds what comes then.
    fn pass(&mut self) {
        let (opens, reached) = Self::queue();
        self.opens.send(()).unwrap();
        reached.recv().unwrap();
        self.opens = opens;
    }
}
