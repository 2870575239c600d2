//! Tree scans of this machine: several threads walk, check each name, and read what is new.
//!
//! **Invariant:** files are opened below an open folder by one name and without following a link.
//! The recorded stamp was taken after the content was read. If it differs from the one before, the
//! file counts as fresh and is read again by the next scan.

mod ignored;
mod job;

use std::{
    collections::{HashMap, HashSet},
    io::{self, Read as _},
    ops::AddAssign,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Instant, SystemTime},
};

use futures::future::BoxFuture;
use haft_types::{EntryKind, Follow, Hash, HostPath, Rights};
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{self, AtFlags, Mode, OFlags, Stat, StatxFlags},
    io::Errno,
    process::{Gid, Uid},
};
use tokio_util::sync::CancellationToken;

use super::{
    Local,
    git_clean::Clean,
    git_index::{self, Entry},
    leftovers,
    locate::{self, At, Lookup, kind_of, stamp_of},
    metadata,
    search::{Folder, enter, ignore_file, open_file, start},
};
use crate::{
    Content, Copies, CreationTime, ExtraPaths, FileKind, GitId, Located, NewEntry, Node, Stamp,
    SurveyError, SurveyLimits, TreeScan, TreeScanner, Walk,
    fault::fault,
    tree_scan::{SECOND, tick},
    walk::{Item, PASSED_MOST, Passed, Rules, Step, Walker},
};

/// Most threads of one survey.
const THREADS: usize = 8;
/// How many names a thread walks before it gives a part away.
const GRAIN: usize = 64;
/// Most paths that rules hide and that are noted.
const HIDDEN_MOST: usize = 1_000;

impl TreeScanner for Local {
    fn survey<'a>(
        &'a self,
        roots: &'a [Located],
        known: Arc<TreeScan>,
        copies: Arc<dyn Copies>,
        limits: SurveyLimits,
        (walk, named): (Walk, &'a ExtraPaths),
    ) -> BoxFuture<'a, Result<TreeScan, SurveyError>> {
        let (roots, lookup, home) = (roots.to_vec(), self.lookup, self.home.clone());
        let named = named.clone();
        Box::pin(async move {
            // Who waits no more lets it end.
            let stop = walk.stop.child_token();
            let _stops = stop.clone().drop_guard();
            let work = move || {
                let began = now();
                let lists = Lists::of(&known, &roots, &home);
                let looked = |clean: &Clean| -> Result<TreeScan, SurveyError> {
                    let times = (Instant::now() + limits.within, began);
                    let job = Job::new(&known, &*copies, clean, limits, stop.clone(), times);
                    let (mut survey, mut seen) = job.run(&roots, &walk)?;
                    job.note_passed(&mut survey);
                    seen += job.ignored(lookup, &mut survey, &walk)?;
                    note_repositories(&mut survey);
                    // Where nothing was come upon twice, that many are all of them.
                    if seen != (Tally { met: known.nodes.len(), all: survey.nodes.len() }) {
                        job.carry_over(lookup, &roots, &mut survey, &walk);
                    }
                    job.tracked(lookup, &lists, &mut survey, &walk)?;
                    job.named(lookup, &named, &roots, &mut survey, &walk);
                    Ok(survey)
                };
                let mut survey = looked(&lists.clean)?;
                if lists.clean.is_spoilt(&survey) {
                    survey = looked(&Clean::default())?;
                }
                survey.objects = lists.clean.objects(&known, &survey);
                Ok(survey)
            };
            tokio::task::spawn_blocking(work)
                .await
                .map_err(|error| io::Error::other(format!("the look broke off: {error}")))?
        })
    }

    #[cfg(target_os = "linux")]
    fn is_past(&self, moment: i128) -> bool {
        let last = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        i128::from(last.tv_sec) * SECOND + i128::from(last.tv_nsec) > moment
    }

    fn born(&self, path: &HostPath) -> Option<CreationTime> {
        let at = locate::locate(self.lookup, path, Follow::No).ok()?;
        let held = At::of(&at).ok().filter(|_| at.real == *path)?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let stat = fs::statx(&held.folder, &*held.name, flags, StatxFlags::BTIME).ok()?;
        let known = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
        let born = i128::from(stat.stx_btime.tv_sec) * SECOND + i128::from(stat.stx_btime.tv_nsec);
        let names = if at.kind == FileKind::FOLDER { 1 } else { at.names };
        known.then_some(CreationTime { at: born, names })
    }

    fn is_gone(&self, path: &HostPath) -> bool {
        match locate::locate(self.lookup, path, Follow::No) {
            Ok(at) => at.real == *path && at.kind == FileKind::Missing,
            Err(error) => is_gone(&error),
        }
    }

    fn make<'a>(&'a self, at: &'a Located, made: NewEntry) -> BoxFuture<'a, io::Result<()>> {
        let (at, writes) = (at.clone(), Arc::clone(&self.writes));
        self.blocking(move || {
            let held = At::of(&at)?;
            if !held.missing.is_empty() {
                return Err(io::ErrorKind::NotFound.into());
            }
            let done = match &made {
                NewEntry::Folder => fs::mkdirat(&held.folder, &*held.name, Mode::RWXU),
                NewEntry::Link(target) => fs::symlinkat(&**target, &held.folder, &*held.name),
            };
            done.map_err(|error| fault(&at.real, "cannot be made", error))?;
            writes.changed(&[&at.real]);
            Ok(())
        })
    }

    fn target<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<Vec<u8>>> {
        let at = at.clone();
        self.blocking(move || {
            let held = At::of(&at)?;
            let target = fs::readlinkat(&held.folder, &*held.name, Vec::new());
            let target = target.map_err(|error| fault(&at.real, "cannot be read", error))?;
            Ok(target.into_bytes())
        })
    }

    fn give<'a>(
        &'a self,
        folder: &'a Located,
        rights: &'a Rights,
    ) -> BoxFuture<'a, io::Result<()>> {
        let (folder, rights) = (folder.clone(), rights.clone());
        self.blocking(move || give(&folder, &rights))
    }
}

