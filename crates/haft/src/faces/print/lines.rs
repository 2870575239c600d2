//! The lines of `stream-json`: the events of a run, for programs. `docs/output.md` describes them.
//!
//! **Invariant:** each line is one that `docs/output.schema.json` defines, and fields are only ever
//! added. What haft needs to resume a session (pins, cache marks, receipts, stored settings) is in
//! its log alone.

use std::{borrow::Cow, collections::HashMap};

use haft_llm::named_call;
use haft_types::{
    AgentPath, Answerer, Blob, Body, CallId, Choice, Denial, Detail, Event, EventId, From,
    HostPath, JobEnd, Level, Outcome, Part, Question, QuestionId, QuestionKind, Receipt,
    ReceiptAction, Status, Stop, Stream, TurnEnd, TurnId, Usage,
};
use serde::Serialize;
use serde_json::Value;

/// Follows the events of a run.
#[derive(Default)]
pub struct Lines {
    /// What came of the answers that stream.
    answers: HashMap<AgentPath, Vec<Part>>,
    /// Where the last piece of each belongs.
    places: HashMap<AgentPath, u32>,
    /// Calls that have no result yet: the tool, and its arguments.
    calls: HashMap<CallId, (String, Option<Value>)>,
    /// Calls that were denied.
    denials: Vec<Denied>,
}

/// A call that was denied.
#[derive(Serialize)]
pub struct Denied {
    call: CallId,
    tool: String,
    /// Its arguments; none where they were no JSON.
    input: Option<Value>,
    /// The rule that denies it, as it is written; none where something else does.
    rule: Option<String>,
    /// Why, in a sentence.
    pub reason: String,
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    what: Kind<'a>,
    turn: TurnId,
    #[serde(skip_serializing_if = "AgentPath::is_main")]
    agent: &'a AgentPath,
    at: u64,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Kind<'a> {
    Session {
        session: &'a str,
        haft: &'a str,
        cwd: &'a HostPath,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        fork: Option<&'a (String, EventId)>,
    },
    User {
        from: &'a From,
        parts: Vec<Shown<'a>>,
    },
    Piece {
        index: u32,
        of: &'static str,
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<&'a str>,
    },
    Assistant {
        parts: Vec<Shown<'a>>,
        model: Option<&'a str>,
        stop: Option<Stop>,
        usage: Option<Usage>,
    },
    AnswerFailed {
        error: &'a str,
        retried: bool,
        wait_ms: Option<u64>,
    },
    Call {
        call: &'a CallId,
        tool: &'a str,
        input: Option<&'a Value>,
    },
    CallOutput {
        call: &'a CallId,
        stream: Stream,
        text: &'a str,
    },
    CallResult {
        call: &'a CallId,
        tool: &'a str,
        status: Status,
        parts: Vec<Shown<'a>>,
        data: Option<&'a Value>,
        changes: Vec<Change<'a>>,
        took_ms: u64,
    },
    Changes {
        call: &'a CallId,
        changes: Vec<Change<'a>>,
    },
    Question {
        question: &'a QuestionId,
        call: Option<&'a CallId>,
        kind: QuestionKind,
        text: &'a str,
        command: Option<&'a str>,
        preview: Option<&'a Detail>,
        options: &'a [Choice],
    },
    Answered {
        question: &'a QuestionId,
        option: &'a str,
        text: Option<&'a str>,
        by: &'a Answerer,
    },
    JobStarted {
        job: &'a str,
        call: &'a CallId,
        title: &'a str,
    },
    JobEnded {
        job: &'a str,
        end: JobEnd,
        exit: Option<i32>,
    },
    Notice {
        level: Level,
        text: &'a str,
    },
    Unsent {
        parts: Vec<Shown<'a>>,
    },
    TurnEnded {
        #[serde(flatten)]
        end: &'a TurnEnd,
        usage: Usage,
    },
}

/// A part of a message, without what only its provider understands.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Shown<'a> {
    Text {
        text: &'a str,
    },
    Thinking {
        text: &'a str,
    },
    Image {
        blob: &'a Blob,
    },
    Call {
        call: &'a CallId,
        tool: Cow<'a, str>,
        input: Option<Cow<'a, Value>>,
        /// The arguments as they came, where they are no JSON.
        #[serde(skip_serializing_if = "Option::is_none")]
        raw: Option<&'a str>,
    },
}

