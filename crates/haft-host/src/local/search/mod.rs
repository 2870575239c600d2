//! Searches this machine with ripgrep's libraries, in this process.
//!
//! The walk is shared with other hosts ([`crate::walk`]); here it runs on open folders. Several
//! threads take files off the walk, search them, and deliver in order ([`ordered`]).
//!
//! **Invariant:** the walk starts at the located folder and goes down by single names. So a link
//! that is swapped in meanwhile redirects nothing (`disk` says how far this holds). Links are not
//! followed. A search that is asked to follow them runs over [`Fs`](crate::Fs), which checks their
//! targets. Dropping the future, `Break` and the stop token end all threads at their next read.

mod disk;
mod names;
mod ordered;

use std::{
    collections::VecDeque,
    env, fs,
    io::{self, Read as _},
    ops::ControlFlow,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError},
    time::Duration,
};

use futures::future::BoxFuture;
use grep_searcher::Searcher;
use ignore::gitignore::gitconfig_excludes_path;
use tokio_util::sync::CancellationToken;

pub(super) use self::disk::{Folder, enter, ignore_file, open_file, open_folder};
use self::{
    disk::{Buffered, advance, list, read_some},
    names::Finding,
    ordered::{Leave, Ordered, StopOnDrop},
};
use super::{Local, locate::At};
use crate::{
    FileKind, FindQuery, FoundLines, GrepQuery, Located, NameMatch, Search, SearchError, Skipped,
    Walk,
    generic_search::{self, matches_of},
    lines::{FileResult, Grep, encoding::HEAD},
    search::Sink,
    walk::{IGNORE_LIMIT, Item, Names, Rules, Walker},
};

/// Most threads of one search.
const THREADS: usize = 8;
/// How long a stopped search waits for its threads, to count what they passed over.
const PATIENCE: Duration = Duration::from_millis(50);
/// How many files are taken off the walk at once, ahead of the search.
const AHEAD: usize = 32;
/// In how many folders at most these are: each is held open.
const AHEAD_FOLDERS: usize = 8;

impl Search for Local {
    fn grep<'a>(
        &'a self,
        at: &'a Located,
        query: &'a GrepQuery,
        walk: Walk,
        sink: Sink<'a, FoundLines>,
    ) -> BoxFuture<'a, Result<Skipped, SearchError>> {
        let (at, query) = (at.clone(), query.clone());
        Box::pin(async move {
            let stop = walk.stop.clone();
            run(stop, sink, move |line| grep_job(&at, &query, walk, line)).await
        })
    }

    fn find<'a>(
        &'a self,
        at: &'a Located,
        query: &'a FindQuery,
        walk: Walk,
        sink: Sink<'a, NameMatch>,
    ) -> BoxFuture<'a, Result<Skipped, SearchError>> {
        let (host, at, query) = (self.aside(), at.clone(), query.clone());
        Box::pin(async move {
            let stop = walk.stop.clone();
            let batched = &mut |batch: Vec<NameMatch>| batch.into_iter().try_for_each(&mut *sink);
            let job = move |line: &Arc<_>| {
                if query.follow {
                    follow_job(&host, &at, &query, walk, line)
                } else {
                    find_job(&at, &query, &walk, line)
                }
            };
            run(stop, batched, job).await
        })
    }
}

/// Runs a search on threads of its own and hands its results on in order.
async fn run<T: Send + 'static>(
    stop: CancellationToken,
    sink: &mut (dyn FnMut(T) -> ControlFlow<()> + Send),
    job: impl FnOnce(&Arc<Ordered<T>>) -> Result<Walked, SearchError> + Send + 'static,
) -> Result<Skipped, SearchError> {
    let line = Arc::new(Ordered::new());
    let _stop = StopOnDrop(Arc::clone(&line));
    let leave = Leave(Arc::clone(&line));
    let begun = tokio::task::spawn_blocking(move || job(&leave.0));
    let mut stopped = false;
    loop {
        let next = tokio::select! {
            biased;
            () = stop.cancelled() => { stopped = true; break }
            next = line.next() => next,
        };
        let Some(result) = next else { break };
        if sink(result).is_break() {
            stopped = true;
            break;
        }
    }
    if stopped {
        line.stop();
        drop(tokio::time::timeout(PATIENCE, line.ended()).await);
        if line.busy() {
            return Ok(Skipped { stopped, ..line.skipped() });
        }
    }
    let walked =
        begun.await.map_err(|e| io::Error::other(format!("the search broke off: {e}")))??;
    let mut skipped = line.skipped();
    if let Some(walker) = walked {
        add(&mut skipped, walker.lock().unwrap_or_else(PoisonError::into_inner).skipped());
    }
    Ok(Skipped { stopped, ..skipped })
}

