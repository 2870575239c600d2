//! Running programs on this machine.
//!
//! [`start`] starts a child, [`supervise`] follows it on a thread of its own until nothing of it is
//! left, [`tree`] finds what it started.
//!
//! **Invariant:** the boundary at which a command can be killed lies outside every awaited future:
//! its thread goes on when the reader stalls, and dropping the output kills the whole tree at once.
//! At most [`QUEUE_LIMIT`] bytes of output wait, so a slow reader holds the program up.
//!
//! It does not outlive haft: what runs when haft itself is killed is the business of a supervisor
//! process, which would be asked in [`start::start`] to start the child and watch haft's death.

mod start;
mod supervise;
mod tree;

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use futures::{future::BoxFuture, stream};
use haft_types::HostPath;
use rustix::{
    event::{EventfdFlags, eventfd},
    fd::OwnedFd,
    process::{Pid, Signal},
};
use tokio::sync::{Notify, oneshot};

use self::{supervise::Supervisor, tree::Tree};
use super::Local;
use crate::{Control, Host, Output, Running, Shell, Spawn, Stdin};

/// Most bytes of output that wait to be read.
const QUEUE_LIMIT: usize = 512 << 10;
/// Most bytes of input that wait to be taken.
const INPUT_LIMIT: usize = 1 << 20;
/// What a waiting piece costs beside its bytes.
const PIECE_COST: usize = 128;
/// Stack of a supervising thread, in bytes.
const STACK: usize = 256 << 10;

impl Shell for Local {
    fn spawn(&self, spawn: Spawn) -> BoxFuture<'_, io::Result<Running>> {
        let shell = self.caps().shell;
        let (hand, take) = oneshot::channel();
        // One thread starts the child and follows it, so that a folder on a mount that hangs holds
        // nobody else up. It kills what nobody waits for any more: a dropped future drops `take`.
        let follow = move || match begin(spawn, shell.as_ref()) {
            Ok((running, supervisor)) => {
                drop(hand.send(Ok(running)));
                supervisor.run();
            }
            Err(error) => drop(hand.send(Err(error))),
        };
        Box::pin(async move {
            std::thread::Builder::new()
                .name("haft-child".into())
                .stack_size(STACK)
                .spawn(follow)?;
            take.await.map_err(|_| io::Error::other("the supervising thread ended"))?
        })
    }
}

/// Starts a command, with the one who follows it.
fn begin(spawn: Spawn, shell: Option<&HostPath>) -> io::Result<(Running, Supervisor)> {
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let started = start::start(&spawn, shell)?;
    let id = started.child.id();
    let leader = i32::try_from(id).ok().and_then(Pid::from_raw);
    let leader = leader.ok_or_else(|| io::Error::other("the child has no process id"))?;
    let input = match spawn.stdin {
        Stdin::Empty => Input::default(),
        Stdin::Open => Input { open: true, ..Input::default() },
        Stdin::Bytes(bytes) => {
            Input { bytes: bytes.len(), queue: [bytes].into(), open: true, ends: true }
        }
    };
    let shared = Arc::new(Shared {
        id,
        tree: Tree::new(leader, started.marker.clone()),
        state: Mutex::new(State { input, ..State::default() }),
        ready: Notify::new(),
        room: Notify::new(),
        wake,
    });
    let reader = Reader(Arc::clone(&shared));
    let supervisor = Supervisor::new(Arc::clone(&shared), leader, started)?;
    let output = stream::unfold(reader, |reader| async {
        reader.next().await.map(|output| (output, reader))
    });
    Ok((Running { output: Box::pin(output), control: shared }, supervisor))
}

/// What a command was told to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    /// Run.
    #[default]
    Run,
    /// End, with time to clean up.
    Stop,
    /// Die.
    Kill,
}

/// What the reader, the writer and the supervising thread share.
#[derive(Debug, Default)]
struct State {
    queue: VecDeque<io::Result<Output>>,
    /// What `queue` costs, in bytes.
    queued: usize,
    /// True once nothing more will be queued.
    done: bool,
    order: Order,
    /// True once the process id may be somebody else's.
    reaped: bool,
    input: Input,
}

/// What waits for the program's input.
#[derive(Debug, Default)]
struct Input {
    queue: VecDeque<Bytes>,
    /// Size of `queue`, in bytes.
    bytes: usize,
    /// True while the program can still read it.
    open: bool,
    /// True when nothing follows `queue`.
    ends: bool,
}

/// A running command.
#[derive(Debug)]
struct Shared {
    id: u32,
    tree: Tree,
    state: Mutex<State>,
    /// Output or the end came.
    ready: Notify,
    /// Input was taken.
    room: Notify,
    /// Wakes the supervising thread.
    wake: OwnedFd,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // Fails only when the counter is full, and then the thread is being woken already.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    fn order(&self, order: Order, signal: Signal) {
        let mut state = self.state();
        if state.order < order && !state.done {
            state.order = order;
            if order == Order::Kill {
                state.queue.clear();
                state.queued = 0;
            }
            if !state.reaped {
                self.tree.signal_group(signal);
            }
            drop(state);
            self.wake();
        }
    }

    /// Queues output for the reader.
    fn push(&self, output: io::Result<Output>) {
        let mut state = self.state();
        if state.order < Order::Kill {
            state.queued += cost(&output);
            state.queue.push_back(output);
        }
        drop(state);
        self.ready.notify_one();
    }
}

fn cost(output: &io::Result<Output>) -> usize {
    PIECE_COST
        + match output {
            Ok(Output::Bytes(_, bytes) | Output::Report(bytes)) => bytes.len(),
            _ => 0,
        }
}

/// The reading end; dropping it kills the command.
struct Reader(Arc<Shared>);

impl Reader {
    async fn next(&self) -> Option<io::Result<Output>> {
        loop {
            {
                let mut state = self.0.state();
                if let Some(output) = state.queue.pop_front() {
                    let was_full = state.queued >= QUEUE_LIMIT;
                    state.queued -= cost(&output);
                    let woken = was_full && state.queued < QUEUE_LIMIT;
                    drop(state);
                    if woken {
                        self.0.wake();
                    }
                    return Some(output);
                }
                if state.done {
                    return None;
                }
            }
            self.0.ready.notified().await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.order(Order::Kill, Signal::KILL);
    }
}

impl Control for Shared {
    fn id(&self) -> u32 {
        self.id
    }

    fn write(&self, bytes: Bytes) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async move {
            loop {
                let room = self.room.notified();
                {
                    let mut state = self.state();
                    if !state.input.open || state.input.ends {
                        let text = "the program's input is closed; start it with open input";
                        return Err(io::Error::new(io::ErrorKind::BrokenPipe, text));
                    }
                    if state.input.bytes < INPUT_LIMIT {
                        state.input.bytes += bytes.len();
                        state.input.queue.push_back(bytes);
                        drop(state);
                        self.wake();
                        return Ok(());
                    }
                }
                room.await;
            }
        })
    }

    fn end_input(&self) {
        self.state().input.ends = true;
        self.wake();
    }

    fn stop(&self) {
        self.order(Order::Stop, Signal::TERM);
    }
}
