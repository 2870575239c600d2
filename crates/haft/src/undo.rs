//! `haft undo` and `haft redo`: takes changes of files back, and makes them again, without git.
//!
//! **Invariant:** a change is taken back in the session that made it, whose log is held meanwhile; a
//! file that somebody changed since is never replaced unasked, and what is replaced is kept. What a
//! deny rule keeps from being edited is not touched. The session's log tells the model.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use haft_agent::Bus;
use haft_config::Environment;
use haft_host::Queues;
use haft_policy::{Ask, Grants, Mode, Verdict};
use haft_session::{Changes, Log, SessionError, SessionId, Store, TakenBack, on_branch};
use haft_text::{decode, diff};
use haft_tool::{Conflict, Events as _, Keeping, PreImages, UndoError};
use haft_types::{
    AgentPath, Blob, Body, CallId, Event, Hash, HostPath, Kind, Plan, Receipt, ReceiptAction,
    ToolSpec, TurnId,
};
use serde_json::{Value, json};

use crate::{
    cli::{Common, Redo, Undo},
    core::{self, Base, NO_TURN},
    exit::{Ending, Failure, println, println_json, say},
    face,
};

/// How much of a diff is shown.
const SHOWN: diff::Limits = diff::Limits { context: 3, lines: 200, width: 300 };
/// Most bytes of both texts of a diff.
const COMPARED: usize = 8 << 20;
/// Longest that making room among all sessions goes on in one run.
const COLLECT_WITHIN: Duration = Duration::from_millis(200);
/// How many changes an error names.
const NAMED: usize = 10;

/// What a session keeps for undo, as tools know it.
struct Kept {
    images: haft_session::PreImages,
    /// What makes room among all sessions, once something is kept here.
    collect: Mutex<Option<Collect>>,
}

/// Makes room among all sessions.
struct Collect {
    store: Store,
    mine: SessionId,
    most: u64,
}

/// Where a session keeps what changed files held.
pub fn kept(store: &Store, id: &SessionId, settings: &haft_config::Undo) -> Arc<dyn PreImages> {
    let images = store.pre_images(id, settings.session_bytes);
    let collect = Collect { store: store.clone(), mine: id.clone(), most: settings.total_bytes };
    Arc::new(Kept { images, collect: Mutex::new(Some(collect)) })
}

impl Kept {
    /// Makes room among all sessions, once, and nobody waits for it.
    fn collect(&self) {
        let collect = self.collect.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Collect { store, mine, most }) = collect {
            // What it does not come to, the next run does.
            std::thread::spawn(move || drop(store.collect_pre_images(&mine, most, COLLECT_WITHIN)));
        }
    }
}

fn unkept(error: SessionError) -> io::Error {
    let kind = match &error {
        SessionError::OverQuota { .. } => io::ErrorKind::QuotaExceeded,
        SessionError::NotKept { .. } => io::ErrorKind::NotFound,
        SessionError::Io { source, .. } => source.kind(),
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

impl PreImages for Kept {
    fn begin(&self, expected: u64) -> io::Result<Box<dyn Keeping>> {
        self.collect();
        let unfinished = self.images.begin(expected).map_err(unkept)?;
        Ok(Box::new(Unfinished(unfinished)))
    }

    fn put(&self, whole: &Bytes, hash: Hash) -> io::Result<Blob> {
        self.collect();
        self.images.put(whole, hash).map_err(unkept)
    }

    fn get(&self, blob: &Blob) -> io::Result<Bytes> {
        self.images.get(blob).map(Bytes::from).map_err(unkept)
    }

    fn find(&self, hash: &Hash) -> Option<Blob> {
        self.images.find(hash)
    }

    fn sync(&self) -> io::Result<()> {
        self.images.sync().map_err(unkept)
    }
}

struct Unfinished(haft_session::Unfinished);

impl Keeping for Unfinished {
    fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        self.0.push(piece).map_err(unkept)
    }

    fn finish(self: Box<Self>) -> io::Result<Blob> {
        self.0.finish().map_err(unkept)
    }
}

/// What is wanted.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
struct Wanted<'a> {
    which: Which,
    turn: bool,
    redo: bool,
    session: Option<&'a str>,
    force: bool,
    json: bool,
}

