//! Takes a conversation back to before an earlier message of the person, with or without the files.
//!
//! **Invariant:** nothing is lost: the log keeps the branch that was left, and one command goes back
//! to it. Files go back by undo alone, so what undo refuses stops all of it. What cannot be taken
//! back is named.

use std::{collections::BTreeSet, fmt::Write as _};

use haft_agent::{CommandError, Done, RewindRequest, Rewound, UndoRequest};
use haft_session::{Change, Changes, Fold, on_branch};
use haft_types::{AgentPath, Body, BreakCause, CallId, Event, EventId, From, Kind, Part};

use super::{
    agent, constraints,
    problem::Problems,
    session::{Core, NO_TURN},
};
use crate::{plain, undo};

/// Messages that are listed.
const LISTED: usize = 20;
/// Commands that are named.
const NAMED: usize = 5;
/// Characters of a message or command that are shown.
const SHOWN: usize = 70;

/// A message of the person with which a turn began. One that steered a turn is none: files and words
/// of one turn go back together.
struct Point<'a> {
    /// The event before it: the conversation goes on there.
    before: EventId,
    parts: &'a [Part],
}

/// Carries a rewind out, or lists how far one can go.
///
/// # Errors
/// What cannot be done, in words for people.
pub async fn carry_out(core: &Core, request: RewindRequest) -> Result<Done, CommandError> {
    let done = match request {
        RewindRequest { back: true, .. } => back(core),
        RewindRequest { to: None, .. } => list(core).map(|text| Done::Text { text }),
        RewindRequest { to: Some(to), what, .. } => rewind(core, to, what).await,
    };
    done.map_err(|why| CommandError::Refused { why })
}

fn events(core: &Core) -> Result<Vec<Event>, String> {
    let store = core.base.store().map_err(|error| error.to_string())?;
    let id = store.find(&core.dispatcher.session.id).map_err(|error| error.to_string())?;
    undo::events(&store, &id, &Problems::default()).map_err(|error| error.to_string())
}

/// Reports whether the messages that stand now say that mode plan is on.
///
/// # Errors
/// The log cannot be read; in words for people.
pub fn tells_plan(core: &Core) -> Result<bool, String> {
    let (events, mut fold) = (events(core)?, Fold::new(AgentPath::default()));
    on_branch(&events, core.bus.leaf()).for_each(|event| fold.push(event));
    Ok(agent::tells_plan(fold.final_messages()))
}

/// Goes on from an event, with what held there.
fn go_to(core: &Core, event: EventId, events: &[Event]) -> Result<(), String> {
    core.bus.rewind(event, events).map_err(|error| error.to_string())?;
    core.restore(events, event);
    constraints::follow(core, events, event)
}

/// The messages of the person, the last one first.
fn points(events: &[Event], leaf: EventId) -> Vec<Point<'_>> {
    let mut points: Vec<Point<'_>> = on_branch(events, leaf)
        .filter_map(|event| match &event.body {
            Body::User { from: From::Person, parts } if event.agent.is_main() => {
                Some(Point { before: event.parent.unwrap_or_default(), parts })
            }
            _ => None,
        })
        .collect();
    points.reverse();
    points
}

fn list(core: &Core) -> Result<String, String> {
    let events = events(core)?;
    let points = points(&events, core.bus.leaf());
    if points.is_empty() {
        return Err("nothing was said yet".to_owned());
    }
    let mut text = String::new();
    for (number, point) in (1..).zip(&points).take(LISTED) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{number:>3}  {}", short(&words(point.parts)));
    }
    text.push_str("/rewind N goes back to before that one; talk or files may follow\n");
    Ok(text)
}

/// Goes back to before the last compaction of this branch.
///
/// # Errors
/// There was none, or what stood before it does not fit; in words for people.
pub fn before_compaction(core: &Core, window: Option<u64>) -> Result<Done, CommandError> {
    uncompacted(core, window).map_err(|why| CommandError::Refused { why })
}

fn uncompacted(core: &Core, window: Option<u64>) -> Result<Done, String> {
    let events = events(core)?;
    let branch: Vec<&Event> =
        on_branch(&events, core.bus.leaf()).filter(|event| event.agent.is_main()).collect();
    let is_it = |event: &&Event| matches!(event.body, Body::Compacted { .. });
    let at =
        branch.iter().rposition(is_it).ok_or("there was no compaction in this conversation")?;
    if let Body::Compacted { sizes: Some((before, _)), .. } = &branch[at].body
        && let Some(window) = window.filter(|window| before > window)
    {
        return Err(format!(
            "what stood before has {before} tokens, and the model's window {window}: it cannot be \
             sent again. haft session show {} prints it",
            core.session_id()
        ));
    }
    // The break that comes with it goes, too.
    let is_break = matches!(
        at.checked_sub(1).map(|before| &branch[before].body),
        Some(Body::Break { cause: BreakCause::Compaction, .. })
    );
    let first = branch[at - usize::from(is_break)];
    let since = branch[at..].iter().filter_map(|event| match &event.body {
        Body::User { from: From::Person, parts } => Some(short(&words(parts))),
        _ => None,
    });
    let since: Vec<String> = since.collect();
    go_to(core, first.parent.unwrap_or_default(), &events)?;
    let mut text = String::from("- the conversation goes on as it was before it was summed up");
    if !since.is_empty() {
        let _ = write!(text, "; what was said since stays in the log: {}", since.join("; "));
    }
    text.push_str("; /rewind back undoes that\n");
    Ok(Done::Text { text })
}

