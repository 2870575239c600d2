//! `haft undo` and `haft redo`: undo changes of files from a shell, and redo them.
//!
//! **Invariant:** changes are undone only in the session that made them, whose log stays locked
//! meanwhile.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    sync::Arc,
};

use haft_config::Environment;
use haft_session::{Changes, SessionError, SessionId, Store, on_branch};
use haft_tool::Conflict;
use haft_types::{Receipt, ReceiptAction};
use serde_json::{Value, json};

use super::view;
use crate::{
    app::{
        base::{self, Base},
        problem::{Problem, Problems},
        recovery::commands,
    },
    cli::{
        Common, Elsewhere, Redo, Undo,
        exit::{Ending, Failure, print, println_json, say},
    },
    undo::{
        events, group, kept,
        report::{Changed, Refused, Work, as_wanted, by_force, did, is_kept},
        select::{Group, UndoScope, UndoSelection, other_count},
    },
};

/// Undoes changes.
pub async fn undo(arguments: &Undo) -> Ending {
    run(&UndoSelection::of(&arguments.back.clone().into(), false)?, &arguments.from).await
}

/// Redoes changes.
pub async fn redo(arguments: &Redo) -> Ending {
    run(&UndoSelection::of(&arguments.back.clone().into(), true)?, &arguments.from).await
}

async fn run(wanted: &UndoSelection, from: &Elsewhere) -> Ending {
    let problems = Problems::default();
    let done = take_back(wanted, from, &problems).await;
    super::built(&problems, done)
}

async fn take_back(wanted: &UndoSelection, from: &Elsewhere, problems: &Problems) -> Ending {
    let environment = Environment::capture();
    let store = Store::open(base::home(&environment)?);
    let id = session(&store, wanted, from.session.as_deref(), problems).await?;
    commands::record_crashed(&store, &id, problems).await?;
    // Held from here on: nobody else changes what is decided on.
    let log = store.resume(&id).map_err(in_use)?;
    let events = events(&store, &id, problems)?;
    let group = group(wanted, &events, log.leaf())
        .map_err(|text| Failure::Failed(format!("session {id}: {text}")))?;
    let root = commands::root_of(&events);
    let base = Base::load_in(environment, &Common::default(), root.as_deref(), problems)?;
    base::recover(&base, late)?;
    problems.hide(&base::secrets_of(log.dir(), base::secret_names(&base.loaded)));
    super::built(problems, Ok(()))?;
    let work = Work {
        base: &base,
        policy: base.policy.clone(),
        bus: haft_agent::Bus::new(log, base::now),
        pre_images: kept(&store, &id, &base.loaded.settings.undo),
        queues: Arc::default(),
    };
    let face = Shell { work, session: id.to_string(), redo: wanted.redo, json: from.json };
    face.carry_out(&group, wanted.force).await?;
    let command = if wanted.redo { "haft redo" } else { "haft undo" };
    if let Some(text) = other_count(wanted, &group, command) {
        say(&format!("haft: {text}"));
    }
    Ok(())
}

/// Says of a session that another haft holds what takes its changes back: no new session does.
fn in_use(error: SessionError) -> Failure {
    let SessionError::InUse { session, by } = error else { return error.into() };
    let by = by.map(|by| format!(", {}", view::safe(&by))).unwrap_or_default();
    Failure::Failed(format!(
        "session {session} is in use by another haft{by}, and only that one can change its files \
         meanwhile: end it (a haft mcp ends with its client) and call this again, or type /undo or \
         /redo there where it is in line mode"
    ))
}

/// The session that is meant: the last one of this folder that has what is wanted.
async fn session(
    store: &Store,
    wanted: &UndoSelection,
    prefix: Option<&str>,
    problems: &Problems,
) -> Result<SessionId, Failure> {
    if let Some(prefix) = prefix {
        return base::find(store, prefix);
    }
    let here = std::env::current_dir()?.canonicalize()?;
    let here = haft_host::Local::path(&here)?;
    let (mut known, mut any, mut above) = (None, None, None);
    for info in store.list()?.sessions {
        let Some(cwd) = info.cwd.filter(|cwd| here.is_within(cwd)) else { continue };
        if cwd != here && above.is_some() {
            continue;
        }
        commands::record_crashed(store, &info.id, problems).await?;
        let events = events(store, &info.id, problems)?;
        let leaf = events.iter().filter_map(|event| event.id).max().unwrap_or_default();
        let changes = Changes::of(on_branch(&events, leaf));
        match (fits(wanted, &changes), cwd == here) {
            (true, true) => return Ok(info.id),
            (true, false) => above = Some((info.id, cwd)),
            (false, true) => {
                if has_call(wanted, &changes) {
                    known.get_or_insert(info.id);
                } else if !changes.all.is_empty() {
                    any.get_or_insert(info.id);
                }
            }
            (false, false) => {}
        }
    }
    // Why that one has nothing of it is told by what it has.
    if let (UndoScope::Call(_), Some(other)) = (&wanted.which, known.or(any)) {
        return Ok(other);
    }
    let what =
        if wanted.redo { "was taken back" } else { "of haft's changes is there to take back" };
    let hint = match above {
        Some((id, cwd)) => {
            format!("but the session {id} of {cwd} has some: name it with --session")
        }
        None => "name a session of another folder with --session".to_owned(),
    };
    let (here, hint) = (view::safe(&here.text()), view::safe(&hint));
    Err(Failure::Failed(format!("nothing {what} in {here}: {hint}")))
}

