//! Runs a command for haft itself, before a conversation begins, and returns its output.
//!
//! **Invariant:** it runs only where the same command of a model would be allowed because it only
//! reads, and where the system enforces that. Without such enforcement it does not run. It leaves
//! no event, and dies with the future.

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use haft_host::{Output, Program, ReadOnlyRun, Spawn};
use haft_policy::Verdict;
use haft_types::{CallId, Stream, ToolUse, TurnId};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    Call, Cx, Dispatcher,
    stages::{resolve, rules, sandbox},
};

/// How long looking up its paths may take.
const LOOK_UP: Duration = Duration::from_secs(1);

impl Dispatcher {
    /// The standard output of a command of plain words; `most` is the maximum size in bytes. None
    /// where the command is not known to only read, is not confined to that, prints more, or fails.
    ///
    /// # Cancel safety
    /// A dropped future leaves no process.
    pub async fn glance(self: &Arc<Self>, words: &[&str], most: usize) -> Option<Vec<u8>> {
        let cx = Cx::new(
            self.clone(),
            CallId("glance".into()),
            TurnId::default(),
            CancellationToken::new(),
        );
        let input = json!({ "command": words.join(" ") });
        let mut call = Call::new(ToolUse::new(cx.call.clone(), "bash", input), cx);
        resolve::locate(&mut call, LOOK_UP).await.ok()?;
        let ruling = rules::decide(&call).ok()?;
        if ruling.verdict != Verdict::Allow || !ruling.looks || ruling.hides {
            return None;
        }
        call.ruling = Some(ruling);
        let confine = sandbox::limits(&call).await?;
        let argv = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let workspace = call.place().roots.clone();
        let spawn = Spawn {
            looks: Some(ReadOnlyRun { workspace, git_as_set: false }),
            confine: Some(confine),
            ..Spawn::new(Program::Argv(argv), call.place().cwd.clone())
        };
        let mut running = self.host.shell()?.spawn(spawn).await.ok()?;
        let mut said = Vec::new();
        while let Some(output) = running.output.next().await {
            match output.ok()? {
                Output::Bytes(Stream::Stdout, bytes) => said.extend_from_slice(&bytes),
                Output::Exit(exit) => return (exit.code == Some(0)).then_some(said),
                Output::Bytes(..) | Output::Report(_) => {}
            }
            if said.len() > most {
                return None;
            }
        }
        None
    }
}
