//! Moves: a file keeps all that it is under its new name, and never takes the name of another.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use haft_host::{Fs as _, FsOp, Host as _, Local, Memory, Staged};
use haft_testkit::machine;
use haft_types::{Follow, HostPath, Style};
use rustix::fs::{XattrFlags, getxattr, setxattr};

use super::{World, locals, worlds};

async fn stage(
    w: &World,
    from: &str,
    to: &str,
    data: Option<&'static str>,
) -> io::Result<Box<dyn Staged>> {
    let (from, to) = (w.own(from).await, w.own(to).await);
    w.fs().stage_move(&from, &to, data.map(Into::into)).await
}

#[tokio::test]
async fn a_file_has_its_new_name_once_it_is_placed() {
    for w in worlds() {
        for (data, holds) in [(None, "old"), (Some("new"), "new")] {
            w.file("d/a", "old");
            let staged = stage(&w, "d/a", "e/f/b", data).await.unwrap();
            assert_eq!(w.read("d/a").await.unwrap(), "old", "{}", w.name);
            assert!(w.read("e/f/b").await.is_err(), "{}", w.name);
            let written = staged.place().await.unwrap();
            assert_eq!(written.made, [w.path("e"), w.path("e/f")], "{}", w.name);
            assert_eq!(written.at.real, w.path("e/f/b"));
            assert_eq!(written.at.stamp, w.at("e/f/b").await.stamp, "{}", w.name);
            assert_eq!(w.read("e/f/b").await.unwrap(), holds, "{}", w.name);
            assert!(w.names("d").await.is_empty(), "{}", w.name);
            assert_eq!(w.names("e/f").await, ["b"], "{}", w.name);
            // And back, into a folder that is there.
            let back = stage(&w, "e/f/b", "d/a", Some("old")).await.unwrap();
            assert!(back.place().await.unwrap().made.is_empty(), "{}", w.name);
            assert_eq!(w.read("d/a").await.unwrap(), "old", "{}", w.name);
            for folder in ["e/f", "e"] {
                w.fs().remove(&w.own(folder).await).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn what_is_not_placed_leaves_nothing() {
    for w in worlds() {
        w.file("a", "old");
        for data in [None, Some("new")] {
            stage(&w, "a", "made/for/it", data).await.unwrap().discard().await;
            assert_eq!(w.names(".").await, ["a"], "{} {data:?}", w.name);
            assert_eq!(w.read("a").await.unwrap(), "old", "{}", w.name);
        }
    }
}

#[tokio::test]
async fn nothing_is_moved_onto_another_and_nothing_that_changed() {
    for w in worlds() {
        w.file("a", "old");
        w.file("taken", "theirs");
        w.folder("folder");
        w.link("link", "nowhere");
        w.second_name("a", "second");
        for name in ["taken", "folder", "link", "second", "a"] {
            let error = stage(&w, "a", name, None).await.err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{}: {error}", w.name);
        }
        for (name, kind) in [
            ("none", io::ErrorKind::NotFound),
            ("folder", io::ErrorKind::IsADirectory),
            ("link", io::ErrorKind::InvalidInput),
        ] {
            let error = stage(&w, name, "new", None).await.err().unwrap();
            assert_eq!(error.kind(), kind, "{} {name}: {error}", w.name);
        }
        for data in [None, Some("ours")] {
            let late = stage(&w, "a", "b/late", data).await.unwrap();
            w.file("b/late", "theirs");
            let error = late.place().await.err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{}: {error}", w.name);
            assert_eq!(w.read("b/late").await.unwrap(), "theirs", "{}", w.name);
            assert_eq!(w.names("b").await, ["late"], "{}", w.name);
            w.fs().remove(&w.own("b/late").await).await.unwrap();
            w.fs().remove(&w.own("b").await).await.unwrap();

            let changed = stage(&w, "a", "c/d", data).await.unwrap();
            w.write("a", "theirs", super::anyhow()).await.unwrap();
            let error = changed.place().await.err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{}: {error}", w.name);
            assert_eq!(w.read("a").await.unwrap(), "theirs", "{}", w.name);
            assert_eq!(
                w.names(".").await,
                ["a", "folder", "link", "second", "taken"],
                "{}",
                w.name
            );
        }
    }
}

/// Rights, an attribute where the disk has them, and a time of long ago.
fn adorn(path: &Path) -> bool {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000))
        .unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o741)).unwrap();
    setxattr(path, "user.haft", b"kept", XattrFlags::empty()).is_ok()
}

