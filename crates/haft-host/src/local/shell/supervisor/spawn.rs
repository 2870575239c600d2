//! The one function that starts a program, whatever it is for.
//!
//! **Invariant:** every program leads a session and a process group of its own and inherits no
//! descriptor but 0 to 2 and, where asked for, 3: nothing of haft's own, and nothing that haft was
//! itself given open by its parent.

use std::{
    ffi::OsStr,
    fs, io,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::{ffi::OsStrExt, process::CommandExt},
    },
    process::Command,
};

use rustix::process::{Pid, Signal, set_parent_process_death_signal};

use super::signals::give_back;
use crate::local::shell::wire::Request;

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
}

/// Starts it.
pub(super) fn spawn(request: &Request, stdio: Stdio) -> io::Result<Pid> {
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
    prepare(&mut command, stdio.report, request.terminal);
    let id = command.spawn()?.id();
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::other("the program has no process id"))
}

/// Makes the program lead a session of its own and puts the report's pipe at descriptor 3.
///
/// There is no safe way to do either between fork and exec.
#[expect(unsafe_code, reason = "what runs between fork and exec needs it; the only place")]
fn prepare(command: &mut Command, report: Option<OwnedFd>, terminal: bool) {
    let prepare = move || {
        give_back()?;
        rustix::process::setsid()?;
        // It does not outlive its keeper, should that be killed.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if terminal {
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        close_at_exec();
        if let Some(report) = &report {
            // SAFETY: this is the child's own table of descriptors, which nothing else uses
            // between fork and exec; the number is released again before it could be closed.
            let mut target = unsafe { OwnedFd::from_raw_fd(REPORT) };
            let result = rustix::io::dup2(report, &mut target);
            std::mem::forget(target);
            result?;
        }
        Ok(())
    };
    // SAFETY: the closure only makes system calls that are safe between fork and exec; it takes no
    // lock and allocates nothing.
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
