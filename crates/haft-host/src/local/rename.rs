//! Moves files of this machine: a file gets another name, and optionally new content.
//!
//! **How:** within one file system, a file whose content stays is renamed. Otherwise a copy, with
//! owner, mode and attributes, is written to the disk under a temporary name. When placed, the copy
//! takes the new name, and only then the old name is removed.
//!
//! **Invariant:** at every instant one of the two names stands for the whole file. A name that is
//! taken is never replaced. A file that has changed since it was located stays where it is. On an
//! error nothing new is left.

use std::{io, sync::Arc};

use haft_types::HostPath;
use rustix::{
    fs::{self, AtFlags, Stat, Timespec, Timestamps},
    io::Errno,
};

use super::{
    fs::{move_free, sticky},
    ledger::Entry,
    locate::{self, At},
    write::{Alone, CreatedFolders, Slot, Temp, Writes, entered, is_same, sync_folder},
};
use crate::{
    Expect, FileKind, Located, Written,
    fault::{fault, refuse},
};

/// Bytes that are copied at once.
const PIECE: usize = 1 << 20;

/// A file on its way to another name.
///
/// Dropped, the copy goes again, with the folders that were made for it.
pub(super) struct Move {
    // The copy goes before its folders, and both before the record of them ends.
    copy: Option<Temp>,
    made: CreatedFolders,
    entry: Option<Arc<Entry>>,
    located: Located,
    from: Slot,
    to: Slot,
    at: Arc<At>,
    expect: Expect,
}

/// Brings to the disk what a move needs: the folders for it, and a copy where a rename will not do.
pub(super) fn stage(
    from: &Located,
    to: &Located,
    data: Option<&[u8]>,
    writes: &Writes,
) -> io::Result<Move> {
    let (old, at) = (At::of(from)?, At::of(to)?);
    match from.kind {
        FileKind::FILE => {}
        FileKind::Entry(kind) => return Err(locate::not_regular(from, kind)),
        FileKind::Missing => {
            return Err(refuse(io::ErrorKind::NotFound, &from.real, "no such file or folder"));
        }
    }
    if to.kind != FileKind::Missing {
        return Err(refuse(io::ErrorKind::AlreadyExists, &to.real, "is already there"));
    }
    let slot = |folder, at: &At, path: &HostPath| Slot {
        folder,
        name: at.name.clone(),
        path: path.clone(),
    };
    let entry = entered(writes, &to.real);
    let mut made = CreatedFolders::new(entry.clone());
    let folder = made.folders(&to.real, &at, true)?;
    writes.swept.once(&folder);
    let mut moving = Move {
        copy: None,
        made,
        entry,
        located: from.clone(),
        from: slot(Arc::clone(&old.folder), &old, &from.real),
        to: slot(folder, &at, &to.real),
        at,
        expect: from.stamp.map_or(Expect::Absent, Expect::Stamp),
    };
    moving.to.expect(Expect::Absent)?;
    let stat = moving.unchanged()?;
    if data.is_some() {
        moving.from.may_write()?;
    }
    let above = fs::fstat(&moving.to.folder).map_err(|e| moving.to.failed(e))?;
    if data.is_some() || above.st_dev != stat.st_dev {
        moving.copy = Some(moving.copied(data, &stat)?);
    }
    Ok(moving)
}

impl Move {
    /// Gives the file its new name, if it is as it was located and the name is free.
    pub(super) fn place(mut self) -> io::Result<Written> {
        {
            let _alone = Alone::within(&self.from.folder);
            let old = self.unchanged()?;
            let renamed = if self.copy.is_none() { self.rename(&old)? } else { false };
            if !renamed {
                if self.copy.is_none() {
                    self.copy = Some(self.copied(None, &old)?);
                }
                self.change_places(&old)?;
            }
        }
        self.made.keep();
        let failed =
            |what: &str, e: Errno| fault(&self.to.path, &format!("is moved, but {what}"), e);
        sync_folder(&self.to.folder)
            .and_then(|()| sync_folder(&self.from.folder))
            .map_err(|e| failed("its folder could not be synced to disk", e))?;
        let stat = now_at(&self.to).map_err(|e| failed("cannot be looked at", e))?;
        let held = At::new(Arc::clone(&self.to.folder), Vec::new(), self.to.name.clone(), None);
        let at = locate::located(self.to.path.clone(), &stat, held);
        Ok(Written { at, made: self.made.paths(), in_place: None })
    }

    /// Folders that were made for it, topmost first.
    pub(super) fn made(&self) -> Vec<HostPath> {
        self.made.paths()
    }

