//! The list of files that git tracks: `.git/index`. git itself is not run.
//!
//! **Invariant:** whatever the file holds, parsing it costs no more than reading it. An entry that
//! is not understood ends the list: the list says what else is worth a check, and what need not be
//! read.

use std::{
    fs::File,
    io::{self, Read as _},
};

use haft_types::{Hash, HostPath};
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::{GitId, tree_scan::SECOND};

/// Most bytes of the file.
const MOST: u64 = 256 << 20;
/// What is in front of the path of an entry, with the flags at its end: times, numbers, a hash.
const HEAD: usize = 62;
/// The bytes of a hash, which is what the file ends with.
const HASH: usize = 20;
/// Says that further flags follow.
const EXTENDED: u8 = 0x40;
/// The bits of the flags that tell the length of the path.
const LENGTH: u8 = 0x0f;

/// Bits of the mode of a file that is neither link nor repository, whether it may be run or not.
const FILE: u32 = 0o100_644;
const MAY_RUN: u32 = 0o111;
/// The mode of a repository within.
const LINKED: u32 = 0o160_000;

/// What git keeps track of at one path.
pub(super) struct Entry {
    pub(super) path: HostPath,
    /// The state in which git found the file; none where it is none, or what stands there need not
    /// be what git has.
    pub(super) found: Option<IndexEntry>,
}

/// The state of a file as git found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexEntry {
    /// In nanoseconds since the Unix epoch.
    pub(super) changed: i128,
    /// As `changed`.
    pub(super) modified: i128,
    /// The lower half of the numbers of disk and file.
    pub(super) id: (u32, u32),
    /// Its lower half.
    pub(super) size: u32,
    /// What it holds, as git names it.
    pub(super) content: GitId,
}

/// What git keeps track of in the repository whose folder this is, and the hash of what it has of each.
pub(super) fn tracked(top: &HostPath) -> (Vec<Entry>, Hash) {
    let text = read(top).unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    let show = |at: usize, path: &[u8]| {
        // Its mode, what it holds, and what git was told of it; not when and how it was last seen.
        let parts = [text.get(at + 24..at + 28), text.get(at + 40..at + HEAD)];
        for part in parts.into_iter().flatten().chain([path, b"\0"]) {
            hasher.update(part);
        }
    };
    let entries = entries(&text, show).into_iter();
    let entry =
        |(path, found): (Vec<u8>, _)| Some(Entry { path: top.join_bytes(&path).ok()?, found });
    let entries = entries.filter_map(entry).collect();
    (entries, Hash::from_bytes(*hasher.finalize().as_bytes()))
}

fn read(top: &HostPath) -> io::Result<Vec<u8>> {
    let path = [top.as_bytes(), b".git/index"].join(&b'/');
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut text = Vec::new();
    file.take(MOST).read_to_end(&mut text)?;
    Ok(text)
}

/// Reports whether an index lists a repository within: an entry of mode 160000. None where not all of it
/// is understood, as where another file holds a part of its entries.
pub(crate) fn lists_links(text: &[u8]) -> Option<bool> {
    lists(text, |mode, _| mode == Some(LINKED))
}

/// Reports whether an index lists something below a folder, named from the top of its repository; none
/// where not all of it is understood.
pub(crate) fn lists_below(text: &[u8], folder: &[u8]) -> Option<bool> {
    lists(text, |_, path| {
        folder.is_empty()
            || path.strip_prefix(folder).is_some_and(|rest| rest.first().is_none_or(|c| *c == b'/'))
    })
}

/// Reports whether one of its entries, by mode and path, is such a one.
fn lists(text: &[u8], is_one: impl Fn(Option<u32>, &[u8]) -> bool) -> Option<bool> {
    let (Some(b"DIRC"), Some(version @ 2..=4), Some(count)) =
        (text.get(..4), number(text, 4), number(text, 8))
    else {
        return None;
    };
    let (mut at, mut path) = (12, Vec::new());
    for _ in 0..count {
        let mode = number(text, at + 24);
        let next = entry(text, at, version, &mut path)?;
        if is_one(mode, &path) {
            return Some(true);
        }
        // With hashes of another length the flags stand elsewhere.
        let said = usize::from(*text.get(at + HEAD - 2)? & LENGTH) << 8
            | usize::from(*text.get(at + HEAD - 1)?);
        if said != path.len().min(0xfff) {
            return None;
        }
        at = next;
    }
    is_whole(text, at).then_some(false)
}

