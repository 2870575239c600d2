//! The monitor process of one command: its parent, to which everything the command starts is
//! reparented.
//!
//! **Invariant:** the monitor ends only when nothing of the command is left, including what goes on
//! after it. It waits for nobody: neither for haft to read its events, nor for a process that
//! ignores a signal. When haft is gone, the command is stopped as at a timeout.

use std::{
    collections::HashSet,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, Signal, WaitOptions, getpid, kill_process_group, wait},
};

use super::{
    descendants::{Process, ROUNDS, Spared, descendants},
    refusing::Refusing,
    signals::Signals,
    spawn::{Group, Leader, Refused, Started, Stdio},
};
use crate::local::shell::supervisor_protocol::{MonitorEvent, MonitorRequest, Order};

/// How long what was told to end may take before it is killed.
const GRACE: Duration = Duration::from_millis(500);
/// How long killing is tried before it is said that it does not help.
const GIVE_UP: Duration = Duration::from_secs(3);
/// Time between two looks at what is being killed.
const LOOK: Duration = Duration::from_millis(10);
/// The same once it was given up.
const SELDOM: Duration = Duration::from_secs(1);

/// One command and what became of it.
#[derive(Debug)]
struct Keeper<'a> {
    control: UnixStream,
    /// False once haft says nothing more.
    heard: bool,
    /// What haft said and was not understood yet.
    received: Vec<u8>,
    /// What is said to haft with the next that is.
    unsaid: Vec<u8>,
    signals: &'a Signals,
    /// The program itself, until it is reaped: then its number may be somebody else's.
    leader: Option<Pid>,
    /// What holds all that is in the namespaces of the program, where it has some: it takes in what
    /// has ended, and ends behind the last.
    first: Option<Process>,
    /// What it was told, and since when.
    order: Option<(Order, Instant)>,
    /// Whether everything was told to end.
    asked: bool,
    /// Whether it was said that something does not end.
    given_up: bool,
    stopped: Vec<(u32, String)>,
    /// What goes on when the command ends.
    spared: Spared,
    /// What is heard of the network.
    refusing: Refusing,
}

/// Keeps to its end what haft asks for over this connection: what the leader becomes, or what is started
/// with these descriptors.
pub(super) fn keep(
    mut control: UnixStream,
    leader: Option<Leader>,
    stdio: Option<Stdio>,
    signals: &Signals,
) -> io::Result<()> {
    let started = match (leader, stdio) {
        (Some(leader), None) => leader.started(),
        (_, Some(stdio)) => start_anew(&control, stdio),
        (None, None) => Err(io::Error::from(io::ErrorKind::InvalidData).into()),
    };
    let Started { pid: leader, first, listener, tried } = match started {
        Ok(started) => started,
        Err(Refused(code, why)) => {
            // Who does not listen any more has changed their mind.
            let _ = MonitorEvent::Failed(code, why).send(&mut control);
            return Ok(());
        }
    };
    control.set_nonblocking(true)?;
    let (order, stopped) = (None, Vec::new());
    let mut keeper = Keeper {
        control,
        heard: true,
        received: Vec::new(),
        unsaid: Vec::new(),
        signals,
        leader: Some(leader),
        first: first.and_then(Process::of),
        order,
        asked: false,
        given_up: false,
        stopped,
        spared: Spared::default(),
        refusing: Refusing::new(listener, tried),
    };
    let number = |pid: Pid| pid.as_raw_pid().cast_unsigned();
    keeper.tell_soon(&MonitorEvent::Started(number(leader), first.map_or(0, number)));
    if let Some(tried) = keeper.refusing.at_start() {
        keeper.tell_soon(&MonitorEvent::Tried(tried));
    }
    keeper.tell_now();
    keeper.run();
    Ok(())
}

/// Starts a program with a process that is split off now: at a terminal, which becomes the keeper's own, and
/// where none could be split off before.
fn start_anew(control: &UnixStream, stdio: Stdio) -> Result<Started, Refused> {
    let group = if rustix::termios::isatty(&stdio.input) {
        rustix::process::setsid()?;
        rustix::process::ioctl_tiocsctty(&stdio.input)?;
        Group::Foreground
    } else {
        Group::Session
    };
    Leader::anew(control, stdio, group)?.started()
}