/// Gives a folder, or a file, an owner and permissions.
fn give(folder: &Located, rights: &Rights) -> io::Result<()> {
    let failed = |error| fault(&folder.real, "cannot be given its rights", error);
    let held = At::of(folder)?;
    let stat = held.unchanged(folder)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let is_folder = folder.kind == FileKind::FOLDER;
    let flags = if is_folder { flags | OFlags::DIRECTORY } else { flags };
    let open = fs::openat(&held.folder, &*held.name, flags, Mode::empty());
    if let (Some((user, group)), Ok(open)) = (rights.owner, &open)
        && (user, group) != (stat.st_uid, stat.st_gid)
    {
        // One who may not give it away keeps it.
        let _ = fs::fchown(open, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    }
    let mode = Mode::from(rights.mode & 0o7777);
    match open {
        Ok(open) => fs::fchmod(&open, mode).map_err(failed),
        // One that may not be read is named; it was no link a moment ago.
        Err(Errno::ACCESS) => {
            fs::chmodat(&held.folder, &*held.name, mode, AtFlags::empty()).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

/// In nanoseconds since the Unix epoch.
pub(super) fn now() -> i128 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(i128::MAX))
}

/// What the threads of one survey share.
struct Job<'a> {
    known: &'a TreeScan,
    copies: &'a dyn Copies,
    /// What need not be read.
    clean: &'a Clean,
    limits: SurveyLimits,
    stop: CancellationToken,
    until: Instant,
    now: i128,
    files: AtomicUsize,
    folders: AtomicUsize,
    /// Why it ended early.
    fault: Mutex<Option<SurveyError>>,
    ended: AtomicBool,
    given: Mutex<WorkQueue>,
    /// A part was given away, or a thread has nothing to do.
    changed: Condvar,
    /// How many parts are wished for, to be asked without the lock.
    hungry: AtomicUsize,
    /// What the walk passes over.
    passed: Passed,
}

/// Parts of the walk that wait for a thread.
#[derive(Default)]
struct WorkQueue {
    parts: Vec<Walker<Folder>>,
    idle: usize,
}

/// How many nodes were come upon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    /// Where something was known.
    met: usize,
    all: usize,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.met += other.met;
        self.all += other.all;
    }
}

