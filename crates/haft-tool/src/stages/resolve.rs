//! `resolve`: looks every path of the plan up, once, with its links resolved and held.
//!
//! A path that models put something around is looked up without it where nothing has the written
//! name; the call is then made anew with what is there. For a new file its folder tells.
//!
//! **Invariant:** nothing is opened here for reading or writing. What cannot be located is told
//! only after the rules allowed it, so that a denied path does not even say whether it is there; of
//! two forms of a path a denial of either counts. A disk that does not answer holds up no one else.

use std::{io, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use haft_host::{FileKind, Fs, ListHow, Located, is_plain_git, is_plain_toolchain};
use haft_policy::{Around, Script, Verdict, plain_settings, unsure_paths};
use haft_types::{Access, Effect, EntryKind, Follow, HostPath, Outcome, Status, Target, ToolError};
use tokio::time::timeout;

use super::rules;
use crate::{Call, Next, Stage, pipeline::Lost};

/// Most folders above a lost path among which one that is there is looked for.
const CLIMB: usize = 40;

/// Most names among which links are looked for that a script would follow.
const LINKS: usize = 4096;

const LINK: FileKind = FileKind::Entry(EntryKind::Link);

/// Holds how long it may take.
pub(super) struct Resolve(pub Duration);

impl Stage for Resolve {
    fn name(&self) -> &'static str {
        "resolve"
    }

    fn run<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        async move {
            if let Err(error) = locate(&mut call, self.0).await {
                return error.into();
            }
            match mended(&call, self.0).await {
                Ok(None) => next.run(call).await,
                Ok(Some(mended)) => next.again(mended).await,
                Err(error) => error.into(),
            }
        }
        .boxed()
    }
}

/// Looks up every path of the call's plan.
pub(crate) async fn locate(call: &mut Call, limit: Duration) -> Result<(), ToolError> {
    let effects = &call.ready()?.plan.effects;
    let paths: Vec<Option<(HostPath, Follow)>> = effects
        .iter()
        .map(|effect| match &effect.target {
            Target::Path { path, follow } => Some((path.clone(), *follow)),
            Target::Tree { root } => Some((root.clone(), Follow::Yes)),
            _ => None,
        })
        .collect();
    let first = paths.iter().flatten().map(|(path, _)| path);
    let first = first.chain(effects.iter().filter_map(start)).next().cloned();
    call.located = vec![None; paths.len()];
    let Some(first) = first else { return Ok(()) };
    let host = call.cx.host.clone();
    let work = async {
        let mut located = Vec::with_capacity(paths.len());
        for path in paths {
            located.push(match path {
                Some((path, follow)) => Some(look_up(host.fs(), &path, follow).await),
                None => None,
            });
        }
        located
    };
    let work = async { (work.await, known(call).await) };
    if let Ok((located, known)) = timeout(limit, work).await {
        call.located = located;
        settle(call, known);
        return Ok(());
    }
    let ruling = rules::decide(call)?;
    if ruling.verdict == Verdict::Deny {
        return Err(rules::denied(&ruling));
    }
    let text = format!("looking up {} took longer than {limit:?}", call.place().shown(&first));
    Err(ToolError { status: Status::TimedOut, ..ToolError::new(text) }.hint(
        "Nothing was run. Its disk or network share may not answer; go on without it, or say so.",
    ))
}

/// Where the script of an effect starts.
const fn start(effect: &Effect) -> Option<&HostPath> {
    match &effect.target {
        Target::Command { fresh_in, .. } => fresh_in.as_ref(),
        _ => None,
    }
}

/// What is known of the script of a call once it was looked for.
#[derive(Debug, Default)]
struct Known {
    /// It starts where its words count from.
    starts_there: bool,
    /// Programs run that files there may make start others, and none does.
    is_plain: bool,
    /// Such programs run, and some file does.
    is_other: bool,
    /// Links that it may follow, with where they lead.
    links: Vec<(HostPath, Result<Located, Lost>)>,
    /// It goes through more than can be looked at for links.
    has_more: bool,
}

