//! What only a disk has: rights, owners, attributes, devices, leftovers.

use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::{MetadataExt, PermissionsExt},
    process::Command,
};

use haft_host::{Host, Local, WriteHow};
use haft_testkit::machine;
use haft_types::{Follow, HostPath, Style};

use super::{
    anyhow,
    faults::{USER, as_another_user, child},
    locals,
};

fn path(text: &str) -> HostPath {
    HostPath::new(text.as_bytes(), Style::Posix).unwrap()
}

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[tokio::test]
async fn devices_and_links_of_processes_are_refused() {
    for w in locals() {
        let at = w.fs().locate(&path("/dev/zero"), Follow::Yes).await.unwrap();
        let error = w.fs().read(&at, 0, 10).await.unwrap_err().to_string();
        assert!(error.contains("is a device"), "{error}");
        let error = w.fs().write(&at, "x".into(), anyhow()).await.unwrap_err().to_string();
        assert!(error.contains("is a device"), "{error}");
        let _open = fs::File::open("/dev/null").unwrap();
        for magic in ["/proc/self/exe", "/proc/self/cwd/x", "/proc/self/root/etc", "/dev/fd/0"] {
            let error = w.fs().locate(&path(magic), Follow::Yes).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{} {magic}", w.name);
            assert!(error.to_string().contains("not to a path"), "{error}");
        }
        let own = w.fs().locate(&path("/proc/self/exe"), Follow::No).await.unwrap();
        assert!(own.real.text().starts_with("/proc/"), "{}", own.real);
        let text = w.fs().locate(&path("/proc/self/status"), Follow::Yes).await.unwrap();
        let data = w.fs().read(&text, 0, 1 << 20).await.unwrap();
        assert!(data.starts_with(b"Name:") && text.size() == 0, "{}", w.name);
    }
}

#[tokio::test]
async fn a_growing_file_is_read_to_where_it_is() {
    use std::io::Write;
    for w in locals() {
        w.file("log", "one\n");
        let at = w.at("log").await;
        let mut file = fs::OpenOptions::new().append(true).open(w.disk("log")).unwrap();
        file.write_all(&b"more\n".repeat(40_000)).unwrap();
        assert_eq!(w.fs().read(&at, 0, usize::MAX).await.unwrap().len(), 200_004);
        assert_eq!(w.fs().read(&at, 4, 5).await.unwrap(), "more\n");
        file.set_len(2).unwrap();
        assert_eq!(w.fs().read(&at, 0, 100).await.unwrap(), "on", "{}", w.name);
    }
}

#[tokio::test]
async fn mode_owner_and_attributes_are_kept() {
    let root = machine::is_root("only root can give a file to another user");
    for w in locals() {
        w.file("tool", "old");
        let disk = w.disk("tool");
        fs::set_permissions(&disk, fs::Permissions::from_mode(0o751)).unwrap();
        if root {
            std::os::unix::fs::chown(&disk, Some(1234), Some(4321)).unwrap();
        }
        let value = b"kept";
        let flags = rustix::fs::XattrFlags::empty();
        let attribute = rustix::fs::setxattr(&disk, "user.haft-test", value, flags).is_ok();
        w.write("tool", "new", anyhow()).await.unwrap();
        let meta = fs::metadata(&disk).unwrap();
        assert_eq!(meta.mode() & 0o7777, 0o751, "{}", w.name);
        if root {
            assert_eq!((meta.uid(), meta.gid()), (1234, 4321), "{}", w.name);
        }
        if attribute {
            let mut got = [0; 16];
            let len = rustix::fs::getxattr(&disk, "user.haft-test", &mut got[..]).unwrap();
            assert_eq!(&got[..len], value, "{}", w.name);
        } else {
            machine::left_out("the file system keeps no attributes of users");
        }
        let umask = {
            w.file("plain", "");
            0o666 & !mode(&w.disk("plain"))
        };
        w.write("new", "x", anyhow()).await.unwrap();
        assert_eq!(mode(&w.disk("new")), 0o666 & !umask, "{}", w.name);
        let secret = WriteHow { mode: 0o600, ..anyhow() };
        w.write("secret", "x", secret).await.unwrap();
        assert_eq!(mode(&w.disk("secret")), 0o600, "{}", w.name);
    }
}

