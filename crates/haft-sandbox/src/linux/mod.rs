//! Taking limits on, on Linux.

mod calls;
mod files;
mod raw;
mod rights;
mod spaces;
mod view;

use std::io;

use self::calls::Calls;
use crate::{Entered, Level, Limits};

/// Whether this process is root, or the root of a namespace of its own.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn enter_landlock(limits: &Limits) -> io::Result<()> {
    let rules = files::rules(limits)?;
    let calls = Calls::new(Level::Landlock, limits)?;
    rights::give_up(is_root())?;
    files::take_on(rules)?;
    calls.apply()
}

pub(crate) fn enter_namespaces(
    limits: &Limits,
    tell: &mut dyn FnMut(Entered) -> io::Result<()>,
) -> io::Result<()> {
    spaces::enter(limits, tell)
}
