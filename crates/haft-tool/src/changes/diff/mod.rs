//! Finds what a command changed: the files below the workspace are scanned before and after it.
//!
//! The last scan is stored for the session, so that only files that differ from it are read again
//! and copied. Copies are not pre-images yet: they live as long as the session's process. A
//! pre-image is stored only of what a command really changed.
//!
//! **Invariant:** a command is never held up by what cannot be found or stored: the answer says so.
//! A cancelled command is answered at once, and its changes are found all the same: see
//! [`after_cancel`]. What a rule hides from the caller is not copied, and named only where it is
//! lost. Two commands at once do not report the same change twice; which of them made it is then
//! not known.

mod after_cancel;
mod attribution;
mod background;
mod checkpoint;
mod compare;
mod crash_recovery;
mod git;
mod ignored;
mod peers;
mod report;
mod repositories;
mod scope;

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use haft_host::{Copies, ExtraPaths, Host, Located, Snapshot, SurveyError, TreeScan, Walk};
use haft_types::{CallId, EntryKind, Follow, HostPath, Outcome, Place, Receipt, Status};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use self::{
    attribution::Claims,
    background::{Behind, Gap},
    checkpoint::Down,
    compare::{Change, changes, receipts, uncovered},
    git::Known,
    report::ChangeReport,
    repositories::{Bare, InUse, Repositories},
    scope::{named, past, roots},
};
pub use self::{
    crash_recovery::CrashedRun,
    peers::{Peer, PeerCall, Peers},
};
use crate::{Call, PinGuard, PreImages, Session, call::cancelled::Stopping};

/// The limits of the scans around a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffLimits {
    /// Maximum number of files of the workspace, and maximum number of folders. Above it, only Git
    /// repositories are watched.
    pub files: usize,
    /// Maximum size of a file that is copied, in bytes.
    pub file_bytes: u64,
    /// Maximum number of files that git ignores and that are scanned.
    pub ignored_files: usize,
    /// Maximum size of the copies of those, in bytes.
    pub ignored_bytes: u64,
}

impl Default for DiffLimits {
    fn default() -> Self {
        Self { files: 20_000, file_bytes: 4 << 20, ignored_files: 2_000, ignored_bytes: 64 << 20 }
    }
}

/// Longest that one look at all files may take.
const WITHIN: Duration = Duration::from_secs(20);
/// Longest that the answer of a cancelled command waits for it; then it goes on beside the session.
const WAITS_CANCELLED: Duration = Duration::from_millis(50);
/// Longest that the answer of a command waits for it whose time was over.
const WAITS_TIMED_OUT: Duration = Duration::from_millis(300);

/// How often a process whose command runs tells that it lives.
const SIGN: Duration = Duration::from_secs(1);

/// What is said where keeping it broke off.
const NOT_KEPT: &str = "what the command changed could not be kept";

/// Most bytes of a file that is read for its hash alone.
const HASHED: u64 = 1 << 30;

/// What a session knows of the files of its workspace.
#[derive(Default)]
pub(crate) struct Watch {
    state: tokio::sync::Mutex<State>,
    /// The commands that run now.
    open: Mutex<Vec<Weak<Open>>>,
    /// Held by who looks at what a command did, until that is told.
    telling: tokio::sync::Mutex<()>,
    /// Looks that go on after the answer of their command.
    late: after_cancel::Late,
    /// Since the last command, while a job runs.
    gap: Mutex<Option<Gap>>,
    /// The same where only repositories are looked after.
    behind: Mutex<Option<Behind>>,
    /// The repositories that commands, and jobs behind them, may change.
    snapshots: Mutex<Vec<Weak<Snapshot>>>,
}

#[derive(Default)]
struct State {
    /// True once nothing is looked at any more, which was said then.
    off: bool,
    last: Arc<TreeScan>,
    /// How often it was looked, one after the other.
    looks: u64,
    copies: Option<Arc<dyn Copies>>,
    down: Down,
}

