//! Walks folder trees without doing any input or output itself, for every kind of host.
//!
//! The driver asks for the [`next`](Walker::next) step, performs it on its host, and answers. So
//! order, ignore rules, the filter and the counts are the same on every host.
//!
//! **Invariant:** nothing is opened, listed or read before the filter has allowed it. Entries come
//! folder by folder, in byte order of their names. The walk holds one open folder for each level of
//! depth, at most [`DEPTH_LIMIT`].

mod rules;

use std::{
    collections::{HashMap, VecDeque},
    fmt::Display,
    sync::{Arc, Mutex, PoisonError},
};

use haft_types::{EntryKind, HostPath};

pub(crate) use self::rules::{IGNORE_FILES, IGNORE_LIMIT, Names, Rules, Verdict};
use crate::{Filter, Skipped, Walk};

/// How deep folders may be nested; a deeper one is counted as unreadable.
pub const DEPTH_LIMIT: usize = 256;

/// Most bytes of a path that are shown with a cause.
const SHOWN: usize = 100;

/// Most names of one folder that are walked; the others are counted as unreadable.
pub(crate) const FOLDER_LIMIT: usize = 1_000_000;

/// One name of a listed folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// In the host's bytes.
    pub(crate) bytes: Vec<u8>,
    /// What it is; a link is a link.
    pub(crate) kind: EntryKind,
    /// True for a link to a folder; only asked for when links are followed.
    pub(crate) to_folder: bool,
}

/// Where an ignore file is.
#[derive(Clone, Debug)]
pub(crate) enum Base<H> {
    /// In a folder above the root of the walk.
    Above(HostPath),
    /// In an open folder.
    In(H),
}

/// An entry that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Item<H> {
    /// The open folder that it is in.
    pub(crate) folder: H,
    /// Its whole path.
    pub(crate) path: HostPath,
    /// Its last name.
    pub(crate) name: Vec<u8>,
    /// In a search for names its path from the root, `/` between names.
    pub(crate) below: Vec<u8>,
    /// What it is; a link is a link.
    pub(crate) kind: EntryKind,
    /// True where it is walked as a folder: a folder, or a followed link to one.
    pub(crate) folderish: bool,
}

/// What to do next.
#[derive(Debug)]
pub(crate) enum Step<H> {
    /// Read a small file and answer with [`Walker::ignore_file`].
    Ignore {
        /// The folder that the names start at.
        base: Base<H>,
        /// The names below it; none of them may be a link.
        names: &'static [&'static [u8]],
        /// The whole path of the file.
        path: HostPath,
    },
    /// Open a folder, ask [`Walker::may_enter`], list it, and answer with [`Walker::entered`], or
    /// with [`Walker::unreadable`].
    Enter {
        /// The open folder that it is in.
        folder: H,
        /// Its name there.
        name: Vec<u8>,
        /// Whether it may be a link.
        follow: bool,
    },
    /// Take an entry.
    Item(Item<H>),
    /// Nothing is left.
    Done,
}

/// One folder that the walk is in.
#[derive(Debug)]
struct Frame<H> {
    handle: H,
    id: (u64, u64),
    path: HostPath,
    names: std::vec::IntoIter<Name>,
    /// Length of the parent's part of `Walker::at`.
    parent: usize,
}

/// An ignore file that is still to be read.
#[derive(Debug)]
struct PendingIgnoreFile<H> {
    base: Base<H>,
    path: HostPath,
    depth: usize,
    which: usize,
}

/// Where a walk tells what it passes over.
pub(crate) type Passed = Arc<Mutex<PassedOver>>;

/// What a walk passes over. Of each list at most [`PASSED_MOST`] and one more.
#[derive(Debug, Default)]
pub(crate) struct PassedOver {
    /// The folders that are ignored, and what is called `.git`.
    pub(crate) folders: Vec<HostPath>,
    /// What else is ignored.
    pub(crate) files: Vec<HostPath>,
    /// How many of those are in each folder.
    pub(crate) counts: HashMap<HostPath, u64>,
    /// What the filter hides, ignored or not, and whoever walks may know of.
    pub(crate) hidden: Vec<HostPath>,
}

