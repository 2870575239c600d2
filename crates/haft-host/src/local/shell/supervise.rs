//! The thread that follows one command from its start until nothing of it is left.
//!
//! **Invariant:** it waits for nobody but the kernel, and never longer than a stated time once the
//! command has ended or was told to: not for the reader, not for who holds a pipe. The leader is
//! reaped last, so that its id stands for the command until then.

use std::{
    io::{self, PipeReader, PipeWriter},
    os::unix::process::ExitStatusExt,
    process::{Child, ExitStatus},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::{Buf, Bytes};
use haft_types::Stream;
use rustix::{
    buffer::spare_capacity,
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, OwnedFd},
    fs::{OFlags, fcntl_setfl},
    process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, waitid},
};

use super::{Input, Order, QUEUE_LIMIT, Shared, start::Started, tree::Member};
use crate::{Exit, Output};

/// How long pipes must be silent after the end of the command.
const IDLE: Duration = Duration::from_millis(100);
/// How long the output of others is waited for after the end of the command.
const LINGER: Duration = Duration::from_secs(2);
/// How long what was told to end may take before it is killed.
const GRACE: Duration = Duration::from_millis(500);
/// How long killing is tried.
const GIVE_UP: Duration = Duration::from_secs(3);
/// How often it is looked whether all have ended.
const LOOK: Duration = Duration::from_millis(10);
/// How often the leader is asked for where it has no descriptor.
const ASK: Duration = Duration::from_millis(20);
/// How much is read at once.
const PIECE: usize = 64 << 10;
/// What is smaller is copied, so that it does not hold a whole buffer.
const SMALL: usize = 16 << 10;
/// Longest report.
const REPORT_LIMIT: usize = 64 << 10;

/// One command and our ends of its pipes.
#[derive(Debug)]
pub(super) struct Supervisor {
    shared: Arc<Shared>,
    leader: Pid,
    child: Child,
    /// Readable once the leader has ended; none on systems without.
    held: Option<OwnedFd>,
    input: Option<PipeWriter>,
    output: Option<PipeReader>,
    errors: Option<PipeReader>,
    report: Option<PipeReader>,
    reported: Vec<u8>,
    buffer: Vec<u8>,
    exited: Option<Instant>,
    last_output: Instant,
    finished: bool,
}

/// What [`Supervisor::pump`] watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    Wake,
    Leader,
    Output,
    Errors,
    Report,
    Input,
}

impl Supervisor {
    pub(super) fn new(shared: Arc<Shared>, leader: Pid, started: Started) -> io::Result<Self> {
        let supervisor = Self {
            shared,
            leader,
            child: started.child,
            held: pidfd_open(leader, PidfdFlags::empty()).ok(),
            input: started.input,
            output: Some(started.output),
            errors: Some(started.errors),
            report: started.report,
            reported: Vec::new(),
            buffer: Vec::with_capacity(PIECE),
            exited: None,
            last_output: Instant::now(),
            finished: false,
        };
        if let Some(input) = &supervisor.input {
            fcntl_setfl(input, OFlags::NONBLOCK)?;
        }
        Ok(supervisor)
    }

    /// Follows the command to its end.
    pub(super) fn run(mut self) {
        self.watch();
        let stopped = self.clear();
        self.drain();
        self.finish(stopped);
    }

    fn order(&self) -> Order {
        self.shared.state().order
    }

    fn piped(&self) -> bool {
        self.output.is_some() || self.errors.is_some() || self.report.is_some()
    }

    /// Until the leader has ended and its pipes are silent, or it is told to end.
    fn watch(&mut self) {
        while self.order() == Order::Run {
            let Some(exited) = self.exited else {
                self.pump(if self.held.is_some() { None } else { Some(ASK) });
                continue;
            };
            let now = Instant::now();
            let until = (exited.max(self.last_output) + IDLE).min(exited + LINGER);
            if !self.piped() || now >= until {
                return;
            }
            self.pump(Some(until - now));
        }
    }

