//! Why a request was not sent or not answered, with what to do next.

use std::time::Duration;

use super::{WebUrl, bare, proxies::ProxyHop};
use crate::{AddressError, NetError};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    /// The text is no address.
    #[error("{url:?} is no URL: {reason}")]
    Unreadable {
        /// The text, cut where it is long.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It is an address of another kind.
    #[error("{scheme}: is not http: or https:")]
    Scheme {
        /// What it begins with.
        scheme: String,
    },
    /// It holds a user name or a password.
    #[error("the URL for {host} holds a user name or password before its @")]
    Credentials {
        /// The host that is behind them.
        host: String,
    },
    /// It holds the value of a secret.
    #[error("the {place} holds the value of the secret {name}, which is not sent to a host")]
    Secret {
        /// The name of the secret.
        name: String,
        /// What holds it.
        place: &'static str,
    },
    /// The call did not say that it would ask this host.
    #[error("{host} is not among the hosts that this call declared")]
    Undeclared {
        /// The host.
        host: String,
    },
    /// The host is none, has no address, or none that may be dialled.
    #[error("{0}")]
    Address(AddressError),
    /// Only the proxy could resolve the name, and names like it are those of private networks.
    #[error("{host} is a name of private networks, and only the proxy {proxy} could resolve it")]
    Inside {
        /// The name.
        host: String,
        /// The proxy.
        proxy: String,
    },
    /// It goes round and round.
    #[error("more than {most} redirects; the last one leads to {last}")]
    Redirects {
        /// How many are followed.
        most: usize,
        /// Where it would go on.
        last: String,
    },
    /// No connection came about.
    #[error("cannot connect to {host}{}: {reason}", through(proxy.as_deref()))]
    Connect {
        /// Host and port.
        host: String,
        /// The proxy that was to dial.
        proxy: Option<String>,
        /// What the system said.
        reason: String,
    },
    /// The certificate of the server does not hold, or it speaks no TLS.
    #[error("no secure connection to {host}: {reason}")]
    Tls {
        /// Host and port.
        host: String,
        /// What is wrong.
        reason: String,
    },
    /// The connection broke before there was an answer.
    #[error("{url} gave no answer: {reason}")]
    Broken {
        /// The address, without its query.
        url: String,
        /// What the system said.
        reason: String,
    },
    /// It took too long.
    #[error("no answer within {} s", time.as_secs_f64())]
    Late {
        /// How long it may take.
        time: Duration,
    },
    /// The client could not be set up.
    #[error("the request cannot be made: {0}")]
    Setup(String),
}

fn through(proxy: Option<&str>) -> String {
    proxy.map(|proxy| format!(" through the proxy {proxy}")).unwrap_or_default()
}

impl WebError {
    /// What to do next, in a sentence or two.
    pub fn hint(&self) -> String {
        let text = match self {
            Self::Unreadable { .. } => "Give a whole URL, such as https://example.org/page.",
            Self::Scheme { .. } => {
                "Only web pages are fetched. Read files with read; for other protocols use a command."
            }
            Self::Credentials { .. } => {
                "Leave them out. If the page needs a log-in, ask the person for what it says."
            }
            Self::Secret { .. } => {
                "Leave it out of the URL and of what is sent. If a service needs it, say so to the \
                 person."
            }
            Self::Undeclared { .. } => "Call the tool again with a URL of that host.",
            Self::Address(AddressError::Unreadable { .. }) => "Correct the host in the URL.",
            Self::Address(AddressError::Special { .. }) => {
                "Addresses inside of networks are refused in every mode. Do not try it by other \
                 means. The person can except it: web.private = [\"HOST:PORT\"] in their own settings."
            }
            Self::Address(AddressError::Unresolved { .. }) => {
                "Look whether the name is right and this machine is online, or take another page."
            }
            Self::Inside { .. } => {
                "The person can except it: web.private = [\"HOST:PORT\"] in their own settings."
            }
            Self::Redirects { .. } => "Fetch the last address itself, or take another page.",
            Self::Connect { proxy: Some(_), .. } => {
                "The proxy is that of the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY). Say so to \
                 the person, or take another page."
            }
            Self::Connect { .. } => {
                "The server may be down, or nothing may listen there. Try later, or another page."
            }
            Self::Tls { .. } => {
                "Certificates are always checked. Look whether the host is right; http:// works where \
                 the server has no TLS at all."
            }
            Self::Broken { .. } | Self::Late { .. } => "Try once more later, or take another page.",
            Self::Setup(_) => "Say so to the person: it is no fault of the page.",
        };
        text.to_owned()
    }

    pub(super) fn setup(error: &NetError) -> Self {
        Self::Setup(error.to_string())
    }

    /// What a failed request tells.
    pub(super) fn of(error: &reqwest::Error, at: &WebUrl, proxy: Option<&ProxyHop>) -> Self {
        let (reason, host) = (reason(error), format!("{}:{}", at.host(), at.port()));
        let is_secure = at.url().scheme() == "https";
        let words = ["certificate", "handshake", "tls", "corrupt message", "InvalidContentType"];
        let folded = reason.to_lowercase();
        if is_secure && words.iter().any(|word| folded.contains(&word.to_lowercase())) {
            return Self::Tls { host, reason };
        }
        if error.is_connect() || error.is_timeout() {
            return Self::Connect { host, proxy: proxy.map(ProxyHop::shown), reason };
        }
        Self::Broken { url: bare(at.url()), reason }
    }
}

/// The innermost causes, without the address that reqwest puts in.
pub(super) fn reason(error: &reqwest::Error) -> String {
    crate::client::reason(error)
}
