//! The part of a tree scan that covers what git ignores.
//!
//! First, everything known is checked again, and what is new is counted. Folders whose stamp is
//! unchanged are not listed. Then what is new is read until the limits are reached: single files
//! first, then smaller folders before bigger ones.
//!
//! **Invariant:** what was scanned once stays covered for as long as it exists. Only what is new
//! can find no room. At most [`NAMES`] names are visited, beside those directly in topmost folders.

use std::{
    collections::{BTreeMap, HashSet},
    io,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use haft_types::{EntryKind, Follow, HostPath, is_rebuilt};
use rustix::{
    fd::OwnedFd,
    fs::{self, AtFlags, Mode, OFlags, RawDir, Stat},
};

use super::{HIDDEN_MOST, Job, Tally, leftovers, stamp_at};
use crate::{
    Content, Copies, FileCount, FileKind, IgnoredFolder, IgnoredTree, Node, Stamp, SurveyError,
    TreeScan, Walk,
    local::{
        locate::{self, At, Lookup, entry_kind, kind_of, stamp_of},
        search::{Folder, open_folder},
    },
    walk::{DEPTH_LIMIT, FOLDER_LIMIT, PASSED_MOST},
};

/// Most names below topmost folders that are gone through, and most that are thought of to be read.
const NAMES: u64 = 50_000;
/// Longest that what is new is looked for; what was known is looked at in any case.
const WITHIN: Duration = Duration::from_secs(2);
/// Bytes of names that are listed at once.
const LIST: usize = 32 << 10;

/// Copies as far as the limit for what git ignores goes.
struct Bounded<'a> {
    copies: &'a dyn Copies,
    left: AtomicU64,
    /// True once there was no room beyond that.
    is_full: AtomicBool,
}

impl Copies for Bounded<'_> {
    fn add(&self, content: &[u8]) -> Option<u64> {
        let len = content.len() as u64;
        let left = self.left.load(Ordering::Relaxed).checked_sub(len)?;
        let at = self.copies.add(content);
        if at.is_some() {
            self.left.store(left, Ordering::Relaxed);
        } else {
            self.is_full.store(true, Ordering::Relaxed);
        }
        at
    }

    fn get(&self, at: u64, len: u64) -> std::io::Result<Bytes> {
        self.copies.get(at, len)
    }

    fn used(&self) -> u64 {
        self.copies.used()
    }
}

/// A folder that waits to be looked into.
struct Pending {
    /// The open folder that it is in.
    above: Folder,
    path: HostPath,
    name: Box<[u8]>,
    depth: usize,
}

/// A topmost folder that git ignores.
struct Top {
    path: HostPath,
    count: FileCount,
    /// The folders in it, to be looked into.
    below: Vec<Box<[u8]>>,
    new: Vec<New>,
}

impl Top {
    /// Few files first.
    fn size(&self) -> (u64, &HostPath) {
        (self.count.whole.unwrap_or(u64::MAX).max(self.count.own), &self.path)
    }
}

/// What becomes of a name.
enum Sort {
    /// It is nobody's loss.
    Nothing,
    /// A rule hides it.
    Hidden,
    /// It is not looked into.
    Passed,
    Folder,
    File,
}

/// Names in one folder that are new, or whose files have no copy yet.
struct New {
    folder: HostPath,
    names: Vec<Box<[u8]>>,
}

/// A look at what git ignores.
struct Look<'a, 'j> {
    job: &'a Job<'j>,
    copies: &'a Bounded<'j>,
    lookup: Lookup,
    walk: &'a Walk,
    survey: &'a mut TreeScan,
    until: Instant,
    seen: Tally,
    /// Files and links that have a node.
    files: usize,
    folders: usize,
    /// Names below topmost folders.
    names: u64,
    /// Names that were judged.
    judged: u64,
    /// Names that are new.
    news: u64,
    /// What is known and has no copy.
    bare: Vec<New>,
    buffer: Vec<u8>,
}

