//! What is protected at any depth: found by a walk before a program runs, and by another walk after
//! it.
//!
//! A file is identified by the folder that contains it, not by that folder's path. A folder may be
//! moved or removed with all its content, and the content of a moved folder was not created by the
//! move. What git stores for submodules and worktrees counts, wherever a link or a `.git` file
//! leads. So does the target of a link with a protected name.
//!
//! **Invariant:** what the second walk did not reach is reported, if the first walk had reached
//! everything.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::{OsStr, OsString},
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use haft_types::{HostPath, Style};
use rustix::fs::{AtFlags, CWD, Dir, FileType, StatxFlags, statx};

use super::state::{Opened, Room, State, split, state, top};
use crate::Guard;

/// Most folders that are looked into, and most names.
const FOLDERS: usize = 20_000;
const NAMES: usize = 1_000_000;
/// Folders of what others wrote or programs made: they are looked into last, where there are too many.
const LATE: [&str; 4] = ["node_modules", "site-packages", "target", "vendor"];
/// Most bytes and files of all that is kept of what was found.
const BYTES: u64 = 64 << 20;
const FILES: usize = 20_000;
/// Deepest folder of submodules in each other.
const MODULES: usize = 16;
/// What of a repository makes programs run, or says where that stands.
const GIT: &[&str] = &["hooks", "config", "config.worktree", "commondir", "info/attributes"];
/// What stands in every repository: without the first a folder is none, and the others may lie in the folder
/// that its `commondir` names (gitrepository-layout(5)).
const BARE: [&str; 3] = [HEAD, "objects", "refs"];
pub(super) const HEAD: &str = "HEAD";
const COMMON: &str = "commondir";
/// How long after a change of a folder another one may leave the same time, in nanoseconds.
const TICK: i128 = 20_000_000;
const SECOND: i128 = 1_000_000_000;
/// Most threads that look at folders, and for how many it is worth it.
const THREADS: usize = 4;
const MANY: usize = 200;

/// Which folder it is: the device, the number, and when it was made, since numbers are used again.
pub(super) type Id = (u64, u64, i128);

/// What was read of folders, which holds for as long as they are unchanged.
#[derive(Debug, Default)]
pub struct Folders {
    known: HashMap<Id, Arc<Listing>>,
    /// Whether it was told that they are more than are looked through.
    told: bool,
}

impl Folders {
    /// Whether it has to be told, once.
    pub(super) const fn tells(&mut self) -> bool {
        !std::mem::replace(&mut self.told, true)
    }
}

#[cfg(test)]
impl Folders {
    pub(super) fn known(&self) -> usize {
        self.known.len()
    }
}

#[derive(Debug)]
struct Listing {
    changed: i128,
    folders: Box<[OsString]>,
    /// Names with which what is protected begins.
    spots: Box<[OsString]>,
    /// The same of keys.
    keys: Box<[OsString]>,
    /// Whether git takes it for a repository.
    is_bare: bool,
}

/// The names that are protected, by the first of each.
#[derive(Debug)]
struct Names(HashMap<OsString, Vec<Vec<OsString>>>);

impl Names {
    fn new(guard: &Guard) -> Self {
        let Self(mut all) = Self::of(&guard.names);
        all.entry(GIT_FOLDER.into()).or_default();
        Self(all)
    }

    fn of(names: &[String]) -> Self {
        let mut all: HashMap<OsString, Vec<Vec<OsString>>> = HashMap::new();
        for name in names.iter().map(|name| split(name.as_bytes())) {
            let Some((first, rest)) = name.split_first() else { continue };
            all.entry(first.clone()).or_default().push(rest.to_vec());
        }
        Self(all)
    }

    /// Where in a path something protected begins, and how many names it has.
    fn find(&self, names: &[OsString]) -> Option<(usize, usize)> {
        names.iter().enumerate().find_map(|(at, name)| {
            let rest = self.0.get(name)?.iter().find(|rest| names[at + 1..].starts_with(rest))?;
            Some((at, 1 + rest.len()))
        })
    }
}

