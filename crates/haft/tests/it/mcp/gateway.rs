//! haft's wires through a gateway that others wrote: `litellm`, before a mock of a model.
//!
//! The gateway is started once, and everything that needs it is one test. It takes all wires and has
//! two backends: for `hosted_vllm` it speaks Chat Completions to the model whatever it was asked by,
//! for `deepseek` it passes the Messages wire through. Responses it passes through to the former.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    panic::{AssertUnwindSafe, catch_unwind},
    process::{Child, Command, Stdio},
    sync::mpsc::channel,
    thread,
    time::{Duration, Instant},
};

use haft_testkit::{
    http::{HttpRequest, HttpResponse, Step},
    machine,
};
use serde_json::{Value, json};

use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{CANARY, Input, Ran, World, finish},
};

/// How long the gateway may take to start; usually it is about ten seconds.
const START: Duration = Duration::from_mins(4);

/// The names of its models; each has a backend of its own.
const MODELS: [&str; 2] = ["vllm", "deepseek"];

/// A running gateway, which ends with this value.
struct Gateway {
    child: Child,
    url: String,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It has ended already where this fails.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Gateway {
    /// Starts it before a model at this address, and waits until it answers.
    fn start(world: &World, model: &str) -> Self {
        let settings = world.root().join("gateway.yaml");
        let backend = |name: &str, provider: &str| {
            json!({"model_name": name, "litellm_params": {
                "model": format!("{provider}/x"), "api_base": format!("{model}/v1"),
                "api_key": "backend"}})
        };
        let [vllm, deepseek] = MODELS;
        // What is JSON is YAML, too.
        let text = json!({
            "model_list": [backend(vllm, "hosted_vllm"), backend(deepseek, "deepseek")],
            "router_settings": {"num_retries": 0, "disable_cooldowns": true},
            "litellm_settings": {"num_retries": 0, "telemetry": false},
        });
        fs::write(&settings, text.to_string()).unwrap();
        let python = machine::python();
        let mut command = world.program(&python);
        command.arg(python.with_file_name("litellm")).arg("--config").arg(&settings);
        // The system chooses the port, and it tells which.
        command.args(["--host", "127.0.0.1", "--port", "0"]);
        command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("LITELLM_MASTER_KEY", CANARY);
        Self::ready(command)
    }

    fn ready(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let (tell, printed) = channel();
        for stream in [
            Box::new(child.stdout.take().unwrap()) as Box<dyn std::io::Read + Send>,
            Box::new(child.stderr.take().unwrap()),
        ] {
            let tell = tell.clone();
            thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    // Whoever wants no more has gone.
                    drop(tell.send(line));
                }
            });
        }
        // Without an own sender the channel ends with the streams.
        drop(tell);
        let mut gateway = Self { child, url: String::new() };
        let (end, mut lines) = (Instant::now() + START, Vec::new());
        while gateway.url.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(line) = printed.recv_timeout(left) else {
                panic!("the gateway did not start:\n{}", lines.join("\n"))
            };
            let url = line.split("running on ").nth(1).and_then(|rest| rest.split(' ').next());
            url.unwrap_or_default().clone_into(&mut gateway.url);
            lines.push(line);
        }
        while !gateway.answers() {
            assert!(Instant::now() < end, "{} does not answer", gateway.url);
            thread::sleep(Duration::from_millis(50));
        }
        gateway
    }

    /// Whether it says of itself that it is alive.
    fn answers(&self) -> bool {
        let ask = || {
            let mut stream = TcpStream::connect(self.url.strip_prefix("http://")?).ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
            let request = "GET /health/liveliness HTTP/1.0\r\n\r\n";
            stream.write_all(request.as_bytes()).ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).ok()?;
            Some(answer.lines().next()?.contains(" 200 "))
        };
        ask().unwrap_or_default()
    }
}

/// What the model behind the gateway does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Text,
    TwoCalls,
    /// The answer comes whole although a stream was asked for.
    Whole,
    /// The stream ends with `[DONE]` on the Messages wire, too.
    Done,
    Error,
    ErrorInStream,
    CutText,
    CutCall,
}

