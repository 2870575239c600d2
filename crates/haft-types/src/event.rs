//! The one event type: the log is its durable part, front ends fold it.
//!
//! **Invariant:** its JSON is public. Version 1 opens for ever: variants and fields are added,
//! never renamed or given another meaning.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Answerer, CacheUse, CallId, Detail, From, Hash, HostPath, Mode, Outcome, Part, Plan, Question,
    QuestionId, Receipt, Reply, Stop, Text, Usage,
};

/// Version of the event format that this code writes.
pub const VERSION: u32 = 1;

/// Position of a durable event in its session's log, from 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct EventId(pub u64);

/// A turn of a session, from 1: one message of a person, or a wake-up, with all that follows
/// until haft is idle again. 0 before the first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct TurnId(pub u64);

/// The path of an agent: empty for the main one, then one name for each level of subagent.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentPath(pub Vec<Box<str>>);

impl AgentPath {
    /// Reports whether it is the main agent.
    pub fn is_main(&self) -> bool {
        self.0.is_empty()
    }

    /// The path of a subagent of this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        let mut names = self.0.clone();
        names.push(name.into());
        Self(names)
    }
}

impl fmt::Display for AgentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("/"))
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Format version: [`VERSION`].
    pub v: u32,
    /// Position in the log; none for a passing event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EventId>,
    /// The durable event before it in its branch; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<EventId>,
    /// See [`TurnId`].
    #[serde(default)]
    pub turn: TurnId,
    /// See [`AgentPath`].
    #[serde(default, skip_serializing_if = "AgentPath::is_main")]
    pub agent: AgentPath,
    /// Milliseconds since the Unix epoch.
    pub at: u64,
    /// What happened.
    #[serde(flatten)]
    pub body: Body,
}

/// The stream of a program's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Good to know.
    #[default]
    Info,
    /// Something is not as expected.
    Warning,
    /// Something failed.
    Error,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEnd {
    /// By itself.
    Exited,
    /// It was stopped.
    Stopped,
    /// haft ended while it ran, so its end was not seen.
    Lost,
}

/// Why the pinned tools or system prompt changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakCause {
    /// The first request of the session.
    First,
    /// The person chose another model.
    Model,
    /// The model could not be reached, so another one goes on.
    Fallback,
    /// The person chose another agent.
    Agent,
    /// The person changed the tool set.
    Tools,
    /// The history was compacted.
    Compaction,
    /// Old results left the model's view.
    Masking,
    /// The model dropped a stretch of its own history.
    Snip,
    /// The session was resumed under another version or setting.
    Resume,
}

/// Why a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model answered without calls and nothing is queued.
    Done {
        /// Why its last answer stopped.
        stop: Stop,
    },
    /// The person stopped it.
    Interrupted,
    /// The model could not be reached or broke its protocol.
    Failed {
        /// What went wrong and what to do.
        error: String,
    },
    /// A budget is used up.
    Limit {
        /// Which.
        reason: String,
    },
}

/// The answer that a summary came with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summarizer {
    /// The model that gave it.
    pub model: String,
    /// The wire that it came by.
    pub wire: String,
    /// The server that gave it, as `HOST:PORT`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The tokens that it took.
    pub usage: Usage,
}

/// When a message that comes while an agent works reaches its model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// With the next request: once every call of the running answer has its result.
    #[default]
    Steer,
    /// As a turn of its own, after this one.
    FollowUp,
}

/// A message of a person that waits until its agent takes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    /// Its number among those of its agent, from 1; no number comes twice.
    pub id: u64,
    /// When its agent takes it.
    pub when: When,
    /// The content of the message.
    pub parts: Vec<Part>,
}