/// Looks where the script of a call starts, and how git and toolchains are set up where it runs them.
async fn known(call: &Call) -> Known {
    let effects = call.plan().map(|plan| plan.effects.as_slice()).unwrap_or_default();
    for effect in effects {
        let Target::Command { text, fresh_in: Some(cwd) } = &effect.target else { continue };
        let fs = call.cx.host.fs();
        let found = fs.locate(cwd, Follow::Yes).await;
        let starts_there = found.is_ok_and(|found| found.real == *cwd);
        let script = Script::read(text, cwd, &call.place().home, Around::Plain);
        let mut plain = true;
        for folder in &script.git_folders {
            // A folder that is not there now may be one that the script makes or finds elsewhere.
            let found = fs.locate(folder, Follow::Yes).await;
            let is_there = found.is_ok_and(|found| found.kind == FileKind::FOLDER);
            plain = plain && (folder == cwd || is_there) && is_plain_git(fs, folder).await;
        }
        for folder in &script.toolchain_folders {
            plain = plain && is_plain_toolchain(fs, folder).await;
        }
        let asks = !(script.git_folders.is_empty() && script.toolchain_folders.is_empty());
        let mut left = LINKS;
        let mut links = Vec::new();
        for (folder, depth) in &script.linked {
            follow(call, folder, *depth, (&mut links, &mut left)).await;
        }
        let (is_plain, is_other) = (asks && plain, asks && !plain);
        return Known { starts_there, is_plain, is_other, links, has_more: left == 0 };
    }
    Known::default()
}

/// Looks for the links below a folder.
async fn follow(
    call: &Call,
    folder: &HostPath,
    depth: usize,
    (links, left): (&mut Vec<(HostPath, Result<Located, Lost>)>, &mut usize),
) {
    let fs = call.cx.host.fs();
    let mut folders = vec![(folder.clone(), depth)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(at) = fs.locate(&folder, Follow::Yes).await else { continue };
        let how = ListHow { limit: *left, stat: false };
        let Ok(listing) = fs.list(&at, how).await else { continue };
        *left -= listing.entries.len().min(*left);
        for entry in listing.entries {
            let Ok(path) = folder.join_bytes(&entry.name) else { continue };
            match entry.kind {
                EntryKind::Link => {
                    let found = look_up(fs, &path, Follow::Yes).await;
                    links.push((path, found));
                }
                EntryKind::Folder if depth > 1 => folders.push((path, depth - 1)),
                _ => {}
            }
        }
    }
}

/// Makes of the plan of a script what is known now: that it may do more than look, and which paths
/// are files.
fn settle(call: &mut Call, known: Known) {
    let Ok(prepared) = &mut call.prepared else { return };
    let is_script = |effect: &Effect| start(effect).is_some();
    if !prepared.plan.effects.iter().any(is_script) {
        return;
    }
    for (effect, found) in prepared.plan.effects.iter_mut().zip(&call.located) {
        let is_file = effect.access == Access::Observe
            && matches!(found, Some(Ok(found)) if found.kind != FileKind::FOLDER);
        match &effect.target {
            _ if is_script(effect) && known.is_other => {
                effect.access = Access::Destroy;
            }
            Target::Tree { root } if is_file => {
                effect.target = Target::Path { path: root.clone(), follow: Follow::Yes };
            }
            _ => {}
        }
    }
    for (path, found) in known.links {
        let target = Target::Path { path, follow: Follow::Yes };
        prepared.plan.effects.push(Effect { access: Access::Observe, target });
        call.located.push(Some(found));
    }
    if known.has_more || !known.starts_there {
        prepared.plan.effects.push(unsure_paths());
        call.located.push(None);
    }
    if known.is_plain {
        prepared.plan.effects.push(plain_settings());
        call.located.push(None);
    }
}