/// Most paths that are told so, of each kind.
pub(crate) const PASSED_MOST: usize = 20_000;

/// The state of a walk; `H` is an open folder.
pub(crate) struct Walker<H> {
    rules: Rules,
    allowed: Filter,
    /// Judges the ignore files above the root.
    excludes: Filter,
    follow: bool,
    /// True for a search for names: folders, links and the rest are items, too.
    names: bool,
    root: HostPath,
    /// The present folder from the host's root, with `/` at its end unless it is empty.
    at: Vec<u8>,
    /// Length of the root's part of `at`.
    root_len: usize,
    frames: Vec<Frame<H>>,
    wanted: VecDeque<PendingIgnoreFile<H>>,
    reading: Option<(usize, usize)>,
    /// The folder that is entered next.
    pending: Option<(HostPath, Vec<u8>)>,
    /// The folder whose entering was asked for.
    entering: Option<(HostPath, Vec<u8>)>,
    skipped: Skipped,
    passed: Option<Passed>,
}

impl<H: Clone> Walker<H> {
    /// A walk below `root`; `names` for a search for names, `follow` for links to folders.
    pub(crate) fn new(
        root: &HostPath,
        rules: Rules,
        walk: &Walk,
        names: bool,
        follow: bool,
    ) -> Self {
        let mut walker = Self {
            rules,
            allowed: Filter::clone(&walk.allowed),
            excludes: Filter::clone(&walk.excludes),
            follow,
            names,
            root: root.clone(),
            at: Vec::new(),
            root_len: 0,
            frames: Vec::new(),
            wanted: VecDeque::new(),
            reading: None,
            pending: None,
            entering: None,
            skipped: Skipped::default(),
            passed: None,
        };
        walker.want_above();
        walker
    }

    /// Asks for the ignore files of the folders above the root, and goes to the root.
    fn want_above(&mut self) {
        let mut above: Vec<HostPath> = Vec::new();
        while let Some(parent) = above.last().unwrap_or(&self.root).parent() {
            above.push(parent);
        }
        let names: Vec<Vec<u8>> = self.root.names().map(<[u8]>::to_vec).collect();
        for (folder, name) in above.into_iter().rev().zip(&names) {
            let depth = self.rules.depth();
            self.rules.push(self.at.len());
            for which in 0..IGNORE_FILES.len() {
                self.want(&folder, Base::Above(folder.clone()), depth, which);
            }
            self.at.extend_from_slice(name);
            self.at.push(b'/');
        }
        self.root_len = self.at.len();
    }

    fn want(&mut self, folder: &HostPath, base: Base<H>, depth: usize, which: usize) {
        let path = folder.join_bytes(&IGNORE_FILES[which].join(&b'/'));
        let allowed = match base {
            Base::Above(_) => &self.excludes,
            Base::In(_) => &self.allowed,
        };
        if let Ok(path) = path
            && self.rules.reads(which)
            && allowed(&path)
        {
            self.wanted.push_back(PendingIgnoreFile { base, path, depth, which });
        }
    }

    /// Starts in the opened root.
    pub(crate) fn begin(&mut self, handle: H, id: (u64, u64), names: Vec<Name>, left: u64) {
        self.enter(handle, id, self.root.clone(), names, left, self.at.len());
    }

    fn enter(
        &mut self,
        handle: H,
        id: (u64, u64),
        path: HostPath,
        mut names: Vec<Name>,
        left: u64,
        parent: usize,
    ) {
        names.sort_unstable_by(|a, b| a.bytes.cmp(&b.bytes));
        let depth = self.rules.depth();
        self.rules.push(self.at.len());
        for (which, file) in IGNORE_FILES.iter().enumerate() {
            let kind = if file.len() == 1 { EntryKind::File } else { EntryKind::Folder };
            if names
                .binary_search_by(|name| (*name.bytes).cmp(file[0]))
                .is_ok_and(|at| names[at].kind == kind)
            {
                self.want(&path, Base::In(handle.clone()), depth, which);
            }
        }
        if left > 0 {
            let cause = format!("more than {} names; {left} were left out", names.len());
            self.count_unreadable(&path, left, cause);
        }
        self.frames.push(Frame { handle, id, path, names: names.into_iter(), parent });
    }

