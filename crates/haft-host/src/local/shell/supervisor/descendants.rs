//! Finds the descendants of a process, and signals them, through `/proc`.
//!
//! All processes of a command descend from its monitor, whatever they do. The monitor is a
//! subreaper, so an orphan becomes the monitor's own child. No mark in an environment, no session
//! and no group is needed to recognize them: a process can leave all of these.
//!
//! **Invariant:** a signal goes through a descriptor of the process that was inspected. So a
//! process id that was reused meanwhile is never hit.

use std::{
    collections::{HashMap, HashSet},
    fs,
    io::Read,
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal},
};

/// How much of a program's name the system knows, in bytes.
const COMM: usize = 15;
/// Longest command line that is told, in bytes.
const LINE_LIMIT: u64 = 200;
/// Threads that are asked for it at most.
const THREADS: usize = 64;
/// Rounds of killing without a pause: what forks faster than that is not found at once.
pub(super) const ROUNDS: usize = 20;

/// A living process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    parent: i32,
    session: i32,
    /// When it began, in clock ticks since the start of the machine.
    began: u64,
}

impl Process {
    /// What `/proc/PID/stat` says; none for one that has ended.
    pub(super) fn of(pid: Pid) -> Option<Self> {
        let (dead, process) = Self::look(pid)?;
        Some(process).filter(|_| !dead)
    }

    /// Reports whether this is that one, whoever its parent is by now.
    pub(super) fn is(self, other: Self) -> bool {
        (self.pid, self.began) == (other.pid, other.began)
    }

    /// The process, and whether it has ended and was not reaped.
    fn look(pid: Pid) -> Option<(bool, Self)> {
        let text = read(pid, "stat", 4096)?;
        // The name stands in brackets and may hold anything, brackets and spaces too.
        let rest = &text[text.iter().rposition(|&b| b == b')')? + 2..];
        let mut fields = str::from_utf8(rest).ok()?.split_ascii_whitespace();
        let ended = matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        // The state is that of its main thread, which others may outlive.
        let dead = fields.nth(13)?.parse::<u32>().ok()? < 2 && ended;
        let began = fields.nth(1)?.parse().ok()?;
        Some((dead, Self { pid, parent, session, began }))
    }

    /// Sends a signal, unless the process id is somebody else's by now.
    pub(super) fn signal(self, signal: Signal) {
        let unchanged = || Self::of(self.pid).is_some_and(|now| now.began == self.began);
        match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(held) if unchanged() => {
                let _ = pidfd_send_signal(held, signal);
            }
            Err(Errno::NOSYS | Errno::PERM) if unchanged() => {
                let _ = kill_process(self.pid, signal);
            }
            _ => {}
        }
    }

    /// Reports whether it has one of these names: the system's, or the last part of what it was
    /// started as.
    fn is_one_of(self, names: &[Vec<u8>]) -> bool {
        let comm = read(self.pid, "comm", 64).unwrap_or_default();
        let comm = comm.strip_suffix(b"\n").unwrap_or(&comm);
        let line = self.line(4096);
        let first = line.split(|byte| *byte == 0).next().unwrap_or_default();
        let base = first.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let is = |name: &Vec<u8>| {
            let short = &name[..name.len().min(COMM)];
            base == name.as_slice() || (comm == short && !comm.is_empty())
        };
        names.iter().any(is)
    }

    /// Its number in the innermost namespace that it is in.
    fn number(self) -> Option<u32> {
        let status = read(self.pid, "status", 4096)?;
        let line =
            status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"NSpid:"))?;
        str::from_utf8(line).ok()?.split_ascii_whitespace().last()?.parse().ok()
    }

    /// Reports whether it is what holds a confined command: the first of its namespace.
    fn is_first(self) -> bool {
        let comm = read(self.pid, "comm", 64).unwrap_or_default();
        comm.strip_suffix(b"\n") == Some(haft_sandbox::FIRST_NAME.to_bytes())
            && self.number() == Some(1)
    }

    /// Its id and the beginning of its command line.
    pub(super) fn describe(self) -> (u32, String) {
        let mut line = self.line(LINE_LIMIT);
        if line.is_empty() {
            line = read(self.pid, "comm", LINE_LIMIT).unwrap_or_default();
        }
        let line = String::from_utf8_lossy(&line).replace(['\0', '\n'], " ");
        (self.pid.as_raw_pid().cast_unsigned(), line.trim().to_owned())
    }

    /// The beginning of its command line, which only a thread that lives tells.
    fn line(self, limit: u64) -> Vec<u8> {
        let line = |name: &str| read(self.pid, name, limit).filter(|line| !line.is_empty());
        let of_threads = || {
            let threads = fs::read_dir(format!("/proc/{}/task", self.pid.as_raw_pid())).ok()?;
            let names = threads.flatten().filter_map(|entry| entry.file_name().into_string().ok());
            names.take(THREADS).find_map(|name| line(&format!("task/{name}/cmdline")))
        };
        line("cmdline").or_else(of_threads).unwrap_or_default()
    }
}

