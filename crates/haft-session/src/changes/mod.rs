//! What was changed in a session, and what of it was taken back: a fold over the events of a branch.
//!
//! **Invariant:** a change is what one call of an agent, a person or a client did, with all calls
//! that it made in turn; it stands at the place of its first receipt. What was taken back last is
//! made again first. It knows nothing of files: receipts are only passed on.

mod parts;

use haft_types::{Access, Body, CallId, Event, Outcome, Plan, Receipt, Status, Target, TurnId};

/// What one call changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The call; the name of a job for what changed while it ran and no command did.
    pub call: CallId,
    /// The turn that it belongs to; 0 for calls that no agent made.
    pub turn: TurnId,
    /// The tool's name.
    pub tool: String,
    /// What it was to do, as its plan said.
    pub title: String,
    /// When it ended, in milliseconds since the Unix epoch.
    pub at: u64,
    /// What it did, oldest first.
    pub receipts: Vec<Receipt>,
    /// The jobs that ran while that was found by looking at the files, and what other processes of haft
    /// ran: some of it may be their doing.
    pub jobs: Vec<String>,
    /// Whether it is taken back now.
    pub undone: bool,
}

/// Changes that were taken back and not made again, as few as can be made again by themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenBack {
    /// The number of the undo, from 1; what it took back at once has the same.
    pub undo: usize,
    /// The calls, the newest first.
    pub calls: Vec<CallId>,
    /// What was done to the files for it, oldest first.
    pub receipts: Vec<Receipt>,
}

/// What was changed in a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Every change, oldest first.
    pub all: Vec<Change>,
    /// What is taken back now, the last one last.
    pub taken_back: Vec<TakenBack>,
    /// How many undos there were.
    undos: usize,
    /// Calls that began.
    begun: Vec<Begun>,
    running: Vec<Running>,
}

/// A job that runs.
#[derive(Clone, Debug, PartialEq)]
struct Running {
    job: String,
    call: CallId,
    /// Its name with what it does.
    named: String,
}

/// A call that began.
#[derive(Clone, Debug, PartialEq)]
struct Begun {
    call: CallId,
    tool: String,
    title: String,
    /// Whether what it changes is found by looking.
    is_looked: bool,
    /// The jobs of others that ran meanwhile.
    jobs: Vec<String>,
}

impl Begun {
    fn beside(&mut self, job: &Running) {
        if self.is_looked && job.call != self.call && !self.jobs.contains(&job.named) {
            self.jobs.push(job.named.clone());
        }
    }
}

impl Change {
    /// Reports whether it was found while a job ran, and anybody may have done it.
    pub fn is_of_job(&self) -> bool {
        is_job(&self.call)
    }
}

