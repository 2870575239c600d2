//! What a level can enforce on this machine, found out by trying it.

use std::{
    ffi::OsString,
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        fd::OwnedFd,
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::PermissionsExt,
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
};

use haft_types::{HostPath, Style};
use rustix::{
    net::{AddressFamily, SocketType},
    process::{Pid, getppid, test_kill_process},
    pty::{OpenptFlags, openpt, ptsname, unlockpt},
};
use serde::{Deserialize, Serialize};

use crate::{
    Entered, Guard, Level, Limits, Outside, ProtectedState, RestoreOptions, Restored, enter,
};

/// Something that a confined program may try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attack {
    /// To write a file that is not writable.
    Write,
    /// To change the permissions of one.
    Rights,
    /// To read a hidden file.
    Read,
    /// To list the names in a hidden folder.
    List,
    /// To change what is protected in a writable folder.
    Protected,
    /// To signal a process that is not its own.
    Signal,
    /// To look into one, or hold it.
    Trace,
    /// To read with which words one was started, and what it does.
    Words,
    /// To connect over TCP.
    Tcp,
    /// To send over UDP.
    Udp,
    /// To connect to a service's socket in the file system.
    Socket,
    /// The same by an abstract name.
    Abstract,
    /// To talk to the kernel's network.
    Netlink,
    /// To have the kernel do calls that nobody looks at.
    IoUring,
    /// To make namespaces, in which it is root.
    Spaces,
    /// To mount something.
    Mount,
    /// To type at a terminal, or to write to one of others.
    Terminal,
}

impl Attack {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Write,
        Self::Rights,
        Self::Read,
        Self::List,
        Self::Protected,
        Self::Signal,
        Self::Trace,
        Self::Words,
        Self::Tcp,
        Self::Udp,
        Self::Socket,
        Self::Abstract,
        Self::Netlink,
        Self::IoUring,
        Self::Spaces,
        Self::Mount,
        Self::Terminal,
    ];

    /// What it is, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Write => "writing outside",
            Self::Rights => "changing permissions, times and attributes outside",
            Self::Read => "reading what is hidden",
            Self::List => "listing the names of what is hidden",
            Self::Protected => "changing what is protected in folders that may be written",
            Self::Signal => "signals to other processes",
            Self::Trace => "looking into memory, variables and files of other processes",
            Self::Words => {
                "reading command lines and states of other processes, where secrets may stand"
            }
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Socket => "unix sockets",
            Self::Abstract => "abstract sockets",
            Self::Netlink => "asking the kernel about the network",
            Self::IoUring => "io_uring",
            Self::Spaces => "new namespaces",
            Self::Mount => "mounts",
            Self::Terminal => "typing at terminals and writing to those of others",
        }
    }

    /// Whether a level that does not stop it is none.
    const fn is_essential(self) -> bool {
        !matches!(self, Self::Rights | Self::List | Self::Protected | Self::Signal | Self::Words)
    }
}

/// How many protected things a program can change wherever it may write: none of these has a path of its
/// own that could be held, or is there at all.
const DEEP: usize = 3;

/// What came of an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    /// It was stopped.
    Stopped,
    /// It was done, and undone behind the program.
    PutBack,
    /// It was done.
    Open,
}

/// What was found out about a level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Which.
    pub level: Level,
    /// Why it cannot be entered at all; nothing was tried then.
    pub failed: Option<String>,
    /// What came of each attack.
    pub found: Vec<(Attack, Cell)>,
    /// Whether it is counted what programs try of the network.
    pub counts: bool,
}

impl Probe {
    /// A level that cannot be entered.
    pub const fn failed(level: Level, why: String) -> Self {
        Self { level, failed: Some(why), found: Vec::new(), counts: false }
    }

    /// Reports whether programs can be held by it.
    pub fn works(&self) -> bool {
        let essential = Attack::ALL.iter().filter(|attack| attack.is_essential());
        self.failed.is_none() && { essential }.all(|attack| self.of(*attack) == Some(Cell::Stopped))
    }

    /// What came of this one.
    pub fn of(&self, attack: Attack) -> Option<Cell> {
        self.found.iter().find(|(tried, _)| *tried == attack).map(|(_, found)| *found)
    }
}

/// Enters a level, with limits made for it, and tries every attack.
///
/// For a process with one thread that does nothing else any more; `folder` is an empty one of its own.
/// `tell` is that of [`enter`]. Where the level has namespaces, it returns in another process.
pub fn probe(
    level: Level,
    folder: &Path,
    tell: &mut dyn FnMut(Entered) -> io::Result<()>,
) -> Probe {
    let mut tried = || -> io::Result<(Vec<(Attack, Cell)>, bool)> {
        let world = World::new(folder)?;
        let kept = ProtectedState::look(&world.limits, Level::Landlock, RestoreOptions::default());
        enter(level, &world.limits, Outside::default(), tell)?;
        let counts = counts(level);
        let of = |attack: Attack| {
            let done = world.attack(attack);
            // Of those that are there and of those that are not.
            let put_back = || {
                let back = kept.put_back();
                let whole =
                    |one: &Restored| matches!(one, Restored::Restored(..) | Restored::Removed(..));
                back.len() >= DEEP && back.iter().all(whole)
            };
            let found = match done {
                false => Cell::Stopped,
                true if attack == Attack::Protected && put_back() => Cell::PutBack,
                true => Cell::Open,
            };
            (attack, found)
        };
        Ok((Attack::ALL.into_iter().map(of).collect(), counts))
    };
    match tried() {
        Ok((found, counts)) => Probe { level, failed: None, found, counts },
        Err(error) => Probe::failed(level, error.to_string()),
    }
}

