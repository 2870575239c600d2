//! System calls for which no safe wrapper exists, each in a small function.

#![expect(unsafe_code, reason = "no safe wrapper makes these calls")]

use std::{
    io, mem,
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::process::ExitStatusExt,
    },
    process::ExitStatus,
    ptr,
};

use rustix::process::Pid;

/// Splits this process in two, the new one in new namespaces; `None` there.
///
/// Only for a process with one thread: then the new one is as whole as the old.
pub(super) fn split(spaces: libc::c_int) -> io::Result<Option<Pid>> {
    let flags = libc::c_long::from(spaces | libc::SIGCHLD);
    // SAFETY: without a stack of its own it is a fork; there is one thread, so no lock is held by
    // another one.
    let id = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if id < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(i32::try_from(id).ok().and_then(Pid::from_raw))
    }
}

/// The same without namespaces.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: there is one thread, so no lock is held by another one.
    let id = unsafe { libc::fork() };
    if id < 0 { Err(io::Error::last_os_error()) } else { Ok(Pid::from_raw(id)) }
}

/// Ends this process without anything else.
pub(super) fn end(code: i32) -> ! {
    // SAFETY: it ends the process.
    unsafe { libc::_exit(code) }
}

/// Ends this process as another one ended.
pub(super) fn end_as(status: i32) -> ! {
    let status = ExitStatus::from_raw(status);
    let Some(signal) = status.signal() else { end(status.code().unwrap_or(1)) };
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    // What there was to be dumped was.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    // SAFETY: the set is initialised before it is used, and the default action takes no memory.
    unsafe {
        let mut set = mem::zeroed();
        libc::signal(signal, libc::SIG_DFL);
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut());
        libc::raise(signal);
    }
    end(128 + signal)
}

/// Lets nobody with the same user look into this process, or hold it.
pub(super) fn close_to_others() -> io::Result<()> {
    // SAFETY: it takes numbers alone.
    match unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Holds every signal back that can be.
pub(super) fn hold_signals_back() {
    // SAFETY: the set is initialised before it is used.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigfillset(&raw mut set);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut());
    }
}

/// Closes every descriptor but these, which are the first then.
pub(super) fn keep_only<const N: usize>(these: [OwnedFd; N]) -> io::Result<[OwnedFd; N]> {
    // Out of the way of the numbers that they are to have.
    let mut held = Vec::new();
    for one in these {
        held.push(rustix::io::fcntl_dupfd_cloexec(one, 2 * HELD)?);
    }
    for (number, one) in (0..HELD).zip(&held) {
        // SAFETY: nothing in this process uses a descriptor but those that are held.
        if unsafe { libc::dup2(one.as_raw_fd(), number) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    held.into_iter().for_each(mem::forget);
    let rest = libc::c_uint::try_from(N).unwrap_or(0);
    // SAFETY: as above; those that are closed here are owned by nothing any more.
    if unsafe { libc::syscall(libc::SYS_close_range, rest, libc::c_uint::MAX, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut number = 0;
    Ok([(); N].map(|()| {
        number += 1;
        // SAFETY: it was made above, and is owned by what is returned alone.
        unsafe { OwnedFd::from_raw_fd(number - 1) }
    }))
}

/// Most descriptors that are kept.
const HELD: i32 = 8;

/// Sets attributes of the mount at a descriptor, and of all below it where `deep`.
pub(super) fn set_mount(of: BorrowedFd<'_>, set: u64, deep: bool) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH | if deep { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is an empty C string, and the attributes are as long as is said.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            of.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// That a device is up.
const UP: libc::c_short = 1;

/// Takes the loopback device of this network up.
pub(super) fn loopback_up() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: the kernel reads and writes one request, which is whole; all zero is a valid one.
    unsafe {
        let mut request: libc::ifreq = mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(*b"lo") {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        request.ifr_ifru.ifru_flags = UP;
        if libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Has a program look at the calls of this process, and of all that it starts, from now on; where those are
/// heard of that it hands on. Privileges must have been given up.
pub(super) fn listen(program: &[seccompiler::sock_filter]) -> io::Result<OwnedFd> {
    let length = libc::c_ushort::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut().cast() };
    // SAFETY: the kernel reads as many instructions as are said to be there, which have its own layout.
    let made = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    let made = i32::try_from(made).map_err(io::Error::other)?;
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was made for this process just now.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

/// Waits for the next call that is handed on.
pub(super) fn hear(listener: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: all zero is a valid one, and what the kernel asks for; it fills it in whole.
    unsafe {
        let mut heard: libc::seccomp_notif = mem::zeroed();
        let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
        match libc::ioctl(listener.as_raw_fd(), request, &raw mut heard) {
            0 => Ok(heard.id),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Answers a call with an error.
pub(super) fn refuse(listener: BorrowedFd<'_>, call: u64, error: i32) -> io::Result<()> {
    let answer = libc::seccomp_notif_resp { id: call, val: 0, error: -error, flags: 0 };
    let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
    // SAFETY: the kernel reads one answer, which is whole.
    match unsafe { libc::ioctl(listener.as_raw_fd(), request, &raw const answer) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
