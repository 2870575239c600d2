//! The agent: a pure loop, the driver that acts for it, and the prompt that both begin with.
//!
//! [`Machine`] decides, [`Agent`] carries out: it streams answers, runs calls through the tool
//! layer, and tells everything through the [`Bus`], whose durable part is the session's log.
//!
//! **Invariant:** every call gets exactly one result before the next request; a turn has no step
//! limit of its own; what was pinned at the first request stays the same bytes until a break.

mod agent;
mod answer;
mod bus;
mod calls;
mod context;
mod early_calls;
mod feed;
mod machine;
mod prompt;
mod text_calls;

pub use self::{
    agent::{Agent, AgentConfig, Handle, Limits, Pinned, PromptSaid, TalkHooks, unsent},
    bus::{Bus, Clock},
    context::{Context, context_files},
    feed::Feed,
    machine::{Action, Input, Machine, QueuedMessage, When},
    prompt::{ContextFile, Surroundings, same_but_date, system},
};
