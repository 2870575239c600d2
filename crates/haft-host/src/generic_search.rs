//! Searches any host whose files can be listed and read, over [`Fs`] alone.
//!
//! It serves hosts without a search of their own: in memory, guarded, or written by others. It
//! gives the same results as the local search on the same tree, one file after the other.
//!
//! **Invariant:** every folder and file is reached from the located root by single names
//! ([`Fs::child`]). Links are followed only if the search for names asks for that; then the filter
//! is asked about their targets. A file is read in pieces. One of more than [`WHOLE`] bytes is
//! never held whole. This module does not know the excludes of a user's git configuration.

use std::{
    io::{self, Read},
    ops::ControlFlow,
    sync::Arc,
};

use bytes::{Buf, Bytes};
use futures::future::BoxFuture;
use grep_searcher::Searcher;
use haft_types::{EntryKind, FileMatches, Follow};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    FileKind, FindQuery, FoundLines, Fs, GrepQuery, Host, ListHow, Located, NameMatch, Search,
    SearchError, Skipped, Walk,
    lines::{
        FileResult, Grep,
        encoding::{self, HEAD},
    },
    search::Sink,
    walk::{Base, FOLDER_LIMIT, IGNORE_LIMIT, Item, Name, Names, Rules, Step, Walker},
};

/// Largest file that is read in one piece and searched at once, in bytes.
const WHOLE: u64 = 1 << 20;
/// How much of a larger file is read at once.
const PIECE: usize = 256 << 10;

/// A search over the files of any host.
#[derive(Clone, Copy)]
pub struct FsSearch<'a>(pub &'a dyn Fs);

type Folder = Arc<Located>;

/// Searches lines with the host's own search, or over its files if it has none.
///
/// # Errors
/// As [`Search::grep`].
///
/// # Cancel safety
/// As [`Search::grep`].
pub fn search_lines<'a>(
    host: &'a dyn Host,
    at: &'a Located,
    query: &'a GrepQuery,
    walk: Walk,
    sink: Sink<'a, FoundLines>,
) -> BoxFuture<'a, Result<Skipped, SearchError>> {
    match host.search() {
        Some(search) => search.grep(at, query, walk, sink),
        None => Box::pin(grep(host.fs(), at, query, walk, sink)),
    }
}

/// Searches names with the host's own search, or over its files if it has none.
///
/// # Errors
/// As [`Search::find`].
///
/// # Cancel safety
/// As [`Search::find`].
pub fn search_names<'a>(
    host: &'a dyn Host,
    at: &'a Located,
    query: &'a FindQuery,
    walk: Walk,
    sink: Sink<'a, NameMatch>,
) -> BoxFuture<'a, Result<Skipped, SearchError>> {
    match host.search() {
        Some(search) => search.find(at, query, walk, sink),
        None => Box::pin(find(host.fs(), None, at, query, walk, sink)),
    }
}

impl Search for FsSearch<'_> {
    fn grep<'a>(
        &'a self,
        at: &'a Located,
        query: &'a GrepQuery,
        walk: Walk,
        sink: Sink<'a, FoundLines>,
    ) -> BoxFuture<'a, Result<Skipped, SearchError>> {
        Box::pin(grep(self.0, at, query, walk, sink))
    }

    fn find<'a>(
        &'a self,
        at: &'a Located,
        query: &'a FindQuery,
        walk: Walk,
        sink: Sink<'a, NameMatch>,
    ) -> BoxFuture<'a, Result<Skipped, SearchError>> {
        Box::pin(find(self.0, None, at, query, walk, sink))
    }
}

/// What a file gave, with its size in memory; none without a match.
pub(crate) fn matches_of(name: &str, result: FileResult) -> Option<(FoundLines, usize)> {
    let file = FileMatches { path: name.to_owned(), count: result.count, lines: result.lines };
    let FileResult { skipped, hidden, joined, until, .. } = result;
    let found = FoundLines { file, skipped, hidden, joined, until };
    (result.count > 0).then(|| (found, result.size + name.len()))
}

