//! What a confined program tries, each with what must come of it at each level.
//!
//! Each attack works where nothing confines it, or it would show nothing; a test sees to that for
//! those that need no rights. They only touch a scratch folder, and ask of the machine's own state only whether it
//! could be opened.

#![expect(unsafe_code, reason = "the attacks are system calls that no safe wrapper makes")]

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    net::{TcpStream, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            fs::{FileTypeExt, PermissionsExt, symlink},
            net::{SocketAddr, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process::Command,
};

use rustix::{fs::CWD, process::Pid};
use serde::{Deserialize, Serialize};

use haft_host::Cell::{self, Open, PutBack, Stopped};

/// What there is to attack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Field {
    /// Holds `in` and `more`, which may be written, `out` and `secret`, which is hidden.
    pub(super) folder: PathBuf,
    /// The process that stands for haft.
    pub(super) haft: i32,
    /// When that began.
    pub(super) began: String,
    pub(super) tcp: u16,
    pub(super) udp: u16,
    /// Whether only what works for everybody is tried: nothing confines it.
    pub(super) plain: bool,
    /// The network of that process.
    pub(super) network: PathBuf,
    /// A terminal that is not the program's.
    pub(super) terminal: PathBuf,
    /// A program that belongs to root, and makes whoever runs it that; none where that is root already.
    pub(super) setuid: Option<PathBuf>,
    /// A block device, where there is one that this user could read.
    pub(super) disk: Option<PathBuf>,
}

