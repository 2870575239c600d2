//! The person wants it to stop: at once, whatever runs, with one result for every call.

use std::time::Duration;

use haft_agent::Input;
use haft_types::{Body, CallId, Status, Stop, TurnEnd, When};
use serde_json::json;
use tokio::time::Instant;

use crate::world::{
    Scripted, Step, World, asks_for, calls, ended, ends, is_done, is_started, say, says,
};

/// How soon an interrupt is answered.
const SOON: Duration = Duration::from_millis(200);

async fn interrupted(world: &mut World, handle: &haft_agent::Handle) -> (Vec<Body>, Duration) {
    let began = Instant::now();
    handle.send(Input::Interrupt);
    let (seen, end) = world.until_ended().await;
    assert_eq!(end, TurnEnd::Interrupted);
    (seen, began.elapsed())
}

/// Every call of the log has exactly one end.
fn all_ended(world: &World) -> Vec<(CallId, Status)> {
    let log = world.log();
    let mut all = ended(log.iter().map(|event| &event.body));
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let mut ids: Vec<_> = all.iter().map(|(id, _)| id.clone()).collect();
    ids.dedup();
    assert_eq!(ids.len(), all.len(), "one end each: {all:?}");
    all
}

#[tokio::test(start_paused = true)]
async fn calls_that_run_and_calls_that_wait_end_within_200_ms() {
    let model = Scripted::new([
        vec![
            calls(1, "edit", &json!({"path": "a", "ms": 60_000})),
            calls(2, "endless", &json!({"path": "x"})),
            calls(3, "edit", &json!({"path": "a"})),
            ends(Stop::ToolUse),
        ],
        is_done("fine"),
    ]);
    let mut world = World::new();
    let handle = world.start(&model);
    handle.send(say("go"));
    world.until(|body| is_started(body, 2)).await;
    let (_, took) = interrupted(&mut world, &handle).await;
    assert!(took <= SOON, "{took:?}");
    let cancelled = [1, 2, 3].map(|n| (CallId::nth(n), Status::Cancelled));
    assert_eq!(all_ended(&world), cancelled);
    assert!(!world.did().contains(&"-edit a".to_owned()));
    let (_, end) = world.turn(&handle, "go on").await;
    assert_eq!(end, TurnEnd::Done { stop: Stop::EndTurn }, "and it goes on");
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_handle_is_dropped_ends_with_its_calls() {
    let model = Scripted::new([vec![
        calls(1, "endless", &json!({"path": "x"})),
        calls(2, "edit", &json!({"path": "a", "ms": 60_000})),
        calls(3, "edit", &json!({"path": "a"})),
        ends(Stop::ToolUse),
    ]]);
    let mut world = World::new();
    let handle = world.start(&model);
    let sender = handle.sender();
    handle.send(say("go"));
    world.until(|body| is_started(body, 2)).await;
    drop(handle);
    assert_eq!(world.until_ended().await.1, TurnEnd::Interrupted);
    assert_eq!(all_ended(&world), [1, 2, 3].map(|n| (CallId::nth(n), Status::Cancelled)));
    // Who still holds a sender is told that nobody listens, and does not keep the agent.
    assert_eq!(sender.withdraw(None).await, None);
    assert!(!sender.send(say("more")) && sender.is_idle());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_streams_ends_at_once_also_when_its_server_is_silent() {
    for last in [Step::Hangs, Step::Waits(60_000)] {
        let model = Scripted::new([
            vec![
                says("thinking about "),
                says("it"),
                calls(1, "endless", &json!({"path": "x"})),
                calls(2, "edit", &json!({"path": "a"})),
                last,
                ends(Stop::ToolUse),
            ],
            is_done("fine"),
        ]);
        let mut world = World::new();
        let handle = world.start(&model);
        handle.send(say("go"));
        world.until(|body| is_started(body, 1)).await;
        let (seen, took) = interrupted(&mut world, &handle).await;
        assert!(took <= SOON, "{took:?}");
        let is_cut = |b: &Body| matches!(b, Body::AnswerEnded { stop: Stop::Interrupted, .. });
        assert_eq!(seen.iter().filter(|body| is_cut(body)).count(), 1);
        let cancelled = [1, 2].map(|n| (CallId::nth(n), Status::Cancelled));
        assert_eq!(all_ended(&world), cancelled);
        world.turn(&handle, "go on").await;
        assert!(model.sent(1)[1].contains("thinking about it"), "what was said stays");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_must_finish_does() {
    let model = Scripted::new([vec![
        calls(1, "move", &json!({"path": "a", "ms": 2_000})),
        calls(2, "move", &json!({"path": "a"})),
        ends(Stop::ToolUse),
    ]]);
    let mut world = World::new();
    let handle = world.start(&model);
    handle.send(say("go"));
    world.until_journal("+move a").await;
    let (_, took) = interrupted(&mut world, &handle).await;
    assert!(took >= Duration::from_millis(1_900), "{took:?}");
    assert_eq!(world.did(), ["+move a", "-move a"], "the second one never began");
    let states = [Status::Done, Status::Cancelled];
    let expected: Vec<_> = (1..).map(CallId::nth).zip(states).collect();
    assert_eq!(all_ended(&world), expected);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_come_back_is_given_up_and_blocks_nothing() {
    let model = Scripted::new([
        vec![calls(1, "move", &json!({"path": "a", "ms": 100_000})), ends(Stop::ToolUse)],
        asks_for(&[("edit", "a")]),
        is_done("fine"),
    ]);
    let mut world = World::new();
    let handle = world.start(&model);
    handle.send(say("go"));
    world.until_journal("+move a").await;
    let (_, took) = interrupted(&mut world, &handle).await;
    assert!(took <= Duration::from_millis(10_200), "{took:?}");
    let began = Instant::now();
    let (_, end) = world.turn(&handle, "go on").await;
    assert_eq!(end, TurnEnd::Done { stop: Stop::EndTurn });
    assert!(began.elapsed() < Duration::from_secs(1), "the next turn's calls do not wait for it");
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(
        all_ended(&world),
        [(CallId::nth(1), Status::Cancelled), (CallId::nth(2), Status::Done)],
        "what was given up says nothing any more"
    );
}

#[tokio::test(start_paused = true)]
async fn words_that_waited_are_given_back_and_later_ones_begin_the_next_turn() {
    let model = Scripted::new([
        vec![calls(1, "move", &json!({"path": "a", "ms": 1_000})), ends(Stop::ToolUse)],
        is_done("fine"),
    ]);
    let mut world = World::new();
    let handle = world.start(&model);
    handle.send(say("go"));
    world.until_journal("+move a").await;
    handle.send(say("steer"));
    handle.send(Input::User { when: When::FollowUp, parts: vec!["follow".into()] });
    handle.send(Input::Interrupt);
    handle.send(say("instead"));
    let (seen, end) = world.until_ended().await;
    assert_eq!(end, TurnEnd::Interrupted);
    for text in ["steer", "follow"] {
        let back =
            |body: &&Body| matches!(body, Body::Unsent { parts } if parts[..] == [text.into()]);
        assert_eq!(seen.iter().filter(back).count(), 1, "{text}");
    }
    assert_eq!(world.until_ended().await.1, TurnEnd::Done { stop: Stop::EndTurn });
    let sent = model.sent(1).join("\n");
    assert!(sent.contains("instead") && !sent.contains("steer") && !sent.contains("follow"));
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_of_an_idle_agent_does_nothing() {
    let model = Scripted::new([is_done("fine"), is_done("fine")]);
    let mut world = World::new();
    let handle = world.start(&model);
    handle.send(Input::Interrupt);
    assert_eq!(world.turn(&handle, "go").await.1, TurnEnd::Done { stop: Stop::EndTurn });
    handle.send(Input::Interrupt);
    assert_eq!(world.turn(&handle, "go").await.1, TurnEnd::Done { stop: Stop::EndTurn });
}

#[tokio::test(start_paused = true)]
async fn closing_ends_what_runs_also_while_other_senders_are_there() {
    let model = Scripted::new([asks_for(&[("endless", "x")])]);
    let mut world = World::new();
    let handle = world.start(&model);
    let other = handle.sender();
    handle.send(say("go"));
    world.until(|body| is_started(body, 1)).await;
    let closed = tokio::time::timeout(Duration::from_secs(20), handle.close()).await;
    assert!(closed.is_ok(), "it waits for a sender that nobody drops");
    assert!(!other.send(say("hello?")), "and says that nobody listens");
    assert_eq!(world.until_ended().await.1, TurnEnd::Interrupted);
}