/// The file that was named itself, where the pattern wants it.
pub(crate) fn find_file(at: &Located, names: &Names) -> io::Result<Option<NameMatch>> {
    let FileKind::Entry(kind) = at.kind else {
        let text = format!("{}: no such file or folder", at.real);
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    };
    let name = at.real.file_name().unwrap_or_default().to_vec();
    let modified = at.stamp.map_or(0, |stamp| stamp.modified);
    Ok(names.matches(&name, false).then_some(NameMatch { path: name, kind, modified }))
}

async fn grep(
    fs: &dyn Fs,
    at: &Located,
    query: &GrepQuery,
    walk: Walk,
    sink: Sink<'_, FoundLines>,
) -> Result<Skipped, SearchError> {
    let grep = Arc::new(Grep::new(query)?);
    let rules = Rules::grep(query)?;
    let named = at.kind != FileKind::FOLDER;
    let mut files = Files {
        fs,
        searcher: Some(grep.searcher(named)),
        grep,
        stop: walk.stop.clone(),
        skipped: Skipped::default(),
    };
    let mut walker = Walker::new(&at.real, rules, &walk, false, false);
    let whole = async {
        if named {
            if !(walk.allowed)(&at.real) {
                files.skipped.denied += 1;
                return Ok(false);
            }
            let name = at.real.parent().map_or_else(|| at.real.text(), |p| at.real.shown_from(&p));
            return Ok(files.search(at, &name, true).await?.is_some_and(|f| sink(f).is_break()));
        }
        begin(fs, at, &mut walker).await?;
        while let Some(item) = advance(fs, &mut walker).await {
            let file = match fs.child(&item.folder, &item.name, Follow::No).await {
                Ok(file) => file,
                Err(error) => {
                    files.unreadable(&item.path.shown_from(&at.real), &error);
                    continue;
                }
            };
            if file.kind == FileKind::FILE {
                let name = item.path.shown_from(&at.real);
                if files.search(&file, &name, false).await?.is_some_and(|f| sink(f).is_break()) {
                    return Ok(true);
                }
            }
        }
        Ok::<bool, SearchError>(false)
    };
    let ended = walk.stop.run_until_cancelled(whole).await;
    // What ended because it was stopped may tell so before its token does.
    let ended = ended.filter(|result| result.is_err() || !walk.stop.is_cancelled());
    finish(ended, &walker, files.skipped)
}

/// A search for names; `global` are excludes weaker than every ignore file.
pub(crate) async fn find(
    fs: &dyn Fs,
    global: Option<Vec<u8>>,
    at: &Located,
    query: &FindQuery,
    walk: Walk,
    sink: Sink<'_, NameMatch>,
) -> Result<Skipped, SearchError> {
    let names = Names::new(&query.pattern)?;
    let mut rules = Rules::find(query);
    if let Some(text) = global.filter(|_| !query.no_ignore) {
        rules.set_global(&text);
    }
    let mut skipped = Skipped::default();
    let mut walker = Walker::new(&at.real, rules, &walk, true, query.follow);
    let whole = async {
        if at.kind != FileKind::FOLDER {
            if !(walk.allowed)(&at.real) {
                skipped.denied += 1;
                return Ok(false);
            }
            return Ok(find_file(at, &names)?.is_some_and(|found| sink(found).is_break()));
        }
        begin(fs, at, &mut walker).await?;
        while let Some(item) = advance(fs, &mut walker).await {
            if !names.matches(&item.below, item.folderish) {
                continue;
            }
            let (mut kind, mut modified) = (item.kind, 0);
            if query.times {
                // Its time may not be asked for; its name was listed.
                if let Ok(file) = fs.child(&item.folder, &item.name, Follow::No).await {
                    let FileKind::Entry(now) = file.kind else { continue };
                    (kind, modified) = (now, file.stamp.map_or(0, |stamp| stamp.modified));
                }
            }
            if sink(NameMatch { path: item.below, kind, modified }) == ControlFlow::Break(()) {
                return Ok(true);
            }
        }
        Ok::<bool, SearchError>(false)
    };
    let ended = walk.stop.run_until_cancelled(whole).await;
    finish(ended, &walker, skipped)
}

