//! A write in two steps: staged, nobody sees it; dropped, nothing of it is left; placed, it is what
//! a write in one step is.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use bytes::Bytes;
use haft_host::{Expect, FsOp, Host, Local, Memory, Staged, WriteHow};
use haft_testkit::machine::peak;
use haft_types::Follow;

use super::{World, anyhow, local, locals, worlds};

async fn stage(w: &World, name: &str, data: &str, how: WriteHow) -> io::Result<Box<dyn Staged>> {
    let at = w.locate(name).await?;
    w.fs().stage(&at, Bytes::copy_from_slice(data.as_bytes()), how).await
}

async fn seen(w: &World, name: &str) -> WriteHow {
    let expect = w.at(name).await.stamp.map_or(Expect::Absent, Expect::Stamp);
    WriteHow { expect, ..anyhow() }
}

/// Waits until a folder holds only these names: what is dropped goes on another thread.
async fn come_to(w: &World, folder: &str, wanted: &[&str]) {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let names = w.names(folder).await;
        if names == wanted || Instant::now() > end {
            assert_eq!(names, wanted, "{}", w.name);
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nobody_sees_what_is_staged_and_placed_it_is_what_a_write_leaves() {
    for w in worlds() {
        w.file("d/a", "old");
        let how = seen(&w, "d/a").await;
        let changed = stage(&w, "d/a", "new", how).await.unwrap();
        let made = stage(&w, "e/f/b", "made", seen(&w, "e/f/b").await).await.unwrap();
        assert_eq!(w.read("d/a").await.unwrap(), "old", "{}", w.name);
        assert!(w.read("e/f/b").await.is_err(), "{}", w.name);

        let written = changed.place().await.unwrap();
        assert_eq!((w.read("d/a").await.unwrap(), written.made.len()), ("new".to_owned(), 0));
        assert_eq!(written.at.stamp, w.at("d/a").await.stamp, "{}", w.name);
        let written = made.place().await.unwrap();
        assert_eq!(written.made, [w.path("e"), w.path("e/f")], "{}", w.name);
        assert_eq!(w.read("e/f/b").await.unwrap(), "made");
        for (folder, wanted) in [(".", ["d", "e"].as_slice()), ("d", &["a"]), ("e/f", &["b"])] {
            assert_eq!(w.names(folder).await, wanted, "{}", w.name);
        }
    }
}

#[tokio::test]
async fn dropped_or_discarded_nothing_is_left() {
    for w in worlds() {
        w.file("d/a", "old");
        for discards in [true, false] {
            let how = seen(&w, "d/a").await;
            let both = [
                stage(&w, "d/a", "new", how).await.unwrap(),
                stage(&w, "made/for/it", "new", anyhow()).await.unwrap(),
            ];
            for staged in both {
                if discards {
                    staged.discard().await;
                } else {
                    drop(staged);
                }
            }
            if discards {
                assert_eq!(w.names(".").await, ["d"], "{}", w.name);
                assert_eq!(w.names("d").await, ["a"], "{}", w.name);
            }
            come_to(&w, ".", &["d"]).await;
            come_to(&w, "d", &["a"]).await;
            assert_eq!(w.read("d/a").await.unwrap(), "old");
        }
    }
}

#[tokio::test]
async fn a_stage_whose_future_is_dropped_goes_too() {
    for w in locals() {
        let at = w.at("made/by/it").await;
        let data = Bytes::from(vec![b'x'; 4 << 20]);
        {
            let staging = w.fs().stage(&at, data, anyhow());
            let first = tokio::time::timeout(Duration::from_micros(1), staging).await;
            assert!(first.is_err(), "four megabytes were on the disk at once");
        }
        come_to(&w, ".", &[]).await;
    }
}

#[tokio::test]
async fn what_others_did_since_is_refused_and_stays() {
    for w in worlds() {
        for (file, folder) in [("d/a", "d"), ("e/b", "e")] {
            w.folder(folder);
            let was_there = file == "d/a";
            if was_there {
                w.file(file, "old");
            }
            let how = seen(&w, file).await;
            let staged = stage(&w, file, "ours", how).await.unwrap();
            w.write(file, "theirs", WriteHow::default()).await.unwrap();
            let error = staged.place().await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{}: {error}", w.name);
            assert_eq!(w.read(file).await.unwrap(), "theirs", "{}", w.name);
            assert_eq!(w.names(folder).await.len(), 1, "{}: {:?}", w.name, w.names(folder).await);
        }
        // Folders that were made for it go as well where it is refused.
        let staged = stage(&w, "n/o/c", "ours", seen(&w, "n/o/c").await).await.unwrap();
        w.file("n/o/c", "theirs");
        assert!(staged.place().await.is_err());
        assert_eq!(w.names("n/o").await, ["c"], "{}", w.name);
        // One that another put something else into stays.
        let staged = stage(&w, "p/q/c", "ours", seen(&w, "p/q/c").await).await.unwrap();
        w.file("p/other", "theirs");
        staged.discard().await;
        assert_eq!(w.names("p").await, ["other"], "{}", w.name);
    }
}

#[tokio::test]
async fn rights_and_owner_are_those_of_the_old_file() {
    for w in locals() {
        w.file("a", "old");
        fs::set_permissions(w.disk("a"), fs::Permissions::from_mode(0o640)).unwrap();
        let staged = stage(&w, "a", "new", seen(&w, "a").await).await.unwrap();
        let before = fs::metadata(w.disk("a")).unwrap();
        staged.place().await.unwrap();
        let after = fs::metadata(w.disk("a")).unwrap();
        assert_ne!(before.ino(), after.ino());
        assert_eq!((before.mode(), before.uid()), (after.mode(), after.uid()), "{}", w.name);
    }
}

#[tokio::test]
async fn many_wait_at_once_each_for_its_own_file() {
    let ledger = tempfile::tempdir().unwrap();
    let w = local(haft_host::Lookup::probed());
    let host = Local::new().with_ledger(ledger.path().join("writing"));
    let mut waiting = Vec::new();
    for number in 0..50 {
        let at = host.fs().locate(&w.path(&format!("new/{number:02}")), Follow::Yes).await.unwrap();
        waiting.push(host.fs().stage(&at, number.to_string().into(), anyhow()).await.unwrap());
    }
    for (number, staged) in waiting.into_iter().enumerate() {
        if number % 2 == 0 {
            staged.place().await.unwrap();
        } else {
            staged.discard().await;
        }
    }
    let wanted: Vec<_> = (0..50).step_by(2).map(|number| format!("{number:02}")).collect();
    assert_eq!(w.names("new").await, wanted);
    assert_eq!(w.read("new/48").await.unwrap(), "48");
}

#[tokio::test]
async fn memory_can_be_told_to_fail_at_either_step() {
    let memory = Memory::with_files([("/w/a", "old")]).unwrap();
    let path = haft_types::HostPath::new(b"/w/a", haft_types::Style::Posix).unwrap();
    let at = memory.fs().locate(&path, Follow::Yes).await.unwrap();
    memory.fail_next(FsOp::Place, io::ErrorKind::StorageFull.into());
    let staged = memory.fs().stage(&at, "new".into(), anyhow()).await.unwrap();
    let error = staged.place().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(error.to_string().contains("/w/a: cannot be written"), "{error}");
    assert_eq!(memory.content("/w/a").unwrap(), "old");
}

/// Content that comes in odd pieces, most of it nothing but zeros, and may fail at its end.
struct Pieces {
    left: usize,
    fails: bool,
}

impl Pieces {
    const LEN: usize = 200 << 20;

    fn new(fails: bool) -> Self {
        Self { left: Self::LEN, fails }
    }
}

impl io::Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && self.fails {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the source is damaged"));
        }
        // Marks at the start and in the middle; the rest is zeros.
        let got = self.left.min(into.len()).min(100_003);
        into[..got].fill(0);
        let here = Self::LEN - self.left;
        for mark in [0, Self::LEN / 2] {
            if let Some(byte) = mark.checked_sub(here).and_then(|place| into[..got].get_mut(place))
            {
                *byte = b'x';
            }
        }
        self.left -= got;
        Ok(got)
    }
}

