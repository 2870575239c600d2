//! Space for stored outputs: how much a new call may store, and which outputs are evicted for it.
//!
//! **Invariant:** an output that is being written is never removed, nor one whose clean text is
//! being created. Of the others the oldest go first, and only if that frees enough space. Each
//! eviction is recorded.
//!
//! **Does not know:** other sessions, and what a conversation still points to.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use haft_types::{CallId, EVICTED_FILE, Evicted};
use rustix::fs::OFlags;

use super::{OutWriter, Outs, Place, Shared, checked};

/// Of what is free on the disk one call keeps at most this part.
const PART: u64 = 10;
/// Of what a session keeps each call may have this part, however much others were promised.
const SHARE: u64 = 4;
/// At least this part of it is made free at once: a long output would look through the folder for
/// each of its pieces otherwise.
const STEP: u64 = 32;
/// Most bytes that are read of the notes about what went.
const NOTES: u64 = 1 << 20;
/// Why one goes that makes room in its session.
const WHY: &str = "to make room for newer ones (output.session_bytes in the settings)";

#[derive(Debug, Default)]
pub(super) struct Room(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Who writes an output now, or reads one in memory, and how much all of them were promised.
    pinned: HashMap<CallId, (usize, u64)>,
    /// The outputs in memory, as they came.
    order: Vec<CallId>,
    /// What went and is noted in no file.
    evicted: Vec<Evicted>,
}

/// As long as it is there, an output is not removed.
#[derive(Debug)]
pub(super) struct Pin {
    shared: Arc<Shared>,
    call: CallId,
    promised: u64,
}

impl Room {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut state = self.shared.room.lock();
        if let Some((count, promised)) = state.pinned.get_mut(&self.call) {
            (*count, *promised) = (*count - 1, promised.saturating_sub(self.promised));
            if *count == 0 {
                state.pinned.remove(&self.call);
            }
        }
    }
}

impl Outs {
    /// The eviction of a stored output; `None` if the output exists, or never existed.
    pub fn evicted(&self, call: &CallId) -> Option<Evicted> {
        if checked(call).is_err() || self.open(call).is_some() {
            return None;
        }
        let mut found = {
            let state = self.shared.room.lock();
            state.evicted.iter().rev().find(|one| one.call == *call).cloned()
        };
        if let Place::Folder { base, .. } = &self.shared.place {
            found = found.or_else(|| Evicted::find(&notes(base).unwrap_or_default(), call));
        }
        found
    }
}

impl OutWriter {
    /// How many bytes of this output, which begins now, may be kept, and why they are fewer than
    /// `most`.
    pub(crate) fn limit(&mut self, most: u64) -> (u64, Option<String>) {
        let shared = &self.shared;
        let free = shared.free().map_or(u64::MAX, |free| free / PART);
        let mut state = shared.room.lock();
        let promised: u64 = state.pinned.values().map(|(_, bytes)| *bytes).sum();
        let session = shared.cap.saturating_sub(promised).max(shared.cap / SHARE);
        let room = session.min(free);
        // What comes when it is full goes round in another half of it.
        let wanted = most.saturating_add(most / 2);
        self.pin.promised = wanted.min(room);
        if let Some((_, promised)) = state.pinned.get_mut(&self.call) {
            *promised += self.pin.promised;
        }
        drop(state);
        if wanted <= room {
            return (most, None);
        }
        let why = match shared.cap {
            _ if free < session => format!(
                "one call keeps at most a tenth of what is free on the disk, which is {free} bytes"
            ),
            0 => "the settings output.session_bytes and output.total_bytes let a session keep \
                  nothing beyond what is shown"
                .to_owned(),
            cap => format!(
                "a session keeps at most {cap} bytes of outputs (output.session_bytes and \
                 output.total_bytes in the settings)"
            ),
        };
        (room / 3 * 2, Some(why))
    }
}

