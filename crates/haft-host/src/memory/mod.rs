//! A host in memory: for tests, for stored outputs, for tools without a disk.
//!
//! **Invariant:** it answers as a disk would, links, stamps and errors included. Only permissions
//! are not checked, and its clock counts changes instead of time. It runs no programs.

mod fs;
mod tree;

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use haft_types::{EntryKind, Follow, HostPath, PathError, Style};

use self::tree::{Content, Tree};
use crate::{Caps, Fs, Host, Search, Shell, fault::refuse};

/// A method of [`Fs`] that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FsOp {
    /// [`Fs::locate`] and [`Fs::child`].
    Locate,
    /// [`Fs::read`].
    Read,
    /// [`Fs::stage`], and so [`Fs::write`], and [`Fs::stage_move`].
    Write,
    /// [`Staged::place`](crate::Staged::place) of a write.
    Place,
    /// [`Fs::list`].
    List,
    /// [`Fs::remove`].
    Remove,
    /// [`Fs::rename`], and placing what [`Fs::stage_move`] staged.
    Rename,
}

/// A host in memory.
#[derive(Debug)]
pub struct Memory {
    style: Style,
    home: HostPath,
    temp: HostPath,
    core: Arc<Core>,
}

/// What staged writes hold on to.
#[derive(Debug)]
struct Core {
    tree: Mutex<Tree>,
    /// None for a call that works.
    faults: Mutex<HashMap<FsOp, VecDeque<Option<io::Error>>>>,
}

impl Core {
    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault that waits for a method, wrapped as the method's own errors are.
    fn take_fault(&self, op: FsOp, path: &HostPath) -> io::Result<()> {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        match faults.get_mut(&op).and_then(VecDeque::pop_front) {
            Some(Some(error)) => Err(crate::fault::fault(path, fs::failing(op), error)),
            Some(None) | None => Ok(()),
        }
    }
}

impl Memory {
    /// An empty host in the posix style, with its home and temporary folders.
    pub fn new() -> Self {
        Self::with_style(Style::Posix)
    }

    /// An empty host in a given path style, with its home and temporary folders.
    pub fn with_style(style: Style) -> Self {
        let root = HostPath::root(style);
        let folder = |name: &str| root.join(name).unwrap_or_else(|_| root.clone());
        let (home, temp) = match style {
            Style::Posix => (folder("home/user"), folder("tmp")),
            Style::Windows => (folder("Users\\user"), folder("Temp")),
        };
        let core = Core { tree: Mutex::new(Tree::new(style)), faults: Mutex::default() };
        let host = Self { style, home, temp, core: Arc::new(core) };
        for path in [&host.home, &host.temp] {
            // A new tree has nothing that could be in the way.
            let _ = host.make_folder(path);
        }
        host
    }

    /// A host in the posix style that holds these files; parent folders are created.
    ///
    /// # Errors
    /// When a path is not absolute, or leads through a file.
    pub fn with_files<P: AsRef<str>, D: Into<Bytes>>(
        files: impl IntoIterator<Item = (P, D)>,
    ) -> io::Result<Self> {
        let host = Self::new();
        for (path, data) in files {
            host.add_file(path.as_ref(), data)?;
        }
        Ok(host)
    }

    /// Puts a file in place of what is at the path; parent folders are created.
    ///
    /// # Errors
    /// When the path is not absolute, or leads through a file.
    pub fn add_file(&self, path: &str, data: impl Into<Bytes>) -> io::Result<()> {
        self.put(&self.path(path)?, Content::File(data.into()), 0o644)
    }

    /// Creates a folder and its parents; an existing folder is left as it is.
    ///
    /// # Errors
    /// When the path is not absolute, or leads through a file.
    pub fn add_folder(&self, path: &str) -> io::Result<()> {
        self.make_folder(&self.path(path)?)
    }

    /// Puts a symbolic link in place of what is at the path.
    ///
    /// # Errors
    /// When the path is not absolute, or leads through a file.
    pub fn add_link(&self, path: &str, target: impl AsRef<[u8]>) -> io::Result<()> {
        self.put(&self.path(path)?, Content::Link(target.as_ref().to_vec()), 0o777)
    }

    /// Puts a pipe, socket or device in place of what is at the path.
    ///
    /// # Errors
    /// When the path is not absolute or leads through a file, or the kind is none of these.
    pub fn add_special(&self, path: &str, kind: EntryKind) -> io::Result<()> {
        let path = self.path(path)?;
        let device = matches!(kind, EntryKind::Device | EntryKind::CharDevice);
        if !device && !matches!(kind, EntryKind::Fifo | EntryKind::Socket) {
            let text = "only pipes, sockets and devices are special";
            return Err(refuse(io::ErrorKind::InvalidInput, &path, text));
        }
        self.put(&path, Content::Special(kind), 0o644)
    }

