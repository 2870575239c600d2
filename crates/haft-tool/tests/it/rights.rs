//! A file that went comes back with its owner, its permissions and its attributes.

use std::{
    fs::{self, Permissions},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, PermissionsExt as _, chown},
    },
    path::{Path, PathBuf},
};

use haft_host::{Host, Local, Queues};
use haft_testkit::machine;
use haft_tool::{MemoryPreImages, PreImages, Undo, roll_back};
use haft_types::{Follow, Hash, HostPath, Receipt, ReceiptAction, Style};
use rustix::fs::XattrFlags;
use tempfile::TempDir;

struct World {
    host: Local,
    images: std::sync::Arc<MemoryPreImages>,
    folder: TempDir,
}

/// Permissions, owner, and the attribute of a user.
type State = (u32, u32, u32, Option<Vec<u8>>);

impl World {
    fn new() -> Self {
        let host = Local::new();
        Self { host, images: std::sync::Arc::default(), folder: tempfile::tempdir().unwrap() }
    }

    fn disk(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn path(&self, name: &str) -> HostPath {
        HostPath::new(self.disk(name).as_os_str().as_bytes(), Style::Posix).unwrap()
    }

    /// Removes a file that has all that a file can have, and gives the receipt of that.
    async fn removed(&self, name: &str) -> (Receipt, State) {
        let disk = self.disk(name);
        fs::write(&disk, "old").unwrap();
        if machine::is_root("only root can give a file to another user") {
            chown(&disk, Some(1234), Some(4321)).unwrap();
        }
        fs::set_permissions(&disk, Permissions::from_mode(0o4750)).unwrap();
        if rustix::fs::setxattr(&disk, "user.k", b"v\0", XattrFlags::empty()).is_err() {
            machine::left_out("the file system keeps no attributes of users");
        }
        let was = state(&disk);
        let at = self.host.fs().locate(&self.path(name), Follow::No).await.unwrap();
        let action = ReceiptAction::Deleted;
        let mut receipt = Receipt::new(self.host.name().to_owned(), self.path(name), action);
        receipt.before = Some(Hash::of(b"old"));
        receipt.pre_image = Some(self.images.put(&"old".into(), Hash::of(b"old")).unwrap());
        receipt.rights = self.host.fs().rights(&at).await.unwrap();
        self.host.fs().remove(&at).await.unwrap();
        // As it is read from a log, or from a journal.
        let written = serde_json::to_string(&receipt).unwrap();
        (serde_json::from_str(&written).unwrap(), was)
    }
}

fn state(disk: &Path) -> State {
    let meta = fs::metadata(disk).unwrap();
    let mut value = [0; 16];
    let len = rustix::fs::getxattr(disk, "user.k", &mut value[..]).ok();
    (meta.mode(), meta.uid(), meta.gid(), len.map(|len| value[..len].to_vec()))
}

#[tokio::test]
async fn what_was_removed_is_as_it_was_however_often_it_is_taken_back() {
    let world = World::new();
    let (receipt, was) = world.removed("a").await;
    let (mut receipts, disk) = (vec![receipt], world.disk("a"));
    for round in 0..4 {
        let undo = Undo {
            host: &world.host,
            queues: &Queues::default(),
            pre_images: world.images.clone(),
            forbids: &|_| None,
        };
        receipts = undo.take_back(&receipts, false).await.unwrap().receipts;
        if round % 2 == 0 {
            assert_eq!(fs::read(&disk).unwrap(), b"old");
            assert_eq!(state(&disk), was, "{round}");
        } else {
            assert!(!disk.exists());
        }
    }
}

#[tokio::test]
async fn what_a_crash_left_removed_is_as_it_was() {
    let world = World::new();
    let (gone, was) = world.removed("a").await;
    // The second of the changes was not made.
    let path = world.path("b");
    let mut new = Receipt::new(world.host.name().to_owned(), path, ReceiptAction::Created);
    new.after = Some(Hash::of(b"new"));
    let mended = roll_back(&world.host, &*world.images, &[gone, new], true).await;
    assert_eq!(mended.restored, [world.path("a")], "{mended:?}");
    assert_eq!(state(&world.disk("a")), was);
}
