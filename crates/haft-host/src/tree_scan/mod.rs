//! The state of whole folder trees, scanned before and after changes that no host sees.
//!
//! **Invariant:** what is reported of a path is what was there at one moment between the start and
//! the end of the scan. A file whose stamp could not tell a change from no change is read again by
//! the next scan. No link is followed. `.git` is left out, and so are ignored folders that tools
//! rebuild. Of all else that git ignores, as much is scanned as the limits allow.

mod ignored;

use std::{
    collections::{HashMap, HashSet},
    fmt, io,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use haft_types::{EntryKind, Hash, HostPath, Rights};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

pub use self::ignored::{FileCount, IgnoredFolder, IgnoredTree};
use crate::{
    GitReader, Located, Stamp, Walk,
    local::Pack,
    walk::{IGNORE_FILES, Rules, Verdict},
};

/// The state of one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its kind; a link is reported as a link.
    pub kind: EntryKind,
    /// Its stamp.
    pub stamp: Stamp,
    /// Owner and permissions; for a file also its attributes.
    pub rights: Rights,
    /// Its content.
    pub content: Content,
    /// True if it changed so shortly before it was scanned that a later change might leave the same
    /// stamp.
    pub is_fresh: bool,
}

/// The content of a file or a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// Neither file nor link: no content.
    Nothing,
    /// A file of which a copy is stored.
    Kept {
        /// Its hash.
        hash: Hash,
        /// Offset at which the copy begins.
        at: u64,
        /// Its size in bytes.
        len: u64,
    },
    /// A file for whose copy there was no space, by its hash.
    NoRoom(Hash),
    /// A file that holds what git has; it was not read. See [`Objects`].
    Git {
        /// Its git id.
        id: GitId,
        /// Its size in bytes.
        len: u64,
    },
    /// A file that exceeds the size limit for reading.
    Big,
    /// A file that could not be read.
    Unread,
    /// The target of a link, as written in it.
    Link(Vec<u8>),
}

impl Node {
    /// The git id of the content of a file that was not read, with its size in bytes.
    pub const fn of_git(&self) -> Option<(GitId, u64)> {
        match self.content {
            Content::Git { id, len } => Some((id, len)),
            _ => None,
        }
    }
}

/// A git object id of file content: a SHA-1 hash, written as 40 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GitId(pub [u8; 20]);

impl Serialize for GitId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
        let digits = self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
        serializer.serialize_str(&digits.collect::<String>())
    }
}

impl<'de> Deserialize<'de> for GitId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || D::Error::custom("a git id has 40 hexadecimal digits");
        let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
        let halves = digits.filter(|halves| halves.len() == 40).ok_or_else(wrong)?;
        let mut id = [0; 20];
        for (byte, halves) in id.iter_mut().zip(halves.chunks_exact(2)) {
            *byte = u8::try_from(halves[0] << 4 | halves[1]).map_err(|_| wrong())?;
        }
        Ok(Self(id))
    }
}

/// The git packs that hold the content of files that were not read. The content is available for as
/// long as somebody holds this, whatever becomes of the repository.
#[derive(Clone, Default)]
pub struct Objects(pub(crate) Vec<Arc<Pack>>);

impl Objects {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the packs of `others`.
    pub fn add(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// A reader of these packs, and of `others` for what these do not have. It waits for the disk.
    pub fn reader(&self, others: &Self) -> GitReader {
        GitReader::of(self.0.iter().chain(&others.0))
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Objects({} packs)", self.0.len())
    }
}

impl PartialEq for Objects {
    /// Where something can be had is nothing that differs.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Objects {}

/// The result of scanning some folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeScan {
    /// When the scan began, in nanoseconds since the Unix epoch.
    pub began: i128,
    /// The files, links and folders that were found, without the scanned folders themselves.
    pub nodes: HashMap<HostPath, Arc<Node>>,
    /// The scanned folders themselves.
    pub roots: Vec<HostPath>,
    /// The contents of the ignore files that counted, by path.
    pub rules: HashMap<HostPath, Arc<[u8]>>,
    /// The nodes that were scanned because they were named, now or before.
    pub named: HashSet<HostPath>,
    /// What the walk of files that git does not ignore skipped, and what was skipped again within
    /// that: `.git`, what tools rebuild, what cannot be listed. `None` if there are too many
    /// folders.
    pub passed: Option<HashSet<HostPath>>,
    /// What is known of files that git ignores.
    pub ignored_tree: IgnoredTree,
    /// For each `.git`, the stamps of what a git command changes.
    pub repositories: HashMap<HostPath, Vec<Option<Stamp>>>,
    /// The stamps of git's indexes, by the folders of their repositories.
    pub indexes: HashMap<HostPath, Stamp>,
    /// Hashes of these indexes, without the file states, which git refreshes by itself.
    pub listed: HashMap<HostPath, Hash>,
    /// Pipes, sockets and devices.
    pub others: HashSet<HostPath>,
    /// The packs with the content of files that were not read.
    pub objects: Objects,
}

impl TreeScan {
    /// Reports whether an ignore file excluded a path from the scan.
    pub fn ignored(&self, path: &HostPath, is_folder: bool) -> bool {
        let Some(root) = self.roots.iter().find(|root| path.is_within(root)) else { return false };
        let mut rules = Rules::git();
        let (mut folder, mut at) = (HostPath::root(path.style()), Vec::new());
        let depth = root.names().count();
        let names: Vec<&[u8]> = path.names().collect();
        for (number, name) in names.iter().enumerate() {
            rules.push(at.len());
            for (which, file) in IGNORE_FILES.iter().enumerate() {
                let file = folder.join_bytes(&file.join(&b'/'));
                if let Some(text) = file.ok().and_then(|file| self.rules.get(&file)) {
                    rules.add(number, which, text);
                }
            }
            at.extend_from_slice(name);
            let inner = number + 1 < names.len();
            if number >= depth && rules.judge(&at, 0, inner || is_folder) == Verdict::Ignored {
                return true;
            }
            at.push(b'/');
            let Ok(below) = folder.join_bytes(name) else { return false };
            folder = below;
        }
        false
    }
}

/// Limits of a tree scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurveyLimits {
    /// Most files and links, and most folders.
    pub files: usize,
    /// Largest file that is read, in bytes.
    pub file_bytes: u64,
    /// How long the scan may take.
    pub within: Duration,
    /// Most scanned files, and most scanned folders, that git ignores.
    pub ignored_files: usize,
    /// Most bytes of the copies of ignored files.
    pub ignored_bytes: u64,
}

