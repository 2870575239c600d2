//! Which system calls are refused, whatever the level.
//!
//! Everything is allowed but what is named here: a program breaks if an ordinary call is refused.
//! What it may do to files and processes is limited elsewhere. The refused calls are those that
//! open another way to the kernel, to other processes or to the machine.
//!
//! **Invariant:** no rule compares more of an argument than the kernel reads. What is an `int` in
//! the kernel is compared in 32 bits. Otherwise high bits that the kernel ignores would bypass the
//! rule.

use std::{collections::BTreeMap, io, os::fd::OwnedFd};

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, IPPROTO_TCP, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET,
    SOCK_STREAM,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};

use super::syscalls;
use crate::{Level, Limits, Net};

/// What a refused call fails with.
pub(super) const REFUSED_WITH: i32 = libc::EPERM;
const INTERNET: [i32; 2] = [AF_INET, AF_INET6];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// What is refused outright.
const REFUSED: &[i64] = &[
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_bpf,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
];

/// What is not there: programs then do the same another way. The flags of `clone3` stand in memory,
/// where no rule can look.
const ABSENT: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_clone3,
];

/// What looks into another process. That it is its own is held elsewhere: by its namespace, and at level L by
/// Landlock, which lets nobody look out. What only looks at files has no need of it.
const TRACES: &[i64] = &[libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev];

/// What changes something of a file that Landlock knows nothing of, and is refused where nothing may
/// be changed.
const CHANGES: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];
/// Calls that give a file permissions, with the argument that they stand in.
const MODES: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (SYS_FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];
/// Calls that may make a file: where their flags stand, and behind them the permissions.
const OPENS: &[(i64, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];
/// What lets whoever runs a file be its owner or of its group: outside, it is the person's.
const GAINS: [u64; 2] = [0o4000, 0o2000];
/// Flags of open without which permissions mean nothing.
const MAKES: [u64; 2] = [libc::O_CREAT as u64, 0o20_000_000];

/// What processes of one user share by numbers, and queues of messages, which are files that belong to
/// no folder; refused where there is no namespace of their own.
const SHARED: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];
/// What changes something of another process that is named by this argument: 0 stands for the caller.
/// Refused for others where they can be named.
const OF_OTHERS: &[(i64, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_migrate_pages, 0),
    (libc::SYS_move_pages, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];
/// Those of them that also take a user, by this number as their first argument.
const OF_USERS: &[(i64, u64)] = &[
    (libc::SYS_setpriority, libc::PRIO_USER as u64),
    // IOPRIO_WHO_USER
    (libc::SYS_ioprio_set, 3),
];
const SYS_FCHMODAT2: i64 = 452;
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_FILE_SETATTR: i64 = 469;
/// Newer ways to look at mounts, the second of which also changes them.
const SYS_OPEN_TREE_ATTR: i64 = 467;

/// New namespaces, as `clone` and `unshare` are asked for them; the last by `unshare` alone.
const SPACES: [u64; 8] = [
    libc::CLONE_NEWNS as u64,
    libc::CLONE_NEWCGROUP as u64,
    libc::CLONE_NEWUTS as u64,
    libc::CLONE_NEWIPC as u64,
    libc::CLONE_NEWUSER as u64,
    libc::CLONE_NEWPID as u64,
    libc::CLONE_NEWNET as u64,
    0x80,
];

/// Attributes of inodes, which a file that is open for reading lets be changed.
const FS_IOC_SETFLAGS: u64 = 0x4008_6602;
const FS_IOC_FSSETXATTR: u64 = 0x401c_5820;
const TIOCLINUX: u64 = 0x541c;
/// Begins a connection with the first bytes that are sent.
const MSG_FASTOPEN: u64 = 0x2000_0000;
/// The bits of a socket's type that are no flags, and what flags there may be beside it: the kernel knows no
/// others.
const TYPE: u64 = 0xf;
const FLAGS: [i32; 4] =
    [0, libc::SOCK_CLOEXEC, libc::SOCK_NONBLOCK, libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK];
/// From here on x86-64 has the numbers of x32.
const X32: u32 = 0x4000_0000;

/// One comparison with the argument of this number, of 32 bits.
fn is(argument: u8, how: SeccompCmpOp, value: u64) -> io::Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, value).map_err(io::Error::other)
}

/// What is refused where all of these are so.
fn rule(conditions: Vec<SeccompCondition>) -> io::Result<SeccompRule> {
    SeccompRule::new(conditions).map_err(io::Error::other)
}

const fn number(value: i32) -> u64 {
    value.cast_unsigned() as u64
}

