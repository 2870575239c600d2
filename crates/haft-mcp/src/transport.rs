//! Messages between a client and the protocol's SDK, over two streams of bytes.
//!
//! **Invariant:** every line with an id that is no answer is answered exactly once, whatever it
//! holds, unless the client takes it back; no line ends the connection. The SDK sees well-formed
//! messages only, each with an id of its own, so that two requests with one id are two requests.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::Arc,
    time::Duration,
};

use haft_tool::Ticket;
use haft_types::CallId;
use rmcp::{
    RoleServer,
    model::{ClientRequest, ErrorData, GetExtensions as _, JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::{
    lines::{LINE_MAX, Line, Lines},
    open::{Kind, Open},
    outbox::{Level, Outbox},
    scan::Scan,
};

/// Most requests that are open at once.
const OPEN: usize = 10_000;
/// Most bytes of requests that are open at once, where there is more than one.
const OPEN_BYTES: usize = 128 << 20;
/// Most values in one message: each takes many times the memory of its text.
const VALUES: usize = 500_000;
/// Lines that are shorter cannot hold so many values.
const SHORT: usize = VALUES;
/// How long a client that has said all may take to read something of what waits.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// JSON-RPC's codes, and the first of those that it leaves to servers.
const PARSE: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const NO_METHOD: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const BUSY: i32 = -32000;

const CANCELLED: &str = "notifications/cancelled";
/// The methods that this server knows: their parameters are at fault where they cannot be read.
const KNOWN: &[&str] = &["initialize", "ping", "tools/list", "tools/call", "logging/setLevel"];

/// Arguments of a call as the client wrote them: whatever JSON they are, the tools mend or refuse.
#[derive(Clone, Debug)]
pub(crate) struct RawArguments(pub String);

/// The place of a call among those of its connection, and its name.
#[derive(Clone)]
pub(crate) struct InTurn(pub Arc<Ticket>, pub CallId);

/// Gives each call its place, in the order in which they came.
pub(crate) type Places = Arc<dyn Fn() -> InTurn + Send + Sync>;

/// A refusal: its code and what was wrong.
type Fault = (i32, String);

/// See the module.
pub(crate) struct Wire<R> {
    lines: Lines<R>,
    out: Outbox,
    level: Level,
    /// Messages that the SDK has not taken yet.
    ready: VecDeque<RxJsonRpcMessage<RoleServer>>,
    open: Open,
    places: Places,
    /// True once the client has introduced itself; the SDK ends where others come before.
    begun: bool,
    /// Cancelled once nothing more comes in.
    said: CancellationToken,
}

impl<R: AsyncRead + Unpin + Send> Wire<R> {
    /// A connection that works on so many calls at once, each in its place; `said` is cancelled once
    /// the client has said all.
    pub fn new(
        input: R,
        output: impl AsyncWrite + Unpin + Send + 'static,
        (calls, places): (usize, Places),
        level: Level,
        said: CancellationToken,
    ) -> Self {
        Self {
            lines: Lines::new(input),
            out: Outbox::new(output, level.clone()),
            level,
            ready: VecDeque::new(),
            open: Open::new(calls),
            places,
            begun: false,
            said,
        }
    }

    fn line(&mut self, line: Line) {
        match line {
            Line::TooLong(scan) => {
                let mb = LINE_MAX >> 20;
                let text = format!("the line is longer than {mb} MB; send less in one message");
                self.unreadable(&scan, (INVALID_REQUEST, text));
            }
            Line::Whole(line) => {
                let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line).trim_ascii();
                if !text.is_empty() {
                    self.text(text);
                }
            }
        }
    }

    fn text(&mut self, text: &[u8]) {
        if text.len() > SHORT && Scan::of(text).values() > VALUES {
            let why = format!("the message has more than {VALUES} values; send less in one");
            return self.unreadable(&Scan::of(text), (INVALID_REQUEST, why));
        }
        match serde_json::from_slice::<Value>(text) {
            Ok(Value::Object(message)) => self.message(message, text),
            Ok(other) => {
                let mut why =
                    format!("a message is one JSON object, and this is {}", brief(&other));
                if other.is_array() {
                    why.push_str(": send each message of a batch in a line of its own");
                }
                self.refuse(&Value::Null, (INVALID_REQUEST, why));
            }
            Err(error) => {
                if let Some(message) = without_arguments(text, &error) {
                    return self.message(message, text);
                }
                let why = format!("the line is not JSON that can be read: {error}");
                self.unreadable(&Scan::of(text), (PARSE, why));
            }
        }
    }

    fn unreadable(&mut self, scan: &Scan, fault: Fault) {
        match scan.id() {
            Some(id) if scan.is_reply() => self.failed(id, fault.1),
            id => self.refuse(id.unwrap_or(&Value::Null), fault),
        }
    }

    fn message(&mut self, message: Map<String, Value>, text: &[u8]) {
        match (message.contains_key("method"), message.get("id").cloned()) {
            (true, Some(id)) => {
                if let Err(fault) = self.request(message, &id, text) {
                    // A whole number beyond 64 bits was read as another: nobody knows that id.
                    let lost = id.is_f64() && id.as_f64().is_some_and(|id| id.abs() > 9e18);
                    self.refuse(if lost { &Value::Null } else { &id }, fault);
                }
            }
            (true, None) => self.notification(message),
            (false, id) => self.reply(message, &id.unwrap_or_default()),
        }
    }

    /// Whether a request may be looked at any further.
    fn fits(&self, message: &Map<String, Value>, id: &Value, bytes: usize) -> Result<(), Fault> {
        if !(id.is_string() || id.is_i64() || id.is_u64()) {
            let why = format!("the id is {}, wanted: a string or an integer", brief(id));
            return Err((INVALID_REQUEST, why));
        }
        let open = self.open.len();
        if open >= OPEN || (open > 0 && self.open.bytes() + bytes > OPEN_BYTES) {
            let why = format!("{open} requests are open; wait for answers, then ask again");
            return Err((BUSY, why));
        }
        match message.get("params") {
            None | Some(Value::Null | Value::Object(_)) => Ok(()),
            Some(other) => {
                let why = format!("params is {}, wanted: an object", brief(other));
                Err((INVALID_PARAMS, why))
            }
        }
    }

    /// The method of a request, where it is one of this server's and its time has come.
    fn method(&self, message: &Map<String, Value>) -> Result<String, Fault> {
        let first = if self.begun { "" } else { "; send initialize first" };
        let version = message.get("jsonrpc");
        if version.is_none_or(|version| version != "2.0") {
            let got = version.map_or_else(|| "missing".to_owned(), brief);
            return Err((INVALID_REQUEST, format!("jsonrpc is {got}, wanted: \"2.0\"")));
        }
        let known = KNOWN.join(", ");
        let got = message.get("method").unwrap_or(&Value::Null);
        let Some(method) = got.as_str() else {
            let why = format!("method is {}, wanted: one of {known}{first}", brief(got));
            return Err((INVALID_REQUEST, why));
        };
        if method.starts_with("notifications/") {
            let why = format!("{} is told, not asked: send it without an id", brief(got));
            return Err((INVALID_REQUEST, why));
        }
        if !KNOWN.contains(&method) {
            let why = format!("there is no method {} here, only {known}{first}", brief(got));
            return Err((NO_METHOD, why));
        }
        if !self.begun && !matches!(method, "initialize" | "ping") {
            let why = format!("{method} came before initialize: send initialize first");
            return Err((INVALID_REQUEST, why));
        }
        Ok(method.to_owned())
    }

    fn request(
        &mut self,
        mut message: Map<String, Value>,
        id: &Value,
        text: &[u8],
    ) -> Result<(), Fault> {
        self.fits(&message, id, text.len())?;
        let method = self.method(&message)?;
        let raw = if method == "tools/call" { arguments(&mut message, text)? } else { None };
        let ours = self.open.insert(id.to_string(), text.len());
        message.insert("id".to_owned(), Value::String(ours.clone()));
        let read = serde_json::from_value::<RxJsonRpcMessage<RoleServer>>(Value::Object(message));
        let fault = match read {
            Ok(JsonRpcMessage::Request(mut request)) => match &mut request.request {
                ClientRequest::CustomRequest(custom) => {
                    (INVALID_PARAMS, misfit(&method, custom.params.as_ref()))
                }
                known => {
                    if let Some(raw) = raw {
                        known.extensions_mut().insert(raw);
                    }
                    self.begun |= matches!(known, ClientRequest::InitializeRequest(_));
                    let kind = match known {
                        ClientRequest::CallToolRequest(_) => Kind::Call,
                        ClientRequest::ListToolsRequest(_) => Kind::List,
                        _ => Kind::Quick,
                    };
                    let message = JsonRpcMessage::Request(request);
                    self.ready.extend(self.open.queue(id.to_string(), kind, message));
                    return Ok(());
                }
            },
            _ => (INVALID_REQUEST, format!("this is no request of {method} that can be read")),
        };
        self.open.remove(&RequestId::String(ours.into()));
        Err(fault)
    }

    /// The request whose turn to be handed out has come. From here on nobody keeps their order but
    /// the places that calls have.
    fn next_open(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut message = self.open.next()?;
        if let JsonRpcMessage::Request(request) = &mut message
            && let ClientRequest::CallToolRequest(call) = &mut request.request
        {
            call.extensions.insert((self.places)());
        }
        Some(message)
    }

    /// Nobody waits for an answer: what cannot be read is passed over.
    fn notification(&mut self, message: Map<String, Value>) {
        if !self.begun {
            return;
        }
        if message.get("method").is_some_and(|method| method == CANCELLED) {
            let Some(id) = message.get("params").and_then(|params| params.get("requestId")) else {
                return;
            };
            for ours in self.open.cancel(&id.to_string()) {
                let params = json!({"requestId": ours});
                self.hand_over(json!({"jsonrpc": "2.0", "method": CANCELLED, "params": params}));
            }
            return;
        }
        self.hand_over(Value::Object(message));
    }

    fn hand_over(&mut self, message: Value) -> bool {
        let read = serde_json::from_value(message);
        let read = read.map(|message| self.ready.push_back(message));
        read.is_ok()
    }

    /// An answer to a question of ours. It is never answered, lest two sides answer each other.
    fn reply(&mut self, message: Map<String, Value>, id: &Value) {
        if !message.contains_key("result") && !message.contains_key("error") {
            let why = "a message has a method, or a result, or an error; this has none".to_owned();
            return self.refuse(id, (INVALID_REQUEST, why));
        }
        if self.begun && !self.hand_over(Value::Object(message)) {
            self.failed(id, "the answer is not as the protocol says".to_owned());
        }
    }

    /// Ends a question of ours whose answer cannot be read.
    fn failed(&mut self, id: &Value, why: String) {
        if let Ok(id) = serde_json::from_value(id.clone())
            && self.begun
        {
            let error = ErrorData::invalid_request(why, None);
            self.ready.push_back(JsonRpcMessage::error(error, Some(id)));
        }
    }

    fn refuse(&mut self, id: &Value, (code, message): Fault) {
        let id = if id.is_string() || id.is_number() { id } else { &Value::Null };
        let answer = json!({"jsonrpc": "2.0", "id": id,
            "error": {"code": code, "message": message}});
        self.out.push(answer.to_string().into_bytes());
    }

    /// The line for a message; none where nobody wants it any more.
    fn encode(&mut self, message: &TxJsonRpcMessage<RoleServer>) -> Option<Vec<u8>> {
        let encoded = match message {
            JsonRpcMessage::Response(response) => {
                enclosed(&self.open.remove(&response.id)?, "result", &response.result)
            }
            JsonRpcMessage::Error(error) => {
                let id = error.id.as_ref().map(|id| self.open.remove(id));
                enclosed(&id.unwrap_or_else(|| Some("null".into()))?, "error", &error.error)
            }
            JsonRpcMessage::Notification(_) | JsonRpcMessage::Request(_) => {
                serde_json::to_vec(message)
            }
        };
        encoded.ok()
    }
}

/// Says which of the parameters of a known method is not as the protocol says.
fn misfit(method: &str, params: Option<&Value>) -> String {
    type Fits = fn(&Value) -> bool;
    let fields: &[(&str, Fits, &str)] = match method {
        "initialize" => &[
            ("protocolVersion", Value::is_string, "a revision such as \"2025-11-25\""),
            ("capabilities", Value::is_object, "an object"),
            (
                "clientInfo",
                |info| info["name"].is_string() && info["version"].is_string(),
                "an object with name and version",
            ),
        ],
        "logging/setLevel" => &[("level", |_| false, "a level such as \"warning\"")],
        "tools/list" => &[("cursor", |_| false, "nothing")],
        _ => &[],
    };
    let value = |name: &str| params.and_then(|params| params.get(name));
    let wrong = fields.iter().find(|(name, fits, _)| !value(name).is_some_and(fits));
    match wrong {
        Some((name, _, wanted)) => {
            let got = value(name).map_or_else(|| "missing".to_owned(), brief);
            format!("params.{name} of {method} is {got}, wanted: {wanted}")
        }
        None => format!("the params of {method} are not as the protocol says"),
    }
}

/// A message whose fault is half a character in the arguments of a call, with an empty object in
/// their place: the tools, which get them as they were written, say what is wrong with them.
fn without_arguments(text: &[u8], error: &serde_json::Error) -> Option<Map<String, Value>> {
    type Raw<'a> = BTreeMap<String, &'a RawValue>;
    let read = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).ok();
    // The parser says only that an escape ends early.
    if !error.to_string().contains("hex escape") {
        return None;
    }
    let mut outer: Raw<'_> = serde_json::from_slice(text).ok()?;
    let inner: Raw<'_> = serde_json::from_str(outer.remove("params")?.get()).ok()?;
    let mut params = Map::new();
    for (name, raw) in inner {
        let empty = || (name == "arguments").then(|| json!({}));
        params.insert(name.clone(), read(raw).or_else(empty)?);
    }
    let mut message = Map::new();
    for (name, raw) in outer {
        message.insert(name, read(raw)?);
    }
    message.insert("params".to_owned(), Value::Object(params));
    Some(message)
}

