//! Lists of rights: a file that is replaced keeps its own, a new one has what its folder passes on.

use std::{
    fs::{self, File, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use haft_host::WriteHow;
use haft_testkit::machine;
use haft_types::Rights;
use rustix::fs::XattrFlags;

use super::{
    World, anyhow,
    faults::{USER, as_another_user, child},
    locals,
};

const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";

/// A list of rights as the kernel takes it: owner and one stranger all, group and mask `mask`.
fn list(mask: u16) -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    let entries = [
        (1, 7, NOBODY),
        (2, 7, 65_534_u32),
        (4, mask, NOBODY),
        (16, mask, NOBODY),
        (32, 0, NOBODY),
    ];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        bytes.extend(u16::to_le_bytes(tag));
        bytes.extend(u16::to_le_bytes(rights));
        bytes.extend(u32::to_le_bytes(id));
    }
    bytes
}

fn get(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = [0; 1024];
    let len = rustix::fs::getxattr(path, name, &mut value[..]).ok()?;
    Some(value[..len].to_vec())
}

/// A folder that passes rights of a stranger on; false where the disk has no such lists.
fn passing_on(world: &World) -> bool {
    world.folder("team");
    let empty = XattrFlags::empty();
    let set = rustix::fs::setxattr(world.disk("team"), DEFAULT, &list(7), empty).is_ok();
    if !set {
        machine::left_out("the file system has no lists of rights");
    }
    set
}

/// A file that only its mode gives rights to.
fn plain(world: &World, name: &str) {
    world.file(name, "secret");
    let disk = world.disk(name);
    rustix::fs::removexattr(&disk, ACCESS).unwrap();
    fs::set_permissions(&disk, Permissions::from_mode(0o640)).unwrap();
    assert_eq!(get(&disk, ACCESS), None);
}

#[tokio::test]
async fn a_file_that_is_replaced_gets_no_rights_from_its_folder() {
    for w in locals().into_iter().filter(passing_on) {
        plain(&w, "team/a");
        let at = w.at("team/a").await;
        let staged = w.fs().stage(&at, "new".into(), anyhow()).await.unwrap();
        for name in w.names("team").await {
            let disk = w.disk("team").join(&name);
            assert_eq!(get(&disk, ACCESS), None, "{} {name}", w.name);
            assert_eq!(fs::metadata(&disk).unwrap().mode() & 0o7777, 0o640, "{} {name}", w.name);
        }
        staged.place().await.unwrap();
        assert_eq!(w.read("team/a").await.unwrap(), "new");
        assert_eq!(get(&w.disk("team/a"), ACCESS), None, "{}", w.name);
        let mode = fs::metadata(w.disk("team/a")).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o640, "{}", w.name);
    }
}

#[tokio::test]
async fn a_file_that_is_replaced_keeps_its_own_list_of_rights() {
    for w in locals().into_iter().filter(passing_on) {
        for (name, mask) in [("team/a", 4), ("b", 6)] {
            w.file(name, "old");
            let disk = w.disk(name);
            rustix::fs::setxattr(&disk, ACCESS, &list(mask), XattrFlags::empty()).unwrap();
            let mode = fs::metadata(&disk).unwrap().mode();
            w.write(name, "new", anyhow()).await.unwrap();
            assert_eq!(get(&disk, ACCESS), Some(list(mask)), "{} {name}", w.name);
            assert_eq!(fs::metadata(&disk).unwrap().mode(), mode, "{} {name}", w.name);
        }
    }
}

#[tokio::test]
async fn a_new_file_has_the_rights_that_its_folder_passes_on() {
    for w in locals().into_iter().filter(passing_on) {
        File::create(w.disk("team/theirs")).unwrap();
        w.write("team/ours", "x", anyhow()).await.unwrap();
        let private = WriteHow { mode: 0o600, ..anyhow() };
        w.write("team/private", "x", private).await.unwrap();
        w.write("team/sub/deep", "x", anyhow()).await.unwrap();
        let theirs = get(&w.disk("team/theirs"), ACCESS);
        assert!(theirs.is_some());
        assert_eq!(get(&w.disk("team/ours"), ACCESS), theirs, "{}", w.name);
        assert_eq!(get(&w.disk("team/sub/deep"), ACCESS), theirs, "{}", w.name);
        // No more than its owner may do.
        assert_eq!(get(&w.disk("team/private"), ACCESS), Some(list_masked()), "{}", w.name);
    }
}