/// Puts the counts together; `ended` is none when the search was cancelled.
fn finish(
    ended: Option<Result<bool, SearchError>>,
    walker: &Walker<Folder>,
    files: Skipped,
) -> Result<Skipped, SearchError> {
    let stopped = ended.transpose()?.unwrap_or(true);
    let folders = walker.skipped();
    Ok(Skipped {
        ignored: folders.ignored,
        denied: folders.denied + files.denied,
        unreadable: folders.unreadable + files.unreadable,
        cause: folders.cause.clone().or(files.cause),
        loops: folders.loops,
        outside: folders.outside,
        stopped,
        ..files
    })
}

async fn listed(fs: &dyn Fs, folder: &Located) -> io::Result<(Vec<Name>, u64)> {
    let listing = fs.list(folder, ListHow { limit: FOLDER_LIMIT, stat: false }).await?;
    let left = listing.total.saturating_sub(listing.entries.len() as u64);
    let name = |entry: crate::DirEntry| Name {
        bytes: entry.name,
        kind: entry.kind,
        to_folder: entry.to_folder,
    };
    Ok((listing.entries.into_iter().map(name).collect(), left))
}

fn id_of(folder: &Located) -> (u64, u64) {
    folder.stamp.map_or((0, 0), |stamp| stamp.id)
}

async fn begin(fs: &dyn Fs, at: &Located, walker: &mut Walker<Folder>) -> io::Result<()> {
    let (names, left) = listed(fs, at).await?;
    walker.begin(Arc::new(at.clone()), id_of(at), names, left);
    Ok(())
}

/// Walks on to the next entry; none at the end.
async fn advance(fs: &dyn Fs, walker: &mut Walker<Folder>) -> Option<Item<Folder>> {
    loop {
        match walker.next() {
            Step::Ignore { base, names, .. } => {
                let text = ignore_file(fs, base, names).await;
                walker.ignore_file(text.as_deref());
            }
            Step::Enter { folder, name, follow } => {
                enter(fs, walker, &folder, &name, follow).await;
            }
            Step::Item(item) => return Some(item),
            Step::Done => return None,
        }
    }
}

async fn enter(
    fs: &dyn Fs,
    walker: &mut Walker<Folder>,
    folder: &Located,
    name: &[u8],
    follow: bool,
) {
    let how = if follow { Follow::Yes } else { Follow::No };
    let entered = match fs.child(folder, name, how).await {
        Ok(entered) => entered,
        Err(error) => return walker.unreadable(error),
    };
    if entered.kind != FileKind::FOLDER {
        return walker.unreadable("is no folder any more");
    }
    if walker.may_enter(id_of(&entered), follow.then_some(&entered.real)) {
        match listed(fs, &entered).await {
            Ok((names, left)) => {
                let id = id_of(&entered);
                walker.entered(Arc::new(entered), id, names, left);
            }
            Err(error) => walker.unreadable(error),
        }
    }
}

/// Reads an ignore file; none where it is not there or is no regular file.
async fn ignore_file(fs: &dyn Fs, base: Base<Folder>, names: &[&[u8]]) -> Option<Bytes> {
    let mut at = match base {
        Base::In(folder) => folder,
        Base::Above(path) => Arc::new(fs.locate(&path, Follow::No).await.ok()?),
    };
    for name in names {
        if at.kind != FileKind::FOLDER {
            return None;
        }
        at = Arc::new(fs.child(&at, name, Follow::No).await.ok()?);
    }
    if at.kind != FileKind::Entry(EntryKind::File) {
        return None;
    }
    fs.read(&at, 0, IGNORE_LIMIT).await.ok()
}

/// The files of one search for lines.
struct Files<'a> {
    fs: &'a dyn Fs,
    grep: Arc<Grep>,
    /// Away only while a file is searched on another thread.
    searcher: Option<Searcher>,
    stop: CancellationToken,
    skipped: Skipped,
}

