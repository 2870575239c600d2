//! Restores what a program changed although it is protected.
//!
//! The kernel's rules over files cannot exclude something from a writable folder, and cannot
//! protect what does not exist. So what is protected is scanned before and after. Who changed it
//! cannot be known, except for what haft itself writes meanwhile. So what was there is moved aside
//! and reported.
//!
//! **Invariant:** no link is followed, not even where a folder on the way became one. Everything
//! goes through descriptors, starting at the writable folder as it was before the program ran.

mod guard;
mod set_aside;
mod state;
#[cfg(test)]
mod tests;

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_types::{HostPath, Style};
use rustix::fs::{AtFlags, FileType, fstat, statat};
use serde::{Deserialize, Serialize};

pub use self::guard::Folders;
use self::{
    guard::{HEAD, Key, NewEntryCheck, Spot, WalkResult, at_names, find, id_of, is_tame, thing},
    set_aside::put_aside,
    state::{Opened, Room, State, make, rights, split, state, top},
};
use crate::{Guard, Level, Limits};

/// Most keys that are hidden one by one.
const KEYS: usize = 1000;

/// What a program did to something that is protected, and what was done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restored {
    /// It was changed, and is as it was before; what stood there lies at the second path, if anything did.
    Restored(HostPath, Option<HostPath>),
    /// It was made, and lies at the second path now.
    Removed(HostPath, HostPath),
    /// It was changed and is not as before; why.
    Left(HostPath, String),
    /// Whether it was changed is not known; why.
    Unknown(HostPath, String),
}

/// What whoever keeps it brings along.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// Where what is put aside goes; none: beside, under a name that means nothing.
    pub aside: Option<PathBuf>,
    /// What was read of folders before.
    pub folders: Arc<Mutex<Folders>>,
    /// The time, in nanoseconds since the Unix epoch: what changed right before may change once more without
    /// showing it.
    pub now: fn() -> i128,
    /// Reports whether settings of git make no program run: then a repository that was made may have
    /// them.
    pub tame: fn(&str) -> bool,
}

impl Default for RestoreOptions {
    fn default() -> Self {
        Self { aside: None, folders: Arc::default(), now: || 0, tame: |_| false }
    }
}

/// What is protected, as it was.
#[derive(Debug)]
pub struct ProtectedState {
    items: Vec<Item>,
    /// What is protected at any depth.
    guard: Guard,
    found: WalkResult,
    how: RestoreOptions,
}

#[derive(Debug)]
struct Item {
    path: HostPath,
    /// The writable folder in which it lies.
    tree: HostPath,
    state: Result<Looked, String>,
}

/// What was found at a path: the folder in which it lies, the folders on the way, and it.
#[derive(Debug)]
struct Looked {
    tree: OwnedFd,
    way: Vec<(OsString, State)>,
    name: OsString,
    /// Or why it is not kept.
    state: Result<State, String>,
    /// Which folders those on the way were, where nobody could change it but by moving one of them.
    held: Option<Vec<(u64, u64)>>,
}

impl ProtectedState {
    /// Looks at what is protected in folders that may be written; the rest needs no looking at.
    ///
    /// At [`Level::Namespaces`] what is there and has a path of its own cannot be changed by the program,
    /// as long as the folders in which it lies are the same: then it was changed by somebody else.
    pub fn look(limits: &Limits, level: Level, how: RestoreOptions) -> Self {
        let opened = Opened::default();
        let of = |path: &HostPath| {
            let inside = limits.writable().filter(|tree| path.is_within(tree));
            let tree = inside.max_by_key(|tree| tree.as_bytes().len())?;
            let real = match fs::canonicalize(OsStr::from_bytes(tree.as_bytes())) {
                // A folder that is not there is none that may be written.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
                real => real,
            };
            let held = level == Level::Namespaces;
            let state = real.and_then(|real| look(path, (tree, &real), held, &opened));
            let state = state.map_err(|error| error.to_string());
            Some(Item { path: path.clone(), tree: tree.clone(), state })
        };
        let items = limits.protected.iter().filter_map(of).collect();
        let guard = limits.guard.clone();
        let mut kept = Self { items, guard, found: WalkResult::default(), how };
        kept.found = kept.find(None, &opened);
        kept
    }

