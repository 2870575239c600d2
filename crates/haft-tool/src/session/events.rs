//! The interfaces to the session's log: where events and large values go, without knowing the
//! session.

use std::{
    collections::HashMap,
    io,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{AgentPath, Blob, Body, Hash, TurnId};

/// An event that could not be recorded: disk full, folder gone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session's log cannot be written: {0}")]
pub struct RecordError(pub String);

/// A sink for all events: records durable ones, shows all of them.
pub trait Events: Send + Sync {
    /// Appends a durable body to the log, then shows it; a passing one is only shown.
    ///
    /// # Errors
    /// When a durable body could not be appended; it is not shown then.
    fn emit(&self, agent: &AgentPath, turn: TurnId, body: Body) -> Result<(), RecordError>;

    /// Returns once everything appended so far would survive a power cut.
    fn sync(&self) -> BoxFuture<'_, Result<(), RecordError>>;

    /// Begins to sync what was appended so far, for a [`sync`](Self::sync) that will follow.
    fn sync_ahead(&self) {}
}

/// Records nothing and shows nothing, for calls outside any session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Events for Discard {
    fn emit(&self, _agent: &AgentPath, _turn: TurnId, _body: Body) -> Result<(), RecordError> {
        Ok(())
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), RecordError>> {
        std::future::ready(Ok(())).boxed()
    }
}

/// Stores large values by the hash of their content.
pub trait Blobs: Send + Sync {
    /// Stores `bytes` and returns their name.
    ///
    /// # Errors
    /// When they cannot be written.
    fn put(&self, bytes: Bytes, mime: &str) -> io::Result<Blob>;

    /// Returns a stored value.
    ///
    /// # Errors
    /// When it is not there, or does not match its hash.
    fn get(&self, blob: &Blob) -> io::Result<Bytes>;
}

/// Stores large values in memory.
#[derive(Debug, Default)]
pub struct MemoryBlobs(Mutex<HashMap<Hash, Bytes>>);

impl Blobs for MemoryBlobs {
    fn put(&self, bytes: Bytes, mime: &str) -> io::Result<Blob> {
        let blob = Blob { hash: Hash::of(&bytes), len: bytes.len() as u64, mime: mime.to_owned() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(blob.hash, bytes);
        Ok(blob)
    }

    fn get(&self, blob: &Blob) -> io::Result<Bytes> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&blob.hash).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
