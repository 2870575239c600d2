//! Replacing files of this machine in one step that survives a crash.
//!
//! **How:** the new content goes to `.haft-PID-PLACE-RANDOM.tmp` in the same folder, gets the old
//! file's owner, mode and attributes, is synced, and takes the name by a rename; then the folder
//! is synced. What was expected is checked before anything is made and again right before the
//! rename, under a lock of the folder that every haft takes for that instant. Another program that
//! writes in the microseconds between is not seen, but for [`Expect::Absent`], where the rename
//! itself refuses a taken name.
//!
//! **Invariant:** the name stands for the old file, whole, or for the new one, whole; on an error
//! nothing new is left. No link is followed: the target of a link was resolved by `locate`.
//!
//! **Leftovers** of a killed process are removed at the first write of a later process in that
//! folder, and by [`Local::sweep`](super::Local::sweep): those of our user whose process, of the
//! same boot and process namespace, is gone, and any that is older than an hour. Names of other
//! machines on a shared disk are told apart by PLACE.
//!
//! A file that the user may not write, or whose owner cannot be kept, is refused: a rename would
//! work where a plain write does not, and give the file away.

use std::{
    collections::HashSet,
    fs as disk,
    hash::{BuildHasher, Hasher, RandomState},
    io, iter,
    ops::ControlFlow,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use haft_types::{EntryKind, HostPath};
use rustix::{
    fd::OwnedFd,
    fs::{self, Access, AtFlags, FlockOperation, Mode, OFlags, Stat, XattrFlags},
    io::Errno,
    process::{Gid, Pid, Uid},
};

use super::{
    fs::{each_name, holds, move_free, sticky},
    locate::{self, At},
};
use crate::{
    Expect, FileKind, Located, WriteHow, Written,
    fault::{fault, name_of, refuse},
};

/// Folders whose leftovers this process has looked for.
pub(super) type Swept = Mutex<HashSet<(u64, u64)>>;

/// Most folders that are remembered as swept.
const SWEPT_MAX: usize = 4096;
/// Most names that are looked at for leftovers on the way to a write.
const SWEEP_NAMES: u64 = 20_000;
/// Age from which a leftover is removed whoever made it.
const STALE: Duration = Duration::from_hours(1);
/// How long the lock of a folder is waited for; haft itself holds it for microseconds.
const LOCK_TIME: Duration = Duration::from_millis(500);
/// How long is waited before the lock is tried again.
const LOCK_STEP: Duration = Duration::from_micros(200);
/// Most bytes of one extended attribute, or of all their names, in Linux.
const XATTR_MAX: usize = 64 * 1024;

/// Writes `data` to a located file.
pub(super) fn replace(
    located: &Located,
    data: &[u8],
    how: WriteHow,
    swept: &Swept,
) -> io::Result<Written> {
    let path = &located.real;
    if let FileKind::Entry(kind) = located.kind
        && kind != EntryKind::File
    {
        return Err(locate::not_regular(located, kind));
    }
    let at = At::of(located)?;
    let mut made = Made::default();
    let folder = made.folders(path, &at, how.parents)?;
    sweep_once(&folder, swept);
    let slot = Slot { folder, name: at.name.clone(), path };
    let old = slot.expect(how.expect)?;
    if old.is_some() {
        slot.may_write()?;
    }
    let rights = if old.is_some() { 0o600 } else { how.mode & 0o7777 };
    let temp = Temp::create(&slot, Mode::from(rights))?;
    let written = temp.fill(data).and_then(|()| temp.take_over(&slot, old.as_ref()));
    written.and_then(|()| Ok(fs::fsync(&temp.file)?)).map_err(|e| slot.failed(e))?;
    {
        let _alone = Alone::within(&slot.folder);
        slot.expect(how.expect)?;
        temp.take_name(&slot, how.expect, &at)?;
    }
    made.keep();
    sync_folder(&slot.folder)
        .map_err(|e| fault(path, "was written, but its folder could not be synced to disk", e))?;
    // Of the file itself: its name may stand for the next one already.
    let stat = fs::fstat(&temp.file)
        .map_err(|e| fault(path, "was written, but cannot be looked at", e))?;
    let held = At::new(Arc::clone(&slot.folder), Vec::new(), at.name.clone(), None);
    let at = locate::located(path.clone(), &stat, held);
    Ok(Written { at, made: made.into_paths() })
}

/// Where a file goes: a held folder and a name in it.
struct Slot<'a> {
    folder: Arc<OwnedFd>,
    name: Vec<u8>,
    path: &'a HostPath,
}

