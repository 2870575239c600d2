//! The thread that follows one command from its start until nothing of it is left.
//!
//! **Invariant:** the thread waits for nobody but the command's monitor: not for the reader, not
//! for whoever holds a pipe. Once the command has ended or was told to end, it waits for the
//! monitor never longer than a stated time.

use std::{
    collections::VecDeque,
    io::{self, Read},
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    process::ExitStatus,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::{Buf, Bytes};
use haft_types::Stream;
use rustix::{
    buffer::spare_capacity,
    event::{PollFd, PollFlags, Timespec, poll},
    fd::AsFd,
    fs::{OFlags, fcntl_setfl},
    io::{Errno, ioctl_fionread},
    pipe::fcntl_getpipe_size,
    termios::{LocalModes, tcgetattr},
};

use super::{
    Input, Order, QUEUE_LIMIT, Shared,
    start::{PIPE_SIZE, Pipes},
    supervisor::kill_session,
    supervisor_protocol::{self, MonitorEvent},
};
use crate::{Exit, Output};

/// How long pipes must be silent after the end of the command.
const IDLE: Duration = Duration::from_millis(100);
/// How long the output of others is waited for after the end of the command.
const LINGER: Duration = Duration::from_secs(2);
/// How often silent pipes are looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How often the end of a terminal's input is told again; to programs that take the sign as a key, each
/// time half as often.
const AGAIN: Duration = Duration::from_millis(500);
/// How often it is told to programs whose terminal shows the sign.
const SHOWN: u32 = 3;
/// How much is read at once.
const PIECE: usize = 256 << 10;
/// What is smaller is copied, so that it does not hold a whole buffer.
const SMALL: usize = 32 << 10;
/// Where both streams have more than this, they are passed on in turns of so much.
const TURN: usize = 4 << 10;
/// The same in lines, which may be short.
const TURN_LINES: usize = 32;
/// Most turns of so few lines.
const TURNS: usize = 64;
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
    /// How often the end of its input was told as a key, and when it is to be told again, since the
    /// start.
    signs: (u32, Duration),
    /// Our end of a terminal that nobody has open now: closing it would end the program.
    held: Option<OwnedFd>,
    buffer: Vec<u8>,
    /// What was read into, the oldest first; free once nobody holds the bytes any more.
    used: VecDeque<Bytes>,
    /// Bytes of each stream that came since its last pause, and when it was read last, by
    /// [`Self::clock`].
    bursts: [(usize, Duration); 2],
    /// Whose pipes are left alone for [`FILLING`].
    filling: [bool; 2],
    /// What the keeper said and was not understood yet.
    received: Vec<u8>,
    /// How the command itself ended, and when by [`Self::clock`].
    exited: Option<(ExitStatus, Duration)>,
    left: Remaining,
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
}

