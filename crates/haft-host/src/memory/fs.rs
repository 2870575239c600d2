//! [`Fs`] over a tree in memory.
//!
//! **Invariant:** as on a disk, what was located is a folder and a name in it. A write puts a new
//! node under the name, so whoever reads the old node goes on reading it.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use futures::future::{BoxFuture, ready};
use haft_types::{EntryKind, Follow, HostPath, Rights, Style};

use super::{
    Core, FsOp, Memory,
    tree::{Content, TOP, Tree, root_of},
};
use crate::{
    DirEntry, Expect, FileKind, Fs, ListHow, Listing, Located, Staged, WriteHow, Written,
    fault::{fault, name_of, refuse},
    fs::same_place,
};

/// Most links that one path may lead through.
const MAX_LINKS: u32 = 40;

/// What a memory host holds of a located path.
#[derive(Debug)]
struct At {
    spot: Spot,
    /// The content that was seen first; all reads see it.
    opened: OnceLock<Bytes>,
}

/// Where a path ends in the tree.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub(super) real: HostPath,
    pub(super) folder: u64,
    /// The folders from the root to `folder`, as they were entered.
    above: Vec<u64>,
    pub(super) missing: Vec<Vec<u8>>,
    pub(super) name: Vec<u8>,
    pub(super) node: Option<u64>,
}

/// What an error of a method says.
pub(super) const fn failing(op: FsOp) -> &'static str {
    match op {
        FsOp::Locate => "cannot be looked up",
        FsOp::Read => "cannot be read",
        FsOp::Write | FsOp::Place => "cannot be written",
        FsOp::List => "cannot be listed",
        FsOp::Remove => "cannot be removed",
        FsOp::Rename => "cannot be renamed",
    }
}

/// Looks a path up in the tree.
pub(super) fn look(tree: &Tree, path: &HostPath, follow: Follow) -> io::Result<Spot> {
    let pending = path.names().map(<[u8]>::to_vec).collect();
    let mut walker =
        Walker { tree, path, real: root_of(path), folders: Vec::new(), pending, links: 0 };
    walker.enter_root();
    walker.run(follow)
}

/// Looks a path up without following its last name, and makes the folders above it.
pub(super) fn make_above(tree: &mut Tree, path: &HostPath) -> io::Result<Spot> {
    let mut spot = look(tree, path, Follow::No)?;
    if spot.folder == TOP && path.file_name().is_none() {
        let text = "is a root, and always a folder";
        return Err(refuse(io::ErrorKind::IsADirectory, path, text));
    }
    make_missing(tree, &mut spot);
    Ok(spot)
}

/// Makes a folder and those above it; gives its node.
pub(super) fn make_folder(tree: &mut Tree, path: &HostPath) -> io::Result<u64> {
    let mut spot = look(tree, path, Follow::Yes)?;
    match spot.node {
        Some(id) if tree.names(id).is_some() => Ok(id),
        Some(_) => Err(refuse(io::ErrorKind::NotADirectory, path, "is not a folder")),
        None => {
            make_missing(tree, &mut spot);
            Ok(new_folder(tree, spot.folder, &spot.name))
        }
    }
}

fn new_folder(tree: &mut Tree, folder: u64, name: &[u8]) -> u64 {
    let id = tree.add(Content::Folder(BTreeMap::new()), 0o755);
    tree.link(folder, name, id);
    id
}

/// Makes the folders that were missing; gives their paths, topmost first.
fn make_missing(tree: &mut Tree, spot: &mut Spot) -> Vec<HostPath> {
    let mut above: Vec<HostPath> = std::iter::successors(spot.real.parent(), HostPath::parent)
        .take(spot.missing.len())
        .collect();
    above.reverse();
    for name in std::mem::take(&mut spot.missing) {
        spot.folder = match tree.find(spot.folder, &name) {
            Some((_, id)) => id,
            None => new_folder(tree, spot.folder, &name),
        };
    }
    above
}