    /// Gives what is at the path a second name.
    ///
    /// # Errors
    /// When nothing is there, a path is not absolute, or the new one leads through a file.
    pub fn add_name(&self, old: &str, new: &str) -> io::Result<()> {
        let (old, new) = (self.path(old)?, self.path(new)?);
        let mut tree = self.tree();
        let spot = fs::look(&tree, &old, Follow::No)?;
        let Some(id) = spot.node else {
            return Err(refuse(io::ErrorKind::NotFound, &old, "no such file or folder"));
        };
        let to = fs::make_above(&mut tree, &new)?;
        tree.link(to.folder, &to.name, id);
        Ok(())
    }

    /// Sets the permission bits of what is at the path. They are stored and shown, never checked.
    ///
    /// # Errors
    /// When nothing is there or the path is not absolute.
    pub fn set_mode(&self, path: &str, mode: u32) -> io::Result<()> {
        let path = self.path(path)?;
        let mut tree = self.tree();
        let Some(id) = fs::look(&tree, &path, Follow::Yes)?.node else {
            return Err(refuse(io::ErrorKind::NotFound, &path, "no such file or folder"));
        };
        tree.set_mode(id, mode);
        Ok(())
    }

    /// The content of a file, links followed; `None` for anything else.
    pub fn content(&self, path: &str) -> Option<Bytes> {
        let tree = self.tree();
        let id = fs::look(&tree, &self.path(path).ok()?, Follow::Yes).ok()?.node?;
        match &tree.node(id)?.content {
            Content::File(data) => Some(data.clone()),
            _ => None,
        }
    }

    /// Makes the next call of a method fail; several faults are queued.
    pub fn fail_next(&self, op: FsOp, error: io::Error) {
        let mut faults = self.core.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.entry(op).or_default().push_back(Some(error));
    }

    /// Makes a call of a method fail after this many successful calls.
    pub fn fail_after(&self, op: FsOp, calls: usize, error: io::Error) {
        let mut faults = self.core.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let line = faults.entry(op).or_default();
        line.extend((0..calls).map(|_| None));
        line.push_back(Some(error));
    }

    fn take_fault(&self, op: FsOp, path: &HostPath) -> io::Result<()> {
        self.core.take_fault(op, path)
    }

    fn path(&self, text: &str) -> io::Result<HostPath> {
        let invalid = |e: PathError| io::Error::new(io::ErrorKind::InvalidInput, e);
        let root = HostPath::root(self.style);
        let path = root.join(text).map_err(invalid)?;
        // `join` takes relative texts, too; a set-up that forgot its root is told so.
        if text.starts_with("bytes:") {
            return Ok(path);
        }
        HostPath::new(text.as_bytes(), self.style).map_err(invalid)
    }

    fn put(&self, path: &HostPath, content: Content, mode: u32) -> io::Result<()> {
        let mut tree = self.tree();
        let spot = fs::make_above(&mut tree, path)?;
        let id = tree.add(content, mode);
        tree.link(spot.folder, &spot.name, id);
        Ok(())
    }

    fn make_folder(&self, path: &HostPath) -> io::Result<()> {
        let mut tree = self.tree();
        fs::make_folder(&mut tree, path).map(|_| ())
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.core.tree()
    }

    /// Takes a file away and gives its content, for parts of this crate that keep outputs here.
    pub(crate) fn take(&self, path: &HostPath) -> Option<Bytes> {
        let mut tree = self.tree();
        let spot = fs::look(&tree, path, Follow::No).ok()?;
        let data = match &tree.node(spot.node?)?.content {
            Content::File(data) => data.clone(),
            _ => return None,
        };
        tree.unlink(spot.folder, &spot.name);
        Some(data)
    }

    /// Puts a whole file at a path, for parts of this crate that keep outputs here.
    pub(crate) fn keep(&self, path: &HostPath, data: Bytes) -> io::Result<()> {
        self.put(path, Content::File(data), 0o600)
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Host for Memory {
    #[expect(clippy::unnecessary_literal_bound, reason = "other hosts have names of their own")]
    fn name(&self) -> &str {
        "memory"
    }
    fn style(&self) -> Style {
        self.style
    }
    fn home(&self) -> &HostPath {
        &self.home
    }
    fn temp(&self) -> &HostPath {
        &self.temp
    }
    fn caps(&self) -> Caps {
        Caps { platform: "memory".to_owned(), shell: None, atomic_open: true }
    }
    fn fs(&self) -> &dyn Fs {
        self
    }
    fn shell(&self) -> Option<&dyn Shell> {
        None
    }
    fn search(&self) -> Option<&dyn Search> {
        None
    }
}
