//! Changes of several files that are made together or not at all.
//!
//! A deletion or a move is about a name, so it is refused for a link. The link's target would stay,
//! or would move from a place that nobody named. Changes of content follow links, as everywhere.
//!
//! **Invariant:** the new content of every file is computed before the first is written. The turns
//! in the files' queues are taken in the order of the real paths, so that two calls never wait for
//! each other.

use std::mem::take;

use haft_host::{Located, Written};
use haft_text::diff::TextDiff;
use haft_tool::{Cx, NewState, PlannedChange, TransactionError};
use haft_types::{
    Access, Detail, Follow, Hash, HostPath, LineCounts, Outcome, Part, Place, Plan, Receipt,
    ReceiptAction, Shape, Target, ToolError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Edit, EditAnswer, FileEdit, Replacement, Work, are_text,
    names::{Name, NamedFile, distinct, is_free, located, names, turns, twice},
};
use crate::{
    files::{
        self, Failure,
        change::{self, PREVIEW, Tries, Versions},
        freshness::{self, Freshness},
    },
    units,
    write::{self, Write, WriteInput},
};

/// Most bytes that one call reads of its files as wholes. What is bigger than such a file may be is
/// read piece by piece, and only to be removed or moved.
const MOST: u64 = 256 * 1024 * 1024;

// One of several files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) struct FileChange {
    pub(super) path: String,
    #[schemars(length(min = 1))]
    edits: Option<Vec<Replacement>>,
    /// Whole content of the file, new or not.
    content: Option<String>,
    /// Remove the file (default false).
    delete: Option<bool>,
    /// New path, where nothing is yet; alone, or with edits or content.
    pub(super) move_to: Option<String>,
    expect: Option<String>,
}

/// What programs get of one of several files.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct FileData {
    /// Absolute path of the file now, links resolved.
    path: String,
    /// Absolute path that it had before it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_from: Option<String>,
    /// Unified diff without file names; absent where the content is the same, or gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// Number of the first line that differs, from 1; only for edits, as the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_changed_line: Option<u64>,
    /// How many places were replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    replacements: Option<u64>,
    /// Bytes of the file now; absent for a deleted file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_size: Option<u64>,
    /// The tolerance that was needed; absent when everything matched exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerance: Option<String>,
    /// Replaced byte ranges of the old content: start and end, end exclusive; only for edits.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranges: Option<Vec<[u64; 2]>>,
    /// BLAKE3 hash of the content before; absent for a new file.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash_before: Option<String>,
    /// BLAKE3 hash of the content after; absent for a deleted file.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash_after: Option<String>,
}

/// What is wanted of one file, wherever it will be.
enum FileAction {
    Edit(FileEdit),
    Write(WriteInput),
    Delete,
    /// It is only moved.
    Keep,
}

impl FileChange {
    /// `number` counts from 1.
    fn what(&self, number: usize) -> Result<FileAction, ToolError> {
        let Self { path, edits, content, delete, move_to, expect } = self.clone();
        let refused = |what: &str, hint: &'static str| {
            let text = format!("file {number} of files, {path}, has {what}");
            Err(ToolError::new(text).hint(hint))
        };
        match (edits, content, delete.unwrap_or_default(), move_to) {
            (Some(edits), None, false, _) => Ok(FileAction::Edit(FileEdit { path, edits, expect })),
            (None, Some(content), false, _) => {
                Ok(FileAction::Write(WriteInput::new(path, content, expect)))
            }
            (None, None, true, None) => Ok(FileAction::Delete),
            (None, None, false, Some(_)) => Ok(FileAction::Keep),
            (None, None, false, None) => refused(
                "neither edits, content, delete nor move_to",
                "Say what shall become of it, or leave it out.",
            ),
            (None, None, true, Some(_)) => {
                refused("delete beside move_to", "Give the one that is meant.")
            }
            _ => {
                refused("more than one of edits, content and delete", "Give the one that is meant.")
            }
        }
    }

    /// Reports whether it keeps what it holds, which is then never read into memory.
    const fn only_moves(&self) -> bool {
        self.edits.is_none() && self.content.is_none() && self.move_to.is_some()
    }

    /// Reports whether its name is meant, and not what a link of that name leads to.
    pub(super) fn is_name(&self) -> bool {
        self.move_to.is_some() || self.delete.unwrap_or_default()
    }
}

