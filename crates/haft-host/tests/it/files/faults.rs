//! Full disks, limits and injected faults: the old file stays whole and nothing is left behind.

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path, process::Command};

use bytes::Bytes;
use haft_host::{Expect, FsOp, Host, Local, Memory, WriteHow};
use haft_testkit::machine;
use haft_types::Follow;

use super::{World, anyhow, locals};

/// Set in the child process to the file that it has to write.
const TARGET: &str = "HAFT_TEST_TARGET";
/// Set there to where it keeps its records, if it does.
pub const LEDGER: &str = "HAFT_TEST_LEDGER";

/// What the child processes of the tests below run.
#[tokio::test]
#[ignore = "runs in child processes of other tests, which say where to write"]
async fn child_writes_a_mebibyte() {
    let target = std::env::var_os(TARGET).unwrap();
    let path = Local::path(Path::new(&target)).unwrap();
    let host = match std::env::var_os(LEDGER) {
        Some(ledger) => Local::new().with_ledger(ledger.into()),
        None => Local::new(),
    };
    let at = host.fs().locate(&path, Follow::Yes).await.unwrap();
    let expect = at.stamp.map_or(Expect::Absent, Expect::Stamp);
    let how = WriteHow { expect, ..anyhow() };
    match host.fs().write(&at, Bytes::from(vec![b'n'; 1 << 20]), how).await {
        Ok(written) => println!("WROTE {:?} {}", written.in_place, written.at.names),
        Err(error) => println!("ERROR {:?} {error}", error.kind()),
    }
}

/// Runs the child above under a shell that sets the stage; gives what it said.
pub fn child(stage: &str, target: &Path) -> String {
    child_of("files::faults::child_writes_a_mebibyte", stage, target)
}

fn child_of(test: &str, stage: &str, target: &Path) -> String {
    let script = format!("{stage}; exec \"$0\" {test} --exact --ignored --nocapture");
    let output = Command::new("sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(TARGET, target)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn only(w: &World, folder: &str, name: &str, content: &str) {
    let names: Vec<_> = fs::read_dir(w.disk(folder)).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(fs::read_to_string(w.disk(folder).join(name)).unwrap(), content);
}

#[test]
fn the_limit_of_file_sizes_leaves_the_old_file() {
    let w = &locals()[0];
    w.file("d/a", "old");
    let said = child("trap '' XFSZ; ulimit -f 100", &w.disk("d/a"));
    assert!(said.contains("ERROR FileTooLarge") && said.contains("d/a"), "{said}");
    only(w, "d", "a", "old");
    let said = child("trap '' XFSZ; ulimit -f 100", &w.disk("made/by/it"));
    assert!(said.contains("ERROR FileTooLarge"), "{said}");
    assert!(!w.disk("made").exists(), "folders were left behind");
    let said = child("true", &w.disk("made/by/it"));
    assert!(said.contains("WROTE"), "{said}");
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let w = &locals()[0];
    w.folder("disk");
    let disk = w.disk("disk").display().to_string();
    let mount = format!("mount -t tmpfs -o size=512k none '{disk}'");
    if !machine::may_mount("-m", &mount) {
        return;
    }
    let stage = format!(
        "exec unshare -m sh -c \"{mount}; echo old >'{disk}/a'; \
         \\\"$0\\\" files::faults::child_writes_a_mebibyte --exact --ignored --nocapture; \
         ls -A '{disk}'; cat '{disk}/a'\" \"$0\""
    );
    let said = child(&stage, &w.disk("disk/a"));
    assert!(said.contains("ERROR StorageFull") && said.contains("No space left"), "{said}");
    assert!(said.ends_with("a\nold\n"), "{said}");
}

/// Touches a mount that never answers, on a runtime of one thread.
#[test]
#[ignore = "runs in a child process of the test below, which mounts something for it"]
fn child_touches_a_dead_mount() {
    let target = std::env::var_os(TARGET).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let host = Local::new();
        let path = Local::path(Path::new(&target)).unwrap();
        let patience = std::time::Duration::from_millis(200);
        let (below, fs) = (path.join("x").unwrap(), host.fs());
        let locate = fs.locate(&below, Follow::Yes);
        assert!(tokio::time::timeout(patience, locate).await.is_err(), "it answered");
        let above = fs.locate(&path.parent().unwrap(), Follow::Yes).await.unwrap();
        let mount = fs.child(&above, path.file_name().unwrap(), Follow::No);
        let mount = tokio::time::timeout(patience, mount).await;
        println!("CHILD {}", mount.is_ok());
        let spawn = haft_host::Spawn::new(haft_host::Program::Argv(vec![b"true".to_vec()]), below);
        let start = host.shell().unwrap().spawn(spawn);
        assert!(tokio::time::timeout(patience, start).await.is_err(), "it started");
        let other = fs.locate(&path.parent().unwrap().join("other").unwrap(), Follow::Yes).await;
        println!("FREE {:?}", fs.read(&other.unwrap(), 0, 9).await.unwrap());
    });
    std::process::exit(0);
}

