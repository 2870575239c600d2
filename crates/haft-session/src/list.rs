//! Lists and finds sessions.
//!
//! **Invariant:** of each log only its head is read, at most [`HEAD_MAX`] bytes, and at most [`TAIL`] of its
//! end, and no blob; a session that cannot be read does not hide the others, and is named.

use std::{
    borrow::Cow,
    fs::{self, File},
    io::{self, BufReader, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use haft_types::{AgentPath, EventId, From, HostPath};
use serde::Deserialize;
use serde_json::Value;

use crate::{SessionError, SessionId, files, large_values, read::Lines};

/// Characters of the first words that a list shows.
pub const TITLE_MAX: usize = 200;

/// The most bytes of a log that a list reads.
const HEAD_MAX: u64 = 64 << 10;

/// The most bytes of its end that a list reads.
const TAIL: u64 = 8 << 10;

/// How many tools of a session are named.
const TOOLS: usize = 10;

/// How many candidates an error names.
const CANDIDATES: usize = 10;

/// A session in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionInfo {
    /// Its id.
    pub id: SessionId,
    /// The workspace root that it began in; none where its first event is lost.
    pub cwd: Option<HostPath>,
    /// Its name, where it was given one.
    pub name: Option<String>,
    /// The session and event that it was forked from.
    pub fork: Option<(String, EventId)>,
    /// When it began, in milliseconds since the Unix epoch.
    pub started: u64,
    /// When its log last changed, in milliseconds since the Unix epoch.
    pub active: u64,
    /// Bytes of its log, without blobs.
    pub len: u64,
    /// Whether a person spoke to an agent in it, as far as the head of the log tells.
    pub talk: bool,
    /// The first words of the person, at most [`TITLE_MAX`] characters; empty where none were
    /// found in the head of the log.
    pub first_text: String,
    /// How many tool calls the head of the log holds before the first words, without those that
    /// other calls made.
    pub calls: u64,
    /// How many turns it had, from the end of the log; none where that does not tell.
    pub turns: Option<u64>,
    /// The tools of these calls, each once, in the order of their first call, at most 10.
    pub tools: Vec<String>,
}

/// A session that could not be listed.
#[derive(Debug)]
pub struct Skipped {
    /// Its log.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
}

/// All sessions.
#[derive(Debug, Default)]
pub struct Listing {
    /// The last used first.
    pub sessions: Vec<SessionInfo>,
    /// Those that could not be read.
    pub skipped: Vec<Skipped>,
}

/// A log that is there, before anything of it is read.
struct LogFile {
    id: SessionId,
    path: PathBuf,
    active: u64,
    len: u64,
}

pub(crate) fn list(sessions: &Path) -> Result<Listing, SessionError> {
    let mut listing = Listing::default();
    for found in by_activity(sessions, &mut listing.skipped)? {
        match head(found) {
            Ok(info) => listing.sessions.push(info),
            Err(skipped) => listing.skipped.push(skipped),
        }
    }
    Ok(listing)
}

pub(crate) fn latest(
    sessions: &Path,
    cwd: Option<&HostPath>,
) -> Result<Option<SessionInfo>, SessionError> {
    let mut infos = by_activity(sessions, &mut Vec::new())?.into_iter().flat_map(head);
    // Where nobody spoke to an agent, there is nothing for one to go on with.
    Ok(infos.find(|info| info.talk && (cwd.is_none() || info.cwd.as_ref() == cwd)))
}

pub(crate) fn find(sessions: &Path, prefix: &str) -> Result<SessionId, SessionError> {
    let wanted = prefix.trim().to_ascii_lowercase();
    let mut fitting = ids(sessions)?;
    fitting.retain(|id| !wanted.is_empty() && id.is_meant(&wanted));
    match fitting.as_slice() {
        [] => Err(not_found(sessions, prefix)),
        [id] => Ok(id.clone()),
        several => Err(SessionError::Ambiguous {
            wanted: prefix.to_owned(),
            count: several.len(),
            candidates: newest(several),
        }),
    }
}

/// The error for a session that is not there.
pub(crate) fn not_found(sessions: &Path, wanted: &str) -> SessionError {
    let candidates = newest(&ids(sessions).unwrap_or_default());
    SessionError::NotFound { wanted: wanted.chars().take(80).collect(), candidates }
}

/// The start of a text, at most [`TITLE_MAX`] characters.
pub(crate) fn first_chars(text: &str) -> String {
    text.chars().take(TITLE_MAX).collect()
}

fn newest(ids: &[SessionId]) -> Vec<String> {
    ids.iter().rev().take(CANDIDATES).map(|id| id.short().to_owned()).collect()
}

/// The ids of all sessions that have a log, oldest first.
pub(crate) fn ids(sessions: &Path) -> Result<Vec<SessionId>, SessionError> {
    let failed = |error| SessionError::io("read", sessions, error);
    let entries = match fs::read_dir(sessions) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        let id = name.to_str().and_then(|name| SessionId::parse(name).ok());
        ids.extend(id.filter(|id| log_of(sessions, id).exists()));
    }
    ids.sort();
    Ok(ids)
}

