//! Which ports programs listen at, on the loopback addresses of this machine.
//!
//! **Invariant:** looking is no connection where the kernel lists what listens: a server that
//! takes one client alone, such as a debugger, is not used up by it.

use std::{
    fs,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
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

/// Reports whether a table has a listening socket at this port of a loopback address.
fn names(table: &str, port: u16) -> bool {
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, state) = (fields.next(), fields.nth(1));
        let at = local.and_then(|local| local.rsplit_once(':'));
        state == Some(LISTENS)
            && at.is_some_and(|(address, at)| {
                u16::from_str_radix(at, 16) == Ok(port)
                    && octets(address).is_some_and(|octets| ADDRESSES.contains(&octets))
            })
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