/// Refuses sockets that are of no family of these, and of others than these types of each; where none are
/// named, of a family none.
fn only(families: &[(i32, &[i32])]) -> io::Result<Vec<SeccompRule>> {
    let others = families.iter().map(|(family, _)| is(0, SeccompCmpOp::Ne, number(*family)));
    let mut rules = vec![rule(others.collect::<io::Result<_>>()?)?];
    for (family, types) in families.iter().filter(|(_, types)| !types.is_empty()) {
        rules.push(of_others(*family, types)?);
    }
    Ok(rules)
}

/// Refuses sockets of a family that are of none of these types.
fn of_others(family: i32, types: &[i32]) -> io::Result<SeccompRule> {
    let mut conditions = vec![is(0, SeccompCmpOp::Eq, number(family))?];
    for kind in types.iter().flat_map(|kind| FLAGS.map(|flags| kind | flags)) {
        conditions.push(is(1, SeccompCmpOp::Ne, number(kind))?);
    }
    rule(conditions)
}

/// Refuses what is made over anything but TCP: that is looked at where it connects.
fn over_others(family: i32) -> io::Result<SeccompRule> {
    let stream = is(1, SeccompCmpOp::MaskedEq(TYPE), number(SOCK_STREAM))?;
    let family = is(0, SeccompCmpOp::Eq, number(family))?;
    let other = [0, number(IPPROTO_TCP)].map(|known| is(2, SeccompCmpOp::Ne, known));
    let [default, tcp] = other;
    rule(vec![family, stream, default?, tcp?])
}

/// Which sockets to other machines are refused where there is no network of its own: these can be heard of.
fn connecting(level: Level, limits: &Limits) -> io::Result<Option<Rules>> {
    if level == Level::Namespaces || limits.net == Net::On {
        return Ok(None);
    }
    let mut rules = Vec::new();
    for family in INTERNET {
        if limits.net == Net::Off {
            rules.push(rule(vec![is(0, SeccompCmpOp::Eq, number(family))?])?);
        } else {
            rules.extend([of_others(family, &[SOCK_STREAM])?, over_others(family)?]);
        }
    }
    Ok(Some(Rules::from([(libc::SYS_socket, rules)])))
}

/// Which other sockets may be made.
fn sockets(rules: &mut Rules, level: Level, limits: &Limits) -> io::Result<()> {
    let both: &[i32] = &[SOCK_STREAM, SOCK_DGRAM];
    let own = level == Level::Namespaces;
    let mut families: Vec<(i32, &[i32])> = match limits.net {
        // See `connecting`.
        Net::Off | Net::Port(_) if !own => vec![(AF_INET, &[]), (AF_INET6, &[])],
        // A network of its own holds nothing but itself; what names stand for, and which devices there are,
        // is asked of the kernel.
        Net::Off | Net::Port(_) | Net::On => {
            vec![(AF_INET, both), (AF_INET6, both), (AF_NETLINK, &[SOCK_RAW, SOCK_DGRAM])]
        }
    };
    if limits.sockets {
        families.push((AF_UNIX, &[SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET]));
    }
    let mut made = only(&families)?;
    if families.iter().any(|(family, _)| *family == AF_NETLINK) {
        // NETLINK_ROUTE is number 0.
        let family = is(0, SeccompCmpOp::Eq, number(AF_NETLINK))?;
        made.push(rule(vec![family, is(2, SeccompCmpOp::Ne, 0)?])?);
    }
    if limits.net != Net::On && own {
        for family in INTERNET {
            made.push(over_others(family)?);
        }
    }
    rules.insert(libc::SYS_socket, made);
    // Both ends are the caller's. One of datagrams could be connected anew, to a socket with a name.
    let pairs: &[i32] = if limits.sockets {
        &[SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET]
    } else {
        &[SOCK_STREAM, SOCK_SEQPACKET]
    };
    rules.insert(libc::SYS_socketpair, only(&[(AF_UNIX, pairs)])?);
    if limits.net != Net::On && !own {
        let fast = |at: u8| {
            let flag = is(at, SeccompCmpOp::MaskedEq(MSG_FASTOPEN), MSG_FASTOPEN)?;
            Ok::<_, io::Error>(vec![rule(vec![flag])?])
        };
        rules.insert(libc::SYS_sendto, fast(3)?);
        rules.insert(libc::SYS_sendmsg, fast(2)?);
        rules.insert(libc::SYS_sendmmsg, fast(3)?);
        // Without a name a listener gets one from the kernel, where no rule looks.
        if !limits.sockets {
            rules.insert(libc::SYS_listen, Vec::new());
        }
    }
    Ok(())
}

