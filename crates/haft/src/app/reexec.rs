//! Work for which haft starts its own program again, in a separate process.

use std::{
    ffi::{OsStr, OsString},
    process::ExitCode,
    sync::LazyLock,
};

use haft_policy::OwnProcesses;

#[cfg(feature = "pdf")]
use super::pdf;

/// The argument of the process that supervises commands.
const SUPERVISE: &str = "--supervise-commands";

/// What a process does that haft started again, from its start to its end.
pub type Work = fn() -> ExitCode;

/// What haft is called, whatever name its file has: who ends all of that name means it, too.
const NAME: &str = "haft";

/// Every argument that haft starts itself with, and what is done then; nobody types them.
const WORKS: &[(&str, Work)] = &[
    #[cfg(feature = "pdf")]
    (pdf::ARGUMENT, pdf::serve),
    (SUPERVISE, haft_host::supervise),
];

/// The work that an argument selects; none if it selects nothing.
pub fn work(argument: &OsStr) -> Option<Work> {
    WORKS.iter().find(|(name, _)| argument == *name).map(|(_, work)| *work)
}

/// The command line of the supervisor of commands: a program with its arguments.
pub fn supervisor() -> Vec<OsString> {
    vec![own(), SUPERVISE.into()]
}

/// haft's own processes, which no command may end.
pub fn own_processes() -> OwnProcesses {
    let words: Vec<_> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let group = rustix::process::getpgrp().as_raw_pid().cast_unsigned();
    let name = |argument: &OsStr| {
        let name = std::path::Path::new(argument).file_name()?;
        // The system keeps so many bytes of it.
        Some(name.to_string_lossy().chars().take(15).collect())
    };
    let mut names: Vec<String> = haft_host::SUPERVISORS.iter().map(ToString::to_string).collect();
    names.extend(std::env::current_exe().ok().and_then(|file| name(file.as_os_str())));
    // The system knows it by the name that it was started by, which may be that of a link.
    names.extend(std::env::args_os().next().and_then(|started| name(&started)));
    names.push(NAME.to_owned());
    names.sort();
    names.dedup();
    let supervisor = format!("{} {SUPERVISE}", haft_host::SUPERVISORS[0]);
    let user = rustix::process::getuid();
    let users = names_of(&[user.as_raw(), rustix::process::getgid().as_raw()]);
    let lines = vec![words.join(" "), supervisor, NAME.to_owned()];
    let terminals = haft_host::terminal().into_iter().collect();
    OwnProcesses { ids: vec![std::process::id(), group], names, lines, users, terminals, above }
}

/// Users and groups by their numbers, and the one name that is known.
fn names_of(users: &[u32]) -> Vec<String> {
    let root = users.first().filter(|user| **user == 0).map(|_| "root".to_owned());
    users.iter().map(u32::to_string).chain(root).collect()
}

/// The processes below which this one runs, looked up once.
fn above() -> &'static [OwnProcesses] {
    static ABOVE: LazyLock<Vec<OwnProcesses>> = LazyLock::new(|| {
        let one = |found: haft_host::Ancestor| OwnProcesses {
            ids: [vec![found.id], found.groups].concat(),
            names: vec![found.name],
            lines: vec![found.line],
            users: names_of(&found.users),
            terminals: found.terminal.into_iter().collect(),
            ..OwnProcesses::default()
        };
        haft_host::ancestors().into_iter().map(one).collect()
    });
    &ABOVE
}

/// This very program, also if its file was replaced or removed since the start.
#[cfg(target_os = "linux")]
pub fn own() -> OsString {
    "/proc/self/exe".into()
}

/// This program by its path.
#[cfg(not(target_os = "linux"))]
pub fn own() -> OsString {
    std::env::current_exe().map(OsString::from).unwrap_or_default()
}
