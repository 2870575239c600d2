//! Links that flip while a tool works: nothing outside of the workspace is read into an answer or
//! changed, whichever tool it is and whatever the moment.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use haft_host::Lookup;
use haft_policy::{Mode, Verdict};
use haft_testkit::{
    machine::{self, make_fifo},
    world::World,
};
use haft_types::Status;
use serde_json::{Value, json};

const INSIDE: &str = "inside, and free to read\n";
const OUTSIDE: &str = "CANARY outside, and free for nobody\n";
/// Calls of each race at least.
const CALLS: u64 = 8;
/// Calls after which at least one has to have worked.
const PATIENCE: u64 = 5_000;

/// What stands at the name alternately with a free file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Swap {
    /// A link to the file outside, in place of the file.
    File,
    /// A folder's link to the folder outside, in place of the folder.
    Folder,
    /// A link that leads outside, in place of one that leads inside.
    FolderLink,
    /// A named pipe that nobody writes to.
    Pipe,
    /// Nothing at all.
    Nothing,
}

const SWAPS: [Swap; 5] = [Swap::File, Swap::Folder, Swap::FolderLink, Swap::Pipe, Swap::Nothing];

/// A folder of this test, with what is outside of the workspace in it.
struct Flip {
    base: PathBuf,
    swap: Swap,
    world: World,
    _folder: tempfile::TempDir,
}

impl Flip {
    fn new(swap: Swap, lookup: Lookup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let world = World::below(&base, lookup, haft_tools::builtin()).unwrap();
        for name in ["w/free", "outside"] {
            std::fs::create_dir(base.join(name)).unwrap();
        }
        std::fs::write(base.join("w/free/name"), INSIDE).unwrap();
        std::fs::write(base.join("outside/name"), OUTSIDE).unwrap();
        // A name that nobody may see either.
        std::fs::write(base.join("outside/CANARY"), "").unwrap();
        // What is outside would be asked about, and nobody is there.
        world.mode(Mode::DontAsk);
        world.rule(Verdict::Allow, &format!("Edit(/{}/**)", base.join("w").display()));
        set(&base, swap, false);
        Self { base, swap, world, _folder: folder }
    }

    fn path(&self) -> &'static str {
        match self.swap {
            Swap::Folder | Swap::FolderLink => "way/name",
            _ => "name",
        }
    }

    fn unharmed(&self, what: &str) {
        let outside = std::fs::read_to_string(self.base.join("outside/name")).unwrap();
        assert_eq!(outside, OUTSIDE, "{what}");
        let names = std::fs::read_dir(self.base.join("outside")).unwrap().count();
        assert_eq!(names, 2, "{what}: something was made outside");
    }
}

/// Puts the free thing or the other one into its place, as atomically as can be.
fn set(base: &Path, swap: Swap, other: bool) {
    let (name, way, fresh) = (base.join("w/name"), base.join("w/way"), base.join("tmp/fresh"));
    let target = base.join(if other { "outside" } else { "w/free" });
    let _ = std::fs::remove_file(&fresh);
    match swap {
        Swap::Folder if other => {
            // A call that still writes in the folder moved away before keeps it for a moment.
            while symlink(&target, &way).is_err() {
                let _ = std::fs::remove_dir_all(base.join("tmp/old"));
                let _ = std::fs::rename(&way, base.join("tmp/old"));
            }
        }
        Swap::Folder => {
            let _ = std::fs::remove_file(&way);
            let _ = std::fs::create_dir(&way);
            std::fs::write(way.join("name"), INSIDE).unwrap();
        }
        Swap::FolderLink => {
            symlink(target, &fresh).unwrap();
            std::fs::rename(&fresh, way).unwrap();
        }
        Swap::Nothing if other => drop(std::fs::remove_file(&name)),
        Swap::File if other => {
            symlink(target.join("name"), &fresh).unwrap();
            std::fs::rename(&fresh, name).unwrap();
        }
        Swap::Pipe if other => {
            make_fifo(&fresh);
            std::fs::rename(&fresh, name).unwrap();
        }
        Swap::File | Swap::Pipe | Swap::Nothing => {
            std::fs::write(&fresh, INSIDE).unwrap();
            std::fs::rename(&fresh, name).unwrap();
        }
    }
}

/// What moves files is edit as well, called in another way.
const MOVE: &str = "move";

