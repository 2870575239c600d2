//! Which ports programs listen at, at any address of this machine, or of the network namespace that
//! a confined program has instead.
//!
//! **Invariant:** if the kernel lists listening sockets, checking opens no connection. So a server
//! that accepts a single client, such as a debugger, is not used up by it.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    iter::successors,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    path::PathBuf,
    time::Duration,
};

/// Where the kernel tells of this process's own network.
const OWN: &str = "/proc/net";
/// The kernel's tables of sockets (`proc_pid_net(5)`), what stands before an address of them, and the
/// state of a socket that takes what comes: over UDP, one that is bound and not connected.
const TABLES: [(&str, &str, &str); 4] =
    [("tcp", "", LISTENS), ("tcp6", "", LISTENS), ("udp", "udp ", BOUND), ("udp6", "udp ", BOUND)];
/// The state of a socket that listens.
const LISTENS: &str = "0A";
/// That of one that is only bound.
const BOUND: &str = "07";
/// How long a connection to this machine itself may take, where there is no table.
const CONNECT: Duration = Duration::from_millis(200);

/// Reports whether a program listens at this port over TCP, in the network of this process or, without one,
/// in that of haft.
pub(super) async fn listens(port: u16, process: Option<u32>) -> bool {
    let look = move || {
        let networks = networks(&process.and_then(below).unwrap_or_default());
        let tables = TABLES.iter().filter(|(_, _, state)| *state == LISTENS);
        let at = &networks;
        let tables = tables.flat_map(|(name, ..)| at.iter().map(move |at| at.join(name)));
        let tables: Vec<String> =
            tables.filter_map(|table| fs::read_to_string(table).ok()).collect();
        if tables.is_empty() && networks == [PathBuf::from(OWN)] {
            let at =
                [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), (Ipv6Addr::LOCALHOST, port).into()];
            return at.iter().any(|at| TcpStream::connect_timeout(at, CONNECT).is_ok());
        }
        tables.iter().any(|table| listening(table, LISTENS, port).next().is_some())
    };
    tokio::task::spawn_blocking(look).await.unwrap_or(false)
}

/// The addresses of this port at which the keeper of this process takes what comes; none where that
/// cannot be known.
pub(super) async fn listens_of(port: u16, process: u32) -> Option<Vec<String>> {
    let look = move || {
        let (mut sockets, below) = (HashMap::new(), below(process)?);
        for network in networks(&below) {
            for (table, kind, state) in TABLES {
                let Ok(table) = fs::read_to_string(network.join(table)) else { continue };
                for (address, inode) in listening(&table, state, port) {
                    let shown = format!("{kind}{}", SocketAddr::new(address, port));
                    sockets.insert(PathBuf::from(format!("socket:[{inode}]")), shown);
                }
            }
        }
        if sockets.is_empty() {
            return None;
        }
        let (mut known, mut found) = (true, Vec::new());
        for pid in below {
            match fs::read_dir(format!("/proc/{pid}/fd")) {
                Ok(held) => {
                    let held = held.flatten().filter_map(|held| fs::read_link(held.path()).ok());
                    found.extend(held.filter_map(|held| sockets.get(&held).cloned()));
                }
                // One that has ended meanwhile holds nothing.
                Err(error) => known &= error.kind() != io::ErrorKind::PermissionDenied,
            }
        }
        found.sort();
        found.dedup();
        (known || !found.is_empty()).then_some(found)
    };
    tokio::task::spawn_blocking(look).await.ok().flatten()
}

/// What lives below the keeper of a process, itself included.
fn below(process: u32) -> Option<Vec<u32>> {
    let parents = parents();
    let keeper = *parents.get(&process)?;
    let above = |pid: &u32| parents.get(pid).copied();
    let is_below = |pid: &&u32| successors(Some(**pid), above).any(|above| above == keeper);
    Some(parents.keys().filter(is_below).copied().collect())
}

