//! Namespaces for one program: of users, mounts, processes, shared memory (IPC), and networks. The
//! network namespace is left out if the program may connect to anything.
//!
//! There are three processes. The *outer* one is the caller; it has nothing of the program's and
//! ends as the program ends. The *first* one inside sets up the mounts, starts the program and
//! adopts orphans, as the init process of any system does. Whatever ends it ends everything inside.
//! The program itself is its child.
//!
//! If the program shares a network, the outer process joins that and the user namespace that owns
//! it, before it starts the first. The program's own user namespace is below that one, so the
//! program may not change the network.
//!
//! **Invariant:** no process inside outlives the first one. The first one does not outlive the
//! outer one while the program runs. Neither holds a descriptor of the program's.

use std::{
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    thread,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, geteuid, getpid, kill_process,
        pidfd_open, set_parent_process_death_signal, wait, waitpid,
    },
};

use super::{
    capabilities,
    landlock::{self, explain},
    mounts::View,
    network::{self, Maps},
    seccomp::Calls,
    syscalls,
};
use crate::{Attempts, Entered, Level, Limits, Net, Outside, attempts::SIZE};

/// What the two helping processes are called.
const NAMES: [&std::ffi::CStr; 2] = [c"tool-outer", crate::FIRST_NAME];
/// Stack of a thread that passes bytes on, in bytes.
const STACK: usize = 64 << 10;

/// Goes on in another process, which has taken the limits on. See [`crate::enter`].
pub(super) fn enter(
    limits: &Limits,
    outside: Outside,
    tell: &mut dyn FnMut(Entered) -> io::Result<()>,
) -> io::Result<()> {
    let is_root = geteuid().is_root();
    let (calls, view) = (Calls::new(Level::Namespaces, limits)?, View::new(limits)?);
    // What may be read is no matter of mounts; where there is no Landlock, nothing is left out.
    let rules = limits.read.as_ref().and_then(|_| landlock::rules(limits).ok());
    let Outside { network, report, .. } = outside;
    let shares = network.is_some();
    network.map_or(Ok(()), network::join)?;
    let maps = Maps::new(is_root)?;
    let (link, inside) = UnixStream::pair()?;
    let outer = pidfd_open(getpid(), PidfdFlags::empty())?;
    let mut spaces =
        libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
    if limits.net != Net::On && !shares {
        spaces |= libc::CLONE_NEWNET;
    }
    let split =
        syscalls::split(spaces).map_err(|error| explain("namespaces cannot be made", &error))?;
    if let Some(first) = split {
        drop(inside);
        let begun = maps.write(first).and_then(|()| {
            tell(Entered { first: Some(first.as_raw_pid()), ..Entered::default() })?;
            (&link).write_all(b"+")
        });
        if let Err(error) = begun {
            let _ = kill_process(first, Signal::KILL);
            let _ = waitpid(Some(first), WaitOptions::empty());
            return Err(error);
        }
        if shares {
            // Over the users of that network it has had every right.
            let _ = capabilities::give_up(false);
        }
        stay_outside(link, report, first, limits.net);
    }
    drop((link, report));
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Who does not say that goes on has ended.
    (&inside).read_exact(&mut [0])?;
    view.mount()?;
    let counted = begin_network(limits.net, shares, &inside)?;
    if let Some(program) = syscalls::fork()? {
        let _ = capabilities::give_up(false);
        // The program may look into its own processes, and this one is held to nothing.
        if syscalls::close_to_others().is_err() {
            syscalls::end(1);
        }
        be_first(inside, outer, program, counted);
    }
    drop(inside);
    // A session of its own is inherited from outside: signals to all of it would end the outer process.
    capabilities::give_up(is_root)?;
    rules.map_or(Ok(()), landlock::take_on)?;
    calls.apply(false).map(drop)
}

/// Makes the network of this process ready; what its counters stand at, where they count for the program.
fn begin_network(net: Net, shares: bool, link: &UnixStream) -> io::Result<Option<Attempts>> {
    if shares {
        return Ok(Attempts::read(network::OWN.as_ref()).ok());
    }
    if net == Net::On {
        return Ok(None);
    }
    syscalls::loopback_up().map_err(|error| explain("the network cannot be made", &error))?;
    if let Net::Port(port) = net {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = listener.map_err(|error| explain("the port cannot be taken", &error))?;
        hand_out(link, &listener)?;
    }
    Ok(Some(Attempts::default()))
}