async fn look_up(fs: &dyn Fs, path: &HostPath, follow: Follow) -> Result<Located, Lost> {
    let error = match fs.locate(path, follow).await {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    let real = near(fs, path).await;
    Err(Lost { cause: error.into(), real })
}

/// Where a path that cannot be located would be, without a look through links.
async fn near(fs: &dyn Fs, path: &HostPath) -> Option<HostPath> {
    let mut below = path.clone();
    for _ in 0..CLIMB {
        let folder = below.parent()?;
        if let Ok(found) = fs.locate(&folder, Follow::Yes).await {
            let link = fs.locate(&below, Follow::No).await;
            let leads_on = link.is_ok_and(|link| link.kind == LINK);
            let rest = path.relative_to(&folder).filter(|_| !leads_on)?;
            return found.real.join_bytes(rest).ok();
        }
        below = folder;
    }
    None
}

/// The same call with its paths as they were probably meant, where only those are there.
async fn mended(call: &Call, limit: Duration) -> Result<Option<Call>, ToolError> {
    let is_missing = |found: &Option<Result<Located, Lost>>| matches!(found, Some(Ok(found)) if found.kind == FileKind::Missing);
    if call.mended || !call.located.iter().any(is_missing) {
        return Ok(None);
    }
    let Some((input, notes)) = call.ready()?.bare_paths() else { return Ok(None) };
    if rules::decide(call)?.verdict == Verdict::Deny {
        return Ok(None);
    }
    let mut other = call.mended(input);
    if other.plan().is_none() {
        return Ok(None);
    }
    locate(&mut other, limit).await?;
    let ruling = rules::decide(&other)?;
    if ruling.verdict == Verdict::Deny {
        return Err(rules::denied(&ruling));
    }
    let paths = |call: &Call| -> Vec<Option<HostPath>> {
        let effects = call.plan().map(|plan| plan.effects.as_slice()).unwrap_or_default();
        effects.iter().map(|effect| effect.path().cloned()).collect()
    };
    let (written, meant) = (paths(call), paths(&other));
    let mut found = false;
    for index in 0..written.len().min(meant.len()) {
        let missing = is_missing(&call.located[index]);
        let there = !is_missing(&other.located[index]);
        let is_new = missing && !there && modifies(call, index);
        found |= missing && there;
        if let (true, Some(written), Some(meant)) = (is_new, &written[index], &meant[index]) {
            let folder_tells = only_folder(call.cx.host.fs(), written, meant);
            found |= timeout(limit, folder_tells).await.unwrap_or_default();
        }
        if !missing && written[index] != meant[index] {
            return Ok(None);
        }
    }
    other.notes.extend(notes);
    Ok((found && written.len() == meant.len()).then_some(other))
}

fn modifies(call: &Call, index: usize) -> bool {
    let effect = call.plan().and_then(|plan| plan.effects.get(index));
    effect.is_some_and(|effect| effect.access == Access::Modify)
}

/// Reports whether of the folders of two forms of a new file's path only that of the second is
/// there.
async fn only_folder(fs: &dyn Fs, written: &HostPath, meant: &HostPath) -> bool {
    let (Some(written), Some(meant)) = (written.parent(), meant.parent()) else { return false };
    let kind = |folder: HostPath| async move {
        fs.locate(&folder, Follow::Yes).await.ok().map(|found| found.kind)
    };
    kind(written).await == Some(FileKind::Missing) && kind(meant).await == Some(FileKind::FOLDER)
}

/// What is wrong with a path of a call that no rule denies, where nothing can be done with it.
pub(super) fn unusable(call: &Call) -> Option<ToolError> {
    let effects = &call.plan()?.effects;
    let lost = effects.iter().zip(&call.located).find_map(|(effect, located)| {
        let lost = located.as_ref()?.as_ref().err()?;
        let told = lost.real.is_some() || is_loop(lost.cause.kind());
        told.then_some((effect.path()?, lost.cause.kind()))
    });
    let (path, kind) = lost?;
    let (what, next) = match kind {
        io::ErrorKind::NotADirectory => (
            "one of the folders in it is a file (not a directory)".to_owned(),
            "Look with ls what is there, and name a path through folders.",
        ),
        io::ErrorKind::PermissionDenied => (
            "the system does not let haft into one of its folders (permission denied)".to_owned(),
            "Use another path, or ask the person for the right to it.",
        ),
        io::ErrorKind::InvalidFilename => (
            "a name in it is longer than the file system takes (file name too long)".to_owned(),
            "Use shorter names; most systems take 255 bytes each.",
        ),
        kind if is_loop(kind) => (
            "its links lead in a circle (too many levels of symbolic links)".to_owned(),
            "Name the file itself, or mend the links first.",
        ),
        kind => (format!("looking it up failed ({kind})"), "Check the path, or use another."),
    };
    let shown: String = call.place().shown(path).chars().take(300).collect();
    Some(ToolError::new(format!("{shown} cannot be used: {what}.")).hint(next))
}

/// The kind has no stable name yet, only this text.
fn is_loop(kind: io::ErrorKind) -> bool {
    kind.to_string().starts_with("filesystem loop")
}