/// Whether nothing but what git may leave out stands behind the entries of an index: parts whose names
/// begin with a capital, and a hash at the end.
fn is_whole(text: &[u8], mut at: usize) -> bool {
    while text.len() > at + HASH {
        let (Some(first), Some(len)) = (text.get(at), number(text, at + 4)) else { return false };
        if !first.is_ascii_uppercase() {
            return false;
        }
        at = at.saturating_add(8).saturating_add(len as usize);
    }
    text.len() == at + HASH
}

/// The paths of an index of the versions 2 to 4 with hashes of 20 bytes, as git writes them; each is
/// shown with where its entry begins.
fn entries(text: &[u8], mut show: impl FnMut(usize, &[u8])) -> Vec<(Vec<u8>, Option<IndexEntry>)> {
    let (Some(b"DIRC"), Some(version @ 2..=4), Some(count)) =
        (text.get(..4), number(text, 4), number(text, 8))
    else {
        return Vec::new();
    };
    let (mut all, mut at, mut last) = (Vec::new(), 12, Vec::new());
    for _ in 0..count {
        let Some(next) = entry(text, at, version, &mut last) else { break };
        show(at, &last);
        all.push((last.clone(), found(&text[at..])));
        at = next;
    }
    all
}

/// The objects that an index names.
pub(super) fn objects(text: &[u8]) -> Vec<GitId> {
    let mut ids = Vec::new();
    entries(text, |at, _| {
        let id = text.get(at + 40..at + 60).and_then(|id| id.try_into().ok());
        let id = id.filter(|_| number(text, at + 24).is_some_and(|mode| mode != LINKED));
        ids.extend(id.map(GitId));
    });
    ids
}

fn number(text: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(text.get(at..at + 4)?.try_into().ok()?))
}

/// The state that an entry tells.
fn found(text: &[u8]) -> Option<IndexEntry> {
    let number = |at: usize| number(text, at);
    let time = |at: usize| Some(i128::from(number(at)?) * SECOND + i128::from(number(at + 4)?));
    // Of one that is merged, left out or only meant, and of one that git was told not to look at,
    // this says nothing.
    let plain = *text.get(HEAD - 2)? & !LENGTH == 0;
    let content = GitId(text.get(40..60)?.try_into().ok()?);
    let (id, size) = ((number(16)?, number(20)?), number(36)?);
    let found = IndexEntry { changed: time(0)?, modified: time(8)?, id, size, content };
    (plain && number(24)? & !MAY_RUN == FILE & !MAY_RUN).then_some(found)
}

