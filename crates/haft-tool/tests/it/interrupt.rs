//! Interrupts and timeouts: what is cancelled ends soon, with what it has, or finishes.

use std::time::Duration;

use haft_tool::{Hook, HookCall as Call, Limits, PreCall, Settings, standard};
use haft_types::{OnInterrupt, Outcome, Status};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::{Probe, begun_and_ended, call, with_pipeline, world};

/// Shows that it is at work, so that the test knows when to cancel.
fn at_work(cx: &haft_tool::Cx) {
    cx.output(haft_types::Stream::Stdout, "at work".into());
}

async fn until_at_work(world: &haft_testkit::world::World) {
    world.recorder.until(|body| matches!(body, haft_types::Body::CallOutput { .. })).await;
}

/// Cancels once the tool works; gives the outcome and how long it took from then.
async fn cancelled(probe: Probe) -> (Outcome, Duration) {
    let (world, runs) = world([probe]);
    let stop = CancellationToken::new();
    let running = world.call_until("slow", json!({}), stop.clone());
    let (outcome, since) = tokio::join!(running, async {
        until_at_work(&world).await;
        stop.cancel();
        Instant::now()
    });
    assert_eq!(runs.of("slow"), 1);
    assert_eq!(begun_and_ended(&world).1.len(), 1);
    (outcome, since.elapsed())
}

#[tokio::test]
async fn a_call_that_is_stopped_already_never_runs() {
    for kind in [OnInterrupt::Cancel, OnInterrupt::Finish] {
        let (world, runs) = world([Probe::new("slow").spec(|spec| spec.on_interrupt = kind)]);
        let stop = CancellationToken::new();
        stop.cancel();
        let outcome = world.call_until("slow", json!({}), stop).await;
        assert_eq!((outcome.status, runs.of("slow")), (Status::Cancelled, 0));
        assert_eq!(outcome.joined_text(), "cancelled before it ran");
        assert_eq!(begun_and_ended(&world).1.len(), 1, "it is on record all the same");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_listens_gives_what_it_has() {
    let probe = Probe::new("slow").run(|_, cx| async move {
        at_work(&cx);
        cx.stop.cancelled().await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok(Outcome::ended(Status::Cancelled, "half of it"))
    });
    let (outcome, took) = cancelled(probe).await;
    assert_eq!((outcome.status, &*outcome.joined_text()), (Status::Cancelled, "half of it"));
    assert!(took < Duration::from_millis(200), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_listen_is_dropped_in_time() {
    let probe = Probe::new("slow").run(|_, cx| async move {
        at_work(&cx);
        std::future::pending().await
    });
    let (outcome, took) = cancelled(probe).await;
    assert_eq!(outcome.status, Status::Cancelled);
    assert!(outcome.joined_text().contains("not known"), "{outcome:?}");
    assert!(took <= Duration::from_millis(200), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_must_finish_finishes_and_hears_nothing() {
    let probe = Probe::new("slow").spec(|spec| spec.on_interrupt = OnInterrupt::Finish);
    let probe = probe.run(|_, cx| async move {
        at_work(&cx);
        tokio::time::sleep(Duration::from_mins(1)).await;
        Ok(Outcome::text(format!("heard {}", cx.stop.is_cancelled())))
    });
    let (outcome, took) = cancelled(probe).await;
    assert_eq!((outcome.status, &*outcome.joined_text()), (Status::Done, "heard false"));
    assert!(took >= Duration::from_mins(1), "{took:?}");
}

/// Cancels the call while it is judged.
struct Cancels(CancellationToken);

impl Hook for Cancels {
    fn before<'a>(&'a self, _: &'a Call) -> futures::future::BoxFuture<'a, PreCall> {
        self.0.cancel();
        Box::pin(std::future::ready(PreCall::default()))
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_while_it_is_judged_never_runs() {
    for kind in [OnInterrupt::Cancel, OnInterrupt::Finish] {
        let (world, runs) = world([Probe::new("slow").spec(|spec| spec.on_interrupt = kind)]);
        let stop = CancellationToken::new();
        let hooks: Vec<std::sync::Arc<dyn Hook>> = vec![std::sync::Arc::new(Cancels(stop.clone()))];
        let settings = Settings { hooks, ..Settings::default() };
        let dispatcher = with_pipeline(&world, standard(&settings));
        let (_, outcome) = dispatcher.call("slow", json!({}), stop).await;
        assert_eq!((outcome.status, runs.of("slow")), (Status::Cancelled, 0), "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_nested_call_is_cancelled_with_the_outer_one() {
    let inner = Probe::new("inner").run(|_, cx| async move {
        at_work(&cx);
        cx.stop.cancelled().await;
        Ok(Outcome::ended(Status::Cancelled, "inner half"))
    });
    let outer = Probe::new("slow").run(|_, cx| async move {
        let inner = cx.call("inner", json!({})).await;
        Ok(Outcome::ended(inner.status, inner.joined_text()))
    });
    let (world, _) = world([inner, outer]);
    let stop = CancellationToken::new();
    let running = world.call_until("slow", json!({}), stop.clone());
    let (outcome, ()) = tokio::join!(running, async {
        until_at_work(&world).await;
        stop.cancel();
    });
    assert_eq!(outcome.joined_text(), "inner half");
}

fn timed() -> Settings {
    let limits = Limits { call: Some(Duration::from_mins(1)), ..Limits::default() };
    Settings { limits, ..Settings::default() }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_too_long_ends_with_what_it_has() {
    let probe = Probe::new("slow").run(|_, cx| async move {
        cx.stop.cancelled().await;
        Ok(Outcome::text("half of it"))
    });
    let (world, _) = world([probe]);
    let began = Instant::now();
    let outcome = call(&with_pipeline(&world, standard(&timed())), "slow", json!({})).await;
    assert_eq!(outcome.status, Status::TimedOut);
    assert!(outcome.joined_text().contains("timed out after 60s"), "{outcome:?}");
    assert!(outcome.joined_text().ends_with("half of it"), "{outcome:?}");
    assert!(began.elapsed() < Duration::from_secs(61));
}

#[tokio::test(start_paused = true)]
async fn a_stubborn_call_that_runs_too_long_is_dropped_also_when_it_wants_to_finish() {
    for kind in [OnInterrupt::Cancel, OnInterrupt::Finish] {
        let probe = Probe::new("slow").run(|_, _| std::future::pending());
        let (world, _) = world([probe.spec(|spec| spec.on_interrupt = kind)]);
        let began = Instant::now();
        let outcome = call(&with_pipeline(&world, standard(&timed())), "slow", json!({})).await;
        assert_eq!(outcome.status, Status::TimedOut, "{outcome:?}");
        assert!(began.elapsed() < Duration::from_secs(61));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_just_in_time_is_left_alone() {
    let probe = Probe::new("slow").run(|_, _| async {
        tokio::time::sleep(Duration::from_secs(59)).await;
        Ok(Outcome::text("all of it"))
    });
    let (world, _) = world([probe]);
    let outcome = call(&with_pipeline(&world, standard(&timed())), "slow", json!({})).await;
    assert_eq!((outcome.status, &*outcome.joined_text()), (Status::Done, "all of it"));
}
