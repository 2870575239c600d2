//! The one place where a program is started, whatever it is for.
//!
//! The process that becomes a program is forked before it is needed ([`Leader`]). It takes the
//! request from haft itself, reports to its monitor, and becomes the program. So nobody has to wake
//! in between.
//!
//! **Invariant:** every program leads its own process group and, unless it has a terminal, its own
//! session. It inherits only descriptors 0 to 2 and, if asked for, 3. So it gets nothing of haft's
//! own, and nothing that haft's parent left open to haft. It does not outlive its monitor.

use std::{
    ffi::OsStr,
    fs,
    io::{self, IoSlice, IoSliceMut, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::{ffi::OsStrExt, net::UnixStream, process::CommandExt},
    },
    panic::{AssertUnwindSafe, catch_unwind},
    process::Command,
};

use haft_sandbox::{Entered, Level, Listener, Network, Outside};
use haft_types::HostPath;
use rustix::{
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
    pipe::{PipeFlags, pipe_with},
    process::{Pid, Signal, set_parent_process_death_signal},
};

use super::{
    DESCRIPTORS, passing, receive,
    signals::{fork, give_back, hold_back},
};
use crate::local::shell::supervisor_protocol::{Hold, Request, START_UP};

/// Where a program finds the descriptor for its report.
const REPORT: i32 = 3;
/// Descriptors that are marked one by one where a range cannot be.
const OLD_LIMIT: i32 = 4096;

/// The descriptors of a program.
#[derive(Debug)]
pub(super) struct Stdio {
    pub(super) input: OwnedFd,
    pub(super) output: OwnedFd,
    pub(super) errors: OwnedFd,
    pub(super) report: Option<OwnedFd>,
    /// The network that it shares.
    pub(super) network: Option<Network>,
}

impl Stdio {
    fn all(&self) -> Vec<BorrowedFd<'_>> {
        let three = [&self.input, &self.output, &self.errors];
        let network = self.network.iter().flat_map(|one| [&one.users, &one.network]);
        three.into_iter().chain(&self.report).chain(network).map(AsFd::as_fd).collect()
    }
}

/// A process that is to become a program.
#[derive(Debug)]
pub(super) struct Leader {
    pid: Pid,
    /// Ends when it has become the program; before that it can only say why it could not, and hand on where
    /// its calls are heard of.
    link: UnixStream,
    /// What it tried of the network, at its end.
    tried: OwnedFd,
}

/// What a process that is to become a program has of its keeper.
#[derive(Debug)]
struct Ties {
    link: UnixStream,
    tried: OwnedFd,
}

impl Leader {
    /// Splits one off that takes the next request of haft; only for a process with one thread.
    pub(super) fn spare(haft: BorrowedFd<'_>) -> io::Result<Self> {
        Self::split(|ties| take_request(ties, haft))
    }

    /// Splits one off for a request that was taken; only for a process with one thread.
    pub(super) fn anew(control: &UnixStream, stdio: Stdio, group: Group) -> io::Result<Self> {
        let control = control.try_clone()?;
        Self::split(|ties| {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if group == Group::Session {
                rustix::process::setsid()?;
            }
            become_program(control, stdio, group, ties)
        })
    }

    fn split(work: impl FnOnce(Ties) -> io::Result<()>) -> io::Result<Self> {
        let (link, theirs) = UnixStream::pair()?;
        let (tried, tells) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        if let Some(pid) = fork()? {
            return Ok(Self { pid, link, tried });
        }
        drop((link, tried));
        let ties = Ties { link: theirs, tried: tells };
        let _ = catch_unwind(AssertUnwindSafe(|| work(ties)));
        std::process::exit(1)
    }

    /// Waits until it has taken a request: the connection to haft, and the descriptors of a program
    /// that it leaves to its keeper; none where haft or it is gone.
    pub(super) fn taken(&self) -> io::Result<Option<(UnixStream, Option<Stdio>)>> {
        loop {
            match receive(self.link.as_fd(), true) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                taken => return taken,
            }
        }
    }

    /// Waits until it has become the program.
    pub(super) fn started(self) -> Result<Started, Refused> {
        let (said, listener) = self.said()?;
        let number = |bytes: &[u8]| bytes.first_chunk().copied().map_or(0, i32::from_le_bytes);
        let said = said.strip_prefix(&[LISTENS]).unwrap_or(&said);
        let (first, rest) = match said.split_first() {
            Some((&FIRST, rest)) => {
                (Pid::from_raw(number(rest)), rest.get(4..).unwrap_or_default())
            }
            _ => (None, said),
        };
        match rest.split_first() {
            Some((_, why)) => {
                let text = why.get(4..).unwrap_or_default();
                Err(Refused(number(why), String::from_utf8_lossy(text).into_owned()))
            }
            None => Ok(Started { pid: self.pid, first, listener, tried: self.tried }),
        }
    }

    /// All that it says, and where its calls are heard of.
    fn said(&self) -> io::Result<(Vec<u8>, Option<Listener>)> {
        let (mut said, mut listener) = (Vec::new(), None);
        let mut bytes = [0; 256];
        while said.len() < SAID {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::CMSG_CLOEXEC;
            let parts = &mut [IoSliceMut::new(&mut bytes)];
            let length = match recvmsg(&self.link, parts, &mut ancillary, flags) {
                Ok(message) if message.bytes == 0 => break,
                Ok(message) => message.bytes,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let given = ancillary.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut given) => given.next(),
                _ => None,
            });
            listener = given.last().map(Listener::from).or(listener);
            said.extend_from_slice(&bytes[..length]);
        }
        Ok((said, listener))
    }
}