/// Undoes the last rewind of this branch.
fn back(core: &Core) -> Result<Done, String> {
    let events = events(core)?;
    let last = on_branch(&events, core.bus.leaf())
        .filter_map(|event| match event.body {
            Body::Rewound { from } => Some(from),
            _ => None,
        })
        .last();
    let from = last.ok_or("there was no rewind in this conversation")?;
    go_to(core, from, &events)?;
    let text = "- the conversation goes on where it was before the rewind; /redo makes changes of \
                files again\n";
    Ok(Done::Text { text: text.to_owned() })
}

async fn rewind(core: &Core, number: u64, what: Rewound) -> Result<Done, String> {
    let before = events(core)?;
    let leaf = core.bus.leaf();
    let points = points(&before, leaf);
    let there = points.len();
    let index = usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1);
    let point = points
        .get(index)
        .ok_or_else(|| format!("there is no message {number}: there are {there}, 1 is the last"))?;
    let mut text = String::new();
    if what != Rewound::Talk {
        text.push_str(&files_back(core, &before, point.before).await?);
    }
    let commands = ran(core, &before, point.before, leaf);
    if !commands.is_empty() {
        let _ = writeln!(text, "! what these commands did elsewhere stays: {commands}");
    }
    if what == Rewound::Files {
        return Ok(Done::Text { text });
    }
    go_to(core, point.before, &events(core)?)?;
    let files = if what == Rewound::Talk { "; files stay as they are" } else { "" };
    let said = short(&words(point.parts));
    let _ = writeln!(text, "- back to before: {said}{files}; /rewind back undoes that");
    Ok(Done::Text { text })
}

/// Takes back what changed behind an event.
async fn files_back(core: &Core, events: &[Event], before: EventId) -> Result<String, String> {
    let changes = Changes::of(on_branch(events, core.bus.leaf()));
    let ended: BTreeSet<&CallId> = on_branch(events, core.bus.leaf())
        .filter(|event| event.id.is_some_and(|id| id > before))
        .filter_map(|event| match &event.body {
            Body::CallEnded { call, .. } => Some(call),
            _ => None,
        })
        .collect();
    // As undo counts turns: a call in none counts by itself, and what jobs did is left alone.
    let since = changes.standing().filter(|change| ended.contains(&change.call));
    let unit =
        |change: &Change| (change.turn, (change.turn == NO_TURN).then(|| change.call.clone()));
    let units: BTreeSet<_> = since.filter(|change| !change.is_of_job()).map(unit).collect();
    if units.is_empty() {
        return Ok("- no file was changed since\n".to_owned());
    }
    let which = Some(units.len().to_string());
    undo::in_session(core, &UndoRequest { which, turn: true, force: false }, false).await
}

/// The commands that ran behind an event, the first of them by their titles.
fn ran(core: &Core, events: &[Event], before: EventId, leaf: EventId) -> String {
    let mut calls: Vec<&CallId> = Vec::new();
    let mut titles = Vec::new();
    for event in on_branch(events, leaf).filter(|event| event.id.is_some_and(|id| id > before)) {
        let Body::CallStarted { call, tool, plan, .. } = &event.body else { continue };
        let runs = |spec: &&std::sync::Arc<haft_types::ToolSpec>| {
            *spec.name == **tool && spec.kind == Kind::Execute
        };
        let looks = plan.as_ref().is_some_and(|plan| {
            plan.effects.iter().all(|effect| effect.access == haft_types::Access::Observe)
        });
        if core.specs().iter().any(|spec| runs(&spec)) && !looks && !calls.contains(&call) {
            calls.push(call);
            titles.push(plan.as_ref().map_or(&**tool, |plan| &*plan.title));
        }
    }
    let mut named: Vec<String> = titles.iter().take(NAMED).map(|title| short(title)).collect();
    if titles.len() > NAMED {
        named.push(format!("and {} more", titles.len() - NAMED));
    }
    named.join(", ")
}

fn words(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text { text } => Some(text.clone()),
        _ => None,
    };
    parts.iter().find_map(text).unwrap_or_default()
}

/// A text in one short line.
fn short(text: &str) -> String {
    let text = plain::safe(text);
    let start: String = text.chars().take(SHOWN).collect();
    if start.len() < text.len() { format!("{start}\u{2026}") } else { start }
}
