//! What waits to be read by the client.
//!
//! **Invariant:** lines go out whole and in order. Nobody waits for a client that does not read:
//! work is held back while much waits, and the connection ends before memory does.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{Notify, mpsc},
};
use tokio_util::sync::CancellationToken;

/// Bytes that wait from which on no further call starts, and progress is left out.
const MUCH: usize = 8 << 20;
/// Bytes that wait which end the connection.
const TOO_MUCH: usize = 64 << 20;

/// How much waits; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    bytes: AtomicUsize,
    less: Notify,
    overrun: AtomicBool,
    closed: CancellationToken,
}

impl Level {
    /// Returns when there is room for more answers.
    pub async fn room(&self) {
        loop {
            let less = self.0.less.notified();
            if self.is_low() {
                return;
            }
            less.await;
        }
    }

    /// Reports whether there is room for more.
    pub fn is_low(&self) -> bool {
        self.0.bytes.load(Ordering::Acquire) < MUCH || self.0.closed.is_cancelled()
    }

    /// Bytes that are not written yet.
    pub fn waiting(&self) -> usize {
        self.0.bytes.load(Ordering::Acquire)
    }

    /// Returns once nothing can be written any more.
    pub async fn closed(&self) {
        self.0.closed.cancelled().await;
    }

    /// Reports whether the client left so much unread that the connection ended.
    pub fn is_overrun(&self) -> bool {
        self.0.overrun.load(Ordering::Acquire)
    }
}

/// Takes lines for a client; a task of its own writes them.
pub(crate) struct Outbox {
    level: Level,
    lines: mpsc::UnboundedSender<Vec<u8>>,
    writing: tokio::task::JoinHandle<()>,
}

impl Outbox {
    /// An outbox that writes to `output`.
    pub fn new(output: impl AsyncWrite + Unpin + Send + 'static, level: Level) -> Self {
        let (lines, queue) = mpsc::unbounded_channel();
        let writing = tokio::spawn(write(output, queue, level.clone()));
        Self { level, lines, writing }
    }

    /// Queues a line, which brings no line end.
    pub fn push(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        let shared = &self.level.0;
        if shared.bytes.fetch_add(line.len(), Ordering::AcqRel) > TOO_MUCH {
            shared.overrun.store(true, Ordering::Release);
            shared.closed.cancel();
        }
        // After the end nothing is written, and nothing is kept.
        if !shared.closed.is_cancelled() {
            drop(self.lines.send(line));
        }
    }

    /// Writes what waits; returns when it is written or cannot be.
    pub async fn finish(&mut self) {
        let (nowhere, _) = mpsc::unbounded_channel();
        self.lines = nowhere;
        drop((&mut self.writing).await);
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.writing.abort();
    }
}

async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut lines: mpsc::UnboundedReceiver<Vec<u8>>,
    level: Level,
) {
    while let Some(line) = lines.recv().await {
        let written = async {
            output.write_all(&line).await?;
            if lines.is_empty() { output.flush().await } else { Ok(()) }
        };
        let written = written.await;
        level.0.bytes.fetch_sub(line.len(), Ordering::AcqRel);
        level.0.less.notify_waiters();
        if written.is_err() {
            break;
        }
    }
    level.0.closed.cancel();
    level.0.less.notify_waiters();
}