impl Field {
    fn at(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    fn haft(&self) -> Pid {
        Pid::from_raw(self.haft).unwrap()
    }
}

/// One attack: true when it was done.
pub(super) struct Attack {
    pub(super) name: &'static str,
    pub(super) run: fn(&Field) -> bool,
    /// At level N, and at level L.
    pub(super) cells: [Cell; 2],
    /// Whether it works for everybody whom nothing confines.
    pub(super) plain: bool,
}

const fn attack(name: &'static str, run: fn(&Field) -> bool, cells: [Cell; 2]) -> Attack {
    Attack { name, run, cells, plain: true }
}

/// One that an ordinary user, or a newer kernel, may be refused anyway.
const fn special(name: &'static str, run: fn(&Field) -> bool, cells: [Cell; 2]) -> Attack {
    Attack { name, run, cells, plain: false }
}

const NONE: [Cell; 2] = [Stopped, Stopped];

pub(super) const ALL: &[Attack] = &[
    attack("write a file outside", |f| write(&f.at("out/file")), NONE),
    attack("make a file outside", |f| fs::write(f.at("out/new"), "x").is_ok(), NONE),
    attack("make a folder outside", |f| fs::create_dir(f.at("out/folder")).is_ok(), NONE),
    attack("remove a file outside", |f| fs::remove_file(f.at("out/old")).is_ok(), NONE),
    attack("cut a file outside", |f| rustix_truncate(&f.at("out/long")), NONE),
    attack("write through a link", through_link, NONE),
    attack("write through a hard link", through_hard_link, NONE),
    attack("rename a file in", |f| fs::rename(f.at("out/a"), f.at("in/a")).is_ok(), NONE),
    attack("rename a file out", |f| fs::rename(f.at("in/b"), f.at("out/b")).is_ok(), NONE),
    attack("exchange with one outside", exchange, NONE),
    attack("rename the writable folder", rename_root, NONE),
    special("bind a folder inside", |f| mount(f, true), NONE),
    special("mount inside", |f| mount(f, false), NONE),
    attack(
        "write by /proc/self/root",
        |f| write(&under("/proc/self/root", &f.at("out/file"))),
        NONE,
    ),
    attack("write by /proc/self/cwd", |_| write(Path::new("/proc/self/cwd/../out/file")), NONE),
    special(
        "write by haft's root",
        |f| write(&under(&format!("/proc/{}/root", f.haft), &f.at("out/file"))),
        NONE,
    ),
    special("open a setting of the kernel", |_| opens("/proc/sys/kernel/core_pattern"), NONE),
    special("read a disk", |f| f.disk.as_ref().is_some_and(|disk| File::open(disk).is_ok()), NONE),
    special("make a device", device, NONE),
    attack("leave a file in /dev/shm", |f| fs::write(shared(f), "x").is_ok(), [Open, Stopped]),
    attack(
        "permissions outside",
        |f| fs::set_permissions(f.at("out/mode"), PermissionsExt::from_mode(0o640)).is_ok(),
        [Stopped, Open],
    ),
    attack("times outside", |f| touch(&f.at("out/times")), [Stopped, Open]),
    attack("attributes outside", |f| attribute(&f.at("out/attribute")), [Stopped, Open]),
    attack("read what is hidden", |f| read(&f.at("secret/file")), NONE),
    attack("read it through a link", read_through_link, NONE),
    attack("read it by another name", read_renamed, NONE),
    attack("read a hidden file inside", |f| read(&f.at("more/deep/.token")), NONE),
    attack(
        "list what is hidden",
        |f| fs::read_dir(f.at("secret")).is_ok_and(|names| names.count() > 0),
        [Stopped, Open],
    ),
    attack("change what is protected", |f| write(&f.at("in/.git/config")), [Stopped, PutBack]),
    attack(
        "make what is protected",
        |f| fs::write(f.at("in/.mcp.json"), "{}").is_ok(),
        [PutBack, PutBack],
    ),
    attack("move its folder away", move_git, [PutBack, PutBack]),
    attack("change what is protected deep down", |f| write(&f.at("in/sub/.envrc")), [PutBack; 2]),
    attack("make what is protected deep down", make_deep, [PutBack; 2]),
    attack("change what a module protected", |f| write(&f.at(MODULE)), [PutBack; 2]),
    attack("signal haft", |f| rustix::process::test_kill_process(f.haft()).is_ok(), NONE),
    special("trace haft", |f| seizes(f.haft), NONE),
    special(
        "read haft's memory",
        |f| opens_to_read(&format!("/proc/{}/mem", f.haft)) || peek(f),
        NONE,
    ),
    special("read haft's variables", |f| opens_to_read(&format!("/proc/{}/environ", f.haft)), NONE),
    attack("read haft's command line", |f| tells(f, "cmdline"), [Stopped, Open]),
    attack("read haft's state", |f| tells(f, "status"), [Stopped, Open]),
    special(
        "take haft's descriptors",
        |f| fs::read_link(format!("/proc/{}/fd/0", f.haft)).is_ok(),
        NONE,
    ),
    attack("a unix socket", |f| UnixStream::connect(f.at("socket")).is_ok(), NONE),
    attack("a unix socket of datagrams", datagrams, NONE),
    attack(
        "an abstract socket",
        |f| {
            SocketAddr::from_abstract_name(f.folder.as_os_str().as_bytes())
                .and_then(|at| UnixStream::connect_addr(&at))
                .is_ok()
        },
        NONE,
    ),
    attack("TCP", |f| TcpStream::connect(("127.0.0.1", f.tcp)).is_ok(), NONE),
    attack("UDP", udp, NONE),
    attack(
        "netlink",
        |f| socket(libc::AF_NETLINK, libc::SOCK_RAW) && Some(&f.network) == network().as_ref(),
        NONE,
    ),
    attack("netlink of its own", |_| socket(libc::AF_NETLINK, libc::SOCK_RAW), [Open, Stopped]),
    attack("trace its own child", |_| traces_child(), [Open; 2]),
    special("trace what holds it", |_| seizes(1), NONE),
    special(
        "raw sockets",
        |_| socket(libc::AF_PACKET, libc::SOCK_RAW) || socket(libc::AF_INET, libc::SOCK_RAW),
        NONE,
    ),
    special("io_uring", io_uring, NONE),
    special(
        "unshare",
        |_| child(|| call(libc::SYS_unshare, [i64::from(libc::CLONE_NEWUSER), 0, 0])),
        NONE,
    ),
    special("clone into namespaces", |_| clone_spaces(), NONE),
    special("keys of the kernel", |_| call(libc::SYS_keyctl, [0, -3, 0]), NONE),
    special("bpf", |_| errno_of(libc::SYS_bpf, [0, 0, 0]) != Some(libc::EPERM), NONE),
    special("userfaultfd", |_| call(libc::SYS_userfaultfd, [0, 0, 0]), NONE),
    special("type at the terminal", |_| types(), NONE),
    attack(
        "write to a terminal of others",
        |f| OpenOptions::new().write(true).open(&f.terminal).is_ok(),
        NONE,
    ),
    attack("change haft's limits", |f| limit(f, libc::RLIMIT_CORE), NONE),
    attack(
        "change haft's priority",
        |f| call(libc::SYS_setpriority, [0, i64::from(f.haft), nice()]),
        NONE,
    ),
    special("a call of x32", |_| call(libc::SYS_getpid | 0x4000_0000, [0, 0, 0]), NONE),
    special("setuid", setuid, NONE),
    special("capabilities", |_| capabilities(), NONE),
    attack(
        "preload into the next tool",
        |f| fs::write(f.at("out/ld.so.preload"), "/x.so").is_ok(),
        NONE,
    ),
    attack("shared memory of others", |f| child(|| attach(f)), NONE),
];

/// The settings of a submodule.
const MODULE: &str = "in/repo/.git/modules/m/config";

/// In a folder that is closed then.
fn make_deep(field: &Field) -> bool {
    let folder = field.at("in/sub/new");
    fs::create_dir(&folder).is_ok()
        && fs::write(folder.join(".envrc"), "evil").is_ok()
        && fs::set_permissions(&folder, PermissionsExt::from_mode(0o000)).is_ok()
}

fn write(path: &Path) -> bool {
    let file = OpenOptions::new().write(true).open(path);
    file.and_then(|mut file| file.write_all(b"changed")).is_ok()
}

fn opens(path: &str) -> bool {
    OpenOptions::new().write(true).open(path).is_ok()
}

fn opens_to_read(path: &str) -> bool {
    File::open(path).is_ok_and(|mut file| file.read(&mut [0; 16]).is_ok_and(|n| n > 0))
}

fn read(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| !bytes.is_empty())
}

