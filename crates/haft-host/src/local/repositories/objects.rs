//! Which objects a repository lost, and whether its refs need them.
//!
//! Source: git's `gitformat-pack`, `gitrepository-layout`; loose objects are zlib streams of `TYPE
//! LENGTH NUL CONTENT`.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs::{self, File},
    io::Read as _,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use flate2::read::ZlibDecoder;

use super::{
    super::{
        git_index,
        git_pack::{Opened, open, pack_of, packs_in},
    },
    mirror::{OBJECTS, REFTABLE, State},
    open_file, read_file, refs,
};
use crate::GitId;

/// Longest that refs are followed; then what is missing counts as needed.
const WITHIN: Duration = Duration::from_secs(2);
/// Most bytes of an object that is followed.
const MOST: u64 = 64 << 20;
const COMMIT: u8 = 1;
const TREE: u8 = 2;
const TAG: u8 = 4;

/// Most objects that are looked for one by one.
const COUNTED: usize = 2_000_000;
/// Most other repositories whose objects are used, and most bytes of the file that names them.
const OTHERS: usize = 8;
const ALTERNATES: &str = "info/alternates";
const LIST: u64 = 64 << 10;
/// Most bytes of the list of where a history is cut off.
const SHALLOW: u64 = 4 << 20;
/// Most bytes of a log that is followed, and of an index; most folders with logs.
const LOG: u64 = 16 << 20;
const INDEX: u64 = 256 << 20;
const LOGS: usize = 10_000;

/// Where objects are.
struct Base {
    folders: Vec<PathBuf>,
    packs: Vec<Opened>,
}

/// What of the copy is gone from the repository.
#[derive(Default)]
struct MissingObjects {
    ids: HashSet<GitId>,
    /// There are objects of which nothing more is known.
    is_vague: bool,
    /// A pack is gone.
    packs: bool,
}

/// The objects that the copy of a repository has and the repository has no more, and that the refs of
/// the copy need; how many are missing then.
pub(super) fn lost(git: &Path, copy: &Path, state: &State) -> Option<usize> {
    let (old, new) = (copy.join(OBJECTS), git.join(OBJECTS));
    let open = held_open(&old, state);
    let mut gone = gone(&old, &new, &open, state);
    if gone.ids.is_empty() && !gone.is_vague {
        return None;
    }
    let known = look(&new, &mut gone.ids);
    if gone.ids.is_empty() && !gone.is_vague {
        return None;
    }
    let count = gone.ids.len().max(1);
    if gone.is_vague || !known {
        // Packs that are not understood: what is gone counts as there in what came.
        let before = pack_names(&old, state);
        let now = pack_names(&new, &State::default());
        let came = now.iter().any(|name| !before.contains(name));
        return ((gone.packs && !came) || now.is_empty()).then_some(count);
    }
    // What is in tables is not followed: it may need any of them.
    if copy.join(REFTABLE).exists() {
        return Some(count);
    }
    let packs = packs_in(old.join("pack").as_os_str().as_bytes()).into_iter().chain(open).collect();
    let folders = folders(&old, &new);
    let tips = tips(git, copy);
    needs(tips, &Base { folders, packs }, &gone.ids).then_some(count)
}

/// Reports whether a repository lacks what comes before where its history was cut off.
pub(super) fn lacks_parents(git: &Path, copy: &Path) -> bool {
    let objects = git.join(OBJECTS);
    let packs = packs_in(objects.join("pack").as_os_str().as_bytes());
    let base = Base { folders: folders(&objects, &objects), packs };
    let list = read_file(&copy.join("shallow"), SHALLOW).unwrap_or_default();
    let cut = list.split(|byte| *byte == b'\n').filter_map(|line| id(str::from_utf8(line).ok()?));
    let parents = cut
        .filter_map(|one| base.get(one))
        .flat_map(|(_, content)| head_lines(&content).skip(1).collect::<Vec<_>>());
    let mut parents: HashSet<GitId> = parents.collect();
    look(&objects, &mut parents);
    !parents.is_empty()
}

/// Reports whether a repository names no more where others are whose objects it uses, and lacks what its
/// own refs stand for.
pub(super) fn lacks_others(git: &Path, copy: &Path) -> bool {
    let (old, new) = (copy.join(OBJECTS), git.join(OBJECTS));
    if !old.join(ALTERNATES).exists() || new.join(ALTERNATES).exists() {
        return false;
    }
    let refs = refs::all(copy);
    let ids = refs.values().filter(|text| text.strip_prefix("ref:").is_none());
    // Longer names, and those in tables, are not looked for.
    let ids: Option<HashSet<GitId>> = ids.map(|text| id(text)).collect();
    let Some(mut ids) = ids.filter(|_| !copy.join(REFTABLE).exists()) else { return true };
    look(&new, &mut ids) && !ids.is_empty()
}

