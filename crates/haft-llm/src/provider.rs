//! What an agent talks to: something that encodes messages once and streams answers.
//!
//! **Invariant:** a stream of deltas ends with [`Delta::End`] or with one error, and never hangs:
//! silence is bounded, keep-alives without content are bounded, and the stop token ends it at
//! once. Dropping a stream ends its request.

use std::{
    collections::{BTreeMap, VecDeque},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use haft_net::{Client, NetError, Response};
use haft_types::{Message, Part, ToolSpec};
use serde_json::{Map, Value, value::RawValue};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    AnswerReader, Blobs, Delta, Encoded, Endpoint, LlmError, Request, Server, Target, Wire,
    endless::Tail,
    failure::{self, Failed},
    json,
    shared::NULL_CONTENT,
};

/// The deltas of one answer.
pub type Answer = BoxStream<'static, Result<Delta, LlmError>>;

/// Gives answers of models.
pub trait Provider: Send + Sync + 'static {
    /// The name that stands in [`Message::Assistant`] for its answers.
    fn name(&self) -> &str;

    /// The server that its answers come from, as `HOST:PORT`; empty where there is none.
    fn host(&self) -> &str;

    /// The codec by which tools that come late are told. None where no server reads what is encoded:
    /// they are told as plain words then.
    fn wire(&self) -> Option<&dyn Wire> {
        None
    }

    /// Encodes a message for one model, once, to be kept and sent with every request.
    fn encode(&self, message: &Message, target: &Target, blobs: &dyn Blobs) -> Encoded;

    /// Encodes the tool definitions, once, to be kept and sent with every request.
    fn encode_tools(&self, tools: &[ToolSpec]) -> String;

    /// Encodes the JSON Schema that answers have to fit, once, to be kept and sent with every
    /// request. None where the provider cannot be told of one.
    fn encode_format(&self, schema: &Value) -> Option<String> {
        let _ = schema;
        None
    }

    /// Asks for an answer. Nothing happens until the stream is polled.
    ///
    /// The stream ends after [`Delta::End`] or after its first error; a cancelled `stop` ends it
    /// with [`LlmError::Cancelled`].
    fn stream(&self, request: Request, stop: CancellationToken) -> Answer;
}

/// How long a server may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Without any byte. Servers that think before they speak are silent for minutes.
    pub silence: Duration,
    /// Without anything of the answer, keep-alives notwithstanding.
    pub keep_alive: Duration,
    /// After the stop reason, for the end mark and the counts that may follow.
    pub end: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            silence: Duration::from_mins(5),
            keep_alive: Duration::from_mins(10),
            end: Duration::from_secs(5),
        }
    }
}

/// A model behind HTTP: one wire, one server. Asks once; see [`Retry`](crate::Retry).
#[derive(Clone)]
pub struct HttpProvider {
    wire: Arc<dyn Wire>,
    endpoint: Arc<Endpoint>,
    server: Arc<Server>,
    client: Client,
    patience: Patience,
    /// Fields that are added to each request.
    fields: Arc<Map<String, Value>>,
}

impl HttpProvider {
    /// Makes a provider; nothing is opened.
    pub fn new(
        wire: Arc<dyn Wire>,
        endpoint: Endpoint,
        client: Client,
        patience: Patience,
    ) -> Self {
        let server = Arc::new(Server::new(&endpoint.base_url));
        let (endpoint, fields) = (Arc::new(endpoint), Arc::default());
        Self { wire, endpoint, server, client, patience, fields }
    }

    /// The same, with these fields added to the body of each request. What the wire writes itself
    /// stays.
    #[must_use]
    pub fn with_fields(self, fields: Map<String, Value>) -> Self {
        Self { fields: Arc::new(fields), ..self }
    }
}

impl Provider for HttpProvider {
    fn name(&self) -> &str {
        self.wire.name()
    }

    fn host(&self) -> &str {
        &self.server.host
    }

    fn wire(&self) -> Option<&dyn Wire> {
        Some(&*self.wire)
    }

    fn encode(&self, message: &Message, target: &Target, blobs: &dyn Blobs) -> Encoded {
        let host = &self.server.host;
        // What an earlier run of the conversation learnt stands in its messages.
        if let Message::Assistant { model, host: by, parts, .. } = message
            && model == &target.model
            && by == host
        {
            for part in parts {
                self.learn(model, part);
            }
        }
        self.wire.message(message, target, host, blobs)
    }

    fn encode_tools(&self, tools: &[ToolSpec]) -> String {
        self.wire.tools(tools)
    }

    fn encode_format(&self, schema: &Value) -> Option<String> {
        self.wire.format(schema)
    }