/// What the call will do; a path that is written twice is refused right away.
pub(super) fn plan(files: &[FileChange], place: &Place) -> Result<Plan, ToolError> {
    planned(files, place).map_err(|error| unchanged(error, files))
}

fn planned(files: &[FileChange], place: &Place) -> Result<Plan, ToolError> {
    let mut targets: Vec<(HostPath, Access, Follow)> = Vec::with_capacity(files.len());
    let mut paths: Vec<(Name<'_>, HostPath)> = Vec::with_capacity(files.len());
    for name in names(files) {
        let path = files::planned(place, name.text)?;
        if let Some((first, _)) = paths.iter().find(|(_, other)| *other == path) {
            return Err(twice(*first, name));
        }
        let file = &files[name.number - 1];
        if !name.new {
            are_texts(file, name.number)?;
        }
        let delete = file.delete.unwrap_or_default();
        let access = if delete { Access::Destroy } else { Access::Modify };
        // A link that is removed or moved is not what it leads to.
        let follow = if file.is_name() { Follow::No } else { Follow::Yes };
        targets.push((path.clone(), access, follow));
        paths.push((name, path));
    }
    let title = match (&paths[..], files.len()) {
        ([], _) => return Err(ToolError::new("files is empty").hint("Name the files to edit.")),
        ([(_, only)], _) => format!("Editing {}", place.shown(only)),
        ([(_, from), (_, to)], 1) => {
            format!("Moving {} to {}", place.shown(from), place.shown(to))
        }
        ([(_, first), ..], number) => {
            let more = units::count(number as u64 - 1, "more file");
            format!("Editing {} and {more}", place.shown(first))
        }
    };
    Ok(targets.into_iter().fold(Plan::new(place, title), |plan, (path, access, follow)| {
        plan.with(access, Target::Path { path, follow })
    }))
}

/// Refuses what does not say one thing of a file, and new texts that no text has.
fn are_texts(file: &FileChange, number: usize) -> Result<(), ToolError> {
    match file.what(number)? {
        FileAction::Edit(edit) => are_text(&edit.edits, &format!(" of file {number}")),
        FileAction::Write(_) => {
            let content = file.content.as_deref().unwrap_or_default();
            change::is_text(content, &format!("content of file {number}"))
        }
        FileAction::Delete | FileAction::Keep => Ok(()),
    }
}

/// Works all files out, to refuse them early or to show them.
pub(super) async fn check(
    tool: &Edit,
    files: &[FileChange],
    cx: &Cx,
) -> Result<Option<Detail>, ToolError> {
    let found = located(files, cx).await.map_err(|error| unchanged(error, files))?;
    let _turns = turns(&found, cx).await;
    let mut tries = Tries::new();
    loop {
        match items(tool, files, &found, Look::First, cx).await {
            Err(failure) if tries.more(&failure) => {}
            items => return Ok(Some(preview(&mut items?))),
        }
    }
}

/// Carries all changes out, to the end whatever happens.
pub(super) async fn run(
    tool: &Edit,
    files: Vec<FileChange>,
    cx: &Cx,
) -> Result<Outcome, ToolError> {
    let (tool, own) = (tool.clone(), cx.clone());
    cx.finish(async move {
        let found = located(&files, &own).await.map_err(|error| unchanged(error, &files))?;
        let _turns = turns(&found, &own).await;
        let mut tries = Tries::new();
        loop {
            match once(&tool, &files, &found, &own).await {
                Err(failure) if tries.more(&failure) => {}
                carried_out => return Ok(carried_out?),
            }
        }
    })
    .await
}

/// The worked-out change of one file.
struct Item {
    change: Change,
    /// Where the file is moved to, with the path as it was written.
    to: Option<(Located, String)>,
}

enum Change {
    Edit(FileEdit, Box<Work>),
    Write(WriteInput, Box<write::Work>),
    Delete(UnchangedFile),
    Keep(UnchangedFile),
}

/// A file that keeps what it holds, or goes with it.
struct UnchangedFile {
    at: Located,
    /// None where only a first look was taken at a big one.
    hash: Option<Hash>,
    freshness: Freshness,
    /// Lines that go with it; none where they were not counted.
    lines: Option<u64>,
}

/// How much is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Before the question: no file of any size may hold that up.
    First,
    /// All that has to be known.
    Whole,
}

