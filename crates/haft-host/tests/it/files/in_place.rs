//! Files that no new file can replace: written in place, or refused with all as it was.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
};

use haft_testkit::machine;

use super::{
    World,
    faults::{LEDGER, USER, as_another_user, child},
    locals,
};

const TEST: &str = "files::faults::child_writes_a_mebibyte";

/// Mounts something, and writes a mebibyte to `d/a` there; gives what that said. None where nobody
/// may mount anything.
fn mounted(w: &World, mount: &str) -> Option<String> {
    let root = w.disk(".").canonicalize().unwrap().display().to_string();
    let mount = mount.replace("ROOT", &root);
    if !machine::may_mount("-m", &mount) {
        return None;
    }
    fs::create_dir_all(w.disk("ledger")).unwrap();
    let stage = format!(
        "exec env {LEDGER}='{root}/ledger' unshare -m sh -c \"{mount}; \
         exec \\\"$0\\\" {TEST} --exact --ignored --nocapture\" \"$0\""
    );
    Some(child(&stage, &w.disk("d/a")))
}

fn is_new(w: &World, name: &str) -> bool {
    fs::read(w.disk(name)).unwrap() == vec![b'n'; 1 << 20]
}

/// Nothing is left of it beside what was there.
fn is_clean(w: &World, names: usize) {
    assert_eq!(fs::read_dir(w.disk("d")).unwrap().count(), names, "something was left");
    let left: Vec<_> = fs::read_dir(w.disk("ledger")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_file_that_is_mounted_by_itself_is_written_in_place() {
    for old in ["old".to_owned(), "o".repeat(3 << 20)] {
        let w = &locals()[0];
        w.file("d/a", "below");
        w.file("source", &old);
        fs::set_permissions(w.disk("source"), fs::Permissions::from_mode(0o640)).unwrap();
        let before = fs::metadata(w.disk("source")).unwrap();
        let Some(said) = mounted(w, "mount --bind ROOT/source ROOT/d/a") else { return };
        assert!(said.contains("WROTE Some(\"it is mounted there by itself\") 1"), "{said}");
        assert!(is_new(w, "source"));
        let after = fs::metadata(w.disk("source")).unwrap();
        let same = |meta: &fs::Metadata| (meta.ino(), meta.mode(), meta.uid(), meta.gid());
        assert_eq!(same(&before), same(&after));
        assert_eq!(fs::read_to_string(w.disk("d/a")).unwrap(), "below");
        is_clean(w, 1);
    }
}

#[test]
fn all_names_of_a_file_that_is_written_in_place_change() {
    let w = &locals()[0];
    w.file("d/a", "below");
    w.file("source", "old");
    fs::hard_link(w.disk("source"), w.disk("other")).unwrap();
    let Some(said) = mounted(w, "mount --bind ROOT/source ROOT/d/a") else { return };
    assert!(said.contains("by itself\") 2"), "{said}");
    assert!(is_new(w, "source") && is_new(w, "other"));
    is_clean(w, 1);
}

#[test]
fn a_file_in_a_folder_that_is_read_only_is_written_in_place() {
    let w = &locals()[0];
    w.file("d/a", "below");
    w.file("source", "old");
    let mount = "mount --bind ROOT/d ROOT/d && mount -o remount,ro,bind ROOT/d && \
                 mount --bind ROOT/source ROOT/d/a";
    let Some(said) = mounted(w, mount) else { return };
    assert!(said.contains("WROTE Some(\"its folder is read-only\") 1"), "{said}");
    assert!(is_new(w, "source"));
    is_clean(w, 1);
}

#[test]
fn a_file_that_cannot_be_written_either_is_refused_for_its_folder() {
    let w = &locals()[0];
    w.file("d/a", "old");
    let mount = "mount --bind ROOT/d ROOT/d && mount -o remount,ro,bind ROOT/d";
    let Some(said) = mounted(w, mount) else { return };
    assert!(said.contains("ERROR ReadOnlyFilesystem"), "{said}");
    assert_eq!(fs::read_to_string(w.disk("d/a")).unwrap(), "old");
    is_clean(w, 1);
}

#[test]
fn a_longer_text_without_room_changes_nothing() {
    let w = &locals()[0];
    w.file("d/a", "below");
    w.folder("disk");
    w.file("seen", "");
    let mount = "mount -t tmpfs -o size=512k none ROOT/disk && echo old >ROOT/disk/source && \
                 mount --bind ROOT/disk/source ROOT/d/a && \
                 trap 'cat ROOT/d/a >ROOT/seen; df --output=used ROOT/disk >ROOT/used' EXIT";
    let root = w.disk(".").canonicalize().unwrap().display().to_string();
    let mount = mount.replace("ROOT", &root);
    if !machine::may_mount("-m", &mount) {
        return;
    }
    fs::create_dir_all(w.disk("ledger")).unwrap();
    let stage = format!(
        "exec env {LEDGER}='{root}/ledger' unshare -m sh -c \"{mount}; \
         \\\"$0\\\" {TEST} --exact --ignored --nocapture\" \"$0\""
    );
    let said = child(&stage, &w.disk("d/a"));
    assert!(said.contains("ERROR StorageFull") && said.contains("can be reserved"), "{said}");
    assert_eq!(fs::read_to_string(w.disk("seen")).unwrap(), "old\n");
    is_clean(w, 1);
}

#[test]
fn a_file_whose_lock_another_program_holds_is_left_alone() {
    let w = &locals()[0];
    w.file("d/a", "below");
    w.file("source", "old");
    let mount = "mount --bind ROOT/source ROOT/d/a && exec 8<>ROOT/source && flock -x 8";
    let Some(said) = mounted(w, mount) else { return };
    assert!(said.contains("ERROR ResourceBusy") && said.contains("holds its lock"), "{said}");
    assert_eq!(fs::read_to_string(w.disk("source")).unwrap(), "old");
    is_clean(w, 1);
}

#[test]
fn a_file_in_a_folder_that_takes_no_file_is_written_in_place() {
    if !machine::is_root("only root can write as somebody else here") {
        return;
    }
    let w = &locals()[0];
    w.file("d/a", "old");
    w.folder("ledger");
    for name in ["d/a", "ledger"] {
        std::os::unix::fs::chown(w.disk(name), Some(USER), Some(USER)).unwrap();
    }
    let env = format!("export {LEDGER}='{}'; ", w.disk("ledger").display());
    let said = child(&(env + &as_another_user(w)), &w.disk("d/a"));
    assert!(said.contains("WROTE Some(\"its folder does not let it be replaced\") 1"), "{said}");
    assert!(is_new(w, "d/a"));
    is_clean(w, 1);
}