/// What one thread found.
#[derive(Default)]
struct ThreadState {
    nodes: Vec<(HostPath, Arc<Node>)>,
    rules: Vec<(HostPath, Arc<[u8]>)>,
    others: Vec<HostPath>,
    /// How many of the nodes stand where something was known.
    met: usize,
    buffer: Vec<u8>,
}

impl Job<'_> {
    /// What the walk finds.
    fn run(&self, roots: &[Located], walk: &Walk) -> Result<(TreeScan, Tally), SurveyError> {
        for root in roots {
            let mut walker = match start(root, Rules::git(), walk, true) {
                Ok(walker) => walker,
                Err(error) if is_gone(&error) => continue,
                Err(error) => return Err(error.into()),
            };
            walker.tell_passed(Passed::clone(&self.passed));
            self.given().parts.push(walker);
        }
        let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        let found: Vec<ThreadState> = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| self.work(threads))).collect();
            let mut found = vec![self.work(threads)];
            for other in others {
                match other.join() {
                    Ok(own) => found.push(own),
                    Err(_) => self.end(io::Error::other("a part of the look broke off").into()),
                }
            }
            found
        });
        if let Some(fault) = self.fault.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(fault);
        }
        let mut survey = TreeScan {
            began: self.now,
            nodes: HashMap::with_capacity(self.count()),
            roots: roots.iter().map(|root| root.real.clone()).collect(),
            ..TreeScan::default()
        };
        let mut seen = Tally::default();
        for own in found {
            seen += Tally { met: own.met, all: own.nodes.len() };
            survey.nodes.extend(own.nodes);
            survey.rules.extend(own.rules);
            survey.others.extend(own.others);
        }
        Ok((survey, seen))
    }

    fn count(&self) -> usize {
        self.files.load(Ordering::Relaxed) + self.folders.load(Ordering::Relaxed)
    }

    fn given(&self) -> MutexGuard<'_, WorkQueue> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the work of all threads.
    fn end(&self, fault: SurveyError) {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
        self.ended.store(true, Ordering::Relaxed);
        drop(self.given());
        self.changed.notify_all();
    }

    fn ended(&self) -> bool {
        if self.ended.load(Ordering::Relaxed) {
            return true;
        }
        if self.stop.is_cancelled() {
            self.end(SurveyError::Stopped);
        } else if Instant::now() > self.until {
            self.end(SurveyError::TooLong(self.limits.within));
        }
        self.ended.load(Ordering::Relaxed)
    }

    /// Walks parts until none is left.
    fn work(&self, threads: usize) -> ThreadState {
        let mut own = ThreadState::default();
        while let Some(mut walker) = self.part(threads) {
            let mut names = 0;
            while let Some(item) = self.advance(&mut walker, &mut own) {
                self.look(item, &mut own);
                names += 1;
                if names >= GRAIN && self.hungry.load(Ordering::Relaxed) > 0 {
                    names = 0;
                    self.share(&mut walker);
                }
            }
        }
        own
    }

    /// Waits for a part; none once nothing is left, or the work has ended.
    fn part(&self, threads: usize) -> Option<Walker<Folder>> {
        let mut given = self.given();
        given.idle += 1;
        loop {
            if self.ended.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(part) = given.parts.pop() {
                given.idle -= 1;
                self.wish(&given);
                return Some(part);
            }
            if given.idle == threads {
                self.changed.notify_all();
                return None;
            }
            self.wish(&given);
            given = self.changed.wait(given).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wish(&self, given: &WorkQueue) {
        self.hungry.store(given.idle.saturating_sub(given.parts.len()), Ordering::Relaxed);
    }

    /// Gives the end of a walk to a thread that has nothing to do.
    fn share(&self, walker: &mut Walker<Folder>) {
        let Some(part) = walker.split() else { return };
        let mut given = self.given();
        given.parts.push(part);
        self.wish(&given);
        drop(given);
        self.changed.notify_one();
    }

    /// Walks on to the next entry; none at the end, or once all shall end.
    fn advance(&self, walker: &mut Walker<Folder>, own: &mut ThreadState) -> Option<Item<Folder>> {
        while !self.ended() {
            match walker.next() {
                Step::Ignore { base, names, path } => {
                    let text = ignore_file(&base, names);
                    own.rules.extend(text.as_ref().map(|text| (path, text.as_slice().into())));
                    walker.ignore_file(text.as_deref());
                }
                Step::Enter { folder, name, .. } => enter(walker, &folder, &name),
                Step::Item(item) => return Some(item),
                Step::Done => return None,
            }
        }
        None
    }

    /// Takes note of what stands at a name.
    fn look(&self, item: Item<Folder>, own: &mut ThreadState) {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        // What is gone by now was never there.
        let Ok(stat) = fs::statat(&item.folder, &*item.name, flags) else { return };
        let count = match kind_of(&stat) {
            EntryKind::Folder => &self.folders,
            EntryKind::File | EntryKind::Link => &self.files,
            // What is no file of a project is only told of.
            _ => {
                own.others.extend(Some(item.path).filter(|_| own.others.len() < PASSED_MOST));
                return;
            }
        };
        if count.fetch_add(1, Ordering::Relaxed) >= self.limits.files {
            self.end(SurveyError::TooMany(self.limits.files));
            return;
        }
        let at = (&item.path, &item.folder, &*item.name);
        let known = self.known.nodes.get(&item.path);
        if let Some(node) = self.node(at, &stat, known, &mut own.buffer) {
            own.met += usize::from(known.is_some());
            own.nodes.push((item.path, node));
        }
    }

    /// What stands at a name; none where it is gone, or is a temporary file of haft.
    fn node(
        &self,
        (path, folder, name): (&HostPath, impl AsFd, &[u8]),
        stat: &Stat,
        known: Option<&Arc<Node>>,
        buffer: &mut Vec<u8>,
    ) -> Option<Arc<Node>> {
        // What a write of haft is at this moment is nobody's file.
        if leftovers::is_temp(name) {
            return None;
        }
        let (kind, stamp) = (kind_of(stat), stamp_of(stat));
        if let Some(known) = known
            && (known.kind, known.stamp, known.is_fresh) == (kind, stamp, false)
        {
            return Some(Arc::clone(known));
        }
        let mut rights = Rights::of_mode(stat.st_mode & 0o7777);
        rights.owner = Some((stat.st_uid, stat.st_gid));
        let mut node = Node {
            kind,
            stamp,
            rights,
            content: Content::Nothing,
            is_fresh: self.is_fresh(&stamp),
        };
        match kind {
            EntryKind::File if let Some((id, len)) = self.clean(path, &folder, name, stat) => {
                node.content = Content::Git { id, len };
            }
            EntryKind::File => self.read(known, folder, name, &mut node, buffer)?,
            EntryKind::Link => {
                let target = fs::readlinkat(folder, name, Vec::new()).ok()?;
                node.content = Content::Link(target.into_bytes());
            }
            _ => {}
        }
        Some(Arc::new(node))
    }

    /// What git has of a file, where that is all that there is to know of it.
    fn clean(
        &self,
        path: &HostPath,
        folder: impl AsFd,
        name: &[u8],
        stat: &Stat,
    ) -> Option<(GitId, u64)> {
        let clean = self.clean.of(path, stat)?;
        let fits = clean.1 <= self.limits.file_bytes && !self.is_fresh(&stamp_of(stat));
        (fits && metadata::has_no_attributes(folder, name)).then_some(clean)
    }

    fn is_fresh(&self, stamp: &Stamp) -> bool {
        stamp.changed >= self.now - tick(stamp.changed)
    }

    /// Reads a file and keeps a copy; none where it is gone.
    fn read(
        &self,
        known: Option<&Arc<Node>>,
        folder: impl AsFd,
        name: &[u8],
        node: &mut Node,
        buffer: &mut Vec<u8>,
    ) -> Option<()> {
        if node.stamp.size > self.limits.file_bytes {
            node.content = Content::Big;
            return Some(());
        }
        let Ok(opened) = open_file(folder, name) else {
            node.content = Content::Unread;
            return Some(());
        };
        let opened = opened?;
        buffer.clear();
        let most = self.limits.file_bytes.saturating_add(1);
        let mut file = opened.into_file();
        let read = (&mut file).take(most).read_to_end(buffer);
        let file = OwnedFd::from(file);
        let now = fs::fstat(&file);
        let (Ok(_), Ok(now)) = (read, now) else {
            node.content = Content::Unread;
            return Some(());
        };
        let stamp = stamp_of(&now);
        node.is_fresh |= stamp != node.stamp || stamp.size != buffer.len() as u64;
        node.stamp = stamp;
        metadata::note(&file, &mut node.rights);
        node.content =
            if buffer.len() as u64 >= most { Content::Big } else { self.keep(known, buffer) };
        Some(())
    }

    /// Keeps a copy, but for what is kept of the same file already.
    fn keep(&self, known: Option<&Arc<Node>>, content: &[u8]) -> Content {
        let hash = Hash::of(content);
        if let Some(known) = known
            && let Content::Kept { hash: old, .. } = known.content
            && old == hash
        {
            return known.content.clone();
        }
        match self.copies.add(content) {
            Some(at) => Content::Kept { hash, at, len: content.len() as u64 },
            None => Content::NoRoom(hash),
        }
    }

    /// Looks after what was known and was not come upon: it may be ignored now, or stand in a folder
    /// that cannot be listed any more. Only what is really gone is left out.
    fn carry_over(&self, lookup: Lookup, roots: &[Located], survey: &mut TreeScan, walk: &Walk) {
        let lost = self.known.nodes.iter().filter(|(path, _)| {
            roots.iter().any(|root| path.is_within(&root.real))
                && !survey.nodes.contains_key(path)
                && (walk.allowed)(path)
        });
        let mut buffer = Vec::new();
        let found: Vec<_> = lost
            .filter_map(|(path, known)| {
                let node = match locate::locate(lookup, path, Follow::No) {
                    Ok(at) if at.real == *path => self.at(&at, &mut buffer)?,
                    // A folder above is a link now.
                    Ok(_) => return None,
                    Err(error) if is_gone(&error) => return None,
                    // So it is where the link leads to nothing that can be looked up.
                    Err(_) if link_above(lookup, path) => return None,
                    Err(_) => Arc::clone(known),
                };
                Some((path.clone(), node))
            })
            .collect();
        survey.nodes.extend(found);
    }
}

/// What of a `.git` a command of git changes: what is checked out, the settings, branches and hooks.
const OF_GIT: [&str; 7] =
    ["HEAD", "config", "packed-refs", "refs/heads", "refs/stash", "logs/HEAD", "hooks"];

impl Job<'_> {
    /// What stands at a located path.
    fn at(&self, at: &Located, buffer: &mut Vec<u8>) -> Option<Arc<Node>> {
        let held = At::of(at).ok()?;
        let stat = held.now().ok()??;
        let known = self.known.nodes.get(&at.real);
        self.node((&at.real, &held.folder, &held.name), &stat, known, buffer)
    }

    /// Takes note of what was passed over.
    fn note_passed(&self, survey: &mut TreeScan) {
        let passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        let state = |path: &HostPath| stamp_at(path).filter(|(kind, _)| *kind != EntryKind::Folder);
        let hidden = passed.hidden.iter().take(HIDDEN_MOST);
        let hidden = hidden.map(|path| (path.clone(), state(path).map(|(_, stamp)| stamp)));
        survey.ignored_tree.hidden.extend(hidden);
        if passed.folders.len() > PASSED_MOST {
            return;
        }
        let mut all: HashSet<HostPath> = passed.folders.iter().cloned().collect();
        if passed.files.len() > PASSED_MOST {
            survey.ignored_tree.loose.clone_from(&passed.counts);
        } else {
            all.extend(passed.files.iter().cloned());
        }
        survey.passed = Some(all);
    }

    /// Looks after what git keeps track of although an ignore file names it.
    fn tracked(
        &self,
        lookup: Lookup,
        lists: &Lists,
        survey: &mut TreeScan,
        walk: &Walk,
    ) -> Result<(), SurveyError> {
        survey.indexes.clone_from(&lists.stamps);
        survey.listed.clone_from(&lists.listed);
        let mut buffer = Vec::new();
        for (root, entries) in &lists.changed {
            for path in entries.iter().map(|entry| &entry.path) {
                if !path.is_within(root) || survey.nodes.contains_key(path) || !(walk.allowed)(path)
                {
                    continue;
                }
                let at = locate::locate(lookup, path, Follow::No);
                let Some(at) = at.ok().filter(|at| at.real == *path) else { continue };
                if at.kind == FileKind::FOLDER {
                    continue;
                }
                if self.files.fetch_add(1, Ordering::Relaxed) >= self.limits.files {
                    return Err(SurveyError::TooMany(self.limits.files));
                }
                if let Some(node) = self.at(&at, &mut buffer) {
                    survey.nodes.insert(path.clone(), node);
                }
            }
        }
        Ok(())
    }
}