const GIT_FOLDER: &str = ".git";

/// By what a thing is known: its folder, and its names from there on.
pub(super) type Key = (Id, Vec<OsString>);

/// Something protected.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub(super) path: HostPath,
    /// The folder whose id it has, and the guarded one in which that lies.
    pub(super) folder: HostPath,
    pub(super) tree: HostPath,
    pub(super) state: Result<State, String>,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct WalkResult {
    pub(super) spots: BTreeMap<Key, Spot>,
    /// Where folders lie that were asked for.
    pub(super) ids: HashMap<Id, (HostPath, HostPath)>,
    /// Folders of git's that were looked into.
    pub(super) repositories: HashSet<Id>,
    /// Keys, with links resolved.
    pub(super) keys: Vec<PathBuf>,
    /// Whether there was more than is looked at.
    pub(super) cut: bool,
}

/// Finds what is protected below the guarded folders, but for the `exact` paths, which are looked at
/// by themselves; `before` is what the walk before found, if there was one. What was read of folders that
/// were not changed right before `now` is known from then on.
pub(super) fn find(
    guard: &Guard,
    exact: &HashSet<HostPath>,
    before: Option<&WalkResult>,
    (folders, now): (&mut Folders, i128),
    opened: &Opened,
) -> WalkResult {
    let mut walk = Walk {
        guard,
        exact,
        names: Names::new(guard),
        keys: Names::of(&guard.keys),
        before,
        wanted: before.iter().flat_map(|found| found.spots.keys()).map(|(id, _)| *id).collect(),
        folders,
        room: Room { bytes: BYTES, files: FILES, opened },
        found: WalkResult::default(),
        left: (FOLDERS, NAMES),
        commons: Vec::new(),
        now,
    };
    for tree in &guard.folders {
        let real = fs::canonicalize(OsStr::from_bytes(tree.as_bytes()));
        if let Ok((real, held)) = real.and_then(|real| Ok((real.clone(), top(&real)?))) {
            walk.tree(tree, &real, &held);
        }
    }
    for path in &guard.repositories {
        let real = fs::canonicalize(OsStr::from_bytes(path.as_bytes()));
        if let Ok((real, held)) = real.and_then(|real| Ok((real.clone(), top(&real)?))) {
            let tree = Tree { path, real: &real, held: &held };
            walk.repository(&tree, Path::new(""), 0);
        }
    }
    while let Some(real) = walk.commons.pop() {
        walk.led_to_repository(&real);
    }
    // What is cut is read again, and so is all the next time.
    if walk.folders.known.len() > 4 * FOLDERS {
        walk.folders.known.clear();
    }
    walk.found
}

struct Walk<'a> {
    guard: &'a Guard,
    exact: &'a HashSet<HostPath>,
    names: Names,
    keys: Names,
    before: Option<&'a WalkResult>,
    /// Folders of what was found before.
    wanted: HashSet<Id>,
    folders: &'a mut Folders,
    room: Room<'a>,
    found: WalkResult,
    /// Folders and names that may still be looked at.
    left: (usize, usize),
    /// Folders that a `commondir` names. They are looked into last: what was found another way counts.
    commons: Vec<PathBuf>,
    now: i128,
}

/// A folder on the way of a walk.
struct Tree<'a> {
    /// As the limits name it, with links resolved, and held.
    path: &'a HostPath,
    real: &'a Path,
    held: &'a OwnedFd,
}

impl Tree<'_> {
    fn at(&self, below: &Path) -> Option<HostPath> {
        if below.as_os_str().is_empty() {
            return Some(self.path.clone());
        }
        self.path.join_bytes(below.as_os_str().as_bytes()).ok()
    }

    /// A folder below it, through no link.
    fn enter(&self, below: &Path, opened: &Opened) -> io::Result<OwnedFd> {
        let mut at = opened.enter(self.held.as_fd(), OsStr::new("."))?;
        for name in below {
            at = opened.enter(at.as_fd(), name)?;
        }
        Ok(at)
    }

    /// Where a path with links resolved lies below it.
    fn below(&self, real: &Path) -> Option<PathBuf> {
        real.strip_prefix(self.real).ok().map(Path::to_owned)
    }
}

