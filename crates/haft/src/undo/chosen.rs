//! Which changes of a session are meant, and in which order they are taken back or made again.
//!
//! **Invariant:** decided on the session's events alone; nothing is looked at and nothing changed.

use std::collections::HashSet;

use haft_session::{Change, Changes, TakenBack};
use haft_types::{CallId, Hash, HostPath, Receipt, TurnId};

use super::work::left;
use crate::{cli::Back, core::NO_TURN, exit::Failure};

/// How many changes an error names.
const NAMED: usize = 10;

/// What is wanted.
pub struct Wanted {
    /// Which changes.
    pub which: Which,
    /// Whether turns count instead of calls.
    pub turn: bool,
    /// Whether changes are made again instead of taken back.
    pub redo: bool,
    /// Whether what others changed since is replaced, too.
    pub force: bool,
}

impl Wanted {
    /// What was asked for: that changes are taken back, or that they are made again.
    pub fn of(asked: &Back, redo: bool) -> Result<Self, Failure> {
        let which = Which::of(asked.which.as_deref())?;
        Ok(Self { which, turn: asked.turn, redo, force: asked.force })
    }
}

/// Which changes.
pub enum Which {
    /// The last change; of what was taken back, all that was at once.
    Newest,
    /// The newest.
    Last(usize),
    /// Those of one call.
    Call(CallId),
}

impl Which {
    fn of(text: Option<&str>) -> Result<Self, Failure> {
        let Some(text) = text else { return Ok(Self::Newest) };
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if digits(text) {
            return match text.parse() {
                Ok(count) if count > 0 => Ok(Self::Last(count)),
                _ => Err(Failure::Usage(format!("{text} is no count of changes: give 1 or more"))),
            };
        }
        if text.strip_prefix('c').is_some_and(digits) {
            return Ok(Self::Call(CallId(text.into())));
        }
        let shown: String = text.chars().take(80).collect();
        Err(Failure::Usage(format!(
            "{shown:?} is neither a count of changes nor the id of a call, such as c12"
        )))
    }
}

/// Changes that go together.
pub struct Group {
    /// How many changes of those that are counted these are.
    pub count: usize,
    /// The calls that made them, in the order in which they are taken back or made again.
    pub calls: Vec<CallId>,
    /// What names all of them behind the command, as `c12` or `3 --turn`.
    pub named: String,
    /// What these calls were, for people.
    pub titles: Vec<String>,
    /// What is taken back, in this order.
    pub receipts: Vec<Receipt>,
    /// What else left files as they are: the file, its hash then, and who it was, with what to do.
    pub others: Vec<(HostPath, Option<Hash>, String)>,
}

impl Group {
    fn of(
        wanted: &Wanted,
        count: usize,
        calls: Vec<CallId>,
        receipts: Vec<Receipt>,
        changes: &Changes,
    ) -> Self {
        let titles = calls.iter().map(|call| title(changes, call)).collect();
        let others = changes.standing().filter(|change| !calls.contains(&change.call));
        let made = others.map(|change| {
            (&change.receipts, format!("{}: take that back first", title(changes, &change.call)))
        });
        let others = changes
            .taken_back
            .iter()
            .filter(|taken| !taken.calls.iter().all(|call| calls.contains(call)));
        let taken = others.map(|taken| {
            let titles: Vec<_> = taken.calls.iter().map(|call| title(changes, call)).collect();
            let text = format!("taking back {}: make that again first", titles.join(", "));
            (&taken.receipts, text)
        });
        let left_by = |(receipts, who): (&Vec<Receipt>, String)| {
            let left = receipts.iter().flat_map(left).collect::<Vec<_>>();
            left.into_iter().map(move |(path, hash)| (path, hash, who.clone()))
        };
        let others = made.chain(taken).flat_map(left_by).collect();
        let turn = if wanted.turn { " --turn" } else { "" };
        let named = match (&wanted.which, &*calls) {
            (_, [call]) => call.0.to_string(),
            (Which::Call(call), _) => format!("{call}{turn}"),
            _ if wanted.turn && count == 1 => "--turn".to_owned(),
            _ => format!("{count}{turn}"),
        };
        Self { count, calls, named, titles, receipts, others }
    }

    /// What of haft left a file as it was found, the newest where there is more, and what to do.
    pub fn left_by(&self, path: &HostPath, found: Option<Hash>) -> Option<&str> {
        let same = |other: &&(HostPath, Option<Hash>, String)| other.0 == *path && other.1 == found;
        self.others.iter().rfind(same).map(|(.., who)| who.as_str())
    }
}

fn title(changes: &Changes, call: &CallId) -> String {
    let found = changes.all.iter().find(|change| change.call == *call);
    match found {
        Some(change) if change.title.is_empty() => format!("{call} ({})", change.tool),
        Some(change) => format!("{call} ({}: {})", change.tool, change.title),
        None => call.to_string(),
    }
}

/// What is to be taken back or made again, in this order.
pub fn chosen(wanted: &Wanted, changes: &Changes) -> Result<Group, String> {
    if wanted.redo { to_redo(wanted, changes) } else { to_undo(wanted, changes) }
}