    /// Takes the content of the ignore file that was asked for; none where it is not there.
    pub(crate) fn ignore_file(&mut self, text: Option<&[u8]>) {
        if let (Some((depth, which)), Some(text)) = (self.reading.take(), text) {
            self.rules.add(depth, which, text);
        }
    }

    /// Says whether the opened folder may be listed; a followed link is judged by where it leads.
    pub(crate) fn may_enter(&mut self, id: (u64, u64), real: Option<&HostPath>) -> bool {
        let known = id != (0, 0);
        if self.follow && known && self.frames.iter().any(|frame| frame.id == id) {
            self.skipped.loops += 1;
        } else if let Some(real) = real.filter(|real| !(self.allowed)(real)) {
            let inside = real.is_within(&self.root);
            *(if inside { &mut self.skipped.denied } else { &mut self.skipped.outside }) += 1;
        } else {
            return true;
        }
        self.entering = None;
        false
    }

    /// Goes into the folder that was asked for; `left` names did not fit into the listing.
    pub(crate) fn entered(&mut self, handle: H, id: (u64, u64), names: Vec<Name>, left: u64) {
        if let Some((path, name)) = self.entering.take() {
            let parent = self.at.len();
            self.at.extend_from_slice(&name);
            self.at.push(b'/');
            self.enter(handle, id, path, names, left, parent);
        }
    }

    /// Passes over the folder that was asked for.
    pub(crate) fn unreadable(&mut self, cause: impl Display) {
        if let Some((path, _)) = self.entering.take() {
            self.count_unreadable(&path, 1, cause);
        }
    }

    fn count_unreadable(&mut self, path: &HostPath, number: u64, cause: impl Display) {
        self.skipped.unreadable += number;
        let root = &self.root;
        self.skipped.cause.get_or_insert_with(|| {
            let shown = path.shown_from(root);
            // The cause has to be seen behind a path of any length.
            let from = shown.ceil_char_boundary(shown.len().saturating_sub(SHOWN));
            format!("{}{}: {cause}", if from > 0 { "..." } else { "" }, &shown[from..])
        });
    }

    /// Gives away the end of the walk as a walk of its own: the second half of the folders that are
    /// left in the outermost folder that has any, and all that comes after them.
    pub(crate) fn split(&mut self) -> Option<Self> {
        // The ignore files of a folder come before what is in it, on either side.
        if !self.wanted.is_empty() || self.entering.is_some() {
            return None;
        }
        let folderish =
            |name: &Name| name.kind == EntryKind::Folder || (self.follow && name.to_folder);
        let left = |frame: &Frame<H>| {
            let names = frame.names.as_slice();
            let folders: Vec<usize> =
                (0..names.len()).filter(|&at| folderish(&names[at])).collect();
            folders.get(folders.len() / 2).copied()
        };
        let (depth, at) = self
            .frames
            .iter()
            .enumerate()
            .find_map(|(depth, frame)| Some((depth, left(frame)?)))?;
        let inside = self.frames.get(depth + 1).map_or(self.at.len(), |frame| frame.parent);
        let mut frames = Vec::with_capacity(depth + 1);
        for (level, frame) in self.frames[..=depth].iter_mut().enumerate() {
            let mut names: Vec<Name> = std::mem::take(&mut frame.names).collect();
            let rest = names.split_off(if level == depth { at } else { 0 });
            frame.names = names.into_iter();
            frames.push(Frame {
                handle: frame.handle.clone(),
                id: frame.id,
                path: frame.path.clone(),
                names: rest.into_iter(),
                parent: frame.parent,
            });
        }
        Some(Self {
            rules: self.rules.outer(self.frames.len() - frames.len()),
            allowed: Filter::clone(&self.allowed),
            excludes: Filter::clone(&self.excludes),
            follow: self.follow,
            names: self.names,
            root: self.root.clone(),
            at: self.at[..inside].to_vec(),
            root_len: self.root_len,
            frames,
            wanted: VecDeque::new(),
            reading: None,
            pending: None,
            entering: None,
            skipped: Skipped::default(),
            passed: self.passed.clone(),
        })
    }