/// The walk of a search; none for a single file.
type Walked = Option<Arc<Mutex<Walker<Folder>>>>;

fn add(to: &mut Skipped, from: &Skipped) {
    to.ignored += from.ignored;
    to.denied += from.denied;
    to.unreadable += from.unreadable;
    to.loops += from.loops;
    to.outside += from.outside;
    to.cause = from.cause.clone().or(to.cause.take());
}

/// Where the user's own excludes are, as git and ripgrep look for them.
///
/// The library does that with a regular expression, which takes longer to build than a small tree
/// to search; so it is asked only where a configuration has the word.
fn excludes_path() -> Option<PathBuf> {
    let named = |name| env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = env::home_dir();
    let below_home = |name| home.as_ref().map(|home| home.join(name));
    let folder = named("XDG_CONFIG_HOME").or_else(|| below_home(".config"));
    let files = [
        named("GIT_CONFIG_GLOBAL"),
        below_home(".gitconfig"),
        folder.as_ref().map(|folder| folder.join("git/config")),
        named("GIT_CONFIG_SYSTEM").or_else(|| Some("/etc/gitconfig".into())),
    ];
    let word = b"excludesfile";
    let speaks = |text: Vec<u8>| text.windows(word.len()).any(|at| at.eq_ignore_ascii_case(word));
    if files.into_iter().flatten().any(|path| fs::read(path).is_ok_and(speaks)) {
        return gitconfig_excludes_path();
    }
    Some(folder?.join("git/ignore"))
}

/// The user's own excludes, as git and ripgrep read them.
fn global_excludes(walk: &Walk) -> Option<Vec<u8>> {
    let path = excludes_path()?;
    // The person's own file, which may be a link; it is judged by both names.
    let real = fs::canonicalize(&path).ok()?;
    for path in [&path, &real] {
        if !(walk.excludes)(&Local::path(path).ok()?) {
            return None;
        }
    }
    read_some(open_file(rustix::fs::CWD, real.as_os_str().as_encoded_bytes()).ok()??, IGNORE_LIMIT)
}

/// Opens the root and starts a walk in it.
pub(super) fn start(
    at: &Located,
    mut rules: Rules,
    walk: &Walk,
    names: bool,
) -> io::Result<Walker<Folder>> {
    let held = At::of(at)?.inside(at)?;
    let root = open_folder(&*held, b".")?;
    if rules.reads_ignore_files()
        && let Some(text) = global_excludes(walk)
    {
        rules.set_global(&text);
    }
    let mut walker = Walker::new(&at.real, rules, walk, names, false);
    let (listed, left) = list(&root)?;
    walker.begin(root, (0, 0), listed, left);
    Ok(walker)
}

/// What the threads of one search for lines share.
struct Grepping {
    walker: Arc<Mutex<Walker<Folder>>>,
    /// Files that were taken off the walk, in order, with their numbers.
    files: Mutex<VecDeque<(u64, Item<Folder>)>>,
    grep: Grep,
    root: Located,
    line: Arc<Ordered<FoundLines>>,
    /// Of big files only one at a time is looked at for its encoding: each is held whole.
    look: Mutex<()>,
}

/// What one of the threads has for itself.
struct ThreadState {
    grep: Grep,
    searcher: Searcher,
    buffer: Vec<u8>,
}

