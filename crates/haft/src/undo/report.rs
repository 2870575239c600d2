//! Undoes or redoes changes of one session, and reports the result in words.
//!
//! **Invariant:** the session's log records what was done as soon as it was done.
//!
//! **Does not know:** where the report is shown, and who may be asked.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::Arc,
};

use bytes::Bytes;
use haft_agent::Bus;
use haft_host::Queues;
use haft_policy::{Ask, Grants, Mode, Policy, Verdict};
use haft_text::{decode, diff};
use haft_tool::{
    Conflict, Events as _, KeptFolder, PreImages, SplitHardLink, UndoError, UndoReport,
};
use haft_types::{
    AgentPath, Blob, Body, EntryKind, Hash, HostPath, Kind, Plan, Receipt, ReceiptAction, Rights,
    ToolSpec,
};
use serde_json::json;

use super::select::Group;
use crate::{
    app::{base::Base, session::NO_TURN},
    cli::exit::Failure,
    plain,
};

/// How much of a diff is shown.
const SHOWN: diff::Limits = diff::Limits { context: 3, lines: 200, width: 300 };
/// Most bytes of both texts of a diff.
const COMPARED: usize = 8 << 20;

/// Most changes that are told one by one.
const TOLD: usize = 20;

/// What an undo or a redo works with.
pub struct Work<'a> {
    /// The host, and the place that paths are shown from.
    pub base: &'a Base,
    /// The rules that may protect files from changes.
    pub policy: Policy,
    /// Where the change is recorded.
    pub bus: Bus,
    /// The earlier contents of the files.
    pub pre_images: Arc<dyn PreImages>,
    /// One queue for each file.
    pub queues: Arc<Queues>,
}

/// The result of an undo or a redo.
pub struct Changed {
    /// What was changed, as receipts of the session.
    pub receipts: Vec<Receipt>,
    /// Files for which it could not be done.
    pub left: Vec<HostPath>,
    /// Folders that were to go, and hold something else.
    stay: BTreeSet<HostPath>,
    /// Further notes, one line each.
    pub notes: Vec<String>,
    /// Why the session's log does not record it; none if it does.
    pub unrecorded: Option<Failure>,
}

/// Why nothing was changed.
pub enum Refused {
    /// Somebody changed these files since.
    Conflict(Vec<Conflict>),
    /// Anything else.
    Failed(Failure),
}

impl Refused {
    fn describe(text: &str) -> Self {
        Self::Failed(Failure::Failed(plain::safe(text)))
    }

    /// The failure that ends the run.
    pub fn failure(self) -> Failure {
        match self {
            Self::Conflict(conflicts) => {
                let path = |conflict: &Conflict| conflict.path.text().into_owned();
                let paths = plain::safe(&first(conflicts.iter(), path, "").join(", "));
                Failure::Failed(format!("changed by someone else: {paths}. Nothing was changed."))
            }
            Self::Failed(failure) => failure,
        }
    }
}