/// Which folder is at a path, and when it was changed; none where there is no folder.
type Looked = io::Result<Option<(Id, i128)>>;

fn look(at: impl AsFd, path: &Path) -> Looked {
    let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::CTIME | StatxFlags::BTIME;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let found = statx(at, path, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, wanted)?;
    if FileType::from_raw_mode(found.stx_mode.into()) != FileType::Directory {
        return Ok(None);
    }
    let time = |seconds: i64, nanos: u32| i128::from(seconds) * SECOND + i128::from(nanos);
    let device = u64::from(found.stx_dev_major) << 32 | u64::from(found.stx_dev_minor);
    let born = time(found.stx_btime.tv_sec, found.stx_btime.tv_nsec);
    let changed = time(found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec);
    Ok(Some(((device, found.stx_ino, born), changed)))
}

/// Looks at many, by several threads.
fn looks(at: &OwnedFd, all: &[PathBuf]) -> Vec<Looked> {
    let one = |path: &PathBuf| look(at, path);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    if all.len() < MANY || threads < 2 {
        return all.iter().map(one).collect();
    }
    thread::scope(|scope| {
        let part = |part| scope.spawn(move || <[PathBuf]>::iter(part).map(one).collect());
        let parts: Vec<thread::ScopedJoinHandle<'_, Vec<Looked>>> =
            all.chunks(all.len().div_ceil(threads)).map(part).collect();
        let broken = || io::Error::other("a part of the look broke off");
        let joined = parts.into_iter().zip(all.chunks(all.len().div_ceil(threads)));
        let joined = joined.map(|(part, of)| {
            part.join().unwrap_or_else(|_| of.iter().map(|_| Err(broken())).collect())
        });
        joined.flatten().collect()
    })
}

/// The number of a folder that is held.
pub(super) fn id_of(folder: &OwnedFd) -> Option<Id> {
    look(folder, Path::new(".")).ok().flatten().map(|(id, _)| id)
}