fn under(root: &str, path: &Path) -> PathBuf {
    Path::new(root).join(path.strip_prefix("/").unwrap())
}

pub(super) fn shared(field: &Field) -> PathBuf {
    Path::new("/dev/shm").join(field.folder.file_name().unwrap())
}

fn rustix_truncate(path: &Path) -> bool {
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the path is a C string that lives.
    unsafe { libc::truncate(path.as_ptr(), 1) == 0 }
}

fn through_link(field: &Field) -> bool {
    symlink(field.at("out/file"), field.at("in/link")).unwrap();
    write(&field.at("in/link"))
}

fn through_hard_link(field: &Field) -> bool {
    fs::hard_link(field.at("out/file"), field.at("in/hard")).is_ok() && write(&field.at("in/hard"))
}

fn exchange(field: &Field) -> bool {
    let flags = rustix::fs::RenameFlags::EXCHANGE;
    rustix::fs::renameat_with(CWD, field.at("in/c"), CWD, field.at("out/file"), flags).is_ok()
}

fn rename_root(field: &Field) -> bool {
    let done = fs::rename(field.at("in"), field.at("in2")).is_ok();
    let _ = fs::rename(field.at("in2"), field.at("in"));
    done
}

fn mount(field: &Field, bind: bool) -> bool {
    use rustix::mount::{MountFlags, mount, mount_bind};
    let at = field.at("in");
    let plain = || mount("x", &at, "tmpfs", MountFlags::empty(), None::<&std::ffi::CStr>);
    child(|| if bind { mount_bind(field.at("out"), &at) } else { plain() }.is_ok())
}

