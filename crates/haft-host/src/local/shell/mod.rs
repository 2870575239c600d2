//! Runs programs on this machine.
//!
//! [`start`] prepares what a program needs, and [`supervisor_client`] asks the [`supervisor`] to
//! start it. [`follow`] takes in its events and output, on a thread of its own, until nothing of it
//! is left.
//!
//! **Invariant:** the boundary at which a command can be killed lies outside every awaited future.
//! Its thread goes on when the reader stalls. Dropping the output kills the whole tree at once, and
//! the tree ends with haft, however that ends. At most [`QUEUE_LIMIT`] bytes of output wait, plus
//! what was read at once beyond that. So a slow reader holds the program up.

mod editor;
mod follow;
mod git_objects;
mod levels;
mod network;
mod profile;
mod read_only_env;
mod readable_paths;
mod scratch;
mod start;
mod supervisor;
mod supervisor_client;
mod supervisor_protocol;
mod threads;
mod untrusted_path;

use std::{
    collections::VecDeque,
    ffi::OsString,
    io::{self, Write},
    os::unix::net::UnixStream,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc},
};

use bytes::Bytes;
use futures::{
    future::{BoxFuture, join},
    stream,
};
use haft_sandbox::{Attempts, Probe, ProtectedState, RestoreOptions, Restored};
use haft_types::HostPath;
use rustix::{
    event::{EventfdFlags, eventfd},
    fd::OwnedFd,
    io::ioctl_fionread,
    process::{Pid, getsid},
    termios::{LocalModes, tcgetattr},
};
use tokio::sync::{Notify, oneshot};

use self::{
    follow::Follower, profile::Profile, readable_paths::with_programs,
    supervisor_protocol::MonitorEvent,
};
use super::{Local, write::Writes};
use crate::{
    Control, Host, Output, PathLookup, Program, Running, Shell, Spawn, Stdin, Tried,
    secrets::Withheld,
};

pub(super) use self::{profile::StartUp, start::finds};
pub(in crate::local) use self::{scratch::Scratch, threads::Threads};
pub use self::{
    supervisor::{SUPERVISORS, supervise},
    supervisor_client::end_supervisor,
};

/// Most bytes of output that wait to be read.
const QUEUE_LIMIT: usize = 512 << 10;
/// Most bytes of input that wait to be taken.
const INPUT_LIMIT: usize = 1 << 20;
/// Most bytes of a line that a terminal takes while its program reads whole lines, without its end.
const LINE_MAX: usize = 4_095;
/// What ends such a line, or throws it away.
const LINE_ENDS: &[u8] = b"\n\r\x03\x04";
/// What a waiting piece costs beside its bytes.
const PIECE_COST: usize = 128;

