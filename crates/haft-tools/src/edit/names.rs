//! The names in a call that changes several files: where each file is, and where it is moved to.
//!
//! **Invariant:** no name occurs twice, whatever path leads to it. A deletion or a move is about
//! the name itself: no link is followed to it, and nothing is moved onto a name that exists.

use haft_host::{FileKind, FileLock, Located};
use haft_tool::Cx;
use haft_types::{EntryKind, Follow, HostPath, ToolError};

use super::files::FileChange;
use crate::files;

/// One name in a call.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    /// Of the entry, from 1.
    pub(super) number: usize,
    /// Whether it is where a file is moved to.
    pub(super) new: bool,
    /// Whether its file is moved.
    pub(super) moves: bool,
    pub(super) text: &'a str,
}

/// All names of a call, in the order in which they stand there.
pub(super) fn names(files: &[FileChange]) -> impl Iterator<Item = Name<'_>> {
    (1..).zip(files).flat_map(|(number, file)| {
        let moves = file.move_to.is_some();
        let name = |new, text| Name { number, new, moves, text };
        let new = file.move_to.as_deref().map(|text| name(true, text));
        std::iter::once(name(false, &file.path)).chain(new)
    })
}

/// The error for two names that are one.
pub(super) fn twice(first: Name<'_>, then: Name<'_>) -> ToolError {
    if first.number == then.number {
        let text = format!("{} is to be moved to {}, where it is already", first.text, then.text);
        return ToolError::new(text).hint("Nothing was changed. Give another move_to.");
    }
    let (numbers, names) = ((told(first), told(then)), (first.text, then.text));
    let what = if names.0 == names.1 {
        format!("{} stands twice in files, as {} and as {}", names.0, numbers.0, numbers.1)
    } else {
        let (first, then) = names;
        format!("{first} and {then}, {} and {} of files, are one file", numbers.0, numbers.1)
    };
    ToolError::new(what).hint(if first.moves || then.moves {
        "Nothing was changed. A name stands once in a call: give what shall be at it before or \
         after a move in a call of its own."
    } else {
        "Nothing was changed. Put all edits of a file into one entry."
    })
}

/// The error for a name that would be a file and the folder of another one.
fn nested(first: Name<'_>, then: Name<'_>) -> ToolError {
    let numbers = (told(first), told(then));
    let text = format!(
        "{} and {}, {} and {} of files, cannot both be files: one of them would be the folder of \
         the other",
        first.text, then.text, numbers.0, numbers.1
    );
    ToolError::new(text).hint("Nothing was changed. Give one of them another path.")
}

fn told(name: Name<'_>) -> String {
    match name {
        Name { number, new: true, .. } => format!("the move_to of {number}"),
        Name { number, .. } => number.to_string(),
    }
}

/// A file as it was looked up, and where it is moved to.
#[derive(Clone)]
pub(super) struct NamedFile {
    pub(super) at: Located,
    pub(super) to: Option<Located>,
}

impl NamedFile {
    fn all(&self) -> impl Iterator<Item = &Located> {
        std::iter::once(&self.at).chain(&self.to)
    }
}

pub(super) async fn located(files: &[FileChange], cx: &Cx) -> Result<Vec<NamedFile>, ToolError> {
    let mut found = Vec::with_capacity(files.len());
    for file in files {
        if !file.is_name() {
            found.push(NamedFile { at: files::locate(cx, &file.path).await?, to: None });
            continue;
        }
        let at = own(cx, &file.path).await?;
        if let FileKind::Entry(kind @ (EntryKind::Link | EntryKind::Folder)) = at.kind
            && (kind == EntryKind::Link || file.move_to.is_some())
        {
            return Err(no_file(&cx.place.shown(&at.real), kind, file.move_to.is_some()));
        }
        let to = match &file.move_to {
            Some(text) => {
                let to = own(cx, text).await?;
                is_free(cx, file, text, [&at, &to])?;
                Some(to)
            }
            None => None,
        };
        found.push(NamedFile { at, to });
    }
    distinct(files, &found)?;
    Ok(found)
}