/// Takes the arguments of a call out of it as they were written, and checks the rest.
fn arguments(message: &mut Map<String, Value>, text: &[u8]) -> Result<Option<RawArguments>, Fault> {
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        arguments: &'a RawValue,
    }

    let wrong = |field: &str, got: Option<&Value>, wanted: &str| {
        let got = got.map_or_else(|| "missing".to_owned(), brief);
        (INVALID_PARAMS, format!("{field} of tools/call is {got}, wanted: {wanted}"))
    };
    let Some(Value::Object(params)) = message.get_mut("params") else {
        return Err(wrong("params", message.get("params"), "an object with name and arguments"));
    };
    if !params.get("name").is_some_and(Value::is_string) {
        return Err(wrong("params.name", params.get("name"), "the name of a tool"));
    }
    let parsed = params.shift_remove("arguments").filter(|arguments| !arguments.is_null());
    Ok(parsed.map(|parsed| {
        // The text still names a field twice where the client did.
        let written = serde_json::from_slice::<Call<'_>>(text);
        let written = written.map(|call| call.params.arguments.get().to_owned());
        RawArguments(written.unwrap_or_else(|_| parsed.to_string()))
    }))
}

/// Returns once so much waits that no call starts any more, and the client reads nothing of it.
async fn unread(level: &Level) {
    loop {
        let before = level.waiting();
        tokio::time::sleep(LAST_ANSWERS).await;
        if !level.is_low() && level.waiting() >= before {
            return;
        }
    }
}