/// Most files right inside of named folders that are looked at, and most bytes of them all.
const INSIDE: (usize, u64) = (32, 8 << 20);

impl Job<'_> {
    /// Looks at what is named and ignored.
    fn named(
        &self,
        lookup: Lookup,
        named: &ExtraPaths,
        roots: &[Located],
        survey: &mut TreeScan,
        walk: &Walk,
    ) {
        let (most, mut bytes) = INSIDE;
        let inside =
            |path: &&HostPath| path.parent().is_some_and(|parent| named.folders.contains(&parent));
        let mut passed: Vec<HostPath> =
            survey.passed.iter().flatten().filter(inside).cloned().collect();
        passed.sort();
        let paths = named.paths.iter().map(|path| (path, false));
        let passed = passed.iter().take(most).map(|path| (path, true));
        let mut buffer = Vec::new();
        for (path, is_found) in paths.chain(passed) {
            let Ok(at) = locate::locate(lookup, path, Follow::No) else { continue };
            let root = roots.iter().find(|root| at.real.is_within(&root.real));
            let (Some(root), FileKind::Entry(EntryKind::File | EntryKind::Link)) = (root, at.kind)
            else {
                continue;
            };
            let depth = root.real.names().count();
            let mut above = std::iter::successors(Some(at.real.clone()), HostPath::parent);
            let may = above.all(|path| path.names().count() <= depth || (walk.allowed)(&path));
            let of_git = at.real.names().skip(depth).any(|name| name == b".git");
            if !may || of_git || survey.nodes.contains_key(&at.real) {
                continue;
            }
            if is_found {
                let held = At::of(&at).ok().and_then(|held| held.now().ok().flatten());
                let size = held.map_or(u64::MAX, |stat| stamp_of(&stat).size);
                let Some(left) = bytes.checked_sub(size) else { continue };
                bytes = left;
            }
            if let Some(node) = self.at(&at, &mut buffer) {
                survey.named.insert(at.real.clone());
                survey.nodes.insert(at.real, node);
            }
        }
        let before = self.known.named.iter().filter(|path| survey.nodes.contains_key(*path));
        survey.named.extend(before.cloned());
    }
}

