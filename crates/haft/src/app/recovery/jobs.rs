//! Jobs that an earlier run of a session left: how they ended is reported when the session is
//! resumed.

use std::{collections::BTreeMap, sync::Arc};

use haft_agent::Bus;
use haft_tool::{Ended, Events as _, Jobs, RecordError};
use haft_types::{Body, Event, JobEnd};

/// The jobs of a log.
#[derive(Default)]
pub struct Past {
    jobs: BTreeMap<String, State>,
    is_streaming: bool,
}

/// What is known of one.
enum State {
    /// Its name is taken.
    Over,
    /// Its begin; and its end, which no model was told of.
    Open(Box<Event>, Option<(JobEnd, Option<i32>)>),
}

impl Past {
    /// Takes the next event of a log, and whether it is on the branch of the last one.
    pub fn note(&mut self, event: &Event, on_branch: bool) {
        match &event.body {
            Body::JobStarted { job, .. } if on_branch => {
                self.jobs.insert(job.clone(), State::Open(Box::new(event.clone()), None));
            }
            Body::JobStarted { job, .. } => {
                self.jobs.entry(job.clone()).or_insert(State::Over);
            }
            _ if !on_branch => {}
            Body::JobEnded { job, end, exit } => {
                if let Some(State::Open(_, ended)) = self.jobs.get_mut(job) {
                    *ended = Some((*end, *exit));
                }
            }
            // The request for it told of all that had ended.
            Body::AnswerPart { .. } if !std::mem::replace(&mut self.is_streaming, true) => {
                for state in self.jobs.values_mut() {
                    if matches!(state, State::Open(_, Some(_))) {
                        *state = State::Over;
                    }
                }
            }
            Body::AnswerEnded { .. } | Body::AnswerFailed { .. } => self.is_streaming = false,
            _ => {}
        }
    }

    /// Reserves their names, ends those that have no end, and has the model told.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn resume(self, jobs: &Arc<Jobs>, bus: &Bus) -> Result<(), RecordError> {
        for (id, state) in self.jobs {
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