impl Slot<'_> {
    fn failed(&self, cause: impl Into<io::Error>) -> io::Error {
        fault(self.path, "cannot be written", cause)
    }

    /// What stands there now, if it is what the writer expects and can be replaced.
    fn expect(&self, expect: Expect) -> io::Result<Option<Stat>> {
        let now = match fs::statat(&self.folder, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(self.failed(error)),
        };
        if !holds(expect, now.as_ref()) {
            let text = match (expect, &now) {
                (Expect::Absent, _) => "is already there",
                (_, None) => "is not there any more; look at its folder again",
                _ => "changed since it was read; read it again",
            };
            return Err(refuse(io::ErrorKind::AlreadyExists, self.path, text));
        }
        if let Some(kind) = now.as_ref().map(locate::kind_of)
            && kind != EntryKind::File
        {
            let text = format!("became {} since it was looked up; try again", name_of(kind));
            return Err(refuse(io::ErrorKind::AlreadyExists, self.path, text));
        }
        Ok(now)
    }

    fn may_write(&self) -> io::Result<()> {
        let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
        match fs::accessat(&self.folder, &*self.name, Access::WRITE_OK, flags) {
            // Kernels and file systems that cannot answer leave it to the rename.
            Ok(()) | Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::NOENT) => Ok(()),
            Err(error) => Err(fault(self.path, "is write-protected", error)),
        }
    }
}

/// The lock of a folder, held for the last check and the rename; dropped, it is free again.
///
/// It is best effort: where a folder cannot be locked, or a stranger keeps it locked, the write
/// goes on as if nobody else wrote.
struct Alone {
    _locked: Option<OwnedFd>,
}

impl Alone {
    fn within(held: &OwnedFd) -> Self {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(folder) = fs::openat(held, ".", flags, Mode::empty()) else {
            return Self { _locked: None };
        };
        let began = Instant::now();
        loop {
            match fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Self { _locked: Some(folder) },
                Err(Errno::AGAIN | Errno::INTR) if began.elapsed() < LOCK_TIME => {
                    std::thread::sleep(LOCK_STEP);
                }
                Err(_) => return Self { _locked: None },
            }
        }
    }
}

/// Folders that were made, removed again unless the file came to be.
#[derive(Default)]
struct Made {
    folders: Vec<(Arc<OwnedFd>, Vec<u8>, HostPath)>,
    kept: bool,
}

impl Made {
    /// Makes the folders that were missing, top down, and holds the last one.
    fn folders(&mut self, path: &HostPath, at: &At, wanted: bool) -> io::Result<Arc<OwnedFd>> {
        let mut folder = Arc::clone(&at.folder);
        let mut above: Vec<HostPath> =
            iter::successors(path.parent(), HostPath::parent).take(at.missing.len()).collect();
        for name in &at.missing {
            let Some(here) = above.pop() else { break };
            if !wanted {
                let text = format!("the folder {here} is not there");
                return Err(refuse(io::ErrorKind::NotFound, path, text));
            }
            let failed = |e: Errno| fault(path, &format!("the folder {here} cannot be made"), e);
            match fs::mkdirat(&folder, &**name, Mode::from(0o777)) {
                Ok(()) => {
                    self.folders.push((Arc::clone(&folder), name.clone(), here.clone()));
                    sync_folder(&folder).map_err(failed)?;
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(error)),
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let next = fs::openat(&folder, &**name, flags, Mode::empty()).map_err(failed)?;
            folder = Arc::new(next);
        }
        Ok(folder)
    }

    const fn keep(&mut self) {
        self.kept = true;
    }

    fn into_paths(mut self) -> Vec<HostPath> {
        std::mem::take(&mut self.folders).into_iter().map(|(_, _, path)| path).collect()
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if !self.kept {
            for (folder, name, _) in self.folders.iter().rev() {
                // Only empty folders go; one that another filled meanwhile stays.
                let _ = fs::unlinkat(folder, &**name, AtFlags::REMOVEDIR);
            }
        }
    }
}

/// The new content under its own name, removed again unless it took the file's name.
struct Temp {
    file: OwnedFd,
    folder: Arc<OwnedFd>,
    name: String,
    named: std::cell::Cell<bool>,
}

impl Temp {
    fn create(slot: &Slot<'_>, mode: Mode) -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mut last = Errno::EXIST;
        for _ in 0..16 {
            let name = temp_name();
            match fs::openat(&slot.folder, &*name, flags | OFlags::CLOEXEC, mode) {
                Ok(file) => {
                    let named = std::cell::Cell::new(false);
                    return Ok(Self { file, folder: Arc::clone(&slot.folder), name, named });
                }
                Err(error @ (Errno::EXIST | Errno::INTR)) => last = error,
                Err(error) => return Err(slot.failed(error)),
            }
        }
        Err(slot.failed(last))
    }