/// The packs that are held open.
fn held_open(old: &Path, state: &State) -> Vec<Opened> {
    let pack = old.join("pack");
    let file = |stem: &[u8], end: &[u8]| {
        let name = [stem, end].concat();
        let of = |(folder, of, _): &&(PathBuf, OsString, File)| {
            *folder == pack && *of.as_bytes() == *name
        };
        state.open.iter().find(of).and_then(|(.., file)| file.try_clone().ok())
    };
    let stems = state.open.iter().filter_map(|(_, name, _)| name.as_bytes().strip_suffix(b".idx"));
    stems.filter_map(|stem| open(file(stem, b".idx")?, file(stem, b".pack")?)).collect()
}

/// The names of packs that are there, or held open.
fn pack_names(objects: &Path, state: &State) -> HashSet<String> {
    let pack = objects.join("pack");
    let open = state.open.iter().filter(|(folder, ..)| *folder == pack);
    let open = open.filter_map(|(_, name, _)| name.to_str().map(str::to_owned));
    names(&pack)
        .into_iter()
        .chain(open)
        .filter(|name| name.strip_suffix(".pack").is_some())
        .collect()
}

fn gone(old: &Path, new: &Path, open: &[Opened], state: &State) -> MissingObjects {
    let mut gone = MissingObjects::default();
    for first in names(old).into_iter().filter(|name| name.len() == 2) {
        if same_time(&old.join(&first), &new.join(&first)) {
            continue;
        }
        let now: HashSet<String> = names(&new.join(&first)).into_iter().collect();
        for rest in names(&old.join(&first)).into_iter().filter(|rest| !now.contains(rest)) {
            match id(&format!("{first}{rest}")) {
                Some(id) => drop(gone.ids.insert(id)),
                None => gone.is_vague = true,
            }
        }
    }
    let is_there = |name: &str| new.join("pack").join(name).exists();
    let missing: Vec<String> = pack_names(old, state)
        .into_iter()
        .filter(|name| {
            let list = name.strip_suffix(".pack").map(|stem| format!("{stem}.idx"));
            !is_there(name) || list.is_some_and(|list| !is_there(&list))
        })
        .collect();
    gone.packs = !missing.is_empty();
    let folder = old.join("pack");
    for name in &missing {
        let stem = name.strip_suffix(".pack").unwrap_or_default().as_bytes();
        match pack_of(folder.as_os_str().as_bytes(), stem) {
            Some(pack) => gone.ids.extend(pack.ids()),
            None if open.is_empty() => gone.is_vague = true,
            None => gone.ids.extend(open.iter().flat_map(Opened::ids)),
        }
        gone.is_vague |= gone.ids.len() > COUNTED;
        if gone.is_vague {
            break;
        }
    }
    gone
}

/// Leaves of these objects only those that are not there; false where that cannot be known.
fn look(new: &Path, ids: &mut HashSet<GitId>) -> bool {
    let mut known = true;
    for folder in folders(new, new) {
        let pack = folder.join("pack");
        for name in names(&pack) {
            let Some(stem) = name.strip_suffix(".pack") else { continue };
            match pack_of(pack.as_os_str().as_bytes(), stem.as_bytes()) {
                Some(pack) => ids.retain(|id| !pack.has(*id)),
                None => known &= !pack.join(format!("{stem}.idx")).exists(),
            }
            if ids.is_empty() {
                return known;
            }
        }
        ids.retain(|id| !loose(&folder, *id).is_file());
    }
    known
}

/// A folder of objects, and those of other repositories that this one uses.
fn folders(objects: &Path, of: &Path) -> Vec<PathBuf> {
    let text = read_file(&of.join(ALTERNATES), LIST).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let others = lines.take(OTHERS).map(|line| of.join(line));
    std::iter::once(objects.to_owned()).chain(others).collect()
}

impl Base {
    fn get(&self, id: GitId) -> Option<(u8, Vec<u8>)> {
        if let Some(file) = self.folders.iter().find_map(|of| open_file(&loose(of, id)).ok()) {
            let mut content = Vec::new();
            ZlibDecoder::new(file).take(MOST).read_to_end(&mut content).ok()?;
            let end = memchr::memchr(0, &content)?;
            let kind = match &content[..end] {
                head if head.starts_with(b"commit ") => COMMIT,
                head if head.starts_with(b"tree ") => TREE,
                head if head.starts_with(b"tag ") => TAG,
                _ => 0,
            };
            return Some((kind, content.split_off(end + 1)));
        }
        self.packs.iter().find_map(|pack| pack.object(id).ok().flatten())
    }
}