/// A command that runs, or is about to.
struct Open {
    /// The number of the look before it; none before that.
    looked: OnceLock<u64>,
    claims: Mutex<Claims>,
    images: Arc<dyn PreImages>,
}

impl Open {
    fn of(images: &Arc<dyn PreImages>) -> Self {
        Self { looked: OnceLock::new(), claims: Mutex::default(), images: Arc::clone(images) }
    }
}

/// A command that is about to run, or the time between two commands.
pub(crate) struct Watched {
    watch: Arc<Watch>,
    from: From,
    /// True for the time between two commands.
    is_gap: bool,
    signs: Option<Signs>,
    /// What is to be said of the looks.
    notes: Vec<String>,
}

/// The look that something begins with, and how it was looked.
struct From {
    watching: DiffLimits,
    host: Arc<dyn Host>,
    walk: Walk,
    /// What the words of a command name.
    named: ExtraPaths,
    before: Arc<TreeScan>,
    /// The number of that look.
    looked: u64,
    copies: Arc<dyn Copies>,
    /// What others change meanwhile.
    open: Arc<Open>,
    images: Arc<dyn PreImages>,
    /// When it was looked.
    since: Instant,
    /// The repositories as they were then.
    repositories: Repositories,
}

/// A look at the files.
struct Looked {
    survey: Arc<TreeScan>,
    /// How many there were, with it.
    number: u64,
    /// Where the copies are that it names.
    copies: Arc<dyn Copies>,
    at: Instant,
}

/// Tells again and again that haft lives while a command runs. Dropped before the command was looked
/// after, it leaves what the next process of the session needs for that.
struct Signs {
    task: JoinHandle<()>,
    copies: Arc<dyn Copies>,
    ended: bool,
}

impl Signs {
    fn of(copies: Arc<dyn Copies>) -> Self {
        let of = Arc::clone(&copies);
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(SIGN).await;
                of.lives();
            }
        });
        Self { task, copies, ended: false }
    }

    /// All that the command changed is told.
    fn end(mut self, call: &CallId) {
        checkpoint::end(&*self.copies, call);
        self.ended = true;
    }
}

impl Drop for Signs {
    fn drop(&mut self) {
        self.task.abort();
        if !self.ended {
            self.copies.stay();
        }
    }
}

/// What came of looking at the files before a command.
pub(crate) enum Begun {
    Watched(Box<Watched>),
    /// Only repositories are looked after.
    Bare(Box<Bare>),
    /// Nothing is looked at.
    Off,
}

impl Begun {
    /// Looks after repositories alone; `note` says why at nothing else.
    async fn bare(
        watch: &Arc<Watch>,
        call: &Call,
        host: &Arc<dyn Host>,
        note: Option<String>,
    ) -> Self {
        Self::Bare(Box::new(Bare::begin(watch, call, host, note).await))
    }
}