struct Walker<'a> {
    tree: &'a Tree,
    path: &'a HostPath,
    real: HostPath,
    /// The folders entered so far, below the one that holds the roots.
    folders: Vec<u64>,
    pending: VecDeque<Vec<u8>>,
    links: u32,
}

impl Walker<'_> {
    fn run(mut self, follow: Follow) -> io::Result<Spot> {
        loop {
            let Some(name) = self.pending.pop_front() else { return Ok(self.at_folder()) };
            if name == b".." {
                self.climb();
                continue;
            }
            let folder = self.folders.last().copied().unwrap_or(TOP);
            let Some((as_kept, id)) = self.tree.find(folder, &name) else {
                return self.missing(folder, name);
            };
            let kept_name = as_kept.to_vec();
            let last = self.pending.is_empty();
            match self.tree.node(id).map(|node| &node.content) {
                Some(Content::Link(target)) if !last || follow == Follow::Yes => {
                    self.jump(target)?;
                }
                _ if last => {
                    let real = self.below(&[kept_name.as_slice()])?;
                    let (above, missing, node) = (self.folders, Vec::new(), Some(id));
                    return Ok(Spot { real, folder, above, missing, name: kept_name, node });
                }
                Some(Content::Folder(_)) => {
                    self.real = self.below(&[kept_name.as_slice()])?;
                    self.folders.push(id);
                }
                _ => {
                    let text = format!("{} is not a folder", self.below(&[&name])?);
                    return Err(refuse(io::ErrorKind::NotADirectory, self.path, text));
                }
            }
        }
    }

    /// A root that nothing was put into yet is a folder without a node.
    fn enter_root(&mut self) {
        self.folders.clear();
        if let Some((_, id)) = self.tree.find(TOP, self.real.as_bytes()) {
            self.folders.push(id);
        }
    }

    fn climb(&mut self) {
        if let Some(parent) = self.real.parent() {
            self.real = parent;
            self.folders.pop();
        }
    }

    fn jump(&mut self, target: &[u8]) -> io::Result<()> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(fault(self.path, failing(FsOp::Locate), rustix::io::Errno::LOOP));
        }
        let style = self.path.style();
        if let Ok(absolute) = HostPath::new(target, style) {
            self.real = root_of(&absolute);
            self.enter_root();
        }
        let root = HostPath::new(target, style).map_or(0, |path| {
            // What is left of an absolute target are the names below its root.
            root_of(&path).as_bytes().len().min(target.len())
        });
        let separator = |b: &u8| *b == b'/' || (*b == b'\\' && style == Style::Windows);
        let names = target[root..].split(separator).filter(|n| !matches!(*n, b"" | b"."));
        for name in names.rev() {
            self.pending.push_front(name.to_vec());
        }
        Ok(())
    }

    fn missing(mut self, folder: u64, name: Vec<u8>) -> io::Result<Spot> {
        if self.pending.iter().any(|name| name == b"..") {
            let text = "leads through a folder that is not there";
            return Err(refuse(io::ErrorKind::NotFound, self.path, text));
        }
        let mut names = vec![name];
        names.extend(self.pending.drain(..));
        let shown: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let real = self.below(&shown)?;
        let name = names.pop().unwrap_or_default();
        if folder == TOP {
            names.insert(0, root_of(&self.real).as_bytes().to_vec());
        }
        Ok(Spot { real, folder, above: Vec::new(), missing: names, name, node: None })
    }

    /// Where a path ends at a folder itself: its own name in the folder above.
    fn at_folder(mut self) -> Spot {
        let Some(id) = self.folders.pop() else {
            let name = self.real.as_bytes().to_vec();
            let (above, missing) = (Vec::new(), Vec::new());
            return Spot { real: self.real, folder: TOP, above, missing, name, node: None };
        };
        let folder = self.folders.last().copied().unwrap_or(TOP);
        let name = self.real.file_name().unwrap_or(self.real.as_bytes()).to_vec();
        let (above, missing, node) = (self.folders, Vec::new(), Some(id));
        Spot { real: self.real, folder, above, missing, name, node }
    }

    fn below(&self, names: &[&[u8]]) -> io::Result<HostPath> {
        let separator: &[u8] = if self.path.style() == Style::Posix { b"/" } else { b"\\" };
        let mut bytes = self.real.as_bytes().to_vec();
        for name in names {
            if !bytes.ends_with(separator) {
                bytes.extend_from_slice(separator);
            }
            bytes.extend_from_slice(name);
        }
        HostPath::new(&bytes, self.path.style())
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))
    }
}

