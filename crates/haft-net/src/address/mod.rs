//! Which addresses may be dialled: hosts read as browsers and libc read them, their addresses
//! judged after resolution, and a dialler for exactly those that were judged.
//!
//! **Invariant:** [`dial`] opens connections to the addresses of a [`Checked`] and to no others,
//! and only [`check`] makes one; a name is never resolved twice, so an answer that changes
//! (rebinding) changes nothing. This module knows no list of hosts: which names are allowed is for
//! its callers to say.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::{net::TcpStream, sync::Semaphore, time};

/// The longest text that is read as a host at all, in bytes; escapes make names longer.
const LONGEST_TEXT: usize = 1024;
/// RFC 1035, section 2.3.4, in bytes.
const LONGEST_NAME: usize = 253;
/// RFC 1035, section 2.3.4, in bytes.
const LONGEST_LABEL: usize = 63;
/// How many names are looked up at once: each holds a thread for as long as the system takes.
const LOOKUPS: usize = 16;
/// When the next address is tried beside one that does not answer (RFC 8305, section 5).
const STAGGER: Duration = Duration::from_millis(250);

/// Why no connection to a host came about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is no host.
    #[error("{host:?} is not a host: {reason}")]
    Unreadable {
        /// The text, cut where it is long.
        host: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The host has no address that may be dialled.
    #[error("{}", special_text(host, *address, kind))]
    Special {
        /// The host as it was read.
        host: Host,
        /// One of its addresses.
        address: IpAddr,
        /// What that address is for, as [`special`] says it.
        kind: &'static str,
    },
    /// The name has no address.
    #[error("cannot resolve {host}: {reason}")]
    Unresolved {
        /// The name as it was read.
        host: Host,
        /// What the resolver said.
        reason: String,
    },
}

fn special_text(host: &Host, address: IpAddr, kind: &str) -> String {
    match host {
        Host::Name(name) => format!("{name} has the address {address}: {kind}"),
        Host::Address(_) => format!("{address}: {kind}"),
    }
}

/// A host of a URL, a CONNECT or a SOCKS request, in one form for all its spellings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name of the DNS: ASCII, lower case, labels of 1 to 63 bytes, no dot at its end.
    Name(String),
    /// An address, of IPv4 where it is one in the clothes of IPv6.
    Address(IpAddr),
}

impl Host {
    /// Reads a host as browsers do (WHATWG URL, section 3.5): percent escapes are undone, names
    /// beyond ASCII mapped (UTS 46), and what a resolver would take for an IPv4 address is one
    /// (`127.1`, `0x7f000001`, `017700000001`). IPv6 addresses may come without brackets.
    ///
    /// # Errors
    /// [`AddressError::Unreadable`] for zone identifiers, characters other than letters, digits,
    /// `-`, `_` and `.`, empty labels and those that are too long.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        Self::read(text).map_err(|reason| {
            let host = text.chars().take(80).collect();
            AddressError::Unreadable { host, reason }
        })
    }

    fn read(text: &str) -> Result<Self, &'static str> {
        if text.len() > LONGEST_TEXT {
            return Err("it is too long");
        }
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Ok(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        if text.contains(':') && text.contains('%') {
            return Err("an address with a zone is one of this machine's own networks");
        }
        let name = match url::Host::parse(text) {
            Ok(url::Host::Ipv4(address)) => return Ok(Self::Address(address.into())),
            Ok(url::Host::Ipv6(address)) => {
                return Ok(Self::Address(IpAddr::V6(address).to_canonical()));
            }
            Ok(url::Host::Domain(name)) => name,
            Err(_) => return Err("it is neither a name nor an address"),
        };
        let name = name.strip_suffix('.').unwrap_or(&name);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !name.bytes().all(plain) {
            return Err("names hold letters, digits, - and _");
        }
        if name.len() > LONGEST_NAME || name.split('.').any(|label| label.len() > LONGEST_LABEL) {
            return Err("names have at most 253 characters, 63 between two dots");
        }
        if name.split('.').any(str::is_empty) {
            return Err("nothing stands between two dots");
        }
        Ok(Self::Name(name.to_ascii_lowercase()))
    }
}

/// As in a URL: addresses of IPv6 in brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

const PRIVATE: &str = "a private network";
const LOOPBACK: &str = "this machine itself";
const LINK_LOCAL: &str = "link-local, where clouds keep their metadata";
const DOCUMENTATION: &str = "reserved for documentation";
const MULTICAST: &str = "multicast";
const RESERVED: &str = "reserved";

/// IANA, IPv4 Special-Purpose Address Registry (RFC 6890), with multicast and what stands by itself.
const SPECIAL_V4: &[(Ipv4Addr, u32, &str)] = &[
    (Ipv4Addr::UNSPECIFIED, 8, LOOPBACK),
    (Ipv4Addr::new(10, 0, 0, 0), 8, PRIVATE),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "a provider's private network"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, LOOPBACK),
    // Azure's platform server: an address like any other elsewhere, but nobody's elsewhere.
    (Ipv4Addr::new(168, 63, 129, 16), 32, "a cloud's metadata"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, LINK_LOCAL),
    (Ipv4Addr::new(172, 16, 0, 0), 12, PRIVATE),
    (Ipv4Addr::new(192, 0, 0, 0), 24, RESERVED),
    (Ipv4Addr::new(192, 0, 2, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(192, 88, 99, 0), 24, RESERVED),
    (Ipv4Addr::new(192, 168, 0, 0), 16, PRIVATE),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "reserved for benchmarks"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(203, 0, 113, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(224, 0, 0, 0), 4, MULTICAST),
    (Ipv4Addr::new(240, 0, 0, 0), 4, RESERVED),
];