#[tokio::test]
async fn folders_that_may_not_be_read_can_be_written_to() {
    for w in locals() {
        w.file("blind/a", "old");
        fs::set_permissions(w.disk("blind"), fs::Permissions::from_mode(0o300)).unwrap();
        w.write("blind/a", "new", anyhow()).await.unwrap();
        assert_eq!(w.read("blind/a").await.unwrap(), "new", "{}", w.name);
        // Root may read every folder, so there somebody else writes.
        if rustix::process::geteuid().is_root() {
            let user = as_another_user(&w);
            for name in ["blind", "blind/a"] {
                std::os::unix::fs::chown(w.disk(name), Some(USER), Some(USER)).unwrap();
            }
            let said = child(&user, &w.disk("blind/a"));
            assert!(said.contains("WROTE"), "{}: {said}", w.name);
            assert_eq!(fs::metadata(w.disk("blind/a")).unwrap().len(), 1 << 20, "{}", w.name);
        }
        fs::set_permissions(w.disk("blind"), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(w.names("blind").await, ["a"]);
    }
}

#[tokio::test]
async fn links_of_strangers_in_shared_folders_are_not_followed() {
    if !machine::is_root("only root can give a link to another user") {
        return;
    }
    for w in locals() {
        w.file("mine/file", "x");
        w.folder("shared");
        fs::set_permissions(w.disk("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
        w.link("shared/own", "../mine");
        w.link("shared/trap", "../mine");
        std::os::unix::fs::lchown(w.disk("shared/trap"), Some(1234), None).unwrap();
        assert_eq!(w.read("shared/own/file").await.unwrap(), "x", "{}", w.name);
        let error = w.locate("shared/trap/file").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{}", w.name);
        assert!(error.to_string().contains("another user"), "{error}");
    }
}

#[tokio::test]
async fn leftovers_of_dead_processes_go_and_others_stay() {
    for w in locals() {
        w.write("sub/a", "1", anyhow()).await.unwrap();
        // The name that a write of this process has, with the id of a process that has ended.
        let place = place_of_this_process(&w.disk("probe"));
        let mut child = Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        let name = |id: u32, place: &str| format!(".haft-{id}-{place}-0123456789abcdef.tmp");
        let (gone, alive) = (name(dead, &place), name(std::process::id(), &place));
        let (foreign, old) = (name(dead, "ffffffff"), name(dead, "eeeeeeee"));
        let all = [&*gone, &*alive, &*foreign, &*old, ".haft-x.tmp", "note.tmp"];
        for name in all {
            w.file(&format!("sub/{name}"), "x");
        }
        let hours = std::time::SystemTime::now() - std::time::Duration::from_hours(2);
        let file = fs::File::options().write(true).open(w.disk("sub").join(&old)).unwrap();
        file.set_modified(hours).unwrap();
        let next = Local::new();
        let at = next.fs().locate(&w.path("sub/a"), Follow::Yes).await.unwrap();
        next.fs().write(&at, "2".into(), anyhow()).await.unwrap();
        let mut kept =
            vec![foreign, alive, ".haft-x.tmp".to_owned(), "a".into(), "note.tmp".into()];
        kept.sort();
        assert_eq!(w.names("sub").await, kept, "{}", w.name);
        w.file(&format!("sub/{gone}"), "x");
        let folder = next.fs().locate(&w.path("sub"), Follow::Yes).await.unwrap();
        assert_eq!(next.sweep(&folder).unwrap(), 1);
    }
}

/// Learns the middle of temporary names from one that is caught while a write is on its way.
fn place_of_this_process(folder: &std::path::Path) -> String {
    fs::create_dir_all(folder).unwrap();
    let host = Local::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let target = Local::path(&folder.join("a")).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                runtime.block_on(async {
                    let at = host.fs().locate(&target, Follow::Yes).await.unwrap();
                    host.fs().write(&at, vec![0; 100_000].into(), anyhow()).await.unwrap();
                });
            }
        });
        let found = loop {
            let mut names = fs::read_dir(folder).unwrap().flatten();
            let name = names.find_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                Some(name.strip_prefix(".haft-")?.split('-').nth(1)?.to_owned())
            });
            if let Some(name) = name {
                break name;
            }
        };
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        found
    });
    std::thread::spawn(move || drop(runtime)).join().unwrap();
    found
}

#[tokio::test]
async fn a_renewed_path_is_what_has_its_names_now_and_never_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    std::fs::write(base.join("secret"), "secret").unwrap();
    std::fs::write(base.join("a"), "old").unwrap();
    let local = haft_host::Local::new();
    let fs = haft_host::Host::fs(&local);
    let locate = async |name: &str| {
        let path = haft_host::Local::path(&base.join(name)).unwrap();
        fs.locate(&path, haft_types::Follow::Yes).await.unwrap()
    };
    let (file, deep) = (locate("a").await, locate("new/b").await);
    std::fs::write(base.join("tmp"), "newer").unwrap();
    std::fs::rename(base.join("tmp"), base.join("a")).unwrap();
    let now = fs.renew(&file).await.unwrap();
    assert_eq!(&fs.read(&now, 0, 9).await.unwrap()[..], b"newer");
    assert_eq!(now.real, file.real);
    std::fs::remove_file(base.join("a")).unwrap();
    assert!(fs.renew(&file).await.unwrap().stamp.is_none());
    std::os::unix::fs::symlink("secret", base.join("a")).unwrap();
    let error = fs.renew(&file).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ResourceBusy, "{error}");
    assert!(fs.renew(&deep).await.unwrap().stamp.is_none());
    std::os::unix::fs::symlink(".", base.join("new")).unwrap();
    std::fs::write(base.join("b"), "elsewhere").unwrap();
    let error = fs.renew(&deep).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ResourceBusy, "{error}");
    std::fs::remove_file(base.join("new")).unwrap();
    std::fs::create_dir(base.join("new")).unwrap();
    std::fs::write(base.join("new/b"), "there").unwrap();
    let now = fs.renew(&deep).await.unwrap();
    assert_eq!(&fs.read(&now, 0, 9).await.unwrap()[..], b"there");
}