/// The lists of what git keeps track of.
#[derive(Default)]
struct Lists {
    /// Their states, by the folders of their repositories.
    stamps: HashMap<HostPath, Stamp>,
    /// Those that are others than before, each with the folder that is looked at. What one names
    /// that is as before was looked after then, and is carried over.
    changed: Vec<(HostPath, Vec<Entry>)>,
    /// The hashes of what they hold.
    listed: HashMap<HostPath, Hash>,
    clean: Clean,
}

impl Lists {
    fn of(known: &TreeScan, roots: &[Located], home: &HostPath) -> Self {
        let mut lists = Self::default();
        // Another process may have opened what git has of those.
        let lost =
            known.objects.is_empty() && known.nodes.values().any(|node| node.of_git().is_some());
        for root in roots {
            // The nearest folder upward that has one is that of the repository.
            let found = std::iter::successors(Some(root.real.clone()), HostPath::parent)
                .find_map(|top| Some((stamp_below(&top, ".git/index")?, top)));
            let Some((stamp, top)) = found else { continue };
            let is_new = lists.stamps.insert(top.clone(), stamp).is_none();
            if let Some(listed) = known.listed.get(&top)
                && known.indexes.get(&top) == Some(&stamp)
                && !lost
            {
                lists.listed.insert(top, *listed);
                continue;
            }
            let (entries, listed) = git_index::tracked(&top);
            lists.listed.insert(top.clone(), listed);
            if is_new {
                lists.clean.add(&top, home, (&entries, &stamp));
            }
            lists.changed.push((root.real.clone(), entries));
        }
        lists
    }
}