impl Work<'_> {
    /// Undoes a group of changes, or redoes it.
    pub async fn carry_out(
        &self,
        group: &Group,
        redo: bool,
        force: bool,
    ) -> Result<Changed, Refused> {
        let forbids = |path: &HostPath| self.forbids(path);
        let undo = haft_tool::Undo {
            host: &*self.base.host,
            queues: &self.queues,
            pre_images: self.pre_images.clone(),
            forbids: &forbids,
        };
        let done = undo.take_back(&group.receipts, force).await;
        let UndoReport { receipts, left: stays, apart, stay } = done.map_err(|error| match error {
            UndoError::Conflict(conflicts) => Refused::Conflict(conflicts),
            UndoError::Cut { .. } => Refused::describe(&error.to_string()),
            UndoError::NotKept { .. } => Refused::describe(&format!(
                "{error}. Nothing was changed. Other calls can be taken back, each by its id, as in \
                 haft undo c1: haft session show names them; with --force this is left as it is, and \
                 the rest is taken back"
            )),
            UndoError::Unknown { .. } => Refused::describe(&format!(
                "{error}. Nothing was changed. Look at it; with --force it is taken back all the same"
            )),
            UndoError::OnlyCopy { .. } => Refused::describe(&format!(
                "{error} (undo.session_bytes in the settings). Nothing was changed; with --force it \
                 goes all the same"
            )),
            error => Refused::describe(&format!("{error}. Nothing was changed.")),
        })?;
        let doubts = group.doubts.iter().map(|text| plain::safe(text));
        let notes = doubts.chain(self.notes(&stays, &apart, &stay)).collect();
        let is_file = |receipt: &&Receipt| receipt.kind != EntryKind::Folder;
        let files = receipts.iter().filter(is_file).flat_map(left).collect();
        let calls = group.calls.clone();
        let undone = Body::Undone { calls, files, redo, receipts: receipts.clone() };
        let told = match self.bus.emit(&AgentPath::default(), NO_TURN, undone) {
            Ok(()) => self.bus.sync().await,
            error => error,
        };
        let unrecorded = told.err().map(|error| {
            let text = "the files are changed, but the session does not know it";
            Failure::Failed(format!("{text}: {error}"))
        });
        let left = stays.into_iter().map(|(path, _)| path).collect();
        let stay = stay.into_iter().map(|one| one.path).collect();
        Ok(Changed { receipts, left, stay, notes, unrecorded })
    }

    /// Which deny rule keeps a file from being changed.
    fn forbids(&self, path: &HostPath) -> Option<String> {
        let place = &self.base.place;
        let plan = Plan::new(place, format!("Changing {}", place.shown(path)));
        let plan = plan.changes(path.clone());
        let ruling = self.policy.decide(&Ask {
            tool: &ToolSpec { kind: Kind::Edit, ..ToolSpec::new("edit", "Edit file", "") },
            input: &json!({"path": path.text()}),
            plan: &plan,
            real: &[Some(path.clone())],
            agent: &AgentPath::default(),
            mode: Mode::Bypass,
            place,
            grants: &Grants::default(),
            walls: None,
            veil: None,
        });
        (ruling.verdict == Verdict::Deny).then_some(ruling.reason)
    }

    /// Describes what was done, one line each.
    pub fn describe(&self, group: &Group, redo: bool, changed: &Changed) -> String {
        let receipts = &changed.receipts;
        let (mut text, what) = (String::new(), if redo { "Made again" } else { "Took back" });
        for (call, title) in group.calls.iter().zip(&group.titles) {
            let title = plain::safe(title);
            // Writing to a string cannot fail.
            let _ = if group.gone.contains(call) {
                let why = "what it had made was gone before it was taken back";
                writeln!(text, "Made nothing again of {title}: {why}")
            } else {
                writeln!(text, "{what} {title}")
            };
        }
        for receipt in receipts.iter().take(TOLD) {
            let shown = |path| plain::safe(&self.base.place.shown(path));
            let from = match &receipt.action {
                ReceiptAction::Renamed { from } => format!("{} to ", shown(from)),
                _ => String::new(),
            };
            let slash = if receipt.kind == EntryKind::Folder { "/" } else { "" };
            let _ = writeln!(text, "  {} {from}{}{slash}", did(receipt), shown(&receipt.path));
        }
        if receipts.len() > TOLD {
            let _ = writeln!(text, "  and {} more", receipts.len() - TOLD);
        }
        let when = match (&*group.calls, redo) {
            ([call], false) => format!("before {call}"),
            (_, false) => "before".to_owned(),
            ([call], true) => format!("after {call}"),
            (_, true) => "after".to_owned(),
        };
        let unchanged = as_wanted(group, changed);
        for path in unchanged.iter().copied().take(TOLD) {
            let lost = group.receipts.iter().any(|one| one.path == *path && !is_kept(one));
            let path = plain::safe(&self.base.place.shown(path));
            let _ = if lost {
                writeln!(text, "  {path} is left as it is: what it held {when} was not kept")
            } else {
                writeln!(text, "  {path} is already as it was {when}")
            };
        }
        if unchanged.len() > TOLD {
            let _ = writeln!(text, "  and {} more that are not changed", unchanged.len() - TOLD);
        }
        text
    }

    /// Says what could not be done, which files are files of their own now, and which folders stay.
    fn notes(
        &self,
        left: &[(HostPath, String)],
        apart: &[SplitHardLink],
        stay: &[KeptFolder],
    ) -> Vec<String> {
        let shown = |path: &HostPath| plain::safe(&self.base.place.shown(path));
        let stays = |(path, why): &(HostPath, String)| {
            format!("{} is left as it is: {}", shown(path), plain::safe(why))
        };
        let alone = |one: &SplitHardLink| {
            let names: Vec<String> = one.names.iter().map(shown).collect();
            let others = if one.more { ": its other names hold what they held" } else { "" };
            match &names[..] {
                [name] => format!("{name} is a file of its own now{others}"),
                _ => format!(
                    "{} were names of one file, and are files of their own now{others}",
                    names.join(", ")
                ),
            }
        };
        let mut notes = first(left.iter(), stays, " that are left as they are");
        notes.extend(first(apart.iter(), alone, " that are files of their own now"));
        let holds = |one: &KeptFolder| {
            let name = |name: &Vec<u8>| plain::safe(&String::from_utf8_lossy(name));
            let mut names: Vec<String> = one.names.iter().map(name).collect();
            if one.more > 0 {
                names.push(format!("{} more", one.more));
            }
            let (path, names) = (shown(&one.path), names.join(", "));
            if let Some(why) = &one.closed {
                let why = plain::safe(why);
                return format!(
                    "{path}/ stays: what it holds cannot be looked at ({why}); it is yours to open \
                     (chmod u+rwx) and to remove"
                );
            }
            format!("{path}/ stays: it holds {names}, of which undo knows nothing")
        };
        // One that holds only others of them is told with these.
        let holders = stay.iter().filter(|one| !one.names.is_empty() || one.closed.is_some());
        notes.extend(first(holders, holds, " that stay"));
        notes
    }

    /// Describes what cannot be undone any more, one line each.
    pub fn lost(&self, receipts: &[Receipt]) -> Vec<String> {
        let lost = receipts.iter().filter(|receipt| !is_kept(receipt));
        let text = |receipt: &Receipt| {
            format!(
                "what {} held was too much to be kept: this cannot be gone back on",
                plain::safe(&self.base.place.shown(&receipt.path))
            )
        };
        first(lost, text, " of which that was too much")
    }

    /// Describes what somebody changed since, one entry for each of the first 20 files.
    pub fn conflicts(&self, group: &Group, conflicts: &[Conflict]) -> Vec<String> {
        let told = |conflict: &Conflict| self.conflict(group, conflict);
        first(conflicts.iter(), told, " that were changed since")
    }

    /// Says what somebody changed since, and who where that is known.
    fn conflict(&self, group: &Group, conflict: &Conflict) -> String {
        let hash = |hash: Option<Hash>| hash.map_or("no file".to_owned(), |hash| hash.to_string());
        let path = plain::safe(&self.base.place.shown(&conflict.path));
        let (left, found) = (hash(conflict.left), hash(conflict.found));
        let by = group.left_by(&conflict.path, conflict.found).unwrap_or("someone else");
        let by = plain::safe(by);
        let mut text = format!("{path} was changed since by {by}");
        // Writing to a string cannot fail.
        if conflict.left != conflict.found || conflict.rights.is_none() {
            let _ = write!(text, "\n  left as {left}\n  now is  {found}");
        }
        if let Some((left, now)) = &conflict.rights {
            let _ = write!(text, "\n  left with {}\n  now has   {}", rights(left), rights(now));
        }
        if let Some(diff) = self.diff(conflict).filter(|diff| !diff.is_empty()) {
            text.push_str("\n  what would change:\n");
            text.push_str(haft_render::clean(&diff).trim_end());
        }
        text
    }

    /// The diff of what would change in a file. None if the contents are not known, too big, or no
    /// text.
    pub fn diff(&self, conflict: &Conflict) -> Option<String> {
        let content = |blob: &Option<Blob>, hash: Option<Hash>| match (blob, hash) {
            (Some(blob), _) if blob.len > COMPARED as u64 => None,
            (Some(blob), _) => self.pre_images.get(blob).ok(),
            (None, None) => Some(Bytes::new()),
            (None, Some(_)) => None,
        };
        let now = content(&conflict.kept, conflict.found)?;
        let then = content(&conflict.to, None)?;
        if now.len() + then.len() > COMPARED {
            return None;
        }
        let (now, then) = (decode::decode(&now).ok()?, decode::decode(&then).ok()?);
        Some(diff::diff(now.text(), then.text(), SHOWN).unified())
    }
}

