//! `sleep`: what ends it, and that nothing else does.

use std::time::Duration;

use haft_testkit::world::World;
use haft_tool::Arrivals;
use haft_types::{Body, Outcome, Status};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

fn world() -> World {
    World::memory(haft_tools::builtin(), [("a", "")]).unwrap()
}

fn took(world: &World) -> Option<u64> {
    world.recorder.bodies().into_iter().find_map(|body| match body {
        Body::CallEnded { took, .. } => Some(took),
        _ => None,
    })
}

fn woke(outcome: &Outcome) -> &str {
    outcome.data.as_ref().unwrap()["woke"].as_str().unwrap()
}

/// The usual limit of a call is a quarter of an hour.
#[tokio::test(start_paused = true)]
async fn an_hour_is_slept_and_no_more() {
    for seconds in [3_600_u64, 100_000] {
        let (world, begin) = (world(), Instant::now());
        let outcome = world.call("sleep", json!({ "seconds": seconds })).await;
        assert_eq!(outcome.status, Status::Done, "{outcome:?}");
        assert_eq!(begin.elapsed().as_secs(), 3_600);
        assert_eq!(woke(&outcome), "time");
        let text = outcome.joined_text();
        assert!(text.starts_with("Slept 3600"), "{text}");
        assert_eq!(text.contains("[96400 s are left"), seconds > 3_600, "{text}");
        assert_eq!(took(&world).map(|took| took / 1_000), Some(3_600), "it is the call's own time");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_ends_it_and_one_that_waits_lets_none_begin() {
    let (world, begin) = (world(), Instant::now());
    let arrivals = world.dispatcher.conversation.map.get::<Arrivals>();
    let (outcome, ()) = tokio::join!(world.call("sleep", json!({"seconds": 600})), async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        arrivals.set(true);
    });
    assert_eq!((woke(&outcome), begin.elapsed().as_secs()), ("message", 10), "{outcome:?}");
    let outcome = world.call("sleep", json!({"seconds": 600})).await;
    assert_eq!((woke(&outcome), begin.elapsed().as_secs()), ("message", 10), "{outcome:?}");
    arrivals.set(false);
    let outcome = world.call("sleep", json!({"seconds": 5})).await;
    assert_eq!((woke(&outcome), begin.elapsed().as_secs()), ("time", 15), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn it_is_cancelled_and_holds_no_other_call_up() {
    let (world, stop) = (world(), CancellationToken::new());
    let begin = Instant::now();
    let sleeping = world.call_until("sleep", json!({"seconds": 600}), stop.clone());
    let (outcome, ()) = tokio::join!(sleeping, async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let other = world.call("write", json!({"path": "b", "content": "x"})).await;
        assert!(matches!(other.status, Status::Done | Status::Denied), "{other:?}");
        stop.cancel();
    });
    assert_eq!(outcome.status, Status::Cancelled, "{outcome:?}");
    assert_eq!(begin.elapsed().as_secs(), 1);
}
