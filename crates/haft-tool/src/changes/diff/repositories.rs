//! Git repositories that a command damaged. In mode auto, where nobody was asked, they are restored
//! at once. Otherwise they are reported as lost, with receipts by which undo restores them.
//!
//! **Invariant:** what a person allowed to be removed stays removed, but can be restored. Refs that
//! were lost alone are reported with what they pointed to.

use std::{
    io::{Read, Seek, SeekFrom},
    sync::{Arc, Mutex, Weak},
};

use haft_host::{CopyAt, Host, Loss, Missing, Objects, Snapshot, TreeScan};
use haft_policy::{Mode, Verdict};
use haft_types::{
    Access, Blob, EntryKind, Follow, Hash, HostPath, Outcome, Place, Receipt, ReceiptAction,
    Rights, Target,
};

use super::{From, Watch, background::Behind, locked};
use crate::{Call, Cx, PinGuard, PreImages, Session, call::cancelled::Stopping, changes::recorder};

/// Bytes that are kept at once.
const PIECE: usize = 1 << 20;

/// Repositories as they were before a command.
#[derive(Clone, Default)]
pub(super) struct Repositories {
    snapshot: Arc<Snapshot>,
    /// The folders of the workspace.
    roots: Arc<[HostPath]>,
    /// What the words of the command change, as written and with links resolved.
    named: Arc<[HostPath]>,
    /// Whether somebody was asked, and said yes.
    asked: bool,
}

/// The snapshots that commands of a session have taken, and jobs may go on with what they look after.
///
/// While one is held, what is gone goes from no copy; and who begins looks after the same, whatever is
/// left of it by then.
pub(super) struct InUse<'a> {
    earlier: Vec<Arc<Snapshot>>,
    all: &'a Mutex<Vec<Weak<Snapshot>>>,
}

impl<'a> InUse<'a> {
    pub(super) fn of(watch: &'a Watch) -> Self {
        let mut all = locked(&watch.snapshots);
        all.retain(|snapshot| snapshot.strong_count() > 0);
        let earlier = all.iter().filter_map(Weak::upgrade).collect();
        drop(all);
        Self { earlier, all: &watch.snapshots }
    }
}

/// What came of a look at them.
#[derive(Default)]
pub(super) struct Rescued {
    pub(super) lines: Vec<String>,
    pub(super) receipts: Vec<Receipt>,
    pub(super) held: Vec<PinGuard>,
    /// Of these all was put back, or has a receipt.
    covered: Vec<HostPath>,
}

impl Rescued {
    /// Reports whether nothing happened.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.receipts.is_empty()
    }

    /// Reports whether what became of a path is told.
    pub(super) fn covers(&self, path: &HostPath) -> bool {
        self.covered.iter().any(|git| path.is_within(git))
    }
}

impl Repositories {
    /// Copies those that a look came by, and those around its roots.
    pub(super) async fn copy_seen(
        call: &Call,
        host: &Arc<dyn Host>,
        survey: &TreeScan,
        in_use: &InUse<'_>,
    ) -> (Self, Vec<String>) {
        let gits = survey.repositories.keys().cloned().collect();
        Self::copy(call, host, &survey.roots, (gits, in_use)).await
    }

