//! A mock provider on the loopback interface that speaks each wire.

use std::process::Command;

use haft_testkit::http::{HttpRequest, HttpResponse, HttpServer, Step};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::world::{CANARY, World};

/// The wires that a model can be reached by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Anthropic,
    OpenAi,
    Responses,
}

/// All.
pub const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAi, Wire::Responses];

/// A server with its runtime.
pub struct Mock {
    server: HttpServer,
    runtime: Runtime,
}

impl Mock {
    /// A server that gives these answers, one for each request.
    pub fn new(answers: Vec<HttpResponse>) -> Self {
        let mut answers = answers.into_iter();
        Self::with(move |number, _| {
            answers.next().unwrap_or_else(|| {
                let text = format!("nothing is scripted for request {}", number + 1);
                HttpResponse::new(500, "text/plain", text)
            })
        })
    }

    /// A server that makes its answers. Asked for anything but one it knows of nothing, as many do.
    pub fn with(
        mut answer: impl FnMut(usize, &HttpRequest) -> HttpResponse + Send + 'static,
    ) -> Self {
        let mut count = 0;
        Self::serving(move |request| {
            if request.method == "GET" {
                return HttpResponse::new(404, "text/plain", "there is nothing here");
            }
            count += 1;
            answer(count - 1, request)
        })
    }

    /// A server that answers whatever it is asked.
    pub fn serving(mut answer: impl FnMut(&HttpRequest) -> HttpResponse + Send + 'static) -> Self {
        let answer = move |_, request: &HttpRequest| answer(request);
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(HttpServer::start_with(answer)).unwrap();
        Self { server, runtime }
    }

    /// Its address.
    pub fn url(&self) -> String {
        // The runtime is what serves; it lives as long as the server.
        let _ = &self.runtime;
        self.server.url()
    }

    /// The requests for answers so far.
    pub fn requests(&self) -> Vec<HttpRequest> {
        let all = self.server.requests();
        all.into_iter().filter(|request| request.method != "GET").collect()
    }

    /// The bodies of the requests so far.
    pub fn bodies(&self) -> Vec<String> {
        let text = |request: HttpRequest| String::from_utf8(request.body.to_vec()).unwrap();
        self.requests().into_iter().map(text).collect()
    }
}

