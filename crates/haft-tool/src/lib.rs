//! The tool layer: what a tool is, and everything that happens around a call of one.
//!
//! [`Tool`] is what a tool's author writes. A [`Registry`] assembles tools into a pinned
//! [`ToolSet`]; a [`Dispatcher`] takes a model's call through the one [`Pipeline`] of [`Stage`]s.
//!
//! **Invariant:** nothing reaches a tool's `run` except through the pipeline; `execute` is private
//! to this crate. This crate knows no concrete tool, no model and no terminal.

mod call;
mod changes;
mod jobs;
mod session;
mod stages;
mod tool;
pub mod validate;

pub use crate::{
    call::{
        Call, Next, Pipeline, Stage,
        ask::{AskedForm, nobody_is_here},
        cx::Cx,
        dispatch::{Dispatcher, Judgement, OfTurn},
        guarded_host::{COMMAND_VARIABLE, POWERSHELL, REPORTING_SCRIPT, command_text},
        net::Net,
        scheduler::{Scheduler, Ticket},
    },
    changes::{
        diff::{CrashedRun, DiffLimits, Peer, PeerCall, Peers},
        journal::{Journal, Journaled},
        pre_images::{CrashLeftovers, MemoryPreImages, PendingPreImage, PinGuard, PreImages},
        transaction::{NewState, PlannedChange, Rollback, TransactionError, roll_back},
        undo::{Conflict, DenyFilter, KeptFolder, SplitHardLink, Undo, UndoError, UndoReport},
    },
    jobs::{Ended, Job, JobLimits, JobPlace, Jobs, OutputPart, Seeking, Test, Work},
    session::{
        arrivals::Arrivals,
        events::{Blobs, Discard, Events, MemoryBlobs, RecordError},
        final_answer::FinalAnswer,
        history::{History, SnipReport, WithHistory},
        network::Stay,
        questions::{Broker, Waiting},
        redact::hide_in,
        repeats::Repeats,
        services::{Closer, Phase, Services},
        setting_access::{SettingAccess, SettingChange, SettingValue},
        side_model::{SideModel, SideQuestion, SideReply},
        state::{
            Conversation, Permissions, SHARED, SaveRule, Session, StandingNotes, StateNote,
            TurnRules, TypeMap, Values, call_number,
        },
        truncate::{Room, shorten_data},
        work_hooks::{
            Expansion, ExpansionKind, ExpansionSaid, InvokedBy, SkillCommand, TaskFacts, WorkHooks,
        },
    },
    stages::{
        Hook, HookCall, Limits, PermissionAnswer, PostCall, PreCall, Settings, Touched,
        TouchedPaths, most_characters, standard,
    },
    tool::{
        AnyTool, Prepared, Tool,
        registry::{AbsentTool, Filter, Registry, Source, ToolSet},
        repair::is_json,
        schema::schema_of,
    },
};
/// What tools ask the network with: see [`Cx::net`].
pub use haft_net::{
    AddressError, BodyEnd, Exceptions, Gate, Host, Web, WebError, WebMethod, WebRequest,
    WebResponse, WebUrl, special,
};
