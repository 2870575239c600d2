//! What a call shows while it runs: few values a second, short ones, and always the last.

use std::time::Duration;

use haft_testkit::world::World;
use haft_tool::Cx;
use haft_types::{Body, CutBy, Outcome, Shape, Stream};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::support::{Probe, world};

fn step(cx: &Cx, done: u64) {
    cx.progress(Shape::Progress { text: format!("step {done}"), done: Some(done), total: None });
}

fn steps(world: &World) -> Vec<u64> {
    let bodies = world.recorder.bodies().into_iter();
    bodies
        .filter_map(|body| match body {
            Body::CallProgress { detail, .. } => match detail.shape {
                Shape::Progress { done, .. } => done,
                _ => None,
            },
            _ => None,
        })
        .collect()
}

fn outputs(world: &World) -> Vec<String> {
    let bodies = world.recorder.bodies().into_iter();
    bodies
        .filter_map(|body| match body {
            Body::CallOutput { text, .. } => Some(text),
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn progress_is_shown_ten_times_a_second_and_the_last_always_before_the_end() {
    let probe = Probe::new("busy").run(|_, cx| async move {
        for done in 1..=2_000 {
            step(&cx, done);
            sleep(Duration::from_millis(1)).await;
        }
        for done in 2_001..=2_005 {
            step(&cx, done);
        }
        Ok(Outcome::text("done"))
    });
    let (world, _) = world([probe]);
    world.call("busy", json!({})).await;
    let steps = steps(&world);
    assert_eq!(steps.first(), Some(&1), "the first is shown at once");
    assert_eq!(steps.last(), Some(&2_005));
    assert!((18..=23).contains(&steps.len()), "{steps:?}");
    let bodies = world.recorder.bodies();
    assert!(matches!(bodies.last(), Some(Body::CallEnded { .. })));
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_shown_soon_although_nothing_comes_after_it() {
    let probe = Probe::new("quiet").run(|_, cx| async move {
        cx.output(Stream::Stdout, "one ".into());
        cx.output(Stream::Stdout, "two ".into());
        cx.output(Stream::Stdout, "three".into());
        step(&cx, 1);
        step(&cx, 2);
        sleep(Duration::from_mins(1)).await;
        Ok(Outcome::text("done"))
    });
    let (world, _) = world([probe]);
    let began = Instant::now();
    let seen = async {
        let three =
            |body: &Body| matches!(body, Body::CallOutput { text, .. } if text == "two three");
        world.recorder.until(three).await;
        began.elapsed()
    };
    let (_, seen) = tokio::join!(world.call("quiet", json!({})), seen);
    assert!(seen <= Duration::from_millis(110), "{seen:?}");
    assert_eq!(outputs(&world), ["one ", "two three"]);
    assert_eq!(steps(&world), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn output_keeps_its_order_and_loses_nothing_that_has_room() {
    let probe = Probe::new("both").run(|_, cx| async move {
        for n in 0..4 {
            cx.output(Stream::Stdout, format!("out {n}\n"));
            cx.output(Stream::Stderr, format!("err {n}\n"));
        }
        Ok(Outcome::text("done"))
    });
    let (world, _) = world([probe]);
    world.call("both", json!({})).await;
    let wanted = "out 0\nerr 0\nout 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n";
    assert_eq!(outputs(&world).concat(), wanted);
}

#[tokio::test(start_paused = true)]
async fn pieces_are_bounded_and_what_is_not_shown_is_counted() {
    let probe = Probe::new("loud").run(|_, cx| async move {
        for _ in 0..100 {
            cx.output(Stream::Stdout, "\u{1f600}".repeat(10_001));
        }
        let text = "\u{e4}\n".repeat(100_000);
        cx.progress(Shape::Progress { text, done: None, total: Some(3) });
        Ok(Outcome::text("done"))
    });
    let (world, _) = world([probe]);
    world.call("loud", json!({})).await;
    let pieces = outputs(&world);
    assert!(pieces.len() <= 3 && pieces.iter().all(|text| text.len() <= 16 * 1024 + 64));
    let shown: usize = pieces.iter().map(|text| text.matches('\u{1f600}').count() * 4).sum();
    let told: usize = pieces
        .iter()
        .filter_map(|text| text.rsplit_once('[')?.1.split(' ').next()?.parse::<usize>().ok())
        .sum();
    assert_eq!(shown + told, 100 * 10_001 * 4, "{} pieces", pieces.len());
    let detail = world.recorder.bodies().into_iter().find_map(|body| match body {
        Body::CallProgress { detail, .. } => Some(detail),
        _ => None,
    });
    let detail = detail.unwrap();
    assert!(serde_json::to_string(&detail).unwrap().len() <= 4 * 1024);
    let Shape::Progress { text, total, .. } = &detail.shape else { panic!("{detail:?}") };
    assert!(text.ends_with("bytes left out ...]") && text.len() > 2_000, "{text}");
    assert_eq!((*total, detail.cut.unwrap().by), (Some(3), CutBy::Chars));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_shown_after_the_end() {
    let probe = Probe::new("late").run(|_, cx| async move {
        tokio::spawn(async move {
            sleep(Duration::from_secs(1)).await;
            step(&cx, 7);
            cx.output(Stream::Stdout, "late".into());
        });
        Ok(Outcome::text("done"))
    });
    let (world, _) = world([probe]);
    world.call("late", json!({})).await;
    sleep(Duration::from_secs(2)).await;
    assert!(steps(&world).is_empty() && outputs(&world).is_empty());
}
