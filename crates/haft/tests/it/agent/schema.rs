//! `--schema`: the answer of `-p` fits a JSON Schema, on each wire and with a script.

use std::process::Command;

use haft_testkit::http::HttpResponse;
use haft_types::Body;
use serde_json::{Value, json};

use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, Ran, World},
};

const SCHEMA: &str = r#"{"type": "object", "properties": {"n": {"type": "integer", "minimum": 1},
    "why": {"type": "string"}}, "required": ["n", "why"], "additionalProperties": false}"#;
const FITS: &str = r#"{"n": 3, "why": "it is"}"#;
/// Of the right shape for the servers, but too small.
const TOO_SMALL: &str = r#"{"n": 0, "why": "it is"}"#;

/// What the model does in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answers {
    Fits,
    /// It fits the second time.
    Repaired,
    /// It never fits.
    Never,
}

/// Whether a wire is told of the schema.
fn is_native(wire: Wire) -> bool {
    wire != Wire::OpenAi
}

/// The final answers, one after the other, as a model on this wire gives them.
fn finals(wire: Wire, answers: Answers) -> Vec<HttpResponse> {
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let give = |number: usize, text: &str| {
        let calls = [("structured_output", value(text))];
        if is_native(wire) {
            wire.text(text)
        } else {
            wire.calls(&format!("final{number}"), &calls)
        }
    };
    let mut given = match answers {
        Answers::Fits => vec![give(0, FITS)],
        Answers::Repaired => vec![give(0, TOO_SMALL), give(1, FITS)],
        Answers::Never => (0..4).map(|number| give(number, TOO_SMALL)).collect(),
    };
    if !is_native(wire) && answers != Answers::Never {
        given.push(wire.text("Done."));
    }
    given
}

fn finish(command: Command) -> Ran {
    crate::world::finish(command, &Input::Nothing)
}

fn result(ran: &Ran) -> Value {
    serde_json::from_str(ran.out.lines().last().unwrap()).unwrap()
}

#[test]
fn an_answer_fits_its_schema_on_each_wire() {
    for wire in WIRES {
        for with_calls in [false, true] {
            for answers in [Answers::Fits, Answers::Repaired, Answers::Never] {
                let case = format!("{wire:?} {with_calls} {answers:?}");
                let world = World::new();
                world.file("a.txt", "alpha\n");
                let read = wire.calls("look", &[("read", json!({"path": "a.txt"}))]);
                let mut all: Vec<HttpResponse> = with_calls.then_some(read).into_iter().collect();
                all.extend(finals(wire, answers));
                let mock = Mock::new(all);
                let arguments = ["-p", "look", "--schema", SCHEMA, "--output", "json"];
                let ran = finish(wire.haft(&world, &mock.url(), &arguments));
                let result = result(&ran);
                let bodies = mock.bodies();
                for body in &bodies {
                    let body: Value = serde_json::from_str(body).unwrap();
                    let sent = match wire {
                        Wire::Anthropic => &body["output_config"]["format"]["schema"]["properties"],
                        Wire::Responses => &body["text"]["format"]["schema"]["properties"],
                        Wire::OpenAi => body["tools"]
                            .as_array()
                            .unwrap()
                            .iter()
                            .map(|tool| &tool["function"])
                            .find(|tool| tool["name"] == "structured_output")
                            .map(|tool| &tool["parameters"]["properties"])
                            .unwrap(),
                    };
                    assert!(sent["why"].is_object(), "{case}: {body}");
                    let prefix = |body: &Value| (body["tools"].clone(), sent.clone());
                    let first: Value = serde_json::from_str(&bodies[0]).unwrap();
                    assert_eq!(prefix(&body).0, first["tools"], "{case}");
                }
                if answers == Answers::Never {
                    assert_eq!(ran.code, Some(1), "{case}: {ran:?}");
                    assert_eq!(result["structured_output"], Value::Null, "{case}: {result}");
                    assert!(ran.err.contains("schema"), "{case}: {ran:?}");
                    // What is asked for again is asked for twice, and no more.
                    let tries = if is_native(wire) { 3 } else { 4 };
                    assert_eq!(bodies.len(), tries + usize::from(with_calls), "{case}");
                } else {
                    assert_eq!(ran.code, Some(0), "{case}: {ran:?}");
                    let wanted: Value = serde_json::from_str(FITS).unwrap();
                    assert_eq!(result["structured_output"], wanted, "{case}: {result}");
                    assert_eq!(result["status"], "done", "{case}: {result}");
                }
                if answers == Answers::Repaired {
                    let last = bodies.last().unwrap();
                    assert!(last.contains("n is 0") || last.contains("n: 0"), "{case}: {last}");
                }
            }
        }
    }
}