impl Job<'_> {
    /// Looks at what the walk passed over, as far as the limits go.
    pub(super) fn ignored(
        &self,
        lookup: Lookup,
        survey: &mut TreeScan,
        walk: &Walk,
    ) -> Result<Tally, SurveyError> {
        let (singles, tops) = self.passed_over(survey);
        let known = &self.known.ignored_tree;
        if singles.is_empty() && tops.is_empty() {
            survey.ignored_tree.has_room = known.files > 0;
            return Ok(Tally::default());
        }
        let left = AtomicU64::new(self.limits.ignored_bytes.saturating_sub(known.bytes));
        let copies = Bounded { copies: self.copies, left, is_full: AtomicBool::new(false) };
        let job = self.with(&copies);
        let mut look = Look {
            job: &job,
            copies: &copies,
            lookup,
            walk,
            survey,
            until: Instant::now() + WITHIN,
            seen: Tally::default(),
            files: 0,
            folders: 0,
            names: 0,
            judged: 0,
            news: 0,
            bare: Vec::new(),
            buffer: Vec::new(),
        };
        let singles = look.singles(singles);
        let tops = look.tops(tops);
        let files = look.files;
        look.read_new(singles, tops);
        let (files_now, seen) = (look.files, look.seen);
        survey.ignored_tree.files = files_now;
        survey.ignored_tree.has_room = files < known.files;
        if self.stop.is_cancelled() { Err(SurveyError::Stopped) } else { Ok(seen) }
    }
}

impl Job<'_> {
    /// What the walk passed over and is to be looked at: what is no folder by the folder that it is
    /// in, and the topmost folders.
    fn passed_over(&self, survey: &TreeScan) -> (Vec<New>, Vec<HostPath>) {
        let passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = |path: &&HostPath| {
            let root = survey.roots.iter().find(|root| path.is_within(root));
            root.is_some_and(|root| {
                let mut names = path.names().skip(root.names().count());
                !names.any(|name| name == b".git" || is_rebuilt(name))
            })
        };
        let mut folders: BTreeMap<HostPath, Vec<Box<[u8]>>> = BTreeMap::new();
        // Where there are more, which of them are known is chance.
        if passed.files.len() <= PASSED_MOST {
            for path in passed.files.iter().filter(is_open) {
                if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
                    folders.entry(folder).or_default().push(name.into());
                }
            }
        }
        let new = |(folder, mut names): (HostPath, Vec<Box<[u8]>>)| {
            names.sort();
            New { folder, names }
        };
        let mut tops: Vec<HostPath> = match passed.folders.len() {
            0..=PASSED_MOST => passed.folders.iter().filter(is_open).cloned().collect(),
            _ => Vec::new(),
        };
        tops.sort();
        (folders.into_iter().map(new).collect(), tops)
    }
}

/// Opens a folder that no link leads to; none where there is none.
fn open(lookup: Lookup, path: &HostPath) -> Option<(Folder, Stat)> {
    let at = locate::locate(lookup, path, Follow::No).ok()?;
    let is_here = at.real == *path && at.kind == FileKind::FOLDER;
    let held = At::of(&at).ok().filter(|_| is_here)?.inside(&at).ok()?;
    let stat = fs::fstat(&held).ok()?;
    Some((held, stat))
}

/// Has folders wait to be looked into, the first one on top.
fn push(
    pending: &mut Vec<Pending>,
    (above, path, depth): (&Folder, &HostPath, usize),
    names: &[Box<[u8]>],
) {
    pending.extend(names.iter().rev().filter_map(|name| {
        let path = path.join_bytes(name).ok()?;
        Some(Pending { above: Arc::clone(above), path, name: name.clone(), depth })
    }));
}

fn stat_of(folder: &OwnedFd, name: &[u8]) -> Option<Stat> {
    fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT).ok()
}

impl Look<'_, '_> {
    fn known(&self) -> &IgnoredTree {
        &self.job.known.ignored_tree
    }

    fn is_over(&self) -> bool {
        self.job.stop.is_cancelled() || Instant::now() > self.until
    }

