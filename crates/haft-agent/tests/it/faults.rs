//! The disk is full, the home cannot be written, the provider breaks down: the turn ends with a
//! clear error, nothing runs unrecorded, no words are lost, and afterwards it goes on.

use haft_llm::LlmError;
use haft_types::{Body, CallId, Level, Status, Stop, TurnEnd};
use serde_json::json;

use crate::world::{Scripted, Step, World, asks_for, calls, ended, ends, is_done, says};

const LARGE: usize = 20_000;

fn done() -> TurnEnd {
    TurnEnd::Done { stop: Stop::EndTurn }
}

fn failed(end: &TurnEnd) -> &str {
    match end {
        TurnEnd::Failed { error } => error,
        other => panic!("the turn did not fail: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_home_that_cannot_be_written_ends_the_turn_before_anything_is_asked() {
    let mut world = World::new();
    std::fs::write(world.home.path().join("sessions"), "in the way").unwrap();
    let model = Scripted::new([is_done("fine")]);
    let handle = world.start(&model);
    for _ in 0..2 {
        let (seen, end) = world.turn(&handle, "precious words").await;
        let error = failed(&end);
        assert!(error.contains("sessions") && error.contains("HAFT_HOME"), "{error}");
        let back = |b: &Body| matches!(b, Body::Unsent { parts } if parts[..] == ["precious words".into()]);
        assert!(seen.iter().any(back), "the words are given back: {seen:#?}");
    }
    assert_eq!(model.asked(), 0);
    std::fs::remove_file(world.home.path().join("sessions")).unwrap();
    assert_eq!(world.turn(&handle, "again").await.1, done());
    let log = world.log();
    let pinned = log.iter().filter(|event| matches!(event.body, Body::Pinned { .. }));
    assert_eq!(pinned.count(), 1, "the prefix is kept as soon as that can be done");
}

#[tokio::test(start_paused = true)]
async fn words_that_cannot_be_kept_are_not_answered() {
    let mut world = World::new();
    let model = Scripted::new([is_done("one"), is_done("two")]);
    let handle = world.start(&model);
    assert_eq!(world.turn(&handle, "go").await.1, done());
    world.refuse_large();
    let (_, end) = world.turn(&handle, &"w".repeat(LARGE)).await;
    failed(&end);
    assert_eq!(model.asked(), 1, "an answer to what was not said would be wrong");
    assert_eq!(world.turn(&handle, "short").await.1, done());
    world.accept_large();
    assert_eq!(world.turn(&handle, &"w".repeat(LARGE)).await.1, done());
    assert_eq!(model.sent(2).len(), 5, "what failed left nothing behind");
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_when_its_begin_cannot_be_kept() {
    let mut world = World::new();
    let model = Scripted::new([
        asks_for(&[("grep", ".")]),
        vec![
            Step::Waits(1_000),
            calls(1, "edit", &json!({"path": "a", "title": LARGE})),
            calls(2, "edit", &json!({"path": "b"})),
            ends(Stop::ToolUse),
        ],
        is_done("fine"),
    ]);
    let handle = world.start(&model);
    handle.send(crate::world::say("go"));
    world.until(|body| matches!(body, Body::AnswerEnded { .. })).await;
    world.refuse_large();
    let (seen, end) = world.until_ended().await;
    assert_eq!(end, done());
    let did = world.did();
    assert!(!did.contains(&"+edit a".to_owned()), "{did:?}");
    assert!(did.contains(&"-edit b".to_owned()), "{did:?}");
    let log = world.log();
    let mut all = ended(log.iter().map(|event| &event.body));
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let status = [Status::Done, Status::Failed, Status::Done];
    let expected: Vec<_> = (1..).map(CallId::nth).zip(status).collect();
    assert_eq!(all, expected, "one result each all the same");
    let warned =
        |b: &Body| matches!(b, Body::Notice { level: Level::Error, text } if text.contains("c2"));
    assert!(seen.iter().any(warned), "{seen:#?}");
}

#[tokio::test(start_paused = true)]
async fn of_a_result_that_cannot_be_kept_the_model_gets_what_can() {
    let mut world = World::new();
    let call = calls(1, "edit", &json!({"path": "a", "bytes": LARGE}));
    let model = Scripted::new([is_done("one"), vec![call, ends(Stop::ToolUse)], is_done("fine")]);
    let handle = world.start(&model);
    world.turn(&handle, "go").await;
    world.refuse_large();
    let (seen, end) = world.turn(&handle, "go").await;
    assert_eq!(end, done());
    let told =
        |b: &Body| matches!(b, Body::Notice { level: Level::Error, text } if text.contains("c1"));
    assert!(seen.iter().any(told), "{seen:#?}");
    assert_eq!(world.did(), ["+edit a", "-edit a"]);
    let sent = model.sent(2);
    let last = sent.last().unwrap();
    assert!(last.contains("edit arrr") && last.contains("not all of this result"), "{sent:#?}");
    assert!(last.len() < 10_000 && !last.contains("is_error"), "{sent:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_kept_ends_the_turn_and_runs_nothing_more() {
    let mut world = World::new();
    let large = json!({"path": "a", "note": "n".repeat(LARGE)});
    let model = Scripted::new([
        is_done("one"),
        vec![says("so"), calls(1, "edit", &large), ends(Stop::ToolUse)],
        is_done("fine"),
    ]);
    let handle = world.start(&model);
    world.turn(&handle, "go").await;
    world.refuse_large();
    let (seen, end) = world.turn(&handle, "go").await;
    assert!(failed(&end).contains("HAFT_HOME"), "{end:?}");
    assert!(seen.iter().any(|b| matches!(b, Body::AnswerFailed { retried: false, .. })));
    assert!(world.did().is_empty());
    assert_eq!(world.turn(&handle, "go on").await.1, done());
    let sent = model.sent(2).join("\n");
    assert!(!sent.contains("tool_use"), "a call that is not in the log is in no request");
}

#[tokio::test(start_paused = true)]
async fn each_failure_of_a_provider_ends_the_turn_and_leaves_the_agent_usable() {
    let failures = [
        vec![Step::Fails(LlmError::Config("no key".into()))],
        vec![says("x"), Step::Fails(LlmError::TooLong("far too long".into()))],
        vec![says("x")],
        vec![],
    ];
    for failure in failures {
        let mut world = World::new();
        let model = Scripted::new([failure, is_done("fine")]);
        let handle = world.start(&model);
        let (seen, end) = world.turn(&handle, "go").await;
        assert!(!failed(&end).is_empty());
        assert!(seen.iter().any(|b| matches!(b, Body::AnswerFailed { retried: false, .. })));
        assert_eq!(world.turn(&handle, "again").await.1, done());
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_breaks_down_says_so_and_takes_no_more() {
    let mut world = World::new();
    let endless = calls(1, "endless", &json!({"path": "x"}));
    let model = Scripted::new([vec![endless, Step::Waits(1_000), Step::Panics]]);
    let handle = world.start(&model);
    let (_, end) = world.turn(&handle, "go").await;
    assert!(failed(&end).contains("the provider broke"), "{end:?}");
    let seen = world.until(|body| matches!(body, Body::CallEnded { .. })).await;
    assert_eq!(ended(&seen), [(CallId::nth(1), Status::Cancelled)], "what ran is stopped");
    while handle.send(crate::world::say("hello?")) {
        tokio::task::yield_now().await;
    }
    handle.close().await;
}

#[tokio::test(start_paused = true)]
async fn many_turns_leave_nothing_behind_but_the_conversation() {
    const TURNS: usize = 150;
    let mut world = World::new();
    let answers = (0..TURNS).flat_map(|_| [asks_for(&[("grep", ".")]), is_done("fine")]);
    let model = Scripted::new(answers);
    let handle = world.start(&model);
    for _ in 0..TURNS {
        assert_eq!(world.turn(&handle, "go").await.1, done());
    }
    assert_eq!(*model.encoded.lock().unwrap(), 4 * TURNS - 1, "each message once");
    handle.close().await;
    // The log's last sync may still wait.
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let held = std::sync::Arc::strong_count(&world.dispatcher);
    assert_eq!(held, 1, "driver and runner are gone");
}