/// The content of an event. Durable bodies are in the log; the others are passing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Body {
    /// A session began.
    Session {
        /// Its id.
        session: String,
        /// The version of haft that began it.
        haft: String,
        /// The workspace root.
        cwd: HostPath,
        /// The session that this one was forked from, with the event it follows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fork: Option<(String, EventId)>,
        /// Its name, where it was given one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// The prefix of every later request, until the next [`Body::Break`].
    Pinned {
        /// The system prompt, in parts between which a cache mark may stand.
        system: Vec<String>,
        /// The tool definitions, as the wire sends them: JSON text.
        tools: String,
        /// What answers have to fit, as the wire sends it: JSON text; empty for anything.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        format: String,
    },
    /// A message was sent to the model.
    User {
        /// Who says it.
        from: From,
        /// The content of the message.
        parts: Vec<Part>,
    },
    /// A piece of an answer: text and thinking with one index continue each other.
    AnswerPart {
        /// Position of the part in its answer, from 0.
        index: u32,
        /// The piece; a call is always whole.
        part: Part,
    },
    /// Passing: a piece of a call's arguments.
    CallPart {
        /// Position of the part in its answer, from 0.
        index: u32,
        /// The tool's name.
        name: String,
        /// JSON text that continues what came before.
        json: String,
    },
    /// An answer is complete.
    AnswerEnded {
        /// The model that gave it.
        model: String,
        /// The wire that it came by.
        wire: String,
        /// The server that gave it, as `HOST:PORT`; empty where that is not known.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        host: String,
        /// Why the answer stopped.
        stop: Stop,
        /// The tokens that it took.
        usage: Usage,
    },
    /// What became of a request's cache; right before [`Body::AnswerEnded`] of its answer.
    CacheUsed(CacheUse),
    /// An answer failed for good, or was cut; the parts before stay in the conversation.
    AnswerFailed {
        /// What went wrong and what to do, for people.
        error: String,
        /// True when the request is sent again after this; its parts are void then.
        #[serde(default)]
        retried: bool,
        /// Milliseconds until then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
    },
    /// Queued messages of the person will not be sent: they are returned to the person.
    Unsent {
        /// The content of the messages.
        parts: Vec<Part>,
    },
    /// Passing: the messages of a person that wait for the agent of the event, oldest first for each
    /// [`When`]. Replaces what waited before.
    Queue {
        /// The messages.
        waiting: Vec<Queued>,
    },
    /// A person changed how much is asked.
    Mode {
        /// The mode from now on.
        mode: Mode,
        /// Whether changes of files need no question for the rest of the session.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        edits: bool,
        /// The front end that set it.
        by: String,
    },
    /// A turn is over; everything before it is synced. haft is idle unless messages wait.
    TurnEnded {
        /// Why.
        #[serde(flatten)]
        end: TurnEnd,
        /// The tokens that all its requests took.
        usage: Usage,
    },
    /// A call is about to run; on disk before any effect beyond observing. Recorded again when a
    /// hook or a person changed its arguments; the last one counts.
    CallStarted {
        /// Which call.
        call: CallId,
        /// The tool's real name.
        tool: String,
        /// The arguments after repair; for calls that are not part of an answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// The plan of the call; none where it could not be planned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Plan>,
    },
    /// Passing: more output of a running program.
    CallOutput {
        /// Which call.
        call: CallId,
        /// The stream of the output.
        stream: Stream,
        /// The text, safe for a terminal.
        text: String,
    },
    /// Passing: the current state of a running call; replaces what it showed before. Under 4 KiB.
    CallProgress {
        /// Which call.
        call: CallId,
        /// The state.
        detail: Detail,
    },
    /// A call ended.
    CallEnded {
        /// Which call.
        call: CallId,
        /// The outcome of the call.
        outcome: Outcome,
        /// Wall time in milliseconds, without time spent asking.
        took: u64,
    },
    /// The changes of a call were found after its end.
    Found {
        /// Which call.
        call: CallId,
        /// The changes.
        receipts: Vec<Receipt>,
    },
    /// Something waits for a person.
    Asked {
        /// The question.
        question: Question,
    },
    /// A question is settled.
    Answered {
        /// Which question.
        question: QuestionId,
        /// The answer.
        reply: Reply,
        /// Who gave it.
        by: Answerer,
    },
    /// A message of haft to people.
    Notice {
        /// See [`Level`].
        level: Level,
        /// The text.
        text: String,
    },
    /// A job began.
    JobStarted {
        /// Its name.
        job: String,
        /// The call that began it.
        call: CallId,
        /// What it does.
        title: String,
    },
    /// A job ended.
    JobEnded {
        /// Its name.
        job: String,
        /// How.
        end: JobEnd,
        /// Exit code, where it had one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<i32>,
    },
    /// State of the conversation that must survive resume, fork and compaction: the last wins.
    State {
        /// Which.
        key: Text,
        /// Its value; null removes it.
        value: Value,
    },
    /// The pinned prefix changes here.
    Break {
        /// Why.
        cause: BreakCause,
        /// First byte that differs from the prefix before; none for the first one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_byte: Option<u64>,
    },
    /// Results left the model's view; they stay addressable.
    Masked {
        /// The calls.
        calls: Vec<CallId>,
    },
    /// The model dropped what it said and did, and the results, from one message to another. What
    /// others said stays in view.
    Snipped {
        /// The last event of the first message that was dropped.
        from: EventId,
        /// The last event of the last one.
        to: EventId,
        /// What stands for them.
        text: String,
    },
    /// Older messages were replaced by a summary.
    Compacted {
        /// What stands for them.
        summary: String,
        /// First event that is still in view.
        keep_from: EventId,
        /// How many tokens the next request had before, and has after it, as haft estimates them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sizes: Option<(u64, u64)>,
        /// Who wrote the summary; none where no model did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Summarizer>,
        /// Who was asked for it, too, and wrote none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        others: Vec<Summarizer>,
    },
    /// A model answered a question of a call, beside the conversation.
    SideAnswer {
        /// The call.
        call: CallId,
        /// The model, and what it took.
        by: Summarizer,
    },
    /// Changes were undone, or, with `redo`, made again.
    Undone {
        /// The calls.
        calls: Vec<CallId>,
        /// The files, with the hash of their content now.
        files: Vec<(HostPath, Option<Hash>)>,
        /// True when the changes were made again.
        #[serde(default)]
        redo: bool,
        /// Receipts of what was done to the files for it: enough to reverse it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        receipts: Vec<Receipt>,
    },
    /// The conversation goes on from an earlier event, its parent.
    Rewound {
        /// The event that was the last one until now: going back to it undoes this.
        from: EventId,
    },
}

impl Body {
    /// Reports whether the log stores it.
    pub const fn is_durable(&self) -> bool {
        !matches!(
            self,
            Self::CallPart { .. }
                | Self::CallOutput { .. }
                | Self::CallProgress { .. }
                | Self::Queue { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_flat_object() {
        let event = Event {
            v: VERSION,
            id: Some(EventId(3)),
            parent: Some(EventId(2)),
            turn: TurnId(1),
            agent: AgentPath::default().child("explore"),
            at: 7,
            body: Body::User { from: From::Person, parts: vec![Part::text("hi")] },
        };
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(
            json,
            r#"{"v":1,"id":3,"parent":2,"turn":1,"agent":["explore"],"at":7,"type":"user","from":{"who":"person"},"parts":[{"type":"text","text":"hi"}]}"#
        );
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
    }
}