    /// Walks through the guarded folders; what was found before, if that is not the first time.
    fn find(&self, before: Option<&WalkResult>, opened: &Opened) -> WalkResult {
        if self.guard.folders.is_empty() && self.guard.repositories.is_empty() {
            return WalkResult::default();
        }
        let exact = self.items.iter().map(|item| item.path.clone()).collect();
        find(&self.guard, &exact, before, (&mut self.folders(), (self.how.now)()), opened)
    }

    fn folders(&self) -> MutexGuard<'_, Folders> {
        self.how.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys that lie in folders which may be written, but for most of very many.
    pub fn keys(&self) -> impl Iterator<Item = HostPath> + '_ {
        let all = self.found.keys.iter().take(KEYS);
        all.filter_map(|key| HostPath::new(key.as_os_str().as_bytes(), Style::Posix).ok())
    }

    /// Puts back what is not as it was; what was done, in the order of what is protected.
    pub fn put_back(&self) -> Vec<Restored> {
        let opened = Opened::default();
        let repositories = &self.found.repositories;
        let asked = NewEntryCheck { guard: &self.guard, repositories, config: self.how.tame };
        let cx = Cx { opened: &opened, asked, how: &self.how };
        let done = |item: &Item| match &item.state {
            Err(why) => Some(Restored::Unknown(item.path.clone(), why.clone())),
            Ok(looked) => match looked.put_back(&item.tree, &cx) {
                Ok(Done { changed: false, .. }) => None,
                Ok(Done { aside: Some(aside), .. }) if looked.state == Ok(State::Missing) => {
                    Some(Restored::Removed(item.path.clone(), aside))
                }
                Ok(Done { aside, .. }) => Some(Restored::Restored(item.path.clone(), aside)),
                Err(error) => Some(Restored::Left(item.path.clone(), error.to_string())),
            },
        };
        let mut all: Vec<Restored> = self.items.iter().filter_map(done).collect();
        let now = self.find(Some(&self.found), &opened);
        // What stands in a folder that has just become a repository may be the person's: its head goes.
        let is_new = |key: &Key| {
            let head = (key.0, vec![HEAD.into()]);
            !is_head(key) && now.spots.contains_key(&head) && !self.found.spots.contains_key(&head)
        };
        for (key, spot) in now.spots.iter().filter(|(key, _)| !is_new(key)) {
            all.extend(self.spot(key, spot, &cx));
        }
        for (key, before) in self.found.spots.iter().filter(|(key, _)| !now.spots.contains_key(key))
        {
            if is_head(key) {
                continue;
            }
            // With the folder in which it was it may go.
            let Some((folder, tree)) = now.ids.get(&key.0) else { continue };
            let at = Spot { folder: folder.clone(), tree: tree.clone(), ..before.clone() };
            // A link may have led to it that is another one now.
            let stands = open_below(tree, folder, &opened)
                .and_then(|held| at_names(&held, &key.1, &mut Room::new(&opened)));
            if stands.ok() == before.state.clone().ok() {
                continue;
            }
            let path = key.1.iter().try_fold(folder.clone(), |at, n| at.join_bytes(n.as_bytes()));
            let path = path.unwrap_or_else(|_| before.path.clone());
            all.push(match cx.restore(key, &at, &before.state) {
                Ok(aside) => Restored::Restored(path, aside),
                Err(error) => Restored::Left(path, error.to_string()),
            });
        }
        all.extend(self.unseen(&now));
        all
    }

    /// What was not looked at.
    fn unseen(&self, now: &WalkResult) -> Vec<Restored> {
        let keys = (self.found.keys.len() > KEYS)
            .then(|| format!("more than {KEYS} keys lie there, and the rest could be read"));
        let cut = match (now.cut, self.found.cut) {
            (false, _) => None,
            (true, false) => Some("more was made than is looked through for what is protected"),
            // Of what is big once for all is enough.
            (true, true) => self.folders().tells().then_some(
                "it has more folders than are looked through; what is protected deep in it may be changed",
            ),
        };
        let whys = keys.into_iter().chain(cut.map(str::to_owned));
        let at = |why| Some(Restored::Unknown(self.guard.folders.first()?.clone(), why));
        whys.filter_map(at).collect()
    }

    /// What is done about something that was found behind the program.
    fn spot(&self, key: &Key, spot: &Spot, cx: &Cx<'_>) -> Option<Restored> {
        let same = || self.found.spots.values().find(|before| before.path == spot.path);
        let Some(before) = self.found.spots.get(key).or_else(same) else {
            if spot.state.as_ref().is_ok_and(|now| cx.is_tame(now, &spot.path, &key.1)) {
                return None;
            }
            return Some(match cx.restore(key, spot, &Ok(State::Missing)) {
                Ok(Some(aside)) => Restored::Removed(spot.path.clone(), aside),
                Ok(None) => return None,
                Err(error) => Restored::Left(spot.path.clone(), error.to_string()),
            });
        };
        if let Err(why) = &before.state {
            return Some(Restored::Unknown(spot.path.clone(), why.clone()));
        }
        // Where a repository stood before, git moves its head.
        if before.state == spot.state || is_head(key) {
            return None;
        }
        Some(match cx.restore(key, spot, &before.state) {
            Ok(aside) => Restored::Restored(spot.path.clone(), aside),
            Err(error) => Restored::Left(spot.path.clone(), error.to_string()),
        })
    }

    /// Takes what stands at a path now for what is to stand there: haft itself has just put it there,
    /// for somebody who may.
    pub fn changed(&mut self, path: &HostPath) {
        let opened = Opened::default();
        let mut known = false;
        for item in self.items.iter_mut().filter(|item| related(&item.path, path)) {
            known = true;
            let Ok(looked) = &mut item.state else { continue };
            if let Some(below) = path.relative_to(&item.path)
                && looked.take_over(&split(below), &opened).is_ok()
            {
                continue;
            }
            let (real, held) = (fs::canonicalize(OsStr::from_bytes(item.tree.as_bytes())), false);
            let again = real.and_then(|real| look(&item.path, (&item.tree, &real), held, &opened));
            item.state = again.map_err(|error| error.to_string());
        }
        if !known && let Some((tree, folder, names)) = thing(&self.guard, path) {
            let _ = self.take_over((&tree, &folder, names), path, &opened);
        }
    }

    fn take_over(
        &mut self,
        (tree, folder, names): (&HostPath, &HostPath, Vec<OsString>),
        path: &HostPath,
        opened: &Opened,
    ) -> io::Result<()> {
        let held = open_below(tree, folder, opened)?;
        let id = id_of(&held).ok_or(io::ErrorKind::NotFound)?;
        let whole =
            names.iter().try_fold(folder.clone(), |at, name| at.join_bytes(name.as_bytes()));
        let whole = whole.map_err(io::Error::other)?;
        let below = split(path.relative_to(&whole).unwrap_or_default());
        let all = [&names[..], &below].concat();
        let now = at_names(&held, &all, &mut Room::new(opened))?;
        let spot = self.found.spots.entry((id, names)).or_insert_with(|| Spot {
            path: whole,
            folder: folder.clone(),
            tree: tree.clone(),
            state: Ok(State::Missing),
        });
        if let Ok(state) = &mut spot.state {
            state.set(&below, &now, rights(&fstat(&held)?));
        }
        // What is not there has no place among what was found.
        self.found.spots.retain(|_, spot| spot.state != Ok(State::Missing));
        Ok(())
    }
}