/// Works every file out as it stands now.
async fn items(
    tool: &Edit,
    files: &[FileChange],
    found: &[NamedFile],
    look: Look,
    cx: &Cx,
) -> Result<Vec<Item>, Failure> {
    each(tool, files, found, look, cx).await.map_err(|failure| none(failure, files))
}

async fn each(
    tool: &Edit,
    files: &[FileChange],
    found: &[NamedFile],
    look: Look,
    cx: &Cx,
) -> Result<Vec<Item>, Failure> {
    let mut now = Vec::with_capacity(found.len());
    for (file, NamedFile { at, to }) in files.iter().zip(found) {
        let at = change::renewed(cx, at).await?;
        let to = match to.as_ref().zip(file.move_to.as_deref()) {
            Some((to, text)) => {
                let to = change::renewed(cx, to).await?;
                is_free(cx, file, text, [&at, &to])?;
                Some(to)
            }
            None => None,
        };
        now.push(NamedFile { at, to });
    }
    distinct(files, &now)?;
    let held = files.iter().zip(&now).filter(|(file, _)| !file.only_moves());
    let sizes = held.map(|(_, now)| now.at.size()).filter(|size| *size <= files::WHOLE);
    let size = sizes.fold(0, u64::saturating_add);
    if size > MOST {
        let (size, most) = (units::size(size), units::size(MOST));
        let text = format!("the files have {size} together; at most {most} can be changed at once");
        return Err(ToolError::new(text).hint("Change them in several calls.").into());
    }
    let (mut items, mut failed) = (Vec::with_capacity(files.len()), Vec::new());
    for ((number, file), now) in (1..).zip(files).zip(now) {
        match work_out(tool, (number, file), now.at, look, cx).await {
            Ok(change) => items.push(Item { change, to: now.to.zip(file.move_to.clone()) }),
            Err(Failure::Told(error)) => failed.push(error),
            Err(raced) => return Err(raced),
        }
    }
    together(failed).map_or(Ok(items), |error| Err(error.into()))
}

/// Files whose faults are told at once.
const TOLD: usize = 5;

/// One error of all that is wrong with files; none where nothing is.
fn together(mut failed: Vec<ToolError>) -> Option<ToolError> {
    if failed.len() < 2 {
        return failed.pop();
    }
    let mut told: Vec<String> = failed.iter().take(TOLD).map(ToString::to_string).collect();
    if let Some(more @ 1..) = failed.len().checked_sub(TOLD) {
        told.push(format!(
            "{} cannot be changed as asked either.",
            units::count(more as u64, "more file")
        ));
    }
    let status = failed[0].status;
    Some(ToolError { status, ..ToolError::new(told.join("\n")) })
}

async fn work_out(
    tool: &Edit,
    (number, file): (usize, &FileChange),
    at: Located,
    look: Look,
    cx: &Cx,
) -> Result<Change, Failure> {
    if file.move_to.is_some() {
        files::regular(cx, &file.path, &at, "moved").await?;
    }
    Ok(match file.what(number)? {
        FileAction::Edit(edit) => {
            let work = Work::of(tool, &edit, at, cx).await?;
            Change::Edit(edit, Box::new(work))
        }
        FileAction::Write(input) => {
            let write = Write { strict: tool.strict };
            let work = write::Work::of(&write, &input, at, cx).await?;
            Change::Write(input, Box::new(work))
        }
        FileAction::Delete => Change::Delete(delete(tool, file, at, look, cx).await?),
        FileAction::Keep => Change::Keep(keep(tool, file, at, look, cx).await?),
    })
}