/// What the outer process does until the program ends, and then ends as it does.
fn stay_outside(link: UnixStream, report: Option<OwnedFd>, first: Pid, net: Net) -> ! {
    let _ = rustix::thread::set_name(NAMES[0]);
    syscalls::hold_signals_back();
    let held = match report {
        None => syscalls::keep_only([link.into()]).map(|[link]| (link, None)),
        Some(report) => {
            syscalls::keep_only([link.into(), report]).map(|[link, report]| (link, Some(report)))
        }
    };
    let Ok((link, report)) = held else { syscalls::end(1) };
    let link = UnixStream::from(link);
    if let Net::Port(port) = net {
        // Without a listener the first process did not come to an end of its work, and says so itself.
        if let Ok(listener) = take_in(&link) {
            let _ =
                thread::Builder::new().stack_size(STACK).spawn(move || pass_on(&listener, port));
        }
    }
    let mut said = [0; SAID];
    let ended = (&link).read_exact(&mut said);
    let [a, b, c, d, goes_on, counts, tried @ ..] = said;
    if let Some(report) = report.filter(|_| ended.is_ok() && counts != 0) {
        let _ = rustix::io::write(report, &tried);
    }
    if ended.is_err() || goes_on == 0 {
        let last = loop {
            match waitpid(Some(first), WaitOptions::empty()) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        if ended.is_err() {
            // It was ended with all that was in there.
            match last {
                Ok(Some((_, status))) => syscalls::end_as(status.as_raw()),
                _ => syscalls::end(1),
            }
        }
    }
    syscalls::end_as(i32::from_le_bytes([a, b, c, d]))
}

/// What the first process says at the end of the program: its status, whether anything is left, whether
/// attempts were counted, and they.
const SAID: usize = 6 + SIZE;

/// What the first process does: takes in what has ended until nothing is left. Where its network counts, it
/// did so from what it was at.
fn be_first(link: UnixStream, outer: OwnedFd, program: Pid, counted: Option<Attempts>) -> ! {
    let _ = rustix::thread::set_name(NAMES[1]);
    syscalls::hold_signals_back();
    let Ok([link, outer]) = syscalls::keep_only([link.into(), outer]) else { syscalls::end(1) };
    let link = UnixStream::from(link);
    let mut status = None;
    while status.is_none() {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, ended))) if pid == program => status = Some(ended),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => syscalls::end(1),
        }
    }
    let left = loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    if left {
        // The outer process ends as the program did. What is left is kept by whoever kept that.
        let _ = set_parent_process_death_signal(None);
    }
    let status = status.map_or(0, WaitStatus::as_raw).to_le_bytes();
    let now = counted
        .and_then(|before| Attempts::read(network::OWN.as_ref()).ok().map(|now| now.since(before)));
    let flags = [left, now.is_some()].map(u8::from);
    let tried = now.unwrap_or_default().to_bytes();
    let _ = (&link).write_all(&[&status[..], &flags, &tried].concat());
    if !left {
        syscalls::end(0);
    }
    // Its end is told behind what its end does to its children: this one is another's by then.
    while poll(&mut [PollFd::new(&outer, PollFlags::IN)], None) == Err(Errno::INTR) {}
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    loop {
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => syscalls::end(0),
        }
    }
}

/// Gives a descriptor to the other side.
fn hand_out(link: &UnixStream, given: &TcpListener) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let given = [given.as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&given));
    sendmsg(link, &[IoSlice::new(b"+")], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn take_in(link: &UnixStream) -> io::Result<TcpListener> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(link, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut given = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut given) => given.next(),
        _ => None,
    });
    given.next().map(TcpListener::from).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Passes connections on to the port of the same number outside.
fn pass_on(listener: &TcpListener, port: u16) {
    for inside in listener.incoming().flatten() {
        let Ok(outside) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
        let Ok((from, to)) = inside.try_clone().and_then(|i| Ok((i, outside.try_clone()?))) else {
            continue;
        };
        let each = [(inside, outside), (to, from)];
        for (from, to) in each {
            let _ = thread::Builder::new().stack_size(STACK).spawn(move || copy(&from, &to));
        }
    }
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let mut buffer = [0; 16 << 10];
    while let Ok(length) = from.read(&mut buffer) {
        if length == 0 || to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
