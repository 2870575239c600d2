//! What the refs of a repository point to: HEAD, packed and loose refs.
//!
//! Source: git's `gitrepository-layout`, `git-pack-refs`.

use std::{collections::BTreeMap, fs, path::Path};

use super::read_file;

/// Most refs, and most bytes of the file of packed ones, that are read.
const MOST: usize = 100_000;
const PACKED: u64 = 64 << 20;
/// Most bytes of a file with one ref.
const ONE: u64 = 4_096;
/// Deepest folder below `refs`.
const DEPTH: usize = 16;

/// What HEAD says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// It names a ref.
    Branch(String),
    /// It names an object.
    Detached(String),
}

/// What HEAD of a repository says; none where git could not read it.
pub(super) fn head(git: &Path) -> Option<Head> {
    let text = text(&git.join("HEAD"), ONE)?;
    let text = text.trim_end();
    match text.strip_prefix("ref:") {
        Some(name) if name.trim().starts_with("refs/") => Some(Head::Branch(name.trim().into())),
        None if is_id(text) => Some(Head::Detached(text.into())),
        _ => None,
    }
}

fn text(path: &Path, most: u64) -> Option<String> {
    // A name that is no text hides no other one.
    Some(String::from_utf8_lossy(&read_file(path, most).ok()?).into_owned())
}

/// Reports whether a loose ref can be read.
pub(super) fn is_read(git: &Path, name: &str) -> bool {
    text(&git.join(name), ONE).is_some_and(|text| is_ref(text.trim_end()))
}

fn is_ref(text: &str) -> bool {
    is_id(text) || text.starts_with("ref:")
}

fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// All refs by name, with the name of the object that each stands for, or of another ref.
pub(super) fn all(git: &Path) -> BTreeMap<String, String> {
    let mut refs = packed(git);
    add_loose(&git.join("refs"), "refs", DEPTH, &mut refs);
    refs
}

/// The refs that are files of their own.
pub(super) fn loose(git: &Path) -> BTreeMap<String, String> {
    let mut refs = BTreeMap::new();
    add_loose(&git.join("refs"), "refs", DEPTH, &mut refs);
    refs
}

/// The refs of the packed file.
pub(super) fn packed(git: &Path) -> BTreeMap<String, String> {
    let text = text(&git.join("packed-refs"), PACKED).unwrap_or_default();
    let line = |line: &str| {
        let (id, name) = line.split_once(' ')?;
        (is_id(id) && name.starts_with("refs/")).then(|| (name.to_owned(), id.to_owned()))
    };
    text.lines().filter_map(line).take(MOST).collect()
}

fn add_loose(folder: &Path, name: &str, depth: usize, refs: &mut BTreeMap<String, String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        // Two names that are no text may be one here: then only one of them is named.
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        if kind.is_dir() && depth > 0 {
            add_loose(&entry.path(), &name, depth - 1, refs);
        } else if kind.is_file() && refs.len() < MOST && name.strip_suffix(".lock").is_none() {
            let Some(text) = text(&entry.path(), ONE) else { continue };
            let text = text.trim_end();
            if is_ref(text) {
                refs.insert(name, text.to_owned());
            }
        }
    }
}
