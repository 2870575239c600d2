//! Other programs write the same file at the same time: what they wrote is never lost, and whoever
//! watches the folder hears last that the file is there.

use std::{
    fs,
    io::ErrorKind,
    mem::MaybeUninit,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use haft_host::{Expect, WriteHow};
use haft_testkit::machine::times;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use super::{World, local, locals};

/// Reads the file, and writes it back with one more `x` if nobody changed it since.
async fn add_one(w: &World) -> bool {
    let Ok(at) = w.locate("d/f").await else { return false };
    let (Some(stamp), Ok(data)) = (at.stamp, w.fs().read(&at, 0, 1000).await) else { return false };
    let data = [&*data, b"x"].concat();
    let how = WriteHow { expect: Expect::Stamp(stamp), ..WriteHow::default() };
    match w.fs().write(&at, data.into(), how).await {
        Ok(_) => true,
        Err(error) => {
            let fits = matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::ResourceBusy);
            assert!(fits, "{error}");
            false
        }
    }
}

/// Runs `other` over and over while the file is changed by this host; gives how often that worked.
///
/// On a busy machine this host may come late: `other` goes on until it worked once, within bounds.
fn while_adding(w: &World, other: impl Fn(u64) + Sync) -> u64 {
    let (done, added) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
            while !done.load(Ordering::Relaxed) {
                added.fetch_add(u64::from(runtime.block_on(add_one(w))), Ordering::Relaxed);
            }
        });
        let end = super::End(&done);
        let rounds = times(2000);
        let late = |n: &u64| *n <= rounds || added.load(Ordering::Relaxed) == 0;
        (1..=20 * rounds).take_while(late).for_each(other);
        drop(end);
    });
    added.into_inner()
}

/// Waits until the file begins with these bytes; on the way back, others may stand there. Of what
/// two wrote at the same instant as this host, one is kept apart.
fn begins(w: &World, wanted: &str) {
    let end = Instant::now() + Duration::from_secs(2);
    loop {
        let found = fs::read_to_string(w.disk("d/f")).unwrap_or_default();
        if found.starts_with(wanted) || kept_apart(w).iter().any(|kept| kept.starts_with(wanted)) {
            return;
        }
        assert!(Instant::now() < end, "{wanted:?} was lost: {found:?} stands there");
    }
}

fn kept_apart(w: &World) -> Vec<String> {
    let names = fs::read_dir(w.disk("d")).unwrap().flatten();
    let kept = names.filter(|name| name.file_name().as_encoded_bytes().starts_with(b".haft-kept-"));
    kept.filter_map(|name| fs::read_to_string(name.path()).ok()).collect()
}

fn nothing_else_is_left(w: &World) {
    let names = fs::read_dir(w.disk("d")).unwrap().count();
    assert_eq!(names, 1 + kept_apart(w).len(), "{}", w.name);
}

#[test]
fn what_another_program_puts_there_by_a_rename_is_never_lost() {
    for w in locals() {
        w.file("d/f", "0 ");
        let added = while_adding(&w, |n| {
            // At ever other instants of a write, some of which leave this host the time for one.
            thread::sleep(Duration::from_micros(n * 37 % 1500));
            fs::write(w.disk("theirs"), format!("{n} ")).unwrap();
            fs::rename(w.disk("theirs"), w.disk("d/f")).unwrap();
            begins(&w, &format!("{n} "));
        });
        assert!(added > 0, "{}: nothing was written between", w.name);
        nothing_else_is_left(&w);
    }
}

#[test]
fn what_another_program_writes_into_the_file_is_never_lost() {
    use std::os::unix::fs::FileExt;
    for w in locals() {
        w.file("d/f", "0000000 ");
        let added = while_adding(&w, |n| {
            // As above.
            thread::sleep(Duration::from_micros(n * 37 % 1500));
            let text = format!("{n:07} ");
            // A file that is replaced after it was opened is lost to any program.
            let written = loop {
                let file = fs::File::options().write(true).open(w.disk("d/f")).unwrap();
                file.write_all_at(text.as_bytes(), 0).unwrap();
                if same(&w, &file) {
                    break file;
                }
            };
            begins(&w, &text);
            drop(written);
        });
        assert!(added > 0, "{}: nothing was written between", w.name);
        nothing_else_is_left(&w);
    }
}

fn same(w: &World, file: &fs::File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let named = fs::metadata(w.disk("d/f")).unwrap();
    named.ino() == file.metadata().unwrap().ino()
}

#[test]
fn a_watcher_hears_last_that_the_file_is_there() {
    let w = local(haft_host::Lookup::probed());
    w.file("d/f", "old");
    let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    let wanted = WatchFlags::MOVE | WatchFlags::CREATE | WatchFlags::DELETE;
    inotify::add_watch(&watch, w.disk("d"), wanted).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    assert!(runtime.block_on(add_one(&w)));
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(watch, &mut buffer);
    let mut last = None;
    while let Ok(event) = events.next() {
        if event.file_name().is_some_and(|name| name.to_bytes() == b"f") {
            last = Some(event.events());
        }
    }
    assert_eq!(last, Some(ReadFlags::MOVED_TO));
}
