//! Every built-in tool stands what every tool has to stand.

use haft_testkit::{
    harness::{self, Make},
    world::World,
};

use crate::samples;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tool_passes_on_both_hosts() {
    let memory: Make<'_> = &|tools, files| World::memory(tools, files.iter().copied()).unwrap();
    let local: Make<'_> = &|tools, files| World::local(tools, files.iter().copied()).unwrap();
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
