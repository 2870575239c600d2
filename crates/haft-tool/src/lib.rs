//! The tool layer: what a tool is, and everything that happens around a call of one.
//!
//! [`Tool`] is what a tool's author writes. A [`Registry`] assembles tools into a pinned
//! [`ToolSet`]; a [`Dispatcher`] takes a model's call through the one [`Pipeline`] of [`Stage`]s.
//!
//! **Invariant:** nothing reaches a tool's `run` except through the pipeline; `execute` is private
//! to this crate. This crate knows no concrete tool, no model and no terminal.

mod asking;
mod cx;
mod dispatch;
mod events;
mod fit;
mod glance;
mod guarded;
mod hidden;
mod jobs;
mod journal;
mod keeper;
mod live;
mod network;
mod order;
mod pipeline;
mod pre_images;
mod questions;
mod registry;
mod repair;
mod schema;
mod stages;
mod state;
mod stopping;
mod survey;
mod tool;
mod transaction;
mod undo;
mod unwrapped;
mod validate;

pub use self::{
    cx::Cx,
    dispatch::{Dispatcher, Judgement},
    events::{Blobs, Discard, Events, MemoryBlobs, RecordError},
    fit::{Room, shorten_data},
    guarded::{COMMAND_VARIABLE, POWERSHELL, REPORTING_SCRIPT, command_text},
    hidden::hide_in,
    jobs::{Ended, Job, JobLimits, JobPlace, Jobs, Said, Seeking, Test, Work},
    journal::{Journal, Journaled},
    network::Stay,
    order::{Order, Turn},
    pipeline::{Call, Next, Pipeline, Stage},
    pre_images::{Held, Keeping, Left, MemoryPreImages, PreImages},
    questions::{Broker, Waiting},
    registry::{Filter, Registry, Source, ToolSet},
    repair::is_json,
    schema::schema_of,
    stages::{After, Before, Hook, Instead, Limits, Seen, Settings, most_characters, standard},
    state::{Conversation, Judge, SaveRule, Session, TypeMap},
    survey::{Killed, Other, OtherCall, Others, Watching},
    tool::{AnyTool, Prepared, Tool},
    transaction::{Becomes, Mended, Step, TransactionError, put_back},
    undo::{Apart, Conflict, Forbids, Stays, Taken, Undo, UndoError},
};
