//! The pieces in which an answer arrives, and what turns a server's events into them.
//!
//! **Invariant:** an index is the position of a part in its answer, given in streaming order,
//! whatever numbers the server uses; a whole call comes once, after all its pieces.

use haft_net::{SseEvent, SseItem, SseParser};
use haft_types::{CacheReport, CallId, Stop, ToolUse, Usage};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{LlmError, error::excerpt, failure};

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Delta {
    /// More text of a part.
    Text {
        /// Position of the part in its answer, from 0.
        index: u32,
        /// Continues what came before under this index.
        text: String,
    },
    /// More of what the model thinks.
    Thinking {
        /// Position of the part in its answer, from 0.
        index: u32,
        /// Continues what came before under this index.
        text: String,
    },
    /// A thinking part is complete; comes also for one without any visible text.
    ThinkingEnd {
        /// Position of the part in its answer, from 0.
        index: u32,
        /// Goes into the part unchanged; none where the wire has no such thing.
        signature: Option<String>,
    },
    /// More of a call's arguments, for display only.
    CallPart {
        /// Position of the part in its answer, from 0.
        index: u32,
        /// The tool's name.
        name: String,
        /// Continues the JSON text that came before under this index; may be empty.
        json: String,
    },
    /// A call is complete.
    Call {
        /// Position of the part in its answer, from 0.
        index: u32,
        /// The provider's id; may be empty or repeated.
        wire_id: String,
        /// The tool's name, as the model wrote it.
        name: String,
        /// The arguments' bytes as they streamed; need not be JSON.
        raw: String,
        /// True when the output limit ended the answer inside this call: it must not run.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
        /// A JSON object: fields of the call that only its server understands.
        #[serde(skip_serializing_if = "Option::is_none")]
        extra: Option<String>,
    },
    /// A part that only its provider understands.
    Opaque {
        /// Position of the part in its answer, from 0.
        index: u32,
        /// JSON text, exactly as the wire gave it.
        json: String,
    },
    /// Something about the server that the person is to know; no part of the answer.
    Note {
        /// What it is, and what follows.
        text: String,
    },
    /// What the server says of the request; no part of the answer.
    Receipt {
        /// Its name for the answer, by which the next request may be compared with this one.
        id: String,
        /// What it says of its cache.
        #[serde(skip_serializing_if = "Option::is_none")]
        cache: Option<CacheReport>,
    },
    /// The request is sent again after a pause: every delta before this one is void.
    Restart {
        /// How many times it was tried so far, from 1.
        attempt: u32,
        /// The pause in milliseconds.
        wait_ms: u64,
        /// What went wrong, for people.
        reason: String,
    },
    /// The answer is complete; nothing follows.
    End {
        /// Why it stopped.
        stop: Stop,
        /// What it took.
        usage: Usage,
    },
}

impl Delta {
    /// Makes the call part of a complete call, under our `id`; none for every other delta.
    ///
    /// A call that was cut off has no input, even when what came is valid JSON by chance.
    pub fn into_tool_use(self, id: CallId) -> Option<ToolUse> {
        let Self::Call { wire_id, name, raw, cut, extra, .. } = self else { return None };
        let call = ToolUse { extra, ..ToolUse::from_wire(id, wire_id, name, raw) };
        Some(if cut { ToolUse { input: None, ..call } } else { call })
    }
}

/// Turns a server's events into deltas; a pure state machine, one for each answer.
pub trait Decoder: Send {
    /// Takes the next event and appends what it says to `out`.
    ///
    /// # Errors
    /// Fails with [`LlmError::Protocol`] when the event cannot be read, which changes nothing, and
    /// with any other error when it says that the answer failed. What is in `out` then still
    /// counts.
    fn event(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), LlmError>;

    /// Reports whether the server has said why the answer stopped. Mostly nothing but counts and
    /// the end mark follow then, so a connection that breaks or idles now loses nothing.
    fn has_reason(&self) -> bool;

    /// Reports whether a call began that has not ended: an event that is lost now may be of it.
    fn is_call_open(&self) -> bool;

    /// Reports whether nothing came that is part of an answer.
    fn is_empty(&self) -> bool;

    /// Takes the end of the stream. Appends complete calls that were held back, and the end.
    ///
    /// # Errors
    /// Fails with [`LlmError::Cut`] when the answer was not complete. What is in `out` then still
    /// counts.
    fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), LlmError>;
}

/// Bytes of one event, or of an answer that is no stream, that are held at most.
const MAX_EVENT: usize = 16 << 20;
/// Bytes of one answer that are taken at most.
const MAX_ANSWER: usize = 64 << 20;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Reads one answer: bytes in, deltas out. Everything about an answer but the connection.
pub struct AnswerReader {
    parser: SseParser,
    decoder: Box<dyn Decoder>,
    /// The first bytes, for messages.
    head: Vec<u8>,
    /// All bytes of an answer that is one JSON value in place of a stream.
    whole: Option<Vec<u8>>,
    total: usize,
    /// True once the first byte was seen that is no white space.
    begun: bool,
    events: u64,
    /// What was wrong with an event that was passed over.
    unreadable: Option<LlmError>,
    ended: bool,
}

impl AnswerReader {
    /// Makes a reader around a fresh decoder.
    pub fn new(decoder: Box<dyn Decoder>) -> Self {
        Self {
            parser: SseParser::new(MAX_EVENT),
            decoder,
            head: Vec::new(),
            whole: None,
            total: 0,
            begun: false,
            events: 0,
            unreadable: None,
            ended: false,
        }
    }