/// Refuses to make programs that give away who they belong to. Where the flags stand in memory no rule
/// can look: that call is not there (see [`Calls::new`]).
fn gains(rules: &mut Rules) -> io::Result<()> {
    let has = |at: u8, bit: u64| is(at, SeccompCmpOp::MaskedEq(bit), bit);
    for (call, at) in MODES {
        let each = GAINS.iter().map(|gain| rule(vec![has(*at, *gain)?]));
        rules.insert(*call, each.collect::<io::Result<_>>()?);
    }
    for (call, at) in OPENS {
        let both = GAINS.iter().flat_map(|gain| MAKES.map(|makes| (gain, makes)));
        let each = both.map(|(gain, makes)| rule(vec![has(*at, makes)?, has(at + 1, *gain)?]));
        rules.insert(*call, each.collect::<io::Result<_>>()?);
    }
    Ok(())
}

/// Everything that is refused with an error.
fn refused(level: Level, limits: &Limits) -> io::Result<Rules> {
    let mut rules: Rules = REFUSED.iter().map(|number| (*number, Vec::new())).collect();
    rules.insert(SYS_OPEN_TREE_ATTR, Vec::new());
    let has = |bit: &u64| rule(vec![is(0, SeccompCmpOp::MaskedEq(*bit), *bit)?]);
    rules.insert(libc::SYS_unshare, SPACES.iter().map(has).collect::<io::Result<_>>()?);
    rules.insert(libc::SYS_clone, SPACES[..7].iter().map(has).collect::<io::Result<_>>()?);
    let mut controls = vec![number_of(libc::TIOCSTI), TIOCLINUX];
    gains(&mut rules)?;
    if limits.reads_only() || limits.keeps_attributes {
        rules.extend(CHANGES.iter().chain(TRACES).map(|number| (*number, Vec::new())));
        controls.extend([FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR]);
    }
    let control = |request: u64| rule(vec![is(1, SeccompCmpOp::Eq, request)?]);
    rules.insert(libc::SYS_ioctl, controls.into_iter().map(control).collect::<io::Result<_>>()?);
    if level == Level::Landlock {
        rules.extend(SHARED.iter().map(|number| (*number, Vec::new())));
        for (number, at) in OF_OTHERS {
            let mut own = vec![rule(vec![is(*at, SeccompCmpOp::Ne, 0)?])?];
            // Of a user 0 stands for all processes of the caller's.
            if let Some((_, users)) = OF_USERS.iter().find(|(call, _)| call == number) {
                own.push(rule(vec![is(0, SeccompCmpOp::Eq, *users)?])?);
            }
            rules.insert(*number, own);
        }
    }
    sockets(&mut rules, level, limits)?;
    Ok(rules)
}

/// The type of a request differs between C libraries.
#[allow(clippy::unnecessary_cast, trivial_numeric_casts, reason = "its type is another elsewhere")]
const fn number_of(request: libc::Ioctl) -> u64 {
    request as u64
}

/// The programs that look at each system call.
#[derive(Debug)]
pub(super) struct Calls {
    programs: [BpfProgram; 2],
    /// What refuses sockets that can be heard of.
    connecting: Option<BpfProgram>,
}

impl Calls {
    /// Makes them ready.
    pub(super) fn new(level: Level, limits: &Limits) -> io::Result<Self> {
        // What may write nowhere makes no files.
        let opens = limits.writable().next().map(|_| &libc::SYS_openat2);
        let absent = ABSENT.iter().chain(opens).map(|number| (*number, Vec::new())).collect();
        let connecting = connecting(level, limits)?;
        Ok(Self {
            programs: [
                program(refused(level, limits)?, REFUSED_WITH)?,
                program(absent, libc::ENOSYS)?,
            ],
            connecting: connecting.map(|rules| program(rules, REFUSED_WITH)).transpose()?,
        })
    }

    /// Has them look from now on; privileges cannot be gained any more either. Where somebody `listens` and
    /// the kernel can, they hear there of sockets that are refused.
    pub(super) fn apply(&self, listens: bool) -> io::Result<Option<OwnedFd>> {
        let heard = self.connecting.as_ref().filter(|_| listens);
        let listener = heard.and_then(|program| syscalls::listen(&handing_on(program)).ok());
        let alone = self.connecting.iter().filter(|_| listener.is_none());
        let mut all = self.programs.iter().chain(alone);
        all.try_for_each(|program| apply_filter(program).map_err(io::Error::other))?;
        Ok(listener)
    }
}