    fn fill(&self, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            match rustix::io::write(&self.file, data) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => data = &data[written..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Gives the new file what the old one had: owner, mode, extended attributes.
    fn take_over(&self, slot: &Slot<'_>, old: Option<&Stat>) -> io::Result<()> {
        let Some(old) = old else { return Ok(()) };
        let new = fs::fstat(&self.file)?;
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
            let owner = (new.st_uid != old.st_uid).then(|| Uid::from_raw(old.st_uid));
            let group = (new.st_gid != old.st_gid).then(|| Gid::from_raw(old.st_gid));
            fs::fchown(&self.file, owner, group).map_err(|error| {
                let text = format!(
                    "it belongs to user {} and group {}, which cannot be kept ({error}); \
                     change it as that user",
                    old.st_uid, old.st_gid
                );
                io::Error::new(io::Error::from(error).kind(), text)
            })?;
        }
        let mode = Mode::from(old.st_mode & 0o7777);
        fs::fchmod(&self.file, mode)?;
        if !copy_attributes(slot, &self.file) {
            // Without its list of rights, the group bits of the mode would grant too much.
            fs::fchmod(&self.file, mode - Mode::RWXG)?;
        }
        Ok(())
    }

    fn take_name(&self, slot: &Slot<'_>, expect: Expect, at: &At) -> io::Result<()> {
        let from = self.name.as_bytes();
        let moved = if expect == Expect::Absent {
            move_free((&self.folder, from), (&slot.folder, &slot.name), false)
        } else {
            fs::renameat(&self.folder, from, &slot.folder, &*slot.name)
        };
        match moved {
            Ok(()) => {
                self.named.set(true);
                Ok(())
            }
            Err(Errno::EXIST) => {
                Err(refuse(io::ErrorKind::AlreadyExists, slot.path, "is already there"))
            }
            Err(error) => Err(slot.failed(sticky(at, error))),
        }
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.named.get() {
            let _ = fs::unlinkat(&self.folder, &*self.name, AtFlags::empty());
        }
    }
}

/// Copies what can be copied; false when a list of rights was there and could not be kept.
fn copy_attributes(slot: &Slot<'_>, new: &OwnedFd) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(old) = fs::openat(&slot.folder, &*slot.name, flags, Mode::empty()) else { return true };
    let mut names = vec![0; XATTR_MAX];
    let Ok(len) = fs::flistxattr(&old, &mut names[..]) else { return true };
    let mut value = Vec::new();
    let mut kept = true;
    for name in names[..len].split(|&b| b == 0).filter(|name| !name.is_empty()) {
        // What the kernel says of the old content does not hold for the new one.
        if matches!(name, b"security.capability" | b"security.ima" | b"security.evm") {
            continue;
        }
        value.resize(XATTR_MAX, 0);
        let Ok(len) = fs::fgetxattr(&old, name, &mut value[..]) else { continue };
        let set = fs::fsetxattr(new, name, &value[..len], XattrFlags::empty());
        kept &= set.is_ok() || name != b"system.posix_acl_access";
    }
    kept
}

/// Syncs a held folder; where it may not be read, or has nothing to sync, nothing is done.
pub(super) fn sync_folder(held: &OwnedFd) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = match fs::openat(held, ".", flags, Mode::empty()) {
        Err(Errno::ACCESS) => return Ok(()),
        folder => folder?,
    };
    match fs::fsync(&folder) {
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        result => result,
    }
}

/// `.haft-PID-PLACE-RANDOM.tmp`.
fn temp_name() -> String {
    let random = RandomState::new().build_hasher().finish();
    format!(".haft-{}-{}-{random:016x}.tmp", std::process::id(), place())
}

/// Tells apart where process ids mean something else: other boots, namespaces and machines.
fn place() -> &'static str {
    static PLACE: OnceLock<String> = OnceLock::new();
    PLACE.get_or_init(|| {
        let boot = disk::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let space = disk::read_link("/proc/self/ns/pid").unwrap_or_default();
        if boot.is_empty() || space.as_os_str().is_empty() {
            return "none".to_owned();
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&boot).update(space.as_os_str().as_encoded_bytes());
        hasher.finalize().to_hex()[..8].to_owned()
    })
}