/// Reports whether two looks count the same of what they do not go into.
fn is_same(before: &TreeScan, after: &TreeScan) -> bool {
    (&before.passed, &before.repositories) == (&after.passed, &after.repositories)
        && (&before.listed, &before.others) == (&after.listed, &after.others)
        && ignored::is_same(before, after)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    /// Looks at the files before a command.
    pub(crate) async fn begin(self: &Arc<Self>, call: &Call, watching: DiffLimits) -> Begun {
        let host = call.cx.dispatcher.host.clone();
        let mut state = self.state.lock().await;
        if host.surveys().is_none() && host.shell().is_none() {
            return Begun::Off;
        }
        if state.off {
            drop(state);
            return Begun::bare(self, call, &host, None).await;
        }
        let images = call.cx.session().pre_images();
        // What others do from here on may be found by the look, or not.
        let (open, in_use, gap) = (Arc::new(Open::of(&images)), InUse::of(self), self.gap());
        let (alone, since) = (self.runs(&open, gap.as_ref()), Instant::now());
        let (walk, named) = (scope::of(call, &*host), named(call));
        let of = (&walk, &named);
        let (before, copies) = match state.look_for(call, &*host, of, watching, &*images).await {
            Ok(looked) => looked,
            Err(SurveyError::Stopped) => {
                *locked(&self.gap) = gap;
                return Begun::Off;
            }
            Err(error) => {
                let note = state.fail(&error, &*host);
                drop(state);
                self.narrow(gap);
                return Begun::bare(self, call, &host, Some(note)).await;
            }
        };
        past(call, &*host, before.began).await;
        locked(&open.claims).looked();
        let looked = *open.looked.get_or_init(|| state.looks);
        if let Some(gap) = gap {
            let (survey, copies) = (Arc::clone(&before), Arc::clone(&copies));
            self.tell_gap(gap, Looked { survey, number: looked, copies, at: since }, &call.cx)
                .await;
        }
        state.down.before(&*copies, (&call.request.id, call.tool()), &before, alone);
        let (repositories, notes) = Repositories::copy_seen(call, &host, &before, &in_use).await;
        // What was cancelled is looked at all the same.
        let walk = Walk { stop: CancellationToken::new(), ..walk };
        let signs = Some(Signs::of(Arc::clone(&copies)));
        // What else stands in those folders is only what was found there before.
        let named = ExtraPaths { folders: Vec::new(), ..named };
        let from = From {
            watching,
            host,
            walk,
            named,
            before,
            looked,
            copies,
            open,
            images,
            since,
            repositories,
        };
        let watched = Watched { watch: Arc::clone(self), from, is_gap: false, signs, notes };
        Begun::Watched(Box::new(watched))
    }

    /// Takes note of a command; reports whether no other one runs.
    fn runs(&self, open: &Arc<Open>, gap: Option<&Gap>) -> bool {
        let mut all = locked(&self.open);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(open));
        all.len() == 1 + usize::from(gap.is_some())
    }

    /// Adds to an answer what no model was told yet; that of a cancelled call may go unheard.
    pub(crate) fn report_pending(&self, call: &crate::Cx, outcome: &mut Outcome) {
        if !call.stop.is_cancelled() {
            // People were told of it when it was found.
            outcome.content.extend(self.late.take().iter().map(|line| format!("[{line}]").into()));
        }
    }

    /// Says that nobody hears the answers of cancelled calls.
    pub(crate) fn cancelled_are_unheard(&self) {
        self.late.cancelled_are_unheard();
    }

    /// Waits for the looks that go on after their commands.
    pub(crate) async fn finished(&self) {
        self.late.finished().await;
    }

    /// Lets go of what is known of the files; nothing runs any more.
    pub(crate) async fn close(&self) {
        self.finished().await;
        let mut state = self.state.lock().await;
        drop(self.gap());
        *state = State { looks: state.looks, ..State::default() };
    }

    /// Takes note of changes that are told, so that no command that runs tells them, too.
    pub(crate) fn claim(&self, receipts: &[Receipt]) {
        self.claim_for(receipts, |_| Some(false));
    }

    /// The same of a command that changed it between two looks of these numbers. Who looked first
    /// after that found it already; who looked in between found some of it, or none.
    fn claim_between(&self, receipts: &[Receipt], (from, to): (u64, u64)) {
        self.claim_for(receipts, |looked| {
            looked.filter(|looked| *looked < to).map(|looked| from < looked)
        });
    }

    fn claim_for(&self, receipts: &[Receipt], early: impl Fn(Option<u64>) -> Option<bool>) {
        if receipts.is_empty() {
            return;
        }
        let open: Vec<Arc<Open>> = locked(&self.open).iter().filter_map(Weak::upgrade).collect();
        for open in open {
            if let Some(early) = early(open.looked.get().copied()) {
                locked(&open.claims).add(receipts, early, &*open.images);
            }
        }
    }

    /// Reports whether a command runs: it may go on with whatever is changed now.
    pub(crate) fn is_open(&self) -> bool {
        locked(&self.open).iter().any(|open| open.strong_count() > 0)
    }
}