impl Keeper<'_> {
    fn run(&mut self) {
        while !self.reap() {
            let limit = self.press();
            self.wait(limit);
        }
        let stopped = std::mem::take(&mut self.stopped);
        self.tell(&MonitorEvent::Gone(stopped));
    }

    /// Says something to haft, if that is still there. Its side has room for all that is ever
    /// said to it.
    fn tell(&mut self, told: &MonitorEvent) {
        self.tell_soon(told);
        self.tell_now();
    }

    /// Says it with what is said next, so that haft wakes once for both.
    fn tell_soon(&mut self, told: &MonitorEvent) {
        self.heard &= told.send(&mut self.unsaid).is_ok();
    }

    fn tell_now(&mut self) {
        let unsaid = std::mem::take(&mut self.unsaid);
        self.heard &= self.control.write_all(&unsaid).is_ok();
    }

    /// Takes in what has ended; true when nothing is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if self.leader == Some(pid) => {
                    self.leader = None;
                    if let Some(tried) = self.refusing.at_end() {
                        self.tell_soon(&MonitorEvent::Tried(tried));
                    }
                    self.tell_soon(&MonitorEvent::Exited(status.as_raw()));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => {
                    self.tell_now();
                    return false;
                }
                // No child and so, by what a subreaper is, no descendant.
                Err(_) => return true,
            }
        }
    }

    /// Does what was told; how long to wait for an effect.
    fn press(&mut self) -> Option<Duration> {
        let (order, since) = self.order?;
        let elapsed = since.elapsed();
        if order == Order::Clear && !self.spared.is_empty() {
            return self.clear(elapsed);
        }
        if order < Order::Kill && elapsed < GRACE {
            if !self.asked {
                self.ask(&descendants(getpid(), |_| false), order == Order::Clear);
            }
            return Some(GRACE.saturating_sub(elapsed));
        }
        kill(getpid(), |_| false);
        if elapsed < GRACE + GIVE_UP {
            return Some(LOOK);
        }
        if !self.given_up {
            self.given_up = true;
            let left = descendants(getpid(), |_| false);
            self.tell(&MonitorEvent::Stuck(
                left.iter().map(|process| process.describe()).collect(),
            ));
        }
        Some(SELDOM)
    }

    /// Ends what the command left but for what goes on, which is then kept as before.
    fn clear(&mut self, elapsed: Duration) -> Option<Duration> {
        let (mut others, kept) = self.spared.divide(getpid());
        others.retain(|process| !self.first.is_some_and(|first| first.is(*process)));
        if kept.is_empty() || elapsed >= GRACE + GIVE_UP {
            self.spared = Spared::default();
            return self.press();
        }
        if others.is_empty() {
            let kept = kept.iter().map(|process| process.describe()).collect();
            let stopped = std::mem::take(&mut self.stopped);
            (self.order, self.asked, self.spared) = (None, false, Spared::default());
            self.tell(&MonitorEvent::Kept(stopped, kept));
            return None;
        }
        if !self.asked {
            self.ask(&others, true);
        } else if elapsed >= GRACE {
            for process in others {
                process.signal(Signal::KILL);
            }
        }
        Some(LOOK)
    }

    /// Tells these to end.
    fn ask(&mut self, processes: &[Process], named: bool) {
        self.asked = true;
        let first = self.first;
        let is_first = |process: &Process| first.is_some_and(|first| first.is(*process));
        for process in processes.iter().filter(|process| !is_first(process)) {
            if named {
                self.stopped.push(process.describe());
            }
            process.signal(Signal::TERM);
            // A stopped process takes a signal only when it goes on.
            process.signal(Signal::CONT);
        }
    }

    /// Waits for an end, an order, a socket that is wanted or the time.
    fn wait(&mut self, limit: Option<Duration>) {
        // In place of what is not there, something at which nothing is asked about.
        let nothing = (self.signals.as_fd(), PollFlags::empty());
        let haft = if self.heard { (self.control.as_fd(), PollFlags::IN) } else { nothing };
        let wanted = self.refusing.listener();
        let wanted = wanted.map_or(nothing, |listener| (listener, PollFlags::IN));
        let [said, wanted] = ready(&[haft, wanted], self.signals, limit);
        if wanted && let Some(tried) = self.refusing.refuse() {
            // Before it goes on: what it does next may be waited for.
            self.tell(&MonitorEvent::Tried(tried));
            self.refusing.answer();
        }
        if said {
            self.listen();
        }
    }

    fn listen(&mut self) {
        let mut bytes = [0; 4096];
        match self.control.read(&mut bytes) {
            Ok(0) => {
                self.heard = false;
                // Whoever asked is gone; without an order that is haft's own death.
                self.obey(Order::Stop);
            }
            Ok(length) => {
                self.received.extend_from_slice(&bytes[..length]);
                while let Some(said) = MonitorRequest::take(&mut self.received) {
                    match said {
                        MonitorRequest::Order(order) => self.obey(order),
                        MonitorRequest::Sparing(names) => self.spared = Spared::of(names),
                        MonitorRequest::Heard => {
                            if let Some(tried) = self.refusing.heard() {
                                self.tell(&MonitorEvent::Tried(tried));
                            }
                        }
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                self.heard = false;
                self.obey(Order::Stop);
            }
        }
    }

    /// A stronger order takes the place of a weaker one; the time for ending runs from the first.
    fn obey(&mut self, order: Order) {
        let since = self.order.map_or_else(Instant::now, |(_, since)| since);
        if self.order.is_none_or(|(now, _)| now < order) {
            self.order = Some((order, since));
            // At once, before the slower search for the others.
            let signal = if order == Order::Kill { Signal::KILL } else { Signal::TERM };
            if let Some(leader) = self.leader {
                let _ = kill_process_group(leader, signal);
            }
        }
    }
}

/// Kills what descends from a process but for what `pass` leaves out, again and again while more
/// comes; true when nothing was found.
pub(super) fn kill(of: Pid, pass: impl Fn(Pid) -> bool) -> bool {
    let mut seen = HashSet::new();
    for round in 0..ROUNDS {
        let found = descendants(of, &pass);
        let mut more = false;
        for process in &found {
            more |= seen.insert(process.pid);
            process.signal(Signal::KILL);
        }
        if !more {
            return round == 0 && found.is_empty();
        }
    }
    false
}

/// Waits, at most `limit`, until one of these has what is asked about it or is at its end, or a
/// child has ended; reports which.
pub(super) fn ready<const N: usize>(
    of: &[(BorrowedFd<'_>, PollFlags); N],
    signals: &Signals,
    limit: Option<Duration>,
) -> [bool; N] {
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let mut list: Vec<PollFd<'_>> =
        of.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
    list.push(PollFd::new(signals, PollFlags::IN));
    if poll(&mut list, limit.as_ref()).is_err() {
        return [false; N];
    }
    signals.clear();
    std::array::from_fn(|at| !list[at].revents().is_empty())
}