/// Where the kernel tells of the networks that these processes have: of others than haft's own, where any has
/// one. Then what is in haft's only holds the others.
fn networks(of: &[u32]) -> Vec<PathBuf> {
    let space = |of: &str| fs::read_link(format!("/proc/{of}/ns/net")).ok();
    let own = space("self");
    let others = of.iter().filter_map(|pid| Some((space(&pid.to_string())?, pid)));
    let others = others.filter(|(space, _)| own.as_ref().is_some_and(|own| own != space));
    // One that ends meanwhile does not stand for the others.
    let all: BTreeMap<PathBuf, Vec<&u32>> =
        others.fold(BTreeMap::new(), |mut all, (space, pid)| {
            all.entry(space).or_insert_with(Vec::new).push(pid);
            all
        });
    if all.is_empty() {
        return vec![OWN.into()];
    }
    let lives = |pid: &&&u32| fs::exists(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    let folders = all.values().filter_map(|pids| pids.iter().find(lives));
    folders.map(|pid| format!("/proc/{pid}/net").into()).collect()
}

/// The parents of all processes.
fn parents() -> HashMap<u32, u32> {
    let parent = |pid: u32| {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in brackets and may hold anything.
        let rest =
            String::from_utf8_lossy(&stat[stat.iter().rposition(|&b| b == b')')?..]).into_owned();
        rest.split_ascii_whitespace().nth(2)?.parse().ok()
    };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    all.filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

/// The addresses at which sockets of a table are in this state at this port, and their numbers.
fn listening<'a>(
    table: &'a str,
    wanted: &'a str,
    port: u16,
) -> impl Iterator<Item = (IpAddr, &'a str)> {
    table.lines().skip(1).filter_map(move |line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, state) = (fields.next()?, fields.nth(1)?);
        let (address, at) = local.rsplit_once(':')?;
        let is_it = state == wanted && u16::from_str_radix(at, 16) == Ok(port);
        let address = address_of(address).filter(|_| is_it)?;
        Some((address, fields.nth(5).unwrap_or_default()))
    })
}

/// An address as the tables write it: words of four bytes, each the wrong way round on a machine that
/// counts from the small end.
fn address_of(hex: &str) -> Option<IpAddr> {
    let words = (0..hex.len()).step_by(8).map(|at| {
        let word = hex.get(at..at + 8)?;
        Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
    });
    let bytes = words.collect::<Option<Vec<_>>>()?.concat();
    match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => Some(four.into()),
        Err(_) => Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn what_listens_is_seen_and_not_disturbed() {
        for at in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            let Ok(server) = TcpListener::bind(at) else {
                assert!(at.starts_with('['), "{at}: every machine has IPv4");
                continue;
            };
            let port = server.local_addr().unwrap().port();
            assert!(listens(port, None).await, "{at}");
            server.set_nonblocking(true).unwrap();
            assert!(server.accept().is_err(), "{at}: it was connected to");
            drop(server);
            assert!(!listens(port, None).await, "{at}");
        }
    }

    #[test]
    fn only_listening_sockets_count_at_whatever_address() {
        let line = |address: &str, state: &str| {
            format!(
                "  sl  local_address rem_address   st\n   0: {address} 00000000:0000 {state} x\n"
            )
        };
        let found = |table: &str, port| {
            listening(table, LISTENS, port).map(|(at, _)| at.to_string()).next()
        };
        let loopback = format!("{:08X}:1F90", u32::from_ne_bytes([127, 0, 0, 2]));
        assert_eq!(found(&line("00000000:1F90", LISTENS), 8080), Some("0.0.0.0".to_owned()));
        assert_eq!(found(&line(&loopback, LISTENS), 8080), Some("127.0.0.2".to_owned()));
        for (address, state) in [
            ("00000000:1F90", "01"),
            ("00000000:1F90", BOUND),
            ("00000000:1F91", LISTENS),
            ("0000:1F90", LISTENS),
        ] {
            assert_eq!(found(&line(address, state), 8080), None, "{address} {state}");
        }
        assert_eq!((found("", 8080), found("\n\n:\n", 8080)), (None, None));
    }
}