    /// Takes note of what stands at a name; false where nothing does that is looked at.
    fn node(&mut self, path: HostPath, at: (&OwnedFd, &[u8]), stat: &Stat, anew: bool) -> bool {
        let known = self.job.known.nodes.get(&path);
        let (folder, name) = at;
        let old = known.filter(|_| !anew);
        let Some(node) = self.job.node((&path, folder, name), stat, old, &mut self.buffer) else {
            return false;
        };
        let is_folder = node.kind == EntryKind::Folder;
        let bytes = bytes_of(&node);
        let is_known = known.is_some();
        let was = self.survey.nodes.insert(path, node);
        let tree = &mut self.survey.ignored_tree;
        tree.bytes = tree.bytes.saturating_sub(was.as_ref().map_or(0, bytes_of)) + bytes;
        if was.is_none() {
            self.seen += Tally { met: usize::from(is_known), all: 1 };
            *(if is_folder { &mut self.folders } else { &mut self.files }) += 1;
        }
        true
    }

    /// Looks at what is known of a folder that git does not ignore; gives the other names.
    fn singles(&mut self, of: Vec<New>) -> Vec<New> {
        let was = self.job.known.passed.as_ref().filter(|_| !self.known().has_room);
        let mut new = Vec::new();
        for New { folder, mut names } in of {
            let known = &self.job.known.nodes;
            let is_known =
                |name: &[u8]| folder.join_bytes(name).is_ok_and(|path| known.contains_key(&path));
            // What was there, and found no room, finds none now.
            let is_refused = |name: &[u8]| {
                let path = folder.join_bytes(name);
                path.is_ok_and(|path| was.is_some_and(|was| was.contains(&path)))
            };
            let (old, mut others): (Vec<_>, Vec<_>) =
                names.drain(..).partition(|name| is_known(name));
            others.retain(|name| !is_refused(name));
            if !old.is_empty()
                && let Some((inside, _)) = open(self.lookup, &folder)
            {
                for name in &old {
                    self.again(&folder, &inside, name);
                }
            }
            if !others.is_empty() {
                new.push(New { folder, names: others });
            }
        }
        new
    }

    /// Looks again at a file; false where none is there.
    fn again(&mut self, folder: &HostPath, inside: &OwnedFd, name: &[u8]) -> bool {
        let Ok(path) = folder.join_bytes(name) else { return false };
        let Some(stat) = stat_of(inside, name).filter(|stat| is_looked_at(kind_of(stat))) else {
            return false;
        };
        if !(self.walk.allowed)(&path) || !self.node(path.clone(), (inside, name), &stat, false) {
            return false;
        }
        let node = self.survey.nodes.get(&path);
        if node.is_some_and(|node| matches!(node.content, Content::NoRoom(_))) {
            if let Some(last) = self.bare.last_mut().filter(|last| last.folder == *folder) {
                last.names.push(name.into());
            } else {
                self.bare.push(New { folder: folder.clone(), names: vec![name.into()] });
            }
        }
        true
    }

    /// Looks at the topmost folders, and goes down into each as far as the limits go; the smaller ones
    /// first.
    fn tops(&mut self, paths: Vec<HostPath>) -> Vec<Top> {
        let mut tops = Vec::new();
        for path in paths {
            if self.is_over() {
                break;
            }
            let mut top =
                Top { path, count: FileCount::default(), below: Vec::new(), new: Vec::new() };
            let Some((inside, stat)) = open(self.lookup, &top.path) else { continue };
            let path = top.path.clone();
            if let Some(folder) = self.folder(&path, &inside, &stat, &mut top.new) {
                top.count.own = folder.files;
                top.below.clone_from(&folder.folders);
            }
            tops.push(top);
        }
        tops.sort_by(|a, b| a.size().cmp(&b.size()));
        for top in &mut tops {
            top.count.whole = self.descend(top);
        }
        tops.sort_by(|a, b| a.size().cmp(&b.size()));
        let counts = tops.iter().map(|top| (top.path.clone(), top.count));
        self.survey.ignored_tree.counts.extend(counts);
        tops
    }

