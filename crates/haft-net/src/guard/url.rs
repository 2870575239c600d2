//! URLs as the guard takes them, and what is known of a host by its name alone.

use std::net::IpAddr;

use reqwest::Url;

use super::WebError;
use crate::{AddressError, Host};

/// The longest URL that is taken, in bytes: longer ones are no use but to carry data away.
const LONGEST: usize = 8_000;

/// Names that no public host has (RFC 6761, RFC 8375, ICANN's reservation of `internal`), and those
/// that private networks use all the same.
const INSIDE: &[&str] = &[
    "localhost",
    "local",
    "internal",
    "home.arpa",
    "lan",
    "home",
    "corp",
    "intranet",
    "private",
    "localdomain",
    "invalid",
    "test",
    "onion",
];

/// Where clouds answer with credentials, beside what is link-local.
const METADATA: &[&str] =
    &["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"];

/// An address of `http` or `https` without user name and password, its host in one form for all
/// its spellings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebUrl {
    url: Url,
    host: Host,
    port: u16,
}

impl WebUrl {
    /// Reads an address as browsers do.
    ///
    /// # Errors
    /// When it is none, of another scheme, has a user name or password, or a host that is none.
    pub fn read(text: &str) -> Result<Self, WebError> {
        let wrong = |reason: String| {
            let url = text.chars().take(200).collect();
            WebError::Unreadable { url, reason }
        };
        if text.len() > LONGEST {
            return Err(wrong(format!("it has {} bytes; at most {LONGEST} are taken", text.len())));
        }
        if text.chars().any(char::is_control) {
            return Err(wrong("it holds a control character".to_owned()));
        }
        let url = Url::parse(text.trim()).map_err(|error| match error {
            url::ParseError::RelativeUrlWithoutBase => {
                wrong("it begins neither with https:// nor with http://".to_owned())
            }
            error => wrong(error.to_string()),
        })?;
        Self::of(url)
    }

    /// As [`read`](Self::read), of an address that is one.
    pub(super) fn of(mut url: Url) -> Result<Self, WebError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(WebError::Scheme { scheme: url.scheme().chars().take(40).collect() });
        }
        let wrong = |reason: &str| WebError::Unreadable {
            url: url.as_str().chars().take(200).collect(),
            reason: reason.to_owned(),
        };
        if url.as_str().len() > LONGEST {
            return Err(wrong("it is too long"));
        }
        let text = url.host_str().ok_or_else(|| wrong("it has no host"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(WebError::Credentials { host: text.to_owned() });
        }
        let host = Host::parse(text).map_err(WebError::Address)?;
        let port = url.port_or_known_default().filter(|port| *port != 0);
        let port = port.ok_or_else(|| wrong("its port cannot be 0"))?;
        // What is dialled is what was judged, whatever it was written as.
        let set = match &host {
            Host::Address(address) => url.set_ip_host(*address).is_ok(),
            Host::Name(name) => url.set_host(Some(name)).is_ok(),
        };
        if !set {
            let (host, reason) = (host.to_string(), "it cannot stand in a URL");
            return Err(WebError::Address(AddressError::Unreadable { host, reason }));
        }
        // A fragment is the reader's own, and is not sent.
        url.set_fragment(None);
        Ok(Self { url, host, port })
    }

    /// The address; names beyond ASCII stand in it as they are asked for (`xn--`).
    pub const fn url(&self) -> &Url {
        &self.url
    }

    /// The address as a text.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Its host.
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// Its port.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

/// The name that sites use for the same: with `www.` before it, or without. None for addresses and
/// names of one label.
pub fn twin(host: &Host) -> Option<Host> {
    let Host::Name(name) = host else { return None };
    if !name.contains('.') {
        return None;
    }
    Some(Host::Name(match name.strip_prefix("www.") {
        Some(bare) if bare.contains('.') => bare.to_owned(),
        _ => format!("www.{name}"),
    }))
}

/// Reports whether a redirect stays on its site: the same host but for `www.`, the same scheme or
/// `https` in place of `http`, and the same port or the usual ones.
pub(super) fn is_same_site(from: &Url, to: &Url) -> bool {
    let host = |url: &Url| Host::parse(url.host_str().unwrap_or_default()).ok();
    let (Some(a), Some(b)) = (host(from), host(to)) else { return false };
    let same_host = a == b || twin(&a).as_ref() == Some(&b);
    let same_scheme =
        from.scheme() == to.scheme() || (from.scheme(), to.scheme()) == ("http", "https");
    // None where it is the usual one of its scheme.
    let same_port = from.port() == to.port();
    same_host && same_scheme && same_port
}

/// Reports whether a name is one of private networks, by itself.
pub(super) fn is_inside(name: &str) -> bool {
    !name.contains('.')
        || INSIDE.iter().any(|end| {
            name.strip_suffix(end).is_some_and(|head| head.is_empty() || head.ends_with('.'))
        })
}

/// Reports whether clouds answer with credentials at an address.
pub(super) fn is_metadata(address: IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    is_link_local || METADATA.iter().any(|text| text.parse() == Ok(address))
}