    /// The file under its old name, if it is as it was located.
    fn unchanged(&self) -> io::Result<Stat> {
        self.from.expect(self.expect)?.ok_or_else(|| self.from.changed())
    }

    fn failed(&self, cause: impl Into<io::Error>) -> io::Error {
        fault(&self.from.path, &format!("cannot be moved to {}", self.to.path), cause)
    }

    /// Brings a copy to the disk beside the new name, of this content or of that of the file.
    fn copied(&self, data: Option<&[u8]>, old: &Stat) -> io::Result<Temp> {
        let temp = Temp::replacement(&self.to, self.entry.clone())?;
        let filled = match data {
            Some(data) => temp.fill(data),
            None => self.pour(&temp),
        };
        let like = |()| temp.take_over(&self.from, Some(old), None);
        filled.and_then(like).map_err(|e| self.to.failed(e))?;
        if data.is_none() {
            let times = Timestamps {
                last_access: time(old.st_atime, old.st_atime_nsec),
                last_modification: time(old.st_mtime, old.st_mtime_nsec),
            };
            // A file system without such times still takes the file.
            let _ = fs::futimens(&temp.file, &times);
        }
        fs::fsync(&temp.file).map_err(|e| self.to.failed(e))?;
        Ok(temp)
    }

    /// Copies what the file holds.
    fn pour(&self, temp: &Temp) -> io::Result<()> {
        let file = At::of(&self.located)?.file(&self.located)?;
        let mut piece = vec![0; PIECE];
        let mut offset = 0;
        loop {
            match rustix::io::pread(&file, &mut piece[..], offset) {
                Ok(0) => return Ok(()),
                Ok(len) => {
                    temp.fill_at(&piece[..len], offset)?;
                    offset += len as u64;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Renames; false where that cannot be done between these two folders.
    fn rename(&self, old: &Stat) -> io::Result<bool> {
        let (from, to) =
            ((&*self.from.folder, &*self.from.name), (&*self.to.folder, &*self.to.name));
        match move_free(from, to, false) {
            Ok(()) => {}
            Err(Errno::XDEV) => return Ok(false),
            Err(Errno::EXIST) => return Err(self.taken()),
            Err(Errno::NOENT) => return Err(self.from.changed()),
            Err(error) => {
                let at = At::of(&self.located)?;
                return Err(self.failed(sticky(&at, error)));
            }
        }
        if now_at(&self.to).is_ok_and(|now| is_same(old, &now)) {
            return Ok(true);
        }
        // Another program changed it in the last microsecond; where its name is taken already, it
        // stays whole under the new one.
        move_free(to, from, false).map_err(|e| self.failed(e))?;
        Err(self.from.changed())
    }

    /// Gives the copy the new name, then takes the old one away.
    fn change_places(&self, old: &Stat) -> io::Result<()> {
        let Some(copy) = &self.copy else { return Err(io::ErrorKind::NotFound.into()) };
        copy.take_name(&self.to, Expect::Absent, None, &self.at)?;
        let removed = match now_at(&self.from) {
            Ok(now) if is_same(old, &now) => {
                fs::unlinkat(&self.from.folder, &*self.from.name, AtFlags::empty())
                    .or_else(|error| match error {
                        Errno::NOENT => Ok(()),
                        error => Err(error),
                    })
                    .map_err(|error| match At::of(&self.located) {
                        Ok(at) => self.failed(sticky(&at, error)),
                        Err(error) => error,
                    })
            }
            _ => Err(self.from.changed()),
        };
        removed.inspect_err(|_| {
            let ours = fs::fstat(&copy.file).is_ok_and(|copy| {
                now_at(&self.to).is_ok_and(|now| locate::id_of(&now) == locate::id_of(&copy))
            });
            if ours {
                let _ = fs::unlinkat(&self.to.folder, &*self.to.name, AtFlags::empty());
            }
        })
    }

    fn taken(&self) -> io::Error {
        refuse(io::ErrorKind::AlreadyExists, &self.to.path, "is already there")
    }
}

/// What stands at a place now, without following a link.
fn now_at(slot: &Slot) -> rustix::io::Result<Stat> {
    fs::statat(&slot.folder, &*slot.name, AtFlags::SYMLINK_NOFOLLOW)
}

fn time(seconds: i64, nanoseconds: impl TryInto<i64>) -> Timespec {
    Timespec { tv_sec: seconds, tv_nsec: nanoseconds.try_into().unwrap_or(0) }
}
