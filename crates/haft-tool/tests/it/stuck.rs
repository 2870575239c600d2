//! A disk that does not answer: the call ends in time, can be cancelled, and tells nothing denied.

use std::{future::pending, io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use haft_host::{
    Caps, Fs, Host, ListHow, Listing, Located, Memory, Search, Shell, WriteHow, Written,
};
use haft_policy::Verdict;
use haft_testkit::world::World;
use haft_tool::{Dispatcher, Limits, Settings, standard};
use haft_types::{CallId, Follow, HostPath, Status, Style, ToolUse};
use serde_json::json;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::support::{Probe, at, begun_and_ended, call, tools, with_pipeline};

/// A host that never answers about what is below `/w/dead`, nor with what is in a file; it tells
/// whenever it was asked for something of the kind.
struct Dead(Memory, Arc<Notify>);

impl Host for Dead {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn style(&self) -> Style {
        self.0.style()
    }
    fn home(&self) -> &HostPath {
        self.0.home()
    }
    fn temp(&self) -> &HostPath {
        self.0.temp()
    }
    fn caps(&self) -> Caps {
        self.0.caps()
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

impl Fs for Dead {
    fn locate<'a>(&'a self, path: &'a HostPath, how: Follow) -> BoxFuture<'a, io::Result<Located>> {
        if path.is_within(&at("/w/dead")) {
            self.1.notify_one();
            return Box::pin(pending());
        }
        self.0.fs().locate(path, how)
    }
    fn child<'a>(
        &'a self,
        folder: &'a Located,
        name: &'a [u8],
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>> {
        self.0.fs().child(folder, name, follow)
    }
    fn read<'a>(&'a self, _: &'a Located, _: u64, _: usize) -> BoxFuture<'a, io::Result<Bytes>> {
        self.1.notify_one();
        Box::pin(pending())
    }
    fn write<'a>(
        &'a self,
        at: &'a Located,
        data: Bytes,
        how: WriteHow,
    ) -> BoxFuture<'a, io::Result<Written>> {
        self.0.fs().write(at, data, how)
    }
    fn list<'a>(&'a self, at: &'a Located, how: ListHow) -> BoxFuture<'a, io::Result<Listing>> {
        self.0.fs().list(at, how)
    }
    fn remove<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        self.0.fs().remove(at)
    }
    fn rename<'a>(&'a self, from: &'a Located, to: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        self.0.fs().rename(from, to)
    }
}

fn dead() -> World {
    asked().0
}

/// The world, and what tells that its disk was asked for what it never gives.
fn asked() -> (World, Arc<Notify>) {
    let asked = Arc::new(Notify::new());
    let inner = Memory::with_files([("/w/a", "in a"), ("/w/dead/x", "in x")]).unwrap();
    let reader = Probe::new("read").reads();
    let checker = Probe::new("check").reads().check(|_, cx| async move {
        let found = cx.host.fs().locate(&at("/w/a"), Follow::Yes).await.unwrap();
        drop(cx.host.fs().read(&found, 0, 10).await);
        Ok(None)
    });
    let host = Arc::new(Dead(inner, asked.clone()));
    (World::on(host, at("/w"), tools([reader, checker]).0), asked)
}

fn short(world: &World) -> Arc<Dispatcher> {
    let limits = Limits { look: Duration::from_millis(100), ..Limits::default() };
    with_pipeline(world, standard(&Settings { limits, ..Settings::default() }))
}

#[tokio::test]
async fn looking_up_ends_in_time_and_says_what_did_not_answer() {
    let world = dead();
    let began = Instant::now();
    let outcome = call(&short(&world), "read", json!({"path": "dead/x"})).await;
    assert_eq!(outcome.status, Status::TimedOut);
    let text = outcome.joined_text();
    assert!(text.contains("looking up dead/x took longer than 100ms"), "{text}");
    assert!(text.contains("may not answer"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(20));
    let other = call(&short(&world), "read", json!({"path": "a"})).await;
    assert_eq!(other.status, Status::Done, "nobody else is held up");
}

#[tokio::test]
async fn checking_ends_in_time() {
    let world = dead();
    let outcome = call(&short(&world), "check", json!({"path": "a"})).await;
    assert_eq!(outcome.status, Status::TimedOut);
    assert!(outcome.joined_text().contains("took longer than 100ms"), "{outcome:?}");
}

#[tokio::test]
async fn a_cancel_is_answered_although_the_disk_is_not() {
    for (tool, path) in [("read", "dead/x"), ("check", "a")] {
        let (world, asked) = asked();
        let stop = CancellationToken::new();
        let (outcome, since) =
            tokio::join!(world.call_until(tool, json!({ "path": path }), stop.clone()), async {
                asked.notified().await;
                stop.cancel();
                Instant::now()
            });
        assert_eq!((outcome.status, &*outcome.joined_text()), (Status::Cancelled, CANCELLED));
        assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
        assert_eq!(begun_and_ended(&world).1.len(), 1);
    }
}

const CANCELLED: &str = "cancelled before it ran";

#[tokio::test]
async fn a_denied_path_does_not_say_that_its_disk_is_dead() {
    let world = dead();
    world.rule(Verdict::Deny, "Read(dead/**)");
    let outcome = call(&short(&world), "read", json!({"path": "dead/x"})).await;
    assert_eq!(outcome.status, Status::Denied);
    assert!(!outcome.joined_text().contains("answer"), "{outcome:?}");
}

#[tokio::test]
async fn a_call_on_a_dead_disk_does_not_start_early() {
    let world = dead();
    let request = |path: &str| ToolUse::new(CallId::nth(1), "read", json!({ "path": path }));
    assert!(world.dispatcher.harmless(&request("a")).await);
    assert!(!world.dispatcher.harmless(&request("dead/x")).await);
}
