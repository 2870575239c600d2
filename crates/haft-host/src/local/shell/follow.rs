//! The thread that follows one command from its start until nothing of it is left.
//!
//! **Invariant:** it waits for nobody but the command's keeper, and for that never longer than a
//! stated time once the command has ended or was told to: not for the reader, not for who holds a
//! pipe.

use std::{
    collections::VecDeque,
    io::{self, Read},
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    process::ExitStatus,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::{Buf, Bytes};
use haft_sandbox::{Kept, PutBack};
use haft_types::Stream;
use rustix::{
    buffer::spare_capacity,
    event::{PollFd, PollFlags, Timespec, poll},
    fd::AsFd,
    fs::{OFlags, fcntl_setfl},
    io::{Errno, ioctl_fionread},
    pipe::fcntl_getpipe_size,
};

use super::{
    Input, Order, QUEUE_LIMIT, Shared,
    start::{PIPE_SIZE, Pipes},
    supervisor::kill_session,
    wire::{self, Told},
};
use crate::{Exit, Output};

/// How long pipes must be silent after the end of the command.
const IDLE: Duration = Duration::from_millis(100);
/// How long the output of others is waited for after the end of the command.
const LINGER: Duration = Duration::from_secs(2);
/// How often silent pipes are looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How often the end of a terminal's input is told again.
const AGAIN: Duration = Duration::from_millis(500);
/// How much is read at once.
const PIECE: usize = 256 << 10;
/// What is smaller is copied, so that it does not hold a whole buffer.
const SMALL: usize = 32 << 10;
/// Where both streams have more than this, they are passed on in turns of so much.
const TURN: usize = 4 << 10;
/// Buffers that are kept to be used again.
const BUFFERS: usize = 16;
/// How much comes without a pause before a command is one that prints fast.
const FAST: usize = 512 << 10;
/// A longer time without output is a pause.
const PAUSE: Duration = Duration::from_millis(2);
/// How long the pipes of a fast command fill before they are read again: far fewer and larger reads,
/// which take less from the command than being woken at each of its writes.
const FILLING: Duration = Duration::from_micros(200);
/// The sign that ends the input of a terminal at the start of a line, twice.
const END_OF_INPUT: &[u8] = b"\x04\x04";

/// Processes by their numbers and command lines.
type Processes = Vec<(u32, String)>;

/// One command and our ends of its pipes.
#[derive(Debug)]
pub(super) struct Follower {
    shared: Arc<Shared>,
    input: Option<Arc<OwnedFd>>,
    output: Option<OwnedFd>,
    errors: Option<OwnedFd>,
    report: Option<OwnedFd>,
    /// Whether the input is a terminal, which knows an end only as a sign.
    terminal: bool,
    /// Our end of a terminal that nobody has open now: closing it would end the program.
    held: Option<OwnedFd>,
    buffer: Vec<u8>,
    /// What was read into, the oldest first; free once nobody holds the bytes any more.
    used: VecDeque<Bytes>,
    /// Bytes that came since the last pause.
    burst: usize,
    /// Whether the pipes are left alone for [`FILLING`].
    filling: bool,
    /// What the keeper said and was not understood yet.
    received: Vec<u8>,
    /// How the command itself ended, and when by [`Self::clock`].
    exited: Option<(ExitStatus, Duration)>,
    left: Left,
    /// What was stopped at the end of the command and what goes on, where that is not told yet.
    kept: Option<(Processes, Processes)>,
    /// By [`Self::clock`].
    last_output: Duration,
    began: Instant,
    /// Time in which there was no room for output.
    held_up: Duration,
    /// Bytes that may still be taken of each stream; none while there is no bound.
    room: Option<[usize; 2]>,
    finished: bool,
    /// What it was to leave as it is; none where nothing confines it.
    protected: Option<Kept>,
}

/// What of a command still runs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Left {
    /// What the keeper has not spoken about.
    Unknown,
    /// Nothing; what was stopped after its end.
    Nothing(Processes),
    /// What does not end, not even killed.
    Stuck(Processes),
    /// Nobody knows: its keeper is gone.
    Lost,
}

