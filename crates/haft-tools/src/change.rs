//! What edit and write do the same way: show a change, carry it out, and tell what it left.
//!
//! **Invariant:** a write expects exactly the state that was read, so that a change that nobody
//! saw is never lost.

use bytes::Bytes;
use haft_host::{Expect, FileKind, Located, WriteHow, Written};
use haft_text::diff::{Kind, Limits, TextDiff};
use haft_tool::Cx;
use haft_types::{Detail, DiffLine, Hash, HostPath, Hunk, LineMark, Shape, ToolError};

use crate::files;

/// How much of a diff is shown.
pub(crate) const SHOWN: Limits = Limits { context: 3, lines: 400, width: 500 };

/// A diff for people.
pub(crate) fn detail(
    path: &HostPath,
    diff: &TextDiff,
    before: Option<Hash>,
    after: Hash,
) -> Detail {
    let hunks = diff.hunks.iter().map(|hunk| Hunk {
        old_start: hunk.old_start as u64,
        old_lines: hunk.old_lines as u64,
        new_start: hunk.new_start as u64,
        new_lines: hunk.new_lines as u64,
        lines: hunk.lines.iter().filter_map(line).collect(),
    });
    Shape::Diff { path: path.clone(), hunks: hunks.collect(), before, after: Some(after) }.into()
}

/// A remark on a line is none of its own.
fn line((kind, text): &(Kind, String)) -> Option<DiffLine> {
    let mark = match kind {
        Kind::Kept => LineMark::Kept,
        Kind::Removed => LineMark::Removed,
        Kind::Added => LineMark::Added,
        Kind::Note => return None,
    };
    Some(DiffLine { mark, text: text.clone() })
}

/// Writes the new content over what was located.
pub(crate) async fn carry_out(
    cx: &Cx,
    at: &Located,
    data: Bytes,
    parents: bool,
) -> Result<Written, ToolError> {
    let expect = match at.stamp {
        Some(stamp) if at.kind != FileKind::Missing => Expect::Stamp(stamp),
        _ => Expect::Absent,
    };
    let how = WriteHow { expect, parents, ..WriteHow::default() };
    cx.host.fs().write(at, data, how).await.map_err(|error| files::failed(&error))
}

/// What people should know of where the change landed.
pub(crate) fn place_notes(cx: &Cx, asked: &str, at: &Located, notes: &mut Vec<String>) {
    if cx.path(asked).is_ok_and(|path| path != at.real) {
        notes.push(format!("{asked} leads to {}, which is what was changed", at.real));
    }
    if at.names > 1 {
        notes.push(format!(
            "the file has {} names (hard links): only this one has the new content",
            at.names
        ));
    }
}

/// Says which lines of a new text stand for text left out, where the old text has no such line.
pub(crate) fn placeholders(old: &str, new: &str) -> Option<String> {
    let bare = |line: &str| line.trim().chars().all(|c| matches!(c, '.' | '\u{2026}'));
    let (number, line) = (1..).zip(new.lines()).find(|(_, line)| {
        haft_text::edit::is_placeholder(line)
            && !bare(line)
            && !old.lines().any(|other| other.trim() == line.trim())
    })?;
    let line = haft_text::names::shown(line.trim(), 80);
    Some(format!(
        "line {number} of the given text, {line:?}, reads like a stand-in for text that was left \
         out; it was written as it is, nothing was filled in"
    ))
}

/// Joins the first line of an answer, its notes and a diff.
pub(crate) fn answer(first: &str, notes: &[String], diff: &str) -> String {
    let mut out = first.to_owned();
    for note in notes {
        out.push_str("\n[");
        out.push_str(note);
        out.push(']');
    }
    if !diff.is_empty() {
        out.push('\n');
        out.push_str(diff.trim_end_matches('\n'));
    }
    out
}
