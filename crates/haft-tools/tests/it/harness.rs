//! Every built-in tool stands what every tool has to stand.

use std::sync::Arc;

use haft_testkit::{
    harness::{self, Make},
    world::World,
};
use haft_tool::{History, SnipReport, WithHistory};
use haft_types::{Reply, TurnId};
use serde_json::json;

use crate::samples;

/// A conversation that has one call.
struct OneCall;

impl History for OneCall {
    fn snip(&self, _: TurnId, from: &str, _: &str, _: &str) -> Result<SnipReport, String> {
        let report = SnipReport { messages: 2, calls: 1, saved: 900, uncached: 100 };
        (from == "out://c1").then_some(report).ok_or_else(|| format!("{from:?} is no place"))
    }
}

/// Gives the calls of a world a conversation that they are part of, a task, and a person who answers.
fn with_history(world: World) -> World {
    let reply = Reply { input: Some(json!({"q1": "A"})), ..Reply::pick("answer") };
    world.answer([reply]);
    world.dispatcher.conversation.map.get::<WithHistory>().set(Arc::new(OneCall));
    let task = json!({"task": {"id": 1, "subject": "Mend it"}});
    let shared = &world.dispatcher.session.shared;
    shared.restore([("shared task 0001".to_owned(), task)].into());
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tool_passes_on_both_hosts() {
    let memory: Make<'_> =
        &|tools, files| with_history(World::memory(tools, files.iter().copied()).unwrap());
    let local: Make<'_> =
        &|tools, files| with_history(World::local(tools, files.iter().copied()).unwrap());
    let worlds = [("memory", memory), ("local", local)];
    let problems = harness::run(&haft_tools::builtin(), &samples::all(), &worlds).await;
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[tokio::test]
async fn a_tool_without_a_sample_fails() {
    let memory: Make<'_> = &|tools, files| World::memory(tools, files.iter().copied()).unwrap();
    let problems = harness::run(&haft_tools::builtin(), &[], &[("memory", memory)]).await;
    assert!(problems.iter().any(|problem| problem.contains("read: has no sample")), "{problems:?}");
}