    /// Looks at all that is below a topmost folder; gives how many files it has, where all is counted.
    fn descend(&mut self, top: &mut Top) -> Option<u64> {
        let mut files = top.count.own;
        let mut pending: Vec<Pending> = Vec::new();
        if !top.below.is_empty() {
            let (inside, _) = open(self.lookup, &top.path)?;
            push(&mut pending, (&inside, &top.path, 1), &std::mem::take(&mut top.below));
        }
        while let Some(Pending { above, path, name, depth }) = pending.pop() {
            if self.names > NAMES || self.is_over() {
                return None;
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(inside) = fs::openat(&above, &*name, flags, Mode::empty()) else { continue };
            let Ok(stat) = fs::fstat(&inside) else { continue };
            let inside = Arc::new(inside);
            let Some(folder) = self.folder(&path, &inside, &stat, &mut top.new) else { continue };
            files += folder.files;
            self.names += folder.files + folder.folders.len() as u64;
            if depth < DEPTH_LIMIT {
                push(&mut pending, (&inside, &path, depth + 1), &folder.folders);
            }
        }
        Some(files)
    }

    /// Looks at a folder, at what is known in it, and at its names where it is not as it was. None
    /// where it cannot be listed.
    fn folder(
        &mut self,
        path: &HostPath,
        inside: &Folder,
        stat: &Stat,
        new: &mut Vec<New>,
    ) -> Option<Arc<IgnoredFolder>> {
        let is_new = !self.job.known.nodes.contains_key(path);
        if !is_new || self.folders < self.job.limits.ignored_files {
            self.node(path.clone(), (inside, b"."), stat, false);
        }
        let (stamp, known) = (stamp_of(stat), self.known());
        let old = known.folders.get(path);
        let is_same = |old: &&Arc<IgnoredFolder>| {
            (old.stamp, old.is_fresh) == (stamp, false) && (old.is_whole() || !known.has_room)
        };
        let (mut listed, names) = if let Some(old) = old.filter(is_same) {
            (Arc::clone(old), Vec::new())
        } else if let Ok((listed, names)) = self.list(path, inside, stamp, old.cloned().as_deref())
        {
            (Arc::new(listed), names)
        } else {
            self.survey.passed.get_or_insert_default().insert(path.clone());
            return None;
        };
        let covered: Vec<bool> =
            Arc::clone(&listed).covered.iter().map(|name| self.again(path, inside, name)).collect();
        if covered.contains(&false) {
            let mut covered = covered.into_iter();
            Arc::make_mut(&mut listed).covered.retain(|_| covered.next().unwrap_or(false));
        }
        if !names.is_empty() {
            new.push(New { folder: path.clone(), names });
        }
        self.note(path, &listed);
        self.survey.ignored_tree.folders.insert(path.clone(), Arc::clone(&listed));
        Some(listed)
    }

    /// Takes note of what is not looked into.
    fn note(&mut self, path: &HostPath, listed: &IgnoredFolder) {
        let paths = |names: &[Box<[u8]>]| -> Vec<HostPath> {
            names.iter().filter_map(|name| path.join_bytes(name).ok()).collect()
        };
        let passed = self.survey.passed.get_or_insert_default();
        if passed.len() <= 2 * PASSED_MOST {
            passed.extend(paths(&listed.passed));
        }
        let tree = &mut self.survey.ignored_tree;
        if tree.hidden.len() < HIDDEN_MOST {
            let state = |path: &HostPath| {
                let file = stamp_at(path).filter(|(kind, _)| *kind != EntryKind::Folder);
                file.map(|(_, stamp)| stamp)
            };
            let hidden = paths(&listed.hidden).into_iter();
            tree.hidden.extend(hidden.map(|path| (path.clone(), state(&path))));
        }
    }

    /// Lists a folder; with the names that are new. What was covered before is taken to be so.
    fn list(
        &mut self,
        path: &HostPath,
        inside: &OwnedFd,
        stamp: Stamp,
        old: Option<&IgnoredFolder>,
    ) -> io::Result<(IgnoredFolder, Vec<Box<[u8]>>)> {
        let opened = open_folder(inside, b".")?;
        let was: HashSet<&[u8]> =
            old.iter().flat_map(|old| &old.covered).map(|name| &**name).collect();
        let is_fresh = self.job.is_fresh(&stamp);
        let mut listed = IgnoredFolder { stamp, is_fresh, ..IgnoredFolder::default() };
        let mut names = Vec::new();
        let mut buffer = Vec::with_capacity(LIST);
        let mut entries = RawDir::new(&opened, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") || leftovers::is_temp(name) {
                continue;
            }
            if listed.files >= FOLDER_LIMIT as u64 {
                break;
            }
            let kind = entry_kind(entry.file_type());
            let kind = kind.or_else(|| stat_of(&opened, name).as_ref().map(kind_of));
            let Some(kind) = kind else { continue };
            if kind != EntryKind::Folder && !is_looked_at(kind) {
                continue;
            }
            match self.sort(path, name, kind) {
                Sort::Nothing => {}
                Sort::Hidden if listed.hidden.len() >= HIDDEN_MOST => {}
                Sort::Hidden => listed.hidden.push(name.into()),
                Sort::Passed => listed.passed.push(name.into()),
                Sort::Folder if listed.folders.len() as u64 > NAMES => {}
                Sort::Folder => listed.folders.push(name.into()),
                Sort::File => {
                    listed.files += 1;
                    if was.contains(name) {
                        listed.covered.push(name.into());
                    } else if self.news < NAMES {
                        self.news += 1;
                        names.push(name.into());
                    }
                }
            }
        }
        names.sort();
        Ok((listed, names))
    }