fn located(tree: &Tree, spot: Spot) -> Located {
    let node = spot.node.and_then(|id| Some((id, tree.node(id)?)));
    Located {
        real: spot.real.clone(),
        kind: node.map_or(FileKind::Missing, |(_, node)| FileKind::Entry(node.kind())),
        stamp: node.map(|(id, node)| node.stamp(id)),
        names: node.map_or(0, |(_, node)| node.names),
        handle: Arc::new(At { spot, opened: OnceLock::new() }),
    }
}

fn at(located: &Located) -> io::Result<Arc<At>> {
    Arc::clone(&located.handle).downcast().map_err(|_| {
        let text = "was located on another host; locate it on this one first";
        refuse(io::ErrorKind::InvalidInput, &located.real, text)
    })
}

/// The node that was located, if its name still stands for it.
fn held(tree: &Tree, located: &Located) -> io::Result<u64> {
    let spot = &at(located)?.spot;
    let Some(id) = spot.node else {
        return Err(refuse(io::ErrorKind::NotFound, &spot.real, "no such file or folder"));
    };
    match tree.find(spot.folder, &spot.name) {
        Some((_, now)) if now == id => Ok(id),
        Some(_) => {
            let text = "was replaced by another file since it was looked up; try again";
            Err(refuse(io::ErrorKind::ResourceBusy, &spot.real, text))
        }
        None => Err(refuse(io::ErrorKind::NotFound, &spot.real, "is not there any more")),
    }
}

fn not_regular(path: &HostPath, kind: EntryKind) -> io::Error {
    let error = match kind {
        EntryKind::Folder => io::ErrorKind::IsADirectory,
        _ => io::ErrorKind::InvalidInput,
    };
    refuse(error, path, format!("is {}, not a regular file", name_of(kind)))
}

impl Memory {
    fn child_now(&self, folder: &Located, name: &[u8], follow: Follow) -> io::Result<Located> {
        self.take_fault(FsOp::Locate, &folder.real)?;
        let separator =
            |b: &u8| matches!(b, b'/' | 0) || (*b == b'\\' && self.style == Style::Windows);
        if matches!(name, b"" | b"." | b"..") || name.iter().any(separator) {
            let text = format!("{:?} is no single name", String::from_utf8_lossy(name));
            return Err(refuse(io::ErrorKind::InvalidInput, &folder.real, text));
        }
        let tree = self.tree();
        let id = held(&tree, folder)?;
        if tree.names(id).is_none() {
            return Err(refuse(io::ErrorKind::NotADirectory, &folder.real, "is not a folder"));
        }
        let mut folders = at(folder)?.spot.above.clone();
        folders.push(id);
        let (real, pending) = (folder.real.clone(), VecDeque::from([name.to_vec()]));
        let path = &folder.real;
        let walker = Walker { tree: &tree, path, real, folders, pending, links: 0 };
        Ok(located(&tree, walker.run(follow)?))
    }

    fn renew_now(&self, old: &Located) -> io::Result<Located> {
        self.take_fault(FsOp::Locate, &old.real)?;
        let tree = self.tree();
        let spot = &at(old)?.spot;
        let now = if spot.missing.is_empty() && tree.names(spot.folder).is_some() {
            let node = tree.find(spot.folder, &spot.name).map(|(_, id)| id);
            Spot { node, ..spot.clone() }
        } else {
            look(&tree, &old.real, Follow::No)?
        };
        same_place(old, located(&tree, now))
    }