/// Looks at a file that is moved as it is, of whatever size.
async fn keep(
    tool: &Edit,
    file: &FileChange,
    at: Located,
    look: Look,
    cx: &Cx,
) -> Result<UnchangedFile, Failure> {
    let kept = hashed(file, at, look, cx).await?;
    if kept.hash.is_some() && tool.strict && kept.freshness != Freshness::Same {
        return Err(unseen(kept.freshness, &kept.at, "move", cx).into());
    }
    Ok(kept)
}

/// Looks at all that a file holds, of whatever size, unless that would hold up a question.
async fn hashed(
    file: &FileChange,
    at: Located,
    look: Look,
    cx: &Cx,
) -> Result<UnchangedFile, Failure> {
    if look == Look::First && at.size() > files::WHOLE {
        let freshness = freshness::judge(cx, &at, None);
        return Ok(UnchangedFile { at, hash: None, freshness, lines: None });
    }
    let hash = cx.hash(&at).await?;
    let freshness = freshness(file, &at, hash, cx)?;
    cx.offer_hash(&at, hash);
    Ok(UnchangedFile { at, hash: Some(hash), freshness, lines: None })
}

/// How a file stands to what was seen of it; refuses one that is not what was expected.
fn freshness(file: &FileChange, at: &Located, hash: Hash, cx: &Cx) -> Result<Freshness, ToolError> {
    match file.expect.as_deref().map(files::expected).transpose()? {
        Some(expected) if expected != hash => {
            Err(files::unexpected(&cx.place.shown(&at.real), &expected, Some(&hash)))
        }
        Some(_) => Ok(Freshness::Same),
        None => Ok(freshness::judge(cx, at, Some(&hash))),
    }
}

fn unseen(freshness: Freshness, at: &Located, verb: &str, cx: &Cx) -> ToolError {
    let shown = cx.place.shown(&at.real);
    // One that changed is refused anyway where it is to be removed.
    let why = match freshness {
        Freshness::Never => format!("{}; {}", super::why(freshness), change::STRICT),
        other => super::why(other).to_owned(),
    };
    ToolError::new(format!("{shown} {why}"))
        .hint(format!("Read the file before you {verb} it, or give its hash as expect."))
}

/// Looks at a file that is to be removed, of whatever size.
async fn delete(
    tool: &Edit,
    file: &FileChange,
    at: Located,
    look: Look,
    cx: &Cx,
) -> Result<UnchangedFile, Failure> {
    files::regular(cx, &file.path, &at, "deleted").await?;
    let kept = if at.size() > files::WHOLE {
        hashed(file, at, look, cx).await?
    } else {
        let shown = cx.place.shown(&at.real).into_owned();
        let old = files::whole(cx.host.fs(), &at, files::WHOLE, &shown).await?;
        let hash = Hash::of(&old);
        let freshness = freshness(file, &at, hash, cx)?;
        cx.offer_pre_image(&at, &old, hash);
        let lines = haft_text::lines::count(&old, false) as u64;
        UnchangedFile { at, hash: Some(hash), freshness, lines: Some(lines) }
    };
    let refused = match kept.freshness {
        Freshness::Changed => true,
        Freshness::Never => tool.strict,
        Freshness::Same => false,
    };
    if kept.hash.is_some() && refused {
        return Err(unseen(kept.freshness, &kept.at, "delete", cx).into());
    }
    Ok(kept)
}

/// Says that the fault of one file kept all of them from being changed.
fn none(failure: Failure, files: &[FileChange]) -> Failure {
    match failure {
        Failure::Raced(error) => Failure::Raced(unchanged(error, files)),
        Failure::Told(error) => Failure::Told(unchanged(error, files)),
    }
}

