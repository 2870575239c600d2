//! Edits of several files that are made together or not at all.
//!
//! **Invariant:** every file is worked out before the first is written, and none is named twice,
//! whatever names lead to it. The turns at the files are taken in the order of their real paths, so
//! that two calls never wait for each other.

use bytes::Bytes;
use haft_host::{FileLock, Located};
use haft_tool::{Cx, Step, TransactionError};
use haft_types::{Detail, Hash, HostPath, Outcome, Part, Place, Plan, Shape, ToolError};

use super::{Edit, EditAnswer, FileEdit, Work};
use crate::{
    change::{self, Tries},
    files::{self, Failure},
    seen, words,
};

/// Most bytes of all files of one call.
const MOST: u64 = 256 * 1024 * 1024;

/// What the call will do; a path that is written twice is refused right away.
pub(super) fn plan(files: &[FileEdit], place: &Place) -> Result<Plan, ToolError> {
    let mut paths: Vec<HostPath> = Vec::with_capacity(files.len());
    for (number, file) in (1..).zip(files) {
        let path = file.planned(place, &format!(" of file {number}"))?;
        if let Some(first) = paths.iter().position(|other| *other == path) {
            return Err(twice((first, &files[first].path), (number - 1, &file.path)));
        }
        paths.push(path);
    }
    let title = match &paths[..] {
        [only] => format!("Editing {}", place.shown(only)),
        [first, more @ ..] => {
            format!(
                "Editing {} and {}",
                place.shown(first),
                words::count(more.len() as u64, "more file")
            )
        }
        [] => return Err(ToolError::new("files is empty").hint("Name the files to edit.")),
    };
    Ok(paths.into_iter().fold(Plan::new(place, title), Plan::changes))
}

/// The error for two entries that are one file; they are counted from 0.
fn twice(first: (usize, &str), then: (usize, &str)) -> ToolError {
    let what = if first.1 == then.1 {
        format!("{} stands twice in files, as {} and as {}", then.1, first.0 + 1, then.0 + 1)
    } else {
        format!(
            "{} and {}, {} and {} of files, are one file",
            first.1,
            then.1,
            first.0 + 1,
            then.0 + 1
        )
    };
    ToolError::new(what).hint("Nothing was changed. Put all edits of a file into one entry.")
}

/// Works all files out, to refuse them early or to show them.
pub(super) async fn check(
    tool: &Edit,
    files: &[FileEdit],
    cx: &Cx,
) -> Result<Option<Detail>, ToolError> {
    let found = located(files, cx).await?;
    let _turns = turns(&found, cx).await;
    let mut tries = Tries::new();
    loop {
        match works(tool, files, &found, cx).await {
            Err(failure) if tries.more(&failure) => {}
            works => return Ok(Some(shown(&works?))),
        }
    }
}

/// Carries all edits out, to the end whatever happens.
pub(super) async fn run(tool: &Edit, files: Vec<FileEdit>, cx: &Cx) -> Result<Outcome, ToolError> {
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

async fn located(files: &[FileEdit], cx: &Cx) -> Result<Vec<Located>, ToolError> {
    let mut found = Vec::with_capacity(files.len());
    for file in files {
        found.push(files::locate(cx, &file.path).await?);
    }
    distinct(files, &found)?;
    Ok(found)
}

/// Refuses files that are one, by links or by hard links.
fn distinct(files: &[FileEdit], found: &[Located]) -> Result<(), ToolError> {
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

/// Works every file out as it stands now.
async fn works(
    tool: &Edit,
    files: &[FileEdit],
    found: &[Located],
    cx: &Cx,
) -> Result<Vec<Work>, Failure> {
    let mut now = Vec::with_capacity(found.len());
    for at in found {
        now.push(change::renewed(cx, at).await?);
    }
    distinct(files, &now)?;
    let size = now.iter().map(Located::size).fold(0, u64::saturating_add);
    if size > MOST {
        let (size, most) = (words::size(size), words::size(MOST));
        let text = format!("the files have {size} together; at most {most} can be edited at once");
        return Err(ToolError::new(text).hint("Edit them in several calls.").into());
    }
    let mut works = Vec::with_capacity(files.len());
    for (file, at) in files.iter().zip(now) {
        works.push(Work::of(tool, file, at, cx).await.map_err(|failure| none(failure, files))?);
    }
    Ok(works)
}

/// Says that the fault of one file kept all of them from being changed.
fn none(failure: Failure, files: &[FileEdit]) -> Failure {
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
    files: &[FileEdit],
    found: &[Located],
    cx: &Cx,
) -> Result<Outcome, Failure> {
    let works = works(tool, files, found, cx).await?;
    let step = |work: &Work| -> Step {
        let to: (Bytes, Hash) = (work.data(cx), work.after);
        Step { at: work.at.clone(), to: Some(to) }
    };
    let steps: Vec<Step> = works.iter().map(step).collect();
    let written = cx.change_together(&steps).await.map_err(|error| refused(error, files))?;
    for (work, written) in works.iter().zip(&written) {
        if let Some(written) = written {
            seen::note(cx, &written.at, Some(work.after));
        }
    }
    answer(files, &works, cx).map_err(Failure::from)
}

/// The error of the host for the model.
fn refused(error: TransactionError, files: &[FileEdit]) -> Failure {
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
            .hint("Nothing was changed. Edit that file in a call of its own.")
            .into(),
        error @ TransactionError::NoJournal(_) => {
            ToolError::new(error.to_string()).hint("Nothing was changed.").into()
        }
        error @ TransactionError::Cut { .. } => ToolError::new(error.to_string())
            .hint("Read these files before you go on; all the others are as they were.")
            .into(),
    }
}

fn shown(works: &[Work]) -> Detail {
    Shape::Many { details: works.iter().map(Work::detail).collect() }.into()
}

fn answer(files: &[FileEdit], works: &[Work], cx: &Cx) -> Result<Outcome, ToolError> {
    let places: u64 = works.iter().map(|work| work.applied.replacements as u64).sum();
    let mut text = format!(
        "Edited {} together: {} replaced.",
        words::count(works.len() as u64, "file"),
        words::count(places, "place")
    );
    for (file, work) in files.iter().zip(works) {
        let first = work.first(file, cx)?;
        text.push('\n');
        text.push_str(&change::answer(&first, &work.notes, &work.diff.numbered()));
    }
    let told = works.iter().map(Work::told).collect();
    let data = EditAnswer { one: None, files: Some(told) };
    Ok(Outcome {
        content: vec![Part::text(text)],
        data: serde_json::to_value(data).ok(),
        detail: Some(shown(works)),
        receipts: works.iter().map(|work| work.receipt(cx)).collect(),
        ..Outcome::default()
    })
}