/// Which changes.
enum Which {
    Last(usize),
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

/// Takes changes back.
pub async fn undo(arguments: &Undo) -> Ending {
    let wanted = Wanted {
        which: Which::of(arguments.which.as_deref())?,
        turn: arguments.turn,
        redo: false,
        session: arguments.session.as_deref(),
        force: arguments.force,
        json: arguments.json,
    };
    run(&wanted).await
}

/// Makes changes again.
pub async fn redo(arguments: &Redo) -> Ending {
    let wanted = Wanted {
        which: Which::of(arguments.which.as_deref())?,
        turn: false,
        redo: true,
        session: arguments.session.as_deref(),
        force: arguments.force,
        json: arguments.json,
    };
    run(&wanted).await
}

async fn run(wanted: &Wanted<'_>) -> Ending {
    let environment = Environment::capture();
    let store = Store::open(core::home(&environment)?);
    let id = session(&store, wanted)?;
    // Held from here on: nobody else changes what is decided on.
    let log = store.resume(&id)?;
    let events = events(&store, &id)?;
    let changes = Changes::of(on_branch(&events, log.leaf()));
    let groups = chosen(wanted, &changes)
        .map_err(|text| Failure::Failed(format!("session {id}: {text}")))?;
    let root = events.iter().find_map(|event| match &event.body {
        Body::Session { cwd, .. } => cwd.as_str().map(PathBuf::from),
        _ => None,
    });
    let root = root.filter(|root| root.is_dir());
    let base = Base::load_in(environment, &Common::default(), root.as_deref())?;
    let work = Work::new(&base, &store, &id, log);
    for group in groups {
        work.carry_out(wanted, group).await?;
    }
    Ok(())
}

/// The session that is meant: the last one of this folder that has what is wanted.
fn session(store: &Store, wanted: &Wanted<'_>) -> Result<SessionId, Failure> {
    if let Some(prefix) = wanted.session {
        return core::find(store, prefix);
    }
    let here = std::env::current_dir()?.canonicalize()?;
    let here = haft_host::Local::path(&here)?;
    let mut other = None;
    for info in store.list()?.sessions.into_iter().filter(|info| info.cwd.as_ref() == Some(&here)) {
        let events = events(store, &info.id)?;
        let leaf = events.iter().filter_map(|event| event.id).max().unwrap_or_default();
        let changes = Changes::of(on_branch(&events, leaf));
        let fits = match (&wanted.which, wanted.redo) {
            (Which::Call(call), _) => changes.all.iter().any(|change| change.call == *call),
            (Which::Last(_), true) => !changes.taken_back.is_empty(),
            (Which::Last(_), false) => changes.standing().next().is_some(),
        };
        if fits {
            return Ok(info.id);
        }
        if !changes.all.is_empty() {
            other.get_or_insert(info.id);
        }
    }
    // Why that one has nothing of it is told by what it has.
    if let (Which::Call(_), Some(other)) = (&wanted.which, other) {
        return Ok(other);
    }
    let what =
        if wanted.redo { "was taken back" } else { "of haft's changes is there to take back" };
    Err(Failure::Failed(format!(
        "nothing {what} in {here}: name a session of another folder with --session"
    )))
}

fn events(store: &Store, id: &SessionId) -> Result<Vec<Event>, Failure> {
    let mut events = Vec::new();
    for event in store.events(id)? {
        match event {
            Ok(event) => events.push(event),
            Err(error) => say(&format!("haft: {error}: going on without it")),
        }
    }
    Ok(events)
}

/// Changes that go together: the receipts newest first.
struct Group {
    calls: Vec<CallId>,
    titles: Vec<String>,
    receipts: Vec<Receipt>,
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
fn chosen(wanted: &Wanted<'_>, changes: &Changes) -> Result<Vec<Group>, String> {
    if wanted.redo { to_redo(wanted, changes) } else { to_undo(wanted, changes) }
}

fn to_redo(wanted: &Wanted<'_>, changes: &Changes) -> Result<Vec<Group>, String> {
    let newest: Vec<&TakenBack> = changes.taken_back.iter().rev().collect();
    let taken: Vec<&TakenBack> = match &wanted.which {
        Which::Last(count) => newest.into_iter().take(*count).collect(),
        Which::Call(call) => {
            newest.into_iter().find(|taken| taken.calls.contains(call)).into_iter().collect()
        }
    };
    if taken.is_empty() {
        return Err(match &wanted.which {
            Which::Last(_) => "nothing was taken back that could be made again".to_owned(),
            Which::Call(call) => format!("{call} was not taken back"),
        });
    }
    let group = |taken: &TakenBack| Group {
        calls: taken.calls.clone(),
        titles: taken.calls.iter().map(|call| title(changes, call)).collect(),
        receipts: taken.receipts.iter().rev().cloned().collect(),
    };
    Ok(taken.into_iter().map(group).collect())
}

fn to_undo(wanted: &Wanted<'_>, changes: &Changes) -> Result<Vec<Group>, String> {
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
                    return Err(format!("{call} is taken back already: haft redo {call}"));
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
    Ok(vec![Group {
        calls: meant.iter().map(|change| change.call.clone()).collect(),
        titles: meant.iter().map(|change| title(changes, &change.call)).collect(),
        receipts: meant.iter().flat_map(|change| change.receipts.iter().rev().cloned()).collect(),
    }])
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

/// What it is done with.
struct Work<'a> {
    base: &'a Base,
    session: String,
    bus: Bus,
    pre_images: Arc<dyn PreImages>,
    queues: Queues,
    edit: ToolSpec,
}

impl<'a> Work<'a> {
    fn new(base: &'a Base, store: &Store, id: &SessionId, log: Log) -> Self {
        Self {
            base,
            session: id.to_string(),
            bus: Bus::new(log, core::now),
            pre_images: kept(store, id, &base.loaded.settings.undo),
            queues: Queues::default(),
            edit: ToolSpec { kind: Kind::Edit, ..ToolSpec::new("edit", "Edit file", "") },
        }
    }

