//! The shapes of results, for people. Renderers know shapes, never tools.
//!
//! **Invariant:** a detail is data, not text with layout; one whose shape no renderer knows falls
//! back to Markdown or JSON. The set stays near fifteen.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Blob, Hash, HostPath};

/// The form of a result for people, with what was left out of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// The shape and its content.
    #[serde(flatten)]
    pub shape: Shape,
    /// The part that is not shown; none when all is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

impl From<Shape> for Detail {
    fn from(shape: Shape) -> Self {
        Self { shape, cut: None }
    }
}

/// A cut as data: which part is shown, why, and where the rest is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// First shown unit, from 1.
    pub from: u64,
    /// Last shown unit, inclusive; `from - 1` when nothing is shown.
    pub to: u64,
    /// Number of units in all; none when that is not known.
    pub total: Option<u64>,
    /// The unit that is counted: that of the limit that was met.
    pub by: CutBy,
    /// Address of the whole, as far as it is stored: `out://CALL`. None when the next page is
    /// requested by arguments.
    pub rest: Option<String>,
    /// The part of the end that is shown besides `from` to `to`; none where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<CutEnd>,
}

/// The shown end of a result whose middle was left out; one line stands for the middle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutEnd {
    /// Number of units shown at the end.
    pub shown: u64,
    /// Number of lines shown at the end.
    pub lines: u64,
    /// Number of lines that were left out before them.
    pub left_out: u64,
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutBy {
    /// Lines of text.
    #[default]
    Lines,
    /// Characters of text.
    Chars,
    /// Bytes.
    Bytes,
    /// Estimated tokens.
    Tokens,
    /// Entries, matches or files.
    Items,
}

/// The shape of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "snake_case")]
pub enum Shape {
    /// Lines of one file.
    File {
        /// Path of the file.
        path: HostPath,
        /// Number of the first line, from 1.
        first_line: u64,
        /// The lines.
        text: String,
    },
    /// A change of one file.
    Diff {
        /// Path of the file.
        path: HostPath,
        /// Path before the move, for a moved file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<HostPath>,
        /// The changed places.
        hunks: Vec<Hunk>,
        /// Changed lines in all, where the hunks do not hold each of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        counts: Option<LineCounts>,
        /// Hash of the content before; none for a new file.
        before: Option<Hash>,
        /// Hash of the content after; none for a deleted one.
        after: Option<Hash>,
    },
    /// Names of files and folders.
    Entries {
        /// The folder that the names are relative to.
        root: HostPath,
        /// The names in order.
        entries: Vec<Entry>,
    },
    /// Lines found in files.
    Matches {
        /// The folder that the paths are relative to.
        root: HostPath,
        /// The files in order.
        files: Vec<FileMatches>,
    },
    /// A program's output.
    Terminal {
        /// The command line.
        command: String,
        /// Standard output and error in the order in which they were read.
        output: String,
        /// Exit code; none while it runs or when a signal ended it.
        exit: Option<i32>,
        /// What the exit code or signal means where that is known: `no match`, `killed`.
        note: Option<String>,
    },
    /// Prose.
    Markdown {
        /// The text.
        text: String,
    },
    /// What the model thought by a call: for who looks for it, folded away elsewhere.
    Thought {
        /// Its words.
        text: String,
    },
    /// Words of the model for the person in the midst of its work.
    Message {
        /// The words, as Markdown.
        text: String,
    },
    /// A file that is handed to the person.
    Sent {
        /// Where it lies.
        path: HostPath,
        /// Its address, for the kept output of a call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<String>,
        /// Its bytes.
        size: u64,
        /// SHA-256 of its content, in hexadecimal digits.
        sha256: String,
        /// What it is, in the model's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caption: Option<String>,
    },
    /// A picture.
    Image {
        /// Its bytes.
        blob: Blob,
        /// Width and height in pixels.
        size: Option<(u32, u32)>,
        /// Where it came from.
        path: Option<HostPath>,
    },
    /// A tree of nodes.
    Tree {
        /// The topmost nodes.
        nodes: Vec<Node>,
    },
    /// Rows and columns.
    Table {
        /// Heads of the columns.
        columns: Vec<String>,
        /// The rows, each as long as `columns`.
        rows: Vec<Vec<Cell>>,
    },
    /// Things to do, in their order; replaces the list that was shown before.
    Todo {
        /// The things.
        items: Vec<TodoItem>,
    },
    /// Progress of some work; replaces what was shown before.
    Progress {
        /// What is being done.
        text: String,
        /// Steps done.
        done: Option<u64>,
        /// Steps in all.
        total: Option<u64>,
    },
    /// Several details, one after the other.
    Many {
        /// The parts.
        details: Vec<Detail>,
    },
    /// Anything else.
    Json {
        /// The value.
        value: Value,
    },
}

/// A thing to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoItem {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    #[serde(default)]
    pub state: TodoState,
}

/// How far a thing to do is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoState {
    /// Not begun.
    #[default]
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Completed,
}

/// How many lines a change adds and removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCounts {
    /// Lines only in the new text.
    pub added: u64,
    /// Lines only in the old text.
    pub removed: u64,
}

impl LineCounts {
    /// The line counts of a diff: `counts` where given, else those of its hunks.
    pub fn of(counts: Option<Self>, hunks: &[Hunk]) -> Self {
        let count = |mark| {
            let of = |hunk: &Hunk| hunk.lines.iter().filter(|line| line.mark == mark).count();
            hunks.iter().map(of).sum::<usize>() as u64
        };
        let counted = || Self { added: count(LineMark::Added), removed: count(LineMark::Removed) };
        counts.unwrap_or_else(counted)
    }
}

/// One changed place of a file, as in a unified diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    /// First line of the old text, from 1; 0 when the old text has no lines here.
    pub old_start: u64,
    /// Lines of the old text.
    pub old_lines: u64,
    /// First line of the new text, from 1; 0 when the new text has no lines here.
    pub new_start: u64,
    /// Lines of the new text.
    pub new_lines: u64,
    /// The lines in order.
    pub lines: Vec<DiffLine>,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffLine {
    /// Kept, added or removed.
    pub mark: LineMark,
    /// The line without its end.
    pub text: String,
}

/// The state of a line in a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LineMark {
    /// In both texts.
    #[serde(rename = " ")]
    Kept,
    /// Only in the new text.
    #[serde(rename = "+")]
    Added,
    /// Only in the old text.
    #[serde(rename = "-")]
    Removed,
}

/// The kind of a folder entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    #[default]
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A block device.
    Device,
    /// A character device.
    CharDevice,
}

/// One name of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The name as the host has it, relative to the listing's root; see [`HostPath::text`].
    pub name: String,
    /// The kind of the entry.
    pub kind: EntryKind,
    /// In bytes, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Permission bits, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// Last change in milliseconds since the Unix epoch, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<i64>,
    /// Where a link points, as written in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// True for a link whose target is not there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broken: bool,
}

/// The matches in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMatches {
    /// Relative to the root of the matches; see [`HostPath::text`].
    pub path: String,
    /// Matching lines of the whole file, where they were counted.
    pub count: u64,
    /// The shown lines, in order; empty when only names or counts were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<MatchLine>,
}

/// One line of a file with its matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchLine {
    /// From 1.
    pub number: u64,
    /// The line, or the window of a long one around the match.
    pub text: String,
    /// Byte ranges of `text` that matched; empty for a line of context.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<(u32, u32)>,
}

/// One thing of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub label: String,
    /// What it holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

/// One field of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A number, aligned right.
    Number(f64),
    /// A text, aligned left.
    Text(String),
}