    /// Has what is passed over told there.
    pub(crate) fn tell_passed(&mut self, passed: Passed) {
        self.passed = Some(passed);
    }

    fn pass(&self, name: &[u8], is_folder: bool) {
        let (Some(passed), Some(frame)) = (&self.passed, self.frames.last()) else { return };
        let Ok(path) = frame.path.join_bytes(name) else { return };
        let is_allowed = (self.allowed)(&path);
        if !is_allowed && !self.hides(&path) {
            return;
        }
        let mut all = passed.lock().unwrap_or_else(PoisonError::into_inner);
        let list = match (is_allowed, is_folder) {
            (false, _) => &mut all.hidden,
            (true, true) => &mut all.folders,
            (true, false) => &mut all.files,
        };
        if list.len() <= PASSED_MOST {
            list.push(path);
        }
        if is_allowed && !is_folder {
            if let Some(count) = all.counts.get_mut(&frame.path) {
                *count += 1;
            } else {
                all.counts.insert(frame.path.clone(), 1);
            }
        }
    }

    /// Reports whether a rule hides what is not allowed. What is nobody's but the walker's own
    /// business is no one's loss.
    fn hides(&self, path: &HostPath) -> bool {
        !(self.excludes)(path)
    }

    /// What was passed over so far.
    pub(crate) const fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// The next step.
    pub(crate) fn next(&mut self) -> Step<H> {
        loop {
            if let Some(wanted) = self.wanted.pop_front() {
                self.reading = Some((wanted.depth, wanted.which));
                let (base, path) = (wanted.base, wanted.path);
                return Step::Ignore { base, names: IGNORE_FILES[wanted.which], path };
            }
            let pending = self.pending.take();
            let deep = self.frames.len() >= DEPTH_LIMIT;
            let Some(frame) = self.frames.last_mut() else { return Step::Done };
            if let Some((path, name)) = pending {
                if deep {
                    self.count_unreadable(&path, 1, format!("nested more than {DEPTH_LIMIT} deep"));
                    continue;
                }
                let folder = frame.handle.clone();
                self.entering = Some((path, name.clone()));
                return Step::Enter { folder, name, follow: self.follow };
            }
            let Some(name) = frame.names.next() else {
                self.at.truncate(frame.parent);
                self.frames.pop();
                self.rules.pop();
                continue;
            };
            if let Some(step) = self.step(name) {
                return step;
            }
        }
    }

