//! Pre-images: the content of files before they were changed, stored so that a change can be
//! undone.
//!
//! **Invariant:** content is named by its hash, and the content that is returned has that hash. The
//! store has a maximum size: what does not fit is refused, never stored in part. Nothing here knows
//! a session or a disk.

use std::{
    any::Any,
    collections::{HashMap, VecDeque},
    io::{self, Read as _},
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use haft_host::{Copies, Source};
use haft_types::{Blob, Hash};

/// What the content of any file is called.
const MIME: &str = "application/octet-stream";
/// Most bytes that a session keeps in memory that has no better place.
const MEMORY_MAX: u64 = 64 << 20;

/// A guard that keeps stored content from being evicted for other content.
pub type PinGuard = Box<dyn Any + Send + Sync>;

/// Stores pre-images for undo.
pub trait PreImages: Send + Sync {
    /// Begins to store content of about `expected` bytes, which comes piece by piece.
    ///
    /// # Errors
    /// [`io::ErrorKind::QuotaExceeded`] when there is no room for it; otherwise the cause.
    fn begin(&self, expected: u64) -> io::Result<Box<dyn PendingPreImage>>;

    /// Stores content that is there as a whole and has this hash.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    fn put(&self, whole: &Bytes, hash: Hash) -> io::Result<Blob>;

    /// Opens stored content for reading piece by piece.
    ///
    /// # Errors
    /// When it is not there any more. Where it does not match its hash, reading it fails, at its
    /// end at the latest.
    fn open(&self, blob: &Blob) -> io::Result<Source>;

    /// Returns stored content in one piece.
    ///
    /// # Errors
    /// When it is not there any more, or does not match its hash.
    fn get(&self, blob: &Blob) -> io::Result<Bytes> {
        let mut whole = Vec::new();
        self.open(blob)?.read_to_end(&mut whole)?;
        Ok(whole.into())
    }

    /// Keeps the content with this hash from being evicted for other content while the returned
    /// guard lives. The content need not be stored yet.
    fn hold(&self, hash: Hash) -> PinGuard;

    /// Finds the content that is stored under this hash; none where there is none.
    fn find(&self, hash: &Hash) -> Option<Blob>;

    /// The number of contents that were evicted for others since the last call.
    fn let_go(&self) -> u64 {
        0
    }

    /// A store for copies of files before a command that may change them. The copies are removed
    /// when the last holder drops it.
    ///
    /// # Errors
    /// When none can be made.
    fn copies(&self) -> io::Result<Arc<dyn Copies>> {
        Ok(Arc::new(MemoryCopies::default()))
    }

    /// The copies that killed processes of this session left behind.
    ///
    /// # Errors
    /// When they cannot be read.
    fn left(&self) -> io::Result<Vec<CrashLeftovers>> {
        Ok(Vec::new())
    }

    /// Returns once everything that was stored would survive a power cut. It waits for the disk.
    ///
    /// # Errors
    /// When the system cannot promise that.
    fn sync(&self) -> io::Result<()>;
}

/// The copies that a killed process left behind; dropping this removes them.
pub struct CrashLeftovers {
    /// The copies.
    pub copies: Arc<dyn Copies>,
    /// The checkpoint text that was recorded beside them.
    pub text: Vec<u8>,
    /// The last time at which the process certainly lived, in nanoseconds since the Unix epoch.
    pub lived: i128,
}

/// Content that is being stored; dropped before its end, it is discarded.
pub trait PendingPreImage: Send {
    /// Appends the next piece.
    ///
    /// # Errors
    /// As [`PreImages::begin`].
    fn push(&mut self, piece: &[u8]) -> io::Result<()>;

    /// A file of this machine that takes the content, for a caller that can fill it in one step.
    /// None where the content goes elsewhere.
    fn file(&self) -> Option<OwnedFd> {
        None
    }

    /// Takes the content of the filled [`file`](Self::file). It waits for the disk.
    ///
    /// # Errors
    /// As [`PreImages::begin`].
    fn filled(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Finishes the content and returns its name.
    ///
    /// # Errors
    /// When it cannot be written.
    fn finish(self: Box<Self>) -> io::Result<Blob>;
}

/// Copies in memory.
#[derive(Debug, Default)]
struct MemoryCopies(Mutex<Vec<u8>>);

impl MemoryCopies {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Copies for MemoryCopies {
    fn add(&self, content: &[u8]) -> Option<u64> {
        let mut bytes = self.bytes();
        let at = bytes.len() as u64;
        (at + content.len() as u64 <= MEMORY_MAX).then(|| {
            bytes.extend_from_slice(content);
            at
        })
    }

    fn get(&self, at: u64, len: u64) -> io::Result<Bytes> {
        let range = usize::try_from(at).ok().zip(usize::try_from(at + len).ok());
        let bytes = self.bytes();
        let found = range.and_then(|(from, to)| bytes.get(from..to));
        Ok(Bytes::copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?))
    }

    fn used(&self) -> u64 {
        self.bytes().len() as u64
    }
}

fn blob_of(hash: Hash, len: u64) -> Blob {
    Blob { hash, len, mime: MIME.to_owned() }
}

/// Stores pre-images in memory. Where there is no room for all, the newest are retained.
#[derive(Clone, Debug)]
pub struct MemoryPreImages {
    quota: u64,
    kept: Arc<Mutex<StoredImage>>,
}

#[derive(Debug, Default)]
struct StoredImage {
    /// The oldest first.
    contents: VecDeque<(Hash, Bytes)>,
    bytes: u64,
    /// What never makes room, and how many want that.
    held: HashMap<Hash, usize>,
    /// How many contents made room since that was asked.
    let_go: u64,
}

impl StoredImage {
    /// Lets the oldest go that nobody holds until `most` bytes are left; false where too many are
    /// held.
    fn shrink(&mut self, most: u64) -> bool {
        let held = |hash: &Hash| self.held.contains_key(hash);
        let stay = self.contents.iter().filter(|(hash, _)| held(hash));
        if stay.map(|(_, whole)| whole.len() as u64).sum::<u64>() > most {
            return false;
        }
        while self.bytes > most
            && let Some(oldest) = self.contents.iter().position(|(hash, _)| !held(hash))
            && let Some((_, whole)) = self.contents.remove(oldest)
        {
            self.bytes -= whole.len() as u64;
            self.let_go += 1;
        }
        true
    }
}

/// One who holds content in memory.
struct HeldInMemory {
    of: MemoryPreImages,
    hash: Hash,
}

impl Drop for HeldInMemory {
    fn drop(&mut self) {
        let held = &mut self.of.kept().held;
        if let Some(count) = held.get_mut(&self.hash) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.hash);
            }
        }
    }
}

