//! Brings the copy of a repository up to date.
//!
//! An object folder whose time equals that of its copy holds nothing new. So a later update only
//! checks 256 folders, whatever they hold.
//!
//! **Invariant:** refs and packs come first. If there are more than [`FILES`] files, or an update
//! takes longer than [`WITHIN`], loose objects are left out from then on, which is reported once.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs::{self, File, FileTimes, Metadata},
    io::{self, Read as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, symlink},
    },
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use rustix::fs::{StatVfs, statvfs};

use super::{open_file, refs, store::Identity};

/// Most files that are copied or linked.
const FILES: usize = 50_000;
/// Longest that updates take before a command, and what each of them has in any case.
pub(super) const WITHIN: Duration = Duration::from_secs(2);
pub(super) const LEAST: Duration = Duration::from_millis(200);
/// Most bytes of loose objects that are copied where they cannot be linked.
const LOOSE: u64 = 64 << 20;
/// Most bytes of another file, and of all that are copied at once.
const FILE: u64 = 64 << 20;
const COPIED: u64 = 256 << 20;
/// Of what is free on the disk copies take at most this part.
const PART: u64 = 10;
/// Most packs that are held open.
const OPEN: usize = 64;
/// Deepest folder.
const DEPTH: usize = 24;
/// How long after a change another one may leave the same time.
const TICK: Duration = Duration::from_millis(50);
/// Folders of objects.
pub(super) const OBJECTS: &str = "objects";
/// The folder of refs that are kept as tables.
pub(super) const REFTABLE: &str = "reftable";
/// The file of packed refs.
pub(super) const PACKED: &str = "packed-refs";
/// Folders of a repository that are copied; others are large, or not git's own.
const FOLDERS: [&str; 8] =
    ["refs", REFTABLE, "logs", "worktrees", "modules", "info", "hooks", "branches"];

/// How far the copy is.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Too much to be copied whole.
    is_large: bool,
    /// A killed process left it, and nobody looked after that yet.
    pub(super) is_left: bool,
    /// Losses that were told: paths and refs.
    pub(super) told: HashSet<Vec<u8>>,
    /// The repository's folder.
    pub(super) identity: Option<Identity>,
    /// The state of the packed refs.
    pub(super) packed: Option<Stamp>,
    /// Packs that cannot be linked, held open: below which folder of the copy, the name, the file.
    pub(super) open: Vec<(PathBuf, OsString, File)>,
}

/// What a file is, and when it changed.
pub(super) type Stamp = (u64, i64, i64, u64);

pub(super) fn stamp(file: &Path) -> Option<Stamp> {
    let found = fs::symlink_metadata(file).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
}

/// Reports whether the packed refs are those that the copy was made of, or that were put back from it:
/// git always writes new ones.
pub(super) fn is_packed_same((git, copy): (&Path, &Path), packed: Option<Stamp>) -> bool {
    let (packs, copied) = (git.join(PACKED), copy.join(PACKED));
    let Ok(found) = fs::symlink_metadata(&packs) else { return false };
    let is_copied = || fs::symlink_metadata(&copied).is_ok_and(|copy| copy.len() == found.len());
    (packed.is_some() && stamp(&packs) == packed) || (same_time(&found, &copied) && is_copied())
}

/// What one update may still do.
struct Budget {
    /// What is gone from the repository stays in the copy, and so does what is shorter there: another
    /// command runs, and may have damaged it.
    adds_only: bool,
    loose: usize,
    files: usize,
    /// Bytes of loose objects that are copied, and of other files; at most a part of the free disk each.
    copied: u64,
    others: u64,
    part: u64,
    until: Instant,
    is_over: bool,
}

impl Budget {
    fn new(copy: &Path, is_over: bool, adds_only: bool, until: Instant) -> Self {
        let free = |disk: StatVfs| disk.f_bavail.saturating_mul(disk.f_frsize);
        let part = statvfs(copy).map_or(u64::MAX, |disk| free(disk) / PART);
        let (copied, others) = (0, 0);
        Self { adds_only, loose: FILES, files: FILES, copied, others, part, until, is_over }
    }

