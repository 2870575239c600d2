//! A server that is away for a while: what a person sees, what stops it, and what is kept.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use haft_testkit::http::HttpResponse;
use haft_types::Body;
use serde_json::json;

use crate::{
    line::terminal::Tmux,
    mock_provider::{Mock, Wire},
    world::{Input, PATIENCE, World, finish, signal_all, until},
};

const WIRE: Wire = Wire::OpenAi;

fn busy(retry_after: &str) -> HttpResponse {
    let mut busy = HttpResponse::new(529, "application/json", "{\"error\":\"overloaded\"}");
    busy.headers.push(("retry-after".into(), retry_after.into()));
    busy
}

/// A talk with a model of this server, which no other test names.
fn talk(world: &World, mock: &Mock, flags: &str) -> Tmux {
    world.settings(&format!("[providers.mock]\naddress = {:?}\n", mock.url()));
    Tmux::talk(world, &model(mock), flags)
}

fn model(mock: &Mock) -> String {
    format!("mock/at-{}", mock.url().rsplit(':').next().unwrap())
}

/// How often each call was begun.
fn begun(world: &World) -> Vec<u64> {
    let mut counts = std::collections::BTreeMap::new();
    for event in world.events() {
        if let Body::CallStarted { call, .. } = event.body {
            *counts.entry(call).or_default() += 1;
        }
    }
    counts.into_values().collect()
}

#[test]
fn a_wait_counts_down_and_is_stopped_at_once() {
    let (world, mock) = (World::new(), Mock::with(|_, _| busy("60")));
    let tmux = talk(&world, &mock, "");
    tmux.line("hello");
    let screen = tmux.sees("asking again in 5");
    assert!(screen.contains("overloaded") && screen.contains("Ctrl-C stops"), "{screen}");
    println!("{screen}");
    // A line can be typed meanwhile, and the count goes on where it is sent.
    tmux.line("and another one");
    tmux.sees("> and another one");
    tmux.sees("asking again in");
    tmux.key("C-c");
    tmux.sees("interrupted");
    // What was not sent is in the line again.
    let screen = tmux.sees("> and another one\n");
    assert!(!screen.contains("asking again in"), "{screen}");
    assert_eq!(mock.requests().len(), 1);
    println!("{screen}");
    tmux.key("C-u");
    tmux.line("/quit");
    tmux.sees("ended with 0");
    tmux.is_sane(&world);
}

#[test]
fn what_waits_when_haft_is_killed_is_kept_and_no_call_runs_twice() {
    let world = World::new();
    let back = Arc::new(AtomicBool::new(false));
    let is_back = back.clone();
    let mock = Mock::with(move |nth, _| match nth {
        0 => WIRE.calls("I write.", &[("bash", json!({"command": "echo x >> made"}))]),
        _ if is_back.load(Ordering::Relaxed) => WIRE.text("Here I am."),
        _ => busy("2"),
    });
    let tmux = talk(&world, &mock, "--mode bypass");
    tmux.line("go on");
    tmux.sees("asking again in");
    tmux.line("the first line");
    tmux.line("the second line");
    let kept =
        || world.events().iter().any(|event| format!("{event:?}").contains("the second line"));
    assert!(until(PATIENCE, kept), "{}", tmux.screen());
    signal_all("KILL", &model(&mock));
    tmux.sees("ended with 137");
    drop(tmux);
    back.store(true, Ordering::Relaxed);
    let tmux = talk(&world, &mock, "-c --mode bypass");
    let screen = tmux.sees("the second line");
    assert!(screen.contains("going on with session") && screen.contains("> go on"), "{screen}");
    assert!(screen.contains("> the first line\n  the second line"), "{screen}");
    println!("{screen}");
    tmux.key("Enter");
    tmux.sees("Here I am.");
    tmux.line("/quit");
    tmux.sees("ended with 0");
    assert_eq!((world.read("made").as_str(), begun(&world)), ("x\n", vec![1]));
    let bodies = mock.bodies();
    let last = bodies.last().unwrap();
    for line in ["the first line", "the second line"] {
        assert_eq!(last.matches(line).count(), 1, "{last}");
    }
    // What was said no longer waits.
    let tmux = talk(&world, &mock, "-c --mode bypass");
    let screen = tmux.sees("last used");
    assert_eq!(screen.matches("> the first line").count(), 1, "{screen}");
    tmux.line("/quit");
    tmux.sees("ended with 0");
}

#[test]
fn a_run_ends_with_its_own_limit_before_the_outage_does() {
    let (world, mock) = (World::new(), Mock::with(|_, _| busy("60")));
    let flags = ["-p", "hi", "--max-time", "1"];
    let ran = finish(WIRE.haft(&world, &mock.url(), &flags), &Input::Nothing);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err.contains("Asking again in 60 s") && ran.err.contains("limit of 1 s"),
        "{ran:?}"
    );
    assert!(ran.took < Duration::from_secs(30), "{ran:?}");
    world.settings("[model]\nretry_seconds = 30\n");
    let ran = finish(WIRE.haft(&world, &mock.url(), &["-p", "hi"]), &Input::Nothing);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("asks to wait 60 s, longer than haft waits (30 s in all"), "{ran:?}");
}
