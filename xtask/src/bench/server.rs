//! A model's server on the loopback interface that notes when answers leave and requests arrive.
//!
//! One thread a connection and plain blocking sockets: a runtime would measure itself too. It is
//! written here and not taken from haft-testkit, so that the chores build when a crate does not.
//!
//! **Invariant:** an answer leaves in one write, noted before it, and a request is noted when its
//! last byte is there; so what is between the two is never shown too short. It does not know what
//! the bytes mean.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use anyhow::{Context as _, Result};

/// What happened around one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    /// When the last byte of the request was there.
    pub(super) arrived: Instant,
    /// Right before the answer was written.
    pub(super) answered: Instant,
    /// Bytes of the request's body.
    pub(super) size: usize,
}

struct State {
    /// The bodies of the answers to come, the next one last.
    answers: Vec<String>,
    /// Whether requests are only noted.
    is_silent: bool,
    exchanges: Vec<Exchange>,
}

/// The server; it ends when it is dropped.
pub(super) struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server that gives these streams of events, one for each request.
    ///
    /// # Errors
    ///
    /// When no port can be opened.
    pub(super) fn start(answers: Vec<String>) -> Result<Self> {
        Self::begin(answers, false)
    }

    /// Starts a server that answers nothing: who asks it waits until it is stopped.
    ///
    /// # Errors
    ///
    /// When no port can be opened.
    pub(super) fn silent() -> Result<Self> {
        Self::begin(Vec::new(), true)
    }

    fn begin(mut answers: Vec<String>, is_silent: bool) -> Result<Self> {
        answers.reverse();
        let listener = TcpListener::bind("127.0.0.1:0").context("no port can be opened")?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State { answers, is_silent, exchanges: Vec::new() }));
        let stopped = Arc::new(AtomicBool::new(false));
        let (theirs, ends) = (state.clone(), stopped.clone());
        let thread = thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if ends.load(Ordering::Acquire) {
                    break;
                }
                let state = theirs.clone();
                // It ends with its client, which has ended before the figure does.
                thread::spawn(move || serve(stream, &state));
            }
        });
        Ok(Self { address, state, stopped, thread: Some(thread) })
    }

    /// The address, without a slash at its end.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What happened so far, in order.
    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        lock(&self.state).exchanges.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // Wakes the thread that accepts; without this it would wait for ever.
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    // A client that leaves is no failure of the server.
    let _ = stream.set_nodelay(true);
    while let Some(size) = request(&mut stream) {
        let arrived = Instant::now();
        if lock(state).is_silent {
            lock(state).exchanges.push(Exchange { arrived, answered: arrived, size });
            continue;
        }
        let answer = lock(state).answers.pop();
        let bytes = response(answer.as_deref());
        let answered = Instant::now();
        lock(state).exchanges.push(Exchange { arrived, answered, size });
        if stream.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// Reads a request whole and returns the size of its body.
fn request(stream: &mut TcpStream) -> Option<usize> {
    let mut bytes = Vec::new();
    let mut block = vec![0; 1 << 18];
    loop {
        let count = stream.read(&mut block).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&block[..count]);
        let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let size = content_length(&bytes[..head]);
        let mut rest = (head + 4 + size).saturating_sub(bytes.len());
        while rest > 0 {
            let count = stream.read(&mut block).ok().filter(|count| *count > 0)?;
            rest = rest.saturating_sub(count);
        }
        return Some(size);
    }
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or_default()
}

fn response(answer: Option<&str>) -> Vec<u8> {
    match answer {
        Some(events) => format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\
             \r\n{:x}\r\n{events}\r\n0\r\n\r\n",
            events.len()
        ),
        None => "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 26\r\n\
                 \r\nno answer is left to give\n"
            .to_owned(),
    }
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_given_in_order_and_exchanges_are_noted() {
        let server = Server::start(vec!["one".to_owned(), "two".to_owned()]).unwrap();
        let mut stream = TcpStream::connect(server.address).unwrap();
        let mut seen = Vec::new();
        for wanted in ["3\r\none\r\n0", "3\r\ntwo\r\n0", "400 Bad"] {
            stream.write_all(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello").unwrap();
            let mut block = [0; 1024];
            let count = stream.read(&mut block).unwrap();
            seen.push(String::from_utf8_lossy(&block[..count]).contains(wanted));
        }
        assert_eq!(seen, [true; 3]);
        let exchanges = server.exchanges();
        assert_eq!(exchanges.iter().map(|one| one.size).collect::<Vec<_>>(), [5; 3]);
        assert!(exchanges.windows(2).all(|two| two[0].answered <= two[1].arrived));
    }

    #[test]
    fn a_silent_one_notes_a_request_and_does_not_answer() {
        let server = Server::silent().unwrap();
        let mut stream = TcpStream::connect(server.address).unwrap();
        for count in 1..=2 {
            stream.write_all(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello").unwrap();
            while server.exchanges().len() < count {
                thread::yield_now();
            }
        }
        stream.set_nonblocking(true).unwrap();
        assert!(stream.read(&mut [0; 8]).is_err());
    }
}
