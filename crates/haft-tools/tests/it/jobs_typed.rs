//! What is typed into jobs, and what a terminal makes of it.

use haft_types::Status;
use serde_json::json;

use crate::jobs::{begin, begin_with, data, job, world};

/// While a program reads whole lines, its terminal holds 4,095 bytes of one, and drops what follows.
#[tokio::test]
async fn a_line_that_a_terminal_would_cut_is_refused() {
    let world = world();
    let command = "echo up; while IFS= read -r line; do echo \"${#line} read\"; done";
    let at_terminal = json!({"command": command, "pty": true});
    begin_with(&world, at_terminal).await;
    job(&world, "wait", json!({"pattern": "up"})).await;
    let reads = async |text: &str, wanted: &str| {
        let sent = job(&world, "input", json!({"text": text})).await;
        assert_eq!(sent.status, Status::Done, "{}", sent.joined_text());
        let found = job(&world, "wait", json!({"pattern": wanted, "timeout_ms": 20_000})).await;
        assert_eq!(data(&found)["waited"], "pattern", "{wanted} {}", found.joined_text());
    };
    let refused = async |text: &str| {
        let refused = job(&world, "input", json!({"text": text})).await;
        let told = refused.joined_text();
        assert!(refused.status == Status::Failed && told.contains("4095 bytes"), "{told}");
        assert!(told.contains("Nothing was sent") && told.contains("without pty"), "{told}");
    };
    reads(&format!("{}\n", "x".repeat(4_095)), "4095 read").await;
    refused(&format!("a\n{}\nb\n", "x".repeat(4_096))).await;
    // What was begun before counts, and what was refused was not sent.
    reads(&format!("one\n{}", "y".repeat(4_000)), "3 read").await;
    refused(&format!("{}\n", "z".repeat(96))).await;
    reads(&format!("{}\n", "z".repeat(95)), "4095 read").await;
    job(&world, "stop", json!({})).await;

    // A pipe has no such bound, nor has a terminal whose program reads keys.
    let piped = begin(&world, command).await;
    let long = format!("{}\n", "x".repeat(9_000));
    job(&world, "input", json!({"job": piped, "text": long})).await;
    let found = job(&world, "wait", json!({"job": piped, "pattern": "9000 read"})).await;
    assert_eq!(data(&found)["waited"], "pattern", "{}", found.joined_text());
    job(&world, "stop", json!({"job": piped})).await;
    let keys = json!({"command": "stty raw -echo; echo up; head -c 9000 | wc -c", "pty": true});
    let keys = begin_with(&world, keys).await;
    job(&world, "wait", json!({"job": keys, "pattern": "up"})).await;
    job(&world, "input", json!({"job": keys, "text": "x".repeat(9_000)})).await;
    let found = job(&world, "wait", json!({"job": keys, "pattern": "9000"})).await;
    assert_eq!(data(&found)["waited"], "pattern", "{}", found.joined_text());
}
