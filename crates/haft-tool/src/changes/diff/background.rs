//! Finds changes that happen while a background job runs and no command does: no other scan would
//! report them.
//!
//! **Invariant:** such a gap begins with the scan after a command, where a job still runs. It ends
//! with the scan before the next command, or with the scan at the end of a job. Its changes are
//! reported as made while the job ran: others may have made them. A command that ran beside a job
//! reports the changes that are found after it, and names the job. Which of the two made them is
//! not known.

use std::sync::{Arc, OnceLock};

use haft_host::{ExtraPaths, Host};
use haft_types::{Body, CallId, Level, Place};
use tokio::time::Instant;

use super::{
    Comparison, From, Looked, Open, Watch, Watched, locked, off,
    repositories::{Repositories, Rescued},
};
use crate::{Cx, Job, Jobs, PinGuard, Session};

/// Most jobs that are named.
const NAMED: usize = 3;

/// The time since the look after a command.
pub(super) struct Gap {
    from: From,
    place: Place,
}

impl Watch {
    /// Nothing but repositories is looked after from here on: a gap goes on for them alone.
    pub(super) fn narrow(&self, gap: Option<Gap>) {
        if let Some(Gap { from, place }) = gap {
            let since = from.since;
            let behind = Behind { repositories: from.repositories, host: from.host, place, since };
            *locked(&self.behind) = Some(behind);
        }
    }

    /// The gap until now, which ends.
    pub(super) fn gap(&self) -> Option<Gap> {
        locked(&self.gap).take()
    }

    /// A gap begins with a look, where a job runs and no command does; `but` is a job that has ended.
    pub(super) fn begin_gap(
        &self,
        of: &Watched,
        looked: &Looked,
        (session, but): (&Session, Option<&str>),
        place: &Place,
    ) {
        if of.runs_beside() || !runs(session, but) {
            return;
        }
        let open = Arc::new(Open {
            looked: OnceLock::from(looked.number),
            claims: std::sync::Mutex::default(),
            images: Arc::clone(&of.from.images),
        });
        locked(&self.open).push(Arc::downgrade(&open));
        let from = From {
            watching: of.from.watching,
            host: Arc::clone(&of.from.host),
            walk: of.from.walk.clone(),
            named: ExtraPaths::default(),
            before: Arc::clone(&looked.survey),
            looked: looked.number,
            copies: Arc::clone(&looked.copies),
            open,
            images: Arc::clone(&of.from.images),
            since: looked.at,
            repositories: of.from.repositories.later(),
        };
        *locked(&self.gap) = Some(Gap { from, place: place.clone() });
    }

    /// What is watched since a gap began.
    fn of_gap(self: &Arc<Self>, from: From) -> Watched {
        Watched { watch: Arc::clone(self), from, is_gap: true, signs: None, notes: Vec::new() }
    }

    /// Tells what changed in a gap that ends with the look before this call.
    pub(super) async fn tell_gap(self: &Arc<Self>, gap: Gap, looked: Looked, call: &Cx) {
        let Gap { from, place } = gap;
        let jobs = ran(call.session(), from.since, None);
        locked(&from.open.claims).looks();
        let watched = self.of_gap(from);
        let found = watched.compare(looked, (call.session(), &place), false).await;
        self.tell_between(call, found, &jobs);
    }

    /// Tells what these jobs did before a call.
    fn tell_between(&self, call: &Cx, found: Comparison, jobs: &[Arc<Job>]) {
        let text = keep(call.session(), found, jobs);
        if let (Some(text), Some(names)) = (text, names(jobs)) {
            let text = format!("while {names} ran, before {}: {text}", call.call);
            notice(call.session(), jobs, text.clone());
            self.late.add(text);
        }
    }

    /// Takes note of the repositories behind a command, where a job runs; `but` is a job that has ended.
    pub(super) fn begin_behind(&self, session: &Session, behind: Behind, but: Option<&str>) {
        if runs(session, but) {
            *locked(&self.behind) = Some(behind);
        }
    }

    /// Tells what repositories lost behind the last command.
    pub(super) async fn tell_behind(&self, call: &Cx) {
        let behind = locked(&self.behind).take();
        let Some(behind) = behind else { return };
        let jobs = ran(call.session(), behind.since, None);
        let (found, _held) = behind.found(call.session()).await;
        self.tell_between(call, found, &jobs);
    }

    /// Finds what repositories lost since the last command, at the end of a job; in words.
    async fn behind_ends(&self, session: &Session, job: &Arc<Job>) -> Vec<String> {
        let behind = locked(&self.behind).take();
        let Some(behind) = behind else { return Vec::new() };
        let jobs = ran(session, behind.since, None);
        let next = Behind { since: Instant::now(), ..behind.clone() };
        let (found, _held) = behind.found(session).await;
        self.begin_behind(session, next, Some(job.id()));
        end(session, found, job, jobs)
    }