    /// Which deny rule keeps a file from being changed.
    fn forbids(&self, path: &HostPath) -> Option<String> {
        let place = &self.base.place;
        let plan = Plan::new(place, format!("Changing {}", place.shown(path)));
        let plan = plan.changes(path.clone());
        let ruling = self.base.policy.decide(&Ask {
            tool: &self.edit,
            input: &json!({"path": path.text()}),
            plan: &plan,
            real: &[Some(path.clone())],
            agent: &AgentPath::default(),
            mode: Mode::Bypass,
            place,
            grants: &Grants::default(),
        });
        (ruling.verdict == Verdict::Deny).then_some(ruling.reason)
    }

    async fn take_back(&self, group: &Group, force: bool) -> Result<Vec<Receipt>, UndoError> {
        let forbids = |path: &HostPath| self.forbids(path);
        let undo = haft_tool::Undo {
            host: &*self.base.host,
            queues: &self.queues,
            pre_images: self.pre_images.clone(),
            forbids: &forbids,
        };
        undo.take_back(&group.receipts, force).await
    }

    async fn carry_out(&self, wanted: &Wanted<'_>, group: Group) -> Ending {
        let done = match self.take_back(&group, wanted.force).await {
            Err(UndoError::Conflict(conflicts)) => {
                self.tell_conflicts(wanted, &group, &conflicts)?;
                self.take_back(&group, true).await
            }
            done => done,
        };
        let receipts = done.map_err(|error| {
            let rest = match error {
                UndoError::Cut { .. } => "",
                _ => ". Nothing was changed.",
            };
            Failure::Failed(format!("{}{rest}", face::safe(&error.to_string())))
        })?;
        let files = receipts.iter().map(|r| (r.path.clone(), r.after)).collect();
        let calls = group.calls.clone();
        let undone = Body::Undone { calls, files, redo: wanted.redo, receipts: receipts.clone() };
        let told = self.bus.emit(&AgentPath::default(), NO_TURN, undone);
        let told = match told {
            Ok(()) => self.bus.sync().await,
            error => error,
        };
        self.tell(wanted, &group, &receipts)?;
        told.map_err(|error| {
            let text = "the files are changed, but the session does not know it";
            Failure::Failed(format!("{text}: {error}"))
        })
    }