fn to_redo(wanted: &Wanted, changes: &Changes) -> Result<Group, String> {
    let mut taken = taken_back(wanted, changes);
    match &wanted.which {
        Which::Newest if wanted.turn => taken.retain(|(unit, _)| *unit == 0),
        Which::Newest => {
            let last = taken.first().map(|(_, taken)| taken.undo);
            taken.retain(|(_, taken)| Some(taken.undo) == last);
        }
        Which::Last(count) => taken.retain(|(unit, _)| unit < count),
        Which::Call(call) => {
            let meant = taken.iter().find(|(_, taken)| taken.calls.contains(call));
            let meant = meant.map(|(unit, _)| *unit);
            taken.retain(|(unit, _)| Some(*unit) == meant);
        }
    }
    if taken.is_empty() {
        return Err(match &wanted.which {
            Which::Newest | Which::Last(_) => {
                "nothing was taken back that could be made again".to_owned()
            }
            Which::Call(call) => format!("{call} was not taken back"),
        });
    }
    let calls: Vec<CallId> =
        taken.iter().flat_map(|(_, taken)| taken.calls.iter().rev().cloned()).collect();
    let units: HashSet<usize> = taken.iter().map(|(unit, _)| *unit).collect();
    let count = if wanted.turn { units.len() } else { calls.len() };
    let receipts = taken.iter().flat_map(|(_, taken)| taken.receipts.iter().rev().cloned());
    Ok(Group::of(wanted, count, calls, receipts.collect(), changes))
}

/// What was taken back, the last first, each with the number of what it is counted with: calls one
/// by one, but for those that cannot be made again alone, and turns with all of their calls.
fn taken_back<'a>(wanted: &Wanted, changes: &'a Changes) -> Vec<(usize, &'a TakenBack)> {
    let turn = |taken: &TakenBack| {
        let of = |change: &&Change| taken.calls.contains(&change.call);
        let first = changes.all.iter().find(of).map(|change| change.turn);
        first.filter(|turn| wanted.turn && *turn != NO_TURN)
    };
    let (mut all, mut units, mut calls) = (Vec::new(), Vec::new(), 0);
    for taken in changes.taken_back.iter().rev() {
        if !wanted.turn {
            all.push((calls, taken));
            calls += taken.calls.len();
            continue;
        }
        let turn = turn(taken);
        let known = units.iter().position(|other| turn.is_some() && *other == turn);
        let unit = known.unwrap_or(units.len());
        if unit == units.len() {
            units.push(turn);
        }
        all.push((unit, taken));
    }
    all
}

fn to_undo(wanted: &Wanted, changes: &Changes) -> Result<Group, String> {
    // Calls that no agent made belong to no turn: each stands for itself.
    let unit = |call: &CallId, turn: TurnId| match turn {
        turn if wanted.turn && turn != NO_TURN => (turn, None),
        turn => (turn, Some(call.clone())),
    };
    let mut units = Vec::new();
    for change in changes.standing().rev() {
        let unit = unit(&change.call, change.turn);
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    match &wanted.which {
        Which::Newest => units.truncate(1),
        Which::Last(count) => units.truncate(*count),
        Which::Call(call) => {
            let found = changes.all.iter().find(|change| change.call == *call);
            match found {
                None => return Err(format!("no call {call} changed a file; {}", named(changes))),
                Some(change) if change.undone => {
                    return Err(format!(
                        "{call} is taken back already; redo {call} makes it again"
                    ));
                }
                Some(change) => units.retain(|other| *other == unit(call, change.turn)),
            }
        }
    }
    let meant: Vec<_> = changes
        .standing()
        .rev()
        .filter(|change| units.contains(&unit(&change.call, change.turn)))
        .collect();
    if meant.is_empty() {
        return Err("no change is there to take back".to_owned());
    }
    let calls = meant.iter().map(|change| change.call.clone()).collect();
    let receipts = meant.iter().flat_map(|change| change.receipts.iter().rev().cloned());
    Ok(Group::of(wanted, units.len(), calls, receipts.collect(), changes))
}

/// Says that fewer changes were there than were asked for.
pub fn fewer(wanted: &Wanted, group: &Group, command: &str) -> Option<String> {
    let Which::Last(asked) = wanted.which else { return None };
    let found = group.count;
    let what = if wanted.turn { "turns" } else { "changes" };
    let verb = if found == 1 { "was" } else { "were" };
    let there = if wanted.redo { "taken back" } else { "there to take back" };
    (found < asked).then(|| {
        format!(
            "only {found} of {asked} {what} {verb} {there} in this session; others may lie in other \
             sessions: haft session list names them, {command} --session ID goes on in one"
        )
    })
}

/// The changes that could be meant.
fn named(changes: &Changes) -> String {
    let mut names: Vec<String> =
        changes.standing().rev().take(NAMED).map(|change| title(changes, &change.call)).collect();
    if names.is_empty() {
        names.push("nothing".to_owned());
    }
    format!("what stands: {}", names.join(", "))
}
