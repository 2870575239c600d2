//! One answer as it streams in: deltas in, events and calls out.
//!
//! **Invariant:** what is shown is what is kept: pieces of text are joined for at most 50
//! milliseconds, then appended and shown as one event. A call is kept before it can run.

use std::time::Duration;

use haft_llm::Delta;
use haft_types::{Body, CallId, Part, ToolUse};
use tokio::time::Instant;

/// How long pieces are joined: twenty events a second.
const JOIN: Duration = Duration::from_millis(50);
/// Pieces are not joined beyond this many bytes.
const JOIN_BYTES: usize = 8 << 10;

/// A piece that waits to be joined by the next one.
enum Open {
    Text { index: u32, text: String },
    Thinking { index: u32, text: String },
    Call { index: u32, name: String, json: String },
}

/// What came of an answer so far.
pub(crate) struct Answer {
    /// The wire that it comes by.
    pub wire: String,
    /// The model that gives it.
    pub model: String,
    /// The calls that are whole, in order.
    pub calls: Vec<ToolUse>,
    /// True while nothing came that a person could read or that would be done.
    pub empty: bool,
    open: Option<Open>,
    since: Instant,
}

impl Answer {
    pub fn new(wire: String, model: String) -> Self {
        // The first piece is shown at once.
        let since = Instant::now().checked_sub(JOIN).unwrap_or_else(Instant::now);
        Self { wire, model, calls: Vec::new(), empty: true, open: None, since }
    }

    /// When the waiting piece is due; none while none waits.
    pub fn due(&self) -> Option<Instant> {
        self.open.as_ref().map(|_| self.since + JOIN)
    }

    /// The waiting piece.
    pub fn flush(&mut self) -> Option<Body> {
        let open = self.open.take()?;
        self.since = Instant::now();
        Some(match open {
            Open::Text { index, text } => Body::AnswerPart { index, part: Part::Text { text } },
            Open::Thinking { index, text } => {
                Body::AnswerPart { index, part: Part::Thinking { text, signature: None } }
            }
            Open::Call { index, name, json } => Body::CallPart { index, name, json },
        })
    }

    /// Takes a delta that is part of the answer and gives what is to be kept or shown now.
    ///
    /// `id` gives a fresh id for a call.
    pub fn take(&mut self, delta: Delta, id: impl FnOnce() -> CallId) -> Vec<Body> {
        let mut out = Vec::new();
        self.empty &= match &delta {
            Delta::Text { text, .. } => text.trim().is_empty(),
            Delta::Call { .. } | Delta::Opaque { .. } => false,
            _ => true,
        };
        match delta {
            Delta::Text { index, text } => self.join(Open::Text { index, text }, &mut out),
            Delta::Thinking { index, text } => self.join(Open::Thinking { index, text }, &mut out),
            Delta::CallPart { index, name, json } => {
                self.join(Open::Call { index, name, json }, &mut out);
            }
            Delta::ThinkingEnd { index, signature } => {
                out.extend(self.flush());
                let part = Part::Thinking { text: String::new(), signature };
                out.push(Body::AnswerPart { index, part });
            }
            Delta::Opaque { index, json } => {
                out.extend(self.flush());
                let part =
                    Part::Opaque { wire: self.wire.clone(), model: self.model.clone(), json };
                out.push(Body::AnswerPart { index, part });
            }
            Delta::Call { index, .. } => {
                out.extend(self.flush());
                if let Some(call) = delta.into_tool_use(id()) {
                    self.calls.push(call.clone());
                    out.push(Body::AnswerPart { index, part: Part::Call(call) });
                }
            }
            Delta::Restart { .. } => {
                self.empty = true;
                out.extend(self.flush());
            }
            Delta::End { .. } => out.extend(self.flush()),
        }
        out
    }

    fn join(&mut self, more: Open, out: &mut Vec<Body>) {
        let joined = match (&mut self.open, more) {
            (Some(Open::Text { index: a, text }), Open::Text { index: b, text: more })
            | (Some(Open::Thinking { index: a, text }), Open::Thinking { index: b, text: more })
                if *a == b =>
            {
                text.push_str(&more);
                text.len()
            }
            (Some(Open::Call { index: a, json, .. }), Open::Call { index: b, json: more, .. })
                if *a == b =>
            {
                json.push_str(&more);
                json.len()
            }
            (_, more) => {
                out.extend(self.flush());
                self.open = Some(more);
                0
            }
        };
        if joined > JOIN_BYTES || self.since.elapsed() >= JOIN {
            out.extend(self.flush());
        }
    }
}