fn device(field: &Field) -> bool {
    let device = rustix::fs::makedev(1, 5);
    let (kind, mode) = (rustix::fs::FileType::CharacterDevice, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(CWD, field.at("in/device"), kind, mode, device).is_ok()
}

fn touch(path: &Path) -> bool {
    let when = rustix::fs::Timespec { tv_sec: 1, tv_nsec: 0 };
    let times = rustix::fs::Timestamps { last_access: when, last_modification: when };
    rustix::fs::utimensat(CWD, path, &times, rustix::fs::AtFlags::empty()).is_ok()
}

fn attribute(path: &Path) -> bool {
    rustix::fs::setxattr(path, "user.haft", b"x", rustix::fs::XattrFlags::empty()).is_ok()
}

fn read_through_link(field: &Field) -> bool {
    symlink(field.at("secret"), field.at("in/to-secret")).unwrap();
    read(&field.at("in/to-secret/file"))
}

fn read_renamed(field: &Field) -> bool {
    let moved = fs::rename(field.at("more/deep"), field.at("more/deeper")).is_ok();
    let done = moved && read(&field.at("more/deeper/.token"));
    let _ = fs::rename(field.at("more/deeper"), field.at("more/deep"));
    let linked = fs::hard_link(field.at("secret/file"), field.at("in/secret")).is_ok();
    done || (linked && read(&field.at("in/secret")))
}

fn move_git(field: &Field) -> bool {
    let git = field.at("in/.git");
    fs::rename(&git, field.at("in/gone")).is_ok()
        && fs::create_dir_all(git.join("hooks")).is_ok()
        && fs::write(git.join("hooks/evil"), "#!/bin/sh").is_ok()
}

fn datagrams(field: &Field) -> bool {
    let Ok((ours, _theirs)) = std::os::unix::net::UnixDatagram::pair() else { return false };
    ours.connect(field.at("datagrams")).and_then(|()| ours.send(b"x")).is_ok()
}

fn udp(field: &Field) -> bool {
    let Ok(socket) = UdpSocket::bind("127.0.0.1:0") else { return false };
    // Whether it arrives is seen by an answer.
    let _ = socket.set_read_timeout(Some(std::time::Duration::from_millis(300)));
    socket.send_to(b"x", ("127.0.0.1", field.udp)).is_ok() && socket.recv(&mut [0]).is_ok()
}

fn socket(family: i32, kind: i32) -> bool {
    call(libc::SYS_socket, [i64::from(family), i64::from(kind), 0])
}

fn errno_of(number: i64, arguments: [i64; 3]) -> Option<i32> {
    let [a, b, c] = arguments;
    // SAFETY: the calls that are made here take numbers, or addresses that may be null.
    let result = unsafe { libc::syscall(number, a, b, c, 0, 0, 0) };
    if result >= 0 { None } else { io::Error::last_os_error().raw_os_error() }
}

fn call(number: i64, arguments: [i64; 3]) -> bool {
    errno_of(number, arguments).is_none()
}

/// The priority that this process and haft have.
fn nice() -> i64 {
    // SAFETY: it takes numbers.
    i64::from(unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) })
}

/// Sets a limit of haft to what it is.
fn limit(field: &Field, which: libc::__rlimit_resource_t) -> bool {
    // SAFETY: the limits are read and written where they are.
    unsafe {
        let mut now: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(which, &raw mut now);
        libc::prlimit(field.haft, which, &raw const now, std::ptr::null_mut()) == 0
    }
}

fn io_uring(_: &Field) -> bool {
    let mut parameters = [0_u8; 120];
    call(libc::SYS_io_uring_setup, [1, parameters.as_mut_ptr() as i64, 0])
}

/// Which network this process has.
pub(super) fn network() -> Option<PathBuf> {
    fs::read_link("/proc/self/ns/net").ok()
}

/// When a process began, which tells it from one with its number in another namespace.
pub(super) fn began(process: i32) -> Option<String> {
    let state = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    state.rsplit_once(')')?.1.split_whitespace().nth(19).map(ToOwned::to_owned)
}