    fn stream(&self, request: Request, stop: CancellationToken) -> Answer {
        let attempt = Attempt {
            provider: self.clone(),
            model: request.model.clone(),
            url: self.wire.url(&self.endpoint.base_url, &request),
            stop,
            state: State::Asking(Box::new(request)),
            ready: VecDeque::new(),
            failed: None,
        };
        stream::unfold(attempt, |mut attempt| async {
            attempt.next().await.map(|item| (item, attempt))
        })
        .boxed()
    }
}

impl HttpProvider {
    async fn post(&self, url: &str, request: &Request) -> Result<Response, LlmError> {
        let HttpProvider { wire, endpoint, client, patience, .. } = self;
        let own = wire.headers(endpoint.key.as_deref());
        let mut headers =
            vec![("content-type", "application/json"), ("accept", "text/event-stream")];
        if request.whole {
            headers[1].1 = "application/json";
        }
        let more = wire.request_headers(request);
        headers.extend(own.iter().chain(&more).map(|(name, value)| (*name, value.as_str())));
        let mut body = wire.request(request);
        add_fields(&mut body, &self.fields);
        let body = Bytes::from(body);
        let asked = client.post(url, &headers, body);
        match tokio::time::timeout(patience.silence, asked).await {
            Ok(response) => response.map_err(|error| self.network(&error)),
            Err(_) => Err(self.stalled(patience.silence, "any answer")),
        }
    }

    fn stalled(&self, limit: Duration, missing: &str) -> LlmError {
        let url = haft_net::shown_url(&self.endpoint.base_url);
        let seconds = limit.as_secs_f64();
        LlmError::Cut(format!("{url} stalled: it did not send {missing} for {seconds} s"))
    }

    fn network(&self, error: &NetError) -> LlmError {
        let variable = &self.endpoint.url_variable;
        match error {
            // So the client says of a tunnel that it did not get (RFC 9110, section 15.5.8).
            NetError::Connect { .. }
                if error.to_string().contains("proxy authorization required") =>
            {
                LlmError::Config(format!("{error}\n{}", crate::failure::PROXY_PASSWORD))
            }
            NetError::Connect { .. } => LlmError::Unreachable(format!(
                "{error}\nCheck the network, and the address in {variable}."
            )),
            NetError::Invalid(_) => LlmError::Config(format!(
                "{error}\nCheck {variable} and {}.",
                self.endpoint.key_variable
            )),
            NetError::Setup(_) => LlmError::Config(error.to_string()),
            NetError::Broken { .. } => LlmError::Cut(error.to_string()),
        }
    }

    fn learn(&self, model: &str, part: &Part) {
        if let Part::Thinking { signature: Some(field), .. } = part {
            self.server.gave_reasoning(model, field);
        }
    }

    /// What is to be said of the address before the first request, once.
    fn note_on_address(&self) -> Option<Delta> {
        let Endpoint { base_url, url_variable, .. } = &*self.endpoint;
        let path = self.wire.path();
        if !base_url.trim_end_matches('/').ends_with(path) || !self.server.note_once("address") {
            return None;
        }
        let text = format!(
            "{url_variable} ends in {path}: it is taken for the whole address of requests, so \
             nothing is appended to it"
        );
        Some(Delta::Note { text })
    }
}

/// One request on its way.
struct Attempt {
    provider: HttpProvider,
    model: String,
    /// Where it is sent to.
    url: String,
    stop: CancellationToken,
    state: State,
    ready: VecDeque<Delta>,
    /// Told once everything that came before it was given out.
    failed: Option<LlmError>,
}

/// An answer that comes in.
struct Reading {
    response: Response,
    reader: AnswerReader,
    /// What it has said last.
    tail: Tail,
    /// Since when nothing of the answer came.
    quiet_since: Instant,
    /// When the rest has to be there, once the reason for the end is known.
    end: Option<Instant>,
}

enum State {
    Asking(Box<Request>),
    Reading(Box<Reading>),
    Over,
}