/// The same program, which hands on what it refuses.
fn handing_on(program: &BpfProgram) -> BpfProgram {
    let refuses = libc::SECCOMP_RET_ERRNO | REFUSED_WITH.cast_unsigned();
    let on = |mut one: sock_filter| {
        if (one.code, one.k) == (RETURN, refuses) {
            one.k = libc::SECCOMP_RET_USER_NOTIF;
        }
        one
    };
    program.iter().cloned().map(on).collect()
}

/// Whether this process may have its calls heard of: only one program in a row of them can, so that none can
/// in a sandbox that does.
pub(super) fn may_listen() -> bool {
    let k = libc::SECCOMP_RET_ALLOW;
    syscalls::listen(&[sock_filter { code: RETURN, jt: 0, jf: 0, k }]).is_ok()
}

/// The instruction that says what becomes of a call.
const RETURN: u16 = 0x06;

fn program(rules: Rules, error: libc::c_int) -> io::Result<BpfProgram> {
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let refuse = SeccompAction::Errno(error.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch);
    let made: BpfProgram = filter.and_then(TryInto::try_into).map_err(io::Error::other)?;
    let statement = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    // The number of the call, then: from X32 on it is not there. Other architectures are looked at
    // by what follows, which ends the process.
    let mut program: BpfProgram = Vec::with_capacity(made.len() + 3);
    program.push(statement(0x20, 0, 0, 0));
    program.push(statement(0x35, 0, 1, X32));
    program.push(statement(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned()));
    program.extend(made);
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program says of a call; its own machine is small.
    fn run(program: &[sock_filter], call: i64, arguments: [u64; 3]) -> u32 {
        let arch = if cfg!(target_arch = "x86_64") { 0xc000_003e_u32 } else { 0xc000_00b7 };
        let mut data = Vec::new();
        data.extend(u32::try_from(call).unwrap().to_ne_bytes());
        data.extend(arch.to_ne_bytes());
        data.extend(0_u64.to_ne_bytes());
        data.extend(arguments.iter().flat_map(|argument| argument.to_ne_bytes()));
        data.resize(64, 0);
        let (mut at, mut a) = (0, 0_u32);
        loop {
            let sock_filter { code, jt, jf, k } = program[at].clone();
            let jump = |yes: bool| usize::from(if yes { jt } else { jf });
            at += 1;
            match code {
                0x20 => {
                    let from = k as usize;
                    a = u32::from_ne_bytes(data[from..from + 4].try_into().unwrap());
                }
                0x54 => a &= k,
                0x05 => at += k as usize,
                0x15 => at += jump(a == k),
                0x25 => at += jump(a > k),
                0x35 => at += jump(a >= k),
                0x06 => return k,
                other => panic!("{other:#x}"),
            }
        }
    }

    fn allowed(level: Level, limits: &Limits, call: i64, arguments: [i32; 3]) -> bool {
        let calls = Calls::new(level, limits).unwrap();
        let arguments = arguments.map(number);
        let answer = |arguments| {
            let all = calls.programs.iter().chain(&calls.connecting);
            let heard = calls.connecting.as_ref().map(handing_on);
            let says = |program: &BpfProgram| run(program, call, arguments);
            let answer = all.map(says).min().unwrap();
            // Hearing of a call changes nothing for who makes it.
            let hands_on = heard.as_ref().is_some_and(|p| says(p) == libc::SECCOMP_RET_USER_NOTIF);
            let with = libc::SECCOMP_RET_ERRNO | REFUSED_WITH.cast_unsigned();
            let refuses = calls.connecting.as_ref().is_some_and(|p| says(p) == with);
            assert_eq!(hands_on, refuses, "{call} {arguments:?}");
            answer == libc::SECCOMP_RET_ALLOW
        };
        let plain = answer(arguments);
        // Bits that the kernel does not look at change nothing.
        let high = arguments.map(|argument| argument | 0xdead_beef << 32);
        assert_eq!(answer(high), plain, "{call} {arguments:?}");
        plain
    }

    #[test]
    fn ordinary_calls_are_allowed_and_ways_out_are_not() {
        let limits = Limits {
            write: vec![haft_types::HostPath::root(haft_types::Style::Posix)],
            ..Limits::default()
        };
        for level in Level::ALL {
            let allowed = |call, arguments| allowed(level, &limits, call, arguments);
            for call in [
                libc::SYS_read,
                libc::SYS_openat,
                libc::SYS_execve,
                libc::SYS_fchmodat,
                libc::SYS_kill,
            ] {
                assert!(allowed(call, [0; 3]), "{call}");
            }
            assert!(allowed(libc::SYS_clone, [libc::SIGCHLD, 0, 0]));
            assert!(allowed(libc::SYS_clone, [libc::CLONE_VM | libc::CLONE_THREAD, 0, 0]));
            assert!(allowed(libc::SYS_unshare, [libc::CLONE_FILES, 0, 0]));
            assert!(allowed(libc::SYS_ioctl, [0, 0x5401, 0]));
            assert!(!allowed(libc::SYS_ioctl, [0, 0x5412, 0]));
            for call in REFUSED.iter().chain(ABSENT) {
                assert!(!allowed(*call, [0; 3]), "{call}");
            }
            for bit in [libc::CLONE_NEWUSER, libc::CLONE_NEWNS | libc::SIGCHLD] {
                assert!(!allowed(libc::SYS_clone, [bit, 0, 0]));
                assert!(!allowed(libc::SYS_unshare, [bit, 0, 0]));
            }
            assert!(allowed(libc::SYS_fchmod, [3, 0o755, 0]));
            assert!(!allowed(libc::SYS_fchmod, [3, 0o4755, 0]));
            assert!(!allowed(libc::SYS_fchmodat, [0, 0, 0o2755]));
            assert!(!allowed(libc::SYS_openat2, [0; 3]));
            let own = level == Level::Namespaces;
            for (call, at) in OF_OTHERS {
                let mut arguments = [0; 3];
                assert!(allowed(*call, arguments), "{call}");
                arguments[usize::from(*at)] = 77;
                assert_eq!(allowed(*call, arguments), own, "{call}");
            }
            for (call, users) in OF_USERS {
                let users = i32::try_from(*users).unwrap();
                assert_eq!(allowed(*call, [users, 0, 0]), own, "{call}");
            }
            assert!(!allowed(i64::from(X32) + libc::SYS_read, [0; 3]));
            let none = Limits::default();
            assert!(TRACES.iter().all(|call| allowed(*call, [0; 3])));
            for call in CHANGES.iter().chain(TRACES) {
                assert!(!super::tests::allowed(level, &none, *call, [0; 3]), "{call}");
            }
        }
    }

    #[test]
    fn sockets_are_of_the_families_that_limits_name() {
        let families = [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, libc::AF_PACKET, libc::AF_VSOCK];
        let may = |level, limits: &Limits| {
            let stream = |family: &i32| {
                let kind = if *family == AF_NETLINK { SOCK_RAW } else { SOCK_STREAM };
                allowed(level, limits, libc::SYS_socket, [*family, kind | libc::SOCK_CLOEXEC, 0])
            };
            families.iter().map(|family| u8::from(stream(family))).collect::<Vec<_>>()
        };
        let off = Limits::default();
        let port = Limits { net: Net::Port(1), ..Limits::default() };
        let on = Limits { net: Net::On, sockets: true, ..Limits::default() };
        assert_eq!(may(Level::Landlock, &off), [0, 0, 0, 0, 0, 0]);
        assert_eq!(may(Level::Namespaces, &off), [0, 1, 1, 1, 0, 0]);
        assert_eq!(may(Level::Landlock, &port), [0, 1, 1, 0, 0, 0]);
        assert_eq!(may(Level::Landlock, &on), [1, 1, 1, 1, 0, 0]);
        let socket =
            |limits, arguments| allowed(Level::Landlock, limits, libc::SYS_socket, arguments);
        assert!(!socket(&port, [AF_INET, SOCK_DGRAM, 0]), "UDP");
        assert!(!socket(&port, [AF_INET, SOCK_STREAM, 262]), "MPTCP");
        assert!(socket(&port, [AF_INET, SOCK_STREAM, IPPROTO_TCP]));
        assert!(!socket(&on, [AF_INET, SOCK_RAW, 1]), "raw");
        for limits in [&on, &off] {
            let audit = [AF_NETLINK, SOCK_RAW, 9];
            assert!(!allowed(Level::Namespaces, limits, libc::SYS_socket, audit), "audit");
        }
        let pair = |limits, kind| {
            allowed(Level::Landlock, limits, libc::SYS_socketpair, [AF_UNIX, kind, 0])
        };
        assert!(pair(&off, SOCK_STREAM) && pair(&off, SOCK_SEQPACKET | libc::SOCK_NONBLOCK));
        assert!(!pair(&off, SOCK_DGRAM) && !pair(&off, SOCK_RAW) && pair(&on, SOCK_DGRAM));
    }
}