/// Whether a file about haft can be read, and is about it.
fn tells(field: &Field, name: &str) -> bool {
    let text = fs::read(format!("/proc/{}/{name}", field.haft)).unwrap_or_default();
    !text.is_empty() && began(field.haft).as_ref() == Some(&field.began)
}

fn seizes(process: i32) -> bool {
    call(libc::SYS_ptrace, [i64::from(libc::PTRACE_SEIZE), i64::from(process), 0])
}

/// One that waits to be looked into.
fn traces_child() -> bool {
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let traced = seizes(child.id().cast_signed());
    child.kill().unwrap();
    child.wait().unwrap();
    traced
}

fn peek(field: &Field) -> bool {
    let mut byte = [0_u8; 1];
    let local = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: (call as *const ()).cast_mut().cast(), iov_len: 1 };
    // SAFETY: one byte is written, where there is one.
    unsafe { libc::process_vm_readv(field.haft, &raw const local, 1, &raw const remote, 1, 0) == 1 }
}

fn types() -> bool {
    let letter = b'x';
    // SAFETY: the kernel reads one byte, which is there.
    let typed = unsafe { libc::ioctl(0, libc::TIOCSTI | (1 << 40), &raw const letter) };
    typed == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EPERM)
}

/// Does it in a process of its own, whose threads are one.
fn child(run: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child makes system calls and ends.
    match unsafe { libc::fork() } {
        0 => {
            let done = run();
            // SAFETY: it ends the process.
            unsafe { libc::_exit(i32::from(!done)) }
        }
        id => ended_well(id),
    }
}

fn ended_well(id: i32) -> bool {
    let mut status = 1;
    // SAFETY: the status is written where it is.
    id > 0 && unsafe { libc::waitpid(id, &raw mut status, 0) == id } && status == 0
}

fn clone_spaces() -> bool {
    let flags = i64::from(libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::SIGCHLD);
    // SAFETY: without a stack it is a fork.
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
        // SAFETY: it ends the process.
        0 => unsafe { libc::_exit(0) },
        id => ended_well(i32::try_from(id).unwrap()),
    }
}

/// A program that belongs to root and takes its rights.
fn setuid(field: &Field) -> bool {
    let Some(setuid) = &field.setuid else { return false };
    Command::new(setuid).args(["-u"]).output().is_ok_and(|said| said.stdout == b"0\n")
}

/// Those with which root could leave: over modules, raw devices, mounts, other processes.
fn capabilities() -> bool {
    let said = Command::new("cat").arg("/proc/self/status").output().unwrap().stdout;
    let said = String::from_utf8_lossy(&said);
    let of = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    let strong =
        [1 << 2, 1 << 12, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 21, 1 << 27, 1 << 38, 1 << 39];
    (of("CapEff:") | of("CapPrm:")) & strong.iter().sum::<u64>() != 0
}

/// The key of the segment that stands for another program's.
pub(super) fn key(field: &Field) -> i32 {
    field.haft ^ 0x6861_6674
}

fn attach(field: &Field) -> bool {
    // SAFETY: nothing is attached; the segment is only looked up.
    unsafe { libc::shmget(key(field), 1, 0) >= 0 }
}

/// A segment that lives as long as this.
pub(super) struct Segment(i32);

impl Segment {
    pub(super) fn new(field: &Field) -> Self {
        // SAFETY: it takes numbers.
        let id = unsafe { libc::shmget(key(field), 1, libc::IPC_CREAT | 0o600) };
        assert!(id >= 0, "{}", io::Error::last_os_error());
        Self(id)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: it takes numbers, and nothing is attached.
        unsafe { libc::shmctl(self.0, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// A disk of this machine, where this user may read it.
pub(super) fn disk() -> Option<PathBuf> {
    let entries = fs::read_dir("/dev").ok()?.flatten();
    let disks = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_block_device()));
    disks.map(|entry| entry.path()).find(|path| File::open(path).is_ok())
}