/// IANA, IPv6 Special-Purpose Address Registry; what lies outside `2000::/3` is refused in any case
/// and named here only where it has a name.
const SPECIAL_V6: &[(Ipv6Addr, u32, &str)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, LOOPBACK),
    (Ipv6Addr::LOCALHOST, 128, LOOPBACK),
    // Protocol assignments: Teredo, ORCHID, benchmarks and anycast of protocols.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, RESERVED),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, DOCUMENTATION),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, DOCUMENTATION),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, PRIVATE),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, LINK_LOCAL),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, PRIVATE),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, MULTICAST),
];
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// RFC 6052: an IPv4 address in the last 32 bits.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);
/// RFC 3056: an IPv4 address in bits 16 to 48.
const SIX_TO_FOUR: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16);

/// What an address is for that is not one of the public internet; none for the others.
///
/// An IPv4 address inside one of IPv6 (mapped, NAT64, 6to4) is judged as itself.
pub fn special(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let all = SPECIAL_V4.iter();
            let mut found = all.filter(|(net, bits, _)| {
                (u32::from(address) ^ u32::from(*net)).leading_zeros() >= *bits
            });
            found.next().map(|(_, _, kind)| *kind)
        }
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let within = |(net, bits): (Ipv6Addr, u32)| {
        (u128::from(address) ^ u128::from(net)).leading_zeros() >= bits
    };
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        special(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
    };
    let parts = address.segments();
    if within(NAT64) {
        return embedded(parts[6], parts[7]);
    }
    if within(SIX_TO_FOUR) {
        return embedded(parts[1], parts[2]);
    }
    let named = SPECIAL_V6.iter().find(|(net, bits, _)| within((*net, *bits)));
    match named {
        Some((_, _, kind)) => Some(kind),
        None if within(GLOBAL_V6) => None,
        None => Some(RESERVED),
    }
}

/// Says which addresses a name has.
pub trait Resolve: Send + Sync + 'static {
    /// Looks a name up, in the form of [`Host::Name`]. The addresses need no check.
    ///
    /// # Errors
    /// Fails when the name has no address, or nobody says so.
    ///
    /// # Cancel safety
    /// The answer of a dropped future is lost.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the system, `getaddrinfo`; at most 16 lookups at once.
#[derive(Clone, Debug)]
pub struct SystemResolver {
    slots: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self { slots: Arc::new(Semaphore::new(LOOKUPS)) }
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let (slots, name) = (self.slots.clone(), name.to_owned());
        Box::pin(async move {
            let slot = slots.acquire_owned().await.map_err(io::Error::other)?;
            let lookup = move || {
                // A lookup cannot be stopped: its slot is taken until the system answers, even
                // when nobody waits for it any more.
                let _slot = slot;
                let found = (name.as_str(), 0).to_socket_addrs()?;
                Ok(found.map(|address| address.ip()).collect())
            };
            tokio::task::spawn_blocking(lookup).await.map_err(io::Error::other)?
        })
    }
}

/// Addresses of one host that may be dialled: at least one, each judged by [`check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    addresses: Vec<SocketAddr>,
}

impl Checked {
    /// The addresses in the order in which they are to be tried.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

/// Resolves a host and keeps the addresses that are public or among `listed`; it takes as long as
/// the resolver does.
///
/// # Errors
/// [`AddressError::Unresolved`] where there is no address, [`AddressError::Special`] where there
/// is none that may be dialled.
///
/// # Cancel safety
/// Nothing is kept of a dropped future.
pub async fn check(
    resolver: &dyn Resolve,
    host: &Host,
    port: u16,
    listed: &[IpAddr],
) -> Result<Checked, AddressError> {
    let unresolved = |reason: String| AddressError::Unresolved { host: host.clone(), reason };
    let found = match host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => {
            resolver.resolve(name).await.map_err(|error| unresolved(error.to_string()))?
        }
    };
    let mut refused = None;
    let mut addresses = Vec::new();
    for address in found {
        // What the system would dial for a mapped address is the IPv4 address: so it is dialled.
        let address = address.to_canonical();
        match special(address) {
            Some(kind) if !listed.contains(&address) => refused = Some((address, kind)),
            _ => addresses.push(SocketAddr::new(address, port)),
        }
    }
    match refused {
        _ if !addresses.is_empty() => Ok(Checked { addresses }),
        Some((address, kind)) => Err(AddressError::Special { host: host.clone(), address, kind }),
        None => Err(unresolved("it has no address".into())),
    }
}

/// Connects to the first of the addresses that answers: each is tried, the next one 250 ms after
/// the one before it or as soon as that has failed.
///
/// # Errors
/// Fails with the error of the last one that failed, and with
/// [`TimedOut`](io::ErrorKind::TimedOut) when none stands `within` that time.
///
/// # Cancel safety
/// Connections that do not stand yet are given up.
pub async fn dial(checked: &Checked, within: Duration) -> io::Result<TcpStream> {
    let race = async {
        let mut waiting = checked.addresses.iter();
        let mut tries = FuturesUnordered::new();
        loop {
            if let Some(address) = waiting.next() {
                tries.push(TcpStream::connect(*address));
            }
            let more = waiting.len() > 0;
            tokio::select! {
                Some(answer) = tries.next() => match answer {
                    Ok(stream) => return Ok(stream),
                    Err(error) if !more && tries.is_empty() => return Err(error),
                    Err(_) => {}
                },
                () = time::sleep(STAGGER), if more => {}
            }
        }
    };
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
    time::timeout(within, race).await.map_err(late)?
}

#[cfg(test)]
mod tests;