    /// Finds what changed since the last command, at the end of a job; in words.
    pub(crate) async fn job_ends(
        self: &Arc<Self>,
        session: &Session,
        job: &Arc<Job>,
    ) -> Vec<String> {
        let _telling = self.telling.lock().await;
        // A command that begins now looks behind this, and one that runs tells it all.
        let mut state = self.state.lock().await;
        let Some(Gap { from, place }) = self.gap() else {
            drop(state);
            return self.behind_ends(session, job).await;
        };
        let since = from.since;
        locked(&from.open.claims).looks();
        let watched = self.of_gap(from);
        let looked = match watched.look_in(&mut state, &place).await {
            Ok(looked) => looked,
            Err((error, for_good)) => return vec![off(&error, for_good)],
        };
        drop(state);
        let jobs = ran(session, since, None);
        self.begin_gap(&watched, &looked, (session, Some(job.id())), &place);
        let found = watched.compare(looked, (session, &place), false).await;
        end(session, found, job, jobs)
    }
}

/// The repositories as they were behind a command around which nothing else is looked after.
#[derive(Clone)]
pub(super) struct Behind {
    repositories: Repositories,
    host: Arc<dyn Host>,
    place: Place,
    since: Instant,
}

impl Behind {
    pub(super) fn of(repositories: Repositories, host: Arc<dyn Host>, place: Place) -> Self {
        Self { repositories, host, place, since: Instant::now() }
    }

    /// What they lost since.
    async fn found(self, session: &Session) -> (Comparison, Vec<PinGuard>) {
        let images = session.pre_images();
        let of = (&*self.host, &*images);
        let rescued = self.repositories.rescue((session, &self.place), of, Vec::new()).await;
        let Rescued { lines, receipts, held, .. } = rescued;
        (Comparison { lines, receipts, data: None }, held)
    }
}

/// Reports whether a job runs; `but` is one that has ended.
fn runs(session: &Session, but: Option<&str>) -> bool {
    let runs = |job: &Arc<Job>| job.end().is_none() && Some(job.id()) != but;
    session.map.get::<Jobs>().all().iter().any(runs)
}

/// Tells what changed while a job ran that has ended, and some of these; in words.
fn end(session: &Session, found: Comparison, job: &Arc<Job>, jobs: Vec<Arc<Job>>) -> Vec<String> {
    let this = std::slice::from_ref(job);
    let Some(text) = keep(session, found, this) else { return Vec::new() };
    let others: Vec<Arc<Job>> = jobs.into_iter().filter(|other| !Arc::ptr_eq(other, job)).collect();
    let others = names(&others).map(|names| format!(", as {names} did")).unwrap_or_default();
    notice(session, this, format!("while {} ran{others}: {text}", job.named()));
    vec![format!("while it ran{others}, this changed: {}", text.replace("]\n[", "; "))]
}

/// Jobs that ran at some time since then, without those that this call began.
pub(super) fn ran(session: &Session, since: Instant, but: Option<&CallId>) -> Vec<Arc<Job>> {
    let mut jobs = session.map.get::<Jobs>().since(since);
    jobs.retain(|job| Some(job.call()) != but);
    jobs
}

/// Their names; none where there are none.
fn names(jobs: &[Arc<Job>]) -> Option<String> {
    let mut names: Vec<String> = jobs.iter().take(NAMED).map(|job| job.named()).collect();
    let more = jobs.len().saturating_sub(NAMED);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    (!names.is_empty()).then(|| names.join(" and "))
}

/// What is said in front of what a command changed while jobs ran.
pub(super) fn may_be(jobs: &[Arc<Job>]) -> Option<String> {
    names(jobs).map(|names| format!("while {names} ran, which may have done some of it"))
}

/// Keeps what was found in the log, under the name of the first of these jobs; gives it in words.
fn keep(session: &Session, found: Comparison, jobs: &[Arc<Job>]) -> Option<String> {
    let Comparison { receipts, lines, .. } = found;
    let job = jobs.first()?;
    let text = lines.join("]\n[");
    if !receipts.is_empty() {
        let body = Body::Found { call: CallId(job.id().into()), receipts };
        if let Err(error) = session.events.emit(job.agent(), job.turn(), body) {
            return Some(format!("{text}; this cannot be taken back: {error}"));
        }
    }
    (!text.is_empty()).then_some(text)
}

/// Tells people.
fn notice(session: &Session, jobs: &[Arc<Job>], text: String) {
    let Some(job) = jobs.first() else { return };
    // A log that cannot be written is told of by whoever writes it next.
    let body = Body::Notice { level: Level::Info, text };
    drop(session.events.emit(job.agent(), job.turn(), body));
}
