//! Budgets: what is cut is told, and kept whole under its address.

use std::sync::Arc;

use haft_host::Outs;
use haft_testkit::world::World;
use haft_tool::{Dispatcher, Session, validate::Validator};
use haft_types::{Budget, CutBy, Entry, Outcome, Part, Shape, Status};
use serde_json::json;

use crate::support::{Probe, at, call, tools, world};

/// A tool that gives `text` back and may tell the model 1,000 characters.
fn teller(text: impl Into<String>) -> Probe {
    let text = text.into();
    let probe = Probe::new("tell").spec(|spec| spec.budget = Budget::Chars(1_000));
    probe.run(move |_, _| {
        let outcome = Outcome::text(text.clone());
        async { Ok(outcome) }
    })
}

fn lines() -> String {
    use std::fmt::Write as _;
    (0..5_000).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "line {n:04} \u{e4}\u{1f600}");
        text
    })
}

#[tokio::test]
async fn what_fits_is_not_touched() {
    for text in [String::new(), "x".repeat(1_000), "\u{1f600}".repeat(1_000)] {
        let (world, _) = world([teller(text.clone())]);
        assert_eq!(world.call("tell", json!({})).await, Outcome::text(text));
        assert_eq!(world.session.outs.used(), 0, "nothing is kept");
    }
}

#[tokio::test]
async fn too_much_is_cut_in_the_middle_at_lines_and_told() {
    let (world, _) = world([teller(lines())]);
    let text = world.call("tell", json!({})).await.joined_text();
    assert!(text.starts_with("line 0000 ") && text.ends_with("line 4999 \u{e4}\u{1f600}\n"));
    assert!(text.chars().count() < 1_200, "{} characters", text.chars().count());
    assert!(text.contains("out://c1"), "{text}");
    let total = lines().chars().count();
    assert!(text.contains(&format!("of {total} characters left out")), "{text}");
    let whole = lines();
    let known: Vec<&str> = whole.lines().collect();
    let shown = text.lines().filter(|line| !line.starts_with("[...") && !line.is_empty());
    for line in shown {
        assert!(known.contains(&line), "{line:?} is no whole line");
    }
}

#[tokio::test]
async fn text_of_one_line_and_of_long_characters_is_never_split_inside_one() {
    for text in ["\u{1f600}".repeat(5_000), "e\u{301}".repeat(2_000), "x".repeat(1_001)] {
        let (world, _) = world([teller(text.clone())]);
        let cut = world.call("tell", json!({})).await.joined_text();
        let (head, rest) = cut.split_once("\n[...").unwrap();
        let (_, tail) = rest.split_once("...]\n").unwrap();
        assert!(text.starts_with(head) && text.ends_with(tail));
        assert!(head.chars().count() <= 500 && tail.chars().count() <= 500);
        assert!(head.chars().count() + tail.chars().count() > 800);
    }
}

#[tokio::test]
async fn the_whole_is_read_and_searched_at_its_address() {
    let (mut all, _) = tools([teller(lines())]);
    all.extend(haft_tools::builtin());
    let world = World::memory(all, [("a", "")]).unwrap();
    world.call("tell", json!({})).await;
    let middle = json!({"path": "out://c1", "offset": 2501, "limit": 1});
    let read = world.call("read", middle).await;
    assert_eq!(read.status, Status::Done, "{read:?}");
    assert!(read.joined_text().contains("line 2500 \u{e4}\u{1f600}"), "{read:?}");
    let input = json!({"path": "out://c1", "pattern": "line 3[0-9]{2}7"});
    let grep = world.call("grep", input).await;
    assert_eq!(grep.status, Status::Done, "{grep:?}");
    assert!(grep.joined_text().contains("line 3427"), "{grep:?}");
    let (host, path) = world.session.outs.open(&haft_types::CallId::nth(1)).unwrap();
    let found = host.fs().locate(&path, haft_types::Follow::Yes).await.unwrap();
    let kept = host.fs().read(&found, 0, usize::MAX).await.unwrap();
    assert!(kept == lines().as_bytes());
}

