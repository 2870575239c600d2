//! Folders that a program sees copies of, to change them: an overlay over the folder as it is, whose
//! changes are kept in memory.
//!
//! **Invariant:** nothing of the folder changes. What is changed in the copy has no name of its own, is
//! bounded, and is gone with the last process that sees it. What is hidden is covered over the copy.

use std::{
    ffi::CString,
    fs::{self, DirBuilder},
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::fstatfs,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, UnmountFlags, fsconfig_create,
        fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount, unmount,
    },
};

use super::{
    landlock::{all_real, explain, open},
    mounts::put,
};
use crate::Limits;

/// Where the changes are kept until they are mounted; it has no name when the program begins.
const CHANGES: &str = "/dev/.changes";
/// Most bytes of them, of all overlays of a program together.
const MOST: u64 = 2 << 30;
/// By what the system tells an overlay (`linux/magic.h`).
const MAGIC: u64 = 0x794c_7630;

/// Where overlays are to be.
pub(super) fn places(limits: &Limits, write: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut all = all_real(&limits.overlay)?;
    all.sort();
    all.dedup();
    let outer = all.clone();
    all.retain(|path| !outer.iter().any(|other| other != path && path.starts_with(other)));
    for path in &all {
        if path == Path::new("/") || write.iter().any(|tree| path.starts_with(tree)) {
            let path = path.display();
            return Err(io::Error::other(format!("no overlay can be made of {path}")));
        }
    }
    Ok(all)
}

/// Mounts them all. `/dev` must be writable still.
pub(super) fn put_all(places: &[PathBuf]) -> io::Result<()> {
    if places.is_empty() {
        return Ok(());
    }
    let changes = Path::new(CHANGES);
    DirBuilder::new().mode(0o700).create(changes)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let size = CString::new(format!("mode=700,size={}", room())).map_err(io::Error::other)?;
    mount("tmpfs", changes, "tmpfs", flags, &*size)
        .map_err(|error| explain("there is no room for changes", &error))?;
    for (number, path) in places.iter().enumerate() {
        let made = make(path, &changes.join(number.to_string()));
        let made = made
            .map_err(|error| explain(&format!("{} cannot be overlaid", path.display()), &error))?;
        put(&made, path)?;
    }
    // The overlays hold on to it.
    unmount(changes, UnmountFlags::DETACH)?;
    fs::remove_dir(changes)
}

/// An overlay of a folder, at no place yet.
fn make(of: &Path, changes: &Path) -> io::Result<OwnedFd> {
    let below = open(of)?;
    let (upper, work) = (changes.join("upper"), changes.join("work"));
    DirBuilder::new().mode(0o700).recursive(true).create(&upper)?;
    DirBuilder::new().mode(0o700).create(&work)?;
    // Of the folder itself those of the changes are what is seen.
    let about = fs::metadata(of)?;
    // Others than this user are nobody here.
    let _ = chown(&upper, Some(about.uid()), Some(about.gid()));
    fs::set_permissions(&upper, fs::Permissions::from_mode(about.mode() & 0o7777))?;
    let making = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // By its number, whatever characters its path has.
    fsconfig_set_string(&making, "lowerdir", format!("/proc/self/fd/{}", below.as_raw_fd()))?;
    fsconfig_set_string(&making, "upperdir", &*upper)?;
    fsconfig_set_string(&making, "workdir", &*work)?;
    fsconfig_set_flag(&making, "userxattr")?;
    fsconfig_create(&making)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(&making, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// How many bytes may be changed: no more than half of the memory.
fn room() -> u64 {
    let told = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = told.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let total = total.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    total.map_or(MOST, |total| MOST.min((total << 10) / 2))
}

/// Reports whether this process sees an overlay at a path.
///
/// # Errors
/// When nothing can be found out about it.
pub fn is_overlay(path: &Path) -> io::Result<bool> {
    let told = fstatfs(open(path)?)?;
    Ok(u64::try_from(told.f_type) == Ok(MAGIC))
}
