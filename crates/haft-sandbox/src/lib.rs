//! What a child process may access, enforced by the kernel.
//!
//! [`Limits`] are data. Policy creates them, and they go to the process that is to become the
//! program. There [`enter`] applies them, right before exec. There are two ways, [`Level`]. What
//! each cannot do is found out by trying ([`probe`]), never assumed.
//!
//! **Invariant:** limits are applied completely or not at all. If any of them fails, so does
//! [`enter`], and the program must not be started.

mod attempts;
mod limits;
#[cfg(target_os = "linux")]
mod linux;
mod probe;
mod restore;
pub mod seatbelt;

use std::os::fd::OwnedFd;

#[cfg(target_os = "linux")]
pub use self::linux::{Listener, is_overlay};
pub use crate::{
    attempts::Attempts,
    limits::{Guard, Level, Limits, Net, in_trees},
    probe::{Attack, Cell, Probe, probe},
    restore::{Folders, ProtectedState, RestoreOptions, Restored},
};

/// What the first process of a namespace calls itself.
pub const FIRST_NAME: &std::ffi::CStr = c"tool-first";

/// What the process that takes limits on tells those whom it leaves.
#[derive(Debug, Default)]
pub struct Entered {
    /// The first process of the program's namespace, as its caller's parents number it; none where
    /// there is none of its own. It ends with the last process in there.
    pub first: Option<i32>,
    /// Where sockets that are refused are heard of, to be answered by a [`Listener`]: until it is, whoever
    /// wants one waits.
    pub listener: Option<OwnedFd>,
}

/// A network that several programs may have, and the users that it belongs to. It is there for as long as
/// anybody holds it or is in it.
#[derive(Debug)]
pub struct Network {
    /// The users.
    pub users: OwnedFd,
    /// The network.
    pub network: OwnedFd,
}

/// What a program that is confined has to do with those outside.
#[derive(Debug, Default)]
pub struct Outside {
    /// The network that it shares; none: one of its own. For [`Level::Namespaces`], and limits that leave
    /// it nothing to connect to.
    pub network: Option<Network>,
    /// Where its [`Attempts`] are written at its end, as bytes, at [`Level::Namespaces`].
    pub report: Option<OwnedFd>,
    /// Whether somebody answers an [`Entered::listener`], at [`Level::Landlock`].
    pub listens: bool,
}

/// Makes a network to be shared, that reaches nothing but itself. Only for a process with one thread.
///
/// # Errors
/// When the system refuses it.
#[cfg(target_os = "linux")]
pub fn network() -> std::io::Result<Network> {
    linux::network()
}

/// The same where there is no way.
#[cfg(not(target_os = "linux"))]
pub fn network() -> std::io::Result<Network> {
    Err(unsupported())
}

/// Takes limits on, for this process and all that it starts, for good.
///
/// It must have one thread. At [`Level::Namespaces`] it returns in another process, the program's: the
/// calling one ends when the program does, and as it does. `tell` is called before, with the number of
/// the first process in there; descriptors of the calling process other than the three standard ones
/// are closed, so that whoever waits for their end is not held up.
///
/// # Errors
/// When the system refuses anything of it; says what. The process must not go on then.
#[cfg(target_os = "linux")]
pub fn enter(
    level: Level,
    limits: &Limits,
    outside: Outside,
    tell: &mut dyn FnMut(Entered) -> std::io::Result<()>,
) -> std::io::Result<()> {
    match level {
        Level::Landlock => linux::enter_landlock(limits, &outside, tell),
        Level::Namespaces => linux::enter_namespaces(limits, outside, tell),
    }
}

/// The same where there is no way yet.
#[cfg(not(target_os = "linux"))]
pub fn enter(
    _: Level,
    _: &Limits,
    _: Outside,
    _: &mut dyn FnMut(Entered) -> std::io::Result<()>,
) -> std::io::Result<()> {
    Err(unsupported())
}

/// The same where there is no way.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn is_overlay(_: &std::path::Path) -> std::io::Result<bool> {
    Err(unsupported())
}

#[cfg(not(target_os = "linux"))]
fn unsupported() -> std::io::Error {
    let text = "this system has no way to confine a program that haft knows";
    std::io::Error::new(std::io::ErrorKind::Unsupported, text)
}