fn log_of(sessions: &Path, id: &SessionId) -> PathBuf {
    sessions.join(id.as_str()).join("log.jsonl")
}

fn by_activity(sessions: &Path, skipped: &mut Vec<Skipped>) -> Result<Vec<LogFile>, SessionError> {
    let mut all = Vec::new();
    for id in ids(sessions)? {
        let path = log_of(sessions, &id);
        let looked = files::regular(&path).and_then(|data| Ok((data.modified()?, data.len())));
        match looked {
            Ok((modified, len)) => {
                let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
                let active = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
                all.push(LogFile { id, path, active, len });
            }
            Err(error) => skipped.push(Skipped { path, error }),
        }
    }
    // Ids break ties: they sort by the time at which they were made.
    all.sort_by(|a, b| (b.active, &b.id).cmp(&(a.active, &a.id)));
    Ok(all)
}

/// All that a list reads of a line.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    at: u64,
    #[serde(default)]
    agent: AgentPath,
    #[serde(default)]
    cwd: Option<HostPath>,
    #[serde(default)]
    name: Option<Value>,
    #[serde(default)]
    fork: Option<Value>,
    #[serde(default)]
    from: Option<Value>,
    #[serde(default)]
    parts: Option<Value>,
    #[serde(default)]
    call: Option<Value>,
    #[serde(default)]
    tool: Option<Value>,
}

fn head(found: LogFile) -> Result<SessionInfo, Skipped> {
    let LogFile { id, path, active, len } = found;
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) => return Err(Skipped { path, error }),
    };
    let mut info = SessionInfo {
        id,
        cwd: None,
        name: None,
        fork: None,
        started: 0,
        active,
        len,
        talk: false,
        first_text: String::new(),
        calls: 0,
        turns: None,
        tools: Vec::new(),
    };
    info.turns = turns(&file, len);
    let reader = BufReader::with_capacity(8 << 10, file.take(HEAD_MAX));
    let mut lines = Lines::new(&path, reader);
    while let Some(line) = lines.read() {
        // A bad line is for whoever opens the session; the last one is cut by the limit.
        let Some(line) = line.ok().and_then(|line| serde_json::from_slice(line).ok()) else {
            continue;
        };
        if note(&mut info, line) {
            break;
        }
    }
    Ok(info)
}

/// The last turn that a log names in its last bytes.
fn turns(mut file: &File, len: u64) -> Option<u64> {
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL))).ok()?;
    let read = file.take(TAIL).read_to_end(&mut tail);
    // The head is read from the begin all the same.
    file.rewind().ok()?;
    read.ok()?;
    let tail = String::from_utf8_lossy(&tail);
    let turn = |line: &str| {
        // Of an event only what stands before its own fields, which is haft's.
        let (head, rest) = line.split_once(",\"turn\":")?;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        (head.starts_with("{\"v\":") && head.len() < 80).then(|| digits.parse().ok())?
    };
    tail.lines().rev().find_map(turn)
}

/// Takes what one line tells of a session; true when nothing more is wanted.
fn note(info: &mut SessionInfo, line: Line<'_>) -> bool {
    if info.started == 0 {
        info.started = line.at;
    }
    match line.kind.as_ref() {
        "session" => {
            info.cwd = line.cwd;
            info.name = line.name.and_then(|name| serde_json::from_value(name).ok());
            info.fork = line.fork.and_then(|fork| serde_json::from_value(fork).ok());
            false
        }
        "user" if line.agent.is_main() => {
            let from = line.from.and_then(|from| serde_json::from_value::<From>(from).ok());
            if from != Some(From::Person) {
                return false;
            }
            info.talk = true;
            let text = line.parts.as_ref().and_then(large_values::first_text);
            info.first_text = text.map(first_chars).unwrap_or_default();
            text.is_some()
        }
        "call_started" => {
            let text =
                |value: &Option<Value>| value.as_ref().and_then(Value::as_str).map(first_chars);
            if let (Some(call), Some(tool)) = (text(&line.call), text(&line.tool))
                && !call.contains('.')
            {
                info.calls += 1;
                if info.tools.len() < TOOLS && !info.tools.contains(&tool) {
                    info.tools.push(tool);
                }
            }
            false
        }
        _ => false,
    }
}
