//! Selects which changes of a session are undone or redone, and in which order.
//!
//! **Invariant:** the selection depends on the session's events alone. No file is read and none is
//! changed.

use std::{cmp::Reverse, collections::BTreeSet};

use haft_agent::UndoRequest;
use haft_session::{Change, Changes, TakenBack};
use haft_types::{CallId, Hash, HostPath, Receipt, TurnId};

use super::report::left;
use crate::{app::session::NO_TURN, cli::exit::Failure};

/// How many changes an error names.
const NAMED: usize = 10;

/// What to undo or redo.
pub struct UndoSelection {
    /// Which changes.
    pub which: UndoScope,
    /// Whether turns are counted instead of calls.
    pub turn: bool,
    /// Whether changes are redone instead of undone.
    pub redo: bool,
    /// Whether what others changed since is replaced, too.
    pub force: bool,
}

impl UndoSelection {
    /// The selection that the arguments ask for; `redo` for redo instead of undo.
    pub fn of(asked: &UndoRequest, redo: bool) -> Result<Self, Failure> {
        let which = UndoScope::of(asked.which.as_deref())?;
        Ok(Self { which, turn: asked.turn, redo, force: asked.force })
    }
}

/// Which changes.
pub enum UndoScope {
    /// The last change; for redo, all that the last undo took back.
    Newest,
    /// The newest changes, as many as this.
    Last(usize),
    /// Those of one call, or those found while one job ran.
    Call(CallId),
}

impl UndoScope {
    fn of(text: Option<&str>) -> Result<Self, Failure> {
        let Some(text) = text else { return Ok(Self::Newest) };
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if digits(text) {
            return match text.parse() {
                Ok(count) if count > 0 => Ok(Self::Last(count)),
                Err(_) => Err(Failure::Usage(format!(
                    "{text} is too large for a count of changes: give fewer, or the id of a call"
                ))),
                _ => Err(Failure::Usage(format!("{text} is no count of changes: give 1 or more"))),
            };
        }
        if text.strip_prefix(['c', 'j']).is_some_and(digits) {
            return Ok(Self::Call(CallId(text.into())));
        }
        let shown: String = text.chars().take(80).collect();
        Err(Failure::Usage(format!(
            "{shown:?} is neither a count of changes nor the id of a call or job, such as c12 or j1"
        )))
    }
}

/// Changes that are undone or redone together.
pub struct Group {
    /// How many changes these are: calls, or turns if those are counted.
    pub count: usize,
    /// The calls that made them, in the order in which they are undone or redone.
    pub calls: Vec<CallId>,
    /// The argument of the command that names all of them, such as `c12` or `3 --turn`.
    pub named: String,
    /// Titles of these calls, for people.
    pub titles: Vec<String>,
    /// The calls of which nothing can be redone: what they made was gone before they were undone.
    pub gone: Vec<CallId>,
    /// Where these are more than were asked for: how many were, the calls that go only together,
    /// and those between them.
    more: Option<(usize, Vec<CallId>, Vec<CallId>)>,
    /// The changes to undo or redo, in this order.
    pub receipts: Vec<Receipt>,
    /// Remarks about what is undone, one line each, such as who else may have made it.
    pub doubts: Vec<String>,
    /// How other changes of haft left files: the file, its hash then, and which change it was, with
    /// what to do.
    pub others: Vec<(HostPath, Option<Hash>, String)>,
}

impl Group {
    fn of(
        wanted: &UndoSelection,
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
            (UndoScope::Call(call), _) => format!("{call}{turn}"),
            _ if wanted.turn && count == 1 => "--turn".to_owned(),
            _ => format!("{count}{turn}"),
        };
        let is_meant = |change: &&Change| !wanted.redo && calls.contains(&change.call);
        let doubts = changes.all.iter().filter(is_meant).filter_map(doubt).collect();
        let (gone, more) = (Vec::new(), None);
        Self { count, calls, named, titles, gone, more, receipts, doubts, others }
    }

    /// Which other change of haft left a file as it was found, with what to do; the newest if there
    /// are several.
    pub fn left_by(&self, path: &HostPath, found: Option<Hash>) -> Option<&str> {
        let same = |other: &&(HostPath, Option<Hash>, String)| other.0 == *path && other.1 == found;
        self.others.iter().rfind(same).map(|(.., who)| who.as_str())
    }
}

/// Says of a change that it may be that of others.
fn doubt(change: &Change) -> Option<String> {
    let (call, jobs) = (&change.call, change.jobs.join(" and "));
    (!jobs.is_empty()).then(|| {
        if change.is_of_job() {
            return format!("{jobs} ran while this changed: others may have done some of it");
        }
        format!("what {call} changed was found while {jobs} ran, whose doing some of it may be")
    })
}