impl Shell for Local {
    fn spawn(&self, spawn: Spawn) -> BoxFuture<'_, io::Result<Running>> {
        self.spawn_after(spawn, Box::pin(std::future::ready(Ok(()))))
    }

    fn spawn_after<'a>(
        &'a self,
        spawn: Spawn,
        ready: BoxFuture<'a, io::Result<()>>,
    ) -> BoxFuture<'a, io::Result<Running>> {
        let (shell, supervisor) = (self.caps().shell, Arc::clone(&self.supervisor));
        let (withheld, caches) = (Arc::clone(&self.withheld), self.caches.clone());
        let (variables, writes) = (Arc::clone(&self.variables), Arc::clone(&self.writes));
        let (keeping, home) = (self.keeping.clone(), self.home.clone());
        let (hand, take) = oneshot::channel();
        let (go, wait) = mpsc::channel();
        // One thread starts the program and follows it, so that a folder on a mount that hangs
        // holds nobody else up. It kills what nobody waits for any more: a dropped future drops
        // `go` and `take`.
        let start_up = self.start_up.as_ref().filter(|_| spawn.profile);
        let follow = move |profile: Option<Arc<Profile>>| {
            let may_run = || wait.recv().is_ok();
            let (shell, variables) = (shell.as_ref(), &*variables);
            let caches = caches.as_deref();
            let (withheld, writes, keeping) = (&*withheld, &*writes, &keeping);
            let home = &home;
            let given =
                SpawnContext { shell, withheld, variables, profile, caches, writes, keeping, home };
            match begin(spawn, &given, &supervisor, may_run) {
                Ok((running, follower)) => {
                    drop(hand.send(Ok(running)));
                    follower.run();
                }
                Err(error) => drop(hand.send(Err(error))),
            }
        };
        Box::pin(async move {
            let (profile, ready) = match start_up.map(|start_up| (start_up, start_up.get())) {
                None => (None, ready),
                Some((_, Some(read))) => (Some(read), ready),
                Some((start_up, None)) => {
                    let (read, ready) = join(start_up.read(self), ready).await;
                    (Some(read), Box::pin(std::future::ready(ready)) as BoxFuture<'_, _>)
                }
            };
            self.threads.run(move || follow(profile))?;
            ready.await?;
            // Who could not make it ready does not wait any more.
            let _ = go.send(());
            take.await.map_err(|_| io::Error::other("the following thread ended"))?
        })
    }

    fn levels(&self) -> BoxFuture<'_, Vec<Probe>> {
        let supervisor = Arc::clone(&self.supervisor);
        Box::pin(async move {
            let tried = tokio::task::spawn_blocking(move || levels::all(&supervisor).to_vec());
            tried.await.unwrap_or_default()
        })
    }

    fn overlays(&self, folders: Vec<HostPath>) -> BoxFuture<'_, bool> {
        let supervisor = Arc::clone(&self.supervisor);
        Box::pin(async move {
            let tried = tokio::task::spawn_blocking(move || levels::overlays(&supervisor, folders));
            tried.await.unwrap_or_default()
        })
    }

    fn scratch(&self) -> BoxFuture<'_, io::Result<HostPath>> {
        let (scratch, temp) = (Arc::clone(&self.scratch), self.temp.clone());
        Box::pin(async move {
            let made = tokio::task::spawn_blocking(move || scratch.folder(&temp)).await;
            made.map_err(io::Error::other)?
        })
    }

    fn found_in(&self, sought: PathLookup) -> BoxFuture<'_, Vec<String>> {
        let set = self.variables.iter().find(|(name, _)| name == "PATH");
        let set = set.map(|(_, path)| path.into());
        let profile = self.start_up.as_ref().and_then(|start_up| start_up.get());
        let path = set.or_else(|| profile.as_deref().and_then(Profile::path));
        Box::pin(async move {
            let found =
                tokio::task::spawn_blocking(move || untrusted_path::found_in(path, &sought)).await;
            found.unwrap_or_default()
        })
    }

    fn told(&self) -> Option<String> {
        self.start_up.as_ref()?.take_notice()
    }
}

/// What the host gives to programs.
struct SpawnContext<'a> {
    /// What runs scripts.
    shell: Option<&'a HostPath>,
    withheld: &'a Withheld,
    variables: &'a [(String, String)],
    profile: Option<Arc<Profile>>,
    /// Where confined programs keep what they do not want to make again.
    caches: Option<&'a Path>,
    writes: &'a Writes,
    keeping: &'a RestoreOptions,
    home: &'a HostPath,
}