    fn tell(&self, wanted: &Wanted<'_>, group: &Group, receipts: &[Receipt]) -> Ending {
        if wanted.json {
            let file = |receipt: &Receipt| {
                json!({
                    "path": receipt.path, "did": did(receipt), "hash": receipt.after,
                    "kept": receipt.before.is_none() || receipt.pre_image.is_some(),
                })
            };
            return println_json(
                &json!({
                    "session": self.session, "redo": wanted.redo, "calls": group.calls,
                    "files": receipts.iter().map(file).collect::<Vec<_>>(),
                })
                .to_string(),
            );
        }
        let what = if wanted.redo { "Made again" } else { "Took back" };
        for title in &group.titles {
            println(&format!("{what} {}", face::safe(title)))?;
        }
        for receipt in receipts {
            let path = self.base.place.shown(&receipt.path);
            println(&format!("  {} {}", did(receipt), face::safe(&path)))?;
            if receipt.before.is_some() && receipt.pre_image.is_none() {
                say(&format!(
                    "haft: what {} held was too much to be kept: this cannot be gone back on",
                    face::safe(&path)
                ));
            }
        }
        Ok(())
    }

    /// Shows what somebody changed since, and asks where someone is there; otherwise ends the run.
    fn tell_conflicts(&self, wanted: &Wanted<'_>, group: &Group, conflicts: &[Conflict]) -> Ending {
        let hash = |hash: Option<Hash>| hash.map_or("no file".to_owned(), |hash| hash.to_string());
        if wanted.json {
            let shown: Vec<Value> = conflicts
                .iter()
                .map(|conflict| {
                    json!({
                        "path": conflict.path, "left": conflict.left, "found": conflict.found,
                        "diff": self.diff(conflict),
                    })
                })
                .collect();
            println_json(&json!({"session": self.session, "conflicts": shown}).to_string())?;
            return Err(Failure::Said(1));
        }
        for conflict in conflicts {
            let path = face::safe(&self.base.place.shown(&conflict.path));
            say(&format!("haft: {path} was changed since by someone else"));
            say(&format!("  left as {}\n  now is  {}", hash(conflict.left), hash(conflict.found)));
            if let Some(diff) = self.diff(conflict) {
                say("  what would change:");
                say(haft_render::clean(&diff).trim_end());
            }
        }
        let calls: Vec<String> = group.calls.iter().map(ToString::to_string).collect();
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
        say(&format!(
            "haft: nothing was changed; to replace what is there (it is kept): haft {} {} --force",
            if wanted.redo { "redo" } else { "undo" },
            calls.first().map_or("", String::as_str)
        ));
        Err(Failure::Said(1))
    }

    /// What would change in a file; none where that is not known or no text.
    fn diff(&self, conflict: &Conflict) -> Option<String> {
        let content = |blob: &Option<Blob>, hash: Option<Hash>| match (blob, hash) {
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

const fn did(receipt: &Receipt) -> &'static str {
    match receipt.action {
        ReceiptAction::Created => "created",
        ReceiptAction::Deleted => "removed",
        ReceiptAction::Changed | ReceiptAction::Renamed { .. } => "changed",
    }
}
