//! The networks that programs share, as far as this machine makes them.
//!
//! **Invariant:** a program shares a network only if its limits let it connect to nothing outside.
//! It also has to be confined by namespaces, with a network namespace of its own.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, IoSliceMut},
    mem::MaybeUninit,
    net::IpAddr,
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::PathBuf,
    sync::Arc,
};

use haft_sandbox::{Attempts, Level, Net, Network};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::{
    start::Ends,
    supervisor_client::{self, PATIENCE},
    supervisor_protocol::{Hold, MonitorEvent, Request},
};
use crate::Tried;

/// The network that a program which is held so shares, of what it is offered.
pub(super) fn shared(
    offered: Option<&crate::Network>,
    hold: Option<&Hold>,
    supervisor: &[OsString],
) -> Option<Arc<Network>> {
    match hold? {
        Hold::To(Level::Namespaces, limits) if limits.net == Net::Off && !limits.sockets => {
            offered?.get(|| make(supervisor))
        }
        _ => None,
    }
}

/// What is known of the network of a program before it tries anything.
pub(super) fn tried(hold: Option<&Hold>, shared: bool) -> Option<Tried> {
    match hold? {
        Hold::To(level, limits) => Some(Tried {
            level: *level,
            net: limits.net,
            shared,
            attempts: None,
            names_at_loopback: false,
            beside: Vec::new(),
        }),
        Hold::Probe(_) | Hold::Overlays(_) | Hold::Network => None,
    }
}

/// What was tried by now in the network of the process that is first in its namespaces.
pub(super) fn counted(first: u32) -> Option<Attempts> {
    Attempts::read(&PathBuf::from(format!("/proc/{first}/net"))).ok()
}

/// The same with what was counted.
pub(super) fn with(tried: Tried, attempts: Option<Attempts>) -> Tried {
    let datagrams = attempts.is_some_and(|attempts| attempts.undelivered > 0);
    // Of no use but to tell these apart.
    let names_at_loopback =
        datagrams && names_at_loopback(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default());
    Tried { attempts, names_at_loopback, ..tried }
}

/// Whether names are looked up at this machine itself, by this text (`resolv.conf(5)`).
fn names_at_loopback(text: &str) -> bool {
    let servers = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let address = words.next().filter(|word| *word == "nameserver").and(words.next())?;
        address.split('%').next()?.parse::<IpAddr>().ok()
    });
    let servers: Vec<IpAddr> = servers.collect();
    servers.is_empty() || servers.iter().any(|server| server.to_canonical().is_loopback())
}

/// Has a process make one that does nothing else.
fn make(supervisor: &[OsString]) -> io::Result<Network> {
    let (ours, theirs) = UnixStream::pair()?;
    let nothing = || File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
    let ends = Ends {
        input: nothing()?,
        output: theirs.into(),
        errors: nothing()?,
        report: None,
        network: None,
    };
    let mut request =
        Request { cwd: b"/".to_vec(), hold: Some(Hold::Network), ..Request::default() };
    let (_control, told, _) = supervisor_client::start(supervisor, &mut request, &ends, |_| true)?;
    drop(ends);
    if let MonitorEvent::Failed(code, why) = told {
        let error = io::Error::from_raw_os_error(code);
        return Err(if why.is_empty() { error } else { io::Error::other(why) });
    }
    ours.set_read_timeout(Some(PATIENCE))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(&ours, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags)?;
    let mut given = ancillary.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(given) => given.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    match (given.next(), given.next()) {
        (Some(users), Some(network)) => Ok(Network { users, network }),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_names_are_looked_up_is_known() {
        for (text, at_loopback) in [
            ("nameserver 10.0.0.1\n", false),
            ("# nameserver 127.0.0.1\nnameserver fe80::1%eth0\noptions edns0\n", false),
            ("search x\nnameserver 127.0.0.53\n", true),
            ("nameserver 10.0.0.1\nnameserver ::1\n", true),
            ("nameserver ::ffff:127.0.0.1\n", true),
            // Then it is this machine.
            ("", true),
            ("nameserver\nnameserver x\n", true),
        ] {
            assert_eq!(names_at_loopback(text), at_loopback, "{text:?}");
        }
    }
}
