//! Crash recovery: the next process of the session finds the changes of commands that ran when haft
//! was killed.
//!
//! **Invariant:** a change that is later than the command can have run is not reported as its
//! doing. Where the time cannot be known, as for a deleted file, it is: restoring that takes
//! nothing away.

use std::{io, sync::Arc, time::Duration};

use haft_host::{ExtraPaths, FileKind, Located, SurveyError};
use haft_types::{CallId, Follow, HostPath, Receipt, ReceiptAction};
use tokio_util::sync::CancellationToken;

use super::{
    ChangeReport, DiffLimits, Watch,
    attribution::Claims,
    checkpoint,
    compare::{self, Change},
    git::Known,
    repositories,
    scope::walk,
};
use crate::{CrashLeftovers, Dispatcher};

/// How long after the last sign of life of haft its commands may go on: until the next sign would
/// have come, and they are stopped.
const GOES_ON: Duration = Duration::from_secs(3);

/// The changes of commands that ran when haft was killed.
pub struct CrashedRun {
    /// The command; of several that ran, the first one, which stands for all.
    pub call: CallId,
    /// The others.
    pub others: Vec<CallId>,
    /// The receipts of their changes.
    pub receipts: Vec<Receipt>,
    /// The report, a line each; empty where they changed nothing.
    pub lines: Vec<String>,
    /// Once this is dropped, it cannot be found again.
    _left: CrashLeftovers,
}

impl Dispatcher {
    /// Finds the changes of commands that ran when an earlier process of the session was killed.
    /// The caller holds the log.
    ///
    /// `ended` says whether the log has the end of a call. `told` gives the changes that the log
    /// records since the begin of a call.
    ///
    /// # Errors
    /// When the leftovers of the process cannot be read.
    pub async fn killed(
        &self,
        watching: DiffLimits,
        ended: &(dyn Fn(&CallId) -> bool + Sync),
        told: &(dyn Fn(&CallId) -> Vec<Receipt> + Sync),
    ) -> io::Result<Vec<CrashedRun>> {
        let mut all = Vec::new();
        for left in self.session.pre_images().left()? {
            let Some(open) = checkpoint::open(&left.text, ended) else { continue };
            let (call, others) = (open.call.clone(), open.others.clone());
            let mut claims = Claims::default();
            claims.add(&told(&call), false, &*self.session.pre_images());
            // Any of them may have been made before the look before the command.
            claims.looked();
            let found = self.since(open, &left, watching, &claims).await;
            let (receipts, lines) = found.unwrap_or_else(|error| {
                (Vec::new(), vec![format!("what it changed cannot be found: {error}")])
            });
            if ended(&call) {
                let late = &self.session.map.get::<Watch>().late;
                for line in &lines {
                    late.add(super::found_later(&call, line));
                }
            }
            all.push(CrashedRun { call, others, receipts, lines, _left: left });
        }
        Ok(all)
    }

    /// Restores what repositories lost by a command that ran when any process of haft was killed,
    /// or stores it for undo. Returns the receipts and the report. Receipts are only given where
    /// the command `is_known`.
    pub async fn rescued(&self, is_known: bool) -> (Vec<Receipt>, Vec<String>) {
        let of = (&*self.session, &*self.place);
        let rescued = repositories::after_kill(of, &self.host, is_known).await;
        (rescued.receipts, rescued.lines)
    }

    /// What changed since the look before a command.
    async fn since(
        &self,
        open: checkpoint::Open,
        left: &CrashLeftovers,
        watching: DiffLimits,
        claims: &Claims,
    ) -> Result<(Vec<Receipt>, Vec<String>), SurveyError> {
        let host = &*self.host;
        let surveys = host.surveys().ok_or(io::ErrorKind::Unsupported).map_err(io::Error::from)?;
        let mut roots: Vec<Located> = Vec::new();
        for root in &open.before.roots {
            let root = host.fs().locate(root, Follow::No).await?;
            roots.extend(Some(root).filter(|root| root.kind == FileKind::FOLDER));
        }
        let walk = walk(&self.permissions(), &open.tool, host.style(), CancellationToken::new());
        let limits = watching.limits();
        let mut before = open.before;
        // The packs may be gone, and are not put back yet.
        before.objects.add(repositories::left_objects(&self.host, &self.place).await);
        let before = Arc::new(before);
        let named = ExtraPaths::default();
        let looked =
            surveys.survey(&roots, before.clone(), left.copies.clone(), limits, (walk, &named));
        let after = Arc::new(looked.await?);
        let (others, images) = (claims.paths(), self.session.pre_images());
        let known = move || Known::of(before, after, &others, &*images, false);
        let known = tokio::task::spawn_blocking(known).await.map_err(io::Error::other)?;
        let Known { before, after, held: _held } = known;
        let born = |path: &HostPath| surveys.born(path);
        let covers = |_: &HostPath| false;
        let mut changes = compare::changes(&before, &after, (claims, &covers), &born);
        let until = left.lived + i128::try_from(GOES_ON.as_nanos()).unwrap_or(0);
        let later = |change: &Change| is_later(change, until, &born);
        let since: Vec<HostPath> =
            changes.iter().filter(|change| later(change)).map(|one| one.path.clone()).collect();
        changes.retain(|change| !since.contains(&change.path));
        let (images, name) = (self.session.pre_images(), host.name());
        let mut kept = compare::receipts(&changes, &*left.copies, &*images, name, watching);
        let why = || "it changed after haft was killed".to_owned();
        kept.lost.extend(since.into_iter().map(|path| (path, why())));
        let told = ChangeReport::of(&kept, &self.place).text();
        Ok((kept.receipts, if told.is_empty() { Vec::new() } else { vec![told] }))
    }
}

/// Reports whether a path changed when no command ran any more.
fn is_later(change: &Change, until: i128, born: compare::BornAt<'_>) -> bool {
    let Some(after) = &change.after else { return false };
    let is_folder = after.kind == haft_types::EntryKind::Folder;
    let made = change.action == ReceiptAction::Created && is_folder;
    // What is put into a folder later changes it, too.
    let at = if made { born(&change.path).map(|born| born.at) } else { None };
    at.unwrap_or(after.stamp.changed) > until
}