/// What [`Follower::pump`] watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    Wake,
    Keeper,
    Output,
    Errors,
    Report,
    Input,
}

impl Follower {
    pub(super) fn new(
        shared: Arc<Shared>,
        pipes: Pipes,
        received: Vec<u8>,
        protected: Option<Kept>,
    ) -> io::Result<Self> {
        shared.control.set_nonblocking(true)?;
        if let Some(input) = &pipes.input {
            fcntl_setfl(input, OFlags::NONBLOCK)?;
        }
        let input = pipes.input.map(Arc::new);
        shared.state().input.pipe = input.as_ref().map(Arc::downgrade).unwrap_or_default();
        let mut follower = Self {
            shared,
            input,
            output: Some(pipes.output),
            terminal: pipes.errors.is_none(),
            held: None,
            errors: pipes.errors,
            report: pipes.report,
            buffer: Vec::new(),
            used: VecDeque::new(),
            burst: 0,
            filling: false,
            received,
            exited: None,
            left: Left::Unknown,
            kept: None,
            last_output: Duration::ZERO,
            began: Instant::now(),
            held_up: Duration::ZERO,
            room: None,
            finished: false,
            protected,
        };
        follower.understand();
        Ok(follower)
    }

    /// Follows the command to its end.
    pub(super) fn run(mut self) {
        self.watch();
        if self.left == Left::Unknown && self.order() == Order::Run {
            self.shared.clear();
        }
        while self.left == Left::Unknown {
            self.pump(None);
            self.tell_kept();
        }
        self.drain(IDLE);
        self.finish();
    }

    fn order(&self) -> Order {
        self.shared.state().order
    }

    fn piped(&self) -> bool {
        self.output.is_some() || self.errors.is_some() || self.report.is_some()
    }

    /// Until nothing is left, or the command has ended and its pipes are silent, or it is told to
    /// end.
    fn watch(&mut self) {
        while self.order() == Order::Run && self.left == Left::Unknown {
            let Some((_, exited)) = self.exited else {
                let empty = self.terminal && self.input.is_none();
                self.pump(empty.then_some(AGAIN));
                if empty {
                    self.end_input_again();
                }
                continue;
            };
            let now = self.clock();
            let until = (exited.max(self.last_output) + IDLE).min(exited + LINGER);
            if !self.piped() || now >= until {
                return;
            }
            let full = self.full();
            self.pump((!full).then(|| until.saturating_sub(now)));
        }
    }

    /// Takes what still stands in the pipes, however slowly it is read; who may hold them now is not
    /// waited for.
    fn drain(&mut self, idle: Duration) {
        let begun = self.clock();
        let hold = |pipe: &Option<OwnedFd>| {
            let size = pipe.as_ref().and_then(|pipe| fcntl_getpipe_size(pipe).ok());
            size.unwrap_or(PIPE_SIZE)
        };
        self.room = Some([hold(&self.output), hold(&self.errors)]);
        while self.may_come() && self.order() < Order::Kill {
            let now = self.clock();
            if self.full() {
                self.pump(None);
            } else if now >= (begun.max(self.last_output) + idle).min(begun + LINGER) {
                return;
            } else {
                self.pump(Some(LOOK));
            }
        }
    }

    fn may_come(&self) -> bool {
        (self.output.is_some() && self.may_take(Stream::Stdout))
            || (self.errors.is_some() && self.may_take(Stream::Stderr))
            || self.report.is_some()
    }

    fn may_take(&self, stream: Stream) -> bool {
        self.room.is_none_or(|room| room[usize::from(stream == Stream::Stderr)] > 0)
    }