/// Whether it is what makes a folder a repository.
fn is_head((_, names): &Key) -> bool {
    matches!(&names[..], [name] if name == HEAD)
}

/// Whether one lies in the other.
fn related(a: &HostPath, b: &HostPath) -> bool {
    a.is_within(b) || b.is_within(a)
}

fn look(
    path: &HostPath,
    (tree, real): (&HostPath, &Path),
    held: bool,
    opened: &Opened,
) -> io::Result<Looked> {
    let top = top(real)?;
    let mut names = split(path.relative_to(tree).unwrap_or_default());
    let whole = "a whole writable folder cannot be protected";
    let name = names.pop().ok_or_else(|| io::Error::other(whole))?;
    let mut room = Room::new(opened);
    let mut way = Vec::new();
    let mut folder = Some(top.try_clone()?);
    let mut ids = Vec::new();
    for name in names {
        let state = match &folder {
            Some(folder) => state(folder.as_fd(), &name, &mut room, None)?,
            None => State::Missing,
        };
        folder = match (&folder, &state) {
            (Some(above), State::Folder { .. }) => Some(opened.enter(above.as_fd(), &name)?),
            _ => None,
        };
        ids.extend(folder.as_ref().map(id).transpose()?);
        way.push((name, state));
    }
    let at = folder.as_ref();
    let found = at.and_then(|at| statat(at, &name, AtFlags::SYMLINK_NOFOLLOW).ok());
    // What a link leads to is held, not the link; and a file with a second name can be written by that.
    let is_held = found.is_some_and(|found| match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => found.st_nlink == 1,
        kind => kind == FileType::Directory,
    });
    let held = held && is_held && ids.len() == way.len();
    let state = match at {
        Some(at) => state(at.as_fd(), &name, &mut room, Some(0)),
        None => Ok(State::Missing),
    };
    let state = match state {
        // As long as it is held, it need not be known.
        Err(error) if held => Err(error.to_string()),
        other => Ok(other?),
    };
    Ok(Looked { tree: top, way, name, state, held: held.then_some(ids) })
}