/// Process id and place in the name of a temporary file; none for any other name.
fn parse_temp(name: &[u8]) -> Option<(Pid, &str)> {
    let name = std::str::from_utf8(name).ok()?.strip_prefix(".haft-")?.strip_suffix(".tmp")?;
    let mut parts = name.split('-');
    let (pid, place, random) = (parts.next()?, parts.next()?, parts.next()?);
    let fits = random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit());
    if !fits || parts.next().is_some() {
        return None;
    }
    Some((Pid::from_raw(pid.parse().ok()?)?, place))
}

fn sweep_once(folder: &OwnedFd, swept: &Swept) {
    let Ok(stat) = fs::fstat(folder) else { return };
    {
        let mut swept = swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.len() >= SWEPT_MAX {
            swept.clear();
        }
        if !swept.insert(locate::id_of(&stat)) {
            return;
        }
    }
    // Leftovers are no reason to refuse a write.
    let _ = sweep(folder, SWEEP_NAMES);
}

/// Removes leftovers among the first `most` names of a held folder; gives how many.
pub(super) fn sweep(held: &OwnedFd, most: u64) -> rustix::io::Result<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = fs::openat(held, ".", flags, Mode::empty())?;
    let (mut seen, mut found) = (0, Vec::new());
    each_name(&folder, |name, _| {
        seen += 1;
        if parse_temp(name).is_some() && found.len() < 1000 {
            found.push(name.to_vec());
        }
        if seen < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    let dead = |name: &Vec<u8>| {
        is_leftover(&folder, name) && fs::unlinkat(&folder, &**name, AtFlags::empty()).is_ok()
    };
    Ok(found.iter().filter(|name| dead(name)).count() as u64)
}

fn is_leftover(folder: &OwnedFd, name: &[u8]) -> bool {
    let Some((pid, made_in)) = parse_temp(name) else { return false };
    let Ok(stat) = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
    let ours = stat.st_uid == rustix::process::geteuid().as_raw();
    if !ours || locate::kind_of(&stat) != EntryKind::File {
        return false;
    }
    let dead = made_in == place()
        && made_in != "none"
        && rustix::process::test_kill_process(pid) == Err(Errno::SRCH);
    let age = u64::try_from(locate::stamp_of(&stat).modified)
        .ok()
        .and_then(|modified| SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(modified)))
        .and_then(|modified| SystemTime::now().duration_since(modified).ok());
    dead || age.is_some_and(|age| age > STALE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_are_told_from_others() {
        let name = temp_name();
        let (pid, made_in) = parse_temp(name.as_bytes()).unwrap();
        assert_eq!(u32::try_from(pid.as_raw_nonzero().get()), Ok(std::process::id()));
        assert_eq!(made_in, place());
        for other in [".haft-1-x.tmp", ".haft-1-x-12.tmp", ".haft-x-y-0123456789abcdef.tmp", "a"] {
            assert!(parse_temp(other.as_bytes()).is_none(), "{other}");
        }
    }
}
