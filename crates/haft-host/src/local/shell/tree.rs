//! Finding and signalling everything that a command started, through `/proc`.
//!
//! A process belongs to a command when it is in its session or process group, carries its marker
//! in the environment it was started with, or is a child of one that belongs. Only processes that
//! began after the command did are looked at.
//!
//! Most commands leave nothing, and reading all of `/proc` to learn that takes longer than they do.
//! The system gives process ids in rising order, so where none of the few ids that were given since
//! the command began is in use, nothing of it lives.
//!
//! **Invariant:** a signal goes through a descriptor of the process that was looked at, so a
//! process id that was given to somebody else meanwhile is never hit.
//!
//! Not found here: a process that left the session, lost its parents *and* emptied its
//! environment. A supervisor that is a subreaper is needed for those; so is one that outlives
//! haft, to clean up when haft itself is killed.

use std::{
    collections::HashSet,
    fs,
    io::Read,
    process,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open, pidfd_send_signal,
        test_kill_process,
    },
};

/// Longest command line that is told, in bytes.
const LINE_LIMIT: u64 = 200;
/// Most bytes of an environment in which the marker is looked for.
const ENVIRONMENT_LIMIT: u64 = 4 << 20;
/// Most ids that are asked for one by one.
const FEW: i32 = 1_000;
/// In less time than this no machine gives all its ids once round, at least 32,768.
const ROUND: Duration = Duration::from_millis(100);

/// What tells the processes of one command from all others.
#[derive(Debug)]
pub(super) struct Tree {
    /// The command's own process, leader of its session and group.
    leader: Pid,
    /// The value of [`MARKER`] that its processes carry.
    marker: String,
    /// When the leader began, in clock ticks since the start of the machine.
    began: u64,
    since: Instant,
}

/// The variable that marks the processes of a command.
pub(super) const MARKER: &str = "HAFT_CALL";

/// A process that belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pid: Pid,
    began: u64,
}

/// What the first line of `/proc/PID/stat` says.
#[derive(Clone, Copy, Debug)]
struct Stat {
    state: u8,
    parent: i32,
    group: i32,
    session: i32,
    began: u64,
}

impl Stat {
    fn of(pid: i32) -> Option<Self> {
        let mut text = Vec::new();
        fs::File::open(format!("/proc/{pid}/stat")).ok()?.take(4096).read_to_end(&mut text).ok()?;
        // The name stands in brackets and may hold anything, brackets and spaces too.
        let rest = &text[text.iter().rposition(|&b| b == b')')? + 2..];
        let fields: Vec<&str> = str::from_utf8(rest).ok()?.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse().ok();
        Some(Self {
            state: *fields.first()?.as_bytes().first()?,
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            began: fields.get(19)?.parse().ok()?,
        })
    }

    const fn dead(self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

impl Tree {
    /// The tree of a command that was just started.
    pub(super) fn new(leader: Pid, marker: String) -> Self {
        let began = Stat::of(leader.as_raw_pid()).map_or(0, |stat| stat.began);
        Self { leader, marker, began, since: Instant::now() }
    }

    /// Reports whether no process was begun since the leader that still lives, whoever began it;
    /// false where that cannot be told so easily.
    fn alone(&self) -> bool {
        let leader = self.leader.as_raw_pid();
        let Some(last) = last_id() else { return false };
        (leader..leader.saturating_add(FEW)).contains(&last)
            && (leader + 1..=last).all(unused)
            // What began meanwhile may be a child of what was found ended.
            && last_id() == Some(last)
            && self.since.elapsed() < ROUND
    }

    /// The living processes of the command; with `leader` also its own.
    pub(super) fn members(&self, leader: bool) -> Vec<Member> {
        if !leader && self.alone() {
            return Vec::new();
        }
        let me = process::id();
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let mut candidates: Vec<(i32, Stat)> = entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(|pid| Stat::of(pid).map(|stat| (pid, stat)))
            .filter(|(pid, stat)| stat.began >= self.began && u32::try_from(*pid) != Ok(me))
            .collect();
        let mut inside: HashSet<i32> = HashSet::from([self.leader.as_raw_pid()]);
        let mut members = Vec::new();
        candidates.retain(|&(pid, stat)| {
            let leads = pid == self.leader.as_raw_pid();
            let belongs = leads || self.marks(pid, stat);
            if belongs {
                inside.insert(pid);
                if !stat.dead() && (leader || !leads) {
                    members.extend(Pid::from_raw(pid).map(|pid| Member { pid, began: stat.began }));
                }
            }
            !belongs
        });
        // Children of members that carry no mark themselves, however deep.
        loop {
            let before = inside.len();
            candidates.retain(|&(pid, stat)| {
                let belongs = inside.contains(&stat.parent);
                if belongs {
                    inside.insert(pid);
                    if !stat.dead() {
                        let pid = Pid::from_raw(pid);
                        members.extend(pid.map(|pid| Member { pid, began: stat.began }));
                    }
                }
                !belongs
            });
            if inside.len() == before {
                return members;
            }
        }
    }

    fn marks(&self, pid: i32, stat: Stat) -> bool {
        let leader = self.leader.as_raw_pid();
        stat.session == leader
            || stat.group == leader
            || (!stat.dead() && carries(pid, self.marker.as_bytes()))
    }

    /// Signals the whole process group at once, before the slower search for the others.
    ///
    /// Only valid while the leader has not been reaped: until then its id is nobody else's.
    pub(super) fn signal_group(&self, signal: Signal) {
        let _ = kill_process_group(self.leader, signal);
    }
}

/// The process id that was given last, in the namespace of this process.
fn last_id() -> Option<i32> {
    fs::read_to_string("/proc/sys/kernel/ns_last_pid").ok()?.trim().parse().ok()
}

/// Reports whether nobody has this id but a thread of this process.
fn unused(id: i32) -> bool {
    let Some(pid) = Pid::from_raw(id) else { return false };
    test_kill_process(pid) == Err(Errno::SRCH)
        || fs::exists(format!("/proc/self/task/{id}")).is_ok_and(|own| own)
}

/// Reports whether a process was started with the marker in its environment.
fn carries(pid: i32, marker: &[u8]) -> bool {
    let mut text = Vec::new();
    let read = fs::File::open(format!("/proc/{pid}/environ"))
        .and_then(|file| file.take(ENVIRONMENT_LIMIT).read_to_end(&mut text));
    read.is_ok() && memchr::memmem::find(&text, marker).is_some()
}

impl Member {
    /// Sends a signal, unless the process id is somebody else's by now.
    pub(super) fn signal(&self, signal: Signal) {
        let unchanged =
            || Stat::of(self.pid.as_raw_pid()).is_some_and(|stat| stat.began == self.began);
        match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(held) if unchanged() => {
                let _ = pidfd_send_signal(held, signal);
            }
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) if unchanged() => {
                let _ = kill_process(self.pid, signal);
            }
            _ => {}
        }
    }

    /// Its id and the beginning of its command line.
    pub(super) fn told(&self) -> (u32, String) {
        let pid = self.pid.as_raw_pid();
        let read = |name: &str| {
            let mut text = Vec::new();
            let file = fs::File::open(format!("/proc/{pid}/{name}")).ok()?;
            file.take(LINE_LIMIT).read_to_end(&mut text).ok()?;
            let text = String::from_utf8_lossy(&text).replace(['\0', '\n'], " ");
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let line = read("cmdline").or_else(|| read("comm")).unwrap_or_default();
        (u32::try_from(pid).unwrap_or(0), line)
    }
}