    /// Ends whatever of the command still runs; says what a command that ended by itself left.
    fn clear(&mut self) -> Vec<(u32, String)> {
        let by_itself = self.order() == Order::Run;
        let begun = Instant::now();
        let mut members = self.members();
        let stopped =
            if by_itself { members.iter().map(Member::told).collect() } else { Vec::new() };
        let mut told = false;
        while !members.is_empty() && begun.elapsed() < GIVE_UP {
            let kill = self.order() == Order::Kill || begun.elapsed() >= GRACE;
            if kill {
                for member in &members {
                    member.signal(Signal::KILL);
                }
            } else if !told {
                for member in &members {
                    member.signal(Signal::TERM);
                    // A stopped process takes a signal only when it goes on.
                    member.signal(Signal::CONT);
                }
                told = true;
            }
            self.pump(Some(LOOK));
            members = self.members();
        }
        stopped
    }

    fn members(&mut self) -> Vec<Member> {
        self.check_leader();
        self.shared.tree.members(self.exited.is_none())
    }

    /// Takes what still stands in the pipes; who may hold them now is not waited for.
    fn drain(&mut self) {
        let mut since = Instant::now();
        let begun = since;
        while self.piped() && self.order() < Order::Kill {
            if self.full() {
                self.pump(None);
                since = Instant::now();
            } else if since.max(self.last_output).elapsed() >= IDLE || begun.elapsed() >= LINGER {
                return;
            } else {
                self.pump(Some(LOOK));
            }
        }
    }

    fn finish(mut self, stopped: Vec<(u32, String)>) {
        self.finished = true;
        (self.output, self.errors, self.report, self.input) = (None, None, None, None);
        self.close_input();
        if !self.reported.is_empty() {
            let report = std::mem::take(&mut self.reported);
            self.shared.push(Ok(Output::Report(report.into())));
        }
        self.check_leader();
        let exit = if self.exited.is_some() {
            self.reap().map(|status| {
                Output::Exit(Exit { code: status.code(), signal: status.signal(), stopped })
            })
        } else {
            let text = format!("process {} does not end, not even when killed", self.shared.id);
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        };
        let left = self.exited.is_none();
        self.shared.push(exit);
        self.end();
        if left {
            // Whenever it does end, nothing of it remains.
            drop(self.reap());
        }
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        if self.exited.is_some() {
            self.shared.state().reaped = true;
        }
        self.child.wait()
    }

    fn end(&self) {
        self.shared.state().done = true;
        self.shared.ready.notify_one();
    }

    /// Notes the end of the leader without reaping it.
    fn check_leader(&mut self) {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if self.exited.is_none() && !matches!(waitid(WaitId::Pid(self.leader), how), Ok(None)) {
            self.exited = Some(Instant::now());
            self.held = None;
        }
    }

    fn full(&self) -> bool {
        self.shared.state().queued >= QUEUE_LIMIT
    }

