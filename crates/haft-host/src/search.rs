//! Searching the files of a host.
//!
//! **Invariant:** truth is `rg --hidden --no-require-git -g '!.git'` without configuration. Results
//! come folder by folder in the order of the bytes of names, so a page can stop early. What was
//! not searched is counted, never silently left out.

use std::{io, ops::ControlFlow, sync::Arc};

use futures::future::BoxFuture;
use haft_types::{EntryKind, FileMatches, HostPath};
use tokio_util::sync::CancellationToken;

use crate::Located;

/// Says of a path below the root whether the caller may see it.
pub type Filter = Arc<dyn Fn(&HostPath) -> bool + Send + Sync>;

/// What every walk is given.
#[derive(Clone)]
pub struct Walk {
    /// False leaves a file, or a folder with everything below it, out; it is counted as denied.
    pub allowed: Filter,
    /// False leaves an ignore file unread that lies outside of what is searched: the user's own, or
    /// one of a folder above the root. Nothing of them is ever shown.
    pub excludes: Filter,
    /// Ends the walk at once.
    pub stop: CancellationToken,
}

/// What of a file is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrepMode {
    /// The matching lines with their context.
    #[default]
    Content,
    /// Only which files match; a file is left at its first match.
    Files,
    /// How many lines match; of a match over several lines each counts.
    Count,
}

/// A search for lines.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own, as in ripgrep")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrepQuery {
    /// A regular expression in the syntax of Rust's `regex`, or text when `literal`.
    pub pattern: String,
    /// Takes the pattern as text.
    pub literal: bool,
    /// Takes upper and lower case as the same.
    pub ignore_case: bool,
    /// Lets a match span lines and `.` match line ends.
    pub multiline: bool,
    /// Globs that a path must match, as `rg -g`; `!` leaves out.
    pub globs: Vec<String>,
    /// File types of ripgrep, such as `rust`.
    pub types: Vec<String>,
    /// Whether names that start with a dot are searched.
    pub hidden: bool,
    /// Whether files that ignore files name are searched.
    pub no_ignore: bool,
    /// See [`GrepMode`].
    pub mode: GrepMode,
    /// Lines of context before a match.
    pub before: u32,
    /// Lines of context after a match.
    pub after: u32,
    /// Most matching lines that are wanted of one file; the search of a file ends there. 0 = all.
    pub per_file: u64,
    /// Longest line that is given whole, in characters; a longer one is windowed at its match.
    pub max_line: usize,
    /// Where the lines begin that are wanted of one file; those before are only counted.
    pub skip: Skip,
    /// Takes every file for UTF-8: what looks like a byte order mark is a part of its text.
    pub unmarked: bool,
}

/// Matching lines of one file that are counted but not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skip {
    /// The file, as [`FileMatches::path`] names it; none for the one that is searched alone.
    pub path: Option<String>,
    /// How many of its first matching lines.
    pub lines: u64,
}

/// What a search for lines found in one file.
///
/// Lines that are in `file.count` without being in `file.lines`, `skipped` or `hidden` were too
/// many to be kept: a search that skips those before them gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundLines {
    /// The file with the lines that were kept; at least one of those that were not skipped.
    pub file: FileMatches,
    /// Its first matching lines that were left out because of [`GrepQuery::skip`].
    pub skipped: u64,
    /// Matching lines behind binary content, which are never given. There may be more where the
    /// search of the file ended at [`GrepQuery::per_file`].
    pub hidden: u64,
    /// The lines, as indexes into those of `file` and in order, that a match goes over into from
    /// the line before.
    pub joined: Vec<usize>,
    /// Where binary content ended the search of the file, about, in bytes; none where its end did.
    pub until: Option<u64>,
}

/// A search for names.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own, as in fd")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindQuery {
    /// A glob: without a slash it is matched with names at any depth, with one from the root.
    pub pattern: String,
    /// Whether names that start with a dot are found.
    pub hidden: bool,
    /// Whether what ignore files name is found.
    pub no_ignore: bool,
    /// Whether links to folders are entered.
    pub follow: bool,
    /// Whether times are wanted; they cost a look at every name that is found.
    pub times: bool,
}

/// A found name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameMatch {
    /// Relative to the searched folder, in the host's bytes, `/` between names.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: EntryKind,
    /// Last change in nanoseconds since the Unix epoch, for sorting; 0 where times were not wanted.
    pub modified: i128,
}

/// What a search passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Files that were searched only up to binary content, or not at all because of it.
    pub binary: u64,
    /// Files and folders named by ignore files, each counted once where it was left.
    pub ignored: u64,
    /// Files and folders that may not be seen.
    pub denied: u64,
    /// Files and folders that could not be read, with the first cause.
    pub unreadable: u64,
    /// The first cause of `unreadable`.
    pub cause: Option<String>,
    /// Links that lead round in circles.
    pub loops: u64,
    /// Links out of the searched folder that were not entered.
    pub outside: u64,
    /// Files with lines so long that they were searched in parts, between which nothing matches.
    pub parts: u64,
    /// Files in other encodings than UTF-8 that were not searched for the characters outside ASCII
    /// that the pattern names: too big to be decoded, or in an encoding that cannot be told.
    pub unread: u64,
    /// Files that were searched to their end.
    pub searched: u64,
    /// True when the walk ended before everything was seen.
    pub stopped: bool,
}

/// Why a search could not begin.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The pattern is no regular expression; says where it is wrong.
    #[error("{0}")]
    Pattern(String),
    /// A glob does not parse; names it.
    #[error("{0}")]
    Glob(String),
    /// No such file type; names it and near ones.
    #[error("{0}")]
    Type(String),
    /// The root cannot be searched.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Takes results as they come; `Break` ends the search.
pub type Sink<'a, T> = &'a mut (dyn FnMut(T) -> ControlFlow<()> + Send);

/// Searches below a located folder, or in one located file.
pub trait Search: Send + Sync {
    /// Searches lines; each file with matches is given once, in order.
    ///
    /// # Errors
    /// See [`SearchError`]; what cannot be read below the root is counted instead.
    ///
    /// # Cancel safety
    /// A dropped future ends the walk.
    fn grep<'a>(
        &'a self,
        at: &'a Located,
        query: &'a GrepQuery,
        walk: Walk,
        sink: Sink<'a, FoundLines>,
    ) -> BoxFuture<'a, Result<Skipped, SearchError>>;

    /// Searches names of files and folders, in order.
    ///
    /// # Errors
    /// See [`SearchError`].
    ///
    /// # Cancel safety
    /// A dropped future ends the walk.
    fn find<'a>(
        &'a self,
        at: &'a Located,
        query: &'a FindQuery,
        walk: Walk,
        sink: Sink<'a, NameMatch>,
    ) -> BoxFuture<'a, Result<Skipped, SearchError>>;
}