/// Says that nothing is looked at, of this command or from here on, and what follows from that.
fn off(error: &SurveyError, for_good: bool) -> String {
    let hint = match error {
        SurveyError::TooMany(_) => " (shell.changes.files in the settings)",
        _ => "",
    };
    let what = if for_good {
        "what commands change is not looked for in this session"
    } else {
        "what this command changed was not looked for"
    };
    format!("{what}: {error}{hint}; haft undo does not take it back")
}

impl State {
    /// Takes note that a look failed: for good where the next one would, too. Gives what is told.
    fn fail(&mut self, error: &SurveyError, host: &dyn Host) -> String {
        let off = !matches!(error, SurveyError::Io(_)) || host.surveys().is_none();
        *self = Self { off, looks: self.looks, ..Self::default() };
        self::off(error, off)
    }

    /// Looks at the files before a call.
    async fn look_for(
        &mut self,
        call: &Call,
        host: &dyn Host,
        of: (&Walk, &ExtraPaths),
        watching: DiffLimits,
        images: &dyn PreImages,
    ) -> Result<(Arc<TreeScan>, Arc<dyn Copies>), SurveyError> {
        let roots = roots(&call.place().roots, &[], host).await?;
        self.look(host, &roots, of, watching, images).await
    }

    /// Looks at the files as they are now.
    async fn look(
        &mut self,
        host: &dyn Host,
        roots: &[Located],
        (walk, named): (&Walk, &ExtraPaths),
        watching: DiffLimits,
        images: &dyn PreImages,
    ) -> Result<(Arc<TreeScan>, Arc<dyn Copies>), SurveyError> {
        let surveys = host.surveys().ok_or_else(|| {
            let text = format!("the host {} cannot look at whole folders", host.name());
            std::io::Error::other(text)
        })?;
        let limits = watching.limits();
        loop {
            let copies = match &self.copies {
                Some(copies) => Arc::clone(copies),
                None => images.copies()?,
            };
            if self.copies.replace(Arc::clone(&copies)).is_none() {
                self.down = Down::default();
            }
            let known = Arc::clone(&self.last);
            let is_first = known.nodes.is_empty();
            let of = (walk.clone(), named);
            let survey = surveys.survey(roots, known, copies.clone(), limits, of).await?;
            if !is_first && compare::is_wasteful(&survey, copies.used()) {
                // Most of what takes the room is of no use any more.
                (self.copies, self.last) = (None, Arc::default());
                continue;
            }
            self.last = Arc::new(survey);
            self.looks += 1;
            return Ok((Arc::clone(&self.last), copies));
        }
    }
}

/// What looking at the files after a command gave.
#[derive(Default)]
struct Comparison {
    receipts: Vec<Receipt>,
    /// What programs read; none where nothing changed.
    data: Option<serde_json::Value>,
    /// What is said of it, a line each.
    lines: Vec<String>,
}

impl Comparison {
    fn told(text: impl Into<String>) -> Self {
        Self { lines: vec![text.into()], ..Self::default() }
    }

    /// Adds it to what the command gave back.
    fn add_to(self, outcome: &mut Outcome) {
        if let (Some(data), Some(changes)) =
            (outcome.data.as_mut().and_then(serde_json::Value::as_object_mut), self.data)
        {
            data.insert("changes".to_owned(), changes);
        }
        for line in &self.lines {
            outcome.note(line);
        }
        outcome.receipts.extend(self.receipts);
    }
}

impl Watched {
    /// Looks at the files after the command, and tells what became of them. Where the answer is not
    /// to wait for that, it is told later.
    pub(crate) async fn end(mut self, call: &crate::Cx, outcome: &mut Outcome, cancelled: bool) {
        let watch = self.watch.clone();
        let signs = self.signs.take();
        for note in std::mem::take(&mut self.notes) {
            outcome.note(&note);
        }
        let mut finding = Box::pin(self.find(call.clone()));
        let waits = match outcome.status {
            _ if cancelled => Some(WAITS_CANCELLED),
            Status::TimedOut => Some(WAITS_TIMED_OUT),
            _ => None,
        };
        let found = match waits {
            Some(waits) => tokio::time::timeout(waits, &mut finding).await.ok(),
            None => Some((&mut finding).await),
        };
        watch.report_pending(call, outcome);
        if let Some(found) = found {
            if call.stop.is_cancelled() {
                watch.late.cancelled(&call.call, &found.lines);
            }
            found.add_to(outcome);
            if let Some(signs) = signs {
                signs.end(&call.call);
            }
        } else {
            outcome.note(after_cancel::LATER);
            watch.late.follow(call.clone(), signs, finding);
        }
    }