/// The same of an error that says it already, or not yet.
fn unchanged(error: ToolError, files: &[FileChange]) -> ToolError {
    let all = match files.len() {
        0 | 1 => "Nothing was changed.".to_owned(),
        several => format!("None of the {several} files was changed."),
    };
    let says = |text: &str| text.contains("Nothing was changed") || text.contains(&all);
    if says(&error.message) || error.hint.as_deref().is_some_and(says) {
        return error;
    }
    let hint = error.hint.as_deref().map_or_else(|| all.clone(), |hint| format!("{hint} {all}"));
    error.hint(hint)
}

async fn once(
    tool: &Edit,
    files: &[FileChange],
    found: &[NamedFile],
    cx: &Cx,
) -> Result<Outcome, Failure> {
    let mut items = items(tool, files, found, Look::Whole, cx).await?;
    let steps = items.iter_mut().filter_map(|item| item.step(cx).map(|step| (item, step)));
    let (changed, steps): (Vec<&mut Item>, Vec<PlannedChange>) = steps.unzip();
    let written = cx.change_together(&steps).await.map_err(|error| refused(error, files))?;
    for (item, written) in changed.into_iter().zip(written) {
        let Some(written) = written else { continue };
        if let Some(hash) = item.known() {
            freshness::note(cx, &written.at, Some(hash));
        }
        item.change.made(&written);
    }
    answer(&items, cx).map_err(Failure::from)
}

impl Item {
    /// The file as it was looked up.
    fn at(&self) -> &Located {
        match &self.change {
            Change::Edit(_, work) => &work.at,
            Change::Write(_, work) => &work.at,
            Change::Delete(kept) | Change::Keep(kept) => &kept.at,
        }
    }

    /// Where the file is in the end, or was.
    fn real(&self) -> &HostPath {
        self.to.as_ref().map_or_else(|| &self.at().real, |(to, _)| &to.real)
    }

    /// Where a moved file was.
    fn source(&self) -> Option<&HostPath> {
        self.to.as_ref().map(|_| &self.at().real)
    }

    fn before(&self) -> Option<Hash> {
        match &self.change {
            Change::Edit(_, work) => Some(work.before),
            Change::Write(_, work) => work.before(),
            Change::Delete(kept) | Change::Keep(kept) => kept.hash,
        }
    }

    fn after(&self) -> Option<Hash> {
        match &self.change {
            Change::Edit(_, work) => Some(work.after),
            Change::Write(_, work) => Some(work.after),
            Change::Keep(kept) => kept.hash,
            Change::Delete(..) => None,
        }
    }

    /// The hash of what the file holds then, where the conversation knows all of that.
    fn known(&self) -> Option<Hash> {
        let unseen =
            matches!(&self.change, Change::Keep(kept) if kept.freshness != Freshness::Same);
        self.after().filter(|_| !unseen)
    }

    /// The change of the text; none where it stays, or goes.
    fn diff(&self) -> Option<&TextDiff> {
        match &self.change {
            Change::Edit(_, work) => Some(work.diff.shown()),
            Change::Write(_, work) => Some(work.diff.shown()),
            Change::Delete(..) | Change::Keep(_) => None,
        }
    }

    /// What is to be done; none where the file is as wanted already.
    fn step(&self, cx: &Cx) -> Option<PlannedChange> {
        let (data, hash) = match &self.change {
            Change::Edit(_, work) => (Some(work.data(cx)), work.after),
            Change::Write(_, work) => (work.data(cx), work.after),
            Change::Keep(kept) => (None, kept.hash?),
            Change::Delete(kept) => {
                return Some(PlannedChange { at: kept.at.clone(), to: NewState::Gone });
            }
        };
        let to = match &self.to {
            Some((to, _)) => NewState::Moved { to: to.clone(), data, hash },
            None => NewState::Holding(data?, hash),
        };
        Some(PlannedChange { at: self.at().clone(), to })
    }

