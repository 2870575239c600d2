//! What commands changed that were cancelled or whose time was over: found after their answer.

use std::{
    fs, io,
    sync::{Arc, Condvar, Mutex},
};

use bytes::Bytes;
use haft_host::Source;
use haft_testkit::world::World;
use haft_tool::{MemoryPreImages, PendingPreImage, PinGuard, PreImages};
use haft_types::{Blob, Body, Hash, Outcome, Status};
use serde_json::json;

use crate::changed::{bash, cancelled, changes_line, receipts, take_back, tree, world};

/// Keeps content once it is let.
#[derive(Default)]
struct Gate {
    inner: MemoryPreImages,
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let open = self.open.lock().unwrap();
        drop(self.opened.wait_while(open, |open| !*open).unwrap());
    }
}

struct Slow(Arc<Gate>);

impl PreImages for Slow {
    fn begin(&self, expected: u64) -> io::Result<Box<dyn PendingPreImage>> {
        self.0.pass();
        self.0.inner.begin(expected)
    }
    fn put(&self, whole: &Bytes, hash: Hash) -> io::Result<Blob> {
        self.0.pass();
        self.0.inner.put(whole, hash)
    }
    fn open(&self, blob: &Blob) -> io::Result<Source> {
        self.0.inner.open(blob)
    }
    fn hold(&self, hash: Hash) -> PinGuard {
        self.0.inner.hold(hash)
    }
    fn find(&self, hash: &Hash) -> Option<Blob> {
        self.0.inner.find(hash)
    }
    fn sync(&self) -> io::Result<()> {
        self.0.inner.sync()
    }
}

/// A world in which nothing is kept until the gate is open.
fn slow() -> (World, Arc<Gate>) {
    let (world, gate) = (world(), Arc::new(Gate::default()));
    world.session.services.insert::<dyn PreImages>(Arc::new(Slow(gate.clone())));
    (world, gate)
}

/// What goes on after an answer is found, told and taken back.
async fn found_later(world: &World, gate: &Gate, outcome: &Outcome, before: &crate::changed::Tree) {
    assert!(changes_line(outcome).contains("still looked for"), "{}", changes_line(outcome));
    assert_eq!(receipts(world).len(), 0);
    gate.open();
    world.session.finished().await;
    let notice = |body: &Body| match body {
        Body::Notice { text, .. } => Some(text.clone()),
        _ => None,
    };
    let notices: Vec<String> = world.recorder.bodies().iter().filter_map(notice).collect();
    assert_eq!(notices, ["by c1, found after its end: changed: a.txt; created: n; deleted: d/e"]);
    // The next command tells the model, once.
    let wanted = format!("[{}]\n[created: more]", notices[0]);
    assert_eq!(changes_line(&bash(world, "echo > more").await), wanted);
    assert_eq!(changes_line(&bash(world, "rm more").await), "[deleted: more]");
    take_back(world, &receipts(world), false).await.unwrap();
    assert_eq!(tree(&world.folder().unwrap()), *before);
}

const COMMAND: &str = "echo x >> a.txt; rm d/e; echo n > n; echo did; sleep 100";

#[tokio::test]
async fn what_a_cancelled_command_changed_is_found_after_its_answer() {
    let (world, gate) = slow();
    let before = tree(&world.folder().unwrap());
    let outcome = cancelled(&world, COMMAND, "did\n").await;
    assert_eq!(outcome.status, Status::Cancelled);
    found_later(&world, &gate, &outcome, &before).await;
}

#[tokio::test]
async fn what_a_command_changed_whose_time_was_over_is_found_after_its_answer() {
    let (world, gate) = slow();
    let before = tree(&world.folder().unwrap());
    let outcome = world.call("bash", json!({"command": COMMAND, "timeout_ms": 1_000})).await;
    assert_eq!(outcome.status, Status::TimedOut);
    found_later(&world, &gate, &outcome, &before).await;
}

#[tokio::test]
async fn the_next_command_begins_after_the_look_at_what_was_cancelled() {
    let (world, gate) = slow();
    cancelled(&world, "echo 1 > a.txt; echo did; sleep 100", "did\n").await;
    let next = bash(&world, "echo 2 > a.txt");
    let open = async { gate.open() };
    let (next, ()) = tokio::join!(next, open);
    world.session.finished().await;
    assert_eq!(next.status, Status::Done);
    let all = receipts(&world);
    assert_eq!(all.len(), 2, "{all:?}");
    assert_ne!(all[0].before, all[1].before);
    take_back(&world, &all, false).await.unwrap();
    assert_eq!(fs::read(world.folder().unwrap().join("a.txt")).unwrap(), b"one\ntwo\n");
}