async fn hash(w: &World, name: &str) -> blake3::Hash {
    let (at, mut hasher, mut offset) = (w.at(name).await, blake3::Hasher::new(), 0);
    loop {
        let piece = w.fs().read(&at, offset, 1 << 20).await.unwrap();
        if piece.is_empty() {
            return hasher.finalize();
        }
        hasher.update(&piece);
        offset += piece.len() as u64;
    }
}

#[tokio::test]
async fn content_that_comes_in_pieces_is_written_without_being_held() {
    let mut wanted = blake3::Hasher::new();
    wanted.update_reader(Pieces::new(false)).unwrap();
    let wanted = wanted.finalize();
    // The one in memory holds what it has by its nature.
    for w in locals() {
        w.file("d/a", "old");
        fs::set_permissions(w.disk("d/a"), fs::Permissions::from_mode(0o640)).unwrap();
        let (at, how, before) = (w.at("d/a").await, seen(&w, "d/a").await, peak());
        let from = Box::new(Pieces::new(false));
        let staged = w.fs().stage_from(&at, from, how).await.unwrap();
        assert_eq!(w.read("d/a").await.unwrap(), "old", "{}", w.name);
        staged.place().await.unwrap();
        let grown = peak() - before;
        assert!(grown < 8 << 20, "{}: {grown} bytes more", w.name);
        let data = fs::metadata(w.disk("d/a")).unwrap();
        assert_eq!((data.len(), data.mode() & 0o777), (Pieces::LEN as u64, 0o640));
        assert!(data.blocks() * 512 < 16 << 20, "{}: {} blocks", w.name, data.blocks());
        assert_eq!(hash(&w, "d/a").await, wanted, "{}", w.name);
    }
}

