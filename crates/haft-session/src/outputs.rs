//! What sessions take on the disk, and how old ones, or the outputs that they keep, are removed.
//!
//! **Invariant:** a session that any process holds loses nothing: its lock is taken first. Under the
//! lock names are only moved, so that nobody who opens the session waits for a slow disk. What was
//! removed of outputs is noted beside the others.
//!
//! **Does not know:** settings, and whether a person agreed.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use haft_types::{AgentPath, CallId, EVICTED_FILE, Evicted, From, Message, Part};

use crate::{Blobs, Collected, Fold, SessionError, SessionId, files, log, read::Branch};

/// Begins the names of what is on its way out.
const LEAVING: &str = ".leaving-";
/// Where outputs go on their way out, in the folder of their session.
const LEAVING_OUTPUTS: &str = ".leaving-out";
/// Most files and folders of a session that are counted.
const ENTRIES: usize = 200_000;
/// Of a longer log it is not looked up what it still points to.
const LOG_MOST: u64 = 16 << 20;
/// Why outputs go that make room among all sessions.
const WHY: &str = "to make room for newer ones (output.total_bytes in the settings)";

/// Bytes of a session on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of its log, with the blobs beside it and what else it holds.
    pub log: u64,
    /// Of what is kept for undo.
    pub undo: u64,
    /// Of the outputs of its calls.
    pub outputs: u64,
}

impl Usage {
    /// Of a session's folder.
    pub(crate) fn of(folder: &Path) -> Self {
        let mut usage = Self::default();
        let mut left = ENTRIES;
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let bytes = size(&entry.path(), &mut left);
            match entry.file_name().to_str() {
                Some("undo" | "before") => usage.undo += bytes,
                Some("out" | LEAVING_OUTPUTS) => usage.outputs += bytes,
                _ => usage.log += bytes,
            }
        }
        usage
    }

    /// All of it.
    pub const fn total(self) -> u64 {
        self.log.saturating_add(self.undo).saturating_add(self.outputs)
    }
}

/// Bytes of a file, or of all below a folder, as far as its first 200,000 entries tell; no link is
/// followed.
pub fn bytes_below(path: &Path) -> u64 {
    size(path, &mut { ENTRIES })
}

fn size(path: &Path, left: &mut usize) -> u64 {
    let mut sum = 0_u64;
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        let Some(rest) = left.checked_sub(1) else { break };
        *left = rest;
        match fs::symlink_metadata(&path) {
            Ok(about) if about.is_dir() => {
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                open.extend(entries.map(|entry| entry.path()));
            }
            // A file with several names is counted by its parts.
            Ok(about) if about.is_file() => {
                sum = sum.saturating_add(about.len() / about.nlink().max(1));
            }
            _ => {}
        }
    }
    sum
}

/// Holds a session that nobody else holds.
fn hold(folder: &Path, id: &SessionId) -> Result<File, SessionError> {
    let path = folder.join("log.jsonl");
    let failed = |error| SessionError::io("open", &path, error);
    files::regular(&path).map_err(failed)?;
    let file = files::private().read(true).append(true).open(&path).map_err(failed)?;
    log::lock(&file, &path, id)?;
    Ok(file)
}

/// Removes a session whole; gives how many bytes it had.
pub(crate) fn remove(sessions: &Path, id: &SessionId) -> Result<u64, SessionError> {
    let folder = sessions.join(id.as_str());
    let bytes = Usage::of(&folder).total();
    let leaving = sessions.join(format!("{LEAVING}{id}"));
    let failed = |error| SessionError::io("remove", &folder, error);
    let held = hold(&folder, id)?;
    fs::rename(&folder, &leaving).map_err(failed)?;
    drop(held);
    fs::remove_dir_all(&leaving).map_err(|error| SessionError::io("remove", &leaving, error))?;
    Ok(bytes)
}