/// Starts a command, with the one who follows it; `may_run` waits until it may be run.
fn begin(
    spawn: Spawn,
    given: &SpawnContext<'_>,
    supervisor: &[OsString],
    may_run: impl FnOnce() -> bool,
) -> io::Result<(Running, Follower)> {
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let spawn = with_programs(scratch::with_caches(spawn, given.caches)?, given.home);
    let spawn = editor::none(spawn, supervisor, given.variables);
    let mut request = start::request(&spawn, given)?;
    let hold = |limits| levels::hold(supervisor, limits);
    request.hold = spawn.confine.as_ref().map(hold).transpose()?;
    let (mut ends, pipes) = start::pipes(&spawn)?;
    ends.network = network::shared(spawn.network.as_ref(), request.hold.as_ref(), supervisor);
    let tried = network::tried(request.hold.as_ref(), ends.network.is_some());
    let mut protected = None;
    let may_run = |request: &mut supervisor_protocol::Request| {
        let may = may_run();
        let hold = request.hold.as_mut().filter(|_| may);
        let kept = hold.and_then(|hold| levels::look(hold, given.keeping));
        protected = kept.map(|kept| given.writes.track(kept));
        may
    };
    let started = supervisor_client::start(supervisor, &mut request, &ends, may_run)?;
    drop(ends);
    let (control, told, received) = started;
    let (id, first) = match told {
        MonitorEvent::Started(id, first) => (id, first),
        MonitorEvent::Failed(code, why) => {
            let error = io::Error::from_raw_os_error(code);
            return Err(start::start_error(&request, &spawn.cwd, &error, &why));
        }
        other => return Err(io::Error::other(format!("the supervisor said {other:?} first"))),
    };
    // What its turns try is counted beside those of others, from here on.
    let in_turns = spawn.program == Program::Turns && first != 0;
    let base = in_turns.then(|| network::counted(first)).flatten().unwrap_or_default();
    let input = input(spawn.stdin, spawn.terminal.is_some());
    // Right after its start nobody else can have its number.
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    let shared = Arc::new(Shared {
        id,
        session: pid.and_then(|pid| getsid(Some(pid)).ok()),
        control,
        state: Mutex::new(State { input, ..State::default() }),
        ready: Notify::new(),
        room: Notify::new(),
        wake,
        keep: spawn.keep,
        protected,
        first,
        base,
        tried: Mutex::new(tried),
    });
    let follower = Follower::new(Arc::clone(&shared), pipes, received)?;
    let output = stream::unfold(Reader(Arc::clone(&shared)), |reader| async {
        reader.next().await.map(|output| (output, reader))
    });
    Ok((Running { output: Box::pin(output), control: shared }, follower))
}

