//! The agent: a pure state machine, the driver that acts for it, and the pinned system prompt.
//!
//! A front end sends a [`Command`] through a [`Control`] and reads the events of a [`Feed`].
//!
//! [`Machine`] decides, [`Agent`] carries out. The agent streams answers and runs calls through the
//! tool layer. It emits every event through the [`Bus`], whose durable part is the session's log.
//!
//! **Invariant:** every call gets exactly one result before the next request. A turn has no step
//! limit of its own. The prefix that was pinned at the first request stays the same bytes until a
//! break.

mod agent;
mod answer;
mod bus;
mod calls;
mod command;
mod compaction;
mod early_calls;
mod feed;
mod instructions;
mod machine;
mod preview;
mod prompt;
mod text_calls;

pub use self::{
    agent::{
        Agent, AgentConfig, AgentSender, Agents, AnswerSchema, BatchCall, CompactTrigger, Failure,
        Handle, HookMoment, Instead, Limits, OtherModels, Pinned, PromptSaid, Repin, SmallModel,
        TalkHooks, UnsentLines, WindowUse, gathered,
    },
    bus::{Bus, Clock},
    command::{
        COMMANDS, Command, CommandError, CommandSpec, Commands, Control, Done, JobAction,
        JobsRequest, PermissionsAction, PermissionsRequest, RewindRequest, Rewound, RunBy,
        UndoRequest, WhenBusy,
    },
    compaction::{ContextLimits, TooBig},
    feed::Feed,
    instructions::{
        Answer as ImportAnswer, Instruction, Instructions, Memory, Outside, Places, ReadFiles,
        Rule, UserFolder, Why, at_start, by_rule, chain, in_folders, let_in,
    },
    machine::{Action, Input, Machine, QueuedMessage},
    preview::{CompactionPreview, MessagePreview, preview_compaction},
    prompt::{
        ContextFile, Listed, Moves, Prompt, Section, Surroundings, assemble, late_tools,
        same_but_date, system,
    },
};