/// The first of some entries in words, and how many more there are.
fn first<T>(
    mut all: impl Iterator<Item = T>,
    text: impl Fn(T) -> String,
    what: &str,
) -> Vec<String> {
    let mut told: Vec<String> = all.by_ref().take(TOLD).map(text).collect();
    let more = all.count();
    if more > 0 {
        told.push(format!("and {more} more{what}"));
    }
    told
}

/// Permissions and owner, for people.
fn rights(rights: &Rights) -> String {
    let owner =
        rights.owner.map_or(String::new(), |(user, group)| format!(", owner {user}:{group}"));
    format!("mode {:o}{owner}", rights.mode & 0o7777)
}

/// How to go on although somebody changed the files; `command` is `haft undo` or `/undo`.
pub fn by_force(command: &str, group: &Group) -> String {
    let named = &group.named;
    format!("nothing was changed; to replace what is there (it is kept): {command} {named} --force")
}

/// The state that a change left, for each path that it is about.
pub fn left(receipt: &Receipt) -> impl Iterator<Item = (HostPath, Option<Hash>)> {
    let from = match &receipt.action {
        ReceiptAction::Renamed { from } => Some((from.clone(), None)),
        _ => None,
    };
    std::iter::once((receipt.path.clone(), receipt.after)).chain(from)
}

