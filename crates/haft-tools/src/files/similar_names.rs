//! Names that are similar to a path at which nothing exists.
//!
//! **Invariant:** only folders of the workspace are listed, through the host of the call, which
//! leaves out what rules hide. At most [`FOLDERS`] folders with [`NAMES`] names each are listed. It
//! opens no file.

use std::collections::VecDeque;

use haft_host::{DirEntry, FileKind, ListHow, Located};
use haft_tool::Cx;
use haft_types::{EntryKind, Follow, HostPath};

/// Most folders that are looked into for the same name.
const FOLDERS: usize = 100;
/// Most names of a folder that are compared.
const NAMES: usize = 2_000;
/// Most names that are given.
const GIVEN: usize = 3;
/// Most folders above that may be missing, too.
const ABOVE: usize = 32;
/// Folders of others' files, where a name means nothing.
const FOREIGN: [&[u8]; 3] = [b".git", b"node_modules", b"target"];

/// Says which names are near, as a sentence with a space before it; empty where none is.
pub(crate) async fn hint(cx: &Cx, path: &HostPath) -> String {
    let found = names(cx, path).await;
    let shown: Vec<String> = found.iter().map(|text| haft_text::names::shown(text, 200)).collect();
    match shown.split_last() {
        None => String::new(),
        Some((last, [])) => format!(" Did you mean {last}?"),
        Some((last, others)) => format!(" Did you mean {} or {last}?", others.join(", ")),
    }
}

/// The path written in another way, names like the missing one in the deepest folder that is there,
/// else files of that name elsewhere in the workspace.
async fn names(cx: &Cx, path: &HostPath) -> Vec<String> {
    if let Some(there) = rewritten(cx, path).await {
        return vec![there];
    }
    let (mut missing, mut above) = (path.clone(), path.parent());
    for _ in 0..ABOVE {
        let Some(folder) = above.filter(|folder| cx.place.holds(folder)) else { break };
        match cx.host.fs().locate(&folder, Follow::Yes).await {
            Ok(at) if at.kind == FileKind::FOLDER => {
                let near = alike(cx, &at, &missing).await;
                return if near.is_empty() { elsewhere(cx, path).await } else { near };
            }
            Ok(at) if at.kind == FileKind::Missing => {}
            _ => break,
        }
        above = folder.parent();
        missing = folder;
    }
    Vec::new()
}

/// The path with slashes for backslashes, and from the root of the workspace where it is outside.
async fn rewritten(cx: &Cx, path: &HostPath) -> Option<String> {
    let inside = cx.place.holds(path);
    if inside && !path.as_bytes().contains(&b'\\') {
        return None;
    }
    let slashes = |bytes: &[u8]| -> Vec<u8> {
        bytes.iter().map(|byte| if *byte == b'\\' { b'/' } else { *byte }).collect()
    };
    for root in &cx.place.roots {
        let below = match path.relative_to(root) {
            Some(below) => below,
            None if inside => continue,
            None => path.as_bytes(),
        };
        let below = slashes(below);
        let Ok(meant) = root.join_bytes(below.strip_prefix(b"/").unwrap_or(&below)) else {
            continue;
        };
        if !cx.place.holds(&meant) {
            continue;
        }
        let Some(folder) = meant.parent() else { continue };
        let Ok(at) = cx.host.fs().locate(&folder, Follow::Yes).await else { continue };
        // A name that rules hide is in no listing.
        let entries = if at.kind == FileKind::FOLDER { listed(cx, &at).await } else { Vec::new() };
        if entries.iter().any(|entry| meant.file_name() == Some(&*entry.name)) {
            return Some(cx.place.shown(&meant).into_owned());
        }
    }
    None
}

async fn listed(cx: &Cx, folder: &Located) -> Vec<DirEntry> {
    let listed = cx.host.fs().list(folder, ListHow { limit: NAMES, stat: false }).await;
    listed.map(|listing| listing.entries).unwrap_or_default()
}

fn shown(cx: &Cx, folder: &HostPath, entry: &DirEntry) -> Option<String> {
    let path = folder.join_bytes(&entry.name).ok()?;
    let slash = if entry.kind == EntryKind::Folder { "/" } else { "" };
    Some(format!("{}{slash}", cx.place.shown(&path)))
}

/// Names of a folder that are written nearly like the missing one.
async fn alike(cx: &Cx, folder: &Located, missing: &HostPath) -> Vec<String> {
    let lower = |name: &[u8]| String::from_utf8_lossy(name).to_lowercase();
    let wanted = lower(missing.file_name().unwrap_or_default());
    let stem = |name: &str| name.split('.').find(|part| !part.is_empty()).map(str::to_owned);
    // The name before its extension has to be mostly the same: a.rs is not near to b.rs.
    let half = stem(&wanted).map_or(0, |stem| stem.chars().count() / 2);
    let most = half.min(1 + wanted.chars().count() / 5);
    let mut near: Vec<(usize, DirEntry)> = listed(cx, folder)
        .await
        .into_iter()
        // A link that leads nowhere has the very name.
        .filter(|entry| missing.file_name() != Some(&*entry.name))
        .filter_map(|entry| {
            let name = lower(&entry.name);
            let far = strsim::damerau_levenshtein(&name, &wanted);
            let same = stem(&name).is_some_and(|name| stem(&wanted) == Some(name));
            (same || far <= most).then_some((far, entry))
        })
        .collect();
    near.sort_by_key(|(far, _)| *far);
    near.truncate(GIVEN);
    near.iter().filter_map(|(_, entry)| shown(cx, &folder.real, entry)).collect()
}

/// Files of the same name anywhere in the workspace, folder by folder from its root.
async fn elsewhere(cx: &Cx, path: &HostPath) -> Vec<String> {
    let Some(root) = cx.place.roots.iter().find(|root| path.is_within(root)) else {
        return Vec::new();
    };
    let fs = cx.host.fs();
    let Ok(root) = fs.locate(root, Follow::Yes).await else { return Vec::new() };
    let name = path.file_name().unwrap_or_default();
    let (mut folders, mut found) = (VecDeque::from([root]), Vec::new());
    for _ in 0..FOLDERS {
        let Some(folder) = folders.pop_front() else { break };
        for entry in listed(cx, &folder).await {
            if entry.name == name {
                found.extend(shown(cx, &folder.real, &entry));
            }
            let own = entry.kind == EntryKind::Folder && !FOREIGN.contains(&&*entry.name);
            if own
                && folders.len() < FOLDERS
                && let Ok(below) = fs.child(&folder, &entry.name, Follow::No).await
            {
                folders.push_back(below);
            }
        }
        if found.len() >= GIVEN || cx.stop.is_cancelled() {
            break;
        }
    }
    found.truncate(GIVEN);
    found
}