fn read(pid: Pid, name: &str, limit: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(format!("/proc/{}/{name}", pid.as_raw_pid())).ok()?;
    file.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn all() -> impl Iterator<Item = (bool, Process)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw))
        .filter_map(Process::look)
}

/// Kills what is left of a session that nobody keeps any more, as far as it can be known: what made
/// a session of its own is not found.
///
/// `ended` says that its leader has ended before: a process of that number is somebody else's then,
/// and so may be its session.
pub(in crate::local::shell) fn kill_session(of: Pid, ended: bool) {
    for _ in 0..ROUNDS {
        let found: Vec<Process> = all()
            .filter(|(dead, process)| !dead && process.session == of.as_raw_pid())
            .map(|(_, process)| process)
            .collect();
        if found.is_empty() || (ended && found.iter().any(|process| process.pid == of)) {
            return;
        }
        for process in found {
            process.signal(Signal::KILL);
        }
    }
}

/// What runs below the keeper of a command beside the command itself.
pub(in crate::local::shell) fn beside(command: u32) -> Vec<(u32, String)> {
    let pid = i32::try_from(command).ok().and_then(Pid::from_raw);
    let keeper = pid.and_then(Process::of).and_then(|process| Pid::from_raw(process.parent));
    let below = keeper.map(|keeper| descendants(keeper, |_| false)).unwrap_or_default();
    // In namespaces of its own the command is the second process there, behind what made them.
    let first = below
        .iter()
        .find(|process| process.parent.cast_unsigned() == command && process.is_first());
    let first = first.map(|first| first.pid);
    let own = |process: &&Process| {
        let inside = first.is_some_and(|first| process.parent == first.as_raw_pid());
        Some(process.pid) == pid
            || Some(process.pid) == first
            || (inside && process.number() == Some(2))
    };
    below.iter().filter(|process| !own(process)).map(|process| process.describe()).collect()
}

/// The living processes below this one, parents before children; those of which `pass` is true,
/// and all below them, are left out.
pub(super) fn descendants(of: Pid, pass: impl Fn(Pid) -> bool) -> Vec<Process> {
    divided(of, |process| pass(process.pid)).0
}

/// The living processes below this one, parents before children: those that are not kept, and those
/// that are, each with all below it.
fn divided(of: Pid, is_kept: impl Fn(Process) -> bool) -> (Vec<Process>, Vec<Process>) {
    // What has ended may still have children that were not given to another parent yet.
    let mut children: HashMap<i32, Vec<(bool, Process)>> = HashMap::new();
    for found in all() {
        children.entry(found.1.parent).or_default().push(found);
    }
    let (mut others, mut kept) = (Vec::new(), Vec::new());
    let mut next = vec![(of.as_raw_pid(), false)];
    while let Some((parent, keep)) = next.pop() {
        for (dead, child) in children.remove(&parent).unwrap_or_default() {
            let keep = keep || is_kept(child);
            next.push((child.pid.as_raw_pid(), keep));
            let list = if keep { &mut kept } else { &mut others };
            list.extend((!dead).then_some(child));
        }
    }
    (others, kept)
}

/// Programs that go on when their command ends.
#[derive(Debug, Default)]
pub(super) struct Spared {
    names: Vec<Vec<u8>>,
    /// What was found to be one of them or below one: it stays so when it loses its parent.
    found: HashSet<(Pid, u64)>,
}

impl Spared {
    pub(super) fn of(names: Vec<Vec<u8>>) -> Self {
        Self { names, found: HashSet::new() }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn has(&self, process: Process) -> bool {
        self.found.contains(&(process.pid, process.began)) || process.is_one_of(&self.names)
    }

    /// What lives below a process and is not to go on, and what is.
    pub(super) fn divide(&mut self, of: Pid) -> (Vec<Process>, Vec<Process>) {
        let (others, kept) = divided(of, |process| self.has(process));
        self.found.extend(kept.iter().map(|process| (process.pid, process.began)));
        (others, kept)
    }
}
