//! Copies of git repositories, so that what a command removes from one of them can be restored. git
//! itself is not run.
//!
//! Each repository has one copy in a folder of haft's, shared by all processes. Refs, logs and the
//! like are stored as files, objects as hard links. The copy is removed with the last process that
//! uses it. If that process was killed while a command ran, the copy stays for the next one.
//!
//! **Invariant:** what is in a repository is never overwritten, and no link in it is followed. A
//! repository that cannot be copied prevents no command. A loss is never carried over into a copy.
//!
//! **Does not know:** content that is overwritten in place: the hard links of an object share it.

mod losses;
mod mirror;
mod objects;
mod refs;
mod restore;
mod store;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Instant, SystemTime},
};

use haft_types::{HostPath, Style};
use rustix::fs::{CWD, Mode, OFlags, openat};

pub use self::losses::{CopyAt, Loss, Missing};
use self::store::Store;
use crate::Objects;

/// Most repositories that are copied for one session.
const MOST: usize = 32;
/// Bytes of a file that names a repository elsewhere.
const POINTER: u64 = 4_096;

/// The repository copies of this process.
#[derive(Debug)]
pub struct Repositories {
    folder: PathBuf,
    stores: Mutex<HashMap<PathBuf, Arc<Store>>>,
    /// What was said: once is enough.
    said: Mutex<HashSet<String>>,
}

/// What was copied before a command.
#[derive(Debug, Default)]
pub struct Snapshot {
    parts: Vec<Copied>,
    /// Files `.git` that lead to a repository, and what stands in them.
    pointers: Vec<(PathBuf, Vec<u8>)>,
    /// Notes to report about it, each once.
    pub notes: Vec<String>,
}

/// One repository of a snapshot.
#[derive(Debug)]
struct Copied {
    store: Arc<Store>,
    /// The worktrees of it that are looked after: their files `.git`, and their folders in it.
    worktrees: Vec<(PathBuf, PathBuf)>,
}

/// The copies of repositories that were permanently retained in a folder, each with the time of
/// that.
pub fn kept_copies(folder: &Path) -> Vec<(PathBuf, SystemTime)> {
    store::kept(folder)
}

impl Repositories {
    /// Keeps its copies in a folder that need not be there yet.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, stores: Mutex::default(), said: Mutex::default() }
    }

    /// Copies what is new in the repositories of these `.git`. What is gone from a repository is
    /// removed from its copy, except while other commands run. It waits for the disk, at most 2
    /// seconds, and a fifth of a second for each repository that is not reached by then.
    pub fn copy(&self, gits: &[HostPath]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        if let Some(rest) = gits.get(MOST..).and_then(<[HostPath]>::first) {
            snapshot.notes.push(format!(
                "there are more than {MOST} repositories here: {} and {} more cannot be put back after a loss",
                rest.text(),
                gits.len() - MOST - 1,
            ));
        }
        let until = Instant::now() + mirror::WITHIN;
        for git in gits.iter().take(MOST) {
            let path = as_path(git);
            if let Some(text) = pointer(&path) {
                snapshot.pointers.push((path.clone(), text));
            }
            let Some((own, common)) = folders(&path) else { continue };
            let worktree = own.strip_prefix(&common).ok().filter(|own| *own != Path::new(""));
            let worktree = worktree.map(|own| (path.clone(), own.to_owned()));
            let known = snapshot.parts.iter_mut().find(|part| part.store.git == common);
            if let Some(part) = known {
                part.worktrees.extend(worktree);
                continue;
            }
            let store = match self.store(&common) {
                Ok(store) => store,
                Err(error) => {
                    let git = common.display();
                    snapshot.notes.push(format!(
                        "the repository {git} could not be put back after a loss: {error}"
                    ));
                    continue;
                }
            };
            snapshot.notes.extend(store.update(until.max(Instant::now() + mirror::LEAST)));
            snapshot.add(store, worktree);
        }
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        snapshot.notes.retain(|note| said.insert(note.clone()));
        snapshot
    }

    /// Reports whether killed processes, or others that run, may have left copies.
    pub fn has_left(&self) -> bool {
        fs::read_dir(&self.folder).is_ok_and(|mut entries| entries.next().is_some())
    }

    /// The copies that killed processes left of repositories that are in one of these folders, or
    /// belong to one of these `.git`.
    pub fn left(&self, roots: &[HostPath], gits: &[HostPath]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let near: Vec<PathBuf> =
            gits.iter().filter_map(|git| Some(folders(&as_path(git))?.1)).collect();
        let roots: Vec<PathBuf> = roots.iter().map(as_path).collect();
        for git in self.left_here().into_iter().chain(store::left(&self.folder)) {
            let is_near = near.contains(&git)
                || gits.iter().any(|known| as_path(known) == git)
                || roots.iter().any(|root| git.starts_with(root));
            if is_near && let Ok(store) = self.store(&git) {
                snapshot.add(store, None);
            }
        }
        snapshot
    }

    /// Those of which this process has opened the copy since, and looked after none.
    fn left_here(&self) -> Vec<PathBuf> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.values().filter(|store| store.is_left()).map(|store| store.git.clone()).collect()
    }

    fn store(&self, git: &Path) -> io::Result<Arc<Store>> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores.get(git) {
            return Ok(Arc::clone(store));
        }
        if stores.is_empty() {
            store::sweep(&self.folder);
        }
        let store = Arc::new(Store::open(&self.folder, git)?);
        stores.insert(git.to_owned(), Arc::clone(&store));
        Ok(store)
    }
}