impl Changes {
    /// Folds the events of one branch.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut changes = Self::default();
        events.into_iter().for_each(|event| changes.push(event));
        changes
    }

    /// Takes the next event of the branch, of whatever agent.
    pub fn push(&mut self, event: &Event) {
        match &event.body {
            Body::CallStarted { call, tool, plan, .. } if is_outer(call) => {
                let title = plan.as_ref().map(|plan| plan.title.clone()).unwrap_or_default();
                let is_looked = plan.as_ref().is_some_and(is_looked);
                let (call, tool, jobs) = (call.clone(), tool.clone(), Vec::new());
                let mut begun = Begun { call, tool, title, is_looked, jobs };
                self.running.iter().for_each(|job| begun.beside(job));
                self.begun.retain(|other| other.call != begun.call);
                self.begun.push(begun);
            }
            Body::JobStarted { job, call, title } => {
                let (call, named) = (outer(call), format!("{job} ({title})"));
                let running = Running { job: job.clone(), call, named };
                self.begun.iter_mut().for_each(|begun| begun.beside(&running));
                self.running.push(running);
                let (tool, title, jobs) = ("job".to_owned(), title.clone(), Vec::new());
                let call = CallId((&**job).into());
                self.begun.push(Begun { call, tool, title, is_looked: false, jobs });
            }
            Body::JobEnded { job, .. } => {
                self.running.retain(|other| other.job != *job);
                self.begun.retain(|begun| *begun.call.0 != **job);
            }
            Body::CallEnded { call, outcome, .. } => {
                let own = outer(call);
                if let Some(begun) = self.begun.iter_mut().find(|begun| begun.call == own) {
                    begun.jobs.extend(others(outcome));
                }
                self.add(event, call, &outcome.receipts);
                // More may be found of one that was stopped.
                if is_outer(call)
                    && outcome.status != Status::Cancelled
                    && outcome.status != Status::TimedOut
                {
                    self.begun.retain(|begun| begun.call != *call);
                }
            }
            Body::Found { call, receipts } => self.add(event, call, receipts),
            Body::Undone { calls, redo, receipts, .. } => {
                for change in self.all.iter_mut().filter(|change| calls.contains(&change.call)) {
                    change.undone = !redo;
                }
                if *redo {
                    let again = |taken: &TakenBack| taken.calls.iter().all(|c| calls.contains(c));
                    self.taken_back.retain(|taken| !again(taken));
                } else {
                    self.undos += 1;
                    let parts = parts::parts(self.undos, calls, receipts, &self.all);
                    self.taken_back.extend(parts);
                }
            }
            _ => {}
        }
    }

    /// Takes what a call changed.
    fn add(&mut self, event: &Event, call: &CallId, receipts: &[Receipt]) {
        let outer = outer(call);
        let receipts = receipts.iter().cloned();
        if receipts.len() == 0 {
            return;
        }
        let begun = self.begun.iter().find(|begun| begun.call == outer);
        let jobs = match &event.body {
            Body::Found { call, .. } if is_job(call) => {
                self.running.iter().map(|job| job.named.clone()).collect()
            }
            _ => begun.map(|begun| begun.jobs.clone()).unwrap_or_default(),
        };
        // What is found later of a call that is taken back is another change.
        let known = self.all.iter_mut().rfind(|c| c.call == outer).filter(|c| !c.undone);
        if let Some(change) = known {
            change.receipts.extend(receipts);
            change.jobs.extend(jobs);
            change.jobs.sort();
            change.jobs.dedup();
            change.at = event.at;
        } else {
            let (tool, title) =
                begun.map(|begun| (begun.tool.clone(), begun.title.clone())).unwrap_or_default();
            self.all.push(Change {
                call: outer,
                turn: event.turn,
                tool,
                title,
                at: event.at,
                receipts: receipts.collect(),
                jobs,
                undone: false,
            });
        }
    }

    /// Changes that stand now, oldest first.
    pub fn standing(&self) -> impl DoubleEndedIterator<Item = &Change> {
        self.all.iter().filter(|change| !change.undone)
    }
}

/// Reports whether no host sees what a call of this plan changes.
pub fn is_looked(plan: &Plan) -> bool {
    plan.effects.iter().any(|effect| {
        effect.access != Access::Observe
            && matches!(effect.target, Target::Command { .. } | Target::Anything)
    })
}

/// What other processes of haft ran meanwhile, as the call told.
fn others(outcome: &Outcome) -> impl Iterator<Item = String> {
    let told = outcome.data.as_ref().and_then(|data| data.pointer("/changes/while_others"));
    let told = told.and_then(|told| told.as_array()).into_iter().flatten();
    told.filter_map(|name| name.as_str()).map(str::to_owned)
}

/// Reports whether this names a job.
fn is_job(call: &CallId) -> bool {
    call.0.starts_with('j')
}

/// Reports whether a call was made by no other call.
fn is_outer(call: &CallId) -> bool {
    !call.0.contains('.')
}

/// The call that a call was made for in the end.
fn outer(call: &CallId) -> CallId {
    CallId(call.0.split('.').next().unwrap_or_default().into())
}