#[tokio::test]
async fn images_are_not_counted_and_stay() {
    let probe = Probe::new("tell").spec(|spec| spec.budget = Budget::Chars(1_000));
    let probe = probe.run(|_, cx| async move {
        let blob = cx.keep(vec![7; 100_000].into(), "image/png").await?;
        let image = Part::Image { blob };
        let text = Part::text("x".repeat(900));
        Ok(Outcome { content: vec![image, text], ..Outcome::default() })
    });
    let (world, _) = world([probe]);
    let outcome = world.call("tell", json!({})).await;
    assert_eq!(outcome.joined_text(), "x".repeat(900));
    let probe = Probe::new("tell").spec(|spec| spec.budget = Budget::Chars(1_000));
    let probe = probe.run(|_, cx| async move {
        let blob = cx.keep(vec![7; 10].into(), "image/png").await?;
        let long = Part::text("y".repeat(9_000));
        Ok(Outcome { content: vec![Part::Image { blob }, long], ..Outcome::default() })
    });
    let (world, _) = crate::support::world([probe]);
    let outcome = world.call("tell", json!({})).await;
    assert!(outcome.joined_text().contains("out://c1"));
    assert!(outcome.content.iter().any(|part| matches!(part, Part::Image { .. })));
}

#[tokio::test]
async fn tokens_are_four_characters_and_a_tool_of_its_own_measure_is_left_alone() {
    for (budget, cut) in
        [(Budget::Tokens(250), true), (Budget::Tokens(2_500), false), (Budget::Own, false)]
    {
        let (world, _) = world([teller("x".repeat(9_999)).spec(|spec| spec.budget = budget)]);
        let text = world.call("tell", json!({})).await.joined_text();
        assert_eq!(text.contains("out://c1"), cut, "{budget:?}");
    }
}

#[tokio::test]
async fn people_are_told_what_was_cut_of_what_they_see() {
    let probe = Probe::new("tell").spec(|spec| spec.budget = Budget::Chars(1_000));
    let probe = probe.run(|_, _| async {
        let shape = Shape::File { path: at("/w/a"), first_line: 1, text: "x".into() };
        Ok(Outcome::text("x".repeat(5_000)).with_detail(shape))
    });
    let (world, _) = world([probe]);
    let cut = world.call("tell", json!({})).await.detail.unwrap().cut.unwrap();
    assert_eq!((cut.by, cut.total), (CutBy::Chars, Some(5_000)));
    assert_eq!(cut.rest.as_deref(), Some("out://c1"));
}

#[tokio::test]
async fn where_the_whole_cannot_be_kept_the_model_is_told() {
    let (world, _) = world([teller(lines())]);
    let session = Session::new(
        "full",
        world.recorder.clone(),
        world.session.blobs.clone(),
        Arc::new(Outs::in_memory(10)),
        (*world.session.permissions()).clone(),
    );
    let dispatcher =
        Arc::new(Dispatcher { session: Arc::new(session), ..(*world.dispatcher).clone() });
    let outcome = call(&dispatcher, "tell", json!({})).await;
    let text = outcome.joined_text();
    assert_eq!(outcome.status, Status::Done);
    assert!(text.contains("could not be kept") && text.contains("at most 10 bytes"), "{text}");
    assert!(!text.contains("out://"), "{text}");
    assert!(text.chars().count() < 1_500);
}

#[tokio::test]
async fn a_failure_is_short_whatever_the_tools_measure_is() {
    let probe = Probe::new("tell").spec(|spec| spec.budget = Budget::Own);
    let probe = probe.run(|_, _| async {
        Err(haft_types::ToolError::new(format!("begin {} end", "x".repeat(1_000_000))))
    });
    let (world, _) = world([probe]);
    let text = world.call("tell", json!({})).await.joined_text();
    assert!(text.starts_with("begin") && text.ends_with("end") && text.len() < 17_000);
}

/// A tool with a short text and `count` entries of data and detail.
fn lister(count: u64) -> Probe {
    let probe = Probe::new("list").spec(|spec| {
        spec.budget = Budget::Chars(1_000);
        spec.output_schema = json!({
            "type": "object",
            "properties": {
                "entries": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
                    "required": ["name", "size"],
                    "additionalProperties": false,
                }},
                "note": {"type": "string"},
                "total": {"type": "integer"},
            },
            "required": ["entries", "note", "total"],
            "additionalProperties": false,
        })
        .into();
    });
    probe.run(move |_, _| async move {
        let entries: Vec<_> =
            (0..count).map(|n| json!({"name": format!("f{n}"), "size": n})).collect();
        let names = (0..count).map(|n| Entry { name: format!("f{n}"), ..Entry::default() });
        let shape = Shape::Entries { root: at("/w"), entries: names.collect() };
        let note = "\u{1f600}\n".repeat(usize::try_from(count).unwrap());
        let data = json!({"entries": entries, "note": note, "total": count});
        Ok(Outcome::text("listed").with_data(data).with_detail(shape))
    })
}

