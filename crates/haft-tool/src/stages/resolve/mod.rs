//! `resolve`: looks up every path of the plan once, with its links resolved and held.
//!
//! Models put quotes and the like around a path, or write a character as answers show it
//! (`\u{..}`). Such a path is looked up without that where nothing has the written name, and the
//! call is then made anew with what exists. So is a path of which a name exists in another Unicode
//! form (`forms`). For a new file its folder decides. Where that does not tell whether `\u{..}` is
//! a character, the call is refused.
//!
//! **Invariant:** nothing is opened here for reading or writing. A path that cannot be located is
//! reported only after the rules allowed it, so that a denied path does not even say whether it
//! exists. Of two forms of a path a denial of either counts. A disk that does not answer holds up
//! no one else.

mod forms;

use std::{io, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use haft_host::{FileKind, Fs, Located};
use haft_policy::{Ruling, Verdict};
use haft_types::{Access, EntryKind, Follow, HostPath, Outcome, Status, Target, ToolError};
use serde_json::Value;
use tokio::time::timeout;

use super::{proofs, rules, sandbox, script};
use crate::{Call, Next, Stage, call::LocateFailure, tool::repair::unescaped};

/// Most folders above a lost path among which one that is there is looked for.
const CLIMB: usize = 40;

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
                Err(refusal) => ToolError::from(refusal).into(),
            }
        }
        .boxed()
    }
}

/// Looks up every path of the call's plan.
pub(crate) async fn locate(call: &mut Call, limit: Duration) -> Result<(), ToolError> {
    call.walls = sandbox::walls(call).await?;
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
    let first = first.chain(effects.iter().filter_map(script::start)).next().cloned();
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
    let work = async {
        let located = work.await;
        let facts = proofs::facts(call, &located).await;
        (located, script::known(call).await, facts)
    };
    if let Ok((located, known, facts)) = timeout(limit, work).await {
        call.located = located;
        script::apply(call, known);
        call.add_facts(facts);
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

pub(super) async fn look_up(
    fs: &dyn Fs,
    path: &HostPath,
    follow: Follow,
) -> Result<Located, LocateFailure> {
    let error = match fs.locate(path, follow).await {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    let real = near(fs, path).await;
    Err(LocateFailure { cause: error.into(), real })
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

fn is_missing(found: Option<&Result<Located, LocateFailure>>) -> bool {
    matches!(found, Some(Ok(found)) if found.kind == FileKind::Missing)
}

/// Why a call whose paths may be meant otherwise goes no further.
pub(crate) enum Refusal {
    /// What was probably meant is denied.
    Denied(Box<Call>, Ruling),
    /// It cannot be told what was meant, or looked up.
    Unclear(ToolError),
}

impl From<ToolError> for Refusal {
    fn from(error: ToolError) -> Self {
        Self::Unclear(error)
    }
}

impl From<Refusal> for ToolError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Denied(_, ruling) => rules::denied(&ruling),
            Refusal::Unclear(error) => error,
        }
    }
}

/// The same call with its paths as they were probably meant, where only those are there; they are
/// located.
pub(crate) async fn mended(call: &Call, limit: Duration) -> Result<Option<Call>, Refusal> {
    if call.mended || !call.located.iter().any(|found| is_missing(found.as_ref())) {
        return Ok(None);
    }
    let prepared = call.ready()?;
    let bare = prepared.bare_paths();
    let plain = bare.is_none() && prepared.paths().iter().all(|path| path.is_ascii());
    if plain || rules::decide(call)?.verdict == Verdict::Deny {
        return Ok(None);
    }
    let bare = match bare {
        Some((input, notes)) => {
            taken_as(call, input, limit, false).await?.map(|call| (call, notes))
        }
        None => None,
    };
    if let Some((mut meant, notes)) = bare {
        meant.notes.extend(notes);
        return Ok(Some(meant));
    }
    let forms = forms::meant(call.cx.host.fs(), call.place(), prepared);
    let Ok(found) = timeout(limit, forms).await else { return Ok(None) };
    let Some((input, notes)) = found? else { return Ok(None) };
    let meant = taken_as(call, input, limit, true).await?;
    Ok(meant.map(|mut meant| {
        meant.notes.extend(notes);
        meant
    }))
}

/// The same call with these arguments, if what they name is there where the written paths are not; of
/// a new file at least a folder, which is known where it is `sure`.
async fn taken_as(
    call: &Call,
    input: Value,
    limit: Duration,
    sure: bool,
) -> Result<Option<Call>, Refusal> {
    let mut other = call.mended(input);
    if other.plan().is_none() {
        return Ok(None);
    }
    locate(&mut other, limit).await?;
    let ruling = rules::decide(&other)?;
    if ruling.verdict == Verdict::Deny {
        return Err(Refusal::Denied(Box::new(other), ruling));
    }
    let paths = |call: &Call| -> Vec<Option<HostPath>> {
        let effects = call.plan().map(|plan| plan.effects.as_slice()).unwrap_or_default();
        effects.iter().map(|effect| effect.path().cloned()).collect()
    };
    let (written, meant) = (paths(call), paths(&other));
    let (mut found, mut unclear) = (false, None);
    for index in 0..written.len().min(meant.len()) {
        let missing = is_missing(call.located[index].as_ref());
        let there = !is_missing(other.located[index].as_ref());
        let is_new = missing && !there && !sure && modifies(call, index);
        found |= missing && (there || sure);
        if let (true, Some(written), Some(meant)) = (is_new, &written[index], &meant[index]) {
            let fs = call.cx.host.fs();
            let tells = async |one, other| {
                timeout(limit, only_folder(fs, one, other)).await.unwrap_or_default()
            };
            if tells(written, meant).await {
                found = true;
            } else if unescaped(&written.text()).is_some() && !tells(meant, written).await {
                unclear = unclear.or(Some((written, meant)));
            }
        }
        if !missing && written[index] != meant[index] {
            return Ok(None);
        }
    }
    match unclear {
        Some((written, meant)) => Err(two_ways(call, written, meant).into()),
        None => Ok((found && written.len() == meant.len()).then_some(other)),
    }
}

/// Refuses the name of a new file that may have its `\u{..}` as it stands or for a character.
fn two_ways(call: &Call, written: &HostPath, meant: &HostPath) -> ToolError {
    let shown = |path: &HostPath| call.place().shown(path).chars().take(300).collect::<String>();
    let (written, meant) = (shown(written), shown(meant));
    ToolError::new(format!(
        "{written} can be meant in two ways, and neither is there: with \\u{{..}} in the name as it \
         stands, or with the character itself, as {meant:?}"
    ))
    .hint(format!(
        "Nothing was changed. For the second send \"{meant}\", with the character itself. For the \
         first make the file with a command, then call again."
    ))
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
