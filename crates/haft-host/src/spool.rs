//! Stores output of unlimited length in bounded memory.
//!
//! **Invariant:** head, tail, counts and file do not depend on how the bytes are split into pieces.
//! Memory holds at most the head, the tail and two chunks of one MiB, plus the rest of the buffers
//! that these are slices of. The file never holds more than its cap and one line. A full disk ends
//! the file, never the output. The file then frees space on the disk for the log at once. Large
//! pieces reach the file without being copied.
//!
//! The file is started only when head and tail cannot hold everything any more. Once it is full,
//! further output goes to a second file of half the size, which is a ring buffer. At the end, the
//! ring buffer replaces the second half of the first file, behind a line that reports how much is
//! left out. So only output that is larger than the cap is ever copied.

use std::{io, ops::Range};

use bytes::{Bytes, BytesMut};
use haft_types::CallId;
use rustix::io::Errno;

use crate::out::OutWriter;

/// Bytes that are handed to the file at once.
const CHUNK: usize = 1024 * 1024;
/// Smaller pieces are put together before they are written.
const SMALL: usize = 64 * 1024;
/// What a file gives back of a full disk, so that there is room for what matters more: half of what
/// it has, but not more than the second nor less than the first, as far as it has so much.
const ROOM: (u64, u64) = (64 << 10, 16 << 20);

/// What stands before and behind the reason at the end of a file that does not hold the rest.
const NOT_KEPT: &str = "\n[haft: the rest was not kept: ";
const NOT_KEPT_END: &str = "]\n";
/// Most bytes of such a reason.
const REASON: usize = 400;

/// Why a stored output ends early, read from the last bytes of its file; `None` if it does not. At
/// most the last [`OUT_END`] bytes are needed.
pub fn not_kept(end: &[u8]) -> Option<String> {
    let at = memchr::memmem::rfind(end, NOT_KEPT.as_bytes())?;
    let why = end[at + NOT_KEPT.len()..].strip_suffix(NOT_KEPT_END.as_bytes())?;
    let why = str::from_utf8(why).ok().filter(|why| !why.contains('\n'))?;
    Some(why.to_owned())
}

/// Most bytes of a file's end that [`not_kept`] needs.
pub const OUT_END: usize = NOT_KEPT.len() + REASON + NOT_KEPT_END.len();

/// How much of an output is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolLimits {
    /// Bytes of the start that are held in memory.
    pub head: usize,
    /// Bytes of the end that are held in memory.
    pub tail: usize,
    /// Most bytes in the file: half of them from the start, half from the end.
    pub file_cap: u64,
}

impl Default for SpoolLimits {
    /// 16 KiB at each end, and 1 GiB in the file.
    fn default() -> Self {
        Self { head: 16 * 1024, tail: 16 * 1024, file_cap: 1 << 30 }
    }
}

/// The stored parts of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spooled {
    /// The start.
    pub head: Bytes,
    /// The end. It begins after the head, so that both together are everything in short outputs.
    pub tail: Bytes,
    /// Total number of bytes.
    pub bytes: u64,
    /// Total number of lines, a last one without a line end included.
    pub lines: u64,
    /// The call under which the whole output can be read. `None` if head and tail are everything,
    /// or nothing could be stored.
    pub file: Option<CallId>,
    /// The byte range of the output that the file does not hold.
    pub lost: Option<Range<u64>>,
    /// Why the file does not hold everything, if the reason is not the requested cap: a full disk,
    /// a full session.
    pub fault: Option<String>,
}

impl Spooled {
    /// True when head and tail together are the whole output.
    pub fn is_whole(&self) -> bool {
        self.head.len() as u64 + self.tail.len() as u64 == self.bytes
    }
}

/// Collects an output as it arrives.
#[derive(Debug)]
pub struct Spool {
    limits: SpoolLimits,
    head: Vec<u8>,
    tail: Ring,
    bytes: u64,
    line_ends: u64,
    last: u8,
    file: Option<File>,
    /// Why less is kept than was asked for.
    why: Option<String>,
}

impl Spool {
    /// A spool that stores the whole output in `sink` or, without one, only head and tail.
    pub fn new(limits: SpoolLimits, sink: Option<OutWriter>) -> Self {
        Self {
            limits,
            head: Vec::new(),
            tail: Ring::new(limits.tail),
            bytes: 0,
            line_ends: 0,
            last: b'\n',
            file: sink.map(|out| File::new(out, limits.file_cap)),
            why: None,
        }
    }

