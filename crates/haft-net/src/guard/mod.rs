//! The guard of haft's own requests to hosts that a model, a page or a project names.
//!
//! **Invariant:** no byte reaches an address that [`special`] names, unless a person excepted that
//! host and port. Each hop is judged anew: the addresses that were judged are the ones that are
//! dialled, and a name is resolved once for it. A redirect to another host is handed back and never
//! followed. What an answer takes in memory and time is bounded, unpacked bytes included. Which
//! hosts may be asked, and what is a secret, the caller says through its [`Gate`].

mod body;
mod error;
mod exceptions;
mod proxies;
mod url;

use std::{net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use reqwest::{Method, Url};
use tokio::time::Instant;

pub use self::{
    body::BodyEnd,
    error::WebError,
    exceptions::{ExceptionError, Exceptions},
    proxies::Proxies,
    url::{WebUrl, twin},
};
use self::{proxies::ProxyHop, url::is_same_site};
use crate::{
    AddressError, Checked, Host, Resolve, check,
    client::{builder, header_map},
    direct::GuardedResolver,
    special,
};

/// Limits of one request, all of its redirects together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebLimits {
    /// How long it may take to the last byte; 30 s by default.
    pub time: Duration,
    /// How long a connection may take to stand; 10 s by default.
    pub connect: Duration,
    /// Most bytes of a body, unpacked; 10 MB by default.
    pub bytes: usize,
    /// Most redirects that are followed; 10 by default.
    pub redirects: usize,
}

impl Default for WebLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30),
            connect: Duration::from_secs(10),
            bytes: 10_000_000,
            redirects: 10,
        }
    }
}

/// How a request is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebMethod {
    /// Asks for what is there; redirects within a site are followed.
    #[default]
    Get,
    /// Sends a form or a document; no redirect is followed.
    Post,
}

/// A request to a host that somebody else named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebRequest {
    /// How.
    pub method: WebMethod,
    /// The address, as it was written.
    pub url: String,
    /// Headers that only the caller decides; their values are not looked through for secrets, since
    /// a key of a service belongs there.
    pub headers: Vec<(String, String)>,
    /// What is sent with a POST; it is looked through for secrets.
    pub body: Bytes,
}

impl WebRequest {
    /// Asks for a page.
    pub fn get(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }

    /// Sends a document.
    pub fn post(url: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { method: WebMethod::Post, url: url.into(), body: body.into(), ..Self::default() }
    }

    /// The same request with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// What came of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebResponse {
    /// The address that answered, behind all redirects that were followed.
    pub url: String,
    /// The HTTP status.
    pub status: u16,
    /// What the server says that the body is.
    pub content_type: Option<String>,
    /// The body, unpacked.
    pub body: Bytes,
    /// How the body ended.
    pub end: BodyEnd,
    /// How the body is still packed; none where it is not.
    pub packed: Option<String>,
    /// Where the server wants to send the caller: another host, which is not asked here.
    pub elsewhere: Option<String>,
    /// How many redirects were followed.
    pub redirects: usize,
    /// The proxy that dialled, without its password; none where haft itself did.
    pub proxy: Option<String>,
    /// Seconds that the server wants to be left alone, as it wrote it.
    pub retry_after: Option<String>,
}

/// What a caller knows and the guard does not.
pub trait Gate: Send + Sync {
    /// Reports whether a host may be asked at all.
    fn admits(&self, host: &Host) -> bool;

    /// The name of a secret whose value stands in a text, in any encoding; none where none does.
    fn secret_in(&self, text: &str) -> Option<String>;
}

/// What carries requests of tools to the network: the [`Guard`], or a stand-in of a test.
pub trait Web: Send + Sync {
    /// Sends a request to a host that the gate admits.
    ///
    /// # Errors
    /// When it must not or cannot be sent, and when no answer comes. A status of 400 and more is an
    /// answer.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    fn send<'a>(
        &'a self,
        request: &'a WebRequest,
        gate: &'a dyn Gate,
    ) -> BoxFuture<'a, Result<WebResponse, WebError>>;
}