    /// Time since the start in which there was room for output: a slow reader stops it.
    fn clock(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.held_up)
    }

    /// Tells the end of a command of which something goes on, behind what came before it.
    fn tell_kept(&mut self) {
        let Some((stopped, kept)) = self.kept.take() else { return };
        let Some((status, _)) = self.exited else { return self.lost() };
        self.drain(LOOK);
        (self.room, self.report) = (None, None);
        let (code, signal, put_back) = (status.code(), status.signal(), self.put_back());
        let exit = Exit { code, signal, stopped, kept, put_back, ..Exit::default() };
        self.shared.push(Ok(Output::Exit(exit)));
    }

    fn finish(mut self) {
        self.finished = true;
        if let (Left::Lost, Some(session)) = (&self.left, self.shared.session) {
            kill_session(session, self.exited.is_some());
        }
        (self.output, self.errors, self.report, self.input) = (None, None, None, None);
        self.held = None;
        self.close_input();
        self.shared.push(self.end());
        self.over();
    }

    /// How it ended.
    fn end(&self) -> io::Result<Output> {
        let stuck = || {
            let text = format!("process {} does not end, not even when killed", self.shared.id);
            io::Error::new(io::ErrorKind::TimedOut, text)
        };
        let lost = || io::Error::other("the supervision of the program broke off");
        let (status, stopped, stuck) = match (&self.left, self.exited) {
            (Left::Nothing(stopped), Some((status, _))) => (status, stopped.clone(), Vec::new()),
            (Left::Stuck(stuck), Some((status, _))) => (status, Vec::new(), stuck.clone()),
            (Left::Stuck(_), None) => return Err(stuck()),
            _ => return Err(lost()),
        };
        let (code, signal, put_back) = (status.code(), status.signal(), self.put_back());
        Ok(Output::Exit(Exit { code, signal, stopped, stuck, kept: Vec::new(), put_back }))
    }

    /// Puts back what it changed though that was protected.
    fn put_back(&self) -> Vec<PutBack> {
        self.protected.as_ref().map(Kept::put_back).unwrap_or_default()
    }

    fn over(&self) {
        self.shared.state().done = true;
        self.shared.ready.notify_one();
    }

    /// Takes in what the keeper says.
    fn listen(&mut self) {
        let mut buffer = [0; 4096];
        match (&self.shared.control).read(&mut buffer) {
            Ok(0) => self.lost(),
            Ok(length) => {
                self.received.extend_from_slice(&buffer[..length]);
                self.understand();
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(_) => self.lost(),
        }
    }

    fn understand(&mut self) {
        loop {
            match Told::take(&mut self.received) {
                Ok(None) => return,
                Ok(Some(Told::Exited(status))) => {
                    self.exited = Some((ExitStatus::from_raw(status), self.clock()));
                }
                Ok(Some(Told::Gone(stopped))) => self.left = Left::Nothing(stopped),
                Ok(Some(Told::Stuck(left))) => self.left = Left::Stuck(left),
                Ok(Some(Told::Kept(stopped, kept))) => self.kept = Some((stopped, kept)),
                Ok(Some(Told::Started(_) | Told::Failed(..))) | Err(_) => return self.lost(),
            }
        }
    }

    fn lost(&mut self) {
        if self.left == Left::Unknown {
            self.left = Left::Lost;
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
            if self.left == Left::Unknown {
                watched.push((Watched::Keeper, self.shared.control.as_fd(), PollFlags::IN));
            }
            let reading = !full && !self.filling;
            let reading = |stream| reading && self.may_take(stream);
            if let Some(pipe) = self.output.as_ref().filter(|_| reading(Stream::Stdout)) {
                watched.push((Watched::Output, pipe.as_fd(), PollFlags::IN));
            }
            if let Some(pipe) = self.errors.as_ref().filter(|_| reading(Stream::Stderr)) {
                watched.push((Watched::Errors, pipe.as_fd(), PollFlags::IN));
            }
            if let Some(pipe) = self.report.as_ref().filter(|_| !full) {
                watched.push((Watched::Report, pipe.as_fd(), PollFlags::IN));
            }
            if let Some(pipe) = self.input.as_ref().filter(|_| feeding) {
                watched.push((Watched::Input, pipe.as_fd(), PollFlags::OUT));
            }
            let mut list: Vec<PollFd<'_>> = watched
                .iter()
                .map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags))
                .collect();
            let limit = if self.filling && !full { Some(FILLING) } else { limit };
            let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
            self.filling = false;
            let begun = Instant::now();
            let polled = poll(&mut list, limit.as_ref());
            if full {
                self.held_up += begun.elapsed();
            }
            if polled.is_err() {
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
        self.take_both(ready.contains(&Watched::Output), ready.contains(&Watched::Errors));
        // What is reported may be about the output before it.
        for what in ready {
            self.handle(what);
        }
    }

    /// Reads once of these streams.
    fn take_both(&mut self, output: bool, errors: bool) {
        let out = if output { self.take_output() } else { Bytes::new() };
        let err = if errors { self.take_errors() } else { Bytes::new() };
        for (stream, bytes) in merged(out, err) {
            self.shared.push(Ok(Output::Bytes(stream, bytes)));
        }
    }

    fn take_output(&mut self) -> Bytes {
        let Some(pipe) = self.output.take() else { return Bytes::new() };
        match self.take(Stream::Stdout, &pipe) {
            Some(bytes) => {
                self.output = Some(pipe);
                return bytes;
            }
            None if self.terminal => self.held = Some(pipe),
            None => {}
        }
        Bytes::new()
    }

    fn take_errors(&mut self) -> Bytes {
        let Some(pipe) = self.errors.take() else { return Bytes::new() };
        let bytes = self.take(Stream::Stderr, &pipe);
        self.errors = bytes.is_some().then_some(pipe);
        bytes.unwrap_or_default()
    }

    fn handle(&mut self, what: Watched) {
        match what {
            Watched::Wake => drop(rustix::io::read(&self.shared.wake, &mut [0; 8])),
            Watched::Keeper => self.listen(),
            // Taken together, before.
            Watched::Output | Watched::Errors => {}
            Watched::Report => {
                let pipe = self.report.take();
                self.report = pipe.filter(|pipe| self.take_report(pipe));
            }
            Watched::Input => self.feed(),
        }
    }

    /// Reads once; none at the end of the pipe.
    fn take(&mut self, stream: Stream, pipe: &OwnedFd) -> Option<Bytes> {
        self.prepare_buffer();
        match rustix::io::read(pipe, spare_capacity(&mut self.buffer)) {
            Ok(0) => None,
            Ok(length) => {
                let bytes = if length < SMALL {
                    let bytes = Bytes::copy_from_slice(&self.buffer);
                    self.buffer.clear();
                    bytes
                } else {
                    let bytes = Bytes::from(std::mem::take(&mut self.buffer));
                    if self.used.len() < BUFFERS {
                        self.used.push_back(bytes.clone());
                    }
                    bytes
                };
                let (now, before) = (self.clock(), self.last_output);
                self.burst = if now < before + PAUSE { self.burst + length } else { length };
                self.filling = self.burst >= FAST && length < PIECE;
                self.last_output = now;
                if let Some(room) = &mut self.room {
                    let room = &mut room[usize::from(stream == Stream::Stderr)];
                    *room = room.saturating_sub(length);
                }
                Some(bytes)
            }
            // A terminal without a program gives an error at its end.
            Err(error) => matches!(error, Errno::INTR | Errno::AGAIN).then(Bytes::new),
        }
    }

    /// Makes room to read into, in memory that was used before where nobody needs it any more.
    fn prepare_buffer(&mut self) {
        if self.buffer.capacity() >= PIECE {
            return;
        }
        self.buffer = match self.used.pop_front_if(|oldest| oldest.is_unique()) {
            Some(mut oldest) => {
                oldest.truncate(0);
                oldest.into()
            }
            None => Vec::with_capacity(PIECE),
        };
    }

    fn take_report(&mut self, pipe: &OwnedFd) -> bool {
        let mut buffer = [0; 4096];
        match rustix::io::read(pipe, &mut buffer) {
            Ok(0) => false,
            Ok(length) => {
                self.take_what_stands();
                let report = Bytes::copy_from_slice(&buffer[..length]);
                self.shared.push(Ok(Output::Report(report)));
                true
            }
            // A terminal without a program gives an error at its end.
            Err(error) => matches!(error, Errno::INTR | Errno::AGAIN),
        }
    }

    /// Takes what stands in the pipes now: what was written before a report comes before it. What
    /// comes meanwhile is not waited for.
    fn take_what_stands(&mut self) {
        let standing = |pipe: &Option<OwnedFd>| {
            pipe.as_ref().and_then(|pipe| ioctl_fionread(pipe).ok()).unwrap_or_default()
        };
        let both = [standing(&self.output), standing(&self.errors)];
        for _ in 0..both[0].max(both[1]).div_ceil(PIECE as u64) {
            self.take_both(standing(&self.output) > 0, standing(&self.errors) > 0);
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
                Err(Errno::AGAIN | Errno::INTR) => return,
                Err(_) => {
                    state.input.queue.clear();
                    state.input.ends = true;
                }
            }
        }
        let over = state.input.queue.is_empty() && state.input.ends;
        drop(state);
        if over {
            if self.terminal {
                // The first ends a line that was begun, or the input; then the second does.
                let _ = rustix::io::write(input, END_OF_INPUT);
            }
            self.close_input();
        }
        self.shared.room.notify_waiters();
    }

    /// Programs that set their terminal up throw away what was typed before, an end too.
    fn end_input_again(&self) {
        if let Some(terminal) = self.output.as_ref().or(self.held.as_ref()) {
            let _ = rustix::io::write(terminal, END_OF_INPUT);
        }
    }

    fn close_input(&mut self) {
        self.input = None;
        let mut state = self.shared.state();
        state.input = Input::default();
        drop(state);
        self.shared.room.notify_waiters();
    }
}

