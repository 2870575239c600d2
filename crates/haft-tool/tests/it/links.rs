//! Links and folders that flip between the stages: what was judged is what is touched.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use futures::future::BoxFuture;
use haft_host::Lookup;
use haft_policy::Verdict;
use haft_testkit::{machine::times, world::World};
use haft_tool::{Call, Dispatcher, Next, Settings, Stage, standard};
use haft_types::{Outcome, Status};
use serde_json::{Value, json};

use crate::support::call;

const INSIDE: &str = "inside, and free to read\n";
const OUTSIDE: &str = "CANARY outside, and denied\n";

/// What is swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Swap {
    /// `w/name` is a file, then a link to the denied one.
    File,
    /// `w/name` is a link to a free file, then to the denied one.
    Link,
    /// `w/name` is in a real folder, which becomes a link to the denied one.
    Folder,
    /// `w/name` is below a link to a free folder, which then leads to the denied one.
    FolderLink,
}

const SWAPS: [Swap; 4] = [Swap::File, Swap::Link, Swap::Folder, Swap::FolderLink];

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
        for (name, text) in [("w/free", INSIDE), ("denied", OUTSIDE)] {
            std::fs::create_dir(base.join(name)).unwrap();
            std::fs::write(base.join(name).join("name"), text).unwrap();
        }
        world.rule(Verdict::Deny, "Read(//**/denied/**)");
        world.rule(Verdict::Deny, "Edit(//**/denied/**)");
        let flip = Self { base, swap, world, _folder: folder };
        flip.set(false);
        flip
    }

    /// The path that calls name.
    fn path(&self) -> &'static str {
        match self.swap {
            Swap::File | Swap::Link => "name",
            Swap::Folder | Swap::FolderLink => "way/name",
        }
    }

    /// Puts the free or the denied thing into its place, as atomically as can be.
    fn set(&self, denied: bool) {
        set(&self.base, self.swap, denied);
    }

    fn content(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.base.join(name)).ok()
    }

    /// What must hold whatever happened.
    fn unharmed(&self, what: &str) {
        assert_eq!(self.content("denied/name").as_deref(), Some(OUTSIDE), "{what}");
        let names = std::fs::read_dir(self.base.join("denied")).unwrap().count();
        assert_eq!(names, 1, "{what}: something was made among the denied");
    }
}

fn set(base: &Path, swap: Swap, denied: bool) {
    let target = base.join(if denied { "denied" } else { "w/free" });
    let way = base.join("w/way");
    let name = base.join("w/name");
    let fresh = base.join("tmp/fresh");
    let _ = std::fs::remove_file(&fresh);
    match swap {
        Swap::File if !denied => {
            std::fs::write(&fresh, INSIDE).unwrap();
            std::fs::rename(&fresh, name).unwrap();
        }
        Swap::File | Swap::Link => {
            symlink(target.join("name"), &fresh).unwrap();
            std::fs::rename(&fresh, name).unwrap();
        }
        Swap::Folder if !denied => {
            let _ = std::fs::remove_file(&way);
            let _ = std::fs::create_dir(&way);
            std::fs::write(way.join("name"), INSIDE).unwrap();
        }
        Swap::Folder => {
            // A call that still writes in the folder moved away before keeps it for a moment.
            while symlink(&target, &way).is_err() {
                let _ = std::fs::remove_dir_all(base.join("tmp/old"));
                let _ = std::fs::rename(&way, base.join("tmp/old"));
            }
        }
        Swap::FolderLink => {
            symlink(target, &fresh).unwrap();
            std::fs::rename(&fresh, way).unwrap();
        }
    }
}

/// Every call that could be led astray.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    let edits = json!([{"old_text": "a", "new_text": "b", "replace_all": true}]);
    vec![
        ("read", json!({"path": path})),
        ("write", json!({"path": path, "content": "written\n"})),
        ("edit", json!({"path": path, "edits": edits})),
        ("grep", json!({"pattern": "and", "path": path})),
        ("grep", json!({"pattern": "and"})),
        ("ls", json!({"path": path})),
        ("find", json!({"pattern": "**", "path": ".", "follow": true})),
    ]
}

/// Flips when a call passes here.
struct Flipper {
    name: &'static str,
    base: PathBuf,
    swap: Swap,
}

impl Stage for Flipper {
    fn name(&self) -> &'static str {
        self.name
    }
    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        set(&self.base, self.swap, true);
        next.run(call)
    }
}

async fn flipped(flip: &Flip, after: &str, tool: &str, input: Value) -> Outcome {
    let flipper = Flipper { name: "link_flip", base: flip.base.clone(), swap: flip.swap };
    let pipeline = standard(&Settings::default()).insert_after(after, flipper);
    assert!(pipeline.names().any(|name| name == "link_flip"));
    let dispatcher =
        Dispatcher { pipeline: Arc::new(pipeline), ..(*flip.world.dispatcher).clone() };
    call(&Arc::new(dispatcher), tool, input).await
}

#[tokio::test]
async fn link_flip_between_any_two_stages_leads_nowhere() {
    for lookup in [Lookup::probed(), Lookup::Walk] {
        for swap in SWAPS {
            let (mut done, mut stopped) = (0, 0);
            for after in ["resolve", "rules", "check", "ask", "snapshot", "guard", "timeout"] {
                let path = Flip::new(swap, lookup).path();
                for (tool, input) in calls(path) {
                    let flip = Flip::new(swap, lookup);
                    let what = format!("{lookup:?} {swap:?} after {after}: {tool} {input}");
                    let outcome = flipped(&flip, after, tool, input).await;
                    flip.unharmed(&what);
                    assert!(!flip.world.recorder.text().contains("CANARY"), "{what}: {outcome:?}");
                    *(if outcome.status == Status::Done { &mut done } else { &mut stopped }) += 1;
                }
            }
            assert!(done > 0 && stopped > 0, "{lookup:?} {swap:?}: {done} and {stopped}");
        }
    }
}

#[tokio::test]
async fn link_flip_before_the_paths_are_looked_up_is_simply_denied() {
    for swap in SWAPS {
        let flip = Flip::new(swap, Lookup::probed());
        let outcome = flipped(&flip, "prepare", "read", json!({"path": flip.path()})).await;
        assert_eq!(outcome.status, Status::Denied, "{swap:?}: {outcome:?}");
    }
}

/// How many flips each race makes.
const FLIPS: u64 = 200;

async fn race(swap: Swap) {
    let flip = Flip::new(swap, Lookup::probed());
    let (over, flips) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let flipping = {
        let (base, over, flips) = (flip.base.clone(), over.clone(), flips.clone());
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                for denied in [true, false] {
                    set(&base, swap, denied);
                    flips.fetch_add(1, Ordering::Relaxed);
                    std::thread::yield_now();
                }
            }
        })
    };
    let (mut done, mut calls_made) = (0, 0);
    while flips.load(Ordering::Relaxed) < times(FLIPS) || calls_made < 50 {
        for (tool, input) in calls(flip.path()) {
            let outcome = flip.world.call(tool, input).await;
            done += u64::from(outcome.status == Status::Done);
            calls_made += 1;
        }
    }
    over.store(true, Ordering::Relaxed);
    flipping.join().unwrap();
    flip.unharmed(&format!("{swap:?}"));
    let text = flip.world.recorder.text();
    assert!(!text.contains("CANARY"), "{swap:?}: told in {calls_made} calls");
    assert!(done > 0, "{swap:?}: none of {calls_made} calls did anything");
}

#[tokio::test]
async fn link_flip_in_a_race_leads_nowhere() {
    for swap in SWAPS {
        race(swap).await;
    }
}