fn title(changes: &Changes, call: &CallId) -> String {
    let found = changes.all.iter().find(|change| change.call == *call);
    match found {
        Some(change) if change.title.is_empty() => format!("{call} ({})", change.tool),
        Some(change) => format!("{call} ({}: {})", change.tool, change.title),
        None => call.to_string(),
    }
}

/// Selects what is undone or redone, in this order.
pub fn chosen(wanted: &UndoSelection, changes: &Changes) -> Result<Group, String> {
    if wanted.redo { to_redo(wanted, changes) } else { to_undo(wanted, changes) }
}

fn to_redo(wanted: &UndoSelection, changes: &Changes) -> Result<Group, String> {
    let back = to_make_again(wanted, changes);
    let newest = back.first().map(|call| call.with.undo);
    let is_asked = |call: &&UndoneCall<'_>| match &wanted.which {
        UndoScope::Newest if wanted.turn => call.unit == 0,
        UndoScope::Newest => Some(call.with.undo) == newest,
        UndoScope::Last(count) => call.unit < *count,
        UndoScope::Call(id) => back.iter().any(|other| other.call == id && other.unit == call.unit),
    };
    let asked: BTreeSet<usize> = back.iter().filter(is_asked).map(|call| call.unit).collect();
    if asked.is_empty() {
        return Err(match &wanted.which {
            UndoScope::Newest | UndoScope::Last(_) => {
                "nothing was taken back that could be made again".to_owned()
            }
            UndoScope::Call(call) => format!("{call} was not taken back"),
        });
    }
    let (meant, together) = closed(&back, &asked, !matches!(wanted.which, UndoScope::Call(_)));
    let chosen: Vec<&UndoneCall<'_>> =
        back.iter().filter(|call| meant.contains(&call.unit)).collect();
    let calls = chosen.iter().map(|call| call.call.clone()).collect();
    let has = |taken: &&TakenBack| chosen.iter().any(|call| std::ptr::eq(call.with, *taken));
    let taken = changes.taken_back.iter().rev().filter(has);
    let receipts = taken.flat_map(|taken| taken.receipts.iter().rev().cloned());
    let mut group = Group::of(wanted, meant.len(), calls, receipts.collect(), changes);
    let gone = chosen.iter().filter(|call| call.with.receipts.is_empty());
    group.gone = gone.map(|call| call.call.clone()).collect();
    if meant.len() > asked.len() {
        let between = chosen
            .iter()
            .filter(|call| !asked.contains(&call.unit) && !together.contains(&call.call))
            .map(|call| call.call.clone());
        let between = between.collect();
        group.more = Some((asked.len(), together.into_iter().cloned().collect(), between));
    }
    Ok(group)
}

/// A call that is taken back.
struct UndoneCall<'a> {
    call: &'a CallId,
    /// The number of what it is counted with: a call counts by itself, or a turn with all its calls.
    unit: usize,
    /// What it can be made again with.
    with: &'a TakenBack,
}

/// The calls that are taken back in the order in which they are made again: those of the last undo
/// first, of one undo as they were made.
fn to_make_again<'a>(wanted: &UndoSelection, changes: &'a Changes) -> Vec<UndoneCall<'a>> {
    let place = |call: &CallId| changes.all.iter().position(|change| change.call == *call);
    let of = |taken: &'a TakenBack| {
        taken.calls.iter().map(move |call| UndoneCall { call, unit: 0, with: taken })
    };
    let mut back: Vec<UndoneCall<'a>> = changes.taken_back.iter().flat_map(of).collect();
    back.sort_by_key(|back| (Reverse(back.with.undo), place(back.call)));
    let mut units = Vec::new();
    for call in &mut back {
        let turn = place(call.call).map_or(NO_TURN, |at| changes.all[at].turn);
        let unit = unit(wanted, call.call, turn);
        let known = units.iter().position(|other| *other == unit);
        call.unit = known.unwrap_or(units.len());
        if known.is_none() {
            units.push(unit);
        }
    }
    back
}

