//! Files that are unchanged since git recorded them: they need not be read before a command.
//!
//! **Invariant:** a file counts as clean if it is in the state that the index records, recorded
//! some time before the index was written. A pack that is held open must also have its content,
//! with as many bytes. Line ends and keywords that git converts change the length of a file. A
//! filter or another encoding need not: if attributes name one, nothing counts as clean. What is in
//! no pack is read as usual.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, Read as _},
};

use haft_types::HostPath;
use rustix::fs::{CWD, Mode, OFlags, Stat, openat};

use super::{
    git_index::{Entry, IndexEntry},
    git_pack::{self, Opened, Reader, holders},
    locate::stamp_of,
};
use crate::{GitId, Objects, Stamp, TreeScan, tree_scan::tick};

/// Most bytes of a file of attributes or settings.
const MOST: u64 = 1 << 20;
/// Where git finds attributes beside those of a work tree: in its repository, and in general.
const IN_TOP: [&str; 1] = [".git/info/attributes"];
const IN_HOME: [&str; 2] = [".config/git/attributes", ".gitattributes"];
const OF_ALL: [&str; 2] = ["/etc/gitattributes", "/usr/local/etc/gitattributes"];
pub(super) const ATTRIBUTES: &[u8] = b".gitattributes";

/// What git has of some files.
#[derive(Default)]
pub(super) struct Clean {
    files: HashMap<HostPath, IndexEntry>,
    packs: Vec<Opened>,
    /// The files of attributes that were looked at.
    attributes: HashSet<HostPath>,
}

impl Clean {
    /// Adds what git has in a repository, by the list of what it keeps track of and its stamp.
    pub(super) fn add(&mut self, top: &HostPath, home: &HostPath, list: (&[Entry], &Stamp)) {
        let (entries, stamp) = list;
        let packs = git_pack::packs(top);
        let below = |folder: &HostPath, names: &[&str]| -> Vec<HostPath> {
            names.iter().filter_map(|name| folder.join_bytes(name.as_bytes()).ok()).collect()
        };
        let settings = below(top, &[".git/config"]);
        // Whatever these hold, hashes are others.
        if packs.is_empty() || !settings.iter().all(|path| says_none(path, &["objectformat"], true))
        {
            return;
        }
        let of_all = OF_ALL.iter().filter_map(|path| top.join(path).ok());
        let outside: Vec<HostPath> =
            below(top, &IN_TOP).into_iter().chain(below(home, &IN_HOME)).chain(of_all).collect();
        let inside = entries.iter().map(|entry| &entry.path);
        let inside: Vec<&HostPath> =
            inside.filter(|path| path.file_name() == Some(ATTRIBUTES)).collect();
        self.attributes.extend(inside.iter().map(|path| (*path).clone()));
        let plain = outside.iter().all(is_plain_or_gone)
            // Where one is gone, git takes what it keeps of it.
            && inside.iter().all(|path| says_none(path, &WORDS, false));
        if !plain {
            return;
        }
        let sure = |found: &IndexEntry| {
            let newest = found.changed.max(found.modified);
            found.size > 0 && newest + tick(newest) < stamp.modified
        };
        let clean =
            entries.iter().filter_map(|entry| Some((&entry.path, entry.found.filter(sure)?)));
        self.files.extend(clean.map(|(path, found)| (path.clone(), found)));
        self.packs.extend(packs);
    }

    /// What git has of a file with this state; with its length.
    pub(super) fn of(&self, path: &HostPath, stat: &Stat) -> Option<(GitId, u64)> {
        let found = self.files.get(path)?;
        let Stamp { id, size, modified, changed } = stamp_of(stat);
        #[expect(clippy::cast_possible_truncation, reason = "git keeps the lower halves")]
        let lower = (id.0 as u32, id.1 as u32);
        let same = (changed, modified, lower, size)
            == (found.changed, found.modified, found.id, u64::from(found.size));
        let held = || self.packs.iter().find_map(|pack| pack.len_of(found.content));
        (same && held() == Some(size)).then_some((found.content, size))
    }

    /// Reports whether attributes that git does not keep track of may say that files hold something
    /// else than git has.
    pub(super) fn is_spoilt(&self, survey: &TreeScan) -> bool {
        // In a folder that git ignores they are about what is in it.
        let is_ignored = |path: &HostPath| {
            path.parent().is_some_and(|at| survey.ignored_tree.folders.contains_key(&at))
        };
        let others = survey.nodes.keys().filter(|path| path.file_name() == Some(ATTRIBUTES));
        let others = others.filter(|path| !is_ignored(path));
        let mut others = others.filter(|path| !self.attributes.contains(*path));
        !self.files.is_empty() && others.any(|path| !is_plain_or_gone(path))
    }

    /// The packs that hold what is told to be in them, of these and of those that were known.
    pub(super) fn objects(&self, known: &TreeScan, survey: &TreeScan) -> Objects {
        let of = |survey: &TreeScan| {
            let ids = survey.nodes.values().filter_map(|node| Some(node.of_git()?.0));
            ids.collect::<HashSet<GitId>>()
        };
        let mut ids = of(survey);
        if known.objects.is_empty() {
            // It may be that of another process.
            ids.extend(of(known));
        }
        if ids.is_empty() {
            return Objects::default();
        }
        if self.packs.is_empty() {
            return known.objects.clone();
        }
        let mut packs = holders(&self.packs, &ids);
        ids.retain(|id| !self.packs.iter().any(|pack| pack.has(*id)));
        if !ids.is_empty() {
            // git has packed anew since, and has left something out.
            packs.extend(holders(&Reader::of(&known.objects.0).0, &ids));
        }
        Objects(packs)
    }
}

/// What tells that a file may hold other bytes than git has, of the same length.
const WORDS: [&str; 2] = ["filter", "encoding"];

fn is_plain_or_gone(path: &HostPath) -> bool {
    says_none(path, &WORDS, true)
}

/// Reports whether a file can be read and has none of these words; `gone` is the answer where there
/// is none.
fn says_none(path: &HostPath, words: &[&str], gone: bool) -> bool {
    match read(path) {
        Ok(text) => {
            let text = text.to_ascii_lowercase();
            !words.iter().any(|word| memchr::memmem::find(&text, word.as_bytes()).is_some())
        }
        Err(error) => {
            gone && matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        }
    }
}

fn read(path: &HostPath) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(openat(CWD, path.as_bytes(), flags, Mode::empty())?);
    let data = file.metadata()?;
    if !data.is_file() || data.len() > MOST {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut text = Vec::new();
    file.take(MOST).read_to_end(&mut text)?;
    Ok(text)
}