    /// Removes of the copy what the repository has no more.
    fn prune(&self, copy: &Path, names: &HashSet<OsString>) {
        if !self.adds_only {
            prune(copy, names);
        }
    }

    /// Takes one more loose object; false where that is too much.
    fn loose(&mut self) -> bool {
        self.is_over |= self.loose == 0 || Instant::now() > self.until;
        self.loose = self.loose.saturating_sub(1);
        !self.is_over
    }

    /// Copies another file, where that is not too much.
    fn file(&mut self, from: &Path, to: &Path) {
        let most = COPIED.min(self.part);
        if self.files == 0 || self.others > most || Instant::now() > self.until {
            self.is_over = true;
            return;
        }
        self.files -= 1;
        let len = |path: &Path| fs::symlink_metadata(path).map_or(0, |found| found.len());
        if self.adds_only && len(from) < len(to) {
            return;
        }
        self.others = self.others.saturating_add(file(from, to));
    }
}

impl State {
    /// The state of a copy that a killed process left.
    pub(super) fn left(git: &Path, copy: &Path) -> Self {
        let read = |folder: &Path| fs::read(folder.join(PACKED)).ok();
        let packed = stamp(&git.join(PACKED)).filter(|_| read(git) == read(copy));
        Self { is_left: true, packed, ..Self::default() }
    }

    /// Makes the copy what the repository is; says what was left out, and what is held open.
    pub(super) fn update(
        &mut self,
        (git, copy): (&Path, &Path),
        adds_only: bool,
        until: Instant,
    ) -> Vec<String> {
        let mut budget = Budget::new(copy, self.is_large, adds_only, until);
        if adds_only && !git.is_dir() {
            return Vec::new();
        }
        if !adds_only {
            self.open.clear();
            self.told.clear();
        }
        if !git.is_dir() {
            drop(fs::remove_dir_all(copy).and_then(|()| fs::create_dir(copy)));
            return Vec::new();
        }
        self.identity = Identity::of(git);
        if adds_only && !is_packed_same((git, copy), self.packed) {
            follow_packed(git, copy);
        }
        self.packed = stamp(&git.join(PACKED));
        for name in ["HEAD", PACKED] {
            budget.file(&git.join(name), &copy.join(name));
        }
        if adds_only && refs::head(git).is_some() {
            // One that names another branch may be shorter.
            file(&git.join("HEAD"), &copy.join("HEAD"));
        }
        copy_refs(&git.join("refs"), &copy.join("refs"), DEPTH, &mut budget);
        self.objects(&git.join(OBJECTS), &copy.join(OBJECTS), &mut budget);
        self.top(git, copy, &mut budget);
        let (mut notes, git) = (Vec::new(), git.display());
        if !self.open.is_empty() {
            notes.push(format!(
                "the packs of the repository {git} cannot be linked from where haft keeps its copy: they \
                 are held open, and can be put back only until haft ends"
            ));
        }
        if budget.is_over && !std::mem::replace(&mut self.is_large, true) {
            loose_ones(&copy.join(OBJECTS)).for_each(|folder| drop(fs::remove_dir_all(folder)));
            notes.push(format!(
                "the repository {git} is too large to be kept whole: after a loss only its refs and packs \
                 can be put back"
            ));
        }
        notes
    }

    /// The repository's own folder.
    fn top(&mut self, from: &Path, to: &Path, budget: &mut Budget) {
        let Ok(entries) = fs::read_dir(from) else { return };
        let mut names = HashSet::from([OBJECTS.into(), "refs".into()]);
        for entry in entries.flatten() {
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
            let is_known = FOLDERS.iter().any(|known| *name == **known);
            if kind.is_dir() && name == "logs" {
                copy_refs(&entry.path(), &to.join(&name), DEPTH, budget);
            } else if kind.is_dir() && is_known && name != "refs" {
                self.folder(&entry.path(), &to.join(&name), DEPTH, budget);
            } else if kind.is_file() && !passes(&name) {
                budget.file(&entry.path(), &to.join(&name));
            } else if kind.is_symlink() {
                link(&entry.path(), &to.join(&name));
            } else {
                continue;
            }
            names.insert(name);
        }
        budget.prune(to, &names);
    }

