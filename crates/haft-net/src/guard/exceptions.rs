//! Hosts that may be asked although they are private: a person lists them, with their ports.

use std::collections::HashSet;

use crate::Host;

/// Why an exception cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no HOST:PORT: {reason}")]
pub struct ExceptionError {
    /// The text, cut where it is long.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A list of hosts with their ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exceptions(HashSet<(Host, u16)>);

impl Exceptions {
    /// Reads texts such as `localhost:3000`, `10.0.0.7:80` and `[::1]:8080`.
    ///
    /// # Errors
    /// Names the first that cannot be read.
    pub fn parse<T: AsRef<str>>(texts: &[T]) -> Result<Self, ExceptionError> {
        texts.iter().map(|text| entry(text.as_ref())).collect::<Result<_, _>>().map(Self)
    }

    /// Reports whether a host is excepted at a port.
    pub fn has(&self, host: &Host, port: u16) -> bool {
        !self.0.is_empty() && self.0.contains(&(host.clone(), port))
    }
}

fn entry(text: &str) -> Result<(Host, u16), ExceptionError> {
    let wrong = |reason: String| {
        let text = text.chars().take(80).collect();
        ExceptionError { text, reason }
    };
    let (host, port) =
        text.trim().rsplit_once(':').ok_or_else(|| wrong("its port is missing".into()))?;
    let port = port.parse().ok().filter(|port| *port != 0);
    let port = port.ok_or_else(|| wrong("its port is no number from 1 to 65535".into()))?;
    if host.contains(':') && !host.starts_with('[') {
        return Err(wrong("an address of IPv6 stands in brackets".into()));
    }
    let host = Host::parse(host).map_err(|error| wrong(error.to_string()))?;
    Ok((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_their_ports_and_are_read_as_urls_are() {
        let all = Exceptions::parse(&["localhost:3000", " 127.1:80 ", "[::1]:8080"]).unwrap();
        for (host, port, has) in [
            ("LOCALHOST.", 3000, true),
            ("localhost", 3001, false),
            ("a.localhost", 3000, false),
            ("0x7f000001", 80, true),
            ("127.0.0.2", 80, false),
            ("::1", 8080, true),
            ("::ffff:127.0.0.1", 80, true),
        ] {
            assert_eq!(all.has(&Host::parse(host).unwrap(), port), has, "{host}:{port}");
        }
        for wrong in [
            "localhost",
            "localhost:",
            "localhost:0",
            "localhost:65536",
            "::1:80",
            "*:80",
            "a b:80",
        ] {
            let error = Exceptions::parse(&["ok:1", wrong]).unwrap_err();
            assert_eq!(error.text, wrong);
        }
    }
}