/// A file that a call changed.
#[derive(Serialize)]
struct Change<'a> {
    path: &'a HostPath,
    did: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a HostPath>,
}

impl Lines {
    /// Takes an event. Returns its lines, without line feeds, if they are `wanted`.
    ///
    /// # Errors
    /// When a value cannot be written as JSON.
    pub fn take(&mut self, event: &Event, wanted: bool) -> serde_json::Result<Vec<String>> {
        self.learn(event);
        let mut lines = Vec::new();
        if wanted {
            let whole = self.whole(event);
            for what in whole.into_iter().chain(self.what(event)) {
                let Event { turn, agent, at, .. } = event;
                let line = Line { what, turn: *turn, agent, at: *at };
                lines.push(serde_json::to_string(&line)?);
            }
        }
        self.forget(event);
        Ok(lines)
    }

    /// Reports whether anything arrived of the answer that streams.
    pub fn has_come(&self, agent: &AgentPath) -> bool {
        self.answers.contains_key(agent)
    }

    /// The calls that were denied.
    pub fn denials(&self) -> &[Denied] {
        &self.denials
    }

    /// Takes note of what later lines tell.
    fn learn(&mut self, event: &Event) {
        match &event.body {
            Body::AnswerPart { index, part } => {
                if let Part::Call(call) = part {
                    let of = (call.name.clone(), call.input.clone());
                    self.calls.insert(call.id.clone(), of);
                }
                let before = self.places.insert(event.agent.clone(), *index);
                let parts = self.answers.entry(event.agent.clone()).or_default();
                let same = before == Some(*index);
                match (part, parts.last_mut().filter(|_| same)) {
                    (Part::Text { text }, Some(Part::Text { text: all }))
                    | (Part::Thinking { text, .. }, Some(Part::Thinking { text: all, .. })) => {
                        all.push_str(text);
                    }
                    _ => parts.push(part.clone()),
                }
            }
            Body::CallStarted { call, tool, input, .. } => {
                let of = self.calls.entry(call.clone()).or_default();
                of.0.clone_from(tool);
                if input.is_some() {
                    of.1.clone_from(input);
                }
            }
            Body::CallEnded { call, outcome, .. }
                if outcome.status == Status::Denied && event.agent.is_main() =>
            {
                let (tool, input) = self.calls.get(call).cloned().unwrap_or_default();
                let Denial { rule, reason } = denial(outcome);
                self.denials.push(Denied { call: call.clone(), tool, input, rule, reason });
            }
            _ => {}
        }
    }

    /// An answer that is whole by this event, or will not become more.
    fn whole<'a>(&'a self, event: &'a Event) -> Option<Kind<'a>> {
        let parts = || self.answers.get(&event.agent).map(|all| shown(all)).unwrap_or_default();
        match &event.body {
            // Nothing came of it.
            Body::AnswerEnded { stop: Stop::Interrupted, .. } if !self.has_come(&event.agent) => {
                None
            }
            Body::AnswerEnded { model, stop, usage, .. } => Some(Kind::Assistant {
                parts: parts(),
                model: Some(model),
                stop: Some(*stop),
                usage: Some(*usage),
            }),
            Body::AnswerFailed { retried: false, .. } => {
                let parts = Some(parts()).filter(|parts| !parts.is_empty())?;
                Some(Kind::Assistant { parts, model: None, stop: None, usage: None })
            }
            _ => None,
        }
    }

