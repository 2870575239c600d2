//! The copy of one repository in its folder, and the processes that use it.
//!
//! **Invariant:** each user of a copy holds its lock shared. Whoever gets the lock exclusively is
//! the only user. While a command of a process runs, a mark of that process is in the folder.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use haft_types::HostPath;
use rustix::io::Errno;

use super::{
    folders,
    losses::{self, Loss},
    mirror::{OBJECTS, State},
    read_file,
};
use crate::local::git_pack::{Pack, packs_in};

/// Where the copy is in its folder, and what is locked by those who use it.
const COPY: &str = "copy";
const LOCK: &str = "lock";
/// Where copies are that stay.
const LOST: &str = "lost";
/// How the name of a mark begins.
const RUNS: &str = "runs-";
/// Most bytes of a mark.
const MARK: u64 = 16 << 10;
/// How long a copy is kept that a killed process left.
const KEPT: Duration = Duration::from_hours(24 * 30);

/// The copy of one repository.
#[derive(Debug)]
pub(super) struct Store {
    /// The repository: a `.git`, or what one of a worktree or submodule leads to.
    pub(super) git: PathBuf,
    folder: PathBuf,
    lock: File,
    state: Mutex<State>,
    /// Commands that run.
    running: Mutex<usize>,
}

/// What tells one folder from another one at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    id: (u64, u64),
    created: u128,
}

impl Identity {
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(folder).ok().filter(fs::Metadata::is_dir)?;
        let created = found.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let created = created.map_or(0, |since| since.as_nanos());
        Some(Self { id: (found.dev(), found.ino()), created })
    }
}

impl Store {
    /// The copy of a repository, as it was left where a killed process left one.
    pub(super) fn open(all: &Path, git: &Path) -> io::Result<Self> {
        let name = blake3::hash(git.as_os_str().as_bytes()).to_hex();
        let folder = all.join(&name[..32]);
        let copy = folder.join(COPY);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let lock =
            File::options().create(true).truncate(false).write(true).open(folder.join(LOCK))?;
        let mut state = State::default();
        if lock.try_lock().is_ok() {
            let marks = marks(&folder);
            let is_left = marks.iter().any(|mark| is_of(mark, git)) && losses::of_left(git, &copy);
            if is_left {
                state = State::left(git, &copy);
            } else {
                for mark in &marks {
                    drop(fs::remove_file(mark));
                }
            }
            lock.unlock()?;
        }
        fs::create_dir_all(&copy)?;
        lock.lock_shared()?;
        let (git, state) = (git.to_owned(), Mutex::new(state));
        Ok(Self { git, folder, lock, state, running: Mutex::default() })
    }

    /// Makes the copy what the repository is now, unless the repository lost something. While another
    /// command runs, of whichever process, it only grows.
    pub(super) fn update(&self, until: Instant) -> Vec<String> {
        let runs = *self.running.lock().unwrap_or_else(PoisonError::into_inner) > 0;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = self.folder.join(COPY);
        let adds_only = runs || self.others_run();
        let is_lost = || {
            (adds_only || state.told.is_empty()) && losses::is_broken((&self.git, &copy), &state)
        };
        if state.is_left || is_lost() {
            return Vec::new();
        }
        state.update((&self.git, &copy), adds_only, until)
    }

    /// Reports whether a killed process left the copy, and nobody looked after that yet.
    pub(super) fn is_left(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_left
    }

    /// The packs of the copy.
    pub(super) fn packs(&self) -> Vec<Arc<Pack>> {
        let folder = self.folder.join(COPY).join(OBJECTS).join("pack");
        packs_in(folder.as_os_str().as_bytes()).into_iter().map(|opened| opened.pack).collect()
    }

