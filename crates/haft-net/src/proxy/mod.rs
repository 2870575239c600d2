//! The name proxy: what a confined command reaches of the network, host by host.
//!
//! It listens on 127.0.0.1 and speaks HTTP (CONNECT, and absolute addresses of `http:`) and SOCKS5
//! (CONNECT alone) on one port. Each command has a [`Pass`]: a random password, and the hosts that
//! it is good for.
//!
//! **Invariant:** nothing is resolved or dialled without a password that is good right now; every
//! request is judged by itself, also on a kept connection; an address that is not public is dialled
//! only where the very address is listed ([`crate::check`]); when a pass is dropped, its
//! connections end. What a client sends takes bounded memory.
//!
//! It knows names, not what is said to them: bytes of a tunnel are passed on unread. So a host that
//! is allowed can be anything that answers there: a content network may lead to other customers by
//! the name inside TLS or the `Host` header (domain fronting), and whoever may be written to may
//! be told anything that the command can read.

mod connection;
mod credential;
mod hosts;
mod http;
mod socks;

use std::{fmt, io, net::Ipv4Addr, sync::Arc, time::Duration};

use tokio::{
    net::TcpListener,
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
    time,
};

use self::{connection::serve, credential::Passes};
pub use self::{
    credential::{Pass, Refusals, Refused, Why},
    hosts::{Hosts, HostsError},
};
use crate::Resolve;

/// How long nothing is accepted after accepting failed (no descriptors are left, say).
const PAUSE: Duration = Duration::from_millis(100);

/// How long things may take, and how many there may be.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// The head of a request, from its first byte or the end of the one before; and the time from
    /// accepting a connection to a good password.
    head: Duration,
    /// Resolving a name and connecting, together.
    connect: Duration,
    /// A connection over which no byte goes in either direction.
    idle: Duration,
    /// Connections that have shown no password yet; others wait to be accepted.
    strangers: usize,
    /// Connections of one command.
    each: usize,
    /// Connections of all commands: each takes two descriptors of this process.
    all: usize,
}

const BOUNDS: Bounds = Bounds {
    head: Duration::from_secs(10),
    connect: Duration::from_secs(10),
    idle: Duration::from_mins(5),
    strangers: 64,
    each: 256,
    all: 320,
};

/// What all connections share.
struct Shared {
    resolver: Arc<dyn Resolve>,
    bounds: Bounds,
    passes: Passes,
    /// Room for connections with a password.
    connections: Arc<Semaphore>,
}

/// A running proxy; one is enough for a process. Dropped, it ends with all its connections.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
}

impl Proxy {
    /// Begins to listen on a port of 127.0.0.1 that the system chooses, on the runtime that this
    /// is called in.
    ///
    /// # Errors
    /// Fails when there is no port to listen on.
    ///
    /// # Cancel safety
    /// Nothing listens when the future is dropped.
    pub async fn start(resolver: Arc<dyn Resolve>) -> io::Result<Self> {
        Self::start_with(resolver, BOUNDS).await
    }

    async fn start_with(resolver: Arc<dyn Resolve>, bounds: Bounds) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let connections = Arc::new(Semaphore::new(bounds.all));
        let shared = Shared { resolver, bounds, passes: Passes::default(), connections };
        let shared = Arc::new(shared);
        let listening = tokio::spawn(accept(listener, shared.clone()));
        Ok(Self { port, shared, listening })
    }

    /// The port of 127.0.0.1 where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets whoever has the pass reach these hosts until the pass is dropped.
    ///
    /// # Errors
    /// Fails when the system has no random bytes.
    pub fn admit(&self, hosts: Hosts) -> io::Result<Pass> {
        Pass::new(self.shared.clone(), self.port, hosts)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Without what it shares: that holds passwords.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("port", &self.port).finish_non_exhaustive()
    }
}

/// Its connections are tasks of its own, so that they end with it.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let doors = Arc::new(Semaphore::new(shared.bounds.strangers));
    let mut tasks = JoinSet::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let Ok(door) = doors.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                tasks.spawn(serve(stream, shared.clone(), door));
            }
            Err(_) => time::sleep(PAUSE).await,
        }
    }
}

#[cfg(test)]
mod tests;
