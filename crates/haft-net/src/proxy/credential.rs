//! What lets a command through the proxy: a password, the hosts that it is valid for, and what was
//! refused to it.
//!
//! **Invariant:** a password is random, compared in constant time, and valid until its [`Pass`] is
//! dropped. It is shown by [`Pass::url`] and [`Pass::variables`] and nowhere else. The stored
//! refusals are bounded.

use std::{
    collections::HashMap,
    fmt, io,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{Hosts, Shared};

/// How many different refusals are kept for a command.
const REFUSALS: usize = 64;
/// How many characters of a host are kept: as many as a name can have.
const SHOWN: usize = 253;

/// Why something was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is not among the hosts that the command may reach, or not with that port.
    NotListed,
    /// It is no host; what is wrong with it.
    Unreadable(&'static str),
    /// The host is listed, but its address is not public and not listed itself.
    Special {
        /// One of its addresses.
        address: IpAddr,
        /// What that address is for, as [`crate::special`] says it.
        kind: &'static str,
    },
    /// The command, or all commands together, had too many connections.
    TooMany,
}

/// One host that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The host as it was read, else as it was written: then cut, and without control characters.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Why.
    pub why: Why,
    /// How often, from 1.
    pub times: u64,
}

/// What it says to a person and to the client.
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.host, self.port)?;
        match &self.why {
            Why::NotListed => f.write_str("not among the hosts that this command may reach"),
            Why::Unreadable(reason) => write!(f, "not a host: {reason}"),
            Why::Special { address, kind } => {
                write!(f, "its address {address} is not public ({kind}) and not listed itself")
            }
            Why::TooMany => f.write_str("too many connections at once"),
        }
    }
}

/// What was refused to a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// The first 64 different ones, in the order in which they came.
    pub list: Vec<Refused>,
    /// How many requests were refused beside these.
    pub more: u64,
}

impl Refusals {
    fn add(&mut self, refused: Refused) {
        let room = self.list.len() < REFUSALS;
        let known = self.list.iter_mut().find(|known| {
            (known.port, &known.host, &known.why) == (refused.port, &refused.host, &refused.why)
        });
        match known {
            Some(known) => known.times += refused.times,
            None if room => self.list.push(refused),
            None => self.more += refused.times,
        }
    }
}

/// A command that may use the proxy.
pub(super) struct Command {
    id: u64,
    password: String,
    pub hosts: Hosts,
    refusals: Mutex<Refusals>,
    /// Room for its connections.
    pub connections: Arc<Semaphore>,
    /// Cancelled when its pass is dropped.
    pub ended: CancellationToken,
}

impl Command {
    /// Keeps that a host was refused, as it was read or written.
    pub fn refuse(&self, host: &str, port: u16, why: Why) -> Refused {
        let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        let host = host.chars().take(SHOWN).map(visible).collect();
        let refused = Refused { host, port, why, times: 1 };
        lock(&self.refusals).add(refused.clone());
        refused
    }
}

/// The commands that may use the proxy now.
#[derive(Default)]
pub(super) struct Passes {
    next: AtomicU64,
    commands: Mutex<HashMap<u64, Arc<Command>>>,
}

impl Passes {
    /// Whose user name and password these are.
    pub fn identify(&self, user: &[u8], password: &[u8]) -> Option<Arc<Command>> {
        let id = std::str::from_utf8(user).ok()?.parse().ok()?;
        let command = lock(&self.commands).get(&id).cloned()?;
        let same = command.password.as_bytes().ct_eq(password);
        bool::from(same).then_some(command)
    }
}

/// Lets one command through the proxy; dropped, it lets nobody through, and what it let through
/// ends.
pub struct Pass {
    shared: Arc<Shared>,
    port: u16,
    command: Arc<Command>,
}

impl Pass {
    pub(super) fn new(shared: Arc<Shared>, port: u16, hosts: Hosts) -> io::Result<Self> {
        let mut bytes = [0; 16];
        let random = rustls::crypto::ring::default_provider().secure_random;
        random.fill(&mut bytes).map_err(|_| io::Error::other("no random bytes"))?;
        let command = Arc::new(Command {
            id: shared.passes.next.fetch_add(1, Ordering::Relaxed),
            password: format!("{:032x}", u128::from_ne_bytes(bytes)),
            hosts,
            refusals: Mutex::default(),
            connections: Arc::new(Semaphore::new(shared.bounds.each)),
            ended: CancellationToken::new(),
        });
        lock(&shared.passes.commands).insert(command.id, command.clone());
        Ok(Self { shared, port, command })
    }

    /// The address of the proxy for HTTP, with user name and password.
    pub fn url(&self) -> String {
        self.url_of("http")
    }

    /// The same for SOCKS5, where the proxy resolves names.
    pub fn socks_url(&self) -> String {
        self.url_of("socks5h")
    }

    fn url_of(&self, scheme: &str) -> String {
        format!("{scheme}://{}:{}@127.0.0.1:{}", self.command.id, self.command.password, self.port)
    }

    /// Environment variables by which programs find the proxy. They hold the password.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let http = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"];
        let npm = ["npm_config_proxy", "npm_config_https_proxy"];
        let http = http.into_iter().chain(npm).map(|name| (name, self.url()));
        // A host that is reached directly is not reached at all.
        let direct =
            ["NO_PROXY", "no_proxy", "npm_config_noproxy"].map(|name| (name, String::new()));
        let node = [("NODE_USE_ENV_PROXY", "1".to_owned())];
        // No `ALL_PROXY` with SOCKS: some clients fail where they lack a package for it.
        http.chain(direct).chain(node).collect()
    }

    /// What was refused until now.
    pub fn refused(&self) -> Refusals {
        lock(&self.command.refusals).clone()
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        lock(&self.shared.passes.commands).remove(&self.command.id);
        self.command.ended.cancel();
    }
}

/// Without the password.
impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("hosts", &self.command.hosts).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
