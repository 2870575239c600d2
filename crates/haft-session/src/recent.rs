//! What happened recently in other sessions, read from the ends of their logs.
//!
//! **Invariant:** nothing is locked and nothing is waited for. At most the last [`TAIL_MAX`] bytes
//! of each log are read, and what cannot be read reports nothing.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Seek as _, SeekFrom},
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use haft_types::{Body, Event, HostPath};
use serde::Deserialize;

use crate::{Blobs, SessionId, files, large_values, list, lock_owner::LockedFiles, read::Lines};

/// The most bytes of a log that are read.
const TAIL_MAX: u64 = 4 << 20;

/// Longest that files stand under one time.
const STEP: Duration = Duration::from_millis(20);

/// The events of which changes of files are known.
const TELLING: [&str; 6] =
    ["call_started", "call_ended", "found", "undone", "job_started", "job_ended"];

/// The end of a session's log.
#[derive(Debug)]
pub struct Lately {
    /// Whose.
    pub session: SessionId,
    /// The workspace root that it began in; none where that cannot be read.
    pub cwd: Option<HostPath>,
    /// What began, ended and changed there, oldest first.
    pub events: Vec<Event>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
}

/// What happened in the sessions but `mine` that somebody has open, or whose logs changed since this
/// moment, in milliseconds since the Unix epoch.
pub(crate) fn lately(sessions: &Path, mine: &SessionId, since: u64) -> Vec<Lately> {
    let mut ids = list::ids(sessions).unwrap_or_default();
    ids.retain(|id| id != mine);
    if ids.is_empty() {
        return Vec::new();
    }
    let held = LockedFiles::now();
    // The clock of files goes on in steps.
    let since = UNIX_EPOCH + Duration::from_millis(since) - STEP;
    ids.into_iter()
        .filter_map(|session| {
            let dir = sessions.join(session.as_str());
            let log = dir.join("log.jsonl");
            let data = files::regular(&log).ok()?;
            if !held.has(&data) && data.modified().ok()? < since {
                return None;
            }
            let events = tail(&log, &Blobs::new(dir.join("blobs")))?;
            Some(Lately { session, cwd: root(&log), events })
        })
        .collect()
}

/// What is told at the end of a log.
fn tail(log: &Path, blobs: &Blobs) -> Option<Vec<Event>> {
    let mut file = File::open(log).ok()?;
    let from = fs::metadata(log).ok()?.len().saturating_sub(TAIL_MAX);
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut lines = Lines::new(log, BufReader::with_capacity(64 << 10, file));
    if from > 0 {
        // Most likely the end of one.
        drop(lines.read());
    }
    let mut events = Vec::new();
    while let Some(line) = lines.read() {
        let Ok(line) = line else { continue };
        let is_telling = serde_json::from_slice::<Line<'_>>(line)
            .is_ok_and(|line| TELLING.contains(&&*line.kind));
        events.extend(is_telling.then(|| large_values::decode(line, blobs).ok()).flatten());
    }
    Some(events)
}

/// The workspace root that the first event names.
fn root(log: &Path) -> Option<HostPath> {
    let mut line = Vec::new();
    BufReader::new(std::io::Read::take(File::open(log).ok()?, TAIL_MAX))
        .read_until(b'\n', &mut line)
        .ok()?;
    match serde_json::from_slice::<Event>(&line).ok()?.body {
        Body::Session { cwd, .. } => Some(cwd),
        _ => None,
    }
}
