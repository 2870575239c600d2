//! Jobs: work that runs beside the calls of a session, such as a command in the background.
//!
//! **Invariant:** a job is reported once as begun and once as ended. Memory is fixed however much
//! it prints. No job outlives [`Jobs::end`], nor the table of jobs. The end is reported to the
//! model once: with the next request of the agent whose call began the job, unless an answer showed
//! it before. This module does not know what a job does: that is a [`Work`].

mod echo;
mod job;
mod line_search;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use futures::{FutureExt as _, future::join_all};
use haft_types::{AgentPath, Body, CallId, JobEnd, ToolError, TurnId};
use tokio::{sync::watch, task::AbortHandle, time::Instant};

pub use self::{
    job::{Ended, Job, OutputPart, Work},
    line_search::{Seeking, Test},
};
use crate::{Cx, changes::diff::Watch, session::network::Network, stages::job_tried};

/// Ended jobs that stay listed.
const ENDED: usize = 32;
/// Those of which it is known beside them how they ended.
const FORGOTTEN: usize = 1_000;

/// The limits of a session's jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobLimits {
    /// Maximum number of jobs that run at once.
    pub running: usize,
    /// Bytes of a job's newest output that are held in memory.
    pub memory: usize,
    /// Maximum run time of a job.
    pub life: Duration,
    /// Bytes of a job's output that are stored on disk.
    pub disk: u64,
}

impl Default for JobLimits {
    /// 16 jobs, each with 256 KiB in memory, 12 hours and 256 MiB on disk.
    fn default() -> Self {
        Self { running: 16, memory: 256 << 10, life: Duration::from_hours(12), disk: 256 << 20 }
    }
}

/// The jobs of a session, in its [`map`](crate::Session::map).
#[derive(Default)]
pub struct Jobs {
    limits: OnceLock<JobLimits>,
    table: Mutex<Table>,
    /// How many have ended here.
    ends: watch::Sender<u64>,
}

#[derive(Default)]
struct Table {
    /// By the number in the id.
    jobs: BTreeMap<u64, Arc<Job>>,
    tasks: BTreeMap<u64, AbortHandle>,
    /// How jobs ended that are listed no more, with where all is that they said, both in words.
    forgotten: BTreeMap<u64, (String, String)>,
    /// The last number that was given.
    last: u64,
    /// Places that are taken and not running yet.
    starting: usize,
    /// Why none can begin; unset while one can.
    refused: Option<String>,
}

impl Table {
    fn running(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.values().filter(|job| job.end().is_none())
    }

    /// Forgets the oldest of those that ended, first those whose end is known.
    fn prune(&mut self) {
        let mut ended: Vec<(bool, u64)> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.end().is_some())
            .map(|(number, job)| (!job.is_told(), *number))
            .collect();
        ended.sort_unstable();
        for (_, number) in &ended[..ended.len().saturating_sub(ENDED)] {
            let job = self.jobs.remove(number);
            if let Some((job, end)) = job.and_then(|job| Some((job.clone(), job.end()?))) {
                let (name, how) = (job.named(), &end.words);
                let words = format!("the job {name} has ended: {how}; it is listed no more");
                let place = job.place(&end).unwrap_or_else(|| {
                    if job.is_past() {
                        format!("What is kept of what it said: {}.", job.call().address())
                    } else {
                        "It said nothing.".to_owned()
                    }
                });
                self.forgotten.insert(*number, (words, place));
            }
        }
        while self.forgotten.len() > FORGOTTEN {
            self.forgotten.pop_first();
        }
        let jobs = &self.jobs;
        self.tasks.retain(|number, _| jobs.get(number).is_some_and(|job| job.end().is_none()));
    }
}

impl Jobs {
    /// Sets the limits; the first time counts.
    pub fn limit(&self, limits: JobLimits) {
        self.limits.get_or_init(|| limits);
    }

    /// The limits of the jobs.
    pub fn limits(&self) -> JobLimits {
        *self.limits.get_or_init(JobLimits::default)
    }

    /// From now on no job can begin, for this reason; the first reason counts.
    pub fn refuse(&self, why: &str) {
        self.table().refused.get_or_insert_with(|| why.to_owned());
    }

    /// Reports whether none can begin: then no command runs beside another one either.
    pub(crate) fn are_refused(&self) -> bool {
        self.table().refused.is_some()
    }