const CASES: [Case; 8] = [
    Case::Text,
    Case::TwoCalls,
    Case::Whole,
    Case::Done,
    Case::Error,
    Case::ErrorInStream,
    Case::CutText,
    Case::CutCall,
];

const HELLO: &str = "Hello from behind the gateway.";

const NEVER: &str = "This answer is never finished";
const STRIKE: &str = "the model is on strike";

/// The model: what it does stands in the prompt.
fn model(request: &HttpRequest) -> HttpResponse {
    let wire = match &*request.target {
        target if target.ends_with("/messages") => Wire::Anthropic,
        target if target.ends_with("/chat/completions") => Wire::OpenAi,
        target if target.ends_with("/responses") => Wire::Responses,
        // The gateway looks for what models there are.
        _ => return HttpResponse::new(404, "application/json", "{}"),
    };
    let body = String::from_utf8_lossy(&request.body);
    let case = CASES.into_iter().find(|case| body.contains(&format!("case {case:?} ")));
    let read = |path: &str| ("read", json!({"path": path}));
    match case.unwrap_or_else(|| panic!("{body}")) {
        Case::Text => wire.text(HELLO),
        Case::TwoCalls if WIRES.iter().any(|wire| body.contains(wire.result_id())) => {
            wire.text("Both were read.")
        }
        Case::TwoCalls => wire.calls("call", &[read("a.txt"), read("b.txt")]),
        Case::Whole => whole(wire),
        Case::Done => {
            let text = body_of(wire.text(HELLO));
            let text = text.trim_end_matches("data: [DONE]\n\n");
            HttpResponse::events(format!("{text}data: [DONE]\n\n"))
        }
        Case::Error => HttpResponse::new(400, "application/json", error().to_string()),
        Case::ErrorInStream => {
            let text = body_of(wire.text(HELLO));
            let end = text.find(HELLO).unwrap();
            let head = &text[..end + text[end..].find("\n\n").unwrap() + 2];
            let event = if wire == Wire::Anthropic { "event: error\n" } else { "" };
            HttpResponse::events(format!("{head}{event}data: {}\n\n", error()))
        }
        Case::CutText => cut(wire.text(NEVER), "finished"),
        Case::CutCall => {
            let input = json!({"command": "touch made; echo cut-here; echo more"});
            cut(wire.calls("call", &[("bash", input)]), "cut-here")
        }
    }
}

fn error() -> Value {
    let error = json!({"type": "invalid_request_error", "message": STRIKE});
    json!({"type": "error", "error": error})
}

/// An answer that is no stream.
fn whole(wire: Wire) -> HttpResponse {
    let answer = match wire {
        Wire::Anthropic => json!({"id": "msg_1", "type": "message", "role": "assistant",
            "model": "x", "content": [{"type": "text", "text": HELLO}],
            "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 11, "output_tokens": 7}}),
        Wire::OpenAi | Wire::Responses => {
            json!({"id": "c-1", "object": "chat.completion", "created": 1,
            "model": "x", "choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": HELLO}}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}})
        }
    };
    HttpResponse::new(200, "application/json", answer.to_string())
}

fn body_of(mut answer: HttpResponse) -> String {
    let Some(Step::Send(body)) = answer.steps.pop() else { panic!("no body") };
    String::from_utf8(body.to_vec()).unwrap()
}

/// The answer up to the event with this word, where the connection breaks.
fn cut(answer: HttpResponse, word: &str) -> HttpResponse {
    let text = body_of(answer);
    let at = text.find(word).unwrap();
    let end = at + text[at..].find("\n\n").unwrap() + 2;
    let mut answer = HttpResponse::events(text[..end].to_owned());
    answer.steps.push(Step::Cut);
    answer
}

/// One way of haft to the model.
struct Way<'a> {
    gateway: &'a Gateway,
    mock: &'a Mock,
    wire: Wire,
    model: &'a str,
}