/// What there is to attack.
struct World {
    limits: Limits,
    folder: PathBuf,
    parent: Option<Pid>,
    /// What the parent is known by: in a namespace its number is that of another process, or of none.
    began: Option<String>,
    /// The services are none where this process may not make them itself: in a sandbox.
    tcp: Option<TcpListener>,
    udp: Option<UdpSocket>,
    unix: Option<UnixListener>,
    abstracted: Option<UnixListener>,
    name: Vec<u8>,
    /// The network of this process.
    network: PathBuf,
    /// A terminal of this process, and its path.
    terminal: Option<(OwnedFd, PathBuf)>,
}

/// What was made; none where that is not allowed here.
fn allowed<T>(made: io::Result<T>) -> io::Result<Option<T>> {
    match made {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        other => other.map(Some),
    }
}

/// A terminal, and its path.
fn terminal() -> io::Result<(OwnedFd, PathBuf)> {
    let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    unlockpt(&pty)?;
    let path = ptsname(&pty, Vec::new())?.into_bytes();
    Ok((pty, OsString::from_vec(path).into()))
}

/// Which network this process has.
fn network() -> PathBuf {
    fs::read_link("/proc/self/ns/net").unwrap_or_default()
}

/// The words with which a process was started and when that was, as far as both can be read.
fn began(pid: Pid) -> Option<String> {
    let read = |name: &str| {
        fs::read(format!("/proc/{}/{name}", pid.as_raw_pid())).ok().filter(|text| !text.is_empty())
    };
    let (words, state) = (read("cmdline")?, read("stat")?);
    // The name of a program may hold anything; behind it stands the time, as the 20th number.
    let state = String::from_utf8_lossy(&state).into_owned();
    let time = state.rsplit_once(')')?.1.split_whitespace().nth(19)?.to_owned();
    Some(format!("{} {time}", String::from_utf8_lossy(&words)))
}

/// Whether sockets of this family can be made at all.
fn makes(family: AddressFamily, kind: SocketType) -> bool {
    rustix::net::socket(family, kind, None).is_ok()
}

impl World {
    fn new(folder: &Path) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        let path = |name: &str| {
            let path = folder.join(name);
            HostPath::new(path.as_os_str().as_bytes(), Style::Posix).map_err(io::Error::other)
        };
        for name in ["in", "in/deep", "out", "secret"] {
            fs::create_dir(folder.join(name))?;
        }
        for name in ["in/protected", "in/deep/kept", "out/file", "secret/file"] {
            fs::write(folder.join(name), "as it was")?;
        }
        let limits = Limits {
            write: vec![path("in")?],
            hidden: vec![path("secret")?],
            protected: vec![path("in/protected")?, path("in/absent")?],
            guard: Guard {
                folders: vec![path("in")?],
                names: vec!["kept".to_owned()],
                ..Guard::default()
            },
            ..Limits::default()
        };
        let udp = allowed(UdpSocket::bind("127.0.0.1:0"))?;
        udp.as_ref().map(|udp| udp.set_nonblocking(true)).transpose()?;
        let name = folder.as_os_str().as_bytes().to_vec();
        Ok(Self {
            limits,
            parent: getppid(),
            began: getppid().and_then(began),
            network: network(),
            tcp: allowed(TcpListener::bind("127.0.0.1:0"))?,
            udp,
            unix: allowed(UnixListener::bind(folder.join("socket")))?,
            abstracted: allowed(abstract_listener(&name))?,
            name,
            terminal: allowed(terminal())?,
            folder,
        })
    }

    /// True when it was done.
    fn attack(&self, attack: Attack) -> bool {
        let at = |name: &str| self.folder.join(name);
        let write = |name: &str| {
            let file = OpenOptions::new().write(true).open(at(name));
            file.and_then(|mut file| file.write_all(b"changed")).is_ok()
        };
        match attack {
            Attack::Write => write("out/file") || fs::write(at("out/new"), "x").is_ok(),
            Attack::Rights => {
                fs::set_permissions(at("out/file"), PermissionsExt::from_mode(0o640)).is_ok()
            }
            Attack::Read => {
                let mut text = String::new();
                let file = fs::File::open(at("secret/file"));
                file.and_then(|mut file| file.read_to_string(&mut text)).is_ok() && !text.is_empty()
            }
            Attack::List => fs::read_dir(at("secret")).is_ok_and(|names| names.count() > 0),
            Attack::Protected => {
                let changed = [write("in/protected"), write("in/deep/kept")].contains(&true);
                let folder = fs::create_dir(at("in/deep/er")).is_ok();
                let made = ["in/absent", "in/deep/er/kept"].map(|name| fs::write(at(name), "x"));
                made.iter().any(Result::is_ok) || changed || folder
            }
            Attack::Signal => self.parent.is_some_and(|pid| test_kill_process(pid).is_ok()),
            Attack::Trace => self.parent.is_some_and(trace),
            Attack::Words => self.began.is_some() && self.parent.and_then(began) == self.began,
            Attack::Tcp => match &self.tcp {
                Some(tcp) => tcp.local_addr().and_then(TcpStream::connect).is_ok(),
                None => makes(AddressFamily::INET, SocketType::STREAM),
            },
            Attack::Udp => match &self.udp {
                Some(udp) => {
                    let sent = || {
                        UdpSocket::bind("127.0.0.1:0")?.send_to(b"x", udp.local_addr()?)?;
                        udp.recv(&mut [0])
                    };
                    sent().is_ok()
                }
                None => makes(AddressFamily::INET, SocketType::DGRAM),
            },
            Attack::Socket => match &self.unix {
                Some(_) => UnixStream::connect(at("socket")).is_ok(),
                None => makes(AddressFamily::UNIX, SocketType::STREAM),
            },
            Attack::Abstract => match &self.abstracted {
                Some(_) => abstract_stream(&self.name).is_ok(),
                None => makes(AddressFamily::UNIX, SocketType::STREAM),
            },
            Attack::Netlink => netlink() && self.network == network(),
            Attack::IoUring => io_uring(),
            Attack::Spaces => spaces(),
            Attack::Mount => mount(&at("in")),
            Attack::Terminal => {
                let open = |path: &Path| OpenOptions::new().write(true).open(path).is_ok();
                types() || self.terminal.as_ref().is_some_and(|(_, path)| open(path))
            }
        }
    }
}

