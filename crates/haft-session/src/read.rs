//! Reads logs, line by line, in bounded memory, without a lock.
//!
//! **Invariant:** a bad line is told with its number and does not end the reading; only a failing
//! disk does.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use haft_types::{Event, EventId, Hash};
use serde::Deserialize;

use crate::{
    Blobs, Format, LineError, LineFault, SessionError, Tree, files, head::Head, large_values,
};

/// The most bytes of a line that is read; written lines stay far below.
pub const LINE_MAX: usize = 4 << 20;

/// The lines of a log.
pub(crate) struct Lines<R = BufReader<File>> {
    path: PathBuf,
    reader: R,
    /// Number of the last line that was read.
    number: u64,
    line: Vec<u8>,
    ended: bool,
}

impl Lines {
    pub(crate) fn open(path: &Path) -> Result<Self, SessionError> {
        let file = files::regular(path).and_then(|_| File::open(path));
        let file = file.map_err(|error| SessionError::io("open", path, error))?;
        Ok(Self::new(path, BufReader::with_capacity(64 << 10, file)))
    }
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(path: &Path, reader: R) -> Self {
        Self { path: path.to_owned(), reader, number: 0, line: Vec::new(), ended: false }
    }

    /// The next line without its line feed; none at the end.
    pub(crate) fn read(&mut self) -> Option<Result<&[u8], LineFault>> {
        if self.ended {
            return None;
        }
        self.number += 1;
        match self.fill() {
            Ok(Some(true)) => Some(Ok(&self.line)),
            Ok(Some(false)) => Some(Err(LineFault::TooLong { max: LINE_MAX })),
            Ok(None) => {
                self.ended = true;
                (!self.line.is_empty()).then_some(Err(LineFault::Torn))
            }
            Err(error) => {
                self.ended = true;
                Some(Err(error.into()))
            }
        }
    }

    pub(crate) fn error(&self, fault: LineFault) -> LineError {
        LineError { path: self.path.clone(), line: self.number, fault }
    }

    /// Reads up to a line feed; false where the line is too long, none where the file ends first.
    fn fill(&mut self) -> io::Result<Option<bool>> {
        self.line.clear();
        let mut fits = true;
        loop {
            let bytes = match self.reader.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if bytes.is_empty() {
                return Ok(None);
            }
            let feed = memchr::memchr(b'\n', bytes);
            let taken = feed.unwrap_or(bytes.len());
            fits &= self.line.len() + taken <= LINE_MAX;
            if fits {
                self.line.extend_from_slice(&bytes[..taken]);
            }
            let used = taken + usize::from(feed.is_some());
            self.reader.consume(used);
            if feed.is_some() {
                return Ok(Some(fits));
            }
        }
    }
}

/// The events of a log in the order in which they were written, large values put back.
pub struct Events {
    lines: Lines,
    blobs: Blobs,
    /// Their types; none for all.
    kinds: Option<&'static [&'static str]>,
}

impl Events {
    pub(crate) fn open(log: &Path, blobs: Blobs) -> Result<Self, SessionError> {
        Ok(Self { lines: Lines::open(log)?, blobs, kinds: None })
    }

    /// Only events of these types, as the log names them; of others no more than that is read.
    #[must_use]
    pub fn only(self, kinds: &'static [&'static str]) -> Self {
        Self { kinds: Some(kinds), ..self }
    }
}

impl Iterator for Events {
    type Item = Result<Event, LineError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = self.lines.read()?;
            if let (Ok(line), Some(kinds)) = (&line, self.kinds)
                && Head::of(line).is_some_and(|head| !kinds.contains(&head.kind))
            {
                continue;
            }
            let event = line.and_then(|line| large_values::decode(line, &self.blobs));
            return Some(event.map_err(|fault| self.lines.error(fault)));
        }
    }
}

/// The events of one branch of a log, oldest first, large values put back; the others are not
/// even looked at.
pub struct Branch {
    lines: Lines,
    blobs: Blobs,
    /// None where the whole log is one branch.
    path: Option<BTreeSet<EventId>>,
    /// Their types; none for all.
    kinds: Option<&'static [&'static str]>,
    tree: Tree,
    leaf: EventId,
}

impl Branch {
    pub(crate) fn open(
        log: &Path,
        blobs: Blobs,
        leaf: Option<EventId>,
    ) -> Result<Self, SessionError> {
        let mut tree = Tree::default();
        let mut lines = Lines::open(log)?;
        while let Some(line) = lines.read() {
            if let Some(link) = line.ok().and_then(Head::of) {
                if link.v > Format::NEWEST {
                    return Err(SessionError::Newer { path: log.to_owned(), version: link.v });
                }
                tree.add(link.id, link.parent);
            }
        }
        let last = tree.last().unwrap_or_default();
        let leaf = leaf.unwrap_or(last);
        if leaf > last {
            return Err(SessionError::NoSuchEvent { wanted: leaf, last });
        }
        let path = tree.path(leaf);
        let path = (path.len() < tree.len()).then(|| path.into_iter().collect());
        Ok(Self { lines: Lines::open(log)?, blobs, path, kinds: None, tree, leaf })
    }

    /// Only events of these types, as the log names them; of others no more than that is read.
    #[must_use]
    pub fn only(self, kinds: &'static [&'static str]) -> Self {
        Self { kinds: Some(kinds), ..self }
    }

    /// The log's events and their parents.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The last event of this branch; 0 in an empty log.
    pub fn leaf(&self) -> EventId {
        self.leaf
    }
}

impl Iterator for Branch {
    type Item = Result<Event, LineError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = self.lines.read()?;
            if let Some(head) = line.as_ref().ok().and_then(|line| Head::of(line))
                && (self.kinds.is_some_and(|kinds| !kinds.contains(&head.kind))
                    || self.path.as_ref().is_some_and(|path| !path.contains(&head.id)))
            {
                continue;
            }
            let event = line.and_then(|line| large_values::decode(line, &self.blobs));
            return Some(event.map_err(|fault| self.lines.error(fault)));
        }
    }
}

/// What a look at the hash chain of a log found.
#[derive(Debug)]
pub struct Verdict {
    /// Lines that follow each other as they should, from the first.
    pub lines: u64,
    /// Hash of the last of them: noted elsewhere it proves that line too, which no later one does.
    pub head: Hash,
    /// The first line that is broken, or that shows that the one before it is.
    pub broken: Option<LineError>,
}

/// Checks that each line of a log names the line before it.
pub(crate) fn verify(log: &Path) -> Result<Verdict, SessionError> {
    #[derive(Deserialize)]
    struct Chained {
        #[serde(default)]
        prev: String,
    }
    let mut lines = Lines::open(log)?;
    let mut verdict = Verdict { lines: 0, head: Hash::of(b""), broken: None };
    while let Some(line) = lines.read() {
        let checked = line.and_then(|line| {
            let chained: Chained = serde_json::from_slice(line)
                .map_err(|error| LineFault::NotAnEvent(error.to_string()))?;
            let actual = verdict.head.to_string();
            if chained.prev != actual {
                return Err(LineFault::Chain { named: chained.prev, actual });
            }
            Ok(Hash::of(line))
        });
        match checked {
            Ok(hash) => (verdict.head, verdict.lines) = (hash, verdict.lines + 1),
            Err(fault) => {
                verdict.broken = Some(lines.error(fault));
                break;
            }
        }
    }
    Ok(verdict)
}