    fn read_now(&self, at_path: &Located, offset: u64, len: usize) -> io::Result<Bytes> {
        self.take_fault(FsOp::Read, &at_path.real)?;
        let at = at(at_path)?;
        let data = if let Some(data) = at.opened.get() {
            data.clone()
        } else {
            let tree = self.tree();
            let id = held(&tree, at_path)?;
            match tree.node(id).map(|node| (&node.content, node.kind())) {
                Some((Content::File(data), _)) => at.opened.get_or_init(|| data.clone()).clone(),
                Some((_, kind)) => return Err(not_regular(&at_path.real, kind)),
                None => return Err(refuse(io::ErrorKind::NotFound, &at_path.real, "is gone")),
            }
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(data.len());
        Ok(data.slice(start..start.saturating_add(len).min(data.len())))
    }

    fn list_now(&self, folder: &Located, how: ListHow) -> io::Result<Listing> {
        self.take_fault(FsOp::List, &folder.real)?;
        let tree = self.tree();
        let id = held(&tree, folder)?;
        let Some(names) = tree.names(id) else {
            let text = "is not a folder";
            return Err(refuse(io::ErrorKind::NotADirectory, &folder.real, text));
        };
        let mut sorted: Vec<(&[u8], u64)> =
            names.values().map(|(name, id)| (name.as_slice(), *id)).collect();
        sorted.sort_unstable();
        let total = sorted.len() as u64;
        sorted.truncate(how.limit);
        let entries =
            sorted.iter().map(|(name, id)| entry(&tree, folder, name, *id, how.stat)).collect();
        Ok(Listing { entries, total, denied: 0 })
    }

    fn remove_now(&self, what: &Located) -> io::Result<()> {
        self.take_fault(FsOp::Remove, &what.real)?;
        let mut tree = self.tree();
        let id = held(&tree, what)?;
        let spot = &at(what)?.spot;
        if spot.folder == TOP {
            let text = "is the root of all files and is never removed";
            return Err(refuse(io::ErrorKind::InvalidInput, &what.real, text));
        }
        if tree.names(id).is_some_and(|names| !names.is_empty()) {
            let text = "is a folder that is not empty";
            return Err(refuse(io::ErrorKind::DirectoryNotEmpty, &what.real, text));
        }
        tree.unlink(spot.folder, &spot.name);
        Ok(())
    }

    fn rename_now(&self, from: &Located, to: &Located) -> io::Result<()> {
        self.take_fault(FsOp::Rename, &from.real)?;
        let mut tree = self.tree();
        let id = held(&tree, from)?;
        let (old, new) = (&at(from)?.spot, &at(to)?.spot);
        if !new.missing.is_empty() || tree.names(new.folder).is_none() {
            let text = "the folder for it is not there; make it first";
            return Err(refuse(io::ErrorKind::NotFound, &to.real, text));
        }
        if to.kind != FileKind::Missing || tree.find(new.folder, &new.name).is_some() {
            return Err(refuse(io::ErrorKind::AlreadyExists, &to.real, "is already there"));
        }
        if tree.is_below(new.folder, id) {
            let text = format!("cannot be moved into itself, to {}", to.real);
            return Err(refuse(io::ErrorKind::InvalidInput, &from.real, text));
        }
        tree.rename((old.folder, &old.name), (new.folder, &new.name));
        Ok(())
    }
}

/// Where a write goes now, and the permission bits of what stands there, if it may go there.
fn target(tree: &Tree, to: &Located, how: &WriteHow) -> io::Result<(Spot, Option<u32>)> {
    if let FileKind::Entry(kind) = to.kind
        && kind != EntryKind::File
    {
        return Err(not_regular(&to.real, kind));
    }
    if to.real.file_name().is_none() {
        return Err(not_regular(&to.real, EntryKind::Folder));
    }
    let mut spot = at(to)?.spot.clone();
    // Another may have made them since.
    while let Some((_, id)) = spot.missing.first().and_then(|name| tree.find(spot.folder, name)) {
        spot.folder = id;
        spot.missing.remove(0);
    }
    let now = tree.find(spot.folder, &spot.name).filter(|_| spot.missing.is_empty());
    let node = now.and_then(|(_, id)| Some((id, tree.node(id)?)));
    let taken = |text: &str| refuse(io::ErrorKind::AlreadyExists, &to.real, text);
    match (how.expect, node) {
        (Expect::Absent, Some(_)) => return Err(taken("is already there")),
        (Expect::Stamp(_), None) => return Err(taken("is not there any more")),
        (Expect::Stamp(stamp), Some((id, node))) if node.stamp(id) != stamp => {
            return Err(taken("changed since it was read; read it again"));
        }
        _ => {}
    }
    if let Some((_, node)) = node
        && node.kind() != EntryKind::File
    {
        return Err(taken(&format!("became {} since it was looked up", name_of(node.kind()))));
    }
    if !how.parents && !spot.missing.is_empty() {
        return Err(refuse(io::ErrorKind::NotFound, &to.real, "its folder is not there"));
    }
    let mode = node.map(|(_, node)| node.mode);
    Ok((spot, mode))
}

/// A write that waits; the tree has nothing of it, not even its folders.
struct Waiting {
    core: Arc<Core>,
    to: Located,
    data: Bytes,
    how: WriteHow,
}

impl Waiting {
    fn place_now(self) -> io::Result<Written> {
        let Self { core, to, data, how } = self;
        core.take_fault(FsOp::Place, &to.real)?;
        let mut tree = core.tree();
        let (mut spot, old) = target(&tree, &to, &how)?;
        let mode = how.rights.map(|rights| rights.mode).or(old).unwrap_or(how.mode & 0o7755);
        let folders = make_missing(&mut tree, &mut spot);
        let id = tree.add(Content::File(data), mode);
        if !tree.link(spot.folder, &spot.name, id) {
            return Err(refuse(io::ErrorKind::NotFound, &to.real, "its folder is gone"));
        }
        spot.node = Some(id);
        Ok(Written { at: located(&tree, spot), made: folders, in_place: None })
    }
}

impl Staged for Waiting {
    fn place(self: Box<Self>) -> BoxFuture<'static, io::Result<Written>> {
        Box::pin(async move { self.place_now() })
    }
}

