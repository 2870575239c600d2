//! A session goes on with another model, on another wire, wherever the one before it was left: in
//! its text, its thinking, a call, behind a call, behind an image.

use std::{fmt::Write as _, path::Path};

use haft_testkit::{
    cassette::{Cassette, read_folder},
    http::{HttpRequest, HttpResponse, Step},
    machine,
};
use serde_json::{Value, json};

use crate::{
    mcp::sdk::PNG,
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, Ran, World, finish},
};

/// Where the first model is left.
#[derive(Clone, Copy, Debug, PartialEq)]
enum StopPoint {
    AfterText,
    InThinking,
    CallOpen,
    CallDone,
    Image,
}

const ALL: [StopPoint; 5] = [
    StopPoint::AfterText,
    StopPoint::InThinking,
    StopPoint::CallOpen,
    StopPoint::CallDone,
    StopPoint::Image,
];

/// The answers of the first model.
fn answers(wire: Wire, left: StopPoint) -> Vec<HttpResponse> {
    let call = |path: &str| wire.calls("first", &[("read", json!({ "path": path }))]);
    match left {
        StopPoint::AfterText => vec![wire.text("First words.")],
        StopPoint::InThinking => {
            vec![cut_behind(&wire.thinking("First thoughts."), "First thoughts.")]
        }
        // Its arguments have not come to their end.
        StopPoint::CallOpen => vec![cut_before(&call("a.txt"), "a.txt")],
        StopPoint::CallDone => vec![call("a.txt"), wire.text("First words.")],
        StopPoint::Image => vec![call("red.png"), wire.text("First words.")],
    }
}

fn text_of(answer: &HttpResponse) -> String {
    match &answer.steps[0] {
        Step::Send(body) => String::from_utf8(body.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// An answer that is cut before its first event with this text.
fn cut_before(answer: &HttpResponse, text: &str) -> HttpResponse {
    cut(answer, |events| events.iter().position(|event| event.contains(text)).unwrap())
}

/// The same, right behind it.
fn cut_behind(answer: &HttpResponse, text: &str) -> HttpResponse {
    cut(answer, |events| 1 + events.iter().position(|event| event.contains(text)).unwrap())
}

fn cut(answer: &HttpResponse, at: impl Fn(&[&str]) -> usize) -> HttpResponse {
    let body = text_of(answer);
    let events: Vec<&str> = body.split_inclusive("\n\n").collect();
    let begin = events[..at(&events)].concat();
    HttpResponse { steps: vec![Step::Send(begin.into()), Step::Cut], ..answer.clone() }
}

fn of_path(request: &HttpRequest) -> Wire {
    match &request.target {
        target if target.contains("messages") => Wire::Anthropic,
        target if target.contains("responses") => Wire::Responses,
        _ => Wire::OpenAi,
    }
}

fn run(world: &World, wire: Wire, mock: &Mock, arguments: &[&str]) -> Ran {
    finish(wire.haft(world, &mock.url(), arguments), &Input::Nothing)
}

/// The request of the second model behind each end of the first, as a line for the SDK's check.
fn request(from: Wire, to: Wire, left: StopPoint) -> String {
    let case = format!("{from:?} {left:?} -> {to:?}");
    let world = World::new();
    world.file("a.txt", "alpha\n");
    world.file("red.png", PNG);
    world.settings("[model]\nretry_seconds = 0\n");
    let mut first = answers(from, left).into_iter();
    let mut is_second = false;
    let mock = Mock::with(move |_, request| {
        is_second |= from != to && of_path(request) == to;
        match first.next().filter(|_| !is_second) {
            Some(answer) => answer,
            None => of_path(request).text("Second words."),
        }
    });
    run(&world, from, &mock, &["-p", "First of all."]);
    let ran = run(&world, to, &mock, &["-p", "And second.", "-c"]);
    assert_eq!((ran.code, &*ran.out), (Some(0), "Second words.\n"), "{case}: {ran:?}");
    let body = mock.bodies().pop().unwrap();
    for wanted in ["First of all.", "And second."] {
        assert!(body.contains(wanted), "{case}: no {wanted} in {body}");
    }
    let results = body.matches(to.result_id()).count();
    match left {
        StopPoint::AfterText => assert!(body.contains("First words."), "{case}: {body}"),
        // What no proof stands behind goes back to no provider.
        StopPoint::InThinking => assert!(!body.contains("First thoughts."), "{case}: {body}"),
        StopPoint::CallOpen => {
            assert_eq!(body.matches("\"read\"").count() - 1, results, "{case}: {body}");
        }
        StopPoint::CallDone => assert!(results == 1 && body.contains("alpha"), "{case}: {body}"),
        StopPoint::Image => assert!(results == 1 && body.contains("iVBOR"), "{case}: {body}"),
    }
    let wire = match to {
        Wire::Anthropic => "anthropic",
        Wire::OpenAi => "openai",
        Wire::Responses => "responses",
    };
    let body: Value = serde_json::from_str(&body).unwrap();
    json!({"wire": wire, "case": case, "body": body}).to_string()
}

/// Adds the requests with tools that come late, which no session has yet, as cassettes hold them.
fn late_tools(lines: &mut String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../haft-llm/tests/cassettes");
    let all = read_folder(&folder).unwrap();
    let is_one = |cassette: &&Cassette| {
        ["late-tools", "declared-tools", "found-tools", "found-late-tools", "-search"]
            .iter()
            .any(|part| cassette.name.contains(part))
    };
    let mut count = 0;
    for cassette in all.iter().filter(is_one) {
        let wire = match cassette.section("wire").unwrap().trim() {
            "anthropic" if cassette.section("beta").is_some() => "anthropic-beta",
            "openai-responses" => "responses",
            other => other,
        };
        let body: Value = serde_json::from_str(cassette.section("body").unwrap()).unwrap();
        let line = json!({"wire": wire, "case": cassette.name, "body": body});
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{line}");
        count += 1;
    }
    assert_eq!(count, 13);
}

#[test]
fn a_session_goes_on_with_any_model_from_wherever_it_was_left() {
    let mut lines = String::new();
    for from in WIRES {
        for to in WIRES {
            for left in ALL {
                // Writing to a string cannot fail.
                let _ = writeln!(lines, "{}", request(from, to, left));
            }
        }
    }
    assert_eq!(lines.lines().count(), 45);
    late_tools(&mut lines);
    let world = World::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/sdk_requests.py");
    let mut command = world.program(machine::python());
    command.arg(script).env("PYTHONDONTWRITEBYTECODE", "1");
    let ran = finish(command, &Input::Pipe(&lines));
    assert_eq!((ran.code, &*ran.out), (Some(0), ""), "{}", ran.err);
}