    /// Finds what became of the files.
    async fn find(self, call: crate::Cx) -> Comparison {
        locked(&self.from.open.claims).looks();
        // What another command did is told before this one looks, or looked for after it.
        let watch = self.watch.clone();
        let _telling = watch.telling.lock().await;
        let looked = match self.look(&call).await {
            Ok(looked) => looked,
            Err((error, for_good)) => return Comparison::told(off(&error, for_good)),
        };
        let jobs = background::ran(call.session(), self.from.since, Some(&call.call));
        let shared = self.runs_beside();
        self.watch.begin_gap(&self, &looked, (call.session(), None), &call.place);
        let credit = call.keeper.as_ref().and_then(|keeper| keeper.credited());
        let of = (call.session(), &*call.place);
        let mut found = self.compare(looked, of, shared).await;
        if let Some(text) = found.lines.first_mut().filter(|_| found.data.is_some())
            && let Some(who) = credit.or_else(|| background::may_be(&jobs))
        {
            *text = format!("{who}: {text}");
        }
        if let Some(serde_json::Value::Object(data)) = &mut found.data
            && !jobs.is_empty()
        {
            let ids: Vec<&str> = jobs.iter().map(|job| job.id()).collect();
            data.insert("while_jobs".to_owned(), ids.into());
        }
        found
    }

    /// Finds what the files are now that they were not before.
    async fn compare(
        self,
        looked: Looked,
        (session, place): (&Session, &Place),
        shared: bool,
    ) -> Comparison {
        let Looked { survey: after, number: looked, .. } = looked;
        let mut claims = std::mem::take(&mut *locked(&self.from.open.claims));
        let beside = self.beside(&after, place, session).await;
        for other in &beside {
            claims.add_outside(&other.receipts, &*self.from.images);
        }
        let born = |path: &HostPath| self.from.host.surveys()?.born(path);
        let covers = |path: &HostPath| self.covers(path);
        let (before, others, images) =
            (self.from.before.clone(), claims.paths(), self.from.images.clone());
        let known = move || Known::of(before, after, &others, &*images, shared);
        let known = tokio::task::spawn_blocking(known).await;
        let Ok(Known { before, after, held }) = known else { return Comparison::told(NOT_KEPT) };
        let mut changes = changes(&before, &after, (&claims, &covers), &born);
        self.leave_ignored(&before, &after, &mut changes, shared || self.is_gap).await;
        let same = is_same(&before, &after);
        let rescued = self.from.rescue((session, place), &after).await;
        if changes.is_empty() && same && rescued.is_empty() {
            return Comparison::default();
        }
        for change in &mut changes {
            self.look_into_big(change).await;
        }
        let (copies, images) = (self.from.copies.clone(), self.from.images.clone());
        let (host, watching) = (self.from.host.clone(), self.from.watching);
        let work = move || {
            let mut kept = receipts(&changes, &*copies, &*images, host.name(), watching);
            kept.held.extend(held);
            let is_gone = |path: &HostPath| host.surveys().is_some_and(|all| all.is_gone(path));
            kept.uncovered = uncovered(&before, &after, &changes, is_gone);
            compare::note_made(&before, &mut kept.receipts);
            if shared {
                compare::share(&changes, &*copies, &*images, &mut kept);
            }
            kept
        };
        let Ok(mut kept) = tokio::task::spawn_blocking(work).await else {
            return Comparison::told(NOT_KEPT);
        };
        kept.uncovered.retain(|(path, _)| !rescued.covers(path));
        let told = ChangeReport::of(&kept, place);
        let (mut text, mut data) = (told.text(), told.data());
        if text.is_empty() && rescued.is_empty() {
            return Comparison::default();
        }
        peers::report(&beside, &kept.receipts, &mut text, &mut data);
        let made_room = super::recorder::made_room(self.from.images.let_go());
        let told = Some(text).filter(|text| !text.is_empty());
        let lines = told.into_iter().chain(rescued.lines).chain(made_room).collect();
        self.watch.claim_between(&kept.receipts, (self.from.looked, looked));
        kept.receipts.extend(rescued.receipts);
        Comparison { receipts: kept.receipts, data: Some(data), lines }
    }