/// Removes what a removal that was killed left.
pub(crate) fn sweep(sessions: &Path) {
    for entry in fs::read_dir(sessions).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(LEAVING.as_bytes()) {
            // The next one tries again.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Reports whether a file is the output of a call; other names begin with a dot, and what they name
/// can be made again.
fn is_id(call: &CallId) -> bool {
    !call.0.starts_with('.')
}

/// The files that a session keeps of outputs, the oldest first.
fn kept(folder: &Path) -> Vec<(SystemTime, CallId, u64)> {
    let mut all: Vec<(SystemTime, CallId, u64)> = fs::read_dir(folder.join("out"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let call = CallId(entry.file_name().to_str()?.into());
            let time = about.modified().unwrap_or(UNIX_EPOCH);
            (&*call.0 != EVICTED_FILE).then_some((time, call, about.len()))
        })
        .collect();
    all.sort();
    all
}

/// Removes outputs of a session that nobody holds, all of them or those of some calls; gives how
/// many bytes they had.
pub(crate) fn remove_outputs(
    sessions: &Path,
    id: &SessionId,
    why: &str,
    goes: impl Fn(&CallId) -> bool,
) -> Result<u64, SessionError> {
    let folder = sessions.join(id.as_str());
    let (out, leaving) = (folder.join("out"), folder.join(LEAVING_OUTPUTS));
    let held = hold(&folder, id)?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    let (mut lines, mut freed) = (String::new(), 0_u64);
    let going = kept(&folder).into_iter().filter(|(_, call, _)| !is_id(call) || goes(call));
    let going: Vec<_> = going.collect();
    if !going.is_empty() {
        files::create_dir(&leaving).map_err(|error| SessionError::home(&leaving, error))?;
    }
    for (_, call, bytes) in going {
        let path = out.join(&*call.0);
        fs::rename(&path, leaving.join(&*call.0))
            .map_err(|error| SessionError::io("remove", &path, error))?;
        freed = freed.saturating_add(bytes);
        if is_id(&call) {
            lines.push_str(&Evicted { call, bytes, at, why: why.to_owned() }.line());
        }
    }
    note(&out, &lines);
    drop(held);
    // What stays of it is counted, and removed the next time.
    let _ = fs::remove_dir_all(&leaving);
    Ok(freed)
}

/// Notes what went. A full disk has room for it once more room is made; without a note only the
/// words of whoever asks for such an output are fewer.
fn note(out: &Path, lines: &str) {
    if !lines.is_empty() {
        let file = files::private().append(true).create(true).open(out.join(EVICTED_FILE));
        let _: io::Result<()> = file.and_then(|mut file| file.write_all(lines.as_bytes()));
    }
}

/// The calls to whose outputs the conversation of a session still points; none where that is not
/// known, as where no agent talked in it: then it may be any.
fn pointed(folder: &Path) -> Option<HashSet<CallId>> {
    let path = folder.join("log.jsonl");
    if fs::metadata(&path).map_or(0, |about| about.len()) > LOG_MOST {
        return None;
    }
    let mut fold = Fold::new(AgentPath::default());
    let branch = Branch::open(&path, Blobs::new(folder.join("blobs")), None).ok()?;
    for event in branch {
        fold.push(&event.ok()?);
    }
    let mut calls = HashSet::new();
    let messages = fold.into_messages();
    for message in &messages {
        // A summary names outputs, too.
        let parts: Vec<&Part> = match message {
            Message::Results { results } => {
                results.iter().flat_map(|result| &result.outcome.content).collect()
            }
            Message::User { from: From::Haft, parts } => parts.iter().collect(),
            _ => continue,
        };
        for part in parts {
            let Part::Text { text } = part else { continue };
            for behind in text.split("out://").skip(1) {
                let end = behind.find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)));
                let id = behind[..end.unwrap_or(behind.len())].trim_end_matches('.');
                calls.insert(CallId(id.into()));
            }
        }
    }
    (!messages.is_empty()).then_some(calls)
}

/// Lets ended sessions lose outputs until all sessions together keep at most `most` bytes; see
/// [`crate::Store::collect_outputs`].
pub(crate) fn collect(
    sessions: &Path,
    ids: Vec<SessionId>,
    mine: &SessionId,
    most: u64,
    within: Duration,
) -> Collected {
    let began = Instant::now();
    let (mut all, mut used): (Vec<(SystemTime, SessionId, PathBuf)>, _) = (Vec::new(), 0_u64);
    for id in ids {
        // The oldest come first: of what is not looked at any more, they are the part that goes.
        if began.elapsed() > within / 2 {
            break;
        }
        let folder = sessions.join(id.as_str());
        let leaving = folder.join(LEAVING_OUTPUTS);
        let bytes = kept(&folder).iter().fold(0_u64, |sum, (.., bytes)| sum.saturating_add(*bytes));
        used = used.saturating_add(bytes);
        if id != *mine && (bytes > 0 || leaving.exists()) {
            let _ = fs::remove_dir_all(&leaving);
            let active = fs::metadata(folder.join("log.jsonl")).and_then(|data| data.modified());
            all.push((active.unwrap_or(UNIX_EPOCH), id, folder));
        }
    }
    all.sort();
    let mut collected = Collected::default();
    // What a conversation still points to goes last; looking that up leaves time for what goes then.
    for (is_last, within) in [(false, within / 4 * 3), (true, within)] {
        for (_, id, folder) in &all {
            if used <= most {
                return collected;
            }
            if began.elapsed() > within {
                break;
            }
            let keeps = if is_last { Some(HashSet::new()) } else { pointed(folder) };
            let Some(keeps) = keeps else { continue };
            let over = used - most;
            let mut going = (HashSet::new(), 0_u64);
            for (_, call, bytes) in kept(folder) {
                if going.1 < over && is_id(&call) && !keeps.contains(&call) {
                    going.1 = going.1.saturating_add(bytes);
                    going.0.insert(call);
                }
            }
            if going.0.is_empty() {
                continue;
            }
            // One that is in use, or cannot be removed, holds up no other.
            if let Ok(freed @ 1..) = remove_outputs(sessions, id, WHY, |c| going.0.contains(c)) {
                used = used.saturating_sub(freed);
                collected.sessions += 1;
                collected.bytes += freed;
            }
        }
    }
    collected
}