#[cfg(target_os = "linux")]
use crate::linux::counts;
#[cfg(target_os = "linux")]
use on_linux::{
    abstract_listener, abstract_stream, io_uring, mount, netlink, spaces, trace, types,
};

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the attacks are system calls that no safe wrapper makes")]
mod on_linux {
    use std::{
        io,
        os::{
            linux::net::SocketAddrExt,
            unix::net::{SocketAddr, UnixListener, UnixStream},
        },
        path::Path,
    };

    use rustix::{
        mount::MountFlags,
        net::{AddressFamily, SocketType},
        process::Pid,
    };

    pub(super) fn abstract_listener(name: &[u8]) -> io::Result<UnixListener> {
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
    }

    pub(super) fn abstract_stream(name: &[u8]) -> io::Result<UnixStream> {
        UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)
    }

    pub(super) fn netlink() -> bool {
        super::makes(AddressFamily::NETLINK, SocketType::RAW)
    }

    pub(super) fn mount(at: &Path) -> bool {
        rustix::mount::mount("tmpfs", at, "tmpfs", MountFlags::empty(), None::<&std::ffi::CStr>)
            .is_ok()
    }

    pub(super) fn trace(pid: Pid) -> bool {
        // SAFETY: it takes numbers alone, and only attaches; that ends with this process.
        let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid.as_raw_pid(), 0, 0) } == 0;
        let memory = std::fs::File::open(format!("/proc/{}/environ", pid.as_raw_pid()));
        seized || memory.is_ok_and(|mut file| io::Read::read(&mut file, &mut [0]).is_ok())
    }

    pub(super) fn io_uring() -> bool {
        let mut parameters = [0_u8; 120];
        // SAFETY: the kernel fills in the parameters, which are as long as it expects.
        let made = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
        made >= 0
    }

    pub(super) fn spaces() -> bool {
        // SAFETY: it takes a number alone; the process does nothing else any more.
        unsafe { libc::unshare(libc::CLONE_NEWUSER) == 0 }
    }

    /// Only a refusal of the rules counts: elsewhere the kernel may have another reason.
    pub(super) fn types() -> bool {
        let letter = b'x';
        // SAFETY: the kernel reads one byte, which is there.
        let typed = unsafe { libc::ioctl(0, libc::TIOCSTI, &raw const letter) };
        typed == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EPERM)
    }
}

#[cfg(not(target_os = "linux"))]
use elsewhere::{
    abstract_listener, abstract_stream, counts, io_uring, mount, netlink, spaces, trace, types,
};

/// There, [`enter`] fails, and nothing of this is reached.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::{
        io,
        os::unix::net::{UnixListener, UnixStream},
        path::Path,
    };

    use rustix::process::Pid;

    pub(super) fn abstract_listener(_: &[u8]) -> io::Result<UnixListener> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn abstract_stream(_: &[u8]) -> io::Result<UnixStream> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn counts(_: crate::Level) -> bool {
        false
    }

    pub(super) fn netlink() -> bool {
        true
    }

    pub(super) fn mount(_: &Path) -> bool {
        true
    }

    pub(super) fn trace(_: Pid) -> bool {
        true
    }

    pub(super) fn io_uring() -> bool {
        true
    }

    pub(super) fn spaces() -> bool {
        true
    }

    pub(super) fn types() -> bool {
        true
    }
}