/// Reports whether a change can be undone: the earlier content is retained, or still in the file.
pub fn is_kept(receipt: &Receipt) -> bool {
    let stays =
        matches!(receipt.action, ReceiptAction::Renamed { .. }) && receipt.before == receipt.after;
    let holds = receipt.before.is_some() && receipt.kind != EntryKind::Folder;
    !holds || receipt.pre_image.is_some() || stays
}

/// The files of the group for which nothing had to be done: they already are as they should be.
pub fn as_wanted<'a>(group: &'a Group, changed: &Changed) -> Vec<&'a HostPath> {
    let done = changed.receipts.iter().flat_map(left).map(|(path, _)| path);
    let stays = changed.left.iter().chain(&changed.stay).cloned();
    let done: BTreeSet<HostPath> = done.chain(stays).collect();
    // What the newest change left, and what the oldest one found.
    let mut ends: BTreeMap<&HostPath, (Option<Hash>, Option<Hash>)> = BTreeMap::new();
    for receipt in &group.receipts {
        let ends = ends.entry(&receipt.path).or_insert((receipt.after, receipt.before));
        ends.1 = receipt.before;
    }
    let differs = ends.into_iter().filter(|(_, (newest, oldest))| newest != oldest);
    differs.map(|(path, _)| path).filter(|path| !done.contains(*path)).collect()
}

/// What a change did to a file, as a verb.
pub const fn did(receipt: &Receipt) -> &'static str {
    match receipt.action {
        ReceiptAction::Created => "created",
        ReceiptAction::Deleted => "removed",
        ReceiptAction::Changed => "changed",
        ReceiptAction::Renamed { .. } => "moved",
    }
}
