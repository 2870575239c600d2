//! What a killed process left is found by its record and removed, and nothing else is.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use haft_host::{Host, Local};
use haft_types::Follow;

use super::{World, anyhow, local};

/// The tag of a process of another machine that nobody can ask about.
const TAG: &str = "4711-ffffffff-0a1b2c3d";

fn world() -> World {
    let w = local(haft_host::Lookup::probed());
    w.folder("ledger");
    w
}

fn record(w: &World, name: &str, lines: &[(&str, &str)]) {
    let line = |(what, path): &(&str, &str)| format!("{what} {}\n", w.disk(path).display());
    let text: String = lines.iter().map(line).collect();
    fs::write(w.disk("ledger").join(name), text).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn leftovers_go_wherever_the_record_leads_and_nothing_else_goes() {
    let w = world();
    let (ours, theirs) =
        (format!(".haft-{TAG}00112233.tmp"), ".haft-12-ffffffff-0011223344556677.tmp");
    for folder in ["a", "a/b\nc%", "elsewhere", "outside"] {
        w.file(&format!("{folder}/{ours}"), "half");
        w.file(&format!("{folder}/{theirs}"), "half of another");
        w.file(&format!("{folder}/file"), "whole");
    }
    w.folder("made/deeper");
    w.file("used/file", "whole");
    w.folder("wanted");
    symlink(w.disk("outside"), w.disk("link")).unwrap();
    let name = format!("{TAG}-0");
    record(
        &w,
        &name,
        &[
            ("in", "a"),
            ("make", "made"),
            ("make", "made/deeper"),
            ("make", "used"),
            ("make", "wanted"),
            ("kept", "wanted"),
            ("in", "link"),
            ("in", "gone"),
        ],
    );
    let escaped =
        format!("in {}/a/b%0ac%25\nin {}/else", w.disk(".").display(), w.disk(".").display());
    let text = fs::read_to_string(w.disk("ledger").join(&name)).unwrap() + &escaped;
    fs::write(w.disk("ledger").join(&name), text.replace("/./", "/")).unwrap();
    fs::write(w.disk("ledger/notes.txt"), "not ours").unwrap();

    assert_eq!(Local::recover(&w.disk("ledger")).unwrap(), 4);
    assert_eq!(names(&w.disk("ledger")), ["notes.txt"]);
    assert_eq!(names(&w.disk("a")), [theirs, "b\nc%", "file"]);
    assert_eq!(names(&w.disk("a/b\nc%")), [theirs, "file"]);
    for other in ["elsewhere", "outside"] {
        assert_eq!(names(&w.disk(other)), [theirs, &ours, "file"], "{other}");
    }
    assert!(!w.disk("made").exists() && w.disk("wanted").exists());
    assert_eq!(names(&w.disk("used")), ["file"]);
    assert_eq!(Local::recover(&w.disk("ledger")).unwrap(), 0);
    assert_eq!(Local::recover(&w.disk("no/such/folder")).unwrap(), 0);
}

#[tokio::test]
async fn a_living_process_keeps_its_record_and_a_clean_end_removes_it() {
    let w = world();
    let write = async |host: &Local, name: &str| {
        let at = host.fs().locate(&w.path(name), Follow::Yes).await.unwrap();
        host.fs().write(&at, "text".into(), anyhow()).await.unwrap();
    };
    let host = Local::new().with_ledger(w.disk("ledger"));
    assert!(names(&w.disk("ledger")).is_empty(), "nothing was written yet");
    write(&host, "a/b/file").await;
    let [record] = &names(&w.disk("ledger"))[..] else { panic!("no record") };
    let read = || fs::read_to_string(w.disk("ledger").join(record)).unwrap();
    let line = |what: &str, path: &str| format!("{what} {}\n", w.disk(path).display());
    let wanted = [
        line("in", "a/b"),
        line("make", "a"),
        line("make", "a/b"),
        line("kept", "a"),
        line("kept", "a/b"),
    ];
    assert_eq!(read(), wanted.concat());
    write(&host, "a/b/file").await;
    assert_eq!(read(), wanted.concat(), "the same folder is noted once");
    write(&host, "a/file").await;
    assert_eq!(read(), line("in", "a"), "what has ended is forgotten");
    assert_eq!(Local::recover(&w.disk("ledger")).unwrap(), 0);
    assert_eq!(names(&w.disk("ledger")).len(), 1, "its owner lives");
    drop(host);
    assert!(names(&w.disk("ledger")).is_empty());

    // Where no record can be kept, files are written all the same.
    w.file("file", "");
    let host = Local::new().with_ledger(w.disk("file/ledger"));
    write(&host, "a/b/file").await;
    assert_eq!(names(&w.disk("a/b")), ["file"]);
}

#[test]
fn a_child_keeps_no_lock_of_the_record() {
    let w = world();
    let mut child = {
        let host = Local::new().with_ledger(w.disk("ledger"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let at = host.fs().locate(&w.path("f"), Follow::Yes).await.unwrap();
            host.fs().write(&at, "text".into(), anyhow()).await.unwrap();
        });
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let [record] = &names(&w.disk("ledger"))[..] else { panic!("no record") };
        let name = format!("{TAG}-0");
        fs::hard_link(w.disk("ledger").join(record), w.disk("ledger").join(name)).unwrap();
        child
    };
    // The owner is gone, the program that it started runs on.
    assert_eq!(names(&w.disk("ledger")).len(), 1);
    let end = Instant::now() + Duration::from_secs(10);
    let left = loop {
        Local::recover(&w.disk("ledger")).unwrap();
        let left = names(&w.disk("ledger"));
        // The new program begins a little earlier than what it may not have is closed.
        if left.is_empty() || Instant::now() > end {
            break left;
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(left.is_empty(), "{left:?}");
}