impl Attempt {
    async fn next(&mut self) -> Option<Result<Delta, LlmError>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Some(Ok(delta));
            }
            if let Some(error) = self.failed.take() {
                return Some(Err(error));
            }
            let state = std::mem::replace(&mut self.state, State::Over);
            let stop = self.stop.clone();
            let work = async {
                match state {
                    State::Asking(request) => self.ask(&request).await,
                    State::Reading(reading) => self.read(reading).await,
                    State::Over => Ok(State::Over),
                }
            };
            let result = tokio::select! {
                biased;
                () = stop.cancelled() => Err(LlmError::Cancelled),
                result = work => result,
            };
            match result {
                Ok(state) => self.state = state,
                Err(error) => self.failed = Some(error),
            }
            let is_over = matches!(self.state, State::Over);
            if is_over && self.ready.is_empty() && self.failed.is_none() {
                return None;
            }
        }
    }

    async fn ask(&mut self, request: &Request) -> Result<State, LlmError> {
        self.provider.endpoint.check()?;
        self.ready.extend(self.provider.note_on_address());
        let mut request = request.clone();
        request.without = self.provider.server.refused(&self.model);
        loop {
            let mut response = self.provider.post(&self.url, &request).await?;
            let kind = response.header("content-type").unwrap_or_default().to_ascii_lowercase();
            if response.status() == 200 && !kind.contains("html") {
                let Self { provider: HttpProvider { wire, server, .. }, .. } = self;
                let reader = AnswerReader::new(wire.decoder(server.habits(&self.model)));
                let quiet_since = Instant::now();
                let reading =
                    Reading { response, reader, tail: Tail::default(), quiet_since, end: None };
                return Ok(State::Reading(Box::new(reading)));
            }
            let body = response.text(64 << 10);
            let body = tokio::time::timeout(self.provider.patience.end, body).await;
            let body = body.unwrap_or_default();
            // Asked once more for each field that the server says it does not take.
            let field = {
                let optional = self.provider.wire.optional();
                let status = response.status();
                refused_field(status, &body, &request, optional)
                    .or_else(|| refused_null(status, &body, &request))
            };
            match field.filter(|field| self.provider.server.refuses(&self.model, field)) {
                Some(field) => request.without.push(field),
                None => return Err(self.failed(&response, &body)),
            }
        }
    }

    /// What a body means that is no answer.
    fn failed(&self, response: &Response, body: &str) -> LlmError {
        failure::of_answer(&Failed {
            endpoint: &self.provider.endpoint,
            url: &self.url,
            model: &self.model,
            status: response.status(),
            retry_after_ms: retry_after(response),
            body,
        })
    }

    async fn read(&mut self, mut reading: Box<Reading>) -> Result<State, LlmError> {
        let patience = self.provider.patience;
        let Reading { response, reader, tail, quiet_since, end } = &mut *reading;
        let quiet_end = *quiet_since + patience.keep_alive;
        if reader.is_complete() {
            // What only says that the server is there does not put the end off.
            end.get_or_insert_with(|| Instant::now() + patience.end);
        }
        let silence = Instant::now() + patience.silence;
        let deadline = end.unwrap_or(silence).min(quiet_end);
        let chunk = tokio::time::timeout_at(deadline, pin!(response.chunk())).await;
        let mut out = Vec::new();
        let result = match chunk {
            Ok(Ok(Some(bytes))) => reader.push(&bytes, &mut out).map(|()| true),
            Ok(Ok(None)) => reader.finish(&mut out).map(|()| false),
            // Nothing is lost when the connection breaks or idles after the stop reason.
            _ if reader.is_complete() => reader.finish(&mut out).map(|()| false),
            Ok(Err(error)) => {
                let network = self.provider.network(&error);
                match reader.finish(&mut out) {
                    Err(LlmError::Cut(_)) => Err(network),
                    // Some servers judge a request only once its stream has begun, and break off.
                    Err(LlmError::Empty(_)) => Err(LlmError::Empty(network.to_string())),
                    other => other.map(|()| false),
                }
            }
            Err(_) if deadline == quiet_end => {
                Err(self.provider.stalled(patience.keep_alive, "anything but keep-alives"))
            }
            Err(_) => Err(self.provider.stalled(patience.silence, "a single byte")),
        };
        let ended = out.iter().any(|delta| matches!(delta, Delta::End { .. }));
        // One that came to its end is no endless one.
        let result = match result {
            Ok(goes_on) if !ended => tail.take(&out).map(|()| goes_on),
            result => result,
        };
        let result = match result {
            Err(LlmError::NoAnswer(body)) => Err(self.failed(response, &body)),
            other => other,
        };
        if !out.is_empty() {
            *quiet_since = Instant::now();
        }
        let has_reason = reader.has_reason();
        self.remember(&out, &result, has_reason);
        self.ready.extend(out);
        let goes_on = self.told(result)? && !ended;
        Ok(if goes_on { State::Reading(reading) } else { State::Over })
    }

    /// Learns from an answer what its server does, and says what the person has to know of it.
    fn remember(&mut self, deltas: &[Delta], result: &Result<bool, LlmError>, has_reason: bool) {
        let server = &self.provider.server;
        if matches!(result, Err(LlmError::NoReason(_))) {
            server.missed_reason();
        }
        for delta in deltas {
            match delta {
                Delta::ThinkingEnd { signature: Some(field), .. } => {
                    server.gave_reasoning(&self.model, field);
                }
                Delta::End { .. } if server.counted(has_reason) => {
                    let text = format!(
                        "{} gives no reason for the end of its answers, so one that broke off \
                         cannot be told from a whole one",
                        haft_net::shown_url(&self.provider.endpoint.base_url)
                    );
                    self.ready.push_back(Delta::Note { text });
                }
                _ => {}
            }
        }
    }

    /// Takes the key out of an error's text, in case a server repeated it in an event, and says
    /// what to look at where the server does not speak the wire.
    fn told<T>(&self, result: Result<T, LlmError>) -> Result<T, LlmError> {
        let clean = |text: String| self.provider.endpoint.without_key(&text);
        result.map_err(|error| match error {
            LlmError::Busy { message, retry_after_ms, paid } => {
                LlmError::Busy { message: clean(message), retry_after_ms, paid }
            }
            LlmError::TooLong(text) => LlmError::TooLong(clean(text)),
            LlmError::Config(text) => LlmError::Config(clean(text)),
            LlmError::NoModel(text) => LlmError::NoModel(clean(text)),
            LlmError::Rejected(text) => LlmError::Rejected(clean(text)),
            LlmError::Broken(text) => LlmError::Broken(clean(text)),
            LlmError::Protocol(text) => LlmError::Protocol(format!(
                "{}\nCheck that the address in {} leads to a server of this kind.",
                clean(text),
                self.provider.endpoint.url_variable
            )),
            other => other,
        })
    }
}

