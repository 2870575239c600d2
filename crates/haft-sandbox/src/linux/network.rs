//! Network namespaces that several programs share, and the user namespaces that own them.
//!
//! **Invariant:** only descriptors hold a network; no process exists for it. It ends with the last
//! process that holds it or is in it. A process in it, in a user namespace below its owner, may not
//! change it.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::{fd::AsFd, unix::net::UnixStream},
};

use rustix::{
    process::{
        Pid, Signal, WaitOptions, getegid, geteuid, set_parent_process_death_signal, waitpid,
    },
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use super::{is_root, landlock::explain, syscalls};
use crate::Network;

/// Where the counters and tables of this process's own network are.
pub(super) const OWN: &str = "/proc/self/net";

/// Makes one. Only for a process with one thread.
pub(super) fn make() -> io::Result<Network> {
    let maps = Maps::new(is_root())?;
    let (link, inside) = UnixStream::pair()?;
    let split = syscalls::split(libc::CLONE_NEWUSER | libc::CLONE_NEWNET);
    let Some(child) = split.map_err(|error| explain("a network cannot be made", &error))? else {
        drop(link);
        let up = || -> io::Result<()> {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            (&inside).read_exact(&mut [0])?;
            syscalls::loopback_up()?;
            (&inside).write_all(b"+")?;
            // Until who made it holds it.
            (&inside).read_exact(&mut [0])
        };
        let _ = up();
        syscalls::end(0);
    };
    drop(inside);
    let hold = || -> io::Result<Network> {
        maps.write(child)?;
        (&link).write_all(b"+")?;
        (&link)
            .read_exact(&mut [0])
            .map_err(|error| explain("a network cannot be made", &error))?;
        let space = |name: &str| {
            let path = format!("/proc/{}/ns/{name}", child.as_raw_pid());
            let held = File::open(&path).map_err(|error| explain(&path, &error))?;
            Ok::<_, io::Error>(held.into())
        };
        Ok(Network { users: space("user")?, network: space("net")? })
    };
    let made = hold();
    drop(link);
    let _ = waitpid(Some(child), WaitOptions::empty());
    made
}

/// Has this process join one.
pub(super) fn join(network: Network) -> io::Result<()> {
    let spaces =
        [(network.users, LinkNameSpaceType::User), (network.network, LinkNameSpaceType::Network)];
    spaces.iter().try_for_each(|(space, kind)| {
        let joined = move_into_link_name_space(space.as_fd(), Some(*kind));
        joined.map_err(|error| explain("the network of the session cannot be joined", &error))
    })
}

/// Which users and groups there are in a namespace.
pub(super) struct Maps {
    users: String,
    groups: String,
    /// Whether groups may be given up in there, which an ordinary user must not.
    free: bool,
}

impl Maps {
    /// Root has all that there are, anybody else itself.
    pub(super) fn new(is_root: bool) -> io::Result<Self> {
        if is_root {
            let same = |file: &str| -> io::Result<String> {
                let text = fs::read_to_string(file)?;
                let line = |line: &str| {
                    let mut words = line.split_ascii_whitespace();
                    let (inside, count) = (words.next()?, words.nth(1)?);
                    Some(format!("{inside} {inside} {count}\n"))
                };
                Ok(text.lines().filter_map(line).collect())
            };
            let (users, groups) = (same("/proc/self/uid_map")?, same("/proc/self/gid_map")?);
            return Ok(Self { users, groups, free: true });
        }
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        let (users, groups) = (format!("{user} {user} 1\n"), format!("{group} {group} 1\n"));
        Ok(Self { users, groups, free: false })
    }

    pub(super) fn write(&self, of: Pid) -> io::Result<()> {
        let write = |name: &str, text: &str| {
            let written = fs::write(format!("/proc/{}/{name}", of.as_raw_pid()), text);
            written.map_err(|error| explain(&format!("{name} cannot be written"), &error))
        };
        if !self.free {
            write("setgroups", "deny")?;
        }
        write("uid_map", &self.users)?;
        write("gid_map", &self.groups)
    }
}