/// What has to be made again with what is asked for, and the calls for which that is so: those that
/// go together, and where the order counts all that comes before them.
fn closed<'a>(
    back: &[UndoneCall<'a>],
    asked: &BTreeSet<usize>,
    in_order: bool,
) -> (BTreeSet<usize>, Vec<&'a CallId>) {
    let mut meant = asked.clone();
    loop {
        let goes = |call: &&UndoneCall<'_>| {
            let with = |other: &UndoneCall<'_>| std::ptr::eq(other.with, call.with);
            back.iter().any(|other| meant.contains(&other.unit) && with(other))
        };
        let mut more: BTreeSet<usize> = back.iter().filter(goes).map(|call| call.unit).collect();
        if let Some(last) = more.last().copied().filter(|_| in_order) {
            more.extend(0..last);
        }
        if more == meant {
            break;
        }
        meant = more;
    }
    let is_tied = |call: &&UndoneCall<'a>| {
        let ties = |other: &UndoneCall<'_>| {
            std::ptr::eq(other.with, call.with)
                && asked.contains(&other.unit) != asked.contains(&call.unit)
        };
        meant.contains(&call.unit) && back.iter().any(ties)
    };
    let together = back.iter().filter(is_tied).map(|call| call.call).collect();
    (meant, together)
}

/// What a call is counted with. Calls that no agent made belong to no turn: each stands for itself.
fn unit(wanted: &UndoSelection, call: &CallId, turn: TurnId) -> (TurnId, Option<CallId>) {
    let alone = !wanted.turn || turn == NO_TURN;
    (turn, alone.then(|| call.clone()))
}

fn to_undo(wanted: &UndoSelection, changes: &Changes) -> Result<Group, String> {
    let unit = |call: &CallId, turn: TurnId| unit(wanted, call, turn);
    // What changed while a job ran anybody may have done: it is taken back where it is named.
    let is_named = |change: &&Change| {
        !change.is_of_job()
            || matches!(&wanted.which, UndoScope::Call(call) if *call == change.call)
    };
    let mut units = Vec::new();
    for change in changes.standing().rev().filter(is_named) {
        let unit = unit(&change.call, change.turn);
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    match &wanted.which {
        UndoScope::Newest => units.truncate(1),
        UndoScope::Last(count) => units.truncate(*count),
        UndoScope::Call(call) => {
            let found = changes.all.iter().rfind(|change| change.call == *call);
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
        .filter(is_named)
        .filter(|change| units.contains(&unit(&change.call, change.turn)))
        .collect();
    let of_jobs = left_of_jobs(changes, meant.last().copied(), is_named);
    if meant.is_empty() {
        let none = "no change is there to take back".to_owned();
        return Err(of_jobs.into_iter().fold(none, |text, job| format!("{text}; {job}")));
    }
    let calls = meant.iter().map(|change| change.call.clone()).collect();
    let receipts = meant.iter().flat_map(|change| change.receipts.iter().rev().cloned());
    let mut group = Group::of(wanted, units.len(), calls, receipts.collect(), changes);
    group.doubts.extend(of_jobs);
    Ok(group)
}

/// Says of what changed while jobs ran, later than this change, that it is left as it is.
fn left_of_jobs(
    changes: &Changes,
    oldest: Option<&Change>,
    is_named: impl Fn(&&Change) -> bool,
) -> Vec<String> {
    let later = changes
        .standing()
        .skip_while(|change| oldest.is_some_and(|oldest| !std::ptr::eq(*change, oldest)));
    let told = |change: &Change| {
        let (job, jobs) = (&change.call, change.jobs.join(" and "));
        format!(
            "what changed while {jobs} ran is left as it is, for others may have done it: undo \
             {job} takes it back"
        )
    };
    later.filter(|change| !is_named(change)).map(told).collect()
}

/// Reports that there were fewer changes than were asked for, or that more had to be redone
/// together.
pub fn other_count(wanted: &UndoSelection, group: &Group, command: &str) -> Option<String> {
    let found = group.count;
    let what = if wanted.turn { "turns" } else { "changes" };
    if let Some((asked, together, between)) = &group.more {
        let together = listed(together);
        let stands = if between.len() == 1 { "stands" } else { "stand" };
        let between = match &**between {
            [] => String::new(),
            between => format!(", and {} {stands} between them", listed(between)),
        };
        return Some(format!(
            "{found} {what} were made again, and not {asked}: {together} can be made again only \
             together{between}"
        ));
    }
    let UndoScope::Last(asked) = wanted.which else { return None };
    let verb = if found == 1 { "was" } else { "were" };
    let there = if wanted.redo { "taken back" } else { "there to take back" };
    (found < asked).then(|| {
        format!(
            "only {found} of {asked} {what} {verb} {there} in this session; others may lie in other \
             sessions: haft session list names them, {command} --session ID goes on in one"
        )
    })
}

/// Names of calls, as `c1, c2 and c3`.
fn listed(calls: &[CallId]) -> String {
    let names: Vec<String> = calls.iter().map(ToString::to_string).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, more)) => format!("{} and {last}", more.join(", ")),
        None => String::new(),
    }
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