    /// A folder of files; repositories within (worktrees, submodules) are among them.
    fn folder(&mut self, from: &Path, to: &Path, depth: usize, budget: &mut Budget) {
        let Ok(entries) = fs::read_dir(from) else { return };
        if depth == 0 || fs::create_dir_all(to).is_err() {
            return;
        }
        let is_git = from.join("HEAD").exists();
        let mut names = HashSet::new();
        for entry in entries.flatten() {
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
            let (from, to) = (entry.path(), to.join(&name));
            let is_file = kind.is_file() && !passes(&name);
            if is_file || kind.is_dir() || kind.is_symlink() {
                names.insert(name.clone());
            }
            if kind.is_dir() && is_git && name == OBJECTS {
                self.objects(&from, &to, budget);
            } else if kind.is_dir() && is_git && (name == "refs" || name == "logs") {
                copy_refs(&from, &to, depth - 1, budget);
            } else if kind.is_dir() {
                self.folder(&from, &to, depth - 1, budget);
            } else if kind.is_symlink() {
                link(&from, &to);
            } else if is_file {
                budget.file(&from, &to);
            }
        }
        budget.prune(to, &names);
    }

    /// A folder `objects`: packs, and 256 folders of loose ones.
    fn objects(&mut self, from: &Path, to: &Path, budget: &mut Budget) {
        let Ok(entries) = fs::read_dir(from) else { return };
        let mut names: Vec<OsString> = entries.flatten().map(|entry| entry.file_name()).collect();
        // Packs come first.
        names.sort_by_key(|name| name.len() == 2);
        if self.is_large {
            names.retain(|name| name.len() != 2);
        }
        for name in &names {
            self.fan(&from.join(name), &to.join(name), budget);
        }
        budget.prune(to, &names.into_iter().collect());
    }

    /// One folder of objects.
    fn fan(&mut self, from: &Path, to: &Path, budget: &mut Budget) {
        let Ok(found) = fs::symlink_metadata(from) else { return };
        let is_pack = from.file_name().is_some_and(|name| name.len() != 2);
        if !found.is_dir() || (same_time(&found, to) && !is_pack) || (!is_pack && budget.is_over) {
            return;
        }
        let began = SystemTime::now();
        let (Ok(entries), Ok(())) = (fs::read_dir(from), fs::create_dir_all(to)) else { return };
        let mut names = HashSet::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            if !entry.file_type().is_ok_and(|kind| kind.is_file()) || passes(&name) {
                continue;
            }
            if !is_pack && !budget.loose() {
                return;
            }
            self.object(&entry.path(), to, &name, is_pack, budget);
            names.insert(name);
        }
        if budget.adds_only {
            // A later one has to look again.
            return;
        }
        prune(to, &names);
        // What changes within the same tick leaves the same time.
        if let Ok(time) = found.modified()
            && began.duration_since(time).is_ok_and(|since| since > TICK)
        {
            drop(File::open(to).and_then(|to| to.set_times(FileTimes::new().set_modified(time))));
        }
    }

    fn object(
        &mut self,
        from: &Path,
        folder: &Path,
        name: &OsString,
        is_pack: bool,
        budget: &mut Budget,
    ) {
        let to = folder.join(name);
        match fs::hard_link(from, &to) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) if is_pack => {
                let wanted =
                    [&b".pack"[..], b".idx"].iter().any(|end| name.as_bytes().ends_with(end));
                let is_known = self.open.iter().any(|(of, known, _)| of == folder && known == name);
                if wanted
                    && !is_known
                    && self.open.len() < 2 * OPEN
                    && let Ok(file) = open_file(from)
                {
                    self.open.push((folder.to_owned(), name.clone(), file));
                }
            }
            Err(_) => {
                let len = fs::metadata(from).map_or(u64::MAX, |found| found.len());
                budget.copied = budget.copied.saturating_add(len);
                budget.is_over |= budget.copied > LOOSE.min(budget.part);
                if !budget.is_over {
                    file(from, &to);
                }
            }
        }
    }
}