/// What a program's input begins with.
fn input(stdin: Stdin, at_terminal: bool) -> Input {
    match stdin {
        // A terminal cannot be empty from the start: its end is written.
        Stdin::Empty if at_terminal => Input { open: true, ends: true, ..Input::default() },
        Stdin::Empty => Input::default(),
        Stdin::Open => Input { open: true, ..Input::default() },
        Stdin::Bytes(bytes) => {
            let (length, queue) = (bytes.len(), [bytes].into());
            Input { bytes: length, queue, open: true, ends: true, ..Input::default() }
        }
    }
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

/// What the reader, the writer and the following thread share.
#[derive(Debug, Default)]
struct State {
    queue: VecDeque<io::Result<Output>>,
    /// What `queue` costs, in bytes.
    queued: usize,
    /// True once nothing more will be queued.
    done: bool,
    order: Order,
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
    /// Our end of its pipe, while that is open.
    pipe: Weak<OwnedFd>,
    /// Bytes behind the last line end that was sent.
    begun: usize,
}

impl Input {
    /// Reports whether a terminal would cut a line of this: while its program reads whole lines, it
    /// takes what has room for one and loses the rest without a word.
    fn cuts(&self, bytes: &[u8]) -> bool {
        let mut lines = bytes.split(|byte| LINE_ENDS.contains(byte)).map(<[u8]>::len);
        let first = lines.next().unwrap_or_default() + self.begun;
        first.max(lines.max().unwrap_or_default()) > LINE_MAX
            && self.pipe.upgrade().is_some_and(|pipe| {
                tcgetattr(pipe).is_ok_and(|set| set.local_modes.contains(LocalModes::ICANON))
            })
    }

    fn push(&mut self, bytes: Bytes) {
        let end = bytes.iter().rposition(|byte| LINE_ENDS.contains(byte));
        self.begun = end.map_or(self.begun + bytes.len(), |end| bytes.len() - end - 1);
        self.bytes += bytes.len();
        self.queue.push_back(bytes);
    }
}

/// A running command.
#[derive(Debug)]
struct Shared {
    id: u32,
    /// Its session; none where it ended at once.
    session: Option<Pid>,
    /// The connection to its keeper.
    control: UnixStream,
    state: Mutex<State>,
    /// Output or the end came.
    ready: Notify,
    /// Input was taken.
    room: Notify,
    /// Wakes the following thread.
    wake: OwnedFd,
    /// Names of programs that go on when the command ends.
    keep: Vec<String>,
    /// What it was to leave as it is; none where nothing confines it.
    protected: Option<Arc<Mutex<ProtectedState>>>,
    /// The first process of its namespaces; 0 where it has none.
    first: u32,
    /// What the counters of its network stood at when it began.
    base: Attempts,
    /// What was told of what it tried of the network; none where nothing confines it.
    tried: Mutex<Option<Tried>>,
}

impl Shared {
    /// Puts back what it changed though that was protected.
    fn put_back(&self) -> Vec<Restored> {
        let Some(kept) = &self.protected else { return Vec::new() };
        kept.lock().unwrap_or_else(PoisonError::into_inner).put_back()
    }

    /// Takes in what it tried of the network.
    fn tries(&self, attempts: Attempts) {
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        *tried = tried.take().map(|tried| network::with(tried, Some(attempts)));
    }

    /// Says that this came.
    fn heard(&self) {
        let _ = (&self.control).write(&[supervisor_protocol::HEARD]);
    }

    fn tried_at_end(&self) -> Option<Tried> {
        self.tried.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // Fails only when the counter is full, and then the thread is being woken already.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    fn order(&self, order: Order) {
        let mut state = self.state();
        if state.order < order && !state.done {
            state.order = order;
            if order == Order::Kill {
                state.queue.clear();
                state.queued = 0;
            }
            drop(state);
            self.say(if order == Order::Kill {
                supervisor_protocol::Order::Kill
            } else {
                supervisor_protocol::Order::Stop
            });
            self.wake();
        }
    }

    /// Tells the keeper; one that is gone has nothing to keep.
    fn say(&self, order: supervisor_protocol::Order) {
        let _ = (&self.control).write(&[order as u8]);
    }

    /// Tells the keeper that the command has ended.
    fn clear(&self) {
        let sparing = if self.keep.is_empty() {
            Vec::new()
        } else {
            supervisor_protocol::sparing(&self.keep)
        };
        let _ = (&self.control)
            .write_all(&[&sparing[..], &[supervisor_protocol::Order::Clear as u8]].concat());
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
        self.0.order(Order::Kill);
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
                    if state.input.cuts(&bytes) {
                        let text = format!(
                            "a line of it is longer than the {LINE_MAX} bytes that a terminal takes"
                        );
                        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
                    }
                    if state.input.bytes < INPUT_LIMIT {
                        state.input.push(bytes);
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
        self.order(Order::Stop);
    }

    fn untaken(&self) -> Option<usize> {
        let (bytes, pipe) = {
            let state = self.state();
            (state.input.bytes, state.input.pipe.upgrade()?)
        };
        let standing = ioctl_fionread(pipe).ok()?;
        Some(bytes.saturating_add(usize::try_from(standing).unwrap_or(usize::MAX)))
    }

    fn put_back(&self) -> BoxFuture<'_, Vec<Restored>> {
        let Some(kept) = self.protected.clone() else {
            return Box::pin(std::future::ready(Vec::new()));
        };
        Box::pin(async move {
            let put_back = move || kept.lock().unwrap_or_else(PoisonError::into_inner).put_back();
            tokio::task::spawn_blocking(put_back).await.unwrap_or_default()
        })
    }

    fn tried(&self) -> BoxFuture<'_, Option<Tried>> {
        let (first, base, told) = (self.first, self.base, self.tried_at_end());
        Box::pin(async move {
            if first == 0 || told.is_none() {
                return told;
            }
            let counted = tokio::task::spawn_blocking(move || network::counted(first)).await;
            let counted = counted.ok().flatten().map(|now| now.since(base));
            told.map(|told| network::with(told, counted))
        })
    }

    fn beside(&self) -> BoxFuture<'_, Vec<(u32, String)>> {
        let id = self.id;
        Box::pin(async move {
            let looked = tokio::task::spawn_blocking(move || supervisor::beside(id)).await;
            looked.unwrap_or_default()
        })
    }
}