/// Looks a name up without following a link.
async fn own(cx: &Cx, text: &str) -> Result<Located, ToolError> {
    let path = cx.path(text)?;
    cx.host.fs().locate(&path, Follow::No).await.map_err(|error| files::failed(&error))
}

fn no_file(shown: &str, kind: EntryKind, moves: bool) -> ToolError {
    let (done, verb) = if moves { ("moved", "move") } else { ("deleted", "remove") };
    let (what, instead, it) = match kind {
        EntryKind::Folder => ("a folder", "Name its files one by one", "it"),
        _ => ("a link", "Give the path that it leads to", "the link"),
    };
    ToolError::new(format!("{shown} is {what}; only regular files are {done}"))
        .hint(format!("Nothing was changed. {instead}, or {verb} {it} with a command."))
}

/// Refuses to move a file to where something is, or to no proper name.
pub(super) fn is_free(
    cx: &Cx,
    file: &FileChange,
    text: &str,
    [at, to]: [&Located; 2],
) -> Result<(), ToolError> {
    let shown = cx.place.shown(&to.real);
    if at.kind == FileKind::Missing && to.kind == FileKind::FILE {
        let text = format!(
            "there is no file {}, but {shown} is there: the move seems to be made already",
            file.path
        );
        return Err(ToolError::new(text).hint("Nothing was changed. Look at what is there first."));
    }
    let (what, hint) = match to.kind {
        FileKind::Missing => {
            files::no_folder(text)?;
            return files::can_be_named(to);
        }
        FileKind::FOLDER => {
            let name = file.path.rsplit('/').next().unwrap_or_default();
            let hint =
                format!("Give the whole new path, as {}/{name}.", text.trim_end_matches('/'));
            ("a folder is there", hint)
        }
        FileKind::Entry(EntryKind::Link) => ("a link is there", OTHER.to_owned()),
        FileKind::Entry(_) => ("it is already there", OTHER.to_owned()),
    };
    let text = format!("{} cannot be moved to {shown}: {what}", file.path);
    Err(ToolError::new(text).hint(format!("Nothing was changed. {hint}")))
}

/// What to do about a name that is taken.
const OTHER: &str = "Give another move_to, or first take away what is there in a call of its own.";

/// Refuses files that are one, by links or by hard links.
pub(super) fn distinct(files: &[FileChange], found: &[NamedFile]) -> Result<(), ToolError> {
    let all: Vec<(Name<'_>, &Located)> =
        names(files).zip(found.iter().flat_map(NamedFile::all)).collect();
    for (then, (name, at)) in all.iter().enumerate() {
        let is_same = |(_, other): &&(Name<'_>, &Located)| {
            let linked = at.names > 1 && other.stamp.map(|s| s.id) == at.stamp.map(|s| s.id);
            other.real == at.real || linked
        };
        if let Some((first, _)) = all[..then].iter().find(is_same) {
            return Err(twice(*first, *name));
        }
        // A folder is refused by itself.
        let holds = |file: &Located, other: &Located| {
            file.kind != FileKind::FOLDER && other.real.is_within(&file.real)
        };
        let above = |(_, other): &&(Name<'_>, &Located)| holds(other, at) || holds(at, other);
        if let Some((first, _)) = all[..then].iter().find(above) {
            return Err(nested(*first, *name));
        }
    }
    Ok(())
}

pub(super) async fn turns(found: &[NamedFile], cx: &Cx) -> Vec<FileLock> {
    let mut paths: Vec<&HostPath> =
        found.iter().flat_map(NamedFile::all).map(|at| &at.real).collect();
    paths.sort();
    let mut turns = Vec::with_capacity(paths.len());
    for path in paths {
        turns.push(cx.session().queues.lock(cx.host.name(), path).await);
    }
    turns
}
