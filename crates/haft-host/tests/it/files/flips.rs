//! A thread flips links and folders while files are looked up, used and searched: what is touched is
//! always what was judged, nothing from outside comes in, and nothing from inside gets out.

use std::{
    fs,
    io::ErrorKind,
    ops::ControlFlow,
    os::unix::fs::symlink,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use haft_host::{
    Expect, FileKind, FindQuery, FsSearch, GrepQuery, Host as _, ListHow, Local, Lookup, Search,
    Walk, WriteHow,
};
use haft_testkit::machine::times;
use haft_types::{EntryKind, Follow, HostPath};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tokio_util::sync::CancellationToken;

use super::{End, World, anyhow, locals};

const TIMES: u64 = 2000;

/// Builds `inside` and `outside` with one file each, and the two things that take turns.
fn build(w: &World) {
    w.file("inside/target/file", "inside");
    w.file("outside/file", "outside");
    symlink("target", w.disk("inside/here")).unwrap();
    symlink("../outside", w.disk("inside/there")).unwrap();
    symlink("target/file", w.disk("inside/in-file")).unwrap();
    symlink("../outside/file", w.disk("inside/out-file")).unwrap();
}

/// Exchanges two pairs of names without end, until the work is done.
fn while_flipping(w: &World, pairs: &[(&str, &str)], work: impl FnOnce() + Send) {
    let pairs: Vec<_> = pairs.iter().map(|(a, b)| (w.disk(a), w.disk(b))).collect();
    let flip = |a: &Path, b: &Path| renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
    while_turning(|| pairs.iter().for_each(|(a, b)| flip(a, b)), work);
}

/// Turns something without end, until the work is done.
fn while_turning(turn: impl Fn() + Send + Sync, work: impl FnOnce() + Send) {
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

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work)
}

const LINKS: [(&str, &str); 2] =
    [("inside/here", "inside/there"), ("inside/in-file", "inside/out-file")];

