//! Replaces files of this machine in one atomic step that survives a crash.
//!
//! **How:** the new content goes to a temporary file in the same folder, gets the old file's owner,
//! mode and attributes, and is synced: now it is staged. When placed, it takes the name, and the
//! folder is synced. The expected state is checked before anything is created, and again right
//! before the file takes the name. The second check holds a lock of the folder that every haft
//! takes for that instant. If a state is expected, the two files exchange their names. So what
//! another program put there in the last microsecond comes out and is restored. If nothing is
//! expected, the rename itself refuses a taken name. File systems without an exchange get a plain
//! rename.
//!
//! **Invariant:** the name stands for the whole old file or for the whole new one. On an error
//! nothing new is left. No link is followed: `locate` has resolved the target of a link. `ledger`
//! and `leftovers` handle what a killed process leaves.
//!
//! A file that the user may not write, or whose owner cannot be preserved, is refused. A rename
//! would work where a plain write does not, and would change the file's owner.

use std::{
    fs::File,
    io, iter,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use bytes::Bytes;
use haft_sandbox::ProtectedState;
use haft_types::{EntryKind, HostPath, Rights};
use rustix::{
    fd::OwnedFd,
    fs::{self, Access, AtFlags, FlockOperation, Mode, OFlags, RenameFlags, Stat},
    io::Errno,
    process::{Gid, Uid},
};

use super::{
    Local,
    fs::{holds, move_free, sticky},
    in_place,
    ledger::{Entry, Ledger},
    leftovers::{self, Swept},
    locate::{self, At},
    metadata,
};
use crate::{
    Expect, FileKind, Located, Source, WriteHow, Written,
    fault::{fault, name_of, refuse},
};

/// How long the lock of a folder is waited for; haft itself holds it for microseconds.
pub(super) const LOCK_TIME: Duration = Duration::from_millis(500);
/// How long is waited before the lock is tried again.
pub(super) const LOCK_STEP: Duration = Duration::from_micros(200);

/// Most times that what others put there meanwhile is put back.
const GIVE_BACK: usize = 100;

/// Bytes of content that are taken at once where it comes in pieces.
const PIECE: usize = 256 * 1024;

/// What a host remembers of its writes.
#[derive(Debug, Default)]
pub(super) struct Writes {
    pub(super) swept: Swept,
    pub(super) ledger: Option<Arc<Ledger>>,
    /// What commands that run are to leave as it is: what haft writes there itself is to stay.
    kept: Mutex<Vec<Weak<Mutex<ProtectedState>>>>,
}

impl Writes {
    pub(super) fn with(ledger: Option<Arc<Ledger>>) -> Self {
        Self { ledger, ..Self::default() }
    }

    /// Tells it of every change that is made from now on.
    pub(super) fn track(&self, kept: ProtectedState) -> Arc<Mutex<ProtectedState>> {
        let kept = Arc::new(Mutex::new(kept));
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(&kept));
        kept
    }

    /// Tells of a change that was made at these paths.
    pub(super) fn changed(&self, paths: &[&HostPath]) {
        let all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let open: Vec<_> = all.iter().filter_map(Weak::upgrade).collect();
        drop(all);
        for kept in open {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            for path in paths {
                kept.changed(path);
            }
        }
    }
}

/// Content on its way into a located file: all of it is on the disk, and has a temporary name.
///
/// Dropped, it goes again, with the folders that were made for it.
pub(super) struct Stage {
    // The file goes before its folders, and both before the record of them ends.
    temp: Temp,
    made: CreatedFolders,
    slot: Slot,
    at: Arc<At>,
    expect: Expect,
    rights: Option<Rights>,
    /// Why it cannot be replaced, where that is known already, and the file opened for writing.
    barred: Option<(Errno, File)>,
    /// Where what it holds can be kept, if it has to be written in place.
    pairs: Option<PathBuf>,
}

/// What a file shall hold.
pub(super) enum Content {
    Whole(Bytes),
    Pieces(Source),
}