/// Most bytes that a process says before it becomes a program.
const SAID: usize = 4096;
/// What begins the number of the first process of a namespace.
const FIRST: u8 = b'1';
/// What comes with where its calls are heard of.
const LISTENS: u8 = b'L';
/// What begins the reason why there is no program.
const FAILED: u8 = b'!';

/// A program that runs.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) pid: Pid,
    /// The first process of its namespace, where it has one of its own.
    pub(super) first: Option<Pid>,
    /// Where it is heard of sockets that it is refused.
    pub(super) listener: Option<Listener>,
    /// Where it is told at its end what it tried of the network.
    pub(super) tried: OwnedFd,
}

/// Why there is none: a number of the system, and words where that is not all.
#[derive(Clone, Debug)]
pub(super) struct Refused(pub(super) i32, pub(super) String);

impl<E: Into<io::Error>> From<E> for Refused {
    fn from(error: E) -> Self {
        let error = error.into();
        let text = if error.raw_os_error().is_some() { String::new() } else { error.to_string() };
        Self(error.raw_os_error().unwrap_or(libc::EIO), text)
    }
}

/// What a program leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// A session of its own.
    Session,
    /// The foreground of the keeper's terminal: ended with its leader, a session would take all
    /// that runs at its terminal with it, before anybody could say what that was.
    Foreground,
}

/// Waits for a request of haft, and becomes what it asks for; returns only where that fails or is not
/// wanted. What has a terminal is left to the keeper, which is to lead the session there.
fn take_request(ties: Ties, haft: BorrowedFd<'_>) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::process::setsid()?;
    let (control, stdio) = loop {
        match receive(haft, true) {
            Ok(Some((control, Some(stdio)))) => break (control, stdio),
            Ok(Some(_)) => {}
            Err(error) if passing(&error) => {}
            Ok(None) | Err(_) => return Ok(()),
        }
    };
    if rustix::termios::isatty(&stdio.input) {
        return hand_on(&ties.link, &[&[control.as_fd()][..], &stdio.all()].concat());
    }
    hand_on(&ties.link, &[control.as_fd()])?;
    become_program(control, stdio, Group::Session, ties)
}

