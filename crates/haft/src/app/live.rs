//! A session with its main agent at work, as front ends that talk to an agent open it.
//!
//! **Invariant:** a front end sends commands and reads events. It holds no tool, no question and no
//! agent of the session.

use std::{sync::Arc, time::Duration};

use haft_agent::{Control, Feed, Handle};
use haft_types::AgentPath;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{
    agent::{self, main_agent},
    commands::Handler,
    problem::Problem,
    session::{Core, Extensions},
};
use crate::cli::{Start, exit::Failure};

/// Longest that is waited for what ends with the session.
const END_WITHIN: Duration = Duration::from_secs(10);

/// See the module.
pub struct LiveSession {
    /// The session.
    pub core: Arc<Core>,
    /// Sends commands, as the front end that opened it.
    pub control: Control,
    /// All events from before the first one of the agent.
    pub feed: Feed,
    handle: Handle,
    closing: CancellationToken,
    working: JoinHandle<()>,
}

impl LiveSession {
    /// Starts the main agent of a session. Returns it with the problems that do not prevent that.
    ///
    /// # Errors
    /// When there is no such model, its key is missing, or the session cannot be persisted.
    pub async fn start(
        core: Arc<Core>,
        start: &Start,
        name: &str,
        extensions: &Extensions,
    ) -> Result<(Self, Vec<Problem>), Failure> {
        let feed = core.bus.subscribe();
        let (handle, problems) = main_agent(&core, start).start().await?;
        let closing = CancellationToken::new();
        let (handler, working) = Handler::new(&core, start, handle.sender(), &closing);
        let control = Control::start(core.bus.clone(), name, handler, closing.clone());
        for (name, start) in &extensions.front_ends {
            start(control.named(name));
        }
        Ok((Self { core, control, feed, handle, closing, working }, problems))
    }

    /// Begins the conversation: what the agent is told before the first message.
    pub async fn begin(&self, start: &Start) {
        agent::begin_talk(&self.core, start, &self.handle).await;
    }

    /// Stops all agents, and what front ends sent that is not done; no command is taken any more.
    /// Gives back the session, which is still open.
    pub async fn stop(self) -> (Arc<Core>, Feed) {
        let Self { core, control, feed, handle, closing, working } = self;
        closing.cancel();
        drop(control);
        // What runs there is cancelled, and its end is in the log before that is closed.
        drop(tokio::time::timeout(END_WITHIN, working).await);
        handle.close().await;
        core.agents.close_below(&AgentPath::default(), END_WITHIN).await;
        (core, feed)
    }
}