/// A move that waits.
struct Moving {
    core: Arc<Core>,
    from: Located,
    to: Located,
    data: Option<Bytes>,
}

/// A move needs a free name, and makes the folders above it.
const FREE: WriteHow = WriteHow { expect: Expect::Absent, parents: true, mode: 0, rights: None };

impl Moving {
    /// The file that is moved, if it is as it was located, and where it goes.
    fn ends(&self, tree: &Tree) -> io::Result<(u64, Spot)> {
        if let FileKind::Entry(kind) = self.from.kind
            && kind != EntryKind::File
        {
            return Err(not_regular(&self.from.real, kind));
        }
        if self.to.kind != FileKind::Missing {
            return Err(refuse(io::ErrorKind::AlreadyExists, &self.to.real, "is already there"));
        }
        let spot = &at(&self.from)?.spot;
        if spot.node.is_none() {
            return Err(refuse(io::ErrorKind::NotFound, &spot.real, "no such file or folder"));
        }
        let now = tree.find(spot.folder, &spot.name);
        let now = now.and_then(|(_, id)| Some((id, tree.node(id)?.stamp(id))));
        match now {
            Some((id, stamp)) if self.from.stamp == Some(stamp) => {
                Ok((id, target(tree, &self.to, &FREE)?.0))
            }
            _ => {
                let text = "changed since it was read; read it again";
                Err(refuse(io::ErrorKind::AlreadyExists, &spot.real, text))
            }
        }
    }

    fn place_now(self) -> io::Result<Written> {
        self.core.take_fault(FsOp::Rename, &self.from.real)?;
        let mut tree = self.core.tree();
        let (id, mut spot) = self.ends(&tree)?;
        let old = at(&self.from)?;
        let folders = make_missing(&mut tree, &mut spot);
        let mode = tree.node(id).map_or(0, |node| node.mode);
        spot.node = Some(match self.data {
            None => {
                tree.rename((old.spot.folder, &old.spot.name), (spot.folder, &spot.name));
                id
            }
            Some(data) => {
                let new = tree.add(Content::File(data), mode);
                tree.link(spot.folder, &spot.name, new);
                tree.unlink(old.spot.folder, &old.spot.name);
                new
            }
        });
        Ok(Written { at: located(&tree, spot), made: folders, in_place: None })
    }
}