/// What becomes of the list where a file is made for its owner alone.
fn list_masked() -> Vec<u8> {
    let mut bytes = list(0);
    // The owner may read and write, and the group's own entry stays as it is passed on.
    bytes[6] = 6;
    bytes[4 + 2 * 8 + 2] = 7;
    bytes
}

#[tokio::test]
async fn a_list_of_rights_is_kept_where_the_old_file_may_not_be_read() {
    if !machine::is_root("only root can write as somebody else here") {
        return;
    }
    for w in locals().into_iter().filter(passing_on) {
        let user = as_another_user(&w);
        plain(&w, "team/plain");
        w.file("team/listed", "old");
        rustix::fs::setxattr(w.disk("team/listed"), ACCESS, &list(6), XattrFlags::empty()).unwrap();
        std::os::unix::fs::chown(w.disk("team"), Some(USER), Some(USER)).unwrap();
        for (name, mode) in [("team/plain", 0o220), ("team/listed", 0o260)] {
            let disk = w.disk(name);
            std::os::unix::fs::chown(&disk, Some(USER), Some(USER)).unwrap();
            fs::set_permissions(&disk, Permissions::from_mode(mode)).unwrap();
            let before = get(&disk, ACCESS);
            let said = child(&user, &disk);
            assert!(said.contains("WROTE"), "{}: {said}", w.name);
            assert_eq!(fs::metadata(&disk).unwrap().len(), 1 << 20, "{}", w.name);
            assert_eq!(get(&disk, ACCESS), before, "{} {name}", w.name);
            assert_eq!(fs::metadata(&disk).unwrap().mode() & 0o7777, mode, "{} {name}", w.name);
        }
    }
}

#[tokio::test]
async fn a_file_that_went_is_brought_back_with_all_its_rights() {
    let root = machine::is_root("only root can give a file to another user");
    for w in locals().into_iter().filter(passing_on) {
        plain(&w, "team/plain");
        w.file("team/listed", "x");
        let listed = w.disk("team/listed");
        rustix::fs::setxattr(&listed, ACCESS, &list(5), XattrFlags::empty()).unwrap();
        for (name, mode) in [("team/plain", 0o4710), ("team/listed", 0o2754)] {
            let disk = w.disk(name);
            if root {
                std::os::unix::fs::chown(&disk, Some(1234), Some(4321)).unwrap();
            }
            fs::set_permissions(&disk, Permissions::from_mode(mode)).unwrap();
            rustix::fs::setxattr(&disk, "user.k", b"\0v\xff", XattrFlags::empty()).unwrap();
            let state = || {
                let meta = fs::metadata(&disk).unwrap();
                let attributes = [get(&disk, ACCESS), get(&disk, "user.k")];
                (meta.mode(), meta.uid(), meta.gid(), attributes)
            };
            let before = state();
            let at = w.at(name).await;
            let rights = w.fs().rights(&at).await.unwrap();
            w.fs().remove(&at).await.unwrap();
            let how = WriteHow { rights: rights.clone(), ..anyhow() };
            w.write(name, "again", how.clone()).await.unwrap();
            assert_eq!(state(), before, "{} {name}", w.name);
            // In place of another file it has them too, and nothing of that one.
            fs::remove_file(&disk).unwrap();
            w.file(name, "somebody else's");
            rustix::fs::setxattr(&disk, ACCESS, &list(7), XattrFlags::empty()).unwrap();
            w.write(name, "again", how).await.unwrap();
            assert_eq!(state(), before, "{} {name}", w.name);
            let now = w.fs().rights(&w.at(name).await).await.unwrap();
            assert_eq!(now, rights, "{} {name}", w.name);
        }
    }
}

#[tokio::test]
async fn what_is_brought_back_by_its_mode_alone_has_no_list_of_rights() {
    for w in locals().into_iter().filter(passing_on) {
        let how = WriteHow { rights: Some(Rights::of_mode(0o640)), ..anyhow() };
        w.write("team/back", "x", how).await.unwrap();
        assert_eq!(get(&w.disk("team/back"), ACCESS), None, "{}", w.name);
        let mode = fs::metadata(w.disk("team/back")).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o640, "{}", w.name);
    }
}
