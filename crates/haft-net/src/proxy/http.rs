//! The proxy as HTTP sees it (RFC 9110, sections 7.6 and 9.3.6): tunnels by CONNECT, and requests
//! with absolute addresses of `http:`.
//!
//! **Invariant:** hyper reads and writes every message, so what goes on to a server is framed anew
//! and said once: no two readings of one request. Each request is judged by itself, and by its
//! address alone: a `Host` header that differs is replaced.

use std::{
    convert::Infallible,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http_body_util::{Either, Full};
use hyper::{
    Method, Request, Response, StatusCode, Uri, Version,
    body::{Bytes, Incoming},
    client, header,
    header::{HeaderMap, HeaderName, HeaderValue},
    http::uri::{Authority, PathAndQuery, Scheme},
    server,
    service::service_fn,
    upgrade::{self, OnUpgrade},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Why,
    connection::{Failure, Guest, Watched, tunnel},
    credential::Command,
};

/// The longest head of a message, and what is held of its body at once, in bytes.
const BUFFER: usize = 64 * 1024;

type Answer = Response<Either<Full<Bytes>, Incoming>>;

/// What a request leaves behind for its connection.
#[derive(Default)]
struct Leftover {
    /// A tunnel, from when it was promised.
    tunnel: Option<(OnUpgrade, TcpStream)>,
    /// What drives the connection to the server of the last request.
    server: Option<AbortOnDropHandle<()>>,
}

/// Serves a connection that does not begin with the version of SOCKS5.
pub(super) async fn serve_http(client: Watched, guest: Arc<Guest>) {
    let left = Arc::new(Mutex::new(Leftover::default()));
    let service = service_fn(|request| {
        let (guest, left) = (guest.clone(), left.clone());
        async move { Ok::<_, Infallible>(serve_request(request, &guest, &left).await) }
    });
    let connection = server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(guest.shared.bounds.head)
        .max_header_size(BUFFER)
        .max_buf_size(BUFFER)
        // A client may say with the end of its bytes that it asks no more.
        .half_close(true)
        .serve_connection(TokioIo::new(client), service)
        .with_upgrades();
    if connection.await.is_err() {
        return;
    }
    let promised = locked(&left).tunnel.take();
    let Some((promise, mut server)) = promised else { return };
    let Ok(upgraded) = promise.await else { return };
    let Ok(parts) = upgraded.downcast::<TokioIo<Watched>>() else { return };
    // What the client sent right behind its request.
    if server.write_all(&parts.read_buf).await.is_ok() {
        tunnel(parts.io.into_inner(), server).await;
    }
}

fn locked(left: &Mutex<Leftover>) -> MutexGuard<'_, Leftover> {
    left.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve_request(
    request: Request<Incoming>,
    guest: &Guest,
    left: &Mutex<Leftover>,
) -> Answer {
    let Some(command) = identify(request.headers(), guest) else {
        let text = "this proxy is for commands that were given a password, while they run";
        let mut answer = say(StatusCode::PROXY_AUTHENTICATION_REQUIRED, text);
        let basic = HeaderValue::from_static("Basic realm=\"haft\"");
        answer.headers_mut().insert(header::PROXY_AUTHENTICATE, basic);
        return answer;
    };
    let served = match *request.method() {
        Method::CONNECT => connect(request, guest, &command, left).await,
        _ => forward(request, guest, &command, left).await,
    };
    served.unwrap_or_else(|answer| *answer)
}

/// The command whose password a request shows.
fn identify(headers: &HeaderMap, guest: &Guest) -> Option<Arc<Command>> {
    let mut all = headers.get_all(header::PROXY_AUTHORIZATION).iter();
    let (Some(value), None) = (all.next(), all.next()) else { return None };
    let (scheme, encoded) = value.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = STANDARD.decode(encoded.trim()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    guest.identify(&decoded[..colon], &decoded[colon + 1..])
}

async fn connect(
    request: Request<Incoming>,
    guest: &Guest,
    command: &Arc<Command>,
    left: &Mutex<Leftover>,
) -> Result<Answer, Box<Answer>> {
    let named = request.uri().authority().and_then(|all| Some((all, all.port_u16()?)));
    let Some((authority, port)) = named else {
        return Err(bad("CONNECT needs host:port"));
    };
    let (_, server) = open(guest, command, authority, port).await?;
    locked(left).tunnel = Some((upgrade::on(request), server));
    Ok(Response::new(Either::Left(Full::default())))
}

async fn open(
    guest: &Guest,
    command: &Arc<Command>,
    authority: &Authority,
    port: u16,
) -> Result<(String, TcpStream), Box<Answer>> {
    let opened = if authority.as_str().contains('@') {
        // Where such a name ends is read differently by different programs.
        let why = Why::Unreadable("a user name stands before it");
        Err(Failure::Refused(command.refuse(authority.host(), port, why)))
    } else {
        guest.open(command, authority.host(), port).await
    };
    match opened {
        Ok((host, server)) if port == 80 => Ok((host.to_string(), server)),
        Ok((host, server)) => Ok((format!("{host}:{port}"), server)),
        Err(Failure::Refused(refused)) => {
            Err(Box::new(say(StatusCode::FORBIDDEN, &format!("refused by haft: {refused}"))))
        }
        Err(Failure::Unresolved(reason)) => Err(Box::new(say(StatusCode::BAD_GATEWAY, &reason))),
        Err(Failure::Unreachable(error)) => {
            let status = match error.kind() {
                io::ErrorKind::TimedOut => StatusCode::GATEWAY_TIMEOUT,
                _ => StatusCode::BAD_GATEWAY,
            };
            Err(Box::new(say(status, &format!("cannot connect to {authority}: {error}"))))
        }
    }
}

/// Sends a request on over a connection of its own, and gives the answer as it comes.
async fn forward(
    request: Request<Incoming>,
    guest: &Guest,
    command: &Arc<Command>,
    left: &Mutex<Leftover>,
) -> Result<Answer, Box<Answer>> {
    let uri = request.uri().clone();
    let Some(authority) = uri.authority() else {
        return Err(bad("this is a proxy: it takes absolute addresses and CONNECT"));
    };
    if uri.scheme() != Some(&Scheme::HTTP) {
        return Err(bad("only addresses of http: are taken; what is encrypted needs CONNECT"));
    }
    let other = |value: &HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"chunked");
    if request.headers().get_all(header::TRANSFER_ENCODING).iter().any(other) {
        return Err(Box::new(say(StatusCode::NOT_IMPLEMENTED, "no coding but chunked is known")));
    }
    let port = match authority.port_u16() {
        Some(port) => port,
        None if authority.as_str().ends_with(authority.host()) => 80,
        None => return Err(bad("the port is no number from 1 to 65535")),
    };
    let (host, server) = open(guest, command, authority, port).await?;
    let broken = |error: hyper::Error| {
        let text = format!("the connection to {host} broke: {error}");
        Box::new(say(StatusCode::BAD_GATEWAY, &text))
    };
    let mut builder = client::conn::http1::Builder::new();
    builder.max_header_size(BUFFER).max_buf_size(BUFFER);
    let (mut sender, connection) = builder.handshake(TokioIo::new(server)).await.map_err(broken)?;
    let driven = tokio::spawn(async move {
        // Whoever waits for the answer is told what went wrong.
        let _ = connection.await;
    });
    locked(left).server = Some(AbortOnDropHandle::new(driven));
    let request = onward(request, &uri, &host).ok_or_else(|| bad("the address cannot be used"))?;
    let mut answer = sender.send_request(request).await.map_err(broken)?;
    if answer.status().is_informational() {
        let text = format!("{host} answered with something that was not asked for");
        return Err(Box::new(say(StatusCode::BAD_GATEWAY, &text)));
    }
    strip(answer.headers_mut());
    *answer.version_mut() = Version::HTTP_11;
    Ok(answer.map(Either::Right))
}

/// The request as a server wants it: with a path, one `Host`, and nothing that was for the proxy.
fn onward(mut request: Request<Incoming>, uri: &Uri, host: &str) -> Option<Request<Incoming>> {
    let path = match uri.path_and_query().map_or("/", PathAndQuery::as_str) {
        query if query.starts_with('?') => format!("/{query}"),
        path => path.to_owned(),
    };
    *request.uri_mut() = path.parse().ok()?;
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    strip(headers);
    // It was met when the body was asked for.
    headers.remove(header::EXPECT);
    headers.insert(header::HOST, host.parse().ok()?);
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Some(request)
}

/// Removes what is meant for one connection alone (RFC 9110, section 7.6.1).
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    if headers.contains_key(header::TRANSFER_ENCODING) {
        headers.remove(header::CONTENT_LENGTH);
    }
    let always = [
        header::CONNECTION,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("proxy-connection"),
    ];
    for name in always.into_iter().chain(named) {
        headers.remove(name);
    }
}

fn bad(text: &str) -> Box<Answer> {
    Box::new(say(StatusCode::BAD_REQUEST, text))
}

fn say(status: StatusCode, text: &str) -> Answer {
    let mut answer = Response::new(Either::Left(Full::from(format!("{text}\n"))));
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, plain);
    answer
}
