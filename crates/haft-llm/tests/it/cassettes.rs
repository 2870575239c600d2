//! The one machine that runs every cassette of every wire.
//!
//! A new wire, or a new oddity of a server, needs only a file in `tests/cassettes`. When a file
//! and the code disagree, what it would have to be is written to a folder that the failure names.

use std::{collections::HashMap, io, path::Path, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::StreamExt as _;
use haft_llm::{
    AnswerReader, Blobs, Delta, Encoded, Endpoint, Habits, HttpProvider, LateTools, LlmError,
    Patience, Preset, Provider, Request, Retry, RetryPolicy, Target, Wire, joined_tools, presets,
};
use haft_net::{Bytes, Client};
use haft_testkit::{
    cassette::{Cassette, read_folder, write_actual},
    http::{HttpResponse, HttpServer, Step},
};
use haft_types::{Blob, Message, ToolSpec, ToolUse};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::third_wire;

/// The section `request` of a cassette.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestSection {
    model: String,
    effort: Option<String>,
    max_tokens: Option<u32>,
    #[serde(default = "yes")]
    vision: bool,
    #[serde(default)]
    system: Vec<String>,
    #[serde(default)]
    tools: Vec<ToolSpec>,
    /// Tools that are declared, and seen once they are named.
    #[serde(default)]
    deferred: Vec<ToolSpec>,
    /// The tool that finds them.
    search: Option<ToolSpec>,
    messages: Vec<Entry>,
    /// Base64 by hash.
    #[serde(default)]
    blobs: HashMap<String, String>,
}

/// What stands in a conversation.
#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    /// Tools that come late; found by the call of this name in the answer before, where one is named.
    Late {
        late: Vec<ToolSpec>,
        #[serde(default)]
        are_declared: bool,
        found_by: Option<ToolUse>,
    },
    /// Words of haft.
    System {
        system: String,
    },
    Message(Message),
}

fn yes() -> bool {
    true
}

struct Store(HashMap<String, String>);

impl Blobs for Store {
    fn load(&self, blob: &Blob) -> io::Result<Bytes> {
        let text = self.0.get(&blob.hash.to_string()).ok_or(io::ErrorKind::NotFound)?;
        Ok(STANDARD.decode(text).map_err(io::Error::other)?.into())
    }
}

/// The server whose answers the messages of cassettes are; a section `host` names another one, to
/// which they are sent.
const HOST: &str = "cassette:80";

/// The server of the maker of the cassette's wire.
fn preset(cassette: &Cassette) -> Preset {
    let name = cassette.section("wire").expect("a section wire").trim();
    let mut all = presets().into_iter().chain([third_wire::preset()]);
    all.find(|preset| preset.name == name && preset.is_makers())
        .unwrap_or_else(|| panic!("{}: no such wire: {name:?}", cassette.name))
}

fn wire(cassette: &Cassette) -> Arc<dyn Wire> {
    let preset = preset(cassette);
    let is_makers = cassette.section("newest").is_some();
    (preset.wire.codec)(&Endpoint { is_makers, ..Endpoint::of(&preset, None, None) })
}

fn request(cassette: &Cassette, wire: &dyn Wire) -> Request {
    let text = cassette.section("request").expect("a section request");
    let asked: RequestSection = serde_json::from_str(text)
        .unwrap_or_else(|error| panic!("{}: section request: {error}", cassette.name));
    let target = Target { model: asked.model.clone(), vision: asked.vision };
    let store = Store(asked.blobs);
    let host = cassette.section("host").map_or(HOST, str::trim);
    let (mut messages, mut behind): (Vec<Encoded>, Vec<Encoded>) = Default::default();
    for entry in &asked.messages {
        match entry {
            Entry::Message(message) => messages.push(wire.message(message, &target, host, &store)),
            Entry::System { system } => messages.push(wire.system_message(system, &target)),
            Entry::Late { late, are_declared, found_by } => {
                let late = LateTools { tools: late, are_declared: *are_declared };
                match found_by {
                    Some(call) => {
                        let (result, more) = wire.found_tools(call, &late, &target);
                        messages.push(result);
                        behind.extend(more);
                    }
                    None => messages.push(wire.late_tools(&late, &target)),
                }
                continue;
            }
        }
        let at = messages.len() - 1;
        messages.splice(at..at, behind.drain(..));
    }
    messages.append(&mut behind);
    let search = asked.search.iter();
    let search = search.filter_map(|tool| {
        wire.tool_search(tool, &target).or_else(|| Some(wire.tools(std::slice::from_ref(tool))))
    });
    let deferred = Some(&asked.deferred).filter(|tools| !tools.is_empty());
    let deferred = deferred.and_then(|tools| wire.deferred_tools(tools, &target));
    let lists: Vec<String> =
        deferred.into_iter().chain(search).chain([wire.tools(&asked.tools)]).collect();
    let tools = joined_tools(&lists.iter().map(String::as_str).collect::<Vec<_>>());
    Request {
        model: asked.model,
        effort: asked.effort.map(|effort| effort.parse().unwrap()),
        max_tokens: asked.max_tokens,
        system: asked.system.into(),
        tools: tools.into(),
        messages,
        ..Request::default()
    }
}

