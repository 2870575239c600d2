//! What was changed in a session, and what of it was taken back: a fold over the events of a branch.
//!
//! **Invariant:** a change is what one call of an agent, a person or a client did, with all calls
//! that it made in turn; it stands at the place of its first receipt. What was taken back last is
//! made again first. It knows nothing of files: receipts are only passed on.

mod parts;

use haft_types::{Body, CallId, Event, Receipt, Status, TurnId};

/// What one call changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The call.
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
    /// Calls that began, with their tool and what they were to do.
    begun: Vec<(CallId, String, String)>,
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
                self.begun.retain(|(begun, ..)| begun != call);
                self.begun.push((call.clone(), tool.clone(), title));
            }
            Body::CallEnded { call, outcome, .. } => {
                self.add(event, call, &outcome.receipts);
                // More may be found of one that was stopped.
                if is_outer(call)
                    && outcome.status != Status::Cancelled
                    && outcome.status != Status::TimedOut
                {
                    self.begun.retain(|(begun, ..)| begun != call);
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
        } else if let Some(change) = self.all.iter_mut().rfind(|c| c.call == outer) {
            change.receipts.extend(receipts);
            change.at = event.at;
        } else {
            let begun = self.begun.iter().find(|(begun, ..)| *begun == outer);
            let (tool, title) =
                begun.map(|(_, tool, title)| (tool.clone(), title.clone())).unwrap_or_default();
            self.all.push(Change {
                call: outer,
                turn: event.turn,
                tool,
                title,
                at: event.at,
                receipts: receipts.collect(),
                undone: false,
            });
        }
    }

    /// Changes that stand now, oldest first.
    pub fn standing(&self) -> impl DoubleEndedIterator<Item = &Change> {
        self.all.iter().filter(|change| !change.undone)
    }
}

/// Reports whether a call was made by no other call.
fn is_outer(call: &CallId) -> bool {
    !call.0.contains('.')
}

/// The call that a call was made for in the end.
fn outer(call: &CallId) -> CallId {
    CallId(call.0.split('.').next().unwrap_or_default().into())
}
