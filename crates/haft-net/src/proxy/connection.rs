//! One connection of a client: its owner, what it may reach, and when it is closed.
//!
//! **Invariant:** a connection belongs to one command, the first whose password it presents. It is
//! closed when that command ends, when nothing was transferred for long, or when it presented no
//! password in time.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional_with_sizes},
    net::TcpStream,
    sync::{OwnedSemaphorePermit, SetOnce},
    time,
};

use super::{
    Shared,
    credential::{Command, Refused, Why},
    http::serve_http,
    socks::serve_socks,
};
use crate::{AddressError, Host, check, dial};

/// What a tunnel holds at most in one direction, in bytes.
const BUFFER: usize = 32 * 1024;

/// A client, from its acceptance to its end.
pub(super) struct Guest {
    pub shared: Arc<Shared>,
    /// What it takes up of the room for strangers, until it is none.
    door: Mutex<Option<OwnedSemaphorePermit>>,
    known: SetOnce<Known>,
}

struct Known {
    command: Arc<Command>,
    _rooms: [OwnedSemaphorePermit; 2],
}

/// Why a host was not reached.
pub(super) enum Failure {
    /// It may not be.
    Refused(Refused),
    /// Nobody knows its name.
    Unresolved(String),
    /// It did not answer.
    Unreachable(io::Error),
}

impl Guest {
    fn new(shared: Arc<Shared>, door: OwnedSemaphorePermit) -> Self {
        Self { shared, door: Mutex::new(Some(door)), known: SetOnce::new() }
    }

    /// The command whose user name and password these are, unless the connection is another's.
    pub fn identify(&self, user: &[u8], password: &[u8]) -> Option<Arc<Command>> {
        let command = self.shared.passes.identify(user, password)?;
        match self.known.get() {
            Some(known) if !Arc::ptr_eq(&known.command, &command) => None,
            _ => Some(command),
        }
    }

    /// Connects to a host as a request names it, if the command may reach it.
    pub async fn open(
        &self,
        command: &Arc<Command>,
        host: &str,
        port: u16,
    ) -> Result<(Host, TcpStream), Failure> {
        let refuse = |host: &str, why| Failure::Refused(command.refuse(host, port, why));
        if !self.settle(command) {
            return Err(refuse(host, Why::TooMany));
        }
        let read = match Host::parse(host) {
            Ok(read) => read,
            Err(error) => return Err(refuse(host, Why::Unreadable(reason(&error)))),
        };
        if !command.hosts.allow(&read, port) {
            return Err(refuse(&read.to_string(), Why::NotListed));
        }
        let listed = command.hosts.addresses(port);
        let late = || Failure::Unreachable(io::ErrorKind::TimedOut.into());
        let until = time::Instant::now() + self.shared.bounds.connect;
        let checking = check(self.shared.resolver.as_ref(), &read, port, &listed);
        let checked = match time::timeout_at(until, checking).await.map_err(|_| late())? {
            Ok(checked) => checked,
            Err(AddressError::Special { address, kind, .. }) => {
                return Err(refuse(&read.to_string(), Why::Special { address, kind }));
            }
            Err(error) => return Err(Failure::Unresolved(error.to_string())),
        };
        let left = until.saturating_duration_since(time::Instant::now());
        let stream = dial(&checked, left).await.map_err(Failure::Unreachable)?;
        // What a client sends in one piece is not to wait for what it sends next.
        let _ = stream.set_nodelay(true);
        Ok((read, stream))
    }

    /// Makes the connection the command's; false where there is no room.
    fn settle(&self, command: &Arc<Command>) -> bool {
        if self.known.get().is_some() {
            return true;
        }
        let theirs = command.connections.clone().try_acquire_owned();
        let everyones = self.shared.connections.clone().try_acquire_owned();
        let (Ok(theirs), Ok(everyones)) = (theirs, everyones) else { return false };
        let known = Known { command: command.clone(), _rooms: [theirs, everyones] };
        // Requests of one connection come one after the other, so nobody else has set it.
        let set = self.known.set(known).is_ok();
        self.door.lock().unwrap_or_else(PoisonError::into_inner).take();
        set
    }

    /// Waits until the command has ended, or nobody has shown that there is one.
    async fn over(&self) {
        if let Ok(known) = time::timeout(self.shared.bounds.head, self.known.wait()).await {
            known.command.ended.cancelled().await;
        }
    }
}

fn reason(error: &AddressError) -> &'static str {
    match error {
        AddressError::Unreadable { reason, .. } => reason,
        _ => "it cannot be used",
    }
}

/// Serves one connection to its end.
pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>, door: OwnedSemaphorePermit) {
    let _ = stream.set_nodelay(true);
    let idle = shared.bounds.idle;
    let guest = Arc::new(Guest::new(shared, door));
    let moved = Arc::new(AtomicBool::new(false));
    let client = Watched { stream, moved: moved.clone() };
    tokio::select! {
        () = talk(client, guest.clone()) => {}
        () = guest.over() => {}
        () = stillness(&moved, idle) => {}
    }
}

async fn talk(client: Watched, guest: Arc<Guest>) {
    let mut first = [0];
    match client.stream.peek(&mut first).await {
        Ok(1) if first[0] == 5 => serve_socks(client, &guest).await,
        Ok(1) => serve_http(client, guest).await,
        _ => {}
    }
}

/// Passes bytes on in both directions until both have ended: where one side says no more, the
/// other one may go on.
pub(super) async fn tunnel(mut client: Watched, mut server: TcpStream) {
    // A connection that breaks is told to the other side by closing it; nobody else is to know.
    let _ = copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER, BUFFER).await;
}

/// Waits until no byte has gone over the connection for as long as `idle`, or up to a fifth more.
async fn stillness(moved: &AtomicBool, idle: Duration) {
    let mut quiet = 0;
    while quiet < 5 {
        time::sleep(idle / 5).await;
        quiet = if moved.swap(false, Ordering::Relaxed) { 0 } else { quiet + 1 };
    }
}

/// A client's stream that notes when bytes go over it. All that is passed on does, in either
/// direction.
pub(super) struct Watched {
    stream: TcpStream,
    moved: Arc<AtomicBool>,
}

impl Watched {
    fn note(&self) {
        self.moved.store(true, Ordering::Relaxed);
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            self.note();
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        if written.is_ready() {
            self.note();
        }
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        if written.is_ready() {
            self.note();
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
