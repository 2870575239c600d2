//! The mocks of the providers are read by the providers' own SDKs: a mock that no SDK understands
//! proves nothing.

use std::path::Path;

use haft_testkit::{http::HttpResponse, machine};
use serde_json::{Value, json};

use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, World, finish},
};

#[test]
fn the_sdks_understand_what_the_mocks_stream() {
    let world = World::new();
    for wire in WIRES {
        let name = match wire {
            Wire::Anthropic => "anthropic",
            Wire::OpenAi => "openai",
            Wire::Responses => "responses",
        };
        let calls = [("read", json!({"path": "a.txt"})), ("ls", json!({"path": "b"}))];
        let told = |calls: &[(&str, Value)]| -> Vec<Value> {
            calls.iter().map(|(name, input)| json!({"name": name, "input": input})).collect()
        };
        let answers = [
            (wire.text("Hello, you."), "Hello, you.", Vec::new()),
            (wire.calls("call", &calls[..1]), "", told(&calls[..1])),
            (wire.calls("call", &calls), "", told(&calls)),
        ];
        let mock = |(answer, ..): &(HttpResponse, _, _)| {
            let answer = answer.clone();
            Mock::with(move |_, _| answer.clone())
        };
        let mocks: Vec<Mock> = answers.iter().map(mock).collect();
        // One start for all: an SDK takes seconds to load.
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/sdk_models.py");
        let mut command = world.program(machine::python());
        command.arg(script).arg(name).args(mocks.iter().map(Mock::url));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let ran = finish(command, &Input::Nothing);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.err);
        for (read, (_, text, wanted)) in ran.lines().iter().zip(&answers) {
            assert_eq!(read["problems"], json!([]), "{name}");
            assert_eq!((&read["text"], &read["calls"]), (&json!(text), &json!(wanted)), "{name}");
            assert_eq!(read["usage"], json!([11, 7]), "{name}");
        }
        assert_eq!(ran.lines().len(), answers.len());
    }
}
