//! The one HTTP client: made at its first request, shared by everyone.
//!
//! **Invariant:** redirects are never followed (a key sent in a header would go along), loopback
//! addresses never go through a proxy, no error text holds a header, a query or a password of an
//! address. There is no timeout for a whole answer: a caller of a stream notices stalls itself.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};

use crate::tls;

/// How long a connection may take to stand where nobody says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const TCP_KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Why a request or its answer failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// The address or a header cannot be used; asking again is no use.
    #[error("{0}")]
    Invalid(String),
    /// No connection came about: name, address, port, proxy or certificate.
    #[error("cannot connect to {url}: {reason}")]
    Connect {
        /// The address, without password and query.
        url: String,
        /// What the system said.
        reason: String,
    },
    /// The connection broke before the answer was complete.
    #[error("the connection to {url} broke: {reason}")]
    Broken {
        /// The address, without password and query.
        url: String,
        /// What the system said.
        reason: String,
    },
    /// The client could not be set up at all.
    #[error("the HTTP client cannot be set up: {0}")]
    Setup(String),
}

/// A shared HTTP client; cheap to make and to clone.
#[derive(Clone, Debug)]
pub struct Client {
    cells: Arc<Cells>,
}

#[derive(Debug)]
struct Cells {
    connect: Duration,
    outside: OnceLock<Result<reqwest::Client, NetError>>,
    loopback: OnceLock<Result<reqwest::Client, NetError>>,
}

impl Default for Client {
    fn default() -> Self {
        Self::connecting_within(CONNECT_TIMEOUT)
    }
}

impl Client {
    /// Makes a client whose connections may take 30 s to stand; nothing is loaded or opened before
    /// its first request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a client that gives a connection up which does not stand within this time, from 1 ms.
    pub fn connecting_within(connect: Duration) -> Self {
        let (outside, loopback) = (OnceLock::new(), OnceLock::new());
        Self { cells: Arc::new(Cells { connect, outside, loopback }) }
    }

    /// Sends a POST request and waits for the head of the answer.
    ///
    /// # Errors
    /// Fails when the address or a header is invalid, and when no answer begins. A status of 400
    /// and more is an answer, not an error.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection; whether the server acted is not known then.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Response, NetError> {
        let address = parse(url)?;
        let request = self.inner(&address)?.post(address).headers(header_map(headers)?).body(body);
        sent(request, url).await
    }

    fn inner(&self, url: &Url) -> Result<&reqwest::Client, NetError> {
        let cell = if is_loopback(url) { &self.cells.loopback } else { &self.cells.outside };
        cell.get_or_init(|| build(is_loopback(url), self.cells.connect))
            .as_ref()
            .map_err(Clone::clone)
    }
}

/// Sends a request and waits for the head of its answer.
pub(crate) async fn sent(
    request: reqwest::RequestBuilder,
    url: &str,
) -> Result<Response, NetError> {
    let shown = shown_url(url);
    match request.send().await {
        Ok(inner) => Ok(Response { inner, url: shown }),
        Err(error) if error.is_connect() || error.is_timeout() => {
            Err(NetError::Connect { url: shown, reason: reason(&error) })
        }
        Err(error) if error.is_builder() => Err(NetError::Invalid(reason(&error))),
        Err(error) => Err(NetError::Broken { url: shown, reason: reason(&error) }),
    }
}

fn build(loopback: bool, connect: Duration) -> Result<reqwest::Client, NetError> {
    let builder = builder(connect)?;
    let builder = if loopback { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| NetError::Setup(reason(&error)))
}

/// What all clients have alike.
pub(crate) fn builder(connect: Duration) -> Result<reqwest::ClientBuilder, NetError> {
    install_crypto();
    let config = tls::client_config().map_err(|error| NetError::Setup(error.to_string()))?;
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(config)
        .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .connect_timeout(connect)
        .tcp_keepalive(TCP_KEEP_ALIVE))
}

/// Makes `ring` the process's cryptography where nobody chose one; calling it again is harmless.
///
/// For libraries that bring a client of their own; [`Client`] does not depend on it.
pub fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // The loser of a race finds the winner's provider, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// The head of an answer, and its body as it arrives.
#[derive(Debug)]
pub struct Response {
    inner: reqwest::Response,
    url: String,
}

impl Response {
    /// The HTTP status, 100 to 999.
    pub fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    /// A header's value; none where it is missing or not ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.headers().get(name)?.to_str().ok()
    }

    /// The next piece of the body; none at its end.
    ///
    /// # Errors
    /// Fails when the connection breaks before the end that the server announced.
    ///
    /// # Cancel safety
    /// A piece is either given or still to come.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, NetError> {
        self.inner
            .chunk()
            .await
            .map_err(|error| NetError::Broken { url: self.url.clone(), reason: reason(&error) })
    }

    /// Reads the body as text up to `max` bytes; what comes after, or is lost, is left out.
    pub async fn text(&mut self, max: usize) -> String {
        let mut body = Vec::new();
        while body.len() < max
            && let Ok(Some(chunk)) = self.chunk().await
        {
            let room = max - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        }
        String::from_utf8_lossy(&body).into_owned()
    }
}