/// Brings content to the disk beside a located file.
pub(super) fn stage(
    located: &Located,
    content: Content,
    how: &WriteHow,
    writes: &Writes,
) -> io::Result<Stage> {
    let path = located.real.clone();
    if let FileKind::Entry(kind) = located.kind
        && kind != EntryKind::File
    {
        return Err(locate::not_regular(located, kind));
    }
    let at = At::of(located)?;
    let entry = entered(writes, &path);
    let mut made = CreatedFolders::new(entry.clone());
    let folder = made.folders(&path, &at, how.parents)?;
    writes.swept.once(&folder);
    let slot = Slot { folder, name: at.name.clone(), path };
    let old = slot.expect(how.expect)?;
    if old.is_some() {
        slot.may_write()?;
    }
    let pairs = writes.ledger.as_ref().map(|ledger| ledger.folder().to_owned());
    let mut barred = None;
    let temp = if old.is_some() {
        match Temp::replacing(&slot.folder, entry) {
            Ok(temp) => temp,
            Err(error) => {
                let (temp, file) = aside(&slot, error, pairs.as_deref(), writes)?;
                barred = Some((error, file));
                temp
            }
        }
    } else if how.rights.is_some() {
        Temp::replacement(&slot, entry)?
    } else {
        Temp::create(&slot, Mode::from(how.mode & 0o7777), entry)?
    };
    let filled = match content {
        Content::Whole(data) => temp.fill(&data),
        Content::Pieces(source) => temp.fill_from(source),
    };
    let filled = filled.and_then(|()| match &barred {
        // The file stays what it is.
        Some(_) => Ok(()),
        None => temp.take_over(&slot, old.as_ref(), how.rights.as_ref()),
    });
    filled.and_then(|()| Ok(fs::fsync(&temp.file)?)).map_err(|e| slot.failed(e))?;
    let (expect, rights) = (how.expect, how.rights.clone());
    Ok(Stage { temp, made, slot, at, expect, rights, barred, pairs })
}

/// Makes a temporary file elsewhere for a file in whose folder none can be, if it can be written in
/// place.
fn aside(
    slot: &Slot,
    error: Errno,
    pairs: Option<&Path>,
    writes: &Writes,
) -> io::Result<(Temp, File)> {
    let told = || Temp::not_created(slot, error);
    let pairs = pairs.filter(|_| in_place::reason(error).is_some()).ok_or_else(told)?;
    let file = in_place::open(slot).ok_or_else(told)?;
    let failed = |error: io::Error| {
        let what = format!("cannot be written in place, by way of {}", pairs.display());
        fault(&slot.path, &what, error)
    };
    let folder = in_place::folder(pairs).map_err(failed)?;
    let real = Local::path(&pairs.canonicalize().map_err(failed)?).map_err(failed)?;
    let entry = real.join("new").ok().and_then(|path| entered(writes, &path));
    let temp = Temp::replacing(&Arc::new(folder), entry).map_err(|error| failed(error.into()))?;
    Ok((temp, file))
}

/// Notes where a file is about to be written, for the next start.
pub(super) fn entered(writes: &Writes, path: &HostPath) -> Option<Arc<Entry>> {
    let (ledger, above) = writes.ledger.as_ref().zip(path.parent())?;
    Some(Arc::new(ledger.enter(&above)))
}