impl Walk<'_> {
    fn tree(&mut self, path: &HostPath, real: &Path, held: &OwnedFd) {
        let tree = Tree { path, real, held };
        let (mut level, mut late) = (vec![PathBuf::new()], Vec::new());
        while !level.is_empty() {
            self.found.cut |= level.len() > self.left.0 || self.left.1 == 0;
            level.truncate(self.left.0);
            if self.left.1 == 0 {
                return;
            }
            let mut next = Vec::new();
            for (below, found) in level.iter().zip(looks(held, &level)) {
                self.left.0 = self.left.0.saturating_sub(1);
                let Ok(Some((id, changed))) = self.again(&tree, below, found) else { continue };
                let Some(listing) = self.listing(&tree, below, id, changed) else { continue };
                self.note(&tree, below, id);
                for name in &listing.folders {
                    let is_late = LATE.iter().any(|late| name == late);
                    if is_late { &mut late } else { &mut next }.push(below.join(name));
                }
                for name in &listing.spots {
                    self.spot(&tree, below, id, name);
                }
                for name in &listing.keys {
                    self.key(&tree, below, name);
                }
                if listing.is_bare {
                    self.bare(&tree, below, id);
                }
            }
            level = if next.is_empty() { std::mem::take(&mut late) } else { next };
        }
    }

    /// What was found at a path, where that is closed after it was opened.
    fn again(&self, tree: &Tree<'_>, below: &Path, found: Looked) -> Looked {
        match found {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                look(tree.enter(below, self.room.opened)?, Path::new("."))
            }
            other => other,
        }
    }

    fn note(&mut self, tree: &Tree<'_>, below: &Path, id: Id) {
        if self.wanted.contains(&id)
            && let Some(at) = tree.at(below)
        {
            self.found.ids.insert(id, (at, tree.path.clone()));
        }
    }

    /// What is in a folder, as it was read before where it is unchanged.
    fn listing(
        &mut self,
        tree: &Tree<'_>,
        below: &Path,
        id: Id,
        changed: i128,
    ) -> Option<Arc<Listing>> {
        if let Some(known) = self.folders.known.get(&id).filter(|known| known.changed == changed) {
            return Some(Arc::clone(known));
        }
        let held = tree.enter(below, self.room.opened).ok()?;
        let (mut folders, mut spots, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        let (mut bare, mut has_common) = (BARE.to_vec(), false);
        for entry in Dir::read_from(&held).ok()?.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            self.left.1 = self.left.1.saturating_sub(1);
            bare.retain(|part| name != *part);
            has_common |= name == COMMON;
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                let found = rustix::fs::statat(&held, name, AtFlags::SYMLINK_NOFOLLOW);
                kind = found.map_or(kind, |found| FileType::from_raw_mode(found.st_mode));
            }
            let rests = self.names.0.get(name);
            spots.extend(rests.map(|_| name.to_owned()));
            keys.extend(self.keys.0.contains_key(name).then(|| name.to_owned()));
            // What is protected whole is kept whole, and git's own folder is looked into otherwise.
            let whole = rests.is_some_and(|rests| rests.iter().any(Vec::is_empty));
            if kind == FileType::Directory && !whole && name != GIT_FOLDER {
                folders.push(name.to_owned());
            }
        }
        let is_bare = bare.is_empty() || has_common && !bare.contains(&HEAD);
        let (folders, spots, keys) = (folders.into(), spots.into(), keys.into());
        let listing = Listing { changed, folders, spots, keys, is_bare };
        let listing = Arc::new(listing);
        let tick = if changed.rem_euclid(SECOND) == 0 { 2 * SECOND } else { TICK };
        if changed < self.now - tick {
            self.folders.known.insert(id, Arc::clone(&listing));
        }
        Some(listing)
    }

    /// Takes note of what is protected and begins with a name.
    fn spot(&mut self, tree: &Tree<'_>, below: &Path, id: Id, name: &OsStr) {
        let Ok(folder) = tree.enter(below, self.room.opened) else { return };
        let at = below.join(name);
        let kind = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW);
        let Ok(kind) = kind.map(|found| FileType::from_raw_mode(found.st_mode)) else { return };
        let is_git = name == GIT_FOLDER;
        if is_git && kind != FileType::Directory {
            self.keep(tree, below, (id, vec![name.to_owned()]), &folder);
            let target = match kind {
                FileType::RegularFile => git_file(&tree.real.join(&at)),
                _ => Some(tree.real.join(&at)),
            };
            if let Some(real) = target.and_then(|target| fs::canonicalize(target).ok()) {
                self.led_to_repository(&real);
            }
        } else if is_git {
            self.repository(tree, &at, 0);
        }
        for rest in self.names.0.get(name).cloned().unwrap_or_default() {
            let mut names = vec![name.to_owned()];
            names.extend(rest);
            if kind == FileType::Symlink {
                // The link, and what it leads to.
                self.keep(tree, below, (id, vec![name.to_owned()]), &folder);
                self.led_to(&tree.real.join(below), &names);
            } else {
                self.keep(tree, below, (id, names.clone()), &folder);
                if names.len() > 1 {
                    self.led_to(&tree.real.join(below), &names);
                }
            }
        }
    }

    /// Takes note of keys that begin with a name. What a link leads to counts where it is a file in there:
    /// whoever made the link could hide anything else by it.
    fn key(&mut self, tree: &Tree<'_>, below: &Path, name: &OsStr) {
        for rest in self.keys.0.get(name).into_iter().flatten() {
            let mut path = tree.real.join(below).join(name);
            path.extend(rest);
            let Ok(real) = fs::canonicalize(&path) else { continue };
            let is_inside = || real.starts_with(tree.real) && real.is_file();
            let is_known = || {
                let real = HostPath::new(real.as_os_str().as_bytes(), Style::Posix);
                real.is_ok_and(|real| self.guard.known.iter().any(|of| of.is_within(&real)))
            };
            if (real == path || is_inside()) && !is_known() {
                self.found.keys.push(real);
            }
        }
    }

    /// Keeps what stands at names in a folder, if anything does.
    fn keep(&mut self, tree: &Tree<'_>, below: &Path, key: Key, folder: &OwnedFd) {
        let Some(at) = tree.at(below) else { return };
        let path = key.1.iter().try_fold(at.clone(), |at, name| at.join_bytes(name.as_bytes()));
        let Ok(path) = path else { return };
        let is_free = self.guard.free.iter().any(|of| of.is_within(&path) || path.is_within(of));
        if is_free || self.exact.contains(&path) || self.found.spots.contains_key(&key) {
            return;
        }
        let now = at_names(folder, &key.1, &mut self.room);
        if matches!(now, Ok(State::Missing)) {
            return;
        }
        let state = now.map_err(|error| error.to_string());
        let spot = Spot { path, folder: at, tree: tree.path.clone(), state };
        self.found.spots.insert(key, spot);
    }

    /// Keeps what names in a folder lead to, where a link is among them.
    fn led_to(&mut self, folder: &Path, names: &[OsString]) {
        let mut path = folder.to_owned();
        path.extend(names);
        let Some(real) = leads_to(&path).filter(|real| *real != path) else { return };
        let (Some(above), Some(name)) = (real.parent(), real.file_name()) else { return };
        self.within(above, |walk, tree, below, id, held| {
            walk.note(tree, below, id);
            walk.keep(tree, below, (id, vec![name.to_owned()]), held);
        });
    }

    /// Keeps what a folder of git's has that makes programs run.
    fn led_to_repository(&mut self, real: &Path) {
        self.within(real, |walk, tree, below, _, _| walk.repository(tree, below, 0));
    }

    /// Does something in the folder at a path without links, if it lies in a guarded one.
    fn within(
        &mut self,
        real: &Path,
        mut work: impl FnMut(&mut Self, &Tree<'_>, &Path, Id, &OwnedFd),
    ) {
        for path in &self.guard.folders {
            let Ok(root) = fs::canonicalize(OsStr::from_bytes(path.as_bytes())) else { continue };
            let Ok(held) = top(&root) else { continue };
            let tree = Tree { path, real: &root, held: &held };
            let Some(below) = tree.below(real) else { continue };
            if let Ok(folder) = tree.enter(&below, self.room.opened)
                && let Some(id) = id_of(&folder)
            {
                return work(self, &tree, &below, id, &folder);
            }
        }
    }

    /// A folder that git takes for a repository though it has another name.
    fn bare(&mut self, tree: &Tree<'_>, below: &Path, id: Id) {
        let Ok(folder) = tree.enter(below, self.room.opened) else { return };
        self.keep(tree, below, (id, vec![HEAD.into()]), &folder);
        self.repository(tree, below, 0);
    }

    /// A folder of git's, with those of worktrees and submodules in it.
    fn repository(&mut self, tree: &Tree<'_>, below: &Path, depth: usize) {
        let Ok(folder) = tree.enter(below, self.room.opened) else { return };
        let Some(id) = id_of(&folder) else { return };
        if depth > MODULES || self.left.0 == 0 || !self.found.repositories.insert(id) {
            return;
        }
        self.left.0 -= 1;
        self.note(tree, below, id);
        for names in GIT.iter().map(|name| split(name.as_bytes())) {
            self.keep(tree, below, (id, names.clone()), &folder);
            self.led_to(&tree.real.join(below), &names);
        }
        for (inner, depth) in [("worktrees", MODULES), ("modules", depth + 1)] {
            self.inner(tree, &below.join(inner), depth);
        }
        // One that was made or changed meanwhile is judged by itself, and what it names is no reason to
        // take away what the person has there.
        let key = (id, vec![COMMON.into()]);
        let stands = |found: &WalkResult| found.spots.get(&key).map(|spot| spot.state.clone().ok());
        if self.before.is_none_or(|before| stands(before) == stands(&self.found))
            && let Some(real) = common(&tree.real.join(below))
        {
            self.commons.push(real);
        }
    }

    /// The repositories in a folder of git's.
    fn inner(&mut self, tree: &Tree<'_>, below: &Path, depth: usize) {
        let Ok(folder) = tree.enter(below, self.room.opened) else { return };
        let Ok(entries) = Dir::read_from(&folder) else { return };
        let names = entries.flatten().map(|entry| entry.file_name().to_bytes().to_vec());
        for name in names.filter(|name| name != b"." && name != b"..").take(NAMES) {
            let at = below.join(OsString::from_vec(name));
            let is = |name: &str| {
                let path = at.join(name);
                rustix::fs::statat(tree.held, &path, AtFlags::SYMLINK_NOFOLLOW).is_ok()
            };
            // The name of a submodule may be a path.
            if is("HEAD") || is("config") || is("hooks") || is("commondir") {
                self.repository(tree, &at, depth);
            } else if depth < MODULES {
                self.inner(tree, &at, depth + 1);
            }
        }
    }
}

