//! The pieces in which an answer arrives, and what turns a server's events into them.
//!
//! **Invariant:** an index is the position of a part in its answer, given in streaming order,
//! whatever numbers the server uses; a whole call comes once, after all its pieces.

use haft_net::{SseEvent, SseItem, SseParser};
use haft_types::{CallId, Stop, ToolUse, Usage};
use serde::Serialize;

use crate::{LlmError, error::excerpt};

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
    },
    /// A part that only its provider understands.
    Opaque {
        /// Position of the part in its answer, from 0.
        index: u32,
        /// JSON text, exactly as the wire gave it.
        json: String,
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
        let Self::Call { wire_id, name, raw, cut, .. } = self else { return None };
        let call = ToolUse::from_wire(id, wire_id, name, raw);
        Some(if cut { ToolUse { input: None, ..call } } else { call })
    }
}

/// Turns a server's events into deltas; a pure state machine, one for each answer.
pub trait Decoder: Send {
    /// Takes the next event and appends what it says to `out`.
    ///
    /// # Errors
    /// Fails when the event is no event of this wire, or says that the answer failed. What is in
    /// `out` then still counts.
    fn event(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), LlmError>;

    /// Reports whether the server has said why the answer stopped: nothing but counts and the
    /// end mark can follow, so that a connection that breaks or idles now loses nothing.
    fn is_complete(&self) -> bool;

    /// Takes the end of the stream. Appends complete calls that were held back, and the end.
    ///
    /// # Errors
    /// Fails with [`LlmError::Cut`] when the answer was not complete. What is in `out` then still
    /// counts.
    fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), LlmError>;
}

/// Bytes of one event that are held at most.
const MAX_EVENT: usize = 16 << 20;
/// Bytes of one answer that are taken at most.
const MAX_ANSWER: usize = 64 << 20;

/// Reads one answer: bytes in, deltas out. Everything about an answer but the connection.
pub struct AnswerReader {
    parser: SseParser,
    decoder: Box<dyn Decoder>,
    /// The first bytes, for messages.
    head: Vec<u8>,
    total: usize,
    events: u64,
    ended: bool,
}

impl AnswerReader {
    /// Makes a reader around a fresh decoder.
    pub fn new(decoder: Box<dyn Decoder>) -> Self {
        let parser = SseParser::new(MAX_EVENT);
        Self { parser, decoder, head: Vec::new(), total: 0, events: 0, ended: false }
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
        if self.total > MAX_ANSWER {
            return Err(LlmError::Protocol(format!(
                "the answer is larger than {MAX_ANSWER} bytes; it was given up"
            )));
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

    /// Takes the end of the body.
    ///
    /// # Errors
    /// Fails when the answer was not complete. What is in `out` then still counts.
    pub fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended {
            return Ok(());
        }
        let cut_json = |error: &LlmError| matches!(error, LlmError::Protocol(_));
        if let Some(event) = self.parser.finish() {
            // The last event lacks its blank line: whole, or cut in the middle of its JSON.
            match self.take(&event, out) {
                Err(error) if !cut_json(&error) => return Err(error),
                _ if self.ended => return Ok(()),
                _ => {}
            }
        }
        self.ended = true;
        if self.events == 0 && !looks_like_events(&self.head) {
            let head = excerpt(&String::from_utf8_lossy(&self.head));
            return Err(LlmError::Protocol(format!(
                "the server answered with status 200, but with no event stream: {head:?}"
            )));
        }
        self.decoder.finish(out)
    }

    /// Reports whether the answer has stopped by itself; see [`Decoder::is_complete`].
    pub fn is_complete(&self) -> bool {
        self.ended || self.decoder.is_complete()
    }

    fn take(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), LlmError> {
        if self.ended {
            return Ok(());
        }
        let from = out.len();
        let result = self.decoder.event(event, out);
        if !matches!(result, Err(LlmError::Protocol(_))) {
            self.events += 1;
        }
        self.ended = out[from..].iter().any(|delta| matches!(delta, Delta::End { .. }));
        result
    }
}

/// Reports whether a body begins, as far as it came, as an event stream does.
fn looks_like_events(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    [&b"data:"[..], b"event:", b"id:", b"retry:", b":"]
        .iter()
        .any(|field| head.starts_with(field) || field.starts_with(head))
}