    /// What to do with one name at once; none when it is passed over, or entered next.
    fn step(&mut self, name: Name) -> Option<Step<H>> {
        let folderish = name.kind == EntryKind::Folder || (self.follow && name.to_folder);
        if name.bytes == b".git" {
            self.pass(&name.bytes, true);
            return None;
        }
        if !(self.names || folderish || name.kind == EntryKind::File) {
            return None;
        }
        let folder_len = self.at.len();
        self.at.extend_from_slice(&name.bytes);
        let verdict = self.rules.judge(&self.at, self.root_len, folderish);
        let told = self.names && verdict == Verdict::Taken;
        let below = if told { self.at[self.root_len..].to_vec() } else { Vec::new() };
        self.at.truncate(folder_len);
        if verdict != Verdict::Taken {
            if verdict == Verdict::Ignored {
                self.skipped.ignored += 1;
                self.pass(&name.bytes, folderish);
            }
            return None;
        }
        let frame = self.frames.last()?;
        let path = frame.path.join_bytes(&name.bytes).ok()?;
        if !(self.allowed)(&path) {
            self.skipped.denied += 1;
            self.pass(&name.bytes, folderish);
            return None;
        }
        let folder = frame.handle.clone();
        if folderish {
            self.pending = Some((path.clone(), name.bytes.clone()));
            if !self.names {
                return None;
            }
        }
        let (name, kind) = (name.bytes, name.kind);
        Some(Step::Item(Item { folder, path, name, below, kind, folderish }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use haft_types::Style;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::FindQuery;

    /// Names inside of a folder, by its path; those of folders end in a slash.
    const TREE: &[(&str, &[&str])] = &[
        ("w", &[".gitignore", "a/", "b.log", "b.rs", "c/", "d/", "e", "out/"]),
        ("w/a", &["1", "2.log", "x/", "y/"]),
        ("w/a/x", &["deep/", "z"]),
        ("w/a/x/deep", &["f", "out/"]),
        ("w/a/y", &[]),
        ("w/c", &[".ignore", "f", "out/"]),
        ("w/c/out", &["g", "h.log"]),
        ("w/d", &["1", "2"]),
    ];

    fn listed(path: &str) -> Vec<Name> {
        let of = TREE.iter().find(|(folder, _)| *folder == path).map_or(&[][..], |(_, all)| all);
        let name = |name: &&str| Name {
            bytes: name.trim_end_matches('/').into(),
            kind: if name.ends_with('/') { EntryKind::Folder } else { EntryKind::File },
            to_folder: false,
        };
        of.iter().map(name).collect()
    }

    /// Walks on; an open folder is its path.
    fn advance(walker: &mut Walker<String>) -> Option<Item<String>> {
        loop {
            match walker.next() {
                Step::Ignore { base, names, .. } => walker.ignore_file(match (base, names) {
                    (Base::In(folder), [b".gitignore"]) if folder == "w" => Some(b"out\n*.log"),
                    (Base::In(folder), [b".ignore"]) if folder == "w/c" => Some(b"!out\nf\n"),
                    _ => None,
                }),
                Step::Enter { folder, name, .. } => {
                    let path = format!("{folder}/{}", str::from_utf8(&name).unwrap());
                    let names = listed(&path);
                    walker.entered(path, (0, 0), names, 0);
                }
                Step::Item(item) => return Some(item),
                Step::Done => return None,
            }
        }
    }

    /// The names of a walk and how many it passed over; it is split before it walks on to the
    /// items whose numbers `splits` knows, and each part again in the same way.
    fn walked(mut walker: Walker<String>, splits: &dyn Fn(usize) -> bool) -> (Vec<String>, u64) {
        let (mut names, mut parts) = (Vec::new(), Vec::new());
        while let Some(item) = advance(&mut walker) {
            if splits(names.len()) {
                parts.extend(walker.split());
            }
            names.push(String::from_utf8(item.below).unwrap());
        }
        let mut ignored = walker.skipped().ignored;
        for part in parts.into_iter().rev() {
            let (more, passed) = walked(part, splits);
            names.extend(more);
            ignored += passed;
        }
        (names, ignored)
    }

    #[test]
    fn the_parts_of_a_walk_are_the_whole_walk_in_its_order() {
        let start = || {
            let all = || -> Filter { Arc::new(|_| true) };
            let walk = Walk { allowed: all(), excludes: all(), stop: CancellationToken::new() };
            let root = HostPath::new(b"/w", Style::Posix).unwrap();
            let rules = Rules::find(&FindQuery { hidden: true, ..FindQuery::default() });
            let mut walker = Walker::new(&root, rules, &walk, true, false);
            walker.begin("w".to_owned(), (0, 0), listed("w"), 0);
            walker
        };
        let whole = walked(start(), &|_| false);
        let wanted = ".gitignore a a/1 a/x a/x/deep a/x/deep/f a/x/z a/y b.rs c c/.ignore c/out \
                      c/out/g d d/1 d/2 e";
        assert_eq!(whole.0.join(" "), wanted);
        assert_eq!(whole.1, 6);
        for number in 0..whole.0.len() {
            assert_eq!(walked(start(), &|at| at == number), whole, "split at {number}");
            assert_eq!(walked(start(), &|at| at >= number), whole, "split from {number} on");
        }
        assert_eq!(walked(start(), &|at| at % 3 == 1), whole);
    }
}
