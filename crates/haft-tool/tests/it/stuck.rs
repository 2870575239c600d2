//! A disk that does not answer: the call ends in time, can be cancelled, and tells nothing denied.

use std::{
    future::{pending, ready},
    sync::Arc,
    time::Duration,
};

use futures::FutureExt as _;
use haft_host::Memory;
use haft_policy::Verdict;
use haft_testkit::{
    slow::{Look, Slow},
    world::World,
};
use haft_tool::{Dispatcher, Limits, Settings, standard};
use haft_types::{CallId, Follow, Status, ToolUse};
use serde_json::json;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::support::{Probe, at, begun_and_ended, call, tools, with_pipeline};

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
    let heard = asked.clone();
    // Nothing below `/w/dead` is ever found, and nothing is ever read.
    let host = Slow::new(inner, move |look, path| {
        if look == Look::Locate && !path.is_within(&at("/w/dead")) {
            return ready(()).boxed();
        }
        heard.notify_one();
        pending().boxed()
    });
    (World::on(Arc::new(host), at("/w"), tools([reader, checker]).0), asked)
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