/// Gives descriptors to the other end.
fn hand_on(link: &UnixStream, given: &[BorrowedFd<'_>]) -> io::Result<()> {
    hand_on_with(b"+", link, given)
}

/// The same with these words.
fn hand_on_with(words: &[u8], link: &UnixStream, given: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(given));
    loop {
        match sendmsg(link, &[IoSlice::new(words)], &mut ancillary, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

/// Becomes what haft asks for over this connection; returns only where that fails.
fn become_program(
    mut control: UnixStream,
    stdio: Stdio,
    group: Group,
    ties: Ties,
) -> io::Result<()> {
    let Ties { mut link, tried } = ties;
    let request = Request::receive(&mut control);
    drop(control);
    let Refused(code, why) = match request {
        Ok(request) => match become_it(&request, stdio, group, (&mut link, tried)) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        },
        Err(error) => error.into(),
    };
    link.write_all(&[&[FAILED], &code.to_le_bytes()[..], why.as_bytes()].concat())
}

/// Returns only where it does not become a program.
fn become_it(
    request: &Request,
    mut stdio: Stdio,
    group: Group,
    ties: (&mut UnixStream, OwnedFd),
) -> Result<(), Refused> {
    // Right before that is out of reach.
    let start_up = Some(&request.start_up).filter(|path| !path.is_empty());
    let start_up = start_up.and_then(|path| fs::File::open(OsStr::from_bytes(path)).ok());
    if hold(request, &mut stdio, group, ties)? {
        return Ok(());
    }
    let text = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let mut words = request.words.iter().map(|word| text(word));
    let mut command = Command::new(text(&request.file));
    command.arg0(words.next().unwrap_or_default()).args(words);
    command.env_clear();
    command.envs(request.environment.iter().filter_map(|variable| {
        let at = variable.iter().position(|b| *b == b'=')?;
        Some((text(&variable[..at]), text(&variable[at + 1..])))
    }));
    command.current_dir(text(&request.cwd));
    command.stdin(stdio.input).stdout(stdio.output).stderr(stdio.errors);
    let kept = [(stdio.report, REPORT), (start_up.map(OwnedFd::from), START_UP)];
    prepare(&mut command, kept, group);
    Err(command.exec().into())
}

/// Takes on what holds the program, where anything does; true where there is none.
fn hold(
    request: &Request,
    stdio: &mut Stdio,
    group: Group,
    (link, tried): (&mut UnixStream, OwnedFd),
) -> Result<bool, Refused> {
    let mut tell = |entered: Entered| {
        if let Some(listener) = entered.listener {
            hand_on_with(&[LISTENS], link, &[listener.as_fd()])?;
        }
        match entered.first {
            Some(first) => link.write_all(&[&[FIRST], &first.to_le_bytes()[..]].concat()),
            None => Ok(()),
        }
    };
    match &request.hold {
        None => return Ok(false),
        Some(Hold::To(level, limits)) => {
            let (network, report) = (stdio.network.take(), Some(tried));
            let outside = Outside { network, report, listens: true };
            haft_sandbox::enter(*level, limits, outside, &mut tell)?;
            if group == Group::Session {
                // Where this is another process by now, the session is not its own yet.
                let _ = rustix::process::setsid();
            }
            return Ok(false);
        }
        Some(Hold::Probe(level)) => {
            let folder = OsStr::from_bytes(&request.cwd);
            let found = haft_sandbox::probe(*level, folder.as_ref(), &mut tell);
            let said = serde_json::to_vec(&found).map_err(io::Error::from)?;
            fs::File::from(stdio.output.try_clone()?).write_all(&said)?;
        }
        Some(Hold::Overlays(limits)) => {
            haft_sandbox::enter(Level::Namespaces, limits, Outside::default(), &mut tell)?;
            let sees = |path: &HostPath| {
                haft_sandbox::is_overlay(OsStr::from_bytes(path.as_bytes()).as_ref())
            };
            let said = limits.overlay.iter().all(|path| sees(path).unwrap_or_default());
            let said = serde_json::to_vec(&said).map_err(io::Error::from)?;
            fs::File::from(stdio.output.try_clone()?).write_all(&said)?;
        }
        Some(Hold::Network) => {
            let made = haft_sandbox::network()?;
            let link = UnixStream::from(stdio.output.try_clone()?);
            hand_on(&link, &[made.users.as_fd(), made.network.as_fd()])?;
        }
    }
    Ok(true)
}

/// Makes the program lead its group and puts what it finds open at its numbers.
///
/// There is no safe way to do the last before exec.
#[expect(unsafe_code, reason = "what runs right before exec needs it; the only place")]
fn prepare(command: &mut Command, kept: [(Option<OwnedFd>, i32); 2], group: Group) {
    let prepare = move || {
        if group == Group::Foreground {
            rustix::process::setpgid(None, None)?;
            // Whoever is in the background is stopped by asking for the foreground.
            hold_back(libc::SIGTTOU)?;
            rustix::termios::tcsetpgrp(rustix::stdio::stdin(), rustix::process::getpgrp())?;
        }
        give_back()?;
        close_at_exec();
        for (held, number) in &kept {
            let Some(held) = held else { continue };
            // SAFETY: this is the process's own table of descriptors, which nothing else uses
            // before exec; the number is released again before it could be closed.
            let mut target = unsafe { OwnedFd::from_raw_fd(*number) };
            let result = rustix::io::dup2(held, &mut target);
            std::mem::forget(target);
            result?;
        }
        Ok(())
    };
    // SAFETY: this process has one thread, so that anything may be called before exec.
    unsafe { command.pre_exec(prepare) };
}

/// Marks every descriptor from 3 on to be closed at exec, those of haft's own parent included.
///
/// It makes system calls alone, as it must between fork and exec.
#[expect(unsafe_code, reason = "no safe wrapper marks a range of descriptors")]
fn close_at_exec() {
    // SAFETY: the calls take numbers alone, and only mark descriptors of the child's own table.
    unsafe {
        let mark = libc::CLOSE_RANGE_CLOEXEC;
        if libc::syscall(libc::SYS_close_range, REPORT, libc::c_uint::MAX, mark) == 0 {
            return;
        }
        // Kernels before 5.11.
        for number in REPORT..OLD_LIMIT {
            libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// Takes descriptor 3 of this process where it is free, so that no pipe by which the standard
/// library starts programs gets that number and is overwritten in the child.
pub(super) fn hold_report_number() -> io::Result<()> {
    let file = fs::File::open("/dev/null")?;
    if file.as_raw_fd() == REPORT {
        std::mem::forget(file);
    }
    Ok(())
}
