//! The scripted model: answers read from text, so that everything runs with no key and no network.
//!
//! **Invariant:** each request takes the next line of the script; the same script gives the same
//! answers. Knows nothing of the conversation.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::stream::{self, StreamExt as _};
use haft_types::{Message, Stop, ToolSpec, Usage};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Value, value::RawValue};
use tokio_util::sync::CancellationToken;

use crate::{
    Answer, Blobs, Delta, Encoded, LlmError, Provider, Request, Role, Target, error::excerpt,
};

/// The provider's name.
pub const NAME: &str = "script";

/// One line of a script: one answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Turn {
    thinking: Option<String>,
    text: Option<String>,
    calls: Vec<Call>,
    stop: Option<Stop>,
    usage: Option<Counts>,
    error: Option<Failure>,
    delay_ms: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    /// The arguments, kept as they are written.
    input: Option<Box<RawValue>>,
    /// The arguments as text that need not be JSON; instead of `input`.
    raw: Option<String>,
    /// The id that the call has on the wire; made from the place in the script when missing.
    id: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Counts {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
}

#[derive(Clone, Debug)]
enum Failure {
    /// An error for good, in words.
    Text(String),
    /// One of the kinds of [`LlmError`].
    Kind(FailureKind),
}

impl<'de> Deserialize<'de> for Failure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = |why: &dyn std::fmt::Display| {
            D::Error::custom(format!(
                "error is a text, or an object {{kind, message?, retry_after_ms?}}: {why}"
            ))
        };
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self::Text(text)),
            value @ Value::Object(_) => {
                FailureKind::deserialize(value).map(Self::Kind).map_err(|error| wrong(&error))
            }
            other => Err(wrong(&format!("{} is neither", excerpt(&other.to_string())))),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FailureKind {
    kind: Kind,
    #[serde(default)]
    message: String,
    retry_after_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Busy,
    Unreachable,
    TooLong,
    Config,
    Rejected,
    Protocol,
    Cut,
}

/// A model that answers from a script.
#[derive(Clone, Debug)]
pub struct ScriptProvider {
    turns: Arc<[Turn]>,
    next: Arc<AtomicUsize>,
}

impl ScriptProvider {
    /// Reads a script: one JSON object a line, empty lines apart.
    ///
    /// `start` answers of it are taken as given already (a resumed session); more than there are
    /// means that the script is over. `file` is only for messages.
    ///
    /// # Errors
    /// Fails with [`LlmError::Config`], which names the file, the line and the offending value.
    pub fn new(file: &str, script: &str, start: usize) -> Result<Self, LlmError> {
        let mut turns = Vec::new();
        let script = script.strip_prefix('\u{feff}').unwrap_or(script);
        for (at, line) in script.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            turns.push(read(line).map_err(|why| {
                let (line, number) = (excerpt(line), at + 1);
                LlmError::Config(format!(
                    "{file}, line {number}: {why}: {line}\nA line of a script is one JSON object \
                     {{text?, thinking?, calls?: [{{name, input}}], stop?, usage?, error?, \
                     delay_ms?}}."
                ))
            })?);
        }
        Ok(Self { turns: turns.into(), next: Arc::new(AtomicUsize::new(start)) })
    }

    /// How many answers were taken from the script so far, those before the start included.
    pub fn position(&self) -> usize {
        self.next.load(Ordering::SeqCst)
    }
}

fn read(line: &str) -> Result<Turn, String> {
    // A list would be taken for an object whose fields are all left out.
    if !line.trim_start().starts_with('{') {
        return Err("it is no JSON object".to_owned());
    }
    let turn: Turn = serde_json::from_str(line).map_err(|error| {
        // The line is the file's, not the text's that the parser saw.
        let text = error.to_string();
        match text.rsplit_once(" at line ") {
            Some((what, _)) => format!("column {}: {what}", error.column()),
            None => text,
        }
    })?;
    for call in &turn.calls {
        if call.input.is_some() && call.raw.is_some() {
            return Err(format!("the call of {:?} has both input and raw", call.name));
        }
    }
    Ok(turn)
}