/// What stands at names in a folder, through no link.
pub(super) fn at_names(
    folder: &OwnedFd,
    names: &[OsString],
    room: &mut Room<'_>,
) -> io::Result<State> {
    let Some((last, way)) = names.split_last() else { return Ok(State::Missing) };
    let mut at = folder.try_clone()?;
    for name in way {
        if !matches!(state(at.as_fd(), name, room, None)?, State::Folder { .. }) {
            return Ok(State::Missing);
        }
        at = room.opened.enter(at.as_fd(), name)?;
    }
    let opened = room.opened;
    let mut own = Room::new(opened);
    let (bytes, files) = (own.bytes.min(room.bytes), own.files.min(room.files));
    (own.bytes, own.files) = (bytes, files);
    let found = state(at.as_fd(), last, &mut own, Some(0));
    room.bytes -= bytes - own.bytes;
    room.files -= files - own.files;
    found
}

/// Where a path leads, also where nothing is there.
fn leads_to(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..8 {
        match fs::canonicalize(&path) {
            Ok(real) => return Some(real),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => return None,
        }
        let (folder, name) = (fs::canonicalize(path.parent()?).ok()?, path.file_name()?.to_owned());
        match fs::read_link(folder.join(&name)) {
            Ok(target) => path = folder.join(target),
            Err(_) => return Some(folder.join(name)),
        }
    }
    None
}

