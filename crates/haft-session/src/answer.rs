//! One answer of a model with its calls, from its first piece to its last result.
//!
//! **Invariant:** each call of an answer gets exactly one result: the first that came, or, where
//! none can come any more, words on what is known of it.

use std::collections::{BTreeMap, HashMap};

use haft_types::{CallId, CallResult, EventId, Outcome, Part, Status};

/// What is known of one call.
#[derive(Clone, Debug, Default)]
struct Call {
    started: bool,
    outcome: Option<Outcome>,
}

/// An answer that is not complete, or whose calls are not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    parts: BTreeMap<u32, Vec<Part>>,
    calls: HashMap<CallId, Call>,
    /// Calls without an outcome.
    open: usize,
    /// True when it never came to its end.
    failed: bool,
}

impl Answer {
    /// Adds a piece. A call that is there already is not added again.
    pub(crate) fn piece(&mut self, index: u32, piece: &Part) {
        let slot = self.parts.entry(index).or_default();
        match (slot.last_mut(), piece) {
            (Some(Part::Text { text }), Part::Text { text: more }) => text.push_str(more),
            (
                Some(Part::Thinking { text, signature }),
                Part::Thinking { text: more, signature: later },
            ) => {
                text.push_str(more);
                if later.is_some() {
                    signature.clone_from(later);
                }
            }
            (_, Part::Call(call)) => {
                if !self.calls.contains_key(&call.id) {
                    self.calls.insert(call.id.clone(), Call::default());
                    self.open += 1;
                    slot.push(piece.clone());
                }
            }
            _ => slot.push(piece.clone()),
        }
    }

    pub(crate) fn has(&self, call: &CallId) -> bool {
        self.calls.contains_key(call)
    }

    pub(crate) fn start(&mut self, call: &CallId) {
        if let Some(call) = self.calls.get_mut(call) {
            call.started = true;
        }
    }

    /// Takes the result of one of its calls; only the first counts.
    pub(crate) fn end(&mut self, call: &CallId, outcome: &Outcome) {
        let Some(call) = self.calls.get_mut(call) else { return };
        if call.outcome.is_none() {
            call.outcome = Some(told(outcome));
            self.open -= 1;
        }
    }

    /// Takes the result of one of its calls out of view; reports whether there was one.
    pub(crate) fn mask(&mut self, id: &CallId, staying: &[String]) -> bool {
        let outcome = self.calls.get_mut(id).and_then(|call| call.outcome.as_mut());
        outcome.is_some_and(|outcome| mask(id, outcome, staying))
    }

    /// True when calls have no result yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.open > 0
    }

    /// Notes that it never came to its end.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    /// The parts of its message; empty where it has nothing to say.
    ///
    /// Empty texts are left out. Of an answer that failed, thinking without its proof is left out
    /// too, and thinking alone is no message: providers refuse both.
    pub(crate) fn message(&self) -> Vec<Part> {
        let kept = |part: &&Part| match part {
            Part::Text { text } => !text.is_empty(),
            Part::Thinking { signature, .. } => !self.failed || signature.is_some(),
            _ => true,
        };
        let parts: Vec<Part> = self.parts.values().flatten().filter(kept).cloned().collect();
        let says = |part: &Part| matches!(part, Part::Text { .. } | Part::Call(_));
        if self.failed && !parts.iter().any(says) { Vec::new() } else { parts }
    }

    /// The results in the order of the calls; empty where it has no calls.
    pub(crate) fn results(&self) -> Vec<CallResult> {
        self.parts
            .values()
            .flatten()
            .filter_map(|part| match part {
                Part::Call(call) => Some(CallResult {
                    id: call.id.clone(),
                    wire_id: call.wire_id.clone(),
                    name: call.name.clone(),
                    outcome: self.outcome(&call.id),
                }),
                _ => None,
            })
            .collect()
    }

    /// The calls that have no result, with the one that they get when none comes.
    pub(crate) fn unanswered(&self) -> Vec<(CallId, Outcome)> {
        let open = |call: &CallId| self.calls.get(call).is_some_and(|call| call.outcome.is_none());
        let results = self.results().into_iter();
        results.filter(|r| open(&r.id)).map(|r| (r.id, r.outcome)).collect()
    }

    fn outcome(&self, call: &CallId) -> Outcome {
        let unknown = Call::default();
        let call = self.calls.get(call).unwrap_or(&unknown);
        let text = match &call.outcome {
            Some(outcome) => return outcome.clone(),
            None if call.started => "not known whether it ran: check before you repeat it",
            None if self.failed => "never ran: the answer that asked for it broke off",
            None => "never ran: the run ended before it",
        };
        Outcome::ended(Status::Failed, text)
    }
}

/// What the model is told of an outcome, which tools it makes known included; the rest stays in the log
/// and out of memory.
fn told(outcome: &Outcome) -> Outcome {
    let names = outcome.loaded_tools();
    let data = (!names.is_empty()).then(|| Outcome::of_loaded_tools(&names));
    Outcome { status: outcome.status, content: outcome.content.clone(), data, ..Outcome::default() }
}

/// Replaces what a result says by where it is, and the words that stay; reports whether that changed
/// it.
pub(crate) fn mask(call: &CallId, outcome: &mut Outcome, staying: &[String]) -> bool {
    let text = format!("This result is no longer shown; it is kept at {}.", call.address());
    let mut content = vec![Part::text(text)];
    content.extend(staying.iter().map(Part::text));
    let changed = outcome.content != content;
    outcome.content = content;
    changed
}

/// A message's place in the log: the last event that belongs to it.
pub(crate) const UNFINISHED: EventId = EventId(u64::MAX);
