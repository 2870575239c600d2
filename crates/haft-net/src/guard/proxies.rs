//! Which proxy dials for an address: that of the environment or the system, or none.

use hyper::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use reqwest::Url;

use super::WebError;

/// The proxies.
#[derive(Debug)]
pub struct Proxies(Option<Matcher>);

impl Proxies {
    /// Those that every program of this machine is to use, by the variables `HTTP_PROXY`,
    /// `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, or by its settings.
    pub fn of_system() -> Self {
        Self(Some(Matcher::from_system()))
    }

    /// No proxy.
    pub const fn none() -> Self {
        Self(None)
    }

    /// One proxy for everything but the hosts in `not`, a list with commas.
    pub fn only(proxy: &str, not: &str) -> Self {
        Self(Some(Matcher::builder().all(proxy.to_owned()).no(not.to_owned()).build()))
    }

    /// The proxy for an address.
    pub(super) fn of(&self, url: &Url) -> Option<ProxyHop> {
        let uri: Uri = url.as_str().parse().ok()?;
        self.0.as_ref()?.intercept(&uri).map(ProxyHop)
    }
}

/// The proxy that dials for one address.
pub(super) struct ProxyHop(Intercept);

impl ProxyHop {
    /// Its address, without a password.
    pub(super) fn shown(&self) -> String {
        let uri = self.0.uri();
        let authority = uri.authority().map_or("", |all| all.as_str());
        let host = authority.rsplit('@').next().unwrap_or_default();
        format!("{}://{host}", uri.scheme_str().unwrap_or("http"))
    }

    pub(super) fn made(&self) -> Result<reqwest::Proxy, WebError> {
        // The proxy resolves the name: what was judged here is not what it dials, and is not said to be.
        let shown = self.shown();
        let far = match shown.split_once("://") {
            Some(("socks5", host)) => format!("socks5h://{host}"),
            Some(("socks4", host)) => format!("socks4a://{host}"),
            _ => shown,
        };
        let made = reqwest::Proxy::all(far).map_err(|error| {
            WebError::Setup(format!("the proxy of the environment cannot be used: {error}"))
        })?;
        Ok(match (self.0.basic_auth(), self.0.raw_auth()) {
            (Some(header), _) => made.custom_http_auth(header.clone()),
            (None, Some((user, password))) => made.basic_auth(user, password),
            (None, None) => made,
        })
    }
}
