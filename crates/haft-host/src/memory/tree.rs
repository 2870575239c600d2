//! The files of a memory host as plain data.
//!
//! **Invariant:** every id that a folder names has a node, and the names of a node are counted. A
//! node is removed with its last name. This module knows neither written paths nor futures.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use haft_types::{EntryKind, HostPath, Style};

use crate::Stamp;

/// The id of the folder that holds the roots.
pub(super) const TOP: u64 = 0;

/// Names as they compare, with the name as it was given and the node.
pub(super) type Names = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

/// What a node is.
#[derive(Clone, Debug)]
pub(super) enum Content {
    File(Bytes),
    Folder(Names),
    Link(Vec<u8>),
    Special(EntryKind),
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) mode: u32,
    pub(super) names: u64,
    modified: u64,
    changed: u64,
}

impl Node {
    pub(super) const fn kind(&self) -> EntryKind {
        match &self.content {
            Content::File(_) => EntryKind::File,
            Content::Folder(_) => EntryKind::Folder,
            Content::Link(_) => EntryKind::Link,
            Content::Special(kind) => *kind,
        }
    }

    pub(super) fn size(&self) -> u64 {
        match &self.content {
            Content::File(data) => data.len() as u64,
            Content::Link(target) => target.len() as u64,
            Content::Folder(_) | Content::Special(_) => 0,
        }
    }

    pub(super) fn stamp(&self, id: u64) -> Stamp {
        Stamp {
            id: (0, id),
            size: self.size(),
            modified: instant(self.modified),
            changed: instant(self.changed),
        }
    }
}

/// The clock of a memory host counts changes, a millisecond each, from a fixed day on.
fn instant(tick: u64) -> i128 {
    1_700_000_000_000_000_000 + i128::from(tick) * 1_000_000
}

#[derive(Debug)]
pub(super) struct Tree {
    style: Style,
    nodes: HashMap<u64, Node>,
    next: u64,
    tick: u64,
}

impl Tree {
    pub(super) fn new(style: Style) -> Self {
        let mut tree = Self { style, nodes: HashMap::new(), next: TOP, tick: 0 };
        tree.add(Content::Folder(BTreeMap::new()), 0o755);
        tree
    }

    /// A new node without a name.
    pub(super) fn add(&mut self, content: Content, mode: u32) -> u64 {
        let id = self.next;
        self.next += 1;
        self.tick += 1;
        let (modified, changed) = (self.tick, self.tick);
        self.nodes.insert(id, Node { content, mode, names: 0, modified, changed });
        id
    }

    pub(super) fn node(&self, id: u64) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// Changes the rights of a node.
    pub(super) fn set_mode(&mut self, id: u64, mode: u32) {
        self.tick += 1;
        if let Some(node) = self.nodes.get_mut(&id) {
            node.mode = mode;
            node.changed = self.tick;
        }
    }

    /// The form of a name by which names of this host compare.
    fn key(&self, name: &[u8]) -> Vec<u8> {
        match (self.style, std::str::from_utf8(name)) {
            (Style::Posix, _) => name.to_vec(),
            (Style::Windows, Ok(text)) => text.to_lowercase().into_bytes(),
            (Style::Windows, Err(_)) => name.to_ascii_lowercase(),
        }
    }

    pub(super) fn names(&self, folder: u64) -> Option<&Names> {
        match self.nodes.get(&folder).map(|node| &node.content) {
            Some(Content::Folder(names)) => Some(names),
            _ => None,
        }
    }

    /// The name as the folder has it, and its node.
    pub(super) fn find(&self, folder: u64, name: &[u8]) -> Option<(&[u8], u64)> {
        let (name, id) = self.names(folder)?.get(&self.key(name))?;
        Some((name, *id))
    }

    /// Gives a node a name, in place of what had it; false when the folder is gone.
    pub(super) fn link(&mut self, folder: u64, name: &[u8], id: u64) -> bool {
        self.unlink(folder, name);
        let key = self.key(name);
        let Some(names) = self.change(folder) else { return false };
        names.insert(key, (name.to_vec(), id));
        let tick = self.tick;
        if let Some(node) = self.nodes.get_mut(&id) {
            node.names += 1;
            node.changed = tick;
        }
        true
    }

    /// Takes a name away, and the node with its last name.
    pub(super) fn unlink(&mut self, folder: u64, name: &[u8]) {
        let key = self.key(name);
        let Some((_, id)) = self.change(folder).and_then(|names| names.remove(&key)) else {
            return;
        };
        let tick = self.tick;
        if let Some(node) = self.nodes.get_mut(&id) {
            node.names = node.names.saturating_sub(1);
            node.changed = tick;
            if node.names == 0 {
                self.nodes.remove(&id);
            }
        }
    }

    /// Gives a node another name, keeping it alive in between.
    pub(super) fn rename(&mut self, from: (u64, &[u8]), to: (u64, &[u8])) {
        let Some(id) = self.find(from.0, from.1).map(|(_, id)| id) else { return };
        if self.link(to.0, to.1, id) {
            self.unlink(from.0, from.1);
        }
    }

    fn change(&mut self, folder: u64) -> Option<&mut Names> {
        self.tick += 1;
        let tick = self.tick;
        let node = self.nodes.get_mut(&folder)?;
        (node.modified, node.changed) = (tick, tick);
        match &mut node.content {
            Content::Folder(names) => Some(names),
            _ => None,
        }
    }

    /// True when `folder` is `id` or lies below it.
    pub(super) fn is_below(&self, folder: u64, id: u64) -> bool {
        let mut open = vec![id];
        while let Some(at) = open.pop() {
            if at == folder {
                return true;
            }
            open.extend(self.names(at).into_iter().flatten().map(|(_, (_, id))| *id));
        }
        false
    }
}

/// The root of a path, in the host's bytes.
pub(super) fn root_of(path: &HostPath) -> HostPath {
    std::iter::successors(Some(path.clone()), HostPath::parent).last().unwrap_or(path.clone())
}