/// A folder of files that are called as refs are: whatever its name, none is anything else.
fn copy_refs(from: &Path, to: &Path, depth: usize, budget: &mut Budget) {
    let Ok(entries) = fs::read_dir(from) else { return };
    if depth == 0 || fs::create_dir_all(to).is_err() {
        return;
    }
    let mut names = HashSet::new();
    for entry in entries.flatten() {
        let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
        let (from, to) = (entry.path(), to.join(&name));
        if name.as_encoded_bytes().ends_with(b".lock") {
            continue;
        }
        if kind.is_dir() {
            copy_refs(&from, &to, depth - 1, budget);
        } else if kind.is_symlink() {
            link(&from, &to);
        } else if kind.is_file() {
            budget.file(&from, &to);
        } else {
            continue;
        }
        names.insert(name);
    }
    budget.prune(to, &names);
}

/// Gives loose refs of the copy, which git has packed and removed meanwhile, what they are packed with.
fn follow_packed(git: &Path, copy: &Path) {
    let packed = refs::packed(git);
    // These are files in folders: no link is followed. A name that is no text may be another one.
    let names = refs::loose(copy).into_keys().filter(|name| !name.contains('\u{fffd}'));
    for name in names.filter(|name| fs::symlink_metadata(git.join(name)).is_err()) {
        let Some(id) = packed.get(&name) else { continue };
        let of = copy.join(&name);
        drop(fs::remove_file(&of).and_then(|()| fs::write(of, format!("{id}\n"))));
    }
}

/// What is left out: locks, examples, sockets of a watcher.
fn passes(name: &std::ffi::OsStr) -> bool {
    let name = name.as_encoded_bytes();
    [&b".lock"[..], b".sample"].iter().any(|end| name.ends_with(end))
        || name.starts_with(b"tmp_")
        || name == b"gc.pid"
}

fn same_time(found: &Metadata, copy: &Path) -> bool {
    fs::symlink_metadata(copy)
        .is_ok_and(|copy| (copy.mtime(), copy.mtime_nsec()) == (found.mtime(), found.mtime_nsec()))
}

/// Copies a file that is another than its copy, by length and time; gives how many bytes that took.
fn file(from: &Path, to: &Path) -> u64 {
    let Ok(found) = fs::symlink_metadata(from) else { return 0 };
    if !found.is_file() || found.len() > FILE {
        return 0;
    }
    let same = fs::symlink_metadata(to).is_ok_and(|copy| copy.len() == found.len());
    if same && same_time(&found, to) {
        return 0;
    }
    match copy(from, to) {
        Ok(copy) => {
            if let Ok(time) = found.modified()
                && SystemTime::now().duration_since(time).is_ok_and(|since| since > TICK)
            {
                drop(copy.set_times(FileTimes::new().set_modified(time)));
            }
        }
        // Half of it is worse than nothing.
        Err(_) => drop(fs::remove_file(to)),
    }
    found.len()
}

/// Copies a file with its rights.
fn copy(from: &Path, to: &Path) -> io::Result<File> {
    let from = open_file(from)?;
    let mut copy = File::create(to)?;
    let found = from.metadata()?;
    // What grows meanwhile is not followed for ever.
    io::copy(&mut from.take(FILE), &mut copy)?;
    copy.set_permissions(found.permissions())?;
    Ok(copy)
}

/// The folders of loose objects.
fn loose_ones(objects: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(objects).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().len() == 2).map(|entry| entry.path())
}

fn link(from: &Path, to: &Path) {
    let Ok(target) = fs::read_link(from) else { return };
    if fs::read_link(to).is_ok_and(|copy| copy == target) {
        return;
    }
    drop(fs::remove_file(to));
    drop(symlink(target, to));
}

/// Removes what the repository has no more.
fn prune(copy: &Path, names: &HashSet<OsString>) {
    let Ok(entries) = fs::read_dir(copy) else { return };
    for entry in entries.flatten().filter(|entry| !names.contains(&entry.file_name())) {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let path = entry.path();
        drop(if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) });
    }
}
