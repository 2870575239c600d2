//! A wire that is not built in: one file, and one row for its server, through the public API alone.
//!
//! It puts the model into the address, as some servers want it. Its cassette plays with those of
//! the wires that are built in.

use std::sync::Arc;

use futures::StreamExt as _;
use haft_llm::{
    Blobs, Decoder, Delta, Encoded, Endpoint, Habits, LlmError, Patience, Preset, Request,
    RetryPolicy, Role, Target, Wire, WireKind, http_provider,
};
use haft_net::{Client, SseEvent};
use haft_testkit::http::{HttpResponse, HttpServer};
use haft_types::{Message, Part, Stop, ToolSpec, Usage};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const NAME: &str = "third";

/// The wire.
pub(crate) const KIND: WireKind =
    WireKind { name: NAME, codec: |_| Arc::new(ThirdWire), has_slashes: false, searches: false };

/// The row of its server.
pub(crate) fn preset() -> Preset {
    Preset {
        name: NAME.into(),
        prefixes: vec!["third-".into()],
        address: "https://third.example/v1".into(),
        url_variable: "THIRD_BASE_URL".into(),
        key_variables: vec!["THIRD_API_KEY".into()],
        wire: KIND,
        wants_key: true,
        passes_on: false,
    }
}

struct ThirdWire;

impl Wire for ThirdWire {
    fn name(&self) -> &'static str {
        NAME
    }

    fn url(&self, base_url: &str, request: &Request) -> String {
        let base = base_url.trim_end_matches('/');
        format!("{base}/models/{}{}", request.model, self.path())
    }

    fn path(&self) -> &'static str {
        ":answer"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("authorization", format!("Key {key}"))).into_iter().collect()
    }

    fn message(&self, message: &Message, _: &Target, _: &str, _: &dyn Blobs) -> Encoded {
        let (role, text) = match message {
            Message::User { parts, .. } => (Role::User, text(parts)),
            Message::Assistant { parts, .. } => (Role::Assistant, text(parts)),
            Message::Results { results } => {
                let texts = results.iter().map(|result| result.outcome.joined_text());
                (Role::Results, texts.collect::<Vec<_>>().join("\n"))
            }
        };
        let who = if role == Role::Assistant { "model" } else { "person" };
        Encoded::new(role, json!({"who": who, "text": text}).to_string())
    }

    fn tools(&self, tools: &[ToolSpec]) -> String {
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        json!(names).to_string()
    }

    fn request(&self, request: &Request) -> String {
        let said: Vec<&str> = request.messages.iter().map(Encoded::json).collect();
        format!("{{\"tools\":{},\"said\":[{}]}}", request.tools, said.join(","))
    }

    fn decoder(&self, _: Habits) -> Box<dyn Decoder> {
        Box::new(ThirdDecoder::default())
    }
}

fn text(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text { text } => Some(text.clone()),
        _ => None,
    };
    parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

#[derive(Default)]
struct ThirdDecoder {
    began: bool,
    ended: bool,
}

impl Decoder for ThirdDecoder {
    fn event(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        let value: Value = serde_json::from_str(&event.data)
            .map_err(|error| LlmError::Protocol(format!("{error}: {:?}", event.data)))?;
        if let Some(text) = value["text"].as_str().filter(|_| !self.ended) {
            self.began = true;
            out.push(Delta::Text { index: 0, text: text.to_owned() });
        }
        if value["over"] == true {
            self.end(out);
        }
        Ok(())
    }

    fn has_reason(&self) -> bool {
        self.ended
    }

    fn is_call_open(&self) -> bool {
        false
    }

    fn is_empty(&self) -> bool {
        !self.began && !self.ended
    }

    fn finish(&mut self, _: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended {
            return Ok(());
        }
        Err(LlmError::Cut("the answer broke off".into()))
    }
}

impl ThirdDecoder {
    fn end(&mut self, out: &mut Vec<Delta>) {
        if !std::mem::replace(&mut self.ended, true) {
            out.push(Delta::End { stop: Stop::EndTurn, usage: Usage::default() });
        }
    }
}

#[test]
fn models_of_its_server_are_named_as_all_others() {
    let servers = [haft_llm::presets(), vec![preset()]].concat();
    let model = haft_llm::parse_model("third/large", &servers).unwrap();
    assert_eq!(model.to_string(), "third/large");
    let guessed = haft_llm::parse_model("third-large", &servers).unwrap_err().to_string();
    assert!(guessed.contains("\"third/third-large\""), "{guessed}");
    let slashes = haft_llm::parse_model("third/a/b", &servers).unwrap_err().to_string();
    assert!(slashes.contains("a slash too much"), "{slashes}");
}

#[test]
fn its_endpoint_is_checked_as_all_others() {
    let check = |url: &str| Endpoint::of(&preset(), Some(url.into()), Some("k".into())).check();
    assert!(check("https://third.example/v1").is_ok());
    let error = check("https://h/v1/messages").unwrap_err().to_string();
    assert!(error.contains("THIRD_BASE_URL") && error.contains("ANTHROPIC_BASE_URL"), "{error}");
    let missing = Endpoint::of(&preset(), None, None).check().unwrap_err().to_string();
    assert!(missing.contains("THIRD_API_KEY is not set"), "{missing}");
}

#[tokio::test]
async fn the_http_provider_asks_in_it_where_the_model_is() {
    let events = "data: {\"text\":\"Well met.\"}\n\ndata: {\"over\":true}\n\n";
    let server = HttpServer::start(vec![HttpResponse::events(events)]).await.unwrap();
    let endpoint = Endpoint::of(&preset(), Some(server.url()), Some("planted-key".into()));
    let policy = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
    let provider = http_provider(
        endpoint,
        Client::new(),
        Patience::default(),
        policy,
        serde_json::Map::default(),
    );
    assert_eq!(provider.name(), NAME);
    let request = Request { model: "third-large".into(), tools: "[]".into(), ..Request::default() };
    let answer = provider.stream(request, CancellationToken::new());
    let deltas: Vec<Delta> = answer.map(Result::unwrap).collect().await;
    let text = Delta::Text { index: 0, text: "Well met.".into() };
    let end = Delta::End { stop: Stop::EndTurn, usage: Usage::default() };
    assert_eq!(deltas, [text, end]);
    let sent = server.requests();
    assert_eq!(sent[0].target, "/models/third-large:answer");
    assert_eq!(sent[0].header("authorization"), Some("Key planted-key"));
}