/// Reads an entry, `path` being that of the one before; gives where the next one begins.
fn entry(text: &[u8], at: usize, version: u32, path: &mut Vec<u8>) -> Option<usize> {
    let is_extended = text.get(at + HEAD - 2)? & EXTENDED != 0;
    let mut from = at + HEAD + if is_extended { 2 } else { 0 };
    if version == 4 {
        let mut byte = *text.get(from)?;
        let mut cut = usize::from(byte & 127);
        while byte & 128 != 0 {
            from += 1;
            byte = *text.get(from)?;
            cut = cut.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
        }
        from += 1;
        path.truncate(path.len().checked_sub(cut)?);
    } else {
        path.clear();
    }
    let len = memchr::memchr(0, text.get(from..)?)?;
    path.extend_from_slice(&text[from..from + len]);
    // Each entry ends with one to eight NUL bytes, so that its length is a multiple of eight.
    let end = from + len + 1;
    Some(if version == 4 { end } else { at + (end - at).next_multiple_of(8) })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use haft_types::Style;

    use super::*;

    fn run(folder: &std::path::Path, arguments: &[&str]) -> Vec<u8> {
        let mut command = Command::new("git");
        let done = command.arg("-C").arg(folder).args(arguments).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        done.stdout
    }

    #[test]
    fn names_and_sizes_that_look_like_links_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| run(folder.path(), arguments);
        let top = HostPath::new(folder.path().to_str().unwrap().as_bytes(), Style::Posix).unwrap();
        let lists = || lists_links(&read(&top).unwrap());
        git(&["init", "-q"]);
        // The name has the bytes of the part that names another file, the size those of the mode.
        std::fs::write(folder.path().join("unlink"), "").unwrap();
        std::fs::write(folder.path().join("big"), vec![0; 0xe000]).unwrap();
        std::fs::write(folder.path().join("n".repeat(200)), "").unwrap();
        git(&["add", "."]);
        let text = read(&top).unwrap();
        assert!(text.windows(7).any(|bytes| bytes == b"link\0\0\0"));
        assert!(text.windows(4).any(|bytes| bytes == [0, 0, 0xe0, 0]));
        for version in ["2", "4"] {
            git(&["update-index", "--index-version", version]);
            assert_eq!(lists(), Some(false), "version {version}");
            git(&[
                "-c",
                "user.name=a",
                "-c",
                "user.email=b",
                "commit",
                "-qm",
                "c",
                "--allow-empty",
            ]);
            assert_eq!(lists(), Some(false), "version {version} with trees");
        }
        let text = read(&top).unwrap();
        for cut in 0..text.len() {
            assert_ne!(lists_links(&text[..cut]), Some(true), "cut off at {cut}");
        }
        git(&["update-index", "--split-index"]);
        assert_eq!(lists(), None, "what another file holds");
        git(&["update-index", "--no-split-index"]);
        assert_eq!(lists(), Some(false));
        let commit = String::from_utf8(git(&["rev-parse", "HEAD"])).unwrap();
        let link = format!("160000,{},within", commit.trim());
        git(&["update-index", "--add", "--cacheinfo", &link]);
        assert_eq!(lists(), Some(true));
    }

    #[test]
    fn an_index_with_other_hashes_is_not_understood() {
        let folder = tempfile::tempdir().unwrap();
        let top = HostPath::new(folder.path().to_str().unwrap().as_bytes(), Style::Posix).unwrap();
        run(folder.path(), &["init", "-q", "--object-format=sha256"]);
        std::fs::write(folder.path().join("unlink"), "").unwrap();
        run(folder.path(), &["add", "."]);
        assert_eq!(lists_links(&read(&top).unwrap()), None);
    }

    #[test]
    fn what_git_lists_is_listed_in_every_version() {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| run(folder.path(), arguments);
        git(&["init", "-q"]);
        let long = "n".repeat(200);
        for name in ["a", "ab/c", "ab/d", "ab/longer name", "\u{e4}", &long, "z/z/z/z"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        }
        git(&["add", "."]);
        let top = HostPath::new(folder.path().to_str().unwrap().as_bytes(), Style::Posix).unwrap();
        let wanted: Vec<Vec<u8>> = {
            let listed = git(&["ls-files", "-z"]);
            let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
            names.map(|name| top.join_bytes(name).unwrap().as_bytes().to_vec()).collect()
        };
        assert_eq!(wanted.len(), 7);
        for version in ["2", "3", "4"] {
            git(&["update-index", "--index-version", version]);
            if version == "3" {
                // Something that only that one can say.
                std::fs::write(folder.path().join("meant"), "").unwrap();
                git(&["add", "-N", "meant"]);
            }
            let found: Vec<Vec<u8>> =
                tracked(&top).0.iter().map(|one| one.path.as_bytes().to_vec()).collect();
            let found: Vec<_> = found.into_iter().filter(|one| !one.ends_with(b"meant")).collect();
            assert_eq!(found, wanted, "version {version}");
        }
        let text = read(&top).unwrap();
        for cut in 0..text.len().min(600) {
            assert!(entries(&text[..cut], |_, _| {}).len() <= 8, "whatever is cut off");
        }
        assert!(entries(b"DIRC\0\0\0\x02\xff\xff\xff\xff", |_, _| {}).is_empty());
    }
}
