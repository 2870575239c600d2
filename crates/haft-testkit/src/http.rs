//! A scripted HTTP/1.1 server on the loopback interface: it records what it was asked and answers
//! as it was told, also badly: in small packets, late, cut off, or never.
//!
//! **Invariant:** requests are answered in the order in which they arrive, one script each; a
//! request beyond the script gets status 500 and says so. Knows nothing of models.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

/// Bytes of a request that are read at most.
const MAX_REQUEST: usize = 256 << 20;

/// One thing that the server does while it sends a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends these bytes as one packet.
    Send(Bytes),
    /// Sends these bytes one by one, with a pause after each.
    Drip(Bytes, Duration),
    /// Sends nothing for a while.
    Wait(Duration),
    /// Closes the connection in the middle of the body.
    Cut,
    /// Sends nothing more and keeps the connection open until the client leaves.
    Stall,
}

/// An answer, as it is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status, 100 to 999.
    pub status: u16,
    /// Headers beside those of the transfer.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub steps: Vec<Step>,
}

impl HttpResponse {
    /// An answer with a body that is sent at once.
    pub fn new(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { status, headers, steps: vec![Step::Send(body.into())] }
    }

    /// A stream of server-sent events that is sent at once.
    pub fn events(body: impl Into<Bytes>) -> Self {
        Self::new(200, "text/event-stream", body)
    }
}

/// A request, as it arrived.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// `POST` and the like.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case, in the order in which they came.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Bytes,
    /// When its last byte was there.
    pub at: Instant,
}

impl HttpRequest {
    /// The first header of this name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Makes the answer to a request; the number counts requests from 0.
type Answerer = Box<dyn FnMut(usize, &HttpRequest) -> HttpResponse + Send>;

struct State {
    requests: Vec<HttpRequest>,
    answerer: Answerer,
}

type Shared = Arc<Mutex<State>>;

/// The server; it ends when it is dropped.
pub struct HttpServer {
    address: SocketAddr,
    state: Shared,
    task: JoinHandle<()>,
}

impl HttpServer {
    /// Starts a server that gives these answers, one for each request.
    ///
    /// # Errors
    /// Fails when no port can be opened.
    pub async fn start(responses: Vec<HttpResponse>) -> io::Result<Self> {
        let mut responses = VecDeque::from(responses);
        Self::start_with(move |number, _| {
            responses.pop_front().unwrap_or_else(|| {
                let text = format!("nothing is scripted for request {}", number + 1);
                HttpResponse::new(500, "text/plain", text)
            })
        })
        .await
    }

    /// Starts a server that asks `answerer` what to answer; requests count from 0.
    ///
    /// # Errors
    /// Fails when no port can be opened.
    pub async fn start_with(
        answerer: impl FnMut(usize, &HttpRequest) -> HttpResponse + Send + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let answerer = Box::new(answerer);
        let state = Arc::new(Mutex::new(State { requests: Vec::new(), answerer }));
        let task = tokio::spawn(accept(listener, state.clone()));
        Ok(Self { address, state, task })
    }

    /// The server's address, without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<HttpRequest> {
        lock(&self.state).requests.clone()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(state: &Shared) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, state: Shared) {
    // Aborting this task drops the set, and with it every connection.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let state = state.clone();
        connections.spawn(async move {
            // A client that leaves is no failure of the server.
            let _ = serve(stream, &state).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(mut stream: TcpStream, state: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some((request, is_old)) = read_request(&mut stream, &mut buffer).await? {
        let response = {
            let mut state = lock(state);
            let number = state.requests.len();
            let response = (state.answerer)(number, &request);
            state.requests.push(request);
            response
        };
        if !send(&mut stream, &response, is_old).await? {
            break;
        }
    }
    Ok(())
}

/// Reads a request; also whether it is of version 1.0, which knows no chunks.
async fn read_request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<(HttpRequest, bool)>> {
    let mut searched = 0;
    let head_end = loop {
        if let Some(at) = buffer[searched..].windows(4).position(|four| four == b"\r\n\r\n") {
            break searched + at + 4;
        }
        searched = buffer.len().saturating_sub(3);
        if buffer.len() > MAX_REQUEST || stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, target) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let is_old = first.next().is_some_and(|version| version == "HTTP/1.0");
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .and_then(|(_, value)| value.parse::<usize>().ok())
        .unwrap_or(0);
    if length > MAX_REQUEST {
        return Ok(None);
    }
    while buffer.len() < head_end + length {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let body = Bytes::copy_from_slice(&buffer[head_end..head_end + length]);
    buffer.drain(..head_end + length);
    Ok(Some((HttpRequest { method, target, headers, body, at: Instant::now() }, is_old)))
}

/// Sends an answer; false when the connection is over.
async fn send(stream: &mut TcpStream, response: &HttpResponse, is_old: bool) -> io::Result<bool> {
    let send_chunk = async |stream: &mut TcpStream, bytes: &[u8]| {
        if is_old { stream.write_all(bytes).await } else { send_chunk(stream, bytes).await }
    };
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", response.status);
    head.push_str(if is_old { "connection: close\r\n" } else { "transfer-encoding: chunked\r\n" });
    for (name, value) in &response.headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    for step in &response.steps {
        match step {
            Step::Send(bytes) => send_chunk(stream, bytes).await?,
            Step::Drip(bytes, pause) => {
                for byte in bytes {
                    send_chunk(stream, &[*byte]).await?;
                    tokio::time::sleep(*pause).await;
                }
            }
            Step::Wait(pause) => tokio::time::sleep(*pause).await,
            Step::Cut => return Ok(false),
            Step::Stall => {
                let mut rest = [0; 64];
                while stream.read(&mut rest).await? > 0 {}
                return Ok(false);
            }
        }
    }
    if is_old {
        return Ok(false);
    }
    stream.write_all(b"0\r\n\r\n").await?;
    Ok(true)
}

async fn send_chunk(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    stream.write_all(&chunk).await
}