impl Shared {
    pub(super) fn pin(self: &Arc<Self>, call: &CallId) -> Pin {
        self.room.lock().pinned.entry(call.clone()).or_default().0 += 1;
        Pin { shared: Arc::clone(self), call: call.clone(), promised: 0 }
    }

    /// What is free on the disk; none where the outputs lie on none, or it does not say.
    fn free(&self) -> Option<u64> {
        let Place::Folder { base, .. } = &self.place else { return None };
        let disk = base.ancestors().find_map(|path| rustix::fs::statvfs(path).ok())?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    /// One in memory is there now.
    pub(super) fn arrived(&self, call: &CallId) {
        let mut state = self.room.lock();
        state.order.retain(|one| one != call);
        state.order.push(call.clone());
    }

    /// Makes room for so many bytes more; reports whether there is enough now.
    pub(super) fn evict(&self, more: u64) -> bool {
        let mut state = self.room.lock();
        let used = self.used.load(Ordering::Relaxed);
        let needed = used.saturating_add(more).saturating_sub(self.cap);
        let all = self.evictable(&state);
        let sum = all.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        if sum < needed || more > self.cap {
            return false;
        }
        let goal = needed.max(self.cap / STEP);
        let (mut freed, mut evicted) = (0_u64, Vec::new());
        for (call, bytes) in all {
            if freed >= goal {
                break;
            }
            if self.remove(&call) {
                freed = freed.saturating_add(bytes);
                evicted.push(Evicted { call, bytes, at: now(), why: WHY.to_owned() });
            }
        }
        let is_enough = freed >= needed;
        self.note(evicted, &mut state);
        is_enough
    }

    /// The outputs that may go, the oldest first.
    fn evictable(&self, state: &State) -> Vec<(CallId, u64)> {
        let is_free = |call: &CallId| !state.pinned.contains_key(call);
        match &self.place {
            Place::Folder { base, .. } => {
                let mut all: Vec<(SystemTime, usize, CallId, u64)> = fs::read_dir(base)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .filter_map(|entry| {
                        let call = CallId(entry.file_name().to_str()?.into());
                        let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                        let time = about.modified().unwrap_or(UNIX_EPOCH);
                        let fits = checked(&call).is_ok() && is_free(&call);
                        fits.then_some((time, call.0.len(), call, about.len()))
                    })
                    .collect();
                all.sort();
                all.into_iter().map(|(.., call, bytes)| (call, bytes)).collect()
            }
            Place::Memory { host, base } => {
                let size = |call: &CallId| {
                    let path = base.join(&call.0).ok()?;
                    Some((call.clone(), host.content(path.as_str()?)?.len() as u64))
                };
                state.order.iter().filter(|call| is_free(call)).filter_map(size).collect()
            }
        }
    }

    /// Removes an output with its clean text, unless that is being made.
    fn remove(&self, call: &CallId) -> bool {
        if !self.try_forget_text(call) {
            return false;
        }
        let gone = match &self.place {
            Place::Folder { base, .. } => {
                let path = base.join(&*call.0);
                let size = fs::symlink_metadata(&path).map_or(0, |about| about.len());
                fs::remove_file(&path).is_ok().then_some(size)
            }
            Place::Memory { host, base } => {
                let path = base.join(&call.0).ok();
                path.and_then(|path| host.take(&path)).map(|bytes| bytes.len() as u64)
            }
        };
        self.release(gone.unwrap_or(0));
        gone.is_some()
    }

    /// Notes what went; where no file takes it, for as long as this process lives.
    fn note(&self, evicted: Vec<Evicted>, state: &mut State) {
        state.order.retain(|call| !evicted.iter().any(|one| one.call == *call));
        let lines: String = evicted.iter().map(Evicted::line).collect();
        let written = match &self.place {
            Place::Folder { base, .. } => add_notes(base, &lines).is_ok(),
            Place::Memory { .. } => false,
        };
        if !written {
            state.evicted.extend(evicted);
        }
    }
}

/// Milliseconds since the Unix epoch.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn add_notes(folder: &Path, lines: &str) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).custom_flags(flags);
    options.open(folder.join(EVICTED_FILE))?.write_all(lines.as_bytes())
}