impl Staged for Moving {
    fn place(self: Box<Self>) -> BoxFuture<'static, io::Result<Written>> {
        Box::pin(async move { self.place_now() })
    }
}

fn entry(tree: &Tree, folder: &Located, name: &[u8], id: u64, stat: bool) -> DirEntry {
    let Some(node) = tree.node(id) else { return DirEntry::default() };
    let mut entry = DirEntry { name: name.to_vec(), kind: node.kind(), ..DirEntry::default() };
    if let Content::Link(target) = &node.content {
        let end = folder.real.join_bytes(name).ok().and_then(|path| {
            let id = look(tree, &path, Follow::Yes).ok()?.node?;
            Some(tree.names(id).is_some())
        });
        entry.target = Some(target.clone());
        entry.broken = end.is_none();
        entry.to_folder = end == Some(true);
    }
    if stat {
        let milliseconds = node.stamp(id).modified.div_euclid(1_000_000);
        entry.stat = Some((node.size(), node.mode, i64::try_from(milliseconds).unwrap_or(0)));
    }
    entry
}

impl Fs for Memory {
    fn locate<'a>(
        &'a self,
        path: &'a HostPath,
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>> {
        let found = self.take_fault(FsOp::Locate, path).and_then(|()| {
            let tree = self.tree();
            Ok(located(&tree, look(&tree, path, follow)?))
        });
        Box::pin(ready(found))
    }

    fn child<'a>(
        &'a self,
        folder: &'a Located,
        name: &'a [u8],
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>> {
        Box::pin(async move { self.child_now(folder, name, follow) })
    }

    fn renew<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<Located>> {
        Box::pin(async move { self.renew_now(at) })
    }

    fn read<'a>(
        &'a self,
        at: &'a Located,
        offset: u64,
        len: usize,
    ) -> BoxFuture<'a, io::Result<Bytes>> {
        Box::pin(async move { self.read_now(at, offset, len) })
    }

    fn stage<'a>(
        &'a self,
        at: &'a Located,
        data: Bytes,
        how: WriteHow,
    ) -> BoxFuture<'a, io::Result<Box<dyn Staged>>> {
        Box::pin(async move {
            self.take_fault(FsOp::Write, &at.real)?;
            target(&self.tree(), at, &how)?;
            let (core, to) = (Arc::clone(&self.core), at.clone());
            Ok(Box::new(Waiting { core, to, data, how }) as Box<dyn Staged>)
        })
    }

    fn stage_move<'a>(
        &'a self,
        from: &'a Located,
        to: &'a Located,
        data: Option<Bytes>,
    ) -> BoxFuture<'a, io::Result<Box<dyn Staged>>> {
        Box::pin(async move {
            self.take_fault(FsOp::Write, &to.real)?;
            let (core, from, to) = (Arc::clone(&self.core), from.clone(), to.clone());
            let moving = Moving { core, from, to, data };
            moving.ends(&self.tree())?;
            Ok(Box::new(moving) as Box<dyn Staged>)
        })
    }

    fn rights<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<Option<Rights>>> {
        Box::pin(async move {
            let tree = self.tree();
            let id = held(&tree, at)?;
            Ok(tree.node(id).map(|node| Rights::of_mode(node.mode)))
        })
    }

    fn list<'a>(&'a self, at: &'a Located, how: ListHow) -> BoxFuture<'a, io::Result<Listing>> {
        Box::pin(async move { self.list_now(at, how) })
    }

    fn remove<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move { self.remove_now(at) })
    }

    fn rename<'a>(&'a self, from: &'a Located, to: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move { self.rename_now(from, to) })
    }
}
