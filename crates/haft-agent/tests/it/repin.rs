//! Breaks at run time: another model and other tools from the next request on.

use std::sync::Arc;

use haft_agent::{ContextLimits, Pinned, Repin};
use haft_llm::Target;
use haft_tool::{Dispatcher, Registry};
use haft_types::{Body, BreakCause, Env, TurnEnd};

use crate::world::{Scripted, World, asks_for, is_done, say, tools_of};

fn repin(world: &World, model: &Arc<Scripted>, name: &str, tools: &str) -> Repin {
    Repin {
        cause: Some(BreakCause::Model),
        dispatcher: world.dispatcher.clone(),
        provider: model.clone(),
        name: name.into(),
        target: Target { model: name.into(), vision: false },
        effort: None,
        pinned: Pinned {
            system: vec!["who you are".into(), "where you are".into()],
            tools: tools.into(),
            format: String::new(),
        },
        context: ContextLimits::default(),
        prices: None,
        output: None,
        max_tokens: None,
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_breaks_before_one_request_the_last_counts() {
    let mut world = World::new();
    let model = Scripted::new([is_done("one"), is_done("two"), is_done("three")]);
    let handle = world.start(&model);
    world.turn(&handle, "begin").await;
    let before = model.requests.lock().unwrap()[0].tools.to_string();
    let after = before.replacen("does as it is told", "does what is asked", 1);
    let differs = before.bytes().zip(after.bytes()).position(|(a, b)| a != b).unwrap();
    assert!(handle.repin(repin(&world, &model, "m2", "[]")));
    assert!(handle.repin(repin(&world, &model, "m3", &after)));
    world.turn(&handle, "go on").await;
    world.turn(&handle, "and on").await;
    let requests = model.requests.lock().unwrap().clone();
    let models: Vec<&str> = requests.iter().map(|request| &*request.model).collect();
    assert_eq!(models, ["m", "m3", "m3"]);
    // The two that follow have one prefix.
    assert_eq!(
        (&requests[1].tools, &requests[1].system),
        (&requests[2].tools, &requests[2].system)
    );
    let sent = |nth: usize| model.sent(nth);
    assert_eq!(sent(1)[..], sent(2)[..sent(1).len()]);
    let breaks: Vec<(BreakCause, Option<u64>)> = world
        .log()
        .into_iter()
        .filter_map(|event| match event.body {
            Body::Break { cause, at_byte } => Some((cause, at_byte)),
            _ => None,
        })
        .collect();
    let at = u64::try_from(differs).unwrap();
    assert_eq!(breaks, [(BreakCause::First, None), (BreakCause::Model, Some(at))]);
}

#[tokio::test(start_paused = true)]
async fn a_break_before_the_first_request_is_none() {
    let mut world = World::new();
    let model = Scripted::new([is_done("one")]);
    let handle = world.start(&model);
    handle.repin(repin(&world, &model, "m2", "[]"));
    world.turn(&handle, "begin").await;
    assert_eq!(model.requests.lock().unwrap()[0].model, "m2");
    let causes: Vec<BreakCause> = world
        .log()
        .into_iter()
        .filter_map(|event| match event.body {
            Body::Break { cause, .. } => Some(cause),
            _ => None,
        })
        .collect();
    assert_eq!(causes, [BreakCause::First]);
}

#[tokio::test(start_paused = true)]
async fn what_an_answer_calls_runs_with_the_tools_that_its_request_had() {
    let mut world = World::new();
    // The tool that is called stands in the old set alone.
    let model = Scripted::new([asks_for(&[("edit", "/w/a")]), is_done("done"), is_done("more")]);
    let handle = world.start(&model);
    assert!(handle.send(say("begin")));
    world.until(|body| matches!(body, Body::CallStarted { .. })).await;
    let none = Arc::new(Dispatcher {
        tools: Arc::new(Registry::default().assemble(&Env::default())),
        ..(*world.dispatcher).clone()
    });
    handle.repin(Repin { cause: None, dispatcher: none, ..repin(&world, &model, "no", "[]") });
    let (_, end) = world.until_ended().await;
    assert!(matches!(end, TurnEnd::Done { .. }), "{end:?}");
    assert_eq!(world.did(), ["+edit /w/a", "-edit /w/a"]);
    // Without a cause no byte of the prefix moves, and no model changes.
    let requests = model.requests.lock().unwrap().clone();
    assert_eq!((&requests[0].tools, &requests[0].model), (&requests[1].tools, &requests[1].model));
    let breaks =
        world.log().iter().filter(|event| matches!(event.body, Body::Break { .. })).count();
    assert_eq!(breaks, 1);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_comes_without_a_cause_is_callable_and_moves_no_byte() {
    let mut world = World::new();
    let model = Scripted::new([is_done("one"), asks_for(&[("late", "/w/a")]), is_done("two")]);
    let handle = world.start(&model);
    world.turn(&handle, "begin").await;
    let more = Arc::new(Dispatcher {
        tools: Arc::new(tools_of(&world.journal, &["edit", "late"])),
        ..(*world.dispatcher).clone()
    });
    handle.repin(Repin { cause: None, dispatcher: more, ..repin(&world, &model, "no", "[]") });
    world.turn(&handle, "go on").await;
    assert_eq!(world.did(), ["+late /w/a", "-late /w/a"]);
    let requests = model.requests.lock().unwrap().clone();
    assert!(requests.iter().all(|one| one.tools == requests[0].tools && one.model == "m"));
}
