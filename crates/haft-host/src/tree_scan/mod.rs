//! The state of everything below some folders, taken before and after what no host sees.
//!
//! **Invariant:** what is told of a path is what stood there at one moment between begin and end of
//! the survey; a file whose stamp could not tell a change from no change is read again the next
//! time. No link is followed. `.git` is left out, and so are folders that git ignores and tools
//! rebuild; of all else that it ignores as much is looked at as the limits say.

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

/// What stands at one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// What it is; a link is a link.
    pub kind: EntryKind,
    /// Its state.
    pub stamp: Stamp,
    /// Owner, permissions, and of a file its attributes.
    pub rights: Rights,
    /// What it holds.
    pub content: Content,
    /// True where it changed so short before it was looked at that a later change might leave the
    /// same stamp.
    pub is_fresh: bool,
}

/// What a file or a link holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// Neither file nor link: nothing.
    Nothing,
    /// A file of which a copy is kept.
    Kept {
        /// Its hash.
        hash: Hash,
        /// Where the copy begins.
        at: u64,
        /// Its size in bytes.
        len: u64,
    },
    /// A file for whose copy there was no room, by its hash.
    NoRoom(Hash),
    /// A file that holds what git has; it was not read. See [`Objects`].
    Git {
        /// The name of that.
        id: GitId,
        /// Its size in bytes.
        len: u64,
    },
    /// A file that is bigger than those that are read.
    Big,
    /// A file that could not be read.
    Unread,
    /// Where a link points, as written in it.
    Link(Vec<u8>),
}

impl Node {
    /// What git calls what a file holds that was not read, with its size in bytes.
    pub const fn of_git(&self) -> Option<(GitId, u64)> {
        match self.content {
            Content::Git { id, len } => Some((id, len)),
            _ => None,
        }
    }
}

/// What git calls the content of a file: a SHA-1 hash, written as 40 lower-case hexadecimal digits.
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

/// Where git has what files held that were not read. It can be had for as long as somebody holds
/// this, whatever becomes of the repository.
#[derive(Clone, Default)]
pub struct Objects(pub(crate) Vec<Arc<Pack>>);

impl Objects {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what others hold.
    pub fn add(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// What reads from these, and from others that may have it where these do not. It waits for the
    /// disk.
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

/// What was found below some folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeScan {
    /// When it began, in nanoseconds since the Unix epoch.
    pub began: i128,
    /// The files, links and folders that stand there, the folders themselves left out.
    pub nodes: HashMap<HostPath, Arc<Node>>,
    /// The folders themselves.
    pub roots: Vec<HostPath>,
    /// The ignore files that counted, by their paths.
    pub rules: HashMap<HostPath, Arc<[u8]>>,
    /// What is among them for it was named, now or before.
    pub named: HashSet<HostPath>,
    /// What the walk of what git does not ignore passed over, and what in that was passed over again:
    /// `.git`, what tools rebuild, what cannot be listed; none where there are too many folders.
    pub passed: Option<HashSet<HostPath>>,
    /// What is known of what git ignores.
    pub ignored_tree: IgnoredTree,
    /// Of each `.git` the state of what a command of git changes.
    pub repositories: HashMap<HostPath, Vec<Option<Stamp>>>,
    /// The lists of what git keeps track of, by the folders of their repositories.
    pub indexes: HashMap<HostPath, Stamp>,
    /// What these lists hold, without the states of the files, which git brings up to date by itself.
    pub listed: HashMap<HostPath, Hash>,
    /// Pipes, sockets and devices.
    pub others: HashSet<HostPath>,
    /// Where that is what files hold which were not read.
    pub objects: Objects,
}

impl TreeScan {
    /// Reports whether an ignore file kept a path out of it.
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

/// What a survey may look at and keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurveyLimits {
    /// Most files and links, and most folders.
    pub files: usize,
    /// Most bytes of a file that is read.
    pub file_bytes: u64,
    /// How long it may take.
    pub within: Duration,
    /// Most files, and most folders, that git ignores and that are looked at.
    pub ignored_files: usize,
    /// Most bytes of the copies of them.
    pub ignored_bytes: u64,
}

/// What is looked at although git ignores it, as far as it is no folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraPaths {
    /// These paths, whether something is there or not.
    pub paths: Vec<HostPath>,
    /// What stands right inside of these folders, where it is little.
    pub folders: Vec<HostPath>,
}