#[test]
fn reads_give_what_was_judged() {
    for w in locals() {
        build(&w);
        let (mut inside, mut outside) = (0, 0);
        while_flipping(&w, &LINKS, || {
            block_on(async {
                for n in 0.. {
                    if is_enough(n, inside, outside) {
                        break;
                    }
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

/// As many times as are wanted; on a busy machine more, until both were met.
fn is_enough(n: u64, inside: u64, outside: u64) -> bool {
    n >= times(TIMES) && (inside > 0 && outside > 0 || n >= 100 * times(TIMES))
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
                for n in 0.. {
                    if is_enough(n, inside, outside) {
                        break;
                    }
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

/// A folder that takes turns with a link to the folder outside.
const FOLDER: [(&str, &str); 1] = [("inside/target", "inside/there")];

fn is_inside(w: &World, path: &HostPath) -> bool {
    path.is_within(&w.path("inside"))
}

fn names(w: &World, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(w.disk(folder)).unwrap().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn children_are_those_of_the_folder_that_was_judged() {
    for w in locals() {
        build(&w);
        let (mut inside, mut outside) = (0, 0);
        while_flipping(&w, &LINKS[..1], || {
            block_on(async {
                let above = w.at("inside").await;
                for _ in 0..times(TIMES) {
                    let own = w.fs().child(&above, b"here", Follow::No).await.unwrap();
                    assert_eq!(own.kind, FileKind::Entry(EntryKind::Link), "{}", w.name);
                    let folder = w.fs().child(&above, b"here", Follow::Yes).await.unwrap();
                    let file = w.fs().child(&folder, b"file", Follow::Yes).await.unwrap();
                    let data = w.fs().read(&file, 0, 100).await.unwrap();
                    let is_inside = is_inside(&w, &folder.real);
                    assert_eq!(file.real.parent(), Some(folder.real), "{}", w.name);
                    assert_eq!(data, if is_inside { "inside" } else { "outside" }, "{}", w.name);
                    *(if is_inside { &mut inside } else { &mut outside }) += 1;
                }
            });
        });
        assert!(inside > 0 && outside > 0, "{}: {inside} and {outside}", w.name);
    }
}

#[test]
fn what_is_looked_up_anew_stays_where_it_was_judged() {
    for w in locals() {
        build(&w);
        let at = block_on(async { w.at("inside/target/file").await });
        while_flipping(&w, &FOLDER, || {
            block_on(async {
                for _ in 0..times(TIMES) {
                    let now = w.fs().renew(&at).await.unwrap();
                    assert_eq!(now.real, at.real, "{}", w.name);
                    assert_eq!(w.fs().read(&now, 0, 100).await.unwrap(), "inside", "{}", w.name);
                }
            });
        });
    }
}

#[test]
fn a_missing_folder_that_becomes_a_link_leads_nowhere() {
    for w in locals() {
        build(&w);
        let at = block_on(async { w.at("inside/fresh/file").await });
        assert_eq!(at.kind, FileKind::Missing);
        let fresh = w.disk("inside/fresh");
        let (mut missing, mut refused, mut written) = (0, 0, 0);
        let turn = || {
            symlink("../outside", &fresh).unwrap_or_default();
            fs::remove_file(&fresh).unwrap_or_default();
        };
        while_turning(turn, || {
            block_on(async {
                let how = WriteHow { expect: Expect::Absent, ..anyhow() };
                for n in 0.. {
                    // On a busy machine it may take longer until each way was taken.
                    let all = missing > 0 && refused > 0 && written > 0;
                    if n >= times(TIMES / 4) && (all || n >= 100 * times(TIMES / 4)) {
                        break;
                    }
                    match w.fs().renew(&at).await {
                        Ok(now) => {
                            assert_eq!(now.kind, FileKind::Missing, "{}", w.name);
                            missing += 1;
                        }
                        // It may be gone again when it is looked at for what it is.
                        Err(e) => {
                            let fits = [ErrorKind::ResourceBusy, ErrorKind::NotFound];
                            assert!(fits.contains(&e.kind()), "{e}");
                            refused += 1;
                        }
                    }
                    if n % 2 == 0 {
                        // Where it is made at an instant without a link, it is made inside.
                        if w.fs().write(&at, "inside".into(), how.clone()).await.is_ok() {
                            assert_eq!(names(&w, "inside/fresh"), ["file"], "{}", w.name);
                            written += 1;
                        }
                        drop(fs::remove_dir_all(&fresh));
                    }
                    assert_eq!(names(&w, "outside"), ["file"], "{}", w.name);
                }
            });
        });
        assert_eq!(fs::read_to_string(w.disk("outside/file")).unwrap(), "outside", "{}", w.name);
        let all = [missing, refused, written];
        assert!(!all.contains(&0), "{}: not every way was taken: {all:?}", w.name);
    }
}

#[test]
fn renames_stay_where_they_were_judged() {
    for w in locals() {
        build(&w);
        w.file("outside/bait", "outside");
        let mut moved = 0;
        while_flipping(&w, &LINKS[..1], || {
            block_on(async {
                for _ in 0..times(TIMES / 4) {
                    // There from the round before, unless that did not move it.
                    drop(fs::remove_file(w.disk("inside/target/moved")));
                    fs::write(w.disk("inside/target/bait"), "inside").unwrap();
                    let (from, to) =
                        (w.at("inside/here/bait").await, w.at("inside/here/moved").await);
                    if is_inside(&w, &from.real) && is_inside(&w, &to.real) {
                        w.fs().rename(&from, &to).await.unwrap();
                        moved += 1;
                        let text = fs::read_to_string(w.disk("inside/target/moved")).unwrap();
                        assert_eq!(text, "inside", "{}", w.name);
                    }
                    assert_eq!(names(&w, "outside"), ["bait", "file"], "{}", w.name);
                }
            });
        });
        assert!(moved > 0, "{}", w.name);
    }
}

fn walk(w: &World) -> Walk {
    let inside = w.path("inside");
    let allowed = Arc::new(move |path: &HostPath| path.is_within(&inside));
    Walk { allowed, excludes: Arc::new(|_: &_| true), stop: CancellationToken::new() }
}

/// Searches for content and for names; gives how much was found inside.
async fn search(w: &World, search: &dyn Search) -> usize {
    let at = w.at("inside").await;
    let query = GrepQuery {
        pattern: "inside|outside".into(),
        hidden: true,
        no_ignore: true,
        ..GrepQuery::default()
    };
    let mut found = 0;
    let sink = &mut |lines: haft_host::FoundLines| {
        let file = lines.file;
        for line in &file.lines {
            assert!(!line.text.contains("outside"), "{} {}", w.name, file.path);
        }
        found += 1;
        ControlFlow::Continue(())
    };
    search.grep(&at, &query, walk(w), sink).await.unwrap();
    for follow in [false, true] {
        let query = FindQuery {
            pattern: "*".into(),
            hidden: true,
            no_ignore: true,
            follow,
            ..FindQuery::default()
        };
        let sink = &mut |one: haft_host::NameMatch| {
            assert!(!one.path.ends_with(b"only-outside"), "{} {follow}", w.name);
            found += 1;
            ControlFlow::Continue(())
        };
        search.find(&at, &query, walk(w), sink).await.unwrap();
    }
    found
}

#[test]
fn searches_see_nothing_of_what_links_lead_to() {
    for (w, lookup) in locals().into_iter().zip([Lookup::Walk, Lookup::Openat2]) {
        build(&w);
        w.file("outside/only-outside", "outside");
        w.file("inside/target/deep/er/file", "inside");
        let local = Local::at(w.root.clone(), w.root.clone(), lookup);
        let pairs = [FOLDER[0], LINKS[1]];
        let mut found = 0;
        while_flipping(&w, &pairs, || {
            block_on(async {
                for n in 0..times(TIMES / 5) {
                    found += match n % 2 {
                        0 => search(&w, &local).await,
                        _ => search(&w, &FsSearch(local.fs())).await,
                    };
                }
            });
        });
        assert!(found > 0, "{}: nothing was found at all", w.name);
    }
}