impl Provider for ScriptProvider {
    fn name(&self) -> &'static str {
        NAME
    }

    fn host(&self) -> &'static str {
        ""
    }

    fn encode(&self, message: &Message, _: &Target, _: &dyn Blobs) -> Encoded {
        let role = match message {
            Message::User { .. } => Role::User,
            Message::Assistant { .. } => Role::Assistant,
            Message::Results { .. } => Role::Results,
        };
        Encoded::new(role, String::new())
    }

    fn encode_tools(&self, _: &[ToolSpec]) -> String {
        "[]".to_owned()
    }

    fn stream(&self, _: Request, stop: CancellationToken) -> Answer {
        let playing = Playing { provider: self.clone(), stop, items: None, is_over: false };
        stream::unfold(playing, |mut playing| async {
            playing.next().await.map(|item| (item, playing))
        })
        .boxed()
    }
}

/// One answer as it is given out.
struct Playing {
    provider: ScriptProvider,
    stop: CancellationToken,
    items: Option<VecDeque<Result<Delta, LlmError>>>,
    is_over: bool,
}

impl Playing {
    async fn next(&mut self) -> Option<Result<Delta, LlmError>> {
        if self.is_over {
            return None;
        }
        if self.stop.is_cancelled() {
            self.is_over = true;
            return Some(Err(LlmError::Cancelled));
        }
        if self.items.is_none() {
            let at = self.provider.next.fetch_add(1, Ordering::SeqCst);
            let turn = self.provider.turns.get(at).cloned();
            let turn = turn.unwrap_or_else(|| over(self.provider.turns.len()));
            let pause = tokio::time::sleep(Duration::from_millis(turn.delay_ms));
            if turn.delay_ms > 0 {
                tokio::select! {
                    biased;
                    () = self.stop.cancelled() => {
                        self.is_over = true;
                        return Some(Err(LlmError::Cancelled));
                    }
                    () = pause => {}
                }
            }
            self.items = Some(played(turn, at));
        }
        let item = self.items.as_mut().and_then(VecDeque::pop_front);
        self.is_over = !matches!(&item, Some(Ok(delta)) if !matches!(delta, Delta::End { .. }));
        item
    }
}

fn over(lines: usize) -> Turn {
    let text = format!("The script is over: all {lines} of its answers were given.");
    Turn { text: Some(text), ..Turn::default() }
}

/// The deltas of an answer: text in a few pieces, arguments in two.
fn played(turn: Turn, at: usize) -> VecDeque<Result<Delta, LlmError>> {
    let mut out = VecDeque::new();
    let mut index = 0;
    if let Some(text) = turn.thinking {
        out.extend(pieces(&text).map(|text| Ok(Delta::Thinking { index, text: text.into() })));
        out.push_back(Ok(Delta::ThinkingEnd { index, signature: None }));
        index += 1;
    }
    if let Some(text) = turn.text {
        out.extend(pieces(&text).map(|text| Ok(Delta::Text { index, text: text.into() })));
        index += 1;
    }
    let called = !turn.calls.is_empty();
    let count = turn.calls.len();
    for (nth, call) in turn.calls.into_iter().enumerate() {
        let raw = match (call.raw, call.input) {
            (Some(raw), _) => raw,
            (None, Some(input)) => input.get().to_owned(),
            (None, None) => String::new(),
        };
        let name = call.name;
        let part = |json: &str| Delta::CallPart { index, name: name.clone(), json: json.into() };
        out.extend(pieces(&raw).map(|json| Ok(part(json))));
        let is_whole = serde_json::from_str::<Value>(&raw).is_ok();
        let cut = turn.stop == Some(Stop::Length) && nth + 1 == count && !is_whole;
        let wire_id = call.id.unwrap_or_else(|| format!("script_{}_{}", at + 1, nth + 1));
        out.push_back(Ok(Delta::Call { index, wire_id, name, raw, cut, extra: None }));
        index += 1;
    }
    out.push_back(if let Some(failure) = turn.error {
        Err(failed(failure))
    } else {
        let stop = turn.stop.unwrap_or(if called { Stop::ToolUse } else { Stop::EndTurn });
        Ok(Delta::End { stop, usage: turn.usage.unwrap_or_default().into() })
    });
    out
}

impl From<Counts> for Usage {
    fn from(counts: Counts) -> Self {
        let Counts { input, cache_read, cache_write, output } = counts;
        Self { input, cache_read, cache_write, output }
    }
}