    /// The same, limited to the space that is free now: in the session, and on the disk.
    pub fn within_room(mut limits: SpoolLimits, sink: Option<OutWriter>) -> Self {
        let Some(mut out) = sink else { return Self::new(limits, None) };
        let why;
        (limits.file_cap, why) = out.limit(limits.file_cap);
        // With less than two bytes there are no two ends.
        let sink = Some(out).filter(|_| limits.file_cap > 1);
        Self { why, ..Self::new(limits, sink) }
    }

    /// Appends bytes; waits only while the disk is more than a chunk behind.
    ///
    /// # Cancel safety
    /// A dropped future may lose these bytes for the file, which then ends there and says so.
    pub async fn push(&mut self, bytes: &[u8]) {
        self.push_shared(&Bytes::copy_from_slice(bytes)).await;
    }

    /// Does what [`Self::push`] does, without copying the bytes.
    ///
    /// # Cancel safety
    /// As that of [`Self::push`].
    pub async fn push_shared(&mut self, bytes: &Bytes) {
        let Some(&last) = bytes.last() else { return };
        self.last = last;
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        self.line_ends += memchr::memchr_iter(b'\n', bytes).count() as u64;
        let into_head = (self.limits.head - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..into_head]);
        self.tail.push(&bytes[into_head..]);
        if let Some(file) = &mut self.file {
            file.push(bytes).await;
        }
    }

    /// Reports whether the file holds, or will hold, everything so far.
    pub fn holds_all(&self) -> bool {
        let whole =
            |file: &File| file.failed.is_none() && self.bytes <= file.half.saturating_mul(2);
        self.file.as_ref().is_some_and(whole)
    }

    /// Number of bytes so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The start, as far as it is held in memory.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The end so far, without what is in the head.
    pub fn tail(&self) -> Vec<u8> {
        self.tail.to_vec()
    }

    /// Writes the buffered start of the output to the file, so that others can read it meanwhile.
    pub async fn flush(&mut self) {
        if let Some(file) = &mut self.file {
            file.write().await;
            file.settle().await;
            file.publish();
        }
    }

    /// What is stored so far, with the file written as far as that is possible; more may come.
    pub async fn so_far(&mut self) -> Spooled {
        self.flush().await;
        let mut spooled = Spooled {
            head: Bytes::copy_from_slice(&self.head),
            tail: self.tail.to_vec().into(),
            bytes: self.bytes,
            lines: self.lines(),
            ..Spooled::default()
        };
        if let Some(file) = self.file.as_ref().filter(|file| file.begun) {
            spooled.file = Some(file.call.clone());
            if let Some((kept, why)) = &file.failed {
                spooled.file.take_if(|_| *kept == 0);
                spooled.lost = Some((*kept).min(self.bytes)..self.bytes);
                spooled.fault = Some(why.clone());
            }
        } else if let Some(why) = self.why.as_ref().filter(|_| self.file.is_none()) {
            spooled.lost = Some(0..self.bytes);
            spooled.fault = Some(why.clone());
        }
        spooled
    }

    fn lines(&self) -> u64 {
        self.line_ends + u64::from(self.last != b'\n')
    }

    /// Ends the output; without a file if head and tail are everything.
    pub async fn finish(self) -> Spooled {
        let keep = self.head.len() as u64 + self.tail.bytes.len() as u64 != self.bytes;
        self.finish_as(keep).await
    }

    /// Ends the output. If `keep` is false, there is a file only of what had to be written already.
    pub async fn finish_as(mut self, keep: bool) -> Spooled {
        let tail = self.tail.to_vec();
        let lines = self.lines();
        let mut spooled = Spooled {
            head: self.head.into(),
            tail: tail.into(),
            bytes: self.bytes,
            lines,
            ..Spooled::default()
        };
        if let Some(file) = self.file.take()
            && (keep || file.begun)
        {
            (spooled.file, spooled.lost, spooled.fault) = file.finish(self.bytes).await;
            if spooled.lost.is_some() {
                spooled.fault = spooled.fault.or(self.why);
            }
        } else if let Some(why) = self.why.filter(|_| keep) {
            (spooled.lost, spooled.fault) = (Some(0..self.bytes), Some(why));
        }
        spooled
    }
}

