//! What haft starts itself anew for: work that wants a process of its own.

use std::{
    ffi::{OsStr, OsString},
    process::ExitCode,
};

use crate::pdf;

/// The argument of the process that supervises commands.
const SUPERVISE: &str = "--supervise-commands";

/// Every argument that haft starts itself with, and what is done then; nobody types them.
const WORKS: &[(&str, fn() -> ExitCode)] =
    &[(pdf::ARGUMENT, pdf::serve), (SUPERVISE, haft_host::supervise)];

/// The work that an argument names.
pub fn work(argument: &OsStr) -> Option<fn() -> ExitCode> {
    WORKS.iter().find(|(name, _)| argument == *name).map(|(_, work)| *work)
}

/// The supervisor of commands, as a program with its arguments.
pub fn supervisor() -> Vec<OsString> {
    vec![own(), SUPERVISE.into()]
}

/// This very program, also when its file was replaced or removed since it was started.
#[cfg(target_os = "linux")]
pub fn own() -> OsString {
    "/proc/self/exe".into()
}

/// This program by its path.
#[cfg(not(target_os = "linux"))]
pub fn own() -> OsString {
    std::env::current_exe().map(OsString::from).unwrap_or_default()
}