fn failed(failure: Failure) -> LlmError {
    let FailureKind { kind, message, retry_after_ms } = match failure {
        Failure::Text(text) => return LlmError::Rejected(text),
        Failure::Kind(kind) => kind,
    };
    match kind {
        Kind::Busy => LlmError::Busy { message, retry_after_ms, paid: false },
        Kind::Unreachable => LlmError::Unreachable(message),
        Kind::TooLong => LlmError::TooLong(message),
        Kind::Config => LlmError::Config(message),
        Kind::Rejected => LlmError::Rejected(message),
        Kind::Protocol => LlmError::Protocol(message),
        Kind::Cut => LlmError::Cut(message),
    }
}

/// Cuts a text into at most eight pieces at character borders; no piece is empty.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let size = text.len().div_ceil(8).max(4);
    let mut rest = text;
    std::iter::from_fn(move || {
        let at = rest.ceil_char_boundary(size.min(rest.len()));
        let (piece, tail) = rest.split_at(at);
        rest = tail;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            model: "s".into(),
            effort: None,
            max_tokens: None,
            system: Arc::new([]),
            tools: "[]".into(),
            messages: Vec::new(),
            ..Request::default()
        }
    }

    async fn answer(provider: &ScriptProvider) -> Vec<Result<Delta, LlmError>> {
        provider.stream(request(), CancellationToken::new()).collect().await
    }

    #[tokio::test]
    async fn a_script_answers_line_by_line_and_says_when_it_is_over() {
        let script = concat!(
            "{\"thinking\":\"hm\",\"text\":\"Let me look — now.\",\"calls\":[{\"name\":\"read\",",
            "\"input\":{ \"path\":\"a\" }},{\"name\":\"ls\"}],\"usage\":{\"output\":3}}\n\n",
            "{\"calls\":[{\"name\":\"read\",\"raw\":\"{\\\"pa\"}],\"stop\":\"length\"}\n",
        );
        let provider = ScriptProvider::new("s.jsonl", script, 0).unwrap();
        let first = answer(&provider).await;
        let text: String = first
            .iter()
            .filter_map(|d| match d {
                Ok(Delta::Text { index: 1, text }) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(text, "Let me look — now.");
        assert!(first.contains(&Ok(Delta::Call {
            index: 2,
            wire_id: "script_1_1".into(),
            name: "read".into(),
            raw: "{ \"path\":\"a\" }".into(),
            cut: false,
            extra: None,
        })));
        let usage = Usage { output: 3, ..Usage::default() };
        assert_eq!(first.last(), Some(&Ok(Delta::End { stop: Stop::ToolUse, usage })));
        let second = answer(&provider).await;
        assert!(second.iter().any(|d| matches!(d, Ok(Delta::Call { cut: true, .. }))));
        let third = format!("{:?}", answer(&provider).await);
        assert!(third.contains("EndTurn") && third.contains("over"), "{third}");
        assert_eq!(provider.position(), 3);
    }

    #[tokio::test]
    async fn a_start_position_skips_what_was_answered() {
        let script = "{\"text\":\"one\"}\n{\"text\":\"two\"}\n{\"error\":\"no\"}";
        let provider = ScriptProvider::new("s", script, 1).unwrap();
        assert_eq!(answer(&provider).await[0], Ok(Delta::Text { index: 0, text: "two".into() }));
        assert_eq!(answer(&provider).await, [Err(LlmError::Rejected("no".into()))]);
    }

    #[tokio::test]
    async fn a_pause_ends_with_the_token() {
        let provider = ScriptProvider::new("s", "{\"delay_ms\":3600000}", 0).unwrap();
        let stop = CancellationToken::new();
        let answer = provider.stream(request(), stop.clone()).collect::<Vec<_>>();
        let (items, ()) = futures::join!(answer, async { stop.cancel() });
        assert_eq!(items, [Err(LlmError::Cancelled)]);
    }

    #[test]
    fn bad_lines_are_named() {
        let cases = [
            ("{\"text\":\"a\"}\n\n{\"txt\":1}", "x.jsonl, line 3", "txt"),
            ("nonsense", "line 1", "nonsense"),
            ("{\"calls\":[{\"name\":\"a\",\"input\":{},\"raw\":\"\"}]}", "line 1", "both"),
            ("{\"calls\":[{}]}", "line 1", "name"),
            ("{\"stop\":\"never\"}", "line 1", "never"),
        ];
        for (script, line, part) in cases {
            let error = ScriptProvider::new("x.jsonl", script, 0).unwrap_err().to_string();
            assert!(error.contains(line) && error.contains(part), "{error}");
        }
    }
}
