//! `haft mcp` as the tools of an agent that others wrote: the codex command line, whose model is a
//! mock. What its model is told of an answer is what counts, so that is what is looked at.

use std::process::Command;

use haft_testkit::{
    http::{HttpRequest, HttpResponse},
    machine,
};
use serde_json::{Value, json};

use super::sdk::PNG;
use crate::{
    mock_provider::Mock,
    world::{CANARY, Input, World, finish},
};

/// The calls of haft's tools that the mock's first answer makes.
fn calls() -> [(&'static str, Value); 4] {
    [
        ("read", json!({"path": "a.txt"})),
        ("read", json!({"path": "pixel.png"})),
        ("bash", json!({"command": "echo from $((40 + 2)); touch made"})),
        ("bash", json!({"command": "seq 20000"})),
    ]
}

/// An answer on the Responses wire.
fn answer(items: &[Value]) -> HttpResponse {
    let mut events = vec![json!({"type": "response.created", "response": {"id": "r"}})];
    events.extend(items.iter().enumerate().map(
        |(at, item)| json!({"type": "response.output_item.done", "output_index": at, "item": item}),
    ));
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    let response = json!({"id": "r", "usage": usage});
    events.push(json!({"type": "response.completed", "response": response}));
    let mut body = String::new();
    for event in events {
        let name = event["type"].as_str().unwrap();
        body.extend(["event: ", name, "\ndata: ", &event.to_string(), "\n\n"]);
    }
    HttpResponse::events(body)
}

/// A model that makes the calls, and ends once it has their results.
fn model(request: &HttpRequest) -> HttpResponse {
    if request.method != "POST" || !request.target.starts_with("/v1/responses") {
        return HttpResponse::new(404, "text/plain", "only /v1/responses is there");
    }
    if String::from_utf8_lossy(&request.body).contains("function_call_output") {
        let text = json!([{"type": "output_text", "text": "Done.", "annotations": []}]);
        return answer(&[
            json!({"type": "message", "id": "m", "role": "assistant", "content": text}),
        ]);
    }
    let call = |(at, (name, input)): (usize, (&str, Value))| {
        json!({"type": "function_call", "id": format!("f{at}"), "call_id": format!("call{at}"),
            "namespace": "mcp__haft", "name": name, "arguments": input.to_string()})
    };
    answer(&calls().into_iter().enumerate().map(call).collect::<Vec<_>>())
}

/// codex in the workspace, with haft's tools and this model.
fn codex(world: &World, url: &str) -> Option<Command> {
    let script = machine::codex()?;
    let home = world.root().join("codex");
    std::fs::create_dir(&home).unwrap();
    let (work, state) = (world.work(), world.state());
    let settings = format!(
        r#"
model = "mock"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
analytics.enabled = false

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
env_key = "MOCK_KEY"
wire_api = "responses"
supports_websockets = false

[mcp_servers.haft]
command = "{haft}"
args = ["mcp", "--root", "{work}", "--mode", "bypass"]
env = {{ HAFT_HOME = "{state}" }}
startup_timeout_sec = 60
"#,
        haft = env!("CARGO_BIN_EXE_haft"),
        work = work.display(),
        state = state.display(),
    );
    std::fs::write(home.join("config.toml"), settings).unwrap();
    let mut command = world.program("node");
    command.arg(script).args(["exec", "--skip-git-repo-check", "-C"]).arg(world.work()).arg("go");
    command.env("CODEX_HOME", home).env("MOCK_KEY", CANARY);
    Some(command)
}

#[test]
fn codex_hands_its_model_the_text_the_image_and_the_notes() {
    let world = World::new();
    world.file("a.txt", "the first line\nthe second line\n");
    world.file("pixel.png", PNG);
    let mock = Mock::with(|_, request| model(request));
    let Some(command) = codex(&world, &mock.url()) else { return };
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("Done."), "{ran:?}");

    let bodies = mock.bodies();
    let last: Value = serde_json::from_str(bodies.last().unwrap()).unwrap();
    let results: Vec<&Value> = last["input"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["type"] == "function_call_output")
        .map(|item| &item["output"])
        .collect();
    assert_eq!(results.len(), calls().len(), "{last}");
    let [file, image, short, long] = results[..] else { panic!("{last}") };
    let says = |result: &Value, text: &str| {
        assert!(result.to_string().contains(text), "{text:?} is not in {result}");
    };
    says(file, "the first line");
    says(file, "the second line");
    says(image, "PNG image, 2 x 2 pixels");
    let parts = image.as_array().unwrap_or_else(|| panic!("{image}"));
    assert!(parts.iter().any(|part| part["type"] == "input_image"), "{image}");
    says(image, "data:image/png;base64,");
    says(short, "from 42");
    says(short, "[created: made]");
    says(long, "20000");
    let bytes = long.to_string().len();
    assert!(bytes < 60_000, "{bytes} bytes");
}