fn attribute(path: &Path) -> Vec<u8> {
    let mut value = vec![0; 100];
    let len = getxattr(path, "user.haft", &mut value[..]).unwrap();
    value.truncate(len);
    value
}

#[tokio::test]
async fn all_that_a_file_is_goes_along() {
    for w in locals() {
        for (data, stays) in [(None, true), (Some("new"), false)] {
            w.file("a", "old");
            w.second_name("a", "second");
            let (old, new) = (w.disk("a"), w.disk("d/b"));
            let has_attributes = adorn(&old);
            let before = fs::metadata(&old).unwrap();
            stage(&w, "a", "d/b", data).await.unwrap().place().await.unwrap();
            let after = fs::metadata(&new).unwrap();
            assert_eq!((before.mode(), before.uid()), (after.mode(), after.uid()), "{}", w.name);
            assert_eq!(before.ino() == after.ino(), stays, "{}: a rename, where it can be", w.name);
            assert_eq!(before.mtime() == after.mtime(), stays, "{}", w.name);
            if has_attributes {
                assert_eq!(attribute(&new), b"kept", "{}", w.name);
            }
            assert_eq!(w.read("second").await.unwrap(), "old", "{}", w.name);
            fs::remove_file(w.disk("second")).unwrap();
            fs::remove_dir_all(w.disk("d")).unwrap();
        }
    }
}

#[tokio::test]
async fn to_another_disk_it_is_copied_with_all_that_it_is() {
    let w = super::local(haft_host::Lookup::probed());
    let far = tempfile::tempdir_in("/dev/shm");
    let Some(far) = far.ok().filter(|far| {
        fs::metadata(far.path()).unwrap().dev() != fs::metadata(w.disk(".")).unwrap().dev()
    }) else {
        return machine::left_out("there is only one file system to write to");
    };
    let content = "0123456789abcdef".repeat(200_000);
    w.file("a", &content);
    let has_attributes = adorn(&w.disk("a"));
    let before = fs::metadata(w.disk("a")).unwrap();
    let path = Local::path(&far.path().join("d/e/b")).unwrap();
    let to = w.fs().locate(&path, Follow::No).await.unwrap();
    let staged = w.fs().stage_move(&w.own("a").await, &to, None).await.unwrap();
    assert!(!far.path().join("d/e/b").exists() && w.disk("a").exists());
    let written = staged.place().await.unwrap();
    assert_eq!((written.at.real, written.made.len()), (path, 2));
    let after = fs::metadata(far.path().join("d/e/b")).unwrap();
    assert!(!w.disk("a").exists());
    assert_eq!(fs::read_to_string(far.path().join("d/e/b")).unwrap(), content);
    assert_eq!(
        (before.mode(), before.uid(), before.mtime()),
        (after.mode(), after.uid(), after.mtime())
    );
    if has_attributes && setxattr(far.path(), "user.haft", b"x", XattrFlags::empty()).is_ok() {
        assert_eq!(attribute(&far.path().join("d/e/b")), b"kept");
    }
    assert_eq!(fs::read_dir(far.path().join("d/e")).unwrap().count(), 1, "nothing temporary");
}

#[tokio::test]
async fn a_host_in_memory_fails_as_it_is_told() {
    let host = Memory::with_files([("/w/a", "old")]).unwrap();
    let at = |text: &str| HostPath::new(text.as_bytes(), Style::Posix).unwrap();
    for op in [FsOp::Write, FsOp::Rename] {
        host.fail_next(op, io::ErrorKind::StorageFull.into());
        let from = host.locate(&at("/w/a"), Follow::No).await.unwrap();
        let to = host.locate(&at("/w/d/b"), Follow::No).await.unwrap();
        let staged = host.fs().stage_move(&from, &to, None).await;
        let error = match staged {
            Ok(staged) => staged.place().await.err(),
            Err(error) => Some(error),
        };
        assert_eq!(error.unwrap().kind(), io::ErrorKind::StorageFull);
        assert_eq!(host.content("/w/a").unwrap(), "old");
        assert!(host.content("/w/d/b").is_none());
    }
}