/// What of a command still runs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Remaining {
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
    pub(super) fn new(shared: Arc<Shared>, pipes: Pipes, received: Vec<u8>) -> io::Result<Self> {
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
            signs: (0, AGAIN),
            held: None,
            errors: pipes.errors,
            report: pipes.report,
            buffer: Vec::new(),
            used: VecDeque::new(),
            bursts: Default::default(),
            filling: [false; 2],
            received,
            exited: None,
            left: Remaining::Unknown,
            kept: None,
            last_output: Duration::ZERO,
            began: Instant::now(),
            held_up: Duration::ZERO,
            room: None,
            finished: false,
        };
        follower.understand();
        Ok(follower)
    }

    /// Follows the command to its end.
    pub(super) fn run(mut self) {
        self.watch();
        if self.left == Remaining::Unknown && self.order() == Order::Run {
            self.shared.clear();
        }
        while self.left == Remaining::Unknown {
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
        while self.order() == Order::Run && self.left == Remaining::Unknown {
            let Some((_, exited)) = self.exited else {
                let empty = self.terminal && self.input.is_none();
                self.pump(empty.then(|| self.signs.1.saturating_sub(self.began.elapsed())));
                if empty && self.began.elapsed() >= self.signs.1 {
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
        self.room.is_none_or(|room| room[number(stream)] > 0)
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
        let (code, signal, put_back) = (status.code(), status.signal(), self.shared.put_back());
        let tried = self.shared.tried_at_end();
        let exit = Exit { code, signal, stopped, kept, put_back, tried, ..Exit::default() };
        self.shared.push(Ok(Output::Exit(exit)));
    }

    fn finish(mut self) {
        self.finished = true;
        if let (Remaining::Lost, Some(session)) = (&self.left, self.shared.session) {
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
            (Remaining::Nothing(stopped), Some((status, _))) => {
                (status, stopped.clone(), Vec::new())
            }
            (Remaining::Stuck(stuck), Some((status, _))) => (status, Vec::new(), stuck.clone()),
            (Remaining::Stuck(_), None) => return Err(stuck()),
            _ => return Err(lost()),
        };
        let (code, signal, put_back) = (status.code(), status.signal(), self.shared.put_back());
        let tried = self.shared.tried_at_end();
        Ok(Output::Exit(Exit { code, signal, stopped, stuck, kept: Vec::new(), put_back, tried }))
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
            match MonitorEvent::take(&mut self.received) {
                Ok(None) => return,
                Ok(Some(MonitorEvent::Exited(status))) => {
                    self.exited = Some((ExitStatus::from_raw(status), self.clock()));
                }
                Ok(Some(MonitorEvent::Gone(stopped))) => self.left = Remaining::Nothing(stopped),
                Ok(Some(MonitorEvent::Stuck(left))) => self.left = Remaining::Stuck(left),
                Ok(Some(MonitorEvent::Kept(stopped, kept))) => self.kept = Some((stopped, kept)),
                Ok(Some(MonitorEvent::Tried(attempts))) => {
                    self.shared.tries(attempts);
                    if self.exited.is_none() {
                        self.shared.heard();
                    }
                }
                Ok(Some(MonitorEvent::Started(..) | MonitorEvent::Failed(..))) | Err(_) => {
                    return self.lost();
                }
            }
        }
    }

    fn lost(&mut self) {
        if self.left == Remaining::Unknown {
            self.left = Remaining::Lost;
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
        let filling = std::mem::take(&mut self.filling);
        let ready = {
            let mut watched = vec![(Watched::Wake, self.shared.wake.as_fd(), PollFlags::IN)];
            if self.left == Remaining::Unknown {
                watched.push((Watched::Keeper, self.shared.control.as_fd(), PollFlags::IN));
            }
            let reading = |stream| !full && !filling[number(stream)] && self.may_take(stream);
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
            let limit = if filling.contains(&true) && !full { Some(FILLING) } else { limit };
            let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
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
        let ready_of = |what, left_alone, pipe: &Option<OwnedFd>| {
            ready.contains(&what) || (left_alone && standing(pipe.as_ref()) > 0)
        };
        let any = ready.iter().any(|what| matches!(what, Watched::Output | Watched::Errors));
        let errors = ready_of(Watched::Errors, any && filling[1], &self.errors);
        let output = ready_of(Watched::Output, any && filling[0], &self.output);
        self.take_both(output, errors);
        // What is reported may be about the output before it.
        for what in ready {
            self.handle(what);
        }
    }

    /// Reads of these streams what stands in them now. What stands in the errors is measured first, and
    /// what stands in the output then comes before it: whatever was written before a line of errors
    /// is passed on before it. What comes meanwhile is left for the next time.
    fn take_both(&mut self, output: bool, errors: bool) {
        let err = standing(self.errors.as_ref());
        let out = standing(self.output.as_ref());
        let output = output || (errors && err > 0 && out > 0);
        let most = |standing: usize, alone| match alone {
            true if self.terminal => PIECE,
            true => standing.clamp(1, PIECE),
            false => standing.max(1),
        };
        let (err, out) = (most(err, !output), most(out, !errors));
        let out = if output { self.take_up_to(Stream::Stdout, out, false) } else { Vec::new() };
        let err = if errors { self.take_up_to(Stream::Stderr, err, output) } else { Vec::new() };
        for (stream, bytes) in merged(out, err) {
            self.shared.push(Ok(Output::Bytes(stream, bytes)));
        }
    }

    /// Reads until so much has come, where it is to be `exact` no more, or as much as there is room for.
    fn take_up_to(&mut self, stream: Stream, mut most: usize, exact: bool) -> Vec<Bytes> {
        let mut all = Vec::new();
        while most > 0 && self.may_take(stream) {
            let bytes = match stream {
                Stream::Stdout => self.take_output(most),
                Stream::Stderr => self.take_errors(most, exact),
            };
            if bytes.is_empty() {
                break;
            }
            most = if most <= PIECE && !exact { 0 } else { most.saturating_sub(bytes.len()) };
            all.push(bytes);
        }
        all
    }

    fn take_output(&mut self, most: usize) -> Bytes {
        let Some(pipe) = self.output.take() else { return Bytes::new() };
        match self.take(Stream::Stdout, &pipe, most, false) {
            Some(bytes) => {
                self.output = Some(pipe);
                return bytes;
            }
            None if self.terminal => self.held = Some(pipe),
            None => {}
        }
        Bytes::new()
    }

    fn take_errors(&mut self, most: usize, exact: bool) -> Bytes {
        let Some(pipe) = self.errors.take() else { return Bytes::new() };
        let bytes = self.take(Stream::Stderr, &pipe, most, exact);
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

    /// Reads once, of what is little or to be `exact` no more than `most`; none at the end of the pipe.
    fn take(&mut self, stream: Stream, pipe: &OwnedFd, most: usize, exact: bool) -> Option<Bytes> {
        let mut small = Vec::new();
        let is_small = most < SMALL || exact;
        let into = if is_small {
            small.reserve_exact(most.min(PIECE));
            &mut small
        } else {
            self.prepare_buffer();
            &mut self.buffer
        };
        match rustix::io::read(pipe, spare_capacity(into)) {
            Ok(0) => None,
            Ok(length) => {
                let bytes = if is_small { small.into() } else { self.read(length) };
                let now = self.clock();
                let (burst, before) = &mut self.bursts[number(stream)];
                *burst = if now < *before + PAUSE { *burst + length } else { length };
                *before = now;
                self.filling[number(stream)] = *burst >= FAST && length < PIECE;
                self.last_output = now;
                if let Some(room) = &mut self.room {
                    let room = &mut room[number(stream)];
                    *room = room.saturating_sub(length);
                }
                Some(bytes)
            }
            // A terminal without a program gives an error at its end.
            Err(error) => matches!(error, Errno::INTR | Errno::AGAIN).then(Bytes::new),
        }
    }

    /// What was read into the buffer.
    fn read(&mut self, length: usize) -> Bytes {
        if length < SMALL {
            let bytes = Bytes::copy_from_slice(&self.buffer);
            self.buffer.clear();
            return bytes;
        }
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        if self.used.len() < BUFFERS {
            self.used.push_back(bytes.clone());
        }
        bytes
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
        let mut left = standing(self.output.as_ref()).max(standing(self.errors.as_ref()));
        while left > 0 {
            self.take_both(standing(self.output.as_ref()) > 0, standing(self.errors.as_ref()) > 0);
            left = left.saturating_sub(PIECE);
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
    fn end_input_again(&mut self) {
        let Some(terminal) = self.output.as_ref().or(self.held.as_ref()) else { return };
        let modes = tcgetattr(terminal).map_or(LocalModes::ICANON, |set| set.local_modes);
        let (told, _) = self.signs;
        let is_key = !modes.contains(LocalModes::ICANON);
        if !is_key || told < SHOWN || !modes.contains(LocalModes::ECHO) {
            let _ = rustix::io::write(terminal, END_OF_INPUT);
        }
        let told = told + u32::from(is_key);
        self.signs = (told, self.began.elapsed() + AGAIN * (1 << told.min(6)));
    }

    fn close_input(&mut self) {
        self.input = None;
        let mut state = self.shared.state();
        state.input = Input::default();
        drop(state);
        self.shared.room.notify_waiters();
    }
}

/// The place of a stream where there is one for each.
fn number(stream: Stream) -> usize {
    usize::from(stream == Stream::Stderr)
}

/// Bytes that can be read of a pipe now.
fn standing(pipe: Option<&OwnedFd>) -> usize {
    let bytes = pipe.and_then(|pipe| ioctl_fionread(pipe).ok());
    bytes.and_then(|bytes| bytes.try_into().ok()).unwrap_or_default()
}

/// What of both streams was there at the same time, in the order in which it may have come: the
/// output first, and where both have much, parts of both in turns.
fn merged(out: Vec<Bytes>, err: Vec<Bytes>) -> Vec<(Stream, Bytes)> {
    let lengths = [&out, &err].map(|all| all.iter().map(Bytes::len).sum::<usize>());
    let turns = if lengths.contains(&0) { 1 } else { turns(&out, &err, lengths) };
    let mut both = [(Stream::Stdout, VecDeque::from(out)), (Stream::Stderr, VecDeque::from(err))];
    let mut all = Vec::new();
    for turn in 0..turns {
        for ((stream, pieces), length) in both.iter_mut().zip(lengths) {
            let mut left = length * (turn + 1) / turns - length * turn / turns;
            while let Some(piece) = pieces.front_mut().filter(|_| left > 0) {
                let part = piece.split_to(left.min(piece.len()));
                left -= part.len();
                if piece.is_empty() {
                    pieces.pop_front();
                }
                all.push((*stream, part));
            }
        }
    }
    all
}

/// In how many turns both streams are passed on.
fn turns(out: &[Bytes], err: &[Bytes], lengths: [usize; 2]) -> usize {
    let turns = |[out, err]: [usize; 2], much| {
        if out.min(err) > much { out.max(err).div_ceil(much) } else { 1 }
    };
    let lines = [out, err].map(|all| all.iter().map(|one| lines(one)).sum());
    turns(lengths, TURN).max(turns(lines, TURN_LINES).min(TURNS))
}

fn lines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

impl Drop for Follower {
    /// Leaves nothing behind, also when the thread broke off.
    fn drop(&mut self) {
        if !self.finished {
            self.shared.say(supervisor_protocol::Order::Kill);
            self.shared.push(Err(io::Error::other("the following of the program broke off")));
            self.over();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same bytes in pieces.
    fn cut(bytes: &[u8]) -> Vec<Bytes> {
        bytes.chunks(70_001).map(Bytes::copy_from_slice).collect()
    }

    #[test]
    fn many_lines_of_both_streams_come_in_turns() {
        let text = |stream, n: usize| format!("{stream}{n}\n").repeat(n);
        for (out, err, most) in [(32, 2_000, 32), (2_000, 32, 2_000), (33, 64, 17), (400, 300, 31)]
        {
            let (out, err) = (text("o", out), text("e", err));
            let parts = merged(cut(out.as_bytes()), cut(err.as_bytes()));
            let of = |stream| parts.iter().filter(move |part| part.0 == stream).map(|part| &part.1);
            assert_eq!(of(Stream::Stdout).flatten().copied().collect::<Vec<_>>(), out.as_bytes());
            assert_eq!(of(Stream::Stderr).flatten().copied().collect::<Vec<_>>(), err.as_bytes());
            assert_eq!(of(Stream::Stdout).map(|part| lines(part)).max(), Some(most));
        }
    }

    #[test]
    fn much_of_both_streams_comes_in_turns() {
        for (out, err, most) in [(0, 9, 9), (9, 0, 9), (900, 4_000, 4_000), (1 << 18, 99, 70_001)] {
            let parts = merged(cut(&vec![b'o'; out]), cut(&vec![b'e'; err]));
            assert_eq!(parts.iter().map(|(_, part)| part.len()).sum::<usize>(), out + err);
            assert_eq!(parts.iter().map(|(_, part)| part.len()).max(), Some(most));
            assert!(parts.is_sorted_by_key(|(stream, _)| *stream == Stream::Stderr));
        }
        // Both began and ended together.
        for (out, err) in [(1 << 18, 1 << 18), (5_000, 1 << 18), (77_777, 4_097)] {
            let (mut took, mut text) = ([0_usize; 2], Vec::new());
            let numbered =
                |length: usize| (0..length).map(|n| n.to_le_bytes()[0]).collect::<Vec<_>>();
            for (stream, part) in merged(cut(&numbered(out)), cut(&numbered(err))) {
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