/// What of both streams was there at the same time, in the order in which it may have come: the
/// output first, and where both have much, parts of both in turns.
fn merged(out: Bytes, err: Bytes) -> impl Iterator<Item = (Stream, Bytes)> {
    let much = out.len().min(err.len()) > TURN;
    let turns = if much { out.len().max(err.len()).div_ceil(TURN) } else { 1 };
    (0..turns).flat_map(move |turn| {
        let part = |bytes: &Bytes| {
            bytes.slice(bytes.len() * turn / turns..bytes.len() * (turn + 1) / turns)
        };
        let parts = [(Stream::Stdout, part(&out)), (Stream::Stderr, part(&err))];
        parts.into_iter().filter(|(_, bytes)| !bytes.is_empty())
    })
}

impl Drop for Follower {
    /// Leaves nothing behind, also when the thread broke off.
    fn drop(&mut self) {
        if !self.finished {
            self.shared.say(wire::Order::Kill);
            self.shared.push(Err(io::Error::other("the following of the program broke off")));
            self.over();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_of_both_streams_comes_in_turns() {
        for (out, err, most) in [(0, 9, 9), (9, 0, 9), (900, 4_000, 4_000), (1 << 18, 99, 1 << 18)]
        {
            let parts: Vec<_> = merged(vec![b'o'; out].into(), vec![b'e'; err].into()).collect();
            assert_eq!(parts.iter().map(|(_, part)| part.len()).sum::<usize>(), out + err);
            assert_eq!(parts.iter().map(|(_, part)| part.len()).max(), Some(most));
            assert!(parts.is_sorted_by_key(|(stream, _)| *stream == Stream::Stderr));
        }
        // Both began and ended together.
        for (out, err) in [(1 << 18, 1 << 18), (5_000, 1 << 18), (77_777, 4_097)] {
            let (mut took, mut text) = ([0_usize; 2], Vec::new());
            let numbered =
                |length: usize| (0..length).map(|n| n.to_le_bytes()[0]).collect::<Vec<_>>();
            for (stream, part) in merged(numbered(out).into(), numbered(err).into()) {
                assert!(part.len() <= TURN, "{}", part.len());
                took[usize::from(stream == Stream::Stderr)] += part.len();
                let ahead = (took[0] * err).abs_diff(took[1] * out) / out.max(err);
                assert!(ahead <= TURN, "{took:?} of {out} and {err}");
                if stream == Stream::Stdout {
                    text.extend_from_slice(&part);
                }
            }
            assert_eq!((took, text), ([out, err], numbered(out)));
        }
    }
}
