//! Applies limits to this process, on Linux.

mod capabilities;
mod landlock;
mod listener;
mod mounts;
mod namespaces;
mod network;
mod overlay;
mod seccomp;
mod syscalls;

use std::io;

use self::seccomp::Calls;
pub use self::{listener::Listener, overlay::is_overlay};
use crate::{Entered, Level, Limits, Network, Outside};

/// Whether this process is root, or the root of a namespace of its own.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn enter_landlock(
    limits: &Limits,
    outside: &Outside,
    tell: &mut dyn FnMut(Entered) -> io::Result<()>,
) -> io::Result<()> {
    let rules = landlock::rules(limits)?;
    let calls = Calls::new(Level::Landlock, limits)?;
    capabilities::give_up(is_root())?;
    landlock::take_on(rules)?;
    match calls.apply(outside.listens)? {
        Some(listener) => tell(Entered { listener: Some(listener), ..Entered::default() }),
        None => Ok(()),
    }
}

pub(crate) fn enter_namespaces(
    limits: &Limits,
    outside: Outside,
    tell: &mut dyn FnMut(Entered) -> io::Result<()>,
) -> io::Result<()> {
    namespaces::enter(limits, outside, tell)
}

pub(crate) fn network() -> io::Result<Network> {
    network::make()
}

/// Whether attempts are counted in a process that has taken this level on.
pub(crate) fn counts(level: Level) -> bool {
    match level {
        Level::Namespaces => crate::Attempts::read(network::OWN.as_ref()).is_ok(),
        Level::Landlock => seccomp::may_listen(),
    }
}