impl Snapshot {
    fn add(&mut self, store: Arc<Store>, worktree: Option<(PathBuf, PathBuf)>) {
        store.begins();
        self.parts.push(Copied { store, worktrees: worktree.into_iter().collect() });
    }

    /// Continues what an earlier snapshot watches, if that is damaged by now and was not copied.
    pub fn go_on(&mut self, earlier: &Self) {
        for part in &earlier.parts {
            if !self.parts.iter().any(|own| own.store.git == part.store.git) {
                part.store.begins();
                let (store, worktrees) = (Arc::clone(&part.store), part.worktrees.clone());
                self.parts.push(Copied { store, worktrees });
            }
        }
        for pointer in &earlier.pointers {
            if !self.pointers.iter().any(|own| own.0 == pointer.0) {
                self.pointers.push(pointer.clone());
            }
        }
    }

    /// Reports whether there is nothing to watch.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.pointers.is_empty()
    }

    /// The packs of these copies.
    pub fn objects(&self) -> Objects {
        Objects(self.parts.iter().flat_map(|part| part.store.packs()).collect())
    }

    /// What these repositories lost since they were copied. A repository that was moved to one of
    /// these `.git` is not a loss. It waits for the disk.
    pub fn losses(&self, gits: &[HostPath]) -> Vec<Loss> {
        let gits: Vec<PathBuf> = gits.iter().map(as_path).collect();
        let of = |part: &Copied| part.store.loss(&part.worktrees, &gits);
        let gone = |(path, text): &(PathBuf, Vec<u8>)| losses::pointer((path, text));
        let all = self.parts.iter().filter_map(of).chain(self.pointers.iter().filter_map(gone));
        // A submodule is a part of the repository around it, too.
        let mut known = HashSet::new();
        let mut all: Vec<Loss> = all.collect();
        all.retain_mut(|loss| {
            let had = !loss.missing.is_empty();
            loss.missing.retain(|one| known.insert(one.path.clone()));
            !had || !loss.missing.is_empty()
        });
        all
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.parts.iter().for_each(|part| part.store.ends());
    }
}

/// Opens a file to read it. Nothing else is waited for: a pipe in its place may have no other end.
fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// What a file holds that has at most so many bytes.
fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    open_file(path)?.take(most.saturating_add(1)).read_to_end(&mut text)?;
    if text.len() as u64 > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(text) }
}

/// What a file `.git` holds; none where it is none.
fn pointer(git: &Path) -> Option<Vec<u8>> {
    let found = fs::symlink_metadata(git).ok()?;
    let text = found.is_file().then(|| read_file(git, POINTER))?.ok()?;
    text.starts_with(b"gitdir:").then_some(text)
}

/// The repository that a `.git` is or leads to, and the one with all that several worktrees share.
fn folders(git: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut folder = git.to_owned();
    if let Some(text) = pointer(git) {
        folder = git.parent()?.join(OsStr::from_bytes(text["gitdir:".len()..].trim_ascii()));
    }
    let own = fs::canonicalize(folder).ok()?;
    let common = match read_file(&own.join("commondir"), POINTER) {
        Ok(text) => fs::canonicalize(own.join(OsStr::from_bytes(text.trim_ascii()))).ok()?,
        Err(_) => own.clone(),
    };
    (common.join("HEAD").is_file() && common.join("objects").is_dir()).then_some((own, common))
}

fn as_path(path: &HostPath) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(path.as_bytes()))
}

fn host_path(path: &Path) -> Option<HostPath> {
    HostPath::new(path.as_os_str().as_bytes(), Style::Posix).ok()
}