    /// What the repository lost, and was not told yet.
    pub(super) fn loss(
        self: &Arc<Self>,
        worktrees: &[(PathBuf, PathBuf)],
        gits: &[PathBuf],
    ) -> Option<Loss> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut loss) = losses::of((&self.git, &self.folder.join(COPY)), &state, worktrees)
        else {
            state.is_left = false;
            return None;
        };
        let is_it = |git: &Path| git != self.git && Identity::of(git) == state.identity;
        let is_moved =
            || gits.iter().any(|git| is_it(git)) || self.leads().is_some_and(|git| is_it(&git));
        if !self.git.is_dir() && state.identity.is_some() && is_moved() {
            return None;
        }
        let is_told = |name: &[u8]| state.told.contains(name);
        loss.refs.retain(|(name, _)| !is_told(name.as_bytes()));
        loss.overwritten.retain(|(name, _)| !is_told(name.as_bytes()));
        let is_new = loss.missing.iter().any(|one| !is_told(one.path.as_bytes()));
        if !is_new {
            loss.what.clear();
        }
        loss.store = Some(Arc::clone(self));
        (is_new || !loss.refs.is_empty() || !loss.overwritten.is_empty()).then_some(loss)
    }

    /// Where the file leads that stands in the place of the repository.
    fn leads(&self) -> Option<PathBuf> {
        Some(folders(&self.git)?.0)
    }

    /// Takes note of what was told.
    pub(super) fn acknowledge<'a>(
        &self,
        missing: &[HostPath],
        refs: impl Iterator<Item = &'a (String, String)>,
    ) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_left = false;
        state.told.extend(missing.iter().map(|path| path.as_bytes().to_vec()));
        state.told.extend(refs.map(|(name, _)| name.as_bytes().to_vec()));
    }

    /// Moves the copy to where nobody removes it.
    pub(super) fn keep(&self) -> io::Result<PathBuf> {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let kept = self.folder.parent().unwrap_or(&self.folder).join(LOST);
        fs::create_dir_all(&kept)?;
        let kept = kept.join(format!("{name}-{since}"));
        fs::rename(self.folder.join(COPY), &kept)?;
        fs::create_dir_all(self.folder.join(COPY))?;
        Ok(kept)
    }

    /// Reports whether a command of another process runs.
    fn others_run(&self) -> bool {
        let own = self.mark();
        let lives = |mark: &PathBuf| {
            let name = mark.file_name().and_then(|name| name.to_str());
            let id = name.and_then(|name| name.strip_prefix(RUNS)?.parse().ok());
            // What cannot be read may live.
            id.and_then(rustix::process::Pid::from_raw)
                .is_none_or(|id| rustix::process::test_kill_process(id) != Err(Errno::SRCH))
        };
        marks(&self.folder).iter().any(|mark| *mark != own && lives(mark))
    }

    fn mark(&self) -> PathBuf {
        self.folder.join(format!("{RUNS}{}", std::process::id()))
    }

    /// Takes note that a command begins.
    pub(super) fn begins(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running += 1;
        if *running == 1 {
            let created = Identity::of(&self.git).map_or(0, |identity| identity.created);
            let text =
                [format!("{created}\n").as_bytes(), self.git.as_os_str().as_bytes()].concat();
            // It is only needed where haft is killed, too.
            drop(fs::write(self.mark(), text));
        }
    }

    /// Takes note that a command ended, and was looked after.
    pub(super) fn ends(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running = running.saturating_sub(1);
        if *running == 0 {
            drop(fs::remove_file(self.mark()));
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Another process that uses it has it shared.
        if self.lock.try_lock().is_ok() {
            drop(fs::remove_dir_all(&self.folder));
        }
    }
}

fn marks(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_mark = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_bytes().starts_with(RUNS.as_bytes()))
    };
    entries.map(|entry| entry.path()).filter(is_mark).collect()
}

/// What a mark says: when its repository was made, and where it is.
fn read(mark: &Path) -> Option<(u128, PathBuf)> {
    let text = read_file(mark, MARK).ok()?;
    let end = memchr::memchr(b'\n', &text)?;
    let created = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    Some((created, PathBuf::from(OsStr::from_bytes(&text[end + 1..]))))
}

/// Reports whether a mark is of this repository, and not of another one that was in its place.
fn is_of(mark: &Path, git: &Path) -> bool {
    let Some((created, path)) = read(mark) else { return false };
    path == git && Identity::of(git).is_none_or(|now| created == 0 || now.created == created)
}

/// The repositories whose copies killed processes left.
pub(super) fn left(all: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path());
    let unused =
        |folder: &PathBuf| File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok());
    let git = |folder: PathBuf| marks(&folder).first().and_then(|mark| Some(read(mark)?.1));
    folders.filter(unused).filter_map(git).collect()
}

/// The copies that stay, each with the time at which it was moved there.
pub(super) fn kept(all: &Path) -> Vec<(PathBuf, SystemTime)> {
    let folders = fs::read_dir(all.join(LOST)).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let path = entry.path();
        let since = path.file_name()?.to_str()?.rsplit_once('-')?.1.parse().ok()?;
        Some((path, UNIX_EPOCH.checked_add(Duration::from_secs(since))?))
    };
    folders.filter_map(of).collect()
}

/// Removes the copies that nobody uses any more.
pub(super) fn sweep(all: &Path) {
    for folder in fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let Ok(lock) = File::open(folder.join(LOCK)) else { continue };
        let is_new = |mark: &PathBuf| {
            let changed = fs::metadata(mark).and_then(|found| found.modified());
            changed.is_ok_and(|time| {
                SystemTime::now().duration_since(time).is_ok_and(|since| since < KEPT)
            })
        };
        if lock.try_lock().is_ok() && !marks(&folder).iter().any(is_new) {
            drop(fs::remove_dir_all(&folder));
        }
    }
}
