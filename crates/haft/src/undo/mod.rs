//! Undoes changes of files, and redoes them, without git.
//!
//! **Invariant:** a change is undone in the session that made it, and that session's log stays
//! locked meanwhile. A file that somebody changed since is never replaced unless that was asked
//! for, and replaced content is retained. A file that a deny rule protects from edits is not
//! touched. The session's log reports the undo to the model.

pub(crate) mod report;
mod retained;
pub(crate) mod select;

use std::fmt::Write as _;

use haft_agent::UndoRequest;
use haft_session::{Changes, SessionId, Store, on_branch};
use haft_types::{Event, EventId};

use self::{
    report::{Refused, Work, by_force},
    select::{Group, UndoSelection, chosen, other_count},
};
use crate::{
    app::{problem::Problems, session::Core},
    cli::exit::{Ending, Failure},
};

pub use self::retained::kept;

pub(crate) fn group(
    wanted: &UndoSelection,
    events: &[Event],
    leaf: EventId,
) -> Result<Group, String> {
    chosen(wanted, &Changes::of(on_branch(events, leaf)))
}

/// The events of a session that can be read.
pub(crate) fn events(
    store: &Store,
    id: &SessionId,
    problems: &Problems,
) -> Result<Vec<Event>, Failure> {
    let mut events = Vec::new();
    for event in store.events(id)? {
        match event {
            Ok(event) => events.push(event),
            Err(error) => problems.warn(format!("{error}: going on without it")),
        }
    }
    Ok(events)
}

/// Undoes or redoes changes of the running session; returns the text to show. Only for when no turn
/// runs: its message to the model stands between two turns.
///
/// # Errors
/// What could not be done, as text to show.
pub async fn in_session(core: &Core, asked: &UndoRequest, redo: bool) -> Result<String, String> {
    let mut text = String::new();
    match in_session_telling(core, asked, redo, &mut text).await {
        Ok(()) => Ok(text),
        Err(failure) => {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "! {failure}");
            Err(text.trim_start_matches("! ").to_owned())
        }
    }
}

async fn in_session_telling(
    core: &Core,
    asked: &UndoRequest,
    redo: bool,
    text: &mut String,
) -> Ending {
    let wanted = UndoSelection::of(asked, redo)?;
    let command = if redo { "/redo" } else { "/undo" };
    let session = &core.dispatcher.session;
    session.finished().await;
    let store = core.base.store()?;
    let problems = Problems::default();
    let events = events(&store, &store.find(&session.id)?, &problems)?;
    for problem in problems.take() {
        let _ = writeln!(text, "! {problem}");
    }
    let group = group(&wanted, &events, core.bus.leaf()).map_err(Failure::Failed)?;
    let work = Work {
        base: &core.base,
        policy: session.permissions().policy.clone(),
        bus: core.bus.clone(),
        pre_images: session.pre_images(),
        queues: session.queues.clone(),
    };
    let changed = match work.carry_out(&group, wanted.redo, wanted.force).await {
        Err(Refused::Conflict(conflicts)) => {
            for told in work.conflicts(&group, &conflicts) {
                let _ = writeln!(text, "! {told}");
            }
            return Err(Failure::Failed(by_force(command, &group)));
        }
        done => done.map_err(Refused::failure)?,
    };
    session.changed(&changed.receipts);
    text.push_str(&work.describe(&group, wanted.redo, &changed));
    for lost in changed.notes.into_iter().chain(work.lost(&changed.receipts)) {
        let _ = writeln!(text, "! {lost}");
    }
    if let Some(failure) = changed.unrecorded {
        return Err(failure);
    }
    let command = if wanted.redo { "haft redo" } else { "haft undo" };
    if let Some(told) = other_count(&wanted, &group, command) {
        let _ = writeln!(text, "- {told}");
    }
    Ok(())
}