/// The folder that a `.git` file names.
fn git_file(path: &Path) -> Option<PathBuf> {
    let text = fs::read(path).ok().filter(|text| text.len() < 8 << 10)?;
    let target = line(text.strip_prefix(b"gitdir: ")?);
    Some(path.parent()?.join(OsStr::from_bytes(target)))
}

/// A path as git reads it from a file: blanks are of the name, ends of lines behind it are not.
fn line(mut text: &[u8]) -> &[u8] {
    while let [rest @ .., b'\n' | b'\r'] = text {
        text = rest;
    }
    text
}

/// The folder in which a folder of git's has its settings and objects, where that is another one.
fn common(folder: &Path) -> Option<PathBuf> {
    let text = fs::read(folder.join(COMMON)).ok().filter(|text| text.len() < 8 << 10)?;
    fs::canonicalize(folder.join(OsStr::from_bytes(line(&text)))).ok()
}

/// What is asked of something that was made, to know whether it runs nothing.
pub(super) struct NewEntryCheck<'a> {
    pub(super) guard: &'a Guard,
    /// Folders of git's that were there before, and so are as they were.
    pub(super) repositories: &'a HashSet<Id>,
    /// Whether settings make no program run.
    pub(super) config: fn(&str) -> bool,
}

impl NewEntryCheck<'_> {
    /// Whether a folder has its settings and objects where git puts those of a worktree, and nothing there
    /// runs anything that did not before.
    fn shares(&self, folder: &Path) -> bool {
        let is_usual = fs::read(folder.join(COMMON)).is_ok_and(|text| line(&text) == b"../..");
        let stood = |id| self.repositories.contains(&id);
        is_usual
            && common(folder).is_some_and(|common| {
                let id = look(CWD, &common).ok().flatten().map(|(id, _)| id);
                id.is_some_and(stood) || runs_nothing(&common, self.config)
            })
    }
}

