//! Other models than the session's own: one that goes on where that cannot be reached, and a small
//! one for summaries.

use haft_testkit::http::{HttpRequest, HttpResponse};
use haft_types::{Body, BreakCause, Event, Level, Summarizer};
use serde_json::{Value, json};

use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{CANARY, Input, Ran, World, all_calls_ended, finish, notices},
};

const BUSY: (u16, &str) = (529, r#"{"error":{"type":"overloaded_error","message":"full up"}}"#);

fn failed((status, body): (u16, &str)) -> HttpResponse {
    HttpResponse::new(status, "application/json", body.to_owned())
}

/// The model of a wire that goes on.
const fn second(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "anthropic/mock-2",
        Wire::OpenAi => "openai/mock-2",
        Wire::Responses => "openai-responses/mock-2",
    }
}

fn model_of(request: &HttpRequest) -> String {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    body["model"].as_str().unwrap().to_owned()
}

/// haft with keys for all servers, and no model but that of these arguments.
fn run(world: &World, mock: &Mock, arguments: &[&str], input: &Input<'_>) -> Ran {
    let mut command = world.haft(arguments);
    for wire in WIRES {
        command.env(wire.key_variable(), CANARY).env(wire.url_variable(), wire.base(&mock.url()));
    }
    finish(command, input)
}

fn settings(world: &World, more: &str) {
    world.settings(&format!("[model]\nretry_seconds = 0\n{more}"));
}

fn breaks(events: &[Event]) -> usize {
    let is_it =
        |event: &&Event| matches!(event.body, Body::Break { cause: BreakCause::Fallback, .. });
    events.iter().filter(is_it).count()
}

#[test]
fn another_model_goes_on_in_the_middle_of_a_turn_on_each_wire() {
    for (from, to) in WIRES.into_iter().flat_map(|from| WIRES.map(|to| (from, to))) {
        let case = format!("{from:?} -> {to:?}");
        let world = World::new();
        world.file("a.txt", "alpha\n");
        settings(&world, &format!("fallback = {:?}\n", second(to)));
        let mock = Mock::with(move |number, request| match (number, &*model_of(request)) {
            (0, "mock-1") => from.calls("first", &[("read", json!({"path": "a.txt"}))]),
            (_, "mock-1") => failed(BUSY),
            (2, _) => to.calls("second", &[("ls", json!({}))]),
            _ => to.text("Done by the other."),
        });
        let arguments = ["-p", "go", "--output", "json", "--model", from.model()];
        let ran = run(&world, &mock, &arguments, &Input::Nothing);
        let result = ran.json();
        assert_eq!((ran.code, &result["text"]), (Some(0), &json!("Done by the other.")), "{ran:?}");
        assert_eq!((&result["model"], &result["calls"]), (&json!("mock-2"), &json!(2)), "{case}");
        let told = format!("{} goes on in the place of {}", second(to), from.model());
        assert_eq!(ran.err.matches(&told).count(), 1, "{case}: {ran:?}");
        let back = format!("haft -c --model {} goes back", from.model());
        assert!(ran.err.contains(&back) && ran.err.contains("full up"), "{case}: {ran:?}");
        let bodies = mock.bodies();
        assert_eq!(bodies.len(), 4, "{case}");
        // The result that the first model did not see goes to the second, by its wire.
        assert_eq!(bodies[2].matches(to.result_id()).count(), 1, "{case}: {}", bodies[2]);
        assert!(bodies[2].contains("alpha"), "{case}");
        let events = world.events();
        assert_eq!(breaks(&events), 1, "{case}");
        all_calls_ended(&events);
    }
}