impl Stage {
    /// Takes the name, if what stands there is still what the writer expects.
    pub(super) fn place(mut self) -> io::Result<Written> {
        let in_place = {
            let _alone = Alone::within(&self.slot.folder);
            let old = self.slot.expect(self.expect)?;
            let (barred, file) = self.barred.take().unzip();
            let named = match barred {
                Some(error) => Err(Unnamed::Os(error)),
                None => self.temp.try_name(&self.slot, self.expect, old.as_ref()),
            };
            match named {
                Ok(()) => None,
                Err(error) => Some(self.write_in_place(error, file, old.as_ref())?),
            }
        };
        let Self { temp, made, slot, .. } = &mut self;
        if let Some((stat, reason)) = in_place {
            temp.clear();
            let held = At::new(Arc::clone(&slot.folder), Vec::new(), slot.name.clone(), None);
            let at = locate::located(slot.path.clone(), &stat, held);
            return Ok(Written { at, made: Vec::new(), in_place: Some(reason) });
        }
        // Before the folder is synced, so that one sync is enough.
        temp.clear();
        made.keep();
        let failed =
            |what: &str, e: Errno| fault(&slot.path, &format!("was written, but {what}"), e);
        sync_folder(&slot.folder)
            .map_err(|e| failed("its folder could not be synced to disk", e))?;
        // Of the file itself: its name may stand for the next one already.
        let stat = fs::fstat(&temp.file).map_err(|e| failed("cannot be looked at", e))?;
        let held = At::new(Arc::clone(&slot.folder), Vec::new(), slot.name.clone(), None);
        let at = locate::located(slot.path.clone(), &stat, held);
        Ok(Written { at, made: made.paths(), in_place: None })
    }

    /// Writes over what is there, where it cannot be replaced for a reason that this helps against;
    /// gives that reason.
    fn write_in_place(
        &self,
        error: Unnamed,
        file: Option<File>,
        old: Option<&Stat>,
    ) -> io::Result<(Stat, &'static str)> {
        let Self { temp, slot, .. } = self;
        let reason = if let Unnamed::Os(error) = error { in_place::reason(error) } else { None };
        let way = old.and(reason).zip(self.pairs.as_deref());
        let opened = |way| Some((file.or_else(|| in_place::open(slot))?, way));
        let Some((file, (reason, pairs))) = way.and_then(opened) else {
            return Err(error.told(slot, self.expect, &self.at));
        };
        let content = File::from(temp.file.try_clone()?);
        let rights = self.rights.as_ref();
        let stat = in_place::write(slot, &file, self.expect, &content, rights, pairs)?;
        Ok((stat, reason))
    }

    /// Folders that were made for it, topmost first.
    pub(super) fn made(&self) -> Vec<HostPath> {
        self.made.paths()
    }
}

/// Where a file goes: a held folder and a name in it.
pub(super) struct Slot {
    pub(super) folder: Arc<OwnedFd>,
    pub(super) name: Vec<u8>,
    pub(super) path: HostPath,
}

impl Slot {
    pub(super) fn failed(&self, cause: impl Into<io::Error>) -> io::Error {
        fault(&self.path, "cannot be written", cause)
    }

    pub(super) fn changed(&self) -> io::Error {
        let text = "changed since it was read; read it again";
        refuse(io::ErrorKind::AlreadyExists, &self.path, text)
    }

    /// What stands there now, if it is what the writer expects and can be replaced.
    pub(super) fn expect(&self, expect: Expect) -> io::Result<Option<Stat>> {
        let now = match fs::statat(&self.folder, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(self.failed(error)),
        };
        if !holds(expect, now.as_ref()) {
            let text = match (expect, &now) {
                (Expect::Absent, _) => "is already there",
                (_, None) => "is not there any more; look at its folder again",
                _ => return Err(self.changed()),
            };
            return Err(refuse(io::ErrorKind::AlreadyExists, &self.path, text));
        }
        if let Some(kind) = now.as_ref().map(locate::kind_of)
            && kind != EntryKind::File
        {
            let text = format!("became {} since it was looked up; try again", name_of(kind));
            return Err(refuse(io::ErrorKind::AlreadyExists, &self.path, text));
        }
        Ok(now)
    }

    pub(super) fn may_write(&self) -> io::Result<()> {
        let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
        match fs::accessat(&self.folder, &*self.name, Access::WRITE_OK, flags) {
            // Kernels and file systems that cannot answer leave it to the rename.
            Ok(()) | Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::NOENT) => Ok(()),
            Err(error) => Err(fault(&self.path, "is write-protected", error)),
        }
    }
}

