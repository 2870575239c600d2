//! The vocabulary of haft: plain data that every crate shares.
//!
//! A model's words become effects: a call is parsed ([`ToolUse`]), planned as data ([`Plan`]),
//! judged, run on a host and told ([`Outcome`]) through one stream of [`Event`]s. Every type of
//! that chain lives here.
//!
//! **Invariant:** no IO, no clock, no runtime, no environment. Whatever is here can be built,
//! compared and serialised anywhere, and its JSON is public: version 1 of the log opens for ever.

mod choices;
mod constraint;
mod detail;
mod effect;
mod event;
mod evicted;
mod hash;
mod message;
mod misfit;
mod outcome;
mod path;
mod price;
mod question;
mod rebuilt;
mod rights;
mod schema;
mod spec;

use std::borrow::Cow;

pub use crate::{
    choices::{Effort, Mode, UnknownEffort, UnknownMode},
    constraint::Constraint,
    detail::{
        Cell, Cut, CutBy, CutEnd, Detail, DiffLine, Entry, EntryKind, FileMatches, Hunk,
        LineCounts, LineMark, MatchLine, Node, Shape, TodoItem, TodoState,
    },
    effect::{Access, Effect, Follow, Place, Plan, Target},
    event::{
        AgentPath, Body, BreakCause, Event, EventId, JobEnd, Level, Queued, Stream, Summarizer,
        TurnEnd, TurnId, VERSION, When,
    },
    evicted::{EVICTED_FILE, Evicted},
    hash::{Hash, HashParseError},
    message::{
        Blob, CacheReport, CacheUse, CallId, CallResult, From, Message, Part, Stop, ToolUse, Usage,
    },
    misfit::Misfit,
    outcome::{Denial, Outcome, Receipt, ReceiptAction, Status, ToolError},
    path::{HostPath, PathError, Style},
    price::{Price, Prices, Tier},
    question::{Answerer, Choice, Question, QuestionId, QuestionKind, Reply},
    rebuilt::{REBUILT, is_rebuilt},
    rights::Rights,
    schema::Schema,
    spec::{Budget, Env, Guideline, HostedSearch, Kind, Loading, OnInterrupt, Origin, ToolSpec},
};

/// Text that is usually a literal.
pub type Text = Cow<'static, str>;