/// An answer around its content, which is not copied.
fn enclosed(id: &str, key: &str, content: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{key}\":").into_bytes();
    serde_json::to_writer(&mut line, content)?;
    line.push(b'}');
    Ok(line)
}

/// A value as a message shows it, however big it is.
fn brief(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => format!("{:?}", text.chars().take(60).collect::<String>()),
        other => other.to_string(),
    }
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for Wire<R> {
    type Error = io::Error;

    /// Queues the message at once, so that the order is that of the calls.
    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let progress = matches!(&message, JsonRpcMessage::Notification(one)
            if matches!(one.notification, rmcp::model::ServerNotification::ProgressNotification(_)));
        if (!progress || self.level.is_low())
            && let Some(line) = self.encode(&message)
        {
            self.out.push(line);
        }
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            // A client that reads nothing of what it asks for is made to wait.
            if self.level.is_low()
                && let Some(message) = self.next_open()
            {
                return Some(message);
            }
            // A script that writes its calls and closes the pipe still gets their answers. This is
            // called anew after each of them.
            if self.said.is_cancelled() && self.open.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                () = self.level.closed() => break,
                () = unread(&self.level), if self.said.is_cancelled() => break,
                () = self.level.room(), if self.open.has_next() => {}
                line = self.lines.next(), if !self.said.is_cancelled() => match line {
                    Some(line) => self.line(line),
                    None => self.said.cancel(),
                },
            }
        }
        self.said.cancel();
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        let mut waits = self.level.waiting();
        while tokio::time::timeout(LAST_ANSWERS, self.out.finish()).await.is_err() {
            let before = std::mem::replace(&mut waits, self.level.waiting());
            if waits >= before {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rmcp::model::{EmptyResult, ServerResult};
    use tokio::io::{AsyncReadExt as _, DuplexStream};

    use super::*;

    /// What answers of a client begin with.
    const ANSWERS: [&str; 2] =
        [r#"{"jsonrpc":"2.0","id":0,"result":"#, r#"{"jsonrpc":"2.0","id":0,"error":"#];
    const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

    /// One call at a time.
    fn one() -> (usize, Places) {
        let order = Arc::new(haft_tool::Scheduler::default());
        (1, Arc::new(move || InTurn(Arc::new(order.turn()), CallId::nth(1))))
    }

    fn wire(input: &[u8]) -> (Wire<&[u8]>, DuplexStream) {
        let (output, read) = tokio::io::duplex(16 << 20);
        (Wire::new(input, output, one(), Level::default(), CancellationToken::new()), read)
    }

    async fn written(mut wire: Wire<&[u8]>, mut read: DuplexStream) -> Vec<Value> {
        wire.close().await.unwrap();
        drop(wire);
        let mut text = String::new();
        read.read_to_string(&mut text).await.unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Answers every request that arrives; gives what was written and what arrived beside them.
    async fn talk(input: &[u8]) -> (Vec<Value>, Vec<RxJsonRpcMessage<RoleServer>>) {
        let ((mut wire, read), mut others) = (wire(input), Vec::new());
        while let Some(message) = wire.receive().await {
            match message {
                JsonRpcMessage::Request(request) => {
                    let result = ServerResult::EmptyResult(EmptyResult {});
                    wire.send(JsonRpcMessage::response(result, request.id)).await.unwrap();
                }
                other => others.push(other),
            }
        }
        assert!(wire.open.is_empty() && wire.open.bytes() == 0);
        (written(wire, read).await, others)
    }

    /// How many answers a line wants, at least and at most.
    fn wanted(line: &[u8]) -> (usize, usize) {
        let line = line.trim_ascii();
        let holds = |key: &str| line.windows(key.len()).any(|part| part == key.as_bytes());
        let exactly = |wanted: bool| (usize::from(wanted), usize::from(wanted));
        match serde_json::from_slice::<Value>(line) {
            _ if line.is_empty() => exactly(false),
            Ok(Value::Object(message)) if message.contains_key("method") => {
                exactly(message.contains_key("id"))
            }
            Ok(Value::Object(message)) => {
                exactly(!message.contains_key("result") && !message.contains_key("error"))
            }
            Ok(_) => exactly(true),
            // An answer of the client's that breaks behind its head is none to be answered.
            Err(_) if ANSWERS.iter().any(|head| line.starts_with(head.as_bytes())) => {
                exactly(false)
            }
            Err(_) if !holds(r#""result""#) && !holds(r#""error""#) => exactly(true),
            // Broken before that, it may be taken for one or not.
            Err(_) => (0, 1),
        }
    }

    fn lines() -> impl Strategy<Value = Vec<u8>> {
        let samples = prop::sample::select(vec![
            HELLO,
            r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":-7,"method":"tools/call","params":{"name":"ls","arguments":[1]}}"#,
            r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":5}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"answer":"x"}}}"#,
            r#"{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":"\ud800"}}"#,
        ]);
        let mangled = (samples, any::<prop::sample::Index>(), any::<u8>(), 0..4).prop_map(
            |(sample, at, byte, how)| {
                let mut line = sample.as_bytes().to_vec();
                let at = at.index(line.len());
                match how {
                    0 => line.truncate(at),
                    1 => line[at] = byte,
                    2 => line.insert(at, byte),
                    _ => {}
                }
                line
            },
        );
        prop_oneof![4 => mangled, 1 => prop::collection::vec(any::<u8>(), 0..40)]
    }

    proptest! {
        #[test]
        fn every_line_is_answered_as_often_as_it_asks(
            lines in prop::collection::vec(lines(), 0..20)
        ) {
            let mut input = format!("{HELLO}\n").into_bytes();
            for line in lines {
                input.extend(line);
                input.push(b'\n');
            }
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let (answers, _) = runtime.unwrap().block_on(talk(&input));
            let wanted = input.split(|byte| *byte == b'\n').map(wanted);
            let (least, most) = wanted.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            prop_assert!((least..=most).contains(&answers.len()), "{least}-{most}: {answers:?}");
            for answer in answers {
                prop_assert!(answer.get("id").is_some(), "{}", answer);
                prop_assert!(answer["result"].is_object() || answer["error"]["code"].is_i64());
            }
        }
    }

    #[tokio::test]
    async fn faults_are_told_under_the_id_that_was_sent() {
        for (line, id, code) in [
            ("junk", json!(null), PARSE),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":"\ud800"}"#, json!(1), PARSE),
            (r#"{"jsonrpc":"2.0","id":1"#, json!(null), PARSE),
            ("[]", json!(null), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":5}"#, json!(5), INVALID_REQUEST),
            (r#"{"jsonrpc":"1.0","id":"x","method":"ping"}"#, json!("x"), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, json!(null), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, json!(1.5), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":2,"method":"tools/call"}"#, json!(2), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#, json!(2), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":2,"method":"foo/bar"}"#, json!(2), NO_METHOD),
            (
                r#"{"jsonrpc":"2.0","id":4,"method":"initialize","params":[]}"#,
                json!(4),
                INVALID_PARAMS,
            ),
        ] {
            let (answers, others) = talk(line.as_bytes()).await;
            assert_eq!((answers.len(), others.len()), (1, 0), "{line}");
            assert_eq!(answers[0]["id"], id, "{line}");
            assert_eq!(answers[0]["error"]["code"], code, "{line}: {}", answers[0]);
        }
        for params in ["", r#","params":{"name":5}"#] {
            let call = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call"{params}}}"#);
            let (answers, _) = talk(format!("{HELLO}\n{call}").as_bytes()).await;
            let answer = answers.iter().find(|answer| answer["id"] == 3).unwrap();
            assert_eq!(answer["error"]["code"], INVALID_PARAMS, "{call}: {answer}");
        }
    }

    #[tokio::test]
    async fn ids_come_back_as_they_were_sent() {
        for id in [json!(-1), json!(u64::MAX), json!("1"), json!(""), json!(" 2 \"\n\u{1f600}")] {
            let line = json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string();
            let (answers, _) = talk(line.as_bytes()).await;
            assert_eq!(answers, [json!({"jsonrpc": "2.0", "id": id, "result": {}})]);
        }
    }

    #[tokio::test]
    async fn two_requests_with_one_id_are_two_and_are_cancelled_together() {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        let input = format!("{HELLO}\n{ping}\n{ping}\n{cancel}\n");
        let (mut wire, read) = wire(input.as_bytes());
        let mut ids = Vec::new();
        let mut cancelled = Vec::new();
        while let Some(message) = wire.receive().await {
            match message {
                JsonRpcMessage::Request(request) => {
                    // The greeting is answered; the connection goes on while something is open.
                    if ids.is_empty() {
                        let result = ServerResult::EmptyResult(EmptyResult {});
                        let answer = JsonRpcMessage::response(result, request.id.clone());
                        wire.send(answer).await.unwrap();
                    }
                    ids.push(request.id);
                }
                other => {
                    let other = serde_json::to_value(other).unwrap();
                    cancelled.push(other["params"]["requestId"].clone());
                }
            }
        }
        assert_eq!(json!(ids[1..]), json!(cancelled));
        assert!(ids[1] != ids[2]);
        for id in ids.split_off(1) {
            let result = ServerResult::EmptyResult(EmptyResult {});
            wire.send(JsonRpcMessage::response(result, id)).await.unwrap();
        }
        let answers = written(wire, read).await;
        assert_eq!(answers.len(), 1, "what was cancelled was answered: {answers:?}");
    }

    #[tokio::test]
    async fn calls_wait_here_for_their_turn_and_others_pass_them() {
        let call = |id: u8| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"ls"}}}}"#
            )
        };
        let quick =
            |id: u8, method: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
        let (ping, list) = (quick(4, "ping"), quick(5, "tools/list"));
        let taken =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
        let input = [HELLO, &call(1), &call(2), &call(3), taken, &ping, &list].join("\n");
        let (mut wire, _read) = wire(input.as_bytes());
        let mut arrived = Vec::new();
        while let Ok(message) =
            tokio::time::timeout(Duration::from_millis(100), wire.receive()).await
        {
            let JsonRpcMessage::Request(request) = message.unwrap() else { continue };
            let RequestId::String(id) = request.id.clone() else { panic!("{:?}", request.id) };
            let id = id.split_once(' ').unwrap().1.to_owned();
            // The call that came first is answered once all else that may pass it has passed.
            if id == "5" {
                let first = RequestId::String("2 1".into());
                for id in [request.id, first] {
                    let result = ServerResult::EmptyResult(EmptyResult {});
                    wire.send(JsonRpcMessage::response(result, id)).await.unwrap();
                }
            }
            arrived.push(id);
        }
        assert_eq!(arrived, ["0", "1", "4", "5", "3"]);
    }

    #[tokio::test]
    async fn what_comes_before_the_beginning_is_passed_over() {
        let early = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let answer = r#"{"jsonrpc":"2.0","id":0,"result":{}}"#;
        let (answers, others) = talk(format!("{early}\n{answer}\n{HELLO}").as_bytes()).await;
        assert_eq!((answers.len(), others.len()), (1, 0));
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_answered_too() {
        let mut line = vec![b' '; LINE_MAX];
        line.splice(..0, *b"{\"x\":\"");
        line.extend(b"\",\"id\":9}\n");
        line.extend(HELLO.as_bytes());
        let (answers, _) = talk(&line).await;
        assert_eq!(answers.len(), 2);
        assert_eq!(answers[0]["id"], 9);
        assert_eq!(answers[0]["error"]["code"], INVALID_REQUEST);
        let many = format!("{{\"id\":8,\"x\":[{}]}}", "1,".repeat(VALUES + 1));
        let (answers, _) = talk(many.as_bytes()).await;
        assert_eq!((&answers[0]["id"], answers.len()), (&json!(8), 1));
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_ends_the_connection() {
        let level = Level::default();
        let (output, _unread) = tokio::io::duplex(64);
        let input = HELLO.as_bytes();
        let mut wire = Wire::new(input, output, one(), level.clone(), CancellationToken::new());
        while !level.is_overrun() {
            wire.out.push(vec![b'x'; 1 << 20]);
        }
        assert!(wire.receive().await.is_none());
    }
}
