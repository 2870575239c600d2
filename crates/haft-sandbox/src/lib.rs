//! What a child process may touch, and having the kernel hold it to that.
//!
//! [`Limits`] are data: policy makes them, they go to the process that is to become the program,
//! and [`enter`] takes them on there, right before exec. There are two ways, [`Level`], and what each
//! cannot do is found out by trying ([`probe`]), never assumed.
//!
//! **Invariant:** limits are taken on whole or not at all: where anything of them fails, so does
//! [`enter`], and the program must not be started.

mod limits;
#[cfg(target_os = "linux")]
mod linux;
mod probe;
mod put_back;
pub mod seatbelt;

pub use self::{
    limits::{Guard, Level, Limits, Net, in_trees},
    probe::{Attack, Cell, Probe, probe},
    put_back::{Folders, Keeping, Kept, PutBack},
};

/// What the first process of a namespace calls itself.
pub const FIRST_NAME: &std::ffi::CStr = c"tool-first";

/// What the process that has entered namespaces is told of those it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// The first process of the program's namespace, as its caller's parents number it; none where
    /// there is none of its own. It ends with the last process in there.
    pub first: Option<i32>,
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
    tell: &mut dyn FnMut(Entered) -> std::io::Result<()>,
) -> std::io::Result<()> {
    match level {
        Level::Landlock => linux::enter_landlock(limits),
        Level::Namespaces => linux::enter_namespaces(limits, tell),
    }
}

/// The same where there is no way yet.
#[cfg(not(target_os = "linux"))]
pub fn enter(
    _: Level,
    _: &Limits,
    _: &mut dyn FnMut(Entered) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let text = "this system has no way to confine a program that haft knows";
    Err(std::io::Error::new(std::io::ErrorKind::Unsupported, text))
}
