//! Finds what commands changed that were running when an earlier run of a session was killed.
//!
//! **Invariant:** the log records these changes before anything else happens, as a part of how the
//! call ended. The data that is needed to find them is removed only after that.

use std::{borrow::Borrow, path::PathBuf, sync::OnceLock};

use haft_agent::Bus;
use haft_session::{Events, SessionId, Store};
use haft_tool::{CrashedRun, Events as _, RecordError};
use haft_types::{AgentPath, Body, CallId, Event, Outcome, Receipt, Status};

use crate::{
    app::{
        base::Base,
        problem::Problems,
        session::{self, Core, Extensions, NO_TURN, SessionBuilder, SessionChoice},
    },
    cli::{Common, exit::Failure},
};

/// Finds what killed commands changed, reports it, and adds it to how the open calls of the log
/// end. The returned value has to live until those ends are in the log.
pub async fn add(
    core: &Core,
    store: &Store,
    open: &mut Vec<(CallId, Outcome)>,
) -> Result<Vec<CrashedRun>, RecordError> {
    let id = SessionId::parse(core.session_id()).ok();
    let all = OnceLock::new();
    let ended = |call: &CallId| {
        let read = || id.as_ref().and_then(|id| store.ended_calls(id).ok()).unwrap_or_default();
        all.get_or_init(read).contains(call)
    };
    let told = |call: &CallId| {
        id.as_ref().and_then(|id| store.events(id).ok()).map(|all| told_since(all, call))
    };
    let told = |call: &CallId| told(call).unwrap_or_default();
    let watching = session::watching(&core.base).unwrap_or_default();
    let killed = core.dispatcher.killed(watching, &ended, &told).await.unwrap_or_else(|error| {
        let text = format!("what commands of a killed run changed cannot be found: {error}");
        core.base.problems.warn(text);
        Vec::new()
    });
    for CrashedRun { call, others, receipts, lines, .. } in &killed {
        for one in others.iter().chain([call]) {
            if !ended(one) && open.iter().all(|(id, _)| id != one) {
                let text = "haft was killed while it ran";
                open.push((one.clone(), Outcome::ended(Status::Failed, text)));
            }
        }
        if let Some((_, outcome)) = open.iter_mut().find(|(id, _)| id == call) {
            for line in lines {
                outcome.note(line);
            }
            outcome.receipts.extend(receipts.iter().cloned());
        } else if !receipts.is_empty() {
            let body = Body::Found { call: call.clone(), receipts: receipts.clone() };
            core.bus.emit(&AgentPath::default(), NO_TURN, body)?;
        }
        for line in lines {
            core.base.problems.warn(format!("{call} ran when haft was killed: {line}"));
        }
    }
    rescue(core, killed.first().map(|killed| &killed.call), open).await?;
    Ok(killed)
}

/// Looks after the repositories that a command damaged, this call where it is known which.
async fn rescue(
    core: &Core,
    call: Option<&CallId>,
    open: &mut [(CallId, Outcome)],
) -> Result<(), RecordError> {
    let (receipts, lines) = core.dispatcher.rescued(call.is_some()).await;
    let ended = open.iter_mut().find(|(id, _)| Some(id) == call);
    match (ended, call) {
        (Some((_, outcome)), _) => {
            for line in &lines {
                outcome.note(line);
            }
            outcome.receipts.extend(receipts);
        }
        (None, Some(call)) if !receipts.is_empty() => {
            let body = Body::Found { call: call.clone(), receipts };
            core.bus.emit(&AgentPath::default(), NO_TURN, body)?;
        }
        _ => {}
    }
    for line in &lines {
        core.base.problems.warn(format!("when haft was killed, a command ran: {line}"));
    }
    Ok(())
}

/// Drops what was needed to find it, once the log is durable.
pub async fn kept(killed: Vec<CrashedRun>, bus: &Bus) -> Result<(), RecordError> {
    if !killed.is_empty() {
        bus.sync().await?;
    }
    Ok(())
}

/// What the log tells of changes since a call began.
fn told_since(events: Events, call: &CallId) -> Vec<Receipt> {
    let begins = |body: &Body| matches!(body, Body::CallStarted { call: one, .. } if one == call);
    let events = events.only(&["call_started", "call_ended", "found", "undone"]).flatten();
    let since = events.skip_while(|event| !begins(&event.body));
    let receipts = since.map(|event| match event.body {
        Body::CallEnded { outcome, .. } => outcome.receipts,
        Body::Found { receipts, .. } | Body::Undone { receipts, .. } => receipts,
        _ => Vec::new(),
    });
    receipts.flatten().collect()
}

/// Records in a session's log what a killed run of it left, if there is something and no other haft
/// holds the log.
pub async fn record_crashed(
    store: &Store,
    id: &SessionId,
    problems: &Problems,
) -> Result<(), Failure> {
    if !store.pre_images(id, 0).has_copies() || store.resume(id).is_err() {
        return Ok(());
    }
    // What cannot be read is told by whoever opens it.
    let root = root_of(store.events(id)?.only(&["session"]).flatten().take(1));
    let base = Base::load(&Common::default(), root.as_deref(), problems)?;
    let builder = SessionBuilder {
        env: base.env(None, false)?,
        base,
        common: &Common::default(),
        which: SessionChoice::Named(id.to_string()),
        extensions: &Extensions::default(),
    };
    let (core, found) = builder.open().await?;
    problems.extend(found);
    core.close().await;
    Ok(())
}

/// The workspace of a session, if it still exists.
pub fn root_of(events: impl IntoIterator<Item = impl Borrow<Event>>) -> Option<PathBuf> {
    let root = events.into_iter().find_map(|event| match &event.borrow().body {
        Body::Session { cwd, .. } => cwd.as_str().map(PathBuf::from),
        _ => None,
    });
    root.filter(|root| root.is_dir())
}