impl Default for MemoryPreImages {
    fn default() -> Self {
        Self::with_quota(MEMORY_MAX)
    }
}

impl MemoryPreImages {
    /// Creates a store of at most `quota` bytes.
    pub fn with_quota(quota: u64) -> Self {
        Self { quota, kept: Arc::default() }
    }

    fn kept(&self) -> MutexGuard<'_, StoredImage> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn room(&self, len: u64) -> io::Result<()> {
        if len <= self.quota {
            return Ok(());
        }
        let text = format!("{len} bytes are more than the {} that are kept for undo", self.quota);
        Err(io::Error::new(io::ErrorKind::QuotaExceeded, text))
    }

    fn add(&self, hash: Hash, whole: Bytes) -> io::Result<Blob> {
        let len = whole.len() as u64;
        self.room(len)?;
        let mut kept = self.kept();
        if !kept.contents.iter().any(|(other, _)| *other == hash) {
            if !kept.shrink(self.quota - len) {
                let text = format!("there is no room for {len} bytes beside what is needed");
                return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
            }
            kept.bytes += len;
            kept.contents.push_back((hash, whole));
        }
        Ok(blob_of(hash, len))
    }
}

impl PreImages for MemoryPreImages {
    fn begin(&self, expected: u64) -> io::Result<Box<dyn PendingPreImage>> {
        self.room(expected)?;
        Ok(Box::new(InMemory { into: self.clone(), bytes: Vec::new() }))
    }

    fn put(&self, whole: &Bytes, hash: Hash) -> io::Result<Blob> {
        self.add(hash, whole.clone())
    }

    fn open(&self, blob: &Blob) -> io::Result<Source> {
        let kept = self.kept();
        let found = kept.contents.iter().find(|(hash, _)| *hash == blob.hash);
        let (_, whole) = found.ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(io::Cursor::new(whole.clone())))
    }

    fn hold(&self, hash: Hash) -> PinGuard {
        *self.kept().held.entry(hash).or_default() += 1;
        Box::new(HeldInMemory { of: self.clone(), hash })
    }

    fn find(&self, hash: &Hash) -> Option<Blob> {
        let kept = self.kept();
        let found = kept.contents.iter().find(|(other, _)| other == hash)?;
        Some(blob_of(*hash, found.1.len() as u64))
    }

    fn let_go(&self) -> u64 {
        std::mem::take(&mut self.kept().let_go)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

struct InMemory {
    into: MemoryPreImages,
    bytes: Vec<u8>,
}

impl PendingPreImage for InMemory {
    fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        self.into.room((self.bytes.len() + piece.len()) as u64)?;
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<Blob> {
        let hash = Hash::of(&self.bytes);
        self.into.add(hash, self.bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_where_there_is_no_room() {
        let images = MemoryPreImages::with_quota(10);
        let put = |text: &'static [u8]| images.put(&Bytes::from_static(text), Hash::of(text));
        let first = put(b"12345").unwrap();
        let second = put(b"67890").unwrap();
        assert_eq!(put(b"12345").unwrap(), first, "kept once");
        assert_eq!(images.get(&first).unwrap(), "12345");
        assert_eq!(images.let_go(), 0);
        put(b"abc").unwrap();
        assert_eq!((images.let_go(), images.let_go()), (1, 0));
        assert!(images.get(&first).is_err() && images.find(&second.hash).is_some());
        let error = put(b"12345678901").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
        let mut pieces = images.begin(4).unwrap();
        pieces.push(b"67").unwrap();
        pieces.push(b"890").unwrap();
        assert_eq!(pieces.finish().unwrap(), second);
        assert!(images.begin(11).is_err());
    }

    #[test]
    fn what_is_held_makes_no_room() {
        let images = MemoryPreImages::with_quota(10);
        let put = |text: &'static [u8]| images.put(&Bytes::from_static(text), Hash::of(text));
        let held = images.hold(Hash::of(b"12345"));
        let first = put(b"12345").unwrap();
        let second = put(b"67890").unwrap();
        put(b"abc").unwrap();
        assert!(images.get(&first).is_ok() && images.find(&second.hash).is_none());
        assert_eq!(put(b"123456").unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
        drop(held);
        put(b"123456").unwrap();
        assert!(images.get(&first).is_err());
    }
}