#[test]
fn only_what_another_model_may_do_better_is_handed_on() {
    let wire = Wire::OpenAi;
    let quota = r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#;
    let gone = r#"{"error":{"code":"model_decommissioned","message":"it is retired"}}"#;
    let long = r#"{"error":{"code":"context_length_exceeded","message":"m"}}"#;
    for (answer, is_handed_on) in [
        ((401, "{}"), false),
        ((403, "{}"), false),
        ((402, "{}"), false),
        ((429, quota), false),
        ((400, long), false),
        ((400, r#"{"error":{"message":"a field is wrong"}}"#), false),
        ((404, r#"{"error":{"message":"no such model"}}"#), true),
        ((400, gone), true),
        ((429, r#"{"error":{"message":"slow down"}}"#), true),
        ((500, "{}"), true),
        ((503, "<html>"), true),
    ] {
        let world = World::new();
        settings(&world, "fallback = ['openai/mock-2']\n");
        let mock = Mock::with(move |_, request| match &*model_of(request) {
            "mock-1" => failed(answer),
            _ => wire.text("Here."),
        });
        let ran = run(&world, &mock, &["-p", "go", "--model", wire.model()], &Input::Nothing);
        assert_eq!(ran.code == Some(0), is_handed_on, "{answer:?}: {ran:?}");
        let asked = mock.requests().iter().filter(|it| model_of(it) == "mock-2").count();
        assert_eq!(asked > 0, is_handed_on, "{answer:?}: {ran:?}");
    }
}

#[test]
fn where_no_model_can_go_on_all_errors_are_told() {
    let world = World::new();
    let fallback = "fallback = ['mistral/x', 'anthropic/mock-2', 'successor']\n";
    settings(&world, fallback);
    let mock = Mock::with(|_, request| match &*model_of(request) {
        "mock-1" => failed(BUSY),
        _ => failed((503, r#"{"error":{"message":"closed today"}}"#)),
    });
    let arguments = ["-p", "go", "--model", "openai/mock-1", "--output", "json"];
    let ran = run(&world, &mock, &arguments, &Input::Nothing);
    assert_eq!((ran.code, &ran.json()["status"]), (Some(1), &json!("failed")), "{ran:?}");
    let error = ran.json()["error"].as_str().unwrap().to_owned();
    for part in [
        "closed today",
        "Before that openai/mock-1 failed",
        "full up",
        "mistral/x",
        "MISTRAL_API_KEY",
        "has no successor",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(mock.requests().len(), 2, "each once");
    // Money that is limited goes to no model without a price.
    world.settings(
        "[model]\nretry_seconds = 0\nfallback = ['anthropic/mock-2']\n\
         [models.\"openai/mock-1\"]\nprice = { input = 1, output = 1 }\n",
    );
    let ran = run(&world, &mock, &[&arguments[..], &["--max-cost", "5"]].concat(), &Input::Nothing);
    let error = ran.json()["error"].as_str().unwrap().to_owned();
    assert!(error.contains("nobody knows what anthropic/mock-2 costs"), "{error}");
    assert_eq!(mock.requests().len(), 3, "{error}");
}

#[test]
fn a_session_that_goes_on_asks_the_model_that_is_named_or_the_last_one() {
    let world = World::new();
    settings(&world, "fallback = 'anthropic/mock-2'\n");
    let mock = Mock::with(|number, request| match (number, &*model_of(request)) {
        (0, "mock-1") => failed((404, "{}")),
        (_, "mock-1") => Wire::OpenAi.text("I am back."),
        _ => Wire::Anthropic.text("In its place."),
    });
    let asks = |arguments: &[&str]| {
        let ran = run(&world, &mock, &[arguments, &["--output", "json"]].concat(), &Input::Nothing);
        (ran.code, ran.json()["model"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(asks(&["-p", "one", "--model", "openai/mock-1"]), (Some(0), "mock-2".to_owned()));
    assert_eq!(asks(&["-p", "two", "-c"]), (Some(0), "mock-2".to_owned()));
    let back = asks(&["-p", "three", "-c", "--model", "openai/mock-1"]);
    assert_eq!(back, (Some(0), "mock-1".to_owned()));
    let last = mock.bodies().pop().unwrap();
    assert!(last.contains("In its place.") && last.contains("two"), "{last}");
}

#[test]
fn where_a_person_waits_another_model_goes_on_and_they_go_back() {
    let world = World::new();
    // Waited for without an end, were there no other model.
    world.settings("[model]\nretry_seconds = 1\nfallback = 'anthropic/mock-2'\n");
    let mock = Mock::with(|number, request| match &*model_of(request) {
        "mock-1" if number < 3 => failed(BUSY),
        "mock-1" => Wire::OpenAi.text("I am back."),
        _ => Wire::Anthropic.text("In its place."),
    });
    let lines = "one\n/model\n/model openai/mock-1\ntwo\n/quit\n";
    let arguments = ["--line", "--model", "openai/mock-1"];
    let ran = run(&world, &mock, &arguments, &Input::Pipe(lines));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in ["anthropic/mock-2 goes on in the place of openai/mock-1", "/model openai/mock-1"] {
        assert!(ran.both_outputs().contains(part), "{part}: {ran:?}");
    }
    let mut at = 0;
    for part in ["In its place.", "anthropic/mock-2", "openai/mock-1", "I am back."] {
        let found = ran.out[at..].find(part).unwrap_or_else(|| panic!("no {part}: {ran:?}"));
        at += found + part.len();
    }
}

/// How the system prompt of a request for a summary begins.
const SUMMARY: &str = "You sum up the work of a coding agent";

/// A session that has grown over its window, whose summaries a small model writes.
fn summed_up(
    (own, small): (Wire, Wire),
    settings: &str,
    answer: impl Fn() -> HttpResponse + Send + 'static,
) -> (World, Mock, Ran) {
    let world = World::new();
    let line = "a line of some length to fill the window with\n";
    for number in 0..14 {
        world.file(&format!("big{number}.txt"), line.repeat(40_000 / line.len()));
    }
    world.settings(&format!(
        "[model]\nretry_seconds = 0\nsmall = {:?}\n[context]\nmask_percent = 100\n\
         [models.\"{}\"]\ncontext = 40000\nprice = {{ input = 1, output = 1 }}\n{settings}",
        second(small),
        own.model(),
    ));
    let mock = Mock::with(move |number, request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        match (&*model_of(request), body.contains(SUMMARY)) {
            ("mock-2", true) => answer(),
            ("mock-2", false) => failed((500, "not for this")),
            (_, true) => own.text("Goal: by the own one."),
            _ if number < 14 => {
                let path = json!({"path": format!("big{number}.txt")});
                own.calls(&format!("call{number}"), &[("read", path)])
            }
            _ => own.text("All read."),
        }
    });
    let arguments = ["-p", "read them", "--output", "json", "--model", own.model()];
    let ran = run(&world, &mock, &arguments, &Input::Nothing);
    assert_eq!((ran.code, &ran.json()["text"]), (Some(0), &json!("All read.")), "{ran:?}");
    (world, mock, ran)
}

/// Who wrote each summary, and who was asked before.
fn summarizers(world: &World) -> Vec<(String, Vec<Summarizer>)> {
    let by = |event: Event| match event.body {
        Body::Compacted { by: Some(by), others, .. } => Some((by.model, others)),
        _ => None,
    };
    world.events().into_iter().filter_map(by).collect()
}

#[test]
fn the_small_model_sums_up_in_its_own_window_at_its_own_price() {
    for (own, small) in [
        (Wire::Anthropic, Wire::Responses),
        (Wire::Responses, Wire::OpenAi),
        (Wire::OpenAi, Wire::Anthropic),
    ] {
        let more = format!(
            "[models.\"{}\"]\ncontext = 1500\noutput = 400\nprice = {{ input = 1000, output = 1000 }}\n",
            second(small)
        );
        let answer = move || small.text("Goal: by the small one.");
        let (world, mock, ran) = summed_up((own, small), &more, answer);
        let written = summarizers(&world);
        assert!(!written.is_empty(), "{ran:?}");
        assert!(written.iter().all(|it| *it == ("mock-2".to_owned(), Vec::new())), "{written:?}");
        let asked: Vec<String> =
            mock.bodies().into_iter().filter(|it| it.contains(SUMMARY)).collect();
        assert_eq!(asked.len(), written.len());
        for body in &asked {
            // Its window has 1,500 tokens, some of which are for its answer.
            assert!(
                body.len() < 1_500 * 4 && body.contains("older messages are left out"),
                "{body}"
            );
            assert!(body.contains(":400,"), "{body}");
        }
        // 11 tokens in and 7 out for each, at a thousand times the price.
        let cost = ran.json()["cost_usd"].as_f64().unwrap();
        #[expect(clippy::cast_precision_loss, reason = "they are few")]
        let of_summaries = written.len() as f64 * 0.018;
        assert!(cost > of_summaries && cost < of_summaries + 0.001, "{cost}");
        assert!(mock.bodies().last().unwrap().contains("by the small one"));
    }
}

#[test]
fn the_own_model_sums_up_where_the_small_one_does_not() {
    let wire = Wire::OpenAi;
    for (case, status, why) in [
        ("an error", 503, "503"),
        ("a key that is refused", 401, "401"),
        ("nothing", 200, "wrote no summary"),
    ] {
        let answer = move || match status {
            200 => Wire::Anthropic.text(" "),
            status => failed((status, "{}")),
        };
        let (world, mock, ran) = summed_up((wire, Wire::Anthropic), "", answer);
        let written = summarizers(&world);
        assert!(written.len() > 1, "{case}: once is told of several");
        assert!(written.iter().all(|(by, _)| by == "mock-1"), "{case}: {written:?}");
        // What was paid for in vain is counted.
        assert_eq!(written[0].1.len(), usize::from(case == "nothing"), "{case}: {written:?}");
        let told = notices(&world.events());
        let of_small = |(level, text): &&(Level, String)| {
            *level == Level::Warning && text.contains("the small model wrote no summary")
        };
        let told: Vec<_> = told.iter().filter(of_small).collect();
        assert!(told.len() == 1 && told[0].1.contains(why), "{case}: {told:?} {ran:?}");
        assert!(mock.bodies().last().unwrap().contains("by the own one"), "{case}");
    }
    // Where nobody knows its price, money that is limited is not spent on it.
    let world = World::new();
    world.settings("[model]\nsmall = 'nobody/x'\nlarge = 'openai/mock-1'\n");
    let mock = Mock::with(move |_, _| wire.text("Hello."));
    let ran = run(&world, &mock, &["-p", "hi", "--model", "large"], &Input::Nothing);
    assert_eq!((ran.code, &*ran.out), (Some(0), "Hello.\n"), "{ran:?}");
    assert!(
        ran.err.contains("model.small: ") && ran.err.contains("no server \"nobody\""),
        "{ran:?}"
    );
    let ran = run(&world, &mock, &["-p", "hi", "--model", "medium"], &Input::Nothing);
    assert!(ran.code == Some(2) && ran.err.contains("set model.medium ="), "{ran:?}");
}
