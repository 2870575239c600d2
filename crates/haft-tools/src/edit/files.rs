//! Changes of several files that are made together or not at all.
//!
//! **Invariant:** every file is worked out before the first is written, and none is named twice,
//! whatever names lead to it. The turns at the files are taken in the order of their real paths, so
//! that two calls never wait for each other.

use haft_host::{FileKind, FileLock, Located};
use haft_tool::{Cx, Step, TransactionError};
use haft_types::{
    Access, Detail, EntryKind, Follow, Hash, HostPath, Outcome, Part, Place, Plan, Receipt,
    ReceiptAction, Shape, Target, ToolError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Edit, EditAnswer, FileEdit, Replacement, Work, are_text};
use crate::{
    change::{self, Tries},
    files::{self, Failure},
    seen::{self, Freshness},
    words,
    write::{self, Write, WriteInput},
};

/// Most bytes of all files of one call.
const MOST: u64 = 256 * 1024 * 1024;

/// One of several files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) struct FileChange {
    path: String,
    #[schemars(length(min = 1))]
    edits: Option<Vec<Replacement>>,
    /// Whole content of the file, new or not.
    content: Option<String>,
    /// Remove the file (default false).
    delete: Option<bool>,
    expect: Option<String>,
}

/// What programs get of one of several files.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FileData {
    /// Absolute path of the file, links resolved.
    path: String,
    /// Unified diff without file names; absent for a deleted file.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// How many places were replaced; only for edits.
    #[serde(skip_serializing_if = "Option::is_none")]
    replacements: Option<u64>,
    /// BLAKE3 hash of the content before; absent for a new file.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash_before: Option<String>,
    /// BLAKE3 hash of the content after; absent for a deleted file.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash_after: Option<String>,
}

/// What is wanted of one file.
enum What {
    Edit(FileEdit),
    Write(WriteInput),
    Delete,
}

impl FileChange {
    /// `number` counts from 1.
    fn what(&self, number: usize) -> Result<What, ToolError> {
        let Self { path, edits, content, delete, expect } = self.clone();
        match (edits, content, delete.unwrap_or_default()) {
            (Some(edits), None, false) => Ok(What::Edit(FileEdit { path, edits, expect })),
            (None, Some(content), false) => Ok(What::Write(WriteInput::new(path, content, expect))),
            (None, None, true) => Ok(What::Delete),
            (None, None, false) => Err(ToolError::new(format!(
                "file {number} of files, {path}, has neither edits, content nor delete"
            ))
            .hint("Say what shall become of it, or leave it out.")),
            _ => Err(ToolError::new(format!(
                "file {number} of files, {path}, has more than one of edits, content and delete"
            ))
            .hint("Give the one that is meant.")),
        }
    }
}

/// What the call will do; a path that is written twice is refused right away.
pub(super) fn plan(files: &[FileChange], place: &Place) -> Result<Plan, ToolError> {
    let mut targets: Vec<(HostPath, Access)> = Vec::with_capacity(files.len());
    for (number, file) in (1..).zip(files) {
        let path = files::planned(place, &file.path)?;
        if let Some(first) = targets.iter().position(|(other, _)| *other == path) {
            return Err(twice((first, &files[first].path), (number - 1, &file.path)));
        }
        let access = match file.what(number)? {
            What::Edit(edit) => {
                are_text(&edit.edits, &format!(" of file {number}"))?;
                Access::Modify
            }
            What::Write(_) => {
                let content = file.content.as_deref().unwrap_or_default();
                change::is_text(content, &format!("content of file {number}"))?;
                Access::Modify
            }
            What::Delete => Access::Destroy,
        };
        targets.push((path, access));
    }
    let title = match &targets[..] {
        [(only, _)] => format!("Editing {}", place.shown(only)),
        [(first, _), more @ ..] => {
            let more = words::count(more.len() as u64, "more file");
            format!("Editing {} and {more}", place.shown(first))
        }
        [] => return Err(ToolError::new("files is empty").hint("Name the files to edit.")),
    };
    Ok(targets.into_iter().fold(Plan::new(place, title), |plan, (path, access)| {
        // A link that is removed is not what it leads to.
        let follow = if access == Access::Destroy { Follow::No } else { Follow::Yes };
        plan.with(access, Target::Path { path, follow })
    }))
}

/// The error for two entries that are one file; they are counted from 0.
fn twice(first: (usize, &str), then: (usize, &str)) -> ToolError {
    let (numbers, names) = ((first.0 + 1, then.0 + 1), (first.1, then.1));
    let what = if names.0 == names.1 {
        format!("{} stands twice in files, as {} and as {}", names.0, numbers.0, numbers.1)
    } else {
        let (first, then) = names;
        format!("{first} and {then}, {} and {} of files, are one file", numbers.0, numbers.1)
    };
    ToolError::new(what).hint("Nothing was changed. Put all edits of a file into one entry.")
}