pub(crate) fn parse(url: &str) -> Result<Url, NetError> {
    let invalid = |why: String| {
        let shown = shown_url(url);
        NetError::Invalid(format!("{shown:?} is not an address that can be asked: {why}"))
    };
    let parsed = Url::parse(url).map_err(|error| invalid(error.to_string()))?;
    match parsed.scheme() {
        "http" | "https" if parsed.has_host() => Ok(parsed),
        other => Err(invalid(format!("it begins with {other}:, not with http:// or https://"))),
    }
}

/// The host and port that an address names, by the same reading as a request to it.
///
/// # Errors
/// Fails as a request to it would, when it is no address of `http` or `https`.
pub fn host_and_port(url: &str) -> Result<(String, u16), NetError> {
    let parsed = parse(url)?;
    let host = parsed.host_str().unwrap_or_default();
    // Of an address of IPv6 the brackets belong to the URL, not to the address.
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok((host, parsed.port_or_known_default().unwrap_or(80)))
}

/// The address without user name, password, query and fragment, for messages.
pub fn shown_url(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let url = &url[..end];
    let Some(start) = url.find("://").map(|at| at + 3) else { return url.to_owned() };
    let authority_end = url[start..].find('/').map_or(url.len(), |at| start + at);
    match url[start..authority_end].rfind('@') {
        Some(at) => format!("{}{}", &url[..start], &url[start + at + 1..]),
        None => url.to_owned(),
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

pub(crate) fn header_map(headers: &[(&str, &str)]) -> Result<HeaderMap, NetError> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| NetError::Invalid(format!("{name:?} is not a header's name")))?;
        // The value may be a key: it is never repeated.
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            NetError::Invalid(format!(
                "the value of the header {name} holds a character that headers cannot carry \
                 (a line break or one beyond ASCII?)"
            ))
        })?;
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}

/// The innermost causes, without the address that reqwest puts in.
pub(crate) fn reason(error: &reqwest::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let text = cause.to_string();
        if !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
        source = cause.source();
    }
    if parts.is_empty() {
        return if error.is_timeout() { "timed out".into() } else { "no reason was given".into() };
    }
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_secrets() {
        let cases = [
            ("https://u:p@h.example/v1?key=s#f", "https://h.example/v1"),
            ("https://h.example/a@b", "https://h.example/a@b"),
            ("not an address?x", "not an address"),
        ];
        for (url, shown) in cases {
            assert_eq!(shown_url(url), shown);
        }
    }

    #[test]
    fn unusable_addresses_and_headers_are_named_without_the_value() {
        let error = parse("ftp://u:secret@h/").unwrap_err().to_string();
        assert!(error.contains("ftp://h/") && !error.contains("secret"), "{error}");
        assert!(parse("api.example.org").is_err());
        let error = header_map(&[("x-api-key", "sec\nret")]).unwrap_err().to_string();
        assert!(error.contains("x-api-key") && !error.contains("sec"), "{error}");
    }

    #[test]
    fn hosts_and_ports_are_read_as_a_request_reads_them() {
        for (url, host, port) in [
            ("http://[::1]", "::1", 80),
            ("HTTPS://u:p@H.example/v1?x#y", "h.example", 443),
            ("http://[fe80::1]:8080/v1", "fe80::1", 8080),
            ("http://127.0.0.1:1", "127.0.0.1", 1),
        ] {
            assert_eq!(host_and_port(url).unwrap(), (host.to_owned(), port), "{url}");
        }
        assert!(host_and_port("http://h:x").is_err() && host_and_port("ftp://h").is_err());
    }

    #[tokio::test]
    async fn a_connection_that_does_not_stand_in_time_is_given_up() {
        // A queue of connections that is full: the next one is neither taken nor refused.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        for _ in 0..8 {
            let connect = tokio::net::TcpStream::connect(address);
            match tokio::time::timeout(Duration::from_millis(200), connect).await {
                Ok(stream) => waiting.push(stream.unwrap()),
                Err(_) => break,
            }
        }
        let client = Client::connecting_within(Duration::from_millis(50));
        let url = format!("http://{address}/");
        let error = client.post(&url, &[], Bytes::new()).await.unwrap_err();
        assert!(matches!(&error, NetError::Connect { .. }), "{error}");
    }

    #[test]
    fn loopback_is_recognised() {
        let is = |url: &str| is_loopback(&Url::parse(url).unwrap());
        assert!(is("http://127.0.0.1:1/") && is("http://[::1]/") && is("http://localhost:8/x"));
        assert!(!is("http://example.org/") && !is("http://localhost.example.org/"));
    }

    #[tokio::test]
    async fn a_closed_port_is_a_connect_error_with_the_address() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        drop(listener);
        let client = Client::new();
        assert!(client.cells.loopback.get().is_none());
        let error = client.post(&url, &[], Bytes::new()).await.unwrap_err();
        assert!(matches!(&error, NetError::Connect { url: shown, .. } if *shown == url), "{error}");
    }
}