impl Wire {
    /// A model's name on this wire.
    pub const fn model(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic/mock-1",
            Self::OpenAi => "openai/mock-1",
            Self::Responses => "openai-responses/mock-1",
        }
    }

    /// The key of a message that says which call a result belongs to.
    pub const fn result_id(self) -> &'static str {
        match self {
            Self::Anthropic => "\"tool_use_id\"",
            Self::OpenAi => "\"tool_call_id\"",
            Self::Responses => "\"function_call_output\"",
        }
    }

    /// The variable that holds the key.
    pub const fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi | Self::Responses => "OPENAI_API_KEY",
        }
    }

    /// The variable that holds the address.
    pub const fn url_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::OpenAi | Self::Responses => "OPENAI_BASE_URL",
        }
    }

    /// The address as the variable wants it.
    pub fn base(self, url: &str) -> String {
        match self {
            Self::Anthropic => url.to_owned(),
            Self::OpenAi | Self::Responses => format!("{url}/v1"),
        }
    }

    /// haft with a key, this server and a model of this wire.
    pub fn haft(self, world: &World, url: &str, arguments: &[&str]) -> Command {
        let mut command = world.haft(arguments);
        command
            .args(["--model", self.model()])
            .env(self.key_variable(), CANARY)
            .env(self.url_variable(), self.base(url));
        command
    }

    /// An answer of text.
    pub fn text(self, text: &str) -> HttpResponse {
        self.answer(Some(text), &[])
    }

    /// An answer of calls, with ids `call_1` and so on after `prefix`.
    pub fn calls(self, prefix: &str, calls: &[(&str, Value)]) -> HttpResponse {
        self.answer(None, &numbered(prefix, calls))
    }

    /// An answer that searches for tools in the form of the wire's maker.
    pub fn search(self, prefix: &str, query: &str) -> HttpResponse {
        let name = if self == Self::Responses { SEARCH } else { "tool_search" };
        self.calls(prefix, &[(name, json!({ "query": query }))])
    }

    /// An answer of text, then of calls as [`calls`](Self::calls) has them.
    pub fn text_and_calls(self, text: &str, prefix: &str, calls: &[(&str, Value)]) -> HttpResponse {
        self.answer(Some(text), &numbered(prefix, calls))
    }

    /// An answer that thinks these words and then says others.
    pub fn thinking(self, thoughts: &str) -> HttpResponse {
        let events = match self {
            Self::Anthropic => vec![
                json!({"type": "content_block_start", "index": 0,
                    "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
                json!({"type": "content_block_delta", "index": 0,
                    "delta": {"type": "thinking_delta", "thinking": thoughts}}),
            ],
            Self::OpenAi => vec![json!({"id": "c-1", "object": "chat.completion.chunk",
                "created": 1, "model": "mock-1", "choices": [{"index": 0,
                "delta": {"reasoning_content": thoughts}, "finish_reason": null}]})],
            Self::Responses => vec![
                json!({"type": "response.output_item.added", "output_index": 0, "item":
                    {"id": "rs_1", "type": "reasoning", "summary": []}}),
                json!({"type": "response.reasoning_summary_text.delta", "output_index": 0,
                    "item_id": "rs_1", "summary_index": 0, "delta": thoughts}),
            ],
        };
        let Step::Send(body) = &self.text("More.").steps[0] else { panic!("one piece") };
        let body = String::from_utf8(body.to_vec()).unwrap();
        // Behind the first event, which begins the answer.
        let (begin, rest) = body.split_once("\n\n").unwrap();
        let named = |event: &Value| match event["type"].as_str() {
            Some(name) => format!("event: {name}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        };
        let events: String = events.iter().map(named).collect();
        HttpResponse::events(format!("{begin}\n\n{events}{rest}"))
    }

    fn answer(self, text: Option<&str>, calls: &[(String, &str, String)]) -> HttpResponse {
        HttpResponse::events(self.events(text, calls))
    }

    fn events(self, text: Option<&str>, calls: &[(String, &str, String)]) -> String {
        match self {
            Self::Anthropic => anthropic(text, calls),
            Self::OpenAi => openai(text, calls),
            Self::Responses => responses(text, calls),
        }
    }

    /// The events of an answer of text, as they stand in the stream.
    pub fn text_events(self, text: &str) -> String {
        self.events(Some(text), &[])
    }
}

/// The kind of an item of Responses that searches for tools.
const SEARCH: &str = "tool_search_call";

/// What a request makes known of tools that come late, in order, by the forms that the wire's maker
/// takes. Fails where the maker would refuse the request.
pub fn known_late_tools(wire: Wire, body: &str) -> Vec<String> {
    let body: Value = serde_json::from_str(body).unwrap();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    let tools = list(&body["tools"]);
    let late = tools.iter().filter(|tool| tool["defer_loading"] == true);
    let declared: Vec<String> = late.map(name).collect();
    let mut known: Vec<String> = Vec::new();
    if wire == Wire::Anthropic {
        for message in list(&body["messages"]) {
            for block in list(&message["content"]) {
                let found = match block["type"].as_str().unwrap() {
                    "tool_result" => list(&block["content"]),
                    "tool_addition" => {
                        assert_eq!(message["role"], "system", "{message}");
                        let tool = &block["tool"];
                        vec![json!({"type": tool["type"], "tool_name": tool["name"]})]
                    }
                    _ => Vec::new(),
                };
                let found = found.iter().filter(|block| block["type"] == "tool_reference");
                let found = found.map(|block| block["tool_name"].as_str().unwrap().to_owned());
                known.extend(found);
            }
        }
        assert!(known.iter().all(|name| declared.contains(name)), "{known:?} {declared:?}");
        return known;
    }
    assert_eq!(wire, Wire::Responses);
    let searches = |tool: &Value| tool["type"] == "tool_search" && tool["execution"] == "client";
    assert_eq!(tools.iter().filter(|tool| searches(tool)).count(), 1, "{tools:?}");
    let mut open: Vec<Value> = Vec::new();
    for item in list(&body["input"]) {
        match item["type"].as_str().unwrap_or_default() {
            SEARCH => open.push(item["call_id"].clone()),
            "tool_search_output" => {
                let at = open.iter().position(|id| *id == item["call_id"]);
                open.remove(at.unwrap_or_else(|| panic!("no search is open for {item}")));
                assert_eq!(item["execution"], "client", "{item}");
                known.extend(list(&item["tools"]).iter().map(name));
            }
            "additional_tools" => {
                assert_eq!(item["role"], "developer", "{item}");
                known.extend(list(&item["tools"]).iter().map(name));
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?} were not answered");
    known
}

/// Calls with their ids and their arguments as text.
fn numbered<'a>(prefix: &str, calls: &[(&'a str, Value)]) -> Vec<(String, &'a str, String)> {
    let one = |(at, (name, input)): (usize, &(&'a str, Value))| {
        (format!("{prefix}_{}", at + 1), *name, input.to_string())
    };
    calls.iter().enumerate().map(one).collect()
}

fn anthropic(text: Option<&str>, calls: &[(String, &str, String)]) -> String {
    let mut events = vec![json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "mock-1", "content": [],
        "usage": {"input_tokens": 11, "output_tokens": 1}}})];
    let mut block = |index: usize, start: Value, delta: Value| {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    };
    if let Some(text) = text {
        block(0, json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}));
    }
    for (at, (id, name, input)) in calls.iter().enumerate() {
        block(
            at + usize::from(text.is_some()),
            json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": input}),
        );
    }
    let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop},
        "usage": {"output_tokens": 7}}));
    events.push(json!({"type": "message_stop"}));
    let mut body = String::new();
    for event in events {
        let name = event["type"].as_str().unwrap();
        body.extend(["event: ", name, "\ndata: ", &event.to_string(), "\n\n"]);
    }
    body
}