    /// Waits for one event, at most `limit`, and handles what came.
    fn pump(&mut self, limit: Option<Duration>) {
        let (full, feeding) = {
            let state = self.shared.state();
            (state.queued >= QUEUE_LIMIT, state.input.ends || !state.input.queue.is_empty())
        };
        let ready = {
            let mut watched = vec![(Watched::Wake, self.shared.wake.as_fd(), PollFlags::IN)];
            if let Some(held) = &self.held {
                watched.push((Watched::Leader, held.as_fd(), PollFlags::IN));
            }
            if let Some(pipe) = self.output.as_ref().filter(|_| !full) {
                watched.push((Watched::Output, pipe.as_fd(), PollFlags::IN));
            }
            if let Some(pipe) = self.errors.as_ref().filter(|_| !full) {
                watched.push((Watched::Errors, pipe.as_fd(), PollFlags::IN));
            }
            if let Some(pipe) = &self.report {
                watched.push((Watched::Report, pipe.as_fd(), PollFlags::IN));
            }
            if let Some(pipe) = self.input.as_ref().filter(|_| feeding) {
                watched.push((Watched::Input, pipe.as_fd(), PollFlags::OUT));
            }
            let mut list: Vec<PollFd<'_>> = watched
                .iter()
                .map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags))
                .collect();
            let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
            if poll(&mut list, limit.as_ref()).is_err() {
                return;
            }
            let ready = list.iter().map(|fd| !fd.revents().is_empty());
            watched
                .iter()
                .zip(ready)
                .filter(|(_, ready)| *ready)
                .map(|(w, _)| w.0)
                .collect::<Vec<_>>()
        };
        for what in ready {
            self.handle(what);
        }
        if self.held.is_none() {
            self.check_leader();
        }
    }

    fn handle(&mut self, what: Watched) {
        match what {
            Watched::Wake => drop(rustix::io::read(&self.shared.wake, &mut [0; 8])),
            Watched::Leader => self.check_leader(),
            Watched::Output => {
                let pipe = self.output.take();
                self.output = pipe.filter(|pipe| self.take(Stream::Stdout, pipe));
            }
            Watched::Errors => {
                let pipe = self.errors.take();
                self.errors = pipe.filter(|pipe| self.take(Stream::Stderr, pipe));
            }
            Watched::Report => {
                let pipe = self.report.take();
                self.report = pipe.filter(|pipe| self.take_report(pipe));
            }
            Watched::Input => self.feed(),
        }
    }

    /// Reads once; false at the end of the pipe.
    fn take(&mut self, stream: Stream, pipe: &PipeReader) -> bool {
        self.buffer.clear();
        self.buffer.reserve(PIECE);
        match rustix::io::read(pipe, spare_capacity(&mut self.buffer)) {
            Ok(0) => false,
            Ok(length) => {
                let bytes = if length < SMALL {
                    Bytes::copy_from_slice(&self.buffer)
                } else {
                    std::mem::take(&mut self.buffer).into()
                };
                self.last_output = Instant::now();
                self.shared.push(Ok(Output::Bytes(stream, bytes)));
                true
            }
            Err(error) => error == rustix::io::Errno::INTR,
        }
    }

    fn take_report(&mut self, pipe: &PipeReader) -> bool {
        let mut buffer = [0; 4096];
        match rustix::io::read(pipe, &mut buffer) {
            Ok(0) => false,
            Ok(length) => {
                let room = REPORT_LIMIT - self.reported.len();
                self.reported.extend_from_slice(&buffer[..length.min(room)]);
                true
            }
            Err(error) => error == rustix::io::Errno::INTR,
        }
    }

    /// Writes once what waits for the program's input.
    fn feed(&mut self) {
        let Some(input) = &self.input else { return };
        let mut state = self.shared.state();
        if let Some(bytes) = state.input.queue.front_mut() {
            match rustix::io::write(input, bytes) {
                Ok(length) => {
                    bytes.advance(length);
                    let empty = bytes.is_empty();
                    state.input.bytes -= length;
                    if empty {
                        state.input.queue.pop_front();
                    }
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return,
                Err(_) => {
                    state.input.queue.clear();
                    state.input.ends = true;
                }
            }
        }
        let over = state.input.queue.is_empty() && state.input.ends;
        drop(state);
        if over {
            self.close_input();
        }
        self.shared.room.notify_waiters();
    }

    fn close_input(&mut self) {
        self.input = None;
        let mut state = self.shared.state();
        state.input = Input::default();
        drop(state);
        self.shared.room.notify_waiters();
    }
}

impl Drop for Supervisor {
    /// Leaves nothing behind, also when the thread broke off.
    fn drop(&mut self) {
        if !self.finished {
            self.shared.tree.signal_group(Signal::KILL);
            for member in self.shared.tree.members(true) {
                member.signal(Signal::KILL);
            }
            self.shared.state().reaped = true;
            drop(self.child.wait());
            self.shared.push(Err(io::Error::other("the supervision of the program broke off")));
            self.end();
        }
    }
}