fn grep_job(
    at: &Located,
    query: &GrepQuery,
    walk: Walk,
    line: &Arc<Ordered<FoundLines>>,
) -> Result<Walked, SearchError> {
    let grep = Grep::new(query)?;
    let rules = Rules::grep(query)?;
    if at.kind != FileKind::FOLDER {
        grep_file(at, &grep, &walk, line)?;
        return Ok(None);
    }
    let walker = Arc::new(Mutex::new(start(at, rules, &walk, false)?));
    drop(walk);
    let shared = Arc::new(Grepping {
        walker: Arc::clone(&walker),
        files: Mutex::default(),
        grep,
        root: at.clone(),
        line: Arc::clone(line),
        look: Mutex::default(),
    });
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    for _ in 1..threads {
        line.join();
        let (shared, leave) = (Arc::clone(&shared), Leave(Arc::clone(line)));
        tokio::task::spawn_blocking(move || {
            shared.work();
            drop(leave);
        });
    }
    shared.work();
    Ok(Some(walker))
}

/// Searches one file that was named itself.
fn grep_file(
    at: &Located,
    grep: &Grep,
    walk: &Walk,
    line: &Ordered<FoundLines>,
) -> Result<(), SearchError> {
    let number = line.begin();
    if !(walk.allowed)(&at.real) {
        line.end(number, None, |skipped| skipped.denied += 1);
        return Ok(());
    }
    let file = At::of(at)?.file(at)?;
    let skip = grep.skip(|| None);
    let reader = || Positioned { file: &file, offset: 0 };
    let search =
        |grep: &Grep| grep.search(&mut grep.searcher(true), reader(), skip, &|| line.stopped());
    let look = |most: usize| {
        let mut bytes = Vec::new();
        reader().take(most as u64).read_to_end(&mut bytes).ok().map(|_| bytes)
    };
    let mut grep = grep.clone();
    let mut result = search(&grep);
    while let Some(next) = grep.again(&result, look) {
        grep = next;
        result = search(&grep);
    }
    let name = at.real.parent().map_or_else(|| at.real.text(), |p| at.real.shown_from(&p));
    deliver(line, number, || name.into_owned(), result);
    Ok(())
}

/// Reads a file that others may read, too, without its shared position.
struct Positioned<'a> {
    file: &'a rustix::fd::OwnedFd,
    offset: u64,
}

impl io::Read for Positioned<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = rustix::io::pread(self.file, buffer, self.offset)?;
        self.offset += length as u64;
        Ok(length)
    }
}

/// The name is only worked out for a file of which something is told.
fn deliver(
    line: &Ordered<FoundLines>,
    number: u64,
    name: impl FnOnce() -> String,
    result: FileResult,
) {
    let mut counts = Skipped::default();
    counts.took(&result);
    let error = result.error.as_ref().map(ToString::to_string);
    let told = result.count > 0 || error.is_some();
    let name = if told { name() } else { String::new() };
    let found = matches_of(&name, result);
    let stopped = error.is_some() && line.stopped();
    line.end(number, found, |skipped| {
        skipped.searched += counts.searched;
        skipped.binary += counts.binary;
        skipped.parts += counts.parts;
        skipped.unread += counts.unread;
        if let Some(error) = error.as_ref().filter(|_| !stopped) {
            skipped.unreadable += 1;
            skipped.cause.get_or_insert_with(|| format!("{name}: {error}"));
        }
    });
}