    /// Reserves a place for one more job.
    ///
    /// # Errors
    /// When too many jobs run, or none can begin any more.
    pub fn begin(self: &Arc<Self>) -> Result<JobPlace, ToolError> {
        let most = self.limits().running;
        let mut table = self.table();
        if let Some(why) = &table.refused {
            return Err(ToolError::new(format!("no job can begin: {why}"))
                .hint("Nothing was run. Run it without run_in_background."));
        }
        if table.running().count() + table.starting >= most {
            let mut named: Vec<String> = table.running().map(|job| job.named()).collect();
            named
                .extend((table.starting > 0).then(|| format!("{} about to begin", table.starting)));
            return Err(ToolError::new(format!(
                "no more than {most} jobs may run at once, and so many do: {}",
                named.join(", ")
            ))
            .hint("Nothing was run. End one with job {action: stop}, or wait for one."));
        }
        table.starting += 1;
        drop(table);
        Ok(JobPlace { jobs: Arc::clone(self), before: Duration::ZERO, is_used: false })
    }

    /// All listed jobs, the oldest first.
    pub fn all(&self) -> Vec<Arc<Job>> {
        self.table().jobs.values().cloned().collect()
    }

    /// Finds a job by its name, or by its number alone. Without a name it is the only one that
    /// runs, else the only one there is.
    ///
    /// # Errors
    /// When there is no such job, or several; names those that there are.
    pub fn find(&self, id: Option<&str>) -> Result<Arc<Job>, ToolError> {
        let all = self.all();
        if let Some(id) = id {
            let id = id.trim();
            let is_it = |job: &&Arc<Job>| job.id() == id || job.id().strip_prefix('j') == Some(id);
            return all.iter().find(is_it).cloned().ok_or_else(|| self.missing(id, listed(&all)));
        }
        let is_running = |job: &&Arc<Job>| job.end().is_none();
        let mut meant: Vec<Arc<Job>> = all.iter().filter(is_running).cloned().collect();
        if meant.is_empty() {
            meant = all;
        }
        match &meant[..] {
            [one] => Ok(Arc::clone(one)),
            [] => Err(ToolError::new("there is no job").hint(listed(&meant))),
            _ => Err(ToolError::new("job is missing, and there are several").hint(listed(&meant))),
        }
    }

    /// What is said where no job of this name is listed.
    fn missing(&self, id: &str, listed: String) -> ToolError {
        let forgotten = number(id).and_then(|number| self.table().forgotten.get(&number).cloned());
        let Some((words, place)) = forgotten else {
            let shown: String = id.chars().take(100).collect();
            return ToolError::new(format!("there is no job {shown:?}")).hint(listed);
        };
        ToolError::new(words).hint(place)
    }

    /// Those that ran at some time since then.
    pub(crate) fn since(&self, moment: Instant) -> Vec<Arc<Job>> {
        let ran = |job: &&Arc<Job>| match job.end() {
            None => true,
            Some(ended) => ended.at >= moment && !job.is_past(),
        };
        self.table().jobs.values().filter(ran).cloned().collect()
    }

    /// Tells of each end of a job from here on.
    pub fn ends(&self) -> watch::Receiver<u64> {
        self.ends.subscribe()
    }

    /// The ended jobs of an agent's calls whose end its model does not know yet.
    pub fn unreported(&self, agent: &AgentPath) -> Vec<Arc<Job>> {
        let news = |job: &&Arc<Job>| job.agent() == agent && job.end().is_some() && !job.is_told();
        self.table().jobs.values().filter(news).cloned().collect()
    }

    /// Reports of ended jobs for an answer, over MCP and on the command line. Such callers have no
    /// requests of their own that would report them.
    pub fn news(&self, cx: &Cx) -> Vec<String> {
        if cx.nested || cx.conversation().standing().is_some() {
            return Vec::new();
        }
        let news = self.unreported(cx.agent());
        let tell = |job: &Arc<Job>| {
            job.mark_seen();
            format!("[{}]", job.report())
        };
        news.iter().map(tell).collect()
    }

    /// The job that a call began; the newest where it began several.
    pub fn of_call(&self, call: &CallId) -> Option<Arc<Job>> {
        self.table().jobs.values().rev().find(|job| job.call() == call).cloned()
    }

    /// Records that a job of an earlier run of this session took this name.
    pub fn saw(&self, id: &str) {
        let mut table = self.table();
        table.last = table.last.max(number(id).unwrap_or(0));
    }

    /// Adds an ended job of an earlier run of this session, with the call and the agent that began
    /// it. The model is still to be told of its end.
    pub fn was(&self, id: &str, (call, agent): (CallId, AgentPath), title: &str, ended: Ended) {
        self.saw(id);
        let Some(number) = number(id) else { return };
        let job = Job::over(id, (call, agent, TurnId::default()), title.to_owned(), ended);
        self.table().jobs.insert(number, Arc::new(job));
    }