    /// Takes the next bytes and appends what they say to `out`; after [`Delta::End`] nothing.
    ///
    /// # Errors
    /// Fails when the stream cannot be read on. What is in `out` then still counts.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended {
            return Ok(());
        }
        self.total = self.total.saturating_add(bytes.len());
        let room = 1_200_usize.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let most = if self.whole.is_some() { MAX_EVENT } else { MAX_ANSWER };
        if self.total > most {
            return Err(LlmError::Protocol(format!(
                "the answer is larger than {most} bytes; it was given up"
            )));
        }
        if self.is_whole(bytes) {
            return Ok(());
        }
        let mut items = Vec::new();
        let parsed = self.parser.push(bytes, &mut items);
        for item in items {
            if let SseItem::Event(event) = item {
                self.take(&event, out)?;
            }
        }
        parsed.map_err(|error| LlmError::Protocol(format!("{error}; the answer was given up")))
    }

    /// Keeps the bytes of an answer that begins as a JSON object; false for a stream.
    fn is_whole(&mut self, bytes: &[u8]) -> bool {
        if let Some(whole) = &mut self.whole {
            whole.extend_from_slice(bytes);
            return true;
        }
        let begun = text_of(&self.head);
        // White space and a part of a byte order mark may stand before both.
        if self.begun || begun.is_empty() || BOM.starts_with(begun) {
            return false;
        }
        self.begun = true;
        let at = bytes.iter().position(|byte| *byte == b'{').filter(|_| begun[0] == b'{');
        self.whole = at.map(|at| bytes[at..].to_vec());
        self.whole.is_some()
    }

    /// Takes the end of the body.
    ///
    /// # Errors
    /// Fails when the answer was not complete, with [`LlmError::Empty`] when nothing came at all.
    /// What is in `out` then still counts.
    pub fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended {
            return Ok(());
        }
        if let Some(whole) = self.whole.take() {
            return self.finish_whole(&whole, out);
        }
        let cut_json = |error: &LlmError| matches!(error, LlmError::Protocol(_));
        if let Some(event) = self.parser.finish().filter(|event| !is_keep_alive(event)) {
            // The last event lacks its blank line: whole, or cut in the middle of its JSON.
            match self.decode(&event, out) {
                Err(error) if !cut_json(&error) => return Err(error),
                _ if self.ended => return Ok(()),
                _ => {}
            }
        }
        self.ended = true;
        if self.events == 0 {
            if let Some(error) = self.unreadable.take() {
                return Err(error);
            }
            if !looks_like_events(&self.head) {
                let head = excerpt(&String::from_utf8_lossy(&self.head));
                return Err(LlmError::Protocol(format!(
                    "the server answered with status 200, but with no event stream: {head:?}"
                )));
            }
        }
        match self.decoder.finish(out) {
            Err(LlmError::Cut(_)) if self.events == 0 => Err(failure::empty()),
            result => result,
        }
    }

    /// Reads an answer that came as one JSON value, perhaps with an end mark behind it.
    fn finish_whole(&mut self, whole: &[u8], out: &mut Vec<Delta>) -> Result<(), LlmError> {
        self.ended = true;
        let text = String::from_utf8_lossy(text_of(whole));
        let event = |data: &str| SseEvent { name: String::new(), data: data.to_owned() };
        let mut result = Ok(());
        // One value as a rule; some servers send their chunks as lines of JSON.
        for value in serde_json::Deserializer::from_str(&text).into_iter::<&RawValue>() {
            result = match value {
                Ok(value) => self.decode(&event(value.get()), out),
                Err(error) if error.is_eof() => Err(failure::cut()),
                Err(_) => break,
            };
            if result.is_err() {
                break;
            }
        }
        let result = result.and_then(|()| self.decode(&event("[DONE]"), out));
        match result {
            Err(LlmError::Cut(_)) => result,
            Err(_) if self.decoder.is_empty() => Err(LlmError::NoAnswer(text.trim().to_owned())),
            _ => result,
        }
    }

    /// Reports whether the answer has stopped by itself; see [`Decoder::has_reason`].
    pub fn is_complete(&self) -> bool {
        self.ended || self.decoder.has_reason()
    }

    /// Reports whether the server has said why the answer stopped.
    pub fn has_reason(&self) -> bool {
        self.decoder.has_reason()
    }

    /// Takes an event in the middle of a stream. One that cannot be read is passed over, once and
    /// where it can be no part of a call.
    fn take(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended || is_keep_alive(event) {
            return Ok(());
        }
        let error = match self.decode(event, out) {
            Err(LlmError::Protocol(error)) => error,
            result => return result,
        };
        if self.unreadable.is_some() || self.decoder.is_call_open() {
            return Err(LlmError::Cut(format!("the answer was given up: {error}")));
        }
        let text = format!("one event of the answer was passed over: {error}");
        out.push(Delta::Note { text });
        self.unreadable = Some(LlmError::Protocol(error));
        Ok(())
    }

    fn decode(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        let from = out.len();
        let result = self.decoder.event(event, out);
        if !matches!(result, Err(LlmError::Protocol(_))) {
            self.events += 1;
        }
        self.ended |= out[from..].iter().any(|delta| matches!(delta, Delta::End { .. }));
        result
    }
}

/// Reports whether an event only says that the server is still there: some send their comments as
/// data, or nothing.
fn is_keep_alive(event: &SseEvent) -> bool {
    let data = event.data.trim_start();
    data.is_empty() || data.starts_with(':')
}

/// The bytes from the first that is no white space on, without a byte order mark.
fn text_of(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BOM).unwrap_or(bytes).trim_ascii_start()
}

/// Reports whether a body begins, as far as it came, as an event stream does.
fn looks_like_events(head: &[u8]) -> bool {
    let head = text_of(head);
    [&b"data:"[..], b"event:", b"id:", b"retry:", b":"]
        .iter()
        .any(|field| head.starts_with(field) || field.starts_with(head))
}