/// Which folder it is.
fn id(of: &OwnedFd) -> io::Result<(u64, u64)> {
    let found = fstat(of)?;
    Ok((found.st_dev, found.st_ino))
}

/// A folder in a guarded one, through no link but those of the guarded one's own path.
fn open_below(tree: &HostPath, folder: &HostPath, opened: &Opened) -> io::Result<OwnedFd> {
    let real = fs::canonicalize(OsStr::from_bytes(tree.as_bytes()))?;
    let mut at = opened.enter(top(&real)?.as_fd(), OsStr::new("."))?;
    for name in split(folder.relative_to(tree).ok_or(io::ErrorKind::NotFound)?) {
        at = opened.enter(at.as_fd(), &name)?;
    }
    Ok(at)
}

/// What was done about one path.
#[derive(Debug, Default)]
struct Done {
    changed: bool,
    /// Where what stood there lies now.
    aside: Option<HostPath>,
}

/// What putting back needs.
struct Cx<'a> {
    opened: &'a Opened,
    asked: NewEntryCheck<'a>,
    how: &'a RestoreOptions,
}

impl Cx<'_> {
    fn is_tame(&self, now: &State, path: &HostPath, names: &[OsString]) -> bool {
        is_tame(now, path, names, &self.asked)
    }

    fn put_aside(
        &self,
        folder: &OwnedFd,
        name: &OsStr,
        at: &HostPath,
    ) -> io::Result<Option<HostPath>> {
        put_aside((folder.as_fd(), name), at, self.how.aside.as_deref(), self.opened)
    }

    fn make(&self, folder: &OwnedFd, name: &OsStr, state: &State) -> io::Result<()> {
        make(folder.as_fd(), name, state, self.opened)
    }

    /// Makes what stood at names in a folder stand there again; where what stood there now lies.
    fn restore(
        &self,
        (id, names): &Key,
        spot: &Spot,
        before: &Result<State, String>,
    ) -> io::Result<Option<HostPath>> {
        let before = before.as_ref().map_err(|why| io::Error::other(why.clone()))?;
        let mut folder = open_below(&spot.tree, &spot.folder, self.opened)?;
        let moved = || io::Error::other("its folder was moved meanwhile");
        let found = id_of(&folder).ok_or_else(moved)?;
        let at_path = || spot.folder.join_bytes(&names.join(OsStr::new("/")).into_encoded_bytes());
        if found != *id && at_path().is_ok_and(|path| path != spot.path) {
            return Err(moved());
        }
        let mut at = spot.folder.clone();
        let (last, way) = names.split_last().ok_or_else(moved)?;
        for name in way {
            let mut room = Room::new(self.opened);
            if !matches!(state(folder.as_fd(), name, &mut room, None)?, State::Folder { .. }) {
                drop(self.put_aside(&folder, name, &at)?);
                let rights = rights(&fstat(&folder)?);
                self.make(&folder, name, &State::Folder { entries: None, rights })?;
            }
            folder = self.opened.enter(folder.as_fd(), name)?;
            at = at.join_bytes(name.as_bytes()).map_err(io::Error::other)?;
        }
        let aside = self.put_aside(&folder, last, &at)?;
        self.make(&folder, last, before)?;
        Ok(aside)
    }
}