/// Adds fields to the end of a JSON object. Those that stand in it already stay as they are.
fn add_fields(body: &mut String, fields: &Map<String, Value>) {
    if fields.is_empty() {
        return;
    }
    let known: BTreeMap<&str, &RawValue> = serde_json::from_str(body).unwrap_or_default();
    // What is about tools is refused where there are none, as in a request for a summary.
    let has_tools = known.contains_key("tools");
    let is_sent = |name: &str| {
        let is_of_tools = matches!(name, "tool_choice" | "parallel_tool_calls");
        !known.contains_key(name) && (has_tools || !is_of_tools)
    };
    let mut added = String::new();
    for (name, value) in fields.iter().filter(|(name, _)| is_sent(name)) {
        added.push(',');
        json::push_string(&mut added, name);
        added.push(':');
        added.push_str(&value.to_string());
    }
    if body.pop() == Some('}') {
        body.push_str(&added);
        body.push('}');
    }
}

/// The field of the request, or of its messages, that a refusal says the server does not take.
fn refused_field(status: u16, body: &str, request: &Request, optional: &[&str]) -> Option<String> {
    const WORDS: [&str; 17] = [
        "unsupported",
        "not supported",
        "not support",
        "not permitted",
        "not allowed",
        "unknown",
        "unrecognized",
        "unexpected",
        "extra input",
        "extra field",
        "extra_forbidden",
        "additional propert",
        "invalid field",
        "not recogni",
        "should not exist",
        "forbidden",
        "not a valid",
    ];
    if !matches!(status, 400 | 422) {
        return None;
    }
    let body = body.to_ascii_lowercase();
    let is_wanted = body.contains("missing") || body.contains("required");
    if is_wanted || !WORDS.iter().any(|words| body.contains(words)) {
        return None;
    }
    let sent = request.messages.iter().flat_map(|message| &message.pieces().optional);
    let sent = sent.map(|(field, _)| field.as_str()).chain(optional.iter().copied());
    let is_left = |field: &str| !request.without.iter().any(|without| without == field);
    let field = sent.into_iter().find(|field| is_left(field) && names(&body, field));
    field.map(str::to_owned)
}

/// The sign for a content that is null, where the server wants a text in its place. Some say so with
/// status 500, since it is their template of the model that fails.
fn refused_null(status: u16, body: &str, request: &Request) -> Option<String> {
    const WORDS: [&str; 4] = ["valid string", "must be a string", "expected a string", "nonetype"];
    let body = body.to_ascii_lowercase();
    let is_told =
        matches!(status, 400 | 422 | 500) && WORDS.iter().any(|words| body.contains(words));
    let mut sent = request.messages.iter().flat_map(|message| &message.pieces().optional);
    let is_left = !request.without.iter().any(|without| without == NULL_CONTENT);
    (is_told && is_left && sent.any(|(field, _)| field == NULL_CONTENT))
        .then(|| NULL_CONTENT.to_owned())
}

/// Reports whether the text holds the name as a word of its own.
fn names(text: &str, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(&name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        // `name.other` is another field.
        let goes_on = after.strip_prefix('.').is_some_and(|rest| rest.starts_with(inside));
        !before.ends_with(inside) && !after.starts_with(inside) && !goes_on
    })
}

/// How long the server asks to wait, in milliseconds; dates are not read, since that would need
/// the server's clock and ours to agree.
fn retry_after(response: &Response) -> Option<u64> {
    let exact = response.header("retry-after-ms").and_then(|ms| ms.trim().parse::<u64>().ok());
    exact.or_else(|| {
        let seconds: f64 = response.header("retry-after")?.trim().parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok().and_then(|d| u64::try_from(d.as_millis()).ok())
    })
}
