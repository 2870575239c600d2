//! One answer as it streams in: takes deltas, gives events and calls.
//!
//! **Invariant:** the text that is shown is the text that is stored. Pieces of text are joined for
//! at most 50 milliseconds, then recorded and shown as one event. A call is recorded before it can
//! run. No event holds a known secret value, even where it is split across pieces.

use std::{borrow::Cow, sync::Arc, time::Duration};

use haft_llm::Delta;
use haft_text::secrets::{Secrets, Stream};
use haft_types::{Body, CallId, Level, Part, ToolUse};
use tokio::time::Instant;

/// How long pieces are joined: twenty events a second.
const JOIN: Duration = Duration::from_millis(50);
/// Pieces are not joined beyond this many bytes.
const JOIN_BYTES: usize = 8 << 10;

/// What a piece is of, by its position in the answer.
#[derive(Clone, PartialEq, Eq)]
enum Kind {
    Text(u32),
    Thinking(u32),
    Call(u32, String),
}

impl Kind {
    fn body(self, text: String) -> Body {
        match self {
            Self::Text(index) => Body::AnswerPart { index, part: Part::Text { text } },
            Self::Thinking(index) => {
                Body::AnswerPart { index, part: Part::Thinking { text, signature: None } }
            }
            Self::Call(index, name) => Body::CallPart { index, name, json: text },
        }
    }
}

/// What waits to be joined by the next piece.
struct Open {
    kind: Kind,
    /// What was not looked at yet.
    text: String,
    hidden: Stream,
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
    /// True once something of the thinking that is open was hidden: its proof is void then.
    unproven: bool,
    secrets: Arc<Secrets>,
    since: Instant,
}

impl Answer {
    pub fn new(wire: String, model: String, secrets: Arc<Secrets>) -> Self {
        // The first piece is shown at once.
        let since = Instant::now().checked_sub(JOIN).unwrap_or_else(Instant::now);
        let (calls, open) = (Vec::new(), None);
        Self { wire, model, calls, empty: true, open, unproven: false, secrets, since }
    }

    /// When the waiting piece is due; none while none waits.
    pub fn due(&self) -> Option<Instant> {
        self.open.as_ref().filter(|open| !open.text.is_empty()).map(|_| self.since + JOIN)
    }

    /// What waits, but for an end that may be the begin of a secret.
    pub fn flush(&mut self) -> Option<Body> {
        let open = self.open.as_mut()?;
        self.since = Instant::now();
        let text = open.hidden.push(&self.secrets, &std::mem::take(&mut open.text));
        (!text.is_empty()).then(|| open.kind.clone().body(text))
    }

    /// All that waits, where nothing goes on with it.
    pub fn finish(&mut self) -> Option<Body> {
        let Open { kind, text, mut hidden } = self.open.take()?;
        self.since = Instant::now();
        let shown = hidden.push(&self.secrets, &text) + &hidden.end(&self.secrets);
        self.unproven |= matches!(kind, Kind::Thinking(_)) && hidden.has_hidden();
        (!shown.is_empty()).then(|| kind.body(shown))
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
            Delta::Text { index, text } => self.join(Kind::Text(index), &text, &mut out),
            Delta::Thinking { index, text } => self.join(Kind::Thinking(index), &text, &mut out),
            Delta::CallPart { index, name, json } => {
                self.join(Kind::Call(index, name), &json, &mut out);
            }
            Delta::ThinkingEnd { index, signature } => {
                out.extend(self.finish());
                let signature = signature.filter(|_| !std::mem::take(&mut self.unproven));
                let part = Part::Thinking { text: String::new(), signature };
                out.push(Body::AnswerPart { index, part });
            }
            Delta::Opaque { index, json } => {
                out.extend(self.finish());
                let (wire, model) = (self.wire.clone(), self.model.clone());
                // It goes back as it is or not at all.
                if matches!(self.secrets.hide_known(&json), Cow::Borrowed(_)) {
                    if let Some(what) = haft_llm::hosted_search(&json) {
                        let text = format!("the provider searched the web: {what}");
                        out.push(Body::Notice { level: Level::Info, text });
                    }
                    out.push(Body::AnswerPart { index, part: Part::Opaque { wire, model, json } });
                }
            }
            Delta::Call { index, .. } => {
                out.extend(self.finish());
                if let Some(call) = delta.into_tool_use(id()) {
                    self.calls.push(call.clone());
                    out.push(Body::AnswerPart { index, part: Part::Call(call) });
                }
            }
            Delta::Restart { .. } => {
                self.empty = true;
                out.extend(self.finish());
            }
            Delta::End { .. } => out.extend(self.finish()),
            Delta::Note { .. } | Delta::Receipt { .. } => {}
        }
        out
    }

    fn join(&mut self, kind: Kind, more: &str, out: &mut Vec<Body>) {
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            out.extend(self.finish());
        }
        let open = self.open.get_or_insert_with(|| {
            let (text, hidden) = (String::new(), Stream::of_known());
            Open { kind, text, hidden }
        });
        open.text.push_str(more);
        if open.text.len() > JOIN_BYTES || self.since.elapsed() >= JOIN {
            out.extend(self.flush());
        }
    }
}