fn hex(id: GitId) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
    id.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn loose(folder: &Path, id: GitId) -> PathBuf {
    let name = hex(id);
    folder.join(&name[..2]).join(&name[2..])
}

fn id(text: &str) -> Option<GitId> {
    let text = text.as_bytes();
    if text.len() != 40 {
        return None;
    }
    let mut id = [0; 20];
    for (byte, pair) in id.iter_mut().zip(text.as_chunks::<2>().0) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(GitId(id))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn same_time(one: &Path, two: &Path) -> bool {
    let time = |path| fs::symlink_metadata(path).and_then(|found| found.modified()).ok();
    time(one).is_some_and(|time_of| Some(time_of) == time(two))
}

/// What a repository has to have: what its refs stand for, HEAD of it and of its worktrees, what their
/// logs still name, and what is staged. Of logs and indexes that stand those count, not their copies: what
/// they name no more may go.
fn tips(git: &Path, copy: &Path) -> Vec<GitId> {
    let mut tips: Vec<GitId> = refs::all(copy).values().filter_map(|text| id(text)).collect();
    let worktrees = names(&copy.join("worktrees"));
    let worktrees = worktrees.iter().map(|name| Path::new("worktrees").join(name));
    for own in std::iter::once(PathBuf::new()).chain(worktrees) {
        let (git, copy) = (git.join(&own), copy.join(&own));
        if let Some(refs::Head::Detached(text)) = refs::head(&copy) {
            tips.extend(id(&text));
        }
        let index = [&git, &copy].map(|of| read_file(&of.join("index"), INDEX).ok());
        tips.extend(
            index.into_iter().flatten().next().iter().flat_map(|text| git_index::objects(text)),
        );
        logs(&git.join("logs"), &copy.join("logs"), &mut { LOGS }, &mut tips);
    }
    tips
}

/// The objects that logs name: those that stand, else their copies.
fn logs(git: &Path, copy: &Path, left: &mut usize, tips: &mut Vec<GitId>) {
    for entry in fs::read_dir(copy).into_iter().flatten().flatten() {
        let Some(rest) = left.checked_sub(1) else { return };
        *left = rest;
        let (git, copy) = (git.join(entry.file_name()), entry.path());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            logs(&git, &copy, left, tips);
            continue;
        }
        let text = read_file(&git, LOG).or_else(|_| read_file(&copy, LOG)).unwrap_or_default();
        for line in text.split(|byte| *byte == b'\n') {
            let words = line.split(|byte| *byte == b' ').take(2);
            tips.extend(words.filter_map(|word| id(str::from_utf8(word).ok()?)));
        }
    }
}

/// Reports whether what a repository has to have reaches one of these objects.
fn needs(tips: Vec<GitId>, base: &Base, missing: &HashSet<GitId>) -> bool {
    let until = Instant::now() + WITHIN;
    let mut next = tips;
    let mut known: HashSet<GitId> = next.iter().copied().collect();
    while let Some(one) = next.pop() {
        if missing.contains(&one) || Instant::now() > until {
            return true;
        }
        let Some((kind, content)) = base.get(one) else { continue };
        let mut follow = |id: GitId, into: bool| {
            if into && known.insert(id) {
                next.push(id);
            }
            missing.contains(&id)
        };
        let found = match kind {
            TREE => tree(&content, &mut follow),
            COMMIT | TAG => head_lines(&content).any(|id| follow(id, true)),
            _ => false,
        };
        if found {
            return true;
        }
    }
    false
}

/// The objects that a commit or a tag names.
fn head_lines(content: &[u8]) -> impl Iterator<Item = GitId> {
    let lines = content.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    lines.filter_map(|line| {
        let line = std::str::from_utf8(line).ok()?;
        let (word, text) = line.split_once(' ')?;
        matches!(word, "tree" | "parent" | "object").then(|| id(text))?
    })
}

/// Follows the entries of a tree; true where one is followed to its end.
fn tree(mut content: &[u8], follow: &mut impl FnMut(GitId, bool) -> bool) -> bool {
    while let Some(end) = memchr::memchr(0, content) {
        let mode = &content[..end];
        let Some(id) = content.get(end + 1..end + 21).and_then(|id| id.try_into().ok()) else {
            return false;
        };
        let is_module = mode.starts_with(b"160000");
        if !is_module && follow(GitId(id), mode.starts_with(b"40000")) {
            return true;
        }
        content = &content[end + 21..];
    }
    false
}