    /// Reports whether a look finds what stands at a path.
    fn covers(&self, path: &HostPath) -> bool {
        let Some(root) = self.from.before.roots.iter().find(|root| path.is_within(root)) else {
            return false;
        };
        let depth = root.names().count();
        let mut above = std::iter::successors(Some(path.clone()), HostPath::parent);
        !path.names().skip(depth).any(|name| name == b".git")
            && above.all(|path| path.names().count() <= depth || (self.from.walk.allowed)(&path))
    }

    /// Reports whether another command runs.
    fn runs_beside(&self) -> bool {
        let open = locked(&self.watch.open);
        open.iter().filter_map(Weak::upgrade).any(|other| !Arc::ptr_eq(&other, &self.from.open))
    }

    /// Works the hash of a file out that is too big to be copied, where its change can be taken back
    /// without a copy; where only its rights are others, it is kept as it is now.
    async fn look_into_big(&self, change: &mut Change) {
        let (big, of_rights) = (change.is_big(HASHED), change.is_of_rights());
        if !big && !of_rights {
            return;
        }
        let fs = self.from.host.fs();
        let Ok(at) = fs.locate(&change.path, Follow::No).await else { return };
        if at.real != change.path {
            return;
        }
        let hash = if of_rights {
            super::recorder::keep(&*self.from.images, fs, &at).await.map(|blob| blob.hash)
        } else {
            super::recorder::hash(fs, &at).await
        };
        if let Ok(hash) = hash {
            change.know(hash);
        }
    }

    /// Looks at the files once nothing of the call runs any more.
    async fn look(&self, call: &crate::Cx) -> Result<Looked, (SurveyError, bool)> {
        let mut state = self.watch.state.lock().await;
        // Whoever begins then looks behind this.
        call.session().map.get::<Stopping>().of(&call.call).await;
        self.look_in(&mut state, &call.place).await
    }

    async fn look_in(
        &self,
        state: &mut State,
        place: &Place,
    ) -> Result<Looked, (SurveyError, bool)> {
        let (host, at) = (&*self.from.host, Instant::now());
        let looked = match roots(&place.roots, &self.from.before.roots, host).await {
            Ok(roots) => {
                let of = (&self.from.walk, &self.from.named);
                state.look(host, &roots, of, self.from.watching, &*self.from.images).await
            }
            Err(error) => Err(error.into()),
        };
        match looked {
            Ok((survey, copies)) => Ok(Looked { survey, number: state.looks, copies, at }),
            Err(error) => {
                state.fail(&error, host);
                Err((error, state.off))
            }
        }
    }
}

fn found_later(call: &CallId, line: &str) -> String {
    format!("by {call}, found after its end: {line}")
}

/// Receipts of what a command changed.
#[derive(Default)]
struct KeptReceipts {
    receipts: Vec<Receipt>,
    /// What was there before, and not below the folders: it has no receipt, since to take it back
    /// would be to lose it.
    moved_in: Vec<(HostPath, EntryKind)>,
    /// What cannot be taken back, and why.
    lost: Vec<(HostPath, String)>,
    /// What is not covered, and what became of it.
    uncovered: Vec<(HostPath, Cow<'static, str>)>,
    /// What is kept makes no room for what is kept beside it.
    held: Vec<PinGuard>,
}

/// How one path changed.
type Changes = Vec<Change>;
