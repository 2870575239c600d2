//! Which levels of confinement work on this machine, and which one a program gets.
//!
//! **Invariant:** a level counts only after a process entered it here and was stopped by it.
//! Nothing is concluded from versions or settings. Each level is tried once for each process of
//! haft.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use haft_sandbox::{Guard, Level, Limits, Probe, ProtectedState, RestoreOptions};
use haft_types::HostPath;

use super::{
    git_objects, start, supervisor_client,
    supervisor_protocol::{Hold, MonitorEvent, Request},
};

/// Most bytes that a probe says.
const SAID: u64 = 64 << 10;

/// What was found out about each level, best first, once one of them was found to work.
static FOUND: Mutex<Option<Arc<[Probe]>>> = Mutex::new(None);

/// What holds a program to its limits: the level that they name, or the best.
pub(super) fn hold(supervisor: &[OsString], limits: &Limits) -> io::Result<Hold> {
    let found = all(supervisor);
    let level = match limits.level {
        Some(level) => found.iter().find(|probe| probe.level == level),
        None => found.iter().find(|probe| probe.works()).or(found.first()),
    };
    let why = match level {
        Some(probe) if probe.works() => return Ok(Hold::To(probe.level, limits.clone())),
        Some(Probe { level, failed: Some(why), .. }) => format!("{level} cannot be used: {why}"),
        Some(Probe { level, .. }) => format!("{level} does not hold here"),
        None => "this machine has no way to do it".to_owned(),
    };
    let text = format!("the program cannot be confined, and was not started: {why}");
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}

/// Looks at what a program is to leave as it is, and hides the keys that are found on the way, but for
/// those whose content git has: fixtures of tests, without which nothing could be tested or committed.
pub(super) fn look(hold: &mut Hold, how: &RestoreOptions) -> Option<ProtectedState> {
    let Hold::To(level, limits) = hold else { return None };
    let kept = ProtectedState::look(limits, *level, how.clone());
    let file = |key: &HostPath| Path::new(OsStr::from_bytes(key.as_bytes())).to_owned();
    let is_secret = |key: &HostPath| !git_objects::has(&file(key));
    let mut hidden = Vec::new();
    if *level == Level::Namespaces {
        hidden.extend(kept.keys().filter(is_secret));
    }
    if !limits.guard.shut.is_empty() {
        // Nothing of it is put back: whatever changes there is another's. What is known of a folder is
        // known by these names.
        let Guard { shut, names, keys, known, .. } = limits.guard.clone();
        let guard = Guard { folders: shut, names, keys, known, ..Guard::default() };
        let shut = Limits { guard, ..Limits::default() };
        hidden.extend(ProtectedState::look(&shut, *level, how.clone()).keys().filter(is_secret));
    }
    limits.hidden.extend(hidden);
    Some(kept)
}

/// Tries them all, the first time; again where none worked, which may have been for want of processes.
pub(super) fn all(supervisor: &[OsString]) -> Arc<[Probe]> {
    let mut known = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &*known {
        return Arc::clone(known);
    }
    let failed = |level, error: io::Error| Probe::failed(level, error.to_string());
    let each = |level| probe(supervisor, level).unwrap_or_else(|error| failed(level, error));
    let found: Arc<[Probe]> = Level::ALL.into_iter().map(each).collect();
    if found.iter().any(Probe::works) {
        *known = Some(Arc::clone(&found));
    }
    found
}

/// Whether overlays of folders can be made, for each set of folders that was asked about.
static OVERLAYS: Mutex<BTreeMap<Vec<HostPath>, bool>> = Mutex::new(BTreeMap::new());

/// Reports whether programs can be given overlays of these folders: a process has seen them.
pub(super) fn overlays(supervisor: &[OsString], folders: Vec<HostPath>) -> bool {
    let mut known = OVERLAYS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(&folders) {
        return *known;
    }
    let limits = Limits { overlay: folders.clone(), ..Limits::default() };
    let said = tried(supervisor, Hold::Overlays(limits), Path::new("/"));
    let sees = said.is_ok_and(|said| serde_json::from_slice(&said).unwrap_or_default());
    known.insert(folders, sees);
    sees
}

/// Has a process try one that does nothing else.
fn probe(supervisor: &[OsString], level: Level) -> io::Result<Probe> {
    let folder = tempfile::Builder::new().prefix("haft-probe-").tempdir()?;
    let said = tried(supervisor, Hold::Probe(level), folder.path())?;
    serde_json::from_slice(&said).map_err(|_| io::Error::other("it ended while it was tried"))
}

/// What a process says that tries something in a folder, and is no program.
fn tried(supervisor: &[OsString], hold: Hold, folder: &Path) -> io::Result<Vec<u8>> {
    let cwd = folder.as_os_str().as_bytes().to_vec();
    let mut request = Request { cwd, hold: Some(hold), ..Request::default() };
    let (ends, pipes) = start::apart(true)?;
    let (_control, told, _) = supervisor_client::start(supervisor, &mut request, &ends, |_| true)?;
    drop(ends);
    if let MonitorEvent::Failed(code, why) = told {
        let error = io::Error::from_raw_os_error(code);
        return Err(if why.is_empty() { error } else { io::Error::other(why) });
    }
    let mut said = Vec::new();
    File::from(pipes.output).take(SAID).read_to_end(&mut said)?;
    Ok(said)
}