impl Way<'_> {
    fn ask(&self, world: &World, case: Case) -> Ran {
        world.settings("[model]\nretry_seconds = 0\n");
        let provider = self.wire.model().split('/').next().unwrap();
        let name = format!("{provider}/{}", self.model);
        let prompt = format!("case {case:?} {name}.");
        let flags = ["-p", &prompt, "--output", "json", "--mode", "bypass", "--model", &name];
        let mut command = world.haft(&flags);
        command.env(self.wire.key_variable(), CANARY);
        command.env(self.wire.url_variable(), self.wire.base(&self.gateway.url));
        finish(command, &Input::Nothing)
    }

    /// The bodies of the requests that came to the model so far for a case.
    fn asked(&self, case: Case) -> Vec<String> {
        let provider = self.wire.model().split('/').next().unwrap();
        let prompt = format!("case {case:?} {provider}/{}.", self.model);
        self.mock.bodies().into_iter().filter(|body| body.contains(&prompt)).collect()
    }

    /// Whether a case can be had this way: where the gateway translates, it loses an answer that
    /// comes whole, and haft gets an empty one.
    fn has(&self, case: Case) -> bool {
        case != Case::Whole || self.wire == Wire::Anthropic && self.model == "deepseek"
    }

    fn is_right(&self, case: Case) {
        let world = World::new();
        world.file("a.txt", "alpha\n");
        world.file("b.txt", "beta\n");
        let ran = self.ask(&world, case);
        let result: Value = ran.json();
        match case {
            Case::Text | Case::Whole | Case::Done => {
                assert_eq!(ran.code, Some(0), "{ran:?}");
                assert_eq!(result["text"], HELLO, "{ran:?}");
                let usage = &result["usage"];
                assert_eq!((&usage["input"], &usage["output"]), (&json!(11), &json!(7)), "{ran:?}");
                assert_eq!(self.asked(case).len(), 1, "{ran:?}");
            }
            Case::TwoCalls => {
                assert_eq!(ran.code, Some(0), "{ran:?}");
                assert_eq!(result["text"], "Both were read.", "{ran:?}");
                assert_eq!((&result["calls"], &result["failed_calls"]), (&json!(2), &json!(0)));
                let usage = &result["usage"];
                assert_eq!(
                    (&usage["input"], &usage["output"]),
                    (&json!(22), &json!(14)),
                    "{ran:?}"
                );
                let asked = self.asked(case);
                assert_eq!(asked.len(), 2, "{ran:?}");
                for word in ["alpha", "beta"] {
                    assert!(asked[1].contains(word), "{word}: {}", asked[1]);
                }
            }
            Case::Error | Case::ErrorInStream => {
                assert_eq!(ran.code, Some(1), "{ran:?}");
                assert!(ran.err.contains(STRIKE), "{ran:?}");
                assert_eq!(self.asked(case).len(), 1, "{ran:?}");
            }
            Case::CutText => {
                assert_eq!(ran.code, Some(1), "{ran:?}");
                // Where the gateway hears of the cut before it sent anything, it says so as a status.
                let told = ["broke", "status 500"].iter().any(|words| ran.err.contains(words));
                assert!(told, "{ran:?}");
                let begun = result["text"].as_str().unwrap();
                assert!(NEVER.starts_with(begun), "{ran:?}");
            }
            Case::CutCall => {
                assert_eq!(ran.code, Some(1), "{ran:?}");
                assert_eq!(result["calls"], json!(0), "{ran:?}");
                assert!(!world.work().join("made").exists(), "half a call was run: {ran:?}");
            }
        }
    }
}

#[test]
fn all_wires_work_through_a_gateway() {
    let world = World::new();
    let mock = Mock::with(|_, request| model(request));
    let gateway = Gateway::start(&world, &mock.url());
    let mut failed = Vec::new();
    for wire in WIRES {
        for model in MODELS {
            let way = Way { gateway: &gateway, mock: &mock, wire, model };
            for case in CASES.into_iter().filter(|case| way.has(*case)) {
                if catch_unwind(AssertUnwindSafe(|| way.is_right(case))).is_err() {
                    failed.push(format!("{wire:?} to {model}: {case:?}"));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