#[test]
fn a_mount_that_never_answers_holds_nobody_else_up() {
    let w = &locals()[0];
    w.folder("mount");
    w.file("other", "content");
    let disk = w.disk("mount").display().to_string();
    // A file system whose server takes no question: its descriptor is open and nobody reads it.
    let mount = format!(
        "exec 9<>/dev/fuse && mount -i -t fuse -o \
         fd=9,rootmode=40000,user_id=0,group_id=0 none '{disk}'"
    );
    if !machine::may_mount("-m", &mount) {
        return;
    }
    let test = "files::faults::child_touches_a_dead_mount";
    let stage = format!(
        "exec timeout -s KILL 20 unshare -m sh -c \"{mount}; \
         exec \\\"$0\\\" {test} --exact --ignored --nocapture\" \"$0\""
    );
    let said = child_of(test, &stage, &w.disk("mount"));
    assert!(said.contains("FREE b\"content\""), "{said}");
}

/// The user that [`as_another_user`] becomes.
pub const USER: u32 = 12345;

/// The stage on which the child is another user's, who can read the world's folder. Only for root.
pub fn as_another_user(w: &World) -> String {
    let copy = w.disk("test-binary");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    for path in [&copy, &w.disk(".")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    format!(
        "exec setpriv --reuid {USER} --regid {USER} --clear-groups '{}' \
         files::faults::child_writes_a_mebibyte --exact --ignored --nocapture",
        copy.display()
    )
}

#[test]
fn rights_are_told() {
    if !rustix::process::geteuid().is_root() {
        let w = &locals()[0];
        w.file("d/a", "old");
        fs::set_permissions(w.disk("d/a"), fs::Permissions::from_mode(0o444)).unwrap();
        let said = child("true", &w.disk("d/a"));
        assert!(said.contains("PermissionDenied") && said.contains("write-protected"), "{said}");
        return;
    }
    // As root, the child becomes another user.
    let w = &locals()[0];
    w.file("d/a", "old");
    w.file("sticky/a", "old");
    w.file("open/a", "old");
    for (name, mode) in [("d", 0o777), ("sticky", 0o1777), ("open", 0o777)] {
        fs::set_permissions(w.disk(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    for (name, mode) in [("d/a", 0o644), ("sticky/a", 0o666), ("open/a", 0o666)] {
        fs::set_permissions(w.disk(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let user = as_another_user(w);
    for (name, text) in [
        ("d/a", "write-protected"),
        ("sticky/a", "belongs to user 0"),
        ("open/a", "belongs to user 0"),
    ] {
        let said = child(&user, &w.disk(name));
        assert!(said.contains("ERROR PermissionDenied") && said.contains(text), "{name} {said}");
        only(w, name.split('/').next().unwrap(), "a", "old");
    }
    let said = child(&user, &w.disk("fresh/a"));
    assert!(said.contains("ERROR PermissionDenied") && said.contains("cannot be made"), "{said}");
}

#[tokio::test]
async fn memory_fails_when_it_is_told_to_and_only_then() {
    let memory = Memory::with_files([("/w/a", "old")]).unwrap();
    let path = haft_types::HostPath::new(b"/w/a", haft_types::Style::Posix).unwrap();
    let at = memory.fs().locate(&path, Follow::Yes).await.unwrap();
    memory.fail_next(FsOp::Write, io::Error::from_raw_os_error(28));
    memory.fail_next(FsOp::Read, io::ErrorKind::TimedOut.into());
    let error = memory.fs().write(&at, "new".into(), anyhow()).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(error.to_string().contains("/w/a: cannot be written: No space left"), "{error}");
    assert_eq!(memory.content("/w/a").unwrap(), "old");
    assert_eq!(memory.fs().read(&at, 0, 9).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(memory.fs().read(&at, 0, 9).await.unwrap(), "old");
    memory.fs().write(&at, "new".into(), anyhow()).await.unwrap();
    assert_eq!(memory.content("/w/a").unwrap(), "new");
}

#[tokio::test]
async fn memory_has_a_windows_form() {
    let memory = Memory::with_style(haft_types::Style::Windows);
    memory.add_file("C:\\Work\\Read.me", "x").unwrap();
    memory.add_link("C:\\Work\\link", "..\\work\\read.ME").unwrap();
    memory.add_link("C:\\far", "d:/other/file").unwrap();
    memory.add_file("D:\\Other\\File", "y").unwrap();
    let find = async |text: &str| {
        let path = haft_types::HostPath::root(memory.style()).join(text).unwrap();
        let at = memory.fs().locate(&path, Follow::Yes).await.unwrap();
        (at.real.text().into_owned(), memory.fs().read(&at, 0, 9).await.unwrap())
    };
    assert_eq!(find("c:/WORK/LINK").await, ("C:\\Work\\Read.me".to_owned(), "x".into()));
    assert_eq!(find("far").await, ("D:\\Other\\File".to_owned(), "y".into()));
}

#[test]
fn a_file_that_is_mounted_by_itself_is_told_at_once() {
    let w = &locals()[0];
    w.file("a", "old");
    w.file("source", "mounted");
    let mount =
        format!("mount --bind '{}' '{}'", w.disk("source").display(), w.disk("a").display());
    if !machine::may_mount("-m", &mount) {
        return;
    }
    let test = "files::faults::child_writes_a_mebibyte";
    let stage = format!(
        "exec unshare -m sh -c \"{mount}; \
         exec \\\"$0\\\" {test} --exact --ignored --nocapture\" \"$0\""
    );
    let said = child_of(test, &stage, &w.disk("a"));
    assert!(
        said.contains("ERROR Unsupported") && said.contains("mounted there by itself"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(w.disk("source")).unwrap(), "mounted");
    assert_eq!(fs::read_dir(w.disk(".")).unwrap().count(), 2, "something was left");
}

#[test]
fn a_folder_that_takes_no_file_is_told_as_the_cause() {
    if !machine::is_root("only root can write as somebody else here") {
        return;
    }
    let w = &locals()[0];
    w.file("closed/own", "old");
    let user = as_another_user(w);
    std::os::unix::fs::chown(w.disk("closed/own"), Some(USER), Some(USER)).unwrap();
    let said = child(&user, &w.disk("closed/own"));
    assert!(
        said.contains("ERROR PermissionDenied") && said.contains("its folder takes no"),
        "{said}"
    );
    // Its own file, with a group that it is not in.
    w.file("open/shared", "old");
    std::os::unix::fs::chown(w.disk("open"), Some(USER), Some(USER)).unwrap();
    std::os::unix::fs::chown(w.disk("open/shared"), Some(USER), Some(1)).unwrap();
    let said = child(&user, &w.disk("open/shared"));
    assert!(said.contains("as a member of that group"), "{said}");
}