/// The state of what is at a path below another one; none where nothing is.
fn stamp_below(path: &HostPath, name: &str) -> Option<Stamp> {
    stamp_at(&path.join(name).ok()?).map(|(_, stamp)| stamp)
}

/// Takes note of the states of repositories.
fn note_repositories(survey: &mut TreeScan) {
    let passed = survey.passed.iter().flatten();
    for path in passed.filter(|path| path.file_name() == Some(b".git")) {
        let state = OF_GIT.iter().map(|name| stamp_below(path, name)).collect();
        survey.repositories.insert(path.clone(), state);
    }
}

/// What is at a path, and its state; none where nothing is.
fn stamp_at(path: &HostPath) -> Option<(EntryKind, Stamp)> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let stat = fs::statat(fs::CWD, path.as_bytes(), flags).ok()?;
    Some((kind_of(&stat), stamp_of(&stat)))
}

/// Reports whether one of the folders above a path is none any more, wherever it leads.
fn link_above(lookup: Lookup, path: &HostPath) -> bool {
    std::iter::successors(path.parent(), HostPath::parent).any(|above| {
        let at = locate::locate(lookup, &above, Follow::No);
        at.is_ok_and(|at| at.real == above && at.kind != FileKind::FOLDER)
    })
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn what_is_made_once_a_moment_is_past_is_younger() {
        let (folder, local) = (tempfile::tempdir().unwrap(), Local::new());
        for n in 0..50 {
            let (moment, path) = (now(), folder.path().join(n.to_string()));
            while !local.is_past(moment) {
                std::hint::spin_loop();
            }
            std::fs::write(&path, "x").unwrap();
            let about = std::fs::metadata(&path).unwrap();
            let made = i128::from(about.ctime()) * SECOND + i128::from(about.ctime_nsec());
            assert!(made > moment, "{made} {moment}");
            let born = local.born(&Local::path(&path).unwrap());
            assert!(born.is_none_or(|born| born.at > moment), "{born:?} {moment}");
        }
    }
}
