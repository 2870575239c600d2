//! Jobs that an earlier run of a session left: how they ended is reported when the session is
//! resumed.

use std::{collections::BTreeMap, sync::Arc};

use haft_agent::Bus;
use haft_session::on_branch;
use haft_tool::{Ended, Events as _, Jobs, RecordError};
use haft_types::{Body, Event, EventId, JobEnd};

/// The jobs of a log.
#[derive(Default)]
pub struct Past(BTreeMap<String, State>);

/// What is known of one.
enum State {
    /// Its name is taken.
    Over,
    /// Its begin; and its end, which no model was told of.
    Open(Box<Event>, Option<(JobEnd, Option<i32>)>),
}

impl Past {
    /// The jobs in the events of a log whose last event is `leaf`.
    pub fn of(events: &[Event], leaf: EventId) -> Self {
        let mut jobs = BTreeMap::new();
        for event in events {
            if let Body::JobStarted { job, .. } = &event.body {
                jobs.insert(job.clone(), State::Over);
            }
        }
        let mut streaming = false;
        for event in on_branch(events, leaf) {
            match &event.body {
                Body::JobStarted { job, .. } => {
                    jobs.insert(job.clone(), State::Open(Box::new(event.clone()), None));
                }
                Body::JobEnded { job, end, exit } => {
                    if let Some(State::Open(_, ended)) = jobs.get_mut(job) {
                        *ended = Some((*end, *exit));
                    }
                }
                // The request for it told of all that had ended.
                Body::AnswerPart { .. } if !std::mem::replace(&mut streaming, true) => {
                    for state in jobs.values_mut() {
                        if matches!(state, State::Open(_, Some(_))) {
                            *state = State::Over;
                        }
                    }
                }
                Body::AnswerEnded { .. } | Body::AnswerFailed { .. } => streaming = false,
                _ => {}
            }
        }
        Self(jobs)
    }

    /// Reserves their names, ends those that have no end, and has the model told.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn resume(self, jobs: &Arc<Jobs>, bus: &Bus) -> Result<(), RecordError> {
        for (id, state) in self.0 {
            let State::Open(event, ended) = state else {
                jobs.saw(&id);
                continue;
            };
            let Body::JobStarted { call, title, .. } = &event.body else { continue };
            let (end, exit) = ended.unwrap_or((JobEnd::Lost, None));
            if ended.is_none() {
                bus.emit(&event.agent, event.turn, Body::JobEnded { job: id.clone(), end, exit })?;
            }
            let words = match (end, exit) {
                (JobEnd::Exited, Some(code)) => format!("exit code {code}"),
                (JobEnd::Exited, None) => "by itself".to_owned(),
                (JobEnd::Stopped, _) => "stopped, with the run that began it".to_owned(),
                (JobEnd::Lost, _) => "lost with the run that began it".to_owned(),
            };
            let ended = Ended { exit, ..Ended::new(end, words) };
            jobs.was(&id, (call.clone(), event.agent.clone()), title, ended);
        }
        Ok(())
    }
}
