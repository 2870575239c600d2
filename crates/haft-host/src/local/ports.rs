//! Which ports programs listen at, on the loopback addresses of this machine.
//!
//! **Invariant:** looking is no connection where the kernel lists what listens: a server that
//! takes one client alone, such as a debugger, is not used up by it.

use std::{
    collections::HashMap,
    fs::{self, DirEntry},
    io,
    iter::successors,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    path::PathBuf,
    time::Duration,
};

/// The kernel's tables of sockets (`proc_pid_net(5)`).
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// Addresses at which what comes to 127.0.0.1 or `::1` arrives, as the tables write them: words of
/// four bytes, each the wrong way round on a machine that counts from the small end.
const ADDRESSES: [[u8; 16]; 4] = [
    Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets(),
    Ipv4Addr::UNSPECIFIED.to_ipv6_mapped().octets(),
    Ipv6Addr::LOCALHOST.octets(),
    Ipv6Addr::UNSPECIFIED.octets(),
];
/// The state of a socket that listens.
const LISTENS: &str = "0A";
/// How long a connection to this machine itself may take, where there is no table.
const CONNECT: Duration = Duration::from_millis(200);

/// Reports whether a program listens at this port.
pub(super) async fn listens(port: u16) -> bool {
    let look = move || {
        let tables: Vec<String> =
            TABLES.iter().filter_map(|t| fs::read_to_string(t).ok()).collect();
        if tables.is_empty() {
            let at =
                [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), (Ipv6Addr::LOCALHOST, port).into()];
            return at.iter().any(|at| TcpStream::connect_timeout(at, CONNECT).is_ok());
        }
        tables.iter().any(|table| names(table, port))
    };
    tokio::task::spawn_blocking(look).await.unwrap_or(false)
}

/// Reports whether what listens at this port is of the keeper of this process.
pub(super) async fn listens_of(port: u16, process: u32) -> Option<bool> {
    let look = move || {
        let tables = TABLES.iter().filter_map(|table| fs::read_to_string(table).ok());
        let inodes: Vec<String> =
            tables.flat_map(|table| listening(&table, port).collect::<Vec<_>>()).collect();
        let sockets: Vec<_> =
            inodes.iter().map(|inode| PathBuf::from(format!("socket:[{inode}]"))).collect();
        let parents = parents();
        let keeper = *parents.get(&process)?;
        let above = |pid: &u32| parents.get(pid).copied();
        let is_below = |pid: &&u32| successors(Some(**pid), above).any(|above| above == keeper);
        let mut known = !sockets.is_empty();
        for pid in parents.keys().filter(is_below) {
            match fs::read_dir(format!("/proc/{pid}/fd")) {
                Ok(mut held) => {
                    let is_one = |held: io::Result<DirEntry>| {
                        held.and_then(|held| fs::read_link(held.path()))
                            .is_ok_and(|held| sockets.contains(&held))
                    };
                    if held.any(is_one) {
                        return Some(true);
                    }
                }
                // One that has ended meanwhile holds nothing.
                Err(error) => known &= error.kind() != io::ErrorKind::PermissionDenied,
            }
        }
        known.then_some(false)
    };
    tokio::task::spawn_blocking(look).await.ok().flatten()
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

/// Reports whether a table has a listening socket at this port of a loopback address.
fn names(table: &str, port: u16) -> bool {
    listening(table, port).next().is_some()
}

/// The numbers of the sockets in a table that listen at this port of a loopback address.
fn listening(table: &str, port: u16) -> impl Iterator<Item = String> {
    table.lines().skip(1).filter_map(move |line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, state) = (fields.next()?, fields.nth(1)?);
        let (address, at) = local.rsplit_once(':')?;
        let is_it = state == LISTENS
            && u16::from_str_radix(at, 16) == Ok(port)
            && octets(address).is_some_and(|octets| ADDRESSES.contains(&octets));
        is_it.then(|| fields.nth(5).unwrap_or_default().to_owned())
    })
}

/// An address of the tables as one of 16 bytes.
fn octets(hex: &str) -> Option<[u8; 16]> {
    let words = (0..hex.len()).step_by(8).map(|at| {
        let word = hex.get(at..at + 8)?;
        Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
    });
    let bytes = words.collect::<Option<Vec<_>>>()?.concat();
    match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => Some(Ipv4Addr::from(four).to_ipv6_mapped().octets()),
        Err(_) => bytes.try_into().ok(),
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
            assert!(listens(port).await, "{at}");
            server.set_nonblocking(true).unwrap();
            assert!(server.accept().is_err(), "{at}: it was connected to");
            drop(server);
            assert!(!listens(port).await, "{at}");
        }
    }

    #[test]
    fn only_listening_sockets_of_loopback_addresses_count() {
        let line = |address: &str, state: &str| {
            format!(
                "  sl  local_address rem_address   st\n   0: {address} 00000000:0000 {state} x\n"
            )
        };
        assert!(names(&line("00000000:1F90", LISTENS), 8080));
        assert!(!names(&line("00000000:1F90", "01"), 8080));
        assert!(!names(&line("00000000:1F90", LISTENS), 8081));
        assert!(!names(&line("0A00000A:1F90", LISTENS), 8080));
        assert!(!names(&line("0000:1F90", LISTENS), 8080));
        assert!(!names("", 8080) && !names("\n\n:\n", 8080));
    }
}
