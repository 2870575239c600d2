//! Searches the files of a host.
//!
//! **Invariant:** the reference is `rg --hidden --no-require-git -g '!.git'` without configuration.
//! Results come folder by folder, in byte order of names, so a page can stop early. What was not
//! searched is counted, never silently left out.

use std::{io, ops::ControlFlow, sync::Arc};

use futures::future::BoxFuture;
use haft_types::{EntryKind, FileMatches, HostPath};
use tokio_util::sync::CancellationToken;

use crate::Located;

/// Decides whether the caller may see a path below the root.
pub type Filter = Arc<dyn Fn(&HostPath) -> bool + Send + Sync>;

/// What every walk is given.
#[derive(Clone)]
pub struct Walk {
    /// If false, a file, or a folder with everything below it, is left out and counted as denied.
    pub allowed: Filter,
    /// If false, an ignore file outside of the searched root is not read: the user's own, or one of
    /// a folder above the root. Nothing of these files is ever shown.
    pub excludes: Filter,
    /// Ends the walk at once.
    pub stop: CancellationToken,
}

/// What a search returns of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrepMode {
    /// The matching lines with their context.
    #[default]
    Content,
    /// Only which files match; the search of a file ends at its first match.
    Files,
    /// The number of matching lines; each line of a multi-line match counts.
    Count,
}

/// A search for lines.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own, as in ripgrep")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrepQuery {
    /// A regular expression in the syntax of Rust's `regex`, or text when `literal`.
    pub pattern: String,
    /// Whether the pattern is literal text.
    pub literal: bool,
    /// Whether upper and lower case are equal.
    pub ignore_case: bool,
    /// Whether a match may span lines and `.` matches line ends.
    pub multiline: bool,
    /// Globs that a path must match, as `rg -g`; `!` excludes.
    pub globs: Vec<String>,
    /// File types of ripgrep, such as `rust`.
    pub types: Vec<String>,
    /// Whether names that start with a dot are searched.
    pub hidden: bool,
    /// Whether files are searched that ignore files exclude.
    pub no_ignore: bool,
    /// See [`GrepMode`].
    pub mode: GrepMode,
    /// Lines of context before a match.
    pub before: u32,
    /// Lines of context after a match.
    pub after: u32,
    /// Most matching lines wanted of one file; the search of a file ends there. 0 = all.
    pub per_file: u64,
    /// Longest line that is returned whole, in characters. A longer line is cut to a window at its
    /// match.
    pub max_line: usize,
    /// The first matching lines of one file that are only counted.
    pub skip: Skip,
    /// Whether every file is taken for UTF-8: what looks like a byte order mark is a part of its
    /// text.
    pub unmarked: bool,
}

/// Matching lines of one file that are counted but not returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skip {
    /// The file, as [`FileMatches::path`] names it; `None` for a file that is searched alone.
    pub path: Option<String>,
    /// Number of its first matching lines to skip.
    pub lines: u64,
}

/// What a search for lines found in one file.
///
/// Some lines may be counted in `file.count` without being in `file.lines`, `skipped` or `hidden`.
/// They were too many to be stored: a search that skips the lines before them returns them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundLines {
    /// The file with the stored lines; at least one of those that were not skipped.
    pub file: FileMatches,
    /// Number of its first matching lines left out because of [`GrepQuery::skip`].
    pub skipped: u64,
    /// Number of matching lines behind binary content, which are never returned. There may be more
    /// if the search of the file ended at [`GrepQuery::per_file`].
    pub hidden: u64,
    /// The lines into which a match continues from the line before, as ascending indexes into the
    /// lines of `file`.
    pub joined: Vec<usize>,
    /// Approximate offset in bytes at which binary content ended the search of the file. `None`
    /// otherwise.
    pub until: Option<u64>,
}

/// A search for names.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own, as in fd")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindQuery {
    /// A glob. Without a slash it matches names at any depth; with one it matches paths from the
    /// root.
    pub pattern: String,
    /// Whether names that start with a dot are found.
    pub hidden: bool,
    /// Whether names are found that ignore files exclude.
    pub no_ignore: bool,
    /// Whether links to folders are entered.
    pub follow: bool,
    /// Whether times are wanted; they cost one more file system access for every found name.
    pub times: bool,
}

/// A found name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameMatch {
    /// Relative to the searched folder, in the host's bytes, `/` between names.
    pub path: Vec<u8>,
    /// The kind of entry.
    pub kind: EntryKind,
    /// Last change in nanoseconds since the Unix epoch, for sorting; 0 if times were not wanted.
    pub modified: i128,
}

/// What a search did not cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Files searched only up to binary content, or not at all because of it.
    pub binary: u64,
    /// Files and folders excluded by ignore files; a folder counts once, without its content.
    pub ignored: u64,
    /// Files and folders that the caller may not see.
    pub denied: u64,
    /// Files and folders that could not be read, with the first cause.
    pub unreadable: u64,
    /// The first cause of `unreadable`.
    pub cause: Option<String>,
    /// Links that form a cycle.
    pub loops: u64,
    /// Links out of the searched folder that were not entered.
    pub outside: u64,
    /// Files with lines so long that they were searched in parts; no match spans two parts.
    pub parts: u64,
    /// Files in other encodings than UTF-8 that were not searched for the pattern's characters
    /// outside ASCII. They are too big to be decoded, or their encoding cannot be determined.
    pub unread: u64,
    /// Files that were searched to their end.
    pub searched: u64,
    /// True when the walk ended before everything was seen.
    pub stopped: bool,
}

/// Why a search could not begin.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The pattern is not a valid regular expression; says where it is wrong.
    #[error("{0}")]
    Pattern(String),
    /// A glob does not parse; names it.
    #[error("{0}")]
    Glob(String),
    /// No such file type; names it and similar ones.
    #[error("{0}")]
    Type(String),
    /// The root cannot be searched.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Receives results as they come; `Break` ends the search.
pub type Sink<'a, T> = &'a mut (dyn FnMut(T) -> ControlFlow<()> + Send);

/// Searches below a located folder, or in one located file.
pub trait Search: Send + Sync {
    /// Searches lines; each file with matches is delivered once, in order.
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