/// The guard.
#[derive(Clone)]
pub struct Guard {
    resolver: Arc<dyn Resolve>,
    exceptions: Exceptions,
    proxies: Arc<Proxies>,
    limits: WebLimits,
}

impl Guard {
    /// A guard with the default limits. `exceptions` are hosts that may be private; a person names
    /// them, and nobody else.
    pub fn new(resolver: Arc<dyn Resolve>, exceptions: Exceptions, proxies: Proxies) -> Self {
        let (proxies, limits) = (Arc::new(proxies), WebLimits::default());
        Self { resolver, exceptions, proxies, limits }
    }

    /// The same guard with other limits.
    #[must_use]
    pub fn within(self, limits: WebLimits) -> Self {
        Self { limits, ..self }
    }

    async fn sent(&self, request: &WebRequest, gate: &dyn Gate) -> Result<WebResponse, WebError> {
        let late = Instant::now() + self.limits.time;
        let mut at = WebUrl::read(&request.url)?;
        let body = String::from_utf8_lossy(&request.body);
        if let Some(name) = gate.secret_in(&body).filter(|_| !body.is_empty()) {
            return Err(WebError::Secret { name, place: "body" });
        }
        let mut redirects = 0;
        loop {
            let hop = self.hop(request, &at, gate, late).await?;
            let next = hop.location().and_then(|to| at.url().join(&to).ok());
            let Some(next) = next else { return hop.finished(&at, redirects, None, late).await };
            // What a page points to is as hostile as what a model writes.
            let follows = request.method == WebMethod::Get
                && is_same_site(at.url(), &next)
                && WebUrl::of(next.clone()).is_ok_and(|next| gate.admits(next.host()));
            if !follows {
                return hop.finished(&at, redirects, Some(next.to_string()), late).await;
            }
            redirects += 1;
            if redirects > self.limits.redirects {
                let most = self.limits.redirects;
                return Err(WebError::Redirects { most, last: next.to_string() });
            }
            at = WebUrl::of(next)?;
        }
    }

    /// Judges one address and sends the request there, up to the head of the answer.
    async fn hop(
        &self,
        request: &WebRequest,
        at: &WebUrl,
        gate: &dyn Gate,
        late: Instant,
    ) -> Result<Hop, WebError> {
        let WebLimits { time, connect, bytes, .. } = self.limits;
        if let Some(name) = gate.secret_in(at.url().as_str()) {
            return Err(WebError::Secret { name, place: "address" });
        }
        if !gate.admits(at.host()) {
            return Err(WebError::Undeclared { host: at.host().to_string() });
        }
        let is_excepted = self.exceptions.has(at.host(), at.port());
        let proxy = self.proxies.of(at.url()).filter(|_| !is_excepted);
        let judged = self.judged(at, is_excepted, proxy.as_ref());
        let judged = tokio::time::timeout_at(late, judged).await;
        let judged = judged.map_err(|_| WebError::Late { time })??;
        let client = builder(connect).map_err(|error| WebError::setup(&error))?.no_proxy();
        let client = match (&proxy, &judged) {
            (Some(proxy), _) => client.proxy(proxy.made()?),
            (None, Some(judged)) => {
                client.dns_resolver(GuardedResolver(judged.addresses().to_vec()))
            }
            (None, None) => return Err(WebError::Undeclared { host: at.host().to_string() }),
        };
        let client = client.build().map_err(|error| WebError::Setup(error.to_string()))?;
        let headers: Vec<(&str, &str)> =
            request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let headers = header_map(&headers).map_err(|error| WebError::setup(&error))?;
        let asked = match request.method {
            WebMethod::Get => client.request(Method::GET, at.url().clone()),
            WebMethod::Post => {
                client.request(Method::POST, at.url().clone()).body(request.body.clone())
            }
        };
        let sent = tokio::time::timeout_at(late, asked.headers(headers).send()).await;
        let inner = match sent {
            Ok(Ok(inner)) => inner,
            Ok(Err(error)) => return Err(WebError::of(&error, at, proxy.as_ref())),
            Err(_) => return Err(WebError::Late { time }),
        };
        Ok(Hop { inner, proxy: proxy.map(|proxy| proxy.shown()), most: bytes })
    }