fn openai(text: Option<&str>, calls: &[(String, &str, String)]) -> String {
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "mock-1",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let mut chunks = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    if let Some(text) = text {
        chunks.push(chunk(json!({"content": text}), Value::Null));
    }
    for (at, (id, name, input)) in calls.iter().enumerate() {
        let call = json!({"index": at, "id": id, "type": "function",
            "function": {"name": name, "arguments": input}});
        chunks.push(chunk(json!({"tool_calls": [call]}), Value::Null));
    }
    chunks.push(chunk(json!({}), json!(if calls.is_empty() { "stop" } else { "tool_calls" })));
    let mut body = String::new();
    for chunk in chunks {
        body.extend(["data: ", &chunk.to_string(), "\n\n"]);
    }
    let usage = json!({"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18});
    let last = json!({"id": "c-1", "object": "chat.completion.chunk", "created": 1,
        "model": "mock-1", "choices": [], "usage": usage});
    body.extend(["data: ", &last.to_string(), "\n\ndata: [DONE]\n\n"]);
    body
}

fn responses(text: Option<&str>, calls: &[(String, &str, String)]) -> String {
    let message = |text: &str| {
        json!({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "annotations": [], "text": text}]})
    };
    let call = |(id, name, input): &(String, &str, String)| {
        if *name == SEARCH {
            let arguments: Value = serde_json::from_str(input).unwrap();
            return json!({"id": format!("ts_{id}"), "type": SEARCH, "status": "completed",
                "execution": "client", "call_id": id, "arguments": arguments});
        }
        json!({"id": format!("fc_{id}"), "type": "function_call", "status": "completed",
            "call_id": id, "name": name, "arguments": input})
    };
    let items: Vec<Value> = text.map(message).into_iter().chain(calls.iter().map(call)).collect();
    let response = |status: &str, output: &[Value], usage: Value| {
        json!({"id": "resp_1", "object": "response", "status": status, "output": output,
            "created_at": 1, "model": "mock-1", "tools": [], "tool_choice": "auto",
            "parallel_tool_calls": true, "usage": usage})
    };
    let begun = response("in_progress", &[], Value::Null);
    let mut events = vec![json!({"type": "response.created", "response": begun})];
    for (at, item) in items.iter().enumerate() {
        events.push(json!({"type": "response.output_item.added", "output_index": at,
            "item": opened(item)}));
        if item["type"] == "message" {
            events.push(json!({"type": "response.content_part.added", "output_index": at,
                "content_index": 0, "item_id": item["id"],
                "part": {"type": "output_text", "annotations": [], "text": ""}}));
        }
        let delta = match item["arguments"].as_str() {
            Some(input) => Some(json!({"type": "response.function_call_arguments.delta",
                "output_index": at, "item_id": item["id"], "delta": input})),
            // A search comes as a whole.
            None if item["type"] == SEARCH => None,
            None => Some(json!({"type": "response.output_text.delta", "output_index": at,
                "content_index": 0, "item_id": item["id"], "logprobs": [], "delta": text})),
        };
        events.extend(delta);
        events.push(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
    }
    let usage = json!({"input_tokens": 11, "output_tokens": 7, "total_tokens": 18,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0}});
    let done = response("completed", &items, usage);
    events.push(json!({"type": "response.completed", "response": done}));
    let mut body = String::new();
    for (number, mut event) in events.into_iter().enumerate() {
        event["sequence_number"] = json!(number);
        let name = event["type"].as_str().unwrap();
        body.extend(["event: ", name, "\ndata: ", &event.to_string(), "\n\n"]);
    }
    body
}

/// An item of Responses as it begins: what streams of it has not come yet.
fn opened(item: &Value) -> Value {
    let mut item = item.clone();
    item["status"] = json!("in_progress");
    if item["type"] == SEARCH {
        return item;
    }
    let streams = if item["type"] == "message" { "content" } else { "arguments" };
    item[streams] = if streams == "content" { json!([]) } else { json!("") };
    item
}
