//! Signals of the supervisor and its monitors, in a form that can be waited for.

#![expect(unsafe_code, reason = "no safe wrapper sets a signal mask or makes a signalfd")]

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

/// How many signals there are, those of the C library included; a bit each in a set of the kernel.
const SIGNALS: libc::c_long = 64;

/// Tells that children have changed.
#[derive(Debug)]
pub(super) struct Signals(OwnedFd);

impl Signals {
    /// Takes the signals of ended children from now on; what asks a process to end is held back,
    /// since who supervises ends last. [`give_back`] undoes it for a program that is started.
    pub(super) fn take() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` initialises the set, each call gets a valid one, and the default
        // action is no handler.
        unsafe {
            // Where whoever started haft ignores it, the kernel buries children and tells nobody.
            if libc::signal(libc::SIGCHLD, libc::SIG_DFL) == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
            libc::sigemptyset(set.as_mut_ptr());
            for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT]
            {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            if libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
            let made = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if made < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(OwnedFd::from_raw_fd(made)))
        }
    }

    /// Forgets what has come; children are asked for one by one.
    pub(super) fn clear(&self) {
        let mut buffer = [0; 16 * size_of::<libc::signalfd_siginfo>()];
        while rustix::io::read(&self.0, &mut buffer).is_ok_and(|length| length == buffer.len()) {}
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Holds a signal back from this process, until [`give_back`].
pub(super) fn hold_back(signal: libc::c_int) -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set, which is then valid.
    let done = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut())
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes no signal away from the program that this process is about to become: none is held back,
/// and none ignored, whatever whoever started haft ignored. Its own terminal, or none, is all that
/// a program has to do with.
///
/// It makes system calls and nothing else, as it must between fork and exec.
pub(super) fn give_back() -> io::Result<()> {
    // What the kernel takes for the default action: its structure of zeros, which is no larger.
    let default = [0_u64; 4];
    for signal in 1..=SIGNALS {
        // SAFETY: the action is valid for the call, and sets no handler. The C library's own call
        // refuses the signals that it uses itself; KILL and STOP are as they are in any case.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                ptr::null_mut::<u64>(),
                SIGNALS / 8,
            );
        }
    }
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set, which is then valid.
    let done = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), ptr::null_mut())
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Splits this process in two; `None` in the new one.
///
/// Only for a process with one thread: then the new one is as whole as the old.
pub(super) fn fork() -> io::Result<Option<rustix::process::Pid>> {
    // SAFETY: the supervisor has one thread, so no lock is held by another one.
    let id = unsafe { libc::fork() };
    if id < 0 { Err(io::Error::last_os_error()) } else { Ok(rustix::process::Pid::from_raw(id)) }
}