/// Whether nothing in a folder itself makes git run something when it is taken for a repository.
fn runs_nothing(folder: &Path, config: fn(&str) -> bool) -> bool {
    let is_tame = |name: &str| match fs::read_to_string(folder.join(name)) {
        Ok(text) => config(&text),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    let is_sample = |entry: io::Result<fs::DirEntry>| {
        entry
            .is_ok_and(|entry| Path::new(&entry.file_name()).extension() == Some("sample".as_ref()))
    };
    let hooks = match fs::read_dir(folder.join("hooks")) {
        Ok(mut entries) => entries.all(is_sample),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    let is_absent = |name: &str| folder.join(name).symlink_metadata().is_err();
    hooks && is_tame("config") && is_tame("config.worktree") && is_absent("info/attributes")
}

/// Reports whether something that was made runs nothing: a repository as git makes them.
pub(super) fn is_tame(
    state: &State,
    path: &HostPath,
    names: &[OsString],
    asked: &NewEntryCheck<'_>,
) -> bool {
    let [name] = names else { return false };
    let path = Path::new(OsStr::from_bytes(path.as_bytes()));
    let folder = path.parent();
    let text = match state {
        State::File { bytes, .. } => std::str::from_utf8(bytes).ok(),
        _ => None,
    };
    match (name.as_bytes(), text) {
        (b"hooks", None) => {
            state.holds_only(|name| Path::new(name).extension() == Some(OsStr::new("sample")))
        }
        (b"config" | b"config.worktree", Some(text)) => (asked.config)(text),
        (b"commondir", Some(_)) => folder.is_some_and(|folder| asked.shares(folder)),
        // With it the whole folder becomes a repository.
        (b"HEAD", _) => folder.is_some_and(|folder| {
            let is_whole = folder.join(COMMON).symlink_metadata().is_err();
            runs_nothing(folder, asked.config) && (is_whole || asked.shares(folder))
        }),
        // What it names is looked at as well, where it lies in a guarded folder.
        (b".git", Some(_)) => {
            let real = git_file(path).and_then(|target| fs::canonicalize(target).ok());
            real.is_some_and(|real| {
                let real = HostPath::new(real.as_os_str().as_bytes(), Style::Posix);
                asked
                    .guard
                    .folders
                    .iter()
                    .any(|of| real.as_ref().is_ok_and(|real| real.is_within(of)))
            })
        }
        _ => false,
    }
}

/// The thing in which a path lies, or that it is: where its folder is, and its names.
pub(super) fn thing(guard: &Guard, path: &HostPath) -> Option<(HostPath, HostPath, Vec<OsString>)> {
    let tree = guard.folders.iter().find(|tree| path.is_within(tree))?;
    let below = split(path.relative_to(tree)?);
    let (at, length) = Names::new(guard).find(&below)?;
    let join = |at: HostPath, name: &OsString| at.join_bytes(name.as_bytes()).ok();
    let folder = below[..at].iter().try_fold(tree.clone(), join)?;
    Some((tree.clone(), folder, below[at..at + length].to_vec()))
}