/// The lock where it is free.
fn tried<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Grepping {
    /// Takes files off the walk until it ends.
    fn work(&self) {
        let grep = self.grep.clone();
        let mut own = ThreadState { searcher: grep.searcher(false), grep, buffer: Vec::new() };
        while let Some((number, item)) = self.take() {
            if !self.line.turn(number) {
                return;
            }
            self.search(&mut own, number, &item);
        }
    }

    /// The next file. While others are searched, one of the threads walks on for all.
    fn take(&self) -> Option<(u64, Item<Folder>)> {
        let (next, few) = {
            let mut files = self.files();
            (files.pop_front(), files.len() < AHEAD_FOLDERS)
        };
        if next.is_some() {
            if few
                && self.line.has_room()
                && let Some(mut walker) = tried(&self.walker)
            {
                self.walk_on(&mut walker);
            }
            return next;
        }
        while self.line.room() {
            let mut walker = self.walker.lock().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have walked on meanwhile, or takes what this one finds.
            let found = self.files().pop_front();
            if found.is_some() {
                return found;
            }
            if !self.walk_on(&mut walker) {
                return self.files().pop_front();
            }
        }
        None
    }

    fn files(&self) -> MutexGuard<'_, VecDeque<(u64, Item<Folder>)>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes files off the walk; false at its end. Each may be searched while the walk goes on.
    fn walk_on(&self, walker: &mut Walker<Folder>) -> bool {
        let mut folders: Vec<Folder> = Vec::new();
        for _ in 0..AHEAD {
            if folders.len() >= AHEAD_FOLDERS {
                break;
            }
            let Some(item) = advance(walker, &|| self.line.stopped()) else { return false };
            if !folders.last().is_some_and(|last| Arc::ptr_eq(last, &item.folder)) {
                folders.push(Arc::clone(&item.folder));
            }
            let number = self.line.begin();
            self.files().push_back((number, item));
        }
        true
    }

    /// Searches a file once more, and as often as it takes.
    fn again(
        &self,
        grep: &Grep,
        mut result: FileResult,
        buffer: &mut Vec<u8>,
        (item, skip): (&Item<Folder>, u64),
    ) -> FileResult {
        let mut grep = grep.clone();
        loop {
            let mut turn = None;
            let next = grep.again(&result, |most| {
                if most > HEAD {
                    turn = Some(self.look.lock().unwrap_or_else(PoisonError::into_inner));
                }
                read_some(open_file(&item.folder, &item.name).ok()??, most)
            });
            drop(turn);
            let Some(next) = next else { return result };
            let Ok(Some(file)) = open_file(&item.folder, &item.name) else { return result };
            let file = Buffered::new(file, buffer);
            result = next.search(&mut next.searcher(false), file, skip, &|| self.line.stopped());
            grep = next;
        }
    }

    fn search(&self, own: &mut ThreadState, number: u64, item: &Item<Folder>) {
        let ThreadState { grep, searcher, buffer } = own;
        let name = || item.path.shown_from(&self.root.real).into_owned();
        match open_file(&item.folder, &item.name) {
            Ok(None) => self.line.end(number, None, |_| {}),
            Ok(Some(file)) => {
                let file = Buffered::new(file, buffer);
                let skip = grep.skip(|| Some(name()));
                let mut result = grep.search(searcher, file, skip, &|| self.line.stopped());
                if result.tight || result.doubt.is_some() {
                    result = self.again(grep, result, buffer, (item, skip));
                }
                deliver(&self.line, number, name, result);
            }
            Err(error) => self.line.end(number, None, |skipped| {
                skipped.unreadable += 1;
                skipped.cause.get_or_insert_with(|| format!("{}: {error}", name()));
            }),
        }
    }
}

/// A search for names that enters links, over [`Fs`](crate::Fs) from this one thread.
fn follow_job(
    host: &Local,
    at: &Located,
    query: &FindQuery,
    walk: Walk,
    line: &Ordered<Vec<NameMatch>>,
) -> Result<Walked, SearchError> {
    let global = global_excludes(&walk);
    let sink = &mut |found: NameMatch| {
        let size = found.path.len() + size_of::<NameMatch>();
        line.end(line.begin(), Some((vec![found], size)), |_| {});
        if line.room() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let search = generic_search::find(host, global, at, query, walk, sink);
    let skipped = tokio::runtime::Handle::current().block_on(search)?;
    line.end(line.begin(), None, |all| *all = skipped.clone());
    Ok(None)
}

fn find_job(
    at: &Located,
    query: &FindQuery,
    walk: &Walk,
    line: &Arc<Ordered<Vec<NameMatch>>>,
) -> Result<Walked, SearchError> {
    let names = Names::new(&query.pattern)?;
    if at.kind != FileKind::FOLDER {
        let number = line.begin();
        let allowed = (walk.allowed)(&at.real);
        let found =
            generic_search::find_file(at, &names)?.filter(|_| allowed).map(|one| (vec![one], 0));
        line.end(number, found, |skipped| skipped.denied += u64::from(!allowed));
        return Ok(None);
    }
    let walker = start(at, Rules::find(query), walk, true)?;
    Finding::run(names, query.times, line, walker);
    Ok(None)
}
