//! Owner, permissions and attributes of files: read, copied, and set.
//!
//! **Invariant:** no file gets more rights than were named. If an owner, a group or an access
//! control list cannot be set, whatever would grant more without it is left out too.

use std::io;

use haft_types::Rights;
use rustix::{
    fd::{AsFd, AsRawFd, OwnedFd},
    fs::{self, Mode, OFlags, XattrFlags},
    io::Errno,
    process::{Gid, Uid},
};

use super::{locate::At, write::Slot};
use crate::{FileKind, Located};

/// Most bytes of one extended attribute, or of all their names, in Linux.
const XATTR_MAX: usize = 64 * 1024;
/// Most bytes of attributes that are taken note of.
const NOTED_MAX: usize = 64 * 1024;
/// The attribute that holds a file's list of rights.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// What stands at a located name has.
pub(super) fn of(located: &Located) -> io::Result<Rights> {
    let at = At::of(located)?;
    let stat = at.unchanged(located)?;
    let mut rights = Rights::of_mode(stat.st_mode & 0o7777);
    rights.owner = Some((stat.st_uid, stat.st_gid));
    if located.kind != FileKind::FILE {
        return Ok(rights);
    }
    let whole = match at.file(located) {
        Ok(file) => noted(&file, &mut rights),
        // One that may not be read can still be removed.
        Err(_) => match list_unread(&at.folder, &at.name) {
            Ok(Some(list)) => {
                rights.note(ACCESS_LIST, &list);
                true
            }
            Ok(None) => true,
            Err(_) => false,
        },
    };
    if !whole {
        // Without its list of rights, the group bits of the mode would grant too much.
        rights.mode &= !Mode::RWXG.bits();
    }
    Ok(rights)
}

/// Takes note of the attributes of an open file, whose mode is noted already.
pub(super) fn note(file: &OwnedFd, rights: &mut Rights) {
    // Most have none, and room for them takes longer to make than to ask.
    if matches!(fs::flistxattr_query(file), Ok(0) | Err(Errno::NOTSUP | Errno::NOSYS)) {
        return;
    }
    if !noted(file, rights) {
        rights.mode &= !Mode::RWXG.bits();
    }
}

/// Reports whether what is at a name has no attributes for sure, without opening it.
pub(super) fn has_no_attributes(folder: impl AsFd, name: &[u8]) -> bool {
    let path = below(folder, name);
    cfg!(target_os = "linux")
        && matches!(fs::llistxattr_query(path), Ok(0) | Err(Errno::NOTSUP | Errno::NOSYS))
}

/// The path of a name below an open folder.
fn below(folder: impl AsFd, name: &[u8]) -> Vec<u8> {
    let mut path = format!("/proc/self/fd/{}/", folder.as_fd().as_raw_fd()).into_bytes();
    path.extend_from_slice(name);
    path
}

/// False where a list of rights could not be taken note of.
fn noted(file: &OwnedFd, rights: &mut Rights) -> bool {
    let (mut size, mut whole) = (0, true);
    let seen = each(file, |name, value| {
        let listed = name == ACCESS_LIST.as_bytes();
        match (std::str::from_utf8(name), value) {
            (Ok(name), Ok(value)) if listed || size + value.len() <= NOTED_MAX => {
                size += value.len();
                rights.note(name, value);
            }
            _ => whole &= !listed,
        }
    });
    whole && seen.is_ok()
}

/// Gives a file that nobody sees yet what another one had.
pub(super) fn give(file: &OwnedFd, rights: &Rights) -> io::Result<()> {
    let set = |name: &str, value: &[u8]| fs::fsetxattr(file, name, value, XattrFlags::empty());
    let mut list = None;
    for (name, value) in rights.attributes() {
        if name == ACCESS_LIST {
            list = Some(value);
        } else {
            // While it may be written to. One that the disk does not take is left out.
            let _ = set(name, &value);
        }
    }
    let mut mode = Mode::from(rights.mode & 0o7777);
    let mut same_group = true;
    if let Some((user, group)) = rights.owner {
        let now = fs::fstat(file)?;
        if now.st_gid != group && fs::fchown(file, None, Some(Gid::from_raw(group))).is_err() {
            mode -= Mode::RWXG | Mode::SGID;
            same_group = false;
        }
        if now.st_uid != user && fs::fchown(file, Some(Uid::from_raw(user)), None).is_err() {
            mode -= Mode::SUID;
        }
    }
    let bare = remove_list(file);
    fs::fchmod(file, mode)?;
    // It opens the group bits again.
    let list = list.filter(|_| same_group);
    let given = list.is_none_or(|list| set(ACCESS_LIST, &list).is_ok());
    if !(bare && given) {
        fs::fchmod(file, mode - Mode::RWXG)?;
    }
    Ok(())
}

/// Takes away the list of rights that a folder passed on; false when it may still be there.
pub(super) fn remove_list(file: &OwnedFd) -> bool {
    if !cfg!(target_os = "linux") {
        return true;
    }
    match fs::fremovexattr(file, ACCESS_LIST) {
        Ok(()) | Err(Errno::NODATA | Errno::NOTSUP | Errno::NOSYS) => true,
        Err(_) => false,
    }
}

/// Copies what can be copied; false when a list of rights was there and could not be kept.
pub(super) fn copy_attributes(slot: &Slot, new: &OwnedFd) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let set = |name: &[u8], value: &[u8]| fs::fsetxattr(new, name, value, XattrFlags::empty());
    let Ok(old) = fs::openat(&slot.folder, &*slot.name, flags, Mode::empty()) else {
        // It may be written, and not read.
        return match list_unread(&slot.folder, &slot.name) {
            Ok(Some(list)) => set(ACCESS_LIST.as_bytes(), &list).is_ok(),
            Ok(None) => true,
            Err(_) => false,
        };
    };
    let mut kept = true;
    let copied = each(&old, |name, value| {
        let done = value.and_then(|value| set(name, value));
        kept &= done.is_ok() || name != ACCESS_LIST.as_bytes();
    });
    kept && copied.is_ok()
}

/// Shows every extended attribute of a file that can be given to another.
fn each(
    file: &OwnedFd,
    mut with: impl FnMut(&[u8], rustix::io::Result<&[u8]>),
) -> rustix::io::Result<()> {
    let mut names = vec![0; XATTR_MAX];
    let len = match fs::flistxattr(file, &mut names[..]) {
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(()),
        len => len?,
    };
    let mut value = vec![0; XATTR_MAX];
    for name in names[..len].split(|&b| b == 0).filter(|name| !name.is_empty()) {
        // What the kernel says of the old content does not hold for the new one.
        if matches!(name, b"security.capability" | b"security.ima" | b"security.evm") {
            continue;
        }
        let got = fs::fgetxattr(file, name, &mut value[..]);
        with(name, got.map(|len| &value[..len]));
    }
    Ok(())
}

/// The list of rights of a file that may not be read.
fn list_unread(folder: &OwnedFd, name: &[u8]) -> rustix::io::Result<Option<Vec<u8>>> {
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    let path = below(folder, name);
    let mut value = vec![0; XATTR_MAX];
    match fs::lgetxattr(&*path, ACCESS_LIST, &mut value[..]) {
        Ok(len) => {
            value.truncate(len);
            Ok(Some(value))
        }
        Err(Errno::NODATA | Errno::NOTSUP | Errno::NOSYS) => Ok(None),
        Err(error) => Err(error),
    }
}
