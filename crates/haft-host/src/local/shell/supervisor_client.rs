//! haft's end of the connection to the supervisor.
//!
//! **Invariant:** a process of haft has one supervisor, started with its first program. If that was
//! killed, the next program has a new one. Nobody else holds the connection, so its end signals
//! haft's death.

use std::{
    env,
    ffi::OsString,
    io::{self, IoSlice, Read},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags,
        SocketType, sendmsg, shutdown, socketpair,
    },
    process::{Pid, Signal, kill_process},
};

use super::{
    start::Ends,
    supervisor::{DESCRIPTORS, SUPERVISORS},
    supervisor_protocol::{MonitorEvent, Request},
};

/// What the small supervising program is called, where haft itself is not it.
const NAME: &str = "haft-supervisor";

/// The one of this process.
static SUPERVISOR: Mutex<Option<Supervisor>> = Mutex::new(None);

#[derive(Debug)]
struct Supervisor {
    link: Arc<OwnedFd>,
    child: Child,
}

/// How long a keeper may take until a program is started; folders on slow mounts take their time.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How long the end of a supervisor is waited for.
const FAREWELL: Duration = Duration::from_millis(200);
/// What is said when it takes longer.
const LATE: &str = "nothing was heard of it for 10 s; its folder may be on a disk that hangs";
/// What is said when the keeper ended before its first word.
const ENDED: &str = "what supervises it ended while it was started; it may have run in part";

/// How often a request is made anew that certainly nobody has read.
const TRIES: usize = 3;

/// Has a program started: the connection to its keeper, with its first word and what came behind.
///
/// All is handed on before `may_run` is asked; what is to be run, which that may still change, is told only
/// then.
pub(super) fn start(
    program: &[OsString],
    request: &mut Request,
    ends: &Ends,
    may_run: impl FnOnce(&mut Request) -> bool,
) -> io::Result<(UnixStream, MonitorEvent, Vec<u8>)> {
    let (mut tries, mut may_run) = (0, Some(may_run));
    loop {
        tries += 1;
        let control = hand_on(program, ends)?;
        if may_run.take().is_some_and(|may_run| !may_run(request)) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "it is not to be run any more"));
        }
        control.set_read_timeout(Some(PATIENCE))?;
        // What fits is taken at the first timeout, and the rest waits once more.
        control.set_write_timeout(Some(PATIENCE / 2))?;
        let mut received = Vec::new();
        let told = request.send(&mut &control).and_then(|()| first(&control, &mut received));
        match told {
            Ok(told) => return Ok((control, told, received)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                give_up();
                return Err(io::Error::new(io::ErrorKind::TimedOut, LATE));
            }
            // These say that the request was not read, so nothing of it was done.
            Err(error) if tries < TRIES && unread(&error) => {}
            Err(error) if unread(&error) => {
                let text = "the supervisor of commands ends again and again; nothing was run";
                return Err(io::Error::other(text));
            }
            Err(error) => return Err(error),
        }
    }
}

fn unread(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Waits for the first word of a keeper.
fn first(mut control: &UnixStream, received: &mut Vec<u8>) -> io::Result<MonitorEvent> {
    let mut buffer = [0; 1024];
    loop {
        if let Some(told) = MonitorEvent::take(received)? {
            return Ok(told);
        }
        match control.read(&mut buffer) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::ConnectionAborted, ENDED)),
            Ok(length) => received.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Gives the supervisor the program's ends and one of a new connection, whose other end is ours.
fn hand_on(program: &[OsString], ends: &Ends) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    let link = supervisor(program, None)?;
    if let Err(error) = send(&link, &theirs, ends) {
        if !matches!(error, Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) {
            return Err(error.into());
        }
        // It was killed.
        let link = supervisor(program, Some(&link))?;
        send(&link, &theirs, ends)?;
    }
    Ok(ours)
}

fn send(link: &OwnedFd, control: &UnixStream, ends: &Ends) -> rustix::io::Result<()> {
    let mut given = vec![control.as_fd(), ends.input.as_fd(), ends.output.as_fd()];
    given.push(ends.errors.as_fd());
    given.extend(ends.report.as_ref().map(AsFd::as_fd));
    let network = ends.network.iter().flat_map(|one| [&one.users, &one.network]);
    given.extend(network.map(AsFd::as_fd));
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&given));
    loop {
        match sendmsg(link, &[IoSlice::new(b"+")], &mut ancillary, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            other => return other.map(drop),
        }
    }
}

/// The supervisor; a new one where there is none, or it is the one that is `gone`.
fn supervisor(program: &[OsString], gone: Option<&Arc<OwnedFd>>) -> io::Result<Arc<OwnedFd>> {
    let mut now = SUPERVISOR.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(there) =
        now.as_ref().filter(|s| gone.is_none_or(|gone| !Arc::ptr_eq(&s.link, gone)))
    {
        return Ok(Arc::clone(&there.link));
    }
    // Only one that does not listen any more is replaced: it has ended or is about to.
    end(now.take());
    let new = begin(program)?;
    let link = Arc::clone(&new.link);
    *now = Some(new);
    Ok(link)
}

/// Ends a supervisor that does not answer: the next command has a new one, and those that run have
/// their keepers.
fn give_up() {
    end(SUPERVISOR.lock().unwrap_or_else(PoisonError::into_inner).take());
}

fn end(supervisor: Option<Supervisor>) {
    if let Some(mut old) = supervisor {
        let _ = old.child.kill();
        let _ = old.child.wait();
    }
}

/// Ends the supervisor of this process, and waits for it, at most [`FAREWELL`]. Call it at the end
/// of a program: the program's parent may be one that waits for nobody. Running commands are
/// stopped.
pub fn end_supervisor() {
    let taken = SUPERVISOR.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut old) = taken else { return };
    // Others may hold the connection for a moment.
    let _ = shutdown(&old.link, Shutdown::Both);
    // A command may have stopped it.
    let child = i32::try_from(old.child.id()).ok().and_then(Pid::from_raw);
    let _ = child.map(|child| kill_process(child, Signal::CONT));
    let until = Instant::now() + FAREWELL;
    while matches!(old.child.try_wait(), Ok(None)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn begin(program: &[OsString]) -> io::Result<Supervisor> {
    let kind = (AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    let (ours, theirs) = socketpair(kind.0, kind.1, kind.2, None)?;
    let beside = beside();
    let program = if program.is_empty() { beside.as_slice() } else { program };
    let missing = || {
        let text = format!(
            "commands are run by a supervisor, and the program {NAME} is not beside this one; \
             install it there, or name another with Local::with_supervisor"
        );
        io::Error::new(io::ErrorKind::NotFound, text)
    };
    let (file, arguments) = program.split_first().ok_or_else(missing)?;
    let mut command = Command::new(file);
    command.arg0(SUPERVISORS[0]).args(arguments).env_clear().current_dir("/");
    command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().map_err(|error| {
        let has_proc = Path::new("/proc/self/exe").exists();
        let proc =
            if has_proc { "" } else { "; /proc is not mounted, by which it is found: mount it" };
        let text = format!("the supervisor of commands cannot be started: {error}{proc}");
        io::Error::new(error.kind(), text)
    })?;
    Ok(Supervisor { link: Arc::new(ours), child })
}

/// The supervising program in the folder of this one, or in that above it, where tests find it.
pub(super) fn beside() -> Vec<OsString> {
    let Ok(own) = env::current_exe() else { return Vec::new() };
    let found = own.ancestors().skip(1).take(2).map(|folder| folder.join(NAME));
    found.filter(|file| file.is_file()).take(1).map(OsString::from).collect()
}