    /// The line of an event; none where it is the log's alone, a part of another line, no news, or
    /// never comes in a run.
    fn what<'a>(&'a self, event: &'a Event) -> Option<Kind<'a>> {
        Some(match &event.body {
            Body::Session { session, haft, cwd, fork, name } => {
                Kind::Session { session, haft, cwd, name: name.as_deref(), fork: fork.as_ref() }
            }
            Body::User { from, parts } => Kind::User { from, parts: shown(parts) },
            Body::AnswerPart { index, part } => {
                let (of, text) = match part {
                    Part::Text { text } => ("text", text),
                    Part::Thinking { text, .. } => ("thinking", text),
                    Part::Image { .. } | Part::Call(_) | Part::Opaque { .. } => return None,
                };
                Kind::Piece { index: *index, of, text, tool: None }
            }
            Body::CallPart { index, name, json } => {
                Kind::Piece { index: *index, of: "call", text: json, tool: Some(name) }
            }
            Body::AnswerFailed { error, retried, wait_ms } => {
                Kind::AnswerFailed { error, retried: *retried, wait_ms: *wait_ms }
            }
            Body::CallStarted { call, tool, .. } => {
                let input = self.calls.get(call).and_then(|(_, input)| input.as_ref());
                Kind::Call { call, tool, input }
            }
            Body::CallOutput { call, stream, text } => {
                Kind::CallOutput { call, stream: *stream, text }
            }
            Body::CallEnded { call, outcome, took } => self.result(call, outcome, *took),
            Body::Found { call, receipts } => Kind::Changes { call, changes: changes(receipts) },
            Body::Asked { question } => asked(question),
            Body::Answered { question, reply, by } => {
                Kind::Answered { question, option: &reply.option, text: reply.text.as_deref(), by }
            }
            Body::JobStarted { job, call, title } => Kind::JobStarted { job, call, title },
            Body::JobEnded { job, end, exit } => Kind::JobEnded { job, end: *end, exit: *exit },
            Body::Notice { level, text } => Kind::Notice { level: *level, text },
            Body::Unsent { parts } => Kind::Unsent { parts: shown(parts) },
            Body::TurnEnded { end, usage } => Kind::TurnEnded { end, usage: *usage },
            Body::AnswerEnded { .. }
            | Body::CacheUsed(_)
            | Body::Queue { .. }
            | Body::Mode { .. }
            | Body::Undone { .. }
            | Body::Rewound { .. }
            | Body::Pinned { .. }
            | Body::CallProgress { .. }
            | Body::State { .. }
            | Body::Break { .. }
            | Body::Masked { .. }
            | Body::Snipped { .. }
            | Body::SideAnswer { .. }
            | Body::Compacted { .. } => return None,
        })
    }

    fn result<'a>(&'a self, call: &'a CallId, outcome: &'a Outcome, took_ms: u64) -> Kind<'a> {
        Kind::CallResult {
            call,
            tool: self.calls.get(call).map_or("", |(tool, _)| tool),
            status: outcome.status,
            parts: shown(&outcome.content),
            data: outcome.data.as_ref(),
            changes: changes(&outcome.receipts),
            took_ms,
        }
    }

    /// Lets go of what no later line tells.
    fn forget(&mut self, event: &Event) {
        match &event.body {
            Body::AnswerEnded { .. } | Body::AnswerFailed { .. } => {
                self.answers.remove(&event.agent);
                self.places.remove(&event.agent);
            }
            Body::CallEnded { call, .. } => drop(self.calls.remove(call)),
            _ => {}
        }
    }
}

/// Why a call was denied; what the model reads of it, where nothing more is known.
fn denial(outcome: &Outcome) -> Denial {
    outcome.denial.clone().unwrap_or_else(|| {
        let text = outcome.joined_text();
        Denial { rule: None, reason: text.lines().next().unwrap_or_default().to_owned() }
    })
}

fn shown(parts: &[Part]) -> Vec<Shown<'_>> {
    parts.iter().filter_map(shown_part).collect()
}

fn shown_part(part: &Part) -> Option<Shown<'_>> {
    Some(match part {
        Part::Text { text } => Shown::Text { text },
        // A provider may hide the words.
        Part::Thinking { text, .. } if text.is_empty() => return None,
        Part::Thinking { text, .. } => Shown::Thinking { text },
        Part::Image { blob } => Shown::Image { blob },
        Part::Call(of) => {
            let raw = of.input.is_none().then_some(&*of.raw);
            // The tool that is meant, whichever way it is called.
            let (tool, input) = match named_call(of) {
                Some(Ok(named)) => (Cow::Owned(named.name), Some(Cow::Owned(named.input))),
                _ => (Cow::Borrowed(&*of.name), of.input.as_ref().map(Cow::Borrowed)),
            };
            Shown::Call { call: &of.id, tool, input, raw }
        }
        Part::Opaque { .. } => return None,
    })
}

fn changes(receipts: &[Receipt]) -> Vec<Change<'_>> {
    receipts.iter().map(change).collect()
}

fn change(receipt: &Receipt) -> Change<'_> {
    let (did, from) = match &receipt.action {
        ReceiptAction::Created => ("created", None),
        ReceiptAction::Changed => ("changed", None),
        ReceiptAction::Deleted => ("deleted", None),
        ReceiptAction::Renamed { from } => ("renamed", Some(from)),
    };
    Change { path: &receipt.path, did, from }
}