    /// Stops all running jobs at once and lets none begin any more; returns the jobs that it
    /// stopped.
    ///
    /// Jobs that do not end within the time `within` are killed.
    pub async fn end(&self, within: Duration) -> Vec<Arc<Job>> {
        self.refuse("the session is ending");
        let running: Vec<Arc<Job>> = self.table().running().cloned().collect();
        for job in &running {
            job.stop();
        }
        let ends = join_all(running.iter().map(|job| job.ended()));
        if tokio::time::timeout(within, ends).await.is_err() {
            std::mem::take(&mut self.table().tasks).values().for_each(AbortHandle::abort);
            for job in &running {
                job.finish(Ended::killed());
            }
        }
        running
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Jobs {
    /// Nothing goes on when nobody can ask for it any more.
    fn drop(&mut self) {
        self.table().tasks.values().for_each(AbortHandle::abort);
    }
}

/// The jobs among which one is to be named.
fn listed(jobs: &[Arc<Job>]) -> String {
    if jobs.is_empty() {
        return "There are no jobs: bash with run_in_background begins one.".to_owned();
    }
    let named: Vec<String> = jobs.iter().map(|job| job.named()).collect();
    format!("The jobs are: {}.", named.join(", "))
}

/// The number in an id.
fn number(id: &str) -> Option<u64> {
    id.strip_prefix('j').unwrap_or(id).parse().ok()
}

/// A reserved place for a job that is about to begin; dropping it frees the place.
pub struct JobPlace {
    jobs: Arc<Jobs>,
    /// How long its work runs already.
    before: Duration,
    /// Whether a job has it.
    is_used: bool,
}

impl JobPlace {
    /// The same place, for work that has been running for this time.
    #[must_use]
    pub const fn after(mut self, time: Duration) -> Self {
        self.before = time;
        self
    }

    /// Begins the job of a call: `follow` gives the future that runs until its end and returns how
    /// it ended.
    ///
    /// The job retains only the ids of the call, so that the session can end.
    ///
    /// # Errors
    /// When no job can begin any more, or its begin cannot be recorded; `follow` is dropped then.
    pub fn start<F>(
        mut self,
        cx: &Cx,
        title: String,
        work: Arc<dyn Work>,
        follow: impl FnOnce(Arc<Job>) -> F,
    ) -> Result<Arc<Job>, ToolError>
    where
        F: Future<Output = Ended> + Send + 'static,
    {
        // Held to the end: who ends all jobs meets this one, or none begins.
        let mut table = self.jobs.table();
        if let Some(why) = &table.refused {
            return Err(ToolError::new(format!("no job can begin: {why}; it was stopped")));
        }
        table.last += 1;
        let number = table.last;
        let (id, call) = (format!("j{number}"), cx.call.clone());
        let started =
            Body::JobStarted { job: id.clone(), call: call.clone(), title: title.clone() };
        cx.emit(started).map_err(|error| ToolError::new(format!("{error}\nIt was stopped.")))?;
        let memory = self.jobs.limits().memory;
        let (agent, events) = (cx.agent().clone(), cx.session().events.clone());
        let tell = move |agent: &AgentPath, turn: TurnId, body| {
            // Where it cannot be kept, the next request is not made either, which tells it.
            drop(events.emit(agent, turn, body));
        };
        let names = (call, agent, cx.turn);
        let job = Job::new(id, names, title, memory, work, Box::new(tell));
        let job = Arc::new(job.running_for(self.before));
        cx.session().map.get::<Network>().is_job(job.process(), job.id());
        let (of, life) = (Arc::clone(&job), follow(Arc::clone(&job)));
        let session = Arc::downgrade(&cx.dispatcher.session);
        let life = async move {
            let mut ended = life.await;
            if let Some(session) = Weak::upgrade(&session) {
                let watch = session.map.get::<Watch>();
                let changed = watch.job_ends(&session, &of).await;
                ended.notes.extend(changed.into_iter().chain(job_tried(&session, &of, &ended)));
            }
            ended
        };
        let life = std::panic::AssertUnwindSafe(life).catch_unwind();
        let (of, jobs) = (Arc::clone(&job), Arc::downgrade(&self.jobs));
        let task = tokio::spawn(async move {
            let broke = |_| Ended::new(JobEnd::Lost, "lost: what followed it broke down");
            of.finish(life.await.unwrap_or_else(broke));
            if let Some(jobs) = Weak::upgrade(&jobs) {
                jobs.table().prune();
                jobs.ends.send_modify(|ends| *ends += 1);
            }
        });
        table.jobs.insert(number, Arc::clone(&job));
        table.tasks.insert(number, task.abort_handle());
        // At once: it is one that runs from here on.
        table.starting -= 1;
        drop(table);
        self.is_used = true;
        Ok(job)
    }
}

impl Drop for JobPlace {
    fn drop(&mut self) {
        if !self.is_used {
            self.jobs.table().starting -= 1;
        }
    }
}
