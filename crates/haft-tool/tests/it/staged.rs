//! A file that is changed takes its name after the begin of the call is on disk and what it held is
//! kept; whatever of the three fails, nothing is left.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use haft_host::{Expect, Memory, Outs, Source, WriteHow};
use haft_testkit::world::World;
use haft_tool::{
    Cx, Dispatcher, Events, MemoryBlobs, MemoryPreImages, PendingPreImage, PinGuard, PreImages,
    RecordError, Session,
};
use haft_types::{AgentPath, Blob, Body, Follow, Hash, Outcome, Status, ToolError, TurnId};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::support::{Probe, tools};

/// A log whose syncs end when the test says so.
struct Log {
    ends: Semaphore,
    waiting: AtomicUsize,
    fails: bool,
}

impl Log {
    fn new(ends: usize, fails: bool) -> Arc<Self> {
        Arc::new(Self { ends: Semaphore::new(ends), waiting: AtomicUsize::new(0), fails })
    }
}

impl Events for Log {
    fn emit(&self, _: &AgentPath, _: TurnId, _: Body) -> Result<(), RecordError> {
        Ok(())
    }
    fn sync(&self) -> BoxFuture<'_, Result<(), RecordError>> {
        async {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            drop(self.ends.acquire().await.unwrap());
            if self.fails { Err(RecordError("the disk is full".into())) } else { Ok(()) }
        }
        .boxed()
    }
}

/// Keeps content, and notes what stands at `/w/a` while it does.
struct Watching {
    host: Arc<Memory>,
    inner: MemoryPreImages,
    seen: Mutex<Vec<Bytes>>,
}