    /// Copies what is new in these repositories of the workspace, and in that which it lies in. Says what
    /// cannot be kept.
    async fn copy(
        call: &Call,
        host: &Arc<dyn Host>,
        roots: &[HostPath],
        (mut gits, in_use): (Vec<HostPath>, &InUse<'_>),
    ) -> (Self, Vec<String>) {
        if host.repositories().is_none() {
            return (Self::default(), Vec::new());
        }
        gits.sort();
        let (host, all, earlier) = (Arc::clone(host), roots.to_owned(), in_use.earlier.clone());
        let copied = tokio::task::spawn_blocking(move || {
            let around: Vec<HostPath> =
                all.iter().filter_map(|root| around(&*host, root)).collect();
            let new = around.into_iter().filter(|git| !gits.contains(git));
            let gits: Vec<HostPath> = new.chain(gits.clone()).collect();
            let mut snapshot = host.repositories().map(|all| all.copy(&gits)).unwrap_or_default();
            for one in &earlier {
                snapshot.go_on(one);
            }
            snapshot
        });
        // A thread that ended badly leaves no copy.
        let mut snapshot = copied.await.unwrap_or_default();
        let notes = std::mem::take(&mut snapshot.notes);
        let asked = call.ruling.as_ref().is_some_and(|ruling| ruling.verdict == Verdict::Ask);
        let (snapshot, roots) = (Arc::new(snapshot), roots.into());
        locked(in_use.all).push(Arc::downgrade(&snapshot));
        (Self { snapshot, roots, named: named(call), asked }, notes)
    }

    /// The same for what happens behind the command: nobody was asked for that.
    pub(super) fn later(&self) -> Self {
        let (snapshot, roots) = (Arc::clone(&self.snapshot), Arc::clone(&self.roots));
        Self { snapshot, roots, ..Self::default() }
    }

    /// Reports whether the words of the command name a repository, and may take it away.
    fn is_meant(&self, git: &HostPath) -> bool {
        let (Some(top), roots) = (git.parent(), &self.roots) else { return false };
        let inner = !roots.contains(&top);
        let within = |path: &HostPath| {
            top.is_within(path) && roots.iter().all(|root| path.is_within(root) && path != root)
        };
        let meant = |path: &HostPath| {
            let is_it = path == git || *path == top || path.is_within(git);
            (self.asked && is_it) || (inner && within(path))
        };
        self.named.iter().any(meant)
    }
}

/// The `.git` of the folder in which a root lies, or of the root itself.
fn around(host: &dyn Host, root: &HostPath) -> Option<HostPath> {
    let gits = std::iter::successors(Some(root.clone()), HostPath::parent);
    let mut gits = gits.filter_map(|folder| folder.join_bytes(b".git").ok());
    let surveys = host.surveys()?;
    gits.find(|git| !surveys.is_gone(git))
}

/// The paths that a command changes by its words.
fn named(call: &Call) -> Arc<[HostPath]> {
    let effects = call.plan().map(|plan| &plan.effects[..]).unwrap_or_default();
    let located = call.located.iter().chain(std::iter::repeat(&None));
    let mut paths = Vec::new();
    for (effect, located) in effects.iter().zip(located) {
        let (Target::Path { path, .. } | Target::Tree { root: path }) = &effect.target else {
            continue;
        };
        if effect.access != Access::Observe {
            paths.push(path.clone());
            paths.extend(located.iter().flatten().map(|at| at.real.clone()));
        }
    }
    paths.into()
}

impl Repositories {
    /// Puts back, or tells, what was lost; some repositories may be at one of these `.git` now.
    pub(super) async fn rescue(
        &self,
        (session, place): (&Session, &Place),
        of: Of<'_>,
        come: Vec<HostPath>,
    ) -> Rescued {
        let mut rescued = Rescued::default();
        if self.snapshot.is_empty() {
            return rescued;
        }
        let snapshot = Arc::clone(&self.snapshot);
        let losses = tokio::task::spawn_blocking(move || snapshot.losses(&come)).await;
        // A thread that ended badly has nothing to tell.
        for loss in losses.unwrap_or_default() {
            let git = place.shown(&loss.git);
            let refs = loss.refs.iter().map(|(name, id)| {
                format!("{name} is gone from {git}; it was at {}", &id[..id.len().min(12)])
            });
            rescued.lines.extend(refs);
            rescued.lines.extend(loss.overwritten.iter().map(|(name, text)| {
                format!("{name} of {git} was overwritten with what git cannot read; it said {text}")
            }));
            if loss.what.is_empty() {
                loss.acknowledge(false);
            } else if loss.is_along {
                // What it went with is told.
                keep(&loss, of, &mut rescued).await;
            } else if session.permissions().mode == Mode::Auto && !self.is_meant(&loss.git) {
                put_back(loss, of, place, &mut rescued).await;
            } else {
                lose(&loss, of, place, &mut rescued).await;
            }
        }
        rescued
    }
}

impl From {
    /// Looks after the repositories as they are at the look after the command.
    pub(super) async fn rescue(&self, of: (&Session, &Place), after: &TreeScan) -> Rescued {
        let come = after.repositories.keys();
        let come = come.filter(|git| !self.before.repositories.contains_key(*git)).cloned();
        self.repositories.rescue(of, (&*self.host, &*self.images), come.collect()).await
    }
}

/// A command around which only repositories are looked after.
pub(crate) struct Bare {
    watch: Arc<Watch>,
    repositories: Repositories,
    host: Arc<dyn Host>,
    images: Arc<dyn PreImages>,
    notes: Vec<String>,
}

impl Bare {
    /// Looks at the repositories of a workspace whose files are not looked at, which `note` says.
    pub(super) async fn begin(
        watch: &Arc<Watch>,
        call: &Call,
        host: &Arc<dyn Host>,
        note: Option<String>,
    ) -> Self {
        let in_use = InUse::of(watch);
        watch.tell_behind(&call.cx).await;
        let (repositories, notes) =
            Repositories::copy(call, host, &call.place().roots, (Vec::new(), &in_use)).await;
        let (host, images) = (Arc::clone(host), call.cx.session().pre_images());
        let notes = note.into_iter().chain(notes).collect();
        Self { watch: Arc::clone(watch), repositories, host, images, notes }
    }

