//! The begin of a call is on disk before the call changes anything.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use futures::{FutureExt as _, future::BoxFuture};
use haft_host::{Outs, WriteHow};
use haft_testkit::world::World;
use haft_tool::{Cx, Dispatcher, Events, MemoryBlobs, RecordError, Session};
use haft_types::{
    Access, AgentPath, Body, Follow, Outcome, Plan, Status, Target, ToolError, TurnId,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::{Probe, Runs, at, call, world};

/// A log on a disk that answers when the test says so.
struct Slow {
    told: Mutex<Vec<Body>>,
    /// One for each sync that may come to its end.
    answers: Semaphore,
    fails: bool,
    waiting: AtomicUsize,
    ahead: AtomicUsize,
}

impl Slow {
    fn new(fails: bool) -> Arc<Self> {
        let (told, answers) = (Mutex::default(), Semaphore::new(0));
        let (waiting, ahead) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { told, answers, fails, waiting, ahead })
    }
}

impl Events for Slow {
    fn emit(&self, _: &AgentPath, _: TurnId, body: Body) -> Result<(), RecordError> {
        self.told.lock().unwrap().push(body);
        Ok(())
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), RecordError>> {
        async {
            let started = |body: &Body| matches!(body, Body::CallStarted { .. });
            assert!(self.told.lock().unwrap().iter().any(started), "nothing to sync yet");
            self.waiting.fetch_add(1, Ordering::SeqCst);
            drop(self.answers.acquire().await.unwrap());
            if self.fails { Err(RecordError("the disk is full".into())) } else { Ok(()) }
        }
        .boxed()
    }

    fn sync_ahead(&self) {
        self.ahead.fetch_add(1, Ordering::SeqCst);
    }
}

/// The same world with this log.
fn with_events(world: &World, events: &Arc<Slow>) -> Arc<Dispatcher> {
    let judge = (*world.session.permissions()).clone();
    let (blobs, outs) = (Arc::new(MemoryBlobs::default()), Arc::new(Outs::in_memory(1 << 20)));
    let session = Arc::new(Session::new("s", events.clone(), blobs, outs, judge));
    Arc::new(Dispatcher { session, ..(*world.dispatcher).clone() })
}

async fn change(input: Value, cx: Cx) -> Result<Outcome, ToolError> {
    let failed = |error: std::io::Error| ToolError::new(format!("{error} {:?}", error.kind()));
    let fs = cx.host.fs();
    let a = fs.locate(&at("/w/a"), Follow::Yes).await.map_err(failed)?;
    if input["how"] == "remove" {
        fs.remove(&a).await.map_err(failed)?;
    } else {
        let how = WriteHow::default();
        let once = fs.write(&a, "once".into(), how.clone()).await.map_err(failed)?;
        // What comes after the first change waits for nothing.
        fs.write(&once.at, "new".into(), how).await.map_err(failed)?;
    }
    Ok(Outcome::text("changed"))
}

fn probes() -> (World, Runs) {
    let plan = |_: &Value, place: &haft_types::Place| {
        let target = Target::Path { path: at("/w/a"), follow: Follow::Yes };
        Plan::new(place, "Changing").with(Access::Destroy, target)
    };
    let state = |_: &Value, place: &haft_types::Place| {
        Plan::new(place, "Keeping").with(Access::Modify, Target::State { name: "x".into() })
    };
    world([
        Probe::new("change").plan(plan).run(change),
        Probe::new("state").plan(state),
        Probe::new("look").reads(),
    ])
}

async fn content(world: &World) -> Option<String> {
    let fs = world.host.fs();
    let a = fs.locate(&at("/w/a"), Follow::Yes).await.ok()?;
    let bytes = fs.read(&a, 0, 100).await.ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[tokio::test]
async fn nothing_changes_before_the_begin_of_the_call_is_on_disk() {
    for (tool, how, after) in
        [("change", "write", Some("new")), ("change", "remove", None), ("state", "", Some("in a"))]
    {
        let (world, runs) = probes();
        let events = Slow::new(false);
        let dispatcher = with_events(&world, &events);
        let running =
            tokio::spawn(async move { call(&dispatcher, tool, json!({ "how": how })).await });
        while events.waiting.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(events.ahead.load(Ordering::SeqCst), 1, "the disk was set to work before");
        assert_eq!(content(&world).await.as_deref(), Some("in a"), "{tool} {how}");
        assert_eq!(runs.of("state"), 0, "what no host sees does not even run");
        events.answers.add_permits(1);
        let outcome = running.await.unwrap();
        assert_eq!(outcome.status, Status::Done, "{outcome:?}");
        assert_eq!(content(&world).await.as_deref(), after, "{tool} {how}");
        assert_eq!(events.waiting.load(Ordering::SeqCst), 1, "one wait for each call");
    }
}

#[tokio::test]
async fn nothing_changes_when_the_begin_of_the_call_cannot_be_synced() {
    for (tool, how) in [("change", "write"), ("change", "remove"), ("state", "")] {
        let (world, runs) = probes();
        let events = Slow::new(true);
        events.answers.add_permits(100);
        let dispatcher = with_events(&world, &events);
        let outcome = call(&dispatcher, tool, json!({ "how": how })).await;
        assert_eq!(outcome.status, Status::Failed);
        assert!(outcome.joined_text().contains("the disk is full"), "{outcome:?}");
        assert_eq!(content(&world).await.as_deref(), Some("in a"), "{tool} {how}");
        assert_eq!(runs.of("state"), 0);
    }
}

#[tokio::test]
async fn what_only_looks_waits_for_no_disk() {
    let (world, _) = probes();
    let events = Slow::new(false);
    let outcome = call(&with_events(&world, &events), "look", json!({})).await;
    assert_eq!(outcome.status, Status::Done);
    let (waiting, ahead) = (&events.waiting, &events.ahead);
    assert_eq!((waiting.load(Ordering::SeqCst), ahead.load(Ordering::SeqCst)), (0, 0));
}