/// Works all files out, to refuse them early or to show them.
pub(super) async fn check(
    tool: &Edit,
    files: &[FileChange],
    cx: &Cx,
) -> Result<Option<Detail>, ToolError> {
    let found = located(files, cx).await?;
    let _turns = turns(&found, cx).await;
    let mut tries = Tries::new();
    loop {
        match items(tool, files, &found, cx).await {
            Err(failure) if tries.more(&failure) => {}
            items => return Ok(Some(shown(&items?))),
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
    cx.settle(async move {
        let found = located(&files, &own).await?;
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

async fn located(files: &[FileChange], cx: &Cx) -> Result<Vec<Located>, ToolError> {
    let mut found = Vec::with_capacity(files.len());
    for file in files {
        if file.delete.unwrap_or_default() {
            let path = cx.path(&file.path)?;
            let at = cx.host.fs().locate(&path, Follow::No).await;
            let at = at.map_err(|error| files::failed(&error))?;
            if at.kind == FileKind::Entry(EntryKind::Link) {
                let shown = cx.place.shown(&at.real);
                let text = format!("{shown} is a link; only regular files are deleted");
                return Err(ToolError::new(text).hint(
                    "Nothing was changed. Give the path that it leads to, or remove the link with \
                     a command.",
                ));
            }
            found.push(at);
        } else {
            found.push(files::locate(cx, &file.path).await?);
        }
    }
    distinct(files, &found)?;
    Ok(found)
}

/// Refuses files that are one, by links or by hard links.
fn distinct(files: &[FileChange], found: &[Located]) -> Result<(), ToolError> {
    for (then, at) in found.iter().enumerate() {
        let is_same = |other: &Located| {
            let linked = at.names > 1 && other.stamp.map(|s| s.id) == at.stamp.map(|s| s.id);
            other.real == at.real || linked
        };
        if let Some(first) = found[..then].iter().position(is_same) {
            return Err(twice((first, &files[first].path), (then, &files[then].path)));
        }
    }
    Ok(())
}

async fn turns(found: &[Located], cx: &Cx) -> Vec<FileLock> {
    let mut paths: Vec<&HostPath> = found.iter().map(|at| &at.real).collect();
    paths.sort();
    let mut turns = Vec::with_capacity(paths.len());
    for path in paths {
        turns.push(cx.session().queues.lock(cx.host.name(), path).await);
    }
    turns
}

/// The worked-out change of one file.
enum Item {
    Edit(FileEdit, Box<Work>),
    Write(WriteInput, Box<write::Work>),
    Delete(Located, Hash),
}

/// Works every file out as it stands now.
async fn items(
    tool: &Edit,
    files: &[FileChange],
    found: &[Located],
    cx: &Cx,
) -> Result<Vec<Item>, Failure> {
    let mut now = Vec::with_capacity(found.len());
    for at in found {
        now.push(change::renewed(cx, at).await?);
    }
    distinct(files, &now)?;
    let size = now.iter().map(Located::size).fold(0, u64::saturating_add);
    if size > MOST {
        let (size, most) = (words::size(size), words::size(MOST));
        let text = format!("the files have {size} together; at most {most} can be changed at once");
        return Err(ToolError::new(text).hint("Change them in several calls.").into());
    }
    let mut items = Vec::with_capacity(files.len());
    for ((number, file), at) in (1..).zip(files).zip(now) {
        let item = match file.what(number)? {
            What::Edit(edit) => {
                Work::of(tool, &edit, at, cx).await.map(|work| Item::Edit(edit, Box::new(work)))
            }
            What::Write(input) => write::Work::of(&Write { strict: tool.strict }, &input, at, cx)
                .await
                .map(|work| Item::Write(input, Box::new(work))),
            What::Delete => delete(tool, file, at, cx).await,
        };
        items.push(item.map_err(|failure| none(failure, files))?);
    }
    Ok(items)
}

/// Looks at a file that is to be removed.
async fn delete(tool: &Edit, file: &FileChange, at: Located, cx: &Cx) -> Result<Item, Failure> {
    let shown = cx.place.shown(&at.real).into_owned();
    files::regular(cx, &file.path, &at, "deleted").await?;
    let old = files::whole(cx.host.fs(), &at, files::WHOLE, &shown).await?;
    let before = Hash::of(&old);
    let freshness = match file.expect.as_deref().map(files::expected).transpose()? {
        Some(expected) if expected != before => {
            return Err(files::unexpected(&shown, &expected, Some(&before)).into());
        }
        Some(_) => Freshness::Same,
        None => seen::judge(cx, &at, Some(&before)),
    };
    if freshness == Freshness::Changed || (tool.strict && freshness == Freshness::Never) {
        return Err(ToolError::new(format!("{shown} {}", super::why(freshness)))
            .hint("Read the file before you delete it, or give its hash as expect.")
            .into());
    }
    cx.offer_pre_image(&at, &old, before);
    Ok(Item::Delete(at, before))
}

/// Says that the fault of one file kept all of them from being changed.
fn none(failure: Failure, files: &[FileChange]) -> Failure {
    let add = |error: ToolError| {
        let nothing = |text: &str| text.contains("Nothing was changed");
        if nothing(&error.message) || error.hint.as_deref().is_some_and(nothing) {
            return error;
        }
        let all = format!("None of the {} was changed.", words::count(files.len() as u64, "file"));
        let hint =
            error.hint.as_deref().map_or_else(|| all.clone(), |hint| format!("{hint} {all}"));
        error.hint(hint)
    };
    match failure {
        Failure::Raced(error) => Failure::Raced(add(error)),
        Failure::Told(error) => Failure::Told(add(error)),
    }
}

async fn once(
    tool: &Edit,
    files: &[FileChange],
    found: &[Located],
    cx: &Cx,
) -> Result<Outcome, Failure> {
    let items = items(tool, files, found, cx).await?;
    let steps: Vec<Step> = items.iter().filter_map(|item| item.step(cx)).collect();
    let written = cx.change_together(&steps).await.map_err(|error| refused(error, files))?;
    for (step, written) in steps.iter().zip(written) {
        if let (Some((_, hash)), Some(written)) = (&step.to, written) {
            seen::note(cx, &written.at, Some(*hash));
        }
    }
    answer(&items, cx).map_err(Failure::from)
}

impl Item {
    /// What is to be done; none where the file is as wanted already.
    fn step(&self, cx: &Cx) -> Option<Step> {
        let (at, to) = match self {
            Self::Edit(_, work) => (&work.at, Some((work.data(cx), work.after))),
            Self::Write(_, work) => (&work.at, Some((work.data(cx)?, work.after))),
            Self::Delete(at, _) => (at, None),
        };
        Some(Step { at: at.clone(), to })
    }

    fn detail(&self) -> Detail {
        match self {
            Self::Edit(_, work) => work.detail(),
            Self::Write(_, work) => work.detail(),
            Self::Delete(at, hash) => {
                let (path, before) = (at.real.clone(), Some(*hash));
                Shape::Diff { path, hunks: Vec::new(), before, after: None }.into()
            }
        }
    }

    fn receipt(&self, cx: &Cx) -> Option<Receipt> {
        match self {
            Self::Edit(_, work) => Some(work.receipt(cx)),
            Self::Write(_, work) => work.receipt(cx),
            Self::Delete(at, hash) => {
                let (host, path) = (cx.host.name().to_owned(), at.real.clone());
                let receipt = Receipt::new(host, path, ReceiptAction::Deleted);
                Some(Receipt { before: Some(*hash), ..receipt })
            }
        }
    }

    fn data(&self) -> FileData {
        let (at, diff, before, after, replacements) = match self {
            Self::Edit(_, work) => {
                let places = work.applied.replacements as u64;
                (&work.at, Some(&work.diff), Some(work.before), Some(work.after), Some(places))
            }
            Self::Write(_, work) => {
                (&work.at, Some(&work.diff), work.before(), Some(work.after), None)
            }
            Self::Delete(at, hash) => (at, None, Some(*hash), None, None),
        };
        FileData {
            path: at.real.text().into_owned(),
            diff: diff.map(haft_text::diff::TextDiff::unified),
            replacements,
            hash_before: before.map(|hash| hash.to_string()),
            hash_after: after.map(|hash| hash.to_string()),
        }
    }

    fn text(&self, cx: &Cx) -> Result<String, ToolError> {
        match self {
            Self::Edit(input, work) => {
                let first = work.first(input, cx)?;
                Ok(change::answer(&first, &work.notes, &work.diff.numbered()))
            }
            Self::Write(input, work) => Ok(work.answer(input, cx)?.0),
            Self::Delete(at, _) => {
                let (shown, size) = (cx.place.shown(&at.real), words::size(at.size()));
                Ok(format!("Deleted {shown} ({size})."))
            }
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
            let back = words::count(back as u64, "file");
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
        error @ TransactionError::NotKept { .. } => ToolError::new(error.to_string())
            .hint("Nothing was changed. Change that file in a call of its own.")
            .into(),
        error @ TransactionError::NoJournal(_) => {
            ToolError::new(error.to_string()).hint("Nothing was changed.").into()
        }
        error @ TransactionError::Cut { .. } => ToolError::new(error.to_string())
            .hint("Read these files before you go on; all the others are as they were.")
            .into(),
    }
}

fn shown(items: &[Item]) -> Detail {
    Shape::Many { details: items.iter().map(Item::detail).collect() }.into()
}

fn answer(items: &[Item], cx: &Cx) -> Result<Outcome, ToolError> {
    let mut text = format!("Edited {} together.", words::count(items.len() as u64, "file"));
    for item in items {
        text.push('\n');
        text.push_str(&item.text(cx)?);
    }
    let data = EditAnswer { one: None, files: Some(items.iter().map(Item::data).collect()) };
    Ok(Outcome {
        content: vec![Part::text(text)],
        data: serde_json::to_value(data).ok(),
        detail: Some(shown(items)),
        receipts: items.iter().filter_map(|item| item.receipt(cx)).collect(),
        ..Outcome::default()
    })
}