    /// Looks at them after the command.
    pub(crate) async fn end(self, call: &Cx, outcome: &mut Outcome) {
        // Of what is still being stopped something may run.
        call.session().map.get::<Stopping>().of(&call.call).await;
        // A job that ends meanwhile is looked behind after this, one that has ended by this.
        let _telling = self.watch.telling.lock().await;
        let of = (call.session(), &*call.place);
        let rescued = self.repositories.rescue(of, (&*self.host, &*self.images), Vec::new()).await;
        self.notes.iter().chain(&rescued.lines).for_each(|line| outcome.note(line));
        outcome.receipts.extend(rescued.receipts);
        let behind = Behind::of(self.repositories.later(), self.host, (*call.place).clone());
        self.watch.begin_behind(call.session(), behind, None);
    }
}

/// Looks after the repositories that a killed process left damaged. Where it is not `known` which command
/// that was, undo could not bring them back: then it is left to the session of that command.
pub(super) async fn after_kill(
    (session, place): (&Session, &Place),
    host: &Arc<dyn Host>,
    is_known: bool,
) -> Rescued {
    let mut rescued = Rescued::default();
    if !host.repositories().is_some_and(haft_host::Repositories::has_left) {
        return rescued;
    }
    let images = session.pre_images();
    let (of, roots) = (Arc::clone(host), place.roots.clone());
    let work = move || {
        let left = left(&*of, &roots);
        (left.losses(&[]), left)
    };
    let Ok((losses, _left)) = tokio::task::spawn_blocking(work).await else { return rescued };
    for loss in losses.into_iter().filter(|loss| !loss.what.is_empty()) {
        if session.permissions().mode == Mode::Auto {
            put_back(loss, (&**host, &*images), place, &mut rescued).await;
        } else if is_known {
            lose(&loss, (&**host, &*images), place, &mut rescued).await;
        }
    }
    rescued
}

/// The copies that killed processes left of the repositories of a workspace.
fn left(host: &dyn Host, roots: &[HostPath]) -> Snapshot {
    let gits: Vec<HostPath> = roots.iter().filter_map(|root| around(host, root)).collect();
    host.repositories().map(|all| all.left(roots, &gits)).unwrap_or_default()
}

/// The packs of these copies.
pub(super) async fn left_objects(host: &Arc<dyn Host>, place: &Place) -> Objects {
    if !host.repositories().is_some_and(haft_host::Repositories::has_left) {
        return Objects::default();
    }
    let (host, roots) = (Arc::clone(host), place.roots.clone());
    let packs = tokio::task::spawn_blocking(move || left(&*host, &roots).objects());
    packs.await.unwrap_or_default()
}

/// What is gone, in words.
fn gone(loss: &Loss) -> String {
    match &loss.what[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        all => all.concat(),
    }
}

type Of<'a> = (&'a dyn Host, &'a dyn PreImages);

async fn put_back(mut loss: Loss, of: Of<'_>, place: &Place, rescued: &mut Rescued) {
    let (git, what) = (place.shown(&loss.git).to_string(), gone(&loss));
    let path = loss.git.clone();
    let work = tokio::task::spawn_blocking(move || (loss.put_back(), loss)).await;
    let Ok((done, loss)) = work else { return };
    match done {
        Ok(()) => {
            loss.acknowledge(true);
            rescued.covered.push(path);
            rescued.lines.push(format!(
                "{git} lost {what}, and git could not use it; haft put back what was missing"
            ));
        }
        Err(error) => {
            rescued.lines.push(format!("{git} could not be put back: {error}"));
            lose(&loss, of, place, rescued).await;
        }
    }
}

/// Tells a loss, and keeps what is missing for undo.
async fn lose(loss: &Loss, of: Of<'_>, place: &Place, rescued: &mut Rescued) {
    let failed = keep(loss, of, rescued).await;
    let (git, what) = (place.shown(&loss.git), gone(loss));
    rescued.lines.push(match failed {
        None => format!("{git} lost {what}; haft undo brings it back"),
        Some(error) => match loss.keep() {
            Ok(folder) => format!(
                "{git} lost {what}; haft undo cannot bring all of it back ({error}), but a copy is in {}",
                folder.display()
            ),
            Err(_) => format!("{git} lost {what}; haft undo cannot bring all of it back: {error}"),
        },
    });
}

/// Gives receipts of what is missing; the last error, where some of it cannot be kept.
async fn keep(loss: &Loss, of: Of<'_>, rescued: &mut Rescued) -> Option<std::io::Error> {
    let mut failed = None;
    // What was in a folder went before it.
    for missing in loss.missing.iter().rev() {
        match receipt(missing, of, rescued).await {
            Ok(receipt) => rescued.receipts.push(receipt),
            Err(error) => failed = Some(error),
        }
    }
    loss.acknowledge(false);
    rescued.covered.push(loss.git.clone());
    failed
}

async fn receipt(
    missing: &Missing,
    (host, images): Of<'_>,
    rescued: &mut Rescued,
) -> std::io::Result<Receipt> {
    let name = host.name().to_owned();
    let mut receipt = Receipt::new(name, missing.path.clone(), ReceiptAction::Deleted);
    receipt.kind = missing.kind;
    receipt.rights = Some(Rights::of_mode(missing.mode));
    let blob = match (&missing.copy, missing.kind) {
        (CopyAt::At(_), EntryKind::Folder) => return Ok(receipt),
        (CopyAt::At(copy), kind) => {
            let copy = HostPath::new(copy.as_os_str().as_encoded_bytes(), host.style())
                .map_err(std::io::Error::other)?;
            let at = host.fs().locate(&copy, Follow::No).await?;
            if kind == EntryKind::Link {
                let surveys = host.surveys().ok_or(std::io::ErrorKind::Unsupported)?;
                let target = surveys.target(&at).await?;
                let hash = Hash::of(&target);
                images.put(&target.into(), hash)?
            } else {
                recorder::keep(images, host.fs(), &at).await?
            }
        }
        (CopyAt::Text(text), _) => {
            let hash = Hash::of(text);
            images.put(&text.clone().into(), hash)?
        }
        (CopyAt::Open(file), _) => kept(file, images)?,
    };
    rescued.held.push(images.hold(blob.hash));
    receipt.before = Some(blob.hash);
    receipt.pre_image = Some(blob);
    Ok(receipt)
}

/// Keeps what a file holds that has no name any more, piece by piece.
fn kept(mut file: impl Read + Seek, images: &dyn PreImages) -> std::io::Result<Blob> {
    let length = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    let mut keeping = images.begin(length)?;
    let mut piece = vec![0; PIECE];
    loop {
        let got = file.read(&mut piece)?;
        if got == 0 {
            return keeping.finish();
        }
        keeping.push(&piece[..got])?;
    }
}
