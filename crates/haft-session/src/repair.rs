//! Finds the last whole line of a log, and cuts off what a crash left behind it.
//!
//! **Invariant:** nothing is thrown away: what is cut off is kept in `log.torn-<n>`, and is on
//! disk there before the log gets shorter. Memory stays bounded whatever the file holds.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use haft_types::{AgentPath, Body, Event, EventId, Hash, Level, TurnId, VERSION};
use serde::Deserialize;

use crate::{Format, LINE_MAX, SessionError, files};

/// Bytes looked at in one step, from the end on.
const STEP: u64 = 64 << 10;

/// The end of a log.
pub(crate) struct Tail {
    /// Bytes of all whole lines.
    pub(crate) len: u64,
    /// Hash of the last line, without its line feed.
    pub(crate) hash: Hash,
    /// The last event; 0 where there is none.
    pub(crate) last: EventId,
    /// That of the last line.
    pub(crate) format: Format,
}

/// What was cut off, and where it is.
pub(crate) struct Aside {
    path: PathBuf,
    len: u64,
}

impl Aside {
    pub(crate) fn notice(&self) -> Event {
        let text = format!(
            "The log of this session ended in the middle of a line, as after a crash: {} bytes \
             were cut off and kept in {}. All events before them are there.",
            self.len,
            self.path.display()
        );
        Event {
            v: VERSION,
            id: None,
            parent: None,
            turn: TurnId(0),
            agent: AgentPath::default(),
            at: now(),
            body: Body::Notice { level: Level::Warning, text },
        }
    }
}

/// Milliseconds since the Unix epoch; 0 where the clock stands before it.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// All that must be readable of the last line.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    v: u32,
    id: EventId,
}

/// Finds the end of the log; what stands behind the last line that is an event is cut off.
pub(crate) fn repair(file: &File, path: &Path) -> Result<(Tail, Option<Aside>), SessionError> {
    let failed = |error| SessionError::io("read", path, error);
    let full = file.metadata().map_err(failed)?.len();
    let mut reader = file;
    let mut end = line_end(&mut reader, full).map_err(failed)?;
    let tail = loop {
        if end == 0 {
            let (hash, last) = (Hash::of(b""), EventId(0));
            break Tail { len: 0, hash, last, format: Format::Two };
        }
        let start = line_end(&mut reader, end - 1).map_err(failed)?;
        if let Some((hash, head)) = event_at(&mut reader, start, end - 1).map_err(failed)? {
            if head.v > Format::NEWEST {
                return Err(SessionError::Newer { path: path.to_owned(), version: head.v });
            }
            let format = Format::of(head.v);
            break Tail { len: end, hash, last: head.id, format };
        }
        end = start;
    };
    if tail.len == full {
        return Ok((tail, None));
    }
    let aside = set_aside(file, path, tail.len)?;
    file.set_len(tail.len).map_err(|error| SessionError::io("shorten", path, error))?;
    file.sync_data().map_err(|error| SessionError::io("sync", path, error))?;
    Ok((tail, Some(aside)))
}

/// The place behind the last line feed before `end`; 0 where there is none.
fn line_end(file: &mut (impl Read + Seek), mut end: u64) -> io::Result<u64> {
    let mut bytes = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(STEP);
        read_range(file, start, end, &mut bytes)?;
        if let Some(at) = memchr::memrchr(b'\n', &bytes) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Hash and head of the event in a line; none where it is no event.
fn event_at(
    file: &mut (impl Read + Seek),
    start: u64,
    end: u64,
) -> io::Result<Option<(Hash, Head)>> {
    if end - start > LINE_MAX as u64 {
        return Ok(None);
    }
    let mut line = Vec::new();
    read_range(file, start, end, &mut line)?;
    let head = serde_json::from_slice::<Head>(&line).ok();
    Ok(head.map(|head| (Hash::of(&line), head)))
}

fn read_range(
    file: &mut (impl Read + Seek),
    start: u64,
    end: u64,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    bytes.clear();
    file.seek(SeekFrom::Start(start))?;
    file.take(end - start).read_to_end(bytes)?;
    Ok(())
}

/// Copies what stands from `start` on into a file of its own.
fn set_aside(mut file: &File, log: &Path, start: u64) -> Result<Aside, SessionError> {
    let dir = log.parent().unwrap_or(log);
    let mut number = 1_u64;
    loop {
        let path = dir.join(format!("log.torn-{number}"));
        let failed = |error| SessionError::io("write", &path, error);
        let mut kept = match files::private().write(true).create_new(true).open(&path) {
            Ok(kept) => kept,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                number += 1;
                continue;
            }
            Err(error) => return Err(failed(error)),
        };
        let copied = file.seek(SeekFrom::Start(start)).and_then(|_| io::copy(&mut file, &mut kept));
        let len = copied.map_err(failed)?;
        kept.sync_all().map_err(failed)?;
        files::sync_dir(dir).map_err(failed)?;
        return Ok(Aside { path, len });
    }
}