    /// The addresses that may be dialled; none where a proxy dials, once all is judged that is known
    /// here.
    async fn judged(
        &self,
        at: &WebUrl,
        is_excepted: bool,
        proxy: Option<&ProxyHop>,
    ) -> Result<Option<Checked>, WebError> {
        let (host, port) = (at.host(), at.port());
        if is_excepted {
            return self.excepted(host, port).await.map(Some);
        }
        let judged = check(&*self.resolver, host, port, &[]);
        let Some(proxy) = proxy else { return Ok(Some(judged.await.map_err(WebError::Address)?)) };
        // Which of its addresses the proxy dials cannot be chosen here: all of them must be public.
        match host {
            Host::Address(_) => judged.await.map(|_| None).map_err(WebError::Address),
            Host::Name(name) => match self.resolver.resolve(name).await {
                Ok(found) if !found.is_empty() => match of_machine(&found) {
                    Some((address, kind)) => {
                        let host = host.clone();
                        Err(WebError::Address(AddressError::Special { host, address, kind }))
                    }
                    None => Ok(None),
                },
                _ if url::is_inside(name) => {
                    Err(WebError::Inside { host: name.clone(), proxy: proxy.shown() })
                }
                _ => Ok(None),
            },
        }
    }

    /// The addresses of a host that a person excepted. A name never stands for the metadata of a
    /// cloud: who wants that names its address.
    async fn excepted(&self, host: &Host, port: u16) -> Result<Checked, WebError> {
        let name = match host {
            Host::Name(name) => name,
            Host::Address(address) => {
                let judged = check(&*self.resolver, host, port, &[*address]).await;
                return judged.map_err(WebError::Address);
            }
        };
        let found = self.resolver.resolve(name).await.map_err(|error| {
            let (host, reason) = (host.clone(), error.to_string());
            WebError::Address(AddressError::Unresolved { host, reason })
        })?;
        let listed: Vec<IpAddr> = found
            .iter()
            .map(IpAddr::to_canonical)
            .filter(|address| !url::is_metadata(*address))
            .collect();
        // The answer is taken as it is: nobody is asked a second time.
        let found = Answer(found);
        check(&found, host, port, &listed).await.map_err(WebError::Address)
    }
}

/// One of the addresses that is not public, and what it is.
fn of_machine(found: &[IpAddr]) -> Option<(IpAddr, &'static str)> {
    found.iter().find_map(|address| Some((address.to_canonical(), special(*address)?)))
}

/// What a resolver said.
struct Answer(Vec<IpAddr>);

impl Resolve for Answer {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

impl Web for Guard {
    fn send<'a>(
        &'a self,
        request: &'a WebRequest,
        gate: &'a dyn Gate,
    ) -> BoxFuture<'a, Result<WebResponse, WebError>> {
        Box::pin(self.sent(request, gate))
    }
}

/// The head of one answer.
struct Hop {
    inner: reqwest::Response,
    proxy: Option<String>,
    most: usize,
}

impl Hop {
    fn header(&self, name: &str) -> Option<String> {
        let value = self.inner.headers().get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
    }

    /// Where the answer sends its reader.
    fn location(&self) -> Option<String> {
        let moves = matches!(self.inner.status().as_u16(), 301 | 302 | 303 | 307 | 308);
        moves.then(|| self.header("location")).flatten()
    }

    /// The answer with its body; that of a redirect says nothing.
    async fn finished(
        self,
        at: &WebUrl,
        redirects: usize,
        elsewhere: Option<String>,
        late: Instant,
    ) -> Result<WebResponse, WebError> {
        let mut response = WebResponse {
            url: at.url().to_string(),
            status: self.inner.status().as_u16(),
            content_type: self.header("content-type"),
            packed: self.header("content-encoding").filter(|how| how != "identity"),
            retry_after: self.header("retry-after"),
            proxy: self.proxy.clone(),
            redirects,
            elsewhere,
            ..WebResponse::default()
        };
        if response.elsewhere.is_none() {
            (response.body, response.end) = body::read(self.inner, self.most, late).await;
        }
        Ok(response)
    }
}

/// A URL without user name, password, query and fragment, for messages about hostile ones.
fn bare(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

#[cfg(test)]
mod tests;
