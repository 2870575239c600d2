//! Which changes of a session are meant, and in which order they are taken back or made again.
//!
//! **Invariant:** decided on the session's events alone; nothing is looked at and nothing changed.

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
    /// The newest.
    Last(usize),
    /// Those of one call.
    Call(CallId),
}

impl Which {
    fn of(text: Option<&str>) -> Result<Self, Failure> {
        let Some(text) = text else { return Ok(Self::Last(1)) };
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

/// Changes that go together: the receipts newest first.
pub struct Group {
    /// How many changes of those that are counted these are.
    pub count: usize,
    /// The calls that made them.
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
    fn of(calls: Vec<CallId>, receipts: Vec<Receipt>, changes: &Changes) -> Self {
        let titles = calls.iter().map(|call| title(changes, call)).collect();
        let others = changes.standing().filter(|change| !calls.contains(&change.call));
        let made = others.map(|change| {
            (&change.receipts, format!("{}: take that back first", title(changes, &change.call)))
        });
        let others = changes.taken_back.iter().filter(|taken| taken.calls != calls);
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
        let named = calls.first().map_or_else(String::new, |call| call.0.to_string());
        Self { count: 1, calls, named, titles, receipts, others }
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
pub fn chosen(wanted: &Wanted, changes: &Changes) -> Result<Vec<Group>, String> {
    if wanted.redo { to_redo(wanted, changes) } else { to_undo(wanted, changes) }
}

fn to_redo(wanted: &Wanted, changes: &Changes) -> Result<Vec<Group>, String> {
    let mut taken = taken_back(wanted, changes);
    match &wanted.which {
        Which::Last(count) => taken.retain(|(unit, _)| unit < count),
        Which::Call(call) => {
            let meant = taken.iter().find(|(_, taken)| taken.calls.contains(call));
            let meant = meant.map(|(unit, _)| *unit);
            taken.retain(|(unit, _)| Some(*unit) == meant);
        }
    }
    if taken.is_empty() {
        return Err(match &wanted.which {
            Which::Last(_) => "nothing was taken back that could be made again".to_owned(),
            Which::Call(call) => format!("{call} was not taken back"),
        });
    }
    let mut counted = Vec::new();
    let group = |(unit, taken): (usize, &TakenBack)| {
        let receipts = taken.receipts.iter().rev().cloned();
        let group = Group::of(taken.calls.clone(), receipts.collect(), changes);
        let new = !counted.contains(&unit);
        counted.push(unit);
        Group { count: usize::from(new), ..group }
    };
    Ok(taken.into_iter().map(group).collect())
}

/// What was taken back, the last first, each with the number of what it is counted with: what was
/// taken back at once goes together, and where turns count, also what was at several times.
fn taken_back<'a>(wanted: &Wanted, changes: &'a Changes) -> Vec<(usize, &'a TakenBack)> {
    let turn = |taken: &TakenBack| {
        let of = |change: &&Change| taken.calls.contains(&change.call);
        let first = changes.all.iter().find(of).map(|change| change.turn);
        first.filter(|turn| wanted.turn && *turn != NO_TURN)
    };
    let (mut all, mut units) = (Vec::new(), Vec::new());
    for taken in changes.taken_back.iter().rev() {
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

fn to_undo(wanted: &Wanted, changes: &Changes) -> Result<Vec<Group>, String> {
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
    let group = Group::of(calls, receipts.collect(), changes);
    let count = units.len();
    let named = match (count, wanted.turn) {
        _ if group.calls.len() == 1 => group.named.clone(),
        (1, true) => "--turn".to_owned(),
        (_, true) => format!("{count} --turn"),
        (_, false) => count.to_string(),
    };
    Ok(vec![Group { count, named, ..group }])
}

/// Says that fewer changes were there than were asked for.
pub fn fewer(wanted: &Wanted, groups: &[Group], command: &str) -> Option<String> {
    let Which::Last(asked) = wanted.which else { return None };
    let found: usize = groups.iter().map(|group| group.count).sum();
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
