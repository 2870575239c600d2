//! A file system that does not answer holds up the call that wants it, and nothing else.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::FutureExt as _;
use haft_agent::{Agent, AgentConfig};
use haft_host::{Host, Memory};
use haft_testkit::slow::{Look, Slow};
use haft_tool::Dispatcher;
use haft_types::{Body, CallId, Part, Status, Stop, TurnEnd};
use serde_json::json;
use tokio::time::Instant;

use crate::world::{Scripted, Step, World, calls, ended, ends, is_done, is_started, say, says};

/// A host whose files below `/w` cannot be looked up until the flag is down.
fn stuck() -> (Arc<dyn Host>, Arc<AtomicBool>) {
    let stuck = Arc::new(AtomicBool::new(true));
    let flag = stuck.clone();
    let host = Slow::new(Memory::with_files([("/w/a", "a")]).unwrap(), move |look, path| {
        let (flag, below) = (flag.clone(), path.text().starts_with("/w"));
        async move {
            while look == Look::Locate && below && flag.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        .boxed()
    });
    (Arc::new(host), stuck)
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_does_not_wait_for_a_file_system() {
    let model = Scripted::new([
        vec![calls(1, "grep", &json!({"path": "."})), Step::Hangs],
        is_done("fine"),
    ]);
    let mut world = World::new();
    let dispatcher = Dispatcher { host: stuck().0, ..(*world.dispatcher).clone() };
    let setup = AgentConfig { dispatcher: Arc::new(dispatcher), ..world.setup(&model) };
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
    let (host, stuck) = stuck();
    let dispatcher = Dispatcher { host, ..(*world.dispatcher).clone() };
    let setup = AgentConfig { dispatcher: Arc::new(dispatcher), ..world.setup(&model) };
    let handle = Agent::start(setup);
    // Shorter than the look at a call may take before it is given up.
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(150)).await;
        stuck.store(false, Ordering::SeqCst);
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