impl Files<'_> {
    /// Searches one file; only a file that was named itself fails the search.
    async fn search(
        &mut self,
        file: &Located,
        name: &str,
        named: bool,
    ) -> io::Result<Option<FoundLines>> {
        let skip = self.grep.skip(|| (!named).then(|| name.to_owned()));
        let mut searcher = self.searcher.take().unwrap_or_else(|| self.grep.searcher(named));
        let (result, first) = if file.size() <= WHOLE {
            let length = usize::try_from(WHOLE).unwrap_or(usize::MAX) + 1;
            match self.fs.read(file, 0, length).await {
                // It grew since it was located: it is searched in pieces like a large one.
                Ok(text) if text.len() == length => (None, None),
                Ok(text) => {
                    let stopped = || self.stop.is_cancelled();
                    let result = self.grep.search(&mut searcher, text.reader(), skip, &stopped);
                    (Some(result), None)
                }
                Err(error) => (None, Some(error)),
            }
        } else {
            (None, None)
        };
        if let Some(error) = first {
            self.searcher = Some(searcher);
            if named {
                return Err(error);
            }
            self.unreadable(name, &error);
            return Ok(None);
        }
        let result = if let Some(result) = result {
            self.searcher = Some(searcher);
            result
        } else {
            self.search_pieces(file, Arc::clone(&self.grep), searcher, skip).await
        };
        let result = self.again(file, result, (named, skip)).await;
        self.skipped.took(&result);
        // A reader fails where its search is stopped: that says nothing of the file.
        if let Some(error) = result.error.as_ref().filter(|_| !self.stop.is_cancelled()) {
            self.unreadable(name, error);
        }
        Ok(matches_of(name, result).map(|(found, _)| found))
    }

    fn unreadable(&mut self, name: &str, error: &io::Error) {
        self.skipped.unreadable += 1;
        self.skipped.cause.get_or_insert_with(|| format!("{name}: {error}"));
    }

    /// Searches a file again, as often as it takes: in smaller parts, or with its encoding.
    async fn again(
        &mut self,
        file: &Located,
        mut result: FileResult,
        (named, skip): (bool, u64),
    ) -> FileResult {
        let mut grep = Arc::clone(&self.grep);
        while let Some(next) = next(self.fs, &grep, &result, file).await {
            grep = Arc::new(next);
            let (usual, searcher) = (self.searcher.take(), grep.searcher(named));
            result = self.search_pieces(file, Arc::clone(&grep), searcher, skip).await;
            self.searcher = usual;
        }
        result
    }

    /// Searches a large file on another thread while this one reads it.
    async fn search_pieces(
        &mut self,
        file: &Located,
        grep: Arc<Grep>,
        mut searcher: Searcher,
        skip: u64,
    ) -> FileResult {
        let (send, receive) = mpsc::channel(2);
        let stop = self.stop.clone();
        let search = tokio::task::spawn_blocking(move || {
            let pieces = Pieces { receive, piece: Bytes::new() };
            let result = grep.search(&mut searcher, pieces, skip, &|| stop.is_cancelled());
            (searcher, result)
        });
        let mut offset = 0;
        loop {
            let piece = self.fs.read(file, offset, PIECE).await;
            let length = piece.as_ref().map_or(0, Bytes::len);
            let end = piece.is_ok() && length == 0;
            if end || send.send(piece).await.is_err() || length == 0 {
                break;
            }
            offset += length as u64;
        }
        drop(send);
        match search.await {
            Ok((searcher, result)) => {
                self.searcher = Some(searcher);
                result
            }
            Err(error) => {
                FileResult { error: Some(io::Error::other(error)), ..FileResult::default() }
            }
        }
    }
}

/// The search that has to go through a file again, where this one did not suffice.
async fn next(fs: &dyn Fs, grep: &Arc<Grep>, result: &FileResult, file: &Located) -> Option<Grep> {
    if let Some(doubt) = result.doubt.filter(|_| !result.tight) {
        for most in [HEAD, encoding::WHOLE + 1] {
            let Ok(bytes) = fs.read(file, 0, most).await else { break };
            let (grep, all) = (Arc::clone(grep), bytes.len() < most);
            let settle = move || grep.settled(doubt, &bytes, all);
            let settled = tokio::task::spawn_blocking(settle).await.ok()?;
            if settled.is_some() {
                return settled;
            }
        }
    }
    grep.again(result, |_| None)
}

/// Reads what another task sends.
struct Pieces {
    receive: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            match self.receive.blocking_recv() {
                Some(piece) => self.piece = piece?,
                None => return Ok(0),
            }
        }
        let length = self.piece.len().min(buffer.len());
        self.piece.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}