impl Looked {
    fn put_back(&self, tree: &HostPath, cx: &Cx<'_>) -> io::Result<Done> {
        let (mut folder, mut at) = (self.tree.try_clone()?, tree.clone());
        let mut done = Done::default();
        let mut ids = Vec::new();
        for (name, before) in &self.way {
            let now = state(folder.as_fd(), name, &mut Room::new(cx.opened), None);
            match (before, now) {
                (State::Folder { .. } | State::Missing, Ok(State::Folder { .. })) => {}
                // What is protected is not reached any more, nor was it to be.
                (State::Missing, Ok(State::Missing)) => return Ok(done),
                (before, Ok(now)) if *before == now => return Ok(done),
                (before, _) => {
                    let moved = cx.put_aside(&folder, name, &at)?;
                    cx.make(&folder, name, before)?;
                    done = Done { changed: true, aside: moved.or(done.aside) };
                    if !matches!(before, State::Folder { .. }) {
                        return Ok(done);
                    }
                }
            }
            folder = cx.opened.enter(folder.as_fd(), name)?;
            at = at.join_bytes(name.as_bytes()).map_err(io::Error::other)?;
            ids.push(id(&folder)?);
        }
        if self.held.as_ref().is_some_and(|held| *held == ids) {
            return Ok(done);
        }
        let before = self.state.as_ref().map_err(|why| io::Error::other(why.clone()))?;
        // What cannot be read or is too much by now is not what it was.
        let now = state(folder.as_fd(), &self.name, &mut Room::new(cx.opened), Some(0));
        let is_fine = |now: State| {
            let path = at.join_bytes(self.name.as_bytes());
            let is_git = at.names().last() == Some(b".git");
            let names = std::slice::from_ref(&self.name);
            let is_made = *before == State::Missing && is_git;
            now == *before || is_made && path.is_ok_and(|path| cx.is_tame(&now, &path, names))
        };
        if now.is_ok_and(is_fine) {
            return Ok(done);
        }
        let moved = cx.put_aside(&folder, &self.name, &at)?;
        cx.make(&folder, &self.name, before)?;
        Ok(Done { changed: true, aside: moved.or(done.aside) })
    }

    /// Takes what is at names below it for what it is to be.
    fn take_over(&mut self, below: &[OsString], opened: &Opened) -> io::Result<()> {
        let mut folder = opened.enter(self.tree.as_fd(), OsStr::new("."))?;
        for (name, before) in &mut self.way {
            let now = state(folder.as_fd(), name, &mut Room::new(opened), None)?;
            folder = opened.enter(folder.as_fd(), name)?;
            *before = now;
        }
        let names = [std::slice::from_ref(&self.name), below].concat();
        let now = at_names(&folder, &names, &mut Room::new(opened))?;
        if let Ok(state) = &mut self.state {
            state.set(below, &now, rights(&fstat(&folder)?));
        }
        Ok(())
    }
}