    fn versions(&self) -> Versions<'_> {
        let (before, after) = (self.before(), self.after());
        Versions { path: self.real(), from: self.source(), before, after }
    }

    fn detail(&self) -> Detail {
        match &self.change {
            Change::Edit(_, work) => work.diff.detail(&self.versions()),
            Change::Write(_, work) => work.diff.detail(&self.versions()),
            Change::Delete(kept) | Change::Keep(kept) => {
                let Versions { path, from, before, after } = self.versions();
                let counts = kept.lines.map(|removed| LineCounts { added: 0, removed });
                let (path, from, hunks) = (path.clone(), from.cloned(), Vec::new());
                Shape::Diff { path, from, hunks, counts, before, after }.into()
            }
        }
    }

    /// What people see who are asked, up to so many bytes.
    fn preview(&mut self, most: usize) -> Detail {
        let mut diff = match &mut self.change {
            Change::Edit(_, work) => take(&mut work.diff),
            Change::Write(_, work) => take(&mut work.diff),
            Change::Delete(_) | Change::Keep(_) => return self.detail(),
        };
        diff.preview(&self.versions(), most)
    }

    fn receipt(&self, cx: &Cx) -> Option<Receipt> {
        let own = match &self.change {
            Change::Edit(_, work) => Some(work.receipt(cx)),
            Change::Write(_, work) => work.receipt(cx),
            Change::Delete(..) | Change::Keep(_) => None,
        };
        let action = match (&self.change, self.source()) {
            (_, Some(from)) => ReceiptAction::Renamed { from: from.clone() },
            (Change::Delete(..), None) => ReceiptAction::Deleted,
            _ => return own,
        };
        let (host, path) = (cx.host.name().to_owned(), self.real().clone());
        let receipt = own.unwrap_or_else(|| Receipt {
            before: self.before(),
            after: self.after(),
            ..Receipt::new(host, path.clone(), ReceiptAction::Deleted)
        });
        Some(Receipt { path, action, ..receipt })
    }

    fn data(&self) -> FileData {
        let text = |path: &HostPath| path.text().into_owned();
        let data = FileData {
            path: text(self.real()),
            moved_from: self.source().map(text),
            diff: self.diff().map(TextDiff::unified),
            hash_before: self.before().map(|hash| hash.to_string()),
            hash_after: self.after().map(|hash| hash.to_string()),
            ..FileData::default()
        };
        match &self.change {
            Change::Edit(_, work) => {
                let told = work.told();
                FileData {
                    first_changed_line: Some(told.first_changed_line),
                    replacements: Some(told.replacements),
                    file_size: Some(told.file_size),
                    tolerance: told.tolerance,
                    ranges: Some(told.ranges),
                    ..data
                }
            }
            Change::Write(_, work) => FileData { file_size: Some(work.size()), ..data },
            Change::Keep(kept) => FileData { file_size: Some(kept.at.size()), ..data },
            Change::Delete(..) => data,
        }
    }

    fn text(&self, cx: &Cx) -> Result<String, ToolError> {
        let text = self.change.text(cx, self.to.as_ref().map(|(_, text)| &**text))?;
        let Some((to, asked)) = &self.to else { return Ok(text) };
        let mut notes = Vec::new();
        if cx.path(asked)? != to.real {
            notes.push(format!("{asked} leads to {}", to.real));
        }
        let [from, new] = [self.at(), to].map(|at| cx.place.shown(&at.real));
        let moved = format!("Moved {from} to {new}.");
        let moved = change::answer(&moved, &notes, "");
        Ok(if text.is_empty() { moved } else { format!("{moved}\n{text}") })
    }
}

impl Change {
    /// Takes note of how it was written.
    fn made(&mut self, written: &Written) {
        match self {
            Self::Edit(_, work) => change::made_notes(&work.at, written, &mut work.notes),
            Self::Write(_, work) => work.made(written),
            Self::Delete(_) | Self::Keep(_) => {}
        }
    }