/// Ways to call a tool that could be led astray.
fn calls(tool: &str, path: &str) -> Vec<Value> {
    let edits = json!([{"old_text": "free", "new_text": "open"}]);
    let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
    match tool {
        "read" => vec![json!({"path": path})],
        "write" => vec![json!({"path": path, "content": "written, all anew\n"})],
        "edit" => vec![json!({"path": path, "edits": edits})],
        // The file goes away, comes anew, and what went comes back under another name beside it.
        MOVE => {
            static NUMBER: AtomicU64 = AtomicU64::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let (away, back) = (format!("got/{number}"), format!("{folder}/new{number}"));
            let call = |entry: Value| json!({"files": [entry]});
            let edited = json!({"path": away, "move_to": back, "edits": edits});
            let last = if number.is_multiple_of(2) {
                edited
            } else {
                json!({"path": away, "move_to": back})
            };
            vec![
                call(json!({"path": path, "move_to": away})),
                call(json!({"path": path, "content": INSIDE})),
                call(last),
            ]
        }
        "grep" => vec![json!({"pattern": "an", "path": path}), json!({"pattern": "an"})],
        "find" => {
            vec![json!({"pattern": "**", "follow": true}), json!({"pattern": "*", "path": folder})]
        }
        "ls" => vec![
            json!({"recursive": true, "long": true}),
            json!({"path": folder}),
            json!({"path": path}),
        ],
        _ => panic!("no calls of {tool}"),
    }
}

/// Calls a tool again and again while another thread flips.
async fn race(tool: &str, swap: Swap, lookup: Lookup) {
    let flip = Flip::new(swap, lookup);
    let what = format!("{tool} {swap:?} {lookup:?}");
    let (over, flips) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let flipping = {
        let (base, over, flips) = (flip.base.clone(), over.clone(), flips.clone());
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                for other in [true, false] {
                    set(&base, swap, other);
                    flips.fetch_add(1, Ordering::Relaxed);
                    std::thread::yield_now();
                }
                // Now and then it stays as it is, so that calls of any length come to their end.
                let rest = flips.load(Ordering::Relaxed) % 16;
                std::thread::sleep(Duration::from_micros(rest * 500));
            }
        })
    };
    let (mut done, mut made) = (0, 0);
    let name = if tool == MOVE { "edit" } else { tool };
    while flips.load(Ordering::Relaxed) < machine::times(40) || made < CALLS || done == 0 {
        for input in calls(tool, flip.path()) {
            let outcome = flip.world.call(name, input).await;
            let said = format!("{outcome:?}");
            assert!(!said.contains("CANARY"), "{what}: {said}");
            assert!(!said.contains("panicked") && !said.contains("broke down"), "{what}: {said}");
            let counts = tool != MOVE || outcome.joined_text().contains("Moved ");
            done += u64::from(outcome.status == Status::Done && counts);
            made += 1;
            assert!(done > 0 || made < PATIENCE, "{what}: nothing was ever done: {said}");
        }
    }
    over.store(true, Ordering::Relaxed);
    flipping.join().unwrap();
    flip.unharmed(&what);
    let events = flip.world.recorder.text();
    assert!(!events.contains("CANARY"), "{what}: told in {made} calls");
}

async fn races(tool: &str) {
    for lookup in [Lookup::probed(), Lookup::Walk] {
        for swap in SWAPS {
            race(tool, swap, lookup).await;
        }
    }
}

#[tokio::test]
async fn link_flip_during_read_leads_nowhere() {
    races("read").await;
}

#[tokio::test]
async fn link_flip_during_write_leads_nowhere() {
    races("write").await;
}

#[tokio::test]
async fn link_flip_during_edit_leads_nowhere() {
    races("edit").await;
}

#[tokio::test]
async fn link_flip_during_move_leads_nowhere() {
    races(MOVE).await;
}

#[tokio::test]
async fn link_flip_during_grep_leads_nowhere() {
    races("grep").await;
}

#[tokio::test]
async fn link_flip_during_find_leads_nowhere() {
    races("find").await;
}

#[tokio::test]
async fn link_flip_during_ls_leads_nowhere() {
    races("ls").await;
}

#[tokio::test]
async fn what_the_races_look_for_is_there_to_be_found() {
    // The same calls without a flip, where nothing is forbidden, do find what is outside.
    for (tool, swap, nth) in [
        ("read", Swap::File, 0),
        ("grep", Swap::FolderLink, 0),
        ("find", Swap::FolderLink, 1),
        ("ls", Swap::Folder, 1),
    ] {
        let flip = Flip::new(swap, Lookup::probed());
        set(&flip.base, swap, true);
        let input = calls(tool, flip.path()).remove(nth);
        let denied = flip.world.call(tool, input.clone()).await;
        assert_eq!(denied.status, Status::Denied, "{tool}: {denied:?}");
        flip.world.mode(Mode::Bypass);
        let found = flip.world.call(tool, input).await;
        assert!(found.joined_text().contains("CANARY"), "{tool}: {found:?}");
    }
}