/// Paths that are scanned although git ignores them, unless they are folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraPaths {
    /// These paths, whether something exists there or not.
    pub paths: Vec<HostPath>,
    /// The entries directly in these folders, if they are few.
    pub folders: Vec<HostPath>,
}

/// Why a tree scan failed.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// There are more files, or more folders, than the limit.
    #[error("there are more than {0} files")]
    TooMany(usize),
    /// It took longer than the limit.
    #[error("looking at the files takes longer than {0:?}")]
    TooLong(Duration),
    /// It was cancelled.
    #[error("cancelled")]
    Stopped,
    /// A folder at which it begins cannot be listed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Copies of file contents, available for as long as somebody holds this.
pub trait Copies: Send + Sync {
    /// Stores a copy, and returns its offset; `None` if there is no space for it.
    fn add(&self, content: &[u8]) -> Option<u64>;

    /// Returns a stored copy.
    ///
    /// # Errors
    /// If it cannot be read.
    fn get(&self, at: u64, len: u64) -> io::Result<Bytes>;

    /// Number of bytes that were added.
    fn used(&self) -> u64;

    /// Persists a record that another process can find beside the copies if this one is killed. It
    /// is appended to the earlier records or, if `anew` is true, replaces them. In memory nobody
    /// can find it.
    ///
    /// # Errors
    /// If it cannot be written; part of it may be there then.
    fn put_down(&self, _text: &[u8], _anew: bool) -> io::Result<()> {
        Ok(())
    }

    /// Records that the process is alive.
    fn lives(&self) {}

    /// Retains the copies after the last holder is gone, for another process to find: a command was
    /// aborted.
    fn stay(&self) {}
}

/// When a file or folder was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreationTime {
    /// In nanoseconds since the Unix epoch.
    pub at: i128,
    /// Number of names (hard links) it has now; if more than one, some may be elsewhere. A folder
    /// has one.
    pub names: u64,
}

impl CreationTime {
    /// Reports whether that was certainly before a moment, in nanoseconds since the Unix epoch. The
    /// times of a disk are those of the last clock tick.
    pub const fn is_before(&self, moment: i128) -> bool {
        self.at < moment - tick(self.at)
    }
}

/// In nanoseconds.
pub(crate) const SECOND: i128 = 1_000_000_000;

/// How long after a change at this time another one may leave the same time: some ticks of the
/// kernel, or two seconds on disks that know whole ones, or two.
pub(crate) const fn tick(time: i128) -> i128 {
    if time.rem_euclid(SECOND) == 0 { 2 * SECOND } else { SECOND / 50 }
}

/// What is created at a path where nothing is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewEntry {
    /// A folder.
    Folder,
    /// A link with this target.
    Link(Vec<u8>),
}

/// Scans whole trees, and restores entries in them that are not files.
pub trait TreeScanner: Send + Sync {
    /// Scans everything below some folders, and the extra paths there. A file that `known` has with
    /// the same stamp is not read, nor one that is unchanged since git recorded it. Of any other
    /// file a copy is stored. What `known` has is scanned again, even if it is ignored. A folder
    /// that is gone holds nothing.
    ///
    /// # Errors
    /// See [`SurveyError`].
    ///
    /// # Cancel safety
    /// A dropped future ends when it next checks the stop token of the walk.
    fn survey<'a>(
        &'a self,
        roots: &'a [Located],
        known: Arc<TreeScan>,
        copies: Arc<dyn Copies>,
        limits: SurveyLimits,
        of: (Walk, &'a ExtraPaths),
    ) -> BoxFuture<'a, Result<TreeScan, SurveyError>>;

    /// Reports whether whatever is created from now on has a later time than this moment, in
    /// nanoseconds since the Unix epoch. File times are those of the last clock tick.
    fn is_past(&self, _moment: i128) -> bool {
        true
    }

    /// When what is at a path was created; `None` if nothing is there or the disk does not record
    /// it.
    fn born(&self, path: &HostPath) -> Option<CreationTime>;

    /// Reports whether it is certain that nothing is at a path.
    fn is_gone(&self, path: &HostPath) -> bool;

    /// Creates a folder or a link where nothing is.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if something is there; otherwise the cause.
    fn make<'a>(&'a self, at: &'a Located, made: NewEntry) -> BoxFuture<'a, io::Result<()>>;

    /// The target of a located link, as written in it.
    ///
    /// # Errors
    /// If it is not a link any more.
    fn target<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<Vec<u8>>>;

    /// Gives a located folder or file these permissions and, if permitted, this owner.
    ///
    /// # Errors
    /// If it is neither any more, or may not be changed.
    fn give<'a>(&'a self, folder: &'a Located, rights: &'a Rights)
    -> BoxFuture<'a, io::Result<()>>;
}
