//! What a wait for a job's line, or its port, costs and finds, whatever was asked for.

use std::{
    net::{TcpListener, UdpSocket},
    time::{Duration, Instant},
};

use haft_testkit::machine;
use haft_types::Status;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::jobs::{begin, data, job, world};

/// Longest that a wait may take beyond its time, on a machine that is busy.
const SLACK: Duration = Duration::from_secs(3);

/// A line over which a search for some patterns takes long, and a job that has said it.
const LONG: &str = "head -c 65536 /dev/zero | tr '\\0' a; echo; echo said >&2; sleep 100";

/// Takes long over that line.
const COSTLY: &str = "[a-c]{3000}x";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pattern_keeps_nobody_beyond_the_time() {
    let world = world();
    begin(&world, LONG).await;
    job(&world, "wait", json!({"pattern": "said"})).await;
    for pattern in [COSTLY, "[a-c]{2000}y"] {
        let began = Instant::now();
        let wait = json!({"pattern": pattern, "timeout_ms": 300, "since": 0});
        let outcome = job(&world, "wait", wait).await;
        assert_eq!(outcome.status, Status::Done, "{}", outcome.joined_text());
        assert_eq!(data(&outcome)["waited"], "timeout", "{pattern}");
        assert!(began.elapsed() < SLACK, "{pattern}: {:?}", began.elapsed());
    }
    // A cancelled one is over at once.
    let stop = CancellationToken::new();
    let wait = json!({"action": "wait", "pattern": COSTLY, "since": 0});
    let call = world.dispatcher.call("job", wait, stop.clone());
    let cancels = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        stop.cancel();
        Instant::now()
    };
    let ((_, outcome), cancelled) = tokio::join!(call, cancels);
    assert_eq!(outcome.status, Status::Cancelled, "{}", outcome.joined_text());
    assert!(cancelled.elapsed() < SLACK, "{:?}", cancelled.elapsed());
    // What the job says meanwhile is taken in.
    let looked = job(&world, "output", json!({"since": 0})).await;
    assert!(looked.joined_text().contains("said"));
}

#[tokio::test]
async fn a_pattern_that_is_too_large_is_refused() {
    let world = world();
    begin(&world, "sleep 100").await;
    let outcome = job(&world, "wait", json!({"pattern": "[a-c]{50000}x"})).await;
    assert_eq!(outcome.status, Status::Failed, "{}", outcome.joined_text());
    let text = outcome.joined_text();
    assert!(text.contains("[a-c]{50000}x is too large a pattern"), "{text}");
    assert!(text.contains("repeat") && !text.contains("put a backslash"), "{text}");
    // Ordinary ones are none of those.
    for pattern in [r"(?i)listening on \S+:\d+", r"^\w+@\w+\.\w+ \d{4}-\d{2}-\d{2}", r".{0,100}x"] {
        let wait = json!({"pattern": pattern, "timeout_ms": 1});
        let outcome = job(&world, "wait", wait).await;
        assert_eq!(outcome.status, Status::Done, "{pattern}: {}", outcome.joined_text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pattern_that_matches_nothing_waits_for_a_line() {
    for (pattern, says, line) in [
        (".*", "echo one", "one"),
        ("^", "echo one", "one"),
        ("$", "echo one", "one"),
        ("x*", "printf 'part'; sleep 100", "part"),
        ("^$", "echo one; echo; echo two", ""),
    ] {
        let world = world();
        begin(&world, &format!("until [ -e go ]; do sleep 0.02; done; {says}; sleep 100")).await;
        let wait = json!({"pattern": pattern, "timeout_ms": 300});
        let outcome = job(&world, "wait", wait).await;
        assert_eq!(data(&outcome)["waited"], "timeout", "{pattern}: {}", outcome.joined_text());
        std::fs::write(world.folder().unwrap().join("go"), "").unwrap();
        let outcome = job(&world, "wait", json!({"pattern": pattern})).await;
        assert_eq!(data(&outcome)["waited"], "pattern", "{pattern}: {}", outcome.joined_text());
        assert_eq!(data(&outcome)["line"], line, "{pattern}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_line_of_a_job_is_found_before_its_end() {
    let world = world();
    for _ in 0..5 {
        let id = begin(&world, "for n in $(seq 20000); do echo line $n; done; printf last").await;
        let outcome = job(&world, "wait", json!({"job": id, "pattern": "^last$"})).await;
        assert_eq!(data(&outcome)["waited"], "pattern", "{}", outcome.joined_text());
        let id = begin(&world, "seq 20000").await;
        let outcome = job(&world, "wait", json!({"job": id, "pattern": "^never$"})).await;
        assert_eq!(data(&outcome)["waited"], "end", "{}", outcome.joined_text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_is_found_at_whatever_address_and_by_udp() {
    let world = world();
    let python = machine::program("python3");
    let server = |kind: &str, at: &str, port: u16| {
        format!(
            "exec {} -c \"import socket, time; s = socket.socket(socket.AF_INET, socket.{kind}); \
             time.sleep(0.5); s.bind(('{at}', {port})); s.listen() if '{kind}' == 'SOCK_STREAM' \
             else 0; time.sleep(100)\"",
            python.display()
        )
    };
    for (kind, at, shown) in [
        ("SOCK_STREAM", "127.0.0.2", "127.0.0.2:"),
        ("SOCK_DGRAM", "127.0.0.1", "udp 127.0.0.1:"),
        ("SOCK_DGRAM", "0.0.0.0", "udp 0.0.0.0:"),
    ] {
        let port = if kind == "SOCK_STREAM" {
            TcpListener::bind((at, 0)).unwrap().local_addr().unwrap().port()
        } else {
            UdpSocket::bind((at, 0)).unwrap().local_addr().unwrap().port()
        };
        let id = begin(&world, &server(kind, at, port)).await;
        let wait = json!({"job": id, "port": port, "timeout_ms": 20_000});
        let outcome = job(&world, "wait", wait).await;
        let text = outcome.joined_text();
        assert_eq!(data(&outcome)["waited"], "port", "{kind} {at}: {text}");
        let told = format!("[port {port} is open, at {shown}{port}]");
        assert!(text.contains(&told), "{kind} {at}: {text}");
        job(&world, "stop", json!({"job": id})).await;
    }
}