/// As text, a run prints the value alone; one without says what is wrong and prints nothing.
#[test]
fn text_is_the_value_alone() {
    let world = World::new();
    let run = |answers: &[Value]| {
        let model = world.script(answers);
        finish(world.haft(&["-p", "go", "--model", &model, "--schema", SCHEMA]))
    };
    let call = |text: &str| {
        let input: Value = serde_json::from_str(text).unwrap();
        json!({"calls": [{"name": "structured_output", "input": input}]})
    };
    let fits = run(&[call(FITS), json!({"text": "That is all."})]);
    assert_eq!((fits.code, &*fits.out), (Some(0), "{\"n\":3,\"why\":\"it is\"}\n"), "{fits:?}");
    // A model that was not told by its wire may give the right text all the same.
    let as_text = run(&[json!({"text": format!("```json\n{FITS}\n```")})]);
    assert_eq!(
        (as_text.code, &*as_text.out),
        (Some(0), "{\"n\":3,\"why\":\"it is\"}\n"),
        "{as_text:?}"
    );
    // It is asked once.
    let asked = run(&[json!({"text": "Three."}), call(FITS), json!({"text": "Done."})]);
    assert_eq!((asked.code, &*asked.out), (Some(0), "{\"n\":3,\"why\":\"it is\"}\n"), "{asked:?}");
    let never = run(&[json!({"text": "Three."}), json!({"text": "I said three."})]);
    assert_eq!((never.code, &*never.out), (Some(1), ""), "{never:?}");
    assert!(never.err.contains("no final answer by structured_output"), "{never:?}");
}

/// What is no object is the argument `value` of the tool, and the value itself for programs.
#[test]
fn an_answer_need_not_be_an_object() {
    let world = World::new();
    let schema = r##"{"type": "array", "items": {"$ref": "#/$defs/one"}, "$defs": {"one": {"type": "integer"}}}"##;
    world.file("schema.json", schema);
    let call = json!({"calls": [{"name": "structured_output", "input": {"value": [1, 2]}}]});
    let model = world.script(&[call, json!({"text": "Done."})]);
    // The tools that are named leave this one alone.
    let arguments = ["-p", "go", "--model", &model, "--tools", "read", "--output", "json"];
    let mut command = world.haft(&arguments);
    command.args(["--json-schema", "schema.json"]);
    let ran = finish(command);
    assert_eq!(result(&ran)["structured_output"], json!([1, 2]), "{ran:?}");
}

/// The schema is a part of what is pinned: the next run of the session breaks the prefix by name.
#[test]
fn another_schema_is_a_break() {
    let world = World::new();
    let wire = Wire::Anthropic;
    let mock = Mock::new(vec![wire.text(FITS), wire.text("Free."), wire.text("Free again.")]);
    let run = |arguments: &[&str]| {
        let ran = finish(wire.haft(&world, &mock.url(), arguments));
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    run(&["-p", "one", "--schema", SCHEMA]);
    run(&["-p", "two", "-c"]);
    run(&["-p", "three", "-c"]);
    let formats: Vec<bool> =
        mock.bodies().iter().map(|body| body.contains("json_schema")).collect();
    assert_eq!(formats, [true, false, false]);
    let events = world.events();
    let breaks = events.iter().filter(|event| matches!(event.body, Body::Break { .. }));
    assert_eq!(breaks.count(), 2, "the first request, and the one without the schema");
}

#[test]
fn a_server_that_does_not_take_the_field_is_asked_without() {
    let wire = Wire::Anthropic;
    let world = World::new();
    let mut number = 0;
    let mock = Mock::with(move |_, request| {
        if String::from_utf8_lossy(&request.body).contains("\"format\"") {
            let error = json!({"type": "error", "error": {"type": "invalid_request_error",
                "message": "output_config.format: Extra inputs are not permitted"}});
            return HttpResponse::new(400, "application/json", error.to_string());
        }
        number += 1;
        if number == 1 { wire.text("Three, since it is.") } else { wire.text(FITS) }
    });
    let arguments = ["-p", "go", "--schema", SCHEMA];
    let ran = finish(wire.haft(&world, &mock.url(), &arguments));
    assert_eq!((ran.code, &*ran.out), (Some(0), "{\"n\":3,\"why\":\"it is\"}\n"), "{ran:?}");
    assert_eq!(mock.requests().len(), 3);
}

#[test]
fn a_schema_that_is_none_is_refused_before_anything_begins() {
    let world = World::new();
    let model = world.script(&[json!({"text": "Never."})]);
    world.file("broken.json", "{");
    world.file("list.json", "[1]");
    for (schema, wanted) in [
        ("missing.json", "\"missing.json\" cannot be read"),
        ("broken.json", "\"broken.json\" is no JSON"),
        ("list.json", "\"list.json\" is no JSON Schema"),
        ("{\"type\": \"objekt\"}", "objekt"),
        ("{nothing", "it is no JSON"),
        ("{\"$ref\": \"#/$defs/none\"}", "$defs/none"),
    ] {
        let ran = finish(world.haft(&["-p", "go", "--model", &model, "--schema", schema]));
        assert_eq!(ran.code, Some(2), "{schema}: {ran:?}");
        assert!(ran.err.contains(wanted), "{schema}: {ran:?}");
    }
    let alone = finish(world.haft(&["--schema", "{}"]));
    assert_eq!(alone.code, Some(2), "{alone:?}");
}