    /// What becomes of a name of a folder.
    fn sort(&mut self, folder: &HostPath, name: &[u8], kind: EntryKind) -> Sort {
        self.judged += 1;
        // How many names of a huge folder are hidden does not matter much.
        if self.judged <= NAMES
            && let Ok(path) = folder.join_bytes(name)
            && !(self.walk.allowed)(&path)
        {
            return if (self.walk.excludes)(&path) { Sort::Nothing } else { Sort::Hidden };
        }
        match kind {
            _ if name == b".git" => Sort::Passed,
            EntryKind::Folder if is_rebuilt(name) => Sort::Passed,
            EntryKind::Folder => Sort::Folder,
            _ => Sort::File,
        }
    }

    /// Reads what has no copy yet, and then what is new, as far as there is room.
    fn read_new(&mut self, singles: Vec<New>, tops: Vec<Top>) {
        let most = self.job.limits.ignored_bytes;
        let left = most.saturating_sub(self.survey.ignored_tree.bytes);
        self.copies.left.store(left, Ordering::Relaxed);
        for New { folder, names } in std::mem::take(&mut self.bare) {
            self.read(&folder, names, true);
        }
        for New { folder, names } in
            singles.into_iter().chain(tops.into_iter().flat_map(|top| top.new))
        {
            let covered = self.read(&folder, names, false);
            if let Some(listed) = self.survey.ignored_tree.folders.get_mut(&folder)
                && !covered.is_empty()
            {
                Arc::make_mut(listed).covered.extend(covered);
            }
        }
    }

    /// Reads files of one folder, for the first time or `again`; gives the names of those that have a
    /// node now.
    fn read(&mut self, folder: &HostPath, names: Vec<Box<[u8]>>, again: bool) -> Vec<Box<[u8]>> {
        let is_over = |look: &Self| {
            let is_full = look.copies.is_full.load(Ordering::Relaxed);
            is_full || (!again && look.files >= look.job.limits.ignored_files) || look.is_over()
        };
        let mut read = Vec::new();
        if is_over(self) {
            return read;
        }
        let Some((inside, _)) = open(self.lookup, folder) else { return read };
        for name in names {
            if is_over(self) {
                break;
            }
            if self.read_one(folder, &inside, &name, again) {
                read.push(name);
            }
        }
        read
    }

    /// Reads one file where there is room; false where it has no node.
    fn read_one(&mut self, folder: &HostPath, inside: &OwnedFd, name: &[u8], again: bool) -> bool {
        let Ok(path) = folder.join_bytes(name) else { return false };
        let Some(stat) = stat_of(inside, name) else { return false };
        let (kind, size) = (kind_of(&stat), stamp_of(&stat).size);
        let is_big = size > self.job.limits.file_bytes;
        let fits = is_big || size <= self.copies.left.load(Ordering::Relaxed);
        is_looked_at(kind)
            && (fits || kind != EntryKind::File)
            && (self.walk.allowed)(&path)
            && self.node(path, (inside, name), &stat, again)
    }
}

fn is_looked_at(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::File | EntryKind::Link)
}

/// The bytes of a copy.
fn bytes_of(node: &Arc<Node>) -> u64 {
    match node.content {
        Content::Kept { len, .. } => len,
        _ => 0,
    }
}
