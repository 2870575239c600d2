//! The file system as a program in namespaces of its own sees it: everything is readable, and what
//! its limits name is writable.
//!
//! **Invariant:** a writable folder is the one that was found before anything was mounted. No path
//! is followed through a link when something is mounted on it.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{DirBuilderExt, OpenOptionsExt, symlink},
    },
    path::{Path, PathBuf},
};

use libc::{MOUNT_ATTR_NODEV, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change,
    move_mount, open_tree,
};

use super::{
    landlock::{all_real, explain, is_hidden, open, shown},
    overlay,
    syscalls::set_mount,
};
use crate::Limits;

/// Devices that keep nothing.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
/// Names in `/dev` that stand for others.
const LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Where what covers hidden paths is made; it has no name any more when the program begins.
const COVERS: &str = "/dev/.covers";

/// What is needed of the files as they are.
#[derive(Debug)]
pub(super) struct View {
    overlay: Vec<PathBuf>,
    write: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    shown: Vec<PathBuf>,
    protected: Vec<PathBuf>,
}

impl View {
    /// Finds it.
    pub(super) fn new(limits: &Limits) -> io::Result<Self> {
        let hidden = all_real(&limits.hidden)?;
        let mut write = all_real(limits.writable())?;
        // What lies in another is mounted behind it.
        let all = write.clone();
        write.retain(|path| !is_hidden(path, &all, &hidden));
        write.sort();
        if write.first().is_some_and(|path| path == Path::new("/")) {
            return Err(io::Error::other("all of the files cannot be writable; name folders"));
        }
        let overlay = overlay::places(limits, &write)?;
        let mut protected = all_real(&limits.protected)?;
        protected.retain(|path| write.iter().any(|tree| path.starts_with(tree)));
        // Who may write it may read it.
        let mut shown = shown(limits, &hidden)?;
        shown.retain(|path| is_hidden(path, &write, &hidden));
        Ok(Self { overlay, write, hidden, shown, protected })
    }

    /// Makes the files of this process look so. It must have a namespace of its own for mounts, and
    /// one for processes.
    pub(super) fn mount(&self) -> io::Result<()> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: rustix::io::Errno| explain(&what, &error)
        };
        let apart = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", apart).map_err(failed("the mounts cannot be taken apart"))?;
        let mut trees = Vec::new();
        for path in &self.write {
            trees.push((path, copy(path)?));
        }
        let mut shown = Vec::new();
        for path in &self.shown {
            shown.push((path, copy(path)?));
        }
        let mut devices = Vec::new();
        for name in DEVICES {
            let path = Path::new("/dev").join(name);
            // What a container does not have it does not miss.
            devices
                .extend(path.exists().then(|| copy(&path)).transpose()?.map(|held| (path, held)));
        }
        set(&open(Path::new("/"))?, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)?;
        let flags =
            MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        // Refused in a container that hides parts of it: then the old one stays, which can only be read and
        // shows processes that this one cannot reach.
        let _ = mount("proc", "/proc", "proc", flags, None::<&std::ffi::CStr>);
        devices_of_its_own(&devices).map_err(|error| explain("/dev cannot be made", &error))?;
        overlay::put_all(&self.overlay)?;
        let is_covered = |path: &Path| self.hidden.iter().any(|hidden| path.starts_with(hidden));
        for (_, held) in &trees {
            set(held, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)?;
        }
        for (_, held) in &shown {
            set(held, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)?;
        }
        let (mut inner, trees): (Vec<_>, Vec<_>) =
            trees.iter().partition(|(path, _)| is_covered(path));
        inner.extend(&shown);
        for (path, held) in trees {
            put(held, path)?;
        }
        for path in &self.protected {
            let held = copy(path)?;
            set(&held, MOUNT_ATTR_RDONLY)?;
            put(&held, path)?;
        }
        self.cover(&inner).map_err(|error| explain("what is hidden cannot be covered", &error))?;
        // What is mounted in there stays as it is.
        set_mount(open(Path::new("/dev"))?.as_fd(), MOUNT_ATTR_RDONLY, false)
    }

    /// Covers what is hidden, but for what may be written or read in there: folders by one that is empty, files
    /// by a device that nobody can open there. An empty file root could read, and `git add` would take it for
    /// the file's new content.
    fn cover(&self, inner: &[&(&PathBuf, OwnedFd)]) -> io::Result<()> {
        if self.hidden.is_empty() {
            return Ok(());
        }
        let [all, folder, empty] = ["", "folder", "file"].map(|name| Path::new(COVERS).join(name));
        let device = Path::new("/dev/null");
        fs::DirBuilder::new().mode(0o700).create(&all)?;
        fs::DirBuilder::new().mode(0o000).create(&folder)?;
        fs::OpenOptions::new().write(true).create_new(true).mode(0o000).open(&empty)?;
        let file = if device.exists() { device } else { &empty };
        // What was in `/dev` or `/proc` is not there any more.
        for path in self.hidden.iter().filter(|path| path.exists()) {
            let within = || inner.iter().filter(|(tree, _)| tree.starts_with(path));
            if within().next().is_some() {
                cover_around(path, within())?;
                continue;
            }
            let covering = if path.is_dir() { &folder } else { file };
            let held = copy(covering)?;
            set(&held, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV)?;
            put(&held, path)?;
        }
        fs::remove_dir_all(&all)
    }
}

/// Covers a folder by one that holds nothing but the way to these.
fn cover_around<'a>(
    path: &Path,
    inner: impl Iterator<Item = &'a &'a (&'a PathBuf, OwnedFd)>,
) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", path, "tmpfs", flags, c"mode=711,size=64k")?;
    for (tree, held) in inner {
        fs::create_dir_all(tree)?;
        put(held, tree)?;
    }
    set_mount(open(path)?.as_fd(), MOUNT_ATTR_RDONLY, false)
}

/// A `/dev` with nothing in it that leads to the machine, and its own memory to share.
fn devices_of_its_own(devices: &[(PathBuf, OwnedFd)]) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("tmpfs", "/dev", "tmpfs", flags, c"mode=755,size=64k")?;
    for (path, held) in devices {
        File::create_new(path)?;
        put(held, path)?;
    }
    for folder in ["/dev/pts", "/dev/shm"] {
        fs::create_dir(folder)?;
    }
    mount("devpts", "/dev/pts", "devpts", flags, c"newinstance,ptmxmode=0666,mode=620")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", "/dev/shm", "tmpfs", flags, c"mode=1777")?;
    for (name, to) in LINKS {
        symlink(to, Path::new("/dev").join(name))?;
    }
    Ok(())
}

/// A second mount of what is at a path and below it, at no place yet.
fn copy(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let failed = |error| explain(&format!("{} cannot be mounted", path.display()), &error);
    open_tree(open(path)?, "", flags).map_err(failed)
}

/// Puts it at a path.
pub(super) fn put(held: &OwnedFd, path: &Path) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    let failed = |error| explain(&format!("nothing can be mounted on {}", path.display()), &error);
    move_mount(held, "", open(path)?, "", flags).map_err(failed)
}

fn set(of: &OwnedFd, attributes: u64) -> io::Result<()> {
    let failed =
        |error| explain("what may be done at a mount cannot be set (Linux 5.12 can)", &error);
    set_mount(of.as_fd(), attributes, true).map_err(failed)
}