/// Reports whether a session has what is wanted.
fn fits(wanted: &UndoSelection, changes: &Changes) -> bool {
    match (&wanted.which, wanted.redo) {
        (UndoScope::Call(call), redo) => {
            changes.all.iter().any(|change| change.call == *call && change.undone == redo)
        }
        (UndoScope::Newest | UndoScope::Last(_), true) => !changes.taken_back.is_empty(),
        (UndoScope::Newest | UndoScope::Last(_), false) => changes.standing().next().is_some(),
    }
}

/// Reports whether a session has the call that is named.
fn has_call(wanted: &UndoSelection, changes: &Changes) -> bool {
    let UndoScope::Call(call) = &wanted.which else { return false };
    changes.all.iter().any(|change| change.call == *call)
}

/// A command of the shell.
struct Shell<'a> {
    work: Work<'a>,
    session: String,
    redo: bool,
    json: bool,
}

impl Shell<'_> {
    async fn carry_out(&self, group: &Group, force: bool) -> Ending {
        let changed = match self.work.carry_out(group, self.redo, force).await {
            Err(Refused::Conflict(conflicts)) => {
                self.tell_conflicts(group, &conflicts)?;
                self.work.carry_out(group, self.redo, true).await
            }
            done => done,
        };
        let changed = changed.map_err(Refused::failure)?;
        self.tell(group, &changed)?;
        match changed.unrecorded {
            Some(failure) => Err(failure),
            None if changed.left.is_empty() => Ok(()),
            None => Err(Failure::Said(1)),
        }
    }

    fn tell(&self, group: &Group, changed: &Changed) -> Ending {
        let Changed { receipts, notes, .. } = changed;
        if self.json {
            let file = |receipt: &Receipt| {
                let mut told = json!({
                    "path": receipt.path, "did": did(receipt), "hash": receipt.after,
                    "kept": is_kept(receipt),
                });
                if let ReceiptAction::Renamed { from } = &receipt.action {
                    told["from"] = json!(from);
                }
                told
            };
            return println_json(
                &json!({
                    "session": self.session, "redo": self.redo, "calls": group.calls,
                    "files": receipts.iter().map(file).collect::<Vec<_>>(),
                    "unchanged": as_wanted(group, changed), "left": changed.left, "notes": notes,
                })
                .to_string(),
            );
        }
        print(&self.work.describe(group, self.redo, changed))?;
        let lost = self.work.lost(receipts);
        notes.iter().chain(&lost).for_each(|text| say(&format!("haft: {text}")));
        Ok(())
    }

    /// Shows what somebody changed since, and asks where someone is there; otherwise ends the run.
    fn tell_conflicts(&self, group: &Group, conflicts: &[Conflict]) -> Ending {
        if self.json {
            let shown: Vec<Value> = conflicts
                .iter()
                .map(|conflict| {
                    let mut told = json!({
                        "path": conflict.path, "left": conflict.left, "found": conflict.found,
                        "diff": self.work.diff(conflict),
                    });
                    if let Some((left, found)) = &conflict.rights {
                        told["rights"] = json!({"left": left, "found": found});
                    }
                    told
                })
                .collect();
            println_json(&json!({"session": self.session, "conflicts": shown}).to_string())?;
            return Err(Failure::Said(1));
        }
        for text in self.work.conflicts(group, conflicts) {
            say(&format!("haft: {text}"));
        }
        if io::stdin().is_terminal() && io::stderr().is_terminal() {
            let mut out = io::stderr().lock();
            drop(write!(out, "Go on? What is there now is kept for haft redo. [y/N] "));
            drop(out.flush());
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line)?;
            if matches!(line.trim(), "y" | "Y" | "yes") {
                return Ok(());
            }
        }
        let command = if self.redo { "haft redo" } else { "haft undo" };
        say(&format!("haft: {}", by_force(command, group)));
        Err(Failure::Said(1))
    }
}

/// What is found while it goes on already.
fn late(problem: Problem) {
    super::say_problems([problem]);
}