#[tokio::test]
async fn pieces_come_to_every_host_and_a_source_that_fails_leaves_nothing() {
    for w in worlds() {
        w.file("a", "old");
        let how = seen(&w, "a").await;
        let from = Box::new(io::Cursor::new("new\0\0"));
        let staged = w.fs().stage_from(&w.at("a").await, from, how).await.unwrap();
        staged.place().await.unwrap();
        assert_eq!(w.read("a").await.unwrap(), "new\0\0", "{}", w.name);
        let from = Box::new(Pieces { left: 300_000, fails: true });
        let failed = w.fs().stage_from(&w.at("made/for/it").await, from, anyhow()).await;
        let error = failed.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{}: {error}", w.name);
        assert!(error.to_string().contains("the source is damaged"), "{}: {error}", w.name);
        assert_eq!(w.names(".").await, ["a"], "{}", w.name);
    }
}

/// Where the child of the test below works.
const FOLDER: &str = "HAFT_TEST_TARGET";

/// Not a test of its own: stages a write and is killed before it is placed.
#[tokio::test]
async fn child_is_killed_with_a_staged_write() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let host = Local::new().with_ledger(folder.join("ledger"));
    let path = Local::path(&folder.join("work/made/for/it")).unwrap();
    let at = host.fs().locate(&path, Follow::Yes).await.unwrap();
    let _staged = host.fs().stage(&at, "half".into(), anyhow()).await.unwrap();
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn what_a_killed_process_had_staged_goes_at_the_next_start() {
    let w = local(haft_host::Lookup::probed());
    w.folder("work");
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["files::staged::child_is_killed_with_a_staged_write", "--exact"])
        .env(FOLDER, w.disk("."))
        .output()
        .unwrap();
    assert!(!output.status.success(), "{output:?}");
    let left: Vec<_> = fs::read_dir(w.disk("work/made/for")).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "it waited under another name: {left:?}");
    assert_ne!(left[0].file_name(), "it");
    assert_eq!(Local::recover(&w.disk("ledger")).unwrap(), 3, "a file and two folders");
    assert_eq!(fs::read_dir(w.disk("work")).unwrap().count(), 0);
}