/// The lock of a folder, held for the last check and the rename; dropped, it is free again.
///
/// It is best effort: where a folder cannot be locked, or a stranger keeps it locked, the write
/// goes on as if nobody else wrote.
pub(super) struct Alone {
    _locked: Option<OwnedFd>,
}

impl Alone {
    pub(super) fn within(held: &OwnedFd) -> Self {
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
pub(super) struct CreatedFolders {
    entry: Option<Arc<Entry>>,
    folders: Vec<(Arc<OwnedFd>, Vec<u8>, HostPath)>,
    kept: bool,
}

impl CreatedFolders {
    pub(super) const fn new(entry: Option<Arc<Entry>>) -> Self {
        Self { entry, folders: Vec::new(), kept: false }
    }

    /// Makes the folders that were missing, top down, and holds the last one.
    pub(super) fn folders(
        &mut self,
        path: &HostPath,
        at: &At,
        wanted: bool,
    ) -> io::Result<Arc<OwnedFd>> {
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
            if let Some(entry) = &self.entry {
                entry.makes(&here);
            }
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

    pub(super) const fn keep(&mut self) {
        self.kept = true;
    }

    pub(super) fn paths(&self) -> Vec<HostPath> {
        self.folders.iter().map(|(_, _, path)| path.clone()).collect()
    }
}

impl Drop for CreatedFolders {
    fn drop(&mut self) {
        if !self.kept {
            for (folder, name, _) in self.folders.iter().rev() {
                // Only empty folders go; one that another filled meanwhile stays.
                let _ = fs::unlinkat(folder, &**name, AtFlags::REMOVEDIR);
            }
        }
    }
}

/// Why a file did not get its name.
enum Unnamed {
    /// The system refused it.
    Os(Errno),
    /// What is to be said of it is known already.
    Told(io::Error),
}

impl Unnamed {
    fn told(self, slot: &Slot, expect: Expect, at: &At) -> io::Error {
        match self {
            Self::Told(error) => error,
            Self::Os(Errno::EXIST) => {
                refuse(io::ErrorKind::AlreadyExists, &slot.path, "is already there")
            }
            Self::Os(Errno::NOENT) if matches!(expect, Expect::Stamp(_)) => slot.changed(),
            // Trying again would never help.
            Self::Os(Errno::BUSY) => {
                let text = "is mounted there by itself, as files of containers are, and cannot be \
                            replaced by a new file; write into it with a command";
                refuse(io::ErrorKind::Unsupported, &slot.path, text)
            }
            Self::Os(error) => slot.failed(sticky(at, error)),
        }
    }
}

/// A file under a temporary name, which is removed in the end.
pub(super) struct Temp {
    entry: Option<Arc<Entry>>,
    pub(super) file: OwnedFd,
    folder: Arc<OwnedFd>,
    name: String,
    /// True when nothing of this process has that name any more.
    settled: std::cell::Cell<bool>,
}

impl Temp {
    pub(super) fn create(slot: &Slot, mode: Mode, entry: Option<Arc<Entry>>) -> io::Result<Self> {
        Self::create_in(&slot.folder, mode, entry).map_err(|error| Self::not_created(slot, error))
    }

    fn create_in(
        folder: &Arc<OwnedFd>,
        mode: Mode,
        entry: Option<Arc<Entry>>,
    ) -> rustix::io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mut last = Errno::EXIST;
        for _ in 0..16 {
            let name = leftovers::temp_name();
            match fs::openat(folder, &*name, flags | OFlags::CLOEXEC, mode) {
                Ok(file) => {
                    let settled = std::cell::Cell::new(false);
                    let folder = Arc::clone(folder);
                    return Ok(Self { entry, file, folder, name, settled });
                }
                Err(error @ (Errno::EXIST | Errno::INTR)) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    fn not_created(slot: &Slot, error: Errno) -> io::Error {
        if matches!(error, Errno::ACCESS | Errno::PERM | Errno::NOENT) {
            let text = "cannot be written: its folder takes no new file, which every change is at \
                        first";
            return fault(&slot.path, text, error);
        }
        slot.failed(error)
    }

    /// Makes the file that takes the place of another one: for its owner alone, whatever its
    /// folder passes on, until [`Self::take_over`] gives it what that one has.
    pub(super) fn replacement(slot: &Slot, entry: Option<Arc<Entry>>) -> io::Result<Self> {
        Self::replacing(&slot.folder, entry).map_err(|error| Self::not_created(slot, error))
    }

    fn replacing(folder: &Arc<OwnedFd>, entry: Option<Arc<Entry>>) -> rustix::io::Result<Self> {
        let temp = Self::create_in(folder, Mode::RUSR | Mode::WUSR, entry)?;
        metadata::remove_list(&temp.file);
        Ok(temp)
    }

    /// Removes what has the temporary name: the new file, or the old one after an exchange.
    fn clear(&self) {
        if !self.settled.replace(true)
            && fs::unlinkat(&self.folder, &*self.name, AtFlags::empty()).is_err()
            && let Some(entry) = &self.entry
        {
            entry.leaves();
        }
    }

    /// Takes all pieces. Where a piece is nothing but zeros a hole is left: a file with great holes
    /// would not fit on its disk otherwise.
    pub(super) fn fill_from(&self, mut source: Source) -> io::Result<()> {
        let (mut piece, zeros) = (vec![0; PIECE], vec![0; PIECE]);
        let mut len = 0;
        loop {
            let got = match source.read(&mut piece) {
                Ok(0) => return Ok(fs::ftruncate(&self.file, len)?),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                got => got?,
            };
            if piece[..got] != zeros[..got] {
                self.fill_at(&piece[..got], len)?;
            }
            len += got as u64;
        }
    }

    pub(super) fn fill(&self, data: &[u8]) -> io::Result<()> {
        self.fill_at(data, 0)
    }

    pub(super) fn fill_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < data.len() {
            match rustix::io::pwrite(&self.file, &data[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Gives the new file what the old one had, or what is brought back: owner, mode, extended
    /// attributes.
    pub(super) fn take_over(
        &self,
        slot: &Slot,
        old: Option<&Stat>,
        brought: Option<&Rights>,
    ) -> io::Result<()> {
        if let Some(rights) = brought.filter(|rights| old.is_none() || rights.owner.is_some()) {
            return metadata::give(&self.file, rights);
        }
        let Some(old) = old else { return Ok(()) };
        let new = fs::fstat(&self.file)?;
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
            let owner = (new.st_uid != old.st_uid).then(|| Uid::from_raw(old.st_uid));
            let group = (new.st_gid != old.st_gid).then(|| Gid::from_raw(old.st_gid));
            fs::fchown(&self.file, owner, group).map_err(|error| {
                let whom = if owner.is_some() { "that user" } else { "a member of that group" };
                let text = format!(
                    "it belongs to user {} and group {}, which cannot be kept ({error}); \
                     change it as {whom}",
                    old.st_uid, old.st_gid
                );
                io::Error::new(io::Error::from(error).kind(), text)
            })?;
        }
        // What the folder passed on goes first: the group bits of the mode would open it.
        let bare = metadata::remove_list(&self.file);
        let mode = brought.map_or(old.st_mode, |rights| rights.mode);
        let mode = Mode::from(mode & 0o7777);
        fs::fchmod(&self.file, mode)?;
        if !(metadata::copy_attributes(slot, &self.file) && bare) {
            // Without its list of rights, the group bits of the mode would grant too much.
            fs::fchmod(&self.file, mode - Mode::RWXG)?;
        }
        Ok(())
    }

    /// Takes the name, from `old` where a state of the file is expected.
    pub(super) fn take_name(
        &self,
        slot: &Slot,
        expect: Expect,
        old: Option<&Stat>,
        at: &At,
    ) -> io::Result<()> {
        self.try_name(slot, expect, old).map_err(|error| error.told(slot, expect, at))
    }

    fn try_name(&self, slot: &Slot, expect: Expect, old: Option<&Stat>) -> Result<(), Unnamed> {
        let (from, to) = ((&self.folder, self.name.as_bytes()), (&slot.folder, &*slot.name));
        let moved = match (expect, old) {
            (Expect::Absent, _) => move_free((from.0, from.1), (to.0, to.1), false),
            (Expect::Stamp(_), Some(old)) => {
                let ours = fs::fstat(&self.file).map_err(Unnamed::Os)?;
                match self.exchange(slot) {
                    Ok(()) => return self.judge(slot, old, &ours).map_err(Unnamed::Told),
                    Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                        fs::renameat(from.0, from.1, to.0, to.1)
                    }
                    Err(error) => Err(error),
                }
            }
            _ => fs::renameat(from.0, from.1, to.0, to.1),
        };
        moved.map_err(Unnamed::Os)?;
        self.settled.set(true);
        Ok(())
    }

    /// Exchanges the two names.
    ///
    /// Whoever watches the folder is told of two moves, and of the one that this call names first
    /// before the other: the last thing that he hears of the file must be that it is there.
    fn exchange(&self, slot: &Slot) -> rustix::io::Result<()> {
        let (name, temp) = (&*slot.name, self.name.as_bytes());
        fs::renameat_with(&slot.folder, name, &self.folder, temp, RenameFlags::EXCHANGE)
    }

    /// Says whether what came out of an exchange is the old file; puts it back if not.
    fn judge(&self, slot: &Slot, old: &Stat, ours: &Stat) -> io::Result<()> {
        let out = self.came_out();
        if out.as_ref().is_ok_and(|out| is_same(old, out)) {
            return Ok(());
        }
        match self.give_back(slot, ours) {
            Ok(()) => Err(slot.changed()),
            Err(error) => Err(self.keep_apart(slot, error)),
        }
    }

    fn came_out(&self) -> rustix::io::Result<Stat> {
        fs::statat(&self.folder, &*self.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Puts back what belongs to someone else, until what comes out is what was put there.
    fn give_back(&self, slot: &Slot, ours: &Stat) -> rustix::io::Result<()> {
        let mut put = *ours;
        for _ in 0..GIVE_BACK {
            let theirs = self.came_out()?;
            self.exchange(slot)?;
            let out = self.came_out()?;
            if is_same(&put, &out) {
                return Ok(());
            }
            if locate::id_of(&put) == locate::id_of(&out) {
                // Someone wrote into it in between, and someone else's is there again.
                return Err(Errno::BUSY);
            }
            // Yet another took the place of what had been put there: his is the newest.
            put = theirs;
        }
        Err(Errno::BUSY)
    }

    /// Gives what belongs to someone else, and cannot be put back, a name that stays.
    fn keep_apart(&self, slot: &Slot, error: Errno) -> io::Error {
        let name = leftovers::kept_name();
        let moved = fs::renameat(&self.folder, &*self.name, &slot.folder, &*name);
        self.settled.set(true);
        let name = if moved.is_ok() { &name } else { &self.name };
        let what = format!(
            "was changed by another program while it was written, and what that one wrote could \
             not be put back: it is in the same folder as {name}"
        );
        fault(&slot.path, &what, error)
    }
}

/// Reports whether what came out of an exchange is the file that was looked at before; its time of
/// the last change of attributes is the one thing that an exchange itself changes.
pub(super) fn is_same(old: &Stat, out: &Stat) -> bool {
    let mut stamps = [locate::stamp_of(old), locate::stamp_of(out)];
    for stamp in &mut stamps {
        stamp.changed = 0;
    }
    let rights = |stat: &Stat| (stat.st_mode, stat.st_uid, stat.st_gid);
    stamps[0] == stamps[1] && rights(old) == rights(out)
}

impl Drop for Temp {
    fn drop(&mut self) {
        self.clear();
    }
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
