//! Which file operations are sure not to wait for a server, so that they need no other thread.
//!
//! Handing work to another thread costs several times as much as looking up a cached name of a
//! local disk. Looking up a name on a mount whose server is gone never returns. So what is certain
//! to be quick is done at once, and everything else on another thread.
//!
//! **Invariant:** no operation here waits. Only names that the kernel has cached are opened
//! (`RESOLVE_CACHED`, Linux 5.12). Attributes are taken as the kernel knows them
//! (`AT_STATX_DONT_SYNC`). The type of a file system is learned where waiting blocks nobody. What
//! is not known counts as slow.

use std::sync::{PoisonError, RwLock};

use haft_types::HostPath;
use rustix::{
    fd::AsFd,
    fs::{self, AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags},
};

use super::locate::At;
use crate::Located;

/// File systems without a server, by their `f_type` (`linux/magic.h`): ext, XFS, Btrfs, F2FS,
/// ZFS, bcachefs, tmpfs, ramfs, overlay, `SquashFS`, EROFS.
const SERVERLESS: [i128; 11] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0xf2f5_2010,
    0x2fc1_2fc1,
    0xca45_1a4e,
    0x0102_1994,
    0x8584_58f6,
    0x794c_7630,
    0x7371_7368,
    0xe0f5_e1e2,
];

/// Most bytes that are read at once where that is quick.
const READ: u64 = 128 * 1024;
/// Most devices that are remembered.
const DEVICES: usize = 64;

/// The devices that were seen to be quick.
#[derive(Debug, Default)]
pub(super) struct Quick(RwLock<Vec<u64>>);

impl Quick {
    /// Whether looking `path` up waits for nothing.
    pub(super) fn finds(&self, path: &HostPath) -> bool {
        let how = ResolveFlags::CACHED | ResolveFlags::NO_SYMLINKS;
        let hold = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        fs::openat2(fs::CWD, path.as_bytes(), hold, Mode::empty(), how)
            .ok()
            .and_then(|held| device(&held))
            .is_some_and(|device| self.knows(device))
    }

    /// Whether reading up to `len` bytes of what was located waits for nothing but a local disk.
    pub(super) fn reads(&self, at: &Located, len: usize) -> bool {
        at.size().min(len as u64) <= READ && at.stamp.is_some_and(|stamp| self.knows(stamp.id.0))
    }

    /// Learns from what was located where waiting holds nobody up.
    pub(super) fn learn(&self, at: &Located) {
        let Ok(held) = At::of(at) else { return };
        let Some(device) = device(&*held.folder).filter(|device| !self.knows(*device)) else {
            return;
        };
        let serverless = fs::fstatfs(&held.folder)
            .is_ok_and(|system| SERVERLESS.contains(&i128::from(system.f_type)));
        let mut devices = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if serverless && devices.len() < DEVICES && !devices.contains(&device) {
            devices.push(device);
        }
    }

    fn knows(&self, device: u64) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&device)
    }
}

/// The device of what is held and no link, from what the kernel knows without asking anyone.
fn device(file: impl AsFd) -> Option<u64> {
    let how = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let stat = fs::statx(file, "", how, StatxFlags::TYPE).ok()?;
    let kind = FileType::from_raw_mode(stat.stx_mode.into());
    (kind != FileType::Symlink).then(|| fs::makedev(stat.stx_dev_major, stat.stx_dev_minor))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use haft_types::Follow;

    use crate::{Fs as _, Local};

    #[tokio::test]
    async fn a_local_disk_is_learned_and_other_file_systems_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, "text").unwrap();
        let (host, file) = (Local::new(), Local::path(&file).unwrap());
        assert!(!host.quick.finds(&file), "nothing is known yet");
        let found = host.locate(&file, Follow::Yes).await.unwrap();
        assert!(host.quick.finds(&file) && host.quick.reads(&found, 1_000));
        assert!(!host.quick.finds(&file.join("missing").unwrap()));

        let process = Local::path(Path::new("/proc/version")).unwrap();
        host.locate(&process, Follow::Yes).await.unwrap();
        assert!(!host.quick.finds(&process), "only what was seen to have no server is quick");
    }

    #[tokio::test]
    async fn links_and_long_reads_are_not_quick() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&file, vec![b'x'; 1024 * 1024]).unwrap();
        std::os::unix::fs::symlink("a", &link).unwrap();
        let host = Local::new();
        let found = host.locate(&Local::path(&file).unwrap(), Follow::Yes).await.unwrap();
        assert!(host.quick.reads(&found, 1_000) && !host.quick.reads(&found, 1_000_000));
        let link = Local::path(&link).unwrap();
        host.locate(&link, Follow::Yes).await.unwrap();
        assert!(!host.quick.finds(&link));
    }
}
