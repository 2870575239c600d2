//! Names that exist in another Unicode form than they are written, as on file systems of Apple.
//!
//! **Invariant:** a name that exists as written is taken so, and a pure ASCII name costs nothing.
//! Of two names that look equal neither is chosen. A name that is not UTF-8 has no other form.

use std::collections::HashMap;

use haft_host::{FileKind, Fs, ListHow};
use haft_text::names::{composed, escaped};
use haft_types::{Follow, HostPath, Place, ToolError};
use serde_json::Value;

use super::CLIMB;
use crate::tool::{Prepared, repair::bare};

/// Most names of a folder that are compared.
const NAMES: usize = 100_000;
/// Most names that an error lists.
const LISTED: usize = 5;

/// The arguments with each missing name as its folder has it, and a note for each path; none where
/// nothing is there in another form.
pub(super) async fn meant(
    fs: &dyn Fs,
    place: &Place,
    prepared: &Prepared,
) -> Result<Option<(Value, Vec<String>)>, ToolError> {
    let mut forms = HashMap::new();
    for text in prepared.paths() {
        for written in [Some(text.clone()), bare(&text)].into_iter().flatten() {
            if written.is_ascii() || forms.contains_key(&text) {
                continue;
            }
            let Ok(path) = place.path(&written) else { continue };
            let Some(there) = listed(fs, place, &path).await? else { continue };
            let shown = place.shown(&there).into_owned();
            if place.path(&shown).is_ok_and(|path| path == there) {
                forms.insert(text.clone(), shown);
            }
        }
    }
    let way = |text: &str| forms.get(text).cloned();
    let why = |taken: &str| format!(", the same in another Unicode form: {}", escaped(taken));
    Ok(prepared.with_paths(&way, &why))
}

/// A path with its missing names as their folders have them in another form; none where all are as
/// written, or not there at all.
async fn listed(
    fs: &dyn Fs,
    place: &Place,
    path: &HostPath,
) -> Result<Option<HostPath>, ToolError> {
    let Some((mut there, missing)) = parted(fs, path).await else { return Ok(None) };
    let mut changed = false;
    for (index, name) in missing.iter().enumerate() {
        let Ok(written) = there.join_bytes(name) else { return Ok(None) };
        // The first of them was looked for already.
        let is_there = index > 0 && is_there(fs, &written).await;
        let other = if is_there { None } else { alike(fs, place, &there, name).await? };
        if !is_there && other.is_none() {
            // What is new from here on is as it is written.
            let rest = missing[index..].join(&b'/');
            let path = there.join_bytes(&rest).ok();
            return Ok(path.filter(|_| changed));
        }
        changed |= other.is_some();
        there = other.unwrap_or(written);
    }
    Ok(changed.then_some(there))
}

/// The deepest part of a path that is there, and the names behind it.
async fn parted(fs: &dyn Fs, path: &HostPath) -> Option<(HostPath, Vec<Vec<u8>>)> {
    let (mut there, mut missing) = (path.clone(), Vec::new());
    for _ in 0..CLIMB {
        if is_there(fs, &there).await {
            missing.reverse();
            return (!missing.is_empty()).then_some((there, missing));
        }
        missing.push(there.file_name()?.to_vec());
        there = there.parent()?;
    }
    None
}

async fn is_there(fs: &dyn Fs, path: &HostPath) -> bool {
    // A link that leads nowhere is there.
    fs.locate(path, Follow::No).await.is_ok_and(|found| found.kind != FileKind::Missing)
}

/// The one entry of a folder that is a name in another form.
async fn alike(
    fs: &dyn Fs,
    place: &Place,
    folder: &HostPath,
    name: &[u8],
) -> Result<Option<HostPath>, ToolError> {
    let Some(wanted) = str::from_utf8(name).ok().filter(|name| !name.is_ascii()) else {
        return Ok(None);
    };
    let wanted = composed(wanted);
    let Ok(at) = fs.locate(folder, Follow::Yes).await else { return Ok(None) };
    if at.kind != FileKind::FOLDER {
        return Ok(None);
    }
    let Ok(listing) = fs.list(&at, ListHow { limit: NAMES, stat: false }).await else {
        return Ok(None);
    };
    let same = |entry: &&str| !entry.is_ascii() && composed(entry) == wanted;
    let names = listing.entries.iter().filter_map(|entry| str::from_utf8(&entry.name).ok());
    let found: Vec<&str> = names.filter(same).collect();
    match found[..] {
        [] => Ok(None),
        [one] => Ok(folder.join_bytes(one.as_bytes()).ok()),
        _ => Err(twins(place, folder, &wanted, &found)),
    }
}

/// Several names that are equal to the eye, none of which is the written one.
fn twins(place: &Place, folder: &HostPath, wanted: &str, found: &[&str]) -> ToolError {
    let shown = |name: &str| {
        let path = folder.join_bytes(name.as_bytes());
        let shown = path.map_or_else(|_| name.into(), |path| place.shown(&path).into_owned());
        shown.chars().take(300).collect::<String>()
    };
    let count = found.len();
    let listed = found.iter().take(LISTED).map(|name| format!("\"{}\"", escaped(&shown(name))));
    let listed = listed.collect::<Vec<_>>().join(", ");
    ToolError::new(format!(
        "{} is not there as it is written, and {count} names there differ from it in their Unicode \
         form alone: {listed}",
        shown(wanted)
    ))
    .hint("Nothing was run. Give one of these, with its \\u{..} as they stand here.")
}