/// What an answer came to: a JSON line for each delta, then the error.
fn told(deltas: &[Delta], error: Option<&LlmError>) -> String {
    let mut lines: Vec<String> =
        deltas.iter().map(|delta| serde_json::to_string(delta).unwrap()).collect();
    lines.extend(error.map(|error| {
        let kind = format!("{error:?}");
        let kind = kind.split(['(', ' ']).next().unwrap_or_default();
        format!("{kind}: {}", error.to_string().replace('\n', " "))
    }));
    lines.join("\n")
}

/// Reads a body as pure codec, in these pieces.
fn read(wire: &dyn Wire, pieces: &[&[u8]]) -> (Vec<Delta>, Option<LlmError>) {
    let mut reader = AnswerReader::new(wire.decoder(Habits::default()));
    let mut out = Vec::new();
    for piece in pieces {
        if let Err(error) = reader.push(piece, &mut out) {
            return (out, Some(error));
        }
    }
    let error = reader.finish(&mut out).err();
    (out, error)
}

fn calls(deltas: &[Delta]) -> Vec<&Delta> {
    deltas.iter().filter(|delta| matches!(delta, Delta::Call { .. })).collect()
}

/// The text and the thinking of an answer.
fn said(deltas: &[Delta]) -> [String; 2] {
    let text = |delta: &Delta| {
        if let Delta::Text { text, .. } = delta { Some(text.clone()) } else { None }
    };
    let thinking = |delta: &Delta| {
        if let Delta::Thinking { text, .. } = delta { Some(text.clone()) } else { None }
    };
    [deltas.iter().filter_map(text).collect(), deltas.iter().filter_map(thinking).collect()]
}

/// The body of a stream of events; none for every other answer.
fn stream_body(response: &HttpResponse) -> Option<Vec<u8>> {
    let is_stream = response.headers.iter().any(|(_, value)| value.contains("event-stream"));
    (response.status == 200 && is_stream).then(|| {
        let bytes = response.steps.iter().map(|step| match step {
            Step::Send(bytes) | Step::Drip(bytes, _) => &bytes[..],
            _ => &[],
        });
        bytes.collect::<Vec<_>>().concat()
    })
}

/// Packets change nothing; a stream that ends anywhere loses no whole call and makes none up.
fn codec_holds_at_every_byte(name: &str, wire: &dyn Wire, body: &[u8]) {
    let (whole, error) = read(wire, &[body]);
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(read(wire, &bytes), (whole.clone(), error.clone()), "{name}: byte by byte");
    let all = calls(&whole);
    for at in 0..=body.len() {
        let (head, tail) = body.split_at(at);
        assert_eq!(read(wire, &[head, tail]), (whole.clone(), error.clone()), "{name} at {at}");
        let (cut, cut_error) = read(wire, &[head]);
        let ended = cut.iter().filter(|delta| matches!(delta, Delta::End { .. })).count();
        assert_eq!(ended + usize::from(cut_error.is_some()), 1, "{name}: cut at {at}");
        let text = said(&cut);
        if ended == 1 {
            // A count may be missing, but no word and no call.
            assert_eq!((&text, calls(&cut)), (&said(&whole), all.clone()), "{name}: cut at {at}");
        }
        for call in calls(&cut) {
            let same = calls(&cut).into_iter().filter(|other| *other == call).count();
            assert!(all.contains(&call) && same == 1, "{name}: cut at {at}: {call:?}");
        }
    }
}

