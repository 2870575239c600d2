//! The agent: a pure state machine, the driver that acts for it, and the pinned system prompt.
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
mod context;
mod early_calls;
mod feed;
mod machine;
mod prompt;
mod text_calls;

pub use self::{
    agent::{Agent, AgentConfig, Handle, Limits, Pinned, PromptSaid, Repin, TalkHooks, unsent},
    bus::{Bus, Clock},
    context::{Context, context_files},
    feed::Feed,
    machine::{Action, Input, Machine, QueuedMessage, When},
    prompt::{
        ContextFile, Listed, Moves, Prompt, Section, Surroundings, assemble, same_but_date, system,
    },
};
