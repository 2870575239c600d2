//! The hosts that a command may reach, as a person lists them.
//!
//! **Invariant:** an entry that cannot be read is an error, never a wider one; names are compared
//! in the one form that [`Host`] gives them.

use std::net::IpAddr;

use crate::Host;

/// The ports of an entry that names none.
const PORTS: [u16; 2] = [80, 443];

/// A list of hosts: `name`, `*.name` (what lies below it, not itself), addresses, and any of them
/// with `:port`. Without a port, 80 and 443 are meant. The empty list allows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    pattern: Pattern,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Exactly(Host),
    /// With a dot before it: `.example.org`.
    Below(String),
}

/// An entry of a list of hosts cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{entry:?} names no host: {reason}; write name, *.name, name:port or an address")]
pub struct HostsError {
    /// The entry.
    pub entry: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Hosts {
    /// Reads a list, one host an entry.
    ///
    /// # Errors
    /// Names the first entry that cannot be read.
    pub fn parse<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Result<Self, HostsError> {
        let entries = entries.into_iter().map(|entry| {
            let entry = entry.as_ref();
            read(entry).map_err(|reason| HostsError { entry: entry.to_owned(), reason })
        });
        Ok(Self { entries: entries.collect::<Result<_, _>>()? })
    }

    /// Whether this host may be reached at this port.
    pub fn allow(&self, host: &Host, port: u16) -> bool {
        self.at(port).any(|pattern| match (pattern, host) {
            (Pattern::Exactly(listed), host) => listed == host,
            (Pattern::Below(end), Host::Name(name)) => {
                name.len() > end.len() && name.ends_with(end.as_str())
            }
            (Pattern::Below(_), Host::Address(_)) => false,
        })
    }

    /// The addresses that are listed themselves, for this port.
    pub fn addresses(&self, port: u16) -> Vec<IpAddr> {
        let found = self.at(port).filter_map(|pattern| match pattern {
            Pattern::Exactly(Host::Address(address)) => Some(*address),
            _ => None,
        });
        found.collect()
    }

    fn at(&self, port: u16) -> impl Iterator<Item = &Pattern> {
        let meant = move |entry: &&Entry| match entry.port {
            Some(named) => named == port,
            None => PORTS.contains(&port),
        };
        self.entries.iter().filter(meant).map(|entry| &entry.pattern)
    }
}

fn read(entry: &str) -> Result<Entry, String> {
    let (host, port) = split_port(entry.trim())?;
    let parsed = |text: &str| Host::parse(text).map_err(|error| error.to_string());
    let pattern = match host.strip_prefix("*.") {
        None => Pattern::Exactly(parsed(host)?),
        Some(base) => match parsed(base)? {
            Host::Name(name) => Pattern::Below(format!(".{name}")),
            Host::Address(_) => return Err("nothing lies below an address".into()),
        },
    };
    Ok(Entry { pattern, port })
}

/// Parts `host:port`; an address of IPv6 has a port only behind brackets.
fn split_port(entry: &str) -> Result<(&str, Option<u16>), String> {
    let parted = match entry.rsplit_once(':') {
        Some((host, port)) if host.ends_with(']') || !host.contains(':') => Some((host, port)),
        _ => None,
    };
    let Some((host, port)) = parted else { return Ok((entry, None)) };
    // `+80` is a number to Rust, but no port.
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse() {
        Ok(number) if number > 0 && digits => Ok((host, Some(number))),
        _ => Err(format!("{port:?} is no port from 1 to 65535")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(list: &[&str], host: &str, port: u16) -> bool {
        Hosts::parse(list).unwrap().allow(&Host::parse(host).unwrap(), port)
    }

    #[test]
    fn a_name_is_itself_and_a_star_is_what_lies_below() {
        let list = ["Example.org", "*.hub.example", "registry.example:4873", "*.dev.example.:8080"];
        for (host, port, expected) in [
            ("example.org", 443, true),
            ("EXAMPLE.org.", 80, true),
            ("example.org", 8080, false),
            ("a.example.org", 443, false),
            ("notexample.org", 443, false),
            ("example.org.evil.net", 443, false),
            ("static.hub.example", 443, true),
            ("a.b.hub.example", 80, true),
            ("hub.example", 443, false),
            ("evilhub.example", 443, false),
            ("registry.example", 4873, true),
            ("registry.example", 443, false),
            ("a.dev.example", 8080, true),
            ("a.dev.example", 80, false),
        ] {
            assert_eq!(allowed(&list, host, port), expected, "{host}:{port}");
        }
        assert!(!allowed(&[], "example.org", 443));
        assert!(allowed(&["bücher.example"], "xn--bcher-kva.example", 80));
    }

    #[test]
    fn addresses_are_listed_as_themselves_in_any_spelling() {
        let list = ["10.0.0.7", "[::1]:3000", "2001:db8::1", "0x7f.1:8080"];
        assert!(allowed(&list, "0xa000007", 443) && !allowed(&list, "10.0.0.7", 81));
        assert!(allowed(&list, "::1", 3000) && !allowed(&list, "::1", 80));
        assert!(allowed(&list, "[2001:db8:0::1]", 80) && allowed(&list, "::ffff:127.0.0.1", 8080));
        let hosts = Hosts::parse(list).unwrap();
        assert_eq!(hosts.addresses(3000), ["::1".parse::<IpAddr>().unwrap()]);
        assert_eq!(hosts.addresses(80).len(), 2);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for entry in [
            "",
            "*",
            "*.",
            "**",
            "a.*",
            "*.*.example",
            "*.127.0.0.1",
            "*.[::1]",
            "https://a.example",
            "a/b",
            "a.example:",
            "a.example:0",
            "a.example:+80",
            "a.example:65536",
            "a.example:http",
            "u@a.example",
            "[::1",
            "::1%lo",
            "a b",
            "*.1",
        ] {
            let error = Hosts::parse(["good.example", entry]).expect_err(entry);
            assert_eq!(error.entry, entry);
        }
    }
}