impl PreImages for Watching {
    fn begin(&self, expected: u64) -> io::Result<Box<dyn PendingPreImage>> {
        self.seen.lock().unwrap().push(self.host.content("/w/a").unwrap());
        self.inner.begin(expected)
    }
    fn put(&self, whole: &Bytes, hash: Hash) -> io::Result<Blob> {
        self.seen.lock().unwrap().push(self.host.content("/w/a").unwrap());
        self.inner.put(whole, hash)
    }
    fn open(&self, blob: &Blob) -> io::Result<Source> {
        self.inner.open(blob)
    }
    fn hold(&self, hash: Hash) -> PinGuard {
        self.inner.hold(hash)
    }
    fn find(&self, hash: &Hash) -> Option<Blob> {
        self.inner.find(hash)
    }
    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

async fn change(input: Value, cx: Cx) -> Result<Outcome, ToolError> {
    let failed = |error: io::Error| ToolError::new(error.to_string());
    let path = cx.path(input["path"].as_str().unwrap())?;
    let fs = cx.host.fs();
    let at = fs.locate(&path, Follow::Yes).await.map_err(failed)?;
    if input["offers"] == true {
        let whole = fs.read(&at, 0, 1000).await.map_err(failed)?;
        cx.offer_pre_image(&at, &whole, Hash::of(&whole));
    }
    let expect = at.stamp.map_or(Expect::Absent, Expect::Stamp);
    let expect = if input["wrong"] == true { Expect::Absent } else { expect };
    let how = WriteHow { expect, parents: true, ..WriteHow::default() };
    if input["pieces"] == true {
        let from = Box::new(io::Cursor::new("new"));
        let staged = fs.stage_from(&at, from, how).await.map_err(failed)?;
        staged.place().await.map_err(failed)?;
    } else {
        fs.write(&at, "new".into(), how).await.map_err(failed)?;
    }
    Ok(Outcome::text("changed"))
}

fn probe() -> haft_testkit::world::Tools {
    tools([Probe::new("change").changes().run(change)]).0
}

/// The same world with this log and store.
fn with(world: &World, log: &Arc<Log>, images: Option<Arc<Watching>>) -> Arc<Dispatcher> {
    let judge = (*world.session.permissions()).clone();
    let (blobs, outs) = (Arc::new(MemoryBlobs::default()), Arc::new(Outs::in_memory(1 << 20)));
    let session = Arc::new(Session::new("s", log.clone(), blobs, outs, judge));
    if let Some(images) = images {
        session.services.insert::<dyn PreImages>(images);
    }
    Arc::new(Dispatcher { session, ..(*world.dispatcher).clone() })
}

async fn until_waiting(log: &Log) {
    while log.waiting.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_name_is_taken_after_the_log_is_synced_and_the_old_content_kept() {
    for (offers, pieces) in [(false, false), (true, false), (false, true), (true, true)] {
        let host = Arc::new(Memory::with_files([("/w/a", "old")]).unwrap());
        let world = World::on(host.clone(), crate::support::at("/w"), probe());
        let log = Log::new(0, false);
        let (inner, seen) = (MemoryPreImages::default(), Mutex::default());
        let images = Arc::new(Watching { host: host.clone(), inner, seen });
        let dispatcher = with(&world, &log, Some(images.clone()));
        let stop = CancellationToken::new();
        let input = json!({"path": "a", "offers": offers, "pieces": pieces});
        let running = tokio::spawn(async move { dispatcher.call("change", input, stop).await.1 });
        until_waiting(&log).await;
        assert_eq!(host.content("/w/a").unwrap(), "old", "before the log was synced");
        log.ends.add_permits(1);
        let outcome = running.await.unwrap();
        assert_eq!(outcome.status, Status::Done, "{outcome:?}");
        assert_eq!(host.content("/w/a").unwrap(), "new");
        assert_eq!(*images.seen.lock().unwrap(), ["old"], "kept while it stood there");
        let kept = outcome.receipts[0].pre_image.as_ref().unwrap();
        assert_eq!(images.get(kept).unwrap(), "old");
        assert_eq!(outcome.receipts[0].after, Some(Hash::of(b"new")), "{pieces}");
    }
}

#[tokio::test]
async fn where_one_of_the_three_fails_nothing_is_left() {
    let cases = [
        ("a", false, true, "the disk is full"),
        ("new/folder/b", false, true, "the disk is full"),
        ("a", true, false, "already there"),
        ("a", true, true, "already there"),
    ];
    for ((path, wrong, fails, says), pieces) in
        cases.map(|case| [(case, false), (case, true)]).concat()
    {
        let world = World::local(probe(), [("a", "old")]).unwrap();
        let dispatcher = with(&world, &Log::new(100, fails), None);
        let input = json!({"path": path, "wrong": wrong, "pieces": pieces});
        let outcome = dispatcher.call("change", input, CancellationToken::new()).await.1;
        assert_eq!(outcome.status, Status::Failed, "{path}");
        assert!(outcome.joined_text().contains(says), "{path}: {outcome:?}");
        assert!(outcome.receipts.is_empty(), "{path}: {outcome:?}");
        let files: Vec<_> = world.files().await.unwrap().into_iter().collect();
        assert_eq!(files, [("a".to_owned(), b"old".to_vec())], "{path}");
    }
}

#[tokio::test]
async fn a_call_that_is_stopped_while_the_log_is_synced_leaves_nothing() {
    let world = World::local(probe(), [("a", "old")]).unwrap();
    let log = Log::new(0, false);
    let dispatcher = with(&world, &log, None);
    let stop = CancellationToken::new();
    let (input, token) = (json!({"path": "new/folder/b"}), stop.clone());
    let running = tokio::spawn(async move { dispatcher.call("change", input, token).await.1 });
    until_waiting(&log).await;
    let folder = world.folder().unwrap();
    while !folder.join("new/folder").exists() {
        tokio::task::yield_now().await;
    }
    stop.cancel();
    let outcome = running.await.unwrap();
    assert_eq!(outcome.status, Status::Cancelled, "{outcome:?}");
    while folder.join("new").exists() {
        tokio::task::yield_now().await;
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}