/// Why there is no survey.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// There are more files, or more folders, than it may look at.
    #[error("there are more than {0} files")]
    TooMany(usize),
    /// It took longer than it may.
    #[error("looking at the files takes longer than {0:?}")]
    TooLong(Duration),
    /// It was cancelled.
    #[error("cancelled")]
    Stopped,
    /// A folder that it begins at cannot be listed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Copies of what files held, for as long as somebody holds this.
pub trait Copies: Send + Sync {
    /// Keeps a copy, and says where it begins; none where there is no room for it.
    fn add(&self, content: &[u8]) -> Option<u64>;

    /// Gives a copy back.
    ///
    /// # Errors
    /// When it cannot be read.
    fn get(&self, at: u64, len: u64) -> io::Result<Bytes>;

    /// How many bytes were added.
    fn used(&self) -> u64;

    /// Puts down what another process may find beside the copies where this one is killed: behind
    /// what was put down before, or `anew`, in place of it. In memory it is found by nobody.
    ///
    /// # Errors
    /// When it cannot be written; part of it may be there then.
    fn put_down(&self, _text: &[u8], _anew: bool) -> io::Result<()> {
        Ok(())
    }

    /// Puts down that the process lives.
    fn lives(&self) {}

    /// Has them stay when the last one lets go, for another process to find: a command was given up.
    fn stay(&self) {}
}

/// When something came into being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreationTime {
    /// In nanoseconds since the Unix epoch.
    pub at: i128,
    /// How many names it has now; more than one may stand elsewhere. A folder has one.
    pub names: u64,
}

impl CreationTime {
    /// Reports whether that was before a moment, in nanoseconds since the Unix epoch, for sure: the
    /// times of a disk are those of the last tick.
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

/// What is made anew at a path where nothing is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewEntry {
    /// A folder.
    Folder,
    /// A link that points there.
    Link(Vec<u8>),
}

/// Looks at whole trees, and restores what is no file in them.
pub trait TreeScanner: Send + Sync {
    /// Looks at everything below some folders, and at what is named there. A file that `known` has with
    /// the same stamp is not read, nor one that stands as git has it; of any other a copy is kept. What
    /// `known` has is looked at again, whatever ignores it. A folder that is gone holds nothing.
    ///
    /// # Errors
    /// See [`SurveyError`].
    ///
    /// # Cancel safety
    /// A dropped future ends at its next look at the stop token of the walk.
    fn survey<'a>(
        &'a self,
        roots: &'a [Located],
        known: Arc<TreeScan>,
        copies: Arc<dyn Copies>,
        limits: SurveyLimits,
        of: (Walk, &'a ExtraPaths),
    ) -> BoxFuture<'a, Result<TreeScan, SurveyError>>;

    /// Reports whether what is made from now on has a later time than this moment, in nanoseconds since
    /// the Unix epoch: times of files are those of the last tick of a clock.
    fn is_past(&self, _moment: i128) -> bool {
        true
    }

    /// When what stands at a path came into being; none where nothing is there or the disk does not
    /// know.
    fn born(&self, path: &HostPath) -> Option<CreationTime>;

    /// Reports whether nothing is at a path, for sure.
    fn is_gone(&self, path: &HostPath) -> bool;

    /// Makes a folder or a link where nothing is.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when something is there; otherwise the cause.
    fn make<'a>(&'a self, at: &'a Located, made: NewEntry) -> BoxFuture<'a, io::Result<()>>;

    /// Where a located link points, as written in it.
    ///
    /// # Errors
    /// When it is no link any more.
    fn target<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<Vec<u8>>>;

    /// Gives a located folder, or a file, these permissions and, where that may be, this owner.
    ///
    /// # Errors
    /// When it is none any more, or may not be changed.
    fn give<'a>(&'a self, folder: &'a Located, rights: &'a Rights)
    -> BoxFuture<'a, io::Result<()>>;
}
