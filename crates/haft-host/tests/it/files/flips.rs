//! A thread flips links and folders while files are looked up and used: what is touched is always
//! what was judged.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use haft_host::ListHow;
use haft_testkit::machine::times;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{End, World, anyhow, locals};

pub const TIMES: u64 = 2000;

/// Builds `inside` and `outside` with one file each, and the two things that take turns.
pub fn build(w: &World) {
    w.file("inside/target/file", "inside");
    w.file("outside/file", "outside");
    symlink("target", w.disk("inside/here")).unwrap();
    symlink("../outside", w.disk("inside/there")).unwrap();
    symlink("target/file", w.disk("inside/in-file")).unwrap();
    symlink("../outside/file", w.disk("inside/out-file")).unwrap();
}

/// Exchanges two pairs of names without end, until the work is done.
pub fn while_flipping(w: &World, pairs: &[(&str, &str)], work: impl FnOnce() + Send) {
    let pairs: Vec<_> = pairs.iter().map(|(a, b)| (w.disk(a), w.disk(b))).collect();
    let flip = |a: &Path, b: &Path| renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
    while_turning(|| pairs.iter().for_each(|(a, b)| flip(a, b)), work);
}

/// Turns something without end, until the work is done.
pub fn while_turning(turn: impl Fn() + Send + Sync, work: impl FnOnce() + Send) {
    let (done, turns) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                turn();
                turns.fetch_add(1, Ordering::Relaxed);
            }
        });
        scope.spawn(|| {
            // Whatever the work finds, the other thread is told to end.
            let end = End(&done);
            work();
            drop(end);
        });
    });
    assert!(turns.load(Ordering::Relaxed) > 100, "nothing was flipped meanwhile");
}

pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work)
}

pub const LINKS: [(&str, &str); 2] =
    [("inside/here", "inside/there"), ("inside/in-file", "inside/out-file")];

#[test]
fn reads_give_what_was_judged() {
    for w in locals() {
        build(&w);
        let (mut inside, mut outside) = (0, 0);
        while_flipping(&w, &LINKS, || {
            block_on(async {
                for n in 0..times(TIMES) {
                    let name = ["inside/here/file", "inside/in-file"][usize::from(n % 2 == 0)];
                    let at = w.at(name).await;
                    let data = w.fs().read(&at, 0, 100).await.unwrap();
                    if at.real.is_within(&w.path("inside")) {
                        assert_eq!(data, "inside", "{}", w.name);
                        inside += 1;
                    } else {
                        assert_eq!((at.real, &*data), (w.path("outside/file"), &b"outside"[..]));
                        outside += 1;
                    }
                }
            });
        });
        assert!(inside > 0 && outside > 0, "{}: {inside} and {outside}", w.name);
    }
}

#[test]
fn folders_that_take_the_place_of_links_change_nothing() {
    for w in locals() {
        build(&w);
        // Now a folder, now a link to the folder outside.
        let pairs = [("inside/target", "inside/there")];
        let (mut inside, mut outside) = (0, 0);
        while_flipping(&w, &pairs, || {
            block_on(async {
                for _ in 0..times(TIMES) {
                    let Ok(at) = w.locate("inside/target/file").await else { continue };
                    let Ok(data) = w.fs().read(&at, 0, 100).await else { continue };
                    let is_inside = at.real.is_within(&w.path("inside"));
                    let judged = if is_inside { "inside" } else { "outside" };
                    assert_eq!(data, judged, "{} {}", w.name, at.real);
                    *(if is_inside { &mut inside } else { &mut outside }) += 1;
                }
            });
        });
        assert!(inside > 0 && outside > 0, "{}: {inside} and {outside}", w.name);
    }
}

#[test]
fn writes_land_where_they_were_judged() {
    for w in locals() {
        build(&w);
        while_flipping(&w, &LINKS, || {
            block_on(async {
                let mut written = 0;
                for n in 0..times(TIMES) {
                    let name = ["inside/here/file", "inside/in-file"][usize::from(n % 2 == 0)];
                    let at = w.at(name).await;
                    if !at.real.is_within(&w.path("inside")) {
                        continue;
                    }
                    w.fs().write(&at, "inside".into(), anyhow()).await.unwrap();
                    written += 1;
                    let outside = fs::read_to_string(w.disk("outside/file")).unwrap();
                    assert_eq!(outside, "outside", "{}", w.name);
                }
                assert!(written > 0, "{}", w.name);
            });
        });
        assert_eq!(fs::read_dir(w.disk("outside")).unwrap().count(), 1, "{}", w.name);
        assert_eq!(fs::read_dir(w.disk("inside/target")).unwrap().count(), 1, "{}", w.name);
    }
}

#[test]
fn lists_and_removals_stay_where_they_were_judged() {
    for w in locals() {
        build(&w);
        w.file("outside/precious", "x");
        let mut listed = [0; 2];
        while_flipping(&w, &LINKS[..1], || {
            block_on(async {
                let how = ListHow { limit: 10, stat: true };
                for _ in 0..times(TIMES) {
                    let at = w.at("inside/here").await;
                    let listing = w.fs().list(&at, how).await.unwrap();
                    let names = if at.real == w.path("inside/target") { 1 } else { 2 };
                    assert_eq!(listing.total, names, "{} {}", w.name, at.real);
                    listed[usize::from(names == 2)] += 1;
                }
            });
        });
        let mut removed = 0;
        while_flipping(&w, &LINKS[..1], || {
            block_on(async {
                for _ in 0..times(TIMES) {
                    fs::write(w.disk("inside/target/precious"), "bait").unwrap();
                    let at = w.at("inside/here/precious").await;
                    if at.real.is_within(&w.path("inside")) {
                        w.fs().remove(&at).await.unwrap();
                        removed += 1;
                    }
                    assert!(w.disk("outside/precious").exists(), "{}", w.name);
                }
            });
        });
        assert!(removed > 0 && !listed.contains(&0), "{}: {listed:?} {removed}", w.name);
    }
}