/// The last bytes of what was pushed.
#[derive(Debug)]
struct Ring {
    bytes: Vec<u8>,
    cap: usize,
    /// Where the oldest byte is, once it is full.
    start: usize,
}

impl Ring {
    const fn new(cap: usize) -> Self {
        Self { bytes: Vec::new(), cap, start: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        if bytes.len() >= self.cap {
            self.bytes.clear();
            self.bytes.extend_from_slice(&bytes[bytes.len() - self.cap..]);
            self.start = 0;
            return;
        }
        let (grow, over) = bytes.split_at((self.cap - self.bytes.len()).min(bytes.len()));
        self.bytes.extend_from_slice(grow);
        let (end, begin) = over.split_at((self.cap - self.start).min(over.len()));
        self.bytes[self.start..self.start + end.len()].copy_from_slice(end);
        self.bytes[..begin.len()].copy_from_slice(begin);
        if !over.is_empty() {
            self.start = (self.start + over.len()) % self.cap;
        }
    }

    fn to_vec(&self) -> Vec<u8> {
        [&self.bytes[self.start..], &self.bytes[..self.start]].concat()
    }
}

/// What is written at once: pieces as they came, small ones put together.
#[derive(Debug, Default)]
struct Chunk {
    pieces: Vec<Bytes>,
    open: BytesMut,
    size: usize,
}

impl Chunk {
    fn push(&mut self, bytes: Bytes) {
        self.size += bytes.len();
        if bytes.len() < SMALL {
            self.open.extend_from_slice(&bytes);
            if self.open.len() >= SMALL {
                self.pieces.push(self.open.split().freeze());
            }
            return;
        }
        if !self.open.is_empty() {
            self.pieces.push(self.open.split().freeze());
        }
        self.pieces.push(bytes);
    }

    fn into_pieces(mut self) -> Vec<Bytes> {
        if !self.open.is_empty() {
            self.pieces.push(self.open.freeze());
        }
        self.pieces
    }
}

/// The file of a spool: a chunk is filled here while the one before goes to the disk.
#[derive(Debug)]
struct File {
    /// With the writing task while a chunk is on its way; gone for good when that was lost.
    out: Option<OutWriter>,
    busy: Option<tokio::task::JoinHandle<Wrote>>,
    call: CallId,
    chunk: Chunk,
    half: u64,
    /// Bytes of the output that were handed on.
    handed: u64,
    begun: bool,
    /// Whether a `push` is under way that has more than what is handed on.
    owed: bool,
    /// How much of the start the file holds at most, once it has failed, and why.
    failed: Option<(u64, String)>,
}

#[derive(Debug)]
struct Wrote {
    out: OutWriter,
    failed: Option<(u64, String)>,
}

impl File {
    fn new(out: OutWriter, cap: u64) -> Self {
        Self {
            call: out.call().clone(),
            out: Some(out),
            busy: None,
            chunk: Chunk::default(),
            half: cap / 2,
            handed: 0,
            begun: false,
            owed: false,
            failed: None,
        }
    }

    async fn push(&mut self, bytes: &Bytes) {
        self.given_up();
        let mut rest = bytes.clone();
        while !rest.is_empty() && self.failed.is_none() {
            self.chunk.push(rest.split_to((CHUNK - self.chunk.size).min(rest.len())));
            if self.chunk.size == CHUNK {
                self.owed = !rest.is_empty();
                self.write().await;
                self.owed = false;
            }
        }
    }

    /// Ends the file where a dropped `push` left a gap.
    fn given_up(&mut self) {
        if self.owed && self.failed.is_none() {
            self.failed = Some((u64::MAX, "a part of the output was dropped".to_owned()));
        }
    }

    /// Hands the chunk on, once the one before is written.
    async fn write(&mut self) {
        self.settle().await;
        let chunk = std::mem::take(&mut self.chunk);
        let Some(mut out) = self.out.take_if(|_| self.failed.is_none()) else { return };
        self.begun = true;
        let (mut at, half) = (self.handed, self.half);
        self.handed += chunk.size as u64;
        self.busy = Some(tokio::task::spawn_blocking(move || {
            let mut failed = None;
            for piece in chunk.into_pieces() {
                failed =
                    put(&mut out, &piece, at, half).err().map(|error| give_up(&mut out, error));
                if failed.is_some() {
                    break;
                }
                at += piece.len() as u64;
            }
            Wrote { out, failed }
        }));
    }