/// What is noted last in a folder.
fn notes(folder: &Path) -> io::Result<String> {
    let mut file = File::open(folder.join(EVICTED_FILE))?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(NOTES)))?;
    let mut bytes = Vec::new();
    file.take(NOTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outs(cap: u64) -> (tempfile::TempDir, [Outs; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let on_disk = Outs::in_folder(folder.path().join("out"), cap);
        (folder, [on_disk, Outs::in_memory(cap)])
    }

    fn call(number: u64) -> CallId {
        CallId::nth(number)
    }

    #[test]
    fn the_oldest_go_for_newer_ones_and_what_is_written_stays() {
        let (_folder, all) = outs(100);
        for outs in all {
            let mut first = outs.create(&call(1)).unwrap();
            first.append(&[b'a'; 40]).unwrap();
            first.publish();
            outs.put(&call(2), &[b'b'; 30]).unwrap();
            outs.put(&call(10), &[b'c'; 30]).unwrap();
            outs.put(&call(3), &[b'd'; 20]).unwrap();
            assert!(outs.open(&call(2)).is_none() && outs.open(&call(1)).is_some());
            let gone = outs.evicted(&call(2)).unwrap();
            assert!(gone.bytes == 30 && gone.why.contains("output.session_bytes"), "{gone:?}");
            assert!(gone.at > 1_600_000_000_000, "{gone:?}");
            assert_eq!(outs.evicted(&call(3)), None);
            assert_eq!(outs.evicted(&call(99)), None);
            drop(first);
            // The one that was written goes now, as the oldest, but for nothing that never fits.
            assert!(outs.put(&call(4), &[b'e'; 101]).is_err());
            assert!(outs.open(&call(1)).is_some());
            outs.put(&call(5), &[b'f'; 30]).unwrap();
            assert!(outs.open(&call(1)).is_none() && outs.open(&call(10)).is_some());
            assert!(outs.used() <= 100, "{}", outs.used());
            // Made again it is there.
            outs.put(&call(2), b"again").unwrap();
            assert_eq!(outs.evicted(&call(2)), None);
        }
    }

    #[test]
    fn what_went_is_known_in_a_later_run() {
        let folder = tempfile::tempdir().unwrap();
        let outs = Outs::in_folder(folder.path(), 10);
        outs.put(&call(1), b"12345678").unwrap();
        outs.put(&call(2), b"12345678").unwrap();
        let again = Outs::in_folder(folder.path(), 10);
        assert_eq!(again.evicted(&call(1)).unwrap().bytes, 8);
        again.put(&call(3), b"1234567890").unwrap();
        assert_eq!((again.used(), again.evicted(&call(2)).unwrap().bytes), (10, 8));
    }

    #[test]
    fn of_what_a_session_keeps_each_call_gets_a_share() {
        let (_folder, all) = outs(1200);
        for outs in all {
            let mut first = outs.create(&call(1)).unwrap();
            assert_eq!(first.limit(400), (400, None));
            let mut second = outs.create(&call(2)).unwrap();
            let (most, why) = second.limit(1 << 30);
            assert_eq!(most, 400, "what is promised to the first is not promised twice");
            assert!(why.unwrap().contains("at most 1200 bytes of outputs"));
            let mut third = outs.create(&call(3)).unwrap();
            assert_eq!(third.limit(1 << 30).0, 200);
            drop((first, second, third));
            assert_eq!(outs.create(&call(4)).unwrap().limit(1 << 30).0, 800);
        }
        let (_folder, all) = outs(0);
        for outs in all {
            let (most, why) = outs.create(&call(1)).unwrap().limit(1 << 30);
            assert!(most == 0 && why.unwrap().contains("nothing beyond what is shown"));
            assert!(outs.put(&call(1), b"x").is_err());
        }
    }
}
