//! The entries of a session as people read them: one fold over events for every front end.
//!
//! **Invariant:** a pure fold. It knows no terminal and no tool. An entry that is final or void never
//! changes again. An event costs the same however long the session is. What cannot be placed, such
//! as the end of a call that never began, becomes an entry of its own.

mod fold;
mod tail;

use std::sync::Arc;

use haft_types::{
    AgentPath, Answerer, BreakCause, CallId, Detail, Event, From, JobEnd, Level, Mode, Part,
    QuestionId, Reply, TurnEnd, TurnId, Usage,
};
use serde_json::Value;

pub use self::{fold::Transcript, tail::Tail};

/// An entry, from 1 in the order in which they began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u64);

/// Whether an entry can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryState {
    /// More may come.
    Live,
    /// It is whole.
    Final,
    /// It is of an answer that is asked for again, so it does not count.
    Void,
}

/// Something that a person reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Which.
    pub id: EntryId,
    /// Whose it is.
    pub agent: AgentPath,
    /// The turn in which it began.
    pub turn: TurnId,
    /// When it began, in milliseconds since the Unix epoch.
    pub at: u64,
    /// Whether it can change.
    pub state: EntryState,
    /// What it shows.
    pub content: Content,
}

/// What an entry shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Something that was said to the model.
    Message {
        /// Who said it.
        from: From,
        /// What was said.
        parts: Vec<Part>,
    },
    /// Messages that will not be sent.
    Unsent(Vec<Part>),
    /// Text of an answer; at most 8 MiB of it.
    Text(String),
    /// Thinking of the model; at most 8 MiB of it.
    Thinking(String),
    /// A call.
    Call(Box<CallEntry>),
    /// A question, and how it was answered.
    Question {
        /// The event that asked it.
        question: Arc<Event>,
        /// The answer, and who gave it.
        answer: Option<(Reply, Answerer)>,
    },
    /// A message of haft.
    Notice(Level, String),
    /// Something that goes on beside the calls.
    Job {
        /// Its name.
        job: String,
        /// What it does; empty where its begin was not seen.
        title: String,
        /// How it ended, with its exit code.
        end: Option<(JobEnd, Option<i32>)>,
    },
    /// How much is asked from here on.
    Mode {
        /// The mode.
        mode: Mode,
        /// Whether changes of files need no question for the rest of the session.
        edits: bool,
        /// The front end that set it.
        by: String,
    },
    /// What requests begin with changed.
    Break {
        /// Why.
        cause: BreakCause,
        /// First byte that differs.
        at_byte: Option<u64>,
    },
    /// Changes were undone or made again.
    Undone(Arc<Event>),
    /// An answer failed.
    Failed {
        /// What went wrong.
        error: String,
        /// Whether it is asked for again.
        retried: bool,
    },
    /// A turn is over.
    TurnEnded(TurnEnd, Usage),
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallPhase {
    /// The model writes its arguments.
    Arguments,
    /// It waits for its start.
    Waiting,
    /// Somebody is asked about it.
    Asking,
    /// It runs.
    Running,
    /// It has its result.
    Ended,
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallEntry {
    /// Which; none while the model writes its arguments.
    pub call: Option<CallId>,
    /// The call that made it; none where the model did.
    pub parent: Option<CallId>,
    /// The tool's name; empty where the begin was not seen.
    pub tool: String,
    /// How far it is.
    pub phase: CallPhase,
    /// The arguments as they stream, as JSON text; at most 8 MiB.
    pub arguments: String,
    /// The arguments, once they are whole.
    pub input: Option<Value>,
    /// What it does, in a line of its plan.
    pub title: Option<String>,
    /// The newest output of a running program.
    pub output: Tail,
    /// The present state of the running call.
    pub progress: Option<Detail>,
    /// The event of its end, with its outcome.
    pub ended: Option<Arc<Event>>,
}

/// The entries that an event changed, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Entries that are new.
    pub added: Vec<EntryId>,
    /// Entries that were there.
    pub updated: Vec<EntryId>,
}

/// What an agent does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AgentStatus {
    /// No turn runs.
    #[default]
    Idle,
    /// Its model is asked.
    Asking,
    /// Calls run.
    Running {
        /// How many.
        calls: usize,
    },
    /// A person is asked.
    Waiting {
        /// The oldest open question.
        question: QuestionId,
    },
}