    /// What became of a file that is at `new` now, where it was moved.
    fn text(&self, cx: &Cx, new: Option<&str>) -> Result<String, ToolError> {
        match self {
            Self::Edit(input, work) => {
                let path = new.unwrap_or(&input.path);
                let first = work.first(path, cx)?;
                Ok(change::answer(&first, &work.notes, &work.diff.shown().numbered()))
            }
            Self::Write(_, work) if new.is_some() && work.same() => Ok(String::new()),
            Self::Write(input, work) => {
                let input = new.map_or_else(|| input.clone(), |path| input.at(path));
                Ok(work.answer(&input, cx)?.0)
            }
            Self::Delete(UnchangedFile { at, freshness, .. }) => {
                let (shown, size) = (cx.place.shown(&at.real), units::size(at.size()));
                let unread = *freshness == Freshness::Never && at.size() > 0;
                let note = "the file was never read in this conversation".to_owned();
                let notes = if unread { vec![note] } else { Vec::new() };
                Ok(change::answer(&format!("Deleted {shown} ({size})."), &notes, ""))
            }
            Self::Keep(kept) if kept.freshness == Freshness::Changed => {
                Ok("[the file had changed since it was read; read it again before you edit it]"
                    .to_owned())
            }
            Self::Keep(_) => Ok(String::new()),
        }
    }
}

/// The error of the host for the model.
fn refused(error: TransactionError, files: &[FileChange]) -> Failure {
    match error {
        TransactionError::Refused(source) | TransactionError::PutBack { source, files: 0 } => {
            none(source.into(), files)
        }
        TransactionError::PutBack { source, files: back } => {
            let back = units::count(back as u64, "file");
            let add = |error: ToolError| {
                let text =
                    format!("{}; what was changed before it was put back: {back}", error.message);
                ToolError { message: text, ..error }
            };
            match none(source.into(), files) {
                Failure::Raced(error) => Failure::Raced(add(error)),
                Failure::Told(error) => Failure::Told(add(error)),
            }
        }
        TransactionError::NotKept { path, why } if files.len() == 1 => {
            ToolError::new(format!("{path} cannot be kept for undo: {why}"))
                .hint("Nothing was changed. Use a command where it shall be done without undo.")
                .into()
        }
        error @ TransactionError::NotKept { .. } => ToolError::new(error.to_string())
            .hint(
                "Nothing was changed. Write or edit that file in a call of its own; to remove it \
                 without undo use a command.",
            )
            .into(),
        error @ TransactionError::NoJournal(_) => {
            ToolError::new(error.to_string()).hint("Nothing was changed.").into()
        }
        error @ TransactionError::Cut { .. } => ToolError::new(error.to_string())
            .hint("Read these files before you go on; all the others are as they were.")
            .into(),
    }
}

/// All of what would be done, each file with an equal share of the room.
fn preview(items: &mut [Item]) -> Detail {
    let most = PREVIEW / items.len().max(1);
    Shape::Many { details: items.iter_mut().map(|item| item.preview(most)).collect() }.into()
}

fn shown(items: &[Item]) -> Detail {
    Shape::Many { details: items.iter().map(Item::detail).collect() }.into()
}

fn answer(items: &[Item], cx: &Cx) -> Result<Outcome, ToolError> {
    let mut texts: Vec<String> =
        items.iter().map(|item| item.text(cx)).collect::<Result<_, _>>()?;
    let changed = items.iter().filter(|item| item.receipt(cx).is_some()).count();
    match items.len() {
        1 => {}
        _ if changed == 0 => {}
        all if changed == all => texts.insert(0, format!("Edited {all} files together.")),
        all => texts.insert(0, format!("Edited {changed} of {all} files; the rest is the same.")),
    }
    let data = EditAnswer { one: None, files: Some(items.iter().map(Item::data).collect()) };
    Ok(Outcome {
        content: vec![Part::text(texts.join("\n"))],
        data: serde_json::to_value(data).ok(),
        detail: Some(shown(items)),
        receipts: items.iter().filter_map(|item| item.receipt(cx)).collect(),
        ..Outcome::default()
    })
}