fn asked(question: &Question) -> Kind<'_> {
    Kind::Question {
        question: &question.id,
        call: question.call.as_ref(),
        kind: question.kind,
        text: &question.text,
        command: question.command.as_deref(),
        preview: question.preview.as_ref(),
        options: &question.options,
    }
}

#[cfg(test)]
mod tests {
    use haft_testkit::schema::Schema;
    use haft_types::{ToolUse, VERSION};
    use serde_json::json;

    use super::*;

    fn event(agent: &AgentPath, body: Body) -> Event {
        let (agent, turn) = (agent.clone(), TurnId(1));
        Event { v: VERSION, id: None, parent: None, turn, agent, at: 7, body }
    }

    fn text(text: &str) -> Part {
        Part::text(text)
    }

    #[test]
    fn answers_of_agents_that_stream_at_once_are_whole_and_apart() {
        let (main, child) = (AgentPath::default(), AgentPath::default().child("explore"));
        let piece = |agent: &AgentPath, index, part| event(agent, Body::AnswerPart { index, part });
        let call = ToolUse::new(CallId::nth(1), "ls", json!({}));
        let ended = |agent: &AgentPath| {
            let (model, wire, host) = ("m".to_owned(), "script".to_owned(), String::new());
            let (stop, usage) = (Stop::EndTurn, Usage::default());
            event(agent, Body::AnswerEnded { model, wire, host, stop, usage })
        };
        let thought =
            |text: &str| Part::Thinking { text: text.into(), signature: Some("s".into()) };
        let events = [
            piece(&main, 0, thought("Let ")),
            piece(&child, 0, text("One")),
            piece(&main, 0, thought("me.")),
            piece(&main, 1, text("a")),
            piece(&child, 1, text("two")),
            piece(&main, 1, text("b")),
            piece(&main, 2, Part::Call(call)),
            ended(&child),
            ended(&main),
        ];
        let mut lines = Lines::default();
        let all: Vec<Value> = events
            .iter()
            .flat_map(|event| lines.take(event, true).unwrap())
            .map(|line| serde_json::from_str(&line).unwrap())
            .collect();
        let whole: Vec<&Value> = all.iter().filter(|line| line["type"] == "assistant").collect();
        assert_eq!(
            whole[0]["parts"],
            json!([{"type": "text", "text": "One"}, {"type": "text", "text": "two"}])
        );
        assert_eq!(whole[0]["agent"], json!(["explore"]));
        assert_eq!(
            whole[1]["parts"],
            json!([
                {"type": "thinking", "text": "Let me."},
                {"type": "text", "text": "ab"},
                {"type": "call", "call": "c1", "tool": "ls", "input": {}},
            ])
        );
        assert!(lines.answers.is_empty() && lines.places.is_empty());
    }

    #[test]
    fn lines_that_few_runs_have_fit_the_schema() {
        let schema = Schema::new(include_str!("../../../../../docs/output.schema.json")).unwrap();
        let child = AgentPath::default().child("explore");
        let mut lines = Lines::default();
        for body in [
            Body::Unsent { parts: vec![text("later")] },
            Body::User { from: From::Job("j1".into()), parts: vec![text("ended")] },
            Body::User { from: From::Steer, parts: Vec::new() },
            Body::CallEnded {
                call: CallId::nth(9),
                outcome: Outcome::ended(Status::Cancelled, "cancelled"),
                took: 0,
            },
            Body::Answered {
                question: QuestionId::nth(1),
                reply: haft_types::Reply::pick("allow"),
                by: Answerer::Person("line".into()),
            },
            Body::JobEnded { job: "j1".into(), end: JobEnd::Lost, exit: None },
            Body::TurnEnded { end: TurnEnd::Interrupted, usage: Usage::default() },
        ] {
            let given = lines.take(&event(&child, body.clone()), true).unwrap();
            assert_eq!(given.len(), 1, "{body:?}");
            let line: Value = serde_json::from_str(&given[0]).unwrap();
            assert!(schema.fits(&line), "{line}");
        }
        // What a session keeps for itself is no line.
        for body in [
            Body::State { key: "k".into(), value: json!(1) },
            Body::Pinned { system: Vec::new(), tools: "[]".into(), format: String::new() },
            Body::Masked { calls: Vec::new() },
        ] {
            assert!(lines.take(&event(&child, body), true).unwrap().is_empty());
        }
    }
}