#[tokio::test]
async fn data_and_details_are_bounded_too_and_the_whole_is_addressed() {
    let (mut all, _) = tools([lister(20_000)]);
    all.extend(haft_tools::builtin());
    let world = World::memory(all, [("a", "")]).unwrap();
    let outcome = world.call("list", json!({})).await;
    let data = outcome.data.clone().unwrap();
    assert!(data.to_string().len() <= 4_000, "{} bytes", data.to_string().len());
    let spec = world.dispatcher.tools.spec("list").unwrap();
    assert!(Validator::new(&spec.output_schema).unwrap().is_valid(&data), "{data}");
    let entries = data["entries"].as_array().unwrap();
    assert!(entries.len() > 20 && entries[0] == json!({"name": "f0", "size": 0}), "{data}");
    assert_eq!(data["total"], 20_000);
    assert!(data["note"].as_str().unwrap().ends_with("bytes left out ...]"), "{data}");
    let detail = outcome.detail.clone().unwrap();
    assert!(serde_json::to_string(&detail).unwrap().len() <= 4_000);
    let Shape::Entries { entries, .. } = &detail.shape else { panic!("{detail:?}") };
    let cut = detail.cut.unwrap();
    assert_eq!((cut.from, cut.to, cut.by), (1, entries.len() as u64, CutBy::Items));
    assert_eq!((cut.total, cut.rest.as_deref()), (Some(20_000), Some("out://c1")));
    let text = outcome.joined_text();
    assert!(
        text.starts_with("listed\n[the structured data of ") && text.contains("out://c1"),
        "{text}"
    );
    let ended = world.recorder.bodies().into_iter().any(
        |body| matches!(body, haft_types::Body::CallEnded { outcome: told, .. } if told == outcome),
    );
    assert!(ended, "what is recorded is bounded, too");
    let grep = world.call("grep", json!({"path": "out://c1", "pattern": "f19999"})).await;
    assert_eq!(grep.status, Status::Done, "{grep:?}");
}

#[tokio::test]
async fn data_that_fits_and_data_of_a_nested_call_stay_whole() {
    let outer = Probe::new("outer").run(|_, cx| async move {
        let inner = cx.call("list", json!({})).await;
        let size = inner.data.as_ref().map_or(0, |data| data.to_string().len());
        let Some(Shape::Entries { entries, .. }) = inner.detail.map(|detail| detail.shape) else {
            return Ok(Outcome::text("no detail"));
        };
        Ok(Outcome::text(format!("{} {}", size > 100_000, entries.len())))
    });
    let (world, _) = world([lister(20_000), outer]);
    assert_eq!(world.call("outer", json!({})).await.joined_text(), "true 20000");
    let (world, _) = crate::support::world([lister(20)]);
    let outcome = world.call("list", json!({})).await;
    assert_eq!(outcome.data.unwrap()["entries"].as_array().unwrap().len(), 20);
    assert!(outcome.detail.unwrap().cut.is_none() && world.session.outs.used() == 0);
}

#[tokio::test]
async fn where_the_text_is_kept_the_data_does_not_take_its_place() {
    let probe = teller(lines())
        .run(|_, _| async { Ok(Outcome::text(lines()).with_data(json!({"all": lines()}))) });
    let (world, _) = world([probe]);
    let outcome = world.call("tell", json!({})).await;
    let text = outcome.joined_text();
    assert_eq!(text.matches("read or grep out://c1").count(), 1, "it is said once: {text}");
    let data = outcome.data.unwrap();
    assert!(data["all"].as_str().unwrap().ends_with("bytes left out ...]"), "{data}");
    assert_eq!(world.session.outs.used(), lines().len() as u64);
}

#[tokio::test]
async fn a_refusal_before_the_tool_ran_is_short_too() {
    let probe = Probe::new("tell").check(|_, _| async {
        Err(haft_types::ToolError::new(format!("begin {} end", "x".repeat(1_000_000))))
    });
    let (world, runs) = world([probe]);
    let text = world.call("tell", json!({})).await.joined_text();
    assert!(text.starts_with("begin") && text.ends_with("end") && text.len() < 17_000);
    assert_eq!(runs.of("tell"), 0);
}
