//! The supervisor: a small process with one thread, beside haft, that starts its programs.
//!
//! haft starts it with its first program. Each program has a monitor ([`monitor`]). It is forked
//! before it is needed, together with the process that takes the request from haft and becomes the
//! program. The monitor is the parent of that process and of every orphan below it, so nothing can
//! leave the tree. Haft's death is seen as the end of a connection: each monitor sees it by its own
//! connection, the supervisor by its own. If a monitor is killed, its processes are reparented to
//! the supervisor, which kills them. If both are killed, haft itself kills what is left of the
//! command's session.
//!
//! **Invariant:** the supervisor ends after the last monitor, and leaves nothing. It holds none of
//! haft's memory, files, terminals or variables.
//!
//! It is a process rather than a thread, since only a process can be a subreaper and outlive haft.
//! It has a single thread, since only such a process may fork and go on as usual (and take on
//! limits between fork and exec).

mod descendants;
mod monitor;
mod refusing;
mod signals;
mod spawn;

use std::{
    collections::HashSet,
    ffi::CString,
    fs,
    io::{self, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    time::{Duration, Instant},
};

use haft_sandbox::Network;
use rustix::{
    event::PollFlags,
    io::Errno,
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
    pipe::{PipeFlags, pipe_with},
    process::{
        Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_parent_process_death_signal,
        wait,
    },
};

pub(super) use self::descendants::{beside, kill_session};
use self::{
    monitor::{keep, kill, ready},
    signals::{Signals, fork},
    spawn::{Leader, Stdio, hold_report_number},
};

/// The process names of the supervisor and its monitors. They differ from haft's, so that neither
/// `pkill haft` nor `killall haft` ends the processes that clean up after it.
pub const SUPERVISORS: [&str; 2] = ["tool-supervisor", "tool-keeper"];

/// Descriptors that come with a request at most: the connection, three, the report's, and two of a network.
pub(super) const DESCRIPTORS: usize = 7;
/// How long keepers may take once haft is gone; each gives its command 500 ms, then kills.
const CLOSING: Duration = Duration::from_millis(2_500);
/// How long killing everything is tried then.
const GIVE_UP: Duration = Duration::from_secs(3);
/// Time between two looks at what is being killed, and until the next keeper is made ready.
const LOOK: Duration = Duration::from_millis(10);

/// The main function of the supervisor process. Its standard input is the connection to haft;
/// nobody starts it by hand. The same program also serves as the editor that commands do not have
/// ([`Spawn::no_editor`](crate::Spawn)).
pub fn supervise() -> ExitCode {
    if let Some(code) = super::editor::run(std::env::args_os()) {
        return code;
    }
    match Supervisor::begin().map(Supervisor::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[derive(Debug)]
struct Supervisor {
    /// The connection to haft; none in a keeper at work, which must not hold it open.
    haft: Option<OwnedFd>,
    /// Where the spare keeper says that it has taken a request, and where that is heard.
    say: OwnedFd,
    hear: OwnedFd,
    signals: Signals,
    keepers: HashSet<Pid>,
    /// The keeper that waits for the next request.
    spare: Option<Pid>,
    /// Whether a keeper broke off, so that there may be what nobody keeps.
    strays: bool,
}

impl Supervisor {
    fn begin() -> io::Result<Self> {
        let haft = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 10)?;
        rustix::stdio::dup2_stdin(fs::File::open("/dev/null")?)?;
        hold_report_number()?;
        // Keys at the terminal are for haft.
        let _ = rustix::process::setsid();
        rustix::process::set_child_subreaper(Some(getpid()))?;
        // A command may stop it, and nobody else would let it go on to clean up after haft.
        set_parent_process_death_signal(Some(Signal::CONT))?;
        call(SUPERVISORS[0]);
        let signals = Signals::take()?;
        let (hear, say) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (keepers, spare) = (HashSet::new(), None);
        Ok(Self { haft: Some(haft), say, hear, signals, keepers, spare, strays: false })
    }

    fn run(mut self) {
        while let Some(haft) = &self.haft {
            let wanting = self.spare.is_none();
            // Requests are the spare keeper's; where there is none, they call for one.
            let of_haft = if wanting { PollFlags::IN } else { PollFlags::empty() };
            let watched = [(haft.as_fd(), of_haft), (self.hear.as_fd(), PollFlags::IN)];
            let limit = (self.strays || wanting).then_some(LOOK);
            let [called, taken] = ready(&watched, &self.signals, limit);
            if taken {
                let _ = rustix::io::read(&self.hear, &mut [0; 8]);
                self.spare = None;
            } else if wanting {
                // Asked for now, or after a pause in which the last command had the processor.
                self.split();
            }
            if called && (!wanting || self.spare.is_none()) {
                self.refuse();
            }
            self.reap();
            if self.strays {
                self.strays = !kill(getpid(), |pid| self.keepers.contains(&pid));
            }
        }
        self.close();
    }

    /// Takes a request for which there is no keeper, or the end of the connection. haft takes the
    /// end of what came with a request for a failure to start.
    fn refuse(&mut self) {
        match self.haft.as_ref().map(|haft| receive(haft.as_fd(), false)) {
            Some(Ok(Some(_))) => {}
            Some(Err(error)) if passing(&error) => {}
            _ => self.haft = None,
        }
    }

    /// Splits off the next keeper; where that cannot be done now, it is tried again.
    fn split(&mut self) {
        match fork() {
            Ok(Some(pid)) => {
                self.keepers.insert(pid);
                self.spare = Some(pid);
            }
            Ok(None) => {
                call(SUPERVISORS[1]);
                let kept = catch_unwind(AssertUnwindSafe(|| self.wait_and_keep()));
                std::process::exit(i32::from(!matches!(kept, Ok(Ok(())))));
            }
            Err(_) => {}
        }
    }

    /// What a keeper does: waits for a request, then keeps what it asks for.
    fn wait_and_keep(&mut self) -> io::Result<()> {
        // While it has nothing to keep, it is of no use without the supervisor.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        rustix::process::set_child_subreaper(Some(getpid()))?;
        let supervisor = getppid();
        let Some(haft) = &self.haft else { return Ok(()) };
        // Split off while there is time. Where that fails now it may not when it is needed.
        let leader = Leader::spare(haft.as_fd()).ok();
        let taken = match &leader {
            Some(leader) => leader.taken()?,
            None => self.take_request(haft.as_fd())?,
        };
        let Some((control, stdio)) = taken else { return Ok(()) };
        set_parent_process_death_signal(None)?;
        let _ = rustix::io::write(&self.say, b"+");
        self.haft = None;
        let kept = keep(control, leader, stdio, &self.signals);
        // The command may have stopped it, too, and can do so no more.
        if let Some(supervisor) = supervisor.filter(|pid| getppid() == Some(*pid)) {
            let _ = kill_process(supervisor, Signal::CONT);
        }
        kept
    }

    /// Takes a request where nobody could be split off who does.
    fn take_request(&self, haft: BorrowedFd<'_>) -> io::Result<Accepted> {
        loop {
            ready(&[(haft, PollFlags::IN)], &self.signals, None);
            match receive(haft, false) {
                Err(error) if passing(&error) => {}
                taken => return taken,
            }
        }
    }

    /// Takes in what has ended; true when no child is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                // A command may stop its parent, but then nobody would keep it.
                Ok(Some((pid, status))) if status.stopped() => {
                    let _ = kill_process(pid, Signal::CONT);
                }
                Ok(Some((pid, status))) => {
                    self.strays |= self.keepers.remove(&pid) && status.exit_status() != Some(0);
                    self.spare.take_if(|spare| *spare == pid);
                }
                Ok(None) => return false,
                Err(Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }

    /// Haft is gone: its keepers clean up, and what is left then is killed.
    fn close(mut self) {
        let begun = Instant::now();
        while !self.reap() && begun.elapsed() < CLOSING + GIVE_UP {
            let over = begun.elapsed() >= CLOSING;
            if over || self.strays {
                kill(getpid(), |pid| !over && self.keepers.contains(&pid));
            }
            // The connection is at its end, so only the signals are waited for.
            ready(&[], &self.signals, Some(LOOK));
        }
    }
}

/// Gives this process a name; it does its work without one, too.
fn call(name: &str) {
    let _ = CString::new(name).map(|name| rustix::thread::set_name(&name));
}

/// Whether what went wrong says nothing of the next request.
fn passing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, InvalidData, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | InvalidData)
}