    /// Waits for the chunk that is being written.
    async fn settle(&mut self) {
        let Some(busy) = &mut self.busy else { return };
        let wrote = busy.await;
        self.busy = None;
        match wrote {
            Ok(Wrote { out, failed }) => {
                self.out = Some(out);
                self.failed = failed.or(self.failed.take());
            }
            Err(error) => self.failed = Some((0, error.to_string())),
        }
    }

    fn publish(&mut self) {
        if let Some(out) = &mut self.out
            && self.begun
        {
            out.publish();
        }
    }

    async fn finish(mut self, bytes: u64) -> (Option<CallId>, Option<Range<u64>>, Option<String>) {
        self.given_up();
        self.write().await;
        self.settle().await;
        let Some(mut out) = self.out.take() else {
            return (None, Some(0..bytes), self.failed.map(|(_, why)| why));
        };
        let (half, failed) = (self.half, self.failed.take());
        let joined = tokio::task::spawn_blocking(move || {
            let failed = match failed {
                // It was given up when it failed, but for one whose end nobody waited for.
                Some((u64::MAX, why)) => Some(end_at(&mut out, u64::MAX, why)),
                Some(failed) => Some(failed),
                None => join(&mut out, bytes, half).err().map(|error| give_up(&mut out, error)),
            };
            out.publish();
            failed
        })
        .await;
        let middle = || half..bytes.saturating_sub(half);
        match joined {
            Ok(None) => {
                (Some(self.call), Some(middle()).filter(|lost| lost.start < lost.end), None)
            }
            Ok(Some((0, why))) => (None, Some(0..bytes), Some(why)),
            Ok(Some((kept, why))) => (Some(self.call), Some(kept..bytes), Some(why)),
            Err(error) => (None, Some(0..bytes), Some(error.to_string())),
        }
    }
}

/// Ends a file that cannot be written any more: how much of the start it holds, and why.
fn give_up(out: &mut OutWriter, (kept, error): (u64, io::Error)) -> (u64, String) {
    let full = [Errno::NOSPC, Errno::DQUOT].map(Errno::raw_os_error);
    let is_full = error.raw_os_error().is_some_and(|code| full.contains(&code));
    let kept = kept.min(out.len());
    let room = if is_full { (kept / 2).clamp(ROOM.0, ROOM.1) } else { 0 };
    end_at(out, kept.saturating_sub(room), error.to_string())
}

/// Ends a file behind so many bytes of the start, in a line that says why.
fn end_at(out: &mut OutWriter, kept: u64, why: String) -> (u64, String) {
    let kept = out.len().min(kept);
    (out.give_up(kept, &format!("{NOT_KEPT}{why}{NOT_KEPT_END}")), why)
}

/// Writes a piece of the output that begins at `at`; an error says how much of the start is kept.
fn put(out: &mut OutWriter, piece: &[u8], at: u64, half: u64) -> Result<(), (u64, io::Error)> {
    let cap = 2 * half;
    let room = usize::try_from(cap.saturating_sub(at)).unwrap_or(usize::MAX).min(piece.len());
    let (start, mut rest) = piece.split_at(room);
    if !start.is_empty() {
        out.append(start).map_err(|error| (out.len(), error))?;
    }
    let mut place = (at + room as u64).saturating_sub(cap);
    while !rest.is_empty() && half > 0 {
        let to_end = usize::try_from(half - place % half).unwrap_or(usize::MAX);
        let (now, later) = rest.split_at(to_end.min(rest.len()));
        out.write_round(place % half, now).map_err(|error| (out.len(), error))?;
        place += now.len() as u64;
        rest = later;
    }
    Ok(())
}

/// Brings the last half of the output behind its first, with a line before it that says how much
/// is missing.
fn join(out: &mut OutWriter, bytes: u64, half: u64) -> Result<(), (u64, io::Error)> {
    let round = bytes.saturating_sub(2 * half);
    if round == 0 {
        return Ok(());
    }
    let failed = |error: io::Error| (half, error);
    let mark = format!("\n[haft: {round} bytes are left out here]\n");
    out.close_gap(half, mark.as_bytes(), round.min(half)).map_err(failed)?;
    let begin = if round > half && half > 0 { round % half } else { 0 };
    out.join(begin..round.min(half), 0..begin).map_err(failed)
}
