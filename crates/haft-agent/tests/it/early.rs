//! A file system that does not answer holds up the call that wants it, and nothing else.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use haft_agent::{Agent, Setup};
use haft_host::{
    Caps, Fs, Host, ListHow, Listing, Located, Memory, Search, Shell, WriteHow, Written,
};
use haft_tool::Dispatcher;
use haft_types::{Body, CallId, Follow, HostPath, Part, Status, Stop, Style, TurnEnd};
use serde_json::json;
use tokio::time::Instant;

use crate::world::{Scripted, Step, World, calls, ended, ends, is_done, is_started, say, says};

/// A host whose files below `/w` cannot be looked up for a while.
struct Stuck {
    inner: Memory,
    stuck: AtomicBool,
}

impl Host for Stuck {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn style(&self) -> Style {
        self.inner.style()
    }
    fn home(&self) -> &HostPath {
        self.inner.home()
    }
    fn temp(&self) -> &HostPath {
        self.inner.temp()
    }
    fn caps(&self) -> Caps {
        self.inner.caps()
    }
    fn fs(&self) -> &dyn Fs {
        self
    }
    fn shell(&self) -> Option<&dyn Shell> {
        None
    }
    fn search(&self) -> Option<&dyn Search> {
        None
    }
}

impl Fs for Stuck {
    fn locate<'a>(
        &'a self,
        path: &'a HostPath,
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>> {
        async move {
            while self.stuck.load(Ordering::SeqCst) && path.text().starts_with("/w") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            self.inner.locate(path, follow).await
        }
        .boxed()
    }
    fn child<'a>(
        &'a self,
        folder: &'a Located,
        name: &'a [u8],
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>> {
        self.inner.child(folder, name, follow)
    }
    fn read<'a>(
        &'a self,
        at: &'a Located,
        offset: u64,
        len: usize,
    ) -> BoxFuture<'a, io::Result<Bytes>> {
        self.inner.read(at, offset, len)
    }
    fn write<'a>(
        &'a self,
        at: &'a Located,
        data: Bytes,
        how: WriteHow,
    ) -> BoxFuture<'a, io::Result<Written>> {
        self.inner.write(at, data, how)
    }
    fn list<'a>(&'a self, at: &'a Located, how: ListHow) -> BoxFuture<'a, io::Result<Listing>> {
        self.inner.list(at, how)
    }
    fn remove<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        self.inner.remove(at)
    }
    fn rename<'a>(&'a self, from: &'a Located, to: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        self.inner.rename(from, to)
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_does_not_wait_for_a_file_system() {
    let model = Scripted::new([
        vec![calls(1, "grep", &json!({"path": "."})), Step::Hangs],
        is_done("fine"),
    ]);
    let mut world = World::new();
    let inner = Memory::with_files([("/w/a", "a")]).unwrap();
    let host = Arc::new(Stuck { inner, stuck: AtomicBool::new(true) });
    let dispatcher = Dispatcher { host, ..(*world.dispatcher).clone() };
    let setup = Setup { dispatcher: Arc::new(dispatcher), ..world.setup(&model) };
    let handle = Agent::start(setup);
    assert!(handle.send(say("go")));
    let call = |body: &Body| matches!(body, Body::AnswerPart { part: Part::Call(_), .. });
    world.until(call).await;
    let began = Instant::now();
    handle.send(haft_agent::Input::Interrupt);
    let (seen, end) = world.until_ended().await;
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
    assert_eq!(end, TurnEnd::Interrupted);
    assert_eq!(ended(&seen), [(CallId::nth(1), Status::Cancelled)]);
    // What was looked up for that answer starts nothing in the next one.
    assert_eq!(world.turn(&handle, "again").await.1, TurnEnd::Done { stop: Stop::EndTurn });
    assert!(world.did().is_empty());
}

#[tokio::test(start_paused = true)]
async fn text_streams_on_while_a_file_system_is_stuck_and_the_call_starts_early_all_the_same() {
    let model = Scripted::new([
        vec![
            calls(1, "grep", &json!({"path": "."})),
            says("one"),
            Step::Waits(60),
            says("two"),
            Step::Waits(10_000),
            says("three"),
            ends(Stop::ToolUse),
        ],
        is_done("fine"),
    ]);
    let mut world = World::new();
    let inner = Memory::with_files([("/w/a", "a")]).unwrap();
    let host = Arc::new(Stuck { inner, stuck: AtomicBool::new(true) });
    let dispatcher = Dispatcher { host: host.clone(), ..(*world.dispatcher).clone() };
    let setup = Setup { dispatcher: Arc::new(dispatcher), ..world.setup(&model) };
    let handle = Agent::start(setup);
    // Shorter than the look at a call may take before it is given up.
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(150)).await;
        host.stuck.store(false, Ordering::SeqCst);
    });
    let (seen, end) = world.turn(&handle, "go").await;
    assert_eq!(end, TurnEnd::Done { stop: Stop::EndTurn });
    let at = |wanted: &dyn Fn(&Body) -> bool| seen.iter().position(wanted).unwrap();
    let text = |wanted: &'static str| move |body: &Body| matches!(body, Body::AnswerPart { part: Part::Text { text }, .. } if text == wanted);
    let order = [
        at(&text("one")),
        at(&text("two")),
        at(&|body| is_started(body, 1)),
        at(
            &|body| matches!(body, Body::CallEnded { outcome, .. } if outcome.status == Status::Done),
        ),
        at(&text("three")),
        at(&|body| matches!(body, Body::AnswerEnded { .. })),
    ];
    assert!(order.is_sorted(), "{order:?} {seen:#?}");
}