/// A connection to haft, and the descriptors of a program where they come with it; none when whoever sends
/// them is gone.
type Accepted = Option<(UnixStream, Option<Stdio>)>;

/// Takes what [`Accepted`] says.
fn receive(from: BorrowedFd<'_>, wait: bool) -> io::Result<Accepted> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut flags = RecvFlags::CMSG_CLOEXEC;
    flags.set(RecvFlags::DONTWAIT, !wait);
    let message = recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags)?;
    if message.bytes == 0 {
        return Ok(None);
    }
    let mut given = ancillary.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(given) => given.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    let control = given.next().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let three = (given.next(), given.next(), given.next());
    let stdio = match three {
        (Some(input), Some(output), Some(errors)) => {
            let (report, network) = rest(given.collect());
            Some(Stdio { input, output, errors, report, network })
        }
        _ => None,
    };
    Ok(Some((UnixStream::from(control), stdio)))
}

/// The report's descriptor and those of a network, where they come.
fn rest(given: Vec<OwnedFd>) -> (Option<OwnedFd>, Option<Network>) {
    // A network has two.
    let has_report = given.len() % 2 == 1;
    let mut given = given.into_iter();
    let report = if has_report { given.next() } else { None };
    let network = match (given.next(), given.next()) {
        (Some(users), Some(network)) => Some(Network { users, network }),
        _ => None,
    };
    (report, network)
}