/// Asks a real server that plays the cassette.
async fn live(cassette: &Cassette, wire: Arc<dyn Wire>, request: Request) -> (String, Vec<Bytes>) {
    let responses = cassette.responses().expect("valid statuses");
    let stalls = responses.iter().any(|response| response.steps.contains(&Step::Stall));
    let server = HttpServer::start(responses).await.unwrap();
    let key = Some("planted-key".into());
    let endpoint = Endpoint::of(&preset(cassette), Some(server.url()), key);
    let address = wire.url("", &request);
    let patience = if stalls {
        let silence = Duration::from_millis(150);
        Patience { silence, end: silence, ..Patience::default() }
    } else {
        Patience::default()
    };
    let policy = RetryPolicy { attempts: 3, base_ms: 2, cap_ms: 2, ..RetryPolicy::default() };
    let once = HttpProvider::new(wire, endpoint, Client::new(), patience);
    let provider = Retry::new(Arc::new(once), policy);
    let mut answer = provider.stream(request, CancellationToken::new());
    let (mut deltas, mut error) = (Vec::new(), None);
    while let Some(item) = answer.next().await {
        match item {
            Ok(delta) => deltas.push(delta),
            Err(failed) => error = Some(failed),
        }
    }
    let requests = server.requests();
    for request in &requests {
        assert_eq!((&*request.method, &request.target), ("POST", &address));
        let key = request.header("x-api-key").or_else(|| request.header("authorization"));
        assert!(key.unwrap().ends_with("planted-key"));
        assert_eq!(request.header("anthropic-beta"), cassette.section("beta").map(str::trim));
    }
    let text = told(&deltas, error.as_ref()).replace(&server.url(), "URL");
    let text = without_reasons(&text);
    assert!(!text.contains("planted-key"), "{}: {text}", cassette.name);
    (text, requests.into_iter().map(|request| request.body).collect())
}

/// The text without what the HTTP library says about a broken connection, which is not ours, and without
/// how long it took.
fn without_reasons(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(" broke: ") {
        Some((head, rest)) => {
            format!("{head} broke{}", if rest.ends_with("\"}") { "\"}" } else { "" })
        }
        None => match line.split_once(" times in ") {
            Some((head, _)) if head.contains("haft tried ") => format!("{head} times"),
            _ => line.to_owned(),
        },
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Runs one cassette; gives back what differs, as a new text of the file.
async fn run(cassette: &Cassette) -> Option<String> {
    let name = &cassette.name;
    let wire = wire(cassette);
    let request = request(cassette, &*wire);
    let body = wire.request(&request);
    let value: Value = serde_json::from_str(&body)
        .unwrap_or_else(|error| panic!("{name}: the request is not JSON: {error}: {body}"));
    for response in cassette.responses().expect("valid statuses") {
        if let Some(stream) = stream_body(&response) {
            codec_holds_at_every_byte(name, &*wire, &stream);
        }
    }
    let (told, bodies) = live(cassette, wire, request).await;
    // A line for each request that is not the first one again.
    let others: Vec<&str> = bodies
        .iter()
        .filter_map(|sent| std::str::from_utf8(sent).ok().filter(|sent| *sent != body))
        .collect();
    let others = others.join("\n");
    let same_others = cassette.section("others").unwrap_or_default() == others;
    let expected_body: Option<Value> =
        cassette.section("body").and_then(|text| serde_json::from_str(text).ok());
    // Compared as text, because the order of the keys counts.
    let same_body = expected_body.map(|value| value.to_string()) == Some(value.to_string());
    (!same_body || !same_others || cassette.section("expect") != Some(&told)).then(|| {
        let body = serde_json::to_string_pretty(&value).unwrap();
        let others = Some(("others", others.as_str())).filter(|(_, others)| !others.is_empty());
        let sections = [("body", body.as_str())].into_iter().chain(others);
        cassette.with(&sections.chain([("expect", told.as_str())]).collect::<Vec<_>>())
    })
}

#[tokio::test]
async fn every_cassette_plays_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cassettes");
    let cassettes = read_folder(&folder).unwrap();
    assert!(cassettes.len() >= 20, "only {} cassettes were found", cassettes.len());
    let actual = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cassettes");
    let mut different = Vec::new();
    for cassette in &cassettes {
        if let Some(text) = run(cassette).await {
            write_actual(&actual, &cassette.name, &text).unwrap();
            different.push(cassette.name.as_str());
        }
    }
    assert!(different.is_empty(), "{different:?} differ; see {}", actual.display());
}
